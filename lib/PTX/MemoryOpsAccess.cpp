// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The handlers of loads and stores, and the counters of accesses, for each set
// of CPU features.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"

#include <algorithm>

namespace fsr::ptx {

namespace {

namespace base {
#include "Lanes.inl"
#include "MemoryAccess.inl"
} // namespace base

#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute push(                                                  \
    __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt"))),            \
    apply_to = function)
namespace v3 {
#include "Lanes.inl"
#include "MemoryAccess.inl"
} // namespace v3
#pragma clang attribute pop

bool hasV3() {
  static const bool has = __builtin_cpu_supports("avx2") &&
                          __builtin_cpu_supports("bmi2") &&
                          __builtin_cpu_supports("fma");
  return has;
}
#endif

} // namespace

Handler loadHandler(unsigned elementBytes, unsigned vector) {
#if defined(__x86_64__) && defined(__clang__)
  if (hasV3())
    return v3::loadHandler(elementBytes, vector);
#endif
  return base::loadHandler(elementBytes, vector);
}

Handler storeHandler(unsigned elementBytes, unsigned vector) {
#if defined(__x86_64__) && defined(__clang__)
  if (hasV3())
    return v3::storeHandler(elementBytes, vector);
#endif
  return base::storeHandler(elementBytes, vector);
}

void markSectors(Counters &counters, Region &region, uint64_t offset,
                 uint64_t bytes) {
  base::markTouched(counters, region, offset, bytes);
}

unsigned countDistinct(const uint64_t *of, unsigned count) {
#if defined(__x86_64__) && defined(__clang__)
  if (hasV3())
    return v3::distinctOf(of, count);
#endif
  return base::distinctOf(of, count);
}

void countAccess(Warp &warp, const MemoryInfo &info, LaneMask active,
                 const uint64_t *at, bool isWrite) {
#if defined(__x86_64__) && defined(__clang__)
  if (hasV3())
    return v3::countLanes(warp, info, active, at, isWrite);
#endif
  base::countLanes(warp, info, active, at, isWrite);
}

} // namespace fsr::ptx
