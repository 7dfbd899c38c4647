// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads and stores: how their forms are read, and what one lane's access is
// checked for. The loops that whole warps take are in MemoryAccess.inl.
//
// A byte that nothing wrote is reported where it is loaded, unless the value
// only goes on to stores: copying a structure copies its padding. Then the
// bytes it is stored to count as not written, and whoever uses them is told.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"
#include "AsyncCopy.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

// Forms. ----------------------------------------------------------------------

bool OrderModifiers::take(StringRef modifier) {
  if (modifier == "weak")
    return isWeak = true;
  if (modifier == "volatile") {
    semantics = Semantics::Volatile;
    return isVolatile = true;
  }
  if (modifier == "mmio") {
    semantics = Semantics::Volatile;
    return isMmio = true;
  }
  auto order = llvm::StringSwitch<std::optional<Semantics>>(modifier)
                   .Case("relaxed", Semantics::Volatile)
                   .Case("acquire", Semantics::Acquire)
                   .Case("release", Semantics::Release)
                   .Case("acq_rel", Semantics::AcquireRelease)
                   .Default(std::nullopt);
  if (order) {
    // `.mmio.relaxed`: both are written.
    semantics = order;
    return true;
  }
  auto width = llvm::StringSwitch<std::optional<Scope>>(modifier)
                   .Case("cta", Scope::Block)
                   .Case("cluster", Scope::Cluster)
                   .Case("gpu", Scope::Gpu)
                   .Case("sys", Scope::System)
                   .Default(std::nullopt);
  if (!width)
    return false;
  scope = width;
  return true;
}

std::optional<Space> parseSpace(StringRef modifier) {
  return llvm::StringSwitch<std::optional<Space>>(modifier)
      .Case("global", Space::Global)
      .Cases({"shared", "shared::cta"}, Space::Shared)
      .Case("shared::cluster", Space::SharedCluster)
      .Case("local", Space::Local)
      .Cases({"param", "param::entry", "param::func"}, Space::Param)
      .Case("const", Space::Const)
      .Default(std::nullopt);
}

bool isCacheHint(StringRef modifier) {
  return llvm::StringSwitch<bool>(modifier)
      .Cases({"ca", "cg", "cs", "lu", "cv", "wb", "wt"}, true)
      .Cases({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
              "L1::evict_last", "L1::no_allocate"},
             true)
      .Cases({"L2::evict_normal", "L2::evict_first", "L2::evict_last"}, true)
      .Cases({"L2::64B", "L2::128B", "L2::256B", "L2::cache_hint"}, true)
      .Default(false);
}

namespace {

unsigned bitsOf(Type type) { return type == Type::Pred ? 0 : bitWidth(type); }

/// The common part of ld and st: modifiers into `info`. False: `fail` was
/// called.
bool readForm(Decoder &decoder, MemoryInfo &info, bool isStore) {
  const Instruction &instruction = decoder.instruction();
  OrderModifiers order;
  bool isUniform = instruction.opcode == "ldu", isNonCoherent = false,
       hasSpace = false;
  for (StringRef modifier : instruction.modifiers) {
    if (order.take(modifier) || isCacheHint(modifier))
      continue;
    if (auto space = parseSpace(modifier)) {
      info.space = *space;
      hasSpace = true;
      continue;
    }
    if (modifier == "nc" && !isStore) {
      isNonCoherent = true;
      continue;
    }
    if (modifier == "unified" && !isStore)
      continue;
    auto vector = llvm::StringSwitch<unsigned>(modifier)
                      .Case("v2", 2)
                      .Case("v4", 4)
                      .Case("v8", 8)
                      .Default(0);
    if (vector) {
      info.vector = uint8_t(vector);
      continue;
    }
    std::optional<Type> type = parseType(modifier);
    if (!type || info.type != Type::None) {
      decoder.failModifier(modifier);
      return false;
    }
    info.type = *type;
  }
  switch (info.type) {
  case Type::B8:
  case Type::B16:
  case Type::B32:
  case Type::B64:
  case Type::B128:
  case Type::U8:
  case Type::U16:
  case Type::U32:
  case Type::U64:
  case Type::S8:
  case Type::S16:
  case Type::S32:
  case Type::S64:
  case Type::F16:
  case Type::F16x2:
  case Type::BF16:
  case Type::BF16x2:
  case Type::F32:
  case Type::F64:
    break;
  default:
    decoder.fail("a type that memory operations do not have");
    return false;
  }
  info.elementBytes = uint8_t(bitsOf(info.type) / 8);
  info.isSigned = isSigned(info.type);
  if (info.bytes() > 32 || (info.elementBytes == 16 && info.vector > 1) ||
      (info.vector == 8 && info.elementBytes != 4)) {
    decoder.fail("a vector of that size");
    return false;
  }
  if ((isNonCoherent || isUniform) && info.space != Space::Global && hasSpace) {
    decoder.fail("only global memory is read this way");
    return false;
  }
  if (isStore && info.space == Space::Const) {
    decoder.fail("constant memory cannot be written");
    return false;
  }
  Semantics semantics = order.semantics.value_or(Semantics::Weak);
  bool isFit = isStore ? semantics != Semantics::Acquire
                       : semantics != Semantics::Release;
  if (!isFit || semantics == Semantics::AcquireRelease) {
    decoder.fail("an order that this access does not have");
    return false;
  }
  info.semantics = semantics;
  info.isStrong = semantics != Semantics::Weak;
  info.scope = order.scope.value_or(Scope::System);
  info.isStore = isStore;
  return true;
}

/// The register operands of an access: one, or the elements of a vector.
llvm::ArrayRef<Operand> elementsOf(const Operand &operand) {
  if (operand.kind == Operand::Kind::Vector)
    return operand.elements;
  return llvm::ArrayRef<Operand>(operand);
}

bool readAddress(Decoder &decoder, const Operand &operand, MemoryInfo &info,
                 Op &op, Slot &base) {
  Decoder::AddressParts parts = decoder.address(operand);
  if (parts.base == noSlot)
    return false;
  base = parts.base;
  op.offset = parts.offset;
  info.isWide = parts.isWide;
  // Parameters of functions and of calls lie in the frame.
  if (info.space == Space::Param && parts.space == Space::Local)
    info.space = Space::Local;
  return true;
}

} // namespace

