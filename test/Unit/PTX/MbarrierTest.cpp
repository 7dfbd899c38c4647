// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// mbarriers and what announces itself there: phases and counts, the order they
// give, copies that complete at them, and their faults.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

namespace fsr::ptx {
namespace {

class MbarrierTest : public KernelTest {
protected:
  /// A barrier for `count` arrivals, made by thread 0; %r1 is its address.
  static std::string make(const std::string &count) {
    return ".shared .align 8 .b64 bar;\n.shared .align 16 .b8 data[1024];\n"
           "mov.u32 %r1, bar;\nmov.u32 %r2, data;\n"
           "setp.eq.u32 %p1, %t, 0;\n"
           "@%p1 mbarrier.init.shared::cta.b64 [%r1], " +
           count + ";\nbar.sync 0;\n";
  }
  /// Until the phase of parity `parity` is over.
  static std::string wait(const std::string &parity,
                          const std::string &label = "w") {
    return label + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], " +
           parity + ";\n@!%p2 bra " + label + ";\n";
  }
  void everySchedule(const std::string &text,
                     llvm::function_ref<void()> look = nullptr) {
    for (Schedule schedule :
         {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps})
      for (uint64_t seed = 1; seed < 4; ++seed) {
        SCOPED_TRACE(nameOf(schedule).str());
        options.schedule = schedule;
        options.seed = seed;
        std::vector<uint32_t> before = words;
        runClean(text);
        if (look)
          look();
        words = before;
      }
    options = LaunchOptions();
  }
};

/// Each thread reads what the last thread of the block wrote before.
std::string exchange() {
  return "shl.b32 %r3, %t, 2;\nadd.u32 %r4, %r2, %r3;\n"
         "st.shared.u32 [%r4], %t;\n";
}
std::string readBack() {
  return "xor.b32 %r5, %r3, 252;\nadd.u32 %r5, %r5, %r2;\n"
         "ld.shared.u32 %r6, [%r5];\n";
}

TEST_F(MbarrierTest, OrdersTheThreadsOfABlock) {
  shape.block = {64, 1, 1};
  std::string text =
      kernel(make("64") + exchange() +
             "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\n"
             "w:\nmbarrier.try_wait.shared::cta.b64 %p2, [%r1], %rd1;\n"
             "@!%p2 bra w;\n" +
             readBack() + store("%r6") + "ret;");
  everySchedule(text, [&] {
    for (unsigned t = 0; t < 64; ++t)
      EXPECT_EQ(words[t], 63 - t);
  });
  // A relaxed wait gives no order.
  runFaulty(kernel(make("64") + exchange() +
                   "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\nw:\n"
                   "mbarrier.try_wait.relaxed.cta.shared::cta.b64 %p2, [%r1], "
                   "%rd1;\n@!%p2 bra w;\n" +
                   readBack() + store("%r6") + "ret;"),
            FindingKind::SharedRace);
}

TEST_F(MbarrierTest, Phases) {
  shape.block = {64, 1, 1};
  std::string body = make("64");
  for (unsigned phase = 0; phase < 4; ++phase)
    body += exchange() + "mbarrier.arrive.shared::cta.b64 _, [%r1];\n" +
            wait(std::to_string(phase & 1), "a" + std::to_string(phase)) +
            readBack() + "bar.sync 0;\n";
  everySchedule(kernel(body + store("%r6") + "ret;"));
  // Before the first phase, the one of parity 1 counts as over.
  runClean(kernel(make("64") + wait("1") + "ret;"));
}

TEST_F(MbarrierTest, TestWaitAnswersAtOnce) {
  runClean(kernel(make("1") +
                  "mbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0;\n"
                  "selp.u32 %r3, 1, 0, %p2;\nbar.warp.sync 0xffffffff;\n"
                  "@%p1 mbarrier.arrive.shared.b64 %rd1, [%r1];\n"
                  "bar.warp.sync 0xffffffff;\n"
                  "mbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0;\n"
                  "selp.u32 %r4, 2, 0, %p2;\nadd.u32 %r3, %r3, %r4;\n" +
                  store("%r3") + "ret;"));
  EXPECT_EQ(words[0], 2u);
  EXPECT_EQ(words[31], 2u);
}

TEST_F(MbarrierTest, TryWaitMayBeAskedInVain) {
  // The thread itself arrives once it has been told no.
  shape.block = {1, 1, 1};
  runClean(kernel(make("1") +
                  "mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0, 100;\n"
                  "selp.u32 %r3, 1, 0, %p2;\n"
                  "mbarrier.arrive.shared.b64 %rd1, [%r1];\n" +
                  wait("0") + store("%r3") + "ret;"));
  EXPECT_EQ(words[0], 0u);
}

TEST_F(MbarrierTest, CountsAndDrops) {
  std::string text =
      kernel(make("40") +
             // 32 arrivals, one of which drops out, then 8 at once.
             "@%p1 mbarrier.arrive_drop.shared.b64 %rd1, [%r1];\n"
             "@!%p1 mbarrier.arrive.shared.b64 %rd1, [%r1];\n"
             "bar.warp.sync 0xffffffff;\n"
             "mbarrier.pending_count.b64 %r5, %rd1;\n"
             "@%p1 mbarrier.arrive.shared.b64 %rd2, [%r1], 8;\n" +
             wait("0") +
             "@%p1 mbarrier.arrive.shared.b64 %rd2, [%r1], 7;\n"
             "mbarrier.arrive.shared.b64 %rd2, [%r1];\n" +
             wait("1", "x") + store("%r5") + "ret;");
  runClean(text);
  EXPECT_EQ(words[0], 40u);
  EXPECT_EQ(words[31], 9u);
}

TEST_F(MbarrierTest, BytesComplete) {
  std::string text = kernel(
      make("1") +
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 512;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%r2], [%out], 256, [%r1];\n"
      "add.u64 %rd1, %out, 256;\nadd.u32 %r3, %r2, 256;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%r3], [%rd1], 256, [%r1];\n" +
      wait("0") +
      "shl.b32 %r3, %t, 2;\nadd.u32 %r4, %r2, %r3;\n"
      "ld.shared.u32 %r5, [%r4+256];\nadd.u32 %r5, %r5, 5;\n"
      "st.shared.u32 [%r4+512], %r5;\nfence.proxy.async.shared::cta;\n"
      "bar.warp.sync 0xffffffff;\n"
      "add.u32 %r6, %r2, 512;\n"
      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r6], 128;\n"
      "@%p1 cp.async.bulk.commit_group;\n"
      "@%p1 cp.async.bulk.wait_group.read 0;\nret;");
  words.resize(128);
  for (unsigned i = 0; i < 128; ++i)
    words[i] = i * 3;
  everySchedule(text, [&] {
    for (unsigned t = 0; t < 32; ++t)
      EXPECT_EQ(words[t], (64 + t) * 3 + 5);
    EXPECT_EQ(words[32], 96u);
  });
}

