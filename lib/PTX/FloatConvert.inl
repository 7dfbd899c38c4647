// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Conversions between all numbers; see FloatMath.inl for how it is included.
//
// A number that is read is a float, a double or an integer of its own type,
// exactly; storing rounds it once. What does not change how lanes are computed
// (flushing, saturation, the width of the result's register) is data of the
// instruction.
//
//===----------------------------------------------------------------------===//

/// What `Op::immediate` says, unpacked before the loop.
struct ConvertWays {
  explicit ConvertWays(uint64_t immediate)
      : flushKeep(immediate & ConvertFtz ? 0x80000000 : 0xffffffff),
        saturates(immediate & ConvertSat), relus(immediate & ConvertRelu),
        isFinite(immediate & ConvertFinite),
        width(unsigned(immediate >> 32) & 0xff) {}

  uint32_t flush(uint32_t bits) const {
    return bits & 0x7f800000 ? bits : bits & flushKeep;
  }

  bool flushes() const { return flushKeep == 0x80000000; }

  uint32_t flushKeep;
  bool saturates, relus, isFinite;
  unsigned width; ///< Of the result's register.
};

// How each type is read: `Value` holds all its numbers.
template <typename T>
struct Integer {
  static constexpr bool isInteger = true, isDouble = false;
  static constexpr bool isWide = sizeof(T) == 8;
  using Number = T;
  using Cell = std::conditional_t<isWide, uint64_t, uint32_t>;
  static T load(Cell cell, const ConvertWays &) { return T(cell); }
};
struct Float16 {
  static constexpr bool isInteger = false, isDouble = false, isWide = false;
  using Cell = uint32_t;
  static constexpr uint32_t quietNan = 0x7e00, fraction = 10;
  static float load(uint32_t cell, const ConvertWays &) {
    return widenHalf(cell & 0xffff);
  }
  template <Rounding Mode>
  static uint32_t store(float value, const ConvertWays &ways) {
    return finish(narrowHalf<Mode>(value), ways);
  }
  static uint32_t finish(uint32_t bits, const ConvertWays &ways) {
    bits = ways.isFinite && (bits & 0x7fff) == 0x7c00 ? bits - 1 : bits;
    bits = ways.saturates ? saturate16<Half>(bits) : bits;
    return ways.relus ? relu16(bits) : bits;
  }
};
struct BFloat16 {
  static constexpr bool isInteger = false, isDouble = false, isWide = false;
  using Cell = uint32_t;
  static constexpr uint32_t quietNan = 0x7fc0, fraction = 7;
  static float load(uint32_t cell, const ConvertWays &) {
    return widenBrain(cell & 0xffff);
  }
  template <Rounding Mode>
  static uint32_t store(float value, const ConvertWays &ways) {
    return finish(narrowBrain<Mode>(value), ways);
  }
  static uint32_t finish(uint32_t bits, const ConvertWays &ways) {
    bits = ways.isFinite && (bits & 0x7fff) == 0x7f80 ? bits - 1 : bits;
    bits = ways.saturates ? saturate16<Brain>(bits) : bits;
    return ways.relus ? relu16(bits) : bits;
  }
};
struct Float32 {
  static constexpr bool isInteger = false, isDouble = false, isWide = false;
  using Cell = uint32_t;
  static float load(uint32_t cell, const ConvertWays &ways) {
    return asFloat(ways.flush(cell));
  }
  template <Rounding Mode>
  static uint32_t store(float value, const ConvertWays &ways) {
    return finish(canonical32(value), ways);
  }
  /// A value that is not rounded: its NaN stays as it is, but for `.ftz`.
  static uint32_t keep(float value, const ConvertWays &ways) {
    return finish(ways.flushes() ? canonical32(value) : bitsOf(value), ways);
  }
  static uint32_t finish(uint32_t bits, const ConvertWays &ways) {
    bits = ways.flush(bits);
    return ways.saturates ? saturate32(bits) : bits;
  }
};
struct Float64 {
  static constexpr bool isInteger = false, isDouble = true, isWide = true;
  using Cell = uint64_t;
  static double load(uint64_t cell, const ConvertWays &) {
    return asDouble(cell);
  }
  template <Rounding Mode>
  static uint64_t store(double value, const ConvertWays &ways) {
    // A NaN keeps its payload.
    uint64_t bits =
        value == value ? bitsOf(value) : propagatedNan64(bitsOf(value));
    return ways.saturates ? saturate64(bits) : bits;
  }
  /// Of the same type, not rounded: a NaN stays as it is.
  static uint64_t keep(double value, const ConvertWays &ways) {
    return ways.saturates ? saturate64(bitsOf(value)) : bitsOf(value);
  }
};

