// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rule at its edges: what is just allowed, and what is just too much.
//
//===----------------------------------------------------------------------===//

#include "OracleRule.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace fsr;

namespace {

class OracleRuleTest : public ::testing::Test {
protected:
  void fill(size_t count, double bound, double originalError,
            double candidateError) {
    std::mt19937 engine(5);
    for (size_t i = 0; i < count; ++i) {
      double value = 1 + double(engine() % 1000) / 1024;
      elements.push_back({i, i, value, bound});
      double sign = engine() % 2 ? 1 : -1;
      original.push_back(value + sign * originalError);
      sign = engine() % 2 ? 1 : -1;
      candidate.push_back(value + sign * candidateError);
    }
  }
  TruthAnswer judge() {
    std::vector<uint64_t> of, to;
    for (size_t i = 0; i < elements.size(); ++i) {
      of.push_back(bits(original[i]));
      to.push_back(bits(candidate[i]));
    }
    TruthQuestion question;
    question.type = ElementType::F32;
    question.elements = elements;
    question.original = of;
    question.candidate = to;
    question.row = 8;
    question.accumulation = 64;
    return judgeByTruth(question);
  }
  static uint64_t bits(double value) {
    float narrow = float(value);
    uint32_t word;
    memcpy(&word, &narrow, 4);
    return word;
  }

