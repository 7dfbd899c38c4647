// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Searches that are cut off, and searches in the store of one that had other
// options. After a kill at any call of the store the next run ends where an
// undisturbed one does, byte for byte, and repeats nothing that was finished.
//
//===----------------------------------------------------------------------===//

#include "Scripted.h"

#include "fsr/Store/Inventory.h"
#include "fsr/Support/Files.h"

#include <filesystem>

using namespace fsr;

namespace {

/// Takes effect until a call, and is gone from there on: what the process of a
/// search that was killed leaves behind.
class DyingStore final : public SearchStore {
public:
  /// `last`: the last call, or with `onlyWrites` the last write, that has an
  /// effect.
  DyingStore(std::unique_ptr<SearchStore> store, unsigned last,
             bool onlyWrites = false)
      : store(std::move(store)), last(last), onlyWrites(onlyWrites) {}

  unsigned calls = 0;

  llvm::Expected<LookUp> best(llvm::StringRef taskKey, llvm::StringRef target,
                              EvidenceLevel level) override {
    return read([&] { return store->best(taskKey, target, level); });
  }
  llvm::Expected<std::optional<Trial>>
  findTrial(llvm::StringRef taskKey, llvm::StringRef trialKey) override {
    return read([&] { return store->findTrial(taskKey, trialKey); });
  }
  llvm::Expected<std::optional<Talk>>
  findTalk(llvm::StringRef taskKey, int64_t round, int64_t slot) override {
    return read([&] { return store->findTalk(taskKey, round, slot); });
  }
  llvm::Expected<std::vector<Record>>
  findRecords(llvm::StringRef taskKey, llvm::StringRef target) override {
    return read([&] { return store->findRecords(taskKey, target); });
  }
  llvm::Error addRecord(Record &record) override {
    return write([&] { return store->addRecord(record); });
  }
  llvm::Error addTrial(const Trial &trial) override {
    return write([&] { return store->addTrial(trial); });
  }
  llvm::Error addPeaks(llvm::StringRef device, llvm::StringRef driver,
                       const DevicePeaks &peaks) override {
    return write([&] { return store->addPeaks(device, driver, peaks); });
  }
  std::optional<DevicePeaks> findPeaks(llvm::StringRef device,
                                       llvm::StringRef driver) override {
    return store->findPeaks(device, driver);
  }
  llvm::Error addStrength(const TaskStrength &strength) override {
    return write([&] { return store->addStrength(strength); });
  }
  llvm::Expected<std::optional<TaskStrength>>
  findStrength(llvm::StringRef taskKey, bool isModelled) override {
    return read([&] { return store->findStrength(taskKey, isModelled); });
  }
  llvm::Error prepareTalks(llvm::StringRef taskKey) override {
    return read([&] { return store->prepareTalks(taskKey); });
  }
  llvm::Error addTalk(const Talk &talk) override {
    return write([&] { return store->addTalk(talk); });
  }
  llvm::Error addTask(const KernelTask &task) override {
    return write([&] { return store->addTask(task); });
  }
  llvm::Error markUnfinished(llvm::StringRef taskKey,
                             llvm::StringRef kernelName) override {
    return write([&] { return store->markUnfinished(taskKey, kernelName); });
  }
  llvm::Error clearUnfinished(llvm::StringRef taskKey) override {
    return write([&] { return store->clearUnfinished(taskKey); });
  }
  bool isUnfinished(llvm::StringRef taskKey) override {
    return store->isUnfinished(taskKey);
  }

private:
  llvm::Error dead() const {
    return makeError(ErrorKind::Unavailable, "the process was killed");
  }
  template <typename Call>
  auto read(Call call) -> decltype(call()) {
    if (calls >= last)
      return dead();
    calls += !onlyWrites;
    return call();
  }
  /// The last one takes effect, and nobody lives to see it.
  template <typename Call>
  llvm::Error write(Call call) {
    if (calls >= last)
      return dead();
    llvm::Error error = call();
    if (++calls < last)
      return error;
    EXPECT_FALSE(bool(error));
    llvm::consumeError(std::move(error));
    return dead();
  }

  std::unique_ptr<SearchStore> store;
  unsigned last;
  bool onlyWrites;
};

class ResumeTest : public SearchTest {
protected:
  void SetUp() override {
    options.width = 2;
    options.rounds = 2;
    // Three sets that fail in full and two that are not tried then; a winner
    // with others beside it; one that cannot be read; a better winner.
    client.answers = {
        {"r1-s1", answer("pretends", "{\"TIME\": [50, 51, 52, 53, 54]}")},
        {"r1-s2", answer("a", "{\"TIME\": [71, 70, 90]}")},
        {"r2-s1", "nothing"},
        {"r2-s2", answer("time=20")}};
  }

