// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part of the CUDA driver API that FSR calls, declared here so that no
// toolkit is needed to build it, and loaded from libcuda.so.1 at run time.
//
// Symbols are asked for by the name that the library exports, which is not
// always the one that programs write: cuMemAlloc is `cuMemAlloc_v2`, and the
// plain `cuMemAlloc` is a 32-bit form from CUDA 3.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_BACKEND_CUDADRIVER_H
#define FSR_LIB_BACKEND_CUDADRIVER_H

#include "llvm/Support/Error.h"

#include <cstddef>
#include <cstdint>

namespace fsr::cuda {

using Result = int; // CUresult
using Device = int; // CUdevice
using Pointer = uint64_t;
using Handle = void *; // Contexts, modules, functions, streams, events.

// CUresult values that FSR acts on.
enum : Result {
  success = 0,
  errorInvalidValue = 1,
  errorOutOfMemory = 2,
  errorStubLibrary = 34,
  errorDeviceUnavailable = 46,
  errorNoDevice = 100,
  errorInvalidImage = 200,
  errorNoBinaryForGpu = 209,
  errorEccUncorrectable = 214,
  errorInvalidPtx = 218,
  errorNvlinkUncorrectable = 220,
  errorUnsupportedPtxVersion = 222,
  errorContained = 226,
  errorInvalidSource = 300,
  errorSharedObjectSymbolNotFound = 302,
  errorIllegalAddress = 700,
  errorLaunchOutOfResources = 701,
  errorLaunchTimeout = 702,
  errorContextIsDestroyed = 709,
  errorAssert = 710,
  errorHardwareStackError = 714,
  errorIllegalInstruction = 715,
  errorMisalignedAddress = 716,
  errorInvalidAddressSpace = 717,
  errorInvalidPc = 718,
  errorLaunchFailed = 719,
  errorCooperativeLaunchTooLarge = 720,
  errorTensorMemoryLeak = 721,
  errorNotFound = 500,
  errorNotSupported = 801,
  errorInvalidClusterSize = 912,
};

// CUdevice_attribute.
enum : int {
  attributeMaxThreadsPerBlock = 1,
  attributeMaxBlockX = 2, // Y and Z follow.
  attributeMaxGridX = 5,  // Y and Z follow.
  attributeWarpSize = 10,
  attributeMaxRegistersPerBlock = 12,
  attributeClockRate = 13,
  attributeMultiprocessorCount = 16,
  attributeMemoryClockRate = 36,
  attributeMemoryBusWidth = 37,
  attributeL2CacheSize = 38,
  attributeMaxThreadsPerMultiprocessor = 39,
  attributeComputeCapabilityMajor = 75,
  attributeComputeCapabilityMinor = 76,
  attributeMaxSharedPerMultiprocessor = 81,
  attributeMaxRegistersPerMultiprocessor = 82,
  attributeMaxSharedPerBlockOptin = 97,
  attributeMemoryPoolsSupported = 115,
};

// CUfunction_attribute.
enum : int {
  functionSharedBytes = 1,
  functionMaxDynamicSharedBytes = 8,
  functionNonPortableClusterSizeAllowed = 14,
};

enum : int { poolReleaseThreshold = 4 }; // CUmemPool_attribute.

// CUjit_option.
enum : int {
  jitErrorLogBuffer = 5,
  jitErrorLogBufferBytes = 6,
  jitOptimizationLevel = 7,
};

enum : unsigned {
  streamNonBlocking = 1,
  eventDefault = 0,
  eventDisableTiming = 2,
  hostRegisterPortable = 1,
  hostRegisterDeviceMap = 2,
  memAttachGlobal = 1,
};

// CUlaunchAttribute and CUlaunchConfig, as cuda.h lays them out.
struct alignas(8) LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    unsigned cluster[3];
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72 &&
              offsetof(LaunchAttribute, value) == 8);
enum : int { launchAttributeClusterDimension = 4 };

struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned sharedBytes;
  Handle stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};
static_assert(offsetof(LaunchConfig, stream) == 32 &&
              sizeof(LaunchConfig) == 56);

