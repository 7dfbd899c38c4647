// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What became of each kernel in a run, for people: said once as a remark at the
// kernel, and in the summary line on standard error.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TRANSFORMS_OUTCOME_H
#define FSR_LIB_TRANSFORMS_OUTCOME_H

#include "fsr/Search/Report.h"

#include "mlir/IR/Location.h"

namespace fsr {

/// Emits the remark of one outcome (category fsr).
void emitRemark(mlir::Location loc, const KernelOutcome &outcome);

/// "fsr: 3 kernels: 1 replaced (2.31x [2.28, 2.35], NVIDIA H200), 2 kept: no
/// record; details: --remarks-filter=fsr". No newline.
/// `skipped` counts records that were passed over.
std::string summaryLine(llvm::ArrayRef<KernelOutcome> outcomes,
                        unsigned skipped);

} // namespace fsr

#endif // FSR_LIB_TRANSFORMS_OUTCOME_H
