// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Trials, talks and tasks: the first whole one stays, a damaged trial counts as
// none, a changed answer is an error and nothing paid for is overwritten.
//
//===----------------------------------------------------------------------===//

#include "Samples.h"

#include "fsr/Support/Json.h"

using namespace fsr;

class HistoryTest : public StoreTest {
protected:
  std::string trialPath(const Trial &trial) {
    return folder / ("trials/" + taskKey + "/" + trial.key() + ".json");
  }
  std::string talkPath() { return folder / ("talks/" + taskKey + "/r1-s2"); }

  std::optional<Trial> findTrial(const std::string &key) {
    llvm::Expected<std::optional<Trial>> found = store->findTrial(taskKey, key);
    if (!found) {
      ADD_FAILURE() << llvm::toString(found.takeError());
      return std::nullopt;
    }
    return *found;
  }
  std::optional<Talk> findTalk() {
    llvm::Expected<std::optional<Talk>> found = store->findTalk(taskKey, 1, 2);
    if (!found) {
      ADD_FAILURE() << llvm::toString(found.takeError());
      return std::nullopt;
    }
    return *found;
  }
};

TEST_F(HistoryTest, TrialRoundTrip) {
  Trial trial = sampleTrial();
  EXPECT_FALSE(findTrial(trial.key()));
  expectSuccess(store->addTrial(trial));
  std::optional<Trial> found = findTrial(trial.key());
  ASSERT_TRUE(found);
  EXPECT_EQ(printJson(toJSON(*found)), printJson(toJSON(trial)));
  trial.parameters["TILE"] = 32;
  EXPECT_FALSE(findTrial(trial.key()));
}

TEST_F(HistoryTest, FirstTrialStays) {
  Trial trial = sampleTrial();
  expectSuccess(store->addTrial(trial));
  std::string before = contentOf(trialPath(trial));
  trial.message = "another run";
  trial.verdict = Verdict::NotFaster;
  expectSuccess(store->addTrial(trial));
  EXPECT_EQ(contentOf(trialPath(trial)), before);
}

TEST_F(HistoryTest, DamagedTrialIsNoneAndIsReplaced) {
  Trial trial = sampleTrial();
  std::string key = trial.key();
  expectSuccess(store->addTrial(trial));
  std::string whole = contentOf(trialPath(trial));
  Trial other = sampleTrial();
  other.candidateHash = sha256("another candidate");
  expectSuccess(store->addTrial(other));
  for (std::string damaged :
       {std::string(), whole.substr(0, whole.size() / 2), std::string("[]"),
        std::string("{\"format_version\": 1}"), std::string(1 << 20, '['),
        contentOf(trialPath(other))}) {
    overwrite(trialPath(trial), damaged);
    EXPECT_FALSE(findTrial(key));
    expectSuccess(store->addTrial(trial));
    EXPECT_EQ(contentOf(trialPath(trial)), whole);
    EXPECT_TRUE(findTrial(key));
  }
}

TEST_F(HistoryTest, TrialOfAnotherVersionIsNoneAndStays) {
  Trial trial = sampleTrial();
  overwrite(trialPath(trial), "{\"format_version\": 2}");
  EXPECT_FALSE(findTrial(trial.key()));
  expectSuccess(store->addTrial(trial));
  EXPECT_EQ(contentOf(trialPath(trial)), "{\"format_version\": 2}");
}

TEST_F(HistoryTest, TalkRoundTrip) {
  Talk talk = sampleTalk();
  talk.answer += std::string("\0\xff\r\n", 4);
  EXPECT_FALSE(findTalk());
  expectSuccess(store->addTalk(talk));
  std::optional<Talk> found = findTalk();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->request, talk.request);
  EXPECT_EQ(found->answer, talk.answer);
  EXPECT_EQ(found->promptTokens, 7);
  EXPECT_EQ(printJson(toJSON(*found)), printJson(toJSON(talk)));
  EXPECT_EQ(contentOf(talkPath() + "/answer.md"), talk.answer);
}

TEST_F(HistoryTest, FirstTalkStays) {
  expectSuccess(store->addTalk(sampleTalk()));
  Talk other = sampleTalk();
  other.answer = "something else";
  expectSuccess(store->addTalk(other));
  EXPECT_EQ(findTalk()->answer, sampleTalk().answer);
}

TEST_F(HistoryTest, ChangedTalkIsAnErrorThatNamesTheFile) {
  expectSuccess(store->addTalk(sampleTalk()));
  for (const char *name : {"request.md", "answer.md"}) {
    std::string file = talkPath() + "/" + name;
    std::string whole = contentOf(file);
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string bytes = whole;
      bytes[i] ^= 1;
      overwrite(file, bytes);
      std::string message = expectError(
          store->findTalk(taskKey, 1, 2).takeError(), ErrorKind::Corrupt);
      EXPECT_NE(message.find("'" + file + "' was changed"), std::string::npos)
          << message;
    }
    overwrite(file, whole);
    EXPECT_TRUE(findTalk());
  }
}

TEST_F(HistoryTest, UnfinishedTalkIsNone) {
  for (const char *name : {"talk.json", "request.md", "answer.md"}) {
    expectSuccess(store->addTalk(sampleTalk()));
    std::filesystem::remove(talkPath() + "/" + name);
    EXPECT_FALSE(findTalk());
    std::filesystem::remove_all(talkPath());
  }
}

