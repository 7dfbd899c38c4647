// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is said of a candidate beside its verdict: by ncu, for which a shell
// script of the test stands here, and by a device's test of itself. Whatever
// becomes of them, the verdict stays.
//
//===----------------------------------------------------------------------===//

#include "Profiler.h"

#include "Peaks.h"
#include "WorkerHarness.h"

#include "../Support/TemporaryFolder.h"
#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Support/Files.h"

#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <sys/stat.h>

using namespace fsr;

namespace {

constexpr llvm::StringLiteral table =
    R"log(==PROF== Connected to process 7 (/usr/bin/fsr-worker)
==PROF== Disconnected from process 7
"ID","Process ID","Kernel Name","Block Size","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","sm__throughput.avg.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active","l1tex__t_sector_hit_rate.pct","lts__t_sector_hit_rate.pct","smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio","smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio","smsp__average_warps_issue_stalled_selected_per_issue_active.ratio","smsp__average_warps_issue_stalled_wait_per_issue_active.ratio","launch__grid_size"
"","","","","Mbyte","byte","ns","%","%","%","%","%","inst","inst","inst","inst",""
"0","7","fast(float *, float *)","(256, 1, 1)","4.5","1,048,576","12,500","81.25","20.5","62.5","n/a","33.3","0.5","11.75","1.0","2.0","1,024"
)log";

TEST(ProfilerLogTest, ATable) {
  std::vector<HardwareCounters> rows = parseProfilerLog(table);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].kernel, "fast");
  EXPECT_DOUBLE_EQ(rows[0].dramReadBytes, 4.5e6);
  EXPECT_DOUBLE_EQ(rows[0].dramWriteBytes, 1048576);
  EXPECT_DOUBLE_EQ(rows[0].microseconds, 12.5);
  EXPECT_DOUBLE_EQ(rows[0].dramPercent, 81.25);
  EXPECT_DOUBLE_EQ(rows[0].smPercent, 20.5);
  EXPECT_DOUBLE_EQ(rows[0].occupancyPercent, 62.5);
  EXPECT_LT(rows[0].l1HitPercent, 0); // "n/a".
  EXPECT_DOUBLE_EQ(rows[0].l2HitPercent, 33.3);
  ASSERT_EQ(rows[0].stalls.size(), 3u);
  EXPECT_EQ(rows[0].stalls[0].reason, "long scoreboard");
  EXPECT_DOUBLE_EQ(rows[0].stalls[0].warps, 11.75);
  EXPECT_EQ(rows[0].stalls[1].reason, "wait");
  EXPECT_EQ(rows[0].stalls[2].reason, "barrier");
}

TEST(ProfilerLogTest, AnyTextIsTaken) {
  for (llvm::StringRef text :
       {"", "\"", "\"ID", "\"ID\"", "\"ID\",", "\"ID\",\"Kernel Name\"\n",
        "\"0\",\"fast\"\n", "\"ID\",\"Kernel Name\"\n\"\",\"\"\n\"0\"\n",
        "\"ID\",\"Kernel Name\"\n\"0\",\"fast\n", "ID,Kernel Name\n0,fast\n",
        "\"ID\",\"Kernel Name\"\n\"0\";\"fast\"\n"})
    EXPECT_TRUE(parseProfilerLog(text).empty()) << text.str();
  // Cells that are missing, are no numbers, or are too many.
  std::vector<HardwareCounters> rows =
      parseProfilerLog("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\","
                       "\"dram__bytes_read.sum\",\"dram__bytes_write.sum\"\n"
                       "\"0\",\"a \"\"b\"\"\",\"inf\",\"-5\"\n"
                       "\"1\",\"c\",\"\",\"1e999\",\"1\",\"2\",\"3\"\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].kernel, "a \"b\"");
  EXPECT_LT(rows[0].microseconds, 0);
  EXPECT_LT(rows[0].dramReadBytes, 0);
  EXPECT_LT(rows[1].dramReadBytes, 0);
  EXPECT_EQ(rows[1].dramWriteBytes, 1);
  std::string many = "\"ID\",\"Kernel Name\"\n";
  for (unsigned i = 0; i < 1000; ++i)
    many += "\"1\",\"k\"\n";
  EXPECT_EQ(parseProfilerLog(many).size(), Profile::mostKernels);
  many = "\"ID\"";
  for (unsigned i = 0; i < 100000; ++i)
    many += ",\"smsp__average_warps_issue_stalled_x_per_issue_active.ratio\"";
  EXPECT_TRUE(parseProfilerLog(many).empty());
}

