// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What all back ends share: the error class and which errors mean what.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/Backend.h"

#include "CudaDriver.h"
#include "fsr/Support/Error.h"

#include "llvm/Support/raw_ostream.h"

using namespace fsr;

char BackendError::ID = 0;

Backend::~Backend() = default;

llvm::Expected<GpuState> Backend::gpuState() {
  return makeError(ErrorKind::Unavailable, "no NVML: the device is no GPU");
}

void BackendError::log(llvm::raw_ostream &os) const {
  os << call << ": " << name;
  if (!detail.empty())
    os << ": " << detail;
}

std::error_code BackendError::convertToErrorCode() const {
  return llvm::inconvertibleErrorCode();
}

bool BackendError::isSticky() const {
  switch (code) {
  case cuda::errorDeviceUnavailable:
  case cuda::errorEccUncorrectable:
  case cuda::errorNvlinkUncorrectable:
  case cuda::errorContained:
  case cuda::errorIllegalAddress:
  case cuda::errorLaunchTimeout:
  case cuda::errorContextIsDestroyed:
  case cuda::errorAssert:
  case cuda::errorHardwareStackError:
  case cuda::errorIllegalInstruction:
  case cuda::errorMisalignedAddress:
  case cuda::errorInvalidAddressSpace:
  case cuda::errorInvalidPc:
  case cuda::errorLaunchFailed:
  case cuda::errorTensorMemoryLeak:
    return true;
  default:
    return false;
  }
}

bool BackendError::isNotFound() const { return code == cuda::errorNotFound; }

bool BackendError::isHardware() const {
  switch (code) {
  case cuda::errorDeviceUnavailable:
  case cuda::errorEccUncorrectable:
  case cuda::errorNvlinkUncorrectable:
  case cuda::errorContained:
    return true;
  default:
    return false;
  }
}

bool BackendError::isImageRefusal() const {
  switch (code) {
  case cuda::errorInvalidImage:
  case cuda::errorNoBinaryForGpu:
  case cuda::errorInvalidPtx:
  case cuda::errorUnsupportedPtxVersion:
  case cuda::errorInvalidSource:
  case cuda::errorSharedObjectSymbolNotFound:
  case cuda::errorNotFound:
  case cuda::errorNotSupported:
  case cuda::errorInvalidValue:
  // Its variables have no room.
  case cuda::errorOutOfMemory:
    return llvm::StringRef(call).starts_with("cuModule");
  default:
    return false;
  }
}

bool BackendError::isLaunchRefusal() const {
  switch (code) {
  case cuda::errorLaunchOutOfResources:
  case cuda::errorCooperativeLaunchTooLarge:
  case cuda::errorInvalidClusterSize:
    return true;
  case cuda::errorInvalidValue:
  case cuda::errorOutOfMemory: // Local memory is reserved at the launch.
  case cuda::errorNotSupported: {
    llvm::StringRef where(call);
    return where.starts_with("cuLaunchKernel") ||
           where.starts_with("cuFuncSetAttribute") ||
           (code == cuda::errorOutOfMemory &&
            where.starts_with("cuMemAllocAsync"));
  }
  default:
    return false;
  }
}
