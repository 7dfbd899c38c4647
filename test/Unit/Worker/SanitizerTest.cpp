// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// compute-sanitizer, as a worker uses it: its log, and what an evaluation makes
// of each end that a tool can come to. The tool here is a shell script of the
// test, which writes what the real one would.
//
//===----------------------------------------------------------------------===//

#include "Sanitizer.h"
#include "WorkerHarness.h"

#include "../Support/TemporaryFolder.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"
#include "fsr/Support/Interrupt.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

#include <csignal>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fsr;

namespace {

constexpr llvm::StringLiteral clean = R"(========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
)";
constexpr llvm::StringLiteral outOfBounds = R"(========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at fast(float *, float *)+0x90
=========     by thread (31,0,0) in block (7,0,0)
=========     Address 0x7f0000001000 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernel [0x2f1f4b] in libcuda.so.1
=========
========= Invalid __global__ write of size 4 bytes
=========     at fast(float *, float *)+0x90
========= ERROR SUMMARY: 2 errors
)";
constexpr llvm::StringLiteral race = R"(========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at fast+0x40
=========     and Read access at fast+0x70 [32 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
)";
constexpr llvm::StringLiteral hazard = R"(========= COMPUTE-SANITIZER
========= Warning: Race reported between Write access at fast+0x40
========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)
)";

/// As it is beyond --print-limit.
constexpr llvm::StringLiteral many = R"(========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at fast+0x110 in kernel.cu:10
=========     by thread (48,0,0) in block (44,0,0)
=========
========= Barrier error detected. Divergent thread(s) in warp.
=========     at fast+0x110 in kernel.cu:10
========= ERROR SUMMARY: 14896 errors
========= ERROR SUMMARY: 14876 errors were not printed. Use --print-limit option to adjust the number of printed errors
)";

/// The replay's own calls, as a tool counts them that reports those as well.
constexpr llvm::StringLiteral noMemory = R"(========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_OUT_OF_MEMORY (error 2) due to "out of memory" on CUDA API call to cuMemAlloc_v2.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: cuMemAlloc_v2 [0x2f1f4b] in libcuda.so.1
=========
========= Target application returned an error
========= ERROR SUMMARY: 1 error
)";
constexpr llvm::StringLiteral faultAndCall = R"(========= COMPUTE-SANITIZER
========= Program hit CUDA_ERROR_NOT_FOUND (error 500) due to "named symbol not found" on CUDA API call to cuModuleGetFunction.
=========
========= Invalid __global__ write of size 4 bytes
=========     at fast(float *, float *)+0x90
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call to cuStreamSynchronize.
=========     Saved host backtrace up to driver entry point at error
========= ERROR SUMMARY: 3 errors
)";

TEST(SanitizerLogTest, CallsOfTheReplayAreNotTheCandidates) {
  SanitizerLog log = parseSanitizerLog(noMemory);
  EXPECT_TRUE(log.hasSummary);
  EXPECT_EQ(log.errors, 0u);
  EXPECT_EQ(log.first,
            "Program hit CUDA_ERROR_OUT_OF_MEMORY (error 2) due to \"out of "
            "memory\" on CUDA API call to cuMemAlloc_v2.");
  log = parseSanitizerLog(faultAndCall);
  EXPECT_EQ(log.errors, 1u);
  EXPECT_EQ(log.first, "Invalid __global__ write of size 4 bytes; at "
                       "fast(float *, float *)+0x90");
}

TEST(SanitizerLogTest, WhatIsNotPrintedIsCountedOnce) {
  SanitizerLog log = parseSanitizerLog(many);
  EXPECT_TRUE(log.hasSummary);
  EXPECT_EQ(log.errors, 14896u);
  EXPECT_EQ(log.first,
            "Barrier error detected. Divergent thread(s) in warp.; at "
            "fast+0x110 in kernel.cu:10; by thread (48,0,0) in block (44,0,0)");
}

