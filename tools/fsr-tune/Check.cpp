// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-tune check`: one candidate by hand, through everything that an answer of
// an LLM goes through. Every set of its parameters climbs the whole ladder,
// also where it is not faster, which ends a search's interest in it; nothing is
// stored.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "fsr/Search/Strength.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Json.h"
#include "fsr/Terminal/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace fsr;

static constexpr int64_t reportVersion = 1;

/// The same results as the original's, on all inputs tried.
static bool isEqual(Verdict verdict) {
  return verdict == Verdict::Accepted || verdict == Verdict::NotFaster ||
         verdict == Verdict::Undecided;
}

namespace {

class Checker {
public:
  Checker(const KernelTask &task, Bench &bench, const CheckOptions &options)
      : task(task), bench(bench), options(options) {}

  llvm::Error start();
  llvm::Error testTask();
  /// The verdict of one set; an error is about the tools.
  llvm::Expected<Trial> run(const Candidate &candidate,
                            const Parameters &parameters);

  DeviceDescription device;
  std::optional<TaskStrength> strength;

private:
  llvm::Error evaluate(EvaluateRequest &request, Trial &trial);

  KernelTask task;
  Bench &bench;
  const CheckOptions &options;
  Build reference;
  std::optional<Build> clone;       ///< In f64.
  std::optional<DevicePeaks> peaks; ///< Of this GPU.
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
  if (task.reference.truePtx.empty())
    return llvm::Error::success();
  build = assemblePtx(bench.toolkit, task.reference.truePtx, task.target);
  if (build)
    clone = std::move(*build);
  else
    task.reference.noTruePtx = llvm::toString(build.takeError());
  return llvm::Error::success();
}

llvm::Error Checker::testTask() {
  llvm::Expected<TaskStrength> made =
      testStrength(task, device.imageOf(reference), options.seed, *bench.device,
                   [isTold = false](const StrengthProgress &progress) mutable {
                     std::string text = longTestText(progress);
                     if (text.empty() || isTold)
                       return;
                     isTold = true;
                     llvm::errs() << "fsr-tune: " << text << "\n";
                   });
  if (!made)
    return addContext(made.takeError(), "testing the task");
  task.workload = made->workload;
  strength = std::move(*made);
  return llvm::Error::success();
}

static Check stageCheck(llvm::StringRef name, bool passed, llvm::StringRef rule,
                        llvm::StringRef detail) {
  Check check;
  check.name = name.str();
  check.passed = passed;
  check.inputs = "-";
  check.rule = rule.str();
  check.detail = detail.str();
  return check;
}

/// The rungs that the options ask for, and a measurement.
llvm::Error Checker::evaluate(EvaluateRequest &request, Trial &trial) {
  request.options.full = options.full;
  request.options.counters = true;
  request.options.peaks = !peaks;
  llvm::Expected<EvaluateResult> result = bench.device->evaluate(request);
  if (!result)
    return result.takeError();
  trial.verdict = result->verdict;
  trial.message = std::move(result->message);
  trial.measurement = std::move(result->measurement);
  trial.evidence = std::move(result->evidence);
  trial.profile = std::move(result->profile);
  if (trial.profile && !peaks)
    peaks = trial.profile->peaks;
  else if (trial.profile)
    trial.profile->peaks = peaks;
  trial.full =
      options.full && (trial.verdict == Verdict::Accepted || !options.measure);
  if (!options.full || trial.full || !isEqual(trial.verdict))
    return llvm::Error::success();
  // What lost its race was not looked at in full.
  request.options.measure = false;
  request.options.peaks = false;
  result = bench.device->evaluate(request);
  if (!result)
    return result.takeError();
  trial.full = true;
  trial.evidence = std::move(result->evidence);
  if (result->profile && result->profile->counted) {
    if (!trial.profile)
      trial.profile.emplace();
    trial.profile->counted = result->profile->counted;
  }
  if (!isEqual(result->verdict)) {
    trial.verdict = result->verdict;
    trial.message = std::move(result->message);
  }
  return llvm::Error::success();
}

llvm::Expected<Trial> Checker::run(const Candidate &candidate,
                                   const Parameters &parameters) {
  Trial trial;
  trial.taskKey = task.key;
  trial.candidateHash = candidate.hash();
  trial.parameters = parameters;
  trial.isModelled = device.isVirtual;
  llvm::Expected<CandidateBuild> built =
      buildCandidate(task, candidate, parameters, device, *bench.compiler);
  if (!built)
    return built.takeError();
  constexpr llvm::StringLiteral contractRule =
      "plan, guards, signature, symbols and limits";
  constexpr llvm::StringLiteral buildRule = "the toolchain takes it";
  if (!built->build) {
    trial.verdict = built->verdict;
    trial.message = built->message;
    bool isContract = built->verdict == Verdict::Rejected;
    trial.evidence.checks.push_back(stageCheck(
        isContract ? "contract" : "build", false,
        isContract ? contractRule : buildRule, oneLine(built->message, 200)));
    return trial;
  }
  trial.resources = built->build->resources;
  EvaluateRequest request;
  request.task = &task;
  request.referenceImage = device.imageOf(reference);
  request.candidateImage = device.imageOf(*built->build);
  request.referencePtx = reference.ptx;
  request.candidatePtx = built->build->ptx;
  if (clone)
    request.cloneImage = device.imageOf(*clone);
  request.referenceResources = reference.resources;
  request.candidateResources = built->build->resources;
  request.plan = std::move(built->plan);
  request.options.seed = options.seed;
  request.options.measure = options.measure;
  if (llvm::Error error = evaluate(request, trial))
    return std::move(error);
  if (isEqual(trial.verdict)) {
    if (!trial.profile)
      trial.profile.emplace();
    addInstructions(readInstructions(bench.toolkit, *built->build),
                    *trial.profile);
  }
  trial.evidence.toolchain = built->build->toolchain;
  trial.evidence.sandbox = built->build->sandbox;
  std::vector<Check> &checks = trial.evidence.checks;
  checks.insert(checks.begin(), {stageCheck("contract", true, contractRule, ""),
                                 stageCheck("build", true, buildRule,
                                            built->build->toolchain + " for " +
                                                built->build->chip)});
  if (strength)
    checks.insert(checks.begin(), strengthCheck(task, *strength));
  return trial;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

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
  if (trial.evidence.level != EvidenceLevel::None) {
    os << "  evidence " << nameOf(trial.evidence.level);
    if (!trial.evidence.toolchain.empty())
      os << ", " << printable(trial.evidence.toolchain);
    if (!trial.evidence.sandbox.empty())
      os << ", sandbox: " << printable(trial.evidence.sandbox);
    os << "\n";
  }
  printChecks(trial.evidence.checks, os);
  if (trial.profile)
    for (const std::string &text : describe(*trial.profile))
      os << "  " << printable(text) << "\n";
}

static void print(const TaskStrength &strength, llvm::raw_ostream &os) {
  os << "task strength: " << strength.summary() << "\n";
  size_t names = 5;
  for (const DummyResult &dummy : strength.dummies)
    names = std::max(names, columnsOf(printable(dummy.name)));
  for (const DummyResult &dummy : strength.dummies) {
    bool isBad = dummy.outcome == DummyResult::Outcome::Passed;
    os << "  " << padded(printable(dummy.name), names) << "  "
       << coloured(os, isBad ? Colour::Bad : Colour::None,
                   padded(nameOf(dummy.outcome), 14));
    if (!dummy.detail.empty())
      os << "  " << oneLine(printable(dummy.detail), 100);
    os << "\n";
  }
}

namespace {

/// What is said in the end, in either form.
struct CheckReport {
  const KernelTask &task;
  const CheckOptions &options;
  std::string candidateHash;
  DeviceDescription device;
  std::optional<TaskStrength> strength;
  std::vector<Trial> trials;
  std::string rejected; ///< Why there is no candidate.
  std::string weak;

