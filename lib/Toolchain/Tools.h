// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Running a program of the toolkit on files of its own: in a private folder
// that is gone afterwards, held to it by our worker (docs/design/sandbox.md).
// PTX of a task or a store is somebody else's, a cubin is made of an LLM's
// text.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_TOOLS_H
#define FSR_LIB_TOOLCHAIN_TOOLS_H

#include "fsr/Support/Interrupt.h"
#include "fsr/Support/Subprocess.h"
#include "fsr/Toolchain/Toolchain.h"

#include "llvm/ADT/SmallString.h"

namespace fsr {

/// A folder of this process alone; removed with what is in it.
class PrivateFolder {
public:
  static llvm::Expected<PrivateFolder> make();
  PrivateFolder(PrivateFolder &&other);
  ~PrivateFolder();
  std::string name() const { return path.str().str(); }
  std::string file(llvm::StringRef name) const {
    return (path + "/" + name).str();
  }

private:
  PrivateFolder() = default;
  llvm::SmallString<128> path;
  std::unique_ptr<Leftover> leftover;
};

/// Whether a program runs where our worker is not at hand to hold it.
enum class Unheld { Allowed, Refused };

/// Runs a program; a failure shows its scrubbed output.
llvm::Expected<ProcessResult> runTool(const char *name, const Toolkit &toolkit,
                                      const PrivateFolder &folder,
                                      llvm::ArrayRef<std::string> args,
                                      Unheld unheld = Unheld::Allowed,
                                      const ProcessLimits &limits = {});

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_TOOLS_H
