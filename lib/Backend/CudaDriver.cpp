// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finds the CUDA driver library and its symbols.
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"

#include "fsr/Support/Error.h"

#include <dlfcn.h>

#include <string>

using namespace fsr;
using namespace fsr::cuda;

llvm::Expected<Driver> Driver::load() {
  // Never closed: the driver starts threads of its own.
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("no CUDA driver: libcuda.so.1 does not "
                                 "load: ") +
                         (why ? why : "unknown reason"));
  }
  Driver driver;
#define X(name, symbol, parameters)                                            \
  driver.name =                                                                \
      reinterpret_cast<decltype(driver.name)>(dlsym(library, symbol));         \
  if (!driver.name)                                                            \
    return makeError(ErrorKind::Unavailable,                                   \
                     "the CUDA driver is too old: libcuda.so.1 has no "        \
                     "symbol " symbol);
  FSR_CUDA_FUNCTIONS(X)
#undef X
  driver.launchKernelEx = reinterpret_cast<decltype(driver.launchKernelEx)>(
      dlsym(library, "cuLaunchKernelEx"));
  driver.deviceGetUuid = reinterpret_cast<decltype(driver.deviceGetUuid)>(
      dlsym(library, "cuDeviceGetUuid_v2"));
  driver.deviceGetPciBusId =
      reinterpret_cast<decltype(driver.deviceGetPciBusId)>(
          dlsym(library, "cuDeviceGetPCIBusId"));

  if (Result result = driver.init(0)) {
    const char *name = nullptr;
    driver.getErrorName(result, &name);
    if (result == errorNoDevice)
      return makeError(ErrorKind::Unavailable,
                       "the CUDA driver reports no GPU (cuInit: "
                       "CUDA_ERROR_NO_DEVICE)");
    if (result == errorStubLibrary)
      return makeError(
          ErrorKind::Unavailable,
          "no CUDA driver: libcuda.so.1 is a toolkit's, for linking only");
    std::string what = name ? name : "error " + std::to_string(result);
    return makeError(ErrorKind::Unavailable,
                     "the CUDA driver does not start: cuInit: " + what);
  }
  return driver;
}
