// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which forms of logic, shifts, bit fields and byte permutations there are, and
// their handlers.
//
//===----------------------------------------------------------------------===//

#include "Integer.h"

#include "llvm/ADT/StringSwitch.h"

namespace fsr::ptx {

namespace {
namespace base {
#include "Lanes.inl"
// Needs the one above.
#include "IntegerLanes.inl"
// Needs both.
#include "IntegerBits.inl"
} // namespace base

#if defined(__x86_64__)
#pragma clang attribute push(                                                  \
    __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt"))),                   \
    apply_to = function)
namespace v3 {
#include "Lanes.inl"
// Needs the one above.
#include "IntegerLanes.inl"
// Needs both.
#include "IntegerBits.inl"
} // namespace v3
#pragma clang attribute pop
#else
namespace v3 = base;
#endif
} // namespace

Decoded IntegerDecoder::logic() {
  unsigned which = opcode == "and"   ? 0
                   : opcode == "or"  ? 1
                   : opcode == "xor" ? 2
                   : opcode == "not" ? 3
                                     : 4;
  llvm::SmallVector<Type, 4> allowed = {Type::B16, Type::B32, Type::B64};
  if (which != 4)
    allowed.push_back(Type::Pred);
  Type type;
  if (!takeType(type, allowed))
    return Decoded::Failed;
  Handler run = (wide ? v3::logicHandler : base::logicHandler)(type, which);
  if (which > 2)
    return finish(run, type, type);
  return finish(run, type, {type, type});
}

Decoded IntegerDecoder::table() {
  std::optional<unsigned> combines = takeOf({"or", "and"});
  Type type;
  if (!takeType(type, Type::B32))
    return Decoded::Failed;
  size_t wanted = combines ? 6 : 5;
  if (!decoder.expectOperands(wanted))
    return Decoded::Failed;
  const Operand &bits = instruction.operands[4];
  if (bits.kind != Operand::Kind::Integer || bits.bits > 0xff)
    return decoder.fail("the table is a number of 8 bits");
  // The table is no slot, so that `finish` does not fit.
  if (!rest.empty())
    return decoder.failModifier(rest.front());
  const Operand &into = instruction.operands[0];
  if (bool(combines) != (into.kind == Operand::Kind::Pair))
    return decoder.fail(combines ? "expected two results"
                                 : "expected one result");
  llvm::SmallVector<Slot, 4> results, sources;
  results.push_back(
      decoder.resultSlot(combines ? into.elements[0] : into, type));
  if (combines)
    results.push_back(decoder.resultSlot(into.elements[1], Type::Pred));
  for (unsigned i : {1, 2, 3})
    sources.push_back(decoder.sourceSlot(instruction.operands[i], type));
  if (combines)
    sources.push_back(decoder.sourceSlot(instruction.operands[5], Type::Pred));
  for (const Operand &operand : instruction.operands)
    if (operand.isNegated || !operand.selector.empty())
      return decoder.fail("an operand cannot be negated here");
  if (llvm::is_contained(results, noSlot) ||
      llvm::is_contained(sources, noSlot))
    return Decoded::Failed;
  decoder.setSlots(op, results, sources);
  op.immediate = bits.bits;
  if (combines)
    op.immediate |= uint64_t(*combines == 1 ? Logic::And : Logic::Or) << 8;
  op.run = (wide ? v3::tableHandler : base::tableHandler)();
  return Decoded::Done;
}

Decoded IntegerDecoder::shift() {
  bool left = opcode == "shl";
  llvm::SmallVector<Type, 9> allowed = {Type::B16, Type::B32, Type::B64};
  if (!left)
    allowed.append(
        {Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64});
  Type type;
  if (!takeType(type, allowed))
    return Decoded::Failed;
  return finish((wide ? v3::shiftHandler : base::shiftHandler)(type, left),
                type, {type, Type::U32});
}

Decoded IntegerDecoder::funnel() {
  std::optional<unsigned> direction = takeOf({"l", "r"});
  std::optional<unsigned> mode = takeOf({"clamp", "wrap"});
  if (!direction || !mode)
    return decoder.fail("expected .l or .r, then .clamp or .wrap");
  Type type;
  if (!takeType(type, Type::B32))
    return Decoded::Failed;
  return finish((wide ? v3::funnelHandler
                      : base::funnelHandler)(*direction == 0, *mode == 1),
                type, {type, type, Type::U32});
}

Decoded IntegerDecoder::field() {
  bool inserts = opcode == "bfi";
  llvm::SmallVector<Type, 4> allowed = {Type::U32, Type::U64, Type::S32,
                                        Type::S64};
  if (inserts)
    allowed = {Type::B32, Type::B64};
  Type type;
  if (!takeType(type, allowed))
    return Decoded::Failed;
  Handler run = (wide ? v3::fieldHandler : base::fieldHandler)(type, inserts);
  if (inserts)
    return finish(run, type, {type, type, Type::U32, Type::U32});
  return finish(run, type, {type, Type::U32, Type::U32});
}

Decoded IntegerDecoder::count() {
  unsigned which = opcode == "popc" ? 0 : opcode == "clz" ? 1 : 2;
  Type type;
  if (!takeType(type, {Type::B32, Type::B64}))
    return Decoded::Failed;
  return finish(
      (wide ? v3::countHandler : base::countHandler)(type == Type::B64, which),
      which == 2 ? type : Type::U32, type);
}

Decoded IntegerDecoder::find() {
  bool shiftAmount = take("shiftamt");
  Type type;
  if (!takeType(type, {Type::U32, Type::U64, Type::S32, Type::S64}))
    return Decoded::Failed;
  return finish((wide ? v3::findHandler : base::findHandler)(type, shiftAmount),
                Type::U32, type);
}

Decoded IntegerDecoder::mask() {
  bool extends = opcode == "szext";
  std::optional<unsigned> mode = takeOf({"clamp", "wrap"});
  if (!mode)
    return decoder.fail("expected .clamp or .wrap");
  Type type;
  if (!extends) {
    if (!takeType(type, Type::B32))
      return Decoded::Failed;
    return finish((wide ? v3::maskHandler : base::maskHandler)(*mode == 0),
                  type, {Type::U32, Type::U32});
  }
  if (!takeType(type, {Type::U32, Type::S32}))
    return Decoded::Failed;
  return finish((wide ? v3::extendHandler : base::extendHandler)(isSigned(type),
                                                                 *mode == 0),
                type, {type, Type::U32});
}

Decoded IntegerDecoder::parts() {
  // Without masks, selections and mixed types: as CUDA's functions have them.
  bool compares = opcode.starts_with("vset");
  Type type, next;
  if (!takeType(type, {Type::U32, Type::S32}))
    return Decoded::Failed;
  for (int i = compares ? 1 : 0; i < 2; ++i)
    if (!takeType(next, type))
      return Decoded::Failed;
  PartsOp what;
  if (compares) {
    std::optional<unsigned> comparison =
        takeOf({"eq", "ne", "lt", "le", "gt", "ge"});
    if (!comparison)
      return decoder.fail("a comparison is missing");
    what = PartsOp(unsigned(PartsOp::Equal) + *comparison);
  } else {
    what = llvm::StringSwitch<PartsOp>(opcode.drop_back())
               .Case("vadd", PartsOp::Add)
               .Case("vsub", PartsOp::Sub)
               .Case("vavrg", PartsOp::Average)
               .Case("vabsdiff", PartsOp::Difference)
               .Case("vmin", PartsOp::Min)
               .Default(PartsOp::Max);
    op.immediate = take("sat") ? PartsSaturate : 0;
    if (what == PartsOp::Difference && !op.immediate && take("add"))
      op.immediate = PartsAdd;
  }
  op.immediate |= uint64_t(what);
  return finish((wide ? v3::partsHandler : base::partsHandler)(
                    opcode.back() == '4' ? 8 : 16, isSigned(type)),
                type, {type, type, type});
}

Decoded IntegerDecoder::nth() {
  Type type;
  if (!takeType(type, Type::B32))
    return Decoded::Failed;
  return finish((wide ? v3::nthHandler : base::nthHandler)(), type,
                {type, Type::U32, Type::S32});
}

Decoded IntegerDecoder::permute() {
  Type type;
  if (!takeType(type, Type::B32))
    return Decoded::Failed;
  // Nibbles as the plain form has them, for the third source's lower bits.
  static constexpr uint64_t selectors[] = {
      0x6543'5432'4321'3210, // f4e
      0x0123'7012'6701'5670, // b4e
      0x3333'2222'1111'0000, // rc8
      0x3333'3222'3211'3210, // ecl
      0x3210'2210'1110'0000, // ecr
      0x3232'1010'3232'1010, // rc16
  };
  std::optional<unsigned> mode =
      takeOf({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  unsigned which = 0;
  if (mode) {
    which = 1;
    op.immediate = selectors[*mode];
  } else if (instruction.operands.size() == 4 &&
             instruction.operands[3].kind == Operand::Kind::Integer &&
             !(instruction.operands[3].bits & 0x8888)) {
    which = 2;
    for (unsigned i = 0; i < 4; ++i) {
      unsigned byte = instruction.operands[3].bits >> (4 * i) & 7;
      op.immediate |= uint64_t(byte % 4 * 8 | (byte / 4) << 6) << (16 * i);
    }
  }
  return finish((wide ? v3::permuteHandler : base::permuteHandler)(which), type,
                {type, type, type});
}

} // namespace fsr::ptx
