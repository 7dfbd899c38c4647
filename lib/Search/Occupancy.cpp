// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rules of allocation: registers come to a warp in steps of 256, shared
// memory to a block in steps of 128 bytes with 1 KiB of the system's own from
// compute capability 8.0 on, and warps are spread over four parts of a
// multiprocessor.
//
//===----------------------------------------------------------------------===//

#include "Occupancy.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace fsr {

static int64_t blocksPerMultiprocessor(llvm::StringRef chip) {
  return llvm::StringSwitch<int64_t>(chip.rtrim("af"))
      .Cases({"sm_75", "sm_86", "sm_87"}, 16)
      .Cases({"sm_89", "sm_120", "sm_121"}, 24)
      .Default(32);
}

std::optional<Occupancy> occupancyOf(const KernelResources &kernel,
                                     const LaunchShape &shape,
                                     const DeviceDescription &device) {
  Occupancy found;
  found.threadsPerBlock = shape.block[0] * shape.block[1] * shape.block[2];
  found.sharedBytes = kernel.sharedBytes + shape.sharedBytes;
  found.mostWarps = device.threadsPerMultiprocessor / 32;
  if (found.threadsPerBlock <= 0 || found.mostWarps <= 0 ||
      device.registersPerMultiprocessor <= 0 ||
      device.sharedBytesPerMultiprocessor <= 0)
    return std::nullopt;
  int64_t warpsPerBlock = llvm::divideCeil(found.threadsPerBlock, 32);
  auto take = [&](Occupancy::Limit limit, int64_t blocks) {
    if (limit != Occupancy::Threads && blocks >= found.blocks)
      return;
    found.limit = limit;
    found.blocks = blocks;
  };
  take(Occupancy::Threads, found.mostWarps / warpsPerBlock);
  if (kernel.registers > 0) {
    int64_t ofWarp = llvm::alignTo(kernel.registers * 32, 256);
    int64_t warps = device.registersPerMultiprocessor / 4 / ofWarp * 4;
    take(Occupancy::Registers, warps / warpsPerBlock);
  }
  int64_t own = device.chip < "sm_80" && device.chip.size() == 5 ? 0 : 1024;
  if (found.sharedBytes > 0)
    take(Occupancy::Shared,
         device.sharedBytesPerMultiprocessor /
             int64_t(llvm::alignTo(found.sharedBytes + own, 128)));
  take(Occupancy::Blocks, blocksPerMultiprocessor(device.chip));
  if (found.blocks <= 0)
    return std::nullopt;
  found.warps = found.blocks * warpsPerBlock;
  double grid =
      double(shape.grid[0]) * double(shape.grid[1]) * double(shape.grid[2]);
  if (device.multiprocessors > 0)
    found.rounds = grid / double(device.multiprocessors * found.blocks);
  return found;
}

std::string describe(const Occupancy &occupancy,
                     const KernelResources &kernel) {
  std::string limit;
  switch (occupancy.limit) {
  case Occupancy::Threads:
    limit = "threads";
    break;
  case Occupancy::Registers:
    limit = llvm::formatv("registers ({0} a thread)", kernel.registers);
    break;
  case Occupancy::Shared:
    limit = llvm::formatv("shared memory ({0} bytes a block)",
                          occupancy.sharedBytes);
    break;
  case Occupancy::Blocks:
    limit = "the number of blocks, which are small";
    break;
  }
  std::string text = llvm::formatv(
      "{0} blocks of {1} threads fit on a multiprocessor, {2} of {3} warps "
      "({4:f0} %); what limits them is {5}",
      occupancy.blocks, occupancy.threadsPerBlock, occupancy.warps,
      occupancy.mostWarps,
      100 * double(occupancy.warps) / double(occupancy.mostWarps), limit);
  if (occupancy.rounds > 0)
    text += llvm::formatv(". The grid is {0:f2} times what runs at once",
                          occupancy.rounds);
  return text;
}

std::vector<std::string> rateTexts(const WorkEstimate &work,
                                   const DeviceDescription &device,
                                   double microseconds) {
  std::vector<std::string> texts;
  if (microseconds <= 0)
    return texts;
  auto add = [&](const char *what, const char *unit, double amount,
                 double peak) {
    if (amount <= 0 || peak <= 0)
      return;
    double rate = amount / microseconds * 1e6;
    texts.push_back(llvm::formatv("It {0} {1:f1} {2}, {3:f1} % of the "
                                  "theoretical peak",
                                  what, rate / 1e9, unit, 100 * rate / peak));
  };
  add("moves", "GB/s", work.bytesRead + work.bytesWritten,
      device.peakBytesPerSecond());
  add("computes", "GFLOP/s", work.flops, device.peakFlopsPerSecond());
  return texts;
}

std::vector<std::string> measuredRateTexts(const WorkEstimate &work,
                                           const Profile &profile,
                                           double microseconds) {
  std::vector<std::string> texts;
  if (microseconds <= 0 || !profile.peaks)
    return texts;
  const DevicePeaks &peaks = *profile.peaks;
  double bytes = work.bytesRead + work.bytesWritten;
  if (bytes > 0 && peaks.copyBytesPerSecond > 0)
    texts.push_back(llvm::formatv(
        "Of the {0:f1} GB/s that a plain copy reached on this GPU, it gets "
        "{1:f1} % (by the {2:f0} bytes that it has to move at least)",
        peaks.copyBytesPerSecond / 1e9,
        100 * bytes / microseconds * 1e6 / peaks.copyBytesPerSecond, bytes));
  bool isCounted = profile.counted && profile.counted->isWhole;
  double flops = isCounted ? double(profile.counted->flops32) : work.flops;
  if (flops > 0 && peaks.flopsPerSecond > 0)
    texts.push_back(llvm::formatv(
        "Of the {0:f1} GFLOP/s that f32 multiply-adds reached on this GPU, it "
        "gets {1:f1} % (by {2:f0} operations, {3})",
        peaks.flopsPerSecond / 1e9,
        100 * flops / microseconds * 1e6 / peaks.flopsPerSecond, flops,
        isCounted ? "as the virtual device counted its f32 ones"
                  : "the compiler's estimate of the original"));
  return texts;
}

} // namespace fsr
