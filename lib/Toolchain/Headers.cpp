// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Scans sources for #include and keeps the toolkit's headers, rewritten, in
// memory. Names come from LLM text: absolute names and names that climb out of
// the include folder are never looked up.
//
//===----------------------------------------------------------------------===//

#include "Headers.h"

#include "fsr/Support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using llvm::StringRef;
namespace sys = llvm::sys;

namespace fsr {
namespace {

/// One `#include <x>` or `#include "x"`, or a `#define M <x>` from which
/// Thrust computes the name of an include.
struct Directive {
  StringRef name;
  StringRef delimited; ///< With its brackets or quotes, in the line.
  bool computed = false;
};

std::optional<Directive> parseDirective(StringRef line) {
  StringRef rest = line.ltrim(" \t");
  if (!rest.consume_front("#"))
    return std::nullopt;
  rest = rest.ltrim(" \t");
  Directive directive;
  if (rest.consume_front("define")) {
    size_t open = rest.find("<__THRUST_");
    if (open == StringRef::npos)
      return std::nullopt;
    rest = rest.drop_front(open);
    directive.computed = true;
  } else if (rest.consume_front("include")) {
    rest = rest.ltrim(" \t");
  } else {
    return std::nullopt;
  }
  if (rest.empty() || (rest[0] != '<' && rest[0] != '"'))
    return std::nullopt;
  size_t close = rest.find(rest[0] == '<' ? '>' : '"', 1);
  if (close == StringRef::npos)
    return std::nullopt;
  directive.delimited = rest.take_front(close + 1);
  directive.name = directive.delimited.drop_front().drop_back();
  return directive;
}

/// The root macros of Thrust have these values where no host compiler is.
std::string computedName(StringRef name) {
  if (name.consume_front("__THRUST_HOST_SYSTEM_ROOT/"))
    return ("thrust/system/cpp/" + name).str();
  if (name.consume_front("__THRUST_DEVICE_SYSTEM_ROOT/"))
    return ("thrust/system/cuda/" + name).str();
  return "";
}

/// `folder`/`name` with dots resolved; empty where it leaves the root.
std::string normalise(StringRef folder, StringRef name) {
  if (name.empty() || name.size() > 255 || name.contains('\0') ||
      name.contains('\\') || name.starts_with("/"))
    return "";
  llvm::SmallString<256> path(folder);
  sys::path::append(path, name);
  sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  StringRef clean(path);
  if (clean.empty() || clean.starts_with("/") || clean == ".." ||
      clean.starts_with("../"))
    return "";
  return clean.str();
}

/// libcu++ reads the time to make its waits back off. A candidate may not read
/// the time, so these waits are handed over without: they spin.
void removeClock(std::string &text) {
  const StringRef read = "%%globaltimer;", zero = "0;";
  for (size_t at = 0; (at = text.find(read.str(), at)) != std::string::npos;)
    text.replace(at, read.size(), zero.str());
}

} // namespace

HeaderLibrary::HeaderLibrary(StringRef includeFolder) {
  roots.push_back(includeFolder.str());
  roots.push_back((includeFolder + "/cccl").str());
}

std::string HeaderLibrary::rewrite(StringRef text, StringRef folder,
                                   std::vector<std::string> &includes) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    size_t end = text.find('\n');
    StringRef line = text.take_front(end == StringRef::npos ? end : end + 1);
    text = text.drop_front(line.size());
    std::optional<Directive> directive = parseDirective(line);
    std::string canonical;
    if (directive)
      canonical = directive->computed ? computedName(directive->name)
                                      : resolve(directive->name, folder);
    if (canonical.empty()) {
      result += line;
      continue;
    }
    includes.push_back(canonical);
    if (directive->computed) {
      result += line;
      continue;
    }
    size_t before = directive->delimited.data() - line.data();
    result += line.take_front(before);
    result += "<" + canonical + ">";
    result += line.drop_front(before + directive->delimited.size());
  }
  return result;
}

const HeaderLibrary::Header *HeaderLibrary::get(StringRef canonical) {
  auto [slot, isNew] = headers.try_emplace(canonical);
  if (!isNew)
    return slot->second.get();
  auto header = std::make_unique<Header>();
  if (const StringRef *own = hostHeader(canonical)) {
    header->text = rewrite(*own, "", header->includes);
  } else {
    for (const std::string &root : roots) {
      std::string path = root + "/" + canonical.str();
      if (!sys::fs::is_regular_file(path))
        continue;
      llvm::Expected<std::string> text = readFile(path, uint64_t(16) << 20);
      if (!text) {
        llvm::consumeError(text.takeError());
        return nullptr;
      }
      header->text =
          rewrite(*text, sys::path::parent_path(canonical), header->includes);
      removeClock(header->text);
      break;
    }
    if (header->text.empty())
      return nullptr;
  }
  // Rewriting looked other headers up and may have moved the slot.
  std::unique_ptr<Header> &place = headers[canonical];
  place = std::move(header);
  return place.get();
}

std::string HeaderLibrary::resolve(StringRef spelled, StringRef folder) {
  for (StringRef from : {folder, StringRef()}) {
    std::string name = normalise(from, spelled);
    if (name.empty())
      continue;
    if (hostHeader(name))
      return name;
    for (const std::string &root : roots)
      if (sys::fs::is_regular_file(root + "/" + name))
        return name;
  }
  return "";
}

std::vector<MemoryHeader> HeaderLibrary::collect(StringRef source) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<MemoryHeader> result;
  llvm::StringSet<> seen;
  std::vector<std::string> todo;
  size_t total = 0;
  auto add = [&](StringRef name, StringRef canonical) {
    const Header *header = get(canonical);
    if (!header || total + header->text.size() > maxBytes ||
        !seen.insert(name).second)
      return;
    total += header->text.size();
    result.push_back({name.str(), header->text});
    todo.insert(todo.end(), header->includes.begin(), header->includes.end());
  };
  StringRef rest = source;
  while (!rest.empty()) {
    auto [line, next] = rest.split('\n');
    rest = next;
    std::optional<Directive> directive = parseDirective(line);
    if (!directive || directive->computed)
      continue;
    // Under the spelling of the source, which is not rewritten.
    if (std::string canonical = resolve(directive->name, "");
        !canonical.empty())
      add(directive->name, canonical);
  }
  while (!todo.empty()) {
    std::string name = std::move(todo.back());
    todo.pop_back();
    if (!seen.contains(name))
      add(name, name);
  }
  return result;
}

} // namespace fsr
