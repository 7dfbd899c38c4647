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

#include <chrono>
#include <string>
#include <vector>

namespace fsr {

/// How a candidate that won is looked at by compute-sanitizer, and by ncu.
struct SanitizerSetup {
  std::string tool;              ///< Its path; empty: it is not installed.
  std::string profiler;          ///< Likewise, of ncu.
  std::vector<std::string> self; ///< This program, as it is started.
  std::string device;            ///< "cuda:0"
  std::chrono::milliseconds limit{60000}; ///< Of one tool.
};

/// Serves the protocol on the two descriptors until the peer closes or a fault
/// ends the context. Returns the exit status: 0 closed, 3 the context is dead
/// (the answer was sent before), 1 anything else. `asGpu`: a virtual device
/// shows no more than a GPU does, for tests of what stands beside one.
int serveDevice(Backend &backend, int in, int out,
                const SanitizerSetup *sanitizer = nullptr, bool asGpu = false);

/// The body of `fsr-worker device [--device=DEVICE] [--as-gpu]`, given its
/// whole command line and where compute-sanitizer and ncu are. What cannot be
/// opened is answered to the peer's hello, and status 1.
int deviceWorkerMain(int argc, char **argv, std::string sanitizer = "",
                     std::string profiler = "");

/// The body of `fsr-worker replay FILE [--device=DEVICE]`. A worker that starts
/// it adds `--while-locked=LOCK`, and may be gone before it has ended.
int replayWorkerMain(int argc, char **argv);
/// One launch of what the file describes.
llvm::Error replayOnce(Backend &backend, llvm::StringRef path);

/// The body of `fsr-worker run`: one kernel on the virtual device, for people.
int runWorkerMain(int argc, char **argv);

} // namespace fsr

#endif // FSR_WORKER_WORKER_H
