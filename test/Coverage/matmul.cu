// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of matrices without tensor cores.

extern "C" __global__ void matmul_naive(const float *a, const float *b,
                                        float *c, int m, int n, int k) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < m && col < n) {
    float sum = 0.f;
    for (int i = 0; i < k; ++i)
      sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
  }
}

#define TILE 16
extern "C" __global__ void matmul_shared(const float *a, const float *b,
                                         float *c, int m, int n, int k) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  float sum = 0.f;
  for (int t = 0; t < (k + TILE - 1) / TILE; ++t) {
    as[ty][tx] =
        row < m && t * TILE + tx < k ? a[row * k + t * TILE + tx] : 0.f;
    bs[ty][tx] =
        col < n && t * TILE + ty < k ? b[(t * TILE + ty) * n + col] : 0.f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TILE; ++i)
      sum = fmaf(as[ty][i], bs[i][tx], sum);
    __syncthreads();
  }
  if (row < m && col < n)
    c[row * n + col] = sum;
}

// 64x64 of a block of 256 threads, 4x4 of a thread, two stages in shared
// memory with the next tile in registers.
extern "C" __global__ void __launch_bounds__(256)
    matmul_register_tiles(const float *__restrict__ a,
                          const float *__restrict__ b, float *__restrict__ c,
                          int m, int n, int k) {
  __shared__ float as[2][8][64 + 4], bs[2][8][64];
  int t = threadIdx.x;
  int tx = t % 16, ty = t / 16;
  int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  int aRow = t / 4, aCol = t % 4 * 2, bRow = t / 32, bCol = t % 32 * 2;
  float acc[4][4] = {};
  float2 nextA =
      *reinterpret_cast<const float2 *>(&a[(row0 + aRow) * k + aCol]);
  float2 nextB = *reinterpret_cast<const float2 *>(&b[bRow * n + col0 + bCol]);
  as[0][aCol][aRow] = nextA.x;
  as[0][aCol + 1][aRow] = nextA.y;
  *reinterpret_cast<float2 *>(&bs[0][bRow][bCol]) = nextB;
  __syncthreads();
  int stage = 0;
  for (int k0 = 0; k0 < k; k0 += 8) {
    bool more = k0 + 8 < k;
    if (more) {
      nextA = *reinterpret_cast<const float2 *>(
          &a[(row0 + aRow) * k + k0 + 8 + aCol]);
      nextB = *reinterpret_cast<const float2 *>(
          &b[(k0 + 8 + bRow) * n + col0 + bCol]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float4 x = *reinterpret_cast<float4 *>(&as[stage][i][ty * 4]);
      float4 y = *reinterpret_cast<float4 *>(&bs[stage][i][tx * 4]);
      float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          acc[r][q] += xs[r] * ys[q];
    }
    if (more) {
      stage ^= 1;
      as[stage][aCol][aRow] = nextA.x;
      as[stage][aCol + 1][aRow] = nextA.y;
      *reinterpret_cast<float2 *>(&bs[stage][bRow][bCol]) = nextB;
      __syncthreads();
    }
  }
#pragma unroll
  for (int r = 0; r < 4; ++r)
    *reinterpret_cast<float4 *>(&c[(row0 + ty * 4 + r) * n + col0 + tx * 4]) =
        make_float4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
}

// Tiles come by cp.async, one stage ahead.
__device__ __forceinline__ void copyAsync16(void *to, const void *from) {
  unsigned address = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address),
               "l"(from));
}

extern "C" __global__ void matmul_cp_async(const float *a, const float *b,
                                           float *c, int n, int k) {
  __shared__ __align__(16) float as[2][32][8], bs[2][8][32];
  int t = threadIdx.x; // 64
  int row0 = blockIdx.y * 32, col0 = blockIdx.x * 32;
  auto fetch = [&](int stage, int k0) {
    copyAsync16(&as[stage][t / 2][t % 2 * 4],
                &a[(row0 + t / 2) * k + k0 + t % 2 * 4]);
    copyAsync16(&bs[stage][t / 8][t % 8 * 4],
                &b[(k0 + t / 8) * n + col0 + t % 8 * 4]);
    asm volatile("cp.async.commit_group;");
  };
  float acc[4][4] = {};
  int ty = t / 8, tx = t % 8;
  fetch(0, 0);
  for (int k0 = 0, stage = 0; k0 < k; k0 += 8, stage ^= 1) {
    if (k0 + 8 < k) {
      fetch(stage ^ 1, k0 + 8);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int q = 0; q < 4; ++q)
          acc[r][q] += as[stage][ty * 4 + r][i] * bs[stage][i][tx * 4 + q];
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r)
    for (int q = 0; q < 4; ++q)
      c[(row0 + ty * 4 + r) * n + col0 + tx * 4 + q] = acc[r][q];
}

// A row of the result a warp: matrix times vector.
extern "C" __global__ void gemv_warp(const float *a, const float *x, float *y,
                                     int m, int k) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (row >= m)
    return;
  float sum = 0.f;
  for (int i = lane * 4; i < k; i += 128) {
    float4 v = *reinterpret_cast<const float4 *>(&a[row * k + i]);
    float4 w = __ldg(reinterpret_cast<const float4 *>(&x[i]));
    sum += v.x * w.x + v.y * w.y + v.z * w.z + v.w * w.w;
  }
  for (int o = 16; o; o >>= 1)
    sum += __shfl_xor_sync(0xffffffff, sum, o);
  if (lane == 0)
    y[row] = sum;
}

extern "C" __global__ void matmul_int8_dp4a(const int *a, const int *b, int *c,
                                            int m, int n, int k4) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n)
    return;
  int sum = 0; // b is transposed: both have 4 values of k in a word.
  for (int i = 0; i < k4; ++i)
    sum = __dp4a(a[row * k4 + i], b[col * k4 + i], sum);
  c[row * n + col] = sum;
}

extern "C" __global__ void matmul_split_k(const float *a, const float *b,
                                          float *c, int m, int n, int k) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n)
    return;
  int share = k / gridDim.z, first = blockIdx.z * share;
  float sum = 0.f;
  for (int i = first; i < first + share; ++i)
    sum += a[row * k + i] * b[i * n + col];
  atomicAdd(&c[row * n + col], sum);
}

extern "C" __global__ void matmul_batched_f64(const double *a, const double *b,
                                              double *c, int n) {
  extern __shared__ double tiles[];
  double *as = tiles, *bs = tiles + n * n;
  size_t base = (size_t)blockIdx.x * n * n;
  int t = threadIdx.y * n + threadIdx.x;
  as[t] = a[base + t];
  bs[t] = b[base + t];
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += as[threadIdx.y * n + i] * bs[i * n + threadIdx.x];
  c[base + t] = sum;
}
