// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The signals are blocked and not ignored, since LLVM's InitLLVM sets handlers
// of its own for them later on. LLVM's streams end the process as they are
// destroyed with an error that nobody looked at: an output of MLIR's only says
// so there, as does standard output where a library calls exit.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Tool.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

using namespace fsr;

static constexpr int troubleStatus = 1;
static constexpr int pipeStatus = 128 + SIGPIPE;

/// The status that an error of standard output makes, told where it is one to
/// be told.
static int tell(llvm::StringRef program, llvm::StringRef output,
                llvm::StringRef why) {
  llvm::errs() << program << ": cannot write to " << output << ": " << why
               << "\n";
  return troubleStatus;
}

static int tellOfOutput(llvm::StringRef program, std::error_code code) {
  if (code == std::errc::broken_pipe)
    return pipeStatus;
  return tell(program, "standard output", code.message());
}

static void onFatalError(void *program, const char *reason, bool) {
  auto *name = static_cast<const char *>(program);
  llvm::StringRef why(reason);
  if (!why.consume_front("IO failure on output stream: ")) {
    llvm::errs() << "LLVM ERROR: " << reason << "\n";
    return; // LLVM goes on to end the process.
  }
  int status = llvm::outs().has_error()
                   ? tellOfOutput(name, llvm::outs().error())
                   : tell(name, "an output", why);
  llvm::sys::RunInterruptHandlers(); // What is not whole goes.
  _exit(status);
}

void fsr::beginTool(const char *program) {
  // A store's file must not become standard output. Not writable, so that what
  // is lost is told.
  while (true) {
    int fd = ::open("/dev/null", O_RDONLY);
    if (fd < 0 || fd > STDERR_FILENO) {
      if (fd >= 0)
        ::close(fd);
      break;
    }
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  llvm::install_fatal_error_handler(onFatalError, const_cast<char *>(program));
}

int fsr::finishTool(llvm::StringRef program, int status) {
  llvm::outs().flush();
  std::error_code code = llvm::outs().error();
  llvm::outs().clear_error();
  if (code)
    status = tellOfOutput(program, code);
  llvm::errs().clear_error();
  return status;
}
