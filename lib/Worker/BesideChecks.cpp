// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an evaluation on a GPU asks of the virtual device: a short look at the
// workload's own inputs in the quick rung; in the full one other orders of
// warps and blocks, and, unless the run stands for all data, other inputs.
//
// Its findings refuse a candidate as they do on the virtual device. What could
// not be looked at is no fault, and the evidence says so.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>
#include <thread>

namespace fsr {

/// Of all runs of one rung.
struct BesideTold {
  uint64_t fillings = 0, instructions = 0;
  bool isWhole = true, isProved = true, isSpent = false;
  std::string part, why, unproved;
  std::vector<std::string> schedules;
  std::map<std::string, uint64_t> approximate;
  bool approximateSteers = false;
};

namespace {

/// Of warps, of one run: some 5 and 60 ms of one core.
constexpr uint64_t quickInstructions = 60'000, fullInstructions = 1'000'000;
/// Of all runs of an evaluation, but for the one under way.
constexpr uint64_t allInstructions = 5'000'000;
constexpr uint64_t quickBytes = uint64_t(32) << 20;
/// Instructions bound a run, not a clock; a busy host may be slow.
constexpr double runMs = 300e3;
constexpr llvm::StringLiteral checkName = "virtual-device";

BesideLimits limitsOf(bool inFull) {
  BesideLimits limits;
  limits.instructions = inFull ? fullInstructions : quickInstructions;
  if (!inFull)
    limits.bytes = quickBytes;
  return limits;
}

ptx::VirtualGpuOptions likeDevice(const BackendProperties &facts) {
  ptx::VirtualGpuOptions options;
  // Blocks that wait for one another count on so many being under way.
  if (facts.multiprocessors > 0)
    options.multiprocessors = unsigned(facts.multiprocessors);
  if (facts.threadsPerMultiprocessor > 0)
    options.threadsPerMultiprocessor = unsigned(facts.threadsPerMultiprocessor);
  return options;
}

std::string nameOf(const BesideHow &how) {
  std::string name = ptx::nameOf(how.schedule).str();
  if (how.order != ptx::BlockOrder::OfSchedule)
    name += (" with blocks in " + ptx::nameOf(how.order) + " order").str();
  return name;
}

} // namespace

llvm::Error Evaluation::fetchBeside(size_t argument, uint64_t offset, void *to,
                                    uint64_t bytes) {
  if (llvm::Error error = helpers.backend().copyToHost(
          to, buffers->find(argument)->pointer() + offset, bytes,
          helpers.stream()))
    return error;
  return helpers.synchronize();
}

/// Where the original is not known yet, and what the launches read is little:
/// that is copied, and while they run on the host the device learns of the
/// original. It does not see the candidate before the virtual device has.
llvm::Expected<BesideReport> Evaluation::runBeside(const InputSet &set,
                                                   const BesideLimits &limits,
                                                   const BesideHow &how) {
  uint64_t total = 0;
  for (const TaskBuffer &buffer : buffers->buffers())
    total += buffer.poisoned() ? 0 : buffer.extent;
  if (originalKnown || total > limits.smallBytes)
    return beside->run(
        limits, how,
        [&](size_t argument, uint64_t offset, void *to, uint64_t bytes) {
          return fetchBeside(argument, offset, to, bytes);
        });
  std::map<size_t, std::vector<uint8_t>> copies;
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (buffer.poisoned())
      continue;
    std::vector<uint8_t> &bytes = copies[buffer.index];
    bytes.resize(buffer.extent);
    if (buffer.extent)
      if (llvm::Error error =
              fetchBeside(buffer.index, 0, bytes.data(), bytes.size()))
        return std::move(error);
  }
  std::optional<llvm::Expected<BesideReport>> report;
  std::thread other([&] {
    report.emplace(beside->run(
        limits, how,
        [&](size_t argument, uint64_t offset, void *to, uint64_t bytes) {
          if (bytes)
            std::memcpy(to, copies[argument].data() + offset, bytes);
          return llvm::Error::success();
        }));
  });
  llvm::Error failed = learnEarly();
  if (!failed)
    failed = begin("original-virtual", runMs + helperSlackMs());
  other.join();
  // Who asks the original next asks about the same inputs.
  buffers->share(set);
  if (!failed)
    failed = buffers->fill(set, false);
  if (!failed)
    return std::move(*report);
  llvm::consumeError(report->takeError());
  return std::move(failed);
}

/// What the original does, a candidate may do. Asked only where it matters.
llvm::Expected<std::set<ptx::FindingKind>>
Evaluation::findOriginalKinds(const BesideLimits &limits,
                              const BesideHow &how) {
  std::set<ptx::FindingKind> kinds;
  auto report = runOriginalBeside(limits, how);
  if (!report)
    return report.takeError();
  for (const ptx::Finding &finding : report->findings)
    kinds.insert(finding.kind);
  return kinds;
}

llvm::Expected<BesideReport>
Evaluation::runOriginalBeside(const BesideLimits &limits,
                              const BesideHow &how) {
  if (images.referencePtx.empty())
    return BesideReport();
  if (!besideOriginal)
    besideOriginal = std::make_unique<Beside>(
        task, images.referencePtx, likeDevice(helpers.properties()), random());
  return besideOriginal->run(
      limits, how,
      [&](size_t argument, uint64_t offset, void *to, uint64_t bytes) {
        return fetchBeside(argument, offset, to, bytes);
      });
}

/// Of two runs on the same inputs, as between two on a GPU.
bool Evaluation::besideDiffers(const BesideHow &how, const InputSet &set) {
  std::string text = llvm::formatv(
      "results change under other orders of warps and blocks ({0}) and no "
      "floating-point atomic explains it ({1} inputs)",
      nameOf(how), set.words);
  addCheck("deterministic", false, set.words,
           "the same bits in all orders of warps and blocks", text);
  return finish(Verdict::Mismatch, text);
}

