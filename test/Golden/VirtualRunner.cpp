// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs on the virtual device, with its checks on. A finding is an error here:
// the kernels have no fault.
//
//===----------------------------------------------------------------------===//

#include "Runner.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/ScopeExit.h"

#include <cstring>

namespace fsr::golden {

Runner::~Runner() = default;

namespace {

class VirtualRunner final : public Runner {
public:
  explicit VirtualRunner(ptx::Schedule schedule)
      : gpu(ptx::makeVirtualGpu({})), schedule(schedule) {}

  std::string describe() override { return "virtual"; }

  llvm::Error load(llvm::StringRef ptx, unsigned) override {
    if (module)
      if (llvm::Error error = gpu->unloadModule(*module))
        return error;
    module.reset();
    llvm::Expected<unsigned> loaded = gpu->loadModule(ptx);
    if (!loaded)
      return loaded.takeError();
    module = *loaded;
    return llvm::Error::success();
  }

  llvm::Expected<std::vector<uint8_t>> run(llvm::StringRef kernel,
                                           unsigned grid, unsigned block,
                                           llvm::ArrayRef<uint8_t> inputs,
                                           size_t outputBytes) override {
    llvm::Expected<uint64_t> in = gpu->allocate(inputs.size() + 1);
    if (!in)
      return in.takeError();
    llvm::scope_exit freeIn([&] { llvm::consumeError(gpu->release(*in)); });
    llvm::Expected<uint64_t> out = gpu->allocate(outputBytes);
    if (!out)
      return out.takeError();
    llvm::scope_exit freeOut([&] { llvm::consumeError(gpu->release(*out)); });
    if (llvm::Error error = gpu->write(*in, inputs.data(), inputs.size()))
      return error;
    if (llvm::Error error = gpu->fill(*out, 0, 1, outputBytes))
      return error;
    uint8_t params[16];
    std::memcpy(params, &*in, 8);
    std::memcpy(params + 8, &*out, 8);
    ptx::LaunchShapeOf shape;
    shape.grid = {grid, 1, 1};
    shape.block = {block, 1, 1};
    ptx::LaunchOptions options;
    options.schedule = schedule;
    options.hostThreads = 1;
    options.instructionBudget = 100000000;
    llvm::Expected<ptx::LaunchResult> result =
        gpu->launch(*module, kernel, shape, params, options);
    if (!result)
      return result.takeError();
    if (!result->findings.empty())
      return makeError(ErrorKind::Corrupt,
                       "finding: " + result->findings[0].text());
    std::vector<uint8_t> output(outputBytes);
    if (llvm::Error error = gpu->read(output.data(), *out, outputBytes))
      return error;
    return output;
  }

private:
  std::unique_ptr<ptx::VirtualGpu> gpu;
  ptx::Schedule schedule;
  std::optional<unsigned> module;
};

} // namespace

std::unique_ptr<Runner> makeVirtualRunner(ptx::Schedule schedule) {
  return std::make_unique<VirtualRunner>(schedule);
}

} // namespace fsr::golden
