// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A block and the launch that it belongs to. A block is run by one host thread
// at a time, in slices, so that blocks which wait for one another all go on.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_BLOCK_H
#define FSR_LIB_PTX_BLOCK_H

#include "Memory.h"
#include "Warp.h"

namespace fsr::ptx {

class Launch {
public:
  const Program *program = nullptr;
  LaunchShapeOf shape;
  LaunchOptions options;
  Memory *memory = nullptr;
  FindingSink *findings = nullptr;
  /// The parameter block with the state of its bytes.
  Region params;
  unsigned number = 0; ///< Counts launches of the GPU.
  unsigned numMultiprocessors = 0;
  /// What `%envreg1` and `%envreg2` point to: the words that grid barriers use.
  uint64_t gridWorkspace = 0;
  /// For malloc of kernels.
  class DeviceHeap *heap = nullptr;

  /// Of global memory, where the launch has one.
  class ShadowMemory *shadow = nullptr;

  std::mutex lock; ///< Of what follows.
  std::string output;
  std::string proofBroken;
  std::atomic<bool> isProofBroken{false};
  std::string shadowDoubt;
  std::atomic<bool> isShadowDoubted{false};
  std::map<std::string, uint64_t> approximate;
  std::atomic<bool> approximateSteers{false};
};

class Block {
public:
  Launch *launch = nullptr;
  std::array<unsigned, 3> index{};
  uint64_t linear = 0;
  unsigned numThreads = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  SharedMemory shared;
  std::shared_ptr<BlockClock> clock;
  std::shared_ptr<class ShadowMemory> shadow; ///< Of shared memory, or null.
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_BLOCK_H
