// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tasks and their JSON form. A task file may come from anywhere, so reading one
// checks everything that later code relies on: names that can stand in device
// code and in file names, extents that fit 64 bits, one fill an argument.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/KernelTask.h"

#include "JsonHelpers.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ErrorHandling.h"

namespace fsr {

using namespace detail;

namespace {

constexpr size_t maxArguments = 256;
constexpr size_t maxRank = 32;
constexpr size_t maxCases = 1024;
constexpr size_t maxFacts = 4096;

constexpr Access accesses[] = {Access::None, Access::Read, Access::Write,
                               Access::ReadWrite};

llvm::StringRef nameOf(ReferenceAbi abi) {
  return abi == ReferenceAbi::Descriptor ? "descriptor" : "bare_pointer";
}

/// The extent in bytes, or nothing where it does not fit 62 bits (so that sums
/// of an offset and an extent fit 64).
std::optional<int64_t> checkedExtent(const Argument &argument) {
  constexpr int64_t limit = int64_t(1) << 62;
  if (llvm::is_contained(argument.sizes, 0))
    return 0;
  int64_t last = 0, elements = 1;
  for (auto [size, stride] : llvm::zip(argument.sizes, argument.strides)) {
    int64_t step = 0;
    if (__builtin_mul_overflow(size - 1, stride, &step) ||
        __builtin_add_overflow(last, step, &last) ||
        __builtin_mul_overflow(elements, size, &elements))
      return std::nullopt;
  }
  int64_t bytes = 0;
  if (__builtin_add_overflow(last, 1, &bytes) ||
      __builtin_mul_overflow(bytes, byteSize(argument.element), &bytes) ||
      bytes > limit || elements > limit)
    return std::nullopt;
  return bytes;
}

bool isHex(llvm::StringRef text) {
  return !text.empty() && llvm::all_of(text, llvm::isHexDigit);
}

} // namespace

llvm::StringRef nameOf(Access access) {
  switch (access) {
  case Access::None:
    return "none";
  case Access::Read:
    return "read";
  case Access::Write:
    return "write";
  case Access::ReadWrite:
    return "read_write";
  }
  llvm_unreachable("access without a name");
}

bool Argument::isPromoted() const {
  bool isNarrow = element == ElementType::F16 || element == ElementType::BF16 ||
                  element == ElementType::F32;
  return isBuffer && isNarrow &&
         (access == Access::Write || access == Access::ReadWrite);
}

int64_t Argument::numElements() const {
  if (!isBuffer)
    return 0;
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

int64_t Argument::extentBytes() const {
  return isBuffer ? checkedExtent(*this).value_or(0) : 0;
}

const Argument *KernelTask::find(llvm::StringRef name) const {
  for (const Argument &argument : arguments)
    if (argument.name == name)
      return &argument;
  return nullptr;
}

llvm::json::Value toJSON(const Argument &value) {
  llvm::json::Object object{{"name", text(value.name)},
                            {"element", nameOf(value.element)},
                            {"kind", value.isBuffer ? "buffer" : "scalar"}};
  if (value.isBuffer) {
    object["sizes"] = llvm::json::Array(value.sizes);
    object["strides"] = llvm::json::Array(value.strides);
    object["offset"] = value.offset;
    object["alignment_bytes"] = value.alignment;
    object["access"] = nameOf(value.access);
  } else if (value.constantBits) {
    object["constant_bits"] = text(*value.constantBits);
  }
  return object;
}

static bool readBuffer(llvm::json::ObjectMapper &mapper, Argument &value,
                       llvm::json::Path path) {
  std::vector<Natural> sizes, strides;
  std::string access = fsr::nameOf(Access::ReadWrite).str();
  if (!mapper.map("sizes", sizes) || !mapper.map("strides", strides) ||
      !mapOptionalNatural(mapper, "offset", value.offset) ||
      !mapper.mapOptional("alignment_bytes", value.alignment) ||
      !mapper.mapOptional("access", access))
    return false;
  if (sizes.size() > maxRank) {
    path.field("sizes").report("expected at most 32 sizes");
    return false;
  }
  if (strides.size() != sizes.size()) {
    path.field("strides").report("expected as many strides as sizes");
    return false;
  }
  if (value.alignment < 1 || value.alignment > (int64_t(1) << 32) ||
      (value.alignment & (value.alignment - 1))) {
    path.field("alignment_bytes").report("expected a power of two up to 2^32");
    return false;
  }
  const Access *found = llvm::find_if(
      accesses, [&](Access each) { return nameOf(each) == access; });
  if (found == std::end(accesses)) {
    path.field("access").report("expected none, read, write or read_write");
    return false;
  }
  value.access = *found;
  for (auto [size, stride] : llvm::zip(sizes, strides)) {
    value.sizes.push_back(size.value);
    value.strides.push_back(stride.value);
  }
  int64_t offsetBytes = 0;
  if (!checkedExtent(value) ||
      __builtin_mul_overflow(value.offset, byteSize(value.element),
                             &offsetBytes) ||
      offsetBytes > (int64_t(1) << 62)) {
    path.field("sizes").report("expected a buffer of at most 2^62 bytes");
    return false;
  }
  return true;
}

static bool readScalar(llvm::json::ObjectMapper &mapper, Argument &value,
                       llvm::json::Path path) {
  if (!mapper.map("constant_bits", value.constantBits))
    return false;
  if (value.constantBits &&
      (!isHex(*value.constantBits) ||
       value.constantBits->size() > 2 * byteSize(value.element))) {
    path.field("constant_bits")
        .report("expected hex digits, at most two a byte of the element");
    return false;
  }
  return true;
}

bool fromJSON(const llvm::json::Value &json, Argument &value,
              llvm::json::Path path) {
  value = Argument();
  llvm::json::ObjectMapper mapper(json, path);
  std::string element, kind;
  if (!mapper || !mapper.map("name", value.name) ||
      !mapper.map("element", element) || !mapper.map("kind", kind))
    return false;
  if (!isUsableName(value.name)) {
    path.field("name").report("expected a C identifier that is no keyword");
    return false;
  }
  std::optional<ElementType> type = parseElementType(element);
  if (!type) {
    path.field("element").report(
        "expected i1, i8, i16, i32, i64, f16, bf16, f32 or f64");
    return false;
  }
  value.element = *type;
  value.isBuffer = kind == "buffer";
  if (!value.isBuffer && kind != "scalar") {
    path.field("kind").report("expected buffer or scalar");
    return false;
  }
  return value.isBuffer ? readBuffer(mapper, value, path)
                        : readScalar(mapper, value, path);
}

llvm::json::Value toJSON(const LaunchShape &value) {
  return llvm::json::Object{{"grid", triple(value.grid)},
                            {"block", triple(value.block)},
                            {"cluster", triple(value.cluster)},
                            {"shared_bytes", value.sharedBytes}};
}

bool fromJSON(const llvm::json::Value &json, LaunchShape &value,
              llvm::json::Path path) {
  value = LaunchShape();
  llvm::json::ObjectMapper mapper(json, path);
  Triple cluster;
  if (!mapper || !mapTriple(mapper, "grid", value.grid) ||
      !mapTriple(mapper, "block", value.block) ||
      !mapper.mapOptional("cluster", cluster) ||
      !mapOptionalNatural(mapper, "shared_bytes", value.sharedBytes))
    return false;
  value.cluster = cluster.value;
  return true;
}

static llvm::json::Value toJSON(const Reference &value) {
  llvm::json::Object object{{"mlir", text(value.mlir)},
                            {"ptx", text(value.ptx)},
                            {"entry", text(value.entry)},
                            {"abi", nameOf(value.abi)}};
  // Texts of tasks that know of none stay as they were, and their hashes.
  if (!value.truePtx.empty())
    object["true_ptx"] = text(value.truePtx);
  if (!value.noTruePtx.empty())
    object["no_true_ptx"] = text(value.noTruePtx);
  return object;
}

static bool fromJSON(const llvm::json::Value &json, Reference &value,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(json, path);
  std::string abi;
  if (!mapper || !mapper.mapOptional("mlir", value.mlir) ||
      !mapper.mapOptional("ptx", value.ptx) ||
      !mapper.mapOptional("true_ptx", value.truePtx) ||
      !mapper.mapOptional("no_true_ptx", value.noTruePtx) ||
      !mapper.map("entry", value.entry) || !mapper.map("abi", abi))
    return false;
  value.abi = ReferenceAbi::Descriptor;
  if (abi == nameOf(ReferenceAbi::BarePointer)) {
    value.abi = ReferenceAbi::BarePointer;
  } else if (abi != nameOf(ReferenceAbi::Descriptor)) {
    path.field("abi").report("expected descriptor or bare_pointer");
    return false;
  }
  return true;
}

static llvm::json::Value toJSON(const WorkEstimate &value) {
  return llvm::json::Object{{"flops", real(value.flops)},
                            {"bytes_read", real(value.bytesRead)},
                            {"bytes_written", real(value.bytesWritten)},
                            {"accumulation", value.accumulation},
                            {"exact_on_integers", value.exactOnIntegers},
                            {"moves_only", value.movesOnly},
                            {"adds_atomically", value.addsAtomically},
                            {"finite_only", text(value.finiteOnly)}};
}

static bool fromJSON(const llvm::json::Value &json, WorkEstimate &value,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(json, path);
  value.finiteOnly = "the task does not say what they lead to";
  if (!mapper || !mapOptionalReal(mapper, "flops", value.flops) ||
      !mapOptionalReal(mapper, "bytes_read", value.bytesRead) ||
      !mapOptionalReal(mapper, "bytes_written", value.bytesWritten) ||
      !mapper.mapOptional("accumulation", value.accumulation) ||
      !mapper.mapOptional("exact_on_integers", value.exactOnIntegers) ||
      !mapper.mapOptional("moves_only", value.movesOnly) ||
      !mapper.mapOptional("adds_atomically", value.addsAtomically) ||
      !mapper.mapOptional("finite_only", value.finiteOnly))
    return false;
  // Written so that NaN fails.
  if (!(value.flops >= 0 && std::isfinite(value.flops))) {
    path.field("flops").report("expected finite number of at least 0");
    return false;
  }
  if (!(value.bytesRead >= 0 && std::isfinite(value.bytesRead))) {
    path.field("bytes_read").report("expected finite number of at least 0");
    return false;
  }
  if (!(value.bytesWritten >= 0 && std::isfinite(value.bytesWritten))) {
    path.field("bytes_written").report("expected finite number of at least 0");
    return false;
  }
  if (value.accumulation < 1) {
    path.field("accumulation").report("expected integer of at least 1");
    return false;
  }
  return true;
}

llvm::json::Value toJSON(const WorkloadCase &value) {
  llvm::json::Array fills;
  for (const FillRecipe &fill : value.fills)
    fills.push_back(text(fill.print()));
  return llvm::json::Object{{"name", text(value.name)},
                            {"weight", real(value.weight)},
                            {"fills", std::move(fills)}};
}

bool fromJSON(const llvm::json::Value &json, WorkloadCase &value,
              llvm::json::Path path) {
  value = WorkloadCase();
  llvm::json::ObjectMapper mapper(json, path);
  std::vector<std::string> fills;
  if (!mapper || !mapper.mapOptional("name", value.name) ||
      !mapOptionalReal(mapper, "weight", value.weight) ||
      !mapper.map("fills", fills))
    return false;
  if (!(value.weight > 0 && std::isfinite(value.weight))) {
    path.field("weight").report("expected finite number above 0");
    return false;
  }
  for (auto [i, fill] : llvm::enumerate(fills)) {
    llvm::Expected<FillRecipe> recipe = FillRecipe::parse(fill);
    if (!recipe) {
      // A path carries fixed messages only; FillRecipe::parse has the details.
      llvm::consumeError(recipe.takeError());
      path.field("fills").index(i).report(
          "expected a fill recipe, as normal(0, 1) or zeros");
      return false;
    }
    value.fills.push_back(std::move(*recipe));
  }
  return true;
}

llvm::json::Value toJSON(const KernelTask &value) {
  return llvm::json::Object{{"format_version", KernelTask::formatVersion},
                            {"name", text(value.name)},
                            {"key", text(value.key)},
                            {"target", text(value.target)},
                            {"arguments", llvm::json::Array(value.arguments)},
                            {"launch", toJSON(value.launch)},
                            {"reference", toJSON(value.reference)},
                            {"kernel_mlir", text(value.kernelMlir)},
                            {"launch_mlir", text(value.launchMlir)},
                            {"facts", texts(value.facts)},
                            {"fast_math", value.fastMath},
                            {"work", toJSON(value.work)},
                            {"workload", llvm::json::Array(value.workload)}};
}

/// The checks that look at more than one field, or at a name's meaning.
static bool checkTask(const KernelTask &task, llvm::json::Path path) {
  if (task.name.empty() || task.name.size() > 1024 ||
      llvm::any_of(task.name,
                   [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    path.field("name").report(
        "expected 1 to 1024 characters without control characters");
    return false;
  }
  if (!isSha256(task.key)) {
    path.field("key").report("expected 64 lower-case hex digits");
    return false;
  }
  llvm::Expected<Target> target = Target::parse(task.target);
  if (!target) {
    llvm::consumeError(target.takeError());
    path.field("target").report("expected a target, as sm_90");
    return false;
  }
  if (task.arguments.size() > maxArguments) {
    path.field("arguments").report("expected at most 256 arguments");
    return false;
  }
  llvm::StringSet<> names;
  for (auto [i, argument] : llvm::enumerate(task.arguments))
    if (!names.insert(argument.name).second) {
      path.field("arguments")
          .index(i)
          .field("name")
          .report("expected a name that no other argument has");
      return false;
    }
  if (task.facts.size() > maxFacts) {
    path.field("facts").report("expected at most 4096 facts");
    return false;
  }
  if (task.workload.empty() || task.workload.size() > maxCases) {
    path.field("workload").report("expected 1 to 1024 cases");
    return false;
  }
  for (auto [i, each] : llvm::enumerate(task.workload))
    if (each.fills.size() != task.arguments.size()) {
      path.field("workload")
          .index(i)
          .field("fills")
          .report("expected one fill an argument");
      return false;
    }
  return true;
}

bool fromJSON(const llvm::json::Value &json, KernelTask &value,
              llvm::json::Path path) {
  value = KernelTask();
  llvm::json::ObjectMapper mapper(json, path);
  return mapper && mapVersion<KernelTask::formatVersion>(mapper, path) &&
         mapper.map("name", value.name) && mapper.map("key", value.key) &&
         mapper.map("target", value.target) &&
         mapper.map("arguments", value.arguments) &&
         mapper.map("launch", value.launch) &&
         mapper.map("reference", value.reference) &&
         mapper.mapOptional("kernel_mlir", value.kernelMlir) &&
         mapper.mapOptional("launch_mlir", value.launchMlir) &&
         mapper.mapOptional("facts", value.facts) &&
         mapper.mapOptional("fast_math", value.fastMath) &&
         mapper.mapOptional("work", value.work) &&
         mapper.map("workload", value.workload) && checkTask(value, path);
}

std::string printTask(const KernelTask &task) {
  return printSealed(std::move(*toJSON(task).getAsObject()));
}

llvm::Expected<KernelTask> parseTask(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> json = parseJson(text);
  if (!json)
    return json.takeError();
  llvm::json::Object *object = json->getAsObject();
  std::optional<int64_t> version =
      object ? object->getInteger("format_version") : std::nullopt;
  bool isOther = version && *version != KernelTask::formatVersion;
  if (object && version && !isOther)
    if (llvm::Error error = unseal(*object))
      return std::move(error);
  llvm::json::Path::Root root("task");
  KernelTask task;
  if (fromJSON(*json, task, root))
    return task;
  return makeError(isOther ? ErrorKind::Unsupported : ErrorKind::Corrupt,
                   llvm::toString(root.getError()));
}

} // namespace fsr
