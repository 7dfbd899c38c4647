// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The entry point for mlir-opt --load-pass-plugin. The plugin registers passes
// and does nothing else at load: no thread, no signal handler, no file.
//
//===----------------------------------------------------------------------===//

#include "fsr/Transforms/Passes.h"

#include "mlir/Tools/Plugins/PassPlugin.h"

#include "llvm/Config/llvm-config.h"

extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
    mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "FSR", LLVM_VERSION_STRING,
          [] { fsr::registerFSRPasses(); }};
}
