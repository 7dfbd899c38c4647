// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums, extremes and arguments of extremes.

extern "C" __global__ void sum_shared_tree(const float *in, float *out, int n) {
  extern __shared__ float partial[];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x * 2 + t;
  float v = i < n ? in[i] : 0.f;
  if (i + blockDim.x < n)
    v += in[i + blockDim.x];
  partial[t] = v;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (t < s)
      partial[t] += partial[t + s];
    __syncthreads();
  }
  if (t == 0)
    out[blockIdx.x] = partial[0];
}

__inline__ __device__ float warpSum(float v) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1)
    v += __shfl_down_sync(0xffffffffu, v, offset);
  return v;
}

__inline__ __device__ float blockSum(float v) {
  static __shared__ float shared[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = warpSum(v);
  if (lane == 0)
    shared[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? shared[lane] : 0.f;
  if (warp == 0)
    v = warpSum(v);
  return v;
}

extern "C" __global__ void sum_shuffle(const float *in, float *out, int n) {
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    v += in[i];
  v = blockSum(v);
  if (threadIdx.x == 0)
    atomicAdd(out, v);
}

extern "C" __global__ void sum_vector4(const float4 *in, float *out, int n4) {
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4;
       i += blockDim.x * gridDim.x) {
    float4 x = in[i];
    v += (x.x + x.y) + (x.z + x.w);
  }
  v = blockSum(v);
  if (threadIdx.x == 0)
    atomicAdd(out, v);
}

// The block that comes last adds up what all have left.
__device__ unsigned int blocksDone = 0;
extern "C" __global__ void sum_last_block(const float *in, float *partial,
                                          float *out, int n) {
  __shared__ bool isLast;
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    v += in[i];
  v = blockSum(v);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = v;
    __threadfence();
    unsigned ticket = atomicInc(&blocksDone, gridDim.x - 1);
    isLast = ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (isLast) {
    __threadfence();
    v = 0.f;
    for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x)
      v += ((volatile float *)partial)[i];
    v = blockSum(v);
    if (threadIdx.x == 0)
      *out = v;
  }
}

// The warp tail without barriers, with __syncwarp between the steps.
extern "C" __global__ void sum_unrolled_tail(const float *in, float *out) {
  __shared__ float partial[256];
  int t = threadIdx.x;
  partial[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  if (t < 128)
    partial[t] += partial[t + 128];
  __syncthreads();
  if (t < 64)
    partial[t] += partial[t + 64];
  __syncthreads();
  if (t < 32) {
    float v = partial[t] + partial[t + 32];
#pragma unroll
    for (int s = 16; s > 0; s >>= 1) {
      partial[t] = v;
      __syncwarp();
      v += t < s ? partial[t + s] : 0.f;
      __syncwarp();
    }
    if (t == 0)
      out[blockIdx.x] = v;
  }
}

extern "C" __global__ void max_atomic_cas(const float *in, float *out, int n) {
  float m = -3.4e38f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    m = fmaxf(m, in[i]);
  for (int o = 16; o; o >>= 1)
    m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if ((threadIdx.x & 31) == 0) {
    int *address = (int *)out;
    int old = atomicAdd(address, 0), assumed;
    while (__int_as_float(old) < m) {
      assumed = old;
      old = atomicCAS(address, assumed, __float_as_int(m));
      if (old == assumed)
        break;
    }
  }
}

extern "C" __global__ void argmax_block(const float *in, int *out, int n) {
  float best = -3.4e38f;
  int at = 0x7fffffff;
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (in[i] > best) {
      best = in[i];
      at = i;
    }
  for (int o = 16; o; o >>= 1) {
    float other = __shfl_down_sync(~0u, best, o);
    int where = __shfl_down_sync(~0u, at, o);
    if (other > best || (other == best && where < at)) {
      best = other;
      at = where;
    }
  }
  __shared__ float values[32];
  __shared__ int places[32];
  if (threadIdx.x % 32 == 0) {
    values[threadIdx.x / 32] = best;
    places[threadIdx.x / 32] = at;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < blockDim.x / 32; ++w)
      if (values[w] > best || (values[w] == best && places[w] < at)) {
        best = values[w];
        at = places[w];
      }
    out[0] = at;
  }
}

extern "C" __global__ void reduce_redux(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0;
  int sum = __reduce_add_sync(0xffffffffu, v);
  int most = __reduce_max_sync(0xffffffffu, v);
  unsigned any = __reduce_or_sync(0xffffffffu, (unsigned)v);
  if ((threadIdx.x & 31) == 0) {
    atomicAdd(&out[0], sum);
    atomicMax(&out[1], most);
    atomicOr((unsigned *)&out[2], any);
  }
}

extern "C" __global__ void column_sums(const float *in, float *out, int rows,
                                       int columns) {
  __shared__ float tile[8][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  float v = 0.f;
  if (c < columns)
    for (int r = threadIdx.y; r < rows; r += 8)
      v += in[r * columns + c];
  tile[threadIdx.y][threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.y == 0 && c < columns) {
    float sum = 0.f;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      sum += tile[k][threadIdx.x];
    out[c] = sum;
  }
}

extern "C" __global__ void mean_variance_welford(const float *in, float *out,
                                                 int n) {
  float mean = 0.f, m2 = 0.f;
  int count = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    ++count;
    float d = in[i] - mean;
    mean += d / count;
    m2 += d * (in[i] - mean);
  }
  for (int o = 16; o; o >>= 1) {
    float otherMean = __shfl_xor_sync(~0u, mean, o);
    float otherM2 = __shfl_xor_sync(~0u, m2, o);
    int otherCount = __shfl_xor_sync(~0u, count, o);
    int all = count + otherCount;
    if (all) {
      float d = otherMean - mean;
      mean += d * otherCount / all;
      m2 += otherM2 + d * d * count * otherCount / all;
    }
    count = all;
  }
  if (threadIdx.x == 0) {
    out[0] = mean;
    out[1] = m2 / n;
  }
}

extern "C" __global__ void dot_double(const double *a, const double *b,
                                      double *out, int n) {
  double v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    v = fma(a[i], b[i], v);
  for (int o = 16; o; o >>= 1)
    v += __shfl_down_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0)
    atomicAdd(out, v);
}

// A compare-and-swap loop, as for types that have no atomic of their own.
extern "C" __global__ void product_cas64(const double *in, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned long long *address = (unsigned long long *)out;
  unsigned long long old = *(volatile unsigned long long *)address, assumed;
  do {
    assumed = old;
    old =
        atomicCAS(address, assumed,
                  __double_as_longlong(in[i] * __longlong_as_double(assumed)));
  } while (assumed != old);
}
