// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The task itself is tested: dummies that are wrong by construction go through
// the quick rung, and those that get through it through the full one. The
// right answer, where one needs it, is the stash that the harness has anyway.
//
//===----------------------------------------------------------------------===//

#include "Strength.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#define FSR_DEVICE [[maybe_unused]] static inline
#include "kernels/elements.inl"

namespace fsr {

namespace {

constexpr size_t mostCopies = 16;
constexpr size_t mostDetailBytes = 300;
/// Of a large buffer, so many pieces of so many elements are looked at.
constexpr uint64_t mostPieces = 64, pieceElements = 64 << 10;
/// A seed that no recipe of the ladder has.
constexpr uint64_t otherSeedBits = 0xA0761D6478BD642Full;

bool isOutput(const TaskBuffer &buffer) {
  return buffer.stash && buffer.argument->numElements() > 0;
}

bool isInput(const TaskBuffer &buffer) {
  return !buffer.poisoned() && buffer.argument->access != Access::None &&
         buffer.argument->numElements() > 0;
}

/// May honestly be right: it gives what was there, or leaves some of it.
bool keepsSomething(DummyKind kind) {
  switch (kind) {
  case DummyKind::Untouched:
  case DummyKind::Identity:
  case DummyKind::CopyInput:
  case DummyKind::HalfDone:
  case DummyKind::EverySecondRow:
  case DummyKind::ButTheLastRow:
  case DummyKind::ButTheLastElement:
    return true;
  default:
    return false;
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// HostElements
//===----------------------------------------------------------------------===//

llvm::Expected<HostElements> HostElements::read(Helpers &helpers,
                                                const TaskBuffer &buffer,
                                                DevicePointer from) {
  HostElements elements;
  elements.of = &buffer;
  elements.count = std::max<int64_t>(0, buffer.argument->numElements());
  elements.flat = buffer.contiguous();
  uint64_t pieces = 1, piece = buffer.extent, step = 0;
  if (elements.flat && elements.count > mostPieces * pieceElements) {
    pieces = mostPieces;
    piece = pieceElements * buffer.elementBytes();
    step = elements.count / mostPieces * buffer.elementBytes();
    elements.count = pieces * pieceElements;
  }
  elements.bytes.resize(pieces * piece);
  for (uint64_t i = 0; i < pieces; ++i)
    if (llvm::Error error = helpers.backend().copyToHost(
            elements.bytes.data() + i * piece, from + i * step, piece,
            helpers.stream()))
      return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  return elements;
}

uint64_t HostElements::offset(uint64_t i) const {
  if (flat)
    return i;
  const Argument &argument = *of->argument;
  uint64_t offset = 0;
  for (size_t d = argument.sizes.size(); d-- > 0;) {
    uint64_t size = std::max<int64_t>(1, argument.sizes[d]);
    offset += i % size * uint64_t(argument.strides[d]);
    i /= size;
  }
  return offset;
}

uint64_t HostElements::bits(uint64_t i) const {
  uint64_t bits = 0;
  unsigned size = of->elementBytes();
  std::memcpy(&bits, bytes.data() + offset(i) * size, size);
  return bits;
}

double HostElements::value(uint64_t i) const {
  uint64_t raw = bits(i);
  ElementType type = of->argument->element;
  if (isFloat(type))
    return fsrToDouble(raw, static_cast<uint32_t>(type));
  unsigned unused = 64 - 8 * of->elementBytes();
  return double(int64_t(raw << unused) >> unused);
}

//===----------------------------------------------------------------------===//
// KnownAnswers
//===----------------------------------------------------------------------===//

std::vector<std::vector<char>> *KnownAnswers::find(const std::string &key) {
  auto found = answers.find(key);
  return found == answers.end() ? nullptr : &found->second;
}

std::vector<std::vector<char>> *KnownAnswers::add(const std::string &key,
                                                  uint64_t bytes) {
  if (bytes > most - used)
    return nullptr;
  used += bytes;
  return &answers[key];
}

//===----------------------------------------------------------------------===//
// Which dummies
//===----------------------------------------------------------------------===//

std::vector<Dummy> dummiesFor(const TaskBuffers &buffers) {
  int64_t most = 0, rows = 0;
  bool anyInPlace = false, anyWriteOnly = false, anyReadOnly = false;
  for (const TaskBuffer &buffer : buffers.buffers()) {
    anyReadOnly |= !buffer.written() && buffer.argument->numElements() > 0;
    if (!isOutput(buffer))
      continue;
    most = std::max(most, buffer.argument->numElements());
    rows = std::max<int64_t>(rows, buffer.argument->numElements() /
                                       int64_t(buffer.row()));
    (buffer.poisoned() ? anyWriteOnly : anyInPlace) = true;
  }
  std::string single = most > 1 ? "" : "no output has two elements";
  std::vector<Dummy> all;
  auto add = [&](DummyKind kind, llvm::StringRef name,
                 llvm::StringRef useless = "", size_t input = 0) {
    all.push_back({kind, name.str(), useless.str(), input});
  };
  add(DummyKind::Untouched, "untouched");
  add(DummyKind::Identity, "in-place-untouched",
      !anyInPlace     ? "no buffer is read and written"
      : !anyWriteOnly ? "every output is in place: as untouched"
                      : "");
  add(DummyKind::Zeros, "zeros");
  add(DummyKind::FirstValue, "first-value", single);
  add(DummyKind::CommonValue, "most-frequent-value", single);
  add(DummyKind::Mean, "mean");
  add(DummyKind::Statistics, "statistics-only", single);
  add(DummyKind::Reversed, "reversed", single);
  size_t copies = 0;
  for (const TaskBuffer &input : buffers.buffers()) {
    bool fits = llvm::any_of(buffers.buffers(), [&](const TaskBuffer &output) {
      return isOutput(output) && isInput(input) && &input != &output &&
             input.argument->element == output.argument->element &&
             input.argument->numElements() >= output.argument->numElements();
    });
    if (fits && copies++ < mostCopies)
      add(DummyKind::CopyInput, "copy-of-" + input.argument->name, "",
          input.index);
  }
  if (!copies)
    add(DummyKind::CopyInput, "copy-of-an-input",
        "no input has an output's type and size");
  add(DummyKind::HalfDone, "half-done", single);
  add(DummyKind::EverySecondRow, "every-second-row", single);
  add(DummyKind::ButTheLastRow, "all-but-the-last-row",
      rows > 1 ? "" : "no output has two rows");
  add(DummyKind::ButTheLastElement, "all-but-the-last-element", single);
  add(DummyKind::StaleBuffer, "stale-buffer");
  add(DummyKind::OtherSeed, "answer-for-another-seed");
  add(DummyKind::DestroysInput, "input-destroying",
      anyReadOnly ? "" : "no buffer is only read");
  add(DummyKind::Accumulates, "accumulates");
  return all;
}

bool spreadsOut(const InputSet &set, const TaskBuffers &buffers) {
  return llvm::all_of(buffers.buffers(), [&](const TaskBuffer &buffer) {
    if (!isInput(buffer))
      return true;
    const FillRecipe &fill = set.fills[buffer.index];
    auto parameter = [&](size_t i, double otherwise) {
      return i < fill.parameters.size() ? fill.parameters[i] : otherwise;
    };
    if (fill.family == "normal" || fill.family == "drifting")
      return parameter(1, 1) > 0;
    if (fill.family == "uniform" || fill.family == "loguniform" ||
        fill.family == "integers")
      return parameter(0, 0) < parameter(1, 1);
    // All that a truth value can be.
    return fill.family == "bernoulli" &&
           buffer.argument->element == ElementType::I1 &&
           parameter(0, 0.5) > 0 && parameter(0, 0.5) < 1;
  });
}

//===----------------------------------------------------------------------===//
// In a candidate's place
//===----------------------------------------------------------------------===//

/// The poison's bits are drawn by the seed.
std::string KnownAnswers::keyOf(const InputSet &set, Poison poison) {
  std::string key = llvm::formatv(
      "{0} {1} {2} {3} {4} {5} {6} {7} {8}", set.seed, fsrBits(set.perturb),
      set.perturbTurn, set.shifted, int(poison), set.answered,
      fsrBits(set.changed), fsrBits(set.kept), set.otherSeed);
  for (const FillRecipe &fill : set.fills)
    key += " " + fill.print();
  key += " as";
  for (size_t standIn : set.standIns)
    key += " " + std::to_string(standIn);
  for (const Planted &one : set.planted)
    key += llvm::formatv(" {0}={1}", one.argument, fsrBits(one.value)).str();
  return key;
}

/// A GPU runs the original in less time than its outputs take to move.
bool Evaluation::keepsAnswer(const InputSet &set) const {
  return virtualDevice && known && (dummy || set.comesAgain);
}

/// What it has just given. Where there is no room it runs again.
llvm::Error Evaluation::keepOriginal(const InputSet &set, Poison poison) {
  std::string key = KnownAnswers::keyOf(set, poison);
  if (!keepsAnswer(set) || known->find(key))
    return llvm::Error::success();
  uint64_t bytes = 0;
  for (const TaskBuffer &buffer : buffers->buffers())
    bytes += buffer.stash ? buffer.extent : 0;
  auto *answer = known->add(key, bytes);
  if (!answer)
    return llvm::Error::success();
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (!buffer.stash)
      continue;
    answer->emplace_back(buffer.extent);
    if (llvm::Error error =
            helpers.backend().copyToHost(answer->back().data(), buffer.data,
                                         buffer.extent, helpers.stream()))
      return error;
  }
  return helpers.synchronize();
}

/// Inputs are filled, outputs poisoned.
llvm::Error Evaluation::launchOriginal(const InputSet &set, Poison poison) {
  auto *answer = keepsAnswer(set)
                     ? known->find(KnownAnswers::keyOf(set, poison))
                     : nullptr;
  if (!answer) {
    if (llvm::Error error = launch(Who::Original))
      return error;
    return keepOriginal(set, poison);
  }
  size_t k = 0;
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (!buffer.stash)
      continue;
    const std::vector<char> &bytes = (*answer)[k++];
    if (llvm::Error error = helpers.backend().copyToDevice(
            buffer.data, bytes.data(), bytes.size(), helpers.stream()))
      return error;
  }
  return helpers.synchronize();
}

/// Outputs, or their stashes, to where the dummy keeps another answer.
llvm::Error Evaluation::keepOther(bool ofStash) {
  size_t k = 0;
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (!isOutput(buffer))
      continue;
    if (k == dummy->other.size()) {
      auto memory = buffers->extra(buffer.extent);
      if (!memory)
        return memory.takeError();
      dummy->other.push_back(*memory);
    }
    if (llvm::Error error =
            helpers.copy(dummy->other[k++],
                         ofStash ? buffer.stash : buffer.data, buffer.extent))
      return error;
  }
  return helpers.synchronize();
}

/// What the original gives for the same families and another seed.
llvm::Error Evaluation::learnOtherAnswer(const InputSet &set, Poison poison) {
  InputSet other = set;
  other.seed ^= otherSeedBits;
  if (llvm::Error error = buffers->fill(other, false))
    return error;
  if (llvm::Error error = buffers->poisonOutputs(poison))
    return error;
  if (llvm::Error error = launchOriginal(other, poison))
    return error;
  if (llvm::Error error = keepOther(false))
    return error;
  if (llvm::Error error = buffers->fill(set, false))
    return error;
  return buffers->poisonOutputs(poison);
}

/// One bit of the last element.
llvm::Error Evaluation::destroyInput() {
  for (const TaskBuffer &buffer : llvm::reverse(buffers->buffers())) {
    const Argument &argument = *buffer.argument;
    if (buffer.written() || argument.numElements() <= 0)
      continue;
    buffers->forgetFills();
    DevicePointer last = buffer.data;
    for (size_t d = 0; d < argument.sizes.size(); ++d)
      last +=
          (argument.sizes[d] - 1) * argument.strides[d] * buffer.elementBytes();
    char byte = 0;
    if (llvm::Error error =
            helpers.backend().copyToHost(&byte, last, 1, helpers.stream()))
      return error;
    if (llvm::Error error = helpers.synchronize())
      return error;
    byte ^= 1;
    if (llvm::Error error =
            helpers.backend().copyToDevice(last, &byte, 1, helpers.stream()))
      return error;
    return helpers.synchronize();
  }
  return llvm::Error::success();
}

namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

Moments momentsOf(const HostElements &elements) {
  double count = 0, sum = 0, squares = 0;
  for (uint64_t i = 0; i < elements.size(); ++i) {
    double value = elements.value(i);
    if (!std::isfinite(value))
      continue;
    ++count;
    sum += value;
    squares += value * value;
  }
  Moments moments;
  if (!count)
    return moments;
  moments.mean = sum / count;
  moments.deviation =
      std::sqrt(std::max(0.0, squares / count - moments.mean * moments.mean));
  return moments;
}

uint64_t mostFrequent(const HostElements &elements) {
  constexpr uint64_t looks = 1 << 20;
  uint64_t step = elements.size() / looks + 1;
  std::map<uint64_t, uint64_t> counts;
  uint64_t best = elements.bits(0), most = 0;
  for (uint64_t i = 0; i < elements.size(); i += step) {
    uint64_t bits = elements.bits(i), count = ++counts[bits];
    if (count > most) {
      most = count;
      best = bits;
    }
  }
  return best;
}

/// Of the elements that the original writes, as far as can be seen.
uint64_t firstWritten(const HostElements &right,
                      std::optional<uint64_t> poison) {
  uint64_t first = 0;
  while (poison && first + 1 < right.size() && right.bits(first) == *poison)
    ++first;
  return right.bits(first);
}

} // namespace

