// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Evaluations on the virtual device: real memory and real PTX for original
// and candidate, findings that become verdicts, a model in place of a clock.
//
//===----------------------------------------------------------------------===//

#include "WorkerHarness.h"

#include "fsr/Backend/VirtualBackend.h"

#include "gtest/gtest.h"

namespace fsr {
namespace {

/// 8 blocks of 128 threads, each with one element; `body` goes from its
/// addresses %rd4 and %rd5.
std::string candidatePtx(llvm::StringRef body) {
  return (R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry fast(.param .u64 x, .param .u64 y) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b8 tile[512];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 128, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
)" + body +
          "  ret;\n}\n")
      .str();
}

constexpr llvm::StringLiteral right = R"(  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
)";

class VirtualWorker : public testing::Test {
protected:
  VirtualWorker() : backend(cantFail(openVirtualBackend())) {
    trying.task.launch.block = {32, 1, 1};
    ResolvedLaunch &launch = trying.plan.launches[0];
    launch.shape.grid = {8, 1, 1};
    launch.shape.block = {128, 1, 1};
  }
  Ran run(llvm::StringRef body, const std::string &original = scalePtx()) {
    RunningWorker worker(*backend);
    Ran ran = trying.runImages(worker, original, candidatePtx(body));
    ran.status = worker.finish();
    return ran;
  }
  std::unique_ptr<Backend> backend;
  Trying trying;
};

TEST_F(VirtualWorker, AcceptsWhatTheModelCallsFaster) {
  Ran ran = run(right);
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Accepted) << ran.result->message;
  EXPECT_EQ(ran.result->evidence.level, EvidenceLevel::Modelled);
  EXPECT_EQ(ran.result->evidence.device, "virtual sm_90");
  const Measurement &m = *ran.result->measurement;
  EXPECT_GT(m.speedup, 1);
  EXPECT_EQ(m.speedupLow, m.speedup);
  EXPECT_EQ(m.speedupHigh, m.speedup);
  EXPECT_EQ(m.originalUs.size(), 1u);
  for (llvm::StringRef name :
       {"exact-inputs", "workload-inputs", "input-battery",
        "schedule-split-lanes", "schedule-random-warps", "virtual-device",
        "proved-safe@shape", "unread-inputs"})
    EXPECT_TRUE(findCheck(*ran.result, name)->passed) << name.str();
  EXPECT_EQ(findCheck(*ran.result, "unread-inputs")->detail,
            "the candidate reads all that the original reads");
  EXPECT_EQ(ran.status, 0);
}

/// With two variables of the module.
std::string withVariables(llvm::StringRef body) {
  std::string ptx = candidatePtx(body);
  ptx.insert(ptx.find(".visible"), ".global .align 4 .u32 table = 5;\n"
                                   ".global .align 4 .u32 state = 7;\n");
  return ptx;
}

TEST_F(VirtualWorker, VariablesOfTheModuleMayNotChange) {
  for (llvm::StringRef change :
       {"atom.global.add.u32 %r5, [state], 1;\n",
        // By one thread of one launch of many.
        "mov.u32 %r5, %ctaid.x;\n setp.eq.u32 %p1, %r5, 3;\n"
        "mov.u32 %r5, %tid.x;\n setp.eq.and.u32 %p2, %r5, 77, %p1;\n"
        "@%p2 st.global.u32 [state], 8;\n"}) {
    RunningWorker worker(*backend);
    Ran ran = trying.runImages(worker, scalePtx(),
                               withVariables((right + change).str()));
    EXPECT_EQ(worker.finish(), 0);
    ASSERT_TRUE(ran.result) << ran.error;
    EXPECT_EQ(ran.result->verdict, Verdict::Rejected);
    EXPECT_TRUE(llvm::StringRef(ran.result->message)
                    .contains("the module variable `state` was changed"))
        << ran.result->message;
    EXPECT_FALSE(findCheck(*ran.result, "module-variables")->passed);
  }
}

TEST_F(VirtualWorker, VariablesOfTheModuleMayBeRead) {
  RunningWorker worker(*backend);
  Ran ran = trying.runImages(
      worker, scalePtx(),
      withVariables((right + "ld.global.u32 %r5, [table];\n").str()));
  EXPECT_EQ(worker.finish(), 0);
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Accepted) << ran.result->message;
  EXPECT_TRUE(findCheck(*ran.result, "module-variables")->passed);
}

