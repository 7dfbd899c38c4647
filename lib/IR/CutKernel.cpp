// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes a task out of a kernel that is taken: its arguments, its launch, its
// text for the prompt, its reference as a module of its own, and what is known
// of it in sentences.
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "fsr/Support/Error.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace fsr {
namespace {

/// Elements of a constant above which the prompt gets an ellipsis.
constexpr int64_t printedElements = 64;

std::string times(llvm::ArrayRef<int64_t> sizes) {
  std::string text;
  for (auto [i, size] : llvm::enumerate(sizes))
    text += (i ? "x" : "") + std::to_string(size);
  return text;
}

bool isRowMajor(const Argument &argument) {
  int64_t expected = 1;
  for (size_t i = argument.sizes.size(); i-- > 0;) {
    if (argument.sizes[i] != 1 && argument.strides[i] != expected)
      return false;
    expected *= argument.sizes[i];
  }
  return true;
}

std::string factOf(const Argument &argument) {
  std::string text = argument.name + ": ";
  llvm::StringRef element = nameOf(argument.element);
  if (!argument.isBuffer) {
    text += ("scalar " + element).str();
    return text + (argument.constantBits
                       ? ", always the bits 0x" + *argument.constantBits
                       : ", known only at the launch");
  }
  text += argument.sizes.empty() ? "one " : times(argument.sizes) + " ";
  text += element;
  text += isRowMajor(argument)
              ? ", row-major contiguous"
              : ", strides " + times(argument.strides) + " elements";
  text += ", offset " + std::to_string(argument.offset);
  text += ", aligned to " + std::to_string(argument.alignment) + " bytes";
  switch (argument.access) {
  case Access::None:
    return text + ", not used";
  case Access::Read:
    return text + ", only read";
  case Access::Write:
    return text + ", only written";
  case Access::ReadWrite:
    return text + ", read and written";
  }
  llvm_unreachable("all accesses are listed");
}

std::vector<std::string> factsOf(const KernelSite &site, const KernelTask &task,
                                 llvm::StringRef fastMathFlags) {
  gpu::LaunchFuncOp launch = site.launches.front();
  std::vector<std::string> facts;
  for (const Argument &argument : task.arguments)
    facts.push_back(factOf(argument));
  for (size_t i = 0; i < task.arguments.size(); ++i)
    for (size_t j = i + 1; j < task.arguments.size(); ++j)
      if (task.arguments[i].isBuffer && task.arguments[j].isBuffer &&
          provedDisjoint(launch.getKernelOperand(i),
                         launch.getKernelOperand(j)))
        facts.push_back(task.arguments[i].name + " and " +
                        task.arguments[j].name + " do not overlap");
  facts.push_back("the original runs " + times(task.launch.grid) +
                  " blocks of " + times(task.launch.block) + " threads");
  if (task.launch.sharedBytes != 0)
    facts.push_back("the original has " +
                    std::to_string(task.launch.sharedBytes) +
                    " bytes of dynamic shared memory");
  std::vector<std::string> trips;
  Operation *kernel = site.kernel;
  kernel->walk<WalkOrder::PreOrder>([&](LoopLikeOpInterface loop) {
    std::optional<int64_t> count = tripCountOf(loop, task.launch);
    trips.push_back(count ? std::to_string(*count) : "unknown");
  });
  if (!trips.empty())
    facts.push_back("trip counts of the loops, in order, at most: " +
                    llvm::join(trips, ", "));
  bool anyFloat = llvm::any_of(task.arguments, [](const Argument &argument) {
    return isFloat(argument.element);
  });
  if (task.work.movesOnly && anyFloat)
    facts.push_back("no operation on floats rounds: results must be equal");
  else if (!fastMathFlags.empty())
    facts.push_back(
        ("fast-math flags of the original: " + fastMathFlags).str());
  else if (task.fastMath)
    facts.push_back("the original is compiled with fast-math");
  else
    facts.push_back("no fast-math: sums may be re-associated within the error "
                    "bound, precision may not be lowered");
  return facts;
}

//===----------------------------------------------------------------------===//
// Workload
//===----------------------------------------------------------------------===//

class WorkloadReader {
public:
  explicit WorkloadReader(llvm::ArrayRef<Argument> arguments)
      : arguments(arguments) {}

