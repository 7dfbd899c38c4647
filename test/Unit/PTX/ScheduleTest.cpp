// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The orders in which warps, lanes and blocks may run: what they bring to
// light, that they end, and that they are the same for the same seed.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

namespace fsr::ptx {
namespace {

class ScheduleTest : public KernelTest {
protected:
  LaunchResult runUnder(Schedule schedule, llvm::StringRef ptx,
                        uint64_t seed = 1) {
    options.schedule = schedule;
    options.seed = seed;
    return run(ptx);
  }
};

constexpr Schedule all[] = {Schedule::Lockstep, Schedule::SplitLanes,
                            Schedule::RandomWarps};

/// A neighbour's word of shared memory without a barrier between.
std::string neighbour(llvm::StringRef between) {
  return (R"(
    .shared .align 4 .b8 tile[128];
    mov.u32 %r1, tile;
    shl.b32 %r2, %t, 2;
    add.u32 %r3, %r1, %r2;
    mov.u32 %r6, 0;
    st.shared.u32 [%r3], %r6;
    bar.sync 0;
    add.u32 %r4, %t, 7;
    st.shared.u32 [%r3], %r4;
  )" + between +
          R"(
    xor.b32 %r5, %r3, 4;
    ld.shared.u32 %r6, [%r5];
  )")
      .str();
}

TEST_F(ScheduleTest, SplitLanesBreaksWhatCountsOnLockstep) {
  options.checkRaces = false;
  std::string wrong = kernel(neighbour("") + store("%r6") + "exit;");
  runUnder(Schedule::Lockstep, wrong);
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], (i ^ 1) + 7);
  bool isBroken = false;
  for (uint64_t seed = 1; seed < 20 && !isBroken; ++seed) {
    runUnder(Schedule::SplitLanes, wrong, seed);
    for (unsigned i = 0; i < 32; ++i)
      isBroken |= words[i] != (i ^ 1) + 7;
  }
  EXPECT_TRUE(isBroken);
  std::string right =
      kernel(neighbour("bar.warp.sync -1;") + store("%r6") + "exit;");
  for (uint64_t seed = 1; seed < 20; ++seed) {
    LaunchResult result = runUnder(Schedule::SplitLanes, right, seed);
    EXPECT_TRUE(result.completed);
    for (unsigned i = 0; i < 32; ++i)
      ASSERT_EQ(words[i], (i ^ 1) + 7) << "seed " << seed;
  }
}

/// Each warp appends its number to a list.
const char *const appendWarp = R"(
  and.b32 %r1, %t, 31;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra END;
  atom.global.add.u32 %r2, [%out], 1;
  mul.wide.u32 %rd1, %r2, 4;
  add.u64 %rd2, %rd1, %out;
  st.global.u32 [%rd2+4], %t;
END:
  exit;
)";

TEST_F(ScheduleTest, OrderIsOfTheSeed) {
  shape.block = {1024, 1, 1};
  options.checkRaces = false;
  auto order = [&](Schedule schedule, uint64_t seed) {
    words.assign(64, 0);
    LaunchResult result = runUnder(schedule, kernel(appendWarp), seed);
    EXPECT_TRUE(result.completed);
    EXPECT_EQ(words[0], 32u);
    return words;
  };
  for (Schedule schedule : all)
    EXPECT_EQ(order(schedule, 3), order(schedule, 3));
  EXPECT_EQ(order(Schedule::Lockstep, 3), order(Schedule::Lockstep, 4));
  EXPECT_NE(order(Schedule::RandomWarps, 3), order(Schedule::RandomWarps, 4));
}

TEST_F(ScheduleTest, LanesMayWaitForLanesOfTheirWarp) {
  // Lane 0 waits in a loop that stands before what lane 1 does.
  std::string spin = kernel(R"(
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra SET;
  WAIT:
    ld.acquire.gpu.global.u32 %r1, [%out];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra WAIT;
    bra.uni END;
  SET:
    mov.u32 %r2, 1;
    st.release.gpu.global.u32 [%out], %r2;
  END:
    exit;
  )");
  shape.block = {2, 1, 1};
  options.instructionBudget = 50'000'000;
  for (Schedule schedule : all) {
    words.assign(64, 0);
    LaunchResult result = runUnder(schedule, spin);
    EXPECT_TRUE(result.completed) << nameOf(schedule).str();
  }
}

/// Block 0 waits until all others have counted up.
const char *const waitForBlocks = R"(
  mov.u32 %r1, %ctaid.x;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
  red.release.gpu.global.add.u32 [%out], 1;
  bra.uni END;
