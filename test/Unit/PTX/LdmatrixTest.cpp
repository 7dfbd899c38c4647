// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// ldmatrix, stmatrix and movmatrix: which element goes where, and what is
// found wrong on the way.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

namespace fsr::ptx {
namespace {

class LdmatrixTest : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    words.assign(32 * 4, 0);
  }

  static constexpr const char *declaration =
      ".shared .align 16 .b8 tile[640];\n";
  /// Element `i` of the tile, of 16 bits, is `i`; thread t writes 8 of them.
  /// %r30 is the thread's row, of 16 bytes, at a stride of 20 words for 4 rows.
  static std::string fill() {
    return "mul.lo.u32 %r1, %t, 524296;\nadd.u32 %r1, %r1, 65536;\n"
           "add.u32 %r2, %r1, 131074;\nadd.u32 %r3, %r2, 131074;\n"
           "add.u32 %r4, %r3, 131074;\nshl.b32 %r5, %t, 4;\n"
           "mov.u32 %r6, tile;\nadd.u32 %r30, %r5, %r6;\n"
           "st.shared.v4.b32 [%r30], {%r1, %r2, %r3, %r4};\n";
  }
  static std::string storeAll(unsigned count) {
    std::string text = "mul.wide.u32 %rd39, %t, 16;\nadd.u64 %rd39, %rd39, "
                       "%out;\n";
    for (unsigned i = 0; i < count; ++i)
      text += "st.global.b32 [%rd39+" + std::to_string(i * 4) + "], %r" +
              std::to_string(10 + i) + ";\n";
    return text;
  }
  static std::string list(unsigned count) {
    std::string text = "{%r10";
    for (unsigned i = 1; i < count; ++i)
      text += ", %r" + std::to_string(10 + i);
    return text + "}";
  }
  static std::string pieces(const std::string &body) {
    return kernel(std::string(declaration) + fill() + body + "ret;");
  }
};

TEST_F(LdmatrixTest, EachCountAndTransposed) {
  for (unsigned count : {1u, 2u, 4u})
    for (bool isTransposed : {false, true}) {
      words.assign(32 * 4, 0);
      runClean(pieces(
          "bar.warp.sync 0xffffffff;\nldmatrix.sync.aligned.m8n8.x" +
          std::to_string(count) + (isTransposed ? ".trans" : "") +
          ".shared.b16 " + list(count) + ", [%r30];\n" + storeAll(count)));
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned matrix = 0; matrix < count; ++matrix)
          for (unsigned half = 0; half < 2; ++half) {
            unsigned row = lane / 4, column = lane % 4 * 2 + half;
            if (isTransposed)
              std::swap(row, column);
            uint32_t cell = words[lane * 4 + matrix];
            EXPECT_EQ(cell >> half * 16 & 0xffff,
                      (matrix * 8 + row) * 8 + column);
          }
    }
}

TEST_F(LdmatrixTest, GenericAddresses) {
  runClean(pieces("bar.warp.sync 0xffffffff;\ncvt.u64.u32 %rd1, %r30;\n"
                  "cvta.shared.u64 %rd2, %rd1;\n"
                  "ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%rd2];\n" +
                  storeAll(1)));
  EXPECT_EQ(words[5 * 4], 0xb000au);
  words.assign(32 * 4, 0);
  runClean(pieces("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r30], {%t};\n"
                  "bar.warp.sync 0xffffffff;\n"
                  "wmma.load.a.sync.aligned.row.m16n16k16.bf16 {%r10, %r11, "
                  "%r12, %r13}, [tile];\n" +
                  storeAll(4)));
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[4], 1u);
  Finding finding =
      runFaulty(pieces("ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%out];\n"),
                FindingKind::OutOfBounds);
  EXPECT_NE(finding.message.find("is not shared memory"), std::string::npos);
}

TEST_F(LdmatrixTest, StoresWhatItLoads) {
  for (unsigned count : {1u, 2u, 4u})
    for (const char *trans : {"", ".trans"}) {
      words.assign(32 * 4, 0);
      std::string form = ".sync.aligned.m8n8.x" + std::to_string(count) +
                         trans + ".shared.b16 ";
      // Back to the same rows, which were overwritten.
      runClean(pieces("bar.warp.sync 0xffffffff;\nldmatrix" + form +
                      list(count) +
                      ", [%r30];\nbar.warp.sync 0xffffffff;\n"
                      "mov.u32 %r20, 0;\n"
                      "st.shared.v4.b32 [%r30], {%r20, %r20, "
                      "%r20, %r20};\nbar.warp.sync 0xffffffff;\n"
                      "stmatrix" +
                      form + "[%r30], " + list(count) +
                      ";\nbar.warp.sync 0xffffffff;\n"
                      "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r30];\n" +
                      storeAll(4)));
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < 8; ++i)
          EXPECT_EQ(words[lane * 4 + i / 2] >> i % 2 * 16 & 0xffff,
                    lane < count * 8 ? lane * 8 + i : 0);
    }
}

TEST_F(LdmatrixTest, MovesInRegisters) {
  runClean(pieces("mul.lo.u32 %r8, %t, 131074;\nadd.u32 %r8, %r8, 65536;\n"
                  "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r8;\n" +
                  storeAll(1)));
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned half = 0; half < 2; ++half)
      EXPECT_EQ(words[lane * 4] >> half * 16 & 0xffff,
                (lane % 4 * 2 + half) * 8 + lane / 4);
}

TEST_F(LdmatrixTest, WithoutABarrier) {
  Finding finding =
      runFaulty(pieces("xor.b32 %r30, %r30, 16;\n"
                       "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " +
                       list(4) + ", [%r30];\n" + storeAll(4)),
                FindingKind::SharedRace);
  EXPECT_NE(finding.ptxText.find("ldmatrix"), std::string::npos);
}

TEST_F(LdmatrixTest, Faults) {
  std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " + list(4);
  runFaulty(pieces("bar.warp.sync 0xffffffff;\n" + load + ", [%r30+8];\n"),
            FindingKind::Misaligned);
  runFaulty(pieces("bar.warp.sync 0xffffffff;\n" + load + ", [%r30+640];\n"),
            FindingKind::OutOfBounds);
  // 640 bytes, of which 512 are written.
  Finding finding =
      runFaulty(pieces("bar.warp.sync 0xffffffff;\n" + load + ", [%r30+64];\n"),
                FindingKind::Uninitialized);
  EXPECT_EQ(finding.thread[0], 28u);
  std::string store = "stmatrix.sync.aligned.m8n8.x1.shared.b16 ";
  // Two lanes' rows over each other.
  runFaulty(pieces("bar.warp.sync 0xffffffff;\nmov.u32 %r7, tile;\n" + store +
                   "[%r7], {%t};\n"),
            FindingKind::SharedRace);
}

TEST_F(LdmatrixTest, CountsBanks) {
  LaunchResult result =
      runClean(pieces("bar.warp.sync 0xffffffff;\n"
                      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " +
                      list(4) + ", [%r30];\n" + storeAll(4)));
  EXPECT_EQ(result.counters.sharedLoadBytes, 512u);
  EXPECT_EQ(result.counters.sharedRequests, 2u);
  EXPECT_TRUE(result.proof.holds);
}

} // namespace
} // namespace fsr::ptx
