// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A folder of one test, removed with what is in it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_SUPPORT_TEMPORARYFOLDER_H
#define FSR_TEST_UNIT_SUPPORT_TEMPORARYFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"

#include <cstdlib>
#include <string>
#include <vector>

namespace fsr {

struct TemporaryFolder {
  TemporaryFolder() {
    llvm::SmallString<128> made;
    if (llvm::sys::fs::createUniqueDirectory("fsr-test", made))
      std::abort();
    path = made.str().str();
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(path); }

  std::string operator/(const llvm::Twine &name) const {
    return (path + "/" + name).str();
  }

  std::string path;
};

/// The names in a folder, those of staging included.
inline std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error))
    names.push_back(entry->path().substr(entry->path().find_last_of('/') + 1));
  return names;
}

} // namespace fsr

#endif // FSR_TEST_UNIT_SUPPORT_TEMPORARYFOLDER_H
