// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The original kernel as the stock pipeline makes it. Optimisation level and
// flags are those of the module's own target; the features are left to the back
// end, since the pipeline's default (PTX 6.0) ends the process on sm_75 and
// newer (llvm/llvm-project #174834).
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Subprocess.h"

#include "mlir/Dialect/GPU/Pipelines/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdlib>

using namespace mlir;

namespace fsr {
namespace {

/// Where MLIR does not look by itself: beside the tools on PATH, then where the
/// toolkit's installer puts it. Empty where MLIR looks, or nothing is found.
std::string libdevicePath() {
  for (const char *variable : {"CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"})
    if (const char *value = std::getenv(variable); value && *value)
      return "";
  std::vector<std::string> roots;
  for (const char *tool : {"nvcc", "ptxas"}) {
    std::string path = findOnPath(tool);
    if (path.empty())
      continue;
    llvm::SmallString<128> real;
    if (!llvm::sys::fs::real_path(path, real))
      path = real.str().str();
    roots.push_back(
        llvm::sys::path::parent_path(llvm::sys::path::parent_path(path)).str());
  }
  roots.push_back("/usr/local/cuda");
  for (const std::string &root : roots) {
    llvm::SmallString<128> path(root);
    llvm::sys::path::append(path, "nvvm", "libdevice", "libdevice.10.bc");
    if (llvm::sys::fs::exists(path))
      return path.str().str();
  }
  return "";
}

/// The attribute that decides how the reference is compiled.
NVVM::NVVMTargetAttr targetFor(gpu::GPUModuleOp module, const Target &target) {
  MLIRContext *context = module.getContext();
  auto own = dyn_cast_if_present<NVVM::NVVMTargetAttr>(nvvmTargetOf(module));
  std::string chip = target.chip;
  // "sm_90a" of the module stays where "sm_90" is asked for.
  if (own) {
    llvm::Expected<Target> parsed = Target::parse(own.getChip());
    if (!parsed)
      llvm::consumeError(parsed.takeError());
    else if (parsed->family() == target.family())
      chip = own.getChip().str();
  }
  llvm::SmallVector<Attribute> link;
  if (own && own.getLink())
    link.append(own.getLink().begin(), own.getLink().end());
  if (std::string path = libdevicePath(); !path.empty())
    link.push_back(StringAttr::get(context, path));
  return NVVM::NVVMTargetAttr::get(
      context, own ? own.getO() : 2,
      own ? own.getTriple() : llvm::StringRef("nvptx64-nvidia-cuda"), chip,
      own ? own.getFeatures() : llvm::StringRef(),
      own ? own.getFlags() : DictionaryAttr(),
      link.empty() ? ArrayAttr() : ArrayAttr::get(context, link));
}

/// "vprintf, __nv_expf" of PTX that declares functions it does not define.
std::string unresolvedIn(llvm::StringRef ptx) {
  std::string names;
  llvm::StringRef rest = ptx;
  while (true) {
    size_t at = rest.find(".extern .func");
    if (at == llvm::StringRef::npos)
      return names;
    rest = rest.drop_front(at + strlen(".extern .func")).ltrim();
    if (rest.consume_front("("))
      rest = rest.drop_front(std::min(rest.find(')') + 1, rest.size())).ltrim();
    llvm::StringRef name = rest.take_until(
        [](char c) { return c == '(' || c == ';' || c == ' ' || c == '\n'; });
    names += (names.empty() ? "" : ", ") + name.str();
  }
}

} // namespace

llvm::Expected<std::string> lowerReference(ModuleOp module,
                                           llvm::StringRef targetName) {
  llvm::Expected<Target> target = Target::parse(targetName);
  if (!target)
    return target.takeError();
  auto modules = module.getOps<gpu::GPUModuleOp>();
  if (!llvm::hasSingleElement(modules))
    return makeError(
        ErrorKind::BadInput,
        "a reference has one gpu.module, got " +
            llvm::Twine(std::distance(modules.begin(), modules.end())));
  gpu::GPUModuleOp inner = *modules.begin();
  MLIRContext *context = module.getContext();
  context->loadDialect<NVVM::NVVMDialect>();
  NVVM::NVVMTargetAttr attribute = targetFor(inner, *target);
  // Object 0 is this target's; the pipeline appends one of its own behind it.
  inner.setTargetsAttr(ArrayAttr::get(context, {attribute}));

  std::string problems;
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        problems.size() < 4096)
      problems += (problems.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  gpu::GPUToNVVMPipelineOptions options;
  options.cubinTriple = attribute.getTriple().str();
  options.cubinChip = attribute.getChip().str();
  options.cubinFeatures = attribute.getFeatures().str();
  options.optLevel = attribute.getO();
  options.cubinFormat = "isa";
  PassManager manager(context);
  gpu::buildLowerToNVVMPassPipeline(manager, options);
  if (failed(manager.run(module)))
    return makeError(ErrorKind::Unsupported,
                     "the stock pipeline does not lower the kernel: " +
                         (problems.empty() ? "no reason given" : problems));

  for (gpu::BinaryOp binary : module.getOps<gpu::BinaryOp>()) {
    auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
    if (object.getFormat() != gpu::CompilationTarget::Assembly)
      break;
    std::string ptx = object.getObject().str();
    while (!ptx.empty() && ptx.back() == '\0')
      ptx.pop_back();
    std::string missing = unresolvedIn(ptx);
    if (!missing.empty())
      return makeError(ErrorKind::Unavailable,
                       "the kernel needs " + missing +
                           ", which libdevice of the CUDA toolkit defines; "
                           "install the toolkit or set CUDA_HOME to it");
    return ptx;
  }
  return makeError(ErrorKind::Unsupported,
                   "the stock pipeline made no PTX of the kernel");
}

} // namespace fsr
