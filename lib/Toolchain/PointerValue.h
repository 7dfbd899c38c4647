// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the analysis of buffers' addresses knows of a register: a set of kinds,
// and the one place in shared or local memory that it may point to. Both only
// grow, and only so many times, which is why the analysis ends.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_POINTERVALUE_H
#define FSR_LIB_TOOLCHAIN_POINTERVALUE_H

#include "PtxText.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace fsr {

/// Bits below this tell the alignment of an address, which a plan may ask for.
inline constexpr uint64_t alignmentBits = 512;
inline constexpr uint8_t anyShift = 64;
inline constexpr uint8_t anyWidth = 64;
/// What is added to an address and has more bits may lead it around the end of
/// all addresses, or below null: then comparing tells where it was.
inline constexpr uint8_t farBits = 40;
/// The number of bits in `Value::buffers` that stand for buffers; the last of
/// them for all that are over. The one behind stands for variables.
inline constexpr unsigned mostBuffers = 63;
inline constexpr uint64_t variableBit = uint64_t(1) << mostBuffers;
/// Stands for the condition code of add.cc; no name of PTX.
inline constexpr llvm::StringLiteral carry = "carry flag";

/// Where in shared or local memory an address points, as far as it is known.
struct Place {
  enum Kind : uint8_t {
    None,
    Exact,   ///< At `offset` of `root`.
    Dynamic, ///< Into what begins at `offset` of `root`, an array.
    Loose,   ///< Anywhere in `root`.
    Any,
  };
  Kind kind = None;
  llvm::StringRef root;
  int64_t offset = 0;

  bool operator==(const Place &other) const {
    return kind == other.kind && root == other.root && offset == other.offset;
  }
  bool operator!=(const Place &other) const { return !(*this == other); }

  /// Makes this one hold the other too. Each place changes at most four times.
  void add(const Place &other) {
    if (other.kind == None || *this == other)
      return;
    if (kind == None)
      *this = other;
    else if (kind == Any || other.kind == Any || root != other.root)
      *this = {Any, "", 0};
    else if (kind == Exact && other.kind != Loose)
      *this = {Dynamic, root, std::min(offset, other.offset)};
    else if (kind == Dynamic && other.kind != Loose && other.offset >= offset)
      return;
    else
      *this = {Loose, root, 0};
  }
  Place moved(std::optional<int64_t> by) const {
    Place place = *this;
    if (kind == Exact && by)
      place.offset += *by;
    else if (kind == Exact)
      place.kind = Dynamic;
    return place;
  }
  /// Moved by something that may be below zero.
  Place loosened() const {
    Place place = *this;
    if (kind == Exact || kind == Dynamic)
      place = {Loose, root, 0};
    return place;
  }
  /// Whether `bytes` here and `otherBytes` there may share one.
  bool meets(int64_t bytes, const Place &other, int64_t otherBytes) const {
    if (kind == None || kind == Any || other.kind == None || other.kind == Any)
      return true;
    if (root != other.root)
      return false;
    if (kind == Loose || other.kind == Loose)
      return true;
    if (kind == Dynamic && other.kind == Dynamic)
      return offset == other.offset;
    return (kind == Dynamic || offset < other.offset + otherBytes ||
            other.kind == Dynamic) &&
           (kind == Dynamic ? other.offset + otherBytes > offset
                            : offset + bytes > other.offset);
  }
};

/// What a register may hold.
struct Value {
  enum : uint8_t {
    Pointer = 1,  ///< Into a buffer.
    Distance = 2, ///< Between two buffers, moved down by `shift` bits.
    Bits = 4,     ///< Computed from an address, moved down by `shift` bits.
    Based = 8,    ///< Into shared or local memory, a variable, a parameter.
    Unknown = 16, ///< From memory, or of an instruction not known here.
    Number = 32,  ///< Certainly no address.
    Holder = 64,  ///< Into the parameters, where addresses of buffers lie.
    Policy = 128, ///< For a cache, made from the range of a buffer.
  };
  uint8_t kinds = 0;
  uint8_t shift = 0;
  /// Bits that a number may need, or how far from where it was an address may
  /// have been moved at once.
  uint8_t width = 0;
  uint64_t buffers = 0; ///< Which ones, as bits; see `mostBuffers`.
  uint64_t from = 0;    ///< Where a distance begins; it ends in the others.
  /// A variable in device memory into which it may point, or whose address
  /// went into it; the first, where there are several.
  llvm::StringRef variable;
  Place place; ///< Where Based is set.

  /// Whether it says something of where a buffer lies.
  uint8_t told() const { return kinds & (Pointer | Distance | Bits | Policy); }
  bool tells() const { return told(); }
  bool has(uint8_t kind) const { return kinds & kind; }
  /// An address and nothing else, that can be compared with its like.
  bool isAddress() const { return kinds == Pointer && width <= farBits; }
  /// True where something is new.
  bool add(const Value &other) {
    Value before = *this;
    place.add(other.place);
    kinds |= other.kinds;
    shift = std::max(shift, other.shift);
    width = std::max(width, other.width);
    buffers |= other.buffers;
    from |= other.from;
    if (variable.empty())
      variable = other.variable;
    return kinds != before.kinds || shift != before.shift ||
           width != before.width || buffers != before.buffers ||
           from != before.from || variable != before.variable ||
           place != before.place;
  }
};

inline Value plain(uint8_t kind) {
  Value value;
  value.kinds = kind;
  return value;
}

/// A number of at most `width` bits.
inline Value number(uint8_t width) {
  Value value = plain(Value::Number);
  value.width = width;
  return value;
}

/// What was read, or came out of what is not known.
inline Value unknown(uint8_t width = anyWidth) {
  Value value = plain(Value::Unknown);
  value.width = width;
  return value;
}

/// The address of `name`.
inline Value based(llvm::StringRef name) {
  Value value = plain(Value::Based);
  value.place = {Place::Exact, name, 0};
  return value;
}

/// Whether `opcode` does nothing but set its first operand from the others, so
/// that what it makes of an address is known by `resultOf`.
bool onlyComputes(llvm::StringRef opcode);

/// "shared" for the second address of "cp.async.bulk.global.shared::cta";
/// nothing where the opcode does not say.
llvm::StringRef spaceOf(llvm::StringRef opcode, unsigned address);

/// What an instruction puts into its first operand, where the operands hold
/// `values`; nothing while one of them is not known yet.
Value resultOf(llvm::StringRef opcode, llvm::ArrayRef<PtxOperand> operands,
               llvm::ArrayRef<Value> values, const Value &carryFlag);

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_POINTERVALUE_H
