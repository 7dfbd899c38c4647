// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Small whole things to store, and a store in a folder of its own.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_STORE_SAMPLES_H
#define FSR_TEST_UNIT_STORE_SAMPLES_H

#include "fsr/Store/Store.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"

#include "../Support/TemporaryFolder.h"

#include "gtest/gtest.h"

#include <filesystem>

namespace fsr {

inline Record sampleRecord(double low = 1.5) {
  Record record;
  record.taskKey = sha256("task");
  record.target = "sm_90";
  record.chip = "sm_90a";
  record.kernelName = "copy";
  record.candidate.source = "extern \"C\" __global__ void copy() {}\n";
  record.candidate.plan.launches.emplace_back();
  record.candidate.plan.launches[0].kernel = "copy";
  record.candidate.guards = {"x.size0 % 4 == 0"};
  record.candidate.parameters["TILE"] = {32, 64};
  record.parameters["TILE"] = 64;
  record.plan.launches.emplace_back();
  record.plan.launches[0].kernel = "copy";
  record.plan.launches[0].args = {"x", "y"};
  record.fatbin = std::string("\x50\xed\x55\xba\0\1\2\3", 8);
  record.measurement.device = "NVIDIA H200";
  record.measurement.originalUs = {10, 10.5};
  record.measurement.candidateUs = {5, 5.25};
  record.measurement.speedup = low + 0.1;
  record.measurement.speedupLow = low;
  record.measurement.speedupHigh = low + 0.2;
  record.evidence.level = EvidenceLevel::Measured;
  record.evidence.checks.push_back(
      {"guard-zones", true, "normal", "untouched", ""});
  record.provider = "replay";
  record.round = 1;
  return record;
}

inline Trial sampleTrial() {
  Trial trial;
  trial.taskKey = sha256("task");
  trial.candidateHash = sha256("candidate");
  trial.parameters["TILE"] = 64;
  trial.round = 2;
  trial.verdict = Verdict::Mismatch;
  trial.message = "element 3: got 1, wanted 2";
  return trial;
}

inline TaskStrength sampleStrength() {
  TaskStrength strength;
  strength.taskKey = sha256("task");
  strength.device = "NVIDIA H200";
  strength.givenDigest = std::string(64, 'd');
  strength.workload.resize(1);
  strength.workload[0].fills.resize(1);
  strength.dummies.resize(2);
  strength.dummies[0].name = "zeros";
  strength.dummies[1].name = "reversed";
  strength.dummies[1].outcome = DummyResult::Outcome::NotApplicable;
  return strength;
}

inline KernelTask sampleTask() {
  KernelTask task;
  task.name = "copy";
  task.key = sha256("task");
  task.target = "sm_90";
  task.arguments.resize(1);
  task.arguments[0].name = "x";
  task.arguments[0].isBuffer = true;
  task.arguments[0].sizes = {8};
  task.arguments[0].strides = {1};
  task.arguments[0].alignment = 4;
  task.reference.entry = "copy";
  task.workload.resize(1);
  task.workload[0].fills.resize(1);
  task.workload[0].fills[0].parameters = {0, 1};
  return task;
}

inline Talk sampleTalk() {
  Talk talk;
  talk.taskKey = sha256("task");
  talk.taskName = "copy";
  talk.round = 1;
  talk.slot = 2;
  talk.provider = "exchange";
  talk.request = "Write a kernel.\n";
  talk.answer = "```cuda\n```\n";
  talk.promptTokens = 7;
  return talk;
}

class StoreTest : public testing::Test {
protected:
  void SetUp() override { store = open(); }

  std::unique_ptr<SearchStore> open(StoreMode mode = StoreMode::Search) {
    llvm::Expected<std::unique_ptr<SearchStore>> opened =
        openStore(folder.path, mode);
    if (!opened) {
      ADD_FAILURE() << llvm::toString(opened.takeError());
      return nullptr;
    }
    return std::move(*opened);
  }

  static void expectSuccess(llvm::Error error) {
    bool failed = !!error;
    EXPECT_FALSE(failed) << llvm::toString(std::move(error));
  }

  /// The message of an error that must be there and of this kind.
  static std::string expectError(llvm::Error error, ErrorKind kind) {
    EXPECT_TRUE(!!error);
    if (!error)
      return "";
    EXPECT_EQ(static_cast<int>(kindOf(error)), static_cast<int>(kind));
    return llvm::toString(std::move(error));
  }

  LookUp lookUp(EvidenceLevel level = EvidenceLevel::Measured) {
    llvm::Expected<LookUp> found = store->best(taskKey, "sm_90", level);
    if (!found) {
      ADD_FAILURE() << llvm::toString(found.takeError());
      return {};
    }
    return std::move(*found);
  }

  /// Puts bytes where a store never would.
  static void overwrite(const std::string &path, llvm::StringRef bytes) {
    expectSuccess(writeFileAtomically(path, bytes));
  }

  static std::string contentOf(const std::string &path) {
    llvm::Expected<std::string> bytes = readFile(path);
    if (bytes)
      return *bytes;
    ADD_FAILURE() << llvm::toString(bytes.takeError());
    return "";
  }

  const std::string taskKey = sha256("task");
  TemporaryFolder folder;
  std::unique_ptr<SearchStore> store;
};

} // namespace fsr

#endif // FSR_TEST_UNIT_STORE_SAMPLES_H
