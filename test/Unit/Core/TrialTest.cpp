// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// JSON of builds, measurements, evidence, trials, records and talks: every
// field comes back, no bytes travel, and hostile input is refused by name.
//
//===----------------------------------------------------------------------===//

#include "Samples.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <set>

using namespace fsr;
using namespace fsr::test;

namespace {

struct Refusal {
  llvm::StringLiteral path;
  llvm::json::Value value;
  llvm::StringLiteral error;
};

template <typename T>
void expectRefused(const T &sample, llvm::StringRef root,
                   llvm::ArrayRef<Refusal> refusals) {
  for (const Refusal &refusal : refusals)
    EXPECT_EQ(
        readError<T>(with(toJSON(sample), refusal.path, refusal.value), root),
        refusal.error)
        << refusal.path.str();
}

TEST(Verdict, Names) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Verdict::Implausible); ++i) {
    Verdict verdict = static_cast<Verdict>(i);
    EXPECT_TRUE(names.insert(nameOf(verdict).str()).second);
    EXPECT_EQ(parseVerdict(nameOf(verdict)), verdict);
  }
  EXPECT_EQ(names.size(), 11u);
  EXPECT_EQ(nameOf(Verdict::CompileFailed), "compile-failed");
  EXPECT_EQ(parseVerdict("Accepted"), std::nullopt);
  EXPECT_EQ(parseVerdict(""), std::nullopt);
}

TEST(Build, FindsResources) {
  Build build;
  build.resources = {sampleResources()};
  ASSERT_TRUE(build.find("partial"));
  EXPECT_EQ(build.find("partial")->registers, 40);
  EXPECT_FALSE(build.find("other"));
}

TEST(Measurement, RoundTrips) {
  Measurement value = sampleMeasurement(), back;
  value.originalCycles = {20790, 22275, 660};
  value.candidateCycles = {9900, 10890, 1};
  value.conditions.emplace();
  value.conditions->driver = "580.65.06";
  value.conditions->clockMhz = 1980;
  value.conditions->memoryClockMhz = 3201;
  value.conditions->temperatureC = 55;
  value.conditions->powerWatts = 412.5;
  value.conditions->powerLimitWatts = 700;
  value.conditions->clockLimits = {"power cap"};
  value.conditions->otherProcesses = 1;
  EXPECT_EQ(roundTrip(value), print(toJSON(value)));
  llvm::json::Path::Root root("m");
  llvm::Expected<llvm::json::Value> json =
      llvm::json::parse(print(toJSON(value)));
  ASSERT_TRUE(bool(json));
  ASSERT_TRUE(fromJSON(*json, back, root));
  EXPECT_EQ(back.device, value.device);
  EXPECT_EQ(back.driver, value.driver);
  EXPECT_EQ(back.originalUs, value.originalUs);
  EXPECT_EQ(back.candidateUs, value.candidateUs);
  EXPECT_EQ(back.originalMedianUs, value.originalMedianUs);
  EXPECT_EQ(back.candidateMedianUs, value.candidateMedianUs);
  EXPECT_EQ(back.speedup, value.speedup);
  EXPECT_EQ(back.speedupLow, value.speedupLow);
  EXPECT_EQ(back.speedupHigh, value.speedupHigh);
  EXPECT_EQ(back.noiseFloor, value.noiseFloor);
  EXPECT_EQ(back.droppedPairs, value.droppedPairs);
  EXPECT_EQ(back.batch, value.batch);
  EXPECT_EQ(back.smClockMhz, value.smClockMhz);
  EXPECT_EQ(back.originalCycles, value.originalCycles);
  EXPECT_EQ(back.candidateCycles, value.candidateCycles);
  ASSERT_TRUE(back.conditions);
  EXPECT_EQ(back.conditions->driver, "580.65.06");
  EXPECT_EQ(back.conditions->clockMhz, 1980);
  EXPECT_EQ(back.conditions->memoryClockMhz, 3201);
  EXPECT_EQ(back.conditions->temperatureC, 55);
  EXPECT_EQ(back.conditions->powerWatts, 412.5);
  EXPECT_EQ(back.conditions->powerLimitWatts, 700);
  EXPECT_EQ(back.conditions->clockLimits, value.conditions->clockLimits);
  EXPECT_EQ(back.conditions->otherProcesses, 1);
  // Of a record from before there were any.
  Measurement old;
  ASSERT_TRUE(fromJSON(toJSON(sampleMeasurement()), old, root));
  EXPECT_FALSE(old.conditions);
  EXPECT_TRUE(old.originalCycles.empty());
}

