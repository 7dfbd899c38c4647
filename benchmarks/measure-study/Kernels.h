// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels whose time is a number that can be set: one waits for arithmetic, one
// for memory, and each does so many iterations. Whatever their number, the
// result is the input, so that two of them differ in time and in nothing else;
// neither the compiler nor ptxas can know that.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_MEASURESTUDY_KERNELS_H
#define FSR_BENCHMARKS_MEASURESTUDY_KERNELS_H

#include "fsr/Core/Candidate.h"
#include "fsr/Core/KernelTask.h"

namespace fsr::study {

enum class Kind {
  Compute, ///< A chain of fused multiply-adds in every thread.
  Memory,  ///< Copies blocks of 16 bytes, round and round.
  Empty,   ///< Returns at once: what a harness adds to every time.
};
llvm::StringRef nameOf(Kind kind);

struct Kernel {
  Kind kind = Kind::Compute;
  /// One buffer in place of two: such kernels are never launched in batches.
  bool inPlace = false;
  int64_t multiprocessors = 1;
  int64_t iterations = 1;
  /// The first number of iterations, which gives the buffers their size:
  /// slowed kernels have the buffers of the one that they are held against.
  int64_t sizedFor = 1;
  /// A memory kernel that copies more blocks of 16 bytes begins again at the
  /// first. The default is larger than L2 of any GPU, and filled fast.
  int64_t mostBlocks = 4 << 20;

  int64_t blocks() const;
  /// 32-bit elements of a buffer.
  int64_t elements() const;
  std::string ptx() const;
  KernelTask task() const;
  ResolvedPlan plan() const;
};

constexpr unsigned threadsPerBlock = 256;

} // namespace fsr::study

#endif // FSR_BENCHMARKS_MEASURESTUDY_KERNELS_H
