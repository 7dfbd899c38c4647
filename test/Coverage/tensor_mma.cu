// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensor cores through mma.sync, with fragments loaded by hand and ldmatrix.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// A is 16 x 16 and row-major, B 16 x 8 and lies with its columns as rows.
extern "C" __global__ void mma_m16n8k16_half(const half *a, const half *b,
                                             float *c) {
  int lane = threadIdx.x, group = lane / 4, inGroup = lane % 4;
  unsigned ra[4], rb[2];
  float d[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    int row = group + (i % 2) * 8, col = inGroup * 2 + (i / 2) * 8;
    ra[i] = *reinterpret_cast<const unsigned *>(a + row * 16 + col);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
    rb[i] = *reinterpret_cast<const unsigned *>(b + group * 16 + inGroup * 2 +
                                                i * 8);
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]),
                 "r"(rb[1]));
  *reinterpret_cast<float2 *>(c + group * 8 + inGroup * 2) =
      make_float2(d[0], d[1]);
  *reinterpret_cast<float2 *>(c + (group + 8) * 8 + inGroup * 2) =
      make_float2(d[2], d[3]);
}

extern "C" __global__ void mma_ldmatrix_half(const half *a, const half *b,
                                             float *c) {
  __shared__ __align__(16) half as[16 * 16], bs[16 * 8]; // b: k x n
  int lane = threadIdx.x;
  *reinterpret_cast<uint4 *>(&as[lane * 8]) =
      *reinterpret_cast<const uint4 *>(&a[lane * 8]);
  if (lane < 16)
    *reinterpret_cast<uint4 *>(&bs[lane * 8]) =
        *reinterpret_cast<const uint4 *>(&b[lane * 8]);
  __syncwarp();
  unsigned ra[4], rb[2];
  unsigned aAddress = (unsigned)__cvta_generic_to_shared(
      &as[(lane % 16) * 16 + (lane / 16) * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(aAddress));
  unsigned bAddress = (unsigned)__cvta_generic_to_shared(&bs[(lane % 16) * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(bAddress));
  float d[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]),
                 "r"(rb[1]));
  int row = lane / 4, col = lane % 4 * 2;
  c[row * 8 + col] = d[0];
  c[row * 8 + col + 1] = d[1];
  c[(row + 8) * 8 + col] = d[2];
  c[(row + 8) * 8 + col + 1] = d[3];
}

extern "C" __global__ void mma_m16n8k16_bf16(const __nv_bfloat16 *a,
                                             const __nv_bfloat16 *b, float *c) {
  int lane = threadIdx.x, group = lane >> 2, inGroup = lane & 3;
  const unsigned *a2 = reinterpret_cast<const unsigned *>(a);
  const unsigned *b2 = reinterpret_cast<const unsigned *>(b);
  unsigned a0 = a2[group * 8 + inGroup], a1 = a2[(group + 8) * 8 + inGroup];
  unsigned a4 = a2[group * 8 + inGroup + 4];
  unsigned a5 = a2[(group + 8) * 8 + inGroup + 4];
  unsigned b0 = b2[group * 8 + inGroup], b1 = b2[group * 8 + inGroup + 4];
  float d0, d1, d2, d3;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};\n"
      : "=f"(d0), "=f"(d1), "=f"(d2), "=f"(d3)
      : "r"(a0), "r"(a1), "r"(a4), "r"(a5), "r"(b0), "r"(b1), "f"(0.f));
  c[group * 8 + inGroup * 2] = d0;
  c[group * 8 + inGroup * 2 + 1] = d1;
  c[(group + 8) * 8 + inGroup * 2] = d2;
  c[(group + 8) * 8 + inGroup * 2 + 1] = d3;
}

extern "C" __global__ void mma_m16n8k8_tf32(const float *a, const float *b,
                                            float *c) {
  int lane = threadIdx.x, group = lane >> 2, inGroup = lane & 3;
  auto tf32 = [](float x) {
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
  };
  unsigned a0 = tf32(a[group * 8 + inGroup]);
  unsigned a1 = tf32(a[(group + 8) * 8 + inGroup]);
  unsigned a2 = tf32(a[group * 8 + inGroup + 4]);
  unsigned a3 = tf32(a[(group + 8) * 8 + inGroup + 4]);
  unsigned b0 = tf32(b[group * 8 + inGroup]);
  unsigned b1 = tf32(b[group * 8 + inGroup + 4]);
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
               "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  for (int i = 0; i < 4; ++i)
    c[(group + i / 2 * 8) * 8 + inGroup * 2 + i % 2] = d[i];
}

extern "C" __global__ void mma_m16n8k32_int8(const signed char *a,
                                             const signed char *b, int *c) {
  int lane = threadIdx.x, group = lane >> 2, inGroup = lane & 3;
  const int *a4 = reinterpret_cast<const int *>(a); // 16 x 8 words
  const int *b4 = reinterpret_cast<const int *>(b); // 8 x 8 words
  int d[4] = {0, 0, 0, 0};
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a4[group * 8 + inGroup]), "r"(a4[(group + 8) * 8 + inGroup]),
        "r"(a4[group * 8 + inGroup + 4]),
        "r"(a4[(group + 8) * 8 + inGroup + 4]), "r"(b4[group * 8 + inGroup]),
        "r"(b4[group * 8 + inGroup + 4]));
  for (int i = 0; i < 4; ++i)
    c[(group + i / 2 * 8) * 8 + inGroup * 2 + i % 2] = d[i];
}

extern "C" __global__ void mma_m8n8k4_f64(const double *a, const double *b,
                                          double *c) {
  int lane = threadIdx.x;
  double d0, d1;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
               "{%0,%1}, {%2}, {%3}, {%4,%4};\n"
               : "=d"(d0), "=d"(d1)
               : "d"(a[lane]), "d"(b[lane]), "d"(0.0));
  c[lane / 4 * 8 + lane % 4 * 2] = d0;
  c[lane / 4 * 8 + lane % 4 * 2 + 1] = d1;
}
