// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Streams that are done at once, and a modelled clock for each. A stream's work
// starts when the stream is free and the host has asked for it; the host's
// clock moves only where it waits.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/VirtualBackend.h"

#include "CudaDriver.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>

using namespace fsr;

VirtualDevice::~VirtualDevice() = default;

namespace {

constexpr int errorNoBinary = 209, errorInvalidPtx = 218,
              errorInvalidHandle = 400;
/// The host's memory stands for the chip's: no more than this of it.
constexpr uint64_t mostMemory = uint64_t(16) << 30;
/// Copies between host and device go over a bus of this rate.
constexpr double hostBytesPerUs = 50e3;

struct KernelEntry {
  unsigned module = 0;
  std::string name;
  std::vector<ptx::KernelParameter> parameters;
  uint64_t parameterBytes = 0;
  ptx::KernelCost cost;
};

struct ModuleEntry {
  unsigned number = 0;
  std::map<std::string, std::unique_ptr<KernelEntry>> kernels;
};

struct StreamEntry {
  double freeAt = 0;
};

struct EventEntry {
  bool timing = false, recorded = false;
  double at = 0;
};

struct DriverName {
  int code;
  const char *name;
};

/// As a driver calls what a GPU stops at.
DriverName driverName(ptx::FindingKind kind) {
  switch (kind) {
  case ptx::FindingKind::OutOfBounds:
  case ptx::FindingKind::WriteToConst:
    return {cuda::errorIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"};
  case ptx::FindingKind::Misaligned:
    return {cuda::errorMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS"};
  case ptx::FindingKind::Budget:
  case ptx::FindingKind::Deadlock:
    return {cuda::errorLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT"};
  case ptx::FindingKind::Assert:
    return {cuda::errorAssert, "CUDA_ERROR_ASSERT"};
  case ptx::FindingKind::BadJump:
    return {cuda::errorInvalidPc, "CUDA_ERROR_INVALID_PC"};
  case ptx::FindingKind::StackOverflow:
    return {cuda::errorHardwareStackError, "CUDA_ERROR_HARDWARE_STACK_ERROR"};
  default:
    return {cuda::errorLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"};
  }
}

class VirtualBackend final : public Backend, public VirtualDevice {
public:
  explicit VirtualBackend(const ptx::ChipModel &model) : model(model) {
    ptx::VirtualGpuOptions options;
    options.memoryBytes = std::min(model.memoryBytes, mostMemory);
    options.multiprocessors = model.multiprocessors;
    options.sharedBytesPerBlock = model.sharedBytesPerBlock;
    options.threadsPerMultiprocessor = model.threadsPerMultiprocessor;
    memoryBytes = options.memoryBytes;
    gpu = ptx::makeVirtualGpu(options);
    report.proof.holds = true;
  }
  ~VirtualBackend() override {
    for (auto &one : managed)
      munmap(one.first, one.second);
  }

  // Backend
  VirtualDevice *virtualDevice() override { return this; }
  llvm::Expected<BackendProperties> properties() override;
  llvm::Expected<DevicePointer> allocate(size_t bytes) override;
  llvm::Error release(DevicePointer pointer) override;
  llvm::Expected<DevicePointer> allocateOrdered(size_t bytes,
                                                StreamHandle) override {
    return allocate(bytes);
  }
  llvm::Error releaseOrdered(DevicePointer pointer, StreamHandle) override {
    return release(pointer);
  }
  llvm::Error copyToDevice(DevicePointer to, const void *from, size_t bytes,
                           StreamHandle stream) override;
  llvm::Error copyToHost(void *to, DevicePointer from, size_t bytes,
                         StreamHandle stream) override;
  llvm::Error copyAny(void *to, const void *from, size_t bytes,
                      StreamHandle stream) override;
  llvm::Error fill32(DevicePointer to, uint32_t value, size_t count,
                     StreamHandle stream) override {
    return fill(to, value, 4, count, stream);
  }
  llvm::Error fill16(DevicePointer to, uint16_t value, size_t count,
                     StreamHandle stream) override {
    return fill(to, value, 2, count, stream);
  }
  llvm::Error fill8(DevicePointer to, uint8_t value, size_t count,
                    StreamHandle stream) override {
    return fill(to, value, 1, count, stream);
  }
  llvm::Expected<uint64_t> freeMemory() override {
    std::lock_guard<std::mutex> lock(mutex);
    if (llvm::Error error = alive("cuMemGetInfo"))
      return std::move(error);
    return gpu->freeBytes();
  }
  llvm::Error registerHost(void *pointer, size_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (llvm::Error error = alive("cuMemHostRegister"))
      return error;
    return translate(gpu->mapHost(pointer, bytes), "cuMemHostRegister");
  }
  llvm::Error unregisterHost(void *pointer) override {
    std::lock_guard<std::mutex> lock(mutex);
    return translate(gpu->unmapHost(pointer), "cuMemHostUnregister");
  }
  llvm::Expected<void *> allocateManaged(size_t bytes) override;

  llvm::Expected<ModuleHandle> loadModule(llvm::StringRef image,
                                          unsigned) override;
  llvm::Error unloadModule(ModuleHandle module) override;
  llvm::Expected<FunctionHandle> function(ModuleHandle module,
                                          llvm::StringRef name) override;
  llvm::Expected<std::pair<DevicePointer, uint64_t>>
  variable(ModuleHandle module, llvm::StringRef name) override;
  llvm::Error launch(const BackendLaunch &launch) override;

  llvm::Expected<StreamHandle> createStream() override {
    std::lock_guard<std::mutex> lock(mutex);
    if (llvm::Error error = alive("cuStreamCreate"))
      return std::move(error);
    auto made = std::make_unique<StreamEntry>();
    StreamHandle handle = made.get();
    streams[handle] = std::move(made);
    return handle;
  }
  llvm::Error destroyStream(StreamHandle stream) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (!streams.erase(stream))
      return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE",
                    "cuStreamDestroy");
    return llvm::Error::success();
  }
  llvm::Error synchronize(StreamHandle stream) override {
    std::lock_guard<std::mutex> lock(mutex);
    llvm::Expected<StreamEntry *> entry = find(stream, "cuStreamSynchronize");
    if (!entry)
      return entry.takeError();
    hostNow = std::max(hostNow, (*entry)->freeAt);
    return llvm::Error::success();
  }
  llvm::Expected<EventHandle> createEvent(bool timing) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (llvm::Error error = alive("cuEventCreate"))
      return std::move(error);
    auto made = std::make_unique<EventEntry>();
    made->timing = timing;
    EventHandle handle = made.get();
    events[handle] = std::move(made);
    return handle;
  }
  llvm::Error destroyEvent(EventHandle event) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (!events.erase(event))
      return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE",
                    "cuEventDestroy");
    return llvm::Error::success();
  }
  llvm::Error record(EventHandle event, StreamHandle stream) override {
    std::lock_guard<std::mutex> lock(mutex);
    llvm::Expected<StreamEntry *> entry = find(stream, "cuEventRecord");
    if (!entry)
      return entry.takeError();
    llvm::Expected<EventEntry *> found = findEvent(event, "cuEventRecord");
    if (!found)
      return found.takeError();
    (*found)->recorded = true;
    (*found)->at = std::max(hostNow, (*entry)->freeAt);
    return llvm::Error::success();
  }
  llvm::Error synchronizeEvent(EventHandle event) override {
    std::lock_guard<std::mutex> lock(mutex);
    llvm::Expected<EventEntry *> found = findEvent(event, "cuEventSynchronize");
    if (!found)
      return found.takeError();
    if ((*found)->recorded)
      hostNow = std::max(hostNow, (*found)->at);
    return llvm::Error::success();
  }
  llvm::Error wait(StreamHandle stream, EventHandle event) override {
    std::lock_guard<std::mutex> lock(mutex);
    llvm::Expected<StreamEntry *> entry = find(stream, "cuStreamWaitEvent");
    if (!entry)
      return entry.takeError();
    llvm::Expected<EventEntry *> found = findEvent(event, "cuStreamWaitEvent");
    if (!found)
      return found.takeError();
    if ((*found)->recorded)
      (*entry)->freeAt = std::max((*entry)->freeAt, (*found)->at);
    return llvm::Error::success();
  }
  llvm::Expected<double> elapsedMs(EventHandle start,
                                   EventHandle stop) override {
    std::lock_guard<std::mutex> lock(mutex);
    llvm::Expected<EventEntry *> first = findEvent(start, "cuEventElapsedTime");
    if (!first)
      return first.takeError();
    llvm::Expected<EventEntry *> second = findEvent(stop, "cuEventElapsedTime");
    if (!second)
      return second.takeError();
    for (EventEntry *event : {*first, *second})
      if (!event->recorded || !event->timing)
        return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE",
                      "cuEventElapsedTime");
    return ((*second)->at - (*first)->at) / 1000;
  }
  llvm::Error synchronizeAll() override {
    std::lock_guard<std::mutex> lock(mutex);
    if (llvm::Error error = alive("cuCtxSynchronize"))
      return error;
    hostNow = std::max(hostNow, defaultStream.freeAt);
    for (const auto &stream : streams)
      hostNow = std::max(hostNow, stream.second->freeAt);
    return llvm::Error::success();
  }
  llvm::Error makeCurrent() override { return llvm::Error::success(); }

  // VirtualDevice
  const ptx::ChipModel &chip() const override { return model; }
  void setLaunchOptions(const VirtualLaunchOptions &wanted) override {
    std::lock_guard<std::mutex> lock(mutex);
    options = wanted;
  }
  VirtualReport takeReport() override {
    std::lock_guard<std::mutex> lock(mutex);
    VirtualReport taken = std::move(report);
    report = VirtualReport();
    report.proof.holds = true;
    if (!taken.launches)
      taken.proof.holds = false;
    return taken;
  }
  void setCost(FunctionHandle function, const ptx::KernelCost &cost) override {
    std::lock_guard<std::mutex> lock(mutex);
    static_cast<KernelEntry *>(function)->cost = cost;
  }
  llvm::Error setConst(DevicePointer pointer, bool isConst) override {
    std::lock_guard<std::mutex> lock(mutex);
    return translate(gpu->setConst(pointer, isConst), "read-only memory");
  }
  llvm::Error setTainted(DevicePointer pointer, uint64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (!bytes)
      return llvm::Error::success();
    return translate(gpu->setTainted(pointer, bytes, true), "taint");
  }
  llvm::Error setUninitialized(DevicePointer pointer, uint64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (!bytes)
      return llvm::Error::success();
    return translate(gpu->setUninitialized(pointer, bytes), "uninitialised");
  }
  void forgetReads() override {
    std::lock_guard<std::mutex> lock(mutex);
    gpu->forgetReads();
  }
  llvm::Error forRead(DevicePointer pointer, uint64_t bytes,
                      ptx::VirtualGpu::Visit visit) override {
    std::lock_guard<std::mutex> lock(mutex);
    return translate(gpu->forRead(pointer, bytes, visit), "reads");
  }
  llvm::Expected<uint8_t *> view(DevicePointer pointer, uint64_t bytes,
                                 bool writes) override {
    std::lock_guard<std::mutex> lock(mutex);
    if (llvm::Error error = alive("view"))
      return std::move(error);
    auto found = gpu->view(pointer, bytes, writes);
    if (!found)
      return translate(found.takeError(), "view");
    return *found;
  }

