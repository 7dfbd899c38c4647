// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Who has seen what. Ticks are the block's: each barrier, warp synchronisation,
// fence and release starts a new one, so that an access is known by its thread
// and tick. Races.cpp compares accesses with this.
//
//===----------------------------------------------------------------------===//

#include "Ordering.h"

#include "Block.h"

#include <algorithm>

namespace fsr::ptx {

using Entry = Knowledge::Entry;

std::shared_ptr<BlockClock> makeBlockClock(uint64_t block, unsigned rank,
                                           unsigned numWarps) {
  auto made = std::make_shared<BlockClock>();
  made->rank = rank;
  made->block = uint32_t(block & cell::blockCount);
  made->warps.resize(numWarps);
  for (unsigned i = 0; i < numWarps; ++i) {
    made->warps[i].block = made.get();
    made->warps[i].index = i;
  }
  return made;
}

WarpClock &clockOf(Warp &warp) {
  if (warp.clock)
    return *warp.clock;
  BlockClock &block = *warp.block->clock;
  WarpClock &clock = block.warps[warp.index];
  clock.globalBase = uint64_t(warp.block->launch->memory->launchStamp())
                         << cell::launchShift |
                     uint64_t(block.block) << cell::blockShift;
  warp.clock = &clock;
  return clock;
}

namespace {

std::array<LaneMessages, warpLanes> &messagesOf(WarpClock &clock) {
  if (!clock.messages)
    clock.messages = std::make_unique<std::array<LaneMessages, warpLanes>>();
  return *clock.messages;
}

/// What its lanes know becomes known to all of them.
KnowledgePtr gather(WarpClock &clock, LaneMask lanes,
                    KnowledgePtr LaneMessages::*member) {
  KnowledgePtr all;
  if (clock.messages)
    for (LaneMask rest = lanes; rest; rest &= rest - 1)
      all = join(all, (*clock.messages)[__builtin_ctz(rest)].*member);
  return all;
}

void spread(WarpClock &clock, LaneMask lanes, const KnowledgePtr &all,
            KnowledgePtr LaneMessages::*member) {
  if (!all)
    return;
  std::array<LaneMessages, warpLanes> &messages = messagesOf(clock);
  for (LaneMask rest = lanes; rest; rest &= rest - 1)
    messages[__builtin_ctz(rest)].*member = all;
}

bool isGone(const Warp &warp) {
  return (warp.exited & warp.existing) == warp.existing;
}

/// Of the warp's block and threads, as `lane` may pass it on; its own part is
/// added where it publishes.
KnowledgePtr snapshot(Warp &warp, unsigned lane) {
  WarpClock &clock = clockOf(warp);
  BlockClock &block = *clock.block;
  auto made = std::make_shared<Knowledge>();
  Entry entry;
  entry.first = entry.last = block.block;
  unsigned count = block.warps.size();
  uint32_t floor = clock.laneFloor;
  for (unsigned v = 0; v < count; ++v)
    if (v != clock.index)
      floor = std::min(floor, block.seenOf(clock.index, v));
  entry.floor = floor;
  for (unsigned v = 0; v < count; ++v) {
    uint32_t upTo =
        v == clock.index ? clock.laneFloor : block.seenOf(clock.index, v);
    addException(entry, {uint16_t(v * 32), uint16_t(v * 32 + 31), upTo});
  }
  if (clock.laneSeen)
    for (unsigned other = 0; other < warpLanes; ++other) {
      uint16_t thread = uint16_t(clock.index * 32 + other);
      addException(entry, {thread, thread, (*clock.laneSeen)[lane][other]});
    }
  made->entries.push_back(std::move(entry));
  KnowledgePtr own = std::move(made);
  return clock.messages ? join((*clock.messages)[lane].known, own) : own;
}

KnowledgePtr withThread(const KnowledgePtr &base, uint32_t block,
                        unsigned thread, uint32_t tick) {
  auto made = std::make_shared<Knowledge>();
  Entry entry;
  entry.first = entry.last = block;
  addException(entry, {uint16_t(thread), uint16_t(thread), tick});
  made->entries.push_back(std::move(entry));
  return join(base, made);
}

/// What the warp's lanes released by their fences, as one.
KnowledgePtr gatherReleased(WarpClock &clock, LaneMask lanes, unsigned which) {
  if (!clock.messages)
    return nullptr;
  const std::array<LaneMessages, warpLanes> &messages = *clock.messages;
  KnowledgePtr all;
  for (unsigned lane = 0; lane < warpLanes;) {
    const LaneMessages &own = messages[lane];
    if (!(lanes >> lane & 1) || !own.released[which]) {
      ++lane;
      continue;
    }
    // Lanes that made one fence together are one run of threads.
    unsigned end = lane + 1;
    while (end < warpLanes && lanes >> end & 1 &&
           messages[end].released[which] == own.released[which] &&
           messages[end].releasedTick[which] == own.releasedTick[which])
      ++end;
    auto run = std::make_shared<Knowledge>();
    Entry entry;
    entry.first = entry.last = clock.block->block;
    addException(entry, {uint16_t(clock.index * 32 + lane),
                         uint16_t(clock.index * 32 + end - 1),
                         own.releasedTick[which]});
    run->entries.push_back(std::move(entry));
    all = join(all, join(own.released[which], run));
    lane = end;
  }
  return all;
}

/// After lanes met, each passes on what the others had released: the fences
/// of all threads and a barrier count for the one thread that sets the flag.
void spreadReleased(WarpClock &clock, LaneMask lanes, unsigned which,
                    const KnowledgePtr &all) {
  if (!all)
    return;
  std::array<LaneMessages, warpLanes> &messages = messagesOf(clock);
  for (LaneMask rest = lanes; rest; rest &= rest - 1)
    messages[__builtin_ctz(rest)].released[which] = all;
}

MessageTable &tableFor(Warp &warp, uint64_t location) {
  if (location - sharedWindow >= windowBytes)
    return warp.block->launch->memory->messages();
  uint64_t rank = (location - sharedWindow) >> rankShift;
  return (rank ? *warp.block->cluster->blocks[rank - 1] : *warp.block)
      .clock->messages;
}

} // namespace

void orderBarrier(Block &block, llvm::ArrayRef<Warp *> warps) {
  if (!block.clock)
    return;
  BlockClock &clock = *block.clock;
  uint32_t now = clock.tick;
  size_t count = clock.warps.size();
  llvm::SmallVector<unsigned, 32> passed;
  for (const Warp *warp : warps)
    passed.push_back(warp->index);
  // Threads that are gone count as having come.
  for (const std::unique_ptr<Warp> &warp : block.warps)
    if (warp && isGone(*warp) && !llvm::is_contained(passed, warp->index))
      passed.push_back(warp->index);

  for (unsigned w : passed) {
    clock.warps[w].laneFloor = now;
    clock.warps[w].laneSeen.reset();
  }
  if (passed.size() == count) {
    for (WarpClock &warp : clock.warps)
      warp.floor = now;
    clock.seen.clear();
  } else {
    clock.makeMatrix();
    std::vector<uint32_t> joint(count, 0);
    for (unsigned w : passed)
      for (size_t v = 0; v < count; ++v)
        joint[v] = std::max(joint[v], clock.seen[w * count + v]);
    for (unsigned w : passed)
      joint[w] = now;
    for (unsigned w : passed) {
      std::copy(joint.begin(), joint.end(), clock.seen.begin() + w * count);
      uint32_t floor = now;
      for (size_t v = 0; v < count; ++v)
        if (v != w)
          floor = std::min(floor, joint[v]);
      clock.warps[w].floor = floor;
    }
  }
  if (clock.hasFenced) {
    for (unsigned which = 0; which < 2; ++which) {
      KnowledgePtr all;
      for (unsigned w : passed)
        all = join(all, gatherReleased(clock.warps[w], allLanes, which));
      for (unsigned w : passed)
        spreadReleased(clock.warps[w], allLanes, which, all);
    }
    clock.hasFenced = passed.size() != count;
  }
  if (clock.hasNews) {
    KnowledgePtr known, pending, updates, tolerated;
    for (unsigned w : passed) {
      WarpClock &warp = clock.warps[w];
      known = join(known, gather(warp, allLanes, &LaneMessages::known));
      pending = join(pending, gather(warp, allLanes, &LaneMessages::pending));
      tolerated =
          join(tolerated, gather(warp, allLanes, &LaneMessages::tolerated));
      tolerated = join(tolerated,
                       gather(warp, allLanes, &LaneMessages::pendingUpdates));
    }
    for (unsigned w : passed) {
      WarpClock &warp = clock.warps[w];
      spread(warp, allLanes, known, &LaneMessages::known);
      spread(warp, allLanes, pending, &LaneMessages::pending);
      spread(warp, allLanes, tolerated, &LaneMessages::tolerated);
    }
    clock.hasNews = passed.size() != count;
  }
  clock.advance();
}

void orderWarp(Warp &warp, LaneMask lanes) {
  WarpClock &clock = clockOf(warp);
  BlockClock &block = *clock.block;
  lanes &= warp.existing;
  LaneMask here = warp.existing & ~warp.exited;
  uint32_t now = block.tick;
  if ((lanes & here) == here) {
    clock.laneFloor = now;
    clock.laneSeen.reset();
  } else {
    if (!clock.laneSeen) {
      clock.laneSeen = std::make_unique<
          std::array<std::array<uint32_t, warpLanes>, warpLanes>>();
      for (auto &row : *clock.laneSeen)
        row.fill(clock.laneFloor);
    }
    std::array<uint32_t, warpLanes> joint{};
    for (LaneMask rest = lanes; rest; rest &= rest - 1)
      for (unsigned m = 0; m < warpLanes; ++m)
        joint[m] =
            std::max(joint[m], (*clock.laneSeen)[__builtin_ctz(rest)][m]);
    for (LaneMask rest = lanes; rest; rest &= rest - 1)
      joint[__builtin_ctz(rest)] = now;
    for (LaneMask rest = lanes; rest; rest &= rest - 1)
      (*clock.laneSeen)[__builtin_ctz(rest)] = joint;
  }
  if (block.hasNews && clock.messages)
    for (auto member : {&LaneMessages::known, &LaneMessages::pending})
      spread(clock, lanes, gather(clock, lanes, member), member);
  if (block.hasFenced && clock.messages)
    for (unsigned which = 0; which < 2; ++which)
      spreadReleased(clock, lanes, which, gatherReleased(clock, lanes, which));
  block.advance();
}

namespace {

/// What the lanes' strong writes release from now on.
void release(Warp &warp, LaneMask lanes, Scope scope) {
  WarpClock &clock = clockOf(warp);
  BlockClock &block = *clock.block;
  std::array<LaneMessages, warpLanes> &messages = messagesOf(clock);
  KnowledgePtr lastKnown, shared;
  for (LaneMask rest = lanes; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    LaneMessages &own = messages[lane];
    // Lanes that know the same can pass on the same.
    if (!shared || clock.laneSeen || own.known != lastKnown) {
      shared = snapshot(warp, lane);
      lastKnown = own.known;
    }
    for (unsigned i = 0; i <= unsigned(scope != Scope::Block); ++i) {
      own.released[i] = shared;
      own.releasedTick[i] = block.tick;
    }
  }
  block.hasFenced = true;
  block.advance();
}

} // namespace

void orderFence(Warp &warp, LaneMask lanes, Scope scope) {
  WarpClock &clock = clockOf(warp);
  BlockClock &block = *clock.block;
  std::array<LaneMessages, warpLanes> &messages = messagesOf(clock);
  for (LaneMask rest = lanes; rest; rest &= rest - 1) {
    LaneMessages &own = messages[__builtin_ctz(rest)];
    if (!own.pending)
      continue;
    block.hasNews = true;
    if (scope != Scope::Block) {
      own.known = join(own.known, own.pending);
      own.pending = nullptr;
      own.pendingUpdates = nullptr;
      continue;
    }
    // A fence of the block orders what came from the block. What came from
    // others is kept for a wider one.
    auto ofBlock = std::make_shared<Knowledge>();
    for (const Entry &entry : own.pending->entries)
      if (entry.first <= block.block && block.block <= entry.last) {
        ofBlock->entries.push_back(entry);
        ofBlock->entries.back().first = block.block;
        ofBlock->entries.back().last = block.block;
      }
    own.known = join(own.known, ofBlock);
  }
  release(warp, lanes, scope);
}

void publishAt(Warp &warp, LaneMask lanes, uint64_t location, Scope scope,
               bool isOrdering, bool isUpdate) {
  WarpClock &clock = clockOf(warp);
  MessageTable &table = tableFor(warp, location);
  if (!isOrdering && !clock.messages) {
    // A plain flag ends what was released there before.
    if (!isUpdate && !table.isEmpty())
      table.put(location, {}, false);
    return;
  }
  BlockClock &block = *clock.block;
  if (isOrdering)
    release(warp, lanes, scope);
  bool isPeers =
      location - sharedWindow < windowBytes && &table != &clock.block->messages;
  std::array<LaneMessages, warpLanes> &messages = messagesOf(clock);
  for (LaneMask rest = lanes; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    const LaneMessages &own = messages[lane];
    MessageTable::Record record;
    record.block = block.block;
    unsigned thread = clock.index * 32 + lane;
    if (own.released[0])
      record.forBlock =
          withThread(own.released[0], block.block, thread, own.releasedTick[0]);
    if (own.released[1] && scope != Scope::Block)
      record.forAll = own.releasedTick[1] == own.releasedTick[0]
                          ? record.forBlock
                          : withThread(own.released[1], block.block, thread,
                                       own.releasedTick[1]);
    // At another block's place, what that block keeps for itself stays.
    if (isPeers && record.forAll)
      record.forBlock = nullptr;
    bool isEmpty = !record.forBlock && !record.forAll;
    if (!isEmpty || (!isUpdate && !table.isEmpty()))
      table.put(location, std::move(record), isUpdate);
  }
}

void learnAt(Warp &warp, LaneMask lanes, uint64_t location, Scope scope,
             bool isOrdering, bool isUpdate) {
  MessageTable &table = tableFor(warp, location);
  if (table.isEmpty())
    return;
  std::optional<MessageTable::Record> record = table.find(location);
  if (!record)
    return;
  WarpClock &clock = clockOf(warp);
  BlockClock &block = *clock.block;
  KnowledgePtr forAll, forBlock;
  if (scope != Scope::Block)
    forAll = record->forAll;
  if (record->forBlock && record->block == block.block)
    forBlock = record->forBlock;
  if (!forAll && !forBlock)
    return;
  std::array<LaneMessages, warpLanes> &messages = messagesOf(clock);
  for (LaneMask rest = lanes; rest; rest &= rest - 1) {
    LaneMessages &own = messages[__builtin_ctz(rest)];
    if (own.lastForAll == forAll && own.lastForBlock == forBlock &&
        (own.lastWasOrdering || !isOrdering) && !isUpdate)
      continue;
    own.lastForAll = forAll;
    own.lastForBlock = forBlock;
    own.lastWasOrdering = isOrdering;
    KnowledgePtr learnt = join(forAll, forBlock);
    if (isOrdering) {
      own.known = join(own.known, learnt);
      continue;
    }
    own.pending = join(own.pending, learnt);
    if (isUpdate)
      own.pendingUpdates = join(own.pendingUpdates, learnt);
  }
  block.hasNews = true;
}

} // namespace fsr::ptx