template <Rounding Mode, typename T>
inline T toIntegral(T value) {
  if constexpr (Mode == Rounding::Nearest)
    return __builtin_elementwise_rint(value);
  if constexpr (Mode == Rounding::Zero)
    return __builtin_elementwise_trunc(value);
  if constexpr (Mode == Rounding::Down)
    return __builtin_elementwise_floor(value);
  return __builtin_elementwise_ceil(value);
}

/// An integer as a double rounded to odd: its halves are exact.
template <typename T>
inline double integerOdd(T value) {
  if constexpr (sizeof(T) < 8) {
    return double(value);
  } else {
    using High = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;
    double high = double(High(value >> 32)) * 0x1p32;
    return addOdd(high, double(uint32_t(value)));
  }
}
template <Rounding Mode, typename T>
inline double integerToDouble(T value) {
  if constexpr (sizeof(T) < 8 || Mode == Rounding::Nearest) {
    return double(value);
  } else {
    using High = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;
    double high = double(High(value >> 32)) * 0x1p32;
    double low = double(uint32_t(value));
    double sum = high + low, error = sumError(high, low, sum);
    return asDouble(redirect<Mode>(bitsOf(sum), error < 0, error > 0));
  }
}

/// A whole number within an integer's range; what lies outside is clamped. A
/// NaN becomes `nan`.
template <typename T>
inline T clampTo(double value, T nan) {
  if constexpr (sizeof(T) < 8) {
    constexpr T least =
        std::is_signed_v<T> ? T(T(1) << (sizeof(T) * 8 - 1)) : T(0);
    constexpr T most = T(~least);
    double clamped = value > double(most) ? double(most) : value;
    clamped = clamped > double(least) ? clamped : double(least);
    // Conversions to 32 bits with a sign are those that vectors have.
    constexpr bool shifts = sizeof(T) == 4 && !std::is_signed_v<T>;
    uint32_t bits = shifts ? uint32_t(int32_t(clamped - 0x1p31)) ^ 0x80000000
                           : uint32_t(int32_t(clamped));
    return value == value ? T(bits) : nan;
  } else {
    if (value != value)
      return nan;
    constexpr double limit = std::is_signed_v<T> ? 0x1p63 : 0x1p64;
    constexpr T least = std::is_signed_v<T> ? T(T(1) << 63) : T(0);
    if (value >= limit)
      return T(~least);
    if (value <= (std::is_signed_v<T> ? -limit : 0))
      return least;
    return T(value);
  }
}

/// An integer in the register of the result, which may be wider.
template <typename To, typename T>
inline To extend(T value, const ConvertWays &ways) {
  using Signed = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  To cell = To(uint64_t(Signed(value)));
  return ways.width < 32 ? cell & ((To(1) << ways.width) - 1) : cell;
}

template <typename D, typename S>
inline D saturateInteger(S value) {
  constexpr D least =
      std::is_signed_v<D> ? D(D(1) << (sizeof(D) * 8 - 1)) : D(0);
  constexpr D most = D(~least);
  if constexpr (std::is_signed_v<S>) {
    // All but the largest unsigned numbers compare as signed ones.
    int64_t number = int64_t(value);
    if constexpr (std::is_signed_v<D> || sizeof(D) < 8)
      return number < int64_t(least)  ? least
             : number > int64_t(most) ? most
                                      : D(number);
    return number < 0 ? D(0) : D(number);
  } else {
    return uint64_t(value) > uint64_t(most) ? most : D(value);
  }
}

/// To a format of 16 bits.
template <typename D, Rounding Mode>
inline uint32_t bitsFrom(float value) {
  if constexpr (std::is_same_v<D, Float16>)
    return narrowHalf<Mode>(value);
  else
    return narrowBrain<Mode>(value);
}

