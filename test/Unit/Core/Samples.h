// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Structs with every field set to a value of its own, and the two questions
// that the JSON tests ask: does it come back the same, and what does the reader
// say about one that was changed?
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_CORE_SAMPLES_H
#define FSR_TEST_UNIT_CORE_SAMPLES_H

#include "fsr/Core/Trial.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <string>

namespace fsr::test {

inline std::string print(const llvm::json::Value &json) {
  std::string text;
  llvm::raw_string_ostream(text) << json;
  return text;
}

/// What the reader says about `json`: "ok", or its error.
template <typename T>
std::string readError(const llvm::json::Value &json, llvm::StringRef root) {
  T value;
  llvm::json::Path::Root path(root);
  if (fromJSON(json, value, path))
    return "ok";
  return llvm::toString(path.getError());
}

/// Writes, prints, parses, reads and writes again; the second text.
template <typename T>
std::string roundTrip(const T &value) {
  llvm::Expected<llvm::json::Value> parsed =
      llvm::json::parse(print(toJSON(value)));
  if (!parsed)
    return llvm::toString(parsed.takeError());
  T back;
  llvm::json::Path::Root path("value");
  if (!fromJSON(*parsed, back, path))
    return llvm::toString(path.getError());
  return print(toJSON(back));
}

/// Replaces the value at a path as "work.flops" or "arguments.0.name".
inline llvm::json::Value with(llvm::json::Value json, llvm::StringRef path,
                              llvm::json::Value value) {
  llvm::json::Value *at = &json;
  while (!path.empty()) {
    auto [step, rest] = path.split('.');
    size_t index = 0;
    if (llvm::json::Array *array = at->getAsArray()) {
      if (step.getAsInteger(10, index) || index >= array->size())
        return nullptr;
      at = &(*array)[index];
    } else if (llvm::json::Object *object = at->getAsObject()) {
      at = &(*object)[step];
    } else {
      return nullptr;
    }
    path = rest;
  }
  *at = std::move(value);
  return json;
}

/// Calls `visit` with `whole` changed in one place, for every value in it and
/// every kind of JSON: what a hostile peer may send.
template <typename Visit>
void forEachDamage(const llvm::json::Value &whole, Visit visit,
                   const std::string &prefix = "",
                   const llvm::json::Value *part = nullptr) {
  const llvm::json::Value &here = part ? *part : whole;
  const llvm::json::Value kinds[] = {nullptr,
                                     true,
                                     -1,
                                     0,
                                     INT64_MAX,
                                     1e300,
                                     "",
                                     "\xc3\xa4../x",
                                     "7ff8000000000000",
                                     llvm::json::Array{},
                                     llvm::json::Array{nullptr},
                                     llvm::json::Object{}};
  for (const llvm::json::Value &kind : kinds)
    visit(prefix, with(whole, prefix, kind));
  std::string dot = prefix.empty() ? "" : prefix + ".";
  if (const llvm::json::Array *array = here.getAsArray())
    for (size_t i = 0; i < array->size(); ++i)
      forEachDamage(whole, visit, dot + std::to_string(i), &(*array)[i]);
  if (const llvm::json::Object *object = here.getAsObject())
    for (const auto &entry : *object)
      forEachDamage(whole, visit, dot + entry.first.str(), &entry.second);
}

/// Reads every damaged form of `sample`. What is taken must be writable again,
/// and come back the same.
template <typename T>
void expectNoDamageCrashes(const T &sample) {
  unsigned taken = 0, refused = 0;
  forEachDamage(toJSON(sample), [&](const std::string &where,
                                    const llvm::json::Value &json) {
    T value;
    llvm::json::Path::Root root("value");
    if (!fromJSON(json, value, root)) {
      ++refused;
      EXPECT_FALSE(llvm::toString(root.getError()).empty()) << where;
      return;
    }
    ++taken;
    EXPECT_EQ(roundTrip(value), print(toJSON(value))) << where;
  });
  // Both really happened.
  EXPECT_GT(taken, 10u);
  EXPECT_GT(refused, 10u);
}

inline llvm::json::Value without(llvm::json::Value json, llvm::StringRef key) {
  json.getAsObject()->erase(key);
  return json;
}

inline std::string digest(char digit) { return std::string(64, digit); }

inline Argument buffer(std::string name, std::vector<int64_t> sizes,
                       std::vector<int64_t> strides, Access access) {
  Argument argument;
  argument.name = std::move(name);
  argument.isBuffer = true;
  argument.sizes = std::move(sizes);
  argument.strides = std::move(strides);
  argument.access = access;
  return argument;
}

inline Argument scalar(std::string name, ElementType element,
                       std::optional<std::string> bits) {
  Argument argument;
  argument.name = std::move(name);
  argument.element = element;
  argument.constantBits = std::move(bits);
  return argument;
}

/// x[3][5] (row of 8, offset 2), y[4], n = -6 as i32, alpha (f32), m unknown.
inline KernelTask sampleTask() {
  KernelTask task;
  task.name = "softmax";
  task.key = digest('a');
  task.target = "sm_90a";
  Argument x = buffer("x", {3, 5}, {8, 1}, Access::Read);
  x.offset = 2;
  x.alignment = 16;
  Argument y = buffer("y", {4}, {1}, Access::ReadWrite);
  y.element = ElementType::BF16;
  y.alignment = 256;
  task.arguments = {x, y, scalar("n", ElementType::I32, "fffffffa"),
                    scalar("alpha", ElementType::F32, "3f800000"),
                    scalar("m", ElementType::I64, std::nullopt)};
  task.launch.grid = {7, 2, 3};
  task.launch.block = {32, 4, 5};
  task.launch.cluster = {1, 2, 3};
  task.launch.sharedBytes = 11;
  task.reference = {"module {}", ".version 8.0",  ".version 8.1",
                    "a reason",  "softmax_entry", ReferenceAbi::BarePointer};
  task.kernelMlir = "gpu.func";
  task.launchMlir = "gpu.launch_func";
  task.facts = {"x is aligned to 16 bytes", "y is written"};
  task.fastMath = true;
  task.work = {1.5e9, 123456789, 2.5, 1024, true, true, true, "it says so"};
  WorkloadCase first{"usual", 0.75, {}}, second{"zeros", 2, {}};
  first.fills = {{"normal", {3, 5}},
                 {"integers", {-4, 4}},
                 {"zeros", {}},
                 {"iota", {}},
                 {"zeros", {}}};
  second.fills.assign(5, FillRecipe{"zeros", {}});
  task.workload = {first, second};
  return task;
}

inline Candidate sampleCandidate() {
  Candidate candidate;
  candidate.source = "extern \"C\" __global__ void k() {}";
  PlannedLaunch one;
  one.kernel = "partial";
  one.grid = {"ceildiv(x.size0, ROWS)", "2", "3"};
  one.block = {"TILE", "4", "5"};
  one.cluster = {"1", "2", "3"};
  one.shared = "4 * TILE";
  one.args = {"x", "part", "x.size1"};
  PlannedLaunch two;
  two.kernel = "finish";
  candidate.plan.launches = {one, two};
  candidate.plan.scratch = {{"part", "8 * x.size0", true}};
  candidate.guards = {"x.size1 % 5 == 0", "aligned(x, 8)"};
  candidate.parameters = {{"TILE", {32, 64}}, {"ROWS", {1, 2, 3}}};
  candidate.strategy = "vectorised loads";
  candidate.notes = "two passes";
  return candidate;
}

inline ResolvedPlan sampleResolved() {
  ResolvedPlan plan;
  ResolvedLaunch launch;
  launch.kernel = "partial";
  launch.shape.grid = {2, 3, 4};
  launch.shape.block = {5, 6, 7};
  launch.shape.cluster = {2, 1, 4};
  launch.shape.sharedBytes = 99;
  launch.args = {"x", "part"};
  plan.launches = {launch};
  plan.scratch = {{"part", 24, true}};
  return plan;
}

inline KernelResources sampleResources() {
  return {"partial", 40, 1024, 8, 16, 32};
}

inline Measurement sampleMeasurement() {
  Measurement value;
  value.device = "NVIDIA H200";
  value.driver = "580.65";
  value.originalUs = {10.5, 11.25, 1.0 / 3};
  value.candidateUs = {5, 5.5, 1e-300};
  value.originalMedianUs = 10.75;
  value.candidateMedianUs = 5.25;
  value.speedup = 2.05;
  value.speedupLow = 1.9;
  value.speedupHigh = 2.2;
  value.noiseFloor = 0.01;
  value.droppedPairs = 3;
  value.batch = 20;
  value.smClockMhz = 1980;
  return value;
}

inline Evidence sampleEvidence() {
  Evidence value;
  value.level = EvidenceLevel::Measured;
  value.checks = {{"exact-inputs", true, "signs x 2", "bit equality", "0 ulp"},
                  {"guard-zones", false, "normal", "untouched", "byte 7"}};
  value.device = "NVIDIA H100";
  value.driver = "570.1";
  value.toolchain = "NVRTC 13.0";
  value.relativeBound = 1e-6;
  value.bitExact = true;
  return value;
}

inline Trial sampleTrial() {
  Trial value;
  value.taskKey = digest('b');
  value.candidateHash = digest('c');
  value.parameters = {{"TILE", 64}, {"ROWS", -2}};
  value.round = 2;
  value.slot = 3;
  value.verdict = Verdict::NotFaster;
  value.message = "1.01x";
  value.full = true;
  value.resources = {sampleResources()};
  value.measurement = sampleMeasurement();
  value.evidence = sampleEvidence();
  return value;
}

inline Record sampleRecord() {
  Record value;
  value.id = digest('d');
  value.taskKey = digest('e');
  value.target = "sm_90";
  value.chip = "sm_90a";
  value.kernelName = "softmax";
  value.candidate = sampleCandidate();
  value.parameters = {{"TILE", 32}};
  value.plan = sampleResolved();
  value.resources = {sampleResources()};
  value.fatbin = "bytes";
  value.measurement = sampleMeasurement();
  value.evidence = sampleEvidence();
  value.message = "2.05x";
  value.provider = "openai:model";
  value.round = 4;
  value.slot = 5;
  return value;
}

} // namespace fsr::test

#endif // FSR_TEST_UNIT_CORE_SAMPLES_H
