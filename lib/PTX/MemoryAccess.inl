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

/// Where the lanes' stretch lies; false: not wholly in one region, misaligned,
/// or in local memory.
template <unsigned N>
inline bool findStretch(Warp &warp, const MemoryInfo &info, uint64_t address,
                        uint64_t total, Stretch &stretch) {
  ::fsr::ptx::Place place = locate(warp, info, address);
  Region *region = place.region;
  if (!region || place.offset >= region->bytes ||
      region->bytes - place.offset < total ||
      (region->address + place.offset) % N)
    return false;
  stretch.region = region;
  stretch.offset = place.offset;
  stretch.space = place.space;
  return true;
}

struct CellView {
  uint64_t staleMask, mine, floor, laneFloor;
  unsigned index;
};

inline CellView cellView(WarpClock &clock, const Region &region,
                         unsigned first) {
  CellView view;
  bool isShared = region.generation != 0;
  view.staleMask = isShared ? cell::blockMask : cell::launchMask;
  view.index = clock.index;
  view.mine = (isShared ? uint64_t(region.generation) << cell::blockShift
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
                           cell::manyBit | cell::manyBlocksBit;
  if constexpr (N >= 4)
    return !((old ^ mine) & who);
  // Any lanes of this warp, together or one of them.
  uint64_t differ = old ^ mine;
  bool isOne = !(old & (cell::manyBit | cell::manyBlocksBit)) &&
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
    bool isSeen = !(differ & cell::blockMask) & !(old & cell::manyBlocksBit) &
                  ((old & cell::tickMask) <= view.floor);
    bad |= !(isStale | isOwn<N>(old, mine) | isSeen);
  }
  return !bad;
}

template <unsigned N>
inline void noteReads(const CellView &view, uint64_t *cells, uint64_t words) {
  uint64_t next[256];
  uint64_t changed = 0;
  uint64_t own = uint64_t(view.index) << cell::warpShift;
  for (uint64_t word = 0; word < words; ++word) {
    uint64_t old = cells[word], mine = cellFor<N>(view, word);
    uint64_t differ = old ^ mine;
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
  if (changed)
    __builtin_memcpy(cells, next, words * 8);
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
  markSectors(counters, *stretch.region, stretch.offset, total);
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

/// Element `v` of each piece into a slot.
template <unsigned E, unsigned V, typename Result>
inline void spreadElement(const uint8_t *data, Result *to, unsigned v,
                          unsigned count, const MemoryInfo &info) {
  using Element = typename CellOf<E>::Type;
  const Element *from = reinterpret_cast<const Element *>(data) + v;
  if (E >= 4 && sizeof(Result) == E) {
    for (unsigned i = 0; i < count; ++i)
      to[i] = Result(from[i * V]);
    return;
  }
  for (unsigned i = 0; i < count; ++i)
    to[i] = Result(extend<E>(from[i * V], info));
}

template <unsigned E, unsigned V>
inline void taintLoaded(Warp &warp, const Op &op, LaneMask active,
                        const uint8_t *state, const Stretch &stretch,
                        States states, unsigned stride) {
  LaneMask byAddress = warp.taint(op.operand(0));
  for (unsigned v = 0; v < V; ++v) {
    LaneMask tainted = states.all & Tainted ? allLanes : 0;
    if (!tainted && states.any & Tainted)
      for (unsigned i = 0; i < stretch.count; ++i) {
        uint8_t any = 0;
        for (unsigned b = 0; b < E; ++b)
          any |= state[i * stride + v * E + b];
        if (any & Tainted)
          tainted |= LaneMask(1) << (stretch.first + i);
      }
    warp.setTaint(op.result(v), active, tainted | byAddress);
  }
}

template <unsigned E, unsigned V>
inline bool loadStretch(Warp &warp, const Op &op, const MemoryInfo &info,
                        LaneMask active, const uint64_t *at, Stretch stretch) {
  constexpr unsigned N = E * V;
  uint64_t total = uint64_t(N) * stretch.count;
  if (!findStretch<N>(warp, info, at[stretch.first], total, stretch))
    return false;
  Region &region = *stretch.region;
  const uint8_t *state = region.state + stretch.offset;
  States states = statesOf(state, total);
  if (!(states.all & Written) || states.any & InFlight)
    return false;
  if (warp.checksRaces && region.writers && !region.isConst) {
    if ((stretch.offset | total) % 4)
      return false;
    CellView view = cellView(clockOf(warp), region, stretch.first);
    uint64_t word = stretch.offset / 4;
    if (!areInOrder<N>(view, region.writers + word, total / 4))
      return false;
    noteReads<N>(view, region.readers + word, total / 4);
  }
  const uint8_t *data = region.data + stretch.offset;
  for (unsigned v = 0; v < V; ++v) {
    if (info.resultBits > 32)
      spreadElement<E, V>(data,
                          warp.lanes<uint64_t>(op.result(v)) + stretch.first, v,
                          stretch.count, info);
    else
      spreadElement<E, V>(data,
                          warp.lanes<uint32_t>(op.result(v)) + stretch.first, v,
                          stretch.count, info);
  }
  if (warp.tracksTaint)
    taintLoaded<E, V>(warp, op, active, state, stretch, states, N);
  countStretch(warp, stretch, total, N, /*isWrite=*/false);
  return true;
}

// Lanes in any pattern. -------------------------------------------------------

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
                           cell::manyBit | cell::manyBlocksBit;
  uint64_t differ = old ^ mine;
  if (differ & view.staleMask || !(differ & who))
    return true;
  return !(differ & cell::blockMask) && !(old & cell::manyBlocksBit) &&
         (old & cell::tickMask) <= view.floor;
}

/// As `noteReads`, for one word.
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
  if (!region || region->bytes < N || region->address % N)
    return false;
  scatter.region = region;
  scatter.delta = address - place.offset;
  scatter.hasCells = warp.checksRaces && region->writers;
  return true;
}

