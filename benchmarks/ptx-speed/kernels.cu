// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels of ptx-speed, as people write them. kernels.ptx is what
//   nvcc -ptx -arch=sm_90 -O3 kernels.cu
// makes of them; it is committed, so that measuring needs no CUDA.

/// C = A B, square, a tile of T x T by as many threads.
template <int T>
__device__ void matmul(const float *a, const float *b, float *c, int n) {
  __shared__ float as[T][T], bs[T][T];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * T + y, column = blockIdx.x * T + x;
  float sum = 0;
  for (int k = 0; k < n; k += T) {
    as[y][x] = a[row * n + k + x];
    bs[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < T; ++i)
      sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
extern "C" __global__ void matmul16(const float *a, const float *b, float *c,
                                    int n) {
  matmul<16>(a, b, c, n);
}
extern "C" __global__ void matmul32(const float *a, const float *b, float *c,
                                    int n) {
  matmul<32>(a, b, c, n);
}

/// Each thread 4 x 4 outputs of a tile of 64 x 64, vector loads.
extern "C" __global__ void __launch_bounds__(256)
    matmul_registers(const float *a, const float *b, float *c, int n) {
  __shared__ float as[16][64], bs[16][64];
  int t = threadIdx.x, x = t % 16, y = t / 16;
  int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    float4 v = *(const float4 *)&a[(row + t / 4) * n + k + t % 4 * 4];
    as[t % 4 * 4 + 0][t / 4] = v.x;
    as[t % 4 * 4 + 1][t / 4] = v.y;
    as[t % 4 * 4 + 2][t / 4] = v.z;
    as[t % 4 * 4 + 3][t / 4] = v.w;
    *(float4 *)&bs[y][x * 4] =
        *(const float4 *)&b[(k + y) * n + column + x * 4];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float4 p = *(const float4 *)&as[i][y * 4];
      float4 q = *(const float4 *)&bs[i][x * 4];
      float l[4] = {p.x, p.y, p.z, p.w}, r[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int u = 0; u < 4; ++u)
#pragma unroll
        for (int v = 0; v < 4; ++v)
          sum[u][v] += l[u] * r[v];
    }
    __syncthreads();
  }
#pragma unroll
  for (int u = 0; u < 4; ++u)
    *(float4 *)&c[(row + y * 4 + u) * n + column + x * 4] =
        make_float4(sum[u][0], sum[u][1], sum[u][2], sum[u][3]);
}

/// 512 keys a block of 256 threads.
extern "C" __global__ void bitonic(const int *in, int *out) {
  __shared__ int keys[512];
  int t = threadIdx.x, base = blockIdx.x * 512;
  keys[t] = in[base + t];
  keys[t + 256] = in[base + t + 256];
  for (int size = 2; size <= 512; size <<= 1)
    for (int stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      int at = 2 * t - (t & (stride - 1));
      bool up = (at & size) == 0;
      int l = keys[at], r = keys[at + stride];
      if ((l > r) == up) {
        keys[at] = r;
        keys[at + stride] = l;
      }
    }
  __syncthreads();
  out[base + t] = keys[t];
  out[base + t + 256] = keys[t + 256];
}

/// A block counts in shared memory what it meets, then adds to all bins.
extern "C" __global__ void histogram_shared(const unsigned *in, unsigned *bins,
                                            int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&own[in[i] & 255], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void histogram_global(const unsigned *in, unsigned *bins,
                                            int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i] & 255], 1);
}

/// Indirect reads and column-wise writes in global memory.
extern "C" __global__ void gather(const unsigned *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = i;
  float sum = 0;
  for (int step = 0; step < 32; ++step) {
    at = in[at % n];
    sum += at;
  }
  out[i % 512 * (n / 512) + i / 512] = sum;
}

/// One block a row of `n`.
extern "C" __global__ void softmax_block(const float *in, float *out, int n) {
  __shared__ float partial[8];
  const float *x = in + (size_t)blockIdx.x * n;
  float *y = out + (size_t)blockIdx.x * n;
  int t = threadIdx.x;
  float most = __int_as_float(0xff800000);
  for (int i = t; i < n; i += blockDim.x)
    most = fmaxf(most, x[i]);
  for (int by = 16; by; by >>= 1)
    most = fmaxf(most, __shfl_xor_sync(~0u, most, by));
  if (t % 32 == 0)
    partial[t / 32] = most;
  __syncthreads();
  for (int i = 0; i < 8; ++i)
    most = fmaxf(most, partial[i]);
  __syncthreads();
  float sum = 0;
  for (int i = t; i < n; i += blockDim.x)
    sum += expf(x[i] - most);
  for (int by = 16; by; by >>= 1)
    sum += __shfl_xor_sync(~0u, sum, by);
  if (t % 32 == 0)
    partial[t / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; ++i)
    sum += partial[i];
  for (int i = t; i < n; i += blockDim.x)
    y[i] = expf(x[i] - most) / sum;
}

/// One thread a row, as a compiler makes it of loops.
extern "C" __global__ void softmax_rows(const float *in, float *out, int n) {
  size_t row = blockIdx.x * blockDim.x + threadIdx.x;
  const float *x = in + row * n;
  float *y = out + row * n;
  float most = __int_as_float(0xff800000), sum = 0;
  for (int i = 0; i < n; ++i)
    most = fmaxf(most, x[i]);
  for (int i = 0; i < n; ++i) {
    float e = expf(x[i] - most);
    y[i] = e;
    sum += e;
  }
  for (int i = 0; i < n; ++i)
    y[i] /= sum;
}
