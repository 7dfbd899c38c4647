// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Constant expressions: 64-bit integers, signed unless a suffix or the size of
// a literal says otherwise, and doubles, with C's operators and precedence.
// Unlike C's, `%` and the bitwise operators give unsigned numbers. A `0f`
// literal keeps its 32 bits and takes part in nothing but a sign.
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "llvm/ADT/bit.h"

#include <cstdlib>

namespace fsr::ptx {

namespace {

/// C's precedence; 0: none. The conditional is below all of them.
int tightnessOf(const Token &token) {
  if (token.kind != Token::Kind::Punct)
    return 0;
  struct Entry {
    llvm::StringLiteral op;
    int tightness;
  };
  constexpr Entry entries[] = {
      {"||", 1}, {"&&", 2}, {"|", 3}, {"^", 4},  {"&", 5},  {"==", 6},
      {"!=", 6}, {"<", 7},  {">", 7}, {"<=", 7}, {">=", 7}, {"<<", 8},
      {">>", 8}, {"+", 9},  {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10},
  };
  for (const Entry &entry : entries)
    if (token.text == entry.op)
      return entry.tightness;
  return 0;
}

double asDouble(const Constant &value) {
  return llvm::bit_cast<double>(value.bits);
}

Constant makeInteger(uint64_t bits, bool isUnsigned = false) {
  Constant made;
  made.kind = isUnsigned ? Constant::Kind::Unsigned : Constant::Kind::Signed;
  made.bits = bits;
  return made;
}

Constant makeDouble(double value) {
  Constant made;
  made.kind = Constant::Kind::Double;
  made.bits = llvm::bit_cast<uint64_t>(value);
  return made;
}

} // namespace

bool Parser::startsConstant() const {
  switch (token.kind) {
  case Token::Kind::Integer:
  case Token::Kind::Real:
    return true;
  case Token::Kind::Name:
    return token.text == "WARP_SZ";
  case Token::Kind::Punct:
    return token.text == "-" || token.text == "+" || token.text == "~" ||
           token.text == "!" || token.text == "(";
  default:
    return false;
  }
}

bool Parser::parseLiteral(Constant &into) {
  llvm::StringRef text = token.text;
  Location location = token.location;
  if (token.kind == Token::Kind::Name && text == "WARP_SZ") {
    into = makeInteger(32);
    advance();
    return true;
  }
  if (token.kind == Token::Kind::Integer) {
    bool isUnsigned = text.consume_back("U") || text.consume_back("u");
    unsigned radix = 10;
    if (text.consume_front("0x") || text.consume_front("0X"))
      radix = 16;
    else if (text.consume_front("0b") || text.consume_front("0B"))
      radix = 2;
    else if (text.size() > 1 && text.front() == '0')
      radix = 8;
    uint64_t value = 0;
    if (text.getAsInteger(radix, value))
      return fail(location, "`" + token.text.take_front(40) +
                                "` is no number of 64 bits");
    into = makeInteger(value, isUnsigned || int64_t(value) < 0);
    advance();
    return true;
  }
  if (token.kind != Token::Kind::Real)
    return failExpected("a constant");
  uint64_t bits = 0;
  if (text.starts_with_insensitive("0f") && text.size() == 10) {
    text.drop_front(2).getAsInteger(16, bits);
    into.kind = Constant::Kind::Single;
    into.bits = bits;
  } else if (text.starts_with_insensitive("0d") && text.size() == 18) {
    text.drop_front(2).getAsInteger(16, bits);
    into.kind = Constant::Kind::Double;
    into.bits = bits;
  } else {
    if (text.size() > 4096)
      return fail(location, "a number with more than 4096 digits");
    into = makeDouble(std::strtod(text.str().c_str(), nullptr));
  }
  advance();
  return true;
}

bool Parser::parseUnary(Constant &into, unsigned depth) {
  if (depth > limits::depth)
    return fail(token.location, "an expression nested deeper than " +
                                    llvm::Twine(limits::depth));
  Location location = token.location;
  if (accept("(")) {
    // A cast, or a parenthesis.
    if (token.isDot("s64") || token.isDot("u64")) {
      bool isUnsigned = token.text == "u64";
      advance();
      if (!expect(")") || !parseUnary(into, depth + 1))
        return false;
      if (!into.isInteger())
        return fail(location, "a cast of a number that is no integer");
      into = makeInteger(into.bits, isUnsigned);
      return true;
    }
    return parseConstant(into, depth + 1) && expect(")");
  }
  if (token.kind == Token::Kind::Punct &&
      (token.text == "-" || token.text == "+" || token.text == "~" ||
       token.text == "!")) {
    char op = token.text.front();
    advance();
    if (!parseUnary(into, depth + 1))
      return false;
    if (op == '-') {
      if (into.isInteger())
        into.bits = 0 - into.bits;
      else
        into.bits ^= into.kind == Constant::Kind::Single ? uint64_t(1) << 31
                                                         : uint64_t(1) << 63;
    } else if (op != '+') {
      if (!into.isInteger())
        return fail(location,
                    "`" + llvm::Twine(op) + "` of a number that is no integer");
      into = op == '!' ? makeInteger(into.bits == 0)
                       : makeInteger(~into.bits,
                                     into.kind == Constant::Kind::Unsigned);
    }
    return true;
  }
  return parseLiteral(into);
}

/// A comparison by its name.
template <typename T>
static std::optional<bool> compare(llvm::StringRef op, T a, T b) {
  if (op == "==")
    return a == b;
  if (op == "!=")
    return a != b;
  if (op == "<")
    return a < b;
  if (op == ">")
    return a > b;
  if (op == "<=")
    return a <= b;
  if (op == ">=")
    return a >= b;
  return std::nullopt;
}

bool Parser::applyBinary(llvm::StringRef op, Location location, Constant &left,
                         const Constant &right) {
  if (left.kind == Constant::Kind::Single ||
      right.kind == Constant::Kind::Single)
    return fail(location, "a `0f` literal in an expression");
  if (left.isInteger() != right.isInteger())
    return fail(location, "`" + op + "` of an integer and of what is none");
  if (!left.isInteger()) {
    double a = asDouble(left), b = asDouble(right);
    if (std::optional<bool> is = compare(op, a, b))
      left = makeInteger(*is);
    else if (op == "+")
      left = makeDouble(a + b);
    else if (op == "-")
      left = makeDouble(a - b);
    else if (op == "*")
      left = makeDouble(a * b);
    else if (op == "/")
      left = makeDouble(a / b);
    else
      return fail(location, "`" + op + "` of numbers that are no integers");
    return true;
  }

  uint64_t a = left.bits, b = right.bits;
  bool isLeftUnsigned = left.kind == Constant::Kind::Unsigned;
  bool isUnsigned = isLeftUnsigned || right.kind == Constant::Kind::Unsigned;
  if (std::optional<bool> is = isUnsigned
                                   ? compare(op, a, b)
                                   : compare(op, int64_t(a), int64_t(b))) {
    left = makeInteger(*is);
    return true;
  }
  if (op == "&&" || op == "||") {
    left = makeInteger(op == "&&" ? a != 0 && b != 0 : a != 0 || b != 0);
    return true;
  }
  if (op == "/" || op == "%") {
    if (b == 0)
      return fail(location, "a division by zero");
    if (op == "%") // Of unsigned numbers, whatever the operands are.
      left = makeInteger(a % b, true);
    else if (isUnsigned)
      left = makeInteger(a / b, true);
    else if (int64_t(b) == -1) // The one case that overflows.
      left = makeInteger(0 - a);
    else
      left = makeInteger(uint64_t(int64_t(a) / int64_t(b)));
    return true;
  }
  if (op == "<<" || op == ">>") {
    if (b >= 64)
      return fail(location,
                  "a shift by " + llvm::Twine(b) + " bits, wanted at most 63");
    uint64_t value = op == "<<"       ? a << b
                     : isLeftUnsigned ? a >> b
                                      : uint64_t(int64_t(a) >> b);
    left = makeInteger(value, isLeftUnsigned);
    return true;
  }
  if (op == "&" || op == "|" || op == "^") {
    left = makeInteger(op == "&" ? a & b : op == "|" ? a | b : a ^ b, true);
    return true;
  }
  left = makeInteger(op == "+" ? a + b : op == "-" ? a - b : a * b, isUnsigned);
  return true;
}

bool Parser::parseBinary(Constant &into, int tightness, unsigned depth) {
  if (!parseUnary(into, depth))
    return false;
  for (;;) {
    int own = tightnessOf(token);
    if (own == 0 || own < tightness)
      return true;
    llvm::StringRef op = token.text;
    Location location = token.location;
    advance();
    Constant right;
    if (!parseBinary(right, own + 1, depth + 1) ||
        !applyBinary(op, location, into, right))
      return false;
  }
}

bool Parser::parseConstant(Constant &into, unsigned depth) {
  Location location = token.location;
  if (!parseBinary(into, 1, depth))
    return false;
  if (!accept("?"))
    return true;
  if (!into.isInteger())
    return fail(location, "a condition that is no integer");
  bool takesFirst = into.bits != 0;
  Constant first, second;
  if (!parseConstant(first, depth + 1) || !expect(":") ||
      !parseConstant(second, depth + 1))
    return false;
  into = takesFirst ? first : second;
  return true;
}

bool Parser::parseOffset(uint64_t &offset) {
  while (token.is("+") || token.is("-")) {
    Location location = token.location;
    bool isMinus = token.text == "-";
    advance();
    Constant value;
    // Products bind tighter than the sum that the offset is a part of.
    if (!parseBinary(value, 10, 0))
      return false;
    if (!value.isInteger())
      return fail(location, "an offset that is no integer");
    offset += isMinus ? 0 - value.bits : value.bits;
  }
  return true;
}

} // namespace fsr::ptx
