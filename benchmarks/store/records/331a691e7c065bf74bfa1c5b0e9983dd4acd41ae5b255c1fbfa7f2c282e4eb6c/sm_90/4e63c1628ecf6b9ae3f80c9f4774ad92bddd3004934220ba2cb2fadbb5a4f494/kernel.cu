static constexpr int kM = 16384;
static constexpr int kN = 2048;
static constexpr int kK = 4096;

static constexpr int NSM = 132;
static constexpr int TM = 128;
static constexpr int TN = 128 / NG;
static constexpr int WM = WMT;                    // 32 or 64 rows a warp, 32 columns a warp
static constexpr int MT = WM / 16;
static constexpr int WARPS_M = TM / WM;
static constexpr int WARPS_N = TN / 32;
static constexpr int GT = WARPS_M * WARPS_N * 32; // threads a group
static constexpr int NT = GT * NG;                // threads a block
static constexpr int DBK = (NG == 1) ? 64 : 32;
static constexpr int DS = (NG == 1) ? 3 : 4;
static constexpr int ASZ = TM * DBK;
static constexpr int BSZ = DBK * TN;
static constexpr int STG = ASZ + BSZ;             // floats a stage
static constexpr int GRP_FLOATS = STG * DS;
static constexpr int RING_BYTES = GRP_FLOATS * 4 * NG;   // 196608

static constexpr int KJ = (WM == 64) ? 4 : 2;     // consecutive k a lane takes in a step
static constexpr int KSTEP = 4 * KJ;
static constexpr int NSTEP = DBK / KSTEP;
static constexpr int NU = NSTEP * MT;             // units (step, m-tile) of a k-block
static constexpr int JW = (MMAK / 4 < KJ) ? MMAK / 4 : KJ;   // k-slots an mma takes
static constexpr int Q = 4 * KJ / JW;             // mmas a unit
static constexpr int D = Q / 4;
static constexpr int CA = (2 * KJ) / (Q / 2);     // A conversions a slot in the second half

static constexpr int ACH = DBK / 4;               // 16-byte chunks of a row of A
static constexpr int BCH = TN / 4;
static constexpr int RA = GT / ACH;
static constexpr int RB = GT / BCH;
static constexpr int NA = TM / RA;
static constexpr int NB = DBK / RB;
static constexpr int NP = NA + NB;

static constexpr int NG_ALL = NSM * NG;
static constexpr int TCOLS = kN / TN;
static constexpr int TILES = (kM / TM) * TCOLS;
static constexpr int FULL = TILES / NG_ALL;       // whole tiles a group
static constexpr int REM = TILES - FULL * NG_ALL; // tiles shared along k
static constexpr int KB = kK / DBK;
static constexpr int PER = (REM * KB + NG_ALL - 1) / NG_ALL;

static_assert(NU % 2 == 0, "parity of the A buffers");
static_assert(RA % 4 == 0, "swizzle of A");
static_assert(RB % KJ == 0 && (((RB / KJ) & 3) == 0 || ((RB / KJ) & 3) == 2), "swizzle of B");
static_assert(PER < KB, "a tail share spans at most two tiles");
static_assert((NG_ALL - 1) * PER < REM * KB, "no empty tail share");

static constexpr bool B_TOGGLE = ((RB / KJ) & 3) == 2;

__device__ __forceinline__ void gbar(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(GT) : "memory");
}
__device__ __forceinline__ void cp16p(uint32_t dst, const float *src, int go) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.ne.s32 p, %2, 0;\n\t"
      "@p cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n\t"
      "}" ::"r"(dst), "l"(src), "r"(go) : "memory");
}
__device__ __forceinline__ void cp_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int NPEND>
__device__ __forceinline__ void cp_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(NPEND) : "memory");
}
__device__ __forceinline__ double widen(float x) {
  double d;
  asm volatile("cvt.f64.f32 %0, %1;" : "=d"(d) : "f"(x));
  return d;
}

