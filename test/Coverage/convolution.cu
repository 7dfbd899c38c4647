// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions and pooling, one image, channels first.

extern "C" __global__ void conv2d_direct(const float *in, const float *weight,
                                         float *out, int channels, int h,
                                         int w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int filter = blockIdx.z;
  if (x >= w || y >= h)
    return;
  float sum = 0.f;
  for (int c = 0; c < channels; ++c)
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
      for (int dx = -1; dx <= 1; ++dx) {
        int yy = y + dy, xx = x + dx;
        if (yy >= 0 && yy < h && xx >= 0 && xx < w)
          sum += in[(c * h + yy) * w + xx] *
                 weight[((filter * channels + c) * 3 + dy + 1) * 3 + dx + 1];
      }
  out[(filter * h + y) * w + x] = sum;
}

#define SIDE 16
#define RADIUS 2
extern "C" __global__ void conv2d_shared_halo(const float *in,
                                              const float *weight, float *out,
                                              int channels, int h, int w) {
  __shared__ float tile[SIDE + 2 * RADIUS][SIDE + 2 * RADIUS + 1];
  int x0 = blockIdx.x * SIDE - RADIUS, y0 = blockIdx.y * SIDE - RADIUS;
  int c = blockIdx.z; // Depth-wise.
  const int span = SIDE + 2 * RADIUS;
  for (int i = threadIdx.y * SIDE + threadIdx.x; i < span * span;
       i += SIDE * SIDE) {
    int yy = y0 + i / span, xx = x0 + i % span;
    tile[i / span][i % span] = yy >= 0 && yy < h && xx >= 0 && xx < w
                                   ? in[(c * h + yy) * w + xx]
                                   : 0.f;
  }
  __syncthreads();
  int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float sum = 0.f;
#pragma unroll
  for (int dy = 0; dy < 5; ++dy)
#pragma unroll
    for (int dx = 0; dx < 5; ++dx)
      sum += tile[threadIdx.y + dy][threadIdx.x + dx] *
             weight[(c * 5 + dy) * 5 + dx];
  out[(c * h + y) * w + x] = sum;
}

extern "C" __global__ void conv1d_registers(const float *__restrict__ in,
                                            const float *__restrict__ filter,
                                            float *out, int n, int k) {
  __shared__ float taps[32];
  if (threadIdx.x < k)
    taps[threadIdx.x] = filter[threadIdx.x];
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float sum = 0.f;
  for (int j = 0; j < k; ++j) {
    int at = i + j - k / 2;
    sum += at >= 0 && at < n ? in[at] * taps[j] : 0.f;
  }
  out[i] = sum;
}

extern "C" __global__ void im2col_3x3(const float *in, float *columns,
                                      int channels, int h, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= channels * h * w)
    return;
  int x = i % w, y = i / w % h, c = i / (w * h);
  for (int ky = 0; ky < 3; ++ky)
    for (int kx = 0; kx < 3; ++kx) {
      int yy = y + ky - 1, xx = x + kx - 1;
      bool inside = (unsigned)yy < (unsigned)h && (unsigned)xx < (unsigned)w;
      columns[(((c * 3 + ky) * 3 + kx) * h + y) * w + x] =
          inside ? in[(c * h + yy) * w + xx] : 0.f;
    }
}

extern "C" __global__ void max_pool_2x2(const float *in, float *out, int h,
                                        int w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int ow = w / 2, oh = h / 2;
  if (x >= ow || y >= oh)
    return;
  const float2 *top = reinterpret_cast<const float2 *>(
      in + ((size_t)blockIdx.z * h + 2 * y) * w);
  const float2 *bottom = top + w / 2;
  float2 a = top[x], b = bottom[x];
  out[((size_t)blockIdx.z * oh + y) * ow + x] =
      fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y));
}

extern "C" __global__ void average_pool_2x2(const float *in, float *out, int h,
                                            int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int ow = w / 2, oh = h / 2;
  int c = i / (ow * oh), y = i / ow % oh, x = i % ow;
  const float *p = in + (c * h + 2 * y) * w + 2 * x;
  out[i] = 0.25f * (p[0] + p[1] + p[w] + p[w + 1]);
}

extern "C" __global__ void upsample_nearest(const float *in, float *out, int h,
                                            int w) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < 2 * w && y < 2 * h)
    out[(blockIdx.z * 2 * h + y) * 2 * w + x] =
        in[(blockIdx.z * h + (y >> 1)) * w + (x >> 1)];
}

extern "C" __global__ void global_average_pool(const float *in, float *out,
                                               int pixels) {
  const float *p = in + blockIdx.x * pixels;
  float sum = 0.f;
  for (int i = threadIdx.x; i < pixels; i += 32)
    sum += p[i];
  for (int o = 16; o; o >>= 1)
    sum += __shfl_down_sync(~0u, sum, o);
  if (threadIdx.x == 0)
    out[blockIdx.x] = sum / pixels;
}

__constant__ float sobel[9] = {-1, 0, 1, -2, 0, 2, -1, 0, 1};
extern "C" __global__ void sobel_clamped(const unsigned char *in, float *out,
                                         int h, int w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  float gx = 0.f, gy = 0.f;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) {
      int xx = min(max(x + i - 1, 0), w - 1),
          yy = min(max(y + j - 1, 0), h - 1);
      float v = in[yy * w + xx];
      gx += sobel[j * 3 + i] * v;
      gy += sobel[i * 3 + j] * v;
    }
  out[y * w + x] = sqrtf(gx * gx + gy * gy);
}