  /// A dictionary is one case, an array of dictionaries several, an array of
  /// texts one case in argument order.
  llvm::Expected<std::vector<WorkloadCase>> read(Attribute attribute) {
    std::vector<WorkloadCase> cases;
    auto list = dyn_cast_if_present<ArrayAttr>(attribute);
    if (!attribute || (list && list.empty())) {
      cases.push_back(defaultCase());
      return cases;
    }
    if (list && isa<DictionaryAttr>(list[0])) {
      for (Attribute element : list) {
        auto one = readCase(element, cases.size());
        if (!one)
          return one.takeError();
        cases.push_back(std::move(*one));
      }
      return cases;
    }
    auto one = readCase(attribute, 0);
    if (!one)
      return one.takeError();
    cases.push_back(std::move(*one));
    return cases;
  }

  /// Some case of the last `read` holds no NaN and no infinity, nor does any
  /// launch.
  bool saysFinite() const { return finite; }

private:
  WorkloadCase defaultCase() const {
    WorkloadCase result;
    result.name = "default";
    for (const Argument &argument : arguments)
      result.fills.push_back(FillRecipe::standard(argument.element));
    return result;
  }

  static llvm::Error bad(const llvm::Twine &message) {
    return makeError(ErrorKind::BadInput, "fsr.workload: " + message);
  }

  llvm::Error setFill(WorkloadCase &result, size_t index, Attribute value) {
    auto text = dyn_cast<StringAttr>(value);
    if (!text)
      return bad(arguments[index].name + " has no text, wanted a fill such as "
                                         "\"normal(0, 1)\"");
    auto fill = FillRecipe::parse(text.getValue());
    if (!fill)
      return addContext(fill.takeError(),
                        "fsr.workload: " + arguments[index].name);
    result.fills[index] = std::move(*fill);
    return llvm::Error::success();
  }

  llvm::Expected<WorkloadCase> readCase(Attribute attribute, size_t number) {
    WorkloadCase result = defaultCase();
    if (number != 0)
      result.name = "case" + std::to_string(number);
    if (auto list = dyn_cast<ArrayAttr>(attribute)) {
      if (list.size() != arguments.size())
        return bad("got " + llvm::Twine(list.size()) + " fills, wanted " +
                   llvm::Twine(arguments.size()) + ", one an argument");
      for (auto [i, value] : llvm::enumerate(list))
        if (llvm::Error error = setFill(result, i, value))
          return error;
      return result;
    }
    auto dictionary = dyn_cast<DictionaryAttr>(attribute);
    if (!dictionary)
      return bad("wanted a dictionary of argument names and fills");
    for (NamedAttribute entry : dictionary) {
      llvm::StringRef key = entry.getName();
      const Argument *found =
          llvm::find_if(arguments, [&](const Argument &argument) {
            return argument.name == key;
          });
      if (found != arguments.end()) {
        if (llvm::Error error =
                setFill(result, found - arguments.begin(), entry.getValue()))
          return error;
        continue;
      }
      auto name = dyn_cast<StringAttr>(entry.getValue());
      auto weight = dyn_cast<FloatAttr>(entry.getValue());
      if (key == "case" && name)
        result.name = name.str();
      else if (key == "weight" && weight && weight.getValueAsDouble() > 0)
        result.weight = weight.getValueAsDouble();
      else if (key == "finite" && isa<UnitAttr>(entry.getValue()))
        finite = true;
      else
        return bad("'" + key +
                   "' is no argument of the kernel, nor a case's name or "
                   "positive weight, nor `finite` alone");
    }
    return result;
  }

