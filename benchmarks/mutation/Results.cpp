// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The file of results, the arguments and the report. The file is tab-separated
// and in the order in which mutants were judged; messages are cut, since they
// are there to be skimmed.
//
//===----------------------------------------------------------------------===//

#include "Results.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>

using llvm::StringRef;

namespace fsr::mutation {

static constexpr size_t messageBytes = 160, fields = 11;

static constexpr std::pair<Outcome, llvm::StringLiteral> outcomes[] = {
    {Outcome::Refused, "refused"},
    {Outcome::Survived, "survived"},
    {Outcome::NotCompiled, "not-compiled"},
    {Outcome::SameCode, "same-code"},
    {Outcome::Unreached, "no-change: unreached"},
    {Outcome::Unused, "no-change: unused"},
    {Outcome::SameValue, "no-change: same value"},
};

StringRef nameOf(Outcome outcome) {
  for (const auto &[one, name] : outcomes)
    if (one == outcome)
      return name;
  return "";
}

std::string headings() {
  return "id\tcandidate\tptx-line\tcuda-line\toperator\tbefore\tafter\toutcome"
         "\tverdict\tcheck\tmessage\n";
}

/// One field: no tab, no end of a line.
static std::string field(StringRef text) {
  std::string made = printable(text.take_front(messageBytes));
  llvm::replace(made, '\t', ' ');
  return made;
}

std::string Row::text() const {
  std::string line;
  for (const std::string &one :
       {mutant.id, mutant.candidate, std::to_string(mutant.ptxLine),
        std::to_string(mutant.cudaLine), mutant.kind, mutant.before,
        mutant.after.empty() ? std::string("(nothing)") : mutant.after,
        nameOf(outcome).str(), verdict, check,
        StringRef(message).split('\n').first.str()})
    line += (line.empty() ? "" : "\t") + field(one);
  return line + "\n";
}

llvm::Expected<std::map<std::string, Row>> readRows(StringRef text) {
  std::map<std::string, Row> rows;
  unsigned number = 0;
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == StringRef::npos)
      break; // It was being written when the run was stopped.
    StringRef line = text.take_front(end);
    text = text.drop_front(end + 1);
    if (++number == 1)
      continue;
    llvm::SmallVector<StringRef> parts;
    line.split(parts, '\t');
    auto outcome = llvm::find_if(outcomes, [&](const auto &one) {
      return parts.size() == fields && one.second == parts[7];
    });
    Row row;
    if (outcome == std::end(outcomes) ||
        parts[2].getAsInteger(10, row.mutant.ptxLine) ||
        parts[3].getAsInteger(10, row.mutant.cudaLine))
      return makeError(ErrorKind::BadInput, "line " + llvm::Twine(number) +
                                                " is no line of results");
    row.mutant.id = parts[0].str();
    row.mutant.candidate = parts[1].str();
    row.mutant.kind = parts[4].str();
    row.mutant.before = parts[5].str();
    row.mutant.after = parts[6].str();
    row.outcome = outcome->first;
    row.verdict = parts[8].str();
    row.check = parts[9].str();
    row.message = parts[10].str();
    std::string id = row.mutant.id;
    rows[id] = std::move(row);
  }
  return rows;
}

llvm::Expected<std::map<std::string, std::string>>
readArguments(StringRef text) {
  std::map<std::string, std::string> arguments;
  unsigned number = 0;
  for (StringRef line : llvm::split(text, '\n')) {
    ++number;
    line = line.trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    // Names hold colons and no tab; a tab stands before the sentence.
    auto [id, sentence] = line.split('\t');
    if (sentence.trim().empty())
      return makeError(ErrorKind::BadInput,
                       "line " + llvm::Twine(number) +
                           ": expected a mutant's name, a tab and a sentence");
    arguments[id.str()] = sentence.trim().str();
  }
  return arguments;
}

bool isMade(Outcome outcome) {
  return outcome == Outcome::Refused || outcome == Outcome::Survived ||
         outcome == Outcome::SameCode;
}

double Score::percent() const {
  size_t left = made - dropped();
  return left ? 100.0 * double(refused) / double(left) : 0;
}

/// "(one non-zero element a row)" and the like are not told apart here.
static std::string checkName(const Row &row) {
  return StringRef(row.check).split(" (").first.str();
}