private:
  static llvm::Error failed(int code, llvm::StringRef name,
                            const llvm::Twine &call,
                            const llvm::Twine &detail = "") {
    return llvm::make_error<BackendError>(code, name.str(), call.str(),
                                          detail.str());
  }
  /// Errors of the virtual GPU under the names that a driver has for them.
  static llvm::Error translate(llvm::Error error, const llvm::Twine &call) {
    if (!error)
      return error;
    ErrorKind kind = kindOf(error);
    std::string text = llvm::toString(std::move(error));
    if (kind == ErrorKind::Unavailable)
      return failed(cuda::errorOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", call,
                    text);
    if (kind == ErrorKind::Unsupported)
      return failed(cuda::errorNotSupported, "CUDA_ERROR_NOT_SUPPORTED", call,
                    text);
    return failed(cuda::errorInvalidValue, "CUDA_ERROR_INVALID_VALUE", call,
                  text);
  }
  /// After a fault every call ends with it, as on a GPU, but those that give
  /// something back (release, unload, destroy, unregister): they succeed.
  llvm::Error alive(const llvm::Twine &call) const {
    if (!faultCode)
      return llvm::Error::success();
    return failed(faultCode, faultName, call, faultText);
  }
  llvm::Expected<StreamEntry *> find(StreamHandle stream,
                                     const llvm::Twine &call) {
    if (llvm::Error error = alive(call))
      return std::move(error);
    if (!stream)
      return &defaultStream;
    auto found = streams.find(stream);
    if (found == streams.end())
      return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", call);
    return found->second.get();
  }
  llvm::Expected<EventEntry *> findEvent(EventHandle event,
                                         const llvm::Twine &call) {
    if (llvm::Error error = alive(call))
      return std::move(error);
    auto found = events.find(event);
    if (found == events.end())
      return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", call);
    return found->second.get();
  }
  void queue(StreamEntry &stream, double microseconds) {
    stream.freeAt = std::max(stream.freeAt, hostNow) + microseconds;
  }
  llvm::Error fill(DevicePointer to, uint32_t value, unsigned width,
                   size_t count, StreamHandle stream);
  void note(ptx::LaunchResult &result, const ptx::ModelledTime &time);

  const ptx::ChipModel &model;
  std::unique_ptr<ptx::VirtualGpu> gpu;
  uint64_t memoryBytes = 0;
  std::mutex mutex;
  StreamEntry defaultStream;
  std::map<StreamHandle, std::unique_ptr<StreamEntry>> streams;
  std::map<EventHandle, std::unique_ptr<EventEntry>> events;
  std::map<ModuleHandle, std::unique_ptr<ModuleEntry>> modules;
  std::map<void *, size_t> managed; ///< Mapped pages.
  VirtualLaunchOptions options;
  VirtualReport report;
  double hostNow = 0;
  int faultCode = 0;
  std::string faultName, faultText;
};

} // namespace

