// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parent of `fsr-worker compile`: finds what is needed, hands source and
// headers over, waits with a limit, and judges what comes back. Once the child
// has said that it is ready, its death is the source's doing and no error.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"
#include "Headers.h"
#include "Log.h"
#include "WorkerProtocol.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Programs.h"
#include "fsr/Support/Subprocess.h"
#include "fsr/Toolchain/Toolchain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>

using llvm::StringRef;
namespace json = llvm::json;

namespace fsr {
namespace {

constexpr size_t maxSourceBytes = size_t(1) << 20;
constexpr size_t maxPtxBytes = size_t(16) << 20;
constexpr std::chrono::milliseconds startLimit{30000};

llvm::Expected<std::string> findWorker(StringRef given) {
  if (given.empty())
    return findProgram("fsr-worker");
  if (llvm::sys::fs::can_execute(given))
    return given.str();
  return makeError(ErrorKind::Unavailable, "no fsr-worker at " + given);
}

bool isMacroName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name[0]) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

CompileOutcome failed(Verdict verdict, std::string message) {
  CompileOutcome outcome;
  outcome.verdict = verdict;
  outcome.message = std::move(message);
  return outcome;
}

/// Why code that compiled is refused.
std::optional<std::string> checkBuild(const CompileRequest &request,
                                      Build &build) {
  if (build.ptx.size() > maxPtxBytes)
    return "the source makes " + std::to_string(build.ptx.size()) +
           " bytes of PTX; at most " + std::to_string(maxPtxBytes) +
           " are accepted";
  std::string refusal;
  std::optional<PtxModule> module = readPtx(build.ptx, refusal);
  if (!module)
    return refusal;
  if (auto reason = checkCode(*module, request.entries))
    return reason;
  if (auto reason = checkCubin(*module, build))
    return reason;
  if (auto reason =
          checkLaunches(*module, build, request.launches, request.limits))
    return reason;
  return checkPointers(*module, request.launches);
}

class CudaCompiler final : public Compiler {
public:
  CudaCompiler(const Toolkit &toolkit, std::string worker,
               const CompilerOptions &options)
      : nvrtc(toolkit.nvrtcLibrary), worker(std::move(worker)),
        options(options), headers(toolkit.includeFolder) {}

  llvm::Expected<CompileOutcome>
  compile(const CompileRequest &request) override;

private:
  Frame requestFrame(const CompileRequest &request);
  llvm::Expected<CompileOutcome> judge(const CompileRequest &request,
                                       const Frame &answer, const Frame &ready);
  CompileOutcome stopped() const {
    return failed(Verdict::CompileFailed,
                  "the compiler was stopped after " +
                      std::to_string(options.wall.count()) + " ms");
  }

