// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads and stores of whole warps. Included inside a namespace, once for each
// set of CPU features. The quick ways take lanes that touch one stretch of a
// region, each its own piece and in order, or all the same place; their checks
// are loops over cells without branches. Whatever is not in order there, and
// every other pattern, goes to the loop over lanes, which knows and reports
// all of it: a quick way never reports.
//
//===----------------------------------------------------------------------===//

#include "MemoryCells.inl"
#include "MemoryCounters.inl"

/// Lanes `first` to `first + count` at `offset`, `offset + N`, …
struct Stretch {
  Region *region;
  uint64_t offset;
  unsigned first, count;
  Space space;
};

inline void addressesOf(Warp &warp, const Op &op, const MemoryInfo &info,
                        uint64_t *at) {
  uint64_t by = uint64_t(op.offset);
  if (info.isWide) {
    const uint64_t *from = warp.lanes<uint64_t>(op.operand(0));
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      at[lane] = from[lane] + by;
    return;
  }
  const uint32_t *from = warp.lanes<uint32_t>(op.operand(0));
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    at[lane] = uint32_t(from[lane] + uint32_t(by));
}

template <unsigned N>
inline bool isStretch(const uint64_t *at, unsigned first, unsigned count) {
  // The last lane is most likely to be elsewhere.
  if (at[first + count - 1] != at[first] + (count - 1) * N)
    return false;
  uint64_t off = 0;
  if (count == warpLanes) {
    for (unsigned i = 0; i < warpLanes; ++i)
      off |= at[i] ^ (at[0] + i * N);
    return !off;
  }
  for (unsigned i = 0; i < count; ++i)
    off |= at[first + i] ^ (at[first] + i * N);
  return !off;
}

/// Shared memory of another block: not for the quick ways.
inline bool isPeer(const Warp &warp, const Region &region) {
  return region.block && region.block != warp.block;
}

inline bool areSame(const uint64_t *at, LaneMask active) {
  uint64_t address = at[__builtin_ctz(active)];
  // The last lane is most likely to be another.
  if (at[31 - __builtin_clz(active)] != address)
    return false;
  uint64_t off = 0;
  for (unsigned i = 0; i < warpLanes; ++i)
    off |= active >> i & 1 ? at[i] ^ address : 0;
  return !off;
}

/// Where the lanes' stretch lies; false: not wholly in one region, misaligned,
/// or in local memory.
template <unsigned N>
inline bool findStretch(Warp &warp, const MemoryInfo &info, uint64_t address,
                        uint64_t total, Stretch &stretch) {
  ::fsr::ptx::Place place = locate(warp, info, address);
  Region *region = place.region;
  if (!region || place.offset >= region->bytes || isPeer(warp, *region) ||
      region->bytes - place.offset < total ||
      (region->address + place.offset) % N)
    return false;
  stretch.region = region;
  stretch.offset = place.offset;
  stretch.space = place.space;
  return true;
}

inline void countStretch(Warp &warp, const Stretch &stretch, uint64_t total,
                         unsigned bytes, bool isWrite) {
  Counters &counters = warp.counters;
  if (stretch.space == Space::Param)
    return;
  if (stretch.space == Space::Shared) {
    (isWrite ? counters.sharedStoreBytes : counters.sharedLoadBytes) += total;
    ++counters.sharedRequests;
    // Groups of lanes of 128 bytes are served at once.
    unsigned group = bytes <= 4 ? warpLanes : 128 / bytes;
    unsigned last = (stretch.first + stretch.count - 1) / group;
    counters.bankCycles += last - stretch.first / group + 1;
    return;
  }
  (isWrite ? counters.globalStoreBytes : counters.globalLoadBytes) += total;
  ++counters.globalRequests;
  counters.globalSectors +=
      (stretch.offset + total - 1) / 32 - stretch.offset / 32 + 1;
  markTouched(counters, *stretch.region, stretch.offset, total);
}

