// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An LLM's answer, read. Markdown in, a `Candidate` out, and for every way in
// which it can be wrong one sentence that an LLM can act upon. The text is
// hostile: sizes, counts and nesting are capped. Whether the plan fits its task
// is not decided here but in `resolvePlan`.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Search.h"

#include "fsr/Core/SizeExpr.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace fsr {
namespace {

constexpr size_t maxAnswerBytes = size_t(1) << 20;
constexpr size_t maxSourceBytes = size_t(256) << 10;
constexpr size_t maxPlanBytes = size_t(64) << 10;
constexpr size_t maxTextBytes = size_t(8) << 10;
constexpr size_t maxNameBytes = 64;
constexpr size_t maxLaunches = 16;
constexpr size_t maxArgs = 128;
constexpr size_t maxScratch = 16;
constexpr size_t maxGuards = 64;
constexpr size_t maxParameters = 8;
constexpr size_t maxParameterValues = 16;

llvm::Error bad(const llvm::Twine &message) {
  return makeError(ErrorKind::BadInput, message);
}

//===----------------------------------------------------------------------===//
// Fenced blocks
//===----------------------------------------------------------------------===//

struct Fence {
  char mark = 0;
  size_t length = 0;
  std::string language; ///< Lower case; empty where there is none.
};

/// A line that opens a fenced block, as CommonMark has it.
std::optional<Fence> openingFence(llvm::StringRef line) {
  llvm::StringRef text = line.ltrim(' ');
  if (line.size() - text.size() > 3 || text.empty())
    return std::nullopt;
  Fence fence;
  fence.mark = text.front();
  if (fence.mark != '`' && fence.mark != '~')
    return std::nullopt;
  fence.length = std::min(text.find_first_not_of(fence.mark), text.size());
  llvm::StringRef info = text.drop_front(fence.length);
  // Three back ticks, some words and three more are code within a paragraph.
  if (fence.length < 3 || (fence.mark == '`' && info.contains('`')))
    return std::nullopt;
  fence.language = info.trim()
                       .take_until([](char c) { return c == ' ' || c == '{'; })
                       .lower();
  return fence;
}

bool closes(llvm::StringRef line, const Fence &fence) {
  llvm::StringRef text = line.trim();
  return text.size() >= fence.length &&
         llvm::all_of(text, [&](char c) { return c == fence.mark; });
}

struct Blocks {
  std::vector<std::string> sources, plans;
  size_t others = 0;
};

llvm::Expected<Blocks> findBlocks(llvm::StringRef answer) {
  Blocks blocks;
  std::optional<Fence> open;
  size_t openedAt = 0, lineNumber = 0;
  std::string body;
  while (!answer.empty()) {
    llvm::StringRef line;
    std::tie(line, answer) = answer.split('\n');
    line.consume_back("\r");
    ++lineNumber;
    if (!open) {
      open = openingFence(line);
      openedAt = lineNumber;
      body.clear();
      continue;
    }
    if (!closes(line, *open)) {
      body += line;
      body += '\n';
      continue;
    }
    llvm::StringRef language = open->language;
    if (llvm::is_contained({"cuda", "cu", "cpp", "c++"}, language))
      blocks.sources.push_back(body);
    else if (language == "json")
      blocks.plans.push_back(body);
    else
      ++blocks.others;
    open.reset();
  }
  if (open)
    return bad("the fenced block that line " + llvm::Twine(openedAt) +
               " opens is not closed");
  return blocks;
}

llvm::Error expectOne(size_t count, llvm::StringRef language, size_t others) {
  if (count == 1)
    return llvm::Error::success();
  std::string message = "the answer has " +
                        (count ? std::to_string(count) : std::string("no")) +
                        " fenced `" + language.str() + "` block" +
                        (count > 1 ? "s" : "") + "; expected exactly one";
  if (count == 0 && others > 0)
    message +=
        " (fenced blocks in another or no language: " + std::to_string(others) +
        ")";
  return bad(message);
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

llvm::StringRef nameOfKind(const llvm::json::Value &value) {
  switch (value.kind()) {
  case llvm::json::Value::Null:
    return "null";
  case llvm::json::Value::Boolean:
    return "a boolean";
  case llvm::json::Value::Number:
    return "a number";
  case llvm::json::Value::String:
    return "a string";
  case llvm::json::Value::Array:
    return "a list";
  case llvm::json::Value::Object:
    return "an object";
  }
  llvm_unreachable("no such kind of JSON value");
}

llvm::Error wrongKind(const llvm::Twine &where, llvm::StringRef wanted,
                      const llvm::json::Value &got) {
  return bad(where + ": expected " + wanted + ", got " + nameOfKind(got));
}

bool isIdentifier(llvm::StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) &&
         llvm::all_of(text,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// What a message may quote of a hostile text.
std::string quoted(llvm::StringRef text) {
  std::string shown;
  for (char c : text.take_front(maxNameBytes))
    shown += llvm::isPrint(c) ? c : '?';
  return "'" + shown + (text.size() > maxNameBytes ? "…'" : "'");
}

llvm::Error checkKeys(const llvm::json::Object &object,
                      const llvm::Twine &where,
                      llvm::ArrayRef<llvm::StringLiteral> known) {
  for (const auto &[key, value] : object)
    if (!llvm::is_contained(known, llvm::StringRef(key)))
      return bad(where + ": unknown key " + quoted(llvm::StringRef(key)) +
                 "; known are " + llvm::join(known, ", "));
  return llvm::Error::success();
}

llvm::Expected<std::string> readIdentifier(const llvm::json::Value *value,
                                           const llvm::Twine &where) {
  if (!value)
    return bad(where + " is missing");
  auto text = value->getAsString();
  if (!text)
    return wrongKind(where, "a name", *value);
  if (!isIdentifier(*text) || text->size() > maxNameBytes)
    return bad(where + ": " + quoted(*text) +
               " is not a C identifier of at most " +
               llvm::Twine(maxNameBytes) + " characters");
  return text->str();
}

llvm::Expected<std::string> readText(const llvm::json::Object &object,
                                     llvm::StringRef key) {
  const llvm::json::Value *value = object.get(key);
  if (!value)
    return std::string();
  auto text = value->getAsString();
  if (!text)
    return wrongKind(key, "a string", *value);
  if (text->size() > maxTextBytes)
    return bad(key + ": longer than " + llvm::Twine(maxTextBytes) + " bytes");
  return text->str();
}

/// An integer, or the text of an expression; the text is what is kept.
llvm::Expected<std::string> readSize(const llvm::json::Value &value,
                                     const llvm::Twine &where) {
  if (auto number = value.getAsInteger())
    return std::to_string(*number);
  auto text = value.getAsString();
  if (!text)
    return wrongKind(where, "an integer or an expression in a string", value);
  auto parsed = SizeExpr::parse(*text, SizeExpr::Grammar::Size);
  if (!parsed)
    return addContext(parsed.takeError(), where + " " + quoted(*text));
  return text->str();
}

llvm::Error readShape(const llvm::json::Object &launch, llvm::StringRef key,
                      const std::string &where, bool required,
                      std::array<std::string, 3> &shape) {
  const llvm::json::Value *value = launch.get(key);
  std::string at = where + "." + key.str();
  if (!value)
    return required ? bad(at + " is missing") : llvm::Error::success();
  const llvm::json::Array *list = value->getAsArray();
  if (!list) {
    auto size = readSize(*value, at);
    if (!size)
      return size.takeError();
    shape[0] = std::move(*size);
    return llvm::Error::success();
  }
  if (list->empty() || list->size() > 3)
    return bad(at + ": expected one to three entries (x, y, z), got " +
               llvm::Twine(list->size()));
  for (const auto &[i, entry] : llvm::enumerate(*list)) {
    auto size = readSize(entry, at + "[" + llvm::Twine(i) + "]");
    if (!size)
      return size.takeError();
    shape[i] = std::move(*size);
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<std::string>>
readArgs(const llvm::json::Value &value, const llvm::Twine &where) {
  if (auto text = value.getAsString()) {
    if (*text == "same")
      return std::vector<std::string>{"same"};
    return bad(where + ": expected \"same\" or a list of names, got " +
               quoted(*text));
  }
  const llvm::json::Array *list = value.getAsArray();
  if (!list)
    return wrongKind(where, "\"same\" or a list of names", value);
  if (list->size() > maxArgs)
    return bad(where + ": more than " + llvm::Twine(maxArgs) + " names");
  std::vector<std::string> args;
  for (const auto &[i, entry] : llvm::enumerate(*list)) {
    auto name = entry.getAsString();
    if (!name)
      return wrongKind(where + "[" + llvm::Twine(i) + "]", "a name", entry);
    llvm::SmallVector<llvm::StringRef> parts;
    name->split(parts, '.');
    if (name->size() > 2 * maxNameBytes || !llvm::all_of(parts, isIdentifier))
      return bad(where + "[" + llvm::Twine(i) + "]: " + quoted(*name) +
                 " is not a name; pass buffers, sizes such as x.size0, scalars "
                 "or scratch buffers, and hand constants on as params");
    args.push_back(name->str());
  }
  return args;
}

llvm::Expected<PlannedLaunch> readLaunch(const llvm::json::Value &value,
                                         const std::string &where) {
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return wrongKind(where, "an object", value);
  if (llvm::Error error =
          checkKeys(*object, where,
                    {"kernel", "grid", "block", "cluster", "shared", "args"}))
    return error;
  PlannedLaunch launch;
  auto kernel = readIdentifier(object->get("kernel"), where + ".kernel");
  if (!kernel)
    return kernel.takeError();
  launch.kernel = std::move(*kernel);
  if (llvm::Error error =
          readShape(*object, "grid", where, /*required=*/true, launch.grid))
    return error;
  if (llvm::Error error =
          readShape(*object, "block", where, /*required=*/true, launch.block))
    return error;
  if (llvm::Error error = readShape(*object, "cluster", where,
                                    /*required=*/false, launch.cluster))
    return error;
  if (const llvm::json::Value *shared = object->get("shared")) {
    auto size = readSize(*shared, where + ".shared");
    if (!size)
      return size.takeError();
    launch.shared = std::move(*size);
  }
  if (const llvm::json::Value *args = object->get("args")) {
    auto names = readArgs(*args, where + ".args");
    if (!names)
      return names.takeError();
    launch.args = std::move(*names);
  }
  return launch;
}

llvm::Expected<ScratchBuffer> readScratch(const llvm::json::Value &value,
                                          const std::string &where) {
  const llvm::json::Object *object = value.getAsObject();
  if (!object)
    return wrongKind(where, "an object", value);
  if (llvm::Error error = checkKeys(*object, where, {"name", "bytes", "zero"}))
    return error;
  ScratchBuffer scratch;
  auto name = readIdentifier(object->get("name"), where + ".name");
  if (!name)
    return name.takeError();
  scratch.name = std::move(*name);
  const llvm::json::Value *bytes = object->get("bytes");
  if (!bytes)
    return bad(where + ".bytes is missing");
  auto size = readSize(*bytes, where + ".bytes");
  if (!size)
    return size.takeError();
  scratch.bytes = std::move(*size);
  if (const llvm::json::Value *zero = object->get("zero")) {
    auto flag = zero->getAsBoolean();
    if (!flag)
      return wrongKind(where + ".zero", "true or false", *zero);
    scratch.zero = *flag;
  }
  return scratch;
}

llvm::Expected<std::vector<int64_t>>
readParameter(const llvm::json::Value &value, const std::string &where) {
  llvm::json::Array single{value};
  const llvm::json::Array *list = value.getAsArray();
  if (!list)
    list = &single;
  if (list->empty() || list->size() > maxParameterValues)
    return bad(where + ": expected 1 to " + llvm::Twine(maxParameterValues) +
               " values, got " + llvm::Twine(list->size()));
  std::vector<int64_t> values;
  for (const auto &[i, entry] : llvm::enumerate(*list)) {
    auto number = entry.getAsInteger();
    if (!number)
      return wrongKind(where + "[" + llvm::Twine(i) + "]", "an integer", entry);
    // The same value twice would only be built and timed twice.
    if (!llvm::is_contained(values, *number))
      values.push_back(*number);
  }
  return values;
}

/// The list under `key`; nothing where there is none.
llvm::Expected<const llvm::json::Array *>
readList(const llvm::json::Object &object, llvm::StringRef key, size_t limit) {
  static const llvm::json::Array none;
  const llvm::json::Value *value = object.get(key);
  if (!value)
    return &none;
  const llvm::json::Array *list = value->getAsArray();
  if (!list)
    return wrongKind(key, "a list", *value);
  if (list->size() > limit)
    return bad(key + ": " + llvm::Twine(list->size()) + " entries; at most " +
               llvm::Twine(limit) + " are taken");
  return list;
}

std::string place(llvm::StringRef key, size_t i) {
  return key.str() + "[" + std::to_string(i) + "]";
}

llvm::Error readParameters(const llvm::json::Object &object,
                           Candidate &candidate) {
  const llvm::json::Value *value = object.get("params");
  if (!value)
    return llvm::Error::success();
  const llvm::json::Object *params = value->getAsObject();
  if (!params)
    return wrongKind("params", "an object of lists of integers", *value);
  if (params->size() > maxParameters)
    return bad("params: " + llvm::Twine(params->size()) +
               " parameters; at most " + llvm::Twine(maxParameters) +
               " are taken");
  for (const auto &[key, entry] : *params) {
    llvm::StringRef name(key);
    // A leading underscore is the compiler's own.
    if (!isIdentifier(name) || !isUsableName(name) ||
        name.size() > maxNameBytes || name.starts_with("_"))
      return bad("params: " + quoted(name) +
                 " cannot be the name of a macro; expected a letter, then "
                 "letters, digits and underscores, and no word of C++");
    auto values = readParameter(entry, "params." + name.str());
    if (!values)
      return values.takeError();
    candidate.parameters[name.str()] = std::move(*values);
  }
  return llvm::Error::success();
}

llvm::Error readGuards(const llvm::json::Object &object, Candidate &candidate) {
  auto guards = readList(object, "requires", maxGuards);
  if (!guards)
    return guards.takeError();
  for (const auto &[i, entry] : llvm::enumerate(**guards)) {
    auto text = entry.getAsString();
    if (!text)
      return wrongKind(place("requires", i), "a condition in a string", entry);
    auto parsed = SizeExpr::parse(*text, SizeExpr::Grammar::Guard);
    if (!parsed)
      return addContext(parsed.takeError(),
                        place("requires", i) + " " + quoted(*text));
    candidate.guards.push_back(text->str());
  }
  return llvm::Error::success();
}

llvm::Error readPlan(const llvm::json::Value &json, Candidate &candidate) {
  const llvm::json::Object *object = json.getAsObject();
  if (!object)
    return wrongKind("the json block", "an object", json);
  if (llvm::Error error = checkKeys(
          *object, "the json block",
          {"launch", "scratch", "requires", "params", "strategy", "notes"}))
    return error;

  auto launches = readList(*object, "launch", maxLaunches);
  if (!launches)
    return launches.takeError();
  if ((*launches)->empty())
    return bad("launch: expected at least one launch");
  for (const auto &[i, entry] : llvm::enumerate(**launches)) {
    auto launch = readLaunch(entry, place("launch", i));
    if (!launch)
      return launch.takeError();
    candidate.plan.launches.push_back(std::move(*launch));
  }
  auto scratch = readList(*object, "scratch", maxScratch);
  if (!scratch)
    return scratch.takeError();
  for (const auto &[i, entry] : llvm::enumerate(**scratch)) {
    auto buffer = readScratch(entry, place("scratch", i));
    if (!buffer)
      return buffer.takeError();
    candidate.plan.scratch.push_back(std::move(*buffer));
  }
  if (llvm::Error error = readGuards(*object, candidate))
    return error;
  if (llvm::Error error = readParameters(*object, candidate))
    return error;
  auto strategy = readText(*object, "strategy");
  if (!strategy)
    return strategy.takeError();
  candidate.strategy = std::move(*strategy);
  auto notes = readText(*object, "notes");
  if (!notes)
    return notes.takeError();
  candidate.notes = std::move(*notes);
  return llvm::Error::success();
}

} // namespace

llvm::Expected<Candidate> parseAnswer(llvm::StringRef answer) {
  if (answer.size() > maxAnswerBytes)
    return bad("the answer is longer than " + llvm::Twine(maxAnswerBytes) +
               " bytes");
  if (answer.trim().empty())
    return bad("the answer is empty");
  if (!llvm::json::isUTF8(answer))
    return bad("the answer is not valid UTF-8");
  if (answer.contains('\0'))
    return bad("the answer holds a zero byte");

  auto blocks = findBlocks(answer);
  if (!blocks)
    return blocks.takeError();
  if (llvm::Error error =
          expectOne(blocks->sources.size(), "cuda", blocks->others))
    return error;
  if (llvm::Error error =
          expectOne(blocks->plans.size(), "json", blocks->others))
    return error;

  return parseCandidate(blocks->sources.front(), blocks->plans.front());
}

llvm::Expected<Candidate> parseCandidate(llvm::StringRef source,
                                         llvm::StringRef plan) {
  for (llvm::StringRef text : {source, plan})
    if (!llvm::json::isUTF8(text) || text.contains('\0'))
      return bad("the code or the plan is not valid UTF-8, or holds a zero "
                 "byte");
  Candidate candidate;
  candidate.source = source.str();
  if (candidate.source.size() > maxSourceBytes)
    return bad("the cuda block is longer than " + llvm::Twine(maxSourceBytes) +
               " bytes");
  if (llvm::StringRef(candidate.source).trim().empty())
    return bad("the cuda block is empty");
  if (plan.size() > maxPlanBytes)
    return bad("the json block is longer than " + llvm::Twine(maxPlanBytes) +
               " bytes");
  auto json = parseJson(plan);
  if (!json)
    return bad("the json block: " + llvm::toString(json.takeError()));
  if (llvm::Error error = readPlan(*json, candidate))
    return error;
  return candidate;
}

} // namespace fsr
