// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The name of a kernel in a store. Everything that may differ between two
// modules without changing what a record proves is taken out first: symbol
// names, locations, neighbours, the order of constants, `fsr.*` attributes, and
// of the target all but its family and its fast-math flags.
//
// The text that is hashed depends on the canonicalizer and the printer of one
// LLVM release; its version is hashed too, so another release is a miss.
//
//===----------------------------------------------------------------------===//

#include "fsr/IR/KernelKeyer.h"

#include "KernelFacts.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/Config/llvm-config.h"

#include <set>

using namespace mlir;

namespace fsr {
namespace {

constexpr int64_t keyFormatVersion = 1;

gpu::GPUModuleOp gpuModuleIn(ModuleOp module) {
  return *module.getOps<gpu::GPUModuleOp>().begin();
}

/// Names every symbol by its place in the closure, which is that of its first
/// reference.
void renameSymbols(ModuleOp module) {
  gpu::GPUModuleOp inner = gpuModuleIn(module);
  MLIRContext *context = module.getContext();
  llvm::DenseMap<StringAttr, StringAttr> names;
  int64_t next = 0;
  for (Operation &op : inner.getOps())
    if (StringAttr name = SymbolTable::getSymbolName(&op))
      names[name] = StringAttr::get(context, "s" + std::to_string(next++));
  names[inner.getNameAttr()] = StringAttr::get(context, "m");
  AttrTypeReplacer replacer;
  replacer.addReplacement(
      [&](SymbolRefAttr reference) -> std::pair<Attribute, WalkResult> {
        auto rename = [&](StringAttr name) {
          auto found = names.find(name);
          return found == names.end() ? name : found->second;
        };
        llvm::SmallVector<FlatSymbolRefAttr> nested;
        for (FlatSymbolRefAttr part : reference.getNestedReferences())
          nested.push_back(FlatSymbolRefAttr::get(rename(part.getAttr())));
        return {
            SymbolRefAttr::get(rename(reference.getRootReference()), nested),
            WalkResult::skip()};
      });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/false);
  for (Operation &op : inner.getOps())
    if (StringAttr name = SymbolTable::getSymbolName(&op)) {
      SymbolTable::setSymbolName(&op, names[name]);
      op.removeAttr(SymbolTable::getVisibilityAttrName());
    }
  SymbolTable::setSymbolName(inner, names[inner.getNameAttr()]);
}

std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// Constants stand first in a block after canonicalization, in an order that
/// tells how they came to be. Sorted by value they do not.
void sortConstants(ModuleOp module) {
  module.walk([](Block *block) {
    std::vector<std::pair<std::string, Operation *>> constants;
    for (Operation &op : *block)
      if (op.hasTrait<OpTrait::ConstantLike>() && op.getNumResults() == 1 &&
          op.getNumOperands() == 0)
        constants.push_back(
            {op.getName().getStringRef().str() + textOf(op.getAttrDictionary()),
             &op});
    llvm::sort(constants,
               [](const auto &a, const auto &b) { return a.first < b.first; });
    for (auto &[text, op] : llvm::reverse(constants))
      op->moveBefore(block, block->begin());
  });
}

/// The dialects whose patterns can fire: those in use, and those that patterns
/// of these make operations of.
std::set<std::string> dialectsIn(ModuleOp module) {
  std::set<std::string> names = {"arith", "gpu", "memref", "scf"};
  module.walk([&](Operation *op) {
    names.insert(op->getName().getDialectNamespace().str());
  });
  return names;
}

FrozenRewritePatternSet patternsOf(MLIRContext *context,
                                   const std::set<std::string> &names) {
  RewritePatternSet patterns(context);
  for (const std::string &name : names) {
    if (Dialect *dialect = context->getLoadedDialect(name))
      dialect->getCanonicalizationPatterns(patterns);
    for (RegisteredOperationName op :
         context->getRegisteredOperationsByDialect(name))
      op.getCanonicalizationPatterns(patterns, context);
  }
  return FrozenRewritePatternSet(std::move(patterns));
}

} // namespace

llvm::Expected<std::string> KernelKeyer::key(const KernelSite &site,
                                             llvm::StringRef targetName) {
  if (!site.whyNot.empty())
    return makeError(ErrorKind::Unsupported,
                     "kernel " + site.name + " has no key: " + site.whyNot);
  llvm::Expected<Target> target = Target::parse(targetName);
  if (!target)
    return addContext(target.takeError(), "key of kernel " + site.name);

  OwningOpRef<ModuleOp> module = isolateKernel(site);
  gpuModuleIn(*module).removeTargetsAttr();
  renameSymbols(*module);
  std::set<std::string> dialects = dialectsIn(*module);
  std::string setName = llvm::join(dialects, ",");
  auto found = patterns.find(setName);
  if (found == patterns.end())
    found =
        patterns.emplace(setName, patternsOf(module->getContext(), dialects))
            .first;
  // Not reaching a fixpoint is deterministic too, so it is no error here.
  (void)applyPatternsGreedily(module->getOperation(), found->second);
  {
    IRRewriter rewriter(module->getContext());
    DominanceInfo dominance(*module);
    eliminateCommonSubExpressions(rewriter, dominance, *module);
  }
  sortConstants(*module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, wholeText().printGenericOpForm());

  FieldHasher hasher;
  hasher.add("fsr kernel").add(keyFormatVersion);
  hasher.add(int64_t(LLVM_VERSION_MAJOR)).add(int64_t(LLVM_VERSION_MINOR));
  hasher.add(target->family()).add(text);
  // These change what the original is allowed to compute.
  auto attribute =
      dyn_cast_if_present<NVVM::NVVMTargetAttr>(nvvmTargetOf(site.gpuModule));
  hasher.add(int64_t(attribute && attribute.hasFastMath()));
  hasher.add(int64_t(attribute && attribute.hasFtz()));

  gpu::LaunchFuncOp launch = site.launches.front();
  LaunchShape shape = *launchShapeOf(launch);
  for (auto *sizes : {&shape.grid, &shape.block, &shape.cluster})
    for (int64_t size : *sizes)
      hasher.add(size);
  hasher.add(shape.sharedBytes);
  std::vector<Argument> arguments = argumentsOf(site);
  hasher.add(int64_t(arguments.size()));
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    // Shapes are in the kernel's text; names do not count.
    hasher.add(argument.alignment);
    hasher.add(argument.constantBits ? "=" + *argument.constantBits : "");
    for (size_t j = 0; j < i; ++j)
      hasher.add(int64_t(argument.isBuffer && arguments[j].isBuffer &&
                         provedDisjoint(launch.getKernelOperand(j),
                                        launch.getKernelOperand(i))));
  }
  return hasher.digest();
}

llvm::Expected<std::string> kernelKey(const KernelSite &site,
                                      llvm::StringRef target) {
  return KernelKeyer().key(site, target);
}

} // namespace fsr
