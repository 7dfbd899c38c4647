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
#include <cmath>

namespace fsr {

static constexpr int64_t formatVersion = 1;
static constexpr uint64_t maxFileBytes = uint64_t(1) << 20;
static constexpr double highestPrice = 1e6;
/// Of one call; a server that reports more is not believed. Keeps the sums of
/// any number of calls far from overflow.
static constexpr int64_t mostTokens = int64_t(1) << 40;

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

llvm::Expected<ModelPrice> findPrice(llvm::StringRef model,
                                     const ChatOptions &options) {
  const ChatBudget &budget = options.budget;
  if (!(budget.usd >= 0) || std::isinf(budget.usd) || budget.tokens < 0)
    return makeError(ErrorKind::BadInput,
                     "budget: expected numbers from 0, where 0 is no limit");
  std::optional<ModelPrice> price;
  if (!options.prices.empty()) {
    auto found = findInFile(model, options.prices);
    if (!found)
      return found.takeError();
    price = *found;
  }
  if (price)
    return *price;
  if (budget.usd > 0)
    return makeError(
        ErrorKind::BadInput,
        "a budget of " + llvm::formatv("{0:F2}", budget.usd) +
            " USD cannot be kept: " +
            (options.prices.empty()
                 ? "no price file is given"
                 : options.prices + " has no price for '" + model + "'"));
  return ModelPrice();
}

static Tokens operator+(const Tokens &a, const Tokens &b) {
  return {a.prompt + b.prompt, a.answer + b.answer};
}

static Tokens operator-(const Tokens &a, const Tokens &b) {
  return {a.prompt - b.prompt, a.answer - b.answer};
}

static int64_t sum(const Tokens &tokens) {
  return tokens.prompt + tokens.answer;
}

bool Account::reserve(const Tokens &dearest) {
  Tokens all = used + reserved + dearest;
  if (budget.tokens > 0 && sum(all) > budget.tokens)
    return false;
  if (budget.usd > 0 && price.usd(all) > budget.usd)
    return false;
  reserved = reserved + dearest;
  return true;
}

void Account::release(const Tokens &dearest) { reserved = reserved - dearest; }

void Account::settle(const Tokens &dearest, const Tokens &cost) {
  release(dearest);
  used = used + Tokens{std::clamp<int64_t>(cost.prompt, 0, mostTokens),
                       std::clamp<int64_t>(cost.answer, 0, mostTokens)};
  ++calls;
}

std::string Account::shortfall(const Tokens &dearest) const {
  if (budget.tokens > 0 && sum(used + reserved + dearest) > budget.tokens)
    return llvm::formatv("budget: a call can take {0} tokens; {1} of {2} are "
                         "left",
                         sum(dearest),
                         std::max<int64_t>(0, budget.tokens - sum(used)),
                         budget.tokens);
  return llvm::formatv("budget: a call can cost {0:F4} USD; {1:F4} of {2:F4} "
                       "are left",
                       price.usd(dearest),
                       std::max(0.0, budget.usd - price.usd(used)), budget.usd);
}

ChatSpending Account::spent() const {
  return {calls, used.prompt, used.answer, price.usd(used)};
}

} // namespace fsr
