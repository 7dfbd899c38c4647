//===----------------------------------------------------------------------===//
// Pass declarations for the FSR transforms.
//===----------------------------------------------------------------------===//

#ifndef FSR_TRANSFORMS_PASSES_TD
#define FSR_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FsrOnly : ListOption<"only", "only", "std::string",
  "Touch only kernels with one of these names.">;

def FsrTarget : Option<"target", "target", "std::string", /*default=*/"\"\"",
  "GPU target, such as sm_90. Empty: the gpu.module's own; a "
  "search falls back to the device's.">;

def FsrStore : Option<"storePath", "store", "std::string", /*default=*/"\"\"",
  "Folder of the store. Empty: $FSR_STORE.">;

def FsrAccept : Option<"accept", "accept", "::fsr::AcceptLevel",
  /*default=*/"::fsr::AcceptLevel::Measured",
  "Evidence that a record needs: measured, modelled.",
  [{::llvm::cl::values(
     clEnumValN(::fsr::AcceptLevel::Measured, "measured",
                "Timed on a device against the original."),
     clEnumValN(::fsr::AcceptLevel::Modelled, "modelled",
                "Picked by a stated model."))}]>;

def FsrStrict : Option<"strict", "strict", "bool", /*default=*/"false",
  "Trouble after the start is an error instead of a warning.">;

def FsrQuiet : Option<"quiet", "quiet", "bool", /*default=*/"false",
  "Do not print the summary line.">;

