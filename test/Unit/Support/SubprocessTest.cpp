// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Children that do what they should, and children that hang, die, flood, leave
// grandchildren behind or never read.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Subprocess.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Frame.h"

#include "TemporaryFolder.h"

#include "gtest/gtest.h"

#include <csignal>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

using namespace fsr;
using std::chrono::milliseconds;

static ProcessResult shell(const std::string &script,
                           llvm::StringRef input = "",
                           ProcessLimits limits = {}) {
  llvm::Expected<ProcessResult> result =
      runProcess({"sh", "-c", script}, input, limits);
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return {};
  }
  return *result;
}

static std::unique_ptr<ChildProcess> child(const std::string &script) {
  llvm::Expected<std::unique_ptr<ChildProcess>> started =
      ChildProcess::start({"sh", "-c", script});
  if (!started) {
    ADD_FAILURE() << llvm::toString(started.takeError());
    return nullptr;
  }
  return std::move(*started);
}

/// Waits up to 5 s for the process to be gone.
static bool isGone(int pid) {
  for (int i = 0; i < 500; ++i) {
    // In a container nobody may reap orphans, so a zombie counts as gone.
    llvm::Expected<std::string> status =
        readFile("/proc/" + std::to_string(pid) + "/stat");
    if (!status) {
      llvm::consumeError(status.takeError());
      return true;
    }
    if (llvm::StringRef(*status).rsplit(')').second.starts_with(" Z"))
      return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST(RunProcess, Streams) {
  ProcessResult result = shell("cat; echo trouble >&2; exit 3", "given");
  EXPECT_EQ(result.out, "given");
  EXPECT_EQ(result.err, "trouble\n");
  EXPECT_FALSE(result.succeeded());
  EXPECT_EQ(result.describe(), "exit status 3");
  EXPECT_TRUE(shell("true").succeeded());
}

TEST(RunProcess, InputCanBeOpenedByName) {
  EXPECT_EQ(shell("cat /dev/stdin", "given").out, "given");
}

TEST(RunProcess, MoreThanThePipesHold) {
  std::string input(3 << 20, 'x');
  ProcessResult result = shell("tee /dev/stderr", input);
  EXPECT_TRUE(result.succeeded());
  EXPECT_TRUE(result.out == input);
  EXPECT_TRUE(result.err == input);
}

TEST(RunProcess, ChildThatDoesNotReadItsInput) {
  ASSERT_NE(::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  ProcessResult result =
      shell("exec <&-; echo done", std::string(3 << 20, 'x'));
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(result.out, "done\n");
}

TEST(RunProcess, OutputIsCutAndTheRestIsDrained) {
  ProcessLimits limits;
  limits.maxOutputBytes = 10;
  ProcessResult result = shell("head -c 1000000 /dev/zero | tr '\\0' y; "
                               "echo end >&2",
                               "", limits);
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(result.out, "yyyyyyyyyy");
  EXPECT_EQ(result.err, "end\n");
}

TEST(RunProcess, WallLimitKillsTheGroup) {
  ProcessLimits limits;
  limits.wall = milliseconds(200);
  auto start = Deadline::Clock::now();
  ProcessResult result = shell("sleep 60 & echo $!; sleep 60", "", limits);
  EXPECT_LT(Deadline::Clock::now() - start, milliseconds(10000));
  EXPECT_TRUE(result.timedOut);
  EXPECT_FALSE(result.succeeded());
  EXPECT_EQ(result.describe(), "stopped after 200 ms");
  int grandchild = std::atoi(result.out.c_str());
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(isGone(grandchild));
}

TEST(RunProcess, WallLimitWithClosedOutput) {
  ProcessLimits limits;
  limits.wall = milliseconds(200);
  EXPECT_TRUE(shell("exec >&- 2>&-; sleep 60", "", limits).timedOut);
}

TEST(RunProcess, GrandchildThatKeepsTheOutputOpen) {
  auto start = Deadline::Clock::now();
  ProcessResult result = shell("sleep 60 & echo $!");
  EXPECT_LT(Deadline::Clock::now() - start, milliseconds(10000));
  EXPECT_TRUE(result.succeeded());
  int grandchild = std::atoi(result.out.c_str());
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(isGone(grandchild));
}

TEST(RunProcess, Signals) {
  ProcessResult result = shell("kill -SEGV $$");
  EXPECT_FALSE(result.succeeded());
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.describe(), "killed by SIGSEGV");
}

TEST(RunProcess, CannotStart) {
  auto errorOf = [](llvm::ArrayRef<std::string> args) {
    llvm::Expected<ProcessResult> result = runProcess(args, "");
    if (result)
      return std::string("started");
    llvm::Error error = result.takeError();
    EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
    return llvm::toString(std::move(error));
  };
  EXPECT_EQ(errorOf({"fsr-no-such-program"}),
            "cannot start 'fsr-no-such-program': not found on PATH");
  EXPECT_EQ(errorOf({"/no/such/program"}),
            "cannot start '/no/such/program': there is no such program");
  EXPECT_EQ(errorOf({}), "cannot start '': no program is named");
  EXPECT_EQ(errorOf({"echo", std::string("a\0b", 3)}),
            "cannot start 'echo': an argument holds a NUL character");
  TemporaryFolder folder;
  ASSERT_FALSE(writeFileAtomically(folder / "text", "\1\2no program"));
  ASSERT_EQ(::chmod((folder / "text").c_str(), 0700), 0);
  EXPECT_NE(errorOf({folder / "text"}).find("Exec format error"),
            std::string::npos);
}

TEST(RunProcess, InheritsNoOtherDescriptor) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0); // Without close-on-exec.
  EXPECT_EQ(shell("for fd in $(seq 3 64); do "
                  "test -e /proc/$$/fd/$fd && readlink /proc/$$/fd/$fd; "
                  "done; true")
                .out,
            "");
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(RunProcess, WorksWithTheStandardDescriptorsClosed) {
  int saved[3];
  for (int fd = 0; fd < 3; ++fd) {
    saved[fd] = ::fcntl(fd, F_DUPFD_CLOEXEC, 10);
    ::close(fd);
  }
  llvm::Expected<ProcessResult> result =
      runProcess({"sh", "-c", "cat; echo e >&2"}, "given");
  llvm::Expected<std::unique_ptr<ChildProcess>> cat =
      ChildProcess::start({"cat"});
  for (int fd = 0; fd < 3; ++fd)
    if (saved[fd] >= 0) {
      ::dup2(saved[fd], fd);
      ::close(saved[fd]);
    }
  ASSERT_TRUE(!!result) << llvm::toString(result.takeError());
  EXPECT_EQ(result->out, "given");
  EXPECT_EQ(result->err, "e\n");
  // Where the host prints to, a socket of ours must not be.
  ASSERT_TRUE(!!cat) << llvm::toString(cat.takeError());
  EXPECT_GT((*cat)->socket(), 2);
}

TEST(RunProcess, ChildHasDefaultSignals) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  auto *handler = ::signal(SIGPIPE, SIG_IGN);
  // Not by way of a shell, which may clear its mask.
  llvm::Expected<ProcessResult> run =
      runProcess({"grep", "-E", "SigBlk|SigIgn", "/proc/self/status"}, "");
  ::signal(SIGPIPE, handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(!!run) << llvm::toString(run.takeError());
  ProcessResult &result = *run;
  EXPECT_NE(result.out.find("SigBlk:\t0000000000000000"), std::string::npos)
      << result.out;
  unsigned long long ignored = std::strtoull(
      result.out.c_str() + result.out.find("SigIgn:") + 8, nullptr, 16);
  EXPECT_FALSE(ignored & (1ull << (SIGPIPE - 1)));
}

TEST(FindOnPath, Names) {
  EXPECT_TRUE(llvm::StringRef(findOnPath("sh")).ends_with("/sh"));
  EXPECT_EQ(findOnPath("fsr-no-such-program"), "");
  EXPECT_EQ(findOnPath(""), "");
  EXPECT_EQ(findOnPath("/bin/sh"), "/bin/sh");
  EXPECT_EQ(findOnPath("/no/such/program"), "");
}

TEST(ChildProcess, TalksOverItsSocket) {
  std::unique_ptr<ChildProcess> cat = child("exec cat");
  ASSERT_TRUE(cat);
  Frame sent;
  sent.header = llvm::json::Object{{"op", "echo"}};
  sent.blob = std::string(300000, 'b');
  std::thread writer([&] { EXPECT_FALSE(writeFrame(cat->socket(), sent)); });
  llvm::Expected<std::optional<Frame>> got =
      readFrame(cat->socket(), Deadline::in(milliseconds(20000)));
  writer.join();
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->header, sent.header);
  EXPECT_TRUE((*got)->blob == sent.blob);
  EXPECT_EQ(cat->reap(), "exit status 0");
  EXPECT_EQ(cat->reap(), "exit status 0");
}

