// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Decode.h for what belongs to this family. Here: products, `mma` and
// `wmma.mma`. What moves matrices is in TensorMove.cpp.
//
//===----------------------------------------------------------------------===//

#include "Tensor.h"
#include "Engine.h"
#include "Float.h"

#include <cmath>

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

std::optional<MatrixShape> parseMatrixShape(StringRef modifier) {
  MatrixShape shape;
  if (!modifier.consume_front("m") || modifier.consumeInteger(10, shape.m) ||
      !modifier.consume_front("n") || modifier.consumeInteger(10, shape.n))
    return std::nullopt;
  if (modifier.consume_front("k") && modifier.consumeInteger(10, shape.k))
    return std::nullopt;
  if (!modifier.empty())
    return std::nullopt;
  return shape;
}

bool allTakePart(Warp &warp, const Op &op, LaneMask active) {
  if (active == allLanes)
    return true;
  warp.fatal(op, __builtin_ctz(active), FindingKind::ShuffleMask, 0,
             "only " + Twine(describeLanes(active)) +
                 " come to it; all 32 lanes of the warp have to");
  return false;
}

void setCollective(Decoder &decoder, Op &op, llvm::ArrayRef<Slot> results,
                   llvm::ArrayRef<Slot> sources, Handler run) {
  llvm::SmallVector<Slot, 24> all(sources.begin(), sources.end());
  op.maskSource = uint8_t(all.size());
  all.push_back(decoder.constantSlot(allLanes, 32));
  decoder.setSlots(op, results, all);
  op.control = Control::WarpSync;
  op.run = run;
}

bool fragmentSlots(Decoder &decoder, const Operand &operand, Type type,
                   unsigned count, bool isResult,
                   llvm::SmallVectorImpl<Slot> &to) {
  llvm::ArrayRef<Operand> elements(operand);
  if (operand.kind == Operand::Kind::Vector)
    elements = operand.elements;
  if (elements.size() != count) {
    decoder.fail("a fragment of " + Twine(count) + " registers wanted, got " +
                 Twine(elements.size()));
    return false;
  }
  for (const Operand &element : elements) {
    to.push_back(isResult ? decoder.resultSlot(element, type)
                          : decoder.sourceSlot(element, type));
    if (to.back() == noSlot)
      return false;
  }
  return true;
}

namespace {

/// Values of all bytes of an 8-bit float, which has `mantissa` bits below an
/// exponent of `bias`.
std::array<float, 256> makeEighths(unsigned mantissa, int bias,
                                   bool hasInfinity) {
  std::array<float, 256> values{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned magnitude = byte & 0x7f;
    int exponent = int(magnitude >> mantissa);
    unsigned fraction = magnitude & ((1u << mantissa) - 1);
    float value = exponent
                      ? std::ldexp(float((1u << mantissa) + fraction),
                                   exponent - bias - int(mantissa))
                      : std::ldexp(float(fraction), 1 - bias - int(mantissa));
    bool isTop = exponent == int(0x7f >> mantissa);
    if (hasInfinity && isTop)
      value = fraction ? NAN : INFINITY;
    else if (!hasInfinity && magnitude == 0x7f)
      value = NAN;
    values[byte] = byte & 0x80 ? -value : value;
  }
  return values;
}

const float *eighthsOf(Type type) {
  static const std::array<float, 256> e4m3 = makeEighths(3, 7, false);
  static const std::array<float, 256> e5m2 = makeEighths(2, 15, true);
  return type == Type::E4M3 ? e4m3.data() : e5m2.data();
}

/// What the factors' types are computed as; None: they do not go together.
Type familyOf(Type a, Type b) {
  auto isByte = [](Type type) { return type == Type::S8 || type == Type::U8; };
  auto isEighth = [](Type type) {
    return type == Type::E4M3 || type == Type::E5M2;
  };
  if (isByte(a) && isByte(b))
    return Type::S8;
  if (isEighth(a) && isEighth(b))
    return Type::E4M3;
  return a == b ? a : Type::None;
}

/// The modifiers of a product.
struct ProductForm {
  MatrixShape shape;
  llvm::SmallVector<StringRef, 2> layouts;
  llvm::SmallVector<Type, 4> types; ///< d, a, b, c.
  bool saturates = false;
};

bool readForm(Decoder &decoder, ProductForm &form) {
  bool isSync = false, isAligned = false, hasRounding = false;
  for (StringRef modifier : decoder.instruction().modifiers) {
    if (modifier == "sync")
      isSync = true;
    else if (modifier == "aligned")
      isAligned = true;
    else if (modifier == "mma" && decoder.instruction().opcode == "wmma")
      continue;
    else if (modifier == "row" || modifier == "col")
      form.layouts.push_back(modifier);
    else if (modifier == "satfinite")
      form.saturates = true;
    else if (modifier == "rn")
      hasRounding = true;
    else if (auto shape = parseMatrixShape(modifier);
             shape && shape->k && !form.shape.m)
      form.shape = *shape;
    else if (auto type = parseType(modifier); type && form.types.size() < 4)
      form.types.push_back(*type);
    else {
      decoder.failModifier(modifier);
      return false;
    }
  }
  if (!isSync || !isAligned || !form.shape.m || form.layouts.size() != 2) {
    decoder.fail(".sync, .aligned, a shape and two layouts wanted");
    return false;
  }
  // wmma of f16 names the accumulators alone.
  if (decoder.instruction().opcode == "wmma" && form.types.size() == 2)
    form.types = {form.types[0], Type::F16, Type::F16, form.types[1]};
  if (form.types.size() != 4) {
    decoder.fail("the types of four matrices wanted");
    return false;
  }
  if (hasRounding && form.types[0] != Type::F64) {
    decoder.failModifier("rn");
    return false;
  }
  return true;
}

/// Whether the accumulators go with the factors; fills `info` for them.
bool readAccumulators(Decoder &decoder, const ProductForm &form, Type family,
                      MultiplyInfo &info) {
  Type d = form.types[0], c = form.types[3];
  bool isFit = false;
  switch (family) {
  case Type::F16:
  case Type::E4M3:
    isFit = (d == Type::F16 || d == Type::F32) &&
            (c == Type::F16 || c == Type::F32);
    break;
  case Type::BF16:
  case Type::TF32:
    isFit = d == Type::F32 && c == Type::F32;
    break;
  case Type::F64:
    isFit = d == Type::F64 && c == Type::F64;
    break;
  case Type::S8:
    isFit = d == Type::S32 && c == Type::S32;
    break;
  default:
    break;
  }
  if (!isFit) {
    decoder.fail("a product of these types is not supported");
    return false;
  }
  if (form.saturates && family != Type::S8) {
    decoder.failModifier("satfinite");
    return false;
  }
  info.halfC = c == Type::F16;
  info.halfD = d == Type::F16;
  info.saturates = form.saturates;
  info.isSignedA = form.types[1] == Type::S8;
  info.isSignedB = form.types[2] == Type::S8;
  if (family == Type::E4M3) {
    info.eighthsA = eighthsOf(form.types[1]);
    info.eighthsB = eighthsOf(form.types[2]);
  }
  return true;
}

Decoded finish(Decoder &decoder, Op &op, const ProductForm &form, Type family,
               MultiplyInfo *info, unsigned registersD, Handler run) {
  const Instruction &instruction = decoder.instruction();
  if (!decoder.expectOperands(4))
    return Decoded::Failed;
  Type factor = family == Type::F64 ? Type::F64 : Type::B32;
  Type accumulator = factor;
  llvm::SmallVector<Slot, 8> results;
  llvm::SmallVector<Slot, 24> sources;
  const auto &operands = instruction.operands;
  if (!fragmentSlots(decoder, operands[0], accumulator, registersD, true,
                     results) ||
      !fragmentSlots(decoder, operands[1], factor, info->registersA, false,
                     sources) ||
      !fragmentSlots(decoder, operands[2], factor, info->registersB, false,
                     sources) ||
      !fragmentSlots(decoder, operands[3], accumulator, info->registersC, false,
                     sources))
    return Decoded::Failed;
  setCollective(decoder, op, results, sources, run);
  op.info = info;
  op.opClass = OpClass::Tensor;
  op.flow = Flow::Across;
  op.isApproximate = family != Type::S8;
  op.flops =
      uint16_t(2 * form.shape.m * form.shape.n * form.shape.k / warpLanes);
  return Decoded::Done;
}

} // namespace

