// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A store as a whole, for the people who keep one: what lies in it, is it what
// was written, copy what another store lacks, throw away what was beaten. A
// search and a compile need none of this; they look up by key.
//
// Whatever is read here is verified on the way. Damage is data (an entry's
// state), not an error; an error is a folder that cannot be listed or written.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_STORE_INVENTORY_H
#define FSR_STORE_INVENTORY_H

#include "fsr/Core/TaskStrength.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <variant>
#include <vector>

namespace fsr {

/// One thing of a store, or one that lies where such a thing should.
struct StoreEntry {
  enum class State {
    Whole,
    Faulty,     ///< Changed, incomplete, or of a version not known here.
    Unfinished, ///< Left by a writer that was stopped; never read.
    SetAside,   ///< A talk that was in the way of a new one.
    Searching,  ///< The mark of a search that has not ended.
    Foreign,    ///< Nothing that a store has here; left alone.
  };
  State state = State::Whole;
  std::string path; ///< Below the store.
  std::string note; ///< One sentence, where it is not whole.

  std::string taskKey; ///< Of a mark.
  /// Where it is whole: what it is.
  std::variant<std::monostate, Record, Trial, Talk, KernelTask, TaskStrength>
      content;
  /// The bytes that were verified: names within the folder `path`, or one
  /// nameless file at `path`.
  std::vector<std::pair<std::string, std::string>> files;

  template <typename T>
  const T *get() const {
    return std::get_if<T>(&content);
  }
};

/// Calls `visit` with every entry of the store in `folder`, in the order of
/// the paths within records, searches, strength, tasks, talks and trials. With
/// `taskKey`, only those of one task.
llvm::Error forEachEntry(llvm::StringRef folder, llvm::StringRef taskKey,
                         llvm::function_ref<llvm::Error(StoreEntry &)> visit);

/// Calls `visit` with what of the store's spending stops a search that has to
/// keep a cap: the path below the store, and one sentence.
llvm::Error forEachSpendingFault(
    llvm::StringRef folder,
    llvm::function_ref<void(const std::string &path, const std::string &why)>
        visit);

/// Everything whole of one task.
struct TaskHistory {
  std::string key;
  std::optional<KernelTask> task;
  std::vector<Record> records;         ///< Without fatbins; the best first.
  std::vector<Trial> trials;           ///< By round, slot and parameters.
  std::vector<Talk> talks;             ///< By round and slot.
  std::vector<TaskStrength> strengths; ///< One a kind of device.
  bool unfinished = false;             ///< A search of it has not ended.

  /// Of the task, else of a record or a talk; empty where none names it.
  llvm::StringRef kernelName() const;
  llvm::StringRef target() const;
};

struct StoreHistory {
  std::vector<TaskHistory> tasks;     ///< By key.
  std::vector<StoreEntry> passedOver; ///< What is not whole.
};

llvm::Expected<StoreHistory> readHistory(llvm::StringRef folder);

/// Whether `a` is kept before `b`: stronger evidence, then what a look-up
/// takes first.
bool ranksBefore(const Record &a, const Record &b);

struct MergeReport {
  std::vector<std::string> copied; ///< Paths below the store.
  size_t same = 0;                 ///< There already, byte for byte.
  /// There already and whole, with other bytes; left as they are.
  std::vector<std::string> kept;
  /// Not whole, in either store: path and sentence.
  std::vector<std::string> faults;
};

/// Copies what `into` lacks, byte for byte, and only what is whole. Never
/// writes over anything. Makes `into` where it is missing.
llvm::Expected<MergeReport> mergeStores(llvm::StringRef from,
                                        llvm::StringRef into);

struct PruneOptions {
  size_t keep = 1; ///< Records a task and target.
  bool trials = false, talks = false;
  bool dryRun = false;
};

struct PruneReport {
  std::vector<std::string> removed; ///< Paths; with `dryRun`, only named.
  uint64_t bytes = 0;
  std::vector<std::string> faults; ///< Not whole, and so left alone.
};

/// Removes all records but the best `keep` a task and target and, where asked,
/// all trials, with the tests of their tasks, and talks. Tasks, and what cannot
/// be verified, stay.
llvm::Expected<PruneReport> pruneStore(llvm::StringRef folder,
                                       const PruneOptions &options);

} // namespace fsr

#endif // FSR_STORE_INVENTORY_H
