// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The helper kernels for the host: the text that nvcc compiles, as one thread.
//
//===----------------------------------------------------------------------===//

#include "HostBackend.h"

#include <cmath>

#define FSR_DEVICE [[maybe_unused]] static inline
#define FSR_KERNEL(name) static void name
#define FSR_EACH(i, n) for (FsrU64 i = 0; i < (n); ++i)
#define FSR_EACH_WARP(i, n) FSR_EACH(i, n)
#define FSR_LANE 0u
#define FSR_LANES 1u

namespace {

fsr::HostClock *hostClock; // Of the back end that launches.

using Word = unsigned long long;
Word fsrWarpMax(Word value) { return value; }
void fsrAtomicAdd(Word *at, Word value) { *at += value; }
void fsrAtomicAdd(double *at, double value) { *at += value; }
void fsrAtomicMin(Word *at, Word value) { *at = value < *at ? value : *at; }
void fsrAtomicMax(Word *at, Word value) { *at = value > *at ? value : *at; }
Word fsrNanos() {
  hostClock->pass(1000);
  return Word(hostClock->nanos);
}
Word fsrClock() { return Word(hostClock->cycles); }
Word fsrMultiprocessor() { return 0; }

#include "kernels/hostmath.inl"

#include "kernels/helpers.inl"

template <typename T>
T get(llvm::ArrayRef<void *> params, size_t i) {
  return *static_cast<T *>(params[i]);
}

} // namespace

bool fsr::runHostHelper(llvm::StringRef name, llvm::ArrayRef<void *> p,
                        HostClock &clock) {
  hostClock = &clock;
  clock.pass(1000);
  if (name == "fsr_fill")
    fsr_fill(get<FsrFill>(p, 0));
  else if (name == "fsr_poison")
    fsr_poison(get<FsrU64>(p, 0), get<FsrU64>(p, 1), get<FsrU32>(p, 2),
               get<FsrU64>(p, 3));
  else if (name == "fsr_guard_set")
    fsr_guard_set(get<FsrU64>(p, 0), get<FsrU64>(p, 1), get<FsrU32>(p, 2));
  else if (name == "fsr_guard_check")
    fsr_guard_check(get<FsrU64>(p, 0), get<FsrU64>(p, 1), get<FsrU32>(p, 2),
                    get<FsrU64>(p, 3));
  else if (name == "fsr_hash")
    fsr_hash(get<FsrU64>(p, 0), get<FsrU64>(p, 1), get<FsrU32>(p, 2),
             get<FsrU64>(p, 3));
  else if (name == "fsr_mask")
    fsr_mask(get<FsrU64>(p, 0), get<FsrU64>(p, 1), get<FsrU64>(p, 2));
  else if (name == "fsr_row_maximum")
    fsr_row_maximum(get<FsrCompare>(p, 0));
  else if (name == "fsr_compare")
    fsr_compare(get<FsrCompare>(p, 0));
  else if (name == "fsr_play")
    fsr_play(get<FsrPlay>(p, 0));
  else if (name == "fsr_widen")
    fsr_widen(get<FsrU64>(p, 0), get<FsrU64>(p, 1), get<FsrU64>(p, 2),
              get<FsrU32>(p, 3));
  else if (name == "fsr_row_error")
    fsr_row_error(get<FsrJudge>(p, 0));
  else if (name == "fsr_judge")
    fsr_judge(get<FsrJudge>(p, 0));
  else if (name == "fsr_flush")
    fsr_flush(get<FsrU64>(p, 0), get<FsrU64>(p, 1), get<FsrU32>(p, 2));
  else if (name == "fsr_spin")
    fsr_spin(get<FsrU64>(p, 0), get<FsrU64>(p, 1));
  else if (name == "fsr_stamp")
    fsr_stamp(get<FsrU64>(p, 0), get<FsrU64>(p, 1), get<FsrU64>(p, 2));
  else
    return false;
  return true;
}
