// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Any bytes as PTX: a text either ends in one message with line and column, or
// gives a module whose indices and names all lead somewhere. libFuzzer calls
// this; corpus/ptx holds its first inputs, each of them short.
//
//===----------------------------------------------------------------------===//

#include "fsr/PTX/Module.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cstdlib>

using namespace fsr::ptx;

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

class Checker {
public:
  Checker(const Module &module, const Function &function)
      : module(module), function(function) {
    for (const LabelList &list : function.labelLists)
      lists.insert(list.name);
    for (const Variable &variable : function.variables)
      require(variables.insert(variable.name).second);
    for (const Variable &variable : function.parameters)
      variables.insert(variable.name);
    for (const Variable &variable : function.results)
      variables.insert(variable.name);
    for (const Variable &variable : module.variables)
      variables.insert(variable.name);
    for (const Function &one : module.functions)
      functions.insert(one.name);
  }

  void check() {
    for (const Instruction &one : function.code) {
      require(!one.guard || *one.guard < function.registers.size());
      require(one.location.line != 0 && one.location.column != 0);
      const char *begin = module.text.data();
      require(one.opcode.begin() >= begin &&
              one.opcode.end() <= begin + module.text.size());
      for (const Operand &operand : one.operands)
        check(operand);
    }
    for (const LabelList &list : function.labelLists) {
      for (uint32_t target : list.targets)
        require(target <= function.code.size());
      for (const std::string &name : list.functions)
        require(functions.contains(name));
    }
  }

private:
  void check(const Operand &operand) {
    switch (operand.kind) {
    case Operand::Kind::None:
      require(false);
      break;
    case Operand::Kind::Register:
      require(operand.index < function.registers.size());
      break;
    case Operand::Kind::Label:
      require(operand.index <= function.code.size());
      break;
    case Operand::Kind::Targets:
      require(lists.contains(operand.name));
      break;
    case Operand::Kind::Variable:
      require(variables.contains(operand.name));
      break;
    case Operand::Kind::Function:
      require(functions.contains(operand.name));
      break;
    case Operand::Kind::Address:
      require(!operand.elements.empty());
      break;
    case Operand::Kind::Pair:
      require(operand.elements.size() == 2);
      break;
    default:
      break;
    }
    for (const Operand &element : operand.elements)
      check(element);
  }

  const Module &module;
  const Function &function;
  llvm::StringSet<> lists, variables, functions;
};

void checkMessage(llvm::StringRef message) {
  auto [line, rest] = message.split(':');
  auto [column, text] = rest.split(':');
  unsigned number = 0;
  require(!line.getAsInteger(10, number) && number != 0);
  require(!column.getAsInteger(10, number) && number != 0);
  require(text.size() > 1 && message.size() < 400);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<std::unique_ptr<Module>> module = parseModule(text);
  if (!module) {
    checkMessage(llvm::toString(module.takeError()));
    return 0;
  }
  for (const Function &function : (*module)->functions)
    Checker(**module, function).check();
  return 0;
}
