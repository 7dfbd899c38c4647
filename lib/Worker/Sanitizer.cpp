// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parent's side of a replay under compute-sanitizer, and what an evaluation
// makes of it.
//
//===----------------------------------------------------------------------===//

#include "Sanitizer.h"

#include "Strength.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Hash.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace fsr {

namespace {

constexpr llvm::StringLiteral tools[] = {"memcheck", "racecheck", "initcheck",
                                         "synccheck"};
constexpr llvm::StringLiteral prefix = "=========";
constexpr size_t mostFindingLines = 4;
constexpr size_t mostFindingBytes = 600;
constexpr uint64_t mostLogBytes = uint64_t(16) << 20;
/// Beside the tool's own limit: it is started, and what it left is read.
constexpr double slackMs = 30e3;

/// A line that begins what is no finding: a call of the host that failed, and
/// what the tool says of the program it ran.
bool isOfTheHost(llvm::StringRef line) {
  return llvm::any_of(
      llvm::ArrayRef<llvm::StringLiteral>{
          "Program hit ", "Target application ", "Error: Target application ",
          "Error: process didn't terminate ", "Internal Sanitizer Error"},
      [&](llvm::StringRef start) { return line.starts_with(start); });
}

/// "ERROR SUMMARY: 2 errors", "RACECHECK SUMMARY: 3 hazards displayed (1 error,
/// 2 warnings)".
bool readSummary(llvm::StringRef line, SanitizerLog &log) {
  auto [head, counts] = line.split(" SUMMARY: ");
  if (counts.empty() || (head != "ERROR" && head != "RACECHECK"))
    return false;
  // "ERROR SUMMARY: 33772 errors were not printed": of those that are counted.
  if (counts.contains("not printed"))
    return false;
  if (size_t open = counts.find('('); head == "RACECHECK") {
    if (open == llvm::StringRef::npos)
      return false;
    counts = counts.drop_front(open + 1);
  }
  bool any = false;
  llvm::SmallVector<llvm::StringRef> parts;
  counts.split(parts, ',');
  for (llvm::StringRef part : parts) {
    part = part.trim(" )");
    uint64_t count = 0;
    if (part.consumeInteger(10, count))
      return false;
    part = part.ltrim();
    if (part.starts_with("error"))
      log.errors += count;
    else if (part.starts_with("warning"))
      log.warnings += count;
    else
      continue;
    any = true;
  }
  log.hasSummary |= any;
  return any;
}

} // namespace

SanitizerLog parseSanitizerLog(llvm::StringRef text) {
  SanitizerLog log;
  size_t lines = 0;
  uint64_t calls = 0; // Of the host, each counted as an error.
  std::string ofTheHost;
  bool isFirst = true, isHost = false;
  while (!text.empty()) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    if (!line.consume_front(prefix))
      continue;
    bool isDetail = line.starts_with("    ");
    line = line.trim();
    if (line.empty() || line.starts_with("COMPUTE-SANITIZER") ||
        line.contains(" SUMMARY: ")) {
      readSummary(line, log);
      continue;
    }
    if (!isDetail)
      isHost = isOfTheHost(line);
    if (isHost) {
      calls += line.starts_with("Program hit ");
      if (ofTheHost.empty())
        ofTheHost = line.str();
      continue;
    }
    // The first finding and where it was, not the stack of the host.
    isFirst &= isDetail || !lines;
    if (!isFirst || lines >= mostFindingLines || (isDetail && !lines) ||
        line.contains("Host Frame") || line.contains("backtrace"))
      continue;
    ++lines;
    log.first += (log.first.empty() ? "" : "; ") + line.str();
  }
  // Not all calls are printed where there are many, and no finding either.
  if (calls)
    log.errors = lines ? log.errors - std::min(log.errors, calls) : 0;
  log.first = scrubPeerText(lines ? log.first : ofTheHost, mostFindingBytes);
  return log;
}

