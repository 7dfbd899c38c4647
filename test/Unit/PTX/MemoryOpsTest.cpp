// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads and stores: what they move, what they find, what they count.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

using namespace fsr::ptx;

namespace {

/// `%rd1`: the word of the thread.
const char *own = "mul.wide.u32 %rd1, %t, 4;\nadd.u64 %rd1, %rd1, %out;\n";

class MemoryOpsTest : public KernelTest {
protected:
  std::string unsupported(llvm::StringRef instruction) {
    llvm::Expected<LaunchResult> result =
        tryRun(kernel(".reg .b16 %h<4>;\n" + instruction.str() + "\nret;"));
    if (result)
      return "";
    return toString(result.takeError());
  }
};

TEST_F(MemoryOpsTest, NarrowLoadsExtend) {
  words[0] = 0x80f1e2d3;
  struct {
    const char *load;
    uint32_t value;
  } cases[] = {
      {"ld.global.u8 %r1, [%out+2];", 0xf1},
      {"ld.global.s8 %r1, [%out+2];", 0xfffffff1},
      {"ld.global.b8 %r1, [%out+3];", 0x80},
      {"ld.global.u16 %r1, [%out+2];", 0x80f1},
      {"ld.global.s16 %r1, [%out+2];", 0xffff80f1},
      {"ld.u32 %r1, [%out];", 0x80f1e2d3},
      {"ld.global.s8 %h1, [%out]; cvt.u32.u16 %r1, %h1;", 0xffd3},
      {"ld.global.s32 %rd2, [%out]; shr.u64 %rd2, %rd2, 32; "
       "cvt.u32.u64 %r1, %rd2;",
       0xffffffff},
      {"ld.global.u32 %rd2, [%out]; shr.u64 %rd2, %rd2, 32; "
       "cvt.u32.u64 %r1, %rd2;",
       0},
  };
  for (const auto &one : cases) {
    runClean(kernel(".reg .b16 %h<4>;\n" + std::string(own) + one.load +
                    "\nadd.u64 %rd1, %rd1, 32;\nst.global.u32 [%rd1], %r1;\n"
                    "ret;"));
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(words[8 + lane], one.value) << one.load;
  }
}

TEST_F(MemoryOpsTest, NarrowStoresKeepTheRest) {
  words.assign(64, 0x11111111);
  runClean(kernel(".reg .b16 %h<4>;\n" + std::string(own) +
                  "mov.u32 %r1, 0x22334455;\nst.global.u8 [%rd1+1], %r1;\n"
                  "cvt.u16.u32 %h1, %r1;\nst.global.b16 [%rd1+2], %h1;\nret;"));
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(words[lane], 0x44555511u);
}

TEST_F(MemoryOpsTest, Vectors) {
  words.resize(32 * 16);
  for (unsigned i = 0; i < 256; ++i)
    words[i] = i;
  // Two v4 loads, added element by element, stored as v4, v2 and v2.b64.
  runClean(kernel("mul.wide.u32 %rd1, %t, 32;\nadd.u64 %rd1, %rd1, %out;\n"
                  "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];\n"
                  "ld.global.v2.b64 {%rd4,%rd5}, [%rd1+16];\n"
                  "st.global.v2.b64 [%rd1+1024], {%rd4,%rd5};\n"
                  "st.global.v2.u32 [%rd1+1040], {%r4,%r3};\n"
                  "st.global.v2.u32 [%rd1+1048], {%r2,%r1};\nret;"));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const uint32_t *got = &words[256 + lane * 8];
    for (unsigned i = 0; i < 4; ++i) {
      EXPECT_EQ(got[i], lane * 8 + 4 + i);
      EXPECT_EQ(got[4 + i], lane * 8 + 3 - i);
    }
  }
}

TEST_F(MemoryOpsTest, EightWideAndSinks) {
  words.resize(32 * 16);
  for (unsigned i = 0; i < 256; ++i)
    words[i] = i * 3;
  runClean(kernel(
      "mul.wide.u32 %rd1, %t, 32;\nadd.u64 %rd1, %rd1, %out;\n"
      "ld.global.v8.b32 {%r1,%r2,_,%r4,%r5,%r6,%r7,%r8}, [%rd1];\n"
      "st.global.v8.b32 [%rd1+1024], {%r8,%r7,%r6,%r5,%r4,%r1,%r2,%r1};\n"
      "ret;"));
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned order[8] = {7, 6, 5, 4, 3, 0, 1, 0};
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_EQ(words[256 + lane * 8 + i], (lane * 8 + order[i]) * 3);
  }
}

