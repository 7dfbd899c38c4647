// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The messages between FSR and a device worker, as frames
// (fsr/Support/Frame.h). docs/formats/worker-protocol.md is the reference. The
// parent asks:
//
//   {"op":"hello","protocol":2}
//       -> {"event":"hello","protocol":2,"description":{…}}
//   {"op":"probe"}                        allocate, launch, copy, compare
//       -> {"event":"done"}
//   {"op":"image","hash":H} + blob        kept by hash for later requests
//       -> {"event":"done"}
//   {"op":"evaluate","task":{…},"reference":H,"candidate":H,
//    "reference_ptx":H?,"candidate_ptx":H?,"clone":H?,"plan":{…},
//    "seed":"hex","full":true,"measure":true,"max_pairs":128,
//    "quick_pairs":N?,"gpu_seconds":0,"confirm":true?,"race_only":true?,
//    "reference_resources":[…]?,"candidate_resources":[…]?}
//       -> any number of {"event":"started","phase":P,"deadline_ms":N}
//       -> {"event":"result","verdict":V,"message":M,"measurement":{…}?,
//           "evidence":{…},"profile":{…}?}
//   {"op":"strength","task":{…},"reference":H,"seed":"hex"}
//       -> any number of {"event":"started","phase":P,"deadline_ms":N}
//       -> {"event":"strength","dummies":[…]}
//
// Any request may end in {"event":"error","kind":K,"message":M} instead: the
// tool is broken, not the candidate. A deadline counts from its `started`; each
// `started` replaces the one before, and nothing of the candidate runs, or is
// loaded, before the first. Phases that run the original begin with "original":
// what goes wrong there is no fault of the candidate.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_DEVICE_PROTOCOL_H
#define FSR_DEVICE_PROTOCOL_H

#include "fsr/Device/Device.h"
#include "fsr/Support/Error.h"

namespace fsr {

constexpr int64_t workerProtocolVersion = 2;

/// An evaluate request as it travels: images by hash.
struct WireEvaluate {
  KernelTask task; ///< Without its MLIR texts and PTX.
  std::string referenceHash, candidateHash;
  /// Of their PTX; empty where there is none.
  std::string referencePtxHash, candidatePtxHash;
  std::string cloneHash; ///< Likewise.
  ResolvedPlan plan;
  EvaluateOptions options;
  std::vector<KernelResources> referenceResources, candidateResources;
};

/// A strength request, likewise.
struct WireStrength {
  KernelTask task;
  std::string referenceHash;
  uint64_t seed = 0;
};

/// Its answer.
struct WireDummies {
  std::vector<DummyResult> dummies;
};

llvm::json::Value toJSON(const WireStrength &value);
bool fromJSON(const llvm::json::Value &json, WireStrength &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const WireDummies &value);
bool fromJSON(const llvm::json::Value &json, WireDummies &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const WireEvaluate &value);
bool fromJSON(const llvm::json::Value &json, WireEvaluate &value,
              llvm::json::Path path);
/// Names of `ErrorKind` in an error event: "bad-input", "unavailable",
/// "timed-out", "corrupt", "unsupported".
llvm::StringRef wireName(ErrorKind kind);
/// An unknown name is Unavailable: a newer worker may know more kinds.
ErrorKind parseWireErrorKind(llvm::StringRef name);

/// The texts of a peer end up in messages and prompts: printable, one line a
/// line feed, at most `maxBytes` and whole in UTF-8.
std::string scrubPeerText(llvm::StringRef text, size_t maxBytes = 4096);

/// Whose doing it is what goes wrong in a phase hangs on how its name begins.
constexpr llvm::StringLiteral originalPhase = "original";
constexpr llvm::StringLiteral candidatePhase = "candidate";
/// No code of the candidate runs in it.
inline bool isPhaseOfTheOriginal(llvm::StringRef phase) {
  return phase.starts_with(originalPhase);
}

/// What a reader accepts of a peer.
constexpr int64_t maxWireSamples = 100000;
constexpr int64_t maxQuickPairs = 4096;
/// Events of one request; each timed launch has one of its own.
constexpr unsigned mostWireEvents = 500000;
constexpr size_t maxWireChecks = 1000;
constexpr int64_t maxWireDeadlineMs = 600000;

/// The readers below refuse what does not fit together: lengths, counts,
/// numbers that are not finite, hashes that are none.
llvm::json::Value toJSON(const EvaluateResult &value);
bool fromJSON(const llvm::json::Value &json, EvaluateResult &value,
              llvm::json::Path path);

} // namespace fsr

#endif // FSR_DEVICE_PROTOCOL_H
