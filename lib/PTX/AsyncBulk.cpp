// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `cp.async.bulk` and `cp.reduce.async.bulk` between global and shared memory,
// also that of other blocks of the cluster. Both ends are checked where the
// copy is issued; the bytes are read and written where its end is waited for.
// Copies out of shared memory that nobody waits for never happen.
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "Engine.h"
#include "Shadow.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

constexpr unsigned bulkUnit = 16;
/// Copies under way; more of them happen at once.
constexpr size_t mostCopies = 4096;

/// An offset in shared memory of the block of that rank.
uint64_t atRank(const Warp &warp, unsigned rank, uint64_t offset) {
  bool isAlone = warp.block->cluster->blocks.size() == 1;
  return isAlone ? offset : (rank + 1) * rankBytes + offset;
}

/// The copy to each block of `ranks`, each with an mbarrier of its own.
void issueToRanks(BulkCopy copy, uint64_t barrierAddress, uint32_t ranks) {
  Warp &warp = *copy.warp;
  size_t numBlocks = warp.block->cluster->blocks.size();
  if (ranks >> numBlocks) {
    warp.fatal(*copy.op, copy.lane, FindingKind::OutOfBounds, copy.target,
               "copies to the blocks of mask 0x" + Twine::utohexstr(ranks) +
                   " in a cluster of " + Twine(numBlocks));
    return;
  }
  uint64_t target = copy.target & (rankBytes - 1);
  for (; ranks; ranks &= ranks - 1) {
    unsigned rank = __builtin_ctz(ranks);
    MbarrierSpot spot;
    if (!findMbarrier(warp, *copy.op, copy.lane, copy.info->barrier,
                      atRank(warp, rank, barrierAddress & (rankBytes - 1)),
                      spot))
      return;
    copy.target = atRank(warp, rank, target);
    copy.barrier = spot.offset;
    if (!beginCopy(copy, spot))
      return;
  }
}

/// Sources: target, source, bytes, then the mbarrier, then the mask.
void issue(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const BulkInfo *>(op.info);
  uint64_t to[warpLanes], from[warpLanes], barriers[warpLanes];
  lanesAddresses(warp, info.to, op.operand(0), op.offset, to);
  lanesAddresses(warp, info.from, op.operand(1), int64_t(op.immediate), from);
  if (info.hasBarrier)
    lanesAddresses(warp, info.barrier, op.operand(3), info.barrierOffset,
                   barriers);
  LaneMask tainted = 0;
  if (warp.tracksTaint)
    tainted = warp.taint(op.operand(0)) | warp.taint(op.operand(1)) |
              warp.taint(op.operand(2));
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    BulkCopy copy;
    copy.warp = &warp;
    copy.program = warp.frame->program;
    copy.op = &op;
    copy.info = &info;
    copy.lane = lane;
    copy.bytes = warp.lanes<uint32_t>(op.operand(2))[lane];
    copy.target = to[lane];
    copy.source = from[lane];
    copy.isTainted = tainted >> lane & 1;
    if (copy.bytes % bulkUnit) {
      warp.fatal(op, lane, FindingKind::Misaligned, from[lane],
                 "copies " + Twine(copy.bytes) +
                     " bytes, which is no multiple of 16");
      continue;
    }
    if (info.isMulticast) {
      issueToRanks(copy, barriers[lane],
                   warp.lanes<uint32_t>(op.operand(4))[lane] & 0xffff);
      continue;
    }
    MbarrierSpot spot{warp.block, 0};
    if (info.hasBarrier) {
      if (!findMbarrier(warp, op, lane, info.barrier, barriers[lane], spot))
        continue;
      copy.barrier = spot.offset;
    } else {
      copy.group = asyncOf(*warp.block).openGroup[warp.threadIndex(lane)];
    }
    beginCopy(copy, spot);
  }
}

void commit(Warp &warp, const Op &, LaneMask active) {
  BlockAsync &async = asyncOf(*warp.block);
  for (LaneMask rest = active; rest; rest &= rest - 1)
    ++async.openGroup[warp.threadIndex(__builtin_ctz(rest))];
}

