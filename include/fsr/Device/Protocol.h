// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The messages between FSR and a device worker, as frames (fsr/Support/Frame.h).
// docs/formats/worker-protocol.md is the reference. The parent asks:
//
//   {"op":"hello","protocol":1}
//       -> {"event":"hello","protocol":1,"description":{…}}
//   {"op":"probe"}                        allocate, launch, copy, compare
//       -> {"event":"done"}
//   {"op":"image","hash":H} + blob        kept by hash for later requests
//       -> {"event":"done"}
//   {"op":"evaluate","task":{…},"reference":H,"candidate":H,"plan":{…},
//    "seed":"hex","measure":true,"max_pairs":128}
//       -> any number of {"event":"started","phase":P,"deadline_ms":N}
//       -> {"event":"result","verdict":V,"message":M,"measurement":{…}?,
//           "evidence":{…}}
//
// Any request may end in {"event":"error","kind":K,"message":M} instead: the
// tool is broken, not the candidate. A deadline counts from its `started`; each
// `started` replaces the one before. Phases that run the original begin with
// "original": what goes wrong there is no fault of the candidate.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_DEVICE_PROTOCOL_H
#define FSR_DEVICE_PROTOCOL_H

#include "fsr/Device/Device.h"

namespace fsr {

constexpr int64_t workerProtocolVersion = 1;

/// An evaluate request as it travels: images by hash.
struct WireEvaluate {
  KernelTask task; ///< Without its MLIR texts and reference PTX.
  std::string referenceHash, candidateHash;
  ResolvedPlan plan;
  EvaluateOptions options;
};

llvm::json::Value toJSON(const WireEvaluate &value);
bool fromJSON(const llvm::json::Value &json, WireEvaluate &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const EvaluateResult &value);
bool fromJSON(const llvm::json::Value &json, EvaluateResult &value,
              llvm::json::Path path);

} // namespace fsr

#endif // FSR_DEVICE_PROTOCOL_H