  static std::vector<std::string> names(const std::string &path) {
    std::vector<std::string> names;
    for (const auto &[name, bytes] : tree(path))
      names.push_back(name);
    return names;
  }

  /// What is finished in a store: images that were judged, answers that came.
  void collect(const std::string &path, std::set<std::string> &judged,
               std::set<std::string> &answered) {
    std::map<std::string, std::string> images;
    for (const auto &[place, text] : client.answers) {
      llvm::Expected<Candidate> candidate = parseAnswer(text);
      if (!candidate) {
        llvm::consumeError(candidate.takeError());
        continue;
      }
      for (const Parameters &parameters : candidate->combinations(16)) {
        Trial trial;
        trial.taskKey = task.key;
        trial.candidateHash = candidate->hash();
        trial.parameters = parameters;
        images[trial.key()] = imageOf(candidate->source, parameters);
      }
    }
    StoreHistory history = llvm::cantFail(readHistory(path));
    EXPECT_TRUE(history.passedOver.empty());
    for (const TaskHistory &one : history.tasks) {
      for (const Trial &trial : one.trials)
        judged.insert(images[trial.key()]);
      for (const Record &record : one.records)
        judged.insert(images[record.trial().key()]);
      for (const Talk &talk : one.talks)
        answered.insert(llvm::formatv("r{0}-s{1}", talk.round, talk.slot));
    }
  }

  /// Runs on in `path` and holds what it does against what was there.
  void goOn(const std::string &path, SearchStore &store,
            SearchOutcome &outcome) {
    std::set<std::string> judged, answered;
    collect(path, judged, answered);
    device.images.clear();
    client.asked.clear();
    outcome = runWith(store, client);
    for (const std::string &image : device.images)
      EXPECT_FALSE(judged.count(image)) << "evaluated again: " << image;
    for (const std::string &place : client.asked)
      EXPECT_FALSE(answered.count(place)) << "asked again: " << place;
  }

  /// A search that is killed after each call of the store in turn, and goes on
  /// then. How many trials the whole one has, and who wins.
  void killEverywhere(size_t trials, int64_t slot);

  /// Another search in a copy of what `run` left.
  SearchOutcome again(const SearchOptions &with) {
    TemporaryFolder copy;
    std::filesystem::copy(folder.path, copy.path,
                          std::filesystem::copy_options::recursive);
    SearchOptions before = options;
    options = with;
    client.asked.clear();
    device.images.clear();
    SearchOutcome outcome = runIn(copy.path, client);
    options = before;
    std::sort(client.asked.begin(), client.asked.end());
    return outcome;
  }
  /// The places whose requests a remark says have changed.
  static std::vector<std::string> changed(const SearchOutcome &outcome) {
    std::vector<std::string> places;
    for (llvm::StringRef remark : outcome.remarks) {
      auto [head, tail] = remark.split(", round ");
      auto [round, rest] = tail.split(", slot ");
      if (rest.contains("has changed since"))
        places.push_back(
            llvm::formatv("r{0}-s{1}", round, rest.split(' ').first));
    }
    return places;
  }
};

using Places = std::vector<std::string>;

void ResumeTest::killEverywhere(size_t trials, int64_t slot) {
  auto open = [](const std::string &path) {
    return llvm::cantFail(openStore(path, StoreMode::Search));
  };
  DyingStore counting(open(folder.path), ~0u);
  SearchOutcome whole = runWith(counting, client);
  ASSERT_EQ(whole.trouble, "");
  ASSERT_EQ(whole.trials.size(), trials);
  EXPECT_EQ(whole.winner->slot, slot);
  std::map<std::string, std::string> wanted = tree(folder.path);
  std::vector<std::string> wantedKeys = keys(whole);
  std::sort(wantedKeys.begin(), wantedKeys.end());
  ASSERT_GT(counting.calls, 40u);

  for (unsigned last = 0; last < counting.calls; ++last) {
    SCOPED_TRACE("killed after call " + std::to_string(last));
    TemporaryFolder killed;
    {
      DyingStore dying(open(killed.path), last);
      SearchOutcome cut = runWith(dying, client);
      ASSERT_EQ(cut.stop, SearchStop::Trouble);
    }
    SearchOutcome end;
    auto store = open(killed.path);
    goOn(killed.path, *store, end);
    EXPECT_EQ(end.trouble, "");
    EXPECT_EQ(end.stop, SearchStop::Rounds);
    EXPECT_TRUE(end.remarks.empty());
    EXPECT_EQ(end.winner->id, whole.winner->id);
    std::vector<std::string> found = keys(end);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, wantedKeys);
    EXPECT_EQ(names(killed.path), names(folder.path));
    EXPECT_TRUE(tree(killed.path) == wanted) << "other bytes";
    if (HasFailure())
      break;
  }
}