template <int W>
__device__ __forceinline__ void mma_f64(double (&c)[4], const double (&a)[2 * KJ],
                                        const double (&b)[KJ], const int jb) {
  if constexpr (W == 1) {
    asm volatile(
        "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[2 * jb]), "d"(a[2 * jb + 1]), "d"(b[jb]));
  } else if constexpr (W == 2) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[2 * jb]), "d"(a[2 * jb + 1]), "d"(a[2 * jb + 2]), "d"(a[2 * jb + 3]),
          "d"(b[jb]), "d"(b[jb + 1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[2 * jb]), "d"(a[2 * jb + 1]), "d"(a[2 * jb + 2]), "d"(a[2 * jb + 3]),
          "d"(a[2 * jb + 4]), "d"(a[2 * jb + 5]), "d"(a[2 * jb + 6]), "d"(a[2 * jb + 7]),
          "d"(b[jb]), "d"(b[jb + 1]), "d"(b[jb + 2]), "d"(b[jb + 3]));
  }
}

// The work of a group: FULL whole tiles, then one or two pieces of tail tiles.
__device__ __forceinline__ void seg_info(int seg, int gid, int &tile, int &kb0, int &len) {
  if (seg < FULL) {
    tile = seg * NG_ALL + gid;
    kb0 = 0;
    len = KB;
  } else {
    const int f0 = gid * PER;
    const int f1 = min(f0 + PER, REM * KB);
    const int t0 = f0 / KB;
    const int e0 = min(f1, (t0 + 1) * KB);
    if (seg == FULL) {
      tile = FULL * NG_ALL + t0;
      kb0 = f0 - t0 * KB;
      len = e0 - f0;
    } else {
      tile = FULL * NG_ALL + t0 + 1;
      kb0 = 0;
      len = (seg == FULL + 1) ? f1 - e0 : 0;
    }
  }
}

