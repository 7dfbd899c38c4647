// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// References become PTX through the stock pipeline, with the module's own chip,
// optimisation level and flags.
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

#include <cstdlib>

using namespace fsr;

namespace {

struct LowerReference : ModuleTest {
  std::string lower(const std::string &text, llvm::StringRef target = "sm_90") {
    auto module = parse(text);
    auto ptx = lowerReference(*module, target);
    return ptx ? *ptx : "failed: " + llvm::toString(ptx.takeError());
  }
};

TEST_F(LowerReference, Matmul) {
  std::string ptx = lower(cut(matmulModule).reference.mlir);
  EXPECT_NE(ptx.find(".target sm_90"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find(".visible .entry matmul("), std::string::npos);
  // Three descriptors of rank 2: two pointers, offset, sizes and strides each.
  EXPECT_NE(ptx.find("matmul_param_20"), std::string::npos);
  EXPECT_EQ(ptx.find("matmul_param_21"), std::string::npos);
  EXPECT_EQ(ptx.find('\0'), std::string::npos);
}

TEST_F(LowerReference, ModulesOwnTargetGoesFirst) {
  std::string text =
      with(cut(softmaxModule).reference.mlir, "math.exp", "math.absf");
  text = with(text, "math.exp", "math.absf");
  text = with(text, "chip = \"sm_90\"", "chip = \"sm_90a\"");
  EXPECT_NE(lower(text).find(".target sm_90a"), std::string::npos);
  EXPECT_NE(lower(text, "sm_80").find(".target sm_80"), std::string::npos);
}

TEST_F(LowerReference, MathComesFromLibdevice) {
  std::string ptx = lower(cut(softmaxModule).reference.mlir);
  if (!FSR_HAVE_LIBDEVICE) {
    EXPECT_EQ(ptx, "failed: the kernel needs __nv_expf, which libdevice of the "
                   "CUDA toolkit defines; install the toolkit or set CUDA_HOME "
                   "to it");
    return;
  }
  EXPECT_NE(ptx.find(".visible .entry softmax("), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find(".extern .func"), std::string::npos) << ptx;
}

TEST_F(LowerReference, MissingLibdeviceIsAnError) {
  ::setenv("CUDA_ROOT", "/nonexistent", 1);
  std::string ptx = lower(cut(softmaxModule).reference.mlir);
  ::unsetenv("CUDA_ROOT");
  EXPECT_EQ(ptx.find("failed: "), 0u);
  EXPECT_NE(ptx.find("__nv_expf"), std::string::npos) << ptx;
}

TEST_F(LowerReference, WhatDoesNotLowerIsAnError) {
  std::string text =
      with(matmulModule, "arith.mulf %x, %y", "gpu.subgroup_reduce add %x");
  text = with(text, "add %x : f32", "add %x : (f32) -> (f32)");
  EXPECT_EQ(lower(cut(text).reference.mlir)
                .find("failed: the stock pipeline does not lower the kernel: "),
            0u);
}

TEST_F(LowerReference, WantsOneGpuModule) {
  EXPECT_EQ(lower("module {}"),
            "failed: a reference has one gpu.module, got 0");
}

} // namespace
