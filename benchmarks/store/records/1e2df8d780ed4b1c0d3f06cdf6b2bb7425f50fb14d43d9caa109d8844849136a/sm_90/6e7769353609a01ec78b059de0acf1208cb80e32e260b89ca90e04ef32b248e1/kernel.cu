// LN_MODE 0: LN_ROWS rows a warp in registers, 16-byte loads and stores
// LN_MODE 1: LN_ROWS rows a warp by bulk copy into shared memory, normalised
//            in place, written by bulk store; short blocks, not persistent
// LN_HINT  : 1 reads x with the L2 policy evict_first
constexpr int NROW = 65536;
constexpr int NCOL = 512;
constexpr int NVEC = NCOL / 4;          // float4 a row
constexpr int ROW_BYTES = NCOL * 4;
constexpr float INV_N = 1.0f / 512.0f;  // exact power of two
constexpr float EPS = 9.99999974E-6f;
constexpr int WARPS = LN_WARPS;
constexpr int RPW = LN_ROWS;
static_assert(NROW % (WARPS * RPW) == 0, "whole blocks");

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

__device__ __forceinline__ unsigned long long policy_evict_first() {
  unsigned long long p;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
  return p;
}

__device__ __forceinline__ float sum4(float4 v) { return (v.x + v.y) + (v.z + v.w); }

__device__ __forceinline__ float4 sub4(float4 v, float m) {
  return make_float4(v.x - m, v.y - m, v.z - m, v.w - m);
}

__device__ __forceinline__ float sq4(float4 v) {
  return fmaf(v.x, v.x, v.y * v.y) + fmaf(v.z, v.z, v.w * v.w);
}

__device__ __forceinline__ float4 finish4(float4 d, float rs, float4 g, float4 b) {
  return make_float4(fmaf(d.x * rs, g.x, b.x), fmaf(d.y * rs, g.y, b.y),
                     fmaf(d.z * rs, g.z, b.z), fmaf(d.w * rs, g.w, b.w));
}

// Any alignment; one warp, one row. Only has to be right.
__device__ __forceinline__ void row_scalar(const float *x, const float *gamma,
                                           const float *beta, float *y,
                                           int row, int lane) {
  const float *px = x + row * NCOL + lane;
  float *py = y + row * NCOL + lane;
  float s = 0.0f;
#pragma unroll 1
  for (int i = 0; i < 16; ++i) s += px[i * 32];
  const float mean = warp_sum(s) * INV_N;
  float q = 0.0f;
#pragma unroll 1
  for (int i = 0; i < 16; ++i) {
    const float d = px[i * 32] - mean;
    q = fmaf(d, d, q);
  }
  const float rs = rsqrtf(warp_sum(q) * INV_N + EPS);
#pragma unroll 1
  for (int i = 0; i < 16; ++i) {
    const float d = px[i * 32] - mean;
    py[i * 32] = fmaf(d * rs, gamma[i * 32 + lane], beta[i * 32 + lane]);
  }
}

__device__ __forceinline__ bool all_aligned(const float *x, const float *gamma,
                                            const float *beta, const float *y) {
  return ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(gamma) |
           reinterpret_cast<uintptr_t>(beta) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;
}

#if LN_MODE == 0

__device__ __forceinline__ float4 load_x(const float4 *p, unsigned long long pol) {
  float4 v;
#if LN_HINT == 0
  (void)pol;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p));
#else
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p), "l"(pol));
#endif
  return v;
}

