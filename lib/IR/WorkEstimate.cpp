// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An estimate of what one launch computes, from loops with known trip counts,
// recognised bounds guards and the size of the launch. Unknown loops count once
// and unknown conditions as taken, so that the result is a guide for prompts
// and plausibility, never a proof. The accumulation length errs upwards: an
// error bound that is too tight would refuse good candidates.
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include "llvm/ADT/DenseSet.h"

#include <algorithm>

using namespace mlir;

namespace fsr {
namespace {

/// Products saturate here, far above any launch.
constexpr int64_t largest = int64_t(1) << 40;

int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return llvm::MulOverflow(a, b, product) || product > largest ? largest
                                                               : product;
}

enum class Extreme { Least, Greatest };

/// The least or greatest value that an index expression has over all threads of
/// the launch. Monotone in each operand; what is not known is nothing.
std::optional<int64_t> evaluate(Value value, const LaunchShape &shape,
                                Extreme extreme, unsigned depth = 0) {
  llvm::APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) &&
      constant.getSignificantBits() <= 64)
    return constant.getSExtValue();
  Operation *op = value.getDefiningOp();
  if (!op || depth > 16)
    return std::nullopt;
  auto id = [&](gpu::Dimension dimension,
                const std::array<int64_t, 3> &sizes) -> int64_t {
    return extreme == Extreme::Least ? 0 : sizes[int(dimension)] - 1;
  };
  if (auto thread = dyn_cast<gpu::ThreadIdOp>(op))
    return id(thread.getDimension(), shape.block);
  if (auto block = dyn_cast<gpu::BlockIdOp>(op))
    return id(block.getDimension(), shape.grid);
  if (auto dim = dyn_cast<gpu::BlockDimOp>(op))
    return shape.block[int(dim.getDimension())];
  if (auto dim = dyn_cast<gpu::GridDimOp>(op))
    return shape.grid[int(dim.getDimension())];
  if (auto lane = dyn_cast<gpu::GlobalIdOp>(op)) {
    int i = int(lane.getDimension());
    return extreme == Extreme::Least ? 0 : shape.grid[i] * shape.block[i] - 1;
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp>(op))
    return evaluate(op->getOperand(0), shape, extreme, depth + 1);
  if (!isa<arith::AddIOp, arith::MulIOp, arith::SubIOp, arith::DivSIOp,
           arith::DivUIOp, arith::CeilDivSIOp>(op))
    return std::nullopt;
  bool flips = isa<arith::SubIOp>(op);
  Extreme other =
      extreme == Extreme::Least ? Extreme::Greatest : Extreme::Least;
  std::optional<int64_t> a =
      evaluate(op->getOperand(0), shape, extreme, depth + 1);
  std::optional<int64_t> b =
      evaluate(op->getOperand(1), shape, flips ? other : extreme, depth + 1);
  int64_t result;
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return llvm::AddOverflow(*a, *b, result) ? std::nullopt
                                             : std::optional(result);
  if (flips)
    return llvm::SubOverflow(*a, *b, result) ? std::nullopt
                                             : std::optional(result);
  if (isa<arith::MulIOp>(op)) {
    // Monotone only where nothing is negative.
    if (*a < 0 || *b < 0 || llvm::MulOverflow(*a, *b, result))
      return std::nullopt;
    return result;
  }
  if (*a < 0 || *b <= 0)
    return std::nullopt;
  bool up = isa<arith::CeilDivSIOp>(op);
  return *a / *b + (up && *a % *b != 0);
}

/// The share of threads for which `condition` holds, as far as it is seen.
double shareOf(Value condition, const LaunchShape &shape, unsigned depth = 0) {
  Operation *op = condition.getDefiningOp();
  if (!op || depth > 8)
    return 1;
  if (isa<arith::AndIOp>(op))
    return shareOf(op->getOperand(0), shape, depth + 1) *
           shareOf(op->getOperand(1), shape, depth + 1);
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return 1;
  std::optional<int64_t> last =
      evaluate(compare.getLhs(), shape, Extreme::Greatest);
  std::optional<int64_t> bound =
      evaluate(compare.getRhs(), shape, Extreme::Greatest);
  if (!last || !bound || *last < 0)
    return 1;
  double values = double(*last) + 1, holds = values;
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    holds = double(*bound);
    break;
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    holds = double(*bound) + 1;
    break;
  case arith::CmpIPredicate::eq:
    holds = 1;
    break;
  default:
    break;
  }
  return std::clamp(holds / values, 0.0, 1.0);
}