template <unsigned E, unsigned V>
inline void loadPiece(Warp &warp, const Op &op, const MemoryInfo &info,
                      unsigned lane, const uint8_t *data) {
  for (unsigned v = 0; v < V; ++v) {
    typename CellOf<E>::Type element;
    __builtin_memcpy(&element, data + v * E, E);
    uint64_t value = extend<E>(element, info);
    if (info.resultBits > 32)
      warp.lanes<uint64_t>(op.result(v))[lane] = value;
    else
      warp.lanes<uint32_t>(op.result(v))[lane] = uint32_t(value);
  }
}

/// Loads lane after lane while nothing is wrong; gives the lanes that are left.
template <unsigned E, unsigned V>
inline LaneMask gatherLanes(Warp &warp, const Op &op, const MemoryInfo &info,
                            LaneMask active, const uint64_t *at) {
  constexpr unsigned N = E * V;
  Scatter scatter;
  if (!findScatter<N>(warp, info, at[__builtin_ctz(active)], scatter))
    return active;
  Region &region = *scatter.region;
  bool hasCells = scatter.hasCells && !region.isConst;
  if (hasCells && N < 4)
    return active;
  CellView view = cellView(clockOf(warp), region, 0);
  LaneMask rest = active, tainted = 0;
  uint64_t last = region.bytes - N, before = ~uint64_t(0);
  unsigned repeats = 0;
  for (; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t offset = at[lane] - scatter.delta;
    if (offset > last || offset % N)
      break;
    repeats = offset == before ? repeats + 1 : 0;
    before = offset;
    uint8_t state = stateOf<N>(region.state + offset);
    if (!(state & Written) || state & InFlight)
      break;
    // Of lanes that read the same, two make the cell stand for the warp.
    if (hasCells && repeats < 2) {
      uint64_t mine = view.mine + (uint64_t(lane) << cell::laneShift);
      bool isFine = true;
      for (unsigned word = 0; word < N / 4; ++word)
        isFine &= isInOrder(view, region.writers[offset / 4 + word], mine);
      if (!isFine)
        break;
      for (unsigned word = 0; word < N / 4; ++word)
        noteRead(view, region.readers[offset / 4 + word], mine);
    }
    if (state & Tainted)
      tainted |= LaneMask(1) << lane;
    loadPiece<E, V>(warp, op, info, lane, region.data + offset);
  }
  LaneMask done = active & ~rest;
  if (warp.tracksTaint && done)
    for (unsigned v = 0; v < V; ++v) {
      LaneMask byElement = tainted;
      if (V > 1)
        for (LaneMask some = tainted; some; some &= some - 1) {
          unsigned lane = __builtin_ctz(some);
          const uint8_t *state =
              region.state + (at[lane] - scatter.delta) + v * E;
          if (!(stateOf<E>(state) & Tainted))
            byElement &= ~(LaneMask(1) << lane);
        }
      warp.setTaint(op.result(v), done, byElement | warp.taint(op.operand(0)));
    }
  return rest;
}

