// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The mixes and how they are run. Inputs come from a fixed sequence of numbers,
// so that all runs do the same.
//
//===----------------------------------------------------------------------===//

#include "Mixes.h"

#include "llvm/Support/Error.h"

#include <chrono>
#include <cstring>
#include <ctime>

using namespace fsr::ptx;

namespace fsr::bench {

namespace {

// Each takes `%out`, the address of four megabytes, `%i`, the thread's number
// in the grid, and goes around 200 times.
constexpr const char arithmeticBody[] = R"(
  mov.u32 %r1, 0;
  mov.f32 %f1, 0f3F800000;
  mov.f32 %f2, 0f3F000000;
LOOP:
  fma.rn.f32 %f1, %f1, %f2, %f1;
  add.f32 %f3, %f1, %f2;
  mul.f32 %f4, %f3, 0f3E800000;
  fma.rn.f32 %f1, %f4, %f2, %f3;
  add.s32 %r2, %r1, %i;
  xor.b32 %r3, %r2, %r1;
  shl.b32 %r4, %r3, 3;
  mad.lo.s32 %r5, %r4, 7, %r2;
  and.b32 %r6, %r5, 255;
  or.b32 %r7, %r6, 0x3F800000;
  mov.b32 %f5, %r7;
  fma.rn.f32 %f1, %f5, 0f3A83126F, %f1;
  add.s32 %r1, %r1, 1;
  setp.lt.s32 %p1, %r1, 200;
  @%p1 bra LOOP;
  mul.wide.u32 %rd1, %i, 4;
  add.s64 %rd2, %rd1, %out;
  st.global.f32 [%rd2], %f1;
  ret;
)";
constexpr const char memoryBody[] = R"(
  mov.u32 %r1, 0;
  mul.wide.u32 %rd1, %i, 4;
  add.s64 %rd2, %rd1, %out;
LOOP:
  ld.global.f32 %f1, [%rd2];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd2], %f2;
  add.s32 %r1, %r1, 1;
  setp.lt.s32 %p1, %r1, 200;
  @%p1 bra LOOP;
  ret;
)";
constexpr const char sharedBody[] = R"(
  mov.u32 %r1, 0;
  mov.u32 %r9, %tid.x;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r9, 2;
  add.s32 %r4, %r2, %r3;
  mov.f32 %f1, 0f3F800000;
LOOP:
  st.shared.f32 [%r4], %f1;
  bar.sync 0;
  xor.b32 %r5, %r3, 128;
  add.s32 %r6, %r2, %r5;
  ld.shared.f32 %f2, [%r6];
  ld.shared.f32 %f3, [%r4];
  add.f32 %f1, %f2, %f3;
  bar.sync 0;
  add.s32 %r1, %r1, 1;
  setp.lt.s32 %p1, %r1, 200;
  @%p1 bra LOOP;
  mul.wide.u32 %rd1, %i, 4;
  add.s64 %rd2, %rd1, %out;
  st.global.f32 [%rd2], %f1;
  ret;
)";

constexpr uint64_t millionWords = 1 << 20;

constexpr Mix all[] = {
    {"arithmetic", arithmeticBody, 30, 512, 1, 256, 1, "z", millionWords, 0},
    {"memory", memoryBody, 10, 512, 1, 256, 1, "z", millionWords, 0},
    {"shared", sharedBody, 10, 512, 1, 256, 1, "z", millionWords, 0},
    {"matmul16", nullptr, 15, 16, 16, 16, 16, "ffz", 256 * 256, 256},
    {"matmul32", nullptr, 15, 8, 8, 32, 32, "ffz", 256 * 256, 256},
    {"matmul_registers", nullptr, 15, 8, 8, 256, 1, "ffz", 512 * 512, 512},
    {"bitonic", nullptr, 6, 256, 1, 256, 1, "wz", 256 * 512, 0},
    {"histogram_shared", nullptr, 5, 128, 1, 256, 1, "wz", millionWords,
     millionWords},
    {"histogram_global", nullptr, 0, 128, 1, 256, 1, "wz", millionWords,
     millionWords},
    {"gather", nullptr, 0, 512, 1, 256, 1, "wz", 512 * 256, 512 * 256},
    {"softmax_block", nullptr, 10, 256, 1, 256, 1, "fz", millionWords, 4096},
    {"softmax_rows", nullptr, 0, 8, 1, 128, 1, "fz", millionWords, 1024},
};

} // namespace

llvm::ArrayRef<Mix> mixes() { return all; }

std::string moduleOf(const char *body, unsigned salt) {
  return std::string(R"(.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b32 %r<12>;
  .reg .b64 %rd<4>;
  .reg .f32 %f<8>;
  .reg .pred %p<2>;
  .reg .b64 %out;
  .reg .b32 %i;
  .shared .align 4 .b8 tile[1024];
  ld.param.u64 %out, [p];
  cvta.to.global.u64 %out, %out;
  mov.u32 %r10, %ctaid.x;
  mov.u32 %r11, %ntid.x;
  mov.u32 %i, )") +
         std::to_string(salt) + R"(;
  mov.u32 %i, %tid.x;
  mad.lo.s32 %i, %r10, %r11, %i;
)" + body +
         "}\n";
}

Bench::Bench(const Mix &mix, llvm::StringRef kernels)
    : mix(mix), gpu(makeVirtualGpu(VirtualGpuOptions())) {
  llvm::ExitOnError check("ptx-speed: ");
  module =
      check(gpu->loadModule(mix.body ? moduleOf(mix.body) : kernels.str()));
  auto append = [&](const void *value, size_t bytes) {
    const auto *from = static_cast<const uint8_t *>(value);
    params.insert(params.end(), from, from + bytes);
  };
  uint32_t state = 1;
  for (const char *kind = mix.buffers; *kind; ++kind) {
    uint64_t address = check(gpu->allocate(mix.elements * 4));
    std::vector<uint32_t> words(mix.elements);
    for (uint32_t &word : words) {
      state = state * 1664525 + 1013904223;
      float number = float(state >> 8) * 0x1p-24f;
      if (*kind == 'f')
        std::memcpy(&word, &number, 4);
      else
        word = *kind == 'w' ? state >> 4 : 0;
    }
    check(gpu->write(address, words.data(), mix.elements * 4));
    check(gpu->setTainted(address, mix.elements * 4, true));
    append(&address, 8);
  }
  append(&mix.last, 4);
  size_t wanted = 0;
  for (const KernelParameter &one :
       check(gpu->parameters(module, mix.body ? "k" : mix.name)))
    wanted = one.offset + one.bytes;
  params.resize(wanted);
}

Run Bench::run(const LaunchOptions &options) {
  llvm::ExitOnError check("ptx-speed: ");
  LaunchShapeOf shape;
  shape.grid = {mix.grid, mix.gridY, 1};
  shape.block = {mix.block, mix.blockY, 1};
  Run run;
  auto start = std::chrono::steady_clock::now();
  std::clock_t begin = std::clock();
  run.result = check(
      gpu->launch(module, mix.body ? "k" : mix.name, shape, params, options));
  run.processor = double(std::clock() - begin) / CLOCKS_PER_SEC;
  run.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return run;
}

} // namespace fsr::bench
