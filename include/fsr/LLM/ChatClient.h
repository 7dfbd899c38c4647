// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where answers come from. A provider is named by a text, `kind:argument`:
//
//   exchange:FOLDER   each request becomes a readable file; the answer is taken
//                     from a file that somebody renames into place beside it
//   replay:FOLDER     recorded talks of a store folder only; never the network
//   openai:MODEL      any OpenAI-compatible server, by base URL
//   anthropic:MODEL   Anthropic's messages
//   exec:COMMAND      the request on a command's standard input, the answer on
//                     its standard output
//
// Keys come from the environment only and go nowhere but into the request.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LLM_CHATCLIENT_H
#define FSR_LLM_CHATCLIENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace fsr {

struct ChatRequest {
  std::string taskKey;
  std::string taskName;
  int64_t round = 1, slot = 1; ///< From 1.
  std::string prompt;
};

struct ChatAnswer {
  std::string text;
  /// Estimated where a server reports none; 0 where there is no server.
  int64_t promptTokens = 0, answerTokens = 0;
  /// Something worth a remark: the prompt has changed since the recording, the
  /// answer was cut at its limit.
  std::string remark;
  /// What it answers, where that is not the prompt that was asked; else empty.
  std::string request;
};

/// What one client has spent so far. A call whose end is not known, or that
/// reported nothing, stands in it at its dearest.
struct ChatSpending {
  int64_t calls = 0, promptTokens = 0, answerTokens = 0;
  double usd = 0;
};

/// What answers can cost at most, and what there is for them: for a word before
/// the first request.
struct ChatForecast {
  int64_t tokens = 0;
  std::optional<double> usd; ///< Nothing where no price is known.
  double capUsd = 0;         ///< 0: no cap; the same below.
  int64_t capTokens = 0;
  /// Spent so far, by this run and, on the tasks that are counted, by others.
  ChatSpending before;
};

/// How one request of a batch ended: an answer, or nothing where it is still to
/// come (exchange). An error is about the provider, never about what the answer
/// says.
using ChatResult = llvm::Expected<std::optional<ChatAnswer>>;

class ChatClient {
public:
  virtual ~ChatClient();

  /// Asks all requests, as many at a time as the provider allows, and calls
  /// `done` with each one's index and result the moment it has it, on the
  /// calling thread: what was paid for can be put on disk before the next one
  /// is waited for. Each index is reported exactly once.
  virtual void ask(llvm::ArrayRef<ChatRequest> requests,
                   llvm::function_ref<void(size_t, ChatResult)> done) = 0;

  /// From within `done`: nothing more of this batch is sent, not even again.
  /// What is in flight is waited for; the rest ends as an error.
  void stopAsking() { mayAsk = false; }

  /// From now on what was ever spent on these tasks, by whichever run, counts
  /// against the caps (see ChatOptions::spending). A task that is asked about
  /// is counted without it.
  virtual llvm::Error countTasks(llvm::ArrayRef<std::string> taskKeys);

  /// For these requests and `later` ones whose prompts are not known yet, each
  /// asked once. Nothing where the provider charges nothing.
  virtual llvm::Expected<std::optional<ChatForecast>>
  forecast(llvm::ArrayRef<ChatRequest> requests, size_t later = 0);

  /// Of this client's life; zeros where the provider charges nothing.
  virtual ChatSpending spent() const;

  /// "exchange", "replay", "openai:MODEL": what records and talks say; no
  /// folder, no key.
  virtual llvm::StringRef provider() const = 0;

protected:
  /// `ask` sets it at its start, and looks at it before each request.
  std::atomic<bool> mayAsk{true};
  /// How a request ends that was not sent.
  static llvm::Error notAsked();
};

/// What may be spent, on all tasks that are counted and by all runs. 0: no
/// limit. Counts what is in flight at its dearest possible end, so that a cap
/// is never passed.
struct ChatBudget {
  /// Not given: `defaultUsd` where the model has a price. One that is given
  /// needs a price.
  std::optional<double> usd;
  /// Not given: `defaultTokens` where the model has no price and `usd` is not
  /// given either, so that nothing is without a cap unseen.
  std::optional<int64_t> tokens;

  static constexpr double defaultUsd = 5;
  static constexpr int64_t defaultTokens = 1000000;
  static constexpr double mostUsd = 1e9; ///< That can be asked for.
};

struct ChatOptions {
  bool replayStrict = false; ///< A changed prompt is an error.
  std::string url;           ///< Base URL; empty: the provider's own.
  std::chrono::milliseconds timeout{600000}; ///< Of one answer.
  unsigned inFlight = 8;
  int64_t maxAnswerTokens = 32768; ///< Asked of the server; a call's ceiling.
  unsigned retries = 4;            ///< After 429, 5xx, a broken connection.
  std::string prices; ///< JSON file of prices; see docs/formats/prices.md.
  ChatBudget budget;
  /// Folder that says what was spent on each task (docs/formats/store.md,
  /// "Spending"). Empty: a cap is about this client alone.
  std::string spending;
  /// Before the first retry; doubles with each.
  std::chrono::milliseconds backOff{1000};
  /// Of any pause, whatever a server asks for.
  std::chrono::milliseconds longestPause{120000};
  /// Looked at several times a second. Once it says true nothing new is asked,
  /// and what is in flight ends as an error. Empty: never.
  std::function<bool()> stopped;
};

/// An error (BadInput) where a cap is no number or out of bounds. It names the
/// option, which every tool calls "budget-usd" or "budget-tokens".
llvm::Error checkBudget(const ChatBudget &budget);

/// Makes the client that `spec` names; makes no request. Errors (BadInput): an
/// unknown provider (the message lists the known ones), a missing argument, a
/// folder, command, address, key or price file that cannot be used, a cap that
/// cannot be kept.
llvm::Expected<std::unique_ptr<ChatClient>>
makeChatClient(llvm::StringRef spec, const ChatOptions &options = {});

} // namespace fsr

#endif // FSR_LLM_CHATCLIENT_H
