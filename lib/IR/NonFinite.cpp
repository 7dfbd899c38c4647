// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whether a kernel settles what a NaN or an infinity among its inputs leads to,
// whatever the order of its sums. It does where both only pass through
// arithmetic: a sum that holds a NaN is one in every order. It does not where
// flags rule them out, where floats are taken as integers, or where the outcome
// of comparing a NaN, which is less than nothing and nothing less than it,
// decides which way a kernel goes, or which of two numbers a loop keeps.
//
// Errs to the side of not trying.
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace fsr {
namespace {

bool isFloatValue(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType())) &&
         !isa<BaseMemRefType>(value.getType());
}

bool touchesFloats(Operation *op) {
  return llvm::any_of(op->getOperands(), isFloatValue) ||
         llvm::any_of(op->getResults(), isFloatValue);
}

bool isKnownDialect(Operation *op) {
  return isa_and_present<arith::ArithDialect, math::MathDialect,
                         memref::MemRefDialect, vector::VectorDialect,
                         scf::SCFDialect, cf::ControlFlowDialect,
                         affine::AffineDialect, gpu::GPUDialect>(
             op->getDialect()) ||
         op->getName().getDialectNamespace() == "func";
}

/// Whether what lies there may be of the kernel itself, for all that is known.
bool mayBeStored(Value memory) {
  Value base = baseOf(memory);
  if (auto argument = dyn_cast<BlockArgument>(base)) {
    // Others are handed buffers that are looked at where they come from.
    if (!argument.getOwner()->isEntryBlock() ||
        !isa<gpu::GPUFuncOp>(argument.getOwner()->getParentOp()))
      return true;
  } else if (!base.getDefiningOp<memref::AllocaOp>()) {
    return true; // A module's variable has more names than this one.
  }
  Access access = accessOf(base);
  return access == Access::Write || access == Access::ReadWrite;
}

/// Whether `value` hangs on an earlier trip of a loop, on another thread, or on
/// what the kernel itself keeps in memory.
bool isCarried(Value value) {
  llvm::SmallVector<Value> open{value};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!isFloatValue(next) || !seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (isa<FunctionOpInterface>(argument.getOwner()->getParentOp()) &&
          argument.getOwner()->isEntryBlock())
        continue;
      return true;
    }
    Operation *op = next.getDefiningOp();
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      if (mayBeStored(load.getMemRef()))
        return true;
      continue;
    }
    if (op->getNumRegions() != 0 || isa<gpu::ShuffleOp>(op) ||
        isa<vector::LoadOp, vector::TransferReadOp, affine::AffineLoadOp>(op))
      return true;
    llvm::append_range(open, op->getOperands());
  }
  return false;
}

/// Whether `condition`, or an integer made of it, decides which way the kernel
/// goes or where it reads and writes.
bool steers(Value condition) {
  llvm::SmallVector<Value> open{condition};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      Operation *user = use.getOwner();
      if (auto store = dyn_cast<memref::StoreOp>(user))
        if (store.getValueToStore() == next)
          continue;
      if (!isa<arith::ArithDialect, math::MathDialect>(user->getDialect()))
        return true;
      for (Value result : user->getResults())
        if (!isFloatValue(result))
          open.push_back(result);
    }
  }
  return false;
}

} // namespace

std::string reasonForFiniteOnly(const KernelSite &site) {
  std::string reason;
  auto name = [](Operation *op) { return op->getName().getStringRef().str(); };
  for (Operation *part : closureOf(site))
    part->walk([&](Operation *op) {
      if (isa<arith::FPToSIOp, arith::FPToUIOp>(op) ||
          (isa<arith::BitcastOp>(op) && touchesFloats(op)))
        reason = "`" + name(op) + "` of the original makes integers of floats";
      else if (!isKnownDialect(op) && touchesFloats(op))
        reason = "`" + name(op) + "` of the original is not known here";
      else if (isa<arith::CmpFOp>(op) && steers(op->getResult(0)))
        reason = comparisonsDecide.str();
      else if (isa<arith::CmpFOp>(op) &&
               (isCarried(op->getOperand(0)) || isCarried(op->getOperand(1))))
        reason = "the original keeps one of several floats by comparing them "
                 "in turn";
      return reason.empty() ? WalkResult::advance() : WalkResult::interrupt();
    });
  return reason;
}

} // namespace fsr
