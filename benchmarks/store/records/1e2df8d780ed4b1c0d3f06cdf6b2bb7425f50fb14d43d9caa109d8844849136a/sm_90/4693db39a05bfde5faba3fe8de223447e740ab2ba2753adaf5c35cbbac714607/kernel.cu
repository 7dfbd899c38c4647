// HINT 0: plain loads and stores
// HINT 1: streaming loads and streaming stores
// HINT 2: x evict-first in L2, plain stores
// HINT 3: x evict-first in L2, y evict-last in L2

__device__ __forceinline__ float4 load_x(const float4 *p, unsigned long long pol) {
#if HINT == 0
  return __ldg(p);
#elif HINT == 1
  return __ldcs(p);
#else
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(__cvta_generic_to_global(p)), "l"(pol));
  return v;
#endif
}

__device__ __forceinline__ void store_y(float4 *p, float4 v, unsigned long long pol) {
#if HINT == 1
  __stcs(p, v);
#elif HINT == 3
  asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;"
               :
               : "l"(__cvta_generic_to_global(p)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w),
                 "l"(pol)
               : "memory");
#else
  *p = v;
#endif
}

__device__ __forceinline__ float warp_sum(float s) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    s += __shfl_xor_sync(0xffffffffu, s, o);
  return s;
}

extern "C" __global__ void __launch_bounds__(WARPS * 32, (ROWS == 1 ? 48 : 32) / WARPS)
layer_norm_opt(
    const float *__restrict__ x,
    const float *__restrict__ gamma,
    const float *__restrict__ beta,
    float *__restrict__ y) {
  constexpr int N = 512;
  constexpr int N4 = N / 4;          // float4 a row
  constexpr int V = N4 / 32;         // float4 a lane and row
  constexpr float INV_N = 1.0f / 512.0f;  // a power of two: exact
  constexpr float EPS = 9.99999974e-6f;

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = (blockIdx.x * WARPS + warp) * ROWS;

  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(gamma) |
        reinterpret_cast<uintptr_t>(beta) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;

  if (aligned) {
    unsigned long long pol_x = 0, pol_y = 0;
#if HINT >= 2
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(pol_x));
#endif
#if HINT == 3
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(pol_y));
#endif

    const float4 *__restrict__ xp = reinterpret_cast<const float4 *>(x) + (row0 * N4 + lane);
    float4 *__restrict__ yp = reinterpret_cast<float4 *>(y) + (row0 * N4 + lane);
    const float4 *__restrict__ gp = reinterpret_cast<const float4 *>(gamma) + lane;
    const float4 *__restrict__ bp = reinterpret_cast<const float4 *>(beta) + lane;

    float4 v[ROWS][V];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int j = 0; j < V; ++j)
        v[r][j] = load_x(xp + r * N4 + j * 32, pol_x);

    float mean[ROWS], rstd[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      float s = 0.0f;
#pragma unroll
      for (int j = 0; j < V; ++j)
        s += (v[r][j].x + v[r][j].y) + (v[r][j].z + v[r][j].w);
      mean[r] = s;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      mean[r] = warp_sum(mean[r]) * INV_N;

#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const float m = mean[r];
      float s0 = 0.0f, s1 = 0.0f;
#pragma unroll
      for (int j = 0; j < V; ++j) {
        v[r][j].x -= m;
        v[r][j].y -= m;
        v[r][j].z -= m;
        v[r][j].w -= m;
        s0 = fmaf(v[r][j].x, v[r][j].x, s0);
        s1 = fmaf(v[r][j].y, v[r][j].y, s1);
        s0 = fmaf(v[r][j].z, v[r][j].z, s0);
        s1 = fmaf(v[r][j].w, v[r][j].w, s1);
      }
      rstd[r] = s0 + s1;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
      rstd[r] = rsqrtf(warp_sum(rstd[r]) * INV_N + EPS);

#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float4 g = __ldg(gp + j * 32);
      const float4 b = __ldg(bp + j * 32);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        float4 o;
        o.x = fmaf(v[r][j].x * rstd[r], g.x, b.x);
        o.y = fmaf(v[r][j].y * rstd[r], g.y, b.y);
        o.z = fmaf(v[r][j].z * rstd[r], g.z, b.z);
        o.w = fmaf(v[r][j].w * rstd[r], g.w, b.w);
        store_y(yp + r * N4 + j * 32, o, pol_y);
      }
    }
  } else {
    // Only 4-byte alignment: scalar accesses, still coalesced.
#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
      const float *xr = x + (row0 + r) * N;
      float *yr = y + (row0 + r) * N;
      float s = 0.0f;
#pragma unroll 1
      for (int i = lane; i < N; i += 32)
        s += xr[i];
      const float m = warp_sum(s) * INV_N;
      float q = 0.0f;
#pragma unroll 1
      for (int i = lane; i < N; i += 32) {
        const float d = xr[i] - m;
        q = fmaf(d, d, q);
      }
      const float rs = rsqrtf(warp_sum(q) * INV_N + EPS);
#pragma unroll 1
      for (int i = lane; i < N; i += 32)
        yr[i] = fmaf((xr[i] - m) * rs, gamma[i], beta[i]);
    }
  }
}
