// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A talk as the three files of its folder: talk.json with the hashes of the two
// texts beside it and one over itself. The store writes and reads them, the
// replay of recorded talks reads them: one reader, so that both refuse what was
// changed. docs/formats/store.md is the reference.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_TALKFILES_H
#define FSR_CORE_TALKFILES_H

#include "fsr/Core/Trial.h"
#include "fsr/Support/Files.h"

namespace fsr {

constexpr uint64_t maxTalkTextBytes = uint64_t(16) << 20;
/// Rounds and slots, as parts of a name.
constexpr int64_t maxTalkPlace = 999999999;

/// The folder of a talk below a store. The key must have been checked.
std::string talkFolder(llvm::StringRef store, llvm::StringRef taskKey,
                       int64_t round, int64_t slot);

struct LoadedTalk {
  enum class State {
    Whole,
    Missing,
    Unfinished,   ///< One of the files is missing.
    OtherVersion, ///< Not judged further.
    Changed,      ///< A file does not match its hash.
    Damaged,      ///< No talk, or of another place.
    Unreadable,   ///< A read failed: what it is cannot be said.
  };
  State state = State::Missing;
  std::string fault; ///< One sentence, where it is there but not whole.
  std::string json;  ///< Bytes of talk.json.
  Talk talk;
};

/// Reads and verifies the folder `path`.
LoadedTalk loadTalk(llvm::StringRef path, llvm::StringRef taskKey,
                    int64_t round, int64_t slot);

/// The three files of a talk that is new, and of one that was loaded, byte for
/// byte.
std::vector<NamedBytes> filesOf(const Talk &talk);
std::vector<NamedBytes> filesOf(const LoadedTalk &loaded);

} // namespace fsr

#endif // FSR_CORE_TALKFILES_H