TEST_F(MemoryOpsTest, Pairs) {
  words.resize(32 * 8);
  for (unsigned i = 0; i < 128; ++i)
    words[i] = i + 5;
  runClean(kernel(".reg .b128 %q<2>;\nmul.wide.u32 %rd1, %t, 16;\n"
                  "add.u64 %rd1, %rd1, %out;\nld.global.b128 %q1, [%rd1];\n"
                  "st.global.b128 [%rd1+512], %q1;\nret;"));
  for (unsigned i = 0; i < 128; ++i)
    EXPECT_EQ(words[128 + i], i + 5);
}

TEST_F(MemoryOpsTest, PatternsOfLanes) {
  // Reversed, gathered, broadcast, and by a part of the warp.
  words.resize(256);
  for (unsigned i = 0; i < 32; ++i)
    words[i] = 100 + i;
  runClean(
      kernel(std::string(own) +
             "sub.u32 %r1, 31, %t;\nmul.wide.u32 %rd2, %r1, 4;\n"
             "add.u64 %rd2, %rd2, %out;\nld.global.u32 %r2, [%rd2];\n"
             "st.global.u32 [%rd1+128], %r2;\n"
             "ld.global.u32 %r3, [%out+12];\nst.global.u32 [%rd1+256], %r3;\n"
             "setp.gt.u32 %p1, %t, 4;\nsetp.gt.u32 %p2, %t, 20;\n"
             "@%p2 bra done;\n@!%p1 bra done;\n"
             "ld.global.u32 %r4, [%rd1];\nst.global.u32 [%rd2+384], %r4;\n"
             "done: ret;"));
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(words[32 + lane], 131 - lane);
    EXPECT_EQ(words[64 + lane], 103u);
    EXPECT_EQ(words[96 + lane], lane > 10 && lane < 27 ? 131 - lane : 0u);
  }
}

TEST_F(MemoryOpsTest, SharedLocalAndGeneric) {
  runClean(kernel(
      ".local .align 8 .b8 lo[16];\n" + std::string(own) +
          "cvta.shared.u64 %rd3, sm;\nmul.wide.u32 %rd4, %t, 8;\n"
          "add.u64 %rd3, %rd3, %rd4;\nst.u32 [%rd3], %t;\n"
          "mov.u32 %r5, sm;\ncvt.u32.u64 %r6, %rd4;\nadd.u32 %r5, %r5, %r6;\n"
          "ld.shared.u32 %r1, [%r5];\n"
          "mov.u64 %rd5, lo;\ncvta.local.u64 %rd6, %rd5;\n"
          "st.local.u32 [%rd5+4], %r1;\nld.u32 %r2, [%rd6+4];\n"
          "add.u32 %r2, %r2, 1;\nst.u32 [%rd1], %r2;\nret;",
      ".shared .align 8 .b8 sm[256];"));
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(words[lane], lane + 1);
}

TEST_F(MemoryOpsTest, Misaligned) {
  Finding finding = runFaulty(
      kernel("ld.global.u32 %r1, [%out+2];\nst.global.u32 [%out], %r1;\nret;"),
      FindingKind::Misaligned);
  EXPECT_NE(finding.message.find("not a multiple of 4"), std::string::npos);
  // A vector wants its own alignment.
  finding = runFaulty(kernel("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+8];\n"
                             "st.global.u32 [%out], %r1;\nret;"),
                      FindingKind::Misaligned);
  EXPECT_NE(finding.message.find("not a multiple of 16"), std::string::npos);
}

TEST_F(MemoryOpsTest, OutOfBounds) {
  words.resize(31);
  Finding finding =
      runFaulty(kernel(std::string(own) + "ld.global.u32 %r1, [%rd1];\nret;"),
                FindingKind::OutOfBounds);
  EXPECT_EQ(finding.thread[0], 31u);
  EXPECT_NE(finding.message.find("reads 4 bytes at the end of an allocation of "
                                 "124 bytes"),
            std::string::npos)
      << finding.message;
  finding = runFaulty(kernel("mov.u64 %rd1, 0;\nst.global.u32 [%rd1], %t;\n"
                             "ret;"),
                      FindingKind::OutOfBounds);
  EXPECT_NE(finding.message.find("writes 4 bytes at null"), std::string::npos)
      << finding.message;
  // The last piece of a vector.
  words.resize(6);
  finding = runFaulty(kernel("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%out+16];\n"
                             "ret;"),
                      FindingKind::OutOfBounds);
  EXPECT_NE(finding.message.find("8 of them past the end"), std::string::npos)
      << finding.message;
}

