// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// FSR, the search itself: ask, compile, validate, profile, keep the best, ask
// again with what was learned. It is handed everything that touches the world,
// has no globals, and never ends a compile: whatever goes wrong after the start
// is in the outcome. docs/design/search.md says how it decides.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SEARCH_SEARCH_H
#define FSR_SEARCH_SEARCH_H

#include "fsr/Device/Device.h"
#include "fsr/LLM/ChatClient.h"
#include "fsr/Store/Store.h"
#include "fsr/Toolchain/Toolchain.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <utility>

namespace fsr {

enum class SearchKind {
  Fsr,     ///< Each round is told what the rounds before it found.
  BestOfN, ///< The control: as many answers, all to the first round's prompts.
};

struct SearchOptions {
  SearchKind kind = SearchKind::Fsr;
  unsigned width = 4;
  unsigned rounds = 3;
  /// So many rounds in a row without a gain beyond noise end the search; 0:
  /// none do.
  unsigned patience = 2;
  /// A best that reaches this share of the hardware bound ends the search; 0:
  /// none does.
  double solStop = 0.95;
  size_t parameterSets = 16; ///< At most so many a candidate.
  unsigned compileJobs = 0;  ///< Compiles at once; 0: one a processor.
  uint64_t seed = 0;
  std::string prompts; ///< Folder of templates; empty: the embedded ones.
  /// A talk in the store whose prompt differs from today's is an error, not a
  /// remark.
  bool replayStrict = false;
};

/// What one round asked for and brought.
struct RoundSummary {
  /// The best of the search's own candidates at one moment.
  struct Best {
    int64_t round = 0, slot = 0;
    Verdict verdict = Verdict::Undecided;
    double medianUs = 0, originalUs = 0;
    double speedup = 0, speedupLow = 0, speedupHigh = 0;
  };
  int64_t round = 0;
  unsigned asked = 0;   ///< Requests handed to the provider.
  unsigned reused = 0;  ///< Answers that the store had.
  unsigned pending = 0; ///< Requests without an answer yet.
  /// Of the round's trials, one a parameter set; in the order of `Verdict`.
  std::vector<std::pair<Verdict, unsigned>> verdicts;
  std::optional<Best> before, after;
  bool gained = false; ///< `after` beats `before` by more than noise.
};

/// What happened, as it happens; for progress lines and reports.
struct SearchEvent {
  enum class Kind {
    Asked,
    Answered,
    Pending,
    /// The original runs for the first time, on a virtual device, where that
    /// may take minutes.
    Checking,
    Finished,   ///< A trial.
    RoundEnded, ///< All of a round's answers are tried.
    Tested      ///< The task itself, before the first request.
  } kind;
  int64_t round = 0, slot = 0;
  const Trial *trial = nullptr; ///< Finished only.
  /// The best so far, with its interval; null where there is none yet.
  const Trial *best = nullptr;
  const RoundSummary *summary = nullptr;  ///< RoundEnded only.
  const TaskStrength *strength = nullptr; ///< Tested only.
  /// Checking only: the test of the task, which is under way.
  const StrengthProgress *progress = nullptr;
};

/// What is to come, before the first request of a search that may cost money.
struct SearchForecast {
  unsigned answers = 0; ///< At most; without those that the store has.
  ChatForecast cost;
};

/// One line, without the kernel's name.
std::string describe(const SearchForecast &forecast);

struct SearchServices {
  ChatClient &client;
  Compiler &compiler;
  Device &device;
  SearchStore &store;
  /// Assembles the record's fat binary.
  std::function<llvm::Expected<std::string>(const Build &)> makeFatbin;
  /// Builds the original's image from its PTX.
  std::function<llvm::Expected<Build>(const KernelTask &)> buildReference;
  std::function<void(const SearchEvent &)> observer;
  /// Called once at the most, before the first request.
  std::function<void(const SearchForecast &)> forecast = {};
  /// What a build's machine code consists of; may be empty. Called for what
  /// becomes the best; an error is a line of its profile.
  std::function<llvm::Expected<std::vector<InstructionMix>>(const Build &)>
      readInstructions = {};
};

/// Adds to `profile` what a build's machine code consists of, or why that is
/// not known.
void addInstructions(llvm::Expected<std::vector<InstructionMix>> mixes,
                     Profile &profile);

/// Why a search ended.
enum class SearchStop {
  Rounds,   ///< All rounds were done.
  Patience, ///< No gain beyond noise for long enough.
  Bound,    ///< The best is near enough to the hardware bound.
  Pending,  ///< Answers are still to come.
  Budget,   ///< `SearchOutcome::budget` says which cap has no room.
  Trouble,  ///< `SearchOutcome::trouble` says what.
  Weak,     ///< The task's inputs cannot tell right from wrong.
};
llvm::StringRef nameOf(SearchStop stop);

struct SearchOutcome {
  std::optional<Record> winner;     ///< Already in the store.
  std::vector<Trial> trials;        ///< Of this search, reused ones included.
  std::vector<std::string> pending; ///< Requests without an answer yet.
  std::vector<std::string> remarks;
  std::vector<RoundSummary> rounds;
  SearchStop stop = SearchStop::Rounds;
  /// What cut the search short, or empty. The original stays.
  std::string trouble;
  /// The cap that left requests unasked, or empty. No fault: under a higher one
  /// the same search goes on.
  std::string budget;
  /// Why the task cannot be searched as it is, and what to do; or empty.
  std::string weak;
  /// How the task stood its test, as far as one was needed.
  std::optional<TaskStrength> strength;
  unsigned asked = 0, reused = 0;
};

SearchOutcome runSearch(const KernelTask &task, const SearchOptions &options,
                        const SearchServices &services);

/// The request for one slot of the first round. Deterministic: the same task
/// and device give the same text. Later rounds: fsr/Search/Feedback.h.
llvm::Expected<std::string> renderPrompt(const KernelTask &task,
                                         const DeviceDescription &device,
                                         unsigned slot,
                                         llvm::StringRef promptFolder);

/// A candidate as code, or why there is none.
struct CandidateBuild {
  ResolvedPlan plan;
  std::optional<Build> build;
  Verdict verdict = Verdict::Rejected; ///< Where there is no build.
  std::string message;
};

/// A digest of what a build runs and how: the same for candidates that differ
/// in names, comments and layout only.
std::string codeOf(const Build &build, const ResolvedPlan &plan);

/// Resolves the plan, judges the guards and compiles, for one set of
/// parameters.
llvm::Expected<CandidateBuild> buildCandidate(const KernelTask &task,
                                              const Candidate &candidate,
                                              const Parameters &parameters,
                                              const DeviceDescription &device,
                                              Compiler &compiler);

/// Reads an answer: one fenced `cuda` block and one fenced `json` block. An
/// error (BadInput) is the sentence the LLM gets back.
llvm::Expected<Candidate> parseAnswer(llvm::StringRef answer);
/// The same of the two blocks by themselves.
llvm::Expected<Candidate> parseCandidate(llvm::StringRef source,
                                         llvm::StringRef plan);

} // namespace fsr

#endif // FSR_SEARCH_SEARCH_H
