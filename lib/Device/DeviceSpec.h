// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The text by which users name devices, taken apart into single ones. A comma
// ends a device; within a command of `exec:` it does so unless it is quoted,
// by the same rules by which the command is split into words.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_DEVICE_DEVICESPEC_H
#define FSR_LIB_DEVICE_DEVICESPEC_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace fsr {

/// Each as it stands alone: "cuda:0+2,exec:ssh gpu7 fsr-worker device" gives
/// "cuda:0", "cuda:2" and "exec:ssh gpu7 fsr-worker device". Errors (BadInput):
/// an unknown kind (lists the known ones), no number, a GPU named twice.
llvm::Expected<std::vector<std::string>> splitDeviceSpec(llvm::StringRef spec);

} // namespace fsr

#endif // FSR_LIB_DEVICE_DEVICESPEC_H
