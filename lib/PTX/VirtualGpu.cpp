// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The virtual GPU as its users see it: modules and their variables, kernels
// made ready on their first launch, launches and what is told of them.
//
//===----------------------------------------------------------------------===//

#include "fsr/PTX/VirtualGpu.h"

#include "DeviceHeap.h"
#include "Engine.h"
#include "Link.h"
#include "Shadow.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Demangle/Demangle.h"

#include <algorithm>
#include <cstring>

namespace fsr::ptx {

namespace {
constexpr uint64_t heapBytes = 8 << 20;
constexpr uint64_t workspaceBytes = 256;
/// Registers and local memory of blocks that are resident, on the host.
constexpr uint64_t mostResidentBytes = uint64_t(2) << 30;
constexpr uint64_t mostCooperativeBytes = uint64_t(16) << 30;
/// That an H200 has, where a kernel allows more than the portable 8.
constexpr uint64_t mostClusterBlocks = 16;
/// Of a module's variables.
constexpr uint64_t mostVariableBytes = uint64_t(1) << 30;

class Gpu final : public VirtualGpu {
public:
  explicit Gpu(const VirtualGpuOptions &options)
      : options(options), memory(options.memoryBytes) {}

  llvm::Expected<uint64_t> allocate(uint64_t bytes) override {
    return memory.allocate(bytes);
  }
  llvm::Error release(uint64_t address) override {
    const Region *region = shadow ? memory.find(address) : nullptr;
    uint64_t bytes = region ? region->bytes : 0;
    return forgetting(memory.release(address), address, bytes);
  }
  llvm::Error write(uint64_t address, const void *from,
                    uint64_t bytes) override {
    return forgetting(memory.write(address, from, bytes), address, bytes);
  }
  llvm::Error read(void *to, uint64_t address, uint64_t bytes) override {
    return memory.read(to, address, bytes);
  }
  llvm::Error fill(uint64_t address, uint32_t pattern, unsigned width,
                   uint64_t count) override {
    return forgetting(memory.fill(address, pattern, width, count), address,
                      width * count);
  }
  llvm::Error copy(uint64_t to, uint64_t from, uint64_t bytes) override {
    if (llvm::Error error = memory.copy(to, from, bytes))
      return error;
    if (shadow)
      shadow->copy(to, from, bytes);
    return llvm::Error::success();
  }
  llvm::Expected<uint8_t *> view(uint64_t address, uint64_t bytes,
                                 bool writes) override {
    auto found = memory.view(address, bytes, writes);
    if (found && writes && shadow)
      shadow->forget(address, bytes);
    return found;
  }
  llvm::Error setConst(uint64_t address, bool isConst) override {
    return memory.setConst(address, isConst);
  }
  llvm::Error setTainted(uint64_t address, uint64_t bytes,
                         bool isTainted) override {
    return memory.setTainted(address, bytes, isTainted);
  }
  llvm::Error setUninitialized(uint64_t address, uint64_t bytes) override {
    return memory.setUninitialized(address, bytes);
  }
  llvm::Error forWritten(uint64_t address, uint64_t bytes,
                         Visit visit) override;
  llvm::Error forTouched(uint64_t address, uint64_t bytes,
                         Visit visit) override;
  void forgetReads() override { memory.forgetReads(); }
  llvm::Error forRead(uint64_t address, uint64_t bytes, Visit visit) override;
  llvm::Error mapHost(void *pointer, uint64_t bytes) override {
    return memory.mapHost(pointer, bytes);
  }
  llvm::Error unmapHost(void *pointer) override {
    return memory.unmapHost(pointer);
  }
  bool owns(uint64_t address) const override {
    return memory.find(address) != nullptr;
  }
  uint64_t freeBytes() const override { return memory.freeBytes(); }

