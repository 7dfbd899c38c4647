// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A number with its noun, "1 call" or "2 calls", for all that a person reads.
// The plural is the noun with an s.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_COUNTED_H
#define FSR_SUPPORT_COUNTED_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace fsr {

inline std::string counted(uint64_t count, llvm::StringRef noun) {
  return std::to_string(count) + " " + noun.str() + (count == 1 ? "" : "s");
}

} // namespace fsr

#endif // FSR_SUPPORT_COUNTED_H
