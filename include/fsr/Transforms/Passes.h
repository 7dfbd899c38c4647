// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The passes: fsr-optimize-gpu, fsr-apply, fsr-extract, fsr-explain. Here the
// parts of FSR are put together; the passes themselves only ask IR for kernels,
// Store and Search for answers, and IR to splice.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TRANSFORMS_PASSES_H
#define FSR_TRANSFORMS_PASSES_H

#include "fsr/Search/Search.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace fsr {

/// What fsr-optimize-gpu does with a kernel that has no record.
enum class OnMiss { Default, Search, Extract, Keep, Error };

/// What fsr-optimize-gpu does with a kernel that has one.
enum class OnHit { Use, Search };

/// The least evidence under which a record is spliced.
enum class AcceptLevel { Measured, Modelled };

/// What fsr-optimize-gpu says while it searches.
enum class ProgressMode {
  Auto, ///< A live line on a terminal; nothing elsewhere.
  On,   ///< A live line on a terminal; a line an event elsewhere.
  Off
};

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "fsr/Transforms/Passes.h.inc"

} // namespace fsr

#endif // FSR_TRANSFORMS_PASSES_H
