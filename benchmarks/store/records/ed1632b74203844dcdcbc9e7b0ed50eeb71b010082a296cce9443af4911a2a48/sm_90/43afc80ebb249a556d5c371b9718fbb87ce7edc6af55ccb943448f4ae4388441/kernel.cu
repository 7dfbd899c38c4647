// TN (8 or 16), BK (8, 16 or 32) and ORDER (0 or 1) are macros of the plan.

constexpr int M_ = 8192;
constexpr int N_ = 6144;
constexpr int K_ = 4096;

constexpr int BM = 128;
constexpr int BN = 16 * TN;
constexpr int NTHREADS = 256;
constexpr int STAGES = (BK <= 16) ? 4 : 3;      // 4*BK or 96 rows of shared memory
constexpr int LDA = BM + 4;
constexpr int STAGE_FLOATS = BK * (LDA + BN);

constexpr int NTM = M_ / BM;                    // 64
constexpr int NTN = N_ / BN;                    // 24 or 48
constexpr int TILES = NTM * NTN;                // 1536 or 3072
constexpr int NCTA = 132 * 16 / TN;             // 132 or 264
constexpr int FULL = TILES / NCTA;              // 11 full waves
constexpr int FULL_TILES = FULL * NCTA;
constexpr int REM = TILES - FULL_TILES;         // 84 or 168
constexpr int KT = K_ / BK;
constexpr int SK_TOTAL = REM * KT;
constexpr int GM = 16;                          // m-tiles of a raster group

constexpr int NA = BM / 32 * (BK / 8);          // 4-byte copies of A a thread
constexpr int B_CHUNKS = BN / 4;                // 16-byte chunks of a row of B
constexpr int B_ROWS = NTHREADS / B_CHUNKS;     // rows of B a pass
constexpr int NB = BK / B_ROWS;                 // 16-byte copies of B a thread
constexpr int NC = NA + NB;

static_assert(REM > 0 && REM < NCTA, "stream-k range must be shorter than a tile");
static_assert(BK % 8 == 0 && BK % B_ROWS == 0, "BK");
static_assert(KT > STAGES, "k tiles");

struct Seg {
  int tile, k0, cnt;
};

__device__ __forceinline__ int sk_begin(int s) {
  return s * SK_TOTAL / NCTA;
}

// Segments of this block: FULL whole tiles, then one or two parts of tiles.
__device__ __forceinline__ Seg get_seg(int seg) {
  const int cta = (int)blockIdx.x;
  Seg r;
  if (seg < FULL) {
    r.tile = seg * NCTA + cta;
    r.k0 = 0;
    r.cnt = KT;
  } else {
    const int b0 = sk_begin(cta);
    const int len = sk_begin(cta + 1) - b0;
    const int t0 = b0 / KT;
    const int first = b0 - t0 * KT;
    const int c0 = (KT - first < len) ? (KT - first) : len;
    if (seg == FULL) {
      r.tile = FULL_TILES + t0;
      r.k0 = first;
      r.cnt = c0;
    } else if (seg == FULL + 1 && len > c0) {
      r.tile = FULL_TILES + t0 + 1;
      r.k0 = 0;
      r.cnt = len - c0;
    } else {
      r.tile = cta;
      r.k0 = 0;
      r.cnt = 0;
    }
  }
  return r;
}

__device__ __forceinline__ void tile_coords(int tile, int &tm, int &tn) {
  const int g = tile / (GM * NTN);
  const int r = tile - g * (GM * NTN);
  tm = g * GM + r % GM;
  tn = r / GM;
}

__device__ __forceinline__ void cp4(unsigned dst, const float *src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp16(unsigned dst, const float *src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int P>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(P) : "memory");
}

// Copy number q (0 .. NC-1) of a thread for one k tile.
__device__ __forceinline__ void copy_one(int q, unsigned wa, unsigned wb,
                                         const float *gA, const float *gB) {
  if (q < NA) {
    const int i = q % (BM / 32);
    const int j = q / (BM / 32);
    cp4(wa + (unsigned)((8 * j * LDA + 32 * i) * 4), gA + (32 * i * K_ + 8 * j));
  } else {
    const int p = q - NA;
    cp16(wb + (unsigned)(p * B_ROWS * BN * 4), gB + p * B_ROWS * N_);
  }
}

