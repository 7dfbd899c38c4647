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

std::string describeLanes(LaneMask lanes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << (lanes & (lanes - 1) ? "lanes " : "lane ");
  bool isFirst = true;
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    unsigned last = lane;
    while (last + 1 < warpLanes && (lanes >> (last + 1) & 1))
      ++last;
    os << (isFirst ? "" : ",") << lane;
    if (last > lane)
      os << "-" << last;
    isFirst = false;
    lane = last;
  }
  return text;
}

std::string describePlace(const Program &program, uint32_t pc) {
  std::string text;
  llvm::raw_string_ostream os(text);
  uint32_t source = program.code[pc].source;
  if (source < program.function->code.size()) {
    const Instruction &from = program.function->code[source];
    os << "PTX line " << from.location.line << " `"
       << program.module->lineText(from.location.line).take_front(100) << "`";
    if (from.file && from.file < program.module->files.size())
      os << " (" << program.module->files[from.file] << ":" << from.line << ")";
  } else {
    os << "the end of " << program.function->name;
  }
  return text;
}

WarpRun::WarpRun(BlockRun &block, unsigned index)
    : warp(*block.block.warps[index]), run_(block) {
  warp.block = &block.block;
  warp.index = index;
  warp.local = &localMemory;
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

std::shared_ptr<Frame> WarpRun::enter(const Program &program, LaneMask lanes,
                                      uint64_t localBase) {
  std::shared_ptr<Frame> frame;
  for (size_t i = 0; i < spareFrames.size(); ++i) {
    if (spareFrames[i].use_count() != 1)
      continue;
    frame = spareFrames[i];
    if (frame->program == &program)
      break;
  }
  if (!frame) {
    frame = std::make_shared<Frame>();
    spareFrames.push_back(frame);
  }
  bool isSame = frame->program == &program;
  frame->program = &program;
  frame->caller.reset();
  frame->returnTo = 0;
  frame->call = nullptr;
  frame->depth = 0;
  if (!isSame)
    frame->registers.assign(size_t(program.numSlots) * slotBytes, 0);
  frame->taint.assign(program.numSlots + 2, 0);
  frame->written.assign(program.numSlots + 2, allLanes);
  for (auto [slot, number] : program.trackedRegisters)
    frame->written[slot] = 0;
  frame->localBase = localBase;
  uint64_t bytes = program.frame.localBytes;
  if (bytes) {
    if (localMemory.size() < localBase + bytes)
      localMemory.grow(localBase + bytes);
    for (LaneMask rest = lanes; rest; rest &= rest - 1)
      std::memset(localMemory.state(firstLane(rest)) + localBase, 0, bytes);
  }
  fillSpecials(*frame);
  return frame;
}

void WarpRun::fillSpecials(Frame &frame) {
  const Launch &launch = run_.launch;
  const LaunchShapeOf &shape = launch.shape;
  const Block &block = run_.block;
  for (const SpecialSlot &special : frame.program->specials) {
    uint8_t *to = frame.registers.data() + size_t(special.slot) * slotBytes;
    auto fill = [&](auto valueOf) {
      for (unsigned lane = 0; lane < warpLanes; ++lane) {
        uint64_t value = valueOf(lane);
        if (special.width == 64)
          std::memcpy(to + lane * 8, &value, 8);
        else
          std::memcpy(to + lane * 4, &value, 4);
      }
    };
    auto all = [&](uint64_t value) { fill([&](unsigned) { return value; }); };
    llvm::StringRef name = special.name;
    if (name.empty()) {
      all(frame.localBase + special.offset);
      continue;
    }
    unsigned axis = 3;
    if (name.size() > 2 && name[name.size() - 2] == '.') {
      axis = llvm::StringRef("xyzw").find(name.back());
      name = name.drop_back(2);
    }
    auto component = [&](const std::array<unsigned, 3> &of, unsigned past) {
      all(axis < 3 ? of[axis] : past);
    };
    std::array<unsigned, 3> cluster = shape.cluster, clusters, clusterId,
                            inCluster;
    for (unsigned i = 0; i < 3; ++i) {
      clusters[i] = shape.grid[i] / cluster[i];
      clusterId[i] = block.index[i] / cluster[i];
      inCluster[i] = block.index[i] % cluster[i];
    }
    if (name == "%tid")
      fill([&](unsigned lane) -> uint64_t {
        return axis < 3 ? warp.threadOf(lane)[axis] : 0;
      });
    else if (name == "%ntid")
      component(shape.block, 0);
    else if (name == "%ctaid")
      component(block.index, 0);
    else if (name == "%nctaid")
      component(shape.grid, 0);
    else if (name == "%clusterid")
      component(clusterId, 0);
    else if (name == "%nclusterid")
      component(clusters, 0);
    else if (name == "%cluster_ctaid")
      component(inCluster, 0);
    else if (name == "%cluster_nctaid")
      component(cluster, 0);
    else if (name == "%laneid")
      fill([](unsigned lane) -> uint64_t { return lane; });
    else if (name == "%warpid")
      all(warp.index);
    else if (name == "%nwarpid")
      all(64);
    else if (name == "%nsmid")
      all(launch.numMultiprocessors);
    else if (name == "%gridid")
      all(launch.number);
    else if (name == "%lanemask_eq")
      fill([](unsigned lane) { return uint64_t(1) << lane; });
    else if (name == "%lanemask_lt")
      fill([](unsigned lane) { return (uint64_t(1) << lane) - 1; });
    else if (name == "%lanemask_le")
      fill([](unsigned lane) { return (uint64_t(2) << lane) - 1; });
    else if (name == "%lanemask_gt")
      fill([](unsigned lane) { return uint64_t(~((2ull << lane) - 1)); });
    else if (name == "%lanemask_ge")
      fill([](unsigned lane) { return uint64_t(~((1ull << lane) - 1)); });
    else if (name == "%cluster_ctarank")
      all(inCluster[0] +
          cluster[0] * (inCluster[1] + uint64_t(cluster[1]) * inCluster[2]));
    else if (name == "%cluster_nctarank")
      all(uint64_t(cluster[0]) * cluster[1] * cluster[2]);
    else if (name == "%dynamic_smem_size")
      all(shape.sharedBytes);
    else if (name == "%total_smem_size" || name == "%aggr_smem_size")
      all(shape.sharedBytes + launch.program->sharedBytes);
    else if (name == "%envreg1")
      all(launch.gridWorkspace >> 32);
    else if (name == "%envreg2")
      all(uint32_t(launch.gridWorkspace));
    else
      all(0);
  }
}

void WarpRun::reset(LaneMask existing, uint64_t seed) {
  warp.existing = existing;
  warp.exited = 0;
  warp.mustWait = 0;
  warp.executed = 0;
  warp.tracksTaint = run_.launch.options.trackTaint;
  warp.checksRaces = run_.launch.options.checkRaces;
  random = Random(seed);
  turn = 0;
  isRunnable = true;
  lastExit = nullptr;
  groups.clear();
  groups.emplace_back();
  groups[0].mask = existing;
  groups[0].frame = enter(*run_.launch.program, existing, 0);
  warp.frame = groups[0].frame.get();
}

void WarpRun::load(const Group &group) {
  Frame &frame = *group.frame;
  warp.frame = &frame;
  warp.bases[0] = frame.registers.data();
  warp.bases[1] = const_cast<uint8_t *>(frame.program->constants.data());
  warp.taintOf = frame.taint.data();
  warp.writtenOf = frame.written.data();
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

void WarpRun::dropGroup(size_t at) {
  if (at + 1 != groups.size())
    std::swap(groups[at], groups.back());
  groups.pop_back();
}

void WarpRun::splitOff(size_t at, LaneMask lanes, uint32_t pc) {
  Group other = groups[at];
  other.mask = lanes;
  other.pc = pc;
  other.state = Group::State::Ready;
  groups[at].mask &= ~lanes;
  groups.push_back(std::move(other));
}

bool WarpRun::splitByValue(size_t at, Slot slot, bool isWide) {
  if (slot & constantBit)
    return false;
  LaneMask mask = groups[at].mask, others = 0;
  auto compare = [&](auto *values) {
    auto first = values[firstLane(mask)];
    if (mask == allLanes) {
      auto difference = first ^ first;
      for (unsigned lane = 0; lane < warpLanes; ++lane)
        difference |= values[lane] ^ first;
      if (!difference)
        return;
    }
    for (LaneMask rest = mask; rest; rest &= rest - 1)
      if (values[firstLane(rest)] != first)
        others |= rest & -rest;
  };
  if (isWide)
    compare(warp.lanes<uint64_t>(slot));
  else
    compare(warp.lanes<uint32_t>(slot));
  if (!others)
    return false;
  splitOff(at, others, groups[at].pc);
  return true;
}

void WarpRun::mergeReady() {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].state != Group::State::Ready)
      continue;
    for (size_t j = groups.size(); j-- > i + 1;) {
      if (groups[j].state != Group::State::Ready ||
          groups[j].pc != groups[i].pc || groups[j].frame != groups[i].frame)
        continue;
      groups[i].mask |= groups[j].mask;
      groups[i].lastTurn = std::min(groups[i].lastTurn, groups[j].lastTurn);
      dropGroup(j);
    }
  }
}

