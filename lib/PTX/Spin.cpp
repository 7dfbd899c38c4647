// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Waits that can never end. A thread that comes back to a place with the same
// registers, while no memory changed in between, goes round in a circle: it
// will do so until another thread changes memory. Where that is so for all
// threads of all blocks that are under way, or they wait, nobody ever will.
//
// A loop that counts, reads a clock or stores never looks the same and is left
// to the budget of instructions. States are compared by hash, at looks whose
// distance grows, so that a circle of any length is found in the end.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/bit.h"

#include <cstring>

namespace fsr::ptx {

/// From here on it goes round without ever deciding anything: it does not wait.
static bool isEndless(const Program &program, uint32_t pc) {
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Op &op = program.code[pc];
    if (op.control == Control::Branch) {
      if (op.guard != noSlot)
        return false;
      pc = op.target;
      continue;
    }
    if (op.control != Control::Plain || ++pc == program.code.size())
      return false;
  }
  return true;
}

WarpRun::LaneStates WarpRun::statesOf(const Group &group) const {
  LaneStates states;
  states.fill(group.pc);
  // Slot by slot, so that it goes for all lanes at once.
  auto mix = [&](auto valueOf) {
    for (unsigned lane = 0; lane < warpLanes; ++lane) {
      uint64_t state = (states[lane] ^ valueOf(lane)) * 0x9e3779b97f4a7c15;
      states[lane] = state ^ state >> 29;
    }
  };
  for (const Frame *frame = group.frame.get(); frame;
       frame = frame->caller.get()) {
    const Program &program = *frame->program;
    uint64_t place = llvm::hash_combine(frame, frame->returnTo);
    mix([&](unsigned) { return place; });
    for (Slot slot = 0; slot < program.numSlots; ++slot) {
      const uint8_t *cells = frame->registers.data() + size_t(slot) * slotBytes;
      switch (program.layouts[slot]) {
      case SlotLayout::Predicate: {
        LaneMask lanes;
        std::memcpy(&lanes, cells, sizeof(lanes));
        mix([&](unsigned lane) { return uint64_t(lanes >> lane & 1); });
        break;
      }
      case SlotLayout::Word:
        mix([&](unsigned lane) {
          uint32_t value;
          std::memcpy(&value, cells + lane * 4, 4);
          return uint64_t(value);
        });
        break;
      case SlotLayout::Double:
      case SlotLayout::Pair:
        mix([&](unsigned lane) {
          uint64_t value;
          std::memcpy(&value, cells + lane * 8, 8);
          return value;
        });
        break;
      case SlotLayout::Scratch:
        break;
      }
    }
  }
  return states;
}

bool WarpRun::watchSpin() {
  bool isKept = llvm::has_single_bit(++spin.looks);
  bool allCycle = true;
  for (const Group &group : groups) {
    if (group.state != Group::State::Ready &&
        group.state != Group::State::Polling)
      continue;
    LaneMask looked = isKept ? group.mask : group.mask & spin.ran;
    LaneStates states;
    if (looked)
      states = statesOf(group);
    for (LaneMask rest = looked; rest; rest &= rest - 1) {
      unsigned lane = __builtin_ctz(rest);
      uint64_t state = states[lane];
      if (spin.looks > 1 && (spin.ran >> lane & 1) && spin.state[lane] == state)
        spin.cycles |= LaneMask(1) << lane;
      if (isKept)
        spin.state[lane] = state;
    }
    allCycle &= !(group.mask & ~spin.cycles) &&
                !isEndless(*group.frame->program, group.pc);
  }
  spin.ran = 0;
  return allCycle;
}

uint64_t BlockRun::totalChanges() const {
  uint64_t changes = 0;
  for (const auto &run : runs)
    changes += run->warp.changes;
  return changes;
}

void BlockRun::watch() {
  uint64_t changes = totalChanges();
  if (changes != watchedChanges) {
    // Whether memory stays as it is now shows at the next look.
    watchedChanges = changes;
    cycles = false;
    for (const auto &run : runs)
      run->spin = WarpRun::Spin();
    return;
  }
  // A block of which all threads have just exited waits for nothing.
  bool anyLeft = false, allCycle = true;
  for (const auto &run : runs) {
    anyLeft |= !run->groups.empty();
    allCycle &= run->watchSpin();
  }
  cycles = anyLeft && allCycle;
}

void BlockRun::beginWatch(uint64_t epoch) {
  cycles = false;
  if (epoch == watchedEpoch)
    return;
  watchedEpoch = epoch;
  for (const auto &run : runs)
    run->spin = WarpRun::Spin();
}

bool BlockRun::takeChanges() {
  uint64_t changes = totalChanges();
  bool any = changes != toldChanges;
  toldChanges = changes;
  return any;
}

} // namespace fsr::ptx