  std::vector<TrueElement> elements;
  std::vector<double> original, candidate;
};

constexpr double u = 0x1p-24;

TEST_F(OracleRuleTest, OneElementJustBeyondTheBound) {
  fill(256, 8 * u, 4 * u, 4 * u);
  TruthAnswer answer = judge();
  EXPECT_EQ(answer.failing, 0u);
  EXPECT_EQ(answer.compared, 256u);
  EXPECT_FALSE(answer.isNarrower());
  // 64 u, one ulp of 2 u, and u of the row's largest value, which is below 2.
  double largest = 0;
  for (size_t i = 72; i < 80; ++i)
    largest = std::max(largest, elements[i].value);
  candidate[77] = elements[77].value + 66 * u;
  EXPECT_EQ(judge().failing, 0u);
  candidate[77] = elements[77].value + 68 * u;
  answer = judge();
  EXPECT_EQ(answer.failing, 1u);
  EXPECT_EQ(answer.first, 77u);
  EXPECT_NEAR(answer.worst, 68 / (66 + largest), 1e-6);
  EXPECT_FALSE(answer.accepted[77]);
  EXPECT_TRUE(answer.accepted[78]);
}

TEST_F(OracleRuleTest, ErrorsThatAreEverywhere) {
  fill(1024, 64 * u, 4 * u, 16 * u);
  EXPECT_FALSE(judge().isNarrower());
  elements.clear();
  original.clear();
  candidate.clear();
  fill(1024, 64 * u, 4 * u, 20 * u);
  TruthAnswer answer = judge();
  EXPECT_EQ(answer.failing, 0u);
  EXPECT_TRUE(answer.isNarrower());
  EXPECT_TRUE(answer.isSpread);
  // One wrong element is no narrower type.
  elements.clear();
  original.clear();
  candidate.clear();
  fill(1024, 64 * u, 4 * u, 4 * u);
  candidate[5] += 0.01;
  answer = judge();
  EXPECT_EQ(answer.failing, 1u);
  EXPECT_TRUE(answer.isNarrower());
  EXPECT_FALSE(answer.isSpread);
  EXPECT_EQ(answer.largest, 5u);
  EXPECT_FALSE(answer.isFew);
}

/// Small beside their row, and known well: the candidate has nothing there.
TEST_F(OracleRuleTest, SmallResultsThatAreLost) {
  fill(64, 4 * u, u, u);
  auto small = [&](double value, double bound) {
    for (size_t i = 0; i < elements.size(); i += 8) {
      elements[i].value = original[i] = value;
      elements[i].bound = bound;
      candidate[i] = 0;
    }
  };
  small(0x1p-40, 0x1p-60);
  TruthAnswer answer = judge();
  EXPECT_EQ(answer.failing, 0u);
  EXPECT_EQ(answer.lost, 8u);
  // Where rounding may be as large, another order has nothing either.
  small(0x1p-40, 0x1p-52);
  EXPECT_EQ(judge().lost, 0u);
  small(0x1p-40, 0x1p-60);
  for (size_t i = 0; i < elements.size(); i += 8)
    candidate[i] = 0x1.1p-41;
  EXPECT_EQ(judge().lost, 0u);
}

/// Half an ulp is left where the original is exact.
TEST_F(OracleRuleTest, AnExactOriginal) {
  fill(256, 0, 0, 0);
  TruthAnswer answer = judge();
  EXPECT_FALSE(answer.isNarrower());
  EXPECT_EQ(answer.originalRms, 0);
  for (size_t i = 0; i < candidate.size(); i += 8)
    candidate[i] += 2 * u;
  answer = judge();
  EXPECT_EQ(answer.failing, 0u);
  EXPECT_FALSE(answer.isNarrower());
  for (double &value : candidate)
    value += 2 * u;
  EXPECT_TRUE(judge().isNarrower());
}

/// As in a prefix sum whose first sums are exact: 25 terms on a grid, added in
/// another order, once at a sum that is larger.
TEST_F(OracleRuleTest, AnOrderThatRoundsWhereTheOriginalDoesNot) {
  fill(256, 0, 0, 0);
  for (size_t i = 0; i < elements.size(); i += 8)
    original[i] = candidate[i] = elements[i].value = 64;
  candidate[13] += 16 * u;
  EXPECT_EQ(judge().failing, 0u);
  candidate[13] += 64 * u;
  EXPECT_EQ(judge().failing, 1u);
}

/// A few results that happen to be right prove no accuracy.
TEST_F(OracleRuleTest, LuckOfAFew) {
  fill(4, 64 * u, 0, 8 * u);
  EXPECT_FALSE(judge().isNarrower());
  elements.clear();
  original.clear();
  candidate.clear();
  fill(1024, 64 * u, 0, 8 * u);
  EXPECT_TRUE(judge().isNarrower());
}

TEST_F(OracleRuleTest, TheOriginalOutsideOfItsBound) {
  fill(64, 8 * u, 4 * u, 4 * u);
  EXPECT_FALSE(judge().isOriginalOutside);
  original[9] += 16 * u;
  TruthAnswer answer = judge();
  EXPECT_TRUE(answer.isOriginalOutside);
  EXPECT_EQ(answer.outside, 9u);
}

TEST_F(OracleRuleTest, NotFinite) {
  fill(64, 8 * u, 0, 0);
  original[3] = candidate[3] = NAN;
  original[4] = candidate[4] = INFINITY;
  elements[5].bound = INFINITY;
  candidate[5] = 100;
  TruthAnswer answer = judge();
  EXPECT_EQ(answer.failing, 0u);
  EXPECT_EQ(answer.unbounded, 1u);
  EXPECT_FALSE(answer.accepted[5]);
  EXPECT_TRUE(answer.accepted[4]);
  candidate[4] = -INFINITY;
  EXPECT_EQ(judge().first, 4u);
  candidate[3] = 1;
  EXPECT_EQ(judge().failing, 2u);
}

TEST_F(OracleRuleTest, Ulps) {
  EXPECT_EQ(ulpOf(ElementType::F32, 1), 0x1p-23);
  EXPECT_EQ(ulpOf(ElementType::F32, -1.99), 0x1p-23);
  EXPECT_EQ(ulpOf(ElementType::F32, 0), 0x1p-149);
  EXPECT_EQ(ulpOf(ElementType::F16, 1), 0x1p-10);
  EXPECT_EQ(ulpOf(ElementType::F16, 0x1p-20), 0x1p-24);
  EXPECT_EQ(ulpOf(ElementType::BF16, 4), 0x1p-5);
  EXPECT_EQ(ulpOf(ElementType::F64, 1), 0x1p-52);
}

} // namespace
