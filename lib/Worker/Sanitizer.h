// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// compute-sanitizer on a candidate that won: this program starts itself under
// it, with one launch to replay. What the tools say comes from their own log
// file, which device code cannot write, and is read with caps all the same.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_SANITIZER_H
#define FSR_LIB_WORKER_SANITIZER_H

#include "fsr/Device/Protocol.h"
#include "fsr/Support/Interrupt.h"
#include "fsr/Worker/Worker.h"

namespace fsr {

/// What the log of one tool says.
struct SanitizerLog {
  bool hasSummary = false;
  /// Of the device's code, not of the replay's own calls.
  uint64_t errors = 0, warnings = 0;
  /// The first lines that are about something found; where there is nothing,
  /// the first about what went wrong on the host.
  std::string first;
};
SanitizerLog parseSanitizerLog(llvm::StringRef text);

/// How one tool ended.
struct SanitizerRun {
  SanitizerLog log;
  std::string unfinished; ///< Why it says nothing; empty where it does.
};

/// The request and the candidate's image in a file of their own, for a replay;
/// removed with this object, where the process is ended in order, and else by
/// the replay that sees that nobody holds the lock in the same folder any more.
class ReplayFile {
public:
  static llvm::Expected<std::unique_ptr<ReplayFile>>
  create(const WireEvaluate &request, llvm::StringRef image);
  ~ReplayFile();
  ReplayFile(const ReplayFile &) = delete;
  ReplayFile &operator=(const ReplayFile &) = delete;

  SanitizerRun runTool(const SanitizerSetup &setup, llvm::StringRef tool) const;
  /// What a tool is to run.
  std::vector<std::string> replayCommand(const SanitizerSetup &setup) const;
  /// A place for what a tool writes.
  std::string logOf(llvm::StringRef tool) const {
    return (folder + "/" + tool + ".log").str();
  }

private:
  explicit ReplayFile(std::string folder)
      : folder(std::move(folder)), leftover(this->folder) {}
  std::string replay() const { return folder + "/replay"; }
  std::string lock() const { return folder + "/lock"; }
  std::string folder;
  Leftover leftover;
  int lockFd = -1;
};

/// From here on this process, its process group with it, ends once `lock` of a
/// ReplayFile is held by nobody, and what that folder holds is removed. An
/// error: nobody holds it now.
llvm::Error endWithHolder(const std::string &lock);

} // namespace fsr

#endif // FSR_LIB_WORKER_SANITIZER_H
