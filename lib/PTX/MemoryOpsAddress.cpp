// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Addresses: cvta, isspacep, mapa, getctarank; and the instructions that are
// only hints.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"

#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

struct AddressInfo {
  uint64_t window = 0;
  bool isWide = true;
  Space space = Space::Generic;
};

uint64_t windowOf(Space space) {
  switch (space) {
  case Space::Shared:
  case Space::SharedCluster:
    return sharedWindow;
  case Space::Local:
    return localWindow;
  case Space::Param:
    return paramWindow;
  default:
    return 0;
  }
}

/// Adds or takes off the window's start: `op.immediate`.
template <typename T>
void shift(Warp &warp, const Op &op, LaneMask active) {
  const T *from = warp.lanes<T>(op.operand(0));
  T *to = warp.lanes<T>(op.result(0));
  T by = T(op.immediate);
  if (active == allLanes) {
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      to[lane] = from[lane] + by;
    return;
  }
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    to[lane] = from[lane] + by;
  }
}

void isSpace(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const AddressInfo *>(op.info);
  LaneMask found = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t address = info.isWide ? warp.lanes<uint64_t>(op.operand(0))[lane]
                                   : warp.lanes<uint32_t>(op.operand(0))[lane];
    bool isIn = false;
    if (info.window) {
      isIn = address - info.window < windowBytes;
      // The window of a block is within that of its cluster.
      uint64_t rank = (address - info.window) >> rankShift;
      size_t numBlocks = warp.block->cluster->blocks.size();
      if (isIn && rank && numBlocks > 1 &&
          (info.space == Space::Shared || info.space == Space::SharedCluster))
        isIn = info.space == Space::Shared ? rank - 1 == warp.block->rank
                                           : rank <= numBlocks;
    } else {
      // Constant variables are regions that kernels cannot write.
      const Region *region = warp.block->launch->memory->find(address);
      bool isConst = region && region->isConst && !region->name.empty();
      isIn = info.space == Space::Const ? isConst
                                        : address < paramWindow && !isConst;
    }
    if (isIn)
      found |= LaneMask(1) << lane;
  }
  LaneMask &to = warp.predicate(op.result(0));
  to = (to & ~active) | found;
}

void nothing(Warp &, const Op &, LaneMask) {}

/// Offset in shared memory of an address that `mapa` and the like take: of the
/// block's own, or of any of its cluster; `op.immediate`: generic. Nothing:
/// reported.
std::optional<uint64_t> sharedOffset(Warp &warp, const Op &op, unsigned lane,
                                     uint64_t address) {
  uint64_t offset = op.immediate ? address - sharedWindow : address;
  size_t numBlocks = warp.block->cluster->blocks.size();
  uint64_t rank = offset >> rankShift;
  if (offset < windowBytes && (!rank || (rank <= numBlocks && numBlocks > 1)))
    return offset;
  warp.fatal(op, lane, FindingKind::OutOfBounds, address,
             "0x" + Twine::utohexstr(address) +
                 " is no address of the cluster's shared memory");
  return std::nullopt;
}

template <typename T>
void mapRank(Warp &warp, const Op &op, LaneMask active) {
  const T *from = warp.lanes<T>(op.operand(0));
  const uint32_t *rank = warp.lanes<uint32_t>(op.operand(1));
  T *to = warp.lanes<T>(op.result(0));
  size_t numBlocks = warp.block->cluster->blocks.size();
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    if (rank[lane] >= numBlocks) {
      warp.fatal(op, lane, FindingKind::OutOfBounds, from[lane],
                 "maps an address to block " + Twine(rank[lane]) +
                     " of a cluster of " +
                     (numBlocks == 1 ? Twine("one block")
                                     : Twine(numBlocks) + " blocks"));
      continue;
    }
    std::optional<uint64_t> offset = sharedOffset(warp, op, lane, from[lane]);
    if (!offset)
      continue;
    uint64_t mapped = *offset & (rankBytes - 1);
    if (numBlocks > 1)
      mapped += (rank[lane] + 1) * rankBytes;
    to[lane] = T(op.immediate ? sharedWindow + mapped : mapped);
  }
}

