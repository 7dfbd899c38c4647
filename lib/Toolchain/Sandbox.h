// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the process that compiles LLM text gives up, in two steps: what it can
// do without from the start (`dropSurroundings`), and, once the compiler has
// loaded everything it needs, every system call but those for memory and for
// the one open connection (`enterSandbox`). A program of the toolkit, which is
// a process of its own, keeps more (`runTool`). See docs/design/sandbox.md.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_SANDBOX_H
#define FSR_LIB_TOOLCHAIN_SANDBOX_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsr {

struct SandboxLimits {
  uint64_t addressBytes = uint64_t(4) << 30;
  uint64_t cpuSeconds = 60;
};

/// Wipes the environment, closes every descriptor but the first two, leaves the
/// folder, and sets the limits of this process. Dies with its parent.
llvm::Error dropSurroundings(const SandboxLimits &limits);

/// Gives system calls up for good. Returns what holds now: "seccomp",
/// "landlock", both, or nothing where the kernel has neither.
std::vector<std::string> enterSandbox();

/// Becomes `command`, without environment and network, with limits, reading
/// nothing but `root` and the system's libraries, writing nothing outside of
/// `folder`, as far as the kernel has the means. Returns only where that
/// fails.
llvm::Error runTool(llvm::StringRef root, llvm::StringRef folder,
                    llvm::ArrayRef<std::string> command);

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_SANDBOX_H
