// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsr-apply: winners from the store, and nothing else.
//
//===----------------------------------------------------------------------===//

#include "Replacer.h"

namespace fsr {
#define GEN_PASS_DEF_APPLYPASS
#include "fsr/Transforms/Passes.h.inc"
} // namespace fsr

using namespace mlir;

namespace {

struct ApplyPass : fsr::impl::ApplyPassBase<ApplyPass> {
  using ApplyPassBase::ApplyPassBase;

  void getDependentDialects(DialectRegistry &registry) const final {
    fsr::insertSpliceDialects(registry);
  }
  void runOnOperation() final {
    ModuleOp module = getOperation();
    fsr::ReplacerOptions options;
    options.store = fsr::storeFolder(storePath);
    options.target = target;
    options.only = only;
    options.accept = accept;
    options.strict = strict;
    options.quiet = quiet;
    if (options.store.empty()) {
      emitError(module.getLoc())
          << "fsr: no store: give the option store=FOLDER or set FSR_STORE";
      return signalPassFailure();
    }
    llvm::Expected<std::unique_ptr<fsr::SearchStore>> store =
        fsr::openStore(options.store, fsr::StoreMode::Read);
    if (!store) {
      emitError(module.getLoc())
          << "fsr: " << llvm::toString(store.takeError());
      return signalPassFailure();
    }
    fsr::Replacer replacer(module, options);
    if (failed(replacer.run(store->get(), nullptr)))
      return signalPassFailure();
    if (!replacer.changedModule())
      markAllAnalysesPreserved();
  }
};

} // namespace