TEST_F(VirtualWorker, AQuickLookAcceptsNothing) {
  trying.options.full = false;
  Ran ran = run(right);
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Undecided) << ran.result->message;
  EXPECT_EQ(ran.result->evidence.level, EvidenceLevel::None);
  EXPECT_TRUE(ran.result->measurement);
}

TEST_F(VirtualWorker, FindsWrongValues) {
  Ran ran = run(R"(  ld.global.f32 %f1, [%rd4];
  st.global.f32 [%rd5], %f1;
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Mismatch) << ran.result->message;
}

/// Reads past the end are no fault on most GPUs, and here they are.
TEST_F(VirtualWorker, AReadPastTheEndIsUnsafe) {
  Ran ran = run(R"(  ld.global.f32 %f1, [%rd4];
  ld.global.f32 %f3, [%rd4+8];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Unsafe);
  EXPECT_NE(ran.result->message.find("out of bounds in fast (PTX line"),
            std::string::npos)
      << ran.result->message;
  EXPECT_NE(ran.result->message.find(" (argument x)"), std::string::npos)
      << ran.result->message;
  EXPECT_EQ(ran.status, 3); // As on a GPU, the context is dead.
}

TEST_F(VirtualWorker, AMisalignmentSaysWhatIsProved) {
  Ran ran = run(R"(  ld.global.v2.f32 {%f1, %f3}, [%rd4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Unsafe);
  llvm::StringRef message = ran.result->message;
  EXPECT_TRUE(message.starts_with("misaligned in fast") &&
              message.contains(" (argument x), which is not a multiple of 8; "
                               "the task proves x to be aligned to 4 bytes and "
                               "no more: "))
      << message.str();
}

/// As the original, with one instruction less a round.
TEST_F(VirtualWorker, ASmallModelledGainIsNone) {
  trying.plan.launches[0].shape.grid = {1, 1, 1};
  trying.plan.launches[0].shape.block = {32, 1, 1};
  Ran ran = run(R"(loop:
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
  add.s64 %rd4, %rd4, 128;
  add.s64 %rd5, %rd5, 128;
  add.u32 %r3, %r3, 32;
  setp.lt.u32 %p1, %r3, 1024;
  @%p1 bra loop;
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::NotFaster))
      << ran.result->message;
  EXPECT_GT(ran.result->measurement->speedup, 1);
  EXPECT_TRUE(llvm::StringRef(ran.result->message)
                  .contains("; the model does not tell a gain of less than 10 "
                            "%"))
      << ran.result->message;
}

/// Whatever the alignment that is proved: there is no slack behind a buffer.
TEST_F(VirtualWorker, TheFirstByteBehindABufferIsOutOfBounds) {
  for (llvm::StringRef past : {"  ld.global.f32 %f3, [%rd4+4];\n",
                               "  st.global.f32 [%rd5+4], %f1;\n"}) {
    backend = cantFail(openVirtualBackend());
    Ran ran = run(("  ld.global.f32 %f1, [%rd4];\n" + past +
                   "  add.f32 %f2, %f1, %f1;\n"
                   "  bar.sync 0;\n"
                   "  st.global.f32 [%rd5], %f2;\n")
                      .str());
    ASSERT_TRUE(ran.result) << ran.error;
    EXPECT_EQ(ran.result->verdict, Verdict::Unsafe);
    llvm::StringRef message = ran.result->message;
    EXPECT_TRUE(message.contains("out of bounds in fast (PTX line ") &&
                message.contains("4 bytes at the end of an allocation of 4096 "
                                 "bytes") &&
                message.contains("thread (127,0,0)"))
        << message.str();
  }
}

/// Answers of an original are kept while one candidate is looked at.
TEST_F(VirtualWorker, AnswersOfAnotherOriginalAreNotUsed) {
  std::string other = scalePtx();
  llvm::StringRef sum = "add.f32 %f2, %f1, %f1";
  other.replace(other.find(sum.str()), sum.size(), "add.f32 %f2, %f1, 1.0");
  trying.options.measure = false;
  RunningWorker worker(*backend);
  for (unsigned turn = 0; turn < 2; ++turn)
    for (const std::string &original : {scalePtx(), other}) {
      Ran ran = trying.runImages(worker, original, candidatePtx(right));
      ASSERT_TRUE(ran.result) << ran.error;
      EXPECT_EQ(
          nameOf(ran.result->verdict),
          nameOf(original == other ? Verdict::Mismatch : Verdict::Undecided))
          << ran.result->message;
    }
  EXPECT_EQ(worker.finish(), 0);
}

