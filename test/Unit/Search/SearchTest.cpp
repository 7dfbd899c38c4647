// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The search against the scripted services: rounds, what requests say, when it
// ends, what it keeps.
//
//===----------------------------------------------------------------------===//

#include "Scripted.h"

#include "fsr/Search/Feedback.h"
#include "fsr/Support/Files.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsr;

namespace {

bool has(llvm::StringRef text, llvm::StringRef part) {
  return text.contains(part);
}

TEST_F(SearchTest, ARoundIsOneBatchTriedInTheOrderOfSlots) {
  options.width = 3;
  options.rounds = 1;
  client.answers = {{"r1-s1", answer("time=50")},
                    {"r1-s2", answer("time=40")},
                    {"r1-s3", answer("time=60")}};
  std::vector<int64_t> tried;
  SearchOutcome outcome = run([&](const SearchEvent &event) {
    if (event.kind == SearchEvent::Kind::Finished)
      tried.push_back(event.slot);
  });
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_EQ(client.batches, std::vector<size_t>{3});
  EXPECT_EQ(tried, (std::vector<int64_t>{1, 2, 3}));
  ASSERT_TRUE(outcome.winner);
  EXPECT_EQ(outcome.winner->slot, 2);
  EXPECT_EQ(device.quick, 3u);
  // An idle device may let one climb before its turn, for nothing.
  EXPECT_GE(device.full, 2u);
  EXPECT_LE(device.full, 3u);
  ASSERT_EQ(outcome.rounds.size(), 1u);
  EXPECT_EQ(outcome.rounds[0].asked, 3u);
  EXPECT_FALSE(outcome.rounds[0].before);
  ASSERT_TRUE(outcome.rounds[0].after);
  EXPECT_EQ(outcome.rounds[0].after->slot, 2);
  EXPECT_EQ(outcome.rounds[0].verdicts,
            (std::vector<std::pair<Verdict, unsigned>>{
                {Verdict::Accepted, 2}, {Verdict::Undecided, 1}}));
}

/// Of every trial that was timed, also one that a quick look dropped.
TEST_F(SearchTest, TheStoreKeepsSamplesAndConditionsOfEveryTrial) {
  options.width = 2;
  options.rounds = 1;
  client.answers = {{"r1-s1", answer("time=50")},
                    {"r1-s2", answer("time=140")}};
  SearchOutcome outcome = run();
  ASSERT_EQ(outcome.trials.size(), 2u);
  EXPECT_EQ(outcome.trials[1].verdict, Verdict::NotFaster);
  auto store = llvm::cantFail(openStore(folder.path, StoreMode::Read));
  for (const Trial &trial : outcome.trials) {
    auto kept = llvm::cantFail(store->findTrial(task.key, trial.key()));
    ASSERT_TRUE(kept && kept->measurement && kept->measurement->conditions);
    const Measurement &measurement = *kept->measurement;
    EXPECT_GE(measurement.originalUs.size(), 2u);
    EXPECT_EQ(measurement.originalUs.size(), measurement.candidateUs.size());
    EXPECT_FALSE(measurement.device.empty());
    EXPECT_EQ(measurement.driver, "13.0");
    EXPECT_EQ(measurement.conditions->clockMhz, 1980);
    EXPECT_EQ(measurement.conditions->temperatureC, 61);
  }
}

TEST_F(SearchTest, WhatIsToldOfAWinnerWasMeasuredAnew) {
  options.width = options.rounds = 1;
  client.answers = {{"r1-s1", answer("lucky time=50")}};
  SearchOutcome outcome = run();
  EXPECT_EQ(device.full, 1u);
  EXPECT_EQ(device.confirmed, 1u);
  ASSERT_TRUE(outcome.winner);
  EXPECT_EQ(outcome.winner->measurement.candidateMedianUs, 60);
  ASSERT_TRUE(outcome.trials.front().measurement);
  EXPECT_EQ(outcome.trials.front().measurement->candidateMedianUs, 60);
  EXPECT_TRUE(
      llvm::any_of(outcome.winner->evidence.checks, [](const Check &check) {
        return check.name == "confirmed";
      }));
}

TEST_F(SearchTest, AWinnerThatIsNotConfirmedIsNone) {
  options.width = options.rounds = 1;
  // Slower than the original when it is measured anew.
  client.answers = {{"r1-s1", answer("lucky time=95")}};
  SearchOutcome outcome = run();
  EXPECT_EQ(device.confirmed, 1u);
  EXPECT_FALSE(outcome.winner);
  EXPECT_EQ(outcome.trials.front().verdict, Verdict::NotFaster);
}

TEST_F(SearchTest, AVirtualDeviceGetsPtxAndItsTrialsAreItsOwn) {
  options.width = options.rounds = 1;
  client.answers = {{"r1-s1", answer("time=50")}};
  device.description.name = "virtual sm_90";
  device.description.isVirtual = true;
  SearchOutcome outcome = run();
  ASSERT_TRUE(outcome.winner);
  EXPECT_EQ(device.confirmed, 0u); // A model says the same again.
  EXPECT_EQ(outcome.winner->evidence.level, EvidenceLevel::Modelled);
  EXPECT_TRUE(outcome.trials.front().isModelled);
  // The same again is known, and says nothing on a GPU.
  EXPECT_EQ(run().reused, 2u);
  device.description.name = "Fake GPU";
  device.description.isVirtual = false;
  outcome = run();
  EXPECT_EQ(outcome.reused, 1u); // The answer, not the trial.
  EXPECT_EQ(device.full, 2u);
  ASSERT_TRUE(outcome.winner);
  EXPECT_EQ(outcome.winner->evidence.level, EvidenceLevel::Measured);
  // What was measured goes before what was modelled.
  device.description.isVirtual = true;
  EXPECT_EQ(run().winner->evidence.level, EvidenceLevel::Measured);
}

TEST_F(SearchTest, AnAnswerIsOnDiskBeforeTheNextIsWaitedFor) {
  options.width = 3;
  options.rounds = 1;
  client.otherwise = answer("time=50");
  std::vector<bool> kept;
  run([&](const SearchEvent &event) {
    if (event.kind != SearchEvent::Kind::Answered)
      return;
    auto store = llvm::cantFail(openStore(folder.path, StoreMode::Read));
    auto talk =
        llvm::cantFail(store->findTalk(task.key, event.round, event.slot));
    kept.push_back(talk.has_value());
    // Fewer than three: the others have not been handed over yet.
    if (kept.size() == 1)
      EXPECT_FALSE(llvm::cantFail(store->findTalk(task.key, 1, 1)));
  });
  EXPECT_EQ(kept, (std::vector<bool>{true, true, true}));
}

TEST_F(SearchTest, LaterPromptsCarryTheBestEver) {
  options.width = 2;
  options.rounds = 3;
  task.work.bytesRead = 4096;
  device.description.memoryClockKhz = 1000;
  device.description.memoryBusBits = 4096; // 1.024 GB/s: 4 µs.
  device.description.registersPerMultiprocessor = 65536;
  device.description.sharedBytesPerMultiprocessor = 233472;
  device.description.threadsPerMultiprocessor = 2048;
  client.answers = {{"r1-s1", answer("time=50", "{}", "the first way")},
                    {"r1-s2", answer("x", "{\"TIME\": [40, 45, 60]}", "swept")},
                    {"r2-s1", answer("time=70", "{}", "a slower way")},
                    {"r2-s2", answer("mismatch", "{}", "a wrong way")},
                    {"r3-s1", answer("time=41")},
                    {"r3-s2", answer("time=42")}};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.trouble, "");
  std::string first = client.prompts["r1-s1"];
  EXPECT_FALSE(has(first, "earlier rounds"));
  std::string second = client.prompts["r2-s1"];
  EXPECT_TRUE(has(second, "It is answer 2 of round 1 (swept)."));
  EXPECT_TRUE(has(second, "Its time is 40.00 µs, the original's 100.00 µs: "
                          "2.500 [2.475, 2.525] times as fast"))
      << second;
  EXPECT_TRUE(has(second, "The hardware bound is 4.00 µs: it reaches 10.0 %"))
      << second;
  EXPECT_TRUE(has(second, "Chosen parameters: TIME = 40"));
  EXPECT_TRUE(has(second, "- It moves 0.1 GB/s, 10.0 % of the theoretical "
                          "peak\n"))
      << second;
  EXPECT_TRUE(has(second, "- `k`: 24 blocks of 32 threads fit"));
  EXPECT_TRUE(has(second, "| `k` | 77 | 0 | 0 | 0 | 0 |"));
  EXPECT_TRUE(has(second, "void k(float *x) { // x"));
  EXPECT_TRUE(has(second, "\"params\": {\"TIME\":[40,45,60]}"));
  EXPECT_TRUE(has(second, "**answer 1 of round 1**: the first way. 1 of 1 sets "
                          "are right. Best 50.00 µs"))
      << second;
  EXPECT_TRUE(has(second, "`TIME`: 40 gives 40.00 µs, 45 gives 45.00 µs, 60 "
                          "gives 60.00 µs"))
      << second;
  EXPECT_TRUE(has(second, "worst 60.00 µs (TIME = 60)"));
  EXPECT_FALSE(has(second, "in a row"));
  // Round 2 was worse: what is kept is the best ever.
  std::string third = client.prompts["r3-s2"];
  EXPECT_TRUE(has(third, "It is answer 2 of round 1 (swept)."));
  EXPECT_TRUE(has(third, "(1 in a row)"));
  EXPECT_TRUE(has(third, "### A candidate that failed")) << "slot 2 failed";
  EXPECT_TRUE(has(third, "element 7 of `x`: got 1, wanted 2"));
  EXPECT_FALSE(has(client.prompts["r3-s1"], "### A candidate that failed"));
  EXPECT_TRUE(has(client.prompts["r3-s1"], "element 7 of `x`")) << "history";
  for (const char *word : {"secret-case", "seed", folder.path.c_str(), "{{"})
    EXPECT_FALSE(has(third, word)) << word;
}