  llvm::Expected<unsigned> loadModule(llvm::StringRef ptx) override;
  llvm::Error unloadModule(unsigned module) override;
  llvm::Expected<std::vector<KernelParameter>>
  parameters(unsigned module, llvm::StringRef kernel) override;
  llvm::Expected<std::pair<uint64_t, uint64_t>>
  symbol(unsigned module, llvm::StringRef name) override;
  llvm::Expected<LaunchResult> launch(unsigned module, llvm::StringRef kernel,
                                      const LaunchShapeOf &shape,
                                      llvm::ArrayRef<uint8_t> params,
                                      const LaunchOptions &options) override;
  llvm::Expected<ShadowValue> readShadow(uint64_t address, Type type) override;

private:
  llvm::Expected<const Region *> allocation(uint64_t address,
                                            uint64_t bytes) const;
  /// Other bytes than a shadow launch left stand there now.
  llvm::Error forgetting(llvm::Error error, uint64_t address, uint64_t bytes) {
    if (!error && shadow)
      shadow->forget(address, bytes);
    return error;
  }
  llvm::Expected<LoadedModule *> findModule(unsigned number);
  llvm::Expected<const Function *> findKernel(unsigned module,
                                              llvm::StringRef name);
  llvm::Error placeVariables(LoadedModule &loaded);
  llvm::Error initialise(LoadedModule &loaded, const Function *function,
                         const Variable &variable);
  llvm::Expected<LinkedKernel *> link(unsigned module, const Function &kernel);
  llvm::Error checkShape(const Function &kernel, const Program &program,
                         const LaunchShapeOf &shape) const;
  unsigned mostResident(const Program &program,
                        const LaunchShapeOf &shape) const;

