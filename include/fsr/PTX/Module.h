// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX text as read: declarations, and instructions as an opcode, its modifiers
// and its operands. Names of registers, variables and labels are resolved, with
// the scopes that `{ }` opens; what an instruction means is not looked at here.
// The PTX ISA is the reference: versions 6.0 to 9.0 as NVRTC, nvcc, clang and
// MLIR's NVPTX back end write it.
//
// The text is hostile input: the parser caps sizes and depth, and ends in one
// message with line and column at worst.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_PTX_MODULE_H
#define FSR_PTX_MODULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsr::ptx {

/// From 1; 0 where not known.
struct Location {
  unsigned line = 0, column = 0;
};

enum class Space : uint8_t {
  Generic, ///< No space named.
  Global,
  Shared,        ///< `.shared`, `.shared::cta`
  SharedCluster, ///< `.shared::cluster`
  Local,
  Param,
  Const,
};

/// The fundamental types. `x2` types are named as PTX does.
enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F32x2,
  F64,
  E4M3,
  E5M2,
  E4M3x2,
  E5M2x2,
  U16x2,
  S16x2,
};
/// "f16x2"; without the dot.
llvm::StringRef nameOf(Type type);
/// Of a modifier without its dot.
std::optional<Type> parseType(llvm::StringRef name);
/// 1 for a predicate.
unsigned bitWidth(Type type);
bool isFloat(Type type);  ///< f16 to f64 and the packed ones.
bool isSigned(Type type); ///< s8 to s64, s16x2.

struct RegisterDecl {
  std::string name; ///< "%r12"
  Type type = Type::None;
};

/// A value of a variable's initialiser.
struct InitialValue {
  uint64_t bits = 0; ///< One element, little end first.
  /// The address of a variable or function, plus `bits`; empty: a number.
  std::string symbol;
  bool isGeneric = false; ///< `generic(symbol)`
  /// `0xFF00(symbol)`: the element is these bits of the address, shifted down
  /// to the lowest one; 0: the whole address.
  uint64_t mask = 0;
};

/// A variable or a parameter. A `.reg` parameter of a `.func` has
/// `Space::Generic` and is among the function's registers as well.
struct Variable {
  std::string name;
  Location location;
  Space space = Space::Generic;
  Type type = Type::None;
  uint64_t alignment = 0; ///< Bytes; the type's own where none is written.
  /// Of the whole variable; 0 for an array without a size (`.extern .shared`).
  uint64_t bytes = 0;
  bool isExtern = false, isVisible = false;
  bool isUnsizedArray = false;
  std::vector<InitialValue> initial; ///< The rest is zero.
};

struct Operand {
  enum class Kind : uint8_t {
    None,
    Register,      ///< `index`: of the function's registers.
    Integer,       ///< `bits`, sign-extended to 64 bits.
    Float,         ///< `bits`: of a double (a 0f literal widened exactly).
    Single,        ///< `bits`: the 32 bits of a 0f literal.
    Special,       ///< `name`: "%tid.x".
    Variable,      ///< The address of `name`, plus `bits`.
    Function,      ///< `name`.
    Label,         ///< `index`: an instruction of the function.
    Address,       ///< `[...]`; `elements[0]` is the base, `bits` the offset; a
                   ///< tensor's coordinates follow as one vector.
    Vector,        ///< `{a, b}` in `elements`; also the name of a vector
                   ///< register, whose parts are registers "%v.x", "%v.y"….
    Sink,          ///< `_`
    Targets,       ///< Of `brx.idx` and `call`: `name` of a label list.
    Parenthesised, ///< `(a, b)` of a call, in `elements`.
    Pair,          ///< `%p|%q`: two results in `elements`; one may be a sink.
  } kind = Kind::None;
  bool isNegated = false; ///< `!%p`, `-%r`.
  /// `.b0`..`.h1` after a register, `.unified` after an address and the like,
  /// without the dot.
  std::string selector;
  uint32_t index = 0;
  uint64_t bits = 0;
  std::string name;
  std::vector<Operand> elements;

  bool isRegister() const { return kind == Kind::Register; }
};

struct Instruction {
  Instruction() = default;
  Instruction(const Instruction &) = default;
  Instruction &operator=(const Instruction &) = default;
  /// A vector that grows would copy without the promise.
  Instruction(Instruction &&) noexcept = default;
  Instruction &operator=(Instruction &&) noexcept = default;

  llvm::StringRef opcode; ///< "ld"
  /// Without their dots: {"global", "v4", "f32"}; `::` stays inside one.
  llvm::SmallVector<llvm::StringRef, 4> modifiers;
  llvm::SmallVector<Operand, 4> operands;
  /// `@%p` and `@!%p`: an index of a register.
  std::optional<uint32_t> guard;
  bool isGuardNegated = false;
  Location location;
  /// `.loc`: an index into `Module::files` from 1 on, and its line; 0: none.
  unsigned file = 0, line = 0;
  /// Where code of another file was inlined: the place in the kernel's own
  /// file that it comes from. Else the same as `file` and `line`.
  unsigned siteFile = 0, siteLine = 0;

  bool has(llvm::StringRef modifier) const {
    for (llvm::StringRef one : modifiers)
      if (one == modifier)
        return true;
    return false;
  }
};

/// `.branchtargets`, `.calltargets`, `.callprototype` (which lists nothing).
struct LabelList {
  std::string name;
  std::vector<uint32_t> targets;      ///< Instruction indices.
  std::vector<std::string> functions; ///< Of `.calltargets`.
};

struct Function {
  std::string name;
  Location location;
  bool isEntry = false, isExtern = false; ///< Extern: declared, no body.
  std::vector<Variable> results, parameters;
  std::vector<RegisterDecl> registers;
  /// What is declared inside: `.local`, `.shared`, `.param`… `.shared`
  /// ones are one per block, whatever scope they stand in. Names are unique:
  /// those of inner scopes carry a suffix.
  std::vector<Variable> variables;
  std::vector<Instruction> code;
  std::vector<LabelList> labelLists;
  /// Performance directives; 0: not given.
  std::array<unsigned, 3> maxThreads{}, requiredThreads{}, requiredCluster{};
  unsigned minBlocks = 0, maxRegisters = 0, maxClusterRank = 0;
};

struct Module {
  std::string text; ///< What the StringRefs point into.
  unsigned versionMajor = 0, versionMinor = 0;
  std::string target; ///< "sm_90a"
  unsigned addressBits = 64;
  std::vector<Variable> variables; ///< Of module scope.
  std::vector<Function> functions;
  std::vector<std::string> files; ///< `.file`, at its number; [0] is empty.

  const Function *findFunction(llvm::StringRef name) const;
  const Variable *findVariable(llvm::StringRef name) const;
  /// The line of the text, trimmed, for messages.
  llvm::StringRef lineText(unsigned line) const;
};

/// Reads a module. Errors (BadInput): "LINE:COLUMN: message", the first one.
llvm::Expected<std::unique_ptr<Module>> parseModule(llvm::StringRef text);

} // namespace fsr::ptx

#endif // FSR_PTX_MODULE_H
