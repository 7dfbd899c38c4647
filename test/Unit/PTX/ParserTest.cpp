// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the parser makes of code and of the heads of functions, a construct a
// test. Declarations and constants are in ParserDeclarationsTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "Parse.h"

using namespace fsr::ptx;

namespace {

using Kind = Operand::Kind;

TEST(ParserTest, ReadsTheHead) {
  auto module = parseModule(".version 7.8\n.target sm_75, debug\n"
                            ".address_size 64\n.visible .entry k() { ret; }");
  ASSERT_TRUE(bool(module));
  EXPECT_EQ((*module)->versionMajor, 7u);
  EXPECT_EQ((*module)->versionMinor, 8u);
  EXPECT_EQ((*module)->target, "sm_75");
  EXPECT_EQ((*module)->addressBits, 64u);
  ASSERT_NE((*module)->findFunction("k"), nullptr);
  EXPECT_EQ((*module)->findFunction("l"), nullptr);
  EXPECT_EQ((*module)->lineText(4), ".visible .entry k() { ret; }");
  EXPECT_EQ((*module)->lineText(5), "");
  EXPECT_EQ((*module)->lineText(0), "");
}

TEST(ParserTest, TakesTextThatEndsInNul) {
  std::string text = withHead(".visible .entry k() { ret; }");
  text.push_back('\0');
  EXPECT_TRUE(bool(parseModule(text)));
}

TEST(ParserTest, SplitsOpcodeAndModifiers) {
  auto module =
      parseBody(".reg .b32 %r<2>; .reg .b64 d;\n"
                "cp.async.bulk.shared::cluster.global.mbarrier::"
                "complete_tx::bytes.L2::cache_hint [%r0], [d], 16;\n");
  ASSERT_TRUE(module);
  const Instruction &one = module->functions[0].code.at(0);
  EXPECT_EQ(one.opcode, "cp");
  ASSERT_EQ(one.modifiers.size(), 6u);
  EXPECT_EQ(one.modifiers[2], "shared::cluster");
  EXPECT_EQ(one.modifiers[4], "mbarrier::complete_tx::bytes");
  EXPECT_TRUE(one.has("L2::cache_hint"));
  EXPECT_FALSE(one.has("L2"));
  EXPECT_EQ(one.location.line, 6u);
  EXPECT_EQ(one.location.column, 1u);
}

TEST(ParserTest, ModifiersMayBeginWithDigits) {
  auto module = parseBody("x.1d.128x256b.5;\n");
  ASSERT_TRUE(module);
  const Instruction &one = module->functions[0].code.at(0);
  ASSERT_EQ(one.modifiers.size(), 3u);
  EXPECT_EQ(one.modifiers[0], "1d");
  EXPECT_EQ(one.modifiers[1], "128x256b");
  EXPECT_EQ(one.modifiers[2], "5");
}

TEST(ParserTest, Guards) {
  auto module = parseBody(".reg .pred a, b;\n@a ret;\n@!b ret;\nret;\n");
  ASSERT_TRUE(module);
  const Function &k = module->functions[0];
  EXPECT_EQ(k.code[0].guard, 0u);
  EXPECT_FALSE(k.code[0].isGuardNegated);
  EXPECT_EQ(k.code[1].guard, 1u);
  EXPECT_TRUE(k.code[1].isGuardNegated);
  EXPECT_FALSE(k.code[2].guard);
}

TEST(ParserTest, RegistersAndRanges) {
  auto module = parseBody(".reg .b32 %r<12>, one; .reg .pred %p<2>;\n"
                          "mov.b32 %r11, one;\nsetp.ne.b32 %p1, %r0, 0;\n");
  ASSERT_TRUE(module);
  const Function &k = module->functions[0];
  ASSERT_EQ(k.registers.size(), 15u);
  EXPECT_EQ(k.registers[11].name, "%r11");
  EXPECT_EQ(k.registers[12].name, "one");
  EXPECT_EQ(k.registers[14].type, Type::Pred);
  EXPECT_EQ(k.code[0].operands[0].index, 11u);
  EXPECT_EQ(k.code[0].operands[1].index, 12u);
  EXPECT_EQ(k.code[1].operands[0].index, 14u);
}

TEST(ParserTest, ARangeHasNoLeadingZerosAndEnds) {
  EXPECT_EQ(errorOfBody(".reg .b32 %r<12>;\nmov.b32 %r1, %r01;\n"),
            "6:14: the register `%r01` is not declared");
  EXPECT_EQ(errorOfBody(".reg .b32 %r<12>;\nmov.b32 %r1, %r12;\n"),
            "6:14: the register `%r12` is not declared");
  // Two ranges that both have a %r10.
  EXPECT_EQ(errorOfBody(".reg .b32 %r<12>, %r1<2>;\nmov.b32 %r1, %r10;\n"),
            "6:14: the register `%r10` is not declared");
}

TEST(ParserTest, ScopesHideAndEnd) {
  auto module = parseBody(".reg .b32 t; .param .b32 q;\n"
                          "{ .reg .b64 t; .param .b64 q;\n"
                          "mov.b64 t, 0; st.param.b64 [q], t; }\n"
                          "{ .reg .b16 t; .shared .b16 q;\n"
                          "mov.b16 t, 0; st.shared.b16 [q], t; }\n"
                          "mov.b32 t, 0; st.param.b32 [q], t;\n");
  ASSERT_TRUE(module);
  const Function &k = module->functions[0];
  ASSERT_EQ(k.registers.size(), 3u);
  EXPECT_EQ(k.code[0].operands[0].index, 1u);
  EXPECT_EQ(k.code[2].operands[0].index, 2u);
  EXPECT_EQ(k.code[4].operands[0].index, 0u);
  ASSERT_EQ(k.variables.size(), 3u);
  for (unsigned i : {1, 3, 5}) {
    const Operand &base = k.code[i].operands[0].elements.at(0);
    EXPECT_EQ(base.kind, Kind::Variable);
    EXPECT_EQ(base.name, k.variables[i == 5 ? 0 : i == 1 ? 1 : 2].name);
  }
  EXPECT_EQ(k.variables[0].name, "q");
  EXPECT_NE(k.variables[1].name, k.variables[2].name);
}

TEST(ParserTest, LabelsOfScopes) {
  // As inline assembly writes them: the same names in each scope.
  auto module = parseBody(".reg .pred q;\n"
                          "TOP: bra DONE;\n"
                          "{ WAIT: @q bra DONE; bra WAIT; DONE: ret; }\n"
                          "{ WAIT: @q bra DONE; bra WAIT; DONE: bra TOP; }\n"
                          "DONE: ret;\n");
  ASSERT_TRUE(module);
  const Function &k = module->functions[0];
  std::vector<uint32_t> targets;
  for (const Instruction &one : k.code)
    if (one.opcode == "bra") {
      EXPECT_EQ(one.operands[0].kind, Kind::Label);
      targets.push_back(one.operands[0].index);
    }
  EXPECT_EQ(targets, (std::vector<uint32_t>{7, 3, 1, 6, 4, 0}));
}

TEST(ParserTest, ALabelAtTheEnd) {
  auto module = parseBody("bra END;\nEND:\n");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->functions[0].code[0].operands[0].index, 1u);
}

