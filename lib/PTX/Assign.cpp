// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which register lies in which slot. Compilers write PTX with a new register
// for each value; here they share slots by a linear scan over their lifetimes,
// so that a warp's registers stay in the cache. Lifetimes are those of one
// lane: lanes that diverged each hold their own values in the same slots, and
// since layouts are never mixed in a slot, they do not disturb one another.
//
// Registers that may be read before they are written keep a slot of their own,
// with a mark for each lane; all others need no check while running.
//
//===----------------------------------------------------------------------===//

#include "Decode.h"

#include "llvm/ADT/BitVector.h"

#include <algorithm>
#include <queue>

namespace fsr::ptx {

namespace {
constexpr uint32_t none = ~uint32_t(0);
constexpr uint64_t mostBits = uint64_t(1) << 31;

class Assigner {
public:
  Assigner(Program &program, llvm::ArrayRef<SlotLayout> layouts,
           llvm::ArrayRef<uint32_t> registers)
      : program(program), layouts(layouts), registers(registers) {}

  void run() {
    findBlocks();
    findGlobals();
    // What is beyond any compiler's output is not worth the memory.
    if (uint64_t(blocks.size()) * globals.size() > mostBits) {
      program.numSlots = ~uint32_t(0);
      return;
    }
    solve();
    findTracked();
    findApproximateSteering();
    findIntervals();
    assign();
    rewrite();
  }

private:
  struct Stretch {
    uint32_t begin = 0, end = 0; ///< Ops.
    llvm::SmallVector<uint32_t, 2> next;
    llvm::BitVector liveIn, liveOut, defined;
  };
  struct Interval {
    uint32_t from = none, to = 0;
    void add(uint32_t at) {
      from = std::min(from, at);
      to = std::max(to, at);
    }
  };

  bool isConstant(Slot slot) const { return slot & constantBit; }

  template <typename Visit>
  void forUses(const Op &op, Visit visit) const {
    if (op.guard != noSlot)
      visit(op.guard);
    for (Slot slot : op.sources())
      if (!isConstant(slot))
        visit(slot);
    if (op.isPartial)
      for (Slot slot : op.results())
        visit(slot);
  }

  void successors(const Op &op, uint32_t at,
                  llvm::SmallVectorImpl<uint32_t> &to) const {
    switch (op.control) {
    case Control::Branch:
      to.push_back(op.target);
      if (op.guard != noSlot)
        to.push_back(at + 1);
      return;
    case Control::BranchIndex:
      for (uint32_t target : static_cast<const LabelTable *>(op.info)->targets)
        to.push_back(target);
      if (op.guard != noSlot)
        to.push_back(at + 1);
      return;
    case Control::Exit:
    case Control::Return:
    case Control::Trap:
      if (op.guard != noSlot)
        to.push_back(at + 1);
      return;
    default:
      to.push_back(at + 1);
    }
  }

  void findBlocks() {
    size_t size = program.code.size();
    std::vector<bool> isLeader(size + 1, false);
    isLeader[0] = true;
    llvm::SmallVector<uint32_t, 4> to;
    for (uint32_t i = 0; i < size; ++i) {
      to.clear();
      successors(program.code[i], i, to);
      if (to.size() == 1 && to[0] == i + 1)
        continue;
      for (uint32_t target : to)
        isLeader[target] = true;
      isLeader[i + 1] = true;
    }
    blockOf.resize(size);
    for (uint32_t i = 0; i < size; ++i) {
      if (isLeader[i]) {
        if (!blocks.empty())
          blocks.back().end = i;
        blocks.emplace_back();
        blocks.back().begin = i;
      }
      blockOf[i] = blocks.size() - 1;
    }
    blocks.back().end = size;
    for (Stretch &block : blocks) {
      to.clear();
      successors(program.code[block.end - 1], block.end - 1, to);
      for (uint32_t target : to)
        if (target < size)
          block.next.push_back(blockOf[target]);
    }
  }

  /// Slots that live across blocks get a number in the bit sets; the others
  /// are most of all slots.
  void findGlobals() {
    globalOf.assign(layouts.size(), none);
    std::vector<uint32_t> definedIn(layouts.size(), none);
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i) {
        const Op &op = program.code[i];
        forUses(op, [&](Slot slot) {
          if (definedIn[slot] != b && globalOf[slot] == none) {
            globalOf[slot] = globals.size();
            globals.push_back(slot);
          }
        });
        if (op.guard == noSlot && !op.isPartial)
          for (Slot slot : op.results())
            definedIn[slot] = b;
      }
    }
  }

