// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-worker run`: one kernel of a PTX file on the virtual device, with what a
// debugger would want to know of it. docs/tools/fsr-worker.md is the reference.
//
// Exit status: 0 no findings; 1 what was asked for cannot be done; 2 findings.
//
//===----------------------------------------------------------------------===//

#include "fsr/Worker/Worker.h"

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Core/Types.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>
#include <random>

#define FSR_DEVICE [[maybe_unused]] static inline
#include "kernels/elements.inl"

namespace fsr {

namespace {

constexpr uint64_t mostFileBytes = uint64_t(1) << 30;
constexpr uint64_t mostBufferBytes = uint64_t(4) << 30;

constexpr char runUsage[] =
    R"(usage: fsr-worker run FILE --kernel=NAME [OPTION...]

Runs one kernel of a PTX file (or of a fat binary that holds PTX) on the virtual
device and tells what it did.

  --kernel=NAME          the kernel; may be left out where there is one only
  --grid=X[,Y[,Z]]       blocks (default 1)
  --block=X[,Y[,Z]]      threads a block (default 1)
  --shared=BYTES         dynamic shared memory
  --arg=TYPE:VALUE       a scalar: i8, i16, i32, i64, f16, bf16, f32, f64
  --arg=buffer:TYPE:COUNT:CONTENTS
                         a buffer: random, zeros, iota, uninit or file=PATH
  --schedule=NAME        lockstep (default), split-lanes or random-warps
  --seed=N               of random contents and schedules (default 1)
  --budget=N             warp instructions that the launch may take
  --chip=CHIP            sm_80, sm_90 (default) or sm_100
  --registers=N          registers a thread, for the modelled time
  --print=N              the first N values of each buffer afterwards
  --dump=N:PATH          writes the bytes of argument N, from 0, to a file

Exit status 0: nothing was found; 1: it could not be run; 2: findings.
)";

struct RunArgument {
  bool isBuffer = false;
  ElementType type = ElementType::F32;
  uint64_t bits = 0;
  uint64_t count = 0;
  std::string contents; ///< "random"….
  uint64_t address = 0;
  uint64_t bytes() const { return count * byteSize(type); }
};

struct RunOptions {
  std::string file, kernel, chip = "sm_90";
  ptx::LaunchShapeOf shape;
  ptx::LaunchOptions launch;
  unsigned registers = 0;
  uint64_t print = 0;
  std::vector<RunArgument> arguments;
  std::vector<std::pair<size_t, std::string>> dumps;
};

llvm::Error bad(const llvm::Twine &message) {
  return makeError(ErrorKind::BadInput, message);
}

llvm::Expected<uint64_t> parseNumber(llvm::StringRef option,
                                     llvm::StringRef text) {
  uint64_t value = 0;
  if (text.getAsInteger(10, value))
    return bad(option + ": got '" + text + "', wanted a number");
  return value;
}

llvm::Error parseTriple(llvm::StringRef option, llvm::StringRef text,
                        std::array<unsigned, 3> &to) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  if (parts.size() > 3)
    return bad(option + ": got '" + text + "', wanted X, X,Y or X,Y,Z");
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].getAsInteger(10, to[i]))
      return bad(option + ": got '" + text + "', wanted X, X,Y or X,Y,Z");
  return llvm::Error::success();
}

llvm::Expected<RunArgument> parseArgument(llvm::StringRef text) {
  auto wrong = [&](const llvm::Twine &what) {
    return bad("--arg='" + text + "': " + what);
  };
  RunArgument argument;
  llvm::StringRef rest = text;
  argument.isBuffer = rest.consume_front("buffer:");
  llvm::StringRef name;
  std::tie(name, rest) = rest.split(':');
  auto type = parseElementType(name);
  if (!type || *type == ElementType::I1)
    return wrong("got type '" + name +
                 "', wanted i8, i16, i32, i64, f16, bf16, f32 or f64");
  argument.type = *type;
  if (!argument.isBuffer) {
    if (isFloat(*type)) {
      double value = 0;
      if (rest.getAsDouble(value))
        return wrong("got '" + rest + "', wanted a number");
      argument.bits = fsrFromDouble(value, static_cast<uint32_t>(*type));
      return argument;
    }
    int64_t value = 0;
    uint64_t wide = 0;
    if (!rest.getAsInteger(0, value))
      argument.bits = uint64_t(value);
    else if (!rest.getAsInteger(0, wide))
      argument.bits = wide;
    else
      return wrong("got '" + rest + "', wanted a number");
    unsigned size = byteSize(*type);
    if (size < 8 && value != llvm::SignExtend64(argument.bits, 8 * size) &&
        argument.bits >> (8 * size))
      return wrong("the number does not fit");
    return argument;
  }
  llvm::StringRef count;
  std::tie(count, rest) = rest.split(':');
  if (count.getAsInteger(10, argument.count) || !argument.count ||
      argument.count > mostBufferBytes / byteSize(*type))
    return wrong("got '" + count + "' elements, wanted 1 to " +
                 llvm::Twine(mostBufferBytes / byteSize(*type)));
  argument.contents = rest.str();
  if (!llvm::is_contained({"random", "zeros", "iota", "uninit"}, rest) &&
      !rest.starts_with("file="))
    return wrong("got contents '" + rest +
                 "', wanted random, zeros, iota, uninit or file=PATH");
  return argument;
}

