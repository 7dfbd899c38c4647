// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part that fsr-apply and fsr-optimize-gpu share: go through the kernels of
// a module, ask the store, splice, and keep account of what became of each.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TRANSFORMS_REPLACER_H
#define FSR_LIB_TRANSFORMS_REPLACER_H

#include "Outcome.h"

#include "fsr/IR/KernelKeyer.h"
#include "fsr/IR/Kernels.h"
#include "fsr/Store/Store.h"
#include "fsr/Transforms/Passes.h"

#include "llvm/ADT/StringMap.h"

#include <functional>

namespace fsr {

struct ReplacerOptions {
  std::string store, target;
  llvm::ArrayRef<std::string> only;
  AcceptLevel accept = AcceptLevel::Measured;
  bool strict = false, quiet = false;
  /// Says whether a kernel that has a record goes the way of one that has none,
  /// its record in hand. Empty: none does.
  std::function<bool(llvm::StringRef taskKey)> searchesOn;
  /// Asked once for the target where neither the option nor the module names
  /// one; may be empty.
  std::function<llvm::Expected<std::string>()> deviceTarget;
};

/// The store folder: the option, else $FSR_STORE, else empty.
std::string storeFolder(llvm::StringRef option);

class Replacer {
public:
  /// Asked for a kernel that has no record, or that is searched on. Fills
  /// `outcome`; sets its record where there is a winner now. An error stops the
  /// run.
  using Miss = std::function<llvm::Error(
      KernelSite &site, llvm::StringRef target, KernelOutcome &outcome)>;

  Replacer(mlir::ModuleOp module, const ReplacerOptions &options)
      : module(module), options(options) {}

  /// The run over the whole module. Failure: something could not start, a
  /// record was changed, or there was trouble under `strict`; the error is
  /// emitted, and kernels replaced before it stay replaced.
  mlir::LogicalResult run(RecordStore *store, const Miss &miss);

  /// Warns of trouble after the start; under `strict` it is an error.
  void trouble(mlir::Location loc, const llvm::Twine &message);

  /// Keys of all kernels that the run goes through, as far as they have one.
  /// To be called within `miss`.
  std::vector<std::string> taskKeys();

  llvm::ArrayRef<KernelOutcome> outcomes() const { return results; }
  bool changedModule() const { return changed; }
  /// Which kernel is being done, from 1, among those that are chosen and taken,
  /// and how many these are.
  unsigned number() const { return current; }
  unsigned numTaken() const { return taken; }

private:
  mlir::LogicalResult one(KernelSite &site, RecordStore *store,
                          const Miss &miss);
  void warnOfUnknownNames();
  mlir::LogicalResult put(KernelSite &site, KernelOutcome &outcome);

  mlir::ModuleOp module;
  const ReplacerOptions &options;
  KernelKeyer keyer;
  std::vector<KernelSite> sites;
  /// What became of a key and target that missed, for its next kernel.
  llvm::StringMap<KernelOutcome> missed;
  std::vector<KernelOutcome> results;
  bool changed = false;
  bool hadTrouble = false;
  unsigned skipped = 0; ///< Records passed over.
  unsigned current = 0, taken = 0;
};

/// Whether `name` is among `only`, or `only` is empty.
bool isChosen(llvm::ArrayRef<std::string> only, llvm::StringRef name);

/// Lowers the original in a child (`fsr-opt --fsr-lower-reference`) and sets
/// `task.reference.ptx`: NVPTX may end the process that it runs in.
llvm::Error lowerReferenceInChild(KernelTask &task);

} // namespace fsr

#endif // FSR_LIB_TRANSFORMS_REPLACER_H
