// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The request for one slot, the same in every round: a Mustache template,
// filled with what is known of the task and the device. Everything that decides
// about wording is in the template, which users may replace; here are only the
// numbers and names. The same input gives the same bytes. Nothing that would
// help to fool the harness is handed to the template: no seeds, fills or
// margins.
//
//===----------------------------------------------------------------------===//

#include "Templates.h"
#include "fsr/Support/Counted.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

namespace fsr {

using namespace search;

namespace {

//===----------------------------------------------------------------------===//
// Numbers as a reader wants them
//===----------------------------------------------------------------------===//

/// "12 bytes", "1.50 KiB", "128 MiB".
std::string bytesText(double bytes) {
  const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return formatted(unit ? "%.4g " : "%.0f ", bytes) + units[unit];
}

std::string microseconds(double seconds) {
  return formatted("%.3g", seconds * 1e6) + " µs";
}

std::string join(llvm::ArrayRef<int64_t> values, llvm::StringRef separator) {
  return llvm::join(
      llvm::map_range(values, [](int64_t v) { return std::to_string(v); }),
      separator);
}

/// The value of a scalar that is a constant at the launch, or a note that it is
/// none.
std::string scalarValue(const Argument &argument) {
  uint64_t bits = 0;
  if (!argument.constantBits ||
      llvm::StringRef(*argument.constantBits).getAsInteger(16, bits))
    return "varies";
  switch (argument.element) {
  case ElementType::I1:
    return bits & 1 ? "always true" : "always false";
  case ElementType::F32:
    return "always " + formatted("%.9g", llvm::bit_cast<float>(uint32_t(bits)));
  case ElementType::F64:
    return "always " + formatted("%.17g", llvm::bit_cast<double>(bits));
  case ElementType::F16:
  case ElementType::BF16:
    return "always the bits 0x" + llvm::utohexstr(bits, /*LowerCase=*/true, 4);
  case ElementType::I8:
  case ElementType::I16:
  case ElementType::I32:
  case ElementType::I64: {
    unsigned shift = 64 - 8 * byteSize(argument.element);
    return "always " + std::to_string(int64_t(bits << shift) >> shift);
  }
  }
  llvm_unreachable("no such element type");
}

llvm::StringRef accessText(Access access) {
  switch (access) {
  case Access::None:
    return "not used";
  case Access::Read:
    return "only read";
  case Access::Write:
    return "only written";
  case Access::ReadWrite:
    return "read and write";
  }
  llvm_unreachable("no such access");
}

/// A name for the kernel that is an identifier and no function of CUDA's.
std::string entryName(llvm::StringRef name) {
  std::string entry;
  for (char c : name.take_front(64))
    entry += llvm::isAlnum(c) ? c : '_';
  if (entry.empty() || !llvm::isAlpha(entry.front()))
    entry = "kernel_" + entry;
  return entry + "_opt";
}

//===----------------------------------------------------------------------===//
// What the template sees
//===----------------------------------------------------------------------===//

llvm::json::Array list(llvm::ArrayRef<std::string> texts) {
  llvm::json::Array result;
  for (const std::string &text : texts)
    result.push_back(llvm::json::Object{{"text", clean(text)}});
  return result;
}

void addArguments(const KernelTask &task, llvm::json::Object &data) {
  llvm::json::Array buffers, scalars;
  for (const Argument &argument : task.arguments) {
    if (!argument.isBuffer) {
      scalars.push_back(llvm::json::Object{{"name", clean(argument.name)},
                                           {"type", cudaName(argument.element)},
                                           {"value", scalarValue(argument)}});
      continue;
    }
    buffers.push_back(llvm::json::Object{
        {"name", clean(argument.name)},
        {"type", cudaName(argument.element)},
        {"sizes",
         argument.sizes.empty() ? "one element" : join(argument.sizes, " × ")},
        {"strides", join(argument.strides, ", ")},
        {"bytes", std::to_string(argument.extentBytes())},
        {"access", accessText(argument.access)},
        {"alignment", counted(argument.alignment, "byte")}});
  }
  data["buffers"] = std::move(buffers);
  data["scalars"] = std::move(scalars);
}

void addWork(const WorkEstimate &work, const DeviceDescription &device,
             llvm::json::Object &data) {
  double bytes = work.bytesRead + work.bytesWritten;
  data["has_work"] = bytes > 0 || work.flops > 0;
  data["bytes_known"] = bytes > 0;
  data["flops_known"] = work.flops > 0;
  data["bytes_read"] = bytesText(work.bytesRead);
  data["bytes_written"] = bytesText(work.bytesWritten);
  data["flops"] = formatted("%.4g", work.flops);
  data["exact"] = work.exactOnIntegers;
  double memory = 0, arithmetic = 0;
  if (double peak = device.peakBytesPerSecond(); peak > 0)
    memory = bytes / peak;
  if (double peak = device.peakFlopsPerSecond(); peak > 0)
    arithmetic = work.flops / peak;
  // Null where it is not known: a section of that name is left out.
  auto time = [](double seconds) -> llvm::json::Value {
    if (seconds > 0)
      return microseconds(seconds);
    return nullptr;
  };
  data["bound_bytes"] = time(memory);
  data["bound_flops"] = time(arithmetic);
  data["bound"] = time(std::max(memory, arithmetic));
  data["limiter"] = memory >= arithmetic ? "memory traffic" : "arithmetic";
}

void addDevice(const DeviceDescription &device, llvm::json::Object &data) {
  data["device"] = clean(device.name.empty() ? device.chip : device.name);
  // As text: Mustache prints large numbers with an exponent.
  auto number = [](int64_t value) { return std::to_string(value); };
  const LaunchLimits &limits = device.limits;
  data["max_threads"] = number(limits.threadsPerBlock);
  data["max_block_x"] = number(limits.block[0]);
  data["max_block_y"] = number(limits.block[1]);
  data["max_block_z"] = number(limits.block[2]);
  data["max_grid_x"] = number(limits.grid[0]);
  data["max_grid_y"] = number(limits.grid[1]);
  data["max_grid_z"] = number(limits.grid[2]);
  data["max_shared"] = number(limits.sharedBytesPerBlock);

  // What a device does not tell is left out, never guessed.
  std::vector<std::string> facts;
  if (device.multiprocessors > 0)
    facts.push_back(number(device.multiprocessors) + " multiprocessors" +
                    (device.coresPerMultiprocessor > 0
                         ? " with " + number(device.coresPerMultiprocessor) +
                               " f32 lanes each"
                         : ""));
  if (device.clockKhz > 0)
    facts.push_back("clock up to " + number(device.clockKhz / 1000) + " MHz");
  if (double peak = device.peakFlopsPerSecond(); peak > 0)
    facts.push_back("f32 arithmetic: " + formatted("%.1f", peak / 1e12) +
                    " TFLOP/s peak (a fused multiply-add counts as two)");
  if (double peak = device.peakBytesPerSecond(); peak > 0)
    facts.push_back("memory: " + formatted("%.0f", peak / 1e9) +
                    " GB/s peak, read and write together");
  if (device.l2Bytes > 0)
    facts.push_back("L2 cache: " + bytesText(double(device.l2Bytes)));
  if (device.sharedBytesPerMultiprocessor > 0)
    facts.push_back("shared memory of a multiprocessor: " +
                    bytesText(double(device.sharedBytesPerMultiprocessor)));
  if (device.registersPerMultiprocessor > 0)
    facts.push_back("registers of a multiprocessor: " +
                    number(device.registersPerMultiprocessor) +
                    " of 32 bits, at most 255 a thread");
  if (device.threadsPerMultiprocessor > 0)
    facts.push_back("resident threads of a multiprocessor: " +
                    number(device.threadsPerMultiprocessor) +
                    " in warps of 32");
  data["device_facts"] = list(facts);
}

} // namespace

std::string search::renderRequest(const Templates &templates,
                                  const KernelTask &task,
                                  const DeviceDescription &device,
                                  unsigned slot, llvm::StringRef strategy) {
  llvm::json::Object data;
  data["name"] = clean(task.name);
  data["entry"] = entryName(task.name);
  data["chip"] = clean(task.target);
  data["kernel_mlir"] = clean(task.kernelMlir);
  data["launch_mlir"] = clean(task.launchMlir);
  data["has_launch_mlir"] = !llvm::StringRef(task.launchMlir).trim().empty();
  data["grid"] = join(task.launch.grid, " × ");
  data["block"] = join(task.launch.block, " × ");
  data["shared"] = nullptr;
  if (task.launch.sharedBytes > 0)
    data["shared"] = std::to_string(task.launch.sharedBytes);
  data["signature"] = clean(candidateSignature(task));
  data["facts"] = list(task.facts);
  data["has_facts"] = !task.facts.empty();
  data["fast_math"] = task.fastMath;
  data["parameter_sets"] = int64_t(SearchOptions().parameterSets);
  data["slot"] = int64_t(slot);
  data["strategy"] = clean(strategy);
  addArguments(task, data);
  addWork(task.work, device, data);
  addDevice(device, data);

  return renderTemplate(templates.request, std::move(data));
}

llvm::Expected<std::string> renderPrompt(const KernelTask &task,
                                         const DeviceDescription &device,
                                         unsigned slot,
                                         llvm::StringRef promptFolder) {
  auto templates = readTemplates(promptFolder);
  if (!templates)
    return templates.takeError();
  auto strategy = strategyOf(templates->strategies, "strategies.txt", slot);
  if (!strategy)
    return strategy.takeError();
  return renderRequest(*templates, task, device, slot, *strategy);
}

} // namespace fsr
