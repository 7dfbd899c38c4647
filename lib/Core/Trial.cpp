// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Names of verdicts and the JSON forms of what a trial leaves behind. Bytes and
// long texts (cubin, fatbin, source, request, answer) are never in the JSON:
// the store keeps them as files beside it.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Trial.h"

#include "JsonHelpers.h"

#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

namespace fsr {

using namespace detail;

namespace {

struct VerdictRow {
  Verdict verdict;
  llvm::StringLiteral name;
};

constexpr VerdictRow verdictRows[] = {
    {Verdict::Accepted, "accepted"},
    {Verdict::NotFaster, "not-faster"},
    {Verdict::Undecided, "undecided"},
    {Verdict::Mismatch, "mismatch"},
    {Verdict::Unsafe, "unsafe"},
    {Verdict::CompileFailed, "compile-failed"},
    {Verdict::Rejected, "rejected"},
    {Verdict::LaunchFailed, "launch-failed"},
    {Verdict::Crashed, "crashed"},
    {Verdict::TimedOut, "timed-out"},
    {Verdict::Implausible, "implausible"},
};

constexpr EvidenceLevel levels[] = {
    EvidenceLevel::None, EvidenceLevel::Modelled, EvidenceLevel::Measured};

llvm::json::Value parametersJSON(const Parameters &parameters) {
  llvm::json::Object object;
  for (const auto &[name, value] : parameters)
    object[llvm::json::fixUTF8(name)] = value;
  return object;
}

bool checkDigest(llvm::StringRef text, llvm::json::Path path) {
  if (isSha256(text))
    return true;
  path.report("expected 64 lower-case hex digits");
  return false;
}

} // namespace

llvm::StringRef nameOf(Verdict verdict) {
  for (const VerdictRow &row : verdictRows)
    if (row.verdict == verdict)
      return row.name;
  llvm_unreachable("verdict without a name");
}

std::optional<Verdict> parseVerdict(llvm::StringRef name) {
  for (const VerdictRow &row : verdictRows)
    if (row.name == name)
      return row.verdict;
  return std::nullopt;
}

llvm::StringRef nameOf(EvidenceLevel level) {
  switch (level) {
  case EvidenceLevel::None:
    return "none";
  case EvidenceLevel::Modelled:
    return "modelled";
  case EvidenceLevel::Measured:
    return "measured";
  }
  llvm_unreachable("evidence level without a name");
}

const KernelResources *Build::find(llvm::StringRef kernel) const {
  for (const KernelResources &each : resources)
    if (each.kernel == kernel)
      return &each;
  return nullptr;
}

std::string Trial::key() const {
  FieldHasher hasher;
  hasher.add("trial").add(taskKey).add(candidateHash);
  for (const auto &[name, value] : parameters)
    hasher.add(name).add(value);
  if (isModelled)
    hasher.add("modelled");
  return hasher.digest();
}

Trial Record::trial() const {
  Trial trial;
  trial.taskKey = taskKey;
  trial.candidateHash = candidate.hash();
  trial.parameters = parameters;
  trial.round = round;
  trial.slot = slot;
  trial.verdict = Verdict::Accepted;
  trial.message = message;
  trial.full = true;
  trial.isModelled = evidence.level == EvidenceLevel::Modelled;
  trial.resources = resources;
  trial.measurement = measurement;
  trial.evidence = evidence;
  trial.code = code;
  trial.profile = profile;
  return trial;
}

llvm::json::Value toJSON(const KernelResources &value) {
  return llvm::json::Object{{"kernel", text(value.kernel)},
                            {"registers", value.registers},
                            {"shared_bytes", value.sharedBytes},
                            {"spill_store_bytes", value.spillStoreBytes},
                            {"spill_load_bytes", value.spillLoadBytes},
                            {"stack_bytes", value.stackBytes}};
}

bool fromJSON(const llvm::json::Value &json, KernelResources &value,
              llvm::json::Path path) {
  value = KernelResources();
  llvm::json::ObjectMapper mapper(json, path);
  return mapper && mapper.map("kernel", value.kernel) &&
         mapNatural(mapper, "registers", value.registers) &&
         mapNatural(mapper, "shared_bytes", value.sharedBytes) &&
         mapNatural(mapper, "spill_store_bytes", value.spillStoreBytes) &&
         mapNatural(mapper, "spill_load_bytes", value.spillLoadBytes) &&
         mapNatural(mapper, "stack_bytes", value.stackBytes);
}

llvm::json::Value toJSON(const Conditions &value) {
  return llvm::json::Object{{"driver", text(value.driver)},
                            {"clock_mhz", value.clockMhz},
                            {"memory_clock_mhz", value.memoryClockMhz},
                            {"temperature_c", value.temperatureC},
                            {"power_w", real(value.powerWatts)},
                            {"power_limit_w", real(value.powerLimitWatts)},
                            {"clock_limits", texts(value.clockLimits)},
                            {"other_processes", value.otherProcesses}};
}

bool fromJSON(const llvm::json::Value &json, Conditions &value,
              llvm::json::Path path) {
  value = Conditions();
  llvm::json::ObjectMapper mapper(json, path);
  return mapper && mapper.mapOptional("driver", value.driver) &&
         mapper.mapOptional("clock_mhz", value.clockMhz) &&
         mapper.mapOptional("memory_clock_mhz", value.memoryClockMhz) &&
         mapper.mapOptional("temperature_c", value.temperatureC) &&
         mapOptionalReal(mapper, "power_w", value.powerWatts) &&
         mapOptionalReal(mapper, "power_limit_w", value.powerLimitWatts) &&
         mapper.mapOptional("clock_limits", value.clockLimits) &&
         mapper.mapOptional("other_processes", value.otherProcesses);
}

llvm::json::Value toJSON(const Measurement &value) {
  llvm::json::Object object{
      {"device", text(value.device)},
      {"driver", text(value.driver)},
      {"original_us", reals(value.originalUs)},
      {"candidate_us", reals(value.candidateUs)},
      {"original_median_us", real(value.originalMedianUs)},
      {"candidate_median_us", real(value.candidateMedianUs)},
      {"speedup", real(value.speedup)},
      {"speedup_low", real(value.speedupLow)},
      {"speedup_high", real(value.speedupHigh)},
      {"noise_floor", real(value.noiseFloor)},
      {"dropped_pairs", value.droppedPairs},
      {"batch", value.batch},
      {"sm_clock_mhz", value.smClockMhz}};
  if (!value.originalCycles.empty()) {
    object["original_cycles"] = reals(value.originalCycles);
    object["candidate_cycles"] = reals(value.candidateCycles);
  }
  if (value.conditions)
    object["conditions"] = toJSON(*value.conditions);
  return object;
}

bool fromJSON(const llvm::json::Value &json, Measurement &value,
              llvm::json::Path path) {
  value = Measurement();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("device", value.device) ||
      !mapper.mapOptional("driver", value.driver) ||
      !mapReals(mapper, "original_us", value.originalUs) ||
      !mapReals(mapper, "candidate_us", value.candidateUs) ||
      !mapReal(mapper, "original_median_us", value.originalMedianUs) ||
      !mapReal(mapper, "candidate_median_us", value.candidateMedianUs) ||
      !mapReal(mapper, "speedup", value.speedup) ||
      !mapReal(mapper, "speedup_low", value.speedupLow) ||
      !mapReal(mapper, "speedup_high", value.speedupHigh) ||
      !mapReal(mapper, "noise_floor", value.noiseFloor) ||
      !mapOptionalNatural(mapper, "dropped_pairs", value.droppedPairs) ||
      !mapOptionalNatural(mapper, "batch", value.batch) ||
      !mapOptionalNatural(mapper, "sm_clock_mhz", value.smClockMhz) ||
      !mapper.mapOptional("conditions", value.conditions))
    return false;
  const llvm::json::Object &object = *json.getAsObject();
  for (auto [key, cycles] :
       {std::pair<llvm::StringLiteral, std::vector<double> *>(
            "original_cycles", &value.originalCycles),
        {"candidate_cycles", &value.candidateCycles}}) {
    if (!object.get(key))
      continue;
    if (!mapReals(mapper, key, *cycles))
      return false;
    if (cycles->size() != value.originalUs.size()) {
      path.field(key).report("expected as many as in original_us");
      return false;
    }
  }
  if (value.originalUs.size() != value.candidateUs.size()) {
    path.field("candidate_us").report("expected as many as in original_us");
    return false;
  }
  if (value.batch < 1) {
    path.field("batch").report("expected integer of at least 1");
    return false;
  }
  return true;
}