llvm::Expected<RunOptions> parseOptions(llvm::ArrayRef<char *> words) {
  RunOptions options;
  for (size_t i = 0; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    if (!word.starts_with("--")) {
      if (!options.file.empty())
        return bad("got two files, '" + options.file + "' and '" + word + "'");
      options.file = word.str();
      continue;
    }
    auto [name, value] = word.split('=');
    if (!word.contains('=')) {
      if (i + 1 == words.size())
        return bad(name + ": a value is missing");
      value = words[++i];
    }
    auto number = [&, name = name, value = value](auto &to) -> llvm::Error {
      auto parsed = parseNumber(name, value);
      if (!parsed)
        return parsed.takeError();
      to = std::remove_reference_t<decltype(to)>(*parsed);
      if (to != *parsed)
        return bad(name + ": " + value + " is too large");
      return llvm::Error::success();
    };
    llvm::Error error = llvm::Error::success();
    if (name == "--kernel") {
      options.kernel = value.str();
    } else if (name == "--chip") {
      options.chip = value.str();
    } else if (name == "--grid") {
      error = parseTriple(name, value, options.shape.grid);
    } else if (name == "--block") {
      error = parseTriple(name, value, options.shape.block);
    } else if (name == "--shared") {
      error = number(options.shape.sharedBytes);
    } else if (name == "--seed") {
      error = number(options.launch.seed);
    } else if (name == "--budget") {
      error = number(options.launch.instructionBudget);
    } else if (name == "--registers") {
      error = number(options.registers);
    } else if (name == "--print") {
      error = number(options.print);
    } else if (name == "--schedule") {
      bool found = false;
      for (auto one : {ptx::Schedule::Lockstep, ptx::Schedule::SplitLanes,
                       ptx::Schedule::RandomWarps})
        if (ptx::nameOf(one) == value) {
          options.launch.schedule = one;
          found = true;
        }
      if (!found)
        error = bad("--schedule: got '" + value +
                    "', wanted lockstep, split-lanes or random-warps");
    } else if (name == "--arg") {
      auto argument = parseArgument(value);
      if (argument)
        options.arguments.push_back(std::move(*argument));
      else
        error = argument.takeError();
    } else if (name == "--dump") {
      auto [which, path] = value.split(':');
      size_t index = 0;
      if (which.getAsInteger(10, index) || path.empty())
        error = bad("--dump: got '" + value + "', wanted N:PATH");
      else
        options.dumps.push_back({index, path.str()});
    } else {
      error = bad("unknown option '" + name + "'; see fsr-worker run --help");
    }
    if (error)
      return std::move(error);
  }
  if (options.file.empty())
    return bad("a PTX file is missing; see fsr-worker run --help");
  for (const auto &dump : options.dumps)
    if (dump.first >= options.arguments.size() ||
        !options.arguments[dump.first].isBuffer)
      return bad("--dump: argument " + llvm::Twine(dump.first) +
                 " is no buffer");
  return options;
}

/// The bytes of a buffer before the launch.
llvm::Expected<std::string> contentsOf(const RunArgument &argument,
                                       uint64_t seed) {
  llvm::StringRef kind = argument.contents;
  if (kind.consume_front("file=")) {
    auto bytes = readFile(kind, mostFileBytes);
    if (bytes && bytes->size() != argument.bytes())
      return bad("'" + kind + "' has " + llvm::Twine(bytes->size()) +
                 " bytes, the buffer " + llvm::Twine(argument.bytes()));
    return bytes;
  }
  std::string bytes(argument.bytes(), '\0');
  if (kind == "zeros")
    return bytes;
  unsigned size = byteSize(argument.type);
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < argument.count; ++i) {
    // Integers from 0 to 15: as indices they reach no further than a small
    // buffer; floats from -1 to 1.
    uint64_t bits = kind == "iota" ? i : random() % 16;
    if (isFloat(argument.type)) {
      double value = kind == "iota"
                         ? double(i)
                         : double(int64_t(random() >> 11)) * 0x1p-52 - 1;
      bits = fsrFromDouble(value, static_cast<uint32_t>(argument.type));
    }
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

std::string printValue(const char *at, ElementType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, byteSize(type));
  if (!isFloat(type))
    return llvm::itostr(llvm::SignExtend64(bits, 8 * byteSize(type)));
  char text[40];
  snprintf(text, sizeof(text), "%.9g",
           fsrToDouble(bits, static_cast<uint32_t>(type)));
  return text;
}