TEST_F(ResumeTest, KilledAfterAnyCallOfTheStore) { killEverywhere(10, 2); }

// Trials say how far the race was, and which code they are.
TEST_F(ResumeTest, KilledInARaceAndWithCodeThatComesTwice) {
  client.answers = {
      {"r1-s1", answer("a", "{\"TIME\": [70, 71, 72, 73, 74, 75, 200, 77, 78, "
                            "79, 80]}")},
      {"r1-s2", answer("b time=60 /* once */")},
      {"r2-s1",
       answer("pretends /* all */", "{\"TIME\": [50, 51, 52, 53, 54, 55]}")},
      {"r2-s2", answer("b time=60 /* again */")}};
  killEverywhere(19, 2);
}

// Run after run comes one write further than the one before.
TEST_F(ResumeTest, KilledAgainAndAgain) {
  SearchOutcome whole = run();
  ASSERT_EQ(whole.trouble, "");
  TemporaryFolder killed;
  SearchOutcome outcome;
  unsigned runs = 0;
  do {
    ASSERT_LT(++runs, 100u);
    DyingStore dying(llvm::cantFail(openStore(killed.path, StoreMode::Search)),
                     /*last=*/3, /*onlyWrites=*/true);
    goOn(killed.path, dying, outcome);
    // The mark and the task are written by each run; the third write is new.
    if (outcome.stop == SearchStop::Trouble)
      EXPECT_TRUE(llvm::StringRef(outcome.trouble)
                      .starts_with("the process was killed"))
          << outcome.trouble;
  } while (!HasFailure() && tree(killed.path) != tree(folder.path));
  // The task's test, 4 answers, 10 trials, 2 records, and the mark that goes.
  EXPECT_EQ(runs, 18u);
}

TEST_F(ResumeTest, ARecordWithoutItsTrialIsTheTrial) {
  SearchOutcome whole = run();
  std::map<std::string, std::string> before = tree(folder.path);
  std::filesystem::remove_all(folder / "trials");
  device.images.clear();
  run();
  for (const Trial &trial : whole.trials)
    if (trial.verdict == Verdict::Accepted) {
      std::string name = "trials/" + task.key + "/" + trial.key() + ".json";
      EXPECT_EQ(llvm::cantFail(readFile(folder / name)), before[name]);
    }
  for (const std::string &image : device.images) {
    EXPECT_EQ(image.find("time=70"), std::string::npos);
    EXPECT_EQ(image.find("time=20"), std::string::npos);
  }
  EXPECT_FALSE(device.images.empty()) << "the others are run again";
}

TEST_F(ResumeTest, ItIsUnfinishedUntilItHasEnded) {
  auto store = llvm::cantFail(openStore(folder.path, StoreMode::Search));
  client.answers.erase("r2-s2");
  run([&](const SearchEvent &) {
    EXPECT_TRUE(store->isUnfinished(task.key)) << "before the first request";
  });
  EXPECT_TRUE(store->isUnfinished(task.key)) << "an answer is to come";
  client.failing = {"r2-s2"};
  EXPECT_EQ(run().stop, SearchStop::Trouble);
  EXPECT_TRUE(store->isUnfinished(task.key)) << "the provider failed";
  client.failing.clear();
  client.otherwise = answer("time=20");
  EXPECT_EQ(run().stop, SearchStop::Rounds);
  EXPECT_FALSE(store->isUnfinished(task.key));
}

TEST_F(ResumeTest, NoMarkBeforeItCanStart) {
  device.description.chip = "sm_80";
  EXPECT_EQ(run().stop, SearchStop::Trouble);
  EXPECT_TRUE(names(folder.path) == std::vector<std::string>{".gitattributes"});
}

TEST_F(ResumeTest, OptionsThatNoRequestSpeaksOf) {
  ASSERT_EQ(run().trouble, "");
  SearchOptions other = options;
  other.seed = 7;
  other.patience = 9;
  other.solStop = 0;
  other.replayStrict = true;
  SearchOutcome outcome = again(other);
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_TRUE(client.asked.empty());
  EXPECT_TRUE(device.images.empty());
  EXPECT_TRUE(outcome.remarks.empty());
}

