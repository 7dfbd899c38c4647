// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A run that dies within a line leaves one without an end; that is passed over,
// and rightly so: the call it speaks of was not sent, or stays at its dearest.
// Anything else that cannot be read is a fault, since a cap cannot be kept
// without it. A store may be hostile: sizes and numbers are bounded.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/SpendingFile.h"

#include "fsr/Support/Json.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsr;

static constexpr int64_t formatVersion = 1;
static constexpr uint64_t maxFileBytes = uint64_t(16) << 20;

OwnedFd::~OwnedFd() {
  if (fd >= 0)
    ::close(fd);
}

OwnedFd fsr::openFolderAt(int parent, const std::string &name) {
  return OwnedFd(::openat(parent, name.c_str(),
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool fsr::isSpendingName(llvm::StringRef name) {
  return !name.starts_with(".") && name.ends_with(".jsonl");
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
    return makeError(
        ErrorKind::Corrupt,
        llvm::formatv("usd: expected a number from 0 to {0:F0}", mostUsd)
            .str());
  return cost;
}

static std::optional<SpendingFault> readLine(llvm::StringRef text,
                                             SpendingFile &file) {
  auto refuse = [&](ErrorKind kind, const llvm::Twine &why) {
    return SpendingFault{kind, file.lines + 1, why.str()};
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
    return std::nullopt;
  }
  std::optional<int64_t> call = line->getInteger("call");
  if (!call)
    return refuse(ErrorKind::Corrupt, "call: expected a number");
  auto cost = costOf(*line);
  if (!cost)
    return refuse(ErrorKind::Corrupt, llvm::toString(cost.takeError()));
  file.calls[*call] = *cost;
  return std::nullopt;
}

std::optional<SpendingFault>
fsr::readSpending(int folder, const std::string &name, SpendingFile &file) {
  auto refuse = [](ErrorKind kind, const llvm::Twine &why) {
    return SpendingFault{kind, 0, why.str()};
  };
  auto failed = [&](int error) {
    return error == ELOOP
               ? refuse(ErrorKind::Corrupt, "a symbolic link")
               : refuse(ErrorKind::Unavailable,
                        llvm::Twine("cannot be read: ") + std::strerror(error));
  };
  OwnedFd fd(::openat(folder, name.c_str(),
                      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!fd || ::fstat(*fd, &info) != 0)
    return failed(errno);
  if (!S_ISREG(info.st_mode))
    return refuse(ErrorKind::Corrupt, "not a regular file");
  uint64_t size = info.st_size;
  if (size < file.offset)
    return refuse(ErrorKind::Corrupt, "it has become shorter");
  if (size > maxFileBytes)
    return refuse(ErrorKind::Corrupt, "larger than the limit of " +
                                          llvm::Twine(maxFileBytes) + " bytes");
  std::string bytes(size - file.offset, '\0');
  for (size_t got = 0; got < bytes.size();) {
    ssize_t count = ::pread(*fd, bytes.data() + got, bytes.size() - got,
                            off_t(file.offset + got));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return failed(count ? errno : EIO);
    got += count;
  }
  llvm::StringRef rest = bytes;
  for (size_t end; (end = rest.find('\n')) != llvm::StringRef::npos;) {
    if (auto fault = readLine(rest.take_front(end), file))
      return fault;
    rest = rest.drop_front(end + 1);
    ++file.lines;
    file.offset += end + 1;
  }
  return std::nullopt;
}

static std::string lineOf(llvm::json::Object object) {
  return llvm::formatv("{0}\n", llvm::json::Value(std::move(object))).str();
}

std::string fsr::spendingHead(llvm::StringRef provider) {
  return lineOf(
      llvm::json::Object{{"format_version", formatVersion},
                         {"provider", llvm::json::fixUTF8(provider)}});
}

std::string fsr::spendingLine(int64_t call, const Cost &cost, int64_t round,
                              int64_t slot) {
  llvm::json::Object line{{"call", call}};
  if (round)
    line["round"] = round;
  if (slot)
    line["slot"] = slot;
  auto bounded = [](int64_t tokens) {
    return std::clamp<int64_t>(tokens, 0, mostTokens);
  };
  line["prompt_tokens"] = bounded(cost.tokens.prompt);
  line["answer_tokens"] = bounded(cost.tokens.answer);
  // The comparison is written so that a NaN becomes the bound.
  if (cost.usd)
    line["usd"] = *cost.usd <= mostUsd ? std::max(*cost.usd, 0.0) : mostUsd;
  return lineOf(std::move(line));
}
