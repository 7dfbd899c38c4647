// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every function of the interface on a real GPU, with kernels of a few lines.
// Skipped, in so many words, where there is none.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/Backend.h"
#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

using namespace fsr;

namespace {

// scale(x, y, n): y[i] = 2 x[i]. last(out, at): leaves blockDim at byte `at` of
// dynamic shared memory, behind 1 KiB of static, and reads it back. fault()
// writes where nothing is.
constexpr llvm::StringLiteral kernels = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry scale(.param .u64 px, .param .u64 py, .param .u32 pn) {
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<3>;
  ld.param.u64 %d1, [px];
  ld.param.u64 %d2, [py];
  ld.param.u32 %r1, [pn];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p, %r5, %r1;
  @%p ret;
  mul.wide.u32 %d3, %r5, 4;
  add.u64 %d4, %d1, %d3;
  add.u64 %d5, %d2, %d3;
  ld.f32 %f1, [%d4];
  add.f32 %f2, %f1, %f1;
  st.f32 [%d5], %f2;
  ret;
}
.visible .entry last(.param .u64 pout, .param .u32 pat) {
  .shared .align 4 .b8 fixed[1024];
  .reg .b32 %r<8>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [pout];
  ld.param.u32 %r1, [pat];
  mov.u32 %r2, dynamic;
  add.u32 %r3, %r2, %r1;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, fixed;
  st.shared.u32 [%r5], %r4;
  ld.shared.u32 %r6, [%r5];
  st.shared.u32 [%r3], %r6;
  bar.sync 0;
  ld.shared.u32 %r7, [%r3];
  st.u32 [%d1], %r7;
  ret;
}
.visible .entry fault() {
  .reg .b64 %d<2>;
  mov.u64 %d1, 64;
  st.global.u32 [%d1], 1;
  ret;
}
)";

// cluster(out): the number of blocks of its cluster.
constexpr llvm::StringLiteral clusterKernel = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry cluster(.param .u64 pout) {
  .reg .b32 %r<2>; .reg .b64 %d<2>;
  ld.param.u64 %d1, [pout];
  mov.u32 %r1, %cluster_nctaid.x;
  st.u32 [%d1], %r1;
  ret;
}
)";

std::string textOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

#define ASSERT_OK(expression) ASSERT_EQ(textOf(expression), "")
#define EXPECT_OK(expression) EXPECT_EQ(textOf(expression), "")

/// Takes the value out; a test has failed where there is none.
template <typename T>
T take(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << textOf(value.takeError());
  return T();
}

class CudaBackend : public ::testing::Test {
protected:
  void SetUp() override {
    if (!cudaDriverPresent())
      GTEST_SKIP() << "needs an NVIDIA GPU and driver";
    auto opened = openCudaBackend(0);
    ASSERT_TRUE(bool(opened)) << textOf(opened.takeError());
    backend = std::move(*opened);
    module = take(backend->loadModule(kernels));
    ASSERT_TRUE(module);
    stream = take(backend->createStream());
  }
  void TearDown() override {
    if (!backend)
      return;
    if (stream)
      EXPECT_OK(backend->destroyStream(stream));
    if (module)
      EXPECT_OK(backend->unloadModule(module));
  }
  FunctionHandle function(llvm::StringRef name) {
    return take(backend->function(module, name));
  }
  /// y = 2 x over `n` floats.
  llvm::Error scale(uint64_t x, uint64_t y, uint32_t n, StreamHandle on) {
    void *params[] = {&x, &y, &n};
    BackendLaunch launch;
    launch.function = function("scale");
    launch.name = "scale";
    launch.grid = {(n + 127) / 128, 1, 1};
    launch.block = {128, 1, 1};
    launch.stream = on;
    launch.params = params;
    return backend->launch(launch);
  }
  /// What `last` reads back from the last word of `bytes` of shared memory.
  llvm::Expected<uint32_t> last(unsigned bytes) {
    uint64_t out = take(backend->allocate(4));
    uint32_t at = bytes - 4;
    void *params[] = {&out, &at};
    BackendLaunch launch;
    launch.function = function("last");
    launch.name = "last";
    launch.block = {96, 1, 1};
    launch.sharedBytes = bytes;
    launch.stream = stream;
    launch.params = params;
    uint32_t got = 0;
    llvm::Error error = backend->launch(launch);
    if (!error)
      error = backend->synchronize(stream);
    if (!error)
      error = backend->copyToHost(&got, out, 4, nullptr);
    if (error)
      return std::move(error);
    if (llvm::Error released = backend->release(out))
      return std::move(released);
    return got;
  }

