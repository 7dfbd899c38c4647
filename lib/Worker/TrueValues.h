// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The oracle within an evaluation: how much of the original it may run on which
// inputs, the comparison with what it says, and what the evidence tells of it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_TRUEVALUES_H
#define FSR_LIB_WORKER_TRUEVALUES_H

#include "Buffers.h"
#include "OracleRule.h"

#include "fsr/Core/Trial.h"

#include <map>
#include <set>

namespace fsr {

/// One buffer of one filling.
struct TrueComparison {
  std::vector<uint64_t> original, candidate; ///< Bits, by element.
  TruthAnswer answer;
  const TrueBuffer *truth = nullptr;
  /// The inputs are of all sizes: what the original rounded tells what a right
  /// kernel may. On those that make many steps exact the bound is luck.
  bool decides = false;
};

class TrueValues {
public:
  /// `ptx`: the original's, or empty where it is not known.
  TrueValues(Helpers &helpers, const KernelTask &task, llvm::StringRef ptx,
             uint64_t seed);

  /// Before the original runs, with all buffers filled.
  llvm::Error prepare(const TaskBuffers &buffers, const InputSet &set,
                      bool full);
  /// After the candidate has run for the last time on these inputs.
  llvm::Error solve(const TaskBuffers &buffers);
  void drop();

  /// Null: nothing is known of the buffer on these inputs.
  llvm::Expected<const TrueComparison *>
  compare(const TaskBuffer &buffer, const InputSet &set, DevicePointer out,
          DevicePointer original, double accumulation, double tiny);
  /// Of this filling.
  const TrueComparison *find(size_t argument) const;
  /// The largest error of this filling; nothing where `find` gives null.
  std::optional<WorstElement> findWorst(const TaskBuffer &buffer) const;
  /// The factor of the rule for whole rows, narrowed by what is known.
  double narrowed(size_t argument, double factor) const;

  /// Forgets what was told so far; a row of fillings begins.
  void beginPhase();
  /// Of the fillings since; nothing where no true values were used.
  /// `more`: what a clone said.
  std::optional<Check> check(llvm::StringRef words,
                             const std::string &more) const;
  /// Of this filling: all that the original writes.
  bool isWhole() const;
  bool isKnown() const { return !truth.buffers.empty(); }
  /// "no true values on normal inputs, because ..."; empty: there were.
  std::string missing() const;

private:
  struct Told {
    uint64_t compared = 0, fillings = 0, unbounded = 0;
    double worst = 0, rms = 0, originalRms = 0, allowedRms = 0;
    bool isFew = false; ///< The filling that `rms` is of.
    std::string part;
  };
  llvm::Expected<std::vector<uint64_t>>
  gather(const TaskBuffer &buffer, const TrueBuffer &truth, DevicePointer base);
  llvm::Error fetch(const TaskBuffers &buffers, size_t argument,
                    uint64_t offset, void *to, uint64_t bytes);
  void lack(const std::string &why);

  Helpers &helpers;
  const KernelTask &task;
  std::unique_ptr<Oracle> oracle;
  std::string words; ///< Of the filling under way.
  bool isPrepared = false;
  Truth truth;
  std::map<size_t, TrueComparison> comparisons;
  std::map<std::string, Told> told;                     ///< By buffer.
  std::map<std::string, std::set<std::string>> lacking; ///< Inputs by reason.
};

} // namespace fsr

#endif // FSR_LIB_WORKER_TRUEVALUES_H
