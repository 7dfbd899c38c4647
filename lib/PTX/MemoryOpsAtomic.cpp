// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// atom and red. Each element is updated by a compare-and-swap of the host, so
// that blocks on other host threads see whole updates; 128-bit ones take a
// lock of their address. The old value depends on the schedule: it is tainted.
// What memory holds in the end does not for the integer operations, whose order
// makes no difference, but for exch and cas, and for the rounding of sums.
//
//===----------------------------------------------------------------------===//

#include "Atomic.h"

#include "llvm/ADT/StringSwitch.h"

#include <mutex>

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

/// Two halves of a 128-bit value.
struct Pair {
  uint64_t low = 0, high = 0;
  bool operator==(const Pair &other) const {
    return low == other.low && high == other.high;
  }
};

Pair swapPair(const AtomicInfo &info, uint8_t *data, Pair b, Pair c,
              uint64_t &changes) {
  static std::mutex locks[64];
  std::lock_guard<std::mutex> guard(
      locks[reinterpret_cast<uintptr_t>(data) / 16 % 64]);
  Pair old;
  std::memcpy(&old, data, 16);
  bool isExchange = info.update == Update::Exchange;
  if (!isExchange && !(old == b))
    return old;
  Pair next = isExchange ? b : c;
  std::memcpy(data, &next, 16);
  changes += !(next == old);
  return old;
}

void atomic(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const AtomicInfo *>(op.info);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info, op.operand(0), at);
  countAccess(warp, info, active, at, /*isWrite=*/true);
  uint64_t places[warpLanes];
  unsigned count = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1)
    places[count++] = at[__builtin_ctz(rest)];
  warp.counters.atomicSerial += count - countDistinct(places, count);
  unsigned size = info.elementBytes, bytes = info.bytes();
  bool acquires = info.semantics == Semantics::Acquire ||
                  info.semantics == Semantics::AcquireRelease;
  bool releases = info.semantics == Semantics::Release ||
                  info.semantics == Semantics::AcquireRelease;
  LaneMask byAddress =
      warp.tracksTaint ? warp.taint(op.operand(0)) : LaneMask(0);
  Turn inTurn;
  for (LaneMask rest = updateLanes(warp, op, info, active, at); rest;
       rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    Checked checked;
    bool isFine = checkLane(warp, op, lane, info, at[lane], bytes, bytes,
                            /*isWrite=*/true, checked);
    if (isFine && checked.place.space == Space::Local) {
      warp.fatal(op, lane, FindingKind::OutOfBounds,
                 genericAddress(checked.place),
                 "an atomic on local memory; only global and shared memory "
                 "have them");
      isFine = false;
    }
    if (!isFine) {
      for (Slot result : op.results())
        std::memset(&warp.lanes<uint8_t>(result)[lane * (size == 8 ? 8 : 4)], 0,
                    size == 8 ? 8 : 4);
      continue;
    }
    Region &region = *checked.place.region;
    uint64_t location = genericAddress(checked.place);
    uint8_t any = 0, all = 0xff;
    for (unsigned i = 0; i < bytes; ++i) {
      any |= checked.state[i];
      all &= checked.state[i];
    }
    if (any & InFlight)
      reportInFlight(warp, op, lane, checked, bytes, true);
    else if (!(all & Written) &&
             (info.update != Update::Exchange || info.hasResult))
      reportUnwritten(warp, op, lane, checked, bytes);
    bool orders = warp.checksRaces && region.writers;
    bool isGlobal = checked.place.space == Space::Global;
    // Whoever updates last is also noted last: else the last block of a grid,
    // which alone goes on, would find another's update after its own.
    if (orders && isGlobal)
      inTurn.takeFor(location);
    if (orders) {
      if (info.hasResult)
        noteFlagRead(Touch{warp, op, lane, region, checked.place.offset / 4,
                           cell::bytesMask, /*isStrong=*/true, info.scope});
      touchBytes(warp, op, lane, checked, bytes, info, /*isWrite=*/true);
      // Before the update: whoever sees it finds what it releases.
      publishAt(warp, LaneMask(1) << lane, location, info.scope, releases,
                /*isUpdate=*/true);
    }
    bool isTainted = byAddress >> lane & 1;
    bool isSchedule = dependsOnOrder(info);
    for (unsigned v = 0; v < info.vector; ++v) {
      Slot source = op.operand(1 + v);
      bool isCompare = info.update == Update::CompareExchange;
      Slot third = isCompare ? op.operand(2) : source;
      uint8_t *data = checked.data + v * size;
      if (size == 16) {
        Pair b{warp.lanes<uint64_t>(source)[lane],
               warp.lanes<uint64_t>(source + 1)[lane]};
        Pair c{warp.lanes<uint64_t>(third)[lane],
               warp.lanes<uint64_t>(third + 1)[lane]};
        Pair old = swapPair(info, data, b, c, warp.changes);
        if (info.hasResult) {
          warp.lanes<uint64_t>(op.result(0))[lane] = old.low;
          warp.lanes<uint64_t>(op.result(0) + 1)[lane] = old.high;
        }
      } else {
        uint64_t b = valueOf(warp, source, lane, size);
        uint64_t c = valueOf(warp, third, lane, size);
        uint64_t &changes = warp.changes;
        uint64_t old =
            size == 2 ? swapLoop<uint16_t>(info, data, b, c, isGlobal, changes)
            : size == 4
                ? swapLoop<uint32_t>(info, data, b, c, isGlobal, changes)
                : swapLoop<uint64_t>(info, data, b, c, isGlobal, changes);
        if (info.hasResult) {
          if (size == 8)
            warp.lanes<uint64_t>(op.result(v))[lane] = old;
          else
            warp.lanes<uint32_t>(op.result(v))[lane] = uint32_t(old);
        }
      }
      bool taints = isTainted || isSchedule;
      if (warp.tracksTaint)
        taints |= (warp.taint(source) | warp.taint(third)) >> lane & 1;
      for (unsigned i = 0; i < size; ++i)
        checked.state[v * size + i] |= Written | (taints ? Tainted : 0);
    }
    if (orders && info.hasResult)
      learnAt(warp, LaneMask(1) << lane, location, info.scope, acquires,
              /*isUpdate=*/true);
    inTurn.leave();
  }
  if (warp.tracksTaint)
    for (Slot result : op.results()) {
      warp.setTaint(result, active, active);
      if (size == 16)
        warp.setTaint(result + 1, active, active);
    }
}

