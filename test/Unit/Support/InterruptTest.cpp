// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a program ends on SIGINT and the like, each time in a process of its own.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Interrupt.h"

#include "TemporaryFolder.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/Support/FileSystem.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>
#include <unistd.h>

#include "gtest/gtest.h"

using namespace fsr;
using std::chrono::milliseconds;

namespace {

class InterruptTest : public ::testing::Test {
protected:
  void SetUp() override {
    // A fork knows the folder that the test made; there are no threads yet.
    GTEST_FLAG_SET(death_test_style, "fast");
    // Whoever runs the tests may ignore them.
    for (int signal : {SIGINT, SIGHUP, SIGQUIT})
      ::signal(signal, SIG_DFL);
  }
};

void pause(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }

void begin() {
  endOnInterrupt([] { (void)!::write(2, "goodbye\n", 8); });
}

/// Signals the process and waits for what it does with it.
[[noreturn]] void interrupt(int signal) {
  ::kill(::getpid(), signal);
  pause(20000);
  _exit(99);
}

TEST_F(InterruptTest, EndsWithTheSignalsStatus) {
  EXPECT_EXIT((begin(), interrupt(SIGINT)), ::testing::ExitedWithCode(130),
              "^goodbye\n$");
  EXPECT_EXIT((begin(), interrupt(SIGTERM)), ::testing::ExitedWithCode(143),
              "^goodbye\n$");
  EXPECT_EXIT((begin(), interrupt(SIGHUP)), ::testing::ExitedWithCode(129),
              "^goodbye\n$");
  EXPECT_EXIT((begin(), interrupt(SIGQUIT)), ::testing::ExitedWithCode(131),
              "^goodbye\n$");
}

TEST_F(InterruptTest, LeavesAnIgnoredSignalIgnored) {
  EXPECT_EXIT((::signal(SIGINT, SIG_IGN), begin(), ::kill(::getpid(), SIGINT),
               pause(200), _exit(7)),
              ::testing::ExitedWithCode(7), "^$");
}

TEST_F(InterruptTest, WaitsForAWholeStepAndLetsNoOtherBegin) {
  auto run = [] {
    begin();
    std::thread([] {
      pause(100);
      ::kill(::getpid(), SIGINT);
    }).detach();
    {
      WholeStep step;
      pause(400);
      (void)!::write(2, "whole\n", 6);
    }
    pause(50);
    WholeStep never;
    (void)!::write(2, "begun\n", 6);
    pause(20000);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(130), "^whole\ngoodbye\n$");
}

TEST_F(InterruptTest, ASecondSignalDoesNotWait) {
  auto run = [] {
    begin();
    WholeStep step;
    ::kill(::getpid(), SIGINT);
    pause(100);
    interrupt(SIGINT);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(130), "^goodbye\n$");
}

TEST_F(InterruptTest, ASecondSignalDoesNotLoseAGoodbyeHalfSaid) {
  auto run = [] {
    endOnInterrupt([] {
      pause(60);
      (void)!::write(2, "goodbye\n", 8);
    });
    ::kill(::getpid(), SIGINT);
    pause(20);
    interrupt(SIGINT);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(130), "^goodbye\n$");
}

TEST_F(InterruptTest, ASecondSignalDoesNotWaitForAGoodbyeThatBlocks) {
  auto run = [] {
    endOnInterrupt([] { pause(30000); });
    ::kill(::getpid(), SIGINT);
    pause(20);
    interrupt(SIGTERM);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(143), "^$");
}

TEST_F(InterruptTest, RemovesLeftovers) {
  TemporaryFolder folder;
  std::string kept = folder / "kept", left = folder / "left";
  for (const std::string &path : {kept, left}) {
    ASSERT_FALSE(llvm::sys::fs::create_directory(path));
    std::ofstream(path + "/file") << "text";
  }
  auto run = [&] {
    begin();
    {
      Leftover gone(kept);
    }
    Leftover leftover(left);
    interrupt(SIGINT);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(130), "goodbye");
  EXPECT_TRUE(llvm::sys::fs::exists(kept + "/file"));
  EXPECT_FALSE(llvm::sys::fs::exists(left));
}

TEST_F(InterruptTest, KillsChildrenAndTheirChildren) {
  TemporaryFolder folder;
  std::string list = folder / "list";
  auto run = [&] {
    begin();
    std::thread([&] {
      for (int turn = 0; turn < 500; ++turn) {
        std::ifstream file(list);
        int first = 0, second = 0;
        if (file >> first >> second)
          interrupt(SIGINT);
        pause(10);
      }
      _exit(98);
    }).detach();
    // The inner one leaves the group of its parent.
    llvm::consumeError(
        runProcess({"/bin/sh", "-c",
                    "setsid sleep 300 & echo $$ $! > " + list + "; wait"},
                   "", {})
            .takeError());
    _exit(97);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(130), "goodbye");
  std::ifstream file(list);
  int count = 0;
  for (pid_t pid; file >> pid; ++count) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    stat >> id >> name >> state;
    EXPECT_TRUE(state.empty() || state == "Z" || state == "X") << name;
  }
  EXPECT_EQ(count, 2);
}

} // namespace
