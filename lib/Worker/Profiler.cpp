// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The profiler's command line and its table, and what an evaluation says beside
// its verdict. Nothing here changes a verdict.
//
// Sections are named and not metrics: ncu knows what a section is on each chip,
// and takes no metric that a chip lacks.
//
//===----------------------------------------------------------------------===//

#include "Profiler.h"

#include "Evaluation.h"
#include "Peaks.h"
#include "Sanitizer.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

namespace fsr {

namespace {

constexpr uint64_t mostLogBytes = uint64_t(16) << 20;
constexpr size_t mostColumns = 4096;
constexpr unsigned mostLaunches = 16;
/// Beside the tool's own limit: it is started, and what it left is read.
constexpr double slackMs = 30e3;
constexpr llvm::StringLiteral stallPrefix =
    "smsp__average_warps_issue_stalled_";
constexpr llvm::StringLiteral stallSuffix = "_per_issue_active.ratio";

/// The cells of one line: "a","1,234",… Nothing where it is no such line.
std::vector<std::string> cellsOf(llvm::StringRef line) {
  std::vector<std::string> cells;
  line = line.trim();
  while (!line.empty() && cells.size() < mostColumns) {
    if (!line.consume_front("\""))
      return {};
    std::string cell;
    while (true) {
      auto [text, rest] = line.split('"');
      if (text.size() == line.size())
        return {}; // It never ends.
      cell += text;
      line = rest;
      if (!line.consume_front("\"")) // Doubled: one of the text.
        break;
      cell += '"';
    }
    cells.push_back(std::move(cell));
    if (!line.empty() && !line.consume_front(","))
      return {};
  }
  return cells;
}

/// By the row of units; what is not known stays as it is.
double factorOf(llvm::StringRef unit) {
  return llvm::StringSwitch<double>(unit)
      .Cases({"Kbyte", "KB"}, 1e3)
      .Cases({"Mbyte", "MB"}, 1e6)
      .Cases({"Gbyte", "GB"}, 1e9)
      .Cases({"nsecond", "ns"}, 1e-3) // To microseconds.
      .Cases({"msecond", "ms"}, 1e3)
      .Cases({"second", "s"}, 1e6)
      .Default(1);
}

/// "1,234.5"; less than 0 where it is no number.
double numberOf(llvm::StringRef text) {
  std::string plain;
  for (char c : text.trim())
    if (c != ',')
      plain += c;
  double value = -1;
  if (plain.empty() || llvm::StringRef(plain).getAsDouble(value) ||
      !std::isfinite(value) || value < 0)
    return -1;
  return value;
}

double HardwareCounters::*memberOf(llvm::StringRef metric) {
  struct Row {
    llvm::StringLiteral metric;
    double HardwareCounters::*member;
  };
  static constexpr Row rows[] = {
      {"gpu__time_duration.sum", &HardwareCounters::microseconds},
      {"dram__bytes_read.sum", &HardwareCounters::dramReadBytes},
      {"dram__bytes_write.sum", &HardwareCounters::dramWriteBytes},
      {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
       &HardwareCounters::dramPercent},
      {"sm__throughput.avg.pct_of_peak_sustained_elapsed",
       &HardwareCounters::smPercent},
      {"sm__warps_active.avg.pct_of_peak_sustained_active",
       &HardwareCounters::occupancyPercent},
      {"l1tex__t_sector_hit_rate.pct", &HardwareCounters::l1HitPercent},
      {"lts__t_sector_hit_rate.pct", &HardwareCounters::l2HitPercent},
  };
  for (const Row &row : rows)
    if (row.metric == metric)
      return row.member;
  return nullptr;
}

/// "long scoreboard"; empty where the column is no reason to wait.
std::string reasonOf(llvm::StringRef metric) {
  if (!metric.consume_front(stallPrefix) || !metric.consume_back(stallSuffix) ||
      metric == "selected")
    return "";
  std::string reason;
  for (char c : metric.take_front(64))
    reason += c == '_' ? ' ' : c;
  return scrubPeerText(reason, 64);
}

HardwareCounters readRow(llvm::ArrayRef<std::string> names,
                         llvm::ArrayRef<std::string> units,
                         llvm::ArrayRef<std::string> cells) {
  HardwareCounters row;
  for (size_t i = 0; i < std::min(names.size(), cells.size()); ++i) {
    llvm::StringRef name = names[i];
    if (name == "Kernel Name") {
      row.kernel =
          scrubPeerText(llvm::StringRef(cells[i]).split('(').first.trim(), 256);
      continue;
    }
    double value = numberOf(cells[i]);
    if (value < 0)
      continue;
    if (double HardwareCounters::*member = memberOf(name))
      row.*member = value * factorOf(i < units.size() ? units[i] : "");
    else if (std::string reason = reasonOf(name); !reason.empty() && value > 0)
      row.stalls.push_back({std::move(reason), value});
  }
  llvm::sort(row.stalls, [](const auto &a, const auto &b) {
    return a.warps != b.warps ? a.warps > b.warps : a.reason < b.reason;
  });
  if (row.stalls.size() > Profile::mostStalls)
    row.stalls.resize(Profile::mostStalls);
  return row;
}

/// The first thing that ncu complains of.
std::string complaintIn(llvm::StringRef text) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    if (line.consume_front("==ERROR==") || line.consume_front("==WARNING=="))
      return scrubPeerText(line.trim(), 300);
  }
  return "";
}

} // namespace

