// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How fast the virtual device runs: warp instructions a second on one host
// thread, with its checks on, for a mix of arithmetic and for one of memory.
//
//   ptx-speed [arithmetic|memory|shared] [--plain]
//
// `--plain` leaves out taint and the search for races, which tells what these
// cost.
//
//===----------------------------------------------------------------------===//

#include "fsr/PTX/VirtualGpu.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <ctime>

using namespace fsr::ptx;

namespace {
struct Mix {
  const char *name, *body;
};

/// Each takes `%out`, the address of four megabytes, `%i`, the thread's number
/// in the grid, and goes around 200 times.
constexpr Mix mixes[] = {
    {"arithmetic", R"(
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
)"},
    {"memory", R"(
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
)"},
    {"shared", R"(
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
)"},
};

bool measure(const Mix &mix, bool isPlain) {
  llvm::ExitOnError check("ptx-speed: ");
  std::unique_ptr<VirtualGpu> gpu = makeVirtualGpu(VirtualGpuOptions());
  std::string text = std::string(R"(.version 8.8
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
  mov.u32 %i, %tid.x;
  mad.lo.s32 %i, %r10, %r11, %i;
)") + mix.body + "}\n";
  unsigned module = check(gpu->loadModule(text));
  uint64_t address = check(gpu->allocate(4 << 20));
  check(gpu->fill(address, 0, 4, 1 << 20));
  check(gpu->setTainted(address, 4 << 20, true));
  uint8_t params[8];
  std::memcpy(params, &address, 8);
  LaunchShapeOf shape;
  shape.grid = {512, 1, 1};
  shape.block = {256, 1, 1};
  LaunchOptions options;
  options.hostThreads = 1;
  options.checkRaces = options.trackTaint = !isPlain;
  // Of the processor: the machine may have other work.
  std::clock_t start = std::clock();
  LaunchResult result = check(gpu->launch(module, "k", shape, params, options));
  double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  for (const Finding &finding : result.findings)
    llvm::errs() << finding.text() << "\n";
  const Counters &counters = result.counters;
  llvm::outs() << llvm::format(
      "%-10s %7.1f M warp instructions/s, %5.1f ns each; of them %4.1f %% "
      "memory, %4.1f %% floating point, %4.1f %% integer\n",
      mix.name, counters.warpInstructions / seconds / 1e6,
      seconds * 1e9 / counters.warpInstructions,
      100.0 * counters.memory / counters.warpInstructions,
      100.0 * counters.float32 / counters.warpInstructions,
      100.0 * counters.integer / counters.warpInstructions);
  return result.findings.empty();
}
} // namespace

int main(int argc, char **argv) {
  llvm::StringRef wanted;
  bool isPlain = false;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef argument = argv[i];
    if (argument == "--plain")
      isPlain = true;
    else
      wanted = argument;
  }
  bool isGood = true, isKnown = false;
  for (const Mix &mix : mixes) {
    if (!wanted.empty() && wanted != mix.name)
      continue;
    isKnown = true;
    isGood &= measure(mix, isPlain);
  }
  if (!isKnown)
    llvm::errs() << "ptx-speed: no mix \"" << wanted << "\"\n";
  return isGood && isKnown ? 0 : 1;
}
