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
#include "Probe.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

#include <optional>

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
  if (subject.clone)
    request.cloneImage = description.imageOf(*subject.clone);
  request.referencePtx = subject.task.reference.ptx;
  request.candidatePtx = candidate.ptx;
  request.referenceResources = subject.reference.resources;
  request.candidateResources = candidate.resources;
  request.plan = subject.built.plan;
  request.options.seed = seed;
  request.options.full = true;
  request.options.measure = false;
  return device->evaluate(request);
}

/// What of a cubin decides what it does: code, constants, initial data and the
/// sizes of memory. Symbols, notes and line tables are left out. All bits
/// count, so equal is equal, and the scheduling of one instruction makes a
/// difference.
static llvm::Expected<std::string> machineCodeOf(StringRef cubin) {
  using llvm::support::endian::read32le;
  using llvm::support::endian::read64le;
  auto corrupt = [] {
    return makeError(ErrorKind::Corrupt, "ptxas made no 64-bit ELF file");
  };
  constexpr size_t elfHeader = 64, sectionHeader = 64;
  if (cubin.size() < elfHeader || !cubin.starts_with("\x7f"
                                                     "ELF\2\1"))
    return corrupt();
  auto at = [&](uint64_t offset, uint64_t size) -> std::optional<StringRef> {
    if (offset > cubin.size() || size > cubin.size() - offset)
      return std::nullopt;
    return cubin.substr(offset, size);
  };
  uint64_t table = read64le(cubin.data() + 40);
  size_t number = llvm::support::endian::read16le(cubin.data() + 60);
  size_t namesIndex = llvm::support::endian::read16le(cubin.data() + 62);
  std::optional<StringRef> headers = at(table, number * sectionHeader);
  if (!headers || namesIndex >= number)
    return corrupt();
  auto header = [&](size_t i) { return headers->data() + i * sectionHeader; };
  std::optional<StringRef> names =
      at(read64le(header(namesIndex) + 24), read64le(header(namesIndex) + 32));
  if (!names)
    return corrupt();
  constexpr uint32_t noBits = 8; // SHT_NOBITS: a size and no bytes.
  FieldHasher hasher;
  for (size_t i = 0; i < number; ++i) {
    StringRef name =
        names->drop_front(std::min<size_t>(read32le(header(i)), names->size()));
    name = name.take_front(name.find('\0'));
    if (!name.starts_with(".text.") && !name.starts_with(".nv.constant") &&
        !name.starts_with(".nv.global") && !name.starts_with(".nv.shared") &&
        !name.starts_with(".nv.local"))
      continue;
    uint64_t size = read64le(header(i) + 32);
    hasher.add(name).add(int64_t(size));
    hasher.add(int64_t(read32le(header(i) + 44))); // Registers, of code.
    if (read32le(header(i) + 4) == noBits)
      continue;
    std::optional<StringRef> bytes = at(read64le(header(i) + 24), size);
    if (!bytes)
      return corrupt();
    hasher.add(*bytes);
  }
  return hasher.digest();
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
  // As a search does, which goes on without it.
  if (!subject.task.reference.truePtx.empty()) {
    auto clone = assemblePtx(toolkit, subject.task.reference.truePtx,
                             subject.task.target);
    if (clone)
      subject.clone = std::move(*clone);
    else
      subject.task.reference.noTruePtx = llvm::toString(clone.takeError());
  }
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
  auto machineCode = machineCodeOf(assembled->cubin);
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
  auto machineCode = machineCodeOf(build->cubin);
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
  for (const Check &check : result->evidence.checks)
    row.evidence += check.name + ": " + check.detail + "\n";
  auto probes = probesOf(original.ptx, mutant, subject.isProved);
  if (!probes)
    return probes.takeError();
  auto ask = [&](const Probe &probe, Outcome outcome,
                 StringRef words) -> llvm::Error {
    auto trapped = assemblePtx(toolkit, probe.ptx, original.chip);
    if (!trapped)
      return addContext(trapped.takeError(), mutant.id + ": " + words);
    auto answer = evaluate(subject, *trapped);
    if (!answer)
      return addContext(answer.takeError(), mutant.id + ": " + words);
    if (answer->verdict != Verdict::Undecided)
      return llvm::Error::success();
    row.message = words.str();
    if (probe.isForAllData)
      row.outcome = outcome;
    return llvm::Error::success();
  };
  if (llvm::Error error =
          ask(probes->executed, Outcome::Unreached, "never executed"))
    return std::move(error);
  if (row.message.empty() && probes->read)
    if (llvm::Error error =
            ask(*probes->read, Outcome::Unused, "its result is never read"))
      return std::move(error);
  if (row.message.empty() && probes->differs)
    if (llvm::Error error = ask(*probes->differs, Outcome::SameValue,
                                "never another result that is read"))
      return std::move(error);
  return row;
}

} // namespace fsr::mutation
