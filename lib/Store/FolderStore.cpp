// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The store as one folder. Nothing is kept in memory between calls, so what
// other processes write is seen at once, and a look-up costs what lies under
// its one key.
//
//===----------------------------------------------------------------------===//

#include "fsr/Store/Store.h"

#include "History.h"
#include "Layout.h"
#include "RecordFolder.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsr;
using namespace fsr::store;

RecordStore::~RecordStore() = default;
SearchStore::~SearchStore() = default;

bool fsr::store::isDigest(llvm::StringRef text) {
  return text.size() == 64 && llvm::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

llvm::Error fsr::store::checkDigest(llvm::StringRef what,
                                    llvm::StringRef text) {
  if (isDigest(text))
    return llvm::Error::success();
  return makeError(ErrorKind::BadInput, what + " '" + text.take_front(80) +
                                            "': wanted 64 lower-case hex "
                                            "digits");
}

llvm::Error fsr::store::checkNoLinks(llvm::StringRef store,
                                     llvm::StringRef path) {
  for (size_t end = store.size() + 1; end < path.size(); ++end) {
    end = std::min(path.find('/', end), path.size());
    llvm::StringRef part = path.take_front(end);
    struct stat info;
    if (::lstat(part.str().c_str(), &info) != 0)
      break;
    if (S_ISLNK(info.st_mode))
      return makeError(ErrorKind::BadInput,
                       "'" + part +
                           "' is a symbolic link; nothing in a store is "
                           "written through one");
  }
  return llvm::Error::success();
}

llvm::Error fsr::store::checkSize(llvm::StringRef what, size_t bytes,
                                  uint64_t cap) {
  if (bytes <= cap)
    return llvm::Error::success();
  return makeError(ErrorKind::BadInput, what + " of " + llvm::Twine(bytes) +
                                            " bytes: a store takes at most " +
                                            llvm::Twine(cap));
}

llvm::Expected<llvm::json::Object>
fsr::store::parseObject(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = parseJson(text);
  if (!value)
    return value.takeError();
  if (llvm::json::Object *object = value->getAsObject())
    return std::move(*object);
  return makeError(ErrorKind::Corrupt, "got JSON that is no object");
}

std::optional<int64_t> fsr::store::versionOf(const llvm::json::Object &object) {
  return object.getInteger("format_version");
}

llvm::Expected<llvm::json::Object> fsr::store::loadSealed(llvm::StringRef path,
                                                          int64_t version,
                                                          std::string &text) {
  llvm::Expected<std::string> bytes = readFile(path, maxJsonBytes);
  if (!bytes)
    return bytes.takeError();
  text = std::move(*bytes);
  llvm::Expected<llvm::json::Object> object = parseObject(text);
  if (!object)
    return object.takeError();
  if (std::optional<int64_t> stated = versionOf(*object); stated != version)
    return makeError(stated > version ? ErrorKind::Unsupported
                                      : ErrorKind::Corrupt,
                     "unknown format version");
  if (llvm::Error error = unseal(*object))
    return std::move(error);
  return object;
}

llvm::Expected<std::vector<std::string>>
fsr::store::sortedNames(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code code;
  llvm::sys::fs::directory_iterator entry(folder, code), end;
  for (; !code && entry != end; entry.increment(code))
    names.push_back(llvm::sys::path::filename(entry->path()).str());
  if (code && code != std::errc::no_such_file_or_directory)
    return makeError(ErrorKind::Unavailable,
                     "cannot list '" + folder + "': " + code.message());
  llvm::sort(names);
  return names;
}

/// The family of a target, or an error. Only this becomes part of a path.
static llvm::Expected<std::string> familyOf(llvm::StringRef target) {
  llvm::Expected<Target> parsed = Target::parse(target);
  if (!parsed)
    return parsed.takeError();
  return parsed->family();
}

bool fsr::store::isBetter(const Record &a, const Record &b) {
  auto gain = [](const Record &record) {
    double low = record.measurement.speedupLow;
    return std::isnan(low) ? -HUGE_VAL : low;
  };
  // A model's gain is not to be held against a measured one.
  if (a.evidence.level != b.evidence.level)
    return a.evidence.level > b.evidence.level;
  if (gain(a) != gain(b))
    return gain(a) > gain(b);
  return a.id < b.id;
}

namespace {

class FolderStore final : public SearchStore {
public:
  FolderStore(std::string folder, StoreMode mode)
      : folder(std::move(folder)), mode(mode) {}

  llvm::Expected<LookUp> best(llvm::StringRef taskKey, llvm::StringRef target,
                              EvidenceLevel level) override;
  llvm::Error addRecord(Record &record) override;
  llvm::Error addTrial(const Trial &trial) override;
  llvm::Expected<std::optional<Trial>>
  findTrial(llvm::StringRef taskKey, llvm::StringRef trialKey) override;
  llvm::Error addStrength(const TaskStrength &strength) override;
  llvm::Expected<std::optional<TaskStrength>>
  findStrength(llvm::StringRef taskKey, bool isModelled) override;
  llvm::Error addPeaks(llvm::StringRef device, llvm::StringRef driver,
                       const DevicePeaks &peaks) override;
  std::optional<DevicePeaks> findPeaks(llvm::StringRef device,
                                       llvm::StringRef driver) override;
  llvm::Error prepareTalks(llvm::StringRef taskKey) override;
  llvm::Error addTalk(const Talk &talk) override;
  llvm::Expected<std::optional<Talk>>
  findTalk(llvm::StringRef taskKey, int64_t round, int64_t slot) override;
  llvm::Error addTask(const KernelTask &task) override;
  llvm::Expected<std::vector<Record>>
  findRecords(llvm::StringRef taskKey, llvm::StringRef target) override;
  llvm::Error markUnfinished(llvm::StringRef taskKey,
                             llvm::StringRef kernelName) override;
  llvm::Error clearUnfinished(llvm::StringRef taskKey) override;
  bool isUnfinished(llvm::StringRef taskKey) override;

private:
  template <typename Write>
  llvm::Error writing(Write write) {
    if (mode == StoreMode::Read)
      return inStore(
          makeError(ErrorKind::BadInput, "it was opened for reading only"));
    return inStore(write());
  }
  llvm::Error inStore(llvm::Error error) const {
    return addContext(std::move(error), "store '" + folder + "'");
  }
  template <typename T>
  llvm::Expected<T> inStore(llvm::Expected<T> value) const {
    if (value)
      return value;
    return inStore(value.takeError());
  }
  /// Calls `visit` with every whole record; gives the sentences of the others.
  llvm::Expected<std::vector<std::string>>
  forRecords(llvm::StringRef taskKey, llvm::StringRef target,
             llvm::function_ref<void(Record)> visit);
  llvm::Error write(Record &record);
  llvm::Error write(const KernelTask &task);

  std::string folder;
  StoreMode mode;
};

} // namespace

llvm::Expected<std::vector<std::string>>
FolderStore::forRecords(llvm::StringRef taskKey, llvm::StringRef target,
                        llvm::function_ref<void(Record)> visit) {
  if (llvm::Error error = store::checkDigest("task key", taskKey))
    return error;
  llvm::Expected<std::string> family = familyOf(target);
  if (!family)
    return family.takeError();
  std::string place = (folder + "/records/" + taskKey + "/" + *family).str();
  llvm::Expected<std::vector<std::string>> names = sortedNames(place);
  if (!names)
    return names.takeError();
  std::vector<std::string> skipped;
  for (const std::string &name : *names) {
    std::string path = place + "/" + name;
    if (isStagingName(name)) {
      skipped.push_back("record '" + path +
                        "' is unfinished: its writer was stopped");
      continue;
    }
    // What lies beside records, such as a note or .gitkeep, is no record.
    if (!llvm::sys::fs::is_directory(path))
      continue;
    llvm::Expected<LoadedRecord> loaded = loadRecord(path, taskKey, *family);
    if (!loaded)
      return loaded.takeError();
    if (loaded->record)
      visit(std::move(*loaded->record));
    else
      skipped.push_back(std::move(loaded->skipped));
  }
  return skipped;
}

llvm::Error FolderStore::write(Record &record) {
  llvm::Expected<std::string> family = familyOf(record.target);
  if (!family)
    return family.takeError();
  if (*family != record.target)
    return makeError(ErrorKind::BadInput,
                     "record for target '" + record.target +
                         "': wanted the family, '" + *family + "'");
  llvm::Expected<EncodedRecord> encoded = encodeRecord(record);
  if (!encoded)
    return encoded.takeError();
  std::string path = (folder + "/records/" + record.taskKey + "/" +
                      record.target + "/" + encoded->id);
  if (llvm::Error error = checkNoLinks(folder, path))
    return error;
  llvm::Expected<bool> written = writeFolderAtomically(path, encoded->files);
  if (!written)
    return written.takeError();
  record.id = encoded->id;
  if (*written)
    return llvm::Error::success();
  // The same record is there. Whoever copied the store may have left files of
  // it behind; its name says what they must be.
  for (const NamedBytes &file : encoded->files)
    if (llvm::Error error =
            writeFileOnce(path + "/" + file.first, file.second).takeError())
      return error;
  return loadRecord(path, record.taskKey, record.target).takeError();
}

static bool isOfLaterVersion(llvm::StringRef text) {
  llvm::Expected<llvm::json::Object> object = parseObject(text);
  if (object)
    return versionOf(*object) > KernelTask::formatVersion;
  llvm::consumeError(object.takeError());
  return false;
}

llvm::Error FolderStore::write(const KernelTask &task) {
  std::string text = printTask(task);
  if (llvm::Expected<KernelTask> back = parseTask(text); !back)
    return makeError(ErrorKind::BadInput,
                     "a task that could not be read back: " +
                         llvm::toString(back.takeError()));
  if (llvm::Error error = store::checkDigest("task key", task.key))
    return error;
  std::string path = folder + "/tasks/" + task.key + ".json";
  if (llvm::Error error = checkSize("task", text.size(), maxJsonBytes))
    return error;
  if (llvm::Error error = checkNoLinks(folder, path))
    return error;
  llvm::Expected<std::string> there = readFile(path, maxJsonBytes);
  if (!there)
    llvm::consumeError(there.takeError());
  else if (*there == text || isOfLaterVersion(*there))
    return llvm::Error::success();
  return writeFileAtomically(path, text);
}

llvm::Expected<LookUp> FolderStore::best(llvm::StringRef taskKey,
                                         llvm::StringRef target,
                                         EvidenceLevel level) {
  LookUp found;
  llvm::Expected<std::vector<std::string>> skipped =
      inStore(forRecords(taskKey, target, [&](Record record) {
        if (record.evidence.level >= level &&
            (!found.record || isBetter(record, *found.record)))
          found.record = std::move(record);
      }));
  if (!skipped)
    return skipped.takeError();
  found.skipped = std::move(*skipped);
  return found;
}

llvm::Expected<std::vector<Record>>
FolderStore::findRecords(llvm::StringRef taskKey, llvm::StringRef target) {
  std::vector<Record> records;
  llvm::Expected<std::vector<std::string>> skipped =
      inStore(forRecords(taskKey, target, [&](Record record) {
        record.fatbin.clear();
        records.push_back(std::move(record));
      }));
  if (!skipped)
    return skipped.takeError();
  llvm::sort(records, isBetter);
  return records;
}

llvm::Error FolderStore::addRecord(Record &record) {
  return writing([&] { return write(record); });
}

llvm::Error FolderStore::addTask(const KernelTask &task) {
  return writing([&] { return write(task); });
}

llvm::Error FolderStore::addTrial(const Trial &trial) {
  return writing([&] { return store::addTrial(folder, trial); });
}

llvm::Expected<std::optional<Trial>>
FolderStore::findTrial(llvm::StringRef taskKey, llvm::StringRef trialKey) {
  return inStore(store::findTrial(folder, taskKey, trialKey));
}

llvm::Error FolderStore::addStrength(const TaskStrength &strength) {
  return writing([&] { return store::addStrength(folder, strength); });
}

llvm::Error FolderStore::addPeaks(llvm::StringRef device,
                                  llvm::StringRef driver,
                                  const DevicePeaks &peaks) {
  return writing(
      [&] { return store::addPeaks(folder, device, driver, peaks); });
}

std::optional<DevicePeaks> FolderStore::findPeaks(llvm::StringRef device,
                                                  llvm::StringRef driver) {
  return store::findPeaks(folder, device, driver);
}

llvm::Expected<std::optional<TaskStrength>>
FolderStore::findStrength(llvm::StringRef taskKey, bool isModelled) {
  return inStore(store::findStrength(folder, taskKey, isModelled));
}

llvm::Error FolderStore::prepareTalks(llvm::StringRef taskKey) {
  return writing([&] { return store::prepareTalks(folder, taskKey); });
}

llvm::Error FolderStore::addTalk(const Talk &talk) {
  return writing([&] { return store::addTalk(folder, talk); });
}

llvm::Expected<std::optional<Talk>>
FolderStore::findTalk(llvm::StringRef taskKey, int64_t round, int64_t slot) {
  return inStore(store::findTalk(folder, taskKey, round, slot));
}

llvm::Error FolderStore::markUnfinished(llvm::StringRef taskKey,
                                        llvm::StringRef kernelName) {
  return writing([&] { return addMark(folder, taskKey, kernelName); });
}

llvm::Error FolderStore::clearUnfinished(llvm::StringRef taskKey) {
  return writing([&] { return removeMark(folder, taskKey); });
}

bool FolderStore::isUnfinished(llvm::StringRef taskKey) {
  return isDigest(taskKey) && llvm::sys::fs::exists(markPath(folder, taskKey));
}

/// A folder of other things is not taken for a store that is empty: somebody
/// named the wrong one.
static llvm::Error checkContents(const std::string &folder) {
  bool known = false, other = false;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator at(folder, code), end;
       !code && at != end; at.increment(code)) {
    llvm::StringRef name = llvm::sys::path::filename(at->path());
    bool part =
        llvm::is_contained({"records", "tasks", "trials", "talks", "searches",
                            "spending", "strength", "peaks"},
                           name);
    known |= part;
    other |= !part && !name.starts_with(".");
  }
  if (known || !other)
    return llvm::Error::success();
  return makeError(ErrorKind::BadInput,
                   "it holds other things and none of a store's (records, "
                   "tasks, trials, talks)");
}

