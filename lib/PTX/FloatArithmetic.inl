// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Arithmetic of all formats; see FloatMath.inl for how it is included.
//
// f32 in the directed modes goes through doubles: a product of two floats is
// exact there, a sum is made exact by its error, and a quotient or a root is
// checked by multiplying back. f16 adds, multiplies and divides in f32, whose
// 24 bits are enough for a second rounding to be harmless; bf16 goes through
// doubles since its range is that of f32.
//
//===----------------------------------------------------------------------===//

template <Rounding Mode, bool Ftz>
inline float narrowSum(double value) {
  return narrow32<Mode>(Ftz ? flushTiny<Mode>(value) : value);
}

template <Rounding Mode>
inline float addSingle(float a, float b) {
  if constexpr (Mode == Rounding::Nearest)
    return a + b;
  double wideA = a, wideB = b;
  double sum = addOdd(wideA, wideB);
  // Opposite terms cancel to -0 when rounding down.
  if constexpr (Mode == Rounding::Down)
    sum = sum == 0 && (bitsOf(a) | bitsOf(b)) >> 31 ? -0.0 : sum;
  return narrow32<Mode>(sum);
}

template <Rounding Mode, bool Ftz>
inline float mulSingle(float a, float b) {
  if constexpr (Mode == Rounding::Nearest)
    return a * b;
  return narrowSum<Mode, Ftz>(double(a) * double(b));
}

template <Rounding Mode, bool Ftz>
inline float fmaSingle(float a, float b, float c) {
#if FSR_PTX_WIDE
  if constexpr (Mode == Rounding::Nearest)
    return __builtin_elementwise_fma(a, b, c);
#endif
  double product = double(a) * double(b);
  double sum = addOdd(product, double(c));
  if constexpr (Mode == Rounding::Down)
    sum = sum == 0 && (bitsOf(product) >> 63 | bitsOf(c) >> 31) ? -0.0 : sum;
  return narrowSum<Mode, Ftz>(sum);
}

template <Rounding Mode, bool Ftz>
inline float divSingle(float a, float b) {
  float near = a / b;
  if constexpr (Mode == Rounding::Nearest)
    return near;
  double back = double(near) * double(b), wide = a;
  bool isMore = back > wide, isLess = back < wide;
  bool isNegative = bitsOf(b) >> 31;
  // A quotient of an infinity or by zero is exact.
  bool isExact = (bitsOf(a) & 0x7fffffff) >= 0x7f800000 ||
                 (bitsOf(b) & 0x7fffffff) >= 0x7f800000 || b == 0;
  bool isAbove = (isNegative ? isLess : isMore) & !isExact;
  bool isBelow = (isNegative ? isMore : isLess) & !isExact;
  float value = asFloat(redirect<Mode>(bitsOf(near), isAbove, isBelow));
  // No quotient lies between the least normal number and the one below it.
  bool wasTiny = (bitsOf(near) & 0x7fffffff) < 0x00800000;
  return Ftz && wasTiny ? asFloat(bitsOf(near) & 0x80000000) : value;
}

template <Rounding Mode>
inline float sqrtSingle(float a) {
  float near = __builtin_elementwise_sqrt(a);
  if constexpr (Mode == Rounding::Nearest)
    return near;
  double back = double(near) * double(near), wide = a;
  return asFloat(redirect<Mode>(bitsOf(near), back > wide, back < wide));
}

/// div.approx multiplies by a reciprocal that is zero for divisors near the top
/// of the range.
template <bool Ftz>
struct DivApprox {
  using Cell = uint32_t;
  static constexpr unsigned arity = 2;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               uint32_t) {
    if constexpr (Ftz) {
      a = flush32(a);
      b = flush32(b);
    }
    uint32_t size = b & 0x7fffffff;
    bool isHuge = size > 0x7e800000 && size < 0x7f800000;
    float divisor =
        isHuge ? asFloat((b & 0x80000000) | 0x7f800000) : asFloat(b);
    uint32_t bits = canonical32(asFloat(a) / divisor);
    return Ftz ? flush32(bits) : bits;
  }
};

