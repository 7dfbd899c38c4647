// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads PTX just far enough: statements, module variables, functions. PTX does
// not tell a const variable from a writable one, and a single include brings a
// thousand constants, so what counts is use: within a function, whatever is
// computed from a variable's address may be loaded from and nothing else. What
// cannot be followed (the address is stored, passed or put into another
// variable) is refused. The text is hostile: names in inline assembly may be
// anything, braces may close the function; both only ever lead to a refusal.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <vector>

using llvm::StringRef;

namespace fsr {
namespace {

using Tokens = llvm::SmallVector<StringRef, 12>;

bool isWordByte(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/// Words, strings (as one token with the quotes) and single punctuation marks;
/// comments are gone.
std::vector<StringRef> tokenize(StringRef text) {
  std::vector<StringRef> tokens;
  while (!text.empty()) {
    if (llvm::isSpace(text[0])) {
      text = text.drop_front();
      continue;
    }
    size_t length = 1;
    if (text.starts_with("//")) {
      text = text.drop_front(std::min(text.find('\n'), text.size()));
      continue;
    }
    if (text.starts_with("/*")) {
      size_t end = text.find("*/", 2);
      text = text.drop_front(end == StringRef::npos ? text.size() : end + 2);
      continue;
    }
    if (text[0] == '"') {
      while (length < text.size() && text[length] != '"')
        length += text[length] == '\\' ? 2 : 1;
      length = std::min(length + 1, text.size());
    } else if (isWordByte(text[0])) {
      while (length < text.size() && isWordByte(text[length]))
        ++length;
    }
    tokens.push_back(text.take_front(length));
    text = text.drop_front(length);
  }
  return tokens;
}

bool isName(StringRef token) {
  return isWordByte(token[0]) && token[0] != '.' && !llvm::isDigit(token[0]);
}

/// "ld" of "ld.global.nc.f32".
StringRef baseOf(StringRef opcode) { return opcode.split('.').first; }

/// Instructions that compute their first operand from the others and touch no
/// memory, or only read it.
bool onlyComputes(StringRef opcode) {
  return llvm::StringSwitch<bool>(baseOf(opcode))
      .Cases({"ld", "ldu", "mov", "cvta", "cvt", "prefetch", "prefetchu",
              "isspacep"},
             true)
      .Cases({"add", "addc", "sub", "subc", "mul", "mad", "madc", "shl", "shr",
              "shf", "and", "or", "xor", "not", "neg", "abs", "min", "max"},
             true)
      .Cases({"selp", "slct", "setp", "set", "lop3", "prmt", "bfe", "bfi",
              "szext", "bmsk", "mul24", "mad24"},
             true)
      .Default(false);
}

/// A special register whose value a candidate may not see, and why.
StringRef whyNoRegister(StringRef token) {
  if (!token.consume_front("%"))
    return "";
  if (token.starts_with("clock") || token.starts_with("globaltimer"))
    return "reads a clock";
  if (token == "smid")
    return "reads on which multiprocessor it runs";
  if (token == "gridid" || token == "current_graph_exec")
    return "reads a number that tells launches apart";
  if (token.starts_with("envreg"))
    return "reads a driver register, as a grid-wide barrier does; split the "
           "work into several launches instead";
  if (token.size() > 2 && token.starts_with("pm") && llvm::isDigit(token[2]))
    return "reads a performance counter";
  return "";
}

class Checker {
public:
  explicit Checker(StringRef ptx) : tokens(tokenize(ptx)) {}

  std::optional<std::string> check(llvm::ArrayRef<std::string> entries);

private:
  struct Variable {
    bool isConst = false; ///< In .const space.
    bool initialised = false;
  };

  bool refuse(const llvm::Twine &reason) {
    if (!refusal)
      refusal = reason.str();
    return false;
  }
  StringRef peek() const {
    return at < tokens.size() ? tokens[at] : StringRef();
  }
  bool skipLineDirective();
  bool readModule();
  bool readDeclaration();
  bool readVariable(const Tokens &statement,
                    llvm::ArrayRef<StringRef> initialiser);
  bool readBody();
  bool checkBody(llvm::ArrayRef<Tokens> body);
  bool checkStatement(const Tokens &statement,
                      llvm::StringMap<StringRef> &addresses, StringRef &pending,
                      bool &changed);
  bool checkCall(const Tokens &statement, StringRef carried);

  std::vector<StringRef> tokens;
  size_t at = 0;
  llvm::StringMap<Variable> variables;
  /// Names whose address another variable's initialiser holds.
  std::vector<StringRef> initialisers;
  std::vector<std::vector<Tokens>> bodies;
  llvm::StringSet<> externs;
  std::vector<StringRef> kernels;
  std::optional<std::string> refusal;
};

/// Directives that end with their operands and not with a semicolon.
bool Checker::skipLineDirective() {
  auto skipNumbers = [&] {
    while (!peek().empty() && (llvm::isDigit(peek()[0]) || peek() == ","))
      ++at;
  };
  StringRef directive = peek();
  if (directive == ".version" || directive == ".address_size") {
    at += 2;
  } else if (directive == ".target") {
    at += 2;
    while (peek() == ",")
      at += 2;
  } else if (directive == ".file") {
    at += 3;
    skipNumbers();
  } else if (directive == ".loc") {
    ++at;
    skipNumbers();
    // ", function_name LABEL[+N], inlined_at N N N"; the commas went above.
    if (peek() == "function_name") {
      at += 2;
      if (peek() == "+")
        ++at;
      skipNumbers();
      if (peek() == "inlined_at") {
        ++at;
        skipNumbers();
      }
    }
  } else {
    return false;
  }
  return true;
}

bool Checker::readModule() {
  while (at < tokens.size()) {
    if (skipLineDirective())
      continue;
    if (!readDeclaration())
      return false;
  }
  return true;
}

/// One declaration outside of functions, with its body where it has one.
bool Checker::readDeclaration() {
  Tokens statement, initialiser;
  while (at < tokens.size() && peek() != ";" && peek() != "{") {
    statement.push_back(tokens[at++]);
    if (statement.back() != "=")
      continue;
    while (at < tokens.size() && peek() != ";")
      initialiser.push_back(tokens[at++]);
  }
  bool hasBody = peek() == "{";
  if (llvm::is_contained(statement, "}"))
    return refuse("the PTX has a brace outside of a function");
  if (statement.empty() && !hasBody) {
    ++at;
    return true;
  }
  auto has = [&](StringRef word) {
    return llvm::is_contained(statement, word);
  };
  if (has(".entry") || has(".func")) {
    // The name stands behind the word, behind a function's results.
    size_t i = llvm::find_if(
                   statement,
                   [](StringRef t) { return t == ".entry" || t == ".func"; }) -
               statement.begin() + 1;
    // ".attribute(...)" and "(.param ...)" may stand between.
    int depth = 0;
    while (i < statement.size() &&
           (depth || statement[i] == "(" || !isName(statement[i]))) {
      depth += statement[i] == "(" ? 1 : statement[i] == ")" ? -1 : 0;
      ++i;
    }
    StringRef name = i < statement.size() ? statement[i] : StringRef();
    if (has(".entry") && hasBody)
      kernels.push_back(name);
    if (has(".extern")) {
      if (name == "malloc" || name == "free")
        return refuse("the code uses the device heap (malloc, free, new or "
                      "delete); use shared memory or a scratch buffer");
      if (name.starts_with("cudaLaunch") ||
          name.starts_with("cudaGetParameterBuffer") ||
          name.starts_with("cudaCDP") || name.starts_with("__cudaCDP"))
        return refuse("the code launches kernels from the device; list every "
                      "launch in the plan instead");
      if (name != "vprintf" && name != "__assertfail")
        return refuse("the function `" + name +
                      "` is declared but not defined");
      externs.insert(name);
    }
    if (hasBody)
      return readBody();
    ++at;
    return true;
  }
  if (has(".section")) {
    while (at < tokens.size() && peek() != "}")
      ++at;
    ++at;
    return true;
  }
  if (hasBody)
    return refuse("the PTX has a block outside of a function");
  ++at;
  for (StringRef kind : {".texref", ".surfref", ".samplerref"})
    if (has(kind))
      return refuse("the code uses a texture or surface reference, which "
                    "nobody binds");
  if (has(".global") || has(".const"))
    return readVariable(statement, initialiser);
  return true;
}

bool Checker::readVariable(const Tokens &statement,
                           llvm::ArrayRef<StringRef> initialiser) {
  bool isConst = llvm::is_contained(statement, ".const");
  for (StringRef token : statement) {
    if (!isName(token))
      continue;
    if (token == "managed" || llvm::is_contained(statement, ".managed"))
      return refuse(
          "`" + token +
          "` is a managed variable, whose value would survive a launch");
    if (llvm::is_contained(statement, ".extern"))
      return refuse("the variable `" + token + "` is declared but not defined");
    if (isConst && initialiser.empty())
      return refuse("the __constant__ variable `" + token +
                    "` has no values and nobody fills it; initialise it or "
                    "pass the data as an argument");
    variables[token] = {isConst, !initialiser.empty()};
  }
  for (StringRef token : initialiser)
    if (isName(token))
      initialisers.push_back(token);
  return true;
}

/// From the "{" of a function to its "}".
bool Checker::readBody() {
  bodies.emplace_back();
  Tokens statement;
  int depth = 0;
  while (at < tokens.size()) {
    if (statement.empty() && skipLineDirective())
      continue;
    StringRef token = tokens[at++];
    if (StringRef why = whyNoRegister(token); !why.empty())
      return refuse("the code " + why + " (" + token + ")");
    if (token == ":") {
      statement.clear(); // A label.
    } else if (token == ";") {
      if (!statement.empty())
        bodies.back().push_back(std::move(statement));
      statement.clear();
    } else if (token == "{" && statement.empty()) {
      ++depth;
    } else if (token == "}" && statement.empty()) {
      if (--depth == 0)
        return true;
    } else {
      statement.push_back(token);
    }
  }
  return refuse("the PTX ends within a function");
}

bool Checker::checkCall(const Tokens &statement, StringRef carried) {
  // call.uni (results), name, (arguments), prototype
  size_t i = 1;
  if (i < statement.size() && statement[i] == "(")
    i = llvm::find(statement, StringRef(")")) - statement.begin() + 1;
  while (i < statement.size() && statement[i] == ",")
    ++i;
  StringRef callee = i < statement.size() ? statement[i] : StringRef();
  if (carried.empty() || externs.contains(callee))
    return true;
  return refuse("the address of `" + carried + "` is passed to `" + callee +
                "`; a variable in device memory must only be read where it is "
                "in sight (make the function inline, or the data an argument)");
}

bool Checker::checkStatement(const Tokens &statement,
                             llvm::StringMap<StringRef> &addresses,
                             StringRef &pending, bool &changed) {
  llvm::ArrayRef<StringRef> words = statement;
  if (words.front() == "@") { // A predicate: "@p", "@!p".
    words = words.drop_front();
    if (!words.empty() && words.front() == "!")
      words = words.drop_front();
    words = words.drop_front(words.empty() ? 0 : 1);
  }
  if (words.empty())
    return true;
  StringRef opcode = words.front();
  if (opcode.starts_with(".")) {
    for (StringRef space : {".global", ".const", ".extern"})
      if (llvm::is_contained(words, space))
        return refuse("inline assembly declares a " + space + " variable");
    return true;
  }
  // The variable whose address an operand carries, and where the first is.
  StringRef carried;
  size_t first = 0;
  for (size_t i = 1; i < words.size() && carried.empty(); ++i) {
    auto it = addresses.find(words[i]);
    if (it != addresses.end()) {
      carried = it->second;
      first = i;
    }
  }
  StringRef base = baseOf(opcode);
  if (base == "call") {
    StringRef handed = carried.empty() ? pending : carried;
    pending = "";
    return checkCall(Tokens(words.begin(), words.end()), handed);
  }
  if (carried.empty())
    return true;
  if (opcode.starts_with("st.param")) {
    pending = carried;
    return true;
  }
  if (base == "cp" || opcode.starts_with("cp.async")) {
    // Copies may read from it: not in the first pair of brackets.
    size_t close = llvm::find(words, StringRef("]")) - words.begin();
    if (first > close)
      return true;
  }
  if (!onlyComputes(opcode))
    return refuse("the variable `" + carried +
                  "` in device memory is used by `" + opcode +
                  "`: no state may survive a launch; use a scratch buffer of "
                  "the plan, shared memory, or make it const");
  if (base == "ld" || base == "ldu" || base == "prefetch" ||
      base == "prefetchu")
    return true;
  // Everything in the first operand now carries the address too.
  auto mark = [&](StringRef word) {
    if (isName(word) && addresses.try_emplace(word, carried).second)
      changed = true;
  };
  if (words.size() > 1 && words[1] == "{") {
    for (size_t i = 2; i < words.size() && words[i] != "}"; ++i)
      mark(words[i]);
  } else {
    for (size_t i = 1; i < words.size() && words[i] != ","; ++i)
      mark(words[i]);
  }
  return true;
}

bool Checker::checkBody(llvm::ArrayRef<Tokens> body) {
  llvm::StringMap<StringRef> addresses;
  for (const auto &variable : variables)
    if (!variable.second.isConst)
      addresses[variable.first()] = variable.first();
  // Loops carry addresses backwards; real code settles in two or three rounds.
  for (unsigned round = 0; round < 32; ++round) {
    bool changed = false;
    StringRef pending;
    for (const Tokens &statement : body)
      if (!checkStatement(statement, addresses, pending, changed))
        return false;
    if (!changed)
      return true;
  }
  return refuse("the uses of variables in device memory are too entangled to "
                "be checked");
}

std::optional<std::string> Checker::check(llvm::ArrayRef<std::string> entries) {
  if (!readModule())
    return refusal;
  for (StringRef name : initialisers) {
    auto it = variables.find(name);
    if (it != variables.end() && !it->second.isConst) {
      refuse("the address of `" + name +
             "` is kept in another variable, where its uses cannot be seen");
      return refusal;
    }
  }
  for (const std::vector<Tokens> &body : bodies)
    if (!checkBody(body))
      return refusal;
  for (const std::string &entry : entries)
    if (!llvm::is_contained(kernels, StringRef(entry))) {
      std::string have = llvm::join(kernels, "`, `");
      refuse("the source defines no kernel `" + entry + "`" +
             (kernels.empty() ? std::string("; it defines none at all")
                              : "; it defines `" + have + "`") +
             " (a kernel is declared extern \"C\" __global__)");
      return refusal;
    }
  return std::nullopt;
}

} // namespace

std::optional<std::string> checkContract(StringRef ptx,
                                         llvm::ArrayRef<std::string> entries) {
  return Checker(ptx).check(entries);
}

} // namespace fsr
