// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a candidate fared: build, verdict, measurement, and the evidence behind
// them. A `Trial` is finished by exactly one `Verdict`; a `Record` is a trial
// that may be an answer, and carries what a compile needs to use it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_TRIAL_H
#define FSR_CORE_TRIAL_H

#include "fsr/Core/Candidate.h"
#include "fsr/Core/Profile.h"

namespace fsr {

enum class Verdict {
  Accepted,      ///< Equal, and faster beyond noise.
  NotFaster,     ///< Equal, not faster.
  Undecided,     ///< Equal; the noise is too large to say.
  Mismatch,      ///< Results differ.
  Unsafe,        ///< Wrote where it must not, raced, read the uninitialised.
  CompileFailed, ///< The toolchain refused it.
  Rejected,      ///< Breaks the contract.
  LaunchFailed,  ///< The driver refused the launch.
  Crashed,       ///< The worker died, or the context was lost.
  TimedOut,      ///< Over its deadline since it started.
  Implausible,   ///< Faster than the hardware can be.
};
llvm::StringRef nameOf(Verdict verdict);
std::optional<Verdict> parseVerdict(llvm::StringRef name);

/// Registers and memory of one kernel, as ptxas reports them.
struct KernelResources {
  std::string kernel;
  int64_t registers = 0;
  int64_t sharedBytes = 0; ///< Static.
  int64_t spillStoreBytes = 0;
  int64_t spillLoadBytes = 0;
  int64_t stackBytes = 0;
};

struct Build {
  std::string ptx;
  std::string cubin; ///< Bytes.
  std::string chip;  ///< What was built for: "sm_90a".
  std::vector<KernelResources> resources;
  std::string log;       ///< Scrubbed of paths, capped.
  std::string toolchain; ///< "NVRTC 13.0".
  /// What held the compiler of LLM text: "seccomp, landlock"; "none"; empty
  /// for what is our own.
  std::string sandbox;

  const KernelResources *find(llvm::StringRef kernel) const;
};

/// The device while it was measured, as its management library tells; -1: not
/// told. Of readings before and after, the worse.
struct Conditions {
  std::string driver; ///< "580.65.06"
  int64_t clockMhz = -1, memoryClockMhz = -1, temperatureC = -1;
  double powerWatts = -1, powerLimitWatts = -1;
  std::vector<std::string> clockLimits; ///< What held the clock down.
  int64_t otherProcesses = -1;          ///< That computed there, too.
};

/// Paired timings of a candidate against the original on one device.
struct Measurement {
  static constexpr int64_t mostPairs = 4096;

  std::string device; ///< "NVIDIA H200"; never a serial number.
  std::string driver;
  /// Pairs, in order; never more than `mostPairs`.
  std::vector<double> originalUs, candidateUs;
  /// Of the multiprocessors' clock, around the same samples; empty where they
  /// were not read.
  std::vector<double> originalCycles, candidateCycles;
  double originalMedianUs = 0, candidateMedianUs = 0;
  /// Original over candidate: median of the pairs and its 95 % interval.
  double speedup = 0, speedupLow = 0, speedupHigh = 0;
  /// Half-width of the original against itself in the same protocol, relative.
  double noiseFloor = 0;
  int64_t droppedPairs = 0;
  int64_t batch = 1; ///< Launches a sample.
  int64_t smClockMhz = 0;
  /// Not known without the vendor's library.
  std::optional<Conditions> conditions;
};

/// One check that ran, and how it ended.
struct Check {
  std::string name; ///< "exact-inputs", "guard-zones"….
  bool passed = false;
  std::string inputs; ///< Families and count; never a seed.
  std::string rule;   ///< The rule that decided: "bit equality".
  std::string detail; ///< Worst error seen against the bound, or what failed.
};

enum class EvidenceLevel { None, Modelled, Measured };
llvm::StringRef nameOf(EvidenceLevel level);

struct Evidence {
  EvidenceLevel level = EvidenceLevel::None;
  std::vector<Check> checks;
  std::string device, driver, toolchain;
  std::string sandbox; ///< As in the build.
  /// |candidate - original| allowed an element, as a share of the row's largest
  /// magnitude in the original; what a later checker of the spliced module
  /// uses.
  double relativeBound = 0;
  bool bitExact = false; ///< Every check demanded, and got, the same bits.
};

struct Trial {
  static constexpr int64_t formatVersion = 2; ///< Of its file in a store.

