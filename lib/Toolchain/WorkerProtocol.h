// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What `fsr-worker compile` and its parent agree on. Request: op, nvrtc, chip,
// params, cpuSeconds, allowUnsandboxed, sourceBytes, headers [{name, bytes}];
// the blob is the source and then the headers. Answers: {ready, nvrtc,
// sandbox}, then {compiled, log, ptxBytes} with PTX and cubin as blob; or
// {error} alone. Both ends come from one build; the parent trusts no answer.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_WORKERPROTOCOL_H
#define FSR_LIB_TOOLCHAIN_WORKERPROTOCOL_H

#include <cstddef>

namespace fsr {

/// Larger than any log that says something; ptxas reports stand at its end.
inline constexpr size_t workerLogBytes = size_t(4) << 20;
inline constexpr size_t workerCodeBytes = size_t(64) << 20;

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_WORKERPROTOCOL_H