bool isSupported(const AtomicInfo &info, bool isReduction) {
  Type type = info.type;
  bool isHalf = type == Type::F16 || type == Type::BF16 ||
                type == Type::F16x2 || type == Type::BF16x2;
  bool isInteger = type == Type::U32 || type == Type::S32 ||
                   type == Type::U64 || type == Type::S64;
  if (info.vector > 1) {
    bool isGlobal = info.space == Space::Global || info.space == Space::Generic;
    if (!isGlobal)
      return false;
    if (type == Type::F32)
      return info.update == Update::Add && info.vector <= 4;
    bool isWithin = info.bytes() <= 16;
    return isHalf && isWithin &&
           (info.update == Update::Add || info.update == Update::Min ||
            info.update == Update::Max);
  }
  switch (info.update) {
  case Update::Add:
    return isInteger || isHalf || type == Type::F32 || type == Type::F64;
  case Update::Min:
  case Update::Max:
    return isInteger;
  case Update::And:
  case Update::Or:
  case Update::Xor:
    return type == Type::B32 || type == Type::B64;
  case Update::Inc:
  case Update::Dec:
    return type == Type::U32;
  case Update::Exchange:
    return !isReduction &&
           (type == Type::B32 || type == Type::B64 || type == Type::B128);
  case Update::CompareExchange:
    return !isReduction && (type == Type::B16 || type == Type::B32 ||
                            type == Type::B64 || type == Type::B128);
  }
  return false;
}

} // namespace

uint64_t updateAt(const AtomicInfo &info, uint8_t *data, uint64_t value,
                  bool isGlobal, uint64_t &changes) {
  switch (info.elementBytes) {
  case 2:
    return swapLoop<uint16_t>(info, data, value, 0, isGlobal, changes);
  case 4:
    return swapLoop<uint32_t>(info, data, value, 0, isGlobal, changes);
  default:
    return swapLoop<uint64_t>(info, data, value, 0, isGlobal, changes);
  }
}

std::optional<Update> parseUpdate(StringRef modifier) {
  return llvm::StringSwitch<std::optional<Update>>(modifier)
      .Case("add", Update::Add)
      .Case("min", Update::Min)
      .Case("max", Update::Max)
      .Case("and", Update::And)
      .Case("or", Update::Or)
      .Case("xor", Update::Xor)
      .Case("inc", Update::Inc)
      .Case("dec", Update::Dec)
      .Case("exch", Update::Exchange)
      .Case("cas", Update::CompareExchange)
      .Default(std::nullopt);
}

