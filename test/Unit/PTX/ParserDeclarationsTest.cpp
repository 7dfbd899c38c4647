// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Variables, parameters, initialisers and constant expressions. The expected
// values are those that ptxas 13.0 puts into a cubin.
//
//===----------------------------------------------------------------------===//

#include "Parse.h"

#include "llvm/ADT/bit.h"

using namespace fsr::ptx;

namespace {

/// The elements of the only variable's initialiser.
std::vector<uint64_t> initialOf(llvm::StringRef declaration) {
  std::vector<uint64_t> result;
  if (auto module = parse(declaration))
    for (const InitialValue &value : module->variables.at(0).initial)
      result.push_back(value.bits);
  return result;
}

uint64_t valueOf(llvm::StringRef expression) {
  // Trailing zeros are not kept: the second element keeps the first.
  std::vector<uint64_t> all =
      initialOf((".global .s64 x[2] = {" + expression + ", 1};").str());
  return all.size() == 2 ? all[0] : 0xbad;
}

TEST(ParserDeclarationsTest, Parameters) {
  auto module =
      parse(".visible .entry k(.param .u64 .ptr .global .align 16 a,\n"
            ".param .align 8 .b8 b[24], .param .f32 c,\n"
            ".param .u64 .ptr .align 1 d) { ret; }\n");
  ASSERT_TRUE(module);
  const std::vector<Variable> &all = module->functions[0].parameters;
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].space, Space::Param);
  EXPECT_EQ(all[0].bytes, 8u);
  EXPECT_EQ(all[0].alignment, 8u); // 16 is the pointee's.
  EXPECT_EQ(all[1].bytes, 24u);
  EXPECT_EQ(all[1].alignment, 8u);
  EXPECT_EQ(all[2].type, Type::F32);
  EXPECT_EQ(all[3].alignment, 8u);
  EXPECT_EQ(all[3].name, "d");
}

TEST(ParserDeclarationsTest, Variables) {
  auto module = parse(".extern .shared .align 16 .b8 dynamic[];\n"
                      ".visible .global .align 4 .b8 g[2][3];\n"
                      ".common .global .v4 .f32 v[2], w;\n"
                      ".const .f64 c;\n"
                      ".weak .global .attribute(.managed) .u16 m;\n"
                      ".visible .entry k() { .local .align 8 .b8 d[16];\n"
                      ".shared .b32 s[WARP_SZ*2]; ret; }\n");
  ASSERT_TRUE(module);
  const Variable &dynamic = *module->findVariable("dynamic");
  EXPECT_TRUE(dynamic.isExtern);
  EXPECT_TRUE(dynamic.isUnsizedArray);
  EXPECT_EQ(dynamic.bytes, 0u);
  EXPECT_EQ(dynamic.alignment, 16u);
  EXPECT_EQ(dynamic.space, Space::Shared);
  EXPECT_EQ(module->findVariable("g")->bytes, 6u);
  EXPECT_TRUE(module->findVariable("g")->isVisible);
  EXPECT_EQ(module->findVariable("v")->bytes, 32u);
  EXPECT_EQ(module->findVariable("w")->bytes, 16u);
  EXPECT_EQ(module->findVariable("w")->alignment, 16u);
  EXPECT_EQ(module->findVariable("c")->space, Space::Const);
  EXPECT_EQ(module->findVariable("m")->bytes, 2u);
  EXPECT_EQ(module->findVariable("n"), nullptr);
  const std::vector<Variable> &inside = module->functions[0].variables;
  ASSERT_EQ(inside.size(), 2u);
  EXPECT_EQ(inside[0].space, Space::Local);
  EXPECT_EQ(inside[1].bytes, 256u);
}

TEST(ParserDeclarationsTest, ExternThenDefined) {
  auto module = parse(".extern .global .b32 x[];\n.global .b32 x[3];\n"
                      ".extern .global .b32 x[];\n");
  ASSERT_TRUE(module);
  ASSERT_EQ(module->variables.size(), 1u);
  EXPECT_FALSE(module->variables[0].isExtern);
  EXPECT_EQ(module->variables[0].bytes, 12u);
}

