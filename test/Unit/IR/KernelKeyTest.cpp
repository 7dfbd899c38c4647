// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What changes the key of a kernel, and what must not. One test for each.
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

#include "fsr/IR/KernelKeyer.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace fsr;

namespace {

struct KernelKey : ModuleTest {
  std::string matmul = keyOf(matmulModule);
  std::string softmax = keyOf(softmaxModule);
  std::string layerNorm = keyOf(layerNormModule);

  std::string changed(const char *module, llvm::StringRef from,
                      llvm::StringRef to) {
    return keyOf(with(module, from, to));
  }
};

TEST_F(KernelKey, Is64HexDigits) {
  EXPECT_EQ(matmul.size(), 64u);
  EXPECT_EQ(matmul.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST_F(KernelKey, ChangesWithTheOperation) {
  EXPECT_NE(matmul, changed(matmulModule, "arith.mulf %x", "arith.divf %x"));
}

TEST_F(KernelKey, ChangesWithFastMathFlags) {
  EXPECT_NE(matmul, changed(matmulModule, "mulf %x, %y",
                            "mulf %x, %y fastmath<reassoc>"));
}

TEST_F(KernelKey, ChangesWithTheShape) {
  std::string text = matmulModule;
  for (size_t at = 0; (at = text.find("96x", at)) != std::string::npos;)
    text.replace(at, 3, "95x");
  EXPECT_NE(matmul, keyOf(text));
}

TEST_F(KernelKey, ChangesWithTheGrid) {
  EXPECT_NE(matmul,
            changed(matmulModule, "(%c5, %c6, %c1)", "(%c6, %c6, %c1)"));
}

TEST_F(KernelKey, ChangesWithTheBlock) {
  EXPECT_NE(matmul,
            changed(matmulModule, "(%c16, %c16, %c1)", "(%c16, %c6, %c1)"));
}

TEST_F(KernelKey, ChangesWithTheCluster) {
  EXPECT_NE(matmul, changed(matmulModule, "blocks in",
                            "clusters in (%c5, %c1, %c1) blocks in"));
}

TEST_F(KernelKey, ChangesWithDynamicSharedMemory) {
  std::string text = with(matmulModule, "threads in (%c16, %c16, %c1)",
                          "threads in (%c16, %c16, %c1) "
                          "dynamic_shared_memory_size %bytes");
  text = with(text, "%c5 = arith",
              "%bytes = arith.constant 64 : i32\n%c5 = arith");
  EXPECT_NE(matmul, keyOf(text));
}

TEST_F(KernelKey, ChangesWithAConstantScalar) {
  EXPECT_NE(layerNorm, changed(layerNormModule, "1.000000e-05", "2.0e-05"));
}

TEST_F(KernelKey, ChangesWithAlignment) {
  EXPECT_NE(softmax, changed(softmaxModule, "64 : i64", "16 : i64"));
}

TEST_F(KernelKey, ChangesWithAliasing) {
  // Two buffers that are only read may overlap and are taken so.
  std::string text = with(matmulModule, "%a: memref<96x112xf32> {llvm.noalias}",
                          "%a: memref<96x112xf32>");
  EXPECT_NE(matmul, keyOf(with(text, "%b: memref<112x80xf32> {llvm.noalias}",
                               "%b: memref<112x80xf32>")));
}

TEST_F(KernelKey, ChangesWithTheTargetFamily) {
  EXPECT_NE(matmul, keyOf(matmulModule, "sm_80"));
  EXPECT_EQ(matmul, keyOf(matmulModule, "sm_90a"));
}

TEST_F(KernelKey, ChangesWithFastMathOfTheTarget) {
  EXPECT_NE(softmax, changed(softmaxModule, "chip = \"sm_90\"",
                             "chip = \"sm_90\", flags = {fast}"));
}

TEST_F(KernelKey, HoldsNoArgumentNames) {
  EXPECT_EQ(matmul, changed(matmulModule, "%c: memref<96x80xf32>) kernel",
                            "%c: memref<96x80xf32>) kernel attributes "
                            "{fsr.arg_names = [\"l\", \"r\", "
                            "\"out\"]}"));
}

TEST_F(KernelKey, ChangesWithACalleesBody) {
  std::string text = with(matmulModule, "gpu.func @matmul",
                          "func.func private @product(%u: f32, %v: f32) -> f32 "
                          "{ %w = arith.mulf %u, %v : f32\n return %w : f32 }\n"
                          "gpu.func @matmul");
  text = with(text, "arith.mulf %x, %y : f32",
              "func.call @product(%x, %y) : (f32, f32) -> f32");
  EXPECT_NE(keyOf(text), keyOf(with(text, "arith.mulf %u", "arith.addf %u")));
  // The callee's name and place are not part of it.
  std::string renamed = text;
  for (size_t at = 0; (at = renamed.find("@product", at)) != std::string::npos;)
    renamed.replace(at, 8, "@times");
  EXPECT_EQ(keyOf(text), keyOf(renamed));
}

TEST_F(KernelKey, KeepsUnderOtherTargetDetails) {
  EXPECT_EQ(softmax,
            changed(softmaxModule, "<chip = \"sm_90\">",
                    "<O = 3, chip = \"sm_90a\", features = \"+ptx80\">"));
  EXPECT_EQ(softmax,
            changed(softmaxModule, "[#nvvm.target<chip = \"sm_90\">]", ""));
}

TEST_F(KernelKey, KeepsUnderOtherNames) {
  std::string text = with(matmulModule, "gpu.func @matmul", "gpu.func @other");
  text = with(text, "@kernels::@matmul", "@elsewhere::@other");
  EXPECT_EQ(matmul,
            keyOf(with(text, "gpu.module @kernels", "gpu.module @elsewhere")));
}

TEST_F(KernelKey, KeepsUnderOtherSsaNamesAndPlaces) {
  std::string text = matmulModule;
  for (size_t at = 0; (at = text.find("%sum", at)) != std::string::npos;)
    text.replace(at, 4, "%total");
  EXPECT_EQ(matmul, keyOf("\n\n\n// Moved down.\n" + text));
}

TEST_F(KernelKey, KeepsUnderLocations) {
  EXPECT_EQ(matmul, changed(matmulModule, "arith.mulf %x, %y : f32",
                            "arith.mulf %x, %y : f32 loc(\"there\":3:4)"));
}

TEST_F(KernelKey, KeepsUnderFsrAttributes) {
  std::string text =
      with(matmulModule, "%c: memref<96x80xf32>) kernel {",
           "%c: memref<96x80xf32>) kernel attributes "
           "{fsr.workload = [\"zeros\", \"zeros\", \"zeros\"]} {");
  EXPECT_EQ(matmul, keyOf(text));
}

TEST_F(KernelKey, KeepsBesideOtherKernels) {
  EXPECT_EQ(matmul, [&] {
    auto module = parse(with(matmulModule, "gpu.func @matmul",
                             "memref.global constant @t : memref<2xf32> = "
                             "dense<1.0>\n"
                             "gpu.func @before() kernel { gpu.return }\n"
                             "gpu.func @matmul"));
    std::vector<KernelSite> sites = findKernels(*module);
    EXPECT_EQ(sites.size(), 2u);
    return llvm::cantFail(kernelKey(sites[1], "sm_90"));
  }());
}

TEST_F(KernelKey, KeepsUnderDeadCodeAndCommonExpressions) {
  EXPECT_EQ(matmul,
            changed(matmulModule, "%bx = gpu.block_id x",
                    "%dead = arith.addi %m, %n : index\n%bx = gpu.block_id x"));
  std::string twice = with(matmulModule, "%n = arith.constant 80 : index",
                           "%n = arith.constant 80 : index\n"
                           "%n2 = arith.constant 80 : index");
  EXPECT_EQ(matmul, keyOf(with(twice, "slt, %j, %n", "slt, %j, %n2")));
}

TEST_F(KernelKey, KeepsAfterTheCanonicalizer) {
  std::string untidy =
      with(matmulModule, "%xy = arith.mulf %x, %y : f32",
           "%late = arith.constant -0.0 : f32\n"
           "%x0 = arith.addf %x, %late : f32\n"
           "%again = memref.load %b[%p, %j] : memref<112x80xf32>\n"
           "%xy = arith.mulf %x0, %y : f32");
  for (const std::string &text :
       {untidy, std::string(softmaxModule), std::string(layerNormModule)}) {
    auto module = parse(text);
    std::string before = print(*module);
    mlir::PassManager manager(&context);
    manager.addPass(mlir::createCanonicalizerPass());
    manager.addPass(mlir::createCSEPass());
    ASSERT_TRUE(succeeded(manager.run(*module)));
    EXPECT_TRUE(text != untidy || before != print(*module));
    EXPECT_EQ(keyOf(text),
              llvm::cantFail(kernelKey(onlySite(*module), "sm_90")));
  }
}

TEST_F(KernelKey, LeavesTheModuleAlone) {
  auto module = parse(softmaxModule);
  std::string before = print(*module);
  llvm::cantFail(kernelKey(onlySite(*module), "sm_90"));
  EXPECT_EQ(before, print(*module));
}

TEST_F(KernelKey, KeyerGivesTheSameKeys) {
  KernelKeyer keyer;
  for (int i = 0; i < 2; ++i)
    for (const char *text : {matmulModule, softmaxModule, layerNormModule}) {
      auto module = parse(text);
      EXPECT_EQ(keyOf(text),
                llvm::cantFail(keyer.key(onlySite(*module), "sm_90")));
    }
}

TEST_F(KernelKey, NoKeyForAKernelThatIsNotTaken) {
  auto module = parse(
      with(matmulModule, "gpu.return", "gpu.printf \"x\\n\"\n gpu.return"));
  auto key = kernelKey(onlySite(*module), "sm_90");
  ASSERT_FALSE(bool(key));
  EXPECT_EQ(llvm::toString(key.takeError()),
            "kernel matmul has no key: it prints, and a rewrite would have to "
            "print the same");
}

} // namespace