void markLanding(const BulkCopy &copy, bool isInFlight) {
  for (uint32_t i = 0; i < copy.bytes && copy.landing; ++i)
    copy.landing[i] =
        isInFlight ? copy.landing[i] | InFlight : copy.landing[i] & ~InFlight;
}

/// `isRead`: only until the sources are read.
void waitFor(Warp &warp, const Op &op, LaneMask active, bool isRead) {
  BlockAsync &async = asyncOf(*warp.block);
  auto isDue = [&](const BulkCopy &copy) {
    return !copy.info->hasBarrier && copy.warp == &warp &&
           (active >> copy.lane & 1) &&
           copy.group + op.immediate <
               async.openGroup[warp.threadIndex(copy.lane)];
  };
  if (!isRead) {
    for (const BulkCopy &copy : async.landings)
      if (isDue(copy))
        markLanding(copy, false);
    llvm::erase_if(async.landings, isDue);
  }
  for (const BulkCopy &copy : async.copies) {
    if (!isDue(copy))
      continue;
    performCopy(copy);
    if (!isRead || !copy.landing)
      continue;
    markLanding(copy, true);
    async.landings.push_back(copy);
  }
  llvm::erase_if(async.copies, isDue);
}

void waitGroup(Warp &warp, const Op &op, LaneMask active) {
  waitFor(warp, op, active, /*isRead=*/false);
}
void waitGroupRead(Warp &warp, const Op &op, LaneMask active) {
  waitFor(warp, op, active, /*isRead=*/true);
}

void nothing(Warp &, const Op &, LaneMask) {}

/// What copies that reduce can do.
bool isReducible(const AtomicInfo &info, bool isGlobal) {
  Type type = info.type;
  bool isWord = type == Type::U32 || type == Type::S32;
  bool isLong = type == Type::U64 || type == Type::S64;
  bool isHalf = type == Type::F16 || type == Type::BF16;
  switch (info.update) {
  case Update::Add:
    return isWord || type == Type::U64 ||
           (isGlobal && (isHalf || type == Type::F32 || type == Type::F64));
  case Update::Min:
  case Update::Max:
    return isWord || (isGlobal && (isLong || isHalf));
  case Update::Inc:
  case Update::Dec:
    return type == Type::U32;
  case Update::And:
  case Update::Or:
  case Update::Xor:
    return type == Type::B32 || (isGlobal && type == Type::B64);
  default:
    return false;
  }
}

bool isSharedSpace(Space space) {
  return space == Space::Shared || space == Space::SharedCluster;
}

/// The spaces, the update and how its end is told, of `cp.async.bulk` and
/// `cp.reduce.async.bulk`. False: `fail` was called.
bool readModifiers(Decoder &decoder, BulkInfo &info, bool &hasPolicy) {
  llvm::SmallVector<Space, 2> spaces;
  bool isGrouped = false, hasUpdate = false, isNoFlush = false;
  info.to.type = Type::None;
  for (StringRef modifier : decoder.instruction().modifiers) {
    if (modifier == "async" || modifier == "bulk")
      continue;
    if (modifier == "reduce")
      info.isReduction = true;
    else if (modifier == "mbarrier::complete_tx::bytes")
      info.hasBarrier = true;
    else if (modifier == "bulk_group")
      isGrouped = true;
    else if (modifier == "L2::cache_hint")
      hasPolicy = true;
    else if (modifier == "multicast::cluster")
      info.isMulticast = true;
    else if (modifier == "noftz" && info.isReduction)
      isNoFlush = true;
    else if (auto space = parseSpace(modifier))
      spaces.push_back(*space);
    else if (auto update = parseUpdate(modifier);
             update && info.isReduction && !hasUpdate) {
      info.to.update = *update;
      hasUpdate = true;
    } else if (auto type = parseType(modifier);
               type && info.isReduction && info.to.type == Type::None)
      info.to.type = *type;
    else {
      decoder.failModifier(modifier);
      return false;
    }
  }
  if (spaces.size() != 2 || info.hasBarrier == isGrouped ||
      isGrouped != (spaces[0] == Space::Global) ||
      (isGrouped ? spaces[1] != Space::Shared
                 : !isSharedSpace(spaces[0]) || (spaces[1] != Space::Global &&
                                                 spaces[1] != Space::Shared))) {
    decoder.fail("a copy between these spaces is not supported");
    return false;
  }
  bool isFromShared = spaces[1] == Space::Shared;
  if (info.isMulticast &&
      (isFromShared || spaces[0] != Space::SharedCluster || info.isReduction)) {
    decoder.fail("only copies from global memory to .shared::cluster go to "
                 "several blocks");
    return false;
  }
  if (info.isReduction) {
    Type type = info.to.type;
    bool isHalf = type == Type::F16 || type == Type::BF16;
    bool isNoFlushSum = isHalf && info.to.update == Update::Add;
    if (!isFromShared || !hasUpdate || isNoFlush != isNoFlushSum ||
        !isReducible(info.to, isGrouped)) {
      decoder.fail("no such form of a copy that reduces");
      return false;
    }
  }
  info.to.space = spaces[0];
  info.from.space = spaces[1];
  return true;
}

