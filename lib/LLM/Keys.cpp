// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See the header. A cut comes after the replacing: half a key is a leak too.
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

#include <cstdlib>

namespace fsr {

/// Local servers take any word for a key, and people give them "x" or "none";
/// an answer must not be torn apart for that.
static constexpr size_t shortestSecret = 8;

static constexpr const char *keyNames[] = {"OPENAI_API_KEY",
                                           "ANTHROPIC_API_KEY"};

llvm::Expected<std::string> keyFromEnvironment(const char *name) {
  const char *value = std::getenv(name);
  std::string key = llvm::StringRef(value ? value : "").trim().str();
  for (char c : key)
    if (c <= ' ' || c > '~')
      return makeError(ErrorKind::BadInput,
                       llvm::Twine(name) + ": expected printable characters "
                                           "without spaces");
  return key;
}

std::string withoutKeys(std::string text) {
  for (const char *name : keyNames) {
    const char *value = std::getenv(name);
    llvm::StringRef key = llvm::StringRef(value ? value : "").trim();
    if (key.size() < shortestSecret)
      continue;
    for (size_t at = text.find(key.str()); at != std::string::npos;
         at = text.find(key.str(), at))
      text.replace(at, key.size(), "***");
  }
  return text;
}

static std::string onOneLine(llvm::StringRef text) {
  std::string line = withoutKeys(text.trim().str());
  for (char &c : line)
    if (!llvm::isPrint(c))
      c = ' ';
  return line;
}

std::string quotedStart(llvm::StringRef text, size_t limit) {
  std::string line = onOneLine(text);
  if (line.size() > limit)
    line = line.substr(0, limit) + "…";
  return "'" + line + "'";
}

std::string quotedEnd(llvm::StringRef text, size_t limit) {
  std::string line = onOneLine(text);
  if (line.size() > limit)
    line = "…" + line.substr(line.size() - limit);
  return "'" + line + "'";
}

} // namespace fsr
