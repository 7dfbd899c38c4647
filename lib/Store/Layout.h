// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where things lie in a store, and the caps on reading them: whoever can write
// a store can put anything there. What comes from a caller becomes part of a
// path only through the checks here.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_STORE_LAYOUT_H
#define FSR_LIB_STORE_LAYOUT_H

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsr::store {

constexpr uint64_t maxJsonBytes = uint64_t(16) << 20;
constexpr uint64_t maxTextBytes = uint64_t(16) << 20; ///< Source.
constexpr uint64_t maxFatbinBytes = uint64_t(64) << 20;

/// 64 lower-case hex digits.
bool isDigest(llvm::StringRef text);

/// An error that says that `what` must be a digest, where it is not.
llvm::Error checkDigest(llvm::StringRef what, llvm::StringRef text);

/// An error where `path` or a folder between it and `store` is a symbolic link:
/// one that a checked-out store brought along must not lead a writer elsewhere.
llvm::Error checkNoLinks(llvm::StringRef store, llvm::StringRef path);

/// Fails where the caps above would keep what is written from being read.
llvm::Error checkSize(llvm::StringRef what, size_t bytes, uint64_t cap);

/// The object in a JSON text, or an error of kind Corrupt.
llvm::Expected<llvm::json::Object> parseObject(llvm::StringRef text);

/// The field "format_version", or nothing.
std::optional<int64_t> versionOf(const llvm::json::Object &object);

/// The object of a sealed JSON file, its text as it lies in `text`. Errors:
/// Unsupported, of a later version; Corrupt, of another one, or changed.
llvm::Expected<llvm::json::Object>
loadSealed(llvm::StringRef path, int64_t version, std::string &text);

/// The names in a folder, sorted; none where it is missing.
llvm::Expected<std::vector<std::string>> sortedNames(const std::string &folder);

/// `T` of `object` by its fromJSON; an error (kind Corrupt) says the place.
template <typename T>
llvm::Expected<T> decode(llvm::json::Object object, llvm::StringRef what) {
  llvm::json::Path::Root root(what);
  T value;
  if (fromJSON(llvm::json::Value(std::move(object)), value, root))
    return value;
  return makeError(ErrorKind::Corrupt, llvm::toString(root.getError()));
}

} // namespace fsr::store

#endif // FSR_LIB_STORE_LAYOUT_H
