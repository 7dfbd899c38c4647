// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Medians, the paired bootstrap and the verdict that follows from them. The
// generator is written out here, since those of the standard library differ
// between implementations in their distributions.
//
// The bootstrap alone is too narrow for few pairs (87 % instead of 95 % with
// seven), so it is widened to the sign test's interval between two of the
// sorted pairs, which holds the median as often as promised whatever the
// distribution. That in turn needs 1 - 2^(1-n) to reach the confidence; with
// fewer pairs the interval is Student's on the logs, and one pair says nothing
// about its own spread: its interval is open.
//
// Neighbouring pairs may be alike, as a clock drifts or a neighbour comes and
// goes. Where they are, blocks of them are drawn, and the sign test reckons
// with as many pairs as are worth that many independent ones.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace fsr {

namespace {

constexpr double pi = 3.14159265358979323846;

/// SplitMix64 (Steele, Lea and Flood 2014); passes the usual batteries and has
/// no state worth seeding.
class Generator {
public:
  explicit Generator(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// A number below `bound`; the bias of 2^-32 a draw does not matter here.
  size_t below(size_t bound) {
    return static_cast<size_t>(((next() >> 32) * bound) >> 32);
  }

private:
  uint64_t state;
};

/// Median of `values`, which it reorders.
double medianInPlace(std::vector<double> &values) {
  assert(!values.empty() && "median of nothing");
  size_t middle = values.size() / 2;
  auto at = values.begin() + middle;
  std::nth_element(values.begin(), at, values.end());
  if (values.size() % 2)
    return *at;
  double below = *std::max_element(values.begin(), at);
  return below + (*at - below) / 2;
}

/// P(|T| <= t) of Student's distribution with `freedom` whole degrees
/// (Abramowitz and Stegun 26.7.3 and 26.7.4).
double studentWithin(double t, unsigned freedom) {
  double angle = std::atan(t / std::sqrt(freedom));
  double c = std::cos(angle), s = std::sin(angle);
  bool odd = freedom % 2;
  double term = odd ? c : 1, sum = 0;
  for (unsigned k = odd ? 1 : 0; k + 1 < freedom; k += 2) {
    sum += term;
    term *= c * c * (k + 1) / (k + 2);
  }
  return odd ? 2 / pi * (angle + s * sum) : s * sum;
}

double studentQuantile(double confidence, unsigned freedom) {
  double low = 0, high = 1;
  while (studentWithin(high, freedom) < confidence && high < 1e9)
    high *= 2;
  for (int i = 0; i < 100; ++i) {
    double middle = low + (high - low) / 2;
    (studentWithin(middle, freedom) < confidence ? low : high) = middle;
  }
  return high;
}

RatioInterval studentInterval(llvm::ArrayRef<double> logs, double centre,
                              double confidence) {
  size_t n = logs.size();
  if (n == 1)
    return {std::exp(centre), 0, std::numeric_limits<double>::infinity()};
  double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / n;
  double squares = 0;
  for (double value : logs)
    squares += (value - mean) * (value - mean);
  double error = std::sqrt(squares / (n - 1) / n);
  double half = studentQuantile(confidence, n - 1) * error;
  return {std::exp(centre), std::exp(centre - half), std::exp(centre + half)};
}

/// The largest k for which the k-th least and the k-th greatest of `n` samples
/// enclose the median with the confidence; at least 1.
size_t signTestRank(size_t n, double confidence) {
  double term = std::ldexp(1.0, -static_cast<int>(n)), sum = term;
  size_t k = 1;
  while (k < n / 2) {
    term *= static_cast<double>(n - k + 1) / k;
    sum += term;
    if (sum > (1 - confidence) / 2)
      break;
    ++k;
  }
  return k;
}

/// How much a pair resembles the next, from what sides of the median they are
/// on: outliers say no more than others. 0 where it may be chance.
double likeness(llvm::ArrayRef<double> logs, double centre) {
  constexpr size_t fewest = 16;
  size_t n = logs.size();
  if (n < fewest)
    return 0;
  auto side = [&](size_t i) { return (logs[i] > centre) - (logs[i] < centre); };
  double alike = 0;
  for (size_t i = 0; i + 1 < n; ++i)
    alike += side(i) * side(i + 1);
  alike /= double(n - 1);
  if (alike <= 2 / std::sqrt(double(n)))
    return 0;
  // Of normal variables with this correlation of signs. Few pairs may look much
  // more alike than they are.
  constexpr double most = 0.6;
  return std::min(std::sin(pi / 2 * alike), most);
}

} // namespace

double median(llvm::ArrayRef<double> values) {
  std::vector<double> copy(values.begin(), values.end());
  return medianInPlace(copy);
}

RatioInterval pairedRatio(llvm::ArrayRef<double> original,
                          llvm::ArrayRef<double> candidate, double confidence,
                          unsigned resamples) {
  assert(original.size() == candidate.size() && "pairs wanted");
  std::vector<double> logs;
  for (size_t i = 0, n = std::min(original.size(), candidate.size()); i < n;
       ++i) {
    double value = std::log(original[i] / candidate[i]);
    if (std::isfinite(value))
      logs.push_back(value);
  }
  if (logs.empty())
    return {1, 0, std::numeric_limits<double>::infinity()};

  size_t n = logs.size();
  double centre = median(logs);
  double least = 1 - confidence;
  if (n < 64 && std::ldexp(1.0, 1 - static_cast<int>(n)) > least)
    return studentInterval(logs, centre, confidence);

  Generator generator(0x46535221u);
  std::vector<double> medians(std::max(resamples, 1u)), sample(n);
  double alike = likeness(logs, centre);
  constexpr size_t blockPairs = 5;
  size_t block = alike > 0 ? blockPairs : 1;
  for (double &each : medians) {
    sample.resize(n);
    for (size_t i = 0; i < n; i += block) {
      size_t from = generator.below(n);
      for (size_t k = 0; k < std::min(block, n - i); ++k)
        sample[i + k] = logs[(from + k) % n];
    }
    each = medianInPlace(sample);
  }
  std::sort(medians.begin(), medians.end());
  // Outward to whole ranks, so that rounding never narrows the interval.
  double last = static_cast<double>(medians.size() - 1);
  size_t low = static_cast<size_t>(std::floor(least / 2 * last));
  size_t high = static_cast<size_t>(std::ceil((1 - least / 2) * last));
  double lowLog = medians[low], highLog = medians[high];
  // Beyond, the two agree, and 2^-n leaves the range of a double.
  if (n <= 1000) {
    std::sort(logs.begin(), logs.end());
    double worth = (1 - alike) / (1 + alike);
    size_t independent = std::max<size_t>(size_t(double(n) * worth), 2);
    size_t rank = signTestRank(independent, confidence);
    if (std::ldexp(1.0, 1 - int(independent)) > least)
      rank = 1; // Too few: the whole range, and more cannot be said.
    else if (independent < n)
      rank = std::max<size_t>(1, rank * n / (independent + 1));
    lowLog = std::min(lowLog, logs[rank - 1]);
    highLog = std::max(highLog, logs[n - rank]);
  }
  return {std::exp(centre), std::exp(lowLog), std::exp(highLog)};
}

double acceptanceMargin(double noiseFloor) {
  constexpr double least = 0.005, noisy = 0.03;
  if (noiseFloor > noisy)
    return 2 * noiseFloor;
  return std::max(noiseFloor, least);
}

Verdict judge(const RatioInterval &interval, double margin) {
  double bar = 1 + margin;
  if (interval.low > bar)
    return Verdict::Accepted;
  if (interval.high < bar)
    return Verdict::NotFaster;
  return Verdict::Undecided;
}

} // namespace fsr
