// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a candidate must not do, found without running it: in its text before it
// is compiled, in its PTX (the cubin comes from this very text, and inline
// assembly stands in it like all else), against the launches of its plan, and
// in the cubin. Each finding is a sentence for the author of the source; no
// finding means that it may run, not that it is right.
// docs/design/contract.md lists what is refused, and what is not, and why.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_CONTRACT_H
#define FSR_LIB_TOOLCHAIN_CONTRACT_H

#include "PtxText.h"

#include "fsr/Toolchain/Toolchain.h"

#include <optional>
#include <string>
#include <vector>

namespace fsr {

/// Why `source` is not even compiled: includes by path, the time of the build.
std::optional<std::string> checkSource(llvm::StringRef source);

/// `source` with a macro for each parameter, and the lines numbered as they
/// are. Each is defined behind the headers that are included before its name
/// is used: names like `T` break them.
std::string withParameters(llvm::StringRef source,
                           const Parameters &parameters);

/// What a text that did not compile seems to have meant, where that is host
/// code: the contract has device code only.
std::optional<std::string> findHostCode(llvm::StringRef source);

/// Module state that survives a launch, clocks, a device heap, launches from
/// the device, a missing kernel. `entries` are the kernels that must be there.
std::optional<std::string> checkContract(llvm::StringRef ptx,
                                         llvm::ArrayRef<std::string> entries);
std::optional<std::string> checkCode(const PtxModule &module,
                                     llvm::ArrayRef<std::string> entries);

/// The addresses of buffers may be used to reach them, and as data for nothing
/// but tests of alignment: they tell a check from a use. Addresses must come
/// from a parameter or a variable.
std::optional<std::string> checkPointers(const PtxModule &module,
                                         llvm::ArrayRef<KernelLaunch> launches);

/// Parameters, block and cluster against what the kernels were compiled for;
/// shared memory, registers and stack against the device.
std::optional<std::string> checkLaunches(const PtxModule &module,
                                         const Build &build,
                                         llvm::ArrayRef<KernelLaunch> launches,
                                         const LaunchLimits &limits);

/// That the cubin is one for the chip of `build`, and holds the kernels and
/// variables of its PTX and no others. What it says of registers and memory
/// goes into `build.resources`, since it is what runs.
std::optional<std::string> checkCubin(const PtxModule &module, Build &build);

/// The bytes of each parameter of kernel `entry`; nothing where `ptx` has none
/// of the name, or a parameter that is not understood.
std::optional<std::vector<unsigned>> parameterBytes(llvm::StringRef ptx,
                                                    llvm::StringRef entry);

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_CONTRACT_H
