// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel against its launch and the device: what must be refused before it is
// launched, and what is at the very limit.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"
#include "ToolchainTesting.h"

#include "llvm/ADT/StringRef.h"

#include <functional>

using namespace fsr;
using namespace fsr::testing;
using llvm::StringRef;

namespace {

/// Why a launch of `k`, changed by `change`, is refused.
std::string why(const std::string &directives,
                std::function<void(KernelLaunch &, KernelResources &)> change) {
  std::string refusal;
  std::string ptx =
      ".visible .entry k(.param .u64 .ptr .align 1 a, .param .u64 "
      "b, .param .u64 c, .param .f32 d)\n" +
      directives + "{ ret; }\n";
  std::optional<PtxModule> module = readPtx(ptx, refusal);
  if (!module)
    return refusal;
  KernelLaunch launch = launchOfK();
  Build build;
  KernelResources resources;
  resources.kernel = "k";
  change(launch, resources);
  build.resources = {resources};
  return checkLaunches(*module, build, {launch}, LaunchLimits::of({"sm_90"}))
      .value_or("");
}

std::string whyBlock(const std::string &directives, int64_t x, int64_t y = 1) {
  return why(directives, [&](KernelLaunch &launch, KernelResources &) {
    launch.shape.block = {x, y, 1};
  });
}

std::string whyCluster(const std::string &directives, int64_t cluster,
                       int64_t grid) {
  return why(directives, [&](KernelLaunch &launch, KernelResources &) {
    launch.shape.cluster = {cluster, 1, 1};
    launch.shape.grid = {grid, 1, 1};
  });
}

std::string whyResources(int64_t threads, int64_t registers, int64_t shared,
                         int64_t dynamic, int64_t stack) {
  return why("", [&](KernelLaunch &launch, KernelResources &resources) {
    launch.shape.block = {threads, 1, 1};
    launch.shape.sharedBytes = dynamic;
    resources.registers = registers;
    resources.sharedBytes = shared;
    resources.stackBytes = stack;
  });
}

TEST(LaunchContract, Parameters) {
  using Args = std::vector<PassedArgument>;
  auto whyArgs = [](Args args) {
    return why("", [&](KernelLaunch &launch, KernelResources &) {
      launch.args = std::move(args);
    });
  };
  PassedArgument buffer{"x", PassedArgument::Buffer, 8};
  PassedArgument size{"x.size0", PassedArgument::Integer, 8};
  PassedArgument real{"s", PassedArgument::Float, 4};
  PassedArgument whole{"i", PassedArgument::Integer, 4};
  EXPECT_EQ(whyArgs({buffer, buffer, size, real}), "");
  EXPECT_EQ(whyArgs({buffer, buffer, size}),
            "kernel `k` takes parameters of these bytes: 8, 8, 8, 4; the "
            "launch plan passes: 8, 8, 8 (x, x, x.size0)");
  EXPECT_NE(whyArgs({}).find("the launch plan passes: none"),
            std::string::npos);
  EXPECT_NE(whyArgs({buffer, buffer, real, real}), "");
  EXPECT_EQ(whyArgs({buffer, buffer, size, whole}),
            "parameter 4 of kernel `k` is a float; the launch plan passes an "
            "integer, `i`");
  PassedArgument wide{"d", PassedArgument::Float, 8};
  EXPECT_EQ(whyArgs({buffer, wide, size, real}),
            "parameter 2 of kernel `k` is an integer or a pointer; the launch "
            "plan passes a float, `d`");
}

TEST(LaunchContract, EveryLaunchOfAKernelIsLookedAt) {
  std::string refusal;
  std::optional<PtxModule> module =
      readPtx(".visible .entry k(.param .u64 a)\n.maxntid 64{ ret; }\n"
              ".visible .entry other(.param .u64 a)\n{ ret; }\n",
              refusal);
  ASSERT_TRUE(module) << refusal;
  KernelLaunch fits;
  fits.kernel = "k";
  fits.args = {{"x", PassedArgument::Buffer, 8}};
  fits.shape.block = {64, 1, 1};
  KernelLaunch large = fits;
  large.shape.block = {65, 1, 1};
  // A kernel that no launch names does no harm.
  EXPECT_FALSE(checkLaunches(*module, {}, {fits, fits}, {}));
  EXPECT_TRUE(checkLaunches(*module, {}, {fits, large}, {}));
}

TEST(LaunchContract, Blocks) {
  EXPECT_EQ(whyBlock(".maxntid 128, 1, 1", 128), "");
  // Only the product counts.
  EXPECT_EQ(whyBlock(".maxntid 128, 1, 1", 16, 8), "");
  EXPECT_EQ(whyBlock(".maxntid 128, 1, 1", 129),
            "kernel `k` was compiled for at most 128 threads a block "
            "(__launch_bounds__); the launch plan has a block of 129 x 1 x 1");
  EXPECT_EQ(whyBlock(".maxntid 16, 8", 128), "");
  EXPECT_NE(whyBlock(".maxntid 16, 8", 160), "");
  EXPECT_EQ(whyBlock(".reqntid 64, 2", 64, 2), "");
  EXPECT_EQ(whyBlock(".reqntid 64, 2", 128),
            "kernel `k` was compiled for blocks of 64 x 2 x 1 threads; the "
            "launch plan has a block of 128 x 1 x 1");
}

TEST(LaunchContract, Clusters) {
  const char two[] = ".explicitcluster .reqnctapercluster 2, 1, 1";
  EXPECT_EQ(whyCluster(two, 2, 8), "");
  EXPECT_EQ(whyCluster(two, 1, 8), "");
  EXPECT_NE(whyCluster(two, 4, 8).find("clusters of 2 x 1 x 1 blocks"),
            std::string::npos);
  EXPECT_NE(whyCluster(two, 1, 7).find("do not divide"), std::string::npos);
  EXPECT_EQ(whyCluster(".maxclusterrank 4", 4, 8), "");
  EXPECT_NE(whyCluster(".maxclusterrank 4", 8, 8), "");
  EXPECT_NE(whyCluster(".reqnctapercluster 0", 1, 7), "");
}

TEST(LaunchContract, Resources) {
  EXPECT_EQ(whyResources(1024, 64, 1024, 226 * 1024, 0), "");
  EXPECT_EQ(whyResources(32, 64, 1025, 226 * 1024, 0),
            "kernel `k` needs 232449 bytes of shared memory a block (1025 "
            "static and 231424 of the launch plan); the device has 232448");
  // 65 registers are handed out as 72.
  EXPECT_EQ(whyResources(1024, 65, 0, 0, 0),
            "kernel `k` takes 65 registers a thread, which for 1024 threads a "
            "block is more than the 65536 of the device; say "
            "__launch_bounds__(1024) or launch fewer threads");
  EXPECT_EQ(whyResources(896, 72, 0, 0, 0), "");
  EXPECT_EQ(whyResources(32, 255, 0, 0, 65536), "");
  EXPECT_NE(whyResources(32, 255, 0, 0, 65537).find("in local memory"),
            std::string::npos);
}

TEST(LaunchContract, OfCompiledCode) {
  FSR_NEED_NVRTC();
  KernelLaunch launch = launchOfK();
  const char body[] =
      "__shared__ float s[8192]; s[threadIdx.x] = x[threadIdx.x];"
      "__syncthreads(); y[threadIdx.x] = s[n & 8191];";
  launch.shape.sharedBytes = 195 * 1024;
  EXPECT_TRUE(compileBody(body, "", launch).build);
  launch.shape.sharedBytes += 1;
  CompileOutcome outcome = compileBody(body, "", launch);
  EXPECT_EQ(outcome.verdict, Verdict::Rejected);
  EXPECT_TRUE(StringRef(outcome.message).contains("32768 static"))
      << outcome.message;

  // Sums that have to be held until the end: more registers than 1024 threads
  // can have.
  std::string many = "float s[96];\n#pragma unroll\n"
                     "for (int i = 0; i < 96; ++i) s[i] = x[i * n];\n"
                     "__syncthreads();\n#pragma unroll\n"
                     "for (int i = 0; i < 96; ++i) y[i] = s[95 - i];";
  launch = launchOfK();
  EXPECT_TRUE(compileBody(many, "", launch).build);
  launch.shape.block = {1024, 1, 1};
  outcome = compileBody(many, "", launch);
  EXPECT_EQ(outcome.verdict, Verdict::Rejected);
  EXPECT_TRUE(StringRef(outcome.message).contains("__launch_bounds__(1024)"))
      << outcome.message;

  outcome = compileBody("float s[40000]; for (int i = 0; i < n; ++i) "
                        "s[(i * 77) % 40000] = x[i]; y[0] = s[n];");
  EXPECT_EQ(outcome.verdict, Verdict::Rejected);
  EXPECT_TRUE(StringRef(outcome.message).contains("in local memory"))
      << outcome.message;
}

} // namespace
