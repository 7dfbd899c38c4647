// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the state of a GPU is made of, on a library that only pretends: loaded
// first, a later dlopen finds it by its soname, as it does the fake driver.
//
//===----------------------------------------------------------------------===//

#include "Nvml.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <dlfcn.h>

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

TEST(Nvml, NoLibraryIsOneLine) {
  auto state = Nvml::open("0000:1B:00.0");
  if (state)
    GTEST_SKIP() << "needs a host where NVML does not load or has no GPU there";
  std::string why = llvm::toString(state.takeError());
  EXPECT_EQ(why.rfind("no NVML: ", 0), 0u) << why;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
}

} // namespace
