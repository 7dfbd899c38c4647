// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The back end over the virtual device (fsr/PTX/VirtualGpu.h). Every call is
// done when it returns; order on streams and the meaning of events hold all the
// same. Events tell modelled time.
//
// A finding that a GPU would stop at is a sticky error with the driver's name
// of it. The others, and what else a GPU does not show, are asked for through
// `VirtualDevice`.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BACKEND_VIRTUALBACKEND_H
#define FSR_BACKEND_VIRTUALBACKEND_H

#include "fsr/Backend/Backend.h"
#include "fsr/PTX/TimeModel.h"

namespace fsr {

/// What launches did since they were asked for last.
struct VirtualReport {
  std::vector<ptx::Finding> findings;
  ptx::Counters counters;
  ptx::Fidelity fidelity;
  ptx::Proof proof; ///< Of all of them.
  int64_t launches = 0;
  double microseconds = 0; ///< Modelled, all together.
  std::string bound;       ///< Of the longest launch.
  double longestUs = 0;
};

/// How launches run that are not trusted.
struct VirtualLaunchOptions {
  ptx::Schedule schedule = ptx::Schedule::Lockstep;
  ptx::BlockOrder order = ptx::BlockOrder::OfSchedule;
  uint64_t seed = 1;
  uint64_t instructionBudget = 0; ///< Of one launch; 0: none.
  bool trackTaint = true;
};

/// What only a virtual device can do; `Backend::virtualDevice` gives it.
class VirtualDevice {
public:
  virtual ~VirtualDevice();

  virtual const ptx::ChipModel &chip() const = 0;
  virtual void setLaunchOptions(const VirtualLaunchOptions &options) = 0;
  virtual VirtualReport takeReport() = 0;
  /// For the model; PTX does not say them.
  virtual void setCost(FunctionHandle function,
                       const ptx::KernelCost &cost) = 0;
  /// See `ptx::VirtualGpu`.
  virtual llvm::Error setConst(DevicePointer pointer, bool isConst) = 0;
  virtual llvm::Error setTainted(DevicePointer pointer, uint64_t bytes) = 0;
  virtual llvm::Error setUninitialized(DevicePointer pointer,
                                       uint64_t bytes) = 0;
  virtual void forgetReads() = 0;
  virtual llvm::Error forRead(DevicePointer pointer, uint64_t bytes,
                              ptx::VirtualGpu::Visit visit) = 0;
  virtual llvm::Expected<uint8_t *> view(DevicePointer pointer, uint64_t bytes,
                                         bool writes) = 0;
};

/// Opens a virtual device that is `chip`; empty: sm_90. Errors: a chip that is
/// not modelled (lists those that are).
llvm::Expected<std::unique_ptr<Backend>>
openVirtualBackend(llvm::StringRef chip = {});

/// Opens what users call "cuda", "cuda:N", "virtual" or "virtual:CHIP"; "auto"
/// is `cuda` where a driver reports a GPU, and `virtual` else.
llvm::Expected<std::unique_ptr<Backend>> openBackend(llvm::StringRef spec);

/// The PTX in an image: text as it is, or the entry of a fat binary that a chip
/// takes. Errors: no PTX inside, a container that is broken, packed otherwise
/// than known. `image` is hostile.
llvm::Expected<std::string> findPtx(llvm::StringRef image,
                                    llvm::StringRef chip);

} // namespace fsr

#endif // FSR_BACKEND_VIRTUALBACKEND_H