TEST(ParserDeclarationsTest, Initialisers) {
  using List = std::vector<uint64_t>;
  EXPECT_EQ(initialOf(".global .b8 x[4] = {1, 0xff, 0};"), (List{1, 255}));
  EXPECT_EQ(initialOf(".global .s32 x = -1;"), (List{0xffffffff}));
  EXPECT_EQ(initialOf(".global .s32 x = 0x123456789;"), (List{0x23456789}));
  EXPECT_EQ(initialOf(".global .s32 x[2][3] = {{1, 4, 5}, {2, 3}};"),
            (List{1, 4, 5, 2, 3}));
  EXPECT_EQ(initialOf(".global .v2 .b32 x[2] = {{1, 2}, {3, 4}};"),
            (List{1, 2, 3, 4}));
  EXPECT_EQ(initialOf(".global .f32 x[4] = {0f3F800000, 1.5, .5, -.5e-1};"),
            (List{0x3f800000, 0x3fc00000, 0x3f000000, 0xbd4ccccd}));
  EXPECT_EQ(initialOf(".const .f64 x[2] = {0d3FF8000000000000, 1e1};"),
            (List{0x3ff8000000000000, 0x4024000000000000}));
  EXPECT_EQ(initialOf(".global .b32 x = 1.5;"), (List{0x3fc00000}));
}

TEST(ParserDeclarationsTest, ALeftOutDimensionIsCounted) {
  auto module = parse(".global .b16 x[] = {1, 2, 0};\n"
                      ".global .b16 y[][2] = {{1, 2}, {3}};\n");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->variables[0].bytes, 6u);
  EXPECT_FALSE(module->variables[0].isUnsizedArray);
  EXPECT_EQ(module->variables[1].bytes, 8u);
}

TEST(ParserDeclarationsTest, Addresses) {
  auto module =
      parse(".global .b8 g[8];\n.func f { ret; }\n"
            ".global .u64 x[5] = {g, generic(g)+4, g+2, f, 7};\n"
            ".global .u8 y[3] = {0xFF(g), 0xFF00(generic(g)+4), 3};\n");
  ASSERT_TRUE(module);
  const std::vector<InitialValue> &x = module->findVariable("x")->initial;
  ASSERT_EQ(x.size(), 5u);
  EXPECT_EQ(x[0].symbol, "g");
  EXPECT_FALSE(x[0].isGeneric);
  EXPECT_TRUE(x[1].isGeneric);
  EXPECT_EQ(x[1].symbol, "g");
  EXPECT_EQ(x[1].bits, 4u);
  EXPECT_EQ(x[2].bits, 2u);
  EXPECT_EQ(x[3].symbol, "f");
  EXPECT_EQ(x[4].symbol, "");
  EXPECT_EQ(x[4].bits, 7u);
  const std::vector<InitialValue> &y = module->findVariable("y")->initial;
  ASSERT_EQ(y.size(), 3u);
  EXPECT_EQ(y[0].mask, 0xffu);
  EXPECT_EQ(y[1].mask, 0xff00u);
  EXPECT_TRUE(y[1].isGeneric);
  EXPECT_EQ(y[1].bits, 4u);
  EXPECT_EQ(y[2].mask, 0u);
}

TEST(ParserDeclarationsTest, InitialisersThatDoNotFit) {
  EXPECT_EQ(errorOf(".global .f32 x = 3;"),
            "4:18: the initial value is of a type that does not fit to `.f32`");
  EXPECT_EQ(errorOf(".global .b32 x[2] = {1, 2, 3};"),
            "4:21: more than the 2 initial values that `x` has room for");
  EXPECT_EQ(errorOf(".global .b32 x[2][2] = {{1}, {2}};"),
            "4:30: a row after one that is not full");
  EXPECT_EQ(errorOf(".shared .b32 x = 1;"),
            "4:14: an initialiser of `x`, which is neither `.global` nor "
            "`.const`");
  EXPECT_EQ(errorOf(".global .u64 x = y;"), "4:18: `y` is not declared");
  EXPECT_EQ(errorOf(".global .u8 g, x = 0xF0F(g);"),
            "4:20: a mask that is not one run of at most as many bits as the "
            "element has");
  EXPECT_EQ(errorOf(".global .u8 x[2] = \"a\";"),
            "4:20: expected `{`, got `a`");
}

