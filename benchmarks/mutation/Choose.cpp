// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From PTX to its mutants, and the choice of some. The choice sorts by hashes
// of the seed and the mutants' names, so it is the same on every machine, and a
// mutant that comes or goes moves few others.
//
//===----------------------------------------------------------------------===//

#include "Mutants.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <set>

using llvm::StringRef;

namespace fsr::mutation {

std::string Mutant::apply(StringRef ptx) const {
  return (ptx.take_front(begin) + after + ptx.drop_front(end)).str();
}

std::string Statement::text() const {
  std::string text = guard + (guard.empty() ? "" : " ") + opcode;
  if (!operands.empty())
    text += " " + llvm::join(operands, ", ");
  return text + ";";
}

/// Where each line of a text begins; [0] is line 1.
static std::vector<size_t> lineStarts(StringRef text) {
  std::vector<size_t> starts = {0};
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n')
      starts.push_back(i + 1);
  return starts;
}

static std::vector<std::string> splitOperands(StringRef text) {
  std::vector<std::string> operands;
  unsigned depth = 0;
  size_t from = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      char c = text[i];
      depth += c == '{' || c == '[' || c == '(';
      depth -= c == '}' || c == ']' || c == ')';
      if (c != ',' || depth)
        continue;
    }
    StringRef one = text.slice(from, i).trim();
    if (!one.empty())
      operands.push_back(one.str());
    from = i + 1;
  }
  return operands;
}

/// White space as single blanks: an instruction may stand on several lines.
static std::string onOneLine(StringRef text) {
  std::string line;
  for (char c : text)
    if (!llvm::isSpace(c))
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  return line;
}

llvm::Expected<std::vector<Mutant>> mutantsOf(StringRef candidate,
                                              StringRef ptx) {
  auto module = ptx::parseModule(ptx);
  if (!module)
    return module.takeError();
  StringRef text = (*module)->text;
  std::vector<size_t> starts = lineStarts(text);
  std::vector<Mutant> mutants;
  std::set<std::string> ids;
  for (const ptx::Function &function : (*module)->functions)
    for (const ptx::Instruction &instruction : function.code) {
      Statement statement;
      statement.instruction = &instruction;
      size_t begin = starts[instruction.location.line - 1] +
                     instruction.location.column - 1;
      size_t end = text.find(';', begin) + 1;
      size_t opcode = instruction.opcode.data() - text.data();
      size_t behind = opcode + instruction.opcode.size();
      if (!instruction.modifiers.empty()) {
        StringRef last = instruction.modifiers.back();
        behind = last.data() + last.size() - text.data();
      }
      statement.guard = text.slice(begin, opcode).trim().str();
      statement.opcode = text.slice(opcode, behind).str();
      statement.operands = splitOperands(text.slice(behind, end - 1));
      for (Change &change : changesOf(statement)) {
        Mutant mutant;
        mutant.candidate = candidate.str();
        mutant.kind = change.kind.str();
        mutant.ptxLine = instruction.location.line;
        mutant.cudaLine =
            instruction.siteLine ? instruction.siteLine : instruction.line;
        mutant.before = onOneLine(text.slice(begin, end));
        mutant.after = onOneLine(change.after);
        mutant.begin = begin;
        mutant.end = end;
        mutant.trapGuard = change.trapGuard;
        mutant.keepsGuard = change.keepsGuard;
        mutant.id = (candidate + ":" + llvm::Twine(mutant.ptxLine) + ":" +
                     change.kind + ":" + change.name)
                        .str();
        if (mutant.after == onOneLine(statement.text()) ||
            !ids.insert(mutant.id).second)
          continue;
        mutants.push_back(std::move(mutant));
      }
    }
  return mutants;
}

std::vector<Mutant> choose(std::vector<std::vector<Mutant>> ofCandidates,
                           size_t count, uint64_t seed) {
  // By candidate and operator, the last one to be taken first.
  std::vector<std::map<std::string, std::vector<Mutant *>>> left;
  for (std::vector<Mutant> &mutants : ofCandidates) {
    std::map<Mutant *, std::string> order;
    for (Mutant &mutant : mutants)
      order[&mutant] = FieldHasher().add(int64_t(seed)).add(mutant.id).digest();
    auto &groups = left.emplace_back();
    for (Mutant &mutant : mutants)
      groups[mutant.kind].push_back(&mutant);
    for (auto &group : groups)
      llvm::sort(group.second,
                 [&](Mutant *a, Mutant *b) { return order[a] > order[b]; });
  }
  std::vector<Mutant> chosen;
  std::map<std::string, size_t> taken;
  std::set<std::pair<size_t, size_t>> sites; // Candidate, place.
  bool any = true;
  while (any && chosen.size() < count) {
    any = false;
    for (size_t i = 0; i < left.size() && chosen.size() < count; ++i) {
      // The operator that has been taken least, of those that are left here.
      std::vector<Mutant *> *best = nullptr;
      StringRef bestKind;
      for (StringRef kind : kinds()) {
        auto found = left[i].find(kind.str());
        if (found == left[i].end() || found->second.empty())
          continue;
        if (!best || taken[kind.str()] < taken[bestKind.str()]) {
          best = &found->second;
          bestKind = kind;
        }
      }
      if (!best)
        continue;
      any = true;
      // An instruction that was not changed yet, while there is one.
      size_t at = best->size() - 1;
      for (size_t j = best->size(); j-- > 0;)
        if (!sites.count({i, (*best)[j]->begin})) {
          at = j;
          break;
        }
      Mutant *mutant = (*best)[at];
      best->erase(best->begin() + at);
      sites.insert({i, mutant->begin});
      ++taken[bestKind.str()];
      chosen.push_back(*mutant);
    }
  }
  return chosen;
}

} // namespace fsr::mutation
