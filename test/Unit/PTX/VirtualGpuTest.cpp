// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Modules with their variables, launches with their limits, and what a launch
// tells: counters, fidelity.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

namespace fsr::ptx {
namespace {

class VirtualGpuTest : public KernelTest {
protected:
  std::string launchError(llvm::StringRef body = "exit;",
                          llvm::StringRef before = "") {
    llvm::Expected<LaunchResult> result = tryRun(kernel(body, before));
    return result ? std::string("none") : toString(result.takeError());
  }
};

TEST_F(VirtualGpuTest, VariablesOfModules) {
  unsigned module = cantFail(gpu->loadModule(R"(
.version 8.8
.target sm_90
.address_size 64
.global .align 4 .u32 numbers[4] = {1, 2, 3};
.const .align 8 .u64 where = numbers;
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<5>;
  .reg .b32 %r<5>;
  ld.param.u64 %rd1, [p];
  ld.const.u64 %rd2, [where];
  ld.global.u32 %r1, [%rd2+8];
  st.global.u32 [%rd1], %r1;
  ld.global.u32 %r2, [numbers+12];
  add.u32 %r2, %r2, 5;
  st.global.u32 [numbers+12], %r2;
  exit;
}
)"));
  auto [address, bytes] = cantFail(gpu->symbol(module, "numbers"));
  EXPECT_EQ(bytes, 16u);
  uint64_t free = gpu->freeBytes();
  uint64_t out = cantFail(gpu->allocate(4));
  EXPECT_EQ(gpu->freeBytes(), free - 4);
  EXPECT_TRUE(gpu->owns(out));
  std::vector<KernelParameter> parameters =
      cantFail(gpu->parameters(module, "k"));
  ASSERT_EQ(parameters.size(), 1u);
  EXPECT_EQ(parameters[0].bytes, 8u);
  uint8_t params[8];
  std::memcpy(params, &out, 8);
  shape.block = {1, 1, 1};
  for (unsigned i = 1; i <= 2; ++i) {
    LaunchResult result =
        cantFail(gpu->launch(module, "k", shape, params, options));
    EXPECT_TRUE(result.findings.empty());
    uint32_t values[4], got = 0;
    cantFail(gpu->read(&got, out, 4));
    EXPECT_EQ(got, 3u);
    cantFail(gpu->read(values, address, 16));
    EXPECT_EQ(values[3], 5 * i);
  }
  EXPECT_EQ(toString(gpu->symbol(module, "nothing").takeError()),
            "the module has no variable \"nothing\"");
  EXPECT_EQ(toString(gpu->parameters(module, "nothing").takeError()),
            "the module has no kernel \"nothing\"; it has k");
  EXPECT_EQ(toString(gpu->launch(module, "k", shape, {}, options).takeError()),
            "launch of k: a parameter block of 0 bytes, wanted 8");
  cantFail(gpu->unloadModule(module));
  EXPECT_EQ(toString(gpu->unloadModule(module)),
            "module " + std::to_string(module) + " is not loaded");
  EXPECT_FALSE(gpu->owns(address));
}

/// Chosen blocks and warps, and what they touched and wrote.
TEST_F(VirtualGpuTest, ChosenBlocks) {
  shape.grid = {3, 2, 1};
  shape.block = {64, 1, 1};
  unsigned module = cantFail(gpu->loadModule(kernel(R"(
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mad.lo.u32 %r1, %r2, 3, %r1;
  mad.lo.u32 %r1, %r1, 64, %t;
  mul.wide.u32 %rd1, %r1, 4;
  add.u64 %rd1, %out, %rd1;
  st.global.u32 [%rd1], %r1;
  exit;)")));
  const uint64_t bytes = 4 * 6 * 64;
  uint64_t out = cantFail(gpu->allocate(bytes));
  uint8_t params[8];
  std::memcpy(params, &out, 8);
  options.blocks = {{4}, {1, 2}};
  LaunchResult result =
      cantFail(gpu->launch(module, "k", shape, params, options));
  EXPECT_TRUE(result.completed);
  EXPECT_EQ(result.counters.globalStoreBytes, 3 * 32 * 4u);
  using Runs = std::vector<std::pair<uint64_t, uint64_t>>;
  Runs wanted = {{4 * 96, 128}, {4 * 256, 256}}, written, touched;
  cantFail(gpu->forWritten(out, bytes, [&](uint64_t at, uint64_t length) {
    written.push_back({at - out, length});
  }));
  EXPECT_EQ(written, wanted);
  cantFail(gpu->forTouched(out, bytes, [&](uint64_t at, uint64_t length) {
    touched.push_back({at - out, length});
  }));
  EXPECT_EQ(touched, wanted);
  uint32_t value = 0;
  cantFail(gpu->read(&value, out + 4 * 100, 4));
  EXPECT_EQ(value, 100u);
  options.blocks = {{2, 1, 0x80000001}};
  result = cantFail(gpu->launch(module, "k", shape, params, options));
  EXPECT_EQ(result.counters.globalStoreBytes, 8u);
  options.blocks = {{6}};
  EXPECT_EQ(launchError(), "launch of k: a block that is not one of 6");
}

TEST_F(VirtualGpuTest, WhatLaunchesReadIsKnown) {
  shape.grid = {2, 1, 1};
  shape.block = {64, 1, 1};
  unsigned module = cantFail(gpu->loadModule(kernel(R"(
  .shared .align 16 .b8 there[16];
  mov.u32 %r1, %ctaid.x;
  mad.lo.u32 %r1, %r1, 128, %t;
  mul.wide.u32 %rd1, %r1, 4;
  add.u64 %rd1, %out, %rd1;
  ld.global.u32 %r2, [%rd1];
  setp.eq.u32 %p1, %r1, 5;
  @%p1 ld.global.u8 %r3, [%rd1+1202];
  mov.u32 %r4, there;
  @%p1 cp.async.ca.shared.global [%r4], [%rd1+1212], 16;
  cp.async.wait_all;
  exit;)")));
  const uint64_t bytes = 4 * 512;
  uint64_t in = cantFail(gpu->allocate(bytes));
  cantFail(gpu->fill(in, 0, 4, 512));
  uint8_t params[8];
  std::memcpy(params, &in, 8);
  using Runs = std::vector<std::pair<uint64_t, uint64_t>>;
  auto readNow = [&] {
    Runs runs;
    cantFail(gpu->forRead(in, bytes, [&](uint64_t at, uint64_t length) {
      runs.push_back({at - in, length});
    }));
    return runs;
  };
  auto run = [&] {
    EXPECT_TRUE(
        cantFail(gpu->launch(module, "k", shape, params, options)).completed);
  };
  run();
  Runs all = {{0, 256}, {512, 256}, {1220, 4}, {1232, 16}};
  EXPECT_EQ(readNow(), all);
  // Reads of several launches add up, until they are forgotten.
  shape.grid = {1, 1, 1};
  run();
  EXPECT_EQ(readNow(), all);
  gpu->forgetReads();
  run();
  EXPECT_EQ(readNow(), (Runs{all[0], all[2], all[3]}));
  // Of read-only memory nothing is known.
  cantFail(gpu->setConst(in, true));
  gpu->forgetReads();
  run();
  EXPECT_EQ(readNow(), Runs());
  for (unsigned i = 0; i < 15; ++i)
    run();
  EXPECT_EQ(toString(gpu->forRead(in, bytes, [](uint64_t, uint64_t) {})),
            "too many launches to know what they read");
  EXPECT_EQ(toString(gpu->forRead(in, bytes + 1, [](uint64_t, uint64_t) {}))
                .find("no allocation of 2049 bytes"),
            0u);
}

/// Each block tells when it ran.
TEST_F(VirtualGpuTest, OrderOfBlocks) {
  shape.grid = {5, 1, 1};
  shape.block = {1, 1, 1};
  options.hostThreads = 1;
  using Words = std::vector<uint32_t>;
  auto order = [&](BlockOrder wanted) {
    options.order = wanted;
    std::fill(words.begin(), words.end(), 0);
    runClean(kernel(R"(
  atom.global.add.u32 %r1, [%out], 1;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd1, %r2, 4;
  add.u64 %rd1, %out, %rd1;
  st.global.u32 [%rd1+4], %r1;
  exit;)"));
    return Words(words.begin() + 1, words.begin() + 6);
  };
  EXPECT_EQ(order(BlockOrder::OfSchedule), (Words{0, 1, 2, 3, 4}));
  EXPECT_EQ(order(BlockOrder::Descending), (Words{4, 3, 2, 1, 0}));
  Words random = order(BlockOrder::Random);
  EXPECT_NE(random, (Words{0, 1, 2, 3, 4}));
  std::sort(random.begin(), random.end());
  EXPECT_EQ(random, (Words{0, 1, 2, 3, 4}));
}

TEST_F(VirtualGpuTest, SharedMemoryIsOfTheKernel) {
  shape.sharedBytes = 256;
  std::string before = ".extern .shared .align 16 .b8 dynamic[];\n"
                       ".shared .align 4 .b8 other[200000];\n"
                       ".shared .align 4 .u32 fixed[3];\n";
  runClean(kernel(R"(
    .shared .align 4 .u32 inner;
    mov.u32 %r1, dynamic;
    mov.u32 %r2, fixed;
    mov.u32 %r3, inner;
    mov.u32 %r4, %total_smem_size;
    add.u32 %r5, %r2, %r3;
    mad.lo.u32 %r6, %r1, 1000, %r5;
    mad.lo.u32 %r6, %r4, 100000, %r6;
  )" + store("%r6") + "exit;",
                  before));
  // `other` is not used. 16 bytes are static: 4, and 12 behind.
  EXPECT_EQ(words[0], 272u * 100000 + 16 * 1000 + 4);
  shape.sharedBytes = 240 << 10;
  EXPECT_EQ(launchError(), "launch of k: 245760 bytes of shared memory, of "
                           "232448");
}

TEST_F(VirtualGpuTest, LimitsOfLaunches) {
  shape.block = {1025, 1, 1};
  EXPECT_EQ(launchError(),
            "launch of k: got a block of 1025x1x1 threads, wanted at least "
            "1x1x1 and at most 1024x1024x64, 1024 in all");
  shape.block = {32, 32, 2};
  EXPECT_EQ(launchError(), "launch of k: got a block of 32x32x2 threads, 2048 "
                           "in all, wanted at most 1024 in all");
  shape.block = {32, 1, 1};
  shape.grid = {1, 70000, 1};
  EXPECT_EQ(launchError(),
            "launch of k: got a grid of 1x70000x1 blocks, wanted at least "
            "1x1x1 and at most 2147483647x65535x65535");
  shape.grid = {0, 1, 1};
  EXPECT_EQ(launchError(), "launch of k: got a grid of 0x1x1 blocks, wanted at "
                           "least 1x1x1 and at most 2147483647x65535x65535");
  shape.grid = {1, 1, 1};
  EXPECT_EQ(
      launchError("foo.u32 %r1, %r2;\nexit;"),
      "PTX line 14: `foo.u32 %r1, %r2;`: instruction foo is not supported");
}

TEST_F(VirtualGpuTest, Counts) {
  shape.block = {64, 1, 1};
  shape.grid = {3, 1, 1};
  options.checkRaces = false;
  LaunchResult result = runClean(kernel(R"(
    mov.f32 %f1, 0f3f800000;
    fma.rn.f32 %f2, %f1, %f1, %f1;
    ex2.approx.ftz.f32 %f3, %f2;
    setp.lt.u32 %p1, %t, 16;
    @%p1 bra LOW;
    add.f32 %f3, %f3, %f2;
  LOW:
    mul.wide.u32 %rd1, %t, 4;
    add.u64 %rd2, %rd1, %out;
    st.global.f32 [%rd2], %f3;
    bar.sync 0;
    exit;
  )"));
  const Counters &counters = result.counters;
  EXPECT_EQ(counters.warpInstructions, 6u * 13);
  EXPECT_EQ(counters.laneInstructions, 3u * (64 * 13 - 16));
  EXPECT_EQ(counters.flops32, 3u * (64 * 2 + 64 + 48));
  EXPECT_EQ(counters.special, 6u);
  EXPECT_EQ(counters.barrier, 6u);
  EXPECT_EQ(counters.memory, 6u * 2);
  EXPECT_EQ(counters.branches, 6u);
  EXPECT_EQ(counters.divergentBranches, 3u);
  EXPECT_EQ(counters.globalStoreBytes, 3u * 64 * 4);
  EXPECT_EQ(result.fidelity.approximate,
            (std::map<std::string, uint64_t>{{"ex2.approx.ftz.f32", 6}}));
  EXPECT_FALSE(result.fidelity.approximateSteers);
}

TEST_F(VirtualGpuTest, ApproximateValuesThatSteer) {
  LaunchResult result = runClean(kernel(R"(
    mov.f32 %f1, 0f3f800000;
    ex2.approx.ftz.f32 %f2, %f1;
    mul.f32 %f3, %f2, %f2;
    setp.lt.f32 %p1, %f3, 0f40000000;
    @%p1 bra END;
    add.u32 %r1, %t, 1;
  END:
    exit;
  )"));
  EXPECT_TRUE(result.fidelity.approximateSteers);
  EXPECT_FALSE(result.proof.holds);
  EXPECT_TRUE(llvm::StringRef(result.proof.broken)
                  .starts_with("an approximate value, which a GPU may have "
                               "otherwise, reached"));
}

TEST_F(VirtualGpuTest, SizesThatNobodyHas) {
  EXPECT_EQ(launchError(".local .b8 x[1000000];\nexit;"),
            "PTX line 5: `.visible .entry k(.param .u64 p) {`: variable x of "
            "1000000 bytes is larger than can be had");
  EXPECT_EQ(launchError("exit;", ".global .b8 x[2000000000];"),
            "variable x: the module has more than 1073741824 bytes of "
            "variables");
  // Each register is read at the end: all live at once.
  std::string body = ".reg .b32 %v<20000>;\n", end;
  for (unsigned i = 0; i < 20000; ++i) {
    std::string name = "%v" + std::to_string(i);
    body += "add.u32 " + name + ", %t, " + std::to_string(i) + ";\n";
    end += "add.u32 %t, %t, " + name + ";\n";
  }
  std::string error = launchError(body + end + "exit;");
  EXPECT_TRUE(llvm::StringRef(error).ends_with(
      "more than 16384 registers live at once"))
      << error;
}

class UninitializedTest : public VirtualGpuTest {};

TEST_F(UninitializedTest, ARegisterThatNothingWrote) {
  Finding finding =
      runFaulty(kernel("add.u32 %r2, %r1, 1;\n" + store("%r2") + "exit;"),
                FindingKind::Uninitialized);
  EXPECT_EQ(finding.message, "%r1 is used, and nothing wrote it");
  EXPECT_EQ(finding.ptxLine, 14u);
}

TEST_F(UninitializedTest, OnOneWayOnly) {
  std::string ptx = kernel(R"(
    setp.lt.u32 %p1, %t, 20;
    @%p1 bra SKIP;
    mov.u32 %r1, 5;
  SKIP:
    mov.u32 %r3, %r1;
    add.u32 %r2, %r3, 1;
  )" + store("%r2") + "exit;");
  Finding finding = runFaulty(ptx, FindingKind::Uninitialized);
  EXPECT_EQ(finding.message, "%r3 is used, and nothing wrote it");
  EXPECT_EQ(finding.thread[0], 0u);
  shape.block = {1, 1, 1};
  // Written where it is read.
  runClean(kernel(R"(
    setp.lt.u32 %p1, %t, 20;
    @!%p1 bra SKIP;
    mov.u32 %r1, 5;
  SKIP:
    mov.u32 %r3, %r1;
    add.u32 %r2, %r3, 1;
  )" + store("%r2") +
                  "exit;"));
}

TEST_F(UninitializedTest, CopiesAreNoUse) {
  runClean(kernel(R"(
    mov.u32 %r2, %r1;
    setp.lt.u32 %p1, %t, 64;
    selp.b32 %r3, %t, %r2, %p1;
  )" + store("%t") +
                  "exit;"));
  EXPECT_EQ(runFaulty(kernel("mov.u32 %r2, %r1;\n" + store("%r2") + "exit;"),
                      FindingKind::Uninitialized)
                .message,
            "%r2 is used, and nothing wrote it");
}

TEST_F(UninitializedTest, ShufflesCopyFromLaneToLane) {
  // Only lane 0 has a value, and all take that.
  auto body = [](llvm::StringRef from) {
    return ("setp.ne.u32 %p1, %t, 0;\n@%p1 bra SKIP;\nmov.u32 %r1, 7;\n"
            "SKIP:\nshfl.sync.idx.b32 %r2, %r1, " +
            from + ", 31, -1;\n" + store("%r2") + "exit;")
        .str();
  };
  runClean(kernel(body("0")));
  EXPECT_EQ(words[31], 7u);
  EXPECT_EQ(runFaulty(kernel(body("1")), FindingKind::Uninitialized).message,
            "%r2 is used, and nothing wrote it");
  EXPECT_EQ(runFaulty(kernel("shfl.sync.idx.b32 %r2, %t, %r1, 31, -1;\nexit;"),
                      FindingKind::Uninitialized)
                .message,
            "%r1 is used, and nothing wrote it");
}

TEST_F(UninitializedTest, Predicates) {
  EXPECT_EQ(runFaulty(kernel("@%p3 bra END;\nEND:\nexit;"),
                      FindingKind::Uninitialized)
                .message,
            "%p3 decides what is done, and nothing wrote it");
}

/// What is said of `body` under each schedule: of the only finding, or "".
class CopiedUninitializedTest : public UninitializedTest {
protected:
  std::string say(const std::string &body) {
    std::string said;
    for (Schedule schedule :
         {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
      options.schedule = schedule;
      LaunchResult result = run(
          kernel(body + "exit;", ".func (.param .b32 r) same(.param .b32 a) {\n"
                                 ".reg .b32 %q;\nld.param.b32 %q, [a];\n"
                                 "st.param.b32 [r], %q;\nret;\n}\n"
                                 ".shared .align 16 .b8 sm[512];"));
      std::string now;
      for (const Finding &finding : result.findings)
        now += finding.kind == FindingKind::Uninitialized ? finding.message
                                                          : finding.text();
      EXPECT_TRUE(schedule == Schedule::Lockstep || now == said) << now;
      said = now;
    }
    return said;
  }
};

TEST_F(CopiedUninitializedTest, Selections) {
  std::string select = "setp.lt.u32 %p1, %t, 40;\n";
  std::string use = "add.u32 %r3, %r3, 1;\n" + store("%r3");
  EXPECT_EQ(say(select + "selp.b32 %r3, 7, %r9, %p1;\n" + use), "");
  EXPECT_EQ(say(select + "selp.b32 %r3, %r9, 7, %p1;\n" + use),
            "%r3 is used, and nothing wrote it");
  EXPECT_EQ(say("selp.b32 %r3, 7, 8, %p8;\n" + store("%r3")),
            "%p8 is used, and nothing wrote it");
  EXPECT_EQ(say("selp.f32 %f3, 0f3f800000, %f9, %p8;\n" + store("%t")),
            "%p8 is used, and nothing wrote it");
}

TEST_F(CopiedUninitializedTest, ThroughMemory) {
  std::string at = "mov.u32 %r1, sm;\nmad.lo.u32 %r1, %t, 8, %r1;\n";
  std::string nothing = "which nothing wrote";
  auto isFound = [&](const std::string &body) {
    std::string said = say(body);
    return said.find(nothing) != std::string::npos;
  };
  std::string use = "add.u32 %r3, %r3, 1;\n" + store("%r3");
  EXPECT_TRUE(isFound(
      at + "st.shared.u32 [%r1], %r9;\nld.shared.u32 %r3, [%r1];\n" + use));
  EXPECT_TRUE(isFound("{\n.param .b32 x;\n.param .b32 y;\n"
                      "st.param.b32 [x], %r9;\ncall (y), same, (x);\n"
                      "ld.param.b32 %r3, [y];\n}\n" +
                      use));
  // Written over.
  EXPECT_EQ(say(at +
                "st.shared.u32 [%r1], %r9;\nst.shared.u32 [%r1], %t;\n"
                "ld.shared.u32 %r3, [%r1];\n" +
                use),
            "");
}

TEST_F(CopiedUninitializedTest, TheCarryFlag) {
  EXPECT_EQ(say("addc.u32 %r3, %t, 0;\n" + store("%r3")),
            "the carry flag is used, and nothing wrote it");
  EXPECT_EQ(
      say("add.cc.u32 %r3, %t, 1;\naddc.u32 %r3, %t, 0;\n" + store("%r3")), "");
}

TEST_F(VirtualGpuTest, SharedMemoryOfTheSystem) {
  // 1 KiB, behind the kernel's own.
  auto body = [](const char *offset) {
    return kernel("mov.u32 %r1, %reserved_smem_offset_1;\n"
                  "mov.u32 %r3, sm;\nst.shared.u32 [%r3+96], %t;\n"
                  "setp.ne.u32 %p1, %t, 0;\n@%p1 bra END;\n"
                  "st.shared.u32 [%r1+" +
                      std::string(offset) + "], 5;\nld.shared.u32 %r2, [%r1+" +
                      offset + "];\n" + store("%r2") + "END:\nexit;",
                  ".shared .align 4 .b8 sm[100];");
  };
  shape.block = {1, 1, 1};
  for (Schedule schedule :
       {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
    options.schedule = schedule;
    for (const char *offset : {"0", "1020"}) {
      words[0] = 0;
      runClean(body(offset));
      EXPECT_EQ(words[0], 5u);
    }
    LaunchResult result = run(body("1024"));
    ASSERT_FALSE(result.findings.empty());
    EXPECT_EQ(result.findings[0].kind, FindingKind::OutOfBounds);
  }
}

TEST_F(VirtualGpuTest, RegistersShareSlots) {
  // A chain of 20,000 registers, of which two live at a time: with a slot each
  // a block of 32 warps would take five gigabytes.
  std::string body = "mov.u32 %v0, %t;\n";
  for (unsigned i = 1; i < 20000; ++i)
    body += "add.u32 %v" + std::to_string(i) + ", %v" + std::to_string(i - 1) +
            ", 1;\n";
  shape.block = {1024, 1, 1};
  words.assign(1024, 0);
  runClean(
      kernel(".reg .b32 %v<20000>;\n" + body + store("%v19999") + "exit;"));
  EXPECT_EQ(words[1000], 1000u + 19999);
}

} // namespace
} // namespace fsr::ptx
