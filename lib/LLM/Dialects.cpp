// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A reply is hostile input: its depth has a limit, each field is looked at
// before it is used, and what nlohmann/json throws all the same ends here.
//
//===----------------------------------------------------------------------===//

#include "Dialects.h"

#include "Keys.h"

#include "fsr/Core/SpendingFile.h"
#include "fsr/Support/Error.h"

#include <nlohmann/json.hpp>

#include <exception>

namespace fsr {

using Json = nlohmann::json;

static constexpr int maxDepth = 64;

/// Whether JSON in `body` nests no deeper than `maxDepth`. Says nothing of what
/// is no JSON.
static bool isShallow(llvm::StringRef body) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < body.size(); ++i) {
    char c = body[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (inString)
      continue;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    if (depth > maxDepth)
      return false;
  }
  return true;
}

/// Nothing where it is not JSON or too deep.
static std::optional<Json> parseReply(llvm::StringRef body) {
  // With a callback, which could tell the depth, nlohmann/json takes a time
  // that is quadratic in the width.
  if (!isShallow(body))
    return std::nullopt;
  Json json = Json::parse(body.begin(), body.end(), /*cb=*/nullptr,
                          /*allow_exceptions=*/false);
  if (json.is_discarded())
    return std::nullopt;
  return json;
}

/// A member of an object; null where there is none.
static const Json &member(const Json &json, const char *name) {
  static const Json null;
  if (!json.is_object())
    return null;
  auto found = json.find(name);
  return found == json.end() ? null : *found;
}

static const Json &first(const Json &json) {
  static const Json null;
  return json.is_array() && !json.empty() ? json.front() : null;
}

static std::string textOf(const Json &json) {
  return json.is_string() ? json.get<std::string>() : std::string();
}

/// Several pieces, of which those of type "text" count.
static std::string joinBlocks(const Json &blocks) {
  std::string text;
  for (const Json &block : blocks)
    if (textOf(member(block, "type")) == "text")
      text += textOf(member(block, "text"));
  return text;
}

static std::optional<int64_t> tokensOf(const Json &usage, const char *name) {
  const Json &count = member(usage, name);
  if (count.is_number_unsigned() &&
      count.get<uint64_t>() <= uint64_t(mostTokens))
    return int64_t(count.get<uint64_t>());
  return std::nullopt;
}

static std::string messageIn(const Json &json) {
  const Json &error = member(json, "error");
  for (const Json *place : {&member(error, "message"), &error,
                            &member(json, "message"), &member(json, "detail")})
    if (std::string text = textOf(*place); !text.empty())
      return text;
  return "";
}

static llvm::Error malformed(const llvm::Twine &what) {
  return makeError(ErrorKind::Corrupt, "a reply of the wrong form: " + what);
}

static constexpr const char *cutRemark =
    "the answer was cut at its limit of tokens";
static constexpr const char *refusedRemark = "the model refused to answer";

static llvm::Expected<ServerAnswer> readOpenAI(const Json &json) {
  const Json &choice = first(member(json, "choices"));
  const Json &message = member(choice, "message");
  if (!message.is_object())
    return malformed("expected an object at choices[0].message");
  ServerAnswer answer;
  const Json &content = member(message, "content");
  if (content.is_array())
    answer.text = joinBlocks(content);
  else if (content.is_string() || content.is_null())
    answer.text = textOf(content);
  else
    return malformed("expected a string at choices[0].message.content");
  std::string finish = textOf(member(choice, "finish_reason"));
  std::string refusal = textOf(member(message, "refusal"));
  if (!refusal.empty() && answer.text.empty())
    answer.text = refusal;
  if (!refusal.empty() || finish == "content_filter")
    answer.remark = refusedRemark;
  else if (finish == "length")
    answer.remark = cutRemark;
  const Json &usage = member(json, "usage");
  answer.promptTokens = tokensOf(usage, "prompt_tokens");
  answer.answerTokens = tokensOf(usage, "completion_tokens");
  return answer;
}

static llvm::Expected<ServerAnswer> readAnthropic(const Json &json) {
  const Json &content = member(json, "content");
  if (!content.is_array())
    return malformed("expected an array at content");
  ServerAnswer answer;
  answer.text = joinBlocks(content);
  std::string stop = textOf(member(json, "stop_reason"));
  if (stop == "refusal")
    answer.remark = refusedRemark;
  else if (stop == "max_tokens")
    answer.remark = cutRemark;
  const Json &usage = member(json, "usage");
  answer.promptTokens = tokensOf(usage, "input_tokens");
  // What went through a cache is reported beside the rest.
  if (answer.promptTokens)
    for (const char *more :
         {"cache_creation_input_tokens", "cache_read_input_tokens"})
      *answer.promptTokens += tokensOf(usage, more).value_or(0);
  answer.answerTokens = tokensOf(usage, "output_tokens");
  return answer;
}

template <llvm::Expected<ServerAnswer> (*read)(const Json &)>
static llvm::Expected<ServerAnswer> parseWith(llvm::StringRef body) {
  try {
    std::optional<Json> json = parseReply(body);
    if (!json)
      return makeError(ErrorKind::Corrupt,
                       "a reply that is not JSON: " + quotedStart(body, 80));
    if (const Json &error = member(*json, "error"); !error.is_null())
      return makeError(ErrorKind::Unavailable,
                       "the server says " + quotedStart(messageIn(*json)));
    return read(*json);
  } catch (const std::exception &exception) {
    return malformed(exception.what());
  }
}

const Dialect openAIDialect = {
    "openai",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "https://api.openai.com/v1",
    "/chat/completions",
    // The old name is refused by the provider's newer models, and the new one
    // is not known by many a server.
    "max_completion_tokens",
    "max_tokens",
    [](const std::string &key) {
      std::vector<std::string> headers = {"Content-Type: application/json"};
      if (!key.empty())
        headers.push_back("Authorization: Bearer " + key);
      return headers;
    },
    parseWith<readOpenAI>,
};

const Dialect anthropicDialect = {
    "anthropic",
    "ANTHROPIC_API_KEY",
    nullptr,
    "https://api.anthropic.com",
    "/v1/messages",
    "max_tokens",
    "max_tokens",
    [](const std::string &key) {
      std::vector<std::string> headers = {"Content-Type: application/json",
                                          "anthropic-version: 2023-06-01"};
      if (!key.empty())
        headers.push_back("x-api-key: " + key);
      return headers;
    },
    parseWith<readAnthropic>,
};

std::string printQuestion(const ServerQuestion &question) {
  Json message = {{"role", "user"}, {"content", question.prompt.str()}};
  Json body = {{"model", question.model.str()},
               {"messages", Json::array({std::move(message)})},
               {question.limitField.str(), question.maxAnswerTokens}};
  return body.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

std::string describeFailure(llvm::StringRef body) {
  std::string text;
  try {
    if (std::optional<Json> json = parseReply(body))
      text = messageIn(*json);
  } catch (const std::exception &) {
    text.clear(); // The bytes themselves do.
  }
  if (text.empty())
    text = body.trim().str();
  return text.empty() ? "" : "the server says " + quotedStart(text);
}

} // namespace fsr
