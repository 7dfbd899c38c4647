// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Comparisons of integers and what follows from them; see IntegerLanes.inl for
// how it is included. There are "equal" and "less"; the rest are these with
// sources swapped or the answer inverted.
//
//===----------------------------------------------------------------------===//

template <typename T, bool Less>
inline LaneMask compareIntegers(Warp &warp, const Op &op, LaneMask active) {
  using Cell = CellOf<T>;
  const Cell *a = warp.lanes<Cell>(op.operand(0));
  const Cell *b = warp.lanes<Cell>(op.operand(1));
  LaneMask mask = 0;
  if (active == allLanes) {
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      mask |=
          LaneMask(Less ? T(a[lane]) < T(b[lane]) : T(a[lane]) == T(b[lane]))
          << lane;
  } else {
    for (LaneMask rest = active; rest; rest &= rest - 1) {
      unsigned lane = unsigned(__builtin_ctz(rest));
      mask |=
          LaneMask(Less ? T(a[lane]) < T(b[lane]) : T(a[lane]) == T(b[lane]))
          << lane;
    }
  }
  return op.immediate & IntegerInverted ? ~mask : mask;
}

inline LaneMask combineWith(Warp &warp, const Op &op, LaneMask mask) {
  unsigned logic = unsigned(op.immediate & IntegerLogic);
  if (!logic)
    return mask;
  LaneMask other = warp.predicate(op.operand(2));
  if (op.immediate & IntegerNegated)
    other = ~other;
  return Logic(logic) == Logic::And  ? mask & other
         : Logic(logic) == Logic::Or ? mask | other
                                     : mask ^ other;
}

template <typename T, bool Less>
inline void setPredicates(Warp &warp, const Op &op, LaneMask active) {
  LaneMask mask = compareIntegers<T, Less>(warp, op, active);
  LaneMask first = combineWith(warp, op, mask);
  if (op.numResults > 1)
    storePredicate(warp, op.result(1), active, combineWith(warp, op, ~mask));
  storePredicate(warp, op.result(0), active, first);
}

template <typename T, bool Less>
inline void setWord(Warp &warp, const Op &op, LaneMask active) {
  LaneMask mask =
      combineWith(warp, op, compareIntegers<T, Less>(warp, op, active));
  uint32_t isTrue = op.immediate & IntegerFloatOne ? 0x3f800000 : ~uint32_t(0);
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  forEachLane(active,
              [=](unsigned lane) { to[lane] = mask >> lane & 1 ? isTrue : 0; });
}

template <typename Cell>
inline void selectCells(Warp &warp, const Op &op, LaneMask active) {
  Cell *to = warp.lanes<Cell>(op.result(0));
  const Cell *a = warp.lanes<Cell>(op.operand(0));
  const Cell *b = warp.lanes<Cell>(op.operand(1));
  LaneMask mask = warp.predicate(op.operand(2));
  forEachLane(active, [=](unsigned lane) {
    to[lane] = mask & (LaneMask(1) << lane) ? a[lane] : b[lane];
  });
}

template <typename Cell>
inline Cell bySign(Cell a, Cell b, int32_t c) {
  return c >= 0 ? a : b;
}

// From a form to its handler. -------------------------------------------------

inline Handler compareHandler(Type type, bool less, bool isPredicate) {
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    using U = std::make_unsigned_t<T>;
    if (isPredicate)
      return less ? &setPredicates<T, true> : &setPredicates<U, false>;
    return less ? &setWord<T, true> : &setWord<U, false>;
  });
}
inline Handler selectHandler(bool isWide) {
  return isWide ? &selectCells<uint64_t> : &selectCells<uint32_t>;
}
inline Handler signHandler(bool isWide) {
  return isWide ? &Each<&bySign<uint64_t>>::run : &Each<&bySign<uint32_t>>::run;
}
