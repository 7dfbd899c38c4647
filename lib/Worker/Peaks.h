// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A short test of what a GPU reaches: a plain copy that does not fit in L2, and
// f32 multiply-adds. For people and requests: what is plausible is judged by
// theoretical peaks, since good kernels pass a measured copy by a few per cent.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_PEAKS_H
#define FSR_LIB_WORKER_PEAKS_H

#include "Helpers.h"

#include "fsr/Core/Profile.h"

namespace fsr {

/// At most so long, on a slow GPU.
constexpr double peaksMs = 300;

/// The best of a few launches each, after one that warms up. Errors are the
/// device's; a virtual one has no speed (Unsupported).
llvm::Expected<DevicePeaks> measurePeaks(Helpers &helpers);

/// PTX of the kernels, as committed.
llvm::StringRef peaksPtx();

} // namespace fsr

#endif // FSR_LIB_WORKER_PEAKS_H
