// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A cubin against its PTX. Cubins come from the compiler and are then changed:
// each change has to be noticed, and no bytes whatever may lead astray.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"
#include "ToolchainTesting.h"

#include "llvm/ADT/StringRef.h"

using namespace fsr;
using namespace fsr::testing;
using llvm::StringRef;

namespace {

const char source[] = R"(
__device__ const int table[40] = {1, 2, 3};
__device__ int zeros[40];
extern "C" __global__ void kernel_a(int *x) {
  __shared__ int s[64];
  s[threadIdx.x & 63] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[x[3] & 63] + table[x[1] & 31] + zeros[x[2] & 31];
}
extern "C" __global__ void kernel_b(int *x) { x[0] = 1; })";

class CubinTest : public ::testing::Test {
protected:
  void SetUp() override {
    FSR_NEED_NVRTC();
    CompileOutcome outcome = compile(source, {"kernel_a", "kernel_b"});
    ASSERT_TRUE(outcome.build) << outcome.message;
    build = *outcome.build;
    std::string refusal;
    module = readPtx(build.ptx, refusal);
    ASSERT_TRUE(module) << refusal;
  }
  std::string why(Build changed) {
    return checkCubin(*module, changed).value_or("");
  }
  /// The build with each `from` in its cubin replaced by `to`, of one length.
  Build with(StringRef from, StringRef to) {
    Build changed = build;
    EXPECT_EQ(from.size(), to.size());
    size_t at = 0;
    unsigned count = 0;
    for (; (at = changed.cubin.find(from.str(), at)) != std::string::npos;
         at += to.size(), ++count)
      changed.cubin.replace(at, to.size(), to.str());
    EXPECT_GT(count, 0u) << from.str();
    return changed;
  }
  Build build;
  std::optional<PtxModule> module;
};

TEST_F(CubinTest, TheCompilersOwnFits) {
  build.resources.clear();
  Build read = build;
  EXPECT_EQ(checkCubin(*module, read), std::nullopt);
  ASSERT_TRUE(read.find("kernel_a"));
  EXPECT_GT(read.find("kernel_a")->registers, 0);
  EXPECT_EQ(read.find("kernel_a")->sharedBytes, 256);
  EXPECT_EQ(read.find("kernel_b")->sharedBytes, 0);
}

TEST_F(CubinTest, ALogIsBelievedLessThanTheCubin) {
  // A source can make the compiler print lines that look like a report.
  const KernelResources *said = build.find("kernel_a");
  ASSERT_TRUE(said);
  KernelResources lie;
  lie.kernel = "kernel_a";
  lie.registers = 1;
  lie.sharedBytes = 7;
  Build changed = build;
  changed.resources = {lie};
  EXPECT_EQ(checkCubin(*module, changed), std::nullopt);
  EXPECT_EQ(changed.find("kernel_a")->registers, said->registers);
  EXPECT_EQ(changed.find("kernel_a")->sharedBytes, 256);
}

TEST_F(CubinTest, OtherChips) {
  for (const char *chip : {"sm_80", "sm_86", "sm_90", "sm_100", "sm_120"}) {
    std::unique_ptr<Compiler> compiler = newCompiler();
    ASSERT_TRUE(compiler);
    CompileRequest request;
    request.source = source;
    request.chip = chip;
    request.entries = {"kernel_a", "kernel_b"};
    auto outcome = compiler->compile(request);
    if (!outcome) { // This toolkit is too old or too new for it.
      llvm::consumeError(outcome.takeError());
      continue;
    }
    ASSERT_TRUE(outcome->build) << chip << ": " << outcome->message;
    EXPECT_EQ(outcome->build->find("kernel_a")->sharedBytes, 256) << chip;
    outcome->build->chip = StringRef(chip) == "sm_90" ? "sm_80" : "sm_90";
    std::string reason = why(*outcome->build);
    EXPECT_TRUE(
        StringRef(reason).starts_with("the cubin is for " + std::string(chip)))
        << reason;
  }
}

TEST_F(CubinTest, KernelsAndVariablesMustBeThoseOfThePtx) {
  EXPECT_TRUE(StringRef(why(with("kernel_b", "kernel_c")))
                  .contains("a kernel `kernel_c` that the PTX has not"));
  EXPECT_TRUE(StringRef(why(with("zeros", "other")))
                  .contains("a variable `other` that the PTX has not"));
  EXPECT_TRUE(StringRef(why(with(".nv.global.init", ".nv.glabal.init")))
                  .contains("writable section `.nv.glabal.init`"));
  module->functions.emplace_back();
  module->functions.back().name = "kernel_d";
  module->functions.back().isEntry = true;
  EXPECT_EQ(why(build), "the cubin lacks kernel `kernel_d` of the PTX");
}

TEST_F(CubinTest, NoCubin) {
  for (StringRef bytes : {StringRef(""),
                          StringRef("\x7f"
                                    "ELF"),
                          StringRef("not a cubin at all, but long enough to be "
                                    "one if only the header were looked at")}) {
    Build changed = build;
    changed.cubin = bytes.str();
    EXPECT_TRUE(StringRef(why(changed)).contains("damaged"));
  }
}

TEST_F(CubinTest, CutAnywhere) {
  for (size_t size = 0; size < build.cubin.size(); size += 13) {
    Build changed = build;
    changed.cubin = std::string(build.cubin, 0, size);
    changed.cubin.shrink_to_fit();
    checkCubin(*module, changed);
  }
  Build changed = build;
  changed.cubin.resize(changed.cubin.size() / 2);
  EXPECT_NE(why(changed), "");
}

TEST_F(CubinTest, AnyBytesAreSurvived) {
  unsigned state = 1;
  auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
  };
  for (unsigned round = 0; round < 3000; ++round) {
    Build changed = build;
    // Most of what matters stands in the header and the tables.
    for (unsigned i = 0; i < 1 + round % 8; ++i) {
      size_t from = next() % 4 ? 0 : changed.cubin.size() / 4;
      size_t range = next() % 2 ? 64 : changed.cubin.size() - from;
      changed.cubin[from + next() % range] = char(next());
    }
    checkCubin(*module, changed);
  }
}

} // namespace
