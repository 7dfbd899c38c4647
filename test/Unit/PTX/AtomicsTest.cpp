// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// atom and red: each operation and type, whole updates between host threads,
// and what is found about them.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

using namespace fsr::ptx;

namespace {

class AtomicsTest : public KernelTest {
protected:
  /// One thread; `words[0..3]` are updated, [4..7] and [8..11] the operands,
  /// [16..19] get the old value.
  void runOne(const std::string &atom) {
    shape.block = {1, 1, 1};
    runClean(kernel(
        ".reg .b16 %h<8>;\n.reg .f64 %d<4>;\n.reg .b128 %q<4>;\n"
        "ld.global.u32 %r1, [%out+16];\nld.global.u32 %r2, [%out+32];\n"
        "ld.global.b64 %rd1, [%out+16];\nld.global.b64 %rd2, [%out+32];\n"
        "ld.global.f32 %f1, [%out+16];\nld.global.f64 %d1, [%out+16];\n"
        "ld.global.b16 %h1, [%out+16];\nld.global.b16 %h2, [%out+32];\n"
        "ld.global.b128 %q1, [%out+16];\nld.global.b128 %q2, [%out+32];\n"
        "ld.global.v4.f32 {%f4,%f5,%f6,%f7}, [%out+16];\n"
        "ld.global.v4.b32 {%r4,%r5,%r6,%r7}, [%out+16];\n" +
        atom + "\nret;"));
  }
};

TEST_F(AtomicsTest, Words) {
  struct {
    const char *operation;
    uint32_t old, operand, result;
  } cases[] = {
      {"and.b32", 0xf0f0, 0xff00, 0xf000},
      {"or.b32", 0xf0f0, 0xff00, 0xfff0},
      {"xor.b32", 0xf0f0, 0xff00, 0x0ff0},
      {"exch.b32", 1, 2, 2},
      {"add.u32", 0xffffffff, 2, 1},
      {"add.s32", 5, 0xfffffffe, 3},
      {"inc.u32", 4, 5, 5},
      {"inc.u32", 5, 5, 0},
      {"inc.u32", 9, 5, 0},
      {"dec.u32", 4, 5, 3},
      {"dec.u32", 0, 5, 5},
      {"dec.u32", 9, 5, 5},
      {"min.u32", 0xffffffff, 3, 3},
      {"min.s32", 0xffffffff, 3, 0xffffffff},
      {"max.u32", 0xffffffff, 3, 0xffffffff},
      {"max.s32", 0xffffffff, 3, 3},
      {"add.noftz.f16x2", 0x3c004000, 0x3c003c00, 0x40004200},
      // 1 + 2^-8 needs a ninth bit: to even.
      {"add.noftz.bf16x2", 0x3f803f80, 0x3b803c00, 0x3f803f81},
  };
  for (const auto &one : cases) {
    std::string name = one.operation;
    for (const char *space : {"global.", ""}) {
      words.assign(64, 0);
      words[0] = one.old;
      words[4] = one.operand;
      runOne("atom." + std::string(space) + name +
             " %r3, [%out], %r1;\nst.global.u32 [%out+64], %r3;");
      EXPECT_EQ(words[0], one.result) << name;
      EXPECT_EQ(words[16], one.old) << name;
    }
    if (name == "exch.b32")
      continue;
    words[0] = one.old;
    runOne("red.relaxed.gpu.global." + name + " [%out], %r1;");
    EXPECT_EQ(words[0], one.result) << name;
  }
}

TEST_F(AtomicsTest, CompareAndSwap) {
  for (bool isEqual : {true, false}) {
    words.assign(64, 0);
    words[0] = 7;
    words[4] = isEqual ? 7 : 8;
    words[8] = 9;
    runOne("atom.global.acq_rel.gpu.cas.b32 %r3, [%out], %r1, %r2;\n"
           "st.global.u32 [%out+64], %r3;");
    EXPECT_EQ(words[0], isEqual ? 9u : 7u);
    EXPECT_EQ(words[16], 7u);

    words[0] = 0x55550007;
    runOne("atom.global.cas.b16 %h3, [%out], %h1, %h2;");
    EXPECT_EQ(words[0], isEqual ? 0x55550009u : 0x55550007u);

    words[0] = 7;
    words[1] = words[5] = 1;
    words[9] = 3;
    runOne("atom.global.cas.b64 %rd3, [%out], %rd1, %rd2;");
    EXPECT_EQ(words[0], isEqual ? 9u : 7u);
    EXPECT_EQ(words[1], isEqual ? 3u : 1u);

    words[0] = 7;
    words[1] = 1;
    words[3] = words[7] = 4;
    words[11] = 6;
    runOne("atom.global.cas.b128 %q3, [%out], %q1, %q2;\n"
           "st.global.b128 [%out+64], %q3;");
    EXPECT_EQ(words[0], isEqual ? 9u : 7u);
    EXPECT_EQ(words[3], isEqual ? 6u : 4u);
    EXPECT_EQ(words[19], 4u);
  }
}

TEST_F(AtomicsTest, DoubleWords) {
  struct {
    const char *operation;
    uint64_t old, operand, result;
  } cases[] = {
      {"add.u64", 0xffffffff, 1, 0x100000000},
      {"min.s64", ~uint64_t(0), 1, ~uint64_t(0)},
      {"min.u64", ~uint64_t(0), 1, 1},
      {"max.s64", ~uint64_t(0), 1, 1},
      {"max.u64", ~uint64_t(0), 1, ~uint64_t(0)},
      {"and.b64", 0xff00000000, 0xf000000000, 0xf000000000},
      {"or.b64", 1, 0x100000000, 0x100000001},
      {"xor.b64", 3, 0x100000001, 0x100000002},
      {"exch.b64", 3, 4, 4},
  };
  for (const auto &one : cases) {
    words.assign(64, 0);
    std::memcpy(&words[0], &one.old, 8);
    std::memcpy(&words[4], &one.operand, 8);
    runOne("atom.global." + std::string(one.operation) +
           " %rd3, [%out], %rd1;\nst.global.b64 [%out+64], %rd3;");
    EXPECT_EQ(std::memcmp(&words[0], &one.result, 8), 0) << one.operation;
    EXPECT_EQ(std::memcmp(&words[16], &one.old, 8), 0) << one.operation;
  }
  words.assign(64, 0);
  words[0] = 1;
  words[7] = 2;
  runOne("atom.global.exch.b128 %q3, [%out], %q1;\n"
         "st.global.b128 [%out+64], %q3;");
  EXPECT_EQ(words[3], 2u);
  EXPECT_EQ(words[16], 1u);
}

TEST_F(AtomicsTest, Floats) {
  struct {
    uint32_t old, operand, global, shared;
  } cases[] = {
      {0x3f800000, 0x40000000, 0x40400000, 0x40400000},
      // A subnormal counts in shared memory, not in global memory.
      {0x00000001, 0x00000001, 0x00000000, 0x00000002},
      {0x80000001, 0x80000000, 0x80000000, 0x80000001},
      // 2^24 + 1: to even.
      {0x4b800000, 0x3f800000, 0x4b800000, 0x4b800000},
      {0x7f800000, 0xff800000, 0x7fffffff, 0x7fffffff},
  };
  for (const auto &one : cases) {
    words.assign(64, 0);
    words[0] = one.old;
    words[4] = one.operand;
    runOne("atom.global.add.f32 %f3, [%out], %f1;");
    EXPECT_EQ(words[0], one.global);
    words[0] = one.old;
    words[4] = one.operand;
    runOne(".shared .align 4 .f32 sm;\nld.global.f32 %f2, [%out];\n"
           "st.shared.f32 [sm], %f2;\nred.shared.add.f32 [sm], %f1;\n"
           "ld.shared.f32 %f3, [sm];\nst.global.f32 [%out+4], %f3;");
    EXPECT_EQ(words[1], one.shared);
  }
  words.assign(64, 0);
  double two = 2, half = 0.5, sum = 0;
  std::memcpy(&words[0], &two, 8);
  std::memcpy(&words[4], &half, 8);
  runOne("red.global.add.f64 [%out], %d1;");
  std::memcpy(&sum, &words[0], 8);
  EXPECT_EQ(sum, 2.5);
}

TEST_F(AtomicsTest, NansOfDoubles) {
  // Global memory hands on the operand's as it is; shared memory the old one's,
  // made quiet.
  struct {
    uint64_t old, operand, global, shared;
  } cases[] = {
      {0x7ff0000000000005, 0xfff0000000000007, 0xfff0000000000007,
       0x7ff8000000000005},
      {0x7ff0000000000005, 0x3ff0000000000000, 0x7ff0000000000005,
       0x7ff8000000000005},
      {0x3ff0000000000000, 0xfff0000000000007, 0xfff0000000000007,
       0xfff8000000000007},
  };
  for (const auto &one : cases) {
    words.assign(64, 0);
    std::memcpy(&words[0], &one.old, 8);
    std::memcpy(&words[4], &one.operand, 8);
    runOne(".shared .align 8 .b64 sm;\nld.global.b64 %rd3, [%out];\n"
           "st.shared.b64 [sm], %rd3;\nred.shared.add.f64 [sm], %d1;\n"
           "ld.shared.b64 %rd3, [sm];\nst.global.b64 [%out+64], %rd3;\n"
           "red.global.add.f64 [%out], %d1;");
    uint64_t global, shared;
    std::memcpy(&global, &words[0], 8);
    std::memcpy(&shared, &words[16], 8);
    EXPECT_EQ(global, one.global);
    EXPECT_EQ(shared, one.shared);
  }
}

TEST_F(AtomicsTest, Halves) {
  struct {
    const char *operation;
    uint16_t old, operand, result;
  } cases[] = {
      {"add.noftz.f16", 0x3c00, 0x3c00, 0x4000},
      {"add.noftz.f16", 0x0001, 0x0001, 0x0002}, // Subnormal.
      {"add.noftz.f16", 0x03ff, 0x0001, 0x0400}, // To normal.
      {"add.noftz.f16", 0x7bff, 0x7bff, 0x7c00}, // Overflow.
      {"add.noftz.f16", 0x6800, 0x3c00, 0x6800}, // 2048 + 1: to even.
      {"add.noftz.f16", 0x6801, 0x3c00, 0x6802}, // 2050 + 1: to even.
      {"add.noftz.f16", 0x7c00, 0xfc00, 0x7fff}, // Not a number.
      {"add.noftz.f16", 0xbc00, 0x3c00, 0x0000},
      {"add.noftz.bf16", 0x3f80, 0x3f80, 0x4000},
      {"add.noftz.bf16", 0x0001, 0x0001, 0x0002},
      {"add.noftz.bf16", 0x7f7f, 0x7f7f, 0x7f80},
  };
  for (const auto &one : cases) {
    words.assign(64, 0);
    words[0] = 0xabcd0000u | one.old;
    words[4] = one.operand;
    runOne("atom.global." + std::string(one.operation) +
           " %h3, [%out], %h1;\nst.global.b16 [%out+64], %h3;");
    EXPECT_EQ(words[0], 0xabcd0000u | one.result)
        << one.operation << std::hex << one.old;
    EXPECT_EQ(words[16], one.old);
  }
}

TEST_F(AtomicsTest, Vectors) {
  words.assign(64, 0);
  for (unsigned i = 0; i < 4; ++i) {
    words[i] = 0x3f800000;
    words[4 + i] = 0x3f800000 + (i << 23);
  }
  runOne("atom.global.add.v4.f32 {%f8,%f9,%f10,%f11}, [%out], "
         "{%f4,%f5,%f6,%f7};\nst.global.v4.f32 [%out+64], "
         "{%f8,%f9,%f10,%f11};");
  EXPECT_EQ(words[0], 0x40000000u);
  EXPECT_EQ(words[1], 0x40400000u);
  EXPECT_EQ(words[3], 0x41100000u);
  EXPECT_EQ(words[19], 0x3f800000u);
  words.assign(64, 0x3c003c00);
  words[4] = 0x40003c00;
  runOne("red.global.max.noftz.v2.f16x2 [%out], {%r4,%r5};");
  EXPECT_EQ(words[0], 0x40003c00u);
  runOne("red.global.min.noftz.v4.bf16x2 [%out], {%r4,%r5,%r6,%r7};");
  EXPECT_EQ(words[0], 0x40003c00u);
  EXPECT_EQ(words[3], 0x3c003c00u);
}

TEST_F(AtomicsTest, WholeBetweenHostThreads) {
  // Each lane of many blocks adds one to four counters of different types.
  words.assign(64, 0);
  shape = {{200, 1, 1}, {96, 1, 1}, {1, 1, 1}, 0, false};
  options.hostThreads = 4;
  LaunchResult result = runClean(kernel(
      ".reg .b128 %q<4>;\nmov.u64 %rd1, 1;\nmov.f32 %f1, 0f3F800000;\n"
      "red.global.add.u32 [%out], 1;\nred.global.add.u64 [%out+8], %rd1;\n"
      "red.global.add.f32 [%out+16], %f1;\n"
      "atom.global.inc.u32 %r1, [%out+20], 1000000;\n"
      "again: ld.relaxed.gpu.global.u32 %r2, [%out+24];\n"
      "add.u32 %r3, %r2, 1;\n"
      "atom.global.cas.b32 %r4, [%out+24], %r2, %r3;\n"
      "setp.ne.u32 %p1, %r4, %r2;\n@%p1 bra again;\nret;"));
  EXPECT_EQ(words[0], 19200u);
  EXPECT_EQ(words[2], 19200u);
  EXPECT_EQ(words[3], 0u);
  float sum = 0;
  std::memcpy(&sum, &words[4], 4);
  EXPECT_EQ(sum, 19200.0f);
  EXPECT_EQ(words[5], 19200u);
  EXPECT_EQ(words[6], 19200u);
  EXPECT_GE(result.counters.atomicSerial, uint64_t(31 * 600 * 4));
}

TEST_F(AtomicsTest, SerialUpdatesAreCounted) {
  shape.block = {32, 1, 1};
  LaunchResult result = runClean(
      kernel("and.b32 %r1, %t, 3;\nmul.wide.u32 %rd1, %r1, 4;\n"
             "add.u64 %rd1, %rd1, %out;\nred.global.add.u32 [%rd1], 1;\nret;"));
  EXPECT_EQ(result.counters.atomicSerial, 28u);
  EXPECT_EQ(words[3], 8u);
}

TEST_F(AtomicsTest, MixedWithPlainAccessesRace) {
  shape = {{2, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0, false};
  runFaulty(kernel("setp.ne.u32 %p1, %t, 0;\n@%p1 bra done;\n"
                   "mov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p2, %r2, 0;\n"
                   "@%p2 st.global.u32 [%out], %t;\n"
                   "@!%p2 red.global.add.u32 [%out], 1;\ndone: ret;"),
            FindingKind::GlobalRace);
}

TEST_F(AtomicsTest, FaultsAreFound) {
  Finding finding =
      runFaulty(kernel("red.global.add.u64 [%out+4], %out;\nret;"),
                FindingKind::Misaligned);
  EXPECT_NE(finding.message.find("multiple of 8"), std::string::npos);
  runFaulty(kernel("red.global.add.u32 [%out+256], 1;\nret;"),
            FindingKind::OutOfBounds);
  runFaulty(kernel(".shared .align 4 .u32 sm;\nred.shared.add.u32 [sm], 1;\n"
                   "ret;"),
            FindingKind::Uninitialized);
  runFaulty(kernel(".local .align 4 .u32 lo;\nmov.u64 %rd1, lo;\n"
                   "cvta.local.u64 %rd1, %rd1;\nst.u32 [%rd1], %t;\n"
                   "red.add.u32 [%rd1], 1;\nret;"),
            FindingKind::OutOfBounds);
}

TEST_F(AtomicsTest, OldValuesBreakTheProofWhereTheySteer) {
  std::string take = "atom.global.add.u32 %r1, [%out], 1;\n";
  EXPECT_TRUE(runClean(kernel(take + "ret;")).proof.holds);
  LaunchResult result = runClean(
      kernel(take + "and.b32 %r1, %r1, 31;\nmul.wide.u32 %rd1, %r1, 4;\n"
                    "add.u64 %rd1, %rd1, %out;\n"
                    "st.global.u32 [%rd1+128], %t;\nret;"));
  EXPECT_FALSE(result.proof.holds);
}

} // namespace
