// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What becomes of a mutant: the way of a candidate from its PTX on, which is
// the contract, ptxas, and the whole ladder of the worker, untimed. Before the
// device its machine code is compared with the original's; after it, a mutant
// that nothing refused is looked at: whether its instruction runs at all.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_MUTATION_JUDGE_H
#define FSR_BENCHMARKS_MUTATION_JUDGE_H

#include "Mutants.h"
#include "Results.h"

#include "fsr/Search/Search.h"

#include <memory>

namespace fsr::mutation {

/// A candidate that is known to be right, ready to be changed.
struct Subject {
  std::string name;
  KernelTask task;
  Candidate candidate;
  CandidateBuild built;
  Build reference;
  std::optional<Build> clone; ///< Of the original in f64, where it has one.
  std::string machineCode;    ///< Hash of what ptxas makes of it.
  std::vector<std::string> entries;
  /// No value of a buffer reaches a branch or an address: what does not run on
  /// one input runs on none.
  bool isProved = false;
};

class Bench {
public:
  static llvm::Expected<std::unique_ptr<Bench>> open(llvm::StringRef device,
                                                     bool allowUnsandboxed,
                                                     unsigned seconds,
                                                     uint64_t seed);

  /// Errors: the candidate does not hold itself.
  llvm::Expected<Subject> prepare(llvm::StringRef name,
                                  llvm::StringRef taskFile,
                                  llvm::StringRef answerFile);
  llvm::Expected<Row> judge(const Subject &subject, const Mutant &mutant);

private:
  llvm::Expected<EvaluateResult> evaluate(const Subject &subject,
                                          const Build &candidate);

  Toolkit toolkit;
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<Device> device;
  DeviceDescription description;
  uint64_t seed = 0;
};

} // namespace fsr::mutation

#endif // FSR_BENCHMARKS_MUTATION_JUDGE_H
