// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Nesting is measured by one pass that knows strings and brackets only. It need
// not be exact on text that is no JSON: LLVM's parser refuses that, and cannot
// go deeper into it than the brackets outside of strings do.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Json.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace fsr;

static bool nestsTooDeep(llvm::StringRef text) {
  unsigned depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
      continue;
    }
    if (c == '"')
      inString = true;
    else if (c == '[' || c == '{') {
      if (++depth > maxJsonDepth)
        return true;
    } else if ((c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return false;
}

llvm::Expected<llvm::json::Value> fsr::parseJson(llvm::StringRef text) {
  if (nestsTooDeep(text))
    return makeError(ErrorKind::Corrupt,
                     llvm::Twine("JSON is nested deeper than ") +
                         llvm::Twine(maxJsonDepth) + " levels");
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return makeError(ErrorKind::Corrupt,
                     "not JSON: " + llvm::toString(value.takeError()));
  return value;
}

std::string fsr::printJson(const llvm::json::Value &value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", value) << '\n';
  return text;
}

static constexpr llvm::StringLiteral sealKey = "sha256";

std::string fsr::printSealed(llvm::json::Object object) {
  object.erase(sealKey);
  llvm::json::Value value(std::move(object));
  // Parsed back first: what a reader hashes is what it parsed.
  std::string text = printJson(value);
  if (llvm::Expected<llvm::json::Value> back = llvm::json::parse(text))
    text = printJson(*back);
  else
    llvm::consumeError(back.takeError());
  (*value.getAsObject())[sealKey] = sha256(text);
  return printJson(value);
}

llvm::Error fsr::unseal(llvm::json::Object &object) {
  std::optional<llvm::StringRef> stated = object.getString(sealKey);
  if (!stated)
    return makeError(ErrorKind::Corrupt, "it has no field 'sha256'");
  std::string seal = stated->str();
  object.erase(sealKey);
  std::string found = sha256(printJson(llvm::json::Object(object)));
  if (found == seal)
    return llvm::Error::success();
  return makeError(ErrorKind::Corrupt,
                   "it was changed: its SHA-256 is " + found +
                       ", which is not the one in 'sha256'");
}
