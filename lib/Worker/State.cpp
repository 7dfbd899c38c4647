// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a launch leaves in the module's own variables is there in the next one,
// which no program that a kernel is spliced into reckons with. The contract
// reads that off the code; here the bytes themselves are held against those
// that were loaded, after every run that is looked at. What a launch changes
// and puts back is no state.
//
// The names come from the PTX, as both devices find a variable by its name,
// also one that the assembler made local. Constant memory cannot be written.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"
#include "PtxFacts.h"

#include "fsr/PTX/Module.h"
#include "fsr/Support/Error.h"

namespace fsr {

namespace {

/// As the contract allows; a copy of them is kept on the host.
constexpr uint64_t mostVariableBytes = uint64_t(16) << 20;

/// Whether an image has the name in a table of symbols.
bool namesSymbol(llvm::StringRef image, const std::string &name) {
  return image.contains(std::string(1, '\0') + name + std::string(1, '\0'));
}

} // namespace

llvm::Expected<bool> Evaluation::keepVariables() {
  std::string text = images.candidatePtx.str();
  if (text.empty()) {
    auto found = findPtx(images.candidate, helpers.properties().chip);
    if (found)
      text = std::move(*found);
    else
      llvm::consumeError(found.takeError());
  }
  if (text.empty())
    return true;
  auto module = ptx::parseModule(text);
  if (!module) {
    llvm::consumeError(module.takeError());
    // Without a variable there is nothing to look at.
    if (!mayDeclareGlobal(text))
      return true;
    return finish(Verdict::Rejected,
                  "the PTX cannot be read, so nobody can tell whether its "
                  "variables in device memory change");
  }
  uint64_t all = 0;
  for (const ptx::Variable &one : (*module)->variables) {
    if (one.space != ptx::Space::Global)
      continue;
    auto place = candidate->variable(one.name);
    if (!place) {
      bool isMissing = false;
      llvm::Error rest = llvm::handleErrors(
          place.takeError(),
          [&](std::unique_ptr<BackendError> error) -> llvm::Error {
            if (!error->isNotFound())
              return llvm::Error(std::move(error));
            isMissing = true;
            return llvm::Error::success();
          });
      if (!isMissing)
        return std::move(rest);
      llvm::consumeError(std::move(rest));
      // The assembler drops what nothing uses.
      if (!namesSymbol(images.candidate, one.name))
        continue;
      return finish(Verdict::Rejected,
                    "the device does not say where the module variable `" +
                        one.name +
                        "` lies, so nobody can tell whether it changes");
    }
    auto [pointer, bytes] = *place;
    if (bytes > mostVariableBytes - all)
      return finish(Verdict::Rejected,
                    "the module's variables take over " +
                        llvm::Twine(mostVariableBytes) +
                        " bytes: use a scratch buffer of the plan");
    all += bytes;
    KeptVariable kept;
    kept.name = one.name;
    kept.pointer = pointer;
    kept.bytes.resize(bytes);
    if (llvm::Error error = helpers.backend().copyToHost(
            kept.bytes.data(), pointer, bytes, helpers.stream()))
      return std::move(error);
    variables.push_back(std::move(kept));
  }
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  return true;
}

llvm::Expected<bool> Evaluation::checkVariables(llvm::StringRef inputWords) {
  for (const KeptVariable &kept : variables) {
    std::string now(kept.bytes.size(), '\0');
    if (llvm::Error error = helpers.backend().copyToHost(
            now.data(), kept.pointer, now.size(), helpers.stream()))
      return std::move(error);
    if (llvm::Error error = helpers.synchronize())
      return std::move(error);
    if (now == kept.bytes)
      continue;
    std::string what = "the module variable `" + kept.name +
                       "` was changed by a launch: what survives a launch is "
                       "state, and a program is spliced without it; use a "
                       "scratch buffer of the plan";
    addCheck("module-variables", false, inputWords, "the bytes loaded", what);
    return finish(Verdict::Rejected, what + " (" + inputWords + " inputs)");
  }
  return true;
}

} // namespace fsr
