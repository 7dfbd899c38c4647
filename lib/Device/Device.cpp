// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Descriptions of devices, and how those that users name are opened.
//
//===----------------------------------------------------------------------===//

#include "fsr/Device/Device.h"

#include "DevicePool.h"
#include "DeviceSpec.h"
#include "WorkerClient.h"
#include "fsr/Support/CommandLine.h"
#include "fsr/Support/Counted.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Programs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <optional>
#include <thread>

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

/// The worker of one device, as splitDeviceSpec names it.
static llvm::Expected<std::vector<std::string>>
workerOf(llvm::StringRef device) {
  if (device.consume_front("exec:"))
    return splitCommandLine(device);
  llvm::Expected<std::string> worker = findProgram("fsr-worker");
  if (!worker)
    return worker.takeError();
  return std::vector<std::string>{std::move(*worker), "device",
                                  "--device=" + device.str()};
}

static llvm::Expected<std::unique_ptr<Device>>
openOne(llvm::StringRef name, const DeviceTimeouts &timeouts) {
  llvm::Expected<std::vector<std::string>> command = workerOf(name);
  if (!command)
    return command.takeError();
  DeviceTimeouts times = timeouts;
  if (name.starts_with("exec:"))
    times.hello = timeouts.remoteHello;
  return openWorkerDevice(std::move(*command), times);
}

/// Starts them all at once: a worker takes a second, one behind a queue more.
static llvm::Expected<std::unique_ptr<Device>>
openPool(llvm::ArrayRef<std::string> names, const DeviceTimeouts &timeouts) {
  std::vector<std::optional<llvm::Expected<std::unique_ptr<Device>>>> started(
      names.size());
  std::vector<std::thread> threads;
  for (auto [name, place] : llvm::zip(names, started))
    threads.emplace_back([&name = name, &place = place, &timeouts] {
      place.emplace(openOne(name, timeouts));
    });
  for (std::thread &thread : threads)
    thread.join();
  std::vector<DevicePool::Opened> opened;
  std::vector<std::string> failed;
  llvm::Error mistake = llvm::Error::success();
  for (auto [name, device] : llvm::zip(names, started)) {
    if (*device) {
      opened.push_back({name, std::move(**device)});
      continue;
    }
    llvm::Error error =
        addContext(device->takeError(), "device '" + name + "'");
    if (kindOf(error) == ErrorKind::BadInput)
      mistake = llvm::joinErrors(std::move(mistake), std::move(error));
    else
      failed.push_back(llvm::toString(std::move(error)));
  }
  if (mistake)
    return std::move(mistake);
  if (opened.empty())
    return makeError(ErrorKind::Unavailable,
                     "none of " + counted(names.size(), "device") +
                         " could be started: " + llvm::join(failed, "; "));
  for (std::string &remark : failed)
    remark += ": not started, " + counted(opened.size(), "device") + " left";
  return DevicePool::create(std::move(opened), std::move(failed));
}

llvm::Expected<std::unique_ptr<Device>>
fsr::openDevice(llvm::StringRef spec, const DeviceTimeouts &timeouts) {
  llvm::Expected<std::vector<std::string>> names = splitDeviceSpec(spec);
  if (!names)
    return names.takeError();
  if (names->size() > 1)
    return openPool(*names, timeouts);
  llvm::Expected<std::unique_ptr<Device>> device =
      openOne(names->front(), timeouts);
  if (!device)
    return addContext(device.takeError(), "device '" + spec + "'");
  return device;
}
