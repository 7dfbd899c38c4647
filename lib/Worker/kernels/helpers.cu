// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The device side of helpers.inl. Built by update.sh to helpers.ptx, which is
// committed: building FSR and running a worker need no CUDA compiler.
//
//===----------------------------------------------------------------------===//

#define FSR_DEVICE static __device__ __forceinline__
#define FSR_KERNEL(name) extern "C" __global__ void name
#define FSR_THREAD ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x)
#define FSR_THREADS ((unsigned long long)gridDim.x * blockDim.x)
#define FSR_EACH(i, n) for (FsrU64 i = FSR_THREAD; i < (n); i += FSR_THREADS)
#define FSR_EACH_WARP(i, n)                                                    \
  for (FsrU64 i = FSR_THREAD / FSR_LANES; i < (n);                             \
       i += FSR_THREADS / FSR_LANES)
#define FSR_LANE (threadIdx.x & 31u)
#define FSR_LANES 32u

FSR_DEVICE unsigned long long fsrWarpMax(unsigned long long value) {
  for (int delta = 16; delta; delta >>= 1) {
    unsigned long long other = __shfl_xor_sync(0xFFFFFFFFu, value, delta);
    value = other > value ? other : value;
  }
  return value;
}
FSR_DEVICE void fsrAtomicAdd(unsigned long long *at, unsigned long long v) {
  atomicAdd(at, v);
}
FSR_DEVICE void fsrAtomicAdd(double *at, double v) { atomicAdd(at, v); }
FSR_DEVICE void fsrAtomicMin(unsigned long long *at, unsigned long long v) {
  atomicMin(at, v);
}
FSR_DEVICE void fsrAtomicMax(unsigned long long *at, unsigned long long v) {
  atomicMax(at, v);
}
FSR_DEVICE unsigned long long fsrClock() { return clock64(); }
FSR_DEVICE unsigned long long fsrNanos() {
  unsigned long long value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
  return value;
}
FSR_DEVICE unsigned fsrMultiprocessor() {
  unsigned value;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}
FSR_DEVICE float fsrLog(float x) { return logf(x); }
FSR_DEVICE double fsrLog(double x) { return log(x); }
FSR_DEVICE float fsrExp(float x) { return expf(x); }
FSR_DEVICE double fsrExp(double x) { return exp(x); }
FSR_DEVICE float fsrSqrt(float x) { return sqrtf(x); }
FSR_DEVICE double fsrSqrt(double x) { return sqrt(x); }
FSR_DEVICE float fsrCosPi(float x) { return cospif(x); }
FSR_DEVICE double fsrCosPi(double x) { return cospi(x); }

#include "helpers.inl"
