// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Candidates beside each other: what overlaps, and that it shows nowhere but in
// the time; code that comes twice; sets of parameters that race.
//
//===----------------------------------------------------------------------===//

#include "Scripted.h"

#include "fsr/Support/Files.h"

#include <chrono>
#include <condition_variable>
#include <random>
#include <thread>

using namespace fsr;

namespace {

/// A moment that threads wait for, not for ever.
class Moment {
public:
  void come() {
    std::lock_guard<std::mutex> lock(mutex);
    ++times;
    changed.notify_all();
  }
  bool waitFor(unsigned wanted = 1) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20),
                            [&] { return times >= wanted; });
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  unsigned times = 0;
};

class TryingTest : public SearchTest {
protected:
  void SetUp() override { options.width = options.rounds = 1; }
};

TEST_F(TryingTest, ASlowCompileHoldsUpNoOther) {
  options.width = 2;
  options.compileJobs = 2;
  client.answers = {{"r1-s1", answer("slow time=50")},
                    {"r1-s2", answer("time=40")}};
  Moment evaluated;
  compiler.before = [&](const CompileRequest &request) {
    if (llvm::StringRef(request.source).contains("slow"))
      EXPECT_TRUE(evaluated.waitFor());
  };
  device.before = [&](const EvaluateRequest &) { evaluated.come(); };
  std::vector<int64_t> tried;
  SearchOutcome outcome = run([&](const SearchEvent &event) {
    if (event.kind == SearchEvent::Kind::Finished)
      tried.push_back(event.slot);
  });
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_EQ(tried, (std::vector<int64_t>{1, 2}));
}

TEST_F(TryingTest, OneCompilerIsOneCompiler) {
  options.compileJobs = 1;
  client.answers = {{"r1-s1", answer("x", "{\"TIME\": [40, 41, 42, 43]}")}};
  std::atomic<int> running{0}, most{0};
  compiler.before = [&](const CompileRequest &) {
    most = std::max<int>(most, ++running);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --running;
  };
  EXPECT_EQ(run().trouble, "");
  EXPECT_EQ(compiler.compiles, 4u);
  EXPECT_EQ(most, 1);
}

// An answer is tried while the others are still on their way.
TEST_F(TryingTest, TryingBeginsWithTheFirstAnswer) {
  options.width = 2;
  client.answers = {{"r1-s1", answer("time=50")}, {"r1-s2", answer("time=40")}};
  Moment evaluated;
  device.before = [&](const EvaluateRequest &) { evaluated.come(); };
  // The client hands over slot 2 first; slot 1 comes when that was looked at.
  SearchOutcome outcome = run([&](const SearchEvent &event) {
    if (event.kind == SearchEvent::Kind::Answered && event.slot == 1)
      EXPECT_TRUE(evaluated.waitFor());
  });
  EXPECT_EQ(outcome.trouble, "");
  ASSERT_EQ(outcome.trials.size(), 2u);
  EXPECT_EQ(outcome.trials[0].slot, 1);
}

TEST_F(TryingTest, ADeviceIsUsedAsOftenAsItTakes) {
  options.compileJobs = 3;
  device.atOnce = 3;
  client.answers = {{"r1-s1", answer("x", "{\"TIME\": [40, 41, 42]}")}};
  Moment inside;
  device.before = [&](const EvaluateRequest &request) {
    inside.come();
    if (!request.options.full)
      EXPECT_TRUE(inside.waitFor(3));
  };
  EXPECT_EQ(run().trouble, "");
  std::atomic<int> running{0}, most{0};
  device.atOnce = 1;
  device.before = [&](const EvaluateRequest &) {
    most = std::max<int>(most, ++running);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --running;
  };
  TemporaryFolder other;
  EXPECT_EQ(runIn(other.path, client).trouble, "");
  EXPECT_EQ(most, 1);
}

TEST_F(TryingTest, WhatEndsFirstDoesNotShow) {
  options.width = 4;
  options.rounds = 2;
  client.answers = {
      {"r1-s1", answer("a", "{\"TIME\": [55, 54, 53, 52, 51, 56, 57]}")},
      {"r1-s2", answer("pretends time=20")},
      {"r1-s3", answer("b time=50 /* once */")},
      {"r1-s4", answer("a", "{\"TIME\": [54, 30]}")},
      {"r2-s1", answer("broken")},
      {"r2-s2", answer("b time=50 /* again */")},
      {"r2-s3", "nothing"},
      {"r2-s4", answer("time=25")}};
  SearchOutcome first = run();
  ASSERT_EQ(first.trouble, "");
  std::map<std::string, std::string> wanted = tree(folder.path);
  std::vector<std::string> order = keys(first);
  std::mt19937 random(7);
  std::mutex mutex;
  auto pause = [&](const auto &) {
    unsigned length;
    {
      std::lock_guard<std::mutex> lock(mutex);
      length = random() % 12;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(length));
  };
  compiler.before = pause;
  device.before = pause;
  for (unsigned turn = 0; turn < 6; ++turn) {
    options.compileJobs = 1 + turn % 5;
    device.atOnce = 1 + turn % 3;
    TemporaryFolder other;
    SearchOutcome again = runIn(other.path, client);
    EXPECT_EQ(again.trouble, "");
    EXPECT_EQ(keys(again), order);
    EXPECT_EQ(again.reused, first.reused);
    EXPECT_EQ(again.winner->id, first.winner->id);
    EXPECT_TRUE(tree(other.path) == wanted) << "turn " << turn;
  }
}

