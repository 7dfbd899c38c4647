// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Profiles in JSON and in words. Numbers have fixed digits: the words are in
// requests, which must not change from run to run.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Profile.h"

#include "JsonHelpers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

namespace fsr {

using namespace detail;

namespace {

struct ClassRow {
  llvm::StringLiteral key, words;
};

/// In the order of `CodeClass`.
constexpr ClassRow classRows[] = {
    {"fp32_fma", "FP32 FMA"},
    {"fp32_add", "FP32 add"},
    {"fp32_mul", "FP32 mul"},
    {"fp32_other", "other FP32"},
    {"fp16", "FP16"},
    {"fp64", "FP64"},
    {"mma", "MMA"},
    {"mufu", "MUFU"},
    {"convert", "convert"},
    {"integer", "integer"},
    {"ldg_narrow", "LDG below 32 bits"},
    {"ldg_32", "LDG.32"},
    {"ldg_64", "LDG.64"},
    {"ldg_128", "LDG.128"},
    {"stg_narrow", "STG below 32 bits"},
    {"stg_32", "STG.32"},
    {"stg_64", "STG.64"},
    {"stg_128", "STG.128"},
    {"async_copy", "asynchronous copy"},
    {"lds", "LDS"},
    {"sts", "STS"},
    {"ldl", "LDL (spills, indexed arrays)"},
    {"stl", "STL (spills, indexed arrays)"},
    {"barrier", "barrier"},
    {"atomic", "atomic"},
    {"shuffle", "shuffle or vote"},
    {"branch", "branch"},
    {"other", "other"},
};
static_assert(std::size(classRows) == codeClasses);

struct CountRow {
  llvm::StringLiteral key;
  int64_t CountedWork::*value;
};

constexpr CountRow countRows[] = {
    {"warp_instructions", &CountedWork::warpInstructions},
    {"lane_instructions", &CountedWork::laneInstructions},
    {"integer", &CountedWork::integer},
    {"float16", &CountedWork::float16},
    {"float32", &CountedWork::float32},
    {"float64", &CountedWork::float64},
    {"special", &CountedWork::special},
    {"conversion", &CountedWork::conversion},
    {"control", &CountedWork::control},
    {"memory", &CountedWork::memory},
    {"barrier", &CountedWork::barrier},
    {"shuffle", &CountedWork::shuffle},
    {"tensor", &CountedWork::tensor},
    {"atomic", &CountedWork::atomic},
    {"flops_16", &CountedWork::flops16},
    {"flops_32", &CountedWork::flops32},
    {"flops_64", &CountedWork::flops64},
    {"flops_tensor", &CountedWork::tensorFlops},
    {"global_load_bytes", &CountedWork::globalLoadBytes},
    {"global_store_bytes", &CountedWork::globalStoreBytes},
    {"local_bytes", &CountedWork::localBytes},
    {"global_requests", &CountedWork::globalRequests},
    {"global_sectors", &CountedWork::globalSectors},
    {"unique_sectors", &CountedWork::uniqueSectors},
    {"shared_requests", &CountedWork::sharedRequests},
    {"bank_cycles", &CountedWork::bankCycles},
    {"branches", &CountedWork::branches},
    {"divergent_branches", &CountedWork::divergentBranches},
    {"atomic_serial", &CountedWork::atomicSerial},
};

struct HardwareRow {
  llvm::StringLiteral key;
  double HardwareCounters::*value;
};

constexpr HardwareRow hardwareRows[] = {
    {"us", &HardwareCounters::microseconds},
    {"dram_read_bytes", &HardwareCounters::dramReadBytes},
    {"dram_write_bytes", &HardwareCounters::dramWriteBytes},
    {"dram_percent", &HardwareCounters::dramPercent},
    {"sm_percent", &HardwareCounters::smPercent},
    {"occupancy_percent", &HardwareCounters::occupancyPercent},
    {"l1_hit_percent", &HardwareCounters::l1HitPercent},
    {"l2_hit_percent", &HardwareCounters::l2HitPercent},
};

constexpr size_t mostStallsTold = 3;

std::string percent(double part, double whole) {
  return llvm::formatv("{0:f1} %", 100 * part / whole);
}

/// Sums of them must fit.
bool mapCount(llvm::json::ObjectMapper &mapper, llvm::StringLiteral key,
              int64_t &out, llvm::json::Path path) {
  if (!mapOptionalNatural(mapper, key, out))
    return false;
  if (out <= int64_t(1) << 53)
    return true;
  path.field(key).report("expected integer of at most 2^53");
  return false;
}

bool isNumber(double value) { return std::isfinite(value) && value >= 0; }

} // namespace

int64_t InstructionMix::all() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t(0));
}

