// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one line that is said before money can be spent: what is to come, what it
// can cost, and what there is for it.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Search.h"
#include "fsr/Support/Counted.h"

#include "llvm/Support/FormatVariadic.h"

namespace fsr {

std::string describe(const SearchForecast &forecast) {
  const ChatForecast &cost = forecast.cost;
  std::string text = "at most " + counted(forecast.answers, "answer") +
                     " to come, for at most ";
  if (cost.usd)
    text += llvm::formatv("{0:F4} USD, ", *cost.usd).str();
  text += llvm::formatv("{0} tokens", cost.tokens).str();
  if (!cost.usd)
    text += "; no price is known, money is not counted";
  std::string caps;
  if (cost.capUsd > 0)
    caps = llvm::formatv("{0:F4} of {1:F4} USD", cost.before.usd, cost.capUsd);
  if (cost.capTokens > 0)
    caps += llvm::formatv("{0}{1} of {2} tokens", caps.empty() ? "" : ", ",
                          cost.before.promptTokens + cost.before.answerTokens,
                          cost.capTokens)
                .str();
  return text + "; " +
         (caps.empty() ? "no cap" : "spent so far of the cap: " + caps);
}

} // namespace fsr
