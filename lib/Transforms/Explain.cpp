// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// fsr-explain: what FSR sees in a module, in words, on standard error (the
// module itself goes to standard output). Every kernel that is left alone gets
// its sentence.
//
//===----------------------------------------------------------------------===//

#include "Replacer.h"

#include "fsr/Support/Hash.h"
#include "fsr/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace fsr {
#define GEN_PASS_DEF_EXPLAINPASS
#include "fsr/Transforms/Passes.h.inc"
} // namespace fsr

using namespace mlir;

namespace {

void printShape(llvm::raw_ostream &os, llvm::ArrayRef<int64_t> extent) {
  llvm::interleave(extent, os, " x ");
}

void printTask(llvm::raw_ostream &os, const fsr::KernelTask &task) {
  os << "  key: " << task.key << "\n  target: " << task.target
     << "\n  launch: grid ";
  printShape(os, task.launch.grid);
  os << ", block ";
  printShape(os, task.launch.block);
  os << ", " << task.launch.sharedBytes << " bytes of dynamic shared memory\n";
  os << "  a candidate implements:\n    extern \"C\" __global__ void NAME(\n"
     << "    " << fsr::candidateSignature(task) << ")\n  arguments:\n";
  for (const fsr::Argument &argument : task.arguments) {
    os << "    " << argument.name << ": ";
    if (argument.isBuffer) {
      printShape(os, argument.sizes);
      os << (argument.sizes.empty() ? "" : " ") << nameOf(argument.element)
         << ", " << nameOf(argument.access) << ", " << argument.alignment
         << "-byte aligned";
    } else {
      os << nameOf(argument.element)
         << (argument.constantBits ? ", bits 0x" + *argument.constantBits
                                   : std::string(", not constant"));
    }
    os << "\n";
  }
  if (!task.facts.empty()) {
    os << "  facts:\n";
    for (const std::string &fact : task.facts)
      os << "    " << fsr::printable(fact) << "\n";
  }
  os << "  workload:\n";
  for (const fsr::WorkloadCase &one : task.workload) {
    os << "    " << fsr::printable(one.name) << ", weight "
       << llvm::formatv("{0:f2}", one.weight) << ":";
    for (auto [argument, fill] : llvm::zip(task.arguments, one.fills))
      if (argument.isBuffer)
        os << " " << argument.name << "=" << fill.print();
    os << "\n";
  }
  os << llvm::formatv("  work of one launch: {0:e2} flops, at least {1:e2} "
                      "bytes read and {2:e2} written\n",
                      task.work.flops, task.work.bytesRead,
                      task.work.bytesWritten);
}

struct ExplainPass : fsr::impl::ExplainPassBase<ExplainPass> {
  using ExplainPassBase::ExplainPassBase;

  void runOnOperation() final {
    llvm::raw_ostream &os = llvm::errs();
    std::vector<fsr::KernelSite> sites = fsr::findKernels(getOperation());
    if (sites.empty())
      os << "no GPU kernel in the module\n";
    for (fsr::KernelSite &site : sites) {
      if (!fsr::isChosen(only, site.name))
        continue;
      os << "kernel " << site.name << ": ";
      if (!site.whyNot.empty()) {
        os << "not taken: " << site.whyNot << "\n";
        continue;
      }
      llvm::Expected<std::string> chosen = fsr::targetOf(site, target);
      if (!chosen) {
        emitError(site.kernel->getLoc())
            << "fsr: " << llvm::toString(chosen.takeError());
        return signalPassFailure();
      }
      if (chosen->empty()) {
        os << "not taken: no target; give the option target=sm_XX, or attach "
              "#nvvm.target to the gpu.module\n";
        continue;
      }
      llvm::Expected<fsr::KernelTask> task = fsr::cutKernel(site, *chosen);
      if (!task) {
        os << "not taken: " << fsr::printable(llvm::toString(task.takeError()))
           << "\n";
        continue;
      }
      os << "taken\n";
      printTask(os, *task);
    }
    markAllAnalysesPreserved();
  }
};

} // namespace
