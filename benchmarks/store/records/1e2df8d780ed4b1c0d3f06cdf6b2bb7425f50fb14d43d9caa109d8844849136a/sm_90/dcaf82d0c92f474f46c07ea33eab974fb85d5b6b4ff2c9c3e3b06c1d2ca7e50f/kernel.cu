// LN_PATH 0: register loads, register stores
// LN_PATH 1: register loads, bulk stores of 4 KiB a warp
// LN_PATH 2: bulk loads of 2 KiB into shared memory, register stores
// LN_PATH 3: bulk loads, normalised in place in shared memory, bulk stores (warp-private)
// LN_PATH 4: as 3, but one 32 KiB tile a block: one bulk load, one bulk store
// LN_READ 0: no hints; 1: x is evict-first;
//         2: as 1, and the tile of the block one wave ahead is bulk-prefetched to L2
constexpr int NROW = 65536;
constexpr int NCOL = 512;
constexpr int NVEC = NCOL / 4;          // float4 a row
constexpr int ROW_BYTES = NCOL * 4;
constexpr float INV_N = 1.0f / 512.0f;  // exact power of two
constexpr float EPS = 9.99999974E-6f;

constexpr int WARPS = (LN_PATH == 4) ? 8 : 4;
constexpr int RPW = 2;                  // rows a warp
constexpr int TILE = WARPS * RPW;       // rows a block
constexpr int BLOCKS = (LN_PATH == 4) ? 6 : ((LN_PATH >= 2) ? 12 : 8);  // a multiprocessor
constexpr int AHEAD_ROWS = 132 * BLOCKS * TILE;

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

// gamma and beta: volatile, so that they are not kept in registers between rows
__device__ __forceinline__ float4 load_param(const float4 *p) {
  float4 v;
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p));
  return v;
}

__device__ __forceinline__ float4 load_x(const float4 *p, unsigned long long pol) {
  float4 v;
#if LN_READ == 0
  asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p));
#else
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p), "l"(pol));
#endif
  return v;
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

// v becomes v - mean, rs the reciprocal standard deviation of each row
template <int R>
__device__ __forceinline__ void stats(float4 (&v)[R][4], float (&rs)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
    rs[r] = (sum4(v[r][0]) + sum4(v[r][1])) + (sum4(v[r][2]) + sum4(v[r][3]));
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
#pragma unroll
    for (int r = 0; r < R; ++r)
      rs[r] += __shfl_xor_sync(0xffffffffu, rs[r], o);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const float mean = rs[r] * INV_N;
#pragma unroll
    for (int i = 0; i < 4; ++i) v[r][i] = sub4(v[r][i], mean);
    rs[r] = (sq4(v[r][0]) + sq4(v[r][1])) + (sq4(v[r][2]) + sq4(v[r][3]));
  }
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
#pragma unroll
    for (int r = 0; r < R; ++r)
      rs[r] += __shfl_xor_sync(0xffffffffu, rs[r], o);
#pragma unroll
  for (int r = 0; r < R; ++r) rs[r] = rsqrtf(rs[r] * INV_N + EPS);
}

__device__ __forceinline__ uint32_t smem_addr(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void bar_init(uint32_t bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void bar_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void bar_wait0(uint32_t bar) {
  uint32_t done;
  do {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(done)
        : "r"(bar), "r"(0u)
        : "memory");
  } while (!done);
}

__device__ __forceinline__ void bulk_load(uint32_t dst, const float *src, uint32_t bytes,
                                          uint32_t bar, unsigned long long pol) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
#if LN_READ == 0
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(bar)
      : "memory");
#else
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(bar), "l"(pol)
      : "memory");
#endif
}

__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void bulk_store(float *dst, uint32_t src, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
               "r"(src), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// shared memory has to live until the bulk stores have read it
__device__ __forceinline__ void bulk_store_drain() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// called by one thread; row and the rows counted by bytes lie all inside or all outside
__device__ __forceinline__ void prefetch_rows(const float *x, int row, uint32_t bytes) {
#if LN_READ == 2
  if (row < NROW)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(x + row * NCOL), "r"(bytes)
                 : "memory");
#endif
}