TEST(ParserDeclarationsTest, Expressions) {
  EXPECT_EQ(valueOf("(1+2*3) << 2"), 28u);
  EXPECT_EQ(valueOf("-5 / 2"), uint64_t(-2));
  EXPECT_EQ(valueOf("(-5) % 3"), 2u); // Unsigned.
  EXPECT_EQ(valueOf("-1 > 0U"), 1u);
  EXPECT_EQ(valueOf("-1 > 0"), 0u);
  EXPECT_EQ(valueOf("010"), 8u);
  EXPECT_EQ(valueOf("0b101U"), 5u);
  EXPECT_EQ(valueOf("0x8000000000000000 >> 3"), 0x1000000000000000u);
  EXPECT_EQ(valueOf("-1 >> 63"), ~uint64_t(0));
  EXPECT_EQ(valueOf("!3 + ~2"), uint64_t(-3));
  EXPECT_EQ(valueOf("2 | 1 == 1"), 3u);
  EXPECT_EQ(valueOf("6 & 3 ^ 1"), 3u);
  EXPECT_EQ(valueOf("0 ? 5 : 1 ? 6 : 7"), 6u);
  EXPECT_EQ(valueOf("1 || 0 && 0"), 1u);
  EXPECT_EQ(valueOf("(.u64) -1 / 2"), 0x7fffffffffffffffu);
  EXPECT_EQ(valueOf("(.s64) 0xffffffffffffffff / 2"), 0u);
  EXPECT_EQ(valueOf("1.5 > 1.0 ? 3 : 4"), 3u);
  EXPECT_EQ(valueOf("0x8000000000000000 / -1"), 0u); // One is unsigned.
  EXPECT_EQ(valueOf("(.s64) 0x8000000000000000 / -1"), 0x8000000000000000u);
  EXPECT_EQ(valueOf("1 - 2 - 3"), uint64_t(-4));
  EXPECT_EQ(valueOf("3 <= 3"), 1u);
  EXPECT_EQ(valueOf("3 != 3"), 0u);
  EXPECT_EQ(initialOf(".global .f64 x = 1.5 + 2.0;"),
            std::vector<uint64_t>{llvm::bit_cast<uint64_t>(3.5)});
}

TEST(ParserDeclarationsTest, ExpressionsThatAreNone) {
  auto error = [](llvm::StringRef text) {
    return errorOf((".global .s64 x = " + text + ";").str());
  };
  EXPECT_EQ(error("7 / 0"), "4:20: a division by zero");
  EXPECT_EQ(error("7 % 0"), "4:20: a division by zero");
  EXPECT_EQ(error("1 << 64"), "4:20: a shift by 64 bits, wanted at most 63");
  EXPECT_EQ(error("1.5 + 2"), "4:22: `+` of an integer and of what is none");
  EXPECT_EQ(error("0f3F800000 + 2"), "4:29: a `0f` literal in an expression");
  EXPECT_EQ(error("(.s64) 1.9"), "4:18: a cast of a number that is no integer");
  EXPECT_EQ(error("~1.5"), "4:18: `~` of a number that is no integer");
  EXPECT_EQ(error("1.5 ? 1 : 2"), "4:18: a condition that is no integer");
  EXPECT_EQ(error("99999999999999999999"),
            "4:18: `99999999999999999999` is no number of 64 bits");
  EXPECT_EQ(error("08"), "4:18: `08` is no number of 64 bits");
  EXPECT_EQ(error("1 +"), "4:21: expected a constant, got `;`");
}

TEST(ParserDeclarationsTest, LiteralsOfOperands) {
  auto module = parseBody(".reg .b64 d; .reg .f32 f;\n"
                          "x 0f3F800000, -0f3F800000, 0d3FF0000000000000, "
                          "1.5, (1+2)*3, -7, 0xffffffffffffffff, 5U;\n");
  ASSERT_TRUE(module);
  const auto &all = module->functions[0].code.at(0).operands;
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(all[0].kind, Operand::Kind::Single);
  EXPECT_EQ(all[0].bits, 0x3f800000u);
  EXPECT_EQ(all[1].kind, Operand::Kind::Single);
  EXPECT_EQ(all[1].bits, 0xbf800000u);
  EXPECT_EQ(all[2].kind, Operand::Kind::Float);
  EXPECT_EQ(all[2].bits, 0x3ff0000000000000u);
  EXPECT_EQ(all[3].kind, Operand::Kind::Float);
  EXPECT_EQ(all[3].bits, 0x3ff8000000000000u);
  EXPECT_EQ(all[4].kind, Operand::Kind::Integer);
  EXPECT_EQ(all[4].bits, 9u);
  EXPECT_EQ(int64_t(all[5].bits), -7);
  EXPECT_EQ(all[6].bits, ~uint64_t(0));
  EXPECT_EQ(all[7].bits, 5u);
}

} // namespace
