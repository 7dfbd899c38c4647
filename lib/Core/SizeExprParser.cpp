// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The grammar, loosest first:
//
//   conjunction := comparison ("&&" comparison)*        guards only
//   comparison  := sum (("==" | "!=" | "<" | …) sum)?   not associative
//   sum         := product (("+" | "-") product)*
//   product     := unary (("*" | "/" | "%") unary)*
//   unary       := "-" unary | primary
//   primary     := integer | name | call | "(" conjunction ")"
//
// "-5" is one integer, any other "-x" is read as "0 - x". Whether a part is a
// number or a condition is checked where it is used, so that the error can
// point at it.
//
//===----------------------------------------------------------------------===//

#include "SizeExprParser.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace fsr {

using Kind = SizeExpr::Kind;

static bool isCondition(Kind kind) {
  switch (kind) {
  case Kind::Equal:
  case Kind::NotEqual:
  case Kind::Less:
  case Kind::LessEqual:
  case Kind::Greater:
  case Kind::GreaterEqual:
  case Kind::And:
  case Kind::Aligned:
  case Kind::Disjoint:
    return true;
  default:
    return false;
  }
}

static std::optional<Kind> comparisonOf(llvm::StringRef symbol) {
  if (symbol == "==")
    return Kind::Equal;
  if (symbol == "!=")
    return Kind::NotEqual;
  if (symbol == "<")
    return Kind::Less;
  if (symbol == "<=")
    return Kind::LessEqual;
  if (symbol == ">")
    return Kind::Greater;
  if (symbol == ">=")
    return Kind::GreaterEqual;
  return std::nullopt;
}

SizeExpr SizeExprParser::make(Kind kind, std::vector<SizeExpr> operands,
                              std::string name, std::string name2,
                              int64_t value) {
  auto node = std::make_shared<SizeExpr::Node>();
  node->kind = kind;
  node->value = value;
  node->name = std::move(name);
  node->name2 = std::move(name2);
  node->operands = std::move(operands);
  return SizeExpr(std::move(node));
}

llvm::Error SizeExprParser::fail(size_t at, const llvm::Twine &message) const {
  return makeError(ErrorKind::BadInput,
                   "column " + llvm::Twine(at + 1) + ": " + message);
}

std::string SizeExprParser::got() const {
  switch (token) {
  case Token::End:
    return "got the end";
  case Token::Bad: {
    // Part of a longer UTF-8 character, or a control character: not printable
    // by itself.
    char c = lexeme.front();
    if (!llvm::isPrint(c))
      return "got byte 0x" +
             llvm::utohexstr(static_cast<unsigned char>(c), true);
    return "got '" + lexeme.str() + "'";
  }
  default:
    return "got '" + lexeme.take_front(40).str() +
           (lexeme.size() > 40 ? "…'" : "'");
  }
}

llvm::Error SizeExprParser::failHere(const llvm::Twine &wanted) const {
  return fail(start, got() + ", wanted " + wanted);
}

void SizeExprParser::next() {
  while (position < text.size() && llvm::isSpace(text[position]))
    ++position;
  start = position;
  if (position == text.size()) {
    token = Token::End;
    lexeme = {};
    return;
  }
  char c = text[position];
  if (llvm::isDigit(c)) {
    // Letters are taken along, so that "4x" and "0x10" are one bad number.
    while (position < text.size() &&
           (llvm::isAlnum(text[position]) || text[position] == '_'))
      ++position;
    token = Token::Integer;
  } else if (llvm::isAlpha(c) || c == '_') {
    while (position < text.size() &&
           (llvm::isAlnum(text[position]) || text[position] == '_' ||
            text[position] == '.'))
      ++position;
    token = Token::Name;
  } else {
    token = Token::Symbol;
    llvm::StringRef two = text.substr(position, 2);
    if (two == "==" || two == "!=" || two == "<=" || two == ">=" ||
        two == "&&" || two == "||")
      position += 2;
    else if (llvm::StringRef("+-*/%(),<>").contains(c))
      position += 1;
    else {
      token = Token::Bad;
      position += 1;
    }
  }
  lexeme = text.slice(start, position);
}

llvm::Error SizeExprParser::expect(llvm::StringRef symbol) {
  if (!at(symbol))
    return failHere("'" + symbol + "'");
  next();
  return llvm::Error::success();
}

llvm::Error SizeExprParser::wantNumber(const Part &part) {
  if (!isCondition(part.expr.kind()))
    return llvm::Error::success();
  return fail(part.begin, "got a condition, wanted a number");
}

