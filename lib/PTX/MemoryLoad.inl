// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads of whole warps: stretches, any pattern in one region, one place for all
// lanes, local memory. Included inside a namespace, by MemoryAccess.inl.
//
//===----------------------------------------------------------------------===//

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
    if (!areInOrder<N>(writersView(view, info), region.writers + word,
                       total / 4))
      return false;
    if (!noteReads<N>(view, region.readers + word, total / 4))
      return false;
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

/// A loop over all lanes is one over a few vectors.
template <typename Result>
inline void setLanes(Result *to, LaneMask lanes, Result value) {
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    to[lane] = lanes >> lane & 1 ? value : to[lane];
}

/// What a gather needs to know at each of its steps.
struct Gather {
  CellView view, writersView;
  Region &region;
  bool hasCells;
  uint64_t last; ///< The last offset at which a piece lies inside.
};

/// The lanes from `first` to `end` read the piece at `offset`; false: something
/// is not in order, and nothing was done.
template <unsigned E, unsigned V>
inline bool loadRepeated(Warp &warp, const Op &op, const MemoryInfo &info,
                         const Gather &gather, uint64_t offset, unsigned first,
                         unsigned end, LaneMask *tainted) {
  constexpr unsigned N = E * V;
  Region &region = gather.region;
  const CellView &view = gather.view;
  uint8_t state = stateOf<N>(region.state + offset);
  if (!(state & Written) || state & InFlight)
    return false;
  if (gather.hasCells) {
    // What is in order for the first and the last lane is so for the others,
    // and two make the cell stand for the warp.
    uint64_t mine = view.mine + (uint64_t(first) << cell::laneShift);
    uint64_t other = view.mine + (uint64_t(end - 1) << cell::laneShift);
    uint64_t *writers = region.writers + offset / 4;
    uint64_t *readers = region.readers + offset / 4;
    uint64_t alien = view.mine ^ gather.writersView.mine;
    bool isFine = true;
    for (unsigned word = 0; word < N / 4; ++word)
      isFine &= isInOrder(gather.writersView, writers[word], mine ^ alien) &&
                isInOrder(gather.writersView, writers[word], other ^ alien) &&
                !(readers[word] & cell::mixedBit);
    if (!isFine)
      return false;
    for (unsigned word = 0; word < N / 4; ++word) {
      noteRead(view, readers[word], mine);
      noteRead(view, readers[word], other);
    }
  }
  const uint8_t *data = region.data + offset;
  for (unsigned v = 0; v < V; ++v) {
    typename CellOf<E>::Type element;
    __builtin_memcpy(&element, data + v * E, E);
    uint64_t value = extend<E>(element, info);
    if (info.resultBits > 32)
      setLanes(warp.lanes<uint64_t>(op.result(v)), lanesOf(first, end - first),
               value);
    else
      setLanes(warp.lanes<uint32_t>(op.result(v)), lanesOf(first, end - first),
               uint32_t(value));
  }
  if (state & Tainted)
    for (unsigned v = 0; v < V; ++v)
      if (stateOf<E>(region.state + offset + v * E) & Tainted)
        tainted[v] |= lanesOf(first, end - first);
  return true;
}

/// The same, each lane its own piece, one after the other.
template <unsigned E, unsigned V>
inline bool loadRun(Warp &warp, const Op &op, const MemoryInfo &info,
                    const Gather &gather, uint64_t offset, unsigned first,
                    unsigned end, LaneMask *tainted) {
  constexpr unsigned N = E * V;
  Region &region = gather.region;
  unsigned count = end - first;
  uint64_t total = uint64_t(N) * count;
  const uint8_t *state = region.state + offset;
  States states = statesOf(state, total);
  if (!(states.all & Written) || states.any & InFlight)
    return false;
  if (gather.hasCells) {
    CellView view = gather.view;
    view.mine += uint64_t(first) << cell::laneShift;
    CellView writersView = gather.writersView;
    writersView.mine += uint64_t(first) << cell::laneShift;
    if (!areInOrder<N>(writersView, region.writers + offset / 4, total / 4))
      return false;
    if (!noteReads<N>(view, region.readers + offset / 4, total / 4))
      return false;
  }
  const uint8_t *data = region.data + offset;
  for (unsigned v = 0; v < V; ++v) {
    if (info.resultBits > 32)
      spreadElement<E, V>(data, warp.lanes<uint64_t>(op.result(v)) + first, v,
                          count, info);
    else
      spreadElement<E, V>(data, warp.lanes<uint32_t>(op.result(v)) + first, v,
                          count, info);
  }
  if (states.all & Tainted) {
    for (unsigned v = 0; v < V; ++v)
      tainted[v] |= lanesOf(first, count);
  } else if (states.any & Tainted) {
    for (unsigned i = 0; i < count; ++i)
      for (unsigned v = 0; v < V; ++v)
        if (stateOf<E>(state + i * N + v * E) & Tainted)
          tainted[v] |= LaneMask(1) << (first + i);
  }
  return true;
}

