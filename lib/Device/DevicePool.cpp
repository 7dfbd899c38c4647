// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Hands requests to devices and devices to threads. The mutex is held to choose
// and to note, never while a device works.
//
//===----------------------------------------------------------------------===//

#include "DevicePool.h"

#include "fsr/Support/Counted.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

using namespace fsr;

/// Of one request on devices that are healthy before and after: then it is no
/// device's fault.
static constexpr unsigned mostFailures = 2;

static std::string sortOf(const DeviceDescription &device) {
  // A virtual one is called by both.
  bool saysAll = llvm::StringRef(device.name).contains(device.chip);
  return (device.isVirtual && !saysAll ? "virtual " : "") + device.name +
         (saysAll ? "" : " (" + device.chip + ")");
}

llvm::Expected<std::unique_ptr<Device>>
DevicePool::create(std::vector<Opened> devices,
                   std::vector<std::string> remarks) {
  std::vector<DeviceDescription> seen;
  for (const Opened &opened : devices) {
    llvm::Expected<DeviceDescription> told = opened.device->describe();
    if (!told)
      return addContext(told.takeError(), "device '" + opened.name + "'");
    for (const auto &[other, known] : llvm::zip(devices, seen)) {
      if (sortOf(known) != sortOf(*told))
        return makeError(ErrorKind::BadInput,
                         "device '" + other.name + "' is a " + sortOf(known) +
                             ", '" + opened.name + "' a " + sortOf(*told) +
                             ": the devices of one search must be alike, since "
                             "times of two kinds say nothing of each other");
      if (!told->uuid.empty() && told->uuid == known.uuid)
        return makeError(ErrorKind::BadInput,
                         "device '" + other.name + "' and '" + opened.name +
                             "' are one GPU, UUID " + told->uuid +
                             ": kernels that are timed on it at once disturb "
                             "each other");
    }
    seen.push_back(std::move(*told));
  }
  if (seen.empty())
    return makeError(ErrorKind::BadInput, "a pool of no devices");
  DeviceDescription common = seen.front();
  common.uuid.clear();
  for (const DeviceDescription &one : seen)
    common.memoryBytes = std::min(common.memoryBytes, one.memoryBytes);
  return std::unique_ptr<Device>(new DevicePool(
      std::move(devices), std::move(remarks), std::move(common)));
}

DevicePool::DevicePool(std::vector<Opened> devices,
                       std::vector<std::string> remarks,
                       DeviceDescription description)
    : description(std::move(description)), remarks(std::move(remarks)) {
  members.resize(devices.size());
  for (auto [member, opened] : llvm::zip(members, devices))
    static_cast<Opened &>(member) = std::move(opened);
}

unsigned DevicePool::countLeft() const {
  return llvm::count_if(members,
                        [](const Member &member) { return !member.isGivenUp; });
}

unsigned DevicePool::slots() const {
  std::lock_guard<std::mutex> lock(mutex);
  return std::max(1u, countLeft());
}

std::vector<std::string> DevicePool::takeRemarks() {
  std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(remarks, {});
}

DevicePool::Member *
DevicePool::acquire(llvm::function_ref<bool(const Member &)> wanted) {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    bool mayCome = false;
    for (Member &member : members) {
      if (member.isGivenUp || !wanted(member))
        continue;
      mayCome = true;
      if (!std::exchange(member.isBusy, true))
        return &member;
    }
    if (!mayCome)
      return nullptr;
    freed.wait(lock);
  }
}

void DevicePool::release(Member &member) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    member.isBusy = false;
  }
  // Each waiter may want another one.
  freed.notify_all();
}

void DevicePool::giveUp(Member &member, llvm::Error why) {
  std::string reason = llvm::toString(std::move(why));
  std::unique_ptr<Device> gone;
  {
    std::lock_guard<std::mutex> lock(mutex);
    member.isGivenUp = true;
    member.isBusy = false;
    gone = std::move(member.device);
    remarks.push_back("device '" + member.name + "' is given up, " +
                      counted(countLeft(), "device") + " left: " + reason);
    givenUp +=
        (givenUp.empty() ? "" : "; ") + ("'" + member.name) + "': " + reason;
  }
  freed.notify_all();
}

llvm::Error DevicePool::noneLeft() const {
  return makeError(ErrorKind::Unavailable,
                   "no device is left of " +
                       llvm::Twine(unsigned(members.size())) + ": " + givenUp);
}

llvm::Error DevicePool::probe() {
  for (const Member &each : members) {
    Member *member = acquire([&](const Member &one) { return &one == &each; });
    if (!member)
      continue;
    if (llvm::Error error = member->device->probe())
      giveUp(*member, std::move(error));
    else
      release(*member);
  }
  std::lock_guard<std::mutex> lock(mutex);
  return countLeft() ? llvm::Error::success() : noneLeft();
}

/// Errors that another device would answer with as well.
static bool isOfTheRequest(const llvm::Error &error) {
  switch (kindOf(error)) {
  case ErrorKind::BadInput:
  case ErrorKind::Unsupported:
  case ErrorKind::OverBudget:
    return true;
  case ErrorKind::Unavailable:
  case ErrorKind::TimedOut:
  case ErrorKind::Corrupt:
    return false;
  }
  llvm_unreachable("every kind is of one sort");
}

template <typename Answer>
llvm::Expected<Answer>
DevicePool::serve(llvm::function_ref<llvm::Expected<Answer>(Device &)> ask) {
  llvm::SmallVector<const Member *> tried;
  unsigned failures = 0;
  ErrorKind kind = ErrorKind::Unavailable; ///< Of the last healthy one.
  std::string story;
  while (true) {
    Member *member = acquire(
        [&](const Member &one) { return !llvm::is_contained(tried, &one); });
    if (!member)
      break;
    llvm::Expected<Answer> answer = ask(*member->device);
    if (answer) {
      release(*member);
      return answer;
    }
    llvm::Error error = answer.takeError();
    if (isOfTheRequest(error)) {
      release(*member);
      return std::move(error);
    }
    tried.push_back(member);
    ErrorKind ofThis = kindOf(error);
    std::string what = llvm::toString(std::move(error));
    if (llvm::Error sick = member->device->probe()) {
      giveUp(*member, addContext(std::move(sick), what + "; then"));
      continue;
    }
    story += (story.empty() ? "device '" : "; then device '") + member->name +
             "': " + what;
    kind = ofThis;
    release(*member);
    if (++failures == mostFailures)
      break;
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (!failures)
    return noneLeft();
  if (!givenUp.empty())
    story += "; given up before: " + givenUp;
  return makeError(kind, story);
}

llvm::Expected<EvaluateResult>
DevicePool::evaluate(const EvaluateRequest &request) {
  return serve<EvaluateResult>(
      [&](Device &device) { return device.evaluate(request); });
}

llvm::Expected<std::vector<DummyResult>>
DevicePool::testStrength(const StrengthRequest &request) {
  return serve<std::vector<DummyResult>>(
      [&](Device &device) { return device.testStrength(request); });
}
