// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Works on the bytes of valid UTF-8, where each character that is left out has
// one form only.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Printable.h"

#include "fsr/Support/Hash.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace fsr;

/// How many bytes at the front are one character that steers: U+0080 to U+009F,
/// which some terminals obey, line ends, and marks of direction.
static size_t steering(llvm::StringRef text) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() >= 2 && at(0) == 0xc2 && at(1) < 0xa0)
    return 2;
  if (text.size() < 3 || at(0) != 0xe2)
    return 0;
  bool isMark = at(1) == 0x80 && (at(2) == 0x8e || at(2) == 0x8f ||
                                  (at(2) >= 0xa8 && at(2) <= 0xae));
  bool isIsolate = at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9;
  return isMark || isIsolate ? 3 : 0;
}

std::string fsr::printable(llvm::StringRef text, bool keepLines) {
  std::string valid = llvm::json::fixUTF8(text), out;
  for (size_t i = 0; i < valid.size(); ++i) {
    unsigned char c = valid[i];
    if (keepLines && (c == '\n' || c == '\t'))
      out += c;
    else if (c < 0x20 || c == 0x7f)
      out += c == '\n' || c == '\t' ? ' ' : '?';
    else if (size_t bytes = steering(llvm::StringRef(valid).drop_front(i)))
      out += '?', i += bytes - 1;
    else
      out += c;
  }
  return out;
}

std::string fsr::identifierOf(llvm::StringRef name) {
  // File systems take 255 bytes, and something may be put behind it.
  constexpr size_t most = 200, kept = 64;
  auto isGood = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  // PTX refuses a lone underscore, and has one such word of its own.
  bool startsWell = !name.empty() && name != "_" && name != "WARP_SZ" &&
                    (llvm::isAlpha(name.front()) || name.front() == '_');
  if (startsWell && name.size() <= most && llvm::all_of(name, isGood))
    return name.str();
  std::string out = startsWell ? "" : "k_";
  for (char c : name.take_front(kept))
    out += isGood(c) ? c : '_';
  return out + "_" + shortHash(sha256(name)).str();
}