extern "C" __global__ void
__launch_bounds__(WARPS * 32, (LN_ROWS == 1 ? 48 : 32) / LN_WARPS)
layer_norm_opt(const float *x, const float *gamma, const float *beta, float *y) {
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = (blockIdx.x * WARPS + warp) * RPW;

  if (all_aligned(x, gamma, beta, y)) {
#if LN_HINT == 0
    const unsigned long long pol = 0ull;
#else
    const unsigned long long pol = policy_evict_first();
#endif
    if (blockIdx.x < 132 && warp == 0) {
      // bring gamma and beta (32 lines together) to L2 while x is on its way
      const float *p = (lane < 16) ? gamma + lane * 32 : beta + (lane - 16) * 32;
      asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
    }
    const float4 *px = reinterpret_cast<const float4 *>(x) + row0 * NVEC + lane;
    float4 *py = reinterpret_cast<float4 *>(y) + row0 * NVEC + lane;

    float4 v[RPW][4];
#pragma unroll
    for (int r = 0; r < RPW; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        v[r][i] = load_x(px + r * NVEC + i * 32, pol);

    float t[RPW];
#pragma unroll
    for (int r = 0; r < RPW; ++r)
      t[r] = (sum4(v[r][0]) + sum4(v[r][1])) + (sum4(v[r][2]) + sum4(v[r][3]));
#pragma unroll
    for (int o = 16; o > 0; o >>= 1)
#pragma unroll
      for (int r = 0; r < RPW; ++r)
        t[r] += __shfl_xor_sync(0xffffffffu, t[r], o);

#pragma unroll
    for (int r = 0; r < RPW; ++r) {
      const float mean = t[r] * INV_N;
#pragma unroll
      for (int i = 0; i < 4; ++i) v[r][i] = sub4(v[r][i], mean);
      t[r] = (sq4(v[r][0]) + sq4(v[r][1])) + (sq4(v[r][2]) + sq4(v[r][3]));
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1)
#pragma unroll
      for (int r = 0; r < RPW; ++r)
        t[r] += __shfl_xor_sync(0xffffffffu, t[r], o);
#pragma unroll
    for (int r = 0; r < RPW; ++r) t[r] = rsqrtf(t[r] * INV_N + EPS);

    const float4 *pg = reinterpret_cast<const float4 *>(gamma) + lane;
    const float4 *pb = reinterpret_cast<const float4 *>(beta) + lane;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 g = __ldg(pg + i * 32);
      const float4 b = __ldg(pb + i * 32);
#pragma unroll
      for (int r = 0; r < RPW; ++r)
        py[r * NVEC + i * 32] = finish4(v[r][i], t[r], g, b);
    }
  } else {
#pragma unroll 1
    for (int r = 0; r < RPW; ++r)
      row_scalar(x, gamma, beta, y, row0 + r, lane);
  }
}

#else

__device__ __forceinline__ void row_fetch(uint32_t dst, const float *src, uint32_t bar,
                                          unsigned long long pol) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
               "r"(ROW_BYTES)
               : "memory");
#if LN_HINT == 0
  (void)pol;
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(dst),
      "l"(src), "r"(ROW_BYTES), "r"(bar)
      : "memory");
#else
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(dst),
      "l"(src), "r"(ROW_BYTES), "r"(bar), "l"(pol)
      : "memory");
#endif
}

__device__ __forceinline__ void row_wait(uint32_t bar) {
  uint32_t done;
  do {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(done)
        : "r"(bar), "r"(0)
        : "memory");
  } while (!done);
}

extern "C" __global__ void
__launch_bounds__(WARPS * 32, 32 / LN_WARPS)
layer_norm_opt(const float *x, const float *gamma, const float *beta, float *y) {
  extern __shared__ __align__(128) unsigned char smem[];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = (blockIdx.x * WARPS + warp) * RPW;

  if (all_aligned(x, gamma, beta, y)) {
    unsigned char *tile = smem + warp * (RPW * ROW_BYTES);
    const uint32_t tile_s = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
    const uint32_t bar_s = static_cast<uint32_t>(
        __cvta_generic_to_shared(smem + WARPS * RPW * ROW_BYTES + warp * (RPW * 8)));

    if (lane == 0) {
#if LN_HINT == 0
      const unsigned long long pol = 0ull;
#else
      const unsigned long long pol = policy_evict_first();
#endif
#pragma unroll
      for (int r = 0; r < RPW; ++r)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar_s + r * 8) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#pragma unroll
      for (int r = 0; r < RPW; ++r)
        row_fetch(tile_s + r * ROW_BYTES, x + (row0 + r) * NCOL, bar_s + r * 8, pol);
    }
    __syncwarp();

    // on their way while the rows come
    float4 g[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      g[i] = __ldg(reinterpret_cast<const float4 *>(gamma) + i * 32 + lane);
      b[i] = __ldg(reinterpret_cast<const float4 *>(beta) + i * 32 + lane);
    }

#pragma unroll
    for (int r = 0; r < RPW; ++r) {
      row_wait(bar_s + r * 8);
      float4 *ps = reinterpret_cast<float4 *>(tile + r * ROW_BYTES) + lane;
      float4 v[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = ps[i * 32];

      const float mean =
          warp_sum((sum4(v[0]) + sum4(v[1])) + (sum4(v[2]) + sum4(v[3]))) * INV_N;
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = sub4(v[i], mean);
      const float var =
          warp_sum((sq4(v[0]) + sq4(v[1])) + (sq4(v[2]) + sq4(v[3]))) * INV_N;
      const float rs = rsqrtf(var + EPS);

      // every lane overwrites only what it has read itself
#pragma unroll
      for (int i = 0; i < 4; ++i) ps[i * 32] = finish4(v[i], rs, g[i], b[i]);
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (lane == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                         y + (row0 + r) * NCOL),
                     "r"(tile_s + r * ROW_BYTES), "r"(ROW_BYTES)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
    }
    // shared memory has to live until the stores have read it
    if (lane == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    __syncwarp();
  } else {
#pragma unroll 1
    for (int r = 0; r < RPW; ++r)
      row_scalar(x, gamma, beta, y, row0 + r, lane);
  }
}

#endif
