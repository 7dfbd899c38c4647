// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A server that keeps its own books, charges up to the last token that it may,
// and breaks down at random after charging; and a price file for its model.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_LLM_CHARGINGFIXTURE_H
#define FSR_TEST_UNIT_LLM_CHARGINGFIXTURE_H

#include "ServerFixture.h"
#include "TempFolder.h"

#include "fsr/Support/Files.h"

namespace fsr {

class ChargingFixture : public ServerFixture {
protected:
  static constexpr double promptPrice = 3, answerPrice = 15;

  void SetUp() override {
    ServerFixture::SetUp();
    if (IsSkipped() || HasFatalFailure())
      return;
    options.prices = folder.path("prices.json");
    ASSERT_FALSE(bool(writeFileAtomically(
        options.prices, "{\"format_version\": 1, \"models\": {\"m\": "
                        "{\"usd_per_million_prompt_tokens\": 3, "
                        "\"usd_per_million_answer_tokens\": 15}}}")));
  }

  struct Books {
    int64_t prompt, answer;
    int64_t tokens() const { return prompt + answer; }
    double usd() const {
      return (double(prompt) * promptPrice + double(answer) * answerPrice) /
             1e6;
    }
  };
  static Books charged() {
    llvm::json::Object stats = server->stats();
    return {stats.getInteger("prompt_tokens").value_or(-1),
            stats.getInteger("answer_tokens").value_or(-1)};
  }

  TempFolder folder;
};

} // namespace fsr

#endif // FSR_TEST_UNIT_LLM_CHARGINGFIXTURE_H
