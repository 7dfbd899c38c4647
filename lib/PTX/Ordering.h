// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which accesses are ordered. Each word of shared and global memory keeps its
// last writer and reader as (launch, block, thread, tick); a tick counts the
// barriers and fences of a block. An access is a race where the other one is of
// another thread, one of the two writes, not both are atomic, and no chain of
// barriers, warp synchronisations, or release and acquire through a flag stands
// between them.
//
// Within a block a matrix says up to which tick of warp v warp w has seen; it
// is joined at barriers. Between blocks, what a thread released at an atomic
// location, with the fences that PTX wants, is learnt by who acquires there.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_ORDERING_H
#define FSR_LIB_PTX_ORDERING_H

#include "Program.h"

namespace fsr::ptx {

class Warp;
class Block;

enum class Semantics : uint8_t {
  Weak,
  Volatile, ///< And `.relaxed`, `.mmio`: strong, orders nothing by itself.
  Acquire,
  Release,
  AcquireRelease,
};

/// What the engine tells when threads meet. `clock` members belong to the
/// implementation (Ordering.cpp).
struct BlockClock;

/// A block begins or ends its life.
std::shared_ptr<BlockClock> makeBlockClock(uint64_t block, unsigned numWarps);
/// All threads of the warps in `warps` (a bit each) passed a barrier.
void orderBarrier(Block &block, llvm::ArrayRef<Warp *> warps);
/// `bar.warp.sync` of these lanes.
void orderWarp(Warp &warp, LaneMask lanes);
void orderFence(Warp &warp, LaneMask lanes, Scope scope);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_ORDERING_H
