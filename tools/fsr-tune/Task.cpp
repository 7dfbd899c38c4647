// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The task file: read, described, and the bench on which its candidates run.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Terminal/Text.h"

#include "llvm/Support/FormatVariadic.h"

using namespace fsr;

static constexpr uint64_t maxTaskBytes = uint64_t(16) << 20;

llvm::Expected<KernelTask> fsr::readTask(llvm::StringRef path) {
  auto read = [&]() -> llvm::Expected<KernelTask> {
    llvm::Expected<std::string> text = readFile(path, maxTaskBytes);
    if (!text)
      return text.takeError();
    return parseTask(*text);
  };
  llvm::Expected<KernelTask> task = read();
  if (task)
    return task;
  // Whatever is wrong with it, it was named on the command line.
  return makeError(ErrorKind::BadInput,
                   "task '" + path + "': " + llvm::toString(task.takeError()));
}

static std::string shapeText(llvm::ArrayRef<int64_t> extents) {
  std::string text;
  for (int64_t extent : extents)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

static std::string bytesText(double bytes) {
  static constexpr const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return llvm::formatv(unit ? "{0:f1} {1}" : "{0:f0} {1}", bytes, units[unit])
      .str();
}

static void describeArgument(const Argument &argument, llvm::raw_ostream &os) {
  os << "  " << argument.name << ": ";
  if (!argument.isBuffer) {
    os << nameOf(argument.element) << " scalar";
    if (argument.constantBits)
      os << ", always 0x" << printable(*argument.constantBits);
    os << "\n";
    return;
  }
  os << nameOf(argument.element) << " buffer " << shapeText(argument.sizes)
     << ", " << nameOf(argument.access) << ", "
     << bytesText(argument.extentBytes()) << ", aligned to "
     << argument.alignment;
  std::vector<int64_t> packed(argument.sizes.size(), 1);
  for (size_t i = packed.size(); i-- > 1;)
    packed[i - 1] = packed[i] * argument.sizes[i];
  if (packed != argument.strides)
    os << ", strides " << shapeText(argument.strides);
  if (argument.offset)
    os << ", offset " << argument.offset;
  os << "\n";
}

void fsr::describeTask(const KernelTask &task, llvm::raw_ostream &os) {
  os << "kernel " << printable(task.name) << " for " << printable(task.target)
     << ", task " << task.key << "\n";
  os << "arguments\n";
  for (const Argument &argument : task.arguments)
    describeArgument(argument, os);
  os << "launch\n  grid " << shapeText(task.launch.grid) << ", block "
     << shapeText(task.launch.block);
  if (task.launch.cluster != std::array<int64_t, 3>{1, 1, 1})
    os << ", cluster " << shapeText(task.launch.cluster);
  os << ", " << task.launch.sharedBytes << " bytes of dynamic shared memory\n";
  const WorkEstimate &work = task.work;
  os << "work of a launch, at the least\n  ";
  if (work.bytesRead + work.bytesWritten > 0)
    os << bytesText(work.bytesRead) << " read, " << bytesText(work.bytesWritten)
       << " written, ";
  if (work.flops > 0)
    os << llvm::formatv("{0:e3} floating-point operations, ", work.flops);
  os << "chains of " << work.accumulation << " accumulations"
     << (work.exactOnIntegers ? ", exact on small integers" : "")
     << (task.fastMath ? ", fast math allowed" : "") << "\n";
  if (!task.facts.empty())
    os << "true of every launch\n";
  for (const std::string &fact : task.facts)
    os << "  " << printable(fact) << "\n";
  os << "workload\n";
  for (const WorkloadCase &one : task.workload) {
    os << "  " << printable(one.name) << ", weight "
       << llvm::formatv("{0:g}", one.weight);
    for (size_t i = 0; i < one.fills.size() && i < task.arguments.size(); ++i)
      if (task.arguments[i].isBuffer)
        os << ", " << task.arguments[i].name << " "
           << printable(one.fills[i].print());
    os << "\n";
  }
  os << "reference\n  "
     << (task.reference.ptx.empty()
             ? "no PTX: it was extracted where the kernel could not be "
               "lowered, and cannot be searched"
             : "PTX of " + bytesText(task.reference.ptx.size()) + ", entry " +
                   printable(task.reference.entry))
     << "\n";
  os << "a candidate's parameters, where its args are \"same\"\n    "
     << candidateSignature(task) << "\n";
}

llvm::Expected<Bench> fsr::openBench(const KernelTask &task,
                                     llvm::StringRef device,
                                     bool allowUnsandboxed) {
  if (task.reference.ptx.empty())
    return makeError(ErrorKind::BadInput,
                     "the task has no reference PTX: extract it again where "
                     "the kernel can be lowered");
  Bench bench;
  llvm::Expected<Toolkit> toolkit = findToolkit();
  if (!toolkit)
    return toolkit.takeError();
  bench.toolkit = std::move(*toolkit);
  CompilerOptions compilerOptions;
  compilerOptions.allowUnsandboxed = allowUnsandboxed;
  llvm::Expected<std::unique_ptr<Compiler>> compiler =
      makeCudaCompiler(compilerOptions);
  if (!compiler)
    return compiler.takeError();
  bench.compiler = std::move(*compiler);
  llvm::Expected<std::unique_ptr<Device>> opened = openDevice(device);
  if (!opened)
    return addContext(opened.takeError(), "option device");
  bench.device = std::move(*opened);
  return bench;
}
