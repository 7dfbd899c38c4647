// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Talks that a store recorded, given out again, each judged by the reader that
// the store uses. Only reads; never the network. A talk is found by task, round
// and slot, not by its prompt, so that a better template does not make
// recordings useless; that the prompt has changed is said.
//
//===----------------------------------------------------------------------===//

#include "Clients.h"

#include "fsr/Core/TalkFiles.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

namespace fsr {
namespace {

class ReplayClient final : public ChatClient {
public:
  ReplayClient(llvm::StringRef folder, const ChatOptions &options)
      : folder(folder), options(options) {}

  llvm::StringRef provider() const override { return "replay"; }

  void ask(llvm::ArrayRef<ChatRequest> requests,
           llvm::function_ref<void(size_t, ChatResult)> done) override {
    mayAsk = true;
    for (size_t i = 0; i < requests.size(); ++i)
      done(i, mayAsk ? find(requests[i]) : notAsked());
  }

private:
  ChatResult find(const ChatRequest &request) {
    if (request.taskKey.empty() ||
        !llvm::all_of(request.taskKey, llvm::isAlnum))
      return makeError(ErrorKind::BadInput, "task key '" + request.taskKey +
                                                "': expected hex digits");
    std::string path =
        talkFolder(folder, request.taskKey, request.round, request.slot);
    LoadedTalk talk =
        loadTalk(path, request.taskKey, request.round, request.slot);
    switch (talk.state) {
    case LoadedTalk::State::Whole:
      break;
    case LoadedTalk::State::Missing:
      return none(request, "expected the folder " + path);
    case LoadedTalk::State::Unfinished:
    case LoadedTalk::State::OtherVersion:
      return none(request, "'" + path + "' is passed over: " + talk.fault);
    case LoadedTalk::State::Changed:
    case LoadedTalk::State::Damaged:
      return makeError(ErrorKind::Corrupt,
                       "talk '" + path + "': " + talk.fault);
    case LoadedTalk::State::Unreadable:
      return makeError(ErrorKind::Unavailable,
                       "talk '" + path + "': " + talk.fault);
    }

    ChatAnswer answer;
    answer.text = std::move(talk.talk.answer);
    answer.promptTokens = talk.talk.promptTokens;
    answer.answerTokens = talk.talk.answerTokens;
    if (talk.talk.request != request.prompt) {
      std::string changed = "the prompt for kernel '" + request.taskName +
                            "', round " + std::to_string(request.round) +
                            ", slot " + std::to_string(request.slot) +
                            " has changed since it was recorded";
      if (options.replayStrict)
        return makeError(ErrorKind::BadInput, path + ": " + changed);
      answer.remark = std::move(changed);
      answer.request = std::move(talk.talk.request);
    }
    return answer;
  }

  static llvm::Error none(const ChatRequest &request, const llvm::Twine &why) {
    return makeError(ErrorKind::Unavailable,
                     "no talk is recorded for kernel '" + request.taskName +
                         "', round " + llvm::Twine(request.round) + ", slot " +
                         llvm::Twine(request.slot) + ": " + why);
  }

  std::string folder;
  ChatOptions options;
};

} // namespace

llvm::Expected<std::unique_ptr<ChatClient>>
makeReplayClient(llvm::StringRef folder, const ChatOptions &options) {
  if (!llvm::sys::fs::is_directory(folder))
    return makeError(ErrorKind::BadInput, folder + ": no such folder");
  return std::make_unique<ReplayClient>(folder, options);
}

} // namespace fsr
