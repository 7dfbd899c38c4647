// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Frames from a hostile or dying peer: cut off at every byte, over the caps,
// garbage; over sockets and pipes; and no SIGPIPE, which is at its default
// here.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Frame.h"
#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace fsr;
using std::chrono::milliseconds;

namespace {

/// Two descriptors; bytes go from `to` to `from`.
struct Channel {
  enum Kind { Socket, Pipe };
  explicit Channel(Kind kind) {
    int fds[2];
    int result =
        kind == Pipe
            ? ::pipe2(fds, O_CLOEXEC)
            : ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
    EXPECT_EQ(result, 0);
    from = fds[0];
    to = fds[1];
  }
  ~Channel() {
    closeFrom();
    closeTo();
  }
  void closeFrom() {
    if (from >= 0)
      ::close(from);
    from = -1;
  }
  void closeTo() {
    if (to >= 0)
      ::close(to);
    to = -1;
  }
  int from, to;
};

class FrameTest : public testing::TestWithParam<Channel::Kind> {};

} // namespace

static std::string encode(llvm::StringRef json, llvm::StringRef blob,
                          std::optional<uint32_t> jsonBytes = std::nullopt,
                          std::optional<uint64_t> blobBytes = std::nullopt) {
  std::string bytes;
  uint64_t header = jsonBytes.value_or(json.size());
  uint64_t body = blobBytes.value_or(blob.size());
  for (int i = 0; i < 4; ++i)
    bytes += char(header >> (8 * i));
  for (int i = 0; i < 8; ++i)
    bytes += char(body >> (8 * i));
  return bytes + json.str() + blob.str();
}

/// What reading a stream of just these bytes gives: "none", "frame" or the
/// error's kind and message.
static std::string readOf(llvm::StringRef bytes, FrameLimits limits = {}) {
  Channel channel(Channel::Socket);
  EXPECT_EQ(::write(channel.to, bytes.data(), bytes.size()),
            ssize_t(bytes.size()));
  channel.closeTo();
  llvm::Expected<std::optional<Frame>> frame =
      readFrame(channel.from, Deadline::in(milliseconds(5000)), limits);
  if (frame)
    return *frame ? "frame" : "none";
  llvm::Error error = frame.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::Corrupt);
  return llvm::toString(std::move(error));
}

TEST_P(FrameTest, RoundTrip) {
  Channel channel(GetParam());
  Frame sent;
  sent.header = llvm::json::Object{{"op", "launch"}, {"n", 3}};
  sent.blob = std::string("\0\xff blob", 7);
  ASSERT_FALSE(writeFrame(channel.to, sent));
  ASSERT_FALSE(writeFrame(channel.to, Frame()));
  channel.closeTo();
  llvm::Expected<std::optional<Frame>> first = readFrame(channel.from);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ((*first)->header, sent.header);
  EXPECT_EQ((*first)->blob, sent.blob);
  llvm::Expected<std::optional<Frame>> second = readFrame(channel.from);
  ASSERT_TRUE(second && *second);
  EXPECT_TRUE((*second)->header.empty());
  EXPECT_TRUE((*second)->blob.empty());
  llvm::Expected<std::optional<Frame>> end = readFrame(channel.from);
  ASSERT_TRUE(!!end);
  EXPECT_FALSE(*end);
}

TEST_P(FrameTest, LargeBlobThroughASmallBuffer) {
  Channel channel(GetParam());
  Frame sent;
  sent.blob.resize(5 << 20);
  for (size_t i = 0; i < sent.blob.size(); ++i)
    sent.blob[i] = char(i * 31 >> 3);
  std::thread writer([&] {
    EXPECT_FALSE(
        writeFrame(channel.to, sent, Deadline::in(milliseconds(20000))));
  });
  llvm::Expected<std::optional<Frame>> got =
      readFrame(channel.from, Deadline::in(milliseconds(20000)));
  writer.join();
  ASSERT_TRUE(got && *got);
  EXPECT_TRUE((*got)->blob == sent.blob);
}

TEST_P(FrameTest, WritingToADeadPeerIsAnErrorAndNoSignal) {
  Channel channel(GetParam());
  channel.closeFrom();
  ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  llvm::Error error = writeFrame(channel.to, Frame());
  ASSERT_TRUE(!!error);
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  llvm::consumeError(std::move(error));
  sigset_t pending, mask;
  sigpending(&pending);
  EXPECT_FALSE(sigismember(&pending, SIGPIPE));
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_FALSE(sigismember(&mask, SIGPIPE));
}

