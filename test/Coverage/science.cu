// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simulation, finance, transforms, random numbers.

extern "C" __global__ void mandelbrot(int *out, int w, int h, int most) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h)
    return;
  double cx = -2.0 + 3.0 * x / w, cy = -1.5 + 3.0 * y / h, zx = 0, zy = 0;
  int i = 0;
  while (i < most && zx * zx + zy * zy <= 4.0) {
    double t = zx * zx - zy * zy + cx;
    zy = 2 * zx * zy + cy;
    zx = t;
    ++i;
  }
  out[y * w + x] = i;
}

extern "C" __global__ void nbody_tiled(const float4 *bodies, float4 *forces,
                                       int n) {
  __shared__ float4 tile[64];
  int i = blockIdx.x * 64 + threadIdx.x;
  float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
  float3 force = make_float3(0, 0, 0);
  for (int first = 0; first < n; first += 64) {
    int j = first + threadIdx.x;
    tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < 64; ++k) {
      float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
      float r2 = dx * dx + dy * dy + dz * dz + 0.01f;
      float inverse = rsqrtf(r2);
      float s = tile[k].w * inverse * inverse * inverse;
      force.x += dx * s;
      force.y += dy * s;
      force.z += dz * s;
    }
    __syncthreads();
  }
  if (i < n)
    forces[i] = make_float4(force.x, force.y, force.z, 0.f);
}

__device__ double normalCdf(double x) {
  return 0.5 * erfc(-x * 0.70710678118654752);
}

extern "C" __global__ void black_scholes(const double *price,
                                         const double *strike,
                                         const double *years, double *call,
                                         double *put, double rate,
                                         double volatility, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double s = price[i], k = strike[i], t = years[i], root = sqrt(t);
  double d1 = (log(s / k) + (rate + 0.5 * volatility * volatility) * t) /
              (volatility * root);
  double d2 = d1 - volatility * root, discount = exp(-rate * t);
  call[i] = s * normalCdf(d1) - k * discount * normalCdf(d2);
  put[i] = k * discount * normalCdf(-d2) - s * normalCdf(-d1);
}

// Radix 2 in shared memory, bits of the index reversed first.
extern "C" __global__ void fft_radix2(const float2 *in, float2 *out, int logN) {
  extern __shared__ float2 data[];
  int n = 1 << logN, t = threadIdx.x; // n / 2 threads
  for (int i = t; i < n; i += n / 2)
    data[__brev(i) >> (32 - logN)] = in[blockIdx.x * n + i];
  __syncthreads();
  for (int s = 1; s <= logN; ++s) {
    int half = 1 << (s - 1), k = t & (half - 1), at = ((t >> (s - 1)) << s) + k;
    float sine, cosine;
    sincospif(-(float)k / half, &sine, &cosine);
    float2 a = data[at], b = data[at + half];
    float2 r =
        make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
    data[at] = make_float2(a.x + r.x, a.y + r.y);
    data[at + half] = make_float2(a.x - r.x, a.y - r.y);
    __syncthreads();
  }
  for (int i = t; i < n; i += n / 2)
    out[blockIdx.x * n + i] = data[i];
}

__device__ uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
  for (int r = 0; r < 10; ++r) {
    unsigned high0 = __umulhi(0xD2511F53u, counter.x);
    unsigned low0 = 0xD2511F53u * counter.x;
    unsigned high1 = __umulhi(0xCD9E8D57u, counter.z);
    unsigned low1 = 0xCD9E8D57u * counter.z;
    counter = make_uint4(high1 ^ counter.y ^ key.x, low1,
                         high0 ^ counter.w ^ key.y, low0);
    key.x += 0x9E3779B9u;
    key.y += 0xBB67AE85u;
  }
  return counter;
}

extern "C" __global__ void philox_bits(unsigned *out, unsigned seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 r = philox(make_uint4(i, 0, 0, 0), make_uint2(seed, 0));
  reinterpret_cast<uint4 *>(out)[i] = r;
}

extern "C" __global__ void dropout_philox(const float *in, float *out,
                                          unsigned seed, float p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint4 r = philox(make_uint4(i, 0, 0, 0), make_uint2(seed, 1));
  float u = r.x * 2.3283064e-10f;
  out[i] = u < p ? 0.f : in[i] / (1.f - p);
}

extern "C" __global__ void lcg_pi(unsigned long long *inside, int steps) {
  unsigned long long state = blockIdx.x * blockDim.x + threadIdx.x + 1;
  int mine = 0;
  for (int s = 0; s < steps; ++s) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    float x = (state >> 40) * (1.f / 16777216.f);
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    float y = (state >> 40) * (1.f / 16777216.f);
    mine += x * x + y * y <= 1.f;
  }
  for (int o = 16; o; o >>= 1)
    mine += __shfl_down_sync(~0u, mine, o);
  if ((threadIdx.x & 31) == 0)
    atomicAdd(inside, (unsigned long long)mine);
}

extern "C" __global__ void box_muller(const float2 *uniform, float2 *out,
                                      int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float radius = sqrtf(-2.f * logf(fminf(uniform[i].x, 1.f)));
  float s, c;
  sincospif(2.f * uniform[i].y, &s, &c);
  out[i] = make_float2(radius * c, radius * s);
}

extern "C" __global__ void horner_double(const double *x, double *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  const double c[7] = {1, 1, 0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720};
  double v = 0;
  for (int k = 6; k >= 0; --k)
    v = v * x[i] + c[k];
  y[i] = v;
}

extern "C" __global__ void double_functions(const double *in, double *out,
                                            int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double x = in[i]; // Positive.
  out[i] = sin(x) + cos(x) * tan(x) + exp(x) - log(x) + sqrt(x) / cbrt(x) +
           pow(x, 2.5) + atan(x) + tanh(x) + rsqrt(x) + fmod(x, 0.3) + erf(x) +
           log1p(x) + floor(x * 9);
}

extern "C" __global__ void collatz_divergent(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned long long v = in[i] + 1;
  int steps = 0;
  while (v != 1) {
    v = v % 2 ? 3 * v + 1 : v / 2;
    ++steps;
  }
  out[i] = steps;
}

extern "C" __global__ void sieve(unsigned char *composite, int n) {
  for (int p = 2; p * p < n; ++p) {
    if (!composite[p])
      for (int k = p * p + threadIdx.x * p; k < n; k += blockDim.x * p)
        composite[k] = 1;
    __syncthreads();
  }
}

extern "C" __global__ void modular_power(const unsigned *in, unsigned *out,
                                         unsigned exponent, unsigned modulus,
                                         int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned long long base = in[i] % modulus, r = 1;
  for (unsigned e = exponent; e; e >>= 1) {
    if (e & 1)
      r = r * base % modulus;
    base = base * base % modulus;
  }
  out[i] = (unsigned)r;
}
