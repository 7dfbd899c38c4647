// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A client, a compiler and a device that play by a script, and a search with
// them in a store that is real. An answer's source says how it fares: "time=50"
// measures 50 µs against the original's 100; "mismatch" and "broken" fail,
// "pretends" does when it is looked at in full; TIME as a parameter is a time
// too.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_SEARCH_SCRIPTED_H
#define FSR_TEST_UNIT_SEARCH_SCRIPTED_H

#include "fsr/Search/Search.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"

#include "../Support/TemporaryFolder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include "gtest/gtest.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>

namespace fsr {

constexpr double originalUs = 100;

inline KernelTask sampleTask() {
  KernelTask task;
  task.name = "scale";
  task.key = sha256("scale");
  task.target = "sm_90";
  Argument x;
  x.name = "x";
  x.isBuffer = true;
  x.sizes = {1024};
  x.strides = {1};
  task.arguments = {x};
  task.kernelMlir = "gpu.func @scale(%x: memref<1024xf32>) kernel { }";
  task.reference.ptx = "reference";
  task.workload.emplace_back();
  task.workload[0].name = "secret-case";
  task.workload[0].fills.emplace_back();
  return task;
}

/// An answer whose kernel fares as `how` says.
inline std::string answer(llvm::StringRef how, llvm::StringRef params = "{}",
                          llvm::StringRef strategy = "one way") {
  return llvm::formatv("```cuda\nextern \"C\" __global__ void k(float *x) "
                       "{{ // {0}\n}\n```\n```json\n{{ \"launch\": [ {{ "
                       "\"kernel\": \"k\", \"grid\": [1], \"block\": [32] } ], "
                       "\"params\": {1}, \"strategy\": \"{2}\" }\n```\n",
                       how, params, strategy)
      .str();
}

class FakeClient final : public ChatClient {
public:
  std::map<std::string, std::string> answers; ///< By "r1-s2".
  std::string otherwise;                      ///< Empty: pending.
  std::set<std::string> failing;
  std::set<std::string> overBudget;
  std::optional<ChatForecast> money;
  std::vector<std::pair<size_t, size_t>> forecasts; ///< Now, and later ones.
  std::vector<size_t> batches;
  std::vector<std::string> asked;
  std::map<std::string, std::string> prompts;

  llvm::Expected<std::optional<ChatForecast>>
  forecast(llvm::ArrayRef<ChatRequest> requests, size_t later) override {
    forecasts.emplace_back(requests.size(), later);
    return money;
  }
  void ask(llvm::ArrayRef<ChatRequest> requests,
           llvm::function_ref<void(size_t, ChatResult)> done) override {
    mayAsk = true;
    batches.push_back(requests.size());
    // Backwards: a search must not lean on the order of arrival.
    for (size_t i = requests.size(); i-- > 0;) {
      if (!mayAsk) {
        done(i, notAsked());
        continue;
      }
      const ChatRequest &request = requests[i];
      std::string place =
          llvm::formatv("r{0}-s{1}", request.round, request.slot);
      asked.push_back(place);
      prompts[place] = request.prompt;
      if (overBudget.count(place)) {
        done(i, makeError(ErrorKind::OverBudget, "budget: no room: " + place));
        continue;
      }
      if (failing.count(place)) {
        done(i, makeError(ErrorKind::Unavailable, "no more: " + place));
        continue;
      }
      auto found = answers.find(place);
      std::string text = found == answers.end() ? otherwise : found->second;
      if (text.empty()) {
        done(i, std::optional<ChatAnswer>());
        continue;
      }
      ChatAnswer given;
      given.text = std::move(text);
      done(i, std::optional<ChatAnswer>(std::move(given)));
    }
  }
  llvm::StringRef provider() const override { return "fake"; }
};

inline std::string imageOf(llvm::StringRef source,
                           const Parameters &parameters) {
  std::string image = source.str();
  for (const auto &[name, value] : parameters)
    image += llvm::formatv(" {0}={1}", llvm::StringRef(name).lower(), value);
  return image;
}

class FakeCompiler final : public Compiler {
public:
  std::atomic<unsigned> compiles{0};
  std::function<void(const CompileRequest &)> before; ///< On many threads.

