// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Arithmetic of pairs of 16-bit numbers.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half2_add(const half2 *a, const half2 *b, half2 *c,
                                     int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = __hadd2(a[i], b[i]);
}

extern "C" __global__ void half8_vector_add(const uint4 *a, const uint4 *b,
                                            uint4 *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint4 x = a[i], y = b[i], z;
  const half2 *xs = reinterpret_cast<const half2 *>(&x);
  const half2 *ys = reinterpret_cast<const half2 *>(&y);
  half2 *zs = reinterpret_cast<half2 *>(&z);
#pragma unroll
  for (int k = 0; k < 4; ++k)
    zs[k] = xs[k] + ys[k];
  c[i] = z;
}

extern "C" __global__ void bf16x2_add(const __nv_bfloat162 *a,
                                      const __nv_bfloat162 *b,
                                      __nv_bfloat162 *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = __hadd2(a[i], b[i]);
}

extern "C" __global__ void half_functions(const half *in, half *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  half x = in[i]; // Positive.
  half y = __hfma(x, x, __float2half(0.5f));
  y = __hadd(y, hexp(__hneg(x)));
  y = __hadd(y, hsqrt(x));
  y = __hmax(y, __habs(x));
  if (__hgt(y, __float2half(2.f)))
    y = __hdiv(y, __float2half(2.f));
  out[i] = y;
}

extern "C" __global__ void half2_relu_fma(const half2 *a, const half2 *b,
                                          half2 *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = __hfma2_relu(a[i], b[i], __float2half2_rn(0.f));
}

extern "C" __global__ void bf16_from_float(const float *in, __nv_bfloat16 *out,
                                           int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
  if (i + 1 < n)
    *reinterpret_cast<__nv_bfloat162 *>(out + i) =
        __floats2bfloat162_rn(in[i], in[i + 1]);
}

extern "C" __global__ void half_dot_accumulate(const half2 *a, const half2 *b,
                                               float *out, int n) {
  half2 sum = __float2half2_rn(0.f);
  for (int i = threadIdx.x; i < n; i += 32)
    sum = __hfma2(a[i], b[i], sum);
  float v = __low2float(sum) + __high2float(sum);
  for (int o = 16; o; o >>= 1)
    v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x == 0)
    *out = v;
}

extern "C" __global__ void half_atomics(const half2 *in, half2 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&out[0], in[i]);
}
