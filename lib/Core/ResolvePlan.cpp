// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one place that decides whether a plan fits its task and the device. Its
// errors go back to the LLM, so each says where it is, what was got, and what
// would have been right, in words of the plan.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Candidate.h"

#include "fsr/Core/SizeExpr.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace fsr {

namespace {

constexpr size_t maxLaunches = 64;
constexpr size_t maxScratch = 16;
constexpr size_t maxGuards = 64;
constexpr size_t maxArgs = 512;
/// Of scratch, all together: so much, or so many times what the task's buffers
/// take. Every evaluation fills it with poison a few times.
constexpr int64_t freeScratchBytes = int64_t(64) << 20;
constexpr int64_t scratchFactor = 8;
constexpr int64_t maxScratchBytes = int64_t(64) << 30;
constexpr llvm::StringLiteral axes = "xyz";

int64_t mostScratchBytes(const KernelTask &task) {
  int64_t taken = 0;
  for (const Argument &argument : task.arguments)
    if (argument.isBuffer)
      taken += std::clamp<int64_t>(argument.extentBytes(), 0,
                                   maxScratchBytes / scratchFactor);
  return std::clamp(std::min(taken, maxScratchBytes / scratchFactor) *
                        scratchFactor,
                    freeScratchBytes, maxScratchBytes);
}

llvm::Error bad(const llvm::Twine &message) {
  return makeError(ErrorKind::BadInput, message);
}

/// Text of an LLM as it may stand in a message.
std::string quoted(llvm::StringRef text) {
  return "'" + text.take_front(80).str() + (text.size() > 80 ? "…'" : "'");
}

/// The value of a constant integer scalar, sign-extended from its own width.
std::optional<int64_t> scalarValue(const Argument &argument) {
  uint64_t bits = 0;
  if (argument.isBuffer || isFloat(argument.element) ||
      !argument.constantBits ||
      llvm::StringRef(*argument.constantBits).getAsInteger(16, bits))
    return std::nullopt;
  if (argument.element == ElementType::I1)
    return static_cast<int64_t>(bits & 1);
  unsigned unused = 64 - 8 * byteSize(argument.element);
  return static_cast<int64_t>(bits << unused) >> unused;
}

class TaskEnvironment final : public SizeExpr::Environment {
public:
  TaskEnvironment(const KernelTask &task, const Parameters &parameters)
      : task(task), parameters(parameters) {}

  std::optional<int64_t> lookup(llvm::StringRef name) const override {
    auto found = parameters.find(name.str());
    if (found != parameters.end())
      return found->second;
    return valueOf(task, name);
  }

  /// What is proved of an address: as a number it is a multiple of exactly what
  /// the real one is proved to be a multiple of. An element's own size is
  /// granted always: a pointer to it would be undefined otherwise.
  std::optional<uint64_t> address(llvm::StringRef name) const override {
    const Argument *argument = task.find(name);
    if (!argument || !argument->isBuffer)
      return std::nullopt;
    return std::max<uint64_t>(argument->alignment, byteSize(argument->element));
  }

  /// The task carries no proof, except that an empty buffer shares nothing.
  std::optional<bool> disjoint(llvm::StringRef a,
                               llvm::StringRef b) const override {
    const Argument *first = task.find(a), *second = task.find(b);
    return first && second &&
           (first->extentBytes() == 0 || second->extentBytes() == 0);
  }

  /// Refuses names that mean nothing here, and says what would mean something.
  llvm::Error check(const SizeExpr &expr) const {
    if (expr.kind() == SizeExpr::Kind::Name)
      return checkValue(expr.name());
    for (llvm::StringRef name : {expr.name(), expr.name2()})
      if (!name.empty())
        if (llvm::Error wrong = checkBuffer(name))
          return wrong;
    for (size_t i = 0; i < expr.numOperands(); ++i)
      if (llvm::Error wrong = check(expr.operand(i)))
        return wrong;
    return llvm::Error::success();
  }

private:
  llvm::Error checkBuffer(llvm::StringRef name) const {
    const Argument *argument = task.find(name);
    if (argument && argument->isBuffer)
      return llvm::Error::success();
    std::string known;
    for (const Argument &each : task.arguments)
      if (each.isBuffer)
        known += (known.empty() ? "" : ", ") + each.name;
    return bad("got " + quoted(name) + ", wanted a buffer of the kernel (" +
               known + ")");
  }