template <Arithmetic O, Rounding Mode, bool Ftz, bool Sat>
struct Single {
  using Cell = uint32_t;
  static constexpr unsigned arity = O == Arithmetic::Fma    ? 3
                                    : O == Arithmetic::Sqrt ? 1
                                                            : 2;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               uint32_t c) {
    if constexpr (Ftz) {
      a = flush32(a);
      b = flush32(b);
      c = flush32(c);
    }
    float x = asFloat(a), y = asFloat(b), z = asFloat(c), value;
    if constexpr (O == Arithmetic::Add)
      value = addSingle<Mode>(x, y);
    else if constexpr (O == Arithmetic::Sub)
      value = addSingle<Mode>(x, -y);
    else if constexpr (O == Arithmetic::Mul)
      value = mulSingle<Mode, Ftz>(x, y);
    else if constexpr (O == Arithmetic::Fma)
      value = fmaSingle<Mode, Ftz>(x, y, z);
    else if constexpr (O == Arithmetic::Div)
      value = divSingle<Mode, Ftz>(x, y);
    else
      value = sqrtSingle<Mode>(x);
    constexpr bool isProduct = O == Arithmetic::Mul || O == Arithmetic::Fma;
    if constexpr (Ftz && isProduct && Mode == Rounding::Nearest) {
      // What was rounded up to the least normal number only because subnormals
      // are coarse counts as below it.
      float scaled = O == Arithmetic::Mul
                         ? mulSingle<Mode, false>(x * 0x1p64f, y)
                         : fmaSingle<Mode, false>(x * 0x1p64f, y, z * 0x1p64f);
      bool isTiny = (bitsOf(scaled) & 0x7fffffff) < bitsOf(0x1p-62f);
      bool isLeast = (bitsOf(value) & 0x7fffffff) == 0x00800000;
      value = (isTiny & isLeast) ? asFloat(bitsOf(value) & 0x80000000) : value;
    }
    uint32_t bits = canonical32(value);
    if constexpr (Ftz)
      bits = flush32(bits);
    if constexpr (Sat)
      bits = saturate32(bits);
    return bits;
  }
};

template <Arithmetic O, Rounding Mode>
struct Double {
  using Cell = uint64_t;
  static constexpr unsigned arity = Single<O, Mode, false, false>::arity;
  [[gnu::always_inline]] static uint64_t apply(uint64_t a, uint64_t b,
                                               uint64_t c) {
    if constexpr (Mode == Rounding::Nearest) {
      double x = asDouble(a), y = asDouble(b), z = asDouble(c), value;
      if constexpr (O == Arithmetic::Add)
        value = x + y;
      else if constexpr (O == Arithmetic::Sub)
        value = x - y;
      else if constexpr (O == Arithmetic::Mul)
        value = x * y;
      else if constexpr (O == Arithmetic::Fma)
        value = __builtin_elementwise_fma(x, y, z);
      else if constexpr (O == Arithmetic::Div)
        value = x / y;
      else
        value = __builtin_elementwise_sqrt(x);
      uint64_t nan = arity == 3             ? propagatedNan64(b, c, a)
                     : arity == 1           ? propagatedNan64(a)
                     : O == Arithmetic::Div ? propagatedNan64(a, b)
                                            : propagatedNan64(b, a);
      return value == value ? bitsOf(value) : nan;
    } else {
      if constexpr (O == Arithmetic::Add)
        return roundedAdd64(a, b, Mode);
      if constexpr (O == Arithmetic::Sub)
        return roundedAdd64(a, isNan64(b) ? b : b ^ (uint64_t(1) << 63), Mode);
      if constexpr (O == Arithmetic::Mul)
        return roundedMul64(a, b, Mode);
      if constexpr (O == Arithmetic::Fma)
        return roundedFma64(a, b, c, Mode);
      if constexpr (O == Arithmetic::Div)
        return roundedDiv64(a, b, Mode);
      return roundedSqrt64(a, Mode);
    }
  }
};