TEST_F(SearchTest, ThePlanOfTheBestIsInTheFormOfAnAnswer) {
  options.width = 1;
  options.rounds = 2;
  std::string whole = R"(```cuda
extern "C" __global__ void k(float *x, float *part) { // time=50
}
```
```json
{ "launch": [ { "kernel": "k", "grid": [1, "1", "2"], "block": [32],
                "shared": "4 * TILE", "args": ["x", "part"] },
              { "kernel": "k", "grid": [1], "block": [32],
                "args": ["x", "part"] } ],
  "scratch": [ { "name": "part", "bytes": "8 * x.size0", "zero": true } ],
  "requires": ["x.size0 % 4 == 0"], "params": { "TILE": [32, 64] },
  "strategy": "a \"quoted\" way", "notes": "" }
```
)";
  client.answers["r1-s1"] = whole;
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.trouble, "");
  llvm::StringRef text = client.prompts["r2-s1"];
  size_t from = text.find("```cuda", text.find("### The best kernel so far"));
  ASSERT_NE(from, llvm::StringRef::npos) << text.str();
  llvm::Expected<Candidate> shown =
      parseAnswer(text.slice(from, text.find("### Every candidate")));
  ASSERT_TRUE(bool(shown)) << llvm::toString(shown.takeError());
  llvm::Expected<Candidate> given = parseAnswer(whole);
  ASSERT_TRUE(bool(given)) << llvm::toString(given.takeError());
  EXPECT_EQ(shown->hash(), given->hash());
  EXPECT_EQ(shown->parameters, given->parameters);
}

