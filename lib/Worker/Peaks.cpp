// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The test by which a GPU's own rates become known.
//
//===----------------------------------------------------------------------===//

#include "Peaks.h"

#include "Launch.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <algorithm>

namespace fsr {

namespace {

constexpr char kernels[] =
#include "PeaksPtx.inc"
    ;

constexpr unsigned threadsPerBlock = 256, blocksPerMultiprocessor = 8;
constexpr uint64_t leastCopyBytes = uint64_t(64) << 20,
                   mostCopyBytes = uint64_t(1) << 30;
constexpr unsigned repeats = 5;
/// As in peaks.cu, a thread and round.
constexpr double flopsOfRound = 2 * 128;
constexpr unsigned firstRounds = 256, mostRounds = 1u << 20;
constexpr double fmaMs = 10; ///< Of one launch, after the first.

class PeakTest {
public:
  explicit PeakTest(Helpers &helpers)
      : helpers(helpers), backend(helpers.backend()) {}
  ~PeakTest();
  llvm::Expected<DevicePeaks> run();

private:
  llvm::Error prepare();
  llvm::Expected<DevicePointer> allocate(uint64_t bytes);
  /// Milliseconds of one launch.
  llvm::Expected<double> time(FunctionHandle function, llvm::StringRef name,
                              llvm::ArrayRef<void *> params);
  llvm::Expected<double> copyRate();
  llvm::Expected<double> flopRate();
  unsigned blocks() const {
    return unsigned(
               std::max<int64_t>(1, helpers.properties().multiprocessors)) *
           blocksPerMultiprocessor;
  }

  Helpers &helpers;
  Backend &backend;
  std::unique_ptr<LoadedImage> image;
  std::vector<DevicePointer> memory;
  EventHandle start = nullptr, stop = nullptr;
};

PeakTest::~PeakTest() {
  for (DevicePointer pointer : memory)
    llvm::consumeError(backend.release(pointer));
  for (EventHandle event : {start, stop})
    if (event)
      llvm::consumeError(backend.destroyEvent(event));
}

llvm::Error PeakTest::prepare() {
  auto loaded = LoadedImage::load(backend, peaksPtx());
  if (!loaded)
    return loaded.takeError();
  image = std::move(*loaded);
  for (EventHandle *event : {&start, &stop}) {
    auto made = backend.createEvent(/*timing=*/true);
    if (!made)
      return made.takeError();
    *event = *made;
  }
  return llvm::Error::success();
}

llvm::Expected<DevicePointer> PeakTest::allocate(uint64_t bytes) {
  auto pointer = backend.allocate(bytes);
  if (!pointer)
    return pointer.takeError();
  memory.push_back(*pointer);
  if (llvm::Error error = helpers.clear(*pointer, bytes))
    return std::move(error);
  return *pointer;
}

llvm::Expected<double> PeakTest::time(FunctionHandle function,
                                      llvm::StringRef name,
                                      llvm::ArrayRef<void *> params) {
  BackendLaunch launch;
  launch.function = function;
  launch.name = name;
  launch.grid[0] = blocks();
  launch.block[0] = threadsPerBlock;
  launch.stream = helpers.stream();
  launch.params = params;
  launch.isTrusted = true;
  if (llvm::Error error = backend.record(start, helpers.stream()))
    return std::move(error);
  if (llvm::Error error = backend.launch(launch))
    return std::move(error);
  if (llvm::Error error = backend.record(stop, helpers.stream()))
    return std::move(error);
  if (llvm::Error error = backend.synchronizeEvent(stop))
    return std::move(error);
  auto elapsed = backend.elapsedMs(start, stop);
  if (elapsed && !(*elapsed > 0))
    return makeError(ErrorKind::Unavailable,
                     "a launch of '" + name + "' took no time");
  return elapsed;
}

llvm::Expected<double> PeakTest::copyRate() {
  auto free = backend.freeMemory();
  if (!free)
    return free.takeError();
  uint64_t l2 = uint64_t(std::max<int64_t>(0, helpers.properties().l2Bytes));
  uint64_t bytes = std::clamp(4 * l2, leastCopyBytes, mostCopyBytes);
  if (*free / 4 < bytes)
    return makeError(ErrorKind::Unavailable, "too little memory is free");
  auto function = image->function("fsrPeakCopy");
  if (!function)
    return function.takeError();
  auto from = allocate(bytes);
  if (!from)
    return from.takeError();
  auto to = allocate(bytes);
  if (!to)
    return to.takeError();
  uint64_t count = bytes / 16;
  double best = 0;
  for (unsigned i = 0; i <= repeats; ++i) {
    auto took = time(*function, "fsrPeakCopy", {&*to, &*from, &count});
    if (!took)
      return took.takeError();
    if (i > 0) // The first one warms up.
      best = std::max(best, 2 * double(bytes) / (*took / 1000));
  }
  return best;
}

llvm::Expected<double> PeakTest::flopRate() {
  auto function = image->function("fsrPeakFma");
  if (!function)
    return function.takeError();
  double threads = double(blocks()) * threadsPerBlock;
  auto to = allocate(uint64_t(threads) * 4);
  if (!to)
    return to.takeError();
  unsigned rounds = firstRounds;
  // Neither overflow nor denormals.
  float factor = 0.5f, term = 1.0f;
  double best = 0;
  for (unsigned i = 0; i <= repeats; ++i) {
    auto took = time(*function, "fsrPeakFma", {&*to, &rounds, &factor, &term});
    if (!took)
      return took.takeError();
    if (i == 0) {
      rounds = unsigned(
          std::clamp(rounds * fmaMs / *took, 16.0, double(mostRounds)));
      continue;
    }
    best = std::max(best, threads * rounds * flopsOfRound / (*took / 1000));
  }
  return best;
}

llvm::Expected<DevicePeaks> PeakTest::run() {
  if (llvm::Error error = prepare())
    return std::move(error);
  DevicePeaks peaks;
  auto rate = copyRate();
  if (!rate)
    return rate.takeError();
  peaks.copyBytesPerSecond = *rate;
  rate = flopRate();
  if (!rate)
    return rate.takeError();
  peaks.flopsPerSecond = *rate;
  return peaks;
}

} // namespace

llvm::StringRef peaksPtx() { return kernels; }

llvm::Expected<DevicePeaks> measurePeaks(Helpers &helpers) {
  if (helpers.properties().isVirtual)
    return makeError(ErrorKind::Unsupported,
                     "a virtual device has no speed of its own");
  return PeakTest(helpers).run();
}

} // namespace fsr
