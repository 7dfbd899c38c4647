// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What arithmetic does to true values and bounds. The bound of a result is how
// far the operation carries the bounds of its operands, with all orders, plus
// what the result may be rounded by; an exact result of exact operands has
// none.
//
// A sum with a constant that leaves no fraction (1.5 * 2^23 and the like)
// rounds to an integer on purpose: what was chosen is followed, as a branch is.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Decode.h"
#include "Exchange.h"
#include "Float.h"
#include "Shadow.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"

#include <cmath>

namespace fsr::ptx {

namespace {

using Kind = ShadowInfo::Kind;

constexpr Truth infinity = __builtin_infl();

/// Whether rounding to `precision` bits leaves it as it is, in the normal
/// range.
bool isRepresentable(const FormatTraits &traits, int precision, Truth value) {
  if (value == 0)
    return true;
  Truth size = std::fabs(value);
  if (size < traits.smallestNormal || size > traits.largest)
    return false;
  if (precision == 24)
    return Truth(float(value)) == value;
  if (precision == 53)
    return Truth(double(value)) == value;
  int exponent;
  Truth fraction = std::ldexp(std::frexp(size, &exponent), precision);
  return fraction == std::floor(fraction);
}

struct Outcome {
  Truth value = 0, spread = 0;
  bool isExact = false; ///< Whatever the operands held, nothing is rounded.
};

/// Rounds an outcome to the result's format. False: it has no shadow, as what
/// is held is no number.
bool finish(const ShadowInfo &info, Outcome outcome, ShadowEntry &to) {
  Truth value = outcome.value, spread = outcome.spread;
  if (!std::isfinite(value))
    return false;
  if (std::isnan(spread))
    spread = infinity;
  const FormatTraits &traits = traitsOf(info.format);
  int precision = info.precision ? info.precision : traits.precision;
  Truth size = std::fabs(value) + spread, least = traits.smallestNormal;
  bool isExact = outcome.isExact || (!info.isApproximate && spread == 0 &&
                                     isRepresentable(traits, precision, value));
  Truth bound = spread;
  if (!isExact) {
    bound += info.relative * size + info.absolute;
    if (size < 2 * least)
      bound += traits.smallest;
  }
  if (info.ftz && size != 0 && std::fabs(value) - bound < least)
    bound += least;
  if (size + bound > traits.largest)
    bound = infinity;
  if (info.sat)
    value = std::fmin(std::fmax(value, Truth(0)), Truth(1));
  if (info.relu)
    value = std::fmax(value, Truth(0));
  to = ShadowEntry();
  to.truth = value;
  to.bound = double(bound);
  to.format = info.format;
  return true;
}

/// How far f(x) lies from f(x + e) at most where f is monotone between.
template <typename Function>
Outcome monotone(Function function, Truth x, Truth e) {
  Truth value = function(x);
  if (e == 0)
    return {value, 0};
  Truth low = std::fabs(function(x - e) - value);
  Truth high = std::fabs(function(x + e) - value);
  if (std::isnan(low) || std::isnan(high))
    return {value, infinity};
  return {value, std::fmax(low, high)};
}

/// Scaling by it rounds nothing in the normal range.
bool isPowerOfTwo(ShadowNumber of) {
  int exponent;
  return of.bound == 0 &&
         std::fabs(std::frexp(of.value, &exponent)) == Truth(0.5);
}

/// The same number in both, not only within bounds.
bool areSame(ShadowNumber a, ShadowNumber b) {
  return a.bits == b.bits && a.value == b.value && a.bound == b.bound;
}

Outcome product(ShadowNumber a, ShadowNumber b) {
  Truth ea = a.bound, eb = b.bound;
  Outcome result{a.value * b.value, 0};
  if (ea || eb)
    result.spread = std::fabs(a.value) * eb + std::fabs(b.value) * ea + ea * eb;
  return result;
}

Outcome quotient(ShadowNumber a, ShadowNumber b) {
  Outcome result{a.value / b.value, 0};
  Truth ea = a.bound, eb = b.bound;
  if (!ea && !eb)
    return result;
  Truth room = std::fabs(b.value) - eb;
  result.spread =
      room > 0 ? (ea + std::fabs(result.value) * eb) / room : infinity;
  return result;
}

/// A number wins over a NaN, unless `nan`.
Outcome extreme(const ShadowInfo &info, ShadowNumber a, ShadowNumber b) {
  if (std::isnan(a.value) || std::isnan(b.value)) {
    if (info.nan || (std::isnan(a.value) && std::isnan(b.value)))
      return {__builtin_nanl(""), 0};
    ShadowNumber one = std::isnan(a.value) ? b : a;
    return {one.value, one.bound, true};
  }
  bool takesA = (a.value < b.value) == (info.kind == Kind::Min);
  ShadowNumber taken = takesA ? a : b;
  bool isCertain = std::fabs(a.value - b.value) > Truth(a.bound) + b.bound;
  return {taken.value, isCertain ? taken.bound : std::fmax(a.bound, b.bound),
          true};
}

Truth reciprocalRoot(Truth x) { return 1 / std::sqrt(x); }
Truth power(Truth x) { return std::exp2(x); }
Truth logarithm(Truth x) { return std::log2(x); }
Truth root(Truth x) { return std::sqrt(x); }
Truth tangent(Truth x) { return std::tanh(x); }

/// Of a sine or cosine; PTX allows for more the further out it is, and from a
/// hundred half turns on for anything.
Truth circularSpread(ShadowNumber of) {
  const Truth halfTurn = 3.14159265358979323846L;
  Truth size = std::fabs(of.value) + of.bound, spread = of.bound;
  if (size > halfTurn)
    spread += size > 100 * halfTurn ? Truth(2) : std::exp2(Truth(-14.7));
  return std::fmin(spread, Truth(2));
}

Outcome evaluate(const ShadowInfo &info, const ShadowNumber *of) {
  ShadowNumber a = of[0], b = of[1], c = of[2];
  switch (info.kind) {
  case Kind::Add:
  case Kind::Sub: {
    bool isSub = info.kind == Kind::Sub;
    // x - x is nothing, however far x is off.
    if (isSub && areSame(a, b))
      return {a.value - b.value, 0, true};
    return {isSub ? a.value - b.value : a.value + b.value,
            Truth(a.bound) + b.bound, a.isExactly(0) || b.isExactly(0)};
  }
  case Kind::Mul: {
    Outcome result = product(a, b);
    result.isExact = (isPowerOfTwo(a) || isPowerOfTwo(b)) &&
                     std::fabs(result.value) - result.spread >=
                         traitsOf(info.format).smallestNormal;
    return result;
  }
  case Kind::Fma: {
    Outcome result = product(a, b);
    result.isExact = result.value == 0 && result.spread == 0;
    // Of two doubles the product alone does not fit.
    result.value = info.format == Format::F64
                       ? std::fma(a.value, b.value, c.value)
                       : result.value + c.value;
    result.spread += c.bound;
    return result;
  }
  case Kind::Div:
    return quotient(a, b);
  case Kind::Rcp:
    return quotient({1, 0, 0}, a);
  case Kind::Sqrt:
    // Down to zero at least, as what is held was a number.
    if (a.value >= 0 && a.bound > a.value)
      return {root(a.value), root(a.value + a.bound)};
    return monotone(root, a.value, a.bound);
  case Kind::Neg:
    return {-a.value, a.bound, true};
  case Kind::Abs:
    return {std::fabs(a.value), a.bound, true};
  case Kind::Min:
  case Kind::Max:
    return extreme(info, a, b);
  case Kind::Copysign:
    // The magnitude is the second operand's.
    return {std::copysign(b.value, a.value), b.bound, true};
  case Kind::Rsqrt:
    if (a.bound >= a.value)
      return {reciprocalRoot(a.value), infinity};
    return monotone(reciprocalRoot, a.value, a.bound);
  case Kind::Ex2:
    if (a.isExactly(0))
      return {1, 0, true}; // PTX says so.
    return monotone(power, a.value, a.bound);
  case Kind::Lg2:
    if (a.bound && a.bound >= a.value)
      return {logarithm(a.value), infinity};
    return monotone(logarithm, a.value, a.bound);
  case Kind::Sin:
    return {std::sin(a.value), circularSpread(a)};
  case Kind::Cos:
    return {std::cos(a.value), circularSpread(a)};
  case Kind::Tanh:
    return monotone(tangent, a.value, a.bound);
  case Kind::Convert:
    return {a.value, a.bound, info.isWidening};
  }
  llvm_unreachable("unknown operation");
}

ShadowNumber flushed(ShadowNumber of, Format format) {
  Truth least = traitsOf(format).smallestNormal;
  if ((of.value != 0 || of.bound != 0) &&
      std::fabs(of.value) - of.bound < least)
    of.bound += double(least);
  return of;
}

const ShadowInfo &infoOf(const Op &op) {
  return *static_cast<const ShadowInfo *>(op.shadowInfo);
}

void setResult(Warp &warp, Slot slot, unsigned granule, unsigned lane,
               bool isKnown, const ShadowEntry &entry) {
  if (isKnown)
    warp.shadow->set(warp, slot, granule, lane, entry);
}

/// Results may lie over sources of no op (they never do), but a result may be
/// a source by name: all parts of a lane are read first.
void arithmetic(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  unsigned numSources = std::min<unsigned>(op.numSources, 3);
  bool isWide = bitsOf(info.from) == 64 || (info.parts > 1 && info.stride == 2);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    ShadowEntry entries[2];
    bool isKnown[2] = {};
    for (unsigned part = 0; part < info.parts; ++part) {
      unsigned granule = part * info.stride;
      ShadowNumber of[3];
      for (unsigned i = 0; i < numSources; ++i) {
        of[i] = readShadowNumber(warp, op.operand(i), lane, granule, info.from,
                                 isWide);
        if (info.ftz)
          of[i] = flushed(of[i], info.from);
      }
      Outcome outcome;
      if (info.xorsign) {
        bool isNegative =
            std::signbit(of[0].value) != std::signbit(of[1].value);
        of[0].value = std::fabs(of[0].value);
        of[1].value = std::fabs(of[1].value);
        outcome = evaluate(info, of);
        outcome.value = isNegative ? -outcome.value : outcome.value;
      } else {
        outcome = evaluate(info, of);
      }
      if (numSources == 3 &&
          (info.kind == Kind::Min || info.kind == Kind::Max)) {
        ShadowNumber first{outcome.value, double(outcome.spread), 0};
        outcome = extreme(info, first, of[2]);
      }
      isKnown[part] = finish(info, outcome, entries[part]);
    }
    warp.shadow->clear(warp, op.result(0), LaneMask(1) << lane);
    for (unsigned part = 0; part < info.parts; ++part)
      setResult(warp, op.result(0), part * info.stride, lane, isKnown[part],
                entries[part]);
  }
}

/// cvt of floats to one float, or two to a pair: the first source is the upper.
void convert(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  bool isWide = info.isWideSource || bitsOf(info.from) == 64;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    ShadowEntry entries[2];
    bool isKnown[2] = {};
    for (unsigned part = 0; part < info.parts; ++part) {
      ShadowNumber of = readShadowNumber(
          warp, op.operand(info.parts - 1 - part), lane, 0, info.from, isWide);
      if (info.ftz && info.from == Format::F32)
        of = flushed(of, info.from);
      isKnown[part] =
          finish(info, {of.value, of.bound, info.isWidening}, entries[part]);
    }
    warp.shadow->clear(warp, op.result(0), LaneMask(1) << lane);
    for (unsigned part = 0; part < info.parts; ++part)
      setResult(warp, op.result(0), part, lane, isKnown[part], entries[part]);
  }
}

