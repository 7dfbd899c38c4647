// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The JSON forms of the worker protocol: what comes back, what is refused.
//
//===----------------------------------------------------------------------===//

#include "fsr/Device/Protocol.h"
#include "DeviceTestUtils.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace fsr;
using namespace fsr::test;
using llvm::json::Object;
using llvm::json::Value;

namespace {

/// The error of reading `json`, or "" where it is accepted.
template <typename T>
std::string refusal(const Value &json, T &value) {
  llvm::json::Path::Root root("it");
  if (fromJSON(json, value, root))
    return "";
  return llvm::toString(root.getError());
}

WireEvaluate smallEvaluate() {
  WireEvaluate wire;
  wire.task = smallTask();
  wire.plan = smallPlan();
  wire.referenceHash = std::string(64, 'a');
  wire.candidateHash = std::string(64, 'b');
  wire.options.seed = 0xfedcba9876543210;
  wire.options.measure = false;
  wire.options.maxPairs = 7;
  wire.options.full = false;
  wire.options.gpuSeconds = 1.5;
  wire.candidateResources.emplace_back();
  wire.candidateResources[0].kernel = "k";
  wire.candidateResources[0].registers = 77;
  return wire;
}

EvaluateResult smallResult() {
  EvaluateResult result;
  result.verdict = Verdict::Accepted;
  result.message = "faster";
  Measurement measurement;
  measurement.device = "GPU";
  measurement.originalUs = {10, 11};
  measurement.candidateUs = {5, 5.5};
  measurement.originalMedianUs = 10.5;
  measurement.candidateMedianUs = 5.25;
  measurement.speedup = measurement.speedupLow = measurement.speedupHigh = 2;
  measurement.noiseFloor = 0.01;
  result.measurement = measurement;
  Check check;
  check.name = "exact-inputs";
  check.passed = true;
  result.evidence.checks.push_back(check);
  result.evidence.level = EvidenceLevel::Measured;
  return result;
}

} // namespace

TEST(Protocol, EvaluateComesBackWithoutTexts) {
  WireEvaluate wire = smallEvaluate(), back;
  ASSERT_EQ(refusal(toJSON(wire), back), "");
  EXPECT_EQ(back.options.seed, 0xfedcba9876543210);
  EXPECT_FALSE(back.options.measure);
  EXPECT_EQ(back.options.maxPairs, 7);
  EXPECT_FALSE(back.options.full);
  EXPECT_EQ(back.options.gpuSeconds, 1.5);
  EXPECT_FALSE(back.options.confirm);
  EXPECT_FALSE(back.options.raceOnly);
  EXPECT_TRUE(back.referenceResources.empty());
  ASSERT_EQ(back.candidateResources.size(), 1u);
  EXPECT_EQ(back.candidateResources[0].registers, 77);
  EXPECT_EQ(back.referenceHash, wire.referenceHash);
  EXPECT_EQ(back.referencePtxHash, "");
  EXPECT_EQ(back.candidateHash, wire.candidateHash);
  ASSERT_EQ(back.plan.launches.size(), 1u);
  EXPECT_EQ(back.plan.launches[0].args, wire.plan.launches[0].args);
  EXPECT_EQ(back.task.name, "scale");
  EXPECT_EQ(back.task.reference.entry, "scale");
  EXPECT_EQ(back.task.arguments.size(), 2u);
  EXPECT_EQ(back.task.reference.ptx + back.task.reference.mlir +
                back.task.kernelMlir + back.task.launchMlir,
            "");
}

TEST(Protocol, EvaluateMayAskForTheRaceOrItsConfirmation) {
  WireEvaluate wire = smallEvaluate(), back;
  wire.options.confirm = true;
  ASSERT_EQ(refusal(toJSON(wire), back), "");
  EXPECT_TRUE(back.options.confirm);
  EXPECT_FALSE(back.options.raceOnly);
  wire.options.confirm = false;
  wire.options.raceOnly = true;
  WireEvaluate other;
  ASSERT_EQ(refusal(toJSON(wire), other), "");
  EXPECT_FALSE(other.options.confirm);
  EXPECT_TRUE(other.options.raceOnly);
}

