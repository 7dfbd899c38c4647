// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Verdicts of the race, on a simulated clock with a known noise.
//
//===----------------------------------------------------------------------===//

#include "TimingSession.h"
#include "WorkerHarness.h"

#include "gtest/gtest.h"

#include <chrono>
#include <memory>
#include <set>

using namespace fsr;

namespace {

using Params = llvm::ArrayRef<void *>;

EvaluateResult measured(Trying &trying, Verdict verdict) {
  Ran ran = trying.run();
  EXPECT_TRUE(ran.result) << ran.error;
  if (!ran.result)
    return {};
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(verdict))
      << ran.result->message;
  EXPECT_EQ(trying.backend.allocatedBytes(), 0u);
  return *ran.result;
}

TEST(MeasureTest, FasterIsAcceptedWithItsEvidence) {
  Trying trying;
  EvaluateResult result = measured(trying, Verdict::Accepted);
  ASSERT_TRUE(result.measurement);
  const Measurement &m = *result.measurement;
  EXPECT_NEAR(m.speedup, 2, 0.02);
  EXPECT_LE(m.speedupLow, m.speedup);
  EXPECT_GE(m.speedupHigh, m.speedup);
  EXPECT_NEAR(m.originalMedianUs, 100, 1);
  EXPECT_NEAR(m.candidateMedianUs, 50, 1);
  EXPECT_GE(m.originalUs.size(), 8u);
  EXPECT_LT(m.noiseFloor, 0.01);
  EXPECT_EQ(m.batch, 1);
  EXPECT_NEAR(double(m.smClockMhz), 2000, 50);
  EXPECT_EQ(result.evidence.level, EvidenceLevel::Measured);
  for (llvm::StringRef name : {"exact-inputs", "timed-outputs", "host-clock",
                               "physical-bound", "input-battery"})
    EXPECT_TRUE(findCheck(result, name)->passed);
}

TEST(MeasureTest, TwiceAsSlowIsDroppedAfterThree) {
  Trying trying;
  trying.candidate.microseconds = 250;
  EvaluateResult result = measured(trying, Verdict::NotFaster);
  ASSERT_TRUE(result.measurement);
  EXPECT_EQ(result.measurement->originalUs.size(), 3u);
  EXPECT_NE(result.message.find("three launches"), std::string::npos);
}

TEST(MeasureTest, ALittleSlowerIsNotFaster) {
  Trying trying;
  trying.candidate.microseconds = 103;
  EvaluateResult result = measured(trying, Verdict::NotFaster);
  EXPECT_LT(result.measurement->speedup, 1);
  EXPECT_EQ(result.evidence.level, EvidenceLevel::None);
}

TEST(MeasureTest, AQuickLookNeverAccepts) {
  Trying trying;
  trying.candidate.microseconds = 50;
  trying.options.full = false;
  EvaluateResult result = measured(trying, Verdict::Undecided);
  EXPECT_NEAR(result.measurement->speedup, 2, 0.1);
  EXPECT_EQ(result.evidence.level, EvidenceLevel::None);
  for (const Check &check : result.evidence.checks)
    EXPECT_NE(check.name, "input-battery");
}

TEST(MeasureTest, AQuickLookDropsWhatIsSlower) {
  Trying trying;
  trying.candidate.microseconds = 130;
  trying.options.full = false;
  measured(trying, Verdict::NotFaster);
}

TEST(MeasureTest, AQuickLookTakesThePairsThatItIsAskedFor) {
  Trying trying;
  trying.options.full = false;
  EXPECT_EQ(measured(trying, Verdict::Undecided).measurement->originalUs.size(),
            9u);
  trying.options.quickPairs = 16;
  EXPECT_EQ(measured(trying, Verdict::Undecided).measurement->originalUs.size(),
            16u);
}

TEST(MeasureTest, AQuickLookFindsTheDeviceWarmFromTheOneBefore) {
  Trying trying;
  trying.backend.jitter = 0;
  trying.options.full = false;
  RunningWorker worker(trying.backend);
  std::vector<size_t> launches;
  for (unsigned i = 0; i < 3; ++i) {
    size_t before = trying.backend.launches;
    ASSERT_TRUE(trying.runOnce(worker).result);
    launches.push_back(trying.backend.launches - before);
  }
  worker.finish();
  EXPECT_GT(launches[0], launches[1] + 20) << "60 ms";
  EXPECT_EQ(launches[1], launches[2]) << "five samples of one clock";
}

TEST(MeasureTest, EqualIsNeverAccepted) {
  Trying trying;
  trying.candidate.microseconds = 100;
  trying.options.maxPairs = 32;
  Ran ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_NE(nameOf(ran.result->verdict), nameOf(Verdict::Accepted));
}

