// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One folder a talk. An answer was paid for and is replayed in place of the
// LLM, so one that was changed is an error and is never overwritten.
//
//===----------------------------------------------------------------------===//

#include "History.h"
#include "Layout.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/Support/FileSystem.h"

using namespace fsr;
using namespace fsr::store;

static llvm::Error checkPlace(llvm::StringRef taskKey, int64_t round,
                              int64_t slot) {
  if (llvm::Error error = store::checkDigest("task key", taskKey))
    return error;
  if (round < 0 || round > maxTalkPlace || slot < 0 || slot > maxTalkPlace)
    return makeError(ErrorKind::BadInput,
                     "talk of round " + llvm::Twine(round) + ", slot " +
                         llvm::Twine(slot) + ": wanted 0 to " +
                         llvm::Twine(maxTalkPlace));
  return llvm::Error::success();
}

std::optional<std::pair<int64_t, int64_t>>
fsr::store::placeOf(llvm::StringRef name) {
  auto [first, second] = name.split("-s");
  int64_t round = 0, slot = 0;
  if (!first.consume_front("r") || first.getAsInteger(10, round) ||
      second.getAsInteger(10, slot) || round < 0 || slot < 0 ||
      round > maxTalkPlace || slot > maxTalkPlace)
    return std::nullopt;
  // "r01-s1" is a name that no look-up ever makes.
  if (name != ("r" + llvm::Twine(round) + "-s" + llvm::Twine(slot)).str())
    return std::nullopt;
  return std::pair(round, slot);
}

llvm::Error fsr::store::prepareTalks(llvm::StringRef store,
                                     llvm::StringRef taskKey) {
  if (llvm::Error error = checkDigest("task key", taskKey))
    return error;
  std::string path = (store + "/talks/" + taskKey).str();
  if (llvm::Error error = checkNoLinks(store, path))
    return error;
  if (llvm::Error error = makeFolders(path))
    return error;
  // About what one talk takes, for a disk that is full.
  return tryToWrite(path, 64 << 10);
}

llvm::Error fsr::store::addTalk(llvm::StringRef store, const Talk &talk) {
  if (llvm::Error error = checkPlace(talk.taskKey, talk.round, talk.slot))
    return error;
  for (const std::string *text : {&talk.request, &talk.answer})
    if (llvm::Error error = checkSize("talk", text->size(), maxTalkTextBytes))
      return error;
  std::string path = talkFolder(store, talk.taskKey, talk.round, talk.slot);
  if (llvm::Error error = checkNoLinks(store, path))
    return error;
  std::vector<NamedBytes> files = filesOf(talk);
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
                     "talk '" + path + "': " + there.fault);
  if (there.state == LoadedTalk::State::Unreadable)
    return makeError(ErrorKind::Unavailable,
                     "talk '" + path + "': " + there.fault);
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
  llvm::Expected<bool> again = writeFolderAtomically(path, files);
  if (!again)
    return again.takeError();
  if (!*again)
    return makeError(ErrorKind::Unavailable,
                     "cannot keep the talk '" + path +
                         "': another writer took its place");
  return llvm::Error::success();
}

llvm::Expected<std::optional<Talk>>
fsr::store::findTalk(llvm::StringRef store, llvm::StringRef taskKey,
                     int64_t round, int64_t slot) {
  if (llvm::Error error = checkPlace(taskKey, round, slot))
    return error;
  std::string path = talkFolder(store, taskKey, round, slot);
  LoadedTalk loaded = loadTalk(path, taskKey, round, slot);
  switch (loaded.state) {
  case LoadedTalk::State::Whole:
    return std::optional<Talk>(std::move(loaded.talk));
  case LoadedTalk::State::Changed:
    return makeError(ErrorKind::Corrupt,
                     "talk '" + path + "': " + loaded.fault);
  case LoadedTalk::State::OtherVersion:
    // Its place cannot take another answer: better known before one is paid.
    return makeError(ErrorKind::Unsupported,
                     "talk '" + path + "': " + loaded.fault);
  case LoadedTalk::State::Unreadable:
    // Perhaps only now: it was paid for, and is not to be asked for again.
    return makeError(ErrorKind::Unavailable,
                     "talk '" + path + "': " + loaded.fault);
  case LoadedTalk::State::Missing:
  case LoadedTalk::State::Unfinished:
  case LoadedTalk::State::Damaged:
    break;
  }
  return std::nullopt;
}
