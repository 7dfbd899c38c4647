// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The price file: read, forecast from, and refused before any request where it
// cannot keep the cap.
//
//===----------------------------------------------------------------------===//

#include "Asking.h"
#include "TempFolder.h"

#include "fsr/Support/Files.h"

#include <cmath>

using namespace fsr;

namespace {

class PricesTest : public testing::Test {
protected:
  void SetUp() override {
    options.url = "http://127.0.0.1:9";
    options.prices = folder.path("prices.json");
    options.maxAnswerTokens = 1000;
    write("{\"format_version\": 1, \"models\": {\"m\": "
          "{\"usd_per_million_prompt_tokens\": 1, "
          "\"usd_per_million_answer_tokens\": 10}}}");
  }

  void write(llvm::StringRef text) {
    ASSERT_FALSE(bool(writeFileAtomically(options.prices, text)));
  }

  std::string refusal(const std::string &spec = "openai:m") {
    auto client = makeChatClient(spec, options);
    if (client)
      return "none";
    llvm::Error error = client.takeError();
    EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
    return llvm::toString(std::move(error));
  }

  ChatForecast forecast(const std::vector<std::string> &prompts,
                        size_t later = 0) {
    auto client = makeChatClient("openai:m", options);
    if (!client) {
      ADD_FAILURE() << llvm::toString(client.takeError());
      return {};
    }
    auto made = (*client)->forecast(makeBatch(prompts), later);
    if (!made || !*made) {
      ADD_FAILURE() << llvm::toString(made.takeError());
      return {};
    }
    return **made;
  }

  void expectRefusal(const std::string &part) {
    std::string message = refusal();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  TempFolder folder;
  ChatOptions options;
};

TEST_F(PricesTest, ForecastsTheDearestEnd) {
  ChatForecast one = forecast({std::string(1000, 'p')});
  // 1000 tokens of answer are 0.01 USD, and 1000 bytes of prompt and what is
  // around them at least 0.001.
  EXPECT_GE(*one.usd, 0.011);
  EXPECT_LE(*one.usd, 0.0112);
  EXPECT_GE(one.tokens, 2000);
  EXPECT_LE(one.tokens, 2200);
  EXPECT_NEAR(*forecast({std::string(1000, 'p'), ""}).usd,
              *one.usd + *forecast({""}).usd, 1e-12);
  EXPECT_EQ(*forecast({}).usd, 0);
  EXPECT_EQ(one.before.usd, 0);
  // A later request may show two answers.
  ChatForecast more = forecast({std::string(1000, 'p'), ""}, 3);
  EXPECT_NEAR(*more.usd, 4 * *one.usd + *forecast({""}).usd + 3 * 0.002, 1e-12);
}

TEST_F(PricesTest, WithoutPricesThereAreTokensOnly) {
  options.prices.clear();
  ChatForecast none = forecast({std::string(1000, 'p')});
  EXPECT_FALSE(none.usd);
  EXPECT_GE(none.tokens, 2000);
}

TEST_F(PricesTest, ACapThatNobodyGaveFollowsThePrice) {
  auto expectCaps = [&](double usd, int64_t tokens) {
    ChatForecast made = forecast({"p"});
    EXPECT_EQ(made.capUsd, usd);
    EXPECT_EQ(made.capTokens, tokens);
  };
  expectCaps(5, 0);
  options.budget.tokens = 1000;
  expectCaps(5, 1000);
  options.budget = {0, std::nullopt};
  expectCaps(0, 0);
  // Without a price.
  options.prices.clear();
  expectCaps(0, 0);
  options.budget = {};
  expectCaps(0, 1000000);
  options.budget.tokens = 0;
  expectCaps(0, 0);
  options.budget.tokens = 1000;
  expectCaps(0, 1000);
}

TEST_F(PricesTest, ACapInDollarsThatIsAskedForNeedsAPrice) {
  EXPECT_EQ(refusal("openai:other"), "none");
  options.budget.usd = 5;
  EXPECT_EQ(refusal(), "none");
  EXPECT_EQ(refusal("openai:other"),
            "llm 'openai:other': a budget of 5.00 USD cannot be kept: " +
                options.prices + " has no price for 'other'");
  options.prices.clear();
  EXPECT_EQ(refusal(), "llm 'openai:m': a budget of 5.00 USD cannot be kept: "
                       "no price file is given");
  options.budget = {0, 1000};
  EXPECT_EQ(refusal(), "none");
}

TEST_F(PricesTest, ABadFileIsNamed) {
  auto one = [](const std::string &fields) {
    return "{\"format_version\": 1, \"models\": {\"m\": " + fields + "}}";
  };
  write("{");
  expectRefusal("prices.json: ");
  write("[]");
  expectRefusal("prices.json: expected an object");
  write("{\"models\": {}}");
  expectRefusal("format_version: expected 1");
  write("{\"format_version\": 2, \"models\": {}}");
  expectRefusal("format_version: expected 1");
  write("{\"format_version\": 1}");
  expectRefusal("models: expected an object");
  write(one("3"));
  expectRefusal("models: m: expected an object");
  write(one("{\"usd_per_million_prompt_tokens\": 1}"));
  expectRefusal("models: m: usd_per_million_answer_tokens: expected a number");
  write(one("{\"usd_per_million_prompt_tokens\": -1}"));
  expectRefusal("usd_per_million_prompt_tokens: expected a number from 0");
  write(one("{\"usd_per_million_prompt_tokens\": 1e7}"));
  expectRefusal("usd_per_million_prompt_tokens: expected a number from 0");
  options.prices = folder.path("gone.json");
  expectRefusal("gone.json");
}

TEST_F(PricesTest, NumbersThatMakeNoSense) {
  for (double usd : {-1.0, 1e10, double(INFINITY), double(NAN)}) {
    options.budget.usd = usd;
    expectRefusal("option budget-usd: got ");
    // A command costs nothing that is known, and a cap is a number all the
    // same.
    auto command = makeChatClient("exec:cat", options);
    ASSERT_FALSE(bool(command));
    std::string error = llvm::toString(command.takeError());
    EXPECT_NE(error.find("wanted 0 (no limit) to 1000000000 dollars"),
              std::string::npos)
        << error;
  }
  options.budget = {0, -1};
  expectRefusal("option budget-tokens: got -1");
  options.budget = {};
  options.maxAnswerTokens = 0;
  expectRefusal("tokens of an answer: expected 1 to");
}

} // namespace