llvm::Expected<BackendProperties> VirtualBackend::properties() {
  BackendProperties result;
  result.name = ("virtual " + model.name).str();
  result.driver = "virtual";
  result.isVirtual = true;
  result.chip = model.name.str();
  result.multiprocessors = model.multiprocessors;
  result.clockKhz = int64_t(model.clockKhz);
  result.memoryClockKhz = int64_t(model.memoryClockKhz);
  result.memoryBusBits = model.memoryBusBits;
  result.l2Bytes = int64_t(model.l2Bytes);
  result.memoryBytes = int64_t(memoryBytes);
  result.sharedBytesPerBlock = model.sharedBytesPerBlock;
  result.sharedBytesPerMultiprocessor = model.sharedBytesPerMultiprocessor;
  result.registersPerBlock = result.registersPerMultiprocessor = 65536;
  result.threadsPerBlock = 1024;
  result.threadsPerMultiprocessor = model.threadsPerMultiprocessor;
  result.maxBlock = {1024, 1024, 64};
  result.maxGrid = {0x7fffffff, 65535, 65535};
  return result;
}

llvm::Expected<DevicePointer> VirtualBackend::allocate(size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string call = "cuMemAlloc of " + std::to_string(bytes) + " bytes";
  if (llvm::Error error = alive(call))
    return std::move(error);
  auto pointer = gpu->allocate(std::max<size_t>(bytes, 1));
  if (!pointer)
    return translate(pointer.takeError(), call);
  return *pointer;
}

