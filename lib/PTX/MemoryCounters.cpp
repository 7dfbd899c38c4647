// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the accesses of a warp cost, as a GPU would see them: 32-byte sectors of
// global memory, with those that the launch has not touched before, and cycles
// of the 32 banks of shared memory.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"

#include <algorithm>

namespace fsr::ptx {

void markSectors(Counters &counters, Region &region, uint64_t offset,
                 uint64_t bytes) {
  if (!region.sectors || !bytes)
    return;
  uint64_t first = offset / 32, last = (offset + bytes - 1) / 32;
  for (uint64_t at = first / 64; at <= last / 64; ++at) {
    uint64_t mask = ~uint64_t(0);
    if (at == first / 64)
      mask &= ~uint64_t(0) << (first % 64);
    if (at == last / 64)
      mask &= ~uint64_t(0) >> (63 - last % 64);
    if ((__atomic_load_n(&region.sectors[at], __ATOMIC_RELAXED) & mask) == mask)
      continue;
    uint64_t old =
        __atomic_fetch_or(&region.sectors[at], mask, __ATOMIC_RELAXED);
    counters.uniqueSectors += __builtin_popcountll(mask & ~old);
  }
}

unsigned countDistinct(const uint64_t *of, unsigned count) {
  uint64_t low = of[0], high = of[0];
  for (unsigned i = 1; i < count; ++i) {
    low = std::min(low, of[i]);
    high = std::max(high, of[i]);
  }
  if (high - low < 64) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < count; ++i)
      bits |= uint64_t(1) << (of[i] - low);
    return __builtin_popcountll(bits);
  }
  unsigned distinct = 0;
  for (unsigned i = 0; i < count; ++i) {
    bool isNew = true;
    for (unsigned j = 0; j < i; ++j)
      isNew &= of[j] != of[i];
    distinct += isNew;
  }
  return distinct;
}

namespace {

/// Cycles of the 32 banks for one group of lanes: the most distinct words that
/// one bank has to give.
unsigned bankCycles(const uint64_t *words, unsigned count) {
  uint64_t first[32];
  uint32_t used = 0;
  uint64_t more[64];
  unsigned numMore = 0, perBank[32] = {}, most = count ? 1 : 0;
  uint64_t before = ~uint64_t(0);
  for (unsigned i = 0; i < count; ++i) {
    if (words[i] == before)
      continue;
    before = words[i];
    unsigned bank = words[i] & 31;
    if (!(used >> bank & 1)) {
      used |= uint32_t(1) << bank;
      first[bank] = words[i];
      continue;
    }
    if (first[bank] == words[i])
      continue;
    bool isNew = true;
    for (unsigned j = 0; j < numMore; ++j)
      isNew &= more[j] != words[i];
    if (!isNew)
      continue;
    more[numMore++] = words[i];
    most = std::max(most, ++perBank[bank] + 1);
  }
  return most;
}

} // namespace

void countAccess(Warp &warp, const MemoryInfo &info, LaneMask active,
                 const uint64_t *at, bool isWrite) {
  Counters &counters = warp.counters;
  unsigned lanes = __builtin_popcount(active);
  uint64_t bytes = info.bytes();
  Place place = locate(warp, info, at[__builtin_ctz(active)]);
  uint64_t total = bytes * lanes;
  if (place.space == Space::Local) {
    (isWrite ? counters.localStoreBytes : counters.localLoadBytes) += total;
    return;
  }
  if (place.space == Space::Param)
    return;
  if (place.space == Space::Shared) {
    (isWrite ? counters.sharedStoreBytes : counters.sharedLoadBytes) += total;
    ++counters.sharedRequests;
    // 64-bit accesses go by halves of the warp, 128-bit ones by quarters.
    unsigned words = std::max<unsigned>(1, bytes / 4);
    unsigned group = std::max(1u, 32 / words);
    for (unsigned begin = 0; begin < warpLanes; begin += group) {
      uint64_t list[64];
      unsigned count = 0;
      for (unsigned lane = begin; lane < begin + group; ++lane)
        if (active >> lane & 1)
          for (unsigned word = 0; word < words; ++word)
            list[count++] = at[lane] / 4 + word;
      counters.bankCycles += bankCycles(list, count);
    }
    return;
  }
  (isWrite ? counters.globalStoreBytes : counters.globalLoadBytes) += total;
  ++counters.globalRequests;
  uint64_t list[64];
  unsigned count = 0;
  uint64_t before = ~uint64_t(0);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t first = at[lane] / 32, last = (at[lane] + bytes - 1) / 32;
    if (first == before && last == before)
      continue;
    if (first != before)
      list[count++] = first;
    if (last != first)
      list[count++] = last;
    before = last;
    if (!place.region ||
        at[lane] - place.region->address >= place.region->bytes)
      place = locate(warp, info, at[lane]);
    if (!place.region || place.space != Space::Global)
      continue;
    uint64_t offset = at[lane] - place.region->address;
    if (place.region->bytes - offset >= bytes)
      markSectors(counters, *place.region, offset, bytes);
  }
  counters.globalSectors += countDistinct(list, count);
}

} // namespace fsr::ptx
