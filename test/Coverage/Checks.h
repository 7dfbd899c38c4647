// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of answers, by name. Each computes on the host, in double and the
// plainest way, what a kernel should have written.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_COVERAGE_CHECKS_H
#define FSR_TEST_COVERAGE_CHECKS_H

#include "Table.h"

#include "llvm/ADT/StringMap.h"

#include <cmath>

namespace fsr::ptx {

using Checks = llvm::StringMap<Check>;
void addElementChecks(Checks &to);
void addReductionChecks(Checks &to);
void addMatrixChecks(Checks &to);
void addOrderChecks(Checks &to);
void addModelChecks(Checks &to);
void addScienceChecks(Checks &to);

inline std::string differs(size_t i, double is, double wanted) {
  return "element " + std::to_string(i) + " is " + std::to_string(is) +
         ", not " + std::to_string(wanted);
}

/// The first `n` elements are `wanted(i)`, to `tolerance` of that or of 1.
template <typename Wanted>
std::string each(const Argument &of, size_t n, Wanted wanted,
                 double tolerance = 1e-5) {
  for (size_t i = 0; i < n; ++i) {
    double value = wanted(i), is = of.is(i);
    if (is == value)
      continue;
    if (!(std::fabs(is - value) <= tolerance * std::fmax(1, std::fabs(value))))
      return differs(i, is, value);
  }
  return "";
}

template <typename Wanted>
std::string all(const Argument &of, Wanted wanted, double tolerance = 1e-5) {
  return each(of, of.count, wanted, tolerance);
}

} // namespace fsr::ptx

#endif // FSR_TEST_COVERAGE_CHECKS_H