TEST(SanitizerLogTest, Summaries) {
  SanitizerLog log = parseSanitizerLog(clean);
  EXPECT_TRUE(log.hasSummary);
  EXPECT_EQ(log.errors, 0u);
  EXPECT_EQ(log.first, "");
  log = parseSanitizerLog(outOfBounds);
  EXPECT_EQ(log.errors, 2u);
  EXPECT_EQ(log.first,
            "Invalid __global__ write of size 4 bytes; at fast(float *, float "
            "*)+0x90; by thread (31,0,0) in block (7,0,0); Address "
            "0x7f0000001000 is out of bounds");
  log = parseSanitizerLog(race);
  EXPECT_EQ(log.errors, 1u);
  EXPECT_EQ(log.warnings, 0u);
  log = parseSanitizerLog(hazard);
  EXPECT_TRUE(log.hasSummary);
  EXPECT_EQ(log.errors, 0u);
  EXPECT_EQ(log.warnings, 1u);
}

TEST(SanitizerLogTest, WhatIsNoSummary) {
  for (llvm::StringRef text :
       {"", "=========", "ERROR SUMMARY: 0 errors\n",
        "========= ERROR SUMMARY: \n", "========= ERROR SUMMARY: many errors\n",
        "========= ERROR SUMMARY: 99999999999999999999 errors\n",
        "========= LEAK SUMMARY: 0 bytes leaked in 0 allocations\n",
        "========= RACECHECK SUMMARY: 0 hazards displayed\n",
        "========= Internal Sanitizer Error: no device\n"}) {
    SanitizerLog log = parseSanitizerLog(text);
    EXPECT_FALSE(log.hasSummary) << text.str();
    EXPECT_EQ(log.errors, 0u) << text.str();
  }
  std::string long_ = "========= ";
  long_.append(100000, 'x');
  EXPECT_LT(parseSanitizerLog(long_ + "\x1b[31m\n").first.size(), 1000u);
}

class SanitizerTest : public testing::Test {
protected:
  /// Says for each tool what its log holds, or other lines of shell.
  void install(std::map<std::string, std::string> steps) {
    std::string script = "#!/bin/sh\n"
                         "echo \"$@\" >> '" +
                         folder.path +
                         "/arguments'\n"
                         "while [ $# -gt 0 ]; do\n"
                         "  case $1 in\n"
                         "  --tool) tool=$2 ;;\n"
                         "  --log-file) log=$2 ;;\n"
                         "  replay) replay=$2; device=$3 ;;\n"
                         "  esac\n"
                         "  shift\n"
                         "done\n"
                         "cp \"$replay\" '" +
                         folder.path +
                         "/kept'\n"
                         "echo \"$tool $device\" >> '" +
                         folder.path +
                         "/calls'\n"
                         "case $tool in\n";
    for (const auto &[tool, step] : steps)
      script += tool + ") " + step + " ;;\n";
    script += "*) " + write(clean) + " ;;\nesac\n";
    setup.tool = folder.path + "/compute-sanitizer";
    ASSERT_FALSE(bool(writeFileAtomically(setup.tool, script)));
    ASSERT_EQ(chmod(setup.tool.c_str(), 0755), 0);
    setup.self = {"fsr-worker"};
    setup.device = "cuda:3";
    setup.limit = std::chrono::milliseconds(20000);
  }
  static std::string write(llvm::StringRef log) {
    return ("cat > \"$log\" <<'END'\n" + log + "END\n").str();
  }
  Ran run() {
    RunningWorker worker(trying.backend, &setup);
    Ran ran = trying.runOnce(worker);
    ran.status = worker.finish();
    return ran;
  }
  std::string calls() { return read("calls"); }
  /// Empty where there is none.
  std::string read(llvm::StringRef name) {
    llvm::Expected<std::string> text = readFile(folder / name, 1 << 20);
    if (text)
      return *text;
    llvm::consumeError(text.takeError());
    return "";
  }

  TemporaryFolder folder;
  SanitizerSetup setup;
  Trying trying;
};

TEST_F(SanitizerTest, AWinnerPassesAllTools) {
  install({});
  Ran ran = run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Accepted) << ran.result->message;
  const Check &check = *findCheck(*ran.result, "compute-sanitizer");
  EXPECT_TRUE(check.passed);
  EXPECT_EQ(check.detail, "memcheck, racecheck, initcheck, synccheck");
  EXPECT_EQ(calls(), "memcheck --device=cuda:3\nracecheck --device=cuda:3\n"
                     "initcheck --device=cuda:3\nsynccheck --device=cuda:3\n");
  // What was handed over is what won, and can be replayed.
  unsigned launches = 0;
  trying.backend.images["candidate image"]["fast"].body =
      [&](llvm::ArrayRef<void *> params) {
        ++launches;
        EXPECT_NE(pointerOf(params, 0)[0], pointerOf(params, 0)[1]);
        return 0;
      };
  EXPECT_EQ(llvm::toString(replayOnce(trying.backend, folder.path + "/kept")),
            "");
  EXPECT_EQ(launches, 1u);
  EXPECT_EQ(trying.backend.allocatedBytes(), 0u);
}

