// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parent's side of a device: starts `fsr-worker device`, talks the protocol
// of docs/formats/worker-protocol.md, keeps the deadlines, kills and restarts a
// worker that faulted, and probes its health before it is used again.
//
// A worker that dies or overruns is a fact about the candidate only when it
// happens twice in a row with that candidate on a worker that was healthy
// before; the client repeats once by itself. Only a worker that cannot be
// started, or is not healthy after two restarts, is an error.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_DEVICE_DEVICE_H
#define FSR_DEVICE_DEVICE_H

#include "fsr/Core/TaskStrength.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fsr {

/// What a device says of itself; feeds prompts, limits and plausibility.
struct DeviceDescription {
  std::string name;   ///< "NVIDIA H200"
  std::string driver; ///< CUDA driver API version, "13.0".
  std::string chip;   ///< "sm_90"
  std::string uuid;   ///< Of a GPU, 32 hex digits; empty where not known.
  int64_t multiprocessors = 0;
  int64_t coresPerMultiprocessor = 0; ///< f32 FMA lanes.
  int64_t clockKhz = 0, memoryClockKhz = 0, memoryBusBits = 0;
  int64_t l2Bytes = 0, memoryBytes = 0;
  int64_t sharedBytesPerMultiprocessor = 0;
  int64_t registersPerMultiprocessor = 0;
  int64_t threadsPerMultiprocessor = 0;
  LaunchLimits limits;
  /// Runs PTX and not cubins; models times and does not measure them.
  bool isVirtual = false;

  /// Theoretical peaks: clock × bus width × 2, clock × lanes × 2.
  double peakBytesPerSecond() const;
  double peakFlopsPerSecond() const;
  /// What of a build this device runs.
  const std::string &imageOf(const Build &build) const {
    return isVirtual ? build.ptx : build.cubin;
  }
  /// What evidence from here is worth.
  EvidenceLevel evidenceLevel() const {
    return isVirtual ? EvidenceLevel::Modelled : EvidenceLevel::Measured;
  }
};

struct EvaluateOptions {
  uint64_t seed = 0; ///< The run's; mixed with the hash of the image.
  /// False: the quick rung, for every candidate: exact inputs, one random
  /// input, poison, guard zones and a few timed pairs; never ends as Accepted
  /// (a candidate that seems faster is Undecided). True: the whole ladder, for
  /// one that would become the best.
  bool full = true;
  bool measure = true;
  /// For a candidate that was accepted: in place of the race, at least thirty
  /// pairs on fresh inputs of every case of the workload, with a cold and with
  /// a warm cache, in a process that has run nothing before. The measurement of
  /// the result is what may be told.
  bool confirm = false;
  /// The verdict is the race's: its winner is not put to the full checks, and
  /// the evidence is worth nothing. For studies of the race.
  bool raceOnly = false;
  int64_t maxPairs = 128;
  /// Of the quick rung, which is a few pairs else: so many, at most 4096, to
  /// rank what is close together.
  int64_t quickPairs = 0;
  double gpuSeconds = 0; ///< 0: no limit.
  /// Of one that is accepted on a GPU: what the GPU's own counters say of it.
  bool counters = false;
  /// How fast the GPU itself is, unless the candidate is wrong.
  bool peaks = false;
};

struct EvaluateRequest {
  const KernelTask *task = nullptr;
  std::string referenceImage; ///< Cubin or PTX of the original.
  std::string candidateImage; ///< Cubin or PTX of the candidate.
  /// Their PTX, where there is one: the original's true values come from it,
  /// and whether the candidate adds floats in the order of its threads. Empty,
  /// or too large to send: the evidence says what is missing.
  std::string referencePtx, candidatePtx;
  /// Cubin or PTX of the original's clone in f64 (`Reference::truePtx`); empty:
  /// there is none.
  std::string cloneImage;
  /// Of their kernels; a virtual device's model of time asks for them.
  std::vector<KernelResources> referenceResources, candidateResources;
  ResolvedPlan plan;
  EvaluateOptions options;
};

/// How far the test of a task is.
struct StrengthProgress {
  unsigned done = 0, of = 0; ///< Dummies.
  double secondsLeft = 0;    ///< About; 0: not known.
};

struct StrengthRequest {
  const KernelTask *task = nullptr;
  std::string referenceImage;
  uint64_t seed = 0;
  /// May be empty. Called by the thread that tests.
  std::function<void(const StrengthProgress &)> progress = nullptr;
};

struct PhaseTime {
  std::string phase;
  double milliseconds = 0;
};

struct EvaluateResult {
  Verdict verdict = Verdict::Rejected;
  std::string message;
  std::optional<Measurement> measurement;
  Evidence evidence;
  /// What was counted on the way; no verdict rests on it.
  std::optional<Profile> profile;
  /// Where the time went, from one word of the worker to the next; of the last
  /// try. Seen from this side: a worker does not tell it. Phases of one name in
  /// a row are one, and so is what a worker begins beyond a few thousand.
  std::vector<PhaseTime> phases;
};

/// May be called from several threads at once. An answer comes whole from one
/// GPU: a candidate and its original are never timed on two.
class Device {
public:
  virtual ~Device();

  /// How many requests it can work on at once; more of them wait their turn.
  /// May shrink, never below one.
  virtual unsigned slots() const { return 1; }
  /// What happened to it since the last call and is worth a remark: a device of
  /// several that was given up.
  virtual std::vector<std::string> takeRemarks() { return {}; }

  virtual llvm::Expected<DeviceDescription> describe() = 0;
  /// Proves that it can take a request, before there is anything to lose; what
  /// stands behind it is restarted where it cannot.
  virtual llvm::Error probe() = 0;
  virtual llvm::Expected<EvaluateResult>
  evaluate(const EvaluateRequest &request) = 0;
  /// Holds dummies against the task, by the checks that candidates meet.
  virtual llvm::Expected<std::vector<DummyResult>>
  testStrength(const StrengthRequest &request) = 0;
};

/// How long a worker may stay silent where it has set no deadline itself.
struct DeviceTimeouts {
  std::chrono::milliseconds hello{30000}; ///< From start to its description.
  /// The same behind a command of the user's, which may first connect somewhere
  /// or stand in a queue.
  std::chrono::milliseconds remoteHello{300000};
  std::chrono::milliseconds probe{30000};
  std::chrono::milliseconds image{60000};
  std::chrono::milliseconds firstPhase{60000}; ///< Evaluate to `started`.
  /// The whole of one evaluation, or of one test of a task.
  std::chrono::milliseconds evaluate{1800000};
};

/// Opens `spec`: "cuda", "cuda:N", "virtual", "virtual:CHIP", "exec:COMMAND" (a
/// shell-like command line, quotes respected, no shell started), or "auto":
/// `cuda` where a driver reports a GPU, and `virtual` else. Several with commas
/// between them, and "cuda:N+M", are one device with as many slots; a comma of
/// a command stands in quotes. Errors (before any work): an unknown kind (lists
/// the known ones), a worker that cannot be started, no driver, no such GPU,
/// another protocol version. Of several, one that cannot be started is a
/// remark; that two are not alike is an error.
llvm::Expected<std::unique_ptr<Device>>
openDevice(llvm::StringRef spec, const DeviceTimeouts &timeouts = {});

llvm::json::Value toJSON(const DeviceDescription &value);
bool fromJSON(const llvm::json::Value &json, DeviceDescription &value,
              llvm::json::Path path);

} // namespace fsr

#endif // FSR_DEVICE_DEVICE_H
