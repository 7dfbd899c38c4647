// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where a candidate's time may go: what its machine code consists of, what the
// virtual device counted, what a profiler read of a GPU's own counters, and how
// fast that GPU is. For later requests and for people; no verdict rests on it.
//
// It stands in the trial, so that a request is worded from what the store
// holds. Each part says what it covers. What could not be had is one line in
// `missing`, and no fault.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_PROFILE_H
#define FSR_CORE_PROFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsr {

/// Classes of machine instructions, in the order in which they are told.
enum class CodeClass : uint8_t {
  Fma32,
  Add32,
  Mul32,
  Other32,
  Float16,
  Float64,
  Matrix,  ///< Of tensor cores.
  Special, ///< exp2, log2, sine, reciprocal…, approximate.
  Convert,
  Integer,    ///< Addresses and predicates, too.
  LoadNarrow, ///< Global memory, less than 32 bits a thread; and so on.
  Load32,
  Load64,
  Load128, ///< Or more.
  StoreNarrow,
  Store32,
  Store64,
  Store128,
  Asynchronous, ///< Copies to and from shared memory beside the threads.
  LoadShared,
  StoreShared,
  LoadLocal, ///< Spilled registers, arrays that are indexed.
  StoreLocal,
  Barrier,
  Atomic,
  Shuffle,
  Branch,
  Other, ///< Moves, constants, special registers.
};
constexpr size_t codeClasses = size_t(CodeClass::Other) + 1;

/// The instructions of one kernel, each once where it stands: what a loop
/// repeats is not known.
struct InstructionMix {
  std::string kernel;
  std::array<int64_t, codeClasses> counts{};

  int64_t all() const;
  int64_t &operator[](CodeClass one) { return counts[size_t(one)]; }
  int64_t operator[](CodeClass one) const { return counts[size_t(one)]; }
};

/// What the virtual device counted of a candidate's launches, all together; as
/// `ptx::Counters` has it.
struct CountedWork {
  std::string covers; ///< "all 30 blocks"; "12 of 240 blocks, …".
  bool isWhole = false;
  int64_t warpInstructions = 0, laneInstructions = 0;
  int64_t integer = 0, float16 = 0, float32 = 0, float64 = 0, special = 0,
          conversion = 0, control = 0, memory = 0, barrier = 0, shuffle = 0,
          tensor = 0, atomic = 0;
  int64_t flops16 = 0, flops32 = 0, flops64 = 0, tensorFlops = 0;
  int64_t globalLoadBytes = 0, globalStoreBytes = 0, localBytes = 0;
  int64_t globalRequests = 0, globalSectors = 0, uniqueSectors = 0;
  int64_t sharedRequests = 0, bankCycles = 0;
  int64_t branches = 0, divergentBranches = 0, atomicSerial = 0;
};

/// What a profiler read of one launch. Less than 0: it did not say.
struct HardwareCounters {
  std::string kernel;
  double microseconds = -1;
  double dramReadBytes = -1, dramWriteBytes = -1;
  double dramPercent = -1, smPercent = -1; ///< Of the peak.
  double occupancyPercent = -1;            ///< Achieved.
  double l1HitPercent = -1, l2HitPercent = -1;
  /// Why warps did not issue, with how many of them waited for that whenever
  /// one issued; the most frequent first.
  struct Stall {
    std::string reason;
    double warps = 0;
  };
  std::vector<Stall> stalls;
};

/// What a GPU reached in a short test of itself; 0: not known.
struct DevicePeaks {
  double copyBytesPerSecond = 0; ///< Read and written, together.
  double flopsPerSecond = 0;     ///< f32, a multiply-add as two.

  bool isSound() const;
};

struct Profile {
  static constexpr size_t mostKernels = 64, mostStalls = 8, mostMissing = 16;

  std::vector<InstructionMix> mixes;
  std::optional<CountedWork> counted;
  std::vector<HardwareCounters> hardware;
  std::optional<DevicePeaks> peaks;
  std::vector<std::string> missing;

  bool isEmpty() const;
};

/// "k: 40 instructions, each counted once where it stands: 12 FP32 FMA, …"
std::string describe(const InstructionMix &mix);
/// A sentence each: accesses, conflicts, divergence, atomics, instructions.
std::vector<std::string> describe(const CountedWork &counted);
std::string describe(const HardwareCounters &counters);
/// All of it, for people.
std::vector<std::string> describe(const Profile &profile);

llvm::json::Value toJSON(const CountedWork &value);
bool fromJSON(const llvm::json::Value &json, CountedWork &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const InstructionMix &value);
bool fromJSON(const llvm::json::Value &json, InstructionMix &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const HardwareCounters &value);
bool fromJSON(const llvm::json::Value &json, HardwareCounters &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const DevicePeaks &value);
bool fromJSON(const llvm::json::Value &json, DevicePeaks &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const Profile &value);
/// Refuses more of anything than a profile may have, and numbers that are none.
bool fromJSON(const llvm::json::Value &json, Profile &value,
              llvm::json::Path path);

} // namespace fsr

#endif // FSR_CORE_PROFILE_H
