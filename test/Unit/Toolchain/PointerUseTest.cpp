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
     // The end of a range, and whether both are one.
     "if (x != y) for (const float *p = x; p < x + n; ++p) y[0] += *p;"},
    {"DistanceCompared", "if (x + n + 16384 <= y) y[0] = x[0];",
     "where two buffers lie decides what the code does",
     "const float *p = n & 1 ? x : y, *end = p + n;"
     "for (; p < end; ++p) y[0] += *p;"},
    {"LowerOfTwo",
     "const float *far = x + 16384, *low = far < y ? far : y;"
     "if (low == y) y[0] = x[0];",
     "where two buffers lie decides what the code does",
     "y[0] = *(n & 1 ? x : y);"},
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

/// The address of a buffer in %rd1, its bits in %r1, kept in `s`.
const char bitsAndKept[] = "shr.u64 %rd4, %rd1, 12; cvt.u32.u64 %r1, %rd4;"
                           ".shared .align 16 .b8 s[16];"
                           ".shared .align 16 .b8 t[512];"
                           "mov.u64 %rd5, s; mov.u64 %rd6, t;";
const char keep[] = "st.shared.u64 [s], %rd1;";

TEST(PointerUse, OperandsThatAreNoAddress) {
  for (const char *body :
       {"barrier.cta.sync %r1, 64;", "bar.sync %r1;", "bar.arrive 1, %r1;",
        "barrier.cta.red.popc.u32 %r2, %r1, %p1;",
        "bar.red.or.pred %p2, 0, 64, %r1;", "bar.warp.sync %r1;",
        "nanosleep.u32 %r1;", "mapa.shared::cluster.u32 %r2, %r3, %r1;",
        "mapa.u64 %rd7, %rd6, %r1;", "setmaxnreg.inc.sync.aligned.u32 %r1;",
        "alloca.u64 %rd7, %rd4;", "stackrestore.u64 %rd4;",
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %rd1;",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd4, %rd6,"
        " 1, 1, 1, 0, 0;",
        // An instruction that nobody knows.
        "frobnicate.u32 %r2, %r1;", "frobnicate.u32 %r2, [%rd6], %r1;",
        "frobnicate.u32 %r1, [%rd6];",
        // Lanes that wait for one another.
        "shfl.sync.idx.b32 %r2, %r3, 0, 31, %r1;",
        "vote.sync.ballot.b32 %r2, %p1, %r1;",
        "redux.sync.add.u32 %r2, %r3, %r1;",
        "match.any.sync.b32 %r2, %r3, %r1;", "elect.sync %r2|%p1, %r1;",
        // Beside the address of an instruction that reaches memory.
        "mbarrier.arrive.shared::cta.b64 %rd7, [%rd6], %r1;",
        "cp.async.ca.shared.global [%rd6], [%rd2], 4, %r1;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%rd6], [%rd2], %r1, [%rd6];",
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile"
        ".mbarrier::complete_tx::bytes [%rd6], [%rd2, {%r1}], [%rd6];",
        "st.bulk.weak.shared::cta [%rd6], %rd4, 0;",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%rd6], 1,"
        " [%r1];",
        "ld.global.L2::cache_hint.f32 %f1, [%rd1], %rd4;",
        "st.global.L2::cache_hint.f32 [%rd1], %f1, %rd4;",
        "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r2}, [%rd6], %r1;",
        "prefetch.global.L2 [%rd4];", "multimem.red.add.u32 [%rd2], %r1;",
        // A predicate that is combined, a function that is chosen.
        "lop3.or.b32 %r2|%p1, %r1, 0, 1, 0xE8, 0;"
        "setp.eq.and.u32 %p2, 0, 0, %p1; selp.b32 %r2, 1, 0, %p2;",
        "mov.u64 %rd7, k; add.u64 %rd7, %rd7, %rd4; call %rd7, (), proto;",
        "cvt.pack.sat.u8.s32.b32 %r2, 0, %r1, 0; st.global.u32 [%rd2], %r2;",
        "isspacep.shared %p1, %rd4; @%p1 bra L;",
        // An address in a space in which no buffer lies.
        "ld.shared.u32 %r2, [%rd1];", "ld.local.u32 %r2, [%rd1];",
        "mov.b64 %rd7, k_param_0; add.u64 %rd7, %rd7, %rd4;"
        "ld.param.u32 %r2, [%rd7];"})
    EXPECT_NE(why(std::string(bitsAndKept) + body), "") << body;
}

