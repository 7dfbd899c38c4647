// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Size expressions: syntax and its errors, evaluation at the borders of 64 bits
// against 128-bit arithmetic, and printing of random trees.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/SizeExpr.h"

#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

#include <map>
#include <random>

using namespace fsr;
using Kind = SizeExpr::Kind;
using Grammar = SizeExpr::Grammar;

namespace {

struct Names final : SizeExpr::Environment {
  std::map<std::string, int64_t> values{
      {"n", 10},         {"zero", 0},          {"TILE", 64},
      {"m", -7},         {"least", INT64_MIN}, {"most", INT64_MAX},
      {"x.size0", 1000}, {"x.stride0", 3}};
  std::map<std::string, uint64_t> addresses{{"x", 4096 + 48}, {"y", 4096}};

  std::optional<int64_t> lookup(llvm::StringRef name) const override {
    auto found = values.find(name.str());
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<uint64_t> address(llvm::StringRef name) const override {
    auto found = addresses.find(name.str());
    return found == addresses.end() ? std::nullopt
                                    : std::optional(found->second);
  }
  std::optional<bool> disjoint(llvm::StringRef a,
                               llvm::StringRef b) const override {
    if (a == "q" || b == "q")
      return std::nullopt;
    return a != b;
  }
};

/// The printed value, or the error.
std::string value(llvm::StringRef text, Grammar grammar = Grammar::Size) {
  llvm::Expected<SizeExpr> expr = SizeExpr::parse(text, grammar);
  if (!expr)
    return "parse: " + llvm::toString(expr.takeError());
  llvm::Expected<int64_t> result = expr->evaluate(Names());
  if (!result) {
    EXPECT_TRUE(result.errorIsA<FsrError>());
    return llvm::toString(result.takeError());
  }
  return std::to_string(*result);
}
std::string guard(llvm::StringRef text) { return value(text, Grammar::Guard); }

std::string parseError(llvm::StringRef text, Grammar grammar = Grammar::Size) {
  llvm::Expected<SizeExpr> expr = SizeExpr::parse(text, grammar);
  if (expr)
    return "parsed: " + expr->print();
  llvm::Error error = expr.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
  return llvm::toString(std::move(error));
}
std::string guardError(llvm::StringRef text) {
  return parseError(text, Grammar::Guard);
}

std::string printed(llvm::StringRef text, Grammar grammar = Grammar::Size) {
  llvm::Expected<SizeExpr> expr = SizeExpr::parse(text, grammar);
  return expr ? expr->print() : llvm::toString(expr.takeError());
}

TEST(SizeExpr, Evaluates) {
  EXPECT_EQ(value("1 + 2 * 3"), "7");
  EXPECT_EQ(value("(1 + 2) * 3"), "9");
  EXPECT_EQ(value("10 - 3 - 2"), "5");
  EXPECT_EQ(value("100 / 10 / 5"), "2");
  EXPECT_EQ(value("100 / 10 * 5"), "50");
  EXPECT_EQ(value("100 % 7 * 2"), "4");
  EXPECT_EQ(value("ceildiv(x.size0, TILE)"), "16");
  EXPECT_EQ(value("min(n, TILE)+max(n,TILE)"), "74");
  EXPECT_EQ(value("-n"), "-10");
  EXPECT_EQ(value("--n"), "10");
  EXPECT_EQ(value("- 5"), "-5");
  EXPECT_EQ(value("3 - -5"), "8");
  EXPECT_EQ(value("-n * 2"), "-20");
  EXPECT_EQ(value("  \t4\n* x.stride0 "), "12");
}

TEST(SizeExpr, RoundsAsC) {
  EXPECT_EQ(value("-7 / 2"), "-3");
  EXPECT_EQ(value("-7 % 2"), "-1");
  EXPECT_EQ(value("7 % -2"), "1");
  EXPECT_EQ(value("ceildiv(7, 2)"), "4");
  EXPECT_EQ(value("ceildiv(-7, 2)"), "-3");
  EXPECT_EQ(value("ceildiv(7, -2)"), "-3");
  EXPECT_EQ(value("ceildiv(-7, -2)"), "4");
  EXPECT_EQ(value("ceildiv(6, 2)"), "3");
  EXPECT_EQ(value("ceildiv(0, 5)"), "0");
}

TEST(SizeExpr, BordersOf64Bits) {
  EXPECT_EQ(value("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(value("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(value("ceildiv(most, 2)"), "4611686018427387904");
  EXPECT_EQ(value("ceildiv(most, 1)"), "9223372036854775807");
  EXPECT_EQ(value("most + 1"), "'most + 1': overflow of 64 bits with "
                               "9223372036854775807 and 1");
  EXPECT_EQ(value("least - 1"), "'least - 1': overflow of 64 bits with "
                                "-9223372036854775808 and 1");
  EXPECT_EQ(value("most * 2"), "'most * 2': overflow of 64 bits with "
                               "9223372036854775807 and 2");
  EXPECT_EQ(value("-least"), "'0 - least': overflow of 64 bits with 0 and "
                             "-9223372036854775808");
  for (llvm::StringRef text :
       {"least / -1", "least % -1", "ceildiv(least, -1)"})
    EXPECT_EQ(value(text), "'" + text.str() +
                               "': overflow of 64 bits with "
                               "-9223372036854775808 and -1");
  for (llvm::StringRef text : {"n / zero", "n % zero", "ceildiv(n, zero)"})
    EXPECT_EQ(value(text), "'" + text.str() + "': division by zero");
  // The sub-expression is named, not the whole.
  EXPECT_EQ(value("1 + min(2, n / zero)"), "'n / zero': division by zero");
  EXPECT_EQ(value("n + nothing"),
            "'nothing': the value of this name is not known");
}

TEST(SizeExpr, Guards) {
  EXPECT_EQ(guard("x.size0 % 4 == 0"), "1");
  EXPECT_EQ(guard("n != 10"), "0");
  EXPECT_EQ(guard("n < 11"), "1");
  EXPECT_EQ(guard("n <= 9"), "0");
  EXPECT_EQ(guard("n > 9"), "1");
  EXPECT_EQ(guard("n >= 11"), "0");
  EXPECT_EQ(guard("n == 10 && m < 0 && TILE > n"), "1");
  EXPECT_EQ(guard("n == 10 && (m < 0 && TILE < n)"), "0");
  EXPECT_EQ(guard("(n + 2) * 2 == 24"), "1");
  EXPECT_EQ(guard("aligned(x, 16)"), "1");
  EXPECT_EQ(guard("aligned(x, 32)"), "0");
  EXPECT_EQ(guard("aligned(y, 8 * TILE)"), "1");
  EXPECT_EQ(guard("disjoint(x, y)"), "1");
  EXPECT_EQ(guard("disjoint(x, x)"), "0");
  // The left side protects the right one.
  EXPECT_EQ(guard("zero != 0 && n % zero == 0"), "0");
  EXPECT_EQ(guard("aligned(w, 16)"),
            "'aligned(w, 16)': the address of 'w' is not known");
  EXPECT_EQ(guard("aligned(x, zero)"), "'aligned(x, zero)': got an alignment "
                                       "of 0, wanted at least 1");
  EXPECT_EQ(guard("aligned(x, m)"), "'aligned(x, m)': got an alignment of -7, "
                                    "wanted at least 1");
  EXPECT_EQ(guard("disjoint(x, q)"),
            "'disjoint(x, q)': it is not known whether the two overlap");
}

TEST(SizeExpr, SyntaxErrors) {
  EXPECT_EQ(parseError("ceil()"), "column 1: got function 'ceil', wanted "
                                  "ceildiv, min or max");
  EXPECT_EQ(parseError("4 * ()"), "column 6: got ')', wanted a name or a "
                                  "number");
  EXPECT_EQ(parseError(""), "column 1: got the end, wanted a name or a number");
  EXPECT_EQ(parseError("  "),
            "column 3: got the end, wanted a name or a number");
  EXPECT_EQ(parseError("1 +"),
            "column 4: got the end, wanted a name or a number");
  EXPECT_EQ(parseError("1 2"),
            "column 3: got '2', wanted an operator or the end");
  EXPECT_EQ(parseError("(1"), "column 3: got the end, wanted ')'");
  EXPECT_EQ(parseError("1)"),
            "column 2: got ')', wanted an operator or the end");
  EXPECT_EQ(parseError("0x10"), "column 1: got '0x10', wanted a 64-bit integer "
                                "in decimal digits");
  EXPECT_EQ(parseError("1.5"),
            "column 2: got '.', wanted an operator or the end");
  EXPECT_EQ(parseError("9223372036854775808"),
            "column 1: got '9223372036854775808', wanted a 64-bit integer in "
            "decimal digits");
  EXPECT_EQ(parseError("1 - 9223372036854775808"),
            "column 5: got '9223372036854775808', wanted a 64-bit integer in "
            "decimal digits");
  EXPECT_EQ(parseError("-9223372036854775809"),
            "column 1: got '-9223372036854775809', wanted a 64-bit integer in "
            "decimal digits");
  EXPECT_EQ(parseError("+1"), "column 1: got '+', wanted a name or a number");
  EXPECT_EQ(parseError("a..b"), "column 1: got 'a..b', wanted names joined by "
                                "single dots");
  EXPECT_EQ(parseError("a."), "column 1: got 'a.', wanted names joined by "
                              "single dots");
  EXPECT_EQ(parseError("x.0"), "column 1: got 'x.0', wanted names joined by "
                               "single dots");
  EXPECT_EQ(parseError("a & b"),
            "column 3: got '&', wanted an operator or the end");
  EXPECT_EQ(parseError("\xc3\xa4"),
            "column 1: got byte 0xc3, wanted a name or a number");
  EXPECT_EQ(parseError(llvm::StringRef("a\0b", 3)),
            "column 2: got byte 0x0, wanted an operator or the end");
  EXPECT_EQ(parseError("min(1)"), "column 6: got ')', wanted ','");
  EXPECT_EQ(parseError("min()"), "column 5: got ')', wanted a name or a "
                                 "number");
  EXPECT_EQ(parseError("max(1, 2, 3)"),
            "column 9: got a third operand, wanted exactly two of 'max'");
  EXPECT_EQ(parseError("n = 3"),
            "column 3: got '=', wanted an operator or the end");
  EXPECT_EQ(parseError("!n"), "column 1: got '!', wanted a name or a number");
}

TEST(SizeExpr, SizesHaveNoConditions) {
  EXPECT_EQ(parseError("n == 3"),
            "column 3: got '==', which only a guard may use");
  EXPECT_EQ(parseError("(n < 3)"),
            "column 4: got '<', which only a guard may use");
  EXPECT_EQ(parseError("n && 3"),
            "column 3: got '&&', which only a guard may use");
  EXPECT_EQ(parseError("aligned(x, 4)"),
            "column 1: got 'aligned', which only a guard may use");
  EXPECT_EQ(parseError("disjoint(x, y)"),
            "column 1: got 'disjoint', which only a guard may use");
}

TEST(SizeExpr, GuardErrors) {
  EXPECT_EQ(guardError("n"), "column 1: got a number, wanted a comparison, "
                             "aligned or disjoint");
  EXPECT_EQ(guardError("n == 1 && m"), "column 11: got a number, wanted a "
                                       "comparison, aligned or disjoint");
  EXPECT_EQ(guardError("n && m == 1"), "column 1: got a number, wanted a "
                                       "comparison, aligned or disjoint");
  EXPECT_EQ(guardError("1 < n < 3"), "column 7: got '<' behind a comparison; "
                                     "join two comparisons with '&&'");
  EXPECT_EQ(guardError("(n < 3) == 1"),
            "column 1: got a condition, wanted a number");
  EXPECT_EQ(guardError("1 + (n < 3) == 1"),
            "column 5: got a condition, wanted a number");
  EXPECT_EQ(guardError("-(n < 3) == 1"),
            "column 2: got a condition, wanted a number");
  EXPECT_EQ(guardError("min(n < 3, 1) == 1"), "column 7: got '<', wanted ','");
  EXPECT_EQ(guardError("min((n < 3), 1) == 1"),
            "column 5: got a condition, wanted a number");
  EXPECT_EQ(guardError("2 * aligned(x, 4) == 1"),
            "column 5: got a condition, wanted a number");
  llvm::StringRef noOr = "got '||', which is not supported; state each "
                         "condition that must hold, joined by '&&'";
  EXPECT_EQ(guardError("n == 1 || n == 2"), "column 8: " + noOr.str());
  EXPECT_EQ(guardError("(n == 1 || n == 2)"), "column 9: " + noOr.str());
  EXPECT_EQ(guardError("aligned(4, x)"),
            "column 9: got '4', wanted the name of a buffer");
  EXPECT_EQ(guardError("aligned(x.size0, 4)"),
            "column 9: got 'x.size0', wanted the name of a buffer");
  EXPECT_EQ(guardError("aligned(x)"), "column 10: got ')', wanted ','");
  EXPECT_EQ(guardError("disjoint(x, 3)"),
            "column 13: got '3', wanted the name of a buffer");
  EXPECT_EQ(guardError("disjoint(x, y, z)"), "column 14: got ',', wanted ')'");
  EXPECT_EQ(guardError("floor(n) == 1"),
            "column 1: got function 'floor', wanted ceildiv, min or max, "
            "aligned or disjoint");
}

TEST(SizeExpr, DepthAndLengthAreBounded) {
  EXPECT_EQ(value(std::string(60, '(') + "1" + std::string(60, ')')), "1");
  EXPECT_EQ(parseError(std::string(100000, '(')),
            "expression of 100000 characters, wanted at most 4096");
  llvm::StringRef levels = "more than 64 levels inside one another";
  EXPECT_EQ(parseError(std::string(4000, '(')), "column 65: " + levels.str());
  EXPECT_EQ(parseError(std::string(4000, '-')), "column 65: " + levels.str());
  std::string calls;
  for (int i = 0; i < 500; ++i)
    calls += "min(1,";
  EXPECT_NE(parseError(calls).find(levels.str()), std::string::npos);
  // Chains lean left, and are as deep as they are long.
  std::string chain = "1";
  for (int i = 0; i < 63; ++i)
    chain += "+1";
  EXPECT_EQ(value(chain), "64");
  EXPECT_EQ(parseError(chain + "+1"),
            "column 1: more than 64 operators inside one another");
}

TEST(SizeExpr, PrintsMinimalParentheses) {
  for (llvm::StringRef text :
       {"1 + 2 * 3", "(1 + 2) * 3", "1 - (2 - 3)", "1 - 2 - 3", "a / (b * c)",
        "a / b * c", "a * (b / c)", "a % (b % c)", "-5 * a", "a - -5",
        "ceildiv(a + 1, 2)", "min(a, max(b, c))", "a + b - c", "a + (b - c)",
        "0 - a", "(0 - a) * b", "-9223372036854775808"})
    EXPECT_EQ(printed(text), text);
  for (llvm::StringRef text :
       {"a == b", "a + 1 < b * 2 && c >= d", "a == 1 && (b == 2 && c == 3)",
        "aligned(x, 4 * a) && disjoint(x, y)"})
    EXPECT_EQ(printed(text, Grammar::Guard), text);
  EXPECT_EQ(printed("((a)+((b*c)))"), "a + b * c");
  EXPECT_EQ(printed("-a"), "0 - a");
  EXPECT_EQ(printed("((a==1))&&b==2", Grammar::Guard), "a == 1 && b == 2");
}

TEST(SizeExpr, VisitsEachUse) {
  llvm::Expected<SizeExpr> expr = SizeExpr::parse(
      "x.size0 + n * n == 0 && aligned(x, TILE) && disjoint(y, z)",
      Grammar::Guard);
  ASSERT_TRUE(bool(expr));
  std::string seen;
  expr->forEachName([&](llvm::StringRef name) { seen += name.str() + " "; });
  EXPECT_EQ(seen, "x.size0 n n x TILE y z ");
}

TEST(SizeExpr, Accessors) {
  llvm::Expected<SizeExpr> expr =
      SizeExpr::parse("aligned(x, 16)", Grammar::Guard);
  ASSERT_TRUE(bool(expr));
  EXPECT_EQ(expr->kind(), Kind::Aligned);
  EXPECT_EQ(expr->name(), "x");
  ASSERT_EQ(expr->numOperands(), 1u);
  EXPECT_EQ(expr->operand(0).kind(), Kind::Integer);
  EXPECT_EQ(expr->operand(0).value(), 16);
  EXPECT_EQ(SizeExpr::integer(-3).print(), "-3");
}

//===----------------------------------------------------------------------===//
// Random trees
//===----------------------------------------------------------------------===//

bool same(const SizeExpr &a, const SizeExpr &b) {
  if (a.kind() != b.kind() || a.value() != b.value() || a.name() != b.name() ||
      a.name2() != b.name2() || a.numOperands() != b.numOperands())
    return false;
  for (size_t i = 0; i < a.numOperands(); ++i)
    if (!same(a.operand(i), b.operand(i)))
      return false;
  return true;
}

/// A fully parenthesised random text, so that its tree is beyond doubt, and its
/// value in 128 bits; no value where a step leaves 64 bits or divides by zero.
struct Random {
  std::mt19937_64 generator;
  std::string text;
  std::optional<__int128> expected;

  explicit Random(uint64_t seed) : generator(seed) {}

  uint64_t draw(uint64_t bound) { return generator() % bound; }

  static std::optional<__int128> fits(__int128 value) {
    if (value < INT64_MIN || value > INT64_MAX)
      return std::nullopt;
    return value;
  }

  std::pair<std::string, std::optional<__int128>> number(int depth) {
    if (depth == 0 || draw(6) == 0) {
      static const std::pair<const char *, int64_t> leaves[] = {
          {"n", 10},
          {"zero", 0},
          {"m", -7},
          {"least", INT64_MIN},
          {"most", INT64_MAX},
          {"x.size0", 1000},
          {"2", 2},
          {"3", 3},
          {"-1", -1},
          {"1", 1},
          {"-4611686018427387905", -4611686018427387905},
          {"-9223372036854775808", INT64_MIN}};
      auto [text, value] = leaves[draw(std::size(leaves))];
      return {text, value};
    }
    auto [leftText, a] = number(depth - 1);
    auto [rightText, b] = number(depth - 1);
    static const char *const operators[] = {"+", "-", "*", "/", "%"};
    static const char *const calls[] = {"ceildiv", "min", "max"};
    size_t which = draw(8);
    std::string text = which < 5
                           ? "(" + leftText + operators[which] + rightText + ")"
                           : std::string(calls[which - 5]) + "(" + leftText +
                                 "," + rightText + ")";
    if (!a || !b || ((which == 3 || which == 4 || which == 5) && *b == 0))
      return {text, std::nullopt};
    switch (which) {
    case 0:
      return {text, fits(*a + *b)};
    case 1:
      return {text, fits(*a - *b)};
    case 2:
      return {text, fits(*a * *b)};
    case 3:
      return {text, fits(*a / *b)};
    case 4:
      // Undefined in arith, so refused here although 128 bits give 0.
      return {text, fits(*a / *b) ? fits(*a % *b) : std::nullopt};
    case 5: {
      __int128 quotient = *a / *b;
      if (*a % *b != 0 && (*a < 0) == (*b < 0))
        ++quotient;
      return {text, fits(quotient)};
    }
    case 6:
      return {text, *a < *b ? *a : *b};
    default:
      return {text, *a > *b ? *a : *b};
    }
  }

  /// Conditions are evaluated left to right and stop at the first false one.
  std::pair<std::string, std::optional<__int128>> condition(int depth) {
    if (depth > 0 && draw(2) == 0) {
      auto [leftText, a] = condition(depth - 1);
      auto [rightText, b] = condition(depth - 1);
      std::string text = "(" + leftText + "&&" + rightText + ")";
      if (!a || *a == 0)
        return {text, a};
      return {text, b};
    }
    auto [leftText, a] = number(depth);
    auto [rightText, b] = number(depth);
    static const char *const operators[] = {"==", "!=", "<", "<=", ">", ">="};
    size_t which = draw(6);
    std::string text = "(" + leftText + operators[which] + rightText + ")";
    if (!a || !b)
      return {text, std::nullopt};
    const bool results[] = {*a == *b, *a != *b, *a<*b, *a <= *b, *a> * b,
                            *a >= *b};
    return {text, results[which]};
  }
};

TEST(SizeExpr, RandomTreesPrintAndEvaluate) {
  unsigned known = 0, unknown = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    Grammar grammar = seed % 2 ? Grammar::Guard : Grammar::Size;
    int depth = 1 + seed % 5;
    auto [text, expected] = grammar == Grammar::Guard ? random.condition(depth)
                                                      : random.number(depth);
    llvm::Expected<SizeExpr> expr = SizeExpr::parse(text, grammar);
    ASSERT_TRUE(bool(expr)) << text << "\n" << llvm::toString(expr.takeError());
    std::string shorter = expr->print();
    llvm::Expected<SizeExpr> again = SizeExpr::parse(shorter, grammar);
    ASSERT_TRUE(bool(again)) << shorter << "\n"
                             << llvm::toString(again.takeError());
    EXPECT_TRUE(same(*expr, *again)) << text << "\n" << shorter;
    EXPECT_EQ(again->print(), shorter);
    llvm::Expected<int64_t> result = again->evaluate(Names());
    if (expected) {
      ++known;
      ASSERT_TRUE(bool(result)) << text << "\n"
                                << llvm::toString(result.takeError());
      EXPECT_EQ(*result, static_cast<int64_t>(*expected)) << text;
    } else {
      ++unknown;
      EXPECT_FALSE(bool(result)) << text << " = " << *result;
      llvm::consumeError(result.takeError());
    }
  }
  // Both sides were really tried.
  EXPECT_GT(known, 1000u);
  EXPECT_GT(unknown, 500u);
}

TEST(SizeExpr, RandomBytesNeverCrash) {
  static const char alphabet[] = "()+-*/%,<>=!&|. x1n9_min\xff";
  std::mt19937 generator(1);
  unsigned parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (unsigned length = generator() % 12; length; --length)
      text += alphabet[generator() % (sizeof(alphabet) - 1)];
    llvm::Expected<SizeExpr> expr = SizeExpr::parse(text, Grammar::Guard);
    if (!expr) {
      llvm::consumeError(expr.takeError());
      continue;
    }
    ++parsed;
    llvm::Expected<SizeExpr> again =
        SizeExpr::parse(expr->print(), Grammar::Guard);
    ASSERT_TRUE(bool(again)) << text << "\n"
                             << llvm::toString(again.takeError());
    EXPECT_TRUE(same(*expr, *again)) << text;
  }
  EXPECT_GT(parsed, 20u);
}

} // namespace
