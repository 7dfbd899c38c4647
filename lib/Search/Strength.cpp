// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The families that stand in for a workload that nobody gave, and the words in
// which a weak task is refused.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Strength.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace fsr {

namespace {

bool isFilledFloat(const Argument &argument) {
  return argument.isBuffer && isFloat(argument.element) &&
         argument.access != Access::Write;
}

/// In the order in which they are tried after the standard one. Means and
/// deviations that the seed draws come first: a sum over many elements is
/// nearly the same for every seed of a fixed family. The others are for kernels
/// to which the numbers around zero all look alike. Integer buffers keep what
/// they have: they may be indices.
std::vector<FillRecipe> furtherFamilies(const KernelTask &task) {
  bool narrow = llvm::any_of(task.arguments, [](const Argument &argument) {
    return argument.element == ElementType::F16;
  });
  return {{"drifting", {0, 1}},
          {"uniform", {0, 1}},
          {"loguniform", narrow ? std::vector<double>{0.015625, 64}
                                : std::vector<double>{0.0009765625, 1024}},
          {"integers", {-64, 64}}};
}

KernelTask withFloats(const KernelTask &task, const FillRecipe &recipe) {
  KernelTask other = task;
  for (WorkloadCase &one : other.workload)
    for (size_t i = 0; i < one.fills.size(); ++i)
      if (isFilledFloat(task.arguments[i]))
        one.fills[i] = recipe;
  return other;
}

/// Weak tasks behind strong ones; then by what the quick checks let through.
std::pair<bool, unsigned> rankOf(const TaskStrength &strength) {
  return {strength.weakness() != nullptr, strength.passedQuick()};
}

std::string inputsText(const KernelTask &task, const TaskStrength &strength) {
  std::string text;
  for (const WorkloadCase &one : strength.workload)
    text += (text.empty() ? "" : "; ") + fillsText(task, one);
  return text;
}

} // namespace

bool hasStandardWorkload(const KernelTask &task) {
  if (task.workload.size() != 1)
    return false;
  const std::vector<FillRecipe> &fills = task.workload.front().fills;
  for (size_t i = 0; i < task.arguments.size(); ++i)
    if (task.arguments[i].isBuffer &&
        (i >= fills.size() ||
         fills[i].print() !=
             FillRecipe::standard(task.arguments[i].element).print()))
      return false;
  return true;
}

llvm::Expected<TaskStrength> testStrength(const KernelTask &task,
                                          const std::string &referenceImage,
                                          uint64_t seed, Device &device,
                                          StrengthObserver progress) {
  llvm::Expected<DeviceDescription> description = device.describe();
  if (!description)
    return description.takeError();
  auto test = [&](const KernelTask &with) -> llvm::Expected<TaskStrength> {
    StrengthRequest request;
    request.task = &with;
    request.referenceImage = referenceImage;
    request.seed = seed;
    request.progress = progress;
    llvm::Expected<std::vector<DummyResult>> dummies =
        device.testStrength(request);
    if (!dummies)
      return dummies.takeError();
    TaskStrength strength;
    strength.taskKey = task.key;
    strength.isModelled = description->isVirtual;
    strength.device = description->name;
    strength.givenDigest = digestOf(task.workload);
    strength.workload = with.workload;
    strength.dummies = std::move(*dummies);
    return strength;
  };
  llvm::Expected<TaskStrength> best = test(task);
  if (!best || rankOf(*best) == std::pair(false, 0u) ||
      !hasStandardWorkload(task) ||
      llvm::none_of(task.arguments, isFilledFloat))
    return best;
  for (const FillRecipe &recipe : furtherFamilies(task)) {
    llvm::Expected<TaskStrength> other = test(withFloats(task, recipe));
    if (!other) {
      // The kernel may have no answer on these inputs; the first ones have.
      llvm::consumeError(other.takeError());
      continue;
    }
    if (rankOf(*other) < rankOf(*best))
      best = std::move(other);
    if (rankOf(*best) == std::pair(false, 0u))
      break;
  }
  return best;
}

std::string longTestText(const StrengthProgress &progress) {
  constexpr double longSeconds = 60;
  if (progress.secondsLeft < longSeconds)
    return "";
  return llvm::formatv("testing the task takes about {0} min on the virtual "
                       "device; the same kernel at smaller sizes, or a GPU, "
                       "takes less",
                       std::lround(progress.secondsLeft / 60));
}

bool isOf(const TaskStrength &known, const KernelTask &task,
          const DeviceDescription &device) {
  return known.taskKey == task.key && known.isModelled == device.isVirtual &&
         known.battery == TaskStrength::currentBattery &&
         known.givenDigest == digestOf(task.workload) &&
         !known.workload.empty() &&
         llvm::all_of(known.workload, [&](const WorkloadCase &one) {
           return one.fills.size() == task.arguments.size();
         });
}

Check strengthCheck(const KernelTask &task, const TaskStrength &strength) {
  Check check;
  check.name = "task-strength";
  check.passed = !strength.weakness();
  check.inputs = inputsText(task, strength);
  check.rule = "what is wrong by construction is refused";
  check.detail = strength.summary();
  return check;
}

std::string weaknessText(const KernelTask &task, const TaskStrength &strength) {
  const DummyResult &dummy = *strength.weakness();
  std::string text = "the workload is too weak to tell a wrong kernel from a "
                     "right one: the dummy '" +
                     dummy.name + "' passed every check (" + dummy.detail + ")";
  std::string others;
  for (const DummyResult &other : strength.dummies)
    if (&other != &dummy && other.outcome == DummyResult::Outcome::Passed)
      others += (others.empty() ? "" : ", ") + other.name;
  if (!others.empty())
    text += ", and so did " + others;
  text += "; inputs: " + inputsText(task, strength);
  std::string names;
  for (const Argument &argument : task.arguments)
    if (argument.isBuffer && argument.access != Access::Write)
      names += (names.empty() ? "" : ", ") + argument.name +
               (isFloat(argument.element) ? " = \"uniform(-8, 8)\""
                                          : " = \"integers(0, 255)\"");
  if (names.empty())
    return text + "; the kernel reads no buffer, so its result never changes: "
                  "there is nothing to search for";
  return text +
         "; give the kernel or its launch inputs on which its results "
         "differ, such as fsr.workload = {" +
         names + "}";
}

} // namespace fsr
