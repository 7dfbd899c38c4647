// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prefix sums: of a warp, of a block, of a grid.

extern "C" __global__ void scan_hillis_steele(const float *in, float *out) {
  __shared__ float buffer[2][256];
  int t = threadIdx.x, from = 0;
  buffer[0][t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int offset = 1; offset < 256; offset *= 2) {
    int to = 1 - from;
    buffer[to][t] = t >= offset ? buffer[from][t] + buffer[from][t - offset]
                                : buffer[from][t];
    from = to;
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = buffer[from][t];
}

#define BANKS(n) ((n) >> 5)
extern "C" __global__ void scan_blelloch(const float *in, float *out, int n) {
  extern __shared__ float temp[];
  int t = threadIdx.x, offset = 1;
  int ai = t, bi = t + n / 2, base = blockIdx.x * n;
  temp[ai + BANKS(ai)] = in[base + ai];
  temp[bi + BANKS(bi)] = in[base + bi];
  for (int d = n >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) {
      int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
      temp[b + BANKS(b)] += temp[a + BANKS(a)];
    }
    offset *= 2;
  }
  if (t == 0)
    temp[n - 1 + BANKS(n - 1)] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
      float v = temp[a + BANKS(a)];
      temp[a + BANKS(a)] = temp[b + BANKS(b)];
      temp[b + BANKS(b)] += v;
    }
  }
  __syncthreads();
  out[base + ai] = temp[ai + BANKS(ai)];
  out[base + bi] = temp[bi + BANKS(bi)];
}

__device__ int warpScan(int v) {
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    int other = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d)
      v += other;
  }
  return v;
}

extern "C" __global__ void scan_warp(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = warpScan(i < n ? in[i] : 0);
  if (i < n)
    out[i] = v;
}

extern "C" __global__ void scan_block_of_warps(const int *in, int *out, int n) {
  __shared__ int sums[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int v = warpScan(i < n ? in[i] : 0);
  if (lane == 31)
    sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int s = lane < blockDim.x / 32 ? sums[lane] : 0;
    s = warpScan(s);
    if (lane < blockDim.x / 32)
      sums[lane] = s;
  }
  __syncthreads();
  if (warp > 0)
    v += sums[warp - 1];
  if (i < n)
    out[i] = v;
}

// shfl's predicate instead of a comparison, as hand-written PTX does it.
extern "C" __global__ void scan_warp_ptx(const int *in, int *out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  int v = in[i];
#pragma unroll
  for (int d = 1; d < 32; d <<= 1)
    asm volatile("{\n"
                 "  .reg .pred p;\n"
                 "  .reg .s32 t;\n"
                 "  shfl.sync.up.b32 t|p, %0, %1, 0x0, 0xffffffff;\n"
                 "  @p add.s32 %0, t, %0;\n"
                 "}"
                 : "+r"(v)
                 : "r"(d));
  out[i] = v;
}

// Decoupled look-back: flag in the upper half, value in the lower one.
extern "C" __global__ void scan_decoupled_lookback(const int *in, int *out,
                                                   unsigned long long *states,
                                                   unsigned *next, int n) {
  __shared__ unsigned tile;
  __shared__ int sums[8];
  __shared__ int prefix;
  if (threadIdx.x == 0)
    tile = atomicAdd(next, 1u);
  __syncthreads();
  int t = threadIdx.x, i = tile * 256 + t, warp = t / 32, lane = t % 32;
  int v = warpScan(i < n ? in[i] : 0);
  if (lane == 31)
    sums[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; ++w)
    v += sums[w];
  if (t == 255) {
    int aggregate = v, before = 0;
    const unsigned long long partial = 1ull << 32, whole = 2ull << 32;
    if (tile > 0) {
      atomicExch(&states[tile], partial | (unsigned)aggregate);
      for (int k = (int)tile - 1; k >= 0;) {
        unsigned long long s = atomicAdd(&states[k], 0ull);
        if (!(s >> 32))
          continue;
        before += (int)(unsigned)s;
        if (s >> 32 == 2)
          break;
        --k;
      }
    }
    atomicExch(&states[tile], whole | (unsigned)(before + aggregate));
    prefix = before;
  }
  __syncthreads();
  if (i < n)
    out[i] = v + prefix;
}

// Sums of segments that a warp takes each.
extern "C" __global__ void segmented_reduce(const float *in, const int *offsets,
                                            float *out, int segments) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (warp >= segments)
    return;
  float v = 0;
  for (int k = offsets[warp] + lane; k < offsets[warp + 1]; k += 32)
    v += in[k];
  for (int o = 16; o; o >>= 1)
    v += __shfl_xor_sync(~0u, v, o);
  if (lane == 0)
    out[warp] = v;
}
