// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A GPU on the CPU: runs PTX, and sees what a GPU does not show. Warps of 32
// lanes, blocks spread over host threads, memory as a virtual 64-bit space with
// guard zones. docs/design/virtual-device.md says what is modelled, what is
// checked, and what is not.
//
// A fault of a kernel is a `Finding`, never an `llvm::Error`; an error is a
// module that cannot be read, an instruction that is not supported, or a call
// that makes no sense. Not thread-safe: one thread at a time calls.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_PTX_VIRTUALGPU_H
#define FSR_PTX_VIRTUALGPU_H

#include "fsr/PTX/Module.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>

namespace fsr::ptx {

enum class FindingKind : uint8_t {
  OutOfBounds, ///< No allocation, or past the end of one.
  Misaligned,
  Uninitialized, ///< A value that nothing wrote was used.
  WriteToConst,  ///< A store to memory that is read-only.
  SharedRace,
  GlobalRace,        ///< Between threads of a block or of the grid.
  UnorderedMessage,  ///< A flag was seen, what it announces is not ordered.
  BarrierDivergence, ///< Not all threads of a warp or block reach a barrier.
  BarrierMismatch,   ///< Counts or identities of a barrier that do not fit.
  Deadlock,
  FinishedBlock, ///< Shared memory of a block of the cluster that has ended.
  AsyncInFlight, ///< Touched what an asynchronous copy still writes.
  ShuffleMask,   ///< A lane named in a mask is not there, or reads one
                 ///< that takes no part.
  Budget,        ///< Ran for more instructions than allowed.
  Trap,
  Assert,
  BadJump,       ///< `brx` past its table, a call of what is no function.
  StackOverflow, ///< Calls nested too deep, local memory exhausted.
  Other,
};
/// "out of bounds"
llvm::StringRef nameOf(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::Other;
  std::string kernel;
  unsigned ptxLine = 0;
  std::string ptxText; ///< Of that line.
  std::string file;    ///< Of the CUDA source, where there is line info.
  unsigned line = 0;
  /// "sm_30_intrinsics.hpp:110", where that is code of another file, inlined
  /// at the line.
  std::string inlined;
  std::array<unsigned, 3> block{}, thread{};
  uint64_t address = 0;
  /// One sentence: what was touched, what was expected, by whom it was written.
  std::string message;
  /// Of the same kind at the same line of the source, or of the PTX where
  /// there is no line info.
  uint64_t count = 1;

  /// "out of bounds at softmax.cu:12 (PTX line 40 `ld.global…`): …; block
  /// (0,0,0), thread (31,0,0)".
  std::string text() const;
};

/// How warps are interleaved. A correct kernel is right under each.
enum class Schedule : uint8_t {
  Lockstep,    ///< Diverged lanes: the lowest instruction first; warps in turn.
  SplitLanes,  ///< Random subsets of lanes run ahead between synchronisations.
  RandomWarps, ///< Warps in random order, interrupted at memory operations.
};
llvm::StringRef nameOf(Schedule schedule);

/// What a launch did. Numbers of lanes where it says "lane", else of warps.
struct Counters {
  uint64_t warpInstructions = 0, laneInstructions = 0;
  uint64_t integer = 0, float16 = 0, float32 = 0, float64 = 0, special = 0,
           conversion = 0, control = 0, memory = 0, barrier = 0, shuffle = 0,
           tensor = 0, atomic = 0;
  uint64_t flops16 = 0, flops32 = 0, flops64 = 0, tensorFlops = 0; ///< Lanes.
  uint64_t globalLoadBytes = 0, globalStoreBytes = 0, sharedLoadBytes = 0,
           sharedStoreBytes = 0, localLoadBytes = 0, localStoreBytes = 0;
  uint64_t globalRequests = 0, globalSectors = 0; ///< 32 bytes each.
  /// Distinct global bytes touched, in sectors: what a perfect cache moves.
  uint64_t uniqueSectors = 0;
  uint64_t sharedRequests = 0, bankCycles = 0; ///< Equal: no conflicts.
  uint64_t branches = 0, divergentBranches = 0;
  /// Serialised updates: the lanes of one request that hit one address.
  uint64_t atomicSerial = 0;