__device__ __forceinline__ void load_frag(float (&fa)[8], float (&fb)[TN],
                                          const float *pa, const float *pb, int k) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float4 v = *reinterpret_cast<const float4 *>(pa + k * LDA + 32 * h);
    fa[4 * h + 0] = v.x;
    fa[4 * h + 1] = v.y;
    fa[4 * h + 2] = v.z;
    fa[4 * h + 3] = v.w;
  }
#pragma unroll
  for (int j = 0; j < TN / 4; ++j) {
    const float4 v = *reinterpret_cast<const float4 *>(pb + k * BN + 16 * j);
    fb[4 * j + 0] = v.x;
    fb[4 * j + 1] = v.y;
    fb[4 * j + 2] = v.z;
    fb[4 * j + 3] = v.w;
  }
}

extern "C" __global__ void __launch_bounds__(256, 16 / TN)
matmul_opt(const float *__restrict__ a, const float *__restrict__ b,
           float *__restrict__ c, float *__restrict__ part) {
  extern __shared__ __align__(16) unsigned char smem_raw[];

  const int tid = (int)threadIdx.x;
  const int lane = tid & 31;
  const int warp = tid >> 5;

  if (((reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c)) & 15) != 0) {
    // Any alignment: 8 rows by 32 columns a warp.
    const int nw = (int)gridDim.x * 8;
#pragma unroll 1
    for (int t = (int)blockIdx.x * 8 + warp; t < (M_ / 8) * (N_ / 32); t += nw) {
      const int row = (t / (N_ / 32)) * 8;
      const int col = (t % (N_ / 32)) * 32 + lane;
      float s[8];
#pragma unroll
      for (int r = 0; r < 8; ++r) s[r] = 0.0f;
#pragma unroll 1
      for (int k = 0; k < K_; ++k) {
        const float bv = b[k * N_ + col];
#pragma unroll
        for (int r = 0; r < 8; ++r) s[r] = fmaf(a[(row + r) * K_ + k], bv, s[r]);
      }
#pragma unroll
      for (int r = 0; r < 8; ++r) c[(row + r) * N_ + col] = s[r];
    }
    return;
  }

  float *smem = reinterpret_cast<float *>(smem_raw);
  const unsigned smem_u = (unsigned)__cvta_generic_to_shared(smem_raw);

  // Position of the thread in the block's tile.
  const int wm = warp & 1;
  const int wn = warp >> 1;
  const int ty = (lane >> 1) & 7;
  const int tx = (lane & 1) | ((lane >> 3) & 2);
  const int rowT = wm * 64 + ty * 4;
  const int colT = wn * (4 * TN) + tx * 4;
  const float *fragA = smem + rowT;
  const float *fragB = smem + BK * LDA + colT;

  // Position of the thread in the copies.
  const int aK = lane & 7;
  const int aM = warp * 4 + (lane >> 3);
  const int bC = (tid % B_CHUNKS) * 4;
  const int bR = tid / B_CHUNKS;
  const unsigned stA = smem_u + (unsigned)((aK * LDA + aM) * 4);
  const unsigned stB = smem_u + (unsigned)((BK * LDA + bR * BN + bC) * 4);

  const float *gA;
  const float *gB;
  int ldSeg = 0;
  int ldLeft;

  auto set_loader = [&](int seg) {
    const Seg s = get_seg(seg);
    int tm, tn;
    tile_coords(s.tile, tm, tn);
    gA = a + ((tm * BM + aM) * K_ + s.k0 * BK + aK);
    gB = b + ((s.k0 * BK + bR) * N_ + tn * BN + bC);
    // Past the last segment: valid addresses, the data are never used.
    ldLeft = (s.cnt > 0) ? s.cnt : KT;
  };
  auto advance_loader = [&]() {
    gA += BK;
    gB += BK * N_;
    if (--ldLeft == 0) {
      ++ldSeg;
      set_loader(ldSeg);
    }
  };

  set_loader(0);
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    const unsigned o = (unsigned)(s * STAGE_FLOATS * 4);
#pragma unroll
    for (int q = 0; q < NC; ++q) copy_one(q, stA + o, stB + o, gA, gB);
    cp_commit();
    advance_loader();
  }

  int rd = 0;                                   // stage read, in floats
  int wr = (STAGES - 1) * STAGE_FLOATS;         // stage written, in floats

  cp_wait<STAGES - 2>();
  __syncthreads();

  float fa[2][8];
  float fb[2][TN];
  float acc[8][TN];

  const float *pa = fragA;
  const float *pb = fragB;
  load_frag(fa[0], fb[0], pa, pb, 0);

