// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The child's side of a device: allocate, fill, launch, check, time. Owns the
// inputs, the poison, the guard zones and the clock; a candidate owns nothing.
// The process is reused until it faults, and then ends: nothing heals a CUDA
// context.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_WORKER_WORKER_H
#define FSR_WORKER_WORKER_H

#include "fsr/Backend/Backend.h"

namespace fsr {

/// Serves the protocol on the two descriptors until the peer closes or a fault
/// ends the context. Returns the exit status: 0 closed, 3 the context is dead
/// (the answer was sent before), 1 anything else.
int serveDevice(Backend &backend, int in, int out);

/// The body of `fsr-worker device [--device=DEVICE]`, given its whole command
/// line. What cannot be opened is answered to the peer's hello, and status 1.
int deviceWorkerMain(int argc, char **argv);

/// The body of `fsr-worker run`: one kernel on the virtual device, for people.
int runWorkerMain(int argc, char **argv);

} // namespace fsr

#endif // FSR_WORKER_WORKER_H