  llvm::Expected<CompileOutcome>
  compile(const CompileRequest &request) override {
    ++compiles;
    if (before)
      before(request);
    CompileOutcome outcome;
    if (llvm::StringRef(request.source).contains("broken")) {
      outcome.message = "line 1: expected a ``` semicolon";
      return outcome;
    }
    Build build;
    build.cubin = imageOf(request.source, request.parameters);
    build.toolchain = "fake 1.0";
    // Comments would be no part of the code.
    build.ptx = "as PTX: " + llvm::join(llvm::split(build.cubin, "//"), "--");
    build.chip = request.chip;
    KernelResources resources;
    resources.kernel = "k";
    resources.registers = 77;
    build.resources = {resources};
    outcome.build = std::move(build);
    return outcome;
  }
};

class FakeDevice final : public Device {
public:
  DeviceDescription description;
  unsigned full = 0, quick = 0, confirmed = 0, probes = 0, tests = 0;
  std::vector<DummyResult> dummies;   ///< What a test of a task gives.
  std::vector<std::string> workloads; ///< The fills that were tested.
  std::string fault;                  ///< What a probe finds.
  std::vector<std::string> images;    ///< As they were evaluated.
  std::vector<int64_t> quickPairs;    ///< Of the quick looks.
  std::mutex mutex;
  unsigned atOnce = 1;
  std::optional<Profile> profile; ///< Of every evaluation that is not refused.
  unsigned countersAsked = 0, peaksAsked = 0;
  std::string failsAt; ///< Where an image has this, the device is gone.
  std::function<void(const EvaluateRequest &)> before; ///< On many threads.

  unsigned slots() const override { return atOnce; }

  FakeDevice() {
    description.name = "Fake GPU";
    description.chip = "sm_90";
    dummies.emplace_back();
    dummies[0].name = "zeros";
  }
  llvm::Expected<std::vector<DummyResult>>
  testStrength(const StrengthRequest &request) override {
    ++tests;
    workloads.push_back(fillsText(*request.task, request.task->workload[0]));
    return dummies;
  }
  llvm::Expected<DeviceDescription> describe() override { return description; }
  llvm::Error probe() override {
    ++probes;
    if (fault.empty())
      return llvm::Error::success();
    return makeError(ErrorKind::Unavailable, fault);
  }
  llvm::Expected<EvaluateResult>
  evaluate(const EvaluateRequest &request) override {
    if (before)
      before(request);
    std::lock_guard<std::mutex> lock(mutex);
    if (!request.options.full)
      quickPairs.push_back(request.options.quickPairs);
    ++(request.options.confirm ? confirmed
       : request.options.full  ? full
                               : quick);
    images.push_back(request.candidateImage);
    EvaluateResult result;
    llvm::StringRef image = request.candidateImage;
    if (!failsAt.empty() && image.contains(failsAt))
      return makeError(ErrorKind::Unavailable, "the device is gone");
    EXPECT_EQ(image.starts_with("as PTX: "), description.isVirtual);
    EXPECT_EQ(request.referenceImage,
              description.isVirtual ? "reference PTX" : "reference");
    EXPECT_EQ(request.candidateResources.size(), 1u);
    if (image.contains("mismatch") ||
        (image.contains("pretends") && request.options.full)) {
      result.verdict = Verdict::Mismatch;
      result.message = "element 7 of `x`: got 1, wanted 2";
      return result;
    }
    double time = 0;
    (void)image.rsplit("time=")
        .second.split(' ')
        .first.split('\n')
        .first.getAsDouble(time);
    // A race that was won by luck.
    if (image.contains("lucky") && request.options.confirm)
      time *= 1.2;
    Measurement measurement;
    measurement.device = description.name;
    // As many pairs as were asked for, so that a store shows which.
    size_t pairs = std::max<int64_t>(2, request.options.quickPairs);
    measurement.originalUs.assign(pairs, originalUs);
    measurement.candidateUs.assign(pairs, time);
    measurement.originalMedianUs = originalUs;
    measurement.candidateMedianUs = time;
    measurement.speedup = originalUs / time;
    measurement.speedupLow = measurement.speedup * 0.99;
    measurement.speedupHigh = measurement.speedup * 1.01;
    measurement.noiseFloor = 0.02;
    measurement.driver = "13.0";
    Conditions &conditions = measurement.conditions.emplace();
    conditions.clockMhz = 1980;
    conditions.temperatureC = 61;
    result.measurement = measurement;
    if (time >= originalUs)
      result.verdict = Verdict::NotFaster;
    else
      result.verdict =
          request.options.full ? Verdict::Accepted : Verdict::Undecided;
    if (result.verdict == Verdict::Accepted)
      result.evidence.level = description.evidenceLevel();
    result.message = llvm::formatv("{0:f3}x", measurement.speedup);
    countersAsked += request.options.counters;
    peaksAsked += request.options.peaks;
    if (profile) {
      Profile &told = result.profile.emplace(*profile);
      if (!request.options.counters)
        told.hardware.clear();
      if (!request.options.peaks)
        told.peaks.reset();
    }
    if (request.options.confirm) {
      Check check;
      check.name = "confirmed";
      check.passed = result.verdict == Verdict::Accepted;
      result.evidence.checks.push_back(check);
    }
    return result;
  }
};

class SearchTest : public testing::Test {
protected:
  std::function<void(const SearchForecast &)> forecast;
  std::function<llvm::Expected<std::vector<InstructionMix>>(const Build &)>
      readInstructions;

