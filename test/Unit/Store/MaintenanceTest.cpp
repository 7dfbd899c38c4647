// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Merging copies the very bytes and writes over nothing; pruning keeps the
// best, and what it cannot judge.
//
//===----------------------------------------------------------------------===//

#include "fsr/Store/Inventory.h"

#include "Samples.h"

#include "fsr/Support/Json.h"

using namespace fsr;

class MaintenanceTest : public StoreTest {
protected:
  MergeReport merge() {
    llvm::Expected<MergeReport> report = mergeStores(folder.path, goal.path);
    if (!report) {
      ADD_FAILURE() << llvm::toString(report.takeError());
      return {};
    }
    return std::move(*report);
  }
  PruneReport prune(const PruneOptions &options) {
    llvm::Expected<PruneReport> report = pruneStore(folder.path, options);
    if (!report) {
      ADD_FAILURE() << llvm::toString(report.takeError());
      return {};
    }
    return std::move(*report);
  }
  std::string recordPath(const Record &record) {
    return "records/" + taskKey + "/sm_90/" + record.id;
  }
  std::string trialPath() {
    return "trials/" + taskKey + "/" + sampleTrial().key() + ".json";
  }

  TemporaryFolder goal;
};

TEST_F(MaintenanceTest, MergeCopiesOnce) {
  Record record = sampleRecord();
  expectSuccess(store->addRecord(record));
  expectSuccess(store->addTrial(sampleTrial()));
  expectSuccess(store->addTalk(sampleTalk()));
  MergeReport first = merge();
  EXPECT_EQ(first.copied.size(), 3u);
  EXPECT_EQ(contentOf(goal / (recordPath(record) + "/kernel.fatbin")),
            record.fatbin);
  MergeReport second = merge();
  EXPECT_TRUE(second.copied.empty());
  EXPECT_EQ(second.same, 3u);
  EXPECT_TRUE(second.faults.empty());
}

// Where another store's searcher stands is not this one's.
TEST_F(MaintenanceTest, MergeLeavesMarks) {
  expectSuccess(store->markUnfinished(taskKey, "copy"));
  MergeReport report = merge();
  EXPECT_TRUE(report.copied.empty());
  EXPECT_TRUE(report.faults.empty());
}

TEST_F(MaintenanceTest, MergeKeepsKeysOfALaterWriter) {
  expectSuccess(store->addTrial(sampleTrial()));
  std::string text = contentOf(folder / trialPath());
  llvm::Expected<llvm::json::Value> json = parseJson(text);
  ASSERT_TRUE(!!json);
  (*json->getAsObject())["added_later"] = true;
  text = printSealed(std::move(*json->getAsObject()));
  overwrite(folder / trialPath(), text);
  EXPECT_EQ(merge().copied.size(), 1u);
  EXPECT_EQ(contentOf(goal / trialPath()), text);
}

TEST_F(MaintenanceTest, MergeWritesOverNothing) {
  expectSuccess(store->addTalk(sampleTalk()));
  llvm::Expected<std::unique_ptr<SearchStore>> there =
      openStore(goal.path, StoreMode::Search);
  ASSERT_TRUE(!!there);
  Talk talk = sampleTalk();
  talk.answer = "another answer";
  expectSuccess((*there)->addTalk(talk));
  MergeReport report = merge();
  EXPECT_TRUE(report.copied.empty());
  ASSERT_EQ(report.kept.size(), 1u);
  EXPECT_EQ(contentOf(goal / (report.kept.front() + "/answer.md")),
            "another answer");
}

