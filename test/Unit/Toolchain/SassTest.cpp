// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What machine code consists of: from texts as nvdisasm prints them, from no
// such texts, and from a program in nvdisasm's place that does anything. The
// real one is asked where it is installed.
//
//===----------------------------------------------------------------------===//

#include "ToolchainTesting.h"

#include "../Support/TemporaryFolder.h"
#include "fsr/Support/Files.h"

#include "llvm/Support/Path.h"

#include <sys/stat.h>

using namespace fsr;
using namespace fsr::testing;

namespace {

constexpr llvm::StringLiteral text =
    R"(	.headerflags	@"EF_CUDA_SW_1729687"
	.elftype	@"ET_EXEC"

//--------------------- .text.fast                --------------------------
	.section	.text.fast,"ax",@progbits
	.align	128
        .global         fast
        .type           fast,@function
fast:
.text.fast:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0020*/                   IMAD.MOV.U32 R3, RZ, RZ, RZ ;
        /*0030*/                   HFMA2.MMA R2, -RZ, RZ, 0, 0 ;
        /*0040*/                   IMAD.WIDE R4, R5, 0x8, R2 ;
        /*0050*/                   LDG.E.128 R4, desc[UR8][R4.64] ;
        /*0060*/                   LDG.E.64.CONSTANT R10, desc[UR8][R6.64] ;
        /*0070*/                   LDG.E R3, desc[UR8][R6.64] ;
        /*0080*/                   LDG.E.U8 R3, desc[UR8][R6.64] ;
        /*0090*/                   STS.128 [R9], R4 ;
        /*00a0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00b0*/                   LDS R8, [UR4] ;
        /*00c0*/              @!P0 BRA `(.L_x_1) ;
        /*00d0*/                   FFMA R8, R8, R9.reuse, R10 ;
        /*00e0*/                   FADD R8, R8, R9 ;
        /*00f0*/                   FMUL.FTZ R8, R8, R9 ;
        /*0100*/                   FSETP.GEU.AND P0, PT, R8, RZ, PT ;
        /*0110*/                   MUFU.EX2 R11, R9 ;
        /*0120*/                   DFMA R10, R10, 1.5, R14 ;
        /*0130*/                   HADD2.F32 R1, R2, R3 ;
        /*0140*/                   HMMA.16816.F32 R12, R4, R14, RZ ;
        /*0150*/                   HGMMA.64x64x16.F32 R24, gdesc[UR4], R24 ;
.L_x_1:
        /*0160*/                   REDG.E.ADD.STRONG.GPU desc[UR8][R16.64], R13 ;
        /*0170*/                   ATOMS.ADD R1, [R2], R3 ;
        /*0180*/                   SHFL.BFLY PT, R3, R2, 0x10, 0x1f ;
        /*0190*/                   STL [R6], R7 ;
        /*01a0*/                   LDL.LU R3, [R0] ;
        /*01b0*/                   LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64] ;
        /*01c0*/                   F2I.TRUNC.NTZ R1, R2 ;
        /*01d0*/                   STG.E.64 desc[UR8][R6.64], R10 ;
        /*01e0*/                   EXIT ;
.L_x_9:
        /*01f0*/                   BRA `(.L_x_9);
        /*0200*/                   NOP;
.L_x_10:

//--------------------- .text.other               --------------------------
	.section	.text.other,"ax",@progbits
other:
.text.other:
        /*0000*/                   EXIT ;
	.section	.nv.shared.fast,"aw",@nobits
        /*0000*/ 	.byte	0x04, 0x2f
)";

TEST(SassTest, ClassesOfInstructions) {
  std::vector<InstructionMix> mixes = parseSass(text);
  ASSERT_EQ(mixes.size(), 2u);
  EXPECT_EQ(mixes[0].kernel, "fast");
  EXPECT_EQ(
      describe(mixes[0]),
      "`fast` has 30 machine instructions, each counted once where it "
      "stands: 1 FP32 FMA, 1 FP32 add, 1 FP32 mul, 1 other FP32, 1 FP16, "
      "1 FP64, 2 MMA, 1 MUFU, 1 convert, 1 integer, 1 LDG below 32 bits, "
      "1 LDG.32, 1 LDG.64, 1 LDG.128, 1 STG.64, 1 asynchronous copy, 1 "
      "LDS, 1 STS, 1 LDL (spills, indexed arrays), 1 STL (spills, indexed "
      "arrays), 1 barrier, 2 atomic, 1 shuffle or vote, 1 branch, 4 "
      "other");
  EXPECT_EQ(mixes[1].kernel, "other");
  EXPECT_EQ(mixes[1].all(), 1);
}

TEST(SassTest, AnyTextIsTaken) {
  EXPECT_TRUE(parseSass("").empty());
  EXPECT_TRUE(parseSass("        /*0000*/ EXIT ;\n").empty());
  for (llvm::StringRef line :
       {"/*", "/*0000*/", "/*0000*/ ;", "/*0000*/ @", "/*0000*/ @P0",
        "/*0000*/ {", "/**/ EXIT", "/*0000*/ \xff\xfe ;", "/*0000*/ .byte 1",
        "/*0000*/ lower case"}) {
    std::vector<InstructionMix> mixes =
        parseSass((".section .text.k,\"ax\"\n" + line + "\n").str());
    ASSERT_EQ(mixes.size(), 1u) << line.str();
    EXPECT_EQ(mixes[0].all(), 0) << line.str();
  }
  std::string many;
  for (unsigned i = 0; i < 1000; ++i)
    many += ".section .text.k" + std::to_string(i) + ",\"ax\"\n/*0*/ EXIT ;\n";
  std::vector<InstructionMix> mixes = parseSass(many);
  EXPECT_EQ(mixes.size(), Profile::mostKernels);
  EXPECT_EQ(mixes.back().all(), 1);
}

