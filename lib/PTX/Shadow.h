// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shadow mode: beside each floating-point value goes its true value, as real
// arithmetic gives it along the same path, and a bound on how far the value
// that is held may lie from it. docs/design/virtual-device.md has the rules.
//
// Registers and memory are shadowed by granules of 16 bits: an entry stands at
// the first granule of its value. Where there is none, the value that is held
// is its own truth. Handlers run before the ordinary ones, so registers must be
// cleared by what writes them; an entry in memory knows the bits it stands for,
// and what writes others has ended it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_SHADOW_H
#define FSR_LIB_PTX_SHADOW_H

#include "Warp.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fsr::ptx {

class Decoder;
struct MemoryInfo;
struct Place;

/// Wider than a double on all hosts that matter: 64 bits of fraction or more.
using Truth = long double;

enum class Format : uint8_t {
  None,
  F16,
  BF16,
  F32,
  F64,
  // Halves of an f64 in registers or words of their own.
  F64Low,
  F64High,
};
unsigned bitsOf(Format format);
/// None for what is not one floating-point number.
Format formatOf(Type type);

struct FormatTraits {
  int precision;       ///< Bits of the significand with the hidden one.
  int minimumExponent; ///< Of the smallest normal number 2^e.
  Truth largest;
  Truth smallestNormal, smallest;
  Truth unit; ///< u: half an ulp of 1.

  FormatTraits(int precision, int minimumExponent, Truth largest);
};
const FormatTraits &traitsOf(Format format);

struct ShadowEntry {
  Truth truth = 0;
  double bound = 0;
  /// In memory: the value's bits.
  uint64_t bits = 0;
  /// Of a sum by atomics: how large it may have been on the way, whatever the
  /// order, and how often it was rounded. Its bits are not known.
  double magnitude = 0;
  uint32_t terms = 0;
  Format format = Format::None;
  bool isUpdated = false; ///< By atomics: `bits` does not count.

  /// With what the sum was rounded by.
  double wholeBound() const;
};

/// Of one value that is read.
struct ShadowNumber {
  Truth value = 0;
  double bound = 0;
  uint64_t bits = 0; ///< As it is held.

  bool isExactly(Truth wanted) const { return bound == 0 && value == wanted; }
};

/// The value of `bits`.
Truth decodeFloat(Format format, uint64_t bits);
/// What `entry` says of a value that is held as `bits`, or that it is its own
/// truth.
ShadowNumber numberOf(const ShadowEntry &entry, Format format, uint64_t bits);

/// Entries by address. Thread-safe.
class ShadowMemory {
public:
  ShadowMemory();
  ~ShadowMemory();
  /// The entries of one element of `bytes` (2 to 16) held in `data` that are
  /// whole inside it and still stand: one a granule.
  void load(uint64_t at, unsigned bytes, const uint8_t *data,
            ShadowEntry *entries);
  /// Puts entries for an element that will hold `data`.
  void store(uint64_t at, unsigned bytes, const uint8_t *data,
             const ShadowEntry *entries);
  /// Changes the entry at `at` under its lock; None where there is none.
  void update(uint64_t at, llvm::function_ref<void(ShadowEntry &)> change);
  void forget(uint64_t at, uint64_t bytes);
  void copy(uint64_t to, uint64_t from, uint64_t bytes);
  void clear();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Of one warp: entries of its registers in each frame, and of local memory.
class ShadowRegisters {
public:
  static constexpr unsigned granules = 4;
  struct Slots {
    /// By slot, then by granule; null: no entry yet.
    std::vector<std::array<std::unique_ptr<ShadowEntry[]>, granules>> entries;
    /// By slot: lanes of a predicate that rounding may have decided.
    std::vector<LaneMask> uncertain;
  };
  explicit ShadowRegisters(ShadowMemory *shared) : shared(shared) {}

  /// Of the current frame.
  Slots &slots(Warp &warp);
  /// Null: none.
  const ShadowEntry *find(Warp &warp, Slot slot, unsigned granule,
                          unsigned lane) {
    if (slot & constantBit)
      return nullptr;
    const auto &of = slots(warp).entries[slot][granule];
    return of && of[lane].format != Format::None ? &of[lane] : nullptr;
  }
  /// Whether any lane ever had an entry there.
  bool has(Warp &warp, Slot slot, unsigned granule) {
    return !(slot & constantBit) && slots(warp).entries[slot][granule];
  }
  void set(Warp &warp, Slot slot, unsigned granule, unsigned lane,
           const ShadowEntry &entry);
  /// All granules of the lanes.
  void clear(Warp &warp, Slot slot, LaneMask lanes);
  LaneMask uncertain(Warp &warp, Slot slot) {
    return slot & constantBit ? 0 : slots(warp).uncertain[slot];
  }
  void setUncertain(Warp &warp, Slot slot, LaneMask lanes, LaneMask value) {
    LaneMask &of = slots(warp).uncertain[slot];
    of = (of & ~lanes) | (value & lanes);
  }

