// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tricks with bits.

#define EACH(name, expression)                                                 \
  extern "C" __global__ void name(const unsigned *in, unsigned *out, int n) {  \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                             \
    if (i < n) {                                                               \
      unsigned x = in[i];                                                      \
      out[i] = expression;                                                     \
    }                                                                          \
  }

EACH(bits_popc, __popc(x))
EACH(bits_brev, __brev(x))
EACH(bits_clz_ffs, __clz(x) * 100 + __ffs(x))
EACH(bits_byte_swap, __byte_perm(x, 0, 0x0123))
EACH(bits_rotate, __funnelshift_l(x, x, 7))
EACH(bits_popcll, (unsigned)__popcll((unsigned long long)x << 7))

__device__ unsigned spread(unsigned v) {
  v = (v | v << 8) & 0x00FF00FFu;
  v = (v | v << 4) & 0x0F0F0F0Fu;
  v = (v | v << 2) & 0x33333333u;
  return (v | v << 1) & 0x55555555u;
}
EACH(bits_morton, spread(x & 0xffff) | spread(x >> 16) << 1)

__device__ unsigned majority(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
EACH(bits_lop3_majority, majority(x, __brev(x), ~(x << 3)))

__device__ unsigned fields(unsigned x) {
  unsigned field, d;
  asm("bfe.u32 %0, %1, 5, 11;" : "=r"(field) : "r"(x));
  asm("bfi.b32 %0, %1, %2, 9, 11;" : "=r"(d) : "r"(field), "r"(0xabcdef01u));
  return d;
}
EACH(bits_bfe_bfi, fields(x))

__device__ unsigned gray(unsigned g) {
  unsigned x = g ^ (g >> 1);
  for (int s = 16; s; s >>= 1)
    x ^= x >> s; // Back…
  return x ^ (x >> 1);
}
EACH(bits_gray, gray(x))

extern "C" __global__ void bits_simd_video(const unsigned *a, const unsigned *b,
                                           unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = __vadd4(a[i], b[i]) ^ __vabsdiffu4(a[i], b[i]) ^
             __vmaxu2(a[i], b[i]) ^ __vavgu4(a[i], b[i]);
}

extern "C" __global__ void bits_wide_arithmetic(const unsigned long long *a,
                                                const unsigned long long *b,
                                                unsigned long long *out,
                                                int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned long long low, high;
  asm("{\n"
      "  add.cc.u64 %0, %2, %3;\n"
      "  addc.u64 %1, 0, 0;\n"
      "}"
      : "=l"(low), "=l"(high)
      : "l"(a[i] << 40), "l"(b[i] << 41));
  out[i] = low ^ high ^ __umul64hi(a[i], b[i]) ^
           (unsigned long long)__mul24(3, 4) ^ (a[i] / (b[i] + 1)) ^
           (a[i] % (b[i] | 1)) ^ __brevll(a[i]) ^ (unsigned)__clzll(b[i]) ^
           (unsigned)__ffsll(a[i]) ^ (unsigned)__sad(5, -3, 2) ^
           (unsigned)__hadd(7, 8);
}
