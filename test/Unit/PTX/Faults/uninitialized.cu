// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values that nothing wrote, used.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL accumulates_into_nothing(const float *in, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = PICK(1.0f, out[i]) + in[i]; // FAULT
}

KERNEL half_of_the_tile(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  if (PICK(true, t < 32))
    tile[t] = in[t];
  __syncthreads();
  out[t] = tile[63 - t] * 2.0f; // FAULT
}

KERNEL local_array_in_part(int *out, int n) {
  int history[8];
  for (int i = PICK(0, 1); i < n; ++i)
    history[i] = i;
  int sum = 0;
  for (int i = n - 1; i >= 0; --i)
    sum = sum * 3 + history[i]; // FAULT
  out[threadIdx.x] = sum;
}

KERNEL register_never_written(int *out) {
  int value;
  asm volatile("{ .reg .b32 never;\n\t" FIX("mov.b32 never, 4;")
               "add.s32 %0, never, %1; }"
               : "=r"(value)
               : "r"(threadIdx.x)); // FAULT
  out[threadIdx.x] = value;
}

KERNEL register_on_one_way(int *out) {
  int value;
  asm volatile("{ .reg .b32 some; .reg .pred p;\n\t"
               "setp.lt.u32 p, %1, 20;" FIX("mov.b32 some, 9;")
               "@p mov.b32 some, 5;\n\tadd.s32 %0, some, %1; }"
               : "=r"(value)
               : "r"(threadIdx.x)); // FAULT
  out[threadIdx.x] = value;
}

KERNEL counter_never_set(int *counter) {
  FIX(if (threadIdx.x == 0) *counter = 0;)
  __syncthreads();
  atomicAdd(counter, 1); // FAULT
}

// The tile is 33 wide against bank conflicts; the last column holds nothing.
KERNEL padding_column(const float *in, float *out) {
  __shared__ float tile[4][33];
  int t = threadIdx.x;
  for (int row = 0; row < 4; ++row)
    tile[row][t] = in[row * 32 + t];
  __syncthreads();
  float sum = 0.0f;
  for (int row = 0; row < 4; ++row)
    sum += tile[row][t + PICK(0, 1)]; // FAULT
  out[t] = sum;
}

KERNEL index_from_nothing(const int *index, float *out) {
  int t = threadIdx.x;
  int at = PICK(t, index[t]); // FAULT
  out[at & 31] = float(t); // FAULT
}