TEST(ParserTest, LabelsDoNotLeaveTheirScope) {
  EXPECT_EQ(errorOfBody("bra L;\n{ L: ret; }\n"), "5:5: `L` is not declared");
}

TEST(ParserTest, Addresses) {
  auto module = parse(".global .b32 g[4];\n.visible .entry k(.param .u64 p) {\n"
                      ".reg .b64 d; .reg .b32 r<3>;\n"
                      "ld.param.u64 d, [p];\n"
                      "ld.global.u32 r0, [d+-8];\n"
                      "ld.global.u32 r0, [d-4];\n"
                      "ld.global.u32 r0, [g+2*4+1];\n"
                      "ld.global.u32 r0, [4096];\n"
                      "x [d, {r0, r1, r2}], [r0+8];\n"
                      "ld.global.u32 r0, [g].unified;\n}\n");
  ASSERT_TRUE(module);
  const std::vector<Instruction> &code = module->functions[0].code;
  auto address = [&](unsigned i, unsigned operand) -> const Operand & {
    const Operand &found = code.at(i).operands[operand];
    EXPECT_EQ(found.kind, Kind::Address);
    return found;
  };
  EXPECT_EQ(address(0, 1).elements[0].kind, Kind::Variable);
  EXPECT_EQ(address(0, 1).elements[0].name, "p");
  EXPECT_EQ(int64_t(address(1, 1).bits), -8);
  EXPECT_EQ(address(1, 1).elements[0].kind, Kind::Register);
  EXPECT_EQ(int64_t(address(2, 1).bits), -4);
  EXPECT_EQ(address(3, 1).bits, 9u);
  EXPECT_EQ(address(3, 1).elements[0].name, "g");
  EXPECT_EQ(address(3, 1).elements[0].bits, 0u);
  EXPECT_EQ(address(4, 1).elements[0].kind, Kind::Integer);
  EXPECT_EQ(address(4, 1).elements[0].bits, 4096u);
  const Operand &tensor = address(5, 0);
  ASSERT_EQ(tensor.elements.size(), 2u);
  EXPECT_EQ(tensor.elements[1].kind, Kind::Vector);
  EXPECT_EQ(tensor.elements[1].elements.size(), 3u);
  EXPECT_EQ(address(5, 1).bits, 8u);
  EXPECT_EQ(address(5, 1).selector, "");
  EXPECT_EQ(address(6, 1).selector, "unified");
}

