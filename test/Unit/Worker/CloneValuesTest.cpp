// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Candidates judged by the original's clone in f64, in whole evaluations on the
// virtual device: a mean of squares that adds atomically over so many blocks
// that the oracle gives up and the original drifts.
//
//===----------------------------------------------------------------------===//

#include "WorkerHarness.h"

#include "fsr/Backend/VirtualBackend.h"

#include "llvm/Support/FormatVariadic.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

constexpr int64_t count = 1 << 20, blocks = count / 256;

/// One thread an element: its part is added to its result, of one or, with a
/// mask, of more.
std::string sumPtx(llvm::StringRef type, llvm::StringRef widen,
                   llvm::StringRef bits, unsigned mask = 0) {
  return llvm::formatv(R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry mse(.param .u64 px, .param .u64 py) {{
  .reg .b32 %i, %b;
  .reg .f32 %v;
  .reg .{0} %x, %s;
  .reg .b64 %in, %out, %off;
  ld.param.u64 %in, [px];
  ld.param.u64 %out, [py];
  mov.u32 %b, %ctaid.x;
  mov.u32 %i, %tid.x;
  mad.lo.u32 %i, %b, 256, %i;
  mul.wide.u32 %off, %i, 4;
  add.s64 %in, %in, %off;
  ld.global.f32 %v, [%in];
  {1} %x, %v;
  mul.{0} %x, %x, %x;
  mul.{0} %x, %x, {2};
  and.b32 %b, %i, {3};
  mul.wide.u32 %off, %b, {4};
  add.s64 %out, %out, %off;
  atom.global.add.{0} %s, [%out], %x;
  ret;
})",
                       type, widen, bits, mask, type == "f64" ? 8 : 4);
}

std::string originalPtx(unsigned mask = 0) {
  return sumPtx("f32", "mov.f32", "0f35800000", mask); // 2^-20
}
std::string clonePtx(unsigned mask = 0) {
  return sumPtx("f64", "cvt.f64.f32", "0d3EB0000000000000", mask);
}

/// One thread of one block a slice; each slice's sum is rounded by `round`, and
/// added atomically.
std::string slicesPtx(llvm::StringRef round, unsigned mask = 0) {
  return llvm::formatv(R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry fast(.param .u64 px, .param .u64 py) {{
  .reg .pred %p;
  .reg .b16 %h;
  .reg .b32 %k;
  .reg .f32 %v, %s;
  .reg .b64 %in, %out, %off;
  ld.param.u64 %in, [px];
  ld.param.u64 %out, [py];
  mov.u32 %k, %tid.x;
  mul.wide.u32 %off, %k, 4;
  add.s64 %in, %in, %off;
  and.b32 %k, %k, {1};
  mul.wide.u32 %off, %k, 4;
  add.s64 %out, %out, %off;
  mov.f32 %s, 0f00000000;
  mov.u32 %k, 0;
loop:
  ld.global.f32 %v, [%in];
  fma.rn.f32 %s, %v, %v, %s;
{0}  add.s64 %in, %in, 4096;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p, %k, 1024;
  @%p bra loop;
  mul.f32 %s, %s, 0f35800000;
  red.global.add.f32 [%out], %s;
  ret;
})",
                       round, mask);
}

class CloneValuesTest : public ::testing::Test {
protected:
  CloneValuesTest() : backend(cantFail(openVirtualBackend())) {
    KernelTask &task = trying.task;
    task.name = task.reference.entry = "mse";
    task.reference.abi = ReferenceAbi::BarePointer;
    task.arguments = {
        bufferArgument("x", ElementType::F32, {count}, Access::Read),
        bufferArgument("sum", ElementType::F32, {1}, Access::ReadWrite)};
    task.launch.grid = {blocks, 1, 1};
    task.launch.block = {256, 1, 1};
    task.work = WorkEstimate();
    task.work.accumulation = count;
    task.work.addsAtomically = true;
    WorkloadCase one;
    // Squares are all but equal, so the original's additions round one way.
    one.fills = {cantFail(FillRecipe::parse("uniform(1.018, 1.019)")),
                 cantFail(FillRecipe::parse("zeros"))};
    task.workload = {one};
    trying.options.measure = false;
    trying.options.full = false;
    ResolvedLaunch &launch = trying.plan.launches[0];
    launch.args = {"x", "sum"};
    launch.shape.grid = {1, 1, 1};
    launch.shape.block = {1024, 1, 1};
    trying.cloneImage = clonePtx();
  }
  /// Inputs on which the original keeps to the rule for rows.
  void noDrift() {
    trying.task.workload[0].fills[0] =
        cantFail(FillRecipe::parse("normal(5, 10)"));
  }
  Ran run(const std::string &candidate) {
    RunningWorker worker(*backend);
    Ran ran = trying.runImages(worker, original, candidate);
    ran.status = worker.finish();
    EXPECT_TRUE(ran.result) << ran.error;
    return ran;
  }
  std::string detailOf(const Ran &ran, llvm::StringRef check) {
    return findCheck(*ran.result, check)->detail;
  }
  std::unique_ptr<Backend> backend;
  std::string original = originalPtx();
  Trying trying;
};