/// Every function, as FSR names it, the exported symbol, and its parameters.
#define FSR_CUDA_FUNCTIONS(X)                                                  \
  X(init, "cuInit", (unsigned))                                                \
  X(driverGetVersion, "cuDriverGetVersion", (int *))                           \
  X(getErrorName, "cuGetErrorName", (Result, const char **))                   \
  X(deviceGet, "cuDeviceGet", (Device *, int))                                 \
  X(deviceGetCount, "cuDeviceGetCount", (int *))                               \
  X(deviceGetName, "cuDeviceGetName", (char *, int, Device))                   \
  X(deviceGetAttribute, "cuDeviceGetAttribute", (int *, int, Device))          \
  X(deviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, Device))                 \
  X(primaryCtxRetain, "cuDevicePrimaryCtxRetain", (Handle *, Device))          \
  X(primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (Device))               \
  X(ctxSetCurrent, "cuCtxSetCurrent", (Handle))                                \
  X(ctxSynchronize, "cuCtxSynchronize", ())                                    \
  X(memAlloc, "cuMemAlloc_v2", (Pointer *, size_t))                            \
  X(memAllocManaged, "cuMemAllocManaged", (Pointer *, size_t, unsigned))       \
  X(memFree, "cuMemFree_v2", (Pointer))                                        \
  X(memAllocAsync, "cuMemAllocAsync", (Pointer *, size_t, Handle))             \
  X(memFreeAsync, "cuMemFreeAsync", (Pointer, Handle))                         \
  X(deviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", (Handle *, Device))  \
  X(memPoolSetAttribute, "cuMemPoolSetAttribute", (Handle, int, void *))       \
  X(memGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                       \
  X(memHostRegister, "cuMemHostRegister_v2", (void *, size_t, unsigned))       \
  X(memHostUnregister, "cuMemHostUnregister", (void *))                        \
  X(memcpyHtoD, "cuMemcpyHtoD_v2", (Pointer, const void *, size_t))            \
  X(memcpyDtoH, "cuMemcpyDtoH_v2", (void *, Pointer, size_t))                  \
  X(memcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                   \
    (Pointer, const void *, size_t, Handle))                                   \
  X(memcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                   \
    (void *, Pointer, size_t, Handle))                                         \
  X(memcpyAsync, "cuMemcpyAsync", (Pointer, Pointer, size_t, Handle))          \
  X(memsetD8Async, "cuMemsetD8Async",                                          \
    (Pointer, unsigned char, size_t, Handle))                                  \
  X(memsetD16Async, "cuMemsetD16Async",                                        \
    (Pointer, unsigned short, size_t, Handle))                                 \
  X(memsetD32Async, "cuMemsetD32Async", (Pointer, unsigned, size_t, Handle))   \
  X(moduleLoadDataEx, "cuModuleLoadDataEx",                                    \
    (Handle *, const void *, unsigned, int *, void **))                        \
  X(moduleUnload, "cuModuleUnload", (Handle))                                  \
  X(moduleGetFunction, "cuModuleGetFunction",                                  \
    (Handle *, Handle, const char *))                                          \
  X(moduleGetGlobal, "cuModuleGetGlobal_v2",                                   \
    (Pointer *, size_t *, Handle, const char *))                               \
  X(funcGetAttribute, "cuFuncGetAttribute", (int *, int, Handle))              \
  X(funcSetAttribute, "cuFuncSetAttribute", (Handle, int, int))                \
  X(launchKernel, "cuLaunchKernel",                                            \
    (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
     unsigned, Handle, void **, void **))                                      \
  X(streamCreate, "cuStreamCreate", (Handle *, unsigned))                      \
  X(streamDestroy, "cuStreamDestroy_v2", (Handle))                             \
  X(streamSynchronize, "cuStreamSynchronize", (Handle))                        \
  X(streamWaitEvent, "cuStreamWaitEvent", (Handle, Handle, unsigned))          \
  X(eventCreate, "cuEventCreate", (Handle *, unsigned))                        \
  X(eventDestroy, "cuEventDestroy_v2", (Handle))                               \
  X(eventRecord, "cuEventRecord", (Handle, Handle))                            \
  X(eventSynchronize, "cuEventSynchronize", (Handle))                          \
  X(eventElapsedTime, "cuEventElapsedTime", (float *, Handle, Handle))

/// The loaded library. Plain data; the library itself is never unloaded.
struct Driver {
#define X(name, symbol, parameters) Result(*name) parameters = nullptr;
  FSR_CUDA_FUNCTIONS(X)
#undef X
  /// Since CUDA 11.8; null in an older driver.
  Result (*launchKernelEx)(const LaunchConfig *, Handle, void **,
                           void **) = nullptr;
  /// 16 bytes, those of a part of a GPU where it is one. Since CUDA 11.4; null
  /// in an older driver.
  Result (*deviceGetUuid)(unsigned char *, Device) = nullptr;
  /// Null in a driver that cannot tell where its GPU is.
  Result (*deviceGetPciBusId)(char *, int, Device) = nullptr;

  /// Loads libcuda.so.1 and initialises it. Errors (Unavailable): the library
  /// or one of its symbols is missing, or there is no GPU.
  static llvm::Expected<Driver> load();
};

} // namespace fsr::cuda

#endif // FSR_LIB_BACKEND_CUDADRIVER_H
