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
    atomicAdd(&bins[cluster.block_rank() * 4 + threadIdx.x],
              mine[threadIdx.x]);
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
  __syncthreads();
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

__device__ unsigned shared_address(const void *of) {
  return (unsigned)__cvta_generic_to_shared(of);
}
__device__ unsigned at_rank(unsigned address, unsigned rank) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(there)
      : "r"(address), "r"(rank));
  return there;
}
__device__ void make_barrier(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count)
               : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect_bytes(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   bar),
               "r"(bytes)
               : "memory");
}
__device__ void wait_parity(unsigned bar, unsigned parity) {
  asm volatile("{\n.reg .pred p;\n"
               "again:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
               "@p bra done;\n"
               "bra again;\n"
               "done:\n}" ::"r"(bar),
               "r"(parity)
               : "memory");
}

// Each block loads its part once, for both.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_multicast(const int *in, int *out) {
  __shared__ alignas(128) int parts[2][64];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned rank = blockIdx.x % 2, bar = shared_address(&barrier);
  if (threadIdx.x == 0) {
    make_barrier(bar, 1);
    expect_bytes(bar, sizeof(parts));
  }
  cg::this_cluster().sync();
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
                     shared_address(parts[rank])),
                 "l"(in + blockIdx.x * 64), "r"(bar), "h"((unsigned short)3)
                 : "memory");
  wait_parity(bar, 0);
  out[(blockIdx.x ^ 1) * 64 + threadIdx.x] = parts[rank ^ 1][threadIdx.x];
  cg::this_cluster().sync();
}

// Values that go round by themselves.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
    cluster_ring(const int *in, int *out) {
  __shared__ alignas(16) int came[64];
  __shared__ alignas(8) unsigned long long barrier;
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank(), next = (rank + 1) % 4;
  unsigned bar = shared_address(&barrier);
  if (threadIdx.x == 0) {
    make_barrier(bar, 1);
    expect_bytes(bar, sizeof(came));
  }
  cluster.sync();
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
               "[%0], %1, [%2];" ::"r"(
                   at_rank(shared_address(&came[threadIdx.x]), next)),
               "r"(in[blockIdx.x * 64 + threadIdx.x]), "r"(at_rank(bar, next))
               : "memory");
  wait_parity(bar, 0);
  unsigned from = blockIdx.x - rank + (rank + 3) % 4;
  out[from * 64 + threadIdx.x] = came[threadIdx.x];
}

// One producer fills the buffers of both blocks, whose threads give them back
// at its mbarrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_pipeline(const int *in, int *out, int chunks) {
  __shared__ alignas(128) int buffer[2][64];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  cg::cluster_group cluster = cg::this_cluster();
  unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0)
    for (int stage = 0; stage < 2; ++stage) {
      make_barrier(shared_address(&full[stage]), 1);
      make_barrier(shared_address(&empty[stage]), 128);
    }
  cluster.sync();
  for (int chunk = 0; chunk < chunks; ++chunk) {
    int stage = chunk % 2, round = chunk / 2;
    unsigned bar = shared_address(&full[stage]);
    if (threadIdx.x == 0) {
      if (rank == 0 && round > 0)
        wait_parity(shared_address(&empty[stage]), (round - 1) & 1);
      expect_bytes(bar, 256);
      if (rank == 0)
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
                shared_address(buffer[stage])),
            "l"(in + chunk * 64), "r"(bar), "h"((unsigned short)3)
            : "memory");
    }
    wait_parity(bar, round & 1);
    int value = buffer[stage][threadIdx.x];
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
                 "[%0];" ::"r"(at_rank(shared_address(&empty[stage]), 0))
                 : "memory");
    if (threadIdx.x % 2 == rank)
      out[chunk * 64 + threadIdx.x] = value;
  }
  cluster.sync();
}

// A row a block, added to the sums as one piece.
extern "C" __global__ void bulk_column_sums(const float *in, float *out,
                                            int rows, int columns) {
  __shared__ alignas(128) float row[128];
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    row[i] = in[blockIdx.x * columns + i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
                 "[%0], [%1], %2;" ::"l"(out),
                 "r"(shared_address(row)), "r"(columns * 4)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" :::
                     "memory");
  }
}
