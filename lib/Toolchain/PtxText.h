// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX as far as the contract needs it: words, statements, module variables,
// functions with their parameters. No grammar is checked, ptxas did that; what
// does not fit this reading is refused, so that nothing hides behind it. All
// pieces point into the text, which has to stay.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_PTXTEXT_H
#define FSR_LIB_TOOLCHAIN_PTXTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace fsr {

using PtxWords = llvm::SmallVector<llvm::StringRef, 12>;

/// What `.param .u64 name` declares.
struct PtxParameter {
  enum Kind { Integer, Float, Bytes };
  llvm::StringRef name;
  Kind kind = Integer;
  unsigned bytes = 0; ///< 0: not understood.
};

struct PtxFunction {
  llvm::StringRef name;
  bool isEntry = false;
  std::vector<PtxParameter> parameters;
  std::vector<llvm::StringRef> results;
  PtxWords directives; ///< Behind the parameters: ".maxntid", "128", ….
  std::vector<PtxWords> body;

  /// The numbers behind a directive such as ".maxntid"; what is not written is
  /// 1. Nothing where it is not there.
  std::optional<std::array<int64_t, 3>> numbersOf(llvm::StringRef what) const;
};

struct PtxVariable {
  bool isConst = false; ///< In .const space.
  bool initialised = false;
  uint64_t bytes = 0; ///< At the least; 0 where the declaration does not say.
};

struct PtxModule {
  llvm::StringMap<PtxVariable> variables;
  /// Names whose address another variable's initialiser holds.
  std::vector<llvm::StringRef> initialisers;
  std::vector<PtxFunction> functions; ///< Those that have a body.
  std::vector<llvm::StringRef> externs;
  /// Bytes of the variables in shared memory, the fewest where several have one
  /// name; 0 where that is not known, as of those that lie upon each other.
  llvm::StringMap<uint64_t> shared;
  llvm::StringMap<bool> local; ///< Names of variables in local memory.

  const PtxFunction *findEntry(llvm::StringRef name) const;
};

/// Reads `text`; nothing, and `refusal`, where the contract is broken already.
std::optional<PtxModule> readPtx(llvm::StringRef text, std::string &refusal);

bool isPtxName(llvm::StringRef word);

/// A statement without its guard, which is returned by `guard` ("%p1").
llvm::ArrayRef<llvm::StringRef> withoutGuard(llvm::ArrayRef<llvm::StringRef>,
                                             llvm::StringRef *guard = nullptr);

/// One operand: "%r1", "{%r1, %r2}", "[%rd1+8]", "-16".
using PtxOperand = llvm::ArrayRef<llvm::StringRef>;

/// What stands behind an opcode, split at commas outside of brackets.
llvm::SmallVector<PtxOperand, 6> operandsOf(PtxOperand words);

/// The value of an integer, "16", "-16" or "0x10U".
std::optional<int64_t> literal(PtxOperand operand);

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_PTXTEXT_H
