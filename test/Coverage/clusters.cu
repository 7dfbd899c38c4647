// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clusters of blocks.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(1, 1, 1)
    cluster_of_one(const int *in, int *out) {
  __shared__ int buffer[64];
  cg::cluster_group cluster = cg::this_cluster();
  buffer[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  cluster.sync();
  int *mine = cluster.map_shared_rank(buffer, cluster.block_rank());
  out[blockIdx.x * 64 + threadIdx.x] = mine[threadIdx.x];
}

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_exchange(const int *in, int *out) {
  __shared__ int buffer[64];
  cg::cluster_group cluster = cg::this_cluster();
  buffer[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  cluster.sync();
  int *other = cluster.map_shared_rank(buffer, cluster.block_rank() ^ 1);
  out[(blockIdx.x ^ 1) * 64 + threadIdx.x] = other[threadIdx.x];
  cluster.sync();
}

// A histogram whose bins lie over the blocks of the cluster.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
    cluster_histogram(const int *in, unsigned *bins, int n) {
  __shared__ unsigned mine[4];
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < 4)
    mine[threadIdx.x] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x) {
    int bin = in[i];
    unsigned *there = cluster.map_shared_rank(mine, bin / 4);
    atomicAdd(there + bin % 4, 1u);
  }
  cluster.sync();
  if (threadIdx.x < 4)
    atomicAdd(&bins[cluster.block_rank() * 4 + threadIdx.x], mine[threadIdx.x]);
}

// Each block a part of the sum, block 0 of a cluster all of them.
extern "C" __global__ void cluster_sum(const float *in, float *out, int n) {
  __shared__ float warps[4], parts[8];
  cg::cluster_group cluster = cg::this_cluster();
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    sum += in[i];
  for (int step = 16; step; step /= 2)
    sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = sum;
  // Block 0 has begun then, too.
  cluster.sync();
  if (threadIdx.x == 0)
    *cluster.map_shared_rank(&parts[cluster.block_rank()], 0) =
        warps[0] + warps[1] + warps[2] + warps[3];
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0) {
    float all = 0;
    for (unsigned i = 0; i < cluster.num_blocks(); ++i)
      all += parts[i];
    atomicAdd(out, all);
  }
}
