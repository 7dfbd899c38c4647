// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a search keeps of its past: trials and talks. A record is an answer and
// must be right; these save work, so a damaged trial counts as none.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_STORE_HISTORY_H
#define FSR_LIB_STORE_HISTORY_H

#include "fsr/Core/Trial.h"
#include "fsr/Support/Files.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsr::store {

llvm::Error addTrial(llvm::StringRef store, const Trial &trial);
llvm::Expected<std::optional<Trial>> findTrial(llvm::StringRef store,
                                               llvm::StringRef taskKey,
                                               llvm::StringRef trialKey);

/// The trial in the file `path`, which the two keys name; `text` becomes its
/// bytes. Errors: Unsupported, of another version; else damaged.
llvm::Expected<Trial> loadTrial(llvm::StringRef path, llvm::StringRef taskKey,
                                llvm::StringRef trialKey, std::string &text);

struct LoadedTalk {
  enum class State { Whole, Missing, Damaged, OtherVersion };
  State state = State::Missing;
  std::string changed; ///< The file whose hash does not match, if one.
  std::string fault;   ///< What is wrong with a damaged one, otherwise.
  std::string json;    ///< Bytes of talk.json.
  Talk talk;
};
LoadedTalk loadTalk(llvm::StringRef path, llvm::StringRef taskKey,
                    int64_t round, int64_t slot);
/// The three files of a whole talk, byte for byte.
std::vector<NamedBytes> filesOf(const LoadedTalk &loaded);
/// The round and slot that a talk's folder is named by.
std::optional<std::pair<int64_t, int64_t>> placeOf(llvm::StringRef name);

llvm::Error addTalk(llvm::StringRef store, const Talk &talk);
llvm::Expected<std::optional<Talk>> findTalk(llvm::StringRef store,
                                             llvm::StringRef taskKey,
                                             int64_t round, int64_t slot);

} // namespace fsr::store

#endif // FSR_LIB_STORE_HISTORY_H
