// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Host memory, a simulated clock, and errors with the driver's numbers.
//
//===----------------------------------------------------------------------===//

#include "HostBackend.h"

#include "Helpers.h"

#include <cstdlib>
#include <cstring>

namespace fsr {

namespace {
const char *nameOfResult(int code) {
  switch (code) {
  case 2:
    return "CUDA_ERROR_OUT_OF_MEMORY";
  case 200:
    return "CUDA_ERROR_INVALID_IMAGE";
  case 214:
    return "CUDA_ERROR_ECC_UNCORRECTABLE";
  case 500:
    return "CUDA_ERROR_NOT_FOUND";
  case 700:
    return "CUDA_ERROR_ILLEGAL_ADDRESS";
  case 701:
    return "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
  case 719:
    return "CUDA_ERROR_LAUNCH_FAILED";
  default:
    return "CUDA_ERROR_UNKNOWN";
  }
}

llvm::Error fail(int code, const llvm::Twine &call) {
  return llvm::make_error<BackendError>(code, nameOfResult(code), call.str());
}
} // namespace

HostBackend::HostBackend() {
  facts.name = "Host";
  facts.driver = "13.0";
  facts.chip = "sm_90";
  facts.multiprocessors = 4;
  facts.clockKhz = 2000000;
  facts.memoryClockKhz = 3000000;
  facts.memoryBusBits = 6144;
  facts.l2Bytes = 64 * 1024;
  facts.memoryBytes = capacity;
  facts.sharedBytesPerBlock = 227 * 1024;
  facts.registersPerBlock = 65536;
  facts.threadsPerBlock = 1024;
  facts.threadsPerMultiprocessor = 2048;
  facts.maxBlock = {1024, 1024, 64};
  facts.maxGrid = {2147483647, 65535, 65535};
}

HostBackend::~HostBackend() {
  for (auto [pointer, bytes] : memory)
    free(reinterpret_cast<void *>(pointer));
}

llvm::Error HostBackend::state(llvm::StringRef call, bool surfaces) {
  if (sticky && surfaces)
    return fail(sticky, call);
  return llvm::Error::success();
}

llvm::Expected<BackendProperties> HostBackend::properties() { return facts; }

llvm::Expected<DevicePointer> HostBackend::allocate(size_t bytes) {
  if (llvm::Error error = state("cuMemAlloc"))
    return std::move(error);
  if (used + bytes > capacity)
    return fail(2, "cuMemAlloc");
  // No byte more, so that the address sanitizer sees a helper's too.
  void *pointer = nullptr;
  if (posix_memalign(&pointer, 256, bytes))
    return fail(2, "cuMemAlloc");
  memset(pointer, 0xEE, bytes);
  memory[reinterpret_cast<DevicePointer>(pointer)] = bytes;
  used += bytes;
  mostUsed = std::max(mostUsed, used);
  return reinterpret_cast<DevicePointer>(pointer);
}

llvm::Error HostBackend::release(DevicePointer pointer) {
  auto found = memory.find(pointer);
  if (found == memory.end())
    return fail(1, "cuMemFree");
  used -= found->second;
  free(reinterpret_cast<void *>(pointer));
  memory.erase(found);
  return state("cuMemFree");
}

llvm::Error HostBackend::copyToDevice(DevicePointer to, const void *from,
                                      size_t bytes, StreamHandle) {
  memcpy(reinterpret_cast<void *>(to), from, bytes);
  return state("cuMemcpyHtoDAsync");
}
llvm::Error HostBackend::copyToHost(void *to, DevicePointer from, size_t bytes,
                                    StreamHandle) {
  memcpy(to, reinterpret_cast<void *>(from), bytes);
  return state("cuMemcpyDtoHAsync");
}
llvm::Error HostBackend::copyAny(void *to, const void *from, size_t bytes,
                                 StreamHandle) {
  memcpy(to, from, bytes);
  if (onCopy)
    onCopy(to, bytes);
  return state("cuMemcpyAsync");
}
llvm::Error HostBackend::fill32(DevicePointer to, uint32_t value, size_t count,
                                StreamHandle) {
  std::fill_n(reinterpret_cast<uint32_t *>(to), count, value);
  return state("cuMemsetD32Async");
}
llvm::Error HostBackend::fill16(DevicePointer to, uint16_t value, size_t count,
                                StreamHandle) {
  std::fill_n(reinterpret_cast<uint16_t *>(to), count, value);
  return state("cuMemsetD16Async");
}
llvm::Error HostBackend::fill8(DevicePointer to, uint8_t value, size_t count,
                               StreamHandle) {
  std::fill_n(reinterpret_cast<uint8_t *>(to), count, value);
  return state("cuMemsetD8Async");
}
llvm::Expected<uint64_t> HostBackend::freeMemory() { return capacity - used; }
llvm::Error HostBackend::registerHost(void *, size_t) {
  return state("cuMemHostRegister");
}
llvm::Error HostBackend::unregisterHost(void *) {
  return state("cuMemHostUnregister");
}
llvm::Expected<void *> HostBackend::allocateManaged(size_t bytes) {
  auto pointer = allocate(bytes);
  if (!pointer)
    return pointer.takeError();
  return reinterpret_cast<void *>(*pointer);
}

llvm::Expected<ModuleHandle> HostBackend::loadModule(llvm::StringRef image,
                                                     unsigned) {
  if (llvm::Error error = state("cuModuleLoadData"))
    return std::move(error);
  auto module = std::make_unique<Module>();
  if (image != helpersPtx()) {
    auto found = images.find(image.str());
    if (found == images.end())
      return fail(200, "cuModuleLoadData");
    module->image = &found->second;
  }
  return module.release();
}

llvm::Error HostBackend::unloadModule(ModuleHandle module) {
  delete static_cast<Module *>(module);
  return state("cuModuleUnload");
}

llvm::Expected<FunctionHandle> HostBackend::function(ModuleHandle handle,
                                                     llvm::StringRef name) {
  Module &module = *static_cast<Module *>(handle);
  Function function;
  function.name = name.str();
  if (module.image) {
    auto found = module.image->find(name.str());
    if (found == module.image->end())
      return fail(500, "cuModuleGetFunction '" + name + "'");
    function.kernel = &found->second;
  }
  Function &kept = module.functions[name.str()] = function;
  return &kept;
}

llvm::Expected<std::pair<DevicePointer, uint64_t>>
HostBackend::variable(ModuleHandle, llvm::StringRef name) {
  auto found = variables.find(name.str());
  if (found == variables.end())
    return fail(500, "cuModuleGetGlobal '" + name + "'");
  return std::make_pair(reinterpret_cast<DevicePointer>(found->second.first),
                        uint64_t(found->second.second));
}

llvm::Error HostBackend::launch(const BackendLaunch &launch) {
  if (llvm::Error error = state("cuLaunchKernel"))
    return error;
  Function &function = *static_cast<Function *>(launch.function);
  if (!function.kernel) {
    if (!runHostHelper(function.name, launch.params, clock))
      return fail(500, "helper " + function.name);
    return llvm::Error::success();
  }
  if (function.kernel->refusal)
    return fail(function.kernel->refusal,
                "cuLaunchKernel '" + launch.name + "'");
  ++launches;
  if (onLaunch)
    onLaunch(*function.kernel);
  sticky = function.kernel->body(launch.params);
  double noise = std::uniform_real_distribution<>(-jitter, jitter)(random);
  double before = clock.mhz;
  if (function.kernel->clockMhz > 0)
    clock.mhz = function.kernel->clockMhz;
  clock.pass(function.kernel->microseconds * 1000 * (1 + noise));
  clock.mhz = before;
  return llvm::Error::success();
}

llvm::Expected<StreamHandle> HostBackend::createStream() { return this; }
llvm::Error HostBackend::destroyStream(StreamHandle) {
  return state("cuStreamDestroy");
}
llvm::Error HostBackend::synchronize(StreamHandle) {
  return state("cuStreamSynchronize");
}
llvm::Expected<EventHandle> HostBackend::createEvent(bool) {
  events.push_back(std::make_unique<double>(0));
  return events.back().get();
}
llvm::Error HostBackend::destroyEvent(EventHandle) {
  return state("cuEventDestroy");
}
llvm::Error HostBackend::record(EventHandle event, StreamHandle) {
  *static_cast<double *>(event) = clock.nanos;
  return state("cuEventRecord");
}
llvm::Error HostBackend::synchronizeEvent(EventHandle) {
  return state("cuEventSynchronize");
}
llvm::Error HostBackend::wait(StreamHandle, EventHandle) {
  return state("cuStreamWaitEvent");
}
llvm::Expected<double> HostBackend::elapsedMs(EventHandle start,
                                              EventHandle stop) {
  return (*static_cast<double *>(stop) - *static_cast<double *>(start)) / 1e6;
}
llvm::Error HostBackend::synchronizeAll() { return state("cuCtxSynchronize"); }
llvm::Error HostBackend::makeCurrent() { return state("cuCtxSetCurrent"); }

} // namespace fsr
