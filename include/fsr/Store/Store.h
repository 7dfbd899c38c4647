// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The memory of past searches. A store is a folder, made to be checked in:
//
//   records/<task key>/<target>/<record id>/   winners, one folder each
//   trials/<task key>/<trial key>.json         how every candidate fared
//   talks/<task key>/r<round>-s<slot>/         requests and answers
//   tasks/<task key>.json                      the tasks themselves
//   spending/<task key>/<run>.jsonl            what answers cost; kept by LLM
//   peaks/<digest>.json                        how fast GPUs of a model are
//   searches/<task key>.json                   of a search that has not ended
//
// A record is staged and renamed once, so two writers are safe and a kill
// leaves nothing half. A record of an unknown version or an unfinished one is
// skipped and counted; one whose bytes do not match its id is an error that
// names it, since trusting it would be a miscompile. Only finished things are
// written. docs/formats/store.md is the reference.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_STORE_STORE_H
#define FSR_STORE_STORE_H

#include "fsr/Core/TaskStrength.h"

#include <memory>
#include <optional>

namespace fsr {

/// A record as found, and what was passed over on the way.
struct LookUp {
  std::optional<Record> record;
  /// One sentence each: unfinished staging, unknown version.
  std::vector<std::string> skipped;
};

/// What a compile needs of a store.
class RecordStore {
public:
  virtual ~RecordStore();

  /// The record of this task and target family with the highest lower bound of
  /// the gain among those whose evidence is at least `level`, then the smallest
  /// id. An error (kind Corrupt) names the record that was changed.
  virtual llvm::Expected<LookUp> best(llvm::StringRef taskKey,
                                      llvm::StringRef target,
                                      EvidenceLevel level) = 0;
};

/// What a search needs beside that.
class SearchStore : public RecordStore {
public:
  ~SearchStore() override;

  /// Sets `record.id` and writes it. When this returns it is on disk; the same
  /// holds for the others below. All but the look-ups are errors in a store
  /// that was opened for reading.
  virtual llvm::Error addRecord(Record &record) = 0;
  /// Every whole record of a task and target family without its fatbin, the
  /// best first. Errors as those of `best`.
  virtual llvm::Expected<std::vector<Record>>
  findRecords(llvm::StringRef taskKey, llvm::StringRef target) = 0;
  /// The first whole trial of a key stays.
  virtual llvm::Error addTrial(const Trial &trial) = 0;
  /// Nothing for one that is damaged or of an unknown version: a trial can be
  /// run again.
  virtual llvm::Expected<std::optional<Trial>>
  findTrial(llvm::StringRef taskKey, llvm::StringRef trialKey) = 0;
  /// How a task stood its own test; the latest stays.
  virtual llvm::Error addStrength(const TaskStrength &strength) = 0;
  /// Nothing for one that is damaged or of an unknown version: a test can be
  /// made again. Whether it is about the task as it is now is the caller's.
  virtual llvm::Expected<std::optional<TaskStrength>>
  findStrength(llvm::StringRef taskKey, bool isModelled) = 0;
  /// What GPUs of a model reach under a driver in a test of themselves; a
  /// cache, with nothing in it that names one of them.
  virtual llvm::Error addPeaks(llvm::StringRef device, llvm::StringRef driver,
                               const DevicePeaks &peaks) = 0;
  /// Nothing where that was not measured, or is damaged.
  virtual std::optional<DevicePeaks> findPeaks(llvm::StringRef device,
                                               llvm::StringRef driver) = 0;
  /// The first whole talk of a round and slot stays; a damaged one is moved
  /// aside, to a name that is never read.
  virtual llvm::Error addTalk(const Talk &talk) = 0;
  /// Makes the place of a task's talks and tries whether it can be written: an
  /// answer that cannot be kept must not be paid for.
  virtual llvm::Error prepareTalks(llvm::StringRef taskKey) = 0;
  /// Nothing for one that is unfinished or damaged. An error names one that was
  /// changed (kind Corrupt), and one of an unknown version (Unsupported), whose
  /// place could not take a new answer.
  virtual llvm::Expected<std::optional<Talk>>
  findTalk(llvm::StringRef taskKey, int64_t round, int64_t slot) = 0;
  /// Keeps the task itself beside its trials, for tools that have no module.
  virtual llvm::Error addTask(const KernelTask &task) = 0;

  /// Rounds outlast runs: a search is marked before its first request, and the
  /// mark is cleared when it has ended of itself. The next run then knows that
  /// there is more to do, although there may be a record already.
  virtual llvm::Error markUnfinished(llvm::StringRef taskKey,
                                     llvm::StringRef kernelName) = 0;
  virtual llvm::Error clearUnfinished(llvm::StringRef taskKey) = 0;
  virtual bool isUnfinished(llvm::StringRef taskKey) = 0;
};

enum class StoreMode {
  Read,   ///< The folder must be there.
  Search, ///< The folder is made where it is missing.
};

/// Opens the store in `folder`. Errors: it is a file, it is missing (Read), it
/// cannot be made or written (Search).
llvm::Expected<std::unique_ptr<SearchStore>> openStore(llvm::StringRef folder,
                                                       StoreMode mode);

} // namespace fsr

#endif // FSR_STORE_STORE_H
