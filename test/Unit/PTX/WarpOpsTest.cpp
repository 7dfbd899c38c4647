// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What lanes tell one another, lane by lane against the rules of the ISA, and
// what is said where a lane is missing.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

#include <functional>

namespace fsr::ptx {
namespace {

class WarpOpsTest : public KernelTest {
protected:
  void expectWords(std::function<uint32_t(unsigned)> wanted,
                   unsigned count = 32) {
    for (unsigned i = 0; i < count; ++i)
      EXPECT_EQ(words[i], wanted(i)) << "lane " << i;
  }
  /// Runs `body`, which leaves its answer in %r1, and looks at it.
  LaunchResult expect(llvm::StringRef body,
                      std::function<uint32_t(unsigned)> wanted) {
    LaunchResult result =
        runClean(kernel(body + "\n" + store("%r1") + "exit;\n"));
    expectWords(wanted);
    return result;
  }
  std::string kernel(const llvm::Twine &body) {
    return KernelTest::kernel(body.str());
  }
};

TEST_F(WarpOpsTest, ShuffleUp) {
  expect("shfl.sync.up.b32 %r1|%p1, %t, 3, 0, -1;\n"
         "selp.u32 %r2, 100, 0, %p1;\nadd.u32 %r1, %r1, %r2;",
         [](unsigned i) { return i >= 3 ? i - 3 + 100 : i; });
}

TEST_F(WarpOpsTest, ShuffleDownInParts) {
  // Parts of eight lanes: c is 0x1807 plus 0x1f of the clamp's lower bits.
  expect("shfl.sync.down.b32 %r1, %t, 2, 0x181f, -1;", [](unsigned i) {
    unsigned last = i / 8 * 8 + 7;
    return i + 2 <= last ? i + 2 : i;
  });
}

TEST_F(WarpOpsTest, ShuffleButterflyAndIndex) {
  expect("shfl.sync.bfly.b32 %r1, %t, 5, 31, -1;",
         [](unsigned i) { return i ^ 5; });
  expect("shfl.sync.idx.b32 %r1, %t, 9, 31, -1;", [](unsigned) { return 9; });
  // Parts of four: the lane within the part.
  expect("shfl.sync.idx.b32 %r1, %t, 9, 0x1c1f, -1;",
         [](unsigned i) { return i / 4 * 4 + 1; });
}

TEST_F(WarpOpsTest, ShuffleOntoItsSource) {
  expect("mov.u32 %r1, %t;\nshfl.sync.down.b32 %r1, %r1, 1, 31, -1;",
         [](unsigned i) { return i < 31 ? i + 1 : 31; });
}

TEST_F(WarpOpsTest, ShuffleWaitsForItsMask) {
  // Lanes 0-15 come first, the others after their own way.
  options.schedule = Schedule::SplitLanes;
  for (uint64_t seed = 1; seed < 10; ++seed) {
    options.seed = seed;
    expect(R"(
      mov.u32 %r2, %t;
      setp.lt.u32 %p1, %t, 16;
      @%p1 bra MEET;
      add.u32 %r2, %r2, 100;
    MEET:
      shfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;
    )",
           [](unsigned i) { return i < 16 ? i + 116 : i - 16; });
  }
}

TEST_F(WarpOpsTest, EachHalfHasItsMask) {
  expect(R"(
    setp.lt.u32 %p1, %t, 16;
    selp.b32 %r3, 0xffff, 0xffff0000, %p1;
    shfl.sync.bfly.b32 %r1, %t, 1, 31, %r3;
  )",
         [](unsigned i) { return i ^ 1; });
}

