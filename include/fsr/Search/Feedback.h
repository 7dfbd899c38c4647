// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a search has learned, and the requests of its later rounds. All of it is
// a function of answers and trials as the store holds them, never of the order
// or time of a run, so that a resumed or replayed search asks with the same
// bytes.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SEARCH_FEEDBACK_H
#define FSR_SEARCH_FEEDBACK_H

#include "fsr/Search/Search.h"

namespace fsr {

/// One answer and how each of its parameter sets fared.
struct Attempt {
  int64_t round = 0, slot = 0;
  std::optional<Candidate> candidate; ///< Nothing: it could not be read.
  std::vector<Trial> trials;          ///< In the order of `combinations`.
};

/// Equal to the original as far as it was looked at, be it faster or not.
bool isValid(const Trial &trial);

/// True where no parameter set of the attempt is valid.
bool hasFailed(const Attempt &attempt);

struct BestSoFar {
  const Attempt *attempt = nullptr;
  const Trial *trial = nullptr;
};

/// The order of valid trials. An accepted one beats the others; among accepted
/// ones the highest lower end of the gain wins, which is what a store chooses;
/// among the others the greatest gain.
bool isBetter(const Trial &trial, const Trial &best);

/// The best valid trial; of equal ones the first. Nothing where none is valid.
std::optional<BestSoFar> findBest(llvm::ArrayRef<Attempt> attempts);

/// Whether `after` beats `before` by more than the noise of both. A first best
/// is a gain.
bool isGain(const Trial *before, const Trial &after);

/// Microseconds that the theoretical peaks of the device need at the least for
/// the task's bytes or operations; 0 where that is not known.
double hardwareBoundUs(const WorkEstimate &work,
                       const DeviceDescription &device);

/// The request for one slot of round 2 or later. `attempts` holds all of the
/// rounds before, in the order of round and slot; `roundsWithoutGain` how many
/// of the last ones gained nothing.
llvm::Expected<std::string>
renderPrompt(const KernelTask &task, const DeviceDescription &device,
             int64_t round, unsigned slot, llvm::ArrayRef<Attempt> attempts,
             unsigned roundsWithoutGain, llvm::StringRef promptFolder);

} // namespace fsr

#endif // FSR_SEARCH_FEEDBACK_H