TEST_F(SearchTest, WithNothingRightEachSlotRepairsItsOwn) {
  options.width = 3;
  options.rounds = 3;
  client.answers = {{"r1-s1", answer("broken one")},
                    {"r1-s2", answer("mismatch two")},
                    {"r1-s3", "no code at all"},
                    {"r2-s1", answer("time=50")}};
  client.otherwise = answer("broken later");
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.trouble, "");
  std::string one = client.prompts["r2-s1"], two = client.prompts["r2-s2"],
              three = client.prompts["r2-s3"];
  for (const std::string &text : {one, two, three}) {
    EXPECT_TRUE(has(text, "No candidate is right yet"));
    EXPECT_FALSE(has(text, "### The best kernel so far"));
  }
  EXPECT_TRUE(has(one, "// broken one"));
  EXPECT_TRUE(has(one, "````text\nline 1: expected a ``` semicolon\n````"))
      << "a message cannot end its block";
  EXPECT_TRUE(has(two, "// mismatch two"));
  // Its own has no source, so another's is shown, and what was wrong with the
  // answer stands in the history.
  EXPECT_TRUE(has(three, "It is answer 2 of round 1:") ||
              has(three, "It is answer 1 of round 1:"));
  EXPECT_TRUE(has(three, "no fenced `cuda` block"));
  // Round 1 was spent on nothing right: patience begins with the first best.
  EXPECT_EQ(outcome.rounds.size(), 3u);
  EXPECT_TRUE(outcome.winner);
}

