// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stencils in two and three dimensions, and cellular automata.

extern "C" __global__ void jacobi_2d(const float *in, float *out, int h,
                                     int w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  int i = y * w + x;
  if (x == 0 || y == 0 || x == w - 1 || y == h - 1)
    out[i] = in[i];
  else
    out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w]);
}

extern "C" __global__ void jacobi_2d_shared(const float *in, float *out, int h,
                                            int w) {
  __shared__ float tile[10][34];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  auto at = [&](int yy, int xx) {
    return yy >= 0 && yy < h && xx >= 0 && xx < w ? in[yy * w + xx] : 0.f;
  };
  tile[ty][tx] = at(y, x);
  if (threadIdx.x == 0)
    tile[ty][0] = at(y, x - 1);
  if (threadIdx.x == 31)
    tile[ty][33] = at(y, x + 1);
  if (threadIdx.y == 0)
    tile[0][tx] = at(y - 1, x);
  if (threadIdx.y == 7)
    tile[9][tx] = at(y + 1, x);
  __syncthreads();
  if (x >= w || y >= h)
    return;
  bool edge = x == 0 || y == 0 || x == w - 1 || y == h - 1;
  out[y * w + x] = edge ? tile[ty][tx]
                        : 0.25f * (tile[ty][tx - 1] + tile[ty][tx + 1] +
                                   tile[ty - 1][tx] + tile[ty + 1][tx]);
}

// A plane of threads goes along z with its column in registers.
extern "C" __global__ void heat_3d(const float *in, float *out, int d, int h,
                                   int w, float c) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
    return;
  size_t plane = (size_t)h * w, i = (size_t)y * w + x;
  float below = in[i], here = in[i + plane], above;
  for (int z = 1; z < d - 1; ++z) {
    i += plane;
    above = in[i + plane];
    out[i] = here + c * (below + above + in[i - 1] + in[i + 1] + in[i - w] +
                         in[i + w] - 6.f * here);
    below = here;
    here = above;
  }
}

extern "C" __global__ void game_of_life(const unsigned char *in,
                                        unsigned char *out, int h, int w) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  int alive = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (dx || dy)
        alive += in[(y + dy + h) % h * w + (x + dx + w) % w];
  out[y * w + x] = alive == 3 || (alive == 2 && in[y * w + x]);
}

// 32 cells a word, sums by full adders.
extern "C" __global__ void rule_30_bits(const unsigned *in, unsigned *out,
                                        int words) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= words)
    return;
  unsigned middle = in[i];
  unsigned before = i ? in[i - 1] : 0, after = i + 1 < words ? in[i + 1] : 0;
  unsigned left = __funnelshift_l(before, middle, 1);
  unsigned right = __funnelshift_r(middle, after, 1);
  out[i] = left ^ (middle | right);
}

extern "C" __global__ void smooth_1d_steps(float *data, int steps) {
  __shared__ float a[130], b[130];
  int t = threadIdx.x + 1;
  a[t] = data[threadIdx.x];
  if (t == 1)
    a[0] = a[129] = b[0] = b[129] = 0.f;
  __syncthreads();
  float *from = a, *to = b;
  for (int s = 0; s < steps; ++s) {
    to[t] = (from[t - 1] + from[t] + from[t + 1]) / 3.f;
    __syncthreads();
    float *swap = from;
    from = to;
    to = swap;
  }
  data[threadIdx.x] = from[t];
}
