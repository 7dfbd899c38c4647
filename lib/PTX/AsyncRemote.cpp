// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `st.async` and `red.async`: values that go to shared memory of a block of the
// cluster, and tell an mbarrier there of so many bytes. Each is a small copy
// whose source is registers, and happens when somebody waits for it.
//
//===----------------------------------------------------------------------===//

#include "Async.h"

#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;

namespace fsr::ptx {

namespace {

/// Sources: target, mbarrier, then the elements.
void send(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const BulkInfo *>(op.info);
  uint64_t to[warpLanes], barriers[warpLanes];
  lanesAddresses(warp, info.to, op.operand(0), op.offset, to);
  lanesAddresses(warp, info.barrier, op.operand(1), info.barrierOffset,
                 barriers);
  unsigned size = info.to.elementBytes;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    BulkCopy copy;
    copy.warp = &warp;
    copy.program = warp.frame->program;
    copy.op = &op;
    copy.info = &info;
    copy.lane = lane;
    copy.bytes = info.to.bytes();
    copy.target = to[lane];
    for (unsigned i = 0; i < info.to.vector; ++i) {
      Slot slot = op.operand(2 + i);
      uint64_t value = size == 8 ? warp.lanes<uint64_t>(slot)[lane]
                                 : warp.lanes<uint32_t>(slot)[lane];
      std::memcpy(copy.value.data() + i * size, &value, size);
      if (warp.tracksTaint)
        copy.isTainted |= warp.taint(slot) >> lane & 1;
    }
    if (warp.tracksTaint)
      copy.isTainted |= warp.taint(op.operand(0)) >> lane & 1;
    MbarrierSpot spot;
    if (!findMbarrier(warp, op, lane, info.barrier, barriers[lane], spot))
      continue;
    copy.barrier = spot.offset;
    beginCopy(copy, spot);
  }
}

bool isStorable(const MemoryInfo &info) {
  switch (info.type) {
  case Type::B32:
  case Type::U32:
  case Type::S32:
  case Type::F32:
    return true;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
    return info.vector <= 2;
  default:
    return false;
  }
}

bool isReducible(const AtomicInfo &info) {
  Type type = info.type;
  if (info.vector != 1)
    return false;
  switch (info.update) {
  case Update::Inc:
  case Update::Dec:
    return type == Type::U32;
  case Update::Min:
  case Update::Max:
    return type == Type::U32 || type == Type::S32;
  case Update::Add:
    return type == Type::U32 || type == Type::S32 || type == Type::U64;
  case Update::And:
  case Update::Or:
  case Update::Xor:
    return type == Type::B32;
  default:
    return false;
  }
}

} // namespace

Decoded decodeRemote(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<BulkInfo>();
  info->hasBarrier = info->isValue = true;
  info->isReduction = instruction.opcode == "red";
  info->name = info->isReduction ? "update" : "store";
  bool hasEnd = false, isRelaxed = false, isCluster = false, hasUpdate = false;
  for (StringRef modifier : instruction.modifiers) {
    unsigned vector = llvm::StringSwitch<unsigned>(modifier)
                          .Case("v2", 2)
                          .Case("v4", 4)
                          .Default(0);
    // The space may be left out: there is no other.
    if (modifier == "async" || modifier == "shared::cluster" ||
        (modifier == "weak" && !info->isReduction))
      continue;
    if (modifier == "mbarrier::complete_tx::bytes")
      hasEnd = true;
    else if (modifier == "relaxed" && info->isReduction)
      isRelaxed = true;
    else if (modifier == "cluster" && info->isReduction)
      isCluster = true;
    else if (vector && !info->isReduction)
      info->to.vector = uint8_t(vector);
    else if (auto update = parseUpdate(modifier);
             update && info->isReduction && !hasUpdate) {
      info->to.update = *update;
      hasUpdate = true;
    } else if (auto type = parseType(modifier);
               type && info->to.type == Type::None)
      info->to.type = *type;
    else
      return decoder.failModifier(modifier);
  }
  if (!hasEnd || (info->isReduction ? !isRelaxed || !isCluster || !hasUpdate ||
                                          !isReducible(info->to)
                                    : !isStorable(info->to)))
    return decoder.fail("no such form");
  if (!decoder.expectOperands(3))
    return Decoded::Failed;
  info->to.space = info->barrier.space = Space::SharedCluster;
  info->to.elementBytes = uint8_t(bitWidth(info->to.type) / 8);
  info->to.isStore = true;
  info->to.isStrong = info->isReduction;
  info->to.semantics =
      info->isReduction ? Semantics::Volatile : Semantics::Weak;
  info->to.scope = Scope::Cluster;
  info->barrier.isStrong = true;
  info->barrier.semantics = Semantics::Volatile;
  info->barrier.scope = Scope::Cluster;
  Decoder::AddressParts to = decoder.address(instruction.operands[0]);
  Slot barrier = noSlot;
  if (to.base == noSlot ||
      !readBarrierAddress(decoder, instruction.operands[2], info->barrier,
                          barrier, info->barrierOffset))
    return Decoded::Failed;
  info->to.isWide = to.isWide;
  llvm::SmallVector<Slot, 6> sources{to.base, barrier};
  const Operand &values = instruction.operands[1];
  llvm::ArrayRef<Operand> elements =
      values.kind == Operand::Kind::Vector
          ? llvm::ArrayRef<Operand>(values.elements)
          : llvm::ArrayRef<Operand>(values);
  if (elements.size() != info->to.vector)
    return decoder.fail("as many elements as the vector has wanted");
  for (const Operand &element : elements) {
    sources.push_back(decoder.sourceSlot(element, info->to.type));
    if (sources.back() == noSlot)
      return Decoded::Failed;
  }
  decoder.setSlots(op, {}, sources);
  op.offset = to.offset;
  op.info = info;
  op.steers = 3;
  op.flow = Flow::Handler;
  op.opClass = info->isReduction ? OpClass::Atomic : OpClass::Memory;
  op.run = send;
  return Decoded::Done;
}

} // namespace fsr::ptx