bool DevicePeaks::isSound() const {
  return isNumber(copyBytesPerSecond) && isNumber(flopsPerSecond);
}

bool Profile::isEmpty() const {
  return mixes.empty() && !counted && hardware.empty() && !peaks &&
         missing.empty();
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

std::string describe(const InstructionMix &mix) {
  std::string text;
  for (auto [row, count] : llvm::zip_equal(classRows, mix.counts))
    if (count > 0)
      text += llvm::formatv("{0}{1} {2}", text.empty() ? "" : ", ", count,
                            row.words);
  return llvm::formatv("`{0}` has {1} machine instructions, each counted once "
                       "where it stands: {2}",
                       mix.kernel, mix.all(), text.empty() ? "none" : text);
}

std::vector<std::string> describe(const CountedWork &c) {
  std::vector<std::string> texts;
  auto add = [&](auto &&...parts) {
    texts.push_back(llvm::formatv(std::forward<decltype(parts)>(parts)...));
  };
  if (c.warpInstructions > 0) {
    std::string classes;
    for (auto [words, value] :
         {std::pair<const char *, int64_t>("integer", c.integer),
          {"FP16", c.float16},
          {"FP32", c.float32},
          {"FP64", c.float64},
          {"special functions", c.special},
          {"conversions", c.conversion},
          {"control", c.control},
          {"memory", c.memory},
          {"barriers", c.barrier},
          {"shuffles", c.shuffle},
          {"tensor cores", c.tensor},
          {"atomics", c.atomic}})
      if (value > 0)
        classes += (classes.empty() ? ": " : ", ") +
                   percent(double(value), double(c.warpInstructions)) + " " +
                   words;
    add("{0} warp instructions of PTX, {1:f1} of 32 lanes active{2}",
        c.warpInstructions,
        double(c.laneInstructions) / double(c.warpInstructions), classes);
  }
  if (c.globalRequests > 0) {
    int64_t bytes = c.globalLoadBytes + c.globalStoreBytes;
    std::string used;
    if (c.globalSectors > 0)
      used =
          llvm::formatv("; {0} of the bytes moved are used",
                        percent(double(bytes), 32 * double(c.globalSectors)));
    std::string again;
    if (c.uniqueSectors > 0)
      again = llvm::formatv(
          "; each sector that is touched is asked for {0:f2} times",
          double(c.globalSectors) / double(c.uniqueSectors));
    add("global memory: {0:f2} sectors of 32 bytes a warp's request{1}{2}",
        double(c.globalSectors) / double(c.globalRequests), used, again);
  }
  if (c.localBytes > 0)
    add("local memory (spilled or indexed arrays): {0} bytes", c.localBytes);
  if (c.sharedRequests > 0)
    add("shared memory: {0:f2} cycles of the banks a warp's request (1: no "
        "conflicts)",
        double(c.bankCycles) / double(c.sharedRequests));
  if (c.branches > 0)
    add("{0} of {1} branches diverge ({2})", c.divergentBranches, c.branches,
        percent(double(c.divergentBranches), double(c.branches)));
  if (c.atomic > 0)
    add("{0} atomic warp instructions; {1} updates wait for another lane of "
        "their warp",
        c.atomic, c.atomicSerial);
  return texts;
}

std::string describe(const HardwareCounters &c) {
  std::string text;
  auto add = [&](const std::string &part) {
    text += (text.empty() ? "" : ", ") + part;
  };
  if (c.dramReadBytes >= 0)
    add(llvm::formatv("{0:f3} MB read from DRAM", c.dramReadBytes / 1e6));
  if (c.dramWriteBytes >= 0)
    add(llvm::formatv("{0:f3} MB written to it", c.dramWriteBytes / 1e6));
  if (c.dramPercent >= 0)
    add(llvm::formatv("DRAM at {0:f1} % of its peak", c.dramPercent));
  if (c.smPercent >= 0)
    add(llvm::formatv("multiprocessors at {0:f1} % of theirs", c.smPercent));
  if (c.occupancyPercent >= 0)
    add(llvm::formatv("achieved occupancy {0:f1} %", c.occupancyPercent));
  if (c.l1HitPercent >= 0)
    add(llvm::formatv("L1 hit rate {0:f1} %", c.l1HitPercent));
  if (c.l2HitPercent >= 0)
    add(llvm::formatv("L2 hit rate {0:f1} %", c.l2HitPercent));
  std::string stalls;
  for (const HardwareCounters::Stall &stall :
       llvm::ArrayRef(c.stalls).take_front(mostStallsTold))
    stalls += llvm::formatv("{0}{1} ({2:f2} warps)", stalls.empty() ? "" : ", ",
                            stall.reason, stall.warps);
  if (!stalls.empty())
    add("warps wait most for " + stalls);
  return llvm::formatv("`{0}`, by the GPU's own counters: {1}", c.kernel,
                       text.empty() ? "nothing was read" : text);
}

std::vector<std::string> describe(const Profile &profile) {
  std::vector<std::string> texts;
  for (const InstructionMix &mix : profile.mixes)
    texts.push_back(describe(mix));
  if (profile.counted) {
    texts.push_back("the virtual device counted (" + profile.counted->covers +
                    "):");
    for (const std::string &text : describe(*profile.counted))
      texts.push_back("  " + text);
  }
  for (const HardwareCounters &counters : profile.hardware)
    texts.push_back(describe(counters));
  if (profile.peaks)
    texts.push_back(llvm::formatv(
        "measured on this GPU: copies at {0:f1} GB/s, f32 multiply-adds at "
        "{1:f1} GFLOP/s",
        profile.peaks->copyBytesPerSecond / 1e9,
        profile.peaks->flopsPerSecond / 1e9));
  for (const std::string &text : profile.missing)
    texts.push_back("not known: " + text);
  return texts;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

llvm::json::Value toJSON(const InstructionMix &value) {
  llvm::json::Object counts;
  for (auto [row, count] : llvm::zip_equal(classRows, value.counts))
    if (count > 0)
      counts[row.key] = count;
  return llvm::json::Object{{"kernel", text(value.kernel)},
                            {"counts", std::move(counts)}};
}

bool fromJSON(const llvm::json::Value &json, InstructionMix &value,
              llvm::json::Path path) {
  value = InstructionMix();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("kernel", value.kernel))
    return false;
  const llvm::json::Value *counts = json.getAsObject()->get("counts");
  if (!counts) {
    path.field("counts").report("expected object");
    return false;
  }
  llvm::json::ObjectMapper inner(*counts, path.field("counts"));
  if (!inner)
    return false;
  for (auto [row, count] : llvm::zip_equal(classRows, value.counts))
    if (!mapCount(inner, row.key, count, path.field("counts")))
      return false;
  return true;
}

llvm::json::Value toJSON(const CountedWork &value) {
  llvm::json::Object object{{"covers", text(value.covers)},
                            {"whole", value.isWhole}};
  for (const CountRow &row : countRows)
    if (value.*row.value > 0)
      object[row.key] = value.*row.value;
  return object;
}

bool fromJSON(const llvm::json::Value &json, CountedWork &value,
              llvm::json::Path path) {
  value = CountedWork();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("covers", value.covers) ||
      !mapper.map("whole", value.isWhole))
    return false;
  for (const CountRow &row : countRows)
    if (!mapCount(mapper, row.key, value.*row.value, path))
      return false;
  return true;
}

