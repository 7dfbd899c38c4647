// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The walk over a whole store. It knows where things lie, and has each judged
// by the code that a look-up uses, so that what is called whole here is what a
// search or a compile would take.
//
//===----------------------------------------------------------------------===//

#include "fsr/Store/Inventory.h"

#include "History.h"
#include "Layout.h"
#include "RecordFolder.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace fsr;
using namespace fsr::store;
using State = StoreEntry::State;

namespace {

class Walk {
public:
  Walk(llvm::StringRef folder, llvm::StringRef taskKey,
       llvm::function_ref<llvm::Error(StoreEntry &)> visit)
      : folder(folder), onlyKey(taskKey), visit(visit) {}

  llvm::Error run();

private:
  using Visitor =
      llvm::function_ref<llvm::Error(StoreEntry &, llvm::StringRef name)>;

  std::string absolute(const std::string &path) const {
    return folder + "/" + path;
  }
  /// Calls `next` with each name of the folder `path` that may be a thing of
  /// the store; what cannot be one is reported here.
  llvm::Error list(const std::string &path, bool wantsFolder,
                   llvm::function_ref<bool(llvm::StringRef)> isName,
                   Visitor next);
  llvm::Error record(StoreEntry &entry, llvm::StringRef taskKey,
                     llvm::StringRef target);
  llvm::Error task(StoreEntry &entry, llvm::StringRef taskKey);
  llvm::Error mark(StoreEntry &entry, llvm::StringRef taskKey);
  llvm::Error trial(StoreEntry &entry, llvm::StringRef taskKey,
                    llvm::StringRef trialKey);
  llvm::Error strength(StoreEntry &entry, llvm::StringRef taskKey,
                       bool isModelled);
  llvm::Error talk(StoreEntry &entry, llvm::StringRef taskKey,
                   llvm::StringRef name);
  llvm::Error report(StoreEntry &entry, State state, std::string note) {
    entry.state = state;
    entry.note = std::move(note);
    return visit(entry);
  }

  std::string folder;
  llvm::StringRef onlyKey;
  llvm::function_ref<llvm::Error(StoreEntry &)> visit;
};

} // namespace

static llvm::StringRef withoutSuffix(llvm::StringRef name) {
  name.consume_back(".json");
  return name;
}

static bool isJsonName(llvm::StringRef name) {
  return name.ends_with(".json") && isDigest(withoutSuffix(name));
}

