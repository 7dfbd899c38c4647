// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an update makes of the old value, to the bit, and the quick way through
// the lanes of an atomic. It reports nothing: where something is not plainly
// right, the lanes from there on are left to MemoryOpsAtomic.cpp.
//
//===----------------------------------------------------------------------===//

#include "Atomic.h"
#include "Float.h"

#include "llvm/ADT/bit.h"

#include <array>
#include <cmath>
#include <thread>

namespace fsr::ptx {

namespace {

// Half precision. -------------------------------------------------------------
// Sums go through float: its 24 bits are enough for one rounding of a sum of
// two f16 or bf16 to be the right one.

float fromHalf(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31)
    return llvm::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent)
    return llvm::bit_cast<float>(sign | (exponent + 112) << 23 |
                                 fraction << 13);
  float value = std::ldexp(float(fraction), -24);
  return sign ? -value : value;
}

uint16_t toHalf(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return 0x7fff;
  if (magnitude >= 0x477ff000) // Rounds past the largest.
    return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Subnormal: units of 2^-24, ties to even as nearbyint does.
    float units =
        std::nearbyint(std::ldexp(llvm::bit_cast<float>(magnitude), 24));
    return sign | uint16_t(units);
  }
  uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return sign | uint16_t((rounded - (112u << 23)) >> 13);
}

float fromBfloat(uint16_t bits) {
  return llvm::bit_cast<float>(uint32_t(bits) << 16);
}

uint16_t toBfloat(float value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// What an update makes of the old value. --------------------------------------

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value)
                                                : value;
}

uint32_t addSingle(uint32_t a, uint32_t b, bool flushes) {
  float x = llvm::bit_cast<float>(a), y = llvm::bit_cast<float>(b);
  if (flushes) {
    x = flushed(x);
    y = flushed(y);
  }
  float sum = x + y;
  if (std::isnan(sum))
    return 0x7fffffff;
  return llvm::bit_cast<uint32_t>(flushes ? flushed(sum) : sum);
}

/// Shared memory has no sums of f64: a loop adds as `add` does, which hands on
/// a NaN made quiet, the old value's first. Global memory hands it on as it is,
/// that of the operand first.
uint64_t addDouble(uint64_t old, uint64_t b, bool isGlobal) {
  double sum = llvm::bit_cast<double>(old) + llvm::bit_cast<double>(b);
  if (!std::isnan(sum))
    return llvm::bit_cast<uint64_t>(sum);
  if (!isGlobal)
    return propagatedNan64(old, b);
  return isNan64(b) ? b : isNan64(old) ? old : 0x7fffffffffffffff;
}

uint16_t updateHalf(Update update, bool isBfloat, uint16_t a, uint16_t b) {
  float x = isBfloat ? fromBfloat(a) : fromHalf(a);
  float y = isBfloat ? fromBfloat(b) : fromHalf(b);
  if (update == Update::Add)
    return isBfloat ? toBfloat(x + y) : toHalf(x + y);
  // A number wins over a NaN; -0 is below +0.
  if (std::isnan(x))
    return std::isnan(y) ? 0x7fff : b;
  if (std::isnan(y))
    return a;
  bool isLess = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  return isLess == (update == Update::Min) ? a : b;
}

template <typename T>
T smaller(T a, T b, bool isMin) {
  return (a < b) == isMin ? a : b;
}

} // namespace

