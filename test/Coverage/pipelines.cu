// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies under way while others are worked on: the pipeline interface.

#include <cuda_pipeline_primitives.h>

extern "C" __global__ void pipeline_sum(const float4 *in, float *out,
                                        int tiles) {
  __shared__ float4 stage[3][64];
  int t = threadIdx.x;
  const float4 *mine = in + (size_t)blockIdx.x * tiles * 64;
  for (int s = 0; s < 2; ++s) {
    if (s < tiles)
      __pipeline_memcpy_async(&stage[s][t], &mine[s * 64 + t], 16);
    __pipeline_commit();
  }
  float sum = 0.f;
  for (int i = 0; i < tiles; ++i) {
    if (i + 2 < tiles)
      __pipeline_memcpy_async(&stage[(i + 2) % 3][t], &mine[(i + 2) * 64 + t],
                              16);
    __pipeline_commit();
    __pipeline_wait_prior(2);
    float4 v = stage[i % 3][t];
    sum += v.x + v.y + v.z + v.w;
  }
  for (int o = 16; o; o >>= 1)
    sum += __shfl_down_sync(~0u, sum, o);
  if (t % 32 == 0)
    atomicAdd(&out[blockIdx.x], sum);
}

extern "C" __global__ void cp_async_zero_fill(const float *in, float *out,
                                              int n) {
  __shared__ float buffer[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  unsigned to = (unsigned)__cvta_generic_to_shared(&buffer[threadIdx.x]);
  int bytes = i < n ? 4 : 0;
  const float *from = i < n ? in + i : in;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to),
               "l"(from), "r"(bytes));
  asm volatile("cp.async.commit_group;\n");
  asm volatile("cp.async.wait_group 0;\n" ::: "memory");
  __syncthreads();
  out[i] = buffer[127 - threadIdx.x];
}
