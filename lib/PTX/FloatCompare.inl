// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Comparisons and what follows from them; see FloatMath.inl for how it is
// included. A comparison is a set of relations (less, equal, greater,
// unordered) that make it true. Over a warp it gives a mask; predicates, masks
// of bits or numbers are made from that.
//
//===----------------------------------------------------------------------===//

/// One type as it is compared.
template <bool Ftz>
struct ComparedSingle {
  using Cell = uint32_t;
  static float load(uint32_t bits) {
    return asFloat(Ftz ? flush32(bits) : bits);
  }
};
struct ComparedDouble {
  using Cell = uint64_t;
  static double load(uint64_t bits) { return asDouble(bits); }
};
/// `High`: of a pair.
template <typename Format, bool Ftz, bool High>
struct ComparedShort {
  using Cell = uint32_t;
  static float load(uint32_t bits) {
    bits = High ? bits >> 16 : bits & 0xffff;
    return Format::widen(Ftz ? flush16<Format>(bits) : bits);
  }
};

template <typename L, unsigned Relations>
LaneMask compareLanes(Warp &warp, const Op &op, LaneMask active) {
  using Cell = typename L::Cell;
  const Cell *a = warp.lanes<Cell>(op.operand(0));
  const Cell *b = warp.lanes<Cell>(op.operand(1));
  auto holds = [](Cell x, Cell y) __attribute__((always_inline)) {
    auto left = L::load(x), right = L::load(y);
    bool is = false;
    if (Relations & RelationLess)
      is |= left < right;
    if (Relations & RelationEqual)
      is |= left == right;
    if (Relations & RelationGreater)
      is |= left > right;
    if (Relations & RelationUnordered)
      is |= __builtin_isunordered(left, right);
    return is;
  };
  LaneMask mask = 0;
  if (active == allLanes) {
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      mask |= LaneMask(holds(a[lane], b[lane])) << lane;
    return mask;
  }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    mask |= LaneMask(holds(a[lane], b[lane])) << lane;
  }
  return mask;
}

/// `immediate` of an op: see CompareFlags.
inline LaneMask combine(Warp &warp, const Op &op, LaneMask mask) {
  unsigned logic = unsigned(op.immediate & CompareLogic);
  if (!logic)
    return mask;
  LaneMask third = warp.predicate(op.operand(2));
  if (op.immediate & CompareNegated)
    third = ~third;
  return logic == 1 ? mask & third : logic == 2 ? mask | third : mask ^ third;
}
inline void store(Warp &warp, Slot slot, LaneMask active, LaneMask mask) {
  LaneMask &to = warp.predicate(slot);
  to = (to & ~active) | (mask & active);
}

template <typename L, unsigned Relations>
void setPredicate(Warp &warp, const Op &op, LaneMask active) {
  LaneMask mask = compareLanes<L, Relations>(warp, op, active);
  LaneMask first = combine(warp, op, mask);
  if (op.numResults > 1) {
    LaneMask second = combine(warp, op, ~mask);
    store(warp, op.result(1), active, second);
  }
  store(warp, op.result(0), active, first);
}
/// Of a pair: low and high.
template <typename Low, typename High, unsigned Relations>
void setPredicates(Warp &warp, const Op &op, LaneMask active) {
  LaneMask low =
      combine(warp, op, compareLanes<Low, Relations>(warp, op, active));
  LaneMask high =
      combine(warp, op, compareLanes<High, Relations>(warp, op, active));
  store(warp, op.result(0), active, low);
  store(warp, op.result(1), active, high);
}

inline void spread(Warp &warp, const Op &op, LaneMask active, LaneMask low,
                   LaneMask high) {
  uint32_t lowBits = uint32_t(op.immediate >> 32) & 0xffff;
  uint32_t allBits = uint32_t(op.immediate >> 32);
  bool isPair = op.immediate & ComparePair;
  uint32_t ofLow = isPair ? lowBits : allBits;
  uint32_t ofHigh = isPair ? allBits & 0xffff0000 : 0;
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  if (active == allLanes) {
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      to[lane] = (low & (LaneMask(1) << lane) ? ofLow : 0) |
                 (high & (LaneMask(1) << lane) ? ofHigh : 0);
    return;
  }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] =
        ((low >> lane) & 1 ? ofLow : 0) | ((high >> lane) & 1 ? ofHigh : 0);
  }
}
template <typename L, unsigned Relations>
void setNumber(Warp &warp, const Op &op, LaneMask active) {
  LaneMask mask =
      combine(warp, op, compareLanes<L, Relations>(warp, op, active));
  spread(warp, op, active, mask, 0);
}
template <typename Low, typename High, unsigned Relations>
void setNumbers(Warp &warp, const Op &op, LaneMask active) {
  LaneMask low =
      combine(warp, op, compareLanes<Low, Relations>(warp, op, active));
  LaneMask high =
      combine(warp, op, compareLanes<High, Relations>(warp, op, active));
  spread(warp, op, active, low, high);
}

template <typename Cell>
void selectByPredicate(Warp &warp, const Op &op, LaneMask active) {
  Cell *to = warp.lanes<Cell>(op.result(0));
  const Cell *a = warp.lanes<Cell>(op.operand(0));
  const Cell *b = warp.lanes<Cell>(op.operand(1));
  LaneMask mask = warp.predicate(op.operand(2));
  if (op.immediate & CompareNegated)
    mask = ~mask;
  if (active == allLanes) {
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      to[lane] = mask & (LaneMask(1) << lane) ? a[lane] : b[lane];
    return;
  }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] = mask >> lane & 1 ? a[lane] : b[lane];
  }
}

