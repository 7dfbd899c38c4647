// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The fundamental types by name and size, and look-ups in a module.
//
//===----------------------------------------------------------------------===//

#include "fsr/PTX/Module.h"

namespace fsr::ptx {

namespace {

struct TypeEntry {
  llvm::StringLiteral name;
  unsigned bits;
};

/// In the order of `Type`.
constexpr TypeEntry types[] = {
    {"", 0},        {"pred", 1},    {"b8", 8},     {"b16", 16},    {"b32", 32},
    {"b64", 64},    {"b128", 128},  {"u8", 8},     {"u16", 16},    {"u32", 32},
    {"u64", 64},    {"s8", 8},      {"s16", 16},   {"s32", 32},    {"s64", 64},
    {"f16", 16},    {"f16x2", 32},  {"bf16", 16},  {"bf16x2", 32}, {"tf32", 32},
    {"f32", 32},    {"f32x2", 64},  {"f64", 64},   {"e4m3", 8},    {"e5m2", 8},
    {"e4m3x2", 16}, {"e5m2x2", 16}, {"u16x2", 32}, {"s16x2", 32},
};
static_assert(std::size(types) == size_t(Type::S16x2) + 1);

} // namespace

llvm::StringRef nameOf(Type type) { return types[size_t(type)].name; }

std::optional<Type> parseType(llvm::StringRef name) {
  for (size_t i = 1; i < std::size(types); ++i)
    if (types[i].name == name)
      return Type(i);
  return std::nullopt;
}

unsigned bitWidth(Type type) { return types[size_t(type)].bits; }

bool isFloat(Type type) { return type >= Type::F16 && type <= Type::E5M2x2; }

bool isSigned(Type type) {
  return (type >= Type::S8 && type <= Type::S64) || type == Type::S16x2;
}

const Function *Module::findFunction(llvm::StringRef name) const {
  for (const Function &function : functions)
    if (function.name == name)
      return &function;
  return nullptr;
}

const Variable *Module::findVariable(llvm::StringRef name) const {
  for (const Variable &variable : variables)
    if (variable.name == name)
      return &variable;
  return nullptr;
}

llvm::StringRef Module::lineText(unsigned line) const {
  llvm::StringRef rest = text;
  for (; line > 1 && !rest.empty(); --line)
    rest = rest.split('\n').second;
  return line == 0 ? llvm::StringRef() : rest.split('\n').first.trim();
}

} // namespace fsr::ptx
