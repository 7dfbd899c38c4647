// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ShadowTest.cpp runs, and how kernels.ptx was made:
//   nvcc -ptx -arch=sm_90 kernels.cu

/// c = a b, all n by n; blocks of 16 by 16 threads, n a multiple of 16.
extern "C" __global__ void matmul(const float *a, const float *b, float *c,
                                  int n) {
  __shared__ float left[16][16], right[16][17];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__device__ float sumOfWarp(float value) {
  for (int step = 16; step; step /= 2)
    value += __shfl_xor_sync(~0u, value, step);
  return value;
}

/// A warp a row.
extern "C" __global__ void softmax(const float *in, float *out, int n) {
  const float *row = in + blockIdx.x * n;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 32)
    most = fmaxf(most, row[i]);
  for (int step = 16; step; step /= 2)
    most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    sum += expf(row[i] - most);
  sum = sumOfWarp(sum);
  for (int i = threadIdx.x; i < n; i += 32)
    out[blockIdx.x * n + i] = expf(row[i] - most) / sum;
}

/// A warp a row.
extern "C" __global__ void layer_norm(const float *in, const float *scale,
                                      const float *bias, float *out, int n) {
  const float *row = in + blockIdx.x * n;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    sum += row[i];
  float mean = sumOfWarp(sum) / n;
  float squares = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    squares += (row[i] - mean) * (row[i] - mean);
  float inverse = rsqrtf(sumOfWarp(squares) / n + 0x1p-17f);
  for (int i = threadIdx.x; i < n; i += 32)
    out[blockIdx.x * n + i] = (row[i] - mean) * inverse * scale[i] + bias[i];
}

/// Sums of all that stand before and of oneself; one block of 256.
extern "C" __global__ void scan(const float *in, float *out) {
  __shared__ float sums[8];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  float value = in[t];
  for (int step = 1; step < 32; step *= 2) {
    float before = __shfl_up_sync(~0u, value, step);
    if (lane >= step)
      value += before;
  }
  if (lane == 31)
    sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    float sum = lane < 8 ? sums[lane] : 0;
    for (int step = 1; step < 8; step *= 2) {
      float before = __shfl_up_sync(~0u, sum, step);
      if (lane >= step)
        sum += before;
    }
    if (lane < 8)
      sums[lane] = sum;
  }
  __syncthreads();
  out[t] = warp ? value + sums[warp - 1] : value;
}

/// A thread a query; keys and values of 16 numbers go through shared memory in
/// tiles of 32, with the softmax as they come. One block of 32 queries.
extern "C" __global__ void attention(const float *queries, const float *keys,
                                     const float *values, float *out, int n) {
  __shared__ float4 key[32][4], value[32][4];
  int t = threadIdx.x;
  float query[16], sum[16];
  for (int i = 0; i < 16; ++i) {
    query[i] = queries[t * 16 + i] * 0.25f;
    sum[i] = 0;
  }
  float most = -INFINITY, total = 0;
  for (int begin = 0; begin < n; begin += 32) {
    for (int i = 0; i < 4; ++i) {
      key[t][i] = ((const float4 *)keys)[(begin + t) * 4 + i];
      value[t][i] = ((const float4 *)values)[(begin + t) * 4 + i];
    }
    __syncthreads();
    for (int j = 0; j < 32; ++j) {
      const float *one = (const float *)key[j];
      float score = 0;
      for (int i = 0; i < 16; ++i)
        score += query[i] * one[i];
      float more = fmaxf(most, score);
      float keep = __expf(most - more), weight = __expf(score - more);
      total = total * keep + weight;
      const float *of = (const float *)value[j];
      for (int i = 0; i < 16; ++i)
        sum[i] = sum[i] * keep + weight * of[i];
      most = more;
    }
    __syncthreads();
  }
  for (int i = 0; i < 16; ++i)
    out[t * 16 + i] = sum[i] / total;
}

/// The root of the sum of squares of doubles; one warp.
extern "C" __global__ void length(const double *in, double *out, int n) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += 32)
    sum += in[i] * in[i];
  for (int step = 16; step; step /= 2)
    sum += __shfl_down_sync(~0u, sum, step);
  if (threadIdx.x == 0)
    *out = sqrt(sum);
}

#include <cuda_fp16.h>
#include <mma.h>

/// c = a b of halves, 16 by 16 and 16 by 8 (b by columns), through shared
/// memory; one warp.
extern "C" __global__ void tensor(const __half *a, const __half *b, float *c) {
  __shared__ __align__(16) __half left[16][16], right[8][16];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 32)
    left[i / 16][i % 16] = __hmul(a[i], __float2half(0.3f));
  for (int i = t; i < 128; i += 32)
    right[i / 16][i % 16] = b[i];
  __syncwarp();
  unsigned x[4], y[2];
  unsigned from =
      (unsigned)__cvta_generic_to_shared(&left[t % 16][t / 16 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(from));
  from = (unsigned)__cvta_generic_to_shared(&right[t % 8][t / 8 % 2 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(y[0]), "=r"(y[1])
               : "r"(from));
  float d[4];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
               : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]),
                 "r"(y[1]), "f"(0.1f));
  for (int i = 0; i < 4; ++i)
    c[(t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = d[i];
}

/// c = a b of halves, n by n, a warp a tile of 16 by 16.
extern "C" __global__ void fragments(const __half *a, const __half *b,
                                     float *c, int n) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> left;
  fragment<matrix_b, 16, 16, 16, __half, col_major> right;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.1f);
  for (int k = 0; k < n; k += 16) {
    load_matrix_sync(left, a + blockIdx.y * 16 * n + k, n);
    load_matrix_sync(right, b + blockIdx.x * 16 * n + k, n);
    mma_sync(sum, left, right, sum);
  }
  store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n,
                    mem_row_major);
}
