constexpr int kM = 8192;
constexpr int kN = 6144;
constexpr int kK = 4096;
constexpr int kBM = 128;
constexpr int kBN = BN;
constexpr int kBK = BK;
constexpr int kTM = 8;
constexpr int kTN = TN;
constexpr int kStages = 4;
constexpr int kThreads = kBM * kBN / (kTM * kTN);
constexpr int kMinBlocks = 256 / kBN;

constexpr int kLdA = kBM + 4;                 // padded row of the transposed A tile
constexpr int kAStage = kBK * kLdA;           // floats
constexpr int kStageF = kBK * (kLdA + kBN);   // floats
constexpr int kStageB = kStageF * 4;          // bytes

// A tile: 8 k-values x 4 rows a warp, 4-byte asynchronous copies
constexpr int kRA = kThreads / 8;             // rows a pass
constexpr int kPA = kBM / kRA;                // passes for 8 values of k
constexpr int kNA = kPA * (kBK / 8);
// B tile: 16-byte asynchronous copies
constexpr int kRB = kThreads / (kBN / 4);     // rows a pass
constexpr int kNB = kBK / kRB;
constexpr int kNL = kNA + kNB;

constexpr int kTilesM = kM / kBM;             // 64
constexpr int kTilesN = kN / kBN;
constexpr int kGroupM = 16;
constexpr int kFull = 1452 * (256 / kBN);     // 11 full waves on 132 multiprocessors
constexpr int kRem = kTilesM * kTilesN - kFull;
constexpr int kSplit = 3;
constexpr int kNK = kK / kBK;

static_assert(kRem == 84 * (256 / kBN), "tail");
static_assert(kNB * kRB == kBK, "B tile");
static_assert(kPA * kRA == kBM, "A tile");

__device__ __forceinline__ void tile_coords(int t, int &m0, int &n0) {
  int g = t / (kGroupM * kTilesN);
  int r = t - g * (kGroupM * kTilesN);
  m0 = (g * kGroupM + (r % kGroupM)) * kBM;
  n0 = (r / kGroupM) * kBN;
}

__device__ __forceinline__ void cp4(uint32_t dst, const float *src) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;\n"
               :: "r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp16(uint32_t dst, const float *src) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n"
               :: "r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
template <int P>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;\n" :: "n"(P) : "memory");
}

__device__ __forceinline__ void issue_load(int i, uint32_t dA, uint32_t dB,
                                           const float *ap, const float *bp) {
  if (i < kNA) {
    int p = i % kPA;
    int kh = i / kPA;
    cp4(dA + (kh * 8 * kLdA + p * kRA) * 4, ap + p * kRA * kK + kh * 8);
  } else {
    int q = i - kNA;
    cp16(dB + q * kRB * kBN * 4, bp + q * kRB * kN);
  }
}

__device__ __forceinline__ void load_frag(const float *pa, const float *pb, int k,
                                          float (&af)[kTM], float (&bf)[kTN]) {
#pragma unroll
  for (int i = 0; i < kTM / 4; ++i) {
    float4 v = *reinterpret_cast<const float4 *>(pa + k * kLdA + i * 32);
    af[i * 4 + 0] = v.x;
    af[i * 4 + 1] = v.y;
    af[i * 4 + 2] = v.z;
    af[i * 4 + 3] = v.w;
  }
#pragma unroll
  for (int j = 0; j < kTN / 4; ++j) {
    float4 v = *reinterpret_cast<const float4 *>(pb + k * kBN + j * 16);
    bf[j * 4 + 0] = v.x;
    bf[j * 4 + 1] = v.y;
    bf[j * 4 + 2] = v.z;
    bf[j * 4 + 3] = v.w;
  }
}

