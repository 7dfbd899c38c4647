// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Small changes to the PTX of a candidate that is known to be right. Each
// mutant differs in one instruction. Which ones there are, their names and
// which of them a run takes depend on the texts and the seed alone.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_MUTATION_MUTANTS_H
#define FSR_BENCHMARKS_MUTATION_MUTANTS_H

#include "fsr/PTX/Module.h"

namespace fsr::mutation {

struct Mutant {
  /// "sort:66:bound:setp.le.s32": candidate, line of the PTX, operator, what
  /// became of the instruction. The name in results and in arguments.
  std::string id;
  std::string candidate;
  std::string kind; ///< The operator, one of `kinds()`.
  unsigned ptxLine = 0, cudaLine = 0;
  std::string before, after; ///< The instruction, on one line each.
  /// Of the instruction in the PTX, from its guard to behind its semicolon.
  size_t begin = 0, end = 0;
  /// When the change counts: "@!%p3", or empty for always.
  std::string trapGuard;
  bool keepsGuard = true;

  std::string apply(llvm::StringRef ptx) const;
};

/// The operators in the order in which results list them.
llvm::ArrayRef<llvm::StringLiteral> kinds();

/// One replacement of an instruction.
struct Change {
  llvm::StringRef kind; ///< Of `kinds()`.
  std::string name;     ///< Tells the changes of one instruction apart.
  std::string after;
  std::string trapGuard; ///< As of `Mutant`.
  bool keepsGuard = true;
};

/// An instruction in pieces of text.
struct Statement {
  const ptx::Instruction *instruction = nullptr;
  std::string guard;                 ///< "@!%p3", or empty.
  std::string opcode;                ///< With its modifiers.
  std::vector<std::string> operands; ///< Split at the outer commas.

  std::string text() const;
};

/// All changes of one instruction.
std::vector<Change> changesOf(const Statement &statement);

/// All mutants of a candidate, in the order of its lines. Errors: not PTX.
llvm::Expected<std::vector<Mutant>> mutantsOf(llvm::StringRef candidate,
                                              llvm::StringRef ptx);

/// `count` of them, as even as can be over candidates first and then over
/// operators, in an order in which every piece of it is even too.
std::vector<Mutant> choose(std::vector<std::vector<Mutant>> ofCandidates,
                           size_t count, uint64_t seed);

} // namespace fsr::mutation

#endif // FSR_BENCHMARKS_MUTATION_MUTANTS_H
