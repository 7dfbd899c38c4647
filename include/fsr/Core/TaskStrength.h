// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Can a task's inputs tell a bad candidate from a good one? Before a search,
// dummies that are wrong by construction go through the checks that candidates
// go through; this is how they fared. docs/design/validation.md names them.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_TASKSTRENGTH_H
#define FSR_CORE_TASKSTRENGTH_H

#include "fsr/Core/Trial.h"

namespace fsr {

/// How one dummy fared.
struct DummyResult {
  enum class Outcome {
    Refused,       ///< As it must be.
    Passed,        ///< Every check: the task is too weak.
    SameFunction,  ///< It gives the original's bits on spread-out inputs: the
                   ///< kernel is that copy, or leaves those elements alone.
    NotApplicable, ///< The task has nothing to do it with.
  };
  std::string name; ///< "zeros"
  Outcome outcome = Outcome::Refused;
  /// Refused: got through the quick rung, and fell on the full one.
  bool passedQuick = false;
  std::string inputs; ///< Families that decided; never a seed.
  std::string detail; ///< One sentence.
};
llvm::StringRef nameOf(DummyResult::Outcome outcome);

/// The dummies' results of one task on one kind of device.
struct TaskStrength {
  static constexpr int64_t formatVersion = 1;
  /// Goes up with every change of what the dummies do: an older result is made
  /// again.
  static constexpr int64_t currentBattery = 1;
  static constexpr size_t maxDummies = 64;

  int64_t battery = currentBattery;
  std::string taskKey;
  bool isModelled = false; ///< On a virtual device.
  std::string device;      ///< For people.
  /// Of the workload that the task came with; another one is tested anew.
  std::string givenDigest;
  /// The workload that the dummies were held against: the task's own or, where
  /// that is the standard one, the first family that serves.
  std::vector<WorkloadCase> workload;
  std::vector<DummyResult> dummies;

  /// The first dummy that passed; null where the task is strong enough.
  const DummyResult *weakness() const;
  /// Dummies that only the inputs of the full rung refuse.
  unsigned passedQuick() const;
  /// "14 dummies, all refused"
  std::string summary() const;
};

/// For `TaskStrength::givenDigest`: SHA-256 over all cases.
std::string digestOf(llvm::ArrayRef<WorkloadCase> workload);
/// "x normal(0, 1), y zeros", of the buffers of one case.
std::string fillsText(const KernelTask &task, const WorkloadCase &one);

llvm::json::Value toJSON(const DummyResult &value);
bool fromJSON(const llvm::json::Value &json, DummyResult &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const TaskStrength &value);
/// Refuses what a store or a worker must not bring: more than `maxDummies`,
/// unknown outcomes.
bool fromJSON(const llvm::json::Value &json, TaskStrength &value,
              llvm::json::Path path);

} // namespace fsr

#endif // FSR_CORE_TASKSTRENGTH_H