def OptimizeGpuPass : Pass<"fsr-optimize-gpu", "::mlir::ModuleOp"> {
  let summary = "Replace GPU kernels by faster, equal ones";
  let description = [{
    For each GPU kernel of the module this pass asks the store for a winner of
    this kernel and target. On a hit the kernel is replaced. On a miss `on-miss`
    decides; `search` asks an LLM for candidates, compiles them, validates and
    times them on a device against the original, keeps the winner in the store
    and puts it in the kernel's place.

    The pass never fails the compile because a search failed: the original
    kernel stays, and a warning says why. It fails on what cannot start: an
    option it cannot parse, an unknown provider, a store that cannot be opened,
    no device, no toolkit; and on a record whose bytes were changed.

    See `docs/passes/fsr-optimize-gpu.md` for a worked example.
  }];
  let options = [
    FsrStore, FsrTarget, FsrOnly, FsrAccept, FsrStrict, FsrQuiet,
    Option<"onMiss", "on-miss", "::fsr::OnMiss",
           /*default=*/"::fsr::OnMiss::Default",
           "What to do with a kernel that has no record: search (the default "
           "where llm is given), extract, keep (the default else), error.",
           [{::llvm::cl::values(
              clEnumValN(::fsr::OnMiss::Search, "search",
                         "Search now; needs llm and a device."),
              clEnumValN(::fsr::OnMiss::Extract, "extract",
                         "Write the kernel's task into the store."),
              clEnumValN(::fsr::OnMiss::Keep, "keep",
                         "Leave the kernel alone."),
              clEnumValN(::fsr::OnMiss::Error, "error",
                         "Fail the compile."),
              clEnumValN(::fsr::OnMiss::Default, "default",
                         "Search where llm is given, else keep."))}]>,
    Option<"onHit", "on-hit", "::fsr::OnHit", /*default=*/"::fsr::OnHit::Use",
           "What to do, where misses are searched, with a kernel that has a "
           "record: use (a search that was cut short goes on), search.",
           [{::llvm::cl::values(
              clEnumValN(::fsr::OnHit::Use, "use",
                         "Take the record, unless its search is unfinished."),
              clEnumValN(::fsr::OnHit::Search, "search",
                         "Search all the same; what the store holds is "
                         "neither asked nor measured again."))}]>,
    Option<"llm", "llm", "std::string", /*default=*/"\"\"",
           "Where answers come from: openai:MODEL, anthropic:MODEL, "
           "exec:COMMAND, exchange:FOLDER, replay:FOLDER.">,
    Option<"llmUrl", "llm-url", "std::string", /*default=*/"\"\"",
           "Base URL of the LLM's server. Empty: the provider's own.">,
    Option<"llmTimeout", "llm-timeout", "unsigned", /*default=*/"600",
           "Seconds that one answer may take.">,
    Option<"inFlight", "in-flight", "unsigned", /*default=*/"8",
           "Requests that wait for an answer at the same time, 1 to 64.">,
    Option<"maxAnswerTokens", "max-answer-tokens", "int64_t",
           /*default=*/"32768", "Tokens that one answer may have.">,
    Option<"prices", "prices", "std::string", /*default=*/"\"\"",
           "JSON file of what models cost.">,
    Option<"budgetUsd", "budget-usd", "double", /*default=*/"5",
           "US dollars that answers for the module's kernels may cost, all "
           "runs on this store together; 0: no limit. Not given: 5, and "
           "nothing where the model has no price.">,
    Option<"budgetTokens", "budget-tokens", "int64_t", /*default=*/"0",
           "Tokens that those answers may take, all runs together; 0: no "
           "limit. Not given: 1000000 where the model has no price and "
           "budget-usd is not given either.">,
    Option<"device", "device", "std::string", /*default=*/"\"auto\"",
           "Where candidates are validated and timed: cuda, cuda:N, virtual, "
           "virtual:CHIP, exec:COMMAND, or several with commas between; auto is "
           "cuda where a driver reports a GPU, and virtual else.">,
    Option<"searchKind", "search", "::fsr::SearchKind",
           /*default=*/"::fsr::SearchKind::Fsr",
           "How to search: fsr, best-of-n.",
           [{::llvm::cl::values(
              clEnumValN(::fsr::SearchKind::Fsr, "fsr",
                         "Each round is told what the rounds before found."),
              clEnumValN(::fsr::SearchKind::BestOfN, "best-of-n",
                         "As many answers, without feedback: a control."))}]>,
    Option<"width", "width", "unsigned", /*default=*/"4",
           "Candidates a round, 1 to 64.">,
    Option<"rounds", "rounds", "unsigned", /*default=*/"3",
           "Rounds of the search at the most, 1 to 64.">,
    Option<"patience", "patience", "unsigned", /*default=*/"2",
           "Rounds in a row without a gain beyond noise that end the search; "
           "0: none do.">,
    Option<"solStop", "sol-stop", "double", /*default=*/"0.95",
           "Share of the hardware bound at which the search ends; 0: none.">,
    Option<"parameterSets", "parameter-sets", "unsigned", /*default=*/"16",
           "Combinations of tunable parameters tried a candidate, 1 to 256.">,
    Option<"compileJobs", "compile-jobs", "unsigned", /*default=*/"0",
           "Candidates compiled at the same time, 1 to 256; 0: as many as there "
           "are processors. Changes nothing but the time.">,
    Option<"seed", "seed", "uint64_t", /*default=*/"0",
           "Seed of the run; inputs are drawn from it and the binary's hash.">,
    Option<"prompts", "prompts", "std::string", /*default=*/"\"\"",
           "Folder of prompt templates. Empty: the embedded ones.">,
    Option<"replayStrict", "replay-strict", "bool", /*default=*/"false",
           "A recorded prompt that differs from today's is an error.">,
    Option<"allowUnsandboxed", "allow-unsandboxed", "bool",
           /*default=*/"false",
           "Compile LLM text even where no sandbox can be set up.">,
    Option<"report", "report", "std::string", /*default=*/"\"\"",
           "File for a JSON report of the run.">,
    Option<"progress", "progress", "::fsr::ProgressMode",
           /*default=*/"::fsr::ProgressMode::Auto",
           "What to say of a search while it runs: true (a live line on a "
           "terminal, else a line for each answer and each finished trial), "
           "false, auto (only on a terminal, and not where quiet is set).",
           [{::llvm::cl::values(
              clEnumValN(::fsr::ProgressMode::Auto, "auto",
                         "A live line on a terminal, else nothing."),
              clEnumValN(::fsr::ProgressMode::On, "true",
                         "A live line on a terminal, else a line an event."),
              clEnumValN(::fsr::ProgressMode::Off, "false", "Nothing."),
              clEnumValN(::fsr::ProgressMode::On, "", "As true.")),
            ::llvm::cl::ValueOptional}]>,
  ];
}

def ApplyPass : Pass<"fsr-apply", "::mlir::ModuleOp"> {
  let summary = "Replace GPU kernels by winners from the store";
  let description = [{
    As `fsr-optimize-gpu` on a hit, and nothing else: no network, no device, no
    process. Kernels without a record stay.
  }];
  let options = [FsrStore, FsrTarget, FsrOnly, FsrAccept, FsrStrict, FsrQuiet];
}

def ExtractPass : Pass<"fsr-extract", "::mlir::ModuleOp"> {
  let summary = "Write each GPU kernel as a task; change nothing";
  let description = [{
    Writes one JSON file a kernel, `<name>-<first 12 digits of its key>.json`,
    to the folder `output`. The reference PTX is in it where the kernel could
    be lowered; where not, a warning says why.
  }];
  let options = [
    FsrTarget, FsrOnly, FsrQuiet,
    Option<"output", "output", "std::string", /*default=*/"\"\"",
           "Folder for the task files; made where it is missing.">,
  ];
}

def ExplainPass : Pass<"fsr-explain", "::mlir::ModuleOp"> {
  let summary = "Say what FSR would take from a module; change nothing";
  let description = [{
    Prints each kernel with its interface, facts, workload and work on standard
    error, and whether FSR would take it or the sentence why not.
  }];
  let options = [FsrTarget, FsrOnly];
}

#endif // FSR_TRANSFORMS_PASSES_TD
