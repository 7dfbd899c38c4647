// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is made of what NVML says, and what is said where it cannot be asked.
//
//===----------------------------------------------------------------------===//

#include "Nvml.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

TEST(Nvml, OnlyWhatHoldsAClockDownIsNamed) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(describeClockLimits(0), Words());
  EXPECT_EQ(describeClockLimits(0x1 | 0x2 | 0x100), Words()); // Idle, set.
  EXPECT_EQ(describeClockLimits(0x4), Words{"power cap"});
  EXPECT_EQ(describeClockLimits(0x40 | 0x20),
            (Words{"thermal slowdown", "hardware thermal slowdown"}));
}

TEST(Nvml, OthersAreCountedInAContainerToo) {
  EXPECT_EQ(countOthers({}, 7), 0);
  EXPECT_EQ(countOthers({7}, 7), 0);
  EXPECT_EQ(countOthers({7, 9, 11}, 7), 2);
  // Numbers of the host: one of them is this process.
  EXPECT_EQ(countOthers({4711}, 7), 0);
  EXPECT_EQ(countOthers({4711, 4712}, 7), 1);
}

TEST(Nvml, WhatIsNotThereIsOneLine) {
  // No library here, or one that knows no GPU at the last address there is.
  auto state = Nvml::open("ffff:ff:1f.7");
  ASSERT_FALSE(state);
  std::string why = llvm::toString(state.takeError());
  EXPECT_EQ(why.rfind("no NVML: ", 0), 0u) << why;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
}

} // namespace
