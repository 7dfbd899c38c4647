// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Functions that PTX gives within a bound; see FloatMath.inl for how it is
// included. All are computed in double precision to some 30 bits and rounded,
// so that they stay well within what PTX allows; a GPU's own bits differ.
// Their values at zeros, infinities and NaNs are those that PTX lists.
//
//===----------------------------------------------------------------------===//

/// 2^x; from -1100 to 1100.
inline double exp2Double(double x) {
  // The low bits of the sum are the nearest integer.
  double shifted = x + 0x1.8p52;
  double part = (x - (shifted - 0x1.8p52)) * 0x1.62e42fefa39efp-1;
  double sum = 1.0 / 40320;
  sum = sum * part + 1.0 / 5040;
  sum = sum * part + 1.0 / 720;
  sum = sum * part + 1.0 / 120;
  sum = sum * part + 1.0 / 24;
  sum = sum * part + 1.0 / 6;
  sum = sum * part + 0.5;
  sum = sum * part + 1.0;
  sum = sum * part + 1.0;
  return asDouble(bitsOf(sum) + (bitsOf(shifted) << 52));
}

struct FunctionEx2 {
  static float of(float x) {
    double clamped = x > 200 ? 200.0 : x < -200 ? -200.0 : double(x);
    return x == x ? float(exp2Double(clamped)) : x;
  }
};

struct FunctionLg2 {
  static float of(float x) {
    uint64_t bits = bitsOf(double(x));
    // From the root of a half to that of two.
    uint64_t moved = bits + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
    double exponent =
        asDouble((moved >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
    double fraction =
        asDouble(bits - ((moved & 0xfff0000000000000) - 0x3ff0000000000000));
    double s = (fraction - 1) / (fraction + 1), square = s * s;
    double sum = 1.0 / 11;
    sum = sum * square + 1.0 / 9;
    sum = sum * square + 1.0 / 7;
    sum = sum * square + 1.0 / 5;
    sum = sum * square + 1.0 / 3;
    sum = sum * square + 1.0;
    float value = float(exponent + sum * s * 0x1.71547652b82fep1);
    value = x == 0 ? -__builtin_inff() : value;
    value = x == __builtin_inff() ? x : value;
    return x >= 0 ? value : __builtin_nanf("");
  }
};

/// Sine, or cosine where `Turn` is 1; of what is less than a million.
template <unsigned Turn>
inline float circular(float single) {
  double x = single;
  double shifted = x * 0x1.45f306dc9c883p-1 + 0x1.8p52;
  double turns = shifted - 0x1.8p52;
  // A quarter of a turn in two parts; the first times a turn is exact.
  double r = (x - turns * 0x1.921fb544p0) - turns * 0x1.0b4611a626331p-34;
  double square = r * r;
  double sine = -1.0 / 39916800;
  sine = sine * square + 1.0 / 362880;
  sine = sine * square - 1.0 / 5040;
  sine = sine * square + 1.0 / 120;
  sine = sine * square - 1.0 / 6;
  sine = sine * square * r + r;
  double cosine = 1.0 / 479001600;
  cosine = cosine * square - 1.0 / 3628800;
  cosine = cosine * square + 1.0 / 40320;
  cosine = cosine * square - 1.0 / 720;
  cosine = cosine * square + 1.0 / 24;
  cosine = cosine * square - 0.5;
  cosine = cosine * square + 1.0;
  uint64_t quadrant = bitsOf(shifted) + Turn;
  double value = quadrant & 1 ? cosine : sine;
  float result = float(asDouble(bitsOf(value) ^ (quadrant & 2) << 62));
  return Turn == 0 && single == 0 ? single : result;
}

struct FunctionTanh {
  static float of(float x) {
    double size = asFloat(bitsOf(x) & 0x7fffffff);
    double clamped = size > 20 ? 20.0 : size;
    double power = exp2Double(clamped * 0x1.71547652b82fep1);
    double large = (power - 1) / (power + 1);
    double square = size * size;
    double small = size + size * square * (square * (2.0 / 15) - 1.0 / 3);
    float value = float(size < 0.03 ? small : large);
    // No more bits than a GPU gives, or what is too coarse there would pass here.
    uint32_t bits = bitsOf(value), rounded = (bits + 0x800) & ~0xfffu;
    rounded = bits < 0x00800000 ? bits : rounded;
    value = asFloat(rounded | (bitsOf(x) & 0x80000000));
    return x == x ? value : x;
  }
};

struct FunctionRsqrt {
  static float of(float x) {
    return float(1.0 / __builtin_elementwise_sqrt(double(x)));
  }
};

template <typename Function, bool Ftz>
struct ApproximateSingle {
  using Cell = uint32_t;
  static constexpr unsigned arity = 1;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t, uint32_t) {
    if constexpr (Ftz)
      a = flush32(a);
    uint32_t bits = canonical32(Function::of(asFloat(a)));
    return Ftz ? flush32(bits) : bits;
  }
};
template <typename Function, typename Format, bool Ftz>
struct ApproximateShort {
  using Cell = uint32_t;
  static constexpr unsigned arity = 1;
  [[gnu::always_inline]] static uint32_t apply(uint32_t a, uint32_t, uint32_t) {
    if constexpr (Ftz)
      a = flush16<Format>(a);
    uint32_t bits = Format::template narrow<Rounding::Nearest>(
        Function::of(Format::widen(a)));
    return Ftz ? flush16<Format>(bits) : bits;
  }
};

/// Sine and cosine. Where a lane's argument is large, the host's function.
template <bool IsCosine, bool Ftz>
void runCircular(Warp &warp, const Op &op, LaneMask active) {
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  const uint32_t *a = warp.lanes<uint32_t>(op.operand(0));
  uint32_t values[warpLanes];
  uint32_t large = 0;
#pragma clang loop vectorize(assume_safety) unroll(disable)
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    uint32_t bits = Ftz ? flush32(a[lane]) : a[lane];
    uint32_t value = canonical32(circular<IsCosine>(asFloat(bits)));
    values[lane] = Ftz ? flush32(value) : value;
    large |= (bits & 0x7fffffff) > 0x49742400;
  }
  if (large)
    for (LaneMask rest = active; rest; rest &= rest - 1) {
      unsigned lane = unsigned(__builtin_ctz(rest));
      if ((a[lane] & 0x7fffffff) > 0x49742400)
        values[lane] = canonical32(largeCircular(asFloat(a[lane]), IsCosine));
    }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = unsigned(__builtin_ctz(rest));
    to[lane] = values[lane];
  }
}

