// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// printf of kernels: the format as CUDA documents it, the values from the
// buffer that a call of vprintf gives.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_PRINTF_H
#define FSR_LIB_PTX_PRINTF_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace fsr::ptx {

/// `read` copies bytes of the buffer, false where there are none; `readText`
/// gives the string at an address. What is no conversion is printed as it is.
std::string
formatPrintf(llvm::StringRef format,
             llvm::function_ref<bool(uint64_t, void *, size_t)> read,
             llvm::function_ref<std::string(uint64_t)> readText);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_PRINTF_H
