// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Blocks over host threads, cluster by cluster; where nobody asked for clusters
// a block is one. A thread takes a block and runs it for a quantum; a block
// that is not done then, or only waits, goes to the end of a queue, and the
// thread takes another, so that a block which waits for one that has not begun
// gets what it waits for as far as a GPU of the modelled size would let it. A
// cooperative launch has all its blocks begun from the start.
//
// With one host thread a launch is the same every time for a seed. With more,
// blocks that talk to one another may see each other in another order.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"
#include "Shadow.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <numeric>
#include <thread>

namespace fsr::ptx {

/// Instructions of a warp before another one's turn.
static constexpr uint64_t turnFuel = 4096;
/// Instructions of a block before another one's turn.
static constexpr uint64_t blockQuantum = uint64_t(1) << 21;
static constexpr uint64_t cooperativeQuantum = uint64_t(1) << 14;
/// Rounds in which all warps come to a barrier, for each that is watched.
static constexpr unsigned barrierRoundsALook = 64;
/// Turns in which all blocks do nothing but wait, before that is a deadlock.
static constexpr unsigned mostWaits = 16;
/// Of shared memory, for the system; cooperative groups keep 288 bytes there.
static constexpr uint64_t reservedSharedBytes = 1024;
/// For blocks that spin to see what those on other host threads do meanwhile.
static constexpr std::chrono::microseconds spinPause(200);

BlockRun::BlockRun(ClusterRun &cluster, Launch &launch,
                   const FunctionTable &functions)
    : launch(launch), functions(functions), cluster_(cluster) {
  const std::array<unsigned, 3> &size = launch.shape.block;
  block.launch = &launch;
  block.numThreads = size[0] * size[1] * size[2];
  for (const Program *program : functions.programs)
    hasReservedShared |= program->usesReservedShared;
  if (launch.shadow)
    block.shadow = std::make_shared<ShadowMemory>();
  unsigned numWarps = (block.numThreads + warpLanes - 1) / warpLanes;
  for (unsigned i = 0; i < numWarps; ++i)
    block.warps.push_back(std::make_unique<Warp>());
  for (unsigned i = 0; i < numWarps; ++i)
    runs.push_back(std::make_unique<WarpRun>(*this, i));
}

BlockRun::~BlockRun() = default;

void BlockRun::reset(const std::array<unsigned, 3> &index,
                     const ChosenBlock &chosen) {
  const LaunchShapeOf &shape = launch.shape;
  uint64_t linear =
      index[0] +
      uint64_t(shape.grid[0]) * (index[1] + uint64_t(shape.grid[1]) * index[2]);
  block.linear = linear;
  block.index = index;
  block.isFinished = false;
  block.waitedPhase = 0;
  block.peers.clear();
  bool isAlone = block.cluster->blocks.size() == 1;
  uint64_t bytes = hasReservedShared
                       ? reservedShared() + reservedSharedBytes
                       : launch.program->sharedBytes + shape.sharedBytes;
  block.shared.reset(bytes, &block,
                     isAlone ? std::nullopt : std::optional(block.rank));
  if (block.shadow)
    block.shadow->clear();
  block.clock = makeBlockClock(linear, block.rank, runs.size());
  random = Random(launch.options.seed * 0x9e3779b97f4a7c15 ^ linear);
  for (Barrier &barrier : barriers)
    barrier.isOpen = false;
  numOpen = 0;
  spinRounds = barrierRounds = 0;
  cycles = false;
  watchedEpoch = watchedChanges = toldChanges = 0;
  for (unsigned i = 0; i < runs.size(); ++i) {
    unsigned threads = std::min(block.numThreads - i * warpLanes, warpLanes);
    LaneMask existing =
        threads == warpLanes ? allLanes : (LaneMask(1) << threads) - 1;
    existing &= chosen.warps >> i & 1 ? chosen.lanes : 0;
    runs[i]->warp.clock = nullptr;
    runs[i]->warp.async = nullptr; // It was the clock's.
    runs[i]->warp.counters = Counters();
    runs[i]->reset(existing, random.next());
  }
}

void BlockRun::takeCounters(Tally &tally) {
  for (const auto &run : runs) {
    tally.counters += run->warp.counters;
    run->warp.counters = Counters();
  }
}

BlockRun::Outcome BlockRun::run(Tally &tally, uint64_t quantum,
                                uint64_t &executed) {
  using Turn = WarpRun::Turn;
  bool isRandom = launch.options.schedule != Schedule::Lockstep;
  bool didAnything = false;
  auto finish = [&](Outcome outcome) {
    if (outcome == Outcome::Done)
      takeCounters(tally);
    return outcome;
  };
  executed = 0;
  while (executed < quantum) {
    bool anyLeft = false, anyRan = false, allSpin = true, anyPolling = false;
    bool anySpinning = false;
    for (size_t i = 0; i < runs.size(); ++i) {
      // RandomWarps: any warp, as often as it falls on it.
      size_t at = isRandom ? random.below(unsigned(runs.size())) : i;
      WarpRun &run = *runs[at];
      if (!run.groups.empty())
        anyLeft = true;
      if (run.groups.empty() || !run.isRunnable)
        continue;
      uint64_t fuel = turnFuel;
      Turn turn = run.run(tally, fuel);
      executed += turnFuel - fuel;
      if (launch.findings->isStopped())
        return finish(Outcome::Stuck);
      anyRan |= run.progressed;
      allSpin &= turn == Turn::Spinning || turn == Turn::Blocked ||
                 turn == Turn::Polling || turn == Turn::Done;
      if (turn == Turn::Blocked)
        run.isRunnable = false;
      anyPolling |= turn == Turn::Polling;
      anySpinning |= turn == Turn::Spinning;
      if (executed >= quantum)
        break;
    }
    didAnything |= anyRan;
    if (isRandom && !anyRan) {
      // The dice may have missed those that can run.
      anyLeft = false;
      for (const auto &run : runs)
        anyLeft |= !run->groups.empty();
    }
    if (!anyLeft)
      return finish(Outcome::Done);
    if (!anyRan) {
      bool anyRunnable = false;
      for (const auto &run : runs)
        anyRunnable |= run->isRunnable && !run->groups.empty();
      if (!anyRunnable && waitsForCluster())
        return finish(didAnything ? Outcome::Spent : Outcome::Waiting);
      if (!anyRunnable) {
        reportStuck();
        return finish(Outcome::Stuck);
      }
      if (isRandom && !anyPolling && ++spinRounds < 1000)
        continue;
      spinRounds = 0;
      watch();
      return finish(didAnything ? Outcome::Spent : Outcome::Waiting);
    }
    bool isSpin = allSpin && (anySpinning || anyPolling);
    // Warps that meet at barriers may go round in a circle too, but most do
    // not, and to look costs as much as they do.
    if (isSpin || (allSpin && ++barrierRounds % barrierRoundsALook == 0))
      watch();
    if (isSpin && ++spinRounds >= (launch.shape.cooperative ? 2u : 8u)) {
      spinRounds = 0;
      return finish(Outcome::Spun);
    }
    if (!isSpin)
      spinRounds = 0;
  }
  return finish(spinRounds ? Outcome::Spun : Outcome::Spent);
}

static uint64_t clustersToRun(const Launch &launch) {
  if (!launch.options.blocks.empty())
    return launch.options.blocks.size();
  uint64_t count = 1;
  for (unsigned i = 0; i < 3; ++i)
    count *= launch.shape.grid[i] / launch.shape.cluster[i];
  return count;
}

namespace {
/// The clusters of a launch, and who runs which. Most have one block.
class Pool {
public:
  Pool(Launch &launch, const FunctionTable &functions, unsigned mostResident)
      : launch(launch), functions(functions), mostResident(mostResident) {
    numClusters = clustersToRun(launch);
    order = Random(launch.options.seed);
    BlockOrder wanted = launch.options.order;
    if (wanted == BlockOrder::OfSchedule &&
        launch.options.schedule != Schedule::Lockstep)
      wanted = BlockOrder::Random;
    if (wanted == BlockOrder::Descending) {
      stride = numClusters - 1;
      firstCluster = numClusters - 1;
    }
    // A stride that meets each one once.
    if (wanted == BlockOrder::Random && numClusters > 2) {
      do
        stride = 1 + order.next() % (numClusters - 1);
      while (std::gcd(stride, numClusters) != 1);
      firstCluster = order.next() % numClusters;
    }
  }

