// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A line is one write to the end of a file that only its run writes; the form
// of the files is in Core. What cannot be read of them is an error, since a cap
// cannot be kept without it. A store may be hostile: no link below the folder
// is followed.
//
//===----------------------------------------------------------------------===//

#include "Ledger.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace fsr {

static constexpr llvm::StringLiteral suffix = ".jsonl";

static llvm::Error failed(llvm::StringRef doing, const llvm::Twine &path,
                          int error) {
  return makeError(ErrorKind::Unavailable, "cannot " + doing + " '" + path +
                                               "': " + std::strerror(error));
}

static bool isKey(llvm::StringRef text) {
  return text.size() == 64 && llvm::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// The folder `name` below `parent`; no descriptor where it is missing and not
/// to be made.
static llvm::Expected<OwnedFd> openFolder(int parent, const std::string &name,
                                          const std::string &path, bool make) {
  if (make && ::mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST)
    return failed("make folder", path, errno);
  OwnedFd fd = openFolderAt(parent, name);
  if (!fd && !(errno == ENOENT && !make))
    return failed("open folder", path, errno);
  return fd;
}

/// Keeps other runs out for as long as it lives.
class Ledger::Lock {
public:
  static llvm::Expected<Lock> take(Ledger &ledger) {
    if (!ledger.lockFile) {
      ledger.lockFile =
          OwnedFd(::openat(*ledger.root, ".lock",
                           O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
      if (!ledger.lockFile)
        return failed("open", ledger.folder + "/.lock", errno);
    }
    auto giveUp = std::chrono::steady_clock::now() + ledger.longestLockWait;
    while (::flock(*ledger.lockFile, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR)
        continue;
      if (errno != EWOULDBLOCK)
        return failed("lock", ledger.folder + "/.lock", errno);
      if (std::chrono::steady_clock::now() > giveUp)
        return makeError(
            ErrorKind::TimedOut,
            "another process has held '" + ledger.folder + "/.lock' for " +
                llvm::Twine(ledger.longestLockWait.count()) +
                " s, and what was spent cannot be told meanwhile; end that "
                "process (fuser names it) and run this again");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return Lock(*ledger.lockFile);
  }
  Lock(Lock &&other) : fd(std::exchange(other.fd, -1)) {}
  Lock &operator=(Lock &&) = delete;
  ~Lock() {
    if (fd >= 0)
      ::flock(fd, LOCK_UN);
  }

private:
  explicit Lock(int fd) : fd(fd) {}
  int fd;
};

Ledger::Ledger(std::string folder, std::string provider,
               std::chrono::seconds longestLockWait)
    : folder(std::move(folder)), provider(std::move(provider)),
      longestLockWait(longestLockWait) {
  std::random_device random;
  run = llvm::formatv("{0:x-8}{1:x-8}", uint32_t(random()), uint32_t(random()));
}

Ledger::~Ledger() = default;

llvm::Error Ledger::count(llvm::ArrayRef<std::string> taskKeys) {
  for (const std::string &key : taskKeys) {
    if (!isKey(key))
      return makeError(ErrorKind::BadInput,
                       "task key '" + llvm::StringRef(key).take_front(80) +
                           "': wanted 64 lower-case hex digits");
    tasks.try_emplace(key);
  }
  return llvm::Error::success();
}

llvm::Error Ledger::openFolder(bool make) {
  if (root)
    return llvm::Error::success();
  // The store's own folder may be reached through links.
  auto opened = fsr::openFolder(AT_FDCWD, folder, folder, make);
  if (!opened)
    return opened.takeError();
  root = std::move(*opened);
  return llvm::Error::success();
}

llvm::Error Ledger::openTask(const std::string &key, Task &task, bool make) {
  if (task.folder)
    return llvm::Error::success();
  auto opened = fsr::openFolder(*root, key, folder + "/" + key, make);
  if (!opened)
    return opened.takeError();
  task.folder = std::move(*opened);
  return llvm::Error::success();
}

llvm::Error Ledger::refresh() {
  for (auto &[key, task] : tasks) {
    if (llvm::Error error = openTask(key, task, /*make=*/false))
      return error;
    if (!task.folder)
      continue;
    // A descriptor of its own: fdopendir takes what it is given.
    int fd = ::openat(*task.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? nullptr : ::fdopendir(fd);
    if (!listing)
      return failed("list", folder + "/" + key, errno);
    llvm::scope_exit close([&, open = listing] { ::closedir(open); });
    while (true) {
      errno = 0; // Tells the end from a failure.
      dirent *entry = ::readdir(listing);
      if (!entry && errno)
        return failed("list", folder + "/" + key, errno);
      if (!entry)
        break;
      std::string name = entry->d_name;
      if (!isSpendingName(name) || name == run + suffix.str())
        continue;
      if (auto fault = readSpending(*task.folder, name, task.files[name]))
        return makeError(
            fault->kind,
            folder + "/" + key + "/" + name +
                (fault->line ? ":" + std::to_string(fault->line) : "") + ": " +
                fault->why + "; what was spent cannot be told");
    }
  }
  return llvm::Error::success();
}

Spent Ledger::sum() const {
  // Hostile files may hold any number of calls.
  constexpr int64_t most = int64_t(1) << 61;
  Spent spent;
  auto add = [&](Tokens &to, const Tokens &tokens) {
    to = to + tokens;
    to = {std::min(to.prompt, most), std::min(to.answer, most)};
  };
  for (const auto &[key, task] : tasks)
    for (const auto &[name, file] : task.files)
      for (const auto &[call, cost] : file.calls) {
        ++spent.calls;
        add(spent.tokens, cost.tokens);
        if (cost.usd)
          spent.usd += *cost.usd;
        else
          add(spent.unpriced, cost.tokens);
      }
  return spent;
}

llvm::Expected<Spent> Ledger::others() {
  if (llvm::Error error = openFolder(/*make=*/false))
    return error;
  if (!root)
    return Spent();
  auto lock = Lock::take(*this);
  if (!lock)
    return lock.takeError();
  if (llvm::Error error = refresh())
    return error;
  return sum();
}

/// Appends whole lines to this run's file of a task, or nothing.
llvm::Error Ledger::append(const std::string &key, Task &task,
                           std::string lines) {
  std::string name = run + suffix.str();
  auto fail = [&](int error) {
    return failed("write", folder + "/" + key + "/" + name, error);
  };
  if (!task.own) {
    task.own = OwnedFd(::openat(
        *task.folder, name.c_str(),
        O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!task.own)
      return fail(errno);
    // The names have to outlive a crash as well.
    for (int fd : {*task.folder, *root})
      (void)::fsync(fd);
  }
  if (task.length == 0)
    lines = spendingHead(provider) + lines;
  // Should an earlier try have left part of a line.
  if (::ftruncate(*task.own, off_t(task.length)) != 0)
    return fail(errno);
  llvm::StringRef rest = lines;
  while (!rest.empty()) {
    ssize_t written = ::write(*task.own, rest.data(), rest.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return fail(errno);
    rest = rest.drop_front(written);
  }
  task.length += lines.size();
  return llvm::Error::success();
}

llvm::Expected<std::optional<int64_t>>
Ledger::setAside(const ChatRequest &request, const Cost &dearest,
                 llvm::function_ref<bool(const Spent &)> fits) {
  Task &task = tasks.at(request.taskKey);
  if (llvm::Error error = openFolder(/*make=*/true))
    return error;
  auto lock = Lock::take(*this);
  if (!lock)
    return lock.takeError();
  if (llvm::Error error = refresh())
    return error;
  if (!fits(sum()))
    return std::nullopt;
  if (llvm::Error error = openTask(request.taskKey, task, /*make=*/true))
    return error;
  int64_t call = ++lastCall;
  if (llvm::Error error =
          append(request.taskKey, task,
                 spendingLine(call, dearest, request.round, request.slot)))
    return error;
  if (::fdatasync(*task.own) != 0)
    return failed("write",
                  folder + "/" + request.taskKey + "/" + run + suffix.str(),
                  errno);
  return call;
}

llvm::Error Ledger::settle(llvm::StringRef taskKey, int64_t call,
                           const Cost &cost) {
  auto lock = Lock::take(*this);
  if (!lock)
    return lock.takeError();
  std::string key = taskKey.str();
  return append(key, tasks.at(key), spendingLine(call, cost));
}

} // namespace fsr
