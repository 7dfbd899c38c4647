// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The group of a child is killed before its leader is reaped: until then the
// leader's id, and with it the group's, cannot have been given to another.
//
// What a child inherits is decided by the kernel's closefrom after the two or
// three wanted descriptors were put in place; ours are close-on-exec besides,
// for children that other code of this process starts.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Subprocess.h"

#include "SigPipe.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Interrupt.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

using namespace fsr;
using std::chrono::milliseconds;

namespace {

/// Owns a descriptor.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(Descriptor &&other) : fd(other.release()) {}
  Descriptor &operator=(Descriptor &&other) {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd; }
  bool isOpen() const { return fd >= 0; }
  int release() {
    int result = fd;
    fd = -1;
    return result;
  }
  void close() {
    if (fd >= 0)
      ::close(fd);
    fd = -1;
  }

private:
  int fd;
};

/// Two connected ends.
struct Ends {
  Descriptor first, second;
};

} // namespace

/// Moves a descriptor above the standard three, which a host may run without:
/// what it prints must not go to our child.
static Descriptor aboveStandard(int fd) {
  Descriptor held(fd);
  if (fd > 2)
    return held;
  return Descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

static llvm::Expected<Ends> checkedEnds(int (&fds)[2]) {
  Ends ends{aboveStandard(fds[0]), aboveStandard(fds[1])};
  if (!ends.first.isOpen() || !ends.second.isOpen())
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("cannot make a descriptor: ") +
                         std::strerror(errno));
  return ends;
}

static llvm::Expected<Ends> makePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0)
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("cannot make a pipe: ") +
                         std::strerror(errno));
  return checkedEnds(fds);
}

static llvm::Expected<Ends> makeSocketPair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("cannot make a socket pair: ") +
                         std::strerror(errno));
  return checkedEnds(fds);
}

std::string fsr::findOnPath(llvm::StringRef name) {
  if (name.empty())
    return "";
  if (name.contains('/')) // LLVM returns such a name unseen.
    return llvm::sys::fs::can_execute(name) ? name.str() : "";
  llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(name);
  return found ? *found : "";
}

/// Starts `args` with these descriptors as 0, 1 and, where one is given, 2.
static llvm::Expected<pid_t> spawn(llvm::ArrayRef<std::string> args, int in,
                                   int out, std::optional<int> err) {
  auto cannot = [&](const llvm::Twine &why) {
    return makeError(
        ErrorKind::Unavailable,
        "cannot start '" +
            (args.empty() ? llvm::StringRef() : llvm::StringRef(args[0])) +
            "': " + why);
  };
  if (args.empty() || args[0].empty())
    return cannot("no program is named");
  std::string program = findOnPath(args[0]);
  if (program.empty())
    return cannot(llvm::StringRef(args[0]).contains('/')
                      ? "there is no such program"
                      : "not found on PATH");
  llvm::SmallVector<char *> argv;
  for (const std::string &arg : args) {
    if (llvm::StringRef(arg).contains('\0'))
      return cannot("an argument holds a NUL character");
    argv.push_back(const_cast<char *>(arg.c_str()));
  }
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  if (err)
    posix_spawn_file_actions_adddup2(&actions, *err, 2);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
  // What the host blocks or ignores is not the child's business.
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGCHLD);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  int error = 0;
  {
    WholeStep step;
    error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes,
                          argv.data(), environ);
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error)
    return cannot(std::strerror(error));
  return pid;
}

/// True once the child has ended, which leaves it to be reaped, or was never
/// ours to wait for.
static bool hasEnded(pid_t pid) {
  siginfo_t info{};
  int result;
  do
    result = ::waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT);
  while (result != 0 && errno == EINTR);
  return result != 0 || info.si_pid == pid;
}

/// Waits for the end of the child, or for the deadline: true if it ended.
static bool awaitEnd(pid_t pid, Deadline deadline) {
  std::chrono::microseconds pause(100);
  while (!hasEnded(pid)) {
    if (deadline.passed())
      return false;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, milliseconds(10));
  }
  return true;
}

/// Kills what is left of the group and reaps the leader: its wait status, or
/// nothing where the host reaps children itself.
static std::optional<int> killAndReap(pid_t pid) {
  // An interrupt kills children as well: what follows from the end of one must
  // not be seen any more then.
  {
    WholeStep step;
  }
  ::kill(-pid, SIGKILL);
  int status = 0;
  pid_t reaped;
  do
    reaped = ::waitpid(pid, &status, 0);
  while (reaped < 0 && errno == EINTR);
  if (reaped != pid)
    return std::nullopt;
  return status;
}

static void decode(int status, ProcessResult &result) {
  if (WIFSIGNALED(status))
    result.signal = WTERMSIG(status);
  else
    result.exitCode = WEXITSTATUS(status);
}

std::string ProcessResult::describe() const {
  if (timedOut)
    return "stopped after " + std::to_string(wall.count()) + " ms";
  if (!signal)
    return "exit status " + std::to_string(exitCode);
  const char *name = nullptr;
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
  name = ::sigabbrev_np(signal);
#endif
  return name ? std::string("killed by SIG") + name
              : "killed by signal " + std::to_string(signal);
}

