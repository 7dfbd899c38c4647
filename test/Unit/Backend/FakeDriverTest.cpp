// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the CUDA back end asks of the driver, and what it makes of a refusal, on
// a driver that only pretends. A program of its own: the fake library is loaded
// first, and a later dlopen of libcuda.so.1 finds it by its soname.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/Backend.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace fsr;

namespace {

std::string textOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

class FakeDriver : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(dlopen(FSR_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL)) << dlerror();
    ASSERT_TRUE(dlopen(FSR_FAKE_NVML, RTLD_NOW | RTLD_LOCAL)) << dlerror();
  }
  void SetUp() override {
    ASSERT_FALSE(
        llvm::sys::fs::createTemporaryFile("fsr-fake-cuda", "log", logPath));
    for (const char *name :
         {"FSR_FAKE_CUDA_FAIL", "FSR_FAKE_CUDA_GPUS", "FSR_FAKE_CUDA_VERSION"})
      unsetenv(name);
    auto opened = openCudaBackend(0);
    ASSERT_TRUE(bool(opened)) << textOf(opened.takeError());
    backend = std::move(*opened);
    auto loaded = backend->loadModule(".version 8.0");
    ASSERT_TRUE(bool(loaded));
    module = *loaded;
    launch.function = llvm::cantFail(backend->function(module, "k"));
    launch.name = "k";
    setenv("FSR_FAKE_CUDA_LOG", logPath.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("FSR_FAKE_CUDA_LOG");
    unsetenv("FSR_FAKE_CUDA_FAIL");
    llvm::sys::fs::remove(logPath);
  }
  /// What was logged since the last call.
  std::string log() {
    std::string text = llvm::cantFail(readFile(logPath));
    llvm::sys::fs::remove(logPath);
    llvm::cantFail(writeFileAtomically(logPath, ""));
    return text;
  }
  std::string launchWith(unsigned sharedBytes) {
    launch.sharedBytes = sharedBytes;
    std::string error = textOf(backend->launch(launch));
    return error.empty() ? log() : error;
  }
  static std::string launched(unsigned sharedBytes) {
    return "launch k grid 1 1 1 block 1 1 1 shared " +
           std::to_string(sharedBytes) + "\n";
  }

  llvm::SmallString<128> logPath;
  std::unique_ptr<Backend> backend;
  ModuleHandle module = nullptr;
  BackendLaunch launch;
};

TEST_F(FakeDriver, TheStateOfTheGpuComesFromNvml) {
  auto state = backend->gpuState();
  ASSERT_TRUE(bool(state)) << textOf(state.takeError());
  EXPECT_EQ(state->driver, "580.65.06");
  EXPECT_EQ(state->clockMhz, 1755);
  EXPECT_EQ(state->memoryClockMhz, 3201);
  EXPECT_EQ(state->temperatureC, 71);
  EXPECT_EQ(state->powerWatts, 698.5);
  EXPECT_EQ(state->powerLimitWatts, 700);
  EXPECT_EQ(state->clockLimits,
            (std::vector<std::string>{"power cap", "thermal slowdown"}));
  EXPECT_EQ(state->otherProcesses, 1);
}

TEST_F(FakeDriver, WhatNvmlDoesNotTellIsNotKnown) {
  setenv("FSR_FAKE_NVML_FAIL", "power", 1);
  auto state = backend->gpuState();
  ASSERT_TRUE(bool(state)) << textOf(state.takeError());
  EXPECT_EQ(state->powerWatts, -1);
  EXPECT_EQ(state->temperatureC, 71);
  setenv("FSR_FAKE_NVML_FAIL", "processes", 1);
  EXPECT_EQ(llvm::cantFail(backend->gpuState()).otherProcesses, -1);
  unsetenv("FSR_FAKE_NVML_FAIL");
}

