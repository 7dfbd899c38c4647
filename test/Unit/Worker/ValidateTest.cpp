// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every way to be wrong that the worker promises to find, each planted in an
// otherwise right candidate; and right candidates that must not be called
// wrong.
//
//===----------------------------------------------------------------------===//

#include "WorkerHarness.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

using namespace fsr;

namespace {

using Params = llvm::ArrayRef<void *>;

/// y = 2 * x, and then `plant` spoils it.
template <typename Plant>
auto spoiled(Plant plant) {
  return [plant](Params params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = x[i] + x[i];
    plant(x, y);
    return 0;
  };
}

class ValidateTest : public ::testing::Test {
protected:
  ValidateTest() { trying.options.measure = false; }

  void expect(Verdict verdict, llvm::StringRef part) {
    Ran ran = trying.run();
    ASSERT_TRUE(ran.result) << ran.error;
    EXPECT_EQ(nameOf(ran.result->verdict), nameOf(verdict))
        << ran.result->message;
    EXPECT_TRUE(llvm::StringRef(ran.result->message).contains(part))
        << ran.result->message;
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(trying.backend.allocatedBytes(), 0u);
    last = *ran.result;
  }

  Trying trying;
  EvaluateResult last;
};

TEST_F(ValidateTest, RightCandidatePassesEveryCheck) {
  expect(Verdict::Undecided, "not measured");
  for (const Check &check : last.evidence.checks)
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
  EXPECT_EQ(findCheck(last, "exact-inputs")->rule,
            "bit equality, zeros of either sign equal");
  EXPECT_EQ(findCheck(last, "workload-inputs")->rule,
            "8*sqrt(n)*u*max|reference| a row");
  ASSERT_TRUE(findCheck(last, "input-battery"));
  EXPECT_FALSE(last.evidence.bitExact);
  EXPECT_DOUBLE_EQ(last.evidence.relativeBound, 8 * std::ldexp(1.0, -24));
}

TEST_F(ValidateTest, OneWrongElement) {
  trying.candidate.body =
      spoiled([](float *, float *y) { y[3 * testColumns + 5] += 1; });
  expect(Verdict::Mismatch, "in 1 of 1024 elements on zeros and ones inputs; "
                            "the first at [3, 5]");
  EXPECT_EQ(llvm::StringRef(last.message).find("seed"), llvm::StringRef::npos);
}

TEST_F(ValidateTest, UnwrittenElement) {
  trying.candidate.body = [](Params params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    for (int64_t i = 0; i + 1 < testElements; ++i)
      y[i] = 2 * x[i];
    return 0;
  };
  expect(Verdict::Mismatch, "1 elements were left unwritten");
}

TEST_F(ValidateTest, DoesNothing) {
  trying.candidate.body = [](Params) { return 0; };
  expect(Verdict::Mismatch, "1024 elements were left unwritten");
}

TEST_F(ValidateTest, Zeros) {
  trying.candidate.body =
      spoiled([](float *, float *y) { std::fill_n(y, testElements, 0.0f); });
  expect(Verdict::Mismatch, "wanted 2");
}

TEST_F(ValidateTest, Constant) {
  trying.candidate.body =
      spoiled([](float *, float *y) { std::fill_n(y, testElements, 2.0f); });
  expect(Verdict::Mismatch, "wanted 0");
}

TEST_F(ValidateTest, CopyOfTheInput) {
  trying.candidate.body =
      spoiled([](float *x, float *y) { std::copy_n(x, testElements, y); });
  expect(Verdict::Mismatch, "got 1, wanted 2");
}

TEST_F(ValidateTest, StaleResultOfAnEarlierLaunch) {
  auto kept = std::make_shared<std::vector<float>>();
  trying.candidate.body = [kept](Params params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    if (kept->empty())
      for (int64_t i = 0; i < testElements; ++i)
        kept->push_back(2 * x[i]);
    std::copy(kept->begin(), kept->end(), y);
    return 0;
  };
  expect(Verdict::Mismatch, "minus one, zero and one");
}

TEST_F(ValidateTest, ReferenceIsNotReadableWhileTheCandidateRuns) {
  // The candidate of this test is told where every copy of an output went.
  auto seen = std::make_shared<bool>(false);
  auto stashes = std::make_shared<std::vector<float *>>();
  const HostBackend *backend = &trying.backend;
  trying.candidate.body = spoiled([=](float *x, float *) {
    std::vector<float> row(testColumns);
    for (int64_t i = 0; i < testColumns; ++i)
      row[i] = 2 * x[i];
    for (float *from : *stashes)
      *seen = *seen || (backend->holds(from) &&
                        !memcmp(from, row.data(), testColumns * 4));
  });
  trying.backend.onCopy = [=](void *to, size_t bytes) {
    if (bytes == size_t(testElements) * 4)
      stashes->push_back(static_cast<float *>(to));
  };
  expect(Verdict::Undecided, "not measured");
  EXPECT_FALSE(stashes->empty());
  EXPECT_FALSE(*seen);
}

TEST_F(ValidateTest, WritesAnInput) {
  trying.candidate.body = spoiled([](float *x, float *) { x[7] = 0.25f; });
  expect(Verdict::Unsafe, "wrote buffer x, which is read-only");
}

TEST_F(ValidateTest, WritesBehindABuffer) {
  trying.candidate.body =
      spoiled([](float *, float *y) { y[testElements + 3] = 0; });
  expect(Verdict::Unsafe, "wrote 4 bytes behind buffer y, from 12 bytes after");
}

TEST_F(ValidateTest, WritesBeforeABuffer) {
  trying.candidate.body = spoiled([](float *, float *y) { y[-2] = 0; });
  expect(Verdict::Unsafe,
         "wrote 4 bytes in front of buffer y, up to 8 bytes before");
}

TEST_F(ValidateTest, WritesBehindScratch) {
  trying.plan.scratch = {{"part", 256, false}};
  trying.plan.launches[0].args = {"x", "y", "part"};
  trying.candidate.body = [](Params params) {
    spoiled([](float *, float *) {})(params);
    pointerOf<char>(params, 2)[256] = 1;
    return 0;
  };
  expect(Verdict::Unsafe, "wrote 1 bytes behind scratch buffer part");
}

TEST_F(ValidateTest, ScratchIsClearedWhereAsked) {
  for (bool zero : {true, false}) {
    trying.plan.scratch = {{"part", 4, zero}};
    trying.plan.launches[0].args = {"x", "y", "part"};
    trying.candidate.body = [](Params params) {
      spoiled([&](float *, float *y) {
        // Counts on a zero.
        int *part = pointerOf<int>(params, 2);
        y[0] += float((*part)++);
      })(params);
      return 0;
    };
    expect(zero ? Verdict::Undecided : Verdict::Mismatch, "");
  }
}

TEST_F(ValidateTest, ScratchBeyondTheDevice) {
  trying.plan.scratch = {{"part", int64_t(1) << 45, false}};
  trying.plan.launches[0].args = {"x", "y", "part"};
  trying.candidate.body = spoiled([](float *, float *) {});
  expect(Verdict::Rejected, "the plan wants 35184372088832 bytes of scratch, "
                            "and the device has ");
}

/// Leaves what stands in the output where that looks right.
TEST_F(ValidateTest, KeptAnswer) {
  trying.candidate.body = [](Params params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    if (x[3] != 0 && y[3] == x[3] + x[3])
      return 0;
    return spoiled([](float *, float *) {})(params);
  };
  expect(Verdict::Mismatch, "an answer to nearly the same ones");
  // Not even that: anything that is no poison.
  trying.candidate.body = [](Params params) {
    float *y = pointerOf(params, 1);
    if (y[0] != y[1] && std::fabs(y[0] - y[1]) < 100)
      return 0;
    return spoiled([](float *, float *) {})(params);
  };
  expect(Verdict::Mismatch, "an earlier answer in the outputs");
}

TEST_F(ValidateTest, NumbersOfAnySize) {
  trying.candidate.body = spoiled([](float *, float *y) {
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = std::min(y[i], 4096.0f);
  });
  expect(Verdict::Mismatch, "on very large numbers inputs");
  trying.candidate.body = spoiled([](float *x, float *y) {
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = std::fabs(x[i]) < 1e-9f && std::fabs(x[i]) > 1e-30f ? 0 : y[i];
  });
  expect(Verdict::Mismatch, "on very small numbers inputs");
}

/// Of results that leave their type nothing is demanded.
TEST_F(ValidateTest, BeyondTheType) {
  auto to = [](float beyond, size_t atX, size_t atY) {
    return [=](Params params) {
      float *x = pointerOf(params, atX), *y = pointerOf(params, atY);
      for (int64_t i = 0; i < testElements; ++i) {
        y[i] = x[i] * 0x1p60f * 0x1p30f;
        if (!(std::fabs(y[i]) < 0x1p126f))
          y[i] = beyond;
      }
      return 0;
    };
  };
  trying.task.work.finiteOnly = "numbers overflow";
  trying.original.body = to(INFINITY, 1, 8);
  trying.candidate.body = to(1, 0, 1);
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(llvm::StringRef(findCheck(last, "input-battery")->detail)
                  .contains("elements were not compared"));
}

/// One sum, of which the original's own error hides rounded inputs.
TEST_F(ValidateTest, RoundedInputsOfOneSum) {
  trying.task.arguments[1] =
      bufferArgument("y", ElementType::F32, {1}, Access::ReadWrite);
  trying.task.work.accumulation = testElements;
  trying.task.work.exactOnIntegers = false;
  trying.task.workload[0].fills[1] = *FillRecipe::parse("zeros");
  auto summing = [](int bits, bool backwards, size_t atX, size_t atY) {
    return [=](Params params) {
      float *x = pointerOf(params, atX), *y = pointerOf(params, atY);
      for (int64_t i = 0; i < testElements; ++i) {
        int exponent = 0;
        float part =
            std::frexp(x[backwards ? testElements - 1 - i : i], &exponent);
        part = std::ldexp(std::nearbyint(std::ldexp(part, bits)), -bits);
        *y += std::ldexp(part, exponent);
      }
      return 0;
    };
  };
  trying.original.body = summing(24, false, 1, 8);
  trying.candidate.body = summing(24, true, 0, 1);
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(findCheck(last, "few-terms"));
  // Elsewhere other inputs show it: here they do not get to.
  trying.candidate.body = [=](Params params) {
    float *x = pointerOf(params, 0);
    bool isSparse = std::count(x, x + testElements, 0.0f) > testElements / 2;
    return summing(isSparse ? 11 : 24, false, 0, 1)(params);
  };
  expect(Verdict::Mismatch, "on few numbers among zeros inputs");
}

TEST_F(ValidateTest, ScratchKeepsNothingFromRunToRun) {
  trying.plan.scratch = {{"part", 4, false}};
  trying.plan.launches[0].args = {"x", "y", "part"};
  auto kept = std::make_shared<bool>(false);
  trying.candidate.body = [=](Params params) {
    int *part = pointerOf<int>(params, 2);
    *kept = *kept || *part == 4711;
    *part = 4711;
    return spoiled([](float *, float *) {})(params);
  };
  expect(Verdict::Undecided, "");
  EXPECT_FALSE(*kept);
}

TEST_F(ValidateTest, NeedsMoreAlignmentThanProved) {
  trying.candidate.body = spoiled([](float *x, float *y) {
    if (reinterpret_cast<uintptr_t>(x) % 16)
      y[0] = 77;
  });
  expect(Verdict::Mismatch, "got 77");
  trying.task.arguments[0].alignment = trying.task.arguments[1].alignment = 16;
  expect(Verdict::Undecided, "");
}

TEST_F(ValidateTest, WrongOnlyForLargeNumbers) {
  trying.candidate.body = spoiled([](float *x, float *y) {
    for (int64_t i = 0; i < testElements; ++i)
      if (std::fabs(x[i]) > 100)
        y[i] = 200;
  });
  expect(Verdict::Mismatch, "log-uniform of either sign inputs");
}

TEST_F(ValidateTest, LowerPrecisionIsMismatch) {
  trying.task.work.exactOnIntegers = false;
  trying.candidate.body = spoiled([](float *, float *y) {
    for (int64_t i = 0; i < testElements; ++i) {
      uint32_t bits;
      memcpy(&bits, &y[i], 4);
      bits &= 0xFFFFE000u; // What TF32 keeps.
      memcpy(&y[i], &bits, 4);
    }
  });
  expect(Verdict::Mismatch, "the largest error is about 10^");
}

TEST_F(ValidateTest, WhatOnlyMovesMustBeEqual) {
  // One unit in the last place is within every bound, but of an infinity.
  trying.task.work.exactOnIntegers = false;
  trying.task.work.finiteOnly = "of this test";
  trying.candidate.body = spoiled([](float *x, float *y) {
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = std::nextafter(2 * x[i], 0.0f);
  });
  expect(Verdict::Undecided, "");
  EXPECT_GT(last.evidence.relativeBound, 0);
  trying.task.work.movesOnly = true;
  expect(Verdict::Mismatch, "buffer y differs from the original");
  EXPECT_TRUE(last.evidence.bitExact);
}

TEST_F(ValidateTest, AtomicSumsTakeDenormalsAsZero) {
  trying.task.work.exactOnIntegers = false;
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 1), *y = pointerOf(params, 8);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = std::fpclassify(x[i]) == FP_SUBNORMAL ? 0 : 2 * x[i];
    return 0;
  };
  expect(Verdict::Mismatch, "on denormals inputs");
  trying.task.work.addsAtomically = true;
  expect(Verdict::Undecided, "");
}