TEST_F(CloneValuesTest, BetterThanTheOriginalPasses) {
  Ran ran = run(slicesPtx(""));
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Undecided))
      << ran.result->message;
  EXPECT_TRUE(llvm::StringRef(detailOf(ran, "true-values"))
                  .contains("buffer sum by a clone in f64: 2 elements of 2 "
                            "fillings (all), the largest error is 0.0"))
      << detailOf(ran, "true-values");
  bool isRun = false;
  for (const auto &[phase, deadline] : ran.phases)
    isRun = isRun || phase == "original-clone";
  EXPECT_TRUE(isRun);
}

TEST_F(CloneValuesTest, WithoutOneTheOriginalsDriftRefusesIt) {
  trying.cloneImage.clear();
  trying.task.reference.noTruePtx = "a comparison of rounded values decides";
  Ran ran = run(slicesPtx(""));
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Mismatch));
}

TEST_F(CloneValuesTest, TheEvidenceSaysWhyThereIsNone) {
  noDrift();
  trying.cloneImage.clear();
  trying.task.reference.noTruePtx = "a comparison of rounded values decides";
  Ran ran = run(slicesPtx(""));
  EXPECT_TRUE(llvm::StringRef(detailOf(ran, "workload-inputs"))
                  .contains("no clone in f64: a comparison of rounded values "
                            "decides"))
      << detailOf(ran, "workload-inputs");
}

TEST_F(CloneValuesTest, AWrongResultFails) {
  // Some slices are left out.
  std::string wrong = slicesPtx("");
  wrong.insert(wrong.find("  red.global"), "  mov.u32 %k, %tid.x;\n"
                                           "  setp.ge.u32 %p, %k, 1000;\n"
                                           "  @%p bra done;\n");
  wrong.insert(wrong.find("  ret;"), "done:\n");
  Ran ran = run(wrong);
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Mismatch));
}

TEST_F(CloneValuesTest, SumsInHalfPrecisionDoNotPass) {
  trying.task.arguments[1] =
      bufferArgument("sum", ElementType::F32, {64, 1}, Access::ReadWrite);
  trying.task.workload[0].fills[0] =
      cantFail(FillRecipe::parse("uniform(0, 1)"));
  // The bound of an element knows no type but the buffer's.
  trying.task.work.accumulation = int64_t(1) << 34;
  original = originalPtx(63);
  trying.cloneImage = clonePtx(63);
  Ran ran = run(slicesPtx("", 63));
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Undecided))
      << ran.result->message;
  ran = run(slicesPtx("  cvt.rn.f16.f32 %h, %s;\n  cvt.f32.f16 %s, %h;\n", 63));
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Mismatch));
  EXPECT_TRUE(llvm::StringRef(ran.result->message)
                  .contains("dropped terms or a narrower type"))
      << ran.result->message;
  EXPECT_TRUE(llvm::StringRef(ran.result->message)
                  .contains("; the largest error is at ["))
      << ran.result->message;
}

TEST_F(CloneValuesTest, AForeignCloneIsNotBelieved) {
  noDrift();
  // Twice what the original computes.
  trying.cloneImage = sumPtx("f64", "cvt.f64.f32", "0d3EC0000000000000");
  Ran ran = run(slicesPtx(""));
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Undecided))
      << ran.result->message;
  EXPECT_TRUE(llvm::StringRef(detailOf(ran, "true-values"))
                  .contains("buffer sum by rows on the workload's own inputs: "
                            "the original lies outside"))
      << detailOf(ran, "true-values");
}

TEST_F(CloneValuesTest, WhatDoesNotLoadIsAReason) {
  noDrift();
  trying.cloneImage = "no image";
  Ran ran = run(slicesPtx(""));
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Undecided))
      << ran.result->message;
  EXPECT_TRUE(llvm::StringRef(detailOf(ran, "workload-inputs"))
                  .contains("no clone in f64: "));
}

} // namespace
