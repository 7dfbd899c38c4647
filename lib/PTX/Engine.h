// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Running: a warp as groups of lanes that stand at one instruction, a block as
// warps and barriers. A warp or block runs for a bounded number of
// instructions and says why it stopped, so that all that wait for one another
// come to their turn. Schedule.cpp spreads blocks over host threads.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_ENGINE_H
#define FSR_LIB_PTX_ENGINE_H

#include "Block.h"

#include <deque>

namespace fsr::ptx {

/// How often an op ran.
struct OpCount {
  uint64_t warps = 0, lanes = 0;
};

/// What one host thread counts.
struct Tally {
  std::vector<std::vector<OpCount>> ops; ///< By `Program::number`, by op.
  Counters counters;
};

/// A small generator, the same on all hosts.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  /// Below `bound`, which is not 0.
  uint32_t below(uint32_t bound) { return uint32_t(next() >> 32) % bound; }

private:
  uint64_t state;
};

/// Lanes of a warp that stand at the same op of the same frame.
struct Group {
  enum class State : uint8_t {
    Ready,
    AtWarpSync, ///< Waits for lanes of its mask.
    AtBarrier,  ///< An aligned barrier: waits for the warp's other lanes.
    InBarrier,  ///< Counted by the barrier; waits for it.
    Polling,    ///< Tries again on the warp's next turn.
  } state = State::Ready;
  uint32_t pc = 0;
  LaneMask mask = 0;
  std::shared_ptr<Frame> frame;
  unsigned barrier = 0; ///< Where it is in one.
  /// The turn at which it had gone on for so long that others came first, and
  /// how long it has gone on since.
  uint64_t lastTurn = 0;
  unsigned patience = 0;
};

class BlockRun;
class ClusterRun;
/// A kernel and the functions that it may reach. The address of a function is
/// `firstFunctionAddress` and its number in the module in strides.
struct FunctionTable {
  std::vector<const Program *> programs;  ///< By `Program::number`.
  std::vector<const Program *> byAddress; ///< By number in the module, or null.
};
constexpr uint64_t firstFunctionAddress = 0x10000;
constexpr uint64_t functionStride = 16;

class WarpRun {
public:
  WarpRun(BlockRun &block, unsigned index);

  enum class Turn : uint8_t {
    Done,     ///< All lanes exited.
    Blocked,  ///< Nothing to do before others do something.
    Polling,  ///< Waits for what comes without a sign.
    Spinning, ///< Looked at the same memory again and again.
    Spent,    ///< Used up its instructions, or gave way.
  };
  /// Runs for about `fuel` instructions at most; `fuel` is reduced.
  Turn run(Tally &tally, uint64_t &fuel);
  /// Puts all lanes to the start of the kernel.
  void reset(LaneMask existing, uint64_t seed);

  LaneMask live() const { return warp.existing & ~warp.exited; }
  /// "lanes 0-15 wait at line 40 `bar.sync 0;`" for each group, and who exited.
  std::string whereabouts() const;

  Warp &warp;
  std::vector<Group> groups;
  bool isRunnable = true;
  bool progressed = false; ///< Since its last turn began.

private:
  friend class BlockRun;
  friend class ClusterRun;
  enum class Stop : uint8_t { Regroup, Fuel, Spinning };

  template <bool hasShadow>
  Stop runGroup(size_t at, Tally &tally, uint32_t limit, uint64_t &fuel);
  /// One op that is not a plain one; false: the group stops here.
  bool control(size_t at, const Step &step);
  void runGeneral(const Step &step, LaneMask active, LaneMask mask,
                  bool tracksTaint);
  void passTaint(const Op &op, LaneMask active, LaneMask mask);
  /// The results of a load that other threads may race with on purpose.
  void taintPolled(const Op &op, LaneMask active);
  void checkWritten(const Op &op, LaneMask active);
  void checkGuard(const Op &op, LaneMask mask);
  bool syncWarp(size_t at, const Op &op);
  bool jumpIndexed(size_t at, const Op &op);
  void exitLanes(size_t at);

