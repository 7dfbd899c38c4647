// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A winner takes its kernel's place: a gpu.binary where the gpu.module was, and
// launches that pass integers, floats and addresses only, so that no calling
// convention or index width of a later lowering can break them.
//
// MLIR does not verify launches into a gpu.binary. Everything that could be
// wrong with a record is therefore checked here, before the module is touched.
//
//===----------------------------------------------------------------------===//

#include "KernelFacts.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace fsr {

void insertSpliceDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, gpu::GPUDialect, memref::MemRefDialect,
                  NVVM::NVVMDialect>();
}

namespace {

/// 1 TiB: more than any device has, and far from overflow.
constexpr int64_t maxScratchBytes = int64_t(1) << 40;
/// How a fat binary begins: 0xBA55ED50, little endian.
constexpr llvm::StringLiteral fatbinMagic("\x50\xed\x55\xba");

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

class RecordCheck {
public:
  RecordCheck(const KernelTask &task, const Record &record)
      : task(task), record(record) {}

  llvm::Error run() {
    if (record.id.size() < 12)
      return bad("it has no id");
    if (record.taskKey != task.key)
      return bad("it is for the task " + shortHash(record.taskKey) +
                 ", the kernel is " + shortHash(task.key));
    llvm::Expected<Target> chip = Target::parse(record.chip);
    if (!chip)
      return addContext(chip.takeError(), "record " + shortHash(record.id));
    if (chip->family() != task.target)
      return bad("it was built for " + record.chip + ", the target is " +
                 task.target);
    if (!llvm::StringRef(record.fatbin).starts_with(fatbinMagic))
      return bad("its binary is no fat binary");
    if (record.plan.launches.empty())
      return bad("its plan has no launch");
    for (const ResolvedScratch &scratch : record.plan.scratch)
      if (llvm::Error error = checkScratch(scratch))
        return error;
    LaunchLimits limits = LaunchLimits::of(*chip);
    for (const ResolvedLaunch &launch : record.plan.launches)
      if (llvm::Error error = checkLaunch(launch, limits))
        return error;
    return llvm::Error::success();
  }

private:
  llvm::Error bad(const llvm::Twine &message) {
    return makeError(ErrorKind::Corrupt, "record " + shortHash(record.id) +
                                             " for kernel " + task.name + ": " +
                                             message);
  }

  llvm::Error checkScratch(const ResolvedScratch &scratch) {
    if (!isUsableName(scratch.name) || task.find(scratch.name))
      return bad("scratch buffer '" + scratch.name +
                 "' has a name that is taken or cannot be used");
    if (!scratchNames.insert({scratch.name, true}).second)
      return bad("two scratch buffers are called '" + scratch.name + "'");
    if (scratch.bytes < 0 || scratch.bytes > maxScratchBytes)
      return bad("scratch buffer '" + scratch.name + "' has " +
                 llvm::Twine(scratch.bytes) + " bytes");
    return llvm::Error::success();
  }

  llvm::Error checkLaunch(const ResolvedLaunch &launch,
                          const LaunchLimits &limits) {
    const KernelResources *resources = nullptr;
    for (const KernelResources &each : record.resources)
      if (each.kernel == launch.kernel)
        resources = &each;
    if (!resources)
      return bad("its plan launches '" + launch.kernel +
                 "', which its binary does not hold");
    auto say = [&](const llvm::Twine &what) {
      return bad("launch of '" + launch.kernel + "': " + what);
    };
    int64_t threads = 1, clusterBlocks = 1;
    for (int i = 0; i < 3; ++i) {
      const LaunchShape &shape = launch.shape;
      if (shape.grid[i] < 1 || shape.grid[i] > limits.grid[i])
        return say("a grid size is " + llvm::Twine(shape.grid[i]) +
                   ", wanted 1 to " + llvm::Twine(limits.grid[i]));
      if (shape.block[i] < 1 || shape.block[i] > limits.block[i])
        return say("a block size is " + llvm::Twine(shape.block[i]) +
                   ", wanted 1 to " + llvm::Twine(limits.block[i]));
      if (shape.cluster[i] < 1 || shape.cluster[i] > limits.clusterBlocks ||
          shape.grid[i] % shape.cluster[i] != 0)
        return say("a cluster size is " + llvm::Twine(shape.cluster[i]) +
                   ", wanted a divisor of the grid up to " +
                   llvm::Twine(limits.clusterBlocks));
      threads *= shape.block[i];
      clusterBlocks *= shape.cluster[i];
    }
    if (threads > limits.threadsPerBlock)
      return say("a block has " + llvm::Twine(threads) + " threads, at most " +
                 llvm::Twine(limits.threadsPerBlock) + " fit");
    if (clusterBlocks > limits.clusterBlocks)
      return say("a cluster has " + llvm::Twine(clusterBlocks) +
                 " blocks, at most " + llvm::Twine(limits.clusterBlocks) +
                 " fit");
    int64_t shared = launch.shape.sharedBytes;
    if (shared < 0 || resources->sharedBytes < 0 ||
        shared > limits.sharedBytesPerBlock ||
        resources->sharedBytes > limits.sharedBytesPerBlock - shared)
      return say("it needs " + llvm::Twine(shared) + " bytes of dynamic and " +
                 llvm::Twine(resources->sharedBytes) +
                 " of static shared memory, at most " +
                 llvm::Twine(limits.sharedBytesPerBlock) + " fit");
    for (const std::string &name : launch.args)
      if (!task.find(name) && !scratchNames.count(name) && !valueOf(task, name))
        return say("it passes '" + name +
                   "', which is no argument of the "
                   "kernel, size or scratch buffer");
    return llvm::Error::success();
  }

