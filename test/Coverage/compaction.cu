// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stream compaction, by ballots, by scans, by warp-aggregated atomics.

extern "C" __global__ void compact_atomic_aggregated(const int *in, int *out,
                                                     int *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int v = in[i];
  if (v % 3 == 0) {
    unsigned active = __activemask();
    int leader = __ffs(active) - 1;
    int lane = threadIdx.x & 31;
    int base = 0;
    if (lane == leader)
      base = atomicAdd(count, __popc(active));
    base = __shfl_sync(active, base, leader);
    out[base + __popc(active & ((1u << lane) - 1))] = v;
  }
}

extern "C" __global__ void compact_ballot(const int *in, int *out, int *count,
                                          int n) {
  __shared__ int warpBase[32];
  __shared__ int base;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  bool keep = i < n && in[i] % 3 == 0;
  unsigned vote = __ballot_sync(0xffffffffu, keep);
  if (lane == 0)
    warpBase[warp] = __popc(vote);
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) {
      int c = warpBase[w];
      warpBase[w] = sum;
      sum += c;
    }
    base = atomicAdd(count, sum);
  }
  __syncthreads();
  unsigned below;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  if (keep)
    out[base + warpBase[warp] + __popc(vote & below)] = in[i];
}

// Keeps the order: one block.
extern "C" __global__ void compact_stable(const int *in, int *out, int *count,
                                          int n) {
  __shared__ int offset;
  if (threadIdx.x == 0)
    offset = 0;
  __syncthreads();
  for (int first = 0; first < n; first += blockDim.x) {
    int i = first + threadIdx.x;
    int keep = i < n && in[i] % 3 == 0;
    // The barrier counts, the ballots say where.
    int all = __syncthreads_count(keep);
    unsigned vote = __ballot_sync(~0u, keep);
    __shared__ int warps[32];
    if (threadIdx.x % 32 == 0)
      warps[threadIdx.x / 32] = __popc(vote);
    __syncthreads();
    int at = offset;
    for (int w = 0; w < threadIdx.x / 32; ++w)
      at += warps[w];
    if (keep)
      out[at + __popc(vote & ((1u << threadIdx.x % 32) - 1))] = in[i];
    __syncthreads();
    if (threadIdx.x == 0)
      offset += all;
    __syncthreads();
  }
  if (threadIdx.x == 0)
    *count = offset;
}

extern "C" __global__ void partition_flags(const int *in, const int *scan,
                                           int *out, int n, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  bool odd = in[i] & 1;
  out[odd ? total + i - scan[i] : scan[i]] = in[i];
}

extern "C" __global__ void unique_sorted(const int *in, int *flags, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    flags[i] = i == 0 || in[i] != in[i - 1];
}

extern "C" __global__ void any_all_votes(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = in[i];
  int any = __any_sync(~0u, v > 95), every = __all_sync(~0u, v < 99);
  int block = __syncthreads_or(v == 42) + 2 * __syncthreads_and(v >= 0);
  out[i] = any + 2 * every + 4 * block;
}
