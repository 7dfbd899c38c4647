// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Right, and slower than any original: one thread does all of it.
extern "C" __global__ void scale_slow(const float *x, float *y) {
  for (int i = 0; i < 1024; ++i)
    y[i] = x[i] + x[i];
}
