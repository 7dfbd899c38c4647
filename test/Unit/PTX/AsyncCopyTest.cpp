// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// cp.async: that copies happen as late as they may, and what touching them
// early is.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

using namespace fsr::ptx;

namespace {

class AsyncCopyTest : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    words.assign(256, 0);
    for (unsigned i = 0; i < 128; ++i)
      words[i] = 1000 + i;
  }
  /// `%r1`: the thread's 16 bytes of shared memory, `%rd1` of the buffer,
  /// `%rd2` where its results go.
  std::string async(const std::string &body) {
    return kernel("mul.lo.u32 %r1, %t, 16;\nmov.u32 %r2, sm;\n"
                  "add.u32 %r1, %r1, %r2;\nmul.wide.u32 %rd1, %t, 16;\n"
                  "add.u64 %rd1, %rd1, %out;\nadd.u64 %rd2, %rd1, 512;\n" +
                      body + "\nret;",
                  ".shared .align 16 .b8 sm[2048];");
  }
  const std::string copy =
      "cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;\n";
  const std::string commit = "cp.async.commit_group;\n";
  const std::string give = "ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r1];\n"
                           "st.global.v4.u32 [%rd2], {%r4,%r5,%r6,%r7};\n";
};

TEST_F(AsyncCopyTest, Copies) {
  for (const char *wait :
       {"cp.async.wait_group 0;\n", "cp.async.wait_all;\n"}) {
    SetUp();
    runClean(async(copy + commit + wait + give));
    for (unsigned i = 0; i < 128; ++i)
      EXPECT_EQ(words[128 + i], 1000 + i);
  }
}

TEST_F(AsyncCopyTest, SizesAndZeroFill) {
  runClean(async("cp.async.ca.shared.global [%r1], [%rd1], 4;\n"
                 "cp.async.ca.shared.global [%r1+8], [%rd1+8], 8, 4;\n"
                 "cp.async.ca.shared.global [%r1+4], [%rd1+4], 4, 0;\n"
                 "cp.async.wait_all;\n" +
                 give));
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[128 + lane * 4], 1000 + lane * 4);
    EXPECT_EQ(words[128 + lane * 4 + 1], 0u);
    EXPECT_EQ(words[128 + lane * 4 + 2], 1002 + lane * 4);
    EXPECT_EQ(words[128 + lane * 4 + 3], 0u);
  }
}

TEST_F(AsyncCopyTest, IgnoresTheSource) {
  runClean(async("setp.gt.u32 %p1, %t, 15;\n"
                 "cp.async.cg.shared.global [%r1], [%rd1], 16, %p1;\n"
                 "cp.async.wait_all;\n" +
                 give));
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(words[128 + lane * 4], lane > 15 ? 0 : 1000 + lane * 4);
  // No byte of it is read: the address may be anything.
  SetUp();
  runClean(async("mov.u64 %rd1, 0;\n"
                 "cp.async.cg.shared.global [%r1], [%rd1], 16, 0;\n"
                 "cp.async.wait_all;\n" +
                 give));
  EXPECT_EQ(words[128], 0u);
}

TEST_F(AsyncCopyTest, HappensAtTheWait) {
  // The source changes between: the copy takes what is there at the wait.
  shape.block = {1, 1, 1};
  runFaulty(async(copy + commit +
                  "mov.u32 %r8, 5;\nst.global.u32 [%rd1], %r8;\n"
                  "cp.async.wait_group 0;\n" +
                  give),
            FindingKind::AsyncInFlight);
  EXPECT_EQ(words[128], 5u);
}

