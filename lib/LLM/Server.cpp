// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The providers that are reached through HTTP: what is in flight, what waits
// for its next try, and what each try may cost. docs/design/providers.md is the
// reference of what is tried again and what is counted.
//
// A try is a call of its own to the account. One whose end is not known has
// perhaps been charged, so it stays at its dearest, and the next try needs room
// beside it.
//
//===----------------------------------------------------------------------===//

#include "Budget.h"
#include "Clients.h"
#include "Dialects.h"
#include "Http.h"
#include "Keys.h"

#include "fsr/Support/Error.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

namespace fsr {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds stopInterval(100);
constexpr milliseconds longestTurn(1000);
constexpr int64_t bytesOfToken = 3; ///< For estimates only.

class ServerClient final : public ChatClient {
public:
  ServerClient(const Dialect &dialect, llvm::StringRef model,
               std::string address, std::string key, const Terms &terms,
               std::unique_ptr<HttpPool> pool, const ChatOptions &options)
      : dialect(dialect), model(model), url(address + dialect.path.str()),
        name((dialect.name + ":" + model).str()), key(std::move(key)),
        limitField(llvm::StringRef(address) == dialect.url
                       ? dialect.limitField
                       : dialect.otherLimitField),
        isCapped(terms.capUsd > 0 || terms.capTokens > 0),
        account(terms, makeLedger(options, name)), pool(std::move(pool)),
        options(options), random(std::random_device()()) {}

  llvm::StringRef provider() const override { return name; }
  ChatSpending spent() const override { return account.spent(); }
  llvm::Error countTasks(llvm::ArrayRef<std::string> taskKeys) override {
    return account.count(taskKeys);
  }
  llvm::Expected<std::optional<ChatForecast>>
  forecast(llvm::ArrayRef<ChatRequest> requests, size_t later) override;
  void ask(llvm::ArrayRef<ChatRequest> requests,
           llvm::function_ref<void(size_t, ChatResult)> done) override;

private:
  struct Call {
    enum class State { Waiting, Running, Done };
    State state = State::Waiting;
    Clock::time_point notBefore;
    unsigned retries = 0;
    Reservation reserved;
    llvm::StringRef limitField; ///< As it was last sent.
    bool otherLimitTried = false;
    std::string trouble; ///< Of the last try.
  };

  static std::unique_ptr<Ledger> makeLedger(const ChatOptions &options,
                                            const std::string &provider) {
    return options.spending.empty()
               ? nullptr
               : std::make_unique<Ledger>(options.spending, provider);
  }
  std::string bodyOf(const ChatRequest &request) const {
    return printQuestion(
        {model, request.prompt, options.maxAnswerTokens, limitField});
  }
  /// No tokenizer makes more tokens than there are bytes, and the body has more
  /// of them than the prompt and what a server puts around it.
  Tokens dearest(llvm::StringRef body) const {
    return {int64_t(body.size()), options.maxAnswerTokens};
  }
  bool stopped() const { return options.stopped && options.stopped(); }

  /// Sends what may go out now; what can never go out ends.
  template <typename Finish>
  void startWaiting(llvm::ArrayRef<ChatRequest> requests,
                    std::vector<Call> &calls, size_t &running, Finish finish);
  milliseconds timeToWait(llvm::ArrayRef<Call> calls) const;
  /// Settles what a try cost; its answer, or an error. `again` says that
  /// another try may help.
  llvm::Expected<ChatAnswer> conclude(const ChatRequest &request, Call &call,
                                      HttpReply reply, bool &again);
  llvm::Expected<ChatAnswer> accept(const ChatRequest &request,
                                    const Call &call, ServerAnswer reply);
  milliseconds backOff(unsigned retries,
                       std::optional<milliseconds> retryAfter);

