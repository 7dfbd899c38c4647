// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Addresses that are no multiple of what is accessed there.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL float4_at_odd_offset(const float *in, float *out, int shift) {
  int t = threadIdx.x;
  auto *at = reinterpret_cast<const float4 *>(in + PICK(shift * 4, shift));
  float4 v = at[t]; // FAULT
  out[t] = v.x + v.w;
}

KERNEL double_behind_int(double *out) {
  extern __shared__ char raw[];
  auto *values = reinterpret_cast<double *>(raw + PICK(8, 4));
  int t = threadIdx.x;
  values[t] = t; // FAULT
  __syncthreads();
  out[t] = values[t ^ 1]; // FAULT
}

KERNEL int_in_bytes(char *out, int header) {
  int t = threadIdx.x;
  auto *at = reinterpret_cast<int *>(out + PICK(header * 4, header));
  at[t] = t; // FAULT
}

KERNEL pair_at_odd_row(const short *in, int *out, int width) {
  int row = threadIdx.x;
  int pitch = PICK(width + (width & 1), width);
  short2 v = *reinterpret_cast<const short2 *>(in + row * pitch); // FAULT
  out[row] = v.x + v.y;
}

KERNEL atomic_in_bytes(char *out, int at) {
  atomicAdd(reinterpret_cast<int *>(out + PICK(at * 4, at)), 1); // FAULT
}
