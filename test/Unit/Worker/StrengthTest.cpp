// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The task itself is tested: which dummies a task refuses, which pass where its
// inputs are weak, and which are the kernel's own function.
//
//===----------------------------------------------------------------------===//

#include "Strength.h"
#include "WorkerHarness.h"

#include "fsr/Support/Hash.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

using Params = llvm::ArrayRef<void *>;
using Outcome = DummyResult::Outcome;

struct Tested {
  std::map<std::string, DummyResult> dummies;
  std::string error;
  std::vector<std::string> phases;
  int64_t done = -1; ///< As told last.

  std::string outcome(const std::string &name) const {
    auto found = dummies.find(name);
    return found == dummies.end() ? "missing"
                                  : nameOf(found->second.outcome).str();
  }
  std::vector<std::string> with(Outcome outcome) const {
    std::vector<std::string> names;
    for (const auto &[name, dummy] : dummies)
      if (dummy.outcome == outcome)
        names.push_back(name);
    return names;
  }
};

TEST(KnownAnswersTest, EachBelongsToItsInputs) {
  InputSet set;
  set.seed = 1;
  set.fills.resize(2);
  std::vector<InputSet> others(9, set);
  others[0].seed = 2;
  others[1].perturb = 0.5;
  others[2].shifted = true;
  others[3].answered = true;
  others[4].changed = 0.5;
  others[5].kept = 0.5;
  others[6].otherSeed = 2;
  others[7].fills[1].family = "zeros";
  others[8].standIns = {0, 0};
  KnownAnswers known(100);
  std::string key = KnownAnswers::keyOf(set, Poison::NaN);
  known.add(key, 10)->emplace_back(10);
  ASSERT_TRUE(known.find(key));
  EXPECT_FALSE(known.find(KnownAnswers::keyOf(set, Poison::Plain)));
  for (const InputSet &other : others)
    EXPECT_FALSE(known.find(KnownAnswers::keyOf(other, Poison::NaN)))
        << &other - others.data();
  // What people call it is no part of it.
  set.words = "other words";
  EXPECT_TRUE(known.find(KnownAnswers::keyOf(set, Poison::NaN)));
}

TEST(KnownAnswersTest, TakeNoMoreThanTheirBound) {
  KnownAnswers known(100);
  EXPECT_TRUE(known.add("a", 60));
  EXPECT_FALSE(known.add("b", 41));
  EXPECT_FALSE(known.find("b"));
  EXPECT_TRUE(known.add("c", 40));
  EXPECT_FALSE(known.add("d", 1));
}

class StrengthTest : public testing::Test {
protected:
  Tested test() {
    trying.backend.images["original image"] = {
        {trying.task.reference.entry, trying.original}};
    Tested tested = test(trying.backend, "original image");
    EXPECT_EQ(trying.backend.allocatedBytes(), 0u);
    return tested;
  }
  Tested test(Backend &backend, const std::string &image) {
    RunningWorker worker(backend);
    std::string hash = sha256(image);
    worker.send(llvm::json::Object{{"op", "image"}, {"hash", hash}}, image);
    EXPECT_TRUE(worker.receive());
    WireStrength request;
    request.task = trying.task;
    request.referenceHash = hash;
    request.seed = seed;
    worker.send(std::move(*toJSON(request).getAsObject()));
    Tested tested;
    while (auto event = worker.receive()) {
      llvm::StringRef name = event->getString("event").value_or("");
      if (name == "started") {
        tested.phases.push_back(event->getString("phase").value_or("").str());
        if (auto done = event->getInteger("done")) {
          EXPECT_GE(*done, tested.done);
          tested.done = *done;
          EXPECT_EQ(event->getInteger("of"), 17);
        }
        continue;
      }
      if (name == "error") {
        tested.error = event->getString("message").value_or("").str();
        break;
      }
      WireDummies told;
      llvm::json::Path::Root root("strength");
      EXPECT_TRUE(fromJSON(llvm::json::Object(*event), told, root))
          << llvm::toString(root.getError());
      for (DummyResult &dummy : told.dummies)
        tested.dummies[dummy.name] = std::move(dummy);
      break;
    }
    EXPECT_EQ(worker.finish(), 0);
    return tested;
  }
  void fills(std::vector<FillRecipe> fills) {
    trying.task.workload[0].fills = std::move(fills);
  }
  /// x and y of integers: no battery stands beside the workload.
  void useIntegers() {
    trying.task.arguments[0].element = ElementType::I32;
    trying.task.arguments[1].element = ElementType::I32;
    fills({{"integers", {-100, 100}}, {"zeros", {}}});
    trying.original.body = [](Params params) {
      int32_t *x = pointerOf<int32_t>(params, 1);
      int32_t *y = pointerOf<int32_t>(params, 8);
      for (int64_t i = 0; i < testElements; ++i)
        y[i] = 2 * x[i];
      return 0;
    };
  }

