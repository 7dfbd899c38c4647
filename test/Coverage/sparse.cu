// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sparse matrices.

extern "C" __global__ void spmv_csr_scalar(const int *offsets,
                                           const int *columns,
                                           const float *values, const float *x,
                                           float *y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float sum = 0.f;
  for (int k = offsets[row]; k < offsets[row + 1]; ++k)
    sum += values[k] * x[columns[k]];
  y[row] = sum;
}

extern "C" __global__ void spmv_csr_vector(const int *offsets,
                                           const int *columns,
                                           const float *values, const float *x,
                                           float *y, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
  float sum = 0.f;
  if (row < rows)
    for (int k = offsets[row] + lane; k < offsets[row + 1]; k += 8)
      sum += values[k] * __ldg(&x[columns[k]]);
#pragma unroll
  for (int o = 4; o; o >>= 1)
    sum += __shfl_down_sync(0xffffffffu, sum, o, 8);
  if (lane == 0 && row < rows)
    y[row] = sum;
}

extern "C" __global__ void spmv_coo_atomic(const int *rows, const int *columns,
                                           const float *values, const float *x,
                                           float *y, int n) {
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n)
    atomicAdd(&y[rows[k]], values[k] * x[columns[k]]);
}

extern "C" __global__ void spmv_ell(const int *columns, const float *values,
                                    const float *x, float *y, int perRow,
                                    int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  float sum = 0.f;
#pragma unroll 2
  for (int k = 0; k < perRow; ++k)
    sum += values[k * rows + row] * x[columns[k * rows + row]];
  y[row] = sum;
}

extern "C" __global__ void spmm_csr(const int *offsets, const int *columns,
                                    const float *values, const float *b,
                                    float *c, int width) {
  int row = blockIdx.x;
  __shared__ int cols[32];
  __shared__ float vals[32];
  float sum = 0.f;
  for (int k0 = offsets[row]; k0 < offsets[row + 1]; k0 += 32) {
    int count = min(32, offsets[row + 1] - k0);
    if (threadIdx.x < count) {
      cols[threadIdx.x] = columns[k0 + threadIdx.x];
      vals[threadIdx.x] = values[k0 + threadIdx.x];
    }
    __syncthreads();
    for (int k = 0; k < count; ++k)
      sum += vals[k] * b[cols[k] * width + threadIdx.x];
    __syncthreads();
  }
  c[row * width + threadIdx.x] = sum;
}

// Forward substitution, a column at a time; unit diagonal.
extern "C" __global__ void triangular_solve(const float *l, const float *b,
                                            float *x, int n) {
  extern __shared__ float rest[];
  int i = threadIdx.x;
  rest[i] = b[i];
  __syncthreads();
  for (int k = 0; k < n - 1; ++k) {
    float xk = rest[k];
    if (i > k)
      rest[i] -= l[i * n + k] * xk;
    __syncthreads();
  }
  x[i] = rest[i];
}
