// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The state of one GPU through NVML, NVIDIA's management library, loaded at run
// time from libnvidia-ml.so.1. A host without it loses remarks and nothing
// else. Clocks, power and temperature are read; serial numbers, UUIDs and names
// of processes are not asked for, and nothing is ever set.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_BACKEND_NVML_H
#define FSR_LIB_BACKEND_NVML_H

#include "fsr/Backend/Backend.h"

namespace fsr {

class Nvml {
public:
  /// The GPU at that PCI address, as the CUDA driver writes it: the two
  /// libraries count GPUs in different orders. Errors (Unavailable): no
  /// library, an old one, or one that does not know the GPU.
  static llvm::Expected<std::unique_ptr<Nvml>>
  open(const std::string &pciBusId);
  ~Nvml();
  Nvml(const Nvml &) = delete;
  Nvml &operator=(const Nvml &) = delete;

  GpuState state() const;

private:
  struct Functions;
  Nvml();

  std::unique_ptr<Functions> functions;
  void *device = nullptr;
};

/// In words, those of the bits of nvmlClocksEventReasons that hold a clock
/// down.
std::vector<std::string> describeClockLimits(uint64_t reasons);
/// How many of the processes that NVML lists are not this one. In a container
/// they have other numbers than inside, and one of them is this one.
int64_t countOthers(llvm::ArrayRef<unsigned> processes, unsigned self);

} // namespace fsr

#endif // FSR_LIB_BACKEND_NVML_H