void fromInteger(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t bits = cellBits(warp, op.operand(0), lane, info.isWideSource);
    unsigned unused = 64 - info.sourceBits;
    Truth value = info.isSigned ? Truth(int64_t(bits << unused) >> unused)
                                : Truth(bits << unused >> unused);
    ShadowEntry entry;
    bool isKnown = finish(info, {value, 0}, entry);
    warp.shadow->clear(warp, op.result(0), LaneMask(1) << lane);
    setResult(warp, op.result(0), 0, lane, isKnown, entry);
  }
}

/// setp: which lanes rounding may have decided.
void compare(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  bool isWide = bitsOf(info.from) == 64;
  LaneMask uncertain[2] = {0, 0};
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    for (unsigned part = 0; part < info.parts; ++part) {
      ShadowNumber a =
          readShadowNumber(warp, op.operand(0), lane, part, info.from, isWide);
      ShadowNumber b =
          readShadowNumber(warp, op.operand(1), lane, part, info.from, isWide);
      Truth both = Truth(a.bound) + b.bound;
      if (both > 0 && std::fabs(a.value - b.value) <= both)
        uncertain[part] |= LaneMask(1) << lane;
    }
  }
  if (info.parts == 1)
    uncertain[1] = uncertain[0];
  LaneMask more = op.numSources > 2
                      ? warp.shadow->uncertain(warp, op.operand(2))
                      : LaneMask(0);
  for (unsigned i = 0; i < op.numResults; ++i)
    warp.shadow->setUncertain(warp, op.result(i), active,
                              uncertain[std::min(i, 1u)] | more);
}

