// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The child that compiles one LLM text and ends. Order matters: take the
// request, drop what is not needed, load NVRTC and let it compile a trusted
// kernel once so that all it loads lazily is there, give up the file system,
// say "ready", and only then show the text to the compiler. A death before
// "ready" is a fault of the installation, one after it is the text's.
//
//===----------------------------------------------------------------------===//

#include "Nvrtc.h"
#include "Sandbox.h"
#include "WorkerProtocol.h"

#include "fsr/Core/Types.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Frame.h"
#include "fsr/Toolchain/Toolchain.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using llvm::StringRef;
namespace json = llvm::json;

namespace fsr {
namespace {

/// Goes through all of NVRTC and ptxas. What it takes is paid by every text, so
/// it is short: NVRTC opens the one file that it opens for the first text,
/// whatever that uses.
const char warmUpText[] = R"(
extern "C" __global__ void warm_up(float *x) { x[threadIdx.x] += 1; }
)";

struct Job {
  std::string nvrtc, chip, source;
  std::vector<MemoryHeader> headers; ///< Texts lie in the frame's blob.
  bool allowUnsandboxed = false;
  SandboxLimits limits;
};

llvm::Expected<Job> readJob(const Frame &frame) {
  Job job;
  StringRef rest = frame.blob;
  auto corrupt = [](const char *what) {
    return makeError(ErrorKind::Corrupt,
                     llvm::Twine("compile request: expected ") + what);
  };
  auto take = [&](std::optional<int64_t> bytes) -> std::optional<StringRef> {
    if (!bytes || *bytes < 0 || uint64_t(*bytes) > rest.size())
      return std::nullopt;
    StringRef part = rest.take_front(*bytes);
    rest = rest.drop_front(*bytes);
    return part;
  };
  if (frame.header.getString("op") != StringRef("compile"))
    return corrupt("op \"compile\"");
  std::optional<StringRef> nvrtc = frame.header.getString("nvrtc");
  std::optional<StringRef> chip = frame.header.getString("chip");
  if (!nvrtc || !chip)
    return corrupt("nvrtc and chip");
  job.nvrtc = nvrtc->str();
  job.chip = chip->str();
  job.allowUnsandboxed =
      frame.header.getBoolean("allowUnsandboxed").value_or(false);
  job.limits.cpuSeconds =
      std::max<int64_t>(1, frame.header.getInteger("cpuSeconds").value_or(60));
  const json::Array *headers = frame.header.getArray("headers");
  if (!headers)
    return corrupt("headers");
  std::optional<StringRef> source =
      take(frame.header.getInteger("sourceBytes"));
  if (!source)
    return corrupt("sourceBytes within the blob");
  job.source = source->str();
  for (const json::Value &value : *headers) {
    const json::Object *header = value.getAsObject();
    std::optional<StringRef> name =
        header ? header->getString("name") : std::nullopt;
    std::optional<StringRef> text =
        header ? take(header->getInteger("bytes")) : std::nullopt;
    if (!name || !text)
      return corrupt("name and bytes of a header within the blob");
    job.headers.push_back({name->str(), *text});
  }
  return job;
}

std::vector<std::string> optionsFor(const Nvrtc &nvrtc, const Job &job) {
  std::vector<std::string> options = {
      "--gpu-architecture=" + job.chip,
      "--std=c++17",
      "-default-device",
      "-lineinfo",
      "--ptxas-options=-v",
      // A macro of the prelude may be defined again, as libcu++ does.
      "--diag-suppress=47",
  };
  // Both are younger than the oldest NVRTC that works.
  if (nvrtc.majorVersion() > 12 ||
      (nvrtc.majorVersion() == 12 && nvrtc.minorVersion() >= 9)) {
    options.push_back("--no-source-include");
    options.push_back("--no-cache");
  }
  return options;
}

llvm::Error reply(json::Object header, std::string blob = "") {
  return writeFrame(STDOUT_FILENO, {std::move(header), std::move(blob)});
}

/// Makes everything ready, tells so, compiles, answers.
llvm::Error serve(Frame frame) {
  llvm::Expected<Job> job = readJob(frame);
  if (!job)
    return job.takeError();
  if (llvm::Error error = dropSurroundings(job->limits))
    return error;
  llvm::Expected<Nvrtc> nvrtc = Nvrtc::load(job->nvrtc);
  if (!nvrtc)
    return nvrtc.takeError();
  std::string version = std::to_string(nvrtc->majorVersion()) + "." +
                        std::to_string(nvrtc->minorVersion());
  llvm::Expected<Target> target = Target::parse(job->chip);
  if (!target)
    return target.takeError();
  if (!nvrtc->supports(target->computeCapability()))
    return makeError(ErrorKind::Unsupported,
                     "NVRTC " + version + " makes no code for " + job->chip);
  std::vector<std::string> options = optionsFor(*nvrtc, *job);
  llvm::Expected<Nvrtc::Result> warm = nvrtc->compile(warmUpText, {}, options);
  if (!warm)
    return warm.takeError();
  if (!warm->compiled)
    return makeError(ErrorKind::Unavailable,
                     "NVRTC " + version +
                         " does not compile a kernel of ours "
                         "for " +
                         job->chip + ": " + json::fixUTF8(warm->log));
  std::vector<std::string> held = enterSandbox();
  if (held.empty() && !job->allowUnsandboxed)
    return makeError(ErrorKind::Unavailable,
                     "this kernel has neither seccomp nor Landlock, and LLM "
                     "text is not compiled without a sandbox unless "
                     "allow-unsandboxed is given");
  if (llvm::Error error = reply(json::Object{
          {"ready", true}, {"nvrtc", version}, {"sandbox", json::Array(held)}}))
    return error;

  llvm::Expected<Nvrtc::Result> result =
      nvrtc->compile(job->source, job->headers, options);
  if (!result)
    // Out of memory, an internal error: a kernel of ours compiled just now, so
    // the text did it.
    return reply(json::Object{
        {"compiled", false},
        {"log", json::fixUTF8(llvm::toString(result.takeError()))}});
  json::Object header;
  header["compiled"] = result->compiled;
  header["log"] =
      json::fixUTF8(StringRef(result->log).take_front(workerLogBytes));
  header["ptxBytes"] = int64_t(result->ptx.size());
  if (result->ptx.size() + result->cubin.size() > workerCodeBytes)
    return reply(json::Object{
        {"compiled", false},
        {"log", "the machine code has " +
                    std::to_string(result->ptx.size() + result->cubin.size()) +
                    " bytes; at most " + std::to_string(workerCodeBytes) +
                    " are accepted"}});
  return reply(std::move(header), result->ptx + result->cubin);
}

} // namespace

int toolWorkerMain(int argc, char **argv) {
  if (argc < 5) {
    llvm::errs() << "fsr-worker tool: wanted ROOT FOLDER PROGRAM [ARGUMENT...]"
                    "\n";
    return 1;
  }
  std::vector<std::string> command(argv + 4, argv + argc);
  std::string why = llvm::toString(runTool(argv[2], argv[3], command));
  llvm::errs() << "fsr-worker tool: " << why << "\n";
  return 1;
}

int compileWorkerMain(int, char **) {
  llvm::Expected<std::optional<Frame>> frame =
      readFrame(STDIN_FILENO, Deadline::in(std::chrono::seconds(30)));
  if (!frame) {
    llvm::consumeError(
        reply(json::Object{{"error", llvm::toString(frame.takeError())}}));
    return 1;
  }
  if (!*frame)
    return 0;
  if (llvm::Error error = serve(std::move(**frame))) {
    ErrorKind kind = kindOf(error);
    llvm::consumeError(reply(
        json::Object{{"error", json::fixUTF8(llvm::toString(std::move(error)))},
                     {"unsupported", kind == ErrorKind::Unsupported}}));
    return 1;
  }
  return 0;
}

} // namespace fsr
