// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `cp.async.bulk` between global and shared memory. Both ends are checked where
// the copy is issued; the bytes are read and written where its end is waited
// for. Copies out of shared memory that nobody waits for never happen.
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "Shadow.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

constexpr unsigned bulkUnit = 16;
/// Copies under way; more of them happen at once.
constexpr size_t mostCopies = 4096;

void addresses(Warp &warp, const MemoryInfo &info, Slot base, int64_t offset,
               uint64_t *at) {
  Op op;
  op.offset = offset;
  lanesAddresses(warp, op, info, base, at);
}

/// Sources: target, source, bytes, mbarrier.
void issue(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const BulkInfo *>(op.info);
  BlockAsync &async = asyncOf(warp);
  uint64_t to[warpLanes], from[warpLanes], barriers[warpLanes];
  addresses(warp, info.to, op.operand(0), op.offset, to);
  addresses(warp, info.from, op.operand(1), int64_t(op.immediate), from);
  if (info.hasBarrier)
    addresses(warp, info.barrier, op.operand(3), info.barrierOffset, barriers);
  LaneMask tainted = 0;
  if (warp.tracksTaint)
    tainted = warp.taint(op.operand(0)) | warp.taint(op.operand(1)) |
              warp.taint(op.operand(2));
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    BulkCopy copy;
    copy.warp = &warp;
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
    if (info.hasBarrier) {
      if (!findMbarrier(warp, op, lane, info.barrier, barriers[lane],
                        copy.barrier))
        continue;
    } else {
      copy.group = async.openGroup[warp.threadIndex(lane)];
    }
    Checked target, source;
    if (!checkLane(warp, op, lane, info.to, to[lane], copy.bytes, bulkUnit,
                   /*isWrite=*/true, target) ||
        !checkLane(warp, op, lane, info.from, from[lane], copy.bytes, bulkUnit,
                   /*isWrite=*/false, source))
      continue;
    touchBytes(warp, op, lane, source, copy.bytes, info.from, false);
    touchBytes(warp, op, lane, target, copy.bytes, info.to, true);
    if (target.place.space == Space::Shared) {
      for (uint32_t i = 0; i < copy.bytes; ++i)
        if (target.state[i] & InFlight) {
          reportInFlight(warp, op, lane, target, copy.bytes, true);
          break;
        }
      for (uint32_t i = 0; i < copy.bytes; ++i)
        target.state[i] |= InFlight;
      warp.counters.globalLoadBytes += copy.bytes;
      warp.counters.sharedStoreBytes += copy.bytes;
    } else {
      warp.counters.sharedLoadBytes += copy.bytes;
      warp.counters.globalStoreBytes += copy.bytes;
    }
    for (const Checked *end : {&source, &target})
      if (end->place.space == Space::Global && copy.bytes) {
        ++warp.counters.globalRequests;
        warp.counters.globalSectors += (copy.bytes + 31) / 32;
        markSectors(warp.counters, *end->place.region, end->place.offset,
                    copy.bytes);
      }
    async.copies.push_back(copy);
    if (async.copies.size() <= mostCopies)
      continue;
    BulkCopy oldest = async.copies.front();
    if (oldest.info->hasBarrier) {
      settle(warp, oldest.barrier);
      continue;
    }
    async.copies.erase(async.copies.begin());
    performCopy(oldest);
  }
}

void commit(Warp &warp, const Op &, LaneMask active) {
  BlockAsync &async = asyncOf(warp);
  for (LaneMask rest = active; rest; rest &= rest - 1)
    ++async.openGroup[warp.threadIndex(__builtin_ctz(rest))];
}

void waitGroup(Warp &warp, const Op &op, LaneMask active) {
  BlockAsync &async = asyncOf(warp);
  auto isDue = [&](const BulkCopy &copy) {
    return !copy.info->hasBarrier && copy.warp == &warp &&
           (active >> copy.lane & 1) &&
           copy.group + op.immediate <
               async.openGroup[warp.threadIndex(copy.lane)];
  };
  for (const BulkCopy &copy : async.copies)
    if (isDue(copy))
      performCopy(copy);
  llvm::erase_if(async.copies, isDue);
}

