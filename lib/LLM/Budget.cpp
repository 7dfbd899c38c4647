// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// docs/formats/prices.md is the reference of the price file, and
// docs/design/providers.md says what is counted.
//
//===----------------------------------------------------------------------===//

#include "Budget.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Json.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace fsr {

static constexpr int64_t formatVersion = 1;
static constexpr uint64_t maxFileBytes = uint64_t(1) << 20;
static constexpr double highestPrice = 1e6;

static llvm::Expected<double> readPrice(const llvm::json::Object &model,
                                        llvm::StringRef field) {
  const llvm::json::Value *value = model.get(field);
  std::optional<double> price =
      value ? value->getAsNumber() : std::optional<double>();
  // Written so that a NaN is refused too.
  if (!price || !(*price >= 0 && *price <= highestPrice))
    return makeError(ErrorKind::BadInput,
                     field + ": expected a number from 0 to 1000000");
  return *price;
}

static llvm::Expected<std::optional<ModelPrice>>
findInFile(llvm::StringRef model, llvm::StringRef path) {
  auto text = readFile(path, maxFileBytes);
  if (!text)
    return makeError(ErrorKind::BadInput, llvm::toString(text.takeError()));
  auto refuse = [&](const llvm::Twine &message) {
    return makeError(ErrorKind::BadInput, path + ": " + message);
  };
  auto json = parseJson(*text);
  if (!json)
    return refuse(llvm::toString(json.takeError()));
  const llvm::json::Object *root = json->getAsObject();
  if (!root)
    return refuse("expected an object");
  if (root->getInteger("format_version") != formatVersion)
    return refuse("format_version: expected " + llvm::Twine(formatVersion));
  const llvm::json::Object *models = root->getObject("models");
  if (!models)
    return refuse("models: expected an object");
  const llvm::json::Value *found = models->get(model);
  if (!found)
    return std::nullopt;
  const llvm::json::Object *fields = found->getAsObject();
  if (!fields)
    return refuse("models: " + model + ": expected an object");
  auto prompt = readPrice(*fields, "usd_per_million_prompt_tokens");
  if (!prompt)
    return addContext(prompt.takeError(), path + ": models: " + model);
  auto answer = readPrice(*fields, "usd_per_million_answer_tokens");
  if (!answer)
    return addContext(answer.takeError(), path + ": models: " + model);
  return ModelPrice{*prompt, *answer};
}

llvm::Expected<Terms> findTerms(llvm::StringRef model,
                                const ChatOptions &options) {
  const ChatBudget &budget = options.budget;
  Terms terms;
  terms.capUsd = budget.usd.value_or(0);
  terms.capTokens = budget.tokens.value_or(0);
  if (llvm::Error error = checkBudget(budget))
    return std::move(error);
  if (!options.prices.empty()) {
    auto found = findInFile(model, options.prices);
    if (!found)
      return found.takeError();
    terms.price = *found;
  }
  if (terms.price) {
    terms.capUsd = budget.usd.value_or(ChatBudget::defaultUsd);
    return terms;
  }
  if (terms.capUsd > 0)
    return makeError(
        ErrorKind::BadInput,
        "a budget of " + llvm::formatv("{0:F2}", terms.capUsd) +
            " USD cannot be kept: " +
            (options.prices.empty()
                 ? "no price file is given"
                 : options.prices + " has no price for '" + model + "'"));
  if (!budget.usd)
    terms.capTokens = budget.tokens.value_or(ChatBudget::defaultTokens);
  return terms;
}

llvm::Error Account::count(llvm::ArrayRef<std::string> taskKeys) {
  return ledger ? ledger->count(taskKeys) : llvm::Error::success();
}

Cost Account::costOf(const Tokens &tokens) const {
  Cost cost{tokens, std::nullopt};
  if (terms.price)
    cost.usd = usd(tokens);
  return cost;
}

bool Account::fits(const Tokens &dearest, const Spent &byOthers) const {
  Tokens all = used + reserved + dearest;
  if (terms.capTokens > 0 &&
      all.sum() + byOthers.tokens.sum() > terms.capTokens)
    return false;
  return !(terms.capUsd > 0 && usd(all) + usd(byOthers) > terms.capUsd);
}

llvm::Expected<std::optional<Reservation>>
Account::reserve(const ChatRequest &request, const Tokens &dearest) {
  Reservation reservation{dearest, request.taskKey, 0};
  if (!ledger) {
    if (!fits(dearest, others))
      return std::nullopt;
  } else {
    if (llvm::Error error = ledger->count(request.taskKey))
      return error;
    auto call =
        ledger->setAside(request, costOf(dearest), [&](const Spent &byOthers) {
          others = byOthers;
          return fits(dearest, byOthers);
        });
    if (!call)
      return addContext(call.takeError(), "budget");
    if (!*call)
      return std::nullopt;
    reservation.call = **call;
  }
  reserved = reserved + dearest;
  return reservation;
}

void Account::writeDown(const Reservation &reservation, const Tokens &cost) {
  // Where it cannot be written the dearest stays, and no cap is passed.
  if (ledger)
    llvm::consumeError(
        ledger->settle(reservation.taskKey, reservation.call, costOf(cost)));
}

void Account::release(const Reservation &reservation) {
  reserved = reserved - reservation.dearest;
  writeDown(reservation, {});
}

void Account::settle(const Reservation &reservation, const Tokens &cost) {
  Tokens believed{std::clamp<int64_t>(cost.prompt, 0, mostTokens),
                  std::clamp<int64_t>(cost.answer, 0, mostTokens)};
  reserved = reserved - reservation.dearest;
  used = used + believed;
  ++calls;
  writeDown(reservation, believed);
}

std::string Account::shortfall(const Tokens &dearest) const {
  int64_t tokens = used.sum() + others.tokens.sum();
  if (terms.capTokens > 0 &&
      tokens + reserved.sum() + dearest.sum() > terms.capTokens)
    return llvm::formatv("budget: a call can take {0} tokens; {1} of {2} are "
                         "left",
                         dearest.sum(),
                         std::max<int64_t>(0, terms.capTokens - tokens),
                         terms.capTokens);
  return llvm::formatv("budget: a call can cost {0:F4} USD; {1:F4} of {2:F4} "
                       "are left",
                       usd(dearest),
                       std::max(0.0, terms.capUsd - usd(used) - usd(others)),
                       terms.capUsd);
}

llvm::Expected<ChatForecast> Account::forecast(const Tokens &tokens) {
  if (ledger) {
    auto read = ledger->others();
    if (!read)
      return addContext(read.takeError(), "budget");
    others = *read;
  }
  ChatForecast forecast;
  forecast.tokens = tokens.sum();
  forecast.usd = costOf(tokens).usd;
  forecast.capUsd = terms.capUsd;
  forecast.capTokens = terms.capTokens;
  forecast.before = {others.calls + calls, others.tokens.prompt + used.prompt,
                     others.tokens.answer + used.answer,
                     usd(others) + usd(used)};
  return forecast;
}

ChatSpending Account::spent() const {
  return {calls, used.prompt, used.answer, usd(used)};
}

} // namespace fsr
