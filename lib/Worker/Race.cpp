// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The race between original and candidate: how many launches a sample has, how
// much the original differs from itself, then pairs in random order until the
// rule of RaceRule.h has seen enough. docs/design/measuring.md gives the
// reasons.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

namespace fsr {

namespace {

constexpr double shortKernelUs = 20, batchTargetUs = 100;
constexpr int64_t mostBatch = 64;
constexpr size_t noisePairs = 32, pairsPerInput = 4;

} // namespace

/// In-place kernels would work on their own results in a batch.
llvm::Error Evaluation::chooseBatch() {
  if (originalUs < shortKernelUs && !inPlace)
    batch = std::clamp<int64_t>(
        std::ceil(batchTargetUs / std::max(originalUs, 0.1)), 2, mostBatch);
  if (batch > 1) {
    auto own = buffers->spreadOutputs(batch);
    if (!own)
      return own.takeError();
    batch = *own;
  }
  measurement.batch = batch;
  return llvm::Error::success();
}

/// How much the original differs from itself in the protocol of the race.
llvm::Expected<double> Evaluation::findNoise() {
  TimingSession &session = helpers.timing();
  auto of = TimingSession::classOf(originalUs, batch > 1, warmCache);
  if (auto known = session.noise(of, Deadline::Clock::now()))
    return *known;
  std::vector<double> left, right;
  while (left.size() < noisePairs) {
    if (left.size() >= 3 && budgetLeftMs() < 0.7 * budgetMs)
      break; // A slow kernel: the race needs the time more.
    if (llvm::Error error = beginOriginal(2 * double(batch)))
      return std::move(error);
    if (left.size() % pairsPerInput == 0)
      if (llvm::Error error = refresh())
        return std::move(error);
    for (std::vector<double> *side : {&left, &right}) {
      auto taken = sample(Who::Original);
      if (!taken)
        return taken.takeError();
      side->push_back(taken->microseconds);
    }
  }
  RatioInterval self = pairedRatio(left, right, 0.95);
  double noise =
      std::max((self.high - self.low) / 2, std::fabs(self.ratio - 1));
  if (left.size() == noisePairs)
    session.setNoise(of, noise, Deadline::Clock::now());
  return noise;
}

/// Pairs until the rule has a verdict, or there is no more time. False: the
/// candidate did not compute what it was timed for.
llvm::Expected<bool> Evaluation::runPairs(RaceRule &rule, Verdict &verdict) {
  verdict = Verdict::Undecided;
  double nominalMhz = helpers.properties().clockKhz / 1000.0;
  // The next pair whose output is checked: drawn from what is left of the
  // stretch up to the next look, so one at the least, and none can be told.
  int64_t checked = -1;
  auto isToCome = [&] { return checked >= rule.pairs(); };
  while (true) {
    double left = budgetLeftMs();
    if (left <= -budgetMs)
      break;
    int64_t pairs = rule.pairs();
    if (left <= 0 && pairs >= RaceRule::fewestPairs) {
      if (!isToCome())
        break;
      checked = pairs; // One pair more: no stretch is judged unseen.
    }
    if (checked < pairs)
      checked = pairs + int64_t(random() % uint64_t(rule.goal() - pairs));
    if (llvm::Error error = beginOriginal(1))
      return std::move(error);
    if ((pairs + rule.dropped()) % int64_t(pairsPerInput) == 0)
      if (llvm::Error error = refresh())
        return std::move(error);
    auto before = buffers->hashReadOnly();
    if (!before)
      return before.takeError();
    if (llvm::Error error = beginCandidate((warmCache ? 3 : 2) * double(batch)))
      return std::move(error);
    bool candidateFirst = random() & 1;
    RaceSample taken[2];
    for (bool second : {false, true}) {
      Who who = candidateFirst != second ? Who::Candidate : Who::Original;
      auto one = sample(who);
      if (!one)
        return one.takeError();
      taken[who == Who::Candidate] = *one;
      if (who == Who::Candidate && pairs == checked)
        if (llvm::Error error = buffers->stashOutputs())
          return std::move(error);
    }
    if (!rule.add(taken[0], taken[1], nominalMhz)) {
      if (rule.dropped() > rule.goal())
        break;
      continue;
    }
    if (pairs == checked) {
      if (llvm::Error error = begin("original-check", 2 * helperSlackMs()))
        return std::move(error);
      auto goesOn = checkTouched(*before, timingSet.words);
      if (goesOn && *goesOn)
        goesOn = checkTimedOutput(true);
      if (!goesOn || !*goesOn)
        return goesOn;
      ++timedChecks;
    }
    if (rule.pairs() < rule.goal())
      continue;
    verdict = rule.judgeNow();
    if (verdict != Verdict::Undecided || rule.pairs() >= rule.wanted())
      return true;
  }
  if (!isToCome())
    verdict = rule.judgeLast();
  return true;
}

/// The samples of a race become the measurement.
void Evaluation::take(RaceRule &rule, double noise) {
  Measurement &m = measurement;
  m.noiseFloor = noise;
  m.droppedPairs += rule.dropped();
  if (!rule.clocksMhz.empty())
    m.smClockMhz = std::llround(median(rule.clocksMhz));
  m.originalUs = rule.originalUs;
  m.candidateUs = rule.candidateUs;
  m.originalCycles.clear();
  m.candidateCycles.clear();
  if (rule.hasCycles()) {
    m.originalCycles = rule.originalCycles;
    m.candidateCycles = rule.candidateCycles;
  }
  summarise(0.95);
}

llvm::Expected<bool> Evaluation::race(double noise) {
  int64_t wanted =
      std::clamp<int64_t>(request.options.maxPairs, 1, Measurement::mostPairs);
  RaceRule rule(acceptanceMargin(noise), wanted);
  Verdict verdict;
  noteConditions();
  auto goesOn = runPairs(rule, verdict);
  if (!goesOn || !*goesOn)
    return goesOn;
  noteConditions();
  take(rule, noise);
  const Measurement &m = measurement;
  if (m.originalUs.empty())
    return finish(
        Verdict::Undecided,
        "no pair was timed at a steady clock: the device is throttled");
  std::string text = llvm::formatv(
      "{0:f3}x [{1:f3}, {2:f3}] over {3} pairs; original {4:f2} us, candidate "
      "{5:f2} us, noise floor {6:f2} %",
      m.speedup, m.speedupLow, m.speedupHigh, m.originalUs.size(),
      m.originalMedianUs, m.candidateMedianUs, 100 * noise);
  finish(verdict, text);
  return true;
}

/// A quick look may take less time than a reading of the device's state does.
void Evaluation::noteConditionsQuickly() {
  TimingSession &session = helpers.timing();
  Deadline::Clock::time_point now = Deadline::Clock::now();
  if (const auto *known = session.conditions(now)) {
    measurement.conditions = *known;
    return;
  }
  noteConditions();
  session.setConditions(measurement.conditions, now);
}

/// Reads the state of the device; what is kept is the worse of all readings.
void Evaluation::noteConditions() {
  auto state = helpers.backend().gpuState();
  if (!state) {
    noConditions = llvm::toString(state.takeError());
    return;
  }
  bool isFirst = !measurement.conditions;
  if (isFirst)
    measurement.conditions.emplace();
  Conditions &kept = *measurement.conditions;
  auto keepLess = [&](int64_t &to, int64_t value) {
    if (value >= 0 && (to < 0 || value < to))
      to = value;
  };
  kept.driver = state->driver;
  keepLess(kept.clockMhz, state->clockMhz);
  keepLess(kept.memoryClockMhz, state->memoryClockMhz);
  kept.temperatureC = std::max(kept.temperatureC, state->temperatureC);
  kept.powerWatts = std::max(kept.powerWatts, state->powerWatts);
  kept.powerLimitWatts = std::max(kept.powerLimitWatts, state->powerLimitWatts);
  kept.otherProcesses = std::max(kept.otherProcesses, state->otherProcesses);
  for (const std::string &limit : state->clockLimits)
    if (!llvm::is_contained(kept.clockLimits, limit))
      kept.clockLimits.push_back(limit);
}

/// A remark, and no test: what stands there is for who doubts a number.
void Evaluation::addConditionsCheck() {
  std::vector<std::string> parts;
  auto add = [&](bool known, const llvm::Twine &words) {
    if (known)
      parts.push_back(words.str());
  };
  if (!measurement.conditions) {
    parts.push_back(noConditions);
  } else {
    const Conditions &now = *measurement.conditions;
    add(!now.driver.empty(), "driver " + now.driver);
    add(now.clockMhz >= 0, llvm::Twine(now.clockMhz) + " MHz");
    add(now.memoryClockMhz >= 0,
        "memory " + llvm::Twine(now.memoryClockMhz) + " MHz");
    add(now.temperatureC >= 0, llvm::Twine(now.temperatureC) + " degrees");
    add(now.powerWatts >= 0,
        llvm::formatv("{0:f0} W", now.powerWatts).str() +
            (now.powerLimitWatts >= 0
                 ? llvm::formatv(" of {0:f0} W", now.powerLimitWatts).str()
                 : std::string()));
    for (const std::string &limit : now.clockLimits)
      add(true, "clock held down by: " + limit);
    add(now.otherProcesses > 0,
        llvm::Twine(now.otherProcesses) +
            (now.otherProcesses == 1 ? " other process" : " other processes") +
            " on the GPU: times may be disturbed");
  }
  add(!steadyClock, "the clock was not steady after warming up");
  addCheck("conditions", true, "none", "none: a remark",
           llvm::join(parts, ", "));
}

} // namespace fsr