TEST_F(TryingTest, TheSameCodeIsEvaluatedOnce) {
  options.width = 3;
  client.answers = {{"r1-s1", answer("time=50 /* mine */")},
                    {"r1-s2", answer("time=50 /* yours */")},
                    {"r1-s3", answer("mismatch", "{\"TIDE\": [1, 1]}")}};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.trouble, "");
  ASSERT_EQ(outcome.trials.size(), 3u) << "the set that comes twice is one";
  const Trial &first = outcome.trials[0], &second = outcome.trials[1];
  EXPECT_EQ(device.full, 1u);
  EXPECT_EQ(device.quick, 2u);
  EXPECT_EQ(second.slot, 2);
  EXPECT_NE(first.candidateHash, second.candidateHash);
  EXPECT_EQ(first.code, second.code);
  EXPECT_EQ(second.verdict, Verdict::Accepted);
  EXPECT_EQ(second.message,
            "the same code as answer 1 of round 1, so with its verdict: " +
                first.message);
  EXPECT_EQ(outcome.reused, 1u);
  // Each record names its own source.
  auto store = llvm::cantFail(openStore(folder.path, StoreMode::Read));
  std::set<std::string> sources;
  for (const Record &record :
       llvm::cantFail(store->findRecords(task.key, task.target)))
    sources.insert(record.candidate.source);
  EXPECT_EQ(sources.size(), 2u);
  // Known trials and known codes: another run does nothing.
  device.images.clear();
  EXPECT_EQ(run().trials.size(), 3u);
  EXPECT_TRUE(device.images.empty());
}

TEST_F(TryingTest, TheSameCodeInAnotherRunOfTheSearch) {
  options.rounds = 2;
  client.answers = {{"r1-s1", answer("time=50 /* mine */")}};
  EXPECT_EQ(run().stop, SearchStop::Pending);
  device.images.clear();
  client.answers["r2-s1"] = answer("time=50 /* yours */");
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Rounds);
  EXPECT_TRUE(device.images.empty());
  EXPECT_EQ(outcome.trials.back().verdict, Verdict::Accepted);
}

TEST_F(TryingTest, OtherLaunchesAreOtherCode) {
  options.width = 2;
  std::string wider = answer("time=50 /* yours */");
  wider.replace(wider.find("\"block\": [32]"), 13, "\"block\": [64]");
  client.answers = {{"r1-s1", answer("time=50 /* mine */")}, {"r1-s2", wider}};
  EXPECT_EQ(run().trouble, "");
  EXPECT_EQ(device.quick, 2u);
}

TEST_F(TryingTest, SetsOfParametersRace) {
  client.answers = {{"r1-s1", answer("x", "{\"TIME\": [60, 46, 45, 44, 43, 42, "
                                          "41, 40, 61, 62, 63, 64, 65, 66, 67, "
                                          "68]}")}};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.trouble, "");
  ASSERT_EQ(outcome.trials.size(), 16u);
  std::map<int64_t, unsigned> looks;
  for (int64_t pairs : device.quickPairs)
    ++looks[pairs];
  EXPECT_EQ(looks, (std::map<int64_t, unsigned>{{0, 16}, {16, 8}, {32, 4}}));
  EXPECT_EQ(device.full, 1u);
  EXPECT_EQ(outcome.winner->parameters.at("TIME"), 40);
  // The slowest goes first, and the winner is the fastest of the last four.
  EXPECT_EQ(outcome.trials[0].parameters.at("TIME"), 68);
  EXPECT_NE(outcome.trials[0].message.find("slower half"), std::string::npos);
  EXPECT_EQ(outcome.trials[12].parameters.at("TIME"), 40);
  EXPECT_EQ(outcome.trials[12].verdict, Verdict::Accepted);
  EXPECT_EQ(client.asked.size(), 1u) << "no answer was asked for";
}

TEST_F(TryingTest, FewSetsAndModelledOnesAreLookedAtOnce) {
  client.answers = {{"r1-s1", answer("x", "{\"TIME\": [43, 42, 41, 40]}")}};
  EXPECT_EQ(run().trouble, "");
  EXPECT_EQ(device.quick, 4u);
  device.description.isVirtual = true;
  device.quick = 0;
  client.answers = {
      {"r1-s1", answer("y", "{\"TIME\": [43, 42, 41, 40, 44, 45]}")}};
  TemporaryFolder other;
  EXPECT_EQ(runIn(other.path, client).trouble, "");
  EXPECT_EQ(device.quick, 6u);
}

TEST_F(TryingTest, AFailingDeviceEndsTheSearch) {
  options.width = 4;
  options.compileJobs = 4;
  client.otherwise = answer("x", "{\"TIME\": [43, 42, 41, 40, 44, 45]}");
  client.answers = {{"r1-s1", answer("gone")}};
  device.failsAt = "gone";
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Trouble);
  EXPECT_EQ(outcome.trouble, "the device is gone");
}

} // namespace