  Trying trying;
  uint64_t seed = 1;
};

using Names = std::vector<std::string>;

TEST_F(StrengthTest, AGoodTaskRefusesEveryDummy) {
  Tested tested = test();
  EXPECT_EQ(tested.error, "");
  EXPECT_EQ(tested.dummies.size(), 17u);
  EXPECT_EQ(tested.done, 16); // As the last one begins.
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  EXPECT_EQ(tested.with(Outcome::SameFunction), Names());
  EXPECT_EQ(tested.with(Outcome::NotApplicable), Names{"in-place-untouched"});
  EXPECT_EQ(tested.outcome("zeros"), "refused");
  EXPECT_NE(tested.dummies["input-destroying"].detail.find("buffer x"),
            std::string::npos);
  for (const auto &[name, dummy] : tested.dummies)
    EXPECT_FALSE(dummy.passedQuick) << name;
  for (const std::string &phase : tested.phases)
    EXPECT_TRUE(llvm::StringRef(phase).starts_with("original")) << phase;
}

TEST_F(StrengthTest, EveryTypeOfElementIsPlayedWith) {
  for (ElementType type :
       {ElementType::I8, ElementType::I16, ElementType::I64, ElementType::F16,
        ElementType::BF16, ElementType::F64}) {
    unsigned size = byteSize(type);
    trying.task.arguments[0].element = trying.task.arguments[1].element = type;
    fills({isFloat(type) ? FillRecipe{"normal", {0, 1}}
                         : FillRecipe{"integers", {-100, 100}},
           {"zeros", {}}});
    // Bits that depend on the input's bits and are no copy of them; the sign of
    // a float stays out of it.
    trying.original.body = [size](Params params) {
      const uint8_t *x = pointerOf<uint8_t>(params, 1);
      uint8_t *y = pointerOf<uint8_t>(params, 8);
      for (int64_t i = 0; i < testElements * size; ++i)
        y[i] = (i + 1) % size == 0 ? x[i] & 0x3F : uint8_t(x[i] + 1);
      return 0;
    };
    trying.task.work.exactOnIntegers = false;
    Tested tested = test();
    EXPECT_EQ(tested.error, "");
    EXPECT_EQ(tested.with(Outcome::Passed), Names()) << nameOf(type).str();
  }
}

TEST_F(StrengthTest, ZerosOfIntegersAreTooWeak) {
  useIntegers();
  EXPECT_EQ(test().with(Outcome::Passed), Names());
  fills({{"zeros", {}}, {"zeros", {}}});
  Tested tested = test();
  EXPECT_EQ(tested.outcome("zeros"), "passed");
  EXPECT_EQ(tested.outcome("answer-for-another-seed"), "passed");
  // The right bits, but of inputs that show nothing.
  EXPECT_EQ(tested.outcome("copy-of-x"), "passed");
  EXPECT_EQ(tested.outcome("half-done"), "refused");
  EXPECT_EQ(tested.outcome("input-destroying"), "refused");
}

TEST_F(StrengthTest, EqualIntegersAreTooWeak) {
  useIntegers();
  fills({{"equal", {3}}, {"zeros", {}}});
  Tested tested = test();
  EXPECT_EQ(tested.outcome("zeros"), "refused");
  EXPECT_EQ(tested.outcome("first-value"), "passed");
  EXPECT_EQ(tested.outcome("mean"), "passed");
  EXPECT_EQ(tested.outcome("reversed"), "passed");
}