  Counters &operator+=(const Counters &other);
};

/// How far the run can stand for a GPU's.
struct Fidelity {
  /// Instructions whose result PTX leaves to the hardware within a bound, as
  /// "ex2.approx.ftz.f32", with how many warps executed them.
  std::map<std::string, uint64_t> approximate;
  /// An approximate value reached an address or a branch.
  bool approximateSteers = false;
};

/// Whether the run stands for all data at this shape and launch.
struct Proof {
  bool holds = false;
  std::string broken; ///< The first thing that broke it, in one sentence.
  /// Data reached an address, a branch or a guard, whatever else broke it.
  bool isSteered = false;
};

/// In which order blocks begin. Those of a correct kernel may do so in any.
enum class BlockOrder : uint8_t {
  OfSchedule, ///< Ascending under Lockstep, else Random.
  Descending,
  Random,
};
llvm::StringRef nameOf(BlockOrder order);

/// A block of a grid, which of its warps run, and which lanes of those.
struct ChosenBlock {
  uint64_t number = 0; ///< With x fastest.
  uint32_t warps = ~uint32_t(0), lanes = ~uint32_t(0);
};

struct LaunchOptions {
  Schedule schedule = Schedule::Lockstep;
  BlockOrder order = BlockOrder::OfSchedule;
  /// What runs, each thread once; none: all. The others are as if they had not
  /// come to their turn yet, and the block ends without the other threads:
  /// for kernels whose blocks, or threads, do not look at one another.
  std::vector<ChosenBlock> blocks;
  uint64_t seed = 1;
  /// Of warp instructions; 0: none.
  uint64_t instructionBudget = 0;
  unsigned hostThreads = 0; ///< 0: as many as there are cores.
  bool checkRaces = true;
  bool checkUninitialized = true; ///< Reads of memory that nothing wrote.
  bool trackTaint = true;
  /// Each floating-point value carries its true value and a bound on its error;
  /// see `readShadow`.
  bool shadow = false;
  size_t mostFindings = 32;
};

struct LaunchShapeOf {
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  unsigned sharedBytes = 0; ///< Dynamic.
  bool cooperative = false;
};

struct LaunchResult {
  std::vector<Finding> findings;
  /// Notes that are no faults: the same value written by several threads.
  std::vector<Finding> remarks;
  /// False: stopped by a fault that a GPU would stop at.
  bool completed = false;
  Counters counters;
  Fidelity fidelity;
  Proof proof;
  /// Shadow mode: the first thing by which true values or bounds may be others
  /// than those of the kernel, in one sentence: a path that rounding chose, the
  /// bits of a rounded value used as an integer, an instruction with no rule.
  /// Empty: they hold.
  std::string shadowDoubt;
  std::string output; ///< Of printf, capped.
};

/// The true value of a float in memory and the bound on |held - true|, which is
/// infinite where nothing can be said. Not known: the held value, exact.
struct ShadowValue {
  double value = 0, bound = 0;
  bool isKnown = false;
};

struct KernelParameter {
  uint64_t bytes = 0, offset = 0, alignment = 0;
};

class VirtualGpu {
public:
  virtual ~VirtualGpu();

