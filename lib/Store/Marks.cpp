// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Searches that have not ended: one small file a task, there from before the
// first request until the search has come to an end of its own. A kill, a
// provider that fails and an answer that is still to come leave it there.
//
//===----------------------------------------------------------------------===//

#include "History.h"
#include "Layout.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Json.h"

#include "llvm/Support/FileSystem.h"

using namespace fsr;
using namespace fsr::store;

static constexpr int64_t markVersion = 1;

std::string fsr::store::markPath(llvm::StringRef store,
                                 llvm::StringRef taskKey) {
  return (store + "/searches/" + taskKey + ".json").str();
}

llvm::Error fsr::store::addMark(llvm::StringRef store, llvm::StringRef taskKey,
                                llvm::StringRef kernelName) {
  if (llvm::Error error = checkDigest("task key", taskKey))
    return error;
  std::string path = markPath(store, taskKey);
  if (llvm::Error error = checkNoLinks(store, path))
    return error;
  return writeFileOnce(path, printJson(llvm::json::Object{
                                 {"format_version", markVersion},
                                 {"kernel", llvm::json::fixUTF8(kernelName)}}))
      .takeError();
}

llvm::Error fsr::store::removeMark(llvm::StringRef store,
                                   llvm::StringRef taskKey) {
  if (llvm::Error error = checkDigest("task key", taskKey))
    return error;
  std::string path = markPath(store, taskKey);
  if (llvm::Error error = checkNoLinks(store, path))
    return error;
  if (std::error_code code = llvm::sys::fs::remove(path))
    return makeError(ErrorKind::Unavailable,
                     "cannot remove '" + path + "': " + code.message());
  return llvm::Error::success();
}

std::string fsr::store::kernelOfMark(llvm::StringRef path) {
  llvm::Expected<std::string> text = readFile(path, maxJsonBytes);
  if (!text) {
    llvm::consumeError(text.takeError());
    return "";
  }
  llvm::Expected<llvm::json::Object> object = parseObject(*text);
  if (!object) {
    llvm::consumeError(object.takeError());
    return "";
  }
  return object->getString("kernel").value_or("").str();
}