  VirtualGpuOptions options;
  Memory memory;
  std::map<unsigned, LoadedModule> modules;
  std::map<std::pair<unsigned, std::string>, std::unique_ptr<LinkedKernel>>
      kernels;
  unsigned nextModule = 1, numLaunches = 0;
  std::unique_ptr<DeviceHeap> heap;
  /// From the first launch with shadow values on.
  std::unique_ptr<ShadowMemory> shadow;
  uint64_t workspace = 0;
};

std::vector<KernelParameter> layOut(llvm::ArrayRef<Variable> variables) {
  std::vector<KernelParameter> result;
  uint64_t offset = 0;
  for (const Variable &variable : variables) {
    uint64_t alignment = std::max<uint64_t>(variable.alignment, 1);
    offset = (offset + alignment - 1) / alignment * alignment;
    result.push_back({variable.bytes, offset, alignment});
    offset += variable.bytes;
  }
  return result;
}
} // namespace

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

llvm::Expected<LoadedModule *> Gpu::findModule(unsigned number) {
  auto found = modules.find(number);
  if (found == modules.end())
    return makeError(ErrorKind::BadInput,
                     "module " + llvm::Twine(number) + " is not loaded");
  return &found->second;
}

llvm::Expected<const Function *> Gpu::findKernel(unsigned module,
                                                 llvm::StringRef name) {
  llvm::Expected<LoadedModule *> loaded = findModule(module);
  if (!loaded)
    return loaded.takeError();
  const Function *function = (*loaded)->module->findFunction(name);
  if (function && function->isEntry)
    return function;
  std::string there;
  unsigned left = 20; // Named at the most.
  for (const Function &one : (*loaded)->module->functions) {
    if (!one.isEntry)
      continue;
    if (!left--) {
      there += ", ...";
      break;
    }
    std::string plain = llvm::demangle(one.name);
    there += (there.empty() ? "; it has " : ", ") + one.name;
    if (plain != one.name)
      there += " (" + plain + ")";
  }
  return makeError(ErrorKind::BadInput,
                   "the module has no kernel \"" + name + "\"" +
                       (there.empty() ? "; it has none" : there));
}

llvm::Error Gpu::initialise(LoadedModule &loaded, const Function *function,
                            const Variable &variable) {
  std::string name = function
                         ? LinkedKernel::localName(*function, variable.name)
                         : variable.name;
  auto found = loaded.addresses.find(name);
  if (found == loaded.addresses.end())
    return llvm::Error::success();
  std::vector<uint8_t> bytes(variable.bytes, 0);
  uint64_t element = std::max(1u, bitWidth(variable.type) / 8);
  for (size_t i = 0; i < variable.initial.size(); ++i) {
    const InitialValue &value = variable.initial[i];
    uint64_t bits = value.bits;
    if (!value.symbol.empty()) {
      auto target = loaded.addresses.find(value.symbol);
      if (target == loaded.addresses.end() && function)
        target = loaded.addresses.find(
            LinkedKernel::localName(*function, value.symbol));
      const Function *called = loaded.module->findFunction(value.symbol);
      if (target != loaded.addresses.end())
        bits += target->second;
      else if (called)
        bits += LinkedKernel::addressOf(*loaded.module, *called);
      else
        return makeError(ErrorKind::Unsupported,
                         "variable " + variable.name +
                             " holds the address of " + value.symbol +
                             ", which is not in global memory");
      if (value.mask)
        bits = (bits & value.mask) >> llvm::countr_zero(value.mask);
    }
    if ((i + 1) * element > bytes.size())
      return makeError(ErrorKind::BadInput, "variable " + variable.name +
                                                " has too many initial values");
    std::memcpy(bytes.data() + i * element, &bits,
                std::min<uint64_t>(element, 8));
  }
  return memory.write(found->second, bytes.data(), bytes.size());
}

llvm::Error Gpu::placeVariables(LoadedModule &loaded) {
  auto forAll = [&](auto visit) -> llvm::Error {
    for (const Variable &variable : loaded.module->variables)
      if (llvm::Error error = visit(nullptr, variable))
        return error;
    for (const Function &function : loaded.module->functions)
      for (const Variable &variable : function.variables)
        if (llvm::Error error = visit(&function, variable))
          return error;
    return llvm::Error::success();
  };
  uint64_t total = 0;
  auto isPlaced = [](const Variable &variable) {
    return (variable.space == Space::Global ||
            variable.space == Space::Const) &&
           !variable.isExtern && variable.bytes;
  };
  if (llvm::Error error = forAll([&](const Function *function,
                                     const Variable &variable) -> llvm::Error {
        if (!isPlaced(variable))
          return llvm::Error::success();
        if (variable.bytes > mostVariableBytes - total)
          return makeError(ErrorKind::Unsupported,
                           "variable " + variable.name +
                               ": the module has "
                               "more than " +
                               llvm::Twine(mostVariableBytes) +
                               " bytes of variables");
        total += variable.bytes;
        llvm::Expected<uint64_t> address = memory.allocate(
            variable.bytes, std::max<uint64_t>(variable.alignment, 16),
            variable.name);
        if (!address)
          return address.takeError();
        loaded.addresses[function
                             ? LinkedKernel::localName(*function, variable.name)
                             : variable.name] = *address;
        return llvm::Error::success();
      }))
    return error;
  return forAll(
      [&](const Function *function, const Variable &variable) -> llvm::Error {
        if (!isPlaced(variable))
          return llvm::Error::success();
        if (llvm::Error error = initialise(loaded, function, variable))
          return error;
        if (variable.space == Space::Const)
          return memory.setConst(
              loaded.addresses[function ? LinkedKernel::localName(*function,
                                                                  variable.name)
                                        : variable.name],
              true);
        return llvm::Error::success();
      });
}

llvm::Expected<unsigned> Gpu::loadModule(llvm::StringRef ptx) {
  llvm::Expected<std::unique_ptr<Module>> module = parseModule(ptx);
  if (!module)
    return module.takeError();
  if ((*module)->addressBits != 64)
    return makeError(ErrorKind::Unsupported,
                     "addresses of " + llvm::Twine((*module)->addressBits) +
                         " bits are not supported");
  unsigned number = nextModule++;
  LoadedModule &loaded = modules[number];
  loaded.module = std::move(*module);
  if (llvm::Error error = placeVariables(loaded)) {
    llvm::consumeError(unloadModule(number));
    return std::move(error);
  }
  return number;
}

llvm::Error Gpu::unloadModule(unsigned module) {
  llvm::Expected<LoadedModule *> loaded = findModule(module);
  if (!loaded)
    return loaded.takeError();
  llvm::Error error = llvm::Error::success();
  for (const auto &variable : (*loaded)->addresses)
    error =
        llvm::joinErrors(std::move(error), memory.release(variable.getValue()));
  for (auto at = kernels.begin(); at != kernels.end();)
    at = at->first.first == module ? kernels.erase(at) : std::next(at);
  modules.erase(module);
  return error;
}

llvm::Expected<std::vector<KernelParameter>>
Gpu::parameters(unsigned module, llvm::StringRef kernel) {
  llvm::Expected<const Function *> function = findKernel(module, kernel);
  if (!function)
    return function.takeError();
  return layOut((*function)->parameters);
}

llvm::Expected<std::pair<uint64_t, uint64_t>>
Gpu::symbol(unsigned module, llvm::StringRef name) {
  llvm::Expected<LoadedModule *> loaded = findModule(module);
  if (!loaded)
    return loaded.takeError();
  const Variable *variable = (*loaded)->module->findVariable(name);
  auto address = (*loaded)->addresses.find(name);
  if (!variable || address == (*loaded)->addresses.end())
    return makeError(ErrorKind::BadInput,
                     "the module has no variable \"" + name + "\"");
  return std::make_pair(address->second, variable->bytes);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

llvm::Expected<LinkedKernel *> Gpu::link(unsigned module,
                                         const Function &kernel) {
  auto key = std::make_pair(module, kernel.name);
  auto found = kernels.find(key);
  if (found != kernels.end())
    return found->second.get();
  auto made = std::make_unique<LinkedKernel>(modules[module], kernel);
  std::string unsupported = made->decode();
  if (!unsupported.empty())
    return makeError(ErrorKind::Unsupported, unsupported);
  return (kernels[key] = std::move(made)).get();
}

llvm::Error Gpu::checkShape(const Function &kernel, const Program &program,
                            const LaunchShapeOf &shape) const {
  auto bad = [&](const llvm::Twine &why) {
    return makeError(ErrorKind::BadInput,
                     "launch of " + kernel.name + ": " + why);
  };
  auto show = [](const std::array<unsigned, 3> &of) {
    return (llvm::Twine(of[0]) + "x" + llvm::Twine(of[1]) + "x" +
            llvm::Twine(of[2]))
        .str();
  };
  static constexpr unsigned mostThreads = 1024;
  static constexpr unsigned mostBlock[3] = {1024, 1024, 64};
  static constexpr unsigned mostGrid[3] = {0x7fffffff, 65535, 65535};
  uint64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i) {
    if (!shape.block[i] || shape.block[i] > mostBlock[i])
      return bad("got a block of " + show(shape.block) +
                 " threads, wanted at least 1x1x1 and at most " +
                 show({mostBlock[0], mostBlock[1], mostBlock[2]}) + ", " +
                 llvm::Twine(mostThreads) + " in all");
    if (!shape.grid[i] || shape.grid[i] > mostGrid[i])
      return bad("got a grid of " + show(shape.grid) +
                 " blocks, wanted at least 1x1x1 and at most " +
                 show({mostGrid[0], mostGrid[1], mostGrid[2]}));
    threads *= shape.block[i];
  }
  if (threads > mostThreads)
    return bad("got a block of " + show(shape.block) + " threads, " +
               llvm::Twine(threads) + " in all, wanted at most " +
               llvm::Twine(mostThreads) + " in all");
  uint64_t clusterBlocks = 1;
  if (kernel.requiredCluster[0])
    for (unsigned i = 0; i < 3; ++i)
      if (shape.cluster[i] != std::max(1u, kernel.requiredCluster[i]))
        return bad("clusters of " + show(shape.cluster) +
                   " blocks, and .reqnctapercluster wants another");
  for (unsigned i = 0; i < 3; ++i) {
    if (!shape.cluster[i] || shape.grid[i] % shape.cluster[i])
      return bad("clusters of " + show(shape.cluster) + " in a grid of " +
                 show(shape.grid));
    clusterBlocks *= shape.cluster[i];
  }
  uint64_t mostBlocks =
      kernel.maxClusterRank ? kernel.maxClusterRank : mostClusterBlocks;
  mostBlocks = std::min(mostBlocks, mostClusterBlocks);
  if (clusterBlocks > mostBlocks)
    return bad("clusters of " + show(shape.cluster) + " blocks; " +
               llvm::Twine(mostBlocks) + " blocks can be had");
  uint64_t most = 1;
  if (kernel.maxThreads[0]) {
    for (unsigned size : kernel.maxThreads)
      most *= std::max(1u, size);
    if (threads > most)
      return bad(llvm::Twine(threads) +
                 " threads a block, and .maxntid "
                 "allows " +
                 llvm::Twine(most));
  }
  if (kernel.requiredThreads[0])
    for (unsigned i = 0; i < 3; ++i)
      if (shape.block[i] != std::max(1u, kernel.requiredThreads[i]))
        return bad("a block of " + show(shape.block) +
                   " threads, and .reqntid wants another");
  uint64_t sharedBytes = program.sharedBytes + uint64_t(shape.sharedBytes);
  if (sharedBytes > options.sharedBytesPerBlock)
    return bad(llvm::Twine(sharedBytes) + " bytes of shared memory, of " +
               llvm::Twine(options.sharedBytesPerBlock));
  if (clusterBlocks > mostResident(program, shape))
    return bad("clusters of " + llvm::Twine(clusterBlocks) +
               " blocks, of which " +
               llvm::Twine(mostResident(program, shape)) + " fit");
  if (shape.cooperative) {
    uint64_t blocks = uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2];
    unsigned resident = mostResident(program, shape);
    if (blocks > resident)
      return bad("a cooperative grid of " + llvm::Twine(blocks) +
                 " blocks, of which " + llvm::Twine(resident) + " fit");
  }
  return llvm::Error::success();
}

