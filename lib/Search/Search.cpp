// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The trial loop. An answer that was paid for is on disk before it is read, a
// trial before the next one starts, and a record before its trial: so whatever
// moment the process is killed at, the same call goes on from there and asks
// and measures nothing twice.
//
// Every answer is first looked at quickly with each set of its parameters; only
// the fastest set, and only where it would become the best, climbs the whole
// ladder.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Search.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace fsr {

namespace {

/// How many sets of parameters of one answer may climb the whole ladder when
/// the faster ones fall off it.
constexpr unsigned fullTriesPerAnswer = 3;

/// Some instructions exist only on the architecture-specific form of a chip.
/// Its code runs on no later chip, so it is asked for only where it is needed.
std::string chipFor(llvm::StringRef source, llvm::StringRef chip) {
  for (llvm::StringRef word : {"wgmma", "setmaxnreg", "tcgen05"})
    if (source.contains(word))
      return (chip + "a").str();
  return chip.str();
}

/// A candidate with resolved parameters that passed the quick look.
struct Contender {
  Trial trial;
  Build build;
  ResolvedPlan plan;

  double medianUs() const {
    return trial.measurement ? trial.measurement->candidateMedianUs : 0;
  }
};

class Searcher {
public:
  Searcher(const KernelTask &task, const SearchOptions &options,
           const SearchServices &services)
      : task(task), options(options), services(services) {}

  SearchOutcome run() {
    if (llvm::Error error = search())
      outcome.trouble = llvm::toString(std::move(error));
    return std::move(outcome);
  }

private:
  llvm::Error search();
  llvm::Error trySlot(int64_t round, int64_t slot);
  llvm::Expected<std::optional<std::string>> obtainAnswer(int64_t round,
                                                          int64_t slot);
  llvm::Error tryAnswer(int64_t round, int64_t slot, llvm::StringRef answer);
  llvm::Expected<std::optional<Contender>>
  quickLook(Trial trial, const Candidate &candidate);
  llvm::Error climb(std::vector<Contender> contenders,
                    const Candidate &candidate);
  llvm::Error keepWinner(const Contender &contender,
                         const Candidate &candidate);
  llvm::Error finish(const Trial &trial);
  llvm::Expected<EvaluateResult> evaluate(const Contender &contender,
                                          bool full);
  llvm::Error ensureReference();
  void notify(SearchEvent event) {
    if (services.observer)
      services.observer(event);
  }

