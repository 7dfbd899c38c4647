// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The device that is a worker process behind a command.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_DEVICE_WORKERCLIENT_H
#define FSR_LIB_DEVICE_WORKERCLIENT_H

#include "fsr/Device/Device.h"

#include <memory>
#include <string>
#include <vector>

namespace fsr {

/// Starts `command` and waits for its hello.
llvm::Expected<std::unique_ptr<Device>>
openWorkerDevice(std::vector<std::string> command,
                 const DeviceTimeouts &timeouts);

} // namespace fsr

#endif // FSR_LIB_DEVICE_WORKERCLIENT_H
