// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads and stores lane by lane, with every check, order and space.
//
// A byte that nothing wrote is reported where it is loaded, unless the value
// only goes on to stores: copying a structure copies its padding. Then the
// bytes it is stored to count as not written, and whoever uses them is told. So
// it is with registers that nothing wrote, where they are copied to memory.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"

namespace fsr::ptx {

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
        Touch touch{warp,
                    op,
                    lane,
                    *region,
                    checked.place.offset / 4,
                    cell::bytesMask,
                    /*isStrong=*/true,
                    info.scope};
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
      if (op.isCopy && op.mayBeUninitialized &&
          !(warp.written(slot) >> lane & 1))
        std::memset(state + v * size, 0, size);
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
