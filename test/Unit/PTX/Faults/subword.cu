// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Halves and bytes of one word that different warps and blocks touch: what one
// does to its part hides nothing about another's.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL halves_of_two_warps(short *out) {
  __shared__ short tile[64];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  tile[2 * lane + warp] = threadIdx.x; // FAULT
  PICK(__syncthreads(), __syncwarp());
  if (warp)
    out[lane] = tile[2 * lane]; // FAULT
}

KERNEL halves_overwritten(const short *in, short *out) {
  __shared__ short tile[64];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  short mine = tile[2 * lane + warp]; // FAULT
  PICK(__syncthreads(), __syncwarp());
  if (warp)
    tile[2 * lane] = 3; // FAULT
  out[threadIdx.x] = mine;
}

KERNEL halves_in_global_memory(short *out, short *copy) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  out[2 * lane + warp] = threadIdx.x; // FAULT
  PICK(__syncthreads(), __syncwarp());
  if (warp)
    copy[lane] = out[2 * lane]; // FAULT
}

KERNEL halves_of_two_blocks(short *out, short *copy) {
  int t = threadIdx.x;
  out[2 * t + blockIdx.x] = t; // FAULT
  __syncwarp();
  if (blockIdx.x)
    copy[t] = out[2 * t + PICK(1, 0)]; // FAULT
}

KERNEL bytes_of_blocks(unsigned char *out) {
  out[4 * threadIdx.x + PICK(blockIdx.x, blockIdx.x % 2)] = blockIdx.x; // FAULT
}

// A part read by one warp and all of the word by another; then the part is
// written by who read it.
KERNEL half_and_whole(short *out) {
  __shared__ int tile[32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (!warp)
    tile[lane] = lane;
  __syncthreads();
  int seen = 0;
  if (warp)
    seen = tile[lane]; // FAULT
  else
    seen = ((short *)tile)[2 * lane + 1]; // FAULT
  FIX(__syncthreads();)
  if (warp)
    ((short *)tile)[2 * lane + 1] = 7; // FAULT
  out[threadIdx.x] = seen;
}

// Columns of a tile, a warp each, then rows.
KERNEL transposes_halves(const short *in, short *out) {
  __shared__ short tile[8][32];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int round = 0; round < 3; ++round) {
    tile[lane % 8][warp + lane / 8 * 8] = in[threadIdx.x] + round; // FAULT
    __syncthreads();
    short mine = tile[warp][lane]; // FAULT
    FIX(__syncthreads();)
    out[threadIdx.x + 256 * round] = mine;
  }
}

// Counters of a block alone, which all blocks use.
KERNEL counts_within_the_block(int *counter, int *out) {
  int old = PICK(atomicAdd(counter, 1), atomicAdd_block(counter, 1)); // FAULT
  out[blockIdx.x * blockDim.x + threadIdx.x] = old;
}
KERNEL counts_for_some(int *counter, int *out) {
  int old;
  if (blockIdx.x)
    old = atomicAdd(counter, 1); // FAULT
  else
    old = PICK(atomicAdd(counter, 1), atomicAdd_block(counter, 1)); // FAULT
  out[blockIdx.x * blockDim.x + threadIdx.x] = old;
}
