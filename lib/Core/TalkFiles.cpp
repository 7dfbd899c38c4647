// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reading goes from what decides most to what costs most: is it there, which
// version, does talk.json match its own hash, is it of this place, do the texts
// match theirs.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/TalkFiles.h"

#include "fsr/Support/Hash.h"
#include "fsr/Support/Json.h"

#include "llvm/Support/FileSystem.h"

#include <tuple>

namespace fsr {

static constexpr llvm::StringLiteral jsonFile = "talk.json";
static constexpr llvm::StringLiteral requestFile = "request.md";
static constexpr llvm::StringLiteral answerFile = "answer.md";

std::string talkFolder(llvm::StringRef store, llvm::StringRef taskKey,
                       int64_t round, int64_t slot) {
  return (store + "/talks/" + taskKey + "/r" + llvm::Twine(round) + "-s" +
          llvm::Twine(slot))
      .str();
}

LoadedTalk loadTalk(llvm::StringRef path, llvm::StringRef taskKey,
                    int64_t round, int64_t slot) {
  using State = LoadedTalk::State;
  LoadedTalk loaded;
  if (!llvm::sys::fs::exists(path))
    return loaded;
  auto end = [&](State state, const llvm::Twine &fault) {
    loaded.state = state;
    loaded.fault = fault.str();
    return loaded;
  };
  auto damaged = [&](llvm::Error error) {
    return end(State::Damaged, llvm::toString(std::move(error)));
  };
  auto unreadable = [&](llvm::Error error) {
    return end(State::Unreadable, llvm::toString(std::move(error)));
  };
  auto read = [&](llvm::StringRef name) {
    return readFile((path + "/" + name).str(), maxTalkTextBytes);
  };
  for (llvm::StringRef name :
       {llvm::StringRef(jsonFile), llvm::StringRef(requestFile),
        llvm::StringRef(answerFile)})
    if (!llvm::sys::fs::exists(path + "/" + name))
      return end(State::Unfinished,
                 "it is unfinished: " + name + " is missing");

  llvm::Expected<std::string> text = read(jsonFile);
  if (!text)
    return unreadable(text.takeError());
  llvm::Expected<llvm::json::Value> json = parseJson(*text);
  if (!json)
    return end(State::Damaged,
               jsonFile + ": " + llvm::toString(json.takeError()));
  llvm::json::Object *object = json->getAsObject();
  if (!object)
    return end(State::Damaged, jsonFile + ": got JSON that is no object");
  std::optional<int64_t> version = object->getInteger("format_version");
  if (version && *version != Talk::formatVersion)
    return end(State::OtherVersion,
               "it has format version " + llvm::Twine(*version) +
                   ", this program reads " + llvm::Twine(Talk::formatVersion));
  if (llvm::Error error = unseal(*object)) {
    llvm::consumeError(std::move(error));
    return end(State::Changed, "the file '" + jsonFile +
                                   "' was changed: its SHA-256 is not the one "
                                   "in it");
  }
  Talk talk;
  llvm::json::Path::Root root(jsonFile);
  if (!fromJSON(*json, talk, root))
    return damaged(root.getError());
  if (talk.taskKey != taskKey || talk.round != round || talk.slot != slot)
    return end(
        State::Damaged,
        "it lies in the place of another task, round or slot: " + jsonFile +
            " says task " + talk.taskKey + ", round " +
            llvm::Twine(talk.round) + ", slot " + llvm::Twine(talk.slot));
  for (auto [name, hashKey, into] :
       {std::tuple(requestFile, "request_sha256", &talk.request),
        std::tuple(answerFile, "answer_sha256", &talk.answer)}) {
    llvm::Expected<std::string> bytes = read(name);
    if (!bytes)
      return unreadable(bytes.takeError());
    if (object->getString(hashKey) != llvm::StringRef(sha256(*bytes)))
      return end(State::Changed, "the file '" + name +
                                     "' was changed: its SHA-256 is not the "
                                     "one in " +
                                     jsonFile);
    *into = std::move(*bytes);
  }
  loaded.state = State::Whole;
  loaded.json = std::move(*text);
  loaded.talk = std::move(talk);
  return loaded;
}

std::vector<NamedBytes> filesOf(const Talk &talk) {
  llvm::json::Value json = toJSON(talk);
  llvm::json::Object &object = *json.getAsObject();
  object["request_sha256"] = sha256(talk.request);
  object["answer_sha256"] = sha256(talk.answer);
  return {{jsonFile.str(), printSealed(std::move(object))},
          {requestFile.str(), talk.request},
          {answerFile.str(), talk.answer}};
}

std::vector<NamedBytes> filesOf(const LoadedTalk &loaded) {
  return {{jsonFile.str(), loaded.json},
          {requestFile.str(), loaded.talk.request},
          {answerFile.str(), loaded.talk.answer}};
}

} // namespace fsr