static llvm::Error checkFolder(const std::string &folder, StoreMode mode) {
  if (folder.empty())
    return makeError(ErrorKind::BadInput, "got no folder");
  struct stat info;
  if (::stat(folder.c_str(), &info) != 0) {
    if (errno != ENOENT)
      return makeError(ErrorKind::Unavailable, std::strerror(errno));
    if (mode == StoreMode::Read)
      return makeError(ErrorKind::BadInput, "there is no such folder");
    if (llvm::Error error = makeFolders(folder))
      return error;
  } else if (!S_ISDIR(info.st_mode)) {
    return makeError(ErrorKind::BadInput, "it is a file, wanted a folder");
  }
  if (::access(folder.c_str(), R_OK | X_OK) != 0)
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("cannot read it: ") + std::strerror(errno));
  if (mode == StoreMode::Search && ::access(folder.c_str(), W_OK) != 0)
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("cannot write it: ") + std::strerror(errno));
  if (llvm::Error error = checkContents(folder))
    return error;
  if (mode == StoreMode::Read)
    return llvm::Error::success();
  // A version control system that converts line ends would change the bytes
  // that records are hashed over.
  return writeFileOnce(folder + "/.gitattributes", "* -text\n").takeError();
}

llvm::Expected<std::unique_ptr<SearchStore>>
fsr::openStore(llvm::StringRef folder, StoreMode mode) {
  llvm::StringRef trimmed = folder.rtrim('/');
  std::string name = trimmed.empty() ? folder.str() : trimmed.str();
  if (llvm::Error error = checkFolder(name, mode))
    return addContext(std::move(error), "store '" + name + "'");
  return std::unique_ptr<SearchStore>(
      std::make_unique<FolderStore>(std::move(name), mode));
}
