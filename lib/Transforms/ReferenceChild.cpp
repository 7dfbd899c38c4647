// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The original's PTX, made in a child: LLVM's NVPTX back end ends the process
// on code that it cannot select, and the user's compile must not end with it.
// Likewise that of its clone in f64, which there need not be.
//
//===----------------------------------------------------------------------===//

#include "Replacer.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Printable.h"
#include "fsr/Support/Programs.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fsr {

/// Behind the first line of what it says may stand a stack dump.
static std::string reasonOf(const ProcessResult &result) {
  llvm::StringRef said = llvm::StringRef(result.err).trim().split('\n').first;
  std::string reason = printable(said.take_front(500));
  return reason.empty() ? "no message" : reason;
}

llvm::Error lowerReferenceInChild(KernelTask &task) {
  llvm::Expected<std::string> program = findProgram("fsr-opt");
  if (!program)
    return program.takeError();
  ProcessLimits limits;
  limits.wall = std::chrono::seconds(120);
  std::vector<std::string> command{*program, "--fsr-lower-reference",
                                   "--target=" + task.target};
  llvm::Expected<ProcessResult> result =
      runProcess(command, task.reference.mlir, limits);
  if (!result)
    return result.takeError();
  if (!result->succeeded())
    return makeError(ErrorKind::Unavailable,
                     "the original could not be lowered to PTX (" +
                         result->describe() + "): " + reasonOf(*result));
  task.reference.ptx = std::move(result->out);
  // A clone is worth something where results are floats that may be rounded.
  std::vector<unsigned> promoted = promotedArguments(task);
  if (promoted.empty() || task.work.movesOnly) {
    task.reference.noTruePtx =
        promoted.empty() ? "no result is a narrow float" : "nothing is rounded";
    return llvm::Error::success();
  }
  command.push_back("--promote=" +
                    llvm::join(llvm::map_range(promoted,
                                               [](unsigned position) {
                                                 return std::to_string(
                                                     position);
                                               }),
                               ","));
  result = runProcess(command, task.reference.mlir, limits);
  if (!result)
    return result.takeError();
  if (result->succeeded())
    task.reference.truePtx = std::move(result->out);
  else
    task.reference.noTruePtx = reasonOf(*result);
  return llvm::Error::success();
}

} // namespace fsr
