// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What whole steps and the interrupt share. Apart from Interrupt.cpp, so that a
// plugin, which has only whole steps, does not even hold code that waits for a
// signal.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_SUPPORT_INTERRUPTSTATE_H
#define FSR_LIB_SUPPORT_INTERRUPTSTATE_H

#include <mutex>
#include <set>
#include <string>

namespace fsr {

struct InterruptState {
  std::mutex whole; ///< Held by a whole step, and by an interrupt for good.
  std::mutex lock;  ///< Of what follows.
  std::multiset<std::string> leftovers;
};

/// Never destroyed: threads may outlast the end of main.
InterruptState &interruptState();

} // namespace fsr

#endif // FSR_LIB_SUPPORT_INTERRUPTSTATE_H
