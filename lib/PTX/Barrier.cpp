// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The sixteen barriers of a block. Without a count a barrier waits for all
// threads that have not exited, each by itself, as GPUs since Volta do; with a
// count, whole warps count, also those with fewer than 32 threads. Aligned
// forms want the lanes of a warp at one instruction; where they are not, that
// is reported, and the lanes count by themselves so that the rest of the
// kernel is still looked at.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fsr::ptx {

static unsigned firstLane(LaneMask lanes) { return __builtin_ctz(lanes); }

unsigned BlockRun::liveThreads() const {
  unsigned live = 0;
  for (const auto &run : runs)
    live += __builtin_popcount(run->live());
  return live;
}

void BlockRun::reportDivergence(WarpRun &run, const Op &op, unsigned lane) {
  // Once for the warp: those that come to it later were named.
  for (const Group &one : run.groups) {
    if (one.state != Group::State::InBarrier)
      continue;
    const Op &its = one.frame->program->code[one.pc];
    if (static_cast<const BarrierInfo *>(its.info)->isAligned)
      return;
  }
  run.warp.report(op, lane, FindingKind::BarrierDivergence, 0,
                  "not all threads of the warp come to it together; " +
                      run.whereabouts());
}

void BlockRun::arrive(WarpRun &run, size_t at, bool isDivergent) {
  Warp &warp = run.warp;
  const Program &program = *run.groups[at].frame->program;
  const Op &op = program.code[run.groups[at].pc];
  const auto &info = *static_cast<const BarrierInfo *>(op.info);
  using Kind = BarrierInfo::Kind;
  if (info.kind == Kind::ClusterArrive || info.kind == Kind::ClusterWait) {
    arriveAtCluster(run, at, isDivergent);
    return;
  }
  bool isReduction = info.kind != Kind::Sync && info.kind != Kind::Arrive;
  unsigned lane = firstLane(run.groups[at].mask);
  run.progressed = true;

  auto valueOf = [&](unsigned source) {
    return warp.lanes<uint32_t>(op.operand(source))[lane];
  };
  for (unsigned i = 0; i <= unsigned(info.hasCount); ++i) {
    Slot slot = op.operand(i);
    if (warp.tracksTaint && (warp.taint(slot) & run.groups[at].mask))
      warp.breakProof(op, "a barrier depends on buffer contents");
    if (run.splitByValue(at, slot, false))
      run.groups.back().state = Group::State::Ready;
  }
  Group &group = run.groups[at];
  unsigned number = valueOf(0);
  unsigned count = info.hasCount ? valueOf(1) : 0;
  if (number >= barriers.size()) {
    warp.fatal(op, lane, FindingKind::BarrierMismatch, 0,
               "barrier " + llvm::Twine(number) +
                   " does not exist; there are " +
                   llvm::Twine(barriers.size()));
    return;
  }
  if (info.hasCount && (count == 0 || count % warpLanes)) {
    warp.fatal(op, lane, FindingKind::BarrierMismatch, 0,
               "a count of " + llvm::Twine(count) +
                   " threads is no multiple of a warp's 32");
    return;
  }
  if (isDivergent)
    reportDivergence(run, op, lane);

  Barrier &barrier = barriers[number];
  if (!barrier.isOpen) {
    barrier.isOpen = true;
    barrier.isReduction = isReduction;
    barrier.expected = count;
    barrier.arrived = barrier.arrivedRounded = barrier.popc = 0;
    barrier.all = true;
    barrier.any = barrier.tainted = false;
    barrier.lanes.assign(runs.size(), 0);
    barrier.first = &op;
    barrier.firstProgram = &program;
    ++numOpen;
  } else if (barrier.expected != count || barrier.isReduction != isReduction) {
    auto describe = [](unsigned threads) {
      return threads ? (llvm::Twine(threads) + " threads").str()
                     : std::string("all threads of the block");
    };
    std::string why =
        barrier.expected != count
            ? "barrier " + std::to_string(number) + " is for " +
                  describe(count) + " here and for " +
                  describe(barrier.expected)
            : "barrier " + std::to_string(number) +
                  " reduces for some threads and not for others: also";
    warp.fatal(
        op, lane, FindingKind::BarrierMismatch, 0,
        why + " at " +
            describePlace(*barrier.firstProgram,
                          barrier.first - barrier.firstProgram->code.data()));
    return;
  }

  LaneMask mask = group.mask;
  LaneMask &came = barrier.lanes[warp.index];
  unsigned threads = __builtin_popcount(mask);
  barrier.arrived += threads;
  barrier.arrivedRounded += threads;
  bool wasWhole = came == run.live() && came;
  came |= mask;
  if (came == run.live() && (!wasWhole || info.kind == Kind::Arrive))
    barrier.arrivedRounded += warpLanes - __builtin_popcount(came);
  if (isReduction) {
    Slot source = op.operand(1 + info.hasCount);
    LaneMask value = warp.predicate(source);
    if (op.immediate & 1)
      value = ~value;
    barrier.popc += __builtin_popcount(value & mask);
    barrier.all &= (value & mask) == mask;
    barrier.any |= (value & mask) != 0;
    barrier.tainted |= (warp.taint(source) & mask) != 0;
  }
  group.barrier = number;
  if (info.kind == Kind::Arrive) {
    ++group.pc;
    group.state = Group::State::Ready;
  } else {
    group.state = Group::State::InBarrier;
  }
  if (barrier.expected && barrier.arrivedRounded > barrier.expected) {
    warp.fatal(op, lane, FindingKind::BarrierMismatch, 0,
               llvm::Twine(barrier.arrivedRounded) +
                   " threads came to barrier " + llvm::Twine(number) +
                   ", which is for " + llvm::Twine(barrier.expected));
    return;
  }
  completeIfFull(number, run, op);
}

