// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One folder a talk: talk.json with the hashes of request.md and answer.md. An
// answer was paid for and is replayed in place of the LLM, so one that was
// changed is an error and is never overwritten.
//
//===----------------------------------------------------------------------===//

#include "History.h"
#include "Layout.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"
#include "fsr/Support/Json.h"

#include "llvm/Support/FileSystem.h"

#include <tuple>

using namespace fsr;
using namespace fsr::store;

static constexpr llvm::StringLiteral jsonFile = "talk.json";
static constexpr llvm::StringLiteral requestFile = "request.md";
static constexpr llvm::StringLiteral answerFile = "answer.md";

static std::string talkPath(llvm::StringRef store, llvm::StringRef taskKey,
                            int64_t round, int64_t slot) {
  return (store + "/talks/" + taskKey + "/r" + llvm::Twine(round) + "-s" +
          llvm::Twine(slot))
      .str();
}

static llvm::Error checkPlace(llvm::StringRef taskKey, int64_t round,
                              int64_t slot) {
  if (llvm::Error error = store::checkDigest("task key", taskKey))
    return error;
  if (round < 0 || round > maxRound || slot < 0 || slot > maxRound)
    return makeError(ErrorKind::BadInput,
                     "talk of round " + llvm::Twine(round) + ", slot " +
                         llvm::Twine(slot) + ": wanted 0 to " +
                         llvm::Twine(maxRound));
  return llvm::Error::success();
}

LoadedTalk fsr::store::loadTalk(llvm::StringRef path, llvm::StringRef taskKey,
                                int64_t round, int64_t slot) {
  using State = LoadedTalk::State;
  LoadedTalk loaded;
  if (!llvm::sys::fs::exists(path))
    return loaded;
  loaded.state = State::Damaged;
  auto read = [&](llvm::StringRef name) {
    return readFile((path + "/" + name).str(),
                    name == jsonFile ? maxJsonBytes : maxTextBytes);
  };
  auto damaged = [&](llvm::Error error) {
    loaded.fault = llvm::toString(std::move(error));
    return loaded;
  };
  llvm::Expected<std::string> text = read(jsonFile);
  if (!text)
    return damaged(text.takeError());
  llvm::Expected<llvm::json::Object> object = parseObject(*text);
  if (!object)
    return damaged(addContext(object.takeError(), jsonFile));
  std::optional<int64_t> version = versionOf(*object);
  if (version && *version != Talk::formatVersion) {
    loaded.state = State::OtherVersion;
    return loaded;
  }
  llvm::json::Object hashes = *object;
  llvm::Expected<Talk> talk = decode<Talk>(std::move(*object), jsonFile);
  if (!talk)
    return damaged(talk.takeError());
  if (talk->taskKey != taskKey || talk->round != round || talk->slot != slot)
    return damaged(makeError(ErrorKind::Corrupt,
                             "it lies in the place of another task, round or "
                             "slot"));
  for (auto [name, hashKey, into] :
       {std::tuple(llvm::StringRef(requestFile), "request_sha256",
                   &talk->request),
        std::tuple(llvm::StringRef(answerFile), "answer_sha256",
                   &talk->answer)}) {
    std::optional<llvm::StringRef> hash = hashes.getString(hashKey);
    llvm::Expected<std::string> bytes = read(name);
    if (!bytes)
      return damaged(bytes.takeError());
    if (!hash || sha256(*bytes) != *hash) {
      loaded.changed = (path + "/" + name).str();
      return loaded;
    }
    *into = std::move(*bytes);
  }
  loaded.state = State::Whole;
  loaded.json = std::move(*text);
  loaded.talk = std::move(*talk);
  return loaded;
}

std::vector<NamedBytes> fsr::store::filesOf(const LoadedTalk &loaded) {
  return {{jsonFile.str(), loaded.json},
          {requestFile.str(), loaded.talk.request},
          {answerFile.str(), loaded.talk.answer}};
}

std::optional<std::pair<int64_t, int64_t>>
fsr::store::placeOf(llvm::StringRef name) {
  auto [first, second] = name.split("-s");
  int64_t round = 0, slot = 0;
  if (!first.consume_front("r") || first.getAsInteger(10, round) ||
      second.getAsInteger(10, slot) || round < 0 || slot < 0 ||
      round > maxRound || slot > maxRound)
    return std::nullopt;
  // "r01-s1" is a name that no look-up ever makes.
  if (name != ("r" + llvm::Twine(round) + "-s" + llvm::Twine(slot)).str())
    return std::nullopt;
  return std::pair(round, slot);
}

llvm::Error fsr::store::addTalk(llvm::StringRef store, const Talk &talk) {
  if (llvm::Error error = checkPlace(talk.taskKey, talk.round, talk.slot))
    return error;
  for (const std::string *text : {&talk.request, &talk.answer})
    if (llvm::Error error = checkSize("talk", text->size(), maxTextBytes))
      return error;
  llvm::json::Value json = toJSON(talk);
  llvm::json::Object &object = *json.getAsObject();
  object["format_version"] = Talk::formatVersion;
  object["request_sha256"] = sha256(talk.request);
  object["answer_sha256"] = sha256(talk.answer);
  std::string path = talkPath(store, talk.taskKey, talk.round, talk.slot);
  if (llvm::Error error = checkNoLinks(store, path))
    return error;
  const NamedBytes files[] = {{jsonFile.str(), printJson(json)},
                              {requestFile.str(), talk.request},
                              {answerFile.str(), talk.answer}};
  llvm::Expected<bool> written = writeFolderAtomically(path, files);
  if (!written)
    return written.takeError();
  if (*written)
    return llvm::Error::success();

  LoadedTalk there = loadTalk(path, talk.taskKey, talk.round, talk.slot);
  if (there.state == LoadedTalk::State::Whole &&
      there.talk.request == talk.request)
    return llvm::Error::success();
  if (there.state == LoadedTalk::State::OtherVersion)
    return makeError(ErrorKind::Unsupported,
                     "talk '" + path + "' has another format version");
  // Another question, or damaged: whatever can be read of it was paid for. A
  // rename never replaces a folder that holds something, so that two who do
  // this at once both succeed.
  const char *suffix =
      there.state == LoadedTalk::State::Whole ? ".old-" : ".damaged-";
  std::error_code code;
  for (int n = 1; n <= 1000; ++n) {
    std::string aside = path + suffix + std::to_string(n);
    if (!llvm::sys::fs::exists(aside))
      code = llvm::sys::fs::rename(path, aside);
    if (!llvm::sys::fs::exists(path))
      break;
  }
  if (llvm::sys::fs::exists(path))
    return makeError(ErrorKind::Unavailable, "cannot move the talk '" + path +
                                                 "' aside: " + code.message());
  return writeFolderAtomically(path, files).takeError();
}

llvm::Expected<std::optional<Talk>>
fsr::store::findTalk(llvm::StringRef store, llvm::StringRef taskKey,
                     int64_t round, int64_t slot) {
  if (llvm::Error error = checkPlace(taskKey, round, slot))
    return error;
  LoadedTalk loaded =
      loadTalk(talkPath(store, taskKey, round, slot), taskKey, round, slot);
  if (loaded.state == LoadedTalk::State::Whole)
    return std::optional<Talk>(std::move(loaded.talk));
  if (!loaded.changed.empty())
    return makeError(ErrorKind::Corrupt,
                     "'" + loaded.changed +
                         "' was changed: its SHA-256 is not the one in " +
                         jsonFile);
  return std::nullopt;
}
