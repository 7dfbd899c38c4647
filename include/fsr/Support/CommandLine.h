// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Command lines that a user gives in an option, as words for `runProcess`. No
// shell is started and nothing is expanded, so that an option cannot run more
// than it names.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_COMMANDLINE_H
#define FSR_SUPPORT_COMMANDLINE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace fsr {

/// Splits a command line as a shell would: white space, '…', "…" and
/// backslash; nothing is expanded. Errors (BadInput): an open quote, no word.
llvm::Expected<std::vector<std::string>> splitCommandLine(llvm::StringRef text);

} // namespace fsr

#endif // FSR_SUPPORT_COMMANDLINE_H
