// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// True values of every element, from a clone of the original in which every
// float is an f64, run on the device itself. They stand where the oracle has
// none, or where it is too slow for all elements.
//
// The clone never writes to the task's buffers: what the original writes has
// memory of its own, set up before the candidate runs, when nothing but inputs
// is in it. It runs after the candidate, and what it gave is cleared before the
// next launch. The device holds no true value while a candidate runs.
//
// Nothing here fails an evaluation but a device that is lost: where there is no
// clone, `whyNot` says the reason.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_CLONEVALUES_H
#define FSR_LIB_WORKER_CLONEVALUES_H

#include "Launch.h"
#include "OracleRule.h"

#include "fsr/Core/Trial.h"

#include <map>
#include <set>

namespace fsr {

struct CloneAnswer {
  FsrJudgement judgement{};
  double originalRms = 0, candidateRms = 0, ulpRms = 0;
  /// So many that their mean tells what one may expect.
  bool isMany = false;
  /// Of the row's largest value, by the rule for all elements together.
  double allowedRms() const;
  bool passes() const { return !judgement.failing; }
};

struct CloneRule {
  double factor = 0;  ///< Of a row's largest true value.
  double tiny = 0;    ///< For results near zero.
  double ceiling = 0; ///< Where the original has more, nothing is judged.
};

class CloneValues {
public:
  CloneValues(Helpers &helpers, const KernelTask &task, llvm::StringRef image,
              llvm::StringRef whyNot);

  /// Its own memory, with what the original finds in the buffers. False: there
  /// is no clone.
  llvm::Expected<bool> prepare(TaskBuffers &buffers);
  /// After the candidate.
  llvm::Error run(const TaskBuffers &buffers);
  llvm::Error drop();
  bool hasValues() const { return isSolved; }
  /// The clone's memory in place of an argument that the original writes; 0:
  /// there is none.
  DevicePointer truthOf(size_t argument) const;

  /// Nothing where no true values are known of the buffer, or the original lies
  /// so far from them that they are not its own.
  llvm::Expected<std::optional<CloneAnswer>>
  compare(TaskBuffers &buffers, const TaskBuffer &buffer, DevicePointer out,
          DevicePointer original, std::optional<uint64_t> poison,
          const CloneRule &rule);

  /// The largest error among the first of the elements.
  llvm::Expected<std::optional<WorstElement>>
  findWorst(TaskBuffers &buffers, const TaskBuffer &buffer, DevicePointer out,
            DevicePointer original);

  const std::string &whyNot() const { return why; }
  void setWords(llvm::StringRef text) { words = text.str(); }
  void beginPhase() {
    told.clear();
    distrusted.clear();
  }
  /// Of the fillings since; empty where none was used.
  std::string describe() const;

private:
  struct Told {
    uint64_t compared = 0, fillings = 0;
    double worst = 0, rms = 0, originalRms = 0, allowedRms = 0;
  };
  struct Own {
    size_t argument = 0;
    DevicePointer memory = 0;
    uint64_t bytes = 0;
  };
  llvm::Error open(TaskBuffers &buffers);
  /// Keeps an error of the device that is lost; any other is the reason.
  llvm::Error giveUp(llvm::Error error);

  Helpers &helpers;
  KernelTask promoted; ///< The task as the clone sees it.
  llvm::StringRef image;
  std::string why, words;
  bool isOpen = false, isPrepared = false, isSolved = false;
  std::unique_ptr<LoadedImage> loaded;
  FunctionHandle function = nullptr;
  std::vector<Own> own;
  DevicePointer rowTruth = 0, rowError = 0;
  std::map<std::string, Told> told;
  std::map<std::string, std::set<std::string>> distrusted;
};

} // namespace fsr

#endif // FSR_LIB_WORKER_CLONEVALUES_H
