// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a search says while it runs, on standard error. On a terminal it is one
// line that is drawn over and over, with a clock that goes on while a kernel is
// measured; anywhere else a line an event, for a log.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TOOLS_FSRTUNE_PROGRESS_H
#define FSR_TOOLS_FSRTUNE_PROGRESS_H

#include "fsr/Search/Search.h"

#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace fsr {

enum class ProgressKind { None, Lines, Live };

/// `Live` where standard error is a terminal that can draw over a line.
ProgressKind progressKindOfTerminal();

class Progress {
public:
  Progress(llvm::raw_ostream &os, ProgressKind kind, std::string kernel,
           unsigned rounds, unsigned width);
  ~Progress();

  /// `usd`: spent so far.
  void event(const SearchEvent &event, double usd);
  /// A line of its own, above the live one.
  void say(const std::string &line);
  /// Takes the live line away; nothing is drawn any more. Safe from any thread.
  void end();

private:
  void print(const SearchEvent &event);
  void draw();
  std::string line() const;

  llvm::raw_ostream &os;
  const ProgressKind kind;
  const std::string kernel;
  const unsigned rounds, width;
  const std::chrono::steady_clock::time_point start;

  std::mutex lock; ///< Of everything below.
  std::condition_variable ended;
  bool isOver = false;
  int64_t round = 1;
  unsigned waiting = 0; ///< Asked, and neither answered nor put off.
  unsigned pending = 0;
  std::map<Verdict, unsigned> verdicts;
  std::string best;
  double usd = 0;
  std::thread clock; ///< Live only.
};

} // namespace fsr

#endif // FSR_TOOLS_FSRTUNE_PROGRESS_H
