// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The commands of fsr-tune, and what they share. Each prints its result on
// standard output and returns the exit status, or the error that kept it from
// starting: of kind BadInput where it is about the command line.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TOOLS_FSRTUNE_COMMANDS_H
#define FSR_TOOLS_FSRTUNE_COMMANDS_H

#include "fsr/Search/Search.h"

#include <memory>

namespace fsr {

namespace exits {
constexpr int trouble = 1;
constexpr int usage = 2;
constexpr int noneAccepted = 3;
constexpr int weak = 4;
constexpr int pending = 75; ///< EX_TEMPFAIL: come again.
} // namespace exits

llvm::Expected<KernelTask> readTask(llvm::StringRef path);

/// What the task is, in words.
void describeTask(const KernelTask &task, llvm::raw_ostream &os);

/// Everything beside the LLM and the store that trying a candidate needs.
struct Bench {
  Toolkit toolkit;
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<Device> device;
};

/// Errors: the task has no reference PTX, no toolkit, no device.
llvm::Expected<Bench> openBench(const KernelTask &task, llvm::StringRef device,
                                bool allowUnsandboxed);

struct TuneOptions {
  std::string llm, store, device, report;
  bool allowUnsandboxed = false, quiet = false;
  SearchOptions search;
  ChatOptions chat;
};
llvm::Expected<int> searchTask(const KernelTask &task,
                               const TuneOptions &options);

struct CheckOptions {
  std::string device;
  bool full = true;      ///< The whole ladder; false: the quick rung.
  bool strength = false; ///< The task itself is tested first.
  bool json = false;
  bool allowUnsandboxed = false;
  Parameters fixed; ///< By --set.
  uint64_t seed = 0;
  size_t parameterSets = 256;
  /// False: equality decides alone.
  bool measure = true;
};
/// `candidate` as it was read, or why it cannot be one.
llvm::Expected<int> checkCandidate(const KernelTask &task,
                                   llvm::Expected<Candidate> candidate,
                                   const CheckOptions &options);

} // namespace fsr

#endif // FSR_TOOLS_FSRTUNE_COMMANDS_H
