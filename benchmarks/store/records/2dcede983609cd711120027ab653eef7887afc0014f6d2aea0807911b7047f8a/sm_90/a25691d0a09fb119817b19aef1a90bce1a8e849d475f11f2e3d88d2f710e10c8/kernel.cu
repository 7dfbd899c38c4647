namespace {

constexpr int kCols = 512;
constexpr int kRows = 65536;
constexpr int kPer = kCols / 32;    // 16 elements of a row in each lane
constexpr int kVec = kPer / 4;      // 4 float4 of a row in each lane
constexpr int kRowVec = kCols / 4;  // 128 float4 a row
constexpr unsigned kRowBytes = kCols * 4u;
constexpr int kWarps = 4;
constexpr int kMinBlocks = (ROWS == 1) ? 12 : ((MODE == 3) ? 10 : 8);

// Distance of the L2 prefetch in rows: a little more than one wave of blocks.
constexpr int kDist = ROWS * ((kMinBlocks * 132 * kWarps * 9) / 8);

static_assert(kRows % (kWarps * ROWS) == 0, "grid covers the rows exactly");
static_assert(kDist % ROWS == 0, "prefetches stay inside x");

__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

__device__ __forceinline__ float4 load4(const float4 *p) {
  if constexpr (MODE == 1) {
    float4 t;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(t.x), "=f"(t.y), "=f"(t.z), "=f"(t.w)
                 : "l"(p));
    return t;
  } else {
    return __ldg(p);
  }
}

__device__ __forceinline__ uint32_t smem_addr(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void mbar_init(uint32_t bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void mbar_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void mbar_wait0(uint32_t bar) {
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(done)
        : "r"(bar)
        : "memory");
  }
}

__device__ __forceinline__ void bulk_load(uint32_t dst, const void *src, uint32_t bytes,
                                          uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(bar)
      : "memory");
}

__device__ __forceinline__ void bulk_store(void *dst, uint32_t src, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
               "r"(src), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void bulk_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Asks L2 for the rows that a later block reads; only rows inside x.
__device__ __forceinline__ void prefetch_ahead(const float *x, int row0) {
  if constexpr (AHEAD != 0) {
    const int row = row0 + kDist;
    if (row < kRows) {
      const float *p = x + (unsigned)row * (unsigned)kCols;
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p),
                   "r"((uint32_t)(ROWS * kRowBytes))
                   : "memory");
    }
  }
}

