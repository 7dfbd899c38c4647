// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The probes. A predicate register, the tag, is set by the changed instruction
// and cleared by all others that write the same register; whatever reads the
// register traps where the tag is set. A copy is a read. Which values data can
// reach is found without regard to the order of instructions: every definition
// of a register counts.
//
//===----------------------------------------------------------------------===//

#include "Probe.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using fsr::ptx::Function;
using fsr::ptx::Instruction;
using fsr::ptx::Operand;
using llvm::StringRef;

namespace fsr::mutation {

namespace {

bool isOneOf(StringRef word, std::initializer_list<StringRef> words) {
  return llvm::is_contained(words, word);
}

/// Instructions whose first operand is no result.
bool hasResult(const Instruction &instruction) {
  return !instruction.operands.empty() &&
         !isOneOf(
             instruction.opcode,
             {"st",       "red",   "bar",      "barrier",        "bra",
              "brx",      "ret",   "exit",     "trap",           "membar",
              "fence",    "cp",    "prefetch", "discard",        "nanosleep",
              "mbarrier", "wgmma", "stmatrix", "griddepcontrol", "pmevent",
              "brkpt"});
}

void collect(const Operand &operand, std::set<uint32_t> &into) {
  if (operand.isRegister())
    into.insert(operand.index);
  for (const Operand &element : operand.elements)
    collect(element, into);
}

std::set<uint32_t> writtenBy(const Instruction &instruction) {
  std::set<uint32_t> registers;
  if (hasResult(instruction))
    collect(instruction.operands.front(), registers);
  return registers;
}

std::set<uint32_t> readBy(const Instruction &instruction) {
  std::set<uint32_t> registers;
  for (size_t i = hasResult(instruction); i < instruction.operands.size(); ++i)
    collect(instruction.operands[i], registers);
  if (instruction.guard)
    registers.insert(*instruction.guard);
  return registers;
}

/// Results that data of a buffer may be in.
bool bringsData(const Instruction &instruction) {
  if (instruction.opcode == "ld" || instruction.opcode == "ldu")
    return !instruction.has("param") && !instruction.has("const");
  return isOneOf(instruction.opcode,
                 {"atom", "call", "tex", "ldmatrix", "surfld", "mbarrier"});
}

bool dataReaches(const Function &function, const Instruction &instruction) {
  std::multimap<uint32_t, const Instruction *> writers;
  for (const Instruction &one : function.code)
    for (uint32_t index : writtenBy(one))
      writers.emplace(index, &one);
  if (bringsData(instruction))
    return true;
  std::set<uint32_t> seen = readBy(instruction);
  std::vector<uint32_t> todo(seen.begin(), seen.end());
  while (!todo.empty()) {
    uint32_t index = todo.back();
    todo.pop_back();
    auto range = writers.equal_range(index);
    for (auto it = range.first; it != range.second; ++it) {
      if (bringsData(*it->second))
        return true;
      for (uint32_t next : readBy(*it->second))
        if (seen.insert(next).second)
          todo.push_back(next);
    }
  }
  return false;
}

class Prober {
public:
  Prober(StringRef text, const Mutant &mutant) : text(text), mutant(mutant) {
    lineStarts.push_back(0);
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n')
        lineStarts.push_back(i + 1);
  }

  size_t placeOf(const Instruction &instruction) const {
    return lineStarts[instruction.location.line - 1] +
           instruction.location.column - 1;
  }
  size_t endOf(const Instruction &instruction) const {
    return text.find(';', placeOf(instruction)) + 1;
  }
  std::string guardOf(const Function &function,
                      const Instruction &instruction) const {
    if (!instruction.guard)
      return "";
    return (instruction.isGuardNegated ? "@!" : "@") +
           function.registers[*instruction.guard].name + " ";
  }

