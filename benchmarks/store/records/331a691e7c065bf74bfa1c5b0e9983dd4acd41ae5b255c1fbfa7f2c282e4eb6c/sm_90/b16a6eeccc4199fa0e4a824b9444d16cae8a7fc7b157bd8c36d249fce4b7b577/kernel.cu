static constexpr int kM = 16384;
static constexpr int kN = 2048;
static constexpr int kK = 4096;

// f32 FMA group: 128x128 tile, A transposed in shared memory
static constexpr int FBK = 16;
static constexpr int FS = 4;
static constexpr int FAS = 132;
static constexpr int FSTG = FBK * FAS + FBK * 128;      // floats a stage (4160)

// f64 mma group: 128x64 tile, f32 in shared memory, widened in registers
static constexpr int DBK = 32;
static constexpr int DS = 3;
static constexpr int DAS = 36;
static constexpr int DBS = 72;
static constexpr int DSTG = 128 * DAS + DBK * DBS;      // floats a stage (6912)

static constexpr int GRP_BYTES = 82944;                 // >= both groups' needs
static constexpr int SPLIT = 4;
static constexpr int TILES = (kM / 128) * (kN / 128);   // 2048
static constexpr int MAIN_TILES = TILES - TAILT;
static constexpr int TOTAL_ITEMS = MAIN_TILES + TAILT * SPLIT;

__device__ __forceinline__ void gbar(int id) {
  asm volatile("bar.sync %0, 256;" ::"r"(id) : "memory");
}
__device__ __forceinline__ void cp4(uint32_t dst, const float *src) {
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp16(uint32_t dst, const float *src) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int NPEND>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(NPEND) : "memory");
}

