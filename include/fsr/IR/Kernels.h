// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels in a module: find them, say whether FSR would take each, cut one out
// as a task, compute its key, and put a winner in its place.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_IR_KERNELS_H
#define FSR_IR_KERNELS_H

#include "fsr/Core/Trial.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace fsr {

/// One kernel of a module with its launches.
struct KernelSite {
  mlir::gpu::GPUModuleOp gpuModule; ///< Null for a gpu.launch.
  /// gpu.func; where it is not taken also llvm.func or gpu.launch.
  mlir::Operation *kernel = nullptr;
  std::vector<mlir::gpu::LaunchFuncOp> launches;
  /// What people call it: its symbol, printable; a gpu.launch has one as well.
  std::string name;
  /// Why it is not taken: one sentence; empty where it is.
  std::string whyNot;
};

/// Every kernel in the module, in order, also those that are not taken.
/// Launches that a splice left behind (`fsr.fallback`, gpu.binary) are not
/// here.
std::vector<KernelSite> findKernels(mlir::ModuleOp module);

/// The target of `site`: `option` where it is not empty, else the gpu.module's
/// #nvvm.target, else empty.
llvm::Expected<std::string> targetOf(const KernelSite &site,
                                     llvm::StringRef option);

/// The stable key of docs/formats/store.md. From the IR alone: starts no
/// process, needs no toolkit.
llvm::Expected<std::string> kernelKey(const KernelSite &site,
                                      llvm::StringRef target);

/// The task, key included; `reference.ptx` stays empty.
llvm::Expected<KernelTask> cutKernel(const KernelSite &site,
                                     llvm::StringRef target);

/// The dialects whose operations and attributes `splice` makes; a pass that
/// calls it names them in getDependentDialects.
void insertSpliceDialects(mlir::DialectRegistry &registry);

/// Puts the record's fat binary in the kernel's place and rewrites its launch.
/// Checks key, names, arity, types and limits first; an error leaves the module
/// as it was. Afterwards `site` has the new launches and no kernel.
llvm::Error splice(KernelSite &site, const Record &record);

/// Lowers the module of `Reference::mlir` to PTX with the stock NVVM pipeline,
/// in this process. Call it in a child only: NVPTX may end the process.
llvm::Expected<std::string> lowerReference(mlir::ModuleOp module,
                                           llvm::StringRef target);

/// Makes every f16, bf16 and f32 *value* of the kernel in the module of
/// `Reference::mlir` an f64, and the memory of the arguments at `written`:
/// lowered, it computes what the original would without rounding. Unsupported,
/// with the reason as its message, where a clone might take another path than
/// the original; the module is of no use then.
llvm::Error promoteKernel(mlir::ModuleOp module,
                          llvm::ArrayRef<unsigned> written);

/// The arguments of which the clone has f64 memory, in place of their own.
std::vector<unsigned> promotedArguments(const KernelTask &task);

} // namespace fsr

#endif // FSR_IR_KERNELS_H