TEST(MeasureTest, TooNoisyIsUndecided) {
  Trying trying;
  trying.backend.jitter = 0.9;
  Ran ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  if (ran.result->verdict != Verdict::NotFaster) // Screened out by bad luck.
    EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Undecided))
        << ran.result->message;
}

TEST(MeasureTest, ShortKernelsAreBatched) {
  Trying trying;
  trying.original.microseconds = 5;
  trying.candidate.microseconds = 3;
  EvaluateResult result = measured(trying, Verdict::Accepted);
  EXPECT_GE(result.measurement->batch, 19);
  EXPECT_NEAR(result.measurement->originalMedianUs, 5, 0.1);
}

TEST(MeasureTest, InPlaceKernelsAreNotBatched) {
  Trying trying;
  trying.task.arguments = {bufferArgument(
      "x", ElementType::F32, {testRows, testColumns}, Access::ReadWrite)};
  trying.task.workload[0].fills.resize(1);
  trying.plan.launches[0].args = {"x"};
  auto twice = [](float *x) {
    for (int64_t i = 0; i < testElements; ++i)
      x[i] *= 2;
    return 0;
  };
  trying.original.body = [=](Params p) { return twice(pointerOf(p, 1)); };
  trying.candidate.body = [=](Params p) { return twice(pointerOf(p, 0)); };
  trying.original.microseconds = 5;
  trying.candidate.microseconds = 3;
  EvaluateResult result = measured(trying, Verdict::Accepted);
  EXPECT_EQ(result.measurement->batch, 1);
}

TEST(MeasureTest, WorkBehindTheEventsIsImplausible) {
  Trying trying;
  auto right = trying.candidate.body;
  trying.candidate.body = [=](Params params) {
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
    return right(params);
  };
  EvaluateResult result = measured(trying, Verdict::Implausible);
  EXPECT_NE(result.message.find("after its events"), std::string::npos)
      << result.message;
}

TEST(MeasureTest, FasterThanMemoryIsImplausible) {
  Trying trying;
  // 350 MB at 4.6 TB/s take 76 us, between candidate and original.
  trying.task.work.bytesRead = 3.5e8;
  EvaluateResult result = measured(trying, Verdict::Implausible);
  EXPECT_NE(result.message.find("by its memory"), std::string::npos)
      << result.message;
  EXPECT_FALSE(findCheck(result, "physical-bound")->passed);
}

TEST(MeasureTest, FasterThanTheUnitsIsImplausible) {
  Trying trying;
  trying.original.microseconds = 10000;
  trying.task.work.flops = 1e10;
  EvaluateResult result = measured(trying, Verdict::Implausible);
  EXPECT_NE(result.message.find("by its arithmetic units"), std::string::npos)
      << result.message;
}

TEST(MeasureTest, AnEstimateThatTheOriginalBeatsIsNoBound) {
  // As where a few rows are taken out of a large table.
  Trying trying;
  trying.task.work.bytesRead = 1e9;
  EvaluateResult result = measured(trying, Verdict::Accepted);
  const Check *check = findCheck(result, "physical-bound");
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->passed);
  EXPECT_NE(check->detail.find("no bound"), std::string::npos) << check->detail;
}

TEST(MeasureTest, SkippingWorkWhileTimedIsFound) {
  Trying trying;
  // Right for as long as validation lasts, as a launch counter could tell.
  auto calls = std::make_shared<int>(0);
  auto right = trying.candidate.body;
  trying.candidate.body = [=](Params params) {
    return ++*calls > 7 ? 0 : right(params);
  };
  EvaluateResult result = measured(trying, Verdict::Mismatch);
  EXPECT_NE(result.message.find("fresh while timing"), std::string::npos)
      << result.message;
}

TEST(MeasureTest, ReplayOfAnEarlierResultIsFound) {
  Trying trying;
  auto calls = std::make_shared<int>(0);
  auto kept = std::make_shared<std::vector<float>>();
  auto right = trying.candidate.body;
  trying.candidate.body = [=](Params params) {
    float *y = pointerOf(params, 1);
    if (++*calls > 9) {
      std::copy(kept->begin(), kept->end(), y);
      return 0;
    }
    right(params);
    kept->assign(y, y + testElements);
    return 0;
  };
  trying.options.maxPairs = 128;
  trying.candidate.microseconds = 99.9; // Several looks.
  measured(trying, Verdict::Mismatch);
}

TEST(MeasureTest, TheFullRungComesOnlyForAWinner) {
  // Wrong on zeros alone: seen only by the battery.
  auto wrongOnZeros = [](Params params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    bool zeros = true;
    for (int64_t i = 0; i < testElements; ++i) {
      y[i] = 2 * x[i];
      zeros = zeros && x[i] == 0;
    }
    if (zeros)
      y[0] = 1;
    return 0;
  };
  Trying winner;
  winner.candidate.body = wrongOnZeros;
  EvaluateResult result = measured(winner, Verdict::Mismatch);
  EXPECT_NE(result.message.find("on zeros inputs"), std::string::npos)
      << result.message;
  Trying loser;
  loser.candidate.body = wrongOnZeros;
  loser.candidate.microseconds = 130;
  measured(loser, Verdict::NotFaster);
}

