// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Requests and answers as files of one folder; docs/formats/exchange.md is the
// reference. Nothing waits here: an answer is there, or it is still to come.
//
// An answer belongs to the bytes of its request. When the prompt has changed,
// the old pair is set aside under a name with the old request's hash, and comes
// back by itself should the old prompt be asked again. The steps are ordered so
// that a kill between any two leaves no answer beside a request that it was not
// written for.
//
//===----------------------------------------------------------------------===//

#include "Clients.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace fsr {
namespace {

constexpr size_t maxRequestBytes = size_t(16) << 20;
constexpr size_t maxAnswerBytes = size_t(1) << 20;
constexpr size_t maxNameBytes = 80;

/// A kernel's symbol may hold anything; a file's name here may not.
std::string plainName(llvm::StringRef name) {
  std::string plain = name.take_front(maxNameBytes).str();
  for (char &c : plain)
    if (!llvm::isAlnum(c) && c != '_' && c != '-')
      c = '_';
  return plain.empty() ? "kernel" : plain;
}

/// The bytes of a regular file, at most `limit` of them; nothing where there is
/// no such file.
llvm::Expected<std::optional<std::string>> readUpTo(llvm::StringRef path,
                                                    size_t limit) {
  auto refuse = [&](ErrorKind kind, const llvm::Twine &why) {
    return makeError(kind, path + ": " + why);
  };
  // Whoever answers may put anything there: what a link leads to is not theirs
  // to hand out, and a pipe would be waited for without O_NONBLOCK.
  int fd = ::open(path.str().c_str(),
                  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT)
    return std::nullopt;
  if (fd < 0 && errno == ELOOP)
    return refuse(ErrorKind::BadInput,
                  "a symbolic link, wanted a regular file");
  if (fd < 0)
    return refuse(errno == ENXIO ? ErrorKind::BadInput : ErrorKind::Unavailable,
                  errno == ENXIO ? "not a regular file" : std::strerror(errno));
  llvm::scope_exit close([&] { ::close(fd); });
  struct stat info;
  if (::fstat(fd, &info) != 0)
    return refuse(ErrorKind::Unavailable, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return refuse(ErrorKind::BadInput, "not a regular file");
  std::string bytes(std::min<uint64_t>(info.st_size, limit), '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    ssize_t count = ::read(fd, bytes.data() + got, bytes.size() - got);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return refuse(ErrorKind::Unavailable, std::strerror(errno));
    if (count == 0)
      break;
    got += count;
  }
  bytes.resize(got);
  return bytes;
}

llvm::Error renameFile(llvm::StringRef from, llvm::StringRef to) {
  if (std::error_code error = llvm::sys::fs::rename(from, to))
    return makeError(ErrorKind::Unavailable, from + ": cannot be renamed to " +
                                                 to + ": " + error.message());
  return llvm::Error::success();
}

class ExchangeClient final : public ChatClient {
public:
  explicit ExchangeClient(llvm::StringRef folder) : folder(folder) {}

  llvm::StringRef provider() const override { return "exchange"; }

  /// All requests are written before the first answer is looked for: whoever
  /// answers sees the whole batch.
  void ask(llvm::ArrayRef<ChatRequest> requests,
           llvm::function_ref<void(size_t, ChatResult)> done) override {
    mayAsk = true;
    std::vector<llvm::Error> trouble;
    for (const ChatRequest &request : requests)
      trouble.push_back(writeRequest(request));
    for (size_t i = 0; i < requests.size(); ++i) {
      if (trouble[i])
        done(i, std::move(trouble[i]));
      else
        done(i, mayAsk ? takeAnswer(requests[i]) : notAsked());
    }
  }

private:
  static std::string stemOf(const ChatRequest &request) {
    return plainName(request.taskName) + "-" +
           plainName(shortHash(request.taskKey)) + "-r" +
           std::to_string(request.round) + "-s" + std::to_string(request.slot);
  }

  llvm::Error writeRequest(const ChatRequest &request) {
    if (request.prompt.size() > maxRequestBytes)
      return makeError(ErrorKind::BadInput,
                       "a request of " + llvm::Twine(request.prompt.size()) +
                           " bytes; at most " + llvm::Twine(maxRequestBytes) +
                           " are written");
    std::string stem = stemOf(request);
    auto written = readUpTo(path(stem + ".request.md"), maxRequestBytes + 1);
    if (!written)
      return written.takeError();
    if (*written && **written == request.prompt)
      return llvm::Error::success();
    return replaceRequest(stem, *written, request.prompt);
  }

  ChatResult takeAnswer(const ChatRequest &request) {
    std::string stem = stemOf(request);
    std::string answerPath = path(stem + ".answer.md");
    // One byte over the cap is kept, so that a reader sees that it is passed.
    auto text = readUpTo(answerPath, maxAnswerBytes + 1);
    if (text && !*text) {
      auto restored = restoreAnswer(stem, request.prompt);
      if (!restored)
        return restored.takeError();
      if (*restored)
        text = readUpTo(answerPath, maxAnswerBytes + 1);
    }
    if (!text)
      return text.takeError();
    if (!*text)
      return std::nullopt;
    ChatAnswer answer;
    answer.text = std::move(**text);
    return answer;
  }

  std::string path(llvm::StringRef name) const {
    llvm::SmallString<256> result(folder);
    llvm::sys::path::append(result, name);
    return std::string(result);
  }

  /// Sets aside the answer to the request `old` (nothing: there is none), and
  /// only then writes `prompt` in its place.
  llvm::Error replaceRequest(const std::string &stem,
                             const std::optional<std::string> &old,
                             const std::string &prompt) {
    std::string answerPath = path(stem + ".answer.md");
    if (llvm::sys::fs::exists(answerPath)) {
      // An answer whose request was lost is set aside as the empty one's.
      std::string aside = asideStem(stem, old.value_or(""));
      if (llvm::Error error = writeFileAtomically(path(aside + ".request.md"),
                                                  old.value_or("")))
        return error;
      if (llvm::Error error =
              renameFile(answerPath, path(aside + ".answer.md")))
        return error;
    }
    return writeFileAtomically(path(stem + ".request.md"), prompt);
  }

  /// Brings back the answer that was set aside with this very prompt, if any.
  llvm::Expected<bool> restoreAnswer(const std::string &stem,
                                     const std::string &prompt) {
    std::string aside = asideStem(stem, prompt);
    std::string asideAnswer = path(aside + ".answer.md");
    if (!llvm::sys::fs::exists(asideAnswer))
      return false;
    if (llvm::Error error = renameFile(asideAnswer, path(stem + ".answer.md")))
      return error;
    // The copy of the request is of no more use; that it stays is no fault.
    (void)llvm::sys::fs::remove(path(aside + ".request.md"));
    return true;
  }

  static std::string asideStem(const std::string &stem,
                               const std::string &request) {
    return stem + "." + shortHash(sha256(request)).str();
  }

  std::string folder;
};

} // namespace

llvm::Expected<std::unique_ptr<ChatClient>>
makeExchangeClient(llvm::StringRef folder) {
  if (llvm::sys::fs::exists(folder) && !llvm::sys::fs::is_directory(folder))
    return makeError(ErrorKind::BadInput, folder + ": not a folder");
  if (llvm::Error error = makeFolders(folder))
    return makeError(ErrorKind::BadInput, llvm::toString(std::move(error)));
  if (llvm::sys::fs::access(folder, llvm::sys::fs::AccessMode::Write))
    return makeError(ErrorKind::BadInput,
                     folder + ": the folder cannot be written");
  return std::make_unique<ExchangeClient>(folder);
}

} // namespace fsr
