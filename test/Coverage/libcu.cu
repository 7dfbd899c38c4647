// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C++ library of CUDA: atomics, barriers, pipelines, spans.

#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/array>
#include <cuda/std/limits>
#include <cuda/std/utility>

namespace cg = cooperative_groups;

extern "C" __global__ void libcu_atomic_ref(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    cuda::atomic_ref<int, cuda::thread_scope_device> sum(*out);
    sum.fetch_add(in[i], cuda::memory_order_relaxed);
  }
}

extern "C" __global__ void libcu_message(const int *in, int *out, int *flag,
                                         int n) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    for (int i = threadIdx.x; i < n; i += blockDim.x)
      out[i] = in[i] * 2;
    __syncthreads();
    if (threadIdx.x == 0)
      ready.store(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0)
      while (ready.load(cuda::memory_order_acquire) == 0) {
      }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
      out[n + i] = out[i] + 1;
  }
}

extern "C" __global__ void libcu_barrier(const int *in, int *out) {
  __shared__ int buffer[128];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0)
    init(&barrier, blockDim.x);
  __syncthreads();
  buffer[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  auto token = barrier.arrive();
  barrier.wait(cuda::std::move(token));
  out[blockIdx.x * 128 + threadIdx.x] = buffer[threadIdx.x ^ 63];
}

extern "C" __global__ void libcu_pipeline(const float *in, float *out,
                                          int tiles) {
  __shared__ float stage[2][64];
  auto pipeline = cuda::make_pipeline();
  auto fetch = [&](int k) {
    pipeline.producer_acquire();
    cuda::memcpy_async(&stage[k % 2][threadIdx.x], &in[k * 64 + threadIdx.x],
                       cuda::aligned_size_t<4>(4), pipeline);
    pipeline.producer_commit();
  };
  fetch(0);
  float sum = 0.f;
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) {
      fetch(k + 1);
      cuda::pipeline_consumer_wait_prior<1>(pipeline);
    } else {
      cuda::pipeline_consumer_wait_prior<0>(pipeline);
    }
    sum += stage[k % 2][threadIdx.x];
    pipeline.consumer_release();
  }
  atomicAdd(out, sum);
}

extern "C" __global__ void libcu_block_memcpy(const float *in, float *out) {
  __shared__ alignas(16) float buffer[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0)
    init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, buffer, in + blockIdx.x * 256,
                     cuda::aligned_size_t<16>(1024), barrier);
  barrier.arrive_and_wait();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    out[blockIdx.x * 256 + i] = buffer[i];
}

extern "C" __global__ void libcu_std(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  cuda::std::array<int, 4> values{1, 2, 3, 4};
  if (i < n) {
    int sum = 0;
    for (int v : values)
      sum += v;
    out[i] = in[i] + 12 * sum +
             (cuda::std::numeric_limits<int>::max() == 0x7fffffff ? 0 : 1);
  }
}