TEST(ParserTest, AddressesAsValues) {
  auto module = parse(".global .b32 g[4];\n.func f();\n"
                      ".visible .entry k() {\n.reg .b64 d;\n"
                      "mov.u64 d, g+4;\nmov.u64 d, f;\n}\n");
  ASSERT_TRUE(module);
  const std::vector<Instruction> &code = module->findFunction("k")->code;
  EXPECT_EQ(code[0].operands[1].kind, Kind::Variable);
  EXPECT_EQ(code[0].operands[1].name, "g");
  EXPECT_EQ(code[0].operands[1].bits, 4u);
  EXPECT_EQ(code[1].operands[1].kind, Kind::Function);
  EXPECT_EQ(code[1].operands[1].name, "f");
}

TEST(ParserTest, PairsSinksAndNegation) {
  auto module = parseBody(".reg .pred %p, %q, %c; .reg .f32 a; .reg .b32 r;\n"
                          "setp.lt.and.f32 %p|%q, a, -a, !%c;\n"
                          "shfl.sync.idx.b32 r|%p, r, 1, 31, -1;\n"
                          "elect.sync _|%p, -1;\n");
  ASSERT_TRUE(module);
  const std::vector<Instruction> &code = module->functions[0].code;
  const Instruction &setp = code[0];
  ASSERT_EQ(setp.operands.size(), 4u);
  EXPECT_EQ(setp.operands[0].kind, Kind::Pair);
  EXPECT_EQ(setp.operands[0].elements.at(0).index, 0u);
  EXPECT_EQ(setp.operands[0].elements.at(1).index, 1u);
  EXPECT_TRUE(setp.operands[2].isNegated);
  EXPECT_TRUE(setp.operands[3].isNegated);
  EXPECT_EQ(setp.operands[3].index, 2u);
  EXPECT_EQ(code[1].operands[0].kind, Kind::Pair);
  EXPECT_EQ(int64_t(code[1].operands[4].bits), -1);
  EXPECT_EQ(code[2].operands[0].elements.at(0).kind, Kind::Sink);
  EXPECT_EQ(code[2].operands[0].elements.at(1).kind, Kind::Register);
}