llvm::Error VirtualBackend::release(DevicePointer pointer) {
  std::lock_guard<std::mutex> lock(mutex);
  void *host = reinterpret_cast<void *>(pointer);
  auto found = managed.find(host);
  if (found == managed.end())
    return translate(gpu->release(pointer), "cuMemFree");
  llvm::Error error = translate(gpu->unmapHost(host), "cuMemFree");
  munmap(host, found->second);
  managed.erase(found);
  return error;
}

llvm::Expected<void *> VirtualBackend::allocateManaged(size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string call = "cuMemAllocManaged of " + std::to_string(bytes) + " bytes";
  if (llvm::Error error = alive(call))
    return std::move(error);
  bytes = std::max<size_t>(bytes, 1);
  void *pointer = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer == MAP_FAILED)
    return failed(cuda::errorOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", call);
  if (llvm::Error error = translate(gpu->mapHost(pointer, bytes), call)) {
    munmap(pointer, bytes);
    return std::move(error);
  }
  managed[pointer] = bytes;
  return pointer;
}

llvm::Error VirtualBackend::copyToDevice(DevicePointer to, const void *from,
                                         size_t bytes, StreamHandle stream) {
  std::lock_guard<std::mutex> lock(mutex);
  auto entry = find(stream, "cuMemcpyHtoD");
  if (!entry)
    return entry.takeError();
  if (!bytes)
    return llvm::Error::success();
  queue(**entry, double(bytes) / hostBytesPerUs);
  return translate(gpu->write(to, from, bytes), "cuMemcpyHtoD");
}

