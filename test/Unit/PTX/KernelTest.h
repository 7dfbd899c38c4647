// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels written by hand, run and looked at. A kernel `k` has one parameter,
// the address of its words; their number and first contents are the test's.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_PTX_KERNELTEST_H
#define FSR_TEST_UNIT_PTX_KERNELTEST_H

#include "fsr/PTX/VirtualGpu.h"

#include "gtest/gtest.h"

#include <cstring>

namespace fsr::ptx {

class KernelTest : public testing::Test {
protected:
  /// `body` behind `ld.param.u64 %out, [p]`, `%t` the thread's number in its
  /// block, and with registers %r, %rd, %p, %f.
  static std::string kernel(llvm::StringRef body, llvm::StringRef before = "") {
    return (".version 8.8\n.target sm_90\n.address_size 64\n" + before +
            "\n.visible .entry k(.param .u64 p) {\n"
            ".reg .u64 %out;\n.reg .u32 %t;\n.reg .b32 %r<40>;\n"
            ".reg .b64 %rd<40>;\n.reg .pred %p<20>;\n.reg .f32 %f<20>;\n"
            "ld.param.u64 %out, [p];\nmov.u32 %t, %tid.x;\n" +
            body + "\n}\n")
        .str();
  }
  /// Stores register `name` at word `%t`.
  static std::string store(llvm::StringRef name) {
    return ("mul.wide.u32 %rd39, %t, 4;\nadd.u64 %rd39, %rd39, %out;\n"
            "st.global.u32 [%rd39], " +
            name + ";\n")
        .str();
  }

  void SetUp() override { gpu = makeVirtualGpu(VirtualGpuOptions()); }

  llvm::Expected<LaunchResult> tryRun(llvm::StringRef ptx) {
    llvm::Expected<unsigned> module = gpu->loadModule(ptx);
    if (!module)
      return module.takeError();
    llvm::Expected<uint64_t> address = gpu->allocate(words.size() * 4);
    if (!address)
      return address.takeError();
    cantFail(gpu->write(*address, words.data(), words.size() * 4));
    uint8_t params[8];
    std::memcpy(params, &*address, 8);
    llvm::Expected<LaunchResult> result =
        gpu->launch(*module, "k", shape, params, options);
    cantFail(gpu->read(words.data(), *address, words.size() * 4));
    cantFail(gpu->release(*address));
    cantFail(gpu->unloadModule(*module));
    return result;
  }

  LaunchResult run(llvm::StringRef ptx) {
    llvm::Expected<LaunchResult> result = tryRun(ptx);
    if (result)
      return std::move(*result);
    ADD_FAILURE() << toString(result.takeError());
    return {};
  }

  /// Runs `ptx`, which has no faults.
  LaunchResult runClean(llvm::StringRef ptx) {
    LaunchResult result = run(ptx);
    EXPECT_TRUE(result.completed);
    for (const Finding &finding : result.findings)
      ADD_FAILURE() << finding.text();
    return result;
  }

  /// The only finding, of that kind.
  Finding runFaulty(llvm::StringRef ptx, FindingKind kind) {
    LaunchResult result = run(ptx);
    if (result.findings.size() == 1 && result.findings[0].kind == kind)
      return result.findings[0];
    ADD_FAILURE() << "expected one " << nameOf(kind).str() << ", got "
                  << result.findings.size();
    for (const Finding &finding : result.findings)
      ADD_FAILURE() << finding.text();
    return {};
  }

  std::unique_ptr<VirtualGpu> gpu;
  LaunchShapeOf shape{{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0, false};
  LaunchOptions options;
  std::vector<uint32_t> words = std::vector<uint32_t>(64);
};

} // namespace fsr::ptx

#endif // FSR_TEST_UNIT_PTX_KERNELTEST_H