TEST(PointerUse, CopiesOfWhatHoldsAnAddress) {
  for (const char *body :
       {"cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%rd5], 16;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%rd2],"
        " [%rd5], 16;",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        " [%rd6], [%rd5], 16, [%rd6];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta"
        ".mbarrier::complete_tx::bytes.add.u64 [%rd6], [%rd5], 16, [%rd6];",
        "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group"
        " [%rd2, {%r2}], [%rd5];",
        "multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%rd5],"
        " 16;",
        "cp.async.ca.shared.global [%rd6], [%rd5], 4;",
        // More than lies in a variable, from a number, and from memory.
        "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%rd6], 1024;",
        "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [16], 16;",
        "ld.shared.u32 %r2, [t]; cp.async.bulk.global.shared::cta.bulk_group"
        " [%rd2], [%r2], 16;",
        "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8 {%r2}, %rd7, %rd8, 1;",
        // Loads from beside it.
        "ld.shared.u32 %r2, [%rd6+512]; st.global.u32 [%rd2], %r2;",
        "sub.u64 %rd7, %rd5, %rd6; add.u64 %rd7, %rd6, %rd7;"
        "ld.shared.u32 %r2, [%rd7]; st.global.u32 [%rd2], %r2;",
        "ld.shared.u32 %r2, [16]; st.global.u32 [%rd2], %r2;",
        "ld.shared.u32 %r2, [t]; ld.shared.u32 %r2, [%r2];"
        "st.global.u32 [%rd2], %r2;",
        "atom.shared.add.u32 %r2, [16], 0; st.global.u32 [%rd2], %r2;",
        "add.u64 %rd7, %rd6, %rd3; ld.shared.u32 %r2, [%rd7];"
        "st.global.u32 [%rd2], %r2;",
        "st.local.u64 [8], %rd1; ld.local.u32 %r2, [8];"
        "st.global.u32 [%rd2], %r2;"})
    EXPECT_NE(why(std::string(bitsAndKept) + keep + body), "") << body;
  // The same of plain data, and beside an address.
  for (const char *body :
       {"cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%rd6], 512;",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        " [%rd6], [%rd6+16], 16, [%rd6];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%rd6], [%rd1], 16, [%rd6];",
        "ld.shared.u32 %r2, [%rd6+508]; st.global.u32 [%rd2], %r2;"}) {
    EXPECT_EQ(why(std::string(bitsAndKept) + keep + body), "") << body;
    EXPECT_EQ(why(std::string(bitsAndKept) + body), "") << body;
  }
}

TEST(PointerUse, PoliciesOfTheCache) {
  const std::string make =
      "createpolicy.range.global.L2::evict_last.b64 %rd4, [%rd1], 4096, 8192;";
  EXPECT_EQ(why(make + "ld.global.L2::cache_hint.f32 %f1, [%rd1], %rd4;"
                       "st.global.L2::cache_hint.f32 [%rd2], %f1, %rd4;"),
            "");
  for (const char *body :
       {"setp.eq.u64 %p1, %rd4, 0;", "st.global.u64 [%rd2], %rd4;",
        "and.b64 %rd5, %rd4, 15; st.global.u64 [%rd2], %rd5;",
        "add.u64 %rd5, %rd4, 1; ld.global.L2::cache_hint.f32 %f1, [%rd1], "
        "%rd5;",
        "ld.global.f32 %f1, [%rd4];"})
    EXPECT_NE(why(make + body), "") << body;
}

TEST(PointerUse, TensorMaps) {
  const std::string make =
      ".shared .align 128 .b8 m[128];"
      "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [m], %rd1;";
  const std::string send =
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release"
      ".gpu.sync.aligned [%rd2], [m], 128;";
  EXPECT_EQ(why(make + send +
                "cp.async.bulk.tensor.1d.shared::cluster.global.tile"
                ".mbarrier::complete_tx::bytes [%r1], [%rd2, {%r2}], [%r3];"
                "ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd1], %f1;"),
            "");
  for (const char *body :
       {"ld.shared.u32 %r1, [m]; st.global.u32 [%rd2], %r1;",
        "ld.global.u32 %r1, [%rd2]; st.global.u32 [%rd1], %r1;",
        "cp.async.ca.shared.global [%r1], [%rd2], 4;",
        "shr.u64 %rd4, %rd1, 12; cvt.u32.u64 %r1, %rd4;"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [m], 0, %r1;",
        "add.u64 %rd4, %rd1, %rd1;"
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [m], "
        "%rd4;"})
    EXPECT_NE(why(make + send + body), "") << body;
}

TEST(PointerUse, Distances) {
  for (const char *body :
       {// From where it begins, and back; in elements.
        "add.s64 %rd5, %rd3, %rd4; add.s64 %rd8, %rd1, %rd5;",
        "shr.s64 %rd5, %rd4, 2; shl.b64 %rd6, %rd5, 2;"
        "add.s64 %rd8, %rd1, %rd6;",
        "sub.s64 %rd8, %rd2, %rd4;"})
    EXPECT_EQ(why("sub.s64 %rd4, %rd2, %rd1;" + std::string(body) +
                  "ld.global.f32 %f1, [%rd8]; st.global.f32 [%rd1], %f1;"),
              "")
        << body;
  for (const char *body :
       {// An index, from where it does not begin, two that are compared.
        "shr.s64 %rd5, %rd4, 20; add.s64 %rd8, %rd1, %rd5;",
        "shr.s64 %rd5, %rd4, 4; add.s64 %rd8, %rd1, %rd5;",
        "shl.b64 %rd5, %rd4, 2; add.s64 %rd8, %rd1, %rd5;",
        "add.s64 %rd8, %rd2, %rd4;", "sub.s64 %rd8, %rd1, %rd4;",
        "cvt.sat.s32.s64 %r1, %rd4; cvt.s64.s32 %rd5, %r1;"
        "add.s64 %rd8, %rd1, %rd5;",
        "mov.u64 %rd5, s; add.s64 %rd8, %rd5, %rd4;",
        "sub.s64 %rd5, %rd1, %rd2; add.s64 %rd6, %rd5, 65536;"
        "setp.lt.s64 %p1, %rd4, %rd6; mov.u64 %rd8, %rd1;"})
    EXPECT_NE(why("sub.s64 %rd4, %rd2, %rd1;" + std::string(body) +
                  "ld.f32 %f1, [%rd8]; st.global.f32 [%rd1], %f1;"),
              "")
        << body;
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
