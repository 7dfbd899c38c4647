// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Who has seen what. Ticks are the block's: each barrier, warp synchronisation,
// fence and release starts a new one, so that an access is known by its thread
// and tick. Where a cell cannot tell (several lanes of one warp in one word,
// readers in several blocks) what may be in order is not reported.
//
//===----------------------------------------------------------------------===//

#include "Ordering.h"

#include "Block.h"
#include "MemoryOps.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <cstring>

using llvm::Twine;

namespace fsr::ptx {

// Knowledge. ------------------------------------------------------------------

namespace {

/// More runs of blocks than this are not kept apart.
constexpr size_t mostEntries = 4096;
/// Of threads of a block that are known for longer than the rest.
constexpr size_t mostExceptions = 64;

using Entry = Knowledge::Entry;
using Exception = Knowledge::Exception;

bool isAlike(const Entry &a, const Entry &b) {
  return a.floor == b.floor && a.exceptions == b.exceptions;
}

void addException(Entry &entry, Exception one) {
  if (one.tick <= entry.floor)
    return;
  for (Exception &have : entry.exceptions)
    if (have.first <= one.first && one.last <= have.last) {
      if (have.tick >= one.tick)
        return;
      if (have.first == one.first && have.last == one.last) {
        have.tick = one.tick;
        return;
      }
    }
  if (entry.exceptions.size() == mostExceptions) {
    // Rather know too much than report what is in order.
    for (const Exception &have : entry.exceptions)
      one.tick = std::max(one.tick, have.tick);
    entry.exceptions.clear();
    entry.floor = one.tick;
    return;
  }
  entry.exceptions.push_back(one);
  llvm::sort(entry.exceptions, [](const Exception &a, const Exception &b) {
    return std::tuple(a.first, a.last) < std::tuple(b.first, b.last);
  });
}

void joinInto(Entry &entry, const Entry &other) {
  if (isAlike(entry, other))
    return;
  entry.floor = std::max(entry.floor, other.floor);
  llvm::SmallVector<Exception, 2> own;
  own.swap(entry.exceptions);
  for (const Exception &one : own)
    addException(entry, one);
  for (const Exception &one : other.exceptions)
    addException(entry, one);
}

void append(std::vector<Entry> &entries, Entry entry) {
  if (!entries.empty() && entries.back().last + 1 == entry.first &&
      isAlike(entries.back(), entry))
    entries.back().last = entry.last;
  else
    entries.push_back(std::move(entry));
}

} // namespace

bool Knowledge::covers(uint32_t block, unsigned firstThread,
                       unsigned lastThread, uint32_t tick) const {
  if (knowsAll)
    return true;
  auto after = std::upper_bound(
      entries.begin(), entries.end(), block,
      [](uint32_t value, const Entry &entry) { return value < entry.first; });
  if (after == entries.begin())
    return false;
  const Entry &entry = *std::prev(after);
  if (block > entry.last)
    return false;
  if (entry.floor >= tick)
    return true;
  for (const Exception &one : entry.exceptions)
    if (one.tick >= tick && one.first <= firstThread && lastThread <= one.last)
      return true;
  return false;
}

KnowledgePtr join(const KnowledgePtr &a, const KnowledgePtr &b) {
  if (!a || a == b)
    return b;
  if (!b || a->knowsAll)
    return a;
  if (b->knowsAll)
    return b;
  auto joined = std::make_shared<Knowledge>();
  std::vector<Entry> &entries = joined->entries;
  // Both are sorted runs: cut them where either begins or ends.
  auto left = a->entries.begin(), right = b->entries.begin();
  auto leftEnd = a->entries.end(), rightEnd = b->entries.end();
  uint64_t at = 0;
  while (left != leftEnd || right != rightEnd) {
    uint64_t leftFirst =
        left == leftEnd ? ~0ull : std::max<uint64_t>(left->first, at);
    uint64_t rightFirst =
        right == rightEnd ? ~0ull : std::max<uint64_t>(right->first, at);
    uint64_t first = std::min(leftFirst, rightFirst);
    bool inLeft = leftFirst == first, inRight = rightFirst == first;
    uint64_t last = ~0ull;
    if (left != leftEnd)
      last = std::min(last, inLeft ? uint64_t(left->last) : leftFirst - 1);
    if (right != rightEnd)
      last = std::min(last, inRight ? uint64_t(right->last) : rightFirst - 1);
    Entry entry = inLeft ? *left : *right;
    if (inLeft && inRight)
      joinInto(entry, *right);
    entry.first = uint32_t(first);
    entry.last = uint32_t(last);
    append(entries, std::move(entry));
    at = last + 1;
    if (left != leftEnd && left->last < at)
      ++left;
    if (right != rightEnd && right->last < at)
      ++right;
  }
  if (entries.size() > mostEntries) {
    entries.clear();
    joined->knowsAll = true;
  }
  return joined;
}

// Messages. -------------------------------------------------------------------

std::optional<MessageTable::Record> MessageTable::find(uint64_t location) {
  Stripe &in = stripe(location);
  std::lock_guard<std::mutex> guard(in.lock);
  auto found = in.records.find(location);
  if (found == in.records.end())
    return std::nullopt;
  return found->second;
}

void MessageTable::put(uint64_t location, Record record, bool isUpdate) {
  Stripe &in = stripe(location);
  std::lock_guard<std::mutex> guard(in.lock);
  if (!record.forAll && !record.forBlock) {
    if (!isUpdate)
      in.records.erase(location);
    return;
  }
  any.store(true, std::memory_order_relaxed);
  Record &have = in.records[location];
  if (isUpdate) {
    record.forAll = join(have.forAll, record.forAll);
    if (have.forBlock && have.block == record.block)
      record.forBlock = join(have.forBlock, record.forBlock);
  }
  have = std::move(record);
}

void MessageTable::clear() {
  if (isEmpty())
    return;
  for (Stripe &one : stripes)
    one.records.clear();
  any.store(false, std::memory_order_relaxed);
}

// Clocks. ---------------------------------------------------------------------

std::shared_ptr<BlockClock> makeBlockClock(uint64_t block, unsigned numWarps) {
  auto made = std::make_shared<BlockClock>();
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

/// Needed as soon as warps differ in what they have seen.
void makeMatrix(BlockClock &clock) {
  if (!clock.seen.empty())
    return;
  size_t count = clock.warps.size();
  clock.seen.resize(count * count);
  for (size_t w = 0; w < count; ++w)
    for (size_t v = 0; v < count; ++v)
      clock.seen[w * count + v] = clock.warps[w].floor;
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
  return location - sharedWindow < windowBytes
             ? clockOf(warp).block->messages
             : warp.block->launch->memory->messages();
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
    makeMatrix(clock);
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

// Accesses. -------------------------------------------------------------------

namespace {

struct View {
  Warp &warp;
  WarpClock &clock;
  uint64_t staleMask, base;
  bool isShared;
};

View viewOf(const Touch &touch) {
  WarpClock &clock = clockOf(touch.warp);
  bool isShared = touch.region.generation != 0;
  return {touch.warp, clock, isShared ? cell::blockMask : cell::launchMask,
          isShared ? uint64_t(touch.region.generation) << cell::blockShift
                   : clock.globalBase,
          isShared};
}

uint64_t cellOf(const View &view, const Touch &touch) {
  return view.base | uint64_t(view.clock.index) << cell::warpShift |
         uint64_t(touch.lane) << cell::laneShift |
         uint64_t(view.clock.block->tick) << cell::tickShift | touch.bytes |
         (touch.isStrong ? cell::strongBit : 0);
}

const LaneMessages *messagesFor(const View &view, unsigned lane) {
  return view.clock.messages ? &(*view.clock.messages)[lane] : nullptr;
}

bool covers(const KnowledgePtr &known, uint32_t block, unsigned first,
            unsigned last, uint32_t tick) {
  if (!known)
    return false;
  for (unsigned warp = first / 32; warp <= last / 32; ++warp)
    if (!known->covers(block, std::max(first, warp * 32),
                       std::min(last, warp * 32 + 31), tick))
      return false;
  return true;
}

/// The threads that a cell stands for.
std::pair<unsigned, unsigned> threadsOf(uint64_t old) {
  if (old & cell::manyBit)
    return {cell::warp(old) * 32, cell::lane(old) * 32 + 31};
  unsigned thread = cell::warp(old) * 32 + cell::lane(old);
  return {thread, thread};
}

/// Whether what `old` says happened before what the lane does now.
bool isOrdered(const View &view, const Touch &touch, uint64_t old) {
  WarpClock &clock = view.clock;
  uint32_t tick = cell::tick(old);
  const LaneMessages *messages = messagesFor(view, touch.lane);
  bool isSameBlock = !((old ^ view.base) & cell::blockMask);
  if (old & cell::manyBlocksBit) {
    // Who the others were is not kept. Whoever learnt from other blocks gets
    // the benefit of the doubt.
    if (!messages || !messages->known)
      return false;
  }
  auto [first, last] = threadsOf(old);
  if (!isSameBlock)
    return messages &&
           covers(messages->known, cell::block(old), first, last, tick);
  for (unsigned v = first / 32; v <= last / 32; ++v) {
    if (v == clock.index) {
      if (tick <= clock.laneFloor)
        continue;
      if (old & cell::manyBit) {
        // Some lanes of this warp; the lane itself may be all there is in the
        // bytes it touches.
        if (first / 32 != last / 32 || touch.bytes != cell::bytesMask)
          continue;
        if (messages &&
            covers(messages->known, clock.block->block, first, last, tick))
          continue;
        return false;
      }
      if (cell::lane(old) == touch.lane ||
          (clock.laneSeen &&
           (*clock.laneSeen)[touch.lane][cell::lane(old)] >= tick))
        continue;
      if (messages &&
          covers(messages->known, clock.block->block, first, last, tick))
        continue;
      return false;
    }
    if (clock.block->seenOf(clock.index, v) >= tick)
      continue;
    if (messages &&
        covers(messages->known, clock.block->block, std::max(first, v * 32),
               std::min(last, v * 32 + 31), tick))
      continue;
    return false;
  }
  return true;
}

std::string who(const View &view, uint64_t old, const Touch &touch) {
  bool isSameBlock = !((old ^ view.base) & cell::blockMask);
  auto [first, last] = threadsOf(old);
  const LaunchShapeOf &shape = touch.warp.block->launch->shape;
  auto place = [](uint64_t linear, const std::array<unsigned, 3> &of) {
    uint64_t x = std::max(1u, of[0]), y = std::max(1u, of[1]);
    return "(" + std::to_string(linear % x) + "," +
           std::to_string(linear / x % y) + "," +
           std::to_string(linear / (x * y)) + ")";
  };
  std::string text;
  if (old & cell::manyBit)
    text = first / 32 == last / 32
               ? "threads of warp " + std::to_string(first / 32)
               : "threads of warps " + std::to_string(first / 32) + " to " +
                     std::to_string(last / 32);
  else
    text = "thread " + place(first, shape.block);
  if (!isSameBlock)
    text += " of block " + place(cell::block(old), shape.grid);
  if (old & cell::manyBlocksBit)
    text += " and threads of other blocks";
  return text;
}

enum class Conflict { ReadAfterWrite, WriteAfterWrite, WriteAfterRead };

/// Whether the block saw a strong write of that block, or at least of another:
/// a flag that may have announced the data.
const FlagRead *flagFrom(const View &view, uint64_t old) {
  if (view.isShared)
    return nullptr;
  const FlagRead *found = nullptr;
  for (const WarpClock &warp : view.clock.block->warps)
    for (const FlagRead &one : warp.flagReads) {
      if (!one.address || (one.writer ^ view.base) & cell::launchMask)
        continue;
      if (!((one.writer ^ old) & cell::blockMask))
        return &one;
      if ((one.writer ^ view.base) & cell::blockMask)
        found = &one;
    }
  return found;
}

void reportConflict(const View &view, const Touch &touch, uint64_t old,
                    Conflict conflict) {
  uint64_t address =
      touch.address ? touch.address : touch.region.address + touch.word * 4;
  bool isSameBlock = !((old ^ view.base) & cell::blockMask);
  std::string them = who(view, old, touch);
  std::string where = describeAddress(
      touch.warp, view.isShared ? sharedWindow + touch.word * 4 : address);
  if (conflict == Conflict::WriteAfterWrite && touch.newWord) {
    bool isSame = true;
    const uint8_t *now = touch.region.data + touch.word * 4;
    for (unsigned i = 0; i < 4; ++i)
      if (touch.bytes >> i & 1 && now[i] != touch.newWord[i])
        isSame = false;
    if (isSame) {
      touch.warp.remark(touch.op, touch.lane,
                        view.isShared ? FindingKind::SharedRace
                                      : FindingKind::GlobalRace,
                        address,
                        "writes the value that " + Twine(them) + " wrote, at " +
                            where + "; nothing orders the two");
      return;
    }
  }
  const LaneMessages *messages = messagesFor(view, touch.lane);
  uint32_t tick = cell::tick(old);
  auto [first, last] = threadsOf(old);
  if (!isSameBlock && conflict == Conflict::ReadAfterWrite) {
    uint32_t block = cell::block(old);
    if (messages && covers(messages->tolerated, block, first, last, tick)) {
      touch.warp.remark(
          touch.op, touch.lane, FindingKind::UnorderedMessage, address,
          "reads what " + Twine(them) + " wrote and released, at " + where +
              "; the atomic that saw it and the barrier "
              "after it do not acquire: a fence after the atomic would");
      return;
    }
    if (messages && covers(messages->pending, block, first, last, tick)) {
      touch.warp.report(touch.op, touch.lane, FindingKind::UnorderedMessage,
                        address,
                        "reads what " + Twine(them) +
                            " wrote and released by a flag, at " + where +
                            "; the flag was read without an acquire and "
                            "without a fence after it");
      return;
    }
    const FlagRead *flag = flagFrom(view, old);
    // A plain read of the flag itself is a race, not a message.
    if (flag && (flag->address ^ address) >> 2) {
      touch.warp.report(
          touch.op, touch.lane, FindingKind::UnorderedMessage, address,
          "reads what " + Twine(them) + " wrote, at " + where + "; a flag at " +
              describeAddress(touch.warp, flag->address) +
              " was seen, but no fence or release of the writer orders the "
              "data before it");
      return;
    }
  }
  const char *text =
      conflict == Conflict::ReadAfterWrite ? "reads what " : "overwrites what ";
  const char *did = conflict == Conflict::WriteAfterRead ? " read" : " wrote";
  const char *want =
      isSameBlock && first / 32 == last / 32 && first / 32 == view.clock.index
          ? "no barrier and no __syncwarp orders the two"
      : isSameBlock ? "no barrier orders the two"
                    : "nothing orders the two blocks";
  // The kind of both would have to be such, and of a scope that has both.
  bool wasStrong = old & cell::strongBit;
  const char *mixed =
      wasStrong && touch.isStrong ? "; both are atomic or volatile, but not "
                                    "for the threads of other blocks"
      : wasStrong ? "; the other access is atomic or volatile, this one is not"
      : touch.isStrong
          ? "; this access is atomic or volatile, the other one is not"
          : "";
  touch.warp.report(
      touch.op, touch.lane,
      view.isShared ? FindingKind::SharedRace : FindingKind::GlobalRace,
      address,
      Twine(text) + them + did + ", at " + where + "; " + want + mixed);
}

/// Both strong and of scopes that include each other.
bool areBothStrong(const View &view, const Touch &touch, uint64_t old) {
  if (!touch.isStrong || !(old & cell::strongBit))
    return false;
  bool isSameBlock = !((old ^ view.base) & cell::blockMask);
  return isSameBlock || touch.scope != Scope::Block;
}

/// The lane's warp saw the strong write that `old` stands for by a strong read
/// of its own, so its later accesses to the flag itself are in order.
bool wasSeen(const View &view, const Touch &touch, uint64_t old) {
  if (!(old & cell::strongBit))
    return false;
  uint64_t address = touch.region.address + touch.word * 4;
  for (const WarpClock &warp : view.clock.block->warps)
    for (const FlagRead &one : warp.flagReads)
      if (one.address == address && one.writer == old)
        return true;
  return false;
}

void check(const View &view, const Touch &touch, uint64_t old,
           Conflict conflict) {
  if ((old ^ view.base) & view.staleMask || !(old & touch.bytes))
    return;
  if (areBothStrong(view, touch, old) || isOrdered(view, touch, old) ||
      wasSeen(view, touch, old))
    return;
  reportConflict(view, touch, old, conflict);
}

} // namespace

void noteFlagRead(const Touch &touch) {
  View view = viewOf(touch);
  uint64_t old = touch.region.writers[touch.word];
  if ((old ^ view.base) & view.staleMask || !(old & cell::strongBit))
    return;
  uint64_t address = touch.region.address + touch.word * 4;
  for (FlagRead &one : view.clock.flagReads)
    if (one.address == address) {
      one.writer = old;
      return;
    }
  view.clock.flagReads[view.clock.nextFlagRead++ % 8] = {address, old};
}

void touchRead(const Touch &touch) {
  View view = viewOf(touch);
  check(view, touch, touch.region.writers[touch.word],
        Conflict::ReadAfterWrite);
  uint64_t &cell = touch.region.readers[touch.word];
  uint64_t old = cell, mine = cellOf(view, touch);
  constexpr uint64_t identity =
      cell::blockMask | cell::warpMask | cell::laneMask;
  bool isStale = (old ^ view.base) & view.staleMask;
  if (isStale) {
    cell = mine;
    return;
  }
  bool isSameBlock = !((old ^ view.base) & cell::blockMask);
  if (old & cell::manyBlocksBit) {
    if (!touch.isStrong)
      cell = old & ~cell::strongBit;
    return;
  }
  if (!isSameBlock) {
    bool isBehind = isOrdered(view, touch, old);
    if (!isBehind && !touch.isStrong)
      mine &= ~cell::strongBit;
    if (!isBehind && !(old & cell::strongBit))
      mine &= ~cell::strongBit;
    cell = mine | (isBehind ? 0 : cell::manyBlocksBit);
    return;
  }
  if (!(old & cell::manyBit) && !((old ^ mine) & identity)) {
    uint64_t strong = old & mine & cell::strongBit;
    cell = (mine & ~cell::strongBit) | strong | (old & cell::bytesMask);
    return;
  }
  unsigned first = cell::warp(old);
  unsigned last = old & cell::manyBit ? cell::lane(old) : first;
  bool isBehind = isOrdered(view, touch, old);
  bool isApart = !(old & touch.bytes) &&
                 (first != view.clock.index || last != view.clock.index);
  if ((isBehind && !(old & cell::manyBit)) || isApart ||
      (isBehind &&
       cell::tick(old) <= std::min(view.clock.floor, view.clock.laneFloor))) {
    cell = mine;
    return;
  }
  first = std::min(first, view.clock.index);
  last = std::max(last, view.clock.index);
  uint64_t strong = old & mine & cell::strongBit;
  cell = (mine & ~(cell::warpMask | cell::laneMask | cell::strongBit)) |
         cell::manyBit | strong | (old & cell::bytesMask) |
         uint64_t(first) << cell::warpShift | uint64_t(last) << cell::laneShift;
}

void touchWrite(const Touch &touch) {
  View view = viewOf(touch);
  uint64_t &writer = touch.region.writers[touch.word];
  uint64_t &reader = touch.region.readers[touch.word];
  uint64_t old = writer, mine = cellOf(view, touch);
  check(view, touch, old, Conflict::WriteAfterWrite);
  check(view, touch, reader, Conflict::WriteAfterRead);
  constexpr uint64_t ofWarp = cell::blockMask | cell::warpMask;
  bool isStale = (old ^ view.base) & view.staleMask;
  bool isSameWarp =
      !isStale && !((old ^ mine) & ofWarp) &&
      (!(old & cell::manyBit) || cell::lane(old) == view.clock.index);
  if (isSameWarp && cell::tick(old) == cell::tick(mine) &&
      (old & cell::bytesMask & ~uint64_t(touch.bytes))) {
    // Parts of a word by lanes of one warp: the cell stands for all of them.
    bool isSameLane =
        !(old & cell::manyBit) && !((old ^ mine) & cell::laneMask);
    uint64_t strong = old & mine & cell::strongBit;
    mine = (mine & ~cell::strongBit) | strong | (old & cell::bytesMask);
    if (!isSameLane)
      mine = (mine & ~cell::laneMask) | cell::manyBit |
             uint64_t(view.clock.index) << cell::laneShift;
  }
  writer = mine;
  // What was read before is behind the write now, or has been reported.
  if (!((reader ^ view.base) & view.staleMask) &&
      !(reader & cell::bytesMask & ~uint64_t(touch.bytes)))
    reader = 0;
}

} // namespace fsr::ptx
