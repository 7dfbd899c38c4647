// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Blocks that tell one another what is ready, with a fence too few.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL last_block(const float *in, float *parts, unsigned *count, float *out) {
  __shared__ bool isLast;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = in[blockIdx.x] * 2.0f;
    FIX(__threadfence();)
    isLast = atomicAdd(count, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!isLast || threadIdx.x >= gridDim.x)
    return;
  out[threadIdx.x] = parts[threadIdx.x]; // FAULT
}

// All threads write, and one fence of one thread before the barrier.
KERNEL last_block_fence_first(const float *in, float *parts, unsigned *count,
                              float *out) {
  __shared__ bool isLast;
  int t = threadIdx.x;
  parts[blockIdx.x * blockDim.x + t] = in[t]; // FAULT
  PICK(__syncthreads(), );
  if (t == 0)
    __threadfence();
  if (t == 0) {
    isLast = atomicAdd(count, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (isLast)
    out[t] = parts[((blockIdx.x + 1) % gridDim.x) * blockDim.x + t]; // FAULT
}

KERNEL fence_of_a_block(const float *in, float *parts, unsigned *count,
                        float *out) {
  __shared__ bool isLast;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = in[blockIdx.x] * 2.0f;
    PICK(__threadfence(), __threadfence_block());
    isLast = atomicAdd(count, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!isLast || threadIdx.x >= gridDim.x)
    return;
  out[threadIdx.x] = parts[threadIdx.x]; // FAULT
}

// Each block waits for the sum of the one before.
KERNEL look_back_release(const int *in, volatile int *flags, int *sums) {
  if (threadIdx.x != 0)
    return;
  int b = blockIdx.x, sum = in[b];
  if (b > 0) {
    while (flags[b - 1] == 0)
      ;
    __threadfence();
    sum += sums[b - 1]; // FAULT
  }
  sums[b] = sum;
  FIX(__threadfence();)
  flags[b] = 1;
}

KERNEL look_back_acquire(const int *in, volatile int *flags, int *sums) {
  if (threadIdx.x != 0)
    return;
  int b = blockIdx.x, sum = in[b];
  if (b > 0) {
    while (flags[b - 1] == 0)
      ;
    FIX(__threadfence();)
    sum += sums[b - 1]; // FAULT
  }
  sums[b] = sum;
  __threadfence();
  flags[b] = 1;
}

KERNEL look_back_plain_flags(const int *in, int *flags, int *sums) {
  if (threadIdx.x != 0)
    return;
  int b = blockIdx.x, sum = in[b];
  if (b > 0) {
    int seen = 0;
    while (seen == 0) // FAULT
      asm volatile(PICK("ld.acquire.gpu.global.u32 %0, [%1];",
                        "ld.global.u32 %0, [%1];")
                   : "=r"(seen)
                   : "l"(&flags[b - 1]) // FAULT
                   : "memory");
    sum += sums[b - 1]; // FAULT
  }
  sums[b] = sum;
  asm volatile(PICK("st.release.gpu.global.u32 [%0], %1;",
                    "membar.gl; st.global.u32 [%0], %1;")
               ::"l"(&flags[b]), "r"(1) // FAULT
               : "memory");
}

KERNEL release_of_a_block(const int *in, int *flags, int *sums) {
  if (threadIdx.x != 0)
    return;
  int b = blockIdx.x, sum = in[b];
  if (b > 0) {
    int seen = 0;
    while (seen == 0) // FAULT
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(&flags[b - 1]) // FAULT
                   : "memory");
    sum += sums[b - 1]; // FAULT
  }
  sums[b] = sum;
  asm volatile(PICK("st.release.gpu.global.u32 [%0], %1;",
                    "st.release.cta.global.u32 [%0], %1;")
               ::"l"(&flags[b]), "r"(1) // FAULT
               : "memory");
}

// A grid barrier that counts, but does not order.
KERNEL grid_barrier(int *data, int *count, int *out) {
  int t = threadIdx.x, b = blockIdx.x;
  data[b * blockDim.x + t] = b * 100 + t;
  __syncthreads();
  if (t == 0) {
    FIX(__threadfence();)
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < int(gridDim.x))
      ;
    FIX(__threadfence();)
  }
  __syncthreads();
  out[b * blockDim.x + t] = data[(b + 1) % gridDim.x * blockDim.x + t]; // FAULT
}

// A lock whose holder leaves without a fence.
KERNEL lock_without_fences(int *lock, int *value) {
  if (threadIdx.x != 0)
    return;
  while (atomicCAS(lock, 0, 1) != 0)
    ;
  FIX(__threadfence();)
  *value += blockIdx.x; // FAULT
  FIX(__threadfence();)
  atomicExch(lock, 0);
}