TEST_F(WarpOpsTest, AShuffleFromOutsideIsARemark) {
  LaunchResult result = run(kernel(R"(
    setp.ge.u32 %p1, %t, 16;
    @%p1 exit;
    shfl.sync.down.b32 %r1, %t, 8, 31, 0xffff;
  )" + store("%r1") + "exit;\n"));
  EXPECT_TRUE(result.findings.empty());
  ASSERT_EQ(result.remarks.size(), 1u);
  EXPECT_EQ(result.remarks[0].kind, FindingKind::ShuffleMask);
  EXPECT_EQ(result.remarks[0].thread[0], 8u);
  expectWords([](unsigned i) { return i < 8 ? i + 8 : 0xdeadbeef; }, 16);
}

TEST_F(WarpOpsTest, ALaneOutsideItsMask) {
  Finding finding =
      runFaulty(kernel("shfl.sync.idx.b32 %r1, %t, 0, 31, 0xffff;\nexit;\n"),
                FindingKind::ShuffleMask);
  EXPECT_EQ(finding.message,
            "lanes 16-31 not in the mask 0xffff that it gives");
  EXPECT_EQ(finding.thread[0], 16u);
}

TEST_F(WarpOpsTest, ALaneThatDoesNotCome) {
  Finding finding = runFaulty(kernel(R"(
    setp.lt.u32 %p1, %t, 30;
    @%p1 bra VOTE;
    bar.warp.sync 0xc0000001;
    exit;
  VOTE:
    vote.sync.ballot.b32 %r1, %p1, -1;
    exit;
  )"),
                              FindingKind::ShuffleMask);
  EXPECT_TRUE(llvm::StringRef(finding.message)
                  .starts_with("lanes 30-31 of its mask 0xffffffff never come"))
      << finding.message;
}

TEST_F(WarpOpsTest, Votes) {
  expect(R"(
    setp.lt.u32 %p1, %t, 5;
    vote.sync.ballot.b32 %r1, !%p1, -1;
    vote.sync.any.pred %p2, %p1, -1;
    vote.sync.all.pred %p3, %p1, -1;
    vote.sync.uni.pred %p4, %p3, -1;
    selp.b32 %r2, 1, 0, %p2;
    selp.b32 %r3, 2, 0, %p3;
    selp.b32 %r4, 4, 0, %p4;
    or.b32 %r2, %r2, %r3;
    or.b32 %r2, %r2, %r4;
    add.u32 %r1, %r1, %r2;
  )",
         [](unsigned) { return 0xffffffe0u + 1 + 4; });
}

TEST_F(WarpOpsTest, Matches) {
  expect("and.b32 %r2, %t, 3;\nmatch.any.sync.b32 %r1, %r2, -1;",
         [](unsigned i) { return 0x11111111u << (i & 3); });
  expect("mov.u64 %rd1, 7;\nmatch.all.sync.b64 %r1|%p1, %rd1, -1;\n"
         "selp.u32 %r2, 1, 0, %p1;\nsub.u32 %r1, %r1, %r2;",
         [](unsigned) { return 0xfffffffeu; });
  expect("match.all.sync.b32 %r1|%p1, %t, -1;\nselp.u32 %r2, 1, 0, %p1;\n"
         "add.u32 %r1, %r1, %r2;",
         [](unsigned) { return 0u; });
}

TEST_F(WarpOpsTest, Reductions) {
  expect("redux.sync.add.u32 %r1, %t, -1;", [](unsigned) { return 496u; });
  expect("sub.u32 %r2, %t, 10;\nredux.sync.min.s32 %r1, %r2, -1;",
         [](unsigned) { return uint32_t(-10); });
  expect("sub.u32 %r2, %t, 10;\nredux.sync.max.u32 %r1, %r2, -1;",
         [](unsigned) { return 0xffffffffu; });
  expect("redux.sync.xor.b32 %r1, %t, -1;", [](unsigned) { return 0u; });
  expect("or.b32 %r2, %t, 32;\nredux.sync.and.b32 %r1, %r2, -1;",
         [](unsigned) { return 32u; });
}

TEST_F(WarpOpsTest, ReductionsOfFloats) {
  // Lane 3 has a NaN, the others -lane.
  const char *values = R"(
    setp.eq.u32 %p1, %t, 3;
    setp.eq.u32 %p2, %t, 9;
    selp.b32 %r2, 0x7fc00000, 0x3f800000, %p1;
    selp.b32 %r2, 0xc0000000, %r2, %p2;
    mov.b32 %f1, %r2;
  )";
  auto reduce = [&](llvm::StringRef form) {
    return std::string(values) + "redux.sync." + form.str() +
           ".f32 %f2, %f1, -1;\nmov.b32 %r1, %f2;\n";
  };
  expect(reduce("min"), [](unsigned) { return 0xc0000000u; });
  expect(reduce("max"), [](unsigned) { return 0x3f800000u; });
  expect(reduce("max.abs"), [](unsigned) { return 0x40000000u; });
  expect(reduce("min.NaN"), [](unsigned) { return 0x7fffffffu; });
}

