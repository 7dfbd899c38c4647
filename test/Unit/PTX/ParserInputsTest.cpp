// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole files as compilers write them; Inputs/kernels.cu and Inputs/kernel.mlir
// are their sources. Each cut of a file is hostile input as well.
//
//===----------------------------------------------------------------------===//

#include "Parse.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace fsr::ptx;

namespace {

std::string inputText(llvm::StringRef name) {
  auto buffer = llvm::MemoryBuffer::getFile(FSR_TEST_INPUTS "/" + name);
  EXPECT_TRUE(bool(buffer)) << name.str();
  return buffer ? (*buffer)->getBuffer().str() : "";
}

std::unique_ptr<Module> parseInput(llvm::StringRef name) {
  auto module = parseModule(inputText(name));
  if (module)
    return std::move(*module);
  ADD_FAILURE() << name.str() << ":" << llvm::toString(module.takeError());
  return nullptr;
}

/// The first instruction with this opcode and modifier.
const Instruction *find(const Function &function, llvm::StringRef opcode,
                        llvm::StringRef modifier) {
  for (const Instruction &one : function.code)
    if (one.opcode == opcode && one.has(modifier))
      return &one;
  return nullptr;
}

class ParserInputsTest : public testing::TestWithParam<const char *> {};

TEST_P(ParserInputsTest, KernelsOfCuda) {
  auto module = parseInput(GetParam());
  ASSERT_TRUE(module);
  EXPECT_EQ(module->addressBits, 64u);
  const Function *mixed = module->findFunction("mixed");
  ASSERT_NE(mixed, nullptr);
  EXPECT_TRUE(mixed->isEntry);
  EXPECT_EQ(mixed->parameters.size(), 4u);
  EXPECT_EQ(mixed->maxThreads[0], 128u);
  EXPECT_EQ(mixed->minBlocks, 2u);

  const Function *halve = module->findFunction("halve");
  ASSERT_NE(halve, nullptr);
  EXPECT_FALSE(halve->isExtern);
  EXPECT_EQ(halve->results.size(), 1u);
  EXPECT_EQ(halve->parameters.size(), 2u);
  EXPECT_NE(find(*halve, "ld", "param"), nullptr);

  const Variable *weights = module->findVariable("weights");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->space, Space::Const);
  EXPECT_EQ(weights->bytes, 16u);
  const Variable *steps = module->findVariable("steps");
  ASSERT_NE(steps, nullptr);
  ASSERT_EQ(steps->initial.size(), 2u);
  EXPECT_EQ(steps->initial[0].symbol, "halve");
  EXPECT_EQ(steps->initial[1].symbol, "twice");
  const Variable *where = module->findVariable("where");
  ASSERT_NE(where, nullptr);
  EXPECT_EQ(where->initial.at(0).symbol, "total");
  EXPECT_TRUE(where->initial.at(0).isGeneric);
  const Variable *scratch = module->findVariable("scratch");
  ASSERT_NE(scratch, nullptr);
  EXPECT_TRUE(scratch->isUnsizedArray);

  // The indirect call, and what inline assembly declares in its scope.
  const Instruction *call = nullptr;
  for (const Instruction &one : mixed->code)
    if (one.opcode == "call")
      call = &one;
  ASSERT_NE(call, nullptr);
  ASSERT_EQ(call->operands.size(), 4u);
  EXPECT_EQ(call->operands[1].kind, Operand::Kind::Register);
  EXPECT_EQ(call->operands[3].kind, Operand::Kind::Targets);
  const Instruction *setp = find(*mixed, "setp", "and");
  ASSERT_NE(setp, nullptr);
  EXPECT_EQ(setp->operands[0].kind, Operand::Kind::Pair);
  EXPECT_TRUE(setp->operands[3].isNegated);
}

INSTANTIATE_TEST_SUITE_P(
    Compilers, ParserInputsTest,
    testing::Values("nvcc.ptx", "nvrtc.ptx", "clang.ptx"),
    [](const testing::TestParamInfo<const char *> &info) {
      return llvm::StringRef(info.param).split('.').first.str();
    });

TEST(ParserInputsTest, LineInformationOfNvcc) {
  auto module = parseInput("nvcc.ptx");
  ASSERT_TRUE(module);
  ASSERT_EQ(module->files.size(), 4u);
  EXPECT_EQ(module->files[1], "kernels.cu");
  const Instruction *index = find(*module->findFunction("mixed"), "mad", "lo");
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(index->file, 1u);
  EXPECT_GT(index->line, 20u);
  EXPECT_NE(module->lineText(index->location.line).find("mad.lo"),
            llvm::StringRef::npos);
}

TEST(ParserInputsTest, KernelOfMlir) {
  auto module = parseInput("mlir.ptx");
  ASSERT_TRUE(module);
  const Function *scale = module->findFunction("scale");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->parameters.size(), 11u);
  EXPECT_EQ(scale->parameters[10].type, Type::F32);
  ASSERT_FALSE(scale->variables.empty());
  EXPECT_EQ(scale->variables[0].space, Space::Shared);
}

TEST(ParserInputsTest, EveryCutEndsInAMessage) {
  std::string text = inputText("nvcc.ptx");
  size_t numParsed = 0;
  for (size_t size = 0; size < text.size(); size += 7) {
    auto module = parseModule(llvm::StringRef(text).take_front(size));
    if (module) {
      ++numParsed; // Cut between functions, or in the debug part.
      continue;
    }
    std::string message = llvm::toString(module.takeError());
    EXPECT_NE(message.find(": "), std::string::npos);
    EXPECT_TRUE(message.front() >= '1' && message.front() <= '9') << message;
  }
  EXPECT_LT(numParsed, text.size() / 7 / 2);
}

} // namespace
