// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Commands that answer, fail, hang, overlap, say too much or repeat a key.
//
//===----------------------------------------------------------------------===//

#include "Asking.h"
#include "TempFolder.h"
#include "TestServer.h"

#include "fsr/Support/Files.h"

#include "llvm/Support/FileSystem.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace fsr;

namespace {

class ExecTest : public testing::Test {
protected:
  std::vector<Ended> ask(const std::string &command,
                         const std::vector<std::string> &prompts) {
    auto client = makeChatClient("exec:" + command, options);
    if (!client) {
      ADD_FAILURE() << llvm::toString(client.takeError());
      return std::vector<Ended>(prompts.size());
    }
    EXPECT_EQ((*client)->provider(), "exec");
    return askAll(**client, prompts);
  }

  std::string refusal(const std::string &command) {
    auto client = makeChatClient("exec:" + command, options);
    if (client)
      return "no error";
    llvm::Error error = client.takeError();
    EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
    return llvm::toString(std::move(error));
  }

  ChatOptions options;
  TempFolder folder;
};

TEST_F(ExecTest, TheRequestGoesInAndTheAnswerComesOut) {
  std::string large(1 << 20, 'x');
  std::vector<Ended> ends = ask("cat", {"please\n", "", large});
  EXPECT_EQ(ends[0].text, "please\n");
  EXPECT_EQ(ends[1].text, "");
  EXPECT_EQ(ends[1].error, "");
  EXPECT_EQ(ends[2].text, large);
}

TEST_F(ExecTest, QuotesAreRespectedAndNoShellIsStarted) {
  EXPECT_EQ(ask("echo 'a  b' \"c;d\" $HOME", {"p"})[0].text,
            "a  b c;d $HOME\n");
}

TEST_F(ExecTest, AFailureNamesTheStatusAndTheLastWords) {
  Ended ended = ask("sh -c 'echo half; yes z | head -c 900 >&2; echo the end "
                    ">&2; exit 3'",
                    {"p"})[0];
  EXPECT_EQ(ended.kind, ErrorKind::Unavailable);
  EXPECT_NE(ended.error.find("exec: 'sh': exit status 3; it says '…"),
            std::string::npos)
      << ended.error;
  EXPECT_NE(ended.error.find("the end'"), std::string::npos) << ended.error;
  EXPECT_LT(ended.error.size(), 400u);
  EXPECT_EQ(ask("false", {"p"})[0].error, "exec: 'false': exit status 1");
}

TEST_F(ExecTest, AHangEndsAtTheLimit) {
  options.timeout = std::chrono::milliseconds(200);
  auto start = std::chrono::steady_clock::now();
  Ended ended = ask("sleep 60", {"p"})[0];
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(ended.kind, ErrorKind::TimedOut);
  EXPECT_EQ(ended.error, "exec: 'sleep': stopped after 200 ms");
}

/// Each run waits until it sees as many as are wanted at the same time.
TEST_F(ExecTest, SeveralRunAtATimeAndNotMore) {
  options.inFlight = 3;
  options.timeout = std::chrono::seconds(20);
  std::string command =
      "sh -c 'cd " + folder.path() +
      "; touch run.$$; n=0; while [ $(ls | wc -l) -lt 3 ] && [ ! -e go ]; do "
      "sleep 0.02; done; ls | grep -c run; touch go; sleep 0.1; rm run.$$'";
  std::vector<Ended> ends = ask(command, {"1", "2", "3", "4", "5", "6"});
  int most = 0;
  for (const Ended &ended : ends) {
    EXPECT_EQ(ended.error, "");
    most = std::max(most, std::atoi(ended.text.c_str()));
  }
  EXPECT_EQ(most, 3);
}

TEST_F(ExecTest, ResultsComeAsTheyEndOnTheThreadThatAsked) {
  auto client = makeChatClient("exec:sh -c 'read n; sleep $n; echo $n'", {});
  ASSERT_TRUE(bool(client)) << llvm::toString(client.takeError());
  std::vector<size_t> order;
  std::thread::id here = std::this_thread::get_id();
  (*client)->ask(makeBatch({"1\n", "0\n"}), [&](size_t i, ChatResult result) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_EQ(plain(std::move(result)).error, "");
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<size_t>{1, 0}));
}

TEST_F(ExecTest, AnAnswerHasACap) {
  Ended ended = ask("head -c 4194305 /dev/zero", {"p"})[0];
  EXPECT_EQ(ended.kind, ErrorKind::Corrupt);
  EXPECT_EQ(ended.error, "exec: 'head': an answer of more than 4194304 bytes");
  EXPECT_EQ(ask("head -c 4194304 /dev/zero", {"p"})[0].text.size(), 4194304u);
}

TEST_F(ExecTest, AKeyIsNotRepeated) {
  ScopedVariable key("OPENAI_API_KEY", "sk-very-secret-1234");
  Ended said = ask("sh -c 'echo it is $OPENAI_API_KEY'", {"p"})[0];
  EXPECT_EQ(said.text, "it is ***\n");
  Ended failed =
      ask("sh -c 'echo it is $OPENAI_API_KEY >&2; exit 1'", {"p"})[0];
  EXPECT_EQ(failed.error, "exec: 'sh': exit status 1; it says 'it is ***'");
}

TEST_F(ExecTest, AStopStartsNothingNew) {
  std::atomic<bool> stop{false};
  options.inFlight = 1;
  options.stopped = [&] { return stop.load(); };
  auto client = makeChatClient("exec:cat", options);
  ASSERT_TRUE(bool(client)) << llvm::toString(client.takeError());
  stop = true;
  for (const Ended &ended : askAll(**client, {"1", "2"}))
    EXPECT_EQ(ended.error, "exec: stopped");
}

TEST_F(ExecTest, ABatchThatIsStoppedStartsNoMore) {
  options.inFlight = 2;
  auto client = makeChatClient("exec:cat", options);
  ASSERT_TRUE(bool(client));
  size_t answers = 0, refused = 0;
  std::vector<std::string> prompts(20, "p");
  (*client)->ask(makeBatch(prompts), [&](size_t, ChatResult result) {
    Ended ended = plain(std::move(result));
    (ended.error.empty() ? answers : refused) += 1;
    (*client)->stopAsking();
    // Both that could run may have begun another before they could know.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_EQ(answers + refused, 20u);
  EXPECT_GT(refused, 10u);
  // It was about that batch.
  EXPECT_EQ(askAll(**client, {"q"})[0].text, "q");
}

TEST_F(ExecTest, WhatCannotStartIsAnErrorAtOnce) {
  EXPECT_EQ(refusal("/no/such/program x"), "llm 'exec:/no/such/program x': "
                                           "there is no program "
                                           "'/no/such/program'");
  EXPECT_NE(refusal("cat 'open").find("open '"), std::string::npos);
  options.budget.tokens = 100;
  EXPECT_NE(refusal("cat").find("a budget of tokens cannot be kept"),
            std::string::npos);
  options.budget.tokens = 0;
  options.inFlight = 0;
  EXPECT_NE(refusal("cat").find("at least one request in flight"),
            std::string::npos);
}

} // namespace