  /// Memory. Addresses look like a GPU's and are never the host's; nothing is
  /// given twice. Errors: out of memory, a pointer that is none, a range that
  /// leaves its allocation.
  virtual llvm::Expected<uint64_t> allocate(uint64_t bytes) = 0;
  virtual llvm::Error release(uint64_t address) = 0;
  virtual llvm::Error write(uint64_t address, const void *from,
                            uint64_t bytes) = 0;
  /// Uninitialised bytes read as they lie (a debugger may look).
  virtual llvm::Error read(void *to, uint64_t address, uint64_t bytes) = 0;
  /// `pattern` of 1, 2 or 4 bytes, `count` times.
  virtual llvm::Error fill(uint64_t address, uint32_t pattern, unsigned width,
                           uint64_t count) = 0;
  virtual llvm::Error copy(uint64_t to, uint64_t from, uint64_t bytes) = 0;
  /// Where the host finds the bytes, until the allocation is released, for work
  /// on them in place. With `writes` they count as written by it from here on,
  /// all of them.
  virtual llvm::Expected<uint8_t *> view(uint64_t address, uint64_t bytes,
                                         bool writes) = 0;
  /// Makes the range read-only for kernels, or writable again.
  virtual llvm::Error setConst(uint64_t address, bool isConst) = 0;
  /// Says whether the bytes are data, which another run of the launch may find
  /// otherwise: for `Proof`. What the host wrote is not, unless it is said.
  virtual llvm::Error setTainted(uint64_t address, uint64_t bytes,
                                 bool isTainted) = 0;
  /// Forgets that anything was written there.
  virtual llvm::Error setUninitialized(uint64_t address, uint64_t bytes) = 0;
  /// Calls `visit` with address and length of each run of bytes of the range
  /// that something wrote.
  using Visit = llvm::function_ref<void(uint64_t, uint64_t)>;
  virtual llvm::Error forWritten(uint64_t address, uint64_t bytes,
                                 Visit visit) = 0;
  /// And that the last launch touched, in pieces of 32 bytes; `address` is that
  /// of an allocation.
  virtual llvm::Error forTouched(uint64_t address, uint64_t bytes,
                                 Visit visit) = 0;
  /// Launches up to now have read nothing.
  virtual void forgetReads() = 0;
  /// Visits what launches have read since, in whole words of 4 bytes, with race
  /// checks on, and have not written; nothing is known of read-only memory
  /// (`setConst`). Errors: a range that leaves its allocation, more launches
  /// than are told apart (15).
  virtual llvm::Error forRead(uint64_t address, uint64_t bytes,
                              Visit visit) = 0;
  /// Maps host memory so that kernels and the calls above reach it under its
  /// own address (unified addressing).
  virtual llvm::Error mapHost(void *pointer, uint64_t bytes) = 0;
  virtual llvm::Error unmapHost(void *pointer) = 0;
  /// Whether `address` lies in device memory.
  virtual bool owns(uint64_t address) const = 0;
  virtual uint64_t freeBytes() const = 0;

  /// Modules. An instruction that is not supported is an error of the launch
  /// of a kernel that has it, not of the module.
  virtual llvm::Expected<unsigned> loadModule(llvm::StringRef ptx) = 0;
  virtual llvm::Error unloadModule(unsigned module) = 0;
  virtual llvm::Expected<std::vector<KernelParameter>>
  parameters(unsigned module, llvm::StringRef kernel) = 0;
  /// Of a module-scope `.global` or `.const` variable.
  virtual llvm::Expected<std::pair<uint64_t, uint64_t>>
  symbol(unsigned module, llvm::StringRef name) = 0;

  /// Runs to its end. `params` holds the parameter block, laid out as
  /// `parameters` says. Errors: no such kernel, an unsupported instruction
  /// (with line and text), a shape beyond the limits.
  virtual llvm::Expected<LaunchResult>
  launch(unsigned module, llvm::StringRef kernel, const LaunchShapeOf &shape,
         llvm::ArrayRef<uint8_t> params, const LaunchOptions &options) = 0;

  /// Shadow mode: what earlier launches with `shadow` left at a float of type
  /// `type`; not known where nothing did (then the held value is the truth).
  virtual llvm::Expected<ShadowValue> readShadow(uint64_t address,
                                                 Type type) = 0;
};

struct VirtualGpuOptions {
  uint64_t memoryBytes = uint64_t(16) << 30;
  unsigned multiprocessors = 132;
  uint64_t sharedBytesPerBlock = 227 << 10;
  unsigned threadsPerMultiprocessor = 2048;
};

std::unique_ptr<VirtualGpu> makeVirtualGpu(const VirtualGpuOptions &options);

} // namespace fsr::ptx

#endif // FSR_PTX_VIRTUALGPU_H