TEST_F(SearchTest, PatienceEndsASearchThatGainsNothing) {
  options.width = 1;
  options.rounds = 9;
  client.answers = {{"r1-s1", answer("time=50")},
                    {"r2-s1", answer("time=49.5")}, // Within the noise.
                    {"r3-s1", answer("time=49.4")},
                    {"r4-s1", answer("time=20")}};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_EQ(outcome.stop, SearchStop::Patience);
  ASSERT_EQ(outcome.rounds.size(), 3u);
  EXPECT_TRUE(outcome.rounds[0].gained);
  EXPECT_FALSE(outcome.rounds[1].gained);
  EXPECT_FALSE(client.prompts.count("r4-s1"));
}

TEST_F(SearchTest, PatienceStartsAgainAfterAGain) {
  options.width = 1;
  options.rounds = 5;
  client.answers = {{"r1-s1", answer("time=50")},
                    {"r2-s1", answer("time=51")},
                    {"r3-s1", answer("time=40")},
                    {"r4-s1", answer("time=41")},
                    {"r5-s1", answer("time=20")}};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Rounds);
  EXPECT_EQ(outcome.rounds.size(), 5u);
}

TEST_F(SearchTest, TheBoundEndsASearch) {
  options.width = 1;
  task.work.bytesRead = 40960;
  device.description.memoryClockKhz = 1000;
  device.description.memoryBusBits = 4096; // 40 µs.
  client.answers = {{"r1-s1", answer("time=45")},
                    {"r2-s1", answer("time=42")}, // 95.2 %.
                    {"r3-s1", answer("time=41")}};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Bound);
  EXPECT_EQ(outcome.rounds.size(), 2u);
  options.solStop = 0;
  EXPECT_EQ(run().stop, SearchStop::Rounds);
  EXPECT_TRUE(client.prompts.count("r3-s1"));
}

TEST_F(SearchTest, PendingAnswersHoldTheNextRoundBack) {
  options.width = 2;
  options.rounds = 2;
  client.answers["r1-s2"] = answer("time=50");
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Pending);
  EXPECT_EQ(outcome.pending, std::vector<std::string>{"scale r1-s1"});
  EXPECT_EQ(outcome.rounds.size(), 1u);
  EXPECT_TRUE(outcome.winner) << "what has come is tried";
  client.asked.clear();
  client.answers["r1-s1"] = answer("time=30");
  outcome = run();
  EXPECT_EQ(client.asked,
            (std::vector<std::string>{"r1-s1", "r2-s2", "r2-s1"}));
  EXPECT_EQ(outcome.pending.size(), 2u);
  EXPECT_TRUE(has(client.prompts["r2-s1"], "Its time is 30.00 µs"));
}

TEST_F(SearchTest, AFailingProviderKeepsWhatWasAnswered) {
  options.width = 3;
  client.otherwise = answer("time=50");
  client.failing = {"r1-s1", "r1-s3"};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Trouble);
  EXPECT_EQ(outcome.trouble, "no more: r1-s3");
  EXPECT_EQ(outcome.trials.size(), 1u);
  ASSERT_TRUE(outcome.winner);
  ASSERT_EQ(outcome.rounds.size(), 1u);
  EXPECT_TRUE(outcome.rounds[0].after);
  client.failing.clear();
  client.asked.clear();
  run();
  EXPECT_EQ(std::set<std::string>(client.asked.begin(), client.asked.end())
                .count("r1-s2"),
            0u);
}

