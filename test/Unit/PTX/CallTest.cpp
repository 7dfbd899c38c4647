// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Calls: parameters and results, recursion, functions by address, and what CUDA
// gives: printf, assertions, malloc.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

#include "../../../lib/PTX/Printf.h"

namespace fsr::ptx {
namespace {

class CallTest : public KernelTest {};

/// Twice its argument plus one for odd ones.
const char *const twice = R"(
.func (.param .b32 out) twice(.param .b32 in) {
  .reg .b32 %r<9>;
  .reg .pred %p<2>;
  ld.param.u32 %r1, [in];
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 0;
  add.u32 %r3, %r1, %r1;
  @%p1 bra EVEN;
  add.u32 %r3, %r3, 1;
  st.param.u32 [out], %r3;
  ret;
EVEN:
  st.param.u32 [out], %r3;
  ret;
}
)";

TEST_F(CallTest, ParametersAndResults) {
  std::string ptx = kernel(R"(
    {
    .param .b32 given;
    .param .b32 got;
    add.u32 %r1, %t, 10;
    st.param.b32 [given], %r1;
    call.uni (got), twice, (given);
    ld.param.b32 %r2, [got];
    }
  )" + store("%r2") + "exit;",
                           twice);
  for (Schedule schedule :
       {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
    options.schedule = schedule;
    words.assign(64, 0);
    LaunchResult result = runClean(ptx);
    for (unsigned i = 0; i < 32; ++i)
      ASSERT_EQ(words[i], (i + 10) * 2 + i % 2);
    EXPECT_TRUE(result.proof.holds) << result.proof.broken;
  }
}

TEST_F(CallTest, LanesThatCameBackAtDifferentTimesMeet) {
  LaunchResult result = runClean(kernel(R"(
    {
    .param .b32 given;
    .param .b32 got;
    st.param.b32 [given], %t;
    call.uni (got), twice, (given);
    ld.param.b32 %r2, [got];
    }
  )" + store("%r2") + "exit;",
                                        twice));
  // The kernel's own once, the callee's tails once for each half.
  EXPECT_EQ(result.counters.warpInstructions, 2u + 3 + 5 + 3 + 2 + 3 + 1);
}

TEST_F(CallTest, Recursion) {
  const char *const sum = R"(
.func (.param .b32 out) sum(.param .b32 in) {
  .reg .b32 %r<9>;
  .reg .pred %p<2>;
  .param .b32 less;
  .param .b32 rest;
  ld.param.u32 %r1, [in];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra ZERO;
  sub.u32 %r2, %r1, 1;
  st.param.b32 [less], %r2;
  call (rest), sum, (less);
  ld.param.b32 %r3, [rest];
  add.u32 %r1, %r1, %r3;
ZERO:
  st.param.u32 [out], %r1;
  ret;
}
)";
  std::string body = R"(
    .param .b32 given;
    .param .b32 got;
    st.param.b32 [given], %t;
    call (got), sum, (given);
    ld.param.b32 %r2, [got];
  )" + store("%r2") + "exit;";
  runClean(kernel(body, sum));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i * (i + 1) / 2);

  Finding finding = runFaulty(kernel("mov.u32 %t, 5000;\n" + body, sum),
                              FindingKind::StackOverflow);
  EXPECT_EQ(finding.message,
            "calls nested 1000 deep with 16000 bytes of local memory; at most "
            "1000 deep and 524288 bytes are allowed");
}

TEST_F(CallTest, ByAddress) {
  std::string functions = std::string(twice) + R"(
.func (.param .b32 out) same(.param .b32 in) {
  .reg .b32 %r<9>;
  ld.param.u32 %r1, [in];
  st.param.u32 [out], %r1;
  ret;
}
)";
  auto body = [](llvm::StringRef address) {
    return (R"(
    .param .b32 given;
    .param .b32 got;
    mov.u64 %rd1, twice;
    mov.u64 %rd2, )" +
            address + R"(;
    setp.lt.u32 %p1, %t, 8;
    selp.b64 %rd3, %rd1, %rd2, %p1;
    st.param.b32 [given], %t;
    prototype : .callprototype (.param .b32 _) _ (.param .b32 _);
    call (got), %rd3, (given), prototype;
    ld.param.b32 %r2, [got];
  )" + store("%r2") +
            "exit;")
        .str();
  };
  runClean(kernel(body("same"), functions));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i < 8 ? i * 2 + i % 2 : i);
  Finding finding =
      runFaulty(kernel(body("12345"), functions), FindingKind::BadJump);
  EXPECT_EQ(finding.thread[0], 8u);
  EXPECT_EQ(finding.message, "calls 0x3039, where no function is");
}

