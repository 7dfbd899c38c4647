// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What kernels for sm_90 use beside matrices.

__device__ unsigned sharedAddress(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}

extern "C" __global__ void hopper_cache_policy(const float4 *in, float4 *out,
                                               int n) {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;"
               : "=l"(policy));
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 v;
  asm volatile("ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(in + i), "l"(policy));
  out[i] = v;
}

extern "C" __global__ void hopper_stmatrix(const unsigned *in, unsigned *out) {
  __shared__ alignas(16) unsigned tile[128];
  unsigned lane = threadIdx.x;
  uint4 v = reinterpret_cast<const uint4 *>(in)[lane];
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
          sharedAddress(&tile[lane * 4])),
      "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
      : "memory");
  __syncwarp();
  unsigned a, b, c, d;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(sharedAddress(&tile[lane * 4])));
  reinterpret_cast<uint4 *>(out)[lane] = make_uint4(a, b, c, d);
}

extern "C" __global__ void hopper_dependent_launch(const float *in, float *out,
                                                   int n) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i];
  asm volatile("griddepcontrol.launch_dependents;");
}

// One warp brings tiles, the others take them; two barriers a stage.
extern "C" __global__ void hopper_warp_specialised(const float *in, float *out,
                                                   int tiles) {
  __shared__ alignas(128) float stages[2][256];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(
          sharedAddress(&full[s])));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 96;" ::"r"(
          sharedAddress(&empty[s])));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  auto wait = [](unsigned barrier, unsigned parity) {
    unsigned done;
    do
      asm volatile("{\n"
                   "  .reg .pred p;\n"
                   "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                   "  selp.u32 %0, 1, 0, p;\n"
                   "}"
                   : "=r"(done)
                   : "r"(barrier), "r"(parity)
                   : "memory");
    while (!done);
  };
  if (warp == 3) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x % 32 == 0)
      for (int k = 0; k < tiles; ++k) {
        int s = k % 2;
        if (k >= 2)
          wait(sharedAddress(&empty[s]), (k / 2 - 1) & 1);
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(
                sharedAddress(&full[s]))
            : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
            " [%0], [%1], 1024, [%2];" ::"r"(sharedAddress(stages[s])),
            "l"(in + k * 256), "r"(sharedAddress(&full[s]))
            : "memory");
      }
  } else {
    float sum = 0.f;
    for (int k = 0; k < tiles; ++k) {
      int s = k % 2;
      wait(sharedAddress(&full[s]), (k / 2) & 1);
      for (int i = threadIdx.x; i < 256; i += 96)
        sum += stages[s][i];
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(
                       sharedAddress(&empty[s]))
                   : "memory");
    }
    atomicAdd(out, sum);
  }
}

extern "C" __global__ void hopper_nanosleep_backoff(const int *in, int *out,
                                                    int *flag) {
  if (threadIdx.x / 32 == 0) {
    out[threadIdx.x] = in[threadIdx.x];
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0)
      atomicExch(flag, 1);
  } else {
    unsigned ns = 8;
    while (atomicAdd(flag, 0) == 0) {
      __nanosleep(ns);
      ns = min(ns * 2, 256u);
    }
    __threadfence();
    out[threadIdx.x] = in[threadIdx.x];
  }
}

extern "C" __global__ void hopper_atomic_vector(const float2 *in, float2 *out,
                                                int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(out, in[i]);
}

extern "C" __global__ void hopper_dpx(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int x = in[i];
    out[i] = __vimax3_s32(x, -5, -7) + __viaddmax_s32(x, 3, -100) - x - 3 +
             __vimin_s32_relu(x, 2000) - x;
  }
}

extern "C" __global__ void hopper_wide_types(const __int128 *in, __int128 *out,
                                             int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = (in[i] * 3 - in[i]) / 2;
}

extern "C" __global__ void hopper_wgmma(const unsigned short *a,
                                        const unsigned short *b, float *c) {
  // 64 x 8 = 64 x 16 times 16 x 8, both in cores of 8 x 8 without a swizzle.
  __shared__ alignas(128) unsigned short as[64 * 16], bs[8 * 16];
  for (int i = threadIdx.x; i < 64 * 16; i += 128) {
    int row = i / 16, k = i % 16;
    as[(row / 8 * 2 + k / 8) * 64 + row % 8 * 8 + k % 8] = a[i];
  }
  for (int i = threadIdx.x; i < 8 * 16; i += 128) {
    int column = i / 16, k = i % 16;
    bs[k / 8 * 64 + column * 8 + k % 8] = b[i];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  auto descriptor = [](const void *p, unsigned leading, unsigned stride) {
    return (unsigned long long)(sharedAddress(p) >> 4 & 0x3fff) |
           (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32;
  };
  unsigned long long da = descriptor(as, 128, 256),
                     db = descriptor(bs, 128, 256);
  float d0, d1, d2, d3;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{\n"
               "  .reg .pred p;\n"
               "  setp.ne.b32 p, %6, 0;\n"
               "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
               "{%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;\n"
               "}"
               : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
               : "l"(da), "l"(db), "r"(0));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
  int column = lane % 4 * 2;
  c[row * 8 + column] = d0;
  c[row * 8 + column + 1] = d1;
  c[(row + 8) * 8 + column] = d2;
  c[(row + 8) * 8 + column + 1] = d3;
}