Decoded decodeLoad(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<MemoryInfo>();
  if (!readForm(decoder, *info, /*isStore=*/false))
    return Decoded::Failed;
  // A cache policy may follow the address.
  size_t count = instruction.has("L2::cache_hint") ? 3 : 2;
  if (!decoder.expectOperands(count))
    return Decoded::Failed;
  llvm::ArrayRef<Operand> elements = elementsOf(instruction.operands[0]);
  if (elements.size() != info->vector)
    return decoder.fail("a vector of " + Twine(unsigned(info->vector)) +
                        " elements wanted");
  Slot base = noSlot;
  if (!readAddress(decoder, instruction.operands[1], *info, op, base))
    return Decoded::Failed;
  llvm::SmallVector<Slot, 8> results;
  unsigned bits = 0;
  for (const Operand &element : elements) {
    Type type =
        element.isRegister() ? decoder.registerType(element) : info->type;
    unsigned have = bitsOf(type);
    if (have < bitsOf(info->type) || (have > 64 && info->elementBytes < 16))
      return decoder.fail("a result register that does not fit the type");
    if (element.isRegister()) {
      if (bits && bits != have)
        return decoder.fail("result registers of different widths");
      bits = have;
    }
    Slot slot = decoder.resultSlot(element, type);
    if (slot == noSlot)
      return Decoded::Failed;
    if (element.isRegister())
      info->registers[results.size()] = element.index;
    results.push_back(slot);
  }
  info->resultBits = uint8_t(bits ? bits : bitsOf(info->type));
  // A sink got a slot of the type's own width.
  if (bits > 32 && bitsOf(info->type) <= 32)
    for (auto [slot, element] : llvm::zip(results, elements))
      if (!element.isRegister())
        slot = decoder.temporarySlot();
  decoder.setSlots(op, results, {base});
  op.info = info;
  op.opClass = OpClass::Memory;
  op.flow = Flow::Handler;
  op.steers = 1;
  op.run = loadHandler(info->elementBytes, info->vector);
  return Decoded::Done;
}

