// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What lies behind the handles that the mgpu* functions give out, and the one
// way in which they fail.
//
// Nothing can be returned to the program when a call fails, and a program that
// went on would print wrong results. So a failed call says so on standard error
// and ends the process with status 1. The driver is opened, and a module is
// loaded, at its first use: a module that is never launched needs no GPU, and a
// device chosen by mgpuSetDefaultDevice holds for modules that a constructor
// registered before.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_RUNTIME_RUNTIMESTATE_H
#define FSR_LIB_RUNTIME_RUNTIMESTATE_H

#include "fsr/Backend/Backend.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fsr::runtime {

/// Prints "fsr runtime: `error`" and ends the process with status 1.
[[noreturn]] void fail(llvm::Error error);

/// Ends the process where `error` is one.
void check(llvm::Error error);

/// Says on standard error what a virtual device saw in the last launch.
void tellFindings(Backend &device);

template <typename T>
T check(llvm::Expected<T> value) {
  if (!value)
    fail(value.takeError());
  return std::move(*value);
}

/// A kernel of a loaded module; what mgpuModuleGetFunction gives out.
struct Function {
  FunctionHandle handle = nullptr;
  std::string name;
};

/// An image that the program registered; loaded once a device.
class Module {
public:
  Module(llvm::StringRef image, unsigned optLevel)
      : image(image), optLevel(optLevel) {}
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// The kernel `name` on the calling thread's device. Stays valid until
  /// `unload`.
  const Function *function(llvm::StringRef name);
  /// Unloads from every device that it was loaded to.
  void unload();

private:
  struct Loaded {
    ModuleHandle handle = nullptr;
    std::map<std::string, std::unique_ptr<Function>> functions;
  };
  const llvm::StringRef image; ///< The program's own memory.
  const unsigned optLevel;
  std::mutex mutex;
  std::map<int, Loaded> loaded; ///< By device.
};

/// The calling thread's device, opened and current.
Backend &backend();
/// The same for device `ordinal`.
Backend &backend(int ordinal);

/// Chooses the calling thread's device; opened at its next call.
void setDefaultDevice(int ordinal);

/// Pins host memory, once however often it is asked for.
void registerHost(void *pointer, uint64_t bytes);
/// Unpins it at the last of as many calls.
void unregisterHost(void *pointer);

} // namespace fsr::runtime

#endif // FSR_LIB_RUNTIME_RUNTIMESTATE_H