unsigned Gpu::mostResident(const Program &program,
                           const LaunchShapeOf &shape) const {
  uint64_t threads = uint64_t(shape.block[0]) * shape.block[1] * shape.block[2];
  uint64_t perProcessor = std::min<uint64_t>(
      32, options.threadsPerMultiprocessor / ((threads + 31) / 32 * 32));
  if (uint64_t bytes = program.sharedBytes + shape.sharedBytes)
    // A kilobyte a block goes to the system.
    perProcessor = std::min<uint64_t>(
        perProcessor, (options.sharedBytesPerBlock + 1024) / (bytes + 1024));
  return unsigned(std::max<uint64_t>(1, perProcessor) *
                  std::max(1u, options.multiprocessors));
}

static void count(const Program &program, llvm::ArrayRef<OpCount> counts,
                  LaunchResult &result) {
  Counters &to = result.counters;
  for (size_t i = 0; i < counts.size(); ++i) {
    const Op &op = program.code[i];
    uint64_t warps = counts[i].warps, lanes = counts[i].lanes;
    if (!warps)
      continue;
    to.warpInstructions += warps;
    to.laneInstructions += lanes;
    if (op.control == Control::Branch)
      to.branches += warps;
    uint64_t flops = op.flops * lanes;
    switch (op.opClass) {
    case OpClass::Integer:
      to.integer += warps;
      break;
    case OpClass::Float16:
      to.float16 += warps;
      to.flops16 += flops;
      break;
    case OpClass::Float32:
      to.float32 += warps;
      to.flops32 += flops;
      break;
    case OpClass::Float64:
      to.float64 += warps;
      to.flops64 += flops;
      break;
    case OpClass::Special:
      to.special += warps;
      to.flops32 += flops;
      break;
    case OpClass::Conversion:
      to.conversion += warps;
      break;
    case OpClass::Control:
      to.control += warps;
      break;
    case OpClass::Memory:
      to.memory += warps;
      break;
    case OpClass::Barrier:
      to.barrier += warps;
      break;
    case OpClass::Shuffle:
      to.shuffle += warps;
      break;
    case OpClass::Tensor:
      to.tensor += warps;
      to.tensorFlops += flops;
      break;
    case OpClass::Atomic:
      to.atomic += warps;
      break;
    }
    result.fidelity.approximateSteers |= op.approximateSteers;
    if (!op.isApproximate || op.source >= program.function->code.size())
      continue;
    const Instruction &from = program.function->code[op.source];
    std::string name = from.opcode.str();
    for (llvm::StringRef modifier : from.modifiers)
      name += "." + modifier.str();
    result.fidelity.approximate[name] += warps;
  }
}