Decoded decodeStore(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<MemoryInfo>();
  if (!readForm(decoder, *info, /*isStore=*/true))
    return Decoded::Failed;
  size_t count = instruction.has("L2::cache_hint") ? 3 : 2;
  if (!decoder.expectOperands(count))
    return Decoded::Failed;
  llvm::ArrayRef<Operand> elements = elementsOf(instruction.operands[1]);
  if (elements.size() != info->vector)
    return decoder.fail("a vector of " + Twine(unsigned(info->vector)) +
                        " elements wanted");
  llvm::SmallVector<Slot, 8> sources(1);
  if (!readAddress(decoder, instruction.operands[0], *info, op, sources[0]))
    return Decoded::Failed;
  unsigned bits = 0;
  for (const Operand &element : elements) {
    Type type =
        element.isRegister() ? decoder.registerType(element) : info->type;
    unsigned have = bitsOf(type);
    if (have < bitsOf(info->type))
      return decoder.fail("a source register that is too narrow");
    if (bits && (bits > 32) != (have > 32))
      return decoder.fail("source registers of different widths");
    bits = have;
    Slot slot = decoder.sourceSlot(element, type);
    if (slot == noSlot)
      return Decoded::Failed;
    if (element.isRegister())
      info->registers[sources.size() - 1] = element.index;
    sources.push_back(slot);
  }
  info->resultBits = uint8_t(bits);
  decoder.setSlots(op, {}, sources);
  op.info = info;
  op.opClass = OpClass::Memory;
  op.flow = Flow::Handler;
  op.steers = 1;
  op.run = storeHandler(info->elementBytes, info->vector);
  return Decoded::Done;
}

Decoded decodeMemory(Decoder &decoder, Op &op) {
  StringRef opcode = decoder.instruction().opcode;
  if (opcode == "ld" || opcode == "ldu")
    return decodeLoad(decoder, op);
  if (opcode == "st")
    return decodeStore(decoder, op);
  if (opcode == "atom" || opcode == "red")
    return decodeAtomic(decoder, op);
  if (opcode == "cp")
    return decodeAsyncCopy(decoder, op);
  return decodeAddress(decoder, op);
}

// Addresses. ------------------------------------------------------------------

void lanesAddresses(Warp &warp, const Op &op, const MemoryInfo &info, Slot base,
                    uint64_t *at) {
  if (info.isWide) {
    const uint64_t *from = warp.lanes<uint64_t>(base);
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      at[lane] = from[lane] + uint64_t(op.offset);
    return;
  }
  const uint32_t *from = warp.lanes<uint32_t>(base);
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    at[lane] = uint32_t(from[lane] + uint32_t(op.offset));
}

Place locate(Warp &warp, const MemoryInfo &info, uint64_t address) {
  Place place;
  place.space = info.space;
  place.offset = address;
  if (info.space == Space::Generic) {
    if (address >= paramWindow) {
      for (auto [space, window] : {std::pair(Space::Shared, sharedWindow),
                                   std::pair(Space::Local, localWindow),
                                   std::pair(Space::Param, paramWindow)})
        if (address - window < windowBytes) {
          place.space = space;
          place.offset = address - window;
        }
    }
  }
  switch (place.space) {
  case Space::SharedCluster:
    // Rank 0 of a cluster of one block is the block itself.
    place.space = Space::Shared;
    [[fallthrough]];
  case Space::Shared:
    place.region = &warp.block->shared.region();
    return place;
  case Space::Local:
    return place;
  case Space::Param:
    place.region = &warp.block->launch->params;
    return place;
  default:
    break;
  }
  place.space = Space::Global;
  Region *&last = clockOf(warp).lastRegion;
  if (!last || address - last->address >= last->bytes) {
    Region *found = warp.block->launch->memory->find(address);
    if (!found)
      return place;
    last = found;
  }
  place.region = last;
  place.offset = address - last->address;
  return place;
}

