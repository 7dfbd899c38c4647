// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the parser says of text that is no PTX, where it says it, and that a
// text made to hurt ends in a message, soon and without much memory.
//
//===----------------------------------------------------------------------===//

#include "Parse.h"

#include "fsr/Support/Error.h"

using namespace fsr::ptx;

namespace {

std::string repeat(llvm::StringRef text, size_t count) {
  std::string result;
  result.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i)
    result += text;
  return result;
}

TEST(ParserErrorsTest, IsBadInput) {
  auto module = parseModule(".version 8.0\n.target sm_90\n?");
  ASSERT_FALSE(bool(module));
  llvm::Error error = module.takeError();
  EXPECT_EQ(fsr::kindOf(error), fsr::ErrorKind::BadInput);
  EXPECT_EQ(llvm::toString(std::move(error)),
            "3:1: expected a directive, got `?`");
}

TEST(ParserErrorsTest, Heads) {
  auto error = [](llvm::StringRef text) {
    auto module = parseModule(text);
    return module ? "it parses" : llvm::toString(module.takeError());
  };
  EXPECT_EQ(error(""), "1:1: expected `.version`, got the end of the text");
  EXPECT_EQ(error("int main() {}"), "1:1: expected `.version`, got `int`");
  EXPECT_EQ(error("\x7f\x45LF"), "1:1: a character that PTX does not use");
  EXPECT_EQ(error(".version 8"),
            "1:10: expected a version such as 8.0, got `8`");
  EXPECT_EQ(error(".version 2.3"),
            "1:10: PTX version 2.3, wanted 3.0 or later");
  EXPECT_EQ(error(".version 8.0\n"),
            "2:1: expected `.target`, got the end of the text");
  EXPECT_EQ(error(".version 8.0 .target sm_90 .address_size 48"),
            "1:28: an address size of 48");
}

TEST(ParserErrorsTest, Tokens) {
  EXPECT_EQ(errorOfBody("mov.u32 %r0, 0x;\n"),
            "5:9: the register `%r0` is not declared");
  EXPECT_EQ(errorOfBody("x 0x;\n"),
            "5:3: a number that is none of PTX's forms");
  EXPECT_EQ(errorOfBody("x 0f3F80;\n"),
            "5:3: a number that is none of PTX's forms");
  EXPECT_EQ(errorOfBody("x 12ab;\n"),
            "5:3: a number that is none of PTX's forms");
  EXPECT_EQ(errorOfBody("x. y;\n"), "5:2: a dot without a name");
  EXPECT_EQ(errorOfBody(".pragma \"nounroll;\n"),
            "5:9: a string that does not end");
  EXPECT_EQ(errorOfBody("ret; /* and\nso on"),
            "5:6: a comment that does not end");
  EXPECT_EQ(errorOfBody("x \x01;\n"), "5:3: a character that PTX does not use");
}

TEST(ParserErrorsTest, Statements) {
  EXPECT_EQ(errorOfBody("ret\n"), "6:1: expected an operand, got `}`");
  EXPECT_EQ(errorOfBody("bra nowhere;\n"), "5:5: `nowhere` is not declared");
  EXPECT_EQ(errorOfBody("L: ret;\nL: ret;\n"),
            "6:1: `L` is declared twice in its scope");
  EXPECT_EQ(errorOfBody("@p ret;\n"),
            "5:2: `p` guards an instruction and is no register");
  EXPECT_EQ(errorOfBody(".reg .b32 r;\n@r ret;\n"),
            "6:2: `r` guards an instruction and is no predicate");
  EXPECT_EQ(errorOfBody(".reg .b32 r, r;\n"),
            "5:14: `r` is declared twice in its scope");
  EXPECT_EQ(errorOfBody(".reg .b32 %r<4>;\n.reg .b32 %r<5>;\n"),
            "6:11: the registers `%r<…>` are declared twice");
  EXPECT_EQ(errorOfBody(".reg .f33 r;\n"),
            "5:6: `.f33` in a declaration, wanted a type");
  EXPECT_EQ(errorOfBody(".maxntid 4;\n"),
            "5:1: `.maxntid` is no directive of a function");
  EXPECT_EQ(errorOfBody("x [p;\n"), "5:5: expected `]`, got `;`");
  EXPECT_EQ(errorOfBody("x {p;\n"), "5:5: expected `}`, got `;`");
  EXPECT_EQ(errorOfBody("x [{p}];\n"),
            "5:4: an address that is no register, variable or number");
  EXPECT_EQ(errorOfBody("x p|p;\n"), "5:3: `|` after what is no register");
  EXPECT_EQ(errorOfBody("x -p;\n"), "5:3: `-` before what is no register");
  EXPECT_EQ(errorOfBody("x ;,\n"), "5:4: expected a statement, got `,`");
  EXPECT_EQ(errorOfBody("x ,;\n"), "5:3: expected an operand, got `,`");
  EXPECT_EQ(errorOfBody("{ ret;\n"),
            "7:1: expected a statement, got the end of the text");
}

