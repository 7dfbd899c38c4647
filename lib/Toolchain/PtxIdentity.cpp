// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX reduced to what runs. LLMs often send a kernel again with other names and
// comments, and a parameter may not change the code at all; what is left here
// is then the same, word by word. Words are compared, not meanings: another
// order of two instructions is other code.
//
// A text may hold assembly that was written to look like another one, and a
// verdict is handed on by what is left here. So nothing is left out but what
// surely does not run; where a name could be taken for an instruction, or a
// string for a comment, the text stays as it is.
//
//===----------------------------------------------------------------------===//

#include "fsr/Toolchain/Toolchain.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;

namespace fsr {
namespace {

bool isWordChar(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '%' || c == '.';
}

StringRef wordAt(StringRef rest) {
  if (rest[0] == '"')
    return rest.take_front(std::min(rest.find('"', 1), rest.size() - 1) + 1);
  return isWordChar(rest[0]) ? rest.take_while(isWordChar) : rest.take_front(1);
}

/// A directive that says which line of a source is meant, and nothing behind it
/// on its line.
bool isLineInfo(StringRef line) {
  bool afterFunction = false;
  while (!(line = line.ltrim(" \t\r")).empty()) {
    StringRef word = wordAt(line);
    bool isInfo = word == ".loc" || word == ".file" || word == "," ||
                  word == "+" || word[0] == '"' || word == "inlined_at" ||
                  word == "function_name" || llvm::all_of(word, llvm::isDigit);
    if (!isInfo && !std::exchange(afterFunction, false))
      return false;
    afterFunction |= word == "function_name";
    line = line.drop_front(word.size());
  }
  return true;
}

/// Words, strings and single characters, without comments and debug lines.
std::vector<StringRef> splitPtx(StringRef text) {
  std::vector<StringRef> words;
  size_t at = 0;
  auto lineEnd = [&] { return std::min(text.find('\n', at), text.size()); };
  while (at < text.size()) {
    StringRef rest = text.substr(at);
    if (llvm::isSpace(rest[0])) {
      ++at;
      continue;
    }
    if (rest.starts_with("//")) {
      at = lineEnd();
      continue;
    }
    if (rest.starts_with("/*")) {
      size_t end = text.find("*/", at + 2);
      at = end == StringRef::npos ? text.size() : end + 2;
      continue;
    }
    StringRef word = wordAt(rest);
    if ((word == ".loc" || word == ".file") &&
        isLineInfo(text.slice(at, lineEnd()))) {
      at = lineEnd();
      continue;
    }
    if (word == ".section") {
      size_t end = text.find('}', at);
      at = end == StringRef::npos ? text.size() : end + 1;
      continue;
    }
    words.push_back(word);
    at += word.size();
  }
  return words;
}

bool isName(StringRef word) {
  char first = word[0];
  return (llvm::isAlpha(first) || first == '_' || first == '$') &&
         !word.contains('.');
}

bool declares(StringRef word) {
  return llvm::StringSwitch<bool>(word)
      .Cases({".param", ".global", ".const", ".shared", ".local"}, true)
      .Default(false);
}

} // namespace

PlainPtx plainPtx(StringRef ptx) {
  PlainPtx plain;
  std::vector<StringRef> words = splitPtx(ptx);
  auto name = [&](StringRef word) {
    plain.names.try_emplace(word.str(),
                            "#" + std::to_string(plain.names.size()));
  };
  for (size_t i = 0; i < words.size(); ++i) {
    size_t at = i + 1;
    if (words[i] == ".entry" || words[i] == ".func") {
      // Whoever defines it knows it by this name.
      if (i > 0 && words[i - 1] == ".extern")
        continue;
      // A function's results stand before its name.
      if (at < words.size() && words[at] == "(")
        while (at < words.size() && words[at] != ")")
          ++at;
      at += at < words.size() && words[at] == ")";
    } else if (declares(words[i])) {
      // ".param .align 8 .b8 name"
      while (at < words.size() &&
             (words[at][0] == '.' || llvm::isDigit(words[at][0])))
        ++at;
    } else {
      continue;
    }
    if (at < words.size() && isName(words[at]))
      name(words[at]);
  }
  // No name where an instruction or a label stands, nor that of a constant.
  bool isClear = !ptx.contains('\\') && !plain.names.count("WARP_SZ");
  for (size_t i = 0; i < words.size() && isClear; ++i) {
    StringRef before = i ? words[i - 1] : ";";
    bool guarded = i > 1 && (words[i - 2] == "@" || words[i - 2] == "!");
    if (guarded || before == ";" || before == "{" || before == "}" ||
        before == ":")
      isClear = !plain.names.count(words[i].str());
  }
  if (!isClear)
    return {ptx.str(), {}};
  plain.text.reserve(ptx.size() / 2);
  for (StringRef word : words) {
    auto found =
        isName(word) ? plain.names.find(word.str()) : plain.names.end();
    plain.text += found == plain.names.end() ? word : StringRef(found->second);
    plain.text += ' ';
  }
  return plain;
}

} // namespace fsr
