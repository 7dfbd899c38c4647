// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows the addresses of buffers from the parameters of each kernel through
// registers, calls, local and shared memory, and so those of the module's own
// variables. An address may be moved, added to and compared with another
// address or with null. Its low bits may be looked at, for alignment; anything
// else that would turn it into data is refused, and through that of a variable
// nothing may be written. The analysis forgets order: a register holds all that
// any instruction puts there.
// What it does not follow is listed in docs/design/contract.md.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"
#include "PointerValue.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <map>

using llvm::StringRef;

namespace fsr {
namespace {

using Operand = PtxOperand;

int64_t bytesOf(StringRef opcode) {
  for (auto [suffix, bytes] : {std::pair<StringRef, int64_t>{"64", 8},
                               {"32", 4},
                               {"16", 2},
                               {"8", 1},
                               {"128", 16}})
    if (opcode.ends_with(suffix))
      return bytes;
  return 0;
}

/// An address that was stored in shared or local memory.
struct Kept {
  Place place;
  int64_t bytes;
  Value value;
};

/// "v" of "v.x", a part of a vector, and of "%tid.x".
StringRef stemOf(StringRef name) { return name.split('.').first; }

int64_t vectorSize(StringRef opcode) {
  return opcode.contains(".v2") ? 2 : opcode.contains(".v4") ? 4 : 1;
}

class Analysis {
public:
  Analysis(const PtxModule &module, llvm::ArrayRef<KernelLaunch> launches);

  std::optional<std::string> run();

private:
  /// What a parameter holds, by offset.
  using Slots = std::map<int64_t, Value>;
  struct Function {
    const PtxFunction *source = nullptr;
    llvm::StringMap<Value> names;  ///< Registers and variables.
    llvm::StringMap<Slots> slots;  ///< Parameters, its own and those it passes.
    llvm::StringSet<> definitions; ///< Names that some statement sets.
    Slots results;
    bool isTaken = false; ///< Its address is used, so anyone may call it.
  };

  void findDefinitions(Function &in);
  void findTaken();
  void settle();
  void visit(Function &in, llvm::ArrayRef<StringRef> statement);
  void visitCall(Function &in, llvm::ArrayRef<StringRef> words);
  void visitLoad(Function &in, StringRef opcode,
                 llvm::ArrayRef<Operand> operands);
  void visitStore(Function &in, StringRef opcode,
                  llvm::ArrayRef<Operand> operands);
  Value loadParameter(Function &in, StringRef opcode, Operand address);
  static Value heldBy(const Slots &slots) {
    Value all;
    for (const auto &slot : slots)
      all.add(slot.second);
    return all;
  }
  /// What a load through `address`, into the parameters, may give.
  static Value throughHolder(const Value &address, bool isWhole) {
    Value held = plain(isWhole ? Value::Pointer : Value::Bits);
    held.shift = isWhole ? 0 : anyShift;
    held.buffers = address.buffers;
    held.variable = address.variable;
    return held;
  }
  Place placeOf(const Function &in, Operand address) const;
  void keep(std::vector<Kept> &memory, const Kept &kept);
  void storeParameter(Function &in, StringRef opcode, Operand address,
                      Operand stored);
  void checkAddress(Function &in, StringRef opcode, Operand operand);
  void checkWrite(Function &in, StringRef opcode, Operand address);
  void loadKept(Value &loaded, StringRef opcode, const Value &address,
                Place place, int64_t bytes, bool isPart);
  void compare(Function &in, StringRef opcode,
               llvm::ArrayRef<Operand> operands);
  Value compute(const Function &in, StringRef opcode,
                llvm::ArrayRef<Operand> operands) const;
  Value get(const Function &in, Operand operand) const;
  Value getName(const Function &in, StringRef name) const;
  void put(Function &in, Operand operand, const Value &value);
  void putName(Function &in, StringRef name, Value value) {
    Value &held = in.names[stemOf(name)];
    // A counter would grow bit by bit.
    if (round > 8 && value.width > held.width)
      value.width = anyWidth;
    changed |= held.add(value);
  }
  void refuse(const llvm::Twine &reason) {
    if (!refusal)
      refusal = reason.str();
  }
  std::string called(const Value &value) const;