class DisassemblerTest : public ::testing::Test {
protected:
  void SetUp() override {
    // Beside the worker that was just built, which holds the program.
    llvm::SmallString<128> folder(FSR_TEST_WORKER);
    llvm::sys::path::remove_filename(folder);
    setenv("FSR_BIN", folder.c_str(), 1);
    build.cubin = "no cubin at all\n";
    build.resources.emplace_back().kernel = "fast";
  }
  void TearDown() override { unsetenv("FSR_BIN"); }
  /// A program that is called as nvdisasm is.
  void install(const std::string &script) {
    toolkit.root = "/"; // With a shell.
    toolkit.disassembler = folder.path + "/nvdisasm";
    ASSERT_FALSE(bool(
        writeFileAtomically(toolkit.disassembler, "#!/bin/sh\n" + script)));
    ASSERT_EQ(chmod(toolkit.disassembler.c_str(), 0755), 0);
  }
  std::string refusal() {
    auto mixes = readInstructions(toolkit, build);
    return mixes ? "" : llvm::toString(mixes.takeError());
  }

  fsr::TemporaryFolder folder;
  Toolkit toolkit;
  Build build;
};

TEST_F(DisassemblerTest, IsSaidToBeMissing) {
  EXPECT_EQ(refusal(), "nvdisasm is not installed");
}

TEST_F(DisassemblerTest, KernelsOfTheBuildAreTold) {
  ASSERT_FALSE(bool(writeFileAtomically(folder.path + "/text", text)));
  install("read -r bytes < \"$2\"\n"
          "[ \"$1 $bytes\" = '-c no cubin at all' ] || exit 9\n"
          "while IFS= read -r line; do printf '%s\\n' \"$line\"; done < '" +
          folder.path + "/text'\n");
  auto mixes = readInstructions(toolkit, build);
  ASSERT_TRUE(bool(mixes)) << llvm::toString(mixes.takeError());
  ASSERT_EQ(mixes->size(), 1u);
  EXPECT_EQ(mixes->front().kernel, "fast");
  build.resources[0].kernel = "unknown";
  EXPECT_EQ(refusal(), "nvdisasm: none of the kernels is in its text");
}

TEST_F(DisassemblerTest, WhatItDoesIsNoFault) {
  install("echo 'nvdisasm fatal   : not an ELF image' >&2; exit 255\n");
  std::string why = refusal();
  EXPECT_NE(why.find("exit status 255"), std::string::npos) << why;
  EXPECT_NE(why.find("not an ELF image"), std::string::npos) << why;
  install("exec head -c 70000000 /dev/zero\n");
  EXPECT_EQ(refusal(), "nvdisasm: more than 64 MiB of text");
}

TEST_F(DisassemblerTest, IsHeld) {
  install("echo x > " + folder.path + "/outside || exit 7\n");
  std::string why = refusal();
  EXPECT_FALSE(llvm::sys::fs::exists(folder.path + "/outside")) << why;
  // Nothing runs that cannot be held.
  setenv("FSR_BIN", folder.path.c_str(), 1);
  why = refusal();
  EXPECT_NE(why.find("'fsr-worker' not found"), std::string::npos) << why;
}

TEST_F(DisassemblerTest, TheRealOne) {
  FSR_NEED_NVRTC();
  toolkit = llvm::cantFail(findToolkit());
  if (toolkit.disassembler.empty())
    GTEST_SKIP() << "needs a CUDA toolkit with nvdisasm (package "
                    "cuda-nvdisasm of NVIDIA's), or nvdisasm on PATH";
  CompileOutcome outcome =
      compile("extern \"C\" __global__ void k(float4 *x, float *y) {\n"
              "  float4 v = x[threadIdx.x];\n"
              "  __shared__ float s[64];\n"
              "  s[threadIdx.x] = v.x;\n"
              "  __syncthreads();\n"
              "  y[threadIdx.x] = fmaf(s[63 - threadIdx.x], v.y, v.z);\n"
              "}\n");
  ASSERT_TRUE(outcome.build) << outcome.message;
  auto mixes = readInstructions(toolkit, *outcome.build);
  ASSERT_TRUE(bool(mixes)) << llvm::toString(mixes.takeError());
  ASSERT_EQ(mixes->size(), 1u);
  InstructionMix &mix = mixes->front();
  EXPECT_EQ(mix.kernel, "k");
  EXPECT_EQ(mix[CodeClass::Load128], 1) << describe(mix);
  EXPECT_EQ(mix[CodeClass::Store32], 1);
  EXPECT_EQ(mix[CodeClass::Fma32], 1);
  EXPECT_EQ(mix[CodeClass::Barrier], 1);
  EXPECT_EQ(mix[CodeClass::LoadShared], 1);
  EXPECT_EQ(mix[CodeClass::StoreShared], 1);
  EXPECT_EQ(mix[CodeClass::Branch], 0);
}

} // namespace