TEST(ParserTest, Vectors) {
  auto module = parseBody(".reg .f32 %f<4>; .reg .v2 .f32 %v; .reg .b64 d;\n"
                          "ld.global.v4.f32 {%f0, _, %f2, %f3}, [d];\n"
                          "ld.global.v2.f32 %v, [d];\n"
                          "mov.f32 %f1, %v.y;\n");
  ASSERT_TRUE(module);
  const Function &k = module->functions[0];
  const Operand &braced = k.code[0].operands[0];
  EXPECT_EQ(braced.kind, Kind::Vector);
  ASSERT_EQ(braced.elements.size(), 4u);
  EXPECT_EQ(braced.elements[1].kind, Kind::Sink);
  const Operand &named = k.code[1].operands[0];
  EXPECT_EQ(named.kind, Kind::Vector);
  ASSERT_EQ(named.elements.size(), 2u);
  EXPECT_EQ(k.registers[named.elements[0].index].name, "%v.x");
  const Operand &part = k.code[2].operands[1];
  EXPECT_EQ(part.kind, Kind::Register);
  EXPECT_EQ(k.registers[part.index].name, "%v.y");
  EXPECT_EQ(part.selector, "");
  EXPECT_EQ(errorOfBody(".reg .v2 .f32 %v;\nmov.f32 %v.x, %v.z;\n"),
            "6:17: expected a part of `%v`, got `.z`");
}

TEST(ParserTest, SelectorsAndSpecialRegisters) {
  auto module = parseBody(".reg .b32 r;\n"
                          "vadd.u32.u32.u32 r, r.b0, r.h1;\n"
                          "mov.u32 r, %tid.x;\nmov.u32 r, %envreg31;\n"
                          "mov.u32 r, %pm0_64;\nmov.u32 r, WARP_SZ;\n");
  ASSERT_TRUE(module);
  const std::vector<Instruction> &code = module->functions[0].code;
  EXPECT_EQ(code[0].operands[1].selector, "b0");
  EXPECT_EQ(code[0].operands[2].selector, "h1");
  EXPECT_EQ(code[1].operands[1].kind, Kind::Special);
  EXPECT_EQ(code[1].operands[1].name, "%tid.x");
  EXPECT_EQ(code[2].operands[1].name, "%envreg31");
  EXPECT_EQ(code[3].operands[1].name, "%pm0_64");
  EXPECT_EQ(code[4].operands[1].kind, Kind::Integer);
  EXPECT_EQ(code[4].operands[1].bits, 32u);
  EXPECT_EQ(errorOfBody(".reg .b32 r;\nmov.u32 r, %envreg;\n"),
            "6:12: the register `%envreg` is not declared");
}

TEST(ParserTest, Calls) {
  auto module = parse(
      ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
      ".func f;\n"
      ".visible .entry k() {\n.reg .b64 d;\n"
      "{ .param .b32 ret0; .param .b64 a0; .param .b64 a1;\n"
      "call.uni (ret0), vprintf, (a0, a1); }\n"
      "call f;\n"
      "{ .param .b64 a0;\n"
      "P: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;\n"
      "call (_), d, (a0), P; }\n"
      "T: .calltargets f, vprintf;\ncall d, (), T;\n}\n");
  ASSERT_TRUE(module);
  const Function &k = *module->findFunction("k");
  const Instruction &direct = k.code[0];
  EXPECT_TRUE(direct.has("uni"));
  ASSERT_EQ(direct.operands.size(), 3u);
  EXPECT_EQ(direct.operands[0].kind, Kind::Parenthesised);
  EXPECT_EQ(direct.operands[0].elements.at(0).name, k.variables[0].name);
  EXPECT_EQ(direct.operands[1].kind, Kind::Function);
  EXPECT_EQ(direct.operands[2].elements.size(), 2u);
  EXPECT_EQ(k.code[1].operands[0].name, "f");
  const Instruction &indirect = k.code[2];
  EXPECT_EQ(indirect.operands[1].kind, Kind::Register);
  EXPECT_EQ(indirect.operands[3].kind, Kind::Targets);
  ASSERT_EQ(k.labelLists.size(), 2u);
  EXPECT_EQ(indirect.operands[3].name, k.labelLists[0].name);
  EXPECT_EQ(k.labelLists[1].functions,
            (std::vector<std::string>{"f", "vprintf"}));
  EXPECT_EQ(k.code[3].operands[1].elements.size(), 0u);
  EXPECT_EQ(k.code[3].operands[2].name, "T");
}