TEST(Protocol, EvaluateNamesThePtx) {
  WireEvaluate wire = smallEvaluate(), back;
  wire.referencePtxHash = std::string(64, 'b');
  wire.candidatePtxHash = std::string(64, 'c');
  wire.cloneHash = std::string(64, 'd');
  wire.task.reference.truePtx = "text";
  wire.task.reference.noTruePtx = "a reason";
  ASSERT_EQ(refusal(toJSON(wire), back), "");
  EXPECT_EQ(back.referencePtxHash, wire.referencePtxHash);
  EXPECT_EQ(back.candidatePtxHash, wire.candidatePtxHash);
  EXPECT_EQ(back.cloneHash, wire.cloneHash);
  EXPECT_EQ(back.task.reference.truePtx, "");
  EXPECT_EQ(back.task.reference.noTruePtx, "a reason");
}

TEST(Protocol, EvaluateRefusals) {
  struct {
    const char *key;
    Value value;
    const char *error;
  } cases[] = {
      {"seed", "12", "expected 16 hex digits at it.seed"},
      {"seed", "000000000000000g", "expected 16 hex digits at it.seed"},
      {"max_pairs", 0, "expected a number from 1 to 100000 at it.max_pairs"},
      {"max_pairs", 100001,
       "expected a number from 1 to 100000 at it.max_pairs"},
      {"quick_pairs", 4097,
       "expected a number from 0 to 4096 at it.quick_pairs"},
      {"gpu_seconds", -1, "expected a number from 0 at it.gpu_seconds"},
      {"reference", "../../etc/passwd",
       "expected 64 hex digits at it.reference"},
      {"candidate", std::string(64, 'B'),
       "expected 64 hex digits at it.candidate"},
      {"reference_ptx", "12", "expected 64 hex digits at it.reference_ptx"},
      {"candidate_ptx", std::string(64, 'g'),
       "expected 64 hex digits at it.candidate_ptx"},
      {"clone", "12", "expected 64 hex digits at it.clone"},
      {"full", 1, "expected boolean at it.full"},
      {"measure", 1, "expected boolean at it.measure"},
      {"plan", nullptr, "expected object at it.plan"},
  };
  for (auto &c : cases) {
    Value json = toJSON(smallEvaluate());
    (*json.getAsObject())[c.key] = c.value;
    WireEvaluate back;
    // LLVM writes "expected…" where it finds a type wrong, and adds the place.
    std::string got = refusal(json, back);
    EXPECT_NE(got, "") << c.key;
    EXPECT_NE(got.find(c.key), std::string::npos) << got;
    if (llvm::StringRef(c.key) != "plan") {
      llvm::StringRef wanted = llvm::StringRef(c.error).split(" at ").first;
      EXPECT_NE(got.find(wanted.str()), std::string::npos) << got;
    }
  }
}

TEST(Protocol, ResultComesBack) {
  EvaluateResult result = smallResult(), back;
  Value json = toJSON(result);
  EXPECT_EQ(json.getAsObject()->getString("event"), "result");
  ASSERT_EQ(refusal(json, back), "");
  EXPECT_EQ(back.verdict, Verdict::Accepted);
  EXPECT_EQ(back.message, "faster");
  ASSERT_TRUE(back.measurement);
  EXPECT_EQ(back.measurement->candidateUs, result.measurement->candidateUs);
  EXPECT_EQ(back.evidence.level, EvidenceLevel::Measured);
  ASSERT_EQ(back.evidence.checks.size(), 1u);
  EXPECT_TRUE(back.evidence.checks[0].passed);

  result.measurement.reset();
  ASSERT_EQ(refusal(toJSON(result), back), "");
  EXPECT_FALSE(back.measurement);
}