Decoded decodeIssue(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<BulkInfo>();
  bool hasPolicy = false;
  if (!readModifiers(decoder, *info, hasPolicy) ||
      !decoder.expectOperands(3 + info->hasBarrier + info->isMulticast +
                              hasPolicy))
    return Decoded::Failed;
  const auto &operands = instruction.operands;
  Decoder::AddressParts to = decoder.address(operands[0]);
  Decoder::AddressParts from = decoder.address(operands[1]);
  Slot bytes = decoder.sourceSlot(operands[2], Type::U32);
  if (to.base == noSlot || from.base == noSlot || bytes == noSlot)
    return Decoded::Failed;
  info->to.isWide = to.isWide;
  info->from.isWide = from.isWide;
  info->from.type = Type::B8;
  info->from.elementBytes = 1;
  if (info->isReduction) {
    info->to.isStrong = true;
    info->to.semantics = Semantics::Volatile;
    info->to.scope =
        info->to.space == Space::Global ? Scope::Gpu : Scope::Cluster;
    info->to.elementBytes = uint8_t(bitWidth(info->to.type) / 8);
  } else {
    info->to.type = Type::B8;
    info->to.elementBytes = 1;
  }
  info->to.isStore = true;
  llvm::SmallVector<Slot, 5> sources{to.base, from.base, bytes};
  if (info->hasBarrier) {
    info->barrier.space = info->to.space;
    info->barrier.isStrong = true;
    info->barrier.semantics = Semantics::Volatile;
    Slot base = noSlot;
    if (!readBarrierAddress(decoder, operands[3], info->barrier, base,
                            info->barrierOffset))
      return Decoded::Failed;
    sources.push_back(base);
  }
  if (info->isMulticast) {
    sources.push_back(decoder.sourceSlot(operands[4], Type::U16));
    if (sources.back() == noSlot)
      return Decoded::Failed;
  }
  decoder.setSlots(op, {}, sources);
  op.offset = to.offset;
  op.immediate = uint64_t(from.offset);
  op.info = info;
  op.steers = uint8_t((1u << sources.size()) - 1);
  op.flow = Flow::Handler;
  op.opClass = OpClass::Memory;
  op.run = issue;
  return Decoded::Done;
}

/// Bytes that are none of the copy's own.
unsigned alignmentOf(const BulkCopy &copy) {
  return copy.info->isValue ? copy.bytes : bulkUnit;
}

void reduce(const BulkCopy &copy, const Checked &to, const uint8_t *from,
            const uint8_t *states) {
  const AtomicInfo &info = copy.info->to;
  Warp &warp = *copy.warp;
  for (uint32_t i = 0; i < copy.bytes; ++i)
    if (!(to.state[i] & Written)) {
      reportUnwritten(warp, *copy.op, copy.lane, to, copy.bytes);
      break;
    }
  bool isGlobal = to.place.space == Space::Global;
  // The rounding of sums depends on their order.
  bool isTainted =
      copy.isTainted || (info.update == Update::Add && isFloat(info.type));
  for (uint32_t at = 0; at < copy.bytes; at += info.elementBytes) {
    uint64_t value = 0;
    std::memcpy(&value, from + at, info.elementBytes);
    updateAt(info, to.data + at, value, isGlobal, warp.changes);
    for (uint32_t i = at; i < at + info.elementBytes; ++i)
      to.state[i] =
          (to.state[i] & Tainted) | Written |
          (isTainted || (states && states[i] & Tainted) ? Tainted : 0);
  }
}

} // namespace

