// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Histograms: global, shared, warp-aggregated.

extern "C" __global__ void histogram_global(const unsigned char *in,
                                            unsigned *bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i]], 1u);
}

extern "C" __global__ void histogram_shared(const unsigned char *in,
                                            unsigned *bins, int n) {
  __shared__ unsigned local[256];
  for (int b = threadIdx.x; b < 256; b += blockDim.x)
    local[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i]], 1u);
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x)
    if (local[b])
      atomicAdd(&bins[b], local[b]);
}

extern "C" __global__ void histogram_match(const int *in, unsigned *bins,
                                           int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool valid = i < n;
  unsigned active = __ballot_sync(~0u, valid);
  if (!valid)
    return;
  int bin = in[i];
  unsigned peers = __match_any_sync(active, bin);
  if (__ffs(peers) - 1 == (threadIdx.x & 31))
    atomicAdd(&bins[bin], __popc(peers));
}

// A histogram a warp, 4 bytes of the input at once.
extern "C" __global__ void histogram_per_warp(const uchar4 *in, unsigned *bins,
                                              int n4) {
  __shared__ unsigned local[4][256];
  int warp = threadIdx.x / 32;
  for (int b = threadIdx.x; b < 4 * 256; b += blockDim.x)
    ((unsigned *)local)[b] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4;
       i += gridDim.x * blockDim.x) {
    uchar4 v = in[i];
    atomicAdd(&local[warp][v.x], 1u);
    atomicAdd(&local[warp][v.y], 1u);
    atomicAdd(&local[warp][v.z], 1u);
    atomicAdd(&local[warp][v.w], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += blockDim.x)
    atomicAdd(&bins[b], local[0][b] + local[1][b] + local[2][b] + local[3][b]);
}

// Privatised in registers: a thread counts one of few bins.
extern "C" __global__ void histogram_registers(const int *in, unsigned *bins,
                                               int n) {
  int counts[8];
#pragma unroll
  for (int b = 0; b < 8; ++b)
    counts[b] = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    int v = in[i];
#pragma unroll
    for (int b = 0; b < 8; ++b)
      counts[b] += v == b;
  }
#pragma unroll
  for (int b = 0; b < 8; ++b) {
    int c = __reduce_add_sync(~0u, counts[b]);
    if (threadIdx.x % 32 == 0)
      atomicAdd(&bins[b], (unsigned)c);
  }
}
