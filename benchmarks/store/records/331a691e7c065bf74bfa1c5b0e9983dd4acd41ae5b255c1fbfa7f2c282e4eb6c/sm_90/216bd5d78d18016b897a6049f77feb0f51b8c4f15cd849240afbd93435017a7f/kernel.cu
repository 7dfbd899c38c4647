namespace mm {
constexpr int M = 16384;
constexpr int N = 2048;
constexpr int K = 4096;

constexpr int BM = 128;
constexpr int BN = TILE_N;                  // 128 or 256
constexpr int TN = THR_N;                   // 8 or 16 columns a thread (8 rows)
constexpr int BK = 16 * (1 + VARIANT % 2);  // 16 or 32
constexpr int ORD = VARIANT / 2;            // order of the outer product
constexpr int ST = 3;                       // stages of the ring

constexpr int THREADS = 16 * BN / TN;
constexpr int PER_SM = 256 / BN;
constexpr int G = 132 * PER_SM;             // persistent blocks

constexpr int AST = BM + 4;                 // row stride of transposed A in shared memory
constexpr int CH = BK / 8;                  // chunks of 8 k in a stage
constexpr int KB = K / BK;                  // stages along K

constexpr int NTN = N / BN;
constexpr int NT = (M / BM) * NTN;
constexpr int WAVES = NT / G - 1;           // whole waves of whole tiles
constexpr int REM = NT - WAVES * G;         // tiles that are split evenly
constexpr int UNITS = REM * KB;

constexpr int A_RING = ST * BK * AST * 4;   // bytes
constexpr int B_RING = ST * BK * BN * 4;    // bytes

constexpr int AROWS = THREADS / 8;          // rows of A a pass
constexpr int APASS = BM / AROWS;
constexpr int BROWS = THREADS / (BN / 4);   // rows of B a pass
constexpr int BPASS = 8 / BROWS;
constexpr int P = APASS + BPASS;

static_assert(WAVES >= 1, "waves");
static_assert(UNITS / G > KB, "every piece is longer than one tile");
static_assert(APASS * AROWS == BM, "A passes");
static_assert(BPASS * BROWS == 8, "B passes");

__device__ __forceinline__ void cp4(unsigned dst, const float *src) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;\n" ::"r"(dst), "l"(src)
               : "memory");
}
__device__ __forceinline__ void cp16(unsigned dst, const float *src) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(dst), "l"(src)
               : "memory");
}
__device__ __forceinline__ void cp_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
template <int C>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(C) : "memory");
}

// Segment j of this block: a tile and a range of k stages.
__device__ __forceinline__ void segment(int j, int bid, int s0, int s1, int &tile, int &k0,
                                        int &k1) {
  if (j < WAVES) {
    tile = bid + j * G;
    k0 = 0;
    k1 = KB;
  } else {
    const int r = s0 / KB + (j - WAVES);
    k0 = (j == WAVES) ? (s0 % KB) : 0;
    const int e = s1 - r * KB;
    k1 = e < KB ? e : KB;
    tile = WAVES * G + r;
  }
}

__device__ __forceinline__ void issue_pass(int p, unsigned wA, unsigned wB, const float *gA,
                                           const float *gB) {
  if (p < APASS) {
    cp4(wA + p * AROWS * 4, gA + p * AROWS * K);
  } else {
    const int q = p - APASS;
    cp16(wB + q * BROWS * BN * 4, gB + q * BROWS * N);
  }
}

__device__ __forceinline__ void load_frag(float (&fa)[8], float (&fb)[TN],
                                          const unsigned char *s, int ra, int rb, int row) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float4 v = *reinterpret_cast<const float4 *>(s + ra + (row * AST + i * 16) * 4);
    fa[i * 4 + 0] = v.x;
    fa[i * 4 + 1] = v.y;
    fa[i * 4 + 2] = v.z;
    fa[i * 4 + 3] = v.w;
  }
#pragma unroll
  for (int j = 0; j < TN / 4; ++j) {
    const float4 v = *reinterpret_cast<const float4 *>(s + rb + (row * BN + j * 32) * 4);
    fb[j * 4 + 0] = v.x;
    fb[j * 4 + 1] = v.y;
    fb[j * 4 + 2] = v.z;
    fb[j * 4 + 3] = v.w;
  }
}

