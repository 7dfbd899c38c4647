// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a GPU reaches: a copy of 16 bytes a thread and step, and multiply-adds
// of f32 that wait for nothing but one another, eight chains a thread. Built by
// update.sh to peaks.ptx. `fsrPeakFma` does `rounds` * 128 multiply-adds a thread;
// its store keeps them from being left out.
//
//===----------------------------------------------------------------------===//

extern "C" __global__ void fsrPeakCopy(uint4 *to, const uint4 *from,
                                       unsigned long long count) {
  unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i =
      (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    uint4 a = from[i], b = from[i + step], c = from[i + 2 * step],
          d = from[i + 3 * step];
    to[i] = a;
    to[i + step] = b;
    to[i + 2 * step] = c;
    to[i + 3 * step] = d;
  }
  for (; i < count; i += step)
    to[i] = from[i];
}

extern "C" __global__ void fsrPeakFma(float *to, unsigned rounds, float factor,
                                      float term) {
  float chain[8];
  for (int i = 0; i < 8; ++i)
    chain[i] = (float)(threadIdx.x + i);
  for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll
    for (int step = 0; step < 16; ++step)
#pragma unroll
      for (int i = 0; i < 8; ++i)
        chain[i] = fmaf(chain[i], factor, term);
  }
  float sum = 0;
  for (int i = 0; i < 8; ++i)
    sum += chain[i];
  to[(unsigned long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
