// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whether an access is in order with what the word's cells say of others, and
// what is said where it is not. Where a cell cannot tell (several lanes of one
// warp in one word, readers in several blocks) what may be in order is not
// reported.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "MemoryOps.h"
#include "Ordering.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using llvm::Twine;

namespace fsr::ptx {

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
  return {touch.warp, clock, isShared ? cell::generationMask : cell::launchMask,
          isShared
              ? cell::sharedBase(touch.region.generation, clock.block->rank)
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

/// The block that a cell stands for.
uint32_t blockOf(const View &view, uint64_t old) {
  if (!view.isShared)
    return cell::block(old);
  // What is stale was sorted out before, so there is such a block.
  return view.warp.block->cluster->blocks[cell::rank(old)]->clock->block;
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
           covers(messages->known, blockOf(view, old), first, last, tick);
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
    text += " of block " + place(blockOf(view, old), shape.grid);
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
      touch.warp,
      view.isShared ? touch.region.address + touch.word * 4 : address);
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
    uint32_t block = blockOf(view, old);
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
