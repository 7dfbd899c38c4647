// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The comparison on the host, in f64. Errors of rows of other sizes are made
// alike by the row's largest true value before their squares are added.
//
// An original that happens to be exact leaves half an ulp to the candidate. One
// whose few results happen to be good is not held to its luck: with fewer rows
// or elements than tell, what its bound lets expect stands for its error. Where
// the original's sums happen to be exact, as those of the first few numbers
// often are, another order of them may round: once, at the height of the row's
// largest value.
//
//===----------------------------------------------------------------------===//

#include "OracleRule.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

#define FSR_DEVICE static inline
#include "kernels/elements.inl"

namespace fsr {

namespace {
constexpr double boundFactor = 8, rmsFactor = 4;
constexpr uint64_t fewElements = 64, fewRows = 16;
} // namespace

double ulpOf(ElementType type, double value) {
  int precision = 53, least = -1022;
  switch (type) {
  case ElementType::F16:
    precision = 11;
    least = -14;
    break;
  case ElementType::BF16:
    precision = 8;
    least = -126;
    break;
  case ElementType::F32:
    precision = 24;
    least = -126;
    break;
  default:
    break;
  }
  int exponent = least;
  if (value != 0 && std::isfinite(value))
    exponent = std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - precision + 1);
}

double elementValue(ElementType type, uint64_t bits) {
  return fsrToDouble(bits, static_cast<uint32_t>(type));
}

std::string shareText(double share) {
  if (share == 0)
    return "nothing";
  return llvm::formatv("2^{0:f1}", std::log2(share));
}

TruthAnswer judgeByTruth(const TruthQuestion &question) {
  TruthAnswer answer;
  size_t count = question.elements.size();
  answer.accepted.resize(count);
  llvm::DenseMap<uint64_t, double> rows;
  for (const TrueElement &element : question.elements)
    if (std::isfinite(element.bound)) {
      double &largest = rows[element.index / question.row];
      largest = std::max(largest, std::fabs(element.value));
    }
  long double ofOriginal = 0, ofCandidate = 0, ofUlp = 0, ofBound = 0,
              ofAccepted = 0;
  uint64_t summed = 0, summedAccepted = 0;
  double largestShare = -1;
  auto fail = [&](size_t i, double ratio) {
    if (!answer.failing++)
      answer.first = i;
    answer.worst = std::max(answer.worst, ratio);
  };
  for (size_t i = 0; i < count; ++i) {
    const TrueElement &element = question.elements[i];
    double o = elementValue(question.type, question.original[i]);
    double c = elementValue(question.type, question.candidate[i]);
    if (!std::isfinite(o) || !std::isfinite(c)) {
      ++answer.compared;
      answer.accepted[i] = std::isnan(o) ? std::isnan(c) : o == c;
      if (!answer.accepted[i])
        fail(i, 0);
      continue;
    }
    if (!std::isfinite(element.bound) || !std::isfinite(element.value)) {
      ++answer.unbounded;
      continue;
    }
    ++answer.compared;
    double ulp = ulpOf(question.type, element.value);
    double originalError = std::fabs(o - element.value);
    double candidateError = std::fabs(c - element.value);
    // The truth is held in f64 itself.
    double own = element.bound * (1 + 0x1p-20) +
                 std::fabs(element.value) * 0x1p-51 + question.tiny;
    if (originalError > own && !answer.isOriginalOutside) {
      answer.isOriginalOutside = true;
      answer.outside = i;
    }
    // Not by luck: the bound, too, is far below the value.
    double size = std::fabs(element.value);
    answer.lost +=
        size > 1024 * question.tiny && candidateError > size / 2 &&
        std::max(originalError, boundFactor * element.bound) <= size / 1024;
    double scale = rows.lookup(element.index / question.row);
    double allowed = boundFactor * element.bound + ulp + question.tiny;
    if (question.accumulation > 1)
      allowed += scale * ulpOf(question.type, 1) / 2;
    answer.accepted[i] = candidateError <= allowed;
    if (answer.accepted[i])
      answer.worstAccepted =
          std::max(answer.worstAccepted, candidateError / allowed);
    else
      fail(i, candidateError / allowed);
    if (scale == 0)
      continue;
    ++summed;
    if (candidateError / scale > largestShare) {
      largestShare = candidateError / scale;
      answer.largest = i;
    }
    auto add = [&](long double &to, double error) {
      long double relative = error / scale;
      to += relative * relative;
    };
    add(ofOriginal, originalError);
    add(ofCandidate, candidateError);
    if (answer.accepted[i]) {
      ++summedAccepted;
      add(ofAccepted, candidateError);
    }
    add(ofUlp, ulp / 2);
    add(ofBound, element.bound);
    answer.share =
        std::max(answer.share, (allowed + element.bound + ulp) / scale);
  }
  if (!summed)
    return answer;
  auto rms = [&](long double sum, uint64_t of) {
    return double(std::sqrt(sum / of));
  };
  answer.originalRms = rms(ofOriginal, summed);
  answer.candidateRms = rms(ofCandidate, summed);
  double expected = answer.originalRms;
  answer.isFew = summed < fewElements || rows.size() < fewRows;
  if (answer.isFew)
    expected = std::max(expected, rms(ofBound, summed) /
                                      (2 * std::sqrt(question.accumulation)));
  answer.allowedRms = rmsFactor * expected + rms(ofUlp, summed);
  answer.isSpread = summedAccepted * 8 < summed ||
                    rms(ofAccepted, summedAccepted) > answer.allowedRms;
  if (answer.unbounded || answer.compared < fewElements)
    answer.share = 0;
  return answer;
}

} // namespace fsr