// ---------------------------------------------------------------- f32 group
__device__ __forceinline__ void run_f(const float *a, const float *b, float *dst, int ldd,
                                      int row0, int col0, int k0, int kiters,
                                      float *sm, int tid, int barid) {
  const int lane = tid & 31;
  const int w = tid >> 5;
  const uint32_t sbase = (uint32_t)__cvta_generic_to_shared(sm);

  // copy roles
  const int ck = lane & 7;
  const int cm = w * 16 + (lane >> 3);
  const float *pA = a + (size_t)(row0 + cm) * kK + k0 + ck;
  const uint32_t wA = sbase + (uint32_t)(ck * FAS + cm) * 4u;
  const int br = tid >> 5;
  const int bc = (tid & 31) * 4;
  const float *pB = b + (size_t)(k0 + br) * kN + col0 + bc;
  const uint32_t wB = sbase + (uint32_t)(FBK * FAS + br * 128 + bc) * 4u;

  // compute roles: 4 x 2 warps of 32 x 64, lanes 4 x 8 interleaved
  const int wm = w >> 1;
  const int wn = w & 1;
  const int ty = (lane & 1) | ((lane >> 4) << 1);
  const int tx = (lane >> 1) & 7;
  const float *rdA = sm + wm * 32 + ty * 4;
  const float *rdB = sm + FBK * FAS + wn * 64 + tx * 4;

  auto issue = [&](int off) {
    const uint32_t dA = wA + (uint32_t)off * 4u;
    const uint32_t dB = wB + (uint32_t)off * 4u;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      cp4(dA + (uint32_t)((i & 1) * 8 * FAS + (i >> 1) * 4) * 4u,
          pA + (i >> 1) * 4 * kK + (i & 1) * 8);
    cp16(dB, pB);
    cp16(dB + 8u * 128u * 4u, pB + 8 * kN);
    pA += FBK;
    pB += FBK * kN;
  };

  float acc[8][8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) acc[i][j] = 0.0f;

  float fa[2][8], fb[2][8];
  auto loadfrag = [&](int buf, int off, int kk) {
    const float4 a0 = *reinterpret_cast<const float4 *>(rdA + off + kk * FAS);
    const float4 a1 = *reinterpret_cast<const float4 *>(rdA + off + kk * FAS + 16);
    const float4 b0 = *reinterpret_cast<const float4 *>(rdB + off + kk * 128);
    const float4 b1 = *reinterpret_cast<const float4 *>(rdB + off + kk * 128 + 32);
    fa[buf][0] = a0.x; fa[buf][1] = a0.y; fa[buf][2] = a0.z; fa[buf][3] = a0.w;
    fa[buf][4] = a1.x; fa[buf][5] = a1.y; fa[buf][6] = a1.z; fa[buf][7] = a1.w;
    fb[buf][0] = b0.x; fb[buf][1] = b0.y; fb[buf][2] = b0.z; fb[buf][3] = b0.w;
    fb[buf][4] = b1.x; fb[buf][5] = b1.y; fb[buf][6] = b1.z; fb[buf][7] = b1.w;
  };

  gbar(barid);
#pragma unroll
  for (int s = 0; s < FS - 1; ++s) {
    issue(s * FSTG);
    cp_commit();
  }
  cp_wait<FS - 2>();
  gbar(barid);
  loadfrag(0, 0, 0);

  int rd = 0;
  int wr = (FS - 1) * FSTG;
#pragma unroll 1
  for (int kt = 0; kt < kiters; ++kt) {
    if (kt + FS - 1 < kiters) issue(wr);
    cp_commit();
    int nrd = rd + FSTG;
    if (nrd == FS * FSTG) nrd = 0;
#pragma unroll
    for (int kk = 0; kk < FBK; ++kk) {
      const int cur = kk & 1;
      if (kk == FBK - 1) {
        cp_wait<FS - 2>();
        gbar(barid);
        loadfrag(cur ^ 1, nrd, 0);
      } else {
        loadfrag(cur ^ 1, rd, kk + 1);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
          acc[i][j] = fmaf(fa[cur][i], fb[cur][j], acc[i][j]);
    }
    wr = rd;
    rd = nrd;
  }

  float *o = dst + (size_t)(wm * 32 + ty * 4) * ldd + wn * 64 + tx * 4;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float *p = o + (size_t)((i & 3) + (i >> 2) * 16) * ldd;
    *reinterpret_cast<float4 *>(p) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
    *reinterpret_cast<float4 *>(p + 32) = make_float4(acc[i][4], acc[i][5], acc[i][6], acc[i][7]);
  }
}

// ---------------------------------------------------------------- f64 group
__device__ __forceinline__ void mma_row(double (&acc)[4][4], const double (&da)[4],
                                        const double (&db)[4][2]) {
#if MMAK == 8
#pragma unroll
  for (int n = 0; n < 4; ++n)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(acc[n][0]), "+d"(acc[n][1]), "+d"(acc[n][2]), "+d"(acc[n][3])
        : "d"(da[0]), "d"(da[1]), "d"(da[2]), "d"(da[3]), "d"(db[n][0]), "d"(db[n][1]));
#else
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int n = 0; n < 4; ++n)
      asm volatile(
          "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
          "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
          : "+d"(acc[n][0]), "+d"(acc[n][1]), "+d"(acc[n][2]), "+d"(acc[n][3])
          : "d"(da[2 * h]), "d"(da[2 * h + 1]), "d"(db[n][h]));
#endif
}