WAIT:
  ld.acquire.gpu.global.u32 %r2, [%out];
  mov.u32 %r4, %nctaid.x;
  sub.u32 %r4, %r4, 1;
  setp.ne.u32 %p2, %r2, %r4;
  @%p2 bra WAIT;
END:
  exit;
)";

TEST_F(ScheduleTest, BlocksMayWaitForBlocksThatFit) {
  shape.block = {1, 1, 1};
  options.instructionBudget = 50'000'000;
  for (unsigned threads : {1u, 3u}) {
    options.hostThreads = threads;
    shape.grid = {64, 1, 1};
    words.assign(64, 0);
    EXPECT_TRUE(run(kernel(waitForBlocks)).completed);
  }
}

TEST_F(ScheduleTest, BlocksThatDoNotFitAreNotWaitedFor) {
  VirtualGpuOptions small;
  small.multiprocessors = 1;
  gpu = makeVirtualGpu(small);
  shape.block = {1, 1, 1};
  shape.grid = {64, 1, 1};
  options.hostThreads = 1;
  options.instructionBudget = 1'000'000;
  // 32 blocks at most are on a multiprocessor; 31 of them leave one by one, and
  // those behind them come: only a waiting loop of 33 would starve.
  EXPECT_TRUE(run(kernel(waitForBlocks)).completed);
  std::string allWait = kernel(R"(
    red.release.gpu.global.add.u32 [%out], 1;
  WAIT:
    ld.acquire.gpu.global.u32 %r2, [%out];
    setp.ne.u32 %p2, %r2, 64;
    @%p2 bra WAIT;
    exit;
  )");
  words.assign(64, 0);
  Finding finding = runFaulty(allWait, FindingKind::Deadlock);
  EXPECT_EQ(words[0], 32u);
  shape.cooperative = true;
  llvm::Expected<LaunchResult> result = tryRun(allWait);
  EXPECT_EQ(toString(result.takeError()),
            "launch of k: a cooperative grid of 64 blocks, of which 32 fit");
  shape.grid = {32, 1, 1};
}

TEST_F(ScheduleTest, GridBarrier) {
  // As cooperative groups do it, with a counter of one's own.
  std::string barrier = kernel(R"(
    mov.u32 %r10, %nctaid.x;
    mov.u32 %r11, 0;
  AGAIN:
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra JOIN;
    atom.acq_rel.gpu.global.add.u32 %r1, [%out], 1;
    add.u32 %r11, %r11, %r10;
  WAIT:
    ld.acquire.gpu.global.u32 %r2, [%out];
    setp.lt.u32 %p2, %r2, %r11;
    @%p2 bra WAIT;
  JOIN:
    bar.sync 0;
    add.u32 %r12, %r12, 1;
    setp.lt.u32 %p3, %r12, 4;
    @%p3 bra AGAIN;
    exit;
  )");
  size_t at = barrier.find("mov.u32 %r11, 0;");
  barrier.insert(at, "mov.u32 %r12, 0;\n");
  shape.grid = {100, 1, 1};
  shape.block = {64, 1, 1};
  shape.cooperative = true;
  options.instructionBudget = 100'000'000;
  for (Schedule schedule : all) {
    words.assign(64, 0);
    EXPECT_TRUE(runUnder(schedule, barrier).completed)
        << nameOf(schedule).str();
    EXPECT_EQ(words[0], 400u);
  }
}

TEST_F(ScheduleTest, BudgetEndsALoop) {
  options.instructionBudget = 100'000;
  Finding finding =
      runFaulty(kernel("LOOP:\n  bra.uni LOOP;\n"), FindingKind::Budget);
  EXPECT_EQ(finding.message,
            "ran for more than the 100000 warp instructions that are allowed; "
            "warp 0: lanes 0-31 at PTX line 15 `bra.uni LOOP;`");
  EXPECT_FALSE(run(kernel("LOOP:\n  bra.uni LOOP;\n")).completed);
}

TEST_F(ScheduleTest, ManyBlocksOnManyThreads) {
  words.assign(105, 0);
  shape.grid = {3, 5, 7};
  options.hostThreads = 4;
  runClean(kernel(R"(
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ctaid.y;
    mov.u32 %r3, %ctaid.z;
    mad.lo.u32 %r4, %r3, 5, %r2;
    mad.lo.u32 %r5, %r4, 3, %r1;
    mul.wide.u32 %rd1, %r5, 4;
    add.u64 %rd2, %rd1, %out;
    red.global.add.u32 [%rd2], 1;
    exit;
  )"));
  for (uint32_t word : words)
    EXPECT_EQ(word, 32u);
}

} // namespace
} // namespace fsr::ptx
