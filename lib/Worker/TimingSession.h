// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What timing has learned of its device since the worker started: the clock at
// which it runs when it is warm, and how much an original differs from itself.
// Both belong to the process and the device, not to one candidate, and cost
// more than a race, so they are found once and kept for a while.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_TIMINGSESSION_H
#define FSR_LIB_WORKER_TIMINGSESSION_H

#include "fsr/Core/Trial.h"
#include "fsr/Support/Deadline.h"

#include <map>
#include <optional>

namespace fsr {

class TimingSession {
public:
  using Clock = Deadline::Clock;

  /// Kernels of one class last alike long, within a factor of two, and are
  /// launched alike: singly or in batches, with L2 cold or warm.
  struct Class {
    int octave = 0;
    bool batched = false, warm = false;
    bool operator<(const Class &other) const;
  };
  static Class classOf(double microseconds, bool batched, bool warm);

  /// Nothing where it was never measured, or too long ago.
  std::optional<double> noise(const Class &of, Clock::time_point now) const;
  void setNoise(const Class &of, double noise, Clock::time_point now);

  /// The clock of the warm device; 0 where it has rested since.
  double steadyMhz(Clock::time_point now) const;
  void setSteady(double mhz) { steady = mhz; }
  void touch(Clock::time_point now) { lastSample = now; }
  /// It was timing just now, so its clock is up.
  bool isBusy(Clock::time_point now) const;
  /// It was waited for long enough, and not long ago.
  bool isUnsteady(Clock::time_point now) const;
  void setUnsteady(Clock::time_point now) { unsteadyAt = now; }
  /// As a quick look found the device less than a second ago; null: none did.
  /// Nothing in it: the device does not tell.
  const std::optional<Conditions> *conditions(Clock::time_point now) const;
  void setConditions(std::optional<Conditions> found, Clock::time_point now) {
    lastConditions.emplace(now, std::move(found));
  }

private:
  struct Floor {
    double noise = 0;
    Clock::time_point at;
  };
  std::map<Class, Floor> floors;
  double steady = 0;
  Clock::time_point lastSample;
  std::optional<Clock::time_point> unsteadyAt;
  std::optional<std::pair<Clock::time_point, std::optional<Conditions>>>
      lastConditions;
};

} // namespace fsr

#endif // FSR_LIB_WORKER_TIMINGSESSION_H
