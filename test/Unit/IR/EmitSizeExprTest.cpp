// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Emitted arithmetic folds where it is constant, and folds to what the harness
// evaluates for the same text.
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

#include "fsr/IR/EmitSizeExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace fsr;
using namespace mlir;

namespace {

struct EmitSizeExpr : ModuleTest {
  struct Names : SizeExpr::Environment {
    std::optional<int64_t> lookup(llvm::StringRef name) const override {
      if (name == "n")
        return 103;
      if (name == "x.size0")
        return -7;
      return std::nullopt;
    }
    std::optional<uint64_t> address(llvm::StringRef name) const override {
      return name == "x" ? 4096 : 4128;
    }
    std::optional<bool> disjoint(llvm::StringRef,
                                 llvm::StringRef) const override {
      return true;
    }
  };

  OwningOpRef<ModuleOp> module = parse("func.func @f(%n: i64) { return }");
  func::FuncOp function = *module->getOps<func::FuncOp>().begin();
  OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
  Location loc = builder.getUnknownLoc();

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  }

  llvm::Expected<Value> emit(llvm::StringRef text, bool folds = true) {
    bool guard = text.contains_insensitive("==") || text.contains('<') ||
                 text.contains("aligned") || text.contains("disjoint") ||
                 text.contains('>') || text.contains("!=");
    SizeExpr expr = llvm::cantFail(SizeExpr::parse(
        text, guard ? SizeExpr::Grammar::Guard : SizeExpr::Grammar::Size));
    Names names;
    auto lookup = [&](llvm::StringRef name) -> Value {
      if (!folds && name == "n")
        return function.getArgument(0);
      std::optional<int64_t> value = names.lookup(name);
      return value ? constant(*value) : Value();
    };
    auto address = [&](llvm::StringRef name) {
      return constant(*names.address(name));
    };
    auto extent = [&](llvm::StringRef) { return constant(32); };
    return emitSizeExpr(builder, loc, expr, {lookup, address, extent});
  }
};

TEST_F(EmitSizeExpr, FoldsToWhatTheHarnessEvaluates) {
  for (const char *text : {"4",
                           "n + 1",
                           "n - 200",
                           "n * x.size0",
                           "n / 10",
                           "x.size0 / 2",
                           "x.size0 % 3",
                           "ceildiv(n, 10)",
                           "ceildiv(x.size0, 2)",
                           "min(n, 5)",
                           "max(n, x.size0)",
                           "n == 103",
                           "n != 103",
                           "n < 3",
                           "n <= 103",
                           "n > 103",
                           "n >= 104",
                           "n > 1 && x.size0 < 0",
                           "aligned(x, 16)",
                           "aligned(x, 8192)",
                           "disjoint(x, y)"}) {
    llvm::Expected<Value> value = emit(text);
    ASSERT_TRUE(bool(value)) << text;
    llvm::APInt constant;
    ASSERT_TRUE(matchPattern(*value, m_ConstantInt(&constant))) << text;
    bool guard = value->getType().isInteger(1);
    int64_t got = guard ? constant.getZExtValue() : constant.getSExtValue();
    SizeExpr expr = llvm::cantFail(SizeExpr::parse(
        text, guard ? SizeExpr::Grammar::Guard : SizeExpr::Grammar::Size));
    EXPECT_EQ(got, llvm::cantFail(expr.evaluate(Names()))) << text;
  }
}

TEST_F(EmitSizeExpr, KeepsWhatIsNotKnown) {
  llvm::Expected<Value> value = emit("ceildiv(n, 2 * 4)", /*folds=*/false);
  ASSERT_TRUE(bool(value));
  auto op = value->getDefiningOp<arith::CeilDivSIOp>();
  ASSERT_TRUE(op);
  llvm::APInt divisor;
  ASSERT_TRUE(matchPattern(op.getRhs(), m_ConstantInt(&divisor)));
  EXPECT_EQ(divisor.getSExtValue(), 8);
}

TEST_F(EmitSizeExpr, UnknownNameIsAnError) {
  llvm::Expected<Value> value = emit("n * TILE");
  ASSERT_FALSE(bool(value));
  EXPECT_EQ(llvm::toString(value.takeError()),
            "'TILE' is not known at the launch");
}

} // namespace
