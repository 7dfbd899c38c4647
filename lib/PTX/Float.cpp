// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Decode.h for what belongs to this family. An instruction is its own where
// one of its types is a floating-point one, and each cvt; the modifiers are
// read into a form, the form gives a handler, and the operands follow.
//
//===----------------------------------------------------------------------===//

#include "Float.h"
#include "Decode.h"

#include "llvm/ADT/StringSwitch.h"

namespace fsr::ptx {

FloatForm::FloatForm(const Instruction &instruction)
    : opcode(instruction.opcode) {
  auto round = [&](Rounding mode, bool integer) {
    // Given twice: not a form that there is.
    if (rounding != Rounding::None)
      unknown = "two roundings";
    rounding = mode;
    toInteger = integer;
  };
  for (llvm::StringRef one : instruction.modifiers) {
    if (std::optional<Type> type = parseType(one)) {
      types.push_back(*type);
      continue;
    }
    auto compareOf = llvm::StringSwitch<Compare>(one)
                         .Case("eq", Compare::Eq)
                         .Case("ne", Compare::Ne)
                         .Case("lt", Compare::Lt)
                         .Case("le", Compare::Le)
                         .Case("gt", Compare::Gt)
                         .Case("ge", Compare::Ge)
                         .Case("equ", Compare::Equ)
                         .Case("neu", Compare::Neu)
                         .Case("ltu", Compare::Ltu)
                         .Case("leu", Compare::Leu)
                         .Case("gtu", Compare::Gtu)
                         .Case("geu", Compare::Geu)
                         .Case("num", Compare::Num)
                         .Case("nan", Compare::Nan)
                         .Default(Compare::None);
    auto logicOf = llvm::StringSwitch<Logic>(one)
                       .Case("and", Logic::And)
                       .Case("or", Logic::Or)
                       .Case("xor", Logic::Xor)
                       .Default(Logic::None);
    auto testOf = llvm::StringSwitch<Test>(one)
                      .Case("finite", Test::Finite)
                      .Case("infinite", Test::Infinite)
                      .Case("number", Test::Number)
                      .Case("notanumber", Test::NotANumber)
                      .Case("normal", Test::Normal)
                      .Case("subnormal", Test::Subnormal)
                      .Default(Test::None);
    if (compareOf != Compare::None)
      compare = compareOf;
    else if (logicOf != Logic::None)
      logic = logicOf;
    else if (testOf != Test::None)
      test = testOf;
    else if (one == "rn")
      round(Rounding::Nearest, false);
    else if (one == "rz")
      round(Rounding::Zero, false);
    else if (one == "rm")
      round(Rounding::Down, false);
    else if (one == "rp")
      round(Rounding::Up, false);
    else if (one == "rna")
      round(Rounding::NearestAway, false);
    else if (one == "rni")
      round(Rounding::Nearest, true);
    else if (one == "rzi")
      round(Rounding::Zero, true);
    else if (one == "rmi")
      round(Rounding::Down, true);
    else if (one == "rpi")
      round(Rounding::Up, true);
    else if (one == "ftz")
      ftz = true;
    else if (one == "sat")
      sat = true;
    else if (one == "satfinite")
      satfinite = true;
    else if (one == "relu")
      relu = true;
    else if (one == "NaN")
      nan = true;
    else if (one == "xorsign")
      xorsign = true;
    else if (one == "abs")
      abs = true;
    else if (one == "approx")
      approx = true;
    else if (one == "full")
      full = true;
    else if (one == "pack")
      pack = true;
    else if (pack && !packBits &&
             (one == "u4" || one == "s4" || one == "u2" || one == "s2")) {
      types.push_back(one[0] == 'u' ? Type::U8 : Type::S8);
      packBits = unsigned(one[1] - '0');
    } else if (unknown.empty())
      unknown = one;
  }
}

bool FloatForm::hasFloat() const {
  for (Type type : types)
    if (isFloat(type))
      return true;
  return false;
}

namespace {

enum class Group { None, Arithmetic, Approximation, Comparison, Conversion };

Group groupOf(llvm::StringRef opcode) {
  return llvm::StringSwitch<Group>(opcode)
      .Cases({"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "neg",
              "abs", "min", "max", "copysign"},
             Group::Arithmetic)
      .Cases({"rsqrt", "ex2", "lg2", "sin", "cos", "tanh"},
             Group::Approximation)
      .Cases({"setp", "set", "selp", "slct", "testp"}, Group::Comparison)
      .Case("cvt", Group::Conversion)
      .Default(Group::None);
}

/// The bits of the register that an operand of cvt is; where it is none, those
/// of the type.
unsigned widthOf(const Decoder &decoder, const Operand &operand,
                 const FloatForm &form, size_t which) {
  Type type = decoder.registerType(operand);
  if (type == Type::None && which < form.types.size())
    type = form.types[which];
  return type == Type::None ? 32 : bitWidth(type);
}

} // namespace

Decoded decodeFloat(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  Group group = groupOf(instruction.opcode);
  if (group == Group::None)
    return Decoded::NotMine;
  FloatForm form(instruction);
  if (group != Group::Conversion && !form.hasFloat())
    return Decoded::NotMine;
  // What is compared tells whose it is.
  if (instruction.opcode == "set" && !isFloat(form.types.back()))
    return Decoded::NotMine;
  if (!form.unknown.empty())
    return decoder.failModifier(form.unknown);

  const auto &operands = instruction.operands;
  if (operands.empty())
    return decoder.fail("there are no operands");
  const Operand &result = operands[0];
  bool twoResults = result.kind == Operand::Kind::Pair;
  bool isReciprocal = instruction.opcode == "rcp";
  // Some registers are wider than what is converted.
  unsigned resultBits = 0, sourceBits = 0;
  FloatOp chosen;
  bool wide = hasWideVectors();
  switch (group) {
  case Group::None:
    break;
  case Group::Arithmetic:
    if (isReciprocal && form.approx && form.types[0] == Type::F64) {
      isReciprocal = false;
      selectApproximation(form, wide, chosen);
    } else {
      selectArithmetic(form, operands.size(), wide, chosen);
    }
    break;
  case Group::Approximation:
    selectApproximation(form, wide, chosen);
    break;
  case Group::Comparison:
    selectComparison(form, twoResults, operands.size() - 1, wide, chosen);
    break;
  case Group::Conversion:
    resultBits = widthOf(decoder, result, form, 0);
    if (operands.size() > 1)
      sourceBits = widthOf(decoder, operands[1], form, 1);
    selectConversion(form, operands.size(), resultBits, sourceBits, wide,
                     chosen);
    break;
  }
  if (!chosen.run)
    return decoder.fail(chosen.problem);
  size_t numResults = chosen.results.size();
  if (twoResults ? numResults != 2 || result.elements.size() != 2
                 : numResults != 1)
    return decoder.fail("a wrong number of results");
  if (!decoder.expectOperands(1 + chosen.sources.size() - isReciprocal))
    return Decoded::Failed;

  llvm::SmallVector<Slot, 2> results;
  for (size_t i = 0; i < numResults; ++i) {
    const Operand &operand = twoResults ? result.elements[i] : result;
    Type type = chosen.results[i];
    if (resultBits && bitWidth(type) != resultBits)
      type = resultBits == 64 ? Type::B64 : Type::B32;
    results.push_back(decoder.resultSlot(operand, type));
    if (results.back() == noSlot)
      return Decoded::Failed;
  }
  llvm::SmallVector<Slot, 4> sources;
  if (isReciprocal) // A quotient of one.
    sources.push_back(chosen.sources[0] == Type::F64
                          ? decoder.constantSlot(0x3ff0000000000000, 64)
                          : decoder.constantSlot(0x3f800000, 32));
  for (size_t i = 1; i < operands.size(); ++i) {
    Type type = chosen.sources[i - 1 + isReciprocal];
    if (i == 1 && sourceBits == 64 && bitWidth(type) < 64)
      type = Type::B64;
    sources.push_back(decoder.sourceSlot(operands[i], type));
    if (sources.back() == noSlot)
      return Decoded::Failed;
    if (!operands[i].isNegated)
      continue;
    if (type != Type::Pred || group != Group::Comparison)
      return decoder.fail("an operand cannot be negated here");
    chosen.immediate |= comparisonNegated;
  }
  decoder.setSlots(op, results, sources);
  op.run = chosen.run;
  op.opClass = chosen.opClass;
  op.flops = chosen.flops;
  op.isApproximate = chosen.isApproximate;
  op.immediate = chosen.immediate;
  return Decoded::Done;
}

} // namespace fsr::ptx
