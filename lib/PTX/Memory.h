// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The memory of a virtual GPU. Global memory is a 64-bit space of allocations
// with guard zones between them; a block has its shared memory, a lane its
// local one. Each byte knows whether it was written and whether it depends on
// buffer contents; each word of shared and global memory knows who wrote it
// last and who read it, which Ordering.h turns into races.
//
// Generic addresses: shared and local memory are windows that are the same for
// all blocks and threads, as on a GPU; null and all that is in no window or
// allocation is out of bounds.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_MEMORY_H
#define FSR_LIB_PTX_MEMORY_H

#include "Ordering.h"
#include "Warp.h"

#include <map>

namespace fsr::ptx {

constexpr uint64_t sharedWindow = uint64_t(0x7e) << 40;
constexpr uint64_t localWindow = uint64_t(0x7f) << 40;
constexpr uint64_t windowBytes = uint64_t(1) << 32;
constexpr uint64_t firstGlobal = uint64_t(0x70) << 40;
/// Kernel parameters, as `.param` and generic addresses reach them.
constexpr uint64_t paramWindow = uint64_t(0x7d) << 40;

/// State of a byte.
enum ByteState : uint8_t {
  Written = 1,
  Tainted = 2,
  InFlight = 4, ///< An asynchronous copy is to write it.
};

/// A piece of memory with its shadow.
struct Region {
  uint64_t address = 0, bytes = 0;
  uint8_t *data = nullptr;  ///< The host's own for mapped memory.
  uint8_t *state = nullptr; ///< ByteState, one a byte.
  /// Who wrote and read each word (4 bytes); Ordering.h.
  uint64_t *writers = nullptr, *readers = nullptr;
  bool isConst = false;
  bool isMapped = false; ///< Host memory.
  std::string name;      ///< Of a variable; empty for allocations.
};

/// Global memory of the GPU: allocation, host access, look-up. Look-ups come
/// from many host threads at once while nothing is allocated.
class Memory {
public:
  explicit Memory(uint64_t limit);
  ~Memory();

  llvm::Expected<uint64_t> allocate(uint64_t bytes, uint64_t alignment = 256,
                                    llvm::StringRef name = {});
  llvm::Error release(uint64_t address);
  llvm::Error mapHost(void *pointer, uint64_t bytes);
  llvm::Error unmapHost(void *pointer);
  /// The region that holds `address`, or null.
  Region *find(uint64_t address);
  const Region *find(uint64_t address) const {
    return const_cast<Memory *>(this)->find(address);
  }
  /// For messages: the nearest region and how far it is.
  std::string describe(uint64_t address) const;
  uint64_t freeBytes() const;
  /// A launch begins: who wrote and read before it is forgotten.
  void beginLaunch();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Of one block; made anew for each, uninitialised.
class SharedMemory {
public:
  /// `bytes`: static and dynamic.
  void reset(uint64_t bytes);
  Region &region() { return all; }

private:
  Region all;
  std::vector<uint8_t> data, state;
  std::vector<uint64_t> writers, readers;
};

/// Of one warp: each lane's bytes.
class LocalMemory {
public:
  /// Grows to `bytes` a lane, uninitialised.
  void grow(uint64_t bytes);
  uint64_t size() const { return bytesPerLane; }
  uint8_t *data(unsigned lane) { return bytes[lane].data(); }
  uint8_t *state(unsigned lane) { return states[lane].data(); }

private:
  uint64_t bytesPerLane = 0;
  std::array<std::vector<uint8_t>, warpLanes> bytes, states;
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_MEMORY_H