  std::unique_ptr<Backend> backend;
  ModuleHandle module = nullptr;
  StreamHandle stream = nullptr;
};

std::vector<float> ramp(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

} // namespace

TEST_F(CudaBackend, PropertiesAreOfAGpu) {
  BackendProperties properties = take(backend->properties());
  EXPECT_FALSE(properties.name.empty());
  EXPECT_EQ(properties.chip.rfind("sm_", 0), 0u) << properties.chip;
  EXPECT_NE(properties.driver.find('.'), std::string::npos);
  EXPECT_GT(properties.multiprocessors, 0);
  EXPECT_GT(properties.clockKhz, 100000);
  EXPECT_GT(properties.memoryClockKhz, 100000);
  EXPECT_GT(properties.memoryBusBits, 0);
  EXPECT_GT(properties.l2Bytes, 0);
  EXPECT_GT(properties.memoryBytes, 1 << 28);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_GE(properties.sharedBytesPerBlock, 48 * 1024);
  EXPECT_GE(properties.sharedBytesPerMultiprocessor,
            properties.sharedBytesPerBlock);
  EXPECT_GE(properties.registersPerBlock, 32768);
  EXPECT_GE(properties.registersPerMultiprocessor,
            properties.registersPerBlock);
  EXPECT_GE(properties.threadsPerBlock, 512);
  EXPECT_GE(properties.threadsPerMultiprocessor, properties.threadsPerBlock);
  EXPECT_EQ(properties.maxBlock[2], 64);
  EXPECT_EQ(properties.maxGrid[0], 2147483647);
  EXPECT_GT(take(backend->freeMemory()), 0u);
}

TEST_F(CudaBackend, CopiesLaunchesAndCopiesBack) {
  for (StreamHandle on : {stream, StreamHandle(nullptr)}) {
    std::vector<float> x = ramp(1000), y(1000);
    size_t bytes = x.size() * sizeof(float);
    DevicePointer dx = take(backend->allocate(bytes));
    DevicePointer dy = take(backend->allocate(bytes));
    ASSERT_OK(backend->copyToDevice(dx, x.data(), bytes, on));
    ASSERT_OK(scale(dx, dy, 1000, on));
    ASSERT_OK(backend->copyToHost(y.data(), dy, bytes, on));
    ASSERT_OK(backend->synchronize(on));
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], 2 * x[i]) << i;
    EXPECT_OK(backend->release(dx));
    EXPECT_OK(backend->release(dy));
  }
}

TEST_F(CudaBackend, CopyAnyTakesEitherSide) {
  std::vector<float> x = ramp(256), y(256);
  size_t bytes = x.size() * sizeof(float);
  void *a = reinterpret_cast<void *>(take(backend->allocate(bytes)));
  void *b = reinterpret_cast<void *>(take(backend->allocate(bytes)));
  ASSERT_OK(backend->copyAny(a, x.data(), bytes, stream));
  ASSERT_OK(backend->copyAny(b, a, bytes, stream));
  ASSERT_OK(backend->copyAny(y.data(), b, bytes, stream));
  ASSERT_OK(backend->synchronize(stream));
  EXPECT_EQ(x, y);
  EXPECT_OK(backend->release(reinterpret_cast<DevicePointer>(a)));
  EXPECT_OK(backend->release(reinterpret_cast<DevicePointer>(b)));
}

