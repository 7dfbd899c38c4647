// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A task and a request that the device tests share.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_DEVICE_DEVICETESTUTILS_H
#define FSR_TEST_UNIT_DEVICE_DEVICETESTUTILS_H

#include "fsr/Device/Device.h"

#include <string>

namespace fsr::test {

/// y[i] = f(x[i]) over 1024 floats.
inline KernelTask smallTask() {
  KernelTask task;
  task.name = "scale";
  task.key = std::string(64, '7');
  task.target = "sm_90";
  for (const char *name : {"x", "y"}) {
    Argument buffer;
    buffer.name = name;
    buffer.isBuffer = true;
    buffer.sizes = {1024};
    buffer.strides = {1};
    buffer.alignment = 4;
    buffer.access = name[0] == 'x' ? Access::Read : Access::Write;
    task.arguments.push_back(buffer);
  }
  task.launch.grid = {8, 1, 1};
  task.launch.block = {128, 1, 1};
  task.reference.mlir = "module {}";
  task.reference.ptx = ".version 8.0";
  task.reference.entry = "scale";
  task.kernelMlir = "gpu.func @scale()";
  task.launchMlir = "gpu.launch_func @scale";
  WorkloadCase workload;
  workload.name = "site";
  workload.fills.resize(2);
  task.workload.push_back(workload);
  return task;
}

inline ResolvedPlan smallPlan() {
  ResolvedLaunch launch;
  launch.kernel = "scale";
  launch.shape.grid = {8, 1, 1};
  launch.shape.block = {128, 1, 1};
  launch.args = {"x", "y"};
  ResolvedPlan plan;
  plan.launches.push_back(launch);
  return plan;
}

} // namespace fsr::test

#endif // FSR_TEST_UNIT_DEVICE_DEVICETESTUTILS_H
