// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which pairs count, and what they say.
//
//===----------------------------------------------------------------------===//

#include "RaceRule.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace fsr {

namespace {
constexpr double slowestClock = 0.75, clockSlack = 0.03;
} // namespace

bool RaceRule::add(const RaceSample &original, const RaceSample &candidate,
                   double nominalMhz) {
  double slow = std::min(original.clockMhz, candidate.clockMhz);
  double fast = std::max(original.clockMhz, candidate.clockMhz);
  if (slow > 0 &&
      (slow < slowestClock * nominalMhz || fast - slow > clockSlack * fast)) {
    ++numDropped;
    return false;
  }
  originalUs.push_back(original.microseconds);
  candidateUs.push_back(candidate.microseconds);
  originalCycles.push_back(original.cycles);
  candidateCycles.push_back(candidate.cycles);
  if (slow > 0)
    clocksMhz.push_back((slow + fast) / 2);
  return true;
}

bool RaceRule::hasCycles() const {
  auto known = [](double cycles) { return cycles > 0; };
  return llvm::all_of(originalCycles, known) &&
         llvm::all_of(candidateCycles, known);
}

Verdict RaceRule::judgeLast() const {
  if (pairs() < fewestPairs)
    return Verdict::Undecided;
  Verdict verdict =
      judge(pairedRatio(originalUs, candidateUs, lookConfidence), margin);
  if (verdict == Verdict::Undecided || !hasCycles())
    return verdict;
  Verdict inCycles = judge(
      pairedRatio(originalCycles, candidateCycles, lookConfidence), margin);
  return verdict == inCycles ? verdict : Verdict::Undecided;
}

Verdict RaceRule::judgeNow() {
  Verdict verdict = judgeLast();
  if (verdict == Verdict::Undecided && pairs() >= look)
    look *= 2;
  return verdict;
}

} // namespace fsr
