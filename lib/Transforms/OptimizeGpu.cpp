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
#include "fsr/Terminal/Progress.h"

#include "mlir/IR/Remarks.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

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
    bool tasksCounted = false;
  };

  llvm::Error checkOptions();
  llvm::Error openServices();
  llvm::Expected<std::string> targetOfDevice();
  llvm::Error search(fsr::KernelSite &site, llvm::StringRef target,
                     fsr::KernelOutcome &outcome);
  llvm::Error extract(fsr::KernelSite &site, llvm::StringRef target,
                      fsr::KernelOutcome &outcome);
  llvm::Expected<fsr::ChatOptions> chatOptions();
  fsr::SearchOptions searchOptions();
  fsr::ProgressKind progressKind();
  void printForecast(llvm::StringRef kernel,
                     const fsr::SearchForecast &forecast);
  llvm::Error onMissing(fsr::KernelSite &site, llvm::StringRef target,
                        fsr::KernelOutcome &outcome);

  fsr::OnMiss missAction = fsr::OnMiss::Keep;
  std::unique_ptr<fsr::SearchStore> store;
  std::optional<Services> services;
  fsr::Replacer *replacer = nullptr;
  /// On only while a search runs: diagnostics have the terminal to themselves.
  std::optional<fsr::Progress> shown;
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
  if (compileJobs > 256)
    return fsr::makeError(ErrorKind::BadInput,
                          "option compile-jobs: got " +
                              llvm::Twine(unsigned(compileJobs)) +
                              ", wanted 0 to 256");
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
  if (!report.empty())
    if (llvm::Error error = fsr::checkOutput(report))
      return fsr::addContext(std::move(error), "option report");
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
  if (llvm::Error error =
          fsr::checkBudget({double(budgetUsd), int64_t(budgetTokens)}))
    return std::move(error);
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
  // A pass that is made by code has values and no occurrences.
  if (budgetUsd.hasValue() || budgetUsd != fsr::ChatBudget::defaultUsd)
    options.budget.usd = budgetUsd;
  if (budgetTokens.hasValue() || budgetTokens != 0)
    options.budget.tokens = budgetTokens;
  options.spending = fsr::storeFolder(storePath) + "/spending";
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
  options.compileJobs = compileJobs;
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

fsr::ProgressKind OptimizeGpuPass::progressKind() {
  fsr::ProgressKind kind = fsr::progressKindOfTerminal();
  switch (progress) {
  case fsr::ProgressMode::On:
    return kind;
  case fsr::ProgressMode::Auto:
    if (kind == fsr::ProgressKind::Live && !quiet)
      return kind;
    break;
  case fsr::ProgressMode::Off:
    break;
  }
  return fsr::ProgressKind::None;
}

void OptimizeGpuPass::printForecast(llvm::StringRef kernel,
                                    const fsr::SearchForecast &forecast) {
  // Said without being asked for: it is the moment to stop.
  if (quiet || progress == fsr::ProgressMode::Off)
    return;
  shown->say((kernel + ": " + describe(forecast)).str());
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

  double earlierUsd = 0;
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
      [&](const fsr::SearchEvent &event) {
        shown->event(event, earlierUsd + services->client->spent().usd);
      },
      [&](const fsr::SearchForecast &forecast) {
        // All runs count to the cap that the line names.
        earlierUsd = forecast.cost.before.usd - services->client->spent().usd;
        printForecast(site.name, forecast);
      },
      [&](const fsr::Build &build) {
        return fsr::readInstructions(services->toolkit, build);
      }};
  if (!std::exchange(services->tasksCounted, true))
    if (llvm::Error error = services->client->countTasks(replacer->taskKeys()))
      return keep(std::move(error));
  fsr::ProgressSubject subject =
      fsr::progressSubject(site.name, searchOptions(), budgetUsd);
  subject.number = replacer->number();
  subject.of = replacer->numTaken();
  shown->begin(std::move(subject));
  fsr::SearchOutcome found = fsr::runSearch(*task, searchOptions(), with);
  shown->end();
  for (const std::string &text : found.remarks)
    remark::analysis(
        loc,
        remark::RemarkOpts::name("Search").category("fsr").function(site.name))
        << remark::reason("{0}", text);
  fsr::takeSearch(found, outcome);
  if (!found.weak.empty())
    replacer->trouble(loc, "kernel '" + site.name + "': " + found.weak);
  if (!found.trouble.empty())
    replacer->trouble(loc, "kernel '" + site.name +
                               "': search cut short: " + found.trouble);
  if (found.winner && !found.pending.empty())
    remark::analysis(loc, remark::RemarkOpts::name("AnswersPending")
                              .category("fsr")
                              .function(site.name))
        << remark::reason("answers pending: {0}",
                          llvm::join(found.pending, ", "));
  if (found.winner && found.stop == fsr::SearchStop::Budget)
    remark::analysis(loc, remark::RemarkOpts::name("BudgetReached")
                              .category("fsr")
                              .function(site.name))
        << remark::reason("{0}", found.budget);
  if (outcome.record &&
      outcome.record->evidence.level < fsr::EvidenceLevel::Measured &&
      accept != fsr::AcceptLevel::Modelled) {
    outcome.record.reset();
    outcome.remark = "OnlyModelled";
    outcome.reason = "only modelled";
    outcome.detail =
        "the best candidate was validated and timed by the model of a virtual "
        "device; accept=modelled takes it, and a search on a GPU measures it";
  }
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
      return onHit == fsr::OnHit::Search || store->isUnfinished(taskKey);
    };
    options.deviceTarget = [&] { return targetOfDevice(); };
    shown.emplace(llvm::errs(), progressKind(),
                  "fsr: ", fsr::storeFolder(storePath));
  }
  fsr::Replacer run(module, options);
  replacer = &run;
  LogicalResult result = run.run(store.get(), [&](fsr::KernelSite &site,
                                                  llvm::StringRef chosenTarget,
                                                  fsr::KernelOutcome &outcome) {
    return onMissing(site, chosenTarget, outcome);
  });
  replacer = nullptr;
  shown.reset();
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
