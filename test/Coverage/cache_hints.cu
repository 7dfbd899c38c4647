// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads and stores with hints for the caches.

// Vectors for the body, single elements for the tail.
extern "C" __global__ void scale_tail(const float *__restrict__ in,
                                      float *__restrict__ out, float s, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = gridDim.x * blockDim.x;
  int n4 = n / 4;
  const float4 *in4 = reinterpret_cast<const float4 *>(in);
  float4 *out4 = reinterpret_cast<float4 *>(out);
  for (int i = t; i < n4; i += stride) {
    float4 v = __ldg(in4 + i);
    v.x *= s;
    v.y *= s;
    v.z *= s;
    v.w *= s;
    __stcs(out4 + i, v);
  }
  for (int i = n4 * 4 + t; i < n; i += stride)
    out[i] = in[i] * s;
}

extern "C" __global__ void copy_streaming(const int4 *in, int4 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int4 v;
  switch (i % 4) {
  case 0:
    v = __ldcg(in + i);
    break;
  case 1:
    v = __ldcs(in + i);
    break;
  case 2:
    v = __ldca(in + i);
    break;
  default:
    v = __ldlu(in + i);
  }
  if (i & 1)
    __stcg(out + i, v);
  else
    __stwt(out + i, v);
}
