// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Budgets, comparison and words. Only what was compared is copied back from the
// device, in runs with small gaps.
//
//===----------------------------------------------------------------------===//

#include "TrueValues.h"
#include "Evaluation.h"

#include "fsr/Support/Error.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace fsr {

namespace {

/// Instructions of whole warps a filling: about 12 and 40 ms on one core.
constexpr uint64_t quickInstructions = 4000, fullInstructions = 12'000;
/// Of all fillings of an evaluation.
constexpr uint64_t allInstructions = 500'000;
constexpr uint64_t quickBytes = uint64_t(32) << 20;
constexpr uint64_t mostGap = 32 << 10;

bool isOfAllSizes(const KernelTask &task, const InputSet &set) {
  if (set.repeats || set.exact)
    return false;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    llvm::StringRef family = set.fills[i].family;
    if (argument.isBuffer && isFloat(argument.element) &&
        argument.access != Access::Write &&
        (family == "normal" || family == "uniform" || family == "loguniform" ||
         family == "dominated"))
      return true;
  }
  return false;
}

} // namespace

TrueValues::TrueValues(Helpers &helpers, const KernelTask &task,
                       llvm::StringRef ptx, uint64_t seed)
    : helpers(helpers), task(task) {
  if (!ptx.empty())
    oracle = std::make_unique<Oracle>(task, ptx, seed);
}

llvm::Error TrueValues::fetch(const TaskBuffers &buffers, size_t argument,
                              uint64_t offset, void *to, uint64_t bytes) {
  if (llvm::Error error = helpers.backend().copyToHost(
          to, buffers.find(argument)->pointer() + offset, bytes,
          helpers.stream()))
    return error;
  return helpers.synchronize();
}

void TrueValues::lack(const std::string &why) { lacking[why].insert(words); }

llvm::Error TrueValues::prepare(const TaskBuffers &buffers, const InputSet &set,
                                bool full) {
  drop();
  words = set.words;
  isPrepared = false;
  if (!oracle) {
    lack("the original's PTX is not at hand");
    return llvm::Error::success();
  }
  if (oracle->executed() >= allInstructions) {
    lack("the budget of all inputs together is spent");
    return llvm::Error::success();
  }
  OracleLimits limits;
  limits.instructions = full ? fullInstructions : quickInstructions;
  if (!full)
    limits.bytes = quickBytes;
  isPrepared = true;
  return oracle->prepare(
      limits, [&](size_t argument, uint64_t offset, void *to, uint64_t bytes) {
        return fetch(buffers, argument, offset, to, bytes);
      });
}

llvm::Error TrueValues::solve(const TaskBuffers &buffers) {
  if (!isPrepared)
    return llvm::Error::success();
  auto solved = oracle->solve(
      [&](size_t argument, uint64_t offset, void *to, uint64_t bytes) {
        return fetch(buffers, argument, offset, to, bytes);
      });
  if (!solved)
    return solved.takeError();
  truth = std::move(*solved);
  if (!truth.why.empty())
    lack(truth.why);
  return llvm::Error::success();
}

void TrueValues::drop() {
  comparisons.clear();
  truth = Truth();
}

llvm::Expected<std::vector<uint64_t>>
TrueValues::gather(const TaskBuffer &buffer, const TrueBuffer &from,
                   DevicePointer base) {
  unsigned size = buffer.elementBytes();
  std::vector<uint64_t> bits(from.elements.size());
  std::vector<char> bytes;
  for (size_t begin = 0; begin < bits.size();) {
    uint64_t first = from.elements[begin].offset * size, last = first;
    size_t end = begin;
    while (end < bits.size() &&
           from.elements[end].offset * size - last <= mostGap)
      last = from.elements[end++].offset * size;
    bytes.resize(last + size - first);
    if (llvm::Error error = helpers.backend().copyToHost(
            bytes.data(), base + first, bytes.size(), helpers.stream()))
      return std::move(error);
    if (llvm::Error error = helpers.synchronize())
      return std::move(error);
    for (; begin < end; ++begin)
      std::memcpy(&bits[begin],
                  bytes.data() + from.elements[begin].offset * size - first,
                  size);
  }
  return bits;
}