template <typename Format, Arithmetic O, bool Ftz, bool Sat, bool Relu>
struct Short {
  using Cell = uint32_t;
  static constexpr unsigned arity = O == Arithmetic::Fma ? 3 : 2;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               uint32_t c) {
    if constexpr (Ftz) {
      a = flush16<Format>(a);
      b = flush16<Format>(b);
      c = flush16<Format>(c);
    }
    float x = Format::widen(a), y = Format::widen(b), z = Format::widen(c);
    float value;
    if constexpr (O == Arithmetic::Sub)
      y = -y;
    if constexpr (Format::infinity == Half::infinity) {
      if constexpr (O == Arithmetic::Mul)
        value = x * y;
      else if constexpr (O == Arithmetic::Fma) {
        float product = x * y;
        value = product + z;
        value = toOdd(value, sumError(product, z, value));
      } else
        value = x + y;
    } else {
      if constexpr (O == Arithmetic::Mul)
        value = narrowOdd(double(x) * double(y));
      else if constexpr (O == Arithmetic::Fma)
        value = narrowOdd(addOdd(double(x) * double(y), double(z)));
      else
        value = x + y;
    }
    if constexpr (Ftz)
      value = flushTiny16<Format>(value);
    uint32_t bits = Format::template narrow<Rounding::Nearest>(value);
    if constexpr (Sat)
      bits = saturate16<Format>(bits);
    if constexpr (Relu)
      bits = relu16(bits);
    return bits;
  }
};

/// A bf16 fma within f32: right where the product is exact there and nothing
/// overflows; elsewhere `isRisky`.
template <bool Relu>
[[gnu::always_inline]] inline uint32_t
quickBrainFma(uint32_t a, uint32_t b, uint32_t c, bool &isRisky) {
  float x = widenBrain(a), y = widenBrain(b), z = widenBrain(c);
  float product = x * y, sum = product + z;
  sum = toOdd(sum, sumError(product, z, sum));
  uint32_t size = bitsOf(product) & 0x7fffffff;
  bool isSmall = (size < bitsOf(0x1p-110f)) & (x != 0) & (y != 0);
  bool isLarge = size >= bitsOf(0x1p126f);
  bool isFar = (bitsOf(z) & 0x7fffffff) >= bitsOf(0x1p126f);
  isRisky = isSmall | isLarge | isFar;
  uint32_t bits = narrowBrain<Rounding::Nearest>(sum);
  return Relu ? relu16(bits) : bits;
}
template <bool IsPacked, bool Relu>
void runBrainFma(Warp &warp, const Op &op, LaneMask active) {
  using Exact = Short<Brain, Arithmetic::Fma, false, false, Relu>;
  if (active == allLanes) {
    const uint32_t *a = warp.lanes<uint32_t>(op.operand(0));
    const uint32_t *b = warp.lanes<uint32_t>(op.operand(1));
    const uint32_t *c = warp.lanes<uint32_t>(op.operand(2));
    uint32_t values[warpLanes], risks = 0;
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane) {
      bool isRisky, isRiskyHigh = false;
      uint32_t value = quickBrainFma<Relu>(a[lane] & 0xffff, b[lane] & 0xffff,
                                           c[lane] & 0xffff, isRisky);
      if constexpr (IsPacked)
        value |= quickBrainFma<Relu>(a[lane] >> 16, b[lane] >> 16,
                                     c[lane] >> 16, isRiskyHigh)
                 << 16;
      values[lane] = value;
      risks |= uint32_t(isRisky | isRiskyHigh);
    }
    if (!risks) {
      __builtin_memcpy(warp.lanes<uint32_t>(op.result(0)), values,
                       sizeof(values));
      return;
    }
  }
  if constexpr (IsPacked)
    runLanes<Packed16<Exact>>(warp, op, active);
  else
    runLanes<Exact>(warp, op, active);
}

