// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The race between original and candidate. In order: warm up; screen with three
// launches; the original against itself for the noise floor; then pairs in
// random order with looks after 8, 16, 32, 64 and 128 of them; then the checks
// that a time can be true. docs/design/measuring.md gives the reasons.
//
// A sample: in-place buffers restored and outputs poisoned, L2 overwritten, a
// kernel that holds the stream until the host has queued the rest, an event,
// the launches, an event. Only what stands between the events is timed.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "fsr/Core/Statistics.h"
#include "fsr/Support/Error.h"

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
constexpr double warmUpMs = 200;
/// Of a quick look, whose pairs only rank. Samples of short kernels may never
/// agree within 1 %, and there are many quick looks.
constexpr double quickWarmUpMs = 60, quickWarmMs = 10, staysWarmMs = 500;
constexpr double shortKernelUs = 20, batchTargetUs = 100;
constexpr int64_t mostBatch = 64;
constexpr size_t noisePairs = 10, fewestPairs = 5, pairsPerInput = 4;
constexpr double quickShortUs = 5000;
constexpr size_t quickMostPairs = 9;
constexpr double noiseTooLarge = 0.10;
/// Two-sided, a look; five looks spend about 5 %.
constexpr double lookConfidence = 0.984;
constexpr double slowestClock = 0.75, clockSlack = 0.05;

} // namespace

double Evaluation::budgetLeftMs() const {
  return budgetMs - microsecondsSince(timingStart) / 1000;
}

/// Other inputs than before, so that no result of an earlier launch is right.
llvm::Error Evaluation::refresh() {
  timingSet = inputs->timing(timingSets++);
  return buffers->fill(timingSet, false);
}

/// A launch as the spliced program does it: scratch is allocated and freed
/// around it. What is allocated here only stands for the plan's scratch, whose
/// own memory has guard zones.
llvm::Error Evaluation::launchTimed(Who who) {
  if (who == Who::Original)
    return launch(who);
  Backend &backend = helpers.backend();
  llvm::SmallVector<DevicePointer> standIns;
  for (const ResolvedScratch &scratch : request.plan.scratch) {
    auto pointer = backend.allocateOrdered(scratch.bytes, helpers.stream());
    if (!pointer)
      return pointer.takeError();
    standIns.push_back(*pointer);
  }
  if (llvm::Error error = launch(who))
    return error;
  for (DevicePointer pointer : standIns)
    if (llvm::Error error = backend.releaseOrdered(pointer, helpers.stream()))
      return error;
  return llvm::Error::success();
}

llvm::Expected<Evaluation::Sample> Evaluation::sample(Who who) {
  if (inPlace)
    if (llvm::Error error = buffers->fill(timingSet, true))
      return std::move(error);
  if (llvm::Error error = buffers->poisonOutputs(Poison::NaN))
    return std::move(error);
  // Nor does scratch hold what an earlier launch worked out.
  if (who == Who::Candidate)
    if (llvm::Error error = buffers->poisonScratch())
      return std::move(error);
  if (llvm::Error error = helpers.flush(flushMemory, flushBytes, flushValue++))
    return std::move(error);
  Backend &backend = helpers.backend();
  if (llvm::Error error = helpers.spin(holdUs))
    return std::move(error);
  Clock::time_point queued = Clock::now();
  if (llvm::Error error = backend.record(startEvent, helpers.stream()))
    return std::move(error);
  for (int64_t i = batch; i-- > 0;) { // The last writes to what is checked.
    buffers->useOutputs(i);
    if (llvm::Error error = launchTimed(who))
      return std::move(error);
  }
  if (llvm::Error error = backend.record(stopEvent, helpers.stream()))
    return std::move(error);
  // The next hold covers the slowest queueing seen, within reason.
  holdUs = std::clamp(1.5 * microsecondsSince(queued) + 10, holdUs, 5000.0);
  if (llvm::Error error = backend.synchronizeEvent(stopEvent))
    return std::move(error);
  auto elapsed = backend.elapsedMs(startEvent, stopEvent);
  if (!elapsed)
    return elapsed.takeError();
  auto reading = helpers.spinReading();
  if (!reading)
    return reading.takeError();
  helpers.lastTimed = Clock::now();
  Sample sample;
  // Below the resolution of events a time is no number to divide by.
  sample.microseconds = std::max(*elapsed * 1000, 0.01) / double(batch);
  sample.clockMhz = reading->clockMhz;
  return sample;
}

