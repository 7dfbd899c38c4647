// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lane masks that name who does not come, or leave out who does.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL full_mask_in_a_branch(const int *in, int *out) {
  int t = threadIdx.x, v = in[t];
  if (t < 16)
    v += __shfl_xor_sync(PICK(0xffffu, ~0u), v, 1); // FAULT
  __syncthreads();
  out[t] = v;
}

KERNEL mask_of_the_others(const int *in, int *out) {
  int t = threadIdx.x, v = in[t];
  if (t < 16)
    v += __shfl_xor_sync(PICK(0xffffu, 0xffff0000u), v, 1); // FAULT
  __syncthreads();
  out[t] = v;
}

KERNEL half_a_mask(const int *in, int *out) {
  int t = threadIdx.x, v = in[t];
  for (int by = 16; by > 0; by >>= 1)
    v += __shfl_xor_sync(PICK(~0u, 0xffffu), v, by); // FAULT
  out[t] = v;
}

KERNEL exited_lanes(const int *in, int *out) {
  int t = threadIdx.x;
  if (t >= PICK(32, 24))
    return;
  int v = in[t];
  for (int by = 16; by > 0; by >>= 1)
    v += __shfl_down_sync(~0u, v, by); // FAULT
  if (t == 0)
    *out = v;
}

KERNEL ballot_in_a_loop(const int *in, int *out) {
  int t = threadIdx.x, sum = 0;
  for (int i = 0; i < PICK(5, in[t] % 5); ++i)
    sum += __popc(__ballot_sync(~0u, in[t] > i)); // FAULT
  __syncthreads();
  out[t] = sum;
}

KERNEL syncwarp_of_others(int *out) {
  int t = threadIdx.x;
  if (t & 1)
    __syncwarp(PICK(0xaaaaaaaau, 0x55555555u)); // FAULT
  else
    __syncwarp(0x55555555u);
  out[t] = t;
}

KERNEL vote_with_an_old_mask(const int *in, int *out) {
  int t = threadIdx.x, v = in[t];
  unsigned mask = __ballot_sync(~0u, v < 8);
  if (v < PICK(8, 9))
    v = __any_sync(mask, v == 3); // FAULT
  __syncthreads();
  out[t] = v;
}
