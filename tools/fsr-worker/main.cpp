// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The child processes of FSR, in one file that can be copied to another
// machine: `compile` takes LLM text through NVRTC in a sandbox, `device` runs
// kernels; both speak frames on standard input and output, and are started by
// FSR. `tool` holds a program of the toolkit to its files. `run` is for people:
// one kernel on the virtual device.
//
//===----------------------------------------------------------------------===//

#include "fsr/Toolchain/Toolchain.h"
#ifdef FSR_HAVE_DEVICE_WORKER
#include "fsr/Worker/Worker.h"
#endif

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  llvm::StringRef mode = argc > 1 ? argv[1] : "";
  if (mode == "compile")
    return fsr::compileWorkerMain(argc, argv);
  if (mode == "tool")
    return fsr::toolWorkerMain(argc, argv);
#ifdef FSR_HAVE_DEVICE_WORKER
  if (mode == "device")
    return fsr::deviceWorkerMain(argc, argv);
  if (mode == "run")
    return fsr::runWorkerMain(argc, argv);
#endif
  const char usage[] = "usage: fsr-worker compile\n"
                       "       fsr-worker tool ROOT FOLDER PROGRAM "
                       "[ARGUMENT...]\n"
#ifdef FSR_HAVE_DEVICE_WORKER
                       "       fsr-worker device [--device=DEVICE]\n"
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