  const KernelTask &task;
  const Record &record;
  llvm::StringMap<bool> scratchNames;
};

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

gpu::ObjectAttr objectOf(MLIRContext *context, const Record &record) {
  auto target = NVVM::NVVMTargetAttr::get(context, /*optLevel=*/2,
                                          "nvptx64-nvidia-cuda", record.chip);
  return gpu::ObjectAttr::get(target, gpu::CompilationTarget::Fatbin,
                              StringAttr::get(context, record.fatbin));
}

/// The name for the record's binary in `scope`, and the binary itself where
/// another splice put it there. Names come from the record's id: as many digits
/// of it as tell it from other symbols.
std::pair<std::string, gpu::BinaryOp>
findBinary(Operation *scope, const Record &record, ArrayAttr objects) {
  for (size_t digits = 12; digits <= record.id.size(); ++digits) {
    std::string name = "fsr_" + record.id.substr(0, digits);
    Operation *found = SymbolTable::lookupSymbolIn(scope, name);
    if (!found)
      return {name, gpu::BinaryOp()};
    auto binary = dyn_cast<gpu::BinaryOp>(found);
    if (binary && binary.getObjects() == objects)
      return {name, binary};
  }
  return {};
}

/// Builds what stands at the place of one launch.
class LaunchRewriter {
public:
  LaunchRewriter(gpu::LaunchFuncOp old, const KernelTask &task,
                 const Record &record, StringAttr binary)
      : old(old), task(task), record(record), binary(binary), builder(old),
        loc(old.getLoc()) {}

  std::vector<gpu::LaunchFuncOp> run() {
    llvm::SmallVector<Value> dependencies(old.getAsyncDependencies());
    Value oldToken = old.getAsyncToken();
    // Synchronous launches take no dependencies when they are lowered, and each
    // of them makes and waits for a stream of its own.
    bool chained = oldToken || !dependencies.empty() ||
                   !record.plan.scratch.empty() ||
                   record.plan.launches.size() > 1;
    Type tokenType = chained ? builder.getType<gpu::AsyncTokenType>() : Type();
    Value token;
    if (dependencies.size() == 1)
      token = dependencies.front();
    else if (chained)
      token = gpu::WaitOp::create(builder, loc, tokenType, dependencies)
                  .getAsyncToken();

    for (const ResolvedScratch &scratch : record.plan.scratch)
      token = allocate(scratch, tokenType, token);
    std::vector<gpu::LaunchFuncOp> launches;
    for (const ResolvedLaunch &planned : record.plan.launches) {
      launches.push_back(launch(planned, tokenType, token));
      token = launches.back().getAsyncToken();
    }
    for (const ResolvedScratch &scratch : llvm::reverse(record.plan.scratch))
      token = gpu::DeallocOp::create(builder, loc, tokenType, token,
                                     scratchBuffers[scratch.name])
                  .getAsyncToken();
    if (oldToken)
      oldToken.replaceAllUsesWith(token);
    else if (chained)
      gpu::WaitOp::create(builder, loc, Type(), token);
    old.erase();
    return launches;
  }

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value i64(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  }
  gpu::KernelDim3 dims(const std::array<int64_t, 3> &sizes) {
    return {index(sizes[0]), index(sizes[1]), index(sizes[2])};
  }
  Value addressOf(Value buffer) {
    Value pointer =
        memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                      pointer);
  }

  /// In words of 32 bits, the only ones whose gpu.memset lowers besides 16. Not
  /// empty, since the driver gives no memory of 0 bytes.
  Value allocate(const ResolvedScratch &scratch, Type tokenType, Value token) {
    int64_t words =
        std::max<int64_t>(1, scratch.bytes / 4 + (scratch.bytes % 4 != 0));
    auto type = MemRefType::get({words}, builder.getI32Type());
    auto alloc = gpu::AllocOp::create(builder, loc, type, tokenType, token,
                                      ValueRange(), ValueRange());
    scratchBuffers[scratch.name] = alloc.getMemref();
    token = alloc.getAsyncToken();
    if (scratch.zero) {
      Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
      token = gpu::MemsetOp::create(builder, loc, tokenType, token,
                                    alloc.getMemref(), zero)
                  .getAsyncToken();
    }
    return token;
  }