TEST_F(CudaBackend, FillsOfEachWidth) {
  uint32_t words[6] = {};
  DevicePointer buffer = take(backend->allocate(sizeof(words)));
  ASSERT_OK(backend->fill32(buffer, 0xdeadbeef, 6, stream));
  ASSERT_OK(backend->fill16(buffer + 4, 0x1234, 2, stream));
  ASSERT_OK(backend->fill8(buffer + 8, 0x5a, 4, stream));
  ASSERT_OK(backend->copyToHost(words, buffer, sizeof(words), stream));
  ASSERT_OK(backend->synchronize(stream));
  EXPECT_EQ(words[0], 0xdeadbeef);
  EXPECT_EQ(words[1], 0x12341234u);
  EXPECT_EQ(words[2], 0x5a5a5a5au);
  EXPECT_EQ(words[5], 0xdeadbeef);
  EXPECT_OK(backend->release(buffer));
}

TEST_F(CudaBackend, NothingIsAFineAmount) {
  DevicePointer buffer = take(backend->allocate(0));
  EXPECT_NE(buffer, 0u);
  EXPECT_OK(backend->copyToDevice(buffer, nullptr, 0, stream));
  EXPECT_OK(backend->copyToHost(nullptr, buffer, 0, stream));
  EXPECT_OK(backend->copyAny(nullptr, nullptr, 0, stream));
  EXPECT_OK(backend->fill32(buffer, 1, 0, stream));
  EXPECT_OK(backend->fill16(buffer, 1, 0, stream));
  EXPECT_OK(backend->fill8(buffer, 1, 0, stream));
  EXPECT_OK(backend->release(buffer));
}

TEST_F(CudaBackend, KernelsUseRegisteredHostMemoryByTheSamePointer) {
  std::vector<float> x = ramp(2048), y(2048);
  size_t bytes = x.size() * sizeof(float);
  ASSERT_OK(backend->registerHost(x.data(), bytes));
  ASSERT_OK(backend->registerHost(y.data(), bytes));
  ASSERT_OK(scale(reinterpret_cast<uint64_t>(x.data()),
                  reinterpret_cast<uint64_t>(y.data()), 2048, stream));
  ASSERT_OK(backend->synchronize(stream));
  EXPECT_EQ(y[2047], 4096);
  EXPECT_OK(backend->unregisterHost(y.data()));
  EXPECT_OK(backend->unregisterHost(x.data()));
  EXPECT_NE(textOf(backend->unregisterHost(x.data())), "");
}

TEST_F(CudaBackend, ManagedMemoryIsSeenByBothSides) {
  auto *x = static_cast<float *>(take(backend->allocateManaged(512)));
  ASSERT_TRUE(x);
  std::vector<float> values = ramp(128);
  std::memcpy(x, values.data(), 512);
  ASSERT_OK(scale(reinterpret_cast<uint64_t>(x), reinterpret_cast<uint64_t>(x),
                  128, stream));
  ASSERT_OK(backend->synchronize(stream));
  EXPECT_EQ(x[127], 256);
  EXPECT_OK(backend->release(reinterpret_cast<DevicePointer>(x)));
}

