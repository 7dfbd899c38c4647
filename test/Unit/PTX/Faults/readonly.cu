// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Stores to memory that is not theirs to change.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL stores_to_input(float *in, float *out) {
  int t = threadIdx.x;
  PICK(out, in)[t] = in[t] * 2.0f; // FAULT
}

KERNEL atomic_on_input(int *in, int *out) {
  atomicAdd(&PICK(out, in)[threadIdx.x & 3], 1); // FAULT
}

__constant__ int table[32] = {1, 2, 3};

KERNEL stores_to_constant(int *out) {
  int *constant;
  asm volatile("{ .reg .b64 at;\n\tmov.b64 at, table;\n\t"
               "cvta.const.u64 %0, at; }"
               : "=l"(constant));
  int *at = PICK(out, constant);
  at[threadIdx.x] = table[threadIdx.x ^ 1]; // FAULT
}

KERNEL vector_store_to_input(float4 *in, float4 *out) {
  int t = threadIdx.x;
  float4 v = in[t];
  v.x += 1.0f;
  PICK(out, in)[t] = v; // FAULT
}
