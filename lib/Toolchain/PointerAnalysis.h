// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The analysis of buffers' addresses: what it knows, and the parts into which
// it is divided. PointerUse.cpp goes through the code, PointerMemory.cpp
// through what memory holds, PointerSinks.cpp refuses what makes data of an
// address, and PointerArithmetic.cpp says what instructions make of one.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_POINTERANALYSIS_H
#define FSR_LIB_TOOLCHAIN_POINTERANALYSIS_H

#include "Contract.h"
#include "PointerValue.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

#include <map>

namespace fsr::pointers {

using llvm::StringRef;
using Operand = PtxOperand;

/// An address that was stored in shared or local memory.
struct Kept {
  Place place;
  int64_t bytes;
  Value value;
};

/// "v" of "v.x", a part of a vector, and of "%tid.x".
inline StringRef stemOf(StringRef name) { return name.split('.').first; }

/// Of the type at the end of `opcode`.
inline int64_t bytesOf(StringRef opcode) {
  for (auto [suffix, bytes] : {std::pair<StringRef, int64_t>{"64", 8},
                               {"32", 4},
                               {"16", 2},
                               {"8", 1},
                               {"128", 16}})
    if (opcode.ends_with(suffix))
      return bytes;
  return 0;
}

/// Whether the operand tells the cache what to keep.
inline bool isPolicy(StringRef opcode, Operand operand,
                     llvm::ArrayRef<Operand> operands) {
  return opcode.contains(".L2::cache_hint") &&
         operand.data() == operands.back().data();
}

class Analysis {
public:
  Analysis(const PtxModule &module, llvm::ArrayRef<KernelLaunch> launches);

  std::optional<std::string> run();

private:
  /// What a parameter holds, by offset.
  using Slots = std::map<int64_t, Value>;
  struct Function {
    const PtxFunction *source = nullptr;
    llvm::StringMap<Value> names;  ///< Registers and variables.
    llvm::StringMap<Slots> slots;  ///< Parameters, its own and those it passes.
    llvm::StringSet<> definitions; ///< Names that some statement sets.
    Slots results;
    bool isTaken = false; ///< Its address is used, so anyone may call it.
  };

  void findDefinitions(Function &in);
  void findTaken();
  void settle();
  void visit(Function &in, llvm::ArrayRef<StringRef> statement);
  void visitCall(Function &in, llvm::ArrayRef<StringRef> words);
  void visitLoad(Function &in, StringRef opcode,
                 llvm::ArrayRef<Operand> operands);
  void visitStore(Function &in, StringRef opcode,
                  llvm::ArrayRef<Operand> operands);
  Value loadParameter(Function &in, StringRef opcode, Operand address);
  static Value heldBy(const Slots &slots) {
    Value all;
    for (const auto &slot : slots)
      all.add(slot.second);
    return all;
  }
  /// What a load through `address`, into the parameters, may give.
  static Value throughHolder(const Value &address, bool isWhole) {
    Value held = plain(isWhole ? Value::Pointer : Value::Bits);
    held.shift = isWhole ? 0 : anyShift;
    held.buffers = address.buffers;
    held.variable = address.variable;
    return held;
  }
  Place placeOf(const Function &in, Operand address) const;
  void keep(std::vector<Kept> &memory, const Kept &kept);
  void storeParameter(Function &in, StringRef opcode, Operand address,
                      Operand stored);
  void visitMemory(Function &in, StringRef opcode,
                   llvm::ArrayRef<Operand> operands);
  void holdInMap(Function &in, StringRef opcode,
                 llvm::ArrayRef<Operand> operands);
  void checkAddress(Function &in, StringRef opcode, Operand operand,
                    StringRef space);
  void checkData(Function &in, StringRef opcode, Operand operand);
  void checkOperands(Function &in, StringRef opcode,
                     llvm::ArrayRef<Operand> operands);
  void checkDescriptors(StringRef opcode, llvm::ArrayRef<Operand> operands);
  void checkCopied(Function &in, StringRef opcode, Operand source,
                   StringRef space, int64_t bytes);
  bool meetsShared(const Place &place, int64_t bytes, const Kept &kept) const;
  bool holdsAddress(const Value &address, const Place &place, StringRef space,
                    int64_t bytes) const;
  /// Whether a tensor map that holds an address may lie there.
  bool reachesMap(const Value &address) const {
    return maps && (!address.buffers || address.buffers & maps);
  }
  /// A name that only a variable in local memory has, and the other way round.
  bool isLocalOnly(const Place &place) const {
    return module.local.contains(place.root) &&
           !module.shared.contains(place.root);
  }
  bool isSharedOnly(const Place &place) const {
    return module.shared.contains(place.root) &&
           !module.local.contains(place.root);
  }
  void checkWrite(Function &in, StringRef opcode, Operand address);
  void loadKept(Value &loaded, StringRef opcode, const Value &address,
                Place place, int64_t bytes, bool isPart);
  void compare(Function &in, StringRef opcode,
               llvm::ArrayRef<Operand> operands);
  Value compute(const Function &in, StringRef opcode,
                llvm::ArrayRef<Operand> operands) const;
  Value get(const Function &in, Operand operand) const;
  Value getName(const Function &in, StringRef name) const;
  void put(Function &in, Operand operand, const Value &value);
  void putName(Function &in, StringRef name, Value value) {
    Value &held = in.names[stemOf(name)];
    // A counter would grow bit by bit.
    if (round > 8 && value.width > held.width)
      value.width = anyWidth;
    changed |= held.add(value);
  }
  void refuse(const llvm::Twine &reason) {
    if (!refusal)
      refusal = reason.str();
  }
  std::string called(const Value &value) const;

  const PtxModule &module;
  std::vector<std::string> buffers; ///< Their names, by bit.
  llvm::StringMap<Function> functions;
  std::vector<Function *> order;
  /// The addresses in shared and local memory. Functions get those of each
  /// other's local memory.
  std::vector<Kept> shared, local;
  uint64_t maps = 0; ///< Buffers in which tensor maps hold addresses.
  unsigned round = 0;
  bool changed = false, isChecking = false;
  std::optional<std::string> refusal;
};

} // namespace fsr::pointers

#endif // FSR_LIB_TOOLCHAIN_POINTERANALYSIS_H
