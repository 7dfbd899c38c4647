// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A command that answers: the request on its standard input, the answer on its
// standard output, one run an answer. The command line is split without a
// shell. Several run at a time; results are handed over on the thread that
// asked.
//
// What a command costs is not known here. A cap in tokens is refused, as it
// could not be kept; dollars are counted as 0.
//
//===----------------------------------------------------------------------===//

#include "Clients.h"
#include "Keys.h"

#include "fsr/Support/CommandLine.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Subprocess.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace fsr {
namespace {

class ExecClient final : public ChatClient {
public:
  ExecClient(std::vector<std::string> command, const ChatOptions &options)
      : command(std::move(command)), options(options) {}

  llvm::StringRef provider() const override { return "exec"; }

  void ask(llvm::ArrayRef<ChatRequest> requests,
           llvm::function_ref<void(size_t, ChatResult)> done) override {
    mayAsk = true;
    std::mutex mutex;
    std::condition_variable changed;
    size_t next = 0;
    std::deque<std::pair<size_t, ChatResult>> ready;

    auto work = [&] {
      std::unique_lock<std::mutex> lock(mutex);
      while (next < requests.size()) {
        size_t index = next++;
        lock.unlock();
        ChatResult result = run(requests[index]);
        lock.lock();
        ready.emplace_back(index, std::move(result));
        changed.notify_one();
      }
    };
    std::vector<std::thread> workers;
    for (size_t i = 0, n = std::min<size_t>(options.inFlight, requests.size());
         i < n; ++i)
      workers.emplace_back(work);
    for (size_t left = requests.size(); left; --left) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return !ready.empty(); });
      std::pair<size_t, ChatResult> result = std::move(ready.front());
      ready.pop_front();
      lock.unlock();
      done(result.first, std::move(result.second));
    }
    for (std::thread &worker : workers)
      worker.join();
  }

private:
  ChatResult run(const ChatRequest &request) const {
    if (!mayAsk)
      return addContext(notAsked(), "exec");
    if (options.stopped && options.stopped())
      return makeError(ErrorKind::Unavailable, "exec: stopped");
    ProcessLimits limits;
    limits.wall = options.timeout;
    limits.maxOutputBytes = maxReplyBytes + 1;
    // It may ask a provider on its own.
    limits.passesKeys = true;
    auto result = runProcess(command, request.prompt, limits);
    if (!result)
      return addContext(result.takeError(), "exec");
    if (!result->succeeded())
      return makeError(
          result->timedOut ? ErrorKind::TimedOut : ErrorKind::Unavailable,
          "exec: '" + command.front() + "': " + result->describe() +
              (result->err.empty() ? std::string()
                                   : "; it says " + quotedEnd(result->err)));
    if (result->out.size() > maxReplyBytes)
      return makeError(ErrorKind::Corrupt, "exec: '" + command.front() +
                                               "': an answer of more "
                                               "than " +
                                               llvm::Twine(maxReplyBytes) +
                                               " bytes");
    ChatAnswer answer;
    answer.text = withoutKeys(std::move(result->out));
    return answer;
  }

  std::vector<std::string> command;
  ChatOptions options;
};

} // namespace

llvm::Expected<std::unique_ptr<ChatClient>>
makeExecClient(llvm::StringRef command, const ChatOptions &options) {
  auto words = splitCommandLine(command);
  if (!words)
    return words.takeError();
  if (findOnPath(words->front()).empty())
    return makeError(ErrorKind::BadInput,
                     "there is no program '" + words->front() + "'");
  if (options.budget.tokens.value_or(0) > 0)
    return makeError(ErrorKind::BadInput,
                     "a budget of tokens cannot be kept: a command does not "
                     "say how many it takes");
  return std::make_unique<ExecClient>(std::move(*words), options);
}

} // namespace fsr