TEST(ParserTest, BranchTargets) {
  auto module = parseBody(".reg .b32 r;\n"
                          "T: .branchtargets A, B, A;\n"
                          "brx.idx r, T;\nA: ret;\nB: ret;\n");
  ASSERT_TRUE(module);
  const Function &k = module->functions[0];
  EXPECT_EQ(k.code[0].operands[1].kind, Kind::Targets);
  ASSERT_EQ(k.labelLists.size(), 1u);
  EXPECT_EQ(k.labelLists[0].targets, (std::vector<uint32_t>{1, 2, 1}));
  EXPECT_EQ(errorOfBody("T: .branchtargets A;\nret;\n"),
            "5:19: `A` is no label and no function");
}

TEST(ParserTest, FunctionsAreOneHoweverOftenDeclared) {
  auto module = parse(".func (.param .b32 r) f (.param .b32 a);\n"
                      ".weak .func (.param .b32 r) f (.param .b32 a) { ret; }\n"
                      ".func (.param .b32 r) f (.param .b32 a);\n");
  ASSERT_TRUE(module);
  ASSERT_EQ(module->functions.size(), 1u);
  const Function &f = module->functions[0];
  EXPECT_FALSE(f.isExtern);
  EXPECT_FALSE(f.isEntry);
  EXPECT_EQ(f.results.size(), 1u);
  EXPECT_EQ(f.parameters.size(), 1u);
  EXPECT_EQ(f.code.size(), 1u);
  EXPECT_EQ(errorOf(".func f { ret; }\n.func f { ret; }\n"),
            "5:7: `f` has a body already, at line 4");
}

TEST(ParserTest, RegisterParameters) {
  auto module = parse(".func (.reg .b32 out) f (.reg .f32 in) {\n"
                      "mov.b32 out, in;\nret;\n}\n");
  ASSERT_TRUE(module);
  const Function &f = module->functions[0];
  EXPECT_EQ(f.parameters[0].space, Space::Generic);
  EXPECT_EQ(f.parameters[0].type, Type::F32);
  EXPECT_EQ(f.code[0].operands[0].index, 0u);
  EXPECT_EQ(f.registers[f.code[0].operands[1].index].name, "in");
}

TEST(ParserTest, PerformanceDirectives) {
  auto module =
      parse(".visible .entry k() .maxntid 128, 2, 1 .minnctapersm 3 "
            ".maxnreg 64 .explicitcluster .reqnctapercluster 4 "
            ".maxclusterrank 8 .abi_preserve 3 .anything \"text\" { ret; }\n"
            ".visible .entry l() .reqntid 32 { ret; }\n");
  ASSERT_TRUE(module);
  const Function &k = module->functions[0];
  EXPECT_EQ(k.maxThreads, (std::array<unsigned, 3>{128, 2, 1}));
  EXPECT_EQ(k.minBlocks, 3u);
  EXPECT_EQ(k.maxRegisters, 64u);
  EXPECT_EQ(k.requiredCluster, (std::array<unsigned, 3>{4, 1, 1}));
  EXPECT_EQ(k.maxClusterRank, 8u);
  EXPECT_EQ(k.requiredThreads, (std::array<unsigned, 3>{}));
  EXPECT_EQ(module->functions[1].requiredThreads,
            (std::array<unsigned, 3>{32, 1, 1}));
}

