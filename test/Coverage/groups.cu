// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cooperative groups.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void groups_reduce(const float *in, float *out, int n) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  float v = 0.f;
  for (int i = cg::this_grid().thread_rank(); i < n;
       i += cg::this_grid().size())
    v += in[i];
  v = cg::reduce(warp, v, cg::plus<float>());
  if (warp.thread_rank() == 0)
    atomicAdd(out, v);
}

extern "C" __global__ void groups_tiles_of_8(const int *in, int *out) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
  for (int o = tile.size() / 2; o > 0; o /= 2)
    v += tile.shfl_down(v, o);
  if (tile.thread_rank() == 0)
    out[i / 8] = v;
}

extern "C" __global__ void groups_scan(const int *in, int *out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = cg::inclusive_scan(tile, in[i]);
}

extern "C" __global__ void groups_coalesced(const int *in, int *out, int *count,
                                            int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 3 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    int base = 0;
    if (active.thread_rank() == 0)
      base = atomicAdd(count, active.size());
    base = active.shfl(base, 0);
    out[base + active.thread_rank()] = in[i];
  }
}

extern "C" __global__ void groups_labeled(const int *in, unsigned *bins,
                                          int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    auto same = cg::labeled_partition(cg::coalesced_threads(), in[i]);
    if (same.thread_rank() == 0)
      atomicAdd(&bins[in[i]], same.size());
  }
}

// All blocks meet between the two halves.
extern "C" __global__ void groups_grid_sync(const float *in, float *partial,
                                            float *out, int n) {
  cg::grid_group grid = cg::this_grid();
  float v = 0.f;
  for (int i = grid.thread_rank(); i < n; i += grid.size())
    v += in[i];
  partial[grid.thread_rank()] = v;
  grid.sync();
  if (grid.thread_rank() == 0) {
    float sum = 0.f;
    for (int i = 0; i < grid.size(); ++i)
      sum += partial[i];
    *out = sum;
  }
}

extern "C" __global__ void groups_block_sync_tiles(const int *in, int *out) {
  __shared__ int buffer[128];
  auto block = cg::this_thread_block();
  buffer[block.thread_rank()] = in[blockIdx.x * 128 + block.thread_rank()];
  block.sync();
  auto half = cg::tiled_partition<16>(block);
  int sum = 0;
  for (int k = 0; k < 16; ++k)
    sum += buffer[half.meta_group_rank() * 16 + k];
  if (half.thread_rank() == 0)
    out[blockIdx.x * 8 + half.meta_group_rank()] = sum;
}

extern "C" __global__ void groups_any_match(const int *in, int *out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int i = blockIdx.x * 32 + threadIdx.x;
  out[i] = __popc(warp.match_any(in[i])) + 100 * warp.any(in[i] == 3);
}
