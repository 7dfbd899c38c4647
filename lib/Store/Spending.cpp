// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whether what was spent can be told. The store itself never needs it; a search
// that has to keep a cap asks nothing where it cannot be. Folders and files are
// opened as the ledger opens them, and nothing is locked or written: a line
// that is being written has no end yet, and is passed over.
//
//===----------------------------------------------------------------------===//

#include "Layout.h"
#include "fsr/Core/SpendingFile.h"
#include "fsr/Store/Inventory.h"

#include "llvm/ADT/Twine.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

using namespace fsr;
using namespace fsr::store;

static std::string whyNoFolder(int error) {
  return error == ENOTDIR || error == ELOOP
             ? std::string("not a folder; a link is not followed")
             : std::string("cannot be opened: ") + std::strerror(error);
}

llvm::Error fsr::forEachSpendingFault(
    llvm::StringRef folder,
    llvm::function_ref<void(const std::string &path, const std::string &why)>
        visit) {
  const std::string part = "spending", root = (folder + "/" + part).str();
  OwnedFd top = openFolderAt(AT_FDCWD, root);
  if (!top) {
    if (errno != ENOENT)
      visit(part, whyNoFolder(errno));
    return llvm::Error::success();
  }
  struct stat info;
  if (::fstatat(*top, ".lock", &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISREG(info.st_mode))
    visit(part + "/.lock", "not a regular file");
  llvm::Expected<std::vector<std::string>> keys = sortedNames(root);
  if (!keys)
    return keys.takeError();
  for (const std::string &key : *keys) {
    if (!isDigest(key))
      continue;
    OwnedFd task = openFolderAt(*top, key);
    if (!task) {
      visit(part + "/" + key, whyNoFolder(errno));
      continue;
    }
    llvm::Expected<std::vector<std::string>> names =
        sortedNames(root + "/" + key);
    if (!names)
      return names.takeError();
    for (const std::string &name : *names) {
      if (!isSpendingName(name))
        continue;
      SpendingFile file;
      if (auto fault = readSpending(*task, name, file))
        visit(part + "/" + key + "/" + name,
              (fault->line ? "line " + std::to_string(fault->line) + ": "
                           : std::string()) +
                  fault->why);
    }
  }
  return llvm::Error::success();
}
