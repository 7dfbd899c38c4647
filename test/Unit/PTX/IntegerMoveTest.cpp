// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Comparisons, selections and moves.
//
//===----------------------------------------------------------------------===//

#include "IntegerTest.h"

namespace fsr::ptx {
namespace {

class IntegerMoveTest : public IntegerTest {
protected:
  static bool holds(llvm::StringRef comparison, __int128 a, __int128 b) {
    if (comparison == "eq")
      return a == b;
    if (comparison == "ne")
      return a != b;
    if (comparison == "lt" || comparison == "lo")
      return a < b;
    if (comparison == "le" || comparison == "ls")
      return a <= b;
    if (comparison == "gt" || comparison == "hi")
      return a > b;
    return a >= b;
  }
  static __int128 number(uint64_t bits, unsigned width, char kind) {
    if (kind == 's')
      return int64_t(bits << (64 - width)) >> (64 - width);
    return bits & maskOf(width);
  }
  /// Every comparison of every type.
  template <typename Visit>
  static void forComparisons(Visit visit) {
    for (unsigned width : {16, 32, 64})
      for (char kind : {'b', 'u', 's'})
        for (llvm::StringRef comparison :
             {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}) {
          bool isEquality = comparison == "eq" || comparison == "ne";
          bool isUnsigned = comparison.starts_with("h") || comparison == "lo" ||
                            comparison == "ls";
          if ((kind == 'b' && !isEquality) || (kind == 's' && isUnsigned))
            continue;
          visit(comparison, kind, width,
                std::string(1, kind) + std::to_string(width));
        }
  }
};

TEST_F(IntegerMoveTest, Comparisons) {
  forComparisons([&](llvm::StringRef comparison, char kind, unsigned width,
                     const std::string &type) {
    check("setp." + comparison.str() + "." + type + " %x, %a, %b;",
          {width, width}, 1,
          [&](uint64_t a, uint64_t b, uint64_t, uint64_t) -> uint64_t {
            return holds(comparison, number(a, width, kind),
                         number(b, width, kind));
          });
  });
}

TEST_F(IntegerMoveTest, ComparisonsGiveNumbers) {
  forComparisons([&](llvm::StringRef comparison, char kind, unsigned width,
                     const std::string &type) {
    check("set." + comparison.str() + ".u32." + type + " %x, %a, %b;",
          {width, width}, 32,
          [&](uint64_t a, uint64_t b, uint64_t, uint64_t) -> uint64_t {
            return holds(comparison, number(a, width, kind),
                         number(b, width, kind))
                       ? 0xffffffff
                       : 0;
          });
  });
  check("set.gt.f32.s32 %x, %a, %b;", {32, 32}, 32,
        [](uint64_t a, uint64_t b, uint64_t, uint64_t) -> uint64_t {
          return int32_t(a) > int32_t(b) ? 0x3f800000 : 0;
        });
  check("set.le.or.s32.s32 %x, %a, %b, !%c;", {32, 32, 1}, 32,
        [](uint64_t a, uint64_t b, uint64_t c, uint64_t) -> uint64_t {
          return int32_t(a) <= int32_t(b) || !c ? 0xffffffff : 0;
        });
}

TEST_F(IntegerMoveTest, ComparisonsCombine) {
  for (llvm::StringRef logic : {"and", "or", "xor"}) {
    for (bool negated : {false, true}) {
      auto combine = [=](bool is, bool other) {
        other ^= negated;
        return logic == "and"  ? is && other
               : logic == "or" ? is || other
                               : is != other;
      };
      for (llvm::StringRef comparison : {"lt", "ge", "eq", "le"})
        check("setp." + comparison.str() + "." + logic.str() +
                  ".s32 %x|%y, %a, %b, " + (negated ? "!" : "") + "%c;",
              {32, 32, 1}, {1, 1}, tuples({32, 32, 1}),
              [&](const Operands &in) -> Results {
                bool is = holds(comparison, int32_t(in[0]), int32_t(in[1]));
                return {combine(is, in[2]), combine(!is, in[2])};
              });
    }
  }
  check("setp.hi.u64 %x|%y, %a, %b;", {64, 64}, {1, 1}, tuples({64, 64}),
        [](const Operands &in) -> Results {
          return {in[0] > in[1], in[0] <= in[1]};
        });
  check("setp.ne.b16 _|%x, %a, 7;", {16}, {1}, tuples({16}),
        [](const Operands &in) -> Results { return {in[0] == 7, 0}; });
}

TEST_F(IntegerMoveTest, ComparisonsUnderGuards) {
  // Lanes that are not asked keep what they had.
  check("setp.eq.u32 %x, 1, 1;\nsetp.ne.u32 %q, %b, 0;\n"
        "@%q setp.lt.u32 %x, %a, 100;",
        {32, 32}, 1, [](uint64_t a, uint64_t b, uint64_t, uint64_t) {
          return uint64_t(b == 0 || a < 100);
        });
}

TEST_F(IntegerMoveTest, Selections) {
  for (unsigned width : {16, 32, 64}) {
    check(
        "selp.b" + std::to_string(width) + " %x, %a, %b, %c;",
        {width, width, 1}, width,
        [](uint64_t a, uint64_t b, uint64_t c, uint64_t) { return c ? a : b; });
    check("slct.u" + std::to_string(width) + ".s32 %x, %a, %b, %c;",
          {width, width, 32}, width,
          [](uint64_t a, uint64_t b, uint64_t c, uint64_t) {
            return int32_t(c) >= 0 ? a : b;
          });
  }
  check("selp.u32 %x, -1, 3, %a;", {1}, 32,
        [](uint64_t a, uint64_t, uint64_t, uint64_t) -> uint64_t {
          return a ? 0xffffffff : 3;
        });
}

TEST_F(IntegerMoveTest, WholeRegisters) {
  for (unsigned width : {16, 32, 64})
    for (char kind : {'b', 'u', 's'})
      check(std::string("mov.") + kind + std::to_string(width) + " %x, %a;",
            {width}, width,
            [](uint64_t a, uint64_t, uint64_t, uint64_t) { return a; });
  check("mov.pred %x, %a;", {1}, 1,
        [](uint64_t a, uint64_t, uint64_t, uint64_t) { return a; });
  check("mov.pred %x, 1;\n@%a mov.pred %x, 0;", {1}, 1,
        [](uint64_t a, uint64_t, uint64_t, uint64_t) { return !a; });
  check("mov.b64 %x, -2;", {32}, 64,
        [](uint64_t, uint64_t, uint64_t, uint64_t) { return ~uint64_t(1); });
  check("mov.u16 %x, -2;", {32}, 16,
        [](uint64_t, uint64_t, uint64_t, uint64_t) { return 0xfffe; });
  check("mov.f32 %x, 0f3fc00000;", {32}, 32,
        [](uint64_t, uint64_t, uint64_t, uint64_t) { return 0x3fc00000; });
  check("mov.f64 %x, 1.5;", {32}, 64,
        [](uint64_t, uint64_t, uint64_t, uint64_t) {
          return 0x3ff8000000000000;
        });
  check("mov.u32 %x, WARP_SZ;", {32}, 32,
        [](uint64_t, uint64_t, uint64_t, uint64_t) { return 32; });
}

TEST_F(IntegerMoveTest, VectorsPackedAndUnpacked) {
  check("mov.b64 %x, {%a, %b};", {32, 32}, 64,
        [](uint64_t a, uint64_t b, uint64_t, uint64_t) { return a | b << 32; });
  check("mov.b32 %x, {%a, %b};", {16, 16}, 32,
        [](uint64_t a, uint64_t b, uint64_t, uint64_t) { return a | b << 16; });
  check("mov.b64 %x, {%a, %b, %c, %d};", {16, 16, 16, 16}, 64,
        [](uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
          return a | b << 16 | c << 32 | d << 48;
        });
  check(
      "mov.b32 %x, {%a, -2};", {16}, 32,
      [](uint64_t a, uint64_t, uint64_t, uint64_t) { return a | 0xfffe0000; });
  check("mov.b64 {%x, %y}, %a;", {64}, {32, 32}, tuples({64}),
        [](const Operands &in) -> Results { return {in[0], in[0] >> 32}; });
  check("mov.b32 {%x, %y}, %a;", {32}, {16, 16}, tuples({32}),
        [](const Operands &in) -> Results { return {in[0], in[0] >> 16}; });
  check("mov.b64 {%x, %h0, _, %y}, %a;", {64}, {16, 16}, tuples({64}),
        [](const Operands &in) -> Results { return {in[0], in[0] >> 48}; });
  check("mov.b64 {_, %x}, %a;", {64}, 32,
        [](uint64_t a, uint64_t, uint64_t, uint64_t) { return a >> 32; });
  // Parts of eight bits, through each way.
  check(".reg .b8 %o<4>;\nmov.b32 {%o0, %o1, %o2, %o3}, %a;\n"
        "mov.b32 %x, {%o3, %o2, %o1, %o0};\nmov.b16 %y, {%o1, %o3};",
        {32}, {32, 16}, tuples({32}), [](const Operands &in) -> Results {
          return {__builtin_bswap32(uint32_t(in[0])),
                  (in[0] >> 8 & 0xff) | (in[0] >> 24 << 8)};
        });
  // A register among its own parts.
  check("mov.b64 {%r0, %r1}, %a;\nmov.b64 %x, {%r1, %r0};", {64}, 64,
        [](uint64_t a, uint64_t, uint64_t, uint64_t) {
          return a >> 32 | a << 32;
        });
}

TEST_F(IntegerMoveTest, WordsOf128Bits) {
  check(".reg .b128 %v, %w;\nmov.b128 %v, {%a, %b};\nmov.b128 %w, %v;\n"
        "mov.b128 {%x, %y}, %w;",
        {64, 64}, {64, 64}, tuples({64, 64}),
        [](const Operands &in) -> Results { return {in[0], in[1]}; });
  check(".reg .b128 %v;\nmov.b128 %v, {%a, %b, %c, %d};\n"
        "mov.b128 {%x, %y}, %v;",
        {32, 32, 32, 32}, {64, 64}, tuples({32, 32, 32, 32}),
        [](const Operands &in) -> Results {
          return {in[0] | in[1] << 32, in[2] | in[3] << 32};
        });
  check(".reg .b128 %v;\nmov.b128 %v, {%a, %b};\n"
        "mov.b128 {_, %r1, %r2, %r3}, %v;\nmov.b64 %x, {%r1, %r2};\n"
        "mov.b64 %y, {%r2, %r3};",
        {64, 64}, {64, 64}, tuples({64, 64}),
        [](const Operands &in) -> Results {
          return {in[0] >> 32 | in[1] << 32, in[1]};
        });
}

TEST_F(IntegerMoveTest, Addresses) {
  check(".shared .align 16 .b8 first[48];\n.shared .align 16 .b8 second[32];\n"
        "mov.u32 %r0, first;\nmov.u32 %r1, second;\nsub.u32 %r0, %r1, %r0;\n"
        "abs.s32 %x, %r0;\nmov.u64 %l0, second+12;\nmov.u64 %l1, second;\n"
        "sub.u64 %y, %l0, %l1;",
        {32}, {32, 64}, tuples({32}),
        [](const Operands &) -> Results { return {48, 12}; });
}

TEST_F(IntegerMoveTest, FormsThatThereAreNot) {
  auto expectRefused = [&](llvm::StringRef text, llvm::StringRef part) {
    EXPECT_NE(refusal(text, {32, 32, 32}, {32}).find(part), std::string::npos)
        << text.str() << ": " << refusal(text, {32, 32, 32}, {32});
  };
  expectRefused("setp.u32 %p0, %a, %b;", ".u32");
  expectRefused("setp.lt.b32 %p0, %a, %b;", "comparison");
  expectRefused("setp.lo.s32 %p0, %a, %b;", "comparison");
  expectRefused("setp.equ.u32 %p0, %a, %b;", ".equ");
  expectRefused("setp.eq.and.u32 %p0, %a, %b;", "operands");
  expectRefused("setp.eq.u32 %p0, %a, %b, %p1;", "operands");
  expectRefused("set.eq.u64.u32 %l0, %a, %b;", ".u64");
  expectRefused("selp.b32 %x, %a, %b, !%p0;", "negated");
  expectRefused("slct.u32.u32 %x, %a, %b, %c;", ".u32");
  expectRefused("mov.v2.u32 %x, %a;", ".v2");
  expectRefused("mov.u64 %l0, {%a, %b};", "bits");
  expectRefused("mov.b64 %l0, {%a, %b, %c};", "not supported");
  expectRefused("mov.b64 {%a, %b}, {%b, %a};", "not both");
  expectRefused("mov.b64 %l0, {%l1, %l2};", "width");
  expectRefused("mov.pred %p0, !%p1;", "negated");
}

} // namespace
} // namespace fsr::ptx