// Softmax of R rows that lie in the registers of one warp.
template <int R>
__device__ __forceinline__ void softmax_regs(float (&v)[R][kPer]) {
  float m[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float a[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      a[k] = max_nan(max_nan(v[r][4 * k + 0], v[r][4 * k + 1]),
                     max_nan(v[r][4 * k + 2], v[r][4 * k + 3]));
    m[r] = max_nan(max_nan(a[0], a[1]), max_nan(a[2], a[3]));
  }
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      m[r] = max_nan(m[r], __shfl_xor_sync(0xffffffffu, m[r], d));
  }

  float s[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    float p0 = 0.0f, p1 = 0.0f;
#pragma unroll
    for (int j = 0; j < kPer; j += 2) {
      v[r][j] = expf(v[r][j] - m[r]);
      v[r][j + 1] = expf(v[r][j + 1] - m[r]);
      p0 += v[r][j];
      p1 += v[r][j + 1];
    }
    s[r] = p0 + p1;
  }
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      s[r] += __shfl_xor_sync(0xffffffffu, s[r], d);
  }

  // Quotients: one IEEE reciprocal a row, then one residual correction an
  // element. s is in [1, 512] or NaN, so nothing overflows here.
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const float inv = 1.0f / s[r];
    const float ns = -s[r];
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const float e = v[r][j];
      const float q = e * inv;
      const float rem = fmaf(ns, q, e);
      v[r][j] = fmaf(rem, inv, q);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32, kMinBlocks)
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  __shared__ __align__(128) float4 tile[(MODE >= 2) ? kWarps * ROWS * kRowVec : 1];
  __shared__ __align__(8) unsigned long long bars[(MODE == 3) ? kWarps * ROWS : 1];

  const int lane = (int)(threadIdx.x & 31u);
  const int warp = (int)(threadIdx.x >> 5);
  const int row0 = ((int)blockIdx.x * kWarps + warp) * ROWS;
  const unsigned base = (unsigned)row0 * (unsigned)kCols;

  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;

  if (!aligned) {
    // Only has to be right: one row at a time, 4-byte accesses.
#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
      const float *px = x + base + r * kCols + lane;
      float *py = y + base + r * kCols + lane;
      float v[1][kPer];
#pragma unroll
      for (int j = 0; j < kPer; ++j) v[0][j] = px[j * 32];
      softmax_regs<1>(v);
#pragma unroll
      for (int j = 0; j < kPer; ++j) py[j * 32] = v[0][j];
    }
    return;
  }

  if constexpr (MODE == 3) {
    // Each warp copies its own rows in, one barrier a row, and copies them out.
    float4 *mine = tile + (warp * ROWS) * kRowVec;
    const uint32_t mine_s = smem_addr(mine);
    const uint32_t bar_s = smem_addr(bars + warp * ROWS);
    if (lane == 0) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r) mbar_init(bar_s + 8u * r);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      fence_async_shared();
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        mbar_expect(bar_s + 8u * r, kRowBytes);
        bulk_load(mine_s + kRowBytes * r, x + base + r * kCols, kRowBytes, bar_s + 8u * r);
      }
      prefetch_ahead(x, row0);
    }
    __syncwarp();

#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      mbar_wait0(bar_s + 8u * r);
      float4 *row = mine + r * kRowVec + lane;
      float v[1][kPer];
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        const float4 t = row[j * 32];
        v[0][4 * j + 0] = t.x;
        v[0][4 * j + 1] = t.y;
        v[0][4 * j + 2] = t.z;
        v[0][4 * j + 3] = t.w;
      }
      softmax_regs<1>(v);
#pragma unroll
      for (int j = 0; j < kVec; ++j)
        row[j * 32] = make_float4(v[0][4 * j + 0], v[0][4 * j + 1],
                                  v[0][4 * j + 2], v[0][4 * j + 3]);
      fence_async_shared();
      __syncwarp();
      if (lane == 0)
        bulk_store(y + base + r * kCols, mine_s + kRowBytes * r, kRowBytes);
    }
    if (lane == 0) bulk_store_wait_read();
  } else {
    float v[ROWS][kPer];
    const float4 *px = reinterpret_cast<const float4 *>(x + base) + lane;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        const float4 t = load4(px + r * kRowVec + j * 32);
        v[r][4 * j + 0] = t.x;
        v[r][4 * j + 1] = t.y;
        v[r][4 * j + 2] = t.z;
        v[r][4 * j + 3] = t.w;
      }
    }
    if constexpr (AHEAD != 0) {
      if (lane == 0) prefetch_ahead(x, row0);
      __syncwarp();
    }

    softmax_regs<ROWS>(v);

    if constexpr (MODE == 2) {
      float4 *mine = tile + (warp * ROWS) * kRowVec;
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int j = 0; j < kVec; ++j)
          mine[r * kRowVec + j * 32 + lane] =
              make_float4(v[r][4 * j + 0], v[r][4 * j + 1],
                          v[r][4 * j + 2], v[r][4 * j + 3]);
      }
      fence_async_shared();
      __syncwarp();
      if (lane == 0) {
        bulk_store(y + base, smem_addr(mine), ROWS * kRowBytes);
        bulk_store_wait_read();
      }
    } else {
      float4 *py = reinterpret_cast<float4 *>(y + base) + lane;
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int j = 0; j < kVec; ++j)
          py[r * kRowVec + j * 32] =
              make_float4(v[r][4 * j + 0], v[r][4 * j + 1],
                          v[r][4 * j + 2], v[r][4 * j + 3]);
      }
    }
  }
}