Decoded decodeAtomic(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  bool isReduction = instruction.opcode == "red";
  auto *info = decoder.makeInfo<AtomicInfo>();
  OrderModifiers order;
  std::optional<Update> update;
  bool isNoFlush = false;
  for (StringRef modifier : instruction.modifiers) {
    // `red.async` and `.bulk` are another family's.
    if (modifier == "async" || modifier == "bulk")
      return Decoded::NotMine;
    if (order.take(modifier) || modifier == "L2::cache_hint")
      continue;
    if (auto space = parseSpace(modifier)) {
      info->space = *space;
      continue;
    }
    if (modifier == "noftz") {
      isNoFlush = true;
      continue;
    }
    std::optional<Update> kind = parseUpdate(modifier);
    if (kind && !update) {
      update = kind;
      continue;
    }
    auto vector = llvm::StringSwitch<unsigned>(modifier)
                      .Case("v2", 2)
                      .Case("v4", 4)
                      .Case("v8", 8)
                      .Default(0);
    if (vector) {
      info->vector = uint8_t(vector);
      continue;
    }
    std::optional<Type> type = parseType(modifier);
    if (!type || info->type != Type::None)
      return decoder.failModifier(modifier);
    info->type = *type;
  }
  if (!update || info->type == Type::None || info->type == Type::Pred)
    return decoder.fail("an operation and a type wanted");
  info->update = *update;
  info->elementBytes = uint8_t(bitWidth(info->type) / 8);
  bool isHalf = info->type == Type::F16 || info->type == Type::BF16 ||
                info->type == Type::F16x2 || info->type == Type::BF16x2;
  bool isSpace = info->space == Space::Generic ||
                 info->space == Space::Global || info->space == Space::Shared ||
                 info->space == Space::SharedCluster;
  if (!isSupported(*info, isReduction) || isHalf != isNoFlush || !isSpace ||
      order.isWeak || order.isVolatile || order.isMmio)
    return decoder.fail("no such form of an atomic");
  info->semantics = order.semantics.value_or(Semantics::Volatile);
  if (isReduction && info->semantics != Semantics::Volatile &&
      info->semantics != Semantics::Release)
    return decoder.fail("an order that a reduction does not have");
  info->scope = order.scope.value_or(Scope::Gpu);
  info->isStrong = true;
  info->isStore = true;
  info->hasResult = !isReduction;

  bool isCompare = *update == Update::CompareExchange;
  size_t count = (isReduction ? 2 : 3) + size_t(isCompare) +
                 size_t(instruction.has("L2::cache_hint"));
  if (!decoder.expectOperands(count))
    return Decoded::Failed;
  size_t next = 0;
  auto elements = [&](const Operand &operand) {
    return operand.kind == Operand::Kind::Vector
               ? llvm::ArrayRef<Operand>(operand.elements)
               : llvm::ArrayRef<Operand>(operand);
  };
  // Untyped registers may hold the elements: only the width counts.
  Type held = info->type;
  llvm::SmallVector<Slot, 8> results, sources(1);
  if (!isReduction) {
    const Operand &result = instruction.operands[next++];
    // `atom` to a sink does not ask for the old value.
    if (result.kind == Operand::Kind::Sink) {
      info->hasResult = false;
    } else {
      for (const Operand &element : elements(result)) {
        Slot slot = decoder.resultSlot(element, held);
        if (slot == noSlot)
          return Decoded::Failed;
        results.push_back(slot);
      }
      if (results.size() != info->vector)
        return decoder.fail("a result of as many elements wanted");
    }
  }
  Decoder::AddressParts parts = decoder.address(instruction.operands[next++]);
  if (parts.base == noSlot)
    return Decoded::Failed;
  sources[0] = parts.base;
  op.offset = parts.offset;
  info->isWide = parts.isWide;
  for (size_t i = 0; i < 1 + size_t(isCompare); ++i) {
    llvm::ArrayRef<Operand> given = elements(instruction.operands[next++]);
    if (given.size() != info->vector)
      return decoder.fail("a source of as many elements wanted");
    for (const Operand &element : given) {
      Slot slot = decoder.sourceSlot(element, held);
      if (slot == noSlot)
        return Decoded::Failed;
      sources.push_back(slot);
    }
  }
  decoder.setSlots(op, results, sources);
  op.info = info;
  op.opClass = OpClass::Atomic;
  op.flow = Flow::Handler;
  op.steers = 1;
  op.run = atomic;
  return Decoded::Done;
}

} // namespace fsr::ptx
