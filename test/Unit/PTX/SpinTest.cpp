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

} // namespace
} // namespace fsr::ptx
