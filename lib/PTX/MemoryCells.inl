// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cells and states of memory, as whole warps look at them: who touched a word
// last, whether that is in order, what a read leaves there. Included inside a
// namespace, by MemoryAccess.inl.
//
//===----------------------------------------------------------------------===//

struct CellView {
  uint64_t staleMask, mine, floor, laneFloor;
  unsigned index;
};

inline CellView cellView(WarpClock &clock, const Region &region,
                         unsigned first) {
  CellView view;
  bool isShared = region.generation != 0;
  view.staleMask = isShared ? cell::generationMask : cell::launchMask;
  view.index = clock.index;
  view.mine = (isShared ? cell::sharedBase(region.generation, clock.block->rank)
                        : clock.globalBase) |
              uint64_t(clock.index) << cell::warpShift |
              uint64_t(clock.block->tick) << cell::tickShift | cell::bytesMask |
              uint64_t(first) << cell::laneShift;
  uint32_t floor =
      clock.floor < clock.laneFloor ? clock.floor : clock.laneFloor;
  if (clock.block->warps.size() == 1)
    floor = clock.laneFloor;
  view.floor = uint64_t(floor) << cell::tickShift;
  view.laneFloor = uint64_t(clock.laneFloor) << cell::tickShift;
  return view;
}

/// As loads of this kind look at who wrote: to `.nc` whatever was written in
/// this launch is another's, and never in order.
inline CellView writersView(const CellView &view, const MemoryInfo &info) {
  CellView writers = view;
  if (info.isNonCoherent) {
    writers.mine ^= cell::blockMask & ~cell::launchMask;
    writers.floor = 0;
  }
  return writers;
}

/// With pieces below a word, lanes share words: the cell stands for the warp.
template <unsigned N>
inline uint64_t cellFor(const CellView &view, uint64_t word) {
  if constexpr (N >= 4)
    return view.mine + (word / (N / 4) << cell::laneShift);
  else
    return (view.mine & ~cell::laneMask) | cell::manyBit |
           uint64_t(view.index) << cell::laneShift;
}

template <unsigned N>
inline bool isOwn(uint64_t old, uint64_t mine) {
  constexpr uint64_t who = cell::blockMask | cell::warpMask | cell::laneMask |
                           cell::manyBit | cell::manyBlocksBit | cell::mixedBit;
  if constexpr (N >= 4)
    return !((old ^ mine) & who);
  // Any lanes of this warp, together or one of them.
  uint64_t differ = old ^ mine;
  bool isOne =
      !(old & (cell::manyBit | cell::manyBlocksBit | cell::mixedBit)) &&
      !(differ & (cell::blockMask | cell::warpMask));
  return isOne || !(differ & who);
}

/// Whether all that `cells` say is in order before what the lanes do now.
template <unsigned N>
inline bool areInOrder(const CellView &view, const uint64_t *cells,
                       uint64_t words) {
  uint64_t bad = 0;
  for (uint64_t word = 0; word < words; ++word) {
    uint64_t old = cells[word], mine = cellFor<N>(view, word);
    uint64_t differ = old ^ mine;
    bool isStale = differ & view.staleMask;
    bool isSeen = !(differ & cell::blockMask) &
                  !(old & (cell::manyBlocksBit | cell::mixedBit)) &
                  ((old & cell::tickMask) <= view.floor);
    bad |= !(isStale | isOwn<N>(old, mine) | isSeen);
  }
  return !bad;
}

/// False: some words are mixed, and nothing was noted.
template <unsigned N>
inline bool noteReads(const CellView &view, uint64_t *cells, uint64_t words) {
  uint64_t next[256];
  uint64_t changed = 0, mixed = 0;
  uint64_t own = uint64_t(view.index) << cell::warpShift;
  for (uint64_t word = 0; word < words; ++word) {
    uint64_t old = cells[word], mine = cellFor<N>(view, word);
    uint64_t differ = old ^ mine;
    mixed |= old;
    bool isStale = differ & view.staleMask;
    bool isSameBlock = !(differ & cell::blockMask);
    bool isSeen = isSameBlock & ((old & cell::tickMask) <= view.floor);
    uint64_t low = old & cell::warpMask;
    uint64_t high = old & cell::manyBit ? (old & cell::laneMask) << 5 : low;
    low = low < own ? low : own;
    high = high > own ? high : own;
    uint64_t merged = (mine & ~(cell::warpMask | cell::laneMask)) |
                      cell::manyBit | low | high >> 5;
    uint64_t made = isSameBlock ? merged : mine | cell::manyBlocksBit;
    bool isPast = isStale | isSeen | isOwn<N>(old, mine);
    made = isPast ? mine : made;
    // Readers in several blocks: nothing can be added, and not writing keeps
    // the line shared between the host's cores.
    bool isShared = !isStale & !!(old & cell::manyBlocksBit);
    made = isShared ? old & ~cell::strongBit : made;
    next[word] = made;
    changed |= made ^ old;
  }
  if (mixed & cell::mixedBit)
    return false;
  if (changed)
    __builtin_memcpy(cells, next, words * 8);
  return true;
}

