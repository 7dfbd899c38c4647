// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Recorded talks, given out again: found, missing, of a changed prompt,
// damaged.
//
//===----------------------------------------------------------------------===//

#include "Asking.h"
#include "TempFolder.h"

#include "fsr/Core/TalkFiles.h"
#include "fsr/LLM/ChatClient.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

const std::string key(64, 'c');

class ReplayTest : public testing::Test {
protected:
  void SetUp() override {
    talk.taskKey = key;
    talk.taskName = "softmax";
    talk.round = 1;
    talk.slot = 1;
    talk.provider = "exchange";
    talk.request = "please";
    talk.answer = "here";
    talk.promptTokens = 11;
    talk.answerTokens = 7;
    record(talk);
  }

  void record(const Talk &talk) {
    for (const auto &[name, bytes] : filesOf(talk))
      write(name, bytes);
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

  Talk talk;
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
  EXPECT_EQ((*answer)->request, "");
}

TEST_F(ReplayTest, AChangedPromptIsARemark) {
  auto answer = ask(request("pretty please"));
  ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
  ASSERT_TRUE(answer->has_value());
  EXPECT_EQ((*answer)->text, "here");
  EXPECT_EQ((*answer)->remark, "the prompt for kernel 'softmax', round 1, slot "
                               "1 has changed since it was recorded");
  EXPECT_EQ((*answer)->request, "please");
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

TEST_F(ReplayTest, AnUnfinishedTalkIsPassedOver) {
  for (const char *name : {"answer.md", "request.md", "talk.json"}) {
    llvm::sys::fs::remove(folder.path("talks/" + key + "/r1-s1/" + name));
    expectError(ask(request("please")), ErrorKind::Unavailable,
                "r1-s1' is passed over: it is unfinished: " +
                    std::string(name) + " is missing");
    record(talk);
  }
}

TEST_F(ReplayTest, AnotherVersionIsPassedOver) {
  write("talk.json", "{\"format_version\": 3}");
  expectError(ask(request("please")), ErrorKind::Unavailable,
              "is passed over: it has format version 3");
}

TEST_F(ReplayTest, WhatWasChangedIsAnErrorThatNamesIt) {
  for (auto [name, bytes] : filesOf(talk)) {
    bytes[bytes.size() / 2] ^= 1;
    write(name, bytes);
    expectError(ask(request("please")), ErrorKind::Corrupt, name);
    record(talk);
  }
  EXPECT_TRUE(bool(ask(request("please"))));
}

TEST_F(ReplayTest, DamagedHeads) {
  write("talk.json", std::string(100000, '['));
  expectError(ask(request("please")), ErrorKind::Corrupt, "talk.json");
  write("talk.json", "{}");
  expectError(ask(request("please")), ErrorKind::Corrupt, "talk.json");
  Talk other = talk;
  other.taskKey = std::string(64, 'd');
  record(other);
  expectError(ask(request("please")), ErrorKind::Corrupt, "task dddd");
  other = talk;
  other.slot = 2;
  record(other);
  expectError(ask(request("please")), ErrorKind::Corrupt, "slot 2");
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
