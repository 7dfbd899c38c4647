// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Memory, launch and comparison of the clone. Elements are judged on the
// device: at a task's full size the host would take seconds for it.
//
//===----------------------------------------------------------------------===//

#include "CloneValues.h"
#include "Evaluation.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#define FSR_DEVICE static inline
#include "kernels/elements.inl"

namespace fsr {

namespace {
constexpr uint64_t fewElements = 64, fewRows = 16;
constexpr double rmsFactor = 4;
/// Elements that are searched for the one that a message names.
constexpr uint64_t mostLookedAt = 1 << 16;
/// One that takes longer is not run again.
constexpr double longestSeconds = 5;
/// Of fillings whose few results are told together: so many at the least, three
/// quarters of them that far off.
constexpr unsigned fewestFillings = 6;
constexpr double narrowFactor = 8;

/// What rounds there rounds as numbers do that are of no special kind.
bool isOrdinary(const KernelTask &task, const InputSet &set) {
  if (set.repeats || set.exact)
    return false;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    if (argument.isBuffer && isFloat(argument.element) &&
        argument.access != Access::Write &&
        llvm::StringSwitch<bool>(set.fills[i].family)
            .Cases({"normal", "uniform", "loguniform", "drifting"}, true)
            .Cases({"shiftednormal", "shifteduniform", "sines", "gram"}, true)
            .Case("dominated", true)
            .Default(false))
      return true;
  }
  return false;
}

std::string printValue(double value) {
  char text[40];
  snprintf(text, sizeof(text), "%.9g", value);
  return text;
}
} // namespace

CloneValues::CloneValues(Helpers &helpers, const KernelTask &task,
                         llvm::StringRef image, llvm::StringRef whyNot)
    : helpers(helpers), promoted(task), image(image), why(whyNot) {
  if (image.empty() && why.empty())
    why = "it is not at hand";
  for (Argument &argument : promoted.arguments)
    if (argument.isPromoted())
      argument.element = ElementType::F64;
}

llvm::Error CloneValues::giveUp(llvm::Error error) {
  isPrepared = isSolved = false;
  return llvm::handleErrors(
      std::move(error),
      [&](std::unique_ptr<BackendError> failure) -> llvm::Error {
        if (failure->isSticky())
          return llvm::Error(std::move(failure));
        why = failure->message();
        return llvm::Error::success();
      },
      [&](const FsrError &failure) { why = failure.message; });
}

llvm::Error CloneValues::open(TaskBuffers &buffers) {
  isOpen = true;
  uint64_t wanted = 0, rows = 1;
  for (const TaskBuffer &buffer : buffers.buffers()) {
    if (!buffer.written() || !buffer.extent)
      continue;
    wanted += promoted.arguments[buffer.index].extentBytes();
    rows =
        std::max<uint64_t>(rows, buffer.argument->numElements() / buffer.row());
  }
  wanted += 2 * rows * 8;
  auto free = helpers.backend().freeMemory();
  if (!free)
    return free.takeError();
  // The candidate's own scratch and the copies of a comparison come besides.
  if (wanted > *free / 2)
    return makeError(ErrorKind::Unavailable,
                     "it needs " + llvm::Twine(wanted) + " bytes, and " +
                         llvm::Twine(*free) + " are free");
  auto module = LoadedImage::load(helpers.backend(), image);
  if (!module)
    return module.takeError();
  loaded = std::move(*module);
  auto entry = loaded->function(promoted.reference.entry);
  if (!entry)
    return entry.takeError();
  function = *entry;
  for (const TaskBuffer &buffer : buffers.buffers()) {
    if (!buffer.written() || !buffer.extent)
      continue;
    Own one;
    one.argument = buffer.index;
    one.bytes = promoted.arguments[buffer.index].extentBytes();
    auto memory = buffers.extra(one.bytes);
    if (!memory)
      return memory.takeError();
    one.memory = *memory;
    own.push_back(one);
  }
  for (DevicePointer *maxima : {&rowTruth, &rowError}) {
    auto memory = buffers.extra(rows * 8);
    if (!memory)
      return memory.takeError();
    *maxima = *memory;
  }
  return llvm::Error::success();
}

