// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A function ready to run: one `Op` an instruction, with its handler chosen and
// its operands turned into register slots. Everything that can be decided once
// is decided here, so that a handler reads its sources, writes its results and
// does nothing else.
//
// A register slot is 32 lanes of 8 bytes, in the order of the lanes. Values of
// up to 32 bits lie packed in its first 128 bytes, one uint32_t a lane, those
// of 8 and 16 bits zero-extended; 64-bit values one uint64_t a lane; a
// predicate is one uint32_t, a bit a lane; 128-bit values take two slots, low
// half first. Immediates and special registers that do not change (%tid,
// %ntid, %laneid…) are slots as well, filled before the first instruction, so
// that an operand is always a slot.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_PROGRAM_H
#define FSR_LIB_PTX_PROGRAM_H

#include "fsr/PTX/VirtualGpu.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <memory>

namespace fsr::ptx {

using LaneMask = uint32_t;
constexpr unsigned warpLanes = 32;
constexpr LaneMask allLanes = ~LaneMask(0);
constexpr size_t slotBytes = warpLanes * 8;

struct Op;
struct Program;
class Warp;

/// Executes `op` for the lanes of `active`, which is never empty and has the
/// guard applied.
using Handler = void (*)(Warp &warp, const Op &op, LaneMask active);

/// A slot. The top bit: of the program's constants, which all warps share.
using Slot = uint32_t;
constexpr Slot constantBit = Slot(1) << 31;
constexpr Slot noSlot = ~Slot(0);

/// What the engine itself has to do; everything else is `Plain`.
enum class Control : uint8_t {
  Plain,
  Branch,      ///< To `target`, by the guard.
  BranchIndex, ///< brx.idx: source 0, over `info` (LabelTable).
  Call,        ///< `info` (CallInfo).
  Return,
  Exit,
  Trap,
  Barrier,  ///< bar, barrier: `info` (BarrierInfo).
  WarpSync, ///< Waits for the lanes of a mask, then runs the handler:
            ///< source `maskSource` holds the mask.
  Fence,    ///< `info` (FenceInfo); then goes on.
  Yield,    ///< nanosleep and the like: others first.
  Wait,     ///< Runs the handler; where it sets `Warp::mustWait` for lanes,
            ///< these repeat the instruction later (mbarrier waits,
            ///< cluster barriers).
};

/// For counters.
enum class OpClass : uint8_t {
  Integer,
  Float16,
  Float32,
  Float64,
  Special, ///< Approximate functions.
  Conversion,
  Control,
  Memory,
  Barrier,
  Shuffle,
  Tensor,
  Atomic,
};

/// How taint passes from sources to results.
enum class Flow : uint8_t {
  Lanes,    ///< Lane by lane: the engine does it.
  Across,   ///< Any lane's source may reach any lane: the engine smears.
  Handler,  ///< The handler does it (memory, atomics).
  Schedule, ///< The result depends on the schedule: tainted always.
};

struct Op {
  Handler run = nullptr;
  /// Shadow mode: runs before `run`, while the sources still hold; null: the
  /// results have no shadow (their own value is the truth).
  Handler shadow = nullptr;

  Control control = Control::Plain;
  OpClass opClass = OpClass::Integer;
  Flow flow = Flow::Lanes;
  uint8_t numResults = 0, numSources = 0;
  uint8_t maskSource = 0;
  /// Floating-point operations a lane (an fma is 2; an mma counts for the
  /// warp's share).
  uint16_t flops = 0;

  bool guardNegated = false;
  bool mayBeUninitialized = false; ///< Some source is not written on all paths.
  bool isApproximate = false;
  bool isPartial = false; ///< Writes parts of its result: it is a source too.
  /// Copies its sources: one that is not written is no fault yet.
  bool isCopy = false;
  /// An approximate value steers it.
  bool approximateSteers = false;
  /// Sources (a bit each) that are addresses or steer: taint there breaks the
  /// proof. Set by the family; the guard of a memory operation and of a branch
  /// count by themselves.
  uint8_t steers = 0;

  Slot guard = noSlot;
  /// Results first, then sources. An op's slots stand here and in `guard` and
  /// nowhere else: they are numbered anew once all are known.
  llvm::SmallVector<Slot, 6> slots;
  int64_t offset = 0;         ///< Of an address.
  uint32_t target = 0;        ///< Of a branch.
  uint32_t source = 0;        ///< Index of the instruction in its function.
  uint64_t immediate = 0;     ///< The family's own: a lop3 table, a selector.
  const void *info = nullptr; ///< Owned by the program.
  const void *shadowInfo = nullptr; ///< What `shadow` reads; Shadow.h.

