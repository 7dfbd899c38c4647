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
         (touch.isStrong ? cell::strongBit : 0) |
         (touch.isStrong && !view.isShared && touch.scope == Scope::Block
              ? cell::narrowBit
              : 0);
}

bool isStale(const View &view, uint64_t old) {
  return (old ^ view.base) & view.staleMask;
}

bool isMixed(const View &view, uint64_t old) {
  return old & cell::mixedBit && !isStale(view, old);
}

/// Whether no thread can be out of order any more with what `old` says.
bool isPastForAll(const View &view, uint64_t old) {
  if (!(old & cell::bytesMask) || isStale(view, old))
    return true;
  if ((old ^ view.base) & cell::blockMask || old & cell::manyBlocksBit)
    return false;
  const std::vector<WarpClock> &warps = view.clock.block->warps;
  uint32_t tick = cell::tick(old);
  for (const WarpClock &warp : warps)
    if (warp.laneFloor < tick || (warps.size() > 1 && warp.floor < tick))
      return false;
  return true;
}

/// What is known of each byte.
ByteCells bytesOf(const View &view, uint64_t old, const ByteCells &own) {
  if (isMixed(view, old))
    return own;
  ByteCells bytes{};
  for (unsigned i = 0; i < bytes.size() && !isStale(view, old); ++i)
    if (old >> i & 1)
      bytes[i] = (old & ~cell::bytesMask) | uint64_t(1) << i;
  return bytes;
}

/// The word's cell where one can say it all, else that of a mixed word. What
/// is past for all is forgotten, but not of the bytes `touched`.
uint64_t settle(const View &view, ByteCells bytes, unsigned touched,
                uint64_t mine, ByteCells &own) {
  uint64_t one = 0, mask = 0;
  bool areAlike = true;
  for (unsigned i = 0; i < bytes.size(); ++i) {
    if (!(touched >> i & 1) && isPastForAll(view, bytes[i])) {
      bytes[i] = 0;
      continue;
    }
    uint64_t cell = bytes[i] & ~cell::bytesMask;
    areAlike &= !mask || cell == one;
    one = cell;
    mask |= uint64_t(1) << i;
  }
  if (areAlike)
    return one | mask;
  own = bytes;
  return mine | cell::mixedBit | cell::bytesMask;
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
  return isSameBlock ||
         (touch.scope != Scope::Block && !(old & cell::narrowBit));
}

/// The lane's warp saw the strong write that `old` stands for by a strong read
/// of its own, so its later accesses to the flag itself are in order.
bool wasSeen(const View &view, const Touch &touch, uint64_t old) {
  if (!(old & cell::strongBit))
    return false;
  uint64_t address = touch.region.address + touch.word * 4;
  for (const WarpClock &warp : view.clock.block->warps)
    for (const FlagRead &one : warp.flagReads)
      if (one.isInScope && one.address == address && one.writer == old)
        return true;
  return false;
}

void check(const View &view, const Touch &touch, uint64_t old,
           Conflict conflict) {
  if ((old ^ view.base) & view.staleMask || !(old & touch.bytes))
    return;
  if (touch.isNonCoherent && conflict == Conflict::ReadAfterWrite) {
    touch.warp.report(
        touch.op, touch.lane, FindingKind::GlobalRace, touch.address,
        "reads by ld.global.nc what " + Twine(who(view, old, touch)) +
            " wrote in this launch, at " +
            describeAddress(touch.warp, touch.address) +
            "; such loads are for what no thread writes, and no barrier "
            "orders them");
    return;
  }
  if (areBothStrong(view, touch, old) || isOrdered(view, touch, old) ||
      wasSeen(view, touch, old))
    return;
  reportConflict(view, touch, old, conflict);
}

/// The same for the bytes that the access touches, each by what is known of it.
void checkWord(const View &view, const Touch &touch, uint64_t old,
               const ByteCells &own, Conflict conflict) {
  if (!isMixed(view, old)) {
    check(view, touch, old, conflict);
    return;
  }
  uint64_t last = 0;
  for (unsigned i = 0; i < own.size(); ++i) {
    uint64_t one = own[i] & ~cell::bytesMask;
    if (!(touch.bytes >> i & 1) || one == last)
      continue;
    last = one;
    check(view, touch, own[i], conflict);
  }
}

/// The cell after a read of what `old` speaks of.
uint64_t afterRead(const View &view, const Touch &touch, uint64_t old) {
  uint64_t mine = cellOf(view, touch);
  constexpr uint64_t identity =
      cell::blockMask | cell::warpMask | cell::laneMask;
  if (isStale(view, old))
    return mine;
  mine |= old & cell::narrowBit;
  if (old & cell::manyBlocksBit)
    return touch.isStrong ? old : old & ~cell::strongBit;
  if ((old ^ view.base) & cell::blockMask) {
    if (isOrdered(view, touch, old))
      return mine;
    if (!touch.isStrong || !(old & cell::strongBit))
      mine &= ~cell::strongBit;
    return mine | cell::manyBlocksBit;
  }
  uint64_t strong = old & mine & cell::strongBit;
  if (!(old & cell::manyBit) && !((old ^ mine) & identity))
    return (mine & ~cell::strongBit) | strong | (old & cell::bytesMask);
  unsigned first = cell::warp(old);
  unsigned last = old & cell::manyBit ? cell::lane(old) : first;
  if (isOrdered(view, touch, old) &&
      (!(old & cell::manyBit) ||
       cell::tick(old) <= std::min(view.clock.floor, view.clock.laneFloor)))
    return mine;
  first = std::min(first, view.clock.index);
  last = std::max(last, view.clock.index);
  return (mine & ~(cell::warpMask | cell::laneMask | cell::strongBit)) |
         cell::manyBit | strong | (old & cell::bytesMask) |
         uint64_t(first) << cell::warpShift | uint64_t(last) << cell::laneShift;
}