TEST_F(ValidateTest, ReassociatedSumIsRight) {
  // y[r, c] = sum of row r; forward in the original, backward here.
  trying.task.work.accumulation = testColumns;
  auto sum = [](float *x, float *y, bool backward) {
    for (int64_t r = 0; r < testRows; ++r) {
      float total = 0;
      for (int64_t c = 0; c < testColumns; ++c)
        total += x[r * testColumns + (backward ? testColumns - 1 - c : c)];
      std::fill_n(y + r * testColumns, testColumns, total);
    }
    return 0;
  };
  trying.original.body = [=](Params params) {
    return sum(pointerOf(params, 1), pointerOf(params, 8), false);
  };
  trying.candidate.body = [=](Params params) {
    return sum(pointerOf(params, 0), pointerOf(params, 1), true);
  };
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(llvm::StringRef(findCheck(last, "workload-inputs")->detail)
                  .contains("elements differ in bits"));
}

/// (x - mean) / sqrt(variance + tiny): on equal numbers all is rounding.
/// `moved`: an error of one unit in the mean, as another order would give.
int normalise(float *x, float *y, int64_t rows, bool moved) {
  for (int64_t r = 0; r < rows; ++r) {
    float *in = x + r * testColumns;
    float mean = 0, square = 0;
    for (int64_t c = 0; c < testColumns; ++c)
      mean += in[c] / 3.0f;
    mean = mean / testColumns * 3.0f;
    if (moved && mean != 0 && std::isfinite(mean))
      mean = std::nextafter(mean, 1e30f);
    for (int64_t c = 0; c < testColumns; ++c)
      square += (in[c] - mean) * (in[c] - mean);
    for (int64_t c = 0; c < testColumns; ++c)
      y[r * testColumns + c] =
          (in[c] - mean) / std::sqrt(square / testColumns + 1e-10f);
  }
  return 0;
}

