// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What of a compiler's log may be shown, stored and sent to an LLM: no absolute
// path, no time, no endless line, the first errors first.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_LOG_H
#define FSR_LIB_TOOLCHAIN_LOG_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace fsr {

/// `log` without folders of absolute paths, ptxas reports and advice, at most
/// `maxBytes`. Too long a log loses its warnings first, then its end.
std::string scrubLog(llvm::StringRef log, size_t maxBytes = 8192);

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_LOG_H