Decoded decodeMma(Decoder &decoder, Op &op) {
  ProductForm form;
  if (!readForm(decoder, form))
    return Decoded::Failed;
  const MatrixShape &shape = form.shape;
  Type family = familyOf(form.types[1], form.types[2]);
  Handler run = mmaHandler(family, shape, hasWideVectors());
  if (!run || form.layouts[0] != "row" || form.layouts[1] != "col")
    return decoder.fail("a product of this shape, type and layout is not "
                        "supported");
  auto *info = decoder.makeInfo<MultiplyInfo>();
  if (!readAccumulators(decoder, form, family, *info))
    return Decoded::Failed;
  if (form.types[0] != form.types[3])
    return decoder.fail("accumulators of two types");
  unsigned bits = family == Type::F64    ? 32 // A register is one element.
                  : family == Type::TF32 ? 32
                                         : bitWidth(form.types[1]);
  unsigned perRegister = warpLanes * (32 / bits);
  info->registersA = shape.m * shape.k / perRegister;
  info->registersB = shape.k * shape.n / perRegister;
  info->registersC = shape.m * shape.n / warpLanes / (info->halfC ? 2 : 1);
  return finish(decoder, op, form, family, info, info->registersC, run);
}

Decoded decodeWmma(Decoder &decoder, Op &op) {
  ProductForm form;
  if (!readForm(decoder, form))
    return Decoded::Failed;
  const MatrixShape &shape = form.shape;
  Type family = familyOf(form.types[1], form.types[2]);
  // Mixed bytes have no form.
  bool isMixed = form.types[1] != form.types[2];
  Handler run =
      isMixed ? nullptr : wmmaHandler(family, shape, hasWideVectors());
  if (!run)
    return decoder.fail("a product of this shape and type is not supported");
  auto *info = decoder.makeInfo<MultiplyInfo>();
  if (!readAccumulators(decoder, form, family, *info))
    return Decoded::Failed;
  unsigned perCell = family == Type::S8 ? 4 : family == Type::BF16 ? 2 : 1;
  bool isHalf = family == Type::F16;
  info->registersA = isHalf ? 8 : shape.m * shape.k / (warpLanes * perCell);
  info->registersB = isHalf ? 8 : shape.k * shape.n / (warpLanes * perCell);
  unsigned whole = shape.m * shape.n / warpLanes;
  info->registersC = whole / (info->halfC ? 2 : 1);
  return finish(decoder, op, form, family, info, whole / (info->halfD ? 2 : 1),
                run);
}

Decoded decodeTensor(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  StringRef opcode = instruction.opcode;
  if (opcode == "mma")
    return decodeMma(decoder, op);
  if (opcode == "wmma" && instruction.has("mma"))
    return decodeWmma(decoder, op);
  if (opcode == "ldmatrix" || opcode == "stmatrix" || opcode == "movmatrix" ||
      opcode == "wmma")
    return decodeMatrixMove(decoder, op);
  return Decoded::NotMine;
}

} // namespace fsr::ptx
