// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What goes on beside the threads of a block: mbarriers, bulk copies that are
// under way, arrivals that wait for copies, the barrier of a cluster.
//
// A copy happens at the latest moment that PTX allows: when somebody waits for
// the mbarrier, or for the group, that tells of it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_ASYNC_H
#define FSR_LIB_PTX_ASYNC_H

#include "MemoryOps.h"

#include <map>

namespace fsr::ptx {

struct Mbarrier {
  uint32_t expected = 0, pending = 0;
  int64_t bytes = 0; ///< The tx-count: expected and not yet there.
  uint64_t phase = 0;
  /// By warp: who arrived in this phase with a release, or had done what it
  /// did before one that arrived, by a barrier within the phase.
  std::vector<LaneMask> arrived;
  uint32_t firstTick = 0; ///< Of this phase.
  uint32_t parity() const { return phase & 1; }
};

struct BulkInfo {
  MemoryInfo to, from;
  MemoryInfo barrier;
  bool hasBarrier = false;
  int64_t barrierOffset = 0;
};

/// One thread's.
struct BulkCopy {
  Warp *warp = nullptr;
  const Op *op = nullptr;
  const BulkInfo *info = nullptr;
  unsigned lane = 0;
  uint32_t bytes = 0;
  uint64_t target = 0, source = 0;
  uint64_t barrier = 0; ///< Offset of the mbarrier, where it has one.
  uint32_t group = 0;   ///< Else.
  bool isTainted = false;
};

/// `cp.async.mbarrier.arrive`: once the lanes' copies are done.
struct CopyArrival {
  Warp *warp = nullptr;
  const Op *op = nullptr;
  LaneMask lanes = 0;
  uint64_t barrier = 0;
};

/// How long a thread has waited for a phase.
struct Patience {
  uint64_t barrier = ~uint64_t(0), phase = 0;
  unsigned refusals = 0;
  bool hasWaited = false;
};

/// Of one block.
struct BlockAsync {
  std::map<uint64_t, Mbarrier> barriers; ///< By offset in shared memory.
  std::vector<BulkCopy> copies;          ///< In the order of their issue.
  std::vector<CopyArrival> arrivals;
  // By thread.
  std::vector<Patience> patience;
  std::vector<uint32_t> openGroup;
  std::vector<uint64_t> clusterArrivals, clusterWaits;
  uint64_t polls = 0;
};
BlockAsync &asyncOf(Warp &warp);

/// The mbarrier at an address; reported, and null, where there is none.
/// `offset` is its place in shared memory.
Mbarrier *findMbarrier(Warp &warp, const Op &op, unsigned lane,
                       const MemoryInfo &info, uint64_t address,
                       uint64_t &offset);
/// `lanes` release what they did; before their arrivals are counted.
void publishArrival(Warp &warp, LaneMask lanes, uint64_t offset,
                    Mbarrier &barrier, Scope scope, bool isOrdering);
/// `count` arrivals of `lane`; a phase may complete.
void arriveAt(Warp &warp, const Op &op, unsigned lane, uint64_t offset,
              Mbarrier &barrier, uint32_t count);
/// Where nothing more is expected, the next phase begins.
void completePhase(Warp &warp, uint64_t offset, Mbarrier &barrier);
/// What was announced at an mbarrier happens.
void settle(Warp &warp, uint64_t barrier);
void performCopy(const BulkCopy &copy);

/// The sources of `op` from `operand` on: base, offset and width of an address
/// in shared memory (or generic). False: `fail` was called.
bool readBarrierAddress(Decoder &decoder, const Operand &operand,
                        MemoryInfo &info, Slot &base, int64_t &offset);

Decoded decodeMbarrier(Decoder &decoder, Op &op);
Decoded decodeBulk(Decoder &decoder, Op &op);
Decoded decodeCopyArrival(Decoder &decoder, Op &op);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_ASYNC_H