bool beginCopy(BulkCopy copy, const MbarrierSpot &spot) {
  Warp &warp = *copy.warp;
  const Op &op = *copy.op;
  const BulkInfo &info = *copy.info;
  unsigned lane = copy.lane, alignment = alignmentOf(copy);
  Checked target, source;
  if (!checkLane(warp, op, lane, info.to, copy.target, copy.bytes, alignment,
                 /*isWrite=*/true, target) ||
      (!info.isValue &&
       !checkLane(warp, op, lane, info.from, copy.source, copy.bytes, alignment,
                  /*isWrite=*/false, source)))
    return false;
  if (info.hasBarrier && target.place.region->block != spot.block) {
    warp.fatal(op, lane, FindingKind::BarrierMismatch, spot.address(),
               "writes to shared memory of block " +
                   describeBlock(*target.place.region->block) +
                   " with an mbarrier of block " + describeBlock(*spot.block) +
                   "; both have to be of one block");
    return false;
  }
  if (!info.isValue)
    touchBytes(warp, op, lane, source, copy.bytes, info.from, false);
  touchBytes(warp, op, lane, target, copy.bytes, info.to, true);
  bool isFromShared = source.place.space == Space::Shared;
  if (isFromShared)
    warp.counters.sharedLoadBytes += copy.bytes;
  else if (!info.isValue)
    warp.counters.globalLoadBytes += copy.bytes;
  if (target.place.space == Space::Shared) {
    for (uint32_t i = 0; i < copy.bytes && !info.isReduction; ++i)
      if (target.state[i] & InFlight) {
        reportInFlight(warp, op, lane, target, copy.bytes, true);
        break;
      }
    for (uint32_t i = 0; i < copy.bytes; ++i)
      target.state[i] |= InFlight;
    warp.counters.sharedStoreBytes += copy.bytes;
  } else {
    // Updates of several copies may be under way at one place.
    if (!info.isReduction) {
      copy.landing = target.state;
      markLanding(copy, true);
    }
    warp.counters.globalStoreBytes += copy.bytes;
  }
  for (const Checked *end : {&source, &target})
    if (end->place.space == Space::Global && copy.bytes) {
      ++warp.counters.globalRequests;
      warp.counters.globalSectors += (copy.bytes + 31) / 32;
      markSectors(warp.counters, *end->place.region, end->place.offset,
                  copy.bytes);
    }
  // What is written from now on is told from what was there before.
  BlockClock &clock = *clockOf(warp).block;
  copy.tick = clock.tick;
  if (!info.isValue)
    clock.advance();
  BlockAsync &async = asyncOf(*spot.block);
  async.copies.push_back(copy);
  if (async.copies.size() <= mostCopies)
    return true;
  BulkCopy oldest = async.copies.front();
  if (oldest.info->hasBarrier) {
    settle(warp, lane, {spot.block, oldest.barrier});
    return true;
  }
  async.copies.erase(async.copies.begin());
  performCopy(oldest);
  return true;
}

