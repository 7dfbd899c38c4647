namespace {

constexpr int kCols = 512;
constexpr int kRows = 65536;
constexpr int kRowBytes = kCols * 4;

static_assert(kRows % (WARPS * ROWS) == 0, "grid covers the rows exactly");
static_assert(ROWS == 2 || ROWS == 4, "rows a warp");

constexpr int kMinBlocks =
    (MODE == 0 ? (ROWS == 2 ? 32 : 20) : 40) / WARPS;

__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

// Softmax of a row that LANES neighbouring lanes hold in registers.
template <int LANES>
__device__ __forceinline__ void softmax_regs(float (&v)[kCols / LANES]) {
  constexpr int N = kCols / LANES;

  float a0 = v[0], a1 = v[1], a2 = v[2], a3 = v[3];
#pragma unroll
  for (int j = 4; j < N; j += 4) {
    a0 = max_nan(a0, v[j + 0]);
    a1 = max_nan(a1, v[j + 1]);
    a2 = max_nan(a2, v[j + 2]);
    a3 = max_nan(a3, v[j + 3]);
  }
  float m = max_nan(max_nan(a0, a1), max_nan(a2, a3));
#pragma unroll
  for (int d = LANES / 2; d > 0; d >>= 1)
    m = max_nan(m, __shfl_xor_sync(0xffffffffu, m, d));

  float s0 = 0.0f, s1 = 0.0f;
#pragma unroll
  for (int j = 0; j < N; j += 2) {
    v[j] = expf(v[j] - m);
    v[j + 1] = expf(v[j + 1] - m);
    s0 += v[j];
    s1 += v[j + 1];
  }
  float s = s0 + s1;
#pragma unroll
  for (int d = LANES / 2; d > 0; d >>= 1)
    s += __shfl_xor_sync(0xffffffffu, s, d);

  // IEEE reciprocal once a row, then one residual correction an element.
  // s is in [1, 512] or NaN, so nothing overflows here.
  const float inv = 1.0f / s;
  const float ns = -s;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const float e = v[j];
    const float q = e * inv;
    const float rem = fmaf(ns, q, e);
    v[j] = fmaf(rem, inv, q);
  }
}

__device__ __forceinline__ uint32_t smem_addr(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void mbar_init(uint32_t bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void mbar_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void bulk_load(uint32_t dst, const float *src,
                                          uint32_t bytes, uint32_t bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(bar)
      : "memory");
}

__device__ __forceinline__ void bulk_store(float *dst, uint32_t src,
                                           uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
               "r"(src), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void bulk_store_drain() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Every barrier is used once: phase parity 0.
__device__ __forceinline__ void mbar_wait(uint32_t bar) {
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
  } while (done == 0u);
}

__device__ __forceinline__ void load_smem_row(const float4 *p, float (&v)[16]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float4 t = p[j * 32];
    v[4 * j + 0] = t.x;
    v[4 * j + 1] = t.y;
    v[4 * j + 2] = t.z;
    v[4 * j + 3] = t.w;
  }
}

