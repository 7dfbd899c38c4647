// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loops over the lanes of a warp. Included inside a namespace, once for each
// set of CPU features that handlers are compiled for: a function of one set is
// never inlined into one of a smaller set.
//
//===----------------------------------------------------------------------===//

/// Runs `body(lane)` for the lanes of `active`; the loop over a full warp is
/// plain, so that the compiler can make vectors of it.
template <typename Body>
inline void forEachLane(LaneMask active, Body body) {
  if (active == allLanes) {
#pragma clang loop vectorize(assume_safety) unroll(disable)
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      body(lane);
    return;
  }
  for (LaneMask rest = active; rest; rest &= rest - 1)
    body(unsigned(__builtin_ctz(rest)));
}
