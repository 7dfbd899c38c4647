// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsr-mutate: how many small faults in right candidates does the validation
// find? README.md beside this file says what is changed and how it is counted.
//
// Exit status: 0 the score is what is wanted; 1 trouble; 2 the command line
// cannot be used; 3 the score is less, or an argument does not hold.
//
//===----------------------------------------------------------------------===//

#include "Judge.h"
#include "Results.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Interrupt.h"
#include "fsr/Support/Printable.h"
#include "fsr/Support/Tool.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

using namespace fsr;
using namespace fsr::mutation;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory category("Options of fsr-mutate");
cl::list<std::string> pairs(cl::Positional, cl::value_desc("TASK=ANSWER"),
                            cl::desc("TASK.json=ANSWER.md... (or FILE.ptx, "
                                     "with --list)"),
                            cl::cat(category));
cl::opt<std::string> device("device", cl::init("virtual"),
                            cl::desc("As for fsr-tune (virtual)"),
                            cl::cat(category));
cl::opt<bool> allowUnsandboxed("allow-unsandboxed", cl::desc("As for fsr-tune"),
                               cl::cat(category));
cl::opt<unsigned> total("mutants", cl::init(500),
                        cl::desc("Make so many; what changes nothing is drawn "
                                 "and not made (500)"),
                        cl::cat(category));
cl::opt<uint64_t> seed("seed", cl::init(1),
                       cl::desc("Of the choice and of inputs (1)"),
                       cl::cat(category));
cl::opt<unsigned> jobs("jobs", cl::init(0),
                       cl::desc("Workers at a time; 0: one a core (0)"),
                       cl::cat(category));
cl::opt<unsigned> limit("limit", cl::init(120), cl::value_desc("SECONDS"),
                        cl::desc("For one mutant (120)"), cl::cat(category));
cl::opt<double> wanted("wanted", cl::init(97), cl::value_desc("PERCENT"),
                       cl::desc("The score below which the exit status is 3 "
                                "(97)"),
                       cl::cat(category));
cl::opt<std::string>
    results("results", cl::value_desc("FILE"),
            cl::desc("Lines of what was judged. Where it is there, the run "
                     "goes on from it"),
            cl::cat(category));
cl::opt<bool> again("again",
                    cl::desc("Judge the survivors among the results again"),
                    cl::cat(category));
cl::opt<std::string> argumentFile("equivalent", cl::value_desc("FILE"),
                                  cl::desc("Why some are no faults"),
                                  cl::cat(category));
cl::list<std::string> only("only", cl::value_desc("ID"),
                           cl::desc("Judge this mutant, and say all of it"),
                           cl::cat(category));
cl::opt<bool> list("list", cl::desc("Print the chosen ones, judge none"),
                   cl::cat(category));

constexpr uint64_t maxFileBytes = uint64_t(64) << 20;
/// Of all that were made: the same machine code, or argued to be equal.
constexpr double mostDropped = 0.1;

struct Run {
  std::vector<Subject> subjects;
  std::vector<Mutant> order; ///< In which mutants are drawn.
  std::map<std::string, Row> rows;
  std::map<std::string, std::string> arguments;

  const Subject &subjectOf(const Mutant &mutant) const {
    return *std::find_if(
        subjects.begin(), subjects.end(),
        [&](const Subject &one) { return one.name == mutant.candidate; });
  }
};

/// Draws mutants in their order until enough are made, judges on several
/// workers those that no row is there of, and adds each line to the results.
class Pool {
public:
  Pool(Run &run, size_t wanted, llvm::raw_ostream *file)
      : run(run), wanted(wanted), file(file) {}

  llvm::Error judgeAll(std::vector<std::unique_ptr<Bench>> &benches) {
    std::vector<std::thread> threads;
    for (std::unique_ptr<Bench> &bench : benches)
      threads.emplace_back([this, &bench] { work(*bench); });
    for (std::thread &thread : threads)
      thread.join();
    return failed.empty() ? llvm::Error::success()
                          : makeError(ErrorKind::Unavailable, failed);
  }

private:
  /// Null: no more are wanted. While others are being judged that may turn out
  /// to be none, waits for what becomes of them.
  const Mutant *draw(std::unique_lock<std::mutex> &hold) {
    while (failed.empty()) {
      if (made >= wanted || (next == run.order.size() && !inFlight))
        return nullptr;
      if (made + inFlight >= wanted || next == run.order.size()) {
        changed.wait(hold);
        continue;
      }
      const Mutant &mutant = run.order[next++];
      auto known = run.rows.find(mutant.id);
      if (known == run.rows.end() ||
          (again && known->second.outcome == Outcome::Survived)) {
        ++inFlight;
        return &mutant;
      }
      made += isMade(known->second.outcome);
    }
    return nullptr;
  }

