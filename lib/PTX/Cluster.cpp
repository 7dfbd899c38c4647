// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Blocks of one cluster: they begin together, one host thread runs them in
// turns, and shared memory of each stays until all have ended. Their barrier
// waits for all threads that have not exited.
//
// A block must not end while another one still touches its shared memory.
// Whether it does depends on the schedule, so each access from outside is
// noted, and when the block ends, all of them have to be known to one of its
// threads, or to lie before a phase of the barrier that one of them waited for.
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "Engine.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace fsr::ptx {

/// Instructions of a block before another one of its cluster has its turn.
static constexpr uint64_t clusterQuantum = uint64_t(1) << 14;

static unsigned firstLane(LaneMask lanes) { return __builtin_ctz(lanes); }

std::string describeBlock(const Block &block) {
  return "(" + std::to_string(block.index[0]) + "," +
         std::to_string(block.index[1]) + "," + std::to_string(block.index[2]) +
         ")";
}

//===----------------------------------------------------------------------===//
// The barrier
//===----------------------------------------------------------------------===//

void BlockRun::arriveAtCluster(WarpRun &run, size_t at, bool isDivergent) {
  Warp &warp = run.warp;
  const Op &op = run.groups[at].frame->program->code[run.groups[at].pc];
  const auto &info = *static_cast<const BarrierInfo *>(op.info);
  LaneMask mask = run.groups[at].mask;
  run.progressed = true;
  if (isDivergent)
    reportDivergence(run, op, firstLane(mask));
  Cluster &cluster = cluster_.cluster;
  if (info.kind == BarrierInfo::Kind::ClusterArrive) {
    if (LaneMask twice = mask & warp.clusterOwed) {
      warp.fatal(op, firstLane(twice), FindingKind::BarrierMismatch, 0,
                 "arrives twice without a wait between");
      return;
    }
    orderClusterArrive(warp, mask, info.isRelaxed);
    warp.clusterOwed |= mask;
    warp.clusterArrived |= mask;
    cluster.arrived += __builtin_popcount(mask);
    ++run.groups[at].pc;
    run.groups[at].state = Group::State::Ready;
    cluster_.completeIfFull();
    return;
  }
  if (LaneMask never = mask & ~warp.clusterOwed) {
    warp.fatal(op, firstLane(never), FindingKind::BarrierMismatch, 0,
               "waits without having arrived");
    return;
  }
  // Lanes whose phase is complete do not wait for that of others.
  if (LaneMask waiting = mask & warp.clusterArrived) {
    if (waiting != mask) {
      run.splitOff(at, waiting, run.groups[at].pc);
      run.groups.back().state = Group::State::InBarrier;
      run.groups.back().barrier = clusterBarrier;
      mask &= ~waiting;
    } else {
      run.groups[at].state = Group::State::InBarrier;
      run.groups[at].barrier = clusterBarrier;
      return;
    }
  }
  warp.clusterOwed &= ~mask;
  block.waitedPhase = cluster.phase;
  orderClusterWait(warp, mask);
  ++run.groups[at].pc;
  run.groups[at].state = Group::State::Ready;
}

void BlockRun::leaveClusterBarrier() {
  for (const auto &run : runs) {
    run->warp.clusterArrived = 0;
    LaneMask passed = 0;
    for (Group &group : run->groups) {
      if (group.state != Group::State::InBarrier ||
          group.barrier != clusterBarrier)
        continue;
      passed |= group.mask;
      ++group.pc;
      group.state = Group::State::Ready;
    }
    if (!passed)
      continue;
    run->warp.clusterOwed &= ~passed;
    block.waitedPhase = cluster_.cluster.phase;
    orderClusterWait(run->warp, passed);
    run->isRunnable = true;
  }
}

void ClusterRun::completeIfFull() {
  if (!cluster.arrived || cluster.arrived < cluster.live)
    return;
  cluster.arrived = 0;
  ++cluster.phase;
  // Who went round in a circle may go on.
  hasChanged = true;
  ++watchEpoch;
  orderClusterComplete(cluster);
  for (const std::unique_ptr<BlockRun> &run : blocks)
    run->leaveClusterBarrier();
}

bool BlockRun::waitsForCluster() const {
  for (const auto &run : runs)
    for (const Group &group : run->groups)
      if (group.state == Group::State::InBarrier &&
          group.barrier == clusterBarrier)
        return true;
  return false;
}

bool BlockRun::isBlocked() const {
  return llvm::none_of(runs, [](const std::unique_ptr<WarpRun> &run) {
    return run->isRunnable && !run->groups.empty();
  });
}

//===----------------------------------------------------------------------===//
// Life
//===----------------------------------------------------------------------===//

