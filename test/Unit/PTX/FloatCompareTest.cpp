// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Comparisons of all pairs of special numbers, with what is combined with them
// and made of them, against their definition on exact values.
//
//===----------------------------------------------------------------------===//

#include "FloatHarness.h"

using namespace fsr::ptx;
using namespace fsr::ptx::test;

namespace {

struct FloatType {
  const char *name;
  const Format &format;
  bool hasFtz;
};
const FloatType types[] = {{"f16", half, true},
                           {"bf16", brain, false},
                           {"f32", singles, true},
                           {"f64", doubles, false}};

const char *const comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",
                                   "ge",  "equ", "neu", "ltu", "leu",
                                   "gtu", "geu", "num", "nan"};

bool holds(llvm::StringRef comparison, __float128 a, __float128 b) {
  bool isUnordered = a != a || b != b;
  if (comparison == "num" || comparison == "nan")
    return isUnordered == (comparison == "nan");
  bool orUnordered = comparison.size() == 3;
  if (isUnordered)
    return orUnordered;
  llvm::StringRef stem = comparison.take_front(2);
  return stem == "eq"   ? a == b
         : stem == "ne" ? a != b
         : stem == "lt" ? a < b
         : stem == "le" ? a <= b
         : stem == "gt" ? a > b
                        : a >= b;
}

struct Pairs {
  explicit Pairs(const Format &format) {
    Column values = specials(format);
    for (uint64_t x : values)
      for (uint64_t y : values) {
        a.push_back(x);
        b.push_back(y);
        third.push_back((x ^ y ^ (x * y >> 5)) & 1);
      }
  }
  Column a, b, third;
};

TEST(FloatCompare, EveryComparisonOfAllSpecials) {
  for (const FloatType &type : types) {
    Pairs pairs(type.format);
    for (const char *comparison : comparisons)
      for (bool ftz : {false, true}) {
        if (ftz && !type.hasFtz)
          continue;
        std::string modifiers =
            std::string(comparison) + (ftz ? ".ftz" : "") + ".";
        Column got =
            FloatRunner("setp." + modifiers + type.name, 3)({pairs.a, pairs.b});
        Column number = FloatRunner("set." + modifiers + "u32." + type.name,
                                    3)({pairs.a, pairs.b});
        for (size_t i = 0; i < pairs.a.size(); ++i) {
          auto read = [&](uint64_t bits) {
            return type.format.value(ftz ? type.format.flushed(bits) : bits);
          };
          bool wanted = holds(comparison, read(pairs.a[i]), read(pairs.b[i]));
          ASSERT_EQ(got[i], wanted)
              << modifiers << type.name << std::hex << " of " << pairs.a[i]
              << " " << pairs.b[i];
          ASSERT_EQ(number[i], wanted ? 0xffffffff : 0);
        }
      }
  }
}

TEST(FloatCompare, CombinedWithAThirdAndInTwoResults) {
  Pairs pairs(singles);
  struct Combination {
    const char *name;
    bool (*apply)(bool, bool);
  };
  for (const Combination &one :
       {Combination{"and", [](bool x, bool y) { return x && y; }},
        Combination{"or", [](bool x, bool y) { return x || y; }},
        Combination{"xor", [](bool x, bool y) { return x != y; }}}) {
    FloatRunner run(std::string("setp.lt.") + one.name + ".f32", 4, 0, 0, true);
    for (bool isNegated : {false, true}) {
      std::vector<Column> sources = {pairs.a, pairs.b, pairs.third};
      Column first = run(sources, 0, isNegated);
      Column second = run(sources, 1, isNegated);
      for (size_t i = 0; i < pairs.a.size(); ++i) {
        bool is = single(pairs.a[i]) < single(pairs.b[i]);
        bool third = bool(pairs.third[i]) != isNegated;
        ASSERT_EQ(first[i], one.apply(is, third)) << one.name;
        ASSERT_EQ(second[i], one.apply(!is, third)) << one.name;
      }
    }
  }
  FloatRunner both("setp.ge.f64", 3, 0, 0, true);
  EXPECT_EQ(both.one({bits(2.0), bits(1.0)}, 0), 1u);
  EXPECT_EQ(both.one({bits(2.0), bits(1.0)}, 1), 0u);
  EXPECT_EQ(both.one({bits(2.0), doubles.nan}, 0), 0u);
  EXPECT_EQ(both.one({bits(2.0), doubles.nan}, 1), 1u);
}

