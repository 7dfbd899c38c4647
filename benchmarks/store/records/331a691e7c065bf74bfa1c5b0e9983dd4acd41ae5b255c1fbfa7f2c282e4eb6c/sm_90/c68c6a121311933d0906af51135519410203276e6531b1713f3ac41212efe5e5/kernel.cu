namespace {

constexpr int GM = 16384;
constexpr int GN = 2048;
constexpr int GK = 4096;

constexpr int BN = 128;
constexpr int NT = BM * 16 / TM;               // threads a block (TM x 8 outputs each)
constexpr int WARPS_M = BM / (4 * TM);         // warps along m; two along n
constexpr int ITERS = GK / BK;
constexpr int TILES_N = GN / BN;
constexpr int TILES = (GM / BM) * TILES_N;
constexpr int SLOTS = 33792 / BM;              // resident blocks: 264 or 132
constexpr int FULL = TILES / SLOTS * SLOTS;    // tiles computed in whole waves
constexpr int LEFT = TILES - FULL;             // tiles split along k
constexpr int TOT = LEFT * ITERS;
constexpr int STAGE = (BM + BN) * BK;          // floats a stage
constexpr int KW = BM * BK / NT / 4;           // a thread loads a 4 x KW block of A
constexpr int B_UNITS = BK * (BN / 4);
constexpr int B_LD = (B_UNITS + NT - 1) / NT;
constexpr int MINB = (BM == 128) ? 2 : 1;
constexpr int STS_STEP = BK * 3 / 4;

static_assert(KW == 1 || KW == 2 || KW == 4, "A loader");
static_assert(BK / KW == 4 || BK / KW == 8, "A loader mapping");
static_assert(LEFT > 0 && LEFT < SLOTS, "tail");

__device__ __forceinline__ bool all_aligned(const float *a, const float *b,
                                            const float *c) {
  return ((reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
           reinterpret_cast<uintptr_t>(c)) % 16) == 0;
}

__device__ __forceinline__ void cp_async16(unsigned dst, const float *src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src)
               : "memory");
}

__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}

__device__ __forceinline__ void load_a_global(float (&r)[4][KW], const float *p) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float *s = p + j * GK;
    if constexpr (KW == 4) {
      float4 v = __ldg(reinterpret_cast<const float4 *>(s));
      r[j][0] = v.x;
      r[j][1 % KW] = v.y;
      r[j][2 % KW] = v.z;
      r[j][3 % KW] = v.w;
    } else if constexpr (KW == 2) {
      float2 v = __ldg(reinterpret_cast<const float2 *>(s));
      r[j][0] = v.x;
      r[j][1 % KW] = v.y;
    } else {
      r[j][0] = __ldg(s);
    }
  }
}

__device__ __forceinline__ void store_a_shared(const float (&r)[4][KW], float *dst) {
#pragma unroll
  for (int q = 0; q < KW; ++q)
    *reinterpret_cast<float4 *>(dst + q * BM) =
        make_float4(r[0][q], r[1][q], r[2][q], r[3][q]);
}

__device__ __forceinline__ void load_b_async(unsigned dst, const float *p, int t) {
#pragma unroll
  for (int i = 0; i < B_LD; ++i) {
    if (B_UNITS % NT == 0 || t + i * NT < B_UNITS)
      cp_async16(dst + i * NT * 16, p + i * (NT / 32) * GN);
  }
}

__device__ __forceinline__ void load_frag(float (&af)[TM], float (&bf)[8],
                                          const float *pa, const float *pb) {
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    float4 v = *reinterpret_cast<const float4 *>(pb + j * 32);
    bf[j * 4 + 0] = v.x;
    bf[j * 4 + 1] = v.y;
    bf[j * 4 + 2] = v.z;
    bf[j * 4 + 3] = v.w;
  }
