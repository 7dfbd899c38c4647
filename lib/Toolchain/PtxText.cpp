// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The text is hostile: names in inline assembly may be anything, braces may
// close the function. Both only ever lead to a refusal.
//
//===----------------------------------------------------------------------===//

#include "PtxText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>
#include <array>

using llvm::StringRef;

namespace fsr {
namespace {

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
      // "::" is part of a word, as in "ld.global.L2::128B".
      for (;;)
        if (length < text.size() && isWordByte(text[length]))
          ++length;
        else if (text.drop_front(length).starts_with("::"))
          length += 2;
        else
          break;
    }
    tokens.push_back(text.take_front(length));
    text = text.drop_front(length);
  }
  return tokens;
}

/// Bytes of ".u64", ".f32", ".b8"; 0 for anything else.
unsigned bytesOfType(StringRef type) {
  unsigned bits = 0;
  if (!type.consume_front(".") || type.empty() ||
      !StringRef("usbf").contains(type.front()) ||
      type.drop_front().getAsInteger(10, bits) || bits % 8 != 0)
    return 0;
  return bits / 8;
}

/// ".param .u64 .ptr .align 1 name" or ".param .align 8 .b8 name[24]".
PtxParameter readParameter(llvm::ArrayRef<StringRef> words) {
  PtxParameter parameter;
  if (words.empty() || (words.front() != ".param" && words.front() != ".reg"))
    return parameter;
  unsigned count = 1;
  bool isArray = false;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == ".align") {
      ++i;
    } else if (unsigned bytes = bytesOfType(words[i])) {
      parameter.bytes = bytes;
      parameter.kind = words[i][1] == 'f'   ? PtxParameter::Float
                       : words[i][1] == 'b' ? PtxParameter::Bytes
                                            : PtxParameter::Integer;
    } else if (words[i] == "[") {
      isArray = true;
      if (i + 1 >= words.size() || words[i + 1].getAsInteger(10, count) ||
          count > 65536)
        count = 0;
      break;
    } else if (isPtxName(words[i])) {
      parameter.name = words[i];
    }
  }
  if (isArray)
    parameter.kind = PtxParameter::Bytes;
  parameter.bytes *= count;
  return parameter;
}

class Reader {
public:
  Reader(StringRef ptx, std::string &refusal)
      : tokens(tokenize(ptx)), refusal(refusal) {}

  std::optional<PtxModule> read() {
    while (at < tokens.size()) {
      if (skipLineDirective())
        continue;
      if (!readDeclaration())
        return std::nullopt;
    }
    return std::move(module);
  }

private:
  bool refuse(const llvm::Twine &reason) {
    refusal = reason.str();
    return false;
  }
  StringRef peek() const {
    return at < tokens.size() ? tokens[at] : StringRef();
  }
  bool skipLineDirective();
  bool readDeclaration();
  bool readFunction(const PtxWords &statement, bool hasBody);
  bool readVariable(const PtxWords &statement,
                    llvm::ArrayRef<StringRef> initialiser);
  bool readBody(PtxFunction &function);
  void readWindow(llvm::ArrayRef<StringRef> statement);

  std::vector<StringRef> tokens;
  size_t at = 0;
  PtxModule module;
  llvm::StringSet<> names; ///< Of functions with a body.
  std::string &refusal;
};