  std::string nvrtc, worker;
  CompilerOptions options;
  HeaderLibrary headers;
};

Frame CudaCompiler::requestFrame(const CompileRequest &request) {
  Frame frame;
  std::string source =
      preludeText().str() + withParameters(request.source, request.parameters);
  json::Array list;
  frame.blob = source;
  for (const MemoryHeader &header : headers.collect(request.source)) {
    list.push_back(json::Object{{"name", header.name},
                                {"bytes", int64_t(header.text.size())}});
    frame.blob += header.text;
  }
  frame.header = json::Object{
      {"op", "compile"},
      {"nvrtc", nvrtc},
      {"chip", request.chip},
      {"cpuSeconds", int64_t(options.wall.count() / 1000 + 1)},
      {"allowUnsandboxed", options.allowUnsandboxed},
      {"sourceBytes", int64_t(source.size())},
      {"headers", std::move(list)},
  };
  return frame;
}

llvm::Expected<CompileOutcome>
CudaCompiler::compile(const CompileRequest &request) {
  if (llvm::Expected<Target> target = Target::parse(request.chip); !target)
    return target.takeError();
  if (request.source.size() > maxSourceBytes)
    return failed(Verdict::Rejected,
                  "the source has " + std::to_string(request.source.size()) +
                      " bytes; at most " + std::to_string(maxSourceBytes) +
                      " are compiled");
  if (StringRef(request.source).contains('\0'))
    return failed(Verdict::Rejected, "the source holds a null byte");
  for (const auto &[name, value] : request.parameters)
    if (!isMacroName(name))
      return failed(Verdict::Rejected, "the parameter name \"" +
                                           json::fixUTF8(name) +
                                           "\" is no identifier");
  if (std::optional<std::string> reason = checkSource(request.source))
    return failed(Verdict::Rejected, *reason);

  Frame frame = requestFrame(request);
  // The limit is the source's; a loaded machine may take longer to start.
  Deadline start = Deadline::in(std::max(options.wall, startLimit));
  auto child = ChildProcess::start({worker, "compile"});
  if (!child)
    return addContext(child.takeError(), "cannot start " + worker);
  auto broken = [&](llvm::Error error) {
    bool late = error && kindOf(error) == ErrorKind::TimedOut;
    llvm::consumeError(std::move(error));
    (*child)->kill();
    if (late)
      return makeError(ErrorKind::TimedOut,
                       worker + " compile was not ready in time");
    return makeError(
        ErrorKind::Unavailable,
        worker + " compile ended before it was ready: " + (*child)->reap());
  };
  if (llvm::Error error = writeFrame((*child)->socket(), frame, start))
    return broken(std::move(error));
  auto ready = readFrame((*child)->socket(), start);
  if (!ready)
    return broken(ready.takeError());
  if (!*ready)
    return broken(llvm::Error::success());
  if (auto why = (*ready)->header.getString("error"))
    return makeError((*ready)->header.getBoolean("unsupported").value_or(false)
                         ? ErrorKind::Unsupported
                         : ErrorKind::Unavailable,
                     "fsr-worker compile: " + *why);
  FrameLimits limits;
  limits.headerBytes = workerLogBytes * 2 + (1u << 20);
  limits.blobBytes = workerCodeBytes;
  auto answer =
      readFrame((*child)->socket(), Deadline::in(options.wall), limits);
  if (!answer) {
    llvm::Error error = answer.takeError();
    bool late = kindOf(error) == ErrorKind::TimedOut;
    llvm::consumeError(std::move(error));
    (*child)->kill();
    if (late)
      return stopped();
    return failed(Verdict::CompileFailed, "the compiler died on this source (" +
                                              (*child)->reap() + ")");
  }
  if (!*answer)
    return failed(Verdict::CompileFailed, "the compiler died on this source (" +
                                              (*child)->reap() + ")");
  return judge(request, **answer, **ready);
}

llvm::Expected<CompileOutcome>
CudaCompiler::judge(const CompileRequest &request, const Frame &answer,
                    const Frame &ready) {
  StringRef log = answer.header.getString("log").value_or("");
  if (!answer.header.getBoolean("compiled").value_or(false)) {
    std::string message = scrubLog(log);
    if (message.empty())
      message = "the compiler gave no reason";
    if (std::optional<std::string> reason = findHostCode(request.source))
      return failed(Verdict::Rejected, *reason + "\n" + message);
    return failed(Verdict::CompileFailed, std::move(message));
  }
  StringRef code = answer.blob;
  int64_t ptxBytes = answer.header.getInteger("ptxBytes").value_or(0);
  if (ptxBytes <= 0 || uint64_t(ptxBytes) >= code.size())
    return failed(Verdict::CompileFailed, "the compiler gave no machine code");
  Build build;
  build.ptx = code.take_front(ptxBytes).str();
  build.cubin = code.drop_front(ptxBytes).str();
  build.chip = request.chip;
  build.resources = parseResourceReport(log);
  build.log = scrubLog(log);
  build.toolchain =
      "NVRTC " +
      ready.header.getString("nvrtc").value_or("of unknown version").str();
  if (const json::Array *held = ready.header.getArray("sandbox"))
    for (const json::Value &layer : *held)
      build.sandbox += (build.sandbox.empty() ? "" : ", ") +
                       layer.getAsString().value_or("").str();
  if (build.sandbox.empty())
    build.sandbox = "none";
  if (std::optional<std::string> reason = checkBuild(request, build))
    return failed(Verdict::Rejected, *reason);
  CompileOutcome outcome;
  outcome.message = build.log;
  outcome.build = std::move(build);
  return outcome;
}

} // namespace

llvm::Expected<std::unique_ptr<Compiler>>
makeCudaCompiler(const CompilerOptions &options) {
  llvm::Expected<Toolkit> toolkit = findToolkit();
  if (!toolkit)
    return toolkit.takeError();
  if (toolkit->nvrtcLibrary.empty())
    return makeError(ErrorKind::Unavailable,
                     "no libnvrtc.so in lib64, lib or targets/*/lib of " +
                         toolkit->root);
  llvm::Expected<std::string> worker = findWorker(options.worker);
  if (!worker)
    return worker.takeError();
  return std::make_unique<CudaCompiler>(*toolkit, *worker, options);
}

} // namespace fsr