template <unsigned E>
inline uint64_t extend(uint64_t value, const MemoryInfo &info) {
  if constexpr (E < 8) {
    if (info.isSigned) {
      value = uint64_t(int64_t(value << (64 - E * 8)) >> (64 - E * 8));
      if (info.resultBits == 16)
        value &= 0xffff;
    }
  }
  return value;
}

template <unsigned E>
struct CellOf {
  using Type = uint32_t;
};
template <>
struct CellOf<1> {
  using Type = uint8_t;
};
template <>
struct CellOf<2> {
  using Type = uint16_t;
};
template <>
struct CellOf<8> {
  using Type = uint64_t;
};

/// Where the lanes of one instruction go; they share a region.
struct Scatter {
  Region *region = nullptr;
  uint64_t delta = 0; ///< From an address to an offset.
  bool hasCells = false;
};

template <unsigned N>
inline bool findScatter(Warp &warp, const MemoryInfo &info, uint64_t address,
                        Scatter &scatter) {
  ::fsr::ptx::Place place = locate(warp, info, address);
  Region *region = place.region;
  if (!region || region->bytes < N || region->address % N ||
      isPeer(warp, *region))
    return false;
  scatter.region = region;
  scatter.delta = address - place.offset;
  scatter.hasCells = warp.checksRaces && region->writers;
  return true;
}

/// Bit i: the address of lane i is `by` past that of lane i - 1.
inline LaneMask followersOf(const uint64_t *at, uint64_t by) {
  LaneMask mask = 0;
  for (unsigned i = 1; i < warpLanes; ++i)
    mask |= LaneMask(at[i] - at[i - 1] == by) << i;
  return mask;
}

/// Lanes in a row that read one place, or places that follow one another.
/// Shorter ones go lane by lane.
constexpr unsigned leastRun = 4;

/// How many lanes from `lane` on `followers` joins.
inline unsigned runAt(LaneMask followers, unsigned lane) {
  uint64_t after = ~(uint64_t(followers) >> (lane + 1));
  return 1 + unsigned(__builtin_ctzll(after));
}
inline LaneMask lanesOf(unsigned first, unsigned count) {
  return LaneMask(((uint64_t(1) << count) - 1) << first);
}

#include "MemoryLoad.inl"
#include "MemoryStore.inl"

// 128-bit values are rare: lane by lane.
inline void loadPairs(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  addressesOf(warp, op, info, at);
  countLanes(warp, info, active, at, /*isWrite=*/false);
  loadLanes(warp, op, info, active, at);
}
inline void storePairs(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  addressesOf(warp, op, info, at);
  countLanes(warp, info, active, at, /*isWrite=*/true);
  storeLanes(warp, op, info, active, at);
}

template <unsigned E>
Handler loadOf(unsigned vector) {
  switch (vector) {
  case 1:
    return load<E, 1>;
  case 2:
    return load<E, 2>;
  case 4:
    return load<E, 4>;
  default:
    return E == 4 ? Handler(load<4, 8>) : nullptr;
  }
}
template <unsigned E>
Handler storeOf(unsigned vector) {
  switch (vector) {
  case 1:
    return store<E, 1>;
  case 2:
    return store<E, 2>;
  case 4:
    return store<E, 4>;
  default:
    return E == 4 ? Handler(store<4, 8>) : nullptr;
  }
}

inline Handler loadHandler(unsigned elementBytes, unsigned vector) {
  switch (elementBytes) {
  case 1:
    return loadOf<1>(vector);
  case 2:
    return loadOf<2>(vector);
  case 4:
    return loadOf<4>(vector);
  case 8:
    return loadOf<8>(vector);
  default:
    return loadPairs;
  }
}
inline Handler storeHandler(unsigned elementBytes, unsigned vector) {
  switch (elementBytes) {
  case 1:
    return storeOf<1>(vector);
  case 2:
    return storeOf<2>(vector);
  case 4:
    return storeOf<4>(vector);
  case 8:
    return storeOf<8>(vector);
  default:
    return storePairs;
  }
}
