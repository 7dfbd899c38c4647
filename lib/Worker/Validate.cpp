// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Does the candidate do what the original does? docs/design/validation.md says
// in words what is checked here and what is not.
//
// Messages go back to the author of the candidate. They tell the family of the
// inputs, the place and the two values; never a seed, and of the bound only the
// order of magnitude by which it was missed.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#define FSR_DEVICE static inline
#include "kernels/elements.inl"

namespace fsr {

namespace {

constexpr llvm::StringLiteral boundRule = "8*sqrt(n)*u*max|reference| a row";
constexpr llvm::StringLiteral repeatRule =
    "the larger of 8*sqrt(n) and 2*n, times u*max|reference| a row";

/// Covers rounding of results near zero, where a share of the row's maximum is
/// below what the type can hold.
double smallestStep(ElementType type, bool flushes) {
  switch (type) {
  case ElementType::F16:
    return std::ldexp(1.0, flushes ? -14 : -24);
  case ElementType::BF16:
    return std::ldexp(1.0, flushes ? -126 : -133);
  case ElementType::F32:
    return std::ldexp(1.0, flushes ? -126 : -149);
  default:
    return std::ldexp(1.0, flushes ? -1022 : -1074);
  }
}

std::string printElement(uint64_t bits, ElementType type) {
  switch (type) {
  case ElementType::I1:
  case ElementType::I8:
    return llvm::itostr(int8_t(bits));
  case ElementType::I16:
    return llvm::itostr(int16_t(bits));
  case ElementType::I32:
    return llvm::itostr(int32_t(bits));
  case ElementType::I64:
    return llvm::itostr(int64_t(bits));
  default: {
    double value = fsrToDouble(bits, static_cast<uint32_t>(type));
    char text[40];
    snprintf(text, sizeof(text), "%.9g", value);
    return text;
  }
  }
}

} // namespace

std::pair<std::string, uint64_t> placeOf(const Argument &argument,
                                         uint64_t index) {
  std::vector<uint64_t> coordinates(argument.sizes.size());
  uint64_t offset = 0;
  for (size_t d = argument.sizes.size(); d-- > 0;) {
    uint64_t size = std::max<int64_t>(1, argument.sizes[d]);
    coordinates[d] = index % size;
    offset += coordinates[d] * argument.strides[d];
    index /= size;
  }
  std::string text = "[";
  for (size_t d = 0; d < coordinates.size(); ++d)
    text += (d ? ", " : "") + llvm::utostr(coordinates[d]);
  return {text + "]", offset};
}

FsrMode Evaluation::modeOf(const TaskBuffer &buffer,
                           const InputSet &set) const {
  if (!isFloat(buffer.argument->element))
    return FsrBits;
  return (set.exact || task.work.movesOnly) && originalDeterministic ? FsrValue
                                                                     : FsrBound;
}

/// Rounding errors of a sum grow with the square root of its length where they
/// are as good as independent, and with the length where one value is added
/// over and over and every addition rounds the same way. There the original
/// itself may be off by so much, and a better sum must not fail for it.
double Evaluation::factorOf(const TaskBuffer &buffer,
                            const InputSet &set) const {
  double terms = std::max<double>(1, double(task.work.accumulation));
  if (set.terms > 0)
    terms = std::min(terms, set.terms);
  double factor = 8 * std::sqrt(terms);
  if (set.repeats)
    factor = std::max(factor, 2 * terms);
  factor *= unitRoundoff(buffer.argument->element);
  return trueValues ? trueValues->narrowed(buffer.index, factor) : factor;
}

double Evaluation::tinyOf(const TaskBuffer &buffer, const InputSet &set) const {
  return 8 * std::sqrt(std::max<double>(1, task.work.accumulation)) *
         smallestStep(buffer.argument->element,
                      flushesDenormals() || set.mayOverflow);
}

double Evaluation::ceilingOf(const TaskBuffer &buffer,
                             const InputSet &set) const {
  if (!set.mayOverflow)
    return 0;
  switch (buffer.argument->element) {
  case ElementType::F16:
    return 0x1p15;
  case ElementType::BF16:
  case ElementType::F32:
    return 0x1p126;
  default:
    return 0x1p1022;
  }
}

std::optional<uint64_t> Evaluation::poisonOf(const TaskBuffer &buffer,
                                             Poison poison) const {
  if (!buffer.poisoned() || buffers->holdsAnswer(buffer))
    return std::nullopt;
  return buffers->poisonBits(poison, buffer);
}

llvm::StringRef Evaluation::ruleOf(const TaskBuffer &buffer,
                                   const InputSet &set) const {
  if (modeOf(buffer, set) != FsrBound)
    return "bit equality";
  return set.repeats ? repeatRule : boundRule;
}

/// Runs the original twice: its time, whether it is deterministic, and whether
/// it keeps to what the task says of it.
llvm::Error Evaluation::learnOriginal(const InputSet &set, Poison poison) {
  if (llvm::Error error =
          begin("original-first-run",
                (virtualDevice ? 10 * 120e3 : 120e3) + helperSlackMs()))
    return error;
  auto start = helpers.backend().createEvent(true);
  if (!start)
    return start.takeError();
  startEvent = *start;
  auto stop = helpers.backend().createEvent(true);
  if (!stop)
    return stop.takeError();
  stopEvent = *stop;
  std::vector<uint64_t> before, first, second;
  for (unsigned pass = 0; pass < 2; ++pass) {
    if (llvm::Error error = buffers->fill(set, false))
      return error;
    if (llvm::Error error = buffers->poisonOutputs(poison))
      return error;
    if (pass == 0) {
      auto hashes = buffers->hashReadOnly();
      if (!hashes)
        return hashes.takeError();
      before = *hashes;
    }
    if (llvm::Error error =
            helpers.backend().record(startEvent, helpers.stream()))
      return error;
    Deadline::Clock::time_point launched = Deadline::Clock::now();
    if (llvm::Error error = launch(Who::Original))
      return error;
    originalWallMs = std::chrono::duration<double, std::milli>(
                         Deadline::Clock::now() - launched)
                         .count();
    if (llvm::Error error =
            helpers.backend().record(stopEvent, helpers.stream()))
      return error;
    if (llvm::Error error = helpers.synchronize())
      return error;
    auto hashes = buffers->hashWritten();
    if (!hashes)
      return hashes.takeError();
    (pass ? second : first) = *hashes;
  }
  auto elapsed = helpers.backend().elapsedMs(startEvent, stopEvent);
  if (!elapsed)
    return elapsed.takeError();
  originalUs = *elapsed * 1000;
  originalKnown = true;
  if (virtualDevice)
    if (llvm::Error error = learnFindings())
      return error;
  auto damage = buffers->findGuardDamage();
  if (!damage)
    return damage.takeError();
  if (!damage->empty())
    return makeError(ErrorKind::Unsupported,
                     "the original kernel " + *damage +
                         ": there is nothing to compare with");
  auto after = buffers->hashReadOnly();
  if (!after)
    return after.takeError();
  if (*after != before)
    return makeError(ErrorKind::Unsupported,
                     "the original kernel writes a buffer that the task calls "
                     "read-only");
  firstCaseSeconds =
      std::chrono::duration<double>(Deadline::Clock::now() - strengthStart)
          .count();
  if (llvm::Error error = keepOriginal(set, poison))
    return error;
  originalDeterministic = first == second;
  if (!originalDeterministic) {
    size_t at = 0;
    for (const TaskBuffer &buffer : buffers->buffers()) {
      if (!buffer.written())
        continue;
      if (!isFloat(buffer.argument->element) && first[at] != second[at])
        return makeError(ErrorKind::Unsupported,
                         "the original kernel gives other integers in buffer " +
                             buffer.argument->name +
                             " each time: there is nothing to compare with");
      ++at;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<bool> Evaluation::checkTouched(llvm::ArrayRef<uint64_t> before,
                                              llvm::StringRef inputWords) {
  auto damage = buffers->findGuardDamage();
  if (!damage)
    return damage.takeError();
  if (!damage->empty()) {
    addCheck("guard-zones", false, inputWords, "no byte changed", *damage);
    return finish(Verdict::Unsafe, *damage + " (" + inputWords + " inputs)");
  }
  auto after = buffers->hashReadOnly();
  if (!after)
    return after.takeError();
  size_t at = 0;
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (buffer.written())
      continue;
    if ((*after)[at] != before[at]) {
      std::string what =
          "wrote buffer " + buffer.argument->name + ", which is read-only";
      addCheck("inputs-unchanged", false, inputWords, "same hash", what);
      return finish(Verdict::Unsafe, what + " (" + inputWords + " inputs)");
    }
    ++at;
  }
  return checkVariables(inputWords);
}

/// Inputs restored, outputs poisoned, the candidate run, its surroundings
/// looked at.
llvm::Expected<bool>
Evaluation::runCandidateOn(const InputSet &set, Poison poison,
                           llvm::ArrayRef<uint64_t> before) {
  if (llvm::Error error = buffers->fill(set, true))
    return std::move(error);
  if (llvm::Error error = buffers->poisonOutputs(poison))
    return std::move(error);
  if (llvm::Error error = buffers->poisonScratch())
    return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  if (llvm::Error error = beginCandidate(1))
    return std::move(error);
  if (llvm::Error error =
          dummy ? playDummy(set, poison) : launch(Who::Candidate))
    return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  if (virtualDevice) {
    auto goesOn = checkFindings(set.words);
    if (!goesOn || !*goesOn)
      return goesOn;
  }
  if (llvm::Error error = begin("original-check", 2 * helperSlackMs()))
    return std::move(error);
  return checkTouched(before, set.words);
}

/// Original and candidate find in the written buffers what a loop would leave
/// there.
llvm::Expected<bool> Evaluation::answerEarlier(const InputSet &set,
                                               Poison poison) {
  if (llvm::Error error = buffers->fill(InputPlan::earlier(set), false))
    return std::move(error);
  if (llvm::Error error = buffers->poisonOutputs(poison))
    return std::move(error);
  if (llvm::Error error = launch(Who::Original))
    return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  auto isKept = buffers->keepAnswer();
  if (isKept && !*isKept)
    noAnswer = true;
  return isKept;
}

llvm::Expected<bool> Evaluation::validate(const InputSet &set, Poison poison,
                                          llvm::ArrayRef<RunOrder> again) {
  if (llvm::Error error = beginOriginal(set.answered ? 2 : 1))
    return std::move(error);
  if (set.shifted != placedShifted) {
    if (llvm::Error error = buffers->place(set.shifted))
      return std::move(error);
    placedShifted = set.shifted;
  }
  buffers->share(set);
  // Of this set of inputs wherever it comes again, so that what the original
  // leaves alone is the same.
  buffers->drawPoison(poisonKey ^ set.seed);
  if (llvm::Error error = buffers->forgetAnswer())
    return std::move(error);
  if (!originalKnown)
    if (llvm::Error error = learnOriginal(set, poison))
      return std::move(error);
  if (set.answered) {
    auto isKept = answerEarlier(set, poison);
    // Without memory for it nothing is tried, as the evidence says.
    if (!isKept || !*isKept)
      return isKept ? llvm::Expected<bool>(true) : isKept.takeError();
  }
  if (llvm::Error error = buffers->fill(set, false))
    return std::move(error);
  if (llvm::Error error = buffers->poisonOutputs(poison))
    return std::move(error);
  // Equal values need no true ones.
  bool asksTruth = trueValues && wantsTruth && !set.special &&
                   !set.mayOverflow && !(set.exact && originalDeterministic) &&
                   (request.options.full || !set.shifted);
  if (asksTruth) {
    if (llvm::Error error = begin("original-copy", 60e3 + helperSlackMs()))
      return std::move(error);
    if (llvm::Error error =
            trueValues->prepare(*buffers, set, request.options.full))
      return std::move(error);
  }
  usesClone = false;
  voted.clear();
  // What it decided once is decided by it: the original may be far off.
  if (asksTruth ||
      (trueValues && cloneDecides && !(set.exact && originalDeterministic))) {
    if (llvm::Error error =
            begin("original-clone-load", 60e3 + helperSlackMs()))
      return std::move(error);
    auto ready = clone->prepare(*buffers);
    if (!ready)
      return ready.takeError();
    usesClone = *ready;
  }
  if (llvm::Error error = beginOriginal(1))
    return std::move(error);
  auto readOnly = buffers->hashReadOnly();
  if (!readOnly)
    return readOnly.takeError();
  if (llvm::Error error = launchOriginal(set, poison))
    return std::move(error);
  if (llvm::Error error = buffers->stashOutputs())
    return std::move(error);
  // A dummy is the worker's own.
  if (!dummy)
    if (llvm::Error error = buffers->maskStashes(maskKey))
      return std::move(error);
  auto goesOn = runCandidateOn(set, poison, *readOnly);
  if (!goesOn || !*goesOn)
    return goesOn;
  // Nothing but hashes of what it gave itself is compared before the last run:
  // true values must not exist while a candidate runs.
  if (!again.empty())
    if (llvm::Error error = keepFirstRun())
      return std::move(error);
  ranAgain = 0;
  std::vector<uint64_t> secondHashes = firstHashes;
  while (ranAgain < again.size() && secondHashes == firstHashes) {
    RunOrder before = std::exchange(order, again[ranAgain++]);
    goesOn = runCandidateOn(set, poison, *readOnly);
    order = before;
    if (!goesOn || !*goesOn)
      return goesOn;
    auto hashes = buffers->hashWritten();
    if (!hashes)
      return hashes.takeError();
    secondHashes = std::move(*hashes);
  }
  if (!dummy)
    if (llvm::Error error = buffers->maskStashes(maskKey))
      return std::move(error);
  if (usesClone)
    clone->setWords(set.words);
  if (llvm::Error error = asksTruth   ? findTruth()
                          : usesClone ? runClone()
                                      : llvm::Error::success())
    return std::move(error);
  if (llvm::Error error = begin("original-compare", 60e3 + 2 * helperSlackMs()))
    return std::move(error);
  goesOn = compareOutputs(set, poison, false);
  if (goesOn && *goesOn && !again.empty())
    goesOn = compareRuns(set, poison, secondHashes, again[ranAgain - 1]);
  if (trueValues) {
    trueValues->drop();
    if (llvm::Error error = clone->drop()) {
      llvm::consumeError(goesOn.takeError());
      return std::move(error);
    }
  }
  return goesOn;
}

llvm::Expected<bool> Evaluation::mismatch(const TaskBuffer &buffer,
                                          DevicePointer out,
                                          DevicePointer reference,
                                          const FsrDifference &difference,
                                          const InputSet &set) {
  const Argument &argument = *buffer.argument;
  auto [place, offset] = placeOf(argument, difference.first);
  uint64_t got = 0, wanted = 0;
  unsigned size = buffer.elementBytes();
  if (llvm::Error error = helpers.backend().copyToHost(
          &got, out + offset * size, size, helpers.stream()))
    return std::move(error);
  if (llvm::Error error = helpers.backend().copyToHost(
          &wanted, reference + offset * size, size, helpers.stream()))
    return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  std::string text = llvm::formatv(
      "buffer {0} differs from the original in {1} of {2} elements on {3} "
      "inputs; the first at {4}: got {5}, wanted {6}",
      argument.name, difference.failing, argument.numElements(), set.words,
      place, printElement(got, argument.element),
      printElement(wanted, argument.element));
  double ratio = fsrDouble(difference.worst);
  // Infinite where rounding explains nothing: then no power of ten tells more.
  if (ratio > 1 && std::isfinite(ratio))
    text += llvm::formatv("; the largest error is about 10^{0} times what "
                          "rounding explains",
                          int64_t(std::ceil(std::log10(ratio))));
  if (difference.unwritten)
    text += llvm::formatv("; {0} elements were left unwritten",
                          difference.unwritten);
  addCheck("equal", false, set.words, ruleOf(buffer, set), text);
  return finish(Verdict::Mismatch, text);
}

FsrCompare Evaluation::comparisonOn(const TaskBuffer &buffer,
                                    const InputSet &set, Poison poison,
                                    DevicePointer out,
                                    DevicePointer original) const {
  FsrCompare compare = buffers->comparison(buffer, out, original);
  std::optional<uint64_t> poisonBits = poisonOf(buffer, poison);
  compare.hasPoison = poisonBits.has_value();
  compare.poison = poisonBits.value_or(0);
  compare.ceiling = ceilingOf(buffer, set);
  return compare;
}

llvm::Expected<bool>
Evaluation::compareOne(const TaskBuffer &buffer, const InputSet &set,
                       Poison poison, bool candidateInStash,
                       std::vector<const TaskBuffer *> &beyond) {
  DevicePointer out = candidateInStash ? buffer.stash : buffer.data;
  DevicePointer original = candidateInStash ? buffer.data : buffer.stash;
  FsrCompare compare = comparisonOn(buffer, set, poison, out, original);
  if (!compare.count)
    return true;
  compare.mode = modeOf(buffer, set);
  if (compare.mode == FsrBound) {
    auto goesOn = compareTrue(buffer, set, out, original);
    if (!goesOn || !*goesOn)
      return goesOn;
    compare.factor = factorOf(buffer, set);
    compare.tiny = tinyOf(buffer, set);
    FsrCompare rows = compare;
    rows.out = 0;
    if (llvm::Error error = helpers.rowMaximum(rows, rowMaxima))
      return std::move(error);
    compare.rowMaximum = rowMaxima;
  }
  std::optional<CloneAnswer> byClone;
  if (compare.mode == FsrBound) {
    auto asked = askClone(buffer, set, poison, out, original);
    if (!asked)
      return asked.takeError();
    byClone = *asked;
    if (byClone) {
      auto goesOn = compareClone(buffer, set, out, original, *byClone);
      if (!goesOn || !*goesOn)
        return goesOn;
    }
  }
  auto difference = helpers.compare(compare);
  if (!difference)
    return difference.takeError();
  bitsDiffered += difference->bitsDiffer;
  beyondType += difference->skipped;
  if (byClone) {
    // What fails here may still be ill-conditioned, as below.
    difference->failing = byClone->judgement.failing;
    difference->first = byClone->judgement.first;
    difference->worst = byClone->judgement.worst;
  } else if (difference->failing) {
    auto byTruth = excused(buffer, compare);
    if (!byTruth)
      return byTruth.takeError();
    if (*byTruth == difference->failing)
      difference->failing = 0;
  } else {
    worstRatio = std::max(worstRatio, fsrDouble(difference->worst));
  }
  if (!buffer.contiguous() && !buffer.overlapping()) {
    // Elements and the storage between them, against elements alone.
    FsrCompare storage = compare;
    storage.mode = FsrBits;
    storage.ceiling = 0;
    storage.count = buffer.storageElements();
    storage.layout.rank = 1;
    storage.layout.size[0] = storage.count;
    storage.layout.stride[0] = 1;
    auto whole = helpers.compare(storage);
    if (!whole)
      return whole.takeError();
    if (whole->bitsDiffer > difference->bitsDiffer) {
      std::string what = llvm::formatv(
          "wrote {0} places between the elements of buffer {1}",
          whole->bitsDiffer - difference->bitsDiffer, buffer.argument->name);
      addCheck("guard-zones", false, set.words, "no byte changed", what);
      return finish(Verdict::Unsafe, what);
    }
  }
  if (!difference->failing)
    return true;
  if (compare.mode == FsrBound) {
    beyond.push_back(&buffer);
    return true;
  }
  return mismatch(buffer, out, original, *difference, set);
}

llvm::Expected<bool> Evaluation::compareOutputs(const InputSet &set,
                                                Poison poison,
                                                bool candidateInStash) {
  std::vector<const TaskBuffer *> beyond;
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (!buffer.stash)
      continue;
    auto goesOn = compareOne(buffer, set, poison, candidateInStash, beyond);
    if (!goesOn || !*goesOn)
      return goesOn;
  }
  if (beyond.empty())
    return true;
  return compareConditioned(beyond, set, poison, candidateInStash);
}

llvm::Expected<bool> Evaluation::validateSets(llvm::StringRef name,
                                              llvm::ArrayRef<InputSet> sets,
                                              llvm::ArrayRef<RunOrder> again,
                                              llvm::StringRef remark) {
  if (sets.empty())
    return true;
  worstRatio = 0;
  bitsDiffered = beyondType = 0;
  conditioned = noAnswer = false;
  if (trueValues) {
    trueValues->beginPhase();
    clone->beginPhase();
  }
  std::string words;
  bool demandsBits = true;
  for (size_t i = 0; i < sets.size(); ++i) {
    auto goesOn = validate(sets[i], i % 2 ? Poison::Plain : Poison::NaN,
                           i == 0 ? again : llvm::ArrayRef<RunOrder>());
    if (!goesOn || !*goesOn)
      return goesOn;
    if (!llvm::StringRef(words).contains(sets[i].words))
      words += (words.empty() ? "" : ", ") + sets[i].words;
    for (const TaskBuffer &buffer : buffers->buffers())
      if (buffer.stash && modeOf(buffer, sets[i]) == FsrBound)
        demandsBits = false;
  }
  words = llvm::formatv("{0}; {1} in all", words, sets.size());
  std::string detail;
  if (demandsBits)
    detail = "the same values";
  else if (!bitsDiffered)
    detail = "the same bits, though the bound would allow less";
  else
    detail = llvm::formatv("{0} elements differ in bits; the largest error is "
                           "{1:f3} of the bound",
                           bitsDiffered, worstRatio);
  if (conditioned)
    detail += "; ill-conditioned inputs were allowed what a few units of "
              "rounding in the input do to the original";
  if (beyondType)
    detail += llvm::formatv("; {0} elements were not compared, for the "
                            "original's are not finite or nearly so",
                            beyondType);
  if (noAnswer)
    detail += "; no earlier answer in the outputs, for want of memory";
  if (llvm::Error error = buffers->forgetAnswer())
    return std::move(error);
  bool repeats = std::any_of(sets.begin(), sets.end(),
                             [](const InputSet &set) { return set.repeats; });
  std::string rule = demandsBits ? "bit equality, zeros of either sign equal"
                                 : boundRule.str();
  if (!demandsBits && repeats)
    rule += ("; where values repeat, " + repeatRule).str();
  std::optional<Check> byTruth;
  if (trueValues && !demandsBits) {
    byTruth = trueValues->check(words, clone->describe());
    if (byTruth)
      rule += "; where true values are known, by those";
    if (!clone->whyNot().empty())
      detail += "; no clone in f64: " + clone->whyNot();
    if (std::string missing = trueValues->missing(); !missing.empty())
      detail += "; " + missing;
  }
  if (!remark.empty())
    detail += ("; " + remark).str();
  addCheck(name, true, words, rule, detail);
  if (byTruth)
    result.evidence.checks.push_back(std::move(*byTruth));
  return true;
}

void Evaluation::describeRules() {
  double bound = 0;
  for (const TaskBuffer &buffer : buffers->buffers())
    if (buffer.written() && isFloat(buffer.argument->element) &&
        !task.work.movesOnly)
      bound = std::max(bound, factorOf(buffer, InputSet()));
  result.evidence.relativeBound = bound;
  result.evidence.bitExact = bound == 0;
}

/// Those of this rung; none where the task is not exact on any.
std::vector<InputSet> Evaluation::exactSets() const {
  bool anyFloat =
      llvm::any_of(buffers->buffers(), [](const TaskBuffer &buffer) {
        return isFloat(buffer.argument->element);
      });
  if (!task.work.exactOnIntegers || !anyFloat)
    return {};
  std::vector<InputSet> exact = inputs->exact();
  if (!request.options.full && exact.size() > 1)
    exact.erase(exact.begin() + 1, exact.end());
  return exact;
}

llvm::Error Evaluation::learnEarly() {
  std::vector<InputSet> sets = exactSets();
  if (sets.empty())
    sets = inputs->workload();
  buffers->share(sets.front());
  buffers->drawPoison(random());
  if (llvm::Error error = buffers->forgetAnswer())
    return error;
  return learnOriginal(sets.front(), Poison::NaN);
}

llvm::Expected<bool> Evaluation::validateQuick() {
  describeRules();
  // Before the device runs it: a fault there may cost the context, and says
  // less.
  auto isSafe = validateBeside(/*inFull=*/false);
  if (!isSafe || !*isSafe)
    return isSafe;
  auto goesOn = validateSets("exact-inputs", exactSets(), {});
  if (!goesOn || !*goesOn)
    return goesOn;
  std::vector<RunOrder> again(request.options.full ? 1 : 0);
  goesOn = validateSets("workload-inputs", inputs->workload(), again);
  if (!goesOn || !*goesOn)
    return goesOn;
  addCheck("guard-zones", true, "all of the above",
           virtualDevice
               ? "no access outside a buffer"
               : "no byte of 64 KiB on either side of a buffer changed",
           "");
  addCheck("inputs-unchanged", true, "all of the above",
           "read-only buffers keep their hash", "");
  if (!variables.empty())
    addCheck("module-variables", true, "all of the above",
             "the module's own variables keep the bytes that were loaded", "");
  addCheck("outputs-written", true, "all of the above",
           "outputs poisoned anew, with two patterns; what the original leaves "
           "alone stays",
           "");
  addCheck("alignment", true, "the workload's own",
           "one run with no more alignment than the compiler proved", "");
  if (!request.options.full)
    return true;
  addCheck("deterministic", candidateDeterministic, "the workload's own",
           "two runs, the same bits",
           candidateDeterministic
               ? ""
               : "not deterministic: the bits differ from run to run, every "
                 "run keeps to the bound");
  return true;
}

/// So few results that they tell of a narrower type only together.
bool Evaluation::isFew(const TaskBuffer &buffer) const {
  int64_t count = buffer.argument->numElements();
  return isFloat(buffer.argument->element) && !task.work.movesOnly &&
         count > 0 && (count < 64 || count / int64_t(buffer.row()) < 16);
}

/// One sum over many terms has an error of its own that hides a narrower type.
/// Where zeros give zeros, a sum over few numbers among zeros has not.
llvm::Expected<bool> Evaluation::validateSparse() {
  std::vector<InputSet> sets = inputs->sparse();
  bool anyFew = false;
  for (const TaskBuffer &buffer : buffers->buffers())
    anyFew |= buffer.stash && isFew(buffer);
  if (sets.empty() || !anyFew)
    return true;
  if (llvm::Error error = beginOriginal(1))
    return std::move(error);
  InputSet zeros = sets[0];
  for (size_t i = 0; i < zeros.fills.size(); ++i)
    if (isFloat(task.arguments[i].element))
      zeros.fills[i] = FillRecipe{"zeros", {}};
  if (llvm::Error error = buffers->forgetAnswer())
    return std::move(error);
  if (llvm::Error error = buffers->fill(zeros, false))
    return std::move(error);
  if (llvm::Error error = buffers->poisonOutputs(Poison::Plain))
    return std::move(error);
  if (llvm::Error error = launch(Who::Original))
    return std::move(error);
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (!buffer.stash || !isFloat(buffer.argument->element))
      continue;
    if (llvm::Error error = helpers.clear(buffer.stash, buffer.extent))
      return std::move(error);
    FsrCompare zero = buffers->comparison(buffer, buffer.data, buffer.stash);
    zero.mode = FsrValue;
    auto difference = helpers.compare(zero);
    if (!difference)
      return difference.takeError();
    if (difference->failing)
      return true;
  }
  return validateSets("few-terms", sets, {});
}

/// One number of each row stands above the others: what is left out for being
/// small shows where all but one are, and what a narrower type does to each row
/// does not average out where it is the same for all.
llvm::Expected<bool> Evaluation::validateDominated() {
  bool anyFew = false;
  for (const TaskBuffer &buffer : buffers->buffers())
    anyFew |= buffer.stash && isFew(buffer);
  std::vector<InputSet> sets = inputs->dominated(anyFew);
  // Many equal numbers may make the original drift, which the clone knows.
  for (InputSet &set : sets)
    set.repeats |= !clone || !clone->whyNot().empty();
  return validateSets("one-term-decides", sets, {});
}

/// NaN and infinities among the inputs.
llvm::Expected<bool> Evaluation::validateSpecial() {
  std::vector<InputSet> sets = inputs->special();
  if (sets.empty())
    return true;
  if (task.work.finiteOnly.empty())
    return validateSets("special-values", sets, {});
  if (task.work.movesOnly && task.work.finiteOnly == comparisonsDecide) {
    llvm::erase_if(sets, [](const InputSet &set) { return set.holdsNaN; });
    return validateSets("special-values", sets, {},
                        "no NaN: " + task.work.finiteOnly);
  }
  addCheck("special-values", true, "none with NaN or infinities",
           "where the original is NaN so is the candidate; the same infinities",
           "not tried: " + task.work.finiteOnly);
  return true;
}

llvm::Expected<bool> Evaluation::validateFull() {
  std::vector<InputSet> battery = inputs->battery();
  auto goesOn = validateSets("input-battery", battery, {});
  buffers->share(InputSet());
  if (!goesOn || !*goesOn)
    return goesOn;
  bool sharing = llvm::any_of(
      battery, [](const InputSet &set) { return !set.standIns.empty(); });
  addCheck("aliasing", true, "the workload's own",
           "written buffers are proved disjoint from all others; read-only "
           "ones may be one",
           sharing
               ? "read-only buffers of one type and shape at one address"
               : "no two read-only buffers of one type and shape may be one");
  goesOn = validateSparse();
  if (!goesOn || !*goesOn)
    return goesOn;
  goesOn = validateDominated();
  if (!goesOn || !*goesOn)
    return goesOn;
  goesOn = validateSpecial();
  if (!goesOn || !*goesOn)
    return goesOn;
  // A dummy is no kernel: its warps have no order.
  if (dummy)
    return true;
  goesOn =
      virtualDevice ? validateSchedules() : validateBeside(/*inFull=*/true);
  if (!goesOn || !*goesOn)
    return goesOn;
  return validateUnread();
}

} // namespace fsr