llvm::json::Value toJSON(const Check &value) {
  return llvm::json::Object{{"name", text(value.name)},
                            {"passed", value.passed},
                            {"inputs", text(value.inputs)},
                            {"rule", text(value.rule)},
                            {"detail", text(value.detail)}};
}

bool fromJSON(const llvm::json::Value &json, Check &value,
              llvm::json::Path path) {
  value = Check();
  llvm::json::ObjectMapper mapper(json, path);
  return mapper && mapper.map("name", value.name) &&
         mapper.map("passed", value.passed) &&
         mapper.mapOptional("inputs", value.inputs) &&
         mapper.mapOptional("rule", value.rule) &&
         mapper.mapOptional("detail", value.detail);
}

llvm::json::Value toJSON(const Evidence &value) {
  llvm::json::Object object{{"level", nameOf(value.level)},
                            {"checks", llvm::json::Array(value.checks)},
                            {"device", text(value.device)},
                            {"driver", text(value.driver)},
                            {"toolchain", text(value.toolchain)},
                            {"relative_bound", real(value.relativeBound)},
                            {"bit_exact", value.bitExact}};
  if (!value.sandbox.empty())
    object["sandbox"] = text(value.sandbox);
  return object;
}

bool fromJSON(const llvm::json::Value &json, Evidence &value,
              llvm::json::Path path) {
  value = Evidence();
  llvm::json::ObjectMapper mapper(json, path);
  std::string level;
  if (!mapper || !mapper.map("level", level) ||
      !mapper.map("checks", value.checks) ||
      !mapper.mapOptional("device", value.device) ||
      !mapper.mapOptional("driver", value.driver) ||
      !mapper.mapOptional("toolchain", value.toolchain) ||
      !mapper.mapOptional("sandbox", value.sandbox) ||
      !mapOptionalReal(mapper, "relative_bound", value.relativeBound) ||
      !mapper.mapOptional("bit_exact", value.bitExact))
    return false;
  const EvidenceLevel *found = llvm::find_if(
      levels, [&](EvidenceLevel each) { return nameOf(each) == level; });
  if (found == std::end(levels)) {
    path.field("level").report("expected none, modelled or measured");
    return false;
  }
  value.level = *found;
  return true;
}

