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

// All lie above what a process can have, so that no address is also the host's.
constexpr uint64_t firstGlobal = uint64_t(0xa0) << 40;
constexpr uint64_t endOfGlobal = uint64_t(0xf0) << 40;
/// Kernel parameters, as `.param` and generic addresses reach them.
constexpr uint64_t paramWindow = uint64_t(0xfd) << 40;
constexpr uint64_t sharedWindow = uint64_t(0xfe) << 40;
constexpr uint64_t localWindow = uint64_t(0xff) << 40;
constexpr uint64_t windowBytes = uint64_t(1) << 32;
/// In the window of shared memory: the first piece of so many bytes is the
/// block's own, those behind it are the blocks of its cluster, by rank. So
/// what `mapa` gives means the same to all of them.
constexpr unsigned rankShift = 24;
constexpr uint64_t rankBytes = uint64_t(1) << rankShift;

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
  /// The same of the bytes of a word whose cell says that they differ.
  ByteCells *writerBytes = nullptr, *readerBytes = nullptr;
  /// A bit for each 32 bytes: touched in this launch. Null: not counted.
  uint64_t *sectors = nullptr;
  /// Shadow mode's own, or null: what stands for the region's floats.
  void *shadow = nullptr;
  /// Of shared memory: stands for launch and block in the cells.
  uint32_t generation = 0;
  Block *block = nullptr; ///< Of shared memory: whose it is.
  bool isConst = false;
  bool isMapped = false; ///< Host memory.
  std::string name;      ///< Of a variable; empty for allocations.
};

class MessageTable;

/// Global memory of the GPU: allocation, host access, look-up. Look-ups come
/// from many host threads at once while nothing is allocated. The shadow of a
/// region costs host memory only where it is touched.
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
  /// For messages: "40 bytes past the end of an allocation of 4096 bytes".
  std::string describe(uint64_t address) const;
  /// The one that `describe` speaks of, or null.
  const Region *nearest(uint64_t address) const;
  uint64_t freeBytes() const;

  // What the host does. Errors: a range that is in no region, or leaves it.
  llvm::Error write(uint64_t address, const void *from, uint64_t bytes);
  llvm::Error read(void *to, uint64_t address, uint64_t bytes) const;
  /// `width` of 1, 2 or 4.
  llvm::Error fill(uint64_t address, uint32_t pattern, unsigned width,
                   uint64_t count);
  /// The state of the bytes goes along: what was not written stays so.
  llvm::Error copy(uint64_t to, uint64_t from, uint64_t bytes);
  /// See `VirtualGpu::view`.
  llvm::Expected<uint8_t *> view(uint64_t address, uint64_t bytes, bool writes);
  llvm::Error setConst(uint64_t address, bool isConst);
  llvm::Error setTainted(uint64_t address, uint64_t bytes, bool isTainted);
  llvm::Error setUninitialized(uint64_t address, uint64_t bytes);

  /// A launch begins: who wrote and read before it is forgotten.
  void beginLaunch();
  /// Cells are empty from the next launch on.
  void forgetReads();
  /// Whether the cells still hold all that launches have read since.
  bool knowsReads() const;
  /// Of the launch under way, in 1..15: what the cells carry.
  unsigned launchStamp() const;
  /// What threads released at places of global memory; Ordering.h.
  MessageTable &messages();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Of one block; made anew for each, uninitialised.
class SharedMemory {
public:
  /// `bytes`: static and dynamic; of `owner`, which is the only block of its
  /// cluster or the one of that rank.
  void reset(uint64_t bytes, Block *owner, std::optional<unsigned> rank);
  Region &region() { return all; }

private:
  Region all;
  uint32_t generation = 0;
  std::vector<uint8_t> data, state;
  std::vector<uint64_t> writers, readers;
  /// Of as many words; not written before a word is mixed.
  std::unique_ptr<ByteCells[]> writerBytes, readerBytes;
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
