// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How full a kernel makes a device, from what the compiler says of it and what
// the device says of itself; for requests. By the published rules of
// allocation, not measured: what an LLM should know is which resource to spend
// less of.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_SEARCH_OCCUPANCY_H
#define FSR_LIB_SEARCH_OCCUPANCY_H

#include "fsr/Device/Device.h"

namespace fsr {

struct Occupancy {
  enum Limit { Threads, Registers, Shared, Blocks } limit = Threads;
  int64_t blocks = 0; ///< That fit on a multiprocessor.
  int64_t threadsPerBlock = 0;
  int64_t warps = 0, mostWarps = 0; ///< Of these blocks; of the device.
  int64_t sharedBytes = 0;          ///< A block, static and dynamic.
  double rounds = 0; ///< Blocks of the grid by blocks that run at once.
};

/// Nothing where the device has not said its limits, or no block fits.
std::optional<Occupancy> occupancyOf(const KernelResources &kernel,
                                     const LaunchShape &shape,
                                     const DeviceDescription &device);
std::string describe(const Occupancy &occupancy, const KernelResources &kernel);

/// What is moved and computed a second at this time, each in a sentence with
/// its share of the theoretical peak; as far as they are known.
std::vector<std::string> rateTexts(const WorkEstimate &work,
                                   const DeviceDescription &device,
                                   double microseconds);

/// The same against what this GPU reached in a test of itself, with whose bytes
/// and operations these are; nothing where it was not tested.
std::vector<std::string> measuredRateTexts(const WorkEstimate &work,
                                           const Profile &profile,
                                           double microseconds);

} // namespace fsr

#endif // FSR_LIB_SEARCH_OCCUPANCY_H
