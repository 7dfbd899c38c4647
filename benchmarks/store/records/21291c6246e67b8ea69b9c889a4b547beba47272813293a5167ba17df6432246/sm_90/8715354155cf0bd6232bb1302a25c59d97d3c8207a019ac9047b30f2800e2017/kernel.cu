constexpr int COLS = 4096;
constexpr int NW = THREADS / 32;              // warps a row
constexpr int NV = COLS / (THREADS * 4);      // groups of four elements a thread
constexpr bool PREFETCH = (ROWS > 1) && (THREADS >= 128);
constexpr int MINB =
    THREADS == 32  ? 12 :
    THREADS == 128 ? (PREFETCH ? 5 : 8) :
    THREADS == 256 ? (PREFETCH ? 4 : 6) :
                     (PREFETCH ? 3 : 4);

__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

__device__ __forceinline__ void load4(const float *p, float (&v)[4]) {
#if HINT == 0
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
               : "l"(p));
#else
  asm volatile("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
               : "l"(p));
#endif
}

__device__ __forceinline__ void store4(float *p, float a, float b, float c, float d) {
#if HINT == 0
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(p), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
#else
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(p), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
#endif
}

template <bool VEC>
__device__ __forceinline__ void load_row(const float *p, float (&v)[NV][4]) {
#pragma unroll
  for (int i = 0; i < NV; ++i) {
    if constexpr (VEC) {
      load4(p + i * (THREADS * 4), v[i]);
    } else {
#pragma unroll
      for (int c = 0; c < 4; ++c)
        v[i][c] = p[i * (THREADS * 4) + c];
    }
  }
}

// e / s with r = 1 / s correctly rounded: one residual correction.
__device__ __forceinline__ float div_by(float e, float s, float r) {
  float q = e * r;
  float rem = fmaf(-q, s, e);
  return fmaf(rem, r, q);
}

template <bool VEC>
__device__ __forceinline__ void run_rows(const float *x, float *y,
                                         float *smax, float *ssum) {
  const int tid = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;

  const size_t base = (size_t)blockIdx.x * (size_t)(ROWS * COLS) + (size_t)(tid * 4);
  const float *xp = x + base;
  float *yp = y + base;

  float v[NV][4];
  load_row<VEC>(xp, v);

#pragma unroll 1
  for (int row = 0; row < ROWS; ++row) {
    float nx[PREFETCH ? NV : 1][4];
    xp += COLS;
    if constexpr (PREFETCH) {
      if (row + 1 < ROWS)
        load_row<VEC>(xp, nx);
    }

    // maximum
    float m0 = v[0][0], m1 = v[0][1], m2 = v[0][2], m3 = v[0][3];
#pragma unroll
    for (int i = 1; i < NV; ++i) {
      m0 = max_nan(m0, v[i][0]);
      m1 = max_nan(m1, v[i][1]);
      m2 = max_nan(m2, v[i][2]);
      m3 = max_nan(m3, v[i][3]);
    }
    float m = max_nan(max_nan(m0, m1), max_nan(m2, m3));
#pragma unroll
    for (int o = 16; o > 0; o >>= 1)
      m = max_nan(m, __shfl_xor_sync(0xffffffffu, m, o));
    if constexpr (NW > 1) {
      if (lane == 0)
        smax[warp] = m;
      __syncthreads();
      const float4 *s4 = reinterpret_cast<const float4 *>(smax);
      float4 t = s4[0];
      m = max_nan(max_nan(t.x, t.y), max_nan(t.z, t.w));
#pragma unroll
      for (int i = 1; i < NW / 4; ++i) {
        t = s4[i];
        m = max_nan(m, max_nan(max_nan(t.x, t.y), max_nan(t.z, t.w)));
      }
    }

    // exponentials and their sum
    float a0 = 0.0f, a1 = 0.0f, a2 = 0.0f, a3 = 0.0f;
#pragma unroll
    for (int i = 0; i < NV; ++i) {
      v[i][0] = expf(v[i][0] - m);
      v[i][1] = expf(v[i][1] - m);
      v[i][2] = expf(v[i][2] - m);
      v[i][3] = expf(v[i][3] - m);
      a0 += v[i][0];
      a1 += v[i][1];
      a2 += v[i][2];
      a3 += v[i][3];
    }
    float s = (a0 + a1) + (a2 + a3);
#pragma unroll
    for (int o = 16; o > 0; o >>= 1)
      s += __shfl_xor_sync(0xffffffffu, s, o);
    if constexpr (NW > 1) {
      if (lane == 0)
        ssum[warp] = s;
      __syncthreads();
      const float4 *s4 = reinterpret_cast<const float4 *>(ssum);
      float4 t = s4[0];
      s = (t.x + t.y) + (t.z + t.w);
#pragma unroll
      for (int i = 1; i < NW / 4; ++i) {
        t = s4[i];
        s += (t.x + t.y) + (t.z + t.w);
      }
    }

    const float r = 1.0f / s;
#pragma unroll
    for (int i = 0; i < NV; ++i) {
      float q0 = div_by(v[i][0], s, r);
      float q1 = div_by(v[i][1], s, r);
      float q2 = div_by(v[i][2], s, r);
      float q3 = div_by(v[i][3], s, r);
      float *p = yp + i * (THREADS * 4);
      if constexpr (VEC) {
        store4(p, q0, q1, q2, q3);
      } else {
        p[0] = q0;
        p[1] = q1;
        p[2] = q2;
        p[3] = q3;
      }
    }
    yp += COLS;

    if (row + 1 < ROWS) {
      if constexpr (PREFETCH) {
#pragma unroll
        for (int i = 0; i < NV; ++i) {
#pragma unroll
          for (int c = 0; c < 4; ++c)
            v[i][c] = nx[i][c];
        }
      } else {
        load_row<VEC>(xp, v);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MINB)
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ __align__(16) float smax[NW < 4 ? 4 : NW];
  __shared__ __align__(16) float ssum[NW < 4 ? 4 : NW];
  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;
  if (aligned)
    run_rows<true>(x, y, smax, ssum);
  else
    run_rows<false>(x, y, smax, ssum);
}