// A worker knows neither; who built the candidate does.
TEST(Protocol, WhatAPeerCannotKnowIsNotTaken) {
  EvaluateResult result = smallResult(), back;
  result.evidence.toolchain = "of the peer";
  result.evidence.sandbox = std::string(300, 'x') + "\x1b[31m";
  ASSERT_EQ(refusal(toJSON(result), back), "");
  EXPECT_EQ(back.evidence.toolchain, "");
  EXPECT_EQ(back.evidence.sandbox, "");
}

TEST(Protocol, ResultRefusals) {
  using Change = llvm::function_ref<void(EvaluateResult &)>;
  auto refused = [](Change change) {
    EvaluateResult result = smallResult(), back;
    change(result);
    return refusal(toJSON(result), back);
  };
  EXPECT_NE(refused([](auto &r) { r.measurement->candidateUs.pop_back(); }),
            "");
  EXPECT_NE(refused([](auto &r) { r.measurement->originalUs[0] = 0; }), "");
  EXPECT_NE(refused([](auto &r) { r.measurement->candidateUs[0] = -1; }), "");
  EXPECT_NE(refused([](auto &r) { r.measurement->candidateUs[0] = INFINITY; }),
            "");
  EXPECT_NE(refused([](auto &r) { r.measurement->speedup = NAN; }), "");
  EXPECT_NE(refused([](auto &r) {
              r.measurement->originalCycles = {1, 0};
              r.measurement->candidateCycles = {1, 1};
            }),
            "");
  EXPECT_NE(refused([](auto &r) {
              r.measurement->conditions.emplace();
              r.measurement->conditions->clockLimits.resize(65);
            }),
            "");
  EXPECT_NE(refused([](auto &r) { r.measurement->speedupLow = 3; }), "");
  EXPECT_NE(refused([](auto &r) { r.measurement->noiseFloor = -0.1; }), "");
  EXPECT_NE(refused([](auto &r) { r.measurement->batch = 0; }), "");
  EXPECT_NE(refused([](auto &r) { r.measurement->droppedPairs = -1; }), "");
  EXPECT_NE(refused([](auto &r) {
              r.measurement->originalUs.assign(maxWireSamples + 1, 1);
              r.measurement->candidateUs.assign(maxWireSamples + 1, 1);
            }),
            "");
  EXPECT_NE(
      refused([](auto &r) { r.evidence.checks.resize(maxWireChecks + 1); }),
      "");
  EXPECT_NE(refused([](auto &r) { r.evidence.relativeBound = INFINITY; }), "");

  Value json = toJSON(smallResult());
  (*json.getAsObject())["verdict"] = "wonderful";
  EvaluateResult back;
  EXPECT_NE(refusal(json, back).find("verdict"), std::string::npos);
}

TEST(Protocol, TextsOfAPeerAreScrubbedAndCut) {
  EXPECT_EQ(scrubPeerText("a\x1b[31m\tb\nc\x7f"), "a [31m b\nc ");
  EXPECT_EQ(scrubPeerText("a\xe2\x80\xae"
                          "b\xc2\x9b"
                          "c"),
            "a b c");
  EXPECT_EQ(scrubPeerText("abcdef", 3), "abc […]");
  EXPECT_TRUE(llvm::json::isUTF8(scrubPeerText("\xff\xfe\x80")));
  EXPECT_TRUE(llvm::json::isUTF8(scrubPeerText("ää", 3)));
  EXPECT_EQ(scrubPeerText(""), "");
}

TEST(Protocol, ErrorKindsComeBack) {
  for (ErrorKind kind :
       {ErrorKind::BadInput, ErrorKind::Unavailable, ErrorKind::TimedOut,
        ErrorKind::Corrupt, ErrorKind::Unsupported})
    EXPECT_EQ(parseWireErrorKind(wireName(kind)), kind);
  EXPECT_EQ(parseWireErrorKind("of-a-newer-worker"), ErrorKind::Unavailable);
}

