// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Arithmetic of all formats in all roundings. f32 and f64 are held against the
// host's own units with its rounding mode set; the short formats against exact
// values in 113 bits.
//
//===----------------------------------------------------------------------===//

#include "FloatHarness.h"

#include <cfenv>
#include <cmath>

using namespace fsr::ptx;
using namespace fsr::ptx::test;

namespace {

struct Mode {
  const char *name;
  Rounding rounding;
  int host;
};
const Mode modes[] = {{".rn", Rounding::Nearest, FE_TONEAREST},
                      {".rz", Rounding::Zero, FE_TOWARDZERO},
                      {".rm", Rounding::Down, FE_DOWNWARD},
                      {".rp", Rounding::Up, FE_UPWARD}};

/// Of the host, in its present mode; volatile so that it is done then.
template <typename T>
T onHost(llvm::StringRef opcode, T first, T second, T third) {
  volatile T a = first, b = second, c = third;
  volatile T result;
  if (opcode == "add")
    result = a + b;
  else if (opcode == "sub")
    result = a - b;
  else if (opcode == "mul")
    result = a * b;
  else if (opcode == "div")
    result = a / b;
  else if (opcode == "sqrt")
    result = std::sqrt(a);
  else
    result = std::fma(a, b, c);
  return result;
}

unsigned sourcesOf(llvm::StringRef opcode) {
  return opcode == "sqrt" ? 1 : opcode == "fma" || opcode == "mad" ? 3 : 2;
}

/// f64 hands a NaN on: that of the operand which comes first in an order of the
/// operation's own.
uint64_t nanOf(const Format &format, llvm::StringRef opcode, uint64_t a,
               uint64_t b, uint64_t c) {
  if (format.bits != 64)
    return format.nan;
  llvm::SmallVector<uint64_t, 3> order = {b, c, a};
  if (opcode == "div")
    order = {a, b};
  else if (opcode == "sqrt")
    order = {a};
  else if (sourcesOf(opcode) == 2)
    order = {b, a};
  for (uint64_t one : order)
    if (format.isNan(one))
      return one | 0x0008000000000000;
  return format.nan;
}

/// Whether a product or quotient is below the least normal number when rounded
/// with exponents that have no end: then `.ftz` takes it.
bool isTiny(llvm::StringRef opcode, uint64_t a, uint64_t b, uint64_t c,
            Rounding mode) {
  __float128 x = singles.value(a), y = singles.value(b), exact;
  if (opcode == "mul")
    exact = x * y;
  else if (opcode == "div")
    exact = x / y;
  else if (sourcesOf(opcode) == 3)
    exact = exactSum(x * y, singles.value(c));
  else
    return false;
  uint64_t scaled = singles.round(exact * 0x1p64, mode);
  return (scaled & ~singles.sign()) < bits(0x1p-62f);
}

template <typename T>
void checkAgainstHost(const Format &format, const char *type) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr size_t count = 6000;
  Column a = mixture(format, count, 1), b = mixture(format, count, 2),
         c = mixture(format, count, 3);
  for (const char *opcode : {"add", "sub", "mul", "fma", "mad", "div", "sqrt"})
    for (const Mode &mode : modes)
      for (const char *more : {"", ".ftz", ".sat", ".ftz.sat"}) {
        llvm::StringRef extra = more;
        bool ftz = extra.contains("ftz"), sat = extra.contains("sat");
        bool isShort = llvm::StringRef(opcode) == "div" ||
                       llvm::StringRef(opcode) == "sqrt";
        if ((sizeof(T) == 8 && !extra.empty()) || (isShort && sat))
          continue;
        std::string text = std::string(opcode) + mode.name + more + "." + type;
        unsigned sources = sourcesOf(opcode);
        FloatRunner run(text, sources + 1);
        std::vector<Column> columns = {a, b, c};
        columns.resize(sources);
        Column got = run(columns);
        std::fesetround(mode.host);
        Column wanted(count);
        for (size_t i = 0; i < count; ++i) {
          auto read = [&](const Column &from) {
            return __builtin_bit_cast(
                T, Bits(ftz ? format.flushed(from[i]) : from[i]));
          };
          T value = onHost<T>(opcode, read(a), read(b), read(c));
          wanted[i] = value != value
                          ? nanOf(format, opcode, a[i], b[i], c[i])
                          : uint64_t(__builtin_bit_cast(Bits, value));
        }
        std::fesetround(FE_TONEAREST);
        for (size_t i = 0; i < count; ++i) {
          uint64_t &pattern = wanted[i];
          if (ftz) {
            pattern = format.flushed(pattern);
            if ((pattern & ~format.sign()) == 0x00800000 &&
                isTiny(opcode, format.flushed(a[i]), format.flushed(b[i]),
                       format.flushed(c[i]), mode.rounding))
              pattern &= format.sign();
          }
          if (sat)
            pattern = format.isNan(pattern) || pattern & format.sign()
                          ? 0
                          : std::min<uint64_t>(pattern, bits(1.f));
        }
        for (size_t i = 0; i < count; ++i)
          ASSERT_EQ(got[i], wanted[i]) << text << std::hex << " of " << a[i]
                                       << " " << b[i] << " " << c[i];
      }
}