llvm::Expected<const TrueComparison *>
TrueValues::compare(const TaskBuffer &buffer, const InputSet &set,
                    DevicePointer out, DevicePointer original,
                    double accumulation, double tiny) {
  const TrueBuffer *known = truth.find(buffer.index);
  if (!known) {
    if (isPrepared && truth.why.empty() && !truth.part.empty())
      lack("buffer " + buffer.argument->name + " has none");
    return nullptr;
  }
  auto ofOriginal = gather(buffer, *known, original);
  if (!ofOriginal)
    return ofOriginal.takeError();
  auto ofCandidate = gather(buffer, *known, out);
  if (!ofCandidate)
    return ofCandidate.takeError();
  TrueComparison comparison;
  comparison.truth = known;
  comparison.original = std::move(*ofOriginal);
  comparison.candidate = std::move(*ofCandidate);
  comparison.decides = isOfAllSizes(task, set);
  TruthQuestion question;
  question.type = buffer.argument->element;
  question.elements = known->elements;
  question.original = comparison.original;
  question.candidate = comparison.candidate;
  question.row = buffer.row();
  question.accumulation = accumulation;
  question.tiny = tiny;
  comparison.answer = judgeByTruth(question);
  const TruthAnswer &answer = comparison.answer;
  if (answer.isOriginalOutside) {
    lack("the original on the device lies outside of its own bound in buffer " +
         buffer.argument->name);
    return nullptr;
  }
  Told &to = told[buffer.argument->name];
  ++to.fillings;
  to.compared += answer.compared;
  to.unbounded += answer.unbounded;
  to.part = truth.part;
  to.worst = std::max(to.worst, answer.worstAccepted);
  // Of the filling that came nearest to a refusal.
  if (comparison.decides && answer.allowedRms > 0 &&
      (to.allowedRms == 0 ||
       answer.candidateRms * to.allowedRms > to.rms * answer.allowedRms)) {
    to.rms = answer.candidateRms;
    to.originalRms = answer.originalRms;
    to.allowedRms = answer.allowedRms;
    to.isFew = answer.isFew;
  }
  return &(comparisons[buffer.index] = std::move(comparison));
}

const TrueComparison *TrueValues::find(size_t argument) const {
  auto found = comparisons.find(argument);
  return found == comparisons.end() ? nullptr : &found->second;
}

std::optional<WorstElement>
TrueValues::findWorst(const TaskBuffer &buffer) const {
  const TrueComparison *known = find(buffer.index);
  if (!known || known->truth->elements.empty())
    return std::nullopt;
  size_t at = known->answer.largest;
  const TrueElement &element = known->truth->elements[at];
  ElementType type = buffer.argument->element;
  return WorstElement{element.index, element.value,
                      elementValue(type, known->candidate[at]),
                      elementValue(type, known->original[at])};
}

double TrueValues::narrowed(size_t argument, double factor) const {
  const TrueComparison *known = find(argument);
  if (!known || !known->decides || known->answer.share <= 0)
    return factor;
  return std::min(factor, known->answer.share);
}

void TrueValues::beginPhase() {
  told.clear();
  lacking.clear();
}

bool TrueValues::isWhole() const {
  return isKnown() && llvm::all_of(truth.buffers, [](const TrueBuffer &one) {
           return one.isWhole &&
                  llvm::all_of(one.elements, [](const TrueElement &element) {
                    return std::isfinite(element.bound);
                  });
         });
}

std::optional<Check> TrueValues::check(llvm::StringRef inputs,
                                       const std::string &more) const {
  if (told.empty() && more.empty())
    return std::nullopt;
  Check check;
  check.name = "true-values";
  check.passed = true;
  check.inputs = inputs.str();
  auto addRule = [&](llvm::StringRef rule) {
    if (!llvm::StringRef(check.rule).contains(rule))
      check.rule += ((check.rule.empty() ? "" : "; ") + rule).str();
  };
  for (const auto &[name, one] : told) {
    check.detail += check.detail.empty() ? "" : "; ";
    check.detail += llvm::formatv(
        "buffer {0}: {1} elements of {2} fillings ({3}), the largest error is "
        "{4:f3} of what is allowed",
        name, one.compared, one.fillings, one.part, one.worst);
    addRule("8 times the bound of the original's error and one ulp an element");
    if (one.allowedRms > 0) {
      check.detail += llvm::formatv(
          ", RMS error {0} of the row's largest value, the original's {1}, "
          "allowed {2}",
          shareText(one.rms), shareText(one.originalRms),
          shareText(one.allowedRms));
      addRule(one.isFew
                  ? "all together, being fewer than 64 elements or 16 rows, 4 "
                    "times the larger of the original's RMS error and what its "
                    "bound lets expect, and half an ulp"
                  : "all together 4 times the original's RMS error and half an "
                    "ulp");
    }
    if (one.unbounded)
      check.detail +=
          llvm::formatv(", {0} elements have no finite bound", one.unbounded);
  }
  if (!more.empty()) {
    addRule("by the clone, 8*sqrt(n)*u of the row's largest true value and the "
            "original's largest error there");
    check.detail += (check.detail.empty() ? "" : "; ") + more;
  }
  return check;
}