void BlockRun::completeIfFull(unsigned number, WarpRun &last, const Op &op) {
  Barrier &barrier = barriers[number];
  if (!barrier.isOpen)
    return;
  if (barrier.expected ? barrier.arrivedRounded < barrier.expected
                       : barrier.arrived < liveThreads())
    return;
  if (!barrier.expected && barrier.arrived < block.numThreads) {
    // Defined: PTX says of `exit` that it releases a barrier of all threads
    // which only the exiting ones held up. Still worth a word.
    std::string exited;
    unsigned listed = 0;
    for (const auto &run : runs)
      if (run->warp.exited && listed++ < 4)
        exited += (exited.empty() ? "" : "; ") + run->whereabouts();
    last.warp.remark(op, firstLane(last.warp.existing),
                     FindingKind::BarrierDivergence, 0,
                     llvm::Twine(block.numThreads - barrier.arrived) +
                         " threads exited before it: " + exited);
  }
  barrier.isOpen = false;
  --numOpen;
  llvm::SmallVector<Warp *, 32> warps;
  for (size_t i = 0; i < runs.size(); ++i)
    if (barrier.lanes[i])
      warps.push_back(&runs[i]->warp);
  orderBarrier(block, warps);
  for (Warp *of : warps) {
    WarpRun &run = *runs[of->index];
    for (Group &group : run.groups) {
      if (group.state != Group::State::InBarrier || group.barrier != number)
        continue;
      Frame &frame = *group.frame;
      const Op &its = frame.program->code[group.pc];
      const auto &info = *static_cast<const BarrierInfo *>(its.info);
      using Kind = BarrierInfo::Kind;
      if (its.numResults) {
        auto *cells = reinterpret_cast<uint32_t *>(
            frame.registers.data() + size_t(its.result(0)) * slotBytes);
        if (info.kind == Kind::ReducePopc) {
          for (LaneMask rest = group.mask; rest; rest &= rest - 1)
            cells[firstLane(rest)] = barrier.popc;
        } else {
          bool value = info.kind == Kind::ReduceAnd ? barrier.all : barrier.any;
          *cells = value ? *cells | group.mask : *cells & ~group.mask;
        }
        LaneMask &taint = frame.taint[its.result(0)];
        taint = barrier.tainted ? taint | group.mask : taint & ~group.mask;
        frame.written[its.result(0)] |= group.mask;
      }
      ++group.pc;
      group.state = Group::State::Ready;
    }
    run.isRunnable = true;
  }
}

void BlockRun::lanesExited(WarpRun &run, const Op &op, LaneMask lanes) {
  Cluster &cluster = cluster_.cluster;
  cluster.live -= __builtin_popcount(lanes);
  cluster.arrived -= __builtin_popcount(lanes & run.warp.clusterArrived);
  run.warp.clusterArrived &= ~lanes;
  cluster_.completeIfFull();
  if (!numOpen)
    return;
  for (unsigned number = 0; number < barriers.size(); ++number)
    if (barriers[number].isOpen && !barriers[number].expected)
      completeIfFull(number, run, op);
}

void BlockRun::reportStuck() {
  // Who waits where; of the first warp that waits inside itself, if there is
  // one, since that is the cause more often than not.
  WarpRun *culprit = nullptr;
  std::string where;
  unsigned listed = 0;
  for (const auto &run : runs) {
    if (run->groups.empty() && !run->warp.exited)
      continue;
    if (!run->groups.empty() && run->reportAbsent())
      return;
    if (!run->groups.empty() && !culprit)
      culprit = run.get();
    if (listed++ < 8)
      where += (where.empty() ? "" : "; ") + run->whereabouts();
  }
  if (!culprit)
    return;
  size_t at = 0;
  LaneMask lowest = 0;
  for (size_t i = 0; i < culprit->groups.size(); ++i) {
    const Group &one = culprit->groups[i];
    if (!lowest || (one.mask & -one.mask) < lowest) {
      lowest = one.mask & -one.mask;
      at = i;
    }
  }
  const Group &group = culprit->groups[at];
  culprit->load(group);
  const Op &op = group.frame->program->code[group.pc];
  unsigned missing = 0;
  for (const auto &run : runs)
    missing += __builtin_popcount(run->warp.exited);
  std::string message = "no thread of the block can go on";
  for (unsigned number = 0; number < barriers.size(); ++number) {
    const Barrier &barrier = barriers[number];
    if (barrier.isOpen)
      message +=
          ", barrier " + std::to_string(number) + " has " +
          std::to_string(barrier.expected ? barrier.arrivedRounded
                                          : barrier.arrived) +
          " of " +
          std::to_string(barrier.expected ? barrier.expected : liveThreads()) +
          " threads";
  }
  if (missing)
    message += ", " + std::to_string(missing) + " threads have exited";
  culprit->warp.fatal(op, firstLane(group.mask), FindingKind::Deadlock, 0,
                      message + ": " + where);
}

} // namespace fsr::ptx