  const Dialect &dialect;
  std::string model, url, name, key;
  llvm::StringRef limitField;
  const bool isCapped;
  Account account;
  std::unique_ptr<HttpPool> pool;
  ChatOptions options;
  std::mt19937 random;
};

/// Exponential, and never at the same moment as the others' that failed with
/// it.
milliseconds ServerClient::backOff(unsigned retries,
                                   std::optional<milliseconds> retryAfter) {
  double pause = double(options.backOff.count()) *
                 double(uint64_t(1) << std::min(retries, 20u));
  pause = std::min(pause, double(options.longestPause.count()));
  pause *= std::uniform_real_distribution<>(0.5, 1.0)(random);
  milliseconds wait(int64_t(pause) + 1);
  if (retryAfter)
    wait += *retryAfter;
  return std::min(wait, options.longestPause);
}

template <typename Finish>
void ServerClient::startWaiting(llvm::ArrayRef<ChatRequest> requests,
                                std::vector<Call> &calls, size_t &running,
                                Finish finish) {
  for (size_t i = 0; mayAsk && i < calls.size() && running < options.inFlight;
       ++i) {
    Call &call = calls[i];
    if (call.state != Call::State::Waiting || Clock::now() < call.notBefore)
      continue;
    HttpRequest request{url, dialect.headers(key), bodyOf(requests[i])};
    Tokens most = dearest(request.body);
    auto reserved = account.reserve(requests[i], most);
    if (!reserved) {
      finish(i, reserved.takeError());
      continue;
    }
    if (!*reserved) {
      // The end of one in flight may make room.
      if (running == 0)
        finish(i, makeError(ErrorKind::OverBudget,
                            account.shortfall(most) +
                                (call.trouble.empty()
                                     ? ""
                                     : "; the last try: " + call.trouble)));
      continue;
    }
    call.reserved = std::move(**reserved);
    call.limitField = limitField;
    call.state = Call::State::Running;
    ++running;
    pool->start(i, std::move(request));
  }
}

milliseconds ServerClient::timeToWait(llvm::ArrayRef<Call> calls) const {
  milliseconds wait = options.stopped ? stopInterval : longestTurn;
  Clock::time_point now = Clock::now();
  for (const Call &call : calls)
    // One that could go out already waits for an end, not for a time.
    if (call.state == Call::State::Waiting && call.notBefore > now)
      wait =
          std::min(wait, std::chrono::ceil<milliseconds>(call.notBefore - now));
  return wait;
}

llvm::Expected<std::optional<ChatForecast>>
ServerClient::forecast(llvm::ArrayRef<ChatRequest> requests, size_t later) {
  Tokens all, longest;
  for (const ChatRequest &request : requests) {
    if (llvm::Error error = account.count(request.taskKey))
      return error;
    Tokens one = dearest(bodyOf(request));
    all = all + one;
    if (one.prompt > longest.prompt)
      longest = one;
  }
  // A later prompt shows an answer to refine, and one to repair.
  longest.prompt += 2 * options.maxAnswerTokens;
  longest.answer = options.maxAnswerTokens;
  auto count = int64_t(later);
  all = all + Tokens{count * longest.prompt, count * longest.answer};
  auto made = account.forecast(all);
  if (!made)
    return addContext(made.takeError(), dialect.name);
  return std::optional<ChatForecast>(*made);
}

void ServerClient::ask(llvm::ArrayRef<ChatRequest> requests,
                       llvm::function_ref<void(size_t, ChatResult)> done) {
  mayAsk = true;
  std::vector<Call> calls(requests.size());
  size_t left = requests.size(), running = 0;
  auto finish = [&](size_t i, llvm::Expected<ChatAnswer> answer) {
    calls[i].state = Call::State::Done;
    --left;
    Clock::time_point before = Clock::now();
    if (answer)
      done(i, std::optional<ChatAnswer>(std::move(*answer)));
    else
      done(i, addContext(answer.takeError(), dialect.name));
    pool->extendDeadlines(Clock::now() - before);
  };

  while (left) {
    if (stopped()) {
      pool->abandonAll();
      for (size_t i = 0; i < calls.size(); ++i)
        if (calls[i].state == Call::State::Waiting)
          finish(i, makeError(ErrorKind::Unavailable, "stopped"));
    } else {
      startWaiting(requests, calls, running, finish);
      for (size_t i = 0; !mayAsk && i < calls.size(); ++i)
        if (calls[i].state == Call::State::Waiting)
          finish(i, notAsked());
    }
    if (!left)
      break;
    auto ended = pool->turn(timeToWait(calls));
    if (!ended)
      continue;
    --running;
    size_t i = ended->first;
    bool again = false;
    auto answer =
        conclude(requests[i], calls[i], std::move(ended->second), again);
    if (answer || !again)
      finish(i, std::move(answer));
    else
      calls[i].trouble = llvm::toString(answer.takeError());
  }
}

llvm::Expected<ChatAnswer> ServerClient::conclude(const ChatRequest &request,
                                                  Call &call, HttpReply reply,
                                                  bool &again) {
  auto fail = [&](ErrorKind kind, const std::string &why) -> llvm::Error {
    std::string tries =
        call.retries ? ", after " + std::to_string(call.retries) + " retries"
                     : std::string();
    return makeError(kind, printableUrl(url) + tries + ": " + why);
  };
  auto retry = [&] {
    again = call.retries < options.retries;
    if (!again)
      return;
    call.state = Call::State::Waiting;
    call.notBefore = Clock::now() + backOff(call.retries, reply.retryAfter);
    ++call.retries;
  };

  if (reply.end != HttpReply::End::Complete) {
    if (reply.sent)
      account.settle(call.reserved, call.reserved.dearest);
    else
      account.release(call.reserved);
    ErrorKind kind = ErrorKind::Unavailable;
    if (reply.end == HttpReply::End::TimedOut)
      kind = ErrorKind::TimedOut;
    else if (reply.end == HttpReply::End::TooLong)
      kind = ErrorKind::Corrupt;
    llvm::Error error = fail(kind, reply.why);
    if (reply.end == HttpReply::End::Broken)
      retry();
    return error;
  }

  bool good = reply.status >= 200 && reply.status < 300;
  if (good) {
    auto parsed = dialect.parse(reply.body);
    if (parsed)
      return accept(request, call, std::move(*parsed));
    account.settle(call.reserved, call.reserved.dearest);
    llvm::Error trouble = parsed.takeError();
    ErrorKind kind = kindOf(trouble);
    llvm::Error error = fail(kind, llvm::toString(std::move(trouble)));
    retry();
    return error;
  }

  // A server that refuses has done no work; one that breaks down may have.
  bool refused = reply.status < 500;
  account.settle(call.reserved, refused ? Tokens() : call.reserved.dearest);
  std::string words = describeFailure(reply.body);
  llvm::Error error = fail(ErrorKind::Unavailable,
                           "HTTP status " + std::to_string(reply.status) +
                               (words.empty() ? "" : ": " + words));
  // The two names of one field: who wants the other one says so.
  llvm::StringRef other = call.limitField == dialect.limitField
                              ? dialect.otherLimitField
                              : dialect.limitField;
  if (reply.status == 400 && !call.otherLimitTried &&
      other != call.limitField && llvm::StringRef(reply.body).contains(other)) {
    call.otherLimitTried = true;
    limitField = other;
    call.state = Call::State::Waiting;
    call.notBefore = Clock::now();
    again = true;
  } else if (reply.status == 408 || reply.status == 429 || !refused) {
    retry();
  }
  return error;
}

llvm::Expected<ChatAnswer> ServerClient::accept(const ChatRequest &request,
                                                const Call &call,
                                                ServerAnswer reply) {
  account.settle(call.reserved,
                 {reply.promptTokens.value_or(call.reserved.dearest.prompt),
                  reply.answerTokens.value_or(call.reserved.dearest.answer)});
  ChatAnswer answer;
  answer.promptTokens = reply.promptTokens.value_or(
      int64_t(request.prompt.size()) / bytesOfToken);
  answer.answerTokens =
      reply.answerTokens.value_or(int64_t(reply.text.size()) / bytesOfToken);
  answer.remark = std::move(reply.remark);
  if (isCapped && (!reply.promptTokens || !reply.answerTokens))
    answer.remark += std::string(answer.remark.empty() ? "" : "; ") +
                     "the server does not say how many tokens it took; the "
                     "budget counts the most that can be";
  answer.text = withoutKeys(std::move(reply.text));
  return answer;
}

llvm::Expected<std::unique_ptr<ChatClient>>
makeServerClient(const Dialect &dialect, llvm::StringRef model,
                 const ChatOptions &options) {
  std::string address = options.url;
  if (address.empty() && dialect.urlName)
    if (const char *fromEnvironment = std::getenv(dialect.urlName))
      address = fromEnvironment;
  if (address.empty())
    address = dialect.url.str();
  address = llvm::StringRef(address).rtrim('/').str();
  if (auto fault = findUrlFault(address))
    return makeError(ErrorKind::BadInput, *fault);
  // More than this is no server's, and sums of it could overflow.
  constexpr int64_t mostAnswerTokens = int64_t(1) << 30;
  if (options.maxAnswerTokens < 1 || options.maxAnswerTokens > mostAnswerTokens)
    return makeError(ErrorKind::BadInput,
                     "tokens of an answer: expected 1 to " +
                         llvm::Twine(mostAnswerTokens) + ", got " +
                         llvm::Twine(options.maxAnswerTokens));
  auto key = keyFromEnvironment(dialect.keyName);
  if (!key)
    return key.takeError();
  if (key->empty() && llvm::StringRef(address) == dialect.url)
    return makeError(ErrorKind::BadInput, llvm::Twine(dialect.keyName) +
                                              " is not set, and " + address +
                                              " wants a key");
  auto terms = findTerms(model, options);
  if (!terms)
    return terms.takeError();
  auto pool = HttpPool::create({options.timeout, maxReplyBytes});
  if (!pool)
    return pool.takeError();
  return std::make_unique<ServerClient>(dialect, model, address,
                                        std::move(*key), *terms,
                                        std::move(*pool), options);
}

} // namespace

llvm::Expected<std::unique_ptr<ChatClient>>
makeOpenAIClient(llvm::StringRef model, const ChatOptions &options) {
  return makeServerClient(openAIDialect, model, options);
}

llvm::Expected<std::unique_ptr<ChatClient>>
makeAnthropicClient(llvm::StringRef model, const ChatOptions &options) {
  return makeServerClient(anthropicDialect, model, options);
}

} // namespace fsr
