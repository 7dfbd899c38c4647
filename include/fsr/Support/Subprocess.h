// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Child processes with limits. Two forms: `runProcess` for a tool that is run
// to its end, and `ChildProcess` for a child that is talked to over a socket.
//
// Started with posix_spawn, never fork: the parent may hold a GPU context or
// threads. The child gets its own process group, so that killing it takes its
// children along, and only the descriptors that it is given. The parent
// installs no signal handler: sockets are written with MSG_NOSIGNAL.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_SUBPROCESS_H
#define FSR_SUPPORT_SUBPROCESS_H

#include "fsr/Support/Deadline.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace fsr {

struct ProcessLimits {
  std::chrono::milliseconds wall{60000};
  size_t maxOutputBytes = size_t(16) << 20; ///< Kept of each stream.
};

struct ProcessResult {
  int exitCode = 0; ///< Of a child that exited by itself.
  int signal = 0;   ///< The signal that ended it, or 0.
  bool timedOut = false;
  std::chrono::milliseconds wall{0}; ///< The limit it ran under.
  std::string out,
      err; ///< Cut at maxOutputBytes; the rest is read and dropped.

  bool succeeded() const { return !timedOut && !signal && exitCode == 0; }
  /// "exit status 3", "killed by SIGSEGV", "stopped after 60000 ms".
  std::string describe() const;
};

/// Runs `args[0]` (a path, or a name looked up on PATH) with `input` on its
/// standard input. An error means that it could not be started; how it ended is
/// in the result. What it leaves running in its process group is killed.
llvm::Expected<ProcessResult> runProcess(llvm::ArrayRef<std::string> args,
                                         llvm::StringRef input,
                                         const ProcessLimits &limits = {});

/// The path of `name` on PATH, or empty.
std::string findOnPath(llvm::StringRef name);

/// A child whose standard input and output are both ends of one socket pair
/// held here; its standard error goes to ours. Killed and reaped when
/// destroyed.
class ChildProcess {
public:
  static llvm::Expected<std::unique_ptr<ChildProcess>>
  start(llvm::ArrayRef<std::string> args);
  ChildProcess(const ChildProcess &) = delete;
  ChildProcess &operator=(const ChildProcess &) = delete;
  ~ChildProcess();

  int socket() const { return fd; }
  int pid() const { return child; }
  /// Asks the process group to end by SIGTERM; after a second at the most what
  /// is left of it gets SIGKILL. Reaps. Safe to call twice.
  void kill();
  /// How it ended, as `ProcessResult::describe` says it. Asks a child that
  /// still runs to end, by closing its input, waits up to 2 s, then kills.
  std::string reap();

private:
  ChildProcess(int fd, int child) : fd(fd), child(child) {}
  int fd;
  int child;
  std::string ended; ///< Empty while it is not reaped.
};

} // namespace fsr

#endif // FSR_SUPPORT_SUBPROCESS_H