  unsigned count(bool (*holds)(Verdict)) const {
    return llvm::count_if(
        trials, [&](const Trial &trial) { return holds(trial.verdict); });
  }
  int conclude(llvm::raw_ostream &os) const;
  llvm::json::Value json() const;
};

} // namespace

static bool isAccepted(Verdict verdict) { return verdict == Verdict::Accepted; }

llvm::json::Value CheckReport::json() const {
  llvm::json::Array sets;
  for (const Trial &trial : trials)
    sets.push_back(toJSON(trial));
  llvm::json::Object object{{"format_version", reportVersion},
                            {"kernel", llvm::json::fixUTF8(task.name)},
                            {"task", task.key},
                            {"candidate", candidateHash},
                            {"rung", options.full ? "full" : "quick"},
                            {"device", device.name},
                            {"modelled", device.isVirtual},
                            {"sets", std::move(sets)},
                            {"equal", int64_t(count(isEqual))},
                            {"accepted", int64_t(count(isAccepted))}};
  if (strength)
    object["strength"] = toJSON(*strength);
  if (!rejected.empty())
    object["rejected"] = llvm::json::fixUTF8(rejected);
  if (!weak.empty())
    object["weak"] = llvm::json::fixUTF8(weak);
  return object;
}

int CheckReport::conclude(llvm::raw_ostream &os) const {
  if (options.json)
    os << printJson(json());
  else if (!rejected.empty())
    os << coloured(os, Colour::Bad, nameOf(Verdict::Rejected)) << ": "
       << printable(rejected, true) << "\n";
  else if (weak.empty())
    os << count(isEqual) << " of " << trials.size() << " equal, "
       << (options.measure ? llvm::utostr(count(isAccepted)) + " accepted"
                           : std::string("not timed"))
       << "\n"
       << (strength || !count(isEqual)
               ? ""
               : "the task itself was not tested: its workload may be too "
                 "weak to tell a wrong kernel; --strength tests it first, "
                 "and ends with status 4 where it is\n");
  if (!weak.empty()) {
    os.flush();
    llvm::errs() << "fsr-tune: " << printable(task.name) << ": "
                 << printable(weak) << "\n";
    return exits::weak;
  }
  return count(isEqual) ? 0 : exits::noneAccepted;
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

static void sayRemarks(Device &device) {
  for (const std::string &remark : device.takeRemarks())
    llvm::errs() << "fsr-tune: " << printable(remark) << "\n";
}

llvm::Expected<int> fsr::checkCandidate(const KernelTask &task,
                                        llvm::Expected<Candidate> candidate,
                                        const CheckOptions &options) {
  llvm::raw_ostream &os = llvm::outs();
  CheckReport report{task, options, "", {}, {}, {}, "", ""};
  if (!candidate) {
    report.rejected = llvm::toString(candidate.takeError());
    return report.conclude(os);
  }
  report.candidateHash = candidate->hash();
  if (llvm::Error error = fix(*candidate, options.fixed))
    return error;
  llvm::Expected<Bench> bench =
      openBench(task, options.device, options.allowUnsandboxed);
  if (!bench)
    return bench.takeError();
  sayRemarks(*bench->device);
  Checker checker(task, *bench, options);
  if (llvm::Error error = checker.start())
    return error;
  report.device = checker.device;
  if (options.strength) {
    if (llvm::Error error = checker.testTask())
      return error;
    report.strength = checker.strength;
    if (!options.json)
      print(*report.strength, os);
    if (report.strength->weakness()) {
      report.weak = weaknessText(task, *report.strength);
      return report.conclude(os);
    }
  }
  for (const Parameters &parameters :
       candidate->combinations(options.parameterSets)) {
    llvm::Expected<Trial> trial = checker.run(*candidate, parameters);
    sayRemarks(*bench->device);
    if (!trial)
      return trial.takeError();
    if (!options.json) {
      print(*trial, os);
      os.flush(); // The next one may take minutes.
    }
    report.trials.push_back(std::move(*trial));
  }
  return report.conclude(os);
}
