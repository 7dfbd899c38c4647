// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One run: all launches in order, the whole grid where one block's cost lets
// hope for that, else a part that was drawn. A launch that turns out too long
// is cut and all begins again, and so it does where a launch touched inputs
// that had not been fetched. A first dry run, without checks, learns what is
// touched where inputs are large.
//
//===----------------------------------------------------------------------===//

#include "Beside.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <thread>

namespace fsr {

namespace {

constexpr uint64_t mostUnits = 4096;
/// Fetching anew; each launch may begin anew for other reasons three times.
constexpr unsigned mostAttempts = 8;
/// Blocks may cost less than the one that was asked.
constexpr uint64_t hope = 4;
/// Of the budget, for what is not cut by it.
constexpr uint64_t slack = 4;
constexpr unsigned mostHostThreads = 16;

bool isWait(ptx::FindingKind kind) {
  return kind == ptx::FindingKind::Deadlock ||
         kind == ptx::FindingKind::BarrierDivergence ||
         kind == ptx::FindingKind::BarrierMismatch;
}

} // namespace

Beside::Beside(const KernelTask &task, const ResolvedPlan &plan,
               llvm::StringRef ptx, const ptx::VirtualGpuOptions &options,
               uint64_t seed)
    : task(task), copied(task), random(seed) {
  open(&plan, ptx, options);
}

Beside::Beside(const KernelTask &task, llvm::StringRef ptx,
               const ptx::VirtualGpuOptions &options, uint64_t seed)
    : task(task), copied(task), random(seed) {
  open(nullptr, ptx, options);
}

llvm::Error Beside::addStep(llvm::StringRef kernel, const LaunchShape &shape,
                            const PackedParameters &values) {
  Step step;
  step.kernel = kernel.str();
  auto size = sizeOf(shape);
  if (!size)
    return makeError(ErrorKind::Unsupported, "the grid of " + kernel +
                                                 " is beyond what a virtual "
                                                 "device takes");
  step.blocks = size->first;
  step.shape = virtualShape(shape);
  auto block = copied.parameterBlock(kernel, values);
  if (!block)
    return block.takeError();
  step.params = std::move(*block);
  steps.push_back(std::move(step));
  return llvm::Error::success();
}

void Beside::open(const ResolvedPlan *plan, llvm::StringRef ptx,
                  const ptx::VirtualGpuOptions &options) {
  llvm::Error failure = [&]() -> llvm::Error {
    if (llvm::Error error = copied.open(ptx, options))
      return error;
    auto parsed = ptx::parseModule(ptx);
    if (!parsed)
      return parsed.takeError();
    if (llvm::any_of((*parsed)->variables, [](const ptx::Variable &variable) {
          return variable.space == ptx::Space::Global;
        }))
      text = ptx.str();
    auto addressOf = [&](size_t argument) {
      return copied.addressOf(argument);
    };
    if (!plan)
      return addStep(task.reference.entry, task.launch,
                     packReference(task, addressOf));
    if (plan->launches.empty())
      return makeError(ErrorKind::BadInput, "the plan has no launch");
    for (const ResolvedScratch &scratch : plan->scratch) {
      auto at =
          copied.addScratch(uint64_t(std::max<int64_t>(0, scratch.bytes)));
      if (!at)
        return at.takeError();
      scratches.push_back({*at, scratch.zero});
    }
    auto scratchOf = [&](llvm::StringRef name) -> std::optional<uint64_t> {
      for (size_t i = 0; i < plan->scratch.size(); ++i)
        if (name == plan->scratch[i].name)
          return copied.buffers()[scratches[i].buffer].address;
      return std::nullopt;
    };
    for (const ResolvedLaunch &planned : plan->launches) {
      auto values = packCandidate(task, planned, {addressOf, scratchOf});
      if (!values)
        return values.takeError();
      if (llvm::Error error = addStep(planned.kernel, planned.shape, *values))
        return error;
    }
    for (const CopiedTask::Buffer &buffer : copied.buffers())
      if (!buffer.isWritten)
        if (llvm::Error error = copied.gpu().setConst(buffer.address, true))
          return error;
    return llvm::Error::success();
  }();
  if (failure)
    hopeless = llvm::toString(std::move(failure));
}

uint64_t Beside::budget() const {
  return std::max<uint64_t>(1, limits.instructions / steps.size());
}

llvm::Expected<ptx::LaunchResult> Beside::launch(const Step &step, bool isDry,
                                                 const BesideHow &how) {
  ptx::LaunchOptions options;
  options.schedule = how.schedule;
  options.order = how.order;
  options.seed = random();
  options.blocks = step.chosen;
  // Other orders take more of the same work, and blocks of a part cost what
  // they cost: a run that is cut reads other inputs each time.
  bool mayExceed = step.isPart || how.schedule != ptx::Schedule::Lockstep;
  options.instructionBudget = budget() * (mayExceed ? slack : 1);
  options.hostThreads =
      std::clamp(std::thread::hardware_concurrency(), 1u, mostHostThreads);
  options.checkRaces = options.trackTaint = options.checkUninitialized = !isDry;
  auto result = copied.gpu().launch(copied.module(), step.kernel, step.shape,
                                    step.params, options);
  copied.noteTouched();
  if (result)
    spent += result->counters.warpInstructions;
  return result;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

llvm::Error Beside::reset() {
  copied.forgetOutputs();
  copied.restoreInPlace();
  for (const Scratch &scratch : scratches) {
    const CopiedTask::Buffer &buffer = copied.buffers()[scratch.buffer];
    if (scratch.isZero && buffer.extent)
      llvm::consumeError(
          copied.gpu().fill(buffer.address, 0, 1, buffer.extent));
  }
  copied.taintInputs(true, /*inPlaceToo=*/true);
  return text.empty() ? llvm::Error::success() : copied.reload(text);
}

/// Before a launch that comes after one that ran in part: what kernels write is
/// there, is unknown, and is tainted; inputs are neither. False: it is too
/// much.
bool Beside::coverUnknown() {
  uint64_t total = 0;
  for (const CopiedTask::Buffer &buffer : copied.buffers())
    total += buffer.isWritten ? buffer.extent : 0;
  if (total > limits.unknownBytes)
    return false;
  copied.taintInputs(false, /*inPlaceToo=*/false);
  for (CopiedTask::Buffer &buffer : copied.buffers()) {
    if (!buffer.isWritten || !buffer.extent)
      continue;
    if (!buffer.isRead)
      llvm::consumeError(
          copied.gpu().fill(buffer.address, 0, 1, buffer.extent));
    llvm::consumeError(
        copied.gpu().setTainted(buffer.address, buffer.extent, true));
    buffer.dirty.set();
  }
  return true;
}

std::optional<uint64_t> Beside::hashOutputs() {
  uint64_t total = 0, hash = 0;
  auto isOutput = [](const CopiedTask::Buffer &buffer) {
    return buffer.isWritten && buffer.argument != ~size_t(0);
  };
  for (const CopiedTask::Buffer &buffer : copied.buffers())
    total += isOutput(buffer) ? buffer.extent : 0;
  if (total > limits.unknownBytes)
    return std::nullopt;
  std::vector<uint8_t> bytes;
  for (const CopiedTask::Buffer &buffer : copied.buffers()) {
    if (!isOutput(buffer) || !buffer.extent)
      continue;
    bytes.resize(buffer.extent);
    if (llvm::Error error =
            copied.gpu().read(bytes.data(), buffer.address, bytes.size())) {
      llvm::consumeError(std::move(error));
      return std::nullopt;
    }
    hash = hash * 31 + llvm::xxh3_64bits(bytes);
  }
  return hash;
}

//===----------------------------------------------------------------------===//
// What part runs
//===----------------------------------------------------------------------===//

/// What one block takes. Where it waits for others that is not known.
void Beside::ask(Step &step) {
  step.isAsked = true;
  if (step.blocks == 1)
    return;
  // The first one waits for nobody.
  for (uint64_t number : {random() % step.blocks, uint64_t(0)}) {
    step.chosen = {ptx::ChosenBlock{number}};
    auto one = launch(step, /*isDry=*/true, {});
    step.chosen.clear();
    if (!one) {
      llvm::consumeError(one.takeError()); // The launch itself says so.
      return;
    }
    step.cost = std::max<uint64_t>(1, one->counters.warpInstructions);
    if (one->completed)
      return;
  }
  step.cost = 0;
}

/// Cuts a launch that is too long as it is.
Beside::Went Beside::choose(Step &step, BesideReport &report) {
  if (!step.cost || step.isPart) {
    report.why =
        llvm::formatv("{0} runs for more than {1} warp instructions{2}",
                      step.kernel, budget(), step.isPart ? " in part" : "");
    return Went::Nowhere;
  }
  uint64_t wanted =
      std::min({budget() / step.cost, mostUnits, step.blocks / 2});
  if (!wanted) {
    report.why = llvm::formatv("one block of {0} runs for {1} warp "
                               "instructions; the budget is {2}",
                               step.kernel, step.cost, budget());
    return Went::Nowhere;
  }
  step.isPart = true;
  step.chosen.clear();
  for (uint64_t number : drawUnits(random, step.blocks, wanted))
    step.chosen.push_back(ptx::ChosenBlock{number});
  isLearnt = false;
  return Went::Again;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// What a launch that has run tells.
Beside::Went Beside::look(Step &step, size_t index, bool isUnknown, bool isDry,
                          ptx::LaunchResult &result, BesideReport &report) {
  if (isTooLong(result) && !step.isPart)
    return choose(step, report);
  bool waits = isTooLong(result) ||
               llvm::any_of(result.findings, [](const ptx::Finding &finding) {
                 return finding.kind == ptx::FindingKind::Deadlock;
               });
  if (waits && step.isPart && !step.isPrefix) {
    // Blocks that wait for those before them can do so where these run.
    step.isPrefix = true;
    for (size_t i = 0; i < step.chosen.size(); ++i)
      step.chosen[i].number = i;
    isLearnt = false;
    return Went::Again;
  }
  if (isDry)
    return Went::Well;
  bool isAdrift = isUnknown && result.proof.isSteered;
  llvm::erase_if(result.findings, [&](const ptx::Finding &finding) {
    return finding.kind == ptx::FindingKind::Budget || isAdrift ||
           (step.isPart && waits && isWait(finding.kind));
  });
  llvm::move(result.findings, std::back_inserter(report.findings));
  report.instructions += result.counters.warpInstructions;
  report.counters += result.counters;
  for (const auto &one : result.fidelity.approximate)
    report.fidelity.approximate[one.first] += one.second;
  report.fidelity.approximateSteers |= result.fidelity.approximateSteers;
  std::string text =
      step.isPart
          ? llvm::formatv("{0} of {1} blocks, {2}", step.chosen.size(),
                          step.blocks,
                          step.isPrefix ? "the first ones" : "drawn at random")
                .str()
          : llvm::formatv("all {0} blocks", step.blocks).str();
  if (steps.size() > 1)
    text = llvm::formatv("launch {0}: {1}", index + 1, text);
  if (step.isPart && waits)
    text += ", not to their ends";
  if (isAdrift)
    text += ", no findings, since its course depends on what blocks that did "
            "not run leave";
  report.part += (report.part.empty() ? "" : "; ") + text;
  if (report.proof.holds && !result.proof.holds)
    report.proof = result.proof;
  // A fault ends the launch, and on a GPU all that is to come.
  return result.completed || isAdrift ? Went::Well : Went::Nowhere;
}

Beside::Went Beside::runSteps(bool isDry, const BesideHow &how,
                              BesideReport &report) {
  report = BesideReport();
  if (llvm::Error error = reset()) {
    report.why = hopeless = llvm::toString(std::move(error));
    return Went::Nowhere;
  }
  report.isWhole = report.proof.holds = true;
  if (how.notesReads)
    copied.gpu().forgetReads();
  bool isUnknown = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    Step &step = steps[i];
    if (isUnknown && !coverUnknown()) {
      report.part += "; later launches did not run";
      break;
    }
    if (!step.isAsked) {
      ask(step);
      if (step.cost * step.blocks > hope * budget()) {
        Went went = choose(step, report);
        if (went == Went::Nowhere)
          return went;
      }
      return Went::Again;
    }
    auto result = launch(step, isDry, how);
    if (!result) {
      report.why = hopeless = llvm::toString(result.takeError());
      return Went::Nowhere;
    }
    Went went = look(step, i, isUnknown, isDry, *result, report);
    if (went != Went::Well)
      return went;
    isUnknown |= step.isPart;
  }
  report.isWhole &= !isUnknown;
  return Went::Well;
}

llvm::Expected<BesideReport> Beside::run(const BesideLimits &wanted,
                                         const BesideHow &how, Fetch fetch) {
  BesideReport report;
  report.why = hopeless;
  if (!hopeless.empty())
    return report;
  if (wanted.instructions != limits.instructions) {
    isLearnt = false;
    for (Step &step : steps) {
      step.isAsked = step.isPart = step.isPrefix = false;
      step.chosen.clear();
    }
    copied.needNothing();
  }
  limits = wanted;
  uint64_t zeroed = 0;
  for (const Scratch &scratch : scratches)
    zeroed += scratch.isZero ? copied.buffers()[scratch.buffer].extent : 0;
  if (zeroed > limits.unknownBytes) {
    report.why =
        llvm::formatv("its scratch of {0} bytes is too much to clear", zeroed);
    return report;
  }
  copied.protectInputs(!how.notesReads);
  bool isSmall = copied.bytesRead() <= limits.smallBytes;
  if (isSmall)
    copied.needAll();
  if (llvm::Error error = copied.fetchNeeded(fetch))
    return std::move(error);
  unsigned attempts = mostAttempts + 3 * unsigned(steps.size());
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    bool isDry = !isSmall && !isLearnt;
    Went went = runSteps(isDry, how, report);
    if (!report.why.empty())
      return report;
    std::vector<ByteRuns> missing;
    bool isMissing = copied.findMissing(missing);
    if (!isSmall && copied.bytesNeeded() > limits.bytes) {
      report.why = llvm::formatv("it reads {0} bytes, too many to copy",
                                 copied.bytesNeeded());
      return report;
    }
    if (isMissing)
      for (size_t i = 0; i < missing.size(); ++i)
        if (llvm::Error error =
                copied.fetchRuns(copied.buffers()[i], missing[i], fetch))
          return std::move(error);
    if (went == Went::Again)
      continue;
    isLearnt = true;
    if (!isMissing && !isDry) {
      // A launch that ended early was whole as far as it went.
      report.isWhole &= went == Went::Well;
      report.proof.holds &= report.isWhole;
      if (report.isWhole)
        report.outputs = hashOutputs();
      if (report.isWhole && how.notesReads)
        report.reads = copied.takeReads();
      return report;
    }
  }
  report = BesideReport();
  report.why = "where it reads depends on what it reads, too many times over";
  return report;
}

} // namespace fsr