ClusterRun::ClusterRun(Launch &launch, const FunctionTable &functions)
    : launch(launch) {
  const std::array<unsigned, 3> &size = launch.shape.cluster;
  for (unsigned rank = 0; rank < size[0] * size[1] * size[2]; ++rank) {
    blocks.push_back(std::make_unique<BlockRun>(*this, launch, functions));
    Block &block = blocks.back()->block;
    block.cluster = &cluster;
    block.rank = rank;
    cluster.blocks.push_back(&block);
  }
}

void ClusterRun::reset(const ChosenBlock &chosen) {
  uint64_t number = chosen.number;
  const LaunchShapeOf &shape = launch.shape;
  std::array<unsigned, 3> size = shape.cluster, clusters;
  for (unsigned i = 0; i < 3; ++i)
    clusters[i] = shape.grid[i] / size[i];
  std::array<unsigned, 3> at = {
      unsigned(number % clusters[0]),
      unsigned(number / clusters[0] % clusters[1]),
      unsigned(number / (uint64_t(clusters[0]) * clusters[1]))};
  cluster.phase = 0;
  cluster.arrived = cluster.live = 0;
  cluster.order.reset();
  ++watchEpoch;
  hasChanged = false;
  cyclesIn = 0;
  random = Random(launch.options.seed * 0x9e3779b97f4a7c15 ^ ~number);
  for (const std::unique_ptr<BlockRun> &run : blocks) {
    unsigned rank = run->block.rank;
    run->reset({at[0] * size[0] + rank % size[0],
                at[1] * size[1] + rank / size[0] % size[1],
                at[2] * size[2] + rank / (size[0] * size[1])},
               chosen);
    cluster.live += run->block.numThreads;
  }
}

ClusterRun::Outcome ClusterRun::run(Tally &tally, uint64_t quantum,
                                    uint64_t &executed) {
  if (blocks.size() == 1) {
    Outcome outcome = blocks[0]->run(tally, quantum, executed);
    hasChanged |= blocks[0]->takeChanges();
    return outcome;
  }
  bool isRandom = launch.options.schedule != Schedule::Lockstep;
  bool didAnything = false;
  executed = 0;
  for (;;) {
    bool anyLeft = false, anySpun = false, allIdle = true, allBlocked = true;
    unsigned first = isRandom ? random.below(unsigned(blocks.size())) : 0;
    for (size_t i = 0; i < blocks.size(); ++i) {
      BlockRun &run = *blocks[(first + i) % blocks.size()];
      if (run.block.isFinished)
        continue;
      anyLeft = true;
      // Random: some far ahead, some hardly begun.
      uint64_t slice =
          isRandom ? uint64_t(1) << random.below(15) : clusterQuantum;
      uint64_t ran = 0;
      run.beginWatch(watchEpoch);
      Outcome outcome = run.run(tally, std::min(slice, quantum), ran);
      executed += ran;
      if (run.takeChanges()) {
        // Of its own it knows.
        hasChanged = true;
        ++watchEpoch;
      }
      if (outcome == Outcome::Stuck)
        return outcome;
      anySpun |= outcome == Outcome::Spun;
      allIdle &= outcome == Outcome::Spun || outcome == Outcome::Waiting;
      didAnything |= outcome != Outcome::Waiting;
      allBlocked &= outcome == Outcome::Waiting && run.isBlocked();
      if (outcome == Outcome::Done)
        finish(run);
    }
    if (!anyLeft)
      return Outcome::Done;
    if (allBlocked) {
      reportStuck();
      return Outcome::Stuck;
    }
    if (allIdle)
      return anySpun       ? Outcome::Spun
             : didAnything ? Outcome::Spent
                           : Outcome::Waiting;
    if (executed >= quantum)
      return Outcome::Spent;
  }
}

void ClusterRun::beginWatch(uint64_t epoch) {
  if (epoch != outerEpoch)
    ++watchEpoch;
  outerEpoch = epoch;
  if (blocks.size() == 1)
    blocks[0]->beginWatch(watchEpoch);
}

bool ClusterRun::isCycling() const {
  return llvm::all_of(blocks, [&](const std::unique_ptr<BlockRun> &run) {
    return run->block.isFinished || run->isCycling(watchEpoch);
  });
}

bool ClusterRun::takeChanges() {
  bool any = hasChanged;
  hasChanged = false;
  return any;
}

/// All that threads of the block have learnt, also by reads without an
/// acquire: these too come before its end.
static KnowledgePtr knowledgeOf(const Block &block) {
  KnowledgePtr all;
  for (const WarpClock &warp : block.clock->warps)
    if (warp.messages)
      for (const LaneMessages &lane : *warp.messages)
        for (const KnowledgePtr &one :
             {lane.known, lane.pending, lane.pendingUpdates, lane.tolerated})
          all = join(all, one);
  return all;
}

