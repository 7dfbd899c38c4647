// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Works line by line on hostile text; the only promise about content is that no
// folder of an absolute path is left.
//
//===----------------------------------------------------------------------===//

#include "Log.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <vector>

using llvm::StringRef;

namespace fsr {
namespace {

constexpr size_t maxLineBytes = 400;

bool isPathByte(char c) {
  return llvm::isAlnum(c) || StringRef("._+-@~%").contains(c);
}

/// Drops "/a/b/" before "c" where it does not go on a word, as a division does.
std::string withoutFolders(StringRef line) {
  std::string result;
  for (size_t i = 0; i < line.size();) {
    bool starts = line[i] == '/' &&
                  (i == 0 || (!isPathByte(line[i - 1]) && line[i - 1] != '/'));
    size_t name = i;
    if (starts)
      for (size_t at = i; at < line.size() && line[at] == '/';) {
        name = at + 1;
        at = name;
        while (at < line.size() && isPathByte(line[at]))
          ++at;
        if (at == name)
          break;
      }
    // "// comment" and "a / b" are no paths.
    if (starts && name < line.size() && name > i && isPathByte(line[name])) {
      i = name;
      continue;
    }
    result += line[i++];
  }
  return result;
}

/// The lines of one diagnostic: a head and what is indented below it.
struct Block {
  std::string text;
  bool isWarning = false;
};

bool isNoise(StringRef line) {
  return line.starts_with("ptxas info") || line.starts_with("ptxas  ") ||
         line.starts_with("Remark: The warnings can be suppressed") ||
         line.trim().empty();
}

} // namespace

std::string scrubLog(StringRef log, size_t maxBytes) {
  std::vector<Block> blocks;
  size_t total = 0;
  while (!log.empty()) {
    auto [line, rest] = log.split('\n');
    log = rest;
    if (isNoise(line))
      continue;
    std::string clean = withoutFolders(line.take_front(maxLineBytes).rtrim());
    if (line.size() > maxLineBytes)
      clean += "...";
    clean += '\n';
    if (blocks.empty() || !StringRef(clean).starts_with("  ")) {
      blocks.emplace_back();
      blocks.back().isWarning = StringRef(clean).contains(": warning");
    }
    total += clean.size();
    blocks.back().text += clean;
  }
  if (total > maxBytes)
    llvm::erase_if(blocks, [&](const Block &block) {
      if (block.isWarning)
        total -= block.text.size();
      return block.isWarning;
    });
  std::string result;
  for (const Block &block : blocks)
    result += block.text;
  constexpr size_t noteBytes = 48;
  if (result.size() > maxBytes && maxBytes > noteBytes) {
    size_t dropped = result.size() - (maxBytes - noteBytes);
    result.resize(maxBytes - noteBytes);
    result += "\n(" + std::to_string(dropped) + " more bytes)\n";
  }
  return result;
}

} // namespace fsr
