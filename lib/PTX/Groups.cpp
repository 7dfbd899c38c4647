// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lanes that stand at the same op: how they part and meet, who goes next, and
// instructions for which they wait for one another.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace fsr::ptx {

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
    if (from.siteFile && from.siteFile < program.module->files.size())
      os << " (" << program.module->files[from.siteFile] << ":" << from.siteLine
         << ")";
  } else {
    os << "the end of " << program.function->name;
  }
  return text;
}

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
      // Code behind a synchronisation may be shorter than one turn: whole warps
      // seldom stay whole, or it would be found by luck alone.
      unsigned often = groups.size() == 1 ? 3 : 1;
      if (random.below(4) < often && some && some != groups[i].mask)
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
                describeLanes(strangers) + " not in the mask 0x" +
                    llvm::utohexstr(mask, true) + " that it gives");
  }
  if (warp.tracksTaint && warp.taint(slot) & group)
    warp.breakProof(op, "which lanes take part depends on buffer contents");
  // Lanes outside their mask wait for nobody: it has been told.
  LaneMask wanted = group & ~mask ? group : mask & live();
  if ((group & wanted) == wanted) {
    warp.group = group;
    if (op.mayBeUninitialized)
      checkWritten(op, group);
    if (warp.shadow && op.shadow)
      op.shadow(warp, op, group);
    if (op.run)
      op.run(warp, op, group);
    // Only `bar.warp.sync`, which has no handler, orders memory: exchanges and
    // votes wait for the lanes, and promise nothing of what these stored.
    if (!op.run)
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

bool WarpRun::reportAbsent() {
  const Group *first = nullptr;
  for (const Group &group : groups)
    if (group.state == Group::State::AtWarpSync &&
        (!first || firstLane(group.mask) < firstLane(first->mask)))
      first = &group;
  if (!first)
    return false;
  load(*first);
  const Op &op = first->frame->program->code[first->pc];
  LaneMask mask = maskOf(op, firstLane(first->mask));
  LaneMask came = 0;
  for (const Group &group : groups)
    if (group.state == Group::State::AtWarpSync && group.pc == first->pc &&
        group.frame == first->frame)
      came |= group.mask;
  warp.fatal(op, firstLane(first->mask), FindingKind::ShuffleMask, 0,
             describeLanes(mask & live() & ~came) + " of its mask 0x" +
                 llvm::utohexstr(mask, true) +
                 " never come to it: " + whereabouts());
  return true;
}

bool WarpRun::resolve() {
  if (resolveWarpSyncs())
    return true;
  bool isWaiting = llvm::any_of(groups, [](const Group &group) {
    return group.state == Group::State::Polling;
  });
  if (isWaiting)
    return false;
  // Nobody of the warp comes any more before the barrier opens. Lanes of a mask
  // that wait at the barrier for the whole warp do not come to theirs either.
  bool isAtBarrier = llvm::any_of(groups, [](const Group &group) {
    return group.state == Group::State::AtBarrier;
  });
  if (isAtBarrier && reportAbsent())
    return false;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].state != Group::State::AtBarrier)
      continue;
    load(groups[i]);
    run_.arrive(*this, i, groups[i].mask != live());
    return true;
  }
  return false;
}

} // namespace fsr::ptx
