// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parameter packing. Values are kept as 64 bits, little endian, so the driver
// reads a narrower scalar from the front of its slot.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

namespace fsr {

llvm::Expected<std::unique_ptr<LoadedImage>>
LoadedImage::load(Backend &backend, llvm::StringRef image) {
  auto module = backend.loadModule(image);
  if (!module)
    return module.takeError();
  return std::unique_ptr<LoadedImage>(new LoadedImage(backend, *module));
}

LoadedImage::~LoadedImage() {
  llvm::consumeError(backend.unloadModule(module));
}

llvm::ArrayRef<void *> PackedParameters::finish() {
  pointers.clear();
  for (uint64_t &value : values)
    pointers.push_back(&value);
  return pointers;
}

namespace {

std::optional<uint64_t> scalarBits(const Argument &argument) {
  uint64_t bits = 0;
  if (!argument.constantBits)
    return std::nullopt;
  llvm::StringRef text = *argument.constantBits;
  text.consume_front("0x");
  if (text.empty() || text.getAsInteger(16, bits))
    return std::nullopt;
  return bits;
}

/// The value of a name of the candidate's ABI.
std::optional<uint64_t> valueOf(llvm::StringRef name, const KernelTask &task,
                                const PlacesOf &places) {
  if (auto scratch = places.scratch(name))
    return scratch;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    if (!name.starts_with(argument.name))
      continue;
    llvm::StringRef rest = name.drop_front(argument.name.size());
    if (rest.empty())
      return argument.isBuffer ? places.argument(i) : scalarBits(argument);
    unsigned dimension = 0;
    const std::vector<int64_t> *values = nullptr;
    if (rest.consume_front(".size"))
      values = &argument.sizes;
    else if (rest.consume_front(".stride"))
      values = &argument.strides;
    if (argument.isBuffer && values && !rest.getAsInteger(10, dimension) &&
        dimension < values->size())
      return (*values)[dimension];
  }
  return std::nullopt;
}

llvm::Error checkRange(const LaunchShape &shape, llvm::StringRef name) {
  auto fits = [](int64_t value) { return value >= 1 && value <= 0x7FFFFFFF; };
  for (unsigned d = 0; d < 3; ++d)
    if (!fits(shape.grid[d]) || !fits(shape.block[d]) ||
        !fits(shape.cluster[d]))
      return makeError(ErrorKind::BadInput,
                       "launch of " + name + ": a size of dimension " +
                           llvm::Twine(d) + " is not from 1 to 2147483647");
  if (shape.sharedBytes < 0 || shape.sharedBytes > 0x7FFFFFFF)
    return makeError(ErrorKind::BadInput,
                     "launch of " + name + ": shared memory of " +
                         llvm::Twine(shape.sharedBytes) + " bytes");
  return llvm::Error::success();
}

} // namespace

BackendLaunch shapedLaunch(const LaunchShape &shape, FunctionHandle function,
                           llvm::StringRef name, StreamHandle stream) {
  BackendLaunch launch;
  launch.function = function;
  launch.name = name;
  for (unsigned d = 0; d < 3; ++d) {
    launch.grid[d] = shape.grid[d];
    launch.block[d] = shape.block[d];
    launch.cluster[d] = shape.cluster[d];
  }
  launch.sharedBytes = shape.sharedBytes;
  launch.stream = stream;
  return launch;
}

llvm::Error checkReferenceArguments(const KernelTask &task) {
  if (llvm::Error error = checkRange(task.launch, task.reference.entry))
    return error;
  for (const Argument &argument : task.arguments)
    if (!argument.isBuffer && !scalarBits(argument))
      return makeError(ErrorKind::BadInput,
                       "scalar " + argument.name +
                           " has no constant value: cannot launch the kernel");
  return llvm::Error::success();
}

llvm::Error checkArguments(const KernelTask &task, const ResolvedPlan &plan) {
  if (llvm::Error error = checkReferenceArguments(task))
    return error;
  if (plan.launches.empty())
    return makeError(ErrorKind::BadInput, "the plan has no launch");
  for (const ResolvedLaunch &launch : plan.launches)
    if (llvm::Error error = checkRange(launch.shape, launch.kernel))
      return error;
  return llvm::Error::success();
}

PackedParameters
packReference(const KernelTask &task,
              llvm::function_ref<uint64_t(size_t argument)> dataOf) {
  PackedParameters parameters;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    if (!argument.isBuffer) {
      parameters.add(scalarBits(argument).value_or(0));
      continue;
    }
    uint64_t data = dataOf(i);
    uint64_t before = uint64_t(argument.offset) * byteSize(argument.element);
    if (task.reference.abi == ReferenceAbi::BarePointer) {
      parameters.add(data - before);
      continue;
    }
    parameters.add(data - before);
    parameters.add(data - before);
    parameters.add(argument.offset);
    for (int64_t size : argument.sizes)
      parameters.add(size);
    for (int64_t stride : argument.strides)
      parameters.add(stride);
  }
  return parameters;
}

llvm::Expected<PackedParameters> packCandidate(const KernelTask &task,
                                               const ResolvedLaunch &planned,
                                               const PlacesOf &places) {
  PackedParameters parameters;
  for (const std::string &name : planned.args) {
    auto value = valueOf(name, task, places);
    if (!value)
      return makeError(ErrorKind::BadInput, "launch of " + planned.kernel +
                                                ": no value for argument '" +
                                                name + "'");
    parameters.add(*value);
  }
  return parameters;
}

llvm::Error launchReference(Helpers &helpers, const TaskBuffers &buffers,
                            const KernelTask &task, FunctionHandle function) {
  PackedParameters parameters = packReference(
      task, [&](size_t argument) { return buffers.find(argument)->pointer(); });
  BackendLaunch launch = shapedLaunch(task.launch, function,
                                      task.reference.entry, helpers.stream());
  launch.params = parameters.finish();
  return helpers.backend().launch(launch);
}

llvm::Error launchCandidate(Helpers &helpers, const TaskBuffers &buffers,
                            const KernelTask &task, const ResolvedPlan &plan,
                            llvm::ArrayRef<FunctionHandle> functions) {
  for (const ScratchMemory &scratch : buffers.scratch())
    if (scratch.plan->zero)
      if (llvm::Error error = helpers.clear(scratch.data, scratch.plan->bytes))
        return error;
  auto dataOf = [&](size_t argument) {
    return buffers.find(argument)->pointer();
  };
  auto scratchOf = [&](llvm::StringRef name) -> std::optional<uint64_t> {
    for (const ScratchMemory &scratch : buffers.scratch())
      if (name == scratch.plan->name)
        return scratch.data;
    return std::nullopt;
  };
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const ResolvedLaunch &planned = plan.launches[i];
    auto parameters = packCandidate(task, planned, {dataOf, scratchOf});
    if (!parameters)
      return parameters.takeError();
    BackendLaunch launch = shapedLaunch(planned.shape, functions[i],
                                        planned.kernel, helpers.stream());
    launch.params = parameters->finish();
    if (llvm::Error error = helpers.backend().launch(launch))
      return error;
  }
  return llvm::Error::success();
}

} // namespace fsr