#pragma unroll
  for (int i = 0; i < TM / 4; ++i) {
    float4 v = *reinterpret_cast<const float4 *>(pa + i * 16);
    af[i * 4 + 0] = v.x;
    af[i * 4 + 1] = v.y;
    af[i * 4 + 2] = v.z;
    af[i * 4 + 3] = v.w;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(NT, MINB)
matmul_opt(const float *__restrict__ a, const float *__restrict__ b,
           float *__restrict__ c, float *__restrict__ part) {
  extern __shared__ __align__(16) float smem[];

  const int t = threadIdx.x;
  const int bid = blockIdx.x;

  if (!all_aligned(a, b, c)) {
    // Plain path for pointers without 16-byte alignment: one tile a block.
    if (bid >= TILES) return;
    const int row0 = (bid / TILES_N) * BM;
    const int col0 = (bid % TILES_N) * BN;
#pragma unroll 1
    for (int e = t; e < BM * BN; e += NT) {
      const float *pa = a + (size_t)(row0 + e / BN) * GK;
      const float *pb = b + (col0 + e % BN);
      float s = 0.0f;
#pragma unroll 1
      for (int k = 0; k < GK; ++k) s = fmaf(pa[k], pb[(size_t)k * GN], s);
      c[(size_t)(row0 + e / BN) * GN + col0 + e % BN] = s;
    }
    return;
  }

  const int lane = t & 31;
  const int warp = t >> 5;
  const int wm = warp % WARPS_M;
  const int wn = warp / WARPS_M;
  const int lm = (lane & 1) | ((lane >> 4) << 1);  // 0..3
  const int ln = (lane >> 1) & 7;                  // 0..7

  // A loader: a 4 x KW block of the tile for each thread.
  int mq, kq;
  if (BK / KW == 4) {
    mq = warp * 8 + (lane & 7);
    kq = lane >> 3;
  } else {
    mq = (warp >> 1) * 8 + (lane & 7);
    kq = (lane >> 3) + 4 * (warp & 1);
  }

  const int a_st = kq * KW * BM + mq * 4;               // where A goes in a stage
  const int a_fr = wm * (4 * TM) + lm * 4;              // A fragment in a stage
  const int b_fr = BK * BM + wn * 64 + ln * 4;          // B fragment in a stage
  const unsigned b_dst =
      (unsigned)__cvta_generic_to_shared(smem) + (unsigned)(BK * BM + t * 4) * 4u;

  int g, g_end;
  if (bid < FULL) {
    g = bid * ITERS;
    g_end = g + ITERS;
  } else {
    const int s = bid - FULL;
    g = FULL * ITERS + s * TOT / SLOTS;
    g_end = FULL * ITERS + (s + 1) * TOT / SLOTS;
  }

  int seg = 0;
#pragma unroll 1
  while (g < g_end) {
    const int tile = g / ITERS;
    const int kb = g - tile * ITERS;
    const int n = min(ITERS - kb, g_end - g);
    const int row0 = (tile / TILES_N) * BM;
    const int col0 = (tile % TILES_N) * BN;

    const float *pa = a + (size_t)(row0 + mq * 4) * GK + kb * BK + kq * KW;
    const float *pb = b + (size_t)(kb * BK + (t >> 5)) * GN + col0 + (t & 31) * 4;

    float acc[TM][8];
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

    float ar[4][KW];
    float af[2][TM];
    float bf[2][8];

    __syncthreads();  // an earlier segment may still be read
    load_b_async(b_dst, pb, t);
    load_a_global(ar, pa);
    store_a_shared(ar, smem + a_st);
    cp_async_wait();
    __syncthreads();

    int cur = 0;
    load_frag(af[0], bf[0], smem + a_fr, smem + b_fr);

#pragma unroll 1
    for (int it = 0; it < n; ++it) {
      // The last iteration fetches its own tile again; the copy is not used.
      const int adv = (it + 1 < n) ? BK : 0;
      pa += adv;
      pb += adv * GN;
      const int nxt = STAGE - cur;
      const float *sa = smem + cur + a_fr;
      const float *sb = smem + cur + b_fr;

#pragma unroll
      for (int kk = 0; kk < BK; ++kk) {
        const int p = kk & 1;
        if (kk == BK - 1) {
          cp_async_wait();
          __syncthreads();
          load_frag(af[p ^ 1], bf[p ^ 1], smem + nxt + a_fr, smem + nxt + b_fr);
        } else {
          load_frag(af[p ^ 1], bf[p ^ 1], sa + (kk + 1) * BM, sb + (kk + 1) * BN);
        }
        if (kk == 0) {
          load_a_global(ar, pa);
          load_b_async(b_dst + (unsigned)nxt * 4u, pb, t);
        }
        if (kk == STS_STEP) store_a_shared(ar, smem + nxt + a_st);
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
          for (int j = 0; j < 8; ++j)
            acc[i][j] = fmaf(af[p][i], bf[p][j], acc[i][j]);
      }
      cur = nxt;
    }

    // Store: straight to c, or to scratch if only a part of k was summed.
    float *o;
    int ld;
    if (n == ITERS) {
      o = c + (size_t)row0 * GN + col0;
      ld = GN;
    } else {
      o = part + (size_t)((bid - FULL) * 2 + seg) * (BM * BN);
      ld = BN;
    }
    o += (size_t)(wm * (4 * TM) + lm * 4) * ld + wn * 64 + ln * 4;
#pragma unroll
    for (int i = 0; i < TM / 4; ++i) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        float *q = o + (i * 16 + r) * ld;
        const int x = i * 4 + r;
        *reinterpret_cast<float4 *>(q) =
            make_float4(acc[x][0], acc[x][1], acc[x][2], acc[x][3]);
        *reinterpret_cast<float4 *>(q + 32) =
            make_float4(acc[x][4], acc[x][5], acc[x][6], acc[x][7]);
      }
    }

    g += n;
    ++seg;
  }
}

// Adds the parts of the tiles that were split along k.
extern "C" __global__ void __launch_bounds__(256)
matmul_fix(const float *__restrict__ a, const float *__restrict__ b,
           float *__restrict__ c, const float *__restrict__ part) {
  if (!all_aligned(a, b, c)) return;  // the plain path has written everything

  const int lt = blockIdx.y;
  const int g0 = lt * ITERS;
  const int g1 = g0 + ITERS - 1;
  const int s0 = ((g0 + 1) * SLOTS - 1) / TOT;
  const int s1 = ((g1 + 1) * SLOTS - 1) / TOT;
  const int q0 = ((s0 * TOT / SLOTS) / ITERS == lt) ? 0 : 1;

  const int base = blockIdx.x * 1024 + threadIdx.x;  // in float4

  float4 v[4];
  {
    const float4 *p =
        reinterpret_cast<const float4 *>(part + (size_t)(s0 * 2 + q0) * (BM * BN));
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = p[base + i * 256];
  }
#pragma unroll 1
  for (int s = s0 + 1; s <= s1; ++s) {
    const float4 *p =
        reinterpret_cast<const float4 *>(part + (size_t)(s * 2) * (BM * BN));
    float4 w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = p[base + i * 256];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[i].x += w[i].x;
      v[i].y += w[i].y;
      v[i].z += w[i].z;
      v[i].w += w[i].w;
    }
  }

  const int tile = FULL + lt;
  float *o = c + (size_t)((tile / TILES_N) * BM) * GN + (tile % TILES_N) * BN;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int idx = base + i * 256;
    *reinterpret_cast<float4 *>(o + (size_t)(idx >> 5) * GN + (idx & 31) * 4) = v[i];
  }
}
