// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What compiled code must not do, read from its PTX: state that survives a
// launch, clocks, a device heap, launches from the device, a missing kernel.
// The cubin comes from this very text, and inline assembly stands in it like
// all else, so nothing in the source can hide from it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_CONTRACT_H
#define FSR_LIB_TOOLCHAIN_CONTRACT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace fsr {

/// Why `ptx` is refused, as a sentence for the author of the source; nothing
/// where it may run. `entries` are the kernels that must be there.
std::optional<std::string> checkContract(llvm::StringRef ptx,
                                         llvm::ArrayRef<std::string> entries);

/// The bytes of each parameter of kernel `entry`; nothing where `ptx` has none
/// of the name, or a parameter that is not understood.
std::optional<std::vector<unsigned>> parameterBytes(llvm::StringRef ptx,
                                                    llvm::StringRef entry);

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_CONTRACT_H
