static constexpr int LN_ROWS  = 65536;
static constexpr int LN_COLS  = 4096;
static constexpr int LN_VCOLS = LN_COLS / 4;          // float4 a row
static constexpr int LN_NV    = LN_VCOLS / THREADS;   // float4 a thread and row
static constexpr int LN_WARPS = THREADS / 32;
static constexpr int LN_BPS   = 4 - THREADS / 256;    // 256 -> 3, 512 -> 2 blocks an SM
static constexpr int LN_CHUNK = 4;                    // rows a block when CHUNKED

__device__ __forceinline__ unsigned ln_smem_addr(const void *p) {
  unsigned a;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }"
      : "=r"(a) : "l"(p));
  return a;
}

__device__ __forceinline__ void ln_cp16(unsigned dst, const float4 *src,
                                        unsigned long long pol) {
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;"
               :: "r"(dst), "l"(__cvta_generic_to_global(src)), "l"(pol)
               : "memory");
}

__device__ __forceinline__ void ln_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void ln_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

// Sum over the block; one barrier. The caller alternates between two arrays.
__device__ __forceinline__ float ln_block_sum(float s, float *red, int warp,
                                              int lane) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    s += __shfl_xor_sync(0xffffffffu, s, o);
  if (lane == 0) red[warp] = s;
  __syncthreads();
  const float4 *r4 = reinterpret_cast<const float4 *>(red);
  float t = 0.0f;
#pragma unroll
  for (int i = 0; i < LN_WARPS / 4; ++i) {
    float4 q = r4[i];
    t += (q.x + q.y) + (q.z + q.w);
  }
  return t;
}

extern "C" __global__ void __launch_bounds__(THREADS, LN_BPS)
layer_norm_opt(const float *x, const float *gamma, const float *beta,
               float *y) {
  extern __shared__ __align__(16) unsigned char ln_dyn[];
  __shared__ __align__(16) float red[2][LN_WARPS];

  const int tid  = threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;

#if CHUNKED
  const int first = blockIdx.x * LN_CHUNK;
  const int last  = first + LN_CHUNK;
  constexpr int step = 1;
#else
  const int first = blockIdx.x;
  constexpr int last = LN_ROWS;
  constexpr int step = 132 * LN_BPS;
#endif

  constexpr float inv_n = 1.0f / 4096.0f;             // a power of two: exact
  constexpr float eps   = 9.99999974E-6f;

  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(gamma) |
        reinterpret_cast<uintptr_t>(beta) | reinterpret_cast<uintptr_t>(y)) %
       16) == 0;

  if (aligned) {
    float4 *ring = reinterpret_cast<float4 *>(ln_dyn) + tid;
    const unsigned ring_a = ln_smem_addr(ring);
    const float4 *x4 = reinterpret_cast<const float4 *>(x) + tid;
    float4 *y4 = reinterpret_cast<float4 *>(y) + tid;

    unsigned long long pol;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;"
                 : "=l"(pol));

    // Fill the ring.
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
      const int r = first + s * step;
      if (r < last) {
        const float4 *src = x4 + (size_t)r * LN_VCOLS;
        const unsigned dst = ring_a + s * (LN_COLS * 4);
#pragma unroll
        for (int k = 0; k < LN_NV; ++k)
          ln_cp16(dst + k * (THREADS * 16), src + k * THREADS, pol);
      }
      ln_commit();
    }

    float4 g[LN_NV], b[LN_NV];
    {
      const float4 *g4 = reinterpret_cast<const float4 *>(gamma) + tid;
      const float4 *b4 = reinterpret_cast<const float4 *>(beta) + tid;
#pragma unroll
      for (int k = 0; k < LN_NV; ++k) {
        g[k] = __ldg(g4 + k * THREADS);
        b[k] = __ldg(b4 + k * THREADS);
      }
    }

    int stage = 0;
#pragma unroll 1
    for (int row = first; row < last; row += step) {
      ln_wait<STAGES - 1>();

      // Each thread reads only what it copied itself.
      float4 v[LN_NV];
      const float4 *slot = ring + stage * LN_VCOLS;
#pragma unroll
      for (int k = 0; k < LN_NV; ++k) v[k] = slot[k * THREADS];

      float s = 0.0f;
#pragma unroll
      for (int k = 0; k < LN_NV; ++k)
        s += (v[k].x + v[k].y) + (v[k].z + v[k].w);
      const float mean = ln_block_sum(s, red[0], warp, lane) * inv_n;

      // The slot is in registers now: refill it.
      {
        const int nr = row + STAGES * step;
        if (nr < last) {
          const float4 *src = x4 + (size_t)nr * LN_VCOLS;
          const unsigned dst = ring_a + stage * (LN_COLS * 4);
#pragma unroll
          for (int k = 0; k < LN_NV; ++k)
            ln_cp16(dst + k * (THREADS * 16), src + k * THREADS, pol);
        }
        ln_commit();
      }

      float q = 0.0f;
#pragma unroll
      for (int k = 0; k < LN_NV; ++k) {
        v[k].x -= mean;
        v[k].y -= mean;
        v[k].z -= mean;
        v[k].w -= mean;
        q += (v[k].x * v[k].x + v[k].y * v[k].y) +
             (v[k].z * v[k].z + v[k].w * v[k].w);
      }
      const float var = ln_block_sum(q, red[1], warp, lane) * inv_n;
      const float rstd = rsqrtf(var + eps);

      float4 *dsty = y4 + (size_t)row * LN_VCOLS;
#pragma unroll
      for (int k = 0; k < LN_NV; ++k) {
        float4 o;
        o.x = fmaf(v[k].x * rstd, g[k].x, b[k].x);
        o.y = fmaf(v[k].y * rstd, g[k].y, b[k].y);
        o.z = fmaf(v[k].z * rstd, g[k].z, b[k].z);
        o.w = fmaf(v[k].w * rstd, g[k].w, b[k].w);
#if STREAM
        __stcs(dsty + k * THREADS, o);
#else
        dsty[k * THREADS] = o;
#endif
      }

      stage = (stage + 1 == STAGES) ? 0 : stage + 1;
    }
    ln_wait<0>();
  } else {
    // Pointers that are aligned to 4 bytes only.
#pragma unroll 1
    for (int row = first; row < last; row += step) {
      const float *xr = x + (size_t)row * LN_COLS;
      float *yr = y + (size_t)row * LN_COLS;

      float s = 0.0f;
#pragma unroll 4
      for (int c = tid; c < LN_COLS; c += THREADS) s += xr[c];
      const float mean = ln_block_sum(s, red[0], warp, lane) * inv_n;

      float q = 0.0f;
#pragma unroll 4
      for (int c = tid; c < LN_COLS; c += THREADS) {
        const float d = xr[c] - mean;
        q += d * d;
      }
      const float var = ln_block_sum(q, red[1], warp, lane) * inv_n;
      const float rstd = rsqrtf(var + eps);

#pragma unroll 4
      for (int c = tid; c < LN_COLS; c += THREADS)
        yr[c] = fmaf((xr[c] - mean) * rstd, gamma[c], beta[c]);
    }
  }
}
