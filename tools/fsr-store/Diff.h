// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A unified diff of two texts, line by line. Both come from a store, so their
// size is bounded only by its caps: what is too large for the exact method is
// shown as one replaced block.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TOOLS_FSRSTORE_DIFF_H
#define FSR_TOOLS_FSRSTORE_DIFF_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace fsr {

/// The lines of the diff with three lines of context, headers first; empty
/// where the texts are equal.
std::vector<std::string> unifiedDiff(llvm::StringRef before,
                                     llvm::StringRef after,
                                     llvm::StringRef beforeName,
                                     llvm::StringRef afterName);

} // namespace fsr

#endif // FSR_TOOLS_FSRSTORE_DIFF_H
