// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What errors say and which of them mean what. Needs no GPU.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/Backend.h"
#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

using namespace fsr;

TEST(BackendError, SaysCallNameAndDetail) {
  auto text = [](BackendError error) {
    return llvm::toString(llvm::make_error<BackendError>(std::move(error)));
  };
  EXPECT_EQ(text({1, "CUDA_ERROR_INVALID_VALUE", "cuLaunchKernel 'k'"}),
            "cuLaunchKernel 'k': CUDA_ERROR_INVALID_VALUE");
  EXPECT_EQ(text({218, "CUDA_ERROR_INVALID_PTX", "cuModuleLoadDataEx of PTX",
                  "ptxas: line 3"}),
            "cuModuleLoadDataEx of PTX: CUDA_ERROR_INVALID_PTX: ptxas: line 3");
}

TEST(BackendError, StickyErrorsAreThoseThatEndAContext) {
  for (int code : {214, 700, 702, 710, 714, 715, 716, 717, 718, 719})
    EXPECT_TRUE(BackendError(code, "", "cuStreamSynchronize").isSticky())
        << code;
  for (int code : {1, 2, 200, 218, 400, 500, 701, 720, 801, 912})
    EXPECT_FALSE(BackendError(code, "", "cuLaunchKernel 'k'").isSticky())
        << code;
}

TEST(BackendError, RefusalsAreOfTheLaunchOnly) {
  for (int code : {701, 720, 912})
    EXPECT_TRUE(BackendError(code, "", "cuLaunchKernel 'k'").isLaunchRefusal())
        << code;
  for (int code : {1, 2, 801}) {
    EXPECT_TRUE(
        BackendError(code, "", "cuLaunchKernelEx 'k'").isLaunchRefusal())
        << code;
    EXPECT_TRUE(
        BackendError(code, "", "cuFuncSetAttribute 'k'").isLaunchRefusal())
        << code;
    EXPECT_FALSE(BackendError(code, "", "cuMemAlloc").isLaunchRefusal())
        << code;
  }
  EXPECT_FALSE(BackendError(700, "", "cuLaunchKernel 'k'").isLaunchRefusal());
  // Scratch is allocated around the launch.
  llvm::StringRef ordered = "cuMemAllocAsync of 8 bytes";
  EXPECT_TRUE(BackendError(2, "", ordered.str()).isLaunchRefusal());
  EXPECT_FALSE(BackendError(1, "", ordered.str()).isLaunchRefusal());
}

TEST(BackendError, ImagesAreRefusedWhenTheyAreLoaded) {
  for (int code : {200, 209, 218, 222}) {
    BackendError error(code, "", "cuModuleLoadDataEx of a binary");
    EXPECT_TRUE(error.isImageRefusal()) << code;
    EXPECT_FALSE(BackendError(code, "", "cuMemAlloc").isImageRefusal());
  }
  for (int code : {46, 214, 400, 700})
    EXPECT_FALSE(BackendError(code, "", "cuModuleLoadDataEx of a binary")
                     .isImageRefusal())
        << code;
}

TEST(BackendError, BrokenHardwareIsNoKernelsFault) {
  for (int code : {46, 214, 220, 226}) {
    BackendError error(code, "", "cuStreamSynchronize");
    EXPECT_TRUE(error.isHardware() && error.isSticky()) << code;
  }
  for (int code : {1, 2, 700, 719})
    EXPECT_FALSE(BackendError(code, "", "cuStreamSynchronize").isHardware())
        << code;
}

TEST(NoCudaBackend, WithoutADriverTheErrorSaysWhatWasLookedFor) {
  if (cudaDriverPresent())
    GTEST_SKIP() << "needs a machine without an NVIDIA GPU or driver";
  auto backend = openCudaBackend(0);
  ASSERT_FALSE(bool(backend));
  llvm::Error error = backend.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  std::string text = llvm::toString(std::move(error));
  bool noLibrary =
      llvm::StringRef(text).starts_with("no CUDA driver: libcuda.so.1 ");
  bool noGpu = llvm::StringRef(text).starts_with("the CUDA driver reports no "
                                                 "GPU") ||
               llvm::StringRef(text).starts_with("the CUDA driver does not "
                                                 "start: cuInit: ");
  EXPECT_TRUE(noLibrary || noGpu) << text;
}