TEST(FloatArithmetic, SinglesAreTheHostsInAllRoundings) {
  checkAgainstHost<float>(singles, "f32");
}

TEST(FloatArithmetic, DoublesAreTheHostsInAllRoundings) {
  checkAgainstHost<double>(doubles, "f64");
}

TEST(FloatArithmetic, PairsOfSinglesAreTwoSingles) {
  Column a = mixture(singles, 640, 1), b = mixture(singles, 640, 2),
         c = mixture(singles, 640, 3);
  auto paired = [](const Column &from) {
    Column to;
    for (size_t i = 0; i + 1 < from.size(); i += 2)
      to.push_back(from[i] | from[i + 1] << 32);
    return to;
  };
  for (const char *form : {"add.rn", "sub.rz.ftz", "mul.rm", "fma.rp.ftz"}) {
    std::string opcode = form;
    std::vector<Column> one = {a, b, c};
    one.resize(sourcesOf(llvm::StringRef(opcode).take_front(3)));
    std::vector<Column> two;
    for (const Column &column : one)
      two.push_back(paired(column));
    unsigned operands = unsigned(one.size()) + 1;
    EXPECT_EQ(FloatRunner(opcode + ".f32x2", operands)(two),
              paired(FloatRunner(opcode + ".f32", operands)(one)))
        << form;
  }
}

void checkShort(const Format &format, const std::string &type, bool hasFlags) {
  constexpr size_t count = 20000;
  Column a = mixture(format, count, 4), b = mixture(format, count, 5),
         c = mixture(format, count, 6);
  uint64_t one = format.infinity() / 2 & format.infinity();
  for (const char *opcode : {"add", "sub", "mul", "fma"})
    for (const char *more : {"", ".ftz", ".sat", ".ftz.sat", ".relu"}) {
      llvm::StringRef extra = more;
      bool ftz = extra.contains("ftz"), sat = extra.contains("sat"),
           relu = extra.contains("relu");
      bool isFma = llvm::StringRef(opcode) == "fma";
      if ((!hasFlags && (ftz || sat)) || (relu && !isFma))
        continue;
      std::string stem = std::string(opcode) + ".rn" + more + "." + type;
      unsigned sources = sourcesOf(opcode);
      std::vector<Column> columns = {a, b, c};
      columns.resize(sources);
      Column got = FloatRunner(stem, sources + 1)(columns);
      for (Column &column : columns)
        for (size_t i = 0; i < count; ++i)
          column[i] |= column[count - 1 - i] << 16 & 0xffff0000;
      Column pairs = FloatRunner(stem + "x2", sources + 1)(columns);
      for (size_t i = 0; i < count; ++i) {
        auto read = [&](const Column &from) {
          return format.value(ftz ? format.flushed(from[i]) : from[i]);
        };
        __float128 x = read(a), y = read(b), exact;
        if (isFma)
          exact = exactSum(x * y, read(c));
        else
          exact = llvm::StringRef(opcode) == "mul"   ? x * y
                  : llvm::StringRef(opcode) == "sub" ? exactSum(x, -y)
                                                     : exactSum(x, y);
        uint64_t wanted = format.round(exact, Rounding::Nearest);
        if (ftz) { // As if exponents had no end.
          uint64_t scaled = format.round(exact * 0x1p10, Rounding::Nearest);
          if ((scaled & ~format.sign()) < uint64_t(11) << format.fraction)
            wanted &= format.sign();
        }
        if (sat)
          wanted = wanted > format.infinity() ? 0 : std::min(wanted, one);
        if (relu && wanted & format.sign())
          wanted = 0;
        ASSERT_EQ(got[i], wanted)
            << stem << std::hex << " of " << a[i] << " " << b[i] << " " << c[i];
        ASSERT_EQ(pairs[i] & 0xffff, wanted) << stem << "x2";
        ASSERT_EQ(pairs[count - 1 - i] >> 16, wanted) << stem << "x2";
      }
    }
}

