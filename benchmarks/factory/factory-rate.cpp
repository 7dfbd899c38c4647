// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How many candidates a second a search gets through, end to end: read,
// compile, load, quick checks, a few pairs of timings, store. A search runs as
// it always does, with answers from here: good candidates for small kernels,
// each changed a little, so that no two have the same code. Nothing climbs the
// whole ladder: few do in a search, and what that takes is validation's matter.
//
//   factory-rate [--device=DEVICE]... [--candidates=N] [--compile-jobs=N]
//                [--benchmarks=FOLDER] [--at-least=RATE]
//
// The clock starts with the first answer; the task's own test is over then. A
// stage's time is the sum over all that do it, so the shares tell what costs;
// below it stand the worker's phases, in ms a candidate. The last line tells
// what a device waits for. With --at-least the exit status is 1 where a device
// is slower.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Search.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <map>
#include <mutex>
#include <sys/resource.h>
#include <thread>

using namespace fsr;

namespace {

using Clock = std::chrono::steady_clock;

llvm::ExitOnError check("factory-rate: error: ");

struct Subject {
  const char *name, *candidate, *task;
};

const Subject subjects[] = {
    {"layer_norm", "layer_norm.welford",
     "96265d6cd7aff9254a905e91da796873974ec10476eb516fd2ab59561907d4df"},
    {"matmul", "matmul.registers",
     "318d227369af310eecf2bf09721b589d533c75aca3eedcd13f2fcecba85813d4"},
    {"softmax", "softmax.online",
     "bac4a44753e4f685e21df2b0231e8ed4c3adf7a6cf28eb19458e96f8a22832cb"},
};

/// Seconds by stage, from several threads.
class Stages {
public:
  void add(const std::string &stage, double seconds) {
    std::lock_guard<std::mutex> lock(mutex);
    for (auto &[name, sum] : sums)
      if (name == stage) {
        sum += seconds;
        return;
      }
  }
  /// Counts what passes until it is destroyed.
  class Span {
  public:
    Span(Stages &stages, const char *stage) : stages(stages), stage(stage) {}
    ~Span() {
      stages.add(stage,
                 std::chrono::duration<double>(Clock::now() - start).count());
    }

  private:
    Stages &stages;
    const char *stage;
    Clock::time_point start = Clock::now();
  };
  /// What a stage is made of, by the worker's own names.
  void addPart(const char *stage, const std::string &part, double seconds) {
    std::lock_guard<std::mutex> lock(mutex);
    parts[stage][part] += seconds;
  }
  void clear() {
    for (auto &[name, sum] : sums)
      sum = 0;
    parts.clear();
  }

  std::vector<std::pair<std::string, double>> sums = {
      {"parse", 0},    {"compile", 0}, {"load", 0},
      {"validate", 0}, {"time", 0},    {"talk to the worker", 0},
      {"store", 0}};
  std::map<std::string, std::map<std::string, double>> parts;

private:
  std::mutex mutex;
};

/// Which stage a phase of the worker belongs to; `timing` stays set once the
/// first timing has begun.
const char *stageOf(llvm::StringRef phase, bool &timing) {
  timing |= phase == "original-timing";
  if (timing)
    return "time";
  if (phase == "request")
    return "talk to the worker";
  return phase.ends_with("-load") ? "load" : "validate";
}

/// The same kernel with one more word of code, which does nothing.
std::string variantOf(llvm::StringRef answer, unsigned number) {
  size_t brace = answer.find(") {", answer.find("__global__"));
  if (brace == llvm::StringRef::npos)
    check(makeError(ErrorKind::BadInput, "a candidate without a kernel"));
  return llvm::formatv(
      "{0}) {{\n  asm volatile(\"{{ .reg .b32 variant; mov.b32 "
      "variant, {1}; }\");{2}",
      answer.take_front(brace), number, answer.drop_front(brace + 3));
}

class SourceClient final : public ChatClient {
public:
  SourceClient(std::string answer, Stages &stages)
      : answer(std::move(answer)), stages(stages) {}

