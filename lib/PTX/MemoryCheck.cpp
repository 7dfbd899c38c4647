// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the access of one lane is checked for: bounds, alignment, read-only
// memory, copies in flight, bytes that nothing wrote, and the order of accesses
// to its words. The texts of all these findings are made here, with places that
// a reader of the kernel can find: offsets, allocations, parameters.
//
//===----------------------------------------------------------------------===//

#include "AsyncCopy.h"
#include "MemoryOps.h"

#include "llvm/ADT/StringExtras.h"

using llvm::Twine;

namespace fsr::ptx {

std::string describeAddress(Warp &warp, uint64_t address) {
  if (address - sharedWindow < windowBytes) {
    uint64_t offset = address - sharedWindow, rank = offset >> rankShift;
    const std::vector<Block *> &blocks = warp.block->cluster->blocks;
    if (!rank || rank > blocks.size() || blocks.size() == 1)
      return "offset " + std::to_string(offset) + " of shared memory";
    std::string text = "offset " + std::to_string(offset & (rankBytes - 1)) +
                       " of shared memory";
    return blocks[rank - 1] == warp.block
               ? text
               : text + " of block " + describeBlock(*blocks[rank - 1]);
  }
  for (auto [name, window] : {std::pair("local memory", localWindow),
                              std::pair("the parameters", paramWindow)})
    if (address - window < windowBytes)
      return "offset " + std::to_string(address - window) + " of " + name;
  Launch &launch = *warp.block->launch;
  std::string text = launch.memory->describe(address);
  const Region *region = launch.memory->nearest(address);
  // The parameter that points there, if there is one alone.
  std::optional<size_t> found;
  const std::vector<KernelParameter> &parameters = launch.program->parameters;
  for (size_t i = 0; region && i < parameters.size(); ++i) {
    uint64_t value = 0;
    if (parameters[i].bytes != sizeof(value) ||
        parameters[i].offset + sizeof(value) > launch.params.bytes)
      continue;
    std::memcpy(&value, launch.params.data + parameters[i].offset,
                sizeof(value));
    if (value - region->address >= region->bytes)
      continue;
    if (found)
      return text;
    found = i;
  }
  if (found)
    text += " (parameter " + std::to_string(*found) + ")";
  return text;
}

// Checks of one lane. ---------------------------------------------------------

bool checkLane(Warp &warp, const Op &op, unsigned lane, const MemoryInfo &info,
               uint64_t address, unsigned bytes, unsigned alignment,
               bool isWrite, Checked &checked) {
  Place place = locate(warp, info, address);
  checked.place = place;
  const char *did = isWrite ? "writes " : "reads ";
  uint64_t room = 0;
  if (place.space == Space::Local) {
    uint64_t size = warp.local ? warp.local->size() : 0;
    room = place.offset < size ? size - place.offset : 0;
    if (room >= bytes) {
      checked.data = warp.local->data(lane) + place.offset;
      checked.state = warp.local->state(lane) + place.offset;
    }
  } else if (place.region) {
    Region &region = *place.region;
    room = place.offset < region.bytes ? region.bytes - place.offset : 0;
    if (room >= bytes) {
      checked.data = region.data + place.offset;
      checked.state = region.state + place.offset;
    }
  }
  if (place.region && place.region->block &&
      place.region->block != warp.block &&
      !notePeer(warp, op, lane, *place.region->block, genericAddress(place)))
    return false;
  if (room < bytes) {
    std::string where;
    if (place.space == Space::Global) {
      if (room) {
        // The first bytes are inside.
        const Region &region = *place.region;
        where = (", " + Twine(bytes - room) + " of them past " +
                 describeAddress(warp, region.address + region.bytes))
                    .str();
      } else {
        where = " at ";
        if (!warp.block->launch->memory->nearest(address) &&
            address >= uint64_t(1) << 16)
          where += "0x" + llvm::utohexstr(address, true) + ": ";
        where += describeAddress(warp, address);
        if (address - sharedWindow < windowBytes ||
            address - localWindow < windowBytes)
          where += ", which is not global memory";
      }
    } else {
      uint64_t size = place.space == Space::Local
                          ? (warp.local ? warp.local->size() : 0)
                          : place.region->bytes;
      const char *name = place.space == Space::Local    ? "local memory"
                         : place.space == Space::Shared ? "shared memory"
                                                        : "the parameters";
      // Before its beginning, for addresses of 32 bits.
      auto offset = int64_t(place.offset);
      if (offset >> 31 == 1)
        offset = int32_t(offset);
      const std::vector<Block *> &blocks = warp.block->cluster->blocks;
      uint64_t rank = place.offset >> rankShift;
      if (place.space == Space::Shared && blocks.size() > 1 && rank &&
          rank <= blocks.size()) {
        warp.fatal(op, lane, FindingKind::OutOfBounds, genericAddress(place),
                   Twine(did) + Twine(bytes) + " bytes of shared memory of " +
                       "block " + describeBlock(*blocks[rank - 1]) +
                       ", which .shared::cta does not reach");
        return false;
      }
      where = (" at offset " + Twine(offset) + " in " + name + " of " +
               Twine(size) + " bytes")
                  .str();
    }
    warp.fatal(op, lane, FindingKind::OutOfBounds, genericAddress(place),
               Twine(did) + Twine(bytes) + " bytes" + where);
    return false;
  }
  if (genericAddress(place) % alignment) {
    warp.fatal(op, lane, FindingKind::Misaligned, genericAddress(place),
               Twine(did) + Twine(bytes) + " bytes at 0x" +
                   llvm::utohexstr(genericAddress(place), true) + ", " +
                   describeAddress(warp, genericAddress(place)) +
                   ", which is not a multiple of " + Twine(alignment));
    return false;
  }
  if (isWrite && (place.space == Space::Param ||
                  (place.region && place.region->isConst))) {
    warp.fatal(
        op, lane, FindingKind::WriteToConst, genericAddress(place),
        "writes " + Twine(bytes) + " bytes to " +
            (place.space == Space::Param
                 ? "the kernel's parameters"
                 : "read-only memory, " + describeAddress(warp, address)));
    return false;
  }
  return true;
}

/// The asynchronous copy that is to write there, and whose it is.
static std::string describeCopy(Warp &warp, unsigned lane, uint64_t address) {
  for (const std::unique_ptr<Warp> &owner : warp.block->warps) {
    if (!owner->clock || !owner->clock->async)
      continue;
    const auto &queue =
        *static_cast<const AsyncQueue *>(owner->clock->async.get());
    for (const AsyncQueue::Copy &copy : queue.copies)
      for (LaneMask rest = copy.lanes; rest; rest &= rest - 1) {
        unsigned at = __builtin_ctz(rest);
        uint64_t to = genericAddress(locate(warp, *copy.to, copy.target[at]));
        if (address - to >= copy.bytes)
          continue;
        if (owner.get() == &warp && at == lane)
          return "the thread's own asynchronous copy";
        std::array<unsigned, 3> thread = owner->threadOf(at);
        return "the asynchronous copy of thread (" + std::to_string(thread[0]) +
               "," + std::to_string(thread[1]) + "," +
               std::to_string(thread[2]) + ")";
      }
  }
  return "an asynchronous copy";
}

void reportInFlight(Warp &warp, const Op &op, unsigned lane,
                    const Checked &checked, unsigned bytes, bool isWrite) {
  uint64_t at = 0;
  while (at < bytes && !(checked.state[at] & InFlight))
    ++at;
  warp.report(op, lane, FindingKind::AsyncInFlight,
              genericAddress(checked.place) + at,
              Twine(isWrite ? "overwrites" : "reads") + " what " +
                  describeCopy(warp, lane, genericAddress(checked.place) + at) +
                  " is still to write, at " +
                  describeAddress(warp, genericAddress(checked.place) + at) +
                  "; its wait must come first, and a barrier where another "
                  "thread copies");
}

void checkSource(Warp &warp, const Op &op, unsigned lane, const Checked &from,
                 uint64_t bytes, uint32_t since) {
  Region *region = from.place.region;
  if (!warp.checksRaces || !region || !region->writers || region->isConst)
    return;
  bool isShared = region->generation != 0;
  if (isShared && region->block != warp.block)
    return;
  const WarpClock &clock = clockOf(warp);
  uint64_t base = isShared
                      ? cell::sharedBase(region->generation, clock.block->rank)
                      : clock.globalBase;
  uint64_t offset = from.place.offset, end = offset + bytes;
  for (uint64_t word = offset / 4; word * 4 < end; ++word) {
    uint64_t old = region->writers[word];
    unsigned mask = cell::bytesMask;
    if (word * 4 < offset)
      mask &= cell::bytesMask << (offset - word * 4);
    if (word * 4 + 4 > end)
      mask &= cell::bytesMask >> (word * 4 + 4 - end);
    if ((old ^ base) & cell::blockMask || !(old & mask) ||
        cell::tick(old) <= since)
      continue;
    uint64_t address = region->address + word * 4;
    warp.report(op, lane, FindingKind::AsyncInFlight, address,
                "its source was overwritten while the copy was under way, at " +
                    Twine(describeAddress(warp, address)) +
                    "; the wait for the copy must come first");
    return;
  }
}

void reportUnwritten(Warp &warp, const Op &op, unsigned lane,
                     const Checked &checked, unsigned bytes) {
  if (!warp.block->launch->options.checkUninitialized)
    return;
  unsigned first = 0, count = 0;
  for (unsigned i = bytes; i-- > 0;)
    if (!(checked.state[i] & Written)) {
      first = i;
      ++count;
    }
  std::string where;
  switch (checked.place.space) {
  case Space::Shared:
    where = "shared memory, offset " + std::to_string(checked.place.offset);
    if (checked.place.region->block != warp.block)
      where += ", of block " + describeBlock(*checked.place.region->block);
    break;
  case Space::Local:
    where = "local memory, offset " + std::to_string(checked.place.offset);
    break;
  case Space::Param:
    where = "the parameters, offset " + std::to_string(checked.place.offset);
    break;
  default:
    where = describeAddress(warp, genericAddress(checked.place));
    break;
  }
  warp.report(op, lane, FindingKind::Uninitialized,
              genericAddress(checked.place) + first,
              "reads " + Twine(bytes) + " bytes, " +
                  (count == bytes ? Twine("which nothing wrote")
                                  : Twine(count) + " of which nothing wrote") +
                  ": " + where);
}

/// Notes a lane's access to whole words while all that their cells say is in
/// order at a glance; gives how many it did.
static unsigned touchWords(Warp &warp, unsigned lane, Region &region,
                           uint64_t first, unsigned count, bool isWrite) {
  WarpClock &clock = clockOf(warp);
  bool isShared = region.generation != 0;
  uint64_t staleMask = isShared ? cell::generationMask : cell::launchMask;
  uint64_t mine =
      (isShared ? cell::sharedBase(region.generation, clock.block->rank)
                : clock.globalBase) |
      uint64_t(clock.index) << cell::warpShift |
      uint64_t(lane) << cell::laneShift |
      uint64_t(clock.block->tick) << cell::tickShift | cell::bytesMask;
  uint32_t seen = clock.laneFloor;
  if (clock.block->warps.size() > 1)
    seen = std::min(seen, clock.floor);
  uint64_t floor = uint64_t(seen) << cell::tickShift;
  auto isInOrder = [&](uint64_t old) {
    constexpr uint64_t who = cell::blockMask | cell::warpMask | cell::laneMask |
                             cell::manyBit | cell::manyBlocksBit |
                             cell::mixedBit;
    uint64_t differ = old ^ mine;
    bool isSeen = !(differ & cell::blockMask) &&
                  !(old & (cell::manyBlocksBit | cell::mixedBit)) &&
                  (old & cell::tickMask) <= floor;
    return (differ & staleMask) || !(differ & who) || isSeen;
  };
  uint64_t *writers = region.writers + first, *readers = region.readers + first;
  for (unsigned i = 0; i < count; ++i) {
    if (!isInOrder(writers[i]) || !isInOrder(readers[i]))
      return i;
    if (isWrite) {
      writers[i] = mine;
      readers[i] = 0;
    } else {
      readers[i] = mine;
    }
  }
  return count;
}

void touchBytes(Warp &warp, const Op &op, unsigned lane, const Checked &checked,
                unsigned bytes, const MemoryInfo &info, bool isWrite,
                const uint8_t *newBytes) {
  Region *region = checked.place.region;
  if (!warp.checksRaces || !region || !region->writers ||
      (region->isConst && !isWrite))
    return;
  uint64_t offset = checked.place.offset;
  if (!info.isStrong && !info.isNonCoherent && !((offset | bytes) % 4)) {
    // Words up to the first that is not plainly in order.
    unsigned done =
        touchWords(warp, lane, *region, offset / 4, bytes / 4, isWrite);
    offset += done * 4;
    bytes -= done * 4;
    if (newBytes)
      newBytes += done * 4;
  }
  uint64_t end = offset + bytes;
  // Mapped memory may begin anywhere; words count from the region's start.
  for (uint64_t word = offset / 4; word * 4 < end; ++word) {
    unsigned mask = cell::bytesMask;
    if (word * 4 < offset)
      mask &= cell::bytesMask << (offset - word * 4);
    if (word * 4 + 4 > end)
      mask &= cell::bytesMask >> (word * 4 + 4 - end);
    uint8_t whole[4] = {};
    if (newBytes)
      for (unsigned i = 0; i < 4; ++i)
        if (mask >> i & 1)
          whole[i] = newBytes[word * 4 + i - offset];
    Touch touch{warp,
                op,
                lane,
                *region,
                word,
                mask,
                info.isStrong,
                info.scope,
                newBytes ? whole : nullptr,
                genericAddress(checked.place),
                info.isNonCoherent};
    if (isWrite)
      touchWrite(touch);
    else
      touchRead(touch);
  }
}

} // namespace fsr::ptx