TEST_F(ValidateTest, IllConditionedInputsAreAllowedTheirNoise) {
  trying.task.work.exactOnIntegers = false;
  trying.task.work.accumulation = testColumns;
  trying.original.body = [=](Params params) {
    return normalise(pointerOf(params, 1), pointerOf(params, 8), testRows,
                     false);
  };
  trying.candidate.body = [=](Params params) {
    return normalise(pointerOf(params, 0), pointerOf(params, 1), testRows,
                     true);
  };
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(llvm::StringRef(findCheck(last, "input-battery")->detail)
                  .contains("ill-conditioned"));
  // What the original gives meanwhile is not taken for the second run.
  trying.task.workload[0].fills[0] = *FillRecipe::parse("equal(0.7)");
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(llvm::StringRef(findCheck(last, "workload-inputs")->detail)
                  .contains("ill-conditioned"));
  EXPECT_TRUE(findCheck(last, "deterministic")->passed);
}

TEST_F(ValidateTest, NoiseIsNoMatterOfOneMove) {
  // Numbers that nearly cancel: where inputs are equal, one choice in ten of
  // what is added to or taken from each hardly moves a row.
  trying.task.work.exactOnIntegers = false;
  trying.task.work.accumulation = testColumns;
  auto cancel = [](float *x, float *y, float units) {
    for (int64_t r = 0; r < testRows; ++r) {
      float *in = x + r * testColumns, total = 0.05f * in[0], largest = 0;
      for (int64_t c = 0; c < testColumns; ++c) {
        total += c % 2 ? -in[c] : in[c];
        if (std::isfinite(in[c]))
          largest = std::max(largest, std::fabs(in[c]));
      }
      std::fill_n(y + r * testColumns, testColumns,
                  total + units * 0x1p-24f * largest);
    }
    return 0;
  };
  float units = 20;
  trying.original.body = [=](Params params) {
    return cancel(pointerOf(params, 1), pointerOf(params, 8), 0);
  };
  trying.candidate.body = [=, &units](Params params) {
    return cancel(pointerOf(params, 0), pointerOf(params, 1), units);
  };
  trying.task.workload[0].fills[0] = *FillRecipe::parse("equal(0.7)");
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(llvm::StringRef(findCheck(last, "workload-inputs")->detail)
                  .contains("ill-conditioned"));
  units = 4000;
  expect(Verdict::Mismatch, "differs from the original");
}

