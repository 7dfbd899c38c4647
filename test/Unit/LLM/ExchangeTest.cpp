// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The exchange folder through its life: asked, answered, asked anew with
// another prompt, and back. An answer must never be taken for another prompt's.
//
//===----------------------------------------------------------------------===//

#include "Asking.h"
#include "TempFolder.h"

#include "fsr/LLM/ChatClient.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"

#include "llvm/Support/FileSystem.h"

#include "gtest/gtest.h"

#include <chrono>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsr;

namespace {

std::string takeMessage(llvm::Error error) {
  return llvm::toString(std::move(error));
}

class ExchangeTest : public testing::Test {
protected:
  void SetUp() override {
    auto made = makeChatClient("exchange:" + folder.path());
    ASSERT_TRUE(bool(made)) << takeMessage(made.takeError());
    client = std::move(*made);
  }

  ChatRequest request(std::string prompt) const {
    return {std::string(64, 'a'), "softmax", 1, 2, std::move(prompt)};
  }

  /// The answer's text; "pending"; or "error: …".
  std::string ask(const ChatRequest &request) {
    auto answer = askOne(*client, request);
    if (!answer)
      return "error: " + takeMessage(answer.takeError());
    return *answer ? (*answer)->text : "pending";
  }

  std::string read(llvm::StringRef name) const {
    auto bytes = readFile(folder.path(name));
    if (bytes)
      return *bytes;
    llvm::consumeError(bytes.takeError());
    return "(none)";
  }
  void write(llvm::StringRef name, llvm::StringRef bytes) const {
    ASSERT_FALSE(bool(writeFileAtomically(folder.path(name), bytes)));
  }
  size_t countFiles() const {
    size_t count = 0;
    std::error_code ignored;
    for (std::filesystem::directory_iterator it(folder.path(), ignored), end;
         it != end; ++it)
      ++count;
    return count;
  }

