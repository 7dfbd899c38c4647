// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The back end over the CUDA driver API: one GPU, its primary context.
//
// A driver call also reports faults of kernels launched before it, so the call
// that an error names is where it was seen, not always where it was caused.
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"
#include "Nvml.h"

#include "fsr/Backend/Backend.h"
#include "fsr/Support/Counted.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <mutex>

using namespace fsr;
using namespace fsr::cuda;

namespace {

/// What a block gets without asking: dynamic and static together.
constexpr unsigned sharedBytesWithoutOptIn = 48 * 1024;
/// Larger clusters are not portable between devices, and asked for.
constexpr unsigned portableClusterBlocks = 8;
constexpr size_t jitLogBytes = 8192;

bool isBinaryImage(llvm::StringRef image) {
  return image.starts_with("\x7f"
                           "ELF") ||
         image.starts_with("\x50\xed\x55\xba"); // Fat binary.
}

class CudaBackend final : public Backend {
public:
  CudaBackend(const Driver &driver, cuda::Device device, Handle context)
      : driver(driver), device(device), context(context) {
    int supported = 0;
    Handle pool = nullptr;
    uint64_t keepAll = ~uint64_t(0);
    hasPools =
        !driver.deviceGetAttribute(&supported, attributeMemoryPoolsSupported,
                                   device) &&
        supported && !driver.deviceGetDefaultMemPool(&pool, device) &&
        !driver.memPoolSetAttribute(pool, poolReleaseThreshold, &keepAll);
  }
  CudaBackend(const CudaBackend &) = delete;
  CudaBackend &operator=(const CudaBackend &) = delete;
  ~CudaBackend() override { driver.primaryCtxRelease(device); }

  llvm::Expected<BackendProperties> properties() override;
  llvm::Expected<GpuState> gpuState() override;

