// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Prices, and the account that keeps a cap. Before a call is sent, its dearest
// possible end is set aside; when its real one is known, the difference is free
// again. Sums are kept in tokens, which are whole numbers, so that no rounding
// piles up over many calls. One thread uses an account.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_LLM_BUDGET_H
#define FSR_LIB_LLM_BUDGET_H

#include "fsr/LLM/ChatClient.h"

namespace fsr {

struct Tokens {
  int64_t prompt = 0, answer = 0;
};

/// US dollars for a million tokens.
struct ModelPrice {
  double prompt = 0, answer = 0;

  double usd(const Tokens &tokens) const {
    return (double(tokens.prompt) * prompt + double(tokens.answer) * answer) /
           1e6;
  }
};

/// The price of `model` in the file options.prices. Errors (BadInput): a file
/// that cannot be read, and no price where a cap in dollars is given.
llvm::Expected<ModelPrice> findPrice(llvm::StringRef model,
                                     const ChatOptions &options);

class Account {
public:
  Account(const ChatBudget &budget, const ModelPrice &price)
      : budget(budget), price(price) {}

  /// Sets `dearest` aside; false where that could pass a cap.
  [[nodiscard]] bool reserve(const Tokens &dearest);
  /// Of a reserved call that never left this machine.
  void release(const Tokens &dearest);
  /// Of a reserved call that ended, at what it cost.
  void settle(const Tokens &dearest, const Tokens &cost);

  /// Why `dearest` does not fit, as a message.
  std::string shortfall(const Tokens &dearest) const;

  ChatSpending spent() const;

private:
  ChatBudget budget;
  ModelPrice price;
  Tokens used, reserved;
  int64_t calls = 0;
};

} // namespace fsr

#endif // FSR_LIB_LLM_BUDGET_H