bool hasFloat(TypeRange types) {
  return llvm::any_of(types, [](Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type)) &&
           !isa<BaseMemRefType>(type);
  });
}

int64_t lanesOf(Operation *op) {
  Type type = op->getNumResults()    ? op->getResult(0).getType()
              : op->getNumOperands() ? op->getOperand(0).getType()
                                     : Type();
  if (auto vector = dyn_cast_if_present<VectorType>(type))
    return vector.getNumElements();
  return 1;
}

/// Floating-point operations of one execution of `op` by one thread.
int64_t flopsOf(Operation *op) {
  if (isa<math::FmaOp, vector::FMAOp>(op))
    return 2 * lanesOf(op);
  if (auto reduction = dyn_cast<vector::ReductionOp>(op))
    return reduction.getSourceVectorType().getNumElements();
  if (auto mma = dyn_cast<gpu::SubgroupMmaComputeOp>(op)) {
    auto a = cast<gpu::MMAMatrixType>(mma.getOpA().getType()).getShape();
    auto c = cast<gpu::MMAMatrixType>(mma.getOpC().getType()).getShape();
    // A warp of 32 does one product together.
    return std::max<int64_t>(1, 2 * c[0] * c[1] * a[1] / 32);
  }
  if (!hasFloat(op->getResultTypes()))
    return 0;
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
          arith::RemFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
          arith::MaxNumFOp, arith::MinNumFOp, gpu::AllReduceOp,
          gpu::SubgroupReduceOp, memref::AtomicRMWOp>(op) ||
      isa<math::MathDialect>(op->getDialect()))
    return lanesOf(op);
  return 0;
}

/// Whether `op` gives the exact result on small integers, whatever its inputs.
bool isExactOnIntegers(Operation *op) {
  if (auto elementwise = dyn_cast<gpu::SubgroupMmaElementwiseOp>(op))
    return elementwise.getOpType() != gpu::MMAElementwiseOp::DIVF &&
           elementwise.getOpType() != gpu::MMAElementwiseOp::EXTF;
  if (!hasFloat(op->getResultTypes()) && !hasFloat(op->getOperandTypes()))
    return true;
  Dialect *dialect = op->getDialect();
  if (isa<arith::ArithDialect>(dialect)) {
    if (op->hasTrait<OpTrait::ConstantLike>()) {
      auto isSmallInteger = [](const llvm::APFloat &value) {
        llvm::APSInt integer(32, false);
        bool exact = false;
        // An infinity only starts a minimum or maximum.
        return value.isInfinity() ||
               (value.convertToInteger(integer, llvm::APFloat::rmTowardZero,
                                       &exact) == llvm::APFloat::opOK &&
                exact && integer.abs().ule(1024));
      };
      Attribute value = cast<arith::ConstantOp>(op).getValue();
      if (auto scalar = dyn_cast<FloatAttr>(value))
        return isSmallInteger(scalar.getValue());
      if (auto splat = dyn_cast<SplatElementsAttr>(value))
        return isSmallInteger(splat.getSplatValue<llvm::APFloat>());
      return false;
    }
    return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
               arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
               arith::MinNumFOp, arith::CmpFOp, arith::SelectOp, arith::ExtFOp,
               arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp,
               arith::FPToUIOp>(op);
  }
  if (isa<math::MathDialect>(dialect))
    return isa<math::FmaOp, math::AbsFOp, math::CopySignOp, math::FloorOp,
               math::CeilOp, math::TruncOp, math::RoundEvenOp>(op);
  // The others move values, loop, or reduce by what is exact.
  llvm::StringRef name = dialect ? dialect->getNamespace() : "";
  return name == "memref" || name == "vector" || name == "scf" ||
         name == "cf" || name == "affine" || name == "gpu" || name == "func";
}

