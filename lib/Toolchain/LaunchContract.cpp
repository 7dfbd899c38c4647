// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a kernel takes and was compiled for, against what the plan passes and
// the device has. A driver would refuse most of it at the launch, with a number
// for a reason; parameters it would read past their end.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using llvm::StringRef;

namespace fsr {
namespace {

/// A thread's local memory is set aside for every thread that a device can
/// hold at once, a quarter of a million of them; the hardware's own limit,
/// 512 KiB, would take more memory than there is.
constexpr int64_t mostStackBytes = 64 * 1024;
constexpr int64_t warpThreads = 32;
constexpr int64_t registerUnit = 8; ///< A thread's registers come in eights.

std::string quoted(StringRef name) { return ("`" + name + "`").str(); }

std::string dimensions(const std::array<int64_t, 3> &sizes) {
  return (llvm::Twine(sizes[0]) + " x " + llvm::Twine(sizes[1]) + " x " +
          llvm::Twine(sizes[2]))
      .str();
}

int64_t product(const std::array<int64_t, 3> &sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    // Numbers of a hostile text: beyond every limit is enough.
    if (size <= 0 || all > (int64_t(1) << 40) / size)
      return int64_t(1) << 40;
    else
      all *= size;
  return all;
}

const char *nameOf(PassedArgument::Kind kind) {
  switch (kind) {
  case PassedArgument::Buffer:
    return "a pointer";
  case PassedArgument::Integer:
    return "an integer";
  case PassedArgument::Float:
    return "a float";
  }
  return "";
}

using Reason = std::optional<std::string>;

Reason checkParameters(const PtxFunction &kernel, const KernelLaunch &launch) {
  auto list = [](auto range) {
    std::string all = llvm::join(range, ", ");
    return all.empty() ? std::string("none") : all;
  };
  auto bytes = [](const auto &each) { return std::to_string(each.bytes); };
  bool matches = kernel.parameters.size() == launch.args.size();
  for (size_t i = 0; matches && i < launch.args.size(); ++i)
    matches = kernel.parameters[i].bytes == launch.args[i].bytes;
  if (!matches) {
    std::string names = list(llvm::map_range(
        launch.args, [](const PassedArgument &each) { return each.name; }));
    return "kernel " + quoted(kernel.name) +
           " takes parameters of these bytes: " +
           list(llvm::map_range(kernel.parameters, bytes)) +
           "; the launch plan passes: " +
           list(llvm::map_range(launch.args, bytes)) + " (" + names + ")";
  }
  for (auto [i, pair] :
       llvm::enumerate(llvm::zip_equal(kernel.parameters, launch.args))) {
    const auto &[parameter, passed] = pair;
    bool isFloat = parameter.kind == PtxParameter::Float;
    // Half types are bytes in PTX; so are structs of one member.
    if (parameter.kind == PtxParameter::Bytes ||
        isFloat == (passed.kind == PassedArgument::Float))
      continue;
    return "parameter " + std::to_string(i + 1) + " of kernel " +
           quoted(kernel.name) + " is " +
           (isFloat ? "a float" : "an integer or a pointer") +
           "; the launch plan passes " + nameOf(passed.kind) + ", " +
           quoted(passed.name);
  }
  return std::nullopt;
}

Reason checkShape(const PtxFunction &kernel, const LaunchShape &shape) {
  int64_t threads = product(shape.block);
  std::string plan =
      "; the launch plan has a block of " + dimensions(shape.block);
  if (auto most = kernel.numbersOf(".maxntid");
      most && product(*most) < threads)
    return "kernel " + quoted(kernel.name) + " was compiled for at most " +
           std::to_string(product(*most)) +
           " threads a block (__launch_bounds__)" + plan;
  if (auto exact = kernel.numbersOf(".reqntid"); exact && *exact != shape.block)
    return "kernel " + quoted(kernel.name) + " was compiled for blocks of " +
           dimensions(*exact) + " threads" + plan;
  if (auto cluster = kernel.numbersOf(".reqnctapercluster")) {
    // A plan that asks for no cluster gets the kernel's.
    if (product(shape.cluster) > 1 && *cluster != shape.cluster)
      return "kernel " + quoted(kernel.name) +
             " was compiled for clusters of " + dimensions(*cluster) +
             " blocks; the launch plan has " + dimensions(shape.cluster);
    for (size_t i = 0; i < 3; ++i)
      if ((*cluster)[i] <= 0 || shape.grid[i] % (*cluster)[i] != 0)
        return "kernel " + quoted(kernel.name) +
               " was compiled for clusters of " + dimensions(*cluster) +
               " blocks, which do not divide the launch plan's grid of " +
               dimensions(shape.grid);
  }
  if (auto rank = kernel.numbersOf(".maxclusterrank");
      rank && product(shape.cluster) > (*rank)[0])
    return "kernel " + quoted(kernel.name) + " was compiled for at most " +
           std::to_string((*rank)[0]) +
           " blocks a cluster; the launch plan has " +
           dimensions(shape.cluster);
  return std::nullopt;
}

Reason checkResources(const KernelResources &kernel, const LaunchShape &shape,
                      const LaunchLimits &limits) {
  int64_t shared = kernel.sharedBytes + shape.sharedBytes;
  if (shared > limits.sharedBytesPerBlock)
    return "kernel " + quoted(kernel.kernel) + " needs " +
           std::to_string(shared) + " bytes of shared memory a block (" +
           std::to_string(kernel.sharedBytes) + " static and " +
           std::to_string(shape.sharedBytes) +
           " of the launch plan); the "
           "device has " +
           std::to_string(limits.sharedBytesPerBlock);
  int64_t threads = product(shape.block);
  int64_t warps = (threads + warpThreads - 1) / warpThreads;
  int64_t registers = (kernel.registers + registerUnit - 1) / registerUnit *
                      registerUnit * warps * warpThreads;
  if (registers > limits.registersPerBlock)
    return "kernel " + quoted(kernel.kernel) + " takes " +
           std::to_string(kernel.registers) +
           " registers a thread, which for " + std::to_string(threads) +
           " threads a block is more than the " +
           std::to_string(limits.registersPerBlock) +
           " of the device; say __launch_bounds__(" + std::to_string(threads) +
           ") or launch fewer threads";
  if (kernel.stackBytes > mostStackBytes)
    return "kernel " + quoted(kernel.kernel) + " keeps " +
           std::to_string(kernel.stackBytes) +
           " bytes a thread in local memory; at most " +
           std::to_string(mostStackBytes) +
           " are accepted: use shared memory or a scratch buffer of the plan";
  return std::nullopt;
}

} // namespace

Reason checkLaunches(const PtxModule &module, const Build &build,
                     llvm::ArrayRef<KernelLaunch> launches,
                     const LaunchLimits &limits) {
  for (const KernelLaunch &launch : launches) {
    const PtxFunction *kernel = module.findEntry(launch.kernel);
    if (!kernel)
      return "the source defines no kernel " + quoted(launch.kernel);
    for (const PtxParameter &parameter : kernel->parameters)
      if (!parameter.bytes)
        return "a parameter of kernel " + quoted(launch.kernel) +
               " is not understood";
    if (Reason reason = checkParameters(*kernel, launch))
      return reason;
    if (Reason reason = checkShape(*kernel, launch.shape))
      return reason;
    KernelResources none;
    none.kernel = launch.kernel;
    const KernelResources *resources = build.find(launch.kernel);
    if (Reason reason =
            checkResources(resources ? *resources : none, launch.shape, limits))
      return reason;
  }
  return std::nullopt;
}

std::optional<std::vector<unsigned>> parameterBytes(StringRef ptx,
                                                    StringRef entry) {
  std::string refusal;
  std::optional<PtxModule> module = readPtx(ptx, refusal);
  const PtxFunction *kernel = module ? module->findEntry(entry) : nullptr;
  if (!kernel)
    return std::nullopt;
  std::vector<unsigned> sizes;
  for (const PtxParameter &parameter : kernel->parameters) {
    if (!parameter.bytes)
      return std::nullopt;
    sizes.push_back(parameter.bytes);
  }
  return sizes;
}

} // namespace fsr