__device__ __forceinline__ void store_row(float4 *p, const float (&v)[16]) {
#pragma unroll
  for (int j = 0; j < 4; ++j)
    p[j * 32] = make_float4(v[4 * j + 0], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
}

// Only for buffers that are not aligned to 16 bytes.
__device__ __forceinline__ void unaligned_rows(const float *__restrict__ x,
                                               float *__restrict__ y,
                                               int row0, int lane) {
#pragma unroll 1
  for (int r = 0; r < ROWS; ++r) {
    const unsigned base = (unsigned)(row0 + r) * (unsigned)kCols + (unsigned)lane;
    float v[16];
#pragma unroll
    for (int j = 0; j < 16; ++j)
      v[j] = x[base + j * 32];
    softmax_regs<32>(v);
#pragma unroll
    for (int j = 0; j < 16; ++j)
      y[base + j * 32] = v[j];
  }
}

// 32 / ROWS lanes a row, ROWS rows side by side in a warp.
__device__ __forceinline__ void direct_rows(const float *__restrict__ x,
                                            float *__restrict__ y,
                                            int row0, int lane) {
  constexpr int LANES = 32 / ROWS;
  constexpr int N = kCols / LANES;
  const int sub = lane / LANES;
  const int sl = lane % LANES;
  const unsigned base = (unsigned)(row0 + sub) * (unsigned)kCols;
  const float4 *px = reinterpret_cast<const float4 *>(x + base) + sl;
  float4 *py = reinterpret_cast<float4 *>(y + base) + sl;
  float v[N];
#pragma unroll
  for (int j = 0; j < N / 4; ++j) {
    const float4 t = __ldg(px + j * LANES);
    v[4 * j + 0] = t.x;
    v[4 * j + 1] = t.y;
    v[4 * j + 2] = t.z;
    v[4 * j + 3] = t.w;
  }
  softmax_regs<LANES>(v);
#pragma unroll
  for (int j = 0; j < N / 4; ++j)
    py[j * LANES] =
        make_float4(v[4 * j + 0], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(WARPS * 32, kMinBlocks)
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  extern __shared__ __align__(128) unsigned char smem[];

  const int lane = (int)(threadIdx.x & 31u);
  const int warp = (int)(threadIdx.x >> 5);
  const int block_row0 = (int)blockIdx.x * (WARPS * ROWS);
  const int row0 = block_row0 + warp * ROWS;

  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;
  if (!aligned) {
    unaligned_rows(x, y, row0, lane);
    return;
  }

  if constexpr (MODE == 0) {
    direct_rows(x, y, row0, lane);
  } else if constexpr (MODE == 1 || MODE == 2) {
    unsigned char *slot = smem + warp * (ROWS * kRowBytes);
    const uint32_t slot_a = smem_addr(slot);
    const uint32_t bar_a =
        smem_addr(smem + WARPS * ROWS * kRowBytes) + (uint32_t)(warp * ROWS * 8);

    if (lane == 0) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        mbar_init(bar_a + r * 8);
      mbar_init_fence();
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        bulk_load(slot_a + r * kRowBytes,
                  x + (unsigned)(row0 + r) * (unsigned)kCols,
                  (uint32_t)kRowBytes, bar_a + r * 8);
    }
    __syncwarp();

#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
      float4 *ps = reinterpret_cast<float4 *>(slot + r * kRowBytes) + lane;
      float *yr = y + (unsigned)(row0 + r) * (unsigned)kCols;
      float v[16];
      mbar_wait(bar_a + r * 8);
      load_smem_row(ps, v);
      softmax_regs<32>(v);
      if constexpr (MODE == 1) {
        store_row(reinterpret_cast<float4 *>(yr) + lane, v);
      } else {
        store_row(ps, v);
        proxy_fence();
        __syncwarp();
        if (lane == 0)
          bulk_store(yr, slot_a + r * kRowBytes, (uint32_t)kRowBytes);
      }
    }
    if constexpr (MODE == 2) {
      if (lane == 0)
        bulk_store_drain();
    }
  } else {
    constexpr uint32_t kTile = (uint32_t)(WARPS * ROWS * kRowBytes);
    const uint32_t tile_a = smem_addr(smem);
    const uint32_t bar_a = tile_a + kTile;
    const unsigned base = (unsigned)block_row0 * (unsigned)kCols;

    if (threadIdx.x == 0) {
      mbar_init(bar_a);
      mbar_init_fence();
      bulk_load(tile_a, x + base, kTile, bar_a);
    }
    __syncthreads();
    mbar_wait(bar_a);

#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
      float4 *ps =
          reinterpret_cast<float4 *>(smem + (warp * ROWS + r) * kRowBytes) + lane;
      float v[16];
      load_smem_row(ps, v);
      softmax_regs<32>(v);
      store_row(ps, v);
    }
    proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
      bulk_store(y + base, tile_a, kTile);
      bulk_store_drain();
    }
  }
}
