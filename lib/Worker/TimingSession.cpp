// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is kept between evaluations, and for how long.
//
//===----------------------------------------------------------------------===//

#include "TimingSession.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace fsr {

namespace {
/// Other work may come to the GPU, or a room warm up.
constexpr auto noiseLasts = std::chrono::minutes(5);
/// After this an idle GPU may have lowered its clock.
constexpr auto warmthLasts = std::chrono::seconds(1);
constexpr auto busyLasts = std::chrono::milliseconds(500);
constexpr auto unrestLasts = std::chrono::minutes(1);
constexpr auto conditionsLast = std::chrono::seconds(1);
} // namespace

bool TimingSession::Class::operator<(const Class &other) const {
  return std::tie(octave, batched, warm) <
         std::tie(other.octave, other.batched, other.warm);
}

TimingSession::Class TimingSession::classOf(double microseconds, bool batched,
                                            bool warm) {
  double octave = std::round(std::log2(std::max(microseconds, 0.01)));
  return {int(octave), batched, warm};
}

std::optional<double> TimingSession::noise(const Class &of,
                                           Clock::time_point now) const {
  auto known = floors.find(of);
  if (known == floors.end() || now - known->second.at > noiseLasts)
    return std::nullopt;
  return known->second.noise;
}

void TimingSession::setNoise(const Class &of, double noise,
                             Clock::time_point now) {
  floors[of] = {noise, now};
}

double TimingSession::steadyMhz(Clock::time_point now) const {
  return now - lastSample <= warmthLasts ? steady : 0;
}

bool TimingSession::isBusy(Clock::time_point now) const {
  return now - lastSample <= busyLasts;
}

bool TimingSession::isUnsteady(Clock::time_point now) const {
  return unsteadyAt && now - *unsteadyAt <= unrestLasts;
}

const std::optional<Conditions> *
TimingSession::conditions(Clock::time_point now) const {
  bool isKnown =
      lastConditions && now - lastConditions->first <= conditionsLast;
  return isKnown ? &lastConditions->second : nullptr;
}

} // namespace fsr
