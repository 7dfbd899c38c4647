// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a search says while it runs, on standard error. On a terminal it is one
// line that is drawn over and over, with a clock that goes on while a kernel is
// measured; anywhere else a line an event, for a log. A terminal has room for
// one live line: of two searches at a time the second shows nothing.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TERMINAL_PROGRESS_H
#define FSR_TERMINAL_PROGRESS_H

#include "fsr/Search/Search.h"
#include "fsr/Terminal/TimeLeft.h"

#include "llvm/Support/raw_ostream.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace fsr {

enum class ProgressKind { None, Lines, Live };

/// `Live` where standard error is a terminal that can draw over a line.
ProgressKind progressKindOfTerminal();

/// One search of a run.
struct ProgressSubject {
  std::string kernel;
  unsigned number = 1, of = 1; ///< Which kernel of how many.
  unsigned rounds = 1, width = 1;
  double capUsd = 0; ///< Of the run; 0: none.
};

/// `options` as the search takes them: the control has one wide round.
ProgressSubject progressSubject(llvm::StringRef kernel,
                                const SearchOptions &options, double capUsd);

/// What the live line says; texts are printable already.
struct ProgressState {
  ProgressSubject subject;
  int64_t round = 1;
  unsigned waiting = 0; ///< Asked, and neither answered nor put off.
  unsigned pending = 0;
  bool isTrying = false;   ///< Answers are there and are being tried.
  bool isChecking = false; ///< The original runs, on a virtual device.
  /// Of a test of the task that takes long; -1: none is known to.
  int64_t testedDummies = -1, allDummies = 0;
  std::map<Verdict, unsigned> verdicts;
  std::string best; ///< With its interval.
  double usd = 0;
  std::optional<std::chrono::seconds> left;
  std::chrono::seconds elapsed{0};
};

/// The line with as much of it as `columns` hold: counts go before the best
/// does, and a gain is never there without its interval.
std::string progressLine(const ProgressState &state, size_t columns);

class Progress {
public:
  /// `prefix` stands before a line of a log. `store` is where what is found is
  /// kept.
  Progress(llvm::raw_ostream &os, ProgressKind kind, std::string prefix,
           std::string store);
  ~Progress();

  /// A search begins. Until `end` nothing else should be written to `os`.
  void begin(ProgressSubject subject);
  /// `usd`: spent so far.
  void event(const SearchEvent &event, double usd);
  /// A line of its own, whatever the kind; above the live line where there is
  /// one.
  void say(llvm::StringRef line);
  /// Takes the live line away; `begin` may follow.
  void end();

private:
  friend void sayInterrupted(llvm::StringRef program);

  void print(const SearchEvent &event);
  void tellTest(const StrengthProgress &progress);
  void draw();
  void erase();

  llvm::raw_ostream &os;
  const ProgressKind kind;
  const std::string prefix, store;

  std::mutex lock; ///< Of everything below.
  std::condition_variable ended;
  bool isOn = false;  ///< Between `begin` and `end`.
  bool draws = false; ///< Has the terminal.
  ProgressState state;
  std::chrono::steady_clock::time_point start;
  std::optional<TimeLeft> timeLeft;
  std::thread clock; ///< While it draws.
};

/// For the end of a tool by Ctrl-C: takes the live line away for good, and says
/// on standard error where to find what was finished.
void sayInterrupted(llvm::StringRef program);

} // namespace fsr

#endif // FSR_TERMINAL_PROGRESS_H