llvm::Expected<bool> CloneValues::prepare(TaskBuffers &buffers) {
  isPrepared = isSolved = false;
  if (!why.empty())
    return false;
  if (!isOpen)
    if (llvm::Error error = open(buffers)) {
      if (llvm::Error lost = giveUp(std::move(error)))
        return std::move(lost);
      return false;
    }
  for (const Own &one : own) {
    const TaskBuffer &buffer = *buffers.find(one.argument);
    // What is only written is no input; the clone must find no number there.
    llvm::Error error =
        buffer.poisoned() ? helpers.backend().fill8(one.memory, 0xFF, one.bytes,
                                                    helpers.stream())
        : buffer.argument->isPromoted()
            ? helpers.widen(one.memory, buffer.data, buffer.storageElements(),
                            buffer.argument->element)
            : helpers.copy(one.memory, buffer.data, buffer.extent);
    if (error)
      return std::move(error);
  }
  isPrepared = true;
  return true;
}

llvm::Error CloneValues::run(const TaskBuffers &buffers) {
  if (!isPrepared)
    return llvm::Error::success();
  PackedParameters parameters = packReference(promoted, [&](size_t argument) {
    DevicePointer mine = truthOf(argument);
    return mine ? mine : buffers.find(argument)->pointer();
  });
  BackendLaunch launch = shapedLaunch(
      promoted.launch, function, promoted.reference.entry, helpers.stream());
  launch.params = parameters.finish();
  // The original was looked at on these inputs.
  launch.isTrusted = true;
  Deadline::Clock::time_point start = Deadline::Clock::now();
  llvm::Error error = helpers.backend().launch(launch);
  if (!error)
    error = helpers.synchronize();
  if (error)
    return giveUp(std::move(error));
  isSolved = true;
  double seconds =
      std::chrono::duration<double>(Deadline::Clock::now() - start).count();
  if (seconds > longestSeconds && !helpers.properties().isVirtual)
    why = llvm::formatv("it took {0:f1} s", seconds);
  return llvm::Error::success();
}

DevicePointer CloneValues::truthOf(size_t argument) const {
  for (const Own &one : own)
    if (one.argument == argument)
      return one.memory;
  return 0;
}

llvm::Error CloneValues::drop() {
  isPrepared = false;
  if (!std::exchange(isSolved, false))
    return llvm::Error::success();
  for (const Own &one : own)
    if (llvm::Error error = helpers.clear(one.memory, one.bytes))
      return error;
  return llvm::Error::success();
}

llvm::Expected<std::optional<CloneAnswer>>
CloneValues::compare(TaskBuffers &buffers, const TaskBuffer &buffer,
                     DevicePointer out, DevicePointer original,
                     std::optional<uint64_t> poison, const CloneRule &rule) {
  DevicePointer truth = truthOf(buffer.index);
  if (!isSolved || !truth || !buffer.argument->isPromoted())
    return std::nullopt;
  double roundoff = unitRoundoff(buffer.argument->element);
  double terms = std::max<double>(1, promoted.work.accumulation);
  FsrCompare place = buffers.comparison(buffer, out, original);
  FsrJudge judge{};
  judge.out = out;
  judge.reference = original;
  judge.truth = truth;
  judge.rowTruth = rowTruth;
  judge.rowError = rowError;
  judge.count = place.count;
  judge.row = place.row;
  judge.layout = place.layout;
  judge.element = place.element;
  judge.hasPoison = poison.has_value();
  judge.poison = poison.value_or(0);
  judge.factor = rule.factor;
  judge.explained = std::max(8 * std::sqrt(terms), 2 * terms) * roundoff;
  judge.roundoff = roundoff;
  judge.tiny = rule.tiny;
  judge.ceiling = rule.ceiling;
  auto judgement = helpers.judge(judge);
  if (!judgement)
    return judgement.takeError();
  const FsrJudgement &found = *judgement;
  if (found.outside || found.unknown) {
    distrusted[buffer.argument->name].insert(words);
    return std::nullopt;
  }
  CloneAnswer answer;
  answer.judgement = found;
  if (found.summed) {
    answer.originalRms = std::sqrt(found.ofOriginal / found.summed);
    answer.candidateRms = std::sqrt(found.ofCandidate / found.summed);
    answer.ulpRms = std::sqrt(found.ofUlp / found.summed);
  }
  answer.isMany =
      found.summed >= fewElements && place.count / place.row >= fewRows;
  Told &one = told[buffer.argument->name];
  one.compared += found.compared;
  ++one.fillings;
  one.worst = std::max(one.worst, fsrDouble(found.worstPassing));
  if (answer.candidateRms >= one.rms) {
    one.rms = answer.candidateRms;
    one.originalRms = answer.originalRms;
    one.allowedRms = answer.isMany ? answer.allowedRms() : 0;
  }
  return std::optional<CloneAnswer>(answer);
}

