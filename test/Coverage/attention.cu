// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention: naive, flash style with an online softmax, in half.

#include <cuda_fp16.h>

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

// One query a block; scores in shared memory.
extern "C" __global__ void attention_naive(const float *q, const float *k,
                                           const float *v, float *out, int n,
                                           int d, float scale) {
  extern __shared__ float scores[];
  __shared__ float total;
  int row = blockIdx.x, t = threadIdx.x;
  for (int j = t; j < n; j += blockDim.x) {
    float s = 0.f;
    for (int i = 0; i < d; ++i)
      s += q[row * d + i] * k[j * d + i];
    scores[j] = s * scale;
  }
  __syncthreads();
  if (t == 0) {
    float most = scores[0], sum = 0.f;
    for (int j = 1; j < n; ++j)
      most = fmaxf(most, scores[j]);
    for (int j = 0; j < n; ++j) {
      scores[j] = expf(scores[j] - most);
      sum += scores[j];
    }
    total = sum;
  }
  __syncthreads();
  for (int i = t; i < d; i += blockDim.x) {
    float o = 0.f;
    for (int j = 0; j < n; ++j)
      o += scores[j] * v[j * d + i];
    out[row * d + i] = o / total;
  }
}

// Tiles of keys in shared memory, one query a thread, online softmax.
template <int D, int TILE>
__device__ void flash(const float *q, const float *k, const float *v,
                      float *out, int n, float scale, bool isCausal) {
  __shared__ float ks[TILE][D], vs[TILE][D];
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  float mine[D], acc[D];
#pragma unroll
  for (int i = 0; i < D; ++i) {
    mine[i] = row < n ? q[row * D + i] * scale : 0.f;
    acc[i] = 0.f;
  }
  float most = -INFINITY, sum = 0.f;
  for (int j0 = 0; j0 < n; j0 += TILE) {
    for (int i = threadIdx.x; i < TILE * D; i += blockDim.x) {
      int j = j0 + i / D;
      ks[i / D][i % D] = j < n ? k[j * D + i % D] : 0.f;
      vs[i / D][i % D] = j < n ? v[j * D + i % D] : 0.f;
    }
    __syncthreads();
    for (int j = 0; j < TILE && j0 + j < n; ++j) {
      if (isCausal && j0 + j > row)
        break;
      float s = 0.f;
#pragma unroll
      for (int i = 0; i < D; ++i)
        s += mine[i] * ks[j][i];
      float next = fmaxf(most, s);
      float fade = __expf(most - next), p = __expf(s - next);
      sum = sum * fade + p;
#pragma unroll
      for (int i = 0; i < D; ++i)
        acc[i] = acc[i] * fade + p * vs[j][i];
      most = next;
    }
    __syncthreads();
  }
  if (row < n) {
    float inverse = 1.f / sum;
#pragma unroll
    for (int i = 0; i < D; ++i)
      out[row * D + i] = acc[i] * inverse;
  }
}

extern "C" __global__ void attention_flash(const float *q, const float *k,
                                           const float *v, float *out, int n,
                                           float scale) {
  flash<16, 32>(q, k, v, out, n, scale, false);
}

extern "C" __global__ void attention_flash_causal(const float *q,
                                                  const float *k,
                                                  const float *v, float *out,
                                                  int n, float scale) {
  flash<16, 32>(q, k, v, out, n, scale, true);
}

// A warp a query, half inputs, lanes over the head's elements.
extern "C" __global__ void attention_warp_half(const half2 *q, const half2 *k,
                                               const half2 *v, half2 *out,
                                               int n, float scale) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (row >= n)
    return;
  float2 mine = __half22float2(q[row * 32 + lane]);
  float2 acc = make_float2(0.f, 0.f);
  float most = -1e30f, sum = 0.f;
  for (int j = 0; j < n; ++j) {
    float2 key = __half22float2(k[j * 32 + lane]);
    float s = mine.x * key.x + mine.y * key.y;
#pragma unroll
    for (int o = 16; o; o >>= 1)
      s += __shfl_xor_sync(0xffffffff, s, o);
    s *= scale;
    float next = fmaxf(most, s);
    float fade = exp2f((most - next) * 1.4426950408889634f);
    float p = exp2f((s - next) * 1.4426950408889634f);
    float2 value = __half22float2(v[j * 32 + lane]);
    acc.x = acc.x * fade + p * value.x;
    acc.y = acc.y * fade + p * value.y;
    sum = sum * fade + p;
    most = next;
  }
  out[row * 32 + lane] = __floats2half2_rn(acc.x / sum, acc.y / sum);
}

// One query against a cache of keys, split over blocks; merged by the next.
extern "C" __global__ void
attention_decode_split(const float *q, const float *k, const float *v,
                       float *partO, float *partML, int n, float scale) {
  const int D = 32;
  int lane = threadIdx.x, part = blockIdx.x, parts = gridDim.x;
  int share = (n + parts - 1) / parts, first = part * share;
  int last = min(n, first + share);
  float most = -INFINITY, sum = 0.f, acc = 0.f, mine = q[lane] * scale;
  for (int j = first; j < last; ++j) {
    float s = mine * k[j * D + lane];
    for (int o = 16; o; o >>= 1)
      s += __shfl_xor_sync(~0u, s, o);
    float next = fmaxf(most, s);
    float fade = __expf(most - next), p = __expf(s - next);
    acc = acc * fade + p * v[j * D + lane];
    sum = sum * fade + p;
    most = next;
  }
  partO[part * D + lane] = acc;
  if (lane == 0) {
    partML[part * 2] = most;
    partML[part * 2 + 1] = sum;
  }
}

extern "C" __global__ void rope_interleaved(float *x, int rows, int heads,
                                            int d) {
  int row = blockIdx.x, head = blockIdx.y, i = threadIdx.x; // d / 2 threads
  float *at = x + ((size_t)row * heads + head) * d + 2 * i;
  float angle = row * powf(10000.f, -2.f * i / d);
  float s, c;
  sincosf(angle, &s, &c);
  float2 v = *reinterpret_cast<float2 *>(at);
  *reinterpret_cast<float2 *>(at) =
      make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

extern "C" __global__ void rope_halves(const float *x, const float *cosines,
                                       const float *sines, float *out, int d) {
  int row = blockIdx.x, i = threadIdx.x; // d / 2 threads
  float a = x[row * d + i], b = x[row * d + i + d / 2];
  float c = cosines[row * (d / 2) + i], s = sines[row * (d / 2) + i];
  out[row * d + i] = a * c - b * s;
  out[row * d + i + d / 2] = b * c + a * s;
}

extern "C" __global__ void kv_cache_append(const half *k, half *cache,
                                           const int *slots, int d) {
  int token = blockIdx.x;
  int slot = slots[token];
  const uint4 *from = reinterpret_cast<const uint4 *>(k + token * d);
  uint4 *to = reinterpret_cast<uint4 *>(cache + (size_t)slot * d);
  for (int i = threadIdx.x; i < d / 8; i += blockDim.x)
    to[i] = from[i];
}