  SearchOutcome run(std::function<void(const SearchEvent &)> observer = {}) {
    return runIn(folder.path, client, std::move(observer));
  }
  SearchOutcome runIn(llvm::StringRef path, ChatClient &with,
                      std::function<void(const SearchEvent &)> observer = {}) {
    auto store = llvm::cantFail(openStore(path, StoreMode::Search));
    return runWith(*store, with, std::move(observer));
  }
  SearchOutcome
  runWith(SearchStore &store, ChatClient &with,
          std::function<void(const SearchEvent &)> observer = {}) {
    SearchServices services{
        with,
        compiler,
        device,
        store,
        [](const Build &build) {
          return llvm::Expected<std::string>("fatbin " + build.cubin);
        },
        [&](const KernelTask &) -> llvm::Expected<Build> {
          if (!referenceFault.empty())
            return makeError(ErrorKind::BadInput, referenceFault);
          Build build;
          build.cubin = "reference";
          build.ptx = "reference PTX";
          return build;
        },
        std::move(observer),
        forecast,
        readInstructions};
    return runSearch(task, options, services);
  }
  /// Every file of a store by its path.
  static std::map<std::string, std::string> tree(const std::string &path) {
    std::map<std::string, std::string> files;
    for (const auto &entry :
         std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file())
        files[entry.path().lexically_relative(path).string()] =
            llvm::cantFail(readFile(entry.path().string()));
    return files;
  }
  static std::vector<std::string> keys(const SearchOutcome &outcome) {
    std::vector<std::string> keys;
    for (const Trial &trial : outcome.trials)
      keys.push_back(trial.key() + " " + nameOf(trial.verdict).str());
    return keys;
  }

  TemporaryFolder folder;
  KernelTask task = sampleTask();
  std::string referenceFault; ///< Why the original cannot be built.
  SearchOptions options;
  FakeClient client;
  FakeCompiler compiler;
  FakeDevice device;
};

inline std::map<std::string, std::string> threeRounds() {
  return {{"r1-s1", answer("a", "{\"TIME\": [70, 71, 90]}")},
          {"r1-s2", answer("broken")},
          {"r2-s1", answer("b", "{\"TIME\": [60, 61]}")},
          {"r2-s2", answer("mismatch")},
          {"r3-s1", "nothing"},
          {"r3-s2", answer("time=20")}};
}

} // namespace fsr

#endif // FSR_TEST_UNIT_SEARCH_SCRIPTED_H