  Clock::time_point start;

  void ask(llvm::ArrayRef<ChatRequest> requests,
           llvm::function_ref<void(size_t, ChatResult)> done) override {
    stages.clear();
    start = Clock::now();
    for (auto [i, request] : llvm::enumerate(requests)) {
      ChatAnswer given;
      given.text = variantOf(answer, request.slot);
      {
        // Once more, for the clock.
        Stages::Span span(stages, "parse");
        llvm::consumeError(parseAnswer(given.text).takeError());
      }
      done(i, std::optional<ChatAnswer>(std::move(given)));
    }
  }
  llvm::StringRef provider() const override { return "factory-rate"; }

private:
  std::string answer;
  Stages &stages;
};

class TimedCompiler final : public Compiler {
public:
  TimedCompiler(Compiler &compiler, Stages &stages)
      : compiler(compiler), stages(stages) {}
  llvm::Expected<CompileOutcome>
  compile(const CompileRequest &request) override {
    Stages::Span span(stages, "compile");
    return compiler.compile(request);
  }

private:
  Compiler &compiler;
  Stages &stages;
};

class TimedDevice final : public Device {
public:
  TimedDevice(Device &device, Stages &stages)
      : device(device), stages(stages) {}

  double busySeconds = 0;

  llvm::Expected<DeviceDescription> describe() override {
    return device.describe();
  }
  llvm::Error probe() override { return device.probe(); }
  llvm::Expected<std::vector<DummyResult>>
  testStrength(const StrengthRequest &request) override {
    return device.testStrength(request);
  }
  unsigned slots() const override { return device.slots(); }
  std::vector<std::string> takeRemarks() override {
    return device.takeRemarks();
  }
  llvm::Expected<EvaluateResult>
  evaluate(const EvaluateRequest &request) override {
    EvaluateResult result;
    if (request.options.full) {
      result.verdict = Verdict::Undecided;
      result.message = "the whole ladder is left out";
      return result;
    }
    Clock::time_point begin = Clock::now();
    auto evaluated = device.evaluate(request);
    if (!evaluated)
      return evaluated;
    double all = std::chrono::duration<double>(Clock::now() - begin).count();
    double told = 0;
    bool timing = false;
    for (const PhaseTime &phase : evaluated->phases) {
      const char *stage = stageOf(phase.phase, timing);
      stages.add(stage, phase.milliseconds / 1000);
      stages.addPart(stage, phase.phase, phase.milliseconds / 1000);
      told += phase.milliseconds / 1000;
    }
    stages.add("talk to the worker", all - told);
    std::lock_guard<std::mutex> lock(mutex);
    busySeconds += all;
    return evaluated;
  }

private:
  Device &device;
  Stages &stages;
  std::mutex mutex;
};

class TimedStore final : public SearchStore {
public:
  TimedStore(SearchStore &store, Stages &stages)
      : store(store), stages(stages) {}