extern "C" __global__ void __launch_bounds__(NT, 1)
matmul_opt(const float *a, const float *b, float *c, int *ctr, float *part) {
  extern __shared__ __align__(16) unsigned char smem_raw[];

  if (((reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) |
        reinterpret_cast<uintptr_t>(c)) & 15) != 0) {
    // only has to be right
    const int total = kM * kN;
#pragma unroll 1
    for (int idx = blockIdx.x * NT + threadIdx.x; idx < total; idx += gridDim.x * NT) {
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

  const int grp = (NG == 1) ? 0 : (int)threadIdx.x / GT;
  const int tid = (NG == 1) ? (int)threadIdx.x : (int)threadIdx.x % GT;
  const int gid = blockIdx.x * NG + grp;
  const int barid = grp + 1;
  float *sm = reinterpret_cast<float *>(smem_raw) + grp * GRP_FLOATS;
  volatile int *slot = reinterpret_cast<volatile int *>(smem_raw + RING_BYTES + grp * 16);
  const uint32_t sbase = (uint32_t)__cvta_generic_to_shared(sm);

  const int lane = tid & 31;
  const int w = tid >> 5;
  const int wm = w / WARPS_N;
  const int wn = w % WARPS_N;
  const int g = lane >> 2;
  const int t = lane & 3;

  // ---- copy roles
  const int ar = tid / ACH;
  const int ac = tid % ACH;
  const int br = tid / BCH;
  const int bc = tid % BCH;
  const int swa_w = ((ar & 1) << 2) | (ar & 2);
  const int swb_w = ((br / KJ) & 3) << 1;
  const uint32_t wA = sbase + (uint32_t)(ar * DBK + ((ac ^ swa_w) << 2)) * 4u;
  const uint32_t wB0 = sbase + (uint32_t)(ASZ + br * TN + ((bc ^ swb_w) << 2)) * 4u;
  const uint32_t wB1 = B_TOGGLE
      ? sbase + (uint32_t)(ASZ + br * TN + ((bc ^ swb_w ^ 4) << 2)) * 4u
      : wB0;

  int p_seg = 0;
  int p_left = 0;
  const float *pA = a;
  const float *pB = b;
  auto p_setup = [&]() {
    int tile, kb0, len;
    seg_info(p_seg, gid, tile, kb0, len);
    p_left = len;
    const int row0 = (tile / TCOLS) * TM;
    const int col0 = (tile % TCOLS) * TN;
    pA = a + ((size_t)(row0 + ar) * kK + kb0 * DBK + ac * 4);
    pB = b + ((size_t)(kb0 * DBK + br) * kN + col0 + bc * 4);
  };
  auto piece = [&](const int p, const uint32_t off, const int go) {
    if (p < NA) {
      cp16p(wA + off + (uint32_t)(p * RA * DBK) * 4u, pA + p * RA * kK, go);
    } else {
      const int i = p - NA;
      cp16p(((i & 1) ? wB1 : wB0) + off + (uint32_t)(i * RB * TN) * 4u, pB + i * RB * kN, go);
    }
  };
  auto p_advance = [&]() {
    pA += DBK;
    pB += DBK * kN;
    if (--p_left == 0) {
      ++p_seg;
      p_setup();
    }
  };

  // ---- fragment reads: k-slot j of lane t stands for k = 4*KJ*s + KJ*t + j
  const int swa_r = ((g & 1) << 2) | (g & 2);
  const int ia0 = (wm * WM + g) * DBK +
                  ((KJ == 4) ? ((t ^ swa_r) << 2) : ((((t >> 1) ^ swa_r) << 2) + ((t & 1) << 1)));
  const int ib0 = ASZ + KJ * t * TN + wn * 32 + ((g ^ (2 * t)) << 2);

  float ra[2 * KJ];
  float rb[KJ][4];
  double da[2][2 * KJ];
  double db[4][KJ];
  double acc[MT][4][4];

  auto load_a = [&](const int stage, const int s, const int mt) {
    const float *p = sm + (((stage + ia0) ^ ((s * KSTEP) & 31)) + ((s * KSTEP) & ~31) + mt * 16 * DBK);
    if constexpr (KJ == 4) {
      const float4 v0 = *reinterpret_cast<const float4 *>(p);
      const float4 v1 = *reinterpret_cast<const float4 *>(p + 8 * DBK);
      ra[0] = v0.x; ra[1] = v0.y; ra[KJ - 2] = v0.z; ra[KJ - 1] = v0.w;
      ra[KJ] = v1.x; ra[KJ + 1] = v1.y; ra[2 * KJ - 2] = v1.z; ra[2 * KJ - 1] = v1.w;
    } else {
      const float2 v0 = *reinterpret_cast<const float2 *>(p);
      const float2 v1 = *reinterpret_cast<const float2 *>(p + 8 * DBK);
      ra[0] = v0.x; ra[1] = v0.y;
      ra[KJ] = v1.x; ra[KJ + 1] = v1.y;
    }
  };
  auto load_b = [&](const int stage, const int s) {
    const float *p = sm + (stage + ib0 + s * KSTEP * TN);
#pragma unroll
    for (int j = 0; j < KJ; ++j) {
      const float4 v = *reinterpret_cast<const float4 *>(p + j * TN);
      rb[j][0] = v.x; rb[j][1] = v.y; rb[j][2] = v.z; rb[j][3] = v.w;
    }
  };
  // value i of an A fragment: k-slot i/2, row g + 8*(i%2)
  auto cvt_a = [&](const int buf, const int i) {
    da[buf][i] = widen(ra[(i & 1) * KJ + (i >> 1)]);
  };
  // the B values that mma number q of a unit uses
  auto cvt_b = [&](const int q) {
    const int n = q & 3;
    const int jb = (q >> 2) * JW;
#pragma unroll
    for (int e = 0; e < JW; ++e) db[n][jb + e] = widen(rb[jb + e][n]);
  };

  // ---- fill the ring
  p_setup();
#pragma unroll
  for (int s = 0; s < DS - 1; ++s) {
#pragma unroll
    for (int p = 0; p < NP; ++p) piece(p, (uint32_t)(s * STG) * 4u, 1);
    cp_commit();
    p_advance();
  }
  cp_wait<DS - 2>();
  gbar(barid);
  load_a(0, 0, 0);
  load_b(0, 0);
#pragma unroll
  for (int i = 0; i < 2 * KJ; ++i) cvt_a(0, i);
#pragma unroll
  for (int q = 0; q < Q; ++q) cvt_b(q);

  int rd = 0;
  int wr = (DS - 1) * STG;

#pragma unroll 1
  for (int seg = 0; seg < FULL + 2; ++seg) {
    int len;
    {
      int tile_, kb0_;
      seg_info(seg, gid, tile_, kb0_, len);
    }
    if (len <= 0) break;

#pragma unroll
    for (int m = 0; m < MT; ++m)
#pragma unroll
      for (int n = 0; n < 4; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) acc[m][n][i] = 0.0;

#pragma unroll 1
    for (int kt = 0; kt < len; ++kt) {
      int nrd = rd + STG;
      if (nrd == DS * STG) nrd = 0;
      const int go = p_left > 0 ? 1 : 0;
      const uint32_t woff = (uint32_t)wr * 4u;

#pragma unroll
      for (int u = 0; u < NU; ++u) {
        const int s = u / MT;
        const int mt = u % MT;
        const int cur = u & 1;
        if (u == NU - 1) {
          // every read of this stage is done; the next stage is needed now
          cp_commit();
          cp_wait<DS - 2>();
          gbar(barid);
          load_a(nrd, 0, 0);
          load_b(nrd, 0);
        } else {
          load_a(rd, (u + 1) / MT, (u + 1) % MT);
        }
#pragma unroll
        for (int q = 0; q < Q; ++q) {
          mma_f64<JW>(acc[mt][q & 3], da[cur], db[q & 3], (q >> 2) * JW);
          if (mt == 0 && q < D) cvt_b(Q - D + q);
          if (mt == MT - 1 && q >= D) cvt_b(q - D);
          if (q >= Q / 2) {
#pragma unroll
            for (int e = 0; e < CA; ++e) cvt_a(cur ^ 1, (q - Q / 2) * CA + e);
          }
          if (q == Q / 4) {
#pragma unroll
            for (int p = 0; p < NP; ++p)
              if (p * (NU - 1) / NP == u) piece(p, woff, go);
          }
          if (s < NSTEP - 1 && mt == MT - 2 && q == Q / 2) load_b(rd, s + 1);
        }
      }

      if (go) p_advance();
      wr = rd;
      rd = nrd;
    }

    // ---- epilogue: column i of n-tile j stands for column 4i+j, so a thread owns 8t..8t+7
    int tile, kb0, len2;
    seg_info(seg, gid, tile, kb0, len2);
    const int row0 = (tile / TCOLS) * TM;
    const int col0 = (tile % TCOLS) * TN;
    float *ct = c + ((size_t)row0 * kN + col0);
    float *dst = ct;
    int ldd = kN;
    if (seg >= FULL) {
      dst = part + (size_t)(2 * gid + (seg - FULL)) * (TM * TN);
      ldd = TN;
    }
    float *o = dst + (size_t)(wm * WM + g) * ldd + wn * 32 + 8 * t;
#pragma unroll
    for (int m = 0; m < MT; ++m)
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

    if (seg >= FULL) {
      const int tt = tile - FULL * NG_ALL;
      const int q0 = (tt * KB) / PER;
      const int q1 = ((tt + 1) * KB - 1) / PER;
      __threadfence();
      gbar(barid);
      if (tid == 0) *slot = atomicAdd(ctr + tt, 1);
      gbar(barid);
      if (*slot == q1 - q0) {
        // the last contributor adds the pieces in a fixed order
        __threadfence();
        const int s0 = ((q0 * PER) / KB == tt) ? 2 * q0 : 2 * q0 + 1;
        const float4 *pp = reinterpret_cast<const float4 *>(part);
        constexpr int PV = TM * TN / 4;
#pragma unroll 4
        for (int i = tid; i < PV; i += GT) {
          float4 sv = __ldcg(pp + (size_t)s0 * PV + i);
#pragma unroll 1
          for (int q = q0 + 1; q <= q1; ++q) {
            const float4 v = __ldcg(pp + (size_t)(2 * q) * PV + i);
            sv.x += v.x;
            sv.y += v.y;
            sv.z += v.z;
            sv.w += v.w;
          }
          *reinterpret_cast<float4 *>(ct + (size_t)(i / BCH) * kN + (i % BCH) * 4) = sv;
        }
      }
    }
  }
  cp_wait<0>();
}