TEST(MeasureTest, PairsAtAThrottledClockAreDropped) {
  Trying trying;
  // The spin kernel of the host counts two clocks a nanosecond.
  trying.backend.facts.clockKhz = 4000000;
  trying.options.maxPairs = 8;
  EvaluateResult result = measured(trying, Verdict::Undecided);
  EXPECT_NE(result.message.find("throttled"), std::string::npos)
      << result.message;
  EXPECT_FALSE(result.measurement);
}

TEST(MeasureTest, PairsWhoseClockChangedInsideAreDropped) {
  Trying trying;
  trying.options.maxPairs = 8;
  // However long the hold is, the clock around the candidate is another.
  trying.candidate.clockMhz = 20000;
  EvaluateResult result = measured(trying, Verdict::Undecided);
  EXPECT_NE(result.message.find("steady clock"), std::string::npos)
      << result.message;
}

TEST(MeasureTest, AWarmDeviceIsNotWarmedAgain) {
  Trying trying;
  trying.candidate.microseconds = 300; // Screened, so there is no race.
  RunningWorker worker(trying.backend);
  auto timed = [&] {
    auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(trying.runOnce(worker).result);
    return std::chrono::steady_clock::now() - start;
  };
  EXPECT_GE(timed(), std::chrono::milliseconds(200));
  EXPECT_LT(timed(), std::chrono::milliseconds(150));
  worker.finish();
}

TEST(MeasureTest, TheStateOfTheDeviceIsKept) {
  Trying trying;
  GpuState state;
  state.driver = "580.1";
  state.clockMhz = 1980;
  state.temperatureC = 61;
  state.powerWatts = 412;
  state.powerLimitWatts = 700;
  state.clockLimits = {"power cap"};
  state.otherProcesses = 2;
  trying.backend.gpu = state;
  EvaluateResult result = measured(trying, Verdict::Accepted);
  ASSERT_TRUE(result.measurement && result.measurement->conditions);
  const Conditions &kept = *result.measurement->conditions;
  EXPECT_EQ(kept.driver, "580.1");
  EXPECT_EQ(kept.temperatureC, 61);
  EXPECT_EQ(kept.powerWatts, 412);
  EXPECT_EQ(kept.memoryClockMhz, -1);
  EXPECT_EQ(kept.clockLimits, std::vector<std::string>{"power cap"});
  const std::string &words = findCheck(result, "conditions")->detail;
  for (llvm::StringRef part : {"driver 580.1", "61 degrees", "412 W of 700 W",
                               "power cap", "2 other processes on the GPU"})
    EXPECT_NE(words.find(part.str()), std::string::npos) << words;
  EXPECT_EQ(words.find("memory"), std::string::npos) << words;
}

/// Of every trial that was timed, not of winners alone; one reading serves
/// quick looks for a second.
TEST(MeasureTest, AQuickLookKeepsTheStateOfTheDevice) {
  for (bool isSlow : {false, true}) {
    Trying trying;
    trying.options.full = false;
    if (isSlow)
      trying.candidate.microseconds = 300;
    GpuState state;
    state.driver = "580.1";
    state.clockMhz = 1980;
    state.temperatureC = 61;
    trying.backend.gpu = state;
    EvaluateResult result =
        measured(trying, isSlow ? Verdict::NotFaster : Verdict::Undecided);
    ASSERT_TRUE(result.measurement && result.measurement->conditions);
    const Conditions &kept = *result.measurement->conditions;
    EXPECT_EQ(kept.driver, "580.1");
    EXPECT_EQ(kept.clockMhz, 1980);
    EXPECT_EQ(kept.temperatureC, 61);
    EXPECT_FALSE(result.measurement->device.empty());
    EXPECT_FALSE(result.measurement->originalUs.empty());
  }
}

TEST(TimingSessionTest, ConditionsLastForASecond) {
  TimingSession session;
  TimingSession::Clock::time_point now = TimingSession::Clock::now();
  EXPECT_EQ(session.conditions(now), nullptr);
  session.setConditions(std::nullopt, now); // The device does not tell.
  ASSERT_NE(session.conditions(now), nullptr);
  EXPECT_FALSE(*session.conditions(now));
  session.setConditions(Conditions(), now);
  EXPECT_TRUE(*session.conditions(now + std::chrono::milliseconds(900)));
  EXPECT_EQ(session.conditions(now + std::chrono::milliseconds(1100)), nullptr);
}

