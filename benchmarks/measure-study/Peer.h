// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A worker that serves on a thread as it does in a process of its own, and the
// other end of its connection. Every evaluation goes through the protocol.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_MEASURESTUDY_PEER_H
#define FSR_BENCHMARKS_MEASURESTUDY_PEER_H

#include "Kernels.h"

#include "fsr/Backend/Backend.h"
#include "fsr/Device/Protocol.h"

#include <thread>

namespace fsr::study {

class Peer {
public:
  static llvm::Expected<std::unique_ptr<Peer>> start(Backend &backend);
  ~Peer();

  const DeviceDescription &device() const { return description; }
  /// `original` is told to be the original of the task.
  llvm::Expected<EvaluateResult> evaluate(const Kernel &original,
                                          const Kernel &candidate,
                                          const EvaluateOptions &options);

private:
  Peer() = default;
  llvm::Expected<llvm::json::Object>
  ask(llvm::json::Object header, std::string blob, llvm::StringRef wanted);

  int fd = -1;
  std::thread worker;
  DeviceDescription description;
};

} // namespace fsr::study

#endif // FSR_BENCHMARKS_MEASURESTUDY_PEER_H
