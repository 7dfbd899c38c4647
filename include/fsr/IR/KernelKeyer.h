// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Keys of several kernels of one context: keeps the canonicalization patterns
// from kernel to kernel. The keys are those of `kernelKey`.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_IR_KERNELKEYER_H
#define FSR_IR_KERNELKEYER_H

#include "fsr/IR/Kernels.h"

#include "mlir/Rewrite/FrozenRewritePatternSet.h"

#include <map>

namespace fsr {

class KernelKeyer {
public:
  KernelKeyer() = default;
  KernelKeyer(const KernelKeyer &) = delete;
  KernelKeyer &operator=(const KernelKeyer &) = delete;

  llvm::Expected<std::string> key(const KernelSite &site,
                                  llvm::StringRef target);

private:
  /// By the names of the dialects whose patterns are in the set.
  std::map<std::string, mlir::FrozenRewritePatternSet> patterns;
};

} // namespace fsr

#endif // FSR_IR_KERNELKEYER_H
