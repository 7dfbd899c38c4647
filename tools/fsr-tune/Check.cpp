// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-tune check`: one answer by hand, through everything that an answer of an
// LLM goes through. Every set of its parameters is validated in full, where a
// search looks quickly first; nothing is stored.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "fsr/Support/Error.h"
#include "fsr/Terminal/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace fsr;

namespace {

class Checker {
public:
  Checker(const KernelTask &task, const Candidate &candidate, Bench &bench,
          const CheckOptions &options)
      : task(task), candidate(candidate), bench(bench), options(options) {}

  llvm::Error start();
  /// The verdict of one set; an error is about the tools.
  llvm::Expected<Trial> run(const Parameters &parameters);

private:
  const KernelTask &task;
  const Candidate &candidate;
  Bench &bench;
  const CheckOptions &options;
  DeviceDescription device;
  Build reference;
};

} // namespace

llvm::Error Checker::start() {
  llvm::Expected<DeviceDescription> description = bench.device->describe();
  if (!description)
    return description.takeError();
  device = std::move(*description);
  llvm::Expected<Build> build =
      assemblePtx(bench.toolkit, task.reference.ptx, task.target);
  if (!build)
    return addContext(build.takeError(), "building the original kernel");
  reference = std::move(*build);
  return llvm::Error::success();
}

llvm::Expected<Trial> Checker::run(const Parameters &parameters) {
  Trial trial;
  trial.taskKey = task.key;
  trial.candidateHash = candidate.hash();
  trial.parameters = parameters;
  trial.isModelled = device.isVirtual;
  auto end = [&](Verdict verdict, std::string message) {
    trial.verdict = verdict;
    trial.message = std::move(message);
    return trial;
  };
  llvm::Expected<CandidateBuild> built =
      buildCandidate(task, candidate, parameters, device, *bench.compiler);
  if (!built)
    return built.takeError();
  if (!built->build)
    return end(built->verdict, built->message);
  trial.resources = built->build->resources;

  EvaluateRequest evaluation;
  evaluation.task = &task;
  evaluation.referenceImage = device.imageOf(reference);
  evaluation.candidateImage = device.imageOf(*built->build);
  evaluation.referencePtx = reference.ptx;
  evaluation.candidatePtx = built->build->ptx;
  evaluation.referenceResources = reference.resources;
  evaluation.candidateResources = built->build->resources;
  evaluation.plan = std::move(built->plan);
  evaluation.options.seed = options.seed;
  evaluation.options.measure = options.measure;
  llvm::Expected<EvaluateResult> result = bench.device->evaluate(evaluation);
  if (!result)
    return result.takeError();
  trial.measurement = std::move(result->measurement);
  trial.evidence = std::move(result->evidence);
  trial.evidence.toolchain = built->build->toolchain;
  trial.evidence.sandbox = built->build->sandbox;
  return end(result->verdict, std::move(result->message));
}

static void print(const Trial &trial, llvm::raw_ostream &os) {
  os << parametersText(trial.parameters) << ": "
     << coloured(os, colourOf(trial.verdict), nameOf(trial.verdict)) << "\n";
  if (!trial.message.empty()) {
    llvm::SmallVector<llvm::StringRef> lines;
    std::string message = printable(trial.message, /*keepLines=*/true);
    llvm::StringRef(message).rtrim().split(lines, '\n');
    for (llvm::StringRef line : lines)
      os << "  " << line << "\n";
  }
  for (const KernelResources &one : trial.resources)
    os << "  " << printable(one.kernel) << ": " << one.registers
       << " registers, " << one.sharedBytes << " bytes shared, "
       << one.spillStoreBytes << " + " << one.spillLoadBytes
       << " bytes spilled, " << one.stackBytes << " bytes of stack\n";
  if (trial.measurement) {
    os << llvm::formatv("  original {0:f2} us, candidate {1:f2} us: ",
                        trial.measurement->originalMedianUs,
                        trial.measurement->candidateMedianUs)
       << gainText(trial);
    if (trial.isModelled)
      os << " for ";
    else
      os << " by " << trial.measurement->originalUs.size() << " pairs on ";
    os << printable(trial.measurement->device) << "\n";
  }
  if (trial.evidence.checks.empty() &&
      trial.evidence.level == EvidenceLevel::None)
    return;
  os << "  evidence " << nameOf(trial.evidence.level);
  if (!trial.evidence.toolchain.empty())
    os << ", " << printable(trial.evidence.toolchain);
  if (!trial.evidence.sandbox.empty())
    os << ", sandbox: " << printable(trial.evidence.sandbox);
  os << "\n";
  for (const Check &check : trial.evidence.checks) {
    os << "    "
       << coloured(os, check.passed ? Colour::Good : Colour::Bad,
                   check.passed ? "passed" : "FAILED")
       << " " << printable(check.name) << ": " << printable(check.rule);
    if (!check.detail.empty())
      os << "; " << printable(check.detail);
    os << "\n";
  }
}

/// `candidate` with the parameters of --set fixed.
static llvm::Error fix(Candidate &candidate, const Parameters &fixed) {
  for (const auto &[name, value] : fixed) {
    auto found = candidate.parameters.find(name);
    if (found == candidate.parameters.end()) {
      std::string names;
      for (const auto &entry : candidate.parameters)
        names += (names.empty() ? "" : ", ") + entry.first;
      return makeError(ErrorKind::BadInput,
                       "option set: the answer has no parameter '" + name +
                           "'; it has " + (names.empty() ? "none" : names));
    }
    found->second = {value};
  }
  return llvm::Error::success();
}

llvm::Expected<int> fsr::checkAnswer(const KernelTask &task,
                                     llvm::StringRef answer,
                                     const CheckOptions &options) {
  llvm::raw_ostream &os = llvm::outs();
  llvm::Expected<Candidate> candidate = parseAnswer(answer);
  if (!candidate) {
    os << coloured(os, Colour::Bad, nameOf(Verdict::Rejected)) << ": "
       << printable(llvm::toString(candidate.takeError()), true) << "\n";
    return exits::noneAccepted;
  }
  if (llvm::Error error = fix(*candidate, options.fixed))
    return error;
  llvm::Expected<Bench> bench =
      openBench(task, options.device, options.allowUnsandboxed);
  if (!bench)
    return bench.takeError();
  Checker checker(task, *candidate, *bench, options);
  if (llvm::Error error = checker.start())
    return error;
  // Untimed, an equal one stays undecided.
  Verdict wanted = options.measure ? Verdict::Accepted : Verdict::Undecided;
  unsigned tried = 0, good = 0;
  for (const Parameters &parameters :
       candidate->combinations(options.parameterSets)) {
    llvm::Expected<Trial> trial = checker.run(parameters);
    if (!trial)
      return trial.takeError();
    ++tried;
    good += trial->verdict == wanted;
    print(*trial, os);
    os.flush(); // The next one may take minutes.
  }
  os << good << " of " << tried
     << (options.measure ? " accepted\n" : " equal, not timed\n");
  return good ? 0 : exits::noneAccepted;
}