llvm::json::Value toJSON(const HardwareCounters::Stall &value) {
  return llvm::json::Object{{"reason", text(value.reason)},
                            {"warps", real(value.warps)}};
}

bool fromJSON(const llvm::json::Value &json, HardwareCounters::Stall &value,
              llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("reason", value.reason) ||
      !mapReal(mapper, "warps", value.warps))
    return false;
  if (isNumber(value.warps))
    return true;
  path.field("warps").report("expected a number from 0");
  return false;
}

llvm::json::Value toJSON(const HardwareCounters &value) {
  llvm::json::Object object{{"kernel", text(value.kernel)}};
  for (const HardwareRow &row : hardwareRows)
    if (value.*row.value >= 0)
      object[row.key] = real(value.*row.value);
  if (!value.stalls.empty()) {
    llvm::json::Array stalls;
    for (const HardwareCounters::Stall &stall : value.stalls)
      stalls.push_back(toJSON(stall));
    object["stalls"] = std::move(stalls);
  }
  return object;
}

bool fromJSON(const llvm::json::Value &json, HardwareCounters &value,
              llvm::json::Path path) {
  value = HardwareCounters();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("kernel", value.kernel) ||
      !mapper.mapOptional("stalls", value.stalls))
    return false;
  if (value.stalls.size() > Profile::mostStalls) {
    path.field("stalls").report("expected at most 8 reasons");
    return false;
  }
  for (const HardwareRow &row : hardwareRows) {
    if (!json.getAsObject()->get(row.key))
      continue;
    if (!mapReal(mapper, row.key, value.*row.value))
      return false;
    if (!isNumber(value.*row.value)) {
      path.field(row.key).report("expected a number from 0");
      return false;
    }
  }
  return true;
}

