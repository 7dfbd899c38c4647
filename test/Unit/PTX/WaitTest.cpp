// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ops that wait for something that comes without a sign, as mbarriers do: a
// handler of the test's own takes the place of an instruction.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/PTX/Link.h"

#include "gtest/gtest.h"

#include <atomic>

namespace fsr::ptx {
namespace {

std::atomic<uint32_t> calls{0};

/// Lets one more lane go each time it is asked.
void oneMore(Warp &warp, const Op &, LaneMask active) {
  uint32_t count = calls++;
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    if ((active >> lane & 1) && lane > count)
      warp.mustWait |= LaneMask(1) << lane;
}

void never(Warp &warp, const Op &, LaneMask active) {
  ++calls;
  warp.mustWait = active;
}

/// Waits until the first block has come by.
void untilFirst(Warp &warp, const Op &, LaneMask active) {
  if (warp.block->linear == 0)
    calls = 1;
  else if (!calls)
    warp.mustWait = active;
}

struct Ran {
  std::vector<Finding> findings;
  uint64_t stores = 0;
};

/// The `nanosleep` of a small kernel is `handler`.
Ran runWith(Handler handler, unsigned blocks, unsigned threads,
            unsigned hostThreads, Schedule schedule = Schedule::Lockstep) {
  calls = 0;
  LoadedModule loaded;
  loaded.module = cantFail(parseModule(R"(
.version 8.8
.target sm_90
.address_size 64
.visible .entry k() {
  .reg .b32 %r<4>;
  nanosleep.u32 1;
  mov.u32 %r1, %tid.x;
  exit;
}
)"));
  LinkedKernel kernel(loaded, *loaded.module->findFunction("k"));
  EXPECT_EQ(kernel.decode(), "");
  Program &program = kernel.entry();
  program.code[0].control = Control::Wait;
  program.code[0].run = handler;
  program.steps[0].control = Control::Wait;
  Memory memory(1 << 20);
  memory.beginLaunch();
  FindingSink sink(8);
  Launch launch;
  launch.program = &program;
  launch.shape.grid = {blocks, 1, 1};
  launch.shape.block = {threads, 1, 1};
  launch.options.hostThreads = hostThreads;
  launch.options.schedule = schedule;
  launch.memory = &memory;
  launch.findings = &sink;
  Tally tally;
  runBlocks(launch, kernel.table(), 16, tally);
  Ran ran;
  ran.findings = sink.takeFindings();
  if (!tally.ops[0].empty())
    ran.stores = tally.ops[0][1].lanes;
  return ran;
}

TEST(WaitTest, LanesGoOneByOne) {
  for (Schedule schedule :
       {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
    Ran ran = runWith(oneMore, 1, 32, 1, schedule);
    EXPECT_TRUE(ran.findings.empty());
    EXPECT_EQ(ran.stores, 32u);
    EXPECT_GE(calls, 32u);
  }
}

TEST(WaitTest, WhatNeverComesIsADeadlock) {
  for (unsigned hostThreads : {1u, 3u}) {
    Ran ran = runWith(never, 40, 64, hostThreads);
    ASSERT_EQ(ran.findings.size(), 1u);
    EXPECT_EQ(ran.findings[0].kind, FindingKind::Deadlock);
    EXPECT_TRUE(
        llvm::StringRef(ran.findings[0].message)
            .starts_with(
                "no thread can go on: all wait, or look again and again "
                "at memory that nobody changes any more: warp 0: lanes "
                "0-31 wait at PTX line 7 `nanosleep.u32 1;`"))
        << ran.findings[0].message;
    EXPECT_EQ(ran.stores, 0u);
    // It was asked more than once, by the 16 blocks that fit and no others.
    EXPECT_GE(calls, 16u * 2 * 2);
  }
}

TEST(WaitTest, BlocksThatWaitForOthers) {
  for (unsigned hostThreads : {1u, 3u})
    for (Schedule schedule : {Schedule::Lockstep, Schedule::RandomWarps}) {
      Ran ran = runWith(untilFirst, 16, 64, hostThreads, schedule);
      EXPECT_TRUE(ran.findings.empty());
      EXPECT_EQ(ran.stores, 16u * 64);
    }
}

} // namespace
} // namespace fsr::ptx