  /// What the plan's name stands for, made once.
  Value argument(const std::string &name) {
    Value &made = values[name];
    if (made)
      return made;
    if (auto scratch = scratchBuffers.find(name);
        scratch != scratchBuffers.end())
      return made = addressOf(scratch->second);
    const Argument *found = task.find(name);
    if (!found)
      return made = i64(*valueOf(task, name));
    Value operand = old.getKernelOperand(found - task.arguments.data());
    if (!found->isBuffer) {
      if (operand.getType().isIndex())
        return made = arith::IndexCastOp::create(builder, loc,
                                                 builder.getI64Type(), operand);
      return made = operand;
    }
    Value address = addressOf(operand);
    if (int64_t bytes = found->offset * int64_t(byteSize(found->element)))
      address = arith::AddIOp::create(builder, loc, address, i64(bytes));
    return made = address;
  }

  gpu::LaunchFuncOp launch(const ResolvedLaunch &planned, Type tokenType,
                           Value token) {
    llvm::SmallVector<Value> operands;
    for (const std::string &name : planned.args)
      operands.push_back(argument(name));
    auto symbol = SymbolRefAttr::get(
        binary, FlatSymbolRefAttr::get(builder.getContext(), planned.kernel));
    const LaunchShape &shape = planned.shape;
    Value shared;
    if (shape.sharedBytes != 0)
      shared =
          arith::ConstantIntOp::create(builder, loc, shape.sharedBytes, 32);
    std::optional<gpu::KernelDim3> cluster;
    if (shape.cluster != std::array<int64_t, 3>{1, 1, 1})
      cluster = dims(shape.cluster);
    auto made = gpu::LaunchFuncOp::create(
        builder, loc, symbol, dims(shape.grid), dims(shape.block), shared,
        operands, tokenType, token ? ValueRange(token) : ValueRange(), cluster);
    for (NamedAttribute attribute : old->getDiscardableAttrs())
      if (!attribute.getName().strref().starts_with("fsr."))
        made->setDiscardableAttr(attribute.getName(), attribute.getValue());
    auto note = [&](llvm::StringRef name, llvm::StringRef value) {
      made->setDiscardableAttr(name, builder.getStringAttr(value));
    };
    note("fsr.task", record.taskKey);
    note("fsr.record", record.id);
    note("fsr.evidence", nameOf(record.evidence.level));
    note("fsr.source", sha256(record.candidate.source));
    return made;
  }

  gpu::LaunchFuncOp old;
  const KernelTask &task;
  const Record &record;
  StringAttr binary;
  OpBuilder builder;
  Location loc;
  llvm::StringMap<Value> scratchBuffers, values;
};

bool isKernel(Operation &op) {
  return op.hasAttr(gpu::GPUDialect::getKernelFuncAttrName()) ||
         op.hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
}

/// Without a kernel nothing can reach a gpu.module, except what names it.
void eraseWhereUnused(gpu::GPUModuleOp module) {
  for (Operation &op : module.getOps())
    if (isKernel(op))
      return;
  if (SymbolTable::symbolKnownUseEmpty(module, module->getParentOp()))
    module.erase();
}

/// Gives the task's arguments the names that the record's plan uses: the key
/// holds none, so this module may call them otherwise.
llvm::Error renameArguments(KernelTask &task, const Record &record) {
  auto bad = [&](const llvm::Twine &message) {
    return makeError(ErrorKind::Corrupt, "record " + shortHash(record.id) +
                                             " for kernel " + task.name + ": " +
                                             message);
  };
  if (record.argumentNames.size() != task.arguments.size())
    return bad("it is for " + llvm::Twine(record.argumentNames.size()) +
               " arguments, the kernel has " +
               llvm::Twine(task.arguments.size()));
  llvm::StringSet<> seen;
  for (auto [argument, name] :
       llvm::zip_equal(task.arguments, record.argumentNames)) {
    if (!isUsableName(name) || !seen.insert(name).second)
      return bad("argument name '" + name +
                 "' is there twice or cannot be "
                 "used");
    argument.name = name;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Error splice(KernelSite &site, const Record &record) {
  llvm::Expected<KernelTask> task = interfaceOf(site, record.target);
  if (!task)
    return addContext(task.takeError(), "record " + shortHash(record.id));
  if (llvm::Error error = renameArguments(*task, record))
    return error;
  if (llvm::Error error = RecordCheck(*task, record).run())
    return error;
  MLIRContext *context = site.kernel->getContext();
  Operation *scope = site.gpuModule->getParentOp();
  auto objects =
      ArrayAttr::get(context, {Attribute(objectOf(context, record))});
  auto [name, binary] = findBinary(scope, record, objects);
  if (name.empty())
    return makeError(ErrorKind::BadInput,
                     "kernel " + site.name + ": every symbol for record " +
                         shortHash(record.id) + " is taken");

  if (!binary) {
    OpBuilder builder(site.gpuModule);
    binary = gpu::BinaryOp::create(builder, site.gpuModule.getLoc(), name,
                                   /*offloadingHandler=*/Attribute(), objects);
  }
  site.launches = LaunchRewriter(site.launches.front(), *task, record,
                                 binary.getSymNameAttr())
                      .run();
  site.kernel->erase();
  site.kernel = nullptr;
  eraseWhereUnused(site.gpuModule);
  site.gpuModule = nullptr;
  return llvm::Error::success();
}

} // namespace fsr
