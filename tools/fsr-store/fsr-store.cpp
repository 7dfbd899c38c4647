// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsr-store: what the keeper of a store needs. docs/tools.md is the page.
//
// Exit status: 0; 1 where something in a store is not what it should be, or a
// store cannot be read or written; 2 where the command line cannot be used.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "fsr/Store/Inventory.h"
#include "fsr/Store/Store.h"
#include "fsr/Support/Counted.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Tool.h"
#include "fsr/Terminal/Text.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace fsr;
namespace cl = llvm::cl;

namespace {

constexpr int exitFaults = 1;
constexpr int exitUsage = 2;

cl::OptionCategory category("Options of fsr-store");

cl::SubCommand list("list", "One line a task and target");
cl::SubCommand show("show", "The search of one task, candidate by candidate");
cl::SubCommand verify("verify", "Look at every byte; exit status 1 on a fault");
cl::SubCommand merge("merge", "Copy from one store what another lacks");
cl::SubCommand prune("prune", "Remove records that were beaten");

cl::opt<std::string> store(cl::Positional, cl::desc("STORE"), cl::Optional,
                           cl::sub(list), cl::sub(show), cl::sub(verify),
                           cl::sub(prune), cl::cat(category));

cl::opt<std::string> key(cl::Positional, cl::desc("KEY-PREFIX"), cl::Optional,
                         cl::sub(show), cl::cat(category));
cl::opt<std::string>
    source("source", cl::ValueOptional, cl::value_desc("r1-s2"),
           cl::desc("Print a candidate's source; without a name the winner's"),
           cl::sub(show), cl::cat(category));
cl::list<std::string>
    diff("diff", cl::multi_val(2), cl::value_desc("r1-s1 r1-s2"),
         cl::desc("Print how the sources of two candidates differ"),
         cl::sub(show), cl::cat(category));

cl::opt<std::string>
    trial("trial", cl::value_desc("r1-s2"),
          cl::desc("Print all that is kept of a candidate's trials: file, "
                   "samples, conditions, evidence"),
          cl::sub(show), cl::cat(category));

cl::opt<std::string> from(cl::Positional, cl::desc("FROM"), cl::Optional,
                          cl::sub(merge), cl::cat(category));
cl::opt<std::string> into(cl::Positional, cl::desc("INTO"), cl::Optional,
                          cl::sub(merge), cl::cat(category));

cl::opt<unsigned> keep("keep", cl::init(1), cl::value_desc("N"),
                       cl::desc("Records to keep a task and target (default "
                                "1)"),
                       cl::sub(prune), cl::cat(category));
cl::opt<bool> trials("trials", cl::desc("Remove all trials as well"),
                     cl::sub(prune), cl::cat(category));
cl::opt<bool> talks("talks", cl::desc("Remove all talks as well"),
                    cl::sub(prune), cl::cat(category));
cl::opt<bool> dryRun("dry-run", cl::desc("Only say what would be removed"),
                     cl::sub(prune), cl::cat(category));

} // namespace

static int fail(llvm::Error error) {
  bool isUsage = kindOf(error) == ErrorKind::BadInput;
  llvm::errs() << "fsr-store: "
               << printable(llvm::toString(std::move(error)), true) << "\n";
  return isUsage ? exitUsage : exitFaults;
}

static int printFaults(const std::vector<std::string> &faults) {
  for (const std::string &fault : faults)
    llvm::errs() << "fsr-store: " << printable(fault) << "\n";
  return faults.empty() ? 0 : exitFaults;
}

/// Reading a store that has damage is no failure of `list` or `show`; that it
/// has some is said.
static llvm::Expected<StoreHistory> open(llvm::StringRef folder) {
  if (llvm::Error error = openStore(folder, StoreMode::Read).takeError())
    return error;
  llvm::Expected<StoreHistory> history = readHistory(folder);
  if (!history)
    return history;
  size_t faults = llvm::count_if(history->passedOver, [](const StoreEntry &e) {
    return e.state == StoreEntry::State::Faulty;
  });
  if (faults)
    llvm::errs() << "fsr-store: damaged things left out: " << faults
                 << "; see fsr-store verify\n";
  return history;
}

static int runList() {
  llvm::Expected<StoreHistory> history = open(store);
  if (!history)
    return fail(history.takeError());
  listStore(*history, llvm::outs());
  return 0;
}

static int runShow() {
  llvm::Expected<StoreHistory> history = open(store);
  if (!history)
    return fail(history.takeError());
  ShowOptions options;
  options.source = source.getNumOccurrences() > 0;
  options.sourceOf = source;
  options.diff.assign(diff.begin(), diff.end());
  options.trial = trial;
  if (options.diff.size() > 2 ||
      options.source + !options.diff.empty() + !options.trial.empty() > 1)
    return fail(makeError(ErrorKind::BadInput,
                          "--diff, --source or --trial, and one of them once"));
  if (llvm::Error error = showTask(*history, key, options, llvm::outs()))
    return fail(std::move(error));
  return 0;
}

