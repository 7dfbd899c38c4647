// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// JSON forms of what travels to and from a worker, and what is refused of them.
//
//===----------------------------------------------------------------------===//

#include "fsr/Device/Protocol.h"

#include "fsr/Support/Printable.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace fsr;
using llvm::json::Object;
using llvm::json::ObjectMapper;
using llvm::json::Path;
using llvm::json::Value;

static constexpr size_t maxNameBytes = 256;

llvm::StringRef fsr::wireName(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::BadInput:
    return "bad-input";
  case ErrorKind::Unavailable:
  case ErrorKind::OverBudget: // No worker spends.
    return "unavailable";
  case ErrorKind::TimedOut:
    return "timed-out";
  case ErrorKind::Corrupt:
    return "corrupt";
  case ErrorKind::Unsupported:
    return "unsupported";
  }
  llvm_unreachable("every kind has a name");
}

ErrorKind fsr::parseWireErrorKind(llvm::StringRef name) {
  for (ErrorKind kind : {ErrorKind::BadInput, ErrorKind::TimedOut,
                         ErrorKind::Corrupt, ErrorKind::Unsupported})
    if (wireName(kind) == name)
      return kind;
  return ErrorKind::Unavailable;
}

std::string fsr::scrubPeerText(llvm::StringRef text, size_t maxBytes) {
  bool cut = text.size() > maxBytes;
  std::string result = withoutControls(text.take_front(maxBytes), ' ', "\n");
  if (cut)
    result += " […]";
  return result;
}

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

static Value triple(const std::array<int64_t, 3> &values) {
  return llvm::json::Array{values[0], values[1], values[2]};
}

// ObjectMapper finds the readers of these wrappers by their namespace.
namespace fsr::wire {

struct Triple {
  std::array<int64_t, 3> values{1, 1, 1};
};

static bool fromJSON(const Value &json, Triple &value, Path path) {
  const llvm::json::Array *array = json.getAsArray();
  if (!array || array->size() != 3) {
    path.report("expected three numbers");
    return false;
  }
  for (size_t i = 0; i < 3; ++i) {
    std::optional<int64_t> number = (*array)[i].getAsInteger();
    if (!number || *number < 1) {
      path.index(i).report("expected a number from 1");
      return false;
    }
    value.values[i] = *number;
  }
  return true;
}

struct Limits {
  LaunchLimits limits;
};

static bool fromJSON(const Value &json, Limits &value, Path path) {
  ObjectMapper map(json, path);
  LaunchLimits &limits = value.limits;
  Triple block, grid;
  if (!map || !map.map("threads_per_block", limits.threadsPerBlock) ||
      !map.map("block", block) || !map.map("grid", grid) ||
      !map.map("shared_bytes_per_block", limits.sharedBytesPerBlock) ||
      !map.map("registers_per_block", limits.registersPerBlock) ||
      !map.map("cluster_blocks", limits.clusterBlocks))
    return false;
  limits.block = block.values;
  limits.grid = grid.values;
  if (limits.threadsPerBlock < 1 || limits.sharedBytesPerBlock < 0 ||
      limits.registersPerBlock < 1 || limits.clusterBlocks < 1) {
    path.report("expected limits from 1");
    return false;
  }
  return true;
}

} // namespace fsr::wire

Value fsr::toJSON(const DeviceDescription &value) {
  const LaunchLimits &limits = value.limits;
  return Object{
      {"name", value.name},
      {"driver", value.driver},
      {"chip", value.chip},
      {"uuid", value.uuid},
      {"multiprocessors", value.multiprocessors},
      {"cores_per_multiprocessor", value.coresPerMultiprocessor},
      {"clock_khz", value.clockKhz},
      {"memory_clock_khz", value.memoryClockKhz},
      {"memory_bus_bits", value.memoryBusBits},
      {"l2_bytes", value.l2Bytes},
      {"memory_bytes", value.memoryBytes},
      {"shared_bytes_per_multiprocessor", value.sharedBytesPerMultiprocessor},
      {"registers_per_multiprocessor", value.registersPerMultiprocessor},
      {"threads_per_multiprocessor", value.threadsPerMultiprocessor},
      {"virtual", value.isVirtual},
      {"limits", Object{{"threads_per_block", limits.threadsPerBlock},
                        {"block", triple(limits.block)},
                        {"grid", triple(limits.grid)},
                        {"shared_bytes_per_block", limits.sharedBytesPerBlock},
                        {"registers_per_block", limits.registersPerBlock},
                        {"cluster_blocks", limits.clusterBlocks}}}};
}

