// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The child processes of FSR, in one file that can be copied to another
// machine: `compile` takes LLM text through NVRTC in a sandbox, `device` runs
// kernels; both speak frames on standard input and output, and are started by
// FSR. `tool` holds a program of the toolkit to its files. `replay` is a
// `device` that starts itself under compute-sanitizer or ncu. `run` is for
// people: one kernel on the virtual device.
//
//===----------------------------------------------------------------------===//

#include "fsr/Toolchain/Toolchain.h"
#ifdef FSR_HAVE_DEVICE_WORKER
#include "fsr/Support/Subprocess.h"
#include "fsr/Worker/Worker.h"
#endif

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>

static bool timeStands = false;

/// The C library's, exported, so that NVRTC finds it before that: for the
/// compiler every build is of 1970. `__DATE__` cannot be undefined there, and a
/// text can hide that it asks.
extern "C" [[gnu::visibility("default")]] time_t time(time_t *into) noexcept {
  timespec now{};
  if (!timeStands)
    clock_gettime(CLOCK_REALTIME, &now);
  if (into)
    *into = now.tv_sec;
  return now.tv_sec;
}

#ifdef FSR_HAVE_DEVICE_WORKER
/// Beside the toolkit, which keeps it in a folder of its own, else on PATH.
static std::string findSanitizer() {
  if (llvm::Expected<fsr::Toolkit> toolkit = fsr::findToolkit()) {
    for (const char *place :
         {"/bin/compute-sanitizer", "/compute-sanitizer/compute-sanitizer"})
      if (llvm::sys::fs::can_execute(toolkit->root + place))
        return toolkit->root + place;
  } else {
    llvm::consumeError(toolkit.takeError());
  }
  return fsr::findOnPath("compute-sanitizer");
}

/// On PATH, else in the toolkit, or where its own package puts it: the newest.
static std::string findProfiler() {
  if (std::string onPath = fsr::findOnPath("ncu"); !onPath.empty())
    return onPath;
  std::string newest;
  auto lookIn = [&](const std::string &folder, llvm::StringRef prefix) {
    std::error_code code;
    for (llvm::sys::fs::directory_iterator at(folder, code), end;
         !code && at != end; at.increment(code)) {
      std::string tool = at->path() + "/ncu";
      if (llvm::sys::path::filename(at->path()).starts_with(prefix) &&
          llvm::sys::fs::can_execute(tool) && tool > newest)
        newest = tool;
    }
  };
  if (llvm::Expected<fsr::Toolkit> toolkit = fsr::findToolkit()) {
    if (llvm::sys::fs::can_execute(toolkit->root + "/bin/ncu"))
      return toolkit->root + "/bin/ncu";
    lookIn(toolkit->root, "nsight-compute");
  } else {
    llvm::consumeError(toolkit.takeError());
  }
  if (newest.empty())
    lookIn("/opt/nvidia/nsight-compute", "");
  return newest;
}
#endif

int main(int argc, char **argv) {
  llvm::StringRef mode = argc > 1 ? argv[1] : "";
  timeStands = mode == "compile";
  if (timeStands)
    return fsr::compileWorkerMain(argc, argv);
  if (mode == "tool")
    return fsr::toolWorkerMain(argc, argv);
#ifdef FSR_HAVE_DEVICE_WORKER
  if (mode == "device")
    return fsr::deviceWorkerMain(argc, argv, findSanitizer(), findProfiler());
  if (mode == "replay")
    return fsr::replayWorkerMain(argc, argv);
  if (mode == "run")
    return fsr::runWorkerMain(argc, argv);
#endif
  const char usage[] = "usage: fsr-worker compile\n"
                       "       fsr-worker tool ROOT FOLDER PROGRAM "
                       "[ARGUMENT...]\n"
#ifdef FSR_HAVE_DEVICE_WORKER
                       "       fsr-worker device [--device=DEVICE]\n"
                       "       fsr-worker replay FILE [--device=DEVICE]\n"
                       "       fsr-worker run FILE --kernel=NAME [OPTION...]\n"
#endif
                       "compile and device speak frames on standard input and "
                       "output; FSR starts them.\n";
  if (mode == "--help" || mode == "-h") {
    llvm::outs() << usage;
    return 0;
  }
  if (mode.empty())
    llvm::errs() << "fsr-worker: a mode is missing\n" << usage;
  else
    llvm::errs() << "fsr-worker: unknown mode \"" << mode << "\"\n" << usage;
  return 1;
}
