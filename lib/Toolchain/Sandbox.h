// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the process that compiles LLM text gives up, in two steps: what it can
// do without from the start (`dropSurroundings`), and, once the compiler has
// loaded everything it needs, every system call but those for memory and for
// the one open connection (`enterSandbox`). See docs/design/sandbox.md.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_SANDBOX_H
#define FSR_LIB_TOOLCHAIN_SANDBOX_H

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

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_SANDBOX_H
