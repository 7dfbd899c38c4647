// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The walk over a store: what is whole is given as it was written, and what is
// not is told apart: changed, unfinished, set aside, nothing of a store's.
//
//===----------------------------------------------------------------------===//

#include "fsr/Store/Inventory.h"

#include "Samples.h"

#include <cstring>
#include <map>
#include <tuple>

using namespace fsr;
using State = StoreEntry::State;

class InventoryTest : public StoreTest {
protected:
  void fill() {
    record = sampleRecord();
    expectSuccess(store->addRecord(record));
    expectSuccess(store->addTrial(sampleTrial()));
    expectSuccess(store->addTalk(sampleTalk()));
    expectSuccess(store->addTask(sampleTask()));
    expectSuccess(store->addStrength(sampleStrength()));
  }

  /// State and note by path.
  std::map<std::string, std::pair<State, std::string>> walk() {
    std::map<std::string, std::pair<State, std::string>> found;
    expectSuccess(forEachEntry(folder.path, "", [&](StoreEntry &entry) {
      EXPECT_TRUE(found.try_emplace(entry.path, entry.state, entry.note).second)
          << entry.path << " came twice";
      EXPECT_EQ(entry.state == State::Whole, entry.note.empty());
      EXPECT_EQ(entry.state == State::Whole, !entry.files.empty());
      return llvm::Error::success();
    }));
    return found;
  }

  std::string recordPath() {
    return "records/" + taskKey + "/sm_90/" + record.id;
  }
  std::string trialPath() {
    return "trials/" + taskKey + "/" + sampleTrial().key() + ".json";
  }
  std::string taskPath() { return "tasks/" + taskKey + ".json"; }
  std::string strengthPath() { return "strength/" + taskKey + "/gpu.json"; }
  std::string talkPath() { return "talks/" + taskKey + "/r1-s2"; }

  Record record;
};

TEST_F(InventoryTest, EmptyStore) { EXPECT_TRUE(walk().empty()); }

TEST_F(InventoryTest, WholeThings) {
  fill();
  auto found = walk();
  ASSERT_EQ(found.size(), 5u);
  for (const std::string &path :
       {recordPath(), trialPath(), talkPath(), taskPath(), strengthPath()}) {
    ASSERT_TRUE(found.count(path)) << path;
    EXPECT_EQ(found[path].first, State::Whole);
  }
}

TEST_F(InventoryTest, VerifiedBytesAreThoseOnDisk) {
  fill();
  size_t files = 0;
  expectSuccess(forEachEntry(folder.path, "", [&](StoreEntry &entry) {
    for (const auto &[name, bytes] : entry.files) {
      std::string path = folder / entry.path;
      EXPECT_EQ(contentOf(name.empty() ? path : path + "/" + name), bytes);
      ++files;
    }
    return llvm::Error::success();
  }));
  EXPECT_EQ(files, 4u + 3u + 1u + 1u + 1u);
}

TEST_F(InventoryTest, EachChangedFileIsAFault) {
  fill();
  for (const std::string &path :
       {recordPath() + "/id", recordPath() + "/record.json",
        recordPath() + "/kernel.cu", recordPath() + "/kernel.fatbin",
        talkPath() + "/request.md", talkPath() + "/answer.md",
        talkPath() + "/talk.json", trialPath(), taskPath(), strengthPath()}) {
    std::string before = contentOf(folder / path);
    std::string after = before;
    after[after.size() / 2] ^= 1;
    overwrite(folder / path, after);
    size_t faults = 0;
    for (const auto &[entry, state] : walk())
      if (state.first == State::Faulty) {
        ++faults;
        EXPECT_TRUE(llvm::StringRef(path).starts_with(entry)) << entry;
      }
    EXPECT_EQ(faults, 1u) << path;
    overwrite(folder / path, before);
  }
}

// Well formed, under its own key, and not what was written.
TEST_F(InventoryTest, EditedTrialsAndTasksAreFaults) {
  fill();
  for (auto [path, from, to] :
       {std::tuple(trialPath(), "\"mismatch\"", "\"accepted\""),
        std::tuple(taskPath(), "\"ptx\": \"\"", "\"ptx\": \"ret;\"")}) {
    std::string text = contentOf(folder / path);
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    overwrite(folder / path, text.replace(at, strlen(from), to));
    auto found = walk()[path];
    EXPECT_EQ(found.first, State::Faulty);
    EXPECT_NE(found.second.find("it was changed"), std::string::npos)
        << found.second;
  }
}

