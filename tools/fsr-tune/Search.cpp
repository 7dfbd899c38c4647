// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-tune search`: opens everything before the first request is made, runs
// the search, and says how it ended.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "Interrupt.h"
#include "Progress.h"
#include "Text.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace fsr;

static void printSpending(const ChatSpending &spent, llvm::raw_ostream &os) {
  if (!spent.calls)
    return;
  os << llvm::formatv("spent    {0} calls, {1} tokens in, {2} out, ${3:f4}\n",
                      spent.calls, spent.promptTokens, spent.answerTokens,
                      spent.usd);
}

static int conclude(const KernelTask &task, const TuneOptions &options,
                    const SearchOutcome &found, llvm::raw_ostream &os) {
  std::string name = printable(task.name);
  for (const std::string &remark : found.remarks)
    llvm::errs() << "fsr-tune: " << printable(remark) << "\n";
  os << name << ": " << countsText(found.trials) << " (trials), " << found.asked
     << " answers asked for, " << found.reused << " reused, ended by "
     << nameOf(found.stop) << "\n";
  if (found.winner) {
    const Record &record = *found.winner;
    os << "winner   r" << record.round << "-s" << record.slot << " "
       << parametersText(record.parameters) << ": "
       << gainText(record.measurement)
       << llvm::formatv(", {0:f1} us -> {1:f1} us, ",
                        record.measurement.originalMedianUs,
                        record.measurement.candidateMedianUs)
       << printable(record.measurement.device) << "\n";
    os << "record   " << options.store << "/records/" << record.taskKey << "/"
       << record.target << "/" << record.id << "\n";
  }
  if (!found.trouble.empty()) {
    llvm::errs() << "fsr-tune: search cut short: "
                 << printable(found.trouble, /*keepLines=*/true) << "\n";
    return exits::trouble;
  }
  if (!found.budget.empty())
    os << "budget   " << printable(found.budget)
       << "; under a higher cap the same command goes on\n";
  if (!found.pending.empty()) {
    os << "pending  " << llvm::join(found.pending, ", ") << "\n";
    return exits::pending;
  }
  if (found.winner)
    return 0;
  bool isUnproved = llvm::any_of(found.trials, [](const Trial &trial) {
    return trial.verdict == Verdict::Accepted;
  });
  os << (isUnproved ? "no winner: what was accepted was not measured on a "
                      "device\n"
                    : "no winner: no candidate was accepted\n");
  return exits::noneAccepted;
}

llvm::Expected<int> fsr::searchTask(const KernelTask &task,
                                    const TuneOptions &options) {
  if (options.llm.empty())
    return makeError(ErrorKind::BadInput,
                     "no LLM: give --llm=exchange:FOLDER, --llm=openai:MODEL "
                     "or another provider");
  if (options.store.empty())
    return makeError(ErrorKind::BadInput,
                     "no store: give --store=FOLDER or set FSR_STORE; what a "
                     "search finds must be kept");
  // Threads that are started later inherit what this one blocks.
  static std::mutex storeLock;
  static Progress *shown = nullptr;
  static std::mutex shownLock;
  endOnInterrupt(storeLock, [store = options.store] {
    std::lock_guard<std::mutex> held(shownLock);
    if (shown)
      shown->end();
    llvm::errs() << "fsr-tune: interrupted; what was finished is in '" << store
                 << "'\n";
  });

  llvm::Expected<std::unique_ptr<ChatClient>> client =
      makeChatClient(options.llm, options.chat);
  if (!client)
    return addContext(client.takeError(), "option llm");
  llvm::Expected<std::unique_ptr<SearchStore>> opened =
      openStore(options.store, StoreMode::Search);
  if (!opened)
    return opened.takeError();
  std::unique_ptr<SearchStore> store =
      lockedStore(std::move(*opened), storeLock);
  llvm::Expected<Bench> bench =
      openBench(task, options.device, options.allowUnsandboxed);
  if (!bench)
    return bench.takeError();

  ProgressKind kind =
      options.quiet ? ProgressKind::None : progressKindOfTerminal();
  Progress progress(llvm::errs(), kind, task.name, options.search.rounds,
                    options.search.width);
  auto show = [](Progress *one) {
    std::lock_guard<std::mutex> held(shownLock);
    shown = one;
  };
  show(&progress);
  SearchServices services{
      **client,
      *bench->compiler,
      *bench->device,
      *store,
      [&](const Build &build) { return makeFatbin(bench->toolkit, build); },
      [&](const KernelTask &of) {
        return assemblePtx(bench->toolkit, of.reference.ptx, of.target);
      },
      [&](const SearchEvent &event) {
        progress.event(event, (*client)->spent().usd);
      },
      [&](const SearchForecast &forecast) {
        if (!options.quiet)
          progress.say(printable(task.name) + ": " + describe(forecast));
      }};
  SearchOutcome found = runSearch(task, options.search, services);
  progress.end();
  show(nullptr);
  int status = conclude(task, options, found, llvm::outs());
  printSpending((*client)->spent(), llvm::outs());
  return status;
}