/// The battery stands beside a workload of floats, and has other numbers.
TEST_F(StrengthTest, TheFullChecksMakeUpForZeros) {
  trying.task.work.exactOnIntegers = false;
  fills({{"zeros", {}}, {"zeros", {}}});
  Tested tested = test();
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  EXPECT_EQ(tested.outcome("zeros"), "refused");
  EXPECT_TRUE(tested.dummies["zeros"].passedQuick);
  EXPECT_EQ(tested.dummies["zeros"].inputs, "normal, shifted and scaled");
  EXPECT_FALSE(tested.dummies["half-done"].passedQuick);
}

TEST_F(StrengthTest, AKernelThatIsConstantIsTooWeak) {
  trying.original.body = [](Params params) {
    std::fill_n(pointerOf(params, 8), testElements, 7.0f);
    return 0;
  };
  Tested tested = test();
  for (const char *name :
       {"first-value", "most-frequent-value", "mean", "statistics-only",
        "stale-buffer", "answer-for-another-seed"})
    EXPECT_EQ(tested.outcome(name), "passed") << name;
  EXPECT_EQ(tested.outcome("zeros"), "refused");
}

TEST_F(StrengthTest, ACopyIsItsOwnFunction) {
  trying.original.body = [](Params params) {
    std::copy_n(pointerOf(params, 1), testElements, pointerOf(params, 8));
    return 0;
  };
  Tested tested = test();
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  EXPECT_EQ(tested.with(Outcome::SameFunction), Names{"copy-of-x"});
}

/// Within the bound is not the same: x * (1 + 2^-23) is no copy.
TEST_F(StrengthTest, NearlyACopyIsNotItsFunction) {
  trying.task.work.exactOnIntegers = false;
  trying.original.body = [](Params params) {
    for (int64_t i = 0; i < testElements; ++i)
      pointerOf(params, 8)[i] = pointerOf(params, 1)[i] * (1 + 0x1p-23f);
    return 0;
  };
  EXPECT_EQ(test().with(Outcome::Passed), Names{"copy-of-x"});
}

TEST_F(StrengthTest, WhatTheOriginalLeavesAloneMayStay) {
  trying.original.body = [](Params params) {
    for (int64_t i = 0; i < testElements / 2; ++i)
      pointerOf(params, 8)[i] = 2 * pointerOf(params, 1)[i];
    return 0;
  };
  Tested tested = test();
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  EXPECT_EQ(tested.outcome("half-done"), "same-function");
  EXPECT_EQ(tested.outcome("all-but-the-last-row"), "same-function");
  EXPECT_EQ(tested.outcome("every-second-row"), "refused");
  // Nothing but its values gives a dummy away.
  EXPECT_EQ(tested.dummies["zeros"].detail.find("untouched"),
            std::string::npos);
}

/// There the original's answers are kept, with what it left alone.
TEST_F(StrengthTest, WhatTheOriginalLeavesAloneIsKnownOnTheVirtualDeviceToo) {
  trying.task.launch.block = {32, 1, 1};
  std::unique_ptr<Backend> backend = cantFail(openVirtualBackend());
  Tested tested = test(*backend, scalePtx(testElements / 2));
  EXPECT_EQ(tested.error, "");
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  EXPECT_EQ(tested.outcome("half-done"), "same-function");
  EXPECT_EQ(tested.outcome("every-second-row"), "refused");
}

TEST_F(StrengthTest, InPlaceBuffersAreLeftAloneToo) {
  trying.task.arguments[1].access = Access::ReadWrite;
  trying.task.workload[0].fills.assign(2, {"normal", {0, 1}});
  trying.original.body = [](Params params) {
    for (int64_t i = 0; i < testElements; ++i)
      pointerOf(params, 8)[i] += pointerOf(params, 1)[i];
    return 0;
  };
  Tested tested = test();
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  EXPECT_EQ(tested.outcome("untouched"), "refused");
  EXPECT_EQ(tested.outcome("accumulates"), "refused");
  // y += 0: doing nothing is right, and nothing shows.
  useIntegers();
  fills({{"zeros", {}}, {"integers", {0, 15}}});
  trying.original.body = [](Params params) {
    for (int64_t i = 0; i < testElements; ++i)
      pointerOf<int32_t>(params, 8)[i] += pointerOf<int32_t>(params, 1)[i];
    return 0;
  };
  tested = test();
  EXPECT_EQ(tested.outcome("untouched"), "passed");
  EXPECT_EQ(tested.outcome("zeros"), "refused");
}