std::string describeAddress(Warp &warp, uint64_t address) {
  for (auto [name, window] : {std::pair("shared memory", sharedWindow),
                              std::pair("local memory", localWindow),
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

void reportUnwritten(Warp &warp, const Op &op, unsigned lane,
                     const Checked &checked, unsigned bytes) {
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
  uint64_t staleMask = isShared ? cell::blockMask : cell::launchMask;
  uint64_t mine = (isShared ? uint64_t(region.generation) << cell::blockShift
                            : clock.globalBase) |
                  uint64_t(clock.index) << cell::warpShift |
                  uint64_t(lane) << cell::laneShift |
                  uint64_t(clock.block->tick) << cell::tickShift |
                  cell::bytesMask;
  uint32_t seen = clock.laneFloor;
  if (clock.block->warps.size() > 1)
    seen = std::min(seen, clock.floor);
  uint64_t floor = uint64_t(seen) << cell::tickShift;
  auto isInOrder = [&](uint64_t old) {
    constexpr uint64_t who = cell::blockMask | cell::warpMask | cell::laneMask |
                             cell::manyBit | cell::manyBlocksBit;
    uint64_t differ = old ^ mine;
    bool isSeen = !(differ & cell::blockMask) && !(old & cell::manyBlocksBit) &&
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
  if (!info.isStrong && !((offset | bytes) % 4)) {
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
                genericAddress(checked.place)};
    if (isWrite)
      touchWrite(touch);
    else
      touchRead(touch);
  }
}

// Counters. -------------------------------------------------------------------

void markSectors(Counters &counters, Region &region, uint64_t offset,
                 uint64_t bytes) {
  if (!region.sectors || !bytes)
    return;
  uint64_t first = offset / 32, last = (offset + bytes - 1) / 32;
  for (uint64_t at = first / 64; at <= last / 64; ++at) {
    uint64_t mask = ~uint64_t(0);
    if (at == first / 64)
      mask &= ~uint64_t(0) << (first % 64);
    if (at == last / 64)
      mask &= ~uint64_t(0) >> (63 - last % 64);
    if ((__atomic_load_n(&region.sectors[at], __ATOMIC_RELAXED) & mask) == mask)
      continue;
    uint64_t old =
        __atomic_fetch_or(&region.sectors[at], mask, __ATOMIC_RELAXED);
    counters.uniqueSectors += __builtin_popcountll(mask & ~old);
  }
}

unsigned countDistinct(const uint64_t *of, unsigned count) {
  uint64_t low = of[0], high = of[0];
  for (unsigned i = 1; i < count; ++i) {
    low = std::min(low, of[i]);
    high = std::max(high, of[i]);
  }
  if (high - low < 64) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < count; ++i)
      bits |= uint64_t(1) << (of[i] - low);
    return __builtin_popcountll(bits);
  }
  unsigned distinct = 0;
  for (unsigned i = 0; i < count; ++i) {
    bool isNew = true;
    for (unsigned j = 0; j < i; ++j)
      isNew &= of[j] != of[i];
    distinct += isNew;
  }
  return distinct;
}

namespace {

/// Cycles of the 32 banks for one group of lanes: the most distinct words that
/// one bank has to give.
unsigned bankCycles(const uint64_t *words, unsigned count) {
  uint64_t first[32];
  uint32_t used = 0;
  uint64_t more[64];
  unsigned numMore = 0, perBank[32] = {}, most = count ? 1 : 0;
  uint64_t before = ~uint64_t(0);
  for (unsigned i = 0; i < count; ++i) {
    if (words[i] == before)
      continue;
    before = words[i];
    unsigned bank = words[i] & 31;
    if (!(used >> bank & 1)) {
      used |= uint32_t(1) << bank;
      first[bank] = words[i];
      continue;
    }
    if (first[bank] == words[i])
      continue;
    bool isNew = true;
    for (unsigned j = 0; j < numMore; ++j)
      isNew &= more[j] != words[i];
    if (!isNew)
      continue;
    more[numMore++] = words[i];
    most = std::max(most, ++perBank[bank] + 1);
  }
  return most;
}

} // namespace

void countAccess(Warp &warp, const MemoryInfo &info, LaneMask active,
                 const uint64_t *at, bool isWrite) {
  Counters &counters = warp.counters;
  unsigned lanes = __builtin_popcount(active);
  uint64_t bytes = info.bytes();
  Place place = locate(warp, info, at[__builtin_ctz(active)]);
  uint64_t total = bytes * lanes;
  if (place.space == Space::Local) {
    (isWrite ? counters.localStoreBytes : counters.localLoadBytes) += total;
    return;
  }
  if (place.space == Space::Param)
    return;
  if (place.space == Space::Shared) {
    (isWrite ? counters.sharedStoreBytes : counters.sharedLoadBytes) += total;
    ++counters.sharedRequests;
    // 64-bit accesses go by halves of the warp, 128-bit ones by quarters.
    unsigned words = std::max<unsigned>(1, bytes / 4);
    unsigned group = std::max(1u, 32 / words);
    for (unsigned begin = 0; begin < warpLanes; begin += group) {
      uint64_t list[64];
      unsigned count = 0;
      for (unsigned lane = begin; lane < begin + group; ++lane)
        if (active >> lane & 1)
          for (unsigned word = 0; word < words; ++word)
            list[count++] = at[lane] / 4 + word;
      counters.bankCycles += bankCycles(list, count);
    }
    return;
  }
  (isWrite ? counters.globalStoreBytes : counters.globalLoadBytes) += total;
  ++counters.globalRequests;
  uint64_t list[64];
  unsigned count = 0;
  uint64_t before = ~uint64_t(0);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t first = at[lane] / 32, last = (at[lane] + bytes - 1) / 32;
    if (first == before && last == before)
      continue;
    if (first != before)
      list[count++] = first;
    if (last != first)
      list[count++] = last;
    before = last;
    if (!place.region ||
        at[lane] - place.region->address >= place.region->bytes)
      place = locate(warp, info, at[lane]);
    if (!place.region || place.space != Space::Global)
      continue;
    uint64_t offset = at[lane] - place.region->address;
    if (place.region->bytes - offset >= bytes)
      markSectors(counters, *place.region, offset, bytes);
  }
  counters.globalSectors += countDistinct(list, count);
}