TEST(MeasureTest, WithoutAManagementLibraryOneLineSaysSo) {
  Trying trying;
  EvaluateResult result = measured(trying, Verdict::Accepted);
  EXPECT_FALSE(result.measurement->conditions);
  EXPECT_EQ(findCheck(result, "conditions")->detail,
            "no NVML: the device is no GPU");
  EXPECT_EQ(result.measurement->originalCycles.size(),
            result.measurement->originalUs.size());
}

TEST(MeasureTest, ARaceAloneIsNotValidatedInFull) {
  Trying trying;
  trying.options.raceOnly = true;
  EvaluateResult result = measured(trying, Verdict::Accepted);
  EXPECT_EQ(result.evidence.level, EvidenceLevel::None);
  for (const Check &check : result.evidence.checks)
    EXPECT_NE(check.name, "input-battery");
}

TEST(ConfirmTest, EveryCaseIsMeasuredColdAndWarm) {
  Trying trying;
  trying.options.confirm = true;
  trying.task.workload.push_back(trying.task.workload[0]);
  trying.task.workload[1].name = "other";
  EvaluateResult result = measured(trying, Verdict::Accepted);
  ASSERT_TRUE(result.measurement);
  EXPECT_GE(result.measurement->originalUs.size(), 30u);
  EXPECT_NEAR(result.measurement->speedup, 2, 0.02);
  const std::string &story = findCheck(result, "confirmed")->detail;
  for (llvm::StringRef part :
       {"static, cold", "static, warm", "other, cold", "other, warm"})
    EXPECT_NE(story.find(part.str()), std::string::npos) << story;
  EXPECT_NE(result.message.find("confirmed in a fresh process"),
            std::string::npos);
  for (const Check &check : result.evidence.checks)
    EXPECT_NE(check.name, "input-battery");
}

TEST(ConfirmTest, EqualIsNotConfirmed) {
  Trying trying;
  trying.options.confirm = true;
  trying.candidate.microseconds = 100;
  EvaluateResult result = measured(trying, Verdict::NotFaster);
  EXPECT_FALSE(findCheck(result, "confirmed")->passed);
  EXPECT_NE(result.message.find("not confirmed"), std::string::npos)
      << result.message;
}

TEST(ConfirmTest, SlowerWithAWarmCacheIsNotConfirmed) {
  Trying trying;
  trying.options.confirm = true;
  // Its second launch in a row is a slow one.
  bool last = false;
  trying.backend.onLaunch = [&](HostKernel &kernel) {
    bool isCandidate = kernel.microseconds != 100;
    if (isCandidate)
      kernel.microseconds = last ? 130 : 50;
    last = isCandidate;
  };
  EvaluateResult result = measured(trying, Verdict::NotFaster);
  EXPECT_NE(result.message.find("warm cache"), std::string::npos)
      << result.message;
}

TEST(MeasureTest, SlowKernelsStayWithinTheBudget) {
  Trying trying;
  trying.options.gpuSeconds = 0.3;
  auto slow = [](auto body) {
    return [=](Params params) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return body(params);
    };
  };
  trying.original.body = slow(trying.original.body);
  trying.candidate.body = slow(trying.candidate.body);
  // About the margin: no look decides.
  trying.original.microseconds = 5025;
  trying.candidate.microseconds = 5000;
  EvaluateResult result = measured(trying, Verdict::Undecided);
  ASSERT_TRUE(result.measurement);
  EXPECT_GE(result.measurement->originalUs.size(), 5u);
  EXPECT_LT(result.measurement->originalUs.size(), 64u);
}

TEST(MeasureTest, ABatchIsAsLongAsMemoryAllows) {
  Trying trying;
  ASSERT_EQ(measured(trying, Verdict::Accepted).measurement->batch, 1);
  trying.original.microseconds = 10;
  trying.candidate.microseconds = 5;
  // Room for four outputs more; half of it stays free.
  trying.backend.capacity =
      trying.backend.mostUsed + 4 * testElements * sizeof(float);
  EvaluateResult result = measured(trying, Verdict::Accepted);
  EXPECT_GT(result.measurement->batch, 1);
  EXPECT_LT(result.measurement->batch, 10);
}

TEST(MeasureTest, NoRaceEndsBeforeAnOutputWasCompared) {
  for (unsigned turn = 0; turn < 4; ++turn) {
    Trying trying;
    trying.options.gpuSeconds = 0.4;
    auto slow = [](auto body) {
      return [=](Params params) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return body(params);
      };
    };
    trying.original.body = slow(trying.original.body);
    trying.candidate.body = slow(trying.candidate.body);
    EvaluateResult result = measured(trying, Verdict::Accepted);
    // Time is up before the first look.
    EXPECT_LT(result.measurement->originalUs.size(), 8u);
    EXPECT_FALSE(llvm::StringRef(findCheck(result, "timed-outputs")->detail)
                     .starts_with("0 of"));
  }
}

} // namespace
