// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Activations: precise functions, intrinsics, approximations in PTX.

extern "C" __global__ void gelu_erf(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = 0.5f * in[i] * (1.f + erff(in[i] * 0.70710678118f));
}

extern "C" __global__ void gelu_tanh(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = in[i];
    out[i] =
        0.5f * x * (1.f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
  }
}

extern "C" __global__ void silu_exact(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] / (1.f + expf(-in[i]));
}

extern "C" __global__ void silu_fast(const float4 *in, float4 *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = in[i];
    v.x = __fdividef(v.x, 1.f + __expf(-v.x));
    v.y = __fdividef(v.y, 1.f + __expf(-v.y));
    v.z = v.z * __frcp_rn(1.f + __expf(-v.z));
    v.w = v.w * __frcp_rn(1.f + __expf(-v.w));
    out[i] = v;
  }
}

__device__ __forceinline__ float tanh_ptx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

extern "C" __global__ void tanh_approx(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = tanh_ptx(in[i]);
}

extern "C" __global__ void exp2_approx(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float y;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(in[i]));
    out[i] = y;
  }
}

extern "C" __global__ void softplus_mish(const float *in, float *softplus,
                                         float *mish, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = in[i];
    float s = x > 20.f ? x : log1pf(expf(x));
    softplus[i] = s;
    mish[i] = x * tanhf(s);
  }
}

extern "C" __global__ void swiglu(const float *gate_up, float *out, int rows,
                                  int width) {
  int row = blockIdx.x;
  const float *gate = gate_up + (size_t)row * 2 * width;
  const float *up = gate + width;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    float g = gate[c];
    out[(size_t)row * width + c] = g / (1.f + __expf(-g)) * up[c];
  }
}

extern "C" __global__ void math_zoo(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = in[i]; // Positive.
  float s, c;
  sincosf(x, &s, &c);
  float sum = s + c + sqrtf(x) + rsqrtf(x) + cbrtf(x) + logf(x) + log2f(x) +
              exp2f(x) + expm1f(x) + powf(x, 1.7f) + atan2f(x, 2.f) +
              hypotf(x, 1.f) + fmodf(x, 0.3f) + floorf(x) + roundf(x * 3.f) +
              truncf(x * 2.f) + rintf(x * 5.f) + copysignf(x, -1.f) +
              lgammaf(x + 1.f) + erfcf(x) + asinhf(x) + sinhf(x);
  out[i] = sum;
}

extern "C" __global__ void math_intrinsics(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = in[i]; // Positive.
  out[i] = __sinf(x) + __cosf(x) + __logf(x) + __log2f(x) + __log10f(x) +
           __powf(x, 1.5f) + __fsqrt_rn(x) + __frsqrt_rn(x) +
           __fmaf_rn(x, x, 1.f) + __saturatef(x - 0.2f) + __fadd_rz(x, 1e-3f) +
           __fmul_ru(x, 3.f) + __fdiv_rn(x, 7.f) + __tanf(x);
}