TEST_F(SearchTest, WhatCannotBeKeptIsNotBought) {
  options.width = 6;
  client.otherwise = answer("time=50");
  // A place that is taken by what is no talk and cannot be moved aside: it
  // is found by the first answer only.
  std::string talks = folder.path + "/talks/" + task.key;
  bool blocked = false;
  SearchOutcome outcome = run([&](const SearchEvent &event) {
    if (event.kind == SearchEvent::Kind::Asked && !std::exchange(blocked, true))
      ASSERT_EQ(::rename(talks.c_str(), (talks + ".away").c_str()) |
                    ::symlink("/nowhere", talks.c_str()),
                0);
  });
  EXPECT_EQ(outcome.stop, SearchStop::Trouble);
  EXPECT_TRUE(has(outcome.trouble, "is a symbolic link")) << outcome.trouble;
  EXPECT_EQ(client.asked, std::vector<std::string>{"r1-s6"});
}

TEST_F(SearchTest, NothingIsAskedWhereATalkHasNoPlace) {
  options.width = 2;
  client.otherwise = answer("time=50");
  auto expectTrouble = [&](const std::string &part) {
    SearchOutcome outcome = run();
    EXPECT_EQ(outcome.stop, SearchStop::Trouble);
    EXPECT_TRUE(has(outcome.trouble, part)) << outcome.trouble;
    EXPECT_EQ(client.asked.size(), 0u);
  };
  std::string talks = folder.path + "/talks", place = talks + "/" + task.key;
  ASSERT_FALSE(bool(writeFileAtomically(talks, "")));
  expectTrouble("Not a directory");
  ASSERT_EQ(::unlink(talks.c_str()), 0);
  ASSERT_FALSE(bool(makeFolders(talks)));
  ASSERT_EQ(::symlink("/tmp", place.c_str()), 0);
  expectTrouble("is a symbolic link");
  ASSERT_EQ(::unlink(place.c_str()), 0);
  if (::geteuid() != 0) {
    ASSERT_FALSE(bool(makeFolders(place)));
    ASSERT_EQ(::chmod(place.c_str(), 0500), 0);
    expectTrouble("Permission denied");
    ASSERT_EQ(::chmod(place.c_str(), 0700), 0);
  }
  EXPECT_EQ(run().trouble, "");
  EXPECT_NE(client.asked.size(), 0u);
}

TEST_F(SearchTest, NothingIsAskedWhereNoAnswerCouldBeTried) {
  client.otherwise = answer("time=50");
  referenceFault = "ptxas refuses it";
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.trouble, "building the original kernel: ptxas refuses it");
  EXPECT_EQ(client.asked.size(), 0u);
  referenceFault.clear();
  device.fault = "no healthy worker";
  outcome = run();
  EXPECT_EQ(outcome.trouble, "no healthy worker");
  EXPECT_EQ(client.asked.size(), 0u);
  device.fault.clear();
  device.probes = 0;
  EXPECT_EQ(run().trouble, "");
  EXPECT_EQ(device.probes, 1u);
  // Where nothing is left to ask there is nothing to lose.
  device.fault = "no healthy worker";
  EXPECT_EQ(run().trouble, "");
}

TEST_F(SearchTest, ABudgetEndsASearchWithoutTrouble) {
  options.width = 2;
  options.rounds = 3;
  client.otherwise = answer("time=50");
  client.overBudget = {"r2-s2"};
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Budget);
  EXPECT_EQ(nameOf(outcome.stop), "budget");
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_EQ(outcome.budget, "budget: no room: r2-s2");
  EXPECT_TRUE(outcome.winner) << "the best so far stays";
  EXPECT_EQ(outcome.rounds.size(), 2u);
  EXPECT_FALSE(client.prompts.count("r3-s1"));
  // Under a higher cap nothing is repeated.
  client.overBudget.clear();
  client.asked.clear();
  outcome = run();
  EXPECT_EQ(outcome.stop, SearchStop::Rounds);
  EXPECT_EQ(outcome.budget, "");
  EXPECT_EQ(client.asked,
            (std::vector<std::string>{"r2-s2", "r3-s2", "r3-s1"}));
}

