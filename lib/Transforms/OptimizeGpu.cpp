// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsr-optimize-gpu: a store hit is spliced at once; a miss may be searched. The
// services of a search (provider, toolkit, device) are opened when the first
// kernel misses, before any request is made, so that a build whose kernels all
// hit starts no process.
//
//===----------------------------------------------------------------------===//

#include "Replacer.h"

#include "fsr/Search/Search.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Json.h"

#include "mlir/IR/Remarks.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

namespace fsr {
#define GEN_PASS_DEF_OPTIMIZEGPUPASS
#include "fsr/Transforms/Passes.h.inc"
} // namespace fsr

using namespace mlir;
using fsr::ErrorKind;

namespace {

struct OptimizeGpuPass : fsr::impl::OptimizeGpuPassBase<OptimizeGpuPass> {
  using OptimizeGpuPassBase::OptimizeGpuPassBase;
  // The pass manager clones passes; what a run opened stays with that run.
  OptimizeGpuPass(const OptimizeGpuPass &other) : OptimizeGpuPassBase(other) {}

  void getDependentDialects(DialectRegistry &registry) const final {
    fsr::insertSpliceDialects(registry);
  }
  void runOnOperation() final;

private:
  /// What one search needs of the world.
  struct Services {
    std::unique_ptr<fsr::ChatClient> client;
    std::unique_ptr<fsr::Compiler> compiler;
    std::unique_ptr<fsr::Device> device;
    fsr::Toolkit toolkit;
  };

  llvm::Error checkOptions();
  llvm::Error openServices();
  llvm::Expected<std::string> targetOfDevice();
  llvm::Error search(fsr::KernelSite &site, llvm::StringRef target,
                     fsr::KernelOutcome &outcome);
  llvm::Error extract(fsr::KernelSite &site, llvm::StringRef target,
                      fsr::KernelOutcome &outcome);
  void describeFailure(const fsr::SearchOutcome &found,
                       fsr::KernelOutcome &outcome);
  llvm::Expected<fsr::ChatOptions> chatOptions();
  fsr::SearchOptions searchOptions();
  /// There while the search of a task is unfinished.
  std::string unfinishedMark(llvm::StringRef taskKey) {
    llvm::SmallString<256> path(fsr::storeFolder(storePath));
    llvm::sys::path::append(path, "searches", taskKey + ".json");
    return std::string(path);
  }
  void printProgress(llvm::StringRef kernel, const fsr::SearchEvent &event);
  llvm::Error onMissing(fsr::KernelSite &site, llvm::StringRef target,
                        fsr::KernelOutcome &outcome);