TEST_F(AsyncCopyTest, EarlyReads) {
  Finding finding =
      runFaulty(async(copy + commit + give), FindingKind::AsyncInFlight);
  EXPECT_EQ(finding.count, 32u);
  EXPECT_NE(finding.message.find("still to write"), std::string::npos);
  // The newest group is not waited for.
  runFaulty(async("cp.async.ca.shared.global [%r1+512], [%rd1], 4;\n" + commit +
                  copy + commit + "cp.async.wait_group 1;\n" + give),
            FindingKind::AsyncInFlight);
  // What was not committed is in no group.
  runFaulty(async(copy + "cp.async.wait_group 0;\n" + give),
            FindingKind::AsyncInFlight);
}

TEST_F(AsyncCopyTest, OlderGroupsAreWaitedFor) {
  runClean(async(copy + commit +
                 "cp.async.ca.shared.global [%r1+512], [%rd1], 4;\n" + commit +
                 commit + "cp.async.wait_group 2;\n" + give));
  EXPECT_EQ(words[128 + 127], 1127u);
}

TEST_F(AsyncCopyTest, EarlyWrites) {
  runFaulty(async(copy + commit +
                  "st.shared.u32 [%r1+4], %t;\n"
                  "cp.async.wait_all;\n"),
            FindingKind::AsyncInFlight);
}

TEST_F(AsyncCopyTest, OpenGroupsAtTheEnd) { runClean(async(copy + commit)); }

TEST_F(AsyncCopyTest, BlocksHaveTheirOwnCopies) {
  // Groups left open by one block are nothing to the next one.
  words.assign(512, 4);
  shape.grid = {40, 1, 1};
  for (Schedule schedule :
       {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
    options.schedule = schedule;
    options.hostThreads = 1;
    runClean(async(copy + commit + "cp.async.wait_group 0;\n" +
                   "ld.shared.u32 %r4, [%r1];\nadd.u32 %r4, %r4, 1;\n" +
                   "cp.async.ca.shared.global [%r1], [%rd1], 4;\n" + commit));
  }
}

TEST_F(AsyncCopyTest, OtherThreadsNeedABarrier) {
  shape.block = {64, 1, 1};
  std::string other = "xor.b32 %r1, %r1, 512;\n";
  words.assign(512, 3);
  auto ptx = [&](const std::string &between) {
    return async("add.u64 %rd2, %rd1, 1024;\n" + copy + commit +
                 "cp.async.wait_all;\n" + between + other + give);
  };
  runClean(ptx("bar.sync 0;\n"));
  // Whichever warp comes second reads what the first one's wait completed, or
  // the first one what is in flight or not there.
  EXPECT_FALSE(run(ptx("")).findings.empty());
}

TEST_F(AsyncCopyTest, Faults) {
  runFaulty(async("cp.async.cg.shared.global [%r1+8], [%rd1], 16;\n"),
            FindingKind::Misaligned);
  runFaulty(async("cp.async.cg.shared.global [%r1], [%rd1+1024], 16;\n"),
            FindingKind::OutOfBounds);
  runFaulty(async("cp.async.cg.shared.global [%r1+2048], [%rd1], 16;\n"),
            FindingKind::OutOfBounds);
}

TEST_F(AsyncCopyTest, UnwrittenSourcesStayUnwritten) {
  llvm::Expected<unsigned> module =
      gpu->loadModule(async(copy + "cp.async.wait_all;\n"
                                   "ld.shared.u32 %r4, [%r1];\n"
                                   "add.u32 %r4, %r4, 1;\n"
                                   "st.global.u32 [%rd2], %r4;\n"));
  ASSERT_TRUE(bool(module));
  uint64_t buffer = cantFail(gpu->allocate(1024));
  uint8_t params[8];
  std::memcpy(params, &buffer, 8);
  llvm::Expected<LaunchResult> result =
      gpu->launch(*module, "k", shape, params, options);
  ASSERT_TRUE(bool(result));
  ASSERT_EQ(result->findings.size(), 1u);
  EXPECT_EQ(result->findings[0].kind, FindingKind::Uninitialized);
  EXPECT_NE(result->findings[0].ptxText.find("ld.shared"), std::string::npos);
}

} // namespace