TEST_F(SanitizerTest, AFindingIsUnsafe) {
  install({{"memcheck", write(outOfBounds) + "exit 86"}});
  Ran ran = run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Unsafe);
  EXPECT_NE(ran.result->message.find("memcheck: 2 errors: Invalid __global__ "
                                     "write of size 4 bytes"),
            std::string::npos)
      << ran.result->message;
  EXPECT_FALSE(findCheck(*ran.result, "compute-sanitizer")->passed);
  EXPECT_EQ(calls(), "memcheck --device=cuda:3\n");
  install({{"racecheck", write(race)}});
  EXPECT_EQ(run().result->verdict, Verdict::Unsafe);
}

// Such as memory that the worker itself holds meanwhile.
TEST_F(SanitizerTest, AReplayThatDoesNotRunIsNoFinding) {
  install({{"memcheck", write(noMemory) + "exit 86"}});
  Ran ran = run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Accepted) << ran.result->message;
  const Check &check = *findCheck(*ran.result, "compute-sanitizer");
  EXPECT_TRUE(check.passed);
  EXPECT_NE(check.detail.find("memcheck did not run (exit status 86): Program "
                              "hit CUDA_ERROR_OUT_OF_MEMORY"),
            std::string::npos)
      << check.detail;
  EXPECT_NE(read("arguments").find("--report-api-errors no "),
            std::string::npos);
}

TEST_F(SanitizerTest, WarningsAreTold) {
  install({{"racecheck", write(hazard)}});
  Ran ran = run();
  EXPECT_EQ(ran.result->verdict, Verdict::Accepted);
  EXPECT_NE(findCheck(*ran.result, "compute-sanitizer")
                ->detail.find("racecheck: 1 warnings: Warning: Race reported"),
            std::string::npos);
}

TEST_F(SanitizerTest, AToolThatSaysNothingIsSaidToBeMissing) {
  install({{"memcheck", "exit 1"},
           {"racecheck", "echo 'no device' >&2; exit 7"},
           {"initcheck", write(clean) + "exit 1"},
           {"synccheck", "sleep 60"}});
  setup.limit = std::chrono::milliseconds(1000);
  Ran ran = run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(ran.result->verdict, Verdict::Accepted) << ran.result->message;
  const Check &check = *findCheck(*ran.result, "compute-sanitizer");
  EXPECT_EQ(check.rule, "not run");
  EXPECT_EQ(check.detail,
            "no tool ran; memcheck did not run (exit status 1); racecheck did "
            "not run (exit status 7): no device; initcheck did not run (exit "
            "status 1); synccheck not finished in 1 s");
}

TEST_F(SanitizerTest, NotInstalled) {
  Ran ran = run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(findCheck(*ran.result, "compute-sanitizer")->detail,
            "not installed");
  install({});
  setup.tool += "-of-another-place";
  ran = run();
  EXPECT_NE(findCheck(*ran.result, "compute-sanitizer")
                ->detail.find("was not started"),
            std::string::npos);
}

TEST_F(SanitizerTest, OnlyAWinnerIsWorthIt) {
  install({});
  trying.options.full = false;
  run();
  trying.options.full = true;
  trying.candidate.microseconds = 200;
  EXPECT_EQ(run().result->verdict, Verdict::NotFaster);
  EXPECT_EQ(calls(), "");
}