  ShadowMemory *shared; ///< Of the block.
  ShadowMemory local;   ///< By `localKey`.
  static uint64_t localKey(unsigned lane, uint64_t offset) {
    return uint64_t(lane) << 40 | offset;
  }

private:
  llvm::DenseMap<const Frame *, std::unique_ptr<Slots>> frames;
  const Frame *lastFrame = nullptr;
  Slots *last = nullptr;
};

/// What an op's `shadowInfo` points to.
struct ShadowInfo {
  enum class Kind : uint8_t {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
    Neg,
    Abs,
    Min,
    Max,
    Copysign,
    Rsqrt,
    Ex2,
    Lg2,
    Sin,
    Cos,
    Tanh,
    Convert, ///< From a float of `from`.
  } kind = Kind::Add;
  Format format = Format::None, from = Format::None;
  /// The numbers of an operand, and granules from one to the next.
  uint8_t parts = 1, stride = 1;
  bool isWideSource = false; ///< 64-bit cells.
  bool ftz = false, sat = false, relu = false, nan = false, xorsign = false;
  bool isApproximate = false;
  bool isWidening = false; ///< All numbers of `from` are in `format`.
  /// A negated predicate that selects, a transposed matrix.
  bool isNegated = false;
  /// It rounds to an integer: the kernel's choice, which is followed.
  bool isChoice = false;
  /// It rounds, and there is no rule that says how far.
  bool isUnknown = false;
  bool isSigned = false; ///< Of integers that are converted.
  /// Of the pieces of a move, and of an integer that is converted.
  uint8_t sourceBits = 32, resultBits = 32;
  uint8_t mode = 0; ///< Of a shuffle: ShuffleMode.
  /// Of a product of matrices, or the rows and columns of a fragment; the
  /// number of matrices in `m`.
  uint8_t m = 0, n = 0, k = 0, registers = 0;
  Format formatC = Format::None;
  bool isWmma = false;
  const MemoryInfo *access = nullptr; ///< Of matrices in memory.
  /// The result is rounded to a format of that precision; 0: to its own.
  int precision = 0;
  /// Of an approximation: error over the result's size, and beside it.
  Truth relative = 0, absolute = 0;
};

/// Chooses what shadows the current instruction of `decoder`, decoded to `op`.
void setShadow(Decoder &decoder, Op &op);
/// `Op::shadow` of what moves values and of what touches memory; null: the op
/// is no move.
Handler moveShadow(Decoder &decoder, Op &op, ShadowInfo &info);
Handler memoryShadow(Decoder &decoder, Op &op, ShadowInfo &info);
Handler tensorShadow(Decoder &decoder, Op &op, ShadowInfo &info);
/// Ends the shadow of the results.
void clearResults(Warp &warp, const Op &op, LaneMask active);
/// `Op::guard` lets a part of `lanes` through; reported where a rounded value
/// decides.
void shadowGuard(Warp &warp, const Op &op, LaneMask lanes);
/// Entries of an element in memory; nothing where it lies outside.
void loadShadow(Warp &warp, unsigned lane, const Place &from, unsigned bytes,
                ShadowEntry *entries);
void storeShadow(Warp &warp, unsigned lane, const Place &to, unsigned bytes,
                 const uint8_t *data, const ShadowEntry *entries);
/// What is known of the floats at `from` goes to `to`, as their bits do.
void copyShadow(Warp &warp, unsigned lane, const Place &to, const Place &from,
                unsigned bytes);
/// What `slot` holds at a granule, as a number.
ShadowNumber readShadowNumber(Warp &warp, Slot slot, unsigned lane,
                              unsigned granule, Format format, bool isWide);
/// Raw bits of a cell.
inline uint64_t cellBits(Warp &warp, Slot slot, unsigned lane, bool isWide) {
  return isWide ? warp.lanes<uint64_t>(slot)[lane]
                : warp.lanes<uint32_t>(slot)[lane];
}

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_SHADOW_H