llvm::Expected<std::optional<WorstElement>>
CloneValues::findWorst(TaskBuffers &buffers, const TaskBuffer &buffer,
                       DevicePointer out, DevicePointer original) {
  DevicePointer truth = truthOf(buffer.index);
  if (!isSolved || !truth || !buffer.argument->isPromoted())
    return std::nullopt;
  FsrCompare place = buffers.comparison(buffer, out, original);
  unsigned size = buffer.elementBytes();
  uint64_t count = std::min<uint64_t>(place.count, mostLookedAt);
  uint64_t last = 0;
  for (uint64_t i = 0; i < count; ++i)
    last = std::max<uint64_t>(last, placeOf(*buffer.argument, i).second);
  if (last >= 8 * mostLookedAt) // Elements that lie far apart.
    return std::nullopt;
  std::vector<double> values(last + 1);
  std::vector<char> ofCandidate((last + 1) * size),
      ofOriginal((last + 1) * size);
  for (auto [to, from, bytes] :
       {std::tuple<void *, DevicePointer, uint64_t>(values.data(), truth,
                                                    (last + 1) * 8),
        {ofCandidate.data(), out, (last + 1) * size},
        {ofOriginal.data(), original, (last + 1) * size}})
    if (llvm::Error error =
            helpers.backend().copyToHost(to, from, bytes, helpers.stream()))
      return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  auto valueOf = [&](const std::vector<char> &bytes, uint64_t offset) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + offset * size, size);
    return elementValue(buffer.argument->element, bits);
  };
  std::optional<WorstElement> worst;
  double largest = -1;
  for (uint64_t begin = 0; begin < count; begin += place.row) {
    uint64_t end = std::min<uint64_t>(count, begin + place.row);
    double scale = 0;
    for (uint64_t i = begin; i < end; ++i) {
      double value = std::fabs(values[placeOf(*buffer.argument, i).second]);
      scale = std::isfinite(value) ? std::max(scale, value) : scale;
    }
    for (uint64_t i = begin; i < end && scale > 0; ++i) {
      uint64_t offset = placeOf(*buffer.argument, i).second;
      WorstElement one{i, values[offset], valueOf(ofCandidate, offset),
                       valueOf(ofOriginal, offset)};
      double share = std::fabs(one.candidate - one.truth) / scale;
      if (share > largest) {
        largest = share;
        worst = one;
      }
    }
  }
  return worst;
}

double CloneAnswer::allowedRms() const {
  return rmsFactor * originalRms + ulpRms;
}

std::string CloneValues::describe() const {
  std::string text;
  for (const auto &[name, one] : told) {
    text += (text.empty() ? "" : "; ") +
            llvm::formatv("buffer {0} by a clone in f64: {1} elements of {2} "
                          "fillings (all), the largest error is {3:f3} of what "
                          "is allowed, RMS error {4} of the row's largest "
                          "value, the original's {5}",
                          name, one.compared, one.fillings, one.worst,
                          shareText(one.rms), shareText(one.originalRms))
                .str();
    text += one.allowedRms > 0
                ? ", allowed " + shareText(one.allowedRms) +
                      " on inputs of ordinary sizes"
                : ": fewer than 64 elements or 16 rows, whose RMS errors are "
                  "judged over all ordinary fillings";
  }
  for (const auto &[name, where] : distrusted) {
    std::string all;
    for (const std::string &one : where)
      all += (all.empty() ? "" : ", ") + one;
    text += (text.empty() ? "" : "; ") +
            ("buffer " + name + " by rows on " + all +
             " inputs: the original lies outside of what rounding explains "
             "around the clone's values");
  }
  return text;
}

//===----------------------------------------------------------------------===//
// In an evaluation
//===----------------------------------------------------------------------===//

bool Evaluation::asksClone() const {
  if (!trueValues->isKnown())
    return true;
  // On the CPU the clone takes as long as the original does.
  return !virtualDevice && request.options.full && !trueValues->isWhole();
}

llvm::Error Evaluation::runClone() {
  // Some GPUs do one operation on f64 in the time of 64 on f32.
  double milliseconds = virtualDevice ? 10 * originalWallMs : originalUs / 10;
  if (llvm::Error error =
          begin("original-clone", 120e3 + milliseconds + helperSlackMs()))
    return error;
  return clone->run(*buffers);
}

llvm::Expected<std::optional<CloneAnswer>>
Evaluation::askClone(const TaskBuffer &buffer, const InputSet &set,
                     Poison poison, DevicePointer out, DevicePointer original) {
  if (!clone || !clone->hasValues())
    return std::nullopt;
  return clone->compare(
      *buffers, buffer, out, original, poisonOf(buffer, poison),
      {factorOf(buffer, set), tinyOf(buffer, set), ceilingOf(buffer, set)});
}

