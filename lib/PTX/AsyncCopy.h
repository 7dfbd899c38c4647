// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `cp.async` that is under way. A copy happens at the latest moment that PTX
// allows: when its thread waits for its group. Until then its destination is
// in flight, and what is there must not be touched.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_ASYNCCOPY_H
#define FSR_LIB_PTX_ASYNCCOPY_H

#include "Warp.h"

#include <vector>

namespace fsr::ptx {

struct MemoryInfo;

/// Of one warp. Groups are a lane's own: they are counted from 0 on.
struct AsyncQueue {
  struct Copy { ///< One instruction.
    const Op *op = nullptr;
    const MemoryInfo *to = nullptr, *from = nullptr;
    LaneMask lanes = 0; ///< That still have it before them.
    unsigned bytes = 0;
    uint32_t tick = 0;    ///< At its issue.
    LaneMask tainted = 0; ///< By their addresses.
    std::array<uint64_t, warpLanes> target{}, source{};
    std::array<uint8_t, warpLanes> sourceBytes{}; ///< The rest is zero.
    std::array<uint32_t, warpLanes> group{};
  };
  std::vector<Copy> copies; ///< In program order.
  std::array<uint32_t, warpLanes> openGroup{};
};

/// The open copies of `lanes` become a group.
void commitCopies(Warp &warp, LaneMask lanes);
/// All but the `keep` newest groups of each of `lanes` complete.
void waitCopies(Warp &warp, LaneMask lanes, uint32_t keep);
/// All copies of `lanes` complete, also those of no group.
void finishCopies(Warp &warp, LaneMask lanes);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_ASYNCCOPY_H
