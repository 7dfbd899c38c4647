// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Descriptions of devices, and the texts by which users name them.
//
//===----------------------------------------------------------------------===//

#include "fsr/Device/Device.h"

#include "WorkerClient.h"
#include "fsr/Support/CommandLine.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Programs.h"

using namespace fsr;

Device::~Device() = default;

double DeviceDescription::peakBytesPerSecond() const {
  // Two transfers a clock; the bus width is in bits.
  return 2.0 * double(memoryClockKhz) * 1e3 * double(memoryBusBits) / 8;
}

double DeviceDescription::peakFlopsPerSecond() const {
  // A fused multiply-add is two operations.
  return 2.0 * double(clockKhz) * 1e3 * double(multiprocessors) *
         double(coresPerMultiprocessor);
}

llvm::Expected<std::unique_ptr<Device>>
fsr::openDevice(llvm::StringRef spec, const DeviceTimeouts &timeouts) {
  std::vector<std::string> command;
  llvm::StringRef kind = spec, rest;
  if (size_t colon = spec.find(':'); colon != llvm::StringRef::npos) {
    kind = spec.take_front(colon);
    rest = spec.drop_front(colon + 1);
  }
  if (kind == "exec") {
    llvm::Expected<std::vector<std::string>> words = splitCommandLine(rest);
    if (!words)
      return addContext(words.takeError(), "device '" + spec + "'");
    command = std::move(*words);
  } else if (kind == "cuda") {
    unsigned ordinal = 0;
    if (spec.size() != kind.size() && rest.getAsInteger(10, ordinal))
      return makeError(ErrorKind::BadInput,
                       "device '" + spec + "': got '" + rest +
                           "', wanted the number of a GPU");
    llvm::Expected<std::string> worker = findProgram("fsr-worker");
    if (!worker)
      return addContext(worker.takeError(), "device '" + spec + "'");
    command = {std::move(*worker), "device",
               "--device=cuda:" + std::to_string(ordinal)};
  } else if (kind == "virtual" || spec == "auto") {
    llvm::Expected<std::string> worker = findProgram("fsr-worker");
    if (!worker)
      return addContext(worker.takeError(), "device '" + spec + "'");
    command = {std::move(*worker), "device", "--device=" + spec.str()};
  } else {
    return makeError(ErrorKind::BadInput,
                     "unknown device '" + spec +
                         "'; known: cuda, cuda:N, virtual, virtual:CHIP, "
                         "exec:COMMAND");
  }
  llvm::Expected<std::unique_ptr<Device>> device =
      openWorkerDevice(std::move(command), timeouts);
  if (!device)
    return addContext(device.takeError(), "device '" + spec + "'");
  return device;
}