/// The second output needs more memory for its noise than the first did.
TEST_F(ValidateTest, OutputsMayBeIllConditionedOneAfterTheOther) {
  trying.task.work.exactOnIntegers = false;
  trying.task.work.accumulation = testColumns;
  trying.task.arguments.push_back(
      bufferArgument("m", ElementType::F32, {1, testColumns}, Access::Write));
  trying.task.workload[0].fills = {*FillRecipe::parse("equal(0.7)"), {}, {}};
  trying.plan.launches[0].args = {"x", "y", "m"};
  trying.original.body = [=](Params params) {
    normalise(pointerOf(params, 1), pointerOf(params, 8), testRows, false);
    normalise(pointerOf(params, 1), pointerOf(params, 15), 1, false);
    return 0;
  };
  trying.candidate.body = [=](Params params) {
    float *x = pointerOf(params, 0);
    bool isFirst = x[0] == 0.7f && x[1] == x[0];
    normalise(x, pointerOf(params, 1), testRows, !isFirst);
    normalise(x, pointerOf(params, 2), 1, isFirst);
    return 0;
  };
  expect(Verdict::Undecided, "");
  for (llvm::StringRef name : {"workload-inputs", "input-battery"})
    EXPECT_TRUE(llvm::StringRef(findCheck(last, name)->detail)
                    .contains("ill-conditioned"))
        << name.str();
}

