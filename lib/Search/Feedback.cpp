// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The reinforcement of FSR: what earlier rounds measured, put into the request.
// Wording is in the template; here are the choices: which candidate is the
// best, which one a slot repairs, and how much of a failure is told. Numbers
// have fixed digits, and what is quoted stands between fences that it cannot
// close.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Feedback.h"

#include "Occupancy.h"
#include "Templates.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

namespace fsr {

using namespace search;

namespace {

constexpr size_t maxRepairMessage = 6000;
constexpr size_t maxHistoryMessage = 600;
/// Different failures of one candidate that are told.
constexpr size_t maxFailures = 3;
constexpr size_t maxStrategy = 200;
/// Candidates that are told of, the last ones.
constexpr size_t maxAttempts = 32;
/// Kernels of the best whose code and counters are told.
constexpr size_t maxKernels = 8;
constexpr size_t maxFact = 1500;

std::string us(double value) { return formatted("%.2f", value); }

double medianOf(const Trial &trial) {
  return trial.measurement ? trial.measurement->candidateMedianUs : 0;
}

double gainOf(const Trial &trial) {
  return trial.measurement ? trial.measurement->speedup : 0;
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

std::string labelOf(const Attempt &attempt) {
  return "answer " + std::to_string(attempt.slot) + " of round " +
         std::to_string(attempt.round);
}

/// One line of somebody's text, without what would end the line's markup.
std::string oneLine(llvm::StringRef text, size_t limit) {
  std::string line;
  for (char c : text.trim().take_front(limit))
    line += c == '\n' || c == '\r' ? ' ' : c;
  return clean(llvm::StringRef(line).rtrim(". "));
}

std::string strategyText(const Attempt &attempt) {
  if (!attempt.candidate)
    return "could not be read";
  std::string line = oneLine(attempt.candidate->strategy, maxStrategy);
  return line.empty() ? "no strategy given" : line;
}

std::string parametersText(const Parameters &parameters) {
  if (parameters.empty())
    return "none";
  std::string text;
  for (const auto &[name, value] : parameters)
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  return text;
}

std::string shortened(llvm::StringRef text, size_t limit) {
  text = text.trim();
  if (text.size() <= limit)
    return clean(text);
  return clean(text.take_front(limit)) + "\n[cut]";
}

/// Back ticks enough that no line of `text` closes the block.
std::string fenceFor(llvm::StringRef text) {
  size_t longest = 0, run = 0;
  for (char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(std::max<size_t>(3, longest + 1), '`');
}

llvm::StringRef verdictText(Verdict verdict) {
  switch (verdict) {
  case Verdict::Accepted:
    return "right, and faster than the original";
  case Verdict::NotFaster:
    return "right, but not faster than the original";
  case Verdict::Undecided:
    return "right as far as it was checked";
  case Verdict::Mismatch:
    return "wrong results";
  case Verdict::Unsafe:
    return "unsafe";
  case Verdict::CompileFailed:
    return "does not compile";
  case Verdict::Rejected:
    return "breaks the rules";
  case Verdict::LaunchFailed:
    return "cannot be launched";
  case Verdict::Crashed:
    return "crashes";
  case Verdict::TimedOut:
    return "does not end in time";
  case Verdict::Implausible:
    return "timed faster than the device can be, so something is left out";
  }
  llvm_unreachable("no such verdict");
}

std::string setsText(size_t failed, size_t all) {
  if (all <= 1)
    return "its only set of parameters";
  if (failed == all)
    return "all " + std::to_string(all) + " sets of parameters";
  return std::to_string(failed) + " of " + std::to_string(all) +
         " sets of parameters";
}

/// The ways in which parameter sets failed, in the order of the sets.
llvm::json::Array failuresOf(const Attempt &attempt, size_t limit) {
  struct Failure {
    const Trial *first;
    size_t count = 0;
  };
  std::vector<Failure> failures;
  for (const Trial &trial : attempt.trials) {
    if (isValid(trial))
      continue;
    auto same = llvm::find_if(failures, [&](const Failure &failure) {
      return failure.first->verdict == trial.verdict &&
             failure.first->message == trial.message;
    });
    if (same == failures.end()) {
      if (failures.size() == maxFailures)
        continue;
      same = failures.insert(failures.end(), {&trial, 0});
    }
    ++same->count;
  }
  llvm::json::Array list;
  for (const Failure &failure : failures) {
    std::string message = shortened(failure.first->message, limit);
    std::string sets = setsText(failure.count, attempt.trials.size());
    if (!failure.first->parameters.empty())
      sets += ", the first with " + parametersText(failure.first->parameters);
    list.push_back(llvm::json::Object{
        {"verdict", verdictText(failure.first->verdict)},
        {"sets", sets},
        {"message", message.empty() ? "no message" : message},
        {"fence", fenceFor(message)}});
  }
  return list;
}

/// "`TILE`: 32 gives 12.00 µs, 64 gives 10.10 µs, 128 fails".
llvm::json::Array sweepOf(const Attempt &attempt) {
  std::map<std::string, std::map<int64_t, double>> best; // 0: none is valid.
  for (const Trial &trial : attempt.trials)
    for (const auto &[name, value] : trial.parameters) {
      double &known = best[name].try_emplace(value, 0).first->second;
      double median = isValid(trial) ? medianOf(trial) : 0;
      if (median > 0 && (known == 0 || median < known))
        known = median;
    }
  llvm::json::Array rows;
  for (const auto &[name, values] : best) {
    if (values.size() < 2)
      continue;
    std::string text = "`" + name + "`: ";
    bool first = true;
    for (const auto &[value, median] : values) {
      text += (first ? "" : ", ") + std::to_string(value) +
              (median > 0 ? " gives " + us(median) + " µs" : " has no time");
      first = false;
    }
    rows.push_back(llvm::json::Object{{"text", text}});
  }
  return rows;
}

/// The earlier answer that holds the very same kernel, if one does.
const Attempt *twinOf(const Attempt &attempt, llvm::ArrayRef<Attempt> earlier) {
  if (!attempt.candidate)
    return nullptr;
  std::string hash = attempt.candidate->hash();
  const auto *twin = llvm::find_if(earlier, [&](const Attempt &other) {
    return other.candidate && other.candidate->hash() == hash;
  });
  return twin == earlier.end() ? nullptr : twin;
}

/// The line behind the strategy.
std::string outcomeText(const Attempt &attempt) {
  const Trial *best = nullptr, *worst = nullptr;
  size_t valid = 0;
  for (const Trial &trial : attempt.trials) {
    if (!isValid(trial))
      continue;
    ++valid;
    if (medianOf(trial) <= 0)
      continue;
    if (!best || medianOf(trial) < medianOf(*best))
      best = &trial;
    if (!worst || medianOf(trial) > medianOf(*worst))
      worst = &trial;
  }
  if (valid == 0)
    return "It failed.";
  std::string text = std::to_string(valid) + " of " +
                     std::to_string(attempt.trials.size()) + " sets are right.";
  if (!best)
    return text;
  text += " Best " + us(medianOf(*best)) + " µs, " +
          formatted("%.3f", gainOf(*best)) + " times the original's speed";
  if (best->parameters.empty())
    return text + ".";
  text += " (" + parametersText(best->parameters) + ")";
  if (worst != best)
    text += "; worst " + us(medianOf(*worst)) + " µs (" +
            parametersText(worst->parameters) + ")";
  return text + ".";
}

/// The plan in the very form of an answer, a launch a line, so that what is
/// copied from it is accepted.
std::string planText(const Candidate &candidate) {
  auto compact = [](llvm::json::Value value) {
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return text;
  };
  auto dimensions = [](const std::array<std::string, 3> &sizes) {
    size_t count = sizes[2] != "1" ? 3 : sizes[1] != "1" ? 2 : 1;
    llvm::json::Array array;
    for (const std::string &size : llvm::ArrayRef(sizes).take_front(count))
      array.push_back(clean(size));
    return array;
  };
  auto block = [&](llvm::ArrayRef<llvm::json::Value> lines) {
    std::string text = "[";
    for (const llvm::json::Value &line : lines)
      text += (&line == lines.begin() ? "\n    " : ",\n    ") + compact(line);
    return text + (lines.empty() ? "]" : "\n  ]");
  };
  std::vector<llvm::json::Value> launches, scratch;
  for (const PlannedLaunch &launch : candidate.plan.launches) {
    llvm::json::Value args = llvm::json::Array(launch.args);
    if (launch.args.size() == 1 && launch.args.front() == "same")
      args = "same";
    llvm::json::Object object{{"kernel", launch.kernel},
                              {"grid", dimensions(launch.grid)},
                              {"block", dimensions(launch.block)},
                              {"shared", clean(launch.shared)},
                              {"args", std::move(args)}};
    if (llvm::any_of(launch.cluster,
                     [](llvm::StringRef n) { return n != "1"; }))
      object["cluster"] = dimensions(launch.cluster);
    launches.push_back(std::move(object));
  }
  for (const ScratchBuffer &buffer : candidate.plan.scratch)
    scratch.push_back(llvm::json::Object{{"name", buffer.name},
                                         {"bytes", clean(buffer.bytes)},
                                         {"zero", buffer.zero}});
  llvm::json::Object parameters;
  for (const auto &[name, values] : candidate.parameters)
    parameters[name] = llvm::json::Array(values);
  llvm::json::Array guards;
  for (const std::string &guard : candidate.guards)
    guards.push_back(clean(guard));
  return "{\n  \"launch\": " + block(launches) +
         ",\n  \"scratch\": " + block(scratch) +
         ",\n  \"requires\": " + compact(std::move(guards)) +
         ",\n  \"params\": " + compact(std::move(parameters)) +
         ",\n  \"strategy\": " + compact(clean(candidate.strategy)) +
         ",\n  \"notes\": " + compact(clean(candidate.notes)) + "\n}";
}

//===----------------------------------------------------------------------===//
// What the template sees
//===----------------------------------------------------------------------===//

/// What is not known is not told. A store, or a peer, may have written it.
void addFacts(const Profile &profile, const KernelTask &task,
              double microseconds, llvm::json::Array &uses) {
  auto add = [&](std::string text) {
    uses.push_back(llvm::json::Object{{"text", std::move(text)}});
  };
  for (const std::string &text :
       measuredRateTexts(task.work, profile, microseconds))
    add(text);
  for (const InstructionMix &mix :
       llvm::ArrayRef(profile.mixes).take_front(maxKernels))
    add(oneLine(describe(mix), maxFact));
  for (const HardwareCounters &counters :
       llvm::ArrayRef(profile.hardware).take_front(maxKernels))
    add(oneLine(describe(counters), maxFact));
  if (!profile.counted)
    return;
  std::string text = "The virtual device, which runs its PTX on a CPU, counted "
                     "in one run (" +
                     oneLine(profile.counted->covers, maxFact) + "):";
  for (const std::string &line : describe(*profile.counted))
    text += "\n  - " + line;
  add(std::move(text));
}

void addBest(const BestSoFar &best, const KernelTask &task,
             const DeviceDescription &device, llvm::json::Object &data) {
  const Trial &trial = *best.trial;
  const Candidate &candidate = *best.attempt->candidate;
  data["best_label"] = labelOf(*best.attempt);
  data["best_strategy"] = strategyText(*best.attempt);
  data["best_accepted"] = trial.verdict == Verdict::Accepted;
  Measurement measurement;
  if (trial.measurement)
    measurement = *trial.measurement;
  data["best_us"] = us(measurement.candidateMedianUs);
  data["original_us"] = us(measurement.originalMedianUs);
  data["best_gain"] = formatted("%.3f", measurement.speedup) + " [" +
                      formatted("%.3f", measurement.speedupLow) + ", " +
                      formatted("%.3f", measurement.speedupHigh) + "]";
  data["bound_us"] = nullptr;
  double bound = hardwareBoundUs(task.work, device);
  if (bound > 0 && measurement.candidateMedianUs > 0) {
    data["bound_us"] = us(bound);
    data["bound_share"] =
        formatted("%.1f", 100 * bound / measurement.candidateMedianUs);
  }
  data["best_params"] = parametersText(trial.parameters);
  llvm::json::Array uses;
  for (std::string &text :
       rateTexts(task.work, device, measurement.candidateMedianUs))
    uses.push_back(llvm::json::Object{{"text", std::move(text)}});
  llvm::Expected<ResolvedPlan> resolved =
      resolvePlan(candidate.plan, task, trial.parameters, device.limits);
  if (resolved) {
    for (const ResolvedLaunch &launch : resolved->launches)
      for (const KernelResources &kernel : trial.resources)
        if (kernel.kernel == launch.kernel)
          if (std::optional<Occupancy> occupancy =
                  occupancyOf(kernel, launch.shape, device))
            uses.push_back(llvm::json::Object{
                {"text", "`" + oneLine(kernel.kernel, maxStrategy) +
                             "`: " + describe(*occupancy, kernel)}});
  } else {
    // A kept trial of a device with other limits.
    llvm::consumeError(resolved.takeError());
  }
  if (trial.profile)
    addFacts(*trial.profile, task, measurement.candidateMedianUs, uses);
  data["uses"] = std::move(uses);
  llvm::json::Array resources;
  for (const KernelResources &kernel : trial.resources)
    resources.push_back(llvm::json::Object{
        {"kernel", oneLine(kernel.kernel, maxStrategy)},
        {"registers", std::to_string(kernel.registers)},
        {"shared", std::to_string(kernel.sharedBytes)},
        {"spill_stores", std::to_string(kernel.spillStoreBytes)},
        {"spill_loads", std::to_string(kernel.spillLoadBytes)},
        {"stack", std::to_string(kernel.stackBytes)}});
  data["has_resources"] = !resources.empty();
  data["resources"] = std::move(resources);
  data["best_source"] = clean(candidate.source);
  data["source_fence"] = fenceFor(candidate.source);
  std::string plan = planText(candidate);
  data["plan_fence"] = fenceFor(plan);
  data["best_plan"] = std::move(plan);
}

/// The failed attempt that a slot is shown: its own of the last round. Where
/// nothing is valid yet and its own could not even be read, another one that
/// has a source, a different one for each slot.
const Attempt *failureFor(unsigned slot, int64_t round, bool anyValid,
                          llvm::ArrayRef<Attempt> attempts) {
  const Attempt *own = nullptr;
  for (const Attempt &attempt : attempts)
    if (attempt.round == round - 1 && attempt.slot == int64_t(slot) &&
        hasFailed(attempt))
      own = &attempt;
  if (anyValid || (own && own->candidate))
    return own;
  std::vector<const Attempt *> readable;
  for (const Attempt &attempt : llvm::reverse(attempts))
    if (attempt.candidate)
      readable.push_back(&attempt);
  if (readable.empty())
    return own;
  return readable[(std::max(slot, 1u) - 1) % readable.size()];
}

void addRepair(const Attempt &attempt, bool anyValid,
               llvm::json::Object &data) {
  data["only_failures"] = !anyValid;
  data["repair_label"] = labelOf(attempt);
  data["repair_failures"] = failuresOf(attempt, maxRepairMessage);
  data["repair_has_source"] = attempt.candidate.has_value();
  if (!attempt.candidate)
    return;
  data["repair_source"] = clean(attempt.candidate->source);
  data["repair_source_fence"] = fenceFor(attempt.candidate->source);
  std::string plan = planText(*attempt.candidate);
  data["repair_plan_fence"] = fenceFor(plan);
  data["repair_plan"] = std::move(plan);
}

} // namespace

bool isValid(const Trial &trial) {
  return trial.verdict == Verdict::Accepted ||
         trial.verdict == Verdict::NotFaster ||
         trial.verdict == Verdict::Undecided;
}

bool hasFailed(const Attempt &attempt) {
  return llvm::none_of(attempt.trials, isValid);
}

bool isBetter(const Trial &trial, const Trial &best) {
  bool accepted = trial.verdict == Verdict::Accepted;
  if (accepted != (best.verdict == Verdict::Accepted))
    return accepted;
  if (accepted && trial.measurement && best.measurement)
    return trial.measurement->speedupLow > best.measurement->speedupLow;
  return gainOf(trial) > gainOf(best);
}

std::optional<BestSoFar> findBest(llvm::ArrayRef<Attempt> attempts) {
  std::optional<BestSoFar> best;
  for (const Attempt &attempt : attempts) {
    if (!attempt.candidate)
      continue;
    for (const Trial &trial : attempt.trials)
      if (isValid(trial) && (!best || isBetter(trial, *best->trial)))
        best = BestSoFar{&attempt, &trial};
  }
  return best;
}

bool isGain(const Trial *before, const Trial &after) {
  if (!before)
    return true;
  double noise = 0;
  for (const Trial *trial : {before, &after})
    if (trial->measurement)
      noise = std::max(noise, trial->measurement->noiseFloor);
  return gainOf(after) > gainOf(*before) * (1 + noise);
}

double hardwareBoundUs(const WorkEstimate &work,
                       const DeviceDescription &device) {
  double seconds = 0;
  if (double peak = device.peakBytesPerSecond(); peak > 0)
    seconds = (work.bytesRead + work.bytesWritten) / peak;
  if (double peak = device.peakFlopsPerSecond(); peak > 0)
    seconds = std::max(seconds, work.flops / peak);
  return seconds * 1e6;
}

llvm::Expected<std::string>
renderPrompt(const KernelTask &task, const DeviceDescription &device,
             int64_t round, unsigned slot, llvm::ArrayRef<Attempt> attempts,
             unsigned roundsWithoutGain, llvm::StringRef promptFolder) {
  auto templates = readTemplates(promptFolder);
  if (!templates)
    return templates.takeError();
  std::optional<BestSoFar> best = findBest(attempts);
  // As long as nothing is right, a slot stays with the strategy that it began
  // with: it repairs its own.
  auto strategy =
      best
          ? strategyOf(templates->laterStrategies, "strategies-later.txt", slot)
          : strategyOf(templates->strategies, "strategies.txt", slot);
  if (!strategy)
    return strategy.takeError();

  llvm::json::Object data;
  data["round"] = std::to_string(round);
  data["earlier_rounds"] = std::to_string(round - 1);
  data["stalled"] = nullptr;
  if (roundsWithoutGain > 0)
    data["stalled"] = std::to_string(roundsWithoutGain);
  data["has_best"] = best.has_value();
  if (best)
    addBest(*best, task, device, data);
  const Attempt *failed = failureFor(slot, round, best.has_value(), attempts);
  data["has_repair"] = failed != nullptr;
  if (failed)
    addRepair(*failed, best.has_value(), data);
  size_t leftOut = attempts.size() - std::min(attempts.size(), maxAttempts);
  data["left_out"] = nullptr;
  if (leftOut > 0)
    data["left_out"] = std::to_string(leftOut);
  llvm::json::Array list;
  for (const auto &[i, attempt] : llvm::enumerate(attempts)) {
    if (i < leftOut)
      continue;
    llvm::json::Object object{{"label", labelOf(attempt)},
                              {"strategy", strategyText(attempt)},
                              {"sweep", llvm::json::Array()},
                              {"failures", llvm::json::Array()}};
    if (const Attempt *twin = twinOf(attempt, attempts.take_front(i))) {
      object["outcome"] = "The same kernel as " + labelOf(*twin) + ".";
    } else {
      object["outcome"] = outcomeText(attempt);
      object["sweep"] = sweepOf(attempt);
      if (&attempt != failed) // Told in full above.
        object["failures"] = failuresOf(attempt, maxHistoryMessage);
    }
    list.push_back(std::move(object));
  }
  data["attempts"] = std::move(list);
  return renderRequest(*templates, task, device, slot, *strategy) +
         renderTemplate(templates->feedback, std::move(data));
}

} // namespace fsr