TEST_F(MbarrierTest, BytesUnderWay) {
  std::string issue =
      "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;\n"
      "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%r2], [%out], 256, [%r1];\n";
  std::string read = "ld.shared.u32 %r5, [%r2];\n" + store("%r5") + "ret;";
  LaunchResult result = run(kernel(make("1") + issue + read));
  EXPECT_TRUE(llvm::any_of(result.findings, [](const Finding &finding) {
    return finding.kind == FindingKind::AsyncInFlight &&
           finding.ptxText == "ld.shared.u32 %r5, [%r2];";
  }));
  // More bytes are expected than come.
  runFaulty(kernel(make("1") +
                   "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], "
                   "16;\n" +
                   issue + wait("0") + read),
            FindingKind::Deadlock);
  runFaulty(
      kernel(make("1") +
             "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
             "bytes [%r2], [%out], 24, [%r1];\nret;"),
      FindingKind::Misaligned);
}

TEST_F(MbarrierTest, AnswersUnderAGuardAreWritten) {
  // Who does not ask keeps a predicate that was never written.
  runClean(kernel(make("1") +
                  "@%p1 mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 1;\n"
                  "@!%p1 bra done;\nmov.u32 %r3, 0;\n@%p2 mov.u32 %r3, 7;\n" +
                  store("%r3") + "done:\nret;"));
  EXPECT_EQ(words[0], 7u);
}

TEST_F(MbarrierTest, ManyCopiesUnderWay) {
  // More than are kept.
  words[0] = 5;
  runClean(
      kernel(make("1") +
             "@!%p1 ret;\nmov.u32 %r3, 0;\n"
             "st.shared.u32 [%r2], %r3;\nst.shared.u32 [%r2+4], %r3;\n"
             "st.shared.u32 [%r2+8], %r3;\nst.shared.u32 [%r2+12], %r3;\n"
             "copy:\n"
             "cp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 16;\n"
             "cp.async.bulk.commit_group;\nadd.u32 %r3, %r3, 1;\n"
             "setp.lt.u32 %p2, %r3, 10000;\n@%p2 bra copy;\n"
             "cp.async.bulk.wait_group 0;\nret;"));
  EXPECT_EQ(words[0], 0u);
}

