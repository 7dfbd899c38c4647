// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ctrl-C. A thread of its own waits for SIGINT and SIGTERM, lets a write to the
// store that has begun come to its end, kills the children (they have process
// groups of their own, so the terminal does not reach them) and ends the
// process: 130 or 143. A store is whole at every moment, so nothing else has
// to be put in order.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TOOLS_FSRTUNE_INTERRUPT_H
#define FSR_TOOLS_FSRTUNE_INTERRUPT_H

#include "fsr/Store/Store.h"

#include <functional>
#include <memory>
#include <mutex>

namespace fsr {

/// Starts the thread. To be called once, before any other thread: they inherit
/// that the two signals are blocked. `beforeEnd` says goodbye, on that thread.
void endOnInterrupt(std::mutex &storeLock, std::function<void()> beforeEnd);

/// `store`, with `lock` held while something is written.
std::unique_ptr<SearchStore> lockedStore(std::unique_ptr<SearchStore> store,
                                         std::mutex &lock);

} // namespace fsr

#endif // FSR_TOOLS_FSRTUNE_INTERRUPT_H