/// setp of integers that may be a float's bits: within one sign these are in
/// order as the floats are.
void compareBits(Warp &warp, const Op &op, LaneMask active) {
  LaneMask uncertain = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    for (unsigned i = 0; i < 2; ++i) {
      const ShadowEntry *entry =
          warp.shadow->find(warp, op.operand(i), 0, lane);
      if (!entry || entry->bound == 0)
        continue;
      Format format = entry->format;
      bool isWide = bitsOf(format) == 64;
      ShadowNumber a =
          readShadowNumber(warp, op.operand(i), lane, 0, format, isWide);
      ShadowNumber b =
          readShadowNumber(warp, op.operand(1 - i), lane, 0, format, isWide);
      // What is no number lies beyond all of them.
      if (std::isfinite(b.value) &&
          !(std::fabs(a.value - b.value) > Truth(a.bound) + b.bound))
        uncertain |= LaneMask(1) << lane;
    }
  }
  LaneMask more = op.numSources > 2
                      ? warp.shadow->uncertain(warp, op.operand(2))
                      : LaneMask(0);
  for (Slot slot : op.results())
    warp.shadow->setUncertain(warp, slot, active, uncertain | more);
}

/// and, or, xor, not and mov of predicates; votes take from all lanes.
void passUncertain(Warp &warp, const Op &op, LaneMask active) {
  LaneMask uncertain = 0;
  for (Slot slot : op.sources())
    uncertain |= warp.shadow->uncertain(warp, slot);
  if (op.control == Control::WarpSync)
    uncertain =
        warp.shadow->uncertain(warp, op.operand(0)) & active ? allLanes : 0;
  for (Slot slot : op.results())
    warp.shadow->setUncertain(warp, slot, active, uncertain);
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// The one format of a type and how its numbers lie.
bool setFormat(ShadowInfo &info, Type type) {
  info.parts = 1;
  info.stride = 1;
  switch (type) {
  case Type::F16x2:
    info.format = Format::F16;
    info.parts = 2;
    break;
  case Type::BF16x2:
    info.format = Format::BF16;
    info.parts = 2;
    break;
  case Type::F32x2:
    info.format = Format::F32;
    info.parts = 2;
    info.stride = 2;
    break;
  default:
    info.format = formatOf(type);
  }
  info.from = info.format;
  return info.format != Format::None;
}

/// Errors that PTX documents: over the result's size, and beside it.
void setApproximation(ShadowInfo &info, const FloatForm &form) {
  const Truth one = 1;
  Format format = info.format;
  auto power = [&](double exponent) { return std::exp2(Truth(exponent)); };
  info.isApproximate = true;
  switch (info.kind) {
  case Kind::Rcp:
  case Kind::Div:
    if (form.opcode == "rcp")
      info.relative = format == Format::F64 ? power(-19) : power(-23);
    else
      info.relative = power(-22); // Two ulp.
    break;
  case Kind::Sqrt:
    info.relative = power(-22);
    break;
  case Kind::Rsqrt:
    info.relative = format == Format::F64 ? power(-19) : power(-22);
    break;
  case Kind::Ex2:
    info.relative = format == Format::F16    ? power(-9.9)
                    : format == Format::BF16 ? power(-7)
                                             : power(-22);
    break;
  case Kind::Lg2:
    info.relative = power(-22);
    info.absolute = power(-22);
    break;
  case Kind::Sin:
  case Kind::Cos:
    info.absolute = power(-20.5);
    break;
  case Kind::Tanh:
    info.relative = format == Format::F32 ? power(-11) : Truth(0);
    info.absolute = format == Format::F16    ? power(-10.987)
                    : format == Format::BF16 ? power(-8)
                                             : Truth(0);
    break;
  default:
    break;
  }
  info.relative += traitsOf(format).unit * (one + one / 1024);
}

void setRounding(ShadowInfo &info, const FloatForm &form) {
  int precision =
      info.precision ? info.precision : traitsOf(info.format).precision;
  Truth unit = std::ldexp(Truth(1), -precision);
  bool isNearest = form.rounding == Rounding::None ||
                   form.rounding == Rounding::Nearest ||
                   form.rounding == Rounding::NearestAway;
  // A little more: the truth is rounded as well.
  info.relative = unit * (isNearest ? 1 : 2) * (1 + Truth(1) / 512);
}

/// Whether a sum with the constant has no fraction left.
bool leavesNoFraction(Decoder &decoder, const Op &op, unsigned source,
                      Format format) {
  Slot slot = op.operand(source);
  uint64_t bits = 0;
  if (slot != noSlot && (slot & constantBit)) {
    const uint8_t *at = decoder.result().constants.data() +
                        size_t(slot & ~constantBit) * slotBytes;
    std::memcpy(&bits, at, bitsOf(format) / 8);
  } else {
    // Compilers put literals that several instructions use into registers.
    const Instruction &instruction = decoder.instruction();
    if (source + 1 >= instruction.operands.size())
      return false;
    std::optional<uint64_t> literal =
        decoder.literalOf(instruction.operands[source + 1]);
    if (!literal)
      return false;
    bits = *literal;
  }
  Truth size = std::fabs(decodeFloat(format, bits));
  int precision = traitsOf(format).precision;
  return size >= std::ldexp(Truth(1), precision - 1) &&
         size < std::ldexp(Truth(1), precision);
}

Handler arithmeticShadow(Decoder &decoder, Op &op, ShadowInfo &info) {
  FloatForm form(decoder.instruction());
  auto kind = llvm::StringSwitch<std::optional<Kind>>(form.opcode)
                  .Case("add", Kind::Add)
                  .Case("sub", Kind::Sub)
                  .Case("mul", Kind::Mul)
                  .Cases({"fma", "mad"}, Kind::Fma)
                  .Cases({"div", "rcp"}, Kind::Div)
                  .Case("sqrt", Kind::Sqrt)
                  .Case("neg", Kind::Neg)
                  .Case("abs", Kind::Abs)
                  .Case("min", Kind::Min)
                  .Case("max", Kind::Max)
                  .Case("copysign", Kind::Copysign)
                  .Case("rsqrt", Kind::Rsqrt)
                  .Case("ex2", Kind::Ex2)
                  .Case("lg2", Kind::Lg2)
                  .Case("sin", Kind::Sin)
                  .Case("cos", Kind::Cos)
                  .Case("tanh", Kind::Tanh)
                  .Default(std::nullopt);
  if (!kind || form.types.size() != 1 || !setFormat(info, form.types[0]))
    return nullptr;
  info.kind = *kind;
  info.ftz = form.ftz;
  info.sat = form.sat;
  info.relu = form.relu;
  info.nan = form.nan;
  info.xorsign = form.xorsign;
  // Most are decoded as one divided by the operand.
  if (form.opcode == "rcp" && op.numSources == 1)
    info.kind = Kind::Rcp;
  bool isFunction =
      *kind == Kind::Rsqrt || (*kind >= Kind::Ex2 && *kind <= Kind::Tanh);
  if (form.approx || form.full || isFunction)
    setApproximation(info, form);
  else
    setRounding(info, form);
  bool isSum = *kind == Kind::Add || *kind == Kind::Sub || *kind == Kind::Fma;
  if (isSum)
    for (unsigned i = *kind == Kind::Fma ? 2 : 0; i < op.numSources; ++i)
      if (leavesNoFraction(decoder, op, i, info.format)) {
        info.isChoice = true;
        return nullptr;
      }
  return arithmetic;
}

bool isInteger(Type type) { return type >= Type::B8 && type <= Type::S64; }

Handler convertShadow(Decoder &decoder, Op &op, ShadowInfo &info) {
  const Instruction &instruction = decoder.instruction();
  FloatForm form(instruction);
  info.isChoice =
      form.toInteger || (!form.types.empty() && isInteger(form.types.front()));
  if (form.types.size() != 2 || form.pack || form.toInteger ||
      instruction.operands.size() < 2)
    return nullptr;
  Type to = form.types[0], from = form.types[1];
  info.kind = Kind::Convert;
  info.ftz = form.ftz;
  info.sat = form.sat;
  info.relu = form.relu;
  info.isWideSource =
      bitWidth(decoder.registerType(instruction.operands[1])) == 64;
  if (to == Type::TF32) {
    info.format = Format::F32;
    info.precision = 11;
  } else if (!setFormat(info, to)) {
    return nullptr;
  }
  if (bitWidth(decoder.registerType(instruction.operands[0])) == 64 &&
      info.format != Format::F64)
    return nullptr;
  setRounding(info, form);
  if (isInteger(from)) {
    info.sourceBits = uint8_t(bitWidth(from));
    info.isSigned = isSigned(from);
    return info.parts == 1 ? fromInteger : nullptr;
  }
  info.from = formatOf(from);
  if (info.from == Format::None || op.numSources != info.parts)
    return nullptr;
  const FormatTraits &wide = traitsOf(info.format),
                     &narrow = traitsOf(info.from);
  info.isWidening = !info.precision && wide.precision >= narrow.precision &&
                    wide.minimumExponent <= narrow.minimumExponent;
  return convert;
}

Handler predicateShadow(Decoder &decoder, ShadowInfo &info) {
  const Instruction &instruction = decoder.instruction();
  if (instruction.opcode == "setp") {
    FloatForm form(instruction);
    if (form.types.size() == 1 && setFormat(info, form.types[0]))
      return compare;
    return compareBits;
  }
  if (instruction.opcode == "vote")
    return passUncertain;
  bool isLogic = instruction.opcode == "and" || instruction.opcode == "or" ||
                 instruction.opcode == "xor" || instruction.opcode == "not" ||
                 instruction.opcode == "mov";
  return isLogic && instruction.has("pred") ? passUncertain : nullptr;
}

} // namespace