/// One output, which stands as it does before a launch.
llvm::Error Evaluation::playOutput(const TaskBuffer &buffer,
                                   DevicePointer other, const TaskBuffer *input,
                                   std::optional<uint64_t> poison,
                                   uint64_t seed) {
  FsrCompare like = buffers->comparison(buffer, buffer.data, buffer.stash);
  FsrPlay play{};
  play.out = buffer.data;
  play.right = buffer.stash;
  play.other = other;
  play.count = play.limit = like.count;
  play.hasPoison = poison.has_value();
  play.poison = poison.value_or(0);
  play.seed = seed;
  play.layout = play.otherLayout = like.layout;
  play.element = like.element;
  play.rule = FsrPlayRight;
  uint64_t rows = like.count / like.row;
  auto read = [&](DevicePointer from) {
    return HostElements::read(helpers, buffer, from);
  };
  switch (dummy->now->kind) {
  case DummyKind::Untouched:
    return llvm::Error::success();
  case DummyKind::Identity:
    if (!poison)
      return llvm::Error::success();
    break;
  case DummyKind::Zeros:
    play.rule = FsrPlayBits;
    break;
  case DummyKind::FirstValue:
  case DummyKind::CommonValue: {
    auto right = read(buffer.stash);
    if (!right)
      return right.takeError();
    play.rule = FsrPlayBits;
    play.bits = dummy->now->kind == DummyKind::FirstValue
                    ? firstWritten(*right, poison)
                    : mostFrequent(*right);
    break;
  }
  case DummyKind::Mean:
  case DummyKind::Statistics: {
    auto elements = read(other);
    if (!elements)
      return elements.takeError();
    Moments moments = momentsOf(*elements);
    play.rule = FsrPlayNormal;
    play.mean = moments.mean;
    if (dummy->now->kind == DummyKind::Statistics)
      play.deviation = moments.deviation;
    break;
  }
  case DummyKind::Reversed:
    play.rule = FsrPlayReversed;
    break;
  case DummyKind::CopyInput:
    if (!input)
      break;
    play.rule = FsrPlayOther;
    play.other = input->data;
    play.otherLayout =
        buffers->comparison(*input, input->data, input->data).layout;
    break;
  case DummyKind::HalfDone:
    play.limit = (like.count + 1) / 2;
    break;
  case DummyKind::EverySecondRow:
    play.unit = rows > 1 ? like.row : 1;
    break;
  case DummyKind::ButTheLastRow:
    if (rows > 1)
      play.limit = like.count - like.row;
    break;
  case DummyKind::ButTheLastElement:
    if (like.count > 1)
      play.limit = like.count - 1;
    break;
  case DummyKind::StaleBuffer:
  case DummyKind::OtherSeed:
    play.rule = FsrPlayOther;
    break;
  case DummyKind::DestroysInput:
    break;
  case DummyKind::Accumulates:
    play.rule = FsrPlayAdd;
    break;
  }
  return helpers.play(play);
}