TEST_F(CudaBackend, EventsTimeAndOrder) {
  EventHandle start = take(backend->createEvent(/*timing=*/true));
  EventHandle stop = take(backend->createEvent(/*timing=*/true));
  EventHandle plain = take(backend->createEvent(/*timing=*/false));
  StreamHandle other = take(backend->createStream());
  size_t bytes = size_t(64) << 20;
  DevicePointer buffer = take(backend->allocate(bytes));
  ASSERT_OK(backend->record(start, stream));
  ASSERT_OK(backend->fill8(buffer, 1, bytes, stream));
  ASSERT_OK(backend->record(stop, stream));
  ASSERT_OK(backend->record(plain, stream));
  // The other stream writes after the first, or not at all the right bytes.
  ASSERT_OK(backend->wait(other, plain));
  ASSERT_OK(backend->fill8(buffer + bytes - 4, 2, 4, other));
  ASSERT_OK(backend->synchronizeEvent(stop));
  double ms = take(backend->elapsedMs(start, stop));
  EXPECT_GT(ms, 0.001);
  EXPECT_LT(ms, 1000);
  ASSERT_OK(backend->synchronizeAll());
  uint8_t tail[8] = {};
  ASSERT_OK(backend->copyToHost(tail, buffer + bytes - 8, 8, nullptr));
  EXPECT_EQ(tail[0], 1);
  EXPECT_EQ(tail[7], 2);
  EXPECT_NE(textOf(backend->elapsedMs(plain, stop).takeError()), "");
  EXPECT_OK(backend->destroyEvent(start));
  EXPECT_OK(backend->destroyEvent(stop));
  EXPECT_OK(backend->destroyEvent(plain));
  EXPECT_OK(backend->destroyStream(other));
  EXPECT_OK(backend->release(buffer));
}

TEST_F(CudaBackend, SharedMemoryIsOptedIn) {
  int64_t most = take(backend->properties()).sharedBytesPerBlock;
  // 1 KiB is static: the sum passes 48 KiB from 47 KiB on.
  for (unsigned bytes : {4u, 47u * 1024, 47u * 1024 + 4, 48u * 1024,
                         unsigned(most - 1024), 16u * 1024}) {
    llvm::Expected<uint32_t> got = last(bytes);
    ASSERT_TRUE(bool(got)) << bytes << ": " << textOf(got.takeError());
    EXPECT_EQ(*got, 96u) << bytes;
  }
  llvm::Error error = last(unsigned(most)).takeError();
  ASSERT_TRUE(bool(error));
  ASSERT_TRUE(error.isA<BackendError>());
  llvm::handleAllErrors(std::move(error), [](const BackendError &refused) {
    EXPECT_TRUE(refused.isLaunchRefusal()) << refused.call << refused.name;
    EXPECT_FALSE(refused.isSticky());
  });
  // Nothing is broken by it.
  EXPECT_EQ(take(last(1024)), 96u);
}

TEST_F(CudaBackend, ARefusedLaunchSaysWhichKernel) {
  BackendLaunch launch;
  uint64_t pointer = 0;
  uint32_t n = 0;
  void *params[] = {&pointer, &pointer, &n};
  launch.function = function("scale");
  launch.name = "scale";
  launch.block = {2048, 1, 1};
  launch.params = params;
  EXPECT_EQ(textOf(backend->launch(launch)),
            "cuLaunchKernel 'scale': CUDA_ERROR_INVALID_VALUE");
}

TEST_F(CudaBackend, ClustersLaunch) {
  BackendProperties properties = take(backend->properties());
  if (std::atoi(properties.chip.c_str() + 3) < 90)
    GTEST_SKIP() << "needs a GPU with clusters, sm_90 or newer";
  ModuleHandle clustered = take(backend->loadModule(clusterKernel));
  uint64_t out = take(backend->allocate(4));
  void *params[] = {&out};
  BackendLaunch launch;
  launch.function = take(backend->function(clustered, "cluster"));
  launch.name = "cluster";
  launch.block = {32, 1, 1};
  launch.stream = stream;
  launch.params = params;
  for (unsigned blocks : {2u, 8u, 16u}) {
    launch.grid = {16, 1, 1};
    launch.cluster = {blocks, 1, 1};
    ASSERT_OK(backend->launch(launch));
    ASSERT_OK(backend->synchronize(stream));
    uint32_t got = 0;
    ASSERT_OK(backend->copyToHost(&got, out, 4, nullptr));
    EXPECT_EQ(got, blocks);
  }
  launch.cluster = {3, 1, 1};
  std::string text = textOf(backend->launch(launch));
  EXPECT_EQ(text.rfind("cuLaunchKernelEx 'cluster': CUDA_ERROR_", 0), 0u)
      << text;
  EXPECT_OK(backend->release(out));
  EXPECT_OK(backend->unloadModule(clustered));
}

