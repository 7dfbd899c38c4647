// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A candidate for softmax over 256 rows of 512: a warp a row, 8 warps a block,
// with the fast exponential. softmax.ptx is what `nvcc -ptx -arch=sm_80` makes
// of it.

#include <math.h>

extern "C" __global__ void fast(const float *__restrict__ x,
                                float *__restrict__ y) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
  const float *from = x + row * 512;
  float values[16], most = -INFINITY, sum = 0;
  for (int i = 0; i < 16; ++i)
    most = fmaxf(most, values[i] = from[lane + 32 * i]);
  for (int delta = 16; delta; delta >>= 1)
    most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, delta));
  for (int i = 0; i < 16; ++i)
    sum += values[i] = __expf(values[i] - most);
  for (int delta = 16; delta; delta >>= 1)
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, delta);
  float scale = 1 / sum;
  for (int i = 0; i < 16; ++i)
    y[row * 512 + lane + 32 * i] = values[i] * scale;
}