/// One conversion. `Mode` is of the fraction, or to an integer where
/// `Integral`.
template <typename D, typename S, Rounding Mode, bool Integral>
struct Conversion {
  using To = typename D::Cell;
  using From = typename S::Cell;
  template <typename Result>
  [[gnu::always_inline]] static Result apply(From cell,
                                             const ConvertWays &ways) {
    if constexpr (S::isInteger && D::isInteger) {
      auto value = S::load(cell, ways);
      using Number = typename D::Number;
      Number number =
          ways.saturates ? saturateInteger<Number>(value) : Number(value);
      return extend<Result>(number, ways);
    } else if constexpr (D::isInteger) {
      using Number = typename D::Number;
      double value = toIntegral<Mode>(double(S::load(cell, ways)));
      constexpr bool isZero = !S::isDouble && sizeof(Number) < 8;
      constexpr Number nan =
          isZero ? Number(0) : Number(uint64_t(1) << (sizeof(Number) * 8 - 1));
      return extend<Result>(clampTo<Number>(value, nan), ways);
    } else if constexpr (S::isInteger) {
      auto value = S::load(cell, ways);
      if constexpr (D::isDouble)
        return Result(
            D::template store<Mode>(integerToDouble<Mode>(value), ways));
      else if constexpr (std::is_same_v<D, Float32>) {
        if constexpr (Mode == Rounding::Nearest)
          return Result(D::template store<Mode>(float(value), ways));
        else
          return Result(
              D::template store<Mode>(narrow32<Mode>(integerOdd(value)), ways));
      } else
        return Result(
            D::template store<Mode>(narrowOdd(integerOdd(value)), ways));
    } else {
      auto value = S::load(cell, ways);
      if constexpr (Integral)
        value = toIntegral<Mode>(value);
      constexpr bool keeps = std::is_same_v<D, S> && !Integral;
      if constexpr (D::isDouble && keeps) {
        return Result(D::keep(value, ways));
      } else if constexpr (D::isDouble && std::is_same_v<S, Float32>) {
        // What flushes makes the NaN of f32 first.
        value = ways.flushes() ? asFloat(canonical32(value)) : value;
        return Result(D::template store<Mode>(double(value), ways));
      } else if constexpr (D::isDouble) {
        return Result(D::template store<Mode>(double(value), ways));
      } else if constexpr (S::isDouble && std::is_same_v<D, Float32>) {
        // As much of a NaN's payload as there is room for stays.
        if (ways.flushes())
          value = flushTiny<Mode>(value);
        return Result(D::finish(bitsOf(narrow32<Mode>(value)), ways));
      } else if constexpr (S::isDouble) {
        uint32_t nan =
            uint32_t(cell >> 48 & 0x8000) | D::quietNan |
            (uint32_t(cell >> (52 - D::fraction)) & ((1u << D::fraction) - 1));
        uint32_t bits = bitsFrom<D, Mode>(narrowOdd(value));
        return Result(D::finish(value == value ? bits : nan, ways));
      } else if constexpr (std::is_same_v<D, Float32> &&
                           (keeps || std::is_same_v<S, BFloat16>)) {
        return Result(D::keep(value, ways));
      } else {
        return Result(D::template store<Mode>(value, ways));
      }
    }
  }
};

template <typename C, typename To, typename From>
void convertLanes(Warp &warp, const Op &op, LaneMask active) {
  To *to = warp.lanes<To>(op.result(0));
  const From *from = warp.lanes<From>(op.operand(0));
  ConvertWays ways(op.immediate);
  if (active == allLanes) {
    // Those with integers of 64 bits stay scalar.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      to[lane] = C::template apply<To>(typename C::From(from[lane]), ways);
#pragma clang diagnostic pop
    return;
  }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] = C::template apply<To>(typename C::From(from[lane]), ways);
  }
}

// Pairs and the formats of 8 bits. --------------------------------------------

/// A format of eight bits: `Fraction` bits of it, the least exponent of a
/// normal number, the largest finite pattern.
template <unsigned Fraction, int Least, uint32_t Most>
struct Eighth {
  static uint32_t narrow(float value, bool relus) {
    uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffff;
    uint32_t sign = (bits >> 24) & 0x80;
    constexpr unsigned dropped = 23 - Fraction;
    constexpr uint32_t rebias = uint32_t(Least + 126) << 23;
    uint32_t normal = (magnitude + (1u << (dropped - 1)) - 1 +
                       ((magnitude >> dropped) & 1) - rebias) >>
                      dropped;
    // Adding this leaves a subnormal's fraction, rounded, in the low bits.
    constexpr uint32_t magic = uint32_t(Least + int(dropped) + 127) << 23;
    uint32_t small = bitsOf(asFloat(magnitude) + asFloat(magic)) - magic;
    constexpr uint32_t leastNormal = uint32_t(Least + 127) << 23;
    uint32_t near = magnitude < leastNormal ? small : normal;
    near = near > Most ? Most : near;
    near = magnitude >= 0x7f800000 ? Most : near;
    near |= sign;
    near = relus && sign ? 0 : near;
    return magnitude > 0x7f800000 ? 0x7f : near;
  }
};
using E4M3 = Eighth<3, -6, 0x7e>;
using E5M2 = Eighth<2, -14, 0x7b>;

