// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// mbarriers: counts of arrivals and of bytes, in phases. What they hold is kept
// beside shared memory, where programs may not look at it.
//
// `try_wait` and `test_wait` may be answered with no as often as it takes, but
// not for ever: who keeps asking in one phase is made to wait, so that a phase
// that never completes is found to be a deadlock.
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "AsyncCopy.h"
#include "Engine.h"

#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

constexpr uint32_t mostCount = (1u << 20) - 1;
constexpr uint64_t barrierBytes = 8;
/// Arrivals under way; more of them happen at once.
constexpr size_t mostArrivals = 4096;
/// In a state that an arrival returns: the pending count, then the phase.
constexpr unsigned phaseShift = 20;

struct MbarrierInfo {
  MemoryInfo access;
  /// None is written: the whole cluster, which PTX does not promise, but all
  /// pipelines of several blocks count on.
  std::optional<Scope> scope;
  bool isOrdering = true; ///< Not `.relaxed`.
  bool isDrop = false, isNoComplete = false, hasBytes = false;
  bool hasResult = false, hasCount = false;
  bool isParity = false, isTry = false;
};

template <typename Body>
void forLanes(LaneMask active, Body body) {
  for (LaneMask rest = active; rest; rest &= rest - 1)
    body(unsigned(__builtin_ctz(rest)));
}

Scope scopeOf(const Warp &warp, const MbarrierInfo &info) {
  bool isAlone = warp.block->cluster->blocks.size() == 1;
  return info.scope.value_or(isAlone ? Scope::Block : Scope::Cluster);
}

const MbarrierInfo &infoOf(const Op &op) {
  return *static_cast<const MbarrierInfo *>(op.info);
}

/// Shared memory at `address`, for all 8 bytes.
bool checkPlace(Warp &warp, const Op &op, unsigned lane, const MemoryInfo &info,
                uint64_t address, bool isWrite, Checked &checked) {
  if (!checkLane(warp, op, lane, info, address, barrierBytes, barrierBytes,
                 isWrite, checked))
    return false;
  if (checked.place.space != Space::Shared) {
    warp.fatal(op, lane, FindingKind::OutOfBounds,
               genericAddress(checked.place),
               "an mbarrier has to lie in shared memory");
    return false;
  }
  if (info.space == Space::SharedCluster ||
      checked.place.region->block == warp.block)
    return true;
  warp.fatal(op, lane, FindingKind::OutOfBounds, genericAddress(checked.place),
             "an mbarrier of another block is reached by .shared::cluster "
             "alone, and nobody else can wait there");
  return false;
}

void beginPhase(const MbarrierSpot &spot, Mbarrier &barrier) {
  const std::vector<Block *> &blocks = spot.block->cluster->blocks;
  barrier.arrived.resize(blocks.size());
  for (auto [arrivals, block] : llvm::zip(barrier.arrived, blocks)) {
    arrivals.lanes.clear();
    arrivals.firstTick = block->clock->tick;
  }
}

void initialize(Warp &warp, const Op &op, LaneMask active) {
  const MbarrierInfo &info = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info.access, op.operand(0), at);
  forLanes(active, [&](unsigned lane) {
    uint32_t count = warp.lanes<uint32_t>(op.operand(1))[lane];
    Checked checked;
    if (!checkPlace(warp, op, lane, info.access, at[lane], true, checked))
      return;
    if (!count || count > mostCount) {
      warp.fatal(op, lane, FindingKind::BarrierMismatch, at[lane],
                 "an mbarrier for " + Twine(count) +
                     " arrivals; 1 to 1048575 can be had");
      return;
    }
    touchBytes(warp, op, lane, checked, barrierBytes, info.access, true);
    std::memset(checked.data, 0, barrierBytes);
    std::memset(checked.state, Written, barrierBytes);
    BlockAsync &async = asyncOf(*warp.block);
    Mbarrier &barrier = async.barriers[checked.place.offset];
    if (barrier.expected)
      warp.remark(op, lane, FindingKind::BarrierMismatch, at[lane],
                  "an mbarrier is made where there is one");
    barrier = Mbarrier();
    barrier.expected = barrier.pending = count;
    beginPhase({warp.block, checked.place.offset}, barrier);
  });
}

