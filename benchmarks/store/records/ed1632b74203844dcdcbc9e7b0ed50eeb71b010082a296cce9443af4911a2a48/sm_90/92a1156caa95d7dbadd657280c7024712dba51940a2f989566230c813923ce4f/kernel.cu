// Parameters: BN (128 or 256), BK (16 or 32), KU (8 or 16)
static constexpr int kM = 8192;
static constexpr int kN = 6144;
static constexpr int kK = 4096;
static constexpr int BM = 128;
static constexpr int THREADS = BN;
static constexpr int STAGES = 5 - BK / 16;          // 4 for BK=16, 3 for BK=32
static constexpr int LDA_S = BM + 4;                // A part of a row in shared memory
static constexpr int ROWF = LDA_S + BN;             // floats of one k row: A then B
static constexpr int ROWB = ROWF * 4;               // its bytes (multiple of 16)
static constexpr int STAGEB = BK * ROWB;
static constexpr int RINGB = STAGES * STAGEB;
static constexpr int KB = kK / BK;                  // k blocks of a tile
static constexpr int NT_M = kM / BM;
static constexpr int NT_N = kN / BN;
static constexpr int TILES = NT_M * NT_N;
static constexpr int NBLK = 132 * 256 / BN;         // persistent blocks
static constexpr int FULLW = TILES / NBLK;          // full waves
static constexpr int FULL = FULLW * NBLK;
static constexpr int REM = TILES - FULL;            // tiles split along k
static constexpr int SUNITS = REM * KB;
static constexpr int GM = 16;                       // rasterisation group
static constexpr int NA = BM * 8 / THREADS;         // 4-byte copies of A a thread for 8 k
static constexpr int NO = NA + 2;                   // plus 16-byte copies of B
static constexpr int AROWS = THREADS / 8;
static constexpr int G = BK / KU;

static_assert(BK % KU == 0, "BK must be a multiple of KU");
static_assert(KU % 8 == 0, "KU must be a multiple of 8");
static_assert(SUNITS / NBLK < KB, "at most two partial tiles a block");

extern __shared__ __align__(16) unsigned char smem_raw[];

__device__ __forceinline__ uint32_t smem_addr(const void *p) {
  uint32_t r;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }"
      : "=r"(r) : "l"(p));
  return r;
}
__device__ __forceinline__ void cp4(uint32_t dst, const float *src) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;" ::"r"(dst), "l"(src));
}
__device__ __forceinline__ void cp16(uint32_t dst, const float *src) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(dst), "l"(src));
}
__device__ __forceinline__ void cp_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int W>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(W) : "memory");
}

__device__ __forceinline__ void issue_op(int op, int kofs, const float *aP, const float *bP,
                                         uint32_t pA, uint32_t pB) {
  if (op < NA) {
    cp4(pA + kofs * ROWB + op * AROWS * 4, aP + kofs + op * AROWS * kK);
  } else {
    const int i = op - NA;
    cp16(pB + (kofs + 4 * i) * ROWB, bP + (kofs + 4 * i) * kN);
  }
}

__device__ __forceinline__ void ldfrag(float (&fa)[8], float (&fb)[16],
                                       const unsigned char *pa, const unsigned char *pb) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float4 v = *reinterpret_cast<const float4 *>(pa + i * 128);
    fa[i * 4 + 0] = v.x;
    fa[i * 4 + 1] = v.y;
    fa[i * 4 + 2] = v.z;
    fa[i * 4 + 3] = v.w;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float4 v = *reinterpret_cast<const float4 *>(pb + j * 64);
    fb[j * 4 + 0] = v.x;
    fb[j * 4 + 1] = v.y;
    fb[j * 4 + 2] = v.z;
    fb[j * 4 + 3] = v.w;
  }
}

__device__ __forceinline__ void tile_coords(int tile, int &m0, int &n0) {
  const int grp = tile / (GM * NT_N);
  const int r = tile - grp * (GM * NT_N);
  m0 = (grp * GM + (r % GM)) * BM;
  n0 = (r / GM) * BN;
}

