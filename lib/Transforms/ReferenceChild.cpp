// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The original's PTX, made in a child: LLVM's NVPTX back end ends the process
// on code that it cannot select, and the user's compile must not end with it.
//
//===----------------------------------------------------------------------===//

#include "Replacer.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Printable.h"
#include "fsr/Support/Programs.h"
#include "fsr/Support/Subprocess.h"

namespace fsr {

llvm::Error lowerReferenceInChild(KernelTask &task) {
  llvm::Expected<std::string> program = findProgram("fsr-opt");
  if (!program)
    return program.takeError();
  ProcessLimits limits;
  limits.wall = std::chrono::seconds(120);
  llvm::Expected<ProcessResult> result =
      runProcess({*program, "--fsr-lower-reference", "--target=" + task.target},
                 task.reference.mlir, limits);
  if (!result)
    return result.takeError();
  if (!result->succeeded()) {
    // Behind the first line may stand a stack dump.
    llvm::StringRef said =
        llvm::StringRef(result->err).trim().split('\n').first;
    std::string reason = printable(said.take_front(500));
    return makeError(ErrorKind::Unavailable,
                     "the original could not be lowered to PTX (" +
                         result->describe() +
                         "): " + (reason.empty() ? "no message" : reason));
  }
  task.reference.ptx = std::move(result->out);
  return llvm::Error::success();
}

} // namespace fsr