std::string TrueValues::missing() const {
  std::string text;
  for (const auto &[why, where] : lacking) {
    std::string all;
    for (const std::string &one : where)
      all += (all.empty() ? "" : ", ") + one;
    text += (text.empty() ? "" : "; ") +
            ("no true values on " + all + " inputs: " + why);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// In an evaluation
//===----------------------------------------------------------------------===//

llvm::Error Evaluation::findTruth() {
  if (llvm::Error error = begin("original-oracle", 60e3 + helperSlackMs()))
    return error;
  if (llvm::Error error = trueValues->solve(*buffers))
    return error;
  cloneDecides = usesClone && asksClone();
  return cloneDecides ? runClone() : llvm::Error::success();
}

llvm::Expected<bool> Evaluation::compareTrue(const TaskBuffer &buffer,
                                             const InputSet &set,
                                             DevicePointer out,
                                             DevicePointer original) {
  if (!trueValues)
    return true;
  auto known = trueValues->compare(buffer, set, out, original,
                                   std::max<double>(1, task.work.accumulation),
                                   tinyOf(buffer, set));
  if (!known)
    return known.takeError();
  if (!*known)
    return true;
  if ((*known)->truth->isWhole) {
    auto goesOn =
        voteNarrow(buffer, set, out, original, (*known)->answer.candidateRms,
                   (*known)->answer.originalRms);
    if (!goesOn || !*goesOn)
      return goesOn;
  }
  const TruthAnswer &answer = (*known)->answer;
  auto hasAll =
      checkLost(buffer, set, answer.lost, answer.compared, answer.candidateRms);
  if (!hasAll || !*hasAll || !(*known)->decides)
    return hasAll;
  // What a narrower type gives is near, and off everywhere.
  if (answer.isNarrower() && answer.isSpread && isNear(answer.candidateRms)) {
    return refuseNarrow(buffer, set, out, original, answer.candidateRms,
                        answer.originalRms);
  }
  if (!answer.failing && !answer.isNarrower())
    return true;
  FsrDifference difference{};
  const std::vector<TrueElement> &elements = (*known)->truth->elements;
  difference.failing = answer.failing;
  difference.first = elements[answer.first].index;
  double worst = answer.worst;
  if (!answer.failing) {
    // All pass one by one, and together they are far off.
    difference.failing = answer.compared;
    difference.first = elements[answer.largest].index;
    worst = answer.candidateRms / answer.allowedRms;
  }
  std::memcpy(&difference.worst, &worst, sizeof(worst));
  return mismatch(buffer, out, original, difference, set);
}

/// How many elements fail the rule for rows and pass by their true values.
llvm::Expected<uint64_t> Evaluation::excused(const TaskBuffer &buffer,
                                             const FsrCompare &compare) {
  const TrueComparison *known =
      trueValues ? trueValues->find(buffer.index) : nullptr;
  if (!known || compare.mode != FsrBound)
    return 0;
  auto doubles =
      [&](DevicePointer from) -> llvm::Expected<std::vector<double>> {
    std::vector<double> values(from ? compare.count / compare.row : 0);
    if (values.empty())
      return values;
    if (llvm::Error error = helpers.backend().copyToHost(
            values.data(), from, values.size() * 8, helpers.stream()))
      return std::move(error);
    if (llvm::Error error = helpers.synchronize())
      return std::move(error);
    return values;
  };
  auto maxima = doubles(compare.rowMaximum), noise = doubles(compare.noise);
  if (!maxima || !noise)
    return llvm::joinErrors(maxima ? llvm::Error::success()
                                   : maxima.takeError(),
                            noise ? llvm::Error::success() : noise.takeError());
  uint64_t count = 0;
  for (size_t i = 0; i < known->original.size(); ++i) {
    if (!known->answer.accepted[i] || known->original[i] == known->candidate[i])
      continue;
    double o = elementValue(buffer.argument->element, known->candidate[i]);
    double r = elementValue(buffer.argument->element, known->original[i]);
    if (!std::isfinite(o) || !std::isfinite(r))
      continue;
    uint64_t row = known->truth->elements[i].index / compare.row;
    double allowed = compare.factor * (*maxima)[row] + compare.tiny;
    if (!noise->empty())
      allowed += 8 * (*noise)[row];
    count += !(std::fabs(o - r) <= allowed);
  }
  return count;
}

} // namespace fsr
