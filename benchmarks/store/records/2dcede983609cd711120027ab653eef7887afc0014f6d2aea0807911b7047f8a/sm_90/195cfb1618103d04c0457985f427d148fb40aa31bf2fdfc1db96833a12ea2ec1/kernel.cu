namespace {

constexpr int kCols = 512;
constexpr int kWarps = 4;
constexpr unsigned kFull = 0xffffffffu;

// arith.maximumf: hands a NaN on.
__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

__device__ __forceinline__ float4 load4(const float4 *p) {
#if HINT == 0
  return *p;
#elif HINT == 3
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p));
  return v;
#else
  return __ldcs(p);
#endif
}

__device__ __forceinline__ void store4(float4 *p, float4 v) {
#if HINT == 2
  __stcs(p, v);
#else
  *p = v;
#endif
}

template <bool ALIGNED>
__device__ __forceinline__ void load_row(const float *__restrict__ row, int lane,
                                         float (&v)[16]) {
  if constexpr (ALIGNED) {
    const float4 *p = reinterpret_cast<const float4 *>(row) + lane;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float4 t = load4(p + k * 32);
      v[4 * k + 0] = t.x;
      v[4 * k + 1] = t.y;
      v[4 * k + 2] = t.z;
      v[4 * k + 3] = t.w;
    }
  } else {
#pragma unroll
    for (int k = 0; k < 16; ++k)
      v[k] = row[lane + k * 32];
  }
}

template <bool ALIGNED>
__device__ __forceinline__ void store_row(float *__restrict__ row, int lane,
                                          const float (&v)[16]) {
  if constexpr (ALIGNED) {
    float4 *p = reinterpret_cast<float4 *>(row) + lane;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      store4(p + k * 32,
             make_float4(v[4 * k + 0], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]));
  } else {
#pragma unroll
    for (int k = 0; k < 16; ++k)
      row[lane + k * 32] = v[k];
  }
}

__device__ __forceinline__ void softmax_row(float (&v)[16]) {
  float m0 = max_nan(max_nan(v[0], v[1]), max_nan(v[2], v[3]));
  float m1 = max_nan(max_nan(v[4], v[5]), max_nan(v[6], v[7]));
  float m2 = max_nan(max_nan(v[8], v[9]), max_nan(v[10], v[11]));
  float m3 = max_nan(max_nan(v[12], v[13]), max_nan(v[14], v[15]));
  float m = max_nan(max_nan(m0, m1), max_nan(m2, m3));
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    m = max_nan(m, __shfl_xor_sync(kFull, m, o));

  float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    v[4 * k + 0] = expf(v[4 * k + 0] - m);
    v[4 * k + 1] = expf(v[4 * k + 1] - m);
    v[4 * k + 2] = expf(v[4 * k + 2] - m);
    v[4 * k + 3] = expf(v[4 * k + 3] - m);
    s0 += v[4 * k + 0];
    s1 += v[4 * k + 1];
    s2 += v[4 * k + 2];
    s3 += v[4 * k + 3];
  }
  float s = (s0 + s1) + (s2 + s3);
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    s += __shfl_xor_sync(kFull, s, o);

  // s is in [1, 512] or NaN. Correctly rounded reciprocal, then one exact
  // remainder and correction for each quotient: full f32 division accuracy.
  const float r = 1.0f / s;
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    const float e = v[k];
    const float q = __fmul_rn(e, r);
    const float rem = fmaf(-q, s, e);
    v[k] = fmaf(rem, r, q);
  }
}

template <bool ALIGNED>
__device__ __forceinline__ void run_rows(const float *__restrict__ x,
                                         float *__restrict__ y, int lane) {
  float cur[16];
  load_row<ALIGNED>(x, lane, cur);
#pragma unroll
  for (int it = 0; it < ITERS; ++it) {
    float nxt[16];
    if (it + 1 < ITERS)
      load_row<ALIGNED>(x + (it + 1) * (kWarps * kCols), lane, nxt);
    softmax_row(cur);
    store_row<ALIGNED>(y + it * (kWarps * kCols), lane, cur);
    if (it + 1 < ITERS) {
#pragma unroll
      for (int k = 0; k < 16; ++k)
        cur[k] = nxt[k];
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, (ITERS == 1 ? 12 : 8))
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  // At most 65535 * 512 + 511 < 2^31: 32 bits suffice.
  const int off = (static_cast<int>(blockIdx.x) * (kWarps * ITERS) + warp) * kCols;
  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;
  if (aligned)
    run_rows<true>(x + off, y + off, lane);
  else
    run_rows<false>(x + off, y + off, lane);
}
