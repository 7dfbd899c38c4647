// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A warp on its way through code. Lanes that stand at the same op form a group;
// a branch that they do not agree on makes two of one, and groups that meet
// become one again. Under Lockstep the group that is deepest in calls and
// lowest in its code goes first, which brings lanes together where branches
// join; a group that ran for a whole turn lets others go first, so that lanes
// may wait for lanes of their own warp.
//
// The inner loop is runGroup: no virtual call, no lock and no shared counter in
// it. Taint passes there for the shapes that nearly all ops have.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "Shadow.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

namespace fsr::ptx {

/// Looks at memory that others may change, in a turn; more of them seem to be a
/// loop that waits.
static constexpr unsigned pollsATurn = 64, cooperativePolls = 8;

/// Instructions that a group may run while others of its warp wait to be met.
static constexpr unsigned mostPatience = 1 << 17;

static unsigned firstLane(LaneMask lanes) { return __builtin_ctz(lanes); }

WarpRun::WarpRun(BlockRun &block, unsigned index)
    : warp(*block.block.warps[index]), run_(block) {
  warp.block = &block.block;
  warp.index = index;
  warp.local = &localMemory;
  if (block.block.shadow)
    shadow = std::make_shared<ShadowRegisters>(block.block.shadow.get());
  warp.shadow = shadow.get();
}

/// Of a tracked slot; the carry flag has no name of its own.
static std::string nameOfTracked(const Program &program, Slot slot) {
  const auto &registers = program.function->registers;
  for (auto [tracked, number] : program.trackedRegisters)
    if (tracked == slot)
      return number < registers.size() ? registers[number].name
                                       : "the carry flag";
  return "a register";
}

/// What of the results of a copy is written then.
static LaneMask writtenByCopy(Warp &warp, const Op &op, bool isSelect) {
  if (isSelect) {
    LaneMask first = warp.predicate(op.operand(2));
    return (warp.written(op.operand(0)) & first) |
           (warp.written(op.operand(1)) & ~first);
  }
  // One that puts values together is written as soon as one of them is.
  LaneMask any = op.numSources ? 0 : allLanes;
  for (Slot slot : op.sources())
    any |= warp.written(slot);
  return any;
}

void WarpRun::checkWritten(const Op &op, LaneMask active) {
  LaneMask all = active;
  for (Slot slot : op.sources())
    all &= warp.written(slot);
  if (op.isPartial && !op.isCopy)
    for (Slot slot : op.results())
      all &= warp.written(slot);
  bool isHarmless = op.isCopy;
  LaneMask missing = active & ~all;
  // Sources that a copy does not copy are a use in any case: what a shuffle
  // reads from where, what a selection goes by, addresses. A shuffle says
  // itself what of its result is written.
  bool isExchange = op.isCopy && op.control == Control::WarpSync;
  const Function &function = *warp.frame->program->function;
  bool isSelect = op.isCopy && op.source < function.code.size() &&
                  function.code[op.source].opcode == "selp";
  for (unsigned i = 0; missing && isHarmless && i < op.numSources; ++i)
    if ((isExchange && i) || (isSelect && i == 2) ||
        (i < 8 && (op.steers >> i & 1)))
      if (LaneMask used = active & ~warp.written(op.operand(i))) {
        isHarmless = false;
        missing = used;
      }
  if (missing && !isHarmless) {
    unsigned lane = firstLane(missing);
    std::string name = "a register";
    for (Slot slot : op.slots)
      if (!(slot & constantBit) && !(warp.written(slot) >> lane & 1))
        name = nameOfTracked(*warp.frame->program, slot);
    warp.report(op, lane, FindingKind::Uninitialized, 0,
                (name[0] == '%' || name.find(' ') != std::string::npos
                     ? ""
                     : "register ") +
                    name + " is used, and nothing wrote it");
  }
  if (isExchange)
    return;
  LaneMask result =
      op.isCopy ? writtenByCopy(warp, op, isSelect) : LaneMask(allLanes);
  for (Slot slot : op.results())
    warp.setWritten(slot, active, result);
}

void WarpRun::checkGuard(const Op &op, LaneMask mask) {
  LaneMask missing = mask & ~warp.written(op.guard);
  if (!missing)
    return;
  warp.report(op, firstLane(missing), FindingKind::Uninitialized, 0,
              nameOfTracked(*warp.frame->program, op.guard) +
                  " decides what is done, and nothing wrote it");
}

void WarpRun::passTaint(const Op &op, LaneMask active, LaneMask mask) {
  LaneMask value = 0, guard = 0;
  for (Slot slot : op.sources())
    value |= warp.taint(slot);
  if (op.isPartial)
    for (Slot slot : op.results())
      value |= warp.taint(slot);
  switch (op.flow) {
  case Flow::Lanes:
    break;
  case Flow::Across:
    value = value & active ? allLanes : 0;
    break;
  case Flow::Schedule:
    value = allLanes;
    break;
  case Flow::Handler:
    break;
  }
  if (op.guard != noSlot)
    guard = warp.taint(op.guard) & mask;
  bool touchesMemory =
      op.opClass == OpClass::Memory || op.opClass == OpClass::Atomic;
  if (guard && touchesMemory)
    warp.breakProof(op, "whether memory is touched depends on buffer contents");
  else if (guard && op.opClass == OpClass::Barrier)
    warp.breakProof(op, "whether it is executed depends on buffer contents");
  for (unsigned i = 0; i < op.numSources && i < 8; ++i)
    if ((op.steers >> i & 1) && (warp.taint(op.operand(i)) & active))
      warp.breakProof(op, touchesMemory
                              ? "an address depends on buffer contents"
                              : "what it does depends on buffer contents");
  if (op.flow == Flow::Handler)
    return;
  for (Slot slot : op.results()) {
    warp.setTaint(slot, active, value | guard);
    if (guard)
      warp.setTaint(slot, mask & ~active, warp.taint(slot) | guard);
  }
}

void WarpRun::runGeneral(const Step &step, LaneMask active, LaneMask mask,
                         bool tracksTaint) {
  const Op &op = *step.op;
  if (op.mayBeUninitialized && op.guard != noSlot) {
    checkGuard(op, mask);
    // With other data it would be found unwritten by whoever uses it.
    if (tracksTaint)
      if (LaneMask doubtful = warp.taint(op.guard) & mask)
        for (Slot slot : op.results())
          if (doubtful & ~warp.written(slot))
            warp.breakProof(op, "whether a register is written depends on "
                                "buffer contents");
  }
  if (active) {
    if (op.mayBeUninitialized)
      checkWritten(op, active);
    if (warp.shadow && op.shadow)
      op.shadow(warp, op, active);
    if (op.run)
      op.run(warp, op, active);
  }
  if (tracksTaint)
    passTaint(op, active, mask);
  if (step.isPolling && tracksTaint)
    taintPolled(op, active);
}

void WarpRun::taintPolled(const Op &op, LaneMask active) {
  // What it saw depends on when others wrote there, whatever they wrote.
  for (Slot slot : op.results())
    warp.setTaint(slot, active, active);
}

template <bool hasShadow>
WarpRun::Stop WarpRun::runGroup(size_t at, Tally &tally, uint32_t limit,
                                uint64_t &fuel) {
  load(groups[at]);
  const Program &program = *groups[at].frame->program;
  std::vector<OpCount> &ofProgram = tally.ops[program.number];
  if (ofProgram.empty())
    ofProgram.resize(program.code.size());
  OpCount *counts = ofProgram.data();
  const Step *steps = program.steps.data();
  const Launch &launch = run_.launch;
  const bool tracksTaint =
      warp.tracksTaint && !launch.isProofBroken.load(std::memory_order_relaxed);
  warp.tracksTaint = tracksTaint;
  const unsigned mostPolls =
      launch.shape.cooperative ? cooperativePolls : pollsATurn;
  const bool isPreempted = launch.options.schedule == Schedule::RandomWarps;
  LaneMask *taints = warp.taintOf;
  LaneMask mask = groups[at].mask;
  warp.group = mask;
  uint32_t pc = groups[at].pc;
  uint64_t left = fuel;
  Stop stop = Stop::Fuel;

  auto leave = [&](Stop why) {
    groups[at].pc = pc;
    warp.executed += fuel - left;
    fuel = left;
    return why;
  };

  while (left) {
    if (pc >= limit) {
      stop = Stop::Regroup;
      break;
    }
    const Step &step = steps[pc];
    LaneMask active = mask;
    if (step.guard != noSlot)
      active &= warp.predicate(step.guard) ^ step.guardFlip;
    if constexpr (hasShadow)
      if (step.guard != noSlot)
        shadowGuard(warp, *step.op, mask);
    --left;
    counts[pc].warps += 1;
    counts[pc].lanes += __builtin_popcount(active);
    switch (step.kind) {
    case Step::Quick:
      if constexpr (hasShadow) {
        runGeneral(step, active, mask, tracksTaint);
        ++pc;
        continue;
      }
      ++pc;
      if (active)
        step.run(warp, *step.op, active);
      if (tracksTaint) {
        if (step.guard != noSlot && taints[step.guard] & mask) {
          passTaint(*step.op, active, mask);
          continue;
        }
        LaneMask taint = taints[step.sources[0]] | taints[step.sources[1]] |
                         taints[step.sources[2]];
        taints[step.result] =
            (taints[step.result] & ~active) | (taint & active);
      }
      continue;
    case Step::Memory:
      ++pc;
      if constexpr (hasShadow) {
        if (active && step.op->shadow)
          step.op->shadow(warp, *step.op, active);
      }
      if (tracksTaint && ((taints[step.steers] & active) ||
                          (step.guard != noSlot && taints[step.guard] & mask)))
        passTaint(*step.op, active, mask);
      if (active) {
        step.run(warp, *step.op, active);
        warp.changes += step.changesMemory;
      }
      if (step.isPolling && tracksTaint)
        taintPolled(*step.op, active);
      if (isPreempted) {
        polls = step.isPolling ? polls + 1 : 0;
        if (random.below(8) == 0)
          return leave(polls >= mostPolls ? Stop::Spinning : Stop::Fuel);
        continue;
      }
      if (step.isPolling && ++polls >= mostPolls)
        return leave(Stop::Spinning);
      continue;
    case Step::General:
      ++pc;
      runGeneral(step, active, mask, tracksTaint);
      warp.changes += step.changesMemory;
      if (step.isPolling && ++polls >= mostPolls)
        return leave(Stop::Spinning);
      continue;
    case Step::Controlled:
      break;
    }
    if (step.control == Control::Branch) {
      if (step.guard == noSlot) {
        pc = step.op->target;
        continue;
      }
      // All lanes execute it, also those that it does not take away.
      counts[pc].lanes += __builtin_popcount(mask & ~active);
      if (step.op->mayBeUninitialized)
        checkGuard(*step.op, mask);
      if (tracksTaint && taints[step.guard] & mask)
        warp.breakProof(*step.op, "a branch depends on buffer contents");
      if (active == mask) {
        pc = step.op->target;
      } else if (!active) {
        ++pc;
      } else {
        warp.counters.divergentBranches += 1;
        groups[at].pc = pc;
        splitOff(at, mask & ~active, pc + 1);
        pc = step.op->target;
        return leave(Stop::Regroup);
      }
      continue;
    }
    // All others: lanes that a guard keeps out go on.
    if (step.guard != noSlot) {
      if (step.op->mayBeUninitialized)
        checkGuard(*step.op, mask);
      if (tracksTaint && taints[step.guard] & mask)
        warp.breakProof(*step.op,
                        "whether it is executed depends on buffer contents");
      if (!active) {
        ++pc;
        continue;
      }
      if (active != mask) {
        groups[at].pc = pc;
        splitOff(at, mask & ~active, pc + 1);
        mask = active;
        warp.group = mask;
        limit = limitFor(at);
      }
    }
    groups[at].pc = pc;
    if (!control(at, step)) {
      warp.executed += fuel - left;
      fuel = left;
      return Stop::Regroup;
    }
    pc = groups[at].pc;
  }
  return leave(stop);
}

/// True: the group goes on at its `pc`, in its frame, with its lanes.
bool WarpRun::control(size_t at, const Step &step) {
  const Op &op = *step.op;
  Group &group = groups[at];
  switch (op.control) {
  case Control::Plain:
  case Control::Branch:
    llvm_unreachable("not for here");
  case Control::BranchIndex:
    return jumpIndexed(at, op);
  case Control::Call:
    return call(at, op);
  case Control::Return:
    if (group.frame->caller) {
      returnFrom(at);
      return false;
    }
    [[fallthrough]];
  case Control::Exit:
    exitLanes(at);
    return false;
  case Control::Trap:
    warp.fatal(op, firstLane(group.mask), FindingKind::Trap, 0,
               "the kernel stopped itself");
    return false;
  case Control::Barrier: {
    group.state = Group::State::AtBarrier;
    const auto &info = *static_cast<const BarrierInfo *>(op.info);
    if (!info.isAligned) {
      run_.arrive(*this, at, /*isDivergent=*/false);
      return false;
    }
    // Lanes that came to it before.
    for (size_t other = groups.size(); other-- > 0;) {
      if (other == at || groups[other].state != Group::State::AtBarrier ||
          groups[other].pc != groups[at].pc ||
          groups[other].frame != groups[at].frame)
        continue;
      groups[at].mask |= groups[other].mask;
      if (at + 1 == groups.size())
        at = other;
      dropGroup(other);
    }
    if (groups[at].mask == live())
      run_.arrive(*this, at, /*isDivergent=*/false);
    return false;
  }
  case Control::WarpSync:
    return syncWarp(at, op);
  case Control::Fence: {
    const auto &info = *static_cast<const FenceInfo *>(op.info);
    orderFence(warp, group.mask, info.scope);
    if (op.run)
      op.run(warp, op, group.mask);
    ++group.pc;
    return true;
  }
  case Control::Yield:
    if (op.run)
      op.run(warp, op, group.mask);
    ++group.pc;
    group.state = Group::State::Polling;
    progressed = true;
    return false;
  case Control::Wait: {
    warp.mustWait = 0;
    if (op.mayBeUninitialized)
      checkWritten(op, group.mask);
    op.run(warp, op, group.mask);
    LaneMask waiting = warp.mustWait & group.mask;
    warp.mustWait = 0;
    if (warp.tracksTaint)
      passTaint(op, group.mask & ~waiting, group.mask);
    if (waiting == group.mask) {
      group.state = Group::State::Polling;
      return false;
    }
    ++warp.changes;
    progressed = true;
    if (!waiting) {
      ++group.pc;
      return true;
    }
    splitOff(at, waiting, group.pc);
    groups.back().state = Group::State::Polling;
    ++groups[at].pc;
    return false;
  }
  }
  llvm_unreachable("unknown control");
}

void WarpRun::exitLanes(size_t at) {
  const Group &group = groups[at];
  LaneMask lanes = group.mask;
  warp.exited |= lanes;
  lastExitProgram = group.frame->program;
  lastExit = &lastExitProgram->code[group.pc];
  const Op &op = *lastExit;
  progressed = true;
  dropGroup(at);
  run_.lanesExited(*this, op, lanes);
}

bool WarpRun::jumpIndexed(size_t at, const Op &op) {
  bool isSplit = splitByValue(at, op.operand(0), false);
  Group &group = groups[at];
  const auto &table = *static_cast<const LabelTable *>(op.info);
  if (warp.tracksTaint && warp.taint(op.operand(0)) & group.mask)
    warp.breakProof(op, "a branch depends on buffer contents");
  unsigned lane = firstLane(group.mask);
  uint32_t index = warp.lanes<uint32_t>(op.operand(0))[lane];
  if (index >= table.targets.size()) {
    warp.fatal(op, lane, FindingKind::BadJump, 0,
               "index " + llvm::Twine(index) + " into a table of " +
                   llvm::Twine(table.targets.size()) + " labels");
    return false;
  }
  group.pc = table.targets[index];
  return !isSplit && groups.size() == 1;
}

WarpRun::Turn WarpRun::run(Tally &tally, uint64_t &fuel) {
  progressed = false;
  // Turns that memory operations end are too short to see a loop that waits.
  if (run_.launch.options.schedule != Schedule::RandomWarps)
    polls = 0;
  ++turn;
  for (Group &group : groups)
    if (group.state == Group::State::Polling)
      group.state = Group::State::Ready;
  const FindingSink &findings = *run_.launch.findings;
  bool isSplit = run_.launch.options.schedule == Schedule::SplitLanes;
  while (!findings.isStopped()) {
    if (groups.empty())
      return Turn::Done;
    std::optional<size_t> at = choose();
    if (!at) {
      if (resolve())
        continue;
      if (groups.empty())
        return Turn::Done;
      bool isPolling = llvm::any_of(groups, [](const Group &group) {
        return group.state == Group::State::Polling;
      });
      return isPolling ? Turn::Polling : Turn::Blocked;
    }
    if (!fuel)
      return Turn::Spent;
    uint64_t allowed = fuel;
    if (isSplit)
      allowed = std::min<uint64_t>(allowed, 1 + random.below(64));
    uint64_t before = allowed;
    LaneMask lanes = groups[*at].mask;
    Stop stop = warp.shadow
                    ? runGroup<true>(*at, tally, limitFor(*at), allowed)
                    : runGroup<false>(*at, tally, limitFor(*at), allowed);
    fuel -= before - allowed;
    if (before - allowed > 1)
      progressed = true;
    if (before != allowed)
      spin.ran |= lanes;
    if (stop == Stop::Regroup || isSplit)
      if (stop != Stop::Spinning)
        continue;
    // A loop that does not end, or that waits: lanes of the warp that stand
    // behind it go first for once.
    for (Group &group : groups) {
      if (!(group.mask & lanes))
        continue;
      group.patience += stop == Stop::Spinning ? mostPatience / 16
                                               : unsigned(before - allowed);
      if (group.patience < mostPatience)
        continue;
      group.patience = 0;
      group.lastTurn = turn;
    }
    return stop == Stop::Spinning ? Turn::Spinning : Turn::Spent;
  }
  return Turn::Spent;
}

} // namespace fsr::ptx