// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A candidate for the product of 96 x 112 and 112 x 80: tiles of 16 by 16 in
// shared memory. matmul.ptx is what `nvcc -ptx -arch=sm_80` makes of it.

extern "C" __global__ void fast(const float *__restrict__ a,
                                const float *__restrict__ b,
                                float *__restrict__ c) {
  __shared__ float tileA[16][16], tileB[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  float sum = 0;
  for (int k = 0; k < 112; k += 16) {
    tileA[ty][tx] = a[row * 112 + k + tx];
    tileB[ty][tx] = b[(k + ty) * 80 + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum += tileA[ty][i] * tileB[i][tx];
    __syncthreads();
  }
  c[row * 80 + column] = sum;
}