TEST(Protocol, DescriptionComesBackAndIsChecked) {
  DeviceDescription description, back;
  description.name = "NVIDIA H200";
  description.driver = "13.0";
  description.chip = "sm_90";
  description.multiprocessors = 132;
  description.coresPerMultiprocessor = 128;
  description.clockKhz = 1980000;
  description.memoryClockKhz = 3201000;
  description.memoryBusBits = 6144;
  description.limits.sharedBytesPerBlock = 232448;
  description.limits.block = {1024, 1024, 64};
  ASSERT_EQ(refusal(toJSON(description), back), "");
  EXPECT_EQ(back.name, description.name);
  EXPECT_EQ(back.limits.sharedBytesPerBlock, 232448);
  EXPECT_EQ(back.limits.block, description.limits.block);
  EXPECT_FALSE(back.isVirtual);
  EXPECT_EQ(back.uuid, "");
  description.uuid = "00ff";
  description.isVirtual = true;
  ASSERT_EQ(refusal(toJSON(description), back), "");
  EXPECT_TRUE(back.isVirtual);
  EXPECT_EQ(back.uuid, "00ff");
  // 6144 bit at 2 × 3201 MHz; 132 × 128 lanes at 1980 MHz.
  EXPECT_NEAR(back.peakBytesPerSecond(), 4.917e12, 1e9);
  EXPECT_NEAR(back.peakFlopsPerSecond(), 66.9e12, 1e11);

  Value json = toJSON(description);
  (*json.getAsObject())["chip"] = "potato";
  EXPECT_NE(refusal(json, back).find("chip"), std::string::npos);
  json = toJSON(description);
  (*json.getAsObject())["l2_bytes"] = -1;
  EXPECT_NE(refusal(json, back).find("l2_bytes"), std::string::npos);
  json = toJSON(description);
  (*json.getAsObject()->getObject("limits"))["block"] = Object{};
  EXPECT_NE(refusal(json, back).find("block"), std::string::npos);
}

TEST(Strength, RequestRoundTrips) {
  WireStrength wire;
  wire.task = smallTask();
  wire.referenceHash = std::string(64, 'a');
  wire.seed = 0xfedcba9876543210;
  Value json = toJSON(wire);
  WireStrength back;
  EXPECT_EQ(refusal(json, back), "");
  EXPECT_EQ(back.seed, wire.seed);
  EXPECT_EQ(back.referenceHash, wire.referenceHash);
  EXPECT_EQ(back.task.reference.ptx, "");
  Object object = *json.getAsObject();
  object["seed"] = "12";
  EXPECT_EQ(refusal(Value(Object(object)), back),
            "expected 16 hex digits at it.seed");
  object["seed"] = std::string(16, '0');
  object["reference"] = "/etc/passwd";
  EXPECT_EQ(refusal(Value(Object(object)), back),
            "expected 64 hex digits at it.reference");
}

TEST(Strength, AnswersAreBounded) {
  WireDummies told;
  auto read = [&](Value dummies) {
    return refusal(Value(Object{{"dummies", std::move(dummies)}}), told);
  };
  auto one = [](llvm::StringRef name, llvm::StringRef outcome) {
    return Object{{"name", name}, {"outcome", outcome}};
  };
  EXPECT_EQ(read(llvm::json::Array{one("zeros", "refused")}), "");
  // Nothing tried is nothing proved.
  EXPECT_EQ(read(llvm::json::Array{}),
            "expected 1 to 64 dummies at it.dummies");
  llvm::json::Array many;
  for (int i = 0; i < 65; ++i)
    many.push_back(one("zeros", "refused"));
  EXPECT_EQ(read(std::move(many)), "expected 1 to 64 dummies at it.dummies");
  EXPECT_NE(read(llvm::json::Array{one("zeros", "fine")}), "");
  EXPECT_NE(read(llvm::json::Array{one("", "refused")}), "");
  EXPECT_NE(read(Value(nullptr)), "");
  Object hostile = one("zeros", "refused");
  hostile["detail"] = std::string(100000, 'x') + "\x1b[31m";
  EXPECT_EQ(read(llvm::json::Array{std::move(hostile)}), "");
  EXPECT_LT(told.dummies[0].detail.size(), 5000u);
}
