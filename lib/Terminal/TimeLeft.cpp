// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Means of what was seen, times what is to come. Answers are tried in the order
// of their slots, so that the slot at work says how many are left; sets of
// parameters finish in bursts and say less.
//
//===----------------------------------------------------------------------===//

#include "fsr/Terminal/TimeLeft.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace fsr;
using Kind = SearchEvent::Kind;

void TimeLeft::endAsking(Clock::time_point now) {
  if (phase == Phase::Asking) {
    asking += now - begun;
    ++asked;
  }
  if (phase != Phase::Trying) {
    begun = now;
    slot = 1;
    slotHasTrial = false;
  }
  phase = Phase::Trying;
}

void TimeLeft::endAnswer() {
  if (!slotHasTrial)
    return;
  trying += last - begun;
  ++tried;
  begun = last;
  slotHasTrial = false;
}

void TimeLeft::event(const SearchEvent &event, Clock::time_point now) {
  round = event.round;
  switch (event.kind) {
  case Kind::Asked:
    if (phase != Phase::Asking) {
      phase = Phase::Asking;
      begun = now;
      waiting = 0;
    }
    ++waiting;
    break;
  case Kind::Answered:
    waiting -= waiting > 0;
    if (!waiting)
      endAsking(now);
    break;
  case Kind::Pending:
    pends = true;
    endAsking(now);
    break;
  case Kind::Finished:
    // Where a request failed, nothing said that the asking was over.
    if (phase == Phase::Asking)
      endAsking(last);
    else if (phase == Phase::Between)
      begun = last;
    phase = Phase::Trying;
    if (event.slot != slot)
      endAnswer();
    slot = event.slot;
    slotHasTrial = true;
    break;
  case Kind::Checking:
  case Kind::Tested:
    break;
  case Kind::RoundEnded:
    endAnswer();
    phase = Phase::Between;
    break;
  }
  last = now;
}

std::optional<std::chrono::seconds> TimeLeft::at(Clock::time_point now) const {
  unsigned later = rounds > round ? rounds - round : 0;
  if (!tried || pends || (later && !asked))
    return std::nullopt;
  Seconds ask = asked ? asking / asked : Seconds(0), one = trying / tried;
  Seconds left = later * (ask + width * one);
  auto rest = [&](Seconds whole) {
    return std::max(Seconds(0), whole - Seconds(now - begun));
  };
  if (phase == Phase::Asking)
    left += rest(ask) + width * one;
  else if (phase == Phase::Trying)
    left += rest(one) + std::max<int64_t>(0, width - slot) * one;
  return std::chrono::ceil<std::chrono::seconds>(left);
}

std::string fsr::timeLeftText(std::chrono::seconds left) {
  double minutes = left.count() / 60.0;
  if (minutes < 1)
    return "under a minute left";
  if (minutes <= 90)
    return llvm::formatv("about {0} min left", int(std::ceil(minutes)));
  return llvm::formatv("about {0:f1} h left", minutes / 60);
}