TEST(Measurement, NonFiniteDoublesTravelAsHex) {
  Measurement value = sampleMeasurement();
  value.speedupHigh = std::numeric_limits<double>::infinity();
  value.noiseFloor = std::nan("");
  value.speedupLow = -0.0;
  llvm::json::Value json = toJSON(value);
  EXPECT_EQ(json.getAsObject()->getString("speedup_high"), "7ff0000000000000");
  EXPECT_EQ(roundTrip(value), print(json));
  Measurement back;
  llvm::json::Path::Root root("m");
  ASSERT_TRUE(fromJSON(json, back, root));
  EXPECT_TRUE(std::isinf(back.speedupHigh));
  EXPECT_TRUE(std::isnan(back.noiseFloor));
  EXPECT_TRUE(std::signbit(back.speedupLow));
}

TEST(Measurement, Refused) {
  expectRefused(
      sampleMeasurement(), "m",
      {{"device", 1, "expected string at m.device"},
       {"original_us.1", "fast", "expected number at m.original_us[1]"},
       {"original_us", llvm::json::Array{1},
        "expected as many as in original_us at m.candidate_us"},
       {"speedup", nullptr, "expected number at m.speedup"},
       {"batch", 0, "expected integer of at least 1 at m.batch"},
       {"batch", -1, "expected integer of at least 0 at m.batch"},
       {"dropped_pairs", -1,
        "expected integer of at least 0 at m.dropped_pairs"},
       {"original_cycles", llvm::json::Array{1},
        "expected as many as in original_us at m.original_cycles"},
       {"conditions", 1, "expected object at m.conditions"}});
  EXPECT_EQ(readError<Measurement>(
                without(toJSON(sampleMeasurement()), "speedup_low"), "m"),
            "missing value at m.speedup_low");
}

TEST(Evidence, RoundTripsAndRefuses) {
  Evidence value = sampleEvidence(), back;
  EXPECT_EQ(roundTrip(value), print(toJSON(value)));
  llvm::json::Path::Root root("e");
  ASSERT_TRUE(fromJSON(toJSON(value), back, root));
  EXPECT_EQ(back.level, EvidenceLevel::Measured);
  ASSERT_EQ(back.checks.size(), 2u);
  EXPECT_EQ(back.checks[0].name, "exact-inputs");
  EXPECT_TRUE(back.checks[0].passed);
  EXPECT_EQ(back.checks[0].inputs, "signs x 2");
  EXPECT_EQ(back.checks[0].rule, "bit equality");
  EXPECT_EQ(back.checks[0].detail, "0 ulp");
  EXPECT_FALSE(back.checks[1].passed);
  EXPECT_EQ(back.device, "NVIDIA H100");
  EXPECT_EQ(back.driver, "570.1");
  EXPECT_EQ(back.toolchain, "NVRTC 13.0");
  EXPECT_EQ(back.relativeBound, 1e-6);
  EXPECT_TRUE(back.bitExact);
  EXPECT_EQ(back.sandbox, "");
  EXPECT_FALSE(toJSON(value).getAsObject()->get("sandbox"));
  value.sandbox = "seccomp, landlock";
  llvm::json::Path::Root again("e");
  ASSERT_TRUE(fromJSON(toJSON(value), back, again));
  EXPECT_EQ(back.sandbox, "seccomp, landlock");
  for (EvidenceLevel level : {EvidenceLevel::None, EvidenceLevel::Modelled}) {
    value.level = level;
    EXPECT_EQ(roundTrip(value), print(toJSON(value)));
  }
  expectRefused(
      sampleEvidence(), "e",
      {{"level", "proved", "expected none, modelled or measured at e.level"},
       {"checks.0.passed", "yes", "expected boolean at e.checks[0].passed"},
       {"relative_bound", "x", "expected number at e.relative_bound"}});
}

