// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A cap holds over all runs: ones that are killed and go on, under the same cap
// or a raised one, and ones at the same time. The server's own books are the
// truth.
//
//===----------------------------------------------------------------------===//

#include "ChargingFixture.h"

#include "Ledger.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <random>
#include <set>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fsr;

namespace {

const std::string key(64, 'a'), otherKey(64, 'b');

class SpendingTest : public ChargingFixture {
protected:
  void SetUp() override {
    ChargingFixture::SetUp();
    options.spending = folder.path("spending");
  }

  void forget() { (void)llvm::sys::fs::remove_directories(options.spending); }

  static ChatRequest request(const std::string &prompt, int64_t slot = 1,
                             const std::string &taskKey = key) {
    return {taskKey, "softmax", 1, slot, prompt};
  }

  /// What is known to be spent on `taskKeys`, or the error.
  ChatSpending before(const std::vector<std::string> &taskKeys = {key},
                      std::string *error = nullptr) {
    auto client = make("openai:m");
    if (!client)
      return {};
    EXPECT_FALSE(bool(client->countTasks(taskKeys)));
    auto made = client->forecast({});
    if (made && *made)
      return (*made)->before;
    std::string message = llvm::toString(made.takeError());
    if (error)
      *error = message;
    else
      ADD_FAILURE() << message;
    return {};
  }

  /// A run as a process of its own. Tells the number of each prompt that it was
  /// answered, the moment it is.
  struct Process {
    pid_t pid = -1;
    int answers = -1;
  };
  Process start(const std::vector<std::string> &prompts,
                const std::set<int> &open) {
    int ends[2];
    if (::pipe(ends) != 0)
      abort();
    Process process{::fork(), ends[0]};
    if (process.pid != 0) {
      ::close(ends[1]);
      return process;
    }
    auto client = makeChatClient("openai:m", options);
    if (!client)
      ::_exit(1);
    std::vector<ChatRequest> batch;
    for (int i : open)
      batch.push_back(request(prompts[i], i + 1));
    (*client)->ask(batch, [&](size_t index, ChatResult result) {
      if (result && *result) {
        auto number = char(batch[index].slot - 1);
        (void)!::write(ends[1], &number, 1);
      }
      llvm::consumeError(result.takeError());
    });
    ::_exit(0);
  }
  /// Takes what was answered out of `open`; true where it had to be killed.
  static bool finish(const Process &process, std::set<int> &open) {
    char number;
    while (::read(process.answers, &number, 1) == 1)
      open.erase(number);
    ::close(process.answers);
    int status = 0;
    ::waitpid(process.pid, &status, 0);
    return WIFSIGNALED(status);
  }

  /// What killed runs sent may still be on its way to the books.
  static void settleBooks() {
    for (int quiet = 0; quiet < 2;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      quiet = server->stats().getInteger("in_flight") == 0 ? quiet + 1 : 0;
    }
  }

  static std::vector<std::string> somePrompts(std::mt19937 &dice) {
    std::vector<std::string> prompts;
    for (int i = 0; i < 24; ++i)
      prompts.push_back("do: charge\n" + std::to_string(i) +
                        std::string(dice() % 2000, 'p'));
    return prompts;
  }

