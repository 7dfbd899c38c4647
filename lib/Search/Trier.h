// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From answers to trials. An answer is taken the moment it is there, and a
// thread of its own has its sets of parameters built and looked at. Its trials
// are decided and written later, by the search's thread, in the order of slots;
// that asks for the same work again and finds it done. So what is written, and
// in which order, does not depend on which work ended first.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_SEARCH_TRIER_H
#define FSR_LIB_SEARCH_TRIER_H

#include "SearchState.h"
#include "Workshop.h"

#include <set>

namespace fsr {

/// How many sets of parameters are still in the race in each of its rungs, of
/// `sets` at the start: half as many in each, until few enough are left.
llvm::SmallVector<size_t, 8> rungsOf(size_t sets);

class Trier {
public:
  /// `makeReady` builds and tests what candidates are held against; it is
  /// called before the first of them is evaluated.
  Trier(SearchState &state, std::function<llvm::Error()> makeReady);
  ~Trier();

  /// For an answer that is on disk. Its work begins.
  llvm::Error take(int64_t round, int64_t slot, llvm::StringRef answer);
  /// Decides and writes its trials; in the order of slots.
  llvm::Error conclude(int64_t slot);
  /// No answer is at work any more.
  void endRound();

private:
  struct Set {
    Parameters parameters;
    std::string key; ///< Of its trial.
    std::optional<Trial> known;
  };
  struct Work {
    int64_t round = 0, slot = 0;
    std::shared_ptr<const Candidate> candidate;
    std::string refusal; ///< Why there is no candidate.
    std::string hash;
    std::vector<Set> sets;
    /// What was known, and what was not, when the answer came. All that the
    /// thread below reads is set before it starts and stays.
    std::vector<size_t> unknown;
    std::set<std::string> codes;
    double medianToBeat = 0;
    std::thread ahead;
  };
  /// A set that is still in the race.
  struct Contender {
    size_t set = 0;
    Promised<Workshop::Built> built;
    EvaluateResult look;

    const Build &build() const { return *built->wait().value->build.build; }
    const std::string &code() const { return built->wait().value->code; }
    double medianUs() const {
      return look.measurement ? look.measurement->candidateMedianUs : 0;
    }
  };
  using Race = std::vector<Contender>;
  /// Told of a set that left the race, with its verdict and message.
  using Left = llvm::function_ref<llvm::Error(const Contender &, Verdict,
                                              llvm::StringRef)>;

  void workAhead(const Work &work);
  Promised<Workshop::Built> build(const Work &work, size_t set,
                                  Workshop::Urgency urgency);
  Promised<EvaluateResult> evaluate(const Contender &contender,
                                    EvaluateOptions options,
                                    Workshop::Urgency urgency);
  /// Has all looked at, and the slower half left behind, until few are left.
  llvm::Expected<Race> race(const Work &work, Race race,
                            Workshop::Urgency urgency, Left left);
  bool wouldWin(const Contender &contender) const;

  Trial place(const Work &work, size_t set) const;
  Trial trialOf(const Work &work, const Contender &contender) const;
  llvm::Expected<std::optional<Trial>> findTrial(const Trial &place);
  llvm::Error finish(const Trial &trial);
  void reuse(const Trial &trial);
  llvm::Error climb(const Work &work, Race race, bool hasWinner,
                    unsigned tries);
  llvm::Error confirm(Trial &trial, const Contender &contender);
  void learn(Trial &trial, const Contender &contender);
  /// Of this kind of device, where they were measured once.
  const std::optional<DevicePeaks> &knownPeaks();
  llvm::Error follow(const Work &work, const Contender &contender);
  llvm::Error keepWinner(const Trial &trial, const Work &work,
                         const Contender &contender);

  SearchState &state;
  std::function<llvm::Error()> makeReady;
  /// By the keys of their trials; read when the first trial is not found.
  std::optional<std::map<std::string, Record>> records;
  /// This search's own trials by key, and the first of each code.
  std::map<std::string, Trial> own;
  std::map<std::string, std::string> firstOfCode;
  std::set<std::string> stored; ///< Codes of trials that were found.
  /// Of the one thread that concludes.
  std::optional<DevicePeaks> peaks;
  bool hasSoughtPeaks = false;
  std::map<int64_t, Work> works; ///< Of the round, by slot.
  std::mutex mutex;
  double fastestOfRound = 0; ///< By quick looks; 0: none. Guarded.
  Workshop workshop;         ///< Last: its jobs use the above.
};

} // namespace fsr

#endif // FSR_LIB_SEARCH_TRIER_H
