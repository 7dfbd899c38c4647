// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The operators: what can be done to one instruction so that the text is PTX
// still and most likely means something else. Faults that people and LLMs make
// are the model: a sign, an index off by one, a missing barrier, a wrong axis,
// too few bits. Nothing here is only a change of speed, and rounding to nearest
// is never exchanged for another rounding of the same width, which the rules of
// the validation allow.
//
//===----------------------------------------------------------------------===//

#include "Mutants.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using fsr::ptx::Operand;
using llvm::StringRef;

namespace fsr::mutation {

llvm::ArrayRef<llvm::StringLiteral> kinds() {
  static constexpr llvm::StringLiteral all[] = {
      "arithmetic",     // add, sub, mul, min, max, fma's addend
      "sign",           // a term negated, a negation left out
      "order",          // operands of sub, div, selp exchanged
      "logic",          // and, or, xor, not, shl, shr
      "constant",       // an integer
      "float-constant", // likewise
      "bound",          // lt and le, gt and ge
      "compare",        // eq and ne, lt and gt
      "signedness",     // s32 and u32
      "barrier",        // left out
      "offset",         // of an address
      "guard",          // negated, left out, never
      "width",          // half of what is loaded or stored
      "store",          // left out
      "shuffle",        // lane, mask, mode
      "precision",      // through a shorter float
      "special",        // %tid.x and the like
      "atomic",         // its operation, or none
      "function",       // ex2, rsqrt, rounding to an integer
  };
  return all;
}

namespace {

using Words = std::initializer_list<std::pair<StringRef, StringRef>>;

class Changer {
public:
  explicit Changer(const Statement &statement)
      : s(statement), i(*statement.instruction) {}

  std::vector<Change> run();

private:
  void add(StringRef kind, const llvm::Twine &name, const Statement &made) {
    changes.push_back({kind, name.str(), made.text(), s.guard, true});
  }
  void addText(StringRef kind, const llvm::Twine &name, std::string after) {
    changes.push_back({kind, name.str(), std::move(after), s.guard, true});
  }
  /// The statement with another opcode, which is the change's name as well.
  void opcode(StringRef kind, const std::string &opcode) {
    Statement made = s;
    made.opcode = opcode;
    add(kind, opcode, made);
  }
  void operand(StringRef kind, size_t at, const std::string &text) {
    Statement made = s;
    made.operands[at] = text;
    add(kind, llvm::formatv("{0}={1}", at, text).str(), made);
  }
  /// "add.s32" with another first word.
  std::string with(StringRef first) const {
    return first.str() + s.opcode.substr(i.opcode.size());
  }
  /// With one modifier exchanged, or taken out.
  std::string exchange(StringRef from, StringRef to) const {
    std::string made = i.opcode.str();
    bool done = false;
    for (StringRef one : i.modifiers) {
      if (!done && one == from) {
        done = true;
        if (!to.empty())
          made += "." + to.str();
        continue;
      }
      made += "." + one.str();
    }
    return made;
  }
  std::string guarded(StringRef text) const {
    return s.guard.empty() ? text.str() : s.guard + " " + text.str();
  }
  bool is(std::initializer_list<StringRef> opcodes) const {
    for (StringRef one : opcodes)
      if (i.opcode == one)
        return true;
    return false;
  }
  /// The last type among the modifiers: what is computed with.
  ptx::Type type() const {
    for (size_t at = i.modifiers.size(); at-- > 0;)
      if (std::optional<ptx::Type> one = ptx::parseType(i.modifiers[at]))
        return *one;
    return ptx::Type::None;
  }
  std::string typeName() const { return ptx::nameOf(type()).str(); }
  bool isF32() const { return type() == ptx::Type::F32; }
  bool isVector() const { return i.has("v2") || i.has("v4") || i.has("v8"); }
  bool isMemory() const {
    return is({"ld", "st", "atom", "red", "cp"}) && !i.has("param");
  }

  void arithmetic();
  void signs();
  void order();
  void logic();
  void constants();
  void comparisons();
  void signedness();
  void barriers();
  void offsets();
  void guards();
  void widths();
  void stores();
  void shuffles();
  void precision();
  void specials();
  void atomics();
  void functions();

