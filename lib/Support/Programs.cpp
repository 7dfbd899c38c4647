// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Looks beside the running code first, so that a build tree and an installed
// tree both work with nothing set.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Programs.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <vector>

namespace fsr {

llvm::Expected<std::string> findProgram(llvm::StringRef name) {
  std::vector<std::string> folders;
  if (std::optional<std::string> set = llvm::sys::Process::GetEnv("FSR_BIN");
      set && !set->empty()) {
    folders.push_back(*set);
  } else if (std::string here = folderOfThisCode(); !here.empty()) {
    for (llvm::StringRef below : {"", "../bin", "../../bin"}) {
      llvm::SmallString<256> folder(here);
      llvm::sys::path::append(folder, below);
      llvm::sys::path::remove_dots(folder, /*remove_dot_dot=*/true);
      folders.push_back(folder.str().str());
    }
  }
  for (const std::string &folder : folders) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, name);
    if (llvm::sys::fs::can_execute(path))
      return path.str().str();
  }
  return makeError(ErrorKind::Unavailable,
                   "program '" + name + "' not found; looked in " +
                       llvm::join(folders, ", ") +
                       "; FSR_BIN names the folder it is in");
}

} // namespace fsr