// Any alignment; one warp, one row. Only has to be right.
__device__ __forceinline__ void row_scalar(const float *x, const float *gamma,
                                           const float *beta, float *y,
                                           int row, int lane) {
  const float *px = x + row * NCOL + lane;
  float *py = y + row * NCOL + lane;
  float s = 0.0f;
#pragma unroll 4
  for (int i = 0; i < 16; ++i) s += px[i * 32];
  const float mean = warp_sum(s) * INV_N;
  float q = 0.0f;
#pragma unroll 4
  for (int i = 0; i < 16; ++i) {
    const float d = px[i * 32] - mean;
    q = fmaf(d, d, q);
  }
  const float rs = rsqrtf(warp_sum(q) * INV_N + EPS);
#pragma unroll 4
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

extern "C" __global__ void
__launch_bounds__(WARPS * 32, BLOCKS)
layer_norm_opt(const float *x, const float *gamma, const float *beta, float *y) {
#if LN_PATH != 0
  extern __shared__ __align__(128) unsigned char smem[];
#endif
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const int row0 = blockIdx.x * TILE + warp * RPW;

  if (!all_aligned(x, gamma, beta, y)) {
#pragma unroll 1
    for (int r = 0; r < RPW; ++r)
      row_scalar(x, gamma, beta, y, row0 + r, lane);
    return;
  }

#if LN_READ == 0
  const unsigned long long pol = 0;
#else
  const unsigned long long pol = policy_evict_first();
#endif
  const float4 *pg = reinterpret_cast<const float4 *>(gamma) + lane;
  const float4 *pb = reinterpret_cast<const float4 *>(beta) + lane;

#if LN_PATH <= 1
  // ---- rows in registers ------------------------------------------------
  if (blockIdx.x < 132 && warp == 0) {
    const float *p = (lane < 16) ? gamma + lane * 32 : beta + (lane - 16) * 32;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
  }
  const float4 *px = reinterpret_cast<const float4 *>(x) + row0 * NVEC + lane;
  float4 v[RPW][4];
#pragma unroll
  for (int r = 0; r < RPW; ++r)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      v[r][i] = load_x(px + r * NVEC + i * 32, pol);

  float rs[RPW];
  stats<RPW>(v, rs);
  if (lane == 0) prefetch_rows(x, row0 + AHEAD_ROWS, RPW * ROW_BYTES);

#if LN_PATH == 0
  float4 *out = reinterpret_cast<float4 *>(y) + row0 * NVEC + lane;
#else
  unsigned char *area = smem + warp * (RPW * ROW_BYTES);
  float4 *out = reinterpret_cast<float4 *>(area) + lane;
#endif
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 g = load_param(pg + i * 32);
    const float4 b = load_param(pb + i * 32);
#pragma unroll
    for (int r = 0; r < RPW; ++r)
      out[r * NVEC + i * 32] = finish4(v[r][i], rs[r], g, b);
  }
#if LN_PATH == 1
  fence_async();
  __syncwarp();
  if (lane == 0) {
    bulk_store(y + row0 * NCOL, smem_addr(area), RPW * ROW_BYTES);
    bulk_store_drain();
  }
#endif

#elif LN_PATH <= 3
  // ---- warp-private rows in shared memory, one barrier a row -------------
  unsigned char *area = smem + warp * (RPW * ROW_BYTES);
  const uint32_t area_s = smem_addr(area);
  const uint32_t bar_s = smem_addr(smem + TILE * ROW_BYTES + warp * (RPW * 8));
  if (lane == 0) {
#pragma unroll
    for (int r = 0; r < RPW; ++r) bar_init(bar_s + r * 8);
    bar_init_fence();
#pragma unroll
    for (int r = 0; r < RPW; ++r)
      bulk_load(area_s + r * ROW_BYTES, x + (row0 + r) * NCOL, ROW_BYTES, bar_s + r * 8, pol);
  }
  if (blockIdx.x < 132 && warp == 0) {
    const float *p = (lane < 16) ? gamma + lane * 32 : beta + (lane - 16) * 32;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
  }
  __syncwarp();

#pragma unroll 1
  for (int r = 0; r < RPW; ++r) {
    bar_wait0(bar_s + r * 8);
    float4 *ps = reinterpret_cast<float4 *>(area + r * ROW_BYTES) + lane;
    float4 v[1][4];
    float rs[1];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[0][i] = ps[i * 32];
    if (lane == 0) prefetch_rows(x, row0 + r + AHEAD_ROWS, ROW_BYTES);
    stats<1>(v, rs);
#if LN_PATH == 2
    float4 *out = reinterpret_cast<float4 *>(y) + (row0 + r) * NVEC + lane;
#else
    float4 *out = ps;
#endif
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 g = load_param(pg + i * 32);
      const float4 b = load_param(pb + i * 32);
      out[i * 32] = finish4(v[0][i], rs[0], g, b);
    }
#if LN_PATH == 3
    fence_async();
    __syncwarp();
    if (lane == 0)
      bulk_store(y + (row0 + r) * NCOL, area_s + r * ROW_BYTES, ROW_BYTES);
#endif
  }
#if LN_PATH == 3
  if (lane == 0) bulk_store_drain();
#endif

#else
  // ---- one tile a block: one bulk load, in place, one bulk store ---------
  const uint32_t tile_s = smem_addr(smem);
  const uint32_t bar_s = smem_addr(smem + TILE * ROW_BYTES);
  const int tile_row = blockIdx.x * TILE;
  if (threadIdx.x == 0) {
    bar_init(bar_s);
    bar_init_fence();
    bulk_load(tile_s, x + tile_row * NCOL, TILE * ROW_BYTES, bar_s, pol);
  }
  if (blockIdx.x < 132 && warp == 1) {
    const float *p = (lane < 16) ? gamma + lane * 32 : beta + (lane - 16) * 32;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
  }
  __syncthreads();
  bar_wait0(bar_s);
  if (threadIdx.x == 0) prefetch_rows(x, tile_row + AHEAD_ROWS, TILE * ROW_BYTES);

#pragma unroll 1
  for (int r = 0; r < RPW; ++r) {
    float4 *ps = reinterpret_cast<float4 *>(smem + (warp * RPW + r) * ROW_BYTES) + lane;
    float4 v[1][4];
    float rs[1];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[0][i] = ps[i * 32];
    stats<1>(v, rs);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 g = load_param(pg + i * 32);
      const float4 b = load_param(pb + i * 32);
      ps[i * 32] = finish4(v[0][i], rs[0], g, b);
    }
  }
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(y + tile_row * NCOL, tile_s, TILE * ROW_BYTES);
    bulk_store_drain();
  }
#endif
}
