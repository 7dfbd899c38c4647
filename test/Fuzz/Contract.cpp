// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Feeds arbitrary bytes to all that reads what a candidate is: its text, its
// PTX, against a launch of the first kernel in it. Nothing may crash, and
// nothing may take long.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include <cstdint>

using llvm::StringRef;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  StringRef text(reinterpret_cast<const char *>(bytes), size);
  fsr::checkSource(text);
  fsr::findHostCode(text);
  std::string refusal;
  std::optional<fsr::PtxModule> module = fsr::readPtx(text, refusal);
  if (!module)
    return 0;
  fsr::checkCode(*module, {});
  fsr::KernelLaunch launch;
  for (const fsr::PtxFunction &function : module->functions) {
    if (!function.isEntry)
      continue;
    launch.kernel = function.name.str();
    for (const fsr::PtxParameter &parameter : function.parameters)
      launch.args.push_back({parameter.name.str(),
                             parameter.bytes == 8
                                 ? fsr::PassedArgument::Buffer
                                 : fsr::PassedArgument::Integer,
                             parameter.bytes});
    break;
  }
  if (!launch.kernel.empty())
    fsr::checkLaunches(*module, {}, {launch}, {});
  fsr::checkPointers(*module, {launch});
  return 0;
}
