// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NVRTC, loaded at run time: FSR builds and runs where no toolkit is.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_NVRTC_H
#define FSR_LIB_TOOLCHAIN_NVRTC_H

#include "Headers.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace fsr {

class Nvrtc {
public:
  /// Loads the library; it stays loaded.
  static llvm::Expected<Nvrtc> load(const std::string &path);

  struct Result {
    bool compiled = false;
    std::string log, ptx, cubin;
  };
  /// Compiles; a source that does not compile is a result. `options` are
  /// passed on as they are.
  llvm::Expected<Result> compile(const std::string &source,
                                 llvm::ArrayRef<MemoryHeader> headers,
                                 llvm::ArrayRef<std::string> options) const;

  /// True where the library makes code for compute capability `capability`.
  bool supports(unsigned capability) const;
  int majorVersion() const { return major; }
  int minorVersion() const { return minor; }

private:
  Nvrtc() = default;
  // The C interface of nvrtc.h, in which a program is a pointer.
  int (*getVersion)(int *, int *) = nullptr;
  int (*getNumSupportedArchs)(int *) = nullptr;
  int (*getSupportedArchs)(int *) = nullptr;
  const char *(*getErrorString)(int) = nullptr;
  int (*createProgram)(void **, const char *, const char *, int,
                       const char *const *, const char *const *) = nullptr;
  int (*destroyProgram)(void **) = nullptr;
  int (*compileProgram)(void *, int, const char *const *) = nullptr;
  using GetSize = int (*)(void *, size_t *);
  using GetText = int (*)(void *, char *);
  GetSize getLogSize = nullptr, getPtxSize = nullptr, getCubinSize = nullptr;
  GetText getLog = nullptr, getPtx = nullptr, getCubin = nullptr;
  int major = 0, minor = 0;
};

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_NVRTC_H