class ProfilerTest : public testing::Test {
protected:
  ProfilerTest() {
    trying.options.confirm = true;
    trying.options.counters = true;
  }
  /// A script that knows where the log goes, and what is profiled.
  void install(const std::string &step) {
    setup.profiler = folder.path + "/ncu";
    std::string script = "#!/bin/sh\necho \"$@\" > '" + folder.path +
                         "/called'\n"
                         "while [ $# -gt 0 ]; do\n"
                         "  case $1 in\n"
                         "  --log-file) log=$2 ;;\n"
                         "  replay) replay=$2 ;;\n"
                         "  esac\n"
                         "  shift\n"
                         "done\n" +
                         step + "\n";
    ASSERT_FALSE(bool(writeFileAtomically(setup.profiler, script)));
    ASSERT_EQ(chmod(setup.profiler.c_str(), 0755), 0);
    setup.self = {"fsr-worker"};
    setup.device = "cuda:3";
    setup.limit = std::chrono::milliseconds(20000);
  }
  static std::string write(llvm::StringRef log) {
    return ("cat > \"$log\" <<'END'\n" + log + "END\n").str();
  }
  Profile run(Verdict verdict = Verdict::Accepted) {
    RunningWorker worker(trying.backend, &setup);
    Ran ran = trying.runOnce(worker);
    ran.status = worker.finish();
    EXPECT_TRUE(ran.result) << ran.error;
    EXPECT_EQ(ran.status, 0);
    if (!ran.result)
      return {};
    EXPECT_EQ(ran.result->verdict, verdict) << ran.result->message;
    return ran.result->profile.value_or(Profile());
  }
  /// The only line of what is missing.
  std::string missing() {
    Profile profile = run();
    EXPECT_TRUE(profile.hardware.empty());
    EXPECT_EQ(profile.missing.size(), 1u);
    return profile.missing.empty() ? "" : profile.missing[0];
  }

  TemporaryFolder folder;
  SanitizerSetup setup;
  Trying trying;
};

TEST_F(ProfilerTest, AWinnersCounters) {
  install("[ -s \"$replay\" ] && " + write(table));
  Profile profile = run();
  ASSERT_EQ(profile.hardware.size(), 1u);
  EXPECT_EQ(profile.hardware[0].kernel, "fast");
  EXPECT_DOUBLE_EQ(profile.hardware[0].dramPercent, 81.25);
  EXPECT_TRUE(profile.missing.empty());
  std::string called = llvm::cantFail(readFile(folder.path + "/called", 4096));
  for (llvm::StringRef part :
       {"--clock-control none", "--kernel-name regex:^(fast)$",
        "--launch-count 1", "fsr-worker replay ", "--device=cuda:3"})
    EXPECT_NE(called.find(part.str()), std::string::npos) << called;
}

TEST_F(ProfilerTest, OnlyAWinnerIsWorthIt) {
  install(write(table));
  trying.candidate.microseconds = 100;
  EXPECT_TRUE(run(Verdict::NotFaster).isEmpty());
  trying.candidate.microseconds = 50;
  trying.options.counters = false;
  EXPECT_TRUE(run().isEmpty());
  EXPECT_FALSE(llvm::sys::fs::exists(folder.path + "/called"));
}

TEST_F(ProfilerTest, NotInstalled) {
  EXPECT_EQ(missing(), "hardware counters: ncu is not installed");
  install("");
  setup.profiler += "-of-another-place";
  EXPECT_NE(missing().find("ncu was not started"), std::string::npos);
}

TEST_F(ProfilerTest, NotPermitted) {
  install(
      write("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission "
            "to access NVIDIA GPU Performance Counters on the target "
            "device 0.\n") +
      "exit 1");
  EXPECT_EQ(missing(),
            "hardware counters: not permitted (ERR_NVGPUCTRPERM); the setting "
            "NVreg_RestrictProfilingToAdminUsers=0 of the module nvidia, or "
            "CAP_SYS_ADMIN, permits it");
  install("echo ERR_NVGPUCTRPERM >&2; exit 1");
  EXPECT_NE(missing().find("not permitted"), std::string::npos);
}

TEST_F(ProfilerTest, WhatItDoesIsNoFault) {
  install(write("==ERROR== Unknown section\x1b[31m\n") + "exit 1");
  EXPECT_EQ(missing(), "hardware counters: ncu told nothing (exit status 1): "
                       "Unknown section [31m");
  install("kill -SEGV $$");
  EXPECT_NE(missing().find("SIGSEGV"), std::string::npos);
  install(write("\"ID\",\"Kernel Name\"\n\"0\",\"fast"));
  EXPECT_EQ(missing(), "hardware counters: ncu told nothing (exit status 0)");
  // Too much of a log, and of everything else.
  install("head -c 20000000 /dev/zero > \"$log\"; yes | head -c 20000000");
  EXPECT_NE(missing().find("ncu told nothing"), std::string::npos);
  install("sleep 60");
  setup.limit = std::chrono::milliseconds(1000);
  EXPECT_EQ(missing(), "hardware counters: ncu had not finished in 1 s");
}