  // Call.cpp.
  bool call(size_t at, const Op &op);
  void callBuiltin(Group &group, const Op &op, const CallInfo &info);
  void returnFrom(size_t at);
  void printFormatted(const Op &op, const CallInfo &info, unsigned lane);
  void failAssert(const Op &op, const CallInfo &info, unsigned lane);
  std::shared_ptr<Frame> enter(const Program &program, LaneMask lanes,
                               uint64_t localBase);
  std::string readText(uint64_t address, unsigned lane, size_t most);
  bool readGeneric(uint64_t address, unsigned lane, void *to, size_t bytes);

  void load(const Group &group);
  void fillSpecials(Frame &frame);
  /// Lanes for which `slot` differs from the first lane's go into a group of
  /// their own; true: there were some.
  bool splitByValue(size_t at, Slot slot, bool isWide);
  void splitOff(size_t at, LaneMask lanes, uint32_t pc);
  void dropGroup(size_t at);
  void mergeReady();
  std::optional<size_t> choose();
  uint32_t limitFor(size_t at) const;
  /// What waits inside the warp and can go on now; true: something can.
  bool resolve();
  bool resolveWarpSyncs();
  /// Lanes wait for others of their mask, which cannot come; false: none do.
  bool reportAbsent();
  /// The lanes of `mask` that `op` waits for.
  LaneMask maskOf(const Op &op, unsigned lane);

  // Spin.cpp.
  /// Looks whether lanes are where they were before; true: all of them go round
  /// in a circle, or wait.
  bool watchSpin();
  using LaneStates = std::array<uint64_t, warpLanes>;
  /// Of all lanes that stand in the group's frame.
  LaneStates statesOf(const Group &group) const;
  struct Spin {
    LaneMask ran = 0;    ///< Since the last look.
    LaneMask cycles = 0; ///< Came back to a state in which they were before.
    uint64_t looks = 0;
    LaneStates state{}; ///< At a look of a power of two.
  } spin;

  BlockRun &run_;
  Random random{0};
  uint64_t turn = 0;
  unsigned polls = 0;
  std::vector<std::shared_ptr<Frame>> spareFrames;
  LocalMemory localMemory;
  std::shared_ptr<ShadowRegisters> shadow; ///< Null where there is none.
  const Op *lastExit = nullptr;
  const Program *lastExitProgram = nullptr;
};

class BlockRun {
public:
  BlockRun(ClusterRun &cluster, Launch &launch, const FunctionTable &functions);
  ~BlockRun();

  /// `chosen` says which threads there are.
  void reset(const std::array<unsigned, 3> &index, const ChosenBlock &chosen);
  /// Where the system's part of shared memory begins, behind the kernel's own;
  /// it is there for kernels that ask.
  uint64_t reservedShared() const {
    uint64_t own = launch.program->sharedBytes + launch.shape.sharedBytes;
    return (own + 127) / 128 * 128;
  }

  enum class Outcome : uint8_t {
    Done,
    Spent,   ///< More to do.
    Spun,    ///< Looked at the same memory again and again at the end.
    Waiting, ///< Did nothing but wait for other blocks.
    Stuck,   ///< Can never go on; reported.
  };
  Outcome run(Tally &tally, uint64_t quantum, uint64_t &executed);
  /// Of the first warps that are not done.
  std::string whereabouts() const;
  /// Puts `finding` where the first lanes are that run, or else wait.
  void place(Finding &finding) const;
  void takeCounters(Tally &tally);
  /// Whether all threads, since memory is as it is now, wait or went round in a
  /// circle. `epoch` counts the changes that other blocks made.
  void beginWatch(uint64_t epoch);
  /// All wait for the cluster's barrier counts as well.
  bool isCycling(uint64_t epoch) const {
    return (cycles && watchedEpoch == epoch) ||
           (isBlocked() && waitsForCluster());
  }
  /// Its threads changed memory since they were asked last.
  bool takeChanges();
  /// Nothing of it can go on before other blocks of its cluster do something.
  bool isBlocked() const;

