// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Stores of whole warps: stretches, any pattern in one region, local memory.
// Included inside a namespace, by MemoryAccess.inl.
//
//===----------------------------------------------------------------------===//

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
                      unsigned first, unsigned count) {
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
  uint64_t total = uint64_t(E) * V * count;
  if (!any || all == active) {
    __builtin_memset(state, any ? Written | Tainted : Written, total);
    return;
  }
  for (unsigned i = 0; i < count; ++i)
    for (unsigned v = 0; v < V; ++v) {
      bool isTainted = tainted[v] >> (first + i) & 1;
      __builtin_memset(state + (i * V + v) * E,
                       isTainted ? Written | Tainted : Written, E);
    }
}

/// Lanes from `first` on, each its own piece, one after the other from
/// `offset`; false: something is not in order, and nothing was done.
template <unsigned E, unsigned V>
inline bool storeRun(Warp &warp, const Op &op, const MemoryInfo &info,
                     LaneMask active, const Scatter &scatter, uint64_t offset,
                     unsigned first, unsigned count) {
  constexpr unsigned N = E * V;
  Region &region = *scatter.region;
  uint64_t total = uint64_t(N) * count;
  uint8_t *state = region.state + offset;
  if (statesOf(state, total).any & InFlight)
    return false;
  if (scatter.hasCells &&
      !noteWrites<N>(cellView(clockOf(warp), region, first),
                     region.writers + offset / 4, region.readers + offset / 4,
                     total / 4))
    return false;
  uint8_t *data = region.data + offset;
  for (unsigned v = 0; v < V; ++v) {
    Slot slot = op.operand(1 + v);
    if (info.resultBits > 32)
      gatherElement<E, V>(warp.lanes<uint64_t>(slot) + first, data, v, count);
    else
      gatherElement<E, V>(warp.lanes<uint32_t>(slot) + first, data, v, count);
  }
  setStates<E, V>(warp, op, active & lanesOf(first, count), state, first,
                  count);
  return true;
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
  LaneMask next = followersOf(at, N) & active & active << 1;
  LaneMask rest = active;
  while (rest) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t offset = at[lane] - scatter.delta;
    if (offset > last || offset % N)
      break;
    unsigned steps = runAt(next, lane);
    if (steps >= leastRun && last - offset >= uint64_t(steps - 1) * N) {
      if (!storeRun<E, V>(warp, op, info, active, scatter, offset, lane, steps))
        break;
      rest &= ~lanesOf(lane, steps);
      continue;
    }
    if (stateOf<N>(region.state + offset) & InFlight)
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
    rest &= rest - 1;
  }
  return rest;
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
    uint64_t word = stretch.offset / 4;
    if (!noteWrites<N>(view, region.writers + word, region.readers + word,
                       total / 4))
      return false;
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
  setStates<E, V>(warp, op, active, state, stretch.first, stretch.count);
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
  if (info.isStrong || op.mayBeUninitialized ||
      !clockOf(warp).unwritten.empty())
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
    if (!areSame(at, active))
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
  countLanes(warp, info, active, at, /*isWrite=*/true);
  if (!info.isStrong && !op.mayBeUninitialized &&
      clockOf(warp).unwritten.empty())
    active = scatterLanes<E, V>(warp, op, info, active, at);
  if (active)
    storeLanes(warp, op, info, active, at);
}
