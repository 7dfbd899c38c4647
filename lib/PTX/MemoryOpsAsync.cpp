// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `cp.async` without bulk: issue, groups and waits. Both ends are checked where
// the copy is issued, as a GPU would fault there; the source is read, and both
// ends noted once more, where it completes.
//
//===----------------------------------------------------------------------===//

#include "AsyncCopy.h"
#include "MemoryOps.h"
#include "Shadow.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

struct AsyncInfo {
  MemoryInfo to, from;
  unsigned bytes = 0;
  bool hasSourceBytes = false; ///< Source 2: a count, or `ignoresSource`'s.
  bool hasIgnore = false;
};

/// The clock owns it: a warp object may live on for another block.
AsyncQueue &queueOf(Warp &warp) {
  WarpClock &clock = clockOf(warp);
  if (!clock.async)
    clock.async = std::make_shared<AsyncQueue>();
  warp.async = static_cast<AsyncQueue *>(clock.async.get());
  return *warp.async;
}

void complete(Warp &warp, AsyncQueue::Copy &copy, unsigned lane) {
  Checked to, from;
  unsigned bytes = copy.bytes, given = copy.sourceBytes[lane];
  if (!checkLane(warp, *copy.op, lane, *copy.to, copy.target[lane], bytes,
                 bytes, /*isWrite=*/true, to))
    return;
  uint8_t value[16] = {}, state[16];
  uint8_t byAddress = copy.tainted >> lane & 1 ? Tainted : 0;
  std::memset(state, Written | byAddress, sizeof(state));
  if (given) {
    if (!checkLane(warp, *copy.op, lane, *copy.from, copy.source[lane], given,
                   1, /*isWrite=*/false, from))
      return;
    for (unsigned i = 0; i < given; ++i)
      if (from.state[i] & InFlight) {
        reportInFlight(warp, *copy.op, lane, from, given, false);
        break;
      }
    checkSource(warp, *copy.op, lane, from, given, copy.tick);
    touchBytes(warp, *copy.op, lane, from, given, *copy.from,
               /*isWrite=*/false);
    std::memcpy(value, from.data, given);
    for (unsigned i = 0; i < given; ++i)
      state[i] = (from.state[i] & (Written | Tainted)) | byAddress;
  }
  touchBytes(warp, *copy.op, lane, to, bytes, *copy.to, /*isWrite=*/true);
  if (warp.shadow)
    copyShadow(warp, lane, to.place, from.place, bytes);
  std::memcpy(to.data, value, bytes);
  std::memcpy(to.state, state, bytes);
}

template <typename IsDue>
void completeWhere(Warp &warp, LaneMask lanes, IsDue isDue) {
  if (!clockOf(warp).async)
    return;
  AsyncQueue &queue = queueOf(warp);
  for (AsyncQueue::Copy &copy : queue.copies)
    for (LaneMask rest = copy.lanes & lanes; rest; rest &= rest - 1) {
      unsigned lane = __builtin_ctz(rest);
      if (!isDue(copy, lane))
        continue;
      copy.lanes &= ~(LaneMask(1) << lane);
      complete(warp, copy, lane);
    }
  llvm::erase_if(queue.copies,
                 [](const AsyncQueue::Copy &copy) { return !copy.lanes; });
}

void issue(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const AsyncInfo *>(op.info);
  AsyncQueue &queue = queueOf(warp);
  AsyncQueue::Copy copy;
  copy.op = &op;
  copy.to = &info.to;
  copy.from = &info.from;
  copy.bytes = info.bytes;
  lanesAddresses(warp, info.to, op.operand(0), op.offset, copy.target.data());
  lanesAddresses(warp, info.from, op.operand(1), int64_t(op.immediate),
                 copy.source.data());
  copy.group = queue.openGroup;
  if (warp.tracksTaint)
    copy.tainted = warp.taint(op.operand(0)) | warp.taint(op.operand(1));
  LaneMask reading = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    unsigned given = info.bytes;
    if (info.hasSourceBytes) {
      uint32_t wanted = warp.lanes<uint32_t>(op.operand(2))[lane];
      if (wanted > info.bytes) {
        warp.fatal(op, lane, FindingKind::OutOfBounds, copy.source[lane],
                   "copies " + Twine(info.bytes) + " bytes from a source of " +
                       Twine(wanted));
        continue;
      }
      given = wanted;
    }
    if (info.hasIgnore && (warp.predicate(op.operand(2)) >> lane & 1))
      given = 0;
    copy.sourceBytes[lane] = uint8_t(given);
    Checked to, from;
    if (!checkLane(warp, op, lane, info.to, copy.target[lane], info.bytes,
                   info.bytes, /*isWrite=*/true, to))
      continue;
    if (given) {
      if (!checkLane(warp, op, lane, info.from, copy.source[lane], given,
                     info.bytes, /*isWrite=*/false, from))
        continue;
      reading |= LaneMask(1) << lane;
      touchBytes(warp, op, lane, from, given, info.from, /*isWrite=*/false);
    }
    for (unsigned i = 0; i < info.bytes; ++i)
      if (to.state[i] & InFlight) {
        reportInFlight(warp, op, lane, to, info.bytes, true);
        break;
      }
    touchBytes(warp, op, lane, to, info.bytes, info.to, /*isWrite=*/true);
    for (unsigned i = 0; i < info.bytes; ++i)
      to.state[i] |= InFlight;
    copy.lanes |= LaneMask(1) << lane;
  }
  if (reading)
    countAccess(warp, info.from, reading, copy.source.data(), false);
  countAccess(warp, info.to, active, copy.target.data(), true);
  if (!copy.lanes)
    return;
  // What is written from now on is told from what was there before.
  BlockClock &clock = *clockOf(warp).block;
  copy.tick = clock.tick;
  clock.advance();
  queue.copies.push_back(copy);
}

