// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which accesses are ordered. Each word of shared and global memory keeps its
// last writer and reader as (launch, block, thread, tick); a tick counts the
// barriers and fences of a block. An access is a race where the other one is of
// another thread, one of the two writes, not both are atomic, and no chain of
// barriers, warp synchronisations, or release and acquire through a flag stands
// between them.
//
// Within a block a matrix says up to which tick of warp v warp w has seen; it
// is joined at barriers. Between blocks, what a thread released at an atomic
// location, with the fences that PTX wants, is learnt by who acquires there.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_ORDERING_H
#define FSR_LIB_PTX_ORDERING_H

#include "Program.h"

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace fsr::ptx {

class Warp;
class Block;
class Cluster;
struct Region;

enum class Semantics : uint8_t {
  Weak,
  Volatile, ///< And `.relaxed`, `.mmio`: strong, orders nothing by itself.
  Acquire,
  Release,
  AcquireRelease,
};

struct BlockClock;
struct WarpClock;

/// A block begins or ends its life. Warps find theirs by their index.
std::shared_ptr<BlockClock> makeBlockClock(uint64_t block, unsigned rank,
                                           unsigned numWarps);
/// All threads of the warps in `warps` (a bit each) passed a barrier.
void orderBarrier(Block &block, llvm::ArrayRef<Warp *> warps);
/// `bar.warp.sync` of these lanes.
void orderWarp(Warp &warp, LaneMask lanes);
void orderFence(Warp &warp, LaneMask lanes, Scope scope);
// The barrier of a cluster: `lanes` arrive; all have; `lanes` have waited.
void orderClusterArrive(Warp &warp, LaneMask lanes, bool isRelaxed);
void orderClusterComplete(Cluster &cluster);
void orderClusterWait(Warp &warp, LaneMask lanes);

// Messages. A location is a generic address; in the window of shared memory it
// is the block's own, or that of a block of its cluster. Memory operations call
// these for strong accesses; whoever has objects that order threads (mbarriers)
// calls them with the object's address and `isOrdering`.

/// `lanes` write strongly at `location`: what they had released by a fence (or
/// all they did, where the write itself releases: `isOrdering`) can be learnt
/// there. `isUpdate`: an atomic; what others released there stays.
void publishAt(Warp &warp, LaneMask lanes, uint64_t location, Scope scope,
               bool isOrdering, bool isUpdate);
/// `lanes` read strongly at `location`: they learn what was released there, at
/// once (`isOrdering`: an acquire) or by their next fence.
void learnAt(Warp &warp, LaneMask lanes, uint64_t location, Scope scope,
             bool isOrdering, bool isUpdate);

// Cells. ----------------------------------------------------------------------

/// A cell says who touched a word last. From bit 0: bytes 4, tick 19, lane 5,
/// warp 5, block 22, launch 4 (for shared memory the last two are one number,
/// the generation and the rank in its cluster of the block that did it), then
/// five flags. With `manyBit` the lane's place holds the last warp and the
/// warp's place the first warp of those that did. With `mixedBit` the word's
/// bytes differ and `ByteCells` say who touched each. `narrowBit` is for strong
/// accesses to global memory whose scope is the block.
namespace cell {
constexpr unsigned tickShift = 4, laneShift = 23, warpShift = 28,
                   blockShift = 33, launchShift = 55;
constexpr uint64_t bytesMask = 15;
constexpr uint64_t lastTick = (uint64_t(1) << 19) - 1;
constexpr uint64_t tickMask = lastTick << tickShift;
constexpr uint64_t laneMask = uint64_t(31) << laneShift;
constexpr uint64_t warpMask = uint64_t(31) << warpShift;
constexpr uint64_t blockMask = ((uint64_t(1) << 26) - 1) << blockShift;
constexpr unsigned rankBits = 4;
constexpr uint64_t rankMask = ((uint64_t(1) << rankBits) - 1) << blockShift;
constexpr uint64_t generationMask = blockMask & ~rankMask;
constexpr uint64_t launchMask = uint64_t(15) << launchShift;
constexpr uint64_t mixedBit = uint64_t(1) << 59;
constexpr uint64_t narrowBit = uint64_t(1) << 60;
constexpr uint64_t manyBit = uint64_t(1) << 61;
constexpr uint64_t manyBlocksBit = uint64_t(1) << 62;
constexpr uint64_t strongBit = uint64_t(1) << 63;
constexpr uint64_t blockCount = (uint64_t(1) << 22) - 1;

inline uint32_t tick(uint64_t cell) {
  return uint32_t((cell & tickMask) >> tickShift);
}
inline unsigned warp(uint64_t cell) { return cell >> warpShift & 31; }
inline unsigned lane(uint64_t cell) { return cell >> laneShift & 31; }
inline unsigned rank(uint64_t cell) { return (cell & rankMask) >> blockShift; }
inline uint32_t block(uint64_t cell) {
  return uint32_t(cell >> blockShift & blockCount);
}
/// Launch and block of an access to shared memory of that generation.
inline uint64_t sharedBase(uint32_t generation, unsigned rank) {
  return uint64_t(generation | rank) << blockShift;
}
} // namespace cell

/// Of the bytes of a mixed word, a cell each, 0 where there is nothing to say.
using ByteCells = std::array<uint64_t, 4>;

/// What threads did that another may rely on, by block: up to which tick. Runs
/// of blocks that are alike are one entry.
struct Knowledge {
  struct Exception { ///< These threads of the block are known for longer.
    uint16_t first = 0, last = 0;
    uint32_t tick = 0;
    bool operator==(const Exception &other) const {
      return first == other.first && last == other.last && tick == other.tick;
    }
  };
  struct Entry {
    uint32_t first = 0, last = 0; ///< Blocks.
    uint32_t floor = 0;           ///< All threads, up to this tick.
    llvm::SmallVector<Exception, 2> exceptions;
  };
  std::vector<Entry> entries; ///< By block, not overlapping.
  /// Too much to keep: taken as knowing all, so that nothing is reported that
  /// may be in order.
  bool knowsAll = false;

  bool covers(uint32_t block, unsigned firstThread, unsigned lastThread,
              uint32_t tick) const;
  /// Whether it says anything of that block.
  bool tellsOf(uint32_t block) const;
};
using KnowledgePtr = std::shared_ptr<const Knowledge>;
KnowledgePtr join(const KnowledgePtr &a, const KnowledgePtr &b);
/// `one` is known beside what `entry` says already.
void addException(Knowledge::Entry &entry, Knowledge::Exception one);

/// What was released at places of memory. Thread-safe.
class MessageTable {
public:
  struct Record {
    KnowledgePtr forAll, forBlock;
    uint32_t block = 0; ///< That `forBlock` is for.
  };
  bool isEmpty() const { return !any.load(std::memory_order_relaxed); }
  std::optional<Record> find(uint64_t location);
  /// `isUpdate`: joined with what is there. A record without knowledge removes.
  void put(uint64_t location, Record record, bool isUpdate);
  void clear();

private:
  struct Stripe {
    std::mutex lock;
    std::unordered_map<uint64_t, Record> records;
  };
  Stripe &stripe(uint64_t location) {
    return stripes[(location >> 2) * 0x9e3779b97f4a7c15ull >> 58];
  }
  std::array<Stripe, 64> stripes;
  std::atomic<bool> any{false};
};

struct LaneMessages {
  KnowledgePtr known;   ///< Ordered before what the lane does now.
  KnowledgePtr pending; ///< Read, a fence makes it known.
  /// Read by atomics that a barrier followed: `tolerated`.
  KnowledgePtr pendingUpdates, tolerated;
  /// At the lane's last fence: what its strong writes release. [0]: to the
  /// block, [1]: to all.
  KnowledgePtr released[2];
  uint32_t releasedTick[2] = {0, 0};
  /// The record learnt last, so that spinning costs little.
  KnowledgePtr lastForAll, lastForBlock;
  bool lastWasOrdering = false;
};

/// A strong read of another thread's strong write, for messages.
struct FlagRead {
  uint64_t address = 0, writer = 0;
  bool isInScope = false; ///< The scopes of both include each other.
};

/// What an access needs to know fast, per warp.
struct WarpClock {
  BlockClock *block = nullptr;
  unsigned index = 0;
  /// The lanes have seen one another up to here.
  uint32_t laneFloor = 0;
  /// This warp has seen all other warps of its block up to here.
  uint32_t floor = 0;
  /// Launch and block at their places in a cell.
  uint64_t globalBase = 0;
  Region *lastRegion = nullptr;
  std::unique_ptr<std::array<std::array<uint32_t, warpLanes>, warpLanes>>
      laneSeen;
  std::unique_ptr<std::array<LaneMessages, warpLanes>> messages;
  std::array<FlagRead, 8> flagReads;
  unsigned nextFlagRead = 0;
  /// Bytes of registers that were loaded without being written: a slot of a
  /// frame and a lane each; MemoryLanes.cpp.
  std::unordered_map<uint64_t, uint8_t> unwritten;
  std::shared_ptr<void> async; ///< AsyncCopy.h
};

struct BlockClock {
  uint32_t block = 0; ///< As in a cell.
  unsigned rank = 0;  ///< In its cluster.
  uint32_t tick = 1;
  std::vector<WarpClock> warps;
  /// Up to which tick of warp v warp w has seen, at w * size + v; empty while
  /// only whole barriers happened: then the warps' floors say it.
  std::vector<uint32_t> seen;
  MessageTable messages; ///< At places in shared memory.
  bool hasNews = false;  ///< Some lane learnt something since the last barrier.
  bool hasFenced = false;      ///< Some lane made a fence since then.
  std::shared_ptr<void> async; ///< Async.h

  uint32_t seenOf(unsigned warp, unsigned other) const {
    return seen.empty() ? warps[warp].floor : seen[warp * warps.size() + other];
  }
  /// Needed as soon as warps differ in what they have seen.
  void makeMatrix() {
    if (!seen.empty())
      return;
    size_t count = warps.size();
    seen.resize(count * count);
    for (size_t w = 0; w < count; ++w)
      for (size_t v = 0; v < count; ++v)
        seen[w * count + v] = warps[w].floor;
  }
  void advance() {
    if (tick < cell::lastTick) {
      ++tick;
      return;
    }
    // No tick is left: from here on nothing within the block is told apart.
    for (WarpClock &warp : warps)
      warp.floor = warp.laneFloor = uint32_t(cell::lastTick);
    seen.assign(seen.size(), uint32_t(cell::lastTick));
  }
};

/// The warp's clock, found on first use.
WarpClock &clockOf(Warp &warp);

/// An access to one word (or part of it) by one lane.
struct Touch {
  Warp &warp;
  const Op &op;
  unsigned lane;
  Region &region;
  uint64_t word; ///< Index in the region.
  unsigned bytes;
  bool isStrong = false;
  Scope scope = Scope::Gpu;
  /// The word's new content, where it is a write of known bytes: the same
  /// value written twice is a remark.
  const uint8_t *newWord = nullptr;
  /// For messages: the lane's own address.
  uint64_t address = 0;
  /// `ld.global.nc`: sees no writes of this launch, whatever orders them.
  bool isNonCoherent = false;
};
/// Checks against what others did, reports, and notes the access.
void touchRead(const Touch &touch);
void touchWrite(const Touch &touch);
/// A strong read, of `touch.scope`: remembers whose strong write it saw.
void noteFlagRead(const Touch &touch);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_ORDERING_H