  void work(Bench &bench) {
    std::unique_lock<std::mutex> hold(lock);
    while (const Mutant *mutant = draw(hold)) {
      hold.unlock();
      auto row = bench.judge(run.subjectOf(*mutant), *mutant);
      hold.lock();
      --inFlight;
      changed.notify_all();
      if (!row) {
        std::string message = llvm::toString(row.takeError());
        if (failed.empty())
          failed = message;
        return;
      }
      made += isMade(row->outcome);
      llvm::errs() << "[" << made << "/" << std::min(wanted, run.order.size())
                   << "] " << nameOf(row->outcome) << " " << mutant->id;
      if (row->outcome == Outcome::Refused)
        llvm::errs() << ": " << row->verdict << ", " << row->check;
      llvm::errs() << "\n";
      if (file) {
        *file << row->text();
        file->flush();
      }
      run.rows[mutant->id] = std::move(*row);
    }
    changed.notify_all();
  }

  Run &run;
  const size_t wanted;
  llvm::raw_ostream *file;
  std::mutex lock; ///< Of what is below, of the rows and of the file.
  std::condition_variable changed;
  size_t next = 0, made = 0, inFlight = 0;
  std::string failed;
};

/// PTX to list the mutants of, with no task and no device.
bool isText(llvm::StringRef pair) { return list && pair.ends_with(".ptx"); }

llvm::Expected<std::vector<Mutant>> mutantsOfFile(llvm::StringRef path) {
  auto text = readFile(path, maxFileBytes);
  if (!text)
    return text.takeError();
  auto mutants = mutantsOf(llvm::sys::path::stem(path), *text);
  if (!mutants)
    return addContext(mutants.takeError(), path);
  return mutants;
}

llvm::Expected<std::vector<Mutant>> prepareOne(llvm::StringRef pair, Run &run,
                                               Bench &bench) {
  auto [task, answer] = pair.split('=');
  if (answer.empty())
    return makeError(ErrorKind::BadInput,
                     "got '" + pair + "', wanted TASK.json=ANSWER.md");
  std::string name = llvm::sys::path::stem(answer).str();
  for (const Subject &other : run.subjects)
    if (other.name == name)
      return makeError(ErrorKind::BadInput,
                       "two answers are called '" + name + "'");
  auto subject = bench.prepare(name, task, answer);
  if (!subject)
    return subject.takeError();
  auto mutants = mutantsOf(name, subject->built.build->ptx);
  if (!mutants)
    return addContext(mutants.takeError(), name);
  run.subjects.push_back(std::move(*subject));
  return mutants;
}

/// `bench`: null where all are texts.
llvm::Error prepare(Run &run, Bench *bench) {
  std::vector<std::vector<Mutant>> all;
  for (const std::string &pair : pairs) {
    auto mutants =
        isText(pair) ? mutantsOfFile(pair) : prepareOne(pair, run, *bench);
    if (!mutants)
      return mutants.takeError();
    all.push_back(std::move(*mutants));
  }
  if (only.empty()) {
    run.order = choose(std::move(all), list ? total : SIZE_MAX, seed);
    return llvm::Error::success();
  }
  for (const std::vector<Mutant> &mutants : all)
    for (const Mutant &mutant : mutants)
      if (llvm::is_contained(only, mutant.id))
        run.order.push_back(mutant);
  return llvm::Error::success();
}

/// Arguments that do not hold, or too many of them.
bool checkArguments(const Run &run, const Score &score) {
  bool good = true;
  for (const auto &[id, sentence] : run.arguments) {
    auto row = run.rows.find(id);
    if (row == run.rows.end() || row->second.outcome != Outcome::Refused)
      continue;
    llvm::outs() << "argued to be equal, and refused: " << id << "\n";
    good = false;
  }
  if (double(score.dropped()) > mostDropped * double(score.made)) {
    llvm::outs() << "more than a tenth is dropped as equal\n";
    good = false;
  }
  return good;
}