TEST_F(FakeDriver, ARefusalOfNvmlIsOneLineAndStays) {
  setenv("FSR_FAKE_NVML_FAIL", "init", 1);
  EXPECT_EQ(textOf(backend->gpuState().takeError()),
            "no NVML: nvmlInit: Not Supported");
  unsetenv("FSR_FAKE_NVML_FAIL");
  EXPECT_EQ(textOf(backend->gpuState().takeError()),
            "no NVML: nvmlInit: Not Supported");
}

} // namespace

TEST_F(FakeDriver, VariablesOfAModule) {
  auto place = backend->variable(module, "state");
  ASSERT_TRUE(bool(place)) << textOf(place.takeError());
  EXPECT_EQ(*place, std::make_pair(DevicePointer(0x7f0000001000), uint64_t(4)));
  auto missing = backend->variable(module, "nowhere");
  ASSERT_FALSE(bool(missing));
  llvm::handleAllErrors(missing.takeError(), [](const BackendError &error) {
    EXPECT_TRUE(error.isNotFound());
    EXPECT_EQ(error.call, "cuModuleGetGlobal 'nowhere'");
  });
}

TEST_F(FakeDriver, SharedMemoryIsOptedInWhereTheSumPasses48KiB) {
  const unsigned kib = 1024;
  // 1 KiB is static.
  EXPECT_EQ(launchWith(47 * kib), launched(47 * kib));
  EXPECT_EQ(launchWith(48 * kib),
            "attribute 8 of k is 49152\n" + launched(48 * kib));
  EXPECT_EQ(launchWith(48 * kib), launched(48 * kib));
  EXPECT_EQ(launchWith(40 * kib), launched(40 * kib));
  EXPECT_EQ(launchWith(100 * kib),
            "attribute 8 of k is 102400\n" + launched(100 * kib));
  // A module of later may have the same handles.
  EXPECT_EQ(textOf(backend->unloadModule(module)), "");
  EXPECT_EQ(log(), "unload\n");
  EXPECT_EQ(launchWith(100 * kib),
            "attribute 8 of k is 102400\n" + launched(100 * kib));
}

TEST_F(FakeDriver, ARefusedOptInIsAskedForAgain) {
  setenv("FSR_FAKE_CUDA_FAIL", "cuFuncSetAttribute=1", 1);
  EXPECT_EQ(launchWith(1 << 20),
            "cuFuncSetAttribute 'k' shared memory of 1048576 bytes: "
            "CUDA_ERROR_INVALID_VALUE");
  unsetenv("FSR_FAKE_CUDA_FAIL");
  EXPECT_EQ(launchWith(1 << 20),
            "attribute 8 of k is 1048576\n" + launched(1 << 20));
}

TEST_F(FakeDriver, ClustersTakeTheOtherCall) {
  launch.grid = {16, 2, 3};
  launch.block = {64, 4, 5};
  launch.cluster = {2, 1, 1};
  EXPECT_EQ(launchWith(0), "launch k grid 16 2 3 block 64 4 5 shared 0 "
                           "attributes 1: 4 is 2 1 1\n");
  launch.cluster = {8, 2, 1};
  EXPECT_EQ(launchWith(0), "attribute 14 of k is 1\n"
                           "launch k grid 16 2 3 block 64 4 5 shared 0 "
                           "attributes 1: 4 is 8 2 1\n");
}

TEST_F(FakeDriver, RefusalsNameCallKernelAndReason) {
  setenv("FSR_FAKE_CUDA_FAIL", "cuLaunchKernel=1", 1);
  EXPECT_EQ(launchWith(0), "cuLaunchKernel 'k': CUDA_ERROR_INVALID_VALUE");
  // A code that this driver has no name for.
  setenv("FSR_FAKE_CUDA_FAIL", "cuLaunchKernel=4711", 1);
  EXPECT_EQ(launchWith(0), "cuLaunchKernel 'k': CUDA error 4711");
}

