// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Bits: logic, shifts, fields, bytes; see IntegerLanes.inl for how it is
// included. Without branches where it can be, so that loops over lanes become
// vectors.
//
//===----------------------------------------------------------------------===//

template <typename T>
inline T bitAnd(T a, T b) {
  return a & b;
}
template <typename T>
inline T bitOr(T a, T b) {
  return a | b;
}
template <typename T>
inline T bitXor(T a, T b) {
  return a ^ b;
}
template <typename T>
inline T bitNot(T a) {
  return T(~a);
}
/// C's `!`.
template <typename T>
inline T logicNot(T a) {
  return a == 0;
}

/// Counts from the width on shift all out.
template <typename T>
inline T shiftLeft(T a, uint32_t count) {
  constexpr unsigned width = sizeof(T) * 8;
  T shifted = T(CellOf<T>(a) << (count & (width - 1)));
  return count < width ? shifted : T(0);
}
template <typename T>
inline T shiftRight(T a, uint32_t count) {
  constexpr unsigned width = sizeof(T) * 8;
  if (std::is_signed_v<T>)
    return T(a >> (count < width ? count : width - 1));
  T shifted = T(a >> (count & (width - 1)));
  return count < width ? shifted : T(0);
}

/// Of the 64 bits of which `low` and `high` are the halves: the upper or the
/// lower word, after a shift.
template <bool Left, bool Wraps>
inline uint32_t shiftFunnel(uint32_t low, uint32_t high, uint32_t count) {
  uint64_t both = uint64_t(high) << 32 | low;
  count = Wraps ? count & 31 : count < 32 ? count : 32;
  return uint32_t(Left ? both << count >> 32 : both >> count);
}

template <typename T>
inline T extractField(T a, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned width = sizeof(T) * 8;
  position &= 0xff;
  length &= 0xff;
  if (length == 0)
    return 0;
  unsigned last = position + length - 1;
  last = last < width ? last : width - 1;
  bool sign = std::is_signed_v<T> && (U(a) >> last & 1);
  // The field's bits that there are; the rest is the sign.
  unsigned there = position < width ? last + 1 - position : 0;
  if (there == 0)
    return sign ? T(-1) : T(0);
  U mask = U(~U(0)) >> (width - there);
  U bits = (U(a) >> position) & mask;
  return T(sign ? bits | U(~mask) : bits);
}
template <typename T>
inline T insertField(T a, T b, uint32_t position, uint32_t length) {
  constexpr unsigned width = sizeof(T) * 8;
  position &= 0xff;
  length &= 0xff;
  if (length == 0 || position >= width)
    return b;
  unsigned there = length < width - position ? length : width - position;
  T mask = T(~T(0)) >> (width - there) << position;
  return T((b & ~mask) | (a << position & mask));
}

inline uint32_t countOnes(uint32_t a) {
  return uint32_t(__builtin_popcount(a));
}
inline uint32_t countOnes(uint64_t a) {
  return uint32_t(__builtin_popcountll(a));
}
inline uint32_t countZeros(uint32_t a) {
  return a ? uint32_t(__builtin_clz(a)) : 32;
}
inline uint32_t countZeros(uint64_t a) {
  return a ? uint32_t(__builtin_clzll(a)) : 64;
}
template <typename T>
inline uint32_t ones(T a) {
  return countOnes(a);
}
template <typename T>
inline uint32_t leadingZeros(T a) {
  return countZeros(a);
}
inline uint32_t reverse32(uint32_t a) { return __builtin_bitreverse32(a); }
inline uint64_t reverse64(uint64_t a) { return __builtin_bitreverse64(a); }

/// The uppermost bit that is not the sign; `ShiftAmount`: how far it is from
/// the top.
template <typename T, bool ShiftAmount>
inline uint32_t findTop(T a) {
  using U = std::make_unsigned_t<T>;
  U bits = U(a < 0 ? T(~a) : a);
  if (!bits)
    return ~uint32_t(0);
  uint32_t zeros = countZeros(bits);
  return ShiftAmount ? zeros : sizeof(T) * 8 - 1 - zeros;
}

