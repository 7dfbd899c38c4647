// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which arithmetic forms there are, and their handlers. Each operation has a
// table of what modifiers a type takes; all others are not supported.
//
//===----------------------------------------------------------------------===//

#include "Float.h"

#pragma clang fp contract(off)

namespace fsr::ptx {

#define FSR_PTX_FAMILY "FloatArithmetic.inl"
#include "FloatBoth.inl"

bool hasWideVectors() {
#if defined(__x86_64__)
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt");
  return has;
#else
  return false;
#endif
}

namespace {

enum Allowed : unsigned {
  RoundNearest = 1, ///< `.rn` only.
  RoundAny = 2,
  MustRound = 4, ///< Or say `.approx`, `.full`.
  Ftz = 8,
  Sat = 16,
  Relu = 32,
  NanXorsign = 64,
  Approx = 128, ///< `.approx`
  Full = 256,   ///< `.full`
  Known = 512,
};

unsigned allowedModifiers(Arithmetic operation, Type type) {
  bool isShort = type == Type::F16 || type == Type::F16x2;
  bool isBrain = type == Type::BF16 || type == Type::BF16x2;
  switch (operation) {
  case Arithmetic::Add:
  case Arithmetic::Sub:
  case Arithmetic::Mul:
    return Known | (isShort               ? RoundNearest | Ftz | Sat
                    : isBrain             ? RoundNearest
                    : type == Type::F32   ? RoundAny | Ftz | Sat
                    : type == Type::F32x2 ? RoundAny | Ftz
                                          : RoundAny);
  case Arithmetic::Fma:
    return Known | MustRound |
           (isShort               ? RoundNearest | Ftz | Sat | Relu
            : isBrain             ? RoundNearest | Relu
            : type == Type::F32   ? RoundAny | Ftz | Sat
            : type == Type::F32x2 ? RoundAny | Ftz
                                  : RoundAny);
  case Arithmetic::Div:
    return type == Type::F32
               ? Known | MustRound | RoundAny | Ftz | Approx | Full
           : type == Type::F64 ? Known | MustRound | RoundAny
                               : 0;
  case Arithmetic::Sqrt:
    return type == Type::F32   ? Known | MustRound | RoundAny | Ftz | Approx
           : type == Type::F64 ? Known | MustRound | RoundAny
                               : 0;
  case Arithmetic::Neg:
  case Arithmetic::Abs:
    return type == Type::F32x2            ? 0
           : isShort || type == Type::F32 ? Known | Ftz
                                          : unsigned(Known);
  case Arithmetic::Min:
  case Arithmetic::Max:
    return type == Type::F32x2            ? 0
           : isShort || type == Type::F32 ? Known | Ftz | NanXorsign
           : isBrain                      ? Known | NanXorsign
                                          : unsigned(Known);
  case Arithmetic::Copysign:
    return type == Type::F32 || type == Type::F64 ? unsigned(Known) : 0;
  }
  return 0;
}

OpClass classOf(Type type) {
  switch (type) {
  case Type::F64:
    return OpClass::Float64;
  case Type::F32:
  case Type::F32x2:
    return OpClass::Float32;
  default:
    return OpClass::Float16;
  }
}

bool isPair(Type type) {
  return type == Type::F16x2 || type == Type::BF16x2 || type == Type::F32x2;
}

} // namespace

void selectArithmetic(const FloatForm &form, size_t operands, bool wide,
                      FloatOp &op) {
  struct Row {
    llvm::StringRef opcode;
    Arithmetic operation;
    unsigned sources, flops;
  };
  static const Row rows[] = {
      {"add", Arithmetic::Add, 2, 1},
      {"sub", Arithmetic::Sub, 2, 1},
      {"mul", Arithmetic::Mul, 2, 1},
      {"fma", Arithmetic::Fma, 3, 2},
      {"mad", Arithmetic::Fma, 3, 2},
      {"div", Arithmetic::Div, 2, 1},
      {"rcp", Arithmetic::Div, 2, 1},
      {"sqrt", Arithmetic::Sqrt, 1, 1},
      {"neg", Arithmetic::Neg, 1, 0},
      {"abs", Arithmetic::Abs, 1, 0},
      {"min", Arithmetic::Min, 2, 1},
      {"max", Arithmetic::Max, 2, 1},
      {"copysign", Arithmetic::Copysign, 2, 0},
  };
  const Row *row = nullptr;
  for (const Row &one : rows)
    if (one.opcode == form.opcode)
      row = &one;
  if (!row)
    return op.fail("no such arithmetic");
  if (form.types.size() != 1)
    return op.fail("operands of mixed types are not supported");
  Type type = form.types[0];
  unsigned allowed = allowedModifiers(row->operation, type);
  bool isMad = form.opcode == "mad";
  bool isReciprocal = form.opcode == "rcp";
  if (!allowed || !isFloat(type) || type == Type::TF32 ||
      (isMad && type != Type::F32 && type != Type::F64))
    return op.fail("the type is not one of this instruction's");

  auto refuse = [&](const char *modifier) {
    op.fail(llvm::Twine("the modifier '.") + modifier +
            "' is not one of this form's");
  };
  if (form.rounding != Rounding::None && !(allowed & RoundAny) &&
      !((allowed & RoundNearest) && form.rounding == Rounding::Nearest))
    return op.fail("the rounding is not one of this form's");
  if (form.rounding == Rounding::NearestAway)
    return refuse("rna");
  if (form.toInteger)
    return op.fail("the rounding is not one of this form's");
  if (form.ftz && !(allowed & Ftz))
    return refuse("ftz");
  if (form.sat && !(allowed & Sat))
    return refuse("sat");
  if (form.relu && !(allowed & Relu))
    return refuse("relu");
  if (form.relu && form.sat)
    return op.fail("'.relu' and '.sat' do not go together");
  if ((form.nan || form.xorsign) && !(allowed & NanXorsign))
    return refuse(form.nan ? "NaN" : "xorsign");
  if (form.xorsign != form.abs)
    return op.fail("'.xorsign' and '.abs' go together");
  if (form.approx && !(allowed & Approx))
    return refuse("approx");
  if (form.full && (!(allowed & Full) || isReciprocal))
    return refuse("full");
  if (form.pack || form.satfinite || form.compare != Compare::None ||
      form.logic != Logic::None || form.test != Test::None)
    return op.fail("a modifier is not one of this form's");
  unsigned ways = form.approx + form.full + (form.rounding != Rounding::None);
  if (ways > 1 || (!ways && (allowed & MustRound) && !isMad))
    return op.fail("the rounding must be given once");

  unsigned sources = row->sources;
  bool isExtreme =
      row->operation == Arithmetic::Min || row->operation == Arithmetic::Max;
  bool isTriple = isExtreme && operands == 4 && type == Type::F32;
  if (isTriple)
    sources = 3;
  FloatForm chosen = form;
  if (isReciprocal)
    chosen.approx = false; // One is always divided exactly.
  op.run = (wide ? v3::arithmeticHandler : base::arithmeticHandler)(
      row->operation, chosen, type, isTriple);
  op.results = {type};
  op.sources.assign(sources, type);
  op.opClass = classOf(type);
  op.flops = uint16_t(row->flops * (isPair(type) ? 2 : 1));
  if (form.approx || form.full) {
    op.isApproximate = true;
    op.opClass = OpClass::Special;
  }
}

} // namespace fsr::ptx
