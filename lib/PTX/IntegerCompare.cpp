// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which comparisons and selections by integers there are, and their handlers.
//
//===----------------------------------------------------------------------===//

#include "Integer.h"

namespace fsr::ptx {

namespace {
namespace base {
#include "Lanes.inl"
// Needs the one above.
#include "IntegerLanes.inl"
// Needs both.
#include "IntegerCompare.inl"
} // namespace base

#if defined(__x86_64__)
#pragma clang attribute push(                                                  \
    __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt"))),                   \
    apply_to = function)
namespace v3 {
#include "Lanes.inl"
// Needs the one above.
#include "IntegerLanes.inl"
// Needs both.
#include "IntegerCompare.inl"
} // namespace v3
#pragma clang attribute pop
#else
namespace v3 = base;
#endif

constexpr Type comparedTypes[] = {Type::B16, Type::B32, Type::B64,
                                  Type::U16, Type::U32, Type::U64,
                                  Type::S16, Type::S32, Type::S64};
/// How each comparison is made of "equal" and "less"; `lo` and those behind it
/// are of unsigned numbers.
struct Comparison {
  bool less, swapped, inverted;
};
constexpr Comparison comparisons[] = {
    {false, false, false}, // eq
    {false, false, true},  // ne
    {true, false, false},  // lt
    {true, true, true},    // le
    {true, true, false},   // gt
    {true, false, true},   // ge
    {true, false, false},  // lo
    {true, true, true},    // ls
    {true, true, false},   // hi
    {true, false, true},   // hs
};
constexpr unsigned firstOrder = 2, firstUnsigned = 6;

bool isUntyped(Type type) {
  return type == Type::B16 || type == Type::B32 || type == Type::B64;
}
} // namespace

Decoded IntegerDecoder::setPredicate() { return compare(true); }
Decoded IntegerDecoder::set() { return compare(false); }

Decoded IntegerDecoder::compare(bool isPredicate) {
  std::optional<unsigned> which =
      takeOf({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"});
  if (!which)
    return rest.empty() ? decoder.fail("a comparison is missing")
                        : decoder.failModifier(rest.front());
  std::optional<unsigned> logic = takeOf({"and", "or", "xor"});
  static constexpr Logic logics[] = {Logic::And, Logic::Or, Logic::Xor};
  Type result = Type::Pred, type;
  if (!isPredicate && !takeType(result, {Type::U32, Type::S32, Type::F32}))
    return Decoded::Failed;
  if (!takeType(type, comparedTypes))
    return Decoded::Failed;
  if ((*which >= firstOrder && isUntyped(type)) ||
      (*which >= firstUnsigned && isSigned(type)))
    return decoder.fail("this comparison is not one of " + nameOf(type));

  Comparison how = comparisons[*which];
  if (how.inverted)
    op.immediate |= IntegerInverted;
  if (result == Type::F32)
    op.immediate |= IntegerFloatOne;
  llvm::SmallVector<Type, 3> sources = {type, type};
  if (logic) {
    op.immediate |= uint64_t(logics[*logic]);
    sources.push_back(Type::Pred);
    lastMayBeNegated = true;
  }
  llvm::SmallVector<Type, 2> results = {result};
  if (isPredicate && !instruction.operands.empty() &&
      instruction.operands[0].kind == Operand::Kind::Pair)
    results.push_back(Type::Pred);
  Decoded decoded = finish((wide ? v3::compareHandler : base::compareHandler)(
                               type, how.less, isPredicate),
                           results, sources);
  if (decoded == Decoded::Done && how.swapped)
    std::swap(op.slots[op.numResults], op.slots[op.numResults + 1]);
  return decoded;
}

Decoded IntegerDecoder::select() {
  Type type;
  if (!takeType(type, comparedTypes))
    return Decoded::Failed;
  op.isCopy = true;
  return finish(
      (wide ? v3::selectHandler : base::selectHandler)(bitWidth(type) == 64),
      type, {type, type, Type::Pred});
}

Decoded IntegerDecoder::selectBySign() {
  Type type, by;
  if (!takeType(type, comparedTypes) || !takeType(by, Type::S32))
    return Decoded::Failed;
  return finish(
      (wide ? v3::signHandler : base::signHandler)(bitWidth(type) == 64), type,
      {type, type, by});
}

} // namespace fsr::ptx
