// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is known of a kernel's arguments: type and layout from the gpu.func,
// access from the uses inside it, alignment, aliasing and constants from the
// operands of its launch.
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;

namespace fsr {

/// What the device worker can lay out.
static constexpr int64_t maxRank = 8;
static constexpr int64_t maxBufferBytes = int64_t(1) << 46;

std::optional<ElementType> elementTypeOf(Type type) {
  if (type.isIndex())
    return ElementType::I64;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (!integer.isSignless())
      return std::nullopt;
    switch (integer.getWidth()) {
    case 1:
      return ElementType::I1;
    case 8:
      return ElementType::I8;
    case 16:
      return ElementType::I16;
    case 32:
      return ElementType::I32;
    case 64:
      return ElementType::I64;
    default:
      return std::nullopt;
    }
  }
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF32())
    return ElementType::F32;
  if (type.isF64())
    return ElementType::F64;
  return std::nullopt;
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Global memory, spelled in one of the ways that MLIR has for it.
static bool isGlobalMemory(Attribute space) {
  if (!space)
    return true;
  if (auto integer = dyn_cast<IntegerAttr>(space))
    return integer.getInt() == 0 || integer.getInt() == 1;
  if (auto gpuSpace = dyn_cast<gpu::AddressSpaceAttr>(space))
    return gpuSpace.getValue() == gpu::AddressSpace::Global;
  return false;
}

/// Whether no two indices of the shape reach one element.
static bool isInjective(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  std::vector<std::pair<int64_t, int64_t>> dims; // Stride, size.
  for (auto [size, stride] : llvm::zip_equal(sizes, strides))
    if (size > 1)
      dims.push_back({stride, size});
  llvm::sort(dims);
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return false;
    int64_t extent;
    if (llvm::MulOverflow(stride, size - 1, extent) ||
        llvm::AddOverflow(reach, extent, reach))
      return false;
  }
  return true;
}

std::string reasonAgainstArgument(llvm::StringRef name, Type type) {
  auto say = [&](const llvm::Twine &what) {
    return ("its argument " + name + " " + what).str();
  };
  if (isa<UnrankedMemRefType>(type))
    return say("is an unranked memref, which has no fixed ABI");
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref) {
    if (elementTypeOf(type))
      return "";
    return say("has the type " + print(type) +
               "; scalars are integers of 1 to 64 bits, index, f16, bf16, f32 "
               "and f64");
  }
  Type element = memref.getElementType();
  if (element.isIndex())
    return say("holds index elements, whose width a later lowering decides");
  if (!elementTypeOf(element))
    return say("has elements of the type " + print(element) +
               ", which is not supported");
  if (!isGlobalMemory(memref.getMemorySpace()))
    return say("is not in global memory");
  if (!memref.hasStaticShape())
    return say("has a dynamic size");
  if (memref.getRank() > maxRank)
    return say("has " + llvm::Twine(memref.getRank()) +
               " dimensions; at most " + llvm::Twine(maxRank) +
               " are supported");
  llvm::SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return say("has a layout that is not strided");
  if (ShapedType::isDynamic(offset) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return say("has a dynamic stride or offset");
  if (llvm::is_contained(memref.getShape(), 0))
    return say("is empty");
  int64_t bytes = byteSize(*elementTypeOf(element)), count = 1;
  for (int64_t size : memref.getShape())
    if (llvm::MulOverflow(count, size, count))
      return say("is too large");
  if (llvm::MulOverflow(count, bytes, count))
    return say("is too large");
  if (offset < 0 || !isInjective(memref.getShape(), strides))
    return say("has a layout that runs backwards or reaches an element twice");
  // From the memref's base to behind its last element.
  int64_t last = offset, reach = 0;
  for (auto [size, stride] : llvm::zip_equal(memref.getShape(), strides))
    if (llvm::MulOverflow(size - 1, stride, reach) ||
        llvm::AddOverflow(last, reach, last))
      return say("is too large");
  if (llvm::MulOverflow(last + 1, bytes, reach) || reach > maxBufferBytes)
    return say("is too large");
  return "";
}

std::vector<std::string> argumentNames(gpu::GPUFuncOp kernel) {
  std::vector<std::string> names;
  llvm::StringSet<> seen;
  bool usable = true;
  auto list = kernel->getAttrOfType<ArrayAttr>("fsr.arg_names");
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    auto given =
        list && i < list.size() ? dyn_cast<StringAttr>(list[i]) : StringAttr();
    std::string name = given ? given.str() : "a" + std::to_string(i);
    // The launch plan's own words are no names of arguments.
    bool taken = name == "same" || name == "grid" || name == "block";
    usable &= isUsableName(name) && !taken && seen.insert(name).second;
    names.push_back(std::move(name));
  }
  if (!usable)
    for (auto [i, name] : llvm::enumerate(names))
      name = "a" + std::to_string(i);
  return names;
}

