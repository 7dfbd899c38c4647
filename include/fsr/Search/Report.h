// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What became of each kernel in a run, and the JSON report that says it: one
// form for the passes and for fsr-tune.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SEARCH_REPORT_H
#define FSR_SEARCH_REPORT_H

#include "fsr/Search/Search.h"

namespace fsr {

struct KernelOutcome {
  enum class Kind {
    Replaced, ///< Its record is in the module.
    Kept,     ///< The original stays.
    Found     ///< There is a record; no module to put it in.
  };
  Kind kind = Kind::Kept;
  std::string name, key;
  std::string reason;    ///< Kept: short, groups in the summary.
  std::string detail;    ///< Kept: the whole sentence.
  std::string remark;    ///< Name of the remark: StoreMiss, NotTaken….
  bool rejected = false; ///< A search ran and accepted nothing.
  std::optional<Record> record;
  std::vector<Trial> trials; ///< Of a search in this run.
  std::vector<std::string> pending;
  std::vector<RoundSummary> rounds; ///< Of that search.
  std::string stop;                 ///< Why it ended; empty without one.
  std::optional<TaskStrength> strength;
};

/// Puts down what a search found. Where there is no winner, reason, detail and
/// remark say why.
void takeSearch(const SearchOutcome &found, KernelOutcome &outcome);

/// The report of docs/formats/report.md, as JSON text.
std::string reportText(llvm::ArrayRef<KernelOutcome> outcomes,
                       const ChatSpending &spending);

} // namespace fsr

#endif // FSR_SEARCH_REPORT_H