uint64_t updated(const AtomicInfo &info, uint64_t old, uint64_t b, uint64_t c,
                 bool isGlobal) {
  switch (info.update) {
  case Update::And:
    return old & b;
  case Update::Or:
    return old | b;
  case Update::Xor:
    return old ^ b;
  case Update::Exchange:
    return b;
  case Update::CompareExchange:
    return old == b ? c : old;
  case Update::Inc:
    return uint32_t(old) >= uint32_t(b) ? 0 : old + 1;
  case Update::Dec:
    return uint32_t(old) == 0 || uint32_t(old) > uint32_t(b) ? b : old - 1;
  case Update::Add:
  case Update::Min:
  case Update::Max:
    break;
  }
  bool isMin = info.update == Update::Min;
  bool isBfloat = info.type == Type::BF16 || info.type == Type::BF16x2;
  switch (info.type) {
  case Type::F32:
    // Global memory flushes.
    return addSingle(uint32_t(old), uint32_t(b), isGlobal);
  case Type::F64:
    return addDouble(old, b, isGlobal);
  case Type::F16:
  case Type::BF16:
    return updateHalf(info.update, isBfloat, uint16_t(old), uint16_t(b));
  case Type::F16x2:
  case Type::BF16x2:
    return updateHalf(info.update, isBfloat, uint16_t(old), uint16_t(b)) |
           uint32_t(updateHalf(info.update, isBfloat, uint16_t(old >> 16),
                               uint16_t(b >> 16)))
               << 16;
  case Type::U32:
    return info.update == Update::Add
               ? uint32_t(old + b)
               : smaller(uint32_t(old), uint32_t(b), isMin);
  case Type::S32:
    return info.update == Update::Add
               ? uint32_t(old + b)
               : uint32_t(smaller(int32_t(old), int32_t(b), isMin));
  case Type::S64:
    return info.update == Update::Add
               ? old + b
               : uint64_t(smaller(int64_t(old), int64_t(b), isMin));
  default:
    return info.update == Update::Add ? old + b : smaller(old, b, isMin);
  }
}

bool dependsOnOrder(const AtomicInfo &info) {
  return info.update == Update::Exchange ||
         info.update == Update::CompareExchange ||
         (info.update == Update::Add && isFloat(info.type));
}

void Turn::takeFor(uint64_t location) {
  static std::array<std::atomic<bool>, 256> turns;
  std::atomic<bool> &wanted = turns[location / 256 % turns.size()];
  if (held == &wanted)
    return;
  leave();
  for (unsigned tries = 0; wanted.exchange(true, std::memory_order_acquire);
       ++tries)
    // Whoever holds it may have lost its core.
    if (tries >= 64)
      std::this_thread::yield();
  held = &wanted;
}

void Turn::leave() {
  if (held)
    held->store(false, std::memory_order_release);
  held = nullptr;
}

namespace {

/// The cells of a region, as the lanes of one atomic find them.
struct Cells {
  uint64_t staleMask, base, mine, floor;
  bool isWide; ///< Atomics of other blocks are in order with this one.

