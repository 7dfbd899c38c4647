// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Devices, modules and pinned memory of the running program.
//
//===----------------------------------------------------------------------===//

#include "RuntimeState.h"

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Support/Error.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace fsr;
using namespace fsr::runtime;

namespace {

/// Never destroyed: the program's own destructors unload modules at its exit.
struct State {
  std::mutex mutex;
  std::map<int, std::unique_ptr<Backend>> backends;
  std::map<void *, unsigned> registered; ///< Pinned memory: uses.
};

State &state() {
  static State *instance = new State;
  return *instance;
}

thread_local int currentDevice = 0;

/// What FSR_DEVICE says; where it says nothing a GPU, or, with no driver that
/// reports one, the virtual device.
llvm::Expected<std::unique_ptr<Backend>> open(int ordinal) {
  llvm::StringRef spec = "auto";
  if (const char *text = getenv("FSR_DEVICE"); text && *text)
    spec = text;
  if (spec == "auto") {
    if (cudaDriverPresent())
      return openCudaBackend(ordinal);
    static const char note[] =
        "fsr runtime: no GPU: running on the virtual device\n";
    if (write(STDERR_FILENO, note, sizeof(note) - 1) < 0)
      return makeError(ErrorKind::Unavailable, "no standard error");
    spec = "virtual";
  }
  if (spec == "cuda")
    return openCudaBackend(ordinal);
  if (ordinal != 0)
    return makeError(ErrorKind::Unavailable, "no GPU " + llvm::Twine(ordinal) +
                                                 ": FSR_DEVICE is '" + spec +
                                                 "', which is one");
  llvm::Expected<std::unique_ptr<Backend>> backend = openBackend(spec);
  if (!backend)
    return addContext(backend.takeError(), "FSR_DEVICE");
  return backend;
}

} // namespace

void runtime::fail(llvm::Error error) {
  std::string text = "fsr runtime: " + llvm::toString(std::move(error)) + "\n";
  // What the program printed so far comes first. No exit handlers: they would
  // call the driver again, in a context that may be dead.
  fflush(nullptr);
  const char *rest = text.data();
  size_t left = text.size();
  while (left) {
    ssize_t written = write(STDERR_FILENO, rest, left);
    if (written <= 0)
      break;
    rest += written;
    left -= size_t(written);
  }
  _exit(1);
}

void runtime::tellFindings(Backend &device) {
  VirtualDevice *virtualDevice = device.virtualDevice();
  if (!virtualDevice)
    return;
  for (const ptx::Finding &finding : virtualDevice->takeReport().findings) {
    std::string text = "fsr runtime: warning: " + finding.text() + "\n";
    fflush(stdout);
    fwrite(text.data(), 1, text.size(), stderr);
  }
}

void runtime::check(llvm::Error error) {
  if (error)
    fail(std::move(error));
}

Backend &runtime::backend(int ordinal) {
  State &shared = state();
  std::lock_guard<std::mutex> lock(shared.mutex);
  std::unique_ptr<Backend> &backend = shared.backends[ordinal];
  if (!backend)
    backend = check(open(ordinal));
  check(backend->makeCurrent());
  return *backend;
}

Backend &runtime::backend() { return backend(currentDevice); }

void runtime::setDefaultDevice(int ordinal) { currentDevice = ordinal; }

const Function *Module::function(llvm::StringRef name) {
  Backend &device = backend();
  std::lock_guard<std::mutex> lock(mutex);
  Loaded &here = loaded[currentDevice];
  if (!here.handle)
    here.handle = check(device.loadModule(image, optLevel));
  std::unique_ptr<Function> &function = here.functions[name.str()];
  if (!function)
    function = std::make_unique<Function>(
        Function{check(device.function(here.handle, name)), name.str()});
  return function.get();
}

void Module::unload() {
  std::lock_guard<std::mutex> lock(mutex);
  for (auto &[ordinal, there] : loaded)
    check(backend(ordinal).unloadModule(there.handle));
  loaded.clear();
}

void runtime::registerHost(void *pointer, uint64_t bytes) {
  Backend &device = backend();
  State &shared = state();
  std::lock_guard<std::mutex> lock(shared.mutex);
  unsigned &uses = shared.registered[pointer];
  if (!uses)
    check(device.registerHost(pointer, bytes));
  ++uses;
}

void runtime::unregisterHost(void *pointer) {
  Backend &device = backend();
  State &shared = state();
  std::lock_guard<std::mutex> lock(shared.mutex);
  auto found = shared.registered.find(pointer);
  if (found == shared.registered.end())
    fail(makeError(ErrorKind::BadInput,
                   "host memory is unregistered that was not registered"));
  if (--found->second)
    return;
  shared.registered.erase(found);
  check(device.unregisterHost(pointer));
}