// Loops over lanes, with everything. ------------------------------------------

namespace {

uint64_t unwrittenKey(const Warp &warp, uint32_t index, unsigned lane) {
  return reinterpret_cast<uintptr_t>(warp.frame) * 0x9e3779b97f4a7c15ull ^
         (uint64_t(index) << 5 | lane);
}

bool mentions(const Operand &operand, const MemoryInfo &info) {
  if (operand.isRegister())
    return llvm::is_contained(
        llvm::ArrayRef(info.registers).take_front(info.vector), operand.index);
  for (const Operand &element : operand.elements)
    if (mentions(element, info))
      return true;
  return false;
}

/// Whether what a load puts into its registers goes to stores alone, and
/// nothing but loads writes those registers.
bool isOnlyCopied(const Warp &warp, const MemoryInfo &info) {
  int8_t known = info.isOnlyCopied.load(std::memory_order_relaxed);
  if (known >= 0)
    return known;
  const Program *program = warp.frame ? warp.frame->program : nullptr;
  bool isCopied = program && program->function;
  if (isCopied)
    for (const Instruction &one : program->function->code) {
      // The place of a load's results and of a store's values.
      size_t spared = one.opcode == "ld" || one.opcode == "ldu" ? 0
                      : one.opcode == "st"                      ? 1
                                                                : ~size_t(0);
      for (size_t i = 0; i < one.operands.size(); ++i)
        if (i != spared && mentions(one.operands[i], info))
          isCopied = false;
      if (one.guard && llvm::is_contained(info.registers, *one.guard))
        isCopied = false;
    }
  info.isOnlyCopied.store(isCopied, std::memory_order_relaxed);
  return isCopied;
}

uint64_t extended(uint64_t value, const MemoryInfo &info) {
  if (info.isSigned && info.elementBytes < 8) {
    unsigned shift = 64 - info.elementBytes * 8;
    value = uint64_t(int64_t(value << shift) >> shift);
    if (info.resultBits < 64)
      value &= (uint64_t(1) << info.resultBits) - 1;
  }
  return value;
}

void setLane(Warp &warp, const MemoryInfo &info, Slot slot, unsigned lane,
             const uint8_t *from) {
  if (info.elementBytes == 16) {
    std::memcpy(&warp.lanes<uint64_t>(slot)[lane], from, 8);
    std::memcpy(&warp.lanes<uint64_t>(slot + 1)[lane], from + 8, 8);
    return;
  }
  uint64_t value = 0;
  std::memcpy(&value, from, info.elementBytes);
  value = extended(value, info);
  if (info.resultBits > 32)
    warp.lanes<uint64_t>(slot)[lane] = value;
  else
    warp.lanes<uint32_t>(slot)[lane] = uint32_t(value);
}

} // namespace