  void work(Tally &tally);
  /// Of blocks that a fault left where they were.
  void countUnfinished(Tally &tally) {
    for (const std::unique_ptr<ClusterRun> &run : aside)
      run->takeCounters(tally);
  }

private:
  struct Item {
    std::unique_ptr<ClusterRun> run;
    bool isNew = false;
    uint64_t number = 0;
    uint64_t epoch = 0;  ///< When it was taken.
    uint64_t memory = 0; ///< Its state then, by number.
  };
  std::optional<Item> take();
  void giveBack(Item item, ClusterRun::Outcome outcome, uint64_t executed);

  Launch &launch;
  const FunctionTable &functions;
  uint64_t mostResident = 0, numClusters = 0, stride = 1, firstCluster = 0;
  Random order{0};

  std::mutex lock;
  std::condition_variable changed;
  uint64_t nextCluster = 0, numResident = 0, numDone = 0, numRunning = 0;
  /// Slices given to blocks that were put aside since a block was begun.
  uint64_t resumed = 0;
  /// Counts slices in which something happened; how many blocks have done
  /// nothing but wait since the last one.
  uint64_t epoch = 1, numWaiting = 0;
  /// Counts slices that changed memory; how many blocks go round in a circle,
  /// or wait, since the last one.
  uint64_t memory = 1, numCycling = 0;
  /// Counts slices that ended neither in spinning nor in waiting.
  uint64_t advances = 1;
  uint64_t executed = 0;
  std::deque<std::unique_ptr<ClusterRun>> aside;
  std::vector<std::unique_ptr<ClusterRun>> unused;
};

std::optional<Pool::Item> Pool::take() {
  std::unique_lock<std::mutex> held(lock);
  bool hasPaused = false;
  for (;;) {
    auto isOver = [&] {
      return launch.findings->isStopped() || numDone == numClusters;
    };
    if (isOver())
      return std::nullopt;
    bool mayBegin = nextCluster < numClusters && numResident < mostResident;
    // All that were put aside have had another turn, or all have to begin, or
    // the next one seems to wait for one that has not begun.
    bool shouldBegin = mayBegin && (launch.shape.cooperative || aside.empty() ||
                                    resumed >= aside.size() ||
                                    aside.front()->spunIn == advances);
    if (shouldBegin || (mayBegin && aside.empty())) {
      Item item;
      if (!unused.empty()) {
        item.run = std::move(unused.back());
        unused.pop_back();
      }
      item.isNew = true;
      item.epoch = epoch;
      item.memory = memory;
      item.number = nextCluster++;
      ++numResident;
      ++numRunning;
      resumed = 0;
      return item;
    }
    // All behind it spun or waited too. What they wait for may be with a
    // host thread that the system does not run: they would spend the budget.
    if (!aside.empty() && !mayBegin && numRunning && !hasPaused &&
        aside.front()->spunIn == advances) {
      hasPaused = true;
      uint64_t before = advances;
      changed.wait_for(held, spinPause, [&] {
        return isOver() || advances != before || !numRunning;
      });
      continue;
    }
    if (!aside.empty()) {
      Item item;
      item.run = std::move(aside.front());
      aside.pop_front();
      item.epoch = epoch;
      item.memory = memory;
      ++numRunning;
      ++resumed;
      return item;
    }
    changed.wait(held);
  }
}

void Pool::giveBack(Item item, ClusterRun::Outcome outcome, uint64_t ran) {
  std::lock_guard<std::mutex> held(lock);
  --numRunning;
  executed += ran;
  uint64_t budget = launch.options.instructionBudget;
  ClusterRun *run = item.run.get();
  bool hasSpun = outcome == ClusterRun::Outcome::Spun;
  advances += !hasSpun && outcome != ClusterRun::Outcome::Waiting;
  run->spunIn = hasSpun ? advances : 0;
  auto stopWith = [&](FindingKind kind, const std::string &message) {
    if (launch.findings->isStopped())
      return;
    Finding finding;
    finding.kind = kind;
    finding.kernel = launch.program->function->name;
    run->place(finding);
    finding.message = message;
    launch.findings->add(std::move(finding));
    launch.findings->stop();
  };
  if (budget && executed > budget)
    stopWith(FindingKind::Budget,
             "ran for more than the " + std::to_string(budget) +
                 " warp instructions that are allowed; " + run->whereabouts());
  if (run->takeChanges()) {
    ++memory;
    numCycling = 0;
  }
  bool isCycling = run->isCycling() && item.memory == memory &&
                   outcome != ClusterRun::Outcome::Done;
  if (isCycling != (run->cyclesIn == memory)) {
    run->cyclesIn = isCycling ? memory : 0;
    numCycling += isCycling ? 1 : -1;
  }
  if (isCycling && numCycling == numResident &&
      !(nextCluster < numClusters && numResident < mostResident))
    stopWith(FindingKind::Deadlock,
             "no thread can go on: all wait, or look again and again at memory "
             "that nobody changes any more: " +
                 run->whereabouts());
  if (outcome != ClusterRun::Outcome::Waiting) {
    ++epoch;
    numWaiting = 0;
  } else if (item.epoch == epoch) {
    // All that it could wait for was as it is now.
    if (run->waitedIn != epoch) {
      run->waitedIn = epoch;
      run->timesWaited = 0;
    }
    numWaiting += ++run->timesWaited == mostWaits;
    if (numWaiting == numResident &&
        !(nextCluster < numClusters && numResident < mostResident))
      stopWith(FindingKind::Deadlock,
               "all blocks that can run wait: " + run->whereabouts());
  }
  if (outcome == ClusterRun::Outcome::Done) {
    ++numDone;
    --numResident;
    unused.push_back(std::move(item.run));
  } else {
    aside.push_back(std::move(item.run));
  }
  changed.notify_all();
}

void Pool::work(Tally &tally) {
  uint64_t quantum =
      launch.shape.cooperative ? cooperativeQuantum : blockQuantum;
  if (uint64_t budget = launch.options.instructionBudget)
    // All blocks get their turns before one that does not end spends it all.
    quantum = std::min(quantum, std::max<uint64_t>(budget / 64, 1));
  while (std::optional<Item> item = take()) {
    if (!item->run)
      item->run = std::make_unique<ClusterRun>(launch, functions);
    if (item->isNew) {
      uint64_t at = (firstCluster + uint64_t((unsigned __int128)item->number *
                                             stride % numClusters)) %
                    numClusters;
      const std::vector<ChosenBlock> &chosen = launch.options.blocks;
      item->run->reset(chosen.empty() ? ChosenBlock{at} : chosen[at]);
    }
    uint64_t ran = 0;
    item->run->beginWatch(item->memory);
    ClusterRun::Outcome outcome = item->run->run(tally, quantum, ran);
    giveBack(std::move(*item), outcome, ran);
  }
  std::lock_guard<std::mutex> held(lock);
  changed.notify_all();
}
} // namespace

std::string BlockRun::whereabouts() const {
  std::string where;
  unsigned listed = 0;
  for (const auto &run : runs)
    if (!run->groups.empty() && listed++ < 8)
      where += (where.empty() ? "" : "; ") + run->whereabouts();
  return where;
}

void BlockRun::place(Finding &finding) const {
  finding.block = block.index;
  const WarpRun *in = nullptr;
  const Group *at = nullptr;
  for (const auto &run : runs)
    for (const Group &group : run->groups) {
      // Rather lanes that went on for long than those that wait for them.
      auto rank = [](const Group &of) {
        return std::make_tuple(of.state == Group::State::Ready, of.lastTurn,
                               of.patience);
      };
      if (at && rank(group) <= rank(*at))
        continue;
      in = run.get();
      at = &group;
    }
  if (!at)
    return;
  const Program &program = *at->frame->program;
  setPlace(finding, program, program.code[at->pc].source);
  finding.thread = in->warp.threadOf(__builtin_ctz(at->mask));
}

void runBlocks(Launch &launch, const FunctionTable &functions,
               unsigned mostResident, Tally &tally) {
  const std::array<unsigned, 3> &size = launch.shape.cluster;
  Pool pool(launch, functions,
            std::max(1u, mostResident / (size[0] * size[1] * size[2])));
  uint64_t numClusters = clustersToRun(launch);
  unsigned numThreads = launch.options.hostThreads;
  if (!numThreads)
    numThreads = std::max(1u, std::thread::hardware_concurrency());
  numThreads = unsigned(std::min<uint64_t>(numThreads, numClusters));
  std::vector<Tally> tallies(numThreads);
  for (Tally &one : tallies)
    one.ops.resize(functions.programs.size());
  std::vector<std::thread> others;
  for (unsigned i = 1; i < numThreads; ++i)
    others.emplace_back([&, i] { pool.work(tallies[i]); });
  pool.work(tallies[0]);
  for (std::thread &other : others)
    other.join();
  pool.countUnfinished(tally);
  tally.ops.resize(functions.programs.size());
  for (const Tally &one : tallies) {
    tally.counters += one.counters;
    for (size_t f = 0; f < one.ops.size(); ++f) {
      if (tally.ops[f].size() < one.ops[f].size())
        tally.ops[f].resize(one.ops[f].size());
      for (size_t i = 0; i < one.ops[f].size(); ++i) {
        tally.ops[f][i].warps += one.ops[f][i].warps;
        tally.ops[f][i].lanes += one.ops[f][i].lanes;
      }
    }
  }
}

} // namespace fsr::ptx
