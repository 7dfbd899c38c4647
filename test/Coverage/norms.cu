// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Softmax, layer norm, RMS norm, cross entropy.

#include <cuda_fp16.h>

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

__device__ float warpMax(float v) {
  for (int o = 16; o; o >>= 1)
    v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

__device__ float warpSum(float v) {
  for (int o = 16; o; o >>= 1)
    v += __shfl_xor_sync(~0u, v, o);
  return v;
}

template <typename Op>
__device__ float blockReduce(float v, float none, Op op) {
  __shared__ float shared[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads(); // It may have been used before.
  v = op(v);
  if (lane == 0)
    shared[warp] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? shared[lane] : none;
  return op(v);
}

__device__ float blockSum(float v) {
  return blockReduce(v, 0.f, [](float x) { return warpSum(x); });
}

__device__ float blockMax(float v) {
  return blockReduce(v, -INFINITY, [](float x) { return warpMax(x); });
}

extern "C" __global__ void softmax_warp(const float *in, float *out, int rows,
                                        int n) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows)
    return;
  const float *x = in + row * n;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += 32)
    most = fmaxf(most, x[i]);
  most = warpMax(most);
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += 32)
    sum += expf(x[i] - most);
  sum = warpSum(sum);
  for (int i = threadIdx.x; i < n; i += 32)
    out[row * n + i] = expf(x[i] - most) / sum;
}

extern "C" __global__ void softmax_block(const float *in, float *out, int n) {
  extern __shared__ float row[];
  const float *x = in + (size_t)blockIdx.x * n;
  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    row[i] = x[i];
    most = fmaxf(most, row[i]);
  }
  most = blockMax(most);
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    row[i] = __expf(row[i] - most);
    sum += row[i];
  }
  float inverse = __frcp_rn(blockSum(sum));
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[(size_t)blockIdx.x * n + i] = row[i] * inverse;
}

// Maximum and sum in one pass, as pairs.
extern "C" __global__ void softmax_online(const float *in, float *out, int n) {
  const float *x = in + (size_t)blockIdx.x * n;
  float m = -INFINITY, d = 0.f;
  for (int i = threadIdx.x; i < n; i += 32) {
    float next = fmaxf(m, x[i]);
    d = d * __expf(m - next) + __expf(x[i] - next);
    m = next;
  }
  for (int o = 16; o; o >>= 1) {
    float otherM = __shfl_xor_sync(~0u, m, o);
    float otherD = __shfl_xor_sync(~0u, d, o);
    float next = fmaxf(m, otherM);
    d = d * __expf(m - next) + otherD * __expf(otherM - next);
    m = next;
  }
  for (int i = threadIdx.x; i < n; i += 32)
    out[(size_t)blockIdx.x * n + i] = __expf(x[i] - m) / d;
}

extern "C" __global__ void log_softmax(const float *in, float *out, int n) {
  const float *x = in + (size_t)blockIdx.x * n;
  float most = -INFINITY, sum = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    most = fmaxf(most, x[i]);
  most = blockMax(most);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    sum += expf(x[i] - most);
  float log = logf(blockSum(sum)) + most;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[(size_t)blockIdx.x * n + i] = x[i] - log;
}

extern "C" __global__ void layer_norm(const float *in, const float *gamma,
                                      const float *beta, float *out, int n,
                                      float eps) {
  const float *x = in + (size_t)blockIdx.x * n;
  float sum = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    sum += x[i];
  float mean = blockSum(sum) / n;
  float squares = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    squares += (x[i] - mean) * (x[i] - mean);
  float scale = rsqrtf(blockSum(squares) / n + eps);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[(size_t)blockIdx.x * n + i] =
        (x[i] - mean) * scale * gamma[i] + beta[i];
}

extern "C" __global__ void rms_norm_vector(const float4 *in,
                                           const float4 *weight, float4 *out,
                                           int n4, float eps) {
  const float4 *x = in + (size_t)blockIdx.x * n4;
  __shared__ float scale;
  float squares = 0.f;
  for (int i = threadIdx.x; i < n4; i += blockDim.x) {
    float4 v = x[i];
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  squares = blockSum(squares);
  if (threadIdx.x == 0)
    scale = rsqrtf(squares / (n4 * 4) + eps);
  __syncthreads();
  for (int i = threadIdx.x; i < n4; i += blockDim.x) {
    float4 v = x[i], w = weight[i];
    out[(size_t)blockIdx.x * n4 + i] =
        make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z,
                    v.w * scale * w.w);
  }
}

extern "C" __global__ void rms_norm_half(const half *in, const half *weight,
                                         half *out, int n, float eps) {
  const half2 *x = reinterpret_cast<const half2 *>(in + (size_t)blockIdx.x * n);
  const half2 *w = reinterpret_cast<const half2 *>(weight);
  half2 *y = reinterpret_cast<half2 *>(out + (size_t)blockIdx.x * n);
  float squares = 0.f;
  for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
    float2 v = __half22float2(x[i]);
    squares += v.x * v.x + v.y * v.y;
  }
  half2 scale = __float2half2_rn(rsqrtf(blockSum(squares) / n + eps));
  for (int i = threadIdx.x; i < n / 2; i += blockDim.x)
    y[i] = __hmul2(__hmul2(x[i], scale), w[i]);
}

extern "C" __global__ void
batch_norm_inference(const float *in, const float *mean, const float *variance,
                     float *out, int channels, int pixels, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int c = i / pixels % channels;
  out[i] = (in[i] - mean[c]) * rsqrtf(variance[c] + 1e-5f);
}

extern "C" __global__ void cross_entropy(const float *logits, const int *labels,
                                         float *loss, int rows, int n) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  const float *x = logits + (size_t)row * n;
  float most = -INFINITY, sum = 0.f;
  for (int i = lane; i < n; i += 32)
    most = fmaxf(most, x[i]);
  most = warpMax(most);
  for (int i = lane; i < n; i += 32)
    sum += expf(x[i] - most);
  sum = warpSum(sum);
  if (lane == 0)
    loss[row] = logf(sum) + most - x[labels[row]];
}

extern "C" __global__ void softmax_backward(const float *y, const float *dy,
                                            float *dx, int n) {
  size_t base = (size_t)blockIdx.x * n;
  float dot = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    dot += y[base + i] * dy[base + i];
  dot = blockSum(dot);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    dx[base + i] = y[base + i] * (dy[base + i] - dot);
}