llvm::Expected<LaunchResult> Gpu::launch(unsigned module,
                                         llvm::StringRef kernel,
                                         const LaunchShapeOf &asked,
                                         llvm::ArrayRef<uint8_t> params,
                                         const LaunchOptions &launchOptions) {
  llvm::Expected<const Function *> function = findKernel(module, kernel);
  if (!function)
    return function.takeError();
  llvm::Expected<LinkedKernel *> linked = link(module, **function);
  if (!linked)
    return linked.takeError();
  Program &program = (*linked)->entry();
  LaunchShapeOf shape = asked;
  const std::array<unsigned, 3> &required = (*function)->requiredCluster,
                                one = {1, 1, 1};
  // Where a launch says nothing, a kernel's own clusters count.
  if (required[0] && asked.cluster == one)
    for (unsigned i = 0; i < 3; ++i)
      shape.cluster[i] = std::max(1u, required[i]);
  if (llvm::Error error = checkShape(**function, program, shape))
    return std::move(error);
  if (params.size() != program.parameterBytes)
    return makeError(ErrorKind::BadInput,
                     "launch of " + kernel + ": a parameter block of " +
                         llvm::Twine(params.size()) + " bytes, wanted " +
                         llvm::Twine(program.parameterBytes));
  uint64_t blocks = uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  if (!launchOptions.blocks.empty() && shape.cluster != one)
    return makeError(ErrorKind::BadInput,
                     "launch of " + kernel +
                         ": blocks are chosen where clusters have one alone");
  if (llvm::any_of(launchOptions.blocks,
                   [&](ChosenBlock block) { return block.number >= blocks; }))
    return makeError(ErrorKind::BadInput, "launch of " + kernel +
                                              ": a block that is not one of " +
                                              llvm::Twine(blocks));
  if (launchOptions.shadow && !shadow)
    shadow = std::make_unique<ShadowMemory>();
  if (!heap && (*linked)->usesHeap()) {
    llvm::Expected<uint64_t> address = memory.allocate(heapBytes, 256, "heap");
    if (!address)
      return address.takeError();
    heap = std::make_unique<DeviceHeap>(*memory.find(*address));
  }
  if (shape.cooperative) {
    if (!workspace) {
      llvm::Expected<uint64_t> address =
          memory.allocate(workspaceBytes, 256, "grid barrier");
      if (!address)
        return address.takeError();
      workspace = *address;
    }
    std::vector<uint8_t> zeros(workspaceBytes, 0);
    if (llvm::Error error = memory.write(workspace, zeros.data(), zeros.size()))
      return std::move(error);
  }
  memory.beginLaunch();

  FindingSink sink(std::max<size_t>(launchOptions.mostFindings, 1));
  Launch launch;
  launch.program = &program;
  launch.shape = shape;
  launch.isExplicitCluster = required[0] || asked.cluster != one;
  launch.options = launchOptions;
  launch.memory = &memory;
  launch.findings = &sink;
  launch.number = ++numLaunches;
  launch.numMultiprocessors = options.multiprocessors;
  launch.gridWorkspace = shape.cooperative ? workspace : 0;
  launch.heap = heap.get();
  launch.shadow = launchOptions.shadow ? shadow.get() : nullptr;
  // What reads past a parameter is caught by the region's size; the rest of the
  // block keeps wide reads of the handlers inside.
  std::vector<uint8_t> data(params.begin(), params.end());
  data.resize(params.size() + 64);
  std::vector<uint8_t> state(data.size(), 0);
  std::fill_n(state.begin(), params.size(), uint8_t(Written));
  launch.params.address = paramWindow;
  launch.params.bytes = params.size();
  launch.params.data = data.data();
  launch.params.state = state.data();
  launch.params.isConst = true;
  launch.params.name = "parameters";

  uint64_t warps =
      (uint64_t(shape.block[0]) * shape.block[1] * shape.block[2] + 31) / 32;
  uint64_t bytesABlock =
      warps * (uint64_t(program.numSlots) * slotBytes + 4096) +
      program.sharedBytes * 6 + shape.sharedBytes * 6;
  unsigned resident = mostResident(program, shape);
  if (shape.cooperative && blocks > mostCooperativeBytes / bytesABlock)
    return makeError(ErrorKind::Unsupported,
                     "launch of " + kernel + ": a cooperative grid of " +
                         llvm::Twine(blocks) + " blocks with " +
                         llvm::Twine(bytesABlock) + " bytes each");
  if (!shape.cooperative)
    resident = unsigned(std::clamp<uint64_t>(mostResidentBytes / bytesABlock, 2,
                                             resident < 2 ? 2 : resident));
  Tally tally;
  FunctionTable table = (*linked)->table();
  runBlocks(launch, table, resident, tally);

  LaunchResult result;
  result.completed = !sink.isStopped();
  result.findings = sink.takeFindings();
  result.remarks = sink.takeRemarks();
  result.counters = tally.counters;
  for (const Program *one : table.programs)
    count(*one, tally.ops[one->number], result);
  result.output = std::move(launch.output);
  result.shadowDoubt = std::move(launch.shadowDoubt);
  result.proof.broken = launch.proofBroken;
  result.proof.isSteered = !launch.proofBroken.empty();
  if (!launchOptions.trackTaint)
    result.proof.broken = "taint was not tracked";
  else if (result.proof.broken.empty() && !result.findings.empty())
    result.proof.broken = "there are findings";
  else if (result.proof.broken.empty() && result.fidelity.approximateSteers)
    result.proof.broken =
        "an approximate value, which a GPU may have otherwise, "
        "reached an address, a branch or a guard";
  else if (result.proof.broken.empty() && !launchOptions.checkRaces)
    result.proof.broken = "races were not looked for";
  result.proof.holds = result.proof.broken.empty() && result.completed;
  return result;
}

