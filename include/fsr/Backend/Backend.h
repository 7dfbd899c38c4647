// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One interface over the CUDA driver and the virtual device: memory, modules,
// launches, streams, events. Used by the device worker and by
// libfsr_gpu_runtime.so; nothing else in FSR touches a GPU.
//
// Every error carries the driver's own name of it (CUDA_ERROR_ILLEGAL_ADDRESS);
// `isSticky` tells those after which the context is dead.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BACKEND_BACKEND_H
#define FSR_BACKEND_BACKEND_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fsr {

/// A failed call of a back end.
class BackendError : public llvm::ErrorInfo<BackendError> {
public:
  static char ID;
  BackendError(int code, std::string name, std::string call,
               std::string detail = {})
      : code(code), name(std::move(name)), call(std::move(call)),
        detail(std::move(detail)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

  /// The context is dead: the process must end.
  bool isSticky() const;
  /// The device itself is at fault, whatever ran: memory, a link, an
  /// instance that is gone.
  bool isHardware() const;
  /// The launch itself was refused, or the scratch that it allocates in stream
  /// order: too many resources, an invalid value.
  bool isLaunchRefusal() const;
  /// The image is none that the device takes.
  bool isImageRefusal() const;
  /// The image has no kernel or variable of the name.
  bool isNotFound() const;

  int code;         ///< CUresult.
  std::string name; ///< "CUDA_ERROR_ILLEGAL_ADDRESS"
  std::string call; ///< "cuLaunchKernel 'softmax'"
  /// What else the driver said: the log of its PTX compiler, capped.
  std::string detail;
};

using DevicePointer = uint64_t;
/// Opaque; 0 is the default stream, and no module, function or event.
using StreamHandle = void *;
using EventHandle = void *;
using ModuleHandle = void *;
using FunctionHandle = void *;

struct BackendProperties {
  std::string name, driver, chip;
  std::string uuid; ///< Empty where the driver does not tell.
  int64_t multiprocessors = 0, clockKhz = 0, memoryClockKhz = 0,
          memoryBusBits = 0, l2Bytes = 0, memoryBytes = 0, warpSize = 32;
  int64_t sharedBytesPerBlock = 0; ///< Opted in.
  int64_t sharedBytesPerMultiprocessor = 0, registersPerBlock = 0,
          registersPerMultiprocessor = 0, threadsPerBlock = 0,
          threadsPerMultiprocessor = 0;
  std::array<int64_t, 3> maxBlock{}, maxGrid{};
  bool isVirtual = false;
};

/// The GPU at one moment, as its management library tells; -1: not told.
struct GpuState {
  std::string driver; ///< "580.65.06"
  int64_t clockMhz = -1, memoryClockMhz = -1, temperatureC = -1;
  double powerWatts = -1, powerLimitWatts = -1;
  /// What holds the clock down: "power cap", "thermal slowdown"...
  std::vector<std::string> clockLimits;
  int64_t otherProcesses = -1; ///< Computing there beside this one.
};

struct BackendLaunch {
  FunctionHandle function = nullptr;
  llvm::StringRef name; ///< For messages.
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  unsigned sharedBytes = 0; ///< Dynamic; over 48 KiB is opted in by itself.
  StreamHandle stream = nullptr;
  llvm::ArrayRef<void *> params; ///< Pointers to the parameter values.
  /// Of our own: a virtual device looks for no faults in it.
  bool isTrusted = false;
};

class VirtualDevice;

class Backend {
public:
  virtual ~Backend();

  /// What a virtual device can do beside; null for a GPU.
  virtual VirtualDevice *virtualDevice() { return nullptr; }

  virtual llvm::Expected<BackendProperties> properties() = 0;
  /// Takes milliseconds. An error (Unavailable) says in one line why nothing is
  /// known; that is no fault.
  virtual llvm::Expected<GpuState> gpuState();