namespace {

/// The parent's ends of one run, and what came out of them.
class Pump {
public:
  Pump(Descriptor in, Descriptor out, Descriptor err, llvm::StringRef input,
       size_t cap)
      : in(std::move(in)), out(std::move(out)), err(std::move(err)),
        input(input), cap(cap) {
    for (const Descriptor *end : {&this->in, &this->out, &this->err})
      ::fcntl(end->get(), F_SETFL, ::fcntl(end->get(), F_GETFL) | O_NONBLOCK);
    if (input.empty())
      this->in.close();
  }

  bool outputOpen() const { return out.isOpen() || err.isOpen(); }

  /// Waits up to `timeout` and moves what can be moved.
  void turn(int timeout, ProcessResult &result) {
    pollfd entries[3] = {{in.get(), POLLOUT, 0},
                         {out.get(), POLLIN, 0},
                         {err.get(), POLLIN, 0}}; // Closed ones are -1.
    if (::poll(entries, 3, timeout) <= 0)
      return;
    if (entries[0].revents)
      feed();
    if (entries[1].revents)
      drain(out, result.out);
    if (entries[2].revents)
      drain(err, result.err);
  }

private:
  void feed() {
    ssize_t written = writeNoSignal(in.get(), input.data(),
                                    std::min<size_t>(input.size(), 1 << 16));
    if (written >= 0)
      input = input.drop_front(written);
    bool broken = written < 0 && errno != EINTR && errno != EAGAIN;
    if (broken || input.empty()) // A child need not read what it is given.
      in.close();
  }

  void drain(Descriptor &from, std::string &into) {
    char bytes[1 << 16];
    ssize_t got = ::read(from.get(), bytes, sizeof bytes);
    if (got > 0)
      into.append(bytes, std::min<size_t>(got, cap - into.size()));
    else if (got == 0 || (errno != EINTR && errno != EAGAIN))
      from.close();
  }

  Descriptor in, out, err;
  llvm::StringRef input;
  size_t cap;
};

} // namespace

llvm::Expected<ProcessResult> fsr::runProcess(llvm::ArrayRef<std::string> args,
                                              llvm::StringRef input,
                                              const ProcessLimits &limits) {
  // Pipes, not sockets: programs that open /dev/stdin cannot open a socket.
  llvm::Expected<Ends> in = makePipe();
  if (!in)
    return in.takeError();
  llvm::Expected<Ends> out = makePipe();
  if (!out)
    return out.takeError();
  llvm::Expected<Ends> err = makePipe();
  if (!err)
    return err.takeError();
  Deadline deadline = Deadline::in(limits.wall);
  llvm::Expected<pid_t> pid =
      spawn(args, in->first.get(), out->second.get(), err->second.get());
  if (!pid)
    return pid.takeError();
  in->first.close();
  out->second.close();
  err->second.close();

  ProcessResult result;
  result.wall = limits.wall;
  Pump pump(std::move(in->second), std::move(out->first), std::move(err->first),
            input, limits.maxOutputBytes);
  // A grandchild may hold the pipes open for ever, so that the end of the child
  // is looked for as well as the end of its output.
  bool ended = false;
  while (pump.outputOpen() && !ended && !deadline.passed()) {
    int left = deadline.pollTimeout();
    pump.turn(left < 0 ? 20 : std::min(left, 20), result);
    ended = hasEnded(*pid);
  }
  result.timedOut = !ended && !awaitEnd(*pid, deadline);
  std::optional<int> status = killAndReap(*pid);
  // The pipes hold what the child wrote last. Whatever left the group may still
  // write, so this too has an end.
  Deadline drained = Deadline::in(milliseconds(200));
  size_t before;
  do {
    before = result.out.size() + result.err.size();
    pump.turn(0, result);
  } while (pump.outputOpen() && !drained.passed() &&
           before != result.out.size() + result.err.size());
  if (!status)
    return makeError(ErrorKind::Unavailable,
                     "the exit status of '" + args[0] +
                         "' is lost: this process ignores SIGCHLD or reaps "
                         "children elsewhere");
  if (!result.timedOut)
    decode(*status, result);
  else
    result.signal = SIGKILL;
  return result;
}

llvm::Expected<std::unique_ptr<ChildProcess>>
ChildProcess::start(llvm::ArrayRef<std::string> args) {
  llvm::Expected<Ends> ends = makeSocketPair();
  if (!ends)
    return ends.takeError();
  llvm::Expected<pid_t> pid =
      spawn(args, ends->second.get(), ends->second.get(), std::nullopt);
  if (!pid)
    return pid.takeError();
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(ends->first.release(), *pid));
}

ChildProcess::~ChildProcess() {
  kill();
  ::close(fd);
}

void ChildProcess::kill() {
  if (!ended.empty())
    return;
  // What stands for a process elsewhere passes the request on: a job of an srun
  // that is killed at once would stay, and hold its GPU.
  ::kill(-child, SIGTERM);
  awaitEnd(child, Deadline::in(milliseconds(1000)));
  std::optional<int> status = killAndReap(child);
  ProcessResult result;
  if (status)
    decode(*status, result);
  ended = status ? result.describe() : "its exit status is lost";
}

std::string ChildProcess::reap() {
  if (ended.empty()) {
    ::shutdown(fd, SHUT_WR);
    awaitEnd(child, Deadline::in(milliseconds(2000)));
    kill();
  }
  return ended;
}