TEST_F(FakeDriver, ModulesCarryTheLevelAndTheLog) {
  EXPECT_EQ(textOf(backend
                       ->loadModule("\x7f"
                                    "ELF")
                       .takeError()),
            "");
  EXPECT_EQ(textOf(backend->loadModule(".version", 2).takeError()), "");
  EXPECT_EQ(textOf(backend->loadModule(".version", 9).takeError()), "");
  EXPECT_EQ(log(), "load binary level 4\nload PTX level 2\nload PTX level 4\n");
  setenv("FSR_FAKE_CUDA_FAIL", "cuModuleLoadDataEx=218", 1);
  EXPECT_EQ(textOf(backend->loadModule(".version").takeError()),
            "cuModuleLoadDataEx of PTX: CUDA_ERROR_INVALID_PTX: ptxas: line 3; "
            "no such thing");
}

TEST_F(FakeDriver, FlagsOfStreamsEventsAndMemory) {
  EXPECT_TRUE(bool(backend->createStream()));
  EXPECT_TRUE(bool(backend->createEvent(/*timing=*/true)));
  EXPECT_TRUE(bool(backend->createEvent(/*timing=*/false)));
  auto managed = backend->allocateManaged(64);
  ASSERT_TRUE(bool(managed));
  EXPECT_EQ(textOf(backend->registerHost(&launch, 16)), "");
  EXPECT_EQ(log(), "stream flags 1\nevent flags 0\nevent flags 2\n"
                   "managed 64 flags 1\nregister 16 flags 3\n");
  EXPECT_EQ(textOf(backend->release(reinterpret_cast<uint64_t>(*managed))), "");
}

TEST_F(FakeDriver, PropertiesComeFromTheRightAttributes) {
  auto properties = backend->properties();
  ASSERT_TRUE(bool(properties));
  EXPECT_EQ(properties->name, "fake");
  EXPECT_EQ(properties->driver, "13.0");
  EXPECT_EQ(properties->chip, "sm_90");
  EXPECT_EQ(properties->multiprocessors, 16);
  EXPECT_EQ(properties->sharedBytesPerBlock, 97);
  EXPECT_EQ(properties->maxBlock, (std::array<int64_t, 3>{2, 3, 4}));
  EXPECT_EQ(properties->maxGrid, (std::array<int64_t, 3>{5, 6, 7}));
  setenv("FSR_FAKE_CUDA_VERSION", "12080", 1);
  EXPECT_EQ(llvm::cantFail(backend->properties()).driver, "12.8");
  setenv("FSR_FAKE_CUDA_FAIL", "cuDeviceGetAttribute=1", 1);
  EXPECT_EQ(textOf(backend->properties().takeError()),
            "cuDeviceGetAttribute 16: CUDA_ERROR_INVALID_VALUE");
}

TEST_F(FakeDriver, TheContextIsReleased) {
  backend.reset();
  EXPECT_EQ(log(), "release 0\n");
  setenv("FSR_FAKE_CUDA_FAIL", "cuCtxSetCurrent=1", 1);
  EXPECT_EQ(textOf(openCudaBackend(0).takeError()),
            "cuCtxSetCurrent: CUDA_ERROR_INVALID_VALUE");
  EXPECT_EQ(log(), "retain 0\nrelease 0\n");
}

TEST_F(FakeDriver, WhatIsMissingIsSaid) {
  EXPECT_TRUE(cudaDriverPresent());
  EXPECT_EQ(textOf(openCudaBackend(1).takeError()),
            "no GPU 1: the CUDA driver reports 1 GPU");
  setenv("FSR_FAKE_CUDA_GPUS", "2", 1);
  EXPECT_EQ(textOf(openCudaBackend(-1).takeError()),
            "no GPU -1: the CUDA driver reports 2 GPUs");
  setenv("FSR_FAKE_CUDA_GPUS", "0", 1);
  EXPECT_FALSE(cudaDriverPresent());
  EXPECT_EQ(textOf(openCudaBackend(0).takeError()),
            "the CUDA driver reports no GPU (cuInit: CUDA_ERROR_NO_DEVICE)");
  setenv("FSR_FAKE_CUDA_FAIL", "cuInit=34", 1);
  EXPECT_EQ(textOf(openCudaBackend(0).takeError()),
            "no CUDA driver: libcuda.so.1 is a toolkit's, for linking only");
}