template <unsigned E, unsigned V>
inline LaneMask scatterLanes(Warp &warp, const Op &op, const MemoryInfo &info,
                             LaneMask active, const uint64_t *at) {
  constexpr unsigned N = E * V;
  Scatter scatter;
  if (!findScatter<N>(warp, info, at[__builtin_ctz(active)], scatter))
    return active;
  Region &region = *scatter.region;
  if (region.isConst || &region == &warp.block->launch->params ||
      (scatter.hasCells && N < 4))
    return active;
  CellView view = cellView(clockOf(warp), region, 0);
  LaneMask byAddress = warp.tracksTaint ? warp.taint(op.operand(0)) : 0;
  LaneMask taint[V];
  for (unsigned v = 0; v < V; ++v)
    taint[v] = warp.tracksTaint ? warp.taint(op.operand(1 + v)) | byAddress : 0;
  uint64_t last = region.bytes - N;
  LaneMask rest = active;
  for (; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t offset = at[lane] - scatter.delta;
    if (offset > last || offset % N ||
        stateOf<N>(region.state + offset) & InFlight)
      break;
    if (scatter.hasCells) {
      // Two lanes in one place: the second finds the first one's cell, which
      // is not in order.
      uint64_t mine = view.mine + (uint64_t(lane) << cell::laneShift);
      uint64_t *writers = region.writers + offset / 4;
      uint64_t *readers = region.readers + offset / 4;
      bool isFine = true;
      for (unsigned word = 0; word < N / 4; ++word)
        isFine &= isInOrder(view, writers[word], mine) &&
                  isInOrder(view, readers[word], mine);
      if (!isFine)
        break;
      for (unsigned word = 0; word < N / 4; ++word) {
        writers[word] = mine;
        if (readers[word])
          readers[word] = 0;
      }
    }
    for (unsigned v = 0; v < V; ++v) {
      Slot slot = op.operand(1 + v);
      uint64_t value = info.resultBits > 32 ? warp.lanes<uint64_t>(slot)[lane]
                                            : warp.lanes<uint32_t>(slot)[lane];
      auto element = typename CellOf<E>::Type(value);
      __builtin_memcpy(region.data + offset + v * E, &element, E);
      __builtin_memset(region.state + offset + v * E,
                       taint[v] >> lane & 1 ? Written | Tainted : Written, E);
    }
  }
  return rest;
}

