// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A back end over host memory, for tests of the worker with no GPU. The helper
// kernels are the real ones, compiled for the host; "images" are texts under
// which a test registered functions. Launches run at once; a simulated clock
// tells events what they took. Faults behave as CUDA's do: a sticky one comes
// back from the next synchronisation and from every call after it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_WORKER_HOSTBACKEND_H
#define FSR_TEST_WORKER_HOSTBACKEND_H

#include "fsr/Backend/Backend.h"

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace fsr {

/// Simulated time, and a multiprocessor's clock beside it.
struct HostClock {
  double nanos = 0, cycles = 0, mhz = 2000;
  void pass(double time) {
    nanos += time;
    cycles += time * mhz / 1000;
  }
};

/// Runs a helper kernel of this name, or returns false.
bool runHostHelper(llvm::StringRef name, llvm::ArrayRef<void *> params,
                   HostClock &clock);

struct HostKernel {
  /// Gets the parameters; returns a CUresult.
  std::function<int(llvm::ArrayRef<void *>)> body;
  double microseconds = 100;
  double clockMhz = 0; ///< While it runs; 0: as before.
  int refusal = 0;     ///< A CUresult with which launches are refused.
};

using HostImage = std::map<std::string, HostKernel>;

class HostBackend final : public Backend {
public:
  HostBackend();
  ~HostBackend() override;

  std::map<std::string, HostImage> images; ///< By text.
  /// What every image has, by name.
  std::map<std::string, std::pair<void *, size_t>> variables;
  BackendProperties facts;
  uint64_t capacity = uint64_t(1) << 30;
  HostClock clock;
  /// What its management library tells; none: there is no such library.
  std::optional<GpuState> gpu;
  llvm::Expected<GpuState> gpuState() override {
    if (gpu)
      return *gpu;
    return Backend::gpuState();
  }
  /// Told of each launch of a registered kernel, before it.
  std::function<void(HostKernel &)> onLaunch;
  double jitter = 0.002;          ///< Relative, uniform.
  double orderedMicroseconds = 2; ///< Of an ordered allocation and its release.
  uint64_t allocatedBytes() const { return used; }
  uint64_t mostUsed = 0; ///< Bytes, at one time.
  /// Whether an allocation that was not released begins there.
  bool holds(const void *pointer) const {
    return memory.count(reinterpret_cast<DevicePointer>(pointer)) != 0;
  }
  size_t launches = 0; ///< Of registered kernels.
  /// Told of each copy between device places.
  std::function<void(void *to, size_t bytes)> onCopy;

  llvm::Expected<BackendProperties> properties() override;
  llvm::Expected<DevicePointer> allocate(size_t bytes) override;
  llvm::Error release(DevicePointer pointer) override;
  llvm::Expected<DevicePointer> allocateOrdered(size_t bytes,
                                                StreamHandle) override {
    clock.pass(orderedMicroseconds * 500);
    return allocate(bytes);
  }
  llvm::Error releaseOrdered(DevicePointer pointer, StreamHandle) override {
    clock.pass(orderedMicroseconds * 500);
    return release(pointer);
  }
  llvm::Error copyToDevice(DevicePointer to, const void *from, size_t bytes,
                           StreamHandle stream) override;
  llvm::Error copyToHost(void *to, DevicePointer from, size_t bytes,
                         StreamHandle stream) override;
  llvm::Error copyAny(void *to, const void *from, size_t bytes,
                      StreamHandle stream) override;
  llvm::Error fill32(DevicePointer to, uint32_t value, size_t count,
                     StreamHandle stream) override;
  llvm::Error fill16(DevicePointer to, uint16_t value, size_t count,
                     StreamHandle stream) override;
  llvm::Error fill8(DevicePointer to, uint8_t value, size_t count,
                    StreamHandle stream) override;
  llvm::Expected<uint64_t> freeMemory() override;
  llvm::Error registerHost(void *pointer, size_t bytes) override;
  llvm::Error unregisterHost(void *pointer) override;
  llvm::Expected<void *> allocateManaged(size_t bytes) override;
  llvm::Expected<ModuleHandle> loadModule(llvm::StringRef image,
                                          unsigned optLevel) override;
  llvm::Error unloadModule(ModuleHandle module) override;
  llvm::Expected<FunctionHandle> function(ModuleHandle module,
                                          llvm::StringRef name) override;
  llvm::Expected<std::pair<DevicePointer, uint64_t>>
  variable(ModuleHandle module, llvm::StringRef name) override;
  llvm::Error launch(const BackendLaunch &launch) override;
  llvm::Expected<StreamHandle> createStream() override;
  llvm::Error destroyStream(StreamHandle stream) override;
  llvm::Error synchronize(StreamHandle stream) override;
  llvm::Expected<EventHandle> createEvent(bool timing) override;
  llvm::Error destroyEvent(EventHandle event) override;
  llvm::Error record(EventHandle event, StreamHandle stream) override;
  llvm::Error synchronizeEvent(EventHandle event) override;
  llvm::Error wait(StreamHandle stream, EventHandle event) override;
  llvm::Expected<double> elapsedMs(EventHandle start,
                                   EventHandle stop) override;
  llvm::Error synchronizeAll() override;
  llvm::Error makeCurrent() override;

private:
  struct Function {
    std::string name;
    HostKernel *kernel = nullptr; ///< None: a helper.
  };
  struct Module {
    HostImage *image = nullptr;
    std::map<std::string, Function> functions;
  };
  llvm::Error state(llvm::StringRef call, bool surfaces = true);

  std::map<DevicePointer, size_t> memory;
  uint64_t used = 0;
  std::vector<std::unique_ptr<double>> events;
  int sticky = 0;
  std::mt19937_64 random{7};
};

} // namespace fsr

#endif // FSR_TEST_WORKER_HOSTBACKEND_H
