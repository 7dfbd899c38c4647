// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rounds. A round asks for all its answers at once, has each one worked on
// from the moment it is there, brings their trials to the store in the order of
// slots, and is over before the next one is worded. An answer that was paid for
// is on disk before it is read, a trial before the next one starts, and a
// record before its trial, which is made from it where a kill came in between:
// so whatever moment the process is killed at, the same call goes on from there
// and asks and measures nothing twice.
//
// Every answer is first looked at quickly with each set of its parameters; only
// the fastest set, and only where it would become the best of this search,
// climbs the whole ladder.
//
//===----------------------------------------------------------------------===//

#include "Trier.h"

#include "fsr/Search/Strength.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

namespace fsr {

namespace {

/// One request of a round on its way to an answer.
struct SlotState {
  int64_t number = 0;
  std::string prompt;
  std::optional<std::string> answer;
  bool pending = false;
  bool taken = false; ///< It is being tried.
};

class Searcher : SearchState {
public:
  using SearchState::SearchState;

  SearchOutcome run() {
    llvm::Error error = search();
    trier.reset(); // What still runs is waited for.
    llvm::append_range(outcome.remarks, services.device.takeRemarks());
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
  llvm::Error take(int64_t round, SlotState &slot);
  llvm::Error remember(int64_t round, int64_t slot, llvm::StringRef answer);
  llvm::Error ensureReference();
  llvm::Error ensureStrength();
  llvm::Error rehearse();
  void summarise(RoundSummary &summary);
  bool isNearBound() const;

  std::vector<Attempt> attempts; ///< As the store has them.
  bool hasForecast = false, isRehearsed = false;
  unsigned roundsWithoutGain = 0;
  std::unique_ptr<Trier> trier;
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
  SearchState &shared = *this;
  trier = std::make_unique<Trier>(shared, [this]() -> llvm::Error {
    if (llvm::Error error = ensureReference())
      return error;
    return ensureStrength();
  });
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
  for (SlotState &slot : slots)
    if (slot.answer)
      if (llvm::Error error = take(round, slot))
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
    if (!slot.taken)
      continue;
    if (llvm::Error error = trier->conclude(slot.number))
      return llvm::joinErrors(std::move(asking), std::move(error));
    if (llvm::Error error = remember(round, slot.number, *slot.answer))
      return llvm::joinErrors(std::move(asking), std::move(error));
  }
  trier->endRound();
  return asking;
}

llvm::Error Searcher::take(int64_t round, SlotState &slot) {
  if (llvm::Error error = trier->take(round, slot.number, *slot.answer))
    return error;
  slot.taken = true;
  return llvm::Error::success();
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
    llvm::Error error = keepTalk(round, slot, std::move(**result));
    if (!error)
      error = take(round, slot); // While the others are waited for.
    if (error) {
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
        task, device.imageOf(*reference), options.seed, services.device,
        [&](const StrengthProgress &progress) {
          if (device.isVirtual && services.observer)
            services.observer({SearchEvent::Kind::Checking, 1, 0, nullptr,
                               nullptr, nullptr, nullptr, &progress});
        });
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
