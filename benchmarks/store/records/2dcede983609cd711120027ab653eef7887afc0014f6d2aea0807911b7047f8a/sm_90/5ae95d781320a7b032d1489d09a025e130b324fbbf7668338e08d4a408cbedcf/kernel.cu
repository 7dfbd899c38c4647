namespace {

constexpr int kCols = 512;
constexpr int kRows = 65536;
constexpr int kWarps = 4;          // warps in a block
constexpr int kPer = kCols / 32;   // 16 elements of a row in each lane
constexpr int kVec = kPer / 4;     // 4 float4 of a row in each lane

static_assert(kRows % (kWarps * ROWS) == 0, "grid covers the rows exactly");

extern __shared__ __align__(128) unsigned char stage_bytes[];

__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

__device__ __forceinline__ float4 load4(const float4 *p) {
  if constexpr (LOADS == 1) {
    float4 t;
    asm volatile(
        "ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(t.x), "=f"(t.y), "=f"(t.z), "=f"(t.w)
        : "l"(p));
    return t;
  } else {
    return __ldg(p);
  }
}

__device__ __forceinline__ void store4(float4 *p, float4 v) {
  if constexpr (STORES == 1 || STORES == 3)
    __stcs(p, v);
  else
    *p = v;
}

template <bool ALIGNED>
__device__ __forceinline__ void softmax_rows(const float *__restrict__ x,
                                             float *__restrict__ y,
                                             int row0, int warp, int lane) {
  const unsigned base = (unsigned)row0 * (unsigned)kCols;
  float v[ROWS][kPer];

  // All loads first.
  if constexpr (ALIGNED) {
    const float4 *px = reinterpret_cast<const float4 *>(x + base) + lane;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        float4 t = load4(px + r * (kCols / 4) + j * 32);
        v[r][4 * j + 0] = t.x;
        v[r][4 * j + 1] = t.y;
        v[r][4 * j + 2] = t.z;
        v[r][4 * j + 3] = t.w;
      }
    }
  } else {
    const float *px = x + base + lane;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
#pragma unroll
      for (int j = 0; j < kPer; ++j)
        v[r][j] = px[r * kCols + j * 32];
    }
  }

  // Row maxima.
  float m[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
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
    for (int r = 0; r < ROWS; ++r)
      m[r] = max_nan(m[r], __shfl_xor_sync(0xffffffffu, m[r], d));
  }

  // Exponentials and their sums.
  float s[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
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
    for (int r = 0; r < ROWS; ++r)
      s[r] += __shfl_xor_sync(0xffffffffu, s[r], d);
  }

  // The rows of a block leave together, as one contiguous burst.
  if constexpr (ALIGNED && STORES == 3)
    __syncthreads();

  float4 *stage = reinterpret_cast<float4 *>(stage_bytes) +
                  warp * (ROWS * (kCols / 4));

  // Quotients: IEEE reciprocal once a row, then one residual correction
  // an element. s is in [1, 512] or NaN, so nothing overflows here.
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float inv = 1.0f / s[r];
    const float ns = -s[r];
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const float e = v[r][j];
      const float q = e * inv;
      const float rem = fmaf(ns, q, e);
      v[r][j] = fmaf(rem, inv, q);
    }
    if constexpr (ALIGNED && STORES == 2) {
#pragma unroll
      for (int j = 0; j < kVec; ++j)
        stage[r * (kCols / 4) + j * 32 + lane] =
            make_float4(v[r][4 * j + 0], v[r][4 * j + 1],
                        v[r][4 * j + 2], v[r][4 * j + 3]);
    } else if constexpr (ALIGNED) {
      float4 *py = reinterpret_cast<float4 *>(y + base) + lane;
#pragma unroll
      for (int j = 0; j < kVec; ++j)
        store4(py + r * (kCols / 4) + j * 32,
               make_float4(v[r][4 * j + 0], v[r][4 * j + 1],
                           v[r][4 * j + 2], v[r][4 * j + 3]));
    } else {
      float *py = y + base + lane;
#pragma unroll
      for (int j = 0; j < kPer; ++j)
        py[r * kCols + j * 32] = v[r][j];
    }
  }

  // One asynchronous bulk store of the warp's rows.
  if constexpr (ALIGNED && STORES == 2) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane == 0) {
      const unsigned src = (unsigned)__cvta_generic_to_shared(stage);
      const unsigned long long dst =
          (unsigned long long)__cvta_generic_to_global(y + base);
      const unsigned bytes = (unsigned)(ROWS * kCols * 4);
      asm volatile(
          "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
          :
          : "l"(dst), "r"(src), "r"(bytes)
          : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncwarp();
  }
}

}  // namespace

extern "C" __global__ void
__launch_bounds__(kWarps * 32, (ROWS >= 4 ? 16 : 32) / kWarps)
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  const int lane = (int)(threadIdx.x & 31u);
  const int warp = (int)(threadIdx.x >> 5);
  const int row0 = ((int)blockIdx.x * kWarps + warp) * ROWS;

  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;
  if (aligned)
    softmax_rows<true>(x, y, row0, warp, lane);
  else
    softmax_rows<false>(x, y, row0, warp, lane);
}