template <bool Clamps>
inline uint32_t makeMask(uint32_t position, uint32_t width) {
  bool isOut = Clamps && position >= 32;
  bool isWide = Clamps && width >= 32;
  unsigned from = position & 31, count = width & 31, end = from + count;
  uint32_t above = isOut ? 0 : ~uint32_t(0) << from;
  uint32_t beyond = end >= 32 || isOut || isWide ? 0
                    : count == 0                 ? ~uint32_t(0)
                                                 : ~uint32_t(0) << end;
  return above & ~beyond;
}

/// The lower `width` bits, with their sign where T has one.
template <typename T, bool Clamps>
inline T extend(T a, uint32_t width) {
  unsigned count = width & 31;
  bool isWide = Clamps && width >= 32;
  uint32_t mask = isWide ? 0 : ~uint32_t(0) << count;
  bool sign = std::is_signed_v<T> && count != 0 && !isWide &&
              (uint32_t(a) >> ((count - 1) & 31) & 1);
  return T((uint32_t(a) & ~mask) | (sign ? mask : 0));
}

/// The nth set bit from `base` on, upwards or, below zero, downwards.
inline uint32_t findNth(uint32_t mask, uint32_t base, int32_t offset) {
  constexpr uint32_t none = ~uint32_t(0);
  if (base > 31)
    return none;
  if (offset == 0)
    return mask >> base & 1 ? base : none;
  if (offset == INT32_MIN) // What H200s give; it has no magnitude.
    return 0;
  int step = offset > 0 ? 1 : -1;
  uint32_t count = offset > 0 ? uint32_t(offset) : 0 - uint32_t(offset);
  for (int at = int(base); at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && --count == 0)
      return uint32_t(at);
  return none;
}

/// Its loop makes no vectors.
inline void findNthOfLanes(Warp &warp, const Op &op, LaneMask active) {
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  const uint32_t *mask = warp.lanes<uint32_t>(op.operand(0));
  const uint32_t *base = warp.lanes<uint32_t>(op.operand(1));
  const uint32_t *offset = warp.lanes<uint32_t>(op.operand(2));
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] = findNth(mask[lane], base[lane], int32_t(offset[lane]));
  }
}

/// One part of `Width` bits of two words, as an instruction for video takes it.
template <unsigned Width, bool Signed>
inline int32_t combineParts(PartsOp what, int32_t x, int32_t y) {
  switch (what) {
  case PartsOp::Add:
    return x + y;
  case PartsOp::Sub:
    return x - y;
  case PartsOp::Average:
    return x + y >= 0 ? (x + y + 1) >> 1 : (x + y) >> 1;
  case PartsOp::Difference:
    return x > y ? x - y : y - x;
  case PartsOp::Min:
    return x < y ? x : y;
  case PartsOp::Max:
    return x > y ? x : y;
  case PartsOp::Equal:
    return x == y;
  case PartsOp::NotEqual:
    return x != y;
  case PartsOp::Less:
    return x < y;
  case PartsOp::LessOrEqual:
    return x <= y;
  case PartsOp::Greater:
    return x > y;
  case PartsOp::GreaterOrEqual:
    return x >= y;
  }
  return 0;
}

/// `immediate`: a PartsOp and flags. The third source is added to, or unused.
template <unsigned Width, bool Signed>
void combineWords(Warp &warp, const Op &op, LaneMask active) {
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  const uint32_t *a = warp.lanes<uint32_t>(op.operand(0));
  const uint32_t *b = warp.lanes<uint32_t>(op.operand(1));
  const uint32_t *c = warp.lanes<uint32_t>(op.operand(2));
  PartsOp what = PartsOp(op.immediate & PartsWhat);
  bool saturates = op.immediate & PartsSaturate, adds = op.immediate & PartsAdd;
  constexpr int32_t mask = (1 << Width) - 1;
  constexpr int32_t most = Signed ? mask >> 1 : mask;
  constexpr int32_t least = Signed ? -most - 1 : 0;
  // Which loop this is depends on the instruction: it makes no vectors.
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    uint32_t sum = c[lane], packed = 0;
    for (unsigned at = 0; at < 32; at += Width) {
      int32_t x = int32_t(a[lane] >> at) & mask;
      int32_t y = int32_t(b[lane] >> at) & mask;
      if (Signed) {
        x = x > most ? x - mask - 1 : x;
        y = y > most ? y - mask - 1 : y;
      }
      int32_t part = combineParts<Width, Signed>(what, x, y);
      if (saturates)
        part = part > most ? most : part < least ? least : part;
      sum += uint32_t(part);
      packed |= uint32_t(part & mask) << at;
    }
    to[lane] = adds ? sum : packed;
  }
}

