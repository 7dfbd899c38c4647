// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Threads of a block that do not wait for one another.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL reduction(const float *in, float *out) {
  __shared__ float part[128];
  int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  for (int stride = 64; stride > 0; stride >>= 1) {
    if (t < stride)
      part[t] += part[t + stride]; // FAULT
    FIX(__syncthreads();)
  }
  if (t == 0)
    *out = part[0];
}

KERNEL tile_before_it_is_full(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 3; ++k) {
    tile[t] = in[k * 64 + t]; // FAULT
    FIX(__syncthreads();)
    for (int i = 0; i < 64; ++i)
      sum += tile[i]; // FAULT
    __syncthreads();
  }
  out[t] = sum;
}

KERNEL tile_still_in_use(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 3; ++k) {
    tile[t] = in[k * 64 + t]; // FAULT
    __syncthreads();
    for (int i = 0; i < 64; ++i)
      sum += tile[i]; // FAULT
    FIX(__syncthreads();)
  }
  out[t] = sum;
}

KERNEL double_buffer(const float *in, float *out) {
  __shared__ float tile[2][64];
  int t = threadIdx.x, now = 0;
  float sum = 0.0f;
  tile[0][t] = in[t]; // FAULT
  for (int k = 1; k < 5; ++k) {
    __syncthreads();
    tile[PICK(now ^ 1, now)][t] = in[k * 64 + t]; // FAULT
    sum += tile[now][63 - t]; // FAULT
    now ^= PICK(1, 0);
  }
  out[t] = sum;
}

KERNEL warp_synchronous(const float *in, float *out) {
  __shared__ float part[64];
  int t = threadIdx.x;
  part[t] = in[t]; // FAULT
  part[t + 32] = 0.0f; // FAULT
  FIX(__syncwarp();)
  for (int stride = 16; stride > 0; stride >>= 1) {
    float other = part[t + stride]; // FAULT
    FIX(__syncwarp();)
    part[t] += other; // FAULT
    FIX(__syncwarp();)
  }
  if (t == 0)
    *out = part[0];
}

KERNEL two_warps_one_word(float *out) {
  __shared__ float part[64];
  int t = threadIdx.x;
  part[PICK(t, t & 31)] = float(t); // FAULT
  __syncthreads();
  out[t] = part[t & 31];
}

KERNEL histogram(const int *in, int *out) {
  __shared__ int bins[8];
  int t = threadIdx.x;
  if (t < 8)
    bins[t] = 0;
  __syncthreads();
  int bin = in[t] & 7;
  PICK(atomicAdd(&bins[bin], 1), ++bins[bin]); // FAULT
  __syncthreads();
  if (t < 8)
    out[t] = bins[t];
}

KERNEL transpose(const float *in, float *out) {
  __shared__ float tile[16][17];
  int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 16 + x]; // FAULT
  FIX(__syncthreads();)
  out[y * 16 + x] = tile[x][y]; // FAULT
}

KERNEL broadcast(const float *in, float *out) {
  __shared__ float scale;
  int t = threadIdx.x;
  if (t == 0)
    scale = in[0] + 1.0f; // FAULT
  FIX(__syncthreads();)
  out[t] = in[t] * scale; // FAULT
}

KERNEL scratch_used_again(const float *in, float *out) {
  __shared__ float scratch[4];
  int t = threadIdx.x, warp = t / 32, lane = t % 32;
  if (lane == 0)
    scratch[warp] = in[warp];
  __syncthreads();
  float largest = fmaxf(fmaxf(scratch[0], scratch[1]), // FAULT
                        fmaxf(scratch[2], scratch[3])); // FAULT
  FIX(__syncthreads();)
  if (lane == 0)
    scratch[warp] = in[warp] - largest; // FAULT
  __syncthreads();
  out[t] = scratch[0] + scratch[3] + largest;
}

KERNEL scan_in_place(const int *in, int *out) {
  __shared__ int part[64];
  int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  for (int by = 1; by < 64; by <<= 1) {
    int left = t >= by ? part[t - by] : 0; // FAULT
    FIX(__syncthreads();)
    part[t] += left; // FAULT
    __syncthreads();
  }
  out[t] = part[t];
}

KERNEL atomic_then_plain(int *out) {
  __shared__ int sum;
  int t = threadIdx.x;
  if (t == 0)
    sum = 0;
  __syncthreads();
  atomicAdd(&sum, t); // FAULT
  FIX(__syncthreads();)
  out[t] = sum; // FAULT
}

// One barrier for the whole row where each warp would have sufficed, and none
// of a warp where rows are one warp wide.
KERNEL rows_of_warps(const float *in, float *out) {
  __shared__ float row[4][32];
  int x = threadIdx.x, y = threadIdx.y;
  row[y][x] = in[y * 32 + x]; // FAULT
  PICK(__syncwarp(), __syncwarp(1u << x));
  out[y * 32 + x] = row[y][31 - x]; // FAULT
}

KERNEL barrier_of_other_warps(const float *in, float *out) {
  __shared__ float row[96];
  int t = threadIdx.x;
  row[t] = in[t]; // FAULT
  if (t < 64)
    asm volatile("bar.sync 1, 64;" ::: "memory");
  FIX(__syncthreads();)
  out[t] = row[95 - t]; // FAULT
}
