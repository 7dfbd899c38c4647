// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an instruction that only computes makes of addresses. One that is not
// known here mangles them: its result says something of where a buffer lies and
// may be used for nothing.
//
//===----------------------------------------------------------------------===//

#include "PointerValue.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"

#include <utility>

using llvm::StringRef;

namespace fsr {
namespace {

/// Bits of a sum of what has `a` and `b` bits.
uint8_t widthOfSum(uint8_t a, uint8_t b) {
  return uint8_t(std::min<unsigned>(anyWidth, std::max(a, b) + 1u));
}

/// A distance leads from one buffer into another, `isBack` the other way round;
/// from anywhere else it would be an index that says where buffers lie.
Value follow(const Value &pointer, const Value &distance, Value sum,
             bool isBack) {
  uint64_t to = distance.buffers & ~distance.from, from = distance.from;
  if (isBack)
    std::swap(to, from);
  bool isOne = llvm::has_single_bit(to) && llvm::has_single_bit(from);
  if (!isOne || distance.shift || distance.told() != Value::Distance ||
      pointer.told() != Value::Pointer || pointer.buffers != from) {
    sum.kinds |= Value::Bits;
    return sum;
  }
  sum.kinds &= uint8_t(~Value::Distance);
  sum.buffers = to;
  sum.from = 0;
  return sum;
}

Value add(Value a, Value b) {
  Value sum = a;
  sum.add(b);
  if (!sum.tells()) {
    sum.width = widthOfSum(a.width, b.width);
    // Numbers make numbers; the name of a variable, or what was not seen,
    // rules.
    if (sum.has(Value::Based | Value::Unknown))
      sum.kinds &= uint8_t(~Value::Number);
    return sum;
  }
  sum.kinds = sum.told();
  // What may be an address or a number stays that.
  for (const Value &part : {a, b})
    if (part.tells())
      sum.kinds |= part.kinds & (Value::Number | Value::Unknown | Value::Based);
  if (a.has(Value::Pointer) && b.has(Value::Pointer))
    sum.kinds |= Value::Bits;
  if (sum.has(Value::Pointer) && a.tells() && b.tells())
    return follow(a.has(Value::Pointer) ? a : b, a.has(Value::Pointer) ? b : a,
                  sum, /*isBack=*/false);
  return sum;
}

Value subtract(Value a, Value b) {
  if (!b.tells())
    return add(a, b);
  bool isPlain = !a.has(Value::Bits) && !b.has(Value::Bits);
  if (a.kinds == Value::Pointer && b.kinds == Value::Pointer) {
    if (a.buffers == b.buffers && !(a.buffers & (a.buffers - 1)))
      return number(anyWidth);
    Value distance = a;
    distance.add(b);
    distance.kinds = Value::Distance;
    distance.from = b.buffers;
    return distance;
  }
  Value result = a;
  result.add(b);
  if (isPlain && b.kinds == Value::Distance && !a.tells()) {
    result.kinds = Value::Distance;
    result.from = result.buffers & ~b.from;
  } else if (isPlain && b.kinds == Value::Distance &&
             a.kinds == Value::Pointer) {
    result.kinds = Value::Pointer;
    return follow(a, b, result, /*isBack=*/true);
  } else
    result.kinds = Value::Bits; // As in -p & 15: its low bits mean low bits.
  return result;
}

/// `value` under an "and" with `bits`.
Value mask(Value value, std::optional<int64_t> bits) {
  if (!value.tells())
    return value;
  uint64_t low = bits ? uint64_t(*bits) : ~uint64_t(0);
  if (bits && value.shift < 32 && low < alignmentBits &&
      low << value.shift < alignmentBits)
    return number(9);
  // Down to a multiple; a mask of 32 bits is written without a sign.
  bool clears = bits && (~low < alignmentBits ||
                         (low >> 32 == 0 && ~low << 32 >> 32 < alignmentBits));
  if (!clears || value.has(Value::Bits))
    value.kinds = Value::Bits;
  return value;
}

} // namespace

namespace {

/// Bits that what `opcode` makes of numbers may need, sign aside.
uint8_t widthOf(StringRef opcode, llvm::ArrayRef<PtxOperand> operands,
                llvm::ArrayRef<Value> values) {
  StringRef base = opcode.split('.').first;
  StringRef type = opcode.rsplit('.').second;
  bool isSigned = type.starts_with("s"), isWide = opcode.contains(".wide");
  unsigned bits = anyWidth;
  if (type.empty() || !StringRef("usb").contains(type[0]) ||
      type.drop_front().getAsInteger(10, bits))
    bits = anyWidth;
  auto constant = [&](size_t i) {
    return i < operands.size() ? literal(operands[i]) : std::nullopt;
  };
  auto width = [&](size_t i) -> unsigned {
    // A negative number has many bits where it is read without its sign.
    if (isWide && !isSigned && constant(i).value_or(-1) < 0)
      return bits;
    return i < values.size() ? values[i].width : 0;
  };
  unsigned widest = 0;
  for (size_t i = 1; i < values.size(); ++i)
    widest = std::max<unsigned>(widest, values[i].width);
  unsigned made = anyWidth;
  if (llvm::any_of(operands, [](PtxOperand operand) {
        return !operand.empty() && operand.front() == "{";
      }))
    return anyWidth;
  if (base == "mov" || base == "selp" || base == "min" || base == "max" ||
      base == "abs" || base == "neg" || base == "or" || base == "xor" ||
      base == "cvta")
    made = widest;
  else if (base == "shr" || base == "rem" || base == "div")
    made = isSigned ? widest : bits;
  else if (base == "cvt")
    made = bits < anyWidth ? bits : widest; // Its last type is the source's.
  else if (base == "add" || base == "sub")
    made = widest + 1;
  else if (base == "and" && constant(2).value_or(-1) >= 0)
    made = width(2);
  else if (base == "and")
    made = widest;
  else if (base == "mul" && !opcode.contains(".hi"))
    made = width(1) + width(2);
  else if (base == "mad" && !opcode.contains(".hi"))
    made = std::max<unsigned>(width(1) + width(2),
                              values.size() > 3 ? values[3].width : 0) +
           1;
  else if (base == "shl" && constant(2).value_or(-1) >= 0)
    made = width(1) + unsigned(std::min<int64_t>(*constant(2), anyWidth));
  unsigned most = base == "cvt" ? unsigned(anyWidth) : isWide ? 2 * bits : bits;
  return uint8_t(std::min<unsigned>({made, most, anyWidth}));
}

} // namespace

bool onlyComputes(StringRef opcode) {
  StringRef base = opcode.split('.').first;
  if (base == "wmma")
    return opcode.starts_with("wmma.mma");
  return llvm::StringSwitch<bool>(base)
      .Cases({"mov", "cvt", "cvta", "selp", "slct", "prmt", "isspacep"}, true)
      .Cases({"add", "sub", "mul", "mad", "addc", "subc", "madc"}, true)
      .Cases({"mul24", "mad24", "sad", "div", "rem", "abs", "neg"}, true)
      .Cases({"min", "max", "popc", "clz", "bfind", "fns", "brev"}, true)
      .Cases({"bfe", "bfi", "szext", "bmsk", "dp4a", "dp2a"}, true)
      .Cases({"and", "or", "xor", "not", "cnot", "lop3", "shf"}, true)
      .Cases({"shl", "shr", "fma", "rcp", "sqrt", "rsqrt", "sin"}, true)
      .Cases({"cos", "lg2", "ex2", "tanh", "copysign", "testp"}, true)
      .Cases({"mma", "movmatrix", "activemask", "createpolicy"}, true)
      .Cases({"shfl", "vote", "match", "redux", "elect"}, true)
      .Default(false);
}

StringRef spaceOf(StringRef opcode, unsigned address) {
  StringRef last;
  llvm::SmallVector<StringRef, 8> parts;
  opcode.split(parts, '.');
  for (StringRef part : llvm::drop_begin(parts)) {
    StringRef space = part.split(':').first;
    if (space != "shared" && space != "global" && space != "local" &&
        space != "const" && space != "param")
      continue;
    last = space;
    if (address-- == 0)
      return space;
  }
  // The barrier of a copy stands behind both.
  return opcode.starts_with("cp.") ? StringRef("shared") : last;
}

Value resultOf(StringRef opcode, llvm::ArrayRef<PtxOperand> operands,
               llvm::ArrayRef<Value> values, const Value &carryFlag) {
  StringRef base = opcode.split('.').first;
  auto value = [&](size_t i) {
    return i < values.size() ? values[i] : Value();
  };
  auto constant = [&](size_t i) {
    return i < operands.size() ? literal(operands[i]) : std::nullopt;
  };
  Value all;
  for (size_t i = 1; i < operands.size(); ++i) {
    if (!value(i).kinds)
      return Value(); // Not known yet.
    all.add(value(i));
  }
  bool usesCarry = opcode.contains(".cc") || base == "addc" || base == "subc" ||
                   base == "madc";
  if (usesCarry)
    all.add(carryFlag);
  if (!all.tells()) {
    Value result = add(all, all);
    result.width = widthOf(opcode, operands, values);
    // Moves keep a place, sums move it; of all else only the root is left.
    if (base == "add" || base == "sub") {
      bool isFirst = value(1).place.kind != Place::None;
      std::optional<int64_t> by = constant(isFirst ? 2 : 1);
      if (by && base == "sub")
        by = -*by;
      bool both = isFirst && value(2).place.kind != Place::None;
      result.place = (isFirst ? value(1) : value(2)).place;
      result.place = both ? Place{Place::Any, "", 0} : result.place.moved(by);
    } else if (base != "mov" && base != "cvta" && base != "cvt" &&
               result.place.kind != Place::None) {
      result.place = result.place.moved(std::nullopt);
      result.place.kind = std::max(result.place.kind, Place::Dynamic);
    }
    return result;
  }
  Value bits = all;
  bits.kinds = Value::Bits;
  Value mangled = bits;
  mangled.shift = anyShift;
  if (usesCarry)
    return mangled;
  // What a policy holds is for the cache only.
  if (all.has(Value::Policy) && base != "mov" && base != "selp")
    return mangled;

  bool packs = llvm::any_of(operands, [](PtxOperand operand) {
    return !operand.empty() && operand.front() == "{";
  });
  if (base == "mov" && packs)
    // From a pair to a register, and the other way round.
    return !operands[0].empty() && operands[0].front() == "{" ? bits : mangled;
  if (base == "mov" || base == "cvta")
    return value(1);
  if (base == "cvt") {
    if (operands.size() != 2 || opcode.contains(".pack") ||
        opcode.contains(".sat") || opcode.contains(".f") ||
        opcode.contains(".bf") || opcode.contains(".tf") ||
        opcode.contains(".e"))
      return mangled;
    // To fewer bits than an address has, and from them.
    bool isWhole = opcode.contains("64.u64") || opcode.contains("64.s64");
    bool isMore = value(1).has(Value::Pointer | Value::Distance);
    return isWhole || !isMore ? value(1) : bits;
  }
  if (base == "selp" || base == "min" || base == "max") {
    Value either = value(1);
    either.add(value(2));
    if (base == "selp" && value(3).tells())
      return mangled;
    // Which of two addresses is lower may be asked; of an address and a number
    // it says where the address lies.
    if (base != "selp" && !(value(1).isAddress() && value(2).isAddress() &&
                            value(1).kinds == value(2).kinds))
      return mangled;
    return either;
  }
  // Between elements, and back to bytes.
  auto scaled = [&](std::optional<int64_t> by, bool isDown) {
    Value moved = value(1);
    bool fits = by && *by >= 0 && *by <= 4 && moved.kinds == Value::Distance &&
                (isDown ? moved.shift == 0 : moved.shift == *by);
    moved.shift = fits && isDown ? uint8_t(*by) : 0;
    moved.width = anyWidth;
    return fits ? moved : mangled;
  };
  auto powerOf = [&](size_t i) -> std::optional<int64_t> {
    std::optional<int64_t> factor = constant(i);
    if (!factor || !llvm::has_single_bit(uint64_t(*factor)))
      return std::nullopt;
    return llvm::countr_zero(uint64_t(*factor));
  };
  if (base == "add")
    return add(value(1), value(2));
  if (base == "sub")
    return subtract(value(1), value(2));
  if (base == "mad" && !value(1).tells() && !value(2).tells())
    return add(value(3), number(widthOf(opcode, operands.take_front(3),
                                        llvm::ArrayRef(values).take_front(3))));
  if (base == "mad" && value(1).kinds == Value::Distance && !value(2).tells() &&
      !opcode.contains(".hi"))
    return add(scaled(powerOf(2), /*isDown=*/false), value(3));
  if (base == "and") {
    bool maskIsFirst = constant(1).has_value();
    if (value(1).tells() && value(2).tells())
      return bits;
    if (value(1).tells() || maskIsFirst)
      return mask(value(maskIsFirst ? 2 : 1), constant(maskIsFirst ? 1 : 2));
    return mask(value(2), constant(1));
  }
  if (base == "or" && (constant(1) || constant(2))) {
    // What is set says nothing: all but the low bits, as a compiler writes
    // them.
    bool isFirst = constant(1).has_value();
    Value kept = mask(value(isFirst ? 2 : 1), ~*constant(isFirst ? 1 : 2));
    return kept.tells() ? bits : kept;
  }
  if (base == "or" || base == "xor" || base == "not" || base == "neg")
    return bits;
  if (base == "shr" || base == "shl" || base == "mul") {
    if (value(1).kinds == Value::Distance && !value(2).tells())
      return opcode.contains(".hi")
                 ? mangled
                 : scaled(base == "mul" ? powerOf(2) : constant(2),
                          base == "shr");
    std::optional<int64_t> by = constant(2);
    if (base == "shr" && by && *by >= 0 && *by < anyShift) {
      bits.shift = uint8_t(std::min<int64_t>(anyShift, bits.shift + *by));
      return bits;
    }
    return mangled;
  }
  if (base == "bfe") {
    std::optional<int64_t> from = constant(2), count = constant(3);
    if (from && count && *from >= 0 && *count >= 0 &&
        *from + *count + bits.shift <= 9)
      return number(9);
    return mangled;
  }
  // A buffer lies in global memory; a sum may lie anywhere.
  if (base == "isspacep")
    return all.told() == Value::Pointer && all.width <= farBits ? number(1)
                                                                : mangled;
  return mangled;
}

} // namespace fsr
