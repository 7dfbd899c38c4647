// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How tasks stood their own test: one JSON file a task and kind of device, with
// a hash over the rest of it. A result that is damaged, or of another time,
// counts as none: the test can be made again.
//
//===----------------------------------------------------------------------===//

#include "History.h"
#include "Layout.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Json.h"

using namespace fsr;
using namespace fsr::store;

std::string fsr::store::kindOfStrength(bool isModelled) {
  return isModelled ? "virtual" : "gpu";
}

static std::string strengthPath(llvm::StringRef store, llvm::StringRef taskKey,
                                bool isModelled) {
  return (store + "/strength/" + taskKey + "/" + kindOfStrength(isModelled) +
          ".json")
      .str();
}

llvm::Expected<TaskStrength> fsr::store::loadStrength(llvm::StringRef path,
                                                      llvm::StringRef taskKey,
                                                      bool isModelled,
                                                      std::string &text) {
  llvm::Expected<llvm::json::Object> object =
      loadSealed(path, TaskStrength::formatVersion, text);
  if (!object)
    return object.takeError();
  llvm::Expected<TaskStrength> strength =
      decode<TaskStrength>(std::move(*object), "strength");
  if (strength &&
      (strength->taskKey != taskKey || strength->isModelled != isModelled))
    return makeError(ErrorKind::Corrupt,
                     "the test of another task, or of another kind of device");
  return strength;
}

llvm::Error fsr::store::addStrength(llvm::StringRef store,
                                    const TaskStrength &strength) {
  if (llvm::Error error = checkDigest("task key", strength.taskKey))
    return error;
  llvm::json::Value json = toJSON(strength);
  llvm::json::Object &object = *json.getAsObject();
  object["format_version"] = TaskStrength::formatVersion;
  llvm::Expected<TaskStrength> back = decode<TaskStrength>(object, "strength");
  if (!back)
    return makeError(ErrorKind::BadInput,
                     "a task's test that could not be read back: " +
                         llvm::toString(back.takeError()));
  std::string path = strengthPath(store, strength.taskKey, strength.isModelled);
  std::string text = printSealed(std::move(object));
  if (llvm::Error error = checkSize("strength", text.size(), maxJsonBytes))
    return error;
  if (llvm::Error error = checkNoLinks(store, path))
    return error;
  std::string there;
  llvm::Expected<TaskStrength> known =
      loadStrength(path, strength.taskKey, strength.isModelled, there);
  if (!known) {
    llvm::Error error = known.takeError();
    bool isNewer = kindOf(error) == ErrorKind::Unsupported;
    llvm::consumeError(std::move(error));
    if (isNewer) // A later program's to keep.
      return llvm::Error::success();
  }
  return there == text ? llvm::Error::success()
                       : writeFileAtomically(path, text);
}

llvm::Expected<std::optional<TaskStrength>>
fsr::store::findStrength(llvm::StringRef store, llvm::StringRef taskKey,
                         bool isModelled) {
  if (llvm::Error error = checkDigest("task key", taskKey))
    return std::move(error);
  std::string text;
  llvm::Expected<TaskStrength> known = loadStrength(
      strengthPath(store, taskKey, isModelled), taskKey, isModelled, text);
  if (known)
    return std::optional<TaskStrength>(std::move(*known));
  llvm::consumeError(known.takeError());
  return std::nullopt;
}