  llvm::Expected<DevicePointer> allocate(size_t bytes) override {
    Pointer pointer = 0;
    if (auto error =
            check(driver.memAlloc(&pointer, std::max<size_t>(bytes, 1)),
                  "cuMemAlloc of " + llvm::Twine(bytes) + " bytes"))
      return std::move(error);
    return pointer;
  }
  llvm::Error release(DevicePointer pointer) override {
    return check(driver.memFree(pointer), "cuMemFree");
  }
  llvm::Expected<DevicePointer> allocateOrdered(size_t bytes,
                                                StreamHandle stream) override {
    if (!hasPools)
      return allocate(bytes);
    Pointer pointer = 0;
    if (auto error = check(
            driver.memAllocAsync(&pointer, std::max<size_t>(bytes, 1), stream),
            "cuMemAllocAsync of " + llvm::Twine(bytes) + " bytes"))
      return std::move(error);
    return pointer;
  }
  llvm::Error releaseOrdered(DevicePointer pointer,
                             StreamHandle stream) override {
    if (!hasPools)
      return release(pointer);
    return check(driver.memFreeAsync(pointer, stream), "cuMemFreeAsync");
  }
  llvm::Error copyToDevice(DevicePointer to, const void *from, size_t bytes,
                           StreamHandle stream) override {
    if (!bytes)
      return llvm::Error::success();
    if (!stream)
      return check(driver.memcpyHtoD(to, from, bytes), "cuMemcpyHtoD");
    return check(driver.memcpyHtoDAsync(to, from, bytes, stream),
                 "cuMemcpyHtoDAsync");
  }
  llvm::Error copyToHost(void *to, DevicePointer from, size_t bytes,
                         StreamHandle stream) override {
    if (!bytes)
      return llvm::Error::success();
    if (!stream)
      return check(driver.memcpyDtoH(to, from, bytes), "cuMemcpyDtoH");
    return check(driver.memcpyDtoHAsync(to, from, bytes, stream),
                 "cuMemcpyDtoHAsync");
  }
  llvm::Error copyAny(void *to, const void *from, size_t bytes,
                      StreamHandle stream) override {
    if (!bytes)
      return llvm::Error::success();
    return check(driver.memcpyAsync(reinterpret_cast<Pointer>(to),
                                    reinterpret_cast<Pointer>(from), bytes,
                                    stream),
                 "cuMemcpyAsync");
  }
  llvm::Error fill32(DevicePointer to, uint32_t value, size_t count,
                     StreamHandle stream) override {
    if (!count)
      return llvm::Error::success();
    return check(driver.memsetD32Async(to, value, count, stream),
                 "cuMemsetD32Async");
  }
  llvm::Error fill16(DevicePointer to, uint16_t value, size_t count,
                     StreamHandle stream) override {
    if (!count)
      return llvm::Error::success();
    return check(driver.memsetD16Async(to, value, count, stream),
                 "cuMemsetD16Async");
  }
  llvm::Error fill8(DevicePointer to, uint8_t value, size_t count,
                    StreamHandle stream) override {
    if (!count)
      return llvm::Error::success();
    return check(driver.memsetD8Async(to, value, count, stream),
                 "cuMemsetD8Async");
  }
  llvm::Expected<uint64_t> freeMemory() override {
    size_t free = 0, total = 0;
    if (auto error = check(driver.memGetInfo(&free, &total), "cuMemGetInfo"))
      return std::move(error);
    return free;
  }
  llvm::Error registerHost(void *pointer, size_t bytes) override {
    return check(
        driver.memHostRegister(pointer, bytes,
                               hostRegisterPortable | hostRegisterDeviceMap),
        "cuMemHostRegister of " + llvm::Twine(bytes) + " bytes");
  }
  llvm::Error unregisterHost(void *pointer) override {
    return check(driver.memHostUnregister(pointer), "cuMemHostUnregister");
  }
  llvm::Expected<void *> allocateManaged(size_t bytes) override {
    Pointer pointer = 0;
    if (auto error =
            check(driver.memAllocManaged(&pointer, std::max<size_t>(bytes, 1),
                                         memAttachGlobal),
                  "cuMemAllocManaged of " + llvm::Twine(bytes) + " bytes"))
      return std::move(error);
    return reinterpret_cast<void *>(pointer);
  }

  llvm::Expected<ModuleHandle> loadModule(llvm::StringRef image,
                                          unsigned optLevel) override;
  llvm::Error unloadModule(ModuleHandle module) override {
    {
      // A later module may get the same addresses for its functions.
      std::lock_guard<std::mutex> lock(mutex);
      optedIn.clear();
    }
    return check(driver.moduleUnload(module), "cuModuleUnload");
  }
  llvm::Expected<std::pair<DevicePointer, uint64_t>>
  variable(ModuleHandle module, llvm::StringRef name) override {
    Pointer pointer = 0;
    size_t bytes = 0;
    if (auto error = check(driver.moduleGetGlobal(&pointer, &bytes, module,
                                                  name.str().c_str()),
                           "cuModuleGetGlobal '" + name + "'"))
      return std::move(error);
    return std::make_pair(DevicePointer(pointer), uint64_t(bytes));
  }
  llvm::Expected<FunctionHandle> function(ModuleHandle module,
                                          llvm::StringRef name) override {
    Handle function = nullptr;
    if (auto error = check(
            driver.moduleGetFunction(&function, module, name.str().c_str()),
            "cuModuleGetFunction '" + name + "'"))
      return std::move(error);
    return function;
  }
  llvm::Error launch(const BackendLaunch &launch) override;

