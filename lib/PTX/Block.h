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
  /// Clusters were asked for, by the kernel or by the launch.
  bool isExplicitCluster = false;
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

class Block;

/// What one thread did last to shared memory of another block of its cluster.
struct PeerAccess {
  const Program *program = nullptr; ///< Null: nothing.
  const Op *op = nullptr;
  uint32_t tick = 0;
  /// Who has waited for this phase of the cluster's barrier comes after it.
  uint64_t phase = 0;
};

/// Blocks that run together and reach one another's shared memory. One host
/// thread runs all of them, so nothing here needs a lock.
class Cluster {
public:
  std::vector<Block *> blocks; ///< By rank.
  // The barrier; Cluster.cpp.
  uint64_t phase = 0; ///< Of those that are complete.
  unsigned arrived = 0, live = 0;
  std::shared_ptr<struct ClusterOrder> order; ///< OrderingCluster.cpp
};

class Block {
public:
  Launch *launch = nullptr;
  std::array<unsigned, 3> index{};
  uint64_t linear = 0;
  Cluster *cluster = nullptr;
  unsigned rank = 0;
  bool isFinished = false;
  uint64_t waitedPhase = 0; ///< Of the cluster's barrier, by any thread.
  /// By the rank of who did it, then by thread; empty: none.
  std::vector<std::vector<PeerAccess>> peers;
  unsigned numThreads = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  SharedMemory shared;
  std::shared_ptr<BlockClock> clock;
  std::shared_ptr<class ShadowMemory> shadow; ///< Of shared memory, or null.
};

/// "(1,0,0)".
std::string describeBlock(const Block &block);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_BLOCK_H