std::optional<size_t> WarpRun::choose() {
  std::optional<size_t> best;
  if (run_.launch.options.schedule == Schedule::SplitLanes) {
    // Lanes that happen to meet stay apart half of the time.
    if (groups.size() > 1 && random.below(2))
      mergeReady();
    unsigned numReady = llvm::count_if(groups, [](const Group &group) {
      return group.state == Group::State::Ready;
    });
    if (!numReady)
      return std::nullopt;
    unsigned pick = random.below(numReady);
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].state != Group::State::Ready || pick--)
        continue;
      LaneMask some = groups[i].mask & LaneMask(random.next() >> 32);
      if (random.below(4) == 0 && some && some != groups[i].mask)
        splitOff(i, groups[i].mask & ~some, groups[i].pc);
      return i;
    }
    return std::nullopt;
  }
  if (groups.size() > 1)
    mergeReady();
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group &group = groups[i];
    if (group.state != Group::State::Ready)
      continue;
    if (!best) {
      best = i;
      continue;
    }
    const Group &other = groups[*best];
    auto rank = [](const Group &of) {
      return std::make_tuple(of.lastTurn, ~of.frame->depth, of.pc);
    };
    if (rank(group) < rank(other))
      best = i;
  }
  return best;
}

uint32_t WarpRun::limitFor(size_t at) const {
  uint32_t limit = ~uint32_t(0);
  if (groups.size() == 1 ||
      run_.launch.options.schedule == Schedule::SplitLanes)
    return limit;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group &group = groups[i];
    // Below: it had its turn, and this one goes until they meet.
    if (i != at && group.state == Group::State::Ready &&
        group.frame == groups[at].frame && group.pc > groups[at].pc)
      limit = std::min(limit, group.pc);
  }
  return limit;
}

