// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rules on PTX that no compiler here would write, so that inline assembly
// cannot hide what it does.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

using namespace fsr;
using llvm::StringRef;

namespace {

const char head[] = ".version 9.0\n.target sm_90a, debug\n.address_size 64\n"
                    ".file 1 \"/kernel.cu\", 0, 12\n"
                    ".global .align 4 .u32 g;\n"
                    ".global .align 4 .b8 t[8] = {1, 2, 3};\n";

/// Why a kernel `k` with this body is refused; empty where it is not.
std::string why(const std::string &body, const std::string &before = "") {
  std::string ptx = head + before +
                    ".visible .entry k(\n .param .u64 k_param_0\n)\n"
                    ".maxntid 128\n{\n .reg .b64 %rd<9>;\n"
                    ".shared .b64 s; .local .b64 l[4];\n" +
                    body + "\n ret;\n}\n";
  return checkContract(ptx, {"k"}).value_or("");
}

TEST(Contract, ReadingIsFine) {
  EXPECT_EQ(why("mov.u64 %rd1, t;\nadd.s64 %rd2, %rd1, 4;\n"
                "ld.global.nc.u32 %r1, [%rd2];\nst.global.u32 [%rd4], %r1;"),
            "");
  EXPECT_EQ(why("ld.global.u32 %r1, [g];"), "");
  EXPECT_EQ(why("$L_1:\n@!%p1 bra $L_1;\n.loc 1 2 3, function_name $x, "
                "inlined_at 1 2 3\nst.global.u32 [%rd1], %r1;"),
            "");
}

TEST(Contract, WritingIsNot) {
  for (const char *body :
       {"st.global.u32 [g], 1;", "@%p1 st.global.u32 [g], 1;",
        "@!%p1 atom.global.add.u32 %r1, [g], 1;",
        "red.global.add.u32 [t+4], 1;",
        "mov.u64 %rd1, g; st.global.u32 [%rd1], 1;",
        "mov.u64 %rd1, g; cvta.global.u64 %rd2, %rd1; add.s64 %rd3, %rd2, %rd5;"
        "st.u32 [%rd3+8], 1;",
        "st.u32 [%rd3], 1; mov.u64 %rd3, g;", // Around a loop.
        // A register of the variable's own name.
        "{ .reg .u64 g; mov.u64 g, %rd4; } red.global.add.u32 [g], 1;",
        // Through memory, and out of it by another instruction.
        "mov.u64 %rd3, s; st.shared.u64 [%rd3], g;"
        "ld.shared.u64 %rd4, [%rd3]; st.u32 [%rd4], 1;",
        "st.local.u64 [l+8], g; ld.local.u64 %rd4, [l+8]; st.u32 [%rd4], 1;",
        "st.local.u64 [l+8], g; ld.local.u64 %rd4, [l+(4+4)];"
        "st.u32 [%rd4], 1;",
        "discard.global.L2 [t], 128;",
        "{ .reg .u64 own; mov.u64 own, g; st.u32 [own], 1; }",
        "cp.async.ca.shared.global [g], [%rd1], 16;",
        "/* ; */ st.global.u32 // x\n [g], 1;",
        ".loc 1 2 3 st.global.u32 [g], 1;",
        "multimem.red.global.add.u32 [g], 1;"})
    EXPECT_TRUE(StringRef(why(body)).contains(" in device memory is used by"))
        << body << ": " << why(body);
}

TEST(Contract, AddressesAreNotRebuilt) {
  for (const char *body :
       {"mov.b64 {%r1, %r2}, g; mov.b64 %rd3, {%r1, %r2}; st.u32 [%rd3], 1;",
        "mov.v2.b64 %v, {g, g}; st.global.u32 [%v.x], 1;",
        // Bit by bit, under a predicate, by a branch, and through the carry.
        "shr.u64 %rd4, g, 8; and.b64 %rd4, %rd4, 1; setp.ne.u64 %p1, %rd4, 0;"
        "@%p1 add.u64 %rd5, %rd5, 256; st.u32 [%rd5], 1;",
        "shr.u64 %rd4, g, 8; and.b64 %rd4, %rd4, 1; setp.ne.u64 %p1, %rd4, 0;"
        "@%p1 bra L; add.u64 %rd5, %rd5, 256; L: st.u32 [%rd5], 1;",
        "shl.b64 %rd4, g, 8; add.cc.u64 %rd4, %rd4, %rd4;"
        "addc.u64 %rd5, 0, 0; st.u32 [%rd5], 1;",
        "shl.b64 %rd4, g, 8; slct.s32.s32 %r1, 1, 0, %rd4;"
        "cvt.u64.u32 %rd5, %r1; st.u32 [%rd5], 1;",
        "prmt.b32 %r1, g, 0, 0x3210; cvt.u64.u32 %rd5, %r1; st.u32 [%rd5], 1;",
        "bfe.u64 %rd4, g, 8, 20; st.u32 [%rd4], 1;",
        "bfi.b64 %rd4, g, 0, 0, 64; st.u32 [%rd4], 1;",
        "cvt.u32.u64 %r1, g; shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;"
        "cvt.u64.u32 %rd5, %r2; st.u32 [%rd5], 1;",
        "setp.lt.u64 %p1, g, 4096; vote.sync.ballot.b32 %r1, %p1, -1;"
        "cvt.u64.u32 %rd5, %r1; st.u32 [%rd5], 1;",
        // Kept whole, read in parts, through a place that is not known.
        "st.local.u64 [l], g; ld.param.u64 %rd6, [k_param_0];"
        "ld.local.u32 %r1, [%rd6];"
        "cvt.u64.u32 %rd5, %r1; st.u32 [%rd5], 1;",
        "st.shared.u64 [s], g; atom.shared.or.b64 %rd5, [s], 0;"
        "st.u32 [%rd5], 1;",
        "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], g;",
        "nobody.knows.this.b64 %rd5, g; st.u32 [%rd5], 1;"})
    EXPECT_NE(why(body), "") << body;
}

TEST(Contract, ConditionsInOperandsHideNothing) {
  for (const char *body :
       {"red.global.add.u32 [g], 1 ? 1 : 0;", "st.global.u32 [g+(1?0:4)], 1;",
        "mov.b64 %rd1, {%warpid, 1?0:0};", "mov.b64 %rd1, {%clock, 1 ?0: 0};",
        "L: red.global.add.u32 [g], 1 ? 1 : 0;"})
    EXPECT_TRUE(StringRef(why(body)).contains("has a condition")) << body;
  // Labels stand where a statement begins, and end none.
  EXPECT_EQ(why("L: M: add.u32 %r1, %r1, 1; { N: } bra L;"), "");
  EXPECT_NE(why("L: M: red.global.add.u32 [g], 1;"), "");
  EXPECT_NE(why("red.global.add.u32 [g], 1 : ;"), "");
}

TEST(Contract, CopiesMayReadFromAVariable) {
  EXPECT_EQ(why("cp.async.ca.shared.global [%r1], [t], 4;"), "");
}

TEST(Contract, AddressesAreFollowedThroughFunctions) {
  auto used = [](StringRef reason) {
    return reason.contains("`g` in device memory is used by");
  };
  const std::string get = ".func (.param .b64 r) get() {\n"
                          "st.param.b64 [r], g; ret; }\n";
  EXPECT_TRUE(used(why("call.uni (q), get, ();\nld.param.b64 %rd1, [q];\n"
                       "st.u32 [%rd1], 1;",
                       get)));
  EXPECT_EQ(why("call.uni (q), get, ();\nld.param.b64 %rd1, [q];\n"
                "ld.u32 %r1, [%rd1];",
                get),
            "");
  // Through a pointer to the function, which a register or a variable holds.
  EXPECT_TRUE(used(why("mov.u64 %rd2, get; call (q), %rd2, (), proto;\n"
                       "ld.param.b64 %rd1, [q]; st.u32 [%rd1], 1;",
                       get)));
  EXPECT_TRUE(used(why("ld.global.u64 %rd2, [f]; call (q), %rd2, (), proto;\n"
                       "ld.param.b64 %rd1, [q]; st.u32 [%rd1], 1;",
                       get + ".global .u64 f = get;\n")));
  const std::string pass = "st.param.b64 [p], g;\ncall.uni helper, (p);";
  EXPECT_TRUE(used(why(pass, ".func helper(.param .b64 x) {\n"
                             "ld.param.b64 %rd1, [x]; st.u32 [%rd1], 1; }\n")));
  EXPECT_EQ(why(pass, ".func helper(.param .b64 x) {\n"
                      "ld.param.b64 %rd1, [x]; ld.u32 %r1, [%rd1]; }\n"),
            "");
  // In the caller's local memory.
  EXPECT_TRUE(used(why("st.local.u64 [l], g; mov.u64 %rd1, l;\n"
                       "st.param.b64 [p], %rd1;\ncall.uni helper, (p);",
                       ".func helper(.param .b64 x) { ld.param.b64 %rd1, [x];"
                       " ld.u64 %rd2, [%rd1]; st.u32 [%rd2], 1; }\n")));
  EXPECT_EQ(why("mov.u64 %rd1, t;\nst.param.b64 [param0+0], %rd1;\n"
                "call.uni (r), vprintf, (param0);",
                ".extern .func (.param .b32 r) vprintf(.param .b64 x);\n"),
            "");
  EXPECT_NE(why("", ".global .u64 p = g;\n").find("kept in another variable"),
            std::string::npos);
  EXPECT_NE(why("", ".func (.reg .b64 r) h() { ret; }\n"), "");
}

TEST(Contract, ABraceInAssemblyHidesNothing) {
  EXPECT_NE(
      why("ret; }\n.global .u32 h, i;\n.func f() { st.global.u32 [i], 1;"), "");
  EXPECT_NE(why("} }"), "");
  EXPECT_NE(why("{"), "");
}

TEST(Contract, DeclarationsThatNobodyFulfils) {
  for (const char *before :
       {".extern .global .u32 e;\n", ".global .u32 d = 1, e;\n",
        ".extern .func helper();\n", ".extern .const .b8 e[];\n",
        ".visible .global .attribute(.managed) .u32 m;\n",
        ".global .texref tex;\n",
        ".extern .func (.param .b64 r) malloc(.param .b64 x);\n",
        ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 x);\n"})
    EXPECT_NE(why("", before), "") << before;
  EXPECT_EQ(why("", ".const .align 4 .u32 c = 3;\n"
                    ".const .align 4 .b8 zeros[16];\n"
                    ".extern .shared .align 16 .b8 dyn[];\n"
                    ".section .debug_str { x: .b8 1, 2 }\n"),
            "");
}

TEST(Contract, ClocksAndPlaces) {
  for (const char *name :
       {"%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo",
        "%smid", "%gridid", "%envreg1", "%pm0", "%pm1_64", "%warpid",
        "%current_graph_exec", "%reserved_smem_offset_0"})
    EXPECT_NE(why("mov.u32 %r1, " + std::string(name) + ";").find(name),
              std::string::npos)
        << name;
  for (const char *name :
       {"%tid.x", "%laneid", "%nsmid", "%p1", "%nwarpid", "%ctaid.x",
        "%lanemask_lt", "%dynamic_smem_size", "%cluster_ctarank"})
    EXPECT_EQ(why("mov.u32 %r1, " + std::string(name) + ";"), "") << name;
}

TEST(Contract, Instructions) {
  for (auto [body, reason] :
       {std::pair("brkpt;", "debugger"),
        {"@%p1 brkpt;", "debugger"},
        {"pmevent 1;", "profiler"},
        {"tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", "texture"},
        {"sust.b.1d.b32.trap [%rd1, {%r1}], %r2;", "surface"},
        {"istypep.texref %p1, %rd1;", "texture"},
        {"vadd.u32.u32.u32 %r1, %r2, %r3;", "video"},
        {"suld.b.1d.b32.trap %r2, [%rd1, {%r1}];", "surface"},
        {"griddepcontrol.launch_dependents;", "the next launch start"},
        {".pragma \"ptxas -O0\";", "is not known"}})
    EXPECT_TRUE(StringRef(why(body)).contains(reason)) << body << why(body);
  for (const char *body :
       {"trap;", "exit;", "griddepcontrol.wait;", "nanosleep.u32 100;",
        "setmaxnreg.inc.sync.aligned.u32 240;", ".pragma \"nounroll\";",
        "createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;",
        "prefetch.global.L2::evict_last [%rd1];", "membar.sys;",
        "applypriority.global.L2::evict_normal [%rd1], 128;",
        "discard.global.L2 [%rd1], 128;", "fence.acq_rel.sys;",
        "redux.sync.add.s32 %r1, %r2, -1;",
        "mapa.shared::cluster.u32 %r1, "
        "%r2, 1;"})
    EXPECT_EQ(why(body), "") << body;
}

TEST(Contract, SecondNames) {
  EXPECT_TRUE(StringRef(why("", ".func f() { ret; }\n.alias g2, f;\n"))
                  .contains("second name"));
  EXPECT_EQ(why("", ".weak .func f() { ret; }\n.visible .func h() { ret; }\n"
                    ".weak .entry other() { ret; }\n"),
            "");
  EXPECT_EQ(why("", ".entry k() { ret; }\n"), "`k` is defined twice");
}

TEST(Contract, WordsWithColonsAreOneWord) {
  EXPECT_NE(why("st.global.L1::no_allocate.L2::cache_hint.u32 [g], 1, %rd1;"),
            "");
  EXPECT_EQ(why("ld.global.L1::no_allocate.L2::128B.u32 %r1, [g];"), "");
}

TEST(Contract, MissingKernels) {
  EXPECT_EQ(checkContract(".visible .entry a() { ret; }\n"
                          ".entry b() { ret; }\n",
                          {"a", "c"}),
            "the source defines no kernel `c`; it defines `a`, `b` (a kernel "
            "is declared extern \"C\" __global__)");
  EXPECT_TRUE(checkContract("", {"a"}));
  EXPECT_FALSE(checkContract(".entry a() { ret; }", {"a"}));
}

TEST(Contract, AnyBytesAreSurvived) {
  const StringRef pieces[] = {"{",       "}",    ";",    "=",
                              "\"",      "/*",   "//",   ".global",
                              ".entry",  "(",    ")",    "@",
                              ":",       ".loc", "x",    "\n",
                              ".target", ",",    "call", "st.param.b64",
                              "[",       "]"};
  unsigned state = 1;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = 0; i < 24; ++i) {
      state = state * 1664525u + 1013904223u;
      text += pieces[(state >> 16) % std::size(pieces)];
      text += ' ';
    }
    checkContract(text, {});
  }
}

} // namespace