  llvm::Error checkValue(llvm::StringRef name) const {
    if (lookup(name))
      return llvm::Error::success();
    if (const Argument *argument = task.find(name)) {
      if (argument->isBuffer)
        return bad(quoted(name) + " is a buffer, wanted a number, as " + name +
                   ".size0");
      if (isFloat(argument->element))
        return bad(quoted(name) + " is a float, wanted an integer");
      return bad("the value of scalar " + quoted(name) +
                 " is not known at the launch");
    }
    return bad("unknown name " + quoted(name) + ", known are " + knownNames());
  }

  std::string knownNames() const {
    std::string known;
    for (const auto &[name, value] : parameters)
      known += name + ", ";
    for (const Argument &argument : task.arguments) {
      if (scalarValue(argument))
        known += argument.name + ", ";
      for (size_t i = 0; i < argument.sizes.size(); ++i)
        known += argument.name + ".size" + std::to_string(i) + ", " +
                 argument.name + ".stride" + std::to_string(i) + ", ";
      if (known.size() > 600) {
        known += "…, ";
        break;
      }
    }
    return known + "grid.x, grid.y, grid.z, block.x, block.y, block.z";
  }

  const KernelTask &task;
  const Parameters &parameters;
};

llvm::Error checkParameters(const KernelTask &task,
                            const Parameters &parameters) {
  for (const auto &[name, value] : parameters) {
    if (!isUsableName(name))
      return bad("parameter " + quoted(name) +
                 ": wanted a C identifier that is no keyword and does not "
                 "begin with '__'");
    if (task.find(name))
      return bad("parameter " + quoted(name) +
                 " hides the argument of that name");
  }
  return llvm::Error::success();
}

class Resolver {
public:
  Resolver(const KernelTask &task, const Parameters &parameters,
           const LaunchLimits &limits)
      : task(task), parameters(parameters), limits(limits),
        environment(task, parameters) {}

  llvm::Expected<ResolvedPlan> run(const LaunchPlan &plan) {
    if (llvm::Error wrong = checkParameters(task, parameters))
      return wrong;
    if (plan.launches.empty())
      return bad("got no launch, wanted at least one");
    if (plan.launches.size() > maxLaunches)
      return bad("got " + llvm::Twine(plan.launches.size()) +
                 " launches, wanted at most " + llvm::Twine(maxLaunches));
    if (llvm::Error wrong = resolveScratch(plan.scratch))
      return wrong;
    for (auto [i, launch] : llvm::enumerate(plan.launches))
      if (llvm::Error wrong = resolveLaunch(launch))
        return addContext(std::move(wrong), "launch " + llvm::Twine(i) +
                                                " of kernel " +
                                                quoted(launch.kernel));
    return std::move(resolved);
  }

private:
  llvm::Error resolveScratch(llvm::ArrayRef<ScratchBuffer> buffers) {
    if (buffers.size() > maxScratch)
      return bad("got " + llvm::Twine(buffers.size()) +
                 " scratch buffers, wanted at most " + llvm::Twine(maxScratch));
    int64_t total = 0, most = mostScratchBytes(task);
    for (const ScratchBuffer &buffer : buffers) {
      std::string where = "scratch " + quoted(buffer.name);
      if (!isUsableName(buffer.name))
        return bad(where +
                   ": wanted a C identifier that is no keyword as name");
      if (task.find(buffer.name))
        return bad(where + " hides the argument of that name");
      if (parameters.count(buffer.name))
        return bad(where + " hides the parameter of that name");
      if (isScratch(buffer.name))
        return bad(where + ": got the name twice");
      llvm::Expected<int64_t> bytes =
          evaluate(buffer.bytes, where + ": bytes", 1, most);
      if (!bytes)
        return bytes.takeError();
      total += *bytes;
      if (total > most)
        return bad(where + ": got " + llvm::Twine(total) +
                   " bytes of scratch together, wanted at most " +
                   llvm::Twine(most));
      resolved.scratch.push_back({buffer.name, *bytes, buffer.zero});
    }
    return llvm::Error::success();
  }

