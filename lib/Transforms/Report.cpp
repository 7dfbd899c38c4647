// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The JSON report of a run, for scripts. Its fields are in
// docs/formats/report.md.
//
//===----------------------------------------------------------------------===//

#include "Outcome.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace fsr {

static llvm::json::Value bestJson(const RoundSummary::Best &best) {
  return llvm::json::Object{
      {"round", best.round},
      {"slot", best.slot},
      {"verdict", nameOf(best.verdict)},
      {"median_us", best.medianUs},
      {"original_us", best.originalUs},
      {"speedup", best.speedup},
      {"speedup_low", best.speedupLow},
      // JSON has no infinity; one pair alone has an open interval.
      {"speedup_high", std::isfinite(best.speedupHigh)
                           ? llvm::json::Value(best.speedupHigh)
                           : llvm::json::Value(nullptr)}};
}

static llvm::json::Value roundJson(const RoundSummary &round) {
  llvm::json::Object verdicts;
  for (const auto &[verdict, count] : round.verdicts)
    verdicts[nameOf(verdict)] = int64_t(count);
  llvm::json::Object object{{"round", round.round},
                            {"asked", int64_t(round.asked)},
                            {"reused", int64_t(round.reused)},
                            {"pending", int64_t(round.pending)},
                            {"verdicts", std::move(verdicts)},
                            {"gained", round.gained}};
  if (round.before)
    object["best_before"] = bestJson(*round.before);
  if (round.after)
    object["best_after"] = bestJson(*round.after);
  return object;
}

std::string reportText(llvm::ArrayRef<KernelOutcome> outcomes,
                       const ChatSpending &spending) {
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
    llvm::json::Array rounds;
    for (const RoundSummary &round : outcome.rounds)
      rounds.push_back(roundJson(round));
    kernel["rounds"] = std::move(rounds);
    if (!outcome.stop.empty())
      kernel["stopped"] = outcome.stop;
    kernels.push_back(std::move(kernel));
  }
  llvm::json::Value report = llvm::json::Object{
      {"format_version", 1},
      {"kernels", std::move(kernels)},
      {"spending", llvm::json::Object{{"calls", spending.calls},
                                      {"prompt_tokens", spending.promptTokens},
                                      {"answer_tokens", spending.answerTokens},
                                      {"usd", spending.usd}}}};
  return llvm::formatv("{0:2}\n", report).str();
}

} // namespace fsr