TEST_F(MbarrierTest, CopiesOfThreadsArrive) {
  shape.block = {64, 1, 1};
  for (const char *noinc : {".noinc", ""}) {
    std::string arrive = *noinc ? "" : "mbarrier.arrive.shared.b64 _, [%r1];\n";
    std::string text = kernel(
        make("64") +
        "shl.b32 %r3, %t, 2;\nadd.u32 %r4, %r2, %r3;\n"
        "cvt.u64.u32 %rd1, %r3;\nadd.u64 %rd1, %rd1, %out;\n"
        "cp.async.ca.shared.global [%r4], [%rd1], 4;\n"
        "cp.async.mbarrier.arrive" +
        noinc + ".shared.b64 [%r1];\n" + arrive + wait("0") + readBack() +
        "add.u32 %r6, %r6, 1;\nbar.sync 0;\n" + store("%r6") + "ret;");
    for (unsigned i = 0; i < 64; ++i)
      words[i] = i * 7;
    everySchedule(text, [&] {
      for (unsigned t = 0; t < 64; ++t)
        EXPECT_EQ(words[t], (63 - t) * 7 + 1);
    });
  }
}

/// Thread 0 fills two stages by copies, warps 1 and 2 read both, 6 rounds;
/// `before` stands before one lane a warp says that a stage is free.
std::string stages(const std::string &before) {
  return ".shared .align 8 .b64 bars[4];\n.shared .align 16 .b8 data[256];\n"
         "mov.u32 %r1, bars;\nmov.u32 %r2, data;\n"
         "setp.eq.u32 %p1, %t, 0;\nsetp.lt.u32 %p3, %t, 32;\n"
         "and.b32 %r9, %t, 31;\nsetp.eq.u32 %p4, %r9, 0;\n"
         "@%p1 mbarrier.init.shared.b64 [%r1], 1;\n"
         "@%p1 mbarrier.init.shared.b64 [%r1+8], 1;\n"
         "@%p1 mbarrier.init.shared.b64 [%r1+16], 2;\n"
         "@%p1 mbarrier.init.shared.b64 [%r1+24], 2;\n"
         "bar.sync 0;\nmov.u32 %r3, 0;\nmov.u32 %r10, 0;\nround:\n"
         // The stage, its barriers and data; the parity.
         "and.b32 %r4, %r3, 1;\nshl.b32 %r5, %r4, 3;\n"
         "add.u32 %r5, %r5, %r1;\nshl.b32 %r6, %r4, 7;\n"
         "add.u32 %r6, %r6, %r2;\nshr.u32 %r7, %r3, 1;\n"
         "and.b32 %r7, %r7, 1;\nxor.b32 %r8, %r7, 1;\n"
         "@!%p3 bra consume;\n@!%p1 bra next;\nfree:\n"
         "mbarrier.try_wait.parity.shared.b64 %p2, [%r5+16], %r8;\n"
         "@!%p2 bra free;\n"
         "mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 128;\n"
         "mad.wide.u32 %rd1, %r3, 128, %out;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
         "[%r6], [%rd1], 128, [%r5];\nbra next;\nconsume:\n"
         "mbarrier.try_wait.parity.shared.b64 %p2, [%r5], %r7;\n"
         "@!%p2 bra consume;\n"
         "mad.lo.u32 %r11, %r9, 4, %r6;\nld.shared.u32 %r12, [%r11];\n"
         "add.u32 %r10, %r10, %r12;\nld.shared.u32 %r12, [%r6];\n"
         "add.u32 %r10, %r10, %r12;\n" +
         before +
         "@%p4 mbarrier.arrive.shared.b64 _, [%r5+16];\nnext:\n"
         "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %p5, %r3, 6;\n"
         "@%p5 bra round;\nbar.sync 0;\nadd.u64 %out, %out, 768;\n";
}

