// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finds every form in which a kernel stands in a module, and gives each one
// that is not taken its one sentence. The rule: a kernel is taken only where
// its task, its key and its new launch can be made with nothing guessed.
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Printable.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace fsr {
namespace {

/// More would pass no driver: the parameter space of a kernel is 4 KiB.
constexpr unsigned maxArguments = 256;

bool isLoweredKernel(Operation *op) {
  return isa<LLVM::LLVMFuncOp>(op) &&
         (op->hasAttr(gpu::GPUDialect::getKernelFuncAttrName()) ||
          op->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()));
}

std::string quoted(llvm::StringRef name) { return "'" + printable(name) + "'"; }

/// What a kernel is called to people: a symbol may hold any bytes, and none,
/// and a task's name is not longer than this.
std::string nameForPeople(llvm::StringRef symbol) {
  std::string name = printable(symbol);
  size_t size = std::min<size_t>(name.size(), 1024);
  while ((static_cast<unsigned char>(name[size]) & 0xc0) == 0x80)
    --size; // A whole character.
  name.resize(size);
  return name.empty() ? "unnamed" : name;
}

/// One walk over the module: who launches a kernel, and who else names it.
class References {
public:
  explicit References(ModuleOp module) {
    module.walk([&](Operation *op) {
      auto launch = dyn_cast<gpu::LaunchFuncOp>(op);
      op->getAttrDictionary().walk([&](SymbolRefAttr reference) {
        Operation *target = tables.lookupNearestSymbolFrom(op, reference);
        if (!target)
          return;
        if (launch && reference == launch.getKernel())
          launches[target].push_back(launch);
        else
          others[target] = op;
      });
    });
  }

  SymbolTableCollection tables;
  llvm::DenseMap<Operation *, std::vector<gpu::LaunchFuncOp>> launches;
  llvm::DenseMap<Operation *, Operation *> others;
};

std::string reasonAgainstLaunch(gpu::LaunchFuncOp launch) {
  if (launch.getAsyncObject())
    return "its launch runs on a stream object, which is a form of lowered "
           "code";
  if (launch.getKernel().getNestedReferences().size() != 1)
    return "its launch names it through nested modules";
  if (launch->getParentOfType<gpu::GPUModuleOp>())
    return "it is launched from device code";
  std::optional<LaunchShape> shape = launchShapeOf(launch);
  if (!shape)
    return "its grid, block, cluster or dynamic shared memory size is not a "
           "constant at the launch";
  for (int64_t size : shape->grid)
    if (size <= 0)
      return "its launch has no blocks";
  // No GPU runs more, so there would be nothing to compare with.
  LaunchLimits most;
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (shape->grid[i] > most.grid[i] || shape->block[i] > most.block[i])
      return "its launch is larger than any GPU's limits";
    threads *= std::max<int64_t>(shape->block[i], 1);
  }
  if (threads > most.threadsPerBlock)
    return "its launch has more threads a block than any GPU runs";
  for (int64_t size : shape->block)
    if (size <= 0)
      return "its launch has no threads";
  for (int64_t size : shape->cluster)
    if (size <= 0)
      return "its launch has an empty cluster";
  if (shape->sharedBytes < 0)
    return "its launch has a negative amount of dynamic shared memory";
  return "";
}

