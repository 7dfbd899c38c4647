// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the memory family's parts share: the decoded form of an access, how an
// address becomes a region, and the checks of one lane's access.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_MEMORYOPS_H
#define FSR_LIB_PTX_MEMORYOPS_H

#include "Block.h"
#include "Decode.h"

#include <cstring>

namespace fsr::ptx {

/// What `Op::info` of ld, st, atom, red and cp.async points to.
struct MemoryInfo {
  Space space = Space::Generic;
  Type type = Type::None;
  uint8_t elementBytes = 0, vector = 1;
  uint8_t resultBits = 32; ///< Of the result registers of a load.
  bool isSigned = false;
  bool isWide = true; ///< The address register has 64 bits.
  bool isStrong = false;
  bool isStore = false;
  bool isNonCoherent = false; ///< `.nc`
  Semantics semantics = Semantics::Weak;
  Scope scope = Scope::System;
  /// Of the elements in registers; ~0: not a register.
  std::array<uint32_t, 8> registers{~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
  /// Whether the results of a load go to stores alone; -1: not looked at yet.
  mutable std::atomic<int8_t> isOnlyCopied{-1};

  unsigned bytes() const { return unsigned(elementBytes) * vector; }
};

/// Reads `.relaxed.gpu` and the like off `modifier`; false: it is none.
struct OrderModifiers {
  std::optional<Semantics> semantics;
  std::optional<Scope> scope;
  bool isWeak = false, isVolatile = false, isMmio = false;
  bool take(llvm::StringRef modifier);
};
std::optional<Space> parseSpace(llvm::StringRef modifier);
/// Cache and eviction hints, which change no result.
bool isCacheHint(llvm::StringRef modifier);

/// The lanes' addresses: generic ones, or offsets where the space is shared,
/// parameters or local.
void lanesAddresses(Warp &warp, const MemoryInfo &info, Slot base,
                    int64_t offset, uint64_t *at);
inline void lanesAddresses(Warp &warp, const Op &op, const MemoryInfo &info,
                           Slot base, uint64_t *at) {
  lanesAddresses(warp, info, base, op.offset, at);
}

/// Where an address leads; `space` is Global, Shared, Local or Param.
struct Place {
  Region *region = nullptr; ///< Null: nowhere, or local memory.
  uint64_t offset = 0;
  Space space = Space::Generic;
};
Place locate(Warp &warp, const MemoryInfo &info, uint64_t address);
inline uint64_t genericAddress(const Place &place) {
  switch (place.space) {
  case Space::Local:
    return localWindow + place.offset;
  case Space::Param:
    return paramWindow + place.offset;
  default:
    return place.region ? place.region->address + place.offset : place.offset;
  }
}

/// For messages: "offset 8 of shared memory", "8 bytes into an allocation of
/// 256 bytes (parameter 1)".
std::string describeAddress(Warp &warp, uint64_t address);

/// Checks bounds and alignment, and that a written place may be; ends the
/// launch and gives nullptr where not. `data` and `state` of the first byte.
struct Checked {
  uint8_t *data = nullptr, *state = nullptr;
  Place place;
};
bool checkLane(Warp &warp, const Op &op, unsigned lane, const MemoryInfo &info,
               uint64_t address, unsigned bytes, unsigned alignment,
               bool isWrite, Checked &checked);

/// Bytes are in flight: reported.
void reportInFlight(Warp &warp, const Op &op, unsigned lane,
                    const Checked &checked, unsigned bytes, bool isWrite);
/// The copy `op` read its source until now: whatever a thread of the block
/// wrote there after tick `since` is reported.
void checkSource(Warp &warp, const Op &op, unsigned lane, const Checked &from,
                 uint64_t bytes, uint32_t since);
/// Some byte was never written: reported.
void reportUnwritten(Warp &warp, const Op &op, unsigned lane,
                     const Checked &checked, unsigned bytes);
/// The access is to shared memory of another block of the cluster: noted, since
/// that block must not end before it; false: it has ended, which is reported.
bool notePeer(Warp &warp, const Op &op, unsigned lane, Block &owner,
              uint64_t address);
/// The same, for what `op` of `program` began.
void noteAccess(Warp &warp, unsigned lane, Block &owner, const Program &program,
                const Op &op);
/// Notes the access in the cells, with its checks.
void touchBytes(Warp &warp, const Op &op, unsigned lane, const Checked &checked,
                unsigned bytes, const MemoryInfo &info, bool isWrite,
                const uint8_t *newBytes = nullptr);

/// Distinct numbers among `count` ones, which are not none.
unsigned countDistinct(const uint64_t *of, unsigned count);
/// Counts requests, sectors and bank cycles of the lanes of one instruction.
void countAccess(Warp &warp, const MemoryInfo &info, LaneMask active,
                 const uint64_t *at, bool isWrite);
void markSectors(Counters &counters, Region &region, uint64_t offset,
                 uint64_t bytes);

/// The loop over lanes that knows every case; the quick one falls back to it.
void loadLanes(Warp &warp, const Op &op, const MemoryInfo &info,
               LaneMask active, const uint64_t *at);
void storeLanes(Warp &warp, const Op &op, const MemoryInfo &info,
                LaneMask active, const uint64_t *at);

// Each part of the family.
Decoded decodeLoad(Decoder &decoder, Op &op);
Decoded decodeStore(Decoder &decoder, Op &op);
Decoded decodeAtomic(Decoder &decoder, Op &op);
Decoded decodeAddress(Decoder &decoder, Op &op);
Decoded decodeAsyncCopy(Decoder &decoder, Op &op);
/// Handlers of an access of `elementBytes` by `vector`.
Handler loadHandler(unsigned elementBytes, unsigned vector);
Handler storeHandler(unsigned elementBytes, unsigned vector);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_MEMORYOPS_H
