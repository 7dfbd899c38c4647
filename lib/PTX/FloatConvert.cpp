// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which conversions there are, and their handlers.
//
// A NaN becomes 0 as an integer, except from f64 or to 64 bits, where it
// becomes the pattern with the top bit alone.
//
//===----------------------------------------------------------------------===//

#include "Float.h"

#include <type_traits>

#pragma clang fp contract(off)

namespace fsr::ptx {

namespace {

/// `Op::immediate`; the width of the result's register stands above 32.
enum ConvertFlags : unsigned {
  ConvertFtz = 1,
  ConvertSat = 2,
  ConvertRelu = 4,
  ConvertFinite = 8,
};

} // namespace

#define FSR_PTX_FAMILY "FloatConvert.inl"
#include "FloatBoth.inl"

namespace {

bool isInteger(Type type) { return type >= Type::U8 && type <= Type::S64; }
bool isScalarFloat(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F32 ||
         type == Type::F64;
}
/// Whether all numbers of `source` are numbers of `result`.
bool holdsAll(Type result, Type source) {
  if (result == source)
    return true;
  if (result == Type::F64)
    return isScalarFloat(source);
  return result == Type::F32 && (source == Type::F16 || source == Type::BF16);
}

void selectPack(const FloatForm &form, size_t operands, bool wide,
                FloatOp &op) {
  Type result = form.types[0], source = form.types[1];
  bool hasThird = form.types.size() == 3;
  if (form.packBits && !hasThird)
    return op.fail("these types are not supported by cvt.pack");
  if (!form.sat || form.rounding != Rounding::None || form.ftz || form.relu ||
      form.satfinite)
    return op.fail("cvt.pack takes '.sat' and nothing else");
  if ((hasThird && form.types[2] != Type::B32) ||
      operands != (hasThird ? 4u : 3u))
    return op.fail("the operands do not fit cvt.pack");
  op.run = (wide ? v3::packIntegersHandler : base::packIntegersHandler)(
      result, source, hasThird, form.packBits);
  if (!op.run)
    return op.fail("these types are not supported by cvt.pack");
  op.results = {Type::B32};
  op.sources.assign(operands - 1, Type::B32);
}

/// Pairs, tf32 and the formats of eight bits.
void selectPairs(const FloatForm &form, bool wide, FloatOp &op) {
  Type result = form.types[0], source = form.types[1];
  bool toEighths = result == Type::E4M3x2 || result == Type::E5M2x2;
  bool fromEighths = source == Type::E4M3x2 || source == Type::E5M2x2;
  bool isNearest = form.rounding == Rounding::Nearest;
  bool isZero = form.rounding == Rounding::Zero;
  bool isAway = form.rounding == Rounding::NearestAway;
  if (form.toInteger || form.sat || form.ftz)
    return op.fail("a modifier is not one of this form's");
  if (result == Type::TF32       ? !isNearest && !isZero && !isAway
      : toEighths || fromEighths ? !isNearest
                                 : !isNearest && !isZero)
    return op.fail("the rounding is not one of this form's");
  if (toEighths != form.satfinite && (toEighths || fromEighths))
    return op.fail("'.satfinite' goes with formats of eight bits as results");
  if (isAway && form.relu)
    return op.fail("'.relu' does not go with '.rna'");
  op.run = (wide ? v3::packHandler : base::packHandler)(result, source,
                                                        form.rounding);
  if (!op.run)
    return op.fail("this conversion is not supported");
  op.results = {toEighths ? Type::B16 : Type::B32};
  bool isPacking = source == Type::F32 && result != Type::TF32;
  op.sources.assign(isPacking ? 2 : 1, fromEighths ? Type::B16 : Type::B32);
}

} // namespace

void selectConversion(const FloatForm &form, size_t operands,
                      unsigned resultBits, unsigned sourceBits, bool wide,
                      FloatOp &op) {
  op.opClass = OpClass::Conversion;
  if (form.nan || form.xorsign || form.abs || form.approx || form.full ||
      form.compare != Compare::None || form.logic != Logic::None ||
      form.test != Test::None)
    return op.fail("a modifier is not one of this form's");
  if (form.types.size() < 2 || form.types.size() > (form.pack ? 3 : 2))
    return op.fail("expected two types, got " + llvm::Twine(form.types.size()));
  op.immediate = (form.ftz ? ConvertFtz : 0) | (form.sat ? ConvertSat : 0) |
                 (form.relu ? ConvertRelu : 0) |
                 (form.satfinite ? ConvertFinite : 0) |
                 uint64_t(resultBits) << 32;
  if (form.pack)
    return selectPack(form, operands, wide, op);
  Type result = form.types[0], source = form.types[1];
  bool toInt = isInteger(result), fromInt = isInteger(source);
  bool toFloat = isScalarFloat(result), fromFloat = isScalarFloat(source);
  if ((!toInt && !toFloat) || (!fromInt && !fromFloat))
    return selectPairs(form, wide, op);

  bool hasRounding = form.rounding != Rounding::None;
  if (form.rounding == Rounding::NearestAway)
    return op.fail("'.rna' goes with tf32");
  if (toInt && fromInt) {
    if (hasRounding)
      return op.fail("there is nothing to round");
  } else if (toInt) {
    if (!form.toInteger)
      return op.fail("a rounding to an integer must be given");
  } else if (fromInt) {
    if (!hasRounding || form.toInteger)
      return op.fail("a rounding must be given");
  } else if (form.toInteger) {
    if (result != source)
      return op.fail("rounding to an integer goes with one type");
  } else if (!hasRounding && !holdsAll(result, source) &&
             !(bitWidth(result) == 16 && bitWidth(source) == 16)) {
    // Between f16 and bf16 none means to nearest.
    return op.fail("a rounding must be given");
  }
  bool isShort = result == Type::F16 || result == Type::BF16;
  if ((form.relu || form.satfinite) &&
      (!isShort || source != Type::F32 || form.toInteger))
    return op.fail("'.relu' and '.satfinite' go with f16 and bf16 of f32");
  if (form.sat && (result == Type::BF16 || source == Type::BF16))
    return op.fail("'.sat' does not go with bf16");
  if (form.ftz && result != Type::F32 && source != Type::F32)
    return op.fail("'.ftz' goes with f32");
  // What becomes f16 is not flushed, nor is what has no float of 32 bits.
  if (result == Type::F16)
    op.immediate &= ~uint64_t(ConvertFtz);
  bool wideTo = resultBits == 64, wideFrom = sourceBits == 64;
  bool isNatural = wideTo == (bitWidth(result) == 64) &&
                   wideFrom == (bitWidth(source) == 64);
  op.run = (wide && isNatural ? v3::convertHandler : base::convertHandler)(
      result, source, form.rounding, form.toInteger, wideTo, wideFrom);
  if (!op.run)
    return op.fail("this conversion is not supported");
  op.results = {result};
  op.sources = {source};
}

} // namespace fsr::ptx