__device__ __forceinline__ void run_d(const float *a, const float *b, float *dst, int ldd,
                                      int row0, int col0, int k0, int kiters,
                                      float *sm, int tid, int barid) {
  const int lane = tid & 31;
  const int w = tid >> 5;
  const uint32_t sbase = (uint32_t)__cvta_generic_to_shared(sm);

  // copy roles
  const int ar = tid >> 3;
  const int ac = (tid & 7) * 4;
  const float *pA = a + (size_t)(row0 + ar) * kK + k0 + ac;
  const uint32_t wA = sbase + (uint32_t)(ar * DAS + ac) * 4u;
  const int br = tid >> 4;
  const int bc = (tid & 15) * 4;
  const float *pB = b + (size_t)(k0 + br) * kN + col0 + bc;
  const uint32_t wB = sbase + (uint32_t)(128 * DAS + br * DBS + bc) * 4u;

  // compute roles: 4 x 2 warps of 32 x 32
  const int wm = w >> 1;
  const int wn = w & 1;
  const int g = lane >> 2;
  const int t = lane & 3;
  const float *rdA = sm + (wm * 32 + g) * DAS + t;
  const float *rdB = sm + 128 * DAS + t * DBS + wn * 32 + 4 * g;

  auto issue = [&](int off) {
    const uint32_t dA = wA + (uint32_t)off * 4u;
    const uint32_t dB = wB + (uint32_t)off * 4u;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      cp16(dA + (uint32_t)(i * 32 * DAS) * 4u, pA + i * 32 * kK);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      cp16(dB + (uint32_t)(i * 16 * DBS) * 4u, pB + i * 16 * kN);
    pA += DBK;
    pB += DBK * kN;
  };

  double acc[2][4][4];
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[m][n][i] = 0.0;

  float ra[2][4];
  float4 rb0, rb1;
  auto loadraw = [&](int off, int s) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const float *p = rdA + off + m * 16 * DAS + s * 8;
      ra[m][0] = p[0];
      ra[m][1] = p[8 * DAS];
      ra[m][2] = p[4];
      ra[m][3] = p[8 * DAS + 4];
    }
    const float *q = rdB + off + s * 8 * DBS;
    rb0 = *reinterpret_cast<const float4 *>(q);
    rb1 = *reinterpret_cast<const float4 *>(q + 4 * DBS);
  };

  gbar(barid);
#pragma unroll
  for (int s = 0; s < DS - 1; ++s) {
    issue(s * DSTG);
    cp_commit();
  }
  cp_wait<DS - 2>();
  gbar(barid);
  loadraw(0, 0);

  int rd = 0;
  int wr = (DS - 1) * DSTG;
#pragma unroll 1
  for (int kt = 0; kt < kiters; ++kt) {
    if (kt + DS - 1 < kiters) issue(wr);
    cp_commit();
    int nrd = rd + DSTG;
    if (nrd == DS * DSTG) nrd = 0;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
      double da[2][4], db[4][2];
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i) da[m][i] = (double)ra[m][i];
      db[0][0] = (double)rb0.x; db[1][0] = (double)rb0.y;
      db[2][0] = (double)rb0.z; db[3][0] = (double)rb0.w;
      db[0][1] = (double)rb1.x; db[1][1] = (double)rb1.y;
      db[2][1] = (double)rb1.z; db[3][1] = (double)rb1.w;
      if (s < 3) loadraw(rd, s + 1);
      mma_row(acc[0], da[0], db);
      if (s == 3) {
        cp_wait<DS - 2>();
        gbar(barid);
        loadraw(nrd, 0);
      }
      mma_row(acc[1], da[1], db);
    }
    wr = rd;
    rd = nrd;
  }

  // column c of n-tile j stands for column 4c+j: a thread owns columns 8t..8t+7
  float *o = dst + (size_t)(wm * 32 + g) * ldd + wn * 32 + 8 * t;
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float *p = o + (size_t)(m * 16 + h * 8) * ldd;
      *reinterpret_cast<float4 *>(p) =
          make_float4((float)acc[m][0][2 * h], (float)acc[m][1][2 * h],
                      (float)acc[m][2][2 * h], (float)acc[m][3][2 * h]);
      *reinterpret_cast<float4 *>(p + 4) =
          make_float4((float)acc[m][0][2 * h + 1], (float)acc[m][1][2 * h + 1],
                      (float)acc[m][2][2 * h + 1], (float)acc[m][3][2 * h + 1]);
    }
}