/// A worker's process while a tool runs that ends by nothing of its own.
class ReplayEndTest : public SanitizerTest {
protected:
  /// The tool says its id and goes on as `after`; `end` is how the worker goes.
  /// True where within a while neither tool nor folder are left.
  bool leavesNothing(const std::string &after, llvm::function_ref<void()> end) {
    setup.tool = folder / "compute-sanitizer";
    std::string script = "#!/bin/sh\n"
                         "while [ \"$1\" != self ]; do shift; done\n"
                         "shift\n"
                         "echo \"$2\" > '" +
                         folder.path + "/replay'\n" + "echo $$ > '" +
                         folder.path + "/pid'\n" + after + "\n";
    EXPECT_FALSE(bool(writeFileAtomically(setup.tool, script)));
    EXPECT_EQ(chmod(setup.tool.c_str(), 0755), 0);
    setup.self = {"self"};
    setup.device = "virtual";
    pid_t worker = fork();
    if (worker == 0) {
      WireEvaluate wire;
      wire.task = trying.task;
      wire.plan = trying.plan;
      const std::string image = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry fast(.param .u64 x, .param .u64 y) {
again:
  bra again;
}
)";
      wire.referenceHash = std::string(64, 'a');
      wire.candidateHash = sha256(image);
      auto file = ReplayFile::create(wire, image);
      if (!file)
        _exit(98);
      std::thread([&] { (*file)->runTool(setup, "memcheck"); }).detach();
      for (int i = 0; i < 2000 && number("pid") == 0; ++i)
        usleep(5000);
      usleep(300000); // The replay begins.
      end();
      _exit(99);
    }
    int status = 0;
    waitpid(worker, &status, 0);
    EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) >= 98);
    pid_t tool = number("pid");
    EXPECT_GT(tool, 1);
    std::string file = llvm::StringRef(read("replay")).trim().str();
    EXPECT_NE(file, "");
    auto isThere = [&] {
      return runs(tool) ||
             llvm::sys::fs::exists(llvm::sys::path::parent_path(file));
    };
    for (int i = 0; i < 1000 && isThere(); ++i)
      usleep(5000);
    bool left = isThere();
    if (runs(tool))
      kill(-tool, SIGKILL);
    llvm::sys::fs::remove_directories(llvm::sys::path::parent_path(file));
    return !left;
  }
  /// Whoever has to may be late to reap it.
  static bool runs(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    if (!std::getline(file, text))
      return false;
    // The name before the state may hold anything.
    llvm::StringRef state = llvm::StringRef(text).rsplit(") ").second;
    return !state.starts_with("Z") && !state.starts_with("X");
  }
  pid_t number(llvm::StringRef name) {
    int number = 0;
    std::string text = read(name);
    return llvm::StringRef(text).trim().getAsInteger(10, number) ? 0 : number;
  }
};

TEST_F(ReplayEndTest, AWorkerThatEndsTakesItsToolAlong) {
  EXPECT_TRUE(leavesNothing("exec sleep 100", [] { endInOrder(1); }));
}

TEST_F(ReplayEndTest, AReplayEndsWithAWorkerThatWasKilled) {
  EXPECT_TRUE(leavesNothing("exec " FSR_WORKER " \"$@\"",
                            [] { kill(getpid(), SIGKILL); }));
}

TEST_F(ReplayEndTest, AWorkerEndsInOrderWhenAsked) {
  auto worker = ChildProcess::start({FSR_WORKER, "device", "--device=virtual"});
  ASSERT_TRUE(bool(worker)) << llvm::toString(worker.takeError());
  Frame hello;
  hello.header =
      llvm::json::Object{{"op", "hello"}, {"protocol", workerProtocolVersion}};
  ASSERT_FALSE(bool(writeFrame((*worker)->socket(), hello)));
  auto answer = readFrame((*worker)->socket());
  ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
  (*worker)->kill();
  EXPECT_EQ((*worker)->reap(), "exit status 143");
}

TEST_F(SanitizerTest, AReplayOfNobodyDoesNotRun) {
  for (const char *lock : {"lock", "none"}) {
    if (lock[0] == 'l')
      ASSERT_FALSE(bool(writeFileAtomically(folder / "lock", "")));
    EXPECT_NE(llvm::toString(endWithHolder(folder / lock))
                  .find("the worker has ended"),
              std::string::npos);
  }
}

TEST_F(SanitizerTest, AReplayThatIsNoneIsAnError) {
  std::string path = folder.path + "/bad";
  ASSERT_FALSE(bool(writeFileAtomically(path, "no frames")));
  EXPECT_NE(llvm::toString(replayOnce(trying.backend, path)), "");
  EXPECT_NE(llvm::toString(replayOnce(trying.backend, path + "-missing")), "");
}

} // namespace