TEST(ParserErrorsTest, ModuleScope) {
  EXPECT_EQ(errorOf("ret;"), "4:1: expected a directive, got `ret`");
  EXPECT_EQ(errorOf(".nothing;"),
            "4:1: `.nothing` is no directive of module scope");
  EXPECT_EQ(errorOf(".local .b32 x;"), "4:1: `.local` at module scope");
  EXPECT_EQ(errorOf(".visible .target sm_90"),
            "4:10: expected a function or a variable, got `.target`");
  EXPECT_EQ(errorOf(".global .b32 x;\n.global .b32 x;"),
            "5:14: `x` is declared twice, before at line 4");
  EXPECT_EQ(errorOf(".global .b32 x;\n.func x;"),
            "5:7: `x` is the name of a variable already");
  EXPECT_EQ(errorOf(".func x;\n.global .b32 x;"),
            "5:14: `x` is the name of a function already");
  EXPECT_EQ(errorOf(".extern .func f { ret; }"),
            "4:17: `f` is `.extern` and has a body");
  EXPECT_EQ(errorOf(".visible .entry k(.b32 x) { ret; }"),
            "4:19: expected `.param` or `.reg`, got `.b32`");
  EXPECT_EQ(errorOf(".global .align 3 .b32 x;"),
            "4:9: an alignment of 3, wanted a power of two");
  EXPECT_EQ(errorOf(".section .debug {\n{ }"),
            "5:4: expected `}`, got the end of the text");
  EXPECT_EQ(errorOf(".file 99999999 \"x\""),
            "4:7: a file number of 99999999, wanted at most 65536");
}

TEST(ParserErrorsTest, TheFirstMessageStays) {
  EXPECT_EQ(errorOfBody("x 0x;\nbra nowhere;\n"),
            "5:3: a number that is none of PTX's forms");
}

TEST(ParserErrorsTest, MessagesAreShort) {
  std::string name(1 << 20, 'a');
  EXPECT_LT(errorOfBody("bra " + name + ";\n").size(), 200u);
  EXPECT_LT(errorOf(".global .b32 " + name + ", " + name + ";\n").size(), 200u);
  EXPECT_LT(errorOf("." + name).size(), 200u);
}

TEST(ParserErrorsTest, DepthIsBounded) {
  size_t many = 1 << 20;
  EXPECT_EQ(errorOfBody(repeat("{", many)),
            "5:65: braces nested deeper than 64");
  EXPECT_EQ(errorOfBody("x " + repeat("{", many)),
            "5:68: an operand nested deeper than 64");
  EXPECT_EQ(errorOfBody("x " + repeat("[", many)),
            "5:68: an operand nested deeper than 64");
  EXPECT_EQ(errorOfBody("x " + repeat("(", many)),
            "5:68: an expression nested deeper than 64");
  EXPECT_EQ(errorOf(".global .s32 x = " + repeat("-", many)),
            "4:83: an expression nested deeper than 64");
  EXPECT_EQ(errorOf(".global .s32 x = " + repeat("1 ? ", many)),
            "4:278: an expression nested deeper than 64");
  EXPECT_EQ(errorOf(".global .s32 x = " + repeat("1 ? 2 : ", many)),
            "4:534: an expression nested deeper than 64");
  EXPECT_EQ(errorOf(".global .s32 x[2] = " + repeat("{", many)),
            "4:22: expected a constant, got `{`");
  EXPECT_EQ(errorOf(".global .s32 x" + repeat("[2]", many)),
            "4:40: an array of more than 8 dimensions");
  // A long sum is no depth.
  EXPECT_NE(parse(".global .s32 x = 1" + repeat("+1", 100000) + ";"), nullptr);
}

TEST(ParserErrorsTest, SizesAreBounded) {
  EXPECT_EQ(errorOf(".global .b64 x[0x100000000];"),
            "4:14: `x` is larger than 17179869184 bytes");
  EXPECT_EQ(errorOf(".global .b64 x[0x10000][0x10000][0x10000][0x10000];"),
            "4:14: `x` is larger than 17179869184 bytes");
  EXPECT_EQ(errorOf(".global .b64 x[-1];"),
            "4:16: a dimension that is negative or too large");
  EXPECT_EQ(errorOfBody(".reg .b32 %r<5000000>;\n"),
            "5:14: a number of registers of 5000000, wanted at most 4194304");
  EXPECT_EQ(errorOfBody(".reg .b32 %r<3000000>;\n.reg .b32 %q<3000000>;\n"),
            "6:11: more than 4194304 registers in the module");
  EXPECT_EQ(errorOfBody(".reg .b32 %" + repeat("r", 100) + "<4000000>;\n"),
            "5:11: a range of registers whose name is longer than 64 "
            "characters");
  EXPECT_EQ(errorOfBody("x" + repeat(".y", 100) + ";\n"),
            "5:130: an instruction of more than 64 modifiers");
  EXPECT_EQ(errorOfBody(repeat("{}", 300000)), "5:524287: more than 262144 "
                                               "scopes");
  EXPECT_EQ(errorOfBody("x " + repeat("1,", 5 << 20)),
            "5:8388609: more than 4194304 operands");
  EXPECT_EQ(errorOfBody(repeat("x;", 2 << 20)),
            "5:2097153: more than 1048576 instructions");
}

TEST(ParserErrorsTest, ManyNamesAreReadInLinearTime) {
  // Quadratic look-ups would not end in the time that a test has.
  std::string text;
  for (unsigned i = 0; i < 50000; ++i) {
    text +=
        "L" + std::to_string(i) + ": bra L" + std::to_string(49999 - i) + ";\n";
    text += "{ .reg .b32 t; mov.b32 t, 1; }\n";
  }
  auto module = parseBody(text);
  ASSERT_TRUE(module);
  EXPECT_EQ(module->functions[0].code.size(), 100000u);
}

} // namespace