/// Whether `op` only moves or chooses among floats: it never rounds.
bool isMove(Operation *op) {
  if (!hasFloat(op->getResultTypes()) && !hasFloat(op->getOperandTypes()))
    return true;
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
    return atomic.getKind() != arith::AtomicRMWKind::addf &&
           atomic.getKind() != arith::AtomicRMWKind::mulf;
  if (isa<arith::ConstantOp, arith::CmpFOp, arith::SelectOp, arith::NegFOp,
          arith::MaximumFOp, arith::MaxNumFOp, arith::MinimumFOp,
          arith::MinNumFOp, math::AbsFOp, math::CopySignOp, memref::LoadOp,
          memref::StoreOp, vector::LoadOp, vector::StoreOp>(op))
    return true;
  llvm::StringRef name = op->getName().getDialectNamespace();
  return name == "scf" || name == "cf" || name == "affine" || name == "func";
}

/// Bits of the significand of the narrowest float that is computed in.
unsigned precisionOf(Operation *op) {
  unsigned bits = 64;
  if (flopsOf(op))
    for (Type type : op->getResultTypes())
      if (auto number = dyn_cast<FloatType>(getElementTypeOrSelf(type)))
        bits = std::min(bits, number.getFPMantissaWidth());
  return bits;
}

/// Whether `value` is arithmetic over what was loaded from `memref`: a sum that
/// is kept in memory.
bool addsToLoaded(Value value, Value memref, unsigned depth = 0) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8 || !hasFloat(op->getResultTypes()))
    return false;
  if (depth != 0)
    if (auto load = dyn_cast<memref::LoadOp>(op))
      return load.getMemRef() == memref;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return addsToLoaded(operand, memref, depth + 1);
  });
}

class Estimator {
public:
  Estimator(const LaunchShape &shape) : shape(shape) {
    for (int i = 0; i < 3; ++i) {
      blockThreads = times(blockThreads, shape.block[i]);
      blocks = times(blocks, shape.grid[i]);
    }
  }

  /// `executions`: of the region by an average thread; `chain`: trips of the
  /// loops around it that accumulate.
  void count(Region &region, double executions, int64_t chain,
             unsigned depth = 0) {
    for (Block &block : region)
      for (Operation &op : block)
        count(&op, executions, chain, depth);
  }

  double flops = 0;
  int64_t accumulation = 1;
  /// Combines values of the threads of a block.
  bool reducesOverBlock = false;
  bool addsAtomically = false;
  bool exact = true;
  bool moves = true;
  unsigned precision = 64;
  int64_t blockThreads = 1, blocks = 1;

private:
  void count(Operation *op, double executions, int64_t chain, unsigned depth) {
    flops += executions * double(flopsOf(op));
    exact &= isExactOnIntegers(op);
    moves &= isMove(op);
    precision = std::min(precision, precisionOf(op));
    reducesOverBlock |=
        isa<gpu::AllReduceOp, gpu::SubgroupReduceOp>(op) ||
        (isa<gpu::ShuffleOp>(op) && hasFloat(op->getResultTypes()));
    if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
      addsAtomically |= atomic.getKind() == arith::AtomicRMWKind::addf ||
                        atomic.getKind() == arith::AtomicRMWKind::mulf;
    addsAtomically |= isa<memref::GenericAtomicRMWOp>(op);
    if (auto reduction = dyn_cast<vector::ReductionOp>(op))
      note(times(chain, reduction.getSourceVectorType().getNumElements()));
    if (auto mma = dyn_cast<gpu::SubgroupMmaComputeOp>(op))
      note(times(
          chain,
          cast<gpu::MMAMatrixType>(mma.getOpA().getType()).getShape()[1]));
    if (auto store = dyn_cast<memref::StoreOp>(op))
      if (addsToLoaded(store.getValueToStore(), store.getMemRef())) {
        note(chain);
        auto space = dyn_cast_if_present<gpu::AddressSpaceAttr>(
            store.getMemRefType().getMemorySpace());
        auto number = dyn_cast_if_present<IntegerAttr>(
            store.getMemRefType().getMemorySpace());
        reducesOverBlock |=
            (space && space.getValue() == gpu::AddressSpace::Workgroup) ||
            (number && number.getInt() == 3);
      }
    if (auto call = dyn_cast<CallOpInterface>(op)) {
      auto callee =
          dyn_cast_if_present<FunctionOpInterface>(call.resolveCallable());
      // Recursion has no count; the depth ends it.
      if (callee && depth < 8)
        count(callee.getFunctionBody(), executions, chain, depth + 1);
      return;
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      double share = shareOf(branch.getCondition(), shape);
      count(branch.getThenRegion(), executions * share, chain, depth);
      count(branch.getElseRegion(), executions * (1 - share), chain, depth);
      return;
    }
    if (isa<LoopLikeOpInterface>(op)) {
      int64_t trips = tripCountOf(op, shape).value_or(1);
      int64_t inner = accumulates(op) ? times(chain, trips) : chain;
      if (inner != chain)
        note(inner);
      for (Region &region : op->getRegions())
        count(region, executions * double(trips), inner, depth);
      return;
    }
    for (Region &region : op->getRegions())
      count(region, executions, chain, depth);
  }