template <typename T>
void rankOf(Warp &warp, const Op &op, LaneMask active) {
  const T *from = warp.lanes<T>(op.operand(0));
  uint32_t *to = warp.lanes<uint32_t>(op.result(0));
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    std::optional<uint64_t> offset = sharedOffset(warp, op, lane, from[lane]);
    if (!offset)
      continue;
    uint64_t rank = *offset >> rankShift;
    to[lane] = rank ? uint32_t(rank - 1) : warp.block->rank;
  }
}

Decoded decodeConvert(Decoder &decoder, Op &op) {
  bool isTo = false, isWide = true;
  std::optional<Space> space;
  for (StringRef modifier : decoder.instruction().modifiers) {
    if (modifier == "to")
      isTo = true;
    else if (modifier == "u64" || modifier == "u32")
      isWide = modifier == "u64";
    else if (auto one = parseSpace(modifier))
      space = one;
    else
      return decoder.failModifier(modifier);
  }
  if (!space)
    return decoder.fail("a space wanted");
  Type type = isWide ? Type::U64 : Type::U32;
  if (!decoder.setOperands(op, type, {type}))
    return Decoded::Failed;
  uint64_t window = windowOf(*space);
  op.immediate = isTo ? -window : window;
  op.run = isWide ? Handler(shift<uint64_t>) : Handler(shift<uint32_t>);
  op.opClass = OpClass::Integer;
  return Decoded::Done;
}

Decoded decodeIsSpace(Decoder &decoder, Op &op) {
  auto *info = decoder.makeInfo<AddressInfo>();
  std::optional<Space> space;
  for (StringRef modifier : decoder.instruction().modifiers) {
    space = parseSpace(modifier);
    if (!space)
      return decoder.failModifier(modifier);
  }
  if (!space || !decoder.expectOperands(2))
    return decoder.fail("a space and two operands wanted");
  const Operand &from = decoder.instruction().operands[1];
  Type type = from.isRegister() ? decoder.registerType(from) : Type::U64;
  info->isWide = bitWidth(type) > 32;
  info->space = *space;
  info->window = windowOf(*space);
  if (!decoder.setOperands(op, Type::Pred, {type}))
    return Decoded::Failed;
  op.info = info;
  op.run = isSpace;
  op.opClass = OpClass::Integer;
  return Decoded::Done;
}

Decoded decodeMapa(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  bool isWide = true, isRank = instruction.opcode == "getctarank";
  op.immediate = !instruction.has("shared::cluster");
  for (StringRef modifier : instruction.modifiers) {
    if (modifier == "u64" || modifier == "u32")
      isWide = modifier == "u64";
    else if (modifier != "shared::cluster")
      return decoder.failModifier(modifier);
  }
  if (isRank) {
    const Operand &from =
        instruction.operands.empty() ? Operand() : instruction.operands.back();
    Type type = from.isRegister() ? decoder.registerType(from)
                : isWide          ? Type::U64
                                  : Type::U32;
    if (!decoder.setOperands(op, Type::U32, {type}))
      return Decoded::Failed;
    op.run = bitWidth(type) > 32 ? Handler(rankOf<uint64_t>)
                                 : Handler(rankOf<uint32_t>);
    return Decoded::Done;
  }
  Type type = isWide ? Type::U64 : Type::U32;
  if (!decoder.setOperands(op, type, {type, Type::U32}))
    return Decoded::Failed;
  op.run = isWide ? Handler(mapRank<uint64_t>) : Handler(mapRank<uint32_t>);
  return Decoded::Done;
}

