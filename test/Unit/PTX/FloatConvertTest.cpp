// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Conversions: f16 exhaustively, all other pairs of types at the ends of their
// ranges and at random, against exact values in 113 bits.
//
//===----------------------------------------------------------------------===//

#include "FloatHarness.h"

#include <cmath>

using namespace fsr::ptx;
using namespace fsr::ptx::test;

namespace {

struct Mode {
  const char *name;
  Rounding rounding;
};
const Mode modes[] = {{"rn", Rounding::Nearest},
                      {"rz", Rounding::Zero},
                      {"rm", Rounding::Down},
                      {"rp", Rounding::Up}};

struct FloatType {
  const char *name;
  const Format &format;
};
const FloatType floats[] = {
    {"f16", half}, {"bf16", brain}, {"f32", singles}, {"f64", doubles}};

struct IntegerType {
  const char *name;
  unsigned bits;
  bool isSigned;

  __float128 least() const {
    return isSigned ? -__float128(uint64_t(1) << (bits - 1)) : __float128(0);
  }
  __float128 most() const {
    uint64_t all = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
    return __float128(isSigned ? all >> 1 : all);
  }
  __float128 value(uint64_t cell) const {
    uint64_t low = bits == 64 ? cell : cell & ((uint64_t(1) << bits) - 1);
    if (isSigned && low >> (bits - 1))
      return __float128(low) - (bits == 64 ? __float128(0x1p64)
                                           : __float128(uint64_t(1) << bits));
    return __float128(low);
  }
  /// The register of `width` bits that holds a value in range.
  uint64_t cell(__float128 value, unsigned width) const {
    uint64_t pattern = value < 0 ? -uint64_t(-value) : uint64_t(value);
    return width == 64 ? pattern : pattern & ((uint64_t(1) << width) - 1);
  }
};
const IntegerType integers[] = {{"u8", 8, false},   {"u16", 16, false},
                                {"u32", 32, false}, {"u64", 64, false},
                                {"s8", 8, true},    {"s16", 16, true},
                                {"s32", 32, true},  {"s64", 64, true}};

/// Registers have 16 bits at least.
unsigned registerBits(unsigned bits) { return bits < 16 ? 16 : bits; }

/// Rounded to a whole number, exactly.
__float128 integral(__float128 value, Rounding mode) {
  __float128 size = value < 0 ? -value : value;
  if (!(size < 0x1p64)) // Above, none of the formats has a fraction.
    return value;
  uint64_t whole = uint64_t(size);
  __float128 rest = size - __float128(whole);
  bool up = mode == Rounding::Nearest
                ? rest > 0.5 || (rest == 0.5 && (whole & 1))
            : mode == Rounding::Zero
                ? false
                : rest > 0 && (mode == Rounding::Down) == (value < 0);
  __float128 result = __float128(whole) + (up ? 1 : 0);
  return value < 0 ? -result : result;
}

/// A NaN: f64 hands on as much of the payload as fits, bf16 to f32 all of it;
/// all else has one.
uint64_t nanOf(const Format &to, const Format &from, uint64_t bits) {
  bool keeps = from.bits == 64 || to.bits == 64;
  if (!keeps && !(&from == &brain && &to == &singles))
    return to.nan;
  uint64_t payload = bits & ((uint64_t(1) << from.fraction) - 1);
  payload = to.fraction > from.fraction
                ? payload << (to.fraction - from.fraction)
                : payload >> (from.fraction - to.fraction);
  uint64_t quiet = keeps ? uint64_t(1) << (to.fraction - 1) : 0;
  return (bits & from.sign() ? to.sign() : 0) | to.infinity() | quiet | payload;
}

TEST(FloatConvert, AllHalvesWidenAndComeBack) {
  Column all, wanted;
  for (uint64_t i = 0; i < 65536; ++i) {
    all.push_back(i);
    wanted.push_back(half.isNan(i)
                         ? 0x7fffffff
                         : singles.round(half.value(i), Rounding::Nearest));
  }
  Column wide = FloatRunner("cvt.f32.f16", 2)({all});
  EXPECT_EQ(wide, wanted);
  for (const Mode &mode : modes) {
    Column back =
        FloatRunner(std::string("cvt.") + mode.name + ".f16.f32", 2)({wide});
    for (uint64_t i = 0; i < 65536; ++i)
      ASSERT_EQ(back[i], half.isNan(i) ? 0x7fff : i) << i;
  }
}

TEST(FloatConvert, HalvesFromAllAroundTheirTies) {
  Column from;
  for (uint64_t i = 0; i < 0x7c00; i += 3) {
    uint64_t at = singles.round(half.value(i), Rounding::Nearest);
    uint64_t next = i == 0x7bff
                        ? bits(65536.f)
                        : singles.round(half.value(i + 1), Rounding::Nearest);
    uint64_t middle = bits((single(at) + single(next)) / 2);
    for (uint64_t near : {at, middle, next})
      for (int by : {-1, 0, 1})
        if (near || by >= 0)
          from.push_back((near + by) | (i & 1) << 31);
  }
  for (const Mode &mode : modes) {
    std::string text = std::string("cvt.") + mode.name + ".f16.f32";
    Column got = FloatRunner(text, 2)({from});
    for (size_t i = 0; i < from.size(); ++i)
      ASSERT_EQ(got[i], half.round(singles.value(from[i]), mode.rounding))
          << text << std::hex << " of " << from[i];
  }
}

TEST(FloatConvert, BetweenFloats) {
  for (const FloatType &to : floats)
    for (const FloatType &from : floats)
      for (const Mode &mode : modes) {
        if (to.name == from.name)
          continue;
        Column values = mixture(from.format, 4000, 7);
        std::string text =
            std::string("cvt.") + mode.name + "." + to.name + "." + from.name;
        Column got = FloatRunner(text, 2)({values});
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(got[i], from.format.isNan(values[i])
                                ? nanOf(to.format, from.format, values[i])
                                : to.format.round(from.format.value(values[i]),
                                                  mode.rounding))
              << text << std::hex << " of " << values[i];
      }
}

TEST(FloatConvert, ToWholeNumbersOfTheSameType) {
  for (const FloatType &type : floats)
    for (const Mode &mode : modes) {
      Column values = mixture(type.format, 4000, 8);
      std::string text =
          std::string("cvt.") + mode.name + "i." + type.name + "." + type.name;
      Column got = FloatRunner(text, 2)({values});
      for (size_t i = 0; i < values.size(); ++i) {
        __float128 exact =
            integral(type.format.value(values[i]), mode.rounding);
        uint64_t wanted = type.format.round(exact, Rounding::Nearest);
        if (exact == 0)
          wanted = values[i] & type.format.sign();
        if (type.format.isNan(values[i]))
          wanted = nanOf(type.format, type.format, values[i]);
        ASSERT_EQ(got[i], wanted) << text << std::hex << " of " << values[i];
      }
    }
}

TEST(FloatConvert, FloatsToIntegers) {
  for (const FloatType &from : floats)
    for (const IntegerType &to : integers)
      for (const Mode &mode : modes) {
        Column values = mixture(from.format, 2000, 9);
        for (double edge : {0.5, 1.5, 127.5, 128.0, 255.5, 32767.5, 65535.5,
                            0x1p31, 0x1p31 - 0.5, 0x1p32 - 0.5, 0x1p63, 0x1p64})
          for (double sign : {1.0, -1.0})
            values.push_back(from.format.round(edge * sign, Rounding::Nearest));
        unsigned width = registerBits(to.bits);
        std::string text =
            std::string("cvt.") + mode.name + "i." + to.name + "." + from.name;
        Column got = FloatRunner(text, 2, width)({values});
        for (size_t i = 0; i < values.size(); ++i) {
          uint64_t wanted;
          if (from.format.isNan(values[i])) {
            bool isZero = from.format.bits != 64 && to.bits != 64;
            __float128 top = __float128(uint64_t(1) << (to.bits - 1));
            wanted = isZero ? 0 : to.cell(to.isSigned ? -top : top, width);
          } else {
            __float128 exact =
                integral(from.format.value(values[i]), mode.rounding);
            exact = exact < to.least() ? to.least() : exact;
            exact = exact > to.most() ? to.most() : exact;
            wanted = to.cell(exact, width);
          }
          ASSERT_EQ(got[i], wanted) << text << std::hex << " of " << values[i];
        }
      }
}

Column integerMixture(uint64_t seed) {
  std::mt19937_64 random(seed);
  Column all;
  for (unsigned shift = 0; shift < 64; ++shift)
    for (int by : {-1, 0, 1})
      for (uint64_t sign : {uint64_t(1), ~uint64_t(0)})
        all.push_back(sign * ((uint64_t(1) << shift) + by));
  for (unsigned i = 0; i < 2000; ++i)
    all.push_back(random() >> (random() % 64));
  for (unsigned i = 0; i < 500; ++i) // Ties of f32 and f64.
    all.push_back(((random() | 1) << 40) | (uint64_t(1) << (random() % 40)));
  return all;
}

TEST(FloatConvert, IntegersToFloats) {
  Column values = integerMixture(10);
  for (const IntegerType &from : integers)
    for (const FloatType &to : floats)
      for (const Mode &mode : modes) {
        std::string text =
            std::string("cvt.") + mode.name + "." + to.name + "." + from.name;
        Column got = FloatRunner(text, 2, 0, registerBits(from.bits))({values});
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(got[i],
                    to.format.round(from.value(values[i]), mode.rounding))
              << text << std::hex << " of " << values[i];
      }
}

TEST(FloatConvert, BetweenIntegers) {
  Column values = integerMixture(11);
  for (const IntegerType &from : integers)
    for (const IntegerType &to : integers)
      for (bool sat : {false, true})
        for (unsigned resultBits : {registerBits(to.bits), 64u})
          for (unsigned sourceBits : {registerBits(from.bits), 64u}) {
            std::string text = std::string(sat ? "cvt.sat." : "cvt.") +
                               to.name + "." + from.name;
            Column got = FloatRunner(text, 2, resultBits, sourceBits)({values});
            for (size_t i = 0; i < values.size(); ++i) {
              __float128 exact = from.value(values[i]);
              if (sat) {
                exact = exact < to.least() ? to.least() : exact;
                exact = exact > to.most() ? to.most() : exact;
              } else {
                exact = to.value(from.cell(exact, 64));
              }
              ASSERT_EQ(got[i], to.cell(exact, resultBits))
                  << text << std::hex << " of " << values[i];
            }
          }
}

TEST(FloatConvert, FlagsOfFloats) {
  FloatRunner ftz("cvt.ftz.f32.f32", 2), sat("cvt.sat.f32.f32", 2);
  EXPECT_EQ(ftz.one({0x80000001}), 0x80000000u);
  EXPECT_EQ(sat.one({bits(-3.f)}), 0u);
  EXPECT_EQ(sat.one({bits(3.f)}), bits(1.f));
  EXPECT_EQ(sat.one({0x7fc00000}), 0u);
  EXPECT_EQ(FloatRunner("cvt.rn.ftz.f32.f64", 2).one({bits(-1e-40)}),
            0x80000000u);
  EXPECT_EQ(FloatRunner("cvt.rpi.ftz.s32.f32", 2).one({1}), 0u);
  EXPECT_EQ(FloatRunner("cvt.rpi.s32.f32", 2).one({1}), 1u);
  EXPECT_EQ(FloatRunner("cvt.rn.relu.f16.f32", 2).one({bits(-3.f)}), 0u);
  EXPECT_EQ(FloatRunner("cvt.rn.satfinite.f16.f32", 2).one({bits(-1e9f)}),
            0xfbffu);
  EXPECT_EQ(FloatRunner("cvt.rn.sat.f16.f64", 2).one({bits(7.0)}), 0x3c00u);
  EXPECT_EQ(FloatRunner("cvt.rn.bf16x2.f32", 3).one({bits(1.f), bits(-2.f)}),
            0x3f80c000u);
  EXPECT_EQ(
      FloatRunner("cvt.rz.f16x2.f32", 3).one({bits(1e9f), bits(1.00001f)}),
      0x7bff3c00u);
  EXPECT_EQ(
      FloatRunner("cvt.rn.relu.bf16x2.f32", 3).one({bits(-1.f), 0xffc00000}),
      0x00007fffu);
}

TEST(FloatConvert, TensorFloats) {
  const Format tensor{19, 10, -126, 0x3ffff};
  Column values = mixture(singles, 4000, 12);
  for (const Mode &mode :
       {Mode{"rn", Rounding::Nearest}, Mode{"rz", Rounding::Zero},
        Mode{"rna", Rounding::NearestAway}}) {
    std::string text = std::string("cvt.") + mode.name + ".tf32.f32";
    Column got = FloatRunner(text, 2)({values});
    for (size_t i = 0; i < values.size(); ++i) {
      bool isAway = mode.rounding == Rounding::NearestAway;
      uint64_t nan = isAway ? values[i] & 0xffffe000 : 0x7fffe000;
      uint64_t wanted =
          singles.isNan(values[i])
              ? nan
              : tensor.round(singles.value(values[i]), mode.rounding) << 13;
      ASSERT_EQ(got[i], wanted) << text << std::hex << " of " << values[i];
    }
  }
}

/// A byte of an eight-bit format as PTX has them; e4m3 has no infinity.
double byteValue(uint64_t byte, bool isE4M3) {
  unsigned fraction = isE4M3 ? 3 : 2;
  int bias = isE4M3 ? 7 : 15;
  int exponent = int(byte & 0x7f) >> fraction;
  int low = int(byte) & ((1 << fraction) - 1);
  double size = exponent ? std::ldexp(1 + std::ldexp(low, -int(fraction)),
                                      exponent - bias)
                         : std::ldexp(low, 1 - bias - int(fraction));
  return byte & 0x80 ? -size : size;
}

TEST(FloatConvert, EightBitsFromAllHalves) {
  Column all, pairs;
  for (uint64_t i = 0; i < 65536; ++i)
    all.push_back(i);
  Column singlesOf = FloatRunner("cvt.f32.f16", 2)({all});
  for (bool isE4M3 : {true, false}) {
    uint64_t most = isE4M3 ? 0x7e : 0x7b;
    std::string name = isE4M3 ? "e4m3x2" : "e5m2x2";
    Column got = FloatRunner("cvt.rn.satfinite." + name + ".f16x2", 2)({all});
    Column other(all.size());
    Column fromSingles =
        FloatRunner("cvt.rn.satfinite." + name + ".f32", 3)({other, singlesOf});
    for (uint64_t i = 0; i < 65536; ++i) {
      double value = single(singlesOf[i]);
      uint64_t wanted = 0;
      if (value != value) {
        wanted = 0x7f;
      } else {
        double least = INFINITY;
        for (uint64_t byte = 0; byte <= most; ++byte) {
          double distance =
              std::fabs(byteValue(byte, isE4M3) - std::fabs(value));
          if (distance < least || (distance == least && !(byte & 1)))
            wanted = byte;
          least = std::min(least, distance);
        }
        if (std::isinf(value))
          wanted = most;
        wanted |= i >> 15 << 7;
      }
      ASSERT_EQ(got[i], wanted) << name << " of " << std::hex << i;
      ASSERT_EQ(fromSingles[i], wanted) << name << " of " << std::hex << i;
    }
    Column bytes, halves;
    for (uint64_t i = 0; i < 256; ++i)
      bytes.push_back(i | (255 - i) << 8);
    Column back = FloatRunner("cvt.rn.f16x2." + name, 2)({bytes});
    for (uint64_t i = 0; i < 256; ++i) {
      uint64_t low = i & 0x7f;
      uint64_t wanted =
          isE4M3 && low == 0x7f   ? 0x7fff
          : !isE4M3 && low > 0x7c ? 0x7fff
          : low == 0x7c && !isE4M3
              ? 0x7c00 | (i & 0x80) << 8
              : half.round(byteValue(i, isE4M3), Rounding::Nearest);
      ASSERT_EQ(back[i] & 0xffff, wanted) << name << " " << i;
      ASSERT_EQ(back[255 - i] >> 16, wanted) << name << " " << i;
    }
  }
}

TEST(FloatConvert, PacksOfIntegers) {
  EXPECT_EQ(FloatRunner("cvt.pack.sat.u16.s32", 3).one({uint32_t(-5), 70000}),
            0x0000ffffu);
  EXPECT_EQ(FloatRunner("cvt.pack.sat.s16.s32", 3).one({uint32_t(-70000), 7}),
            0x80000007u);
  EXPECT_EQ(FloatRunner("cvt.pack.sat.s8.s32.b32", 4)
                .one({7, uint32_t(-16), 0x12345678}),
            0x567807f0u);
}

TEST(FloatConvert, FormsThatThereAreNot) {
  for (const char *text : {"cvt.f32.f64",
                           "cvt.rn.s32.f32",
                           "cvt.f32.s32",
                           "cvt.rni.f32.s32",
                           "cvt.rni.f32.f64",
                           "cvt.rn.s32.s64",
                           "cvt.rna.f32.f64",
                           "cvt.rn.relu.f32.f64",
                           "cvt.rn.sat.bf16.f32",
                           "cvt.ftz.f64.f16",
                           "cvt.rn.e4m3x2.f32",
                           "cvt.rz.satfinite.e4m3x2.f32",
                           "cvt.rm.f16x2.f32",
                           "cvt.rn.f32",
                           "cvt.rn.rz.f16.f32",
                           "cvt.rs.f16x2.f32",
                           "cvt.rn.satfinite.f16x2.e4m3x2",
                           "cvt.pack.u16.s32",
                           "cvt.pack.sat.s4.s32",
                           "cvt.u4.s32"})
    EXPECT_FALSE(FloatRunner(text, 2).isSupported() &&
                 FloatRunner(text, 3).isSupported())
        << text;
}

} // namespace