  const Statement &s;
  const ptx::Instruction &i;
  std::vector<Change> changes;
};

void Changer::arithmetic() {
  if (i.has("cc"))
    return;
  if (is({"add"}))
    opcode("arithmetic", with("sub"));
  else if (is({"sub"}))
    opcode("arithmetic", with("add"));
  else if (is({"min"}))
    opcode("arithmetic", with("max"));
  else if (is({"max"}))
    opcode("arithmetic", with("min"));
  else if (is({"div"}) && ptx::isFloat(type()))
    opcode("arithmetic", with("mul"));
  else if (is({"div"}))
    opcode("arithmetic", with("rem"));
  else if (is({"rem"}))
    opcode("arithmetic", with("div"));
  else if (is({"mul"}) && ptx::isFloat(type()))
    opcode("arithmetic", with("add"));
  else if (is({"mul"}) && i.has("lo"))
    opcode("arithmetic", "add." + typeName());
  else if (is({"mad", "fma"}) && s.operands.size() == 4) {
    Statement made = s;
    made.opcode = with("mul");
    made.operands.pop_back();
    add("arithmetic", made.opcode, made);
  }
}

void Changer::signs() {
  if (!isF32() && type() != ptx::Type::F64)
    return;
  auto negated = [&](size_t at) {
    Statement made = s;
    made.operands[at] = "%fsr_negated";
    addText("sign", llvm::formatv("-{0}", at).str(),
            "{ .reg ." + typeName() + " %fsr_negated; neg." + typeName() +
                " %fsr_negated, " + s.operands[at] + "; " + made.text() + " }");
  };
  if (is({"fma"}) && s.operands.size() == 4) {
    negated(1);
    negated(3);
  } else if (is({"mul", "div", "max", "min"}) && s.operands.size() == 3) {
    negated(1);
  } else if (is({"neg", "abs"})) {
    opcode("sign", "mov." + typeName());
  }
}

void Changer::order() {
  auto swap = [&](size_t a, size_t b) {
    Statement made = s;
    std::swap(made.operands[a], made.operands[b]);
    add("order", llvm::formatv("{0}<>{1}", a, b).str(), made);
  };
  if (is({"sub", "div", "rem"}) && s.operands.size() == 3)
    swap(1, 2);
  else if (is({"selp"}) && s.operands.size() == 4)
    swap(1, 2);
}

void Changer::logic() {
  if (is({"and"}))
    opcode("logic", with("or"));
  else if (is({"or"}))
    opcode("logic", with("and"));
  else if (is({"xor"}))
    opcode("logic", with("or"));
  else if (is({"not"}))
    opcode("logic", with("mov"));
  else if (is({"shl"}))
    opcode("logic", "shr.u" + std::to_string(ptx::bitWidth(type())));
  else if (is({"shr"}))
    opcode("logic", "shl.b" + std::to_string(ptx::bitWidth(type())));
  else if (is({"lop3"}) && s.operands.size() >= 5)
    operand("logic", 4, s.operands[4] == "0xC0" ? "0xFC" : "0xC0");
}

void Changer::constants() {
  // Which barrier, which lanes, which table: those have operators of their own.
  if (is({"bar", "barrier", "shfl", "lop3", "vote", "cp", "call"}))
    return;
  for (size_t at = 0; at < i.operands.size() && at < s.operands.size(); ++at) {
    const Operand &one = i.operands[at];
    if (one.kind == Operand::Kind::Integer) {
      int64_t value = int64_t(one.bits);
      for (int64_t other : {value + 1, value - 1, value * 2, int64_t(0)})
        if (other != value)
          operand("constant", at, std::to_string(other));
    } else if (one.kind == Operand::Kind::Single) {
      uint32_t bits = uint32_t(one.bits);
      auto put = [&](uint32_t other) {
        if (other != bits)
          operand(
              "float-constant", at,
              llvm::formatv("0f{0}", llvm::utohexstr(other, false, 8)).str());
      };
      bool isZero = !(bits & 0x7fffffff);
      bool isFinite = (bits & 0x7f800000) != 0x7f800000;
      if (isZero) {
        put(0x3f800000);
        put(0xbf800000);
        continue;
      }
      put(bits ^ 0x80000000);
      put(0);
      if (isFinite)
        put(bits + 0x00800000); // Twice as much.
    }
  }
}

void Changer::comparisons() {
  if (!is({"setp", "set"}) || i.modifiers.empty())
    return;
  static const Words bounds = {{"lt", "le"},   {"le", "lt"},   {"gt", "ge"},
                               {"ge", "gt"},   {"lo", "ls"},   {"ls", "lo"},
                               {"hi", "hs"},   {"hs", "hi"},   {"ltu", "leu"},
                               {"leu", "ltu"}, {"gtu", "geu"}, {"geu", "gtu"}};
  static const Words compares = {
      {"eq", "ne"},   {"ne", "eq"},   {"lt", "gt"},   {"le", "ge"},
      {"gt", "lt"},   {"ge", "le"},   {"lo", "hi"},   {"ls", "hs"},
      {"hi", "lo"},   {"hs", "ls"},   {"ltu", "gtu"}, {"leu", "geu"},
      {"gtu", "ltu"}, {"geu", "leu"}, {"equ", "neu"}, {"neu", "equ"}};
  for (auto [from, to] : bounds)
    if (i.modifiers[0] == from)
      opcode("bound", exchange(from, to));
  for (auto [from, to] : compares)
    if (i.modifiers[0] == from)
      opcode("compare", exchange(from, to));
}

void Changer::signedness() {
  if (!is({"setp", "shr", "min", "max", "div", "rem"}) &&
      !(is({"mul", "mad"}) && i.has("wide")))
    return;
  // Equal is equal whatever the sign.
  if (i.has("eq") || i.has("ne"))
    return;
  for (auto [from, to] : Words{{"s32", "u32"},
                               {"u32", "s32"},
                               {"s64", "u64"},
                               {"u64", "s64"},
                               {"s16", "u16"},
                               {"u16", "s16"}})
    if (i.has(from))
      opcode("signedness", exchange(from, to));
}

void Changer::barriers() {
  bool waits = is({"cp"}) && (i.has("wait_group") || i.has("wait_all") ||
                              i.has("commit_group"));
  if (!waits && !is({"bar", "barrier", "membar", "fence"}))
    return;
  // `bar.red` has a result that others use.
  if (!i.has("red"))
    addText("barrier", "none", "");
  if (i.has("wait_group") && !i.operands.empty() &&
      i.operands[0].kind == Operand::Kind::Integer)
    operand("barrier", 0, std::to_string(i.operands[0].bits + 1));
}

void Changer::offsets() {
  if (!isMemory())
    return;
  int64_t size = std::max(1u, ptx::bitWidth(type()) / 8);
  for (size_t at = 0; at < i.operands.size() && at < s.operands.size(); ++at) {
    const Operand &one = i.operands[at];
    if (one.kind != Operand::Kind::Address || one.elements.size() != 1 ||
        !one.selector.empty() || one.elements[0].kind == Operand::Kind::Integer)
      continue;
    StringRef base = StringRef(s.operands[at]).drop_front().drop_back();
    base = base.take_front(base.find_first_of("+")).trim();
    for (int64_t by : {size, -size, int64_t(4), int64_t(-4)})
      operand("offset", at,
              llvm::formatv("[{0}+{1}]", base, int64_t(one.bits) + by).str());
  }
}

void Changer::guards() {
  if (s.guard.empty())
    return;
  Statement negated = s, always = s;
  StringRef predicate = StringRef(s.guard).drop_front();
  negated.guard = predicate.consume_front("!") ? "@" + predicate.trim().str()
                                               : "@!" + predicate.trim().str();
  always.guard.clear();
  changes.push_back({"guard", "negated", negated.text(), "", false});
  changes.push_back({"guard", "always", always.text(), negated.guard, false});
  changes.push_back({"guard", "never", "", s.guard, false});
}

void Changer::widths() {
  if (!is({"ld", "st"}) || isVector() || i.has("param") ||
      ptx::bitWidth(type()) != 32 || s.operands.size() != 2)
    return;
  if (is({"ld"}))
    addText("width", "16 bits",
            "{ .reg .b32 %fsr_half; " +
                guarded(exchange(typeName(), "u16") + " %fsr_half, " +
                        s.operands[1] + ";") +
                " " + guarded("mov.b32 " + s.operands[0] + ", %fsr_half;") +
                " }");
  else
    addText("width", "16 bits",
            "{ .reg .b32 %fsr_half; " +
                guarded("mov.b32 %fsr_half, " + s.operands[1] + ";") + " " +
                guarded(exchange(typeName(), "u16") + " " + s.operands[0] +
                        ", %fsr_half;") +
                " }");
}

void Changer::stores() {
  if (is({"st"}) && !i.has("param"))
    addText("store", "none", "");
}

void Changer::shuffles() {
  if (is({"vote"})) {
    for (auto [from, to] : Words{{"any", "all"}, {"all", "any"}})
      if (i.has(from))
        opcode("shuffle", exchange(from, to));
    return;
  }
  if (!is({"shfl"}) || s.operands.size() != 5)
    return;
  for (auto [from, to] :
       Words{{"bfly", "up"}, {"down", "up"}, {"up", "down"}, {"idx", "bfly"}})
    if (i.has(from))
      opcode("shuffle", exchange(from, to));
  // Of a butterfly over all lanes, 3 in place of 2 would be as good.
  for (const char *lane : {"0", "1", "16"})
    operand("shuffle", 2, lane);
  operand("shuffle", 4, "0x0000FFFF");
}

void Changer::precision() {
  if (!isF32() || isVector() || i.has("param") || s.operands.size() < 2 ||
      !is({"ld", "add", "sub", "mul", "fma", "div", "sqrt", "rsqrt", "rcp",
           "ex2", "lg2", "sin", "cos", "tanh"}))
    return;
  for (StringRef shorter : {"f16", "bf16"}) {
    std::string half = shorter.str();
    addText(
        "precision", shorter,
        "{ .reg .b16 %fsr_short; " + s.text() + " " +
            guarded("cvt.rn." + half + ".f32 %fsr_short, " + s.operands[0] +
                    ";") +
            " " +
            guarded("cvt.f32." + half + " " + s.operands[0] + ", %fsr_short;") +
            " }");
  }
}

void Changer::specials() {
  if (!is({"mov", "cvt"}))
    return;
  for (size_t at = 0; at < i.operands.size() && at < s.operands.size(); ++at) {
    if (i.operands[at].kind != Operand::Kind::Special)
      continue;
    StringRef name = s.operands[at];
    for (auto [from, to] : Words{{"%tid.x", "%tid.y"},
                                 {"%tid.y", "%tid.x"},
                                 {"%ctaid.x", "%ctaid.y"},
                                 {"%ctaid.y", "%ctaid.x"},
                                 {"%tid.x", "%ctaid.x"},
                                 {"%ctaid.x", "%tid.x"},
                                 {"%tid.x", "%laneid"},
                                 {"%ctaid.x", "%nctaid.x"},
                                 {"%ntid.x", "%nctaid.x"},
                                 {"%nctaid.x", "%ntid.x"},
                                 {"%ntid.x", "%ntid.y"},
                                 {"%nctaid.x", "%nctaid.y"},
                                 {"%laneid", "%tid.y"}})
      if (name == from)
        operand("special", at, to.str());
  }
}

void Changer::atomics() {
  if (!is({"atom", "red"}))
    return;
  addText("atomic", "none", "");
  bool isFloat = ptx::isFloat(type());
  if (i.has("add") && !isFloat) {
    opcode("atomic", exchange("add", "max"));
    opcode("atomic", exchange("add", "inc"));
    opcode("atomic", exchange("add", "or"));
  }
  if (i.has("max"))
    opcode("atomic", exchange("max", "min"));
  if (i.has("min"))
    opcode("atomic", exchange("min", "max"));
  // The same in three steps, which others come between.
  bool returns = is({"atom"});
  size_t address = returns ? 1 : 0;
  if (!i.has("add") || s.operands.size() != address + 2)
    return;
  std::string space = i.has("shared")   ? "shared"
                      : i.has("global") ? "global"
                                        : "";
  std::string spaceDot = space.empty() ? "" : "." + space;
  std::string type = typeName();
  std::string where = s.operands[address], what = s.operands[address + 1];
  std::string text =
      "{ .reg ." + type + " %fsr_old; .reg ." + type + " %fsr_new; " +
      guarded("ld" + spaceDot + "." + type + " %fsr_old, " + where + ";") +
      " " + guarded("add." + type + " %fsr_new, %fsr_old, " + what + ";") +
      " " + guarded("st" + spaceDot + "." + type + " " + where + ", %fsr_new;");
  if (returns && s.operands[0] != "_")
    text +=
        " " + guarded("mov.b" + std::to_string(ptx::bitWidth(this->type())) +
                      " " + s.operands[0] + ", %fsr_old;");
  addText("atomic", "in three steps", text + " }");
  addText(
      "atomic", "stored",
      guarded("st" + spaceDot + "." + type + " " + where + ", " + what + ";"));
}

void Changer::functions() {
  StringRef other = llvm::StringSwitch<StringRef>(i.opcode)
                        .Case("ex2", "lg2")
                        .Case("lg2", "ex2")
                        .Case("sin", "cos")
                        .Case("cos", "sin")
                        .Case("rsqrt", "rcp")
                        .Case("sqrt", "rcp")
                        .Case("rcp", "sqrt")
                        .Case("tanh", "ex2")
                        .Default("");
  if (!other.empty()) {
    opcode("function", with(other));
    opcode("function", "mov." + typeName());
  }
  if (is({"cvt"})) {
    for (auto [from, to] : Words{{"rni", "rmi"},
                                 {"rzi", "rpi"},
                                 {"rmi", "rpi"},
                                 {"rpi", "rmi"},
                                 {"sat", ""}})
      if (i.has(from))
        opcode("function", exchange(from, to));
  }
}

std::vector<Change> Changer::run() {
  arithmetic();
  signs();
  order();
  logic();
  constants();
  comparisons();
  signedness();
  barriers();
  offsets();
  guards();
  widths();
  stores();
  shuffles();
  precision();
  specials();
  atomics();
  functions();
  return std::move(changes);
}

} // namespace

std::vector<Change> changesOf(const Statement &statement) {
  return Changer(statement).run();
}

} // namespace fsr::mutation