TEST(FloatCompare, PairsOfShortsAreTwoComparisons) {
  for (const FloatType &type : {types[0], types[1]}) {
    Pairs pairs(type.format);
    size_t count = pairs.a.size();
    Column a, b;
    for (size_t i = 0; i < count; ++i) {
      a.push_back(pairs.a[i] | pairs.a[count - 1 - i] << 16);
      b.push_back(pairs.b[i] | pairs.b[count - 1 - i] << 16);
    }
    std::string packed = std::string(type.name) + "x2";
    Column alone = FloatRunner(std::string("setp.leu.and.") + type.name,
                               4)({pairs.a, pairs.b, Column(count, 1)});
    FloatRunner run("setp.leu.and." + packed, 4, 0, 0, true);
    Column low = run({a, b, Column(count, 1)}, 0);
    Column high = run({a, b, Column(count, 1)}, 1);
    Column mask = FloatRunner("set.leu.u32." + packed, 3)({a, b});
    Column numbers = FloatRunner("set.leu." + packed + "." + packed, 3)({a, b});
    uint64_t one = type.format.infinity() / 2 & type.format.infinity();
    for (size_t i = 0; i < count; ++i) {
      bool first = alone[i], second = alone[count - 1 - i];
      ASSERT_EQ(low[i], first);
      ASSERT_EQ(high[i], second);
      ASSERT_EQ(mask[i], (first ? 0xffffu : 0) | (second ? 0xffff0000u : 0));
      ASSERT_EQ(numbers[i], (first ? one : 0) | (second ? one << 16 : 0));
    }
  }
}

TEST(FloatCompare, NumbersOfComparisons) {
  EXPECT_EQ(FloatRunner("set.gt.f32.f32", 3).one({bits(2.f), bits(1.f)}),
            bits(1.f));
  EXPECT_EQ(FloatRunner("set.gt.f32.f32", 3).one({bits(1.f), bits(2.f)}), 0u);
  EXPECT_EQ(FloatRunner("set.gt.s32.f64", 3).one({bits(2.), bits(1.)}),
            0xffffffffu);
  EXPECT_EQ(FloatRunner("set.eq.or.u32.f32", 4).one({bits(2.f), bits(1.f), 1}),
            0xffffffffu);
  EXPECT_EQ(FloatRunner("set.gt.f16.f16", 3).one({0x4000, 0x3c00}), 0x3c00u);
  EXPECT_EQ(FloatRunner("set.gt.bf16.bf16", 3).one({0x4000, 0x3f80}), 0x3f80u);
}

TEST(FloatCompare, Selections) {
  FloatRunner select("selp.f32", 4), wideSelect("selp.f64", 4);
  EXPECT_EQ(select.one({1, 2, 1}), 1u);
  EXPECT_EQ(select.one({1, 2, 0}), 2u);
  EXPECT_EQ(wideSelect.one({uint64_t(1) << 40, 2, 1}), uint64_t(1) << 40);
  EXPECT_EQ(wideSelect({{1}, {2}, {1}}, 0, true)[0], 2u);
  FloatRunner byFloat("slct.f32.f32", 4), flushed("slct.ftz.f32.f32", 4);
  EXPECT_EQ(byFloat.one({1, 2, 0x80000000}), 1u);
  EXPECT_EQ(byFloat.one({1, 2, 0x80000001}), 2u);
  EXPECT_EQ(flushed.one({1, 2, 0x80000001}), 1u);
  EXPECT_EQ(byFloat.one({1, 2, 0x7fc00000}), 2u);
  EXPECT_EQ(FloatRunner("slct.u64.f32", 4).one({uint64_t(1) << 40, 2, 0}),
            uint64_t(1) << 40);
  EXPECT_EQ(FloatRunner("slct.f32.s32", 4).one({1, 2, 0xffffffff}), 2u);
}

TEST(FloatCompare, TestsOfKinds) {
  struct Row {
    const char *test;
    unsigned expected; ///< Of 0, subnormal, one, infinity, NaN; a bit each.
  };
  for (const Row &row : {Row{"finite", 0b00111}, Row{"infinite", 0b01000},
                         Row{"number", 0b01111}, Row{"notanumber", 0b10000},
                         Row{"normal", 0b00101}, Row{"subnormal", 0b00010}})
    for (uint64_t sign : {uint64_t(0), uint64_t(1)}) {
      std::string text = std::string("testp.") + row.test;
      Column singlesGot = FloatRunner(text + ".f32", 2)(
          {{sign << 31, 7 | sign << 31, bits(1.f) | sign << 31,
            0x7f800000 | sign << 31, 0x7f800001 | sign << 31}});
      Column doublesGot = FloatRunner(text + ".f64", 2)(
          {{sign << 63, 7 | sign << 63, bits(1.) | sign << 63,
            doubles.infinity() | sign << 63,
            (doubles.infinity() + 1) | sign << 63}});
      for (unsigned i = 0; i < 5; ++i) {
        EXPECT_EQ(singlesGot[i], row.expected >> i & 1) << text << i;
        EXPECT_EQ(doublesGot[i], row.expected >> i & 1) << text << i;
      }
    }
}

TEST(FloatCompare, FormsThatThereAreNot) {
  for (const char *text :
       {"setp.f32", "setp.lo.f32", "setp.lt.ftz.f64", "setp.lt.f16x2",
        "set.lt.f32", "set.lt.u64.f32", "set.lt.f16x2.f16", "selp.f16",
        "slct.f32.f64", "testp.f32", "testp.normal.f16", "setp.lt.sat.f32"})
    EXPECT_FALSE(FloatRunner(text, 3).isSupported() ||
                 FloatRunner(text, 4).isSupported() ||
                 FloatRunner(text, 2).isSupported())
        << text;
}

} // namespace
