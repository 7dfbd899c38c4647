namespace {

constexpr int kCols = 512;
constexpr int kRows = 65536;
constexpr int kWarps = 4;
constexpr int kRowsWarp = 2;
constexpr int kTileRows = kWarps * kRowsWarp;      // 8 rows a block
constexpr int kRowBytes = kCols * 4;               // 2048
constexpr int kTileBytes = kTileRows * kRowBytes;  // 16384
constexpr int kPer = kCols / 32;                   // 16 elements of a row a lane

static_assert(kRows % kTileRows == 0, "grid covers the rows exactly");

__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

// Softmax of R rows that a warp holds, 16 elements of each row a lane.
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

  // One IEEE reciprocal a row, one residual correction an element.
  // s is in [1, 512] or NaN.
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

template <int FLAVOUR>
__device__ __forceinline__ void load4(float *o, const float *p) {
  if constexpr (FLAVOUR == 4) {
    asm volatile("ld.global.nc.L2::256B.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(o[0]), "=f"(o[1]), "=f"(o[2]), "=f"(o[3])
                 : "l"(p));
  } else if constexpr (FLAVOUR == 8) {
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(o[0]), "=f"(o[1]), "=f"(o[2]), "=f"(o[3])
                 : "l"(p));
  } else {
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(o[0]), "=f"(o[1]), "=f"(o[2]), "=f"(o[3])
                 : "l"(p));
  }
}

__device__ __forceinline__ void mbar_init(uint32_t bar) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(1u) : "memory");
}

__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void mbar_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void mbar_wait0(uint32_t bar) {
  uint32_t ok;
  do {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(ok)
        : "r"(bar), "r"(0u)
        : "memory");
  } while (ok == 0u);
}

__device__ __forceinline__ void bulk_load(uint32_t dst, const void *src, uint32_t bytes,
                                          uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          dst),
      "l"(src), "r"(bytes), "r"(bar)
      : "memory");
}

__device__ __forceinline__ void bulk_store(void *dst, uint32_t src, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst),
               "r"(src), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Any alignment: only has to be right.
__device__ __forceinline__ void rows_scalar(const float *__restrict__ x,
                                            float *__restrict__ y,
                                            unsigned row0, int lane) {
#pragma unroll 1
  for (int r = 0; r < kRowsWarp; ++r) {
    const unsigned base = (row0 + (unsigned)r) * (unsigned)kCols + (unsigned)lane;
    float v[1][kPer];
#pragma unroll
    for (int j = 0; j < kPer; ++j)
      v[0][j] = x[base + j * 32];
    softmax_regs<1>(v);
#pragma unroll
    for (int j = 0; j < kPer; ++j)
      y[base + j * 32] = v[0][j];
  }
}

constexpr int kMinBlocks = BPS;

}  // namespace

extern "C" __global__ void __launch_bounds__(kWarps * 32, kMinBlocks)
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  extern __shared__ __align__(128) unsigned char smem[];

  const int lane = (int)(threadIdx.x & 31u);
  const int warp = (int)(threadIdx.x >> 5);
  const unsigned tile0 = blockIdx.x * (unsigned)kTileRows;
  const unsigned row0 = tile0 + (unsigned)(warp * kRowsWarp);

  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;
  if (!aligned) {
    rows_scalar(x, y, row0, lane);
    return;
  }

  if constexpr (PATH == 0) {
    // Registers hold the rows; all loads of a chunk before the first use.
    constexpr int R = (BPS <= 8) ? 2 : 1;
#pragma unroll 1
    for (int c = 0; c < kRowsWarp; c += R) {
      const unsigned base = (row0 + (unsigned)c) * (unsigned)kCols + (unsigned)(lane * 4);
      float v[R][kPer];
#pragma unroll
      for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          load4<BPS>(&v[r][4 * j], x + base + r * kCols + j * 128);
      }
      softmax_regs<R>(v);
#pragma unroll
      for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          *reinterpret_cast<float4 *>(y + base + r * kCols + j * 128) =
              make_float4(v[r][4 * j + 0], v[r][4 * j + 1], v[r][4 * j + 2], v[r][4 * j + 3]);
      }
    }
  } else {
    constexpr int R = (BPS < 8) ? 2 : 1;
    const uint32_t smem_base = (uint32_t)__cvta_generic_to_shared(smem);
    const uint32_t bars = smem_base + (uint32_t)kTileBytes;
    const int wrow = warp * kRowsWarp;  // first row of the warp inside the tile

    if constexpr (PATH == 2) {
      if (threadIdx.x == 0) {
        mbar_init(bars);
        fence_async();
        mbar_expect(bars, (uint32_t)kTileBytes);
        bulk_load(smem_base, x + tile0 * (unsigned)kCols, (uint32_t)kTileBytes, bars);
      }
      __syncthreads();
      mbar_wait0(bars);
    } else {
      if (lane == 0) {
#pragma unroll
        for (int r = 0; r < kRowsWarp; ++r)
          mbar_init(bars + (uint32_t)((wrow + r) * 8));
        fence_async();
#pragma unroll
        for (int r = 0; r < kRowsWarp; ++r) {
          const uint32_t bar = bars + (uint32_t)((wrow + r) * 8);
          mbar_expect(bar, (uint32_t)kRowBytes);
          bulk_load(smem_base + (uint32_t)((wrow + r) * kRowBytes),
                    x + (row0 + (unsigned)r) * (unsigned)kCols, (uint32_t)kRowBytes, bar);
        }
      }
      __syncwarp();
    }

#pragma unroll 1
    for (int c = 0; c < kRowsWarp; c += R) {
      float v[R][kPer];
      float4 *ps = reinterpret_cast<float4 *>(smem + (wrow + c) * kRowBytes) + lane;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if constexpr (PATH != 2)
          mbar_wait0(bars + (uint32_t)((wrow + c + r) * 8));
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float4 t = ps[r * (kCols / 4) + j * 32];
          v[r][4 * j + 0] = t.x;
          v[r][4 * j + 1] = t.y;
          v[r][4 * j + 2] = t.z;
          v[r][4 * j + 3] = t.w;
        }
      }

      softmax_regs<R>(v);

      if constexpr (PATH == 1) {
        float4 *py = reinterpret_cast<float4 *>(
                         y + (row0 + (unsigned)c) * (unsigned)kCols) + lane;
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
          for (int j = 0; j < 4; ++j)
            py[r * (kCols / 4) + j * 32] =
                make_float4(v[r][4 * j + 0], v[r][4 * j + 1],
                            v[r][4 * j + 2], v[r][4 * j + 3]);
        }
      } else {
        // Each lane overwrites exactly what it read itself.
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
          for (int j = 0; j < 4; ++j)
            ps[r * (kCols / 4) + j * 32] =
                make_float4(v[r][4 * j + 0], v[r][4 * j + 1],
                            v[r][4 * j + 2], v[r][4 * j + 3]);
        }
        fence_async();
        if constexpr (PATH == 3) {
          __syncwarp();
          if (lane == 0)
            bulk_store(y + (row0 + (unsigned)c) * (unsigned)kCols,
                       smem_base + (uint32_t)((wrow + c) * kRowBytes),
                       (uint32_t)(R * kRowBytes));
        }
      }
    }

    if constexpr (PATH == 2) {
      __syncthreads();
      if (threadIdx.x == 0) {
        bulk_store(y + tile0 * (unsigned)kCols, smem_base, (uint32_t)kTileBytes);
        bulk_wait_read();
      }
    } else if constexpr (PATH == 3) {
      if (lane == 0)
        bulk_wait_read();
    }
  }
}
