// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The JSON report of a run, for scripts. Its fields are in
// docs/formats/report.md, and in report.schema.json beside it for programs.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Report.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
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

static llvm::json::Value strengthJson(const TaskStrength &strength) {
  return llvm::json::Object{{"summary", strength.summary()},
                            {"device", strength.device},
                            {"modelled", strength.isModelled},
                            {"workload", llvm::json::Array(strength.workload)},
                            {"dummies", llvm::json::Array(strength.dummies)}};
}

static llvm::StringRef nameOf(KernelOutcome::Kind kind) {
  switch (kind) {
  case KernelOutcome::Kind::Replaced:
    return "replaced";
  case KernelOutcome::Kind::Kept:
    return "kept";
  case KernelOutcome::Kind::Found:
    return "found";
  }
  llvm_unreachable("no such outcome");
}

static void describeFailure(const SearchOutcome &found,
                            KernelOutcome &outcome) {
  if (!found.weak.empty()) {
    outcome.remark = "WeakWorkload";
    outcome.reason = "the workload is too weak";
    outcome.detail = found.weak;
    return;
  }
  if (!found.trouble.empty()) {
    outcome.remark = "SearchTrouble";
    outcome.reason = "the search had trouble";
    outcome.detail = found.trouble;
    return;
  }
  if (!found.pending.empty()) {
    outcome.remark = "AnswersPending";
    outcome.reason = "answers pending";
    outcome.detail = "answers pending: " + llvm::join(found.pending, ", ");
    return;
  }
  if (found.stop == SearchStop::Budget) {
    outcome.remark = "BudgetReached";
    outcome.reason = "the budget is reached";
    outcome.detail = found.budget;
    return;
  }
  llvm::MapVector<llvm::StringRef, unsigned> verdicts;
  for (const Trial &trial : found.trials)
    ++verdicts[nameOf(trial.verdict)];
  std::string counts;
  llvm::raw_string_ostream os(counts);
  llvm::interleaveComma(verdicts, os, [&](const auto &entry) {
    os << entry.second << " " << entry.first;
  });
  outcome.remark = "SearchFailed";
  outcome.rejected = true;
  outcome.reason = "no candidate accepted";
  outcome.detail = "no candidate accepted of " +
                   llvm::utostr(found.trials.size()) +
                   (counts.empty() ? "" : ": " + counts);
}

void takeSearch(const SearchOutcome &found, KernelOutcome &outcome) {
  outcome.trials = found.trials;
  outcome.rounds = found.rounds;
  outcome.stop = nameOf(found.stop);
  outcome.pending = found.pending;
  outcome.record = found.winner;
  outcome.strength = found.strength;
  if (!outcome.record)
    describeFailure(found, outcome);
}

std::string reportText(llvm::ArrayRef<KernelOutcome> outcomes,
                       const ChatSpending &spending) {
  llvm::json::Array kernels;
  for (const KernelOutcome &outcome : outcomes) {
    llvm::json::Object kernel{{"name", outcome.name},
                              {"task", outcome.key},
                              {"outcome", nameOf(outcome.kind)},
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
    if (outcome.strength)
      kernel["strength"] = strengthJson(*outcome.strength);
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
