// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a search makes of its task's own test: families are tried, a weak task
// is told before anything is asked, and a result in the store is not made anew.
//
//===----------------------------------------------------------------------===//

#include "Scripted.h"

#include "fsr/Search/Report.h"
#include "fsr/Search/Strength.h"
#include "fsr/Support/Files.h"

using namespace fsr;

namespace {

using Outcome = DummyResult::Outcome;

DummyResult dummy(llvm::StringRef name, Outcome outcome, bool quick = false) {
  DummyResult result;
  result.name = name.str();
  result.outcome = outcome;
  result.passedQuick = quick;
  return result;
}

class TaskStrengthTest : public SearchTest {
protected:
  TaskStrengthTest() {
    options.width = options.rounds = 1;
    client.answers = {{"r1-s1", answer("time=50")}};
    task.arguments[0].access = Access::Read;
  }
  std::string file(bool isModelled = false) {
    return folder.path + "/strength/" + task.key +
           (isModelled ? "/virtual.json" : "/gpu.json");
  }
};

TEST_F(TaskStrengthTest, ATaskIsTestedBeforeAnythingIsAsked) {
  std::vector<std::string> events;
  SearchOutcome outcome = run([&](const SearchEvent &event) {
    if (event.kind == SearchEvent::Kind::Tested)
      events.push_back(event.strength->summary());
    else if (event.kind == SearchEvent::Kind::Asked)
      events.push_back("asked");
  });
  EXPECT_EQ(events, (std::vector<std::string>{"1 dummy, refused", "asked"}));
  ASSERT_TRUE(outcome.winner);
  const Check &check = outcome.winner->evidence.checks.back();
  EXPECT_EQ(check.name, "task-strength");
  EXPECT_EQ(check.inputs, "x normal(0, 1)");
  EXPECT_EQ(check.detail, "1 dummy, refused");
}

TEST_F(TaskStrengthTest, OnceIsEnough) {
  run();
  EXPECT_EQ(device.tests, 1u);
  client.answers["r2-s1"] = answer("time=40");
  options.rounds = 2;
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.asked, 1u);
  EXPECT_EQ(device.tests, 1u);
  ASSERT_TRUE(outcome.strength);
  EXPECT_EQ(outcome.strength->device, "Fake GPU");
  // Another kind of device, and another workload, are another matter.
  device.description.isVirtual = true;
  run();
  EXPECT_EQ(device.tests, 2u);
  device.description.isVirtual = false;
  options.rounds = 3;
  client.answers["r3-s1"] = answer("time=30");
  task.workload[0].fills[0] = {"uniform", {-1, 1}};
  run();
  EXPECT_EQ(device.tests, 3u);
  EXPECT_EQ(device.workloads.back(), "x uniform(-1, 1)");
}

TEST_F(TaskStrengthTest, ADamagedResultIsMadeAnew) {
  run();
  std::string text = llvm::cantFail(readFile(file(), 1 << 20));
  std::string edited = text;
  edited.replace(edited.find("refused"), 7, "passed\"");
  for (const std::string &other :
       {edited, std::string("no JSON"), text.substr(0, 40)}) {
    ASSERT_FALSE(bool(writeFileAtomically(file(), other)));
    unsigned before = device.tests;
    ++options.rounds;
    client.answers["r" + std::to_string(options.rounds) + "-s1"] =
        answer("time=" + std::to_string(50 - options.rounds));
    EXPECT_EQ(run().asked, 1u);
    EXPECT_EQ(device.tests, before + 1);
    EXPECT_EQ(llvm::cantFail(readFile(file(), 1 << 20)), text);
  }
}

TEST_F(TaskStrengthTest, AWeakTaskIsNotSearched) {
  task.workload[0].fills[0] = {"zeros", {}};
  device.dummies = {dummy("zeros", Outcome::Passed),
                    dummy("half-done", Outcome::Refused),
                    dummy("mean", Outcome::Passed)};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Weak);
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_TRUE(client.asked.empty());
  EXPECT_FALSE(outcome.winner);
  for (llvm::StringRef part :
       {"the dummy 'zeros' passed", "and so did mean", "inputs: x zeros",
        "fsr.workload = {x = \"uniform(-8, 8)\"}"})
    EXPECT_NE(outcome.weak.find(part.str()), std::string::npos) << outcome.weak;
  KernelOutcome kernel;
  takeSearch(outcome, kernel);
  EXPECT_EQ(kernel.remark, "WeakWorkload");
  EXPECT_EQ(kernel.detail, outcome.weak);
  // It has ended: nothing goes on by itself.
  EXPECT_FALSE(llvm::cantFail(openStore(folder.path, StoreMode::Search))
                   ->isUnfinished(task.key));
  // Said again, and not tested again.
  EXPECT_EQ(run().weak, outcome.weak);
  EXPECT_EQ(device.tests, 1u);
}