TEST_F(ResumeTest, MoreRoundsGoOn) {
  client.otherwise = answer("time=10");
  ASSERT_EQ(run().trouble, "");
  SearchOptions other = options;
  other.rounds = 3;
  other.replayStrict = true;
  EXPECT_EQ(again(other).trouble, "");
  EXPECT_EQ(client.asked, (Places{"r3-s1", "r3-s2"}));
}

TEST_F(ResumeTest, AnotherWidthChangesTheLaterRequests) {
  client.otherwise = answer("time=10");
  ASSERT_EQ(run().trouble, "");
  SearchOptions other = options;
  other.width = 3;
  SearchOutcome outcome = again(other);
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_EQ(client.asked, (Places{"r1-s3", "r2-s3"}));
  EXPECT_EQ(changed(outcome), (Places{"r2-s1", "r2-s2"}));
  other.replayStrict = true;
  outcome = again(other);
  EXPECT_NE(outcome.trouble.find("round 2, slot 1 has changed"),
            std::string::npos)
      << outcome.trouble;
}

TEST_F(ResumeTest, FewerParameterSetsChangeTheLaterRequests) {
  ASSERT_EQ(run().trouble, "");
  SearchOptions other = options;
  other.parameterSets = 1;
  SearchOutcome outcome = again(other);
  EXPECT_TRUE(client.asked.empty());
  EXPECT_EQ(changed(outcome), (Places{"r2-s1", "r2-s2"}));
}

TEST_F(ResumeTest, TheControlsSlotsAreOtherRequests) {
  client.otherwise = answer("time=10");
  options.kind = SearchKind::BestOfN;
  ASSERT_EQ(run().trouble, "");
  // The same requests of the first round, and none of the later ones.
  SearchOptions other = options;
  other.kind = SearchKind::Fsr;
  SearchOutcome outcome = again(other);
  EXPECT_EQ(client.asked, (Places{"r2-s1", "r2-s2"}));
  EXPECT_TRUE(changed(outcome).empty());
  // A wider search asks for other strategies in the control's slots.
  other.width = 4;
  other.rounds = 1;
  outcome = again(other);
  EXPECT_TRUE(client.asked.empty());
  EXPECT_EQ(changed(outcome), (Places{"r1-s3", "r1-s4"}));
  other.replayStrict = true;
  outcome = again(other);
  EXPECT_NE(outcome.trouble.find("round 1, slot 3 has changed"),
            std::string::npos)
      << outcome.trouble;
  EXPECT_TRUE(device.images.empty());
}

TEST_F(ResumeTest, OtherPromptsKeepTheAnswersAndSaySo) {
  ASSERT_EQ(run().trouble, "");
  TemporaryFolder prompts;
  ASSERT_FALSE(bool(writeFileAtomically(prompts / "request.md.mustache",
                                        "Rewrite {{{name}}}, please.\n")));
  SearchOptions other = options;
  other.prompts = prompts.path;
  SearchOutcome outcome = again(other);
  EXPECT_EQ(outcome.trouble, "");
  EXPECT_TRUE(client.asked.empty());
  EXPECT_EQ(changed(outcome), (Places{"r1-s1", "r1-s2", "r2-s1", "r2-s2"}));
  other.replayStrict = true;
  EXPECT_NE(again(other).trouble.find("has changed"), std::string::npos);
}

// An answer that was replayed to another request is not kept as one to this.
TEST_F(ResumeTest, AReplayedAnswerKeepsItsRequest) {
  ASSERT_EQ(run().trouble, "");
  task.facts = {"something new"};
  auto replay = llvm::cantFail(makeChatClient("replay:" + folder.path));
  TemporaryFolder other;
  for (int i = 0; i < 2; ++i) {
    SearchOutcome outcome = runIn(other.path, *replay);
    EXPECT_EQ(outcome.trouble, "");
    EXPECT_EQ(outcome.asked, i ? 0u : 4u);
    EXPECT_EQ(changed(outcome).size(), 4u) << "said each time";
  }
}

TEST_F(ResumeTest, TrialsOfAnotherDeviceAreNamed) {
  ASSERT_EQ(run().trouble, "");
  device.description.name = "Other GPU";
  SearchOutcome outcome = again(options);
  EXPECT_TRUE(device.images.empty());
  ASSERT_FALSE(outcome.remarks.empty());
  EXPECT_EQ(outcome.remarks.back(),
            "kernel 'scale': 9 reused trials were measured on Fake GPU, not on "
            "Other GPU");
}

} // namespace