// Only for pointers without 16-byte alignment: right, not fast.
__device__ void slow_tile(const float *a, const float *b, float *dst, int ld,
                          int m0, int n0, int k0, int k1) {
#pragma unroll 1
  for (int e = threadIdx.x; e < (kBM / 8) * kBN; e += kThreads) {
    int r = (e / kBN) * 8;
    int col = e % kBN;
    float s[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) s[i] = 0.0f;
    const float *ar = a + (m0 + r) * kK;
    const float *bc = b + n0 + col;
#pragma unroll 2
    for (int k = k0; k < k1; ++k) {
      float bv = bc[k * kN];
#pragma unroll
      for (int i = 0; i < 8; ++i) s[i] = fmaf(ar[i * kK + k], bv, s[i]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) dst[(r + i) * ld + col] = s[i];
  }
}

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
matmul_opt(const float *__restrict__ a, const float *__restrict__ b,
           float *__restrict__ c, float *__restrict__ part) {
  extern __shared__ __align__(16) unsigned char smem_raw[];
  float *sm = reinterpret_cast<float *>(smem_raw);

  const int tid = threadIdx.x;
  const int bid = blockIdx.x;

  int tile, kt0, kt1;
  float *dst;
  int ld;
  int m0, n0;
  if (bid < kFull) {
    tile = bid;
    kt0 = 0;
    kt1 = kNK;
    tile_coords(tile, m0, n0);
    dst = c + m0 * kN + n0;
    ld = kN;
  } else {
    int r = bid - kFull;
    int sp = r / kRem;
    int t = r - sp * kRem;
    tile = kFull + t;
    kt0 = sp * kNK / kSplit;
    kt1 = (sp + 1) * kNK / kSplit;
    tile_coords(tile, m0, n0);
    dst = part + (t * kSplit + sp) * (kBM * kBN);
    ld = kBN;
  }

  const bool aligned = (reinterpret_cast<uintptr_t>(b) % 16 == 0) &&
                       (reinterpret_cast<uintptr_t>(c) % 16 == 0);
  if (!aligned) {
    slow_tile(a, b, dst, ld, m0, n0, kt0 * kBK, kt1 * kBK);
    return;
  }

  const int nk = kt1 - kt0;

  const uint32_t sbase = (uint32_t)__cvta_generic_to_shared(smem_raw);

  // producers' coordinates
  const int ka = tid & 7;
  const int ma = tid >> 3;
  const int cb = tid % (kBN / 4);
  const int rb = tid / (kBN / 4);
  const float *ap = a + (m0 + ma) * kK + kt0 * kBK + ka;
  const float *bp = b + (kt0 * kBK + rb) * kN + n0 + cb * 4;
  const uint32_t dA0 = sbase + (ka * kLdA + ma) * 4;
  const uint32_t dB0 = sbase + (kAStage + rb * kBN + cb * 4) * 4;

  // consumers' coordinates
  const int lane = tid & 31;
  const int wid = tid >> 5;
  const int wm = wid & 1;
  const int wn = wid >> 1;
  const int mt = (lane >> 1) & 7;
  const int nt = (lane & 1) | ((lane >> 4) << 1);
  const int rowT = wm * 64 + mt * 4;
  const int colT = wn * (4 * kTN) + nt * 4;
  const int offA = rowT;
  const int offB = kAStage + colT;

  float acc[kTM][kTN];
#pragma unroll
  for (int i = 0; i < kTM; ++i)
#pragma unroll
    for (int j = 0; j < kTN; ++j) acc[i][j] = 0.0f;

  // prologue
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
#pragma unroll
    for (int i = 0; i < kNL; ++i)
      issue_load(i, dA0 + s * kStageB, dB0 + s * kStageB, ap, bp);
    cp_commit();
    ap += kBK;
    bp += kBK * kN;
  }

  float af[2][kTM];
  float bf[2][kTN];

  cp_wait<kStages - 2>();
  __syncthreads();
  load_frag(sm + offA, sm + offB, 0, af[0], bf[0]);

  int rd = 0;                                // floats
  int wr = (kStages - 1) * kStageB;          // bytes

#pragma unroll 1
  for (int kt = 0; kt < nk; ++kt) {
#pragma unroll
    for (int k = 0; k < kBK; ++k) {
      if (k == kBK - 1) {
        cp_wait<kStages - 2>();
        __syncthreads();
        rd += kStageF;
        if (rd == kStages * kStageF) rd = 0;
      }
      // next fragment while this one is multiplied
      load_frag(sm + rd + offA, sm + rd + offB, (k + 1) % kBK,
                af[(k + 1) & 1], bf[(k + 1) & 1]);

      if (k < kBK - 1) {
#pragma unroll
        for (int i = 0; i < kNL; ++i)
          if (i * (kBK - 1) / kNL == k)
            issue_load(i, dA0 + wr, dB0 + wr, ap, bp);
      }
      if (k == kBK - 2) {
        cp_commit();
        wr += kStageB;
        if (wr == kStages * kStageB) wr = 0;
        // past the end the last tile is copied again (never used)
        const bool more = kt + kStages < nk;
        ap += more ? kBK : 0;
        bp += more ? kBK * kN : 0;
      }

#if ORDER == 0
#pragma unroll
      for (int j = 0; j < kTN; ++j) {
#pragma unroll
        for (int i = 0; i < kTM; ++i) {
          const int ii = (j & 1) ? (kTM - 1 - i) : i;
          acc[ii][j] = fmaf(af[k & 1][ii], bf[k & 1][j], acc[ii][j]);
        }
      }
#else
#pragma unroll
      for (int i = 0; i < kTM; ++i) {
#pragma unroll
        for (int j = 0; j < kTN; ++j) {
          const int jj = (i & 1) ? (kTN - 1 - j) : j;
          acc[i][jj] = fmaf(af[k & 1][i], bf[k & 1][jj], acc[i][jj]);
        }
      }
#endif
    }
  }

  // epilogue
  float *out = dst + rowT * ld + colT;
#pragma unroll
  for (int i = 0; i < kTM; ++i) {
    float *o = out + ((i / 4) * 32 + (i % 4)) * ld;
#pragma unroll
    for (int j = 0; j < kTN / 4; ++j) {
      float4 v = make_float4(acc[i][j * 4 + 0], acc[i][j * 4 + 1],
                             acc[i][j * 4 + 2], acc[i][j * 4 + 3]);
      __stcs(reinterpret_cast<float4 *>(o + j * 16), v);
    }
  }
  cp_wait<0>();
}

