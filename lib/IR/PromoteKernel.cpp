// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The original as it would be without rounding to f32 and narrower: a clone in
// which every float is an f64. What is read stays as it is and is extended;
// what is written gets f64 memory of the same shape and layout.
//
// A clone is worth something only where it takes the same path. So a value that
// the original rounds, and the clone does not, may reach other floats and
// nothing else: no branch, no integer, no address, no step of a function that
// jumps. What that cannot be shown of is refused, with the reason. "Rounded"
// is found by a fixed point over values and memory, from which only what was
// read or chosen among such is left out.
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "fsr/Support/Error.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace fsr {
namespace {

/// Static shared memory of a block on every device.
constexpr int64_t mostShared = 48 * 1024;

bool isNarrowScalar(Type type) {
  return isa<Float16Type, BFloat16Type, Float32Type>(type);
}

/// f8, tf32 and what else has no rule here.
bool isStrange(Type type) {
  Type element = type;
  if (auto shaped = dyn_cast<ShapedType>(type))
    element = shaped.getElementType();
  if (isa<ComplexType, TupleType>(element))
    return true;
  return isa<FloatType>(element) && !isNarrowScalar(element) &&
         !element.isF64();
}

bool isNarrow(Type type) {
  if (auto shaped = dyn_cast<ShapedType>(type))
    return isNarrowScalar(shaped.getElementType());
  return isNarrowScalar(type);
}

bool isNarrowValue(Type type) {
  return isNarrow(type) && !isa<BaseMemRefType>(type);
}

Type widened(Type type) {
  Type f64 = Float64Type::get(type.getContext());
  if (auto memory = dyn_cast<MemRefType>(type))
    return MemRefType::Builder(memory).setElementType(f64);
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::Builder(vector).setElementType(f64);
  return f64;
}

/// How a result relates to its operands.
enum class Kind {
  Unknown,
  Passes,    ///< One of the operands, or a function of them that is exact.
  Rounds,    ///< Continuous, and rounded.
  Jumps,     ///< Wants operands that nothing rounded; then exact.
  Structure, ///< Control flow: looked at by itself.
  Memory,    ///< Likewise.
  NoFloats,  ///< Has nothing to do with them.
};

Kind kindOf(Operation *op) {
  return llvm::StringSwitch<Kind>(op->getName().getStringRef())
      .Cases({"arith.constant", "arith.negf", "arith.maximumf",
              "arith.minimumf", "arith.maxnumf", "arith.minnumf",
              "arith.select", "arith.extf", "math.absf"},
             Kind::Passes)
      .Cases({"vector.broadcast", "vector.extract", "vector.insert",
              "vector.shape_cast", "vector.from_elements", "vector.to_elements",
              "gpu.shuffle"},
             Kind::Passes)
      .Cases({"arith.addf", "arith.subf", "arith.mulf", "arith.divf",
              "arith.truncf", "arith.sitofp", "arith.uitofp"},
             Kind::Rounds)
      .Cases({"math.exp", "math.exp2", "math.expm1", "math.log", "math.log2",
              "math.log10", "math.log1p", "math.sqrt", "math.rsqrt",
              "math.cbrt", "math.powf", "math.fpowi", "math.fma"},
             Kind::Rounds)
      .Cases({"math.sin", "math.cos", "math.tan", "math.asin", "math.acos",
              "math.atan", "math.atan2", "math.sinh", "math.cosh", "math.tanh",
              "math.asinh", "math.acosh", "math.atanh", "math.erf",
              "math.erfc"},
             Kind::Rounds)
      .Cases({"vector.fma", "vector.reduction", "gpu.all_reduce",
              "gpu.subgroup_reduce"},
             Kind::Rounds)
      .Cases({"arith.fptosi", "arith.fptoui", "arith.cmpf", "arith.remf",
              "math.floor", "math.ceil", "math.round", "math.roundeven",
              "math.trunc", "math.copysign"},
             Kind::Jumps)
      .Cases({"math.isnan", "math.isinf", "math.isfinite", "math.isnormal"},
             Kind::Jumps)
      .Cases({"scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition",
              "scf.index_switch", "affine.for", "affine.if", "affine.yield",
              "cf.br", "cf.cond_br", "cf.switch", "gpu.yield",
              "memref.atomic_yield"},
             Kind::Structure)
      .Cases({"memref.load", "memref.store", "memref.atomic_rmw",
              "memref.alloca", "memref.get_global", "memref.dim", "affine.load",
              "affine.store", "vector.load", "vector.store"},
             Kind::Memory)
      .Cases({"memref.subview", "memref.cast", "memref.reinterpret_cast",
              "memref.collapse_shape", "memref.expand_shape",
              "memref.transpose", "memref.assume_alignment",
              "memref.memory_space_cast"},
             Kind::Memory)
      .Default(Kind::Unknown);
}

/// What memory an operation reads or writes; null: none of those known here.
Value memoryOf(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return load.getMemRef();
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getMemRef();
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
    return atomic.getMemref();
  if (auto load = dyn_cast<affine::AffineLoadOp>(op))
    return load.getMemRef();
  if (auto store = dyn_cast<affine::AffineStoreOp>(op))
    return store.getMemRef();
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return load.getBase();
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return store.getBase();
  return nullptr;
}

Value storedBy(Operation *op) {
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getValueToStore();
  if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
    return atomic.getValue();
  if (auto store = dyn_cast<affine::AffineStoreOp>(op))
    return store.getValueToStore();
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return store.getValueToStore();
  return nullptr;
}

bool isLoad(Operation *op) {
  return isa<memref::LoadOp, affine::AffineLoadOp, vector::LoadOp>(op);
}

/// Whether a comparison only chooses the larger or smaller of its operands.
bool isExtremum(arith::CmpFOp compare) {
  switch (compare.getPredicate()) {
  case arith::CmpFPredicate::OGT:
  case arith::CmpFPredicate::OGE:
  case arith::CmpFPredicate::OLT:
  case arith::CmpFPredicate::OLE:
  case arith::CmpFPredicate::UGT:
  case arith::CmpFPredicate::UGE:
  case arith::CmpFPredicate::ULT:
  case arith::CmpFPredicate::ULE:
    break;
  default:
    return false;
  }
  Value a = compare.getLhs(), b = compare.getRhs();
  return llvm::all_of(compare->getUses(), [&](OpOperand &use) {
    auto select = dyn_cast<arith::SelectOp>(use.getOwner());
    if (!select || use.getOperandNumber() != 0)
      return false;
    Value x = select.getTrueValue(), y = select.getFalseValue();
    return (x == a && y == b) || (x == b && y == a);
  });
}

class Promoter {
public:
  Promoter(gpu::GPUFuncOp function, llvm::ArrayRef<unsigned> written)
      : function(function), written(written.begin(), written.end()) {}