llvm::Expected<int> finish(const Run &run) {
  std::vector<Row> rows;
  std::string text = headings();
  size_t made = 0;
  for (const Mutant &mutant : run.order) {
    if (made == total && only.empty())
      break;
    auto found = run.rows.find(mutant.id);
    if (found == run.rows.end())
      continue;
    made += isMade(found->second.outcome);
    rows.push_back(found->second);
    text += found->second.text();
  }
  // Now in the order in which they were drawn, each mutant once.
  if (!results.empty() && only.empty())
    if (llvm::Error error = writeOutput(results, text))
      return std::move(error);
  std::map<std::string, std::string> sources;
  for (const Subject &subject : run.subjects)
    sources[subject.name] = subject.candidate.source;
  Score score = report(rows, run.arguments, sources, llvm::outs());
  bool good = checkArguments(run, score);
  if (score.percent() < wanted) {
    llvm::outs() << llvm::format("wanted are %.1f %%\n", double(wanted));
    good = false;
  }
  return good ? 0 : 3;
}

llvm::Expected<int> run() {
  Run run;
  if (pairs.empty())
    return makeError(ErrorKind::BadInput, "TASK=ANSWER is missing; see --help");
  if (!argumentFile.empty()) {
    auto text = readFile(argumentFile, maxFileBytes);
    if (!text)
      return text.takeError();
    auto arguments = readArguments(*text);
    if (!arguments)
      return addContext(arguments.takeError(), argumentFile);
    run.arguments = std::move(*arguments);
  }
  if (!results.empty() && only.empty() && llvm::sys::fs::exists(results)) {
    auto text = readFile(results, maxFileBytes);
    if (!text)
      return text.takeError();
    auto rows = readRows(*text);
    if (!rows)
      return addContext(rows.takeError(), results);
    run.rows = std::move(*rows);
  }
  unsigned workers =
      jobs ? unsigned(jobs) : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<Bench>> benches;
  if (llvm::all_of(pairs, isText))
    workers = 0;
  else if (list)
    workers = 1;
  for (unsigned i = 0; i < workers; ++i) {
    auto bench = Bench::open(device, allowUnsandboxed, limit, seed);
    if (!bench)
      return bench.takeError();
    benches.push_back(std::move(*bench));
  }
  if (llvm::Error error =
          prepare(run, benches.empty() ? nullptr : benches.front().get()))
    return std::move(error);
  if (list) {
    for (const Mutant &mutant : run.order)
      llvm::outs() << mutant.id << "\t" << mutant.before << "\t"
                   << (mutant.after.empty() ? "(nothing)" : mutant.after)
                   << "\n";
    return 0;
  }
  std::unique_ptr<llvm::raw_fd_ostream> file;
  if (!results.empty() && only.empty()) {
    // What a stopped run left may end within a line.
    std::string text = headings();
    for (const auto &[id, row] : run.rows)
      text += row.text();
    if (llvm::Error error = writeOutput(results, text))
      return std::move(error);
    std::error_code error;
    file = std::make_unique<llvm::raw_fd_ostream>(results, error,
                                                  llvm::sys::fs::OF_Append);
    if (error)
      return makeError(ErrorKind::BadInput,
                       "cannot write " + results + ": " + error.message());
  }
  Pool pool(run, only.empty() ? size_t(total) : run.order.size(), file.get());
  if (llvm::Error error = pool.judgeAll(benches))
    return std::move(error);
  file.reset();
  if (!only.empty())
    for (const auto &[id, row] : run.rows)
      llvm::outs() << id << ": " << nameOf(row.outcome) << " " << row.verdict
                   << " " << row.check << "\n"
                   << printable(row.message + "\n" + row.evidence,
                                /*keepLines=*/true)
                   << "\n";
  return finish(run);
}

int toolMain(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(argc, argv,
                                   "fsr-mutate: how many faults the "
                                   "validation finds\n",
                                   &llvm::errs()))
    return 2;
  llvm::Expected<int> status = ::run();
  if (status)
    return *status;
  llvm::Error error = status.takeError();
  bool isUsage = kindOf(error) == ErrorKind::BadInput;
  llvm::errs() << "fsr-mutate: "
               << printable(llvm::toString(std::move(error)),
                            /*keepLines=*/true)
               << "\n";
  return isUsage ? 2 : 1;
}

} // namespace

int main(int argc, char **argv) {
  beginTool("fsr-mutate");
  endOnInterrupt([] {});
  return finishTool("fsr-mutate", toolMain(argc, argv));
}