/// f64: only the upper half of the argument is looked at, and only that of the
/// result is not zero.
template <bool IsRsqrt>
struct ApproximateUpper {
  using Cell = uint64_t;
  static constexpr unsigned arity = 1;
  static uint64_t flush(uint64_t bits) {
    return bits & 0x7ff0000000000000 ? bits : bits & (uint64_t(1) << 63);
  }
  [[gnu::always_inline]] static uint64_t apply(uint64_t a, uint64_t, uint64_t) {
    double x = asDouble(flush(a & 0xffffffff00000000));
    double value = 1.0 / (IsRsqrt ? __builtin_elementwise_sqrt(x) : x);
    return value == value ? flush(bitsOf(value)) & 0xffffffff00000000
                          : 0x7fffffff00000000;
  }
};
struct RsqrtDouble {
  using Cell = uint64_t;
  static constexpr unsigned arity = 1;
  [[gnu::always_inline]] static uint64_t apply(uint64_t a, uint64_t, uint64_t) {
    double value = 1.0 / __builtin_elementwise_sqrt(asDouble(a));
    return value == value ? bitsOf(value) : propagatedNan64(a);
  }
};

// From a form to its handler. -------------------------------------------------

template <typename Function>
Handler singleFunction(bool ftz) {
  return ftz ? &runLanes<ApproximateSingle<Function, true>>
             : &runLanes<ApproximateSingle<Function, false>>;
}
template <typename Function>
Handler anyFunction(Type type, bool ftz) {
  using OfHalf = ApproximateShort<Function, Half, false>;
  using OfBrain = ApproximateShort<Function, Brain, false>;
  using OfBrainFtz = ApproximateShort<Function, Brain, true>;
  switch (type) {
  case Type::F16:
    return &runLanes<OfHalf>;
  case Type::F16x2:
    return &runLanes<Packed16<OfHalf>>;
  case Type::BF16:
    return ftz ? &runLanes<OfBrainFtz> : &runLanes<OfBrain>;
  case Type::BF16x2:
    return ftz ? &runLanes<Packed16<OfBrainFtz>> : &runLanes<Packed16<OfBrain>>;
  default:
    return singleFunction<Function>(ftz);
  }
}

inline Handler approximationHandler(Approximation function, Type type,
                                    bool ftz) {
  switch (function) {
  case Approximation::Rcp:
    return &runLanes<ApproximateUpper<false>>;
  case Approximation::Rsqrt:
    if (type == Type::F64)
      return ftz ? &runLanes<ApproximateUpper<true>> : &runLanes<RsqrtDouble>;
    return singleFunction<FunctionRsqrt>(ftz);
  case Approximation::Ex2:
    return anyFunction<FunctionEx2>(type, ftz);
  case Approximation::Lg2:
    return singleFunction<FunctionLg2>(ftz);
  case Approximation::Sin:
    return ftz ? &runCircular<false, true> : &runCircular<false, false>;
  case Approximation::Cos:
    return ftz ? &runCircular<true, true> : &runCircular<true, false>;
  case Approximation::Tanh:
    return anyFunction<FunctionTanh>(type, false);
  }
  __builtin_unreachable();
}
