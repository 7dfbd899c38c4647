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

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#define FSR_DEVICE [[maybe_unused]] static inline
#include "kernels/elements.inl"

namespace fsr {

namespace {

constexpr size_t mostCopies = 16;
constexpr size_t mostDetailBytes = 300;
/// For a dummy's passes over the outputs on the host.
constexpr double hostBytesPerMs = 1e5;
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
  elements.bytes.resize(buffer.extent);
  if (llvm::Error error = helpers.backend().copyToHost(
          elements.bytes.data(), from, buffer.extent, helpers.stream()))
    return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  return elements;
}

llvm::Error HostElements::write(Helpers &helpers, DevicePointer to) const {
  if (llvm::Error error = helpers.backend().copyToDevice(
          to, bytes.data(), bytes.size(), helpers.stream()))
    return error;
  return helpers.synchronize();
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

void HostElements::setBits(uint64_t i, uint64_t bits) {
  unsigned size = of->elementBytes();
  std::memcpy(bytes.data() + offset(i) * size, &bits, size);
}

double HostElements::value(uint64_t i) const {
  uint64_t raw = bits(i);
  ElementType type = of->argument->element;
  if (isFloat(type))
    return fsrToDouble(raw, static_cast<uint32_t>(type));
  unsigned unused = 64 - 8 * of->elementBytes();
  return double(int64_t(raw << unused) >> unused);
}

void HostElements::setValue(uint64_t i, double value) {
  ElementType type = of->argument->element;
  if (isFloat(type))
    return setBits(i, fsrFromDouble(value, static_cast<uint32_t>(type)));
  if (type == ElementType::I1)
    return setBits(i, value >= 0.5);
  double most = std::ldexp(1.0, 8 * int(of->elementBytes()) - 1);
  if (std::isnan(value))
    value = 0;
  // The largest double below 2^63 is what a 64-bit integer can take.
  value = std::clamp(std::nearbyint(value), -most, std::nextafter(most, 0.0));
  setBits(i, uint64_t(int64_t(value)));
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

double Evaluation::dummySlackMs() const {
  return dummy && buffers ? double(buffers->totalBytes()) / hostBytesPerMs : 0;
}

llvm::Expected<std::vector<HostElements>> Evaluation::readOutputs(bool stash) {
  std::vector<HostElements> all;
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (!isOutput(buffer))
      continue;
    auto elements =
        HostElements::read(helpers, buffer, stash ? buffer.stash : buffer.data);
    if (!elements)
      return elements.takeError();
    all.push_back(std::move(*elements));
  }
  return std::move(all);
}

/// What the original gives for the same families and another seed.
llvm::Error Evaluation::learnOtherAnswer(const InputSet &set, Poison poison) {
  InputSet other = set;
  other.seed ^= otherSeedBits;
  if (llvm::Error error = buffers->fill(other, false))
    return error;
  if (llvm::Error error = buffers->poisonOutputs(poison))
    return error;
  if (llvm::Error error = launch(Who::Original))
    return error;
  auto answer = readOutputs(false);
  if (!answer)
    return answer.takeError();
  dummy->other = std::move(*answer);
  if (llvm::Error error = buffers->fill(set, false))
    return error;
  return buffers->poisonOutputs(poison);
}

llvm::Error Evaluation::destroyInput() {
  for (const TaskBuffer &buffer : llvm::reverse(buffers->buffers())) {
    if (buffer.written() || buffer.argument->numElements() <= 0)
      continue;
    auto elements = HostElements::read(helpers, buffer, buffer.data);
    if (!elements)
      return elements.takeError();
    uint64_t last = elements->size() - 1;
    elements->setBits(last, elements->bits(last) ^ 1);
    return elements->write(helpers, buffer.data);
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

/// Where one output of a dummy gets its elements from.
struct OutputPlay {
  const Dummy &dummy;
  uint64_t seed;              ///< Of the statistics' random numbers.
  HostElements &out;          ///< As it stands before a launch.
  const HostElements &right;  ///< The original's answer.
  const HostElements *other;  ///< Of other inputs, or of the launch before.
  const HostElements *copied; ///< CopyInput.
  std::optional<uint64_t> poison;

  /// The original writes this element, as far as can be seen.
  bool written(uint64_t i) const { return !poison || right.bits(i) != *poison; }
  template <typename Bits>
  void each(Bits bitsOf) {
    for (uint64_t i = 0; i < out.size(); ++i)
      if (written(i))
        out.setBits(i, bitsOf(i));
  }
  void rightWhere(llvm::function_ref<bool(uint64_t)> isDone) {
    for (uint64_t i = 0; i < out.size(); ++i)
      if (isDone(i))
        out.setBits(i, right.bits(i));
  }
  void play();
};

void OutputPlay::play() {
  uint64_t count = out.size(), row = out.row(), rows = out.rows();
  switch (dummy.kind) {
  case DummyKind::Untouched:
    return;
  case DummyKind::Identity:
    if (poison)
      rightWhere([](uint64_t) { return true; });
    return;
  case DummyKind::Zeros:
    return each([](uint64_t) { return uint64_t(0); });
  case DummyKind::FirstValue: {
    uint64_t first = 0;
    while (first + 1 < count && !written(first))
      ++first;
    uint64_t bits = right.bits(first);
    return each([&](uint64_t) { return bits; });
  }
  case DummyKind::CommonValue: {
    uint64_t bits = mostFrequent(right);
    return each([&](uint64_t) { return bits; });
  }
  case DummyKind::Mean: {
    double mean = momentsOf(*other).mean;
    for (uint64_t i = 0; i < count; ++i)
      if (written(i))
        out.setValue(i, mean);
    return;
  }
  case DummyKind::Statistics: {
    Moments moments = momentsOf(*other);
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    for (uint64_t i = 0; i < count; ++i)
      if (written(i))
        out.setValue(i, moments.mean + moments.deviation * normal(random));
    return;
  }
  case DummyKind::Reversed:
    for (uint64_t i = 0; i < count; ++i)
      if (written(i) && written(count - 1 - i))
        out.setBits(i, right.bits(count - 1 - i));
    return;
  case DummyKind::CopyInput:
    if (copied)
      return each([&](uint64_t i) { return copied->bits(i); });
    return rightWhere([](uint64_t) { return true; });
  case DummyKind::HalfDone:
    return rightWhere([&](uint64_t i) { return i < (count + 1) / 2; });
  case DummyKind::EverySecondRow:
    return rightWhere(
        [&](uint64_t i) { return (rows > 1 ? i / row : i) % 2 == 0; });
  case DummyKind::ButTheLastRow:
    return rightWhere(
        [&](uint64_t i) { return rows < 2 || i / row != rows - 1; });
  case DummyKind::ButTheLastElement:
    return rightWhere([&](uint64_t i) { return count < 2 || i != count - 1; });
  case DummyKind::StaleBuffer:
  case DummyKind::OtherSeed:
    return each([&](uint64_t i) { return other->bits(i); });
  case DummyKind::DestroysInput:
    return rightWhere([](uint64_t) { return true; });
  case DummyKind::Accumulates:
    for (uint64_t i = 0; i < count; ++i) {
      if (!written(i))
        continue;
      if (isFloat(out.buffer().argument->element))
        out.setValue(i, out.value(i) + right.value(i));
      else
        out.setBits(i, out.bits(i) + right.bits(i));
    }
    return;
  }
}

} // namespace

llvm::Error Evaluation::playDummy(const InputSet &set, Poison poison) {
  const Dummy &now = *dummy->now;
  if (now.kind == DummyKind::Mean || now.kind == DummyKind::Statistics ||
      now.kind == DummyKind::OtherSeed ||
      (now.kind == DummyKind::StaleBuffer && dummy->kept.empty()))
    if (llvm::Error error = learnOtherAnswer(set, poison))
      return error;
  // What the virtual device saw until here was the original.
  if (virtualDevice)
    virtualDevice->takeReport();
  if (llvm::Error error = buffers->maskStashes(maskKey))
    return error;
  auto right = readOutputs(true);
  if (!right)
    return right.takeError();
  if (llvm::Error error = buffers->maskStashes(maskKey))
    return error;
  auto outputs = readOutputs(false);
  if (!outputs)
    return outputs.takeError();
  std::optional<HostElements> input;
  if (now.kind == DummyKind::CopyInput) {
    const TaskBuffer &from = *buffers->find(now.input);
    auto read = HostElements::read(helpers, from, from.data);
    if (!read)
      return read.takeError();
    input = std::move(*read);
  }
  bool isStale = now.kind == DummyKind::StaleBuffer && !dummy->kept.empty();
  for (size_t k = 0; k < outputs->size(); ++k) {
    HostElements &out = (*outputs)[k];
    const HostElements &answer = (*right)[k];
    const TaskBuffer &buffer = out.buffer();
    bool copies =
        input && &input->buffer() != &buffer &&
        input->buffer().argument->element == buffer.argument->element &&
        input->size() >= out.size();
    std::optional<uint64_t> left;
    if (buffer.poisoned())
      left = buffers->poisonBits(poison, buffer);
    OutputPlay play{now,
                    set.seed + k,
                    out,
                    answer,
                    isStale                ? &dummy->kept[k]
                    : dummy->other.empty() ? nullptr
                                           : &dummy->other[k],
                    copies ? &*input : nullptr,
                    left};
    play.play();
    for (uint64_t i = 0; dummy->identical && i < out.size(); ++i)
      dummy->identical = out.bits(i) == answer.bits(i);
    if (llvm::Error error = out.write(helpers, buffer.data))
      return error;
  }
  dummy->spread |= spreadsOut(set, *buffers);
  dummy->kept = std::move(*right);
  dummy->other.clear();
  return now.kind == DummyKind::DestroysInput ? destroyInput()
                                              : llvm::Error::success();
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
    dummy->kept.clear();
    size_t pieces = buffers->numPieces();
    auto goesOn = validateQuick();
    if (goesOn && *goesOn && full)
      goesOn = validateFull();
    if (!goesOn)
      return goesOn.takeError();
    if (llvm::Error error = buffers->dropSince(pieces))
      return std::move(error);
    noiseMaxima = 0; // It may have been one of the pieces.
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
  auto tryAll = [&]() -> llvm::Expected<std::vector<DummyResult>> {
    if (llvm::Error error = prepareOriginal())
      return std::move(error);
    std::vector<DummyResult> results;
    for (const Dummy &one : dummiesFor(*buffers)) {
      auto told = tryDummy(one, mine);
      if (!told)
        return told.takeError();
      results.push_back(std::move(*told));
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