TEST(Trial, RoundTrips) {
  Trial value = sampleTrial(), back;
  EXPECT_EQ(roundTrip(value), print(toJSON(value)));
  llvm::json::Path::Root root("t");
  ASSERT_TRUE(fromJSON(toJSON(value), back, root));
  EXPECT_EQ(back.key(), value.key());
  value.isModelled = true;
  llvm::json::Path::Root again("t");
  ASSERT_TRUE(fromJSON(toJSON(value), back, again));
  EXPECT_EQ(back.key(), value.key());
  EXPECT_EQ(back.parameters, value.parameters);
  EXPECT_EQ(back.round, 2);
  EXPECT_EQ(back.slot, 3);
  EXPECT_EQ(back.verdict, Verdict::NotFaster);
  EXPECT_EQ(back.message, "1.01x");
  EXPECT_TRUE(back.full);
  ASSERT_EQ(back.resources.size(), 1u);
  EXPECT_EQ(back.resources[0].spillLoadBytes, 16);
  ASSERT_TRUE(back.measurement);
  EXPECT_EQ(back.measurement->speedup, 2.05);

  value.measurement.reset();
  EXPECT_EQ(roundTrip(value), print(toJSON(value)));
  ASSERT_TRUE(fromJSON(toJSON(value), back, root));
  EXPECT_FALSE(back.measurement);
}

TEST(Trial, Refused) {
  expectRefused(
      sampleTrial(), "t",
      {{"task_key", "../x", "expected 64 lower-case hex digits at t.task_key"},
       {"candidate_hash", "",
        "expected 64 lower-case hex digits at t.candidate_hash"},
       {"verdict", "good", "expected a verdict, as accepted at t.verdict"},
       {"round", -1, "expected integer of at least 0 at t.round"},
       {"parameters.TILE", "1", "expected integer at t.parameters.TILE"},
       {"parameters.a b", 1,
        "expected a C identifier that is no keyword at t.parameters.a b"},
       {"measurement", 3, "expected object at t.measurement"},
       {"resources.0.registers", -1,
        "expected integer of at least 0 at t.resources[0].registers"}});
}

TEST(Trial, KeyCoversTaskCandidateAndParameters) {
  Trial base = sampleTrial();
  std::set<std::string> keys{base.key()};
  auto differs = [&](auto change) {
    Trial trial = base;
    change(trial);
    EXPECT_TRUE(keys.insert(trial.key()).second);
  };
  differs([](Trial &t) { t.taskKey = digest('0'); });
  differs([](Trial &t) { t.candidateHash = digest('0'); });
  differs([](Trial &t) { t.parameters["TILE"] = 65; });
  differs([](Trial &t) { t.parameters.erase("TILE"); });
  differs([](Trial &t) { t.isModelled = true; });
  Trial later = base;
  later.round = 9;
  later.verdict = Verdict::Crashed;
  EXPECT_EQ(later.key(), base.key());
}

TEST(Record, RoundTripsWithoutBytes) {
  Record value = sampleRecord(), back;
  std::string text = print(toJSON(value));
  EXPECT_EQ(roundTrip(value), text);
  EXPECT_EQ(text.find("\"source\""), std::string::npos);
  EXPECT_EQ(text.find("__global__"), std::string::npos);
  EXPECT_EQ(text.find("fatbin"), std::string::npos);
  llvm::json::Path::Root root("r");
  ASSERT_TRUE(fromJSON(toJSON(value), back, root));
  EXPECT_EQ(back.id, value.id);
  EXPECT_EQ(back.taskKey, value.taskKey);
  EXPECT_EQ(back.target, "sm_90");
  EXPECT_EQ(back.chip, "sm_90a");
  EXPECT_EQ(back.kernelName, "softmax");
  EXPECT_EQ(back.candidate.guards, value.candidate.guards);
  EXPECT_EQ(back.candidate.source, "");
  EXPECT_EQ(back.parameters, value.parameters);
  EXPECT_EQ(back.plan.launches[0].shape.sharedBytes, 99);
  EXPECT_EQ(back.plan.launches[0].shape.block,
            (std::array<int64_t, 3>{5, 6, 7}));
  EXPECT_EQ(back.plan.scratch[0].bytes, 24);
  EXPECT_EQ(back.resources[0].kernel, "partial");
  EXPECT_EQ(back.measurement.smClockMhz, 1980);
  EXPECT_EQ(back.evidence.level, EvidenceLevel::Measured);
  EXPECT_EQ(back.provider, "openai:model");
  EXPECT_EQ(back.round, 4);
  EXPECT_EQ(back.slot, 5);
}

