// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Threads that touch the same words of global memory, in no order.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL all_blocks_one_place(int *out) {
  int t = threadIdx.x;
  out[PICK(blockIdx.x * blockDim.x + t, t)] = blockIdx.x + t; // FAULT
}

KERNEL neighbour_in_block(int *out) {
  int t = threadIdx.x;
  out[t] = t * 3; // FAULT
  FIX(__syncthreads();)
  int other = out[t ^ 32]; // FAULT
  __syncthreads();
  out[t] = other;
}

KERNEL stencil_in_place(float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float left = i > 0 ? in[i - 1] : 0.0f; // FAULT
  float right = i + 1 < n ? in[i + 1] : 0.0f; // FAULT
  __syncthreads();
  PICK(out, in)[i] = left + right; // FAULT
}

KERNEL sum_without_atomic(const int *in, int *sum) {
  int mine = in[blockIdx.x];
  if (threadIdx.x == 0)
    PICK(atomicAdd(sum, mine), *sum += mine); // FAULT
}

KERNEL plain_read_of_atomic(int *counter, int *out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(counter, 1); // FAULT
  out[t] = PICK(atomicAdd(counter, 0), *counter) > 0; // FAULT
}

KERNEL plain_reset_of_atomic(int *counter, int *out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = atomicAdd(counter, 1); // FAULT
  if (t == 40)
    PICK(atomicExch(counter, 0), *counter = 5); // FAULT
}

// Each block writes one element more than is its own.
KERNEL tiles_overlap(float *out) {
  int t = threadIdx.x;
  int at = blockIdx.x * (blockDim.x - PICK(0, 1)) + t;
  out[at] = float(blockIdx.x * 100 + t); // FAULT
}

KERNEL scatter(const int *index, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[PICK(n - 1 - index[i], index[i] / 2)] = float(i); // FAULT
}

// Loads by way of the read-only cache see nothing that this kernel wrote.
KERNEL cached_read(int *out) {
  int t = threadIdx.x;
  out[t] = 5; // FAULT
  __syncthreads();
  out[64 + t] = PICK(out[t ^ 1], __ldg(out + (t ^ 1))); // FAULT
}
