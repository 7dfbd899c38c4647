// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The live line at every width, and the lines of a log. What a terminal makes
// of them is in test/Tools/fsr-opt-terminal.test.
//
//===----------------------------------------------------------------------===//

#include "fsr/Terminal/Progress.h"
#include "fsr/Terminal/Text.h"

#include "gtest/gtest.h"

using namespace fsr;
using Kind = SearchEvent::Kind;

namespace {

ProgressState full() {
  ProgressState state;
  state.subject.kernel = "layer_norm";
  state.subject.number = 2;
  state.subject.of = 3;
  state.subject.rounds = 3;
  state.subject.width = 4;
  state.subject.capUsd = 5;
  state.round = 2;
  state.waiting = 1;
  state.verdicts = {
      {Verdict::Accepted, 2}, {Verdict::Undecided, 16}, {Verdict::Mismatch, 1}};
  state.best = "19.42x [19.04, 19.70]";
  state.usd = 0.41;
  state.left = std::chrono::seconds(200);
  state.elapsed = std::chrono::seconds(187);
  return state;
}

TEST(ProgressLine, SaysAllWhereThereIsRoom) {
  EXPECT_EQ(progressLine(full(), 200),
            "layer_norm (2 of 3)  round 2/3  waiting for 1 of 4 answers  "
            "19 tried: 2 accepted, 16 undecided, 1 mismatch  "
            "best 19.42x [19.04, 19.70]  $0.41 of $5.00  about 4 min left  "
            "3:07");
}

TEST(ProgressLine, SaysTheMostImportantWhereThereIsLittle) {
  EXPECT_EQ(progressLine(full(), 119),
            "layer_norm (2 of 3)  r2/3  waits for 1  19 tried: 2 accepted  "
            "best 19.42x [19.04, 19.70]  $0.41  ~4 min  3:07");
  EXPECT_EQ(progressLine(full(), 79),
            "layer_norm r2/3 waits for 1 19.42x [19.04, 19.70] $0.41 ~4 min "
            "3:07");
  EXPECT_EQ(progressLine(full(), 45),
            "layer_norm r2/3 19.42x [19.04, 19.70] ~4 min");
  EXPECT_EQ(progressLine(full(), 39), "layer_norm r2/3 ~4 min");
}

TEST(ProgressLine, IsNeverWiderAndNeverWithoutTheInterval) {
  ProgressState state = full();
  state.subject.kernel = std::string(200, 'k');
  for (const ProgressState &one : {full(), state, ProgressState()})
    for (size_t columns = 1; columns < 250; ++columns) {
      std::string line = progressLine(one, columns);
      EXPECT_LE(columnsOf(line), columns) << line;
      EXPECT_EQ(line.find("19.42x") != std::string::npos,
                line.find("[19.04, 19.70]") != std::string::npos)
          << line;
    }
}

TEST(ProgressLine, SaysThatTheOriginalIsChecked) {
  ProgressState state;
  state.subject.kernel = "k";
  state.isTrying = state.isChecking = true;
  EXPECT_EQ(progressLine(state, 200),
            "k  round 1/1  checking the original  0:00");
}

TEST(ProgressLine, HasNoTimeLeftBeforeThereIsOne) {
  ProgressState state = full();
  state.left.reset();
  EXPECT_EQ(progressLine(state, 200).find("left"), std::string::npos);
  EXPECT_NE(progressLine(state, 200).find("3:07"), std::string::npos);
}

/// Keeps what each write brought.
class Writes : public llvm::raw_ostream {
public:
  Writes() { SetUnbuffered(); }
  std::vector<std::string> all;

private:
  void write_impl(const char *bytes, size_t size) override {
    all.emplace_back(bytes, size);
  }
  uint64_t current_pos() const override { return 0; }
};

TEST(ProgressLog, IsOneWriteALine) {
  Writes os;
  Progress progress(os, ProgressKind::Lines, "fsr: ", "store");
  SearchOptions options;
  progress.begin(progressSubject("soft\x1b[2Jmax", options, 0));
  Trial trial;
  trial.verdict = Verdict::Accepted;
  trial.parameters = {{"THREADS", 64}};
  trial.measurement.emplace();
  trial.measurement->candidateMedianUs = 68;
  trial.measurement->speedup = 2;
  trial.measurement->speedupLow = 1.9;
  trial.measurement->speedupHigh = 2.1;
  RoundSummary summary;
  summary.verdicts = {{Verdict::Accepted, 1}};
  TaskStrength strength;
  strength.dummies.resize(14);
  progress.event({Kind::Checking, 1, 0}, 0);
  progress.event({Kind::Tested, 1, 0, nullptr, nullptr, nullptr, &strength}, 0);
  progress.event({Kind::Asked, 1, 1}, 0);
  progress.event({Kind::Answered, 1, 1}, 0);
  progress.event({Kind::Finished, 1, 1, &trial, &trial}, 0);
  progress.event({Kind::RoundEnded, 1, 0, nullptr, &trial, &summary}, 0);
  progress.end();
  progress.event({Kind::Asked, 2, 1}, 0);
  EXPECT_EQ(os.all,
            (std::vector<std::string>{
                "fsr: soft?[2Jmax: checking the original\n",
                "fsr: soft?[2Jmax: task strength: 14 dummies, all refused\n",
                "fsr: soft?[2Jmax r1-s1: asking\n",
                "fsr: soft?[2Jmax r1-s1: answered\n",
                "fsr: soft?[2Jmax r1-s1: accepted THREADS=64 68.0 us 2.00x "
                "[1.90, 2.10]\n",
                "fsr: soft?[2Jmax r1: done, 1 accepted; best 2.00x [1.90, "
                "2.10]\n"}));
}

TEST(ProgressLive, OneDrawsAndIsErasedWhole) {
  Writes first, second;
  {
    Progress one(first, ProgressKind::Live, "", "store");
    Progress other(second, ProgressKind::Live, "", "store");
    one.begin(progressSubject("softmax", {}, 0));
    other.begin(progressSubject("matmul", {}, 0));
    one.event({Kind::Asked, 1, 1}, 0);
    other.event({Kind::Asked, 1, 1}, 0);
    one.end();
    one.end();
  }
  ASSERT_GE(first.all.size(), 2u);
  for (const std::string &write : first.all) {
    EXPECT_EQ(write.front(), '\r');
    EXPECT_EQ(llvm::StringRef(write).take_back(3), "\x1b[K");
  }
  EXPECT_EQ(first.all.back(), "\r\x1b[K");
  EXPECT_TRUE(second.all.empty());
}

TEST(ProgressLive, ASentenceStandsAboveTheLine) {
  Writes os;
  Progress progress(os, ProgressKind::Live, "fsr: ", "store");
  progress.say("before");
  EXPECT_EQ(os.all.back(), "fsr: before\n");
  progress.begin(progressSubject("softmax", {}, 0));
  progress.say("a\x1b"
               "b");
  progress.end();
  auto said = llvm::find(os.all, "\r\x1b[Kfsr: a?b\n");
  ASSERT_NE(said, os.all.end());
  EXPECT_EQ((said + 1)->substr(0, 8), "\rsoftmax");
}

TEST(ProgressLive, TheControlHasOneWideRound) {
  SearchOptions options;
  options.kind = SearchKind::BestOfN;
  ProgressSubject subject = progressSubject("softmax", options, 2);
  EXPECT_EQ(subject.rounds, 1u);
  EXPECT_EQ(subject.width, 12u);
  EXPECT_EQ(subject.capUsd, 2);
}

} // namespace
