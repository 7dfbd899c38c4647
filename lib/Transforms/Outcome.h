// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What became of each kernel in a run: said once as a remark at the kernel, in
// the summary line on standard error, and in the JSON report.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TRANSFORMS_OUTCOME_H
#define FSR_LIB_TRANSFORMS_OUTCOME_H

#include "fsr/Search/Search.h"

#include "mlir/IR/Location.h"

namespace fsr {

struct KernelOutcome {
  enum class Kind { Replaced, Kept };
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
};

/// Emits the remark of one outcome (category fsr).
void emitRemark(mlir::Location loc, const KernelOutcome &outcome);

/// "fsr: 3 kernels: 1 replaced (2.31x [2.28, 2.35], NVIDIA H200), 2 kept: no
/// record; details: --remarks-filter=fsr". No newline.
/// `skipped` counts records that were passed over.
std::string summaryLine(llvm::ArrayRef<KernelOutcome> outcomes,
                        unsigned skipped);

/// The report of docs/formats/report.md, as JSON text.
std::string reportText(llvm::ArrayRef<KernelOutcome> outcomes,
                       const ChatSpending &spending);

} // namespace fsr

#endif // FSR_LIB_TRANSFORMS_OUTCOME_H