void invalidate(Warp &warp, const Op &op, LaneMask active) {
  const MbarrierInfo &info = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info.access, op.operand(0), at);
  forLanes(active, [&](unsigned lane) {
    MbarrierSpot spot;
    if (!findMbarrier(warp, op, lane, info.access, at[lane], spot))
      return;
    // Who counts on it afterwards finds none, so a race is not looked for.
    Checked checked;
    if (checkPlace(warp, op, lane, info.access, at[lane], true, checked))
      touchBytes(warp, op, lane, checked, barrierBytes, info.access, true);
    asyncOf(*spot.block).barriers.erase(spot.offset);
    // The memory may be used for something else; nothing is there.
    std::memset(spot.block->shared.region().state + spot.offset, 0,
                barrierBytes);
  });
}

/// The lanes at each place, in turn.
template <typename Body>
void forPlaces(LaneMask active, const uint64_t *at, Body body) {
  while (active) {
    uint64_t place = at[__builtin_ctz(active)];
    LaneMask same = 0;
    forLanes(active, [&](unsigned lane) {
      if (at[lane] == place)
        same |= LaneMask(1) << lane;
    });
    body(place, same);
    active &= ~same;
  }
}

void addBytes(Warp &warp, const Op &op, unsigned lane, const MbarrierSpot &spot,
              Mbarrier &barrier, int64_t bytes) {
  barrier.bytes += bytes;
  if (std::abs(barrier.bytes) <= int64_t(mostCount))
    return;
  warp.fatal(op, lane, FindingKind::BarrierMismatch, spot.address(),
             "expects " + Twine(barrier.bytes) +
                 " bytes; an mbarrier counts up to 1048575");
}

/// Sources: the address, bytes or count.
void arrive(Warp &warp, const Op &op, LaneMask active) {
  const MbarrierInfo &info = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info.access, op.operand(0), at);
  forPlaces(active, at, [&](uint64_t place, LaneMask same) {
    MbarrierSpot spot;
    unsigned first = __builtin_ctz(same);
    Mbarrier *barrier = findMbarrier(warp, op, first, info.access, place, spot);
    if (!barrier)
      return;
    // The look at it is before the arrival.
    LaneMask found = LaneMask(1) << first;
    forLanes(same & ~found, [&](unsigned lane) {
      if (findMbarrier(warp, op, lane, info.access, place, spot))
        found |= LaneMask(1) << lane;
    });
    publishArrival(warp, found, spot, *barrier, scopeOf(warp, info),
                   info.isOrdering);
    forLanes(found, [&](unsigned lane) {
      uint32_t count = 1;
      if (info.hasCount)
        count = warp.lanes<uint32_t>(op.operand(1))[lane];
      if (info.hasBytes)
        addBytes(warp, op, lane, spot, *barrier,
                 warp.lanes<uint32_t>(op.operand(1))[lane]);
      if (info.hasResult)
        warp.lanes<uint64_t>(op.result(0))[lane] =
            barrier->phase << phaseShift | barrier->pending;
      if (info.isNoComplete && count >= barrier->pending) {
        warp.fatal(op, lane, FindingKind::BarrierMismatch, place,
                   "completes the phase, which .noComplete must not");
        return;
      }
      if (info.isDrop)
        barrier->expected -= std::min(count, barrier->expected);
      arriveAt(warp, op, lane, spot, *barrier, count);
    });
  });
}