llvm::Error Gpu::forWritten(uint64_t address, uint64_t bytes, Visit visit) {
  const Region *region = memory.find(address);
  if (!region || bytes > region->bytes - (address - region->address))
    return makeError(ErrorKind::BadInput, "no " + llvm::Twine(bytes) +
                                              " bytes at 0x" +
                                              llvm::utohexstr(address));
  const uint8_t *state = region->state + (address - region->address);
  // Most of a large range was left alone: words that are zero are stepped over.
  auto skip = [&](uint64_t at) {
    for (uint64_t word; at + 8 <= bytes; at += 8) {
      std::memcpy(&word, state + at, 8);
      if (word)
        break;
    }
    while (at < bytes && !(state[at] & Written))
      ++at;
    return at;
  };
  for (uint64_t at = skip(0); at < bytes; at = skip(at)) {
    uint64_t from = at;
    while (at < bytes && (state[at] & Written))
      ++at;
    visit(address + from, at - from);
  }
  return llvm::Error::success();
}

/// Mapped host memory is none.
llvm::Expected<const Region *> Gpu::allocation(uint64_t address,
                                               uint64_t bytes) const {
  const Region *region = memory.find(address);
  if (!region || region->address != address || bytes > region->bytes ||
      !region->readers || !region->sectors)
    return makeError(ErrorKind::BadInput,
                     "no allocation of " + llvm::Twine(bytes) + " bytes at 0x" +
                         llvm::utohexstr(address));
  return region;
}

