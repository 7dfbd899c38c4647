// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Candidates judged by true values, in whole evaluations on the virtual device:
// other orders of a sum pass, narrower types do not, and results that change
// from run to run need a reason.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "fsr/Backend/VirtualBackend.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

class TrueValuesTest : public ::testing::Test {
protected:
  TrueValuesTest() : backend(cantFail(openVirtualBackend())) {
    trying.task = matmulTask();
    trying.options.measure = false;
    ResolvedLaunch &launch = trying.plan.launches[0];
    launch.args = {"a", "b", "c"};
    launch.shape.grid = {2, 2, 1};
    launch.shape.block = {16, 16, 1};
  }
  Ran run(const std::string &candidate) {
    RunningWorker worker(*backend);
    Ran ran =
        trying.runImages(worker, matmulPtx("matmul", plainStep), candidate);
    ran.status = worker.finish();
    return ran;
  }
  void expectRefused(const std::string &candidate, llvm::StringRef part) {
    Ran ran = run(candidate);
    ASSERT_TRUE(ran.result) << ran.error;
    EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Mismatch));
    EXPECT_TRUE(llvm::StringRef(ran.result->message).contains(part))
        << ran.result->message;
    for (const Check &check : ran.result->evidence.checks)
      if (HasFailure())
        printf("%s: %s\n", check.name.c_str(), check.detail.c_str());
  }
  std::unique_ptr<Backend> backend;
  Trying trying;
};

TEST_F(TrueValuesTest, AnotherOrderPasses) {
  Ran ran = run(matmulPtx("fast", splitStep));
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Undecided))
      << ran.result->message;
  const Check &check = *findCheck(*ran.result, "true-values");
  EXPECT_TRUE(check.passed);
  EXPECT_TRUE(llvm::StringRef(check.detail)
                  .contains("elements of 2 fillings (32 of 32 warps, "))
      << check.detail;
  EXPECT_TRUE(llvm::StringRef(check.detail).contains("RMS error 2^-"))
      << check.detail;
  EXPECT_TRUE(llvm::StringRef(findCheck(*ran.result, "workload-inputs")->rule)
                  .contains("where true values are known, by those"));
  EXPECT_TRUE(findCheck(*ran.result, "block-order-descending")->passed);
  EXPECT_TRUE(findCheck(*ran.result, "block-order-random")->passed);
  EXPECT_TRUE(llvm::StringRef(findCheck(*ran.result, "aliasing")->detail)
                  .contains("no two"));
}

TEST_F(TrueValuesTest, NarrowerTypesDoNot) {
  // Within the bound for whole rows, which knows no type but the buffer's, once
  // sums are long.
  trying.task.work.accumulation = int64_t(1) << 30;
  expectRefused(
      matmulPtx("fast", halfStep),
      "buffer c: errors are larger than the original's arithmetic in any "
      "order explains, by dropped terms or a narrower type: on the "
      "workload's own inputs the RMS error against true values is 2^-");
  expectRefused(matmulPtx("fast", tf32Step), "; the largest error is at [");
}

TEST_F(TrueValuesTest, QuickChecksSeeIt) {
  trying.options.full = false;
  trying.task.work.accumulation = int64_t(1) << 30;
  expectRefused(matmulPtx("fast", halfStep),
                "dropped terms or a narrower type");
}

TEST_F(TrueValuesTest, OneElementIsOff) {
  trying.task.work.exactOnIntegers = false;
  // The last by some ulps, which a sum of 2^30 terms may be.
  trying.task.work.accumulation = int64_t(1) << 30;
  std::string off = R"(  setp.lt.u32 %p, %row, 31;
  @%p bra skip;
  setp.lt.u32 %p, %col, 31;
  @%p bra skip;
  add.f32 %acc, %acc, 0f3C000000;
skip:
)";
  expectRefused(matmulPtx("fast", plainStep, off),
                "in 1 of 1024 elements on the workload's own inputs; the first "
                "at [31, 31]");
}

