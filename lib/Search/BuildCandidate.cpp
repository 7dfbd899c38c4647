// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From a candidate and a set of its parameters to code: the part of a trial
// that needs no device, shared by the search and by a check of one answer by
// hand.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Search.h"

#include "fsr/Support/Hash.h"

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

/// What a launch passes for `name`: pointers, sizes and scratch take eight
/// bytes, a scalar what its type does.
static PassedArgument passedFor(const KernelTask &task,
                                const ResolvedPlan &plan,
                                const std::string &name) {
  PassedArgument passed;
  passed.name = name;
  passed.bytes = 8;
  const Argument *argument = task.find(name);
  bool isScratch = llvm::any_of(plan.scratch, [&](const ResolvedScratch &each) {
    return each.name == name;
  });
  if (isScratch || (argument && argument->isBuffer)) {
    passed.kind = PassedArgument::Buffer;
  } else if (argument) {
    passed.bytes = byteSize(argument->element);
    if (isFloat(argument->element))
      passed.kind = PassedArgument::Float;
  }
  return passed;
}

std::string codeOf(const Build &build, const ResolvedPlan &plan) {
  PlainPtx plain = plainPtx(build.ptx);
  ResolvedPlan nameless = plan;
  for (ResolvedLaunch &launch : nameless.launches)
    if (auto known = plain.names.find(launch.kernel);
        known != plain.names.end())
      launch.kernel = known->second;
  std::string how;
  llvm::raw_string_ostream(how) << toJSON(nameless);
  FieldHasher hasher;
  hasher.add("code").add(build.chip).add(how).add(plain.text);
  return hasher.digest();
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
    KernelLaunch passing{launch.kernel, launch.shape, {}};
    for (const std::string &name : launch.args)
      passing.args.push_back(passedFor(task, result.plan, name));
    request.launches.push_back(std::move(passing));
  }
  request.limits = device.limits;
  llvm::Expected<CompileOutcome> compiled = compiler.compile(request);
  if (!compiled)
    return compiled.takeError();
  result.build = std::move(compiled->build);
  result.verdict = compiled->verdict;
  result.message = std::move(compiled->message);
  return std::move(result);
}

} // namespace fsr
