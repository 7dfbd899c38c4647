// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One arith operation a node of the expression, made with createOrFold so that
// constant parts leave nothing behind.
//
//===----------------------------------------------------------------------===//

#include "fsr/IR/EmitSizeExpr.h"

#include "fsr/Support/Error.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace fsr {
namespace {

class Emitter {
public:
  Emitter(OpBuilder &builder, Location loc, const EmitEnvironment &environment)
      : builder(builder), loc(loc), environment(environment) {}

  llvm::Expected<Value> emit(const SizeExpr &expr) {
    using Kind = SizeExpr::Kind;
    switch (expr.kind()) {
    case Kind::Integer:
      return constant(expr.value());
    case Kind::Name:
      return ask(environment.lookup, expr.name());
    case Kind::Add:
      return binary<arith::AddIOp>(expr);
    case Kind::Sub:
      return binary<arith::SubIOp>(expr);
    case Kind::Mul:
      return binary<arith::MulIOp>(expr);
    case Kind::Div:
      return binary<arith::DivSIOp>(expr);
    case Kind::Mod:
      return binary<arith::RemSIOp>(expr);
    case Kind::CeilDiv:
      return binary<arith::CeilDivSIOp>(expr);
    case Kind::Min:
      return binary<arith::MinSIOp>(expr);
    case Kind::Max:
      return binary<arith::MaxSIOp>(expr);
    case Kind::And:
      return binary<arith::AndIOp>(expr);
    case Kind::Equal:
      return compare(expr, arith::CmpIPredicate::eq);
    case Kind::NotEqual:
      return compare(expr, arith::CmpIPredicate::ne);
    case Kind::Less:
      return compare(expr, arith::CmpIPredicate::slt);
    case Kind::LessEqual:
      return compare(expr, arith::CmpIPredicate::sle);
    case Kind::Greater:
      return compare(expr, arith::CmpIPredicate::sgt);
    case Kind::GreaterEqual:
      return compare(expr, arith::CmpIPredicate::sge);
    case Kind::Aligned:
      return aligned(expr);
    case Kind::Disjoint:
      return disjoint(expr);
    }
    llvm_unreachable("all kinds are listed");
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  }

  llvm::Expected<Value> ask(llvm::function_ref<Value(llvm::StringRef)> source,
                            llvm::StringRef name) {
    if (Value value = source ? source(name) : Value())
      return value;
    return makeError(ErrorKind::BadInput,
                     "'" + name + "' is not known at the launch");
  }

  template <typename Op>
  llvm::Expected<Value> binary(const SizeExpr &expr) {
    auto left = emit(expr.operand(0));
    if (!left)
      return left;
    auto right = emit(expr.operand(1));
    if (!right)
      return right;
    return builder.createOrFold<Op>(loc, *left, *right);
  }

  llvm::Expected<Value> compare(const SizeExpr &expr,
                                arith::CmpIPredicate predicate) {
    auto left = emit(expr.operand(0));
    if (!left)
      return left;
    auto right = emit(expr.operand(1));
    if (!right)
      return right;
    return builder.createOrFold<arith::CmpIOp>(loc, predicate, *left, *right);
  }

  llvm::Expected<Value> aligned(const SizeExpr &expr) {
    auto address = ask(environment.address, expr.name());
    if (!address)
      return address;
    auto bytes = emit(expr.operand(0));
    if (!bytes)
      return bytes;
    // Unsigned: an address may have its top bit set.
    Value rest = builder.createOrFold<arith::RemUIOp>(loc, *address, *bytes);
    return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq,
                                               rest, constant(0));
  }

  /// a + extent(a) <= b, or b + extent(b) <= a.
  llvm::Expected<Value> disjoint(const SizeExpr &expr) {
    Value begin[2], end[2];
    llvm::StringRef names[2] = {expr.name(), expr.name2()};
    for (int i = 0; i < 2; ++i) {
      auto address = ask(environment.address, names[i]);
      if (!address)
        return address;
      auto extent = ask(environment.extent, names[i]);
      if (!extent)
        return extent;
      begin[i] = *address;
      end[i] = builder.createOrFold<arith::AddIOp>(loc, *address, *extent);
    }
    auto before = [&](Value a, Value b) {
      return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ule,
                                                 a, b);
    };
    return builder.createOrFold<arith::OrIOp>(loc, before(end[0], begin[1]),
                                              before(end[1], begin[0]));
  }

  OpBuilder &builder;
  Location loc;
  const EmitEnvironment &environment;
};

} // namespace

llvm::Expected<Value> emitSizeExpr(OpBuilder &builder, Location loc,
                                   const SizeExpr &expr,
                                   const EmitEnvironment &environment) {
  return Emitter(builder, loc, environment).emit(expr);
}

} // namespace fsr