/// To f16; exact.
inline uint32_t widenE4M3(uint32_t byte) {
  float magnitude = asFloat((byte & 0x7f) << 20) * 0x1p120f;
  uint32_t half = narrowHalf<Rounding::Nearest>(magnitude);
  return (byte & 0x7f) == 0x7f ? canonicalNan16 : half | (byte & 0x80) << 8;
}
inline uint32_t widenE5M2(uint32_t byte) {
  return (byte & 0x7f) > 0x7c ? canonicalNan16 : byte << 8;
}

template <typename D, Rounding Mode>
struct PackSingles {
  using To = uint32_t;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               const ConvertWays &ways) {
    uint32_t high = D::template store<Mode>(asFloat(ways.flush(a)), ways);
    uint32_t low = D::template store<Mode>(asFloat(ways.flush(b)), ways);
    return low | high << 16;
  }
};
template <typename Format>
struct PackEighths {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               const ConvertWays &ways) {
    return Format::narrow(asFloat(b), ways.relus) |
           Format::narrow(asFloat(a), ways.relus) << 8;
  }
};
template <typename Format>
struct HalvesToEighths {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t,
                                               const ConvertWays &ways) {
    return Format::narrow(widenHalf(a & 0xffff), ways.relus) |
           Format::narrow(widenHalf(a >> 16), ways.relus) << 8;
  }
};
template <uint32_t (*Widen)(uint32_t)>
struct EighthsToHalves {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t,
                                               const ConvertWays &ways) {
    uint32_t low = Widen(a & 0xff), high = Widen((a >> 8) & 0xff);
    low = ways.relus ? relu16(low) : low;
    high = ways.relus ? relu16(high) : high;
    return low | high << 16;
  }
};
/// To tf32: the low 13 bits of a float go.
template <Rounding Mode>
struct ToTensorFloat {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t,
                                               const ConvertWays &ways) {
    uint32_t magnitude = a & 0x7fffffff, sign = a & 0x80000000;
    uint32_t add = Mode == Rounding::Zero ? 0
                   : Mode == Rounding::NearestAway
                       ? 0x1000
                       : 0xfff + ((magnitude >> 13) & 1);
    uint32_t rounded = (magnitude + add) & 0xffffe000;
    rounded = magnitude >= 0x7f800000 ? 0x7f800000 : rounded;
    rounded = ways.isFinite && rounded == 0x7f800000 ? 0x7f7fe000 : rounded;
    uint32_t bits = ways.relus && sign ? 0 : rounded | sign;
    // What H200s do: `.rna` cuts a NaN, which can make an infinity of it.
    // `.satfinite` then takes the number below it.
    uint32_t cut = (a & 0xffffe000) - (ways.isFinite ? 0x2000 : 0);
    uint32_t nan = Mode == Rounding::NearestAway ? cut : 0x7fffe000;
    return magnitude > 0x7f800000 ? nan : bits;
  }
};
/// cvt.pack: two integers, saturated, above what the third has.
template <typename D, typename S>
struct PackIntegers {
  static constexpr unsigned width = sizeof(D) * 8;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               const ConvertWays &) {
    using Bits = std::make_unsigned_t<D>;
    uint32_t high = Bits(saturateInteger<D>(S(a)));
    uint32_t low = Bits(saturateInteger<D>(S(b)));
    return low | high << width;
  }
};
/// To `Width` bits, fewer than a byte.
template <unsigned Width, bool Signed, typename S>
struct PackNarrow {
  static constexpr unsigned width = Width;
  static uint32_t saturate(S value) {
    constexpr int64_t least = Signed ? -(1 << (Width - 1)) : 0;
    constexpr int64_t most = least + (1 << Width) - 1;
    int64_t number = int64_t(value);
    number = number < least ? least : number > most ? most : number;
    return uint32_t(number) & ((1u << Width) - 1);
  }
  static uint32_t apply(uint32_t a, uint32_t b, const ConvertWays &) {
    return saturate(S(b)) | saturate(S(a)) << Width;
  }
};