/// What one operation of the kernel, or of a function it calls, rules out.
std::string reasonAgainstOperation(Operation *op, gpu::GPUModuleOp module,
                                   SymbolTableCollection &tables) {
  llvm::StringRef name = op->getName().getStringRef();
  if (!op->isRegistered())
    return "it has the unregistered operation " + quoted(name);
  if (isa<gpu::PrintfOp>(op))
    return "it prints, and a rewrite would have to print the same";
  if (isa<cf::AssertOp>(op))
    return "it asserts, and a rewrite would have to stop in the same cases";
  if (isa<gpu::LaunchOp, gpu::LaunchFuncOp>(op))
    return "it launches another kernel";
  if (isa<LLVM::IntToPtrOp>(op))
    return "it makes a pointer from an integer, so what it touches is unknown";
  if (auto call = dyn_cast<CallOpInterface>(op)) {
    auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
    if (!symbol)
      return "it calls a function that is only known at run time";
    std::string callee = quoted(symbol.getLeafReference().getValue());
    Operation *target = tables.lookupNearestSymbolFrom(op, symbol);
    if (!target || target->getParentOp() != module.getOperation())
      return "it calls " + callee + ", which is not in its gpu.module";
    auto function = dyn_cast<FunctionOpInterface>(target);
    if (!function || function.isExternal())
      return "it calls " + callee + ", which has no body";
  }
  return "";
}

/// What a global that the kernel refers to rules out.
std::string reasonAgainstGlobal(Operation *op) {
  bool constant = true;
  if (auto global = dyn_cast<memref::GlobalOp>(op))
    constant = global.getConstant() && !global.isUninitialized();
  else if (auto global = dyn_cast<LLVM::GlobalOp>(op))
    // Shared memory (address space 3) does not outlive a block.
    constant = global.getConstant() || global.getAddrSpace() == 3;
  if (constant)
    return "";
  return "it uses the global " +
         quoted(SymbolTable::getSymbolName(op).getValue()) +
         ", whose value outlives a launch";
}

