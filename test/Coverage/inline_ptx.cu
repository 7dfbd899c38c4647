// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Instructions written by hand in kernels.

__device__ __forceinline__ float loadReadOnly(const float *p) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}

extern "C" __global__ void ptx_loads(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(in + i));
    float v = loadReadOnly(in + i);
    asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(out + i), "f"(v)
                 : "memory");
  }
}

extern "C" __global__ void ptx_vector_loads(const float4 *in, float4 *out,
                                            int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, "
               "[%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(in + i));
  asm volatile(
      "st.global.L1::no_allocate.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(out + i),
      "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
      : "memory");
}

extern "C" __global__ void ptx_red(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    asm volatile("red.global.add.f32 [%0], %1;" ::"l"(out), "f"(in[i])
                 : "memory");
}

extern "C" __global__ void ptx_red_vector(const float4 *in, float4 *out,
                                          int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = in[i];
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(out),
                 "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
  }
}

extern "C" __global__ void ptx_predicated(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = 0;
  asm volatile("{\n"
               "  .reg .pred p;\n"
               "  setp.lt.s32 p, %1, %2;\n"
               "  @p ld.global.s32 %0, [%3];\n"
               "}"
               : "+r"(v)
               : "r"(i), "r"(n), "l"(in + i));
  out[i] = v;
}

extern "C" __global__ void ptx_acquire_release(const int *in, int *out,
                                               int *flag, int n) {
  // The first block gives, the second takes.
  if (blockIdx.x == 0) {
    for (int i = threadIdx.x; i < n; i += blockDim.x)
      out[i] = in[i] * 2;
    __syncthreads();
    if (threadIdx.x == 0)
      asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    if (threadIdx.x == 0) {
      int seen;
      do
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(flag)
                     : "memory");
      while (!seen);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
      out[n + i] = out[i] + 1;
  }
}

extern "C" __global__ void ptx_named_barriers(const int *in, int *out) {
  __shared__ int buffer[64];
  int t = threadIdx.x; // 128: half of them produce.
  if (t < 64) {
    buffer[t] = in[blockIdx.x * 64 + t] + 1;
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[blockIdx.x * 64 + t - 64] = buffer[127 - t] - 1;
  }
}

extern "C" __global__ void ptx_mbarrier_bulk(const float *in, float *out,
                                             int tiles) {
  __shared__ alignas(128) float buffer[256];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
  unsigned to = (unsigned)__cvta_generic_to_shared(buffer);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  float sum = 0.f;
  for (int k = 0; k < tiles; ++k) {
    if (threadIdx.x == 0) {
      asm volatile(
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
          "r"(1024)
          : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx"
                   "::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                   "l"(in + k * 256), "r"(1024), "r"(bar)
                   : "memory");
    }
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "again:\n"
                 "  mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "  @p bra.uni done;\n"
                 "  bra.uni again;\n"
                 "done:\n"
                 "}" ::"r"(bar),
                 "r"(k & 1)
                 : "memory");
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
      sum += buffer[i];
    __syncthreads();
  }
  atomicAdd(out, sum);
}

extern "C" __global__ void ptx_bulk_store(const float *in, float *out) {
  __shared__ alignas(128) float buffer[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    buffer[i] = in[blockIdx.x * 256 + i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned from = (unsigned)__cvta_generic_to_shared(buffer);
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;" ::"l"(
            out + blockIdx.x * 256),
        "r"(from)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

extern "C" __global__ void ptx_special_registers(unsigned *out) {
  unsigned lane, warp, smid, threads;
  unsigned long long clock;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
  asm volatile("mov.u32 %0, %%ntid.x;" : "=r"(threads));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(clock));
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      lane + (smid < 1024 && clock > 0 && warp < 64 ? 0 : 1000) + threads;
}

extern "C" __global__ void ptx_packed_half(const float2 *in, unsigned *out,
                                           int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned h;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(in[i].y), "f"(in[i].x));
  asm("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(h) : "r"(0x3C003C00u), "r"(0u));
  asm("max.f16x2 %0, %0, %1;" : "+r"(h) : "r"(0u));
  out[i] = h;
}

extern "C" __global__ void ptx_elect_one(const int *in, int *out) {
  unsigned isElected = 0;
  asm volatile("{\n"
               "  .reg .pred p;\n"
               "  elect.sync _|p, 0xffffffff;\n"
               "  selp.b32 %0, 1, 0, p;\n"
               "}"
               : "=r"(isElected));
  int sum = __reduce_add_sync(~0u, in[blockIdx.x * 32 + threadIdx.x]);
  if (isElected)
    out[blockIdx.x] = sum;
}