  /// False: `why` says the reason, and nothing was changed.
  bool isFit() { return findMemory() && findRounded() && allAllowed(); }
  void rewrite();
  std::string why;

private:
  bool refuse(const llvm::Twine &reason) {
    why = reason.str();
    return false;
  }
  bool findMemory();
  bool findRounded();
  bool allAllowed();
  bool allowed(Operation *op);
  bool mark(Value value) { return rounded.insert(value).second; }
  bool flow(Operation *op);
  bool flowOne(Value from, Value to) {
    return rounded.contains(from) && !rounded.contains(to) && mark(to);
  }
  /// Null: of unknown origin.
  Value rootOf(Value memory);
  bool isWide(Value memory) { return wide.contains(rootOf(memory)); }

  gpu::GPUFuncOp function;
  llvm::DenseSet<unsigned> written;
  llvm::DenseSet<Value> wide, rounded, roundedMemory;
};

Value Promoter::rootOf(Value memory) {
  Value root = baseOf(memory);
  if (!isa<MemRefType>(root.getType()))
    return nullptr;
  if (auto argument = dyn_cast<BlockArgument>(root))
    return argument.getOwner() == &function.getBody().front() ? root : nullptr;
  return isa<memref::AllocaOp, memref::GetGlobalOp>(root.getDefiningOp())
             ? root
             : nullptr;
}

/// Which memory becomes f64.
bool Promoter::findMemory() {
  int64_t shared = 0;
  unsigned numInputs = function.getFunctionType().getNumInputs();
  for (BlockArgument argument : function.getBody().front().getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type)
      continue;
    unsigned position = argument.getArgNumber();
    bool isLocal = position >= numInputs;
    bool becomesWide =
        isNarrow(type) && (isLocal || written.contains(position));
    if (becomesWide)
      wide.insert(argument);
    if (isLocal && gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(type)) {
      Type element = type.getElementType();
      shared +=
          type.getNumElements() *
          (becomesWide         ? 8
           : element.isIndex() ? 8
                               : (element.getIntOrFloatBitWidth() + 7) / 8);
    }
  }
  if (shared > mostShared)
    return refuse("in f64 it would have " + llvm::Twine(shared) +
                  " bytes of static shared memory, more than " +
                  llvm::Twine(mostShared));
  function.walk([&](memref::AllocaOp op) {
    if (isNarrow(op.getType()))
      wide.insert(op.getResult());
  });
  return true;
}