// Adds the three partial products of the tiles of the last wave.
extern "C" __global__ void __launch_bounds__(256)
matmul_tail(const float *__restrict__ part, float *__restrict__ c) {
  constexpr int tileV = kBM * kBN / 4;
  const int idx = blockIdx.x * 256 + threadIdx.x;
  if (idx >= kRem * tileV) return;
  const int t = idx / tileV;
  const int e = idx - t * tileV;
  const int row = e / (kBN / 4);
  const int col = (e % (kBN / 4)) * 4;
  int m0, n0;
  tile_coords(kFull + t, m0, n0);
  const float4 *p = reinterpret_cast<const float4 *>(part) + t * kSplit * tileV + e;
  float4 x = p[0];
  float4 y = p[tileV];
  float4 z = p[2 * tileV];
  float4 v;
  v.x = (x.x + y.x) + z.x;
  v.y = (x.y + y.y) + z.y;
  v.z = (x.z + y.z) + z.z;
  v.w = (x.w + y.w) + z.w;
  float *o = c + (m0 + row) * kN + n0 + col;
  if (reinterpret_cast<uintptr_t>(c) % 16 == 0) {
    __stcs(reinterpret_cast<float4 *>(o), v);
  } else {
    o[0] = v.x;
    o[1] = v.y;
    o[2] = v.z;
    o[3] = v.w;
  }
}