/// In place of the standard workload the first family that serves is taken.
class FamiliesTest : public TaskStrengthTest {
protected:
  class Choosy final : public Device {
  public:
    std::map<std::string, std::vector<DummyResult>> byWorkload;
    std::vector<std::string> tried;
    std::string failing;

    llvm::Expected<DeviceDescription> describe() override {
      DeviceDescription description;
      description.chip = "sm_90";
      return description;
    }
    llvm::Error probe() override { return llvm::Error::success(); }
    llvm::Expected<EvaluateResult> evaluate(const EvaluateRequest &) override {
      return makeError(ErrorKind::Unsupported, "not asked for");
    }
    llvm::Expected<std::vector<DummyResult>>
    testStrength(const StrengthRequest &request) override {
      tried.push_back(fillsText(*request.task, request.task->workload[0]));
      if (tried.back() == failing)
        return makeError(ErrorKind::Unavailable, "the original crashed");
      auto found = byWorkload.find(tried.back());
      return found == byWorkload.end() ? byWorkload["else"] : found->second;
    }
  };
  TaskStrength test() {
    return llvm::cantFail(testStrength(task, "reference", 0, choosy));
  }
  Choosy choosy;
};

TEST_F(FamiliesTest, TheStandardOneStaysWhereItServes) {
  choosy.byWorkload["else"] = {dummy("mean", Outcome::Refused)};
  EXPECT_EQ(test().workload[0].fills[0].print(), "normal(0, 1)");
  EXPECT_EQ(choosy.tried.size(), 1u);
}

TEST_F(FamiliesTest, QuickChecksShouldServeAlready) {
  choosy.byWorkload["else"] = {dummy("mean", Outcome::Refused)};
  choosy.byWorkload["x normal(0, 1)"] = {
      dummy("mean", Outcome::Refused, /*quick=*/true)};
  TaskStrength strength = test();
  EXPECT_EQ(choosy.tried,
            (std::vector<std::string>{"x normal(0, 1)", "x drifting(0, 1)"}));
  EXPECT_EQ(strength.workload[0].fills[0].print(), "drifting(0, 1)");
  EXPECT_EQ(strength.givenDigest, digestOf(task.workload));
}

TEST_F(FamiliesTest, TheBestOfThemAndNoFailingOne) {
  choosy.byWorkload["else"] = {dummy("mean", Outcome::Passed)};
  choosy.byWorkload["x uniform(0, 1)"] = {
      dummy("mean", Outcome::Refused, /*quick=*/true)};
  choosy.failing = "x drifting(0, 1)";
  TaskStrength strength = test();
  EXPECT_EQ(choosy.tried.size(), 5u);
  EXPECT_EQ(strength.workload[0].fills[0].print(), "uniform(0, 1)");
  EXPECT_EQ(strength.summary(),
            "1 dummy, refused, 1 of them by the full checks only");
}

TEST_F(FamiliesTest, WhatWasGivenIsTakenAsItIs) {
  choosy.byWorkload["else"] = {dummy("mean", Outcome::Passed)};
  task.workload[0].fills[0] = {"uniform", {0, 1}};
  EXPECT_TRUE(test().weakness());
  EXPECT_EQ(choosy.tried.size(), 1u);
  // Integers may be indices: there is no other family for them.
  task.arguments[0].element = ElementType::I32;
  task.workload[0].fills[0] = FillRecipe::standard(ElementType::I32);
  EXPECT_TRUE(hasStandardWorkload(task));
  EXPECT_TRUE(test().weakness());
  EXPECT_EQ(choosy.tried.size(), 2u);
}

TEST_F(FamiliesTest, ATroubledFirstTestIsAnError) {
  choosy.failing = "x normal(0, 1)";
  llvm::Expected<TaskStrength> made =
      testStrength(task, "reference", 0, choosy);
  EXPECT_EQ(llvm::toString(made.takeError()), "the original crashed");
}

TEST(LongTest, IsToldFromAMinuteOn) {
  EXPECT_EQ(longTestText({0, 17, 59}), "");
  std::string text = longTestText({0, 17, 180});
  EXPECT_NE(text.find("about 3 min on the virtual device"), std::string::npos);
  EXPECT_NE(text.find("smaller sizes"), std::string::npos);
}

} // namespace