  Slot result(unsigned i) const { return slots[i]; }
  Slot operand(unsigned i) const { return slots[numResults + i]; }
  llvm::ArrayRef<Slot> results() const {
    return llvm::ArrayRef<Slot>(slots).take_front(numResults);
  }
  llvm::ArrayRef<Slot> sources() const {
    return llvm::ArrayRef<Slot>(slots).drop_front(numResults);
  }
};

struct LabelTable {
  std::vector<uint32_t> targets;
};

struct CallInfo {
  const Program *callee = nullptr; ///< Null: indirect, through source 0.
  const Op *unused = nullptr;
  /// Arguments and results are `.param` variables of the caller: offsets in its
  /// parameter frame, in the order of the callee's declaration. Results that
  /// nobody wants are `ignored`.
  std::vector<uint32_t> argumentOffsets, resultOffsets;
  static constexpr uint32_t ignored = ~uint32_t(0);
  /// printf, assert and the other functions that CUDA gives.
  enum class Builtin : uint8_t {
    None,
    Vprintf,
    AssertFail,
    Malloc,
    Free
  } builtin = Builtin::None;
};

struct BarrierInfo {
  enum class Kind : uint8_t {
    Sync,
    Arrive,
    ReducePopc,
    ReduceAnd,
    ReduceOr,
    ClusterArrive, ///< Of the cluster's barrier: no sources.
    ClusterWait,
  } kind = Kind::Sync;
  /// `.aligned`, and `bar` in all its forms: all lanes of a warp come together.
  bool isAligned = true;
  bool hasCount = false;
  bool isRelaxed =
      false; ///< An arrival at the cluster's that releases nothing.
  /// Sources: the barrier's number, then the count where `hasCount`, then the
  /// predicate of a reduction.
};

enum class Scope : uint8_t { Block, Cluster, Gpu, System };

struct FenceInfo {
  Scope scope = Scope::Gpu;
  bool isSequential = false;
};

/// How a frame of local variables and call parameters is laid out.
struct FrameLayout {
  uint64_t localBytes = 0; ///< A lane: `.local` and `.param` variables.
  llvm::StringMap<uint64_t> offsets;
};

/// One special register that is a slot, or the address of a local variable.
struct SpecialSlot {
  std::string name; ///< "%tid.x"; empty: `Frame::localBase` plus `offset`.
  Slot slot = 0;
  unsigned width = 32; ///< 32 or 64 bits a lane; 1: a predicate.
  uint64_t offset = 0;
};

/// What the engine's inner loop reads of an op.
struct Step {
  enum Kind : uint8_t {
    Quick,     ///< Plain: one result at most, up to three sources.
    Memory,    ///< Plain, and a place to switch warps at.
    General,   ///< Plain, all that the others leave out.
    Controlled ///< `Op::control` says what.
  };
  Handler run = nullptr;
  const Op *op = nullptr;
  Slot guard = noSlot;
  LaneMask guardFlip = 0; ///< All ones for `@!%p`.
  /// Of taint masks; what has none points past the last slot, to a spare.
  uint32_t result = 0, sources[3] = {0, 0, 0};
  uint32_t steers = 0; ///< The address of a memory op.
  Kind kind = General;
  Control control = Control::Plain;
  /// May be what a loop waits with: volatile and ordered loads, atomics.
  bool isPolling = false;
  /// Stores and the like; atomics find out by themselves.
  uint8_t changesMemory = 0;
};

/// How the lanes of a slot lie; registers of different layouts never share one,
/// since diverged lanes may hold different registers in the same slot.
enum class SlotLayout : uint8_t { Predicate, Word, Double, Pair, Scratch };

struct Program {
  const Module *module = nullptr;
  const Function *function = nullptr;
  std::vector<Op> code;
  std::vector<Step> steps; ///< One an op.
  unsigned number = 0;     ///< Among the programs of a kernel.
  /// Slots, without the two spare ones that follow them: the first takes the
  /// marks of results that nobody asks for, the second has none ever.
  uint32_t numSlots = 0;
  std::vector<SlotLayout> layouts; ///< Of each slot.
  /// Slots of registers that may be read before they are written, and the
  /// function's number of each.
  std::vector<std::pair<Slot, uint32_t>> trackedRegisters;
  /// Constants, `slotBytes` each, lanes alike.
  std::vector<uint8_t> constants;
  std::vector<SpecialSlot> specials;
  FrameLayout frame;
  /// Of an entry: its parameter block; of a function: results, then parameters.
  std::vector<KernelParameter> parameters, results;
  uint64_t parameterBytes = 0;
  uint64_t sharedBytes = 0; ///< Static, with what its callees declare.
  bool usesGridSync = false;
  bool usesReservedShared = false; ///< Reads where the system's part begins.
  std::vector<std::shared_ptr<void>> infos; ///< What `Op::info` points to.
  /// The first instruction that is not supported: then there is no code.
  std::string unsupported;
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_PROGRAM_H
