// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rounds and the trial loop. A round asks for all its answers at once,
// tries them in the order of their slots, and is over before the next one is
// worded. An answer that was paid for is on disk before it is read, a trial
// before the next one starts, and a record before its trial, which is made from
// it where a kill came in between: so whatever moment the process is killed at,
// the same call goes on from there and asks and measures nothing twice.
//
// Every answer is first looked at quickly with each set of its parameters; only
// the fastest set, and only where it would become the best of this search,
// climbs the whole ladder.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Feedback.h"
#include "fsr/Search/Strength.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

namespace fsr {

namespace {

/// How many sets of parameters of one answer may climb the whole ladder when
/// the faster ones fall off it.
constexpr unsigned fullTriesPerAnswer = 3;

/// A candidate with resolved parameters that passed the quick look.
struct Contender {
  Trial trial;
  Build build;
  ResolvedPlan plan;

  double medianUs() const {
    return trial.measurement ? trial.measurement->candidateMedianUs : 0;
  }
};

/// One request of a round on its way to an answer.
struct SlotState {
  int64_t number = 0;
  std::string prompt;
  std::optional<std::string> answer;
  bool pending = false;
};

class Searcher {
public:
  Searcher(const KernelTask &task, const SearchOptions &options,
           const SearchServices &services)
      : task(task), options(options), services(services) {}

  SearchOutcome run() {
    llvm::Error error = search();
    if (!outcome.weak.empty()) {
      llvm::consumeError(std::move(error)); // It says the same.
      outcome.stop = SearchStop::Weak;
    } else if (error) {
      outcome.stop = SearchStop::Trouble;
      outcome.trouble = llvm::toString(std::move(error));
    }
    return std::move(outcome);
  }

private:
  llvm::Error search();
  llvm::Error searchRounds();
  llvm::Error doRound(int64_t round, unsigned width, RoundSummary &summary);
  llvm::Expected<std::string> promptOf(int64_t round, unsigned slot);
  llvm::Error findAnswers(int64_t round, std::vector<SlotState> &slots,
                          RoundSummary &summary);
  llvm::Error askMissing(int64_t round, std::vector<SlotState> &slots,
                         RoundSummary &summary);
  llvm::Error sayForecast(int64_t round, size_t width,
                          llvm::ArrayRef<ChatRequest> requests);
  llvm::Error keepTalk(int64_t round, SlotState &slot, ChatAnswer answer);
  llvm::Error tryAnswer(int64_t round, int64_t slot, llvm::StringRef answer);
  llvm::Expected<std::optional<Contender>>
  quickLook(Trial trial, const Candidate &candidate);
  llvm::Error climb(std::vector<Contender> contenders,
                    const Candidate &candidate, bool hasWinner, unsigned tries);
  llvm::Error keepWinner(const Contender &contender,
                         const Candidate &candidate);
  llvm::Expected<std::optional<Trial>> findTrial(const Trial &place);
  llvm::Error remember(int64_t round, int64_t slot, llvm::StringRef answer);
  llvm::Error finish(const Trial &trial);
  llvm::Expected<EvaluateResult> evaluate(const Contender &contender,
                                          bool full);
  llvm::Error ensureReference();
  llvm::Error ensureStrength();
  llvm::Error rehearse();
  void consider(const Trial &trial) {
    if (isValid(trial) && (!best || isBetter(trial, *best)))
      best = trial;
  }
  void summarise(RoundSummary &summary);
  bool isNearBound() const;
  /// Before whatever runs the original first.
  void sayChecking() {
    if (device.isVirtual && !std::exchange(hasRun, true))
      notify(SearchEvent::Kind::Checking, 1, 0);
  }
  void notify(SearchEvent::Kind kind, int64_t round, int64_t slot,
              const Trial *trial = nullptr,
              const RoundSummary *summary = nullptr) {
    if (services.observer)
      services.observer(
          {kind, round, slot, trial, best ? &*best : nullptr, summary});
  }