/// The only kernel of a text, where none is named.
llvm::Expected<std::string> onlyKernel(llvm::StringRef text) {
  auto module = ptx::parseModule(text);
  if (!module)
    return module.takeError();
  std::string names;
  unsigned count = 0;
  for (const ptx::Function &function : (*module)->functions) {
    if (!function.isEntry)
      continue;
    names += (names.empty() ? "" : ", ") + function.name;
    ++count;
  }
  if (count != 1)
    return bad("--kernel is missing; the module has " +
               (count ? names : std::string("none")));
  return names;
}

void tell(const ptx::LaunchResult &result, const ptx::ModelledTime &time,
          llvm::raw_ostream &os) {
  for (const ptx::Finding &finding : result.findings)
    os << "finding: " << finding.text() << '\n';
  for (const ptx::Finding &remark : result.remarks)
    os << "remark: " << remark.text() << '\n';
  const ptx::Counters &c = result.counters;
  auto line = [&](llvm::StringRef name, uint64_t value) {
    if (value)
      os << "  " << llvm::left_justify(name, 26) << value << '\n';
  };
  os << "counters:\n";
  line("warp instructions", c.warpInstructions);
  line("lane instructions", c.laneInstructions);
  line("integer", c.integer);
  line("float16", c.float16);
  line("float32", c.float32);
  line("float64", c.float64);
  line("special", c.special);
  line("conversion", c.conversion);
  line("control", c.control);
  line("memory", c.memory);
  line("barrier", c.barrier);
  line("shuffle", c.shuffle);
  line("tensor", c.tensor);
  line("atomic", c.atomic);
  line("flops, 16 bits", c.flops16);
  line("flops, 32 bits", c.flops32);
  line("flops, 64 bits", c.flops64);
  line("flops, tensor", c.tensorFlops);
  line("global bytes loaded", c.globalLoadBytes);
  line("global bytes stored", c.globalStoreBytes);
  line("shared bytes loaded", c.sharedLoadBytes);
  line("shared bytes stored", c.sharedStoreBytes);
  line("local bytes loaded", c.localLoadBytes);
  line("local bytes stored", c.localStoreBytes);
  line("global requests", c.globalRequests);
  line("global sectors", c.globalSectors);
  line("distinct sectors", c.uniqueSectors);
  line("shared requests", c.sharedRequests);
  line("bank cycles", c.bankCycles);
  line("branches", c.branches);
  line("divergent branches", c.divergentBranches);
  line("serialised atomic updates", c.atomicSerial);
  if (result.completed)
    os << llvm::formatv("modelled time: {0:f2} us, bound by {1}, occupancy "
                        "{2:f0} %\n",
                        time.microseconds, time.bound, 100 * time.occupancy)
              .str();
  os << "fidelity: ";
  if (result.fidelity.approximate.empty()) {
    os << "exact\n";
  } else {
    os << "approximate on a GPU:";
    for (const auto &one : result.fidelity.approximate)
      os << ' ' << one.first;
    os << (result.fidelity.approximateSteers
               ? "; such a value reached an address or a branch\n"
               : "\n");
  }
  os << "proof: ";
  if (result.proof.holds)
    os << "safe for all data at this shape\n";
  else
    os << "none: " << result.proof.broken << '\n';
}

