// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsr-tune: a search on a task file, with no MLIR at hand. docs/tools.md is the
// page.
//
// Exit status: 0 a winner, or a checked candidate that is equal; 1 trouble; 2
// the command line cannot be used; 3 nothing was accepted, or every set of the
// candidate was refused; 4 the task's workload is too weak; 75 answers are
// pending; 130 interrupted, and likewise 128 and the number of another signal
// that ended it.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Interrupt.h"
#include "fsr/Support/Tool.h"
#include "fsr/Terminal/Progress.h"
#include "fsr/Terminal/Text.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace fsr;
namespace cl = llvm::cl;

static constexpr uint64_t maxAnswerBytes = uint64_t(16) << 20;

namespace {

cl::OptionCategory category("Options of fsr-tune");

cl::SubCommand search("search", "Search for a faster kernel");
cl::SubCommand show("show", "Say what a task is, in words");
cl::SubCommand check("check", "Try one candidate by hand; stores nothing");

cl::opt<std::string> taskFile(cl::Positional, cl::desc("TASK"), cl::Optional,
                              cl::sub(search), cl::sub(show), cl::sub(check),
                              cl::cat(category));
cl::opt<std::string> candidateFile(cl::Positional, cl::desc("CANDIDATE"),
                                   cl::Optional, cl::sub(check),
                                   cl::cat(category));
cl::opt<std::string> plan("plan", cl::value_desc("FILE"),
                          cl::desc("The launch plan of a CANDIDATE.cu, as JSON "
                                   "(default CANDIDATE.json)"),
                          cl::sub(check), cl::cat(category));
cl::opt<std::string>
    rung("rung", cl::init("full"), cl::value_desc("quick|full"),
         cl::desc("How far to go: quick, what every candidate of a search "
                  "meets first; or full, the whole ladder (default)"),
         cl::sub(check), cl::cat(category));
cl::opt<bool> strength("strength",
                       cl::desc("Test the task itself first, by dummies"),
                       cl::sub(check), cl::cat(category));
cl::opt<bool> json("json", cl::desc("One JSON object in place of the table"),
                   cl::sub(check), cl::cat(category));
cl::opt<std::string>
    device("device", cl::init("auto"), cl::value_desc("SPEC"),
           cl::desc("cuda, cuda:N, cuda:N+M, virtual, virtual:CHIP, "
                    "exec:COMMAND, or several with commas (default: cuda where "
                    "a driver reports a GPU, virtual else)"),
           cl::sub(search), cl::sub(check), cl::cat(category));
cl::opt<bool> allowUnsandboxed(
    "allow-unsandboxed",
    cl::desc("Compile LLM text even where no sandbox can be set up"),
    cl::sub(search), cl::sub(check), cl::cat(category));
cl::opt<uint64_t> seed("seed", cl::init(0), cl::desc("Of random inputs"),
                       cl::sub(search), cl::sub(check), cl::cat(category));
cl::list<std::string> fixed("set", cl::value_desc("NAME=V"),
                            cl::desc("Fix a parameter; may be repeated"),
                            cl::sub(check), cl::cat(category));
cl::opt<bool> noTiming("no-timing",
                       cl::desc("Only whether the answer is equal, however "
                                "slow it may be"),
                       cl::sub(check), cl::cat(category));

cl::opt<std::string> llm("llm", cl::value_desc("KIND:ARGUMENT"),
                         cl::desc("Where answers come from: exchange:FOLDER, "
                                  "replay:FOLDER, openai:MODEL, "
                                  "anthropic:MODEL, exec:COMMAND"),
                         cl::sub(search), cl::cat(category));
cl::opt<std::string> store("store", cl::value_desc("FOLDER"),
                           cl::desc("Where what is found is kept (default "
                                    "$FSR_STORE)"),
                           cl::sub(search), cl::cat(category));
cl::opt<SearchKind>
    kind("search", cl::init(SearchKind::Fsr), cl::desc("How to search:"),
         cl::values(clEnumValN(SearchKind::Fsr, "fsr",
                               "Rounds that learn from the ones before"),
                    clEnumValN(SearchKind::BestOfN, "best-of-n",
                               "The control: as many answers, no feedback")),
         cl::sub(search), cl::cat(category));
const SearchOptions defaults;
cl::opt<unsigned> width("width", cl::init(defaults.width),
                        cl::desc("Answers a round (default 4)"),
                        cl::sub(search), cl::cat(category));
cl::opt<unsigned> rounds("rounds", cl::init(defaults.rounds),
                         cl::desc("Rounds at the most (default 3)"),
                         cl::sub(search), cl::cat(category));
cl::opt<unsigned> patience("patience", cl::init(defaults.patience),
                           cl::desc("End after so many rounds without a gain; "
                                    "0: never (default 2)"),
                           cl::sub(search), cl::cat(category));
cl::opt<double> solStop("sol-stop", cl::init(defaults.solStop),
                        cl::desc("End at this share of the hardware bound; 0: "
                                 "never (default 0.95)"),
                        cl::sub(search), cl::cat(category));
cl::opt<unsigned>
    parameterSets("parameter-sets", cl::init(defaults.parameterSets),
                  cl::desc("Sets of parameters an answer (default 16)"),
                  cl::sub(search), cl::cat(category));
cl::opt<unsigned>
    compileJobs("compile-jobs", cl::init(defaults.compileJobs),
                cl::desc("Candidates compiled at the same time; 0: as many as "
                         "there are processors (default 0)"),
                cl::sub(search), cl::cat(category));
cl::opt<std::string> prompts("prompts", cl::value_desc("FOLDER"),
                             cl::desc("Templates in place of the embedded "
                                      "ones"),
                             cl::sub(search), cl::cat(category));
cl::opt<bool> replayStrict("replay-strict",
                           cl::desc("A prompt that has changed since it was "
                                    "recorded is an error"),
                           cl::sub(search), cl::cat(category));
const ChatOptions chatDefaults;
cl::opt<std::string> llmUrl("llm-url", cl::value_desc("URL"),
                            cl::desc("Base URL in place of the provider's"),
                            cl::sub(search), cl::cat(category));
cl::opt<unsigned> llmTimeout("llm-timeout", cl::value_desc("SECONDS"),
                             cl::init(chatDefaults.timeout.count() / 1000),
                             cl::desc("Limit of one answer"), cl::sub(search),
                             cl::cat(category));
cl::opt<std::string> prices("prices", cl::value_desc("FILE"),
                            cl::desc("Prices of the models, as JSON"),
                            cl::sub(search), cl::cat(category));
cl::opt<unsigned> inFlight("in-flight", cl::init(chatDefaults.inFlight),
                           cl::desc("Requests that wait at the same time"),
                           cl::sub(search), cl::cat(category));
cl::opt<int64_t> maxAnswerTokens("max-answer-tokens",
                                 cl::init(chatDefaults.maxAnswerTokens),
                                 cl::desc("Tokens that one answer may have"),
                                 cl::sub(search), cl::cat(category));
cl::opt<double>
    budgetUsd("budget-usd", cl::init(ChatBudget::defaultUsd),
              cl::desc("Most US dollars that the task's answers may "
                       "cost, all runs together (default 5 where "
                       "the model has a price); 0: no limit"),
              cl::sub(search), cl::cat(category));
cl::opt<int64_t> budgetTokens("budget-tokens", cl::init(0),
                              cl::desc("Most tokens, likewise (default 1000000 "
                                       "where there is no price); 0: no "
                                       "limit"),
                              cl::sub(search), cl::cat(category));
cl::opt<std::string> report("report", cl::value_desc("FILE"),
                            cl::desc("File for a JSON report of the run"),
                            cl::sub(search), cl::cat(category));
cl::opt<bool> quiet("quiet", cl::desc("No progress"), cl::sub(search),
                    cl::cat(category));

} // namespace