/// False: not all is in order, and nothing was noted.
template <unsigned N>
inline bool noteWrites(const CellView &view, uint64_t *writers,
                       uint64_t *readers, uint64_t words) {
  if (!areInOrder<N>(view, writers, words) ||
      !areInOrder<N>(view, readers, words))
    return false;
  for (uint64_t i = 0; i < words; ++i)
    writers[i] = cellFor<N>(view, i);
  // What was read before is behind the write now.
  uint64_t live = 0;
  for (uint64_t i = 0; i < words; ++i)
    live |= readers[i];
  if (live)
    __builtin_memset(readers, 0, words * 8);
  return true;
}

/// What a stretch of states says.
struct States {
  uint8_t all, any;
};
inline States statesOf(const uint8_t *state, uint64_t total) {
  uint8_t all = 0xff, any = 0;
  for (uint64_t i = 0; i < total; ++i) {
    all &= state[i];
    any |= state[i];
  }
  return {all, any};
}

/// What the states of one piece say, a bit each as in a byte's state: Written
/// if all are, the others if any is.
template <unsigned N>
inline uint8_t stateOf(const uint8_t *state) {
  constexpr unsigned step = N < 8 ? N : 8;
  constexpr uint64_t ones =
      0x0101010101010101ull >> (step < 8 ? 64 - step * 8 : 0);
  uint64_t all = ones, any = 0;
  for (unsigned i = 0; i < N; i += step) {
    uint64_t bytes = 0;
    __builtin_memcpy(&bytes, state + i, step);
    all &= bytes;
    any |= bytes;
  }
  return (all == ones ? Written : 0) | (any & ones * Tainted ? Tainted : 0) |
         (any & ones * InFlight ? InFlight : 0);
}

inline bool isInOrder(const CellView &view, uint64_t old, uint64_t mine) {
  constexpr uint64_t who = cell::blockMask | cell::warpMask | cell::laneMask |
                           cell::manyBit | cell::manyBlocksBit | cell::mixedBit;
  uint64_t differ = old ^ mine;
  if (differ & view.staleMask || !(differ & who))
    return true;
  return !(differ & cell::blockMask) &&
         !(old & (cell::manyBlocksBit | cell::mixedBit)) &&
         (old & cell::tickMask) <= view.floor;
}

/// As `noteReads`, for one word, which is not mixed.
inline void noteRead(const CellView &view, uint64_t &place, uint64_t mine) {
  uint64_t old = place, differ = old ^ mine;
  if (!differ)
    return;
  if (differ & view.staleMask) {
    place = mine;
    return;
  }
  if (old & cell::manyBlocksBit) {
    if (old & cell::strongBit)
      place = old & ~cell::strongBit;
    return;
  }
  if (differ & cell::blockMask) {
    place = mine | cell::manyBlocksBit;
    return;
  }
  constexpr uint64_t who = cell::warpMask | cell::laneMask | cell::manyBit;
  if (!(differ & who) || (old & cell::tickMask) <= view.floor) {
    place = mine;
    return;
  }
  uint64_t own = uint64_t(view.index) << cell::warpShift;
  uint64_t low = old & cell::warpMask;
  uint64_t high = old & cell::manyBit ? (old & cell::laneMask) << 5 : low;
  low = low < own ? low : own;
  high = high > own ? high : own;
  uint64_t made = (mine & ~(cell::warpMask | cell::laneMask)) | cell::manyBit |
                  low | high >> 5;
  if (made != old)
    place = made;
}
