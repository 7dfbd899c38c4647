// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel and what it refers to, cloned into a module of its own. The order is
// that of first reference, so neither the kernel's neighbours nor the order of
// the symbols in the user's module is seen in the copy.
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "fsr/Support/Printable.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "llvm/ADT/SetVector.h"

#include <limits>

using namespace mlir;

namespace fsr {

OpPrintingFlags wholeText() {
  OpPrintingFlags flags; // What the command line says, so each is set again.
  flags.enableDebugInfo(false)
      .useLocalScope()
      .skipRegions(false)
      .printGenericOpForm(false)
      .assumeVerified(false)
      .printValueUsers(false)
      .printUniqueSSAIDs(false)
      .printNameLocAsPrefix(false)
      .elideLargeElementsAttrs(std::numeric_limits<int64_t>::max())
      .elideLargeResourceString(std::numeric_limits<int64_t>::max());
  return flags;
}

std::vector<Operation *> closureOf(const KernelSite &site) {
  llvm::SetVector<Operation *> closure;
  closure.insert(site.kernel);
  gpu::GPUModuleOp module = site.gpuModule;
  for (size_t next = 0; next < closure.size(); ++next)
    closure[next]->walk<WalkOrder::PreOrder>([&](Operation *op) {
      op->getAttrDictionary().walk([&](SymbolRefAttr reference) {
        Operation *target = SymbolTable::lookupNearestSymbolFrom(op, reference);
        if (target && target->getParentOp() == module.getOperation())
          closure.insert(target);
      });
    });
  return {closure.begin(), closure.end()};
}

static void dropFsrAttributes(Operation *root) {
  auto isOurs = [](StringAttr name) {
    return name.strref().starts_with("fsr.");
  };
  root->walk([&](Operation *op) {
    for (NamedAttribute attribute : llvm::to_vector(op->getDiscardableAttrs()))
      if (isOurs(attribute.getName()))
        op->removeDiscardableAttr(attribute.getName());
    if (auto function = dyn_cast<FunctionOpInterface>(op))
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        for (NamedAttribute attribute :
             llvm::to_vector(function_interface_impl::getArgAttrs(function, i)))
          if (isOurs(attribute.getName()))
            function.removeArgAttr(i, attribute.getName());
  });
}

OwningOpRef<ModuleOp> isolateKernel(const KernelSite &site) {
  gpu::GPUModuleOp original = site.gpuModule;
  OpBuilder builder(original.getContext());
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(builder, loc));
  module.get()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                        builder.getUnitAttr());
  builder.setInsertionPointToStart(module->getBody());
  auto copy =
      cast<gpu::GPUModuleOp>(builder.insert(original->cloneWithoutRegions()));
  builder.createBlock(&copy.getBodyRegion());
  for (Operation *op : closureOf(site))
    builder.clone(*op);
  dropFsrAttributes(*module);
  return module;
}

std::string nameForPtx(ModuleOp isolated, llvm::StringRef kernelName) {
  std::string newName = kernelName.str();
  gpu::GPUModuleOp module = *isolated.getOps<gpu::GPUModuleOp>().begin();
  SymbolTable table(module);
  for (Operation &op : llvm::make_early_inc_range(module.getOps())) {
    StringAttr symbol =
        op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (!symbol)
      continue;
    std::string name = identifierOf(symbol);
    if (name == symbol)
      continue;
    while (table.lookup(name))
      name += "_";
    // References from within the module are all there are.
    if (failed(table.rename(&op, name)))
      continue;
    if (symbol == kernelName)
      newName = name;
  }
  return newName;
}

} // namespace fsr