/// The bytes of b and a that the nibbles of `selector` name; their upper bit
/// takes the byte's sign alone.
inline uint32_t pickBytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t both = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t nibble = selector >> (4 * i);
    uint32_t byte = uint32_t(both >> (8 * (nibble & 7))) & 0xff;
    byte = nibble & 8 ? (byte & 0x80 ? 0xff : 0) : byte;
    result |= byte << (8 * i);
  }
  return result;
}
/// `immediate`: the four selectors of a mode, of which the third source takes
/// one.
inline void permuteByMode(Warp &warp, const Op &op, LaneMask active) {
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  const uint32_t *a = warp.lanes<uint32_t>(op.operand(0));
  const uint32_t *b = warp.lanes<uint32_t>(op.operand(1));
  const uint32_t *c = warp.lanes<uint32_t>(op.operand(2));
  uint64_t selectors = op.immediate;
  forEachLane(active, [=](unsigned lane) {
    to[lane] = pickBytes(a[lane], b[lane],
                         uint32_t(selectors >> (16 * (c[lane] & 3))));
  });
}

/// `immediate`: for each byte of the result, lowest first, 16 bits: how far to
/// shift, and 64 where it is of the second source. No signs.
inline void permuteFixed(Warp &warp, const Op &op, LaneMask active) {
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  const uint32_t *from[4];
  unsigned by[4];
  for (unsigned i = 0; i < 4; ++i) {
    unsigned one = unsigned(op.immediate >> (16 * i));
    from[i] = warp.lanes<uint32_t>(op.operand(one & 64 ? 1 : 0));
    by[i] = one & 31;
  }
  const uint32_t *a = from[0], *b = from[1], *c = from[2], *d = from[3];
  unsigned byA = by[0], byB = by[1], byC = by[2], byD = by[3];
  forEachLane(active, [=](unsigned lane) {
    to[lane] = (a[lane] >> byA & 0xff) | (b[lane] >> byB & 0xff) << 8 |
               (c[lane] >> byC & 0xff) << 16 | (d[lane] >> byD & 0xff) << 24;
  });
}

/// `immediate`: the table, and above it a `Logic` for the predicate that is the
/// second result; its source is the fourth.
inline void lookUp(Warp &warp, const Op &op, LaneMask active) {
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  const uint32_t *a = warp.lanes<uint32_t>(op.operand(0));
  const uint32_t *b = warp.lanes<uint32_t>(op.operand(1));
  const uint32_t *c = warp.lanes<uint32_t>(op.operand(2));
  // Each bit of the table as a word, those of c set as differences.
  uint32_t without[4], differs[4];
  for (unsigned i = 0; i < 4; ++i) {
    without[i] = 0 - uint32_t(op.immediate >> (2 * i) & 1);
    differs[i] = without[i] ^ (0 - uint32_t(op.immediate >> (2 * i + 1) & 1));
  }
  uint32_t w0 = without[0], w1 = without[1], w2 = without[2], w3 = without[3];
  uint32_t d0 = differs[0], d1 = differs[1], d2 = differs[2], d3 = differs[3];
  forEachLane(active, [=](unsigned lane) {
    uint32_t x = a[lane], y = b[lane], z = c[lane];
    uint32_t f0 = w0 ^ (z & d0), f1 = w1 ^ (z & d1);
    uint32_t f2 = w2 ^ (z & d2), f3 = w3 ^ (z & d3);
    uint32_t low = f0 ^ (y & (f0 ^ f1)), high = f2 ^ (y & (f2 ^ f3));
    to[lane] = low ^ (x & (low ^ high));
  });
  if (op.numResults < 2)
    return;
  LaneMask mask = 0, other = warp.predicate(op.operand(3));
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    mask |= LaneMask(to[lane] != 0) << lane;
  mask = Logic(op.immediate >> 8) == Logic::And ? mask & other : mask | other;
  storePredicate(warp, op.result(1), active, mask);
}