  const KernelTask &task;
  const SearchOptions &options;
  const SearchServices &services;
  SearchOutcome outcome;
  DeviceDescription device;
  std::optional<Build> reference;
  std::optional<Build> clone; ///< In f64.
  std::string whyNoClone;
  /// The task with the workload that its dummies were held against.
  std::optional<KernelTask> tested;
  std::vector<Attempt> attempts; ///< As the store has them.
  /// By the keys of their trials; read when the first trial is not found.
  std::optional<std::map<std::string, Record>> records;
  std::map<std::string, unsigned> reusedFrom; ///< Trials of other devices.
  bool hasForecast = false, isRehearsed = false, hasRun = false;
  unsigned roundsWithoutGain = 0;
  /// Of this search's own candidates: what another search left in the store
  /// must not change what this one asks and tries.
  std::optional<Trial> best;
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
  // Should the search be cut short, what an earlier one found is still there.
  llvm::Expected<LookUp> known =
      services.store.best(task.key, task.target, device.evidenceLevel());
  if (!known)
    return known.takeError();
  outcome.winner = std::move(known->record);
  // Rounds outlast runs: answers may come later, or the process may be killed.
  if (llvm::Error error = services.store.markUnfinished(task.key, task.name))
    return error;
  if (llvm::Error error = services.store.addTask(task))
    return error;
  llvm::Error rounds = searchRounds();
  for (const auto &[other, count] : reusedFrom)
    outcome.remarks.push_back(
        llvm::formatv("kernel '{0}': {1} reused trials were measured on {2}, "
                      "not on {3}",
                      task.name, count, other, device.name));
  // Such a search has ended: it goes on only with another workload.
  if (rounds && !outcome.weak.empty())
    if (llvm::Error error = services.store.clearUnfinished(task.key))
      return llvm::joinErrors(std::move(rounds), std::move(error));
  if (rounds)
    return rounds;
  if (outcome.stop != SearchStop::Pending && outcome.stop != SearchStop::Budget)
    if (llvm::Error error = services.store.clearUnfinished(task.key))
      return error;
  // What a later compile would find is what this one uses.
  known = services.store.best(task.key, task.target, device.evidenceLevel());
  if (!known)
    return known.takeError();
  outcome.winner = std::move(known->record);
  return llvm::Error::success();
}

llvm::Error Searcher::searchRounds() {
  // The control asks for everything in one round. The slots behind the first
  // `width` are its own, so that both searches share the answers of the first
  // round and no others.
  bool isControl = options.kind == SearchKind::BestOfN;
  unsigned rounds = isControl ? 1 : options.rounds;
  unsigned width = isControl ? options.width * options.rounds : options.width;
  for (unsigned round = 1; round <= rounds; ++round) {
    RoundSummary summary;
    summary.round = round;
    llvm::Error error = doRound(round, width, summary);
    summarise(summary);
    outcome.rounds.push_back(summary);
    if (error)
      return error;
    if (!outcome.budget.empty()) {
      outcome.stop = SearchStop::Budget;
      return llvm::Error::success();
    }
    notify(SearchEvent::Kind::RoundEnded, round, 0, nullptr, &summary);
    if (summary.pending > 0) {
      outcome.stop = SearchStop::Pending;
      return llvm::Error::success();
    }
    // A round before which nothing was right is spent on repair.
    bool stalls = summary.before && !summary.gained;
    roundsWithoutGain = stalls ? roundsWithoutGain + 1 : 0;
    if (isControl || round == rounds)
      break;
    if (isNearBound()) {
      outcome.stop = SearchStop::Bound;
      break;
    }
    if (options.patience > 0 && roundsWithoutGain >= options.patience) {
      outcome.stop = SearchStop::Patience;
      break;
    }
  }
  return llvm::Error::success();
}

static RoundSummary::Best describe(const BestSoFar &best) {
  RoundSummary::Best described;
  described.round = best.attempt->round;
  described.slot = best.attempt->slot;
  described.verdict = best.trial->verdict;
  if (const auto &measurement = best.trial->measurement) {
    described.medianUs = measurement->candidateMedianUs;
    described.originalUs = measurement->originalMedianUs;
    described.speedup = measurement->speedup;
    described.speedupLow = measurement->speedupLow;
    described.speedupHigh = measurement->speedupHigh;
  }
  return described;
}

void Searcher::summarise(RoundSummary &summary) {
  llvm::ArrayRef<Attempt> all = attempts;
  auto earlier = all.take_while(
      [&](const Attempt &attempt) { return attempt.round < summary.round; });
  std::optional<BestSoFar> before = findBest(earlier);
  std::optional<BestSoFar> after = findBest(all);
  if (before)
    summary.before = describe(*before);
  if (after) {
    summary.after = describe(*after);
    summary.gained = isGain(before ? before->trial : nullptr, *after->trial);
  }
  std::map<Verdict, unsigned> counts;
  for (const Attempt &attempt : all.drop_front(earlier.size()))
    for (const Trial &trial : attempt.trials)
      ++counts[trial.verdict];
  summary.verdicts.assign(counts.begin(), counts.end());
}

bool Searcher::isNearBound() const {
  std::optional<BestSoFar> found = findBest(attempts);
  double bound = hardwareBoundUs(task.work, device);
  if (options.solStop <= 0 || bound <= 0 || !found ||
      found->trial->verdict != Verdict::Accepted || !found->trial->measurement)
    return false;
  double median = found->trial->measurement->candidateMedianUs;
  return median > 0 && bound >= options.solStop * median;
}

llvm::Error Searcher::doRound(int64_t round, unsigned width,
                              RoundSummary &summary) {
  std::vector<SlotState> slots(width);
  if (llvm::Error error = findAnswers(round, slots, summary))
    return error;
  // What was answered is tried even where the provider failed for others.
  llvm::Error asking = askMissing(round, slots, summary);
  for (SlotState &slot : slots) {
    if (slot.pending) {
      ++summary.pending;
      outcome.pending.push_back(
          llvm::formatv("{0} r{1}-s{2}", task.name, round, slot.number).str());
      notify(SearchEvent::Kind::Pending, round, slot.number);
    }
    if (!slot.answer)
      continue;
    if (llvm::Error error = tryAnswer(round, slot.number, *slot.answer))
      return llvm::joinErrors(std::move(asking), std::move(error));
    if (llvm::Error error = remember(round, slot.number, *slot.answer))
      return llvm::joinErrors(std::move(asking), std::move(error));
  }
  return asking;
}

llvm::Expected<std::string> Searcher::promptOf(int64_t round, unsigned slot) {
  if (round == 1)
    return renderPrompt(task, device, (slot - 1) % options.width + 1,
                        options.prompts);
  return renderPrompt(task, device, round, slot, attempts, roundsWithoutGain,
                      options.prompts);
}

llvm::Error Searcher::findAnswers(int64_t round, std::vector<SlotState> &slots,
                                  RoundSummary &summary) {
  for (auto [i, slot] : llvm::enumerate(slots)) {
    slot.number = i + 1;
    llvm::Expected<std::string> prompt = promptOf(round, slot.number);
    if (!prompt)
      return prompt.takeError();
    slot.prompt = std::move(*prompt);
    llvm::Expected<std::optional<Talk>> known =
        services.store.findTalk(task.key, round, slot.number);
    if (!known)
      return known.takeError();
    if (!*known)
      continue;
    // Paid for once is enough, and the store keeps the first talk of a slot.
    if ((*known)->request != slot.prompt) {
      std::string changed =
          llvm::formatv("the prompt for kernel '{0}', round {1}, slot {2} has "
                        "changed since the store's answer to it",
                        task.name, round, slot.number)
              .str();
      if (options.replayStrict)
        return makeError(ErrorKind::BadInput, changed);
      outcome.remarks.push_back(changed + "; that answer is used");
    }
    ++outcome.reused;
    ++summary.reused;
    slot.answer = std::move((*known)->answer);
  }
  return llvm::Error::success();
}

llvm::Error Searcher::askMissing(int64_t round, std::vector<SlotState> &slots,
                                 RoundSummary &summary) {
  std::vector<ChatRequest> requests;
  std::vector<SlotState *> asked;
  for (SlotState &slot : slots) {
    if (slot.answer)
      continue;
    requests.push_back({task.key, task.name, round, slot.number, slot.prompt});
    asked.push_back(&slot);
  }
  if (requests.empty())
    return llvm::Error::success();
  if (llvm::Error error = rehearse())
    return error;
  if (llvm::Error error = sayForecast(round, slots.size(), requests))
    return error;
  for (const SlotState *slot : asked)
    notify(SearchEvent::Kind::Asked, round, slot->number);
  outcome.asked += requests.size();
  summary.asked += requests.size();
  llvm::Error first = llvm::Error::success();
  auto fail = [&](llvm::Error error) {
    // One cause usually fails every request that is left.
    if (first)
      llvm::consumeError(std::move(error));
    else
      first = std::move(error);
  };
  services.client.ask(requests, [&](size_t index, ChatResult result) {
    SlotState &slot = *asked[index];
    if (!result) {
      llvm::Error error = result.takeError();
      if (kindOf(error) != ErrorKind::OverBudget)
        return fail(std::move(error));
      outcome.budget = llvm::toString(std::move(error));
      --outcome.asked;
      --summary.asked;
      return;
    }
    if (!*result) {
      slot.pending = true;
      return;
    }
    if (llvm::Error error = keepTalk(round, slot, std::move(**result))) {
      // What cannot be kept is not bought.
      services.client.stopAsking();
      fail(std::move(error));
    }
  });
  return first;
}

/// Before the first request: whatever can be known to stand in the way of an
/// answer is found while nothing is paid for.
llvm::Error Searcher::rehearse() {
  if (std::exchange(isRehearsed, true))
    return llvm::Error::success();
  if (llvm::Error error = services.store.prepareTalks(task.key))
    return error;
  if (llvm::Error error = ensureReference())
    return error;
  if (llvm::Error error = services.device.probe())
    return error;
  return ensureStrength();
}

/// Before the first request. What an answer leads to is not known, so a search
/// that goes on to its last round is what is reckoned with.
llvm::Error Searcher::sayForecast(int64_t round, size_t width,
                                  llvm::ArrayRef<ChatRequest> requests) {
  if (std::exchange(hasForecast, true))
    return llvm::Error::success();
  size_t later = 0;
  if (options.kind != SearchKind::BestOfN)
    for (int64_t next = round + 1; next <= int64_t(options.rounds); ++next)
      for (size_t slot = 1; slot <= width; ++slot) {
        llvm::Expected<std::optional<Talk>> known =
            services.store.findTalk(task.key, next, slot);
        if (!known)
          return known.takeError();
        later += !*known;
      }
  llvm::Expected<std::optional<ChatForecast>> cost =
      services.client.forecast(requests, later);
  if (!cost)
    return cost.takeError();
  if (!*cost)
    return llvm::Error::success();
  if (!(*cost)->usd)
    outcome.remarks.push_back(
        llvm::formatv("no price is known for {0}: money is not counted; the "
                      "cap to use is budget-tokens, now {1}",
                      services.client.provider(),
                      (*cost)->capTokens ? std::to_string((*cost)->capTokens)
                                         : std::string("without a limit"))
            .str());
  if (services.forecast)
    services.forecast({unsigned(requests.size() + later), **cost});
  return llvm::Error::success();
}

/// An answer that was paid for goes to the disk before anything else happens.
llvm::Error Searcher::keepTalk(int64_t round, SlotState &slot,
                               ChatAnswer answer) {
  if (!answer.remark.empty())
    outcome.remarks.push_back(answer.remark);
  Talk talk;
  talk.taskKey = task.key;
  talk.taskName = task.name;
  talk.round = round;
  talk.slot = slot.number;
  talk.provider = services.client.provider().str();
  talk.request = answer.request.empty() ? slot.prompt : answer.request;
  talk.answer = std::move(answer.text);
  talk.promptTokens = answer.promptTokens;
  talk.answerTokens = answer.answerTokens;
  if (llvm::Error error = services.store.addTalk(talk))
    return error;
  slot.answer = std::move(talk.answer);
  notify(SearchEvent::Kind::Answered, round, slot.number);
  return llvm::Error::success();
}

/// Takes an answer's trials back from the store: what a prompt says of them
/// must be what a resumed search would say.
llvm::Error Searcher::remember(int64_t round, int64_t slot,
                               llvm::StringRef answer) {
  Attempt attempt;
  attempt.round = round;
  attempt.slot = slot;
  std::string hash;
  std::vector<Parameters> sets;
  if (llvm::Expected<Candidate> candidate = parseAnswer(answer)) {
    hash = candidate->hash();
    sets = candidate->combinations(options.parameterSets);
    attempt.candidate = std::move(*candidate);
  } else {
    llvm::consumeError(candidate.takeError());
    hash = sha256(answer);
    sets.emplace_back();
  }
  for (const Parameters &parameters : sets) {
    Trial place;
    place.taskKey = task.key;
    place.candidateHash = hash;
    place.parameters = parameters;
    place.isModelled = device.isVirtual;
    llvm::Expected<std::optional<Trial>> trial =
        services.store.findTrial(task.key, place.key());
    if (!trial)
      return trial.takeError();
    if (*trial)
      attempt.trials.push_back(std::move(**trial));
  }
  attempts.push_back(std::move(attempt));
  return llvm::Error::success();
}

llvm::Error Searcher::tryAnswer(int64_t round, int64_t slot,
                                llvm::StringRef answer) {
  Trial trial;
  trial.taskKey = task.key;
  trial.isModelled = device.isVirtual;
  trial.round = round;
  trial.slot = slot;

  std::vector<Parameters> sets;
  llvm::Expected<Candidate> candidate = parseAnswer(answer);
  if (candidate) {
    trial.candidateHash = candidate->hash();
    sets = candidate->combinations(options.parameterSets);
  } else {
    trial.candidateHash = sha256(answer);
    trial.verdict = Verdict::Rejected;
    trial.message = llvm::toString(candidate.takeError());
    sets.emplace_back();
  }

  std::vector<Contender> contenders;
  bool hasWinner = false;
  unsigned fullTries = 0;
  for (const Parameters &parameters : sets) {
    trial.parameters = parameters;
    llvm::Expected<std::optional<Trial>> known = findTrial(trial);
    if (!known)
      return known.takeError();
    if (*known) {
      ++outcome.reused;
      hasWinner |= (*known)->verdict == Verdict::Accepted;
      fullTries += (*known)->full;
      if ((*known)->measurement && (*known)->measurement->device != device.name)
        ++reusedFrom[(*known)->measurement->device];
      consider(**known);
      // Two answers of one run may hold the same kernel.
      std::string key = (*known)->key();
      if (llvm::none_of(outcome.trials,
                        [&](const Trial &other) { return other.key() == key; }))
        outcome.trials.push_back(std::move(**known));
      continue;
    }
    if (!candidate)
      return finish(trial);
    llvm::Expected<std::optional<Contender>> contender =
        quickLook(trial, *candidate);
    if (!contender)
      return contender.takeError();
    if (*contender)
      contenders.push_back(std::move(**contender));
  }
  if (contenders.empty())
    return llvm::Error::success();
  return climb(std::move(contenders), *candidate, hasWinner, fullTries);
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
  llvm::Expected<CandidateBuild> built = buildCandidate(
      task, candidate, trial.parameters, device, services.compiler);
  if (!built)
    return built.takeError();
  if (!built->build)
    return end(built->verdict, built->message);
  contender.plan = std::move(built->plan);
  contender.build = std::move(*built->build);
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

/// The trial of this place that the store has. A run that was killed may have
/// left a winner's record without it: then it is made from the record.
llvm::Expected<std::optional<Trial>> Searcher::findTrial(const Trial &place) {
  std::string key = place.key();
  llvm::Expected<std::optional<Trial>> known =
      services.store.findTrial(task.key, key);
  if (!known || *known)
    return known;
  if (!records) {
    llvm::Expected<std::vector<Record>> found =
        services.store.findRecords(task.key, task.target);
    if (!found)
      return found.takeError();
    records.emplace();
    for (Record &record : *found)
      records->try_emplace(record.trial().key(), std::move(record));
  }
  auto record = records->find(key);
  if (record == records->end())
    return std::optional<Trial>();
  Trial trial = record->second.trial();
  if (llvm::Error error = services.store.addTrial(trial))
    return std::move(error);
  return std::optional<Trial>(std::move(trial));
}

/// `hasWinner` and `tries`: whether a set of this candidate has climbed to the
/// top, and how many have tried to, in a run that was ended then.
llvm::Error Searcher::climb(std::vector<Contender> contenders,
                            const Candidate &candidate, bool hasWinner,
                            unsigned tries) {
  // Of equal ones always the same, as a run that goes on must try them too.
  llvm::sort(contenders, [](const Contender &a, const Contender &b) {
    if (a.medianUs() != b.medianUs())
      return a.medianUs() < b.medianUs();
    return a.trial.parameters < b.trial.parameters;
  });
  bool done = hasWinner;
  for (Contender &contender : contenders) {
    // Times of two devices are never compared.
    bool wouldWin =
        !best || best->verdict != Verdict::Accepted || !best->measurement ||
        best->measurement->device != device.name || contender.medianUs() == 0 ||
        contender.medianUs() < 1.02 * best->measurement->candidateMedianUs;
    if (done || !wouldWin || tries >= fullTriesPerAnswer) {
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
      contender.trial.full = true;
      contender.trial.evidence = std::move(result->evidence);
      contender.trial.evidence.toolchain = contender.build.toolchain;
      contender.trial.evidence.sandbox = contender.build.sandbox;
      contender.trial.evidence.checks.push_back(
          strengthCheck(task, *outcome.strength));
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
  record.message = trial.message;
  record.provider = services.client.provider().str();
  record.round = trial.round;
  record.slot = trial.slot;
  if (llvm::Error error = services.store.addRecord(record))
    return error;
  if (!outcome.winner ||
      std::pair(record.evidence.level, record.measurement.speedupLow) >
          std::pair(outcome.winner->evidence.level,
                    outcome.winner->measurement.speedupLow))
    outcome.winner = std::move(record);
  return llvm::Error::success();
}

llvm::Error Searcher::finish(const Trial &trial) {
  if (llvm::Error error = services.store.addTrial(trial))
    return error;
  outcome.trials.push_back(trial);
  consider(trial);
  notify(SearchEvent::Kind::Finished, trial.round, trial.slot,
         &outcome.trials.back());
  return llvm::Error::success();
}

llvm::Error Searcher::ensureReference() {
  if (reference)
    return llvm::Error::success();
  llvm::Expected<Build> build = services.buildReference(task);
  if (!build)
    return addContext(build.takeError(), "building the original kernel");
  reference = std::move(*build);
  // Without the clone candidates are judged by what is left.
  if (!task.reference.truePtx.empty()) {
    KernelTask promoted = task;
    promoted.reference.ptx = task.reference.truePtx;
    build = services.buildReference(promoted);
    if (build)
      clone = std::move(*build);
    else
      whyNoClone = llvm::toString(build.takeError());
  }
  return llvm::Error::success();
}

/// No answer is bought, and none is tried, where what is wrong would pass.
llvm::Error Searcher::ensureStrength() {
  if (tested)
    return llvm::Error::success();
  llvm::Expected<std::optional<TaskStrength>> known =
      services.store.findStrength(task.key, device.isVirtual);
  if (!known)
    return known.takeError();
  if (!*known || !isOf(**known, task, device)) {
    sayChecking();
    llvm::Expected<TaskStrength> made = testStrength(
        task, device.imageOf(*reference), options.seed, services.device);
    if (!made)
      return addContext(made.takeError(), "testing the task");
    if (llvm::Error error = services.store.addStrength(*made))
      return error;
    *known = std::move(*made);
  }
  outcome.strength = std::move(**known);
  if (services.observer)
    services.observer({SearchEvent::Kind::Tested, 1, 0, nullptr, nullptr,
                       nullptr, &*outcome.strength});
  if (outcome.strength->weakness()) {
    outcome.weak = weaknessText(task, *outcome.strength);
    return makeError(ErrorKind::BadInput, outcome.weak);
  }
  tested = task;
  if (!whyNoClone.empty())
    tested->reference.noTruePtx = whyNoClone;
  tested->workload = outcome.strength->workload;
  return llvm::Error::success();
}

llvm::Expected<EvaluateResult> Searcher::evaluate(const Contender &contender,
                                                  bool full) {
  if (llvm::Error error = ensureReference())
    return std::move(error);
  if (llvm::Error error = ensureStrength())
    return std::move(error);
  EvaluateRequest request;
  request.task = &*tested;
  request.referenceImage = device.imageOf(*reference);
  request.candidateImage = device.imageOf(contender.build);
  request.referencePtx = reference->ptx;
  request.candidatePtx = contender.build.ptx;
  if (clone)
    request.cloneImage = device.imageOf(*clone);
  request.referenceResources = reference->resources;
  request.candidateResources = contender.build.resources;
  request.plan = contender.plan;
  request.options.seed = options.seed;
  request.options.full = full;
  sayChecking();
  return services.device.evaluate(request);
}

} // namespace

llvm::StringRef nameOf(SearchStop stop) {
  switch (stop) {
  case SearchStop::Rounds:
    return "rounds";
  case SearchStop::Patience:
    return "patience";
  case SearchStop::Bound:
    return "bound";
  case SearchStop::Pending:
    return "pending";
  case SearchStop::Budget:
    return "budget";
  case SearchStop::Trouble:
    return "trouble";
  case SearchStop::Weak:
    return "weak-workload";
  }
  llvm_unreachable("no such reason");
}

SearchOutcome runSearch(const KernelTask &task, const SearchOptions &options,
                        const SearchServices &services) {
  return Searcher(task, options, services).run();
}

} // namespace fsr
