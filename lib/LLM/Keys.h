// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Keys come from the environment and must not leave it but in a request's
// header. Servers and commands do repeat them, in messages and in answers, so
// whatever they say passes through here before anybody sees it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_LLM_KEYS_H
#define FSR_LIB_LLM_KEYS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace fsr {

/// The key in the environment variable `name`; empty where it is not set. Error
/// (BadInput): it cannot stand in a header.
llvm::Expected<std::string> keyFromEnvironment(const char *name);

/// `text` with each known key replaced by "***".
std::string withoutKeys(std::string text);

/// Words of somebody else for an error message: the first or the last `limit`
/// bytes, on one line, printable, without keys.
std::string quotedStart(llvm::StringRef text, size_t limit = 300);
std::string quotedEnd(llvm::StringRef text, size_t limit = 300);

} // namespace fsr

#endif // FSR_LIB_LLM_KEYS_H
