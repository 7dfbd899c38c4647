// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A folder of a test's own, gone with all its contents when the test ends.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_LLM_TEMPFOLDER_H
#define FSR_TEST_UNIT_LLM_TEMPFOLDER_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <string>

namespace fsr {

class TempFolder {
public:
  TempFolder() {
    std::error_code error =
        llvm::sys::fs::createUniqueDirectory("fsr-llm-test", root);
    // Without a folder every path would be one of the working folder's.
    if (error)
      abort();
  }
  TempFolder(const TempFolder &) = delete;
  TempFolder &operator=(const TempFolder &) = delete;
  ~TempFolder() { (void)llvm::sys::fs::remove_directories(root); }

  std::string path(llvm::StringRef name = "") const {
    llvm::SmallString<128> result(root);
    if (!name.empty())
      llvm::sys::path::append(result, name);
    return std::string(result);
  }

private:
  llvm::SmallString<128> root;
};

} // namespace fsr

#endif // FSR_TEST_UNIT_LLM_TEMPFOLDER_H