static bool holdsRounded(Warp &warp, const Op &op, LaneMask active) {
  for (Slot slot : op.sources())
    for (unsigned granule = 0; granule < ShadowRegisters::granules; ++granule)
      if (warp.shadow->has(warp, slot, granule))
        for (LaneMask rest = active; rest; rest &= rest - 1) {
          const ShadowEntry *entry = warp.shadow->find(
              warp, slot, granule, unsigned(__builtin_ctz(rest)));
          if (entry && entry->bound > 0)
            return true;
        }
  return false;
}

/// Whether a type of the instruction is a float's of any kind.
static bool touchesFloats(const Instruction &instruction) {
  for (llvm::StringRef modifier : instruction.modifiers)
    if (modifier.contains("f16") || modifier.contains("f32") ||
        modifier.contains("f64") || modifier.starts_with("e4m3") ||
        modifier.starts_with("e5m2") || modifier == "tf32")
      return true;
  return false;
}

void clearResults(Warp &warp, const Op &op, LaneMask active) {
  for (Slot slot : op.results()) {
    warp.shadow->clear(warp, slot, active);
    warp.shadow->setUncertain(warp, slot, active, 0);
  }
}

/// An op with no rule: its results are their own truth. That hides an error
/// where it rounds, or takes a rounded value apart.
static void dropShadow(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  if (!info.isChoice &&
      !warp.block->launch->isShadowDoubted.load(std::memory_order_relaxed)) {
    if (info.isUnknown)
      warp.doubtShadow(op, "there is no rule for what it rounds");
    else if (holdsRounded(warp, op, active))
      warp.doubtShadow(op, "the bits of a rounded value are used otherwise");
  }
  clearResults(warp, op, active);
}

