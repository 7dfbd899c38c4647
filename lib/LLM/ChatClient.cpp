// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From the text `kind:argument` to a client. The table is the one list of
// providers; the error for an unknown one is made from it.
//
//===----------------------------------------------------------------------===//

#include "fsr/LLM/ChatClient.h"

#include "Clients.h"

#include "fsr/Support/Error.h"

#include "llvm/Support/FormatVariadic.h"

namespace fsr {

ChatClient::~ChatClient() = default;

llvm::Error ChatClient::countTasks(llvm::ArrayRef<std::string>) {
  return llvm::Error::success();
}

llvm::Expected<std::optional<ChatForecast>>
ChatClient::forecast(llvm::ArrayRef<ChatRequest>, size_t) {
  return std::nullopt;
}

ChatSpending ChatClient::spent() const { return {}; }

llvm::Error ChatClient::notAsked() {
  return makeError(ErrorKind::Unavailable,
                   "not asked: the batch was stopped before");
}

namespace {

struct Provider {
  llvm::StringLiteral kind;
  llvm::StringLiteral argument;
  llvm::Expected<std::unique_ptr<ChatClient>> (*make)(
      llvm::StringRef argument, const ChatOptions &options);
};

constexpr Provider providers[] = {
    {"exchange", "FOLDER",
     [](llvm::StringRef folder, const ChatOptions &) {
       return makeExchangeClient(folder);
     }},
    {"replay", "FOLDER",
     [](llvm::StringRef folder, const ChatOptions &options) {
       return makeReplayClient(folder, options);
     }},
    {"openai", "MODEL", makeOpenAIClient},
    {"anthropic", "MODEL", makeAnthropicClient},
    {"exec", "COMMAND", makeExecClient},
};

} // namespace

llvm::Error checkBudget(const ChatBudget &budget) {
  double usd = budget.usd.value_or(0);
  // Written so that a NaN is refused too.
  if (!(usd >= 0 && usd <= ChatBudget::mostUsd))
    return makeError(
        ErrorKind::BadInput,
        llvm::formatv("option budget-usd: got {0}, wanted 0 (no limit) to "
                      "{1:F0} dollars",
                      usd, ChatBudget::mostUsd));
  if (budget.tokens.value_or(0) < 0)
    return makeError(ErrorKind::BadInput, "option budget-tokens: got " +
                                              llvm::Twine(*budget.tokens) +
                                              ", wanted 0 (no limit) or more");
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<ChatClient>>
makeChatClient(llvm::StringRef spec, const ChatOptions &options) {
  auto [kind, argument] = spec.split(':');
  for (const Provider &provider : providers) {
    if (kind != provider.kind)
      continue;
    if (argument.empty())
      return makeError(ErrorKind::BadInput, "llm '" + spec + "': expected '" +
                                                provider.kind + ":" +
                                                provider.argument + "'");
    if (llvm::Error error = checkBudget(options.budget))
      return std::move(error);
    if (options.inFlight == 0)
      return makeError(ErrorKind::BadInput,
                       "llm '" + spec +
                           "': expected at least one request "
                           "in flight");
    auto client = provider.make(argument, options);
    if (!client)
      return addContext(client.takeError(), "llm '" + spec + "'");
    return client;
  }
  std::string known;
  for (const Provider &provider : providers)
    known += (known.empty() ? "" : ", ") + provider.kind.str() + ":" +
             provider.argument.str();
  return makeError(ErrorKind::BadInput, "llm '" + spec +
                                            "': unknown provider '" + kind +
                                            "'; known are " + known);
}

} // namespace fsr