llvm::Error Evaluation::warmUp() {
  if (llvm::Error error = beginOriginal(std::max(3.0, 4e5 / (originalUs + 1))))
    return error;
  Clock::time_point start = Clock::now();
  double most = warmUpMs, least = warmUpMs / 4;
  if (!request.options.full) {
    bool isWarm = helpers.lastTimed &&
                  microsecondsSince(*helpers.lastTimed) < 1000 * staysWarmMs;
    most = isWarm ? quickWarmMs : quickWarmUpMs;
    least = isWarm ? 0 : least;
  }
  std::vector<double> last;
  while (true) {
    auto taken = sample(Who::Original);
    if (!taken)
      return taken.takeError();
    last.push_back(taken->microseconds);
    originalUs = taken->microseconds;
    if (last.size() < 3)
      continue;
    auto [low, high] = std::minmax_element(last.end() - 3, last.end());
    double passed = microsecondsSince(start) / 1000;
    // The clock of an idle GPU takes its time to rise; steady samples alone do
    // not show that it has.
    if (passed >= most || (passed >= least && *high <= 1.01 * *low))
      break;
  }
  originalUs = median(llvm::ArrayRef<double>(last).take_back(5));
  return llvm::Error::success();
}

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
  if (llvm::Error error = launch(Who::Original))
    return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  return compareOutputs(timingSet, Poison::NaN, true);
}

