// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an evaluation does beside and otherwise on the virtual device: its
// findings become verdicts, warps are interleaved in other orders, and a stated
// model stands where a GPU's clock would. Nothing from here is called measured.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "fsr/Core/Statistics.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <set>

namespace fsr {

namespace {

/// Warp instructions of one launch: minutes on one core.
constexpr uint64_t originalBudget = 1'000'000'000;
/// Of one instruction on two 16-bit values a lane, each multiplied and added.
constexpr double mostFlopsOfWarp = 32 * 2 * 2;
/// A candidate may do so many times what the original does, and some more.
constexpr uint64_t candidateFactor = 10, candidateExtra = 10'000'000;
constexpr size_t mostFindingsTold = 3;

Verdict verdictOf(ptx::FindingKind kind) {
  switch (kind) {
  case ptx::FindingKind::Budget:
    return Verdict::TimedOut;
  case ptx::FindingKind::Trap:
  case ptx::FindingKind::Assert:
    return Verdict::Crashed;
  default:
    return Verdict::Unsafe;
  }
}

/// What kernel `kernel` gets as its parameter of that number; empty where
/// launches of the plan differ in it.
std::string argumentOf(const ResolvedPlan &plan, llvm::StringRef kernel,
                       size_t parameter) {
  std::string name;
  for (const ResolvedLaunch &launch : plan.launches) {
    if (launch.kernel != kernel)
      continue;
    if (parameter >= launch.args.size() ||
        (!name.empty() && name != launch.args[parameter]))
      return "";
    name = launch.args[parameter];
  }
  return name;
}

/// As `Finding::text`, in the words of the plan: parameters have their
/// arguments' names, and a misalignment says what is proved.
std::string textOf(ptx::Finding finding, const ResolvedPlan &plan,
                   const KernelTask &task) {
  constexpr llvm::StringLiteral opening = " (parameter ";
  llvm::StringRef message = finding.message;
  size_t at = message.find(opening), number = 0;
  llvm::StringRef rest = at == llvm::StringRef::npos
                             ? llvm::StringRef()
                             : message.drop_front(at + opening.size());
  if (rest.consumeInteger(10, number) || !rest.starts_with(")"))
    return finding.text();
  std::string name = argumentOf(plan, finding.kernel, number);
  if (name.empty())
    return finding.text();
  std::string text =
      (message.take_front(at) + " (argument " + name + rest).str();
  auto argument = llvm::find_if(
      task.arguments, [&](const Argument &one) { return one.name == name; });
  if (finding.kind == ptx::FindingKind::Misaligned &&
      argument != task.arguments.end() && argument->isBuffer)
    text += llvm::formatv(
        "; the task proves {0} to be aligned to {1} bytes and no more: a wider "
        "access needs a test of the address, and another path",
        name,
        std::max<int64_t>(argument->alignment, byteSize(argument->element)));
  finding.message = std::move(text);
  return finding.text();
}

std::string describe(llvm::ArrayRef<ptx::Finding> findings,
                     const ResolvedPlan &plan, const KernelTask &task) {
  std::string text;
  for (const ptx::Finding &finding : findings.take_front(mostFindingsTold))
    text += (text.empty() ? "" : "\n") + textOf(finding, plan, task);
  if (findings.size() > mostFindingsTold)
    text += llvm::formatv("\nand {0} more findings",
                          findings.size() - mostFindingsTold)
                .str();
  return text;
}

/// For a check, beside whose verdict the findings themselves stand.
std::string kindsOf(llvm::ArrayRef<ptx::Finding> findings) {
  std::set<ptx::FindingKind> kinds;
  std::string text;
  for (const ptx::Finding &finding : findings)
    if (kinds.insert(finding.kind).second)
      text += (text.empty() ? "" : ", ") + ptx::nameOf(finding.kind).str();
  return text;
}

ptx::KernelCost costOf(llvm::ArrayRef<KernelResources> resources,
                       llvm::StringRef kernel) {
  ptx::KernelCost cost;
  auto natural = [](int64_t value) {
    return uint64_t(std::clamp<int64_t>(value, 0, 1 << 20));
  };
  for (const KernelResources &one : resources) {
    if (one.kernel != kernel)
      continue;
    cost.registers = unsigned(natural(one.registers));
    cost.sharedBytes = natural(one.sharedBytes);
    cost.spillBytes =
        natural(one.spillLoadBytes) + natural(one.spillStoreBytes);
  }
  return cost;
}

} // namespace

void Evaluation::tellCosts() {
  virtualDevice->setCost(referenceFunction, costOf(request.referenceResources,
                                                   task.reference.entry));
  for (size_t i = 0; i < candidateFunctions.size(); ++i)
    virtualDevice->setCost(
        candidateFunctions[i],
        costOf(request.candidateResources, request.plan.launches[i].kernel));
}

llvm::Error Evaluation::checkSize() const {
  auto ptx = findPtx(images.reference, helpers.properties().chip);
  if (!ptx) {
    llvm::consumeError(ptx.takeError()); // Loading it says the same.
    return llvm::Error::success();
  }
  // An instruction of a tensor core does thousands.
  if (llvm::StringRef(*ptx).contains("mma."))
    return llvm::Error::success();
  double least = task.work.flops / mostFlopsOfWarp;
  if (!(least > double(originalBudget)))
    return llvm::Error::success();
  return makeError(
      ErrorKind::Unsupported,
      llvm::formatv("the original kernel needs {0:e2} operations, which take "
                    "{1:e2} warp instructions or more, and the virtual device "
                    "takes {2:e2}: it needs the same kernel at smaller sizes",
                    task.work.flops, least, double(originalBudget)));
}

llvm::Error Evaluation::launchVirtual(Who who) {
  VirtualLaunchOptions options;
  options.seed = random();
  if (who == Who::Original) {
    options.instructionBudget = originalBudget;
  } else {
    options.schedule = order.schedule;
    options.order = order.blocks;
    options.instructionBudget =
        candidateFactor * originalInstructions + candidateExtra;
  }
  // What was seen before is not this launch's.
  virtualDevice->takeReport();
  virtualDevice->setLaunchOptions(options);
  if (llvm::Error error = buffers->protectInputs(!notesReads))
    return error;
  llvm::Error error = launchPlain(who);
  if (error)
    return error;
  return buffers->protectInputs(false);
}

llvm::Error Evaluation::classifyFault(const BackendError &failure) {
  VirtualReport report = virtualDevice->takeReport();
  auto found = llvm::find_if(report.findings, [&](const ptx::Finding &finding) {
    return finding.text() == failure.detail;
  });
  std::string text =
      failure.detail.empty() ? failure.message() : failure.detail;
  if (!candidatePhase) {
    if (found != report.findings.end() &&
        found->kind == ptx::FindingKind::Budget)
      return makeError(
          ErrorKind::Unsupported,
          "the original kernel runs for more than " +
              llvm::Twine(originalBudget) +
              " warp instructions: too large for the virtual device, which "
              "needs the same kernel at smaller sizes");
    return makeError(ErrorKind::Unsupported,
                     "the original kernel: " + text +
                         ": there is nothing to compare with");
  }
  Verdict verdict = found != report.findings.end() ? verdictOf(found->kind)
                                                   : Verdict::Crashed;
  if (verdict == Verdict::TimedOut)
    text =
        llvm::formatv("ran for more than {0} warp instructions, {1} times "
                      "those of the original and {2} more: {3}",
                      candidateFactor * originalInstructions + candidateExtra,
                      candidateFactor, candidateExtra, text);
  if (found != report.findings.end()) {
    std::string named = textOf(*found, request.plan, task);
    if (size_t at = text.find(failure.detail); at != std::string::npos)
      text.replace(at, failure.detail.size(), named);
  }
  addCheck("virtual-device", false, "-", "no findings",
           report.findings.empty() ? text : kindsOf(report.findings));
  finish(verdict, text);
  return llvm::Error::success();
}

/// Faults of the original are the task's; what it does, a candidate may do.
llvm::Error Evaluation::learnFindings() {
  VirtualReport report = virtualDevice->takeReport();
  originalInstructions = report.counters.warpInstructions;
  for (const ptx::Finding &finding : report.findings)
    originalKinds.insert(finding.kind);
  return llvm::Error::success();
}

llvm::Expected<bool> Evaluation::checkFindings(llvm::StringRef inputWords) {
  VirtualReport report = virtualDevice->takeReport();
  if (proved && !report.proof.holds) {
    proved = false;
    unproved = report.proof.broken;
  }
  approximateSteers |= report.fidelity.approximateSteers;
  for (const auto &one : report.fidelity.approximate)
    approximate[one.first] += one.second;
  llvm::erase_if(report.findings, [&](const ptx::Finding &finding) {
    return originalKinds.count(finding.kind) != 0;
  });
  if (report.findings.empty())
    return true;
  return refuse(report.findings, inputWords, order.schedule);
}

bool Evaluation::refuse(llvm::ArrayRef<ptx::Finding> findings,
                        llvm::StringRef inputWords, ptx::Schedule seenUnder) {
  std::string how = llvm::formatv(" ({0} inputs, {1} schedule)", inputWords,
                                  ptx::nameOf(seenUnder));
  addCheck("virtual-device", false, inputWords, "no findings",
           kindsOf(findings));
  return finish(verdictOf(findings.front().kind),
                describe(findings, request.plan, task) + how);
}

/// A correct kernel gives the same under every order of its warps and blocks:
/// each is held against one run in lockstep, so any two that differ show.
llvm::Expected<bool> Evaluation::validateSchedules() {
  std::vector<InputSet> sets = inputs->workload();
  sets.resize(1);
  wantsTruth = false;
  std::vector<RunOrder> orders;
  // A race within a warp shows in most random schedules, not in each.
  orders.insert(orders.end(), 6, {ptx::Schedule::SplitLanes});
  orders.insert(orders.end(), 2, {ptx::Schedule::RandomWarps});
  orders.push_back({ptx::Schedule::Lockstep, ptx::BlockOrder::Descending});
  orders.push_back({ptx::Schedule::Lockstep, ptx::BlockOrder::Random});
  auto goesOn = validateSets("orders", sets, orders);
  if (!goesOn || !*goesOn)
    return goesOn;
  // Other bits, which floats that are added atomically explain: each of the
  // rest keeps to the rule by itself.
  for (const RunOrder &how : llvm::drop_begin(orders, ranAgain)) {
    order = how;
    goesOn = validate(sets[0], Poison::NaN, {});
    order = RunOrder();
    if (!goesOn || !*goesOn)
      return goesOn;
  }
  auto tell = [&](llvm::StringRef name, const RunOrder &how) {
    addCheck(
        name, true, sets[0].words,
        candidateDeterministic ? "the same bits as in lockstep"
                               : "within the rule; floats are added atomically",
        llvm::formatv("runs: {0}",
                      llvm::count_if(orders,
                                     [&](auto &one) {
                                       return one.schedule == how.schedule &&
                                              one.blocks == how.blocks;
                                     }))
            .str());
  };
  tell("schedule-split-lanes", orders[0]);
  tell("schedule-random-warps", orders[6]);
  tell("block-order-descending", orders[8]);
  tell("block-order-random", orders[9]);
  std::string detail;
  for (const auto &one : approximate)
    detail += (detail.empty() ? "approximate on a GPU: " : ", ") + one.first;
  if (approximateSteers)
    detail += "; an approximate value reached an address or a branch";
  for (ptx::FindingKind kind : originalKinds)
    detail += (detail.empty() ? "" : "; ") +
              ("the original has findings too: " + ptx::nameOf(kind)).str();
  addCheck("virtual-device", true, "all of the above",
           "no access out of bounds, misaligned, to what nothing wrote, no "
           "race, divergent barrier or deadlock, in three orders of warps",
           detail);
  if (proved)
    addCheck("proved-safe@shape", true, "any",
             "no value of a buffer reached an address, a branch or a predicate "
             "of an access",
             "");
  return true;
}

void Evaluation::noteCounters(const ptx::Counters &counters, std::string covers,
                              bool isWhole) {
  // Beyond that a double, and so JSON, is not exact.
  auto natural = [](uint64_t value) {
    return int64_t(std::min(value, uint64_t(1) << 53));
  };
  CountedWork counted;
  counted.covers = std::move(covers);
  counted.isWhole = isWhole;
  counted.warpInstructions = natural(counters.warpInstructions);
  counted.laneInstructions = natural(counters.laneInstructions);
  counted.integer = natural(counters.integer);
  counted.float16 = natural(counters.float16);
  counted.float32 = natural(counters.float32);
  counted.float64 = natural(counters.float64);
  counted.special = natural(counters.special);
  counted.conversion = natural(counters.conversion);
  counted.control = natural(counters.control);
  counted.memory = natural(counters.memory);
  counted.barrier = natural(counters.barrier);
  counted.shuffle = natural(counters.shuffle);
  counted.tensor = natural(counters.tensor);
  counted.atomic = natural(counters.atomic);
  counted.flops16 = natural(counters.flops16);
  counted.flops32 = natural(counters.flops32);
  counted.flops64 = natural(counters.flops64);
  counted.tensorFlops = natural(counters.tensorFlops);
  counted.globalLoadBytes = natural(counters.globalLoadBytes);
  counted.globalStoreBytes = natural(counters.globalStoreBytes);
  counted.localBytes =
      natural(counters.localLoadBytes + counters.localStoreBytes);
  counted.globalRequests = natural(counters.globalRequests);
  counted.globalSectors = natural(counters.globalSectors);
  counted.uniqueSectors = natural(counters.uniqueSectors);
  counted.sharedRequests = natural(counters.sharedRequests);
  counted.bankCycles = natural(counters.bankCycles);
  counted.branches = natural(counters.branches);
  counted.divergentBranches = natural(counters.divergentBranches);
  counted.atomicSerial = natural(counters.atomicSerial);
  if (!result.profile)
    result.profile.emplace();
  result.profile->counted = std::move(counted);
}

/// In place of the race on a GPU: one launch each, and the model.
llvm::Expected<bool> Evaluation::model() {
  Measurement &m = measurement;
  m.device = helpers.properties().name;
  m.driver = helpers.properties().driver;
  InputSet set = inputs->timing(0);
  double times[2] = {0, 0};
  std::string bounds[2];
  for (Who who : {Who::Original, Who::Candidate}) {
    if (llvm::Error error = beginOriginal(1))
      return std::move(error);
    if (llvm::Error error = buffers->fill(set, false))
      return std::move(error);
    if (llvm::Error error = buffers->poisonOutputs(Poison::NaN))
      return std::move(error);
    if (who == Who::Candidate) {
      if (llvm::Error error = buffers->poisonScratch())
        return std::move(error);
      if (llvm::Error error = beginCandidate(1))
        return std::move(error);
    }
    if (llvm::Error error = launch(who))
      return std::move(error);
    VirtualReport report = virtualDevice->takeReport();
    if (who == Who::Candidate)
      noteCounters(report.counters, "all blocks", /*isWhole=*/true);
    times[who == Who::Candidate] = report.microseconds;
    bounds[who == Who::Candidate] = report.bound;
  }
  m.originalUs = {times[0]};
  m.candidateUs = {times[1]};
  m.originalMedianUs = times[0];
  m.candidateMedianUs = times[1];
  m.speedup = m.speedupLow = m.speedupHigh = times[0] / times[1];
  result.measurement = m;
  bool faster = judge({m.speedup, m.speedup, m.speedup}, modelMargin) ==
                Verdict::Accepted;
  std::string text = llvm::formatv(
      "{0}modelled, not measured: {1:f3}x; original {2:f2} us (bound by {3}), "
      "candidate {4:f2} us (bound by {5})",
      request.options.full ? "" : "a quick look, not validated in full; ",
      m.speedup, times[0], bounds[0], times[1], bounds[1]);
  if (m.speedup > 1 && !faster)
    text += llvm::formatv("; the model does not tell a gain of less than {0:f0}"
                          " %",
                          modelMargin * 100);
  finish(!faster                ? Verdict::NotFaster
         : request.options.full ? Verdict::Accepted
                                : Verdict::Undecided,
         text);
  return true;
}

} // namespace fsr
