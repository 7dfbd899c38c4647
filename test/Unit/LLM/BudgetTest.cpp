// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A cap is never passed: against a server that keeps its own books, charges up
// to the last token that it may, and breaks down at random after charging.
//
//===----------------------------------------------------------------------===//

#include "ChargingFixture.h"

#include <random>

using namespace fsr;

namespace {

class BudgetTest : public ChargingFixture {
protected:
  /// 100 searches' worth of requests, each run under a cap of its own.
  template <typename SetCap, typename Check>
  void runSeeds(SetCap setCap, Check check) {
    int short_ = 0, answered = 0;
    int64_t most = 0;
    for (unsigned seed = 1; seed <= 100; ++seed) {
      std::mt19937 dice(seed);
      server->reset(seed);
      setCap(dice);
      auto client = make("openai:m");
      ASSERT_TRUE(client);
      std::vector<std::string> prompts;
      for (int i = 0; i < 24; ++i)
        prompts.push_back("do: charge\n" + std::to_string(i) +
                          std::string(dice() % 2000, 'p'));
      for (const Ended &ended : askAll(*client, prompts)) {
        answered += ended.error.empty();
        if (contains(ended.error, "budget: ")) {
          ++short_;
          EXPECT_EQ(ended.kind, ErrorKind::OverBudget);
        }
      }
      check(client->spent(), charged(), seed);
      most = std::max(most,
                      server->stats().getInteger("most_in_flight").value_or(0));
    }
    // It was a test: some were turned down, some not, and they overlapped.
    EXPECT_GT(short_, 300);
    EXPECT_GT(answered, 300);
    EXPECT_GE(most, 6);
  }
};

TEST_F(BudgetTest, ACapInDollarsIsNeverPassed) {
  double caps = 0, total = 0;
  runSeeds(
      [&](std::mt19937 &dice) {
        options.budget.usd = 0.08 + double(dice() % 1000) / 1e4;
        caps += *options.budget.usd;
      },
      [&](const ChatSpending &spent, const Books &books, unsigned seed) {
        EXPECT_LE(books.usd(), *options.budget.usd) << "seed " << seed;
        EXPECT_LE(spent.usd, *options.budget.usd) << "seed " << seed;
        EXPECT_GE(spent.usd, books.usd()) << "seed " << seed;
        total += books.usd();
      });
  EXPECT_GT(total, caps / 2);
}

TEST_F(BudgetTest, ACapInTokensIsNeverPassed) {
  int64_t caps = 0, total = 0;
  runSeeds(
      [&](std::mt19937 &dice) {
        options.budget.tokens = 8000 + dice() % 10000;
        caps += *options.budget.tokens;
      },
      [&](const ChatSpending &spent, const Books &books, unsigned seed) {
        EXPECT_LE(books.tokens(), *options.budget.tokens) << "seed " << seed;
        EXPECT_LE(spent.promptTokens + spent.answerTokens,
                  *options.budget.tokens)
            << "seed " << seed;
        EXPECT_GE(spent.promptTokens, books.prompt) << "seed " << seed;
        EXPECT_GE(spent.answerTokens, books.answer) << "seed " << seed;
        total += books.tokens();
      });
  EXPECT_GT(total, caps / 2);
}

TEST_F(BudgetTest, WhatDoesNotFitIsNotSent) {
  options.budget.tokens = 1000;
  Ended ended = ask("do: ok");
  EXPECT_EQ(ended.kind, ErrorKind::OverBudget);
  EXPECT_TRUE(contains(ended.error, "openai: budget: a call can take "))
      << ended.error;
  EXPECT_TRUE(contains(ended.error, "; 1000 of 1000 are left")) << ended.error;
  EXPECT_EQ(received().size(), 0u);
  options.budget = {0.01, 0};
  ended = ask("do: ok");
  EXPECT_TRUE(contains(ended.error, "; 0.0100 of 0.0100 are left"))
      << ended.error;
  EXPECT_EQ(received().size(), 0u);
  EXPECT_EQ(lastSpent.calls, 0);
}

TEST_F(BudgetTest, OneWaitsForWhatAnotherLeavesOver) {
  // Room for one at its dearest; each really takes 15 tokens.
  options.budget.tokens = 1500;
  auto client = make("openai:m");
  for (const Ended &ended :
       askAll(*client, {"do: slow=0.1\n1", "do: slow=0.1\n2", "do: ok\n3"}))
    EXPECT_EQ(ended.text, "here it is") << ended.error;
  EXPECT_EQ(server->stats().getInteger("most_in_flight"), 1);
  EXPECT_EQ(client->spent().calls, 3);
  EXPECT_EQ(client->spent().promptTokens, 30);
  EXPECT_EQ(client->spent().answerTokens, 15);
  EXPECT_DOUBLE_EQ(client->spent().usd, (30 * 3 + 15 * 15) / 1e6);
}

TEST_F(BudgetTest, ACallThatBrokeOffCountsAtItsDearest) {
  options.retries = 0;
  for (const char *word : {"500", "cut", "close", "badjson"}) {
    EXPECT_NE(ask(std::string("do: ") + word).error, "") << word;
    EXPECT_EQ(lastSpent.answerTokens, 1000) << word;
  }
  options.timeout = std::chrono::milliseconds(200);
  EXPECT_NE(ask("do: hang").error, "");
  EXPECT_EQ(lastSpent.answerTokens, 1000);
}

TEST_F(BudgetTest, ACallThatWasTurnedDownCostsNothing) {
  for (const char *word : {"429", "401"}) {
    EXPECT_NE(ask(std::string("do: ") + word).error, "") << word;
    EXPECT_GE(lastSpent.calls, 1);
    EXPECT_EQ(lastSpent.promptTokens + lastSpent.answerTokens, 0) << word;
  }
}

TEST_F(BudgetTest, ARetryNeedsRoomToo) {
  options.budget.tokens = 1500;
  Ended ended = ask("do: 500 ok");
  EXPECT_TRUE(contains(ended.error, "budget: ")) << ended.error;
  EXPECT_TRUE(contains(ended.error, "the last try: ")) << ended.error;
  EXPECT_TRUE(contains(ended.error, "HTTP status 500")) << ended.error;
  EXPECT_EQ(received().size(), 1u);
}

} // namespace
