// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which forms of integer arithmetic there are, and their handlers. The carry
// flag of sums of several words is a predicate of the function that no register
// names.
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
#include "IntegerArithmetic.inl"
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
#include "IntegerArithmetic.inl"
} // namespace v3
#pragma clang attribute pop
#else
namespace v3 = base;
#endif

constexpr Type plainTypes[] = {Type::U16, Type::U32, Type::U64,
                               Type::S16, Type::S32, Type::S64};
constexpr Type carryTypes[] = {Type::U32, Type::S32, Type::U64, Type::S64};

Type doubleOf(Type type) {
  return bitWidth(type) == 16 ? Type::B32 : Type::B64;
}
} // namespace

Decoded IntegerDecoder::sum() {
  if (!rest.empty() && rest.front() == "cc")
    return carried();
  bool subtracts = opcode == "sub", saturates = take("sat");
  Type type;
  llvm::SmallVector<Type, 8> allowed(llvm::ArrayRef<Type>{plainTypes});
  if (saturates)
    allowed = {Type::S32};
  else if (!subtracts)
    allowed.append({Type::U16x2, Type::S16x2});
  if (!takeType(type, allowed))
    return Decoded::Failed;
  return finish(
      (wide ? v3::sumHandler : base::sumHandler)(type, subtracts, saturates),
      type, {type, type});
}

Decoded IntegerDecoder::carried() {
  bool reads = opcode.consume_back("c");
  bool isProduct = opcode == "mad";
  std::optional<unsigned> mode;
  if (isProduct && !(mode = takeOf({"lo", "hi"})))
    return decoder.fail("expected .lo or .hi");
  bool writes = take("cc");
  Type type;
  if (!takeType(type, carryTypes))
    return Decoded::Failed;
  Slot flag = decoder.carrySlot();
  if (writes)
    moreResults.push_back(flag);
  if (reads)
    moreSources.push_back(flag);
  if (!isProduct)
    return finish((wide ? v3::carryHandler : base::carryHandler)(
                      type, opcode == "sub", reads, writes),
                  type, {type, type});
  return finish((wide ? v3::multiplyCarryHandler : base::multiplyCarryHandler)(
                    type, *mode == 1, reads, writes),
                type, {type, type, type});
}

Decoded IntegerDecoder::product() {
  if (opcode == "mad" && rest.size() > 1 && rest[1] == "cc")
    return carried();
  bool is24 = opcode.ends_with("24"), adds = opcode.starts_with("mad");
  std::optional<unsigned> mode = takeOf({"lo", "hi", "wide"});
  if (!mode || (is24 && *mode == 2))
    return decoder.fail(is24 ? "expected .lo or .hi"
                             : "expected .lo, .hi or .wide");
  bool saturates = adds && *mode == 1 && take("sat");
  llvm::SmallVector<Type, 8> allowed(llvm::ArrayRef<Type>{plainTypes});
  if (saturates)
    allowed = {Type::S32};
  else if (is24)
    allowed = {Type::U32, Type::S32};
  else if (*mode == 2)
    allowed = {Type::U16, Type::S16, Type::U32, Type::S32};
  Type type;
  if (!takeType(type, allowed))
    return Decoded::Failed;
  Type result = *mode == 2 ? doubleOf(type) : type;
  Handler run;
  if (saturates)
    run = (wide ? v3::saturatedProductHandler
                : base::saturatedProductHandler)(is24);
  else if (is24)
    run = (wide ? v3::product24Handler
                : base::product24Handler)(isSigned(type), *mode == 1, adds);
  else
    run = (wide ? v3::productHandler : base::productHandler)(type, *mode, adds);
  if (adds)
    return finish(run, result, {type, type, result});
  return finish(run, result, {type, type});
}

Decoded IntegerDecoder::plain() {
  Type type;
  if (!takeType(type, plainTypes))
    return Decoded::Failed;
  unsigned which = opcode == "div" ? 0 : opcode == "rem" ? 1 : 2;
  Handler run = (wide ? v3::plainHandler : base::plainHandler)(type, which);
  if (which == 2)
    return finish(run, type, {type, type, type});
  return finish(run, type, {type, type});
}

Decoded IntegerDecoder::extreme() {
  bool relu = take("relu");
  llvm::SmallVector<Type, 8> allowed(llvm::ArrayRef<Type>{plainTypes});
  allowed.append({Type::U16x2, Type::S16x2});
  if (relu)
    allowed = {Type::S32, Type::S16x2};
  Type type;
  if (!takeType(type, allowed))
    return Decoded::Failed;
  // CUDA's own headers have it behind the type, where ptxas takes it as well.
  if (!relu && (type == Type::S32 || type == Type::S16x2))
    relu = take("relu");
  return finish((wide ? v3::extremeHandler
                      : base::extremeHandler)(type, opcode == "max", relu),
                type, {type, type});
}

Decoded IntegerDecoder::magnitude() {
  Type type;
  if (!takeType(type, {Type::S16, Type::S32, Type::S64}))
    return Decoded::Failed;
  return finish((wide ? v3::magnitudeHandler
                      : base::magnitudeHandler)(type, opcode == "neg"),
                type, type);
}

Decoded IntegerDecoder::dot() {
  bool isWords = opcode == "dp2a";
  std::optional<unsigned> half;
  if (isWords && !(half = takeOf({"lo", "hi"})))
    return decoder.fail("expected .lo or .hi");
  Type a, b;
  if (!takeType(a, {Type::U32, Type::S32}) ||
      !takeType(b, {Type::U32, Type::S32}))
    return Decoded::Failed;
  Handler (*pick)(bool, bool, bool, bool) =
      wide ? v3::dotHandler : base::dotHandler;
  return finish(pick(isWords, half == 1, isSigned(a), isSigned(b)), Type::B32,
                {a, b, Type::B32});
}

} // namespace fsr::ptx
