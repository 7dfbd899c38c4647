// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The probes. A predicate register, the tag, is set by the changed instruction
// and cleared by all others that write the same register; whatever reads the
// register traps where the tag is set. A copy is a read. What data can decide
// is found without regard to the order of instructions, and errs on its side:
// what a branch on data may jump over, or around, counts as decided by it.
//
//===----------------------------------------------------------------------===//

#include "Probe.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
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

bool isBranchOrAccess(const Instruction &instruction) {
  return isOneOf(instruction.opcode, {"bra", "brx", "ret", "exit", "ld", "ldu",
                                      "st", "atom", "red", "cp"});
}

/// What data can decide in a function.
class Data {
public:
  Data(const Function &function, bool isSteadyKernel)
      : code(function.code), steered(code.size()) {
    // Each round adds a register or an instruction, or is the last.
    do {
      changed = false;
      for (size_t i = 0; i < code.size(); ++i)
        look(i, isSteadyKernel);
    } while (changed);
  }

  /// Whether `i` runs, and how often, may depend on data.
  bool decides(size_t i) const { return steered[i]; }
  bool isRead(size_t i) const {
    return bringsData(code[i]) ||
           llvm::any_of(readBy(code[i]), [&](uint32_t index) {
             return registers.count(index) != 0;
           });
  }

private:
  void look(size_t i, bool isSteadyKernel) {
    const Instruction &one = code[i];
    // A steady kernel is one whose branches and accesses no data decides;
    // another instruction may still have a predicate of data.
    bool isKnownSteady = isSteadyKernel && isBranchOrAccess(one);
    if (!isKnownSteady && one.guard && registers.count(*one.guard)) {
      steer(i);
      if (one.opcode == "bra")
        steerBranch(i);
      else if (isOneOf(one.opcode, {"ret", "exit"}))
        steerFrom(i, code.size());
    }
    if (!isSteadyKernel && one.opcode == "brx" && isRead(i))
      steerFrom(0, code.size());
    if (steered[i] || isRead(i))
      for (uint32_t index : writtenBy(one))
        changed |= registers.insert(index).second;
  }
  void steer(size_t i) {
    changed |= !steered[i];
    steered[i] = true;
  }
  std::optional<size_t> targetOf(const Instruction &one) const {
    if (one.opcode != "bra" || one.operands.empty() ||
        one.operands.back().kind != Operand::Kind::Label)
      return std::nullopt;
    return one.operands.back().index;
  }
  void steerBranch(size_t i) {
    std::optional<size_t> target = targetOf(code[i]);
    if (!target)
      steerFrom(0, code.size());
    else if (*target > i)
      steerFrom(i + 1, *target);
    else
      steerFrom(*target, i + 1);
  }
  /// All of [begin, end), and what is jumped over from there.
  void steerFrom(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      steer(i);
      if (isOneOf(code[i].opcode, {"ret", "exit", "brx"}))
        end = code.size();
      std::optional<size_t> target = targetOf(code[i]);
      if (!target)
        continue;
      end = std::max(end, *target);
      if (*target < begin) {
        begin = *target;
        i = begin - 1; // Wraps to `begin` with the increment.
      }
    }
  }

  const std::vector<Instruction> &code;
  std::vector<bool> steered;
  std::set<uint32_t> registers;
  bool changed = false;
};

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
  // Before all else: the label of a loop may stand before the first
  // instruction.
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

llvm::Expected<Probes> probesOf(StringRef ptx, const Mutant &mutant,
                                bool isSteadyKernel) {
  auto module = ptx::parseModule(ptx);
  if (!module)
    return module.takeError();
  Prober prober((*module)->text, mutant);
  Probes probes;
  probes.executed.ptx = (ptx.take_front(mutant.begin) + mutant.trapGuard +
                         (mutant.trapGuard.empty() ? "" : " ") + "trap;\n" +
                         ptx.drop_front(mutant.begin))
                            .str();
  for (const Function &function : (*module)->functions)
    for (size_t i = 0; i < function.code.size(); ++i) {
      const Instruction &one = function.code[i];
      if (prober.placeOf(one) != mutant.begin)
        continue;
      Data data(function, isSteadyKernel);
      probes.executed.isForAllData = !data.decides(i);
      if (!hasResult(one) || !one.operands.front().isRegister() ||
          !mutant.keepsGuard)
        return probes;
      uint32_t result = one.operands.front().index;
      bool isSteady = !data.decides(i);
      for (size_t j = 0; j < function.code.size(); ++j)
        if (readBy(function.code[j]).count(result) ||
            writtenBy(function.code[j]).count(result))
          isSteady &= !data.decides(j);
      probes.read = {prober.tagged(function, one, result, false), isSteady};
      if (!data.isRead(i))
        probes.differs = {prober.tagged(function, one, result, true), isSteady};
      return probes;
    }
  return makeError(ErrorKind::BadInput,
                   mutant.id + ": no instruction begins there");
}

} // namespace fsr::mutation
