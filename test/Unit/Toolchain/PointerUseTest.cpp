// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where a buffer lies is no data: each way of making it such, beside the honest
// code that looks most like it. First as compilers write it, then as only
// inline assembly could.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"
#include "ToolchainTesting.h"

#include "llvm/ADT/StringRef.h"

using namespace fsr;
using namespace fsr::testing;
using llvm::StringRef;

namespace {

struct Neighbours {
  const char *name, *refused, *reason, *honest, *before = "";
};

class PointerTest : public ::testing::TestWithParam<Neighbours> {};

TEST_P(PointerTest, RefusedAndNearNeighbour) {
  FSR_NEED_NVRTC();
  const Neighbours &test = GetParam();
  CompileOutcome outcome = compileBody(test.refused, test.before);
  EXPECT_FALSE(outcome.build);
  EXPECT_EQ(outcome.verdict, Verdict::Rejected) << outcome.message;
  EXPECT_TRUE(StringRef(outcome.message).contains(test.reason))
      << outcome.message;
  outcome = compileBody(test.honest, test.before);
  EXPECT_TRUE(outcome.build) << outcome.message;
}

const char decides[] = "where a buffer lies decides";
const char data[] = "is written as data";

const Neighbours tests[] = {
    {"HighBits", "if ((unsigned long long)x >> 20 & 1) y[0] = x[0] + a;",
     decides,
     "if (((unsigned long long)x & 15) == 0) y[0] = ((float4 *)x)->w;"},
    {"ManyAlignments",
     "if ((((unsigned long long)x | (unsigned long long)y) & 0x10000) == 0)"
     "  y[0] = x[0];",
     decides,
     "if ((((unsigned long long)x | (unsigned long long)y | n) & 15) == 0)"
     "  y[0] = ((float4 *)x)->w;"},
    // The compiler counts what is peeled off by setting all bits but two.
    {"PeeledUntilAligned",
     "long long f = ~(-(unsigned long long)x >> 2) | ~0x40000;"
     "if (f == ~0) y[0] = x[0];",
     decides,
     "long long f = (16 - ((unsigned long long)x & 15)) % 16 / 4;"
     "f = f < n ? f : n;"
     "const float4 *v = (const float4 *)(x + f);"
     "for (long long i = threadIdx.x; i < (n - f) / 4; i += gridDim.x * 256)"
     "  y[i] = (v[i].x + v[i].y) + (v[i].z + v[i].w);"},
    {"HashOfTheAddress",
     "unsigned h = (unsigned)((unsigned long long)x * 2654435761u);"
     "if (h & 64) y[0] = x[0];",
     decides,
     "unsigned h = (unsigned)(n * 2654435761u); if (h & 64) y[0] = x[0];"},
    {"ComparedWithANumber",
     "if ((unsigned long long)x == 0x7f0000000000) return;"
     "y[0] = x[0];",
     decides, "if (x == nullptr) return; y[0] = x[0];"},
    {"ComparedWithAnArgument", "if ((long long)x == n) return; y[0] = x[0];",
     decides,
     // Overlap, and the end of a range.
     "if (x + n <= y || y + n <= x) for (const float *p = x; p != x + n; ++p)"
     "  y[0] += *p;"},
    {"WrittenOut", "((unsigned long long *)y)[0] = (unsigned long long)x;",
     data, "((unsigned long long *)y)[0] = (unsigned long long)x & 127;"},
    {"WrittenAsFloat", "y[0] = (float)(unsigned long long)x;", data,
     "y[0] = (float)(int)((128 - ((unsigned long long)x & 127)) / 4);"},
    {"DistanceWrittenOut", "((long long *)y)[0] = (char *)y - (char *)x;", data,
     // From one place of a buffer to another of the same.
     "const float *p = x; while (*p != a) ++p; ((long long *)y)[0] = p - x;"},
    {"ThroughAFunction", "y[0] = bits(y) > 7 ? x[0] : x[1];", decides,
     "y[0] = sum(x, n);",
     "__device__ __noinline__ int bits(float *p) {"
     "  return (int)((unsigned long long)p >> 12); }\n"
     "__device__ __noinline__ float sum(const float *p, long long n) {"
     "  float s = 0; for (long long i = 0; i < n; ++i) s += p[i]; return s; }"},
    {"ThroughLocalMemory",
     "unsigned long long kept[4]; for (int i = 0; i < 4; ++i)"
     "  kept[i] = (unsigned long long)(x + i * n);"
     "if (kept[n & 3] >> 30 & 1) y[0] = x[0];",
     decides,
     "const float *kept[4]; for (int i = 0; i < 4; ++i) kept[i] = x + i * n;"
     "y[0] = kept[n & 3][threadIdx.x];"},
    {"ThroughSharedMemory",
     "__shared__ unsigned long long kept; if (threadIdx.x == 0)"
     "  kept = (unsigned long long)x;"
     "__syncthreads(); if (kept & 0x40000) y[0] = x[0];",
     decides,
     "__shared__ const float *kept; if (threadIdx.x == 0) kept = x + n;"
     "__syncthreads(); y[0] = kept[threadIdx.x];"},
    {"BesideOtherData",
     "unsigned long long kept[4]; float f[4];"
     "for (int i = 0; i < 4; ++i) { f[i] = x[i] * a;"
     "  kept[i] = (unsigned long long)(x + i * n); }"
     "y[0] = f[n & 3] + (unsigned char)(kept[n & 3] >> 32);",
     data,
     "const float *kept[4]; float f[4]; int m[4];"
     "for (int i = 0; i < 4; ++i) { f[i] = x[i] * a; kept[i] = x + i * n;"
     "  m[i] = (int)x[i + 4]; }"
     "if (m[n & 3] > 7) y[1] = 1; y[0] = kept[n & 3][1] + f[n & 3];"},
    {"AsAnIndex",
     "const float table[2] = {a, a + 1};"
     "y[0] = table[(unsigned long long)x >> 21 & 1];",
     "computed from the bits of another",
     "const float table[2] = {a, a + 1};"
     "y[0] = table[(unsigned long long)x >> 2 & 1];"},
    {"AtomicallyWritten",
     "atomicMax((unsigned long long *)y, (unsigned long long)x);", data,
     "atomicMax((unsigned long long *)y, (unsigned long long)n);"},
    {"Shuffled",
     "unsigned v = __shfl_xor_sync(~0u, (unsigned)(unsigned long long)x, 1);"
     "if (v & 0x4000) y[0] = x[0];",
     decides,
     "unsigned v = __shfl_xor_sync(~0u, (unsigned)n, 1);"
     "if (v & 0x4000) y[0] = x[0];"},
    {"AFixedAddress", "y[0] = *(volatile float *)0x7f0000001000;",
     "is a number and comes from no argument",
     "y[0] = ((volatile float *)x)[0x1000];"},
    {"AnAddressFromAScalar", "*(float *)n = x[0];",
     "is a number and comes from no argument", "y[n] = x[0];"},
    {"AFixedAddressInAssembly",
     "asm volatile(\"{ .reg .b64 p; mov.b64 p, 0x7f0000001000;"
     " st.global.f32 [p], %0; }\" ::\"f\"(a) : \"memory\");",
     "is a number and comes from no argument",
     "asm volatile(\"{ .reg .b64 p; mov.b64 p, %1;"
     " st.global.f32 [p], %0; }\" ::\"f\"(a), \"l\"(y) : \"memory\");"},
    {"ThroughAFunctionPointer",
     "float (*f)(const float *) = n & 1 ? first : second; y[0] = f(x);",
     "not known before the call", "y[0] = n & 1 ? first(x) : second(x);",
     "__device__ __noinline__ float first(const float *p) { return p[1]; }\n"
     "__device__ __noinline__ float second(const float *p) { return p[2]; }"},
    {"StructOfPointerAndSize", "y[0] = far(View{x, n});", decides,
     "y[0] = sum(View{x, n});",
     "struct View { const float *p; long long n; };\n"
     "__device__ __noinline__ float far(View v) {"
     "  return (unsigned long long)v.p >> 40 > 7 ? v.p[0] : v.p[v.n]; }\n"
     "__device__ __noinline__ float sum(View v) { float s = 0;"
     "  for (long long i = 0; i < v.n; ++i) s += v.p[i]; return s; }"},
};

INSTANTIATE_TEST_SUITE_P(All, PointerTest, ::testing::ValuesIn(tests),
                         [](const auto &info) { return info.param.name; });

/// Why a kernel with this body is refused, where %rd1 is a buffer.
std::string why(const std::string &body) {
  std::string ptx = ".visible .entry k(.param .u64 k_param_0, .param .u64 "
                    "k_param_1, .param .u64 k_param_2, .param .f32 k_param_3)\n"
                    "{ .reg .b64 %rd<9>;\n"
                    "ld.param.u64 %rd1, [k_param_0];\n"
                    "ld.param.u64 %rd2, [k_param_1];\n"
                    "ld.param.u64 %rd3, [k_param_2];\n" +
                    body + "\n ret;\n}\n";
  std::string refusal;
  std::optional<PtxModule> module = readPtx(ptx, refusal);
  if (!module)
    return refusal;
  return checkPointers(*module, {launchOfK()}).value_or("");
}

TEST(PointerUse, AssemblyThatHidesIt) {
  for (const char *body :
       {// A carry.
        "mov.b64 {%r1, %r2}, %rd1; add.cc.u32 %r3, %r1, -4096;"
        "addc.u32 %r4, 0, 0; setp.eq.u32 %p1, %r4, 0;",
        // A register that nobody sets, and one that only sets itself.
        "add.u64 %rd4, %rd1, %rd5; shr.u64 %rd6, %rd4, 30;"
        "setp.eq.u64 %p1, %rd6, 0;",
        "add.u64 %rd5, %rd5, 0; add.u64 %rd4, %rd1, %rd5;"
        "shr.u64 %rd6, %rd4, 30; setp.eq.u64 %p1, %rd6, 0;",
        "activemask.b32 %r1; cvt.u64.u32 %rd5, %r1; add.u64 %rd4, %rd1, %rd5;"
        "st.global.u64 [%rd2], %rd4;",
        // Half of a parameter.
        "ld.param.u32 %r1, [k_param_0+4]; and.b32 %r2, %r1, 15;"
        "setp.eq.u32 %p1, %r2, 0;",
        "mov.b64 %rd4, k_param_0; ld.param.u32 %r1, [%rd4+4];"
        "setp.eq.u32 %p1, %r1, 0;",
        // A parameter through its own address, and through another's.
        "mov.b64 %rd4, k_param_0; cvta.param.u64 %rd5, %rd4;"
        "ld.u64 %rd6, [%rd5]; st.global.u64 [%rd2], %rd6;",
        "mov.b64 %rd4, k_param_2; ld.param.u64 %rd6, [%rd4+-16];"
        "st.global.u64 [%rd2], %rd6;",
        "ld.param.u64 %rd6, [k_param_2+-8]; st.global.u64 [%rd2], %rd6;",
        "brx.idx %rd1, targets;", "@%rd1 bra L;",
        "bfe.u64 %rd4, %rd1, 20, 4; st.global.u64 [%rd2], %rd4;",
        "lop3.b32 %r1|%p1, %rd1, 7, 7, 0xE8, 0; @%p1 bra L;",
        "prmt.b32 %r1, %rd1, 0, 0x3210; st.local.u32 [%rd5], %r1;",
        "red.shared.add.u64 [%r1], %rd1;",
        "st.async.weak.shared::cluster"
        ".mbarrier::complete_tx::bytes.u64 [%r1], %rd1, [%r2];",
        // A number beside an address, in other words than `setp`.
        "add.u64 %rd4, %rd1, 0xffff000000000000; setp.lt.u64 %p1, %rd4, %rd1;",
        "shl.b64 %rd4, %rd3, 40; add.u64 %rd4, %rd1, %rd4;"
        "setp.lt.u64 %p1, %rd4, %rd1;",
        "mul.lo.u64 %rd4, %rd3, 0x1000000; add.u64 %rd4, %rd1, %rd4;"
        "setp.lt.u64 %p1, %rd4, %rd1;",
        "ld.global.u64 %rd5, [%rd2]; add.u64 %rd4, %rd1, %rd5;"
        "setp.lt.u64 %p1, %rd4, %rd1;",
        "add.u64 %rd4, %rd1, -0x7f0000001000; setp.eq.u64 %p1, %rd4, 0;",
        "min.u64 %rd4, %rd1, 0x10000000000; setp.eq.u64 %p1, %rd4, %rd1;",
        "max.s64 %rd4, %rd3, %rd1; setp.eq.u64 %p1, %rd4, %rd1;",
        "selp.b64 %rd4, %rd1, %rd3, %p2; setp.eq.u64 %p1, %rd4, %rd1;",
        "selp.b64 %rd4, %rd1, %rd3, %p2; add.u64 %rd4, %rd4, 4;"
        "setp.lt.u64 %p1, %rd4, %rd1;",
        "selp.b64 %rd4, %rd1, %rd3, %p2; sub.u64 %rd4, %rd4, %rd1;"
        "st.global.u64 [%rd2], %rd4;",
        "sub.s64 %rd4, %rd1, %rd2; shl.b64 %rd5, %rd4, 20;"
        "setp.lt.s64 %p1, %rd5, %rd4;",
        "and.b64 %rd4, %rd1, -4096; setp.eq.u64 %p1, %rd4, %rd1;",
        "st.local.u64 [l], %rd1; atom.local.or.b64 %rd4, [l], 0;"
        "st.global.u64 [%rd2], %rd4;",
        "set.eq.u32.u64 %r1, %rd1, %rd3;", "setp.lt.u64 %p1, %rd1, 0;"})
    EXPECT_NE(why(body), "") << body;
}

TEST(PointerUse, WhatCompilersWrite) {
  for (const char *body :
       {"cvta.to.global.u64 %rd4, %rd1; add.s64 %rd5, %rd4, %rd6;"
        "ld.global.nc.L1::no_allocate.L2::128B.f32 %f1, [%rd5+4];"
        "cvta.to.global.u64 %rd7, %rd2; st.global.f32 [%rd7], %f1;",
        "cvt.u32.u64 %r1, %rd1; and.b32 %r2, %r1, 15; setp.eq.s32 %p1, %r2, 0;",
        "neg.s64 %rd4, %rd1; shr.u64 %rd5, %rd4, 2; and.b64 %rd6, %rd5, 3;"
        "st.global.u64 [%rd2], %rd6;",
        "and.b64 %rd4, %rd1, -16; ld.global.f32 %f1, [%rd4];",
        // A difference of addresses as an induction variable.
        "sub.s64 %rd4, %rd2, %rd1; add.s64 %rd5, %rd1, %rd6;"
        "add.s64 %rd7, %rd5, %rd4; st.global.f32 [%rd7], %f1;",
        "mul.wide.s32 %rd4, %r1, 4; mad.lo.s64 %rd5, %rd3, %rd4, %rd1;"
        "ld.global.f32 %f1, [%rd5];",
        "selp.b64 %rd4, %rd1, %rd2, %p1; ld.global.f32 %f1, [%rd4];",
        "mov.u64 %rd4, s; st.shared.u64 [%rd4], %rd3;",
        "mbarrier.init.shared::cta.b64 [%r1], 1;",
        // The end of a range, and which of two begins first.
        "mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4;"
        "add.s64 %rd5, %rd1, %rd4; shl.b64 %rd6, %rd3, 2;"
        "add.s64 %rd7, %rd1, %rd6; setp.lt.u64 %p1, %rd5, %rd7;",
        "add.s64 %rd5, %rd5, 4; mov.u64 %rd5, %rd1; add.s64 %rd6, %rd1, 4096;"
        "setp.ne.s64 %p1, %rd5, %rd6;",
        "min.u64 %rd4, %rd1, %rd2; ld.global.f32 %f1, [%rd4];",
        "selp.b64 %rd4, %rd1, 0, %p2; setp.eq.u64 %p1, %rd4, 0;",
        "bfe.u64 %rd4, %rd1, 2, 4; st.global.u64 [%rd2], %rd4;"})
    EXPECT_EQ(why(body), "") << body;
}

TEST(PointerUse, FunctionsThatCallThemselves) {
  // Many parameters, so that the table of them grows during the call.
  std::string f = ".func f(.param .b64 f_0";
  for (int i = 1; i < 40; ++i)
    f += ", .param .b64 f_" + std::to_string(i);
  f += ")\n{\n st.param.b64 [p], %rd1;\n call.uni f, (p";
  for (int i = 1; i < 40; ++i)
    f += ", p";
  f += ");\n ld.param.b64 %rd2, [f_39];\n shr.u64 %rd3, %rd2, 20;\n"
       " setp.eq.u64 %p1, %rd3, 0;\n ret;\n}\n";
  f += ".entry k(.param .u64 k_0) { ld.param.u64 %rd1, [k_0];\n"
       "st.param.b64 [q], %rd1;\n call.uni f, (q";
  for (int i = 1; i < 40; ++i)
    f += ", q";
  f += ");\n ret;\n}\n";
  std::string refusal;
  std::optional<PtxModule> module = readPtx(f, refusal);
  ASSERT_TRUE(module) << refusal;
  KernelLaunch launch;
  launch.kernel = "k";
  launch.args = {{"x", PassedArgument::Buffer, 8}};
  EXPECT_TRUE(StringRef(checkPointers(*module, {launch}).value_or(""))
                  .contains("the address of `x`"));
}

TEST(PointerUse, AnyBytesAreSurvived) {
  const StringRef pieces[] = {
      "{",        "}",       ";",       "%rd1",     "k_param_0", "[",
      "]",        ",",       "(",       ")",        "@",         "ld.param.u64",
      "st.u64",   "call",    "add.u64", "mov.b64",  "k",         "setp.eq.u64",
      "st.param", "and.b64", "15",      "-",        "shr.u64",   "f",
      "ld.u64",   "sub.u64", "+",       "atom.u64", "brx.idx",   ".shared"};
  unsigned state = 1;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = 0; i < 32; ++i) {
      state = state * 1664525u + 1013904223u;
      text += pieces[(state >> 16) % std::size(pieces)];
      text += ' ';
    }
    why(text);
  }
}

} // namespace
