// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Talks that a store recorded, given out again: talks/<task key>/r<R>-s<S>/
// with talk.json, request.md and answer.md (docs/formats/store.md). Only reads;
// never the network. A talk is found by task, round and slot, not by its
// prompt, so that a better template does not make recordings useless; that the
// prompt has changed is said.
//
//===----------------------------------------------------------------------===//

#include "Clients.h"

#include "fsr/Core/Trial.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Json.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace fsr {
namespace {

constexpr uint64_t maxTalkBytes = uint64_t(16) << 20;

class ReplayClient final : public ChatClient {
public:
  ReplayClient(llvm::StringRef folder, const ChatOptions &options)
      : folder(folder), options(options) {}

  llvm::StringRef provider() const override { return "replay"; }

  void ask(llvm::ArrayRef<ChatRequest> requests,
           llvm::function_ref<void(size_t, ChatResult)> done) override {
    for (size_t i = 0; i < requests.size(); ++i)
      done(i, find(requests[i]));
  }

private:
  ChatResult find(const ChatRequest &request) {
    if (request.taskKey.empty() ||
        !llvm::all_of(request.taskKey, llvm::isAlnum))
      return makeError(ErrorKind::BadInput, "task key '" + request.taskKey +
                                                "': expected hex digits");
    llvm::SmallString<256> talk(folder);
    llvm::sys::path::append(talk, "talks", request.taskKey,
                            "r" + llvm::Twine(request.round) + "-s" +
                                llvm::Twine(request.slot));
    if (!llvm::sys::fs::is_directory(talk))
      return makeError(ErrorKind::Unavailable,
                       "no talk is recorded for kernel '" + request.taskName +
                           "', round " + llvm::Twine(request.round) +
                           ", slot " + llvm::Twine(request.slot) +
                           ": expected the folder " + talk);

    auto read = [&](llvm::StringRef name) {
      llvm::SmallString<256> path(talk);
      llvm::sys::path::append(path, name);
      return readFile(path, maxTalkBytes);
    };
    auto head = read("talk.json");
    if (!head)
      return head.takeError();
    auto recorded = parseTalk(*head);
    if (!recorded)
      return addContext(recorded.takeError(), talk + ": talk.json");
    if (recorded->taskKey != request.taskKey)
      return makeError(ErrorKind::Corrupt,
                       talk + ": talk.json: it is of the task '" +
                           recorded->taskKey + "'");
    auto prompt = read("request.md");
    if (!prompt)
      return prompt.takeError();
    auto text = read("answer.md");
    if (!text)
      return text.takeError();

    ChatAnswer answer;
    answer.text = std::move(*text);
    answer.promptTokens = recorded->promptTokens;
    answer.answerTokens = recorded->answerTokens;
    if (*prompt != request.prompt) {
      std::string changed = "the prompt for kernel '" + request.taskName +
                            "', round " + std::to_string(request.round) +
                            ", slot " + std::to_string(request.slot) +
                            " has changed since it was recorded";
      if (options.replayStrict)
        return makeError(ErrorKind::BadInput, talk + ": " + changed);
      answer.remark = std::move(changed);
    }
    return answer;
  }

  static llvm::Expected<Talk> parseTalk(llvm::StringRef text) {
    auto json = parseJson(text);
    if (!json)
      return json.takeError();
    Talk talk;
    llvm::json::Path::Root root("talk");
    if (!fromJSON(*json, talk, root))
      return makeError(ErrorKind::Corrupt, llvm::toString(root.getError()));
    return talk;
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
