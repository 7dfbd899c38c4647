// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which approximate functions there are, and their handlers.
//
//===----------------------------------------------------------------------===//

#include "Float.h"

#include <cmath>

#pragma clang fp contract(off)

namespace fsr::ptx {

static float largeCircular(float x, bool isCosine) {
  return float(isCosine ? std::cos(double(x)) : std::sin(double(x)));
}

#define FSR_PTX_FAMILY "FloatApprox.inl"
#include "FloatBoth.inl"

void selectApproximation(const FloatForm &form, bool wide, FloatOp &op) {
  enum Takes : unsigned {
    Single = 1,
    SingleFtz = 2,
    Double = 4,
    DoubleFtz = 8,
    Half = 16,
    Brain = 32,
    BrainFtz = 64,
  };
  struct Row {
    llvm::StringRef opcode;
    Approximation function;
    unsigned takes;
  };
  static const Row rows[] = {
      {"rcp", Approximation::Rcp, DoubleFtz},
      {"rsqrt", Approximation::Rsqrt, Single | SingleFtz | Double | DoubleFtz},
      {"ex2", Approximation::Ex2, Single | SingleFtz | Half | BrainFtz},
      {"lg2", Approximation::Lg2, Single | SingleFtz},
      {"sin", Approximation::Sin, Single | SingleFtz},
      {"cos", Approximation::Cos, Single | SingleFtz},
      {"tanh", Approximation::Tanh, Single | Half | Brain},
  };
  const Row *row = nullptr;
  for (const Row &one : rows)
    if (one.opcode == form.opcode)
      row = &one;
  if (!row)
    return op.fail("no such function");
  if (form.types.size() != 1)
    return op.fail("expected one type, got " + llvm::Twine(form.types.size()));
  Type type = form.types[0];
  unsigned wanted = 0;
  bool isPair = type == Type::F16x2 || type == Type::BF16x2;
  switch (type) {
  case Type::F32:
    wanted = form.ftz ? SingleFtz : Single;
    break;
  case Type::F64:
    wanted = form.ftz ? DoubleFtz : Double;
    break;
  case Type::F16:
  case Type::F16x2:
    wanted = form.ftz ? 0 : Half;
    break;
  case Type::BF16:
  case Type::BF16x2:
    wanted = form.ftz ? BrainFtz : Brain;
    break;
  default:
    break;
  }
  if (!(row->takes & wanted))
    return op.fail("the type is not one of this instruction's");
  if (!form.approx)
    return op.fail("'.approx' must be given");
  if (form.rounding != Rounding::None || form.sat || form.satfinite ||
      form.relu || form.nan || form.xorsign || form.abs || form.full ||
      form.pack || form.compare != Compare::None || form.logic != Logic::None ||
      form.test != Test::None)
    return op.fail("a modifier is not one of this form's");
  op.run = (wide ? v3::approximationHandler
                 : base::approximationHandler)(row->function, type, form.ftz);
  op.results = {type};
  op.sources = {type};
  op.opClass = OpClass::Special;
  op.flops = isPair ? 2 : 1;
  op.isApproximate = true;
}

} // namespace fsr::ptx
