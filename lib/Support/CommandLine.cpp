// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Words of a command line. No shell reads it: `$`, `*`, `;` and `|` are plain
// characters, so an option cannot run more than it names.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/CommandLine.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

using namespace fsr;

llvm::Expected<std::vector<std::string>>
fsr::splitCommandLine(llvm::StringRef text) {
  std::vector<std::string> words;
  std::string word;
  bool inWord = false;
  char quote = 0;
  size_t quoteAt = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quote == '\'') {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\\') {
      if (i + 1 == text.size())
        return makeError(ErrorKind::BadInput,
                         "command ends with a backslash: " + text);
      char next = text[++i];
      // Inside "…" a backslash is itself unless it protects something.
      if (quote && next != '"' && next != '\\' && next != '$' && next != '`')
        word += c;
      word += next;
      inWord = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      quoteAt = i;
      inWord = true;
    } else if (llvm::isSpace(c)) {
      if (inWord)
        words.push_back(std::move(word));
      word.clear();
      inWord = false;
    } else {
      word += c;
      inWord = true;
    }
  }
  if (quote)
    return makeError(ErrorKind::BadInput,
                     "command has an open " + llvm::Twine(quote) +
                         " at column " + llvm::Twine(quoteAt + 1) + ": " +
                         text);
  if (inWord)
    words.push_back(std::move(word));
  if (words.empty() || words.front().empty())
    return makeError(ErrorKind::BadInput, "command names no program");
  return words;
}
