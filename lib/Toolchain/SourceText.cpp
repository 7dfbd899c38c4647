// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Looks at the text of a candidate before it is compiled, and once more where
// it did not compile, for a better reason than the compiler has. A text can
// hide from this reading (by pasting words together, for one); the sandbox and
// the reading of the PTX are what holds. So only what no honest text does is
// refused, and conditionals are not evaluated.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <vector>

using llvm::StringRef;

namespace fsr {
namespace {

bool isWordByte(char c) { return llvm::isAlnum(c) || c == '_'; }

struct Line {
  unsigned number;  ///< From 1; of its first part where lines are spliced.
  std::string text; ///< Comments are a space; literals, but names, are empty.
};

/// The lines of `source` as the compiler sees them, before macros.
class Splitter {
public:
  explicit Splitter(StringRef source) : rest(source) {}

  std::vector<Line> run() {
    begin();
    while (!rest.empty())
      step();
    return std::move(lines);
  }

private:
  void begin() { lines.push_back({number, ""}); }
  void newLine() {
    ++number;
    begin();
  }
  /// Drops `count` bytes, counting lines.
  void skip(size_t count) {
    number += unsigned(rest.take_front(count).count('\n'));
    rest = rest.drop_front(count);
  }
  void step();
  void literal(char quote);
  bool rawString();
  bool isDirective() const {
    StringRef text = StringRef(lines.back().text).ltrim();
    return text.starts_with("#") || text.starts_with("%:");
  }

