// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs on a GPU through the CUDA driver, which compiles the PTX.
//
//===----------------------------------------------------------------------===//

#include "Runner.h"

#include "fsr/Backend/Backend.h"

#include "llvm/ADT/ScopeExit.h"

namespace fsr::golden {

namespace {

class CudaRunner final : public Runner {
public:
  explicit CudaRunner(std::unique_ptr<Backend> backend)
      : backend(std::move(backend)) {}
  ~CudaRunner() override {
    if (module)
      llvm::consumeError(backend->unloadModule(module));
  }

  std::string describe() override {
    llvm::Expected<BackendProperties> properties = backend->properties();
    if (!properties)
      return llvm::toString(properties.takeError());
    return properties->name + " (" + properties->chip + "), driver " +
           properties->driver;
  }

  llvm::Error load(llvm::StringRef ptx, unsigned optLevel) override {
    if (module)
      if (llvm::Error error = backend->unloadModule(module))
        return error;
    module = nullptr;
    llvm::Expected<ModuleHandle> loaded = backend->loadModule(ptx, optLevel);
    if (!loaded)
      return loaded.takeError();
    module = *loaded;
    return llvm::Error::success();
  }

  llvm::Expected<std::vector<uint8_t>> run(llvm::StringRef kernel,
                                           unsigned grid, unsigned block,
                                           llvm::ArrayRef<uint8_t> inputs,
                                           size_t outputBytes) override {
    llvm::Expected<FunctionHandle> function = backend->function(module, kernel);
    if (!function)
      return function.takeError();
    llvm::Expected<DevicePointer> in = backend->allocate(inputs.size() + 1);
    if (!in)
      return in.takeError();
    llvm::scope_exit freeIn([&] { llvm::consumeError(backend->release(*in)); });
    llvm::Expected<DevicePointer> out = backend->allocate(outputBytes);
    if (!out)
      return out.takeError();
    llvm::scope_exit freeOut(
        [&] { llvm::consumeError(backend->release(*out)); });
    if (llvm::Error error =
            backend->copyToDevice(*in, inputs.data(), inputs.size(), nullptr))
      return error;
    if (llvm::Error error = backend->fill8(*out, 0, outputBytes, nullptr))
      return error;
    void *params[] = {&*in, &*out};
    BackendLaunch launch;
    launch.function = *function;
    launch.name = kernel;
    launch.grid = {grid, 1, 1};
    launch.block = {block, 1, 1};
    launch.params = params;
    if (llvm::Error error = backend->launch(launch))
      return error;
    std::vector<uint8_t> output(outputBytes);
    if (llvm::Error error =
            backend->copyToHost(output.data(), *out, outputBytes, nullptr))
      return error;
    if (llvm::Error error = backend->synchronize(nullptr))
      return error;
    return output;
  }

private:
  std::unique_ptr<Backend> backend;
  ModuleHandle module = nullptr;
};

} // namespace

llvm::Expected<std::unique_ptr<Runner>> makeCudaRunner() {
  llvm::Expected<std::unique_ptr<Backend>> backend = openCudaBackend(0);
  if (!backend)
    return backend.takeError();
  return std::make_unique<CudaRunner>(std::move(*backend));
}

} // namespace fsr::golden