  std::string taskKey;
  std::string candidateHash;
  Parameters parameters;
  int64_t round = 0, slot = 0;
  Verdict verdict = Verdict::Rejected;
  std::string message; ///< What and where; may go back to the LLM.
  bool full = false;   ///< It was put to all checks, not to the quick ones.
  /// Judged on a virtual device: says nothing of a GPU, and no GPU's trial says
  /// anything of it.
  bool isModelled = false;
  std::vector<KernelResources> resources;
  std::optional<Measurement> measurement;
  Evidence evidence;
  /// Digest of its code and launches without names and comments: trials that
  /// share it run the same. Empty where there is no code.
  std::string code;
  /// Of one that was the best of its search when it ended; of any that was
  /// checked by hand.
  std::optional<Profile> profile;

  /// Task, source, parameters, and whether modelled: the name under which a
  /// trial is reused.
  std::string key() const;
};

/// A winner, ready to be spliced with no toolchain at hand.
struct Record {
  static constexpr int64_t formatVersion = 1;

  std::string id; ///< SHA-256 over everything below; set by the store.
  std::string taskKey;
  std::string target;     ///< Family: "sm_90".
  std::string chip;       ///< Built for: "sm_90a".
  std::string kernelName; ///< As it was called where it was found.
  /// The kernel's arguments as the plan calls them, in order. The key holds no
  /// names, so another module may call them otherwise.
  std::vector<std::string> argumentNames;
  Candidate candidate;
  Parameters parameters;
  ResolvedPlan plan;
  std::vector<KernelResources> resources;
  std::string fatbin; ///< Bytes: the cubin and its PTX.
  Measurement measurement;
  Evidence evidence;
  std::string message; ///< As in its trial; the same of the next two.
  std::string code;
  std::optional<Profile> profile;
  std::string provider; ///< Of the LLM: "exchange", "openai:MODEL".
  int64_t round = 0, slot = 0;

  /// The trial that this record is the winner of, as it was or would have been
  /// stored.
  Trial trial() const;
};

/// One request to an LLM and its answer.
struct Talk {
  static constexpr int64_t formatVersion = 2;

  std::string taskKey, taskName;
  int64_t round = 0, slot = 0;
  std::string provider;
  std::string request, answer;
  int64_t promptTokens = 0, answerTokens = 0; ///< 0 where not reported.
};

llvm::json::Value toJSON(const KernelResources &value);
bool fromJSON(const llvm::json::Value &json, KernelResources &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const Conditions &value);
bool fromJSON(const llvm::json::Value &json, Conditions &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const Measurement &value);
bool fromJSON(const llvm::json::Value &json, Measurement &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const Check &value);
bool fromJSON(const llvm::json::Value &json, Check &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const Evidence &value);
bool fromJSON(const llvm::json::Value &json, Evidence &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const Trial &value);
bool fromJSON(const llvm::json::Value &json, Trial &value,
              llvm::json::Path path);
/// Without `fatbin` and `candidate.source`, which the store keeps as files.
llvm::json::Value toJSON(const Record &value);
bool fromJSON(const llvm::json::Value &json, Record &value,
              llvm::json::Path path);
/// Without `request` and `answer`, which the store keeps as files.
llvm::json::Value toJSON(const Talk &value);
bool fromJSON(const llvm::json::Value &json, Talk &value,
              llvm::json::Path path);

} // namespace fsr

#endif // FSR_CORE_TRIAL_H