TEST_F(MemoryOpsTest, OutOfBoundsOfOtherSpaces) {
  std::string shared = ".shared .align 4 .b8 sm[64];";
  Finding finding = runFaulty(
      kernel("mov.u32 %r1, sm;\nst.shared.u32 [%r1+64], %t;\nret;", shared),
      FindingKind::OutOfBounds);
  EXPECT_NE(finding.message.find("shared memory of 64 bytes"),
            std::string::npos)
      << finding.message;
  // A shared address is not a global one.
  finding = runFaulty(kernel("cvta.shared.u64 %rd1, sm;\n"
                             "ld.global.u32 %r1, [%rd1];\nret;",
                             shared),
                      FindingKind::OutOfBounds);
  EXPECT_NE(finding.message.find("not global memory"), std::string::npos)
      << finding.message;
  finding = runFaulty(kernel(".local .align 4 .b8 lo[16];\nmov.u64 %rd1, lo;\n"
                             "ld.local.u32 %r1, [%rd1+4096];\nret;"),
                      FindingKind::OutOfBounds);
  EXPECT_NE(finding.message.find("local memory"), std::string::npos);
}

TEST_F(MemoryOpsTest, ReadOnly) {
  Finding finding =
      runFaulty(kernel("mov.u64 %rd1, table;\nst.u32 [%rd1], %t;\nret;",
                       ".const .align 4 .u32 table[2] = {1, 2};"),
                FindingKind::WriteToConst);
  EXPECT_NE(finding.message.find("read-only"), std::string::npos);
  runClean(kernel(std::string(own) + "ld.const.u32 %r1, [table+4];\n"
                                     "st.global.u32 [%rd1], %r1;\nret;",
                  ".const .align 4 .u32 table[2] = {1, 2};"));
  EXPECT_EQ(words[31], 2u);
}

TEST_F(MemoryOpsTest, Uninitialized) {
  std::string shared = ".shared .align 16 .b8 sm[256];";
  Finding finding =
      runFaulty(kernel("mov.u32 %r1, sm;\nld.shared.u32 %r2, [%r1+8];\n"
                       "add.u32 %r2, %r2, 1;\nst.global.u32 [%out], %r2;\nret;",
                       shared),
                FindingKind::Uninitialized);
  EXPECT_EQ(finding.count, 32u);
  EXPECT_NE(finding.message.find("which nothing wrote"), std::string::npos);
}

TEST_F(MemoryOpsTest, PaddingMayBeCopied) {
  std::string shared = ".shared .align 16 .b8 sm[1024];";
  std::string copy =
      "mul.lo.u32 %r1, %t, 16;\nmov.u32 %r2, sm;\nadd.u32 %r1, %r1, %r2;\n"
      "st.shared.u8 [%r1], %t;\nst.shared.u32 [%r1+4], %t;\n"
      "ld.shared.v2.u32 {%r3,%r4}, [%r1];\n"
      "st.shared.v2.u32 [%r1+8], {%r3,%r4};\n";
  runClean(kernel(copy +
                      "ld.shared.u8 %r5, [%r1+8];\n"
                      "ld.shared.u32 %r6, [%r1+12];\n"
                      "add.u32 %r6, %r6, %r5;\n" +
                      store("%r6") + "ret;",
                  shared));
  EXPECT_EQ(words[9], 18u);
  // The copied padding is as unwritten as it was.
  Finding finding = runFaulty(
      kernel(copy + "ld.shared.u8 %r5, [%r1+9];\nadd.u32 %r5, %r5, 1;\n" +
                 store("%r5") + "ret;",
             shared),
      FindingKind::Uninitialized);
  EXPECT_NE(finding.ptxText.find("%r1+9"), std::string::npos);
}

