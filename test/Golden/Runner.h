// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What runs a kernel of the golden data: a GPU or the virtual one. A kernel
// takes the addresses of its inputs and of its results, and nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_GOLDEN_RUNNER_H
#define FSR_TEST_GOLDEN_RUNNER_H

#include "fsr/PTX/VirtualGpu.h"

namespace fsr::golden {

class Runner {
public:
  virtual ~Runner();
  /// One line: chip, driver.
  virtual std::string describe() = 0;
  /// Replaces the module before. `optLevel` is of the GPU's compiler.
  virtual llvm::Error load(llvm::StringRef ptx, unsigned optLevel) = 0;
  virtual llvm::Expected<std::vector<uint8_t>>
  run(llvm::StringRef kernel, unsigned grid, unsigned block,
      llvm::ArrayRef<uint8_t> inputs, size_t outputBytes) = 0;
};

std::unique_ptr<Runner>
makeVirtualRunner(ptx::Schedule schedule = ptx::Schedule::Lockstep);
llvm::Expected<std::unique_ptr<Runner>> makeCudaRunner();

} // namespace fsr::golden

#endif // FSR_TEST_GOLDEN_RUNNER_H