llvm::Expected<std::unique_ptr<ReplayFile>>
ReplayFile::create(const WireEvaluate &request, llvm::StringRef image) {
  llvm::SmallString<128> folder;
  if (std::error_code code =
          llvm::sys::fs::createUniqueDirectory("fsr-sanitizer", folder))
    return makeError(ErrorKind::Unavailable,
                     "cannot make a folder for a replay: " + code.message());
  std::unique_ptr<ReplayFile> file(new ReplayFile(folder.str().str()));
  file->lockFd = ::open(file->lock().c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file->lockFd < 0 || ::flock(file->lockFd, LOCK_EX | LOCK_NB) != 0)
    return makeError(ErrorKind::Unavailable,
                     "cannot lock '" + file->lock() + "'");
  int fd = ::open(file->replay().c_str(),
                  O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return makeError(ErrorKind::Unavailable,
                     "cannot write '" + file->replay() + "'");
  Frame first, second;
  first.header = llvm::json::Object{{"op", "image"}, {"hash", sha256(image)}};
  first.blob = image.str();
  second.header = *toJSON(request).getAsObject();
  llvm::Error error = writeFrame(fd, first);
  if (!error)
    error = writeFrame(fd, second);
  ::close(fd);
  if (error)
    return std::move(error);
  return std::move(file);
}

ReplayFile::~ReplayFile() {
  llvm::sys::fs::remove_directories(folder);
  if (lockFd >= 0)
    ::close(lockFd);
}

/// Of one that cannot: by name, as a command line is no reason to remove more.
static void removeReplay(llvm::StringRef folder) {
  for (llvm::StringRef tool : tools)
    llvm::sys::fs::remove(folder + "/" + tool + ".log");
  for (llvm::StringRef name : {"/ncu.log", "/replay", "/lock", ""})
    llvm::sys::fs::remove(folder + name);
}

llvm::Error endWithHolder(const std::string &lock) {
  int fd = ::open(lock.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
    if (fd >= 0)
      ::close(fd);
    return makeError(ErrorKind::Unavailable,
                     "nobody holds '" + lock + "': the worker has ended");
  }
  std::thread([fd, folder = llvm::sys::path::parent_path(lock).str()] {
    while (::flock(fd, LOCK_SH) != 0 && errno == EINTR) {
    }
    removeReplay(folder);
    ::kill(0, SIGKILL); // The tool as well, whose group this is.
  }).detach();
  return llvm::Error::success();
}

std::vector<std::string>
ReplayFile::replayCommand(const SanitizerSetup &setup) const {
  std::vector<std::string> command = setup.self;
  command.insert(command.end(), {"replay", replay(), "--device=" + setup.device,
                                 "--while-locked=" + lock()});
  return command;
}

SanitizerRun ReplayFile::runTool(const SanitizerSetup &setup,
                                 llvm::StringRef tool) const {
  std::string logPath = logOf(tool);
  std::vector<std::string> args{
      setup.tool, "--tool", tool.str(), "--log-file", logPath, "--print-limit",
      "20", "--error-exitcode", "86",
      // The worker holds memory and a context meanwhile, so that calls of the
      // replay may fail.
      "--report-api-errors", "no"};
  llvm::append_range(args, replayCommand(setup));
  ProcessLimits limits;
  limits.wall = setup.limit;
  limits.maxOutputBytes = size_t(1) << 16;
  auto ended = runProcess(args, "", limits);
  SanitizerRun run;
  if (!ended) {
    run.unfinished = "was not started: " + llvm::toString(ended.takeError());
    return run;
  }
  auto text = readFile(logPath, mostLogBytes);
  if (text)
    run.log = parseSanitizerLog(*text);
  else
    llvm::consumeError(text.takeError());
  if (run.log.errors)
    return run; // Whatever happened then.
  if (ended->timedOut)
    run.unfinished =
        "not finished in " + std::to_string(setup.limit.count() / 1000) + " s";
  else if (!run.log.hasSummary || !ended->succeeded())
    run.unfinished =
        "did not run (" + ended->describe() + ")" +
        (run.log.first.empty() ? "" : ": " + run.log.first) +
        (ended->err.empty()
             ? ""
             : ": " + scrubPeerText(llvm::StringRef(ended->err).trim(), 200));
  return run;
}

/// Evidence for a winner, and a last chance to refuse it. What the tools cannot
/// say is said to be missing; it is no fault of the candidate.
llvm::Expected<bool> Evaluation::sanitize() {
  constexpr llvm::StringLiteral name = "compute-sanitizer";
  constexpr llvm::StringLiteral inputWords = "the workload's own";
  constexpr llvm::StringLiteral rule = "no error found by the tools that ran";
  if (virtualDevice || !sanitizer || sanitizer->tool.empty()) {
    addCheck(name, true, "-", "not run",
             virtualDevice ? "virtual device: not applicable"
                           : "not installed");
    return true;
  }
  auto file = ReplayFile::create(request, images.candidate);
  if (!file) {
    addCheck(name, true, "-", "not run", llvm::toString(file.takeError()));
    return true;
  }
  std::string ran, missing, warnings;
  for (llvm::StringRef tool : tools) {
    // Another process runs the candidate; what happens to this one meanwhile
    // is not the candidate's doing.
    if (llvm::Error error = begin("original-sanitizer",
                                  double(sanitizer->limit.count()) + slackMs))
      return std::move(error);
    SanitizerRun run = (*file)->runTool(*sanitizer, tool);
    if (run.log.errors) {
      std::string what =
          (tool + ": " + llvm::Twine(run.log.errors) +
           (run.log.errors == 1 ? " error: " : " errors: ") + run.log.first)
              .str();
      addCheck(name, false, inputWords, rule, what);
      return finish(Verdict::Unsafe, "compute-sanitizer, " + what);
    }
    if (!run.unfinished.empty()) {
      missing +=
          (missing.empty() ? "" : "; ") + (tool + " " + run.unfinished).str();
      continue;
    }
    ran += (ran.empty() ? "" : ", ") + tool.str();
    if (run.log.warnings)
      warnings += (warnings.empty() ? "" : "; ") +
                  (tool + ": " + llvm::Twine(run.log.warnings) +
                   " warnings: " + run.log.first)
                      .str();
  }
  std::string detail = ran.empty() ? "no tool ran" : ran;
  for (const std::string *more : {&warnings, &missing})
    if (!more->empty())
      detail += "; " + *more;
  addCheck(name, true, inputWords, ran.empty() ? "not run" : rule, detail);
  return true;
}

} // namespace fsr
