// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What nvcc.ptx, nvrtc.ptx and clang.ptx beside this file were compiled from:
// a kernel that uses tables, calls, a switch, shuffles and inline assembly.

extern "C" {
__constant__ float weights[4] = {1.0f, 2.5f};
__device__ int total;
__device__ int *where = &total;

__device__ __noinline__ float halve(float x, int times) {
  return times == 0 ? x : halve(x * 0.5f, times - 1);
}
__device__ __noinline__ float twice(float x, int times) {
  return x * 2.0f * times;
}
typedef float (*Step)(float, int);
__device__ Step steps[2] = {halve, twice};

__global__ void __launch_bounds__(128, 2)
    mixed(const float *__restrict__ in, float *out, int n, int which) {
  extern __shared__ float scratch[];
  __shared__ float row[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = i < n ? in[i] : 0.0f;
  for (int distance = 16; distance > 0; distance /= 2)
    x += __shfl_xor_sync(~0u, x, distance);
  if (threadIdx.x % 32 == 0)
    row[threadIdx.x / 32] = x * weights[which & 3];
  scratch[threadIdx.x] = x;
  __syncthreads();
  x = steps[which & 1](row[i & 31] + scratch[i & 15], n);
  switch (which) {
  case 0:
    x += out[0];
    break;
  case 1:
    x *= out[1];
    break;
  case 2:
    x -= in[2];
    break;
  case 3:
    x = out[3] - x;
    break;
  case 4:
    x /= out[4];
    break;
  case 6:
    x = -x;
    break;
  }
  int isLess;
  asm("{\n\t.reg .pred p, q;\n\tsetp.ge.f32 q, %1, 0f00000000;\n\t"
      "setp.lt.and.f32 p|q, %1, %2, !q;\n\tselp.s32 %0, 1, 0, p;\n\t}"
      : "=r"(isLess)
      : "f"(x), "f"(row[0]));
  atomicAdd(where, isLess);
  if (i < n)
    out[i] = x;
}
}