  bool isInOrder(uint64_t old) const {
    constexpr uint64_t who = cell::blockMask | cell::warpMask | cell::laneMask |
                             cell::manyBit | cell::manyBlocksBit |
                             cell::mixedBit;
    uint64_t ofOthers = old ^ base;
    bool isSameBlock = !(ofOthers & cell::blockMask);
    bool areAtomic = (old & cell::strongBit) && !(old & cell::mixedBit) &&
                     (isSameBlock || (isWide && !(old & cell::narrowBit)));
    bool isSeen = isSameBlock &&
                  !(old & (cell::manyBlocksBit | cell::mixedBit)) &&
                  (old & cell::tickMask) <= floor;
    return (ofOthers & staleMask) || areAtomic || isSeen ||
           !((old ^ mine) & who);
  }
};

Cells cellsOf(const WarpClock &clock, const Region &region, Scope scope) {
  bool isShared = region.generation != 0;
  Cells cells;
  cells.staleMask = isShared ? cell::generationMask : cell::launchMask;
  cells.base = isShared ? cell::sharedBase(region.generation, clock.block->rank)
                        : clock.globalBase;
  cells.mine = cells.base | uint64_t(clock.index) << cell::warpShift |
               uint64_t(clock.block->tick) << cell::tickShift |
               cell::bytesMask | cell::strongBit;
  uint32_t seen = clock.laneFloor;
  if (clock.block->warps.size() > 1)
    seen = std::min(seen, clock.floor);
  cells.floor = uint64_t(seen) << cell::tickShift;
  cells.isWide = scope != Scope::Block;
  if (!isShared && !cells.isWide)
    cells.mine |= cell::narrowBit;
  return cells;
}

template <typename T>
LaneMask updateElements(Warp &warp, const Op &op, const AtomicInfo &info,
                        LaneMask active, const uint64_t *at) {
  unsigned first = __builtin_ctz(active);
  Place place = locate(warp, info, at[first]);
  bool isGlobal = place.space == Space::Global;
  if (!place.region || (!isGlobal && place.space != Space::Shared) ||
      place.region->isConst || place.region->bytes < sizeof(T) ||
      place.region->address % sizeof(T))
    return active;
  Region &region = *place.region;
  // Shared memory of another block is not for the quick way.
  if (region.block && region.block != warp.block)
    return active;
  // One host thread runs all that reach a block's shared memory.
  bool isAlone = !isGlobal;
  uint64_t delta = at[first] - place.offset, last = region.bytes - sizeof(T);
  WarpClock &clock = clockOf(warp);
  bool orders = warp.checksRaces && region.writers;
  Cells cells = cellsOf(clock, region, info.scope);
  MessageTable &messages =
      isGlobal ? warp.block->launch->memory->messages() : clock.block->messages;
  bool isCompare = info.update == Update::CompareExchange;
  Slot source = op.operand(1), third = isCompare ? op.operand(2) : source;
  bool isSum = info.update == Update::Add && !isFloat(info.type);
  LaneMask tainted = dependsOnOrder(info) ? allLanes : 0;
  if (warp.tracksTaint)
    tainted |=
        warp.taint(op.operand(0)) | warp.taint(source) | warp.taint(third);
  constexpr T ones = T(0x0101010101010101ull);
  constexpr unsigned words = sizeof(T) / 4;
  uint64_t mine = cells.mine;
  uint64_t &changes = warp.changes;
  Turn turn;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t offset = at[lane] - delta;
    if (offset > last || offset % sizeof(T))
      return rest;
    T state;
    std::memcpy(&state, region.state + offset, sizeof(T));
    if ((state & ones * (Written | InFlight)) != ones * Written)
      return rest;
    uint64_t location = region.address + offset;
    if (orders) {
      if (isGlobal)
        turn.takeFor(location);
      cells.mine = mine | uint64_t(lane) << cell::laneShift;
      uint64_t *writers = region.writers + offset / 4;
      uint64_t *readers = region.readers + offset / 4;
      for (unsigned i = 0; i < words; ++i)
        if (!cells.isInOrder(writers[i]) || !cells.isInOrder(readers[i]))
          return rest;
      // Whose flag this was is asked only where it was another block's.
      if (info.hasResult && isGlobal &&
          ((writers[0] ^ cells.base) & cell::blockMask))
        noteFlagRead(Touch{warp, op, lane, region, offset / 4, cell::bytesMask,
                           /*isStrong=*/true, info.scope});
      for (unsigned i = 0; i < words; ++i) {
        writers[i] = cells.mine;
        if (readers[i])
          readers[i] = 0;
      }
      // Before the update: whoever sees it finds what it releases.
      if (clock.messages)
        publishAt(warp, LaneMask(1) << lane, location, info.scope,
                  /*isOrdering=*/false, /*isUpdate=*/true);
    }
    uint64_t b = valueOf(warp, source, lane, sizeof(T));
    uint64_t c = valueOf(warp, third, lane, sizeof(T));
    uint8_t *data = region.data + offset;
    uint64_t old;
    if (isAlone) {
      T value;
      std::memcpy(&value, data, sizeof(T));
      T next = isSum ? T(value + b) : T(updated(info, value, b, c, isGlobal));
      std::memcpy(data, &next, sizeof(T));
      changes += next != value;
      old = value;
    } else if (isSum) {
      old = __atomic_fetch_add(reinterpret_cast<T *>(data), T(b),
                               __ATOMIC_SEQ_CST);
      changes += T(b) != 0;
    } else {
      old = swapLoop<T>(info, data, b, c, isGlobal, changes);
    }
    if (info.hasResult)
      warp.lanes<T>(op.result(0))[lane] = T(old);
    if (tainted >> lane & 1) {
      state |= ones * Tainted;
      std::memcpy(region.state + offset, &state, sizeof(T));
    }
    if (orders && info.hasResult && !messages.isEmpty())
      learnAt(warp, LaneMask(1) << lane, location, info.scope,
              /*isOrdering=*/false, /*isUpdate=*/true);
  }
  return 0;
}

} // namespace

LaneMask updateLanes(Warp &warp, const Op &op, const AtomicInfo &info,
                     LaneMask active, const uint64_t *at) {
  // What orders by itself starts a tick at each lane.
  if (info.vector > 1 || info.semantics != Semantics::Volatile)
    return active;
  if (info.elementBytes == 4)
    return updateElements<uint32_t>(warp, op, info, active, at);
  if (info.elementBytes == 8)
    return updateElements<uint64_t>(warp, op, info, active, at);
  return active;
}

} // namespace fsr::ptx