__device__ __forceinline__ void outer(float (&acc)[8][TN], const float (&fa)[8],
                                      const float (&fb)[TN]) {
  if (ORD == 0) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int jj = 0; jj < TN; ++jj) {
        const int j = (i & 1) ? (TN - 1 - jj) : jj;
        acc[i][j] = fmaf(fa[i], fb[j], acc[i][j]);
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
#pragma unroll
      for (int ii = 0; ii < 8; ++ii) {
        const int i = (j & 1) ? (7 - ii) : ii;
        acc[i][j] = fmaf(fa[i], fb[j], acc[i][j]);
      }
    }
  }
}

__device__ __forceinline__ bool aligned_ok(const float *b, const float *c) {
  return ((reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c)) % 16) == 0;
}
}  // namespace mm

extern "C" __global__ void __launch_bounds__(mm::THREADS, mm::PER_SM)
matmul_opt(const float *a, const float *b, float *c, float *ws) {
  using namespace mm;
  extern __shared__ __align__(128) unsigned char smem_raw[];

  const int tid = threadIdx.x;
  const int bid = blockIdx.x;

  if (!aligned_ok(b, c)) {
    // Second path: only right, not fast.
#pragma unroll 1
    for (int idx = bid * THREADS + tid; idx < M * N; idx += G * THREADS) {
      const int row = idx / N;
      const int col = idx % N;
      float s = 0.0f;
#pragma unroll 1
      for (int k = 0; k < K; ++k) s = fmaf(a[row * K + k], b[k * N + col], s);
      c[idx] = s;
    }
    return;
  }

  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wm = warp & 3;
  const int wn = warp >> 2;
  // Interleaved lanes: neighbouring lanes share addresses in both operands.
  const int tx = (lane & 1) | ((lane >> 1) & 2) | ((lane >> 2) & 4);
  const int ty = ((lane >> 1) & 1) | ((lane >> 2) & 2);

  const int s0 = (int)((unsigned)(bid * UNITS) / (unsigned)G);
  const int s1 = (int)((unsigned)((bid + 1) * UNITS) / (unsigned)G);
  const int nseg = WAVES + (s1 + KB - 1) / KB - s0 / KB;

  // ---- loader ----
  const int ak = tid & 7;
  const int arow = tid >> 3;
  const int brow = tid / (BN / 4);
  const int bcol = (tid % (BN / 4)) * 4;

  const unsigned sbase = (unsigned)__cvta_generic_to_shared(smem_raw);
  unsigned wA = sbase + (ak * AST + arow) * 4;
  unsigned wB = sbase + A_RING + (brow * BN + bcol) * 4;

  const float *gA;
  const float *gB;
  int lseg = 0;
  int lrem;

  auto open_segment = [&](int j) {
    // Past the end the last segment is read again; nobody uses what comes of it.
    if (j >= nseg) j = nseg - 1;
    int t, k0, k1;
    segment(j, bid, s0, s1, t, k0, k1);
    lrem = k1 - k0;
    const int m0 = (t / NTN) * BM;
    const int n0 = (t % NTN) * BN;
    gA = a + (size_t)((m0 + arow) * K + k0 * BK + ak);
    gB = b + (size_t)((k0 * BK + brow) * N + n0 + bcol);
  };

  open_segment(0);

#pragma unroll 1
  for (int s = 0; s < ST - 1; ++s) {
#pragma unroll 1
    for (int ch = 0; ch < CH; ++ch) {
#pragma unroll
      for (int p = 0; p < P; ++p) issue_pass(p, wA, wB, gA, gB);
      gA += 8;
      gB += 8 * N;
      wA += 8 * AST * 4;
      wB += 8 * BN * 4;
    }
    cp_commit();
    if (--lrem == 0) open_segment(++lseg);
  }

  // ---- compute ----
  int rA = (wm * 32 + ty * 4) * 4;
  int rB = A_RING + (wn * (8 * TN) + tx * 4) * 4;
  int rs = 0;
  int seg = 0;
  int rem = KB;  // the first segment is a whole tile

  float acc[8][TN];
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;

  float fa[2][8];
  float fb[2][TN];

  cp_wait<ST - 2>();
  __syncthreads();
  load_frag(fa[0], fb[0], smem_raw, rA, rB, 0);

#pragma unroll 1
  for (;;) {
#pragma unroll 1
    for (int ch = 0; ch < CH; ++ch) {
#pragma unroll
      for (int kk = 0; kk < 8; ++kk) {
#pragma unroll
        for (int p = 0; p < P; ++p) {
          if (p * 7 / P == kk) issue_pass(p, wA, wB, gA, gB);
        }
        if (kk < 7) {
          load_frag(fa[(kk + 1) & 1], fb[(kk + 1) & 1], smem_raw, rA, rB, kk + 1);
        } else {
          gA += 8;
          gB += 8 * N;
          wA += 8 * AST * 4;
          wB += 8 * BN * 4;
          rA += 8 * AST * 4;
          rB += 8 * BN * 4;
          if (ch == CH - 1) {
            cp_commit();
            if (rs == 0) {  // the stage just filled was the last of the ring
              wA -= A_RING;
              wB -= B_RING;
            }
            if (++rs == ST) {
              rs = 0;
              rA -= A_RING;
              rB -= B_RING;
            }
            if (--lrem == 0) open_segment(++lseg);
            cp_wait<ST - 2>();
            __syncthreads();
          }
          load_frag(fa[0], fb[0], smem_raw, rA, rB, 0);
        }
        outer(acc, fa[kk & 1], fb[kk & 1]);
      }
    }

    if (--rem == 0) {
      int t, k0, k1;
      segment(seg, bid, s0, s1, t, k0, k1);
      float *dst;
      int ld;
      if (k1 == KB) {  // a whole tile, or the last part of a split one
        dst = c + (size_t)((t / NTN) * BM * N + (t % NTN) * BN);
        ld = N;
      } else {         // the first part of a split tile
        dst = ws + (size_t)bid * (BM * BN);
        ld = BN;
      }
      dst += (wm * 32 + ty * 4) * ld + wn * (8 * TN) + tx * 4;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float *rowp = dst + ((i >> 2) * 16 + (i & 3)) * ld;
#pragma unroll
        for (int j = 0; j < TN / 4; ++j) {
          float4 v;
          v.x = acc[i][j * 4 + 0];
          v.y = acc[i][j * 4 + 1];
          v.z = acc[i][j * 4 + 2];
          v.w = acc[i][j * 4 + 3];
          *reinterpret_cast<float4 *>(rowp + j * 32) = v;
        }
      }
      if (++seg >= nseg) break;
      segment(seg, bid, s0, s1, t, k0, k1);
      rem = k1 - k0;
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;
    }
  }

  cp_wait<0>();
}

// Adds the first part of every split tile to the part that is already in c.
extern "C" __global__ void __launch_bounds__(256)
matmul_fix(const float *a, const float *b, float *c, const float *ws) {
  using namespace mm;
  if (!aligned_ok(b, c)) return;
  const int bid = blockIdx.x;
  const int e = (int)((unsigned)((bid + 1) * UNITS) / (unsigned)G);
  if (e % KB == 0) return;
  const int t = WAVES * G + e / KB;
  float *dst = c + (size_t)((t / NTN) * BM * N + (t % NTN) * BN);
  const float *src = ws + (size_t)bid * (BM * BN);
#pragma unroll 4
  for (int idx = blockIdx.y * 256 + threadIdx.x; idx < BM * BN / 4; idx += 8 * 256) {
    const int row = idx / (BN / 4);
    const int col = (idx % (BN / 4)) * 4;
    const float4 x = *reinterpret_cast<const float4 *>(src + row * BN + col);
    float4 *q = reinterpret_cast<float4 *>(dst + row * N + col);
    float4 y = *q;
    y.x += x.x;
    y.y += x.y;
    y.z += x.z;
    y.w += x.w;
    *q = y;
  }
}