llvm::Expected<bool> run(const RunOptions &options) {
  const ptx::ChipModel *chip = ptx::findChipModel(options.chip);
  if (!chip)
    return bad("--chip: got '" + options.chip +
               "', wanted sm_80, sm_90 or sm_100");
  auto image = readFile(options.file, mostFileBytes);
  if (!image)
    return image.takeError();
  auto text = findPtx(*image, options.chip);
  if (!text)
    return addContext(text.takeError(), "'" + options.file + "'");
  std::string kernel = options.kernel;
  if (kernel.empty()) {
    auto only = onlyKernel(*text);
    if (!only)
      return addContext(only.takeError(), "'" + options.file + "'");
    kernel = *only;
  }
  ptx::VirtualGpuOptions gpuOptions;
  gpuOptions.multiprocessors = chip->multiprocessors;
  gpuOptions.sharedBytesPerBlock = chip->sharedBytesPerBlock;
  gpuOptions.threadsPerMultiprocessor = chip->threadsPerMultiprocessor;
  std::unique_ptr<ptx::VirtualGpu> gpu = ptx::makeVirtualGpu(gpuOptions);
  auto module = gpu->loadModule(*text);
  if (!module)
    return addContext(module.takeError(), "'" + options.file + "'");
  auto parameters = gpu->parameters(*module, kernel);
  if (!parameters)
    return addContext(parameters.takeError(), "'" + options.file + "'");
  if (parameters->size() != options.arguments.size())
    return bad("kernel '" + kernel + "' has " +
               llvm::Twine(parameters->size()) + " parameters, got " +
               llvm::Twine(options.arguments.size()) + " arguments");

  std::vector<RunArgument> arguments = options.arguments;
  std::vector<uint8_t> block;
  for (size_t i = 0; i < arguments.size(); ++i) {
    RunArgument &argument = arguments[i];
    const ptx::KernelParameter &parameter = (*parameters)[i];
    uint64_t wanted = argument.isBuffer ? 8 : byteSize(argument.type);
    if (parameter.bytes != wanted)
      return bad("argument " + llvm::Twine(i) + " has " + llvm::Twine(wanted) +
                 " bytes, the parameter " + llvm::Twine(parameter.bytes));
    if (argument.isBuffer) {
      auto address = gpu->allocate(argument.bytes());
      if (!address)
        return address.takeError();
      argument.address = *address;
      if (argument.contents != "uninit") {
        auto bytes = contentsOf(argument, options.launch.seed + i);
        if (!bytes)
          return bytes.takeError();
        if (llvm::Error error =
                gpu->write(*address, bytes->data(), bytes->size()))
          return std::move(error);
        if (llvm::Error error =
                gpu->setTainted(*address, argument.bytes(), true))
          return std::move(error);
      }
    }
    uint64_t bits = argument.isBuffer ? argument.address : argument.bits;
    block.resize(
        std::max<size_t>(block.size(), parameter.offset + parameter.bytes));
    std::memcpy(block.data() + parameter.offset, &bits, parameter.bytes);
  }
  auto result =
      gpu->launch(*module, kernel, options.shape, block, options.launch);
  if (!result)
    return result.takeError();
  ptx::KernelCost cost;
  cost.registers = options.registers;
  cost.sharedBytes = options.shape.sharedBytes;
  llvm::outs() << result->output;
  tell(*result, ptx::modelledTime(result->counters, options.shape, cost, *chip),
       llvm::outs());
  for (size_t i = 0; options.print && i < arguments.size(); ++i) {
    if (!arguments[i].isBuffer)
      continue;
    uint64_t count = std::min(options.print, arguments[i].count);
    std::string bytes(count * byteSize(arguments[i].type), '\0');
    if (llvm::Error error =
            gpu->read(bytes.data(), arguments[i].address, bytes.size()))
      return std::move(error);
    llvm::outs() << "argument " << i << ':';
    for (uint64_t n = 0; n < count; ++n)
      llvm::outs() << ' '
                   << printValue(bytes.data() + n * byteSize(arguments[i].type),
                                 arguments[i].type);
    llvm::outs() << (count < arguments[i].count ? " ...\n" : "\n");
  }
  for (const auto &[index, path] : options.dumps) {
    std::string bytes(arguments[index].bytes(), '\0');
    if (llvm::Error error =
            gpu->read(bytes.data(), arguments[index].address, bytes.size()))
      return std::move(error);
    if (llvm::Error error = writeFileAtomically(path, bytes))
      return std::move(error);
  }
  return result->findings.empty();
}

} // namespace

int runWorkerMain(int argc, char **argv) {
  llvm::ArrayRef<char *> words(argv + 2, argv + argc); // After "run".
  for (llvm::StringRef word : words)
    if (word == "--help" || word == "-h") {
      llvm::outs() << runUsage;
      return 0;
    }
  auto options = parseOptions(words);
  llvm::Expected<bool> clean =
      options ? run(*options) : llvm::Expected<bool>(options.takeError());
  if (!clean) {
    llvm::errs() << "fsr-worker: error: " << llvm::toString(clean.takeError())
                 << '\n';
    return 1;
  }
  return *clean ? 0 : 2;
}

} // namespace fsr