llvm::Error Gpu::forRead(uint64_t address, uint64_t bytes, Visit visit) {
  auto found = allocation(address, bytes);
  if (!found)
    return found.takeError();
  const Region *region = *found;
  if (!memory.knowsReads())
    return makeError(ErrorKind::Unsupported,
                     "too many launches to know what they read");
  uint64_t count = (bytes + 3) / 4;
  for (uint64_t at = 0; at < count;) {
    if (!region->readers[at]) {
      ++at;
      continue;
    }
    uint64_t from = at;
    while (at < count && region->readers[at])
      ++at;
    visit(address + from * 4, std::min(at * 4, bytes) - from * 4);
  }
  return llvm::Error::success();
}

llvm::Error Gpu::forTouched(uint64_t address, uint64_t bytes, Visit visit) {
  auto found = allocation(address, bytes);
  if (!found)
    return found.takeError();
  const Region *region = *found;
  constexpr uint64_t grain = 32;
  uint64_t count = (bytes + grain - 1) / grain;
  auto isTouched = [&](uint64_t at) {
    return region->sectors[at / 64] >> (at % 64) & 1;
  };
  for (uint64_t at = 0; at < count;) {
    if (at % 64 == 0 && !region->sectors[at / 64]) {
      at += 64;
      continue;
    }
    if (!isTouched(at)) {
      ++at;
      continue;
    }
    uint64_t from = at;
    while (at < count && isTouched(at))
      ++at;
    visit(address + from * grain, std::min(at * grain, bytes) - from * grain);
  }
  return llvm::Error::success();
}

llvm::Expected<ShadowValue> Gpu::readShadow(uint64_t address, Type type) {
  const Region *region = memory.find(address);
  if (!region ||
      bitWidth(type) / 8 > region->bytes - (address - region->address))
    return makeError(ErrorKind::BadInput, "no value of type " + nameOf(type) +
                                              " at 0x" +
                                              llvm::utohexstr(address));
  Format format = formatOf(type);
  if (format == Format::None)
    return makeError(ErrorKind::BadInput,
                     nameOf(type) + " is not the type of one float");
  const uint8_t *data = region->data + (address - region->address);
  unsigned bytes = bitsOf(format) / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, data, bytes);
  ShadowEntry entries[4];
  if (shadow && address % bytes == 0)
    shadow->load(address, bytes, data, entries);
  ShadowNumber number = numberOf(entries[0], format, bits);
  return ShadowValue{double(number.value), number.bound,
                     entries[0].format == format};
}

std::unique_ptr<VirtualGpu> makeVirtualGpu(const VirtualGpuOptions &options) {
  return std::make_unique<Gpu>(options);
}

} // namespace fsr::ptx