#pragma unroll 1
  for (int seg = 0;; ++seg) {
    int left = get_seg(seg).cnt;
    if (left == 0) break;

#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;

#pragma unroll 1
    do {
      const unsigned wa = stA + (unsigned)(wr * 4);
      const unsigned wb = stB + (unsigned)(wr * 4);
#pragma unroll
      for (int kk = 0; kk < BK; ++kk) {
        if (kk == BK - 1) {
          cp_wait<STAGES - 2>();
          __syncthreads();
          wr = rd;
          rd += STAGE_FLOATS;
          if (rd == STAGES * STAGE_FLOATS) rd = 0;
          pa = fragA + rd;
          pb = fragB + rd;
        }
        load_frag(fa[(kk + 1) & 1], fb[(kk + 1) & 1], pa, pb, (kk + 1) % BK);

#pragma unroll
        for (int q = 0; q < NC; ++q)
          if (q * (BK - 1) / NC == kk) copy_one(q, wa, wb, gA, gB);
        if (kk == BK - 2) {
          cp_commit();
          advance_loader();
        }

#if ORDER == 0
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
          for (int j = 0; j < TN; ++j) {
            const int jj = (i & 1) ? (TN - 1 - j) : j;
            acc[i][jj] = fmaf(fa[kk & 1][i], fb[kk & 1][jj], acc[i][jj]);
          }
#else
#pragma unroll
        for (int j = 0; j < TN; ++j)
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const int ii = (j & 1) ? (7 - i) : i;
            acc[ii][j] = fmaf(fa[kk & 1][ii], fb[kk & 1][j], acc[ii][j]);
          }
#endif
      }
    } while (--left > 0);

    // Store the tile, or the part of it.
    float *dst;
    int ld;
    if (seg < FULL) {
      int tm, tn;
      tile_coords(seg * NCTA + (int)blockIdx.x, tm, tn);
      dst = c + (tm * BM * N_ + tn * BN);
      ld = N_;
    } else {
      dst = part + ((int)blockIdx.x * 2 + (seg - FULL)) * (BM * BN);
      ld = BN;
    }
    dst += rowT * ld + colT;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        float *p = dst + (h * 32 + r) * ld;
#pragma unroll
        for (int j = 0; j < TN / 4; ++j) {
          *reinterpret_cast<float4 *>(p + 16 * j) =
              make_float4(acc[4 * h + r][4 * j + 0], acc[4 * h + r][4 * j + 1],
                          acc[4 * h + r][4 * j + 2], acc[4 * h + r][4 * j + 3]);
        }
      }
    }
  }

  cp_wait<0>();
}

// Sums the parts of the tiles that were split along k.
extern "C" __global__ void __launch_bounds__(256)
matmul_sum_parts(const float *__restrict__ b, float *__restrict__ c,
                 const float *__restrict__ part) {
  if (((reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c)) & 15) != 0)
    return;  // the first kernel has already computed everything

  constexpr int BLOCKS = BM * BN / 4 / 256;     // blocks a tile
  const int t = (int)blockIdx.x / BLOCKS;
  const int e = (((int)blockIdx.x % BLOCKS) * 256 + (int)threadIdx.x) * 4;
  if (t >= REM) return;

  const int it0 = t * KT;
  const int it1 = it0 + KT;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int s = t * NCTA / REM; s < NCTA; ++s) {
    const int b0 = sk_begin(s);
    if (b0 >= it1) break;
    if (sk_begin(s + 1) <= it0) continue;
    const int idx = (b0 / KT == t) ? 0 : 1;
    const float4 v =
        *reinterpret_cast<const float4 *>(part + (s * 2 + idx) * (BM * BN) + e);
    sum.x += v.x;
    sum.y += v.y;
    sum.z += v.z;
    sum.w += v.w;
  }

  int tm, tn;
  tile_coords(FULL_TILES + t, tm, tn);
  const int row = tm * BM + e / BN;
  const int col = tn * BN + e % BN;
  *reinterpret_cast<float4 *>(c + (row * N_ + col)) = sum;
}
