// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Prices, and the account that keeps a cap. Before a call is sent, its dearest
// possible end is set aside; when its real one is known, the difference is free
// again. Sums of this run are kept in tokens, which are whole numbers, so that
// no rounding piles up over many calls. With a ledger, what other runs spent
// counts too. One thread uses an account.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_LLM_BUDGET_H
#define FSR_LIB_LLM_BUDGET_H

#include "Ledger.h"

namespace fsr {

/// US dollars for a million tokens.
struct ModelPrice {
  double prompt = 0, answer = 0;

  double usd(const Tokens &tokens) const {
    return (double(tokens.prompt) * prompt + double(tokens.answer) * answer) /
           1e6;
  }
};

/// What is known of a model's price, and the caps that follow; 0: no cap.
struct Terms {
  std::optional<ModelPrice> price;
  double capUsd = 0;
  int64_t capTokens = 0;
};

/// By the file options.prices and options.budget. Errors (BadInput): a file
/// that cannot be read, and no price where a cap in dollars was asked for.
llvm::Expected<Terms> findTerms(llvm::StringRef model,
                                const ChatOptions &options);

/// A call whose dearest end is set aside.
struct Reservation {
  Tokens dearest;
  std::string taskKey;
  int64_t call = 0; ///< Of the ledger.
};

class Account {
public:
  /// `ledger` may be null: then a cap is about this account alone.
  Account(const Terms &terms, std::unique_ptr<Ledger> ledger)
      : terms(terms), ledger(std::move(ledger)) {}

  llvm::Error count(llvm::ArrayRef<std::string> taskKeys);

  /// Sets `dearest` aside; nothing where that could pass a cap. An error: it
  /// could not be written down, and the call must not be sent.
  llvm::Expected<std::optional<Reservation>> reserve(const ChatRequest &request,
                                                     const Tokens &dearest);
  /// Of a reserved call that never left this machine.
  void release(const Reservation &reservation);
  /// Of a reserved call that ended, at what it cost.
  void settle(const Reservation &reservation, const Tokens &cost);

  /// Why `dearest` does not fit, as a message.
  std::string shortfall(const Tokens &dearest) const;

  /// What calls that take `tokens` cost, and what there is for them.
  llvm::Expected<ChatForecast> forecast(const Tokens &tokens);

  ChatSpending spent() const;

private:
  double usd(const Tokens &tokens) const {
    return terms.price ? terms.price->usd(tokens) : 0;
  }
  /// What others spent without knowing a price counts at today's.
  double usd(const Spent &spent) const {
    return spent.usd + usd(spent.unpriced);
  }
  Cost costOf(const Tokens &tokens) const;
  bool fits(const Tokens &dearest, const Spent &byOthers) const;
  void writeDown(const Reservation &reservation, const Tokens &cost);

  Terms terms;
  std::unique_ptr<Ledger> ledger;
  Tokens used, reserved;
  Spent others; ///< As last read.
  int64_t calls = 0;
};

} // namespace fsr

#endif // FSR_LIB_LLM_BUDGET_H