llvm::Expected<bool> Evaluation::besideOn(const InputSet &set, bool inFull,
                                          BesideTold &told) {
  if (llvm::Error error = begin("original-virtual", runMs + helperSlackMs()))
    return std::move(error);
  if (placedShifted) {
    if (llvm::Error error = buffers->place(false))
      return std::move(error);
    placedShifted = false;
  }
  buffers->share(set);
  if (llvm::Error error = buffers->fill(set, false))
    return std::move(error);
  std::vector<BesideHow> hows(1);
  if (inFull && told.fillings == 0) {
    hows[0].notesReads = true;
    // A race within a warp shows in most random schedules, not in each.
    for (unsigned i = 0; i < 4; ++i)
      hows.push_back({ptx::Schedule::SplitLanes, ptx::BlockOrder::OfSchedule});
    hows.push_back({ptx::Schedule::RandomWarps, ptx::BlockOrder::OfSchedule});
    hows.push_back({ptx::Schedule::Lockstep, ptx::BlockOrder::Descending});
  }
  BesideLimits limits = limitsOf(inFull);
  std::optional<uint64_t> first;
  for (const BesideHow &how : hows) {
    if (beside->executed() >= allInstructions) {
      told.isSpent = true;
      return true;
    }
    auto report = runBeside(set, limits, how);
    if (!report)
      return report.takeError();
    if (!report->why.empty()) {
      told.why = report->why;
      return true;
    }
    if (!report->findings.empty()) {
      auto kinds = findOriginalKinds(limits, how);
      if (!kinds)
        return kinds.takeError();
      llvm::erase_if(report->findings, [&](const ptx::Finding &finding) {
        return kinds->count(finding.kind) != 0;
      });
      if (!report->findings.empty())
        return refuse(report->findings, set.words, how.schedule);
    }
    if (&how == hows.data() && told.fillings == 0)
      noteCounters(report->counters, report->part, report->isWhole);
    if (how.notesReads && !report->reads.empty()) {
      auto original = runOriginalBeside(limits, how);
      if (!original)
        return original.takeError();
      candidateReads = std::move(report->reads);
      originalReads = std::move(original->reads);
    }
    if (&how == hows.data())
      first = report->outputs;
    else if (first && report->outputs && *first != *report->outputs &&
             addsFloatsAtomically && !*addsFloatsAtomically)
      return besideDiffers(how, set);
    told.instructions += report->instructions;
    told.isWhole &= report->isWhole;
    if (told.part.empty())
      told.part = report->part;
    if (told.isProved && !report->proof.holds) {
      told.isProved = false;
      told.unproved = report->proof.broken;
    }
    for (const auto &one : report->fidelity.approximate)
      told.approximate[one.first] += one.second;
    told.approximateSteers |= report->fidelity.approximateSteers;
    if (std::string name = nameOf(how);
        !llvm::is_contained(told.schedules, name))
      told.schedules.push_back(std::move(name));
  }
  ++told.fillings;
  return true;
}

llvm::Expected<bool> Evaluation::validateBeside(bool inFull) {
  if (virtualDevice || dummy)
    return true;
  bool isLast = inFull == request.options.full;
  BesideTold told;
  std::vector<InputSet> sets = inputs->workload();
  llvm::erase_if(sets, [](const InputSet &set) { return set.shifted; });
  if (images.candidatePtx.empty()) {
    told.why = "the candidate's PTX is not at hand";
  } else {
    if (!beside) {
      // Reading PTX is part of it.
      if (llvm::Error error =
              begin("original-virtual", runMs + helperSlackMs()))
        return std::move(error);
      beside =
          std::make_unique<Beside>(task, request.plan, images.candidatePtx,
                                   likeDevice(helpers.properties()), random());
    }
    if (inFull)
      llvm::append_range(sets, inputs->battery());
    else
      sets.resize(std::min<size_t>(sets.size(), 1));
    for (const InputSet &set : sets) {
      auto goesOn = besideOn(set, inFull, told);
      buffers->share(InputSet());
      if (!goesOn || !*goesOn)
        return goesOn;
      // A proof holds for all data.
      if (!told.why.empty() || told.isSpent || (told.isWhole && told.isProved))
        break;
    }
  }
  if (!isLast)
    return true;
  if (told.fillings == 0 && told.schedules.empty()) {
    addCheck(checkName, true, "-", "not run",
             told.why.empty() ? "the budget of instructions is spent"
                              : told.why);
    return true;
  }
  std::string detail = llvm::formatv(
      "{0} warp instructions in {1} {2}; {3}; {4}", told.instructions,
      told.fillings, told.fillings == 1 ? "filling" : "fillings", told.part,
      llvm::join(told.schedules, ", "));
  if (told.isSpent)
    detail += "; the budget of all runs is spent";
  if (!told.why.empty())
    detail += "; then " + told.why;
  if (!told.isWhole)
    detail += "; no proof, since not all ran";
  else if (!told.isProved)
    detail += "; no proof: " + told.unproved;
  std::string names;
  for (const auto &one : told.approximate)
    names += (names.empty() ? "; approximate on a GPU: " : ", ") + one.first;
  detail += names;
  if (told.approximateSteers)
    detail += "; an approximate value reached an address or a branch";
  addCheck(checkName, true, sets.front().words,
           "no access out of bounds, misaligned, to what nothing wrote, no "
           "race, divergent barrier or deadlock",
           detail);
  if (told.isWhole && told.isProved && told.why.empty())
    addCheck("proved-safe@shape", true, "any",
             "no value of a buffer reached an address, a branch or a predicate "
             "of an access",
             "");
  return true;
}

} // namespace fsr
