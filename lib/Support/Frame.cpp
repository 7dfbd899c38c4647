// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every byte moves behind a poll with what is left of the deadline. Descriptors
// may be in blocking mode: a socket is written with MSG_DONTWAIT, a pipe in
// pieces that one POLLOUT promises room for.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Frame.h"

#include "SigPipe.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Json.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsr;

static constexpr size_t prefixBytes = 4 + 8;

char FrameCutOff::ID = 0;

/// Waits until `fd` is ready or hung up.
static llvm::Error waitFor(int fd, short events, Deadline deadline,
                           llvm::StringRef doing) {
  while (true) {
    pollfd entry{fd, events, 0};
    int ready = ::poll(&entry, 1, deadline.pollTimeout());
    if (ready > 0 && (entry.revents & POLLNVAL))
      return makeError(ErrorKind::Unavailable,
                       doing + " a frame: the descriptor is closed");
    if (ready > 0)
      return llvm::Error::success();
    if (ready == 0 && deadline.passed())
      return makeError(ErrorKind::TimedOut,
                       doing + " a frame: the deadline has passed");
    if (ready < 0 && errno != EINTR)
      return makeError(ErrorKind::Unavailable,
                       doing + " a frame: " + std::strerror(errno));
  }
}

static llvm::Error writeAll(int fd, llvm::StringRef bytes, size_t piece,
                            Deadline deadline) {
  while (!bytes.empty()) {
    if (llvm::Error error = waitFor(fd, POLLOUT, deadline, "writing"))
      return error;
    ssize_t written =
        writeNoSignal(fd, bytes.data(), std::min(bytes.size(), piece));
    if (written >= 0)
      bytes = bytes.drop_front(written);
    else if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
      return makeError(ErrorKind::Unavailable,
                       llvm::Twine("writing a frame: the peer is gone: ") +
                           std::strerror(errno));
  }
  return llvm::Error::success();
}

llvm::Error fsr::writeFrame(int fd, const Frame &frame, Deadline deadline) {
  std::string head(prefixBytes, '\0');
  // srun hands on whole lines only, unless it is told otherwise.
  llvm::raw_string_ostream(head)
      << llvm::json::Value(llvm::json::Object(frame.header)) << '\n';
  size_t jsonBytes = head.size() - prefixBytes;
  if (jsonBytes > UINT32_MAX)
    return makeError(ErrorKind::Unsupported,
                     "writing a frame: the header has " +
                         llvm::Twine(jsonBytes) +
                         " bytes, more than 32 bits count");
  llvm::support::endian::write32le(head.data(),
                                   static_cast<uint32_t>(jsonBytes));
  llvm::support::endian::write64le(head.data() + 4, frame.blob.size());

  struct stat info;
  bool isSocket = ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
  size_t piece = isSocket ? size_t(1) << 20 : PIPE_BUF;
  if (llvm::Error error = writeAll(fd, head, piece, deadline))
    return error;
  return writeAll(fd, frame.blob, piece, deadline);
}

/// Appends up to `size` bytes to `into`; fewer at the end of the stream. Memory
/// grows with what has arrived, not with what the peer announced.
static llvm::Error readUpTo(int fd, std::string &into, uint64_t size,
                            Deadline deadline) {
  constexpr size_t step = size_t(1) << 20;
  size_t goal = into.size() + size;
  while (into.size() < goal) {
    if (llvm::Error error = waitFor(fd, POLLIN, deadline, "reading"))
      return error;
    size_t filled = into.size();
    size_t room = std::min(goal - filled, step);
    into.resize(filled + room);
    ssize_t got = ::read(fd, into.data() + filled, room);
    into.resize(filled + std::max<ssize_t>(got, 0));
    // A peer that died with unread bytes resets the connection.
    if (got == 0 || (got < 0 && errno == ECONNRESET))
      return llvm::Error::success();
    if (got < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
      return makeError(ErrorKind::Unavailable,
                       llvm::Twine("reading a frame: ") + std::strerror(errno));
  }
  return llvm::Error::success();
}

static llvm::Error cutOff(llvm::StringRef part, uint64_t got, uint64_t wanted) {
  return llvm::make_error<FrameCutOff>(ErrorKind::Corrupt,
                                       ("frame cut off in its " + part +
                                        ": got " + llvm::Twine(got) +
                                        " bytes, wanted " + llvm::Twine(wanted))
                                           .str());
}

static llvm::Error overCap(llvm::StringRef part, uint64_t got, uint64_t cap) {
  return makeError(ErrorKind::Corrupt,
                   "frame announces a " + part + " of " + llvm::Twine(got) +
                       " bytes, more than the limit of " + llvm::Twine(cap));
}

llvm::Expected<std::optional<Frame>> fsr::readFrame(int fd, Deadline deadline,
                                                    const FrameLimits &limits) {
  std::string prefix;
  if (llvm::Error error = readUpTo(fd, prefix, prefixBytes, deadline))
    return error;
  if (prefix.empty())
    return std::nullopt;
  if (prefix.size() != prefixBytes)
    return cutOff("lengths", prefix.size(), prefixBytes);
  uint32_t jsonBytes = llvm::support::endian::read32le(prefix.data());
  uint64_t blobBytes = llvm::support::endian::read64le(prefix.data() + 4);
  if (jsonBytes > limits.headerBytes)
    return overCap("header", jsonBytes, limits.headerBytes);
  if (blobBytes > limits.blobBytes)
    return overCap("blob", blobBytes, limits.blobBytes);

  std::string json;
  if (llvm::Error error = readUpTo(fd, json, jsonBytes, deadline))
    return error;
  if (json.size() != jsonBytes)
    return cutOff("header", json.size(), jsonBytes);
  Frame frame;
  if (llvm::Error error = readUpTo(fd, frame.blob, blobBytes, deadline))
    return error;
  if (frame.blob.size() != blobBytes)
    return cutOff("blob", frame.blob.size(), blobBytes);

  llvm::Expected<llvm::json::Value> value = parseJson(json);
  if (!value)
    return addContext(value.takeError(), "frame header");
  llvm::json::Object *object = value->getAsObject();
  if (!object)
    return makeError(ErrorKind::Corrupt,
                     "frame header: got a JSON value that is no object");
  frame.header = std::move(*object);
  return std::optional<Frame>(std::move(frame));
}
