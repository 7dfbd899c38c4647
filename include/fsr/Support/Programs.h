// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where FSR's own programs are, seen from a library or plugin of it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_PROGRAMS_H
#define FSR_SUPPORT_PROGRAMS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace fsr {

/// The path of a program of ours (`fsr-worker`, `fsr-opt`). $FSR_BIN, a folder,
/// is final where it is set; else the folder of this code, then ../bin and
/// ../../bin of it. An error (Unavailable) lists where it looked.
llvm::Expected<std::string> findProgram(llvm::StringRef name);

} // namespace fsr

#endif // FSR_SUPPORT_PROGRAMS_H
