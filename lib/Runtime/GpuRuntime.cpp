// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions that host code lowered by MLIR 22.1's gpu-to-llvm calls, with
// the signatures which that lowering declares. docs/runtime.md lists them.
//
// Host memory that a kernel reads must be registered first (gpu.host_register):
// with unified addressing a kernel then uses the host pointer as it is.
//
//===----------------------------------------------------------------------===//

#include "RuntimeState.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/DenseSet.h"

#include <cstring>
#include <mutex>

using namespace fsr;
using namespace fsr::runtime;

#define FSR_MGPU extern "C" __attribute__((visibility("default")))

namespace {

/// A ranked memref as MLIR passes it by pointer; sizes and strides follow.
struct MemRefHeader {
  char *allocated;
  char *aligned;
  int64_t offset;
};

/// What a call that returns memref<?xf32> or memref<?xi32> returns.
struct MemRef1dFloat {
  float *allocated;
  float *aligned;
  int64_t offset, size, stride;
};
struct MemRef1dInt32 {
  int32_t *allocated;
  int32_t *aligned;
  int64_t offset, size, stride;
};

/// What was allocated in the order of a stream, and is freed so.
struct OrderedPointers {
  std::mutex mutex;
  llvm::DenseSet<DevicePointer> pointers;
};
OrderedPointers &orderedPointers() {
  // Never destroyed: programs free memory in their own destructors.
  static OrderedPointers *all = new OrderedPointers;
  return *all;
}

struct ByteRange {
  void *start = nullptr;
  uint64_t bytes = 0; ///< 0 where the memref has no element.
};

ByteRange rangeOf(int64_t rank, const MemRefHeader *memref,
                  int64_t elementBytes) {
  auto *sizes = reinterpret_cast<const int64_t *>(memref + 1);
  const int64_t *strides = sizes + rank;
  uint64_t last = 0; // Elements from the first to the last one.
  for (int64_t i = 0; i < rank; ++i) {
    if (sizes[i] <= 0)
      return {};
    if (strides[i] < 0)
      fail(makeError(ErrorKind::Unsupported,
                     "host memory with a negative stride cannot be "
                     "registered"));
    last += uint64_t(sizes[i] - 1) * uint64_t(strides[i]);
  }
  return {memref->aligned + memref->offset * elementBytes,
          (last + 1) * uint64_t(elementBytes)};
}

void launch(const Function *function, std::array<int64_t, 3> cluster,
            std::array<int64_t, 3> grid, std::array<int64_t, 3> block,
            int32_t sharedBytes, void *stream, void **params, size_t count) {
  BackendLaunch launch;
  launch.function = function->handle;
  launch.name = function->name;
  launch.sharedBytes = unsigned(sharedBytes);
  launch.stream = stream;
  launch.params = llvm::ArrayRef<void *>(params, count);
  auto narrow = [&](std::array<unsigned, 3> &to,
                    const std::array<int64_t, 3> &from, const char *what) {
    for (int i = 0; i < 3; ++i) {
      if (from[i] < 1 || from[i] > INT32_MAX)
        fail(makeError(ErrorKind::BadInput,
                       "launch of '" + llvm::Twine(function->name) +
                           "': " + what + " size " + llvm::Twine(from[i]) +
                           " in " + llvm::Twine("xyz"[i]) +
                           " is not between 1 and 2147483647"));
      to[i] = unsigned(from[i]);
    }
  };
  narrow(launch.cluster, cluster, "cluster");
  narrow(launch.grid, grid, "grid");
  narrow(launch.block, block, "block");
  Backend &device = backend();
  check(device.launch(launch));
  tellFindings(device);
}

} // namespace

// Modules. Called from global constructors and destructors of the program.

FSR_MGPU void *mgpuModuleLoad(void *data, size_t bytes) {
  return new Module(llvm::StringRef(static_cast<char *>(data), bytes), 4);
}

FSR_MGPU void *mgpuModuleLoadJIT(void *data, int optLevel) {
  auto *text = static_cast<char *>(data);
  return new Module(llvm::StringRef(text, strlen(text)),
                    unsigned(optLevel < 0 ? 0 : optLevel));
}

FSR_MGPU void mgpuModuleUnload(void *module) {
  auto *loaded = static_cast<Module *>(module);
  loaded->unload();
  delete loaded;
}

FSR_MGPU void *mgpuModuleGetFunction(void *module, const char *name) {
  return const_cast<Function *>(static_cast<Module *>(module)->function(name));
}

// Launches. `extra`, the driver's other way to pass parameters, is always null
// in lowered code.

FSR_MGPU void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                               intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                               intptr_t blockZ, int32_t sharedBytes,
                               void *stream, void **params, void ** /*extra*/,
                               size_t paramsCount) {
  launch(static_cast<Function *>(function), {1, 1, 1}, {gridX, gridY, gridZ},
         {blockX, blockY, blockZ}, sharedBytes, stream, params, paramsCount);
}