  TempFolder folder;
  std::unique_ptr<ChatClient> client;
  const std::string stem = "softmax-aaaaaaaaaaaa-r1-s2";
};

TEST_F(ExchangeTest, WritesTheRequestAndSaysPending) {
  EXPECT_EQ(ask(request("please\n")), "pending");
  EXPECT_EQ(read(stem + ".request.md"), "please\n");
  EXPECT_EQ(countFiles(), 1u);
  EXPECT_EQ(client->provider(), "exchange");
}

TEST_F(ExchangeTest, LeavesAnUnchangedRequestAlone) {
  ASSERT_EQ(ask(request("please\n")), "pending");
  auto old =
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(10);
  std::filesystem::last_write_time(folder.path(stem + ".request.md"), old);
  EXPECT_EQ(ask(request("please\n")), "pending");
  EXPECT_EQ(std::filesystem::last_write_time(folder.path(stem + ".request.md")),
            old);
}

TEST_F(ExchangeTest, TakesTheAnswer) {
  ASSERT_EQ(ask(request("please\n")), "pending");
  write(stem + ".answer.md", "here it is\n");
  EXPECT_EQ(ask(request("please\n")), "here it is\n");
  EXPECT_EQ(ask(request("please\n")), "here it is\n");
}

TEST_F(ExchangeTest, HandsOnAnAnswerThatIsNoGood) {
  ASSERT_EQ(ask(request("please\n")), "pending");
  write(stem + ".answer.md", "");
  EXPECT_EQ(ask(request("please\n")), "");
  write(stem + ".answer.md", "\xff\xfe");
  EXPECT_EQ(ask(request("please\n")), "\xff\xfe");
}

TEST_F(ExchangeTest, ReadsOneByteOverTheCapOfALongAnswer) {
  ASSERT_EQ(ask(request("please\n")), "pending");
  write(stem + ".answer.md", std::string((1 << 20) + 1000, 'x'));
  EXPECT_EQ(ask(request("please\n")).size(), size_t(1 << 20) + 1);
}

TEST_F(ExchangeTest, AnAnswerIsNotTakenForAnotherPrompt) {
  ASSERT_EQ(ask(request("first")), "pending");
  write(stem + ".answer.md", "answer to the first");
  EXPECT_EQ(ask(request("second")), "pending");
  EXPECT_EQ(read(stem + ".request.md"), "second");
  std::string aside = stem + "." + shortHash(sha256("first")).str();
  EXPECT_EQ(read(aside + ".request.md"), "first");
  EXPECT_EQ(read(aside + ".answer.md"), "answer to the first");
}

TEST_F(ExchangeTest, AnOldPromptFindsItsAnswerAgain) {
  ASSERT_EQ(ask(request("first")), "pending");
  write(stem + ".answer.md", "answer to the first");
  ASSERT_EQ(ask(request("second")), "pending");
  write(stem + ".answer.md", "answer to the second");
  EXPECT_EQ(ask(request("first")), "answer to the first");
  EXPECT_EQ(ask(request("second")), "answer to the second");
  EXPECT_EQ(ask(request("first")), "answer to the first");
  EXPECT_EQ(countFiles(), 4u);
}

TEST_F(ExchangeTest, AKillBeforeTheNewRequestIsWrittenLosesNothing) {
  ASSERT_EQ(ask(request("first")), "pending");
  // The answer was set aside; the new request was not written any more.
  std::string aside = stem + "." + shortHash(sha256("first")).str();
  write(aside + ".request.md", "first");
  write(aside + ".answer.md", "answer to the first");
  EXPECT_EQ(ask(request("first")), "answer to the first");
}

TEST_F(ExchangeTest, AnAnswerWithoutItsRequestIsNotTaken) {
  write(stem + ".answer.md", "whose?");
  EXPECT_EQ(ask(request("please")), "pending");
  EXPECT_EQ(read(stem + ".answer.md"), "(none)");
}

TEST_F(ExchangeTest, RoundsSlotsAndTasksDoNotMix) {
  ChatRequest other = request("p");
  ASSERT_EQ(ask(request("p")), "pending");
  write(stem + ".answer.md", "mine");
  other.slot = 3;
  EXPECT_EQ(ask(other), "pending");
  other = request("p");
  other.round = 2;
  EXPECT_EQ(ask(other), "pending");
  other = request("p");
  other.taskKey = std::string(64, 'b');
  EXPECT_EQ(ask(other), "pending");
  EXPECT_EQ(ask(request("p")), "mine");
}

TEST_F(ExchangeTest, ABatchIsWrittenBeforeAnyAnswerIsTaken) {
  std::vector<ChatRequest> batch(3, request("p"));
  for (size_t i = 0; i < batch.size(); ++i)
    batch[i].slot = int64_t(i) + 1;
  std::vector<size_t> order, files;
  client->ask(batch, [&](size_t i, ChatResult result) {
    order.push_back(i);
    files.push_back(countFiles());
    ASSERT_TRUE(bool(result)) << takeMessage(result.takeError());
    EXPECT_FALSE(result->has_value());
  });
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(files, (std::vector<size_t>{3, 3, 3}));
}

TEST_F(ExchangeTest, ARequestThatCannotBeWrittenHoldsUpNoOther) {
  std::vector<ChatRequest> batch(2, request("p"));
  batch[0].slot = 1;
  batch[0].prompt = std::string((16 << 20) + 1, 'x');
  std::vector<std::string> ends;
  client->ask(batch, [&](size_t, ChatResult result) {
    ends.push_back(result ? "pending" : takeMessage(result.takeError()));
  });
  EXPECT_EQ(ends, (std::vector<std::string>{
                      "a request of 16777217 bytes; at most 16777216 are "
                      "written",
                      "pending"}));
}

TEST_F(ExchangeTest, AHostileNameStaysInTheFolder) {
  ChatRequest hostile = request("p");
  hostile.taskName = "../../" + std::string(500, 'x') + "/\n";
  EXPECT_EQ(ask(hostile), "pending");
  EXPECT_EQ(countFiles(), 1u);
}

TEST_F(ExchangeTest, AFolderInPlaceOfTheAnswerIsAnError) {
  ASSERT_EQ(ask(request("p")), "pending");
  ASSERT_FALSE(bool(makeFolders(folder.path(stem + ".answer.md"))));
  std::string message = ask(request("p"));
  EXPECT_NE(message.find(".answer.md: not a regular file"), std::string::npos)
      << message;
}

TEST_F(ExchangeTest, NoLinkAndNoPipeIsFollowed) {
  ASSERT_EQ(ask(request("p")), "pending");
  write("elsewhere", "not an answer");
  std::string answer = folder.path(stem + ".answer.md");
  auto expectError = [&](llvm::StringRef part) {
    std::string message = ask(request("p"));
    EXPECT_TRUE(llvm::StringRef(message).starts_with("error: ")) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
    ASSERT_EQ(::unlink(answer.c_str()), 0);
  };
  ASSERT_EQ(::symlink("elsewhere", answer.c_str()), 0);
  expectError(".answer.md: a symbolic link");
  ASSERT_EQ(::symlink("nowhere", answer.c_str()), 0);
  expectError(".answer.md: a symbolic link");
  ASSERT_EQ(::mkfifo(answer.c_str(), 0600), 0);
  expectError(".answer.md: not a regular file");
  EXPECT_EQ(ask(request("p")), "pending");
}

TEST(ChatClientTest, UnknownProviderListsTheKnown) {
  auto client = makeChatClient("oracle:delphi");
  ASSERT_FALSE(bool(client));
  llvm::Error error = client.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
  EXPECT_EQ(takeMessage(std::move(error)),
            "llm 'oracle:delphi': unknown provider 'oracle'; known are "
            "exchange:FOLDER, replay:FOLDER, openai:MODEL, anthropic:MODEL, "
            "exec:COMMAND");
}

TEST(ChatClientTest, MissingArgument) {
  for (const char *spec : {"exchange", "exchange:"}) {
    auto client = makeChatClient(spec);
    ASSERT_FALSE(bool(client));
    EXPECT_EQ(takeMessage(client.takeError()),
              std::string("llm '") + spec + "': expected 'exchange:FOLDER'");
  }
}

TEST(ChatClientTest, AFileIsNoExchangeFolder) {
  TempFolder folder;
  ASSERT_FALSE(bool(writeFileAtomically(folder.path("file"), "")));
  auto client = makeChatClient("exchange:" + folder.path("file"));
  ASSERT_FALSE(bool(client));
  std::string message = takeMessage(client.takeError());
  EXPECT_NE(message.find("file: not a folder"), std::string::npos) << message;
}

TEST(ChatClientTest, AMissingExchangeFolderIsMade) {
  TempFolder folder;
  auto client = makeChatClient("exchange:" + folder.path("a/b"));
  ASSERT_TRUE(bool(client)) << takeMessage(client.takeError());
  EXPECT_TRUE(llvm::sys::fs::is_directory(folder.path("a/b")));
}

} // namespace