TEST_F(CudaBackend, BadImagesAndNamesAreErrors) {
  std::string text = textOf(
      backend->loadModule(".version 7.0\n.target sm_75\nnonsense").takeError());
  EXPECT_EQ(
      text.rfind("cuModuleLoadDataEx of PTX: CUDA_ERROR_INVALID_PTX: ", 0), 0u)
      << text;
  EXPECT_NE(text.find("line 3"), std::string::npos) << text;
  text = textOf(backend->function(module, "nowhere").takeError());
  EXPECT_EQ(text, "cuModuleGetFunction 'nowhere': CUDA_ERROR_NOT_FOUND");
  // Every optimisation level is one that the driver takes.
  for (unsigned level : {0u, 1u, 2u, 3u, 4u, 9u}) {
    ModuleHandle again = take(backend->loadModule(kernels, level));
    EXPECT_OK(backend->unloadModule(again));
  }
}

TEST_F(CudaBackend, AnotherThreadMakesItCurrent) {
  std::thread([&] {
    ASSERT_OK(backend->makeCurrent());
    DevicePointer buffer = take(backend->allocate(64));
    ASSERT_OK(scale(buffer, buffer, 16, nullptr));
    ASSERT_OK(backend->synchronizeAll());
    EXPECT_OK(backend->release(buffer));
  }).join();
}

TEST_F(CudaBackend, TooMuchMemoryIsAnErrorThatSaysHowMuch) {
  std::string text = textOf(backend->allocate(size_t(1) << 50).takeError());
  EXPECT_EQ(text, "cuMemAlloc of 1125899906842624 bytes: "
                  "CUDA_ERROR_OUT_OF_MEMORY");
  // Not sticky.
  EXPECT_OK(backend->release(take(backend->allocate(1))));
}

TEST_F(CudaBackend, NoSuchGpu) {
  std::string text = textOf(openCudaBackend(4096).takeError());
  EXPECT_EQ(text.rfind("no GPU 4096: the CUDA driver reports ", 0), 0u) << text;
  EXPECT_NE(textOf(openCudaBackend(-1).takeError()), "");
}

/// Faults, and exits with 0 where everything is reported as it must be.
[[noreturn]] static void faultAndExit() {
  auto backend = openCudaBackend(0);
  if (!backend)
    _exit(10);
  auto module = (*backend)->loadModule(kernels);
  if (!module)
    _exit(11);
  BackendLaunch launch;
  auto function = (*backend)->function(*module, "fault");
  if (!function)
    _exit(12);
  launch.function = *function;
  launch.name = "fault";
  if ((*backend)->launch(launch))
    _exit(13);
  for (int i = 0; i < 2; ++i) { // The second call finds it dead still.
    llvm::Error error = (*backend)->synchronizeAll();
    if (!error || !error.isA<BackendError>())
      _exit(14);
    bool sticky = false;
    llvm::handleAllErrors(std::move(error), [&](const BackendError &fault) {
      sticky = fault.isSticky() && fault.name == "CUDA_ERROR_ILLEGAL_ADDRESS";
    });
    if (!sticky)
      _exit(15);
  }
  _exit(0);
}

TEST(CudaBackendDeathTest, AFaultIsSticky) {
  if (!cudaDriverPresent())
    GTEST_SKIP() << "needs an NVIDIA GPU and driver";
  // The child is this program started anew: nothing forks once CUDA runs.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(faultAndExit(), ::testing::ExitedWithCode(0), "");
}