  /// 100 searches, each killed up to twice and then let go to its end;
  /// half of the times a cap is raised in between.
  template <typename RaiseCap, typename Check>
  void killAndResume(RaiseCap raiseCap, Check check) {
    int kills = 0, resumed = 0, left = 0;
    int64_t most = 0;
    for (unsigned seed = 1; seed <= 100; ++seed) {
      std::mt19937 dice(seed);
      settleBooks();
      forget();
      server->reset(seed);
      options.budget = {0, 0};
      raiseCap(dice);
      std::vector<std::string> prompts = somePrompts(dice);
      std::set<int> open;
      for (int i = 0; i < 24; ++i)
        open.insert(i);
      for (int run = 0; run < 3 && !open.empty(); ++run) {
        if (run > 0 && dice() % 2)
          raiseCap(dice);
        Process process = start(prompts, open);
        if (run < 2) {
          std::this_thread::sleep_for(
              std::chrono::microseconds(1000 + dice() % 20000));
          ::kill(process.pid, SIGKILL);
        }
        size_t asked = open.size();
        kills += finish(process, open);
        resumed += run > 0 ? asked - open.size() : 0;
        settleBooks();
        check(before(), charged(), seed);
      }
      left += open.size();
      most = std::max(most,
                      server->stats().getInteger("most_in_flight").value_or(0));
    }
    // It was a test.
    EXPECT_GT(kills, 50);
    EXPECT_GT(resumed, 200);
    EXPECT_GT(left, 100);
    EXPECT_GE(most, 6);
  }
};

TEST_F(SpendingTest, ACapInDollarsHoldsOverKilledRuns) {
  killAndResume(
      [&](std::mt19937 &dice) {
        *options.budget.usd += 0.15 + double(dice() % 1000) / 1e4;
      },
      [&](const ChatSpending &known, const Books &books, unsigned seed) {
        EXPECT_LE(books.usd(), *options.budget.usd) << "seed " << seed;
        EXPECT_LE(known.usd, *options.budget.usd) << "seed " << seed;
        EXPECT_GE(known.usd, books.usd() * (1 - 1e-12)) << "seed " << seed;
      });
}

TEST_F(SpendingTest, ACapInTokensHoldsOverKilledRuns) {
  killAndResume(
      [&](std::mt19937 &dice) {
        *options.budget.tokens += 16000 + dice() % 10000;
      },
      [&](const ChatSpending &known, const Books &books, unsigned seed) {
        EXPECT_LE(books.tokens(), *options.budget.tokens) << "seed " << seed;
        EXPECT_LE(known.promptTokens + known.answerTokens,
                  *options.budget.tokens)
            << "seed " << seed;
        EXPECT_GE(known.promptTokens, books.prompt) << "seed " << seed;
        EXPECT_GE(known.answerTokens, books.answer) << "seed " << seed;
      });
}

TEST_F(SpendingTest, RunsAtTheSameTimeKeepOneCapTogether) {
  int left = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 dice(seed);
    settleBooks();
    forget();
    server->reset(seed);
    options.budget.usd = 0.2;
    std::vector<std::string> prompts = somePrompts(dice);
    std::set<int> open[3];
    for (int i = 0; i < 24; ++i)
      open[i % 3].insert(i);
    std::vector<Process> processes;
    for (std::set<int> &part : open)
      processes.push_back(start(prompts, part));
    for (auto [process, part] : llvm::zip(processes, open)) {
      EXPECT_FALSE(finish(process, part));
      left += part.size();
    }
    settleBooks();
    ChatSpending known = before();
    EXPECT_LE(known.usd, 0.2);
    EXPECT_GE(known.usd, charged().usd() * (1 - 1e-12));
    EXPECT_GT(charged().usd(), 0.05);
  }
  EXPECT_GT(left, 100);
}