/// `expect_tx` and `complete_tx`, which `op.immediate` tells.
void countBytes(Warp &warp, const Op &op, LaneMask active) {
  const MbarrierInfo &info = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info.access, op.operand(0), at);
  forLanes(active, [&](unsigned lane) {
    MbarrierSpot spot;
    Mbarrier *barrier =
        findMbarrier(warp, op, lane, info.access, at[lane], spot);
    if (!barrier)
      return;
    int64_t bytes = warp.lanes<uint32_t>(op.operand(1))[lane];
    addBytes(warp, op, lane, spot, *barrier, op.immediate ? bytes : -bytes);
    completePhase(warp, spot, *barrier);
  });
}

constexpr unsigned mostTryRefusals = 64, mostTestRefusals = 4096;

/// Whether a thread that asks in vain is to wait before it gets its answer.
bool mustBePatient(Patience &patience, uint64_t offset, const Mbarrier &barrier,
                   bool isTry) {
  if (patience.barrier != offset || patience.phase != barrier.phase) {
    patience = Patience();
    patience.barrier = offset;
    patience.phase = barrier.phase;
  }
  bool isAtEnd =
      patience.refusals >= (isTry ? mostTryRefusals : mostTestRefusals);
  bool isDue = isTry || patience.refusals % 16 == 15;
  if (isAtEnd || (isDue && !patience.hasWaited)) {
    patience.hasWaited = true;
    return true;
  }
  patience.hasWaited = false;
  ++patience.refusals;
  return false;
}

/// Sources: the address, the state or parity.
void wait(Warp &warp, const Op &op, LaneMask active) {
  const MbarrierInfo &info = infoOf(op);
  BlockAsync &async = asyncOf(*warp.block);
  const LaunchOptions &options = warp.block->launch->options;
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info.access, op.operand(0), at);
  LaneMask done = 0;
  forPlaces(active, at, [&](uint64_t place, LaneMask same) {
    MbarrierSpot spot;
    unsigned first = __builtin_ctz(same);
    Mbarrier *barrier = findMbarrier(warp, op, first, info.access, place, spot);
    if (!barrier)
      return;
    auto isDone = [&](unsigned lane) {
      if (info.isParity)
        return (warp.lanes<uint32_t>(op.operand(1))[lane] & 1) !=
               barrier->parity();
      uint64_t state = warp.lanes<uint64_t>(op.operand(1))[lane];
      return state >> phaseShift < barrier->phase;
    };
    LaneMask ready = 0;
    forLanes(same,
             [&](unsigned lane) { ready |= LaneMask(isDone(lane)) << lane; });
    if (ready != same) {
      settle(warp, first, spot);
      forLanes(same & ~ready,
               [&](unsigned lane) { ready |= LaneMask(isDone(lane)) << lane; });
    }
    // PTX lets it give up for no reason.
    if (info.isTry && ready && options.schedule != Schedule::Lockstep &&
        Random(options.seed + ++async.polls * 0x9e3779b9 +
               warp.block->linear * 0x85ebca6b)
                .below(8) == 0)
      return;
    forLanes(same & ~ready, [&](unsigned lane) {
      if (mustBePatient(async.patience[warp.threadIndex(lane)], spot.offset,
                        *barrier, info.isTry))
        warp.mustWait |= LaneMask(1) << lane;
    });
    if (ready && warp.checksRaces)
      learnAt(warp, ready, spot.address(), scopeOf(warp, info), info.isOrdering,
              /*isUpdate=*/false);
    done |= ready;
  });
  LaneMask answered = active & ~warp.mustWait;
  LaneMask &to = warp.predicate(op.result(0));
  to = (to & ~answered) | (done & answered);
}

void pendingCount(Warp &warp, const Op &op, LaneMask active) {
  const uint64_t *states = warp.lanes<uint64_t>(op.operand(0));
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) {
    to[lane] = uint32_t(states[lane]) & mostCount;
  });
}