TEST_F(HistoryTest, TalkOfAnotherSlotIsNone) {
  expectSuccess(store->addTalk(sampleTalk()));
  std::filesystem::rename(talkPath(), folder / ("talks/" + taskKey + "/r1-s3"));
  llvm::Expected<std::optional<Talk>> found = store->findTalk(taskKey, 1, 3);
  ASSERT_TRUE(!!found);
  EXPECT_FALSE(*found);
}

TEST_F(HistoryTest, TalkOfAnotherRequestIsKeptAside) {
  expectSuccess(store->addTalk(sampleTalk()));
  Talk other = sampleTalk();
  other.request = "another question";
  other.answer = "another answer";
  expectSuccess(store->addTalk(other));
  EXPECT_EQ(findTalk()->answer, "another answer");
  EXPECT_EQ(contentOf(talkPath() + ".old-1/answer.md"), sampleTalk().answer);
}

TEST_F(HistoryTest, DamagedTalkIsKeptAside) {
  expectSuccess(store->addTalk(sampleTalk()));
  overwrite(talkPath() + "/answer.md", "edited by hand");
  Talk other = sampleTalk();
  other.answer = "asked again";
  expectSuccess(store->addTalk(other));
  EXPECT_EQ(findTalk()->answer, "asked again");
  bool kept = false;
  for (const std::string &name : namesIn(folder / ("talks/" + taskKey)))
    if (llvm::StringRef(name).starts_with("r1-s2.damaged-"))
      kept = contentOf(folder / ("talks/" + taskKey + "/" + name +
                                 "/answer.md")) == "edited by hand";
  EXPECT_TRUE(kept);
}

// The same damage and the same answer once more.
TEST_F(HistoryTest, DamagedTwice) {
  for (int i = 0; i < 3; ++i) {
    expectSuccess(store->addTalk(sampleTalk()));
    EXPECT_TRUE(findTalk());
    overwrite(talkPath() + "/answer.md", "edited by hand");
  }
}

TEST_F(HistoryTest, TalkOfAnotherVersionIsNoneAndStays) {
  overwrite(talkPath() + "/talk.json", "{\"format_version\": 2}");
  EXPECT_FALSE(findTalk());
  EXPECT_NE(expectError(store->addTalk(sampleTalk()), ErrorKind::Unsupported)
                .find(talkPath()),
            std::string::npos);
  EXPECT_EQ(contentOf(talkPath() + "/talk.json"), "{\"format_version\": 2}");
}

TEST_F(HistoryTest, NamesThatAreNoneAreRefused) {
  for (std::string bad : {std::string(), std::string("../x"),
                          std::string(64, 'G'), taskKey + "0"}) {
    expectError(store->findTrial(bad, taskKey).takeError(),
                ErrorKind::BadInput);
    expectError(store->findTrial(taskKey, bad).takeError(),
                ErrorKind::BadInput);
    expectError(store->findTalk(bad, 0, 0).takeError(), ErrorKind::BadInput);
    Trial trial = sampleTrial();
    trial.taskKey = bad;
    expectError(store->addTrial(trial), ErrorKind::BadInput);
    Talk talk = sampleTalk();
    talk.taskKey = bad;
    expectError(store->addTalk(talk), ErrorKind::BadInput);
  }
  expectError(store->findTalk(taskKey, -1, 0).takeError(), ErrorKind::BadInput);
  expectError(store->findTalk(taskKey, 0, 1000000000).takeError(),
              ErrorKind::BadInput);
  EXPECT_EQ(namesIn(folder.path).size(), 1u);
}

TEST_F(HistoryTest, NothingIsWrittenThroughALink) {
  TemporaryFolder outside;
  for (const char *name : {"trials", "talks", "tasks"})
    std::filesystem::create_directory_symlink(outside.path, folder / name);
  EXPECT_NE(expectError(store->addTrial(sampleTrial()), ErrorKind::BadInput)
                .find("symbolic link"),
            std::string::npos);
  expectError(store->addTalk(sampleTalk()), ErrorKind::BadInput);
  EXPECT_TRUE(namesIn(outside.path).empty());
}

TEST_F(HistoryTest, Task) {
  KernelTask task;
  task.name = "copy";
  task.key = taskKey;
  task.target = "sm_90";
  task.arguments.resize(1);
  task.arguments[0].name = "x";
  task.arguments[0].isBuffer = true;
  task.arguments[0].sizes = {8};
  task.arguments[0].strides = {1};
  task.arguments[0].alignment = 4;
  task.reference.entry = "copy";
  task.workload.resize(1);
  task.workload[0].fills.resize(1);
  task.workload[0].fills[0].parameters = {0, 1};
  expectSuccess(store->addTask(task));
  std::string path = folder / ("tasks/" + taskKey + ".json");
  EXPECT_EQ(contentOf(path), printJson(toJSON(task)));
  task.kernelMlir = "gpu.func";
  expectSuccess(store->addTask(task));
  EXPECT_EQ(contentOf(path), printJson(toJSON(task)));
  task.key = "../x";
  expectError(store->addTask(task), ErrorKind::BadInput);
}