/// One step of the fixed point; whether anything is new.
bool Promoter::flow(Operation *op) {
  bool isNew = false;
  if (Value memory = memoryOf(op)) {
    Value root = rootOf(memory);
    if (isLoad(op)) {
      if (roundedMemory.contains(root) && !rounded.contains(op->getResult(0)))
        isNew |= mark(op->getResult(0));
      return isNew;
    }
    Value value = storedBy(op);
    bool rounds = rounded.contains(value);
    if (auto atomic = dyn_cast<memref::AtomicRMWOp>(op))
      rounds |= atomic.getKind() == arith::AtomicRMWKind::addf ||
                atomic.getKind() == arith::AtomicRMWKind::mulf;
    if (rounds)
      isNew |= roundedMemory.insert(root).second;
    return isNew;
  }
  auto each = [&](ValueRange from, ValueRange to) {
    for (auto [one, other] : llvm::zip(from, to))
      isNew |= flowOne(one, other);
  };
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op);
      loop && isa<scf::ForOp, affine::AffineForOp>(op)) {
    each(loop.getInits(), loop.getRegionIterArgs());
    each(loop.getYieldedValues(), loop.getRegionIterArgs());
    each(loop.getRegionIterArgs(), op->getResults());
    return isNew;
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    each(loop.getInits(), loop.getBeforeArguments());
    each(loop.getConditionOp().getArgs(), loop.getAfterArguments());
    each(loop.getConditionOp().getArgs(), loop.getResults());
    each(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
    return isNew;
  }
  if (isa<scf::IfOp, scf::IndexSwitchOp, affine::AffineIfOp>(op)) {
    for (Region &region : op->getRegions())
      if (!region.empty())
        each(region.front().getTerminator()->getOperands(), op->getResults());
    return isNew;
  }
  if (auto branch = dyn_cast<BranchOpInterface>(op)) {
    for (unsigned i = 0; i < op->getNumSuccessors(); ++i)
      each(branch.getSuccessorOperands(i).getForwardedOperands(),
           op->getSuccessor(i)->getArguments());
    return isNew;
  }
  Kind kind = kindOf(op);
  bool any = llvm::any_of(op->getOperands(),
                          [&](Value value) { return rounded.contains(value); });
  for (Value result : op->getResults()) {
    if (rounded.contains(result) ||
        !isa<FloatType, VectorType>(result.getType()))
      continue;
    // In f64 the clone rounds as the original does.
    bool isOwn = kind == Kind::Rounds &&
                 (isNarrowValue(result.getType()) ||
                  isa<gpu::AllReduceOp, gpu::SubgroupReduceOp>(op));
    if (isOwn || any)
      isNew |= mark(result);
  }
  for (Region &region : op->getRegions()) // Of a reduction.
    for (BlockArgument argument : region.getArguments())
      if (isNarrowValue(argument.getType()) && !rounded.contains(argument))
        isNew |= mark(argument);
  return isNew;
}

bool Promoter::findRounded() {
  bool isNew = true;
  while (isNew) {
    isNew = false;
    function.getBody().walk([&](Operation *op) { isNew |= flow(op); });
  }
  return true;
}

