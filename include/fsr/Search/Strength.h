// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A task is tested before it is searched: no answer is worth its price where
// the inputs cannot tell a right kernel from a wrong one. docs/design/
// validation.md has the dummies and the rules.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SEARCH_STRENGTH_H
#define FSR_SEARCH_STRENGTH_H

#include "fsr/Device/Device.h"

namespace fsr {

/// Nobody gave this task a workload: its buffers hold what the standard is.
bool hasStandardWorkload(const KernelTask &task);

using StrengthObserver = std::function<void(const StrengthProgress &)>;

/// Runs the dummies. A workload that was given is taken as it is; in place of
/// the standard one, further families are tried until every dummy is refused,
/// by the quick checks already where one of them does that.
llvm::Expected<TaskStrength> testStrength(const KernelTask &task,
                                          const std::string &referenceImage,
                                          uint64_t seed, Device &device,
                                          StrengthObserver progress = nullptr);

/// One message, where the test takes a minute or more: how long, and what to
/// do. Empty where it takes less.
std::string longTestText(const StrengthProgress &progress);

/// Whether `known` is about this task as it is, and this device's kind.
bool isOf(const TaskStrength &known, const KernelTask &task,
          const DeviceDescription &device);

/// For the evidence of what was held against the task afterwards.
Check strengthCheck(const KernelTask &task, const TaskStrength &strength);

/// One message: what is wrong, by which dummy it shows, what to do. Only where
/// there is a weakness.
std::string weaknessText(const KernelTask &task, const TaskStrength &strength);

} // namespace fsr

#endif // FSR_SEARCH_STRENGTH_H
