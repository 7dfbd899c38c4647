// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Quantisation to 8 and 4 bits.

extern "C" __global__ void quantize_rows_int8(const float *in, signed char *out,
                                              float *scales, int n) {
  const float *x = in + blockIdx.x * n;
  float most = 0.f;
  for (int i = threadIdx.x; i < n; i += 32)
    most = fmaxf(most, fabsf(x[i]));
  for (int o = 16; o; o >>= 1)
    most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  float scale = most / 127.f, inverse = most > 0.f ? 127.f / most : 0.f;
  for (int i = threadIdx.x; i < n; i += 32) {
    int q = __float2int_rn(x[i] * inverse);
    out[blockIdx.x * n + i] = (signed char)max(-128, min(127, q));
  }
  if (threadIdx.x == 0)
    scales[blockIdx.x] = scale;
}

// Four values of a thread, packed by saturating conversions.
extern "C" __global__ void quantize_pack_int8(const float4 *in, unsigned *out,
                                              float *scales, int n4,
                                              float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0)
    scales[0] = scale;
  if (i >= n4)
    return;
  float4 v = in[i];
  float inverse = 1.f / scale;
  int q[4] = {__float2int_rn(v.x * inverse), __float2int_rn(v.y * inverse),
              __float2int_rn(v.z * inverse), __float2int_rn(v.w * inverse)};
  unsigned packed;
  asm("{\n"
      "  .reg .u32 t;\n"
      "  cvt.pack.sat.s8.s32.b32 t, %2, %1, 0;\n"
      "  cvt.pack.sat.s8.s32.b32 %0, %4, %3, t;\n"
      "}"
      : "=r"(packed)
      : "r"(q[2]), "r"(q[3]), "r"(q[0]), "r"(q[1]));
  out[i] = packed;
}

extern "C" __global__ void
dequantize_int8(const signed char *in, const float *scales, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  char4 q = reinterpret_cast<const char4 *>(in)[i];
  float s = scales[i * 4 / n];
  reinterpret_cast<float4 *>(out)[i] =
      make_float4(q.x * s, q.y * s, q.z * s, q.w * s);
}

extern "C" __global__ void unpack_int4(const unsigned char *in,
                                       const float *scales, float *out,
                                       int bytes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= bytes)
    return;
  unsigned v = in[i];
  float s = scales[i / 16];
  out[2 * i] = ((int)(v & 0xF) - 8) * s;
  out[2 * i + 1] = ((int)(v >> 4) - 8) * s;
}