  void solve() {
    size_t size = globals.size();
    for (Stretch &block : blocks) {
      block.liveIn.resize(size);
      block.liveOut.resize(size);
      block.defined.resize(size);
      for (uint32_t i = block.begin; i < block.end; ++i) {
        const Op &op = program.code[i];
        forUses(op, [&](Slot slot) {
          uint32_t g = globalOf[slot];
          if (g != none && !block.defined.test(g))
            block.liveIn.set(g);
        });
        // What a guard keeps from being written for some lanes is not dead.
        if (op.guard == noSlot && !op.isPartial)
          for (Slot slot : op.results())
            if (globalOf[slot] != none)
              block.defined.set(globalOf[slot]);
      }
    }
    llvm::BitVector in;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks.size(); b-- > 0;) {
        Stretch &block = blocks[b];
        for (uint32_t next : block.next)
          block.liveOut |= blocks[next].liveIn;
        in = block.liveOut;
        in.reset(block.defined);
        in |= block.liveIn;
        if (in != block.liveIn) {
          block.liveIn = in;
          changed = true;
        }
      }
    }
  }

  void findTracked() {
    tracked.assign(layouts.size(), false);
    std::vector<bool> isSpecial(layouts.size(), false);
    for (const SpecialSlot &special : program.specials)
      isSpecial[special.slot] = true;
    bool any = false;
    for (unsigned g : blocks[0].liveIn.set_bits()) {
      Slot slot = globals[g];
      // A special is written before the first op.
      if (isSpecial[slot])
        continue;
      tracked[slot] = true;
      any = true;
    }
    // A guarded write to a register that is read elsewhere in the same guard
    // counts as well; it is live at the entry by the rule above.
    while (any) {
      any = false;
      for (const Op &op : program.code) {
        if (!op.isCopy)
          continue;
        bool hasTracked = llvm::any_of(op.sources(), [&](Slot slot) {
          return !isConstant(slot) && tracked[slot];
        });
        for (Slot slot : op.results()) {
          if (hasTracked && !tracked[slot]) {
            tracked[slot] = true;
            any = true;
          }
        }
      }
    }
    for (Op &op : program.code) {
      op.mayBeUninitialized = false;
      forUses(op, [&](Slot slot) { op.mayBeUninitialized |= tracked[slot]; });
      for (Slot slot : op.results())
        op.mayBeUninitialized |= tracked[slot];
    }
  }

  /// Which ops an approximate value steers, whatever way it takes through
  /// registers. Through memory it is not followed.
  void findApproximateSteering() {
    std::vector<bool> approximate(layouts.size(), false);
    bool any = false;
    for (const Op &op : program.code)
      any |= op.isApproximate;
    for (bool changed = any; changed;) {
      changed = false;
      for (const Op &op : program.code) {
        bool is = op.isApproximate;
        if (op.opClass != OpClass::Memory && op.opClass != OpClass::Atomic)
          for (Slot slot : op.sources())
            is |= !isConstant(slot) && approximate[slot];
        for (Slot slot : op.results()) {
          if (is && !approximate[slot]) {
            approximate[slot] = true;
            changed = true;
          }
        }
      }
    }
    for (Op &op : program.code) {
      bool steers = false;
      if (op.guard != noSlot &&
          (op.control == Control::Branch || op.control == Control::Exit ||
           op.opClass == OpClass::Memory || op.opClass == OpClass::Atomic))
        steers = approximate[op.guard];
      for (unsigned i = 0; i < op.numSources; ++i)
        if (i < 8 && (op.steers >> i & 1) && !isConstant(op.operand(i)))
          steers |= approximate[op.operand(i)];
      if (op.control == Control::BranchIndex && op.numSources &&
          !isConstant(op.operand(0)))
        steers |= approximate[op.operand(0)];
      op.approximateSteers = steers;
    }
  }

  void findIntervals() {
    intervals.resize(layouts.size());
    // Two points an op: results begin before sources end, so that a result
    // never lies over a source of the same op.
    for (const Stretch &block : blocks) {
      for (unsigned g : block.liveIn.set_bits())
        intervals[globals[g]].add(block.begin * 2);
      for (unsigned g : block.liveOut.set_bits())
        intervals[globals[g]].add(block.end * 2 - 1);
    }
    for (uint32_t i = 0; i < program.code.size(); ++i) {
      const Op &op = program.code[i];
      forUses(op, [&](Slot slot) { intervals[slot].add(i * 2 + 1); });
      for (Slot slot : op.results()) {
        intervals[slot].add(i * 2);
        intervals[slot].add(i * 2 + 1);
      }
    }
    for (const SpecialSlot &special : program.specials) {
      intervals[special.slot].add(0);
      intervals[special.slot].add(program.code.size() * 2 + 1);
    }
  }

  void assign() {
    assigned.assign(layouts.size(), noSlot);
    std::vector<Slot> order;
    for (Slot slot = 0; slot < layouts.size(); ++slot) {
      if (layouts[slot] == SlotLayout::Pair) {
        // Both halves, whether or not the second is named.
        assigned[slot] = numAssigned++;
        continue;
      }
      if (intervals[slot].from == none)
        continue;
      if (tracked[slot])
        assigned[slot] = numAssigned++;
      else
        order.push_back(slot);
    }
    llvm::sort(order, [&](Slot a, Slot b) {
      return std::make_pair(intervals[a].from, a) <
             std::make_pair(intervals[b].from, b);
    });
    using Ending = std::pair<uint32_t, Slot>; // When, which of the new ones.
    constexpr size_t numLayouts = 5;
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>>
        active[numLayouts];
    std::vector<Slot> unused[numLayouts];
    for (Slot slot : order) {
      auto layout = size_t(layouts[slot]);
      while (!active[layout].empty() &&
             active[layout].top().first < intervals[slot].from) {
        unused[layout].push_back(active[layout].top().second);
        active[layout].pop();
      }
      Slot to;
      if (unused[layout].empty()) {
        to = numAssigned++;
      } else {
        to = unused[layout].back();
        unused[layout].pop_back();
      }
      assigned[slot] = to;
      active[layout].push({intervals[slot].to, to});
    }
  }

  void rewrite() {
    program.numSlots = numAssigned;
    program.layouts.assign(numAssigned, SlotLayout::Scratch);
    for (Slot slot = 0; slot < layouts.size(); ++slot)
      if (assigned[slot] != noSlot)
        program.layouts[assigned[slot]] = layouts[slot];
    for (SpecialSlot &special : program.specials)
      special.slot = assigned[special.slot];
    for (size_t i = 0; i < registers.size(); ++i)
      if (tracked[registers[i]])
        program.trackedRegisters.push_back(
            {assigned[registers[i]], uint32_t(i)});
    for (Op &op : program.code) {
      if (op.guard != noSlot)
        op.guard = assigned[op.guard];
      for (Slot &slot : op.slots)
        if (!isConstant(slot))
          slot = assigned[slot];
    }
    for (const Op &op : program.code)
      program.steps.push_back(makeStep(op));
  }

  uint32_t markOf(Slot slot) const {
    return isConstant(slot) ? program.numSlots + 1 : slot;
  }

  Step makeStep(const Op &op) const {
    Step step;
    step.run = op.run;
    step.op = &op;
    step.guard = op.guard;
    step.guardFlip = op.guardNegated ? allLanes : 0;
    step.control = op.control;
    step.result = program.numSlots;
    step.steers = program.numSlots + 1;
    for (uint32_t &source : step.sources)
      source = program.numSlots + 1;
    if (op.control != Control::Plain) {
      step.kind = Step::Controlled;
      return step;
    }
    bool touchesMemory =
        op.opClass == OpClass::Memory || op.opClass == OpClass::Atomic;
    unsigned numSteering = __builtin_popcount(op.steers);
    if (op.mayBeUninitialized || !op.run) {
      step.kind = Step::General;
    } else if (touchesMemory && op.flow == Flow::Handler && numSteering <= 1) {
      step.kind = Step::Memory;
      if (numSteering)
        step.steers = markOf(op.operand(__builtin_ctz(op.steers)));
    } else if (!touchesMemory && !op.steers && op.flow == Flow::Lanes &&
               op.numResults <= 1 && op.numSources <= 3 && !op.isPartial) {
      step.kind = Step::Quick;
      if (op.numResults)
        step.result = op.result(0);
      for (unsigned i = 0; i < op.numSources; ++i)
        step.sources[i] = markOf(op.operand(i));
    }
    if (touchesMemory) {
      const Instruction &from = program.function->code[op.source];
      step.isPolling = op.opClass == OpClass::Atomic || from.has("volatile") ||
                       from.has("relaxed") || from.has("acquire") ||
                       from.has("mmio");
    }
    if (op.opClass == OpClass::Memory || op.opClass == OpClass::Barrier) {
      llvm::StringRef opcode = program.function->code[op.source].opcode;
      step.changesMemory = !opcode.starts_with("ld") &&
                           !opcode.starts_with("prefetch") &&
                           !opcode.starts_with("fence");
    }
    return step;
  }

  Program &program;
  llvm::ArrayRef<SlotLayout> layouts;
  llvm::ArrayRef<uint32_t> registers;
  std::vector<Stretch> blocks;
  std::vector<uint32_t> blockOf, globalOf;
  std::vector<Slot> globals, assigned;
  std::vector<bool> tracked;
  std::vector<Interval> intervals;
  Slot numAssigned = 0;
};
} // namespace

void assignSlots(Program &program, llvm::ArrayRef<SlotLayout> layouts,
                 llvm::ArrayRef<uint32_t> registers) {
  Assigner(program, layouts, registers).run();
}

} // namespace fsr::ptx