TEST_F(ProfilerTest, ADeviceTestsItself) {
  HostImage &kernels = trying.backend.images[peaksPtx().str()];
  unsigned copies = 0, rounds = 0;
  kernels["fsrPeakCopy"].microseconds = 100;
  kernels["fsrPeakCopy"].body = [&](llvm::ArrayRef<void *>) {
    ++copies;
    return 0;
  };
  kernels["fsrPeakFma"].microseconds = 200;
  kernels["fsrPeakFma"].body = [&](llvm::ArrayRef<void *> params) {
    rounds = *static_cast<unsigned *>(params[1]);
    return 0;
  };
  trying.options.counters = false;
  trying.options.peaks = true;
  trying.backend.facts.multiprocessors = 10;
  trying.backend.facts.l2Bytes = 1 << 20;
  Profile profile = run();
  ASSERT_TRUE(profile.peaks);
  EXPECT_TRUE(profile.missing.empty());
  // 64 MiB are read and written.
  EXPECT_NEAR(profile.peaks->copyBytesPerSecond, double(128 << 20) / 100e-6,
              0.01 * double(128 << 20) / 100e-6);
  EXPECT_EQ(copies, 6u);
  // The first launch of 256 rounds took 200 µs, 10 ms are wanted.
  EXPECT_NEAR(rounds, 12800, 100);
  double flops = 10 * 8 * 256 * double(rounds) * 256 / 200e-6;
  EXPECT_NEAR(profile.peaks->flopsPerSecond, flops, 0.01 * flops);
  EXPECT_EQ(trying.backend.allocatedBytes(), 0u);
  // Not of one that is wrong.
  copies = 0;
  trying.candidate.body = [](llvm::ArrayRef<void *>) { return 0; };
  run(Verdict::Mismatch);
  EXPECT_EQ(copies, 0u);
}

TEST_F(ProfilerTest, ADeviceThatCannotIsNoFault) {
  trying.options.counters = false;
  trying.options.peaks = true; // It does not load the test's kernels.
  Profile profile = run();
  EXPECT_FALSE(profile.peaks);
  ASSERT_EQ(profile.missing.size(), 1u);
  EXPECT_NE(profile.missing[0].find("measured peaks: "), std::string::npos);
  trying.backend.images[peaksPtx().str()]["fsrPeakCopy"].refusal = 701;
  trying.backend.images[peaksPtx().str()]["fsrPeakFma"].microseconds = 1;
  profile = run();
  EXPECT_FALSE(profile.peaks);
  EXPECT_NE(profile.missing[0].find("fsrPeakCopy"), std::string::npos)
      << profile.missing[0];
  EXPECT_EQ(trying.backend.allocatedBytes(), 0u);
}

TEST(PeaksTest, AVirtualDeviceHasNone) {
  auto backend = llvm::cantFail(openVirtualBackend());
  auto helpers = llvm::cantFail(Helpers::create(*backend));
  EXPECT_EQ(llvm::toString(measurePeaks(*helpers).takeError()),
            "a virtual device has no speed of its own");
}

/// The kernels themselves, where PTX runs.
TEST(PeaksTest, TheCopyCopies) {
  auto backend = llvm::cantFail(openVirtualBackend());
  ModuleHandle module = llvm::cantFail(backend->loadModule(peaksPtx()));
  FunctionHandle copy =
      llvm::cantFail(backend->function(module, "fsrPeakCopy"));
  StreamHandle stream = llvm::cantFail(backend->createStream());
  uint64_t count = 1000;
  std::vector<uint32_t> words(4 * count), back(4 * count);
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = uint32_t(i) * 2654435761u;
  DevicePointer from = llvm::cantFail(backend->allocate(16 * count)),
                to = llvm::cantFail(backend->allocate(16 * count));
  llvm::cantFail(backend->copyToDevice(from, words.data(), 16 * count, stream));
  BackendLaunch launch;
  launch.function = copy;
  launch.grid[0] = 2;
  launch.block[0] = 64; // Neither a whole number of steps.
  launch.stream = stream;
  void *params[] = {&to, &from, &count};
  launch.params = params;
  llvm::cantFail(backend->launch(launch));
  llvm::cantFail(backend->copyToHost(back.data(), to, 16 * count, stream));
  EXPECT_EQ(back, words);
  VirtualReport report = backend->virtualDevice()->takeReport();
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.counters.globalLoadBytes, 16 * count);

  FunctionHandle fma = llvm::cantFail(backend->function(module, "fsrPeakFma"));
  unsigned rounds = 3;
  float factor = 0.5f, term = 1;
  void *others[] = {&to, &rounds, &factor, &term};
  launch.function = fma;
  launch.params = others;
  llvm::cantFail(backend->launch(launch));
  report = backend->virtualDevice()->takeReport();
  EXPECT_TRUE(report.findings.empty());
  // What the rate is worked out from, 256 a thread and round; and the sum.
  EXPECT_EQ(report.counters.flops32, 128u * (3 * 256 + 8));
}

} // namespace