/// As two scores that are nearly equal: a sum's last bits decide, and one move
/// of the inputs may by chance leave all as it is.
TEST_F(ValidateTest, OneMoveOfTheInputsTellsLittle) {
  trying.task.work.exactOnIntegers = false;
  trying.task.work.accumulation = testColumns;
  auto waves = [](float *x, float *y, bool backwards, float more) {
    for (int64_t r = 0; r < testRows; ++r) {
      float sum = 0;
      for (int64_t c = 0; c < testColumns; ++c)
        sum += x[r * testColumns + (backwards ? testColumns - 1 - c : c)];
      int exponent;
      // Of some units in the last place it makes a whole turn.
      float share = std::frexp(sum, &exponent);
      for (int64_t c = 0; c < testColumns; ++c)
        y[r * testColumns + c] = std::sin(share * 0x1p22f) + more;
    }
    return 0;
  };
  trying.task.workload[0].fills[0] = *FillRecipe::parse("normal(0, 1)");
  trying.options.full = false;
  trying.original.body = [=](Params params) {
    return waves(pointerOf(params, 1), pointerOf(params, 8), false, 0);
  };
  trying.candidate.body = [=](Params params) {
    return waves(pointerOf(params, 0), pointerOf(params, 1), true, 0);
  };
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(llvm::StringRef(findCheck(last, "workload-inputs")->detail)
                  .contains("ill-conditioned"));
  trying.candidate.body = [=](Params params) {
    return waves(pointerOf(params, 0), pointerOf(params, 1), true, 20);
  };
  expect(Verdict::Mismatch, "differs from the original");
}