TEST(ChildProcess, DeadChild) {
  std::unique_ptr<ChildProcess> dead = child("kill -ABRT $$");
  ASSERT_TRUE(dead);
  llvm::Expected<std::optional<Frame>> got =
      readFrame(dead->socket(), Deadline::in(milliseconds(20000)));
  ASSERT_TRUE(!!got);
  EXPECT_FALSE(*got);
  EXPECT_EQ(dead->reap(), "killed by SIGABRT");
  llvm::Error error = writeFrame(dead->socket(), Frame());
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  llvm::consumeError(std::move(error));
}

TEST(ChildProcess, KillTakesTheGroupAlong) {
  std::unique_ptr<ChildProcess> parent = child("sleep 60 & echo $!; sleep 60");
  ASSERT_TRUE(parent);
  char text[32] = {};
  ASSERT_GT(::read(parent->socket(), text, sizeof text - 1), 0);
  int grandchild = std::atoi(text);
  ASSERT_GT(grandchild, 0);
  parent->kill();
  parent->kill();
  EXPECT_TRUE(isGone(parent->pid()));
  EXPECT_TRUE(isGone(grandchild));
  EXPECT_EQ(parent->reap(), "killed by SIGTERM");
}

TEST(ChildProcess, KillLetsItPassTheRequestOn) {
  std::unique_ptr<ChildProcess> standIn =
      child("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done");
  ASSERT_TRUE(standIn);
  char text[32];
  ASSERT_GT(::read(standIn->socket(), text, sizeof text), 0);
  standIn->kill();
  EXPECT_EQ(standIn->reap(), "exit status 7");
}

TEST(ChildProcess, ReapKillsOneThatDoesNotEnd) {
  std::unique_ptr<ChildProcess> stubborn = child("trap '' TERM; exec sleep 60");
  ASSERT_TRUE(stubborn);
  auto start = Deadline::Clock::now();
  EXPECT_EQ(stubborn->reap(), "killed by SIGKILL");
  EXPECT_GE(Deadline::Clock::now() - start, milliseconds(2000));
  EXPECT_LT(Deadline::Clock::now() - start, milliseconds(20000));
}

TEST(ChildProcess, DestructionKills) {
  std::unique_ptr<ChildProcess> sleeper = child("exec sleep 60");
  ASSERT_TRUE(sleeper);
  int pid = sleeper->pid();
  sleeper.reset();
  EXPECT_TRUE(isGone(pid));
}

TEST(ChildProcess, CannotStart) {
  llvm::Expected<std::unique_ptr<ChildProcess>> started =
      ChildProcess::start({"fsr-no-such-program"});
  ASSERT_FALSE(!!started);
  EXPECT_EQ(kindOf(started.takeError()), ErrorKind::Unavailable);
}