/// Directives that end with their operands and not with a semicolon.
bool Reader::skipLineDirective() {
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

/// One declaration outside of functions, with its body where it has one.
bool Reader::readDeclaration() {
  PtxWords statement, initialiser;
  while (at < tokens.size() && peek() != ";" && peek() != "{") {
    statement.push_back(tokens[at++]);
    if (statement.back() != "=")
      continue;
    int depth = 0;
    for (; at < tokens.size() && peek() != ";"; ++at) {
      depth += peek() == "{" || peek() == "(";
      depth -= peek() == "}" || peek() == ")";
      // Names behind it would not be seen.
      if (peek() == "," && depth <= 0)
        return refuse("the PTX declares several variables at once");
      initialiser.push_back(peek());
    }
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
  if (has(".entry") || has(".func"))
    return readFunction(statement, hasBody);
  if (has(".section")) {
    while (at < tokens.size() && peek() != "}")
      ++at;
    ++at;
    return true;
  }
  if (hasBody)
    return refuse("the PTX has a block outside of a function");
  ++at;
  if (has(".alias"))
    return refuse("inline assembly gives a function a second name (.alias)");
  for (StringRef kind : {".texref", ".surfref", ".samplerref"})
    if (has(kind))
      return refuse("the code uses a texture or surface reference, which "
                    "nobody binds");
  readWindow(statement);
  if (has(".global") || has(".const"))
    return readVariable(statement, initialiser);
  return true;
}

bool Reader::readFunction(const PtxWords &statement, bool hasBody) {
  PtxFunction function;
  size_t i =
      llvm::find_if(statement,
                    [](StringRef t) { return t == ".entry" || t == ".func"; }) -
      statement.begin();
  function.isEntry = statement[i] == ".entry";
  // The words between a pair of parentheses, split at commas; `i` goes behind.
  bool hasRegisters = false;
  auto readList = [&](auto add) {
    size_t from = ++i;
    for (; i < statement.size(); ++i) {
      hasRegisters |= statement[i] == ".reg";
      bool ends = statement[i] == ")";
      if (!ends && statement[i] != ",")
        continue;
      if (i > from)
        add(readParameter(llvm::ArrayRef(statement).slice(from, i - from)));
      from = i + 1;
      if (ends)
        break;
    }
    ++i;
  };
  // The name stands behind the word, behind a function's results and
  // ".attribute(...)".
  for (++i; i < statement.size() && !isPtxName(statement[i]);) {
    if (statement[i] == "(")
      readList([&](PtxParameter p) { function.results.push_back(p.name); });
    else
      ++i;
  }
  if (i < statement.size())
    function.name = statement[i++];
  if (i < statement.size() && statement[i] == "(")
    readList([&](PtxParameter p) { function.parameters.push_back(p); });
  if (i < statement.size())
    function.directives.assign(statement.begin() + i, statement.end());
  if (hasRegisters)
    return refuse("`" + function.name +
                  "` takes or returns registers, as no compiler has it");

  StringRef name = function.name;
  if (llvm::is_contained(statement, ".extern")) {
    if (name == "malloc" || name == "free")
      return refuse("the code uses the device heap (malloc, free, new or "
                    "delete); use shared memory or a scratch buffer of the "
                    "plan");
    if (name.starts_with("cudaLaunch") ||
        name.starts_with("cudaGetParameterBuffer") ||
        name.starts_with("cudaCDP") || name.starts_with("__cudaCDP"))
      return refuse("the code launches kernels from the device; list every "
                    "launch in the plan instead");
    if (name.starts_with("cuda"))
      return refuse("the code calls `" + name +
                    "` of the CUDA runtime from the device");
    if (name != "vprintf" && name != "__assertfail")
      return refuse("the function `" + name + "` is declared but not defined");
    module.externs.push_back(name);
  }
  if (!hasBody) {
    ++at;
    return true;
  }
  if (!names.insert(name).second)
    return refuse("`" + name + "` is defined twice");
  if (!readBody(function))
    return false;
  module.functions.push_back(std::move(function));
  return true;
}

/// Bytes of ".align 4 .b8 name[16]", at most 2^60.
uint64_t bytesOfVariable(llvm::ArrayRef<StringRef> statement) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < statement.size(); ++i) {
    uint64_t factor = 1;
    if (statement[i] == "[") {
      if (i + 1 >= statement.size() || statement[i + 1].getAsInteger(0, factor))
        continue;
    } else if (statement[i] == ".v2" || statement[i] == ".v4") {
      factor = statement[i][2] - '0';
      bytes = std::max<uint64_t>(bytes, 1);
    } else if (unsigned each = bytesOfType(statement[i])) {
      factor = each;
      bytes = std::max<uint64_t>(bytes, 1);
    }
    constexpr uint64_t most = uint64_t(1) << 60;
    bytes = factor && bytes > most / factor ? most : bytes * factor;
  }
  return bytes;
}

bool Reader::readVariable(const PtxWords &statement,
                          llvm::ArrayRef<StringRef> initialiser) {
  bool isConst = llvm::is_contained(statement, ".const");
  for (StringRef token : statement) {
    if (!isPtxName(token))
      continue;
    if (token == "managed" || llvm::is_contained(statement, ".managed"))
      return refuse(
          "`" + token +
          "` is a managed variable, whose value would survive a launch");
    if (llvm::is_contained(statement, ".extern"))
      return refuse("the variable `" + token + "` is declared but not defined");
    module.variables[token] = {isConst, !initialiser.empty(),
                               bytesOfVariable(statement)};
  }
  for (StringRef token : initialiser)
    if (isPtxName(token))
      module.initialisers.push_back(token);
  return true;
}

