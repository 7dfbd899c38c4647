// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rounds up, so that a loop around poll(2) never spins through the last
// millisecond of its deadline.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Deadline.h"

#include <algorithm>
#include <climits>
#include <cstdint>

int fsr::Deadline::pollTimeout() const {
  if (!bounded)
    return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(at - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
}
