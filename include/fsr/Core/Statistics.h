// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a set of paired timings says. Ratios are taken pair by pair and in logs;
// the interval is a percentile bootstrap of their median with a fixed seed, so
// the same samples always give the same answer. Where neighbouring pairs are
// alike, blocks of them are resampled. It is never narrower than the
// sign test's interval; below six pairs (at 95 %) it is Student's, and for one
// pair it is open: 0 to infinity.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_STATISTICS_H
#define FSR_CORE_STATISTICS_H

#include "fsr/Core/Trial.h"

#include "llvm/ADT/ArrayRef.h"

namespace fsr {

double median(llvm::ArrayRef<double> values);

struct RatioInterval {
  double ratio = 1, low = 1, high = 1;
};

/// Median of `original[i] / candidate[i]` and its bootstrap interval with the
/// given two-sided confidence. Both have one length, at least 1; all positive:
/// pairs that are not are left out.
RatioInterval pairedRatio(llvm::ArrayRef<double> original,
                          llvm::ArrayRef<double> candidate,
                          double confidence = 0.95, unsigned resamples = 2000);

/// What a gain must exceed where the original differs from itself by so much:
/// that, but never less than what the place of code in memory alone can change,
/// and twice as much on a device that is noisy.
double acceptanceMargin(double noiseFloor);

/// What a modelled gain must exceed: a model of time tells no smaller
/// difference (docs/design/virtual-device.md, "Time").
constexpr double modelMargin = 0.10;

/// The verdict of a finished race: Accepted where the interval's lower end
/// exceeds 1 + margin, NotFaster where its upper end is below that, else
/// Undecided.
Verdict judge(const RatioInterval &interval, double margin);

} // namespace fsr

#endif // FSR_CORE_STATISTICS_H
