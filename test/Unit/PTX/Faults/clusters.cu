// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Blocks of a cluster that use one another's shared memory.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

#define PAIR __cluster_dims__(2, 1, 1)

KERNEL PAIR reads_before_the_barrier(const float *in, float *out) {
  __shared__ float mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  mine[t] = in[i]; // FAULT
  PICK(cluster.sync(), __syncthreads());
  const float *other = cluster.map_shared_rank(mine, blockIdx.x ^ 1);
  out[i] = other[t] * 2.0f; // FAULT
  cluster.sync();
}

// The last reader may come when the owner is gone.
KERNEL PAIR ends_while_read(const float *in, float *out) {
  __shared__ float mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  mine[t] = in[i];
  cluster.sync();
  const float *other = cluster.map_shared_rank(mine, blockIdx.x ^ 1);
  out[i] = other[31 - t]; // FAULT
  FIX(cluster.sync();)
}

KERNEL PAIR ends_after_an_atomic(const int *in, int *out) {
  __shared__ int bins[8];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  if (t < 8)
    bins[t] = 0;
  cluster.sync();
  int bin = in[blockIdx.x * 32 + t] & 15;
  atomicAdd(cluster.map_shared_rank(bins, bin / 8) + bin % 8, 1); // FAULT
  PICK(cluster.sync(), __syncthreads());
  if (t < 8)
    out[blockIdx.x * 8 + t] = bins[t]; // FAULT
}

// Sums of all blocks in one place, without atomics.
KERNEL PAIR adds_to_one_place(const int *in, int *out) {
  __shared__ int sum;
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  if (t == 0)
    sum = 0;
  cluster.sync();
  int *first = cluster.map_shared_rank(&sum, 0);
  if (t == 0)
    PICK(atomicAdd(first, in[blockIdx.x]), *first += in[blockIdx.x]); // FAULT
  cluster.sync();
  if (blockIdx.x == 0 && t == 0)
    out[0] = sum;
}

// The barrier's halves: what stands between them is in order with nobody.
KERNEL PAIR writes_after_its_arrival(const float *in, float *out) {
  __shared__ float mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  mine[t] = 0.0f;
  cluster.sync();
  FIX(mine[t] = in[i];)
  asm volatile("barrier.cluster.arrive;" ::: "memory");
  PICK(, mine[t] = in[i]); // FAULT
  asm volatile("barrier.cluster.wait;" ::: "memory");
  const float *other = cluster.map_shared_rank(mine, blockIdx.x ^ 1);
  out[i] = other[t]; // FAULT
  cluster.sync();
}

// The next round overwrites what the other still reads.
KERNEL PAIR rounds_too_close(const float *in, float *out) {
  __shared__ float mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x, i = blockIdx.x * 32 + t;
  const float *other = cluster.map_shared_rank(mine, blockIdx.x ^ 1);
  float sum = 0.0f;
  for (int round = 0; round < 4; ++round) {
    mine[t] = in[i] * float(round); // FAULT
    cluster.sync();
    sum += other[t]; // FAULT
    FIX(cluster.sync();)
  }
  out[i] = sum;
  cluster.sync();
}

KERNEL PAIR half_a_warp_arrives(float *out) {
  int t = threadIdx.x;
  if (t < PICK(32, 16)) {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); // FAULT
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); // FAULT
  } else {
    out[blockIdx.x * 32 + t] = 0.0f;
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); // FAULT
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); // FAULT
  }
  out[blockIdx.x * 32 + t] = float(t);
}

KERNEL PAIR waits_without_arriving(float *out) {
  if (PICK(true, blockIdx.x == 0))
    asm volatile("barrier.cluster.arrive;" ::: "memory");
  asm volatile("barrier.cluster.wait;" ::: "memory"); // FAULT
  out[blockIdx.x * 32 + threadIdx.x] = 1.0f;
}

// One warp waits for the cluster, and the other one for that warp.
KERNEL PAIR one_warp_of_two(float *out) {
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  if (PICK(true, t < 32))
    cluster.sync(); // FAULT
  __syncthreads(); // FAULT
  out[blockIdx.x * 64 + t] = float(t);
  if (PICK(false, t >= 32))
    cluster.sync();
}

// Who arrives at another block's mbarrier has to know that it was made.
KERNEL PAIR arrives_before_it_is_made(float *out) {
  __shared__ unsigned long long bar;
  int t = threadIdx.x;
  unsigned at = (unsigned)__cvta_generic_to_shared(&bar), far;
  if (t == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;\n" // FAULT
                 "fence.mbarrier_init.release.cluster;" ::"r"(at) : "memory");
  PICK(cg::this_cluster().sync(), __syncthreads());
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(far) : "r"(at), "r"(blockIdx.x ^ 1));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
               ::"r"(far) : "memory"); // FAULT
  asm volatile("{ .reg .pred p;\nw: mbarrier.try_wait.parity.acquire.cluster"
               ".shared::cta.b64 p, [%0], 0;\n@!p bra w; }" ::"r"(at)
               : "memory"); // FAULT
  out[blockIdx.x * 32 + t] = 1.0f;
  cg::this_cluster().sync();
}

KERNEL PAIR past_what_was_written(const float *in, float *out, int n) {
  __shared__ float mine[64];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  if (t < n)
    mine[t] = in[t];
  cluster.sync();
  const float *other = cluster.map_shared_rank(mine, blockIdx.x ^ 1);
  out[blockIdx.x * 32 + t] = other[PICK(t % n, t)] * 2.0f; // FAULT
  cluster.sync();
}

KERNEL PAIR no_such_block(const float *in, float *out) {
  __shared__ float mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  mine[t] = in[t];
  cluster.sync();
  int rank = PICK(cluster.block_rank() ^ 1, 2);
  const float *other = cluster.map_shared_rank(mine, rank); // FAULT
  out[blockIdx.x * 32 + t] = other[t]; // FAULT
  cluster.sync();
}

// Shared memory of a block that may not have begun.
KERNEL PAIR writes_at_once(float *out) {
  __shared__ float mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  int t = threadIdx.x;
  FIX(cluster.sync();)
  cluster.map_shared_rank(mine, blockIdx.x ^ 1)[t] = float(t); // FAULT
  cluster.sync();
  out[blockIdx.x * 32 + t] = mine[t];
}