llvm::Error VirtualBackend::copyToHost(void *to, DevicePointer from,
                                       size_t bytes, StreamHandle stream) {
  std::lock_guard<std::mutex> lock(mutex);
  auto entry = find(stream, "cuMemcpyDtoH");
  if (!entry)
    return entry.takeError();
  if (!bytes)
    return llvm::Error::success();
  queue(**entry, double(bytes) / hostBytesPerUs);
  return translate(gpu->read(to, from, bytes), "cuMemcpyDtoH");
}

llvm::Error VirtualBackend::copyAny(void *to, const void *from, size_t bytes,
                                    StreamHandle stream) {
  std::lock_guard<std::mutex> lock(mutex);
  auto entry = find(stream, "cuMemcpyAsync");
  if (!entry)
    return entry.takeError();
  if (!bytes)
    return llvm::Error::success();
  auto target = reinterpret_cast<DevicePointer>(to);
  auto source = reinterpret_cast<DevicePointer>(from);
  bool toDevice = gpu->owns(target), fromDevice = gpu->owns(source);
  queue(**entry, toDevice && fromDevice
                     ? 2e6 * double(bytes) / model.dramBytesPerSecond()
                     : double(bytes) / hostBytesPerUs);
  if (toDevice && fromDevice)
    return translate(gpu->copy(target, source, bytes), "cuMemcpyAsync");
  if (toDevice)
    return translate(gpu->write(target, from, bytes), "cuMemcpyAsync");
  if (fromDevice)
    return translate(gpu->read(to, source, bytes), "cuMemcpyAsync");
  std::memmove(to, from, bytes);
  return llvm::Error::success();
}

llvm::Error VirtualBackend::fill(DevicePointer to, uint32_t value,
                                 unsigned width, size_t count,
                                 StreamHandle stream) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string call = "cuMemsetD" + std::to_string(8 * width) + "Async";
  auto entry = find(stream, call);
  if (!entry)
    return entry.takeError();
  if (!count)
    return llvm::Error::success();
  queue(**entry, 1e6 * double(count) * width / model.dramBytesPerSecond());
  return translate(gpu->fill(to, value, width, count), call);
}