void commit(Warp &warp, const Op &, LaneMask active) {
  commitCopies(warp, active);
}
void waitGroup(Warp &warp, const Op &op, LaneMask active) {
  waitCopies(warp, active, uint32_t(op.immediate));
}
void waitAll(Warp &warp, const Op &, LaneMask active) {
  finishCopies(warp, active);
}

Decoded decodeIssue(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  bool isCg = false, isCa = false, hasPolicy = false;
  auto *info = decoder.makeInfo<AsyncInfo>();
  for (StringRef modifier : instruction.modifiers) {
    if (modifier == "async")
      continue;
    if (modifier == "cg")
      isCg = true;
    else if (modifier == "ca")
      isCa = true;
    else if (modifier == "L2::cache_hint")
      hasPolicy = true;
    else if (modifier == "shared" || modifier == "shared::cta")
      info->to.space = Space::Shared;
    else if (modifier == "global")
      info->from.space = Space::Global;
    else if (modifier != "L2::64B" && modifier != "L2::128B" &&
             modifier != "L2::256B")
      return decoder.failModifier(modifier);
  }
  if (isCg == isCa || info->to.space != Space::Shared ||
      info->from.space != Space::Global)
    return decoder.fail("`.ca` or `.cg`, from global to shared memory wanted");
  size_t count = instruction.operands.size() - size_t(hasPolicy);
  if (instruction.operands.size() < 3 + size_t(hasPolicy) || count > 4)
    return decoder.fail("three or four operands wanted");
  const Operand &size = instruction.operands[2];
  bool isFit =
      size.kind == Operand::Kind::Integer &&
      (size.bits == 16 || (isCa && (size.bits == 4 || size.bits == 8)));
  if (!isFit)
    return decoder.fail("a copy of 4, 8 or 16 bytes wanted, 16 with `.cg`");
  info->bytes = unsigned(size.bits);
  for (MemoryInfo *end : {&info->to, &info->from}) {
    end->elementBytes = uint8_t(info->bytes);
    end->type = Type::B8;
  }
  Decoder::AddressParts to = decoder.address(instruction.operands[0]);
  Decoder::AddressParts from = decoder.address(instruction.operands[1]);
  if (to.base == noSlot || from.base == noSlot)
    return Decoded::Failed;
  info->to.isWide = to.isWide;
  info->from.isWide = from.isWide;
  info->to.isStore = true;
  llvm::SmallVector<Slot, 3> sources{to.base, from.base};
  if (count == 4) {
    const Operand &last = instruction.operands[3];
    Type type = last.isRegister() ? decoder.registerType(last) : Type::U32;
    info->hasIgnore = type == Type::Pred;
    info->hasSourceBytes = !info->hasIgnore;
    if (info->hasSourceBytes && bitWidth(type) != 32)
      return decoder.fail("a source size of 32 bits wanted");
    Slot slot = decoder.sourceSlot(last, type);
    if (slot == noSlot)
      return Decoded::Failed;
    sources.push_back(slot);
  }
  decoder.setSlots(op, {}, sources);
  op.offset = to.offset;
  op.immediate = uint64_t(from.offset);
  op.info = info;
  // What is copied from where, and how much.
  op.steers = uint8_t((1u << sources.size()) - 1);
  op.flow = Flow::Handler;
  op.opClass = OpClass::Memory;
  op.run = issue;
  return Decoded::Done;
}

} // namespace

void commitCopies(Warp &warp, LaneMask lanes) {
  AsyncQueue &queue = queueOf(warp);
  for (LaneMask rest = lanes; rest; rest &= rest - 1)
    ++queue.openGroup[__builtin_ctz(rest)];
}

void waitCopies(Warp &warp, LaneMask lanes, uint32_t keep) {
  if (!clockOf(warp).async)
    return;
  const AsyncQueue &queue = queueOf(warp);
  completeWhere(warp, lanes, [&](const AsyncQueue::Copy &copy, unsigned lane) {
    return uint64_t(copy.group[lane]) + keep < queue.openGroup[lane];
  });
}

void finishCopies(Warp &warp, LaneMask lanes) {
  completeWhere(warp, lanes,
                [](const AsyncQueue::Copy &, unsigned) { return true; });
}

Decoded decodeAsyncCopy(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  if (!instruction.has("async") || instruction.has("bulk") ||
      instruction.has("mbarrier"))
    return Decoded::NotMine;
  bool isCommit = instruction.has("commit_group");
  bool isWait = instruction.has("wait_group");
  bool isWaitAll = instruction.has("wait_all");
  if (!isCommit && !isWait && !isWaitAll)
    return decodeIssue(decoder, op);
  if (instruction.modifiers.size() != 2)
    return decoder.fail("`cp.async` with one more modifier wanted");
  if (!decoder.expectOperands(isWait ? 1 : 0))
    return Decoded::Failed;
  op.opClass = OpClass::Memory;
  op.flow = Flow::Handler;
  op.run = isCommit ? commit : waitAll;
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
