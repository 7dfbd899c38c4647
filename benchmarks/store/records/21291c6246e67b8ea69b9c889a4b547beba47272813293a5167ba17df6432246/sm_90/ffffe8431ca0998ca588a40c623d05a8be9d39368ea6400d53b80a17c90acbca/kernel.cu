constexpr int kRows = 65536;
constexpr int kCols = 4096;
constexpr int kVecs = kCols / 4;          // float4 per row
constexpr int kThreads = CFG - CFG % 32;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kRowBytes = kCols * 4;

__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

__device__ __forceinline__ float warp_max(float m) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    m = max_nan(m, __shfl_xor_sync(0xffffffffu, m, o));
  return m;
}

__device__ __forceinline__ float warp_sum(float s) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1)
    s += __shfl_xor_sync(0xffffffffu, s, o);
  return s;
}

__device__ __forceinline__ float4 load4(const float4 *p) {
  float4 v;
#if HINT == 2
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
#else
  asm volatile("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
#endif
  return v;
}

__device__ __forceinline__ void store4(float4 *p, float4 v) {
#if HINT == 1
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#else
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#endif
}

// e / s with r = 1 / s correctly rounded; s is in [1, 4096] or NaN.
__device__ __forceinline__ float div_by(float e, float s, float r) {
  float q = e * r;
  float rem = fmaf(-q, s, e);
  return fmaf(rem, r, q);
}

template <int N>
__device__ __forceinline__ float lane_max(const float4 (&v)[N]) {
  float a = v[0].x, b = v[0].y, c = v[0].z, d = v[0].w;
#pragma unroll
  for (int i = 1; i < N; ++i) {
    a = max_nan(a, v[i].x);
    b = max_nan(b, v[i].y);
    c = max_nan(c, v[i].z);
    d = max_nan(d, v[i].w);
  }
  return max_nan(max_nan(a, b), max_nan(c, d));
}

template <int N>
__device__ __forceinline__ float lane_exp_sum(float4 (&v)[N], float m) {
  float a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    v[i].x = expf(v[i].x - m);
    v[i].y = expf(v[i].y - m);
    v[i].z = expf(v[i].z - m);
    v[i].w = expf(v[i].w - m);
    a += v[i].x;
    b += v[i].y;
    c += v[i].z;
    d += v[i].w;
  }
  return (a + b) + (c + d);
}

__device__ __forceinline__ float4 div4(float4 v, float s, float r) {
  float4 o;
  o.x = div_by(v.x, s, r);
  o.y = div_by(v.y, s, r);
  o.z = div_by(v.z, s, r);
  o.w = div_by(v.w, s, r);
  return o;
}

// Any alignment: one warp per row, element by element.
__device__ __forceinline__ void softmax_unaligned(const float *x, float *y) {
  const int lane = threadIdx.x % 32;
  const int total = (int)gridDim.x * kWarps;
#pragma unroll 1
  for (int row = (int)blockIdx.x * kWarps + (int)threadIdx.x / 32; row < kRows; row += total) {
    const float *xr = x + (size_t)row * kCols;
    float *yr = y + (size_t)row * kCols;
    float m = xr[lane];
#pragma unroll 1
    for (int j = lane + 32; j < kCols; j += 32)
      m = max_nan(m, xr[j]);
    m = warp_max(m);
    float s = 0.0f;
#pragma unroll 1
    for (int j = lane; j < kCols; j += 32)
      s += expf(xr[j] - m);
    s = warp_sum(s);
    const float r = 1.0f / s;
#pragma unroll 1
    for (int j = lane; j < kCols; j += 32)
      yr[j] = div_by(expf(xr[j] - m), s, r);
  }
}

#if CFG % 32 == 0

// ---------------------------------------------------------------- one block per row
constexpr int kPer = kVecs / kThreads;    // float4 per thread
constexpr int kMinBlocks = kThreads == 128 ? 9 : (kThreads == 256 ? 6 : 4);

