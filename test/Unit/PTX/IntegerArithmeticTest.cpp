// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Arithmetic of integers against 128 bits: what is expected is calculated from
// wide numbers and then cut to a width.
//
//===----------------------------------------------------------------------===//

#include "IntegerTest.h"

namespace fsr::ptx {
namespace {

using Wide = __int128;

/// The number that the lower bits are.
Wide number(uint64_t bits, unsigned width, bool isSigned) {
  Wide value = Wide(bits & (~uint64_t(0) >> (64 - width)));
  if (isSigned && value >> (width - 1) & 1)
    value -= Wide(1) << width;
  return value;
}
Wide clamp(Wide value, Wide least, Wide most) {
  return value < least ? least : value > most ? most : value;
}
Wide clamp32(Wide value) { return clamp(value, INT32_MIN, INT32_MAX); }

class IntegerArithmeticTest : public IntegerTest {
protected:
  using Function = std::function<Wide(Wide a, Wide b, Wide c)>;
  struct Kind {
    std::string name;
    unsigned width;
    bool isSigned;
  };
  static std::vector<Kind> kinds(llvm::ArrayRef<unsigned> widths) {
    std::vector<Kind> all;
    for (unsigned width : widths)
      for (bool isSigned : {false, true})
        all.push_back(
            {(isSigned ? "s" : "u") + std::to_string(width), width, isSigned});
    return all;
  }
  static std::string textOf(const std::string &opcode, unsigned sources) {
    std::string text = opcode + " %x";
    for (unsigned i = 0; i < sources; ++i)
      text += std::string(", %") + "abcd"[i];
    return text + ";";
  }
  /// The opcode for each kind, with `sources` operands of it.
  void checkKinds(const std::string &opcode, llvm::ArrayRef<Kind> kinds,
                  unsigned sources, const Function &function) {
    for (const Kind &kind : kinds) {
      auto n = [&](uint64_t bits) {
        return number(bits, kind.width, kind.isSigned);
      };
      check(textOf(opcode + "." + kind.name, sources),
            std::vector<unsigned>(sources, kind.width), kind.width,
            [&](uint64_t a, uint64_t b, uint64_t c, uint64_t) {
              return uint64_t(function(n(a), n(b), n(c)));
            });
    }
  }
};

TEST_F(IntegerArithmeticTest, Sums) {
  auto all = kinds({16, 32, 64});
  checkKinds("add", all, 2, [](Wide a, Wide b, Wide) { return a + b; });
  checkKinds("sub", all, 2, [](Wide a, Wide b, Wide) { return a - b; });
  Kind word{"s32", 32, true};
  checkKinds("add.sat", word, 2,
             [](Wide a, Wide b, Wide) { return clamp32(a + b); });
  checkKinds("sub.sat", word, 2,
             [](Wide a, Wide b, Wide) { return clamp32(a - b); });
}

TEST_F(IntegerArithmeticTest, Products) {
  for (const Kind &kind : kinds({16, 32, 64})) {
    unsigned width = kind.width;
    auto high = [&](Wide a, Wide b) {
      // The product of two numbers without a sign may fill all 128 bits.
      return Wide((unsigned __int128)(a) * (unsigned __int128)(b)) >> width;
    };
    checkKinds("mul.lo", kind, 2, [](Wide a, Wide b, Wide) {
      return Wide((unsigned __int128)(a) * (unsigned __int128)(b));
    });
    checkKinds("mul.hi", kind, 2,
               [&](Wide a, Wide b, Wide) { return high(a, b); });
    checkKinds("mad.lo", kind, 3, [](Wide a, Wide b, Wide c) {
      return Wide((unsigned __int128)(a) * (unsigned __int128)(b) +
                  (unsigned __int128)(c));
    });
    checkKinds("mad.hi", kind, 3,
               [&](Wide a, Wide b, Wide c) { return high(a, b) + c; });
    if (width == 64)
      continue;
    check("mul.wide." + kind.name + " %x, %a, %b;", {width, width}, 2 * width,
          [&](uint64_t a, uint64_t b, uint64_t, uint64_t) {
            return uint64_t(number(a, width, kind.isSigned) *
                            number(b, width, kind.isSigned));
          });
    check("mad.wide." + kind.name + " %x, %a, %b, %c;",
          {width, width, 2 * width}, 2 * width,
          [&](uint64_t a, uint64_t b, uint64_t c, uint64_t) {
            return uint64_t(number(a, width, kind.isSigned) *
                                number(b, width, kind.isSigned) +
                            Wide(c));
          });
  }
  checkKinds("mad.hi.sat", Kind{"s32", 32, true}, 3,
             [](Wide a, Wide b, Wide c) { return clamp32((a * b >> 32) + c); });
}

TEST_F(IntegerArithmeticTest, ProductsOf24Bits) {
  for (const Kind &kind : kinds({32})) {
    auto product = [&](Wide a, Wide b) {
      return number(uint64_t(a), 24, kind.isSigned) *
             number(uint64_t(b), 24, kind.isSigned);
    };
    checkKinds("mul24.lo", kind, 2,
               [&](Wide a, Wide b, Wide) { return product(a, b); });
    checkKinds("mul24.hi", kind, 2,
               [&](Wide a, Wide b, Wide) { return product(a, b) >> 16; });
    checkKinds("mad24.lo", kind, 3,
               [&](Wide a, Wide b, Wide c) { return product(a, b) + c; });
    checkKinds("mad24.hi", kind, 3, [&](Wide a, Wide b, Wide c) {
      return (product(a, b) >> 16) + c;
    });
  }
  checkKinds("mad24.hi.sat", Kind{"s32", 32, true}, 3,
             [](Wide a, Wide b, Wide c) {
               Wide product = number(uint64_t(a), 24, true) *
                              number(uint64_t(b), 24, true);
               Wide high = number(uint64_t(product >> 16), 32, true);
               return clamp32(high + c);
             });
}

TEST_F(IntegerArithmeticTest, DivisionsAndRemainders) {
  auto all = kinds({16, 32, 64});
  checkKinds("div", all, 2,
             [](Wide a, Wide b, Wide) { return b == 0 ? -1 : a / b; });
  checkKinds("rem", all, 2,
             [](Wide a, Wide b, Wide) { return b == 0 ? -1 : a % b; });
}

TEST_F(IntegerArithmeticTest, DifferencesAdded) {
  checkKinds("sad", kinds({16, 32, 64}), 3, [](Wide a, Wide b, Wide c) {
    return c + (a < b ? b - a : a - b);
  });
}

TEST_F(IntegerArithmeticTest, Extremes) {
  auto all = kinds({16, 32, 64});
  checkKinds("min", all, 2,
             [](Wide a, Wide b, Wide) { return std::min(a, b); });
  checkKinds("max", all, 2,
             [](Wide a, Wide b, Wide) { return std::max(a, b); });
  Kind word{"s32", 32, true};
  checkKinds("min.relu", word, 2, [](Wide a, Wide b, Wide) {
    return std::max<Wide>(std::min(a, b), 0);
  });
  check("min.s32.relu %x, %a, %b;", {32, 32}, 32,
        [](uint64_t a, uint64_t b, uint64_t, uint64_t) {
          return uint64_t(
              std::max<int32_t>(std::min(int32_t(a), int32_t(b)), 0));
        });
  checkKinds("max.relu", word, 2, [](Wide a, Wide b, Wide) {
    return std::max<Wide>(std::max(a, b), 0);
  });
}

TEST_F(IntegerArithmeticTest, HalvesOfWords) {
  auto checkHalves = [&](const std::string &opcode, bool isSigned,
                         std::function<Wide(Wide, Wide)> function) {
    check(opcode + " %x, %a, %b;", {32, 32}, 32,
          [&](uint64_t a, uint64_t b, uint64_t, uint64_t) {
            uint64_t word = 0;
            for (unsigned at : {0, 16})
              word |= (uint64_t(function(number(a >> at, 16, isSigned),
                                         number(b >> at, 16, isSigned))) &
                       0xffff)
                      << at;
            return word;
          });
  };
  auto least = [](Wide a, Wide b) { return std::min(a, b); };
  auto most = [](Wide a, Wide b) { return std::max(a, b); };
  for (bool isSigned : {false, true}) {
    std::string type = isSigned ? ".s16x2" : ".u16x2";
    checkHalves("add" + type, isSigned, [](Wide a, Wide b) { return a + b; });
    checkHalves("min" + type, isSigned, least);
    checkHalves("max" + type, isSigned, most);
  }
  checkHalves("min.relu.s16x2", true,
              [&](Wide a, Wide b) { return std::max<Wide>(least(a, b), 0); });
  checkHalves("max.relu.s16x2", true,
              [&](Wide a, Wide b) { return std::max<Wide>(most(a, b), 0); });
  // Where CUDA's headers have it.
  checkHalves("max.s16x2.relu", true,
              [&](Wide a, Wide b) { return std::max<Wide>(most(a, b), 0); });
}

TEST_F(IntegerArithmeticTest, Signs) {
  for (unsigned width : {16, 32, 64}) {
    Kind kind{"s" + std::to_string(width), width, true};
    checkKinds("neg", kind, 1, [](Wide a, Wide, Wide) { return -a; });
    checkKinds("abs", kind, 1,
               [](Wide a, Wide, Wide) { return a < 0 ? -a : a; });
  }
}

TEST_F(IntegerArithmeticTest, AllNumbersOf16Bits) {
  std::vector<Operands> operands;
  for (unsigned a = 0; a < 0x10000; ++a)
    operands.push_back({a, (a * 40503u >> 3) & 0xffff, 0, 0});
  auto checkAll = [&](const std::string &opcode, Function function,
                      bool isSigned) {
    check(opcode + " %x, %a, %b;", {16, 16}, {16}, operands,
          [&](const Operands &in) -> Results {
            return {uint64_t(function(number(in[0], 16, isSigned),
                                      number(in[1], 16, isSigned), 0)),
                    0};
          });
  };
  for (bool isSigned : {false, true}) {
    std::string type = isSigned ? ".s16" : ".u16";
    checkAll(
        "mul.hi" + type, [](Wide a, Wide b, Wide) { return a * b >> 16; },
        isSigned);
    checkAll(
        "div" + type, [](Wide a, Wide b, Wide) { return b == 0 ? -1 : a / b; },
        isSigned);
    checkAll(
        "max" + type, [](Wide a, Wide b, Wide) { return std::max(a, b); },
        isSigned);
  }
}

TEST_F(IntegerArithmeticTest, DotProducts) {
  for (bool signedA : {false, true}) {
    for (bool signedB : {false, true}) {
      std::string types =
          std::string(signedA ? ".s32" : ".u32") + (signedB ? ".s32" : ".u32");
      check("dp4a" + types + " %x, %a, %b, %c;", {32, 32, 32}, 32,
            [&](uint64_t a, uint64_t b, uint64_t c, uint64_t) {
              Wide sum = Wide(c);
              for (unsigned at = 0; at < 32; at += 8)
                sum +=
                    number(a >> at, 8, signedA) * number(b >> at, 8, signedB);
              return uint64_t(sum);
            });
      for (bool high : {false, true})
        check("dp2a" + std::string(high ? ".hi" : ".lo") + types +
                  " %x, %a, %b, %c;",
              {32, 32, 32}, 32,
              [&](uint64_t a, uint64_t b, uint64_t c, uint64_t) {
                unsigned from = high ? 16 : 0;
                return uint64_t(Wide(c) +
                                number(a, 16, signedA) *
                                    number(b >> from, 8, signedB) +
                                number(a >> 16, 16, signedA) *
                                    number(b >> (from + 8), 8, signedB));
              });
    }
  }
}

TEST_F(IntegerArithmeticTest, CarriesOfSums) {
  using Unsigned = unsigned __int128;
  auto join = [](uint64_t low, uint64_t high) {
    return Unsigned(high) << 64 | low;
  };
  auto split = [](Unsigned value) -> Results {
    return {uint64_t(value), uint64_t(value >> 64)};
  };
  auto all = tuples({64, 64, 64, 64});
  check("add.cc.u64 %x, %a, %b;\naddc.u64 %y, %c, %d;", {64, 64, 64, 64},
        {64, 64}, all, [&](const Operands &in) {
          return split(join(in[0], in[2]) + join(in[1], in[3]));
        });
  check("sub.cc.s64 %x, %a, %b;\nsubc.s64 %y, %c, %d;", {64, 64, 64, 64},
        {64, 64}, all, [&](const Operands &in) {
          return split(join(in[0], in[2]) - join(in[1], in[3]));
        });
  // The flag goes through a whole chain, and out of it.
  check("add.cc.u32 %x, %a, %b;\naddc.cc.u32 %x, %c, %d;\n"
        "addc.u32 %y, 0, 0;",
        {32, 32, 32, 32}, {32, 32}, tuples({32, 32, 32, 32}),
        [](const Operands &in) -> Results {
          uint64_t sum = (in[0] | in[2] << 32), carry = 0;
          carry = __builtin_add_overflow(sum, in[1] | in[3] << 32, &sum);
          return {sum >> 32, carry};
        });
  check("sub.cc.u32 %x, %a, %b;\nsubc.cc.u32 %x, %c, %d;\n"
        "subc.u32 %y, 0, 0;",
        {32, 32, 32, 32}, {32, 32}, tuples({32, 32, 32, 32}),
        [](const Operands &in) -> Results {
          uint64_t left = in[0] | in[2] << 32, right = in[1] | in[3] << 32;
          return {(left - right) >> 32, left < right ? ~uint64_t(0) : 0};
        });
  // A difference carries where it does not borrow, and takes a carry so.
  auto words = tuples({32, 32, 32, 32});
  check("sub.cc.u32 %x, %a, %b;\naddc.u32 %y, %c, %d;", {32, 32, 32, 32},
        {32, 32}, words, [](const Operands &in) -> Results {
          return {in[0] - in[1], in[2] + in[3] + (in[0] >= in[1])};
        });
  check("add.cc.u32 %x, %a, %b;\nsubc.u32 %y, %c, %d;", {32, 32, 32, 32},
        {32, 32}, words, [](const Operands &in) -> Results {
          return {in[0] + in[1], in[2] - in[3] - !((in[0] + in[1]) >> 32)};
        });
}

TEST_F(IntegerArithmeticTest, CarriesOfProducts) {
  // 64 bits of a product and a sum, by words.
  check("mad.lo.cc.u32 %x, %a, %b, %c;\nmadc.hi.u32 %y, %a, %b, %d;",
        {32, 32, 32, 32}, {32, 32}, tuples({32, 32, 32, 32}),
        [](const Operands &in) -> Results {
          uint64_t sum = in[0] * in[1] + (in[2] | in[3] << 32);
          return {sum & 0xffffffff, sum >> 32};
        });
  check("mad.hi.cc.s32 %x, %a, %b, %c;\nmadc.lo.cc.u32 %x, %a, %b, %d;\n"
        "addc.u32 %y, 0, 0;",
        {32, 32, 32, 32}, {32, 32}, tuples({32, 32, 32, 32}),
        [](const Operands &in) -> Results {
          auto high =
              uint32_t(number(in[0], 32, true) * number(in[1], 32, true) >> 32);
          uint64_t first = uint64_t(high) + in[2];
          uint64_t second =
              (in[0] * in[1] & 0xffffffff) + in[3] + (first >> 32);
          return {second, second >> 32};
        });
  check("mad.lo.cc.u64 %x, %a, %b, %c;\nmadc.hi.cc.u64 %y, %a, %b, %d;",
        {64, 64, 64, 64}, {64, 64}, tuples({64, 64, 64, 64}),
        [](const Operands &in) -> Results {
          auto sum = (unsigned __int128)(in[0]) * in[1] + in[2];
          return {uint64_t(sum), uint64_t(sum >> 64) + in[3]};
        });
}

TEST_F(IntegerArithmeticTest, FormsThatThereAreNot) {
  auto expectRefused = [&](llvm::StringRef text, llvm::StringRef part) {
    EXPECT_NE(refusal(text, {32, 32, 32}, {32}).find(part), std::string::npos)
        << text.str() << ": " << refusal(text, {32, 32, 32}, {32});
  };
  expectRefused("add.sat.u32 %x, %a, %b;", ".u32");
  expectRefused("add.b32 %x, %a, %b;", ".b32");
  expectRefused("add.u32.sat %x, %a, %b;", ".sat");
  expectRefused("sub.s16x2 %x, %a, %b;", ".s16x2");
  expectRefused("mul.u32 %x, %a, %b;", ".lo, .hi or .wide");
  expectRefused("mul.wide.u64 %l0, %l1, %l2;", ".u64");
  expectRefused("mad.lo.sat.s32 %x, %a, %b, %c;", ".sat");
  expectRefused("mul24.wide.u32 %l0, %a, %b;", ".lo or .hi");
  expectRefused("min.relu.u32 %x, %a, %b;", ".u32");
  expectRefused("min.u32.relu %x, %a, %b;", ".relu");
  expectRefused("abs.u32 %x, %a;", ".u32");
  expectRefused("addc.u16 %h0, %h1, %h2;", ".u16");
  expectRefused("add.u32 %x, %a;", "operands");
  expectRefused("add.u32 %x, %a, -%b;", "negated");
  expectRefused("add.u64 %l0, %a, %b;", "width");
  expectRefused("dp2a.u32.u32 %x, %a, %b, %c;", ".lo or .hi");
}

} // namespace
} // namespace fsr::ptx
