// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// JSON and words of a task's strength.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/TaskStrength.h"

#include "JsonHelpers.h"
#include "fsr/Support/Hash.h"
#include "fsr/Support/Json.h"

#include "llvm/ADT/STLExtras.h"

using namespace fsr;
using namespace fsr::detail;
using Outcome = DummyResult::Outcome;

static constexpr Outcome outcomes[] = {Outcome::Refused, Outcome::Passed,
                                       Outcome::SameFunction,
                                       Outcome::NotApplicable};

llvm::StringRef fsr::nameOf(Outcome outcome) {
  switch (outcome) {
  case Outcome::Refused:
    return "refused";
  case Outcome::Passed:
    return "passed";
  case Outcome::SameFunction:
    return "same-function";
  case Outcome::NotApplicable:
    return "not-applicable";
  }
  llvm_unreachable("no such outcome");
}

const DummyResult *TaskStrength::weakness() const {
  auto found = llvm::find_if(dummies, [](const DummyResult &dummy) {
    return dummy.outcome == Outcome::Passed;
  });
  return found == dummies.end() ? nullptr : &*found;
}

unsigned TaskStrength::passedQuick() const {
  return llvm::count_if(dummies, [](const DummyResult &dummy) {
    return dummy.outcome == Outcome::Refused && dummy.passedQuick;
  });
}

std::string TaskStrength::summary() const {
  unsigned refused = 0, passed = 0, same = 0;
  for (const DummyResult &dummy : dummies) {
    refused += dummy.outcome == Outcome::Refused;
    passed += dummy.outcome == Outcome::Passed;
    same += dummy.outcome == Outcome::SameFunction;
  }
  std::string text = std::to_string(refused + passed) +
                     (refused + passed == 1 ? " dummy, " : " dummies, ");
  text += passed ? std::to_string(refused) + " refused, " +
                       std::to_string(passed) + " passed"
                 : std::string(refused == 1 ? "refused" : "all refused");
  if (unsigned late = passedQuick())
    text += ", " + std::to_string(late) + " of them by the full checks only";
  if (same)
    text += "; " + std::to_string(same) + " more are the kernel's own function";
  return text;
}

std::string fsr::digestOf(llvm::ArrayRef<WorkloadCase> workload) {
  llvm::json::Array cases;
  for (const WorkloadCase &one : workload)
    cases.push_back(toJSON(one));
  return sha256(printJson(std::move(cases)));
}

std::string fsr::fillsText(const KernelTask &task, const WorkloadCase &one) {
  std::string text;
  for (size_t i = 0; i < one.fills.size() && i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    // What a kernel only writes is poisoned, not filled.
    if (!argument.isBuffer || argument.access == Access::Write)
      continue;
    text +=
        (text.empty() ? "" : ", ") + argument.name + " " + one.fills[i].print();
  }
  return text.empty() ? "no inputs" : text;
}

namespace fsr {

llvm::json::Value toJSON(const DummyResult &value) {
  return llvm::json::Object{{"name", text(value.name)},
                            {"outcome", nameOf(value.outcome)},
                            {"passed_quick", value.passedQuick},
                            {"inputs", text(value.inputs)},
                            {"detail", text(value.detail)}};
}

bool fromJSON(const llvm::json::Value &json, DummyResult &value,
              llvm::json::Path path) {
  value = DummyResult();
  llvm::json::ObjectMapper mapper(json, path);
  std::string outcome;
  if (!mapper || !mapper.map("name", value.name) ||
      !mapper.map("outcome", outcome) ||
      !mapper.mapOptional("passed_quick", value.passedQuick) ||
      !mapper.mapOptional("inputs", value.inputs) ||
      !mapper.mapOptional("detail", value.detail))
    return false;
  if (value.name.empty() || value.name.size() > 256) {
    path.field("name").report("expected 1 to 256 bytes");
    return false;
  }
  auto found = llvm::find_if(
      outcomes, [&](Outcome one) { return nameOf(one) == outcome; });
  if (found == std::end(outcomes)) {
    path.field("outcome").report("expected an outcome");
    return false;
  }
  value.outcome = *found;
  return true;
}

llvm::json::Value toJSON(const TaskStrength &value) {
  return llvm::json::Object{{"battery", value.battery},
                            {"task_key", text(value.taskKey)},
                            {"modelled", value.isModelled},
                            {"device", text(value.device)},
                            {"given_sha256", text(value.givenDigest)},
                            {"workload", llvm::json::Array(value.workload)},
                            {"dummies", llvm::json::Array(value.dummies)}};
}

bool fromJSON(const llvm::json::Value &json, TaskStrength &value,
              llvm::json::Path path) {
  value = TaskStrength();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("battery", value.battery) ||
      !mapper.map("task_key", value.taskKey) ||
      !mapper.map("modelled", value.isModelled) ||
      !mapper.map("device", value.device) ||
      !mapper.map("given_sha256", value.givenDigest) ||
      !mapper.map("workload", value.workload) ||
      !mapper.map("dummies", value.dummies))
    return false;
  if (value.dummies.empty() ||
      value.dummies.size() > TaskStrength::maxDummies) {
    path.field("dummies").report("expected 1 to 64 dummies");
    return false;
  }
  return true;
}

} // namespace fsr
