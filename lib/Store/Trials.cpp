// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One JSON file a trial, named by the trial's key, with a hash over the rest of
// it. The key covers what was tried and is computed anew from what was read, so
// that a file that was copied to another name is no trial; the hash covers how
// it fared as well.
//
//===----------------------------------------------------------------------===//

#include "History.h"
#include "Layout.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Json.h"

#include "llvm/Support/FileSystem.h"

using namespace fsr;
using namespace fsr::store;

static std::string trialPath(llvm::StringRef store, llvm::StringRef taskKey,
                             llvm::StringRef trialKey) {
  return (store + "/trials/" + taskKey + "/" + trialKey + ".json").str();
}

llvm::Expected<Trial> fsr::store::loadTrial(llvm::StringRef path,
                                            llvm::StringRef taskKey,
                                            llvm::StringRef trialKey,
                                            std::string &text) {
  llvm::Expected<llvm::json::Object> object =
      loadSealed(path, Trial::formatVersion, text);
  if (!object)
    return object.takeError();
  llvm::Expected<Trial> trial = decode<Trial>(std::move(*object), "trial");
  if (trial && (trial->taskKey != taskKey || trial->key() != trialKey))
    return makeError(ErrorKind::Corrupt, "a trial of another key");
  return trial;
}

llvm::Error fsr::store::addTrial(llvm::StringRef store, const Trial &trial) {
  llvm::json::Value json = toJSON(trial);
  llvm::json::Object &object = *json.getAsObject();
  object["format_version"] = Trial::formatVersion;
  llvm::Expected<Trial> back = decode<Trial>(object, "trial");
  if (!back)
    return makeError(ErrorKind::BadInput,
                     "a trial that could not be read back: " +
                         llvm::toString(back.takeError()));
  std::string key = trial.key();
  std::string path = trialPath(store, trial.taskKey, key);
  std::string text = printSealed(std::move(object));
  if (llvm::Error error = checkSize("trial", text.size(), maxJsonBytes))
    return error;
  if (llvm::Error error = checkNoLinks(store, path))
    return error;
  llvm::Expected<bool> written = writeFileOnce(path, text);
  if (!written)
    return written.takeError();
  if (*written)
    return llvm::Error::success();
  std::string found;
  llvm::Expected<Trial> there = loadTrial(path, trial.taskKey, key, found);
  if (there)
    return llvm::Error::success();
  llvm::Error error = there.takeError();
  bool isNewer = kindOf(error) == ErrorKind::Unsupported;
  llvm::consumeError(std::move(error));
  if (isNewer) // A later program's to keep; this one can be run again.
    return llvm::Error::success();
  return writeFileAtomically(path, text);
}

llvm::Expected<std::optional<Trial>>
fsr::store::findTrial(llvm::StringRef store, llvm::StringRef taskKey,
                      llvm::StringRef trialKey) {
  for (auto [what, text] :
       {std::pair<llvm::StringRef, llvm::StringRef>("task key", taskKey),
        {"trial key", trialKey}})
    if (llvm::Error error = checkDigest(what, text))
      return error;
  std::string text;
  llvm::Expected<Trial> trial =
      loadTrial(trialPath(store, taskKey, trialKey), taskKey, trialKey, text);
  if (trial)
    return std::optional<Trial>(std::move(*trial));
  llvm::consumeError(trial.takeError());
  return std::nullopt;
}
