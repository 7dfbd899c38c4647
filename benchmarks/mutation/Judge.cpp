// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The judge. A mutant is handed to the worker as a candidate of its own, with
// the plan of the original and inputs drawn for its own image, as in a search.
// What cannot be assembled, or is not supported, is no mutant and counts as
// not made.
//
//===----------------------------------------------------------------------===//

#include "Judge.h"

#include "Contract.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Interrupt.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"

using llvm::StringRef;

namespace fsr::mutation {

static constexpr uint64_t maxFileBytes = uint64_t(16) << 20;

llvm::Expected<std::unique_ptr<Bench>> Bench::open(StringRef device,
                                                   bool allowUnsandboxed,
                                                   unsigned seconds,
                                                   uint64_t seed) {
  auto bench = std::make_unique<Bench>();
  bench->seed = seed;
  llvm::Expected<Toolkit> toolkit = findToolkit();
  if (!toolkit)
    return toolkit.takeError();
  bench->toolkit = std::move(*toolkit);
  CompilerOptions compilerOptions;
  compilerOptions.allowUnsandboxed = allowUnsandboxed;
  auto compiler = makeCudaCompiler(compilerOptions);
  if (!compiler)
    return compiler.takeError();
  bench->compiler = std::move(*compiler);
  DeviceTimeouts timeouts;
  timeouts.evaluate = std::chrono::seconds(seconds);
  auto opened = openDevice(device, timeouts);
  if (!opened)
    return addContext(opened.takeError(), "option device");
  bench->device = std::move(*opened);
  auto description = bench->device->describe();
  if (!description)
    return description.takeError();
  bench->description = std::move(*description);
  return bench;
}

llvm::Expected<EvaluateResult> Bench::evaluate(const Subject &subject,
                                               const Build &candidate) {
  EvaluateRequest request;
  request.task = &subject.task;
  request.referenceImage = description.imageOf(subject.reference);
  request.candidateImage = description.imageOf(candidate);
  request.referenceResources = subject.reference.resources;
  request.candidateResources = candidate.resources;
  request.plan = subject.built.plan;
  request.options.seed = seed;
  request.options.full = true;
  request.options.measure = false;
  return device->evaluate(request);
}

llvm::Expected<std::string> Bench::disassemble(const Build &build) {
  llvm::SmallString<128> path;
  std::error_code error;
  {
    WholeStep step;
    error = llvm::sys::fs::createTemporaryFile("fsr-mutant", "cubin", path);
    llvm::sys::RemoveFileOnSignal(path);
  }
  if (error)
    return makeError(ErrorKind::Unavailable,
                     "cannot make a temporary file: " + error.message());
  if (llvm::Error error = writeFileAtomically(path, build.cubin))
    return std::move(error);
  auto run = runProcess({toolkit.root + "/bin/nvdisasm", path.str().str()}, "");
  llvm::sys::fs::remove(path);
  if (!run)
    return run.takeError();
  if (!run->succeeded())
    return makeError(ErrorKind::Unavailable,
                     "nvdisasm: " + run->describe() + ": " + run->err);
  // What stays: instructions, and the sizes and data of sections. What tells
  // lines of the PTX goes, and the comments that hold addresses.
  std::string kept;
  bool isDebug = false;
  for (StringRef line : llvm::split(run->out, '\n')) {
    if (line.contains(".section"))
      isDebug = line.contains(".debug") || line.contains("nv_debug");
    if (isDebug || line.contains("//## File"))
      continue;
    kept += line.str() + "\n";
  }
  return kept;
}

llvm::Expected<Subject> Bench::prepare(StringRef name, StringRef taskFile,
                                       StringRef answerFile) {
  Subject subject;
  subject.name = name.str();
  auto text = readFile(taskFile, maxFileBytes);
  if (!text)
    return text.takeError();
  auto task = parseTask(*text);
  if (!task)
    return addContext(task.takeError(), taskFile);
  subject.task = std::move(*task);
  auto answer = readFile(answerFile, maxFileBytes);
  if (!answer)
    return answer.takeError();
  auto candidate = parseAnswer(*answer);
  if (!candidate)
    return addContext(candidate.takeError(), answerFile);
  subject.candidate = std::move(*candidate);
  auto reference =
      assemblePtx(toolkit, subject.task.reference.ptx, subject.task.target);
  if (!reference)
    return addContext(reference.takeError(), name + ": the original");
  subject.reference = std::move(*reference);
  std::vector<Parameters> sets = subject.candidate.combinations(1);
  auto built = buildCandidate(subject.task, subject.candidate,
                              sets.empty() ? Parameters() : sets.front(),
                              description, *compiler);
  if (!built)
    return built.takeError();
  if (!built->build)
    return makeError(ErrorKind::BadInput, answerFile + ": " + built->message);
  subject.built = std::move(*built);
  for (const ResolvedLaunch &launch : subject.built.plan.launches)
    if (!llvm::is_contained(subject.entries, launch.kernel))
      subject.entries.push_back(launch.kernel);
  // By ptxas, as the mutants: NVRTC's own machine code has line numbers.
  auto assembled =
      assemblePtx(toolkit, subject.built.build->ptx, subject.built.build->chip);
  if (!assembled)
    return addContext(assembled.takeError(), name);
  auto machineCode = disassemble(*assembled);
  if (!machineCode)
    return machineCode.takeError();
  subject.machineCode = std::move(*machineCode);
  auto result = evaluate(subject, *assembled);
  if (!result)
    return addContext(result.takeError(), name);
  if (result->verdict != Verdict::Undecided)
    return makeError(ErrorKind::BadInput,
                     answerFile + " does not hold itself: " +
                         nameOf(result->verdict) + ": " + result->message);
  subject.isProved =
      llvm::any_of(result->evidence.checks, [](const Check &check) {
        return check.name == "proved-safe@shape" && check.passed;
      });
  return subject;
}

/// The check that refused, and on which inputs.
static std::string refusedBy(const EvaluateResult &result) {
  for (const Check &check : result.evidence.checks)
    if (!check.passed)
      return check.name +
             (check.inputs.empty() ? "" : " (" + check.inputs + ")");
  return nameOf(result.verdict).str();
}

llvm::Expected<Row> Bench::judge(const Subject &subject, const Mutant &mutant) {
  Row row;
  row.mutant = mutant;
  const Build &original = *subject.built.build;
  std::string ptx = mutant.apply(original.ptx);
  auto refused = [&](Verdict verdict, std::string check, std::string message) {
    row.outcome = Outcome::Refused;
    row.verdict = nameOf(verdict).str();
    row.check = std::move(check);
    row.message = std::move(message);
    return row;
  };
  auto build = assemblePtx(toolkit, ptx, original.chip);
  if (!build) {
    llvm::Error error = build.takeError();
    if (kindOf(error) != ErrorKind::BadInput)
      return std::move(error);
    row.outcome = Outcome::NotCompiled;
    row.message = llvm::toString(std::move(error));
    return row;
  }
  auto machineCode = disassemble(*build);
  if (!machineCode)
    return machineCode.takeError();
  if (*machineCode == subject.machineCode) {
    row.outcome = Outcome::SameCode;
    return row;
  }
  if (auto reason = checkContract(ptx, subject.entries))
    return refused(Verdict::Rejected, "contract", *reason);
  auto result = evaluate(subject, *build);
  if (!result)
    return addContext(result.takeError(), mutant.id);
  if (result->verdict != Verdict::Undecided)
    return refused(result->verdict, refusedBy(*result), result->message);
  row.outcome = Outcome::Survived;
  // Does it run at all? A trap in its place tells.
  auto trapped =
      assemblePtx(toolkit, mutant.trapAt(original.ptx), original.chip);
  if (!trapped)
    return addContext(trapped.takeError(), mutant.id + ", trapped");
  result = evaluate(subject, *trapped);
  if (!result)
    return addContext(result.takeError(), mutant.id + ", trapped");
  if (result->verdict == Verdict::Undecided) {
    row.message = "never executed";
    if (subject.isProved)
      row.outcome = Outcome::Unreached;
  }
  return row;
}

} // namespace fsr::mutation
