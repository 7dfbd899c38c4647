// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the parts of this library ask about a kernel and its one launch. All
// answers are conservative: what is not proved is not there.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_IR_KERNELFACTS_H
#define FSR_LIB_IR_KERNELFACTS_H

#include "fsr/IR/Kernels.h"

#include "mlir/IR/OwningOpRef.h"

namespace fsr {

/// Flags under which text says all of an operation but its locations, whatever
/// the command line asks of the printer.
mlir::OpPrintingFlags wholeText();

/// The part of a task that a splice needs: name, key, target, arguments and
/// launch. Reads no `fsr.workload`.
llvm::Expected<KernelTask> interfaceOf(const KernelSite &site,
                                       llvm::StringRef target);

/// The element type of a scalar or of a memref's element, `index` as i64.
std::optional<ElementType> elementTypeOf(mlir::Type type);

/// Why an argument of this type cannot be taken; empty where it can.
std::string reasonAgainstArgument(llvm::StringRef name, mlir::Type type);

/// From the kernel's attribute `fsr.arg_names`, a list of strings, where all of
/// them fit together, else a0, a1….
std::vector<std::string> argumentNames(mlir::gpu::GPUFuncOp kernel);

/// The arguments with all that kernel and launch prove. Only for a site that is
/// taken.
std::vector<Argument> argumentsOf(const KernelSite &site);

/// Sizes of a launch where all are constants.
std::optional<LaunchShape> launchShapeOf(mlir::gpu::LaunchFuncOp launch);

/// What a buffer is a view of: through views that may also move the pointer.
mlir::Value baseOf(mlir::Value buffer);

/// What is done to a buffer through it, its views and the functions that are
/// called with them; ReadWrite where that is not known.
Access accessOf(mlir::Value buffer);

/// Whether two launch operands are buffers that share no byte for certain.
bool provedDisjoint(mlir::Value a, mlir::Value b);

/// The operations that `kernel` needs from its gpu.module: itself, then what it
/// refers to, in the order of first reference.
std::vector<mlir::Operation *> closureOf(const KernelSite &site);

/// The closure alone in a module of its own, `fsr.*` attributes dropped.
mlir::OwningOpRef<mlir::ModuleOp> isolateKernel(const KernelSite &site);

/// Gives the symbols of an isolated kernel names that PTX takes; returns the
/// new one of `kernelName`. Those that PTX takes stay.
std::string nameForPtx(mlir::ModuleOp isolated, llvm::StringRef kernelName);

/// The first #nvvm.target of a gpu.module, or null.
mlir::Attribute nvvmTargetOf(mlir::gpu::GPUModuleOp module);

/// Counts by the loops, guards and launch of the kernel; see docs.
WorkEstimate estimateWork(const KernelSite &site,
                          llvm::ArrayRef<Argument> arguments,
                          const LaunchShape &shape);

/// A constant trip count of a loop under `shape`, where there is one.
std::optional<int64_t> tripCountOf(mlir::Operation *loop,
                                   const LaunchShape &shape);

/// Why the kernel itself leaves open what NaN and infinities among its inputs
/// lead to; empty: it does not. Does not look at flags.
std::string reasonForFiniteOnly(const KernelSite &site);

/// Fast-math flags beyond `contract` used in the kernel, in words; empty: none.
std::string fastMathFlagsOf(const KernelSite &site);

} // namespace fsr

#endif // FSR_LIB_IR_KERNELFACTS_H