/// Source: the address. `op.immediate`: without `.noinc`.
void arriveAfterCopies(Warp &warp, const Op &op, LaneMask active) {
  const MbarrierInfo &info = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info.access, op.operand(0), at);
  forPlaces(active, at, [&](uint64_t place, LaneMask same) {
    MbarrierSpot spot;
    unsigned first = __builtin_ctz(same);
    Mbarrier *barrier = findMbarrier(warp, op, first, info.access, place, spot);
    if (!barrier)
      return;
    if (op.immediate)
      barrier->pending += __builtin_popcount(same);
    BlockAsync &async = asyncOf(*warp.block);
    async.arrivals.push_back({&warp, &op, same, spot.offset});
    if (async.arrivals.size() > mostArrivals)
      settle(warp, first, {warp.block, async.arrivals.front().barrier});
  });
}

} // namespace

BlockAsync &asyncOf(Block &block) {
  BlockClock &clock = *block.clock;
  if (!clock.async) {
    auto made = std::make_shared<BlockAsync>();
    size_t threads = block.warps.size() * warpLanes;
    made->patience.resize(threads);
    made->openGroup.resize(threads);
    clock.async = std::move(made);
  }
  return *static_cast<BlockAsync *>(clock.async.get());
}

Mbarrier *findMbarrier(Warp &warp, const Op &op, unsigned lane,
                       const MemoryInfo &info, uint64_t address,
                       MbarrierSpot &spot) {
  Checked checked;
  if (!checkPlace(warp, op, lane, info, address, false, checked))
    return nullptr;
  spot = {checked.place.region->block, checked.place.offset};
  BlockAsync &async = asyncOf(*spot.block);
  auto found = async.barriers.find(spot.offset);
  if (found == async.barriers.end()) {
    warp.fatal(op, lane, FindingKind::Uninitialized, spot.address(),
               "no mbarrier was made at " +
                   describeAddress(warp, spot.address()));
    return nullptr;
  }
  // A read, so that the cell goes on to say who made it: that is what must be
  // in order.
  touchBytes(warp, op, lane, checked, barrierBytes, info, /*isWrite=*/false);
  return &found->second;
}

void publishArrival(Warp &warp, LaneMask lanes, const MbarrierSpot &spot,
                    Mbarrier &barrier, Scope scope, bool isOrdering) {
  if (!warp.checksRaces)
    return;
  publishAt(warp, lanes, spot.address(), scope, isOrdering, /*isUpdate=*/true);
  if (!isOrdering || (scope == Scope::Block && warp.block != spot.block))
    return;
  // One thread may arrive for those that a barrier brought together.
  WarpClock &clock = clockOf(warp);
  Mbarrier::Arrivals &arrived = barrier.arrived[warp.block->rank];
  arrived.lanes.resize(warp.block->warps.size());
  for (unsigned other = 0; other < arrived.lanes.size(); ++other) {
    bool isOwn = other == clock.index;
    uint32_t seen =
        isOwn ? clock.laneFloor : clock.block->seenOf(clock.index, other);
    if (seen >= arrived.firstTick)
      arrived.lanes[other] = allLanes;
    else if (isOwn)
      arrived.lanes[other] |= lanes | ~warp.existing;
  }
}