/// All lanes read one place.
template <unsigned E, unsigned V>
inline bool loadSame(Warp &warp, const Op &op, const MemoryInfo &info,
                     LaneMask active, uint64_t address) {
  constexpr unsigned N = E * V;
  Stretch stretch;
  if (!findStretch<N>(warp, info, address, N, stretch))
    return false;
  Region &region = *stretch.region;
  const uint8_t *state = region.state + stretch.offset;
  States states = statesOf(state, N);
  if (!(states.all & Written) || states.any & InFlight)
    return false;
  unsigned first = __builtin_ctz(active);
  if (warp.checksRaces && region.writers && !region.isConst) {
    if (N < 4)
      return false;
    // The first and the last lane stand for all: what is in order for both is
    // so for the rest, and two make the cell stand for the warp.
    CellView view = cellView(clockOf(warp), region, 0);
    unsigned last = 31 - __builtin_clz(active);
    uint64_t mine = view.mine + (uint64_t(first) << cell::laneShift);
    uint64_t other = view.mine + (uint64_t(last) << cell::laneShift);
    uint64_t word = stretch.offset / 4;
    bool isFine = true;
    for (unsigned i = 0; i < N / 4; ++i)
      isFine &= isInOrder(view, region.writers[word + i], mine) &&
                isInOrder(view, region.writers[word + i], other);
    if (!isFine)
      return false;
    for (unsigned i = 0; i < N / 4; ++i) {
      noteRead(view, region.readers[word + i], mine);
      if (last != first)
        noteRead(view, region.readers[word + i], other);
    }
  }
  const uint8_t *data = region.data + stretch.offset;
  for (unsigned v = 0; v < V; ++v) {
    typename CellOf<E>::Type element;
    __builtin_memcpy(&element, data + v * E, E);
    uint64_t value = extend<E>(element, info);
    if (info.resultBits > 32) {
      uint64_t *to = warp.lanes<uint64_t>(op.result(v));
      forEachLane(active, [&](unsigned lane) { to[lane] = value; });
    } else {
      uint32_t *to = warp.lanes<uint32_t>(op.result(v));
      forEachLane(active, [&](unsigned lane) { to[lane] = uint32_t(value); });
    }
  }
  if (warp.tracksTaint) {
    LaneMask tainted = states.any & Tainted ? allLanes : 0;
    for (unsigned v = 0; v < V; ++v)
      warp.setTaint(op.result(v), active, tainted | warp.taint(op.operand(0)));
  }
  stretch.first = first;
  stretch.count = 1;
  // One place: the whole warp is one sector's and one bank's.
  unsigned lanes = __builtin_popcount(active);
  countStretch(warp, stretch, N, N, /*isWrite=*/false);
  if (stretch.space == Space::Global)
    warp.counters.globalLoadBytes += uint64_t(N) * (lanes - 1);
  else if (stretch.space == Space::Shared)
    warp.counters.sharedLoadBytes += uint64_t(N) * (lanes - 1);
  return true;
}

/// Local memory at the same offset in all lanes.
template <unsigned E, unsigned V>
inline bool loadLocal(Warp &warp, const Op &op, const MemoryInfo &info,
                      LaneMask active, uint64_t offset) {
  constexpr unsigned N = E * V;
  if (!warp.local || offset % N || offset > warp.local->size() ||
      warp.local->size() - offset < N)
    return false;
  LaneMask tainted[V] = {};
  uint8_t all = 0xff, any = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    const uint8_t *state = warp.local->state(__builtin_ctz(rest)) + offset;
    for (unsigned i = 0; i < N; ++i) {
      all &= state[i];
      any |= state[i];
    }
  }
  if (!(all & Written) || any & InFlight)
    return false;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    const uint8_t *data = warp.local->data(lane) + offset;
    const uint8_t *state = warp.local->state(lane) + offset;
    for (unsigned v = 0; v < V; ++v) {
      typename CellOf<E>::Type element;
      __builtin_memcpy(&element, data + v * E, E);
      uint64_t value = extend<E>(element, info);
      if (info.resultBits > 32)
        warp.lanes<uint64_t>(op.result(v))[lane] = value;
      else
        warp.lanes<uint32_t>(op.result(v))[lane] = uint32_t(value);
      if (any & Tainted)
        for (unsigned i = 0; i < E; ++i)
          if (state[v * E + i] & Tainted)
            tainted[v] |= LaneMask(1) << lane;
    }
  }
  if (warp.tracksTaint)
    for (unsigned v = 0; v < V; ++v)
      warp.setTaint(op.result(v), active,
                    tainted[v] | warp.taint(op.operand(0)));
  warp.counters.localLoadBytes += uint64_t(N) * __builtin_popcount(active);
  return true;
}

