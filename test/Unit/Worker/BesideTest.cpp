// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What stands beside a GPU: plans on a virtual GPU of one's own, whole and in
// part, and evaluations on a device that shows no fault of what it ran.
//
//===----------------------------------------------------------------------===//

#include "Beside.h"
#include "CopiedTask.h"
#include "WorkerHarness.h"

#include "fsr/Support/Hash.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace fsr;

namespace {

/// `blocks` of 128 threads, an element each: `body` goes from its places %in
/// and %out, those of the buffers %x, %y and %s (scratch), %i and %block.
std::string kernel(llvm::StringRef name, llvm::StringRef body) {
  return (".visible .entry " + name +
          R"((.param .u64 px, .param .u64 py, .param .u64 ps) {
  .reg .pred %p<6>;
  .reg .b32 %r<12>, %i, %block, %lane;
  .reg .f32 %f<8>;
  .reg .b64 %x, %y, %s, %in, %out, %off, %rd<8>;
  .shared .align 4 .b8 tile[512];
  ld.param.u64 %x, [px];
  ld.param.u64 %y, [py];
  ld.param.u64 %s, [ps];
  mov.u32 %lane, %tid.x;
  mov.u32 %block, %ctaid.x;
  mad.lo.u32 %i, %block, 128, %lane;
  mul.wide.u32 %off, %i, 4;
  add.s64 %in, %x, %off;
  add.s64 %out, %y, %off;
)" + body +
          "  ret;\n}\n")
      .str();
}

std::string module(llvm::StringRef kernels) {
  return (".version 8.0\n.target sm_80\n.address_size 64\n" + kernels).str();
}

constexpr llvm::StringLiteral doubles = R"(  ld.global.f32 %f1, [%in];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%out], %f2;
)";

TEST(CopiedTaskTest, WhatIsTooLargeToFollowIsRefused) {
  KernelTask none;
  CopiedTask copied(none);
  llvm::Error error = copied.open(module(""), {});
  ASSERT_EQ(llvm::toString(std::move(error)), "");
  EXPECT_TRUE(bool(copied.addScratch(uint64_t(1) << 20)));
  auto at = copied.addScratch((uint64_t(16) << 30) + 1);
  ASSERT_FALSE(bool(at));
  llvm::Error refused = at.takeError();
  EXPECT_EQ(kindOf(refused), ErrorKind::Unsupported);
  EXPECT_EQ(llvm::toString(std::move(refused)),
            "a buffer of 17179869185 bytes is larger than the 17179869184 that "
            "are followed in a copy");
}

class BesideTest : public ::testing::Test {
protected:
  BesideTest() {
    setBlocks(8);
    limits.instructions = 100'000;
  }
  void setBlocks(int64_t blocks, llvm::ArrayRef<const char *> kernels = {"k"}) {
    task.arguments = {
        bufferArgument("x", ElementType::F32, {blocks * 128}, Access::Read),
        bufferArgument("y", ElementType::F32, {blocks * 128}, Access::Write)};
    input.assign(size_t(blocks) * 128, 1.5f);
    plan = ResolvedPlan();
    plan.scratch = {{"s", blocks * 128 * 4, false}};
    for (const char *name : kernels) {
      ResolvedLaunch launch;
      launch.kernel = name;
      launch.args = {"x", "y", "s"};
      launch.shape.grid = {blocks, 1, 1};
      launch.shape.block = {128, 1, 1};
      plan.launches.push_back(launch);
    }
  }
  BesideReport run(const std::string &ptx) {
    Beside beside(task, plan, ptx, {}, 7);
    return run(beside);
  }
  BesideReport run(Beside &beside) {
    fetched = 0;
    auto report = beside.run(
        limits, {},
        [&](size_t, uint64_t offset, void *to, uint64_t bytes) -> llvm::Error {
          memcpy(to, reinterpret_cast<const char *>(input.data()) + offset,
                 bytes);
          fetched += bytes;
          return llvm::Error::success();
        });
    if (!report) {
      ADD_FAILURE() << llvm::toString(report.takeError());
      return {};
    }
    return std::move(*report);
  }
  static std::string textOf(const BesideReport &report) {
    std::string text;
    for (const ptx::Finding &finding : report.findings)
      text += finding.text() + "\n";
    return text;
  }

