// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Size expressions as `arith` operations at a launch site, for sizes that only
// the running program knows. What is constant folds away while it is built.
//
// The emitted arithmetic wraps and does not look for a zero divisor: a caller
// emits it only where the evidence of a record covers the sizes.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_IR_EMITSIZEEXPR_H
#define FSR_IR_EMITSIZEEXPR_H

#include "fsr/Core/SizeExpr.h"

#include "mlir/IR/Builders.h"

namespace fsr {

/// What an expression's names stand for at the place where it is emitted. Every
/// value is an i64; a null value means that the name is not known there.
struct EmitEnvironment {
  llvm::function_ref<mlir::Value(llvm::StringRef)> lookup;
  /// The address of a buffer's first element.
  llvm::function_ref<mlir::Value(llvm::StringRef)> address;
  /// Bytes from a buffer's first to behind its last element.
  llvm::function_ref<mlir::Value(llvm::StringRef)> extent;
};

/// An i64 for sizes, an i1 for guards. An error (BadInput) names what is not
/// known; operations made before it stay and are dead.
llvm::Expected<mlir::Value> emitSizeExpr(mlir::OpBuilder &builder,
                                         mlir::Location loc,
                                         const SizeExpr &expr,
                                         const EmitEnvironment &environment);

} // namespace fsr

#endif // FSR_IR_EMITSIZEEXPR_H