llvm::Error SizeExprParser::wantCondition(const Part &part) {
  if (isCondition(part.expr.kind()))
    return llvm::Error::success();
  return fail(part.begin,
              "got a number, wanted a comparison, aligned or disjoint");
}

llvm::Expected<SizeExpr> SizeExprParser::run() {
  if (text.size() > maxLength)
    return makeError(ErrorKind::BadInput, "expression of " +
                                              llvm::Twine(text.size()) +
                                              " characters, wanted at most " +
                                              llvm::Twine(maxLength));
  next();
  Result result = parseConjunction();
  if (!result)
    return result.takeError();
  if (at("||"))
    return fail(start, "got '||', which is not supported; state each "
                       "condition that must hold, joined by '&&'");
  if (token != Token::End)
    return failHere("an operator or the end");
  llvm::Error wrong = grammar == SizeExpr::Grammar::Guard
                          ? wantCondition(*result)
                          : wantNumber(*result);
  if (wrong)
    return wrong;
  return result->expr;
}

llvm::Expected<SizeExprParser::Part>
SizeExprParser::binary(Kind kind, Part left, Part right) {
  unsigned deepest = std::max(left.depth, right.depth) + 1;
  if (deepest > maxDepth)
    return fail(left.begin, "more than " + llvm::Twine(maxDepth) +
                                " operators inside one another");
  std::vector<SizeExpr> operands{std::move(left.expr), std::move(right.expr)};
  return Part{make(kind, std::move(operands)), left.begin, deepest};
}

SizeExprParser::Result SizeExprParser::parseConjunction() {
  Result left = parseComparison();
  while (left && at("&&")) {
    if (grammar == SizeExpr::Grammar::Size)
      return fail(start, "got '&&', which only a guard may use");
    if (llvm::Error wrong = wantCondition(*left))
      return wrong;
    next();
    Result right = parseComparison();
    if (!right)
      return right;
    if (llvm::Error wrong = wantCondition(*right))
      return wrong;
    left = binary(Kind::And, std::move(*left), std::move(*right));
  }
  return left;
}

SizeExprParser::Result SizeExprParser::parseComparison() {
  Result left = parseSum();
  if (!left || token != Token::Symbol)
    return left;
  std::optional<Kind> kind = comparisonOf(lexeme);
  if (!kind)
    return left;
  if (grammar == SizeExpr::Grammar::Size)
    return fail(start, got() + ", which only a guard may use");
  if (llvm::Error wrong = wantNumber(*left))
    return wrong;
  next();
  Result right = parseSum();
  if (!right)
    return right;
  if (llvm::Error wrong = wantNumber(*right))
    return wrong;
  if (token == Token::Symbol && comparisonOf(lexeme))
    return fail(start, got() + " behind a comparison; join two comparisons "
                               "with '&&'");
  return binary(*kind, std::move(*left), std::move(*right));
}

SizeExprParser::Result SizeExprParser::parseSum() {
  Result left = parseProduct();
  while (left && (at("+") || at("-"))) {
    Kind kind = at("+") ? Kind::Add : Kind::Sub;
    if (llvm::Error wrong = wantNumber(*left))
      return wrong;
    next();
    Result right = parseProduct();
    if (!right)
      return right;
    if (llvm::Error wrong = wantNumber(*right))
      return wrong;
    left = binary(kind, std::move(*left), std::move(*right));
  }
  return left;
}

SizeExprParser::Result SizeExprParser::parseProduct() {
  Result left = parseUnary();
  while (left && (at("*") || at("/") || at("%"))) {
    Kind kind = at("*") ? Kind::Mul : at("/") ? Kind::Div : Kind::Mod;
    if (llvm::Error wrong = wantNumber(*left))
      return wrong;
    next();
    Result right = parseUnary();
    if (!right)
      return right;
    if (llvm::Error wrong = wantNumber(*right))
      return wrong;
    left = binary(kind, std::move(*left), std::move(*right));
  }
  return left;
}

SizeExprParser::Result SizeExprParser::parseUnary() {
  if (!at("-"))
    return parsePrimary();
  if (depth == maxDepth)
    return fail(start, "more than " + llvm::Twine(maxDepth) +
                           " levels inside one another");
  size_t begin = start;
  next();
  if (token == Token::Integer) {
    // Read with its sign: the least 64-bit integer has no positive twin.
    int64_t value = 0;
    std::string digits = "-" + lexeme.str();
    if (llvm::StringRef(digits).getAsInteger(10, value))
      return fail(begin, "got '" + digits.substr(0, 40) +
                             "', wanted a 64-bit integer in decimal digits");
    next();
    return Part{SizeExpr::integer(value), begin, 1};
  }
  ++depth;
  Result operand = parseUnary();
  --depth;
  if (!operand)
    return operand;
  if (llvm::Error wrong = wantNumber(*operand))
    return wrong;
  return binary(Kind::Sub, Part{SizeExpr::integer(0), begin, 1},
                std::move(*operand));
}

