// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Profiles: what they say, and that what is read of them is whole.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Profile.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace fsr;

namespace {

Profile sample() {
  Profile profile;
  InstructionMix mix;
  mix.kernel = "fast";
  mix[CodeClass::Fma32] = 12;
  mix[CodeClass::Load128] = 2;
  mix[CodeClass::Other] = 6;
  profile.mixes = {mix};
  CountedWork counted;
  counted.covers = "all blocks";
  counted.isWhole = true;
  counted.warpInstructions = 1000;
  counted.laneInstructions = 16000;
  counted.float32 = 250;
  counted.memory = 125;
  counted.globalLoadBytes = 4000;
  counted.globalStoreBytes = 96;
  counted.globalRequests = 32;
  counted.globalSectors = 256;
  counted.uniqueSectors = 128;
  counted.sharedRequests = 10;
  counted.bankCycles = 25;
  counted.branches = 40;
  counted.divergentBranches = 10;
  counted.atomic = 3;
  counted.atomicSerial = 31;
  profile.counted = counted;
  HardwareCounters hardware;
  hardware.kernel = "fast";
  hardware.dramReadBytes = 1.5e6;
  hardware.occupancyPercent = 48.5;
  hardware.stalls = {{"long scoreboard", 7.25}, {"barrier", 1}};
  profile.hardware = {hardware};
  profile.peaks = DevicePeaks{4e12, 6e13};
  profile.missing = {"something"};
  return profile;
}

std::string print(const llvm::json::Value &json) {
  return llvm::formatv("{0:2}", json).str();
}

/// Empty where it is read.
std::string refusal(llvm::json::Value json) {
  Profile profile;
  llvm::json::Path::Root root("profile");
  if (fromJSON(json, profile, root))
    return "";
  return llvm::toString(root.getError());
}

TEST(ProfileTest, RoundTrips) {
  Profile back;
  llvm::json::Path::Root root;
  ASSERT_TRUE(fromJSON(toJSON(sample()), back, root));
  EXPECT_EQ(print(toJSON(back)), print(toJSON(sample())));
  EXPECT_EQ(back.mixes[0][CodeClass::Load128], 2);
  EXPECT_EQ(back.counted->atomicSerial, 31);
  EXPECT_LT(back.hardware[0].smPercent, 0); // Not told stays so.
  EXPECT_TRUE(Profile().isEmpty());
  EXPECT_FALSE(back.isEmpty());
}

TEST(ProfileTest, InWords) {
  EXPECT_EQ(describe(sample().mixes[0]),
            "`fast` has 20 machine instructions, each counted once where it "
            "stands: 12 FP32 FMA, 2 LDG.128, 6 other");
  EXPECT_EQ(
      describe(*sample().counted),
      (std::vector<std::string>{
          "1000 warp instructions of PTX, 16.0 of 32 lanes active: 25.0 % "
          "FP32, 12.5 % memory, 0.3 % atomics",
          "global memory: 8.00 sectors of 32 bytes a warp's request; 50.0 % of "
          "the bytes moved are used; each sector that is touched is asked for "
          "2.00 times",
          "shared memory: 2.50 cycles of the banks a warp's request (1: no "
          "conflicts)",
          "10 of 40 branches diverge (25.0 %)",
          "3 atomic warp instructions; 31 updates wait for another lane of "
          "their warp"}));
  EXPECT_EQ(describe(sample().hardware[0]),
            "`fast`, by the GPU's own counters: 1.500 MB read from DRAM, "
            "achieved occupancy 48.5 %, warps wait most for long scoreboard "
            "(7.25 warps), barrier (1.00 warps)");
  EXPECT_TRUE(describe(CountedWork()).empty());
  std::vector<std::string> all = describe(sample());
  EXPECT_EQ(all.back(), "not known: something");
  EXPECT_EQ(all[all.size() - 2],
            "measured on this GPU: copies at 4000.0 GB/s, f32 multiply-adds at "
            "60000.0 GFLOP/s");
}

TEST(ProfileTest, Refused) {
  EXPECT_EQ(refusal(llvm::json::Object()), "");
  llvm::json::Value big = toJSON(sample());
  (*big.getAsObject()->getObject("counted"))["memory"] = int64_t(1) << 60;
  EXPECT_NE(refusal(big).find("at most 2^53"), std::string::npos);
  big = toJSON(sample());
  (*big.getAsObject()
        ->getArray("instructions")
        ->front()
        .getAsObject())["counts"] = llvm::json::Object{{"other", -1}};
  EXPECT_NE(refusal(big).find("at least 0"), std::string::npos);
  big = toJSON(sample());
  (*big.getAsObject()->getObject("peaks"))["flops_per_second"] = -1;
  EXPECT_NE(refusal(big).find("rates from 0"), std::string::npos);
  big = toJSON(sample());
  (*big.getAsObject()->getArray("hardware")->front().getAsObject())["us"] = -2;
  EXPECT_NE(refusal(big).find("a number from 0"), std::string::npos);

  Profile many = sample();
  many.mixes.resize(Profile::mostKernels + 1);
  EXPECT_NE(refusal(toJSON(many)).find("at most 64 kernels"),
            std::string::npos);
  many = sample();
  many.hardware[0].stalls.resize(Profile::mostStalls + 1);
  EXPECT_NE(refusal(toJSON(many)).find("at most 8 reasons"), std::string::npos);
  many = sample();
  many.peaks->copyBytesPerSecond = INFINITY;
  EXPECT_NE(refusal(toJSON(many)), "");
}

} // namespace