TEST_F(CallTest, LocalVariablesAreOfTheFrame) {
  const char *const deep = R"(
.func (.param .b32 out) deep(.param .b32 in) {
  .local .align 4 .b8 here[64];
  .reg .b32 %r<9>;
  .reg .b64 %rd<3>;
  ld.param.u32 %r1, [in];
  mov.u64 %rd1, here;
  st.local.u32 [%rd1+60], %r1;
  ld.local.u32 %r2, [here+60];
  st.param.u32 [out], %r2;
  ret;
}
)";
  runClean(kernel(R"(
    .local .align 4 .b8 mine[8];
    .param .b32 given;
    .param .b32 got;
    mov.u32 %r5, 7;
    st.local.u32 [mine+4], %r5;
    st.param.b32 [given], %t;
    call (got), deep, (given);
    ld.param.b32 %r2, [got];
    ld.local.u32 %r3, [mine+4];
    mad.lo.u32 %r2, %r3, 100, %r2;
  )" + store("%r2") + "exit;",
                  deep));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], 700 + i);
}

TEST_F(CallTest, ResultsThatNobodyWants) {
  runClean(kernel(R"(
    .param .b32 given;
    st.param.b32 [given], %t;
    call (_), twice, (given);
  )" + store("%t") + "exit;",
                  twice));
  EXPECT_EQ(words[9], 9u);
}

TEST_F(CallTest, AFunctionWithOtherParametersByAddress) {
  const char *const large = R"(
.func large(.param .align 8 .b8 in[4096]) {
  ret;
}
)";
  Finding finding = runFaulty(kernel(R"(
    .param .b32 given;
    st.param.b32 [given], %t;
    mov.u64 %rd1, large;
    prototype : .callprototype _ (.param .b32 _);
    call %rd1, (given), prototype;
    exit;
  )",
                                     large),
                              FindingKind::BadJump);
  EXPECT_EQ(finding.message,
            "large does not take the parameters that the call gives");
}

TEST_F(CallTest, JumpsThroughATable) {
  auto body = [](llvm::StringRef index) {
    return (R"(
    and.b32 %r1, %t, )" +
            index + R"(;
    table: .branchtargets A, B, C;
    brx.idx %r1, table;
  A:
    mov.u32 %r2, 10;
    bra.uni END;
  B:
    mov.u32 %r2, 20;
    bra.uni END;
  C:
    mov.u32 %r2, 30;
  END:
  )" + store("%r2") +
            "exit;")
        .str();
  };
  runClean(kernel(body("1")));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i % 2 ? 20u : 10u);
  Finding finding = runFaulty(kernel(body("3")), FindingKind::BadJump);
  EXPECT_EQ(finding.message, "index 3 into a table of 3 labels");
  EXPECT_EQ(finding.thread[0], 3u);
}

TEST_F(CallTest, Prints) {
  shape.block = {2, 1, 1};
  const char *const before = R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);
.global .align 1 .b8 text[16] = {110, 61, 37, 100, 32, 37, 115, 32, 37, 46, 50, 102, 10, 0};
.global .align 1 .b8 name[4] = {97, 98, 99, 0};
)";
  LaunchResult result = runClean(kernel(R"(
    .local .align 8 .b8 values[24];
    .param .b64 f;
    .param .b64 v;
    .param .b32 r;
    add.u32 %r1, %t, 41;
    st.local.u32 [values], %r1;
    mov.u64 %rd1, name;
    cvta.global.u64 %rd2, %rd1;
    st.local.u64 [values+8], %rd2;
    mov.u64 %rd3, 0x3ff8000000000000;
    st.local.u64 [values+16], %rd3;
    mov.u64 %rd4, text;
    cvta.global.u64 %rd5, %rd4;
    st.param.b64 [f], %rd5;
    mov.u64 %rd6, values;
    cvta.local.u64 %rd7, %rd6;
    st.param.b64 [v], %rd7;
    call (r), vprintf, (f, v);
    ld.param.b32 %r2, [r];
  )" + store("%r2") + "exit;",
                                        before));
  EXPECT_EQ(result.output, "n=41 abc 1.50\nn=42 abc 1.50\n");
  EXPECT_EQ(words[0], 14u);
}

