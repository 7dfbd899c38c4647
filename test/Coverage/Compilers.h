// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// CUDA C++ to PTX by each compiler that is installed: NVRTC as a library, nvcc
// and clang as child processes. What was compiled is kept in a folder, under a
// hash of the source, of the arguments and of the compiler's version.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_COVERAGE_COMPILERS_H
#define FSR_TEST_COVERAGE_COMPILERS_H

#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace fsr::ptx {

class PtxCompiler {
public:
  virtual ~PtxCompiler() = default;

  std::string name, version;
  std::vector<std::string> arguments;
  /// PTX; an empty one where the source is not accepted, with why in `log`.
  llvm::Expected<std::string> compile(const std::string &path,
                                      const std::string &cacheFolder,
                                      std::string &log);

private:
  virtual llvm::Expected<std::string> compileNow(const std::string &path,
                                                 const std::string &source,
                                                 std::string &log) = 0;
};

/// Those that are installed, NVRTC first.
std::vector<std::unique_ptr<PtxCompiler>> findCompilers();

} // namespace fsr::ptx

#endif // FSR_TEST_COVERAGE_COMPILERS_H