  KernelTask task = Trying().task;
  ResolvedPlan plan;
  BesideLimits limits;
  std::vector<float> input;
  uint64_t fetched = 0;
};

TEST_F(BesideTest, AWholeGridThatIsRightIsProved) {
  BesideReport report = run(module(kernel("k", doubles)));
  EXPECT_EQ(report.why, "");
  EXPECT_EQ(textOf(report), "");
  EXPECT_EQ(report.part, "all 8 blocks");
  EXPECT_TRUE(report.isWhole);
  EXPECT_TRUE(report.proof.holds) << report.proof.broken;
  EXPECT_EQ(report.instructions, 8u * 4 * 13);
  EXPECT_TRUE(report.outputs);
}

TEST_F(BesideTest, InputsThatSteerBreakTheProof) {
  BesideReport report = run(module(kernel("k", R"(  ld.global.f32 %f1, [%in];
  setp.gt.f32 %p1, %f1, 0f00000000;
  @%p1 bra here;
  add.f32 %f1, %f1, %f1;
here:
  st.global.f32 [%out], %f1;
)")));
  EXPECT_EQ(textOf(report), "");
  EXPECT_TRUE(report.isWhole);
  EXPECT_FALSE(report.proof.holds);
  EXPECT_NE(report.proof.broken, "");
}

TEST_F(BesideTest, AReadPastTheEndIsFound) {
  BesideReport report = run(module(kernel("k", R"(  ld.global.f32 %f1, [%in+8];
  st.global.f32 [%out], %f1;
)")));
  EXPECT_TRUE(llvm::StringRef(textOf(report)).starts_with("out of bounds in k"))
      << textOf(report);
  EXPECT_FALSE(report.isWhole);
}

/// Of 20,000 blocks, the last reads beyond the buffer: it always runs.
TEST_F(BesideTest, PartOfALargeGridHasTheLastBlock) {
  setBlocks(20'000);
  limits.instructions = 5200;
  limits.smallBytes = 1024;
  BesideReport right = run(module(kernel("k", doubles)));
  EXPECT_EQ(textOf(right), "");
  EXPECT_FALSE(right.isWhole);
  EXPECT_FALSE(right.proof.holds);
  EXPECT_EQ(right.part, "100 of 20000 blocks, drawn at random");
  EXPECT_LT(fetched, input.size() * 4 / 2);
  EXPECT_GE(fetched, 100u * 512);
  BesideReport wrong = run(module(kernel("k", R"(  ld.global.f32 %f1, [%in+8];
  st.global.f32 [%out], %f1;
)")));
  EXPECT_NE(textOf(wrong).find("out of bounds"), std::string::npos);
}

/// Addresses that come from what is read: fetched in a second turn.
TEST_F(BesideTest, WhatAddressesDependOnIsFetched) {
  setBlocks(8);
  limits.smallBytes = 0;
  for (size_t i = 0; i < input.size(); ++i) {
    uint32_t far = uint32_t((i * 37) % input.size());
    memcpy(&input[i], &far, 4);
  }
  BesideReport report = run(module(kernel("k", R"(  ld.global.u32 %r1, [%in];
  mul.wide.u32 %rd1, %r1, 4;
  add.s64 %rd2, %x, %rd1;
  ld.global.u32 %r2, [%rd2];
  mul.wide.u32 %rd1, %r2, 4;
  add.s64 %rd2, %x, %rd1;
  ld.global.f32 %f1, [%rd2];
  st.global.f32 [%out], %f1;
)")));
  EXPECT_EQ(report.why, "");
  EXPECT_EQ(textOf(report), "");
  EXPECT_TRUE(report.isWhole);
}

constexpr llvm::StringLiteral produces = R"(  add.s64 %rd1, %s, %off;
  ld.global.f32 %f1, [%in];
  st.global.f32 [%rd1], %f1;
)";
/// Of scratch, from the other end of the grid.
std::string consumes(int64_t blocks) {
  return (R"(  xor.b32 %r1, %i, )" + llvm::Twine(blocks * 128 - 1) + R"(;
  mul.wide.u32 %rd1, %r1, 4;
  add.s64 %rd1, %s, %rd1;
  ld.global.f32 %f1, [%rd1];
  add.f32 %f1, %f1, %f1;
)")
      .str();
}

TEST_F(BesideTest, SecondLaunchesReadWhatTheFirstWrote) {
  setBlocks(8, {"k", "l"});
  std::string ptx =
      module(kernel("k", produces) +
             kernel("l", consumes(8) + "  st.global.f32 [%out], %f1;\n"));
  BesideReport report = run(ptx);
  EXPECT_EQ(textOf(report), "");
  EXPECT_TRUE(report.isWhole);
  EXPECT_EQ(report.part, "launch 1: all 8 blocks; launch 2: all 8 blocks");
  // Without the first one it is a fault.
  std::swap(plan.launches[0], plan.launches[1]);
  EXPECT_NE(textOf(run(ptx)).find("uninitialized"), std::string::npos);
}

/// Nothing that blocks which did not run would have written is a fault; what
/// does not hang on that still is.
TEST_F(BesideTest, UnknownResultsOfAPartAreNoFault) {
  setBlocks(2048, {"k", "l"});
  limits.instructions = 12'000;
  std::string reads = consumes(2048);
  auto with = [&](llvm::StringRef body) {
    return run(module(kernel("k", produces) + kernel("l", reads + body.str())));
  };
  BesideReport report = with("  st.global.f32 [%out], %f1;\n");
  EXPECT_EQ(report.why, "");
  EXPECT_EQ(textOf(report), "");
  EXPECT_FALSE(report.isWhole);
  // As an index, or a condition, it tells nothing.
  report = with(R"(  cvt.rzi.u32.f32 %r2, %f1;
  add.u32 %r2, %r2, 1000000;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd2, %x, %rd2;
  ld.global.f32 %f2, [%rd2];
  st.global.f32 [%out], %f2;
)");
  EXPECT_EQ(textOf(report), "");
  EXPECT_NE(report.part.find("no findings, since its course depends"),
            std::string::npos)
      << report.part;
  report = with("  ld.global.f32 %f2, [%in+8];\n"
                "  add.f32 %f1, %f1, %f2;\n"
                "  st.global.f32 [%out], %f1;\n");
  EXPECT_NE(textOf(report).find("out of bounds in l"), std::string::npos)
      << report.part << report.why;
}

/// Each block waits for the flag of the one before it.
std::string chained(llvm::StringRef before = "") {
  return module(kernel("k", before.str() + R"(  setp.eq.u32 %p1, %block, 0;
  mul.wide.u32 %rd1, %block, 4;
  add.s64 %rd1, %s, %rd1;
  @%p1 bra ready;
again:
  ld.acquire.gpu.global.u32 %r1, [%rd1+-4];
  setp.ne.u32 %p2, %r1, 1;
  @%p2 bra again;
ready:
  bar.sync 0;
  setp.ne.u32 %p3, %lane, 0;
  @%p3 bra end;
  st.release.gpu.global.u32 [%rd1], 1;
end:
)" + doubles.str()));
}

TEST_F(BesideTest, BlocksThatWaitRunFromTheFirstOn) {
  setBlocks(2000);
  plan.scratch[0].zero = true;
  limits.instructions = 20'000;
  BesideReport report = run(chained());
  EXPECT_EQ(report.why, "");
  EXPECT_EQ(textOf(report), "");
  EXPECT_FALSE(report.isWhole);
  EXPECT_NE(report.part.find("of 2000 blocks, the first ones"),
            std::string::npos)
      << report.part;
}

TEST_F(BesideTest, RacesAndBarriersAreFoundInAPart) {
  setBlocks(2000);
  limits.instructions = 20'000;
  constexpr llvm::StringLiteral race = R"(  mov.u32 %r4, tile;
  mad.lo.u32 %r5, %lane, 4, %r4;
  st.shared.u32 [%r5], %lane;
  xor.b32 %r6, %lane, 64;
  mad.lo.u32 %r7, %r6, 4, %r4;
  ld.shared.u32 %r8, [%r7];
  st.global.u32 [%out], %r8;
)";
  EXPECT_NE(textOf(run(module(kernel("k", race)))).find("shared memory race"),
            std::string::npos);
  constexpr llvm::StringLiteral divergent = R"(  setp.lt.u32 %p1, %lane, 16;
  @%p1 bra one;
  bar.sync 0;
  bra end;
one:
  bar.sync 0;
end:
)";
  EXPECT_NE(textOf(run(module(kernel("k", divergent.str() + doubles.str()))))
                .find("barrier"),
            std::string::npos);
}

/// Variables of the module begin anew, or a ticket of the last block would be
/// drawn by one of a later run.
TEST_F(BesideTest, VariablesBeginAnew) {
  setBlocks(8);
  Beside beside(task, plan,
                module(".global .align 4 .u32 count;\n" +
                       kernel("k", "  mov.u64 %rd1, count;\n"
                                   "  atom.global.add.u32 %r1, [%rd1], 1;\n"
                                   "  setp.ge.u32 %p1, %r1, 1024;\n"
                                   "  @%p1 trap;\n" +
                                       doubles.str())),
                {}, 7);
  for (unsigned i = 0; i < 2; ++i)
    EXPECT_EQ(textOf(run(beside)), "");
}

TEST_F(BesideTest, ReasonsNotToRun) {
  auto why = [&](const std::string &ptx) { return run(ptx).why; };
  EXPECT_NE(why("no PTX at all"), "");
  EXPECT_NE(why(module(kernel("other", doubles))), "");
  EXPECT_NE(
      why(module(kernel("k", "  wgmma.fence.sync.aligned;\n" + doubles.str())))
          .find("not supported"),
      std::string::npos);
  EXPECT_EQ(why(module(kernel("k", "again:\n  bra again;\n"))),
            "k runs for more than 100000 warp instructions");
  limits.unknownBytes = 16;
  plan.scratch[0].zero = true;
  EXPECT_EQ(why(module(kernel("k", doubles))),
            "its scratch of 4096 bytes is too much to clear");
}

//===----------------------------------------------------------------------===//
// Evaluations
//===----------------------------------------------------------------------===//

/// y = 2 * x, right on the device, whatever the PTX does.
class BesideWorker : public ::testing::Test {
protected:
  BesideWorker() {
    trying.options.measure = false;
    trying.plan.launches[0].shape.grid = {8, 1, 1};
    trying.plan.launches[0].shape.block = {128, 1, 1};
    trying.plan.scratch = {{"s", 4096, false}};
    trying.plan.launches[0].args = {"x", "y", "s"};
  }
  Ran run(llvm::StringRef body, const std::string &original = "an original") {
    std::string ptx = module(kernel("fast", body));
    trying.backend.images[original] = {{"scale", trying.original}};
    trying.backend.images[ptx] = {{"fast", trying.candidate}};
    RunningWorker worker(trying.backend);
    Ran ran = trying.runImages(worker, original, ptx);
    ran.status = worker.finish();
    return ran;
  }
  Trying trying;
};

constexpr llvm::StringLiteral readsPast = R"(  ld.global.f32 %f1, [%in];
  ld.global.f32 %f3, [%in+8];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%out], %f2;
)";

TEST_F(BesideWorker, WhatTheDeviceDoesNotShowIsUnsafe) {
  for (bool full : {false, true}) {
    trying.options.full = full;
    Ran ran = run(readsPast);
    ASSERT_TRUE(ran.result) << ran.error;
    EXPECT_EQ(ran.result->verdict, Verdict::Unsafe);
    llvm::StringRef message = ran.result->message;
    EXPECT_TRUE(
        message.starts_with("out of bounds in fast (PTX line ") &&
        message.contains("at the end of an allocation of 4096 bytes") &&
        message.ends_with("(the workload's own inputs, lockstep schedule)"))
        << message.str();
    EXPECT_FALSE(findCheck(*ran.result, "virtual-device")->passed);
    EXPECT_EQ(ran.status, 0);
  }
}

TEST_F(BesideWorker, ARightOneIsProved) {
  Ran ran = run(doubles);
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Undecided) << ran.result->message;
  const Check *check = findCheck(*ran.result, "virtual-device");
  EXPECT_TRUE(check->passed);
  EXPECT_TRUE(llvm::StringRef(check->detail)
                  .ends_with(" warp instructions in 1 filling; all 8 blocks; "
                             "lockstep, split-lanes, random-warps, lockstep "
                             "with blocks in descending order"))
      << check->detail;
  EXPECT_TRUE(findCheck(*ran.result, "proved-safe@shape")->passed);
  for (const auto &[phase, deadline] : ran.phases) {
    if (phase == "original-virtual") {
      EXPECT_GE(deadline, 300'000);
    }
  }
  EXPECT_TRUE(llvm::any_of(ran.phases, [](const auto &phase) {
    return phase.first == "original-virtual";
  }));
}

TEST_F(BesideWorker, WhatCannotRunIsTold) {
  Ran ran = run(("  wgmma.fence.sync.aligned;\n" + doubles).str());
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Undecided) << ran.result->message;
  const Check *check = findCheck(*ran.result, "virtual-device");
  EXPECT_TRUE(check->passed);
  EXPECT_EQ(check->rule, "not run");
  EXPECT_NE(check->detail.find("not supported"), std::string::npos);
  // No PTX at all.
  ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(findCheck(*ran.result, "virtual-device")->detail,
            "the candidate's PTX is not at hand");
}

/// Its instructions bound the run, and are no time of the candidate.
TEST_F(BesideWorker, AnEndlessOneIsNotCalledSo) {
  trying.options.full = false;
  Ran ran = run("again:\n  bra again;\n");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Undecided) << ran.result->message;
  EXPECT_EQ(findCheck(*ran.result, "virtual-device")->rule, "not run");
}

/// The sum over a warp's lanes hangs on lockstep, in a way that no race tells:
/// who is active is asked.
TEST_F(BesideWorker, OtherOrdersGiveTheSameBits) {
  Ran ran = run(R"(  activemask.b32 %r1;
  popc.b32 %r2, %r1;
  setp.lt.u32 %p1, %lane, 16;
  @%p1 bra other;
  activemask.b32 %r1;
  popc.b32 %r3, %r1;
  bra end;
other:
  activemask.b32 %r1;
  popc.b32 %r3, %r1;
end:
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%out], %r2;
)");
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Mismatch) << ran.result->message;
  EXPECT_EQ(ran.result->message,
            "results change under other orders of warps and blocks "
            "(split-lanes) and no floating-point atomic explains it (the "
            "workload's own inputs)");
}

/// What the original does, a candidate may do.
TEST_F(BesideWorker, FindingsOfTheOriginalAreNoFault) {
  trying.task.reference.abi = ReferenceAbi::BarePointer;
  trying.task.reference.entry = "scale";
  trying.task.launch.grid = {8, 1, 1};
  trying.task.launch.block = {128, 1, 1};
  trying.original.body = [](llvm::ArrayRef<void *> params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = 2 * x[i];
    return 0;
  };
  std::string original = module(kernel("scale", readsPast));
  size_t third = original.find(", .param .u64 ps");
  original.erase(third, strlen(", .param .u64 ps"));
  original.erase(original.find("  ld.param.u64 %s, [ps];\n"),
                 strlen("  ld.param.u64 %s, [ps];\n"));
  Ran ran = run(readsPast, original);
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Undecided) << ran.result->message;
}

} // namespace