bool fsr::fromJSON(const Value &json, DeviceDescription &value, Path path) {
  ObjectMapper map(json, path);
  wire::Limits limits;
  if (!map || !map.map("name", value.name) ||
      !map.map("driver", value.driver) || !map.map("chip", value.chip))
    return false;
  const std::pair<llvm::StringLiteral, int64_t *> numbers[] = {
      {"multiprocessors", &value.multiprocessors},
      {"cores_per_multiprocessor", &value.coresPerMultiprocessor},
      {"clock_khz", &value.clockKhz},
      {"memory_clock_khz", &value.memoryClockKhz},
      {"memory_bus_bits", &value.memoryBusBits},
      {"l2_bytes", &value.l2Bytes},
      {"memory_bytes", &value.memoryBytes},
      {"shared_bytes_per_multiprocessor", &value.sharedBytesPerMultiprocessor},
      {"registers_per_multiprocessor", &value.registersPerMultiprocessor},
      {"threads_per_multiprocessor", &value.threadsPerMultiprocessor},
  };
  for (auto [key, number] : numbers) {
    if (!map.map(key, *number))
      return false;
    if (*number < 0) {
      path.field(key).report("expected a number from 0");
      return false;
    }
  }
  if (!map.map("limits", limits) ||
      !map.mapOptional("virtual", value.isVirtual) ||
      !map.mapOptional("uuid", value.uuid))
    return false;
  value.limits = limits.limits;
  llvm::Expected<Target> chip = Target::parse(value.chip);
  if (!chip) {
    llvm::consumeError(chip.takeError());
    path.field("chip").report("expected a chip such as sm_90");
    return false;
  }
  value.name = scrubPeerText(value.name, maxNameBytes);
  value.driver = scrubPeerText(value.driver, maxNameBytes);
  value.uuid = scrubPeerText(value.uuid, maxNameBytes);
  return true;
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

/// A device needs no text of the kernel, and a peer gets none.
static Value withoutTexts(KernelTask task) {
  task.reference.mlir.clear();
  task.reference.ptx.clear();
  task.reference.truePtx.clear();
  task.kernelMlir.clear();
  task.launchMlir.clear();
  return toJSON(task);
}

static std::string seedText(uint64_t seed) {
  return llvm::utohexstr(seed, /*LowerCase=*/true, 16);
}

static bool readSeed(llvm::StringRef text, uint64_t &seed, Path path) {
  if (text.size() == 16 && !text.getAsInteger(16, seed))
    return true;
  path.field("seed").report("expected 16 hex digits");
  return false;
}

Value fsr::toJSON(const WireEvaluate &value) {
  Object object{{"op", "evaluate"},
                {"task", withoutTexts(value.task)},
                {"reference", value.referenceHash},
                {"candidate", value.candidateHash},
                {"plan", toJSON(value.plan)},
                {"seed", seedText(value.options.seed)},
                {"full", value.options.full},
                {"measure", value.options.measure},
                {"max_pairs", value.options.maxPairs},
                {"gpu_seconds", value.options.gpuSeconds},
                {"reference_resources", value.referenceResources},
                {"candidate_resources", value.candidateResources}};
  if (value.options.quickPairs > 0)
    object["quick_pairs"] = value.options.quickPairs;
  if (value.options.counters)
    object["counters"] = true;
  if (value.options.peaks)
    object["peaks"] = true;
  if (!value.referencePtxHash.empty())
    object["reference_ptx"] = value.referencePtxHash;
  if (!value.candidatePtxHash.empty())
    object["candidate_ptx"] = value.candidatePtxHash;
  if (!value.cloneHash.empty())
    object["clone"] = value.cloneHash;
  if (value.options.confirm)
    object["confirm"] = true;
  if (value.options.raceOnly)
    object["race_only"] = true;
  return object;
}

static bool isHash(llvm::StringRef text) {
  return text.size() == 64 && llvm::all_of(text, [](char c) {
           return llvm::isDigit(c) || (c >= 'a' && c <= 'f');
         });
}

bool fsr::fromJSON(const Value &json, WireEvaluate &value, Path path) {
  ObjectMapper map(json, path);
  std::string seed;
  EvaluateOptions &options = value.options;
  if (!map || !map.map("task", value.task) ||
      !map.map("reference", value.referenceHash) ||
      !map.map("candidate", value.candidateHash) ||
      !map.mapOptional("reference_ptx", value.referencePtxHash) ||
      !map.mapOptional("candidate_ptx", value.candidatePtxHash) ||
      !map.mapOptional("clone", value.cloneHash) ||
      !map.map("plan", value.plan) || !map.map("seed", seed) ||
      !map.map("full", options.full) || !map.map("measure", options.measure) ||
      !map.mapOptional("confirm", options.confirm) ||
      !map.mapOptional("race_only", options.raceOnly) ||
      !map.map("max_pairs", options.maxPairs) ||
      !map.mapOptional("quick_pairs", options.quickPairs) ||
      !map.mapOptional("counters", options.counters) ||
      !map.mapOptional("peaks", options.peaks) ||
      !map.map("gpu_seconds", options.gpuSeconds) ||
      !map.mapOptional("reference_resources", value.referenceResources) ||
      !map.mapOptional("candidate_resources", value.candidateResources))
    return false;
  if (!isHash(value.referenceHash)) {
    path.field("reference").report("expected 64 hex digits");
    return false;
  }
  if (!isHash(value.candidateHash)) {
    path.field("candidate").report("expected 64 hex digits");
    return false;
  }
  for (auto [name, hash] : {std::pair("reference_ptx", &value.referencePtxHash),
                            std::pair("candidate_ptx", &value.candidatePtxHash),
                            std::pair("clone", &value.cloneHash)})
    if (!hash->empty() && !isHash(*hash)) {
      path.field(name).report("expected 64 hex digits");
      return false;
    }
  if (!readSeed(seed, options.seed, path))
    return false;
  if (options.maxPairs < 1 || options.maxPairs > maxWireSamples) {
    path.field("max_pairs").report("expected a number from 1 to 100000");
    return false;
  }
  if (options.quickPairs < 0 || options.quickPairs > maxQuickPairs) {
    path.field("quick_pairs").report("expected a number from 0 to 4096");
    return false;
  }
  if (!std::isfinite(options.gpuSeconds) || options.gpuSeconds < 0) {
    path.field("gpu_seconds").report("expected a number from 0");
    return false;
  }
  return true;
}

Value fsr::toJSON(const WireStrength &value) {
  return Object{{"op", "strength"},
                {"task", withoutTexts(value.task)},
                {"reference", value.referenceHash},
                {"seed", seedText(value.seed)}};
}

bool fsr::fromJSON(const Value &json, WireStrength &value, Path path) {
  ObjectMapper map(json, path);
  std::string seed;
  if (!map || !map.map("task", value.task) ||
      !map.map("reference", value.referenceHash) || !map.map("seed", seed))
    return false;
  if (!isHash(value.referenceHash)) {
    path.field("reference").report("expected 64 hex digits");
    return false;
  }
  return readSeed(seed, value.seed, path);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value fsr::toJSON(const EvaluateResult &value) {
  Object object{{"event", "result"},
                {"verdict", nameOf(value.verdict)},
                {"message", llvm::json::fixUTF8(value.message)},
                {"evidence", toJSON(value.evidence)}};
  if (value.measurement)
    object["measurement"] = toJSON(*value.measurement);
  if (value.profile)
    object["profile"] = toJSON(*value.profile);
  return object;
}

/// Times and ratios that a reader may do arithmetic with.
static bool isSound(const Measurement &value, Path path) {
  auto positive = [](double number) {
    return std::isfinite(number) && number > 0;
  };
  if (value.originalUs.size() != value.candidateUs.size()) {
    path.field("candidate_us").report("expected as many times as the original");
    return false;
  }
  if (value.originalUs.size() > size_t(maxWireSamples)) {
    path.field("original_us").report("expected at most 100000 times");
    return false;
  }
  if (!llvm::all_of(value.originalUs, positive) ||
      !llvm::all_of(value.candidateUs, positive)) {
    path.report("expected times above 0");
    return false;
  }
  if (!positive(value.originalMedianUs) || !positive(value.candidateMedianUs) ||
      !positive(value.speedup) || !positive(value.speedupLow) ||
      !positive(value.speedupHigh) || !std::isfinite(value.noiseFloor) ||
      value.noiseFloor < 0 || value.speedupLow > value.speedupHigh) {
    path.report("expected medians and ratios above 0");
    return false;
  }
  if (!llvm::all_of(value.originalCycles, positive) ||
      !llvm::all_of(value.candidateCycles, positive)) {
    path.report("expected cycles above 0");
    return false;
  }
  if (value.conditions && value.conditions->clockLimits.size() > 64) {
    path.field("conditions").report("expected at most 64 clock limits");
    return false;
  }
  if (value.droppedPairs < 0 || value.batch < 1 || value.smClockMhz < 0) {
    path.report("expected counts from 0 and a batch from 1");
    return false;
  }
  return true;
}

static void scrub(Profile &profile) {
  for (InstructionMix &mix : profile.mixes)
    mix.kernel = scrubPeerText(mix.kernel, maxNameBytes);
  if (profile.counted)
    profile.counted->covers = scrubPeerText(profile.counted->covers, 1024);
  for (HardwareCounters &counters : profile.hardware) {
    counters.kernel = scrubPeerText(counters.kernel, maxNameBytes);
    for (HardwareCounters::Stall &stall : counters.stalls)
      stall.reason = scrubPeerText(stall.reason, maxNameBytes);
  }
  for (std::string &line : profile.missing)
    line = scrubPeerText(line, 1024);
}

bool fsr::fromJSON(const Value &json, EvaluateResult &value, Path path) {
  ObjectMapper map(json, path);
  std::string verdict;
  std::optional<Measurement> measurement;
  if (!map || !map.map("verdict", verdict) ||
      !map.map("message", value.message) ||
      !map.map("evidence", value.evidence) ||
      !map.mapOptional("measurement", measurement) ||
      !map.mapOptional("profile", value.profile))
    return false;
  std::optional<Verdict> known = parseVerdict(verdict);
  if (!known) {
    path.field("verdict").report("expected a verdict");
    return false;
  }
  value.verdict = *known;
  value.message = scrubPeerText(value.message);

  if (measurement) {
    if (!isSound(*measurement, path.field("measurement")))
      return false;
    measurement->device = scrubPeerText(measurement->device, maxNameBytes);
    measurement->driver = scrubPeerText(measurement->driver, maxNameBytes);
    if (measurement->conditions) {
      Conditions &known = *measurement->conditions;
      known.driver = scrubPeerText(known.driver, maxNameBytes);
      for (std::string &limit : known.clockLimits)
        limit = scrubPeerText(limit, maxNameBytes);
    }
  }
  value.measurement = std::move(measurement);
  if (value.profile)
    scrub(*value.profile);

  Evidence &evidence = value.evidence;
  if (evidence.checks.size() > maxWireChecks) {
    path.field("evidence")
        .field("checks")
        .report("expected at most 1000 checks");
    return false;
  }
  if (!std::isfinite(evidence.relativeBound) || evidence.relativeBound < 0) {
    path.field("evidence").report("expected an error bound from 0");
    return false;
  }
  for (Check &check : evidence.checks) {
    check.name = scrubPeerText(check.name, maxNameBytes);
    check.inputs = scrubPeerText(check.inputs);
    check.rule = scrubPeerText(check.rule);
    check.detail = scrubPeerText(check.detail);
  }
  for (std::string *text : {&evidence.device, &evidence.driver})
    *text = scrubPeerText(*text, maxNameBytes);
  // Of who built the candidate: nothing that a worker knows.
  evidence.toolchain.clear();
  evidence.sandbox.clear();
  return true;
}

Value fsr::toJSON(const WireDummies &value) {
  return Object{{"event", "strength"},
                {"dummies", llvm::json::Array(value.dummies)}};
}

bool fsr::fromJSON(const Value &json, WireDummies &value, Path path) {
  ObjectMapper map(json, path);
  if (!map || !map.map("dummies", value.dummies))
    return false;
  // A test that tried nothing proves nothing.
  if (value.dummies.empty() ||
      value.dummies.size() > TaskStrength::maxDummies) {
    path.field("dummies").report("expected 1 to 64 dummies");
    return false;
  }
  for (DummyResult &dummy : value.dummies) {
    dummy.name = scrubPeerText(dummy.name, maxNameBytes);
    dummy.inputs = scrubPeerText(dummy.inputs);
    dummy.detail = scrubPeerText(dummy.detail);
  }
  return true;
}
