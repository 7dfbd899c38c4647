// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Moves, whole, packed and unpacked; see IntegerLanes.inl for how it is
// included.
//
//===----------------------------------------------------------------------===//

template <typename T>
inline T same(T a) {
  return a;
}

inline void copyPredicate(Warp &warp, const Op &op, LaneMask active) {
  storePredicate(warp, op.result(0), active, warp.predicate(op.operand(0)));
}

/// 128 bits.
inline void copyPairs(Warp &warp, const Op &op, LaneMask active) {
  for (unsigned i = 0; i < 2; ++i) {
    uint64_t *to = warp.lanes<uint64_t>(op.result(i));
    const uint64_t *from = warp.lanes<uint64_t>(op.operand(i));
    forEachLane(active, [=](unsigned lane) { to[lane] = from[lane]; });
  }
}

/// `Count` parts of `Bits` each become one number, the first lowest.
template <unsigned Bits, unsigned Count>
inline void pack(Warp &warp, const Op &op, LaneMask active) {
  using Cell = std::conditional_t<Bits * Count == 64, uint64_t, uint32_t>;
  constexpr uint32_t mask = uint32_t(~uint64_t(0) >> (64 - Bits));
  Cell *to = warp.lanes<Cell>(op.result(0));
  const uint32_t *a = warp.lanes<uint32_t>(op.operand(0));
  const uint32_t *b = warp.lanes<uint32_t>(op.operand(1));
  const uint32_t *c = warp.lanes<uint32_t>(op.operand(Count > 2 ? 2 : 0));
  const uint32_t *d = warp.lanes<uint32_t>(op.operand(Count > 2 ? 3 : 0));
  forEachLane(active, [=](unsigned lane) {
    Cell value = Cell(a[lane] & mask) | Cell(b[lane] & mask) << Bits;
    if constexpr (Count > 2)
      value |= Cell(c[lane] & mask) << 2 * Bits | Cell(d[lane] & mask)
                                                      << 3 * Bits;
    to[lane] = value;
  });
}

template <unsigned Bits, unsigned Count>
inline void unpack(Warp &warp, const Op &op, LaneMask active) {
  using Cell = std::conditional_t<Bits * Count == 64, uint64_t, uint32_t>;
  constexpr uint32_t mask = uint32_t(~uint64_t(0) >> (64 - Bits));
  const Cell *from = warp.lanes<Cell>(op.operand(0));
  uint32_t *a = warp.lanes<uint32_t>(op.result(0));
  uint32_t *b = warp.lanes<uint32_t>(op.result(1));
  uint32_t *c = warp.lanes<uint32_t>(op.result(Count > 2 ? 2 : 0));
  uint32_t *d = warp.lanes<uint32_t>(op.result(Count > 2 ? 3 : 0));
  forEachLane(active, [=](unsigned lane) {
    Cell value = from[lane];
    a[lane] = uint32_t(value) & mask;
    b[lane] = uint32_t(value >> Bits) & mask;
    if constexpr (Count > 2) {
      c[lane] = uint32_t(value >> 2 * Bits) & mask;
      d[lane] = uint32_t(value >> 3 * Bits) & mask;
    }
  });
}

/// Four words and the two halves of 128 bits.
inline void packWords(Warp &warp, const Op &op, LaneMask active) {
  for (unsigned i = 0; i < 2; ++i) {
    uint64_t *to = warp.lanes<uint64_t>(op.result(i));
    const uint32_t *low = warp.lanes<uint32_t>(op.operand(2 * i));
    const uint32_t *high = warp.lanes<uint32_t>(op.operand(2 * i + 1));
    forEachLane(active, [=](unsigned lane) {
      to[lane] = low[lane] | uint64_t(high[lane]) << 32;
    });
  }
}
inline void unpackWords(Warp &warp, const Op &op, LaneMask active) {
  for (unsigned i = 0; i < 2; ++i) {
    const uint64_t *from = warp.lanes<uint64_t>(op.operand(i));
    uint32_t *low = warp.lanes<uint32_t>(op.result(2 * i));
    uint32_t *high = warp.lanes<uint32_t>(op.result(2 * i + 1));
    forEachLane(active, [=](unsigned lane) {
      low[lane] = uint32_t(from[lane]);
      high[lane] = uint32_t(from[lane] >> 32);
    });
  }
}

// From a form to its handler. -------------------------------------------------

inline Handler moveHandler(unsigned width) {
  switch (width) {
  case 1:
    return &copyPredicate;
  case 16:
    return &Each<&same<uint16_t>>::run;
  case 32:
    return &Each<&same<uint32_t>>::run;
  case 64:
    return &Each<&same<uint64_t>>::run;
  case 128:
    return &copyPairs;
  default:
    return nullptr;
  }
}
/// Parts of `width / count` bits.
inline Handler vectorHandler(unsigned width, unsigned count, bool packs) {
  switch (width * 8 + count) {
  case 16 * 8 + 2:
    return packs ? &pack<8, 2> : &unpack<8, 2>;
  case 32 * 8 + 2:
    return packs ? &pack<16, 2> : &unpack<16, 2>;
  case 32 * 8 + 4:
    return packs ? &pack<8, 4> : &unpack<8, 4>;
  case 64 * 8 + 2:
    return packs ? &pack<32, 2> : &unpack<32, 2>;
  case 64 * 8 + 4:
    return packs ? &pack<16, 4> : &unpack<16, 4>;
  case 128 * 8 + 2:
    return &copyPairs;
  case 128 * 8 + 4:
    return packs ? &packWords : &unpackWords;
  default:
    return nullptr;
  }
}