namespace {

/// Follows a buffer through the kernel and the functions it calls.
class AccessWalk {
public:
  void follow(Value buffer) {
    if (!seen.insert(buffer).second)
      return;
    for (OpOperand &use : buffer.getUses())
      if (!unknown)
        visit(use);
  }

  Access result() const {
    if (unknown || (reads && writes))
      return Access::ReadWrite;
    if (reads)
      return Access::Read;
    return writes ? Access::Write : Access::None;
  }

private:
  void visit(OpOperand &use) {
    Operation *op = use.getOwner();
    if (isa<memref::DimOp, memref::RankOp>(op))
      return;
    if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op))
      return follow(metadata.getBaseBuffer());
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      if (view.getViewSource() == use.get()) {
        for (Value result : op->getResults()) {
          if (isa<BaseMemRefType>(result.getType()))
            follow(result);
          else
            unknown = true; // A bare pointer leaves.
        }
        return;
      }
    if (auto call = dyn_cast<CallOpInterface>(op))
      return enter(call, use);
    // Loads, stores, copies and atomics say what they do to which operand.
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    if (!effects)
      return void(unknown = true);
    llvm::SmallVector<MemoryEffects::EffectInstance> found;
    effects.getEffectsOnValue(use.get(), found);
    if (found.empty())
      unknown = true;
    for (const MemoryEffects::EffectInstance &effect : found) {
      if (isa<MemoryEffects::Read>(effect.getEffect()))
        reads = true;
      else if (isa<MemoryEffects::Write>(effect.getEffect()))
        writes = true;
      else
        unknown = true;
    }
  }

  void enter(CallOpInterface call, OpOperand &use) {
    auto callee =
        dyn_cast_if_present<FunctionOpInterface>(call.resolveCallable());
    Operation::operand_range operands = call.getArgOperands();
    if (!callee || callee.isExternal() || operands.empty())
      return void(unknown = true);
    unsigned first = operands.getBeginOperandIndex();
    unsigned index = use.getOperandNumber() - first;
    if (use.getOperandNumber() < first || index >= callee.getNumArguments())
      return void(unknown = true);
    follow(callee.getArgument(index));
  }

  llvm::DenseSet<Value> seen;
  bool reads = false, writes = false, unknown = false;
};

} // namespace

/// The value whose aligned pointer `value` has too.
static Value sourceOfPointer(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op ||
      !isa<memref::CastOp, memref::SubViewOp, memref::ReinterpretCastOp,
           memref::ExpandShapeOp, memref::CollapseShapeOp, memref::TransposeOp,
           memref::MemorySpaceCastOp, memref::AssumeAlignmentOp>(op))
    return {};
  Value source = cast<ViewLikeOpInterface>(op).getViewSource();
  return isa<MemRefType>(source.getType()) ? source : Value();
}

/// Bytes that the IR proves for the aligned pointer; 1 where nothing is said.
static int64_t alignmentOfPointer(Value value) {
  int64_t best = 1;
  for (; value; value = sourceOfPointer(value)) {
    Operation *op = value.getDefiningOp();
    if (auto assume = dyn_cast_if_present<memref::AssumeAlignmentOp>(op)) {
      // Said of the first element: of the pointer only where they are one.
      auto [strides, offset] = assume.getType().getStridesAndOffset();
      if (offset == 0)
        best = std::max<int64_t>(best, assume.getAlignment());
    } else if (auto alloc = dyn_cast_if_present<memref::AllocOp>(op)) {
      best = std::max<int64_t>(best, alloc.getAlignment().value_or(1));
    } else if (auto alloca = dyn_cast_if_present<memref::AllocaOp>(op)) {
      best = std::max<int64_t>(best, alloca.getAlignment().value_or(1));
    }
  }
  return best;
}

Access accessOf(Value buffer) {
  AccessWalk walk;
  walk.follow(buffer);
  return walk.result();
}

Value baseOf(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>()) {
    if (!isa<BaseMemRefType>(view.getViewSource().getType()))
      break;
    value = view.getViewSource();
  }
  return value;
}

