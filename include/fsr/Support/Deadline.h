// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A point in steady time by which something must have happened.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_DEADLINE_H
#define FSR_SUPPORT_DEADLINE_H

#include <chrono>

namespace fsr {

class Deadline {
public:
  using Clock = std::chrono::steady_clock;

  /// Never passes.
  Deadline() = default;
  /// From now on; a century or more is never.
  static Deadline in(std::chrono::milliseconds time) {
    Deadline deadline;
    if (time >= std::chrono::hours(24 * 365 * 100))
      return deadline;
    deadline.bounded = true;
    deadline.at = Clock::now() + time;
    return deadline;
  }

  bool passed() const { return bounded && Clock::now() >= at; }

  /// For poll(2): milliseconds left, rounded up; 0 when passed; -1 for never.
  int pollTimeout() const;

private:
  bool bounded = false;
  Clock::time_point at;
};

} // namespace fsr

#endif // FSR_SUPPORT_DEADLINE_H