void shadowGuard(Warp &warp, const Op &op, LaneMask lanes) {
  LaneMask uncertain = warp.shadow->uncertain(warp, op.guard) & lanes;
  if (!uncertain)
    return;
  const char *text =
      op.control == Control::Plain
          ? "what a guard lets through depends on a rounded value"
          : "a branch depends on a rounded value";
  warp.doubtShadow(op, text);
  warp.remark(op, __builtin_ctz(uncertain), FindingKind::Other, 0, text);
}

void setShadow(Decoder &decoder, Op &op) {
  llvm::StringRef opcode = decoder.instruction().opcode;
  auto *info = decoder.makeInfo<ShadowInfo>();
  Handler shadow = moveShadow(decoder, op, *info);
  if (!shadow)
    shadow = memoryShadow(decoder, op, *info);
  if (!shadow)
    shadow = tensorShadow(decoder, op, *info);
  if (!shadow)
    shadow = predicateShadow(decoder, *info);
  if (!shadow && opcode == "cvt")
    shadow = convertShadow(decoder, op, *info);
  else if (!shadow)
    shadow = arithmeticShadow(decoder, op, *info);
  if (!shadow && op.numResults) {
    bool rounds =
        op.opClass == OpClass::Float16 || op.opClass == OpClass::Float32 ||
        op.opClass == OpClass::Float64 || op.opClass == OpClass::Special ||
        op.opClass == OpClass::Tensor || opcode == "cvt";
    info->isUnknown = rounds && opcode != "testp" && opcode != "slct" &&
                      touchesFloats(decoder.instruction());
    shadow = dropShadow;
  }
  op.shadow = shadow;
  op.shadowInfo = info;
}

} // namespace fsr::ptx
