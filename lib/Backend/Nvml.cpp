// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The few functions of NVML that are called, declared here so that no toolkit
// is needed. Only two must be there; each of the others may be missing, or not
// allowed, and then what it tells is not known.
//
//===----------------------------------------------------------------------===//

#include "Nvml.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <dlfcn.h>
#include <unistd.h>

using namespace fsr;

namespace {

using Status = int; // nvmlReturn_t
using Device = void *;

enum : Status { success = 0, errorInsufficientSize = 7 };
enum : int { clockSm = 1, clockMemory = 2 };
enum : int { sensorGpu = 0 };

/// nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3.
struct ProcessInfo {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
static_assert(sizeof(ProcessInfo) == 24);

} // namespace

struct Nvml::Functions {
  Status (*init)() = nullptr;
  Status (*shutdown)() = nullptr;
  Status (*handleByBusId)(const char *, Device *) = nullptr;
  const char *(*errorString)(Status) = nullptr;
  Status (*driverVersion)(char *, unsigned) = nullptr;
  Status (*clockInfo)(Device, int, unsigned *) = nullptr;
  Status (*temperature)(Device, int, unsigned *) = nullptr;
  Status (*powerUsage)(Device, unsigned *) = nullptr;
  Status (*powerLimit)(Device, unsigned *) = nullptr;
  Status (*clockReasons)(Device, unsigned long long *) = nullptr;
  Status (*processes)(Device, unsigned *, ProcessInfo *) = nullptr;
  bool isInitialised = false;
};

Nvml::Nvml() : functions(std::make_unique<Functions>()) {}

Nvml::~Nvml() {
  if (functions->isInitialised && functions->shutdown)
    functions->shutdown();
}

llvm::Expected<std::unique_ptr<Nvml>> Nvml::open(const std::string &pciBusId) {
  // Never closed, as the driver's own library.
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeError(ErrorKind::Unavailable,
                     "no NVML: libnvidia-ml.so.1 does not load");
  std::unique_ptr<Nvml> nvml(new Nvml);
  Functions &f = *nvml->functions;
  auto load = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        dlsym(library, symbol));
  };
  load(f.init, "nvmlInit_v2");
  load(f.shutdown, "nvmlShutdown");
  load(f.handleByBusId, "nvmlDeviceGetHandleByPciBusId_v2");
  load(f.errorString, "nvmlErrorString");
  load(f.driverVersion, "nvmlSystemGetDriverVersion");
  load(f.clockInfo, "nvmlDeviceGetClockInfo");
  load(f.temperature, "nvmlDeviceGetTemperature");
  load(f.powerUsage, "nvmlDeviceGetPowerUsage");
  load(f.powerLimit, "nvmlDeviceGetEnforcedPowerLimit");
  load(f.clockReasons, "nvmlDeviceGetCurrentClocksEventReasons");
  if (!f.clockReasons) // Its name before driver 535.
    load(f.clockReasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  load(f.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (!f.init || !f.handleByBusId)
    return makeError(ErrorKind::Unavailable,
                     "no NVML: libnvidia-ml.so.1 is too old");
  auto failed = [&](Status status, const char *call) {
    const char *why = f.errorString ? f.errorString(status) : nullptr;
    return makeError(ErrorKind::Unavailable, llvm::Twine("no NVML: ") + call +
                                                 ": " +
                                                 (why ? why : "unknown error"));
  };
  if (Status status = f.init())
    return failed(status, "nvmlInit");
  f.isInitialised = true;
  if (Status status = f.handleByBusId(pciBusId.c_str(), &nvml->device))
    return failed(status, "nvmlDeviceGetHandleByPciBusId");
  return std::move(nvml);
}

GpuState Nvml::state() const {
  const Functions &f = *functions;
  GpuState state;
  char version[128] = {};
  if (f.driverVersion && !f.driverVersion(version, sizeof(version) - 1))
    state.driver = version;
  unsigned value = 0;
  if (f.clockInfo && !f.clockInfo(device, clockSm, &value))
    state.clockMhz = value;
  if (f.clockInfo && !f.clockInfo(device, clockMemory, &value))
    state.memoryClockMhz = value;
  if (f.temperature && !f.temperature(device, sensorGpu, &value))
    state.temperatureC = value;
  if (f.powerUsage && !f.powerUsage(device, &value)) // Milliwatts.
    state.powerWatts = value / 1000.0;
  if (f.powerLimit && !f.powerLimit(device, &value))
    state.powerLimitWatts = value / 1000.0;
  unsigned long long reasons = 0;
  if (f.clockReasons && !f.clockReasons(device, &reasons))
    state.clockLimits = describeClockLimits(reasons);
  if (f.processes) {
    std::vector<ProcessInfo> infos(64);
    unsigned count = unsigned(infos.size());
    Status status = f.processes(device, &count, infos.data());
    if (status == success) {
      infos.resize(std::min<size_t>(count, infos.size()));
      std::vector<unsigned> numbers;
      for (const ProcessInfo &info : infos)
        numbers.push_back(info.pid);
      state.otherProcesses = countOthers(numbers, unsigned(getpid()));
    } else if (status == errorInsufficientSize) {
      state.otherProcesses = int64_t(count) - 1;
    }
  }
  return state;
}

std::vector<std::string> fsr::describeClockLimits(uint64_t reasons) {
  // Idleness and set application clocks hold nothing down that was asked for.
  constexpr std::pair<uint64_t, const char *> names[] = {
      {0x04, "power cap"},
      {0x08, "hardware slowdown"},
      {0x10, "sync boost"},
      {0x20, "thermal slowdown"},
      {0x40, "hardware thermal slowdown"},
      {0x80, "power brake"},
  };
  std::vector<std::string> found;
  for (auto [bit, name] : names)
    if (reasons & bit)
      found.push_back(name);
  return found;
}

int64_t fsr::countOthers(llvm::ArrayRef<unsigned> processes, unsigned self) {
  int64_t all = int64_t(processes.size());
  if (llvm::is_contained(processes, self))
    return all - llvm::count(processes, self);
  return std::max<int64_t>(all - 1, 0);
}
