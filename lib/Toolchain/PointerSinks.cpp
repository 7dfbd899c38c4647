// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where an address must not go. All that is not named by `onlyComputes`, or is
// an address of memory in its place, refuses one: an instruction that is not
// known refuses it too.
//
//===----------------------------------------------------------------------===//

#include "PointerAnalysis.h"

namespace fsr::pointers {

void Analysis::compare(Function &in, StringRef opcode,
                       llvm::ArrayRef<Operand> operands) {
  if (!isChecking || operands.size() < 3)
    return;
  // A predicate that the result is combined with.
  for (Operand operand : operands.drop_front(3))
    checkData(in, opcode, operand);
  Value a = get(in, operands[1]), b = get(in, operands[2]);
  if (!a.tells() && !b.tells())
    return;
  bool equality = opcode.contains(".eq") || opcode.contains(".ne");
  if (a.isAddress() && b.isAddress()) {
    // Whether one buffer lies a chosen distance behind another is what guard
    // zones decide in a check.
    if (a.buffers == b.buffers ||
        (equality && llvm::has_single_bit(a.buffers) &&
         llvm::has_single_bit(b.buffers)))
      return;
    return refuse("where two buffers lie decides what the code does (`" +
                  opcode + "` compares " + called(a) + " with " + called(b) +
                  "); say disjoint(…) in \"requires\" where they may not "
                  "overlap, and compare indices where one of two is walked "
                  "through");
  }
  auto mayBeNull = [](const Value &v) {
    // In many steps an address may be moved by any number.
    return v.tells() && !v.has(Value::Bits | Value::Policy) && v.width == 0;
  };
  if (equality && ((mayBeNull(a) && literal(operands[2]) == 0) ||
                   (mayBeNull(b) && literal(operands[1]) == 0)))
    return;
  refuse("where a buffer lies decides what the code does (" +
         called(a.tells() ? a : b) + " in `" + opcode +
         "`); only its alignment, up to " + llvm::Twine(alignmentBits / 2) +
         " bytes, null and the address of a buffer may be tested");
}

/// `operand` in brackets: what is reached must be reached from something.
void Analysis::checkAddress(Function &in, StringRef opcode, Operand operand,
                            StringRef space) {
  if (!isChecking)
    return;
  Value address = get(in, operand);
  if (address.has(Value::Bits | Value::Distance | Value::Policy))
    return refuse("`" + opcode +
                  "` uses an address that is computed from the "
                  "bits of another one (" +
                  called(address) + "); add offsets to the pointer instead");
  bool isInWindow = !space.empty() && space != "global";
  if (isInWindow && address.tells())
    return refuse("`" + opcode + "` reaches " + space + " memory through " +
                  called(address) + ", which does not lie there");
  StringRef base = opcode.split('.').first;
  bool isObject = space.empty() &&
                  (base == "mbarrier" || base == "fence" || base == "tcgen05");
  if (!isInWindow && !isObject && address.kinds == Value::Number)
    refuse("`" + opcode +
           "` uses an address that is a number and comes from "
           "no argument; pass the buffer, or a scratch buffer of the plan");
}

/// `operand` is read as data, of whatever use.
void Analysis::checkData(Function &in, StringRef opcode, Operand operand) {
  if (!isChecking || !get(in, operand).tells())
    return;
  StringRef base = opcode.split('.').first;
  if (base == "atom" || base == "red" || base == "st")
    return refuse(called(get(in, operand)) + " is written as data (`" + opcode +
                  "`); where a buffer lies is no result");
  refuse(called(get(in, operand)) + " is used as data (`" + opcode +
         "`); an address may be added to, kept whole, compared within its "
         "buffer and used to reach it, and nothing else");
}

/// Of an instruction that reaches no memory through a pointer. What only
/// computes may take an address: what it makes of it is followed.
void Analysis::checkOperands(Function &in, StringRef opcode,
                             llvm::ArrayRef<Operand> operands) {
  if (!isChecking || operands.empty())
    return;
  StringRef base = opcode.split('.').first;
  if (!onlyComputes(opcode)) {
    for (Operand operand : operands)
      checkData(in, opcode, operand);
  } else if ((base == "shfl" || base == "vote" || base == "match" ||
              base == "redux" || base == "elect") &&
             opcode.contains(".sync")) {
    // Which lanes wait for one another.
    checkData(in, opcode, operands.back());
  }
  checkDescriptors(opcode, operands);
}

/// Matrices in shared memory are given by descriptors, as numbers.
void Analysis::checkDescriptors(StringRef opcode,
                                llvm::ArrayRef<Operand> operands) {
  StringRef base = opcode.split('.').first;
  if (!isChecking || operands.size() < 2 ||
      !(base == "wgmma" || (base == "tcgen05" && (opcode.contains(".mma") ||
                                                  opcode.contains(".cp")))))
    return;
  for (const Kept &kept : shared)
    if (!isLocalOnly(kept.place))
      return refuse("`" + opcode + "` reads shared memory in which " +
                    called(kept.value) + " may be kept");
}

void Analysis::checkCopied(Function &in, StringRef opcode, Operand source,
                           StringRef space, int64_t bytes) {
  // A tensor map is read as one; what it leads to is a buffer.
  if (!isChecking || llvm::is_contained(source, StringRef("{")))
    return;
  if (holdsAddress(get(in, source), placeOf(in, source), space, bytes))
    refuse("`" + opcode +
           "` copies memory in which the address of a buffer may be kept; "
           "keep it in memory that is only read and written by loads and "
           "stores");
}

void Analysis::checkWrite(Function &in, StringRef opcode, Operand operand) {
  if (!isChecking)
    return;
  Value address = get(in, operand);
  if (!address.variable.empty())
    refuse("the variable `" + address.variable +
           "` in device memory is used by `" + opcode +
           "`: no state may survive a launch; use a scratch buffer of the "
           "plan, shared memory, or make it const");
}

} // namespace fsr::pointers