TEST_F(MbarrierTest, Stages) {
  shape.block = {96, 1, 1};
  words.assign(192 + 96, 0);
  for (unsigned i = 0; i < 192; ++i)
    words[i] = i;
  // One lane speaks for its warp; thread 32 for two warps.
  for (const char *before :
       {"bar.warp.sync 0xffffffff;\n", "bar.sync 1, 64;\n"})
    everySchedule(kernel(stages(before) + store("%r10") + "ret;"), [&] {
      for (unsigned t = 0; t < 96; ++t)
        EXPECT_EQ(words[192 + t], t < 32 ? 0 : 15 * 32 * 2 + 6 * (t % 32));
    });
  // The others of the warp may still be reading.
  LaunchResult result = run(kernel(stages("") + store("%r10") + "ret;"));
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].kind, FindingKind::SharedRace);
}

TEST_F(MbarrierTest, Faults) {
  // Not made; made without a barrier behind it; too many arrivals; too few.
  runFaulty(kernel(".shared .align 8 .b64 bar;\nmov.u32 %r1, bar;\n"
                   "mbarrier.arrive.shared.b64 _, [%r1];\nret;"),
            FindingKind::Uninitialized);
  shape.block = {64, 1, 1};
  runFaulty(kernel(".shared .align 8 .b64 bar;\nmov.u32 %r1, bar;\n"
                   "setp.eq.u32 %p1, %t, 0;\n"
                   "@%p1 mbarrier.init.shared.b64 [%r1], 64;\n"
                   "bar.warp.sync 0xffffffff;\n"
                   "mbarrier.arrive.shared.b64 _, [%r1];\nret;"),
            FindingKind::SharedRace);
  runFaulty(kernel(make("64") +
                   "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1], 16;\n"
                   "mbarrier.arrive.shared.b64 _, [%r1];\n"
                   "bar.sync 0;\n"
                   "@%p1 mbarrier.arrive.shared.b64 _, [%r1];\nret;"),
            FindingKind::BarrierMismatch);
  Finding finding =
      runFaulty(kernel(make("65") + "mbarrier.arrive.shared.b64 _, [%r1];\n" +
                       wait("0") + "ret;"),
                FindingKind::Deadlock);
  EXPECT_NE(finding.message.find("mbarrier.try_wait"), std::string::npos);
  runFaulty(kernel(make("1") +
                   "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1], "
                   "1048576;\nret;"),
            FindingKind::BarrierMismatch);
  // The parity that is waited for was never written.
  runFaulty(kernel(make("1") + "@%p1 mbarrier.arrive.shared.b64 _, [%r1];\n" +
                   wait("%r20") + "ret;"),
            FindingKind::Uninitialized);
  runFaulty(kernel(make("1048576") + "ret;"), FindingKind::BarrierMismatch);
  runFaulty(kernel(make("1") +
                   "@%p1 mbarrier.inval.shared.b64 [%r1];\nbar.sync 0;\n"
                   "mbarrier.arrive.shared.b64 _, [%r1];\nret;"),
            FindingKind::Uninitialized);
}

TEST_F(MbarrierTest, BarrierOfACluster) {
  shape.block = {64, 1, 1};
  std::string body = make("1") + exchange() + "barrier.cluster.arrive";
  std::string rest = ";\nbarrier.cluster.wait.acquire.aligned;\n" + readBack() +
                     store("%r6") + "ret;";
  everySchedule(kernel(body + ".release.aligned" + rest),
                [&] { EXPECT_EQ(words[3], 60u); });
  runFaulty(kernel(body + ".relaxed.aligned" + rest), FindingKind::SharedRace);
  runFaulty(kernel("barrier.cluster.wait;\nret;"),
            FindingKind::BarrierMismatch);
}

TEST_F(MbarrierTest, WhatIsNotDone) {
  auto message = [&](const std::string &line) {
    llvm::Expected<LaunchResult> result = tryRun(kernel(line + "\nret;"));
    return result ? std::string() : toString(result.takeError());
  };
  EXPECT_NE(message("cp.async.bulk.tensor.1d.shared::cluster.global.tile."
                    "mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];")
                .find("copies by a tensor map are not supported"),
            std::string::npos);
  EXPECT_NE(message("mbarrier.arrive.acquire.cta.shared.b64 _, [%r1];")
                .find("modifier .acquire is not supported"),
            std::string::npos);
  EXPECT_NE(message("fence.proxy.tensormap::generic.release.gpu;")
                .find("modifier .tensormap::generic is not supported"),
            std::string::npos);
}

} // namespace
} // namespace fsr::ptx
