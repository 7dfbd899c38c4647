// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element-wise kernels: vectors, grid strides, strides that do not fit.

extern "C" __global__ void add_f32(const float *__restrict__ a,
                                   const float *__restrict__ b,
                                   float *__restrict__ c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}

extern "C" __global__ void add_f32x4(const float4 *__restrict__ a,
                                     const float4 *__restrict__ b,
                                     float4 *__restrict__ c, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4)
    return;
  float4 x = a[i], y = b[i];
  c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
}

extern "C" __global__ void __launch_bounds__(256)
    saxpy_grid_stride(float alpha, const float *__restrict__ x, float *y,
                      int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    y[i] = fmaf(alpha, x[i], y[i]);
}

extern "C" __global__ void clamp_select(const float *in, float *out, float low,
                                        float high, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = in[i];
    out[i] = v < low ? low : v > high ? high : v;
  }
}

extern "C" __global__ void bias_relu_2d(const float *__restrict__ in,
                                        const float *__restrict__ bias,
                                        float *__restrict__ out, int rows,
                                        int columns) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows)
    out[y * columns + x] = fmaxf(in[y * columns + x] + bias[x], 0.f);
}

extern "C" __global__ void interleave_u8(const uchar4 *a, uchar4 *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    uchar4 v = a[i];
    b[i] = make_uchar4(v.z, v.y, v.x, 255 - v.w);
  }
}

// Offsets of 64 bits, as code that may meet big tensors has them.
extern "C" __global__ void add_wide(const double *a, double *b, long long n,
                                    long long pitch) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    size_t at = (size_t)i * pitch;
    b[at] = a[at] * 2.0 + (double)(i % 7) / 3.0;
  }
}

template <typename T, int PER_THREAD>
struct Square {
  __device__ static void run(const T *in, T *out, int n) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER_THREAD;
#pragma unroll
    for (int k = 0; k < PER_THREAD; ++k)
      if (first + k < n)
        out[first + k] = in[first + k] * in[first + k];
  }
};

template <typename T, int PER_THREAD>
__global__ void square_template(const T *in, T *out, int n) {
  Square<T, PER_THREAD>::run(in, out, n);
}
template __global__ void square_template<float, 4>(const float *, float *, int);
template __global__ void square_template<int, 3>(const int *, int *, int);