llvm::Expected<bool> Evaluation::race(double noise) {
  int64_t wanted = std::clamp<int64_t>(request.options.maxPairs, 1, 4096);
  int64_t look = 8;
  Measurement &m = measurement;
  std::vector<double> clocks;
  int64_t pairs = 0;
  Verdict verdict = Verdict::Undecided;
  // The next pair whose output is checked: drawn from what is left of the
  // stretch up to the next look, so one at the least, and none can be told.
  int64_t checked = -1;
  while (pairs < wanted) {
    double left = budgetLeftMs();
    if ((left <= 0 && pairs >= int64_t(fewestPairs)) || left <= -budgetMs)
      break;
    int64_t goal = std::min(look, wanted);
    if (checked < pairs)
      checked = pairs + random() % (goal - pairs);
    if (llvm::Error error = beginOriginal(1))
      return std::move(error);
    if ((pairs + m.droppedPairs) % pairsPerInput == 0)
      if (llvm::Error error = refresh())
        return std::move(error);
    auto before = buffers->hashReadOnly();
    if (!before)
      return before.takeError();
    if (llvm::Error error = beginCandidate(2 * double(batch)))
      return std::move(error);
    bool candidateFirst = random() & 1;
    Sample taken[2];
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
    double slow = std::min(taken[0].clockMhz, taken[1].clockMhz);
    double fast = std::max(taken[0].clockMhz, taken[1].clockMhz);
    double nominal = helpers.properties().clockKhz / 1000.0;
    if (slow > 0 &&
        (slow < slowestClock * nominal || fast - slow > clockSlack * fast)) {
      if (++m.droppedPairs > wanted)
        break;
      continue;
    }
    if (slow > 0)
      clocks.push_back((slow + fast) / 2);
    m.originalUs.push_back(taken[0].microseconds);
    m.candidateUs.push_back(taken[1].microseconds);
    if (pairs == checked) {
      if (llvm::Error error = begin("original-check", 2 * helperSlackMs()))
        return std::move(error);
      auto goesOn = checkTouched(*before, timingSet.words);
      if (goesOn && *goesOn)
        goesOn = checkTimedOutput(true);
      if (!goesOn || !*goesOn)
        return goesOn;
    }
    if (++pairs < goal)
      continue;
    verdict =
        judge(pairedRatio(m.originalUs, m.candidateUs, lookConfidence), noise);
    if (verdict != Verdict::Undecided)
      break;
    look *= 2;
  }
  if (!clocks.empty())
    m.smClockMhz = std::llround(median(clocks));
  if (m.originalUs.empty())
    return finish(
        Verdict::Undecided,
        "no pair was timed at a steady clock: the device is throttled");
  summarise(0.95);
  if (verdict == Verdict::Undecided && pairs >= int64_t(fewestPairs))
    verdict =
        judge(pairedRatio(m.originalUs, m.candidateUs, lookConfidence), noise);
  std::string text = llvm::formatv(
      "{0:f3}x [{1:f3}, {2:f3}] over {3} pairs; original {4:f2} us, candidate "
      "{5:f2} us, noise floor {6:f2} %",
      m.speedup, m.speedupLow, m.speedupHigh, m.originalUs.size(),
      m.originalMedianUs, m.candidateMedianUs, 100 * noise);
  finish(verdict, text);
  return true;
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
/// than the units can.
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
  double least = std::max(byBytes, byFlops);
  if (least <= 0)
    return true;
  double share = least / measurement.candidateMedianUs;
  bool passed = share <= 1.02; // Events resolve no better.
  std::string detail = llvm::formatv(
      "candidate {0:f2} us, the device needs {1:f2} us by its {2}",
      measurement.candidateMedianUs, least,
      byBytes >= byFlops ? "memory" : "arithmetic units");
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

llvm::Expected<bool> Evaluation::measure() {
  Measurement &m = measurement;
  m.device = helpers.properties().name;
  m.driver = helpers.properties().driver;
  timingStart = Clock::now();
  budgetMs = wholeBudgetMs;
  if (request.options.gpuSeconds > 0)
    budgetMs = std::min(budgetMs, 1000 * request.options.gpuSeconds);

  if (llvm::Error error = begin("original-timing", 10e3 + 2 * helperSlackMs()))
    return std::move(error);
  flushBytes =
      std::max<uint64_t>(uint64_t(2) * helpers.properties().l2Bytes, 1 << 20);
  auto memory = buffers->extra(flushBytes);
  if (!memory)
    return memory.takeError();
  flushMemory = *memory;
  if (llvm::Error error = buffers->place(false))
    return std::move(error);
  placedShifted = false;
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

  // In-place kernels would work on their own results in a batch.
  if (originalUs < shortKernelUs && !inPlace)
    batch = std::clamp<int64_t>(
        std::ceil(batchTargetUs / std::max(originalUs, 0.1)), 2, mostBatch);
  if (batch > 1) {
    auto own = buffers->spreadOutputs(batch);
    if (!own)
      return own.takeError();
    batch = *own;
  }
  m.batch = batch;

  std::vector<double> left, right;
  while (left.size() < noisePairs) {
    if (left.size() >= 3 && budgetLeftMs() < 0.7 * budgetMs)
      break; // A slow kernel: the race needs the time more.
    if (llvm::Error error = beginOriginal(2 * double(batch)))
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
  m.noiseFloor = noise;
  if (noise > noiseTooLarge) {
    finish(Verdict::Undecided,
           llvm::formatv("the original differs from itself by {0:f1} %: too "
                         "noisy to compare anything",
                         100 * noise)
               .str());
    return true;
  }

  auto goesOn = race(noise);
  if (!goesOn || !*goesOn)
    return goesOn;
  result.measurement = m;
  addCheck("timed-outputs", true, timingSet.words,
           "timed launches before every look, chosen at random, gave the "
           "original's result",
           "");
  goesOn = checkHostClock();
  if (!goesOn || !*goesOn)
    return goesOn;
  return checkPhysics();
}

} // namespace fsr