TEST_F(VirtualWorker, AnOriginalThatIsTooLargeIsNotRun) {
  trying.task.work.flops = 1e12;
  Ran ran = run(right);
  EXPECT_FALSE(ran.result);
  EXPECT_NE(
      ran.error.find("needs 1.00e+12 operations, which take 7.81e+09 warp "
                     "instructions or more, and the virtual device takes "
                     "1.00e+09"),
      std::string::npos)
      << ran.error;
}

TEST_F(VirtualWorker, AnInstructionThatIsNotSupportedIsNamed) {
  llvm::StringRef wgmma = "  wgmma.fence.sync.aligned;\n";
  Ran ran = run((wgmma + right).str());
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::LaunchFailed);
  llvm::StringRef message = ran.result->message;
  EXPECT_TRUE(message.contains("'fast'") &&
              message.contains("PTX line 18: `wgmma.fence.sync.aligned;`: "
                               "instructions of several warps' tensor cores "
                               "are not supported"))
      << message.str();

  backend = cantFail(openVirtualBackend());
  std::string original = scalePtx();
  original.insert(original.find("loop:"), wgmma.str());
  ran = run(right, original);
  EXPECT_FALSE(ran.result);
  message = ran.error;
  EXPECT_TRUE(message.starts_with("the virtual device cannot run the original "
                                  "kernel: ") &&
              message.contains("'scale'") && message.contains("PTX line 15: "))
      << message.str();
}

TEST_F(VirtualWorker, FindingsAreToldOnce) {
  Ran ran = run(R"(  ld.global.f32 %f1, [%rd4];
  ld.global.f32 %f3, [%rd4+4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_TRUE(
      llvm::StringRef(ran.result->message).starts_with("out of bounds in"))
      << ran.result->message;
  EXPECT_EQ(findCheck(*ran.result, "virtual-device")->detail, "out of bounds");
}

TEST_F(VirtualWorker, ARaceIsUnsafe) {
  Ran ran = run(R"(  mov.u32 %r4, tile;
  mad.lo.u32 %r5, %r1, 4, %r4;
  ld.global.f32 %f1, [%rd4];
  st.shared.f32 [%r5], %f1;
  xor.b32 %r6, %r1, 64;
  mad.lo.u32 %r7, %r6, 4, %r4;
  ld.shared.f32 %f3, [%r7];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Unsafe);
  EXPECT_NE(ran.result->message.find("shared memory race"), std::string::npos)
      << ran.result->message;
  EXPECT_EQ(ran.status, 0);
}

TEST_F(VirtualWorker, ReadingAnOutputIsUnsafe) {
  Ran ran = run(R"(  ld.global.f32 %f1, [%rd4];
  ld.global.f32 %f3, [%rd5];
  setp.eq.f32 %p1, %f3, 0f3F800000;
  @%p1 bra end;
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
end:
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Unsafe);
  EXPECT_NE(ran.result->message.find("uninitialized"), std::string::npos)
      << ran.result->message;
}

TEST_F(VirtualWorker, WritingAnInputIsUnsafe) {
  Ran ran = run((right + "  st.global.f32 [%rd4], %f1;\n").str());
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Unsafe);
  EXPECT_NE(ran.result->message.find("read-only"), std::string::npos)
      << ran.result->message;
}

TEST_F(VirtualWorker, AnEndlessLoopTimesOut) {
  Ran ran = run(R"(again:
  bra again;
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::TimedOut) << ran.result->message;
  EXPECT_NE(ran.result->message.find("warp instructions"), std::string::npos)
      << ran.result->message;
}

TEST_F(VirtualWorker, ATrapCrashes) {
  Ran ran = run("  trap;\n");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Crashed) << ran.result->message;
}

TEST_F(VirtualWorker, ABrokenOriginalIsAnError) {
  std::string original = scalePtx();
  size_t at = original.find("1024");
  original.replace(at, 4, "1056");
  Ran ran = run(right, original);
  EXPECT_FALSE(ran.result);
  EXPECT_NE(ran.error.find("the original kernel: out of bounds"),
            std::string::npos)
      << ran.error;
}

} // namespace
} // namespace fsr
