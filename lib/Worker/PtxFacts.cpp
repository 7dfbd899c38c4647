// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A look at each instruction. Where an address may be of any memory it counts
// as global, so the facts err to the side of talking.
//
//===----------------------------------------------------------------------===//

#include "PtxFacts.h"

#include "fsr/PTX/Module.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace fsr {

namespace {

bool isShared(llvm::StringRef modifier) {
  return modifier.starts_with("shared");
}

bool isFloatType(llvm::StringRef modifier) {
  return llvm::StringSwitch<bool>(modifier)
      .Cases({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}, true)
      .Default(false);
}

/// Of those that matter here; an address of any memory is not one of these.
bool isOnlyShared(const ptx::Instruction &instruction) {
  return llvm::any_of(instruction.modifiers, isShared) &&
         !instruction.has("global");
}

bool isAtomic(llvm::StringRef opcode) {
  return opcode == "atom" || opcode == "red" || opcode == "multimem";
}

std::string textOf(const ptx::Instruction &instruction) {
  std::string text = "`" + instruction.opcode.str();
  for (llvm::StringRef modifier : instruction.modifiers)
    text += "." + modifier.str();
  return text + "`";
}

bool addsFloats(const ptx::Instruction &instruction) {
  if (isAtomic(instruction.opcode) && instruction.has("cas"))
    return true;
  bool isReduction = isAtomic(instruction.opcode) ||
                     (instruction.opcode == "cp" && instruction.has("reduce"));
  return isReduction && instruction.has("add") &&
         llvm::any_of(instruction.modifiers, isFloatType);
}

bool blocksTalk(const ptx::Instruction &instruction) {
  llvm::StringRef opcode = instruction.opcode;
  if (isAtomic(opcode) || (opcode == "cp" && (instruction.has("reduce") ||
                                              instruction.has("bulk"))))
    return !isOnlyShared(instruction);
  if (opcode == "membar" || opcode == "fence")
    return !instruction.has("cta");
  if (opcode == "ld" || opcode == "st")
    return (instruction.has("volatile") || instruction.has("acquire") ||
            instruction.has("release") || instruction.has("relaxed") ||
            instruction.has("mmio")) &&
           !isOnlyShared(instruction);
  // A cluster, and what code asks of the grid's own memory.
  return (opcode == "barrier" && instruction.has("cluster")) ||
         opcode == "mapa" || opcode == "griddepcontrol";
}

bool warpsTalk(const ptx::Instruction &instruction) {
  llvm::StringRef opcode = instruction.opcode;
  return opcode == "bar" ? !instruction.has("warp")
                         : opcode == "barrier" || opcode == "mbarrier" ||
                               opcode == "membar" || opcode == "fence" ||
                               isAtomic(opcode) ||
                               llvm::any_of(instruction.modifiers, isShared);
}

bool lanesTalk(const ptx::Instruction &instruction) {
  return llvm::StringSwitch<bool>(instruction.opcode)
      .Cases({"shfl", "vote", "match", "redux", "activemask", "elect", "bar"},
             true)
      .Cases({"mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"},
             true)
      .Default(false);
}

} // namespace

llvm::Expected<PtxFacts> readPtxFacts(llvm::StringRef ptx) {
  auto module = ptx::parseModule(ptx);
  if (!module)
    return module.takeError();
  PtxFacts facts;
  auto lookAt = [&](const ptx::Variable &variable) {
    if (variable.space == ptx::Space::Shared && facts.warpsTalk.empty())
      facts.warpsTalk = "`.shared " + variable.name + "`";
    // A module's own memory is seen by all.
    if (variable.space == ptx::Space::Global && facts.blocksTalk.empty())
      facts.blocksTalk = "`.global " + variable.name + "`";
  };
  llvm::for_each((*module)->variables, lookAt);
  for (const ptx::Function &function : (*module)->functions) {
    llvm::for_each(function.variables, lookAt);
    for (const ptx::Instruction &instruction : function.code) {
      facts.addsFloatsAtomically |= addsFloats(instruction);
      if (facts.blocksTalk.empty() && blocksTalk(instruction))
        facts.blocksTalk = textOf(instruction);
      if (facts.warpsTalk.empty() && warpsTalk(instruction))
        facts.warpsTalk = textOf(instruction);
      if (facts.lanesTalk.empty() && lanesTalk(instruction))
        facts.lanesTalk = textOf(instruction);
    }
  }
  if (facts.warpsTalk.empty())
    facts.warpsTalk = facts.blocksTalk;
  if (facts.lanesTalk.empty())
    facts.lanesTalk = facts.warpsTalk;
  return facts;
}

bool mayDeclareGlobal(llvm::StringRef ptx) {
  constexpr llvm::StringLiteral word = ".global";
  auto isOfAName = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = ptx.find(word); at != llvm::StringRef::npos;
       at = ptx.find(word, at + 1)) {
    llvm::StringRef before = ptx.take_front(at);
    llvm::StringRef after = ptx.drop_front(at + word.size());
    // Of an instruction: ld.global.
    if (!before.empty() && isOfAName(before.back()))
      continue;
    if (!after.empty() && isOfAName(after.front()))
      continue;
    // `.param .u64 .ptr .global .align 4 x`, in one line and no comment.
    llvm::StringRef line = before.rsplit('\n').second;
    if (before.find('\n') == llvm::StringRef::npos)
      line = before;
    llvm::StringRef last = line.rtrim(" \t");
    if (last.size() < line.size() && last.consume_back(".ptr") &&
        last.contains(".param") && !last.contains('/'))
      continue;
    return true;
  }
  return false;
}

} // namespace fsr
