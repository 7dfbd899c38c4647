// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a kernel takes, read from its PTX: `.param .u64 name`, with `.ptr` and
// `.align` in between, or `.param .align 8 .b8 name[24]` for a struct.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace fsr {

/// Bytes of ".u64", ".f32", ".b8"; 0 for anything else.
static unsigned bytesOfType(StringRef type) {
  unsigned bits = 0;
  if (!type.consume_front(".") || type.empty() ||
      !StringRef("usbf").contains(type.front()) ||
      type.drop_front().getAsInteger(10, bits) || bits % 8 != 0)
    return 0;
  return bits / 8;
}

static std::optional<unsigned> bytesOfParameter(StringRef text) {
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(text, words, " \t\r\n");
  if (words.empty() || words.front() != ".param")
    return std::nullopt;
  unsigned bytes = 0;
  for (StringRef word : words)
    if (unsigned found = bytesOfType(word))
      bytes = found;
  StringRef name = words.back();
  if (name.consume_back("]")) {
    unsigned count = 0;
    if (name.rsplit('[').second.getAsInteger(10, count) || count > 65536)
      return std::nullopt;
    bytes *= count;
  }
  if (!bytes)
    return std::nullopt;
  return bytes;
}

std::optional<std::vector<unsigned>> parameterBytes(StringRef ptx,
                                                    StringRef entry) {
  for (size_t at = ptx.find(".entry"); at != StringRef::npos;
       at = ptx.find(".entry", at + 1)) {
    StringRef rest = ptx.drop_front(at + StringRef(".entry").size()).ltrim();
    if (!rest.consume_front(entry))
      continue;
    rest = rest.ltrim();
    std::vector<unsigned> sizes;
    if (!rest.consume_front("(")) {
      if (rest.starts_with("{") || rest.starts_with("."))
        return sizes; // No list: no parameters.
      continue;       // A longer name.
    }
    StringRef list = rest.take_until([](char c) { return c == ')'; }).trim();
    if (list.empty())
      return sizes;
    llvm::SmallVector<StringRef> parameters;
    list.split(parameters, ',');
    for (StringRef parameter : parameters) {
      std::optional<unsigned> bytes = bytesOfParameter(parameter);
      if (!bytes)
        return std::nullopt;
      sizes.push_back(*bytes);
    }
    return sizes;
  }
  return std::nullopt;
}

} // namespace fsr