TEST_F(ValidateTest, NonFiniteResultsMustBeOfOneKind) {
  trying.task.work.exactOnIntegers = false;
  trying.task.workload[0].fills[0] = *FillRecipe::parse("integers(0, 3)");
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 1), *y = pointerOf(params, 8);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = 1 / x[i];
    return 0;
  };
  auto candidate = [](float forInfinity) {
    return [=](Params params) {
      float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
      for (int64_t i = 0; i < testElements; ++i) {
        y[i] = 1 / x[i];
        if (std::isinf(y[i]))
          y[i] = std::copysign(forInfinity, y[i]);
      }
      return 0;
    };
  };
  const float infinity = std::numeric_limits<float>::infinity();
  trying.candidate.body = candidate(infinity);
  expect(Verdict::Undecided, "");
  trying.candidate.body = candidate(std::numeric_limits<float>::max());
  expect(Verdict::Mismatch, "got 3.40282347e+38, wanted inf");
  trying.candidate.body = candidate(std::nanf(""));
  expect(Verdict::Mismatch, "wanted inf");
}

TEST_F(ValidateTest, NaNAndInfinitiesAmongTheInputs) {
  auto changing = [](auto test, float to) {
    return spoiled([=](float *x, float *y) {
      for (int64_t i = 0; i < testElements; ++i)
        if (test(x[i]))
          y[i] = to;
    });
  };
  auto isNaN = [](float value) { return std::isnan(value); };
  auto isInfinity = [](float value) { return std::isinf(value); };
  trying.candidate.body = changing(isNaN, std::nanf("77"));
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(findCheck(last, "special-values")->passed);
  EXPECT_EQ(findCheck(last, "special-values")->inputs,
            "normal with NaN, normal with infinities, normal with NaN and "
            "infinities, normal, with runs of minus infinity; 4 in all");
  trying.candidate.body = changing(isNaN, 0);
  expect(Verdict::Mismatch, "on normal with NaN inputs");
  trying.candidate.body =
      changing(isInfinity, std::numeric_limits<float>::max());
  expect(Verdict::Mismatch, "on normal with infinities inputs");
  trying.candidate.body = changing(isInfinity, std::nanf(""));
  expect(Verdict::Mismatch, "on normal with infinities inputs");
  trying.task.work.finiteOnly = "of the weather";
  expect(Verdict::Undecided, "");
  EXPECT_EQ(findCheck(last, "special-values")->detail,
            "not tried: of the weather");
}

TEST_F(ValidateTest, NaNForNaNIsRightAndPoisonIsNot) {
  trying.task.work.exactOnIntegers = false;
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 1), *y = pointerOf(params, 8);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = std::sqrt(x[i]);
    return 0;
  };
  auto candidate = [](bool write) {
    return [=](Params params) {
      float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
      for (int64_t i = 0; i < testElements; ++i)
        if (x[i] >= 0)
          y[i] = std::sqrt(x[i]);
        else if (write)
          y[i] = std::nanf("1234");
      return 0;
    };
  };
  trying.candidate.body = candidate(true);
  expect(Verdict::Undecided, "");
  // It leaves a poison that happens to be a NaN too.
  trying.candidate.body = candidate(false);
  expect(Verdict::Mismatch, "left unwritten");
}

TEST_F(ValidateTest, WhatTheOriginalLeavesAloneStays) {
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 1), *y = pointerOf(params, 8);
    for (int64_t i = 0; i < testElements / 2; ++i)
      y[i] = 2 * x[i];
    return 0;
  };
  expect(Verdict::Mismatch, "the first at [8, 0]");
  trying.candidate.body = [](Params params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    for (int64_t i = 0; i < testElements / 2; ++i)
      y[i] = 2 * x[i];
    return 0;
  };
  expect(Verdict::Undecided, "");
}

