// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What ptx-speed runs: three loops written by hand, each of one kind of work,
// and the kernels of kernels.cu. Each says how it is launched and what its
// buffers hold; the sizes are such that a run takes some tenths of a second.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_PTXSPEED_MIXES_H
#define FSR_BENCHMARKS_PTXSPEED_MIXES_H

#include "fsr/PTX/VirtualGpu.h"

#include <string>

namespace fsr::bench {

struct Mix {
  const char *name;
  /// Of a kernel written here; null: `name` in kernels.ptx.
  const char *body;
  /// At least so many million warp instructions a second; 0: none is wanted.
  double floor;
  unsigned grid, gridY, block, blockY;
  /// Buffers of floats or random words, by a letter each ('f', 'w', and 'z'
  /// for zeros), of so many elements, then an integer.
  const char *buffers;
  uint64_t elements;
  uint32_t last;
};
llvm::ArrayRef<Mix> mixes();
/// A kernel `k` of that body; `salt` makes its text another's.
std::string moduleOf(const char *body, unsigned salt = 0);

struct Run {
  double seconds = 0, processor = 0; ///< Wall clock, and of all threads.
  ptx::LaunchResult result;
};

/// A mix on a device of its own, ready to be run again and again.
class Bench {
public:
  /// `kernels`: the text of kernels.ptx.
  Bench(const Mix &mix, llvm::StringRef kernels);
  Run run(const ptx::LaunchOptions &options);

private:
  const Mix &mix;
  std::unique_ptr<ptx::VirtualGpu> gpu;
  unsigned module = 0;
  std::vector<uint8_t> params;
};

} // namespace fsr::bench

#endif // FSR_BENCHMARKS_PTXSPEED_MIXES_H
