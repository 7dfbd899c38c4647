// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One timed sample, and what comes before the first: in-place buffers restored
// and outputs poisoned, L2 overwritten, or warmed by a launch of the same
// kernel, a kernel that holds the stream until the host has queued the rest, a
// stamp of the clocks, an event, the launches, an event, a stamp. Only what
// stands between the events is timed.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include <algorithm>
#include <cmath>

namespace fsr {

namespace {

using Clock = Deadline::Clock;

double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

/// A clock is steady after so long within so much: clocks have steps of 15 MHz,
/// and one that stands between two of them takes turns.
constexpr double steadyMs = 200, steadySpread = 0.015;
constexpr double longestWarmUpMs = 1000;
/// Of a quick look, whose pairs only rank, and of which there are many.
constexpr double quickWarmUpMs = 60, quickBusyMs = 10;

/// Width of what all but the outermost twentieths lie in, relative.
double spreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t skip = values.size() / 20;
  double low = values[skip], high = values[values.size() - 1 - skip];
  return (high - low) / high;
}

} // namespace

double Evaluation::budgetLeftMs() const {
  return budgetMs - microsecondsSince(timingStart) / 1000;
}

/// Other inputs than before, so that no result of an earlier launch is right.
llvm::Error Evaluation::refresh() {
  timingSet = inputs->timing(timingSets++, timingCase);
  buffers->drawPoison(random());
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

llvm::Expected<RaceSample> Evaluation::sample(Who who) {
  Backend &backend = helpers.backend();
  if (warmCache) {
    // What an in-place kernel left may be no input of its own.
    if (inPlace)
      if (llvm::Error error = buffers->fill(timingSet, true))
        return std::move(error);
    buffers->useOutputs(0);
    if (llvm::Error error = launch(who))
      return std::move(error);
  }
  if (inPlace)
    if (llvm::Error error = buffers->fill(timingSet, true))
      return std::move(error);
  if (llvm::Error error = buffers->poisonOutputs(Poison::NaN))
    return std::move(error);
  // Nor does scratch hold what an earlier launch worked out.
  if (who == Who::Candidate)
    if (llvm::Error error = buffers->poisonScratch())
      return std::move(error);
  if (!warmCache)
    if (llvm::Error error =
            helpers.flush(flushMemory, flushBytes, flushValue++))
      return std::move(error);
  if (llvm::Error error = helpers.spin(holdUs))
    return std::move(error);
  Clock::time_point queued = Clock::now();
  if (llvm::Error error = helpers.stamp(/*after=*/false))
    return std::move(error);
  if (llvm::Error error = backend.record(startEvent, helpers.stream()))
    return std::move(error);
  for (int64_t i = batch; i-- > 0;) { // The last writes to what is checked.
    buffers->useOutputs(i);
    if (llvm::Error error = launchTimed(who))
      return std::move(error);
  }
  if (llvm::Error error = backend.record(stopEvent, helpers.stream()))
    return std::move(error);
  if (llvm::Error error = helpers.stamp(/*after=*/true))
    return std::move(error);
  // The next hold covers the slowest queueing seen, within reason.
  holdUs = std::clamp(1.5 * microsecondsSince(queued) + 10, holdUs, 5000.0);
  if (llvm::Error error = backend.synchronizeEvent(stopEvent))
    return std::move(error);
  auto elapsed = backend.elapsedMs(startEvent, stopEvent);
  if (!elapsed)
    return elapsed.takeError();
  auto reading = helpers.clockReading();
  if (!reading)
    return reading.takeError();
  helpers.timing().touch(Clock::now());
  RaceSample sample;
  // Below the resolution of events a time is no number to divide by.
  sample.microseconds = std::max(*elapsed * 1000, 0.01) / double(batch);
  sample.cycles = reading->cycles / double(batch);
  sample.clockMhz = reading->clockMhz;
  return sample;
}

/// The clock of an idle GPU takes its time to rise, and that of a cold one to
/// fall. Once it stood still for long enough it is known, and later evaluations
/// only look whether it is there.
llvm::Error Evaluation::warmUp() {
  if (llvm::Error error = beginOriginal(
          std::max(3.0, 5 * longestWarmUpMs * 1000 / (originalUs + 1))))
    return error;
  TimingSession &session = helpers.timing();
  Clock::time_point start = Clock::now();
  double known = session.steadyMhz(start);
  bool isQuick = !request.options.full, isBusy = session.isBusy(start);
  double longest = std::min(
      session.isUnsteady(start) ? steadyMs : longestWarmUpMs, budgetMs / 10);
  if (isQuick)
    longest = std::min(longest, isBusy ? quickBusyMs : quickWarmUpMs);
  struct Taken {
    double at, microseconds, clockMhz;
  };
  std::vector<Taken> all;
  steadyClock = false;
  while (true) {
    auto taken = sample(Who::Original);
    if (!taken)
      return taken.takeError();
    double passed = microsecondsSince(start) / 1000;
    all.push_back({passed, taken->microseconds, taken->clockMhz});
    originalUs = taken->microseconds;
    if (all.size() < 5 && passed < longest)
      continue;
    auto clocksSince = [&](size_t first) {
      std::vector<double> clocks;
      for (size_t i = first; i < all.size(); ++i)
        clocks.push_back(all[i].clockMhz);
      return clocks;
    };
    std::vector<double> last =
        clocksSince(all.size() - std::min<size_t>(5, all.size()));
    double now = median(last);
    // A warm device's clock is where it was, or it is not warm any more.
    if (known > 0 && std::fabs(now - known) <= steadySpread * known &&
        spreadOf(last) <= steadySpread) {
      steadyClock = true;
      break;
    }
    if (isQuick && isBusy && now > 0 && spreadOf(last) <= steadySpread)
      break;
    if (passed >= steadyMs) {
      size_t first = 0;
      while (all[first].at < passed - steadyMs)
        ++first;
      std::vector<double> clocks = clocksSince(first);
      if (now > 0 && clocks.size() >= 2 && spreadOf(clocks) <= steadySpread) {
        steadyClock = true;
        session.setSteady(median(clocks));
        break;
      }
    }
    if (passed >= longest)
      break;
  }
  if (!steadyClock && longest == longestWarmUpMs)
    session.setUnsteady(Clock::now());
  std::vector<double> times;
  for (size_t i = all.size() - std::min<size_t>(5, all.size()); i < all.size();
       ++i)
    times.push_back(all[i].microseconds);
  originalUs = median(times);
  return llvm::Error::success();
}

} // namespace fsr