/// Hints: prefetches and the like change nothing that can be seen.
Decoded decodeHint(Decoder &decoder, Op &op) {
  for (StringRef modifier : decoder.instruction().modifiers) {
    bool isKnown = parseSpace(modifier) || isCacheHint(modifier) ||
                   llvm::StringSwitch<bool>(modifier)
                       .Cases({"L1", "L2"}, true)
                       .Default(false);
    if (!isKnown)
      return decoder.failModifier(modifier);
  }
  op.opClass = OpClass::Memory;
  op.run = nothing;
  return Decoded::Done;
}

void discard(Warp &warp, const Op &op, LaneMask active) {
  MemoryInfo info;
  info.space = Space(op.immediate);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info, op.operand(0), at);
  info.isStore = true;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    Checked checked;
    if (!checkLane(warp, op, lane, info, at[lane], 128, 128, /*isWrite=*/true,
                   checked))
      continue;
    touchBytes(warp, op, lane, checked, 128, info, /*isWrite=*/true);
    // What was there is lost; reading it is reading what nothing wrote.
    std::memset(checked.state, 0, 128);
  }
}

Decoded decodeDiscard(Decoder &decoder, Op &op) {
  Space space = Space::Generic;
  bool isL2 = false;
  for (StringRef modifier : decoder.instruction().modifiers) {
    if (modifier == "global")
      space = Space::Global;
    else if (modifier == "L2")
      isL2 = true;
    else
      return decoder.failModifier(modifier);
  }
  if (!isL2 || !decoder.expectOperands(2))
    return decoder.fail("discard.L2 [a], 128 wanted");
  Decoder::AddressParts parts =
      decoder.address(decoder.instruction().operands[0]);
  if (parts.base == noSlot)
    return Decoded::Failed;
  const Operand &size = decoder.instruction().operands[1];
  if (size.kind != Operand::Kind::Integer || size.bits != 128 || !parts.isWide)
    return decoder.fail("discard.L2 [a], 128 wanted");
  decoder.setSlots(op, {}, {parts.base});
  op.offset = parts.offset;
  op.immediate = uint64_t(space);
  op.steers = 1;
  op.flow = Flow::Handler;
  op.opClass = OpClass::Memory;
  op.run = discard;
  return Decoded::Done;
}

void makePolicy(Warp &warp, const Op &op, LaneMask active) {
  for (LaneMask rest = active; rest; rest &= rest - 1)
    warp.lanes<uint64_t>(op.result(0))[__builtin_ctz(rest)] = 1;
}

/// A value that only cache hints take.
Decoded decodePolicy(Decoder &decoder, Op &op) {
  for (StringRef modifier : decoder.instruction().modifiers) {
    bool isKnown =
        isCacheHint(modifier) ||
        llvm::StringSwitch<bool>(modifier)
            .Cases({"fractional", "range", "cvt", "global", "b64", "L2"}, true)
            .Case("L2::evict_unchanged", true)
            .Default(false);
    if (!isKnown)
      return decoder.failModifier(modifier);
  }
  const Instruction &instruction = decoder.instruction();
  if (instruction.operands.empty())
    return decoder.fail("a result wanted");
  Slot result = decoder.resultSlot(instruction.operands[0], Type::B64);
  if (result == noSlot)
    return Decoded::Failed;
  decoder.setSlots(op, {result}, {});
  op.run = makePolicy;
  op.opClass = OpClass::Integer;
  return Decoded::Done;
}

} // namespace

Decoded decodeAddress(Decoder &decoder, Op &op) {
  StringRef opcode = decoder.instruction().opcode;
  if (opcode == "cvta")
    return decodeConvert(decoder, op);
  if (opcode == "isspacep")
    return decodeIsSpace(decoder, op);
  if (opcode == "mapa" || opcode == "getctarank")
    return decodeMapa(decoder, op);
  if (opcode == "prefetch" || opcode == "prefetchu" ||
      opcode == "applypriority")
    return decodeHint(decoder, op);
  if (opcode == "discard")
    return decodeDiscard(decoder, op);
  if (opcode == "createpolicy")
    return decodePolicy(decoder, op);
  return Decoded::NotMine;
}

} // namespace fsr::ptx