  const PtxModule &module;
  std::vector<std::string> buffers; ///< Their names, by bit.
  llvm::StringMap<Function> functions;
  std::vector<Function *> order;
  /// The addresses in shared and local memory. Functions get those of each
  /// other's local memory.
  std::vector<Kept> shared, local;
  unsigned round = 0;
  bool changed = false, isChecking = false;
  std::optional<std::string> refusal;
};

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

void Analysis::compare(Function &in, StringRef opcode,
                       llvm::ArrayRef<Operand> operands) {
  if (!isChecking || operands.size() < 3)
    return;
  Value a = get(in, operands[1]), b = get(in, operands[2]);
  if (!a.tells() && !b.tells())
    return;
  bool equality = opcode.contains(".eq") || opcode.contains(".ne");
  if (a.isAddress() && b.isAddress() && a.kinds == b.kinds)
    return;
  auto mayBeNull = [](const Value &v) {
    return v.tells() && !v.has(Value::Bits) && v.width <= farBits;
  };
  if (equality && ((mayBeNull(a) && literal(operands[2]) == 0) ||
                   (mayBeNull(b) && literal(operands[1]) == 0)))
    return;
  refuse("where a buffer lies decides what the code does (" +
         called(a.tells() ? a : b) + " in `" + opcode +
         "`); only its alignment, up to " + llvm::Twine(alignmentBits / 2) +
         " bytes, null and the address of a buffer may be tested");
}

/// `operand` in brackets: what is reached must be reached from something.
void Analysis::checkAddress(Function &in, StringRef opcode, Operand operand) {
  if (!isChecking)
    return;
  Value address = get(in, operand);
  if (address.has(Value::Bits))
    return refuse("`" + opcode +
                  "` uses an address that is computed from the "
                  "bits of another one (" +
                  called(address) + "); add offsets to the pointer instead");
  bool isInWindow = false;
  for (StringRef space : {".shared", ".local", ".const", ".param"})
    isInWindow |= opcode.contains(space);
  if (!isInWindow && address.kinds == Value::Number)
    refuse("`" + opcode +
           "` uses an address that is a number and comes from "
           "no argument; pass the buffer, or a scratch buffer of the plan");
}

void Analysis::checkWrite(Function &in, StringRef opcode, Operand operand) {
  if (!isChecking)
    return;
  Value address = get(in, operand);
  if (!address.variable.empty())
    refuse("the variable `" + address.variable +
           "` in device memory is used by `" + opcode +
           "`: no state may survive a launch; use a scratch buffer of the "
           "plan, shared memory, or make it const");
}

/// The name and offset in "[name+8]", "[name+-8]"; no offset where it is
/// written otherwise.
std::pair<StringRef, std::optional<int64_t>> nameAndOffset(Operand address) {
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

void Analysis::keep(std::vector<Kept> &memory, const Kept &kept) {
  for (Kept &old : memory)
    if (old.place == kept.place && old.bytes == kept.bytes) {
      changed |= old.value.add(kept.value);
      return;
    }
  // So many different places are no table of pointers.
  if (memory.size() == 256)
    return refuse("too many buffers' addresses are kept in memory to be "
                  "followed");
  memory.push_back(kept);
  changed = true;
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

void Analysis::visitLoad(Function &in, StringRef opcode,
                         llvm::ArrayRef<Operand> operands) {
  if (operands.size() < 2)
    return;
  if (opcode.contains(".param"))
    return put(in, operands[0], loadParameter(in, opcode, operands[1]));
  checkAddress(in, opcode, operands[1]);
  int64_t bytes = bytesOf(opcode);
  Value loaded =
      unknown(bytes && bytes < 8 ? uint8_t(8 * bytes) : uint8_t(anyWidth));
  loadKept(loaded, opcode, get(in, operands[1]), placeOf(in, operands[1]),
           bytes * vectorSize(opcode), bytes < 8);
  put(in, operands[0], loaded);
}

/// Adds what a read may find of the addresses that were kept in memory.
void Analysis::loadKept(Value &loaded, StringRef opcode, const Value &address,
                        Place place, int64_t bytes, bool isPart) {
  bool isShared = opcode.contains(".shared"),
       isLocal = opcode.contains(".local"),
       isGeneric = !isShared && !isLocal && !opcode.contains(".global") &&
                   !opcode.contains(".const") && !address.has(Value::Pointer);
  auto load = [&](const std::vector<Kept> &memory) {
    for (const Kept &kept : memory) {
      bool isNowhere = place.kind == Place::None || place.kind == Place::Any ||
                       kept.place.kind == Place::None ||
                       kept.place.kind == Place::Any;
      if ((isPart && isNowhere && kept.value.variable.empty()) ||
          !place.meets(bytes, kept.place, kept.bytes))
        continue;
      Value value = kept.value;
      if (isPart) {
        value.kinds = Value::Bits;
        value.shift = anyShift;
      }
      loaded.add(value);
    }
  };
  if (address.has(Value::Holder))
    loaded.add(throughHolder(address, !isPart));
  if (isShared || isGeneric)
    load(shared);
  if (isLocal || isGeneric)
    load(local);
}

void Analysis::visitStore(Function &in, StringRef opcode,
                          llvm::ArrayRef<Operand> operands) {
  if (operands.size() < 2)
    return;
  Value stored = get(in, operands[1]);
  if (opcode.contains(".param"))
    return storeParameter(in, opcode, operands[0], operands[1]);
  checkAddress(in, opcode, operands[0]);
  checkWrite(in, opcode, operands[0]);
  if (!stored.tells())
    return;
  Value address = get(in, operands[0]);
  bool isShared = opcode.contains(".shared"),
       isLocal = opcode.contains(".local"),
       isGeneric = !isShared && !isLocal && !opcode.contains(".global") &&
                   address.has(Value::Based) && !address.has(Value::Pointer);
  bool isKept = bytesOf(opcode) >= 8 && !stored.has(Value::Bits) &&
                !opcode.starts_with("st.async");
  Kept kept{placeOf(in, operands[0]), bytesOf(opcode) * vectorSize(opcode),
            stored};
  kept.value.place = Place();
  if (isKept && (isShared || isGeneric))
    keep(shared, kept);
  if (isKept && (isLocal || isGeneric))
    keep(local, kept);
  if (isChecking && (!isKept || !(isShared || isLocal || isGeneric)))
    refuse(called(stored) + " is written as data (`" + opcode +
           "`); where a buffer lies is no result");
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

  bool reachesMemory = llvm::any_of(
      operands, [](Operand o) { return !o.empty() && o.front() == "["; });
  if (reachesMemory) {
    bool isFirst = true;
    for (Operand operand : operands) {
      bool isAddress = !operand.empty() && operand.front() == "[";
      bool isResult = !isAddress && operand.data() == operands[0].data();
      // A tensor map and coordinates, or a barrier, may stand there too.
      if (isAddress) {
        checkAddress(in,
                     base == "cp" || base == "mbarrier" || base == "fence"
                         ? StringRef("cp.shared")
                         : opcode,
                     operand);
        // Copies read from what is behind the first.
        bool isRead = base == "prefetch" || base == "prefetchu" ||
                      opcode.starts_with("cp.async.bulk.prefetch") ||
                      opcode.starts_with("wmma.load") ||
                      (base == "cp" && !isFirst);
        if (!isRead)
          checkWrite(in, opcode, operand);
        isFirst = false;
      } else if (isResult) {
        // What an atomic operation finds; its address is the next operand.
        Value found = unknown();
        if (operands.size() > 1 && !opcode.contains(".global"))
          loadKept(found, opcode, get(in, operands[1]),
                   placeOf(in, operands[1]), 16, /*isPart=*/true);
        put(in, operand, found);
      } else if (isChecking && get(in, operand).tells() &&
                 (base != "tensormap" || !get(in, operand).variable.empty())) {
        // A tensor map is made to hold an address.
        refuse(called(get(in, operand)) + " is written as data (`" + opcode +
               "`); where a buffer lies is no result");
      }
    }
    return;
  }
  if (base == "setp" || base == "set") {
    compare(in, opcode, operands);
    if (!operands.empty())
      put(in, operands[0], number(1));
    return;
  }
  if (base == "brx" && isChecking && operands.size() == 2 &&
      get(in, operands[0]).tells())
    return refuse("where a buffer lies decides what the code does (`" + opcode +
                  "`)");
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

} // namespace

std::optional<std::string>
checkPointers(const PtxModule &module, llvm::ArrayRef<KernelLaunch> launches) {
  return Analysis(module, launches).run();
}

} // namespace fsr
