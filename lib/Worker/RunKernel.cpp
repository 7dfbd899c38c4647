// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-worker run`: one kernel of a PTX file on the virtual device, with what a
// debugger would want to know of it. docs/tools.md is the reference.
//
// Exit status: 0 no findings; 1 what was asked for cannot be done; 2 findings.
//
//===----------------------------------------------------------------------===//

#include "fsr/Worker/Worker.h"

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Core/Types.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Printable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cassert>
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
  --cluster=X[,Y[,Z]]    blocks a cluster (default: as the kernel says, or 1)
  --cooperative          all blocks are resident, and may sync the grid
  --shared=BYTES         dynamic shared memory
  --arg=TYPE:VALUE       a scalar: i8, i16, i32, i64, f16, bf16, f32, f64
  --arg=bytes:HEX        a struct by value, its bytes in hex; or bytes:@PATH
  --arg=buffer:TYPE:COUNT:CONTENTS
                         a buffer: random, zeros, iota, uninit or file=PATH
  --schedule=NAME        lockstep (default), split-lanes or random-warps; all:
                         one run of each
  --seed=N               of random contents and schedules (default 1)
  --budget=N             warp instructions that the launch may take
  --chip=CHIP            sm_80, sm_90 (default) or sm_100
  --registers=N          registers a thread, 1 to 255, for the modelled time
  --print=N              the first N values of each buffer afterwards; ? is
                         what nothing wrote
  --dump=N:PATH          writes the bytes of argument N, from 0, to a file

Exit status 0: nothing was found; 1: it could not be run; 2: findings.
)";

constexpr unsigned mostRegisters = 255;
/// That a GPU takes, of all parameters.
constexpr uint64_t mostParameterBytes = 32764;
constexpr ptx::Schedule allSchedules[] = {ptx::Schedule::Lockstep,
                                          ptx::Schedule::SplitLanes,
                                          ptx::Schedule::RandomWarps};

struct RunArgument {
  std::string text; ///< As it was given.
  bool isBuffer = false, isBytes = false;
  ElementType type = ElementType::F32;
  uint64_t bits = 0;
  uint64_t count = 0;
  std::string contents; ///< "random"…; the bytes of one passed by value.
  uint64_t address = 0;
  uint64_t bytes() const { return count * byteSize(type); }
  uint64_t parameterBytes() const {
    return isBytes ? contents.size() : isBuffer ? 8 : byteSize(type);
  }
};

struct RunOptions {
  std::string file, kernel, chip = "sm_90";
  ptx::LaunchShapeOf shape;
  ptx::LaunchOptions launch;
  /// One run each.
  std::vector<ptx::Schedule> schedules = {ptx::Schedule::Lockstep};
  unsigned registers = 0;
  uint64_t print = 0;
  std::vector<RunArgument> arguments;
  std::vector<std::pair<size_t, std::string>> dumps;
};

llvm::Error bad(const llvm::Twine &message) {
  return makeError(ErrorKind::BadInput, message);
}

llvm::Expected<uint64_t> parseNumber(llvm::StringRef option,
                                     llvm::StringRef text, uint64_t least,
                                     uint64_t most) {
  uint64_t value = 0;
  if (text.getAsInteger(10, value) || value < least || value > most)
    return bad(option + ": got '" + text + "', wanted a number from " +
               llvm::Twine(least) + " to " + llvm::Twine(most));
  return value;
}

constexpr llvm::StringLiteral optionNames[] = {
    "--kernel",   "--chip", "--grid",   "--block",      "--cluster",
    "--shared",   "--seed", "--budget", "--registers",  "--print",
    "--schedule", "--arg",  "--dump",   "--cooperative"};