/// A cell that several warps read has the tick of the last of them. So what
/// arrived in a phase counts as done at its end, not at each arrival: no order
/// is missed, though what a thread does between the two is not told apart.
static void publishPhase(const MbarrierSpot &spot, Mbarrier &barrier) {
  auto made = std::make_shared<Knowledge>();
  const std::vector<Block *> &blocks = spot.block->cluster->blocks;
  for (auto [arrivals, block] : llvm::zip(barrier.arrived, blocks)) {
    // The arrival that ended the phase began a tick of its own.
    uint32_t tick = block->clock->tick - 1;
    Knowledge::Entry entry;
    entry.first = entry.last = block->clock->block;
    for (unsigned thread = 0; thread < arrivals.lanes.size() * warpLanes;
         ++thread) {
      if (!(arrivals.lanes[thread / warpLanes] >> thread % warpLanes & 1))
        continue;
      if (!entry.exceptions.empty() &&
          entry.exceptions.back().last + 1u == thread)
        entry.exceptions.back().last = uint16_t(thread);
      else
        entry.exceptions.push_back({uint16_t(thread), uint16_t(thread), tick});
    }
    if (!entry.exceptions.empty())
      made->entries.push_back(std::move(entry));
  }
  beginPhase(spot, barrier);
  if (made->entries.empty())
    return;
  MessageTable::Record record;
  record.block = spot.block->clock->block;
  record.forBlock = made;
  if (blocks.size() > 1)
    record.forAll = made;
  spot.block->clock->messages.put(spot.address(), std::move(record),
                                  /*isUpdate=*/true);
}

void completePhase(Warp &warp, const MbarrierSpot &spot, Mbarrier &barrier) {
  if (barrier.pending || barrier.bytes)
    return;
  if (warp.checksRaces)
    publishPhase(spot, barrier);
  ++barrier.phase;
  barrier.pending = barrier.expected;
}

void arriveAt(Warp &warp, const Op &op, unsigned lane, const MbarrierSpot &spot,
              Mbarrier &barrier, uint32_t count) {
  if (!count || count > barrier.pending) {
    warp.fatal(op, lane, FindingKind::BarrierMismatch, spot.address(),
               Twine(count) + " arrivals where " + Twine(barrier.pending) +
                   " of " + Twine(barrier.expected) +
                   " are missing in this phase");
    return;
  }
  barrier.pending -= count;
  completePhase(warp, spot, barrier);
}

void settle(Warp &warp, unsigned lane, const MbarrierSpot &spot) {
  BlockAsync &async = asyncOf(*spot.block);
  uint64_t at = spot.offset;
  bool isAlone = spot.block->cluster->blocks.size() == 1;
  Scope scope = isAlone ? Scope::Block : Scope::Cluster;
  auto find = [&]() -> Mbarrier * {
    auto found = async.barriers.find(at);
    return found == async.barriers.end() ? nullptr : &found->second;
  };
  auto isArrival = [&](const CopyArrival &one) { return one.barrier == at; };
  std::vector<CopyArrival> arrivals;
  llvm::copy_if(async.arrivals, std::back_inserter(arrivals), isArrival);
  llvm::erase_if(async.arrivals, isArrival);
  auto isBulk = [&](const BulkCopy &copy) {
    return copy.info->hasBarrier && copy.barrier == at;
  };
  std::vector<BulkCopy> copies;
  llvm::copy_if(async.copies, std::back_inserter(copies), isBulk);
  llvm::erase_if(async.copies, isBulk);
  for (const BulkCopy &copy : copies) {
    performCopy(copy);
    // The source must be there until who waits has seen the end.
    if (!isAlone && !copy.info->isValue &&
        copy.info->from.space != Space::Global)
      noteAccess(warp, lane, *copy.warp->block, *copy.program, *copy.op);
    Mbarrier *barrier = find();
    if (!barrier)
      continue;
    publishArrival(*copy.warp, LaneMask(1) << copy.lane, spot, *barrier, scope,
                   /*isOrdering=*/true);
    barrier->bytes -= copy.bytes;
    completePhase(warp, spot, *barrier);
  }
  for (const CopyArrival &arrival : arrivals) {
    finishCopies(*arrival.warp, arrival.lanes);
    Mbarrier *barrier = find();
    if (!barrier)
      continue;
    publishArrival(*arrival.warp, arrival.lanes, spot, *barrier, scope,
                   /*isOrdering=*/true);
    forLanes(arrival.lanes, [&](unsigned one) {
      arriveAt(*arrival.warp, *arrival.op, one, spot, *barrier, 1);
    });
  }
}