/// What is found in one buffer, or was found before, says nothing of the next.
TEST_F(ValidateTest, PoisonIsAnotherInEveryBufferAndSet) {
  trying.task.arguments.push_back(
      bufferArgument("z", ElementType::F32, {1}, Access::Write));
  trying.task.workload[0].fills.resize(3);
  trying.plan.launches[0].args = {"x", "y", "z"};
  std::set<float> numbers;
  size_t launches = 0;
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 1), *y = pointerOf(params, 8);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = 2 * x[i];
    return 0;
  };
  trying.candidate.body = [&](Params params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    ++launches;
    for (float found : {y[7], *pointerOf(params, 2)}) {
      if (!std::isnan(found))
        numbers.insert(found);
    }
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = x[i] + x[i];
    return 0;
  };
  expect(Verdict::Undecided, "");
  EXPECT_GT(launches, 12u);
  // About half of the sets have numbers, and two runs of a set the same ones.
  EXPECT_GE(numbers.size(), launches - 4);
}

TEST_F(ValidateTest, InPlaceBuffersAreRestored) {
  trying.task.arguments = {bufferArgument(
      "x", ElementType::F32, {testRows, testColumns}, Access::ReadWrite)};
  trying.task.workload[0].fills.resize(1);
  trying.plan.launches[0].args = {"x"};
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 1);
    for (int64_t i = 0; i < testElements; ++i)
      x[i] = 2 * x[i];
    return 0;
  };
  trying.candidate.body = [](Params params) {
    float *x = pointerOf(params, 0);
    for (int64_t i = 0; i < testElements; ++i)
      x[i] += x[i];
    return 0;
  };
  expect(Verdict::Undecided, "");
  trying.candidate.body = [](Params) { return 0; };
  expect(Verdict::Mismatch, "buffer x differs");
}

TEST_F(ValidateTest, IntegersAreComparedBitByBit) {
  for (Argument &argument : trying.task.arguments)
    argument.element = ElementType::I32;
  auto both = [](int *x, int *y, int add) {
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = x[i] * 1000000 + (i == 500 ? add : 0);
    return 0;
  };
  trying.original.body = [=](Params params) {
    return both(pointerOf<int>(params, 1), pointerOf<int>(params, 8), 0);
  };
  trying.candidate.body = [=](Params params) {
    return both(pointerOf<int>(params, 0), pointerOf<int>(params, 1), 0);
  };
  expect(Verdict::Undecided, "");
  EXPECT_TRUE(last.evidence.bitExact);
  EXPECT_EQ(last.evidence.relativeBound, 0);
  trying.candidate.body = [=](Params params) {
    return both(pointerOf<int>(params, 0), pointerOf<int>(params, 1), 1);
  };
  expect(Verdict::Mismatch, "in 1 of 1024 elements");
}