TEST(FloatArithmetic, HalvesAreRoundedOnce) { checkShort(half, "f16", true); }

TEST(FloatArithmetic, BrainFloatsAreRoundedOnce) {
  checkShort(brain, "bf16", false);
}

TEST(FloatArithmetic, BrainFloatsOfOrdinarySizeAreRoundedOnce) {
  std::mt19937_64 random(21);
  std::vector<Column> columns(3);
  for (unsigned i = 0; i < 64000; ++i)
    for (Column &column : columns) // From 2^-16 to 2^16; few bits: ties.
      column.push_back(((0x3780 + random() % 0x1000) & (i % 2 ? ~15u : ~0u)) |
                       (random() & 0x8000));
  for (unsigned i = 0; i < 64000; i += 3) // Far below what it is added to.
    columns[2][i] = (columns[2][i] & 0x8000) | (i % 0x80);
  Column got = FloatRunner("fma.rn.bf16", 4)(columns);
  Column relu = FloatRunner("fma.rn.relu.bf16", 4)(columns);
  std::vector<Column> pairs = columns;
  for (Column &column : pairs)
    for (uint64_t &one : column)
      one |= one << 16;
  Column packed = FloatRunner("fma.rn.bf16x2", 4)(pairs);
  for (size_t i = 0; i < got.size(); ++i) {
    uint64_t wanted = brain.round(
        exactSum(brain.value(columns[0][i]) * brain.value(columns[1][i]),
                 brain.value(columns[2][i])),
        Rounding::Nearest);
    ASSERT_EQ(got[i], wanted) << std::hex << columns[0][i] << " "
                              << columns[1][i] << " " << columns[2][i];
    ASSERT_EQ(relu[i], wanted & 0x8000 ? 0 : wanted);
    ASSERT_EQ(packed[i], wanted | wanted << 16);
  }
}

/// The smaller or larger as the PTX manual tells it.
uint64_t extremeOf(const Format &format, uint64_t a, uint64_t b, bool isMax,
                   bool nan) {
  bool nanA = format.isNan(a), nanB = format.isNan(b);
  if ((nanA && nanB) || (nan && (nanA || nanB)))
    return format.bits == 64 ? b | 0x0008000000000000 : format.nan;
  if (nanA || nanB)
    return nanA ? b : a;
  __float128 x = format.value(a), y = format.value(b);
  if (x == y) // Zeros of two signs.
    return isMax ? a & b : a | b;
  return (x < y) != isMax ? a : b;
}

