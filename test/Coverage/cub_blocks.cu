// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CUB's block-wide algorithms.

#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

extern "C" __global__ void cub_block_reduce(const float *in, float *out,
                                            int n) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  float v = 0.f;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128)
    v += in[i];
  float sum = Reduce(storage).Sum(v);
  if (threadIdx.x == 0)
    atomicAdd(out, sum);
}

extern "C" __global__ void cub_block_reduce_raking(const int *in, int *out) {
  using Reduce =
      cub::BlockReduce<int, 128, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>;
  __shared__ typename Reduce::TempStorage storage;
  int sum = Reduce(storage).Sum(in[blockIdx.x * 128 + threadIdx.x]);
  if (threadIdx.x == 0)
    out[blockIdx.x] = sum;
}

extern "C" __global__ void cub_block_scan(const int *in, int *out) {
  using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_TRANSPOSE>;
  using Scan = cub::BlockScan<int, 64>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } storage;
  int items[4];
  Load(storage.load).Load(in + blockIdx.x * 256, items);
  __syncthreads();
  Scan(storage.scan).InclusiveSum(items, items);
  __syncthreads();
  Store(storage.store).Store(out + blockIdx.x * 256, items);
}

extern "C" __global__ void cub_block_radix_sort(const unsigned *in,
                                                unsigned *out) {
  using Sort = cub::BlockRadixSort<unsigned, 64, 4>;
  __shared__ typename Sort::TempStorage storage;
  unsigned keys[4];
  cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * 256, keys);
  Sort(storage).Sort(keys);
  cub::StoreDirectBlocked(threadIdx.x, out + blockIdx.x * 256, keys);
}

extern "C" __global__ void cub_warp_scan_reduce(const int *in, int *scan,
                                                int *sums) {
  using Scan = cub::WarpScan<int>;
  using Reduce = cub::WarpReduce<int>;
  __shared__ typename Scan::TempStorage scans[4];
  __shared__ typename Reduce::TempStorage reductions[4];
  int i = blockIdx.x * 128 + threadIdx.x, warp = threadIdx.x / 32, v;
  Scan(scans[warp]).InclusiveSum(in[i], v);
  scan[i] = v;
  int sum = Reduce(reductions[warp]).Sum(in[i]);
  if (threadIdx.x % 32 == 0)
    sums[i / 32] = sum;
}