static llvm::Error checkRange(llvm::StringRef name, uint64_t value,
                              uint64_t low, uint64_t high) {
  if (value >= low && value <= high)
    return llvm::Error::success();
  return makeError(ErrorKind::BadInput, "option " + name + ": got " +
                                            llvm::Twine(value) + ", wanted " +
                                            llvm::Twine(low) + " to " +
                                            llvm::Twine(high));
}

static llvm::Expected<int> runSearchCommand(const KernelTask &task) {
  for (auto [name, value, low, high] :
       {std::tuple("width", uint64_t(width), 1, 64),
        std::tuple("rounds", uint64_t(rounds), 1, 64),
        std::tuple("parameter-sets", uint64_t(parameterSets), 1, 256),
        std::tuple("compile-jobs", uint64_t(compileJobs), 0, 256),
        std::tuple("in-flight", uint64_t(inFlight), 1, 64),
        std::tuple("llm-timeout", uint64_t(llmTimeout), 1, 86400)})
    if (llvm::Error error = checkRange(name, value, low, high))
      return error;
  // Written so that a NaN is refused.
  if (!(solStop >= 0 && solStop <= 1))
    return makeError(ErrorKind::BadInput, "option sol-stop: wanted 0 to 1");
  if (maxAnswerTokens < 1)
    return makeError(ErrorKind::BadInput,
                     "option max-answer-tokens: got " +
                         llvm::Twine(int64_t(maxAnswerTokens)) +
                         ", wanted 1 or more");
  if (llvm::Error error =
          checkBudget({double(budgetUsd), int64_t(budgetTokens)}))
    return std::move(error);
  TuneOptions options;
  options.llm = llm;
  options.store = store;
  if (const char *folder = std::getenv("FSR_STORE");
      options.store.empty() && folder)
    options.store = folder;
  options.device = device;
  options.allowUnsandboxed = allowUnsandboxed;
  options.quiet = quiet;
  options.report = report;
  options.search.kind = kind;
  options.search.width = width;
  options.search.rounds = rounds;
  options.search.patience = patience;
  options.search.solStop = solStop;
  options.search.parameterSets = parameterSets;
  options.search.compileJobs = compileJobs;
  options.search.seed = seed;
  options.search.prompts = prompts;
  options.search.replayStrict = replayStrict;
  options.chat.replayStrict = replayStrict;
  options.chat.url = llmUrl;
  options.chat.timeout = std::chrono::seconds(llmTimeout);
  options.chat.inFlight = inFlight;
  options.chat.maxAnswerTokens = maxAnswerTokens;
  options.chat.prices = prices;
  if (budgetUsd.getNumOccurrences())
    options.chat.budget.usd = budgetUsd;
  if (budgetTokens.getNumOccurrences())
    options.chat.budget.tokens = budgetTokens;
  options.chat.spending = options.store + "/spending";
  return searchTask(task, options);
}

