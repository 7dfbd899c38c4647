// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-store show`: the search of one task as a tree of rounds, candidates and
// sets of parameters. A candidate is what its talk's answer says; its trials
// are those of the same round, slot and hash, so an answer that was replaced
// is not given the credit of another.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Diff.h"

#include "fsr/Search/Search.h"
#include "fsr/Support/Counted.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"
#include "fsr/Terminal/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace fsr;

namespace {

using Place = std::pair<int64_t, int64_t>; ///< Round, slot.

struct Answer {
  const Talk *talk = nullptr;
  std::optional<Candidate> candidate;
  std::string hash;                  ///< Under which its trials are kept.
  std::string fault;                 ///< Why there is no candidate.
  std::vector<const Trial *> trials; ///< Its own.
  std::vector<const Trial *> others; ///< Of an answer that is not kept.
};

class Shower {
public:
  Shower(const TaskHistory &task, llvm::raw_ostream &os);

  void tree();
  /// The source of the candidate `name`, or of the best record.
  llvm::Expected<std::string> sourceOf(llvm::StringRef name);
  /// All that is kept of the trials of the candidate `name`.
  llvm::Error trialsOf(llvm::StringRef name);

private:
  void head();
  void answer(const Place &place, const Answer &answer);
  void trial(const Trial &trial, size_t width);
  void records();

  const TaskHistory &task;
  llvm::raw_ostream &os;
  std::map<Place, Answer> answers;
  std::map<std::string, Place> firstOf; ///< The first trial of each hash.
};

} // namespace

static std::string nameOf(const Place &place) {
  return "r" + std::to_string(place.first) + "-s" +
         std::to_string(place.second);
}

Shower::Shower(const TaskHistory &task, llvm::raw_ostream &os)
    : task(task), os(os) {
  for (const Talk &talk : task.talks) {
    Answer &answer = answers[{talk.round, talk.slot}];
    answer.talk = &talk;
    llvm::Expected<Candidate> candidate = parseAnswer(talk.answer);
    if (candidate) {
      answer.hash = candidate->hash();
      answer.candidate = std::move(*candidate);
    } else {
      answer.hash = sha256(talk.answer);
      answer.fault = llvm::toString(candidate.takeError());
    }
  }
  for (const Trial &trial : task.trials) {
    Place place{trial.round, trial.slot};
    Answer &answer = answers[place];
    bool isOwn = answer.talk && answer.hash == trial.candidateHash;
    (isOwn ? answer.trials : answer.others).push_back(&trial);
    firstOf.try_emplace(trial.candidateHash, place);
  }
}

void Shower::head() {
  llvm::StringRef name = task.kernelName(), target = task.target();
  os << coloured(os, Colour::Bold, name.empty() ? "?" : printable(name)) << "  "
     << (target.empty() ? "?" : printable(target)) << "  " << task.key << "\n";
  os << counted(task.talks.size(), "talk") << ", "
     << counted(task.records.size(), "record")
     << ", trials: " << countsText(task.trials) << "\n";
  if (!task.records.empty()) {
    const Measurement &measurement = task.records.front().measurement;
    os << llvm::formatv("original {0:f1} us on ", measurement.originalMedianUs)
       << printable(measurement.device) << "\n";
  }
}

void Shower::trial(const Trial &trial, size_t width) {
  llvm::StringRef verdict = nameOf(trial.verdict);
  os << "      " << padded(parametersText(trial.parameters), width) << "  "
     << coloured(os, colourOf(trial.verdict), padded(verdict, 14));
  bool isTimed = !gainText(trial).empty();
  if (isTimed)
    os << llvm::formatv("  {0,10:f1} us  ",
                        trial.measurement->candidateMedianUs)
       << gainText(trial);
  auto record = llvm::find_if(task.records, [&](const Record &record) {
    return record.parameters == trial.parameters &&
           record.candidate.hash() == trial.candidateHash;
  });
  if (record != task.records.end()) {
    bool isBest = record == task.records.begin();
    os << "  "
       << coloured(os, isBest ? Colour::Good : Colour::None,
                   (isBest ? "<- best, record " : "record ") +
                       shortHash(record->id).str());
  }
  if (!isTimed && !trial.message.empty())
    os << "  " << oneLine(trial.message, 100);
  os << "\n";
}

void Shower::answer(const Place &place, const Answer &answer) {
  std::string strategy = "(its talk is not in the store)";
  if (answer.candidate)
    strategy = answer.candidate->strategy.empty()
                   ? "(no strategy stated)"
                   : oneLine(answer.candidate->strategy, 100);
  else if (answer.talk)
    strategy = "(no candidate: " + oneLine(answer.fault, 100) + ")";
  os << "  " << coloured(os, Colour::Bold, nameOf(place)) << "  " << strategy
     << "\n";
  if (answer.talk)
    os << coloured(os, Colour::Dim,
                   "      talks/" + task.key + "/" + nameOf(place) +
                       "/answer.md" +
                       (answer.talk->provider.empty()
                            ? ""
                            : " (" + printable(answer.talk->provider) + ")"))
       << "\n";
  size_t width = 1;
  for (const auto *list : {&answer.trials, &answer.others})
    for (const Trial *trial : *list)
      width = std::max(width, columnsOf(parametersText(trial->parameters)));
  for (const Trial *one : answer.trials)
    trial(*one, width);
  if (answer.talk && answer.trials.empty()) {
    auto first = firstOf.find(answer.hash);
    os << "      "
       << (first == firstOf.end()
               ? "not tried"
               : "the same kernel as " + nameOf(first->second))
       << "\n";
  }
  if (answer.talk && !answer.others.empty())
    os << "      of another answer, whose talk is not in the store:\n";
  for (const Trial *one : answer.others)
    trial(*one, width);
}

