// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What goes on beside the threads of a block: mbarriers, bulk copies that are
// under way, arrivals that wait for copies. All of it is kept by the block
// whose mbarrier tells of its end, else by the block that began it.
//
// A copy happens at the latest moment that PTX allows: when somebody waits for
// the mbarrier, or for the group, that tells of it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_ASYNC_H
#define FSR_LIB_PTX_ASYNC_H

#include "Atomic.h"

#include <map>

namespace fsr::ptx {

struct Mbarrier {
  uint32_t expected = 0, pending = 0;
  int64_t bytes = 0; ///< The tx-count: expected and not yet there.
  uint64_t phase = 0;
  struct Arrivals {
    /// By warp: who arrived in this phase with a release, or had done what it
    /// did before one that arrived, by a barrier within the phase.
    std::vector<LaneMask> lanes;
    uint32_t firstTick = 0; ///< Of this phase, in the block.
  };
  std::vector<Arrivals> arrived; ///< By the rank of the block in its cluster.
  uint32_t parity() const { return phase & 1; }
};

/// Where an mbarrier is.
struct MbarrierSpot {
  Block *block = nullptr;
  uint64_t offset = 0; ///< In the block's shared memory.
  uint64_t address() const { return block->shared.region().address + offset; }
};

/// Of bulk copies, and of `st.async` and `red.async`, whose source is
/// registers.
struct BulkInfo {
  AtomicInfo to; ///< With the update, where it is a reduction.
  MemoryInfo from;
  MemoryInfo barrier;
  bool hasBarrier = false, isReduction = false, isMulticast = false;
  bool isValue = false;
  int64_t barrierOffset = 0;
  const char *name = "copy"; ///< For messages.
};

/// One thread's.
struct BulkCopy {
  Warp *warp = nullptr;
  const Program *program = nullptr;
  const Op *op = nullptr;
  const BulkInfo *info = nullptr;
  unsigned lane = 0;
  uint32_t bytes = 0;
  uint64_t target = 0, source = 0;
  uint64_t barrier = 0; ///< Offset of the mbarrier, where it has one.
  uint32_t group = 0;   ///< Else.
  uint32_t tick = 0;    ///< Of the block, at its issue.
  /// State of its target in global memory, where that is in flight.
  uint8_t *landing = nullptr;
  bool isTainted = false;
  std::array<uint8_t, 16> value{}; ///< Where the source is registers.
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
  BlockAsync() = default;
  BlockAsync(const BlockAsync &) = delete;
  BlockAsync &operator=(const BlockAsync &) = delete;
  ~BlockAsync() { land(); }
  /// The block ends: nothing in global memory is in flight any more.
  void land();

  std::map<uint64_t, Mbarrier> barriers; ///< By offset in shared memory.
  std::vector<BulkCopy> copies;          ///< In the order of their issue.
  /// Copies that have read their source, but whose end nobody waited for.
  std::vector<BulkCopy> landings;
  std::vector<CopyArrival> arrivals;
  // By thread.
  std::vector<Patience> patience;
  std::vector<uint32_t> openGroup;
  uint64_t polls = 0;
};
BlockAsync &asyncOf(Block &block);
/// A block of a cluster ends: what is still to touch its shared memory is told.
void endAsync(Block &block);

/// The mbarrier at an address; reported, and null, where there is none.
Mbarrier *findMbarrier(Warp &warp, const Op &op, unsigned lane,
                       const MemoryInfo &info, uint64_t address,
                       MbarrierSpot &spot);
/// `lanes` release what they did; before their arrivals are counted.
void publishArrival(Warp &warp, LaneMask lanes, const MbarrierSpot &spot,
                    Mbarrier &barrier, Scope scope, bool isOrdering);
/// `count` arrivals of `lane`; a phase may complete.
void arriveAt(Warp &warp, const Op &op, unsigned lane, const MbarrierSpot &spot,
              Mbarrier &barrier, uint32_t count);
/// Where nothing more is expected, the next phase begins.
void completePhase(Warp &warp, const MbarrierSpot &spot, Mbarrier &barrier);
/// What was announced at an mbarrier happens, for a lane of `warp`, which waits
/// or has no more room.
void settle(Warp &warp, unsigned lane, const MbarrierSpot &spot);
void performCopy(const BulkCopy &copy);
/// Checks what a copy is to write, and marks it as in flight; false: it cannot
/// be, which is reported.
bool beginCopy(BulkCopy copy, const MbarrierSpot &spot);

/// The sources of `op` from `operand` on: base, offset and width of an address
/// in shared memory (or generic). False: `fail` was called.
bool readBarrierAddress(Decoder &decoder, const Operand &operand,
                        MemoryInfo &info, Slot &base, int64_t &offset);

Decoded decodeMbarrier(Decoder &decoder, Op &op);
Decoded decodeBulk(Decoder &decoder, Op &op);
Decoded decodeCopyArrival(Decoder &decoder, Op &op);
Decoded decodeRemote(Decoder &decoder, Op &op);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_ASYNC_H
