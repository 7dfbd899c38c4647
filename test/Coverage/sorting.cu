// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sorting, merging, selection.

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

extern "C" __global__ void bitonic_sort_shared(const int *in, int *out) {
  __shared__ int keys[512];
  int t = threadIdx.x, base = blockIdx.x * 512;
  keys[t] = in[base + t];
  keys[t + 256] = in[base + t + 256];
  for (int size = 2; size <= 512; size <<= 1)
    for (int stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      int at = 2 * t - (t & (stride - 1));
      bool up = (at & size) == 0;
      int a = keys[at], b = keys[at + stride];
      if ((a > b) == up) {
        keys[at] = b;
        keys[at + stride] = a;
      }
    }
  __syncthreads();
  out[base + t] = keys[t];
  out[base + t + 256] = keys[t + 256];
}

extern "C" __global__ void bitonic_sort_warp(const float *in, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  float v = in[i];
#pragma unroll
  for (int size = 2; size <= 32; size <<= 1)
#pragma unroll
    for (int stride = size / 2; stride > 0; stride >>= 1) {
      float other = __shfl_xor_sync(~0u, v, stride);
      bool up = (lane & size) == 0, lower = (lane & stride) == 0;
      v = lower == up ? fminf(v, other) : fmaxf(v, other);
    }
  out[i] = v;
}

extern "C" __global__ void odd_even_sort(int *data, int n) {
  for (int phase = 0; phase < n; ++phase) {
    int i = 2 * threadIdx.x + (phase & 1);
    if (i + 1 < n && data[i] > data[i + 1]) {
      int t = data[i];
      data[i] = data[i + 1];
      data[i + 1] = t;
    }
    __syncthreads();
  }
}

// Four bits a pass, ranks by ballots and a scan, in one block of 256.
extern "C" __global__ void radix_sort_block(const unsigned *in, unsigned *out) {
  __shared__ unsigned keys[256];
  __shared__ unsigned counts[16][8];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  unsigned key = in[blockIdx.x * 256 + t];
  for (int shift = 0; shift < 32; shift += 4) {
    unsigned digit = (key >> shift) & 15;
    unsigned peers = ~0u;
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      bool bit = digit >> b & 1;
      unsigned vote = __ballot_sync(~0u, bit);
      peers &= bit ? vote : ~vote;
    }
    if (t < 128)
      counts[t / 8][t % 8] = 0;
    __syncthreads();
    unsigned rank = __popc(peers & ((1u << lane) - 1));
    if (rank == 0)
      counts[digit][warp] = __popc(peers);
    __syncthreads();
    if (t == 0) {
      unsigned sum = 0;
      for (int d = 0; d < 16; ++d)
        for (int w = 0; w < 8; ++w) {
          unsigned c = counts[d][w];
          counts[d][w] = sum;
          sum += c;
        }
    }
    __syncthreads();
    keys[counts[digit][warp] + rank] = key;
    __syncthreads();
    key = keys[t];
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = key;
}

// Where each element of two sorted lists goes: its place and a search.
extern "C" __global__ void merge_by_rank(const int *a, const int *b, int *out,
                                         int na, int nb) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < na) {
    int low = 0, high = nb;
    while (low < high) {
      int middle = (low + high) / 2;
      if (b[middle] < a[i])
        low = middle + 1;
      else
        high = middle;
    }
    out[i + low] = a[i];
  } else if (i < na + nb) {
    int j = i - na, low = 0, high = na;
    while (low < high) {
      int middle = (low + high) / 2;
      if (a[middle] <= b[j])
        low = middle + 1;
      else
        high = middle;
    }
    out[j + low] = b[j];
  }
}

extern "C" __global__ void lower_bound_search(const int *sorted,
                                              const int *wanted, int *out,
                                              int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= m)
    return;
  int low = 0, count = n;
  while (count > 0) {
    int half = count >> 1;
    if (__ldg(&sorted[low + half]) < wanted[i]) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  out[i] = low;
}

// The best of a row again and again, each struck out once taken.
extern "C" __global__ void top_k_rows(const float *in, float *out, int k) {
  __shared__ float row[256];
  __shared__ float bestOfWarp[8];
  __shared__ int placeOfWarp[8];
  int t = threadIdx.x;
  row[t] = in[blockIdx.x * 256 + t];
  for (int r = 0; r < k; ++r) {
    float best = row[t];
    int at = t;
    for (int o = 16; o; o >>= 1) {
      float other = __shfl_down_sync(~0u, best, o);
      int place = __shfl_down_sync(~0u, at, o);
      if (other > best) {
        best = other;
        at = place;
      }
    }
    if (t % 32 == 0) {
      bestOfWarp[t / 32] = best;
      placeOfWarp[t / 32] = at;
    }
    __syncthreads();
    if (t == 0) {
      int w = 0;
      for (int i = 1; i < 8; ++i)
        if (bestOfWarp[i] > bestOfWarp[w])
          w = i;
      out[blockIdx.x * k + r] = bestOfWarp[w];
      row[placeOfWarp[w]] = -INFINITY;
    }
    __syncthreads();
  }
}

// A short sorted list in a thread's registers, merged by one thread.
extern "C" __global__ void top_4_registers(const float *in, float *out) {
  float best[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  const float *row = in + (blockIdx.x * blockDim.x + threadIdx.x) * 256;
  for (int i = 0; i < 256; ++i) {
    float v = row[i];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (v > best[k]) {
        float t = best[k];
        best[k] = v;
        v = t;
      }
  }
  reinterpret_cast<float4 *>(out)[blockIdx.x * blockDim.x + threadIdx.x] =
      make_float4(best[0], best[1], best[2], best[3]);
}
