// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loops that look at memory again and again: which can never end, and which
// only seem so. The faults' corpus has the kernels that people write.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

namespace fsr::ptx {
namespace {

class SpinTest : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    options.instructionBudget = 1 << 19;
    options.hostThreads = 1;
  }
};

TEST_F(SpinTest, AWordThatNobodyWrites) {
  Finding finding = runFaulty(kernel(R"(
  AGAIN:
    ld.volatile.global.u32 %r1, [%out];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    exit;
  )"),
                              FindingKind::Deadlock);
  EXPECT_NE(finding.message.find("lanes 0-31 at PTX line"), std::string::npos)
      << finding.message;
}

TEST_F(SpinTest, ACountEndsIt) {
  // Longer than any look at it takes to find a circle.
  runClean(kernel(R"(
    mov.u32 %r2, 0;
  AGAIN:
    ld.volatile.global.u32 %r1, [%out+252];
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, 20000;
    setp.eq.and.u32 %p1, %r1, 0, %p2;
    @%p1 bra AGAIN;
  )" + store("%r2") +
                  "exit;"));
  EXPECT_EQ(words[5], 20000u);
}

TEST_F(SpinTest, AClockMayEndIt) {
  runFaulty(kernel(R"(
  AGAIN:
    ld.volatile.global.u32 %r1, [%out];
    mov.u64 %rd2, %clock64;
    setp.ge.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    exit;
  )"),
            FindingKind::Budget);
}

TEST_F(SpinTest, ALoopWithoutAConditionWaitsForNothing) {
  runFaulty(kernel(R"(
  AGAIN:
    ld.volatile.global.u32 %r1, [%out];
    bra AGAIN;
  )"),
            FindingKind::Budget);
}