TEST_F(SearchTest, TroubleWinsOverABudget) {
  client.otherwise = answer("time=50");
  client.overBudget = {"r1-s1"};
  client.failing = {"r1-s2"};
  EXPECT_EQ(run().stop, SearchStop::Trouble);
}

TEST_F(SearchTest, TheForecastIsSaidOnceBeforeTheFirstRequest) {
  options.width = 2;
  options.rounds = 3;
  options.patience = 0;
  client.otherwise = answer("time=50");
  client.overBudget = {"r2-s1"};
  client.money.emplace();
  client.money->tokens = 7000;
  client.money->usd = 0.5;
  client.money->capUsd = 2;
  client.money->before.usd = 0.25;
  std::vector<std::string> said;
  auto listen = [&](const SearchForecast &forecast) {
    EXPECT_TRUE(client.batches.empty());
    said.push_back(describe(forecast));
  };
  forecast = listen;
  SearchOutcome outcome = run();
  EXPECT_EQ(said, std::vector<std::string>{
                      "at most 6 answers to come, for at most 0.5000 USD, "
                      "7000 tokens; spent so far of the cap: 0.2500 of 2.0000 "
                      "USD"});
  EXPECT_EQ(client.forecasts, (std::vector<std::pair<size_t, size_t>>{{2, 4}}));
  EXPECT_TRUE(outcome.remarks.empty());

  // What the store has is not to come.
  client.batches.clear();
  client.forecasts.clear();
  said.clear();
  client.overBudget.clear();
  client.money->usd.reset();
  client.money->capUsd = 0;
  client.money->capTokens = 9000;
  outcome = run();
  EXPECT_EQ(client.forecasts, (std::vector<std::pair<size_t, size_t>>{{1, 2}}));
  EXPECT_EQ(said, std::vector<std::string>{
                      "at most 3 answers to come, for at most 7000 tokens; no "
                      "price is known, money is not counted; spent so far of "
                      "the cap: 0 of 9000 tokens"});
  EXPECT_EQ(outcome.remarks,
            std::vector<std::string>{
                "no price is known for fake: money is not counted; the cap to "
                "use is budget-tokens, now 9000"});

  // Nothing to come: not a word. Nor where nothing is charged.
  client.batches.clear();
  said.clear();
  EXPECT_EQ(run().asked, 0u);
  EXPECT_TRUE(said.empty());
  options.rounds = 4;
  client.money.reset();
  EXPECT_EQ(run().asked, 2u);
  EXPECT_TRUE(said.empty());
}

TEST_F(SearchTest, TheControlSharesTheFirstRoundAndHasNoFeedback) {
  options.width = 2;
  options.rounds = 2;
  for (const char *place : {"r1-s1", "r1-s2", "r1-s3", "r1-s4", "r2-s1"})
    client.answers[place] =
        answer(llvm::formatv("{0} time=5{1}", place, place[4]).str());
  client.answers["r2-s2"] = answer("time=20");
  run();
  std::map<std::string, std::string> withFeedback = client.prompts;
  client.prompts.clear();
  client.batches.clear();
  options.kind = SearchKind::BestOfN;
  SearchOutcome outcome = run();
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_EQ(client.batches, std::vector<size_t>{2});
  EXPECT_EQ(client.prompts["r1-s3"], withFeedback["r1-s1"]);
  EXPECT_EQ(client.prompts["r1-s4"], withFeedback["r1-s2"]);
  EXPECT_EQ(client.prompts.size(), 2u);
  ASSERT_EQ(outcome.rounds.size(), 1u);
  ASSERT_TRUE(outcome.rounds[0].after);
  EXPECT_EQ(outcome.rounds[0].after->medianUs, 51);
  // And the other way round: the control's answers are not feedback.
  client.prompts.clear();
  client.batches.clear();
  options.kind = SearchKind::Fsr;
  run();
  EXPECT_TRUE(client.batches.empty());
}

