// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Judged by code point, after the UTF-8 is known to be whole. LLVM's table of
// formatting characters (category Cf) follows Unicode; what is not assigned
// stays, since terminals draw it as a box.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Printable.h"

#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Unicode.h"

#include <cstdint>

using namespace fsr;

static bool isControl(uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029)
    return true;
  // Scripts and emoji need the two joiners, and a soft hyphen is harmless.
  if (c == 0x200c || c == 0x200d || c == 0xad)
    return false;
  return llvm::sys::unicode::isFormatting(int(c));
}

std::string fsr::withoutControls(llvm::StringRef text, char other,
                                 llvm::StringRef keep) {
  std::string valid = llvm::json::fixUTF8(text), out;
  for (size_t i = 0; i < valid.size();) {
    auto first = static_cast<unsigned char>(valid[i]);
    size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t c = length == 1 ? first : first & (0x7f >> length);
    for (size_t k = 1; k < length; ++k)
      c = c << 6 | (static_cast<unsigned char>(valid[i + k]) & 0x3f);
    llvm::StringRef whole = llvm::StringRef(valid).substr(i, length);
    if (isControl(c) && !keep.contains(whole))
      out += other;
    else
      out += whole;
    i += length;
  }
  return out;
}

std::string fsr::printable(llvm::StringRef text, bool keepLines) {
  if (keepLines)
    return withoutControls(text, '?', "\n\t");
  std::string line = text.str();
  for (char &c : line)
    if (c == '\n' || c == '\t')
      c = ' ';
  return withoutControls(line, '?');
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