llvm::Error Walk::list(const std::string &path, bool wantsFolder,
                       llvm::function_ref<bool(llvm::StringRef)> isName,
                       Visitor next) {
  llvm::Expected<std::vector<std::string>> names = sortedNames(absolute(path));
  if (!names)
    return names.takeError();
  for (const std::string &name : *names) {
    StoreEntry entry;
    entry.path = path + "/" + name;
    auto judge = [&]() -> llvm::Error {
      if (isStagingName(name))
        return report(entry, State::Unfinished, "its writer was stopped");
      if (llvm::StringRef(name).starts_with("."))
        return llvm::Error::success(); // .gitkeep and its like.
      if (!isName(name) ||
          llvm::sys::fs::is_directory(absolute(entry.path)) != wantsFolder)
        return report(entry, State::Foreign, "nothing that a store has here");
      return next(entry, name);
    };
    if (llvm::Error error = judge())
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Walk::record(StoreEntry &entry, llvm::StringRef taskKey,
                         llvm::StringRef target) {
  llvm::Expected<LoadedRecord> loaded =
      loadRecord(absolute(entry.path), taskKey, target);
  // Whoever prints the note has the path already.
  auto faulty = [&](llvm::StringRef sentence) {
    if (sentence.consume_front("record '" + absolute(entry.path) + "'"))
      sentence = sentence.ltrim(": ");
    return report(entry, State::Faulty, sentence.str());
  };
  if (!loaded)
    return faulty(llvm::toString(loaded.takeError()));
  if (!loaded->record)
    return faulty(loaded->skipped);
  entry.files = filesOf(*loaded);
  entry.content = std::move(*loaded->record);
  return visit(entry);
}

llvm::Error Walk::task(StoreEntry &entry, llvm::StringRef taskKey) {
  auto load = [&](std::string &text) -> llvm::Expected<KernelTask> {
    llvm::Expected<std::string> bytes =
        readFile(absolute(entry.path), maxJsonBytes);
    if (!bytes)
      return bytes.takeError();
    text = std::move(*bytes);
    llvm::Expected<KernelTask> task = parseTask(text);
    if (task && task->key != taskKey)
      return makeError(ErrorKind::Corrupt,
                       "it holds the task of another key: " + task->key);
    return task;
  };
  std::string text;
  llvm::Expected<KernelTask> task = load(text);
  if (!task)
    return report(entry, State::Faulty, llvm::toString(task.takeError()));
  entry.files.emplace_back("", std::move(text));
  entry.content = std::move(*task);
  return visit(entry);
}

llvm::Error Walk::mark(StoreEntry &entry, llvm::StringRef taskKey) {
  entry.taskKey = taskKey.str();
  std::string kernel = kernelOfMark(absolute(entry.path));
  return report(entry, State::Searching,
                "a search" + (kernel.empty() ? "" : " of '" + kernel + "'") +
                    " has not ended; the same command goes on with it");
}

llvm::Error Walk::trial(StoreEntry &entry, llvm::StringRef taskKey,
                        llvm::StringRef trialKey) {
  std::string text;
  llvm::Expected<Trial> trial =
      loadTrial(absolute(entry.path), taskKey, trialKey, text);
  if (!trial)
    return report(entry, State::Faulty, llvm::toString(trial.takeError()));
  entry.files.emplace_back("", std::move(text));
  entry.content = std::move(*trial);
  return visit(entry);
}

llvm::Error Walk::strength(StoreEntry &entry, llvm::StringRef taskKey,
                           bool isModelled) {
  std::string text;
  llvm::Expected<TaskStrength> strength =
      loadStrength(absolute(entry.path), taskKey, isModelled, text);
  if (!strength)
    return report(entry, State::Faulty, llvm::toString(strength.takeError()));
  entry.files.emplace_back("", std::move(text));
  entry.content = std::move(*strength);
  return visit(entry);
}

llvm::Error Walk::talk(StoreEntry &entry, llvm::StringRef taskKey,
                       llvm::StringRef name) {
  llvm::StringRef goal =
      name.take_front(std::min(name.find(".damaged-"), name.find(".old-")));
  std::optional<std::pair<int64_t, int64_t>> place = placeOf(goal);
  if (!place)
    return report(entry, State::Foreign, "nothing that a store has here");
  if (goal != name)
    return report(entry, State::SetAside,
                  name.contains(".old-")
                      ? "the answer to another request, moved aside"
                      : "a damaged talk, moved aside for a new one");
  LoadedTalk loaded =
      loadTalk(absolute(entry.path), taskKey, place->first, place->second);
  switch (loaded.state) {
  case LoadedTalk::State::Whole:
    entry.files = filesOf(loaded);
    entry.content = std::move(loaded.talk);
    return visit(entry);
  case LoadedTalk::State::Missing: // Removed since the folder was listed.
    return llvm::Error::success();
  case LoadedTalk::State::Unfinished:
  case LoadedTalk::State::OtherVersion:
  case LoadedTalk::State::Changed:
  case LoadedTalk::State::Damaged:
  case LoadedTalk::State::Unreadable:
    break;
  }
  return report(entry, State::Faulty, std::move(loaded.fault));
}

llvm::Error Walk::run() {
  auto isKey = [&](llvm::StringRef name) { return isDigest(name); };
  auto isTarget = [](llvm::StringRef name) {
    llvm::Expected<Target> target = Target::parse(name);
    if (!target) {
      llvm::consumeError(target.takeError());
      return false;
    }
    return target->family() == name;
  };
  auto any = [](llvm::StringRef) { return true; };
  auto chosen = [&](llvm::StringRef key) {
    return onlyKey.empty() || key == onlyKey;
  };
  auto forKeys = [&](llvm::StringRef part, Visitor next) {
    return list(
        part.str(), true, isKey, [&](StoreEntry &entry, llvm::StringRef key) {
          return chosen(key) ? next(entry, key) : llvm::Error::success();
        });
  };
  if (llvm::Error error =
          forKeys("records", [&](StoreEntry &keys, llvm::StringRef key) {
            return list(keys.path, true, isTarget,
                        [&](StoreEntry &targets, llvm::StringRef target) {
                          return list(targets.path, true, any,
                                      [&](StoreEntry &entry, llvm::StringRef) {
                                        return record(entry, key, target);
                                      });
                        });
          }))
    return error;
  if (llvm::Error error = list("searches", false, isJsonName,
                               [&](StoreEntry &entry, llvm::StringRef name) {
                                 llvm::StringRef key = withoutSuffix(name);
                                 return chosen(key) ? mark(entry, key)
                                                    : llvm::Error::success();
                               }))
    return error;
  if (llvm::Error error =
          forKeys("strength", [&](StoreEntry &keys, llvm::StringRef key) {
            auto isKind = [](llvm::StringRef name) {
              return withoutSuffix(name) == kindOfStrength(true) ||
                     withoutSuffix(name) == kindOfStrength(false);
            };
            return list(keys.path, false, isKind,
                        [&](StoreEntry &entry, llvm::StringRef name) {
                          return strength(entry, key,
                                          withoutSuffix(name) ==
                                              kindOfStrength(true));
                        });
          }))
    return error;
  if (llvm::Error error = list("tasks", false, isJsonName,
                               [&](StoreEntry &entry, llvm::StringRef name) {
                                 llvm::StringRef key = withoutSuffix(name);
                                 return chosen(key) ? task(entry, key)
                                                    : llvm::Error::success();
                               }))
    return error;
  if (llvm::Error error =
          forKeys("talks", [&](StoreEntry &keys, llvm::StringRef key) {
            return list(keys.path, true, any,
                        [&](StoreEntry &entry, llvm::StringRef name) {
                          return talk(entry, key, name);
                        });
          }))
    return error;
  return forKeys("trials", [&](StoreEntry &keys, llvm::StringRef key) {
    return list(keys.path, false, isJsonName,
                [&](StoreEntry &entry, llvm::StringRef name) {
                  return trial(entry, key, withoutSuffix(name));
                });
  });
}

static std::string trimmed(llvm::StringRef folder) {
  llvm::StringRef name = folder.rtrim('/');
  return name.empty() ? folder.str() : name.str();
}

llvm::Error
fsr::forEachEntry(llvm::StringRef folder, llvm::StringRef taskKey,
                  llvm::function_ref<llvm::Error(StoreEntry &)> visit) {
  std::string name = trimmed(folder);
  return addContext(Walk(name, taskKey, visit).run(), "store '" + name + "'");
}

bool fsr::ranksBefore(const Record &a, const Record &b) {
  return isBetter(a, b);
}

llvm::StringRef TaskHistory::kernelName() const {
  if (task)
    return task->name;
  if (!records.empty())
    return records.front().kernelName;
  return talks.empty() ? llvm::StringRef() : talks.front().taskName;
}

llvm::StringRef TaskHistory::target() const {
  if (task)
    return task->target;
  return records.empty() ? llvm::StringRef() : records.front().target;
}

llvm::Expected<StoreHistory> fsr::readHistory(llvm::StringRef folder) {
  std::map<std::string, TaskHistory> tasks;
  StoreHistory history;
  llvm::Error error = forEachEntry(folder, "", [&](StoreEntry &entry) {
    entry.files.clear();
    if (auto *record = std::get_if<Record>(&entry.content)) {
      record->fatbin.clear();
      tasks[record->taskKey].records.push_back(std::move(*record));
    } else if (auto *task = std::get_if<KernelTask>(&entry.content)) {
      tasks[task->key].task = std::move(*task);
    } else if (auto *talk = std::get_if<Talk>(&entry.content)) {
      tasks[talk->taskKey].talks.push_back(std::move(*talk));
    } else if (auto *trial = std::get_if<Trial>(&entry.content)) {
      tasks[trial->taskKey].trials.push_back(std::move(*trial));
    } else if (auto *test = std::get_if<TaskStrength>(&entry.content)) {
      tasks[test->taskKey].strengths.push_back(std::move(*test));
    } else if (entry.state == State::Searching) {
      tasks[entry.taskKey].unfinished = true;
    } else {
      history.passedOver.push_back(std::move(entry));
    }
    return llvm::Error::success();
  });
  if (error)
    return error;
  for (auto &[key, task] : tasks) {
    task.key = key;
    llvm::sort(task.records, ranksBefore);
    llvm::sort(task.talks, [](const Talk &a, const Talk &b) {
      return std::tie(a.round, a.slot) < std::tie(b.round, b.slot);
    });
    llvm::sort(task.trials, [](const Trial &a, const Trial &b) {
      return std::tie(a.round, a.slot, a.candidateHash, a.parameters) <
             std::tie(b.round, b.slot, b.candidateHash, b.parameters);
    });
    history.tasks.push_back(std::move(task));
  }
  return history;
}
