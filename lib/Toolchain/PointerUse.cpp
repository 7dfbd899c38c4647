// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Follows the addresses of buffers from the parameters of each kernel through
// registers, calls, local and shared memory. An address may be moved, added to
// and compared with another address or with null. Its low bits may be looked
// at, for alignment; anything else that would turn it into data is refused. The
// analysis forgets order: a register holds all that any instruction puts there.
// What it does not follow is listed in docs/design/contract.md.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <map>

using llvm::StringRef;

namespace fsr {
namespace {

/// Bits below this tell the alignment of an address, which a plan may ask for.
constexpr uint64_t alignmentBits = 512;
constexpr uint8_t anyShift = 64;
/// Stands for the condition code of add.cc; no name of PTX.
constexpr llvm::StringLiteral carry = "carry flag";

/// Where in shared or local memory an address points, as far as it is known.
struct Place {
  enum Kind : uint8_t {
    None,
    Exact,   ///< At `offset` of `root`.
    Dynamic, ///< Into what begins at `offset` of `root`, an array.
    Loose,   ///< Anywhere in `root`.
    Any,
  };
  Kind kind = None;
  StringRef root;
  int64_t offset = 0;

  bool operator==(const Place &other) const {
    return kind == other.kind && root == other.root && offset == other.offset;
  }
  bool operator!=(const Place &other) const { return !(*this == other); }

  /// Makes this one hold the other too. Each place changes at most four times.
  void add(const Place &other) {
    if (other.kind == None || *this == other)
      return;
    if (kind == None)
      *this = other;
    else if (kind == Any || other.kind == Any || root != other.root)
      *this = {Any, "", 0};
    else if (kind == Exact && other.kind != Loose)
      *this = {Dynamic, root, std::min(offset, other.offset)};
    else if (kind == Dynamic && other.kind != Loose && other.offset >= offset)
      return;
    else
      *this = {Loose, root, 0};
  }
  Place moved(std::optional<int64_t> by) const {
    Place place = *this;
    if (kind == Exact && by)
      place.offset += *by;
    else if (kind == Exact)
      place.kind = Dynamic;
    return place;
  }
  /// Whether `bytes` here and `otherBytes` there may share one.
  bool meets(int64_t bytes, const Place &other, int64_t otherBytes) const {
    if (kind == None || kind == Any || other.kind == None || other.kind == Any)
      return true;
    if (root != other.root)
      return false;
    if (kind == Loose || other.kind == Loose)
      return true;
    if (kind == Dynamic && other.kind == Dynamic)
      return offset == other.offset;
    return (kind == Dynamic || offset < other.offset + otherBytes ||
            other.kind == Dynamic) &&
           (kind == Dynamic ? other.offset + otherBytes > offset
                            : offset + bytes > other.offset);
  }
};

/// What a register may hold.
struct Value {
  enum : uint8_t {
    Pointer = 1,  ///< Into a buffer.
    Distance = 2, ///< Between two buffers.
    Bits = 4,     ///< Computed from an address, moved down by `shift` bits.
    Based = 8,    ///< Into shared or local memory, a variable, a parameter.
    Unknown = 16, ///< From memory, or of an instruction not known here.
    Number = 32,  ///< Certainly no address.
  };
  uint8_t kinds = 0;
  uint8_t shift = 0;
  uint64_t buffers =
      0;       ///< Which ones, as bits; the last stands for all others.
  Place place; ///< Where Based is set.