void ClusterRun::finish(BlockRun &run) {
  Block &block = run.block;
  block.isFinished = true;
  endAsync(block);
  if (block.peers.empty())
    return;
  KnowledgePtr known = knowledgeOf(block);
  for (const Block *other : cluster.blocks) {
    const std::vector<PeerAccess> &byThread = block.peers[other->rank];
    for (unsigned thread = 0; thread < byThread.size(); ++thread) {
      const PeerAccess &access = byThread[thread];
      if (!access.program || access.phase <= block.waitedPhase ||
          (known &&
           known->covers(other->clock->block, thread, thread, access.tick)))
        continue;
      Finding finding;
      finding.kind = FindingKind::FinishedBlock;
      finding.kernel = launch.program->function->name;
      finding.block = other->index;
      finding.thread =
          other->warps[thread / warpLanes]->threadOf(thread % warpLanes);
      setPlace(finding, *access.program, access.op->source);
      finding.message =
          "touches shared memory of block " + describeBlock(block) +
          ", which may have ended before; nothing orders the access before "
          "the end of that block's threads";
      launch.findings->add(std::move(finding));
    }
  }
}

/// Whether the block's threads may know that `owner` has begun: they waited for
/// a phase of the cluster's barrier, or learnt of something that it did.
static bool mayHaveBegun(Warp &warp, unsigned lane, const Block &owner) {
  if (warp.block->waitedPhase || !warp.checksRaces)
    return true;
  const WarpClock &clock = clockOf(warp);
  if (!clock.messages)
    return false;
  const LaneMessages &own = (*clock.messages)[lane];
  for (const KnowledgePtr &one : {own.known, own.pending, own.tolerated})
    if (one && one->tellsOf(owner.clock->block))
      return true;
  return false;
}

bool notePeer(Warp &warp, const Op &op, unsigned lane, Block &owner,
              uint64_t address) {
  if (owner.isFinished) {
    warp.fatal(op, lane, FindingKind::FinishedBlock, address,
               "touches " + describeAddress(warp, address) +
                   ", which has ended");
    return false;
  }
  if (warp.frame && !mayHaveBegun(warp, lane, owner))
    warp.report(op, lane, FindingKind::FinishedBlock, address,
                "touches " + describeAddress(warp, address) +
                    ", which may not have begun; a barrier of the cluster "
                    "must come first");
  if (warp.frame)
    noteAccess(warp, lane, owner, *warp.frame->program, op);
  return true;
}

void noteAccess(Warp &warp, unsigned lane, Block &owner, const Program &program,
                const Op &op) {
  if (!warp.checksRaces || &owner == warp.block)
    return;
  const Cluster &cluster = *warp.block->cluster;
  owner.peers.resize(cluster.blocks.size());
  std::vector<PeerAccess> &byThread = owner.peers[warp.block->rank];
  byThread.resize(warp.block->warps.size() * warpLanes);
  // The next phase at which the thread arrives.
  uint64_t phase = cluster.phase + 1 + (warp.clusterArrived >> lane & 1);
  byThread[warp.threadIndex(lane)] = {&program, &op, clockOf(warp).block->tick,
                                      phase};
}

//===----------------------------------------------------------------------===//
// What is told
//===----------------------------------------------------------------------===//

void ClusterRun::reportStuck() {
  // Rather who waits inside its block than who waits for others.
  WarpRun *culprit = nullptr;
  const Group *where = nullptr;
  for (const std::unique_ptr<BlockRun> &block : blocks)
    for (const auto &run : block->runs) {
      if (!run->groups.empty() && run->reportAbsent())
        return;
      for (const Group &group : run->groups) {
        bool isOutside = group.barrier != clusterBarrier ||
                         group.state != Group::State::InBarrier;
        if (where && !isOutside)
          continue;
        if (where && (where->barrier != clusterBarrier ||
                      where->state != Group::State::InBarrier))
          continue;
        culprit = run.get();
        where = &group;
      }
    }
  if (!where)
    return;
  culprit->load(*where);
  const Op &op = where->frame->program->code[where->pc];
  std::string message = "no thread of the cluster can go on";
  if (cluster.arrived)
    message += ", its barrier has " + std::to_string(cluster.arrived) + " of " +
               std::to_string(cluster.live) + " threads";
  culprit->warp.fatal(op, firstLane(where->mask), FindingKind::Deadlock, 0,
                      message + ": " + whereabouts());
}

std::string ClusterRun::whereabouts() const {
  if (blocks.size() == 1)
    return blocks[0]->whereabouts();
  std::string where;
  for (const std::unique_ptr<BlockRun> &run : blocks) {
    std::string one = run->block.isFinished ? "has ended" : run->whereabouts();
    where += (where.empty() ? "block " : "; block ") +
             describeBlock(run->block) + ": " + one;
  }
  return where;
}

void ClusterRun::place(Finding &finding) const {
  for (const std::unique_ptr<BlockRun> &run : blocks)
    if (!run->block.isFinished || run == blocks.back()) {
      run->place(finding);
      return;
    }
}

void ClusterRun::takeCounters(Tally &tally) {
  for (const std::unique_ptr<BlockRun> &run : blocks)
    run->takeCounters(tally);
}

} // namespace fsr::ptx
