// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How full kernels make a device: against what the occupancy calculator of a
// toolkit says of the same numbers.
//
//===----------------------------------------------------------------------===//

#include "Occupancy.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

DeviceDescription hopper() {
  DeviceDescription device;
  device.chip = "sm_90";
  device.multiprocessors = 132;
  device.registersPerMultiprocessor = 65536;
  device.sharedBytesPerMultiprocessor = 233472;
  device.threadsPerMultiprocessor = 2048;
  return device;
}

struct Case {
  int64_t threads, registers, shared, dynamic;
  int64_t blocks;
  Occupancy::Limit limit;
};

TEST(OccupancyTest, BlocksAndWhatLimitsThem) {
  for (const Case &one : {Case{256, 32, 0, 0, 8, Occupancy::Threads},
                          {256, 77, 0, 0, 3, Occupancy::Registers},
                          {256, 64, 0, 0, 4, Occupancy::Registers},
                          {128, 16, 49152, 0, 4, Occupancy::Shared},
                          {128, 16, 1024, 100000, 2, Occupancy::Shared},
                          {32, 16, 0, 0, 32, Occupancy::Blocks},
                          {33, 16, 0, 0, 32, Occupancy::Threads}}) {
    KernelResources kernel;
    kernel.registers = one.registers;
    kernel.sharedBytes = one.shared;
    LaunchShape shape;
    shape.block = {one.threads, 1, 1};
    shape.grid = {264, 1, 1};
    shape.sharedBytes = one.dynamic;
    std::optional<Occupancy> found = occupancyOf(kernel, shape, hopper());
    ASSERT_TRUE(found);
    EXPECT_EQ(found->blocks, one.blocks) << one.threads << " " << one.registers;
    EXPECT_EQ(found->limit, one.limit) << one.threads << " " << one.registers;
    EXPECT_DOUBLE_EQ(found->rounds, 2.0 / double(one.blocks));
  }
}

TEST(OccupancyTest, InWords) {
  KernelResources kernel;
  kernel.registers = 77;
  LaunchShape shape;
  shape.block = {128, 2, 1};
  shape.grid = {1000, 1, 1};
  EXPECT_EQ(describe(*occupancyOf(kernel, shape, hopper()), kernel),
            "3 blocks of 256 threads fit on a multiprocessor, 24 of 64 warps "
            "(38 %); what limits them is registers (77 a thread). The grid is "
            "2.53 times what runs at once");
}

TEST(OccupancyTest, NothingWhereNothingIsKnown) {
  KernelResources kernel;
  LaunchShape shape;
  EXPECT_FALSE(occupancyOf(kernel, shape, DeviceDescription()));
  EXPECT_TRUE(rateTexts({}, hopper(), 10).empty());
  kernel.registers = 255;
  shape.block = {1024, 1, 1}; // Does not fit at all.
  EXPECT_FALSE(occupancyOf(kernel, shape, hopper()));
}

TEST(OccupancyTest, RatesAgainstThePeaks) {
  DeviceDescription device = hopper();
  device.memoryClockKhz = 1000;
  device.memoryBusBits = 4096; // 1.024 GB/s.
  WorkEstimate work;
  work.bytesRead = 512;
  EXPECT_EQ(rateTexts(work, device, 1),
            (std::vector<std::string>{
                "It moves 0.5 GB/s, 50.0 % of the theoretical peak"}));
}

} // namespace