llvm::json::Value toJSON(const Trial &value) {
  llvm::json::Object object{{"task_key", text(value.taskKey)},
                            {"candidate_hash", text(value.candidateHash)},
                            {"parameters", parametersJSON(value.parameters)},
                            {"round", value.round},
                            {"slot", value.slot},
                            {"verdict", nameOf(value.verdict)},
                            {"message", text(value.message)},
                            {"full", value.full},
                            {"resources", llvm::json::Array(value.resources)},
                            {"evidence", toJSON(value.evidence)}};
  if (value.measurement)
    object["measurement"] = toJSON(*value.measurement);
  if (value.isModelled)
    object["modelled"] = true;
  if (!value.code.empty())
    object["code"] = value.code;
  if (value.profile)
    object["profile"] = toJSON(*value.profile);
  return object;
}

bool fromJSON(const llvm::json::Value &json, Trial &value,
              llvm::json::Path path) {
  value = Trial();
  llvm::json::ObjectMapper mapper(json, path);
  std::string verdict;
  if (!mapper || !mapper.map("task_key", value.taskKey) ||
      !mapper.map("candidate_hash", value.candidateHash) ||
      !mapper.mapOptional("full", value.full) ||
      !mapper.mapOptional("parameters", value.parameters) ||
      !mapOptionalNatural(mapper, "round", value.round) ||
      !mapOptionalNatural(mapper, "slot", value.slot) ||
      !mapper.map("verdict", verdict) ||
      !mapper.mapOptional("message", value.message) ||
      !mapper.mapOptional("resources", value.resources) ||
      !mapper.map("measurement", value.measurement) ||
      !mapper.mapOptional("modelled", value.isModelled) ||
      !mapper.mapOptional("evidence", value.evidence) ||
      !mapper.mapOptional("code", value.code) ||
      !mapper.mapOptional("profile", value.profile))
    return false;
  std::optional<Verdict> parsed = parseVerdict(verdict);
  if (!parsed) {
    path.field("verdict").report("expected a verdict, as accepted");
    return false;
  }
  value.verdict = *parsed;
  return checkDigest(value.taskKey, path.field("task_key")) &&
         checkDigest(value.candidateHash, path.field("candidate_hash")) &&
         (value.code.empty() || checkDigest(value.code, path.field("code"))) &&
         checkParameterNames(json, "parameters", path);
}

