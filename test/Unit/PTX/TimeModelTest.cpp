// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The model of time: each bound by itself, occupancy and waves, and chips.
//
//===----------------------------------------------------------------------===//

#include "fsr/PTX/TimeModel.h"

#include "gtest/gtest.h"

namespace fsr::ptx {
namespace {

class TimeModelTest : public testing::Test {
protected:
  TimeModelTest() : chip(*findChipModel("sm_90")) {
    shape.grid = {chip.multiprocessors * 8, 1, 1};
    shape.block = {256, 1, 1};
  }
  ModelledTime time() { return modelledTime(counters, shape, cost, chip); }
  const ChipModel &chip;
  Counters counters;
  LaunchShapeOf shape;
  KernelCost cost;
};

TEST_F(TimeModelTest, AnEmptyLaunchCostsItsOverhead) {
  EXPECT_DOUBLE_EQ(time().microseconds, launchOverheadUs);
}

TEST_F(TimeModelTest, MemoryIsBoundByItsRate) {
  // A gigabyte, once.
  counters.globalSectors = counters.uniqueSectors = uint64_t(1) << 25;
  ModelledTime modelled = time();
  EXPECT_EQ(modelled.bound, "DRAM");
  double ideal = double(1 << 30) / chip.dramBytesPerSecond() * 1e6;
  EXPECT_GT(modelled.microseconds, ideal);
  EXPECT_LT(modelled.microseconds, 1.2 * ideal);
  // A small part of it, again and again, comes from L2.
  counters.uniqueSectors = 1000;
  EXPECT_EQ(time().bound, "L2");
}

TEST_F(TimeModelTest, UnitsByTheirLanes) {
  counters.float32 = counters.warpInstructions = 400'000'000;
  double single = time().microseconds;
  counters.float64 = counters.float32;
  counters.float32 = 0;
  ModelledTime twice = time();
  EXPECT_EQ(twice.bound, "float64 units");
  EXPECT_GT(twice.microseconds, 1.3 * single);
  counters.special = counters.float64;
  EXPECT_EQ(time().bound, "special function units");
  EXPECT_NEAR(time().microseconds / twice.microseconds, 4, 0.1);
}

TEST_F(TimeModelTest, BankConflictsCost) {
  counters.sharedRequests = counters.bankCycles = 50'000'000;
  double free = time().microseconds;
  counters.bankCycles *= 32;
  ModelledTime conflicts = time();
  EXPECT_EQ(conflicts.bound, "shared memory");
  EXPECT_GT(conflicts.microseconds, 8 * free);
}

TEST_F(TimeModelTest, OccupancyFromRegistersAndSharedMemory) {
  EXPECT_EQ(time().blocksPerMultiprocessor, 8u);
  EXPECT_DOUBLE_EQ(time().occupancy, 1);
  cost.registers = 64; // 65536 / (64 * 256) = 4 blocks.
  EXPECT_EQ(time().blocksPerMultiprocessor, 4u);
  cost.sharedBytes = 100 << 10;
  EXPECT_EQ(time().blocksPerMultiprocessor, 2u);
  EXPECT_DOUBLE_EQ(time().occupancy, 0.25);
  EXPECT_DOUBLE_EQ(time().waves, 4);
}

TEST_F(TimeModelTest, FewWarpsWaitForMemory) {
  // The same work on one block is slower than on many.
  counters.warpInstructions = counters.memory = counters.globalRequests =
      100'000;
  counters.globalSectors = counters.uniqueSectors = 400'000;
  double spread = time().microseconds;
  shape.grid = {1, 1, 1};
  ModelledTime lonely = time();
  EXPECT_EQ(lonely.bound, "latency");
  EXPECT_GT(lonely.microseconds, 20 * spread);
}

TEST_F(TimeModelTest, AShortLastWaveCosts) {
  counters.warpInstructions = counters.float32 = 10'000'000;
  shape.grid = {chip.multiprocessors, 1, 1};
  double full = time().microseconds;
  shape.grid = {chip.multiprocessors + 1, 1, 1};
  EXPECT_GT(time().microseconds, 1.6 * full);
}

TEST(ChipModels, AreFoundByTheirNames) {
  EXPECT_EQ(findChipModel("sm_90a")->name, "sm_90");
  EXPECT_EQ(findChipModel("sm_12"), nullptr);
  EXPECT_EQ(findChipModel(""), nullptr);
  // An H200 has 4.9 TB/s by clock and bus.
  EXPECT_NEAR(findChipModel("sm_90")->dramBytesPerSecond() / 1e12, 4.92, 0.01);
}

} // namespace
} // namespace fsr::ptx
