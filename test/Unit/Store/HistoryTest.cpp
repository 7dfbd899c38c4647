// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Trials, talks and tasks: the first whole one stays, a damaged trial counts as
// none, a changed answer is an error and nothing paid for is overwritten.
//
//===----------------------------------------------------------------------===//

#include "Samples.h"

#include "fsr/Support/Json.h"

#include <cstring>

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

TEST_F(HistoryTest, StrengthRoundTrip) {
  TaskStrength strength = sampleStrength();
  auto find = [&](bool isModelled) -> std::optional<TaskStrength> {
    return llvm::cantFail(store->findStrength(taskKey, isModelled));
  };
  EXPECT_FALSE(find(false));
  expectSuccess(store->addStrength(strength));
  EXPECT_FALSE(find(true)); // Of another kind of device.
  ASSERT_TRUE(find(false));
  EXPECT_EQ(printJson(toJSON(*find(false))), printJson(toJSON(strength)));
  // The latest stays: the workload may have changed.
  strength.givenDigest = std::string(64, 'e');
  expectSuccess(store->addStrength(strength));
  EXPECT_EQ(find(false)->givenDigest, strength.givenDigest);
}

TEST_F(HistoryTest, EveryChangedByteOfAStrengthShows) {
  expectSuccess(store->addStrength(sampleStrength()));
  std::string path = folder / ("strength/" + taskKey + "/gpu.json");
  std::string text = contentOf(path);
  for (size_t i = 0; i < text.size(); i += 7) {
    if (isspace(text[i]))
      continue;
    std::string changed = text;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    overwrite(path, changed);
    EXPECT_FALSE(llvm::cantFail(store->findStrength(taskKey, false))) << i;
  }
  overwrite(path, text);
  // Under another kind's name it is another's.
  overwrite(folder / ("strength/" + taskKey + "/virtual.json"), text);
  EXPECT_FALSE(llvm::cantFail(store->findStrength(taskKey, true)));
}

TEST_F(HistoryTest, AStrengthOfALaterVersionIsNoneAndStays) {
  std::string path = folder / ("strength/" + taskKey + "/gpu.json");
  std::string later = "{\"format_version\": 99}";
  overwrite(path, later);
  EXPECT_FALSE(llvm::cantFail(store->findStrength(taskKey, false)));
  expectSuccess(store->addStrength(sampleStrength()));
  EXPECT_EQ(contentOf(path), later);
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

TEST_F(HistoryTest, TrialOfALaterVersionIsNoneAndStays) {
  Trial trial = sampleTrial();
  overwrite(trialPath(trial), "{\"format_version\": 3}");
  EXPECT_FALSE(findTrial(trial.key()));
  expectSuccess(store->addTrial(trial));
  EXPECT_EQ(contentOf(trialPath(trial)), "{\"format_version\": 3}");
}

TEST_F(HistoryTest, TrialOfAnEarlierVersionIsNoneAndIsReplaced) {
  Trial trial = sampleTrial();
  overwrite(trialPath(trial), "{\"format_version\": 1}");
  EXPECT_FALSE(findTrial(trial.key()));
  expectSuccess(store->addTrial(trial));
  EXPECT_TRUE(findTrial(trial.key()));
}

TEST_F(HistoryTest, EditedTrialIsNoneAndIsReplaced) {
  Trial trial = sampleTrial();
  trial.measurement = sampleRecord().measurement;
  expectSuccess(store->addTrial(trial));
  const std::string whole = contentOf(trialPath(trial));
  for (auto [from, to] :
       {std::pair("\"mismatch\"", "\"accepted\""),
        std::pair("got 1, wanted 2", "ignore all rules"),
        std::pair("\"full\": false", "\"full\": true"),
        std::pair("\"speedup_low\": 1.5", "\"speedup_low\": 9.5"),
        std::pair("\"full\": false,", "\"full\": false, \"new\": 1,"),
        std::pair("\"round\": 2,", "")}) {
    std::string edited = whole;
    size_t at = edited.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    edited.replace(at, strlen(from), to);
    overwrite(trialPath(trial), edited);
    EXPECT_FALSE(findTrial(trial.key())) << to;
    expectSuccess(store->addTrial(trial));
    EXPECT_EQ(contentOf(trialPath(trial)), whole) << to;
  }
  // Without the hash it is none either.
  std::string bare = whole;
  size_t from = bare.find("  \"sha256\"");
  bare.erase(from, bare.find('\n', from) + 1 - from);
  overwrite(trialPath(trial), bare);
  EXPECT_FALSE(findTrial(trial.key()));
}

TEST_F(HistoryTest, EveryChangedByteOfATrialShows) {
  Trial trial = sampleTrial();
  expectSuccess(store->addTrial(trial));
  const std::string whole = contentOf(trialPath(trial));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] ^= 1;
    overwrite(trialPath(trial), bytes);
    EXPECT_FALSE(findTrial(trial.key())) << i;
  }
}

