// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// When a race ends, and how. The rule sees pairs of samples and nothing else,
// so that its rates of error are found by simulation, with no device.
//
// It looks after `firstLook` pairs and whenever their number has doubled. A
// verdict before the last look needs the time and, where clocks were read, the
// cycles: a gain in one of them alone is one of the clock.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_RACERULE_H
#define FSR_LIB_WORKER_RACERULE_H

#include "fsr/Core/Statistics.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fsr {

/// One sample; what is not known of it is 0.
struct RaceSample {
  double microseconds = 0; ///< A launch.
  double cycles = 0;       ///< A launch, with the gaps around the sample.
  double clockMhz = 0;
};

class RaceRule {
public:
  /// Two-sided, a look.
  static constexpr double lookConfidence = 0.984;
  static constexpr int64_t firstLook = 8, fewestPairs = 5;

  RaceRule(double margin, int64_t wanted, int64_t first = firstLook)
      : margin(margin), mostPairs(wanted), look(first) {}

  /// `nominalMhz` is what the device can do; 0: not known. False: the pair says
  /// nothing, since the clock was low or changed between its samples.
  bool add(const RaceSample &original, const RaceSample &candidate,
           double nominalMhz);

  int64_t pairs() const { return int64_t(originalUs.size()); }
  int64_t dropped() const { return numDropped; }
  /// Number of pairs at which to look next.
  int64_t goal() const { return std::min(look, mostPairs); }
  int64_t wanted() const { return mostPairs; }
  /// At a goal: the verdict, and Undecided where the race goes on.
  Verdict judgeNow();
  /// No more pairs come.
  Verdict judgeLast() const;
  bool hasCycles() const;

  std::vector<double> originalUs, candidateUs, originalCycles, candidateCycles,
      clocksMhz;

private:
  double margin;
  int64_t mostPairs, look, numDropped = 0;
};

/// How long a confirmation may measure, all its races together: a minute, or
/// less where the request says so.
double confirmationBudgetMs(double gpuSeconds);

} // namespace fsr

#endif // FSR_LIB_WORKER_RACERULE_H