  /// The text with a trap wherever `result` of the changed instruction is read
  /// (where it is not the candidate's own, with `onlyDifferent`).
  std::string tagged(const Function &function, const Instruction &changed,
                     uint32_t result, bool onlyDifferent) const;

private:
  StringRef text;
  const Mutant &mutant;
  std::vector<size_t> lineStarts;
};

std::string Prober::tagged(const Function &function, const Instruction &changed,
                           uint32_t result, bool onlyDifferent) const {
  const ptx::RegisterDecl &reg = function.registers[result];
  std::multimap<size_t, std::string> inserts;
  const Instruction &first = function.code.front();
  size_t brace = text.rfind('{', placeOf(first));
  inserts.emplace(brace + 1, "\n.reg .pred %fsr_tag;\n");
  // Labels of loops may stand before the first instruction, so the tag is
  // cleared behind the declarations, which end before it and before them.
  std::string clear = "setp.ne.u32 %fsr_tag, 0, 0;";
  std::string set = "setp.eq.u32 %fsr_tag, 0, 0;";
  inserts.emplace(brace + 1, clear + "\n");
  for (const Instruction &one : function.code) {
    if (readBy(one).count(result))
      inserts.emplace(placeOf(one), "@%fsr_tag trap;\n");
    if (&one != &changed && writtenBy(one).count(result))
      inserts.emplace(endOf(one), "\n" + guardOf(function, one) + clear);
  }
  size_t begin = mutant.begin, end = mutant.end;
  std::string guard = guardOf(function, changed);
  std::string replaced = text.slice(begin, end).str();
  if (!onlyDifferent) {
    replaced += " " + guard + set;
  } else {
    std::string type = ptx::nameOf(reg.type).str();
    std::string move = "mov." + type;
    std::string compare = reg.type == ptx::Type::Pred
                              ? "xor.pred %fsr_tag, %fsr_new, " + reg.name + ";"
                              : "setp.ne.b" +
                                    std::to_string(ptx::bitWidth(reg.type)) +
                                    " %fsr_tag, %fsr_new, " + reg.name + ";";
    replaced = "{ .reg ." + type + " %fsr_before; .reg ." + type +
               " %fsr_new; " + move + " %fsr_before, " + reg.name + "; " +
               mutant.after + " " + move + " %fsr_new, " + reg.name + "; " +
               move + " " + reg.name + ", %fsr_before; " + replaced + " " +
               guard + compare + " }";
  }
  std::string made;
  size_t at = 0;
  auto copyTo = [&](size_t to) {
    made += text.slice(at, to).str();
    at = to;
  };
  bool isReplaced = false;
  auto replace = [&] {
    copyTo(begin);
    made += replaced;
    at = end;
    isReplaced = true;
  };
  for (const auto &[place, what] : inserts) {
    if (!isReplaced && place > begin)
      replace();
    copyTo(place);
    made += what;
  }
  if (!isReplaced)
    replace();
  copyTo(text.size());
  return made;
}

} // namespace

llvm::Expected<Probes> probesOf(StringRef ptx, const Mutant &mutant) {
  auto module = ptx::parseModule(ptx);
  if (!module)
    return module.takeError();
  Prober prober((*module)->text, mutant);
  Probes probes;
  probes.executed = (ptx.take_front(mutant.begin) + mutant.trapGuard +
                     (mutant.trapGuard.empty() ? "" : " ") + "trap;\n" +
                     ptx.drop_front(mutant.begin))
                        .str();
  for (const Function &function : (*module)->functions)
    for (const Instruction &one : function.code) {
      if (prober.placeOf(one) != mutant.begin)
        continue;
      if (!hasResult(one) || !one.operands.front().isRegister() ||
          !mutant.keepsGuard)
        return probes;
      uint32_t result = one.operands.front().index;
      probes.read = prober.tagged(function, one, result, false);
      if (!dataReaches(function, one))
        probes.differs = prober.tagged(function, one, result, true);
      return probes;
    }
  return makeError(ErrorKind::BadInput,
                   mutant.id + ": no instruction begins there");
}

} // namespace fsr::mutation