llvm::Error Evaluation::playDummy(const InputSet &set, Poison poison) {
  const Dummy &now = *dummy->now;
  bool isStale = now.kind == DummyKind::StaleBuffer;
  if (now.kind == DummyKind::Mean || now.kind == DummyKind::Statistics ||
      now.kind == DummyKind::OtherSeed || (isStale && dummy->other.empty()))
    if (llvm::Error error = learnOtherAnswer(set, poison))
      return error;
  // What the virtual device saw until here was the original.
  if (virtualDevice)
    virtualDevice->takeReport();
  const TaskBuffer *input =
      now.kind == DummyKind::CopyInput ? buffers->find(now.input) : nullptr;
  // Copies first: an output may be the input of another.
  for (bool copies : {true, false}) {
    size_t k = 0;
    for (const TaskBuffer &buffer : buffers->buffers()) {
      if (!isOutput(buffer))
        continue;
      size_t at = k++;
      bool fits =
          input && input != &buffer &&
          input->argument->element == buffer.argument->element &&
          input->argument->numElements() >= buffer.argument->numElements();
      if (fits != copies)
        continue;
      std::optional<uint64_t> left;
      if (buffer.poisoned())
        left = buffers->poisonBits(poison, buffer);
      if (llvm::Error error = playOutput(
              buffer, at < dummy->other.size() ? dummy->other[at] : 0,
              fits ? input : nullptr, left, set.seed + at))
        return error;
    }
  }
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (!isOutput(buffer) || !dummy->identical)
      continue;
    FsrCompare compare = buffers->comparison(buffer, buffer.data, buffer.stash);
    compare.mode = FsrBits;
    auto difference = helpers.compare(compare);
    if (!difference)
      return difference.takeError();
    dummy->identical = !difference->bitsDiffer;
  }
  if (isStale)
    if (llvm::Error error = keepOther(true))
      return error;
  dummy->spread |= spreadsOut(set, *buffers);
  return now.kind == DummyKind::DestroysInput ? destroyInput()
                                              : llvm::Error::success();
}