  llvm::Error resolveLaunch(const PlannedLaunch &launch) {
    if (!isUsableName(launch.kernel))
      return bad("wanted a C identifier that is no keyword as its name");
    ResolvedLaunch out;
    out.kernel = launch.kernel;
    LaunchShape &shape = out.shape;
    const std::array<int64_t, 3> anyCluster{
        limits.clusterBlocks, limits.clusterBlocks, limits.clusterBlocks};
    if (llvm::Error wrong =
            dimensions(launch.grid, "grid", limits.grid, shape.grid))
      return wrong;
    if (llvm::Error wrong =
            dimensions(launch.block, "block", limits.block, shape.block))
      return wrong;
    if (llvm::Error wrong =
            dimensions(launch.cluster, "cluster", anyCluster, shape.cluster))
      return wrong;
    // Each dimension is bounded by its limit, so neither product overflows.
    int64_t threads = product(shape.block), blocks = product(shape.cluster);
    if (threads > limits.threadsPerBlock)
      return bad("got " + llvm::Twine(threads) +
                 " threads a block, wanted at most " +
                 llvm::Twine(limits.threadsPerBlock));
    if (blocks > limits.clusterBlocks)
      return bad("got " + llvm::Twine(blocks) +
                 " blocks a cluster, wanted at most " +
                 llvm::Twine(limits.clusterBlocks));
    for (size_t i = 0; i < 3; ++i)
      if (shape.grid[i] % shape.cluster[i] != 0)
        return bad(llvm::Twine("grid.") + llvm::Twine(axes[i]) + ": got " +
                   llvm::Twine(shape.grid[i]) +
                   ", wanted a multiple of the cluster's " +
                   llvm::Twine(shape.cluster[i]));
    llvm::Expected<int64_t> shared =
        evaluate(launch.shared, "shared", 0, limits.sharedBytesPerBlock);
    if (!shared)
      return shared.takeError();
    shape.sharedBytes = *shared;
    if (llvm::Error wrong = arguments(launch.args, out.args))
      return wrong;
    resolved.launches.push_back(std::move(out));
    return llvm::Error::success();
  }

  llvm::Error arguments(llvm::ArrayRef<std::string> names,
                        std::vector<std::string> &out) {
    if (names.size() == 1 && names.front() == "same") {
      out = candidateAbiNames(task);
      return llvm::Error::success();
    }
    if (names.size() > maxArgs)
      return bad("got " + llvm::Twine(names.size()) + " args, wanted at most " +
                 llvm::Twine(maxArgs));
    for (auto [i, name] : llvm::enumerate(names)) {
      bool sizeOrStride = name.find('.') != std::string::npos &&
                          task.find(llvm::StringRef(name).split('.').first) &&
                          valueOf(task, name);
      if (!task.find(name) && !isScratch(name) && !sizeOrStride)
        return bad("args[" + llvm::Twine(i) + "]: " +
                   (name == "same" ? "got 'same' beside other names, wanted it "
                                     "alone"
                                   : "got " + quoted(name) + ", wanted " +
                                         knownArguments()));
      out.push_back(name);
    }
    return llvm::Error::success();
  }

  std::string knownArguments() const {
    std::vector<std::string> names = candidateAbiNames(task);
    for (const ResolvedScratch &each : resolved.scratch)
      names.push_back(each.name);
    std::string known = llvm::join(names, ", ");
    if (known.size() > 600)
      known = known.substr(0, 600) + "…";
    return "one of " + known + ", or a size as x.size0";
  }

  llvm::Error dimensions(const std::array<std::string, 3> &texts,
                         llvm::StringRef what,
                         const std::array<int64_t, 3> &most,
                         std::array<int64_t, 3> &out) {
    for (size_t i = 0; i < 3; ++i) {
      std::string where = what.str() + "." + axes[i];
      llvm::Expected<int64_t> value = evaluate(texts[i], where, 1, most[i]);
      if (!value)
        return value.takeError();
      out[i] = *value;
    }
    return llvm::Error::success();
  }

  llvm::Expected<int64_t> evaluate(llvm::StringRef text,
                                   const llvm::Twine &what, int64_t least,
                                   int64_t most) {
    std::string where = (what + " " + quoted(text)).str();
    llvm::Expected<SizeExpr> expr =
        SizeExpr::parse(text, SizeExpr::Grammar::Size);
    if (!expr)
      return addContext(expr.takeError(), where);
    if (llvm::Error wrong = environment.check(*expr))
      return addContext(std::move(wrong), where);
    llvm::Expected<int64_t> value = expr->evaluate(environment);
    if (!value)
      return addContext(value.takeError(), where);
    if (*value < least || *value > most)
      return bad(where + ": got " + llvm::Twine(*value) + ", wanted " +
                 llvm::Twine(least) + " to " + llvm::Twine(most));
    return *value;
  }

