// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The integer family between its files. An instruction's modifiers are taken
// from left to right in the order that the ISA gives them; what is left over is
// a form that is not supported. Handlers exist for each set of CPU features;
// which is taken is decided when an instruction is decoded.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_INTEGER_H
#define FSR_LIB_PTX_INTEGER_H

#include "Decode.h"
#include "Float.h"
#include "Warp.h"

#include <type_traits>

namespace fsr::ptx {

/// What a lane of a slot holds a T in.
template <typename T>
using CellOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// How comparisons and logic of predicates are told to their handlers, in
/// `Op::immediate`.
enum IntegerFlags : unsigned {
  IntegerLogic = 3,     ///< A `Logic`, with the last source.
  IntegerNegated = 4,   ///< The last source is.
  IntegerInverted = 8,  ///< What the handler compares is the opposite.
  IntegerFloatOne = 16, ///< `set` writes 1.0 rather than all ones.
};

/// What instructions for video do with each half or byte of words: the lower
/// bits of `Op::immediate`, with flags above.
enum class PartsOp : uint8_t {
  Add,
  Sub,
  Average,
  Difference,
  Min,
  Max,
  Equal,
  NotEqual,
  Less,
  LessOrEqual,
  Greater,
  GreaterOrEqual,
};
enum PartsFlags : unsigned {
  PartsWhat = 15,
  PartsSaturate = 16,
  PartsAdd = 32, ///< The sum of all and the third source.
};

/// Whether handlers of wide vectors are taken: where the CPU has them. Tests
/// compare both.
bool &takesWideIntegers();

class IntegerDecoder {
public:
  IntegerDecoder(Decoder &decoder, Op &op)
      : decoder(decoder), op(op), instruction(decoder.instruction()),
        opcode(instruction.opcode), rest(instruction.modifiers),
        wide(takesWideIntegers()) {}

  // IntegerArithmetic.cpp.
  Decoded sum();       ///< add sub
  Decoded carried();   ///< add sub mad with .cc, addc subc madc
  Decoded product();   ///< mul mad mul24 mad24
  Decoded plain();     ///< div rem sad
  Decoded extreme();   ///< min max
  Decoded magnitude(); ///< abs neg
  Decoded dot();       ///< dp2a dp4a
  // IntegerBits.cpp.
  Decoded logic(); ///< and or xor not cnot
  Decoded table(); ///< lop3
  Decoded shift(); ///< shl shr
  Decoded funnel();
  Decoded field(); ///< bfe bfi
  Decoded count(); ///< popc clz brev
  Decoded find();  ///< bfind
  Decoded mask();  ///< bmsk szext
  Decoded nth();   ///< fns
  Decoded permute();
  Decoded parts(); ///< vadd2 vadd4 vsub2… vset4
  // IntegerCompare.cpp.
  Decoded setPredicate();
  Decoded set();
  Decoded select(); ///< selp
  Decoded selectBySign();
  // IntegerMove.cpp.
  Decoded move();

private:
  Decoded compare(bool isPredicate); ///< setp set
  bool take(llvm::StringRef modifier);
  /// Takes one of `names`; their index.
  std::optional<unsigned> takeOf(llvm::ArrayRef<llvm::StringRef> names);
  /// False, after `fail`, where no type of `allowed` comes next.
  bool takeType(Type &type, llvm::ArrayRef<Type> allowed);
  /// The op of a form that is wholly read; operand 0 holds the results.
  Decoded finish(Handler run, llvm::ArrayRef<Type> results,
                 llvm::ArrayRef<Type> sources);

  Decoder &decoder;
  Op &op;
  const Instruction &instruction;
  llvm::StringRef opcode;
  llvm::ArrayRef<llvm::StringRef> rest;
  bool wide;
  /// Behind those that operands name.
  llvm::SmallVector<Slot, 2> moreResults, moreSources;
  /// The last source may be `!%p`; sets IntegerNegated.
  bool lastMayBeNegated = false;
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_INTEGER_H