TEST_F(MaintenanceTest, MergeCopiesNothingDamaged) {
  Record record = sampleRecord();
  expectSuccess(store->addRecord(record));
  overwrite(folder / (recordPath(record) + "/kernel.cu"), "changed");
  MergeReport report = merge();
  EXPECT_TRUE(report.copied.empty());
  ASSERT_EQ(report.faults.size(), 1u);
  EXPECT_NE(report.faults.front().find("kernel.cu"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(goal / recordPath(record)));
}

TEST_F(MaintenanceTest, MergeSaysWhatIsDamagedInItsWay) {
  expectSuccess(store->addTrial(sampleTrial()));
  overwrite(goal / trialPath(), "{");
  MergeReport report = merge();
  EXPECT_TRUE(report.copied.empty());
  EXPECT_EQ(report.faults.size(), 1u);
  EXPECT_EQ(contentOf(goal / trialPath()), "{");
}

TEST_F(MaintenanceTest, MergeFollowsNoLink) {
  expectSuccess(store->addTrial(sampleTrial()));
  TemporaryFolder outside;
  std::filesystem::create_directory_symlink(outside.path, goal / "trials");
  std::string message = expectError(
      mergeStores(folder.path, goal.path).takeError(), ErrorKind::BadInput);
  EXPECT_NE(message.find("symbolic link"), std::string::npos) << message;
  EXPECT_TRUE(namesIn(outside.path).empty());
}

TEST_F(MaintenanceTest, MergeIntoItself) {
  expectError(mergeStores(folder.path, folder.path + "/").takeError(),
              ErrorKind::BadInput);
}

TEST_F(MaintenanceTest, PruneKeepsTheBest) {
  Record slow = sampleRecord(1.2), fast = sampleRecord(2.0);
  Record unproved = sampleRecord(9.0);
  unproved.evidence.level = EvidenceLevel::None;
  for (Record *one : {&slow, &fast, &unproved})
    expectSuccess(store->addRecord(*one));
  PruneReport report = prune({});
  EXPECT_EQ(report.removed.size(), 2u);
  EXPECT_GT(report.bytes, 0u);
  EXPECT_TRUE(std::filesystem::exists(folder / recordPath(fast)));
  EXPECT_FALSE(std::filesystem::exists(folder / recordPath(slow)));
  LookUp found = lookUp();
  ASSERT_TRUE(found.record);
  EXPECT_EQ(found.record->id, fast.id);
  EXPECT_TRUE(found.skipped.empty());
}

TEST_F(MaintenanceTest, PruneCountsATargetAlone) {
  Record one = sampleRecord(1.2), other = sampleRecord(2.0);
  other.target = "sm_100";
  other.chip = "sm_100";
  for (Record *record : {&one, &other})
    expectSuccess(store->addRecord(*record));
  EXPECT_TRUE(prune({}).removed.empty());
}

TEST_F(MaintenanceTest, DryRunRemovesNothing) {
  Record slow = sampleRecord(1.2), fast = sampleRecord(2.0);
  for (Record *one : {&slow, &fast})
    expectSuccess(store->addRecord(*one));
  expectSuccess(store->addTrial(sampleTrial()));
  PruneOptions options;
  options.trials = options.dryRun = true;
  PruneReport report = prune(options);
  EXPECT_EQ(report.removed.size(), 2u);
  for (const std::string &path : report.removed)
    EXPECT_TRUE(std::filesystem::exists(folder / path)) << path;
}

TEST_F(MaintenanceTest, PruneOfHistory) {
  Record record = sampleRecord();
  expectSuccess(store->addRecord(record));
  expectSuccess(store->addTrial(sampleTrial()));
  expectSuccess(store->addTalk(sampleTalk()));
  EXPECT_TRUE(prune({}).removed.empty());
  PruneOptions options;
  options.trials = true;
  EXPECT_EQ(prune(options).removed.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder / "trials"));
  options.talks = true;
  EXPECT_EQ(prune(options).removed.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder / "talks"));
  EXPECT_TRUE(lookUp().record);
}

TEST_F(MaintenanceTest, PruneLeavesWhatIsDamaged) {
  Record slow = sampleRecord(1.2), fast = sampleRecord(2.0);
  for (Record *one : {&slow, &fast})
    expectSuccess(store->addRecord(*one));
  overwrite(folder / (recordPath(slow) + "/kernel.cu"), "changed");
  PruneReport report = prune({});
  EXPECT_TRUE(report.removed.empty());
  EXPECT_EQ(report.faults.size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(folder / recordPath(slow)));
}

TEST_F(MaintenanceTest, PruneFollowsNoLink) {
  expectSuccess(store->addTrial(sampleTrial()));
  TemporaryFolder outside;
  std::string moved = outside / "trials";
  std::filesystem::rename(folder / "trials", moved);
  std::filesystem::create_directory_symlink(moved, folder / "trials");
  PruneOptions options;
  options.trials = true;
  expectError(pruneStore(folder.path, options).takeError(),
              ErrorKind::BadInput);
  EXPECT_EQ(namesIn(moved).size(), 1u);
}
