// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Asynchronous copies, touched while they are under way.
//
//===----------------------------------------------------------------------===//

#include "pick.h"

// A macro, so that the line is that of its use.
#define COPY4(to, from)                                                        \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(               \
                   unsigned(__cvta_generic_to_shared(to))),                    \
               "l"(from)                                                       \
               : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

KERNEL read_before_wait(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x;
  COPY4(&tile[t], &in[t]);
  COMMIT();
  FIX(WAIT(0);)
  out[t] = tile[t]; // FAULT
  WAIT(0);
}

KERNEL wait_too_weak(const float *in, float *out) {
  __shared__ float tile[2][64];
  int t = threadIdx.x;
  COPY4(&tile[0][t], &in[t]);
  COMMIT();
  COPY4(&tile[1][t], &in[t + 64]); // FAULT
  COMMIT();
  WAIT(1);
  __syncthreads();
  float sum = tile[0][63 - t];
  WAIT(PICK(0, 1));
  __syncthreads();
  sum += tile[1][63 - t]; // FAULT
  out[t] = sum;
  WAIT(0);
}

KERNEL no_barrier_after_wait(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  COPY4(&tile[t], &in[t]); // FAULT
  COMMIT();
  WAIT(0); // FAULT
  FIX(__syncthreads();)
  out[t] = tile[63 - t]; // FAULT
}

KERNEL written_in_flight(const float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x;
  COPY4(&tile[t], &in[t]);
  COMMIT();
  FIX(WAIT(0);)
  if (t == 0)
    tile[t] = 0.0f; // FAULT
  WAIT(0);
  out[t] = tile[t];
}

KERNEL refill_before_all_have_read(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < 3; ++k) {
    COPY4(&tile[t], &in[k * 64 + t]); // FAULT
    COMMIT();
    WAIT(0);
    __syncthreads();
    sum += tile[63 - t]; // FAULT
    FIX(__syncthreads();)
  }
  out[t] = sum;
}

KERNEL never_committed(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  COPY4(&tile[t], &in[t]); // FAULT
  FIX(COMMIT();)
  WAIT(0);
  __syncthreads();
  out[t] = tile[t ^ 1]; // FAULT
  COMMIT();
  WAIT(0);
}

KERNEL two_copies_one_place(const float *in, float *out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  COPY4(&tile[t], &in[t]);
  COMMIT();
  FIX(WAIT(0);)
  COPY4(&tile[t], &in[t + 32]); // FAULT
  COMMIT();
  WAIT(0);
  out[t] = tile[t];
}

// The ring has as many stages as copies are under way: one too few.
KERNEL ring_too_short(const float *in, float *out) {
  constexpr int stages = PICK(3, 2);
  __shared__ float ring[3][32];
  int t = threadIdx.x;
  for (int k = 0; k < 2; ++k) {
    COPY4(&ring[k][t], &in[k * 32 + t]);
    COMMIT();
  }
  float sum = 0.0f;
  for (int k = 0; k < 6; ++k) {
    COPY4(&ring[(k + 2) % stages][t], &in[(k + 2) * 32 + t]); // FAULT
    COMMIT();
    WAIT(2);
    __syncwarp();
    sum += ring[k % stages][31 - t]; // FAULT
    __syncwarp();
  }
  WAIT(0);
  out[t] = sum;
}

KERNEL source_overwritten(float *in, float *out) {
  __shared__ float tile[32];
  int t = threadIdx.x;
  COPY4(&tile[t], &in[t]); // FAULT
  COMMIT();
  FIX(WAIT(0);)
  in[t] = 7.0f; // FAULT
  WAIT(0); // FAULT
  out[t] = tile[t];
}

#define BULK_OUT(to, from, bytes)                                              \
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n" \
               "cp.async.bulk.commit_group;" ::"l"(to),                        \
               "r"(unsigned(__cvta_generic_to_shared(from))), "n"(bytes)       \
               : "memory")
#define BULK_WAIT(read) asm volatile("cp.async.bulk.wait_group" read " 0;" ::: "memory")

KERNEL bulk_source_overwritten(float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[t] = t;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    BULK_OUT(out, tile, 256); // FAULT
    FIX(BULK_WAIT(".read");)
    tile[5] = 99.0f; // FAULT
    BULK_WAIT(""); // FAULT
  }
}

KERNEL bulk_read_too_early(float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[t] = t;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    BULK_OUT(out, tile, 256);
    BULK_WAIT(PICK("", ".read"));
    out[64] = out[5]; // FAULT
  }
}

KERNEL bulk_target_overwritten(float *out) {
  __shared__ alignas(16) float tile[64];
  int t = threadIdx.x;
  tile[t] = t;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    BULK_OUT(out, tile, 256);
    FIX(BULK_WAIT("");)
    out[5] = 1.0f; // FAULT
    BULK_WAIT("");
  }
}
