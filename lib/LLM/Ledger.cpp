// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A line is one write to the end of a file that only its run writes. A run that
// dies within one leaves a line without an end; that is passed over, and
// rightly so: the call it speaks of was not sent, or stays at its dearest.
// Anything else that cannot be read is an error, since a cap cannot be kept
// without it.
//
// A store may be hostile: no link below the folder is followed, and sizes and
// numbers are bounded.
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

static constexpr int64_t formatVersion = 1;
static constexpr uint64_t maxFileBytes = uint64_t(16) << 20;
static constexpr double mostUsd = 1e12; ///< Of one call.
static constexpr llvm::StringLiteral suffix = ".jsonl";
static constexpr std::chrono::seconds longestLockWait(30);

OwnedFd::~OwnedFd() {
  if (fd >= 0)
    ::close(fd);
}

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
static llvm::Expected<OwnedFd> openFolderAt(int parent, const std::string &name,
                                            const std::string &path,
                                            bool make) {
  if (make && ::mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST)
    return failed("make folder", path, errno);
  int fd = ::openat(parent, name.c_str(),
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && !(errno == ENOENT && !make))
    return failed("open folder", path, errno);
  return OwnedFd(fd);
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
    auto giveUp = std::chrono::steady_clock::now() + longestLockWait;
    while (::flock(*ledger.lockFile, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR)
        continue;
      if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() > giveUp)
        return failed("lock", ledger.folder + "/.lock", errno);
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

Ledger::Ledger(std::string folder, std::string provider)
    : folder(std::move(folder)), provider(std::move(provider)) {
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
  auto opened = openFolderAt(AT_FDCWD, folder, folder, make);
  if (!opened)
    return opened.takeError();
  root = std::move(*opened);
  return llvm::Error::success();
}

llvm::Error Ledger::openTask(const std::string &key, Task &task, bool make) {
  if (task.folder)
    return llvm::Error::success();
  auto opened = openFolderAt(*root, key, folder + "/" + key, make);
  if (!opened)
    return opened.takeError();
  task.folder = std::move(*opened);
  return llvm::Error::success();
}

static llvm::Expected<Cost> costOf(const llvm::json::Object &line) {
  Cost cost;
  for (auto [field, into] : {std::pair("prompt_tokens", &cost.tokens.prompt),
                             std::pair("answer_tokens", &cost.tokens.answer)}) {
    std::optional<int64_t> value = line.getInteger(field);
    if (!value || *value < 0 || *value > mostTokens)
      return makeError(ErrorKind::Corrupt,
                       llvm::Twine(field) + ": expected a number from 0 to " +
                           llvm::Twine(mostTokens));
    *into = *value;
  }
  if (!line.get("usd"))
    return cost;
  cost.usd = line.getNumber("usd");
  if (!cost.usd || !(*cost.usd >= 0 && *cost.usd <= mostUsd))
    return makeError(ErrorKind::Corrupt, "usd: expected a number from 0");
  return cost;
}

/// Reads what is new of one run's file.
llvm::Error Ledger::readFile(const std::string &path, Task &task,
                             const std::string &name) {
  OwnedFd fd(::openat(*task.folder, name.c_str(),
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!fd || ::fstat(*fd, &info) != 0)
    return failed("read", path, errno);
  if (!S_ISREG(info.st_mode))
    return makeError(ErrorKind::Corrupt, path + ": not a regular file");
  File &file = task.files[name];
  uint64_t size = info.st_size;
  if (size > maxFileBytes || size < file.offset)
    return makeError(ErrorKind::Corrupt,
                     path +
                         (size < file.offset
                              ? ": it has become shorter"
                              : ": larger than the limit of " +
                                    std::to_string(maxFileBytes) + " bytes"));
  std::string bytes(size - file.offset, '\0');
  for (size_t got = 0; got < bytes.size();) {
    ssize_t count = ::pread(*fd, bytes.data() + got, bytes.size() - got,
                            off_t(file.offset + got));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return failed("read", path, count ? errno : EIO);
    got += count;
  }

  llvm::StringRef rest = bytes;
  for (size_t end; (end = rest.find('\n')) != llvm::StringRef::npos;) {
    llvm::StringRef text = rest.take_front(end);
    rest = rest.drop_front(end + 1);
    auto refuse = [&](ErrorKind kind, const llvm::Twine &why) {
      return makeError(kind, path + ":" + llvm::Twine(file.lines + 1) + ": " +
                                 why + "; what was spent cannot be told");
    };
    auto json = parseJson(text);
    if (!json)
      return refuse(ErrorKind::Corrupt, llvm::toString(json.takeError()));
    const llvm::json::Object *line = json->getAsObject();
    if (!line)
      return refuse(ErrorKind::Corrupt, "expected an object");
    if (file.lines == 0) {
      if (line->getInteger("format_version") != formatVersion)
        return refuse(ErrorKind::Unsupported,
                      "format_version: expected " + llvm::Twine(formatVersion));
    } else {
      std::optional<int64_t> call = line->getInteger("call");
      if (!call)
        return refuse(ErrorKind::Corrupt, "call: expected a number");
      auto cost = costOf(*line);
      if (!cost)
        return refuse(ErrorKind::Corrupt, llvm::toString(cost.takeError()));
      file.calls[*call] = *cost;
    }
    ++file.lines;
    file.offset += end + 1;
  }
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
      llvm::StringRef name = entry->d_name;
      if (name.starts_with(".") || !name.ends_with(suffix) ||
          name.drop_back(suffix.size()) == run)
        continue;
      if (llvm::Error error =
              readFile(folder + "/" + key + "/" + name.str(), task, name.str()))
        return error;
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
    lines = llvm::formatv("{0}\n", llvm::json::Value(llvm::json::Object{
                                       {"format_version", formatVersion},
                                       {"provider", provider}}))
                .str() +
            lines;
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

static std::string lineOf(llvm::json::Object line, const Cost &cost) {
  line["prompt_tokens"] = cost.tokens.prompt;
  line["answer_tokens"] = cost.tokens.answer;
  if (cost.usd)
    line["usd"] = *cost.usd;
  return llvm::formatv("{0}\n", llvm::json::Value(std::move(line)));
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
                 lineOf(llvm::json::Object{{"call", call},
                                           {"round", request.round},
                                           {"slot", request.slot}},
                        dearest)))
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
  return append(key, tasks.at(key),
                lineOf(llvm::json::Object{{"call", call}}, cost));
}

} // namespace fsr
