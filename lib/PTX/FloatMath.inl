// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One number at a time, without branches, so that loops over lanes become
// vectors: bit patterns, flushing, canonical NaNs, and the rounding of exact
// values to a narrower format in every mode. Included inside a namespace once
// for each set of CPU features; FSR_PTX_WIDE is 1 for AVX2, FMA and F16C.
//
// An inexact value that is to be rounded once more is held rounded to odd: its
// last bit says "and a bit more", so that the second rounding is the right one.
//
//===----------------------------------------------------------------------===//

inline float asFloat(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t bitsOf(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
inline double asDouble(uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}
inline uint64_t bitsOf(double value) {
  return __builtin_bit_cast(uint64_t, value);
}

/// Subnormals become zeros of their sign.
inline uint32_t flush32(uint32_t bits) {
  return bits & 0x7f800000 ? bits : bits & 0x80000000;
}
inline bool isNan32(uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }
inline uint32_t canonical32(float value) {
  return value == value ? bitsOf(value) : canonicalNan32;
}
/// `sum` is the nearest double to an exact value, `error` what is missing.
inline double toOdd(double sum, double error) {
  uint64_t bits = bitsOf(sum);
  bool isMore = error > 0, isLess = error < 0;
  bool isNegative = bits >> 63;
  bool isAway = isNegative ? isLess : isMore;
  uint64_t other = isAway ? bits + 1 : bits - 1;
  return asDouble(((isMore | isLess) & !(bits & 1)) ? other : bits);
}
inline float toOdd(float sum, float error) {
  uint32_t bits = bitsOf(sum);
  bool isMore = error > 0, isLess = error < 0;
  bool isNegative = bits >> 31;
  bool isAway = isNegative ? isLess : isMore;
  uint32_t other = isAway ? bits + 1 : bits - 1;
  return asFloat(((isMore | isLess) & !(bits & 1)) ? other : bits);
}

/// What `a + b` misses; both finite, no overflow.
template <typename T>
inline T sumError(T a, T b, T sum) {
  T fromB = sum - a;
  T fromA = sum - fromB;
  return (a - fromA) + (b - fromB);
}
/// The sum, to odd.
inline double addOdd(double a, double b) {
  double sum = a + b;
  return toOdd(sum, sumError(a, b, sum));
}
/// A double to single precision, to odd.
inline float narrowOdd(double value) {
  float narrow = float(value);
  double error = value - double(narrow);
  uint32_t bits = bitsOf(narrow);
  bool isMore = error > 0, isLess = error < 0;
  bool isAway = bits >> 31 ? isLess : isMore;
  uint32_t other = isAway ? bits + 1 : bits - 1;
  return asFloat(((isMore | isLess) & !(bits & 1)) ? other : bits);
}

/// `bits` is the nearest pattern to a value; `isAbove`, `isBelow`: it lies
/// above or below it. Gives the pattern of another mode.
template <Rounding Mode, typename Bits>
inline Bits redirect(Bits bits, bool isAbove, bool isBelow) {
  bool isNegative = bits >> (sizeof(Bits) * 8 - 1);
  bool isOut = isNegative ? isBelow : isAbove;
  bool isIn = isNegative ? isAbove : isBelow;
  if constexpr (Mode == Rounding::Zero)
    return bits - Bits(isOut);
  if constexpr (Mode == Rounding::Down)
    return bits + Bits(isNegative & isIn) - Bits(!isNegative & isOut);
  if constexpr (Mode == Rounding::Up)
    return bits + Bits(!isNegative & isIn) - Bits(isNegative & isOut);
  return bits;
}

/// A value (exact, or to odd) to f32. A NaN stays one.
template <Rounding Mode>
inline float narrow32(double value) {
  float near = float(value);
  if constexpr (Mode == Rounding::Nearest)
    return near;
  double back = near;
  return asFloat(redirect<Mode>(bitsOf(near), back > value, back < value));
}

/// What `.ftz` does to a value before it is rounded to f32: a result is flushed
/// where it would be below the least normal number if exponents had no end.
template <Rounding Mode>
inline double flushTiny(double value) {
  uint64_t sign = bitsOf(value) & (uint64_t(1) << 63);
  double size = asDouble(bitsOf(value) ^ sign);
  bool isTiny = size < 0x1p-126;
  if constexpr (Mode == Rounding::Nearest)
    isTiny = size < 0x1p-126 - 0x1p-151;
  if constexpr (Mode == Rounding::Down || Mode == Rounding::Up) {
    bool isOut = (Mode == Rounding::Down) == (sign != 0);
    isTiny = isOut ? size <= 0x1p-126 - 0x1p-150 : isTiny;
  }
  return isTiny ? asDouble(sign) : value;
}

inline float widenHalf(uint32_t half) {
#if FSR_PTX_WIDE
  return float(__builtin_bit_cast(_Float16, uint16_t(half)));
#else
  uint32_t magnitude = half & 0x7fff, sign = (half & 0x8000) << 16;
  uint32_t shifted = magnitude << 13;
  uint32_t normal = shifted + (112u << 23);
  uint32_t special = shifted | 0x7f800000;
  // Exact: a subnormal is its fraction times 2^-24.
  uint32_t small = bitsOf(float(int32_t(magnitude)) * 0x1p-24f);
  uint32_t bits = magnitude < 0x400    ? small
                  : magnitude < 0x7c00 ? normal
                                       : special;
  return asFloat(bits | sign);
#endif
}
inline float widenBrain(uint32_t brain) { return asFloat(brain << 16); }

/// A float (exact, or to odd) to f16; NaN is canonical.
template <Rounding Mode>
inline uint32_t narrowHalf(float value) {
  uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffff;
  uint32_t sign = (bits >> 16) & 0x8000;
#if FSR_PTX_WIDE
  uint32_t near =
      uint32_t(__builtin_bit_cast(uint16_t, _Float16(asFloat(magnitude))));
#else
  // Adding 1/2 leaves the fraction of a subnormal, rounded, in the low bits.
  uint32_t small = bitsOf(asFloat(magnitude) + 0.5f) - 0x3f000000;
  uint32_t normal =
      (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
  uint32_t near = magnitude < 0x38800000    ? small
                  : magnitude >= 0x47800000 ? 0x7c00
                                            : normal;
#endif
  if constexpr (Mode != Rounding::Nearest) {
    bool isNegative = sign;
    float back = widenHalf(near);
    bool isOut = back > asFloat(magnitude), isIn = back < asFloat(magnitude);
    bool wantsOut =
        Mode == Rounding::Zero ? false : (Mode == Rounding::Down) == isNegative;
    near = near + uint32_t(wantsOut & isIn) - uint32_t(!wantsOut & isOut);
  }
  return magnitude > 0x7f800000 ? canonicalNan16 : near | sign;
}

/// The same to bf16.
template <Rounding Mode>
inline uint32_t narrowBrain(float value) {
  uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffff;
  uint32_t rounded;
  if constexpr (Mode == Rounding::Nearest)
    rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  else if constexpr (Mode == Rounding::Zero)
    rounded = bits >> 16;
  else
    rounded =
        (bits + ((Mode == Rounding::Down) == bool(bits >> 31) ? 0xffff : 0)) >>
        16;
  return magnitude > 0x7f800000 ? canonicalNan16 : rounded;
}

/// To [+0, 1]; NaN gives +0.
inline uint32_t saturate32(uint32_t bits) {
  float value = asFloat(bits);
  return !(value > 0) ? 0 : value > 1 ? 0x3f800000 : bits;
}
inline uint64_t saturate64(uint64_t bits) {
  double value = asDouble(bits);
  return !(value > 0) ? 0 : value > 1 ? 0x3ff0000000000000 : bits;
}

/// The two formats of 16 bits. What is below `tiny` stays below the least
/// normal number when it is rounded with exponents that have no end.
struct Half {
  static constexpr uint32_t infinity = 0x7c00, one = 0x3c00;
  static constexpr float tiny = 0x1p-14f - 0x1p-26f;
  static float widen(uint32_t bits) { return widenHalf(bits); }
  template <Rounding Mode>
  static uint32_t narrow(float value) {
    return narrowHalf<Mode>(value);
  }
};
struct Brain {
  static constexpr uint32_t infinity = 0x7f80, one = 0x3f80;
  static constexpr float tiny = 0x1p-126f - 0x1p-135f;
  static float widen(uint32_t bits) { return widenBrain(bits); }
  template <Rounding Mode>
  static uint32_t narrow(float value) {
    return narrowBrain<Mode>(value);
  }
};
template <typename Format>
inline uint32_t flush16(uint32_t bits) {
  return bits & Format::infinity ? bits : bits & 0x8000;
}
/// The same to a value that is to be rounded.
template <typename Format>
inline float flushTiny16(float value) {
  uint32_t sign = bitsOf(value) & 0x80000000;
  return asFloat(bitsOf(value) ^ sign) < Format::tiny ? asFloat(sign) : value;
}
template <typename Format>
inline uint32_t saturate16(uint32_t bits) {
  // Patterns of positive numbers are in the order of their values.
  return bits > Format::infinity ? 0 : bits > Format::one ? Format::one : bits;
}
/// Negative becomes +0, a NaN the canonical one.
inline uint32_t relu16(uint32_t bits) { return bits & 0x8000 ? 0 : bits; }

/// Two numbers of 16 bits in one cell.
template <typename F>
struct Packed16 {
  using Cell = uint32_t;
  static constexpr unsigned arity = F::arity;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               uint32_t c) {
    uint32_t low = F::apply(a & 0xffff, b & 0xffff, c & 0xffff);
    uint32_t high = F::apply(a >> 16, b >> 16, c >> 16);
    return low | high << 16;
  }
};
/// Two numbers of 32 bits in one cell.
template <typename F>
struct Packed32 {
  using Cell = uint64_t;
  static constexpr unsigned arity = F::arity;
  [[gnu::always_inline]] static uint64_t apply(uint64_t a, uint64_t b,
                                               uint64_t c) {
    uint32_t low = F::apply(uint32_t(a), uint32_t(b), uint32_t(c));
    uint32_t high =
        F::apply(uint32_t(a >> 32), uint32_t(b >> 32), uint32_t(c >> 32));
    return low | uint64_t(high) << 32;
  }
};

/// A handler of an element function of up to three sources. Unrolled before it
/// is made of vectors, the loop would stay scalar.
template <typename F>
void runLanes(Warp &warp, const Op &op, LaneMask active) {
  using Cell = typename F::Cell;
  Cell *to = warp.lanes<Cell>(op.result(0));
  const Cell *a = warp.lanes<Cell>(op.operand(0));
  const Cell *b = a, *c = a;
  if constexpr (F::arity > 1)
    b = warp.lanes<Cell>(op.operand(1));
  if constexpr (F::arity > 2)
    c = warp.lanes<Cell>(op.operand(2));
  if (active == allLanes) {
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      to[lane] = F::apply(a[lane], b[lane], c[lane]);
    return;
  }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] = F::apply(a[lane], b[lane], c[lane]);
  }
}
/// The same for a function that is too long for vectors.
template <typename F>
void runScalars(Warp &warp, const Op &op, LaneMask active) {
  using Cell = typename F::Cell;
  Cell *to = warp.lanes<Cell>(op.result(0));
  const Cell *a = warp.lanes<Cell>(op.operand(0));
  const Cell *b = F::arity > 1 ? warp.lanes<Cell>(op.operand(1)) : a;
  const Cell *c = F::arity > 2 ? warp.lanes<Cell>(op.operand(2)) : a;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] = F::apply(a[lane], b[lane], c[lane]);
  }
}