bool provedDisjoint(Value a, Value b) {
  a = baseOf(a);
  b = baseOf(b);
  if (a == b)
    return false;
  auto isAllocation = [](Value value) {
    return isa_and_present<memref::AllocOp, memref::AllocaOp, gpu::AllocOp>(
        value.getDefiningOp());
  };
  auto functionArgument = [](Value value) -> FunctionOpInterface {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || !argument.getOwner()->isEntryBlock())
      return {};
    return dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  };
  auto isNoAlias = [&](Value value) {
    FunctionOpInterface function = functionArgument(value);
    return function &&
           function.getArgAttr(cast<BlockArgument>(value).getArgNumber(),
                               "llvm.noalias");
  };
  auto globalOf = [](Value value) {
    return value.getDefiningOp<memref::GetGlobalOp>();
  };
  // Fresh memory differs from all that is older than it, and from other fresh
  // memory. A function's argument is older than what the function allocates.
  auto isOlder = [&](Value value) {
    return isAllocation(value) || globalOf(value) ||
           bool(functionArgument(value));
  };
  if (isAllocation(a) && isOlder(b))
    return true;
  if (isAllocation(b) && isOlder(a))
    return true;
  if (globalOf(a) && globalOf(b))
    return globalOf(a).getName() != globalOf(b).getName();
  if (functionArgument(a) && functionArgument(b))
    return isNoAlias(a) || isNoAlias(b);
  return false;
}

static std::optional<int64_t> constantOf(Value value) {
  llvm::APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) &&
      constant.getSignificantBits() <= 64)
    return constant.getSExtValue();
  return std::nullopt;
}

std::optional<LaunchShape> launchShapeOf(gpu::LaunchFuncOp launch) {
  LaunchShape shape;
  auto read = [](gpu::KernelDim3 dims, std::array<int64_t, 3> &into) {
    Value values[3] = {dims.x, dims.y, dims.z};
    for (auto [value, number] : llvm::zip_equal(values, into)) {
      std::optional<int64_t> constant = constantOf(value);
      if (!constant)
        return false;
      number = *constant;
    }
    return true;
  };
  if (!read(launch.getGridSizeOperandValues(), shape.grid) ||
      !read(launch.getBlockSizeOperandValues(), shape.block))
    return std::nullopt;
  if (launch.hasClusterSize() &&
      !read(launch.getClusterSizeOperandValues(), shape.cluster))
    return std::nullopt;
  if (Value bytes = launch.getDynamicSharedMemorySize()) {
    std::optional<int64_t> constant = constantOf(bytes);
    if (!constant)
      return std::nullopt;
    shape.sharedBytes = *constant;
  }
  return shape;
}

/// Lower-case hex of the bits, zero-extended to a whole number of digits.
static std::optional<std::string> constantBitsOf(Value value) {
  Attribute attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return std::nullopt;
  llvm::APInt bits;
  if (auto number = dyn_cast<FloatAttr>(attribute))
    bits = number.getValue().bitcastToAPInt();
  else if (auto integer = dyn_cast<IntegerAttr>(attribute))
    bits = integer.getValue();
  else
    return std::nullopt;
  unsigned digits = std::max(1u, (bits.getBitWidth() + 3) / 4);
  std::string text = llvm::toString(bits, 16, /*Signed=*/false,
                                    /*formatAsCLiteral=*/false,
                                    /*UpperCase=*/false);
  if (text.size() < digits)
    text.insert(0, digits - text.size(), '0');
  return text;
}

std::vector<Argument> argumentsOf(const KernelSite &site) {
  auto kernel = cast<gpu::GPUFuncOp>(site.kernel);
  gpu::LaunchFuncOp launch = site.launches.front();
  std::vector<Argument> arguments;
  std::vector<std::string> names = argumentNames(kernel);
  for (auto [i, name] : llvm::enumerate(names)) {
    Argument argument;
    argument.name = name;
    Type type = kernel.getArgument(i).getType();
    Value operand = launch.getKernelOperand(i);
    if (auto memref = dyn_cast<MemRefType>(type)) {
      argument.isBuffer = true;
      argument.element = *elementTypeOf(memref.getElementType());
      auto [strides, offset] = memref.getStridesAndOffset();
      argument.sizes.assign(memref.getShape().begin(), memref.getShape().end());
      argument.strides.assign(strides.begin(), strides.end());
      argument.offset = offset;
      int64_t natural = byteSize(argument.element);
      int64_t proved = std::max(alignmentOfPointer(operand), natural);
      // gcd(proved, 0) is `proved`.
      argument.alignment = std::gcd(proved, offset * natural);
      AccessWalk walk;
      walk.follow(kernel.getArgument(i));
      argument.access = walk.result();
    } else {
      argument.element = *elementTypeOf(type);
      argument.access = Access::Read;
      argument.constantBits = constantBitsOf(operand);
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

Attribute nvvmTargetOf(gpu::GPUModuleOp module) {
  ArrayAttr targets = module ? module.getTargetsAttr() : ArrayAttr();
  if (targets)
    for (Attribute target : targets)
      if (isa<NVVM::NVVMTargetAttr>(target))
        return target;
  return {};
}

} // namespace fsr
