// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random kernels of many instructions, the same for the same seed on every
// machine: arithmetic, conversions, predicates, loops, branches that diverge,
// exchange through shared memory and shuffles, arrays in local memory. Only
// exact instructions, and no race: a kernel has one right result. Compilers
// that optimise do not always give it: ptxas folds some constants in its own
// way (docs/design/virtual-device.md names them).
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_GOLDEN_PROGRAMS_H
#define FSR_TEST_GOLDEN_PROGRAMS_H

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsr::golden {

constexpr unsigned programThreads = 192, programBlock = 96;
/// Words of 64 bits that each thread takes and leaves.
constexpr unsigned programInputs = 8, programOutputs = 24;

/// A module with the kernel "k" of the addresses of inputs and outputs.
std::string makeProgram(uint64_t seed);
std::vector<uint8_t> programInput(uint64_t seed);
/// What is stored of a kernel's results: a hash for each of its output words,
/// over all threads, and the words of thread 0.
std::string keptOfProgram(llvm::ArrayRef<uint8_t> output);

} // namespace fsr::golden

#endif // FSR_TEST_GOLDEN_PROGRAMS_H
