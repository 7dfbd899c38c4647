// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tables of the element types, targets, the names that may stand in device
// code, and doubles as bit patterns. One row a type, so that a new type is one
// new row.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Types.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fsr {

namespace {

struct ElementRow {
  ElementType type;
  llvm::StringLiteral name;
  llvm::StringLiteral cuda;
  unsigned bytes;
  int significand; ///< Bits of a float's significand; 0 for integers.
};

constexpr ElementRow elementRows[] = {
    {ElementType::I1, "i1", "bool", 1, 0},
    {ElementType::I8, "i8", "signed char", 1, 0},
    {ElementType::I16, "i16", "short", 2, 0},
    {ElementType::I32, "i32", "int", 4, 0},
    {ElementType::I64, "i64", "long long", 8, 0},
    {ElementType::F16, "f16", "__half", 2, 11},
    {ElementType::BF16, "bf16", "__nv_bfloat16", 2, 8},
    {ElementType::F32, "f32", "float", 4, 24},
    {ElementType::F64, "f64", "double", 8, 53},
};

const ElementRow &rowOf(ElementType type) {
  for (const ElementRow &row : elementRows)
    if (row.type == type)
      return row;
  llvm_unreachable("element type without a row");
}

/// Keywords of C++20 and of CUDA, and the alternative spellings of operators;
/// sorted. A parameter or argument of such a name cannot be compiled.
constexpr llvm::StringLiteral reservedNames[] = {
    "alignas",      "alignof",
    "and",          "and_eq",
    "asm",          "auto",
    "bitand",       "bitor",
    "blockDim",     "blockIdx",
    "bool",         "break",
    "case",         "catch",
    "char",         "char16_t",
    "char32_t",     "char8_t",
    "class",        "co_await",
    "co_return",    "co_yield",
    "compl",        "concept",
    "const",        "const_cast",
    "consteval",    "constexpr",
    "constinit",    "continue",
    "decltype",     "default",
    "delete",       "do",
    "double",       "dynamic_cast",
    "else",         "enum",
    "explicit",     "export",
    "extern",       "false",
    "float",        "for",
    "friend",       "goto",
    "gridDim",      "if",
    "inline",       "int",
    "int16_t",      "int32_t",
    "int64_t",      "int8_t",
    "long",         "mutable",
    "namespace",    "new",
    "noexcept",     "not",
    "not_eq",       "nullptr",
    "operator",     "or",
    "or_eq",        "private",
    "protected",    "public",
    "register",     "reinterpret_cast",
    "requires",     "return",
    "short",        "signed",
    "size_t",       "sizeof",
    "static",       "static_assert",
    "static_cast",  "struct",
    "switch",       "template",
    "this",         "threadIdx",
    "thread_local", "throw",
    "true",         "try",
    "typedef",      "typeid",
    "typename",     "uint16_t",
    "uint32_t",     "uint64_t",
    "uint8_t",      "union",
    "unsigned",     "using",
    "virtual",      "void",
    "volatile",     "warpSize",
    "wchar_t",      "while",
    "xor",          "xor_eq",
};

} // namespace

llvm::StringRef nameOf(ElementType type) { return rowOf(type).name; }

std::optional<ElementType> parseElementType(llvm::StringRef name) {
  for (const ElementRow &row : elementRows)
    if (row.name == name)
      return row.type;
  return std::nullopt;
}

unsigned byteSize(ElementType type) { return rowOf(type).bytes; }

bool isFloat(ElementType type) { return rowOf(type).significand != 0; }

double unitRoundoff(ElementType type) {
  int significand = rowOf(type).significand;
  return significand ? std::ldexp(1.0, -significand) : 0.0;
}

llvm::StringRef cudaName(ElementType type) { return rowOf(type).cuda; }

bool isCIdentifier(llvm::StringRef text) {
  if (text.empty() || text.size() > 255 || llvm::isDigit(text.front()))
    return false;
  return llvm::all_of(text,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

bool isUsableName(llvm::StringRef text) {
  return isCIdentifier(text) && !text.starts_with("__") &&
         !std::binary_search(std::begin(reservedNames), std::end(reservedNames),
                             text);
}

llvm::Expected<Target> Target::parse(llvm::StringRef text) {
  llvm::StringRef rest = text;
  bool good = rest.consume_front("sm_");
  if (good && (rest.ends_with("a") || rest.ends_with("f")))
    rest = rest.drop_back();
  unsigned number = 0;
  // Two or three digits: the published ones are sm_20 to sm_121.
  good = good && rest.size() >= 2 && rest.size() <= 3 && rest.front() != '0' &&
         llvm::all_of(rest, llvm::isDigit) && !rest.getAsInteger(10, number);
  if (!good)
    return makeError(ErrorKind::BadInput,
                     "got target '" + text.take_front(64) +
                         "', wanted sm_ and a compute capability, as sm_90 or "
                         "sm_90a");
  return Target{text.str()};
}

std::string Target::family() const {
  llvm::StringRef text = chip;
  if (text.ends_with("a") || text.ends_with("f"))
    text = text.drop_back();
  return text.str();
}

unsigned Target::computeCapability() const {
  unsigned number = 0;
  std::string name = family();
  llvm::StringRef digits = name;
  digits.consume_front("sm_");
  return digits.getAsInteger(10, number) ? 0 : number;
}

std::string doubleToHex(double value) {
  return llvm::utohexstr(llvm::bit_cast<uint64_t>(value), /*LowerCase=*/true,
                         /*Width=*/16);
}

std::optional<double> doubleFromHex(llvm::StringRef hex) {
  uint64_t bits = 0;
  if (hex.size() != 16 || !llvm::all_of(hex, llvm::isHexDigit) ||
      hex.getAsInteger(16, bits))
    return std::nullopt;
  return llvm::bit_cast<double>(bits);
}

} // namespace fsr
