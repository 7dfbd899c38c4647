// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a search keeps of its past: trials, talks and the marks of searches that
// have not ended. A record is an answer and must be right; these save work, so
// a damaged trial counts as none.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_STORE_HISTORY_H
#define FSR_LIB_STORE_HISTORY_H

#include "fsr/Core/TalkFiles.h"
#include "fsr/Core/TaskStrength.h"
#include "fsr/Core/Trial.h"

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
/// bytes. Errors: Unsupported, of a later version; else damaged.
llvm::Expected<Trial> loadTrial(llvm::StringRef path, llvm::StringRef taskKey,
                                llvm::StringRef trialKey, std::string &text);

llvm::Error addStrength(llvm::StringRef store, const TaskStrength &strength);
llvm::Expected<std::optional<TaskStrength>>
findStrength(llvm::StringRef store, llvm::StringRef taskKey, bool isModelled);
/// The name of such a file, without its ending.
std::string kindOfStrength(bool isModelled);
/// As `loadTrial`.
llvm::Expected<TaskStrength> loadStrength(llvm::StringRef path,
                                          llvm::StringRef taskKey,
                                          bool isModelled, std::string &text);

llvm::Error addPeaks(llvm::StringRef store, llvm::StringRef device,
                     llvm::StringRef driver, const DevicePeaks &peaks);
std::optional<DevicePeaks> findPeaks(llvm::StringRef store,
                                     llvm::StringRef device,
                                     llvm::StringRef driver);

/// The round and slot that a talk's folder is named by.
std::optional<std::pair<int64_t, int64_t>> placeOf(llvm::StringRef name);

llvm::Error prepareTalks(llvm::StringRef store, llvm::StringRef taskKey);
llvm::Error addTalk(llvm::StringRef store, const Talk &talk);
llvm::Expected<std::optional<Talk>> findTalk(llvm::StringRef store,
                                             llvm::StringRef taskKey,
                                             int64_t round, int64_t slot);

/// The mark of a search that has not ended is a file. That it is there counts;
/// what it says is for people.
std::string markPath(llvm::StringRef store, llvm::StringRef taskKey);
llvm::Error addMark(llvm::StringRef store, llvm::StringRef taskKey,
                    llvm::StringRef kernelName);
llvm::Error removeMark(llvm::StringRef store, llvm::StringRef taskKey);
/// What such a file says, as far as it can be read.
std::string kernelOfMark(llvm::StringRef path);

} // namespace fsr::store

#endif // FSR_LIB_STORE_HISTORY_H
