// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The language in which a launch plan states its sizes: one text that the
// harness evaluates and the compiler emits as arithmetic at the launch site.
//
//   expr    := or-free conjunction of comparisons over sums of products
//   "ceildiv(x.size0, ROWS)"  "4 * TILE"  "x.size1 % 4 == 0 && aligned(x, 16)"
//
// Integers are 64-bit and signed. `/`, `%` and `ceildiv` round toward zero,
// floor modulo sign of the dividend, and up, as C and arith.ceildivsi do. Every
// overflow and every division by zero is an error of evaluation: it makes a
// guard false and a plan Rejected. Names are dotted identifiers (`x.size0`,
// `grid.x`, `TILE`). LLM text is parsed here, so depth and length are bounded.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_SIZEEXPR_H
#define FSR_CORE_SIZEEXPR_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsr {

class SizeExpr {
public:
  enum class Kind {
    Integer, ///< `value`
    Name,    ///< `name`
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    CeilDiv,
    Min,
    Max,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Aligned,  ///< aligned(buffer, bytes): `name`, operand 0
    Disjoint, ///< disjoint(a, b): `name`, `name2`
  };
  /// What may be written: a size has no comparisons, a guard must be one.
  enum class Grammar { Size, Guard };

  /// Parses `text`. An error says the column (from 1), got and wanted.
  static llvm::Expected<SizeExpr> parse(llvm::StringRef text, Grammar grammar);
  static SizeExpr integer(int64_t value);

  Kind kind() const { return node->kind; }
  int64_t value() const { return node->value; }
  llvm::StringRef name() const { return node->name; }
  llvm::StringRef name2() const { return node->name2; }
  size_t numOperands() const { return node->operands.size(); }
  const SizeExpr &operand(size_t i) const { return node->operands[i]; }

  /// What evaluation asks its surroundings for.
  struct Environment {
    virtual ~Environment();
    /// The value of a name, or nothing where it is not known.
    virtual std::optional<int64_t> lookup(llvm::StringRef name) const = 0;
    /// The address of a buffer modulo 2^63, for `aligned`; nothing: unknown.
    virtual std::optional<uint64_t> address(llvm::StringRef) const {
      return std::nullopt;
    }
    /// Whether two buffers share no byte; nothing: unknown.
    virtual std::optional<bool> disjoint(llvm::StringRef,
                                         llvm::StringRef) const {
      return std::nullopt;
    }
  };

  /// The value; comparisons give 0 or 1. Errors: an unknown name, overflow,
  /// division by zero; each names the sub-expression.
  llvm::Expected<int64_t> evaluate(const Environment &environment) const;

  /// Minimal parentheses; parse(print()) is the same expression.
  std::string print() const;

  /// Calls `visit` with each name once a use, buffers of aligned and disjoint
  /// included.
  void forEachName(llvm::function_ref<void(llvm::StringRef)> visit) const;

private:
  struct Node {
    Kind kind;
    int64_t value = 0;
    std::string name, name2;
    std::vector<SizeExpr> operands;
  };
  explicit SizeExpr(std::shared_ptr<const Node> node) : node(std::move(node)) {}
  friend class SizeExprParser;
  std::shared_ptr<const Node> node;
};

} // namespace fsr

#endif // FSR_CORE_SIZEEXPR_H
