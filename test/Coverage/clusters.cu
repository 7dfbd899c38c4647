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
