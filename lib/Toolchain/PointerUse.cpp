// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows the addresses of buffers from the parameters of each kernel through
// registers, calls, local and shared memory, and so those of the module's own
// variables. An address may be moved, added to and compared with another
// address or with null. Its low bits may be looked at, for alignment; every
// other operand of every instruction refuses it, known or not, and through that
// of a variable nothing may be written. Memory that holds one is not copied by
// what is not followed. The analysis forgets order: a register holds all that
// any instruction puts there.
// What it does not follow is listed in docs/design/contract.md.
//
//===----------------------------------------------------------------------===//

#include "PointerAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

#include <algorithm>

namespace fsr {
namespace pointers {

Analysis::Analysis(const PtxModule &module,
                   llvm::ArrayRef<KernelLaunch> launches)
    : module(module) {
  for (const PtxFunction &source : module.functions) {
    Function &function = functions[source.name];
    function.source = &source;
    order.push_back(&function);
    findDefinitions(function);
    if (!source.isEntry)
      continue;
    bool isLaunched = false;
    for (const KernelLaunch &launch : launches) {
      if (source.name != launch.kernel)
        continue;
      isLaunched = true;
      size_t count = std::min(source.parameters.size(), launch.args.size());
      for (size_t i = 0; i < count; ++i) {
        const PassedArgument &passed = launch.args[i];
        // Sizes, strides and scalars of a task.
        Value value = number(source.parameters[i].bytes == 8
                                 ? 36
                                 : uint8_t(std::min<unsigned>(
                                       64, 8 * source.parameters[i].bytes)));
        if (passed.kind == PassedArgument::Buffer) {
          auto at = llvm::find(buffers, passed.name);
          size_t bit = std::min<size_t>(at - buffers.begin(), mostBuffers - 1);
          if (at == buffers.end())
            buffers.push_back(passed.name);
          value = plain(Value::Pointer);
          value.buffers = uint64_t(1) << bit;
        }
        function.slots[source.parameters[i].name][0].add(value);
      }
    }
    if (!isLaunched)
      for (const PtxParameter &parameter : source.parameters)
        function.slots[parameter.name][0] = unknown();
  }
  findTaken();
}

/// Functions whose names stand elsewhere than behind `call`.
void Analysis::findTaken() {
  auto take = [&](StringRef name) {
    if (auto found = functions.find(name); found != functions.end())
      found->second.isTaken = true;
  };
  llvm::for_each(module.initialisers, take);
  for (const PtxFunction &source : module.functions)
    for (const PtxWords &statement : source.body) {
      llvm::ArrayRef<StringRef> words = withoutGuard(statement);
      if (words.empty())
        continue;
      if (stemOf(words.front()) != "call") {
        llvm::for_each(words.drop_front(), take);
        continue;
      }
      for (Operand operand : operandsOf(words.drop_front()))
        if (!operand.empty() && operand.front() == "(")
          llvm::for_each(operand, take);
    }
}

std::string Analysis::called(const Value &value) const {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (value.buffers >> std::min<size_t>(i, mostBuffers - 1) & 1)
      return "the address of `" + buffers[i] + "`";
  if (!value.variable.empty())
    return "the address of the variable `" + value.variable.str() + "`";
  return "the address of a buffer";
}

/// The names that a statement sets; all others are known from the start.
void Analysis::findDefinitions(Function &in) {
  for (const PtxParameter &parameter : in.source->parameters)
    in.definitions.insert(parameter.name);
  for (const PtxWords &statement : in.source->body) {
    llvm::ArrayRef<StringRef> words = withoutGuard(statement);
    if (words.empty() || words.front().starts_with("."))
      continue;
    llvm::SmallVector<Operand, 6> operands = operandsOf(words.drop_front());
    if (operands.empty() || operands[0].empty())
      continue;
    bool isParameter = words.front().starts_with("st.param");
    if (operands[0].front() != "[" || isParameter)
      for (StringRef word : operands[0])
        if (isPtxName(word))
          in.definitions.insert(stemOf(word));
  }
}

Value Analysis::getName(const Function &in, StringRef name) const {
  name = stemOf(name);
  auto found = in.names.find(name);
  auto global = module.variables.find(name);
  if (global != module.variables.end() && !global->second.isConst) {
    Value address = plain(Value::Pointer);
    address.buffers = variableBit;
    address.variable = global->first();
    // A register of the same name, in some scope.
    if (found != in.names.end())
      address.add(found->second);
    return address;
  }
  if (found != in.names.end())
    return found->second;
  // By its name it is the address of a parameter: the others are beside it.
  if (in.slots.count(name)) {
    Value address = plain(Value::Based);
    for (const auto &slots : in.slots) {
      Value held = heldBy(slots.second);
      if (held.tells() || held.has(Value::Holder))
        address.kinds |= Value::Holder;
      address.buffers |= held.buffers;
      if (address.variable.empty())
        address.variable = held.variable;
    }
    return address;
  }
  if (in.definitions.contains(name))
    return Value();
  if (module.variables.contains(name) || functions.contains(name))
    return based(name);
  if (name.starts_with("%tid") || name.starts_with("%ntid") ||
      name.starts_with("%ctaid") || name.starts_with("%nctaid") ||
      name.starts_with("%laneid") || name.starts_with("%lanemask") ||
      name.starts_with("%cluster"))
    return number(32);
  // A variable in shared memory, for one.
  Value value = based(name);
  value.kinds |= Value::Unknown;
  value.width = anyWidth;
  return value;
}

Value Analysis::get(const Function &in, Operand operand) const {
  Value value;
  bool isNumber = true;
  for (StringRef word : operand)
    if (isPtxName(word)) {
      isNumber = false;
      value.add(getName(in, word));
    }
  if (!isNumber)
    return value;
  std::optional<int64_t> constant = literal(operand);
  if (!constant)
    return number(anyWidth);
  uint64_t size = *constant < 0 ? 0 - uint64_t(*constant) : *constant;
  return number(uint8_t(64 - llvm::countl_zero(size)));
}

void Analysis::put(Function &in, Operand operand, const Value &value) {
  bool isFirst = true;
  for (StringRef word : operand) {
    if (!isPtxName(word) || word == "_")
      continue;
    Value part = value;
    // The high half of a pair is beyond all alignment.
    if (!isFirst && part.has(Value::Bits))
      part.shift = anyShift;
    isFirst = false;
    putName(in, word, part);
  }
}

Value Analysis::compute(const Function &in, StringRef opcode,
                        llvm::ArrayRef<Operand> operands) const {
  llvm::SmallVector<Value, 6> values;
  for (Operand operand : operands)
    values.push_back(get(in, operand));
  return resultOf(opcode, operands, values, getName(in, carry));
}

/// The name and offset in "[name+8]", "[name+-8]"; no offset where it is
/// written otherwise.
static std::pair<StringRef, std::optional<int64_t>>
nameAndOffset(Operand address) {
  if (!address.empty() && address.front() == "[")
    address = address.drop_front();
  size_t count = llvm::find(address, StringRef("]")) - address.begin();
  bool isWhole = count + 1 == address.size() || count == address.size();
  address = address.take_front(count);
  std::pair<StringRef, std::optional<int64_t>> place;
  auto name = llvm::find_if(address, isPtxName);
  if (name == address.end())
    return place;
  place.first = stemOf(*name);
  Operand rest = address.drop_front(1);
  if (name != address.begin() || !isWhole)
    return place;
  if (rest.empty())
    place.second = 0;
  else if (rest.front() == "+")
    place.second = literal(rest.drop_front());
  else if (rest.front() == "-" && rest.size() == 2)
    place.second = literal(rest);
  return place;
}

Value Analysis::loadParameter(Function &in, StringRef opcode, Operand place) {
  auto [name, at] = nameAndOffset(place);
  if (!at && isChecking)
    refuse("the offset into `" + name + "` in `" + opcode +
           "` is no plain number");
  int64_t offset = at.value_or(0);
  auto slots = in.slots.find(name);
  bool isWhole = bytesOf(opcode) == 8;
  auto halved = [&](Value value, bool isLow) {
    if (value.tells()) {
      value.kinds = Value::Bits;
      value.shift = isLow ? value.shift : anyShift;
    }
    value.width = anyWidth;
    return value;
  };
  if (slots == in.slots.end()) {
    Value address = getName(in, name);
    return address.has(Value::Holder) ? throughHolder(address, isWhole)
                                      : unknown();
  }
  Value held;
  for (const auto &[begin, value] : slots->second)
    if (begin == offset)
      held.add(isWhole || !value.tells() ? value : halved(value, true));
    else if (value.tells() && begin < offset + 16 && offset < begin + 8)
      // 16: a vector of two.
      held.add(begin == offset + 8 && isWhole ? value : halved(value, false));
  if (held.kinds || slots->second.empty())
    return held;
  // No store is seen that sets this part; it may be one of what is beside it.
  Value address = getName(in, name);
  return address.has(Value::Holder) ? throughHolder(address, isWhole)
                                    : unknown();
}

Place Analysis::placeOf(const Function &in, Operand address) const {
  auto [name, offset] = nameAndOffset(address);
  if (name.empty())
    return Place();
  Place place = getName(in, name).place;
  return offset ? place.moved(offset) : place.loosened();
}

void Analysis::storeParameter(Function &in, StringRef opcode, Operand address,
                              Operand stored) {
  auto [name, at] = nameAndOffset(address);
  if (!at && isChecking)
    refuse("the offset into `" + name + "` in `" + opcode +
           "` is no plain number");
  int64_t offset = at.value_or(0);
  bool isResult = llvm::is_contained(in.source->results, name);
  Slots &slots = isResult ? in.results : in.slots[name];
  if (stored.empty() || stored.front() != "{") {
    changed |= slots[offset].add(get(in, stored));
    return;
  }
  stored = stored.drop_front();
  if (!stored.empty() && stored.back() == "}")
    stored = stored.drop_back();
  for (Operand part : operandsOf(stored)) {
    changed |= slots[offset].add(get(in, part));
    offset += bytesOf(opcode);
  }
}

void Analysis::visitCall(Function &in, llvm::ArrayRef<StringRef> words) {
  // call.uni (results), name, (arguments), prototype
  llvm::SmallVector<Operand, 6> operands = operandsOf(words.drop_front());
  Operand results, arguments;
  StringRef callee;
  for (Operand operand : operands) {
    if (operand.empty())
      continue;
    if (operand.front() != "(") {
      if (callee.empty())
        callee = operand.front();
    } else if (callee.empty()) {
      results = operand;
    } else {
      arguments = operand;
    }
  }
  if (isChecking && !callee.empty() && !functions.count(callee) &&
      getName(in, callee).tells())
    return refuse("where a buffer lies decides what the code does (`call`)");
  auto found = functions.find(callee);
  Function *target = found == functions.end() ? nullptr : &found->second;
  size_t index = 0;
  for (StringRef word : arguments) {
    if (!isPtxName(word))
      continue;
    // A pointer: of a function that calls itself, the table grows below.
    auto entry = in.slots.find(word);
    const Slots *from = entry == in.slots.end() ? nullptr : &entry->second;
    Value passed = from ? heldBy(*from) : getName(in, word);
    if (target && index < target->source->parameters.size()) {
      Slots &into = target->slots[target->source->parameters[index].name];
      if (!from)
        changed |= into[0].add(passed);
      else
        for (const auto &[offset, value] : *from)
          changed |= into[offset].add(value);
    }
    ++index;
    if (!target && isChecking && passed.tells() &&
        !llvm::is_contained(module.externs, callee))
      refuse(called(passed) + " is passed to a function that is not known "
                              "before the call; call functions by their names");
  }
  for (StringRef word : results) {
    if (!isPtxName(word))
      continue;
    Slots &into = in.slots[word];
    // One that is not known by its name may be any whose address is used.
    if (!target)
      changed |= into[0].add(unknown());
    for (const Function *each : order)
      if (each == target || (!target && each->isTaken))
        for (const auto &[offset, value] : each->results)
          changed |= into[offset].add(value);
  }
}

void Analysis::visit(Function &in, llvm::ArrayRef<StringRef> statement) {
  StringRef guard;
  llvm::ArrayRef<StringRef> words = withoutGuard(statement, &guard);
  if (words.empty())
    return;
  if (isChecking && !guard.empty() && getName(in, guard).tells())
    return refuse("where a buffer lies decides what the code does (" +
                  called(getName(in, guard)) + ")");
  StringRef opcode = words.front();
  StringRef base = opcode.split('.').first;
  if (opcode == ".shared" || opcode == ".local") {
    for (StringRef word : words.drop_front())
      if (isPtxName(word))
        putName(in, word, based(word));
    return;
  }
  if (opcode.starts_with("."))
    return;
  if (base == "call")
    return visitCall(in, words);
  llvm::SmallVector<Operand, 6> operands = operandsOf(words.drop_front());
  if (base == "ld" || base == "ldu")
    return visitLoad(in, opcode, operands);
  if (base == "st")
    return visitStore(in, opcode, operands);

  if (llvm::any_of(operands,
                   [](Operand o) { return !o.empty() && o.front() == "["; }))
    return visitMemory(in, opcode, operands);
  if (base == "setp" || base == "set") {
    compare(in, opcode, operands);
    if (!operands.empty())
      put(in, operands[0], number(1));
    return;
  }
  checkOperands(in, opcode, operands);
  if (operands.size() == 1)
    put(in, operands[0], unknown());
  if (operands.size() < 2)
    return;
  Value value = compute(in, opcode, operands);
  if (value.kinds)
    put(in, operands[0], value);
  if (opcode.contains(".cc") && value.tells())
    putName(in, carry, value);
}

void Analysis::settle() {
  // Loops and calls carry addresses backwards; real code settles soon.
  for (round = 0; changed; ++round) {
    if (round == 64)
      return refuse("the uses of buffers' addresses are too entangled to be "
                    "checked");
    changed = false;
    for (Function *function : order)
      for (const PtxWords &statement : function->source->body)
        visit(*function, statement);
  }
}

std::optional<std::string> Analysis::run() {
  changed = true;
  settle();
  // What only depends on itself was never set: it may be anything.
  for (Function *function : order)
    for (const auto &name : function->definitions)
      if (!getName(*function, name.first()).kinds)
        putName(*function, name.first(), unknown());
  settle();
  isChecking = true;
  for (Function *function : order)
    for (const PtxWords &statement : function->source->body) {
      if (refusal)
        return refusal;
      visit(*function, statement);
    }
  return refusal;
}

} // namespace pointers

std::optional<std::string>
checkPointers(const PtxModule &module, llvm::ArrayRef<KernelLaunch> launches) {
  return pointers::Analysis(module, launches).run();
}

} // namespace fsr