bool Promoter::allowed(Operation *op) {
  llvm::StringRef name = op->getName().getStringRef();
  auto isRounded = [&](Value value) { return rounded.contains(value); };
  auto touches = [&](auto predicate) {
    return llvm::any_of(op->getOperandTypes(), predicate) ||
           llvm::any_of(op->getResultTypes(), predicate);
  };
  if (touches(isStrange))
    return refuse(name + " has a type that has no rule");
  llvm::StringRef dialect = op->getName().getDialectNamespace();
  if (!llvm::is_contained({"arith", "math", "memref", "scf", "cf", "affine",
                           "gpu", "vector", "index", "ub"},
                          dialect))
    return refuse(name + " is not known");
  if (auto constant = dyn_cast<arith::ConstantOp>(op);
      constant && isNarrowValue(constant.getType()) &&
      !isa<FloatAttr, DenseFPElementsAttr>(constant.getValue()))
    return refuse("a constant's numbers are not in the text");
  if (isa<gpu::DynamicSharedMemoryOp, gpu::PrintfOp>(op))
    return refuse(name + " is not cloned");
  // Floats reach nothing but the operations below.
  Kind kind = kindOf(op);
  bool hasFloats =
      touches(isNarrow) || llvm::any_of(op->getOperands(), isRounded);
  if (kind == Kind::Unknown && (hasFloats || touches([](Type type) {
                                  return isa<BaseMemRefType>(type);
                                })))
    return refuse(name + " is not cloned");
  if (kind == Kind::Passes || kind == Kind::Rounds || kind == Kind::Jumps ||
      kind == Kind::Structure)
    if (touches([](Type type) { return isa<BaseMemRefType>(type); }))
      return refuse(name + " chooses between buffers");
  if (kind == Kind::Jumps) {
    auto compare = dyn_cast<arith::CmpFOp>(op);
    bool jumps = llvm::any_of(op->getOperands(), isRounded);
    if (name == "math.copysign")
      jumps = isRounded(op->getOperand(1));
    if (jumps && !(compare && isExtremum(compare)))
      return refuse(compare ? "a comparison of rounded values decides"
                            : llvm::Twine("a rounded value goes into ") + name);
  }
  if (Value memory = memoryOf(op)) {
    Value root = rootOf(memory);
    if (!root)
      return refuse(name + " is on memory of unknown origin");
    auto type = cast<MemRefType>(memory.getType());
    bool isArgument = isa<BlockArgument>(root);
    if (!isLoad(op)) {
      if (isNarrow(type) && !wide.contains(root))
        return refuse("a buffer is written that the task calls read-only");
      if (type.getElementType().isF64() && isArgument)
        return refuse("its results are f64 already");
    }
    if (isa<memref::AtomicRMWOp>(op) && isNarrow(type) && !op->use_empty())
      return refuse("what an atomic operation found in memory is used");
  }
  return true;
}

bool Promoter::allAllowed() {
  return !function.getBody()
              .walk([&](Operation *op) {
                return allowed(op) ? WalkResult::advance()
                                   : WalkResult::interrupt();
              })
              .wasInterrupted();
}

Attribute widenedConstant(TypedAttr value) {
  Type f64 = Float64Type::get(value.getContext());
  auto toDouble = [](llvm::APFloat number) {
    bool lost = false;
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &lost);
    return number;
  };
  if (auto one = dyn_cast<FloatAttr>(value))
    return FloatAttr::get(f64, toDouble(one.getValue()));
  auto many = cast<DenseFPElementsAttr>(value);
  return many.mapValues(f64, [&](const llvm::APFloat &number) {
    return toDouble(number).bitcastToAPInt();
  });
}