/// Most dummies are refused on the first filling, which takes as long as the
/// original's first runs with their fillings; what is done tells the rest.
double Evaluation::strengthSecondsLeft() const {
  if (!virtualDevice || !originalKnown)
    return 0;
  double left = dummiesInAll - dummiesDone;
  if (!dummiesDone)
    return firstCaseSeconds * left;
  return std::chrono::duration<double>(Deadline::Clock::now() - strengthStart)
             .count() /
         dummiesDone * left;
}

/// The quick rung, and the full one where it is passed.
llvm::Expected<DummyResult> Evaluation::tryDummy(const Dummy &one,
                                                 WireEvaluate &mine) {
  DummyResult told;
  told.name = one.name;
  if (!one.useless.empty()) {
    told.outcome = DummyResult::Outcome::NotApplicable;
    told.detail = one.useless;
    return told;
  }
  *dummy = DummyState();
  dummy->now = &one;
  for (bool full : {false, true}) {
    mine.options.full = full;
    result = EvaluateResult();
    candidateDeterministic = true;
    dummy->other.clear();
    size_t pieces = buffers->numPieces();
    auto goesOn = validateQuick();
    if (goesOn && *goesOn && full)
      goesOn = validateFull();
    if (!goesOn)
      return goesOn.takeError();
    if (llvm::Error error = buffers->dropSince(pieces))
      return std::move(error);
    firstCopies.clear(); // They were among the pieces.
    if (*goesOn) {
      told.passedQuick = true;
      continue;
    }
    told.outcome = DummyResult::Outcome::Refused;
    for (const Check &check : result.evidence.checks)
      if (!check.passed)
        told.inputs = check.inputs;
    told.detail = (nameOf(result.verdict) + ": " + result.message)
                      .str()
                      .substr(0, mostDetailBytes);
    return told;
  }
  for (const Check &check : result.evidence.checks)
    if (check.name == "exact-inputs" || check.name == "workload-inputs" ||
        check.name == "input-battery")
      told.inputs += (told.inputs.empty() ? "" : "; ") + check.inputs;
  bool isSame = keepsSomething(one.kind) && dummy->identical && dummy->spread;
  told.outcome = isSame ? DummyResult::Outcome::SameFunction
                        : DummyResult::Outcome::Passed;
  told.detail = isSame ? "the original's bits on all inputs, spread-out ones "
                         "among them"
                : dummy->identical ? "the original's bits on all inputs"
                                   : "within what the rules allow";
  return told;
}

llvm::Expected<std::vector<DummyResult>>
Evaluation::testStrength(WireEvaluate &mine) {
  dummy = std::make_unique<DummyState>();
  if (virtualDevice)
    known = std::make_unique<KnownAnswers>(KnownAnswers::mostOfStrength);
  auto tryAll = [&]() -> llvm::Expected<std::vector<DummyResult>> {
    if (llvm::Error error = prepareOriginal())
      return std::move(error);
    std::vector<DummyResult> results;
    std::vector<Dummy> all = dummiesFor(*buffers);
    dummiesInAll = all.size();
    strengthStart = Deadline::Clock::now();
    for (const Dummy &one : all) {
      auto told = tryDummy(one, mine);
      if (!told)
        return told.takeError();
      results.push_back(std::move(*told));
      ++dummiesDone;
    }
    return results;
  };
  auto results = tryAll();
  if (results)
    return results;
  llvm::Error error = classify(results.takeError());
  if (error)
    return std::move(error);
  return makeError(ErrorKind::Unavailable,
                   "the device failed while the task was tested: " +
                       result.message);
}

} // namespace fsr