void nothing(Warp &, const Op &, LaneMask) {}

Decoded decodeIssue(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<BulkInfo>();
  llvm::SmallVector<Space, 2> spaces;
  bool isGrouped = false, hasPolicy = false;
  for (StringRef modifier : instruction.modifiers) {
    if (modifier == "async" || modifier == "bulk")
      continue;
    if (modifier == "mbarrier::complete_tx::bytes")
      info->hasBarrier = true;
    else if (modifier == "bulk_group")
      isGrouped = true;
    else if (modifier == "L2::cache_hint")
      hasPolicy = true;
    else if (auto space = parseSpace(modifier))
      spaces.push_back(*space);
    else
      return decoder.failModifier(modifier);
  }
  auto isShared = [](Space space) {
    return space == Space::Shared || space == Space::SharedCluster;
  };
  if (spaces.size() != 2 || info->hasBarrier == isGrouped ||
      isGrouped != (spaces[0] == Space::Global) ||
      (isGrouped ? spaces[1] != Space::Shared
                 : !isShared(spaces[0]) ||
                       (spaces[1] != Space::Global && !isShared(spaces[1]))))
    return decoder.fail("a copy between these spaces is not supported");
  if (!decoder.expectOperands(3 + info->hasBarrier + hasPolicy))
    return Decoded::Failed;
  info->to.space = spaces[0];
  info->from.space = spaces[1];
  const auto &operands = instruction.operands;
  Decoder::AddressParts to = decoder.address(operands[0]);
  Decoder::AddressParts from = decoder.address(operands[1]);
  Slot bytes = decoder.sourceSlot(operands[2], Type::U32);
  if (to.base == noSlot || from.base == noSlot || bytes == noSlot)
    return Decoded::Failed;
  for (auto [end, parts] : {std::pair(&info->to, &to), {&info->from, &from}}) {
    end->isWide = parts->isWide;
    end->type = Type::B8;
    end->elementBytes = 1;
  }
  info->to.isStore = true;
  llvm::SmallVector<Slot, 4> sources{to.base, from.base, bytes};
  if (info->hasBarrier) {
    info->barrier.space = spaces[0];
    info->barrier.isStrong = true;
    info->barrier.semantics = Semantics::Volatile;
    Slot base = noSlot;
    if (!readBarrierAddress(decoder, operands[3], info->barrier, base,
                            info->barrierOffset))
      return Decoded::Failed;
    sources.push_back(base);
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

} // namespace

void performCopy(const BulkCopy &copy) {
  Warp &warp = *copy.warp;
  Checked to, from;
  if (!checkLane(warp, *copy.op, copy.lane, copy.info->to, copy.target,
                 copy.bytes, bulkUnit, /*isWrite=*/true, to) ||
      !checkLane(warp, *copy.op, copy.lane, copy.info->from, copy.source,
                 copy.bytes, bulkUnit, /*isWrite=*/false, from))
    return;
  for (uint32_t i = 0; i < copy.bytes; ++i)
    if (from.state[i] & InFlight) {
      reportInFlight(warp, *copy.op, copy.lane, from, copy.bytes, false);
      break;
    }
  touchBytes(warp, *copy.op, copy.lane, from, copy.bytes, copy.info->from,
             false);
  touchBytes(warp, *copy.op, copy.lane, to, copy.bytes, copy.info->to, true);
  if (warp.shadow)
    copyShadow(warp, copy.lane, to.place, from.place, copy.bytes);
  std::memmove(to.data, from.data, copy.bytes);
  uint8_t byAddress = copy.isTainted ? Tainted : 0;
  for (uint32_t i = 0; i < copy.bytes; ++i)
    to.state[i] = (from.state[i] & (Written | Tainted)) | byAddress;
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
    op.run = waitGroup;
  }
  return Decoded::Done;
}

} // namespace fsr::ptx
