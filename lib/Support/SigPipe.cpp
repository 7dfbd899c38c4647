// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A SIGPIPE raised by write(2) is directed at the writing thread, so blocking,
// writing and consuming it here cannot be seen by any other thread. One that
// was pending before is left pending.
//
//===----------------------------------------------------------------------===//

#include "SigPipe.h"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <sys/socket.h>
#include <unistd.h>

ssize_t fsr::writeNoSignal(int fd, const char *bytes, size_t size) {
  ssize_t sent = ::send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0 || errno != ENOTSOCK)
    return sent;

  sigset_t pipeOnly, before, pending;
  sigemptyset(&pipeOnly);
  sigaddset(&pipeOnly, SIGPIPE);
  sigpending(&pending);
  bool wasPending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipeOnly, &before);

  ssize_t written = ::write(fd, bytes, size);
  int error = errno;
  if (written < 0 && error == EPIPE && !wasPending) {
    timespec now{0, 0};
    while (sigtimedwait(&pipeOnly, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}