  /// Whether it says something of where a buffer lies.
  uint8_t told() const { return kinds & (Pointer | Distance | Bits); }
  bool tells() const { return told(); }
  bool has(uint8_t kind) const { return kinds & kind; }
  /// True where something is new.
  bool add(const Value &other) {
    Value before = *this;
    place.add(other.place);
    kinds |= other.kinds;
    shift = std::max(shift, other.shift);
    buffers |= other.buffers;
    return kinds != before.kinds || shift != before.shift ||
           buffers != before.buffers || place != before.place;
  }
};

Value plain(uint8_t kind) {
  Value value;
  value.kinds = kind;
  return value;
}

/// The address of `name`.
Value based(StringRef name) {
  Value value = plain(Value::Based);
  value.place = {Place::Exact, name, 0};
  return value;
}

/// One operand: "%r1", "{%r1, %r2}", "[%rd1+8]", "-16".
using Operand = llvm::ArrayRef<StringRef>;

llvm::SmallVector<Operand, 6> operandsOf(Operand words) {
  llvm::SmallVector<Operand, 6> operands;
  size_t from = 0;
  int depth = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    StringRef word = words[i];
    if (word == "[" || word == "{" || word == "(")
      ++depth;
    else if (word == "]" || word == "}" || word == ")")
      --depth;
    else if (word == "," && depth <= 0) {
      operands.push_back(words.slice(from, i - from));
      from = i + 1;
    }
  }
  if (from < words.size())
    operands.push_back(words.drop_front(from));
  return operands;
}

std::optional<int64_t> literal(Operand operand) {
  bool negative = operand.size() == 2 && operand[0] == "-";
  if (operand.size() != 1 && !negative)
    return std::nullopt;
  StringRef text = operand.back();
  text.consume_back("U");
  uint64_t value = 0;
  if (text.getAsInteger(0, value))
    return std::nullopt;
  return negative ? -int64_t(value) : int64_t(value);
}

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
    std::vector<Kept> local; ///< The addresses in its local memory.
  };

  void findDefinitions(Function &in);
  void settle();
  void visit(Function &in, llvm::ArrayRef<StringRef> statement);
  void visitCall(Function &in, llvm::ArrayRef<StringRef> words);
  void visitLoad(Function &in, StringRef opcode,
                 llvm::ArrayRef<Operand> operands);
  void visitStore(Function &in, StringRef opcode,
                  llvm::ArrayRef<Operand> operands);
  Value loadParameter(Function &in, StringRef opcode, Operand address);
  Place placeOf(const Function &in, Operand address) const;
  void keep(std::vector<Kept> &memory, const Kept &kept);
  void storeParameter(Function &in, Operand address, const Value &stored);
  void checkAddress(Function &in, StringRef opcode, Operand operand);
  void compare(Function &in, StringRef opcode,
               llvm::ArrayRef<Operand> operands);
  Value compute(const Function &in, StringRef opcode,
                llvm::ArrayRef<Operand> operands) const;
  Value add(Value a, Value b) const;
  Value subtract(Value a, Value b) const;
  Value mask(Value value, std::optional<int64_t> bits) const;
  Value get(const Function &in, Operand operand) const;
  Value getName(const Function &in, StringRef name) const;
  void put(Function &in, Operand operand, const Value &value);
  void putName(Function &in, StringRef name, const Value &value) {
    changed |= in.names[name].add(value);
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
  std::vector<Kept> shared; ///< The addresses in shared memory.
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
        Value value = plain(Value::Number);
        if (passed.kind == PassedArgument::Buffer) {
          auto at = llvm::find(buffers, passed.name);
          size_t bit = std::min<size_t>(at - buffers.begin(), 63);
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
        function.slots[parameter.name][0] = plain(Value::Unknown);
  }
}

std::string Analysis::called(const Value &value) const {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (value.buffers >> std::min<size_t>(i, 63) & 1)
      return "the address of `" + buffers[i] + "`";
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
          in.definitions.insert(word);
  }
}