void Promoter::rewrite() {
  MLIRContext *context = function.getContext();
  std::vector<Operation *> all;
  function.getBody().walk([&](Operation *op) { all.push_back(op); });
  OpBuilder builder(context);
  auto extend = [&](Value value) {
    auto wider = arith::ExtFOp::create(builder, value.getLoc(),
                                       widened(value.getType()), value);
    value.replaceAllUsesExcept(wider, wider);
  };
  // Buffers that are read stay as they are.
  llvm::DenseSet<Value> narrowResults;
  for (Operation *op : all)
    if (isLoad(op) && isNarrow(op->getResult(0).getType()) &&
        !isWide(memoryOf(op)))
      narrowResults.insert(op->getResult(0));
  Block &entry = function.getBody().front();
  unsigned numInputs = function.getFunctionType().getNumInputs();
  for (Operation *op : all) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op);
        constant && isNarrowValue(constant.getType()))
      constant.setValueAttr(
          cast<TypedAttr>(widenedConstant(constant.getValue())));
    if (op->hasAttr("fastmath"))
      op->setAttr("fastmath", arith::FastMathFlagsAttr::get(
                                  context, arith::FastMathFlags::none));
    for (Value result : op->getResults()) {
      if (narrowResults.contains(result))
        continue;
      if (isNarrowValue(result.getType()) ||
          (isNarrow(result.getType()) && isWide(result)))
        result.setType(widened(result.getType()));
    }
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (isNarrowValue(argument.getType()))
            argument.setType(widened(argument.getType()));
  }
  for (Block &block : llvm::drop_begin(function.getBody()))
    for (BlockArgument argument : block.getArguments())
      if (isNarrowValue(argument.getType()))
        argument.setType(widened(argument.getType()));
  builder.setInsertionPointToStart(&entry);
  llvm::SmallVector<Type> inputs;
  for (BlockArgument argument : entry.getArguments()) {
    if (wide.contains(argument))
      argument.setType(widened(argument.getType()));
    else if (isNarrowValue(argument.getType()))
      extend(argument);
    if (argument.getArgNumber() < numInputs)
      inputs.push_back(argument.getType());
  }
  function.setFunctionType(FunctionType::get(context, inputs, {}));
  for (Operation *op : all)
    if (isLoad(op) && narrowResults.contains(op->getResult(0))) {
      builder.setInsertionPointAfter(op);
      extend(op->getResult(0));
    }
  // Between floats nothing is left to convert.
  for (Operation *op : all)
    if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
}

} // namespace

llvm::Error promoteKernel(ModuleOp module, llvm::ArrayRef<unsigned> written) {
  auto refuse = [](const llvm::Twine &reason) {
    return makeError(ErrorKind::Unsupported, reason);
  };
  auto modules = module.getOps<gpu::GPUModuleOp>();
  if (!llvm::hasSingleElement(modules))
    return makeError(ErrorKind::BadInput, "a reference has one gpu.module");
  gpu::GPUModuleOp inner = *modules.begin();
  gpu::GPUFuncOp kernel;
  for (Operation &op : inner.getBody()->without_terminator()) {
    auto function = dyn_cast<gpu::GPUFuncOp>(op);
    if (function && function.isKernel() && !kernel)
      kernel = function;
    else if (!isa<memref::GlobalOp>(op))
      return refuse("it calls functions or has more than floats to promote: " +
                    op.getName().getStringRef());
  }
  if (!kernel)
    return refuse("it has no gpu.func");
  Promoter promoter(kernel, written);
  if (!promoter.isFit())
    return refuse(promoter.why);
  promoter.rewrite();
  // Flags of the target would allow what the clone is there to find.
  if (auto own = dyn_cast_if_present<NVVM::NVVMTargetAttr>(nvvmTargetOf(inner)))
    inner.setTargetsAttr(ArrayAttr::get(
        module.getContext(),
        {NVVM::NVVMTargetAttr::get(
            module.getContext(), own.getO(), own.getTriple(), own.getChip(),
            own.getFeatures(), DictionaryAttr(), own.getLink())}));
  std::string problems;
  ScopedDiagnosticHandler handler(module.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    if (problems.empty())
                                      problems = diagnostic.str();
                                    return success();
                                  });
  if (failed(verify(module)))
    return refuse("in f64 it is not valid: " + problems);
  return llvm::Error::success();
}

std::vector<unsigned> promotedArguments(const KernelTask &task) {
  std::vector<unsigned> positions;
  for (unsigned i = 0; i < task.arguments.size(); ++i)
    if (task.arguments[i].isPromoted())
      positions.push_back(i);
  return positions;
}

} // namespace fsr
