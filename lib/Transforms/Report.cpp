// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The JSON report of a run, for scripts. Its fields are in
// docs/formats/report.md.
//
//===----------------------------------------------------------------------===//

#include "Outcome.h"

#include "llvm/Support/FormatVariadic.h"

namespace fsr {

std::string reportText(llvm::ArrayRef<KernelOutcome> outcomes) {
  llvm::json::Array kernels;
  for (const KernelOutcome &outcome : outcomes) {
    bool replaced = outcome.kind == KernelOutcome::Kind::Replaced;
    llvm::json::Object kernel{{"name", outcome.name},
                              {"task", outcome.key},
                              {"outcome", replaced ? "replaced" : "kept"},
                              {"remark", outcome.remark}};
    if (!outcome.detail.empty())
      kernel["detail"] = outcome.detail;
    if (outcome.record) {
      kernel["record"] = outcome.record->id;
      kernel["measurement"] = toJSON(outcome.record->measurement);
      kernel["evidence"] = toJSON(outcome.record->evidence);
    }
    llvm::json::Array trials;
    for (const Trial &trial : outcome.trials)
      trials.push_back(toJSON(trial));
    kernel["trials"] = std::move(trials);
    kernel["pending"] = llvm::json::Array(outcome.pending);
    kernels.push_back(std::move(kernel));
  }
  llvm::json::Value report = llvm::json::Object{
      {"format_version", 1}, {"kernels", std::move(kernels)}};
  return llvm::formatv("{0:2}\n", report).str();
}

} // namespace fsr
