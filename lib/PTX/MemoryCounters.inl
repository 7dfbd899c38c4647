// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the accesses of a warp cost, as a GPU would see them: 32-byte sectors of
// global memory, with those that the launch has not touched before, and cycles
// of the 32 banks of shared memory. Included inside a namespace, by
// MemoryAccess.inl. Loops over lanes have no branches that depend on addresses.
//
//===----------------------------------------------------------------------===//

inline void markTouched(Counters &counters, Region &region, uint64_t offset,
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

inline unsigned distinctOf(const uint64_t *of, unsigned count) {
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
  // Each round all put themselves into a table, and those who find themselves
  // there are counted, once a place. The others go on, to other places.
  uint32_t folded[64];
  for (unsigned i = 0; i < count; ++i) {
    uint64_t value = of[i] - low;
    folded[i] = uint32_t(value ^ value >> 29) * 0x9e3779b1u;
  }
  uint64_t table[64], used = 0, left = 0;
  for (unsigned i = 0; i < count; ++i) {
    table[folded[i] >> 26] = of[i];
    used |= uint64_t(1) << (folded[i] >> 26);
  }
  for (unsigned i = 0; i < count; ++i)
    left |= uint64_t(table[folded[i] >> 26] != of[i]) << i;
  unsigned distinct = __builtin_popcountll(used);
  for (unsigned shift = 20; left; shift -= shift > 2 ? 6 : 0) {
    used = 0;
    for (uint64_t rest = left; rest; rest &= rest - 1) {
      unsigned i = __builtin_ctzll(rest);
      unsigned place = folded[i] >> shift & 63;
      table[place] = of[i];
      used |= uint64_t(1) << place;
    }
    distinct += __builtin_popcountll(used);
    for (uint64_t rest = left; rest; rest &= rest - 1) {
      unsigned i = __builtin_ctzll(rest);
      if (table[folded[i] >> shift & 63] == of[i])
        left &= ~(uint64_t(1) << i);
    }
  }
  return distinct;
}

/// Whether no bank has to give two units to all lanes, of which many are next
/// to one that asks for the same, or half a warp before one: false says
/// nothing. `units` has room for as many before it.
inline bool areApart(uint32_t *units) {
  constexpr int half = warpLanes / 2;
  // No unit: those are offsets in a space of 4 GiB, in words.
  for (int i = 1; i <= half; ++i)
    units[-i] = ~uint32_t(0);
  uint32_t used = 0, asking = 0;
  for (int i = 0; i < int(warpLanes); ++i) {
    uint32_t unit = units[i];
    uint32_t isNew = unit != units[i - 1] && unit != units[i - half];
    used |= isNew << (unit & 31);
    asking += isNew;
  }
  return unsigned(__builtin_popcount(used)) == asking;
}

/// Cycles of the banks for one group of lanes: the most distinct units that one
/// bank has to give. A unit is what a lane asks for, a word at least, so that
/// there are 32 banks of units of 4 bytes, or 8 of 16 bytes.
inline unsigned bankCycles(uint32_t *units, unsigned count, unsigned banks) {
  if (!count)
    return 0;
  // Mostly all go to banks of their own; few are as soon asked one by one.
  if (count == warpLanes && areApart(units))
    return 1;
  // Each cycle each bank serves the last unit that asks for it.
  uint32_t served[warpLanes];
  LaneMask left = allLanes >> (warpLanes - count);
  for (unsigned i = 0; i < count; ++i)
    served[units[i] & (banks - 1)] = units[i];
  for (unsigned cycles = 1;; ++cycles) {
    LaneMask waiting = 0;
    for (unsigned i = 0; i < count; ++i)
      waiting |= LaneMask(served[units[i] & (banks - 1)] != units[i]) << i;
    left &= waiting;
    if (!left)
      return cycles;
    for (LaneMask rest = left; rest; rest &= rest - 1) {
      uint32_t unit = units[__builtin_ctz(rest)];
      served[unit & (banks - 1)] = unit;
    }
  }
}

inline bool isMarked(const Region &region, uint64_t sector) {
  return __atomic_load_n(&region.sectors[sector / 64], __ATOMIC_RELAXED) >>
             sector % 64 &
         1;
}

inline void countLanes(Warp &warp, const MemoryInfo &info, LaneMask active,
                       const uint64_t *at, bool isWrite) {
  Counters &counters = warp.counters;
  unsigned lanes = __builtin_popcount(active);
  uint64_t bytes = info.bytes();
  ::fsr::ptx::Place place = locate(warp, info, at[__builtin_ctz(active)]);
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
    unsigned shift = 2 + __builtin_ctz(words);
    for (unsigned begin = 0; begin < warpLanes; begin += group) {
      uint32_t room[2 * warpLanes], *units = room + warpLanes;
      unsigned count = 0;
      if (active == allLanes) {
        for (; count < group; ++count)
          units[count] = uint32_t(at[begin + count] >> shift);
      } else {
        for (unsigned lane = begin; lane < begin + group; ++lane) {
          units[count] = uint32_t(at[lane] >> shift);
          count += active >> lane & 1;
        }
      }
      counters.bankCycles += bankCycles(units, count, group);
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
    if (place.region->bytes - offset >= bytes &&
        !(place.region->sectors && offset / 32 == (offset + bytes - 1) / 32 &&
          isMarked(*place.region, offset / 32)))
      markTouched(counters, *place.region, offset, bytes);
  }
  counters.globalSectors += distinctOf(list, count);
}
