// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Merging and pruning. What is copied is the very bytes that were verified, not
// what a second reading gives. What is removed is first renamed to a name that
// nothing reads, so that a kill half way leaves no half record behind.
//
//===----------------------------------------------------------------------===//

#include "History.h"
#include "Layout.h"
#include "RecordFolder.h"
#include "fsr/Store/Inventory.h"
#include "fsr/Store/Store.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <map>

using namespace fsr;
using namespace fsr::store;
using State = StoreEntry::State;

static std::string trimmed(llvm::StringRef folder) {
  llvm::StringRef name = folder.rtrim('/');
  return name.empty() ? folder.str() : name.str();
}

/// Whether the files of `entry` lie in `folder`, byte for byte.
static bool isThere(const std::string &folder, const StoreEntry &entry) {
  return llvm::all_of(entry.files, [&](const NamedBytes &file) {
    std::string path = folder + "/" + entry.path;
    if (!file.first.empty())
      path += "/" + file.first;
    llvm::Expected<std::string> bytes = readFile(path, maxFatbinBytes);
    if (bytes)
      return *bytes == file.second;
    llvm::consumeError(bytes.takeError());
    return false;
  });
}

static llvm::Expected<bool> copyEntry(const std::string &into,
                                      const StoreEntry &entry) {
  std::string path = into + "/" + entry.path;
  if (llvm::Error error = checkNoLinks(into, path))
    return error;
  if (entry.files.size() == 1 && entry.files.front().first.empty())
    return writeFileOnce(path, entry.files.front().second);
  return writeFolderAtomically(path, entry.files);
}

llvm::Expected<MergeReport> fsr::mergeStores(llvm::StringRef from,
                                             llvm::StringRef into) {
  std::string goal = trimmed(into);
  if (llvm::sys::fs::equivalent(from, goal))
    return makeError(ErrorKind::BadInput,
                     "'" + from + "' and '" + goal + "' are one store");
  // Both are looked at as a search looks at them, before anything is copied.
  for (auto [name, mode] : {std::pair(trimmed(from), StoreMode::Read),
                            std::pair(goal, StoreMode::Search)})
    if (llvm::Error error = openStore(name, mode).takeError())
      return error;
  MergeReport report;
  // By path: a fault of the goal matters only where it is in the way.
  std::map<std::string, std::string> faultsThere;
  if (llvm::Error error = forEachEntry(goal, "", [&](StoreEntry &entry) {
        if (entry.state == State::Faulty)
          faultsThere[entry.path] = goal + "/" + entry.path + ": " + entry.note;
        return llvm::Error::success();
      }))
    return error;
  llvm::Error error =
      forEachEntry(from, "", [&](StoreEntry &entry) -> llvm::Error {
        if (entry.state == State::Faulty)
          report.faults.push_back(trimmed(from) + "/" + entry.path + ": " +
                                  entry.note);
        if (entry.state != State::Whole)
          return llvm::Error::success();
        llvm::Expected<bool> written = copyEntry(goal, entry);
        if (!written)
          return addContext(written.takeError(), "copying " + entry.path);
        if (*written)
          report.copied.push_back(entry.path);
        else if (auto fault = faultsThere.find(entry.path);
                 fault != faultsThere.end())
          report.faults.push_back(fault->second);
        else if (isThere(goal, entry))
          ++report.same;
        else
          report.kept.push_back(entry.path);
        return llvm::Error::success();
      });
  if (error)
    return error;
  return report;
}

static uint64_t bytesOf(const StoreEntry &entry) {
  uint64_t bytes = 0;
  for (const auto &[name, text] : entry.files)
    bytes += text.size();
  return bytes;
}

static llvm::Error removeEntry(const std::string &store,
                               const std::string &path) {
  std::string whole = store + "/" + path;
  if (llvm::Error error = checkNoLinks(store, whole))
    return error;
  llvm::StringRef name = llvm::sys::path::filename(whole);
  std::string aside = llvm::sys::path::parent_path(whole).str() +
                      "/.fsr-staging-removed-" + name.str();
  std::error_code code = llvm::sys::fs::rename(whole, aside);
  if (!code)
    code = llvm::sys::fs::is_directory(aside)
               ? llvm::sys::fs::remove_directories(aside,
                                                   /*IgnoreErrors=*/false)
               : llvm::sys::fs::remove(aside);
  if (code)
    return makeError(ErrorKind::Unavailable,
                     "cannot remove '" + whole + "': " + code.message());
  // Folders that have become empty; those that have not stay.
  for (llvm::StringRef folder = llvm::sys::path::parent_path(whole);
       folder.size() > store.size() + 1;
       folder = llvm::sys::path::parent_path(folder))
    if (llvm::sys::fs::remove(folder))
      break;
  return llvm::Error::success();
}

llvm::Expected<PruneReport> fsr::pruneStore(llvm::StringRef folder,
                                            const PruneOptions &options) {
  std::string store = trimmed(folder);
  if (llvm::Error error =
          openStore(store, options.dryRun ? StoreMode::Read : StoreMode::Search)
              .takeError())
    return error;
  struct Ranked {
    Record record;
    std::string path;
    uint64_t bytes;
  };
  std::map<std::pair<std::string, std::string>, std::vector<Ranked>> groups;
  PruneReport report;
  auto remove = [&](std::string path, uint64_t bytes) {
    report.removed.push_back(std::move(path));
    report.bytes += bytes;
  };
  if (llvm::Error error = forEachEntry(store, "", [&](StoreEntry &entry) {
        uint64_t bytes = bytesOf(entry);
        if (entry.state == State::Faulty) {
          report.faults.push_back(store + "/" + entry.path + ": " + entry.note);
        } else if (auto *record = std::get_if<Record>(&entry.content)) {
          record->fatbin.clear();
          record->candidate.source.clear();
          groups[{record->taskKey, record->target}].push_back(
              {std::move(*record), entry.path, bytes});
        } else if ((options.trials &&
                    (entry.get<Trial>() || entry.get<TaskStrength>())) ||
                   (options.talks && entry.get<Talk>())) {
          remove(entry.path, bytes);
        }
        return llvm::Error::success();
      }))
    return error;
  for (auto &[place, ranked] : groups) {
    llvm::sort(ranked, [](const Ranked &a, const Ranked &b) {
      return ranksBefore(a.record, b.record);
    });
    for (size_t i = options.keep; i < ranked.size(); ++i)
      remove(std::move(ranked[i].path), ranked[i].bytes);
  }
  llvm::sort(report.removed);
  if (!options.dryRun)
    for (const std::string &path : report.removed)
      if (llvm::Error error = removeEntry(store, path))
        return error;
  return report;
}