class ReductionTest : public StrengthTest {
protected:
  /// The mean of squares, by so long a chain that its bound is loose.
  void meanOfSquares(int64_t accumulation) {
    trying.task.arguments[1].sizes = {1};
    trying.task.arguments[1].strides = {1};
    trying.task.work.exactOnIntegers = false;
    trying.task.work.accumulation = accumulation;
    trying.original.body = [](Params params) {
      double sum = 0;
      for (int64_t i = 0; i < testElements; ++i)
        sum += double(pointerOf(params, 1)[i]) * pointerOf(params, 1)[i];
      *pointerOf(params, 8) = float(sum / testElements);
      return 0;
    };
  }
};

TEST_F(ReductionTest, OneElementHasFewerDummies) {
  meanOfSquares(testElements);
  Tested tested = test();
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  for (const char *name : {"first-value", "half-done", "reversed",
                           "every-second-row", "all-but-the-last-element"})
    EXPECT_EQ(tested.outcome(name), "not-applicable") << name;
  EXPECT_EQ(tested.outcome("answer-for-another-seed"), "refused");
  EXPECT_EQ(tested.outcome("untouched"), "refused");
}

/// With inputs of one family the mean of many squares is the same for every
/// seed; one whose scale the seed draws tells them apart.
TEST_F(ReductionTest, WhatConvergesNeedsFamiliesThatDrift) {
  meanOfSquares(int64_t(1) << 36);
  Tested tested = test();
  EXPECT_TRUE(tested.dummies["mean"].passedQuick);
  EXPECT_TRUE(tested.dummies["answer-for-another-seed"].passedQuick);
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  trying.task.workload[0].fills.assign(2, {"drifting", {0, 4}});
  unsigned quick = 0;
  for (seed = 1; seed <= 3; ++seed)
    quick += test().dummies["mean"].passedQuick;
  EXPECT_LT(quick, 3u);
}

TEST_F(StrengthTest, GapsBetweenElementsStay) {
  trying.task.arguments[1].strides = {2 * testColumns, 2};
  trying.original.body = [](Params params) {
    for (int64_t i = 0; i < testElements; ++i)
      pointerOf(params, 8)[2 * i] = 2 * pointerOf(params, 1)[i];
    return 0;
  };
  Tested tested = test();
  EXPECT_EQ(tested.with(Outcome::Passed), Names());
  EXPECT_TRUE(
      llvm::StringRef(tested.dummies["zeros"].detail).starts_with("mismatch"))
      << tested.dummies["zeros"].detail;
}

TEST_F(StrengthTest, AnOriginalThatBreaksItsTaskIsAnError) {
  trying.original.body = [](Params params) {
    pointerOf(params, 1)[0] += 1;
    return 0;
  };
  EXPECT_NE(test().error.find("writes a buffer that the task calls read-only"),
            std::string::npos);
}

TEST_F(StrengthTest, DriftingFillsDependOnTheSeed) {
  FillRecipe recipe{"drifting", {10, 2}};
  FillRecipe one = drifted(recipe, 1), other = drifted(recipe, 2);
  EXPECT_EQ(one.family, "normal");
  EXPECT_EQ(one.print(), drifted(recipe, 1).print());
  EXPECT_NE(one.print(), other.print());
  for (const FillRecipe &fill : {one, other}) {
    EXPECT_GE(std::abs(fill.parameters[0] - 10), 0.5);
    EXPECT_LE(std::abs(fill.parameters[0] - 10), 2);
    EXPECT_GE(fill.parameters[1], 2);
    EXPECT_LE(fill.parameters[1], 4);
  }
}

} // namespace