// ---------------------------------------------------------------- persistent loop of a group
template <bool IS_F>
__device__ __forceinline__ void group_loop(const float *a, const float *b, float *c,
                                           int *ctr, float *part,
                                           float *sm, volatile int *slot,
                                           int tid, int barid) {
#pragma unroll 1
  while (true) {
    gbar(barid);
    if (tid == 0) *slot = atomicAdd(ctr, 1);
    gbar(barid);
    const int item = *slot;
    if (item >= TOTAL_ITEMS) break;

    int tile = item;
    int tt = -1;
    int k0 = 0;
    int klen = kK;
    if (item >= MAIN_TILES) {
      const int x = item - MAIN_TILES;
      tt = x / SPLIT;
      tile = MAIN_TILES + tt;
      k0 = (x % SPLIT) * (kK / SPLIT);
      klen = kK / SPLIT;
    }
    const int row0 = (tile >> 4) * 128;
    const int col0 = (tile & 15) * 128;
    float *dst;
    int ldd;
    if (tt < 0) {
      dst = c + (size_t)row0 * kN + col0;
      ldd = kN;
    } else {
      dst = part + (size_t)(item - MAIN_TILES) * 16384;
      ldd = 128;
    }

    if constexpr (IS_F) {
      run_f(a, b, dst, ldd, row0, col0, k0, klen / FBK, sm, tid, barid);
    } else {
#pragma unroll 1
      for (int nh = 0; nh < 2; ++nh)
        run_d(a, b, dst + nh * 64, ldd, row0, col0 + nh * 64, k0, klen / DBK, sm, tid, barid);
    }

    if (tt >= 0) {
      __threadfence();
      gbar(barid);
      if (tid == 0) *slot = atomicAdd(ctr + 1 + tt, 1);
      gbar(barid);
      if (*slot == SPLIT - 1) {
        __threadfence();
        const float4 *p = reinterpret_cast<const float4 *>(part) + (size_t)tt * SPLIT * 4096;
        float *o = c + (size_t)row0 * kN + col0;
#pragma unroll 2
        for (int i = tid; i < 4096; i += 256) {
          float4 s = __ldcg(p + i);
#pragma unroll
          for (int q = 1; q < SPLIT; ++q) {
            const float4 v = __ldcg(p + q * 4096 + i);
            s.x += v.x;
            s.y += v.y;
            s.z += v.z;
            s.w += v.w;
          }
          *reinterpret_cast<float4 *>(o + (size_t)(i >> 5) * kN + (i & 31) * 4) = s;
        }
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(512, 1)
matmul_opt(const float *a, const float *b, float *c, int *ctr, float *part) {
  extern __shared__ __align__(16) unsigned char smem_raw[];

  if (((reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
        reinterpret_cast<uintptr_t>(c)) & 15) != 0) {
    // only has to be right
    const int total = kM * kN;
#pragma unroll 1
    for (int idx = blockIdx.x * 512 + threadIdx.x; idx < total; idx += gridDim.x * 512) {
      const int r = idx / kN;
      const int cc = idx % kN;
      float s = 0.0f;
#pragma unroll 4
      for (int k = 0; k < kK; ++k)
        s = fmaf(a[(size_t)r * kK + k], b[(size_t)k * kN + cc], s);
      c[idx] = s;
    }
    return;
  }

  const int grp = threadIdx.x >> 8;
  const int tid = threadIdx.x & 255;
  float *sm = reinterpret_cast<float *>(smem_raw + grp * GRP_BYTES);
  volatile int *slot = reinterpret_cast<volatile int *>(smem_raw + 2 * GRP_BYTES + grp * 16);
  const int barid = grp + 1;

#if MODE == 0
  if (grp == 0)
    group_loop<true>(a, b, c, ctr, part, sm, slot, tid, barid);
  else
    group_loop<false>(a, b, c, ctr, part, sm, slot, tid, barid);
#elif MODE == 1
  group_loop<false>(a, b, c, ctr, part, sm, slot, tid, barid);
#else
  group_loop<true>(a, b, c, ctr, part, sm, slot, tid, barid);
#endif
}
