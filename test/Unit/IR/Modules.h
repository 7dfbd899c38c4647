// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Modules that the tests of this folder share, and a context that can parse and
// lower them. Each module has one or more kernels with a host function that
// launches them.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_IR_MODULES_H
#define FSR_TEST_UNIT_IR_MODULES_H

#include "fsr/IR/Kernels.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include "gtest/gtest.h"

namespace fsr {

/// c[i, j] = sum over k of a[i, k] * b[k, j], with bounds guards.
extern const char *const matmulModule;
/// One block a row; exp, division.
extern const char *const softmaxModule;
/// One thread a row; rsqrt, two constants as arguments.
extern const char *const layerNormModule;

/// `text` with the first `from`, which must be there, replaced by `to`.
std::string with(std::string text, llvm::StringRef from, llvm::StringRef to);

class ModuleTest : public ::testing::Test {
protected:
  ModuleTest();

  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text);
  /// The one kernel of a module.
  KernelSite onlySite(mlir::ModuleOp module);
  /// Empty where the kernel is taken.
  std::string whyNot(llvm::StringRef text);
  std::string keyOf(llvm::StringRef text, llvm::StringRef target = "sm_90");
  KernelTask cut(llvm::StringRef text);
  /// A record for the site that launches one kernel with the arguments "same".
  Record recordFor(const KernelSite &site);
  static std::string print(mlir::Operation *op);
  /// The LLVM IR of the host side after the stock pipeline, or "failed: …".
  std::string lowerToLLVM(mlir::ModuleOp module, bool barePointers = false,
                          int64_t indexWidth = 64);

  mlir::MLIRContext context;
};

} // namespace fsr

#endif // FSR_TEST_UNIT_IR_MODULES_H
