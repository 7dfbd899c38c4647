// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The longest common subsequence by its table, after the equal lines at both
// ends are set aside. Two sources of a store have a few hundred lines.
//
//===----------------------------------------------------------------------===//

#include "Diff.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cstdint>

using Lines = llvm::SmallVector<llvm::StringRef>;

/// Cells of the table; above it all lines in between count as replaced.
static constexpr size_t maxCells = size_t(16) << 20;
static constexpr size_t contextLines = 3;

namespace {
/// A line of the diff, and where it stands in both texts, from 0.
struct Step {
  char mark; ///< ' ', '-' or '+'.
  llvm::StringRef line;
  size_t before, after;
};
} // namespace

static Lines linesOf(llvm::StringRef text) {
  Lines lines;
  text.split(lines, '\n');
  if (!lines.empty() && lines.back().empty())
    lines.pop_back(); // Behind the last line feed.
  return lines;
}

static std::vector<Step> compare(const Lines &a, const Lines &b) {
  size_t head = 0, tail = 0;
  size_t shorter = std::min(a.size(), b.size());
  while (head < shorter && a[head] == b[head])
    ++head;
  while (tail < shorter - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  size_t rows = a.size() - head - tail, columns = b.size() - head - tail;
  size_t width = columns + 1;
  bool exact = (rows + 1) <= maxCells / width;
  // length[i * width + j]: of what a[i..] and b[j..] have in common.
  std::vector<uint32_t> length(exact ? (rows + 1) * width : 0);
  for (size_t i = exact ? rows : 0; i-- > 0;)
    for (size_t j = columns; j-- > 0;)
      length[i * width + j] = a[head + i] == b[head + j]
                                  ? length[(i + 1) * width + j + 1] + 1
                                  : std::max(length[(i + 1) * width + j],
                                             length[i * width + j + 1]);

  std::vector<Step> steps;
  size_t i = 0, j = 0;
  auto both = [&] { steps.push_back({' ', a[i], i, j}), ++i, ++j; };
  auto remove = [&] { steps.push_back({'-', a[i], i, j}), ++i; };
  auto add = [&] { steps.push_back({'+', b[j], i, j}), ++j; };
  while (i < head)
    both();
  while (i < head + rows && j < head + columns) {
    size_t cell = (i - head) * width + (j - head);
    if (exact && a[i] == b[j])
      both();
    else if (!exact || length[cell + width] >= length[cell + 1])
      remove();
    else
      add();
  }
  while (i < head + rows)
    remove();
  while (j < head + columns)
    add();
  while (i < a.size())
    both();
  return steps;
}

std::vector<std::string> fsr::unifiedDiff(llvm::StringRef before,
                                          llvm::StringRef after,
                                          llvm::StringRef beforeName,
                                          llvm::StringRef afterName) {
  std::vector<std::string> out;
  if (before == after)
    return out;
  Lines a = linesOf(before), b = linesOf(after);
  std::vector<Step> steps = compare(a, b);
  out.push_back(("--- " + beforeName).str());
  out.push_back(("+++ " + afterName).str());
  auto changed = [](const Step &step) { return step.mark != ' '; };
  auto next = std::find_if(steps.begin(), steps.end(), changed);
  while (next != steps.end()) {
    // A hunk ends where more lines are equal than two contexts take.
    auto last = next;
    for (auto look = next; look != steps.end(); ++look) {
      if (changed(*look))
        last = look;
      else if (size_t(look - last) > 2 * contextLines)
        break;
    }
    auto first = next - std::min<size_t>(contextLines, next - steps.begin());
    auto end =
        last + 1 + std::min<size_t>(contextLines, steps.end() - last - 1);
    size_t removed = std::count_if(
        first, end, [](const Step &step) { return step.mark != '+'; });
    size_t added = std::count_if(
        first, end, [](const Step &step) { return step.mark != '-'; });
    out.push_back(llvm::formatv("@@ -{0},{1} +{2},{3} @@",
                                first->before + (removed ? 1 : 0), removed,
                                first->after + (added ? 1 : 0), added)
                      .str());
    for (auto step = first; step != end; ++step)
      out.push_back((llvm::Twine(step->mark) + step->line).str());
    next = std::find_if(end, steps.end(), changed);
  }
  return out;
}