template <Arithmetic O>
struct SignSingle {
  using Cell = uint32_t;
  static constexpr unsigned arity = O == Arithmetic::Copysign ? 2 : 1;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               uint32_t) {
    if constexpr (O == Arithmetic::Neg)
      return isNan32(a) ? canonicalNan32 : a ^ 0x80000000;
    if constexpr (O == Arithmetic::Abs)
      return isNan32(a) ? canonicalNan32 : a & 0x7fffffff;
    return (a & 0x80000000) | (b & 0x7fffffff);
  }
};
template <Arithmetic O>
struct SignSingleFtz : SignSingle<O> {
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t b,
                                               uint32_t c) {
    return SignSingle<O>::apply(flush32(a), b, c);
  }
};
template <Arithmetic O>
struct SignDouble {
  using Cell = uint64_t;
  static constexpr unsigned arity = O == Arithmetic::Copysign ? 2 : 1;
  [[gnu::always_inline]] static uint64_t apply(uint64_t a, uint64_t b,
                                               uint64_t) {
    constexpr uint64_t sign = uint64_t(1) << 63;
    if constexpr (O == Arithmetic::Neg)
      return isNan64(a) ? propagatedNan64(a) : a ^ sign;
    if constexpr (O == Arithmetic::Abs)
      return isNan64(a) ? propagatedNan64(a) : a & ~sign;
    return (a & sign) | (b & ~sign);
  }
};
template <typename Format, Arithmetic O, bool Ftz>
struct SignShort {
  using Cell = uint32_t;
  static constexpr unsigned arity = 1;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t, uint32_t) {
    if constexpr (Ftz)
      a = flush16<Format>(a);
    uint32_t bits = O == Arithmetic::Neg ? a ^ 0x8000 : a & 0x7fff;
    return (a & 0x7fff) > Format::infinity ? canonicalNan16 : bits;
  }
};

/// What `extreme` knows of a format.
template <typename CellOf, CellOf Infinity, CellOf Canonical>
struct Layout {
  using Cell = CellOf;
  static constexpr Cell infinity = Infinity, canonical = Canonical;
  static constexpr Cell sign = sizeof(Cell) == 8
                                   ? Cell(1) << (sizeof(Cell) * 8 - 1)
                               : Canonical > Cell(0x7fff) ? Cell(0x80000000)
                                                          : Cell(0x8000);
};
using LayoutHalf = Layout<uint32_t, 0x7c00, canonicalNan16>;
using LayoutBrain = Layout<uint32_t, 0x7f80, canonicalNan16>;
using LayoutSingle = Layout<uint32_t, 0x7f800000, canonicalNan32>;
using LayoutDouble = Layout<uint64_t, 0x7ff0000000000000, generatedNan64>;

/// The smaller or larger of two patterns, -0 below +0; where one is a NaN the
/// other, and a NaN where both are or `Nan` asks for it.
template <typename L, bool IsMax, bool Nan>
inline typename L::Cell extreme(typename L::Cell a, typename L::Cell b) {
  using Cell = typename L::Cell;
  constexpr Cell magnitude = L::sign - 1;
  bool nanA = (a & magnitude) > L::infinity;
  bool nanB = (b & magnitude) > L::infinity;
  // Patterns are ordered as sign and magnitude; the keys as integers.
  Cell keyA = a & L::sign ? magnitude - (a & magnitude) : a | L::sign;
  Cell keyB = b & L::sign ? magnitude - (b & magnitude) : b | L::sign;
  bool takesA = IsMax ? keyA > keyB : keyA < keyB;
  Cell chosen = takesA ? a : b;
  if constexpr (Nan)
    return (nanA | nanB) ? L::canonical : chosen;
  chosen = nanA ? b : chosen;
  chosen = nanB ? a : chosen;
  if constexpr (sizeof(Cell) == 8)
    return (nanA & nanB) ? propagatedNan64(b) : chosen;
  return (nanA & nanB) ? L::canonical : chosen;
}

template <typename L, bool IsMax, bool Nan, bool Xorsign, bool Ftz,
          unsigned Count>
