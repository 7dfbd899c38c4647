// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Prompt templates: embedded in the program, file by file replaceable by those
// of a folder. What they hold is the user's; that they render the same bytes
// for the same data is ours.
//
//===----------------------------------------------------------------------===//

#include "Templates.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Mustache.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"

namespace fsr::search {

// Made by the build from the files of lib/Search/prompts.
static constexpr llvm::StringLiteral embeddedRequest =
#include "request.md.mustache.inc"
    ;
static constexpr llvm::StringLiteral embeddedStrategies =
#include "strategies.txt.inc"
    ;
static constexpr llvm::StringLiteral embeddedFeedback =
#include "feedback.md.mustache.inc"
    ;
static constexpr llvm::StringLiteral embeddedLaterStrategies =
#include "strategies-later.txt.inc"
    ;

static constexpr uint64_t maxTemplateBytes = uint64_t(1) << 20;

llvm::Expected<Templates> readTemplates(llvm::StringRef folder) {
  Templates templates;
  const struct {
    llvm::StringLiteral name, embedded;
    std::string &text;
  } files[] = {{"request.md.mustache", embeddedRequest, templates.request},
               {"strategies.txt", embeddedStrategies, templates.strategies},
               {"feedback.md.mustache", embeddedFeedback, templates.feedback},
               {"strategies-later.txt", embeddedLaterStrategies,
                templates.laterStrategies}};
  bool replaced = folder.empty();
  std::string names;
  for (const auto &file : files) {
    names += (names.empty() ? "" : ", ") + file.name.str();
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, file.name);
    if (folder.empty() || !llvm::sys::fs::exists(path)) {
      file.text = file.embedded.str();
      continue;
    }
    replaced = true;
    llvm::Expected<std::string> text = readFile(path, maxTemplateBytes);
    if (!text)
      return text.takeError();
    if (!llvm::json::isUTF8(*text))
      return makeError(ErrorKind::BadInput, path + ": not valid UTF-8");
    file.text = std::move(*text);
  }
  // A mistyped folder must not pass for one that replaces nothing.
  if (!replaced)
    return makeError(ErrorKind::BadInput,
                     "prompts folder " + folder + ": holds none of " + names);
  return templates;
}

llvm::Expected<std::string> strategyOf(llvm::StringRef strategies,
                                       llvm::StringRef file, unsigned slot) {
  llvm::SmallVector<llvm::StringRef> lines, known;
  strategies.split(lines, '\n');
  for (llvm::StringRef line : lines)
    if (line = line.trim(); !line.empty() && !line.starts_with("#"))
      known.push_back(line);
  if (known.empty())
    return makeError(ErrorKind::BadInput,
                     file + ": expected at least one strategy");
  return known[(std::max(slot, 1u) - 1) % known.size()].str();
}

std::string renderTemplate(llvm::StringRef text, llvm::json::Object data) {
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  llvm::mustache::MustacheContext context(allocator, saver);
  llvm::mustache::Template parsed(text, context);
  std::string rendered;
  llvm::raw_string_ostream os(rendered);
  parsed.render(llvm::json::Value(std::move(data)), os);
  return rendered;
}

std::string clean(llvm::StringRef text) {
  return llvm::json::fixUTF8(text.rtrim());
}

std::string formatted(const char *format, double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(format, value);
  return text;
}

} // namespace fsr::search