// What a kill kept from being written is made from the record.
TEST(Record, KnowsItsTrial) {
  Record record = sampleRecord();
  Trial trial = record.trial();
  EXPECT_EQ(trial.verdict, Verdict::Accepted);
  EXPECT_TRUE(trial.full);
  Trial wanted;
  wanted.taskKey = record.taskKey;
  wanted.candidateHash = record.candidate.hash();
  wanted.parameters = record.parameters;
  EXPECT_EQ(trial.key(), wanted.key());
  EXPECT_EQ(trial.message, "2.05x");
  EXPECT_EQ(trial.round, 4);
  EXPECT_EQ(trial.slot, 5);
  EXPECT_EQ(print(toJSON(*trial.measurement)),
            print(toJSON(record.measurement)));
  EXPECT_EQ(print(toJSON(trial.evidence)), print(toJSON(record.evidence)));
  ASSERT_EQ(trial.resources.size(), 1u);
}

TEST(Record, SourceInJsonIsNotTaken) {
  Record back;
  llvm::json::Path::Root root("r");
  ASSERT_TRUE(fromJSON(with(toJSON(sampleRecord()), "candidate.source", "evil"),
                       back, root));
  EXPECT_EQ(back.candidate.source, "");
}

TEST(Record, Refused) {
  expectRefused(
      sampleRecord(), "r",
      {{"format_version", 2, "expected format version 1 at r.format_version"},
       {"format_version", 0, "expected format version 1 at r.format_version"},
       {"id", "../../etc", "expected 64 lower-case hex digits at r.id"},
       {"task_key", "x", "expected 64 lower-case hex digits at r.task_key"},
       {"target", "sm", "expected a target, as sm_90 at r.target"},
       {"chip", "", "expected a target, as sm_90 at r.chip"},
       {"candidate", 1, "expected object at r.candidate"},
       {"plan.launch", llvm::json::Array{},
        "expected at least one launch at r.plan.launch"},
       {"measurement.speedup", "x", "expected number at r.measurement.speedup"},
       {"parameters.int", 1,
        "expected a C identifier that is no keyword at r.parameters.int"}});
  for (llvm::StringRef key : {"format_version", "task_key", "target", "chip",
                              "candidate", "plan", "measurement", "evidence"})
    EXPECT_EQ(readError<Record>(without(toJSON(sampleRecord()), key), "r"),
              "missing value at r." + key.str());
  // A record that the store has not named yet.
  EXPECT_EQ(readError<Record>(with(toJSON(sampleRecord()), "id", ""), "r"),
            "ok");
}

TEST(Record, DamagedFormsAreRefusedOrRead) {
  expectNoDamageCrashes(sampleRecord());
}

TEST(Trial, DamagedFormsAreRefusedOrRead) {
  expectNoDamageCrashes(sampleTrial());
}

Talk sampleTalk() {
  Talk talk;
  talk.taskKey = digest('f');
  talk.taskName = "softmax";
  talk.round = 1;
  talk.slot = 2;
  talk.provider = "exchange";
  talk.request = "please";
  talk.answer = "here";
  talk.promptTokens = 100;
  talk.answerTokens = 200;
  return talk;
}

TEST(Talk, RoundTripsWithoutTexts) {
  std::string text = print(toJSON(sampleTalk()));
  EXPECT_EQ(roundTrip(sampleTalk()), text);
  EXPECT_EQ(text.find("please"), std::string::npos);
  EXPECT_EQ(text.find("here"), std::string::npos);
  Talk back;
  llvm::json::Path::Root root("talk");
  ASSERT_TRUE(fromJSON(toJSON(sampleTalk()), back, root));
  EXPECT_EQ(back.taskKey, digest('f'));
  EXPECT_EQ(back.taskName, "softmax");
  EXPECT_EQ(back.round, 1);
  EXPECT_EQ(back.slot, 2);
  EXPECT_EQ(back.provider, "exchange");
  EXPECT_EQ(back.promptTokens, 100);
  EXPECT_EQ(back.answerTokens, 200);
}

TEST(Talk, Refused) {
  expectRefused(
      sampleTalk(), "talk",
      {{"format_version", 3,
        "expected format version 2 at talk.format_version"},
       {"task_key", "x", "expected 64 lower-case hex digits at talk.task_key"},
       {"round", -1, "expected integer of at least 0 at talk.round"},
       {"slot", 0.5, "expected integer of at least 0 at talk.slot"},
       {"answer_tokens", -5,
        "expected integer of at least 0 at talk.answer_tokens"}});
}

} // namespace