extern "C" __global__ void __launch_bounds__(kThreads, kMinBlocks)
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  if ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 != 0) {
    softmax_unaligned(x, y);
    return;
  }
  __shared__ float red_m[kWarps];
  __shared__ float red_s[kWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const unsigned base = blockIdx.x * (unsigned)kVecs + threadIdx.x;
  const float4 *xr = reinterpret_cast<const float4 *>(x) + base;

  float4 v[kPer];
#pragma unroll
  for (int i = 0; i < kPer; ++i)
    v[i] = load4(xr + i * kThreads);

  float m = warp_max(lane_max(v));
  if (lane == 0)
    red_m[warp] = m;
  __syncthreads();
  m = red_m[lane % kWarps];
#pragma unroll
  for (int o = kWarps / 2; o > 0; o >>= 1)
    m = max_nan(m, __shfl_xor_sync(0xffffffffu, m, o));

  float s = warp_sum(lane_exp_sum(v, m));
  if (lane == 0)
    red_s[warp] = s;
  __syncthreads();
  s = red_s[lane % kWarps];
#pragma unroll
  for (int o = kWarps / 2; o > 0; o >>= 1)
    s += __shfl_xor_sync(0xffffffffu, s, o);

  const float r = 1.0f / s;
  float4 *yr = reinterpret_cast<float4 *>(y) + base;
#pragma unroll
  for (int i = 0; i < kPer; ++i)
    store4(yr + i * kThreads, div4(v[i], s, r));
}

#else

// ------------------------------------------- persistent, one warp per row, bulk copies
__device__ __forceinline__ void issue_load(unsigned dst, const float *src, unsigned bar,
                                           unsigned long long policy) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(bar), "r"(kRowBytes) : "memory");
#if HINT == 2
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1], %2, [%3];"
               :: "r"(dst), "l"(src), "r"(kRowBytes), "r"(bar) : "memory");
#else
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".L2::cache_hint [%0], [%1], %2, [%3], %4;"
               :: "r"(dst), "l"(src), "r"(kRowBytes), "r"(bar), "l"(policy) : "memory");
#endif
}

__device__ __forceinline__ void wait_bar(unsigned bar, unsigned parity) {
  unsigned done;
  do {
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "}"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
  } while (done == 0);
}

__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
softmax_opt(const float *__restrict__ x, float *__restrict__ y) {
  if ((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 != 0) {
    softmax_unaligned(x, y);
    return;
  }
  extern __shared__ __align__(128) unsigned char smem[];
  constexpr int kind = CFG % 32;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;

  unsigned char *slot_bytes = smem + warp * (int)kRowBytes;
  const float4 *slot = reinterpret_cast<const float4 *>(slot_bytes);
  const unsigned slot_addr = (unsigned)__cvta_generic_to_shared(slot_bytes);
  const unsigned bar =
      (unsigned)__cvta_generic_to_shared(smem + kind * kWarps * (int)kRowBytes + warp * 8);

  unsigned long long policy = 0;
#if HINT != 2
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif

  const int stride = kWarps * (int)gridDim.x;
  int row = warp * (int)gridDim.x + (int)blockIdx.x;

  if (lane == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(1u) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    fence_async();
  }
  __syncwarp();
  if (lane == 0 && row < kRows)
    issue_load(slot_addr, x + (size_t)row * kCols, bar, policy);
  __syncwarp();

  unsigned parity = 0;
#pragma unroll 1
  for (; row < kRows; row += stride) {
    wait_bar(bar, parity);
    parity ^= 1u;
    __syncwarp();

    float4 v[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
      v[i] = slot[i * 32 + lane];
    const float m = warp_max(lane_max(v));

    // The row is in registers now: refill the slot while this row is computed.
    fence_async();
    __syncwarp();
    const int next = row + stride;
    if (lane == 0 && next < kRows)
      issue_load(slot_addr, x + (size_t)next * kCols, bar, policy);
    __syncwarp();

    const float s = warp_sum(lane_exp_sum(v, m));
    const float r = 1.0f / s;

#if CFG % 32 == 1
    float4 *yr = reinterpret_cast<float4 *>(y) + (size_t)row * kVecs + lane;
#pragma unroll
    for (int i = 0; i < 32; ++i)
      store4(yr + i * 32, div4(v[i], s, r));
#else
    unsigned char *out_bytes = smem + (kWarps + warp) * (int)kRowBytes;
    float4 *out = reinterpret_cast<float4 *>(out_bytes);
    // The previous bulk store must have read the slot before it is overwritten.
    if (lane == 0)
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 32; ++i)
      out[i * 32 + lane] = div4(v[i], s, r);
    fence_async();
    __syncwarp();
    if (lane == 0) {
      const unsigned out_addr = (unsigned)__cvta_generic_to_shared(out_bytes);
      float *dst = y + (size_t)row * kCols;
#if HINT == 1
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint "
                   "[%0], [%1], %2, %3;"
                   :: "l"(dst), "r"(out_addr), "r"(kRowBytes), "l"(policy) : "memory");
#else
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                   :: "l"(dst), "r"(out_addr), "r"(kRowBytes) : "memory");
#endif
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    __syncwarp();
#endif
  }

#if CFG % 32 == 2
  if (lane == 0)
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  __syncwarp();
#endif
}

#endif