TEST_F(SpinTest, AnotherBlockMayStillWrite) {
  // The second block begins long after the first one waits.
  shape.grid = {2, 1, 1};
  runClean(kernel(R"(
    mov.u32 %r3, %ctaid.x;
    setp.eq.u32 %p3, %r3, 0;
    @%p3 bra AGAIN;
    mov.u32 %r2, 0;
  COUNT:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, 50000;
    @%p2 bra COUNT;
    setp.eq.u32 %p4, %t, 0;
    @%p4 st.release.gpu.global.u32 [%out], 1;
    exit;
  AGAIN:
    ld.acquire.gpu.global.u32 %r1, [%out];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    exit;
  )"));
}

//===----------------------------------------------------------------------===//
// Kernels that wait for what atomics do
//===----------------------------------------------------------------------===//

class WaitingAtomicsTest : public SpinTest {
protected:
  /// Right under every schedule, whichever host threads there are. `check`
  /// looks at what the words hold in the end.
  template <typename Check>
  void runAll(const std::string &ptx, Check check) {
    options.instructionBudget = 1 << 22;
    for (Schedule schedule :
         {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps})
      for (uint64_t seed : {1, 2, 3})
        for (unsigned threads : {1, 2}) {
          SCOPED_TRACE(nameOf(schedule).str() + ", seed " +
                       std::to_string(seed) + ", threads " +
                       std::to_string(threads));
          options.schedule = schedule;
          options.seed = seed;
          options.hostThreads = threads;
          words.assign(words.size(), 0);
          runClean(ptx);
          check();
          if (HasFailure())
            return;
        }
  }
};

TEST_F(WaitingAtomicsTest, TwoBlocksAddInTurns) {
  shape.grid = {2, 1, 1};
  runAll(kernel(R"(
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra END;
    mov.u32 %r2, 0;
  AGAIN:
    atom.global.add.u32 %r3, [%out], 0;
    and.b32 %r4, %r3, 1;
    setp.ne.u32 %p2, %r4, %r1;
    @%p2 bra AGAIN;
    atom.global.add.u32 %r3, [%out], 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p3, %r2, 40;
    @%p3 bra AGAIN;
  END:
    exit;
  )"),
         [&] { EXPECT_EQ(words[0], 80u); });
}

TEST_F(WaitingAtomicsTest, ExchangesBetweenBlocks) {
  // The first block hands over a token, the second one gives it back.
  shape.grid = {2, 1, 1};
  runAll(kernel(R"(
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra END;
    mov.u32 %r2, 0;
    mov.u64 %rd1, %out;
    add.u64 %rd2, %out, 4;
    setp.eq.u32 %p4, %r1, 0;
    selp.b64 %rd3, %rd1, %rd2, %p4;
    selp.b64 %rd4, %rd2, %rd1, %p4;
    @%p4 atom.global.exch.b32 %r3, [%rd4], 1;
  AGAIN:
    atom.global.exch.b32 %r3, [%rd3], 0;
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra AGAIN;
    atom.global.exch.b32 %r3, [%rd4], 1;
    red.global.add.u32 [%out+8], 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p3, %r2, 20;
    @%p3 bra AGAIN;
  END:
    exit;
  )"),
         [&] { EXPECT_EQ(words[2], 40u); });
}

TEST_F(WaitingAtomicsTest, AChainOfBlocks) {
  // Each block waits for the one before it: min and max look, cas goes on.
  shape.grid = {6, 1, 1};
  runAll(kernel(R"(
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra END;
    add.u32 %r2, %r1, 1;
  AGAIN:
    atom.global.max.u32 %r3, [%out+4], 0;
    atom.global.cas.b32 %r3, [%out], %r1, %r2;
    setp.ne.u32 %p2, %r3, %r1;
    @%p2 bra AGAIN;
    red.global.max.u32 [%out+4], %r2;
  END:
    exit;
  )"),
         [&] {
           EXPECT_EQ(words[0], 6u);
           EXPECT_EQ(words[1], 6u);
         });
}

TEST_F(WaitingAtomicsTest, ABarrierOfTheGrid) {
  // By hand, with fences; the counts of one round are the next one's.
  shape.grid = {4, 1, 1};
  shape.block = {64, 1, 1};
  runAll(kernel(R"(
    mov.u32 %r9, %nctaid.x;
    mov.u32 %r8, %ctaid.x;
    mov.u32 %r7, 0;
    mov.u32 %r6, 0;
  ROUND:
    mul.wide.u32 %rd1, %r8, 4;
    add.u64 %rd1, %rd1, %out;
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra MEET;
    ld.global.u32 %r1, [%rd1+16];
    add.u32 %r1, %r1, %r8;
    st.global.u32 [%rd1+16], %r1;
  MEET:
    bar.sync 0;
    add.u32 %r6, %r6, %r9;
    @%p1 bra GO;
    fence.acq_rel.gpu;
    atom.global.add.u32 %r2, [%out], 1;
  WAIT:
    atom.global.add.u32 %r2, [%out], 0;
    setp.lt.u32 %p2, %r2, %r6;
    @%p2 bra WAIT;
    fence.acq_rel.gpu;
  GO:
    bar.sync 0;
    add.u32 %r8, %r8, 1;
    rem.u32 %r8, %r8, %r9;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p3, %r7, 8;
    @%p3 bra ROUND;
    exit;
  )"),
         [&] {
           EXPECT_EQ(words[0], 32u);
           for (unsigned i = 0; i < 4; ++i)
             EXPECT_EQ(words[4 + i], 8 * i);
         });
}

TEST_F(WaitingAtomicsTest, ATicketLock) {
  shape.grid = {3, 1, 1};
  shape.block = {64, 1, 1};
  runAll(kernel(R"(
    and.b32 %r1, %t, 31;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra END;
    mov.u32 %r2, 0;
  TAKE:
    atom.global.add.u32 %r3, [%out], 1;
  WAIT:
    atom.acquire.gpu.global.add.u32 %r4, [%out+4], 0;
    setp.ne.u32 %p2, %r4, %r3;
    @%p2 bra WAIT;
    ld.global.u32 %r5, [%out+8];
    add.u32 %r5, %r5, 1;
    st.global.u32 [%out+8], %r5;
    atom.release.gpu.global.add.u32 %r4, [%out+4], 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p3, %r2, 5;
    @%p3 bra TAKE;
  END:
    exit;
  )"),
         [&] { EXPECT_EQ(words[2], 30u); });
}

TEST_F(WaitingAtomicsTest, AnotherWarpWaitsForTheUpperHalf) {
  // Adding looks the same each time round, and gets somewhere all the same.
  shape.block = {64, 1, 1};
  runAll(kernel(R"(
    setp.ge.u32 %p1, %t, 32;
    @%p1 bra UPPER;
  LOWER:
    red.global.add.u64 [%out], 134217728;
    ld.volatile.global.u32 %r1, [%out+8];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra LOWER;
    exit;
  UPPER:
    ld.volatile.global.u32 %r2, [%out+4];
    setp.lt.u32 %p3, %r2, 40;
    @%p3 bra UPPER;
    st.volatile.global.u32 [%out+8], 1;
    exit;
  )"),
         [&] {
           EXPECT_GE(words[1], 40u);
           EXPECT_EQ(words[2], 1u);
         });
}

} // namespace
} // namespace fsr::ptx
