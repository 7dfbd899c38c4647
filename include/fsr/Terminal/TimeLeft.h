// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How long a search will still take, from what its rounds took so far: a round
// waits for its answers, then tries one after the other. What the store had
// took no time and counts for nothing, so that a search that goes on does not
// promise a quick end. A search that ends early is done sooner.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TERMINAL_TIMELEFT_H
#define FSR_TERMINAL_TIMELEFT_H

#include "fsr/Search/Search.h"

#include <chrono>

namespace fsr {

class TimeLeft {
public:
  using Clock = std::chrono::steady_clock;

  /// A search of up to `rounds` rounds with `width` answers each, from `start`
  /// on.
  TimeLeft(unsigned rounds, unsigned width, Clock::time_point start)
      : rounds(rounds), width(width), begun(start), last(start) {}

  void event(const SearchEvent &event, Clock::time_point now);

  /// Nothing before one answer was tried, where rounds are to come and none has
  /// been asked for yet, and where answers are pending.
  std::optional<std::chrono::seconds> at(Clock::time_point now) const;

private:
  using Seconds = std::chrono::duration<double>;
  void endAsking(Clock::time_point now);
  void endAnswer();

  unsigned rounds, width;
  enum class Phase { Between, Asking, Trying } phase = Phase::Between;
  int64_t round = 0;
  int64_t slot = 1;     ///< Trying: which answer.
  unsigned waiting = 0; ///< Asking: for so many.
  bool slotHasTrial = false;
  bool pends = false;      ///< An answer is put off, and with it the end.
  Clock::time_point begun; ///< The phase; trying: the answer.
  Clock::time_point last;  ///< Its last event.
  Seconds asking{0}, trying{0};
  unsigned asked = 0; ///< Rounds that `asking` is the sum of.
  unsigned tried = 0; ///< Answers that `trying` is the sum of.
};

/// "under a minute left", "about 4 min left", "about 2.5 h left".
std::string timeLeftText(std::chrono::seconds left);

} // namespace fsr

#endif // FSR_TERMINAL_TIMELEFT_H