llvm::Error unknownOption(llvm::StringRef name) {
  std::string near;
  for (llvm::StringRef one : optionNames)
    if (name.edit_distance(one) <= 2 || one.starts_with(name))
      near += (near.empty() ? "" : " or ") + one.str();
  return bad("unknown option '" + name + "'" +
             (near.empty() ? "" : ", is " + near + " meant?") +
             "; see fsr-worker run --help");
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
  argument.text = text.str();
  llvm::StringRef rest = text;
  if (rest.consume_front("bytes:")) {
    argument.isBytes = true;
    if (rest.consume_front("@")) {
      auto bytes = readFile(rest, mostParameterBytes);
      if (!bytes)
        return addContext(bytes.takeError(), "--arg='" + text + "'");
      argument.contents = std::move(*bytes);
    } else if (rest.size() % 2 ||
               !llvm::tryGetFromHex(rest, argument.contents)) {
      return wrong("got '" + rest + "', wanted an even number of hex digits");
    }
    if (argument.contents.empty() ||
        argument.contents.size() > mostParameterBytes)
      return wrong("got " + llvm::Twine(argument.contents.size()) +
                   " bytes, wanted 1 to " + llvm::Twine(mostParameterBytes));
    return argument;
  }
  argument.isBuffer = rest.consume_front("buffer:");
  llvm::StringRef name;
  std::tie(name, rest) = rest.split(':');
  auto type = parseElementType(name);
  if (!type || *type == ElementType::I1)
    return wrong("got type '" + name +
                 "', wanted i8, i16, i32, i64, f16, bf16, f32, f64, bytes or "
                 "buffer");
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
    if (!llvm::is_contained(optionNames, name))
      return unknownOption(name);
    if (name == "--cooperative") {
      if (word.contains('='))
        return bad("--cooperative: got '" + value + "', wanted no value");
      options.shape.cooperative = true;
      continue;
    }
    if (!word.contains('=')) {
      if (i + 1 == words.size())
        return bad(name + ": a value is missing");
      value = words[++i];
    }
    auto number = [&, name = name, value = value](
                      auto &to, uint64_t least, uint64_t most) -> llvm::Error {
      auto parsed = parseNumber(name, value, least, most);
      if (!parsed)
        return parsed.takeError();
      to = std::remove_reference_t<decltype(to)>(*parsed);
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
    } else if (name == "--cluster") {
      error = parseTriple(name, value, options.shape.cluster);
    } else if (name == "--shared") {
      error = number(options.shape.sharedBytes, 0, UINT32_MAX);
    } else if (name == "--seed") {
      error = number(options.launch.seed, 0, UINT64_MAX);
    } else if (name == "--budget") {
      error = number(options.launch.instructionBudget, 1, UINT64_MAX);
    } else if (name == "--registers") {
      error = number(options.registers, 1, mostRegisters);
    } else if (name == "--print") {
      error = number(options.print, 0, UINT64_MAX);
    } else if (name == "--schedule") {
      options.schedules.clear();
      for (ptx::Schedule one : allSchedules)
        if (value == "all" || ptx::nameOf(one) == value)
          options.schedules.push_back(one);
      if (options.schedules.empty())
        error = bad("--schedule: got '" + value +
                    "', wanted lockstep, split-lanes, random-warps or all");
    } else if (name == "--arg") {
      auto argument = parseArgument(value);
      if (argument)
        options.arguments.push_back(std::move(*argument));
      else
        error = argument.takeError();
    } else {
      assert(name == "--dump" && "an option without a meaning");
      auto [which, path] = value.split(':');
      size_t index = 0;
      if (which.getAsInteger(10, index) || path.empty())
        error = bad("--dump: got '" + value + "', wanted N:PATH");
      else
        options.dumps.push_back({index, path.str()});
    }
    if (error)
      return std::move(error);
  }
  if (options.file.empty())
    return bad("a PTX file is missing; see fsr-worker run --help");
  for (const auto &[index, path] : options.dumps) {
    if (index >= options.arguments.size() || !options.arguments[index].isBuffer)
      return bad("--dump: argument " + llvm::Twine(index) + " is no buffer");
    // Writing makes folders, which a mistyped path is not worth.
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (!folder.empty() && !llvm::sys::fs::is_directory(folder))
      return bad("--dump: there is no folder '" + folder + "'");
  }
  if (!options.dumps.empty() && options.schedules.size() > 1)
    return bad("--dump wants one schedule, got all");
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

