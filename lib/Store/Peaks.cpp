// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How fast GPUs are, as they were found: one JSON file a model and driver,
// named by a hash of the two, with a hash over the rest of it. A cache: a file
// that is damaged, or of another time, counts as none and is written anew.
//
//===----------------------------------------------------------------------===//

#include "History.h"
#include "Layout.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Hash.h"
#include "fsr/Support/Json.h"

using namespace fsr;
using namespace fsr::store;

static constexpr int64_t peaksVersion = 1;

static std::string peaksPath(llvm::StringRef store, llvm::StringRef device,
                             llvm::StringRef driver) {
  FieldHasher hasher;
  hasher.add("peaks").add(device).add(driver);
  return (store + "/peaks/" + hasher.digest() + ".json").str();
}

llvm::Error fsr::store::addPeaks(llvm::StringRef store, llvm::StringRef device,
                                 llvm::StringRef driver,
                                 const DevicePeaks &peaks) {
  if (!peaks.isSound())
    return makeError(ErrorKind::BadInput,
                     "peaks of a device that are no rates");
  llvm::json::Value json = toJSON(peaks);
  llvm::json::Object &object = *json.getAsObject();
  object["format_version"] = peaksVersion;
  object["device"] = llvm::json::fixUTF8(device);
  object["driver"] = llvm::json::fixUTF8(driver);
  std::string path = peaksPath(store, device, driver);
  if (llvm::Error error = checkNoLinks(store, path))
    return error;
  return writeFileAtomically(path, printSealed(std::move(object)));
}

std::optional<DevicePeaks> fsr::store::findPeaks(llvm::StringRef store,
                                                 llvm::StringRef device,
                                                 llvm::StringRef driver) {
  std::string text;
  llvm::Expected<llvm::json::Object> object =
      loadSealed(peaksPath(store, device, driver), peaksVersion, text);
  if (!object) {
    llvm::consumeError(object.takeError());
    return std::nullopt;
  }
  llvm::Expected<DevicePeaks> peaks =
      decode<DevicePeaks>(std::move(*object), "peaks");
  if (peaks)
    return *peaks;
  llvm::consumeError(peaks.takeError());
  return std::nullopt;
}