std::vector<HardwareCounters> parseProfilerLog(llvm::StringRef text) {
  std::vector<HardwareCounters> rows;
  std::vector<std::string> names, units;
  bool hasUnits = false;
  while (!text.empty() && rows.size() < Profile::mostKernels) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    if (!line.starts_with("\""))
      continue;
    std::vector<std::string> cells = cellsOf(line);
    if (cells.empty())
      continue;
    if (cells.front() == "ID") {
      names = std::move(cells);
      hasUnits = false;
      continue;
    }
    if (names.empty())
      continue;
    if (!hasUnits && cells.front().empty()) {
      units = std::move(cells);
      hasUnits = true;
      continue;
    }
    HardwareCounters row = readRow(names, units, cells);
    if (!row.kernel.empty())
      rows.push_back(std::move(row));
  }
  return rows;
}

llvm::Expected<std::vector<HardwareCounters>>
runProfiler(const SanitizerSetup &setup, const ReplayFile &file,
            const ResolvedPlan &plan) {
  std::vector<std::string> names;
  for (const ResolvedLaunch &launch : plan.launches)
    // A regular expression; other names are no kernel's.
    if (llvm::all_of(launch.kernel,
                     [](char c) { return llvm::isAlnum(c) || c == '_'; }) &&
        !llvm::is_contained(names, launch.kernel))
      names.push_back(launch.kernel);
  std::string logPath = file.logOf("ncu");
  size_t launches = std::min<size_t>(plan.launches.size(), mostLaunches);
  std::vector<std::string> args{setup.profiler, "--csv", "--page", "raw",
                                "--print-units", "base", "--log-file", logPath,
                                // Clocks are the host's own business.
                                "--clock-control", "none", "--kernel-name",
                                "regex:^(" + llvm::join(names, "|") + ")$",
                                "--launch-count", std::to_string(launches),
                                "--metrics",
                                "dram__bytes_read.sum,dram__bytes_write.sum"};
  for (const char *section : {"SpeedOfLight", "MemoryWorkloadAnalysis",
                              "Occupancy", "WarpStateStats"})
    args.insert(args.end(), {"--section", section});
  llvm::append_range(args, file.replayCommand(setup));
  ProcessLimits limits;
  limits.wall = setup.limit;
  limits.maxOutputBytes = size_t(1) << 16;
  auto ended = runProcess(args, "", limits);
  auto none = [](const llvm::Twine &why) {
    return makeError(ErrorKind::Unavailable, why);
  };
  if (!ended)
    return none("ncu was not started: " + llvm::toString(ended.takeError()));
  if (ended->timedOut)
    return none("ncu had not finished in " +
                llvm::Twine(setup.limit.count() / 1000) + " s");
  auto text = readFile(logPath, mostLogBytes);
  std::string log, said;
  if (text)
    log = std::move(*text);
  else
    said = llvm::toString(text.takeError());
  if (llvm::StringRef(log + ended->out + ended->err)
          .contains("ERR_NVGPUCTRPERM"))
    return none(
        "not permitted (ERR_NVGPUCTRPERM); the setting "
        "NVreg_RestrictProfilingToAdminUsers=0 of the module nvidia, or "
        "CAP_SYS_ADMIN, permits it");
  std::vector<HardwareCounters> rows = parseProfilerLog(log);
  if (!rows.empty())
    return rows;
  if (said.empty())
    said = complaintIn(log);
  if (said.empty())
    said = scrubPeerText(llvm::StringRef(ended->err).trim(), 200);
  return none("ncu told nothing (" + ended->describe() + ")" +
              (said.empty() ? "" : ": " + said));
}

llvm::Error Evaluation::readCounters(Profile &profile) {
  auto missing = [&](const llvm::Twine &why) {
    profile.missing.push_back(("hardware counters: " + why).str());
    return llvm::Error::success();
  };
  if (virtualDevice)
    return missing("a virtual device has none");
  if (!sanitizer || sanitizer->profiler.empty())
    return missing("ncu is not installed");
  auto file = ReplayFile::create(request, images.candidate);
  if (!file)
    return missing(llvm::toString(file.takeError()));
  // Another process runs the candidate, as under compute-sanitizer.
  if (llvm::Error error = begin("original-counters",
                                double(sanitizer->limit.count()) + slackMs))
    return error;
  auto rows = runProfiler(*sanitizer, **file, request.plan);
  if (!rows)
    return missing(llvm::toString(rows.takeError()));
  profile.hardware = std::move(*rows);
  return llvm::Error::success();
}

llvm::Error Evaluation::lookCloser() {
  bool isRight = result.verdict == Verdict::Accepted ||
                 result.verdict == Verdict::NotFaster ||
                 result.verdict == Verdict::Undecided;
  bool wantsCounters =
      request.options.counters && result.verdict == Verdict::Accepted;
  if (dummy || !isRight || !(request.options.peaks || wantsCounters))
    return llvm::Error::success();
  Profile profile = result.profile.value_or(Profile());
  if (request.options.peaks) {
    if (llvm::Error error = begin("original-peaks", 30e3))
      return error;
    if (auto peaks = measurePeaks(helpers)) {
      profile.peaks = *peaks;
    } else {
      std::string why;
      llvm::handleAllErrors(
          peaks.takeError(),
          [&](const BackendError &failure) {
            dead = dead || failure.isSticky();
            why = failure.message();
          },
          [&](const llvm::ErrorInfoBase &failure) { why = failure.message(); });
      profile.missing.push_back("measured peaks: " + why);
    }
  }
  if (wantsCounters)
    if (llvm::Error error = readCounters(profile))
      return error;
  result.profile = std::move(profile);
  return llvm::Error::success();
}

} // namespace fsr