/// `Which`: 0 and, 1 or, 2 xor, 3 not.
template <unsigned Which>
void predicateLogic(Warp &warp, const Op &op, LaneMask active) {
  LaneMask a = warp.predicate(op.operand(0));
  LaneMask b = Which < 3 ? warp.predicate(op.operand(1)) : 0;
  storePredicate(warp, op.result(0), active,
                 Which == 0   ? a & b
                 : Which == 1 ? a | b
                 : Which == 2 ? a ^ b
                              : ~a);
}

// From a form to its handler. -------------------------------------------------

/// `which`: 0 and, 1 or, 2 xor, 3 not, 4 cnot.
inline Handler logicHandler(Type type, unsigned which) {
  if (type == Type::Pred)
    return which == 0   ? &predicateLogic<0>
           : which == 1 ? &predicateLogic<1>
           : which == 2 ? &predicateLogic<2>
           : which == 3 ? &predicateLogic<3>
                        : nullptr;
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    if constexpr (!std::is_signed_v<T>)
      return which == 0   ? &Each<&bitAnd<T>>::run
             : which == 1 ? &Each<&bitOr<T>>::run
             : which == 2 ? &Each<&bitXor<T>>::run
             : which == 3 ? &Each<&bitNot<T>>::run
                          : &Each<&logicNot<T>>::run;
    return nullptr;
  });
}
inline Handler tableHandler() { return &lookUp; }
inline Handler shiftHandler(Type type, bool left) {
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    if (!left)
      return &Each<&shiftRight<T>>::run;
    return &Each<&shiftLeft<std::make_unsigned_t<T>>>::run;
  });
}
inline Handler funnelHandler(bool left, bool wraps) {
  if (left)
    return wraps ? &Each<&shiftFunnel<true, true>>::run
                 : &Each<&shiftFunnel<true, false>>::run;
  return wraps ? &Each<&shiftFunnel<false, true>>::run
               : &Each<&shiftFunnel<false, false>>::run;
}
inline Handler fieldHandler(Type type, bool inserts) {
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    if constexpr (sizeof(T) >= 4)
      return inserts ? &Each<&insertField<std::make_unsigned_t<T>>>::run
                     : &Each<&extractField<T>>::run;
    return nullptr;
  });
}
/// `which`: 0 popc, 1 clz, 2 brev.
inline Handler countHandler(bool isWide, unsigned which) {
  if (which == 2)
    return isWide ? &Each<&reverse64>::run : &Each<&reverse32>::run;
  if (which == 1)
    return isWide ? &Each<&leadingZeros<uint64_t>>::run
                  : &Each<&leadingZeros<uint32_t>>::run;
  return isWide ? &Each<&ones<uint64_t>>::run : &Each<&ones<uint32_t>>::run;
}
inline Handler findHandler(Type type, bool shiftAmount) {
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    if constexpr (sizeof(T) >= 4)
      return shiftAmount ? &Each<&findTop<T, true>>::run
                         : &Each<&findTop<T, false>>::run;
    return nullptr;
  });
}
inline Handler maskHandler(bool clamps) {
  return clamps ? &Each<&makeMask<true>>::run : &Each<&makeMask<false>>::run;
}
inline Handler extendHandler(bool isSigned, bool clamps) {
  if (isSigned)
    return clamps ? &Each<&extend<int32_t, true>>::run
                  : &Each<&extend<int32_t, false>>::run;
  return clamps ? &Each<&extend<uint32_t, true>>::run
                : &Each<&extend<uint32_t, false>>::run;
}
inline Handler partsHandler(unsigned width, bool isSigned) {
  if (width == 8)
    return isSigned ? &combineWords<8, true> : &combineWords<8, false>;
  return isSigned ? &combineWords<16, true> : &combineWords<16, false>;
}
inline Handler nthHandler() { return &findNthOfLanes; }
/// `which`: 0 by the nibbles of a register, 1 by a mode, 2 by fixed places.
inline Handler permuteHandler(unsigned which) {
  return which == 0   ? &Each<&pickBytes>::run
         : which == 1 ? &permuteByMode
                      : &permuteFixed;
}
