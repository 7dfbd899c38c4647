// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where the time goes: a timer of the process interrupts it each millisecond of
// processor time and notes where it stood; afterwards the symbols of the
// executable say which part of the virtual device that was. Handlers inline
// what they use, so the cost of checks inside them is told by leaving the
// checks out, not here. Linux only; elsewhere nothing is sampled.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_PTXSPEED_SAMPLER_H
#define FSR_BENCHMARKS_PTXSPEED_SAMPLER_H

#include <array>
#include <cstdint>

namespace fsr::bench {

enum class Part : uint8_t {
  Dispatch,   ///< The engine's loop over steps.
  Arithmetic, ///< Handlers that touch no memory.
  Memory,     ///< Loads, stores, their look-ups and counters.
  Atomics,
  Order,      ///< Races, beyond what handlers inline; barriers, fences.
  Scheduling, ///< Warps, blocks, groups.
  Host,       ///< The C and C++ libraries, the kernel.
};
constexpr unsigned numParts = 7;
const char *nameOf(Part part);

struct Shares {
  std::array<uint64_t, numParts> samples{};
  uint64_t total = 0;
};

void startSampling();
/// What was seen since the start.
Shares stopSampling();

} // namespace fsr::bench

#endif // FSR_BENCHMARKS_PTXSPEED_SAMPLER_H
