// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The toolkit's own programs, and the reports of ptxas in both of its forms.
//
//===----------------------------------------------------------------------===//

#include "ToolchainTesting.h"

#include "llvm/ADT/StringRef.h"

using namespace fsr;
using namespace fsr::testing;
using llvm::StringRef;

namespace {

const char ptx[] = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 x) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  .shared .align 4 .b8 s[256];
  ld.param.u64 %rd1, [x];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r1, [%rd2];
  st.shared.u32 [s], %r1;
  bar.sync 0;
  ld.shared.u32 %r1, [s+4];
  st.global.u32 [%rd2+4], %r1;
  ret;
}
)";

TEST(ResourceReport, OfPtxas) {
  auto kernels = parseResourceReport(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem\n"
      "ptxas info    : Function properties for helper\n"
      "    99 bytes stack frame, 98 bytes spill stores, 97 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
      "ptxas info    : Function properties for b\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].kernel, "a");
  EXPECT_EQ(kernels[0].registers, 40);
  EXPECT_EQ(kernels[0].sharedBytes, 512);
  EXPECT_EQ(kernels[0].stackBytes, 16);
  EXPECT_EQ(kernels[0].spillStoreBytes, 8);
  EXPECT_EQ(kernels[0].spillLoadBytes, 12);
  EXPECT_EQ(kernels[1].kernel, "b");
  EXPECT_EQ(kernels[1].registers, 8);
  EXPECT_EQ(kernels[1].sharedBytes, 0);
}

TEST(ResourceReport, OfNvrtc) {
  auto kernels = parseResourceReport(
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     8 bytes stack frame, 0 bytes spill stores, 0 bytes "
      "spill loads\n"
      "ptxas info    : Used 10 registers, used 1 barriers, 512 bytes smem\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].registers, 10);
  EXPECT_EQ(kernels[0].stackBytes, 8);
}

TEST(ResourceReport, IgnoresEchoedText) {
  EXPECT_TRUE(parseResourceReport("  ptxas info    : Compiling entry function "
                                  "'k' for 'sm_90'\n  ptxas info : Used 1 "
                                  "registers\nptxas info    : Used 3 registers")
                  .empty());
}

TEST(AssemblePtx, GivesCubinAndResources) {
  FSR_NEED_NVRTC();
  Toolkit toolkit = llvm::cantFail(findToolkit());
  for (unsigned level : {0u, 3u}) {
    auto build = assemblePtx(toolkit, ptx, "sm_90", level);
    ASSERT_TRUE(bool(build)) << llvm::toString(build.takeError());
    EXPECT_TRUE(StringRef(build->cubin)
                    .starts_with("\x7f"
                                 "ELF"));
    EXPECT_EQ(build->ptx, ptx);
    EXPECT_TRUE(StringRef(build->toolchain).starts_with("ptxas 1"))
        << build->toolchain;
    ASSERT_TRUE(build->find("copy"));
    EXPECT_EQ(build->find("copy")->sharedBytes, 256);
    EXPECT_GT(build->find("copy")->registers, 0);
  }
}

TEST(AssemblePtx, BadPtxIsAnErrorWithoutPaths) {
  FSR_NEED_NVRTC();
  Toolkit toolkit = llvm::cantFail(findToolkit());
  auto build =
      assemblePtx(toolkit, ".version 8.0\n.target sm_90\nnonsense", "sm_90");
  ASSERT_FALSE(build);
  std::string message = llvm::toString(build.takeError());
  EXPECT_TRUE(StringRef(message).contains("line 3")) << message;
  EXPECT_FALSE(StringRef(message).contains("/tmp")) << message;
  auto other = assemblePtx(toolkit, ptx, "sm_90;x");
  ASSERT_FALSE(other);
  llvm::consumeError(other.takeError());
}

TEST(MakeFatbin, HoldsBothAndIsReproducible) {
  FSR_NEED_NVRTC();
  Toolkit toolkit = llvm::cantFail(findToolkit());
  auto build = assemblePtx(toolkit, ptx, "sm_90");
  ASSERT_TRUE(bool(build)) << llvm::toString(build.takeError());
  auto first = makeFatbin(toolkit, *build),
       second = makeFatbin(toolkit, *build);
  ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  EXPECT_EQ(*first, *second);
  EXPECT_TRUE(StringRef(*first).starts_with("\x50\xed\x55\xba"));
  EXPECT_TRUE(StringRef(*first).contains("\x7f"
                                         "ELF"));
  EXPECT_FALSE(StringRef(*first).contains("/tmp/"));
  build->ptx += "// more\n";
  auto other = makeFatbin(toolkit, *build);
  ASSERT_TRUE(bool(other)) << llvm::toString(other.takeError());
  EXPECT_NE(*first, *other);
}

TEST(Ptxas, MissingProgramsAreErrors) {
  Toolkit toolkit;
  toolkit.root = "/nowhere";
  auto build = assemblePtx(toolkit, ptx, "sm_90");
  ASSERT_FALSE(build);
  EXPECT_EQ(llvm::toString(build.takeError()), "no bin/ptxas in /nowhere");
  auto image = makeFatbin(toolkit, Build());
  ASSERT_FALSE(image);
  EXPECT_EQ(llvm::toString(image.takeError()), "no bin/fatbinary in /nowhere");
}

} // namespace
