// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The original and the candidate, ready to be launched on a task's buffers,
// each by its own ABI. Parameters are packed anew at each launch, because
// buffers move between cases.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_LAUNCH_H
#define FSR_LIB_WORKER_LAUNCH_H

#include "Buffers.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace fsr {

/// A loaded image; unloaded at the end.
class LoadedImage {
public:
  static llvm::Expected<std::unique_ptr<LoadedImage>>
  load(Backend &backend, llvm::StringRef image);
  ~LoadedImage();
  LoadedImage(const LoadedImage &) = delete;
  LoadedImage &operator=(const LoadedImage &) = delete;

  llvm::Expected<FunctionHandle> function(llvm::StringRef name) {
    return backend.function(module, name);
  }
  llvm::Expected<std::pair<DevicePointer, uint64_t>>
  variable(llvm::StringRef name) {
    return backend.variable(module, name);
  }

private:
  LoadedImage(Backend &backend, ModuleHandle module)
      : backend(backend), module(module) {}
  Backend &backend;
  ModuleHandle module;
};

/// The values of a launch's parameters and the pointers to them.
struct PackedParameters {
  std::vector<uint64_t> values;
  std::vector<void *> pointers;
  void add(uint64_t value) { values.push_back(value); }
  llvm::ArrayRef<void *> finish();
};

/// By the ABI of the original; `dataOf` gives the address of an argument's
/// first element.
PackedParameters
packReference(const KernelTask &task,
              llvm::function_ref<uint64_t(size_t argument)> dataOf);

/// Where memory lies that a plan names.
struct PlacesOf {
  /// Of an argument's first element.
  llvm::function_ref<uint64_t(size_t argument)> argument;
  /// Nothing: no scratch buffer has that name.
  llvm::function_ref<std::optional<uint64_t>(llvm::StringRef name)> scratch;
};

/// By the ABI of the plan. BadInput: a name has no value.
llvm::Expected<PackedParameters> packCandidate(const KernelTask &task,
                                               const ResolvedLaunch &planned,
                                               const PlacesOf &places);
BackendLaunch shapedLaunch(const LaunchShape &shape, FunctionHandle function,
                           llvm::StringRef name, StreamHandle stream);

/// Queues the original on the helpers' stream.
llvm::Error launchReference(Helpers &helpers, const TaskBuffers &buffers,
                            const KernelTask &task, FunctionHandle function);

/// Queues all launches of the plan; scratch that must be zero is cleared first.
llvm::Error launchCandidate(Helpers &helpers, const TaskBuffers &buffers,
                            const KernelTask &task, const ResolvedPlan &plan,
                            llvm::ArrayRef<FunctionHandle> functions);

/// BadInput where the original cannot be launched.
llvm::Error checkReferenceArguments(const KernelTask &task);
/// The same, and where a name of the plan or a scalar of the task has no value.
llvm::Error checkArguments(const KernelTask &task, const ResolvedPlan &plan);

} // namespace fsr

#endif // FSR_LIB_WORKER_LAUNCH_H
