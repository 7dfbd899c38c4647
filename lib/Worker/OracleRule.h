// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rule where true values are known: each element within eight times the
// bound of the original's own error, and all together, by the root of their
// mean square, within four times the original's actual one. The first lets
// every order of a sum pass and finds a wrong element; the second finds a
// narrower type, whose errors are everywhere and below a bound for the worst
// case.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_ORACLERULE_H
#define FSR_LIB_WORKER_ORACLERULE_H

#include "Oracle.h"

namespace fsr {

/// What a narrower type gives, or one without small terms, is near by its RMS
/// error; what is further off is told as that.
inline bool isNear(double candidateRms) { return candidateRms < 0x1p-5; }

/// The element that a message names.
struct WorstElement {
  uint64_t index = 0; ///< In logical order.
  double truth = 0, candidate = 0, original = 0;
};

struct TruthQuestion {
  ElementType type = ElementType::F32;
  llvm::ArrayRef<TrueElement> elements;
  /// Bits of both, by `elements`.
  llvm::ArrayRef<uint64_t> original, candidate;
  uint64_t row = 1;        ///< Elements a row.
  double accumulation = 1; ///< Longest chain of a sum.
  double tiny = 0;         ///< For results near zero.
};

struct TruthAnswer {
  /// Of the elements that the bound says nothing of, neither.
  std::vector<bool> accepted;
  uint64_t compared = 0, unbounded = 0, failing = 0;
  /// However small beside their row, the original has them to 10 bits; the
  /// candidate has nothing like them.
  uint64_t lost = 0;
  size_t first = 0;         ///< The first that fails.
  double worst = 0;         ///< Largest error over what is allowed.
  double worstAccepted = 0; ///< Of those that pass.
  /// The original, on the device, does not keep to its own bound: what ran here
  /// is not what ran there.
  bool isOriginalOutside = false;
  size_t outside = 0;
  /// As shares of the row's largest true value.
  double originalRms = 0, candidateRms = 0, allowedRms = 0;
  bool isNarrower() const { return !(candidateRms <= allowedRms); }
  /// The results are too few for their own errors to tell what to expect.
  bool isFew = false;
  /// The largest error as a share of its row's largest true value; by
  /// `elements`.
  size_t largest = 0;
  /// The errors are everywhere, not only where elements fail.
  bool isSpread = false;
  /// Largest share of its row's largest value that the rule allows an element
  /// against the original; 0: not known.
  double share = 0;
};

TruthAnswer judgeByTruth(const TruthQuestion &question);

/// The distance of numbers of the type at `value`.
double ulpOf(ElementType type, double value);

double elementValue(ElementType type, uint64_t bits);

/// "2^-22.9 of the row's largest value"
std::string shareText(double share);

} // namespace fsr

#endif // FSR_LIB_WORKER_ORACLERULE_H