FSR_MGPU void mgpuLaunchClusterKernel(void *function, intptr_t clusterX,
                                      intptr_t clusterY, intptr_t clusterZ,
                                      intptr_t gridX, intptr_t gridY,
                                      intptr_t gridZ, intptr_t blockX,
                                      intptr_t blockY, intptr_t blockZ,
                                      int32_t sharedBytes, void *stream,
                                      void **params, void ** /*extra*/) {
  // MLIR 22.1 passes no count here; the driver reads as many parameters as the
  // kernel has.
  launch(static_cast<Function *>(function), {clusterX, clusterY, clusterZ},
         {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream,
         params, params ? 1 : 0);
}

// Streams and events.

FSR_MGPU void *mgpuStreamCreate() { return check(backend().createStream()); }

FSR_MGPU void mgpuStreamDestroy(void *stream) {
  check(backend().destroyStream(stream));
}

FSR_MGPU void mgpuStreamSynchronize(void *stream) {
  check(backend().synchronize(stream));
}

FSR_MGPU void mgpuStreamWaitEvent(void *stream, void *event) {
  check(backend().wait(stream, event));
}

FSR_MGPU void *mgpuEventCreate() {
  return check(backend().createEvent(/*timing=*/false));
}

FSR_MGPU void mgpuEventDestroy(void *event) {
  check(backend().destroyEvent(event));
}

FSR_MGPU void mgpuEventSynchronize(void *event) {
  check(backend().synchronizeEvent(event));
}

FSR_MGPU void mgpuEventRecord(void *event, void *stream) {
  check(backend().record(event, stream));
}

// Memory. An allocation is not ordered in its stream: it is there at once.
//
// Lowered code passes i8 and i16 with whatever lies above them in the register,
// so these two parameters are taken wide and cut here.

// A gpu.alloc of the async form comes with its stream, and a launch plan's
// scratch is one at every launch: it must not cost a synchronisation.
FSR_MGPU void *mgpuMemAlloc(uint64_t bytes, void *stream,
                            uint32_t isHostShared) {
  if (isHostShared & 0xff)
    return check(backend().allocateManaged(bytes));
  if (!stream)
    return reinterpret_cast<void *>(check(backend().allocate(bytes)));
  DevicePointer pointer = check(backend().allocateOrdered(bytes, stream));
  OrderedPointers &ordered = orderedPointers();
  std::lock_guard<std::mutex> lock(ordered.mutex);
  ordered.pointers.insert(pointer);
  return reinterpret_cast<void *>(pointer);
}

FSR_MGPU void mgpuMemFree(void *address, void *stream) {
  if (!address)
    return;
  auto pointer = reinterpret_cast<DevicePointer>(address);
  bool wasOrdered = false;
  {
    OrderedPointers &ordered = orderedPointers();
    std::lock_guard<std::mutex> lock(ordered.mutex);
    wasOrdered = ordered.pointers.erase(pointer) != 0;
  }
  check(wasOrdered ? backend().releaseOrdered(pointer, stream)
                   : backend().release(pointer));
}

FSR_MGPU void mgpuMemcpy(void *to, void *from, size_t bytes, void *stream) {
  check(backend().copyAny(to, from, bytes, stream));
}

FSR_MGPU void mgpuMemset32(void *to, unsigned value, size_t count,
                           void *stream) {
  check(backend().fill32(reinterpret_cast<DevicePointer>(to), value, count,
                         stream));
}

FSR_MGPU void mgpuMemset16(void *to, uint32_t value, size_t count,
                           void *stream) {
  check(backend().fill16(reinterpret_cast<DevicePointer>(to), uint16_t(value),
                         count, stream));
}

// Host memory that kernels may use.

FSR_MGPU void mgpuMemHostRegister(void *pointer, uint64_t bytes) {
  if (bytes)
    registerHost(pointer, bytes);
}

FSR_MGPU void mgpuMemHostUnregister(void *pointer) { unregisterHost(pointer); }

FSR_MGPU void mgpuMemHostRegisterMemRef(int64_t rank, void *memref,
                                        int64_t elementBytes) {
  ByteRange range =
      rangeOf(rank, static_cast<MemRefHeader *>(memref), elementBytes);
  if (range.bytes)
    registerHost(range.start, range.bytes);
}

FSR_MGPU void mgpuMemHostUnregisterMemRef(int64_t rank, void *memref,
                                          int64_t elementBytes) {
  ByteRange range =
      rangeOf(rank, static_cast<MemRefHeader *>(memref), elementBytes);
  if (range.bytes)
    unregisterHost(range.start);
}

// The device's view of registered memory: the same pointer. MLIR's own tests
// call these by name.

FSR_MGPU MemRef1dFloat mgpuMemGetDeviceMemRef1dFloat(float *allocated,
                                                     float *aligned,
                                                     int64_t offset,
                                                     int64_t size,
                                                     int64_t stride) {
  return {allocated, aligned, offset, size, stride};
}

FSR_MGPU MemRef1dInt32 mgpuMemGetDeviceMemRef1dInt32(int32_t *allocated,
                                                     int32_t *aligned,
                                                     int64_t offset,
                                                     int64_t size,
                                                     int64_t stride) {
  return {allocated, aligned, offset, size, stride};
}

FSR_MGPU void mgpuSetDefaultDevice(int32_t device) { setDefaultDevice(device); }