llvm::Expected<ModuleHandle> VirtualBackend::loadModule(llvm::StringRef image,
                                                        unsigned) {
  std::lock_guard<std::mutex> lock(mutex);
  if (llvm::Error error = alive("cuModuleLoadDataEx"))
    return std::move(error);
  auto text = findPtx(image, model.name);
  if (!text)
    return failed(errorNoBinary, "CUDA_ERROR_NO_BINARY_FOR_GPU",
                  "cuModuleLoadDataEx", llvm::toString(text.takeError()));
  auto number = gpu->loadModule(*text);
  if (!number) {
    llvm::Error error = number.takeError();
    if (kindOf(error) != ErrorKind::BadInput)
      return translate(std::move(error), "cuModuleLoadDataEx of PTX");
    return failed(errorInvalidPtx, "CUDA_ERROR_INVALID_PTX",
                  "cuModuleLoadDataEx of PTX",
                  llvm::toString(std::move(error)));
  }
  auto made = std::make_unique<ModuleEntry>();
  made->number = *number;
  ModuleHandle handle = made.get();
  modules[handle] = std::move(made);
  return handle;
}

llvm::Error VirtualBackend::unloadModule(ModuleHandle module) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = modules.find(module);
  if (found == modules.end())
    return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE",
                  "cuModuleUnload");
  llvm::Error error =
      translate(gpu->unloadModule(found->second->number), "cuModuleUnload");
  modules.erase(found);
  return error;
}

llvm::Expected<FunctionHandle> VirtualBackend::function(ModuleHandle module,
                                                        llvm::StringRef name) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string call = ("cuModuleGetFunction '" + name + "'").str();
  if (llvm::Error error = alive(call))
    return std::move(error);
  auto found = modules.find(module);
  if (found == modules.end())
    return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", call);
  std::unique_ptr<KernelEntry> &kernel = found->second->kernels[name.str()];
  if (kernel)
    return kernel.get();
  auto parameters = gpu->parameters(found->second->number, name);
  if (!parameters) {
    found->second->kernels.erase(name.str());
    return failed(cuda::errorNotFound, "CUDA_ERROR_NOT_FOUND", call,
                  llvm::toString(parameters.takeError()));
  }
  kernel = std::make_unique<KernelEntry>();
  kernel->module = found->second->number;
  kernel->name = name.str();
  kernel->parameters = std::move(*parameters);
  for (const ptx::KernelParameter &one : kernel->parameters)
    kernel->parameterBytes =
        std::max(kernel->parameterBytes, one.offset + one.bytes);
  return kernel.get();
}

llvm::Expected<std::pair<DevicePointer, uint64_t>>
VirtualBackend::variable(ModuleHandle module, llvm::StringRef name) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string call = ("cuModuleGetGlobal '" + name + "'").str();
  if (llvm::Error error = alive(call))
    return std::move(error);
  auto found = modules.find(module);
  if (found == modules.end())
    return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", call);
  auto symbol = gpu->symbol(found->second->number, name);
  if (!symbol)
    return failed(cuda::errorNotFound, "CUDA_ERROR_NOT_FOUND", call,
                  llvm::toString(symbol.takeError()));
  return *symbol;
}

void VirtualBackend::note(ptx::LaunchResult &result,
                          const ptx::ModelledTime &time) {
  ++report.launches;
  report.counters += result.counters;
  for (const auto &one : result.fidelity.approximate)
    report.fidelity.approximate[one.first] += one.second;
  report.fidelity.approximateSteers |= result.fidelity.approximateSteers;
  if (report.proof.holds && !result.proof.holds) {
    report.proof.holds = false;
    report.proof.broken = result.proof.broken;
  }
  report.microseconds += time.microseconds;
  if (time.microseconds > report.longestUs) {
    report.longestUs = time.microseconds;
    report.bound = time.bound;
  }
  llvm::move(result.findings, std::back_inserter(report.findings));
}