/// The first values of a buffer, and `?` for each of which a byte was never
/// written.
llvm::Error print(ptx::VirtualGpu &gpu, size_t index,
                  const RunArgument &argument, uint64_t most) {
  uint64_t count = std::min(most, argument.count);
  unsigned size = byteSize(argument.type);
  std::string bytes(count * size, '\0');
  if (llvm::Error error =
          gpu.read(bytes.data(), argument.address, bytes.size()))
    return error;
  std::vector<bool> written(bytes.size());
  if (llvm::Error error = gpu.forWritten(
          argument.address, bytes.size(), [&](uint64_t at, uint64_t length) {
            std::fill_n(written.begin() + (at - argument.address), length,
                        true);
          }))
    return error;
  llvm::outs() << "argument " << index << ':';
  for (uint64_t n = 0; n < count; ++n) {
    auto first = written.begin() + n * size;
    bool isKnown = std::find(first, first + size, false) == first + size;
    llvm::outs() << ' '
                 << (isKnown
                         ? printValue(bytes.data() + n * size, argument.type)
                         : "?");
  }
  llvm::outs() << (count < argument.count ? " ...\n" : "\n");
  return llvm::Error::success();
}

/// False where there are findings.
llvm::Expected<bool> runOnce(const RunOptions &options,
                             const ptx::ChipModel &chip, llvm::StringRef text,
                             llvm::StringRef kernel, ptx::Schedule schedule) {
  ptx::VirtualGpuOptions gpuOptions;
  gpuOptions.multiprocessors = chip.multiprocessors;
  gpuOptions.sharedBytesPerBlock = chip.sharedBytesPerBlock;
  gpuOptions.threadsPerMultiprocessor = chip.threadsPerMultiprocessor;
  std::unique_ptr<ptx::VirtualGpu> gpu = ptx::makeVirtualGpu(gpuOptions);
  auto module = gpu->loadModule(text);
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
    if (parameter.bytes != argument.parameterBytes())
      return bad("--arg='" + argument.text + "' has " +
                 llvm::Twine(argument.parameterBytes()) +
                 " bytes, and parameter " + llvm::Twine(i) + " of kernel '" +
                 kernel + "' " + llvm::Twine(parameter.bytes) +
                 (argument.isBytes       ? ""
                  : parameter.bytes == 8 ? "; a pointer takes "
                                           "buffer:TYPE:COUNT:CONTENTS, a "
                                           "struct bytes:HEX"
                  : parameter.bytes > 8  ? "; a struct takes bytes:HEX"
                                         : ""));
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
    std::memcpy(block.data() + parameter.offset,
                argument.isBytes ? argument.contents.data()
                                 : reinterpret_cast<const char *>(&bits),
                parameter.bytes);
  }
  ptx::LaunchOptions launch = options.launch;
  launch.schedule = schedule;
  auto result = gpu->launch(*module, kernel, options.shape, block, launch);
  if (!result)
    return addContext(result.takeError(),
                      "'" + options.file + "': kernel '" + kernel + "'");
  ptx::KernelCost cost;
  cost.registers = options.registers;
  cost.sharedBytes = options.shape.sharedBytes;
  // The kernel's author chose each byte.
  llvm::outs() << printable(result->output, /*keepLines=*/true);
  tell(*result, ptx::modelledTime(result->counters, options.shape, cost, chip),
       llvm::outs());
  // A grid's barrier lies where these registers say, and traps where that is
  // nowhere.
  if (!options.shape.cooperative && text.contains("%envreg") &&
      llvm::any_of(result->findings, [](const ptx::Finding &finding) {
        return finding.kind == ptx::FindingKind::Trap;
      }))
    llvm::outs() << "hint: the kernel syncs the grid: give --cooperative\n";
  for (size_t i = 0; options.print && i < arguments.size(); ++i)
    if (arguments[i].isBuffer)
      if (llvm::Error error = print(*gpu, i, arguments[i], options.print))
        return std::move(error);
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
  bool isClean = true;
  for (ptx::Schedule schedule : options.schedules) {
    if (options.schedules.size() > 1)
      llvm::outs() << "schedule " << ptx::nameOf(schedule) << ":\n";
    auto clean = runOnce(options, *chip, *text, kernel, schedule);
    if (!clean)
      return clean.takeError();
    isClean &= *clean;
  }
  return isClean;
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
