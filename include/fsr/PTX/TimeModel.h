// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How long a GPU would take for what a launch on the virtual device did: a
// roofline over what was counted, with occupancy, waves and latency. It is a
// stated model and nothing more; docs/design/virtual-device.md says what it
// leaves out. What comes from here is called modelled, never measured.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_PTX_TIMEMODEL_H
#define FSR_PTX_TIMEMODEL_H

#include "fsr/PTX/VirtualGpu.h"

namespace fsr::ptx {

/// A GPU as its data sheet has it. Rates are of one multiprocessor a clock.
struct ChipModel {
  llvm::StringLiteral name; ///< "sm_90"
  unsigned multiprocessors;
  double clockKhz, memoryClockKhz;
  unsigned memoryBusBits;
  uint64_t l2Bytes, memoryBytes;
  double l2BytesPerClock; ///< Of the whole chip.
  unsigned sharedBytesPerBlock, sharedBytesPerMultiprocessor;
  unsigned threadsPerMultiprocessor, blocksPerMultiprocessor;
  /// Lanes that finish a clock.
  unsigned integerLanes, float16Lanes, float32Lanes, float64Lanes, specialLanes,
      conversionLanes;
  unsigned tensorFlops; ///< Dense, of 16-bit inputs.

  double dramBytesPerSecond() const {
    return 2 * memoryClockKhz * 1e3 * memoryBusBits / 8; // Two a clock.
  }
};

/// sm_80, sm_90 and sm_100, as A100, H200 and B200 have them.
llvm::ArrayRef<ChipModel> chipModels();
/// Null for a chip that is not among them; "sm_90a" is found as "sm_90".
const ChipModel *findChipModel(llvm::StringRef name);

/// What the compiled kernel takes, which PTX does not say.
struct KernelCost {
  unsigned registers = 0;   ///< A thread; 0: not known, no limit.
  uint64_t sharedBytes = 0; ///< A block, static and dynamic.
  uint64_t spillBytes = 0;  ///< Stored and loaded, a thread.
};

struct ModelledTime {
  double microseconds = 0;
  /// What the time is bound by: "DRAM", "float32 units", "latency"….
  std::string bound;
  double occupancy = 0; ///< Share of the resident threads there could be.
  unsigned blocksPerMultiprocessor = 0;
  double waves = 0; ///< Blocks over those resident at once.
  /// Each bound's own time in microseconds, the largest first.
  std::vector<std::pair<std::string, double>> parts;
};

/// What a launch costs before its first instruction and after its last.
constexpr double launchOverheadUs = 2;

ModelledTime modelledTime(const Counters &counters, const LaunchShapeOf &shape,
                          const KernelCost &cost, const ChipModel &chip);

} // namespace fsr::ptx

#endif // FSR_PTX_TIMEMODEL_H
