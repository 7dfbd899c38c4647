// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// First fit; neighbours that are free become one piece again.
//
//===----------------------------------------------------------------------===//

#include "DeviceHeap.h"

#include <cstring>

namespace fsr::ptx {

/// Before each piece.
static constexpr uint64_t gap = 64;

uint64_t DeviceHeap::allocate(uint64_t bytes) {
  if (!bytes || bytes > region.bytes)
    return 0;
  uint64_t wanted = (bytes + 15) / 16 * 16 + gap;
  std::lock_guard<std::mutex> held(lock);
  for (auto at = unused.begin(); at != unused.end(); ++at) {
    auto [offset, size] = *at;
    if (size < wanted)
      continue;
    unused.erase(at);
    if (size > wanted)
      unused[offset + wanted] = size - wanted;
    used[offset] = wanted;
    std::memset(region.state + offset, 0, wanted);
    // malloc orders who frees a piece before who gets it.
    std::memset(region.writers + offset / 4, 0, wanted / 4 * 8);
    std::memset(region.readers + offset / 4, 0, wanted / 4 * 8);
    return region.address + offset + gap;
  }
  return 0;
}

bool DeviceHeap::release(uint64_t address) {
  std::lock_guard<std::mutex> held(lock);
  auto found = used.find(address - region.address - gap);
  if (found == used.end())
    return false;
  auto [offset, size] = *found;
  used.erase(found);
  std::memset(region.state + offset, 0, size);
  auto after = unused.lower_bound(offset);
  if (after != unused.end() && after->first == offset + size) {
    size += after->second;
    after = unused.erase(after);
  }
  if (after != unused.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += size;
      return true;
    }
  }
  unused[offset] = size;
  return true;
}

} // namespace fsr::ptx