llvm::Error VirtualBackend::launch(const BackendLaunch &launch) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string call = ("cuLaunchKernel '" + launch.name + "'").str();
  auto stream = find(launch.stream, call);
  if (!stream)
    return stream.takeError();
  const auto *kernel = static_cast<const KernelEntry *>(launch.function);
  if (!kernel)
    return failed(errorInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", call);
  // As the driver, this takes as many as the kernel has: callers do not always
  // know how many they pass. None at all is told.
  if (launch.params.empty() && !kernel->parameters.empty())
    return failed(cuda::errorInvalidValue, "CUDA_ERROR_INVALID_VALUE", call,
                  "no parameters, the kernel has " +
                      llvm::Twine(kernel->parameters.size()));
  std::vector<uint8_t> block(kernel->parameterBytes, 0);
  for (size_t i = 0; i < kernel->parameters.size(); ++i)
    std::memcpy(block.data() + kernel->parameters[i].offset,
                launch.params.data()[i], kernel->parameters[i].bytes);

  ptx::LaunchShapeOf shape;
  shape.grid = launch.grid;
  shape.block = launch.block;
  shape.cluster = launch.cluster;
  shape.sharedBytes = launch.sharedBytes;
  ptx::LaunchOptions how;
  if (launch.isTrusted) {
    // What it finds is told nobody.
    how.checkRaces = how.checkUninitialized = how.trackTaint = false;
  } else {
    how.schedule = options.schedule;
    how.order = options.order;
    how.seed = options.seed;
    how.instructionBudget = options.instructionBudget;
    how.trackTaint = options.trackTaint;
  }
  auto result = gpu->launch(kernel->module, kernel->name, shape, block, how);
  if (!result)
    return translate(result.takeError(), call);
  ptx::KernelCost cost = kernel->cost;
  cost.sharedBytes += launch.sharedBytes;
  ptx::ModelledTime time =
      ptx::modelledTime(result->counters, shape, cost, model);
  queue(**stream, time.microseconds);
  if (!result->output.empty()) {
    // For a person who runs a program on this device; the kernel's author
    // chose each byte.
    std::string text = printable(result->output, /*keepLines=*/true);
    fwrite(text.data(), 1, text.size(), stdout);
    fflush(stdout);
  }
  if (!result->completed) {
    // The finding that stopped it is of a kind that a GPU stops at; where
    // several are there, the first such one is told.
    DriverName name = {cuda::errorLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"};
    for (const ptx::Finding &finding : result->findings) {
      DriverName candidate = driverName(finding.kind);
      if (faultText.empty() || (name.code == cuda::errorLaunchFailed &&
                                candidate.code != name.code)) {
        name = candidate;
        faultText = finding.text();
      }
    }
    faultCode = name.code;
    faultName = name.name;
  }
  if (!launch.isTrusted)
    note(*result, time);
  return alive(call);
}

llvm::Expected<std::unique_ptr<Backend>>
fsr::openVirtualBackend(llvm::StringRef chip) {
  const ptx::ChipModel *model =
      ptx::findChipModel(chip.empty() ? llvm::StringRef("sm_90") : chip);
  if (!model) {
    std::string known;
    for (const ptx::ChipModel &one : ptx::chipModels())
      known += (known.empty() ? "" : ", ") + one.name.str();
    return makeError(ErrorKind::BadInput, "no virtual device is a '" + chip +
                                              "'; known are " + known);
  }
  return std::make_unique<VirtualBackend>(*model);
}

llvm::Expected<std::unique_ptr<Backend>>
fsr::openBackend(llvm::StringRef spec) {
  if (spec == "auto")
    spec = cudaDriverPresent() ? "cuda" : "virtual";
  if (spec == "cuda")
    return openCudaBackend(0);
  if (spec == "virtual")
    return openVirtualBackend();
  llvm::StringRef rest = spec;
  if (rest.consume_front("virtual:"))
    return openVirtualBackend(rest);
  unsigned ordinal = 0;
  if (rest.consume_front("cuda:") && !rest.getAsInteger(10, ordinal) &&
      ordinal <= 1024)
    return openCudaBackend(int(ordinal));
  return makeError(ErrorKind::BadInput,
                   "unknown device '" + spec +
                       "'; wanted cuda, cuda:N, virtual or virtual:CHIP");
}
