// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-worker device`: the protocol on standard input and output. Frames leave
// through a private copy of the output. What else is printed there, a kernel's
// printf above all, is dropped: on standard error a candidate could say what
// only the tools may.
//
//===----------------------------------------------------------------------===//

#include "fsr/Worker/Worker.h"

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Device/Protocol.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Interrupt.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace fsr {

namespace {

/// The peer waits for the answer to its hello: it gets the reason there, and
/// tells it. Where none is, it is for who started this by hand.
int refuse(int in, int out, llvm::Error error) {
  ErrorKind kind = kindOf(error);
  std::string message = llvm::toString(std::move(error));
  auto isTold = [&] {
    if (isatty(in))
      return false;
    auto frame = readFrame(in, Deadline::in(std::chrono::seconds(30)));
    if (!frame) {
      llvm::consumeError(frame.takeError());
      return false;
    }
    if (!*frame)
      return false;
    Frame answer;
    answer.header = llvm::json::Object{
        {"event", "error"}, {"kind", wireName(kind)}, {"message", message}};
    llvm::Error failed = writeFrame(out, answer);
    bool isSent = !failed;
    llvm::consumeError(std::move(failed));
    return isSent;
  };
  if (!isTold())
    llvm::errs() << "fsr-worker: error: " << message << '\n';
  return 1;
}

/// Ends the process once the peer is gone. The serving thread would not see it
/// while it waits for a kernel, and a kernel that never ends would hold the GPU
/// for good.
void endWithPeer(int in) {
  std::thread([in] {
    pollfd watched{in, POLLRDHUP, 0};
    while (true) {
      watched.revents = 0;
      if (poll(&watched, 1, -1) < 0 && errno != EINTR)
        return;
      if (watched.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))
        break;
    }
    // Let the serving thread end by itself where it can.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    endInOrder(1);
  }).detach();
}

} // namespace

int deviceWorkerMain(int argc, char **argv, std::string sanitizer,
                     std::string profiler) {
  int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (out < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) {
    llvm::errs() << "fsr-worker: error: cannot set up standard output\n";
    return 1;
  }
  close(nowhere);
  llvm::StringRef device = "cuda";
  bool asGpu = false;              // For tests, and in no help text.
  for (int i = 2; i < argc; ++i) { // After "device".
    llvm::StringRef argument = argv[i];
    if (argument == "--as-gpu") {
      asGpu = true;
      continue;
    }
    if (!argument.consume_front("--device="))
      return refuse(
          STDIN_FILENO, out,
          makeError(ErrorKind::BadInput, "unknown option '" + argument +
                                             "'; known is --device=DEVICE"));
    device = argument;
  }
  // A client that gives up on this one asks first, by SIGTERM. What was started
  // must not stay then: a tool that runs the candidate, and its files.
  endOnInterrupt([] {});
  endWithPeer(STDIN_FILENO); // Opening a device may hang as well.
  auto backend = openBackend(device);
  if (!backend)
    return refuse(STDIN_FILENO, out, backend.takeError());
  SanitizerSetup setup;
  setup.tool = std::move(sanitizer);
  setup.profiler = std::move(profiler);
  // Not by its name: it may be started by one that is not on PATH.
  setup.self = {"/proc/self/exe"};
  char self[4096];
  if (ssize_t size = readlink("/proc/self/exe", self, sizeof(self)); size > 0)
    setup.self = {std::string(self, size)};
  setup.device = device.str();
  int status = serveDevice(**backend, STDIN_FILENO, out, &setup, asGpu);
  // Tearing down a dead context can hang; the process ends either way.
  if (status == 3)
    _exit(status);
  return status;
}

} // namespace fsr