TEST_F(CallTest, FormatsOfPrintf) {
  std::vector<uint8_t> buffer;
  auto add = [&](auto value) {
    buffer.resize((buffer.size() + sizeof(value) - 1) / sizeof(value) *
                  sizeof(value));
    buffer.insert(buffer.end(), reinterpret_cast<uint8_t *>(&value),
                  reinterpret_cast<uint8_t *>(&value) + sizeof(value));
  };
  auto format = [&](llvm::StringRef text) {
    return formatPrintf(
        text,
        [&](uint64_t offset, void *to, size_t bytes) {
          if (offset + bytes > buffer.size())
            return false;
          std::memcpy(to, buffer.data() + offset, bytes);
          return true;
        },
        [](uint64_t address) { return "<" + std::to_string(address) + ">"; });
  };
  EXPECT_EQ(format("100%% plain"), "100% plain");
  add(-5);
  add(0xffu);
  EXPECT_EQ(format("%d|%08x"), "-5|000000ff");
  EXPECT_EQ(format("%5d|%-4u|"), "   -5|255 |");
  buffer.clear();
  add(7);
  add(int64_t(1) << 40);
  EXPECT_EQ(format("%*d"), "      0");
  EXPECT_EQ(format("%d %lld"), "7 1099511627776");
  buffer.clear();
  add(uint64_t(77));
  EXPECT_EQ(format("[%s]"), "[<77>]");
  EXPECT_EQ(format("%p"), "0x4d");
  buffer.clear();
  add(int('x'));
  EXPECT_EQ(format("%c%%"), "x%");
  // Not formats: printed as they stand, nothing is read or written.
  EXPECT_EQ(format("%n%"), "%n%");
  EXPECT_EQ(format("%99999d").size(), 4096u);
}

TEST_F(CallTest, Asserts) {
  const char *const before = R"(
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 what[4] = {120, 62, 48, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
.global .align 1 .b8 where[2] = {102, 0};
)";
  Finding finding = runFaulty(kernel(R"(
    .param .b64 a;
    .param .b64 b;
    .param .b32 c;
    .param .b64 d;
    .param .b64 e;
    setp.ne.u32 %p1, %t, 9;
    @%p1 exit;
    mov.u64 %rd1, what;
    cvta.global.u64 %rd1, %rd1;
    st.param.b64 [a], %rd1;
    mov.u64 %rd2, file;
    cvta.global.u64 %rd2, %rd2;
    st.param.b64 [b], %rd2;
    mov.u32 %r1, 12;
    st.param.b32 [c], %r1;
    mov.u64 %rd3, where;
    cvta.global.u64 %rd3, %rd3;
    st.param.b64 [d], %rd3;
    mov.u64 %rd4, 1;
    st.param.b64 [e], %rd4;
    call __assertfail, (a, b, c, d, e);
    exit;
  )",
                                     before),
                              FindingKind::Assert);
  EXPECT_EQ(finding.message, "assertion `x>0` failed in f at a.cu:12");
  EXPECT_EQ(finding.thread[0], 9u);
}

TEST_F(CallTest, Allocates) {
  const char *const before = R"(
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
)";
  const std::string takesAndGives = kernel(R"(
    .param .b64 n;
    .param .b64 r;
    mov.u64 %rd1, 16;
    st.param.b64 [n], %rd1;
    call (r), malloc, (n);
    ld.param.b64 %rd2, [r];
    st.u32 [%rd2+12], %t;
    ld.u32 %r1, [%rd2+12];
    st.param.b64 [n], %rd2;
    call free, (n);
  )" + store("%r1") + "exit;",
                                           before);
  LaunchResult result = runClean(takesAndGives);
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i);
  EXPECT_FALSE(result.proof.holds);
  // The second warp gets the pieces that the first gave back.
  shape.block[0] = 64;
  runClean(takesAndGives);
  shape.block[0] = 32;
  Finding finding = runFaulty(kernel(R"(
    .param .b64 n;
    st.param.b64 [n], %out;
    call free, (n);
    exit;
  )",
                                     before),
                              FindingKind::OutOfBounds);
  EXPECT_EQ(finding.count, 32u);
}

TEST_F(CallTest, WhatIsNotThere) {
  auto message = [&](llvm::StringRef body, llvm::StringRef before) {
    llvm::Expected<LaunchResult> result = tryRun(kernel(body, before));
    return result ? std::string("none") : toString(result.takeError());
  };
  EXPECT_EQ(message("call nowhere;\nexit;", ".extern .func nowhere();"),
            "PTX line 14: `call nowhere;`: function nowhere is not defined");
  EXPECT_EQ(
      message("call free;\nexit;", ".extern .func free();"),
      "PTX line 14: `call free;`: function free is not declared as CUDA's");
  EXPECT_EQ(
      message(".param .b32 x;\ncall twice, (x);\nexit;", twice),
      "PTX line 31: `call twice, (x);`: function twice has other parameters");
}

TEST_F(CallTest, Traps) {
  Finding finding = runFaulty(
      kernel("setp.eq.u32 %p1, %t, 5;\n@%p1 trap;\nexit;"), FindingKind::Trap);
  EXPECT_EQ(finding.thread[0], 5u);
  EXPECT_EQ(finding.text(), "trap in k (PTX line 15 `@%p1 trap;`): the kernel "
                            "stopped itself; block (0,0,0), thread (5,0,0)");
}

} // namespace
} // namespace fsr::ptx