  bool isScratch(llvm::StringRef name) const {
    return llvm::any_of(resolved.scratch, [&](const ResolvedScratch &each) {
      return each.name == name;
    });
  }

  static int64_t product(const std::array<int64_t, 3> &sizes) {
    return sizes[0] * sizes[1] * sizes[2];
  }

  const KernelTask &task;
  const Parameters &parameters;
  const LaunchLimits &limits;
  TaskEnvironment environment;
  ResolvedPlan resolved;
};

} // namespace

std::optional<int64_t> valueOf(const KernelTask &task, llvm::StringRef name) {
  auto [base, member] = name.split('.');
  if (member.empty()) {
    const Argument *argument = task.find(name);
    return argument ? scalarValue(*argument) : std::nullopt;
  }
  if (const Argument *argument = task.find(base)) {
    const std::vector<int64_t> *values = nullptr;
    if (member.consume_front("size"))
      values = &argument->sizes;
    else if (member.consume_front("stride"))
      values = &argument->strides;
    size_t index = 0;
    // "size00" and "size+0" are not names.
    if (values && !member.getAsInteger(10, index) &&
        member == std::to_string(index) && index < values->size())
      return (*values)[index];
  }
  size_t axis =
      member.size() == 1 ? axes.find(member.front()) : llvm::StringRef::npos;
  if (axis == llvm::StringRef::npos)
    return std::nullopt;
  if (base == "grid")
    return task.launch.grid[axis];
  if (base == "block")
    return task.launch.block[axis];
  return std::nullopt;
}

LaunchLimits LaunchLimits::of(const Target &target) {
  // CUDA C++ Programming Guide, "Technical Specifications per Compute
  // Capability": shared memory a block can opt in to. A capability that is not
  // listed gets the smallest of its generation.
  LaunchLimits limits;
  unsigned capability = target.computeCapability();
  int64_t kib = 48;
  if (capability >= 120)
    kib = 99;
  else if (capability >= 90)
    kib = 227;
  else if (capability == 80 || capability == 87 || capability == 88)
    kib = 163;
  else if (capability >= 80)
    kib = 99;
  else if (capability >= 75)
    kib = 64;
  else if (capability >= 70)
    kib = 96;
  limits.sharedBytesPerBlock = kib * 1024;
  // Eight blocks are portable; a device may allow 16 on request.
  limits.clusterBlocks = capability >= 90 ? 8 : 1;
  return limits;
}

llvm::Expected<ResolvedPlan> resolvePlan(const LaunchPlan &plan,
                                         const KernelTask &task,
                                         const Parameters &parameters,
                                         const LaunchLimits &limits) {
  return Resolver(task, parameters, limits).run(plan);
}

llvm::Expected<bool> guardsHold(llvm::ArrayRef<std::string> guards,
                                const KernelTask &task,
                                const Parameters &parameters) {
  if (llvm::Error wrong = checkParameters(task, parameters))
    return wrong;
  if (guards.size() > maxGuards)
    return bad("got " + llvm::Twine(guards.size()) +
               " guards, wanted at most " + llvm::Twine(maxGuards));
  TaskEnvironment environment(task, parameters);
  bool all = true;
  for (auto [i, guard] : llvm::enumerate(guards)) {
    std::string where = "requires[" + std::to_string(i) + "] " + quoted(guard);
    llvm::Expected<SizeExpr> expr =
        SizeExpr::parse(guard, SizeExpr::Grammar::Guard);
    if (!expr)
      return addContext(expr.takeError(), where);
    if (llvm::Error wrong = environment.check(*expr))
      return addContext(std::move(wrong), where);
    llvm::Expected<int64_t> holds = expr->evaluate(environment);
    if (!holds) {
      // Every name is known, so that this is an overflow or a division by zero.
      llvm::consumeError(holds.takeError());
      all = false;
      continue;
    }
    all = all && *holds != 0;
  }
  return all;
}

} // namespace fsr
