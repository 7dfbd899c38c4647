// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The virtual device behind the interface of a GPU: memory, streams, events,
// launches, and faults under the driver's names.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/VirtualBackend.h"

#include "gtest/gtest.h"

#include <numeric>

namespace fsr {
namespace {

constexpr llvm::StringLiteral text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p, .param .u16 small, .param .u32 value) {
  .reg .b16 %h<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u16 %h1, [small];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  add.u32 %r3, %r3, %r1;
  cvt.u32.u16 %r4, %h1;
  add.u32 %r3, %r3, %r4;
  st.global.u32 [%rd3], %r3;
  ret;
}
.visible .entry race(.param .u64 p) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

class VirtualBackendTest : public testing::Test {
protected:
  VirtualBackendTest() : backend(cantFail(openVirtualBackend())) {}
  FunctionHandle kernel(llvm::StringRef name) {
    ModuleHandle module = cantFail(backend->loadModule(text));
    return cantFail(backend->function(module, name));
  }
  llvm::Error add(DevicePointer to, uint32_t value, StreamHandle stream = {},
                  unsigned threads = 32) {
    uint16_t small = 1000;
    void *params[] = {&to, &small, &value};
    BackendLaunch launch;
    launch.function = kernel("add");
    launch.name = "add";
    launch.block = {threads, 1, 1};
    launch.params = params;
    launch.stream = stream;
    return backend->launch(launch);
  }
  std::unique_ptr<Backend> backend;
};

/// Name and detail of a failed call.
std::pair<std::string, std::string> failure(llvm::Error error) {
  std::pair<std::string, std::string> result;
  llvm::handleAllErrors(std::move(error), [&](const BackendError &failed) {
    result = {failed.name, failed.detail};
  });
  return result;
}

TEST_F(VirtualBackendTest, CopiesFillsAndLaunchesInOrder) {
  StreamHandle stream = cantFail(backend->createStream());
  DevicePointer memory = cantFail(backend->allocate(128));
  cantFail(backend->fill32(memory, 5, 32, stream));
  cantFail(add(memory, 7, stream));
  uint32_t host[32] = {};
  cantFail(
      backend->copyAny(host, reinterpret_cast<void *>(memory), 128, stream));
  cantFail(backend->synchronize(stream));
  for (uint32_t value : host)
    EXPECT_EQ(value, 1012u);
  cantFail(backend->fill16(memory, 0x1234, 4, nullptr));
  cantFail(backend->fill8(memory + 8, 0xab, 4, nullptr));
  cantFail(backend->copyToHost(host, memory, 12, nullptr));
  EXPECT_EQ(host[0], 0x12341234u);
  EXPECT_EQ(host[2], 0xababababu);
  cantFail(backend->release(memory));
  EXPECT_EQ(failure(backend->release(memory)).first,
            "CUDA_ERROR_INVALID_VALUE");
  cantFail(backend->destroyStream(stream));
  EXPECT_EQ(failure(backend->synchronize(stream)).first,
            "CUDA_ERROR_INVALID_HANDLE");
}

TEST_F(VirtualBackendTest, HostMemoryIsReachedWhereItIsKnown) {
  std::vector<uint32_t> host(32, 1);
  auto address = reinterpret_cast<DevicePointer>(host.data());
  cantFail(backend->registerHost(host.data(), 128));
  cantFail(add(address, 2));
  EXPECT_EQ(host[31], 1003u);
  cantFail(backend->unregisterHost(host.data()));
  auto *managed =
      static_cast<uint32_t *>(cantFail(backend->allocateManaged(128)));
  std::fill_n(managed, 32, 4);
  cantFail(add(reinterpret_cast<DevicePointer>(managed), 0));
  EXPECT_EQ(managed[0], 1004u);
  cantFail(backend->release(reinterpret_cast<DevicePointer>(managed)));
  EXPECT_EQ(failure(add(address, 2)).first, "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(VirtualBackendTest, EventsTellModelledTime) {
  StreamHandle one = cantFail(backend->createStream());
  StreamHandle two = cantFail(backend->createStream());
  DevicePointer memory = cantFail(backend->allocate(128));
  cantFail(backend->fill32(memory, 0, 32, nullptr));
  EventHandle before = cantFail(backend->createEvent(true));
  EventHandle after = cantFail(backend->createEvent(true));
  EventHandle other = cantFail(backend->createEvent(true));
  EXPECT_EQ(failure(backend->elapsedMs(before, after).takeError()).first,
            "CUDA_ERROR_INVALID_HANDLE");
  cantFail(backend->record(before, one));
  cantFail(add(memory, 1, one));
  cantFail(backend->record(after, one));
  double once = cantFail(backend->elapsedMs(before, after));
  EXPECT_GT(once, ptx::launchOverheadUs / 1000);
  // Another stream has not waited, and then has.
  cantFail(backend->record(other, two));
  EXPECT_LT(cantFail(backend->elapsedMs(before, other)), once);
  cantFail(backend->wait(two, after));
  cantFail(backend->record(other, two));
  EXPECT_DOUBLE_EQ(cantFail(backend->elapsedMs(before, other)), once);
}

TEST_F(VirtualBackendTest, AFaultStays) {
  DevicePointer memory = cantFail(backend->allocate(124));
  cantFail(backend->fill32(memory, 0, 31, nullptr));
  llvm::Error error = add(memory, 1);
  bool sticky = false;
  error = llvm::handleErrors(std::move(error),
                             [&](std::unique_ptr<BackendError> failed) {
                               sticky = failed->isSticky();
                               return llvm::Error(std::move(failed));
                             });
  EXPECT_TRUE(sticky);
  auto [name, detail] = failure(std::move(error));
  EXPECT_EQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_NE(detail.find("thread (31,0,0)"), std::string::npos) << detail;
  EXPECT_EQ(failure(backend->synchronizeAll()).first,
            "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(failure(backend->allocate(4).takeError()).first,
            "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(VirtualBackendTest, WhatAGpuDoesNotShowIsReported) {
  VirtualDevice &device = *backend->virtualDevice();
  DevicePointer memory = cantFail(backend->allocate(4));
  void *params[] = {&memory};
  BackendLaunch launch;
  launch.function = kernel("race");
  launch.name = "race";
  launch.block = {64, 1, 1};
  launch.params = params;
  cantFail(backend->launch(launch));
  VirtualReport report = device.takeReport();
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, ptx::FindingKind::GlobalRace);
  EXPECT_FALSE(report.proof.holds);
  EXPECT_EQ(report.launches, 1);
  EXPECT_EQ(device.takeReport().launches, 0);
  // Of our own kernels nothing is told.
  launch.isTrusted = true;
  cantFail(backend->launch(launch));
  EXPECT_EQ(device.takeReport().findings.size(), 0u);
  launch.isTrusted = false;
  launch.params = {};
  EXPECT_EQ(failure(backend->launch(launch)).second,
            "no parameters, the kernel has 1");
}

TEST_F(VirtualBackendTest, LaunchesClusters) {
  ModuleHandle module = cantFail(backend->loadModule(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 p) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %cluster_nctarank;
  mad.lo.u32 %r2, %r3, 10, %r2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)"));
  DevicePointer to = cantFail(backend->allocate(16));
  void *params[] = {&to};
  BackendLaunch launch;
  launch.function = cantFail(backend->function(module, "ranks"));
  launch.name = "ranks";
  launch.grid = {4, 1, 1};
  launch.cluster = {2, 1, 1};
  launch.params = params;
  cantFail(backend->launch(launch));
  uint32_t words[4] = {};
  cantFail(backend->copyToHost(words, to, 16, nullptr));
  EXPECT_EQ(words[0], 20u);
  EXPECT_EQ(words[1], 21u);
  EXPECT_EQ(words[3], 21u);
  launch.grid = {3, 1, 1};
  EXPECT_NE(failure(backend->launch(launch)).second.find("clusters of 2x1x1"),
            std::string::npos);
}

TEST_F(VirtualBackendTest, ImagesThatAreNone) {
  EXPECT_EQ(failure(backend
                        ->loadModule("\x7f"
                                     "ELF")
                        .takeError())
                .first,
            "CUDA_ERROR_NO_BINARY_FOR_GPU");
  auto [name, detail] = failure(backend->loadModule("nonsense").takeError());
  EXPECT_EQ(name, "CUDA_ERROR_INVALID_PTX");
  EXPECT_NE(detail.find("1:1"), std::string::npos) << detail;
  ModuleHandle module = cantFail(backend->loadModule(text));
  EXPECT_EQ(failure(backend->function(module, "sub").takeError()).first,
            "CUDA_ERROR_NOT_FOUND");
}

TEST(OpenVirtualBackend, ChipsByName) {
  BackendProperties facts =
      cantFail(cantFail(openBackend("virtual:sm_80"))->properties());
  EXPECT_EQ(facts.name, "virtual sm_80");
  EXPECT_EQ(facts.chip, "sm_80");
  EXPECT_EQ(facts.multiprocessors, 108);
  EXPECT_TRUE(facts.isVirtual);
  EXPECT_EQ(cantFail(cantFail(openBackend("virtual"))->properties()).chip,
            "sm_90");
  EXPECT_EQ(toString(openBackend("virtual:sm_12").takeError()),
            "no virtual device is a 'sm_12'; known are sm_80, sm_90, sm_100");
  EXPECT_EQ(toString(openBackend("rocm").takeError()),
            "unknown device 'rocm'; wanted cuda, cuda:N, virtual or "
            "virtual:CHIP");
}

} // namespace
} // namespace fsr