TEST(FloatArithmetic, MinimumAndMaximumOfAllSpecials) {
  struct Of {
    const Format &format;
    const char *type;
    bool hasFtz, hasMore;
  };
  for (const Of &of :
       {Of{half, "f16", true, true}, Of{brain, "bf16", false, true},
        Of{singles, "f32", true, true}, Of{doubles, "f64", false, false}}) {
    const Format &format = of.format;
    Column values = specials(format), a, b;
    for (uint64_t x : values)
      for (uint64_t y : values) {
        a.push_back(x);
        b.push_back(y);
      }
    for (bool isMax : {false, true})
      for (bool ftz : {false, true})
        for (bool nan : {false, true})
          for (bool xorsign : {false, true}) {
            if ((ftz && !of.hasFtz) || ((nan || xorsign) && !of.hasMore))
              continue;
            std::string text = std::string(isMax ? "max" : "min") +
                               (ftz ? ".ftz" : "") + (nan ? ".NaN" : "") +
                               (xorsign ? ".xorsign.abs." : ".") + of.type;
            Column got = FloatRunner(text, 3)({a, b});
            for (size_t i = 0; i < a.size(); ++i) {
              uint64_t x = ftz ? format.flushed(a[i]) : a[i];
              uint64_t y = ftz ? format.flushed(b[i]) : b[i];
              uint64_t sign = (x ^ y) & format.sign();
              if (xorsign) {
                x &= ~format.sign();
                y &= ~format.sign();
              }
              uint64_t wanted = extremeOf(format, x, y, isMax, nan);
              if (xorsign && !format.isNan(wanted))
                wanted |= sign;
              ASSERT_EQ(got[i], wanted)
                  << text << std::hex << " of " << a[i] << " " << b[i];
            }
          }
  }
}

TEST(FloatArithmetic, MinimumOfThree) {
  EXPECT_EQ(FloatRunner("min.f32", 4).one({bits(3.f), bits(-1.f), bits(2.f)}),
            bits(-1.f));
  EXPECT_EQ(FloatRunner("max.f32", 4).one({0x7fc00001, bits(-1.f), bits(2.f)}),
            bits(2.f));
  EXPECT_EQ(
      FloatRunner("max.NaN.f32", 4).one({bits(1.f), bits(-1.f), 0x7fc00001}),
      0x7fffffffu);
}

TEST(FloatArithmetic, SignsAndApproximateQuotients) {
  EXPECT_EQ(FloatRunner("neg.f32", 2).one({bits(1.f)}), bits(-1.f));
  EXPECT_EQ(FloatRunner("abs.ftz.f32", 2).one({0x80000001}), 0u);
  EXPECT_EQ(FloatRunner("neg.ftz.f32", 2).one({0x80000001}), 0u);
  EXPECT_EQ(FloatRunner("neg.f64", 2).one({bits(2.0)}), bits(-2.0));
  EXPECT_EQ(FloatRunner("neg.f16x2", 2).one({0x3c00bc00}), 0xbc003c00u);
  EXPECT_EQ(FloatRunner("abs.bf16x2", 2).one({0xbf80ffff}), 0x3f807fffu);
  EXPECT_EQ(FloatRunner("copysign.f32", 3).one({bits(-0.f), bits(3.f)}),
            bits(-3.f));
  EXPECT_EQ(FloatRunner("copysign.f64", 3).one({bits(1.0), bits(-3.0)}),
            bits(3.0));
  FloatRunner approx("div.approx.f32", 3);
  EXPECT_TRUE(approx.op().isApproximate);
  EXPECT_EQ(approx.one({bits(1.f), bits(4.f)}), bits(.25f));
  EXPECT_EQ(approx.one({bits(1e38f), 0x7f000000}), 0u);
  EXPECT_EQ(approx.one({bits(-INFINITY), 0x7f000000}), 0x7fffffffu);
  EXPECT_EQ(FloatRunner("div.full.f32", 3).one({bits(1e38f), bits(2e38f)}),
            bits(.5f));
}

TEST(FloatArithmetic, FormsThatThereAreNot) {
  for (const char *text : {"add.rna.f32",
                           "add.rz.f16",
                           "add.sat.f64",
                           "add.ftz.f64",
                           "fma.f32",
                           "fma.rn.sat.bf16",
                           "fma.rn.relu.f32",
                           "div.f32",
                           "div.rn.approx.f32",
                           "div.full.f64",
                           "mul.rn.relu.f16",
                           "min.f32x2",
                           "min.NaN.f64",
                           "add.f16.f32",
                           "mad.rn.f16",
                           "copysign.f16",
                           "add.xorsign.abs.f32",
                           "min.xorsign.f32",
                           "sqrt.rn.f16",
                           "add.approx.f32",
                           "add.eq.f32",
                           "add.noftz.f16",
                           "div.rni.f32"})
    EXPECT_FALSE(FloatRunner(text, 3).isSupported()) << text;
}

} // namespace
