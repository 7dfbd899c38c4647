namespace {

constexpr int kCols = 512;
constexpr int kRows = 65536;
constexpr int kPer = kCols / 32;   // 16 elements of a row in each lane
constexpr int kVec = kPer / 4;     // 4 float4 of a row in each lane

static_assert(kRows % (WARPS * ROWS) == 0, "grid covers the rows exactly");

__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

__device__ __forceinline__ float4 load4(const float4 *p) {
  if constexpr ((HINT & 1) != 0)
    return __ldcs(p);
  else
    return __ldg(p);
}

__device__ __forceinline__ void store4(float4 *p, float4 v) {
  if constexpr ((HINT & 2) != 0)
    __stcs(p, v);
  else
    *p = v;
}

template <bool ALIGNED>
__device__ __forceinline__ void softmax_rows(const float *__restrict__ x,
                                             float *__restrict__ y,
                                             int row0, int lane) {
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
    if constexpr (ALIGNED) {
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
}

}  // namespace

extern "C" __global__ void
__launch_bounds__(WARPS * 32, (ROWS == 1 ? 48 : 32) / WARPS)
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  const int lane = (int)(threadIdx.x & 31u);
  const int warp = (int)(threadIdx.x >> 5);
  const int row0 = ((int)blockIdx.x * WARPS + warp) * ROWS;

  const bool aligned =
      ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16) == 0;
  if (aligned)
    softmax_rows<true>(x, y, row0, lane);
  else
    softmax_rows<false>(x, y, row0, lane);
}
