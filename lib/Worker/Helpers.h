// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The helper kernels on one device: made once a process, used by every
// evaluation. All run on the one stream of this object, and so do the kernels
// under test, so that order on the stream is order in time.
//
// A call that returns something waits for the stream; the others only queue.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_HELPERS_H
#define FSR_LIB_WORKER_HELPERS_H

#include "TimingSession.h"
#include "kernels/abi.h"

#include "fsr/Backend/Backend.h"
#include "fsr/Core/KernelTask.h"

namespace fsr {

/// Changed bytes of a zone.
struct ZoneDamage {
  uint64_t changed = 0;
  uint64_t first = 0, last = 0; ///< Offsets into the zone.
};

/// What the multiprocessors' own clocks tell of a sample; 0: not known.
struct ClockReading {
  double clockMhz = 0; ///< From the hold to the second stamp.
  double cycles = 0;   ///< Between the stamps.
};

class Helpers {
public:
  /// On a virtual device the host does the helpers' work in its memory, with
  /// the same results; `asKernels`: kernels do, as on a GPU.
  static llvm::Expected<std::unique_ptr<Helpers>>
  create(Backend &backend, bool asKernels = false);
  ~Helpers();
  Helpers(const Helpers &) = delete;
  Helpers &operator=(const Helpers &) = delete;

  Backend &backend() { return device; }
  StreamHandle stream() const { return queue; }
  const BackendProperties &properties() const { return facts; }
  TimingSession &timing() { return session; }

  llvm::Error fill(const FsrFill &fill);
  llvm::Error poison(DevicePointer to, uint64_t count, unsigned elementBytes,
                     uint64_t bits);
  llvm::Error setGuard(DevicePointer from, uint64_t bytes);
  llvm::Expected<ZoneDamage> checkGuard(DevicePointer from, uint64_t bytes);
  llvm::Expected<uint64_t> hash(DevicePointer from, uint64_t count,
                                unsigned elementBytes);
  /// `bytes` is rounded up to 16, and `at` aligned to 16.
  llvm::Error mask(DevicePointer at, uint64_t bytes, uint64_t key);
  /// Into `maximum`, a double a row. It is cleared here; with `isMore` what
  /// stands there counts as well.
  llvm::Error rowMaximum(FsrCompare compare, DevicePointer maximum,
                         bool isMore = false);
  llvm::Expected<FsrDifference> compare(FsrCompare compare);
  llvm::Error play(const FsrPlay &play);
  /// Elements to doubles; `to` is aligned to 8.
  llvm::Error widen(DevicePointer to, DevicePointer from, uint64_t count,
                    ElementType element);
  /// Fills in `rowTruth` and `rowError`, a double a row each.
  llvm::Expected<FsrJudgement> judge(FsrJudge judge);
  llvm::Error flush(DevicePointer to, uint64_t bytes, uint32_t value);
  llvm::Error spin(double microseconds);
  /// Reads the clocks of all multiprocessors; `after` what is timed, or before.
  llvm::Error stamp(bool after);
  /// Of the last `spin` and the stamps since. What was queued is waited for.
  llvm::Expected<ClockReading> clockReading();
  llvm::Error copy(DevicePointer to, DevicePointer from, uint64_t bytes);
  llvm::Error clear(DevicePointer at, uint64_t bytes);
  llvm::Error synchronize();

private:
  explicit Helpers(Backend &backend) : device(backend) {}
  bool runsOnHost = true;
  enum Kernel {
    Fill,
    Poison,
    GuardSet,
    GuardCheck,
    Hash,
    Mask,
    RowMaximum,
    Compare,
    Play,
    Widen,
    RowError,
    Judge,
    Flush,
    Spin,
    Stamp,
    NumKernels
  };
  llvm::Error launch(Kernel kernel, uint64_t items,
                     llvm::ArrayRef<void *> params);
  llvm::Error readResult(void *to, size_t bytes);

  Backend &device;
  BackendProperties facts;
  TimingSession session;
  StreamHandle queue = nullptr;
  ModuleHandle module = nullptr;
  std::array<FunctionHandle, NumKernels> functions{};
  DevicePointer result = 0; ///< 128 bytes.
  /// A spin's result, and the slots of both stamps; outlives other results.
  DevicePointer clocks = 0;
  uint64_t turn = 0; ///< Of the stamps.
};

/// The code of a fill family for the kernels; nothing for an unknown one.
std::optional<FsrFamily> familyCode(llvm::StringRef family);

/// PTX of the helper kernels, as committed.
llvm::StringRef helpersPtx();

} // namespace fsr

#endif // FSR_LIB_WORKER_HELPERS_H
