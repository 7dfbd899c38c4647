// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsr-extract: tasks as files, for searches that have no module at hand.
//
//===----------------------------------------------------------------------===//

#include "Replacer.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"
#include "fsr/Support/Printable.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

namespace fsr {
#define GEN_PASS_DEF_EXTRACTPASS
#include "fsr/Transforms/Passes.h.inc"
} // namespace fsr

using namespace mlir;

namespace {

struct ExtractPass : fsr::impl::ExtractPassBase<ExtractPass> {
  using ExtractPassBase::ExtractPassBase;

  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (output.empty()) {
      emitError(module.getLoc())
          << "fsr: no folder to write to: give the option output=FOLDER";
      return signalPassFailure();
    }
    fsr::ReplacerOptions options;
    options.target = target;
    options.only = only;
    options.quiet = quiet;
    fsr::Replacer run(module, options);
    LogicalResult result =
        run.run(nullptr, [&](fsr::KernelSite &site, llvm::StringRef chosen,
                             fsr::KernelOutcome &outcome) {
          return write(run, site, chosen, outcome);
        });
    if (failed(result))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  llvm::Error write(fsr::Replacer &run, fsr::KernelSite &site,
                    llvm::StringRef chosen, fsr::KernelOutcome &outcome) {
    llvm::Expected<fsr::KernelTask> task = fsr::cutKernel(site, chosen);
    if (!task)
      return task.takeError();
    if (llvm::Error error = fsr::lowerReferenceInChild(*task))
      run.trouble(site.kernel->getLoc(), "kernel '" + site.name +
                                             "' extracted without its PTX: " +
                                             llvm::toString(std::move(error)));
    llvm::SmallString<256> path(output);
    llvm::sys::path::append(path, fsr::identifierOf(task->name) + "-" +
                                      fsr::shortHash(task->key) + ".json");
    outcome.remark = "Extracted";
    outcome.reason = "extracted";
    outcome.detail = "written to " + path.str().str();
    return fsr::writeFileAtomically(path, fsr::printTask(*task));
  }
};

} // namespace