struct Extreme {
  using Cell = typename L::Cell;
  static constexpr unsigned arity = Count;
  [[gnu::always_inline]] static Cell apply(Cell a, Cell b, Cell c) {
    constexpr Cell magnitude = L::sign - 1;
    if constexpr (Ftz) {
      a = a & L::infinity ? a : a & L::sign;
      b = b & L::infinity ? b : b & L::sign;
      c = c & L::infinity ? c : c & L::sign;
    }
    Cell signs = Count == 3 ? a ^ b ^ c : a ^ b;
    if constexpr (Xorsign) {
      a &= magnitude;
      b &= magnitude;
      c &= magnitude;
    }
    Cell value = extreme<L, IsMax, Nan>(a, b);
    if constexpr (Count == 3)
      value = extreme<L, IsMax, Nan>(value, c);
    if constexpr (Xorsign)
      value =
          (value & magnitude) > L::infinity ? value : value | (signs & L::sign);
    return value;
  }
};

// From a form to its handler. -------------------------------------------------

template <Arithmetic O, Rounding Mode>
Handler singleOf(const FloatForm &form, bool isPair) {
  if (isPair)
    return form.ftz ? &runLanes<Packed32<Single<O, Mode, true, false>>>
                    : &runLanes<Packed32<Single<O, Mode, false, false>>>;
  if (form.ftz)
    return form.sat ? &runLanes<Single<O, Mode, true, true>>
                    : &runLanes<Single<O, Mode, true, false>>;
  return form.sat ? &runLanes<Single<O, Mode, false, true>>
                  : &runLanes<Single<O, Mode, false, false>>;
}

template <Arithmetic O>
Handler arithmeticOf(const FloatForm &form, Type type) {
  if (type == Type::F64) {
    switch (form.rounding) {
    case Rounding::Zero:
      return &runScalars<Double<O, Rounding::Zero>>;
    case Rounding::Down:
      return &runScalars<Double<O, Rounding::Down>>;
    case Rounding::Up:
      return &runScalars<Double<O, Rounding::Up>>;
    default:
      return &runLanes<Double<O, Rounding::Nearest>>;
    }
  }
  bool isPair = type == Type::F32x2;
  switch (form.rounding) {
  case Rounding::Zero:
    return singleOf<O, Rounding::Zero>(form, isPair);
  case Rounding::Down:
    return singleOf<O, Rounding::Down>(form, isPair);
  case Rounding::Up:
    return singleOf<O, Rounding::Up>(form, isPair);
  default:
    return singleOf<O, Rounding::Nearest>(form, isPair);
  }
}

template <typename F>
Handler maybePacked(bool isPacked) {
  return isPacked ? &runLanes<Packed16<F>> : &runLanes<F>;
}

template <typename Format, Arithmetic O>
Handler shortOf(const FloatForm &form, bool isPacked) {
  if (form.relu)
    return form.ftz
               ? maybePacked<Short<Format, O, true, false, true>>(isPacked)
               : maybePacked<Short<Format, O, false, false, true>>(isPacked);
  if (form.sat)
    return form.ftz
               ? maybePacked<Short<Format, O, true, true, false>>(isPacked)
               : maybePacked<Short<Format, O, false, true, false>>(isPacked);
  return form.ftz
             ? maybePacked<Short<Format, O, true, false, false>>(isPacked)
             : maybePacked<Short<Format, O, false, false, false>>(isPacked);
}

template <Arithmetic O>
Handler anyArithmetic(const FloatForm &form, Type type) {
  bool isPacked = type == Type::F16x2 || type == Type::BF16x2;
  if (type == Type::F16 || type == Type::F16x2)
    return shortOf<Half, O>(form, isPacked);
  bool isBrain = type == Type::BF16 || type == Type::BF16x2;
  if (isBrain && O == Arithmetic::Fma)
    return form.relu ? (isPacked ? &runBrainFma<true, true>
                                 : &runBrainFma<false, true>)
                     : (isPacked ? &runBrainFma<true, false>
                                 : &runBrainFma<false, false>);
  if (isBrain)
    return shortOf<Brain, O>(form, isPacked);
  return arithmeticOf<O>(form, type);
}