  llvm::Expected<LookUp> best(llvm::StringRef key, llvm::StringRef target,
                              EvidenceLevel level) override {
    Stages::Span span(stages, "store");
    return store.best(key, target, level);
  }
  llvm::Error addRecord(Record &record) override {
    Stages::Span span(stages, "store");
    return store.addRecord(record);
  }
  llvm::Expected<std::vector<Record>>
  findRecords(llvm::StringRef key, llvm::StringRef target) override {
    Stages::Span span(stages, "store");
    return store.findRecords(key, target);
  }
  llvm::Error addTrial(const Trial &trial) override {
    Stages::Span span(stages, "store");
    return store.addTrial(trial);
  }
  llvm::Expected<std::optional<Trial>>
  findTrial(llvm::StringRef key, llvm::StringRef trial) override {
    Stages::Span span(stages, "store");
    return store.findTrial(key, trial);
  }
  llvm::Error addStrength(const TaskStrength &strength) override {
    return store.addStrength(strength);
  }
  llvm::Expected<std::optional<TaskStrength>>
  findStrength(llvm::StringRef key, bool isModelled) override {
    return store.findStrength(key, isModelled);
  }
  llvm::Error addPeaks(llvm::StringRef device, llvm::StringRef driver,
                       const DevicePeaks &peaks) override {
    return store.addPeaks(device, driver, peaks);
  }
  std::optional<DevicePeaks> findPeaks(llvm::StringRef device,
                                       llvm::StringRef driver) override {
    return store.findPeaks(device, driver);
  }
  llvm::Error addTalk(const Talk &talk) override {
    Stages::Span span(stages, "store");
    return store.addTalk(talk);
  }
  llvm::Error prepareTalks(llvm::StringRef key) override {
    return store.prepareTalks(key);
  }
  llvm::Expected<std::optional<Talk>>
  findTalk(llvm::StringRef key, int64_t round, int64_t slot) override {
    Stages::Span span(stages, "store");
    return store.findTalk(key, round, slot);
  }
  llvm::Error addTask(const KernelTask &task) override {
    return store.addTask(task);
  }
  llvm::Error markUnfinished(llvm::StringRef key,
                             llvm::StringRef name) override {
    return store.markUnfinished(key, name);
  }
  llvm::Error clearUnfinished(llvm::StringRef key) override {
    return store.clearUnfinished(key);
  }
  bool isUnfinished(llvm::StringRef key) override {
    return store.isUnfinished(key);
  }

private:
  SearchStore &store;
  Stages &stages;
};

/// Of the compilers: the device's worker lives on, and is not counted.
double processorSecondsOfChildren() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

struct Options {
  std::vector<std::string> devices;
  unsigned candidates = 64, compileJobs = 0;
  double atLeast = 0;
  std::string benchmarks = FSR_BENCHMARKS;
};

/// Right candidates a second; nothing where one was not told to be right.
std::optional<double> measure(const Subject &subject, Device &device,
                              Compiler &compiler, const Options &options) {
  KernelTask task = check(parseTask(check(
      readFile(options.benchmarks + "/store/tasks/" + subject.task + ".json",
               1 << 20))));
  std::string answer = check(readFile(
      options.benchmarks + "/kernels/candidates/" + subject.candidate + ".md",
      1 << 20));
  llvm::SmallString<128> folder;
  check(llvm::errorCodeToError(
      llvm::sys::fs::createUniqueDirectory("factory-rate", folder)));
  auto store = check(openStore(folder, StoreMode::Search));
  Stages stages;
  SourceClient client(std::move(answer), stages);
  TimedCompiler timedCompiler(compiler, stages);
  TimedDevice timedDevice(device, stages);
  TimedStore timedStore(*store, stages);
  SearchOptions search;
  search.rounds = 1;
  search.width = options.candidates;
  search.parameterSets = 1;
  search.compileJobs = options.compileJobs;
  SearchServices services{
      client,
      timedCompiler,
      timedDevice,
      timedStore,
      [](const Build &build) { return llvm::Expected<std::string>(build.ptx); },
      // The driver compiles it; a host without ptxas is enough.
      [](const KernelTask &of) -> llvm::Expected<Build> {
        Build build;
        build.ptx = build.cubin = of.reference.ptx;
        return build;
      },
      {}};
  double compilersBefore = processorSecondsOfChildren();
  SearchOutcome outcome = runSearch(task, search, services);
  double seconds =
      std::chrono::duration<double>(Clock::now() - client.start).count();
  llvm::sys::fs::remove_directories(folder);
  if (!outcome.trouble.empty() || !outcome.weak.empty())
    check(makeError(ErrorKind::Unavailable, outcome.trouble + outcome.weak));
  auto isRight = [](const Trial &trial) {
    return trial.verdict == Verdict::Undecided ||
           trial.verdict == Verdict::NotFaster;
  };
  if (outcome.trials.empty())
    check(makeError(ErrorKind::Unavailable, "no candidate was tried"));
  size_t right = llvm::count_if(outcome.trials, isRight);
  double rate = double(right) / seconds;
  llvm::outs() << llvm::formatv(
      "{0}: {1} candidates ({2} right) in {3:f2} s: {4:f1} a second\n",
      subject.name, outcome.trials.size(), right, seconds, rate);
  auto wrong = llvm::find_if_not(outcome.trials, isRight);
  if (wrong != outcome.trials.end())
    llvm::outs() << "  not right: " << nameOf(wrong->verdict) << ": "
                 << wrong->message << '\n';
  double sum = 0;
  for (const auto &[stage, time] : stages.sums)
    sum += time;
  for (const auto &[stage, time] : stages.sums) {
    llvm::outs() << llvm::formatv(
        "  {0,-20} {1,8:f1} ms a candidate {2,6:f1} %\n", stage,
        1000 * time / double(outcome.trials.size()), 100 * time / sum);
    auto parts = stages.parts.find(stage);
    if (parts == stages.parts.end() || parts->second.size() < 2)
      continue;
    for (const auto &[part, time] : parts->second)
      llvm::outs() << llvm::formatv("    {0,-20} {1,6:f1}\n", part,
                                    1000 * time /
                                        double(outcome.trials.size()));
  }
  llvm::outs() << llvm::formatv(
      "  the device is busy {0:f0} % of the time; a compile takes {1:f0} ms of "
      "a processor\n",
      100 * timedDevice.busySeconds / seconds / timedDevice.slots(),
      1000 * (processorSecondsOfChildren() - compilersBefore) /
          double(outcome.trials.size()));
  if (wrong != outcome.trials.end())
    return std::nullopt;
  return rate;
}

bool readOptions(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef word = argv[i];
    if (word.consume_front("--device="))
      options.devices.push_back(word.str());
    else if (word.consume_front("--benchmarks="))
      options.benchmarks = word.str();
    else if (word.consume_front("--candidates=")) {
      if (word.getAsInteger(10, options.candidates) || !options.candidates ||
          options.candidates > 4096)
        return false;
    } else if (word.consume_front("--compile-jobs=")) {
      if (word.getAsInteger(10, options.compileJobs) ||
          options.compileJobs > 256)
        return false;
    } else if (word.consume_front("--at-least=")) {
      if (word.getAsDouble(options.atLeast))
        return false;
    } else {
      return false;
    }
  }
  if (options.devices.empty())
    options.devices.push_back("auto");
  return true;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  bool isHelp = argc == 2 && (llvm::StringRef(argv[1]) == "--help" ||
                              llvm::StringRef(argv[1]) == "-h");
  if (isHelp || !readOptions(argc, argv, options)) {
    (isHelp ? llvm::outs() : llvm::errs())
        << "usage: factory-rate [--device=DEVICE]... [--candidates=1 to 4096] "
           "[--compile-jobs=0 to 256] [--benchmarks=FOLDER] "
           "[--at-least=RATE]\n";
    return isHelp ? 0 : 2;
  }
  auto compiler = check(makeCudaCompiler({}));
  bool hasFailed = false;
  for (const std::string &name : options.devices) {
    auto device = check(openDevice(name));
    DeviceDescription facts = check(device->describe());
    llvm::outs() << llvm::formatv("{0}: {1}, {2} evaluations at a time, {3} "
                                  "processors\n",
                                  name, facts.name, device->slots(),
                                  std::thread::hardware_concurrency());
    for (const Subject &subject : subjects) {
      auto rate = measure(subject, *device, *compiler, options);
      hasFailed |= !rate || *rate < options.atLeast;
    }
  }
  return hasFailed;
}
