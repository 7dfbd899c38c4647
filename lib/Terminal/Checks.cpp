// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The table of an evidence's checks. Nothing is cut: long lists of inputs go on
// in lines below. What did not run is not called passed, and a check that
// failed tells what was wanted apart from what was found. The same check with
// the same outcome is one row and a count.
//
//===----------------------------------------------------------------------===//

#include "fsr/Terminal/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <tuple>

using namespace fsr;

namespace {

constexpr size_t widestInputs = 44;

struct Row {
  const Check *check = nullptr;
  unsigned count = 1;
  std::string name, result, text;
  std::vector<std::string> inputs; ///< By line.
};

/// At blanks; a word that is longer than a line keeps its length.
std::vector<std::string> wrapped(llvm::StringRef text, size_t columns) {
  std::vector<std::string> lines;
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : words) {
    if (!lines.empty() &&
        columnsOf(lines.back()) + 1 + columnsOf(word) <= columns)
      lines.back() += (" " + word).str();
    else
      lines.push_back(word.str());
  }
  if (lines.empty())
    lines.push_back("-");
  return lines;
}

bool isSame(const Check &a, const Check &b) {
  return std::tie(a.name, a.passed, a.inputs, a.rule, a.detail) ==
         std::tie(b.name, b.passed, b.inputs, b.rule, b.detail);
}

/// The column of results and what stands behind it.
void describe(const Check &check, Row &row) {
  std::string rule = printable(check.rule), detail = printable(check.detail);
  llvm::StringRef what = detail;
  if (!check.passed) {
    row.result = "FAILED";
    row.text = "wanted: " + rule + (detail.empty() ? "" : "; got: " + detail);
    return;
  }
  if (rule == "not run") {
    row.result = rule;
    row.text = detail;
    return;
  }
  bool wasTried = !what.consume_front("not tried: ");
  row.result = wasTried ? "passed" : "not tried";
  row.text = rule + (what.empty() ? "" : "; " + what.str());
}

} // namespace

void fsr::printChecks(llvm::ArrayRef<Check> checks, llvm::raw_ostream &os) {
  std::vector<Row> rows;
  for (const Check &check : checks) {
    auto same = llvm::find_if(
        rows, [&](const Row &row) { return isSame(*row.check, check); });
    if (same != rows.end()) {
      ++same->count;
      continue;
    }
    Row row;
    row.check = &check;
    row.inputs = wrapped(printable(check.inputs), widestInputs);
    describe(check, row);
    rows.push_back(std::move(row));
  }
  size_t names = 5, results = 6, inputs = 6;
  for (Row &row : rows) {
    row.name = printable(row.check->name);
    if (row.count > 1)
      row.name += " (" + std::to_string(row.count) + " times)";
    names = std::max(names, columnsOf(row.name));
    results = std::max(results, row.result.size());
    for (const std::string &line : row.inputs)
      inputs = std::max(inputs, columnsOf(line));
  }
  os << "  " << padded("check", names) << "  " << padded("result", results)
     << "  " << padded("inputs", inputs) << "  rule; detail\n";
  for (const Row &row : rows) {
    Colour colour = !row.check->passed       ? Colour::Bad
                    : row.result == "passed" ? Colour::Good
                                             : Colour::None;
    os << "  " << padded(row.name, names) << "  "
       << coloured(os, colour, padded(row.result, results)) << "  "
       << padded(row.inputs.front(), inputs) << "  " << row.text << "\n";
    for (const std::string &line : llvm::drop_begin(row.inputs))
      os << std::string(names + results + 6, ' ') << line << "\n";
  }
}