/// No type is to blame for a term that is left out: the message says what was
/// seen, and where.
TEST_F(TrueValuesTest, ADroppedTermIsNamed) {
  trying.task.work.exactOnIntegers = false;
  trying.task.workload[0].fills.assign(
      3, cantFail(FillRecipe::parse("uniform(1, 2)")));
  std::string shorter = matmulPtx("fast", plainStep);
  size_t at = shorter.find("%k, 64;");
  ASSERT_NE(at, std::string::npos);
  shorter.replace(at, 7, "%k, 63;");
  Ran ran = run(shorter);
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Mismatch));
  llvm::StringRef message = ran.result->message;
  EXPECT_TRUE(message.contains("by dropped terms or a narrower type"))
      << message.str();
  EXPECT_TRUE(message.contains(
      " elements are each beyond their bound; the largest error is at ["))
      << message.str();
  EXPECT_TRUE(message.contains("; the largest error is at [")) << message.str();
  double got = 0, truth = 0;
  auto numberAfter = [&](llvm::StringRef words, double &to) {
    llvm::StringRef rest = message.split(words).second;
    return !rest.take_until([](char c) { return c == ','; }).getAsDouble(to);
  };
  ASSERT_TRUE(numberAfter(": got ", got)) << message.str();
  ASSERT_TRUE(numberAfter("the true value is ", truth)) << message.str();
  // One product of 64, each from 1 to 4.
  EXPECT_GT(truth - got, 0.99);
  EXPECT_LT(truth - got, 4.01);
}

TEST_F(TrueValuesTest, TheRuleThatWasAppliedIsNamed) {
  Ran ran = run(matmulPtx("fast", splitStep));
  ASSERT_TRUE(ran.result) << ran.error;
  const Check &many = *findCheck(*ran.result, "true-values");
  EXPECT_TRUE(llvm::StringRef(many.rule).contains(
      "all together 4 times the original's RMS error and half an ulp"))
      << many.rule;
  EXPECT_FALSE(llvm::StringRef(many.rule).contains("fewer than 64"));
  EXPECT_TRUE(llvm::StringRef(many.detail).contains(", allowed 2^-"))
      << many.detail;
  // One row.
  trying.task.arguments[2] = bufferArgument(
      "c", ElementType::F32, {1, matmulRows * matmulColumns}, Access::Write);
  ran = run(matmulPtx("fast", splitStep));
  ASSERT_TRUE(ran.result) << ran.error;
  const Check &few = *findCheck(*ran.result, "true-values");
  EXPECT_TRUE(llvm::StringRef(few.rule).contains(
      "fewer than 64 elements or 16 rows, 4 times the larger of"))
      << few.rule;
}

TEST_F(TrueValuesTest, RunsThatDiffer) {
  trying.plan.launches[0].shape.grid = {2, 2, 1};
  // The time of day, which the contract keeps from real candidates, scatters
  // the last bits of a launch's results.
  std::string word = R"(  mov.u32 %k, %globaltimer_lo;
  mul.lo.u32 %k, %k, 2654435769;
  shr.u32 %k, %k, 31;
  cvt.rn.f32.u32 %x, %k;
  mul.f32 %x, %x, 0f34000000;
  fma.rn.f32 %acc, %x, %acc, %acc;
)";
  auto with = [&](llvm::StringRef more) {
    return matmulPtx("fast", plainStep, word + more.str());
  };
  trying.task.work.exactOnIntegers = false;
  trying.task.work.finiteOnly = "zero times a sum may be no number here";
  expectRefused(with(""), "results change from run to run and no "
                          "floating-point atomic explains it");
  // With one that might, every run has to keep to the rule, and this does.
  Ran ran = run(with("  setp.gt.u32 %p, %row, 9999;\n"
                     "  @%p red.global.add.f32 [%c], %acc;\n"));
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Undecided))
      << ran.result->message;
}

} // namespace
