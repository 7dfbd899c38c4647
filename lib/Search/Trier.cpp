// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Trials of one answer are written in this order: what was not built, then,
// rung by rung of the race, what was wrong and what was left behind, the
// slowest first; then those that climb the whole ladder, the fastest first; in
// the end those whose code is that of another. Where a kill cuts that off, the
// trials that are there tell how far it came: as many sets are left as the race
// had then.
//
//===----------------------------------------------------------------------===//

#include "Trier.h"

#include "fsr/Search/Strength.h"

#include "fsr/Support/Hash.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace fsr {

/// How many sets of parameters of one answer may climb the whole ladder when
/// the faster ones fall off it.
constexpr unsigned fullTriesPerAnswer = 3;
/// So many need not be told apart further before they climb.
constexpr size_t finalists = 4;
/// Pairs of timings in the rungs behind the first look.
constexpr int64_t pairsOfSecondRung = 16, mostQuickPairs = 128;

llvm::SmallVector<size_t, 8> rungsOf(size_t sets) {
  llvm::SmallVector<size_t, 8> rungs{sets};
  while (rungs.back() > finalists)
    rungs.push_back(std::max(finalists, (rungs.back() + 1) / 2));
  return rungs;
}

Trier::Trier(SearchState &state, std::function<llvm::Error()> makeReady)
    : state(state), makeReady(std::move(makeReady)),
      workshop(state.options.compileJobs ? state.options.compileJobs
                                         : std::thread::hardware_concurrency(),
               state.services.device.slots()) {}

Trier::~Trier() {
  workshop.stop();
  endRound();
}

