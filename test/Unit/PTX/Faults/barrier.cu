// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Barriers that not all threads come to, or not to the same.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL barrier_in_an_if(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  if (PICK(true, t < 48)) {
    tile[t] = in[t];
    __syncthreads(); // FAULT
    out[t] = tile[PICK(63, 47) - t];
  }
  out[t + 64] = 1.0f;
  __syncthreads(); // FAULT
  out[t + 128] = 2.0f;
}

KERNEL barrier_in_a_loop(const int *in, int *out) {
  int t = threadIdx.x, sum = 0;
  for (int i = 0; i < PICK(4, in[t] % 4 + 1); ++i) {
    sum += in[i];
    __syncthreads(); // FAULT
  }
  __syncthreads(); // FAULT
  out[t] = sum;
}

// Exited threads are not waited for, so this is a remark.
KERNEL early_return(const float *in, float *out, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
  if (PICK(false, t >= n))
    return;
  __syncthreads(); // FAULT
  out[t] = tile[t / 2];
}

KERNEL two_barriers_for_two_halves(int *out) {
  int t = threadIdx.x;
  if (PICK(t < 32, t & 1))
    asm volatile("bar.sync 1, 32;" ::: "memory"); // FAULT
  else
    asm volatile("bar.sync 2, 32;" ::: "memory"); // FAULT
  out[t] = t;
}

KERNEL barrier_of_one_lane(int *out) {
  int t = threadIdx.x;
  if (t % 32 == 0) {
    out[t] = 1;
    asm volatile(PICK("barrier.sync 0;", "bar.sync 0;") ::: "memory"); // FAULT
  } else {
    asm volatile("barrier.sync 0;" ::: "memory"); // FAULT
  }
}

KERNEL counts_that_differ(int *out) {
  int t = threadIdx.x;
  if (t < 32)
    asm volatile("bar.sync 1, 64;" ::: "memory"); // FAULT
  else
    asm volatile(PICK("bar.sync 1, 64;", "bar.sync 1, 96;") ::: "memory"); // FAULT
  out[t] = t;
}

KERNEL count_of_half_a_warp(int *out, int count) {
  asm volatile("bar.sync 1, %0;" ::"r"(count - PICK(0, 16)) : "memory"); // FAULT
  out[threadIdx.x] = 1;
}

KERNEL barrier_seventeen(int *out, int number) {
  asm volatile("bar.sync %0;" ::"r"(number + PICK(0, 1)) : "memory"); // FAULT
  out[threadIdx.x] = 1;
}


KERNEL reduces_and_does_not(int *out) {
  int t = threadIdx.x;
  if (t < 32)
    out[t] = PICK(__syncthreads_count(t & 1), (__syncthreads(), 0)); // FAULT
  else
    out[t] = __syncthreads_count(t & 1); // FAULT
}
