// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches of the helper kernels. Every kernel strides over its items, so the
// grid is as large as fills the device and no larger.
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"

#include "HostHelpers.h"

#include "fsr/Core/Statistics.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cstring>

namespace fsr {

namespace {
constexpr unsigned threadsPerBlock = 256;
constexpr uint32_t guardWord = 0xA5C3E17Bu;

constexpr const char *kernelNames[] = {
    "fsr_fill",  "fsr_poison", "fsr_guard_set",   "fsr_guard_check",
    "fsr_hash",  "fsr_mask",   "fsr_row_maximum", "fsr_compare",
    "fsr_play",  "fsr_widen",  "fsr_row_error",   "fsr_judge",
    "fsr_flush", "fsr_spin",   "fsr_stamp"};

uint64_t stampSlots(const BackendProperties &facts) {
  // Numbers of multiprocessors need not be without gaps.
  uint64_t present = uint64_t(std::max<int64_t>(facts.multiprocessors, 1));
  return std::min<uint64_t>(present + 64, 1024);
}
constexpr uint64_t spinBytes = (sizeof(FsrSpin) + 63) / 64 * 64;
} // namespace

llvm::StringRef helpersPtx() {
  static const char text[] =
#include "HelpersPtx.inc"
      ;
  return llvm::StringRef(text, sizeof(text) - 1);
}

std::optional<FsrFamily> familyCode(llvm::StringRef family) {
  int code = llvm::StringSwitch<int>(family)
                 .Case("normal", FsrNormal)
                 .Case("uniform", FsrUniform)
                 .Case("loguniform", FsrLogUniform)
                 .Case("bernoulli", FsrBernoulli)
                 .Case("signs", FsrSigns)
                 .Case("integers", FsrIntegers)
                 .Case("equal", FsrEqual)
                 .Case("onehot", FsrOneHot)
                 .Case("alternating", FsrAlternating)
                 .Case("zeros", FsrZeros)
                 .Case("denormal", FsrDenormal)
                 .Case("iota", FsrIota)
                 .Case("tails", FsrTails)
                 .Case("spike", FsrSpike)
                 .Case("shiftednormal", FsrShiftedNormal)
                 .Case("shifteduniform", FsrShiftedUniform)
                 .Case("sines", FsrSines)
                 .Case("zipf", FsrZipf)
                 .Case("sorted", FsrSorted)
                 .Case("reversed", FsrReversed)
                 .Case("gram", FsrGram)
                 .Case("specials", FsrSpecials)
                 .Case("peaks", FsrPeaks)
                 .Case("masked", FsrMasked)
                 .Case("scaled", FsrScaled)
                 .Case("dominated", FsrDominated)
                 .Default(-1);
  if (code < 0)
    return std::nullopt;
  return static_cast<FsrFamily>(code);
}

llvm::Expected<std::unique_ptr<Helpers>> Helpers::create(Backend &backend,
                                                         bool asKernels) {
  std::unique_ptr<Helpers> helpers(new Helpers(backend));
  helpers->runsOnHost = !asKernels;
  auto facts = backend.properties();
  if (!facts)
    return facts.takeError();
  helpers->facts = *facts;
  auto stream = backend.createStream();
  if (!stream)
    return stream.takeError();
  helpers->queue = *stream;
  auto module = backend.loadModule(helpersPtx());
  if (!module)
    return addContext(module.takeError(), "cannot load the helper kernels");
  helpers->module = *module;
  for (unsigned i = 0; i < NumKernels; ++i) {
    auto function = backend.function(helpers->module, kernelNames[i]);
    if (!function)
      return function.takeError();
    helpers->functions[i] = *function;
  }
  uint64_t slots = stampSlots(helpers->facts);
  auto memory =
      backend.allocate(256 + spinBytes + 2 * slots * sizeof(FsrStamp));
  if (!memory)
    return memory.takeError();
  helpers->result = *memory;
  helpers->clocks = *memory + 256;
  if (llvm::Error error = helpers->clear(
          helpers->clocks, spinBytes + 2 * slots * sizeof(FsrStamp)))
    return std::move(error);
  return helpers;
}

Helpers::~Helpers() {
  // In a dead context these fail, and the process is about to end.
  if (result)
    llvm::consumeError(device.release(result));
  if (module)
    llvm::consumeError(device.unloadModule(module));
  if (queue)
    llvm::consumeError(device.destroyStream(queue));
}

llvm::Error Helpers::launch(Kernel kernel, uint64_t items,
                            llvm::ArrayRef<void *> params) {
  if (items == 0)
    return llvm::Error::success();
  if (VirtualDevice *onHost = runsOnHost ? device.virtualDevice() : nullptr)
    if (auto done = runHelperOnHost(*onHost, kernelNames[kernel], params))
      return std::move(*done);
  uint64_t blocks = (items + threadsPerBlock - 1) / threadsPerBlock;
  uint64_t most = std::max<int64_t>(1, facts.multiprocessors) * 16;
  BackendLaunch launch;
  launch.function = functions[kernel];
  launch.name = kernelNames[kernel];
  launch.grid[0] = std::min(blocks, most);
  launch.block[0] = kernel == Spin || kernel == Stamp ? 1 : threadsPerBlock;
  launch.stream = queue;
  launch.params = params;
  launch.isTrusted = true;
  return device.launch(launch);
}

llvm::Error Helpers::readResult(void *to, size_t bytes) {
  if (llvm::Error error = device.copyToHost(to, result, bytes, queue))
    return error;
  return device.synchronize(queue);
}

llvm::Error Helpers::fill(const FsrFill &fill) {
  FsrFill copy = fill;
  return launch(Fill, fill.count, {&copy});
}

llvm::Error Helpers::poison(DevicePointer to, uint64_t count,
                            unsigned elementBytes, uint64_t bits) {
  return launch(Poison, count, {&to, &count, &elementBytes, &bits});
}

llvm::Error Helpers::setGuard(DevicePointer from, uint64_t bytes) {
  uint32_t word = guardWord;
  return launch(GuardSet, bytes, {&from, &bytes, &word});
}

llvm::Expected<ZoneDamage> Helpers::checkGuard(DevicePointer from,
                                               uint64_t bytes) {
  uint64_t answer[3] = {0, ~uint64_t(0), 0};
  if (llvm::Error error =
          device.copyToDevice(result, answer, sizeof(answer), queue))
    return std::move(error);
  uint32_t word = guardWord;
  if (llvm::Error error =
          launch(GuardCheck, bytes, {&from, &bytes, &word, &result}))
    return std::move(error);
  if (llvm::Error error = readResult(answer, sizeof(answer)))
    return std::move(error);
  return ZoneDamage{answer[0], answer[1], answer[2]};
}

llvm::Expected<uint64_t> Helpers::hash(DevicePointer from, uint64_t count,
                                       unsigned elementBytes) {
  if (llvm::Error error = clear(result, 8))
    return std::move(error);
  if (llvm::Error error =
          launch(Hash, count, {&from, &count, &elementBytes, &result}))
    return std::move(error);
  uint64_t answer = 0;
  if (llvm::Error error = readResult(&answer, sizeof(answer)))
    return std::move(error);
  return answer;
}

llvm::Error Helpers::mask(DevicePointer at, uint64_t bytes, uint64_t key) {
  uint64_t blocks = (bytes + 15) / 16;
  return launch(Mask, blocks, {&at, &blocks, &key});
}

llvm::Error Helpers::rowMaximum(FsrCompare compare, DevicePointer maximum,
                                bool isMore) {
  if (compare.count == 0)
    return llvm::Error::success();
  compare.rowMaximum = maximum;
  if (!isMore)
    if (llvm::Error error = clear(maximum, compare.count / compare.row * 8))
      return error;
  uint64_t segments = (compare.row + 4095) / 4096;
  return launch(RowMaximum, compare.count / compare.row * segments * 32,
                {&compare});
}

llvm::Expected<FsrDifference> Helpers::compare(FsrCompare compare) {
  FsrDifference answer{};
  answer.first = ~uint64_t(0);
  compare.result = result;
  if (llvm::Error error =
          device.copyToDevice(result, &answer, sizeof(answer), queue))
    return std::move(error);
  if (llvm::Error error = launch(Compare, compare.count, {&compare}))
    return std::move(error);
  if (llvm::Error error = readResult(&answer, sizeof(answer)))
    return std::move(error);
  return answer;
}

llvm::Error Helpers::play(const FsrPlay &play) {
  FsrPlay copy = play;
  return launch(Play, play.count, {&copy});
}

llvm::Error Helpers::widen(DevicePointer to, DevicePointer from, uint64_t count,
                           ElementType element) {
  uint32_t code = static_cast<uint32_t>(element);
  return launch(Widen, count, {&to, &from, &count, &code});
}

llvm::Expected<FsrJudgement> Helpers::judge(FsrJudge judge) {
  FsrJudgement answer{};
  answer.first = ~uint64_t(0);
  if (judge.count == 0)
    return answer;
  uint64_t rows = judge.count / judge.row;
  FsrCompare truth{};
  truth.reference = judge.truth;
  truth.count = judge.count;
  truth.row = judge.row;
  truth.layout = judge.layout;
  truth.element = FsrF64;
  if (llvm::Error error = rowMaximum(truth, judge.rowTruth))
    return std::move(error);
  if (llvm::Error error = clear(judge.rowError, rows * 8))
    return std::move(error);
  uint64_t segments = (judge.row + 4095) / 4096;
  if (llvm::Error error = launch(RowError, rows * segments * 32, {&judge}))
    return std::move(error);
  judge.result = result;
  if (llvm::Error error =
          device.copyToDevice(result, &answer, sizeof(answer), queue))
    return std::move(error);
  if (llvm::Error error = launch(Judge, judge.count, {&judge}))
    return std::move(error);
  if (llvm::Error error = readResult(&answer, sizeof(answer)))
    return std::move(error);
  return answer;
}

llvm::Error Helpers::flush(DevicePointer to, uint64_t bytes, uint32_t value) {
  uint64_t words = bytes / 4;
  return launch(Flush, words, {&to, &words, &value});
}

llvm::Error Helpers::spin(double microseconds) {
  uint64_t nanos = std::max(0.0, microseconds * 1000);
  ++turn;
  return launch(Spin, 1, {&nanos, &clocks});
}

llvm::Error Helpers::stamp(bool after) {
  uint64_t slots = stampSlots(facts);
  DevicePointer to =
      clocks + spinBytes + (after ? slots * sizeof(FsrStamp) : 0);
  uint64_t blocks = std::max<int64_t>(1, facts.multiprocessors);
  return launch(Stamp, blocks * threadsPerBlock, {&to, &slots, &turn});
}

llvm::Expected<ClockReading> Helpers::clockReading() {
  uint64_t slots = stampSlots(facts);
  std::vector<FsrStamp> stamps(2 * slots);
  std::vector<char> bytes(spinBytes + stamps.size() * sizeof(FsrStamp));
  if (llvm::Error error =
          device.copyToHost(bytes.data(), clocks, bytes.size(), queue))
    return std::move(error);
  if (llvm::Error error = synchronize())
    return std::move(error);
  FsrSpin spin;
  memcpy(&spin, bytes.data(), sizeof(spin));
  memcpy(stamps.data(), bytes.data() + spinBytes,
         stamps.size() * sizeof(FsrStamp));
  llvm::ArrayRef<FsrStamp> before = llvm::ArrayRef(stamps).take_front(slots);
  llvm::ArrayRef<FsrStamp> after = llvm::ArrayRef(stamps).drop_front(slots);

  ClockReading reading;
  // Both clocks stand at a step of the nanoseconds at either end.
  if (spin.multiprocessor < slots) {
    const FsrStamp &end = after[spin.multiprocessor];
    if (end.turn == turn && end.nanos > spin.nanos && end.clock > spin.clock)
      reading.clockMhz = double(end.clock - spin.clock) /
                         double(end.nanos - spin.nanos) * 1000;
  }
  if (reading.clockMhz == 0 && spin.passed)
    reading.clockMhz = double(spin.clocks) / double(spin.passed) * 1000;
  // Clocks of two multiprocessors are never compared.
  std::vector<double> cycles;
  for (uint64_t i = 0; i < slots; ++i)
    if (before[i].turn == turn && after[i].turn == turn &&
        after[i].first > before[i].clock)
      cycles.push_back(double(after[i].first - before[i].clock));
  if (!cycles.empty())
    reading.cycles = median(cycles);
  return reading;
}

llvm::Error Helpers::copy(DevicePointer to, DevicePointer from,
                          uint64_t bytes) {
  if (bytes == 0)
    return llvm::Error::success();
  return device.copyAny(reinterpret_cast<void *>(to),
                        reinterpret_cast<const void *>(from), bytes, queue);
}

llvm::Error Helpers::clear(DevicePointer at, uint64_t bytes) {
  if (bytes == 0)
    return llvm::Error::success();
  return device.fill8(at, 0, bytes, queue);
}

llvm::Error Helpers::synchronize() { return device.synchronize(queue); }

} // namespace fsr