  llvm::Expected<StreamHandle> createStream() override {
    Handle stream = nullptr;
    if (auto error = check(driver.streamCreate(&stream, streamNonBlocking),
                           "cuStreamCreate"))
      return std::move(error);
    return stream;
  }
  llvm::Error destroyStream(StreamHandle stream) override {
    return check(driver.streamDestroy(stream), "cuStreamDestroy");
  }
  llvm::Error synchronize(StreamHandle stream) override {
    return check(driver.streamSynchronize(stream), "cuStreamSynchronize");
  }
  llvm::Expected<EventHandle> createEvent(bool timing) override {
    Handle event = nullptr;
    if (auto error =
            check(driver.eventCreate(&event, timing ? eventDefault
                                                    : eventDisableTiming),
                  "cuEventCreate"))
      return std::move(error);
    return event;
  }
  llvm::Error destroyEvent(EventHandle event) override {
    return check(driver.eventDestroy(event), "cuEventDestroy");
  }
  llvm::Error record(EventHandle event, StreamHandle stream) override {
    return check(driver.eventRecord(event, stream), "cuEventRecord");
  }
  llvm::Error synchronizeEvent(EventHandle event) override {
    return check(driver.eventSynchronize(event), "cuEventSynchronize");
  }
  llvm::Error wait(StreamHandle stream, EventHandle event) override {
    return check(driver.streamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
  }
  llvm::Expected<double> elapsedMs(EventHandle start,
                                   EventHandle stop) override {
    float ms = 0;
    if (auto error = check(driver.eventElapsedTime(&ms, start, stop),
                           "cuEventElapsedTime"))
      return std::move(error);
    return ms;
  }
  llvm::Error synchronizeAll() override {
    return check(driver.ctxSynchronize(), "cuCtxSynchronize");
  }
  llvm::Error makeCurrent() override {
    return check(driver.ctxSetCurrent(context), "cuCtxSetCurrent");
  }

private:
  llvm::Error check(Result result, const llvm::Twine &call,
                    llvm::StringRef detail = {}) const {
    if (result == success)
      return llvm::Error::success();
    const char *name = nullptr;
    driver.getErrorName(result, &name);
    return llvm::make_error<BackendError>(
        result, name ? name : "CUDA error " + std::to_string(result),
        call.str(), detail.str());
  }
  /// Lets `launch` use the shared memory and the cluster that it asks for.
  llvm::Error optIn(const BackendLaunch &launch, unsigned clusterBlocks);

  const Driver driver;
  const cuda::Device device;
  const Handle context;  ///< The primary one, retained by this object.
  bool hasPools = false; ///< Stream-ordered allocation.
  /// Opened when it is first asked for; null, and why, where it cannot be.
  std::unique_ptr<Nvml> nvml;
  std::string noNvml;
  std::mutex mutex;
  /// Dynamic shared bytes that a function was last allowed.
  llvm::DenseMap<Handle, unsigned> optedIn;
};

} // namespace

llvm::Expected<BackendProperties> CudaBackend::properties() {
  BackendProperties result;
  llvm::Error failure = llvm::Error::success();
  auto attribute = [&](int number) -> int64_t {
    int value = 0;
    if (!failure)
      failure = check(driver.deviceGetAttribute(&value, number, device),
                      "cuDeviceGetAttribute " + llvm::Twine(number));
    return value;
  };

  char name[256] = {};
  if (auto error = check(driver.deviceGetName(name, sizeof(name) - 1, device),
                         "cuDeviceGetName")) {
    llvm::consumeError(std::move(failure));
    return std::move(error);
  }
  int version = 0;
  size_t bytes = 0;
  result.name = name;
  unsigned char uuid[16] = {};
  if (driver.deviceGetUuid && driver.deviceGetUuid(uuid, device) == success)
    result.uuid = llvm::toHex(llvm::ArrayRef(uuid), /*LowerCase=*/true);
  result.multiprocessors = attribute(attributeMultiprocessorCount);
  result.clockKhz = attribute(attributeClockRate);
  result.memoryClockKhz = attribute(attributeMemoryClockRate);
  result.memoryBusBits = attribute(attributeMemoryBusWidth);
  result.l2Bytes = attribute(attributeL2CacheSize);
  result.warpSize = attribute(attributeWarpSize);
  result.sharedBytesPerBlock = attribute(attributeMaxSharedPerBlockOptin);
  result.sharedBytesPerMultiprocessor =
      attribute(attributeMaxSharedPerMultiprocessor);
  result.registersPerBlock = attribute(attributeMaxRegistersPerBlock);
  result.registersPerMultiprocessor =
      attribute(attributeMaxRegistersPerMultiprocessor);
  result.threadsPerBlock = attribute(attributeMaxThreadsPerBlock);
  result.threadsPerMultiprocessor =
      attribute(attributeMaxThreadsPerMultiprocessor);
  for (int i = 0; i < 3; ++i) {
    result.maxBlock[i] = attribute(attributeMaxBlockX + i);
    result.maxGrid[i] = attribute(attributeMaxGridX + i);
  }
  int64_t major = attribute(attributeComputeCapabilityMajor);
  int64_t minor = attribute(attributeComputeCapabilityMinor);
  if (failure)
    return std::move(failure);
  if (auto error =
          check(driver.driverGetVersion(&version), "cuDriverGetVersion"))
    return std::move(error);
  if (auto error =
          check(driver.deviceTotalMem(&bytes, device), "cuDeviceTotalMem"))
    return std::move(error);

  result.memoryBytes = bytes;
  // 13000 is 13.0, 12080 is 12.8.
  result.driver = std::to_string(version / 1000) + "." +
                  std::to_string(version % 1000 / 10);
  result.chip = "sm_" + std::to_string(major * 10 + minor);
  return result;
}

llvm::Expected<GpuState> CudaBackend::gpuState() {
  if (!nvml && noNvml.empty()) {
    char bus[64] = {};
    if (!driver.deviceGetPciBusId ||
        driver.deviceGetPciBusId(bus, sizeof(bus) - 1, device)) {
      noNvml = "no NVML: the CUDA driver does not tell where its GPU is";
    } else if (auto opened = Nvml::open(bus)) {
      nvml = std::move(*opened);
    } else {
      noNvml = llvm::toString(opened.takeError());
    }
  }
  if (!nvml)
    return makeError(ErrorKind::Unavailable, noNvml);
  return nvml->state();
}

llvm::Expected<ModuleHandle> CudaBackend::loadModule(llvm::StringRef image,
                                                     unsigned optLevel) {
  // A copy ends PTX with NUL, and gives a binary the alignment it may expect.
  std::string copy = image.str();
  char log[jitLogBytes] = {};
  int options[] = {jitOptimizationLevel, jitErrorLogBuffer,
                   jitErrorLogBufferBytes};
  void *values[] = {reinterpret_cast<void *>(uintptr_t(std::min(optLevel, 4u))),
                    log, reinterpret_cast<void *>(uintptr_t(sizeof(log) - 1))};
  Handle module = nullptr;
  Result result =
      driver.moduleLoadDataEx(&module, copy.c_str(), 3, options, values);
  if (auto error = check(result,
                         isBinaryImage(image) ? "cuModuleLoadDataEx of a binary"
                                              : "cuModuleLoadDataEx of PTX",
                         llvm::StringRef(log).trim()))
    return std::move(error);
  return module;
}

llvm::Error CudaBackend::optIn(const BackendLaunch &launch,
                               unsigned clusterBlocks) {
  Handle function = launch.function;
  if (clusterBlocks > portableClusterBlocks)
    if (auto error =
            check(driver.funcSetAttribute(
                      function, functionNonPortableClusterSizeAllowed, 1),
                  "cuFuncSetAttribute '" + launch.name + "' cluster of " +
                      llvm::Twine(clusterBlocks)))
      return error;

  if (!launch.sharedBytes)
    return llvm::Error::success();
  std::lock_guard<std::mutex> lock(mutex);
  auto [known, isNew] = optedIn.try_emplace(function, 0);
  if (!isNew && launch.sharedBytes <= known->second)
    return llvm::Error::success();
  int fixed = 0;
  if (auto error =
          check(driver.funcGetAttribute(&fixed, functionSharedBytes, function),
                "cuFuncGetAttribute '" + launch.name + "'")) {
    optedIn.erase(function);
    return error;
  }
  if (uint64_t(launch.sharedBytes) + unsigned(fixed) > sharedBytesWithoutOptIn)
    if (auto error = check(
            driver.funcSetAttribute(function, functionMaxDynamicSharedBytes,
                                    int(launch.sharedBytes)),
            "cuFuncSetAttribute '" + launch.name + "' shared memory of " +
                llvm::Twine(launch.sharedBytes) + " bytes")) {
      optedIn.erase(function);
      return error;
    }
  known->second = launch.sharedBytes;
  return llvm::Error::success();
}

llvm::Error CudaBackend::launch(const BackendLaunch &launch) {
  const auto &[gx, gy, gz] = launch.grid;
  const auto &[bx, by, bz] = launch.block;
  const auto &[cx, cy, cz] = launch.cluster;
  uint64_t clusterBlocks = uint64_t(cx) * cy * cz;
  bool clustered = cx != 1 || cy != 1 || cz != 1;
  if (launch.sharedBytes || clustered)
    if (auto error = optIn(
            launch, unsigned(std::min<uint64_t>(clusterBlocks, UINT32_MAX))))
      return error;

  // The driver takes an array of non-const pointers, and only reads it.
  void **params = const_cast<void **>(launch.params.data());
  if (!clustered)
    return check(driver.launchKernel(launch.function, gx, gy, gz, bx, by, bz,
                                     launch.sharedBytes, launch.stream, params,
                                     nullptr),
                 "cuLaunchKernel '" + launch.name + "'");
  if (!driver.launchKernelEx)
    return llvm::make_error<BackendError>(
        errorNotSupported, "CUDA_ERROR_NOT_SUPPORTED",
        ("cuLaunchKernelEx '" + launch.name + "'").str(),
        "this driver launches no clusters");
  LaunchAttribute cluster{};
  cluster.id = launchAttributeClusterDimension;
  std::copy(launch.cluster.begin(), launch.cluster.end(),
            cluster.value.cluster);
  LaunchConfig config{{gx, gy, gz},  {bx, by, bz}, launch.sharedBytes,
                      launch.stream, &cluster,     1};
  return check(driver.launchKernelEx(&config, launch.function, params, nullptr),
               "cuLaunchKernelEx '" + launch.name + "'");
}

llvm::Expected<std::unique_ptr<Backend>> fsr::openCudaBackend(int ordinal) {
  llvm::Expected<Driver> driver = Driver::load();
  if (!driver)
    return driver.takeError();
  auto failed = [&](Result result, const char *call) {
    const char *name = nullptr;
    driver->getErrorName(result, &name);
    return makeError(ErrorKind::Unavailable,
                     "GPU " + llvm::Twine(ordinal) + " cannot be used: " +
                         call + ": " + (name ? name : "unknown error"));
  };
  int count = 0;
  if (Result result = driver->deviceGetCount(&count))
    return failed(result, "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count)
    return makeError(ErrorKind::Unavailable, "no GPU " + llvm::Twine(ordinal) +
                                                 ": the CUDA driver reports " +
                                                 counted(count, "GPU"));
  cuda::Device device = 0;
  if (Result result = driver->deviceGet(&device, ordinal))
    return failed(result, "cuDeviceGet");
  Handle context = nullptr;
  if (Result result = driver->primaryCtxRetain(&context, device))
    return failed(result, "cuDevicePrimaryCtxRetain");
  // From here on the object releases the context.
  std::unique_ptr<Backend> backend =
      std::make_unique<CudaBackend>(*driver, device, context);
  if (auto error = backend->makeCurrent())
    return std::move(error);
  return std::move(backend);
}

bool fsr::cudaDriverPresent() {
  llvm::Expected<Driver> driver = Driver::load();
  if (!driver) {
    llvm::consumeError(driver.takeError());
    return false;
  }
  int count = 0;
  return driver->deviceGetCount(&count) == success && count > 0;
}
