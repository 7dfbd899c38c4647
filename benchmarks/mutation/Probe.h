// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a surviving mutant changes, asked of the device by a trap. The candidate
// itself runs, with a trap where the change would begin to count: where the
// instruction is executed, where its result is read, where a result that
// differs is read. No trap sprung: the mutant is the candidate, on these
// inputs. For all inputs it needs more: that no data decides what runs, and for
// the last question that no data reaches the instruction's operands.
//
// A trap ends every run that meets it, so a validation that overlooks a wrong
// result does not overlook this.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_MUTATION_PROBE_H
#define FSR_BENCHMARKS_MUTATION_PROBE_H

#include "Mutants.h"

#include <optional>

namespace fsr::mutation {

struct Probe {
  std::string ptx;
  /// What no input of a run does, no input does.
  bool isForAllData = false;
};

struct Probes {
  /// Trap where the changed instruction would have its effect.
  Probe executed;
  /// Trap where its result is read; nothing where it is not one register.
  std::optional<Probe> read;
  /// Trap where its result is read and is not the candidate's; nothing where
  /// data may reach the operands too.
  std::optional<Probe> differs;
};

/// `isSteadyKernel`: it is known that no data decides what runs. Errors: `ptx`
/// is not the text that `mutant` was made of.
llvm::Expected<Probes> probesOf(llvm::StringRef ptx, const Mutant &mutant,
                                bool isSteadyKernel);

} // namespace fsr::mutation

#endif // FSR_BENCHMARKS_MUTATION_PROBE_H
