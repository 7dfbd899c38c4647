// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The side of fsr/Support/Interrupt.h that libraries use: locks, no signals.
//
//===----------------------------------------------------------------------===//

#include "InterruptState.h"
#include "fsr/Support/Interrupt.h"

using namespace fsr;

InterruptState &fsr::interruptState() {
  static auto *state = new InterruptState;
  return *state;
}

WholeStep::WholeStep() { interruptState().whole.lock(); }
WholeStep::~WholeStep() { interruptState().whole.unlock(); }

Leftover::Leftover(std::string folder) : folder(std::move(folder)) {
  std::lock_guard<std::mutex> held(interruptState().lock);
  interruptState().leftovers.insert(this->folder);
}

Leftover::~Leftover() {
  std::lock_guard<std::mutex> held(interruptState().lock);
  auto &all = interruptState().leftovers;
  all.erase(all.find(folder));
}
