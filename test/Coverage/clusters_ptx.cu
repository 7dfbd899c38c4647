// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clusters of blocks that pass data on by bulk copies and mbarriers.

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
__device__ unsigned rank_in_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\n"
               "barrier.cluster.wait.acquire;" ::
                   : "memory");
}
__device__ void make_barrier(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count)
               : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ void expect_bytes(unsigned bar, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
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
extern "C" __global__ void cluster_multicast(const int *in, int *out) {
  __shared__ alignas(128) int parts[2][64];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned rank = blockIdx.x % 2, bar = shared_address(&barrier);
  if (threadIdx.x == 0) {
    make_barrier(bar, 1);
    expect_bytes(bar, sizeof(parts));
  }
  sync_cluster();
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(
                     shared_address(parts[rank])),
                 "l"(in + blockIdx.x * 64), "r"(bar), "h"((unsigned short)3)
                 : "memory");
  wait_parity(bar, 0);
  out[(blockIdx.x ^ 1) * 64 + threadIdx.x] = parts[rank ^ 1][threadIdx.x];
  sync_cluster();
}

// Values that go round by themselves.
extern "C" __global__ void cluster_ring(const int *in, int *out) {
  __shared__ alignas(16) int came[64];
  __shared__ alignas(8) unsigned long long barrier;
  unsigned rank = rank_in_cluster(), next = (rank + 1) % 4;
  unsigned bar = shared_address(&barrier);
  if (threadIdx.x == 0) {
    make_barrier(bar, 1);
    expect_bytes(bar, sizeof(came));
  }
  sync_cluster();
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
extern "C" __global__ void cluster_pipeline(const int *in, int *out,
                                            int chunks) {
  __shared__ alignas(128) int buffer[2][64];
  __shared__ alignas(8) unsigned long long full[2], empty[2];
  unsigned rank = rank_in_cluster();
  if (threadIdx.x == 0)
    for (int stage = 0; stage < 2; ++stage) {
      make_barrier(shared_address(&full[stage]), 1);
      make_barrier(shared_address(&empty[stage]), 128);
    }
  sync_cluster();
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
  sync_cluster();
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
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::
                     : "memory");
  }
}