TEST_F(ValidateTest, WritesBetweenStridedElements) {
  for (Argument &argument : trying.task.arguments)
    argument.strides = {testColumns + 8, 1};
  auto rows = [](float *x, float *y, int64_t columns) {
    for (int64_t r = 0; r < testRows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        y[r * (testColumns + 8) + c] =
            c < testColumns ? 2 * x[r * (testColumns + 8) + c] : 0;
    return 0;
  };
  trying.original.body = [=](Params params) {
    EXPECT_EQ(*static_cast<int64_t *>(params[5]), testColumns + 8);
    return rows(pointerOf(params, 1), pointerOf(params, 8), testColumns);
  };
  trying.candidate.body = [=](Params params) {
    return rows(pointerOf(params, 0), pointerOf(params, 1), testColumns);
  };
  expect(Verdict::Undecided, "");
  trying.candidate.body = [=](Params params) {
    float *y = pointerOf(params, 1);
    y[testColumns + 2] = 5;
    return rows(pointerOf(params, 0), y, testColumns);
  };
  expect(Verdict::Unsafe, "between the elements of buffer y");
}

TEST_F(ValidateTest, OtherBitsEachRunWithinTheBoundAreNoted) {
  trying.task.work.exactOnIntegers = false;
  auto calls = std::make_shared<int>(0);
  trying.candidate.body = spoiled([=](float *, float *y) {
    if (++*calls % 2)
      y[0] = std::nextafter(y[0], 1e30f);
  });
  expect(Verdict::Undecided, "");
  const Check *check = findCheck(last, "deterministic");
  EXPECT_FALSE(check->passed);
  EXPECT_TRUE(llvm::StringRef(check->detail).contains("not deterministic"));
}

TEST_F(ValidateTest, OtherValuesEachRunAreMismatch) {
  trying.task.work.exactOnIntegers = false;
  auto calls = std::make_shared<int>(0);
  trying.candidate.body = spoiled([=](float *, float *y) {
    if (++*calls == 2) // The repetition of the first case.
      y[9] += 1;
  });
  expect(Verdict::Mismatch, "[0, 9]");
}

/// Read-only buffers of one shape may be one, unless it is said that they are
/// not.
TEST_F(ValidateTest, CandidateThatCountsOnTwoInputs) {
  trying.task.arguments.insert(trying.task.arguments.begin() + 1,
                               bufferArgument("w", ElementType::F32,
                                              {testRows, testColumns},
                                              Access::Read));
  trying.task.reference.abi = ReferenceAbi::BarePointer;
  trying.task.workload[0].fills.resize(3);
  trying.plan.launches[0].args = {"x", "w", "y"};
  auto add = [](Params params) {
    float *x = pointerOf(params, 0), *w = pointerOf(params, 1),
          *y = pointerOf(params, 2);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = x[i] + w[i];
    return 0;
  };
  trying.original.body = trying.candidate.body = add;
  expect(Verdict::Undecided, "");
  EXPECT_EQ(findCheck(last, "aliasing")->detail,
            "read-only buffers of one type and shape at one address");
  trying.candidate.body = [add](Params params) {
    add(params);
    if (pointerOf(params, 0) == pointerOf(params, 1))
      pointerOf(params, 2)[5] += 1;
    return 0;
  };
  expect(Verdict::Mismatch, "on the workload's own, shared by read-only "
                            "buffers of one shape inputs; the first at [0, 5]");
  trying.task.facts = {"x and w do not overlap"};
  expect(Verdict::Undecided, "");
  EXPECT_EQ(findCheck(last, "aliasing")->detail,
            "no two read-only buffers of one type and shape may be one");
}

TEST_F(ValidateTest, QuickChecksAlone) {
  trying.options.full = false;
  expect(Verdict::Undecided, "on the quick checks; not measured");
  for (const Check &check : last.evidence.checks)
    EXPECT_NE(check.name, "input-battery");
}

TEST_F(ValidateTest, BarePointersAndScalars) {
  trying.task.reference.abi = ReferenceAbi::BarePointer;
  Argument factor;
  factor.name = "s";
  factor.element = ElementType::F16;
  factor.constantBits = "4200"; // 3
  trying.task.arguments.insert(trying.task.arguments.begin() + 1, factor);
  trying.task.workload[0].fills.resize(3);
  trying.plan.launches[0].args = {"s", "y", "x", "x.size1"};
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 2);
    EXPECT_EQ(*static_cast<uint16_t *>(params[1]), 0x4200);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = 3 * x[i];
    return 0;
  };
  trying.candidate.body = [](Params params) {
    float *x = pointerOf(params, 2), *y = pointerOf(params, 1);
    EXPECT_EQ(*static_cast<uint16_t *>(params[0]), 0x4200);
    EXPECT_EQ(*static_cast<int64_t *>(params[3]), testColumns);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = 3 * x[i];
    return 0;
  };
  expect(Verdict::Undecided, "");
}

TEST_F(ValidateTest, OffsetsReachTheOriginalAsItsAbiSays) {
  trying.task.arguments[0].offset = 40;
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 1) + *static_cast<int64_t *>(params[2]);
    EXPECT_EQ(*static_cast<int64_t *>(params[2]), 40);
    float *y = pointerOf(params, 8);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = 2 * x[i];
    return 0;
  };
  expect(Verdict::Undecided, "");
}

TEST_F(ValidateTest, OriginalThatWritesItsInputIsAnError) {
  trying.original.body = [](Params params) {
    float *x = pointerOf(params, 1), *y = pointerOf(params, 8);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = 2 * x[i];
    x[0] = 5;
    return 0;
  };
  Ran ran = trying.run();
  EXPECT_FALSE(ran.result);
  EXPECT_NE(ran.error.find("the task calls read-only"), std::string::npos)
      << ran.error;
  EXPECT_EQ(ran.status, 0);
}

} // namespace