llvm::json::Value toJSON(const DevicePeaks &value) {
  return llvm::json::Object{
      {"copy_bytes_per_second", real(value.copyBytesPerSecond)},
      {"flops_per_second", real(value.flopsPerSecond)}};
}

bool fromJSON(const llvm::json::Value &json, DevicePeaks &value,
              llvm::json::Path path) {
  value = DevicePeaks();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper ||
      !mapReal(mapper, "copy_bytes_per_second", value.copyBytesPerSecond) ||
      !mapReal(mapper, "flops_per_second", value.flopsPerSecond))
    return false;
  if (value.isSound())
    return true;
  path.report("expected rates from 0");
  return false;
}

llvm::json::Value toJSON(const Profile &value) {
  llvm::json::Object object;
  if (!value.mixes.empty())
    object["instructions"] = llvm::json::Array(value.mixes);
  if (value.counted)
    object["counted"] = toJSON(*value.counted);
  if (!value.hardware.empty())
    object["hardware"] = llvm::json::Array(value.hardware);
  if (value.peaks)
    object["peaks"] = toJSON(*value.peaks);
  if (!value.missing.empty())
    object["missing"] = texts(value.missing);
  return object;
}

bool fromJSON(const llvm::json::Value &json, Profile &value,
              llvm::json::Path path) {
  value = Profile();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.mapOptional("instructions", value.mixes) ||
      !mapper.mapOptional("counted", value.counted) ||
      !mapper.mapOptional("hardware", value.hardware) ||
      !mapper.mapOptional("peaks", value.peaks) ||
      !mapper.mapOptional("missing", value.missing))
    return false;
  if (value.mixes.size() <= Profile::mostKernels &&
      value.hardware.size() <= Profile::mostKernels &&
      value.missing.size() <= Profile::mostMissing)
    return true;
  path.report("expected at most 64 kernels and 16 lines of what is missing");
  return false;
}

} // namespace fsr
