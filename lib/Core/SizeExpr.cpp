// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Evaluation and printing of size expressions. Both recurse; the parser bounds
// the depth of every tree that can come here.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/SizeExpr.h"

#include "SizeExprParser.h"

#include "fsr/Support/Error.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <limits>

namespace fsr {

using Kind = SizeExpr::Kind;

SizeExpr::Environment::~Environment() = default;

llvm::Expected<SizeExpr> SizeExpr::parse(llvm::StringRef text,
                                         Grammar grammar) {
  return SizeExprParser(text, grammar).run();
}

SizeExpr SizeExpr::integer(int64_t value) {
  return SizeExprParser::make(Kind::Integer, {}, {}, {}, value);
}

/// "'a / b': division by zero", with the expression cut to a readable length.
static llvm::Error evaluationError(const SizeExpr &expr,
                                   const llvm::Twine &what) {
  std::string text = expr.print();
  if (text.size() > 120)
    text = text.substr(0, 117) + "...";
  return makeError(ErrorKind::BadInput, "'" + text + "': " + what);
}

static std::optional<int64_t> arithmetic(Kind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (kind) {
  case Kind::Add:
    overflow = __builtin_add_overflow(a, b, &result);
    break;
  case Kind::Sub:
    overflow = __builtin_sub_overflow(a, b, &result);
    break;
  case Kind::Mul:
    overflow = __builtin_mul_overflow(a, b, &result);
    break;
  case Kind::Div:
  case Kind::Mod:
  case Kind::CeilDiv:
    // Also for `%`, whose value would be 0: the machine's division traps, and
    // arith.remsi leaves it undefined.
    overflow = a == std::numeric_limits<int64_t>::min() && b == -1;
    if (overflow)
      break;
    if (kind == Kind::Mod)
      result = a % b;
    else
      result = a / b;
    // C rounds toward zero, which is up where the signs differ.
    if (kind == Kind::CeilDiv && a % b != 0 && (a < 0) == (b < 0))
      ++result;
    break;
  default:
    llvm_unreachable("not an arithmetic operator");
  }
  if (overflow)
    return std::nullopt;
  return result;
}

llvm::Expected<int64_t>
SizeExpr::evaluate(const Environment &environment) const {
  switch (kind()) {
  case Kind::Integer:
    return value();
  case Kind::Name:
    if (std::optional<int64_t> found = environment.lookup(name()))
      return *found;
    return evaluationError(*this, "the value of this name is not known");
  case Kind::Aligned: {
    llvm::Expected<int64_t> bytes = operand(0).evaluate(environment);
    if (!bytes)
      return bytes;
    if (*bytes <= 0)
      return evaluationError(*this, "got an alignment of " +
                                        llvm::Twine(*bytes) +
                                        ", wanted at least 1");
    std::optional<uint64_t> address = environment.address(name());
    if (!address)
      return evaluationError(*this,
                             "the address of '" + name() + "' is not known");
    return *address % static_cast<uint64_t>(*bytes) == 0;
  }
  case Kind::Disjoint: {
    std::optional<bool> answer = environment.disjoint(name(), name2());
    if (!answer)
      return evaluationError(*this, "it is not known whether the two overlap");
    return *answer;
  }
  default:
    break;
  }

  llvm::Expected<int64_t> left = operand(0).evaluate(environment);
  if (!left)
    return left;
  // The right side may rely on the left: "n != 0 && m % n == 0".
  if (kind() == Kind::And && *left == 0)
    return 0;
  llvm::Expected<int64_t> right = operand(1).evaluate(environment);
  if (!right)
    return right;
  int64_t a = *left, b = *right;
  switch (kind()) {
  case Kind::Min:
    return std::min(a, b);
  case Kind::Max:
    return std::max(a, b);
  case Kind::Equal:
    return a == b;
  case Kind::NotEqual:
    return a != b;
  case Kind::Less:
    return a < b;
  case Kind::LessEqual:
    return a <= b;
  case Kind::Greater:
    return a > b;
  case Kind::GreaterEqual:
    return a >= b;
  case Kind::And:
    return b != 0;
  default:
    break;
  }
  bool divides =
      kind() == Kind::Div || kind() == Kind::Mod || kind() == Kind::CeilDiv;
  if (divides && b == 0)
    return evaluationError(*this, "division by zero");
  std::optional<int64_t> result = arithmetic(kind(), a, b);
  if (!result)
    return evaluationError(*this, "overflow of 64 bits with " + llvm::Twine(a) +
                                      " and " + llvm::Twine(b));
  return *result;
}

namespace {

/// How an operator is written; calls and leaves bind tightest.
struct Form {
  llvm::StringLiteral text;
  int precedence;
  bool call = false;
};

Form formOf(Kind kind) {
  switch (kind) {
  case Kind::And:
    return {"&&", 1};
  case Kind::Equal:
    return {"==", 2};
  case Kind::NotEqual:
    return {"!=", 2};
  case Kind::Less:
    return {"<", 2};
  case Kind::LessEqual:
    return {"<=", 2};
  case Kind::Greater:
    return {">", 2};
  case Kind::GreaterEqual:
    return {">=", 2};
  case Kind::Add:
    return {"+", 3};
  case Kind::Sub:
    return {"-", 3};
  case Kind::Mul:
    return {"*", 4};
  case Kind::Div:
    return {"/", 4};
  case Kind::Mod:
    return {"%", 4};
  case Kind::CeilDiv:
    return {"ceildiv", 5, true};
  case Kind::Min:
    return {"min", 5, true};
  case Kind::Max:
    return {"max", 5, true};
  case Kind::Integer:
  case Kind::Name:
  case Kind::Aligned:
  case Kind::Disjoint:
    return {"", 5};
  }
  llvm_unreachable("kind without a form");
}

/// `least`: the loosest operator that may stand here without parentheses.
void printInto(const SizeExpr &expr, int least, std::string &out) {
  Form form = formOf(expr.kind());
  switch (expr.kind()) {
  case Kind::Integer:
    out += std::to_string(expr.value());
    return;
  case Kind::Name:
    out += expr.name();
    return;
  case Kind::Aligned:
    out += "aligned(" + expr.name().str() + ", ";
    printInto(expr.operand(0), 0, out);
    out += ")";
    return;
  case Kind::Disjoint:
    out += "disjoint(" + expr.name().str() + ", " + expr.name2().str() + ")";
    return;
  default:
    break;
  }
  if (form.call) {
    out += form.text.str() + "(";
    printInto(expr.operand(0), 0, out);
    out += ", ";
    printInto(expr.operand(1), 0, out);
    out += ")";
    return;
  }
  bool parentheses = form.precedence < least;
  if (parentheses)
    out += "(";
  // All binary operators lean left; a comparison has none beside it.
  int left = form.precedence == 2 ? 3 : form.precedence;
  printInto(expr.operand(0), left, out);
  out += " " + form.text.str() + " ";
  printInto(expr.operand(1), form.precedence + 1, out);
  if (parentheses)
    out += ")";
}

} // namespace

std::string SizeExpr::print() const {
  std::string out;
  printInto(*this, 0, out);
  return out;
}

void SizeExpr::forEachName(
    llvm::function_ref<void(llvm::StringRef)> visit) const {
  if (!name().empty())
    visit(name());
  if (!name2().empty())
    visit(name2());
  for (const SizeExpr &each : node->operands)
    each.forEachName(visit);
}

} // namespace fsr
