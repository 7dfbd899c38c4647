// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Numbers of the types that matrices have, for tests: random ones whose
// products and sums are exact in double, and what their bits stand for.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_PTX_TENSORTEST_H
#define FSR_TEST_UNIT_PTX_TENSORTEST_H

#include "KernelTest.h"

#include <cmath>
#include <random>

namespace fsr::ptx {

class TensorTest : public KernelTest {
protected:
  static unsigned bitsOf(Type type) {
    return type == Type::TF32 ? 32 : bitWidth(type);
  }

  static double eighth(uint32_t bits, int mantissa, int bias) {
    int exponent = int(bits & 0x7f) >> mantissa;
    double fraction = double(bits & ((1u << mantissa) - 1));
    double value = exponent ? std::ldexp((1 << mantissa) + fraction,
                                         exponent - bias - mantissa)
                            : std::ldexp(fraction, 1 - bias - mantissa);
    return bits & 0x80 ? -value : value;
  }

  static double half(uint32_t bits) {
    int exponent = int(bits >> 10 & 31);
    double fraction = double(bits & 0x3ff);
    double value = exponent ? std::ldexp(1024 + fraction, exponent - 25)
                            : std::ldexp(fraction, -24);
    return bits & 0x8000 ? -value : value;
  }

  static double single(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return double(value);
  }

  static double decode(Type type, uint64_t bits) {
    switch (type) {
    case Type::F16:
      return half(uint32_t(bits));
    case Type::BF16:
      return single(uint32_t(bits) << 16);
    case Type::TF32:
      return single(uint32_t(bits) & 0xffffe000);
    case Type::F32:
      return single(uint32_t(bits));
    case Type::E4M3:
      return eighth(uint32_t(bits), 3, 7);
    case Type::E5M2:
      return eighth(uint32_t(bits), 2, 15);
    case Type::S8:
      return int8_t(bits);
    case Type::U8:
      return uint8_t(bits);
    case Type::S32:
      return int32_t(bits);
    default: {
      double value;
      std::memcpy(&value, &bits, 8);
      return value;
    }
    }
  }

  /// The bits of a random number.
  uint64_t draw(Type type) {
    auto random = uint32_t(numbers());
    uint32_t sign = random >> 31;
    switch (type) {
    case Type::F16:
      return sign << 15 | (12 + random % 6) << 10 | (random >> 8 & 0x3e0);
    case Type::BF16:
      return sign << 15 | (124 + random % 6) << 7 | (random >> 8 & 0x7f);
    case Type::TF32:
      // The low 13 bits are not looked at.
      return sign << 31 | (124 + random % 6) << 23 | (random >> 8 & 0x7fffff);
    case Type::F32:
      return sign << 31 | (124 + random % 6) << 23 | (random & 0x7f0000);
    case Type::E4M3:
      return random % 0x7f | sign << 7;
    case Type::E5M2:
      // Small ones, so that sums are exact.
      return (random % 0x18 + 0x2c) | sign << 7;
    case Type::S8:
    case Type::U8:
      return random & 0xff;
    case Type::S32:
      return random % 2000 - 1000;
    default: {
      double value = double(int(random % 200) - 100) / 8;
      uint64_t bits;
      std::memcpy(&bits, &value, 8);
      return bits;
    }
    }
  }

  /// Elements lie one after the other from a word on.
  uint64_t element(Type type, size_t word, size_t index) const {
    unsigned bits = bitsOf(type);
    if (bits == 64)
      return words[word + index * 2] | uint64_t(words[word + index * 2 + 1])
                                           << 32;
    unsigned per = 32 / bits;
    uint32_t cell = words[word + index / per] >> index % per * bits;
    return bits == 32 ? cell : cell & ((1u << bits) - 1);
  }
  void setElement(Type type, size_t word, size_t index, uint64_t value) {
    unsigned bits = bitsOf(type);
    if (bits == 64) {
      words[word + index * 2] = uint32_t(value);
      words[word + index * 2 + 1] = uint32_t(value >> 32);
      return;
    }
    unsigned per = 32 / bits, shift = index % per * bits;
    uint32_t &cell = words[word + index / per];
    uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
    cell = (cell & ~(mask << shift)) | uint32_t(value) << shift;
  }

  std::mt19937 numbers{20};
};

} // namespace fsr::ptx

#endif // FSR_TEST_UNIT_PTX_TENSORTEST_H