/// One lane.
template <unsigned E, unsigned V>
inline bool loadOne(Warp &warp, const Op &op, const MemoryInfo &info,
                    const Gather &gather, uint64_t offset, unsigned lane,
                    LaneMask *tainted) {
  constexpr unsigned N = E * V;
  Region &region = gather.region;
  uint8_t state = stateOf<N>(region.state + offset);
  if (!(state & Written) || state & InFlight)
    return false;
  if (gather.hasCells) {
    uint64_t mine = gather.view.mine + (uint64_t(lane) << cell::laneShift);
    uint64_t writersMine =
        gather.writersView.mine + (uint64_t(lane) << cell::laneShift);
    bool isFine = true;
    for (unsigned word = 0; word < N / 4; ++word)
      isFine &= isInOrder(gather.writersView, region.writers[offset / 4 + word],
                          writersMine) &&
                !(region.readers[offset / 4 + word] & cell::mixedBit);
    if (!isFine)
      return false;
    for (unsigned word = 0; word < N / 4; ++word)
      noteRead(gather.view, region.readers[offset / 4 + word], mine);
  }
  loadPiece<E, V>(warp, op, info, lane, region.data + offset);
  if (state & Tainted)
    for (unsigned v = 0; v < V; ++v)
      if (V == 1 || stateOf<E>(region.state + offset + v * E) & Tainted)
        tainted[v] |= LaneMask(1) << lane;
  return true;
}

/// Loads run after run while nothing is wrong; gives the lanes that are left.
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
  Gather gather{view, writersView(view, info), region, hasCells,
                region.bytes - N};
  LaneMask joined = active & active << 1;
  LaneMask same = followersOf(at, 0) & joined;
  LaneMask next = 0, rest = active, tainted[V] = {};
  bool hasNext = false;
  while (rest) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t offset = at[lane] - scatter.delta;
    if (offset > gather.last || offset % N)
      break;
    unsigned repeats = runAt(same, lane);
    if (repeats >= leastRun) {
      if (!loadRepeated<E, V>(warp, op, info, gather, offset, lane,
                              lane + repeats, tainted))
        break;
      rest &= ~lanesOf(lane, repeats);
      continue;
    }
    if (!hasNext) {
      next = followersOf(at, N) & joined;
      hasNext = true;
    }
    unsigned steps = runAt(next, lane);
    // Where it does not end inside, the loop over lanes says which lane not.
    if (steps >= leastRun && gather.last - offset >= uint64_t(steps - 1) * N) {
      if (!loadRun<E, V>(warp, op, info, gather, offset, lane, lane + steps,
                         tainted))
        break;
      rest &= ~lanesOf(lane, steps);
      continue;
    }
    if (!loadOne<E, V>(warp, op, info, gather, offset, lane, tainted))
      break;
    rest &= rest - 1;
  }
  LaneMask done = active & ~rest;
  if (warp.tracksTaint && done)
    for (unsigned v = 0; v < V; ++v)
      warp.setTaint(op.result(v), done, tainted[v] | warp.taint(op.operand(0)));
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
    CellView asWritten = writersView(view, info);
    uint64_t alien = view.mine ^ asWritten.mine;
    bool isFine = true;
    for (unsigned i = 0; i < N / 4; ++i)
      isFine &= isInOrder(asWritten, region.writers[word + i], mine ^ alien) &&
                isInOrder(asWritten, region.writers[word + i], other ^ alien) &&
                !(region.readers[word + i] & cell::mixedBit);
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
  if (!areSame(at, active))
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
  countLanes(warp, info, active, at, /*isWrite=*/false);
  if (!info.isStrong && clockOf(warp).unwritten.empty())
    active = gatherLanes<E, V>(warp, op, info, active, at);
  if (active)
    loadLanes(warp, op, info, active, at);
}
