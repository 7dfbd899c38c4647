// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels that do not end, or say themselves that something is wrong.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

#include <cassert>

KERNEL never_advances(float *out, int n) {
  for (int i = threadIdx.x; i < n;) { // FAULT
    atomicAdd(&out[i], 1.0f); // FAULT
    i += PICK(32, 0); // FAULT
  }
}

KERNEL doubles_zero(int *out, int n) {
  int steps = 0;
  for (int by = PICK(1, n - n); by < 64; by += by) // FAULT
    steps += atomicAdd(out, 0) == 0; // FAULT
  out[threadIdx.x + 1] = steps;
}

KERNEL halves_forever(float *out, float value, float least) {
  int steps = 0;
  while (value > PICK(least, -least)) { // FAULT
    value *= 0.5f; // FAULT
    ++steps; // FAULT
  }
  out[threadIdx.x] = float(steps);
}

KERNEL asserts(const int *in, int *out, int n) {
  int t = threadIdx.x, v = in[t];
  assert(v < PICK(n, n / 2)); // FAULT
  out[t] = v;
}

KERNEL traps(const int *in, int *out, int n) {
  int t = threadIdx.x, v = in[t];
  if (v >= PICK(n, n / 2))
    __trap(); // FAULT
  out[t] = v;
}

__device__ __noinline__ int descend(int *out, int n, int least) {
  if (n == least)
    return 0;
  int below = descend(out, n - 1, least); // FAULT
  atomicAdd(out, below);
  return below + 1;
}

KERNEL recurses(int *out, int n) {
  out[threadIdx.x + 1] = descend(out, n, PICK(0, n + 1)); // FAULT
}

using Step = int (*)(int);
__device__ int twice(int x) { return x * 2; }
__device__ int thrice(int x) { return x * 3; }
__device__ Step steps[2] = {twice, thrice};

KERNEL calls_nothing(int *out, const int *which, Step *given) {
  int t = threadIdx.x;
  Step step = PICK(steps, given)[which[t] & 1];
  out[t] = step(t); // FAULT
}
