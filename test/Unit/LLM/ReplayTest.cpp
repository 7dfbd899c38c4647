// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Recorded talks, given out again: found, missing, of a changed prompt,
// damaged.
//
//===----------------------------------------------------------------------===//

#include "Asking.h"
#include "TempFolder.h"

#include "fsr/Core/Trial.h"
#include "fsr/LLM/ChatClient.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Json.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

const std::string key(64, 'c');

class ReplayTest : public testing::Test {
protected:
  void SetUp() override {
    Talk talk;
    talk.taskKey = key;
    talk.taskName = "softmax";
    talk.round = 1;
    talk.slot = 1;
    talk.provider = "exchange";
    talk.promptTokens = 11;
    talk.answerTokens = 7;
    write("talk.json", printJson(toJSON(talk)));
    write("request.md", "please");
    write("answer.md", "here");
  }

  void write(const std::string &name, llvm::StringRef bytes) {
    ASSERT_FALSE(bool(writeFileAtomically(
        folder.path("talks/" + key + "/r1-s1/" + name), bytes)));
  }

  llvm::Expected<std::optional<ChatAnswer>> ask(ChatRequest request,
                                                bool strict = false) {
    ChatOptions options;
    options.replayStrict = strict;
    auto client = makeChatClient("replay:" + folder.path(), options);
    if (!client)
      return client.takeError();
    EXPECT_EQ((*client)->provider(), "replay");
    return askOne(**client, request);
  }

  static ChatRequest request(std::string prompt) {
    return {key, "softmax", 1, 1, std::move(prompt)};
  }

  void expectError(llvm::Expected<std::optional<ChatAnswer>> answer,
                   ErrorKind kind, const std::string &part) {
    ASSERT_FALSE(bool(answer));
    llvm::Error error = answer.takeError();
    EXPECT_EQ(kindOf(error), kind);
    std::string message = llvm::toString(std::move(error));
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  TempFolder folder;
};

TEST_F(ReplayTest, GivesWhatWasRecorded) {
  auto answer = ask(request("please"));
  ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->text, "here");
  EXPECT_EQ((*answer)->promptTokens, 11);
  EXPECT_EQ((*answer)->answerTokens, 7);
  EXPECT_EQ((*answer)->remark, "");
}

TEST_F(ReplayTest, AChangedPromptIsARemark) {
  auto answer = ask(request("pretty please"));
  ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->text, "here");
  EXPECT_EQ((*answer)->remark, "the prompt for kernel 'softmax', round 1, slot "
                               "1 has changed since it was recorded");
}

TEST_F(ReplayTest, AChangedPromptIsAnErrorWhereAskedFor) {
  expectError(ask(request("pretty please"), /*strict=*/true),
              ErrorKind::BadInput, "has changed since it was recorded");
  EXPECT_TRUE(bool(ask(request("please"), /*strict=*/true)));
}

TEST_F(ReplayTest, AMissingTalkIsNamed) {
  ChatRequest missing = request("please");
  missing.slot = 4;
  expectError(ask(missing), ErrorKind::Unavailable,
              "no talk is recorded for kernel 'softmax', round 1, slot 4");
  expectError(ask(missing), ErrorKind::Unavailable, "r1-s4");
}

TEST_F(ReplayTest, AMissingAnswerIsNamed) {
  llvm::sys::fs::remove(folder.path("talks/" + key + "/r1-s1/answer.md"));
  expectError(ask(request("please")), ErrorKind::Unavailable, "answer.md");
}

TEST_F(ReplayTest, DamagedHeads) {
  write("talk.json", std::string(100000, '['));
  expectError(ask(request("please")), ErrorKind::Corrupt, "talk.json");
  write("talk.json", "{}");
  expectError(ask(request("please")), ErrorKind::Corrupt, "talk.json");
  Talk other;
  other.taskKey = std::string(64, 'd');
  other.taskName = "softmax";
  other.round = other.slot = 1;
  other.provider = "exchange";
  write("talk.json", printJson(toJSON(other)));
  expectError(ask(request("please")), ErrorKind::Corrupt, "task 'dddd");
}

TEST_F(ReplayTest, AKeyIsNoPath) {
  ChatRequest hostile = request("please");
  hostile.taskKey = "../" + key;
  expectError(ask(hostile), ErrorKind::BadInput, "expected hex digits");
}

TEST(ReplayClientTest, AMissingFolderIsAnError) {
  auto client = makeChatClient("replay:/no/such/folder");
  ASSERT_FALSE(bool(client));
  llvm::Error error = client.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
  EXPECT_EQ(llvm::toString(std::move(error)),
            "llm 'replay:/no/such/folder': /no/such/folder: no such folder");
}

} // namespace
