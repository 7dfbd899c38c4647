// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Recursive-descent parser of size expressions, apart from their evaluation.
// Every level of recursion counts against one cap on depth, and left-leaning
// chains ("a + b + c…") count too, since printing and evaluating recurse over
// them.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_CORE_SIZEEXPRPARSER_H
#define FSR_LIB_CORE_SIZEEXPRPARSER_H

#include "fsr/Core/SizeExpr.h"

namespace fsr {

class SizeExprParser {
public:
  SizeExprParser(llvm::StringRef text, SizeExpr::Grammar grammar)
      : text(text), grammar(grammar) {}

  llvm::Expected<SizeExpr> run();

  static SizeExpr make(SizeExpr::Kind kind, std::vector<SizeExpr> operands = {},
                       std::string name = {}, std::string name2 = {},
                       int64_t value = 0);

private:
  static constexpr unsigned maxDepth = 64;
  static constexpr size_t maxLength = 4096;

  enum class Token { End, Integer, Name, Symbol, Bad };

  /// An expression that was read, with what the checks after it need.
  struct Part {
    SizeExpr expr;
    size_t begin;
    unsigned depth;
  };
  using Result = llvm::Expected<Part>;

  Result parseConjunction();
  Result parseComparison();
  Result parseSum();
  Result parseProduct();
  Result parseUnary();
  Result parsePrimary();
  Result parseCall(llvm::StringRef function, size_t begin);
  Result parseSumOperand();

  llvm::Expected<Part> binary(SizeExpr::Kind kind, Part left, Part right);
  llvm::Expected<std::string> bufferName();
  llvm::Error expect(llvm::StringRef symbol);
  llvm::Error wantNumber(const Part &part);
  llvm::Error wantCondition(const Part &part);

  void next();
  bool at(llvm::StringRef symbol) const {
    return token == Token::Symbol && lexeme == symbol;
  }
  std::string got() const;
  llvm::Error fail(size_t position, const llvm::Twine &message) const;
  llvm::Error failHere(const llvm::Twine &wanted) const;

  llvm::StringRef text;
  SizeExpr::Grammar grammar;
  size_t position = 0; ///< Behind the token.
  size_t start = 0;    ///< Of the token.
  Token token = Token::End;
  llvm::StringRef lexeme;
  unsigned depth = 0; ///< Of recursion.
};

} // namespace fsr

#endif // FSR_LIB_CORE_SIZEEXPRPARSER_H
