// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Accesses past the end of what they are for, or before its beginning.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

KERNEL tail_missing(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (PICK(i < n, true))
    a[i] = 2.0f; // FAULT
}

KERNEL off_by_one(const float *in, float *out, int n) {
  int i = threadIdx.x;
  if (PICK(i < n, i <= n))
    out[threadIdx.x] = in[i]; // FAULT
}

KERNEL negative_index(const float *in, float *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (PICK(i > 0, true))
    out[i] = in[i] - in[i - 1]; // FAULT
}

// 32 bits of `i * stride` turn negative, and pass the comparison.
KERNEL overflow(float *out, int stride, int n) {
  unsigned i = threadIdx.x;
  PICK(long long, int) at = PICK((long long)i * stride, int(i * stride));
  if (at < n)
    out[at] = float(i); // FAULT
}

KERNEL wrong_stride(float *out, int width) {
  int row = threadIdx.y, column = threadIdx.x;
  out[row * (PICK(width, width + 1)) + column] = 1.0f; // FAULT
}

KERNEL past_dynamic_shared(float *out) {
  extern __shared__ float dynamic[];
  int t = threadIdx.x;
  dynamic[t + PICK(0, 1)] = float(t); // FAULT
  __syncthreads();
  out[t] = dynamic[t + PICK(0, 1)]; // FAULT
}

KERNEL past_static_shared(float *out, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  if (PICK(t < 64, true))
    tile[t] = float(t); // FAULT
  __syncthreads();
  out[t] = tile[(t + n) & 63];
}

KERNEL shared_halo(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = in[t];
  __syncthreads();
  out[t] = PICK(t == 0 ? 0.0f :, ) tile[t - 1]; // FAULT
}

KERNEL local_array(int *out, int n) {
  int history[8];
  for (int i = 0; PICK(i < n, i <= n); ++i)
    history[i] = i * threadIdx.x; // FAULT
  int sum = 0;
  for (int i = n - 1; i >= 0; --i)
    sum = sum * 3 + history[i];
  out[threadIdx.x] = sum;
}

KERNEL vector_tail(const float4 *in, float *out, int n) {
  int i = threadIdx.x;
  if (PICK(i * 4 + 3 < n, i * 4 < n)) {
    float4 v = in[i]; // FAULT
    out[i] = v.x + v.y + v.z + v.w;
  }
}

KERNEL bytes_for_elements(float *out, int n) {
  int count = PICK(n, n * int(sizeof(float)));
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    out[i] = 0.0f; // FAULT
}

KERNEL null_pointer(const float *weights, float *out) {
  int t = threadIdx.x;
  float w = 1.0f;
  if (PICK(weights != nullptr, true))
    w = weights[t]; // FAULT
  out[t] = w;
}

KERNEL histogram_unchecked(const int *in, int *bins, int numBins) {
  int bin = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (PICK(bin < numBins, true))
    atomicAdd(&bins[bin], 1); // FAULT
}
