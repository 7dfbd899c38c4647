// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Decode.h for what belongs to this family: what the others leave of these
// opcodes.
//
//===----------------------------------------------------------------------===//

#include "Integer.h"

#include "llvm/ADT/StringSwitch.h"

namespace fsr::ptx {

bool &takesWideIntegers() {
  static bool takes = hasWideVectors();
  return takes;
}

bool IntegerDecoder::take(llvm::StringRef modifier) {
  if (rest.empty() || rest.front() != modifier)
    return false;
  rest = rest.drop_front();
  return true;
}

std::optional<unsigned>
IntegerDecoder::takeOf(llvm::ArrayRef<llvm::StringRef> names) {
  for (unsigned i = 0; i < names.size(); ++i)
    if (take(names[i]))
      return i;
  return std::nullopt;
}

bool IntegerDecoder::takeType(Type &type, llvm::ArrayRef<Type> allowed) {
  if (rest.empty()) {
    decoder.fail("a type is missing");
    return false;
  }
  std::optional<Type> next = parseType(rest.front());
  if (!next || !llvm::is_contained(allowed, *next)) {
    decoder.failModifier(rest.front());
    return false;
  }
  type = *next;
  rest = rest.drop_front();
  return true;
}

Decoded IntegerDecoder::finish(Handler run, llvm::ArrayRef<Type> results,
                               llvm::ArrayRef<Type> sources) {
  if (!rest.empty())
    return decoder.failModifier(rest.front());
  if (!run)
    return decoder.fail("this form is not supported");
  if (!decoder.expectOperands(sources.size() + 1))
    return Decoded::Failed;
  llvm::ArrayRef<Operand> operands = instruction.operands;
  llvm::ArrayRef<Operand> into = operands.front();
  if (results.size() != 1) {
    if (into.front().kind != Operand::Kind::Pair)
      return decoder.fail("expected two results");
    into = into.front().elements;
  }
  llvm::SmallVector<Slot, 4> resultSlots, sourceSlots;
  for (size_t i = 0; i < results.size(); ++i) {
    if (into[i].isNegated || !into[i].selector.empty())
      return decoder.fail("a result is a register");
    resultSlots.push_back(decoder.resultSlot(into[i], results[i]));
    if (resultSlots.back() == noSlot)
      return Decoded::Failed;
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    const Operand &from = operands[i + 1];
    if (!from.selector.empty())
      return decoder.fail("the selector ." + from.selector +
                          " is not supported");
    if (from.isNegated) {
      if (!lastMayBeNegated || i + 1 != sources.size())
        return decoder.fail("an operand cannot be negated here");
      op.immediate |= IntegerNegated;
    }
    sourceSlots.push_back(decoder.sourceSlot(from, sources[i]));
    if (sourceSlots.back() == noSlot)
      return Decoded::Failed;
  }
  resultSlots.append(moreResults);
  sourceSlots.append(moreSources);
  decoder.setSlots(op, resultSlots, sourceSlots);
  op.run = run;
  return Decoded::Done;
}

Decoded decodeInteger(Decoder &decoder, Op &op) {
  using Method = Decoded (IntegerDecoder::*)();
  auto method =
      llvm::StringSwitch<Method>(decoder.instruction().opcode)
          .Case("mov", &IntegerDecoder::move)
          .Cases({"add", "sub"}, &IntegerDecoder::sum)
          .Cases({"mul", "mad", "mul24", "mad24"}, &IntegerDecoder::product)
          .Cases({"addc", "subc", "madc"}, &IntegerDecoder::carried)
          .Cases({"div", "rem", "sad"}, &IntegerDecoder::plain)
          .Cases({"min", "max"}, &IntegerDecoder::extreme)
          .Cases({"abs", "neg"}, &IntegerDecoder::magnitude)
          .Cases({"dp2a", "dp4a"}, &IntegerDecoder::dot)
          .Cases({"and", "or", "xor", "not", "cnot"}, &IntegerDecoder::logic)
          .Case("lop3", &IntegerDecoder::table)
          .Cases({"shl", "shr"}, &IntegerDecoder::shift)
          .Case("shf", &IntegerDecoder::funnel)
          .Cases({"bfe", "bfi"}, &IntegerDecoder::field)
          .Cases({"popc", "clz", "brev"}, &IntegerDecoder::count)
          .Case("bfind", &IntegerDecoder::find)
          .Cases({"bmsk", "szext"}, &IntegerDecoder::mask)
          .Cases({"vadd2", "vadd4", "vsub2", "vsub4", "vavrg2", "vavrg4",
                  "vabsdiff2", "vabsdiff4"},
                 &IntegerDecoder::parts)
          .Cases({"vmin2", "vmin4", "vmax2", "vmax4", "vset2", "vset4"},
                 &IntegerDecoder::parts)
          .Case("fns", &IntegerDecoder::nth)
          .Case("prmt", &IntegerDecoder::permute)
          .Case("setp", &IntegerDecoder::setPredicate)
          .Case("set", &IntegerDecoder::set)
          .Case("selp", &IntegerDecoder::select)
          .Case("slct", &IntegerDecoder::selectBySign)
          .Default(nullptr);
  if (!method)
    return Decoded::NotMine;
  return (IntegerDecoder(decoder, op).*method)();
}

} // namespace fsr::ptx
