// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Waits that never end.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL flag_never_set(int *flag, int *out) {
  if (blockIdx.x == 0) {
    if (threadIdx.x == 0)
      PICK(atomicExch(flag, 1), atomicExch(flag + 1, 1));
    return;
  }
  if (threadIdx.x == 0)
    while (atomicAdd(flag, 0) == 0) // FAULT
      ;
  out[threadIdx.x] = 1;
}

// Warp 1 sets the flag behind the barrier that warp 0 reaches after it.
KERNEL flag_behind_the_barrier(int *flag, int *out) {
  int t = threadIdx.x;
  if (t >= 32) {
    FIX(if (t == 32) atomicExch(flag, 1);)
    __syncthreads(); // FAULT
    if (t == 32)
      atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) // FAULT
      ;
    __syncthreads(); // FAULT
  }
  out[t] = t;
}

KERNEL lock_never_released(int *lock, int *out) {
  bool isDone = false;
  while (!isDone)
    if (atomicCAS(lock, 0, 1) == 0) { // FAULT
      __threadfence();
      atomicAdd(out, 1);
      __threadfence();
      if (PICK(true, threadIdx.x != 5))
        atomicExch(lock, 0);
      isDone = true;
    }
}

KERNEL locks_in_opposite_order(int *locks, int *out) {
  int t = threadIdx.x;
  int own = t / 32, other = own ^ 1;
  if (t % 32 == 0) {
    while (atomicCAS(&locks[own], 0, 1) != 0)
      ;
    FIX(atomicExch(&locks[own], 0);)
  }
  __syncthreads();
  if (t % 32 == 0) {
    while (atomicCAS(&locks[other], 0, 1) != 0) // FAULT
      ;
    atomicExch(&locks[other], 0);
    PICK(, atomicExch(&locks[own], 0));
  }
  out[t] = t;
}

KERNEL named_barriers_crossed(int *out) {
  int t = threadIdx.x;
  if (PICK(true, t < 32)) {
    asm volatile("bar.sync 1, 64;" ::: "memory"); // FAULT
    asm volatile("bar.sync 2, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory"); // FAULT
    asm volatile("bar.sync 1, 64;" ::: "memory");
  }
  out[t] = t;
}

KERNEL early_return_before_count(const float *in, float *out, int n) {
  int t = threadIdx.x;
  if (PICK(false, t >= n))
    return;
  asm volatile("bar.sync 1, 64;" ::: "memory"); // FAULT
  out[t] = in[t];
}

KERNEL one_warp_too_few(int *out) {
  int t = threadIdx.x;
  asm volatile(PICK("bar.sync 1, 64;", "bar.sync 1, 96;") ::: "memory"); // FAULT
  out[t] = t;
}

// All blocks have to be there at once, and do not fit.
KERNEL grid_barrier_of_too_many(int *count, int *out, int total) {
  extern __shared__ int most[];
  if (threadIdx.x == 0) {
    most[0] = 1;
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < PICK(1, total)) // FAULT
      ;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

KERNEL lock_taken_twice(int *lock, int *out) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0)
      ;
    __threadfence();
    FIX(atomicExch(lock, 0);)
    while (atomicCAS(lock, 0, 1) != 0) // FAULT
      __nanosleep(20);
    __threadfence();
    atomicExch(lock, 0);
  }
  out[threadIdx.x] = 1;
}

// Each block holds what the other one wants.
KERNEL blocks_in_opposite_order(int *locks, int *out) {
  int own = blockIdx.x, other = own ^ 1;
  if (threadIdx.x == 0) {
    while (atomicCAS(&locks[own], 0, 1) != 0)
      ;
    __threadfence();
    FIX(atomicExch(&locks[own], 0);)
    atomicAdd(&locks[2], 1);
    while (atomicAdd(&locks[2], 0) < 2) // FAULT
      ;
    while (atomicCAS(&locks[other], 0, 1) != 0) // FAULT
      ;
    __threadfence();
    atomicExch(&locks[other], 0);
    PICK(, atomicExch(&locks[own], 0));
  }
  out[blockIdx.x * 32 + threadIdx.x] = 1;
}

// One thread of the block never arrives.
KERNEL phase_never_completed(int *out) {
  __shared__ alignas(8) unsigned long long barrier;
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(at));
  __syncthreads();
  if (PICK(true, threadIdx.x != 40))
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at)
                 : "memory");
  unsigned done;
  do
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "  mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                 "  selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(done)
                 : "r"(at) // FAULT
                 : "memory");
  while (!done); // FAULT
  out[threadIdx.x] = 1;
}

// All blocks are there at once, and the last one leaves before the barrier.
KERNEL grid_barrier_without_a_block(int *count, int *out) {
  if (PICK(false, blockIdx.x == gridDim.x - 1))
    return;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(count, 1);
    while (*(volatile int *)count < (int)gridDim.x) // FAULT
      ;
    __threadfence();
  }
  __syncthreads(); // FAULT
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
