// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The helper kernels on the host, for a virtual device: the text of
// helpers.inl, compiled, in the device's memory where it stands. Interpreted
// they would take most of the time of a validation. Every place that one
// touches is looked up first, so what leaves its allocation is an error, as it
// is for a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_HOSTHELPERS_H
#define FSR_LIB_WORKER_HOSTHELPERS_H

#include "fsr/Backend/VirtualBackend.h"

namespace fsr {

/// Runs the helper kernel `name` with the parameters of a launch, on as many
/// threads as it is worth. Nothing: not one that the host does.
std::optional<llvm::Error> runHelperOnHost(VirtualDevice &device,
                                           llvm::StringRef name,
                                           llvm::ArrayRef<void *> params);

} // namespace fsr

#endif // FSR_LIB_WORKER_HOSTHELPERS_H
