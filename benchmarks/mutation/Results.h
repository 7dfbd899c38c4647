// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What became of the mutants: a line each in a file that grows as they are
// judged, so that a run that was stopped goes on where it was; the arguments of
// people why some of them are no faults; and the score.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_MUTATION_RESULTS_H
#define FSR_BENCHMARKS_MUTATION_RESULTS_H

#include "Mutants.h"

#include "llvm/Support/raw_ostream.h"

#include <map>

namespace fsr::mutation {

enum class Outcome {
  Refused,
  Survived,
  NotCompiled, ///< ptxas does not take it.
  SameCode,    ///< ptxas makes of it what it makes of the original.
  // Proved for all data, at this shape: no change.
  Unreached, ///< The instruction, so changed, has no turn.
  Unused,    ///< Its result is not read.
  SameValue, ///< It gives the same result wherever that is read.
};
llvm::StringRef nameOf(Outcome outcome);

struct Row {
  Mutant mutant;
  Outcome outcome = Outcome::Survived;
  std::string verdict, check, message; ///< Of what refused it.
  std::string evidence;                ///< Of a survivor; not in the file.

  std::string text() const; ///< A line of the file.
};

/// The heading of the file.
std::string headings();
/// Rows of a file by their mutants' names; of the mutants no more than what
/// results tell. A last line that is cut is left out.
llvm::Expected<std::map<std::string, Row>> readRows(llvm::StringRef text);

/// "ID: sentence" lines; `#` begins a remark.
llvm::Expected<std::map<std::string, std::string>>
readArguments(llvm::StringRef text);

/// Whether a mutant counts as made. What ptxas does not take is no program,
/// and what is proved to change no value of any thread, for all data, has no
/// other meaning; others are drawn in their places.
bool isMade(Outcome outcome);

struct Score {
  size_t drawn = 0, notCompiled = 0, unreached = 0, unused = 0, sameValue = 0;
  size_t made = 0, sameCode = 0, argued = 0, refused = 0, survived = 0;
  size_t noChange() const { return unreached + unused + sameValue; }
  size_t dropped() const { return sameCode + argued; }
  /// Refused, of those that were made and not dropped.
  double percent() const;
};

/// Prints the tables and the survivors.
Score report(const std::vector<Row> &rows,
             const std::map<std::string, std::string> &arguments,
             const std::map<std::string, std::string> &sources,
             llvm::raw_ostream &os);

} // namespace fsr::mutation

#endif // FSR_BENCHMARKS_MUTATION_RESULTS_H
