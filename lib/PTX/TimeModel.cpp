// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Chips and the roofline. Every constant that is no data sheet's stands at the
// top with what it stands for. docs/design/virtual-device.md has the formulas
// in words.
//
//===----------------------------------------------------------------------===//

#include "fsr/PTX/TimeModel.h"

#include <algorithm>
#include <cmath>

namespace fsr::ptx {

namespace {

constexpr double warpLanes = 32, sectorBytes = 32;
constexpr double issuesAClock = 4; ///< One a scheduler.
/// Of the theoretical bandwidth, what long streams get.
constexpr double dramShare = 0.92;
/// L1 gives a line of 128 bytes a clock.
constexpr double l1BytesAClock = 128;
/// Of what is read again, how much L1 does not have.
constexpr double l1MissesAgain = 0.5;
/// Atomic updates of one address follow one another, a clock each in L2.
constexpr double atomicClocks = 1;
/// Latencies in clocks, and how many of its kind a warp has under way.
constexpr double dramClocks = 800, requestsUnderWay = 4;
constexpr double issueClocks = 4.5, independentIssues = 2;
constexpr double barrierClocks = 40, sharedClocks = 30, sharedUnderWay = 4;
constexpr unsigned registersPerMultiprocessor = 65536;
/// Registers are given out by the warp in steps of this many.
constexpr unsigned registerStep = 256;
constexpr uint64_t sharedReserve = 1024; ///< A block, for the system.

constexpr ChipModel models[] = {
    {"sm_80", 108, 1410e3, 1593e3, 5120, uint64_t(40) << 20, uint64_t(80) << 30,
     5120, 163 << 10, 164 << 10, 2048, 32, 64, 256, 64, 32, 16, 16, 2048},
    {"sm_90", 132, 1980e3, 3201e3, 6144, uint64_t(60) << 20,
     uint64_t(141) << 30, 5632, 227 << 10, 228 << 10, 2048, 32, 64, 256, 128,
     64, 16, 64, 4096},
    {"sm_100", 148, 1965e3, 3996e3, 8192, uint64_t(126) << 20,
     uint64_t(180) << 30, 10240, 227 << 10, 228 << 10, 2048, 32, 64, 256, 128,
     64, 16, 64, 8192},
};

unsigned resident(const LaunchShapeOf &shape, const KernelCost &cost,
                  const ChipModel &chip) {
  uint64_t threads = uint64_t(shape.block[0]) * shape.block[1] * shape.block[2];
  uint64_t warps = (threads + 31) / 32;
  uint64_t blocks = std::min<uint64_t>(chip.blocksPerMultiprocessor,
                                       chip.threadsPerMultiprocessor /
                                           std::max<uint64_t>(warps * 32, 1));
  if (cost.registers) {
    uint64_t ofWarp = (uint64_t(cost.registers) * 32 + registerStep - 1) /
                      registerStep * registerStep;
    blocks = std::min<uint64_t>(blocks,
                                registersPerMultiprocessor / (ofWarp * warps));
  }
  if (cost.sharedBytes)
    blocks = std::min<uint64_t>(blocks, chip.sharedBytesPerMultiprocessor /
                                            (cost.sharedBytes + sharedReserve));
  return unsigned(std::max<uint64_t>(blocks, 1));
}

} // namespace

llvm::ArrayRef<ChipModel> chipModels() { return models; }

const ChipModel *findChipModel(llvm::StringRef name) {
  name = name.rtrim("af");
  for (const ChipModel &chip : models)
    if (chip.name == name)
      return &chip;
  return nullptr;
}

ModelledTime modelledTime(const Counters &counters, const LaunchShapeOf &shape,
                          const KernelCost &cost, const ChipModel &chip) {
  ModelledTime result;
  double blocks = double(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  double warpsPerBlock = std::ceil(double(shape.block[0]) * shape.block[1] *
                                   shape.block[2] / warpLanes);
  double warps = std::max(1.0, blocks * warpsPerBlock);
  double sms = chip.multiprocessors;
  result.blocksPerMultiprocessor = resident(shape, cost, chip);
  result.occupancy = result.blocksPerMultiprocessor * warpsPerBlock *
                     warpLanes / chip.threadsPerMultiprocessor;
  result.waves = blocks / (result.blocksPerMultiprocessor * sms);

  // The multiprocessor with the most blocks decides, so its share counts.
  double share = std::max(1.0, std::ceil(blocks / sms)) / blocks;
  double usAClock = 1e3 / chip.clockKhz;
  auto add = [&](const char *name, double microseconds) {
    result.parts.emplace_back(name, microseconds);
  };
  auto addClocks = [&](const char *name, double clocks) {
    add(name, clocks * share * usAClock);
  };
  auto addLanes = [&](const char *name, uint64_t instructions, double lanes) {
    addClocks(name, double(instructions) * warpLanes / lanes);
  };

  addClocks("issue slots", double(counters.warpInstructions) / issuesAClock);
  addLanes("integer units", counters.integer, chip.integerLanes);
  addLanes("float16 units", counters.float16, chip.float16Lanes);
  addLanes("float32 units", counters.float32, chip.float32Lanes);
  addLanes("float64 units", counters.float64, chip.float64Lanes);
  addLanes("special function units", counters.special, chip.specialLanes);
  addLanes("conversion units", counters.conversion, chip.conversionLanes);
  addClocks("tensor cores", double(counters.tensorFlops) / chip.tensorFlops);
  addClocks("shared memory", double(counters.bankCycles + counters.shuffle));
  double spilled = double(cost.spillBytes) * warps * warpLanes;
  double sectors = double(counters.globalSectors) * sectorBytes;
  addClocks("L1", (sectors + double(counters.localLoadBytes) +
                   double(counters.localStoreBytes) + spilled) /
                      l1BytesAClock);

  // Whole-chip parts. What is touched comes from memory once, and again as far
  // as L2 cannot hold it.
  double unique = double(counters.uniqueSectors) * sectorBytes;
  double again = std::max(0.0, sectors - unique) * l1MissesAgain;
  add("L2", (unique + again) / chip.l2BytesPerClock * usAClock);
  double missing =
      unique > 0 ? std::max(0.0, 1 - double(chip.l2Bytes) / unique) : 0;
  add("DRAM", (unique + again * missing) /
                  (dramShare * chip.dramBytesPerSecond()) * 1e6);
  add("atomic updates",
      double(counters.atomicSerial) * atomicClocks / sms * usAClock);

  // One warp's own way through the kernel, as often as blocks follow another.
  double requests = double(counters.globalRequests) / warps;
  double chain =
      double(counters.warpInstructions) / warps * issueClocks /
          independentIssues +
      (requests > 0 ? std::ceil(requests / requestsUnderWay) * dramClocks : 0) +
      double(counters.sharedRequests) / warps * sharedClocks / sharedUnderWay +
      double(counters.barrier) / warps * barrierClocks;
  add("latency", std::ceil(std::max(result.waves, 1e-9)) * chain * usAClock);

  std::sort(result.parts.begin(), result.parts.end(),
            [](const auto &a, const auto &b) {
              return a.second != b.second ? a.second > b.second
                                          : a.first < b.first;
            });
  result.bound = result.parts.front().first;
  result.microseconds = launchOverheadUs + result.parts.front().second;
  return result;
}

} // namespace fsr::ptx