llvm::json::Value toJSON(const Record &value) {
  llvm::json::Value candidate = toJSON(value.candidate);
  candidate.getAsObject()->erase("source");
  llvm::json::Object object{{"format_version", Record::formatVersion},
                            {"id", text(value.id)},
                            {"task_key", text(value.taskKey)},
                            {"target", text(value.target)},
                            {"chip", text(value.chip)},
                            {"kernel_name", text(value.kernelName)},
                            {"argument_names", texts(value.argumentNames)},
                            {"candidate", std::move(candidate)},
                            {"parameters", parametersJSON(value.parameters)},
                            {"plan", toJSON(value.plan)},
                            {"resources", llvm::json::Array(value.resources)},
                            {"measurement", toJSON(value.measurement)},
                            {"evidence", toJSON(value.evidence)},
                            {"message", text(value.message)},
                            {"provider", text(value.provider)},
                            {"round", value.round},
                            {"slot", value.slot}};
  if (!value.code.empty())
    object["code"] = value.code;
  if (value.profile)
    object["profile"] = toJSON(*value.profile);
  return object;
}

bool fromJSON(const llvm::json::Value &json, Record &value,
              llvm::json::Path path) {
  value = Record();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapVersion<Record::formatVersion>(mapper, path) ||
      !mapper.mapOptional("id", value.id) ||
      !mapper.map("task_key", value.taskKey) ||
      !mapper.map("target", value.target) || !mapper.map("chip", value.chip) ||
      !mapper.mapOptional("kernel_name", value.kernelName) ||
      !mapper.map("argument_names", value.argumentNames) ||
      !mapper.map("candidate", value.candidate) ||
      !mapper.mapOptional("parameters", value.parameters) ||
      !mapper.map("plan", value.plan) ||
      !mapper.mapOptional("resources", value.resources) ||
      !mapper.map("measurement", value.measurement) ||
      !mapper.map("evidence", value.evidence) ||
      !mapper.mapOptional("message", value.message) ||
      !mapper.mapOptional("provider", value.provider) ||
      !mapper.mapOptional("code", value.code) ||
      !mapper.mapOptional("profile", value.profile) ||
      !mapOptionalNatural(mapper, "round", value.round) ||
      !mapOptionalNatural(mapper, "slot", value.slot))
    return false;
  // A file beside the JSON holds the source; one in the JSON is not it.
  value.candidate.source.clear();
  for (auto [field, chip] :
       {std::pair<llvm::StringLiteral, llvm::StringRef>("target", value.target),
        {"chip", value.chip}}) {
    llvm::Expected<Target> target = Target::parse(chip);
    if (!target) {
      llvm::consumeError(target.takeError());
      path.field(field).report("expected a target, as sm_90");
      return false;
    }
  }
  for (auto [i, name] : llvm::enumerate(value.argumentNames)) {
    if (isUsableName(name))
      continue;
    path.field("argument_names").index(i).report("expected a name");
    return false;
  }
  // Empty until the store names the record.
  return (value.id.empty() || checkDigest(value.id, path.field("id"))) &&
         checkDigest(value.taskKey, path.field("task_key")) &&
         (value.code.empty() || checkDigest(value.code, path.field("code"))) &&
         checkParameterNames(json, "parameters", path);
}

llvm::json::Value toJSON(const Talk &value) {
  return llvm::json::Object{{"format_version", Talk::formatVersion},
                            {"task_key", text(value.taskKey)},
                            {"task_name", text(value.taskName)},
                            {"round", value.round},
                            {"slot", value.slot},
                            {"provider", text(value.provider)},
                            {"prompt_tokens", value.promptTokens},
                            {"answer_tokens", value.answerTokens}};
}

bool fromJSON(const llvm::json::Value &json, Talk &value,
              llvm::json::Path path) {
  value = Talk();
  llvm::json::ObjectMapper mapper(json, path);
  return mapper && mapVersion<Talk::formatVersion>(mapper, path) &&
         mapper.map("task_key", value.taskKey) &&
         mapper.mapOptional("task_name", value.taskName) &&
         mapNatural(mapper, "round", value.round) &&
         mapNatural(mapper, "slot", value.slot) &&
         mapper.mapOptional("provider", value.provider) &&
         mapOptionalNatural(mapper, "prompt_tokens", value.promptTokens) &&
         mapOptionalNatural(mapper, "answer_tokens", value.answerTokens) &&
         checkDigest(value.taskKey, path.field("task_key"));
}

} // namespace fsr