void performCopy(const BulkCopy &copy) {
  Warp &warp = *copy.warp;
  const BulkInfo &info = *copy.info;
  unsigned alignment = alignmentOf(copy);
  Checked to, from;
  if (!checkLane(warp, *copy.op, copy.lane, info.to, copy.target, copy.bytes,
                 alignment, /*isWrite=*/true, to) ||
      (!info.isValue &&
       !checkLane(warp, *copy.op, copy.lane, info.from, copy.source, copy.bytes,
                  alignment, /*isWrite=*/false, from)))
    return;
  if (info.isValue) {
    touchBytes(warp, *copy.op, copy.lane, to, copy.bytes, info.to, true);
    if (info.isReduction) {
      reduce(copy, to, copy.value.data(), nullptr);
      return;
    }
    std::memcpy(to.data, copy.value.data(), copy.bytes);
    std::memset(to.state, Written | (copy.isTainted ? Tainted : 0), copy.bytes);
    return;
  }
  for (uint32_t i = 0; i < copy.bytes; ++i)
    if (from.state[i] & InFlight) {
      reportInFlight(warp, *copy.op, copy.lane, from, copy.bytes, false);
      break;
    }
  checkSource(warp, *copy.op, copy.lane, from, copy.bytes, copy.tick);
  touchBytes(warp, *copy.op, copy.lane, from, copy.bytes, info.from, false);
  touchBytes(warp, *copy.op, copy.lane, to, copy.bytes, info.to, true);
  if (info.isReduction) {
    for (uint32_t i = 0; i < copy.bytes; ++i)
      if (!(from.state[i] & Written)) {
        reportUnwritten(warp, *copy.op, copy.lane, from, copy.bytes);
        break;
      }
    reduce(copy, to, from.data, from.state);
    return;
  }
  if (warp.shadow)
    copyShadow(warp, copy.lane, to.place, from.place, copy.bytes);
  std::memmove(to.data, from.data, copy.bytes);
  uint8_t byAddress = copy.isTainted ? Tainted : 0;
  for (uint32_t i = 0; i < copy.bytes; ++i)
    to.state[i] = (from.state[i] & (Written | Tainted)) | byAddress;
}

void BlockAsync::land() {
  for (const BulkCopy &copy : copies)
    markLanding(copy, false);
  for (const BulkCopy &copy : landings)
    markLanding(copy, false);
  landings.clear();
}

void endAsync(Block &block) {
  const std::vector<Block *> &blocks = block.cluster->blocks;
  if (blocks.size() == 1)
    return;
  for (Block *owner : blocks) {
    if (!owner->clock->async)
      continue;
    std::vector<BulkCopy> &copies = asyncOf(*owner).copies;
    llvm::erase_if(copies, [&](const BulkCopy &copy) {
      Block &from = *copy.warp->block;
      bool isSource = &from == &block && !copy.info->isValue &&
                      copy.info->from.space == Space::Shared && owner != &block;
      bool isTarget = owner == &block && &from != &block;
      if (!isSource && !isTarget)
        return false;
      Finding finding;
      finding.kind = FindingKind::FinishedBlock;
      finding.kernel = block.launch->program->function->name;
      finding.block = from.index;
      finding.thread = copy.warp->threadOf(copy.lane);
      setPlace(finding, *copy.program, copy.op->source);
      finding.message = std::string("the ") + copy.info->name + " to block " +
                        describeBlock(*owner) + " is under way when block " +
                        describeBlock(block) +
                        " ends, whose shared memory it " +
                        (isSource ? "reads" : "writes");
      block.launch->findings->add(std::move(finding));
      return true;
    });
  }
}

Decoded decodeBulk(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  if (instruction.has("tensor"))
    return decoder.fail("copies by a tensor map are not supported");
  bool isCommit = instruction.has("commit_group");
  bool isWait = instruction.has("wait_group");
  if (instruction.has("prefetch")) {
    op.opClass = OpClass::Memory;
    op.run = nothing;
    return Decoded::Done;
  }
  if (!isCommit && !isWait)
    return decodeIssue(decoder, op);
  size_t most = isWait && instruction.has("read") ? 4 : 3;
  if (instruction.modifiers.size() != most)
    return decoder.fail("`cp.async.bulk` with one more modifier wanted");
  if (!decoder.expectOperands(isWait ? 1 : 0))
    return Decoded::Failed;
  op.opClass = OpClass::Memory;
  op.flow = Flow::Handler;
  op.run = commit;
  if (isWait) {
    const Operand &keep = instruction.operands[0];
    if (keep.kind != Operand::Kind::Integer || keep.bits > UINT32_MAX)
      return decoder.fail("a number of groups wanted");
    op.immediate = keep.bits;
    op.run = instruction.has("read") ? waitGroupRead : waitGroup;
  }
  return Decoded::Done;
}

} // namespace fsr::ptx
