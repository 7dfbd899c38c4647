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

#include "kernels/abi.h"

#include "fsr/Backend/Backend.h"
#include "fsr/Core/KernelTask.h"

#include <chrono>
#include <optional>

namespace fsr {

/// Changed bytes of a zone.
struct ZoneDamage {
  uint64_t changed = 0;
  uint64_t first = 0, last = 0; ///< Offsets into the zone.
};

struct SpinReading {
  double clockMhz = 0;
};

class Helpers {
public:
  static llvm::Expected<std::unique_ptr<Helpers>> create(Backend &backend);
  ~Helpers();
  Helpers(const Helpers &) = delete;
  Helpers &operator=(const Helpers &) = delete;

  Backend &backend() { return device; }
  StreamHandle stream() const { return queue; }
  const BackendProperties &properties() const { return facts; }

  llvm::Error fill(const FsrFill &fill);
  llvm::Error poison(DevicePointer to, uint64_t count, unsigned elementBytes,
                     uint64_t bits);
  llvm::Error setGuard(DevicePointer from, uint64_t bytes);
  llvm::Expected<ZoneDamage> checkGuard(DevicePointer from, uint64_t bytes);
  llvm::Expected<uint64_t> hash(DevicePointer from, uint64_t count,
                                unsigned elementBytes);
  /// `bytes` is rounded up to 16, and `at` aligned to 16.
  llvm::Error mask(DevicePointer at, uint64_t bytes, uint64_t key);
  /// Into `maximum`, a double a row, which is cleared here.
  llvm::Error rowMaximum(FsrCompare compare, DevicePointer maximum);
  llvm::Expected<FsrDifference> compare(FsrCompare compare);
  llvm::Error flush(DevicePointer to, uint64_t bytes, uint32_t value);
  llvm::Error spin(double microseconds);
  /// Of the last `spin`, which must have ended.
  llvm::Expected<SpinReading> spinReading();
  llvm::Error copy(DevicePointer to, DevicePointer from, uint64_t bytes);
  llvm::Error clear(DevicePointer at, uint64_t bytes);
  llvm::Error synchronize();

  /// When kernels were timed here last: a GPU that was busy just now has its
  /// clock up.
  std::optional<std::chrono::steady_clock::time_point> lastTimed;

private:
  explicit Helpers(Backend &backend) : device(backend) {}
  enum Kernel {
    Fill,
    Poison,
    GuardSet,
    GuardCheck,
    Hash,
    Mask,
    RowMaximum,
    Compare,
    Flush,
    Spin,
    NumKernels
  };
  llvm::Error launch(Kernel kernel, uint64_t items,
                     llvm::ArrayRef<void *> params);
  llvm::Error readResult(void *to, size_t bytes);

  Backend &device;
  BackendProperties facts;
  StreamHandle queue = nullptr;
  ModuleHandle module = nullptr;
  std::array<FunctionHandle, NumKernels> functions{};
  DevicePointer result = 0;     ///< 64 bytes.
  DevicePointer spinResult = 0; ///< 16 bytes; outlives other results.
};

/// The code of a fill family for the kernels; nothing for an unknown one.
std::optional<FsrFamily> familyCode(llvm::StringRef family);

/// PTX of the helper kernels, as committed.
llvm::StringRef helpersPtx();

} // namespace fsr

#endif // FSR_LIB_WORKER_HELPERS_H