/// A variable in shared or local memory, in a function or outside.
void Reader::readWindow(llvm::ArrayRef<StringRef> statement) {
  bool isShared = llvm::is_contained(statement, ".shared");
  if (!isShared && !llvm::is_contained(statement, ".local"))
    return;
  unsigned names = llvm::count_if(statement, isPtxName);
  for (StringRef token : statement) {
    if (!isPtxName(token))
      continue;
    if (!isShared) {
      module.local[token] = true;
      continue;
    }
    // Where several stand in one declaration, none has a known size.
    bool isKnown = names == 1 && !llvm::is_contained(statement, ".extern");
    uint64_t bytes = isKnown ? bytesOfVariable(statement) : 0;
    auto [at, isNew] = module.shared.try_emplace(token, bytes);
    if (!isNew)
      at->second = std::min(at->second, bytes);
  }
}

/// Whether a colon behind these words makes a label of them.
bool isLabel(const PtxWords &statement) {
  return statement.size() == 1 && isPtxName(statement.front());
}

/// From the "{" of a function to its "}".
bool Reader::readBody(PtxFunction &function) {
  PtxWords statement;
  int depth = 0;
  while (at < tokens.size()) {
    if (statement.empty() && skipLineDirective())
      continue;
    StringRef token = tokens[at++];
    // A colon ends a label and belongs to a condition; no other one is known.
    if (token == "?" || (token == ":" && !isLabel(statement)))
      return refuse("inline assembly has a condition in an operand (`? :`), "
                    "which no compiler writes; compute the value in C++");
    if (token.starts_with("\"") && token.contains('\\'))
      return refuse("a string in inline assembly holds a backslash");
    if (token == ":") {
      statement.clear();
    } else if (token == ";") {
      if (!statement.empty() && statement.front().starts_with("."))
        readWindow(statement);
      if (!statement.empty())
        function.body.push_back(std::move(statement));
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

} // namespace

bool isPtxName(StringRef word) {
  return !word.empty() && isWordByte(word[0]) && word[0] != '.' &&
         !llvm::isDigit(word[0]);
}

llvm::ArrayRef<StringRef> withoutGuard(llvm::ArrayRef<StringRef> words,
                                       StringRef *guard) {
  if (words.empty() || words.front() != "@")
    return words;
  words = words.drop_front();
  if (!words.empty() && words.front() == "!")
    words = words.drop_front();
  if (words.empty())
    return words;
  if (guard)
    *guard = words.front();
  return words.drop_front();
}

llvm::SmallVector<PtxOperand, 6> operandsOf(PtxOperand words) {
  llvm::SmallVector<PtxOperand, 6> operands;
  size_t from = 0;
  int depth = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    StringRef word = words[i];
    if (word == "[" || word == "{" || word == "(") {
      ++depth;
    } else if (word == "]" || word == "}" || word == ")") {
      --depth;
    } else if (word == "," && depth <= 0) {
      operands.push_back(words.slice(from, i - from));
      from = i + 1;
    }
  }
  if (from < words.size())
    operands.push_back(words.drop_front(from));
  return operands;
}

std::optional<int64_t> literal(PtxOperand operand) {
  bool negative = operand.size() == 2 && operand[0] == "-";
  if (operand.size() != 1 && !negative)
    return std::nullopt;
  StringRef text = operand.back();
  text.consume_back("U");
  uint64_t value = 0;
  if (text.getAsInteger(0, value))
    return std::nullopt;
  return int64_t(negative ? 0 - value : value);
}

std::optional<std::array<int64_t, 3>>
PtxFunction::numbersOf(StringRef what) const {
  auto it = llvm::find(directives, what);
  if (it == directives.end())
    return std::nullopt;
  std::array<int64_t, 3> numbers{1, 1, 1};
  for (size_t i = 0; i < 3; ++i) {
    if (++it == directives.end() || it->getAsInteger(0, numbers[i]))
      break;
    if (++it == directives.end() || *it != ",")
      break;
  }
  return numbers;
}

const PtxFunction *PtxModule::findEntry(StringRef name) const {
  for (const PtxFunction &function : functions)
    if (function.isEntry && function.name == name)
      return &function;
  return nullptr;
}

std::optional<PtxModule> readPtx(StringRef text, std::string &refusal) {
  return Reader(text, refusal).read();
}

} // namespace fsr