  /// No bytes give a valid pointer too.
  virtual llvm::Expected<DevicePointer> allocate(size_t bytes) = 0;
  virtual llvm::Error release(DevicePointer pointer) = 0;
  /// Allocated and released in the order of a stream, from a pool that keeps
  /// what it has: microseconds instead of a synchronisation. Only a pointer of
  /// one goes to the other. Where the device has no pools, the two above.
  virtual llvm::Expected<DevicePointer>
  allocateOrdered(size_t bytes, StreamHandle stream) = 0;
  virtual llvm::Error releaseOrdered(DevicePointer pointer,
                                     StreamHandle stream) = 0;
  virtual llvm::Error copyToDevice(DevicePointer to, const void *from,
                                   size_t bytes, StreamHandle stream) = 0;
  virtual llvm::Error copyToHost(void *to, DevicePointer from, size_t bytes,
                                 StreamHandle stream) = 0;
  /// Either side may be host or device memory (unified addressing).
  virtual llvm::Error copyAny(void *to, const void *from, size_t bytes,
                              StreamHandle stream) = 0;
  virtual llvm::Error fill32(DevicePointer to, uint32_t value, size_t count,
                             StreamHandle stream) = 0;
  virtual llvm::Error fill16(DevicePointer to, uint16_t value, size_t count,
                             StreamHandle stream) = 0;
  virtual llvm::Error fill8(DevicePointer to, uint8_t value, size_t count,
                            StreamHandle stream) = 0;
  virtual llvm::Expected<uint64_t> freeMemory() = 0;
  /// Pins host memory; kernels then reach it under the same address.
  virtual llvm::Error registerHost(void *pointer, size_t bytes) = 0;
  virtual llvm::Error unregisterHost(void *pointer) = 0;
  /// Host-visible, unified; for `host_shared` allocations.
  virtual llvm::Expected<void *> allocateManaged(size_t bytes) = 0;

  /// PTX text (NUL-terminated by the callee), cubin or fat binary.
  virtual llvm::Expected<ModuleHandle> loadModule(llvm::StringRef image,
                                                  unsigned optLevel = 4) = 0;
  virtual llvm::Error unloadModule(ModuleHandle module) = 0;
  virtual llvm::Expected<FunctionHandle> function(ModuleHandle module,
                                                  llvm::StringRef name) = 0;
  /// Address and bytes of a module's own variable, of one that the compiler
  /// kept local as well. CUDA_ERROR_NOT_FOUND where the image has none.
  virtual llvm::Expected<std::pair<DevicePointer, uint64_t>>
  variable(ModuleHandle module, llvm::StringRef name) = 0;
  virtual llvm::Error launch(const BackendLaunch &launch) = 0;

  virtual llvm::Expected<StreamHandle> createStream() = 0;
  virtual llvm::Error destroyStream(StreamHandle stream) = 0;
  virtual llvm::Error synchronize(StreamHandle stream) = 0;
  virtual llvm::Expected<EventHandle> createEvent(bool timing) = 0;
  virtual llvm::Error destroyEvent(EventHandle event) = 0;
  virtual llvm::Error record(EventHandle event, StreamHandle stream) = 0;
  virtual llvm::Error synchronizeEvent(EventHandle event) = 0;
  virtual llvm::Error wait(StreamHandle stream, EventHandle event) = 0;
  virtual llvm::Expected<double> elapsedMs(EventHandle start,
                                           EventHandle stop) = 0;
  /// Device-wide.
  virtual llvm::Error synchronizeAll() = 0;
  /// Makes this back end's context current on the calling thread.
  virtual llvm::Error makeCurrent() = 0;
};

/// Opens GPU `ordinal` through libcuda.so.1, loaded at run time. Errors: no
/// driver library, no GPU, no such GPU; each says what it looked for. The
/// primary context of that GPU is retained, and current on the calling thread;
/// another thread calls `makeCurrent` first.
llvm::Expected<std::unique_ptr<Backend>> openCudaBackend(int ordinal);

/// True where libcuda.so.1 loads and reports a GPU; starts no context.
bool cudaDriverPresent();

} // namespace fsr

#endif // FSR_BACKEND_BACKEND_H