/// The first where the third operand is not below zero.
template <typename Cell, bool IsFloat, bool Ftz>
void selectBySign(Warp &warp, const Op &op, LaneMask active) {
  Cell *to = warp.lanes<Cell>(op.result(0));
  const Cell *a = warp.lanes<Cell>(op.operand(0));
  const Cell *b = warp.lanes<Cell>(op.operand(1));
  const uint32_t *c = warp.lanes<uint32_t>(op.operand(2));
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    bool takesFirst = IsFloat ? asFloat(Ftz ? flush32(c[lane]) : c[lane]) >= 0
                              : int32_t(c[lane]) >= 0;
    to[lane] = takesFirst ? a[lane] : b[lane];
  }
}

template <typename Cell, Cell Infinity>
void testLanes(Warp &warp, const Op &op, LaneMask active) {
  const Cell *a = warp.lanes<Cell>(op.operand(0));
  constexpr Cell magnitude = Cell(~Cell(0)) >> 1;
  constexpr Cell least = Infinity & -Infinity; // The least normal number.
  LaneMask mask = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    Cell size = a[lane] & magnitude;
    bool is = false;
    switch (Test(op.immediate)) {
    case Test::None:
      break;
    case Test::Finite:
      is = size < Infinity;
      break;
    case Test::Infinite:
      is = size == Infinity;
      break;
    case Test::Number:
      is = size <= Infinity;
      break;
    case Test::NotANumber:
      is = size > Infinity;
      break;
    case Test::Normal:
      is = !size || (size >= least && size < Infinity); // Zeros too.
      break;
    case Test::Subnormal:
      is = size < least && size;
      break;
    }
    mask |= LaneMask(is) << lane;
  }
  store(warp, op.result(0), active, mask);
}

// From a form to its handler. -------------------------------------------------

template <typename L, unsigned Relations>
Handler compareOne(bool isPredicate) {
  return isPredicate ? &setPredicate<L, Relations> : &setNumber<L, Relations>;
}
template <typename Format, bool Ftz, unsigned Relations>
Handler compareShort(bool isPair, bool isPredicate) {
  using Low = ComparedShort<Format, Ftz, false>;
  using High = ComparedShort<Format, Ftz, true>;
  if (isPair)
    return isPredicate ? &setPredicates<Low, High, Relations>
                       : &setNumbers<Low, High, Relations>;
  return compareOne<Low, Relations>(isPredicate);
}
template <unsigned Relations>
Handler compareOf(Type type, bool ftz, bool isPredicate) {
  bool isPair = type == Type::F16x2 || type == Type::BF16x2;
  switch (type) {
  case Type::F64:
    return compareOne<ComparedDouble, Relations>(isPredicate);
  case Type::F32:
    return ftz ? compareOne<ComparedSingle<true>, Relations>(isPredicate)
               : compareOne<ComparedSingle<false>, Relations>(isPredicate);
  case Type::F16:
  case Type::F16x2:
    return ftz ? compareShort<Half, true, Relations>(isPair, isPredicate)
               : compareShort<Half, false, Relations>(isPair, isPredicate);
  default:
    return compareShort<Brain, false, Relations>(isPair, isPredicate);
  }
}

inline Handler compareHandler(Compare compare, Type type, bool ftz,
                              bool isPredicate) {
  constexpr unsigned L = RelationLess, E = RelationEqual, G = RelationGreater,
                     U = RelationUnordered;
  switch (compare) {
  case Compare::None:
    return nullptr;
  case Compare::Eq:
    return compareOf<E>(type, ftz, isPredicate);
  case Compare::Ne:
    return compareOf<L | G>(type, ftz, isPredicate);
  case Compare::Lt:
    return compareOf<L>(type, ftz, isPredicate);
  case Compare::Le:
    return compareOf<L | E>(type, ftz, isPredicate);
  case Compare::Gt:
    return compareOf<G>(type, ftz, isPredicate);
  case Compare::Ge:
    return compareOf<G | E>(type, ftz, isPredicate);
  case Compare::Equ:
    return compareOf<E | U>(type, ftz, isPredicate);
  case Compare::Neu:
    return compareOf<L | G | U>(type, ftz, isPredicate);
  case Compare::Ltu:
    return compareOf<L | U>(type, ftz, isPredicate);
  case Compare::Leu:
    return compareOf<L | E | U>(type, ftz, isPredicate);
  case Compare::Gtu:
    return compareOf<G | U>(type, ftz, isPredicate);
  case Compare::Geu:
    return compareOf<G | E | U>(type, ftz, isPredicate);
  case Compare::Num:
    return compareOf<L | E | G>(type, ftz, isPredicate);
  case Compare::Nan:
    return compareOf<U>(type, ftz, isPredicate);
  }
  __builtin_unreachable();
}

inline Handler selectHandler(bool isWide) {
  return isWide ? &selectByPredicate<uint64_t> : &selectByPredicate<uint32_t>;
}
inline Handler signHandler(bool isWide, bool byFloat, bool ftz) {
  if (isWide)
    return !byFloat ? &selectBySign<uint64_t, false, false>
           : ftz    ? &selectBySign<uint64_t, true, true>
                    : &selectBySign<uint64_t, true, false>;
  return !byFloat ? &selectBySign<uint32_t, false, false>
         : ftz    ? &selectBySign<uint32_t, true, true>
                  : &selectBySign<uint32_t, true, false>;
}
inline Handler testHandler(bool isWide) {
  return isWide ? &testLanes<uint64_t, 0x7ff0000000000000>
                : &testLanes<uint32_t, 0x7f800000>;
}
