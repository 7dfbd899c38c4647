// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a kernel may reach is what its code names, what the code of those
// functions names, and functions in tables that are named.
//
//===----------------------------------------------------------------------===//

#include "Link.h"

#include <algorithm>

namespace fsr::ptx {

static void visitNames(const Operand &operand,
                       llvm::function_ref<void(const Operand &)> visit) {
  visit(operand);
  for (const Operand &element : operand.elements)
    visitNames(element, visit);
}

/// Of a shared variable of a function, or of the module.
static std::string keyOf(const Function *function, llvm::StringRef name) {
  return (function ? function->name : std::string()) + "$" + name.str();
}

std::string LinkedKernel::localName(const Function &function,
                                    llvm::StringRef name) {
  return keyOf(&function, name);
}

uint64_t LinkedKernel::addressOf(const Module &module,
                                 const Function &function) {
  return firstFunctionAddress +
         uint64_t(&function - module.functions.data()) * functionStride;
}

LinkedKernel::LinkedKernel(LoadedModule &loaded, const Function &kernel)
    : loaded(loaded) {
  add(kernel);
  collect();
}

void LinkedKernel::add(const Function &function) {
  if (!byName.try_emplace(function.name, programs.size()).second)
    return;
  programs.push_back(std::make_unique<Program>());
  Program &program = *programs.back();
  program.module = loaded.module.get();
  program.function = &function;
  program.number = unsigned(programs.size() - 1);
}

void LinkedKernel::place(std::string key, const Variable &variable) {
  if (variable.isUnsizedArray || (variable.isExtern && !variable.bytes)) {
    dynamic.push_back({std::move(key), &variable});
    return;
  }
  uint64_t alignment = std::max<uint64_t>(variable.alignment, 1);
  staticShared = (staticShared + alignment - 1) / alignment * alignment;
  shared[key] = staticShared;
  staticShared += variable.bytes;
}

void LinkedKernel::use(llvm::StringRef name) {
  // Not by recursion: tables may name tables for as long as they like.
  llvm::SmallVector<llvm::StringRef, 8> pending{name};
  while (!pending.empty()) {
    const Variable *variable =
        loaded.module->findVariable(pending.pop_back_val());
    if (!variable || !used.insert(variable).second)
      continue;
    if (variable->space == Space::Shared)
      place(keyOf(nullptr, variable->name), *variable);
    for (const InitialValue &value : variable->initial) {
      if (value.symbol.empty())
        continue;
      pending.push_back(value.symbol);
      const Function *callee = loaded.module->findFunction(value.symbol);
      if (callee && !callee->isExtern)
        add(*callee);
    }
  }
}

void LinkedKernel::collect() {
  // Grows as functions are found.
  for (size_t i = 0; i < programs.size(); ++i) {
    const Function &function = *programs[i]->function;
    for (const Variable &variable : function.variables)
      if (variable.space == Space::Shared)
        place(keyOf(&function, variable.name), variable);
    for (const Instruction &instruction : function.code)
      for (const Operand &operand : instruction.operands)
        visitNames(operand, [&](const Operand &one) {
          if (one.kind == Operand::Kind::Variable)
            use(one.name);
          if (one.kind != Operand::Kind::Function)
            return;
          callsMalloc |= one.name == "malloc";
          const Function *callee = loaded.module->findFunction(one.name);
          if (callee && !callee->isExtern)
            add(*callee);
        });
  }
  if (dynamic.empty())
    return;
  uint64_t alignment = 16;
  for (const auto &one : dynamic)
    alignment = std::max(alignment, one.second->alignment);
  staticShared = (staticShared + alignment - 1) / alignment * alignment;
  for (const auto &one : dynamic)
    shared[one.first] = staticShared;
}

std::optional<LinkContext::Place>
LinkedKernel::findVariable(const Function &function, llvm::StringRef name) {
  auto own = shared.find(keyOf(&function, name));
  if (own == shared.end())
    own = shared.find(keyOf(nullptr, name));
  if (own != shared.end())
    return Place{Space::Shared, own->second};
  auto local = loaded.addresses.find(localName(function, name));
  if (local != loaded.addresses.end()) {
    for (const Variable &variable : function.variables)
      if (variable.name == name)
        return Place{variable.space, local->second};
  }
  auto global = loaded.addresses.find(name);
  const Variable *variable = loaded.module->findVariable(name);
  if (global == loaded.addresses.end() || !variable)
    return std::nullopt;
  return Place{variable->space, global->second};
}

const Program *LinkedKernel::findProgram(llvm::StringRef function) {
  auto found = byName.find(function);
  return found == byName.end() ? nullptr : programs[found->second].get();
}

std::optional<uint64_t>
LinkedKernel::functionAddress(llvm::StringRef function) {
  const Program *program = findProgram(function);
  if (!program)
    return std::nullopt;
  return addressOf(*loaded.module, *program->function);
}

std::string LinkedKernel::decode() {
  for (const auto &program : programs) {
    Decoder(*program, *program->function, *this).run();
    if (!program->unsupported.empty())
      return program->unsupported;
  }
  for (const auto &program : programs)
    program->sharedBytes = staticShared;
  return {};
}

FunctionTable LinkedKernel::table() const {
  FunctionTable result;
  result.byAddress.resize(loaded.module->functions.size());
  for (const auto &program : programs) {
    result.programs.push_back(program.get());
    const Function &function = *program->function;
    if (!function.isEntry)
      result.byAddress[&function - loaded.module->functions.data()] =
          program.get();
  }
  return result;
}

} // namespace fsr::ptx
