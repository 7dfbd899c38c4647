// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transposes, permutations, gathers and scatters.

extern "C" __global__ void transpose_naive(const float *in, float *out,
                                           int rows, int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows)
    out[x * rows + y] = in[y * columns + x];
}

extern "C" __global__ void transpose_shared(const float *in, float *out,
                                            int rows, int columns) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows)
      tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < columns)
      out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

// Columns swizzled by an exclusive or instead of a pad.
extern "C" __global__ void transpose_swizzled(const float *in, float *out,
                                              int rows, int columns) {
  __shared__ float tile[32][32];
  int tx = threadIdx.x, ty = threadIdx.y;
  int x = blockIdx.x * 32, y = blockIdx.y * 32;
  for (int j = ty; j < 32; j += blockDim.y)
    tile[j][tx ^ j] = in[(y + j) * columns + x + tx];
  __syncthreads();
  for (int j = ty; j < 32; j += blockDim.y)
    out[(x + j) * rows + y + tx] = tile[tx][j ^ tx];
}

extern "C" __global__ void permute_0213(const float *in, float *out, int b,
                                        int s, int h, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= b * s * h * d)
    return;
  int e = i % d, head = i / d % h, token = i / (d * h) % s,
      batch = i / (d * h * s);
  out[((batch * h + head) * s + token) * d + e] = in[i];
}

extern "C" __global__ void gather_rows(const float *table, const int *index,
                                       float *out, int rows, int width) {
  for (int r = blockIdx.x * blockDim.y + threadIdx.y; r < rows;
       r += gridDim.x * blockDim.y) {
    long long from = (long long)index[r] * width;
    for (int c = threadIdx.x; c < width; c += blockDim.x)
      out[(long long)r * width + c] = table[from + c];
  }
}

extern "C" __global__ void scatter_permuted(const float *in, const int *index,
                                            float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[index[i]] = in[i];
}

extern "C" __global__ void scatter_add(const float *in, const int *index,
                                       float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&out[index[i]], in[i]);
}

extern "C" __global__ void embedding_bag(const float *table, const int *indices,
                                         const int *offsets, float *out,
                                         int width) {
  int bag = blockIdx.x;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    float sum = 0.f;
    for (int k = offsets[bag]; k < offsets[bag + 1]; ++k)
      sum += table[(size_t)indices[k] * width + c];
    out[(size_t)bag * width + c] = sum;
  }
}

extern "C" __global__ void reverse_array(const int *in, int *out, int n) {
  extern __shared__ int buffer[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  buffer[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  if (i < n)
    out[n - 1 - i] = buffer[threadIdx.x];
}

extern "C" __global__ void memcpy_mixed_widths(const char *in, char *out,
                                               int bytes) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  int n16 = bytes / 16;
  for (int i = t; i < n16; i += step)
    ((uint4 *)out)[i] = ((const uint4 *)in)[i];
  for (int i = n16 * 16 + t; i < bytes; i += step)
    out[i] = in[i];
}