/// Whether `old` is of this tick and of lanes of this warp alone, for which one
/// cell stands whatever their bytes are.
bool isOfWarp(const View &view, uint64_t old) {
  return !((old ^ view.base) & cell::blockMask) &&
         !(old & (cell::manyBlocksBit | cell::mixedBit)) &&
         cell::warp(old) == view.clock.index &&
         (!(old & cell::manyBit) || cell::lane(old) == view.clock.index) &&
         cell::tick(old) == view.clock.block->tick;
}

void noteRead(const View &view, const Touch &touch, uint64_t &cell,
              ByteCells &own) {
  uint64_t old = cell;
  bool isOne = !isMixed(view, old) &&
               (isStale(view, old) || (old & cell::bytesMask) == touch.bytes ||
                !(old & cell::bytesMask) || isOfWarp(view, old));
  if (isOne) {
    cell = afterRead(view, touch, old);
    return;
  }
  ByteCells bytes = bytesOf(view, old, own);
  Touch part = touch;
  uint64_t last = 0, made = 0;
  for (unsigned i = 0; i < bytes.size(); ++i) {
    if (!(touch.bytes >> i & 1))
      continue;
    uint64_t before = bytes[i] & ~cell::bytesMask;
    if (!made || before != last) {
      part.bytes = 1u << i;
      made = afterRead(view, part, bytes[i]) & ~cell::bytesMask;
      last = before;
    }
    bytes[i] = made | uint64_t(1) << i;
  }
  cell = settle(view, bytes, touch.bytes, cellOf(view, touch), own);
}

void noteWrite(const View &view, const Touch &touch, uint64_t &cell,
               ByteCells &own) {
  uint64_t old = cell, mine = cellOf(view, touch);
  bool hasRest =
      !isStale(view, old) && (old & cell::bytesMask & ~uint64_t(touch.bytes));
  if (!hasRest) {
    cell = mine;
    return;
  }
  if (isOfWarp(view, old)) {
    // Parts of a word by lanes of one warp: the cell stands for all of them.
    bool isSameLane =
        !(old & cell::manyBit) && !((old ^ mine) & cell::laneMask);
    uint64_t strong = old & mine & cell::strongBit;
    mine = (mine & ~cell::strongBit) | strong |
           (old & (cell::bytesMask | cell::narrowBit));
    if (!isSameLane)
      mine = (mine & ~cell::laneMask) | cell::manyBit |
             uint64_t(view.clock.index) << cell::laneShift;
    cell = mine;
    return;
  }
  ByteCells bytes = bytesOf(view, old, own);
  for (unsigned i = 0; i < bytes.size(); ++i)
    if (touch.bytes >> i & 1)
      bytes[i] = (mine & ~cell::bytesMask) | uint64_t(1) << i;
  cell = settle(view, bytes, touch.bytes, mine, own);
}

} // namespace

void noteFlagRead(const Touch &touch) {
  View view = viewOf(touch);
  uint64_t old = touch.region.writers[touch.word];
  if ((old ^ view.base) & view.staleMask || !(old & cell::strongBit))
    return;
  uint64_t address = touch.region.address + touch.word * 4;
  bool isInScope = !((old ^ view.base) & cell::blockMask) || view.isShared ||
                   (touch.scope != Scope::Block && !(old & cell::narrowBit));
  for (FlagRead &one : view.clock.flagReads)
    if (one.address == address) {
      one = {address, old, isInScope};
      return;
    }
  view.clock.flagReads[view.clock.nextFlagRead++ % 8] = {address, old,
                                                         isInScope};
}

void touchRead(const Touch &touch) {
  View view = viewOf(touch);
  uint64_t &writer = touch.region.writers[touch.word];
  ByteCells &writerBytes = touch.region.writerBytes[touch.word];
  checkWord(view, touch, writer, writerBytes, Conflict::ReadAfterWrite);
  // Once a barrier has put it behind all, the quick ways may look at it again.
  if (isMixed(view, writer))
    writer = settle(view, writerBytes, 0, writer, writerBytes);
  noteRead(view, touch, touch.region.readers[touch.word],
           touch.region.readerBytes[touch.word]);
}

void touchWrite(const Touch &touch) {
  View view = viewOf(touch);
  uint64_t &writer = touch.region.writers[touch.word];
  uint64_t &reader = touch.region.readers[touch.word];
  ByteCells &writerBytes = touch.region.writerBytes[touch.word];
  ByteCells &readerBytes = touch.region.readerBytes[touch.word];
  checkWord(view, touch, writer, writerBytes, Conflict::WriteAfterWrite);
  checkWord(view, touch, reader, readerBytes, Conflict::WriteAfterRead);
  noteWrite(view, touch, writer, writerBytes);
  // What was read before is behind the write now, or has been reported.
  if (isMixed(view, reader)) {
    for (unsigned i = 0; i < readerBytes.size(); ++i)
      if (touch.bytes >> i & 1)
        readerBytes[i] = 0;
    reader = settle(view, readerBytes, 0, reader, readerBytes);
  } else if (!isStale(view, reader) &&
             !(reader & cell::bytesMask & ~uint64_t(touch.bytes))) {
    reader = 0;
  }
}

} // namespace fsr::ptx