TEST_F(MemoryOpsTest, Taint) {
  // An address from memory steers: no proof. The same from the thread's
  // number holds.
  LaunchResult result = runClean(
      kernel(std::string(own) +
             "ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1], %r1;\nret;"));
  EXPECT_TRUE(result.proof.holds) << result.proof.broken;
  gpu = makeVirtualGpu(VirtualGpuOptions());
  llvm::Expected<unsigned> module = gpu->loadModule(
      kernel("ld.global.u32 %r1, [%out];\nmul.wide.u32 %rd1, %r1, 4;\n"
             "add.u64 %rd1, %rd1, %out;\nld.global.u32 %r2, [%rd1];\n"
             "st.shared.u32 [sm], %r2;\nret;",
             ".shared .align 4 .b8 sm[4];"));
  ASSERT_TRUE(bool(module));
  uint64_t buffer = cantFail(gpu->allocate(64));
  cantFail(gpu->fill(buffer, 0, 4, 16));
  for (bool isTainted : {true, false}) {
    cantFail(gpu->setTainted(buffer, 64, isTainted));
    uint8_t params[8];
    std::memcpy(params, &buffer, 8);
    shape.block = {1, 1, 1};
    llvm::Expected<LaunchResult> launched =
        gpu->launch(*module, "k", shape, params, options);
    ASSERT_TRUE(bool(launched));
    EXPECT_EQ(launched->proof.holds, !isTainted) << launched->proof.broken;
  }
}

TEST_F(MemoryOpsTest, CountsSectorsAndBanks) {
  words.resize(32 * 32);
  LaunchResult result =
      runClean(kernel(std::string(own) + "ld.global.u32 %r1, [%rd1];\n"
                                         "mul.wide.u32 %rd2, %t, 128;\n"
                                         "add.u64 %rd2, %rd2, %out;\n"
                                         "ld.global.u32 %r2, [%rd2];\nret;"));
  EXPECT_EQ(result.counters.globalRequests, 2u);
  EXPECT_EQ(result.counters.globalSectors, 4u + 32u);
  // The first sector of each is the same.
  EXPECT_EQ(result.counters.uniqueSectors, 4u + 31u);
  EXPECT_EQ(result.counters.globalLoadBytes, 256u);

  std::string shared = ".shared .align 16 .b8 sm[4096];";
  struct {
    unsigned stride, cycles;
    const char *type, *values;
  } cases[] = {
      {4, 1, "u32", "%r5"},          {8, 2, "u32", "%r5"},
      {128, 32, "u32", "%r5"},       {0, 1, "u32", "%r5"},
      {8, 2, "v2.u32", "{%r5,%r6}"}, {16, 4, "v4.u32", "{%r5,%r6,%r7,%r8}"},
  };
  for (const auto &one : cases) {
    LaunchResult counted = runClean(kernel(
        "mov.u32 %r5, 1;\nmov.u32 %r6, 1;\nmov.u32 %r7, 1;\nmov.u32 %r8, 1;\n"
        "mul.lo.u32 %r1, %t, " +
            std::to_string(one.stride) +
            ";\nmov.u32 %r2, sm;\nadd.u32 %r1, %r1, %r2;\nst.shared." +
            one.type + " [%r1], " + one.values + ";\nret;",
        shared));
    EXPECT_EQ(counted.counters.sharedRequests, 1u);
    EXPECT_EQ(counted.counters.bankCycles, one.cycles)
        << one.stride << " " << one.type;
  }
}

TEST_F(MemoryOpsTest, HintsAreTaken) {
  runClean(kernel(
      std::string(own) +
      "createpolicy.fractional.L2::evict_last.b64 %rd5, 1.0;\n"
      "ld.global.ca.u32 %r1, [%rd1];\nld.global.cs.u32 %r1, [%rd1];\n"
      "ld.global.nc.L1::no_allocate.L2::128B.u32 %r1, [%rd1];\n"
      "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd5;\n"
      "ldu.global.u32 %r1, [%rd1];\nld.volatile.global.u32 %r1, [%rd1];\n"
      "ld.relaxed.sys.global.u32 %r1, [%rd1];\n"
      "ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];\n"
      "st.global.wt.u32 [%rd1], %r1;\n"
      "st.global.L1::evict_last.u32 [%rd1], %r1;\n"
      "st.release.gpu.global.u32 [%rd1], %r1;\n"
      "prefetch.global.L2 [%rd1];\n"
      "applypriority.global.L2::evict_normal [%out], 128;\nret;"));
}

TEST_F(MemoryOpsTest, UnknownFormsAreNot) {
  for (const char *one :
       {"ld.global.L3::far.u32 %r1, [%out];",
        "ld.global.v4.u64 "
        "{%rd1,%rd2,%rd3}, [%out];",
        "st.const.u32 [%out], %r1;", "ld.acq_rel.gpu.u32 %r1, [%out];",
        "ld.shared.nc.u32 %r1, [%r2];", "st.global.u64 [%out], %r1;",
        "ld.global.u64 %r1, [%out];", "atom.global.mul.u32 %r1, [%out], %r2;",
        "atom.global.add.f16 %h1, [%out], %h2;",
        "cp.async.cg.shared.global [%r1], [%out], 8;"})
    EXPECT_NE(unsupported(one), "") << one;
}