  StringRef rest;
  unsigned number = 1;
  std::vector<Line> lines;
};

void Splitter::literal(char quote) {
  size_t end = 1;
  while (end < rest.size() && rest[end] != quote && rest[end] != '\n')
    end += rest[end] == '\\' ? 2 : 1;
  end = std::min(end + 1, rest.size());
  StringRef all = rest.take_front(end);
  // The name of an include is a literal as well.
  bool isName = quote == '"' && isDirective();
  lines.back().text += isName ? all.str() : std::string(2, quote);
  if (all.ends_with("\n")) { // Not closed.
    skip(end - 1);
    return;
  }
  skip(end);
}

/// R"tag( … )tag"; true where there is one.
bool Splitter::rawString() {
  StringRef text = lines.back().text;
  if (!text.ends_with("R") ||
      (text.size() > 1 && isWordByte(text[text.size() - 2]) &&
       !StringRef("uUL8").contains(text[text.size() - 2])))
    return false;
  size_t open = rest.find('(');
  if (open == StringRef::npos || open > 17)
    return false;
  std::string close = ")" + rest.slice(1, open).str() + "\"";
  size_t end = rest.find(close, open);
  skip(end == StringRef::npos ? rest.size() : end + close.size());
  lines.back().text += "\"\"";
  return true;
}

void Splitter::step() {
  if (rest.starts_with("\\\n") || rest.starts_with("\\\r\n"))
    return skip(rest.find('\n') + 1);
  if (rest.starts_with("//")) {
    // A comment goes on behind a splice.
    size_t end = rest.find('\n');
    while (end != StringRef::npos &&
           rest.take_front(end).rtrim('\r').ends_with("\\"))
      end = rest.find('\n', end + 1);
    return skip(std::min(end, rest.size()));
  }
  if (rest.starts_with("/*")) {
    size_t end = rest.find("*/", 2);
    lines.back().text += ' ';
    return skip(end == StringRef::npos ? rest.size() : end + 2);
  }
  char c = rest.front();
  if (c == '\n') {
    rest = rest.drop_front();
    return newLine();
  }
  if (c == '"' && rawString())
    return;
  // A quote between digits separates them.
  bool separates = c == '\'' && !lines.back().text.empty() &&
                   isWordByte(lines.back().text.back());
  if ((c == '"' || c == '\'') && !separates)
    return literal(c);
  lines.back().text += c;
  rest = rest.drop_front();
}

/// The words of a line with their ends.
template <class Callback>
void eachWord(StringRef text, Callback visit) {
  for (size_t i = 0; i < text.size();) {
    if (!isWordByte(text[i])) {
      ++i;
      continue;
    }
    size_t from = i;
    while (i < text.size() && isWordByte(text[i]))
      ++i;
    visit(text.slice(from, i), text.take_front(from), text.drop_front(i));
  }
}

std::string shown(StringRef text) {
  return "`" + llvm::json::fixUTF8(text.take_front(80)) +
         (text.size() > 80 ? "…`" : "`");
}

/// A path without its folders, which are nobody's business.
std::string shownPath(StringRef path) {
  return shown(path.drop_front(
      std::min(path.size(), path.find_last_of("/\\") + 1))); // npos + 1 is 0.
}

std::string onLine(const Line &line) {
  return "line " + std::to_string(line.number) + ": ";
}

/// The name in `<name>` or `"name"`; empty where there is none.
StringRef nameIn(StringRef text) {
  text = text.ltrim();
  if (text.empty() || (text[0] != '<' && text[0] != '"'))
    return "";
  return text.drop_front().take_until(
      [&](char c) { return c == (text[0] == '<' ? '>' : '"'); });
}

bool isPath(StringRef name) {
  if (name.starts_with("/") || name.starts_with("~") || name.contains('\\') ||
      name.contains(':'))
    return true;
  for (StringRef part : llvm::split(name, '/'))
    if (part == "..")
      return true;
  return false;
}

constexpr llvm::StringLiteral offered =
    "only headers of the CUDA toolkit are offered, by their names, as "
    "<cuda_fp16.h> or <cub/block/block_reduce.cuh>";

/// "include" and its operand; two empty texts where the line is no directive.
std::pair<StringRef, StringRef> directiveOf(const Line &line) {
  StringRef text = StringRef(line.text).ltrim();
  if (!text.consume_front("#") && !text.consume_front("%:"))
    return {};
  text = text.ltrim();
  StringRef word = text.take_while(isWordByte);
  return {word, text.drop_front(word.size()).trim()};
}

bool isInclude(StringRef directive) {
  return directive.starts_with("include") || directive == "import" ||
         directive == "embed";
}

std::optional<std::string> checkDirective(const Line &line) {
  auto [word, operand] = directiveOf(line);
  if (isInclude(word)) {
    StringRef name = nameIn(operand);
    if (name.empty())
      return onLine(line) + "the name of an include is computed; " +
             offered.str();
    if (isPath(name))
      return onLine(line) + "includes " + shownPath(name) + " by its path; " +
             offered.str();
  }
  for (size_t at = 0;
       (at = operand.find("__has_include", at)) != StringRef::npos; ++at) {
    StringRef name = nameIn(operand.drop_front(at).split('(').second);
    if (isPath(name))
      return onLine(line) + "asks for the file " + shownPath(name) + "; " +
             offered.str();
  }
  return std::nullopt;
}

/// What the CUDA runtime offers in device code.
bool isDeviceCall(StringRef name) {
  return name.starts_with("cudaGridDependency") ||
         name.starts_with("cudaTriggerProgrammatic");
}

} // namespace

std::optional<std::string> checkSource(StringRef source) {
  for (const Line &line : Splitter(source).run()) {
    if (std::optional<std::string> reason = checkDirective(line))
      return reason;
    std::optional<std::string> reason;
    eachWord(line.text, [&](StringRef word, StringRef, StringRef) {
      if (!reason &&
          (word == "__DATE__" || word == "__TIME__" || word == "__TIMESTAMP__"))
        reason = onLine(line) + "reads the time of the build (" + word.str() +
                 "): the same text must always give the same code";
    });
    if (reason)
      return reason;
  }
  return std::nullopt;
}

std::string withParameters(StringRef source, const Parameters &parameters) {
  std::vector<Line> lines = Splitter(source).run();
  std::map<std::string, size_t> firstUse; // By index into `lines`.
  std::vector<size_t> places = {0};
  unsigned depth = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    eachWord(lines[i].text, [&](StringRef word, StringRef, StringRef) {
      firstUse.try_emplace(word.str(), i);
    });
    StringRef word = directiveOf(lines[i]).first;
    if (word.starts_with("if"))
      ++depth;
    else if (word == "endif" && depth)
      --depth;
    else if (isInclude(word) && !depth && i + 1 < lines.size())
      places.push_back(i + 1);
  }
  std::map<unsigned, std::string> defines = {{1, ""}}; // By line.
  for (const auto &[name, value] : parameters) {
    auto used = firstUse.find(name);
    size_t at = 0;
    for (size_t place : places)
      if (used == firstUse.end() || place <= used->second)
        at = place;
    defines[lines[at].number] +=
        "#define " + name + " " + std::to_string(value) + "\n";
  }
  std::string text;
  unsigned number = 1;
  for (const auto &[line, define] : defines) {
    for (; number < line; ++number) {
      auto [one, rest] = source.split('\n');
      text += one.str() + "\n";
      source = rest;
    }
    text += define + "#line " + std::to_string(line) + " \"kernel.cu\"\n";
  }
  return text + source.str();
}

std::optional<std::string> findHostCode(StringRef source) {
  for (const Line &line : Splitter(source).run()) {
    std::string found;
    if (line.text.find("<<<") != std::string::npos)
      found = "<<<…>>>";
    eachWord(line.text, [&](StringRef word, StringRef before, StringRef after) {
      bool isCall = after.ltrim().starts_with("(");
      bool isStd = before.rtrim().ends_with("std::");
      bool isRuntime = isCall && word.size() > 4 && word.starts_with("cuda") &&
                       llvm::isUpper(word[4]) && !isDeviceCall(word);
      bool isHostType =
          isStd &&
          llvm::StringSwitch<bool>(word)
              .Cases({"vector", "string", "cout", "cerr", "endl", "thread",
                      "unique_ptr", "shared_ptr", "map", "unordered_map",
                      "ifstream", "ofstream", "function", "chrono"},
                     true)
              .Default(false);
      if (found.empty() && (isRuntime || isHostType || word == "__host__" ||
                            (word == "main" && isCall)))
        found = (isHostType ? "std::" + word : word).str();
    });
    if (!found.empty())
      return onLine(line) + "holds host code (`" + found +
             "`); the answer's source is device code only: memory, launches "
             "and waiting are the launch plan's";
  }
  return std::nullopt;
}

} // namespace fsr
