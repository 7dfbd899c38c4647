// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The floating-point family between its files: what an instruction's modifiers
// say, and how a form becomes a handler. Handlers exist for each set of CPU
// features; which is taken is decided here once, when an instruction is
// decoded.
//
// Arithmetic counts on the host thread's default floating-point environment:
// round to nearest, subnormals kept. Directed rounding does not touch it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_FLOAT_H
#define FSR_LIB_PTX_FLOAT_H

#include "Warp.h"

namespace fsr::ptx {

enum class Rounding : uint8_t {
  None,
  Nearest, ///< Ties to even.
  Zero,
  Down,
  Up,
  NearestAway, ///< `.rna`
};

enum class Compare : uint8_t {
  None,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu,
  Num,
  Nan,
};

enum class Logic : uint8_t { None, And, Or, Xor };

enum class Arithmetic : uint8_t {
  Add,
  Sub,
  Mul,
  Fma,
  Div,
  Sqrt,
  Neg,
  Abs,
  Min,
  Max,
  Copysign,
};

enum class Approximation : uint8_t { Rcp, Rsqrt, Ex2, Lg2, Sin, Cos, Tanh };

enum class Test : uint8_t {
  None,
  Finite,
  Infinite,
  Number,
  NotANumber,
  Normal,
  Subnormal,
};

/// The modifiers of an instruction of this family.
struct FloatForm {
  explicit FloatForm(const Instruction &instruction);

  bool hasFloat() const;

  llvm::StringRef opcode;
  llvm::SmallVector<Type, 3> types; ///< In their order.
  Rounding rounding = Rounding::None;
  bool toInteger = false; ///< `.rni`, `.rzi`, `.rmi`, `.rpi`
  bool ftz = false, sat = false, satfinite = false, relu = false, nan = false;
  bool xorsign = false, abs = false, approx = false, full = false;
  bool pack = false;
  unsigned packBits = 0; ///< Of a result of `pack` narrower than a byte.
  Compare compare = Compare::None;
  Logic logic = Logic::None;
  Test test = Test::None;
  llvm::StringRef unknown; ///< The first modifier that is none of these.
};

/// A form with its handler, and how its operands are read.
struct FloatOp {
  Handler run = nullptr;
  llvm::SmallVector<Type, 2> results;
  llvm::SmallVector<Type, 4> sources;
  OpClass opClass = OpClass::Float32;
  uint16_t flops = 0;
  bool isApproximate = false;
  uint64_t immediate = 0;
  /// Why the form is not supported; empty where `run` is set.
  std::string problem;

  /// Sets the problem.
  void fail(const llvm::Twine &why) { problem = why.str(); }
};

/// Whether the CPU has what the wide handlers use.
bool hasWideVectors();

// Each fills the op, or says what is wrong. `wide`: handlers for CPUs with AVX2
// and what goes with it.

/// add sub mul fma mad div rcp sqrt neg abs min max copysign.
void selectArithmetic(const FloatForm &form, size_t operands, bool wide,
                      FloatOp &op);
/// rsqrt ex2 lg2 sin cos tanh, rcp and rsqrt of f64 that are approximate.
void selectApproximation(const FloatForm &form, bool wide, FloatOp &op);
/// setp set selp slct testp. `twoResults`: `p|q`. `sources` counts what follows
/// the destination.
void selectComparison(const FloatForm &form, bool twoResults, size_t sources,
                      bool wide, FloatOp &op);
/// In `immediate` of a comparison or selection: its last source is negated.
constexpr uint64_t comparisonNegated = 4;
/// cvt. The widths are those of the registers (32 or 64: cells; the result's
/// exactly, to which an integer result is extended).
void selectConversion(const FloatForm &form, size_t operands,
                      unsigned resultBits, unsigned sourceBits, bool wide,
                      FloatOp &op);

/// f64 in the directed modes, by integers. `mode` is any but NearestAway.
uint64_t roundedFma64(uint64_t a, uint64_t b, uint64_t c, Rounding mode);
uint64_t roundedAdd64(uint64_t a, uint64_t b, Rounding mode);
uint64_t roundedMul64(uint64_t a, uint64_t b, Rounding mode);
uint64_t roundedDiv64(uint64_t a, uint64_t b, Rounding mode);
uint64_t roundedSqrt64(uint64_t a, Rounding mode);

// NaN results, as an H200 gives them. f32 and the 16-bit formats have one; f64
// hands on the first of its operands that is a NaN, made quiet, in an order
// that depends on the operation.
constexpr uint64_t generatedNan64 = 0xfff8000000000000;
constexpr uint32_t canonicalNan32 = 0x7fffffff;
constexpr uint32_t canonicalNan16 = 0x7fff; ///< f16 and bf16.
inline bool isNan64(uint64_t bits) {
  return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000;
}
inline uint64_t propagatedNan64(uint64_t first, uint64_t second = 0,
                                uint64_t third = 0) {
  constexpr uint64_t quiet = 0x0008000000000000;
  uint64_t bits = isNan64(third) ? third | quiet : generatedNan64;
  bits = isNan64(second) ? second | quiet : bits;
  return isNan64(first) ? first | quiet : bits;
}

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_FLOAT_H
