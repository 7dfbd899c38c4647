// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One pass over the kernels. What fails before anything was asked for is an
// error; what fails later keeps the original and is a warning.
//
//===----------------------------------------------------------------------===//

#include "Replacer.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Printable.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Process.h"

using namespace mlir;

namespace fsr {

std::string storeFolder(llvm::StringRef option) {
  if (!option.empty())
    return option.str();
  return llvm::sys::Process::GetEnv("FSR_STORE").value_or("");
}

bool isChosen(llvm::ArrayRef<std::string> only, llvm::StringRef name) {
  return only.empty() || llvm::is_contained(only, name);
}

void Replacer::trouble(Location loc, const llvm::Twine &message) {
  hadTrouble = true;
  // It may hold what a provider, a child or a store said.
  std::string text = printable(message.str(), /*keepLines=*/true);
  if (options.strict)
    emitError(loc) << "fsr: " << text;
  else
    emitWarning(loc) << "fsr: " << text;
}

LogicalResult Replacer::put(KernelSite &site, KernelOutcome &outcome) {
  Location loc = site.kernel->getLoc();
  if (llvm::Error error = splice(site, *outcome.record)) {
    outcome.kind = KernelOutcome::Kind::Kept;
    outcome.remark = "SpliceFailed";
    outcome.reason = "could not be spliced";
    outcome.detail = llvm::toString(std::move(error));
    outcome.record.reset();
    trouble(loc, "kernel '" + outcome.name + "' kept: " + outcome.detail);
    return success();
  }
  changed = true;
  outcome.kind = KernelOutcome::Kind::Replaced;
  outcome.remark = "Replaced";
  outcome.detail.clear(); // Of the miss that led to a search.
  return success();
}

LogicalResult Replacer::one(KernelSite &site, RecordStore *store,
                            const Miss &miss) {
  KernelOutcome &outcome = results.emplace_back();
  outcome.name = site.name;
  Location loc = site.kernel->getLoc();
  auto keep = [&](llvm::StringRef remark, llvm::StringRef reason,
                  const llvm::Twine &detail) {
    outcome.remark = remark.str();
    outcome.reason = reason.str();
    outcome.detail = detail.str();
  };
  auto finish = [&] {
    emitRemark(loc, outcome);
    return success();
  };

  if (!isChosen(options.only, site.name)) {
    keep("NotChosen", "not named by only", "not named by the option only");
    return finish();
  }
  if (!site.whyNot.empty()) {
    keep("NotTaken", "not taken", site.whyNot);
    return finish();
  }
  ++current;
  llvm::Expected<std::string> target = targetOf(site, options.target);
  if (!target)
    return emitError(loc) << "fsr: "
                          << printable(llvm::toString(target.takeError()),
                                       true);
  if (target->empty() && options.deviceTarget) {
    target = options.deviceTarget();
    if (!target)
      return emitError(loc)
             << "fsr: " << printable(llvm::toString(target.takeError()), true);
  }
  if (target->empty()) {
    keep("NoTarget", "no target",
         "no target: give the option target=sm_XX, or attach #nvvm.target to "
         "the gpu.module");
    trouble(loc, "kernel '" + site.name + "' kept: " + outcome.detail);
    return finish();
  }
  llvm::Expected<std::string> key = keyer.key(site, *target);
  if (!key) {
    keep("NotTaken", "not taken", llvm::toString(key.takeError()));
    return finish();
  }
  outcome.key = *key;

  if (store) {
    EvidenceLevel level = options.accept == AcceptLevel::Measured
                              ? EvidenceLevel::Measured
                              : EvidenceLevel::Modelled;
    llvm::Expected<LookUp> found = store->best(*key, *target, level);
    if (!found) {
      bool corrupt = false;
      std::string message;
      llvm::handleAllErrors(
          found.takeError(),
          [&](const FsrError &error) {
            corrupt = error.kind == ErrorKind::Corrupt;
            message = error.message;
          },
          [&](const llvm::ErrorInfoBase &error) { message = error.message(); });
      if (corrupt) // Never passed over: somebody changed what was validated.
        return emitError(loc) << "fsr: " << printable(message, true);
      keep("StoreTrouble", "the store could not be read", message);
      trouble(loc, "kernel '" + site.name + "' kept: " + message);
      return finish();
    }
    skipped += found->skipped.size();
    for (const std::string &sentence : found->skipped)
      emitWarning(loc) << "fsr: " << printable(sentence);
    outcome.record = std::move(found->record);
  }
  bool hit = outcome.record.has_value();
  if (!hit) {
    keep("StoreMiss", "no record", "no record in the store for " + *target);
    // Who searched without a GPU finds records that nothing takes by default.
    if (store && options.accept == AcceptLevel::Measured) {
      llvm::Expected<LookUp> modelled =
          store->best(*key, *target, EvidenceLevel::Modelled);
      if (!modelled)
        llvm::consumeError(modelled.takeError());
      else if (modelled->record)
        keep("StoreMiss", "only modelled",
             "no measured record in the store for " + *target +
                 ", only modelled ones; accept=modelled takes them");
    }
  }
  if (!hit || (options.searchesOn && options.searchesOn(*key))) {
    // The same kernel again is the same question: asked once a run.
    auto [known, isNew] = missed.try_emplace(*key + *target);
    if (isNew) {
      if (miss)
        if (llvm::Error error = miss(site, *target, outcome))
          return emitError(loc)
                 << "fsr: "
                 << printable(llvm::toString(std::move(error)), true);
      known->second = outcome;
    } else {
      std::string name = outcome.name;
      outcome = known->second;
      outcome.name = std::move(name);
      outcome.trials.clear();
      outcome.pending.clear();
    }
  }
  if (outcome.record && failed(put(site, outcome)))
    return failure();
  return finish();
}

std::vector<std::string> Replacer::taskKeys() {
  std::vector<std::string> keys;
  // A kernel that was replaced is another one now.
  for (const KernelOutcome &outcome : results)
    if (!outcome.key.empty())
      keys.push_back(outcome.key);
  for (const KernelSite &site : llvm::drop_begin(sites, results.size())) {
    if (!isChosen(options.only, site.name) || !site.whyNot.empty())
      continue;
    llvm::Expected<std::string> key = targetOf(site, options.target);
    if (key && key->empty() && options.deviceTarget)
      key = options.deviceTarget();
    if (key && !key->empty())
      key = keyer.key(site, *key);
    // What is wrong with it is said in its turn.
    if (!key)
      llvm::consumeError(key.takeError());
    else if (!key->empty())
      keys.push_back(std::move(*key));
  }
  return keys;
}

/// A name that fits no kernel is most likely misspelt.
void Replacer::warnOfUnknownNames() {
  std::string there;
  for (const KernelSite &site : sites)
    there += (there.empty() ? "" : ", ") + site.name;
  for (const std::string &name : options.only)
    if (llvm::none_of(
            sites, [&](const KernelSite &site) { return name == site.name; }))
      emitWarning(module.getLoc())
          << "fsr: option only: no kernel is called '" << printable(name)
          << "'; there " << (there.empty() ? "are none" : "is: ")
          << printable(there);
}

LogicalResult Replacer::run(RecordStore *store, const Miss &miss) {
  sites = findKernels(module);
  results.reserve(sites.size());
  taken = llvm::count_if(sites, [&](const KernelSite &site) {
    return isChosen(options.only, site.name) && site.whyNot.empty();
  });
  warnOfUnknownNames();
  LogicalResult result = success();
  for (KernelSite &site : sites) {
    if (failed(one(site, store, miss))) {
      KernelOutcome &last = results.back();
      if (last.remark.empty()) {
        last.remark = "Failed";
        last.detail = "an error ended the run at this kernel";
        last.record.reset();
      }
      result = failure();
      break;
    }
  }
  if (!options.quiet && succeeded(result))
    llvm::errs() << summaryLine(results, skipped) << "\n";
  if (options.strict && hadTrouble)
    return failure();
  return result;
}

} // namespace fsr