void loadLanes(Warp &warp, const Op &op, const MemoryInfo &info,
               LaneMask active, const uint64_t *at) {
  unsigned bytes = info.bytes(), size = info.elementBytes;
  LaneMask tainted[8] = {};
  WarpClock &clock = clockOf(warp);
  static const uint8_t zeros[32] = {};
  bool isOrdering = info.semantics == Semantics::Acquire;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    Checked checked;
    if (!checkLane(warp, op, lane, info, at[lane], bytes, bytes,
                   /*isWrite=*/false, checked)) {
      for (Slot slot : op.results())
        setLane(warp, info, slot, lane, zeros);
      continue;
    }
    uint8_t any = 0;
    for (unsigned i = 0; i < bytes; ++i)
      any |= checked.state[i];
    if (any & InFlight)
      reportInFlight(warp, op, lane, checked, bytes, false);
    uint8_t value[32];
    std::memcpy(value, checked.data, bytes);
    if (info.isStrong)
      std::atomic_thread_fence(std::memory_order_acquire);
    Region *region = checked.place.region;
    if (info.isStrong && region && region->writers) {
      uint64_t location = genericAddress(checked.place);
      if (warp.checksRaces) {
        Touch touch{warp,           op, lane, *region, checked.place.offset / 4,
                    cell::bytesMask};
        noteFlagRead(touch);
        learnAt(warp, LaneMask(1) << lane, location, info.scope, isOrdering,
                /*isUpdate=*/false);
      }
    }
    touchBytes(warp, op, lane, checked, bytes, info, /*isWrite=*/false);
    bool isReported = false;
    for (unsigned v = 0; v < info.vector; ++v) {
      Slot slot = op.result(v);
      setLane(warp, info, slot, lane, value + v * size);
      uint8_t mark = 0, unwritten = 0;
      for (unsigned i = 0; i < size; ++i) {
        uint8_t state = checked.state[v * size + i];
        mark |= state;
        if (!(state & (Written | InFlight)))
          unwritten |= 1u << (i & 7);
      }
      if (mark & Tainted)
        tainted[v] |= LaneMask(1) << lane;
      if (unwritten) {
        if (isOnlyCopied(warp, info)) {
          clock.unwritten[unwrittenKey(warp, info.registers[v], lane)] =
              unwritten;
        } else if (!isReported) {
          isReported = true;
          reportUnwritten(warp, op, lane, checked, bytes);
        }
      } else if (!clock.unwritten.empty()) {
        clock.unwritten.erase(unwrittenKey(warp, info.registers[v], lane));
      }
    }
  }
  if (warp.tracksTaint) {
    LaneMask byAddress = warp.taint(op.operand(0));
    for (unsigned v = 0; v < info.vector; ++v) {
      warp.setTaint(op.result(v), active, tainted[v] | byAddress);
      if (size == 16)
        warp.setTaint(op.result(v) + 1, active, tainted[v] | byAddress);
    }
  }
}

void storeLanes(Warp &warp, const Op &op, const MemoryInfo &info,
                LaneMask active, const uint64_t *at) {
  unsigned bytes = info.bytes(), size = info.elementBytes;
  WarpClock &clock = clockOf(warp);
  LaneMask byAddress =
      warp.tracksTaint ? warp.taint(op.operand(0)) : LaneMask(0);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    Checked checked;
    if (!checkLane(warp, op, lane, info, at[lane], bytes, bytes,
                   /*isWrite=*/true, checked))
      continue;
    uint8_t value[32], state[32];
    for (unsigned v = 0; v < info.vector; ++v) {
      Slot slot = op.operand(1 + v);
      if (size == 16) {
        std::memcpy(value, &warp.lanes<uint64_t>(slot)[lane], 8);
        std::memcpy(value + 8, &warp.lanes<uint64_t>(slot + 1)[lane], 8);
      } else if (size == 8) {
        std::memcpy(value + v * 8, &warp.lanes<uint64_t>(slot)[lane], 8);
      } else {
        // The low bytes of a cell are the value's, whatever the cell's width.
        const uint8_t *cell = warp.lanes<uint8_t>(slot);
        unsigned stride = info.resultBits > 32 ? 8 : 4;
        std::memcpy(value + v * size, cell + lane * stride, size);
      }
      bool isTainted =
          warp.tracksTaint && ((warp.taint(slot) | byAddress) >> lane & 1);
      std::memset(state + v * size, Written | (isTainted ? Tainted : 0), size);
      if (!clock.unwritten.empty()) {
        auto found =
            clock.unwritten.find(unwrittenKey(warp, info.registers[v], lane));
        if (found != clock.unwritten.end())
          for (unsigned i = 0; i < size; ++i)
            if (found->second >> (i & 7) & 1)
              state[v * size + i] = 0;
      }
    }
    for (unsigned i = 0; i < bytes; ++i)
      if (checked.state[i] & InFlight) {
        reportInFlight(warp, op, lane, checked, bytes, true);
        break;
      }
    touchBytes(warp, op, lane, checked, bytes, info, /*isWrite=*/true, value);
    if (warp.checksRaces && info.isStrong && checked.place.region &&
        checked.place.region->writers)
      publishAt(warp, LaneMask(1) << lane, genericAddress(checked.place),
                info.scope, info.semantics == Semantics::Release,
                /*isUpdate=*/false);
    std::memcpy(checked.state, state, bytes);
    // What others wait for must not be seen before what it announces.
    if (info.isStrong)
      std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(checked.data, value, bytes);
  }
}

} // namespace fsr::ptx