bool readBarrierAddress(Decoder &decoder, const Operand &operand,
                        MemoryInfo &info, Slot &base, int64_t &offset) {
  Decoder::AddressParts parts = decoder.address(operand);
  if (parts.base == noSlot)
    return false;
  if (info.space == Space::Generic && parts.space == Space::Shared)
    info.space = Space::Shared;
  if (info.space == Space::Generic && !parts.isWide) {
    decoder.fail("an address of 64 bits wanted");
    return false;
  }
  info.isWide = parts.isWide;
  info.type = Type::B64;
  info.elementBytes = barrierBytes;
  base = parts.base;
  offset = parts.offset;
  return true;
}

namespace {

class MbarrierDecoder {
public:
  MbarrierDecoder(Decoder &decoder, Op &op)
      : decoder(decoder), op(op), from(decoder.instruction()),
        info(*decoder.makeInfo<MbarrierInfo>()) {}

  Decoded run() {
    op.info = &info;
    op.opClass = OpClass::Barrier;
    StringRef what = from.modifiers.empty() ? "" : from.modifiers[0];
    if (!readModifiers(what))
      return Decoded::Failed;
    if (what == "pending_count") {
      op.run = pendingCount;
      op.info = nullptr;
      // Who comes last is the schedule's matter.
      op.flow = Flow::Schedule;
      return decoder.setOperands(op, Type::U32, {Type::B64}) ? Decoded::Done
                                                             : Decoded::Failed;
    }
    if (what == "init")
      return finish(initialize, 0, {Type::U32}, false);
    if (what == "inval")
      return finish(invalidate, 0, {}, true);
    // Others may arrive and count; who makes, ends or waits is of the block.
    bool isFar = info.access.space == Space::SharedCluster;
    if (isFar && !what.starts_with("arrive") && !what.ends_with("_tx"))
      return decoder.fail("this form of mbarrier has no .shared::cluster");
    if (what == "expect_tx" || what == "complete_tx") {
      op.immediate = what == "expect_tx";
      return finish(countBytes, 0, {Type::U32}, true);
    }
    if (what == "arrive" || what == "arrive_drop") {
      info.isDrop = what == "arrive_drop";
      size_t count = from.operands.size();
      info.hasResult = count && from.operands[0].isRegister();
      bool hasSink = count && from.operands[0].kind == Operand::Kind::Sink;
      bool isAlone = count && from.operands[0].kind == Operand::Kind::Address;
      if (!info.hasResult && !hasSink && !isAlone)
        return decoder.fail("a state or `_` wanted");
      if (isFar && info.hasResult)
        return decoder.fail("an arrival at .shared::cluster gives no state");
      size_t first = isAlone ? 0 : 1;
      info.hasCount = !info.hasBytes && count == first + 2;
      if ((info.hasBytes || info.isNoComplete) && count != first + 2)
        return decoder.fail("a count wanted");
      llvm::SmallVector<Type, 1> more(info.hasBytes || info.hasCount,
                                      Type::U32);
      return finish(arrive, first, more, true);
    }
    if (what == "test_wait" || what == "try_wait") {
      info.isTry = what == "try_wait";
      op.control = Control::Wait;
      info.hasResult = true;
      // How long it may wait is a hint.
      isHinted = info.isTry && from.operands.size() == 4;
      return finish(wait, 1, {info.isParity ? Type::U32 : Type::B64}, true);
    }
    return decoder.fail("this form of mbarrier is not supported");
  }

private:
  bool readModifiers(StringRef what) {
    bool isArrival = what.starts_with("arrive");
    bool isWait = what.ends_with("_wait");
    bool hasType = false;
    for (StringRef modifier :
         from.modifiers.empty() ? llvm::ArrayRef<StringRef>()
                                : llvm::ArrayRef(from.modifiers).drop_front()) {
      if (modifier == "b64")
        hasType = true;
      else if (modifier == "shared" || modifier == "shared::cta")
        info.access.space = Space::Shared;
      else if (modifier == "shared::cluster")
        info.access.space = Space::SharedCluster;
      else if (modifier == "noComplete" && isArrival)
        info.isNoComplete = true;
      else if (modifier == "expect_tx" && isArrival)
        info.hasBytes = true;
      else if (modifier == "parity" && isWait)
        info.isParity = true;
      else if (modifier == "relaxed")
        info.isOrdering = false;
      else if ((modifier == "release" && !isWait) ||
               (modifier == "acquire" && isWait))
        info.isOrdering = true;
      else if (modifier == "cta")
        info.scope = Scope::Block;
      else if (modifier == "cluster")
        info.scope = Scope::Cluster;
      else {
        decoder.failModifier(modifier);
        return false;
      }
    }
    if (!hasType)
      decoder.fail(".b64 wanted");
    return hasType;
  }