void Shower::records() {
  if (task.records.empty())
    return;
  os << "records, the best first\n";
  for (const Record &record : task.records)
    os << "  " << shortHash(record.id) << "  "
       << nameOf(Place{record.round, record.slot}) << "  "
       << parametersText(record.parameters) << "  " << gainText(record) << "  "
       << printable(record.measurement.device) << ", built for "
       << printable(record.chip) << ", evidence "
       << nameOf(record.evidence.level) << ", by " << printable(record.provider)
       << "\n";
}

void Shower::tree() {
  head();
  std::optional<int64_t> round;
  for (const auto &[place, one] : answers) {
    if (round != place.first)
      os << "round " << place.first << "\n";
    round = place.first;
    answer(place, one);
  }
  records();
}

static llvm::Expected<Place> parsePlace(llvm::StringRef name) {
  Place place;
  auto [round, slot] = name.split("-s");
  if (!round.consume_front("r") || round.getAsInteger(10, place.first) ||
      slot.getAsInteger(10, place.second))
    return makeError(ErrorKind::BadInput, "candidate '" + name +
                                              "': wanted a round and a slot, "
                                              "such as r1-s2");
  return place;
}

llvm::Expected<std::string> Shower::sourceOf(llvm::StringRef name) {
  if (name.empty()) {
    if (task.records.empty())
      return makeError(ErrorKind::BadInput,
                       "the task has no record; name a candidate, such as "
                       "--source=r1-s2");
    return task.records.front().candidate.source;
  }
  llvm::Expected<Place> place = parsePlace(name);
  if (!place)
    return place.takeError();
  auto found = answers.find(*place);
  if (found != answers.end() && found->second.candidate)
    return found->second.candidate->source;
  for (const Record &record : task.records)
    if (Place{record.round, record.slot} == *place)
      return record.candidate.source;
  std::string why = "no talk and no record of it is in the store";
  if (found != answers.end() && found->second.talk)
    why = "its answer holds none: " + found->second.fault;
  return makeError(ErrorKind::BadInput,
                   "candidate '" + name + "' has no source: " + why);
}

llvm::Error Shower::trialsOf(llvm::StringRef name) {
  llvm::Expected<Place> place = parsePlace(name);
  if (!place)
    return place.takeError();
  bool isAny = false;
  if (auto found = answers.find(*place); found != answers.end())
    for (const auto *list : {&found->second.trials, &found->second.others})
      for (const Trial *one : *list) {
        os << (isAny ? "\n" : "");
        printTrial(*one, task, os);
        isAny = true;
      }
  if (isAny)
    return llvm::Error::success();
  return makeError(ErrorKind::BadInput,
                   "no trial of candidate '" + name + "' is in the store");
}

static llvm::Expected<const TaskHistory *> findTask(const StoreHistory &history,
                                                    llvm::StringRef prefix) {
  std::vector<const TaskHistory *> found;
  for (const TaskHistory &task : history.tasks)
    if (llvm::StringRef(task.key).starts_with(prefix))
      found.push_back(&task);
  if (found.size() == 1)
    return found.front();
  if (found.empty())
    return makeError(ErrorKind::BadInput,
                     "no task's key begins with '" + prefix +
                         "'; fsr-store list names those that there are");
  std::string keys;
  for (const TaskHistory *task : found)
    keys += (keys.empty() ? "" : ", ") + shortHash(task->key).str();
  return makeError(ErrorKind::BadInput, llvm::Twine(found.size()) +
                                            " keys begin with '" + prefix +
                                            "': " + keys);
}

llvm::Error fsr::showTask(const StoreHistory &history, llvm::StringRef prefix,
                          const ShowOptions &options, llvm::raw_ostream &os) {
  llvm::Expected<const TaskHistory *> task = findTask(history, prefix);
  if (!task)
    return task.takeError();
  Shower shower(**task, os);
  if (!options.diff.empty()) {
    llvm::Expected<std::string> before = shower.sourceOf(options.diff[0]);
    if (!before)
      return before.takeError();
    llvm::Expected<std::string> after = shower.sourceOf(options.diff[1]);
    if (!after)
      return after.takeError();
    for (const std::string &line :
         unifiedDiff(*before, *after, options.diff[0], options.diff[1])) {
      llvm::StringRef text = line;
      Colour colour = text.starts_with("+")   ? Colour::Good
                      : text.starts_with("-") ? Colour::Bad
                      : text.starts_with("@") ? Colour::Dim
                                              : Colour::None;
      os << coloured(os, colour, printable(line, /*keepLines=*/true)) << "\n";
    }
    return llvm::Error::success();
  }
  if (!options.trial.empty())
    return shower.trialsOf(options.trial);
  if (options.source) {
    llvm::Expected<std::string> source = shower.sourceOf(options.sourceOf);
    if (!source)
      return source.takeError();
    os << printable(*source, /*keepLines=*/true);
    if (!llvm::StringRef(*source).ends_with("\n"))
      os << "\n";
    return llvm::Error::success();
  }
  shower.tree();
  return llvm::Error::success();
}
