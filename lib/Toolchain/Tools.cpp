// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Private folders, and programs of the toolkit in them.
//
//===----------------------------------------------------------------------===//

#include "Tools.h"

#include "Log.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Programs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

namespace sys = llvm::sys;

namespace fsr {

llvm::Expected<PrivateFolder> PrivateFolder::make() {
  PrivateFolder folder;
  WholeStep step;
  // mkdtemp underneath: mode 0700, a fresh name.
  if (std::error_code error =
          sys::fs::createUniqueDirectory("fsr-toolchain", folder.path))
    return makeError(ErrorKind::Unavailable,
                     "cannot make a temporary folder: " + error.message());
  folder.leftover = std::make_unique<Leftover>(folder.path.str().str());
  return std::move(folder);
}

PrivateFolder::PrivateFolder(PrivateFolder &&other)
    : path(std::move(other.path)), leftover(std::move(other.leftover)) {
  other.path.clear();
}

PrivateFolder::~PrivateFolder() {
  if (!path.empty())
    sys::fs::remove_directories(path, /*IgnoreErrors=*/true);
}

llvm::Expected<ProcessResult> runTool(const char *name, const Toolkit &toolkit,
                                      const PrivateFolder &folder,
                                      llvm::ArrayRef<std::string> args,
                                      Unheld unheld,
                                      const ProcessLimits &limits) {
  std::vector<std::string> command;
  llvm::Expected<std::string> worker = findProgram("fsr-worker");
  if (worker)
    command = {*worker, "tool", toolkit.root, folder.name()};
  else if (unheld == Unheld::Refused)
    return worker.takeError();
  else
    llvm::consumeError(worker.takeError());
  llvm::append_range(command, args);
  llvm::Expected<ProcessResult> result = runProcess(command, "", limits);
  if (!result)
    return result.takeError();
  if (!result->succeeded())
    return makeError(
        ErrorKind::BadInput,
        llvm::Twine(name) + ": " + result->describe() + ": " +
            llvm::StringRef(scrubLog(result->err + result->out)).rtrim());
  return result;
}

} // namespace fsr