  /// The address at `first`, more sources behind it.
  Decoded finish(Handler run, size_t first, llvm::ArrayRef<Type> more,
                 bool isStrong) {
    if (!decoder.expectOperands(first + 1 + more.size() + isHinted))
      return Decoded::Failed;
    Slot base = noSlot;
    if (!readBarrierAddress(decoder, from.operands[first], info.access, base,
                            op.offset))
      return Decoded::Failed;
    info.access.isStrong = isStrong;
    info.access.semantics = isStrong ? Semantics::Volatile : Semantics::Weak;
    info.access.scope = info.scope.value_or(Scope::Cluster);
    llvm::SmallVector<Slot, 2> sources{base}, results;
    for (size_t i = 0; i < more.size(); ++i) {
      sources.push_back(
          decoder.sourceSlot(from.operands[first + 1 + i], more[i]));
      if (sources.back() == noSlot)
        return Decoded::Failed;
    }
    if (info.hasResult) {
      bool isWait = op.control == Control::Wait;
      results.push_back(decoder.resultSlot(from.operands[0],
                                           isWait ? Type::Pred : Type::B64));
      if (results.back() == noSlot)
        return Decoded::Failed;
    }
    decoder.setSlots(op, results, sources);
    op.steers = uint8_t((1u << sources.size()) - 1);
    op.run = run;
    return Decoded::Done;
  }

  Decoder &decoder;
  Op &op;
  const Instruction &from;
  MbarrierInfo &info;
  bool isHinted = false;
};

} // namespace

Decoded decodeMbarrier(Decoder &decoder, Op &op) {
  return MbarrierDecoder(decoder, op).run();
}

Decoded decodeCopyArrival(Decoder &decoder, Op &op) {
  auto *info = decoder.makeInfo<MbarrierInfo>();
  const Instruction &instruction = decoder.instruction();
  op.immediate = 1;
  bool hasType = false, isArrival = false;
  for (StringRef modifier : instruction.modifiers) {
    if (modifier == "async" || modifier == "mbarrier")
      continue;
    if (modifier == "arrive")
      isArrival = true;
    else if (modifier == "noinc")
      op.immediate = 0;
    else if (modifier == "shared" || modifier == "shared::cta")
      info->access.space = Space::Shared;
    else if (modifier == "b64")
      hasType = true;
    else
      return decoder.failModifier(modifier);
  }
  if (!hasType || !isArrival || !decoder.expectOperands(1))
    return decoder.fail("cp.async.mbarrier.arrive.b64 [address] wanted");
  Slot base = noSlot;
  if (!readBarrierAddress(decoder, instruction.operands[0], info->access, base,
                          op.offset))
    return Decoded::Failed;
  info->access.isStrong = true;
  info->access.semantics = Semantics::Volatile;
  decoder.setSlots(op, {}, {base});
  op.info = info;
  op.steers = 1;
  op.opClass = OpClass::Barrier;
  op.run = arriveAfterCopies;
  return Decoded::Done;
}

} // namespace fsr::ptx