TEST_F(MemoryOpsTest, Spaces) {
  runClean(kernel("isspacep.global %p1, %out;\n"
                  "isspacep.shared %p2, %out;\n"
                  "cvta.shared.u64 %rd1, sm;\nisspacep.shared %p3, %rd1;\n"
                  "isspacep.local %p4, %rd1;\n"
                  "cvta.to.shared.u64 %rd2, %rd1;\ncvt.u32.u64 %r1, %rd2;\n"
                  "mov.u32 %r2, sm;\nsub.u32 %r1, %r1, %r2;\n"
                  "@%p1 add.u32 %r1, %r1, 1;\n@%p2 add.u32 %r1, %r1, 2;\n"
                  "@%p3 add.u32 %r1, %r1, 4;\n@%p4 add.u32 %r1, %r1, 8;\n" +
                      store("%r1") + "ret;",
                  ".shared .align 4 .b8 sm[16];"));
  EXPECT_EQ(words[0], 5u);
}

TEST_F(MemoryOpsTest, ClustersOfOneBlock) {
  std::string shared = ".shared .align 4 .b8 sm[16];";
  std::string map = "setp.ne.u32 %p1, %t, 0;\n@%p1 bra done;\n"
                    "mov.u32 %r1, sm;\nadd.u32 %r1, %r1, 8;\n"
                    "mov.u32 %r2, 0;\nst.shared.u32 [%r1], 77;\n"
                    "mapa.shared::cluster.u32 %r3, %r1, %r2;\n"
                    "ld.shared::cluster.u32 %r4, [%r3];\n"
                    "getctarank.shared::cluster.u32 %r5, %r3;\n"
                    "add.u32 %r4, %r4, %r5;\nst.global.u32 [%out], %r4;\n"
                    "done: ret;";
  runClean(kernel(map, shared));
  EXPECT_EQ(words[0], 77u);
  Finding finding =
      runFaulty(kernel("mov.u32 %r1, sm;\nmov.u32 %r2, 1;\n"
                       "mapa.shared::cluster.u32 %r3, %r1, %r2;\nret;",
                       shared),
                FindingKind::OutOfBounds);
  EXPECT_NE(finding.message.find("block 1 of a cluster"), std::string::npos);
}

TEST_F(MemoryOpsTest, DiscardForgets) {
  words.resize(64);
  runFaulty(kernel("setp.ne.u32 %p1, %t, 0;\n@%p1 bra done;\n"
                   "discard.global.L2 [%out], 128;\n"
                   "ld.global.u32 %r1, [%out+4];\nadd.u32 %r1, %r1, 1;\n"
                   "st.global.u32 [%out], %r1;\ndone: ret;"),
            FindingKind::Uninitialized);
}

TEST_F(MemoryOpsTest, ManyLaunchesLeaveNothing) {
  std::string ptx = kernel(std::string(own) +
                           "ld.global.u32 %r1, [%rd1];\n"
                           "add.u32 %r1, %r1, 1;\nst.global.u32 [%rd1], %r1;\n"
                           "ret;");
  llvm::Expected<unsigned> module = gpu->loadModule(ptx);
  ASSERT_TRUE(bool(module));
  uint64_t free = gpu->freeBytes();
  uint64_t buffer = cantFail(gpu->allocate(128));
  cantFail(gpu->fill(buffer, 0, 4, 32));
  uint8_t params[8];
  std::memcpy(params, &buffer, 8);
  // More than a cell can number.
  for (int i = 0; i < 200; ++i) {
    llvm::Expected<LaunchResult> result =
        gpu->launch(*module, "k", shape, params, options);
    ASSERT_TRUE(bool(result));
    ASSERT_TRUE(result->findings.empty()) << result->findings[0].text();
    ASSERT_EQ(result->counters.uniqueSectors, 4u);
  }
  uint32_t value = 0;
  cantFail(gpu->read(&value, buffer + 124, 4));
  EXPECT_EQ(value, 200u);
  cantFail(gpu->release(buffer));
  EXPECT_EQ(gpu->freeBytes(), free);
}

} // namespace