TEST_F(SearchTest, ASearchWithFeedbackDoesNotSeeTheControl) {
  options.width = 1;
  options.rounds = 2;
  client.answers = {{"r1-s1", answer("time=50")},
                    {"r1-s2", answer("time=10")},
                    {"r2-s1", answer("time=40")}};
  options.kind = SearchKind::BestOfN;
  EXPECT_EQ(run().winner->slot, 2);
  options.kind = SearchKind::Fsr;
  SearchOutcome outcome = run();
  EXPECT_TRUE(has(client.prompts["r2-s1"], "Its time is 50.00 µs"));
  ASSERT_EQ(outcome.rounds.size(), 2u);
  // Not held against what the control found: 40 µs beats this search's own.
  EXPECT_EQ(outcome.rounds[1].after->verdict, Verdict::Accepted);
  EXPECT_EQ(outcome.rounds[1].after->medianUs, 40);
}

TEST_F(SearchTest, AChangedPromptKeepsTheAnswerThatWasPaidFor) {
  options.width = 1;
  options.rounds = 1;
  client.otherwise = answer("time=50");
  run();
  client.asked.clear();
  task.facts = {"something new"};
  SearchOutcome outcome = run();
  EXPECT_TRUE(client.asked.empty());
  ASSERT_EQ(outcome.remarks.size(), 1u);
  EXPECT_TRUE(has(outcome.remarks[0], "has changed"));
  options.replayStrict = true;
  EXPECT_TRUE(has(run().trouble, "has changed"));
}

TEST_F(SearchTest, ARepeatedKernelIsNotMeasuredAgain) {
  options.width = 1;
  options.rounds = 2;
  client.otherwise = answer("time=50");
  SearchOutcome outcome = run();
  EXPECT_EQ(device.quick, 1u);
  EXPECT_EQ(outcome.trials.size(), 1u);
  options.rounds = 3;
  options.patience = 0;
  run();
  EXPECT_TRUE(has(client.prompts["r3-s1"],
                  "**answer 1 of round 2**: one way. The same kernel as answer "
                  "1 of round 1."))
      << client.prompts["r3-s1"];
}

TEST_F(SearchTest, RepairNeitherCostsPatienceNorLastsForEver) {
  options.width = 1;
  options.rounds = 5;
  options.patience = 1;
  client.answers = {{"r1-s1", answer("broken")},
                    {"r2-s1", answer("mismatch")},
                    {"r3-s1", answer("time=50")},
                    {"r4-s1", answer("time=40")},
                    {"r5-s1", answer("time=30")}};
  EXPECT_EQ(run().rounds.size(), 5u);
  EXPECT_TRUE(has(client.prompts["r3-s1"], "### A candidate that failed"));
  EXPECT_FALSE(has(client.prompts["r4-s1"], "### A candidate that failed"));
}

TEST_F(SearchTest, AnAcceptedTrialBeatsOneThatOnlyLooksFaster) {
  Trial accepted, quick;
  accepted.verdict = Verdict::Accepted;
  accepted.measurement.emplace().speedup = 2;
  quick.verdict = Verdict::Undecided;
  quick.measurement.emplace().speedup = 3;
  EXPECT_TRUE(isBetter(accepted, quick));
  EXPECT_FALSE(isBetter(quick, accepted));
}

TEST_F(SearchTest, ALongHistoryIsCut) {
  std::vector<Attempt> attempts;
  for (int64_t slot = 1; slot <= 50; ++slot) {
    Attempt attempt;
    attempt.round = 1;
    attempt.slot = slot;
    attempt.trials.emplace_back();
    attempt.trials[0].message = "no block";
    attempts.push_back(attempt);
  }
  auto text = renderPrompt(task, device.description, 2, 1, attempts, 0, "");
  ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
  EXPECT_TRUE(has(*text, "18 older ones are left out"));
  EXPECT_FALSE(has(*text, "**answer 18 of round 1**"));
  EXPECT_TRUE(has(*text, "**answer 19 of round 1**"));
  EXPECT_TRUE(has(*text, "**answer 50 of round 1**"));
  EXPECT_TRUE(has(*text, "It could not be read, so there is no source"));
}