  llvm::ArrayRef<Argument> arguments;
  bool finite = false;
};

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

/// The kernel and what it calls, with the kernel's arguments under the names
/// that signature and plan use.
std::string kernelText(ModuleOp isolated, llvm::StringRef kernelName,
                       llvm::ArrayRef<Argument> arguments) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  gpu::GPUModuleOp module = *isolated.getOps<gpu::GPUModuleOp>().begin();
  auto kernel = cast<gpu::GPUFuncOp>(module.lookupSymbol(kernelName));
  for (auto [value, argument] : llvm::zip_equal(
           kernel.getArguments().take_front(kernel.getNumArguments()),
           arguments)) // Behind them stand the memory attributions.
    value.setLoc(
        NameLoc::get(StringAttr::get(module.getContext(), argument.name)));
  for (Operation &op : module.getOps()) {
    op.print(stream, wholeText().printNameLocAsPrefix().elideLargeElementsAttrs(
                         printedElements));
    stream << "\n";
  }
  return text;
}

/// The launch, after the operations that its operands come from.
std::string launchText(gpu::LaunchFuncOp launch) {
  llvm::SetVector<Operation *> wanted;
  llvm::SmallVector<std::pair<Value, unsigned>> open;
  for (Value operand : launch->getOperands())
    open.push_back({operand, 0});
  while (!open.empty()) {
    auto [value, depth] = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    // Loops and branches around are not the operand's definition.
    if (!op || op->getNumRegions() != 0 || !wanted.insert(op) || depth > 4)
      continue;
    for (Value operand : op->getOperands())
      open.push_back({operand, depth + 1});
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags = wholeText();
  flags.elideLargeElementsAttrs(printedElements);
  // Numbers are those of the whole function, so that they agree.
  Operation *scope = launch->getParentOp();
  while (scope->getParentOp() &&
         !scope->hasTrait<OpTrait::IsIsolatedFromAbove>())
    scope = scope->getParentOp();
  AsmState state(scope, flags);
  scope->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != launch && !wanted.contains(op))
      return;
    op->print(stream, state);
    stream << "\n";
  });
  return text;
}

} // namespace

llvm::Expected<KernelTask> interfaceOf(const KernelSite &site,
                                       llvm::StringRef target) {
  llvm::Expected<std::string> key = kernelKey(site, target);
  if (!key)
    return key.takeError();
  KernelTask task;
  task.name = site.name;
  task.key = std::move(*key);
  task.target = llvm::cantFail(Target::parse(target)).family();
  task.arguments = argumentsOf(site);
  task.launch = *launchShapeOf(site.launches.front());
  return task;
}

llvm::Expected<KernelTask> cutKernel(const KernelSite &site,
                                     llvm::StringRef target) {
  llvm::Expected<KernelTask> interface = interfaceOf(site, target);
  if (!interface)
    return interface.takeError();
  KernelTask task = std::move(*interface);
  auto kernel = cast<gpu::GPUFuncOp>(site.kernel);
  gpu::LaunchFuncOp launch = site.launches.front();

  OwningOpRef<ModuleOp> isolated = isolateKernel(site);
  task.kernelMlir = kernelText(*isolated, kernel.getName(), task.arguments);
  task.launchMlir = launchText(launch);
  task.reference.entry = nameForPtx(*isolated, kernel.getName());
  llvm::raw_string_ostream stream(task.reference.mlir);
  isolated->print(stream, wholeText());
  task.reference.abi = ReferenceAbi::Descriptor;

  std::string fastMathFlags = fastMathFlagsOf(site);
  auto attribute =
      dyn_cast_if_present<NVVM::NVVMTargetAttr>(nvvmTargetOf(site.gpuModule));
  task.fastMath =
      !fastMathFlags.empty() || (attribute && attribute.hasFastMath());
  task.work = estimateWork(site, task.arguments, task.launch);
  task.facts = factsOf(site, task, fastMathFlags);

  Attribute workload = launch->getAttr("fsr.workload");
  if (!workload)
    workload = kernel->getAttr("fsr.workload");
  WorkloadReader reader(task.arguments);
  auto cases = reader.read(workload);
  if (!cases)
    return addContext(cases.takeError(), "kernel " + site.name);
  task.workload = std::move(*cases);
  if (reader.saysFinite()) {
    task.work.finiteOnly = "the workload says that inputs are finite";
    task.facts.push_back("the workload says that no buffer that is read holds "
                         "a NaN or an infinity");
  } else if (task.fastMath)
    task.work.finiteOnly = "the original allows fast math";
  else
    task.work.finiteOnly = reasonForFiniteOnly(site);
  return task;
}

} // namespace fsr
