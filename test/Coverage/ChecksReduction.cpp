// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of sums, extremes, scans and histograms.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

namespace fsr::ptx {

static double sumOf(const Argument &a) {
  double sum = 0;
  for (size_t i = 0; i < a.count; ++i)
    sum += a.was(i);
  return sum;
}

static double sumAfter(const Argument &a) {
  double sum = 0;
  for (size_t i = 0; i < a.count; ++i)
    sum += a.is(i);
  return sum;
}

static Check scan(bool isInclusive, size_t restart = 0) {
  return [=](const Case &c) {
    const auto &a = c.arguments;
    double sum = 0, before = 0;
    return all(a[1], [&](size_t i) {
      if (restart && i % restart == 0)
        sum = 0;
      before = sum;
      sum += a[0].was(i);
      return isInclusive ? sum : before;
    });
  };
}

void addReductionChecks(Checks &to) {
  // Whatever the parts are, they add up.
  to["sum_parts"] = [](const Case &c) {
    double wanted = sumOf(c.arguments[0]), is = sumAfter(c.arguments[1]);
    return std::fabs(is - wanted) < 2e-4 * std::fmax(1, std::fabs(wanted))
               ? ""
               : differs(0, is, wanted);
  };
  to["sum_last"] = [](const Case &c) {
    return all(
        c.arguments[2], [&](size_t) { return sumOf(c.arguments[0]); }, 2e-4);
  };
  to["maximum"] = [](const Case &c) {
    double most = -1e300;
    for (size_t i = 0; i < c.arguments[0].count; ++i)
      most = std::fmax(most, c.arguments[0].was(i));
    return all(c.arguments[1], [&](size_t) { return most; });
  };
  to["argmax"] = [](const Case &c) {
    size_t at = 0;
    for (size_t i = 0; i < c.arguments[0].count; ++i)
      if (c.arguments[0].was(i) > c.arguments[0].was(at))
        at = i;
    return all(c.arguments[1], [&](size_t) { return at; });
  };
  to["redux"] = [](const Case &c) {
    double most = 0;
    uint32_t any = 0;
    for (size_t i = 0; i < c.arguments[0].count; ++i) {
      most = std::fmax(most, c.arguments[0].was(i));
      any |= uint32_t(c.arguments[0].was(i));
    }
    double wanted[] = {sumOf(c.arguments[0]), most, double(any)};
    return all(c.arguments[1], [&](size_t i) { return wanted[i]; });
  };
  to["column_sums"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      double sum = 0;
      for (size_t r = 0; r < a[0].count / a[1].count; ++r)
        sum += a[0].was(r * a[1].count + i);
      return sum;
    });
  };
  to["mean_variance"] = [](const Case &c) {
    const auto &a = c.arguments;
    double mean = sumOf(a[0]) / a[0].count, variance = 0;
    for (size_t i = 0; i < a[0].count; ++i)
      variance += std::pow(a[0].was(i) - mean, 2) / a[0].count;
    return all(a[1], [&](size_t i) { return i ? variance : mean; });
  };
  to["dot"] = [](const Case &c) {
    const auto &a = c.arguments;
    double sum = 0;
    for (size_t i = 0; i < a[0].count; ++i)
      sum += a[0].was(i) * a[1].was(i);
    return all(a[2], [&](size_t) { return sum; });
  };
  to["product"] = [](const Case &c) {
    const auto &a = c.arguments;
    double product = 1;
    for (size_t i = 0; i < a[0].count; ++i)
      product *= a[0].was(i);
    return std::fabs(a[1].is(0) - product) <= 1e-9 * std::fabs(product)
               ? ""
               : differs(0, a[1].is(0), product);
  };
  to["inclusive_scan"] = scan(true);
  to["exclusive_scan"] = scan(false);
  to["inclusive_scan_256"] = scan(true, 256);
  to["inclusive_scan_128"] = scan(true, 128);
  to["inclusive_scan_32"] = scan(true, 32);
  to["exclusive_scan_512"] = scan(false, 512);
  // Argument 1 counts how often each value is in argument 0.
  to["histogram"] = [](const Case &c) {
    const auto &a = c.arguments;
    std::vector<double> counts(a[1].count);
    for (size_t i = 0; i < a[0].count; ++i)
      ++counts[size_t(a[0].was(i)) % counts.size()];
    return all(a[1], [&](size_t i) { return counts[i]; });
  };
  to["segmented_sum"] = [](const Case &c) {
    const auto &a = c.arguments; // Values, offsets, sums.
    return all(a[2], [&](size_t i) {
      double sum = 0;
      for (size_t k = a[1].was(i); k < a[1].was(i + 1); ++k)
        sum += a[0].was(k);
      return sum;
    });
  };
}

} // namespace fsr::ptx
