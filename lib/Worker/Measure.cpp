// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The order of measuring: warm up; screen with three launches; the original
// against itself for the noise floor; the race; then the checks that a time can
// be true. docs/design/measuring.md gives the reasons.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "fsr/Core/Statistics.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

namespace fsr {

namespace {

using Clock = Deadline::Clock;

double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

constexpr double wholeBudgetMs = 20e3;
constexpr double quickShortUs = 5000;
constexpr size_t quickMostPairs = 9;

} // namespace

void Evaluation::summarise(double confidence) {
  Measurement &m = measurement;
  if (m.originalUs.empty())
    return;
  RatioInterval interval = pairedRatio(m.originalUs, m.candidateUs, confidence);
  m.originalMedianUs = median(m.originalUs);
  m.candidateMedianUs = median(m.candidateUs);
  m.speedup = interval.ratio;
  m.speedupLow = interval.low;
  m.speedupHigh = interval.high;
}

/// The candidate's last timed output against the original on the same inputs.
llvm::Expected<bool> Evaluation::checkTimedOutput(bool candidateStashed) {
  if (llvm::Error error = beginOriginal(double(batch)))
    return std::move(error);
  if (!candidateStashed)
    if (llvm::Error error = buffers->stashOutputs())
      return std::move(error);
  if (llvm::Error error = buffers->fill(timingSet, true))
    return std::move(error);
  if (llvm::Error error = buffers->poisonOutputs(Poison::NaN))
    return std::move(error);
  usesClone = false;
  if (cloneDecides) {
    auto ready = clone->prepare(*buffers);
    if (!ready)
      return ready.takeError();
    usesClone = *ready;
  }
  if (llvm::Error error = launch(Who::Original))
    return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  if (!usesClone)
    return compareOutputs(timingSet, Poison::NaN, true);
  clone->setWords(timingSet.words);
  if (llvm::Error error = runClone())
    return std::move(error);
  auto goesOn = compareOutputs(timingSet, Poison::NaN, true);
  if (llvm::Error error = clone->drop()) {
    llvm::consumeError(goesOn.takeError());
    return std::move(error);
  }
  return goesOn;
}

/// Work that outlasts its events shows on the host's clock.
llvm::Expected<bool> Evaluation::checkHostClock() {
  double wall[2] = {0, 0};
  for (Who who : {Who::Original, Who::Candidate}) {
    double best = HUGE_VAL;
    for (unsigned i = 0; i < 3; ++i) {
      if (llvm::Error error = beginOriginal(1))
        return std::move(error);
      if (inPlace)
        if (llvm::Error error = buffers->fill(timingSet, true))
          return std::move(error);
      if (llvm::Error error = helpers.synchronize())
        return std::move(error);
      if (who == Who::Candidate)
        if (llvm::Error error = beginCandidate(double(batch)))
          return std::move(error);
      Clock::time_point start = Clock::now();
      for (int64_t n = 0; n < batch; ++n)
        if (llvm::Error error = launch(who))
          return std::move(error);
      if (llvm::Error error = helpers.backend().synchronizeAll())
        return std::move(error);
      best = std::min(best, microsecondsSince(start));
    }
    wall[who == Who::Candidate] = best;
  }
  const Measurement &m = measurement;
  double originalExcess = wall[0] - m.originalMedianUs * double(batch);
  double candidateTime = m.candidateMedianUs * double(batch);
  double allowed =
      1.5 * candidateTime + 2 * std::max(0.0, originalExcess) + 1000;
  std::string detail =
      llvm::formatv("host {0:f1} us, events {1:f1} us", wall[1], candidateTime);
  bool passed = wall[1] <= allowed;
  addCheck("host-clock", passed, "the workload's own",
           "events agree with the host's clock", detail);
  if (!passed)
    return finish(Verdict::Implausible,
                  "the kernel goes on after its events: " + detail);
  return true;
}

/// No kernel reads its inputs faster than memory gives them, or computes faster
/// than the units can. What has to be read and computed is an estimate of the
/// original; where the original itself is faster than that allows, it reads a
/// part of a buffer, say, and the estimate bounds nobody.
llvm::Expected<bool> Evaluation::checkPhysics() {
  DeviceDescription device = describeDevice(helpers.properties());
  double l2 = double(device.l2Bytes);
  // Writes may still be in L2 at the end; in a batch, inputs are too.
  double bytes =
      batch == 1
          ? task.work.bytesRead + std::max(0.0, task.work.bytesWritten - l2)
          : std::max(0.0,
                     task.work.bytesRead + task.work.bytesWritten - 2 * l2);
  // Matrix units do this many times the FMA lanes' rate at the most.
  double units = 8;
  for (const Argument &argument : task.arguments)
    if (byteSize(argument.element) <= 2)
      units = 64;
  double byBytes = 0, byFlops = 0;
  if (device.peakBytesPerSecond() > 0)
    byBytes = bytes / device.peakBytesPerSecond() * 1e6;
  if (device.peakFlopsPerSecond() > 0)
    byFlops = task.work.flops / (units * device.peakFlopsPerSecond()) * 1e6;
  double longest = 1.02 * measurement.originalMedianUs;
  llvm::SmallVector<std::string> details;
  for (auto [bound, name] :
       {std::pair(&byBytes, "memory"), {&byFlops, "arithmetic units"}})
    if (*bound > longest) {
      details.push_back(llvm::formatv("no bound by its {0}: the original is "
                                      "faster than its estimated work",
                                      name));
      *bound = 0;
    }
  double least = std::max(byBytes, byFlops);
  if (least <= 0 && details.empty())
    return true;
  double share = least / measurement.candidateMedianUs;
  bool passed = share <= 1.02; // Events resolve no better.
  if (least > 0)
    details.insert(
        details.begin(),
        llvm::formatv("candidate {0:f2} us, the device needs {1:f2} us by its "
                      "{2}",
                      measurement.candidateMedianUs, least,
                      byBytes >= byFlops ? "memory" : "arithmetic units"));
  std::string detail = llvm::join(details, "; ");
  addCheck("physical-bound", passed, "the workload's own",
           "not faster than the theoretical peaks", detail);
  if (!passed)
    return finish(Verdict::Implausible,
                  "faster than the hardware can be: " + detail);
  return true;
}

/// A few more pairs where they cost little: enough to rank sets of parameters,
/// never enough to accept one.
llvm::Expected<bool> Evaluation::quickTimes(std::vector<double> originals,
                                            std::vector<double> candidates) {
  size_t wanted = originalUs < quickShortUs ? quickMostPairs : originals.size();
  if (request.options.quickPairs > 0)
    wanted = std::min<size_t>(request.options.quickPairs, 4096);
  while (originals.size() < wanted && budgetLeftMs() > 0) {
    for (Who who : {Who::Original, Who::Candidate}) {
      llvm::Error error =
          who == Who::Original ? beginOriginal(1) : beginCandidate(1);
      if (error)
        return std::move(error);
      auto taken = sample(who);
      if (!taken)
        return taken.takeError();
      (who == Who::Original ? originals : candidates)
          .push_back(taken->microseconds);
    }
  }
  measurement.originalUs = std::move(originals);
  measurement.candidateUs = std::move(candidates);
  summarise(0.95);
  noteConditionsQuickly();
  result.measurement = measurement;
  bool faster = measurement.candidateMedianUs < measurement.originalMedianUs;
  std::string text = llvm::formatv(
      "a quick look, not validated in full: original {0:f2} us, candidate "
      "{1:f2} us in {2} pairs",
      measurement.originalMedianUs, measurement.candidateMedianUs,
      measurement.originalUs.size());
  finish(faster ? Verdict::Undecided : Verdict::NotFaster, text);
  return true;
}

/// Memory for the flush, and buffers where they stay while samples are taken.
llvm::Error Evaluation::prepareTiming() {
  measurement.device = helpers.properties().name;
  measurement.driver = helpers.properties().driver;
  if (llvm::Error error = begin("original-timing", 10e3 + 2 * helperSlackMs()))
    return error;
  flushBytes =
      std::max<uint64_t>(uint64_t(2) * helpers.properties().l2Bytes, 1 << 20);
  auto memory = buffers->extra(flushBytes);
  if (!memory)
    return memory.takeError();
  flushMemory = *memory;
  if (llvm::Error error = buffers->place(false))
    return error;
  placedShifted = false;
  return llvm::Error::success();
}

llvm::Expected<bool> Evaluation::measure() {
  Measurement &m = measurement;
  if (llvm::Error error = prepareTiming())
    return std::move(error);
  timingStart = Clock::now();
  budgetMs = wholeBudgetMs;
  if (request.options.gpuSeconds > 0)
    budgetMs = std::min(budgetMs, 1000 * request.options.gpuSeconds);
  if (llvm::Error error = refresh())
    return std::move(error);
  if (llvm::Error error = warmUp())
    return std::move(error);

  // Screening, one launch a sample.
  std::vector<double> originals, candidates;
  for (unsigned i = 0; i < 3; ++i) {
    if (llvm::Error error = beginOriginal(1))
      return std::move(error);
    auto original = sample(Who::Original);
    if (!original)
      return original.takeError();
    if (llvm::Error error = beginCandidate(1))
      return std::move(error);
    auto candidate = sample(Who::Candidate);
    if (!candidate)
      return candidate.takeError();
    originals.push_back(original->microseconds);
    candidates.push_back(candidate->microseconds);
  }
  originalUs = median(originals);
  double best = *std::min_element(candidates.begin(), candidates.end());
  if (best > 2 * originalUs) {
    m.originalUs = originals;
    m.candidateUs = candidates;
    summarise(0.95);
    noteConditionsQuickly();
    result.measurement = m;
    finish(Verdict::NotFaster,
           llvm::formatv("more than twice as slow in three launches: original "
                         "{0:f2} us, candidate at best {1:f2} us",
                         originalUs, best)
               .str());
    return true;
  }

  if (!request.options.full)
    return quickTimes(std::move(originals), std::move(candidates));

  if (llvm::Error error = chooseBatch())
    return std::move(error);
  auto noise = findNoise();
  if (!noise)
    return noise.takeError();
  m.noiseFloor = *noise;
  if (*noise > noiseTooLarge) {
    finish(Verdict::Undecided,
           llvm::formatv("the original differs from itself by {0:f1} %: too "
                         "noisy to compare anything",
                         100 * *noise)
               .str());
    return true;
  }

  auto goesOn = race(*noise);
  if (!goesOn || !*goesOn)
    return goesOn;
  result.measurement = m;
  addConditionsCheck();
  addCheck("timed-outputs", true, timingSet.words,
           "timed launches before every look, chosen at random, gave the "
           "original's result",
           llvm::formatv("{0} of {1} pairs", timedChecks, m.originalUs.size())
               .str());
  goesOn = checkHostClock();
  if (!goesOn || !*goesOn)
    return goesOn;
  return checkPhysics();
}

} // namespace fsr