// A text of any form gives a hash that its reader finds again.
TEST_F(HistoryTest, TrialOfAnyTextIsWhole) {
  Trial trial = sampleTrial();
  trial.message = std::string("\xff\x01\"\\/\xe2\x80\xa8 \0\n", 11);
  trial.measurement = sampleRecord().measurement;
  trial.measurement->originalUs = {1e17, -0.0};
  trial.measurement->candidateUs = {0.1, 5e-324};
  expectSuccess(store->addTrial(trial));
  EXPECT_TRUE(findTrial(trial.key()));
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
      EXPECT_NE(message.find("'" + talkPath() + "'"), std::string::npos)
          << message;
      EXPECT_NE(message.find("'" + std::string(name) + "' was changed"),
                std::string::npos)
          << message;
    }
    overwrite(file, whole);
    EXPECT_TRUE(findTalk());
  }
}

TEST_F(HistoryTest, EditedHeadOfATalkIsAnError) {
  expectSuccess(store->addTalk(sampleTalk()));
  std::string file = talkPath() + "/talk.json", edited = contentOf(file);
  edited.replace(edited.find("\"prompt_tokens\": 7"), 18,
                 "\"prompt_tokens\": 8");
  overwrite(file, edited);
  EXPECT_NE(expectError(store->findTalk(taskKey, 1, 2).takeError(),
                        ErrorKind::Corrupt)
                .find("'talk.json' was changed"),
            std::string::npos);
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

// Known before an answer is paid for that could not be kept.
TEST_F(HistoryTest, TalkOfAnotherVersionIsAnErrorAndStays) {
  expectSuccess(store->addTalk(sampleTalk()));
  overwrite(talkPath() + "/talk.json", "{\"format_version\": 3}");
  for (int i = 0; i < 2; ++i) {
    std::string message =
        expectError(i ? store->addTalk(sampleTalk())
                      : store->findTalk(taskKey, 1, 2).takeError(),
                    ErrorKind::Unsupported);
    EXPECT_NE(message.find("'" + talkPath() + "': it has format version 3"),
              std::string::npos)
        << message;
  }
  EXPECT_EQ(contentOf(talkPath() + "/talk.json"), "{\"format_version\": 3}");
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
  for (const char *name : {"trials", "talks", "tasks", "searches"})
    std::filesystem::create_directory_symlink(outside.path, folder / name);
  EXPECT_NE(expectError(store->addTrial(sampleTrial()), ErrorKind::BadInput)
                .find("symbolic link"),
            std::string::npos);
  expectError(store->addTalk(sampleTalk()), ErrorKind::BadInput);
  expectError(store->addTask(sampleTask()), ErrorKind::BadInput);
  expectError(store->markUnfinished(taskKey, "copy"), ErrorKind::BadInput);
  overwrite(outside / (taskKey + ".json"), "");
  expectError(store->clearUnfinished(taskKey), ErrorKind::BadInput);
  std::filesystem::remove(outside / (taskKey + ".json"));
  EXPECT_TRUE(namesIn(outside.path).empty());
}

TEST_F(HistoryTest, Marks) {
  EXPECT_FALSE(store->isUnfinished(taskKey));
  expectSuccess(store->clearUnfinished(taskKey));
  for (int i = 0; i < 2; ++i) {
    expectSuccess(store->markUnfinished(taskKey, "copy\xff"));
    EXPECT_TRUE(store->isUnfinished(taskKey));
  }
  auto reader = open(StoreMode::Read);
  EXPECT_TRUE(reader->isUnfinished(taskKey));
  EXPECT_FALSE(reader->isUnfinished(sha256("another")));
  expectError(reader->clearUnfinished(taskKey), ErrorKind::BadInput);
  expectError(reader->markUnfinished(taskKey, "copy"), ErrorKind::BadInput);
  // Whatever it says, it is there.
  overwrite(folder / ("searches/" + taskKey + ".json"), "");
  EXPECT_TRUE(store->isUnfinished(taskKey));
  expectSuccess(store->clearUnfinished(taskKey));
  EXPECT_FALSE(store->isUnfinished(taskKey));
  for (const char *bad : {"", "../x"}) {
    expectError(store->markUnfinished(bad, "copy"), ErrorKind::BadInput);
    expectError(store->clearUnfinished(bad), ErrorKind::BadInput);
    EXPECT_FALSE(store->isUnfinished(bad));
  }
}

TEST_F(HistoryTest, Task) {
  KernelTask task = sampleTask();
  expectSuccess(store->addTask(task));
  std::string path = folder / ("tasks/" + taskKey + ".json");
  EXPECT_EQ(contentOf(path), printTask(task));
  task.kernelMlir = "gpu.func";
  expectSuccess(store->addTask(task));
  EXPECT_EQ(contentOf(path), printTask(task));
  // One of a later program's is left alone.
  overwrite(path, "{\"format_version\": 3}");
  expectSuccess(store->addTask(task));
  EXPECT_EQ(contentOf(path), "{\"format_version\": 3}");
  overwrite(path, "{\"format_version\": 1}");
  expectSuccess(store->addTask(task));
  EXPECT_EQ(contentOf(path), printTask(task));
  task.key = "../x";
  expectError(store->addTask(task), ErrorKind::BadInput);
}
