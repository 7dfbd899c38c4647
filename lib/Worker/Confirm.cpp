// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The last word on a candidate that won its race. The best of several noisy
// times looks better than it is, so what is told of a winner comes from here: a
// process that has run nothing else, inputs that the race did not have, every
// case of the workload, and L2 cold as well as warm. Each of these is a race of
// its own with at least thirty pairs.
//
// With a cold cache every case must be faster beyond its margin. With a warm
// one none may be slower by so much: which of the two a program has is not
// known.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace fsr {

namespace {
constexpr int64_t firstLook = 32;
/// Sets of inputs that no race comes to.
constexpr unsigned freshSets = 0x4000;
} // namespace

double confirmationBudgetMs(double gpuSeconds) {
  constexpr double mostMs = 60e3;
  return gpuSeconds > 0 ? std::min(mostMs, 1000 * gpuSeconds) : mostMs;
}

llvm::Expected<bool> Evaluation::confirm() {
  if (llvm::Error error = prepareTiming())
    return std::move(error);
  timingSets = freshSets;
  size_t cases = std::max<size_t>(task.workload.size(), 1);
  budgetMs =
      confirmationBudgetMs(request.options.gpuSeconds) / double(2 * cases);
  timingStart = Deadline::Clock::now();
  if (llvm::Error error = refresh())
    return std::move(error);
  if (llvm::Error error = warmUp())
    return std::move(error);
  if (llvm::Error error = chooseBatch())
    return std::move(error);

  int64_t wanted = std::clamp<int64_t>(request.options.maxPairs, firstLook,
                                       Measurement::mostPairs);
  noteConditions();
  std::optional<Measurement> worst;
  Verdict verdict = Verdict::Accepted;
  std::string story, reason;
  for (timingCase = 0; timingCase < cases; ++timingCase) {
    std::string name = timingCase < task.workload.size()
                           ? task.workload[timingCase].name
                           : std::string("all");
    for (bool warm : {false, true}) {
      warmCache = warm;
      timingStart = Deadline::Clock::now();
      auto noise = findNoise();
      if (!noise)
        return noise.takeError();
      double margin = acceptanceMargin(*noise);
      RaceRule rule(margin, wanted, firstLook);
      Verdict one;
      auto goesOn = runPairs(rule, one);
      if (!goesOn || !*goesOn)
        return goesOn;
      take(rule, *noise);
      if (measurement.originalUs.empty())
        return finish(
            Verdict::Undecided,
            "no pair was timed at a steady clock: the device is throttled");
      std::string text = llvm::formatv(
          "{0}, {1} cache: {2:f3}x [{3:f3}, {4:f3}] over {5} pairs", name,
          warm ? "warm" : "cold", measurement.speedup, measurement.speedupLow,
          measurement.speedupHigh, measurement.originalUs.size());
      story += (story.empty() ? "" : "; ") + text;
      if (warm) // Not slower is enough.
        one = measurement.speedupHigh < 1 - margin ? Verdict::NotFaster
                                                   : Verdict::Accepted;
      if (*noise > noiseTooLarge)
        one = Verdict::Undecided;
      if (one != Verdict::Accepted && verdict != Verdict::NotFaster) {
        verdict = one;
        reason = text;
      }
      if (!warm && (!worst || measurement.speedupLow < worst->speedupLow))
        worst = measurement;
    }
  }
  warmCache = false;
  timingCase = 0;
  noteConditions();
  worst->conditions = measurement.conditions;
  worst->droppedPairs = measurement.droppedPairs;
  measurement = std::move(*worst);
  result.measurement = measurement;
  addConditionsCheck();
  bool passed = verdict == Verdict::Accepted;
  addCheck("confirmed", passed, "the workload's own, fresh, every case",
           "in a fresh process: faster with a cold cache and not slower with a "
           "warm one",
           llvm::formatv("{0}; outputs of {1} timed launches were looked at",
                         story, timedChecks)
               .str());
  const Measurement &m = measurement;
  std::string text = llvm::formatv(
      "confirmed in a fresh process: {0:f3}x [{1:f3}, {2:f3}] over {3} pairs; "
      "original {4:f2} us, candidate {5:f2} us, noise floor {6:f2} %",
      m.speedup, m.speedupLow, m.speedupHigh, m.originalUs.size(),
      m.originalMedianUs, m.candidateMedianUs, 100 * m.noiseFloor);
  finish(verdict,
         passed ? text : "not confirmed in a fresh process: " + reason);
  return true;
}

} // namespace fsr
