// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What was spent on the tasks of a store, by all runs there ever were. A call
// is on the disk at its dearest before it is sent, and at what it took after it
// has ended: a run that is killed in between leaves the dearest there. Each run
// appends to files of its own; the lock makes "is there room" and "it is taken"
// one step, so that runs at the same time keep a cap together.
// docs/formats/store.md, "Spending", is the reference of the files.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_LLM_LEDGER_H
#define FSR_LIB_LLM_LEDGER_H

#include "fsr/Core/SpendingFile.h"
#include "fsr/LLM/ChatClient.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>

namespace fsr {

/// What other runs spent.
struct Spent {
  int64_t calls = 0;
  Tokens tokens;   ///< All.
  Tokens unpriced; ///< Of calls whose price was not known.
  double usd = 0;  ///< Of the others.
};

class Ledger {
public:
  /// Touches nothing; `folder` is made when the first call is written.
  Ledger(std::string folder, std::string provider,
         std::chrono::seconds longestLockWait = std::chrono::seconds(30));
  ~Ledger();

  /// Adds tasks to those whose spending is counted. An error (BadInput): no
  /// task key.
  llvm::Error count(llvm::ArrayRef<std::string> taskKeys);

  /// What other runs spent on the tasks that are counted, as it is now. An
  /// error (Corrupt, Unsupported) names a file that cannot be read: what was
  /// spent is then not known.
  llvm::Expected<Spent> others();

  /// Asks `fits` with what `others` says and, where it agrees, writes a call of
  /// a task that is counted at its dearest. The call's number, once it is on
  /// the disk; or nothing.
  llvm::Expected<std::optional<int64_t>>
  setAside(const ChatRequest &request, const Cost &dearest,
           llvm::function_ref<bool(const Spent &)> fits);

  /// What a call really took. Where this fails, the dearest stays.
  llvm::Error settle(llvm::StringRef taskKey, int64_t call, const Cost &cost);

private:
  struct Task {
    OwnedFd folder;
    std::map<std::string, SpendingFile> files; ///< Of other runs.
    OwnedFd own;                               ///< This run's file.
    uint64_t length = 0;                       ///< Of it, in whole lines.
  };
  class Lock;

  llvm::Error openFolder(bool make);
  llvm::Error openTask(const std::string &key, Task &task, bool make);
  llvm::Error refresh();
  llvm::Error append(const std::string &key, Task &task, std::string lines);
  Spent sum() const;

  std::string folder, provider, run;
  const std::chrono::seconds longestLockWait;
  OwnedFd root, lockFile;
  std::map<std::string, Task> tasks; ///< By key.
  int64_t lastCall = 0;
};

} // namespace fsr

#endif // FSR_LIB_LLM_LEDGER_H