template <Arithmetic O>
Handler signOf(const FloatForm &form, Type type) {
  bool isPacked = type == Type::F16x2 || type == Type::BF16x2;
  switch (type) {
  case Type::F32:
    return form.ftz ? &runLanes<SignSingleFtz<O>> : &runLanes<SignSingle<O>>;
  case Type::F64:
    return &runLanes<SignDouble<O>>;
  case Type::F16:
  case Type::F16x2:
    return form.ftz ? maybePacked<SignShort<Half, O, true>>(isPacked)
                    : maybePacked<SignShort<Half, O, false>>(isPacked);
  default:
    return form.ftz ? maybePacked<SignShort<Brain, O, true>>(isPacked)
                    : maybePacked<SignShort<Brain, O, false>>(isPacked);
  }
}

template <typename L, bool IsMax, bool Nan, bool Xorsign, bool Ftz>
Handler extremeCount(bool isPacked, bool isTriple) {
  using Two = Extreme<L, IsMax, Nan, Xorsign, Ftz, 2>;
  using Three = Extreme<L, IsMax, Nan, Xorsign, Ftz, 3>;
  if constexpr (L::canonical == canonicalNan16)
    return maybePacked<Two>(isPacked);
  return isTriple ? &runLanes<Three> : &runLanes<Two>;
}
template <typename L, bool IsMax, bool Nan, bool Xorsign>
Handler extremeFtz(bool ftz, bool isPacked, bool isTriple) {
  return ftz ? extremeCount<L, IsMax, Nan, Xorsign, true>(isPacked, isTriple)
             : extremeCount<L, IsMax, Nan, Xorsign, false>(isPacked, isTriple);
}
template <typename L, bool IsMax>
Handler extremeOf(const FloatForm &form, bool isPacked, bool isTriple) {
  if (form.nan)
    return form.xorsign
               ? extremeFtz<L, IsMax, true, true>(form.ftz, isPacked, isTriple)
               : extremeFtz<L, IsMax, true, false>(form.ftz, isPacked,
                                                   isTriple);
  return form.xorsign
             ? extremeFtz<L, IsMax, false, true>(form.ftz, isPacked, isTriple)
             : extremeFtz<L, IsMax, false, false>(form.ftz, isPacked, isTriple);
}

template <bool IsMax>
Handler anyExtreme(const FloatForm &form, Type type, bool isTriple) {
  switch (type) {
  case Type::F32:
    return extremeOf<LayoutSingle, IsMax>(form, false, isTriple);
  case Type::F64:
    return extremeOf<LayoutDouble, IsMax>(form, false, false);
  case Type::F16:
  case Type::F16x2:
    return extremeOf<LayoutHalf, IsMax>(form, type == Type::F16x2, false);
  default:
    return extremeOf<LayoutBrain, IsMax>(form, type == Type::BF16x2, false);
  }
}

inline Handler arithmeticHandler(Arithmetic operation, const FloatForm &form,
                                 Type type, bool isTriple) {
  switch (operation) {
  case Arithmetic::Add:
    return anyArithmetic<Arithmetic::Add>(form, type);
  case Arithmetic::Sub:
    return anyArithmetic<Arithmetic::Sub>(form, type);
  case Arithmetic::Mul:
    return anyArithmetic<Arithmetic::Mul>(form, type);
  case Arithmetic::Fma:
    return anyArithmetic<Arithmetic::Fma>(form, type);
  case Arithmetic::Div:
    if (form.approx)
      return form.ftz ? &runLanes<DivApprox<true>>
                      : &runLanes<DivApprox<false>>;
    return arithmeticOf<Arithmetic::Div>(form, type);
  case Arithmetic::Sqrt:
    return arithmeticOf<Arithmetic::Sqrt>(form, type);
  case Arithmetic::Neg:
    return signOf<Arithmetic::Neg>(form, type);
  case Arithmetic::Abs:
    return signOf<Arithmetic::Abs>(form, type);
  case Arithmetic::Copysign:
    return type == Type::F64 ? &runLanes<SignDouble<Arithmetic::Copysign>>
                             : &runLanes<SignSingle<Arithmetic::Copysign>>;
  case Arithmetic::Min:
    return anyExtreme<false>(form, type, isTriple);
  case Arithmetic::Max:
    return anyExtreme<true>(form, type, isTriple);
  }
  __builtin_unreachable();
}