/// An answer of an LLM, or a .cu file and its plan: what the files hold. What
/// they say is not judged here.
static llvm::Error readCandidate(std::string &text,
                                 std::optional<std::string> &planText) {
  auto read = [](llvm::StringRef path, std::string &into) -> llvm::Error {
    llvm::Expected<std::string> bytes = readFile(path, maxAnswerBytes);
    if (!bytes)
      return makeError(ErrorKind::BadInput, llvm::toString(bytes.takeError()));
    into = std::move(*bytes);
    return llvm::Error::success();
  };
  if (llvm::Error error = read(candidateFile, text))
    return error;
  llvm::StringRef stem = candidateFile;
  if (!stem.consume_back(".cu") && plan.empty())
    return llvm::Error::success();
  return addContext(
      read(plan.empty() ? (stem + ".json").str() : plan, planText.emplace()),
      "the plan of " + candidateFile);
}

static llvm::Expected<int> runCheckCommand(const KernelTask &task) {
  CheckOptions options;
  options.device = device;
  options.allowUnsandboxed = allowUnsandboxed;
  options.seed = seed;
  options.measure = !noTiming;
  if (rung != "quick" && rung != "full")
    return makeError(ErrorKind::BadInput,
                     "option rung: got '" + rung + "', wanted quick or full");
  options.full = rung == "full";
  options.strength = strength;
  options.json = json;
  for (llvm::StringRef one : fixed) {
    auto [name, text] = one.split('=');
    int64_t value = 0;
    if (name.empty() || text.getAsInteger(0, value))
      return makeError(ErrorKind::BadInput,
                       "option set: got '" + one + "', wanted NAME=INTEGER");
    options.fixed[name.str()] = value;
  }
  std::string text;
  std::optional<std::string> planText;
  if (llvm::Error error = readCandidate(text, planText))
    return error;
  return checkCandidate(
      task, planText ? parseCandidate(text, *planText) : parseAnswer(text),
      options);
}

static llvm::Expected<int> run() {
  if (!taskFile.getNumOccurrences())
    return makeError(ErrorKind::BadInput, "TASK is missing; see --help");
  if (check && !candidateFile.getNumOccurrences())
    return makeError(ErrorKind::BadInput, "CANDIDATE is missing; see --help");
  llvm::Expected<KernelTask> task = readTask(taskFile);
  if (!task)
    return task.takeError();
  if (search)
    return runSearchCommand(*task);
  if (check)
    return runCheckCommand(*task);
  describeTask(*task, llvm::outs());
  return 0;
}

static int toolMain(int argc, char **argv) {
  cl::SetVersionPrinter([](llvm::raw_ostream &os) { os << "fsr-tune\n"; });
  for (cl::SubCommand *command : {&search, &show, &check})
    cl::HideUnrelatedOptions(category, *command);
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(
          argc, argv, "fsr-tune: makes the kernel of a task file faster\n",
          &llvm::errs()))
    return exits::usage;
  if (!search && !show && !check) {
    llvm::errs() << "fsr-tune: a command is missing: search, show or check; "
                    "see --help\n";
    return exits::usage;
  }
  llvm::Expected<int> status = run();
  if (status)
    return *status;
  llvm::Error error = status.takeError();
  bool isUsage = kindOf(error) == ErrorKind::BadInput;
  llvm::errs() << "fsr-tune: "
               << printable(llvm::toString(std::move(error)),
                            /*keepLines=*/true)
               << "\n";
  return isUsage ? exits::usage : exits::trouble;
}

int main(int argc, char **argv) {
  // Threads that are started later inherit what this one blocks.
  beginTool("fsr-tune");
  endOnInterrupt([] { sayInterrupted("fsr-tune"); });
  return finishTool("fsr-tune", toolMain(argc, argv));
}
