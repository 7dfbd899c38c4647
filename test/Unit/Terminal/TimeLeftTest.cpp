// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The estimate of the time left, on a clock that the test turns.
//
//===----------------------------------------------------------------------===//

#include "fsr/Terminal/TimeLeft.h"

#include "gtest/gtest.h"

using namespace fsr;
using Kind = SearchEvent::Kind;
using std::chrono::seconds;

namespace {

class TimeLeftTest : public ::testing::Test {
protected:
  void at(int second, Kind kind, int64_t round, int64_t slot = 0) {
    left.event({kind, round, slot}, moment(second));
  }
  TimeLeft::Clock::time_point moment(int second) {
    return start + seconds(second);
  }
  /// -1 where it says nothing.
  int64_t after(int second) {
    std::optional<seconds> said = left.at(moment(second));
    return said ? said->count() : -1;
  }
  /// A round of two answers: 10 s of waiting, 20 s for each answer.
  void doRound(int second, int64_t round) {
    at(second, Kind::Asked, round, 1);
    at(second, Kind::Asked, round, 2);
    at(second + 5, Kind::Answered, round, 2);
    at(second + 10, Kind::Answered, round, 1);
    at(second + 20, Kind::Finished, round, 1);
    at(second + 30, Kind::Finished, round, 1);
    at(second + 50, Kind::Finished, round, 2);
    at(second + 50, Kind::RoundEnded, round);
  }

  TimeLeft::Clock::time_point start = TimeLeft::Clock::now();
  TimeLeft left{3, 2, start};
};

TEST_F(TimeLeftTest, ASearchWhoseAnswersAreAllThereBeginsWithATrial) {
  left = TimeLeft(1, 3, start);
  at(20, Kind::Finished, 1, 1);
  at(40, Kind::Finished, 1, 2);
  EXPECT_EQ(after(40), 20) << "the first answer took 20 s";
}

TEST_F(TimeLeftTest, SaysNothingBeforeAnAnswerWasTried) {
  EXPECT_EQ(after(1), -1);
  at(0, Kind::Asked, 1, 1);
  at(0, Kind::Asked, 1, 2);
  EXPECT_EQ(after(5), -1);
  at(5, Kind::Answered, 1, 1);
  at(10, Kind::Answered, 1, 2);
  EXPECT_EQ(after(12), -1);
  at(20, Kind::Finished, 1, 1);
  EXPECT_EQ(after(21), -1) << "other sets of the answer may follow";
  at(30, Kind::Finished, 1, 1);
  at(50, Kind::Finished, 1, 2);
  // One answer took 20 s, one round's asking 10 s: two more rounds, and of the
  // second answer at work nothing more is known.
  EXPECT_EQ(after(50), 2 * (10 + 2 * 20));
}

TEST_F(TimeLeftTest, CountsWhatIsToCome) {
  doRound(0, 1);
  EXPECT_EQ(after(50), 100);
  at(50, Kind::Asked, 2, 1);
  at(50, Kind::Asked, 2, 2);
  EXPECT_EQ(after(54), 96) << "the waiting that is over counts no more";
  EXPECT_EQ(after(99), 90) << "a wait that lasts longer does not go below 0";
  at(60, Kind::Answered, 2, 1);
  at(60, Kind::Answered, 2, 2);
  EXPECT_EQ(after(60), 90);
  EXPECT_EQ(after(65), 85);
  at(80, Kind::Finished, 2, 2);
  EXPECT_EQ(after(80), 50) << "the answers before the one at work are done";
  at(80, Kind::RoundEnded, 2);
  EXPECT_EQ(after(80), 50);
}

TEST_F(TimeLeftTest, TheLastRoundCountsDown) {
  doRound(0, 1);
  doRound(50, 2);
  doRound(100, 3);
  EXPECT_EQ(after(150), 0);
}

TEST_F(TimeLeftTest, WhatTheStoreHadCountsForNothing) {
  // Rounds 1 and 2 were done in another run; the third is asked for.
  at(0, Kind::RoundEnded, 1);
  EXPECT_EQ(after(0), -1);
  at(1, Kind::RoundEnded, 2);
  EXPECT_EQ(after(1), -1);
  doRound(1, 3);
  EXPECT_EQ(after(51), 0);
}

TEST_F(TimeLeftTest, AnswersOfTheStoreTellNothingOfAsking) {
  // The answers are there, their trials are not.
  at(0, Kind::RoundEnded, 1);
  at(20, Kind::Finished, 2, 1);
  at(40, Kind::Finished, 2, 2);
  EXPECT_EQ(after(41), -1);
  at(40, Kind::RoundEnded, 2);
  at(40, Kind::Asked, 3, 1);
  EXPECT_EQ(after(40), 40);
}

TEST_F(TimeLeftTest, PendingAnswersHaveNoTime) {
  doRound(0, 1);
  at(60, Kind::Asked, 2, 1);
  at(60, Kind::Asked, 2, 2);
  at(61, Kind::Pending, 2, 1);
  EXPECT_EQ(after(61), -1);
}

TEST(TimeLeftText, IsAsCoarseAsItIsSure) {
  EXPECT_EQ(timeLeftText(seconds(0)), "under a minute left");
  EXPECT_EQ(timeLeftText(seconds(59)), "under a minute left");
  EXPECT_EQ(timeLeftText(seconds(60)), "about 1 min left");
  EXPECT_EQ(timeLeftText(seconds(200)), "about 4 min left");
  EXPECT_EQ(timeLeftText(seconds(90 * 60)), "about 90 min left");
  EXPECT_EQ(timeLeftText(seconds(9000)), "about 2.5 h left");
}

} // namespace