__device__ __forceinline__ void seg_info(int s, int p, int s0, int s1, int &tile, int &kb0,
                                         int &len) {
  if (s < FULLW) {
    tile = s * NBLK + p;
    kb0 = 0;
    len = KB;
  } else {
    const int u0 = s0 / KB;
    const int e0 = (u0 + 1) * KB;
    if (s == FULLW) {
      tile = FULL + u0;
      kb0 = s0 - u0 * KB;
      len = (s1 < e0 ? s1 : e0) - s0;
    } else {
      tile = FULL + u0 + 1;
      kb0 = 0;
      len = s1 - e0;
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 256 / BN)
matmul_main(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
            float *__restrict__ part) {
  const int tid = threadIdx.x;
  const int p = blockIdx.x;

  if (((reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c)) % 16) != 0) {
    // only has to be right
    const int total = (kM / 8) * kN;
#pragma unroll 1
    for (int idx = p * THREADS + tid; idx < total; idx += NBLK * THREADS) {
      const int rg = idx / kN;
      const int col = idx - rg * kN;
      const float *ar = a + rg * 8 * kK;
      const float *bc = b + col;
      float s[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) s[i] = 0.0f;
#pragma unroll 2
      for (int k = 0; k < kK; ++k) {
        const float bv = bc[k * kN];
#pragma unroll
        for (int i = 0; i < 8; ++i) s[i] = fmaf(ar[i * kK + k], bv, s[i]);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) c[(rg * 8 + i) * kN + col] = s[i];
    }
    return;
  }

  const int s0 = p * SUNITS / NBLK;
  const int s1 = (p + 1) * SUNITS / NBLK;
  const int nseg = FULLW + 1 + ((s1 > (s0 / KB + 1) * KB) ? 1 : 0);

  const uint32_t sbase = smem_addr(smem_raw);

  // ---- producer state ----
  const int ak = tid & 7;
  const int am = tid >> 3;
  const int bk = tid / (BN / 4);
  const int bn = (tid % (BN / 4)) * 4;
  uint32_t pA = sbase + ak * ROWB + am * 4;
  uint32_t pB = sbase + bk * ROWB + LDA_S * 4 + bn * 4;
  int pslot = 0;
  int pseg = 0;
  int prem;
  const float *aP;
  const float *bP;
  {
    int tile, kb0, m0, n0;
    seg_info(0, p, s0, s1, tile, kb0, prem);
    tile_coords(tile, m0, n0);
    aP = a + (m0 + am) * kK + kb0 * BK + ak;
    bP = b + (kb0 * BK + bk) * kN + n0 + bn;
  }

  // to be called after the pointers have moved past a whole k block
  auto block_end = [&]() {
    if (++pslot == STAGES) {
      pslot = 0;
      pA -= RINGB;
      pB -= RINGB;
    }
    if (--prem == 0) {
      ++pseg;
      if (pseg < nseg) {
        int tile, kb0, m0, n0;
        seg_info(pseg, p, s0, s1, tile, kb0, prem);
        tile_coords(tile, m0, n0);
        aP = a + (m0 + am) * kK + kb0 * BK + ak;
        bP = b + (kb0 * BK + bk) * kN + n0 + bn;
      } else {
        // nothing left: load the last block again, into slots that nobody reads
        aP -= BK;
        bP -= BK * kN;
        prem = 1;
      }
    }
  };

#pragma unroll 1
  for (int st = 0; st < STAGES - 1; ++st) {
#pragma unroll 1
    for (int h = 0; h < BK / 8; ++h) {
#pragma unroll
      for (int op = 0; op < NO; ++op) issue_op(op, 0, aP, bP, pA, pB);
      aP += 8;
      bP += 8 * kN;
      pA += 8 * ROWB;
      pB += 8 * ROWB;
    }
    cp_commit();
    block_end();
  }

  // ---- consumer state ----
  const int lane = tid & 31;
  const int warp = tid >> 5;
  const int wm = warp & 1;
  const int wn = warp >> 1;
  const int lr = (lane & 1) | ((lane >> 3) << 1);
  const int lc = (lane >> 1) & 3;
  const int trow = wm * 64 + lr * 4;
  const int tcol = wn * 64 + lc * 4;
  int cA = trow * 4;
  int cB = (LDA_S + tcol) * 4;
  int cslot = 0;

  float acc[8][16];
  float fa[2][8];
  float fb[2][16];

  cp_wait<STAGES - 2>();
  __syncthreads();
  ldfrag(fa[0], fb[0], smem_raw + cA, smem_raw + cB);

#pragma unroll 1
  for (int s = 0; s < nseg; ++s) {
    int tile, kb0, len;
    seg_info(s, p, s0, s1, tile, kb0, len);
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 16; ++j) acc[i][j] = 0.0f;

#pragma unroll 1
    for (int kb = 0; kb < len; ++kb) {
#pragma unroll 1
      for (int g = 0; g < G; ++g) {
#pragma unroll
        for (int k = 0; k < KU; ++k) {
          // copies for the block STAGES-1 ahead, spread over the k steps
#pragma unroll
          for (int op = 0; op < NO; ++op) {
            if (op >= (k % 8) * NO / 8 && op < ((k % 8) + 1) * NO / 8)
              issue_op(op, (k / 8) * 8, aP, bP, pA, pB);
          }
          if (k == KU - 1) {
            aP += KU;
            bP += KU * kN;
            pA += KU * ROWB;
            pB += KU * ROWB;
            cA += KU * ROWB;
            cB += KU * ROWB;
            if (g == G - 1) {
              cp_commit();
              block_end();
              if (++cslot == STAGES) {
                cslot = 0;
                cA -= RINGB;
                cB -= RINGB;
              }
              cp_wait<STAGES - 2>();
              __syncthreads();
            }
            ldfrag(fa[(k + 1) & 1], fb[(k + 1) & 1], smem_raw + cA, smem_raw + cB);
          } else {
            ldfrag(fa[(k + 1) & 1], fb[(k + 1) & 1], smem_raw + cA + (k + 1) * ROWB,
                   smem_raw + cB + (k + 1) * ROWB);
          }
#pragma unroll
          for (int i = 0; i < 8; ++i) {
#pragma unroll
            for (int jj = 0; jj < 16; ++jj) {
              const int j = (i & 1) ? (15 - jj) : jj;
              acc[i][j] = fmaf(fa[k & 1][i], fb[k & 1][j], acc[i][j]);
            }
          }
        }
      }
    }

    // ---- store the tile, or the partial tile ----
    float *dst;
    int ld;
    if (s < FULLW) {
      int m0, n0;
      tile_coords(tile, m0, n0);
      dst = c + m0 * kN + n0;
      ld = kN;
    } else {
      dst = part + (p * 2 + (s - FULLW)) * (BM * BN);
      ld = BN;
    }
    dst += trow * ld + tcol;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float *d = dst + ((i & 3) + (i >> 2) * 32) * ld;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        *reinterpret_cast<float4 *>(d + j * 16) =
            make_float4(acc[i][j * 4 + 0], acc[i][j * 4 + 1], acc[i][j * 4 + 2],
                        acc[i][j * 4 + 3]);
      }
    }
  }
  cp_wait<0>();
}

extern "C" __global__ void __launch_bounds__(256)
matmul_reduce(const float *__restrict__ b, float *__restrict__ c,
              const float *__restrict__ part) {
  // in this case the first launch has computed everything
  if (((reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c)) % 16) != 0) return;
  const int u = blockIdx.y;
  const int e = blockIdx.x * 256 + threadIdx.x;
  const int lo = u * KB;
  const int hi = lo + KB;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  const float4 *p4 = reinterpret_cast<const float4 *>(part);
  for (int p = u * NBLK / REM; p < NBLK; ++p) {
    const int s0 = p * SUNITS / NBLK;
    const int s1 = (p + 1) * SUNITS / NBLK;
    if (s0 >= hi) break;
    if (s1 <= lo) continue;
    const int slot = p * 2 + (u - s0 / KB);
    const float4 v = p4[slot * (BM * BN / 4) + e];
    sum.x += v.x;
    sum.y += v.y;
    sum.z += v.z;
    sum.w += v.w;
  }
  int m0, n0;
  tile_coords(FULL + u, m0, n0);
  const int row = e / (BN / 4);
  const int col = (e % (BN / 4)) * 4;
  *reinterpret_cast<float4 *>(c + (m0 + row) * kN + n0 + col) = sum;
}