TEST_F(WarpOpsTest, Elects) {
  expect("elect.sync %r1|%p1, -1;\nselp.u32 %r2, 50, 7, %p1;\n"
         "add.u32 %r1, %r1, %r2;",
         [](unsigned i) { return i ? 7u : 50u; });
}

TEST_F(WarpOpsTest, ActiveMaskDependsOnTheSchedule) {
  LaunchResult result = expect(R"(
    mov.u32 %r1, 0;
    setp.lt.u32 %p1, %t, 4;
    @!%p1 bra END;
    activemask.b32 %r1;
    setp.eq.u32 %p2, %r1, 15;
    @%p2 bra END;
    mov.u32 %r1, 77;
  END:
  )",
                               [](unsigned i) { return i < 4 ? 15u : 0u; });
  EXPECT_FALSE(result.proof.holds);
  EXPECT_TRUE(llvm::StringRef(result.proof.broken)
                  .ends_with("a branch depends on buffer contents"))
      << result.proof.broken;
}

TEST_F(WarpOpsTest, ClocksGoForward) {
  expect(R"(
    mov.u64 %rd1, %clock64;
    mov.u64 %rd2, %clock64;
    setp.lt.u64 %p1, %rd1, %rd2;
    selp.u32 %r1, 1, 0, %p1;
    mov.u32 %r2, %clock;
    mov.u64 %rd3, %globaltimer;
    nanosleep.u32 100;
  )",
         [](unsigned) { return 1u; });
}

TEST_F(WarpOpsTest, SpecialRegisters) {
  shape.block = {4, 4, 4};
  shape.grid = {2, 3, 1};
  words.assign(64, 0);
  options.checkRaces = false;
  runClean(KernelTest::kernel(R"(
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %tid.z;
    mov.u32 %r4, %ntid.y;
    mad.lo.u32 %r5, %r3, %r4, %r2;
    mad.lo.u32 %t, %r5, 4, %r1;
    mov.u32 %r6, %laneid;
    mov.u32 %r7, %warpid;
    mad.lo.u32 %r6, %r7, 32, %r6;
    mov.u32 %r8, %nctaid.y;
    mad.lo.u32 %r6, %r8, 1000, %r6;
    mov.u32 %r9, %lanemask_lt;
    mov.u32 %r10, %lanemask_ge;
    add.u32 %r9, %r9, %r10;
    add.u32 %r9, %r9, 1;
    add.u32 %r6, %r6, %r9;
    cvt.u64.u32 %rd1, %t;
  )" + store("%r6") + "exit;\n"));
  expectWords([](unsigned i) { return 3000 + i; }, 64);
}

TEST_F(WarpOpsTest, FormsThatAreNotKnown) {
  auto message = [&](llvm::StringRef body) {
    llvm::Expected<LaunchResult> result = tryRun(kernel(body + "\nexit;\n"));
    if (result)
      return std::string("none");
    return toString(result.takeError());
  };
  EXPECT_EQ(
      message("shfl.up.b32 %r1, %t, 1, 0;"),
      "PTX line 14: `shfl.up.b32 %r1, %t, 1, 0;`: only the form with .sync is "
      "supported");
  EXPECT_EQ(message("bar.sync.foo 0;"),
            "PTX line 14: `bar.sync.foo 0;`: modifier .foo is not supported");
  EXPECT_EQ(message("fence.acq_rel.sync_restrict::shared::cta.cluster;"),
            "PTX line 14: `fence.acq_rel.sync_restrict::shared::cta.cluster;`: "
            "only a fence of one side and for the cluster is restricted");
  EXPECT_EQ(
      message("vote.sync.ballot.pred %p1, %p2, -1;"),
      "PTX line 14: `vote.sync.ballot.pred %p1, %p2, -1;`: expected .all, "
      ".any or .uni with .pred, or .ballot.b32");
}

} // namespace
} // namespace fsr::ptx