template <unsigned E, unsigned V>
bool tryLoad(Warp &warp, const Op &op, const MemoryInfo &info, LaneMask active,
             const uint64_t *at) {
  if (info.isStrong || !clockOf(warp).unwritten.empty())
    return false;
  Stretch stretch;
  stretch.first = __builtin_ctz(active);
  stretch.count = __builtin_popcount(active);
  LaneMask run = stretch.count == warpLanes
                     ? allLanes
                     : ((LaneMask(1) << stretch.count) - 1) << stretch.first;
  uint64_t address = at[stretch.first];
  bool isLocal =
      info.space == Space::Local ||
      (info.space == Space::Generic && address - localWindow < windowBytes);
  if (!isLocal && stretch.count > 1 && active == run &&
      at[stretch.first + 1] == address + E * V)
    return isStretch<E * V>(at, stretch.first, stretch.count) &&
           loadStretch<E, V>(warp, op, info, active, at, stretch);
  for (LaneMask rest = active; rest; rest &= rest - 1)
    if (at[__builtin_ctz(rest)] != address)
      return false;
  if (isLocal)
    return loadLocal<E, V>(warp, op, info, active,
                           info.space == Space::Local ? address
                                                      : address - localWindow);
  return loadSame<E, V>(warp, op, info, active, address);
}

template <unsigned E, unsigned V>
void load(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  addressesOf(warp, op, info, at);
  if (tryLoad<E, V>(warp, op, info, active, at))
    return;
  countAccess(warp, info, active, at, /*isWrite=*/false);
  if (!info.isStrong && clockOf(warp).unwritten.empty())
    active = gatherLanes<E, V>(warp, op, info, active, at);
  if (active)
    loadLanes(warp, op, info, active, at);
}

// Stores. ---------------------------------------------------------------------

template <unsigned E, unsigned V, typename Source>
inline void gatherElement(const Source *from, uint8_t *data, unsigned v,
                          unsigned count) {
  using Element = typename CellOf<E>::Type;
  Element *to = reinterpret_cast<Element *>(data) + v;
  for (unsigned i = 0; i < count; ++i)
    to[i * V] = Element(from[i]);
}

/// The states that a store leaves: written, and tainted where its lane is.
template <unsigned E, unsigned V>
inline void setStates(Warp &warp, const Op &op, LaneMask active, uint8_t *state,
                      const Stretch &stretch) {
  LaneMask byAddress = 0, tainted[V] = {}, any = 0, all = allLanes;
  if (warp.tracksTaint) {
    byAddress = warp.taint(op.operand(0));
    for (unsigned v = 0; v < V; ++v) {
      tainted[v] = (warp.taint(op.operand(1 + v)) | byAddress) & active;
      any |= tainted[v];
      all &= tainted[v];
    }
  } else {
    all = 0;
  }
  uint64_t total = uint64_t(E) * V * stretch.count;
  if (!any || all == active) {
    __builtin_memset(state, any ? Written | Tainted : Written, total);
    return;
  }
  for (unsigned i = 0; i < stretch.count; ++i)
    for (unsigned v = 0; v < V; ++v) {
      bool isTainted = tainted[v] >> (stretch.first + i) & 1;
      __builtin_memset(state + (i * V + v) * E,
                       isTainted ? Written | Tainted : Written, E);
    }
}