Score report(const std::vector<Row> &rows,
             const std::map<std::string, std::string> &arguments,
             const std::map<std::string, std::string> &sources,
             llvm::raw_ostream &os) {
  Score score;
  struct Count {
    size_t made = 0, dropped = 0, refused = 0, survived = 0;
  };
  std::map<std::string, Count> byKind, byCandidate;
  std::map<std::string, size_t> byCheck;
  std::vector<const Row *> survivors;
  for (const Row &row : rows) {
    Count &kind = byKind[row.mutant.kind];
    Count &candidate = byCandidate[row.mutant.candidate];
    auto count = [&](size_t Count::*which) {
      ++(kind.*which);
      ++(candidate.*which);
    };
    ++score.drawn;
    if (isMade(row.outcome)) {
      ++score.made;
      count(&Count::made);
    }
    switch (row.outcome) {
    case Outcome::Refused:
      ++score.refused;
      count(&Count::refused);
      ++byCheck[row.verdict + "\t" + checkName(row)];
      break;
    case Outcome::Survived:
      if (arguments.count(row.mutant.id)) {
        ++score.argued;
        count(&Count::dropped);
        break;
      }
      ++score.survived;
      count(&Count::survived);
      survivors.push_back(&row);
      break;
    case Outcome::SameCode:
      ++score.sameCode;
      count(&Count::dropped);
      break;
    case Outcome::NotCompiled:
      ++score.notCompiled;
      break;
    case Outcome::Unreached:
      ++score.unreached;
      break;
    case Outcome::Unused:
      ++score.unused;
      break;
    case Outcome::SameValue:
      ++score.sameValue;
      break;
    }
  }
  auto table = [&](StringRef title, const std::map<std::string, Count> &counts,
                   llvm::ArrayRef<std::string> order) {
    os << llvm::formatv("{0,-16} {1,6} {2,8} {3,8} {4,9}\n", title, "made",
                        "dropped", "refused", "survived");
    for (const std::string &name : order) {
      auto found = counts.find(name);
      if (found == counts.end())
        continue;
      const Count &one = found->second;
      os << llvm::formatv("{0,-16} {1,6} {2,8} {3,8} {4,9}\n", name, one.made,
                          one.dropped, one.refused, one.survived);
    }
    os << "\n";
  };
  std::vector<std::string> order;
  for (StringRef kind : kinds())
    order.push_back(kind.str());
  table("operator", byKind, order);
  order.clear();
  for (const auto &one : byCandidate)
    order.push_back(one.first);
  table("candidate", byCandidate, order);
  os << "refused by\n";
  for (const auto &[what, number] : byCheck) {
    auto [verdict, check] = StringRef(what).split('\t');
    os << llvm::formatv("  {0,6}  {1}, {2}\n", number, verdict, check);
  }
  if (!survivors.empty())
    os << "\nsurvivors\n";
  for (const Row *row : survivors) {
    os << "  " << row->mutant.id << "\n    PTX   " << row->mutant.before
       << "\n    now   " << row->mutant.after << "\n";
    auto source = sources.find(row->mutant.candidate);
    if (row->mutant.cudaLine && source != sources.end()) {
      llvm::SmallVector<StringRef> lines;
      StringRef(source->second).split(lines, '\n');
      if (row->mutant.cudaLine <= lines.size())
        os << "    CUDA  " << row->mutant.cudaLine << ": "
           << printable(lines[row->mutant.cudaLine - 1].trim()) << "\n";
    }
    if (!row->message.empty())
      os << "    " << row->message << "\n";
  }
  os << llvm::formatv(
      "\n{0} drawn: {1} not compiled, {2} proved to change nothing ({3} never "
      "executed, {4} never read, {5} the same value), {6} made\n",
      score.drawn, score.notCompiled, score.noChange(), score.unreached,
      score.unused, score.sameValue, score.made);
  os << llvm::formatv(
      "{0} made: {1} dropped as equal ({2} the same machine code, {3} argued; "
      "{4:f1} %), {5} refused, {6} survived\n",
      score.made, score.dropped(), score.sameCode, score.argued,
      score.made ? 100.0 * double(score.dropped()) / double(score.made) : 0,
      score.refused, score.survived);
  os << llvm::formatv("refused: {0} of {1}, {2:f1} %\n", score.refused,
                      score.made - score.dropped(), score.percent());
  return score;
}

} // namespace fsr::mutation