void Trier::endRound() {
  for (auto &[slot, work] : works)
    if (work.ahead.joinable())
      work.ahead.join();
  works.clear();
  workshop.clear();
  fastestOfRound = 0;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

Trial Trier::place(const Work &work, size_t set) const {
  Trial trial;
  trial.taskKey = state.task.key;
  trial.candidateHash = work.hash;
  trial.parameters = work.sets[set].parameters;
  trial.isModelled = state.device.isVirtual;
  trial.round = work.round;
  trial.slot = work.slot;
  return trial;
}

llvm::Error Trier::take(int64_t round, int64_t slot, llvm::StringRef answer) {
  Work &work = works[slot];
  work.round = round;
  work.slot = slot;
  if (llvm::Expected<Candidate> candidate = parseAnswer(answer)) {
    work.hash = candidate->hash();
    for (Parameters &parameters :
         candidate->combinations(state.options.parameterSets))
      work.sets.push_back({std::move(parameters), "", std::nullopt});
    work.candidate = std::make_shared<const Candidate>(std::move(*candidate));
  } else {
    work.refusal = llvm::toString(candidate.takeError());
    work.hash = sha256(answer);
    work.sets.emplace_back();
  }
  for (auto [i, set] : llvm::enumerate(work.sets)) {
    Trial wanted = place(work, i);
    set.key = wanted.key();
    llvm::Expected<std::optional<Trial>> known = findTrial(wanted);
    if (!known)
      return known.takeError();
    set.known = std::move(*known);
    if (!set.known)
      work.unknown.push_back(i);
    else if (!set.known->code.empty())
      stored.insert(set.known->code);
  }
  if (work.unknown.empty() || !work.candidate)
    return llvm::Error::success();
  if (llvm::Error error = makeReady())
    return error;
  state.sayChecking();
  work.codes = stored;
  for (const auto &[code, key] : firstOfCode)
    work.codes.insert(code);
  if (state.best && state.best->verdict == Verdict::Accepted &&
      state.best->measurement &&
      state.best->measurement->device == state.device.name)
    work.medianToBeat = 1.02 * state.best->measurement->candidateMedianUs;
  work.ahead = std::thread([this, &work] { workAhead(work); });
  return llvm::Error::success();
}

Promised<Workshop::Built> Trier::build(const Work &work, size_t set,
                                       Workshop::Urgency urgency) {
  return workshop.build(
      work.sets[set].key, urgency,
      [this, candidate = work.candidate,
       parameters =
           work.sets[set].parameters]() -> llvm::Expected<Workshop::Built> {
        llvm::Expected<CandidateBuild> built =
            buildCandidate(state.task, *candidate, parameters, state.device,
                           state.services.compiler);
        if (!built)
          return built.takeError();
        Workshop::Built done{std::move(*built), ""};
        if (done.build.build)
          done.code = codeOf(*done.build.build, done.build.plan);
        return std::move(done);
      });
}

/// What an evaluation says of a trial as a whole; an earlier measurement stands
/// where this one came to none.
static void adopt(Trial &trial, const EvaluateResult &result) {
  trial.verdict = result.verdict;
  trial.message = result.message;
  if (result.measurement)
    trial.measurement = result.measurement;
}

static EvaluateOptions quickLook(unsigned rung) {
  EvaluateOptions options;
  options.full = false;
  if (rung > 0)
    options.quickPairs =
        std::min(pairsOfSecondRung << (rung - 1), mostQuickPairs);
  return options;
}

static EvaluateOptions wholeLadder(bool confirm = false) {
  EvaluateOptions options;
  options.confirm = confirm;
  return options;
}

Promised<EvaluateResult> Trier::evaluate(const Contender &contender,
                                         EvaluateOptions options,
                                         Workshop::Urgency urgency) {
  options.seed = state.options.seed;
  std::string name =
      llvm::formatv("{0} {1}{2} {3}", contender.code(), int(options.full),
                    int(options.confirm), options.quickPairs);
  return workshop.evaluate(
      name, urgency, [this, built = contender.built, options] {
        const CandidateBuild &made = built->wait().value->build;
        EvaluateRequest request;
        request.task = &*state.tested;
        request.referenceImage = state.device.imageOf(*state.reference);
        request.candidateImage = state.device.imageOf(*made.build);
        request.referencePtx = state.reference->ptx;
        request.candidatePtx = made.build->ptx;
        if (state.clone)
          request.cloneImage = state.device.imageOf(*state.clone);
        request.referenceResources = state.reference->resources;
        request.candidateResources = made.build->resources;
        request.plan = made.plan;
        request.options = options;
        return state.services.device.evaluate(request);
      });
}

llvm::Expected<Trier::Race> Trier::race(const Work &work, Race race,
                                        Workshop::Urgency urgency, Left left) {
  llvm::SmallVector<size_t, 8> rungs = rungsOf(work.sets.size());
  if (state.device.isVirtual)
    rungs.truncate(1); // A model gives the same time again.
  while (!race.empty()) {
    unsigned rung = 0;
    while (rung + 1 < rungs.size() && race.size() <= rungs[rung + 1])
      ++rung;
    std::vector<Promised<EvaluateResult>> looks;
    for (const Contender &contender : race)
      looks.push_back(evaluate(contender, quickLook(rung), urgency));
    Race right;
    for (auto [contender, look] : llvm::zip_equal(race, looks)) {
      const Done<EvaluateResult> &done = look->wait();
      if (!done.value)
        return done.error();
      contender.look = *done.value;
      // Only these two say: equal so far, and perhaps faster.
      if (contender.look.verdict == Verdict::Accepted ||
          contender.look.verdict == Verdict::Undecided) {
        right.push_back(std::move(contender));
        continue;
      }
      if (llvm::Error error =
              left(contender, contender.look.verdict, contender.look.message))
        return std::move(error);
    }
    race = std::move(right);
    // Of equal ones always the same, as a run that goes on must try them too.
    llvm::sort(race, [&](const Contender &a, const Contender &b) {
      if (a.medianUs() != b.medianUs())
        return a.medianUs() < b.medianUs();
      return work.sets[a.set].parameters < work.sets[b.set].parameters;
    });
    if (rung + 1 == rungs.size())
      break;
    for (; race.size() > rungs[rung + 1]; race.pop_back())
      if (llvm::Error error =
              left(race.back(), Verdict::Undecided,
                   "passed the quick checks, but is in the slower half of the "
                   "answer's sets of parameters: not validated in full"))
        return std::move(error);
  }
  return std::move(race);
}

/// Asks for what will be needed, as far as that is known by now.
void Trier::workAhead(const Work &work) {
  Race candidates;
  std::vector<Promised<Workshop::Built>> builds;
  for (size_t i : work.unknown)
    builds.push_back(build(work, i, Workshop::Ahead));
  std::set<std::string> codes = work.codes;
  for (auto [i, built] : llvm::zip_equal(work.unknown, builds)) {
    const Done<Workshop::Built> &done = built->wait();
    if (!done.value)
      return;
    if (done.value->build.build && codes.insert(done.value->code).second)
      candidates.push_back({i, built, {}});
  }
  llvm::Expected<Race> raced =
      race(work, std::move(candidates), Workshop::Ahead,
           [](const Contender &, Verdict, llvm::StringRef) {
             return llvm::Error::success();
           });
  if (!raced)
    return llvm::consumeError(raced.takeError());
  if (raced->empty())
    return;
  const Contender &first = raced->front();
  double median = first.medianUs();
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (median <= 0 || (fastestOfRound > 0 && median >= fastestOfRound))
      return;
    fastestOfRound = median;
  }
  // The fastest so far will climb, most likely, and nothing else is to do.
  if ((work.medianToBeat == 0 || median < work.medianToBeat) &&
      workshop.deviceHasRoom())
    evaluate(first, wholeLadder(), Workshop::Spare);
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

/// The trial of this place that the store has. A run that was killed may have
/// left a winner's record without it: then it is made from the record.
llvm::Expected<std::optional<Trial>> Trier::findTrial(const Trial &place) {
  SearchStore &store = state.services.store;
  std::string key = place.key();
  llvm::Expected<std::optional<Trial>> known =
      store.findTrial(state.task.key, key);
  if (!known || *known)
    return known;
  if (!records) {
    llvm::Expected<std::vector<Record>> found =
        store.findRecords(state.task.key, state.task.target);
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
  if (llvm::Error error = store.addTrial(trial))
    return std::move(error);
  return std::optional<Trial>(std::move(trial));
}

llvm::Error Trier::finish(const Trial &trial) {
  if (llvm::Error error = state.services.store.addTrial(trial))
    return error;
  own.try_emplace(trial.key(), trial);
  if (!trial.code.empty())
    firstOfCode.try_emplace(trial.code, trial.key());
  state.outcome.trials.push_back(trial);
  state.consider(trial);
  state.notify(SearchEvent::Kind::Finished, trial.round, trial.slot,
               &state.outcome.trials.back());
  return llvm::Error::success();
}

void Trier::reuse(const Trial &trial) {
  ++state.outcome.reused;
  if (trial.measurement && trial.measurement->device != state.device.name)
    ++state.reusedFrom[trial.measurement->device];
  state.consider(trial);
  // Two answers of one run may hold the same kernel.
  if (own.try_emplace(trial.key(), trial).second)
    state.outcome.trials.push_back(trial);
  if (!trial.code.empty())
    firstOfCode.try_emplace(trial.code, trial.key());
}

Trial Trier::trialOf(const Work &work, const Contender &contender) const {
  Trial trial = place(work, contender.set);
  trial.resources = contender.build().resources;
  trial.code = contender.code();
  trial.verdict = contender.look.verdict;
  trial.message = contender.look.message;
  trial.measurement = contender.look.measurement;
  trial.profile = contender.look.profile;
  trial.evidence = contender.look.evidence;
  return trial;
}

llvm::Error Trier::conclude(int64_t slot) {
  Work &work = works.at(slot);
  bool hasWinner = false;
  unsigned fullTries = 0;
  std::vector<size_t> unknown;
  for (auto [i, set] : llvm::enumerate(work.sets)) {
    // An answer of a slot before it may hold the same kernel.
    if (auto twin = own.find(set.key); !set.known && twin != own.end())
      set.known = twin->second;
    if (!set.known) {
      unknown.push_back(i);
      continue;
    }
    hasWinner |= set.known->verdict == Verdict::Accepted;
    fullTries += set.known->full;
    reuse(*set.known);
  }
  if (!work.candidate && !unknown.empty()) {
    Trial trial = place(work, unknown.front());
    trial.verdict = Verdict::Rejected;
    trial.message = work.refusal;
    return finish(trial);
  }
  std::vector<Promised<Workshop::Built>> builds;
  for (size_t i : unknown)
    builds.push_back(build(work, i, Workshop::Needed));
  Race contenders, followers;
  std::set<std::string> codes;
  for (auto [i, built] : llvm::zip_equal(unknown, builds)) {
    const Done<Workshop::Built> &done = built->wait();
    if (!done.value)
      return done.error();
    if (!done.value->build.build) {
      Trial trial = place(work, i);
      trial.verdict = done.value->build.verdict;
      trial.message = done.value->build.message;
      if (llvm::Error error = finish(trial))
        return error;
      continue;
    }
    const std::string &code = done.value->code;
    bool isFirst = !firstOfCode.count(code) && codes.insert(code).second;
    (isFirst ? contenders : followers).push_back({i, built, {}});
  }
  llvm::Expected<Race> raced =
      race(work, std::move(contenders), Workshop::Needed,
           [&](const Contender &contender, Verdict verdict,
               llvm::StringRef message) {
             Trial trial = trialOf(work, contender);
             trial.verdict = verdict;
             trial.message = message.str();
             learn(trial, contender);
             return finish(trial);
           });
  if (!raced)
    return raced.takeError();
  if (llvm::Error error = climb(work, std::move(*raced), hasWinner, fullTries))
    return error;
  for (const Contender &follower : followers)
    if (llvm::Error error = follow(work, follower))
      return error;
  return llvm::Error::success();
}

bool Trier::wouldWin(const Contender &contender) const {
  const std::optional<Trial> &best = state.best;
  // Times of two devices are never compared.
  return !best || best->verdict != Verdict::Accepted || !best->measurement ||
         best->measurement->device != state.device.name ||
         contender.medianUs() == 0 ||
         contender.medianUs() < 1.02 * best->measurement->candidateMedianUs;
}

/// `hasWinner` and `tries`: whether a set of this candidate has climbed to the
/// top, and how many have tried to, in a run that was ended then.
llvm::Error Trier::climb(const Work &work, Race race, bool hasWinner,
                         unsigned tries) {
  bool done = hasWinner;
  for (const Contender &contender : race) {
    Trial trial = trialOf(work, contender);
    if (done || !wouldWin(contender) || tries >= fullTriesPerAnswer) {
      trial.verdict = Verdict::Undecided;
      trial.message = "passed the quick checks, but is not the fastest so far: "
                      "not validated in full";
      learn(trial, contender);
    } else {
      ++tries;
      const Done<EvaluateResult> &climbed =
          evaluate(contender, wholeLadder(), Workshop::Needed)->wait();
      if (!climbed.value)
        return climbed.error();
      const EvaluateResult &result = *climbed.value;
      adopt(trial, result);
      if (result.profile)
        trial.profile = result.profile;
      trial.full = true;
      trial.evidence = result.evidence;
      trial.evidence.toolchain = contender.build().toolchain;
      trial.evidence.sandbox = contender.build().sandbox;
      if (trial.verdict == Verdict::Accepted)
        if (llvm::Error error = confirm(trial, contender))
          return error;
      trial.evidence.checks.push_back(
          strengthCheck(state.task, *state.outcome.strength));
      learn(trial, contender);
      if (trial.verdict == Verdict::Accepted) {
        done = true;
        if (llvm::Error error = keepWinner(trial, work, contender))
          return error;
      }
    }
    if (llvm::Error error = finish(trial))
      return error;
  }
  return llvm::Error::success();
}

/// The best of several noisy times is too good: what is told of a winner is
/// measured anew, in a process of its own. A model has no noise.
llvm::Error Trier::confirm(Trial &trial, const Contender &contender) {
  if (state.device.isVirtual)
    return llvm::Error::success();
  EvaluateOptions options = wholeLadder(/*confirm=*/true);
  options.counters = true;
  options.peaks = !knownPeaks();
  const Done<EvaluateResult> &confirmed =
      evaluate(contender, options, Workshop::Needed)->wait();
  if (!confirmed.value)
    return confirmed.error();
  const EvaluateResult &result = *confirmed.value;
  adopt(trial, result);
  if (result.profile) {
    Profile &profile = trial.profile ? *trial.profile : trial.profile.emplace();
    profile.hardware = result.profile->hardware;
    llvm::append_range(profile.missing, result.profile->missing);
    if (result.profile->peaks && !peaks) {
      peaks = result.profile->peaks;
      if (llvm::Error error = state.services.store.addPeaks(
              state.device.name, state.device.driver, *peaks))
        return error;
    }
  }
  for (const Check &check : result.evidence.checks)
    if (check.name == "confirmed" || !check.passed)
      trial.evidence.checks.push_back(check);
  return llvm::Error::success();
}

/// For later requests, and so in the trial. What is not the best now is told in
/// no request.
void Trier::learn(Trial &trial, const Contender &contender) {
  if (!isValid(trial) || (state.best && !isBetter(trial, *state.best))) {
    trial.profile.reset();
    return;
  }
  Profile profile = trial.profile.value_or(Profile());
  if (state.services.readInstructions)
    addInstructions(state.services.readInstructions(contender.build()),
                    profile);
  if (!state.device.isVirtual)
    profile.peaks = knownPeaks();
  if (!profile.isEmpty())
    trial.profile = std::move(profile);
}

const std::optional<DevicePeaks> &Trier::knownPeaks() {
  if (!peaks && !std::exchange(hasSoughtPeaks, true))
    peaks =
        state.services.store.findPeaks(state.device.name, state.device.driver);
  return peaks;
}

void addInstructions(llvm::Expected<std::vector<InstructionMix>> mixes,
                     Profile &profile) {
  if (mixes)
    profile.mixes = std::move(*mixes);
  else
    profile.missing.push_back("machine instructions: " +
                              llvm::toString(mixes.takeError()));
}

/// The same kernels in the same order, under other names.
static void rename(Profile &profile, llvm::ArrayRef<KernelResources> from,
                   llvm::ArrayRef<KernelResources> to) {
  auto change = [&](std::string &name) {
    for (size_t i = 0; i < std::min(from.size(), to.size()); ++i)
      if (from[i].kernel == name) {
        name = to[i].kernel;
        return;
      }
  };
  for (InstructionMix &mix : profile.mixes)
    change(mix.kernel);
  for (HardwareCounters &counters : profile.hardware)
    change(counters.kernel);
}

/// The same code needs no second look.
llvm::Error Trier::follow(const Work &work, const Contender &contender) {
  const Trial &first = own.at(firstOfCode.at(contender.code()));
  Trial trial = first;
  Trial at = place(work, contender.set);
  trial.candidateHash = at.candidateHash;
  trial.parameters = at.parameters;
  trial.round = at.round;
  trial.slot = at.slot;
  trial.resources = contender.build().resources;
  if (trial.profile)
    rename(*trial.profile, first.resources, trial.resources);
  std::string words;
  for (const auto &[name, value] : first.parameters)
    words += llvm::formatv("{0}{1} = {2}", words.empty() ? ", with " : ", ",
                           name, value);
  trial.message =
      llvm::formatv("the same code as answer {0} of round {1}{2}, so with its "
                    "verdict: {3}",
                    first.slot, first.round, words, first.message);
  ++state.outcome.reused;
  if (trial.verdict == Verdict::Accepted)
    if (llvm::Error error = keepWinner(trial, work, contender))
      return error;
  return finish(trial);
}

llvm::Error Trier::keepWinner(const Trial &trial, const Work &work,
                              const Contender &contender) {
  const KernelTask &task = state.task;
  llvm::Expected<std::string> fatbin =
      state.services.makeFatbin(contender.build());
  if (!fatbin)
    return fatbin.takeError();
  Record record;
  record.taskKey = task.key;
  record.target = task.target;
  record.chip = contender.build().chip;
  record.kernelName = task.name;
  for (const Argument &argument : task.arguments)
    record.argumentNames.push_back(argument.name);
  record.candidate = *work.candidate;
  record.parameters = trial.parameters;
  record.plan = contender.built->wait().value->build.plan;
  record.resources = trial.resources;
  record.fatbin = std::move(*fatbin);
  if (trial.measurement)
    record.measurement = *trial.measurement;
  record.evidence = trial.evidence;
  record.message = trial.message;
  record.code = trial.code;
  record.profile = trial.profile;
  record.provider = state.services.client.provider().str();
  record.round = trial.round;
  record.slot = trial.slot;
  if (llvm::Error error = state.services.store.addRecord(record))
    return error;
  std::optional<Record> &winner = state.outcome.winner;
  if (!winner ||
      std::pair(record.evidence.level, record.measurement.speedupLow) >
          std::pair(winner->evidence.level, winner->measurement.speedupLow))
    winner = std::move(record);
  return llvm::Error::success();
}

} // namespace fsr