template <typename C, unsigned Arity>
void packLanes(Warp &warp, const Op &op, LaneMask active) {
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  const uint32_t *a = warp.lanes<uint32_t>(op.operand(0));
  const uint32_t *b = Arity > 1 ? warp.lanes<uint32_t>(op.operand(1)) : a;
  ConvertWays ways(op.immediate);
  if (active == allLanes) {
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      to[lane] = C::apply(a[lane], b[lane], ways);
    return;
  }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] = C::apply(a[lane], b[lane], ways);
  }
}
template <typename C>
void packThree(Warp &warp, const Op &op, LaneMask active) {
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  const uint32_t *a = warp.lanes<uint32_t>(op.operand(0));
  const uint32_t *b = warp.lanes<uint32_t>(op.operand(1));
  const uint32_t *c = warp.lanes<uint32_t>(op.operand(2));
  ConvertWays ways(op.immediate);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] = C::apply(a[lane], b[lane], ways) | c[lane] << (2 * C::width);
  }
}

// From a form to its handler. -------------------------------------------------

/// Registers may be wider than the types; that is seldom, and has no vectors.
template <typename C>
Handler convertCells(bool wideTo, bool wideFrom) {
  using To = typename C::To;
  using From = typename C::From;
#if !FSR_PTX_WIDE
  bool sameTo = wideTo == (sizeof(To) == 8);
  bool sameFrom = wideFrom == (sizeof(From) == 8);
  if (!sameTo && !sameFrom)
    return &convertLanes<C, uint64_t, uint64_t>;
  if (!sameTo)
    return &convertLanes<C, uint64_t, From>;
  if (!sameFrom)
    return &convertLanes<C, To, uint64_t>;
#else
  (void)wideTo;
  (void)wideFrom;
#endif
  return &convertLanes<C, To, From>;
}

template <typename D, typename S>
Handler convertRound(Rounding rounding, bool integral, bool wideTo,
                     bool wideFrom) {
  if constexpr (D::isInteger && S::isInteger) {
    return convertCells<Conversion<D, S, Rounding::Zero, true>>(wideTo,
                                                                wideFrom);
  } else {
    constexpr bool isSame = std::is_same_v<D, S>;
    if constexpr (isSame || D::isInteger) {
      if (integral)
        switch (rounding) {
        case Rounding::Zero:
          return convertCells<Conversion<D, S, Rounding::Zero, true>>(wideTo,
                                                                      wideFrom);
        case Rounding::Down:
          return convertCells<Conversion<D, S, Rounding::Down, true>>(wideTo,
                                                                      wideFrom);
        case Rounding::Up:
          return convertCells<Conversion<D, S, Rounding::Up, true>>(wideTo,
                                                                    wideFrom);
        default:
          return convertCells<Conversion<D, S, Rounding::Nearest, true>>(
              wideTo, wideFrom);
        }
    }
    if constexpr (!D::isInteger) {
      if constexpr (!isSame)
        switch (rounding) {
        case Rounding::Zero:
          return convertCells<Conversion<D, S, Rounding::Zero, false>>(
              wideTo, wideFrom);
        case Rounding::Down:
          return convertCells<Conversion<D, S, Rounding::Down, false>>(
              wideTo, wideFrom);
        case Rounding::Up:
          return convertCells<Conversion<D, S, Rounding::Up, false>>(wideTo,
                                                                     wideFrom);
        default:
          break;
        }
      return convertCells<Conversion<D, S, Rounding::Nearest, false>>(wideTo,
                                                                      wideFrom);
    }
    return nullptr;
  }
}

template <typename D>
Handler convertFrom(Type source, Rounding rounding, bool integral, bool wideTo,
                    bool wideFrom) {
  switch (source) {
#define FSR_PTX_FROM(name, type)                                               \
  case Type::name:                                                             \
    return convertRound<D, type>(rounding, integral, wideTo, wideFrom);
    FSR_PTX_FROM(U8, Integer<uint8_t>)
    FSR_PTX_FROM(U16, Integer<uint16_t>)
    FSR_PTX_FROM(U32, Integer<uint32_t>)
    FSR_PTX_FROM(U64, Integer<uint64_t>)
    FSR_PTX_FROM(S8, Integer<int8_t>)
    FSR_PTX_FROM(S16, Integer<int16_t>)
    FSR_PTX_FROM(S32, Integer<int32_t>)
    FSR_PTX_FROM(S64, Integer<int64_t>)
    FSR_PTX_FROM(F16, Float16)
    FSR_PTX_FROM(BF16, BFloat16)
    FSR_PTX_FROM(F32, Float32)
    FSR_PTX_FROM(F64, Float64)
#undef FSR_PTX_FROM
  default:
    return nullptr;
  }
}

