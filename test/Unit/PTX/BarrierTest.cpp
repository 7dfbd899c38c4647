// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Barriers of a block and of a warp: what they hold back, what they reduce, and
// what is said where not all come.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

namespace fsr::ptx {
namespace {

using testing::Test;

class BarrierTest : public KernelTest {
protected:
  static bool has(const std::string &text, llvm::StringRef part) {
    return llvm::StringRef(text).contains(part);
  }
};

TEST_F(BarrierTest, HoldsBackAllWarps) {
  shape.block = {64, 1, 1};
  std::string reverse = kernel(R"(
    .shared .align 4 .b8 tile[256];
    mov.u32 %r1, tile;
    shl.b32 %r2, %t, 2;
    add.u32 %r3, %r1, %r2;
    st.shared.u32 [%r3], %t;
    bar.sync 0;
    mov.u32 %r4, 252;
    sub.u32 %r4, %r4, %r2;
    add.u32 %r5, %r1, %r4;
    ld.shared.u32 %r6, [%r5];
  )" + store("%r6") + "exit;");
  for (Schedule schedule :
       {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
    options.schedule = schedule;
    words.assign(64, 0);
    LaunchResult result = runClean(reverse);
    for (unsigned i = 0; i < 64; ++i)
      ASSERT_EQ(words[i], 63 - i);
    EXPECT_TRUE(result.proof.holds) << result.proof.broken;
    EXPECT_TRUE(result.remarks.empty());
  }
}

TEST_F(BarrierTest, Reduces) {
  shape.block = {64, 1, 1};
  runClean(kernel(R"(
    setp.lt.u32 %p1, %t, 40;
    bar.red.popc.u32 %r1, 0, %p1;
    bar.red.and.pred %p2, 0, %p1;
    bar.red.or.pred %p3, 0, %p1;
    barrier.cta.red.popc.aligned.u32 %r4, 3, 64, !%p1;
    selp.u32 %r2, 1000, 0, %p2;
    selp.u32 %r3, 2000, 0, %p3;
    add.u32 %r1, %r1, %r2;
    add.u32 %r1, %r1, %r3;
    mad.lo.u32 %r1, %r4, 10000, %r1;
  )" + store("%r1") +
                  "exit;"));
  for (unsigned i = 0; i < 64; ++i)
    ASSERT_EQ(words[i], 242040u);
}

TEST_F(BarrierTest, ProducersArriveAndConsumersWait) {
  // Warp 0 waits for warp 1, which does not wait.
  shape.block = {64, 1, 1};
  std::string handOver = kernel(R"(
    .shared .align 4 .b8 tile[128];
    mov.u32 %r1, tile;
    and.b32 %r2, %t, 31;
    shl.b32 %r2, %r2, 2;
    add.u32 %r3, %r1, %r2;
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra CONSUME;
    st.shared.u32 [%r3], %t;
    bar.arrive 1, 64;
    exit;
  CONSUME:
    bar.sync 1, 64;
    ld.shared.u32 %r4, [%r3];
  )" + store("%r4") + "exit;");
  for (Schedule schedule :
       {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
    options.schedule = schedule;
    words.assign(64, 0);
    runClean(handOver);
    for (unsigned i = 0; i < 32; ++i)
      ASSERT_EQ(words[i], i + 32);
  }
}

TEST_F(BarrierTest, PartOfAWarp) {
  Finding finding = runFaulty(kernel(R"(
    setp.lt.u32 %p1, %t, 16;
    @!%p1 bra REST;
    bar.sync 0;
  REST:
    bar.sync 0;
    exit;
  )"),
                              FindingKind::BarrierDivergence);
  EXPECT_TRUE(has(finding.message, "lanes 0-15 wait at PTX line 17 `bar.sync "
                                   "0;`"))
      << finding.message;
  EXPECT_TRUE(has(finding.message, "lanes 16-31")) << finding.message;
}

TEST_F(BarrierTest, BothSidesOfABranch) {
  Finding finding = runFaulty(kernel(R"(
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra ONE;
    bar.sync 0;
    bra.uni END;
  ONE:
    bar.sync 0;
  END:
    exit;
  )"),
                              FindingKind::BarrierDivergence);
  EXPECT_EQ(finding.count, 1u);
  // Each thread by itself is what the other form is for.
  runClean(kernel(R"(
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra ONE;
    barrier.sync 0;
    bra.uni END;
  ONE:
    barrier.sync 0;
  END:
    exit;
  )"));
}

TEST_F(BarrierTest, OneWarpDoesNotCome) {
  shape.block = {96, 1, 1};
  Finding finding = runFaulty(kernel(R"(
    setp.ge.u32 %p1, %t, 64;
    @%p1 bra OTHER;
    bar.sync 0;
    exit;
  OTHER:
    bar.sync 1, 64;
    exit;
  )"),
                              FindingKind::Deadlock);
  EXPECT_TRUE(has(finding.message, "barrier 0 has 64 of 96 threads"))
      << finding.message;
  EXPECT_TRUE(has(finding.message, "barrier 1 has 32 of 64 threads"))
      << finding.message;
  EXPECT_TRUE(has(finding.message, "warp 2: lanes 0-31 wait at"))
      << finding.message;
}

TEST_F(BarrierTest, ThreadsThatExitedAreNotWaitedFor) {
  shape.block = {96, 1, 1};
  LaunchResult result = runClean(kernel(R"(
    setp.ge.u32 %p1, %t, 40;
    @%p1 exit;
    bar.sync 0;
  )" + store("%t") + "exit;"));
  ASSERT_EQ(result.remarks.size(), 1u);
  EXPECT_EQ(result.remarks[0].kind, FindingKind::BarrierDivergence);
  EXPECT_TRUE(has(result.remarks[0].message, "56 threads exited before it"))
      << result.remarks[0].message;
  EXPECT_EQ(words[39], 39u);
}

TEST_F(BarrierTest, ACountThatExitedThreadsAreMissingFrom) {
  shape.block = {64, 1, 1};
  Finding finding = runFaulty(kernel(R"(
    setp.ge.u32 %p1, %t, 32;
    @%p1 exit;
    bar.sync 2, 64;
    exit;
  )"),
                              FindingKind::Deadlock);
  EXPECT_TRUE(has(finding.message, "32 threads have exited"))
      << finding.message;
}

TEST_F(BarrierTest, CountsThatDiffer) {
  shape.block = {96, 1, 1};
  Finding finding = runFaulty(kernel(R"(
    setp.lt.u32 %p1, %t, 32;
    @%p1 bra ONE;
    bar.sync 1, 64;
    exit;
  ONE:
    bar.sync 1, 96;
    exit;
  )"),
                              FindingKind::BarrierMismatch);
  EXPECT_TRUE(has(finding.message,
                  "barrier 1 is for 64 threads here and for 96 "
                  "threads at PTX line"))
      << finding.message;
}

TEST_F(BarrierTest, CountsThatNoWarpsHave) {
  EXPECT_EQ(runFaulty(kernel("bar.sync 1, 40;\nexit;\n"),
                      FindingKind::BarrierMismatch)
                .message,
            "a count of 40 threads is no multiple of a warp's 32");
  EXPECT_EQ(runFaulty(kernel("mov.u32 %r1, 16;\nbar.sync %r1;\nexit;\n"),
                      FindingKind::BarrierMismatch)
                .message,
            "barrier 16 does not exist; there are 16");
}

TEST_F(BarrierTest, MoreThanItIsFor) {
  shape.block = {64, 1, 1};
  Finding finding = runFaulty(kernel(R"(
    and.b32 %r1, %t, 0x30;
    setp.eq.u32 %p1, %r1, 16;
    @%p1 bra OTHER;
    barrier.sync 1, 32;
    exit;
  OTHER:
    barrier.sync 2, 32;
    exit;
  )"),
                              FindingKind::BarrierMismatch);
  EXPECT_EQ(finding.message, "48 threads came to barrier 1, which is for 32");
}

TEST_F(BarrierTest, OfAWarp) {
  // Also where its lanes stand at different ones.
  runClean(kernel(R"(
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra ONE;
    bar.warp.sync -1;
    bra.uni END;
  ONE:
    bar.warp.sync 0xffffffff;
  END:
    exit;
  )"));
}

} // namespace
} // namespace fsr::ptx