  const KernelTask &task;
  const SearchOptions &options;
  const SearchServices &services;
  SearchOutcome outcome;
  DeviceDescription device;
  std::optional<Build> reference;
};

llvm::Error Searcher::search() {
  llvm::Expected<DeviceDescription> description = services.device.describe();
  if (!description)
    return description.takeError();
  device = std::move(*description);
  llvm::Expected<Target> chip = Target::parse(device.chip);
  if (!chip)
    return addContext(chip.takeError(), "the device's chip");
  if (chip->family() != task.target)
    return makeError(ErrorKind::BadInput,
                     "the device is a " + device.name + " (" + device.chip +
                         "), the target is " + task.target +
                         ": a winner there would not be one here");
  // The store keeps the best of earlier runs: a winner has to beat that one.
  llvm::Expected<LookUp> known =
      services.store.best(task.key, task.target, EvidenceLevel::Measured);
  if (!known)
    return known.takeError();
  outcome.winner = std::move(known->record);
  if (llvm::Error error = services.store.addTask(task))
    return error;
  for (unsigned round = 1; round <= options.rounds; ++round)
    for (unsigned slot = 1; slot <= options.width; ++slot)
      if (llvm::Error error = trySlot(round, slot))
        return error;
  // What a later compile would find is what this one uses.
  known = services.store.best(task.key, task.target, EvidenceLevel::Measured);
  if (!known)
    return known.takeError();
  outcome.winner = std::move(known->record);
  return llvm::Error::success();
}

llvm::Error Searcher::trySlot(int64_t round, int64_t slot) {
  llvm::Expected<std::optional<std::string>> answer = obtainAnswer(round, slot);
  if (!answer)
    return answer.takeError();
  if (!*answer) {
    outcome.pending.push_back(
        llvm::formatv("{0} r{1}-s{2}", task.name, round, slot).str());
    notify({SearchEvent::Kind::Pending, round, slot, nullptr});
    return llvm::Error::success();
  }
  return tryAnswer(round, slot, **answer);
}

llvm::Expected<std::optional<std::string>>
Searcher::obtainAnswer(int64_t round, int64_t slot) {
  llvm::Expected<std::string> prompt =
      renderPrompt(task, device, slot, options.prompts);
  if (!prompt)
    return prompt.takeError();
  llvm::Expected<std::optional<Talk>> known =
      services.store.findTalk(task.key, round, slot);
  if (!known)
    return known.takeError();
  if (*known && (*known)->request == *prompt) {
    ++outcome.reused;
    return std::optional<std::string>(std::move((*known)->answer));
  }
  notify({SearchEvent::Kind::Asked, round, slot, nullptr});
  ++outcome.asked;
  ChatRequest request{task.key, task.name, round, slot, *prompt};
  llvm::Expected<std::optional<ChatAnswer>> answer =
      services.client.ask(request);
  if (!answer)
    return answer.takeError();
  if (!*answer)
    return std::optional<std::string>();
  if (!(*answer)->remark.empty())
    outcome.remarks.push_back((*answer)->remark);
  Talk talk;
  talk.taskKey = task.key;
  talk.taskName = task.name;
  talk.round = round;
  talk.slot = slot;
  talk.provider = services.client.provider().str();
  talk.request = std::move(*prompt);
  talk.answer = (*answer)->text;
  talk.promptTokens = (*answer)->promptTokens;
  talk.answerTokens = (*answer)->answerTokens;
  if (llvm::Error error = services.store.addTalk(talk))
    return std::move(error);
  notify({SearchEvent::Kind::Answered, round, slot, nullptr});
  return std::optional<std::string>(std::move(talk.answer));
}

llvm::Error Searcher::tryAnswer(int64_t round, int64_t slot,
                                llvm::StringRef answer) {
  Trial trial;
  trial.taskKey = task.key;
  trial.round = round;
  trial.slot = slot;

  llvm::Expected<Candidate> candidate = parseAnswer(answer);
  if (!candidate) {
    trial.candidateHash = sha256(answer);
    trial.verdict = Verdict::Rejected;
    trial.message = llvm::toString(candidate.takeError());
    return finish(trial);
  }
  trial.candidateHash = candidate->hash();

  std::vector<Contender> contenders;
  for (const Parameters &parameters :
       candidate->combinations(options.parameterSets)) {
    trial.parameters = parameters;
    llvm::Expected<std::optional<Trial>> known =
        services.store.findTrial(task.key, trial.key());
    if (!known)
      return known.takeError();
    if (*known) {
      ++outcome.reused;
      // Two answers of one run may hold the same kernel.
      std::string key = (*known)->key();
      if (llvm::none_of(outcome.trials,
                        [&](const Trial &other) { return other.key() == key; }))
        outcome.trials.push_back(std::move(**known));
      continue;
    }
    llvm::Expected<std::optional<Contender>> contender =
        quickLook(trial, *candidate);
    if (!contender)
      return contender.takeError();
    if (*contender)
      contenders.push_back(std::move(**contender));
  }
  return climb(std::move(contenders), *candidate);
}

llvm::Expected<std::optional<Contender>>
Searcher::quickLook(Trial trial, const Candidate &candidate) {
  auto end =
      [&](Verdict verdict,
          std::string message) -> llvm::Expected<std::optional<Contender>> {
    trial.verdict = verdict;
    trial.message = std::move(message);
    if (llvm::Error error = finish(trial))
      return std::move(error);
    return std::optional<Contender>();
  };

  Contender contender;
  llvm::Expected<ResolvedPlan> plan =
      resolvePlan(candidate.plan, task, trial.parameters, device.limits);
  if (!plan)
    return end(Verdict::Rejected, llvm::toString(plan.takeError()));
  contender.plan = std::move(*plan);
  llvm::Expected<bool> holds =
      guardsHold(candidate.guards, task, trial.parameters);
  if (!holds)
    return end(Verdict::Rejected, llvm::toString(holds.takeError()));
  if (!*holds)
    return end(Verdict::Rejected,
               "a condition under `requires` does not hold for this kernel: " +
                   llvm::join(candidate.guards, "; "));

  CompileRequest request;
  request.source = candidate.source;
  request.parameters = trial.parameters;
  request.chip = chipFor(candidate.source, device.chip);
  for (const ResolvedLaunch &launch : contender.plan.launches)
    if (!llvm::is_contained(request.entries, launch.kernel))
      request.entries.push_back(launch.kernel);
  for (const ResolvedLaunch &launch : contender.plan.launches) {
    std::vector<unsigned> passed;
    for (const std::string &name : launch.args) {
      // Pointers, sizes and scratch take 8 bytes; a scalar what its type does.
      const Argument *argument = task.find(name);
      passed.push_back(
          argument && !argument->isBuffer ? byteSize(argument->element) : 8);
    }
    request.passed.emplace_back(launch.kernel, std::move(passed));
  }
  llvm::Expected<CompileOutcome> compiled = services.compiler.compile(request);
  if (!compiled)
    return compiled.takeError();
  if (!compiled->build)
    return end(compiled->verdict, compiled->message);
  contender.build = std::move(*compiled->build);
  trial.resources = contender.build.resources;

  contender.trial = std::move(trial);
  llvm::Expected<EvaluateResult> result = evaluate(contender, /*full=*/false);
  if (!result)
    return result.takeError();
  contender.trial.verdict = result->verdict;
  contender.trial.message = std::move(result->message);
  contender.trial.measurement = std::move(result->measurement);
  contender.trial.evidence = std::move(result->evidence);
  // Only these two say: equal so far, and perhaps faster.
  if (result->verdict == Verdict::Accepted ||
      result->verdict == Verdict::Undecided)
    return std::optional<Contender>(std::move(contender));
  if (llvm::Error error = finish(contender.trial))
    return std::move(error);
  return std::optional<Contender>();
}

llvm::Error Searcher::climb(std::vector<Contender> contenders,
                            const Candidate &candidate) {
  llvm::sort(contenders, [](const Contender &a, const Contender &b) {
    return a.medianUs() < b.medianUs();
  });
  bool done = false;
  unsigned tries = 0;
  for (Contender &contender : contenders) {
    // Times of two devices are never compared.
    bool comparable =
        outcome.winner && outcome.winner->measurement.device == device.name;
    double bestUs =
        comparable ? outcome.winner->measurement.candidateMedianUs : 0;
    bool wouldWin = !comparable || contender.medianUs() == 0 ||
                    contender.medianUs() < 1.02 * bestUs;
    if (done || !wouldWin || tries == fullTriesPerAnswer) {
      contender.trial.verdict = Verdict::Undecided;
      contender.trial.message =
          "passed the quick checks, but is not the fastest so far: not "
          "validated in full";
    } else {
      ++tries;
      llvm::Expected<EvaluateResult> result =
          evaluate(contender, /*full=*/true);
      if (!result)
        return result.takeError();
      contender.trial.verdict = result->verdict;
      contender.trial.message = std::move(result->message);
      if (result->measurement)
        contender.trial.measurement = std::move(result->measurement);
      contender.trial.evidence = std::move(result->evidence);
      if (result->verdict == Verdict::Accepted) {
        done = true;
        if (llvm::Error error = keepWinner(contender, candidate))
          return error;
      }
    }
    if (llvm::Error error = finish(contender.trial))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Searcher::keepWinner(const Contender &contender,
                                 const Candidate &candidate) {
  const Trial &trial = contender.trial;
  llvm::Expected<std::string> fatbin = services.makeFatbin(contender.build);
  if (!fatbin)
    return fatbin.takeError();
  Record record;
  record.taskKey = task.key;
  record.target = task.target;
  record.chip = contender.build.chip;
  record.kernelName = task.name;
  for (const Argument &argument : task.arguments)
    record.argumentNames.push_back(argument.name);
  record.candidate = candidate;
  record.parameters = trial.parameters;
  record.plan = contender.plan;
  record.resources = trial.resources;
  record.fatbin = std::move(*fatbin);
  if (trial.measurement)
    record.measurement = *trial.measurement;
  record.evidence = trial.evidence;
  record.evidence.toolchain = contender.build.toolchain;
  record.provider = services.client.provider().str();
  record.round = trial.round;
  record.slot = trial.slot;
  if (llvm::Error error = services.store.addRecord(record))
    return error;
  if (!outcome.winner || record.measurement.candidateMedianUs <
                             outcome.winner->measurement.candidateMedianUs)
    outcome.winner = std::move(record);
  return llvm::Error::success();
}

llvm::Error Searcher::finish(const Trial &trial) {
  if (llvm::Error error = services.store.addTrial(trial))
    return error;
  outcome.trials.push_back(trial);
  notify({SearchEvent::Kind::Finished, trial.round, trial.slot,
          &outcome.trials.back()});
  return llvm::Error::success();
}

llvm::Error Searcher::ensureReference() {
  if (reference)
    return llvm::Error::success();
  llvm::Expected<Build> build = services.buildReference(task);
  if (!build)
    return addContext(build.takeError(), "building the original kernel");
  reference = std::move(*build);
  return llvm::Error::success();
}

llvm::Expected<EvaluateResult> Searcher::evaluate(const Contender &contender,
                                                  bool full) {
  if (llvm::Error error = ensureReference())
    return std::move(error);
  EvaluateRequest request;
  request.task = &task;
  request.referenceImage = reference->cubin;
  request.candidateImage = contender.build.cubin;
  request.plan = contender.plan;
  request.options.seed = options.seed;
  request.options.full = full;
  return services.device.evaluate(request);
}

} // namespace

SearchOutcome runSearch(const KernelTask &task, const SearchOptions &options,
                        const SearchServices &services) {
  return Searcher(task, options, services).run();
}

} // namespace fsr