SizeExprParser::Result SizeExprParser::parsePrimary() {
  size_t begin = start;
  if (token == Token::Integer) {
    int64_t value = 0;
    if (lexeme.getAsInteger(10, value))
      return failHere("a 64-bit integer in decimal digits");
    next();
    return Part{SizeExpr::integer(value), begin, 1};
  }
  if (token == Token::Name) {
    llvm::StringRef name = lexeme;
    next();
    if (at("("))
      return parseCall(name, begin);
    llvm::SmallVector<llvm::StringRef, 4> pieces;
    name.split(pieces, '.');
    for (llvm::StringRef piece : pieces)
      if (piece.empty() || llvm::isDigit(piece.front()))
        return fail(begin, "got '" + name.take_front(40) +
                               "', wanted names joined by single dots");
    return Part{make(Kind::Name, {}, name.str()), begin, 1};
  }
  if (!at("("))
    return failHere("a name or a number");
  if (depth == maxDepth)
    return fail(start, "more than " + llvm::Twine(maxDepth) +
                           " levels inside one another");
  next();
  ++depth;
  Result inner = parseConjunction();
  --depth;
  if (!inner)
    return inner;
  if (at("||"))
    return fail(start, "got '||', which is not supported; state each "
                       "condition that must hold, joined by '&&'");
  if (llvm::Error wrong = expect(")"))
    return wrong;
  inner->begin = begin;
  return inner;
}

llvm::Expected<std::string> SizeExprParser::bufferName() {
  if (token != Token::Name || lexeme.contains('.'))
    return failHere("the name of a buffer");
  std::string name = lexeme.str();
  next();
  return name;
}

SizeExprParser::Result SizeExprParser::parseSumOperand() {
  Result operand = parseSum();
  if (!operand)
    return operand;
  if (llvm::Error wrong = wantNumber(*operand))
    return wrong;
  return operand;
}

SizeExprParser::Result SizeExprParser::parseCall(llvm::StringRef function,
                                                 size_t begin) {
  bool guardOnly = function == "aligned" || function == "disjoint";
  std::optional<Kind> kind;
  if (function == "ceildiv")
    kind = Kind::CeilDiv;
  else if (function == "min")
    kind = Kind::Min;
  else if (function == "max")
    kind = Kind::Max;
  if (!kind && !guardOnly)
    return fail(begin, "got function '" + function.take_front(40) +
                           "', wanted ceildiv, min or max" +
                           (grammar == SizeExpr::Grammar::Guard
                                ? ", aligned or disjoint"
                                : ""));
  if (guardOnly && grammar == SizeExpr::Grammar::Size)
    return fail(begin, "got '" + function + "', which only a guard may use");
  if (depth == maxDepth)
    return fail(start, "more than " + llvm::Twine(maxDepth) +
                           " levels inside one another");
  next(); // (
  ++depth;
  Result result = [&]() -> Result {
    if (kind) {
      Result left = parseSumOperand();
      if (!left)
        return left;
      if (llvm::Error wrong = expect(","))
        return wrong;
      Result right = parseSumOperand();
      if (!right)
        return right;
      return binary(*kind, std::move(*left), std::move(*right));
    }
    llvm::Expected<std::string> first = bufferName();
    if (!first)
      return first.takeError();
    if (llvm::Error wrong = expect(","))
      return wrong;
    if (function == "disjoint") {
      llvm::Expected<std::string> second = bufferName();
      if (!second)
        return second.takeError();
      return Part{
          make(Kind::Disjoint, {}, std::move(*first), std::move(*second)),
          begin, 1};
    }
    Result bytes = parseSumOperand();
    if (!bytes)
      return bytes;
    if (bytes->depth == maxDepth)
      return fail(bytes->begin, "more than " + llvm::Twine(maxDepth) +
                                    " operators inside one another");
    std::vector<SizeExpr> operands{std::move(bytes->expr)};
    return Part{make(Kind::Aligned, std::move(operands), std::move(*first)),
                begin, bytes->depth + 1};
  }();
  --depth;
  if (!result)
    return result;
  if (at(",") && function != "disjoint" && kind)
    return fail(start, "got a third operand, wanted exactly two of '" +
                           function + "'");
  if (llvm::Error wrong = expect(")"))
    return wrong;
  result->begin = begin;
  return result;
}

} // namespace fsr
