// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// mlir-opt with FSR's passes: all upstream dialects and passes are in it. One
// more mode serves the passes themselves: with --fsr-lower-reference it reads a
// module on standard input and writes the PTX of its kernel, in a process of
// its own because NVPTX may end it; with --promote=N,… that of a clone in which
// every float is an f64, and the memory of those arguments.
//
// Ctrl-C ends it with status 130 (SIGTERM: 143), no output and nothing lost. A
// lowering that ends the process says why in one line, with no stack dump: its
// parent tells the user.
//
//===----------------------------------------------------------------------===//

#include "fsr/IR/Kernels.h"
#include "fsr/Support/Interrupt.h"
#include "fsr/Support/Tool.h"
#include "fsr/Terminal/Progress.h"
#include "fsr/Transforms/Passes.h"

#include "mlir/IR/AsmState.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"

#include <csignal>
#include <sys/prctl.h>
#include <unistd.h>

static int lowerReferenceMain(int argc, char **argv,
                              mlir::DialectRegistry &registry) {
  std::string target;
  std::optional<llvm::SmallVector<unsigned>> promoted;
  for (int i = 2; i < argc; ++i) {
    llvm::StringRef argument(argv[i]);
    if (argument.consume_front("--target=")) {
      target = argument.str();
      continue;
    }
    bool isGood = argument.consume_front("--promote=");
    promoted.emplace();
    llvm::SmallVector<llvm::StringRef> positions;
    argument.split(positions, ',', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef position : positions)
      isGood = isGood && !position.getAsInteger(10, promoted->emplace_back());
    if (!isGood) {
      llvm::errs() << "fsr-opt: --fsr-lower-reference: got '" << argv[i]
                   << "', wanted --target=sm_XX or --promote=N,…\n";
      return 1;
    }
  }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> input =
      llvm::MemoryBuffer::getSTDIN();
  if (!input) {
    llvm::errs() << "fsr-opt: standard input: " << input.getError().message()
                 << "\n";
    return 1;
  }
  mlir::MLIRContext context(registry);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*input), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return 1;
  if (promoted)
    if (llvm::Error error = fsr::promoteKernel(*module, *promoted)) {
      llvm::errs() << llvm::toString(std::move(error)) << "\n";
      return 1;
    }
  llvm::Expected<std::string> ptx = fsr::lowerReference(*module, target);
  if (!ptx) {
    llvm::errs() << llvm::toString(ptx.takeError()) << "\n";
    return 1;
  }
  llvm::outs() << *ptx;
  return 0;
}

/// The whole life of the child that lowers: no pretty stack trace, and no
/// longer than its parent's.
static int lowerReferenceProcess(int argc, char **argv,
                                 mlir::DialectRegistry &registry) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    llvm::errs() << reason << "\n";
    _exit(1);
  });
  return lowerReferenceMain(argc, argv, registry);
}

int main(int argc, char **argv) {
  bool isLowering =
      argc > 1 && llvm::StringRef(argv[1]) == "--fsr-lower-reference";
  // Threads that are started later inherit what this one blocks.
  if (!isLowering) {
    fsr::beginTool("fsr-opt");
    fsr::endOnInterrupt([] { fsr::sayInterrupted("fsr-opt"); });
  }
  mlir::registerAllPasses();
  fsr::registerFSRPasses();

  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllGPUToLLVMIRTranslations(registry);

  if (isLowering)
    return lowerReferenceProcess(argc, argv, registry);
  return fsr::finishTool(
      "fsr-opt",
      mlir::asMainReturnCode(mlir::MlirOptMain(
          argc, argv,
          "MLIR optimizer driver with LLM-guided GPU kernel passes\n",
          registry)));
}
