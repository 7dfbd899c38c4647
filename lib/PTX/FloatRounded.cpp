// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// f64 rounded in the directed modes, which the host can do only by changing the
// thread's environment: significands are 128-bit integers, and what does not
// fit is remembered as one bit.
//
//===----------------------------------------------------------------------===//

#include "Float.h"

namespace fsr::ptx {

namespace {

using Wide = unsigned __int128;

constexpr uint64_t signBit = uint64_t(1) << 63;
constexpr uint64_t infinity = 0x7ff0000000000000;

struct Unpacked {
  bool isNegative = false, isNan = false, isInfinite = false, isZero = false;
  uint64_t significand = 0; ///< With 53 bits, the top one set.
  int exponent = 0;         ///< Of the last bit.
};

Unpacked unpack(uint64_t bits) {
  Unpacked value;
  value.isNegative = bits >> 63;
  uint64_t magnitude = bits & ~signBit;
  value.isNan = magnitude > infinity;
  value.isInfinite = magnitude == infinity;
  value.isZero = magnitude == 0;
  uint64_t fraction = magnitude & ((uint64_t(1) << 52) - 1);
  int exponent = int(magnitude >> 52);
  if (value.isNan || value.isInfinite || value.isZero)
    return value;
  if (exponent) {
    value.significand = fraction | (uint64_t(1) << 52);
    value.exponent = exponent - 1075;
    return value;
  }
  int shift = __builtin_clzll(fraction) - 11;
  value.significand = fraction << shift;
  value.exponent = -1074 - shift;
  return value;
}

unsigned bitsIn(Wide value) {
  uint64_t high = uint64_t(value >> 64), low = uint64_t(value);
  if (high)
    return 128 - unsigned(__builtin_clzll(high));
  return low ? 64 - unsigned(__builtin_clzll(low)) : 0;
}

/// `significand` * 2^`exponent`, and a bit more where `isMore`.
uint64_t pack(bool isNegative, Wide significand, int exponent, bool isMore,
              Rounding mode) {
  uint64_t sign = isNegative ? signBit : 0;
  if (significand == 0)
    return sign;
  int top = int(bitsIn(significand)) + exponent; // Value below 2^top.
  int last = top - 53 < -1074 ? -1074 : top - 53;
  int shift = last - exponent;
  uint64_t kept;
  bool half = false, rest = isMore;
  if (shift <= 0) {
    kept = uint64_t(significand << -shift);
  } else if (shift > 128) {
    kept = 0;
    rest = true;
  } else {
    kept = shift == 128 ? 0 : uint64_t(significand >> shift);
    half = (significand >> (shift - 1)) & 1;
    rest |= (significand & ((Wide(1) << (shift - 1)) - 1)) != 0;
  }
  bool isInexact = half || rest;
  bool up = false;
  switch (mode) {
  case Rounding::Zero:
    break;
  case Rounding::Down:
    up = isNegative && isInexact;
    break;
  case Rounding::Up:
    up = !isNegative && isInexact;
    break;
  default:
    up = half && (rest || (kept & 1));
  }
  kept += up;
  if (kept >> 53) {
    kept >>= 1;
    ++last;
  }
  if (last + 53 > 1024) {
    bool toInfinity = mode == Rounding::Nearest ||
                      (mode == Rounding::Down && isNegative) ||
                      (mode == Rounding::Up && !isNegative);
    return sign | (toInfinity ? infinity : infinity - 1);
  }
  if (!(kept >> 52))
    return sign | kept; // Subnormal.
  return sign | (uint64_t(last + 1075) << 52) |
         (kept & ((uint64_t(1) << 52) - 1));
}

} // namespace

uint64_t roundedFma64(uint64_t first, uint64_t second, uint64_t third,
                      Rounding mode) {
  Unpacked a = unpack(first), b = unpack(second), c = unpack(third);
  bool isNegative = a.isNegative != b.isNegative;
  if (a.isNan || b.isNan || c.isNan || (a.isInfinite && b.isZero) ||
      (a.isZero && b.isInfinite))
    return propagatedNan64(second, third, first);
  if (a.isInfinite || b.isInfinite) {
    if (c.isInfinite && c.isNegative != isNegative)
      return generatedNan64;
    return (isNegative ? signBit : 0) | infinity;
  }
  if (c.isInfinite)
    return third;
  bool hasProduct = !a.isZero && !b.isZero;
  if (!hasProduct) {
    if (!c.isZero)
      return third;
    bool sign =
        isNegative == c.isNegative ? isNegative : mode == Rounding::Down;
    return sign ? signBit : 0;
  }
  // Both with their top bit at 125, so that a sum still fits.
  Wide product = Wide(a.significand) * b.significand;
  int exponent = a.exponent + b.exponent;
  int up = 126 - int(bitsIn(product));
  product <<= up;
  exponent -= up;
  if (c.isZero)
    return pack(isNegative, product, exponent, false, mode);
  Wide other = Wide(c.significand) << 73;
  int otherExponent = c.exponent - 73;
  bool otherNegative = c.isNegative;
  if (otherExponent > exponent ||
      (otherExponent == exponent && other > product)) {
    std::swap(product, other);
    std::swap(exponent, otherExponent);
    std::swap(isNegative, otherNegative);
  }
  int shift = exponent - otherExponent;
  bool isMore = false;
  if (shift > 127) {
    other = 0;
    isMore = true;
  } else if (shift) {
    isMore = (other & ((Wide(1) << shift) - 1)) != 0;
    other >>= shift;
  }
  if (isNegative == otherNegative)
    return pack(isNegative, product + other, exponent, isMore, mode);
  Wide difference = product - other - isMore;
  if (difference == 0 && !isMore)
    return mode == Rounding::Down ? signBit : 0;
  return pack(isNegative, difference, exponent, isMore, mode);
}

uint64_t roundedAdd64(uint64_t a, uint64_t b, Rounding mode) {
  return roundedFma64(a, 0x3ff0000000000000, b, mode);
}

uint64_t roundedMul64(uint64_t a, uint64_t b, Rounding mode) {
  // Adding a zero of the product's sign changes nothing.
  return roundedFma64(a, b, (a ^ b) & signBit, mode);
}

uint64_t roundedDiv64(uint64_t first, uint64_t second, Rounding mode) {
  Unpacked a = unpack(first), b = unpack(second);
  uint64_t sign = (first ^ second) & signBit;
  if (a.isNan || b.isNan || (a.isInfinite && b.isInfinite) ||
      (a.isZero && b.isZero))
    return propagatedNan64(first, second);
  if (a.isInfinite || b.isZero)
    return sign | infinity;
  if (a.isZero || b.isInfinite)
    return sign;
  Wide dividend = Wide(a.significand) << 70;
  return pack(sign != 0, dividend / b.significand, a.exponent - 70 - b.exponent,
              dividend % b.significand != 0, mode);
}

uint64_t roundedSqrt64(uint64_t bits, Rounding mode) {
  Unpacked a = unpack(bits);
  if (a.isNan || (a.isNegative && !a.isZero))
    return propagatedNan64(bits);
  if (a.isZero || a.isInfinite)
    return bits;
  int shift = 70 + ((a.exponent - 70) & 1);
  Wide rest = Wide(a.significand) << shift;
  Wide root = 0;
  for (Wide bit = Wide(1) << 126; bit; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return pack(false, root, (a.exponent - shift) / 2, rest != 0, mode);
}

} // namespace fsr::ptx
