// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Constant expressions: 64-bit integers, signed unless a suffix or the size of
// a literal says otherwise, and doubles, with C's operators and precedence.
// A `0f` literal keeps its 32 bits and takes part in nothing but a sign.
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "llvm/ADT/bit.h"

#include <cmath>
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
  switch (value.kind) {
  case Constant::Kind::Signed:
    return double(int64_t(value.bits));
  case Constant::Kind::Unsigned:
    return double(value.bits);
  case Constant::Kind::Double:
    return llvm::bit_cast<double>(value.bits);
  case Constant::Kind::Single:
    return llvm::bit_cast<float>(uint32_t(value.bits));
  }
  return 0;
}

bool isTrue(const Constant &value) {
  return value.isInteger() ? value.bits != 0 : asDouble(value) != 0;
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
      if (!into.isInteger()) {
        double value = std::trunc(asDouble(into));
        bool fits = isUnsigned ? value >= 0 && value < 0x1p64
                               : value >= -0x1p63 && value < 0x1p63;
        if (!fits)
          return fail(location, "a cast of a number that does not fit");
        into.bits = isUnsigned ? uint64_t(value) : uint64_t(int64_t(value));
      }
      into = makeInteger(into.bits, isUnsigned);
      return true;
    }
    if (token.isDot("f64")) {
      advance();
      if (!expect(")") || !parseUnary(into, depth + 1))
        return false;
      into = makeDouble(asDouble(into));
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
    switch (op) {
    case '-':
      if (into.isInteger())
        into.bits = 0 - into.bits;
      else
        into.bits ^= into.kind == Constant::Kind::Single ? uint64_t(1) << 31
                                                         : uint64_t(1) << 63;
      return true;
    case '!':
      into = makeInteger(!isTrue(into));
      return true;
    case '~':
      if (!into.isInteger())
        return fail(location, "`~` of a number that is no integer");
      into.bits = ~into.bits;
      return true;
    default:
      return true;
    }
  }
  return parseLiteral(into);
}

bool Parser::applyBinary(llvm::StringRef op, Location location, Constant &left,
                         const Constant &right) {
  if (left.kind == Constant::Kind::Single ||
      right.kind == Constant::Kind::Single)
    return fail(location, "a `0f` literal in an expression");
  if (op == "&&" || op == "||") {
    left = makeInteger(op == "&&" ? isTrue(left) && isTrue(right)
                                  : isTrue(left) || isTrue(right));
    return true;
  }
  if (!left.isInteger() || !right.isInteger()) {
    double a = asDouble(left), b = asDouble(right);
    if (op == "+")
      left = makeDouble(a + b);
    else if (op == "-")
      left = makeDouble(a - b);
    else if (op == "*")
      left = makeDouble(a * b);
    else if (op == "/")
      left = makeDouble(a / b);
    else if (op == "==")
      left = makeInteger(a == b);
    else if (op == "!=")
      left = makeInteger(a != b);
    else if (op == "<")
      left = makeInteger(a < b);
    else if (op == ">")
      left = makeInteger(a > b);
    else if (op == "<=")
      left = makeInteger(a <= b);
    else if (op == ">=")
      left = makeInteger(a >= b);
    else
      return fail(location, "`" + op + "` of numbers that are no integers");
    return true;
  }

  uint64_t a = left.bits, b = right.bits;
  bool isLeftUnsigned = left.kind == Constant::Kind::Unsigned;
  bool isUnsigned = isLeftUnsigned || right.kind == Constant::Kind::Unsigned;
  if (op == "/" || op == "%") {
    if (b == 0)
      return fail(location, "a division by zero");
    if (isUnsigned)
      left = makeInteger(op == "/" ? a / b : a % b, true);
    else if (int64_t(b) == -1) // The one case that overflows.
      left = makeInteger(op == "/" ? 0 - a : 0);
    else
      left = makeInteger(op == "/" ? uint64_t(int64_t(a) / int64_t(b))
                                   : uint64_t(int64_t(a) % int64_t(b)));
    return true;
  }
  if (op == "<<" || op == ">>") {
    // The type is the left one's; bits beyond the width are shifted out.
    bool isPast = b >= 64;
    uint64_t value = 0;
    if (op == "<<")
      value = isPast ? 0 : a << b;
    else if (isLeftUnsigned)
      value = isPast ? 0 : a >> b;
    else
      value = uint64_t(int64_t(a) >> (isPast ? 63 : b));
    left = makeInteger(value, isLeftUnsigned);
    return true;
  }
  auto compare = [&](auto x, auto y) -> std::optional<bool> {
    if (op == "==")
      return x == y;
    if (op == "!=")
      return x != y;
    if (op == "<")
      return x < y;
    if (op == ">")
      return x > y;
    if (op == "<=")
      return x <= y;
    if (op == ">=")
      return x >= y;
    return std::nullopt;
  };
  if (std::optional<bool> is =
          isUnsigned ? compare(a, b) : compare(int64_t(a), int64_t(b))) {
    left = makeInteger(*is);
    return true;
  }
  uint64_t value = op == "+"   ? a + b
                   : op == "-" ? a - b
                   : op == "*" ? a * b
                   : op == "&" ? a & b
                   : op == "|" ? a | b
                               : a ^ b;
  left = makeInteger(value, isUnsigned);
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
  if (!parseBinary(into, 1, depth))
    return false;
  if (!accept("?"))
    return true;
  bool takesFirst = isTrue(into);
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