inline Handler convertHandler(Type result, Type source, Rounding rounding,
                              bool integral, bool wideTo, bool wideFrom) {
  switch (result) {
#define FSR_PTX_TO(name, type)                                                 \
  case Type::name:                                                             \
    return convertFrom<type>(source, rounding, integral, wideTo, wideFrom);
    FSR_PTX_TO(U8, Integer<uint8_t>)
    FSR_PTX_TO(U16, Integer<uint16_t>)
    FSR_PTX_TO(U32, Integer<uint32_t>)
    FSR_PTX_TO(U64, Integer<uint64_t>)
    FSR_PTX_TO(S8, Integer<int8_t>)
    FSR_PTX_TO(S16, Integer<int16_t>)
    FSR_PTX_TO(S32, Integer<int32_t>)
    FSR_PTX_TO(S64, Integer<int64_t>)
    FSR_PTX_TO(F16, Float16)
    FSR_PTX_TO(BF16, BFloat16)
    FSR_PTX_TO(F32, Float32)
    FSR_PTX_TO(F64, Float64)
#undef FSR_PTX_TO
  default:
    return nullptr;
  }
}

inline Handler packHandler(Type result, Type source, Rounding rounding) {
  bool isZero = rounding == Rounding::Zero;
  if (source == Type::F32)
    switch (result) {
    case Type::F16x2:
      return isZero ? &packLanes<PackSingles<Float16, Rounding::Zero>, 2>
                    : &packLanes<PackSingles<Float16, Rounding::Nearest>, 2>;
    case Type::BF16x2:
      return isZero ? &packLanes<PackSingles<BFloat16, Rounding::Zero>, 2>
                    : &packLanes<PackSingles<BFloat16, Rounding::Nearest>, 2>;
    case Type::E4M3x2:
      return &packLanes<PackEighths<E4M3>, 2>;
    case Type::E5M2x2:
      return &packLanes<PackEighths<E5M2>, 2>;
    case Type::TF32:
      return rounding == Rounding::NearestAway
                 ? &packLanes<ToTensorFloat<Rounding::NearestAway>, 1>
             : isZero ? &packLanes<ToTensorFloat<Rounding::Zero>, 1>
                      : &packLanes<ToTensorFloat<Rounding::Nearest>, 1>;
    default:
      return nullptr;
    }
  if (source == Type::F16x2)
    return result == Type::E4M3x2   ? &packLanes<HalvesToEighths<E4M3>, 1>
           : result == Type::E5M2x2 ? &packLanes<HalvesToEighths<E5M2>, 1>
                                    : nullptr;
  if (result == Type::F16x2)
    return source == Type::E4M3x2   ? &packLanes<EighthsToHalves<widenE4M3>, 1>
           : source == Type::E5M2x2 ? &packLanes<EighthsToHalves<widenE5M2>, 1>
                                    : nullptr;
  return nullptr;
}

template <typename S>
Handler packIntegersFrom(Type result, bool hasThird, unsigned bits) {
  bool isSigned = result == Type::S8;
  if (bits == 4)
    return isSigned ? &packThree<PackNarrow<4, true, S>>
                    : &packThree<PackNarrow<4, false, S>>;
  if (bits == 2)
    return isSigned ? &packThree<PackNarrow<2, true, S>>
                    : &packThree<PackNarrow<2, false, S>>;
  switch (result) {
  case Type::U16:
    return hasThird ? nullptr : &packLanes<PackIntegers<uint16_t, S>, 2>;
  case Type::S16:
    return hasThird ? nullptr : &packLanes<PackIntegers<int16_t, S>, 2>;
  case Type::U8:
    return hasThird ? &packThree<PackIntegers<uint8_t, S>> : nullptr;
  case Type::S8:
    return hasThird ? &packThree<PackIntegers<int8_t, S>> : nullptr;
  default:
    return nullptr;
  }
}
inline Handler packIntegersHandler(Type result, Type source, bool hasThird,
                                   unsigned bits) {
  return source == Type::S32 ? packIntegersFrom<int32_t>(result, hasThird, bits)
         : source == Type::U32
             ? packIntegersFrom<uint32_t>(result, hasThird, bits)
             : nullptr;
}
