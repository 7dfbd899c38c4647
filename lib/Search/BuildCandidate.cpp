// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From a candidate and a set of its parameters to code: the part of a trial
// that needs no device, shared by the search and by a check of one answer by
// hand.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Search.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fsr {

/// Some instructions exist only on the architecture-specific form of a chip.
/// Its code runs on no later chip, so it is asked for only where it is needed.
static std::string chipFor(llvm::StringRef source, llvm::StringRef chip) {
  for (llvm::StringRef word : {"wgmma", "setmaxnreg", "tcgen05"})
    if (source.contains(word))
      return (chip + "a").str();
  return chip.str();
}

/// Bytes of what a launch passes for `name`: pointers, sizes and scratch take
/// eight, a scalar what its type does.
static unsigned passedBytes(const KernelTask &task, llvm::StringRef name) {
  const Argument *argument = task.find(name);
  return argument && !argument->isBuffer ? byteSize(argument->element) : 8;
}

llvm::Expected<CandidateBuild> buildCandidate(const KernelTask &task,
                                              const Candidate &candidate,
                                              const Parameters &parameters,
                                              const DeviceDescription &device,
                                              Compiler &compiler) {
  CandidateBuild result;
  auto rejected = [&](std::string message) {
    result.verdict = Verdict::Rejected;
    result.message = std::move(message);
    return std::move(result);
  };
  llvm::Expected<ResolvedPlan> plan =
      resolvePlan(candidate.plan, task, parameters, device.limits);
  if (!plan)
    return rejected(llvm::toString(plan.takeError()));
  result.plan = std::move(*plan);
  llvm::Expected<bool> holds = guardsHold(candidate.guards, task, parameters);
  if (!holds)
    return rejected(llvm::toString(holds.takeError()));
  if (!*holds)
    return rejected(
        "a condition under `requires` does not hold for this kernel: " +
        llvm::join(candidate.guards, "; "));

  CompileRequest request;
  request.source = candidate.source;
  request.parameters = parameters;
  request.chip = chipFor(candidate.source, device.chip);
  for (const ResolvedLaunch &launch : result.plan.launches) {
    if (!llvm::is_contained(request.entries, launch.kernel))
      request.entries.push_back(launch.kernel);
    std::vector<unsigned> passed;
    for (const std::string &name : launch.args)
      passed.push_back(passedBytes(task, name));
    request.passed.emplace_back(launch.kernel, std::move(passed));
  }
  llvm::Expected<CompileOutcome> compiled = compiler.compile(request);
  if (!compiled)
    return compiled.takeError();
  result.build = std::move(compiled->build);
  result.verdict = compiled->verdict;
  result.message = std::move(compiled->message);
  return std::move(result);
}

} // namespace fsr
