// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which comparisons and selections by floating-point numbers there are, and
// their handlers.
//
//===----------------------------------------------------------------------===//

#include "Float.h"

#pragma clang fp contract(off)

namespace fsr::ptx {

namespace {

enum Relation : unsigned {
  RelationLess = 1,
  RelationEqual = 2,
  RelationGreater = 4,
  RelationUnordered = 8,
};

/// `Op::immediate`; the bits of "true" stand above 32.
enum CompareFlags : unsigned {
  CompareLogic = 3,   ///< With the third operand: none, and, or, xor.
  CompareNegated = 4, ///< The third operand is.
  ComparePair = 8,    ///< A result of two halves.
};

} // namespace

static_assert(comparisonNegated == CompareNegated);

#define FSR_PTX_FAMILY "FloatCompare.inl"
#include "FloatBoth.inl"

namespace {

bool isCompared(Type type) {
  switch (type) {
  case Type::F16:
  case Type::F16x2:
  case Type::BF16:
  case Type::BF16x2:
  case Type::F32:
  case Type::F64:
    return true;
  default:
    return false;
  }
}

bool isPair(Type type) { return type == Type::F16x2 || type == Type::BF16x2; }

OpClass classOf(Type type) {
  return type == Type::F64   ? OpClass::Float64
         : type == Type::F32 ? OpClass::Float32
                             : OpClass::Float16;
}

/// What `set` writes where the comparison holds; none: not a result of it.
std::optional<uint32_t> trueBits(Type result, Type source) {
  bool isShort = source != Type::F32 && source != Type::F64;
  switch (result) {
  case Type::U32:
  case Type::S32:
    return 0xffffffff;
  case Type::F32:
    return isShort ? std::nullopt : std::optional<uint32_t>(0x3f800000);
  case Type::U16:
  case Type::S16:
    return isShort && !isPair(source) ? std::optional<uint32_t>(0xffff)
                                      : std::nullopt;
  case Type::F16:
    return isPair(source) ? std::nullopt : std::optional<uint32_t>(0x3c00);
  case Type::BF16:
    return isPair(source) ? std::nullopt : std::optional<uint32_t>(0x3f80);
  case Type::F16x2:
    return source == Type::F16x2 ? std::optional<uint32_t>(0x3c003c00)
                                 : std::nullopt;
  case Type::BF16x2:
    return source == Type::BF16x2 ? std::optional<uint32_t>(0x3f803f80)
                                  : std::nullopt;
  default:
    return std::nullopt;
  }
}

} // namespace

void selectComparison(const FloatForm &form, bool twoResults, size_t sources,
                      bool wide, FloatOp &op) {
  if (form.rounding != Rounding::None || form.sat || form.satfinite ||
      form.relu || form.nan || form.xorsign || form.abs || form.approx ||
      form.full || form.pack)
    return op.fail("a modifier is not one of this form's");
  llvm::StringRef opcode = form.opcode;
  size_t types = opcode == "set" || opcode == "slct" ? 2 : 1;
  if (form.types.size() != types)
    return op.fail("expected " + llvm::Twine(types) + " types, got " +
                   llvm::Twine(form.types.size()));
  Type type = form.types.back(), first = form.types.front();
  bool hasCompare = form.compare != Compare::None;
  bool isComparison = opcode == "setp" || opcode == "set";
  if (isComparison != hasCompare ||
      (!isComparison && form.logic != Logic::None) ||
      (opcode == "testp") != (form.test != Test::None))
    return op.fail("a modifier is not one of this form's");
  if (twoResults && opcode != "setp")
    return op.fail("only setp has two results");
  op.opClass = classOf(type);

  if (isComparison) {
    if (!isCompared(type))
      return op.fail("the type is not one of this instruction's");
    if (form.ftz &&
        (type == Type::F64 || type == Type::BF16 || type == Type::BF16x2))
      return op.fail("the modifier '.ftz' is not one of this form's");
    bool isPredicate = opcode == "setp";
    if (isPredicate && isPair(type) && !twoResults)
      return op.fail("a comparison of pairs has two results");
    op.sources = {type, type};
    op.immediate = unsigned(form.logic);
    if (form.logic != Logic::None)
      op.sources.push_back(Type::Pred);
    if (isPredicate) {
      op.results.assign(twoResults ? 2 : 1, Type::Pred);
    } else {
      std::optional<uint32_t> bits = trueBits(first, type);
      if (!bits)
        return op.fail("the types do not go together");
      op.results = {first};
      op.immediate |= uint64_t(*bits) << 32;
      if (isPair(type))
        op.immediate |= ComparePair;
    }
    op.run = (wide ? v3::compareHandler : base::compareHandler)(
        form.compare, type, form.ftz, isPredicate);
  } else if (opcode == "selp") {
    if (form.ftz || (type != Type::F32 && type != Type::F64))
      return op.fail("the type is not one of this instruction's");
    op.results = {type};
    op.sources = {type, type, Type::Pred};
    op.run =
        (wide ? v3::selectHandler : base::selectHandler)(type == Type::F64);
  } else if (opcode == "slct") {
    bool byFloat = type == Type::F32;
    if ((!byFloat && type != Type::S32) || (form.ftz && !byFloat) ||
        bitWidth(first) < 16 || bitWidth(first) > 64)
      return op.fail("the types do not go together");
    op.results = {first};
    op.sources = {first, first, type};
    op.run = (wide ? v3::signHandler : base::signHandler)(bitWidth(first) == 64,
                                                          byFloat, form.ftz);
  } else {
    if (form.ftz || (type != Type::F32 && type != Type::F64))
      return op.fail("the type is not one of this instruction's");
    op.results = {Type::Pred};
    op.sources = {type};
    op.immediate = uint64_t(form.test);
    op.run = (wide ? v3::testHandler : base::testHandler)(type == Type::F64);
  }
  if (sources != op.sources.size()) {
    op.run = nullptr;
    op.fail("expected " + llvm::Twine(op.sources.size()) + " sources, got " +
            llvm::Twine(sources));
  }
}

} // namespace fsr::ptx
