// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-tune search`: opens everything before the first request is made, runs
// the search, and says how it ended.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "fsr/Search/Report.h"
#include "fsr/Support/Counted.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"
#include "fsr/Terminal/Progress.h"
#include "fsr/Terminal/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace fsr;

static void printSpending(const ChatSpending &spent, llvm::raw_ostream &os) {
  if (!spent.calls)
    return;
  os << llvm::formatv("spent    {0}, {1} tokens in, {2} out, ${3:f4}\n",
                      counted(spent.calls, "call"), spent.promptTokens,
                      spent.answerTokens, spent.usd);
}

static int conclude(const KernelTask &task, const TuneOptions &options,
                    const SearchOutcome &found, llvm::raw_ostream &os) {
  std::string name = printable(task.name);
  for (const std::string &remark : found.remarks)
    llvm::errs() << "fsr-tune: " << printable(remark) << "\n";
  os << name << ": " << countsText(found.trials) << " (trials), "
     << counted(found.asked, "answer") << " asked for, " << found.reused
     << " reused, ended by " << nameOf(found.stop) << "\n";
  if (found.winner) {
    const Record &record = *found.winner;
    os << "winner   r" << record.round << "-s" << record.slot << " "
       << parametersText(record.parameters) << ": " << gainText(record)
       << llvm::formatv(", {0:f1} us -> {1:f1} us, ",
                        record.measurement.originalMedianUs,
                        record.measurement.candidateMedianUs)
       << printable(record.measurement.device) << "\n";
    os << "record   " << options.store << "/records/" << record.taskKey << "/"
       << record.target << "/" << record.id << "\n";
  }
  if (!found.weak.empty()) {
    llvm::errs() << "fsr-tune: " << name << ": " << printable(found.weak)
                 << "\n";
    return exits::weak;
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

static std::string reportOf(const KernelTask &task, const SearchOutcome &found,
                            const ChatSpending &spent) {
  KernelOutcome outcome;
  outcome.name = task.name;
  outcome.key = task.key;
  takeSearch(found, outcome);
  if (outcome.record) {
    outcome.kind = KernelOutcome::Kind::Found;
    outcome.remark = "Found";
  }
  return reportText(outcome, spent);
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
  if (!options.report.empty())
    if (llvm::Error error = checkOutput(options.report))
      return addContext(std::move(error), "option report");
  ProgressKind kind =
      options.quiet ? ProgressKind::None : progressKindOfTerminal();
  Progress progress(llvm::errs(), kind, "", options.store);
  llvm::Expected<std::unique_ptr<ChatClient>> client =
      makeChatClient(options.llm, options.chat);
  if (!client)
    return addContext(client.takeError(), "option llm");
  llvm::Expected<std::unique_ptr<SearchStore>> store =
      openStore(options.store, StoreMode::Search);
  if (!store)
    return store.takeError();
  llvm::Expected<Bench> bench =
      openBench(task, options.device, options.allowUnsandboxed);
  if (!bench)
    return bench.takeError();

  double earlierUsd = 0;
  SearchServices services{
      **client,
      *bench->compiler,
      *bench->device,
      **store,
      [&](const Build &build) { return makeFatbin(bench->toolkit, build); },
      [&](const KernelTask &of) {
        return assemblePtx(bench->toolkit, of.reference.ptx, of.target);
      },
      [&](const SearchEvent &event) {
        progress.event(event, earlierUsd + (*client)->spent().usd);
      },
      [&](const SearchForecast &forecast) {
        // All runs count to the cap that the line names.
        earlierUsd = forecast.cost.before.usd - (*client)->spent().usd;
        if (!options.quiet)
          progress.say(printable(task.name) + ": " + describe(forecast));
      },
      [&](const Build &build) {
        return readInstructions(bench->toolkit, build);
      }};
  progress.begin(progressSubject(
      task.name, options.search,
      options.chat.budget.usd.value_or(ChatBudget::defaultUsd)));
  SearchOutcome found = runSearch(task, options.search, services);
  progress.end();
  ChatSpending spent = (*client)->spent();
  int status = conclude(task, options, found, llvm::outs());
  printSpending(spent, llvm::outs());
  if (!options.report.empty())
    if (llvm::Error error =
            writeOutput(options.report, reportOf(task, found, spent)))
      return makeError(ErrorKind::Unavailable,
                       "report: " + llvm::toString(std::move(error)));
  return status;
}
