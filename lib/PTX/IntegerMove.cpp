// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// mov of all kinds but special registers that change, which is decodeWarp's.
// What a source may be (a register, a number, an address) is the decoder's. 128
// bits are two slots, and the ops name both.
//
//===----------------------------------------------------------------------===//

#include "Integer.h"

namespace fsr::ptx {

namespace {
namespace base {
#include "Lanes.inl"
// Needs the one above.
#include "IntegerLanes.inl"
// Needs both.
#include "IntegerMove.inl"
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
#include "IntegerMove.inl"
} // namespace v3
#pragma clang attribute pop
#else
namespace v3 = base;
#endif

Type untyped(unsigned width) {
  switch (width) {
  case 8:
    return Type::B8;
  case 16:
    return Type::B16;
  case 32:
    return Type::B32;
  default:
    return Type::B64;
  }
}
} // namespace

Decoded IntegerDecoder::move() {
  Type type;
  if (!takeType(type, {Type::Pred, Type::B16, Type::B32, Type::B64, Type::B128,
                       Type::U16, Type::U32, Type::U64, Type::S16, Type::S32,
                       Type::S64, Type::F32, Type::F64}))
    return Decoded::Failed;
  if (!rest.empty())
    return decoder.failModifier(rest.front());
  if (!decoder.expectOperands(2))
    return Decoded::Failed;
  const Operand &into = instruction.operands[0];
  const Operand &from = instruction.operands[1];
  bool packs = from.kind == Operand::Kind::Vector;
  bool unpacks = into.kind == Operand::Kind::Vector;
  unsigned width = bitWidth(type);
  if (packs && unpacks)
    return decoder.fail("one of the operands is a vector, not both");
  size_t count = packs     ? from.elements.size()
                 : unpacks ? into.elements.size()
                           : 1;
  if ((packs || unpacks) && type != Type::B16 && type != Type::B32 &&
      type != Type::B64 && type != Type::B128)
    return decoder.fail("a vector is moved as bits");
  Handler run = nullptr;
  if (!packs && !unpacks)
    run = (wide ? v3::moveHandler : base::moveHandler)(width);
  else if (count == 2 || count == 4)
    run = (wide ? v3::vectorHandler
                : base::vectorHandler)(width, unsigned(count), packs);
  if (!run)
    return decoder.fail("this form is not supported");

  auto slotsOf = [&](const Operand &operand, bool isResult, Type of,
                     llvm::SmallVectorImpl<Slot> &slots) {
    if (operand.isNegated || !operand.selector.empty()) {
      decoder.fail("an operand cannot be negated here");
      return false;
    }
    Slot slot = isResult ? decoder.resultSlot(operand, of)
                         : decoder.sourceSlot(operand, of);
    if (slot == noSlot)
      return false;
    slots.push_back(slot);
    if (of == Type::B128)
      slots.push_back(slot + 1);
    return true;
  };
  Type part = untyped(width / unsigned(count));
  llvm::SmallVector<Slot, 4> results, sources;
  for (bool isResult : {true, false}) {
    const Operand &operand = isResult ? into : from;
    llvm::SmallVector<Slot, 4> &slots = isResult ? results : sources;
    if (!(isResult ? unpacks : packs)) {
      if (!slotsOf(operand, isResult, type, slots))
        return Decoded::Failed;
      continue;
    }
    for (const Operand &element : operand.elements)
      if (!slotsOf(element, isResult, part, slots))
        return Decoded::Failed;
  }
  decoder.setSlots(op, results, sources);
  op.isCopy = true;
  op.run = run;
  return Decoded::Done;
}

} // namespace fsr::ptx
