// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the parts of atom and red share: their decoded form, and what an update
// makes of the old value.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_ATOMIC_H
#define FSR_LIB_PTX_ATOMIC_H

#include "MemoryOps.h"

namespace fsr::ptx {

enum class Update : uint8_t {
  Add,
  Min,
  Max,
  And,
  Or,
  Xor,
  Inc,
  Dec,
  Exchange,
  CompareExchange,
};

struct AtomicInfo : MemoryInfo {
  Update update = Update::Add;
  bool hasResult = false;
};

/// The new value of an element of up to 64 bits: `b` is the operand, `c` the
/// second one of a compare-and-swap.
uint64_t updated(const AtomicInfo &info, uint64_t old, uint64_t b, uint64_t c,
                 bool isGlobal);

/// Updates one element as an atomic does; gives the old value. Counts in
/// `changes` where the new one is another.
uint64_t updateAt(const AtomicInfo &info, uint8_t *data, uint64_t value,
                  bool isGlobal, uint64_t &changes);
/// Of "add" and the like.
std::optional<Update> parseUpdate(llvm::StringRef modifier);

/// Updates lane after lane while all is plain: elements of one region that were
/// written, with all accesses to them in order or atomic. Gives the lanes that
/// are left, for the loop that knows every case.
LaneMask updateLanes(Warp &warp, const Op &op, const AtomicInfo &info,
                     LaneMask active, const uint64_t *at);

/// Who updates a place of global memory and notes it holds its turn meanwhile:
/// whoever updates last is also noted last. Places near one another share one,
/// so that the lanes of a warp take it once.
class Turn {
public:
  Turn() = default;
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;
  ~Turn() { leave(); }
  void takeFor(uint64_t location);
  void leave();

private:
  std::atomic<bool> *held = nullptr;
};

bool dependsOnOrder(const AtomicInfo &info);
/// Bits of an element of up to 64.
inline uint64_t valueOf(Warp &warp, Slot slot, unsigned lane, unsigned size) {
  if (size == 8)
    return warp.lanes<uint64_t>(slot)[lane];
  uint32_t value = warp.lanes<uint32_t>(slot)[lane];
  return size == 2 ? value & 0xffff : value;
}

/// Gives the old value, and counts in `changes` where the new one is another.
template <typename T>
uint64_t swapLoop(const AtomicInfo &info, uint8_t *data, uint64_t b, uint64_t c,
                  bool isGlobal, uint64_t &changes) {
  T *at = reinterpret_cast<T *>(data);
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  for (;;) {
    T next = T(updated(info, old, b, c, isGlobal));
    if (__atomic_compare_exchange_n(at, &old, next, /*weak=*/false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      changes += next != old;
      return old;
    }
  }
}

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_ATOMIC_H