std::string WarpRun::whereabouts() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "warp " << warp.index << ": ";
  const char *separator = "";
  for (const Group &group : groups) {
    os << separator << describeLanes(group.mask)
       << (group.state == Group::State::Ready ? " at " : " wait at ")
       << describePlace(*group.frame->program, group.pc);
    separator = "; ";
  }
  if (LaneMask exited = warp.exited) {
    os << separator << describeLanes(exited) << " exited";
    if (lastExitProgram)
      os << " (last at "
         << describePlace(*lastExitProgram,
                          lastExit - lastExitProgram->code.data())
         << ")";
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

void WarpRun::checkWritten(const Op &op, LaneMask active) {
  LaneMask all = active, any = 0;
  bool hasSource = false;
  auto look = [&](Slot slot) {
    LaneMask written = warp.written(slot);
    any |= written;
    hasSource = true;
    all &= written;
  };
  for (Slot slot : op.sources())
    look(slot);
  if (op.isPartial && !op.isCopy)
    for (Slot slot : op.results())
      look(slot);
  // A copy that puts values together is written as soon as one of them is.
  LaneMask result = !op.isCopy || !hasSource ? active : any & active;
  bool isHarmless = op.isCopy;
  LaneMask missing = active & ~all;
  if (missing && isHarmless && op.steers) {
    // An address is a use in any case.
    LaneMask addresses = active;
    for (unsigned i = 0; i < op.numSources; ++i)
      if (i < 8 && (op.steers >> i & 1))
        addresses &= warp.written(op.operand(i));
    if (active & ~addresses)
      isHarmless = false;
  }
  if (missing && !isHarmless) {
    unsigned lane = firstLane(missing);
    std::string name = "a register";
    for (Slot slot : op.slots) {
      if (slot & constantBit || (warp.written(slot) >> lane & 1))
        continue;
      for (auto [tracked, number] : warp.frame->program->trackedRegisters)
        if (tracked == slot)
          name = warp.frame->program->function->registers[number].name;
    }
    warp.report(op, lane, FindingKind::Uninitialized, 0,
                name + " is used, and nothing wrote it");
  }
  for (Slot slot : op.results())
    warp.setWritten(slot, active, result);
}

void WarpRun::checkGuard(const Op &op, LaneMask mask) {
  LaneMask missing = mask & ~warp.written(op.guard);
  if (!missing)
    return;
  std::string name = "a predicate";
  for (auto [tracked, number] : warp.frame->program->trackedRegisters)
    if (tracked == op.guard)
      name = warp.frame->program->function->registers[number].name;
  warp.report(op, firstLane(missing), FindingKind::Uninitialized, 0,
              name + " decides what is done, and nothing wrote it");
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
  if (op.mayBeUninitialized && op.guard != noSlot)
    checkGuard(op, mask);
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
      if (active)
        step.run(warp, *step.op, active);
      if (step.isPolling && ++polls >= mostPolls)
        return leave(Stop::Spinning);
      if (isPreempted && random.below(8) == 0)
        return leave(Stop::Fuel);
      continue;
    case Step::General:
      ++pc;
      runGeneral(step, active, mask, tracksTaint);
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
    op.run(warp, op, group.mask);
    LaneMask waiting = warp.mustWait & group.mask;
    warp.mustWait = 0;
    if (warp.tracksTaint)
      passTaint(op, group.mask & ~waiting, group.mask);
    if (waiting == group.mask) {
      group.state = Group::State::Polling;
      return false;
    }
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
  warp.exited |= group.mask;
  lastExitProgram = group.frame->program;
  lastExit = &lastExitProgram->code[group.pc];
  const Op &op = *lastExit;
  progressed = true;
  dropGroup(at);
  run_.lanesExited(*this, op);
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

//===----------------------------------------------------------------------===//
// Instructions of lanes that meet
//===----------------------------------------------------------------------===//

LaneMask WarpRun::maskOf(const Op &op, unsigned lane) {
  Slot slot = op.operand(op.maskSource);
  return warp.lanes<uint32_t>(slot)[slot & constantBit ? 0 : lane];
}

bool WarpRun::syncWarp(size_t at, const Op &op) {
  // Parts with masks of their own take part one after the other.
  Slot slot = op.operand(op.maskSource);
  bool isSplit = splitByValue(at, slot, false);
  LaneMask group = groups[at].mask;
  LaneMask mask = maskOf(op, firstLane(group));
  if (LaneMask strangers = group & ~mask) {
    warp.report(op, firstLane(strangers), FindingKind::ShuffleMask, 0,
                describeLanes(strangers) + " not in the mask " +
                    llvm::utohexstr(mask) + " that it gives");
    mask |= strangers;
  }
  if (warp.tracksTaint && warp.taint(slot) & group)
    warp.breakProof(op, "which lanes take part depends on buffer contents");
  LaneMask wanted = mask & live();
  if ((group & wanted) == wanted) {
    warp.group = group;
    if (op.mayBeUninitialized)
      checkWritten(op, group);
    if (warp.shadow && op.shadow)
      op.shadow(warp, op, group);
    if (op.run)
      op.run(warp, op, group);
    orderWarp(warp, group);
    if (warp.tracksTaint)
      passTaint(op, group, group);
    progressed = true;
    ++groups[at].pc;
    return !isSplit;
  }
  groups[at].state = Group::State::AtWarpSync;
  return false;
}

bool WarpRun::resolveWarpSyncs() {
  bool any = false;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].state != Group::State::AtWarpSync)
      continue;
    load(groups[i]);
    const Op &op = groups[i].frame->program->code[groups[i].pc];
    LaneMask mask = maskOf(op, firstLane(groups[i].mask)) | groups[i].mask;
    LaneMask came = groups[i].mask, elsewhere = 0;
    // Lanes at the same op with the same mask; `bar.warp.sync` moves no data,
    // and may be met at any of its instructions.
    for (size_t j = 0; j < groups.size(); ++j) {
      if (j == i || groups[j].state != Group::State::AtWarpSync)
        continue;
      const Op &other = groups[j].frame->program->code[groups[j].pc];
      bool isSame =
          groups[j].pc == groups[i].pc && groups[j].frame == groups[i].frame;
      bool isPure =
          !op.numResults && !other.numResults && !op.run && !other.run;
      if (!isSame && !isPure)
        continue;
      load(groups[j]);
      LaneMask its = maskOf(other, firstLane(groups[j].mask)) | groups[j].mask;
      load(groups[i]);
      if (its != mask)
        continue;
      came |= groups[j].mask;
      if (!isSame)
        elsewhere |= groups[j].mask;
    }
    LaneMask wanted = mask & live();
    if ((came & wanted) != wanted)
      continue;
    any = true;
    progressed = true;
    if (elsewhere) {
      orderWarp(warp, came);
      for (Group &group : groups) {
        if (group.state == Group::State::AtWarpSync && (group.mask & came)) {
          ++group.pc;
          group.state = Group::State::Ready;
        }
      }
      continue;
    }
    // One group of all, which runs the op as if it had come together.
    for (size_t j = groups.size(); j-- > 0;)
      if (j != i && groups[j].state == Group::State::AtWarpSync &&
          (groups[j].mask & came)) {
        groups[i].mask |= groups[j].mask;
        if (i + 1 == groups.size())
          i = j;
        dropGroup(j);
      }
    groups[i].state = Group::State::Ready;
    // Not by way of `runGroup`, under which a split could part them again.
    load(groups[i]);
    warp.group = came;
    syncWarp(i, op);
  }
  return any;
}

bool WarpRun::resolve() {
  if (resolveWarpSyncs())
    return true;
  bool isWaiting = llvm::any_of(groups, [](const Group &group) {
    return group.state == Group::State::Polling;
  });
  if (isWaiting)
    return false;
  // Nobody of the warp comes any more before the barrier opens.
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].state != Group::State::AtBarrier)
      continue;
    load(groups[i]);
    run_.arrive(*this, i, groups[i].mask != live());
    return true;
  }
  return false;
}

WarpRun::Turn WarpRun::run(Tally &tally, uint64_t &fuel) {
  progressed = false;
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