static int runVerify() {
  if (llvm::Error error = openStore(store, StoreMode::Read).takeError())
    return fail(std::move(error));
  size_t records = 0, tasks = 0, talks = 0, trials = 0, faults = 0;
  auto say = [](bool isFault, llvm::StringRef path, llvm::StringRef note) {
    llvm::outs() << coloured(llvm::outs(), isFault ? Colour::Bad : Colour::Dim,
                             isFault ? "fault" : "note")
                 << ": " << printable(path) << ": " << printable(note) << "\n";
  };
  llvm::Error error = forEachEntry(store, "", [&](StoreEntry &entry) {
    records += entry.get<Record>() != nullptr;
    tasks += entry.get<KernelTask>() != nullptr;
    talks += entry.get<Talk>() != nullptr;
    trials += entry.get<Trial>() != nullptr;
    if (entry.state == StoreEntry::State::Whole)
      return llvm::Error::success();
    bool isFault = entry.state == StoreEntry::State::Faulty;
    faults += isFault;
    say(isFault, entry.path, entry.note);
    return llvm::Error::success();
  });
  if (!error)
    error = forEachSpendingFault(
        store, [&](const std::string &path, const std::string &why) {
          ++faults;
          say(/*isFault=*/true, path, why);
        });
  if (error)
    return fail(std::move(error));
  llvm::outs() << counted(records, "record") << ", " << counted(tasks, "task")
               << ", " << counted(talks, "talk") << ", "
               << counted(trials, "trial") << " are whole; "
               << counted(faults, "fault") << "\n";
  return faults ? exitFaults : 0;
}

static int runMerge() {
  llvm::Expected<MergeReport> report = mergeStores(from, into);
  if (!report)
    return fail(report.takeError());
  for (const std::string &path : report->copied)
    llvm::outs() << "copied " << printable(path) << "\n";
  for (const std::string &path : report->kept)
    llvm::outs() << "kept   " << printable(path) << ": another one was there\n";
  int status = printFaults(report->faults);
  llvm::outs() << report->copied.size() << " copied, " << report->same
               << " there already, " << report->kept.size()
               << " kept as they were, " << report->faults.size()
               << " damaged\n";
  return status;
}

static int runPrune() {
  PruneOptions options;
  options.keep = keep;
  options.trials = trials;
  options.talks = talks;
  options.dryRun = dryRun;
  llvm::Expected<PruneReport> report = pruneStore(store, options);
  if (!report)
    return fail(report.takeError());
  for (const std::string &path : report->removed)
    llvm::outs() << (dryRun ? "would remove " : "removed ") << printable(path)
                 << "\n";
  int status = printFaults(report->faults);
  llvm::outs() << llvm::formatv("{0} {1}, {2:f1} KiB\n", report->removed.size(),
                                dryRun ? "to remove" : "removed",
                                report->bytes / 1024.0);
  return status;
}

/// What a command needs is asked for here, since LLVM's own message does not
/// name it.
static llvm::Error
checkGiven(std::initializer_list<const cl::opt<std::string> *> wanted) {
  for (const cl::opt<std::string> *one : wanted)
    if (!one->getNumOccurrences())
      return makeError(ErrorKind::BadInput,
                       one->HelpStr + " is missing; see --help");
  return llvm::Error::success();
}

static int run() {
  if (list)
    return runList();
  if (show)
    return runShow();
  if (verify)
    return runVerify();
  return merge ? runMerge() : runPrune();
}

static int toolMain(int argc, char **argv) {
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "fsr-store\n"; });
  for (cl::SubCommand *command : {&list, &show, &verify, &merge, &prune})
    cl::HideUnrelatedOptions(category, *command);
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(
          argc, argv, "fsr-store: looks after a store of winners\n",
          &llvm::errs()))
    return exitUsage;
  if (!list && !show && !verify && !merge && !prune) {
    llvm::errs() << "fsr-store: a command is missing: list, show, verify, "
                    "merge or prune; see --help\n";
    return exitUsage;
  }
  llvm::Error missing = merge  ? checkGiven({&from, &into})
                        : show ? checkGiven({&store, &key})
                               : checkGiven({&store});
  if (missing)
    return fail(std::move(missing));
  return run();
}

int main(int argc, char **argv) {
  // Threads that are started later inherit what this one blocks.
  beginTool("fsr-store");
  return finishTool("fsr-store", toolMain(argc, argv));
}