  Block block;
  Launch &launch;
  const FunctionTable &functions;

private:
  friend class WarpRun;
  friend class ClusterRun;
  // Barrier.cpp.
  struct Barrier {
    bool isOpen = false;
    bool isReduction = false;
    unsigned expected = 0; ///< 0: all of the block.
    unsigned arrived = 0, arrivedRounded = 0;
    unsigned popc = 0;
    bool all = true, any = false, tainted = false;
    std::vector<LaneMask> lanes; ///< By warp: who came.
    const Op *first = nullptr;
    const Program *firstProgram = nullptr;
  };
  void reportDivergence(WarpRun &run, const Op &op, unsigned lane);
  /// The group comes to its barrier op; sets its state.
  void arrive(WarpRun &warp, size_t group, bool isDivergent);
  void completeIfFull(unsigned number, WarpRun &last, const Op &op);
  /// Lanes exited: barriers of the whole block may be full now.
  void lanesExited(WarpRun &warp, const Op &op, LaneMask lanes);
  void reportStuck();
  void watch(); ///< Spin.cpp.
  uint64_t totalChanges() const;
  unsigned liveThreads() const;
  // Cluster.cpp.
  void arriveAtCluster(WarpRun &warp, size_t group, bool isDivergent);
  bool waitsForCluster() const;
  void leaveClusterBarrier();

  ClusterRun &cluster_;
  std::vector<std::unique_ptr<WarpRun>> runs;
  std::array<Barrier, 16> barriers;
  unsigned numOpen = 0;
  unsigned spinRounds = 0, barrierRounds = 0;
  bool hasReservedShared = false;
  bool cycles = false;
  uint64_t watchedEpoch = 0, watchedChanges = 0, toldChanges = 0;
  Random random{0};
};

/// `Group::barrier` of those that wait at the cluster's.
constexpr unsigned clusterBarrier = 16;

/// Blocks that are begun together and run in turns by one host thread; where a
/// launch has no clusters, one block.
class ClusterRun {
public:
  ClusterRun(Launch &launch, const FunctionTable &functions);

  /// Begins the cluster of that number.
  /// The cluster of that number; chosen threads are of clusters of one block.
  void reset(const ChosenBlock &chosen);
  using Outcome = BlockRun::Outcome;
  Outcome run(Tally &tally, uint64_t quantum, uint64_t &executed);
  std::string whereabouts() const;
  void place(Finding &finding) const;
  void takeCounters(Tally &tally);
  /// All threads that have not exited came to the cluster's barrier: they go
  /// on.
  void completeIfFull();

  // The scheduler's: since when it has done nothing but wait.
  uint64_t waitedIn = 0;
  unsigned timesWaited = 0;
  /// How many slices had got on when its last one ended in spinning, or 0.
  uint64_t spunIn = 0;
  /// The state of memory, by number, under which it goes round in a circle.
  uint64_t cyclesIn = 0;

  /// As of its blocks; `epoch` counts the changes that other clusters made.
  void beginWatch(uint64_t epoch);
  bool isCycling() const;
  bool takeChanges();

  Cluster cluster;

private:
  void finish(BlockRun &run);
  void reportStuck();

  Launch &launch;
  std::vector<std::unique_ptr<BlockRun>> blocks; ///< By rank.
  Random random{0};
  /// Counts changes of memory by others and by its own blocks.
  uint64_t watchEpoch = 0;
  uint64_t outerEpoch = 0; ///< As told last.
  bool hasChanged = false; ///< Since it was asked last.
};

/// Runs all blocks of a launch on host threads. Counts go to `tally`.
void runBlocks(Launch &launch, const FunctionTable &functions,
               unsigned mostResident, Tally &tally);

/// "lanes 0-3,7".
std::string describeLanes(LaneMask lanes);
/// "line 40 `bar.sync 0;`" of a program's op.
std::string describePlace(const Program &program, uint32_t pc);
/// Line and text of an instruction of the program's function.
void setPlace(Finding &finding, const Program &program, uint32_t source);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_ENGINE_H