std::string reasonAgainstBody(const KernelSite &site,
                              SymbolTableCollection &tables) {
  bool dynamicShared = false;
  for (Operation *part : closureOf(site)) {
    std::string reason = reasonAgainstGlobal(part);
    if (!reason.empty())
      return reason;
    part->walk([&](Operation *op) {
      dynamicShared |= isa<gpu::DynamicSharedMemoryOp>(op);
      if (op != part)
        reason = reasonAgainstOperation(op, site.gpuModule, tables);
      return reason.empty() ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (!reason.empty())
      return reason;
  }
  auto kernel = cast<gpu::GPUFuncOp>(site.kernel);
  if (dynamicShared && kernel.getNumWorkgroupAttributions() != 0)
    return "it has both static and dynamic shared memory, which overlap when "
           "MLIR 22 lowers them";
  return "";
}

std::string reasonAgainst(const KernelSite &site, References &references) {
  if (isLoweredKernel(site.kernel))
    return "it is an llvm.func already; run FSR before convert-gpu-to-nvvm";
  auto kernel = cast<gpu::GPUFuncOp>(site.kernel);
  if (kernel.isExternal())
    return "it has no body";
  if (kernel->hasAttr("fsr.keep"))
    return "it is marked fsr.keep";
  if (site.launches.empty())
    return references.launches.count(site.kernel)
               ? "it is the fallback of a kernel that was replaced"
               : "nothing in the module launches it";
  if (site.launches.size() != 1 || references.launches[site.kernel].size() != 1)
    return "it is launched from " +
           std::to_string(references.launches[site.kernel].size()) +
           " places; a kernel with one launch is taken";
  if (references.others.count(site.kernel))
    return "something other than its launch refers to it: " +
           quoted(references.others[site.kernel]->getName().getStringRef());
  gpu::LaunchFuncOp launch = site.launches.front();
  std::string reason = reasonAgainstLaunch(launch);
  if (!reason.empty())
    return reason;
  if (kernel.getNumArguments() > maxArguments)
    return "it has " + std::to_string(kernel.getNumArguments()) +
           " arguments; at most " + std::to_string(maxArguments) +
           " are supported";
  if (kernel.getNumArguments() != launch.getNumKernelOperands())
    return "its launch passes another number of arguments than it takes";
  std::vector<std::string> names = argumentNames(kernel);
  for (auto [name, type] : llvm::zip_equal(names, kernel.getArgumentTypes())) {
    reason = reasonAgainstArgument(name, type);
    if (!reason.empty())
      return reason;
  }
  // Candidates are checked with buffers of their own. Where two of the kernel's
  // may share memory and one is written, that says nothing.
  std::vector<Argument> arguments = argumentsOf(site);
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t j = i + 1; j < arguments.size(); ++j) {
      if (!arguments[i].isBuffer || !arguments[j].isBuffer)
        continue;
      auto writes = [](const Argument &argument) {
        return argument.access == Access::Write ||
               argument.access == Access::ReadWrite;
      };
      if ((writes(arguments[i]) || writes(arguments[j])) &&
          !provedDisjoint(launch.getKernelOperand(i),
                          launch.getKernelOperand(j)))
        return "its arguments " + names[i] + " and " + names[j] +
               " may overlap, and one of them is written; allocate them in "
               "this function, or mark the function's arguments llvm.noalias";
    }
  // A record is proved for the values that it was checked with, and no others.
  for (auto [name, operand] :
       llvm::zip_equal(names, launch.getKernelOperands()))
    if (!isa<MemRefType>(operand.getType()) &&
        !matchPattern(operand, m_Constant()))
      return "its argument " + name +
             " is a scalar that is no constant at the launch";
  // The key and the reference hold neither of these two.
  if (DataLayout::closest(kernel).getTypeSizeInBits(
          IndexType::get(kernel.getContext())) != 64)
    return "its module gives index another width than 64 bits";
  for (Operation *op : closureOf(site)) {
    bool resource = false;
    op->walk([&](Operation *inner) {
      for (NamedAttribute attribute : inner->getAttrs())
        attribute.getValue().walk(
            [&](DenseResourceElementsAttr) { resource = true; });
      return resource ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (resource)
      return "it uses a dense_resource, whose bytes are outside the IR";
  }
  return reasonAgainstBody(site, references.tables);
}

std::string nameOfLaunch(gpu::LaunchOp launch) {
  if (auto function = launch.getFunctionAttr())
    return function.getValue().str();
  if (auto parent = launch->getParentOfType<FunctionOpInterface>())
    return (parent.getName() + "_kernel").str();
  return "gpu.launch";
}

} // namespace

std::vector<KernelSite> findKernels(ModuleOp module) {
  References references(module);
  std::vector<KernelSite> sites;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto launch = dyn_cast<gpu::LaunchOp>(op)) {
      KernelSite site;
      site.kernel = op;
      site.name = nameOfLaunch(launch);
      site.whyNot = "it is a gpu.launch; run gpu-kernel-outlining first";
      sites.push_back(std::move(site));
      return;
    }
    auto function = dyn_cast<gpu::GPUFuncOp>(op);
    if (!(function && function.isKernel()) && !isLoweredKernel(op))
      return;
    KernelSite site;
    site.kernel = op;
    site.gpuModule = dyn_cast<gpu::GPUModuleOp>(op->getParentOp());
    site.name = nameForPeople(SymbolTable::getSymbolName(op).getValue());
    auto found = references.launches.find(op);
    if (found != references.launches.end())
      for (gpu::LaunchFuncOp launch : found->second)
        if (!launch->hasAttr("fsr.fallback"))
          site.launches.push_back(launch);
    site.whyNot = reasonAgainst(site, references);
    sites.push_back(std::move(site));
  });
  return sites;
}

llvm::Expected<std::string> targetOf(const KernelSite &site,
                                     llvm::StringRef option) {
  std::string chip = option.str();
  if (chip.empty())
    if (auto target = dyn_cast_if_present<NVVM::NVVMTargetAttr>(
            nvvmTargetOf(site.gpuModule)))
      chip = target.getChip().str();
  if (chip.empty())
    return std::string();
  if (auto parsed = Target::parse(chip); !parsed)
    return addContext(parsed.takeError(), "target of kernel " + site.name);
  return chip;
}

} // namespace fsr
