// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a handler sees: the registers of a warp at its current frame, the block
// around it, the launch around that. Scheduling is the engine's (Engine.cpp);
// memory and the order of its accesses are Memory.h's.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_WARP_H
#define FSR_LIB_PTX_WARP_H

#include "Program.h"

#include <atomic>
#include <mutex>

namespace fsr::ptx {

class Block;
class Launch;
class Memory;
class SharedMemory;
class LocalMemory;
class ShadowRegisters;
struct AsyncQueue;
struct WarpClock;

/// Collects findings of a launch: the first of each kind and instruction is
/// kept, the rest counted. Thread-safe.
class FindingSink {
public:
  explicit FindingSink(size_t most) : most(most) {}
  /// `isRemark`: no fault.
  void add(Finding finding, bool isRemark = false);
  /// The launch is to end: a GPU would not go on.
  void stop() { stopped.store(true, std::memory_order_relaxed); }
  bool isStopped() const { return stopped.load(std::memory_order_relaxed); }
  std::vector<Finding> takeFindings(), takeRemarks();

private:
  size_t most;
  std::atomic<bool> stopped{false};
  std::mutex lock;
  std::vector<Finding> findings, remarks;
};

/// A call's registers and local variables; diverged lanes may have their own.
struct Frame {
  const Program *program = nullptr;
  std::shared_ptr<Frame> caller;
  uint32_t returnTo = 0;
  std::vector<uint8_t> registers; ///< numSlots * slotBytes.
  std::vector<LaneMask> taint, written;
  uint64_t localBase = 0; ///< Of its variables, in each lane's local memory.
  /// Results of the call that is under way, copied at its return.
  const Op *call = nullptr;
  unsigned depth = 0;
};

class Warp {
public:
  /// The lanes of a slot, packed: T of 1, 2 and 4 bytes in 32-bit cells (use
  /// uint32_t and convert), of 8 bytes in 64-bit cells.
  template <typename T>
  T *lanes(Slot slot) {
    return reinterpret_cast<T *>(bases[slot >> 31] +
                                 size_t(slot & ~constantBit) * slotBytes);
  }
  LaneMask &predicate(Slot slot) { return *lanes<LaneMask>(slot); }

  /// Which lanes of a slot depend on buffer contents.
  LaneMask taint(Slot slot) const {
    return slot & constantBit ? 0 : taintOf[slot];
  }
  void setTaint(Slot slot, LaneMask of, LaneMask value) {
    taintOf[slot] = (taintOf[slot] & ~of) | (value & of);
  }
  /// Which lanes of a slot were written; kept where the op says that it may
  /// matter, and by memory loads of uninitialised bytes.
  LaneMask written(Slot slot) const {
    return slot & constantBit ? allLanes : writtenOf[slot];
  }
  void setWritten(Slot slot, LaneMask of, LaneMask value) {
    writtenOf[slot] = (writtenOf[slot] & ~of) | (value & of);
  }

  /// A fault of `lane` at `op`. Fills place, thread and text.
  void report(const Op &op, unsigned lane, FindingKind kind, uint64_t address,
              const llvm::Twine &message);
  /// The same, and the launch ends.
  void fatal(const Op &op, unsigned lane, FindingKind kind, uint64_t address,
             const llvm::Twine &message);
  /// No fault, but worth saying.
  void remark(const Op &op, unsigned lane, FindingKind kind, uint64_t address,
              const llvm::Twine &message);
  /// What broke the proof; the first of a launch is kept.
  void breakProof(const Op &op, const llvm::Twine &why);
  /// What the shadow says may not be what the kernel does.
  void doubtShadow(const Op &op, const llvm::Twine &why);

  std::array<unsigned, 3> threadOf(unsigned lane) const;
  /// Linear in its block.
  unsigned threadIndex(unsigned lane) const { return index * 32 + lane; }

  uint8_t *bases[2] = {nullptr, nullptr};
  LaneMask *taintOf = nullptr, *writtenOf = nullptr;
  Frame *frame = nullptr;

  Block *block = nullptr;
  unsigned index = 0;           ///< In its block.
  LaneMask existing = allLanes; ///< Threads that the block has.
  LaneMask exited = 0;
  /// Lanes that arrived in the open phase of the cluster's barrier, and those
  /// that have yet to wait for one in which they did.
  LaneMask clusterArrived = 0, clusterOwed = 0;
  /// Lanes of the running group; a handler of `WarpSync` sees all that came.
  LaneMask group = 0;
  /// Set by a `Wait` handler: these lanes repeat the instruction later.
  LaneMask mustWait = 0;
  bool tracksTaint = true, checksRaces = true;

  Counters counters; ///< Of this host thread; summed at the end.
  LocalMemory *local = nullptr;
  ShadowRegisters *shadow = nullptr; ///< Null where the launch has none.
  AsyncQueue *async = nullptr;
  WarpClock *clock = nullptr; ///< Ordering.h
  /// Per warp, for backoff and spin detection.
  uint64_t executed = 0;
  /// How often it did something that may have changed memory.
  uint64_t changes = 0;
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_WARP_H