TEST_F(SpendingTest, ARunWaitsForTheLock) {
  ASSERT_FALSE(bool(makeFolders(options.spending)));
  int lock =
      ::open((options.spending + "/.lock").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  std::set<int> open = {0};
  Process process = start({"do: ok"}, open);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(received().size(), 0u);
  // The process has the descriptor as well, and the lock with it.
  ::flock(lock, LOCK_UN);
  ::close(lock);
  EXPECT_FALSE(finish(process, open));
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(received().size(), 1u);
}

TEST_F(SpendingTest, ARaisedCapAllowsTheDifference) {
  // Each counts at its dearest, which is the same for all.
  auto run = [&](int calls) {
    auto client = make("openai:m");
    int answered = 0;
    for (int i = 0; i < calls; ++i) {
      Ended ended = plain(askOne(*client, request("do: nousage")));
      answered += ended.error.empty();
      if (!ended.error.empty()) {
        EXPECT_TRUE(contains(ended.error, "budget: a call can "))
            << ended.error;
      }
    }
    return answered;
  };
  auto client = make("openai:m");
  auto one = client->forecast(request("do: nousage"));
  ASSERT_TRUE(bool(one));
  double usd = *(*one)->usd;
  int64_t tokens = (*one)->tokens;
  for (bool inDollars : {true, false}) {
    forget();
    auto setCap = [&](int calls) {
      if (inDollars)
        options.budget = {usd * (calls + 0.5), 0};
      else
        options.budget = {0, tokens * calls};
    };
    setCap(5);
    EXPECT_EQ(run(3), 3);
    EXPECT_EQ(run(9), 2);
    EXPECT_EQ(run(9), 0);
    setCap(10);
    EXPECT_EQ(run(9), 5);
    EXPECT_EQ(run(9), 0);
    setCap(4); // Lower than what was spent.
    EXPECT_EQ(run(9), 0);
    EXPECT_EQ(before().calls, 10);
  }
}

TEST_F(SpendingTest, WhatCostNothingIsWrittenSo) {
  auto client = make("openai:m");
  EXPECT_NE(plain(askOne(*client, request("do: 401"))).error, "");
  EXPECT_EQ(before().promptTokens + before().answerTokens, 0);
  EXPECT_EQ(plain(askOne(*client, request("do: ok"))).error, "");
  EXPECT_EQ(before().promptTokens, 10);
  EXPECT_EQ(before().answerTokens, 5);
  EXPECT_DOUBLE_EQ(before().usd, (10 * 3 + 5 * 15) / 1e6);
  options.url = "http://127.0.0.1:9";
  client = make("openai:m");
  EXPECT_NE(plain(askOne(*client, request("do: ok"))).error, "");
  EXPECT_EQ(before().answerTokens, 5);
}

TEST_F(SpendingTest, OnlyTasksThatAreCountedCount) {
  options.budget.tokens = 2000;
  auto ask = [&](const std::string &taskKey,
                 const std::vector<std::string> &counted) {
    auto client = make("openai:m");
    EXPECT_FALSE(bool(client->countTasks(counted)));
    return plain(askOne(*client, request("do: nousage", 1, taskKey))).error;
  };
  EXPECT_EQ(ask(key, {}), "");
  EXPECT_NE(ask(key, {}), "");
  EXPECT_EQ(ask(otherKey, {}), "");
  forget();
  EXPECT_EQ(ask(key, {}), "");
  EXPECT_TRUE(contains(ask(otherKey, {otherKey, key}), "budget: "));
  EXPECT_EQ(before({key, otherKey}).calls, 1);
  EXPECT_TRUE(contains(ask("../" + std::string(61, 'a'), {}), "task key"));
}

TEST_F(SpendingTest, WhatHadNoPriceCountsAtTodays) {
  ChatOptions priced = options;
  options.prices.clear();
  EXPECT_EQ(plain(askOne(*make("openai:m"), request("do: ok"))).error, "");
  EXPECT_EQ(before().usd, 0);
  options = priced;
  EXPECT_DOUBLE_EQ(before().usd, (10 * 3 + 5 * 15) / 1e6);
}

TEST_F(SpendingTest, ALineWithoutAnEndIsPassedOverAndAnythingElseIsNot) {
  options.retries = 0;
  std::string path = options.spending + "/" + key + "/0123456789abcdef.jsonl";
  const std::string head = "{\"format_version\":1,\"provider\":\"openai:m\"}\n";
  const std::string call =
      "{\"answer_tokens\":7,\"call\":1,\"prompt_tokens\":9,\"usd\":0.25}\n";
  auto write = [&](const std::string &text) {
    ASSERT_FALSE(bool(writeFileAtomically(path, text)));
  };
  write(head + call + "{\"answer_tokens\":9000,\"call\":2,\"pro");
  EXPECT_EQ(before().calls, 1);
  EXPECT_EQ(before().answerTokens, 7);
  EXPECT_EQ(before().usd, 0.25);
  write("{\"format");
  EXPECT_EQ(before().calls, 0);
  write("");
  EXPECT_EQ(before().calls, 0);

  auto expectFault = [&](const std::string &text, const std::string &part) {
    write(text);
    std::string error;
    before({key}, &error);
    EXPECT_TRUE(contains(error, path + part)) << error;
    // Without knowing what was spent nothing is sent.
    Ended ended = plain(askOne(*make("openai:m"), request("do: ok")));
    EXPECT_TRUE(contains(ended.error, path + part)) << ended.error;
    EXPECT_NE(ended.kind, ErrorKind::OverBudget);
  };
  expectFault(head + "\n", ":2: ");
  expectFault(head + call + "[]\n", ":3: expected an object");
  expectFault(call, ":1: format_version: expected 1");
  expectFault("{\"format_version\":2}\n", ":1: format_version: expected 1");
  expectFault(head + "{\"call\":1,\"prompt_tokens\":1}\n",
              ":2: answer_tokens: expected a number");
  expectFault(head + "{\"call\":1,\"answer_tokens\":1,\"prompt_tokens\":-1}\n",
              ":2: prompt_tokens: expected a number");
  expectFault(head + "{\"answer_tokens\":1,\"prompt_tokens\":1}\n",
              ":2: call: expected a number");
  expectFault(head + "{\"call\":1,\"answer_tokens\":1,\"prompt_tokens\":1,"
                     "\"usd\":-1}\n",
              ":2: usd: expected a number");
  expectFault(head + std::string(1000, '[') + "\n", ":2: ");
  EXPECT_EQ(received().size(), 0u);
}

TEST_F(SpendingTest, WhatIsWrittenCanBeRead) {
  const std::string head = spendingHead("openai:m\xff");
  for (double usd : {0.0, -1.0, 2.2e12, double(INFINITY), double(NAN)})
    for (int64_t tokens : {int64_t(-5), int64_t(7), mostTokens, INT64_MAX}) {
      Cost cost{{tokens, tokens}, usd};
      ASSERT_FALSE(bool(writeFileAtomically(
          options.spending + "/" + key + "/0123456789abcdef.jsonl",
          head + spendingLine(1, cost, 1, 1) + spendingLine(1, cost))));
      std::string error;
      ChatSpending known = before({key}, &error);
      EXPECT_EQ(error, "");
      EXPECT_EQ(known.calls, 1);
      if (usd > 0)
        EXPECT_EQ(known.usd, mostUsd) << "never less than it was";
    }
}

TEST_F(SpendingTest, ALockThatIsHeldIsNamed) {
  ASSERT_FALSE(bool(makeFolders(options.spending)));
  int lock =
      ::open((options.spending + "/.lock").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  Ledger other(options.spending, "p", std::chrono::seconds(1));
  auto spent = other.others();
  ASSERT_FALSE(bool(spent));
  std::string error = llvm::toString(spent.takeError());
  EXPECT_TRUE(contains(error, "another process has held '" + options.spending +
                                  "/.lock' for 1 s"))
      << error;
  EXPECT_TRUE(contains(error, "end that process")) << error;
  ::close(lock);
  EXPECT_TRUE(bool(other.others()));
}

TEST_F(SpendingTest, NoLinkIsFollowed) {
  std::string elsewhere = folder.path("elsewhere");
  ASSERT_FALSE(bool(makeFolders(elsewhere)));
  ASSERT_FALSE(bool(makeFolders(options.spending)));
  ASSERT_EQ(
      ::symlink(elsewhere.c_str(), (options.spending + "/" + key).c_str()), 0);
  Ended ended = plain(askOne(*make("openai:m"), request("do: ok")));
  EXPECT_TRUE(contains(ended.error, "cannot open folder")) << ended.error;
  forget();
  ASSERT_EQ(::symlink(elsewhere.c_str(), options.spending.c_str()), 0);
  ended = plain(askOne(*make("openai:m"), request("do: ok")));
  EXPECT_TRUE(contains(ended.error, "cannot open folder")) << ended.error;
  EXPECT_EQ(received().size(), 0u);
}

} // namespace
