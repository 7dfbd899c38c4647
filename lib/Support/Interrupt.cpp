// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A signal handler could do none of this safely; a thread that waits for the
// signal may. Children have process groups of their own, so the terminal's
// Ctrl-C does not reach them; and a child's children may have others, so they
// are made ours before their parents are killed.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Interrupt.h"

#include "InterruptState.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fcntl.h>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

using namespace fsr;

static std::string readAll(const std::string &path) {
  std::string text;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(fd, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, got);
  ::close(fd);
  return text;
}

static bool isZombie(pid_t pid) {
  std::string text = readAll("/proc/" + std::to_string(pid) + "/stat");
  // The name before the state may hold anything.
  llvm::StringRef state = llvm::StringRef(text).rsplit(") ").second;
  return state.empty() || state.starts_with("Z") || state.starts_with("X");
}

/// Kills each child and, where it leads one, its process group. Returns whether
/// there was any that had not ended. The kernel lists children by the thread
/// that started them.
static bool killChildren() {
  bool any = false;
  std::error_code code;
  llvm::sys::fs::directory_iterator thread("/proc/self/task", code), end;
  for (; !code && thread != end; thread.increment(code)) {
    std::string text = readAll(thread->path() + "/children");
    llvm::StringRef rest = text;
    while (!rest.empty()) {
      auto [word, more] = rest.split(' ');
      rest = more;
      pid_t pid = 0;
      if (word.getAsInteger(10, pid) || pid <= 1 || isZombie(pid))
        continue;
      any = true;
      if (::getpgid(pid) == pid)
        ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);
    }
  }
  return any;
}

/// A child that dies hands its own children to this process, so that after a
/// few turns nobody is left; one that the kernel holds back is not waited for.
static void endChildren() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  for (unsigned turn = 0; turn < 400 && killChildren(); ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

static int await(const sigset_t &signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  return signal;
}

namespace {

/// What is said at the end: once, whoever comes to it first.
class Farewell {
public:
  explicit Farewell(std::function<void()> say) : say(std::move(say)) {}

  /// Returns when it is said.
  void run() {
    std::unique_lock<std::mutex> held(lock);
    if (!std::exchange(begun, true)) {
      held.unlock();
      say();
      held.lock();
      done = true;
      changed.notify_all();
    }
    changed.wait(held, [this] { return done; });
  }

  /// Returns when it is said, or the time is over.
  void runFor(std::chrono::milliseconds limit) {
    std::thread([this] { run(); }).detach();
    std::unique_lock<std::mutex> held(lock);
    changed.wait_for(held, limit, [this] { return done; });
  }

private:
  std::function<void()> say;
  std::mutex lock;
  std::condition_variable changed;
  bool begun = false, done = false;
};

} // namespace

/// All but the last words. Only the first that comes here comes back.
static void endWork() {
  InterruptState &state = interruptState();
  state.whole.lock(); // For good: nothing is begun from here on.
  endChildren();
  std::lock_guard<std::mutex> held(state.lock);
  for (const std::string &folder : state.leftovers)
    llvm::sys::fs::remove_directories(folder, /*IgnoreErrors=*/true);
}

void fsr::endInOrder(int status) {
  endWork();
  llvm::sys::RunInterruptHandlers();
  _exit(status);
}

void fsr::endOnInterrupt(std::function<void()> beforeEnd) {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    // What ignores it was started in the background of a script, by nohup….
    struct sigaction before{};
    if (::sigaction(signal, nullptr, &before) == 0 &&
        before.sa_handler != SIG_IGN)
      sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Never destroyed: threads use it to the very end.
  auto *farewell = new Farewell(std::move(beforeEnd));
  std::thread([signals, farewell] {
    int signal = await(signals);
    // A disk or a terminal that blocks must not keep somebody from leaving.
    std::thread([signals, farewell] {
      int second = await(signals);
      farewell->runFor(std::chrono::milliseconds(200));
      // Last, as what follows from their end must not be seen any more.
      killChildren();
      _exit(128 + second);
    }).detach();
    endWork();
    llvm::sys::RunInterruptHandlers();
    farewell->run();
    _exit(128 + signal);
  }).detach();
}
