// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A GPU's own counters, by NVIDIA's profiler: this program starts itself under
// ncu, with one launch of a winner to replay. What ncu says comes from its own
// log file, which device code cannot write, and is read with caps all the same.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_PROFILER_H
#define FSR_LIB_WORKER_PROFILER_H

#include "fsr/Core/Candidate.h"
#include "fsr/Core/Profile.h"
#include "fsr/Worker/Worker.h"

namespace fsr {

class ReplayFile;

/// The launches that the log tells of, in its order: what `ncu --csv --page
/// raw` prints. Any text is taken.
std::vector<HardwareCounters> parseProfilerLog(llvm::StringRef text);

/// Counters of each launch of the plan, or in one line why there are none.
llvm::Expected<std::vector<HardwareCounters>>
runProfiler(const SanitizerSetup &setup, const ReplayFile &file,
            const ResolvedPlan &plan);

} // namespace fsr

#endif // FSR_LIB_WORKER_PROFILER_H