TEST(ParserTest, AliasesBecomeWhatTheyStandFor) {
  auto module = parse(".func real { ret; }\n.func other;\n"
                      ".visible .entry k() { call other; ret; }\n"
                      ".global .u64 table[1] = {other};\n"
                      ".alias other, real;\n");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->findFunction("k")->code[0].operands[0].name, "real");
  EXPECT_EQ(module->variables[0].initial.at(0).symbol, "real");
  EXPECT_EQ(errorOf(".func f;\n.alias f, g;\n"),
            "5:11: an alias of `g`, which is no function");
}

TEST(ParserTest, LineInformation) {
  auto module =
      parse(".visible .entry k() {\n"
            ".loc 1 10 3\nret;\n"
            ".loc 2 20 5, function_name $L__info_string0+4, inlined_at 1 7 3\n"
            "ret;\n}\n"
            ".file 1 \"a.cu\"\n.file 2 \"b.h\", 123, 456\n"
            ".section .debug_str {\n$L__info_string0:\n.b8 1,2\n{ }\n}\n");
  ASSERT_TRUE(module);
  const std::vector<Instruction> &code = module->functions[0].code;
  EXPECT_EQ(code[0].file, 1u);
  EXPECT_EQ(code[0].line, 10u);
  EXPECT_EQ(code[1].file, 2u);
  EXPECT_EQ(code[1].line, 20u);
  EXPECT_EQ(code[0].siteFile, 1u);
  EXPECT_EQ(code[0].siteLine, 10u);
  // The place in the kernel's own file.
  EXPECT_EQ(code[1].siteFile, 1u);
  EXPECT_EQ(code[1].siteLine, 7u);
  EXPECT_EQ(module->files, (std::vector<std::string>{"", "a.cu", "b.h"}));
}

TEST(ParserTest, LinesOfInlinedCode) {
  // A function of the kernel's file, which calls one of a header, which calls
  // another.
  auto module =
      parse(".visible .entry k() {\n.loc 1 10 3\nret;\n"
            ".loc 1 4 5, function_name $f, inlined_at 1 10 3\nret;\n"
            ".loc 2 20 5, function_name $g, inlined_at 1 4 5\nret;\n"
            ".loc 2 30 5, function_name $h, inlined_at 2 20 5\nret;\n}\n");
  ASSERT_TRUE(module);
  const std::vector<Instruction> &code = module->functions[0].code;
  unsigned sites[] = {10, 4, 4, 4}, lines[] = {10, 4, 20, 30};
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(code[i].siteFile, 1u);
    EXPECT_EQ(code[i].siteLine, sites[i]);
    EXPECT_EQ(code[i].line, lines[i]);
  }
}

TEST(ParserTest, CommentsPragmasAndMarkers) {
  auto module =
      parse("# 1 \"a.cu\"\n/* two\nlines */ .visible .entry k() { //\n"
            ".pragma \"nounroll\"; /**/ ret;;\n}\n"
            ".pragma \"x\";\n");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->functions[0].code.at(0).location.line, 7u);
  EXPECT_EQ(module->functions[0].code.at(0).location.column, 26u);
}

TEST(ParserTest, Types) {
  for (unsigned i = 1; i <= unsigned(Type::S16x2); ++i) {
    EXPECT_EQ(parseType(nameOf(Type(i))), Type(i));
    EXPECT_NE(bitWidth(Type(i)), 0u);
  }
  EXPECT_FALSE(parseType(""));
  EXPECT_FALSE(parseType("f128"));
  EXPECT_EQ(bitWidth(Type::Pred), 1u);
  EXPECT_EQ(bitWidth(Type::F32x2), 64u);
  EXPECT_EQ(bitWidth(Type::E4M3x2), 16u);
  EXPECT_TRUE(isFloat(Type::BF16x2));
  EXPECT_FALSE(isFloat(Type::B32));
  EXPECT_FALSE(isFloat(Type::U16x2));
  EXPECT_TRUE(isSigned(Type::S16x2));
  EXPECT_FALSE(isSigned(Type::U64));
}

} // namespace
