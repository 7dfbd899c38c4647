// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which inputs a candidate is tried on. Integer buffers always keep the
// workload's own recipe, since they may be indices; float buffers get families
// whose faults show in different ways.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_INPUTS_H
#define FSR_LIB_WORKER_INPUTS_H

#include "fsr/Core/KernelTask.h"

#include "llvm/ADT/BitVector.h"

#include <memory>

namespace fsr {

/// Elements of a buffer's storage that all hold one value.
struct Planted {
  size_t argument = 0;
  std::shared_ptr<const llvm::BitVector> elements;
  double value = 0;
};

/// One filling of all buffers.
struct InputSet {
  std::string words;             ///< For people and prompts; never a seed.
  std::vector<FillRecipe> fills; ///< One an argument.
  uint64_t seed = 0;
  bool exact = false;   ///< Demands equal values.
  bool shifted = false; ///< Buffers get no more than the proved alignment.
  bool repeats = false; ///< Many elements of one value.
  /// Other orders of warps and blocks run on it as well.
  bool comesAgain = false;
  bool special = false; ///< Some elements are no finite numbers.
  bool holdsNaN = false;
  /// Written buffers hold the answer to other inputs before a launch.
  bool answered = false;
  /// So far from one that results may leave their type: where the original's
  /// do, nothing is compared.
  bool mayOverflow = false;
  /// Elements that are as under another seed.
  double changed = 0;
  uint64_t otherSeed = 0;
  /// Share of the float elements that are not zero, in the same places of all
  /// buffers; 0: all. A sum has so many `terms` then.
  double kept = 0;
  double terms = 0;
  double perturb = 0;       ///< Relative, for the conditioning runs.
  unsigned perturbTurn = 0; ///< Which of them: each has signs of its own.
  /// Units of round-off by which a conditioning run moves the inputs.
  double conditioning = 2;
  /// By argument, the buffer whose memory kernels get in its place; empty: each
  /// its own.
  std::vector<size_t> standIns;
  /// Over what the recipes give.
  std::vector<Planted> planted;
};

class InputPlan {
public:
  /// `imageDigest` names the candidate's image: seeds exist only after it.
  InputPlan(const KernelTask &task, uint64_t runSeed,
            llvm::StringRef imageDigest);

  std::vector<InputSet> exact() const;
  /// The workload's recipes: one aligned, one shifted, a case.
  std::vector<InputSet> workload() const;
  /// Families for a candidate that would become the best.
  std::vector<InputSet> battery() const;
  /// Sums of few terms, for results that are few.
  std::vector<InputSet> sparse() const;
  /// The workload's own, with numbers that stand out at the marked elements.
  std::vector<InputSet> unread(llvm::ArrayRef<Planted> marked) const;
  /// The inputs whose answer the written buffers hold before `set`.
  static InputSet earlier(const InputSet &set);
  /// One number a row stands above all others. `fewResults`: kinds of which
  /// several fillings are told together, by their words.
  std::vector<InputSet> dominated(bool fewResults) const;
  /// Normal numbers with NaN and infinities among them. Empty where no float
  /// buffer is read.
  std::vector<InputSet> special() const;
  /// The `i`-th fresh set for timing, of a case of the workload.
  InputSet timing(unsigned i, size_t which = 0) const;

private:
  InputSet base(llvm::StringRef words, uint64_t index, size_t which) const;
  /// The workload's own, with another answer in the buffers that are written.
  std::vector<InputSet> answered() const;
  /// Read-only buffers that nobody can tell apart by type and shape are one.
  std::optional<InputSet> shared(uint64_t index) const;
  InputSet withFloats(llvm::StringRef words, uint64_t index,
                      const FillRecipe &recipe) const;
  void turnSome(InputSet &set, unsigned bit, llvm::StringRef words) const;
  uint64_t seed(uint64_t index) const;

  const KernelTask &task;
  uint64_t runSeed;
  std::string imageDigest;
};

/// The recipe as an element type can have it: integer buffers take no float
/// family.
FillRecipe recipeFor(ElementType element, const FillRecipe &recipe);
/// The normal that a "drifting" recipe is under `seed`.
FillRecipe drifted(const FillRecipe &recipe, uint64_t seed);

} // namespace fsr

#endif // FSR_LIB_WORKER_INPUTS_H
