// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The text form of fill recipes: every family, and every refusal.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/KernelTask.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace fsr;

namespace {

std::string reprint(llvm::StringRef text) {
  llvm::Expected<FillRecipe> recipe = FillRecipe::parse(text);
  return recipe ? recipe->print() : llvm::toString(recipe.takeError());
}

TEST(FillRecipe, EveryFamilyRoundTrips) {
  for (llvm::StringRef text : {"normal(3, 5)",
                               "uniform(-1.5, 2)",
                               "loguniform(1e-30, 1e+30)",
                               "bernoulli(0.5)",
                               "signs(0.25)",
                               "integers(-4, 4)",
                               "equal(0.1)",
                               "equal(-inf)",
                               "equal(nan)",
                               "onehot(inf)",
                               "alternating(1e+20, 1e-20)",
                               "zeros",
                               "denormal",
                               "iota",
                               "equal(0.30000000000000004)",
                               "equal(-0)",
                               "tails(3, 0.01, 100)",
                               "spike(1, -60)",
                               "shiftednormal(-5, 5, 10)",
                               "shifteduniform(-1, 1, 5)",
                               "sines(0.5, 2)",
                               "zipf(0, 255)",
                               "sorted(-1, 1)",
                               "reversed(-1, 1)",
                               "gram(2048)",
                               "drifting(0, 2)",
                               "specials(0.1, 0)",
                               "peaks(16, 256)",
                               "masked(-inf)",
                               "scaled(0.5, 2)",
                               "dominated(0.5, 2, 80)"})
    EXPECT_EQ(reprint(text), text);
}

TEST(FillRecipe, WhitespaceAndDefaults) {
  EXPECT_EQ(reprint("  normal ( 3 ,5 ) "), "normal(3, 5)");
  EXPECT_EQ(reprint("zeros()"), "zeros");
  EXPECT_EQ(reprint("normal"), "normal(0, 1)");
  EXPECT_EQ(FillRecipe().print(), "normal(0, 1)");
  llvm::Expected<FillRecipe> recipe = FillRecipe::parse("normal");
  ASSERT_TRUE(bool(recipe));
  EXPECT_EQ(recipe->parameters, (std::vector<double>{0, 1}));
}

TEST(FillRecipe, Refused) {
  auto refused = [](llvm::StringRef text, llvm::StringRef why) {
    EXPECT_EQ(reprint(text), "fill recipe '" + text.str() + "': " + why.str());
  };
  refused("normal(1)", "got 1 parameters, wanted normal(mean, deviation)");
  refused("normal(1, 2, 3)",
          "got 3 parameters, wanted normal(mean, deviation)");
  refused("normal()", "got 0 parameters, wanted normal(mean, deviation)");
  refused("zeros(1)", "got 1 parameters, wanted zeros");
  refused("uniform", "wanted uniform(low, high)");
  refused("normal(0, -1)", "wanted a deviation of at least 0");
  refused("drifting(0, -1)", "wanted a deviation of at least 0");
  refused("uniform(2, 1)", "wanted low <= high");
  refused("loguniform(0, 1)", "wanted low > 0");
  refused("loguniform(-1, 1)", "wanted low > 0");
  refused("bernoulli(1.5)", "wanted a probability from 0 to 1");
  for (const char *text :
       {"specials(0, 0)", "specials(0.6, 0.6)", "specials(-0.1, 0.2)"})
    refused(text, "wanted probabilities with a sum above 0 and of at most 1");
  refused("peaks(1, 0)", "wanted elements that are 1 to 1024 apart");
  refused("scaled(0, 1)", "wanted low > 0");
  refused("signs(-0.5)", "wanted a probability from 0 to 1");
  refused("integers(0.5, 1)", "wanted integers of at most 2^53 in magnitude");
  refused("integers(0, 1e300)", "wanted integers of at most 2^53 in magnitude");
  refused("integers(3, 2)", "wanted low <= high");
  refused("tails(1, 0.5)",
          "got 2 parameters, wanted tails(deviation, p, size)");
  refused("tails(-1, 0.5, 1)", "wanted a deviation of at least 0");
  refused("tails(1, 1.5, 1)", "wanted a probability from 0 to 1");
  refused("tails(1, 0.5, inf)", "wanted finite parameters");
  refused("spike(-1, 1)", "wanted a deviation of at least 0");
  refused("shiftednormal(0, 1, -1)", "wanted a deviation of at least 0");
  refused("shiftednormal(1, 0, 1)", "wanted low <= high");
  refused("shifteduniform(0, 1, -1)", "wanted a half width of at least 0");
  refused("shifteduniform(1, 0, 1)", "wanted low <= high");
  refused("sines(1, 0)", "wanted low <= high");
  refused("zipf(1, 0)", "wanted low <= high");
  refused("zipf(0, 0.5)", "wanted integers of at most 2^53 in magnitude");
  refused("sorted(1, 0)", "wanted low <= high");
  refused("reversed(1, 0)", "wanted low <= high");
  refused("gram(0)", "wanted rows > 0");
  refused("dominated(2, 1, 0)", "wanted low <= high");
  refused("dominated(-1, 1, 0)", "wanted distances of at least 0");
  refused("dominated(0, 1, -1)", "wanted distances of at least 0");
  refused("normal(nan, 1)", "wanted finite parameters");
  refused("uniform(0, inf)", "wanted finite parameters");
  refused("normal(1, 2", "wanted ')' at the end");
  refused("normal(1, 2) x", "wanted ')' at the end");
  refused("normal(1,, 2)", "got '', wanted a number");
  refused("normal(a, 2)", "got 'a', wanted a number");
  EXPECT_NE(reprint("gauss(0, 1)")
                .find("got family 'gauss', wanted one of "
                      "normal(mean, deviation), uniform("),
            std::string::npos);
  EXPECT_NE(reprint(std::string(10000, 'x')).find("wanted at most 256"),
            std::string::npos);
}

} // namespace
