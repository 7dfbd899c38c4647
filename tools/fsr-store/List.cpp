// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-store list`: one line a task and target, in columns as wide as what is
// in them. A key covers the target, so a task has one.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "fsr/Support/Hash.h"
#include "fsr/Terminal/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <array>

using namespace fsr;

using Row = std::array<std::string, 6>;

static Row rowOf(const TaskHistory &task) {
  std::string best = "-";
  if (!task.records.empty()) {
    const Record &record = task.records.front();
    best = gainText(record) + " " + printable(record.measurement.device);
    if (record.evidence.level != EvidenceLevel::Measured)
      best += (" (evidence " + nameOf(record.evidence.level) + ")").str();
  }
  std::string name = printable(task.kernelName());
  std::string target = printable(task.target());
  return {name.empty() ? "?" : name,
          shortHash(task.key).str(),
          target.empty() ? "?" : target,
          best,
          llvm::utostr(task.records.size()),
          countsText(task.trials) +
              (task.unfinished ? "; a search has not ended" : "")};
}

void fsr::listStore(const StoreHistory &history, llvm::raw_ostream &os) {
  if (history.tasks.empty()) {
    os << "no tasks\n";
    return;
  }
  std::vector<Row> rows{
      {"kernel", "key", "target", "best record", "records", "trials"}};
  for (const TaskHistory &task : history.tasks)
    rows.push_back(rowOf(task));
  // Kernels of one name together, whatever their keys.
  llvm::sort(rows.begin() + 1, rows.end());
  std::array<size_t, 6> widths{};
  for (const Row &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], columnsOf(row[i]));
  for (const Row &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += padded(row[i], i + 1 == row.size() ? 0 : widths[i] + 2);
    bool isHead = &row == &rows.front();
    os << coloured(os, isHead ? Colour::Dim : Colour::None, line) << "\n";
  }
}