TEST_F(SearchTest, EventsCarryTheBestSoFar) {
  options.width = 2;
  options.rounds = 1;
  client.answers = {{"r1-s1", answer("time=50")}, {"r1-s2", answer("time=60")}};
  std::vector<double> best;
  unsigned rounds = 0;
  run([&](const SearchEvent &event) {
    if (event.kind == SearchEvent::Kind::Asked)
      EXPECT_EQ(event.best, nullptr);
    if (event.kind == SearchEvent::Kind::Finished)
      best.push_back(event.best->measurement->speedupLow);
    if (event.kind == SearchEvent::Kind::RoundEnded) {
      ++rounds;
      ASSERT_NE(event.summary, nullptr);
      EXPECT_EQ(event.summary->verdicts.size(), 2u);
    }
  });
  EXPECT_EQ(best, (std::vector<double>{1.98, 1.98}));
  EXPECT_EQ(rounds, 1u);
}

TEST_F(SearchTest, ReplayInTheSameStoreRepeatsNothing) {
  options.width = 2;
  client.answers = threeRounds();
  SearchOutcome once = run();
  ASSERT_EQ(once.trouble, "");
  EXPECT_EQ(once.rounds.size(), 3u);
  unsigned measured = device.quick + device.full, compiled = compiler.compiles;
  std::map<std::string, std::string> prompts = client.prompts;
  client.batches.clear();
  SearchOutcome again = run();
  EXPECT_TRUE(client.batches.empty());
  EXPECT_TRUE(again.remarks.empty()) << again.remarks.front();
  EXPECT_EQ(device.quick + device.full, measured);
  EXPECT_EQ(compiler.compiles, compiled);
  EXPECT_EQ(keys(again), keys(once));
  EXPECT_EQ(again.winner->id, once.winner->id);
  // In another store the same talks give the same prompts and trials.
  TemporaryFolder other;
  client.prompts.clear();
  SearchOutcome elsewhere = runIn(other.path, client);
  EXPECT_EQ(client.prompts, prompts);
  EXPECT_EQ(keys(elsewhere), keys(once));
  EXPECT_EQ(elsewhere.winner->id, once.winner->id);
}

TEST_F(SearchTest, KilledAtAnyEventItGoesOnFromThere) {
  options.width = 2;
  client.answers = threeRounds();
  SearchOutcome whole = run();
  ASSERT_EQ(whole.trouble, "");
  std::vector<std::string> wholeAsked = client.asked;

  // Each child dies at its first event that moves the search forward.
  TemporaryFolder killed, notes;
  auto note = [&](llvm::StringRef name, const llvm::Twine &line) {
    std::error_code code;
    llvm::raw_fd_ostream os(notes / name, code, llvm::sys::fs::OF_Append);
    os << line << "\n";
  };
  unsigned deaths = 0;
  for (int status = 1; status != 0; ++deaths) {
    ASSERT_LT(deaths, 100u);
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      SearchOutcome end = runIn(killed.path, client, [&](auto &event) {
        std::string place = llvm::formatv("r{0}-s{1}", event.round, event.slot);
        if (event.kind == SearchEvent::Kind::Answered)
          note("answered", place);
        else if (event.kind == SearchEvent::Kind::Finished)
          note("finished", event.trial->key());
        else
          return;
        _exit(9);
      });
      note("end", end.winner->id + " " + nameOf(end.stop) + end.trouble);
      for (const std::string &key : keys(end))
        note("trials", key);
      _exit(0);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  EXPECT_GT(deaths, 12u);
  auto lines = [&](llvm::StringRef name) {
    std::string text = llvm::cantFail(readFile(notes / name));
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(text).trim().split(parts, '\n');
    return std::vector<std::string>(parts.begin(), parts.end());
  };
  auto sorted = [](std::vector<std::string> list) {
    std::sort(list.begin(), list.end());
    return list;
  };
  // Every answer arrived once and every trial was finished once.
  EXPECT_EQ(sorted(lines("answered")), sorted(wholeAsked));
  std::vector<std::string> finished = sorted(lines("finished"));
  EXPECT_EQ(std::adjacent_find(finished.begin(), finished.end()),
            finished.end());
  EXPECT_EQ(finished.size(), whole.trials.size());
  EXPECT_EQ(sorted(lines("trials")), sorted(keys(whole)));
  EXPECT_EQ(lines("end").front(), whole.winner->id + " rounds");
}

} // namespace
