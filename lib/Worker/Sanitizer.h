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
#include "fsr/Worker/Worker.h"

namespace fsr {

/// What the log of one tool says.
struct SanitizerLog {
  bool hasSummary = false;
  uint64_t errors = 0, warnings = 0;
  /// The first lines that are about something found.
  std::string first;
};
SanitizerLog parseSanitizerLog(llvm::StringRef text);

/// How one tool ended.
struct SanitizerRun {
  SanitizerLog log;
  std::string unfinished; ///< Why it says nothing; empty where it does.
};

/// The request and the candidate's image in a file of their own, for a replay;
/// removed with this object.
class ReplayFile {
public:
  static llvm::Expected<std::unique_ptr<ReplayFile>>
  create(const WireEvaluate &request, llvm::StringRef image);
  ~ReplayFile();
  ReplayFile(const ReplayFile &) = delete;
  ReplayFile &operator=(const ReplayFile &) = delete;

  SanitizerRun runTool(const SanitizerSetup &setup, llvm::StringRef tool) const;
  std::string replay() const { return folder + "/replay"; }
  /// A place for what a tool writes.
  std::string logOf(llvm::StringRef tool) const {
    return (folder + "/" + tool + ".log").str();
  }

private:
  explicit ReplayFile(std::string folder) : folder(std::move(folder)) {}
  std::string folder;
};

} // namespace fsr

#endif // FSR_LIB_WORKER_SANITIZER_H
