// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ctrl-C. A tool may ask that SIGINT, SIGTERM, SIGQUIT and SIGHUP end it in
// order: what must not be cut in two is let come to its end, every process
// below is killed, and the exit status is 128 and the signal's number. Only
// tools ask for that; a library that marks its whole steps pays a lock and
// installs nothing.
//
// A signal is the process's, so what is behind these names is as well.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_INTERRUPT_H
#define FSR_SUPPORT_INTERRUPT_H

#include <functional>
#include <string>

namespace fsr {

/// While one lives, an interrupt waits; once an interrupt has come, the
/// constructor never returns. For short steps only: staging and renaming a
/// file, starting a child. They do not nest.
class WholeStep {
public:
  WholeStep();
  ~WholeStep();
  WholeStep(const WholeStep &) = delete;
  WholeStep &operator=(const WholeStep &) = delete;
};

/// A temporary folder, which an interrupt removes while this lives.
class Leftover {
public:
  explicit Leftover(std::string folder);
  ~Leftover();
  Leftover(const Leftover &) = delete;
  Leftover &operator=(const Leftover &) = delete;

private:
  std::string folder;
};

/// From here on the four signals end the process as told above. To be called
/// once, before any other thread is started: they inherit that the signals are
/// blocked. Outputs that LLVM removes on a signal are removed. `beforeEnd` says
/// goodbye, on a thread of its own. A second signal waits for nothing but the
/// goodbye, and for that 200 ms. A signal that was ignored stays ignored.
void endOnInterrupt(std::function<void()> beforeEnd);

/// Ends the process in the same order, goodbye left out, from any thread.
[[noreturn]] void endInOrder(int status);

} // namespace fsr

#endif // FSR_SUPPORT_INTERRUPT_H