llvm::Expected<bool> Evaluation::compareClone(const TaskBuffer &buffer,
                                              const InputSet &set,
                                              DevicePointer out,
                                              DevicePointer original,
                                              const CloneAnswer &answer) {
  const FsrJudgement &found = answer.judgement;
  auto hasAll =
      checkLost(buffer, set, found.lost, found.compared, answer.candidateRms);
  if (!hasAll || !*hasAll)
    return hasAll;
  if (!answer.isMany)
    return voteNarrow(buffer, set, out, original, answer.candidateRms,
                      answer.originalRms);
  // What a narrower type gives is off everywhere.
  bool isSpread = !found.failing || found.failing > found.compared / 8;
  if (isSpread && isOrdinary(task, set) &&
      answer.candidateRms > answer.allowedRms())
    return refuseNarrow(buffer, set, out, original, answer.candidateRms,
                        answer.originalRms);
  return true;
}

llvm::Expected<bool>
Evaluation::voteNarrow(const TaskBuffer &buffer, const InputSet &set,
                       DevicePointer out, DevicePointer original,
                       double candidateRms, double originalRms) {
  uint64_t count = std::max<int64_t>(0, buffer.argument->numElements());
  bool isMany = count >= fewElements && count / buffer.row() >= fewRows;
  if (isMany || !isOrdinary(task, set) || !voted.insert(buffer.index).second)
    return true;
  double roundoff = unitRoundoff(buffer.argument->element);
  // Of a sum in order: no type is blamed for that.
  double inOrder =
      std::sqrt(std::max<double>(1, task.work.accumulation)) * roundoff;
  // Inputs that are made to show it are told apart from the ordinary.
  bool isMade = llvm::any_of(set.fills, [](const FillRecipe &fill) {
    return fill.family == "dominated";
  });
  auto &[fillings, votes] =
      narrowVotes[{buffer.index, isMade ? set.words : std::string()}];
  ++fillings;
  votes += candidateRms > narrowFactor * originalRms + roundoff &&
           candidateRms > inOrder;
  if (fillings < fewestFillings || votes * 4 < fillings * 3)
    return true;
  return refuseNarrow(buffer, set, out, original, candidateRms, originalRms);
}

llvm::Expected<bool> Evaluation::checkLost(const TaskBuffer &buffer,
                                           const InputSet &set, uint64_t lost,
                                           uint64_t compared,
                                           double candidateRms) {
  constexpr uint64_t fewest = 16, share = 16;
  if (lost < fewest || lost * share < compared || !isNear(candidateRms))
    return true;
  std::string text = llvm::formatv(
      "buffer {0} lacks small results: on {1} inputs {2} of {3} elements are "
      "off by more than half of a true value that the original has to 10 bits "
      "or more, however small it is beside others of its row",
      buffer.argument->name, set.words, lost, compared);
  addCheck("true-values", false, set.words,
           "small results that the original has are there", text);
  return finish(Verdict::Mismatch, text);
}

/// Says what was seen: neither an element's own bound nor a type is blamed for
/// what both dropped terms and narrow ones do.
llvm::Expected<bool>
Evaluation::refuseNarrow(const TaskBuffer &buffer, const InputSet &set,
                         DevicePointer out, DevicePointer original,
                         double candidateRms, double originalRms) {
  const TrueComparison *known = trueValues->find(buffer.index);
  std::optional<WorstElement> worst = trueValues->findWorst(buffer);
  if (!worst) {
    auto found = clone->findWorst(*buffers, buffer, out, original);
    if (!found)
      return found.takeError();
    worst = *found;
  }
  std::string text = llvm::formatv(
      "buffer {0}: errors are larger than the original's arithmetic in any "
      "order explains, by dropped terms or a narrower type: on {1} inputs the "
      "RMS error against true values is {2} of the row's largest value, the "
      "original's is {3}",
      buffer.argument->name, set.words, shareText(candidateRms),
      shareText(originalRms));
  if (known && known->answer.failing)
    text += llvm::formatv("; {0} of {1} elements are each beyond their bound",
                          known->answer.failing, known->answer.compared);
  if (worst)
    text += llvm::formatv(
        "; the largest error is at {0}: got {1}, the true value is {2}, the "
        "original's {3}",
        placeOf(*buffer.argument, worst->index).first,
        printValue(worst->candidate), printValue(worst->truth),
        printValue(worst->original));
  addCheck("true-values", false, set.words,
           "errors of all elements together, at most 4 times the original's",
           text);
  return finish(Verdict::Mismatch, text);
}

} // namespace fsr