  void note(int64_t chain) { accumulation = std::max(accumulation, chain); }

  /// Carries a float from trip to trip, in a register or in memory.
  static bool accumulates(Operation *loop) {
    if (hasFloat(loop->getResultTypes()) ||
        llvm::any_of(loop->getResultTypes(),
                     [](Type type) { return isa<gpu::MMAMatrixType>(type); }))
      return true;
    return loop
        ->walk([](memref::StoreOp store) {
          return addsToLoaded(store.getValueToStore(), store.getMemRef())
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }

  const LaunchShape &shape;
};

} // namespace

std::optional<int64_t> tripCountOf(Operation *loop, const LaunchShape &shape) {
  if (auto like = dyn_cast<LoopLikeOpInterface>(loop))
    if (std::optional<llvm::APInt> trips = like.getStaticTripCount())
      if (trips->getActiveBits() < 63)
        return int64_t(trips->getZExtValue());
  auto loopFor = dyn_cast<scf::ForOp>(loop);
  if (!loopFor)
    return std::nullopt;
  // The thread with the most trips.
  auto low = evaluate(loopFor.getLowerBound(), shape, Extreme::Least);
  auto high = evaluate(loopFor.getUpperBound(), shape, Extreme::Greatest);
  auto step = evaluate(loopFor.getStep(), shape, Extreme::Least);
  int64_t range;
  if (!low || !high || !step || *step <= 0 ||
      llvm::SubOverflow(*high, *low, range))
    return std::nullopt;
  return range <= 0 ? 0 : range / *step + (range % *step != 0);
}

WorkEstimate estimateWork(const KernelSite &site,
                          llvm::ArrayRef<Argument> arguments,
                          const LaunchShape &shape) {
  Estimator estimator(shape);
  estimator.count(cast<gpu::GPUFuncOp>(site.kernel).getBody(), 1, 1);
  WorkEstimate work;
  work.flops = estimator.flops * double(estimator.blockThreads) *
               double(estimator.blocks);
  for (const Argument &argument : arguments) {
    if (!argument.isBuffer)
      continue;
    double bytes = double(argument.numElements()) * byteSize(argument.element);
    // A kernel that also writes a buffer may read only what it wrote itself,
    // and a bound must never be above what is needed.
    if (argument.access == Access::Read)
      work.bytesRead += bytes;
    if (argument.access == Access::Write ||
        argument.access == Access::ReadWrite)
      work.bytesWritten += bytes;
  }
  int64_t accumulation = estimator.accumulation;
  if (estimator.reducesOverBlock)
    accumulation = times(accumulation, estimator.blockThreads);
  if (estimator.addsAtomically)
    accumulation =
        times(times(accumulation, estimator.blockThreads), estimator.blocks);
  work.accumulation = std::max<int64_t>(1, accumulation);
  // Sums of small integers are exact while they fit the significand; 16 is the
  // room for one product.
  unsigned precision = std::min(estimator.precision, 40u);
  work.exactOnIntegers = estimator.exact && times(work.accumulation, 16) <=
                                                int64_t(1) << precision;
  work.movesOnly = estimator.moves;
  work.addsAtomically = estimator.addsAtomically;
  return work;
}

std::string fastMathFlagsOf(const KernelSite &site) {
  arith::FastMathFlags used = arith::FastMathFlags::none;
  for (Operation *part : closureOf(site))
    part->walk([&](arith::ArithFastMathInterface op) {
      if (arith::FastMathFlagsAttr flags = op.getFastMathFlagsAttr())
        used = used | flags.getValue();
    });
  used = used & ~arith::FastMathFlags::contract;
  return used == arith::FastMathFlags::none
             ? std::string()
             : arith::stringifyFastMathFlags(used);
}

} // namespace fsr
