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

#include <optional>
#include <string>

namespace fsr::store {

llvm::Error addTrial(llvm::StringRef store, const Trial &trial);
llvm::Expected<std::optional<Trial>> findTrial(llvm::StringRef store,
                                               llvm::StringRef taskKey,
                                               llvm::StringRef trialKey);

llvm::Error addTalk(llvm::StringRef store, const Talk &talk);
llvm::Expected<std::optional<Talk>> findTalk(llvm::StringRef store,
                                             llvm::StringRef taskKey,
                                             int64_t round, int64_t slot);

} // namespace fsr::store

#endif // FSR_LIB_STORE_HISTORY_H
