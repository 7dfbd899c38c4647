// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Quantisation to floating point of 8 bits.

#include <cuda_fp8.h>

extern "C" __global__ void
quantize_rows_e4m3(const float *in, __nv_fp8_e4m3 *out, float *scales, int n) {
  const float *x = in + blockIdx.x * n;
  float most = 1e-10f;
  for (int i = threadIdx.x; i < n; i += 32)
    most = fmaxf(most, fabsf(x[i]));
  for (int o = 16; o; o >>= 1)
    most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  float scale = most / 448.f;
  for (int i = threadIdx.x; i < n; i += 32)
    out[blockIdx.x * n + i] = __nv_fp8_e4m3(x[i] / scale);
  if (threadIdx.x == 0)
    scales[blockIdx.x] = scale;
}

extern "C" __global__ void dequantize_e4m3(const __nv_fp8_e4m3 *in,
                                           const float *scales, float *out,
                                           int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = (float)in[i] * scales[i / n];
}

extern "C" __global__ void dequantize_e5m2_pairs(const unsigned short *in,
                                                 const float *scales,
                                                 float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __half2_raw h = __nv_cvt_fp8x2_to_halfraw2(in[i], __NV_E5M2);
  float2 v = __half22float2(*reinterpret_cast<__half2 *>(&h));
  out[2 * i] = v.x * scales[2 * i / n];
  out[2 * i + 1] = v.y * scales[2 * i / n];
}