template <unsigned E, unsigned V>
inline bool storeStretch(Warp &warp, const Op &op, const MemoryInfo &info,
                         LaneMask active, const uint64_t *at, Stretch stretch) {
  constexpr unsigned N = E * V;
  uint64_t total = uint64_t(N) * stretch.count;
  if (!findStretch<N>(warp, info, at[stretch.first], total, stretch))
    return false;
  Region &region = *stretch.region;
  if (stretch.space == Space::Param || region.isConst)
    return false;
  uint8_t *state = region.state + stretch.offset;
  if (statesOf(state, total).any & InFlight)
    return false;
  if (warp.checksRaces && region.writers) {
    if ((stretch.offset | total) % 4)
      return false;
    CellView view = cellView(clockOf(warp), region, stretch.first);
    uint64_t word = stretch.offset / 4, words = total / 4;
    uint64_t *writers = region.writers + word;
    uint64_t *readers = region.readers + word;
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
  }
  uint8_t *data = region.data + stretch.offset;
  for (unsigned v = 0; v < V; ++v) {
    if (info.resultBits > 32)
      gatherElement<E, V>(warp.lanes<uint64_t>(op.operand(1 + v)) +
                              stretch.first,
                          data, v, stretch.count);
    else
      gatherElement<E, V>(warp.lanes<uint32_t>(op.operand(1 + v)) +
                              stretch.first,
                          data, v, stretch.count);
  }
  setStates<E, V>(warp, op, active, state, stretch);
  countStretch(warp, stretch, total, N, /*isWrite=*/true);
  return true;
}

template <unsigned E, unsigned V>
inline bool storeLocal(Warp &warp, const Op &op, const MemoryInfo &info,
                       LaneMask active, uint64_t offset) {
  constexpr unsigned N = E * V;
  if (!warp.local || offset % N || offset > warp.local->size() ||
      warp.local->size() - offset < N)
    return false;
  LaneMask byAddress = warp.tracksTaint ? warp.taint(op.operand(0)) : 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint8_t *data = warp.local->data(lane) + offset;
    uint8_t *state = warp.local->state(lane) + offset;
    for (unsigned v = 0; v < V; ++v) {
      Slot slot = op.operand(1 + v);
      uint64_t value = info.resultBits > 32 ? warp.lanes<uint64_t>(slot)[lane]
                                            : warp.lanes<uint32_t>(slot)[lane];
      auto element = typename CellOf<E>::Type(value);
      __builtin_memcpy(data + v * E, &element, E);
      bool isTainted =
          warp.tracksTaint && ((warp.taint(slot) | byAddress) >> lane & 1);
      __builtin_memset(state + v * E, isTainted ? Written | Tainted : Written,
                       E);
    }
  }
  warp.counters.localStoreBytes += uint64_t(N) * __builtin_popcount(active);
  return true;
}

template <unsigned E, unsigned V>
bool tryStore(Warp &warp, const Op &op, const MemoryInfo &info, LaneMask active,
              const uint64_t *at) {
  if (info.isStrong || !clockOf(warp).unwritten.empty())
    return false;
  Stretch stretch;
  stretch.first = __builtin_ctz(active);
  stretch.count = __builtin_popcount(active);
  LaneMask run = stretch.count == warpLanes
                     ? allLanes
                     : ((LaneMask(1) << stretch.count) - 1) << stretch.first;
  uint64_t address = at[stretch.first];
  bool isLocal =
      info.space == Space::Local ||
      (info.space == Space::Generic && address - localWindow < windowBytes);
  if (isLocal) {
    for (LaneMask rest = active; rest; rest &= rest - 1)
      if (at[__builtin_ctz(rest)] != address)
        return false;
    return storeLocal<E, V>(warp, op, info, active,
                            info.space == Space::Local ? address
                                                       : address - localWindow);
  }
  return active == run && isStretch<E * V>(at, stretch.first, stretch.count) &&
         storeStretch<E, V>(warp, op, info, active, at, stretch);
}

template <unsigned E, unsigned V>
void store(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  addressesOf(warp, op, info, at);
  if (tryStore<E, V>(warp, op, info, active, at))
    return;
  countAccess(warp, info, active, at, /*isWrite=*/true);
  if (!info.isStrong && clockOf(warp).unwritten.empty())
    active = scatterLanes<E, V>(warp, op, info, active, at);
  if (active)
    storeLanes(warp, op, info, active, at);
}

// 128-bit values are rare: lane by lane.
inline void loadPairs(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  addressesOf(warp, op, info, at);
  countAccess(warp, info, active, at, /*isWrite=*/false);
  loadLanes(warp, op, info, active, at);
}
inline void storePairs(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  addressesOf(warp, op, info, at);
  countAccess(warp, info, active, at, /*isWrite=*/true);
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