TEST_P(FrameTest, ReadDeadline) {
  Channel channel(GetParam());
  std::string half = encode("{}", "blob").substr(0, 13);
  ASSERT_EQ(::write(channel.to, half.data(), half.size()), 13);
  auto start = Deadline::Clock::now();
  llvm::Expected<std::optional<Frame>> frame =
      readFrame(channel.from, Deadline::in(milliseconds(50)));
  ASSERT_FALSE(!!frame);
  EXPECT_EQ(kindOf(frame.takeError()), ErrorKind::TimedOut);
  EXPECT_GE(Deadline::Clock::now() - start, milliseconds(50));
}

TEST_P(FrameTest, WriteDeadlineWhenNobodyReads) {
  Channel channel(GetParam());
  Frame large;
  large.blob.resize(8 << 20);
  llvm::Error error =
      writeFrame(channel.to, large, Deadline::in(milliseconds(50)));
  ASSERT_TRUE(!!error);
  EXPECT_EQ(kindOf(error), ErrorKind::TimedOut);
  llvm::consumeError(std::move(error));
}

INSTANTIATE_TEST_SUITE_P(Channels, FrameTest,
                         testing::Values(Channel::Socket, Channel::Pipe),
                         [](const auto &info) {
                           return info.param == Channel::Pipe ? "Pipe"
                                                              : "Socket";
                         });

TEST(Frame, CutOffAtEveryByte) {
  std::string whole = encode("{\"a\": 1}", "blob");
  EXPECT_EQ(readOf(whole), "frame");
  EXPECT_EQ(readOf(""), "none");
  for (size_t size = 1; size < whole.size(); ++size)
    EXPECT_NE(readOf(whole.substr(0, size)).find("cut off"), std::string::npos)
        << size;
  EXPECT_EQ(readOf(whole.substr(0, 14)),
            "frame cut off in its header: got 2 bytes, wanted 8");
}

TEST(Frame, CapsAreExact) {
  FrameLimits limits;
  limits.headerBytes = 8;
  limits.blobBytes = 4;
  EXPECT_EQ(readOf(encode("{\"a\": 1}", "blob"), limits), "frame");
  EXPECT_EQ(readOf(encode("{\"a\": 12}", "blob"), limits),
            "frame announces a header of 9 bytes, more than the limit of 8");
  EXPECT_EQ(readOf(encode("{}", "blobs"), limits),
            "frame announces a blob of 5 bytes, more than the limit of 4");
}

TEST(Frame, HugeLengthsAreRefusedBeforeAnythingIsRead) {
  EXPECT_NE(readOf(encode("", "", UINT32_MAX)).find("4294967295 bytes"),
            std::string::npos);
  EXPECT_NE(
      readOf(encode("", "", 0, UINT64_MAX)).find("18446744073709551615 bytes"),
      std::string::npos);
}

// Memory must grow with what arrives, not with what a peer announces.
TEST(Frame, AnnouncedBytesThatNeverComeCostNoMemory) {
  rusage before, after;
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_NE(readOf(encode("{}", "", 2, uint64_t(256) << 20)).find("cut off"),
            std::string::npos);
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10); // Kilobytes.
}

TEST(Frame, Garbage) {
  EXPECT_NE(readOf("GET / HTTP/1.1\r\nHost: x\r\n\r\n").find("announces"),
            std::string::npos);
  EXPECT_NE(readOf(encode("nonsense", "")).find("not JSON"), std::string::npos);
  EXPECT_NE(readOf(encode("", "")).find("not JSON"), std::string::npos);
  for (const char *text : {"[]", "3", "null", "\"text\""})
    EXPECT_EQ(readOf(encode(text, "")),
              "frame header: got a JSON value that is no object");
}

TEST(Frame, InvalidUtf8) {
  EXPECT_NE(readOf(encode("{\"a\": \"\xc3\x28\"}", "")).find("UTF-8"),
            std::string::npos);
}

TEST(Frame, DeepNestingDoesNotOverflowTheStack) {
  std::string deep;
  for (int i = 0; i < 20000; ++i)
    deep += "{\"a\":";
  EXPECT_NE(readOf(encode(deep, "")).find("nested deeper"), std::string::npos);
}

TEST(Frame, ClosedDescriptor) {
  llvm::Expected<std::optional<Frame>> frame = readFrame(1 << 20);
  ASSERT_FALSE(!!frame);
  EXPECT_EQ(kindOf(frame.takeError()), ErrorKind::Unavailable);
  llvm::Error error = writeFrame(1 << 20, Frame());
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  llvm::consumeError(std::move(error));
}