TEST_F(InventoryTest, UnfinishedSearches) {
  expectSuccess(store->markUnfinished(taskKey, "copy"));
  auto found = walk();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.begin()->first, "searches/" + taskKey + ".json");
  EXPECT_EQ(found.begin()->second.first, State::Searching);
  EXPECT_EQ(found.begin()->second.second,
            "a search of 'copy' has not ended; the same command goes on with "
            "it");
  llvm::Expected<StoreHistory> history = readHistory(folder.path);
  ASSERT_TRUE(!!history) << llvm::toString(history.takeError());
  ASSERT_EQ(history->tasks.size(), 1u);
  EXPECT_TRUE(history->tasks[0].unfinished);
  EXPECT_TRUE(history->passedOver.empty());
}

TEST_F(InventoryTest, TrialUnderAnotherName) {
  fill();
  std::string copy = "trials/" + taskKey + "/" + sha256("other") + ".json";
  overwrite(folder / copy, contentOf(folder / trialPath()));
  EXPECT_EQ(walk()[copy].first, State::Faulty);
}

TEST_F(InventoryTest, OtherVersionIsAFault) {
  fill();
  std::string text = contentOf(folder / trialPath());
  size_t at = text.find("\"format_version\": 2");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 19, "\"format_version\": 7");
  overwrite(folder / trialPath(), text);
  auto found = walk()[trialPath()];
  EXPECT_EQ(found.first, State::Faulty);
  EXPECT_NE(found.second.find("version"), std::string::npos) << found.second;
}

TEST_F(InventoryTest, MissingFileOfARecord) {
  fill();
  std::filesystem::remove(folder / (recordPath() + "/kernel.fatbin"));
  auto found = walk()[recordPath()];
  EXPECT_EQ(found.first, State::Faulty);
  EXPECT_NE(found.second.find("kernel.fatbin is missing"), std::string::npos)
      << found.second;
}

TEST_F(InventoryTest, WhatIsNoThingOfAStore) {
  fill();
  overwrite(folder / ("talks/" + taskKey + "/.fsr-staging-1-1/talk.json"), "");
  overwrite(folder / ("talks/" + taskKey + "/r1-s2.damaged-1/talk.json"), "");
  overwrite(folder / ("talks/" + taskKey + "/r1-s2.old-1/talk.json"), "");
  overwrite(folder / ("talks/" + taskKey + "/r01-s2/talk.json"), "");
  overwrite(folder / "tasks/notes.txt", "");
  overwrite(folder / "records/.gitkeep", "");
  auto found = walk();
  EXPECT_EQ(found.size(), 5u + 5u);
  EXPECT_EQ(found["talks/" + taskKey + "/.fsr-staging-1-1"].first,
            State::Unfinished);
  EXPECT_EQ(found["talks/" + taskKey + "/r1-s2.damaged-1"].first,
            State::SetAside);
  EXPECT_EQ(found["talks/" + taskKey + "/r1-s2.old-1"].first, State::SetAside);
  EXPECT_EQ(found["talks/" + taskKey + "/r01-s2"].first, State::Foreign);
  EXPECT_EQ(found["tasks/notes.txt"].first, State::Foreign);
}

TEST_F(InventoryTest, OneTaskOnly) {
  fill();
  Trial other = sampleTrial();
  other.taskKey = sha256("another task");
  expectSuccess(store->addTrial(other));
  EXPECT_EQ(walk().size(), 6u);
  size_t seen = 0;
  expectSuccess(forEachEntry(folder.path, other.taskKey, [&](StoreEntry &e) {
    ++seen;
    EXPECT_NE(e.get<Trial>(), nullptr);
    return llvm::Error::success();
  }));
  EXPECT_EQ(seen, 1u);
}

TEST_F(InventoryTest, HistoryRanksRecords) {
  Record slow = sampleRecord(1.2), fast = sampleRecord(2.0);
  Record unproved = sampleRecord(9.0);
  unproved.evidence.level = EvidenceLevel::None;
  for (Record *one : {&slow, &fast, &unproved})
    expectSuccess(store->addRecord(*one));
  llvm::Expected<StoreHistory> history = readHistory(folder.path);
  ASSERT_TRUE(!!history) << llvm::toString(history.takeError());
  ASSERT_EQ(history->tasks.size(), 1u);
  const TaskHistory &task = history->tasks.front();
  ASSERT_EQ(task.records.size(), 3u);
  EXPECT_EQ(task.records[0].id, fast.id);
  EXPECT_EQ(task.records[1].id, slow.id);
  EXPECT_EQ(task.records[2].id, unproved.id);
  EXPECT_EQ(task.kernelName(), "copy");
  EXPECT_EQ(task.target(), "sm_90");
}