Value Analysis::getName(const Function &in, StringRef name) const {
  auto found = in.names.find(name);
  if (found != in.names.end())
    return found->second;
  if (auto slots = in.slots.find(name); slots != in.slots.end()) {
    Value all;
    for (const auto &slot : slots->second)
      all.add(slot.second);
    return all;
  }
  if (in.definitions.contains(name))
    return Value();
  if (module.variables.contains(name) || functions.contains(name))
    return based(name);
  if (name.starts_with("%tid") || name.starts_with("%ntid") ||
      name.starts_with("%ctaid") || name.starts_with("%nctaid") ||
      name.starts_with("%laneid") || name.starts_with("%lanemask") ||
      name.starts_with("%cluster"))
    return plain(Value::Number);
  // A variable in shared memory, for one.
  Value value = based(name);
  value.kinds |= Value::Unknown;
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
  return isNumber ? plain(Value::Number) : value;
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

Value Analysis::add(Value a, Value b) const {
  Value sum = a;
  sum.add(b);
  if (!sum.tells()) {
    // Numbers make numbers; the name of a variable, or what was not seen,
    // rules.
    if (sum.has(Value::Based | Value::Unknown))
      sum.kinds &= uint8_t(~Value::Number);
    return sum;
  }
  sum.kinds = sum.told();
  if (a.has(Value::Pointer) && b.has(Value::Pointer))
    sum.kinds |= Value::Bits;
  // A distance leads from one buffer into another.
  if (sum.has(Value::Pointer) && a.tells() && b.tells())
    sum.kinds &= uint8_t(~Value::Distance);
  return sum;
}

Value Analysis::subtract(Value a, Value b) const {
  if (!b.tells())
    return add(a, b);
  bool isPlain = !a.has(Value::Bits) && !b.has(Value::Bits);
  if (a.has(Value::Pointer) && b.has(Value::Pointer) && isPlain) {
    if (a.buffers == b.buffers && !(a.buffers & (a.buffers - 1)))
      return plain(Value::Number);
    Value distance = a;
    distance.add(b);
    distance.kinds = Value::Distance;
    return distance;
  }
  Value result = a;
  result.add(b);
  if (isPlain && b.told() == Value::Distance)
    result.kinds = a.tells() ? a.told() : uint8_t(Value::Distance);
  else
    result.kinds = Value::Bits; // As in -p & 15: its low bits mean low bits.
  return result;
}

/// `value` under an "and" with `bits`.
Value Analysis::mask(Value value, std::optional<int64_t> bits) const {
  if (!value.tells())
    return value;
  uint64_t low = bits ? uint64_t(*bits) : ~uint64_t(0);
  if (bits && value.shift < 32 && low < alignmentBits &&
      low << value.shift < alignmentBits)
    return plain(Value::Number);
  // Down to a multiple; a mask of 32 bits is written without a sign.
  bool clears =
      bits && (~low < 4096 || (low >> 32 == 0 && ~low << 32 >> 32 < 4096));
  if (!clears || value.has(Value::Bits))
    value.kinds = Value::Bits;
  return value;
}

Value Analysis::compute(const Function &in, StringRef opcode,
                        llvm::ArrayRef<Operand> operands) const {
  StringRef base = opcode.split('.').first;
  auto value = [&](size_t i) {
    return i < operands.size() ? get(in, operands[i]) : Value();
  };
  auto number = [&](size_t i) {
    return i < operands.size() ? literal(operands[i]) : std::nullopt;
  };
  Value all;
  for (size_t i = 1; i < operands.size(); ++i) {
    if (!value(i).kinds)
      return Value(); // Not known yet.
    all.add(value(i));
  }
  bool usesCarry = opcode.contains(".cc") || base == "addc" || base == "subc" ||
                   base == "madc";
  if (usesCarry)
    all.add(getName(in, carry));
  if (!all.tells()) {
    Value result = add(all, all);
    // Moves keep a place, sums move it; of all else only the root is left.
    if (base == "add" || base == "sub") {
      bool isFirst = value(1).place.kind != Place::None;
      std::optional<int64_t> by = number(isFirst ? 2 : 1);
      if (by && base == "sub")
        by = -*by;
      bool both = isFirst && value(2).place.kind != Place::None;
      result.place = (isFirst ? value(1) : value(2)).place;
      result.place = both ? Place{Place::Any, "", 0} : result.place.moved(by);
    } else if (base != "mov" && base != "cvta" && base != "cvt" &&
               result.place.kind != Place::None) {
      result.place = result.place.moved(std::nullopt);
      result.place.kind = std::max(result.place.kind, Place::Dynamic);
    }
    return result;
  }
  Value bits = all;
  bits.kinds = Value::Bits;
  Value mangled = bits;
  mangled.shift = anyShift;
  if (usesCarry)
    return mangled;

  bool packs = llvm::any_of(operands, [](Operand operand) {
    return !operand.empty() && operand.front() == "{";
  });
  if (base == "mov" && packs)
    // From a pair to a register, and the other way round.
    return operands[0].front() == "{" ? bits : mangled;
  if (base == "mov" || base == "cvta" || base == "mapa")
    return value(1);
  if (base == "cvt") {
    if (opcode.contains(".f") || opcode.contains(".bf") ||
        opcode.contains(".tf") || opcode.contains(".e"))
      return mangled;
    // To fewer bits than an address has, and from them.
    bool isWhole = opcode.contains("64.u64") || opcode.contains("64.s64");
    return isWhole || !value(1).has(Value::Pointer) ? value(1) : bits;
  }
  if (base == "selp" || base == "min" || base == "max") {
    Value either = value(1);
    either.add(value(2));
    if (base == "selp" && value(3).tells())
      return mangled;
    return either;
  }
  if (base == "add")
    return add(value(1), value(2));
  if (base == "sub")
    return subtract(value(1), value(2));
  if (base == "mad" && !value(1).tells() && !value(2).tells())
    return add(value(3), plain(Value::Number));
  if (base == "and") {
    bool maskIsFirst = number(1).has_value();
    if (value(1).tells() && value(2).tells())
      return bits;
    if (value(1).tells() || maskIsFirst)
      return mask(value(maskIsFirst ? 2 : 1), number(maskIsFirst ? 1 : 2));
    return mask(value(2), number(1));
  }
  if (base == "or" || base == "xor" || base == "not" || base == "neg")
    return bits;
  if (base == "shr" || base == "shl" || base == "mul") {
    if (value(1).told() == Value::Distance && !value(2).tells())
      return value(1);
    std::optional<int64_t> by = number(2);
    if (base == "shr" && by && *by >= 0 && *by < anyShift) {
      bits.shift = uint8_t(std::min<int64_t>(anyShift, bits.shift + *by));
      return bits;
    }
    return mangled;
  }
  if (base == "bfe") {
    std::optional<int64_t> from = number(2), count = number(3);
    if (from && count && *from >= 0 && *count >= 0 &&
        *from + *count + bits.shift <= 9)
      return plain(Value::Number);
    return mangled;
  }
  if (base == "isspacep")
    return plain(Value::Number);
  return mangled;
}

void Analysis::compare(Function &in, StringRef opcode,
                       llvm::ArrayRef<Operand> operands) {
  if (!isChecking || operands.size() < 3)
    return;
  Value a = get(in, operands[1]), b = get(in, operands[2]);
  if (!a.tells() && !b.tells())
    return;
  bool equality = opcode.contains(".eq") || opcode.contains(".ne");
  auto isAddress = [](const Value &v) {
    return v.tells() && !v.has(Value::Bits);
  };
  if (isAddress(a) && isAddress(b))
    return;
  if (equality && ((isAddress(a) && literal(operands[2]) == 0) ||
                   (isAddress(b) && literal(operands[1]) == 0)))
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

/// The name and offset in "[name+8]", "[name+-8]".
std::pair<StringRef, int64_t> nameAndOffset(Operand address) {
  std::pair<StringRef, int64_t> place{"", 0};
  for (size_t i = 0; i < address.size(); ++i) {
    if (place.first.empty() && isPtxName(address[i]))
      place.first = address[i];
    if (address[i] == "+" && i + 1 < address.size()) {
      size_t count = address[i + 1] == "-" && i + 2 < address.size() ? 2 : 1;
      place.second = literal(address.slice(i + 1, count)).value_or(0);
    }
  }
  return place;
}

Value Analysis::loadParameter(Function &in, StringRef opcode, Operand address) {
  auto [name, offset] = nameAndOffset(address);
  auto slots = in.slots.find(name);
  bool isWhole = bytesOf(opcode) == 8;
  auto halved = [&](Value value, bool isLow) {
    if (value.tells()) {
      value.kinds = Value::Bits;
      value.shift = isLow ? value.shift : anyShift;
    }
    return value;
  };
  if (slots == in.slots.end()) {
    Value held = getName(in, name);
    return isWhole ? held : halved(held, false);
  }
  Value held;
  for (const auto &[at, value] : slots->second)
    if (at == offset)
      held.add(isWhole ? value : halved(value, true));
    else if (value.tells() && at < offset + 16 && offset < at + 8)
      // 16: a vector of two.
      held.add(at == offset + 8 && isWhole ? value : halved(value, false));
  return held.kinds ? held : getName(in, name);
}

Place Analysis::placeOf(const Function &in, Operand address) const {
  auto [name, offset] = nameAndOffset(address);
  return name.empty() ? Place() : getName(in, name).place.moved(offset);
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

void Analysis::storeParameter(Function &in, Operand address,
                              const Value &stored) {
  auto [name, offset] = nameAndOffset(address);
  bool isResult = llvm::is_contained(in.source->results, name);
  Slots &slots = isResult ? in.results : in.slots[name];
  changed |= slots[offset].add(stored);
}

void Analysis::visitLoad(Function &in, StringRef opcode,
                         llvm::ArrayRef<Operand> operands) {
  if (operands.size() < 2)
    return;
  if (opcode.contains(".param"))
    return put(in, operands[0], loadParameter(in, opcode, operands[1]));
  checkAddress(in, opcode, operands[1]);
  Value address = get(in, operands[1]);
  Value loaded = plain(Value::Unknown);
  bool isShared = opcode.contains(".shared"),
       isLocal = opcode.contains(".local"),
       isGeneric = !isShared && !isLocal && !opcode.contains(".global") &&
                   !opcode.contains(".const") && !address.has(Value::Pointer);
  Place place = placeOf(in, operands[1]);
  int64_t bytes = bytesOf(opcode);
  bool isPart = bytes < 8;
  auto load = [&](const std::vector<Kept> &memory) {
    for (const Kept &kept : memory) {
      bool isNowhere = place.kind == Place::None || place.kind == Place::Any ||
                       kept.place.kind == Place::None ||
                       kept.place.kind == Place::Any;
      if ((isPart && isNowhere) ||
          !place.meets(bytes * vectorSize(opcode), kept.place, kept.bytes))
        continue;
      Value value = kept.value;
      if (isPart) {
        value.kinds = Value::Bits;
        value.shift = anyShift;
      }
      loaded.add(value);
    }
  };
  if (isShared || isGeneric)
    load(shared);
  if (isLocal || isGeneric)
    load(in.local);
  put(in, operands[0], loaded);
}

void Analysis::visitStore(Function &in, StringRef opcode,
                          llvm::ArrayRef<Operand> operands) {
  if (operands.size() < 2)
    return;
  Value stored = get(in, operands[1]);
  if (opcode.contains(".param"))
    return storeParameter(in, operands[0], stored);
  checkAddress(in, opcode, operands[0]);
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
    keep(in.local, kept);
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
    Value passed = getName(in, word);
    if (target && index < target->source->parameters.size()) {
      Slots &into = target->slots[target->source->parameters[index].name];
      auto from = in.slots.find(word);
      if (from == in.slots.end())
        changed |= into[0].add(passed);
      else
        for (const auto &[offset, value] : from->second)
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
    if (!target)
      changed |= into[0].add(plain(Value::Unknown));
    else
      for (const auto &[offset, value] : target->results)
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
    for (Operand operand : operands) {
      bool isAddress = !operand.empty() && operand.front() == "[";
      bool isResult = !isAddress && operand.data() == operands[0].data();
      // A tensor map and coordinates, or a barrier, may stand there too.
      if (isAddress)
        checkAddress(in,
                     base == "cp" || base == "mbarrier" || base == "fence"
                         ? StringRef("cp.shared")
                         : opcode,
                     operand);
      else if (isResult)
        put(in, operand, plain(Value::Unknown));
      else if (isChecking && base != "tensormap" && get(in, operand).tells())
        // A tensor map is made to hold an address.
        refuse(called(get(in, operand)) + " is written as data (`" + opcode +
               "`); where a buffer lies is no result");
    }
    return;
  }
  if (base == "setp" || base == "set") {
    compare(in, opcode, operands);
    if (!operands.empty())
      put(in, operands[0], plain(Value::Number));
    return;
  }
  if (base == "brx" && isChecking && operands.size() == 2 &&
      get(in, operands[0]).tells())
    return refuse("where a buffer lies decides what the code does (`" + opcode +
                  "`)");
  if (operands.size() == 1)
    put(in, operands[0], plain(Value::Unknown));
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
  for (unsigned round = 0; changed; ++round) {
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
        putName(*function, name.first(), plain(Value::Unknown));
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
