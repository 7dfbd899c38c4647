// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// malloc and free of kernels: pieces of one region of global memory, since
// regions cannot come and go while kernels run. A gap stays between pieces, but
// reads past the end of one are not told from reads of its neighbours.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_DEVICEHEAP_H
#define FSR_LIB_PTX_DEVICEHEAP_H

#include "Memory.h"

namespace fsr::ptx {

/// Thread-safe.
class DeviceHeap {
public:
  explicit DeviceHeap(Region &region) : region(region) {
    unused[0] = region.bytes;
  }
  /// Not initialised; 0 where there is no room.
  uint64_t allocate(uint64_t bytes);
  /// False: it is not what `allocate` gave.
  bool release(uint64_t address);

private:
  Region &region;
  std::mutex lock;
  std::map<uint64_t, uint64_t> unused, used; ///< Offset and size.
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_DEVICEHEAP_H