  fsr::OnMiss missAction = fsr::OnMiss::Keep;
  std::unique_ptr<fsr::SearchStore> store;
  std::optional<Services> services;
  fsr::Replacer *replacer = nullptr;
};

llvm::Error OptimizeGpuPass::checkOptions() {
  missAction = onMiss;
  if (missAction == fsr::OnMiss::Default)
    missAction = llm.empty() ? fsr::OnMiss::Keep : fsr::OnMiss::Search;
  if (missAction == fsr::OnMiss::Search && llm.empty())
    return fsr::makeError(
        ErrorKind::BadInput,
        "on-miss=search needs an LLM: give llm=openai:MODEL, "
        "anthropic:MODEL, exec:COMMAND, exchange:FOLDER or replay:FOLDER");
  const struct {
    llvm::StringLiteral name;
    unsigned value, most;
  } counts[] = {{"width", width, 64},
                {"rounds", rounds, 64},
                {"in-flight", inFlight, 64},
                {"parameter-sets", parameterSets, 256},
                {"llm-timeout", llmTimeout, 86400}};
  for (const auto &count : counts)
    if (count.value < 1 || count.value > count.most)
      return fsr::makeError(ErrorKind::BadInput,
                            "option " + count.name + ": got " +
                                llvm::Twine(count.value) + ", wanted 1 to " +
                                llvm::Twine(count.most));
  if (!(solStop >= 0 && solStop <= 1))
    return fsr::makeError(ErrorKind::BadInput,
                          llvm::formatv("option sol-stop: got {0}, wanted 0 to "
                                        "1",
                                        double(solStop)));
  if (!target.empty()) {
    llvm::Expected<fsr::Target> parsed = fsr::Target::parse(target);
    if (!parsed)
      return fsr::addContext(parsed.takeError(), "option target");
  }
  std::string folder = fsr::storeFolder(storePath);
  bool writes =
      missAction == fsr::OnMiss::Search || missAction == fsr::OnMiss::Extract;
  if (folder.empty()) {
    if (writes)
      return fsr::makeError(
          ErrorKind::BadInput,
          "no store: give store=FOLDER or set FSR_STORE; what a search finds "
          "must be kept");
    return llvm::Error::success();
  }
  llvm::Expected<std::unique_ptr<fsr::SearchStore>> opened = fsr::openStore(
      folder, writes ? fsr::StoreMode::Search : fsr::StoreMode::Read);
  if (!opened)
    return opened.takeError();
  store = std::move(*opened);
  if (missAction != fsr::OnMiss::Search)
    return llvm::Error::success();
  // A provider that is misspelt is an error even where every kernel hits.
  llvm::Expected<fsr::ChatOptions> chat = chatOptions();
  if (!chat)
    return chat.takeError();
  llvm::Expected<std::unique_ptr<fsr::ChatClient>> client =
      fsr::makeChatClient(llm, *chat);
  if (!client)
    return fsr::addContext(client.takeError(), "option llm");
  services.emplace();
  services->client = std::move(*client);
  return llvm::Error::success();
}

llvm::Expected<fsr::ChatOptions> OptimizeGpuPass::chatOptions() {
  if (!(budgetUsd >= 0 && budgetUsd <= 1e9))
    return fsr::makeError(ErrorKind::BadInput,
                          llvm::formatv("option budget-usd: got {0}, wanted 0 "
                                        "(no limit) or more dollars",
                                        double(budgetUsd)));
  if (budgetTokens < 0)
    return fsr::makeError(ErrorKind::BadInput,
                          "option budget-tokens: got " +
                              llvm::Twine(int64_t(budgetTokens)) +
                              ", wanted 0 (no limit) or more");
  if (maxAnswerTokens < 1)
    return fsr::makeError(ErrorKind::BadInput,
                          "option max-answer-tokens: got " +
                              llvm::Twine(int64_t(maxAnswerTokens)) +
                              ", wanted 1 or more");
  fsr::ChatOptions options;
  options.replayStrict = replayStrict;
  options.url = llmUrl;
  options.timeout = std::chrono::seconds(llmTimeout);
  options.inFlight = inFlight;
  options.maxAnswerTokens = maxAnswerTokens;
  options.prices = prices;
  options.budget.usd = budgetUsd;
  options.budget.tokens = budgetTokens;
  return options;
}

fsr::SearchOptions OptimizeGpuPass::searchOptions() {
  fsr::SearchOptions options;
  options.kind = searchKind;
  options.width = width;
  options.rounds = rounds;
  options.patience = patience;
  options.solStop = solStop;
  options.parameterSets = parameterSets;
  options.seed = seed;
  options.prompts = prompts;
  options.replayStrict = replayStrict;
  return options;
}

llvm::Error OptimizeGpuPass::openServices() {
  if (services->device)
    return llvm::Error::success();
  llvm::Expected<fsr::Toolkit> toolkit = fsr::findToolkit();
  if (!toolkit)
    return toolkit.takeError();
  services->toolkit = std::move(*toolkit);
  fsr::CompilerOptions compilerOptions;
  compilerOptions.allowUnsandboxed = allowUnsandboxed;
  llvm::Expected<std::unique_ptr<fsr::Compiler>> compiler =
      fsr::makeCudaCompiler(compilerOptions);
  if (!compiler)
    return compiler.takeError();
  services->compiler = std::move(*compiler);
  llvm::Expected<std::unique_ptr<fsr::Device>> opened = fsr::openDevice(device);
  if (!opened)
    return fsr::addContext(opened.takeError(), "option device");
  services->device = std::move(*opened);
  return llvm::Error::success();
}

llvm::Expected<std::string> OptimizeGpuPass::targetOfDevice() {
  if (llvm::Error error = openServices())
    return std::move(error);
  llvm::Expected<fsr::DeviceDescription> description =
      services->device->describe();
  if (!description)
    return description.takeError();
  llvm::Expected<fsr::Target> parsed = fsr::Target::parse(description->chip);
  if (!parsed)
    return fsr::addContext(parsed.takeError(), "the device's chip");
  return parsed->family();
}

void OptimizeGpuPass::describeFailure(const fsr::SearchOutcome &found,
                                      fsr::KernelOutcome &outcome) {
  if (!found.pending.empty()) {
    outcome.remark = "AnswersPending";
    outcome.reason = "answers pending";
    outcome.detail = "answers pending: " + llvm::join(found.pending, ", ");
    return;
  }
  llvm::MapVector<llvm::StringRef, unsigned> verdicts;
  for (const fsr::Trial &trial : found.trials)
    ++verdicts[nameOf(trial.verdict)];
  std::string counts;
  llvm::raw_string_ostream os(counts);
  llvm::interleaveComma(verdicts, os, [&](const auto &entry) {
    os << entry.second << " " << entry.first;
  });
  outcome.remark = "SearchFailed";
  outcome.rejected = true;
  outcome.reason = "no candidate accepted";
  outcome.detail = "no candidate accepted of " +
                   llvm::utostr(found.trials.size()) +
                   (counts.empty() ? "" : ": " + counts);
}

static std::string gainOf(const fsr::Measurement &measurement) {
  return llvm::formatv("{0:f2}x [{1:f2}, {2:f2}]", measurement.speedup,
                       measurement.speedupLow, measurement.speedupHigh);
}

void OptimizeGpuPass::printProgress(llvm::StringRef kernel,
                                    const fsr::SearchEvent &event) {
  if (!progress)
    return;
  std::string line;
  llvm::raw_string_ostream os(line);
  os << "fsr: " << kernel << " r" << event.round;
  if (event.kind != fsr::SearchEvent::Kind::RoundEnded)
    os << "-s" << event.slot;
  os << ": ";
  switch (event.kind) {
  case fsr::SearchEvent::Kind::Asked:
    os << "asking";
    break;
  case fsr::SearchEvent::Kind::Answered:
    os << "answered";
    break;
  case fsr::SearchEvent::Kind::Pending:
    os << "answer pending";
    break;
  case fsr::SearchEvent::Kind::Finished:
    os << nameOf(event.trial->verdict);
    for (const auto &[name, value] : event.trial->parameters)
      os << " " << name << "=" << value;
    if (event.trial->measurement)
      os << llvm::formatv(" {0:f1} us, {1:f2}x",
                          event.trial->measurement->candidateMedianUs,
                          event.trial->measurement->speedup);
    break;
  case fsr::SearchEvent::Kind::RoundEnded:
    os << (event.summary->pending ? "waits" : "done");
    for (const auto &[verdict, count] : event.summary->verdicts)
      os << ", " << count << " " << nameOf(verdict);
    break;
  }
  if (event.best && event.best->measurement)
    os << "; best " << gainOf(*event.best->measurement);
  // One write a line: other writers share the stream.
  os << "\n";
  llvm::errs() << line;
}

llvm::Error OptimizeGpuPass::search(fsr::KernelSite &site,
                                    llvm::StringRef chosenTarget,
                                    fsr::KernelOutcome &outcome) {
  if (llvm::Error error = openServices())
    return error;
  // A device of another family is an error before any request.
  llvm::Expected<std::string> here = targetOfDevice();
  if (!here)
    return here.takeError();
  llvm::Expected<fsr::Target> wanted = fsr::Target::parse(chosenTarget);
  if (!wanted)
    return wanted.takeError();
  if (*here != wanted->family())
    return fsr::makeError(ErrorKind::BadInput,
                          "option device: it is of target " + *here +
                              ", the kernel's is " + wanted->family());
  Location loc = site.kernel->getLoc();
  auto keep = [&](llvm::Error error) {
    outcome.remark = "SearchTrouble";
    outcome.reason = "the search had trouble";
    outcome.detail = llvm::toString(std::move(error));
    replacer->trouble(loc,
                      "kernel '" + site.name + "' kept: " + outcome.detail);
    return llvm::Error::success();
  };
  llvm::Expected<fsr::KernelTask> task = fsr::cutKernel(site, chosenTarget);
  if (!task)
    return keep(task.takeError());
  if (llvm::Error error = fsr::lowerReferenceInChild(*task))
    return keep(std::move(error));

  fsr::SearchServices with{
      *services->client,
      *services->compiler,
      *services->device,
      *store,
      [&](const fsr::Build &build) {
        return fsr::makeFatbin(services->toolkit, build);
      },
      [&](const fsr::KernelTask &of) {
        return fsr::assemblePtx(services->toolkit, of.reference.ptx, of.target);
      },
      [&](const fsr::SearchEvent &event) { printProgress(site.name, event); }};
  // Rounds outlast runs: answers may come later, or the process may be killed.
  std::string mark = unfinishedMark(task->key);
  if (llvm::Error error = fsr::writeFileAtomically(
          mark, fsr::printJson(llvm::json::Object{{"format_version", 1},
                                                  {"kernel", site.name}})))
    return keep(std::move(error));
  fsr::SearchOutcome found = fsr::runSearch(*task, searchOptions(), with);
  if (found.stop != fsr::SearchStop::Pending &&
      found.stop != fsr::SearchStop::Trouble)
    (void)llvm::sys::fs::remove(mark);
  for (const std::string &text : found.remarks)
    remark::analysis(
        loc,
        remark::RemarkOpts::name("Search").category("fsr").function(site.name))
        << remark::reason("{0}", text);
  outcome.trials = std::move(found.trials);
  outcome.rounds = std::move(found.rounds);
  outcome.stop = nameOf(found.stop);
  outcome.pending = found.pending;
  if (!found.trouble.empty())
    replacer->trouble(loc, "kernel '" + site.name +
                               "': search cut short: " + found.trouble);
  if (found.winner && !found.pending.empty())
    remark::analysis(loc, remark::RemarkOpts::name("AnswersPending")
                              .category("fsr")
                              .function(site.name))
        << remark::reason("answers pending: {0}",
                          llvm::join(found.pending, ", "));
  bool isModelled = found.winner &&
                    found.winner->evidence.level < fsr::EvidenceLevel::Measured;
  if (!isModelled || accept == fsr::AcceptLevel::Modelled)
    outcome.record = std::move(found.winner);
  if (outcome.record)
    return llvm::Error::success();
  found.trials = outcome.trials;
  if (!found.trouble.empty()) {
    outcome.remark = "SearchTrouble";
    outcome.reason = "the search had trouble";
    outcome.detail = found.trouble;
    return llvm::Error::success();
  }
  if (isModelled) {
    outcome.remark = "OnlyModelled";
    outcome.reason = "only modelled";
    outcome.detail =
        "the best candidate was validated and timed by the model of a virtual "
        "device; accept=modelled takes it, and a search on a GPU measures it";
    return llvm::Error::success();
  }
  describeFailure(found, outcome);
  return llvm::Error::success();
}

llvm::Error OptimizeGpuPass::extract(fsr::KernelSite &site,
                                     llvm::StringRef chosenTarget,
                                     fsr::KernelOutcome &outcome) {
  llvm::Expected<fsr::KernelTask> task = fsr::cutKernel(site, chosenTarget);
  if (!task)
    return task.takeError();
  if (llvm::Error error = fsr::lowerReferenceInChild(*task)) {
    outcome.detail = llvm::toString(std::move(error));
    replacer->trouble(site.kernel->getLoc(),
                      "kernel '" + site.name +
                          "' extracted without its PTX: " + outcome.detail);
  }
  outcome.remark = "Extracted";
  outcome.reason = "extracted";
  if (outcome.detail.empty())
    outcome.detail = "written to the store's tasks";
  return store->addTask(*task);
}

llvm::Error OptimizeGpuPass::onMissing(fsr::KernelSite &site,
                                       llvm::StringRef chosenTarget,
                                       fsr::KernelOutcome &outcome) {
  switch (missAction) {
  case fsr::OnMiss::Search:
    return search(site, chosenTarget, outcome);
  case fsr::OnMiss::Extract:
    return extract(site, chosenTarget, outcome);
  case fsr::OnMiss::Error:
    return fsr::makeError(ErrorKind::Unavailable,
                          "kernel '" + site.name + "': no record for " +
                              chosenTarget + ", and on-miss=error");
  case fsr::OnMiss::Keep:
  case fsr::OnMiss::Default:
    break;
  }
  return llvm::Error::success();
}

void OptimizeGpuPass::runOnOperation() {
  ModuleOp module = getOperation();
  store.reset();
  services.reset();
  if (llvm::Error error = checkOptions()) {
    emitError(module.getLoc()) << "fsr: " << llvm::toString(std::move(error));
    return signalPassFailure();
  }
  fsr::ReplacerOptions options;
  options.target = target;
  options.only = only;
  options.accept = accept;
  options.strict = strict;
  options.quiet = quiet;
  if (missAction == fsr::OnMiss::Search) {
    options.searchesOn = [&](llvm::StringRef taskKey) {
      return onHit == fsr::OnHit::Search ||
             llvm::sys::fs::exists(unfinishedMark(taskKey));
    };
    options.deviceTarget = [&] { return targetOfDevice(); };
  }
  fsr::Replacer run(module, options);
  replacer = &run;
  LogicalResult result = run.run(store.get(), [&](fsr::KernelSite &site,
                                                  llvm::StringRef chosenTarget,
                                                  fsr::KernelOutcome &outcome) {
    return onMissing(site, chosenTarget, outcome);
  });
  replacer = nullptr;
  fsr::ChatSpending spending;
  if (services)
    spending = services->client->spent();
  services.reset();
  if (!report.empty()) {
    if (llvm::Error error = fsr::writeOutput(
            report, fsr::reportText(run.outcomes(), spending))) {
      emitError(module.getLoc())
          << "fsr: report: " << llvm::toString(std::move(error));
      result = failure();
    }
  }
  if (failed(result))
    return signalPassFailure();
  if (!run.changedModule())
    markAllAnalysesPreserved();
}

} // namespace
