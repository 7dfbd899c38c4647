// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The handlers of loads and stores.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"

namespace fsr::ptx {

namespace {

void load(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info, op.operand(0), at);
  countAccess(warp, info, active, at, /*isWrite=*/false);
  loadLanes(warp, op, info, active, at);
}

void store(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info, op.operand(0), at);
  countAccess(warp, info, active, at, /*isWrite=*/true);
  storeLanes(warp, op, info, active, at);
}

} // namespace

Handler loadHandler(unsigned, unsigned) { return load; }
Handler storeHandler(unsigned, unsigned) { return store; }

} // namespace fsr::ptx
