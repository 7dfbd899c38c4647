// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From instructions to ops. Each family of instructions has one function that
// knows it: it looks at the opcode, and either leaves it to the next family, or
// fills the op, or says what is wrong. The helpers turn operands into slots.
//
// Forms are read as (type, width, vector, space, rounding, saturation, ftz…),
// never as whole strings; a modifier that a family does not know makes the form
// unsupported, since a guess could be a wrong answer.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_DECODE_H
#define FSR_LIB_PTX_DECODE_H

#include "Program.h"

#include <map>
#include <tuple>

namespace fsr::ptx {

/// What a family says of an instruction.
enum class Decoded {
  NotMine, ///< The opcode is another family's.
  Done,
  Failed, ///< `Decoder::fail` was called.
};

/// Where variables lie and what functions there are; of the loaded module.
class LinkContext {
public:
  virtual ~LinkContext();
  /// The address of a module's or a function's variable, as a generic one and
  /// as one of its own space.
  struct Place {
    Space space = Space::Generic;
    uint64_t address = 0; ///< In its space's own terms; shared and local ones
                          ///< are offsets.
  };
  virtual std::optional<Place> findVariable(const Function &function,
                                            llvm::StringRef name) = 0;
  virtual const Program *findProgram(llvm::StringRef function) = 0;
  /// The number that stands for a function's address.
  virtual std::optional<uint64_t> functionAddress(llvm::StringRef function) = 0;
};

SlotLayout layoutOf(Type type);

class Decoder {
public:
  Decoder(Program &program, const Function &function, LinkContext &link)
      : program(program), function(function), link(link) {}

  /// Fills `program`; where a form is not supported, `program.unsupported`.
  void run();

  // For the families. ---------------------------------------------------------

  const Instruction &instruction() const { return *current; }
  const Function &owner() const { return function; }
  LinkContext &linker() { return link; }

  /// Sets the message "LINE: `text`: why"; returns Failed.
  Decoded fail(const llvm::Twine &why);
  Decoded failModifier(llvm::StringRef modifier);
  /// Fails unless the instruction has so many operands.
  bool expectOperands(size_t count);

  /// The slot of a register operand that is written, of `type`'s width. A sink
  /// gets a slot of its own. Wrong kinds call `fail` and give `noSlot`.
  Slot resultSlot(const Operand &operand, Type type);
  /// The slot of a source: a register, an immediate as a constant of `type`, a
  /// special register, the address of a variable.
  Slot sourceSlot(const Operand &operand, Type type);
  /// A constant of `bits`, in all lanes, in the layout of `width` bits (1, 8,
  /// 16, 32 or 64).
  Slot constantSlot(uint64_t bits, unsigned width);
  /// The slot of a special register that does not change in a thread's life.
  Slot specialSlot(llvm::StringRef name);
  /// A new slot that nothing else uses.
  Slot temporarySlot();
  /// The carry flag, a predicate.
  Slot carrySlot();
  /// The declared type of a register operand.
  Type registerType(const Operand &operand) const;
  /// Base slot (64 or 32 bits wide, `isWide` tells) and offset of `[...]`; an
  /// absolute address has a constant base.
  struct AddressParts {
    Slot base = noSlot;
    int64_t offset = 0;
    bool isWide = true;
    /// Of a named variable: the space it lies in, which goes before what the
    /// instruction says: parameters of calls lie in local memory. Local
    /// addresses are of the lane's whole local memory (the frame's base is in
    /// them), shared ones offsets, those of a kernel's parameters offsets,
    /// those of constants as generic ones.
    std::optional<Space> space;
  };
  AddressParts address(const Operand &operand);

  /// The bits of an operand that is a number: a literal, or a register whose
  /// only definition is an unguarded `mov` of one.
  std::optional<uint64_t> literalOf(const Operand &operand);

  /// Results first: `op.slots` and the two counts.
  void setSlots(Op &op, llvm::ArrayRef<Slot> results,
                llvm::ArrayRef<Slot> sources);
  /// Ordinary shape: operand 0 is the result of `resultType`, the rest sources
  /// of `sourceTypes`. False where `fail` was called.
  bool setOperands(Op &op, Type resultType, llvm::ArrayRef<Type> sourceTypes);

  /// An info that lives as long as the program.
  template <typename T>
  T *makeInfo() {
    auto made = std::make_shared<T>();
    T *raw = made.get();
    program.infos.push_back(std::move(made));
    return raw;
  }
  Program &result() { return program; }

private:
  std::vector<SlotLayout> layouts; ///< Of all slots.
  std::vector<Slot> registerSlots;
  Program &program;
  const Function &function;
  LinkContext &link;
  const Instruction *current = nullptr;
  /// By register, once they were asked for: how often it is defined, and the
  /// instruction that does.
  std::vector<std::pair<unsigned, const Instruction *>> definitions;
  Slot special(llvm::StringRef name, unsigned width, uint64_t offset);
  Slot addressSlot(llvm::StringRef name, uint64_t offset, unsigned width,
                   std::optional<Space> *space);
  void layOutFrame();

  std::map<std::pair<uint64_t, unsigned>, Slot> constantSlots;
  std::map<std::tuple<std::string, unsigned, uint64_t>, Slot> specialSlots;
  Slot carry = noSlot;
  bool hasFailed = false;
};

/// After decoding: `layouts` of the slots as numbered so far. Renumbers them,
/// marks what may be uninitialised and what approximate values steer, and makes
/// the steps. `registers` are the slots of the function's registers.
void assignSlots(Program &program, llvm::ArrayRef<SlotLayout> layouts,
                 llvm::ArrayRef<uint32_t> registers);

// The families. Each decodes the current instruction into `op`.
/// add sub mul mad (integer), mad24 mul24 sad div rem abs neg min max, and or
/// xor not cnot lop3 shl shr shf, bfe bfi bfind bmsk brev clz popc fns szext
/// prmt, dp2a dp4a, addc subc madc (carry), setp set selp slct of integers,
/// mov of all kinds (also vectors packed and unpacked), vector video is not.
Decoded decodeInteger(Decoder &decoder, Op &op);
/// f16, f16x2, bf16, bf16x2, f32, f32x2, f64: add sub mul fma mad div rcp sqrt
/// rsqrt ex2 lg2 sin cos tanh neg abs min max copysign testp; setp set selp of
/// floats; cvt of all types (integers as well), cvt.pack.
Decoded decodeFloat(Decoder &decoder, Op &op);
/// ld ldu st cvta isspacep prefetch prefetchu discard applypriority
/// createpolicy atom red (with vectors), cp.async (not bulk) and its groups,
/// mapa.
Decoded decodeMemory(Decoder &decoder, Op &op);
/// bra brx ret exit trap brkpt call bar barrier fence membar nanosleep shfl
/// vote match redux activemask elect pmevent griddepcontrol setmaxnreg, reads
/// of special registers that change (%clock64, %globaltimer, %lanemask…).
Decoded decodeWarp(Decoder &decoder, Op &op);
/// mma ldmatrix stmatrix movmatrix wmma.
Decoded decodeTensor(Decoder &decoder, Op &op);
/// mbarrier cp.async.bulk cp.async.mbarrier fence.proxy, barrier.cluster,
/// tensormap.
Decoded decodeAsync(Decoder &decoder, Op &op);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_DECODE_H
