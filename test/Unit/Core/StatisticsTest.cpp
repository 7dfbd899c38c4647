// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Medians, intervals and verdicts, against distributions whose truth is known:
// how often the interval holds the true ratio, over many simulated races.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Statistics.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace fsr;

namespace {

TEST(Statistics, Median) {
  EXPECT_EQ(median({3.0}), 3);
  EXPECT_EQ(median({3.0, 1.0}), 2);
  EXPECT_EQ(median({3.0, 1.0, 2.0}), 2);
  EXPECT_EQ(median({4.0, 1.0, 3.0, 2.0}), 2.5);
  EXPECT_EQ(median({1e308, 1e308}), 1e308);
}

TEST(Statistics, RatioIsOriginalOverCandidate) {
  std::vector<double> original{20, 22, 18, 20, 21, 19, 20, 20};
  std::vector<double> candidate;
  for (double value : original)
    candidate.push_back(value / 2);
  RatioInterval interval = pairedRatio(original, candidate);
  EXPECT_DOUBLE_EQ(interval.ratio, 2);
  EXPECT_DOUBLE_EQ(interval.low, 2);
  EXPECT_DOUBLE_EQ(interval.high, 2);
}

TEST(Statistics, DriftCancelsPairByPair) {
  // A clock that slows down by half during the race.
  std::vector<double> original, candidate;
  for (int i = 0; i < 20; ++i) {
    original.push_back(10 + i * 0.5);
    candidate.push_back((10 + i * 0.5) / 1.1);
  }
  RatioInterval interval = pairedRatio(original, candidate);
  EXPECT_NEAR(interval.ratio, 1.1, 1e-12);
  EXPECT_NEAR(interval.low, 1.1, 1e-12);
  EXPECT_NEAR(interval.high, 1.1, 1e-12);
}

TEST(Statistics, OnePairSaysNothing) {
  RatioInterval interval = pairedRatio({10.0}, {1.0});
  EXPECT_DOUBLE_EQ(interval.ratio, 10);
  EXPECT_EQ(interval.low, 0);
  EXPECT_TRUE(std::isinf(interval.high));
  EXPECT_EQ(judge(interval, 0.01), Verdict::Undecided);
}

TEST(Statistics, TwoPairsAreWide) {
  // Student with one degree of freedom: 12.706 standard errors.
  double spread = std::log(10.0) - std::log(9.0);
  RatioInterval interval = pairedRatio({10.0, 9.0}, {1.0, 1.0});
  double half = 12.706204736 * spread / 2;
  EXPECT_NEAR(std::log(interval.ratio), std::log(90.0) / 2, 1e-9);
  EXPECT_NEAR(std::log(interval.high / interval.ratio), half, 1e-6);
  EXPECT_NEAR(std::log(interval.ratio / interval.low), half, 1e-6);
}

TEST(Statistics, StudentQuantiles) {
  // Symmetric logs make the standard error plain: quantiles from any table.
  auto factor = [](std::vector<double> logs, double confidence) {
    std::vector<double> original, ones(logs.size(), 1.0);
    double squares = 0;
    for (double value : logs) {
      original.push_back(std::exp(value));
      squares += value * value;
    }
    size_t n = logs.size();
    double error = std::sqrt(squares / (n - 1) / n);
    RatioInterval interval = pairedRatio(original, ones, confidence);
    return std::log(interval.high / interval.ratio) / error;
  };
  EXPECT_NEAR(factor({-1, 0, 1}, 0.95), 4.302653, 1e-5);
  EXPECT_NEAR(factor({-1, -1, 1, 1}, 0.95), 3.182446, 1e-5);
  EXPECT_NEAR(factor({-1, -1, 0, 1, 1}, 0.95), 2.776445, 1e-5);
  EXPECT_NEAR(factor({-1, -1, 0, 0, 1, 1}, 0.99), 4.032143, 1e-5);
}

TEST(Statistics, UnusablePairsAreLeftOut) {
  RatioInterval interval =
      pairedRatio({0.0, 10.0, std::nan("")}, {1.0, 5.0, 1.0});
  EXPECT_DOUBLE_EQ(interval.ratio, 2);
  interval = pairedRatio({0.0}, {1.0});
  EXPECT_EQ(interval.low, 0);
  EXPECT_TRUE(std::isinf(interval.high));
}

TEST(Statistics, SameSamplesSameInterval) {
  std::mt19937_64 generator(3);
  std::lognormal_distribution<double> time(1, 0.1);
  std::vector<double> original(31), candidate(31);
  for (size_t i = 0; i < 31; ++i) {
    original[i] = time(generator);
    candidate[i] = time(generator);
  }
  RatioInterval a = pairedRatio(original, candidate);
  RatioInterval b = pairedRatio(original, candidate);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_LT(a.low, a.ratio);
  EXPECT_GT(a.high, a.ratio);
  // Wider where more confidence is asked for.
  RatioInterval wide = pairedRatio(original, candidate, 0.999);
  EXPECT_LT(wide.low, a.low);
  EXPECT_GT(wide.high, a.high);
  // Exchanging the two gives the inverse, but for the ranks' rounding.
  RatioInterval inverse = pairedRatio(candidate, original);
  EXPECT_NEAR(inverse.ratio * a.ratio, 1, 1e-12);
  EXPECT_NEAR(inverse.low * a.high, 1, 0.01);
}

/// The share of simulated races whose interval holds the true ratio, and the
/// share that is judged faster.
struct Coverage {
  double held = 0, accepted = 0;
};

Coverage simulate(size_t pairs, double trueRatio, bool heavyTails) {
  std::mt19937_64 generator(pairs * 2 + heavyTails);
  std::normal_distribution<double> noise(0, 0.02);
  std::uniform_real_distribution<double> unit(0, 1);
  const int races = 500;
  int held = 0, accepted = 0;
  for (int race = 0; race < races; ++race) {
    std::vector<double> original, candidate;
    for (size_t i = 0; i < pairs; ++i) {
      auto sample = [&] {
        // One launch in twenty is disturbed by half its time.
        double disturbed = heavyTails && unit(generator) < 0.05 ? 1.5 : 1;
        return 100 * std::exp(noise(generator)) * disturbed;
      };
      original.push_back(sample());
      candidate.push_back(sample() / trueRatio);
    }
    RatioInterval interval = pairedRatio(original, candidate, 0.95, 500);
    held += interval.low <= trueRatio && trueRatio <= interval.high;
    accepted += judge(interval, 0) == Verdict::Accepted;
  }
  return {held / double(races), accepted / double(races)};
}

/// As often as `simulate` counts it, for pairs that keep a part of the one
/// before.
double heldWhereAlike(size_t pairs, double memory) {
  std::mt19937_64 generator(pairs);
  std::normal_distribution<double> noise(0, 0.01);
  const int races = 400;
  int held = 0;
  for (int race = 0; race < races; ++race) {
    std::vector<double> original, candidate(pairs, 100);
    double shift = noise(generator);
    for (size_t i = 0; i < pairs; ++i) {
      shift =
          memory * shift + std::sqrt(1 - memory * memory) * noise(generator);
      original.push_back(100 * std::exp(shift));
    }
    RatioInterval interval = pairedRatio(original, candidate, 0.95, 400);
    held += interval.low <= 1 && 1 <= interval.high;
  }
  return held / double(races);
}

TEST(Statistics, NeighboursThatAreAlikeCountForLess) {
  // Taken for independent, the 64 would hold the truth 70 % of the time.
  EXPECT_GE(heldWhereAlike(64, 0.6), 0.85);
  EXPECT_GE(heldWhereAlike(128, 0.6), 0.9);
  EXPECT_GE(heldWhereAlike(128, 0), 0.94);
}

TEST(Statistics, MarginGrowsWithTheNoise) {
  EXPECT_EQ(acceptanceMargin(0), 0.005);
  EXPECT_EQ(acceptanceMargin(0.02), 0.02);
  EXPECT_EQ(acceptanceMargin(0.04), 0.08); // Noisy: twice.
}

TEST(Statistics, CoverageOfTheInterval) {
  for (size_t pairs : {2, 3, 5, 6, 7, 8, 10, 15, 40})
    for (bool heavyTails : {false, true}) {
      Coverage a = simulate(pairs, 1, heavyTails);
      EXPECT_GE(a.held, 0.925) << pairs << " pairs, tails " << heavyTails;
      EXPECT_LE(a.held, 0.999) << pairs << " pairs, tails " << heavyTails;
      // An original raced against itself is seldom called faster.
      EXPECT_LE(a.accepted, 0.05) << pairs << " pairs, tails " << heavyTails;
    }
}

TEST(Statistics, RealGainsAreFound) {
  Coverage gain = simulate(30, 1.05, false);
  EXPECT_GE(gain.held, 0.925);
  EXPECT_GE(gain.accepted, 0.99);
}

TEST(Statistics, Judge) {
  EXPECT_EQ(judge({1.2, 1.11, 1.3}, 0.1), Verdict::Accepted);
  EXPECT_EQ(judge({1.2, 1.09, 1.3}, 0.1), Verdict::Undecided);
  EXPECT_EQ(judge({1.05, 1.0, 1.09}, 0.1), Verdict::NotFaster);
  EXPECT_EQ(judge({0.5, 0.4, 0.6}, 0), Verdict::NotFaster);
  double nan = std::nan("");
  EXPECT_EQ(judge({nan, nan, nan}, 0), Verdict::Undecided);
  EXPECT_EQ(judge({2, 1.9, 2.1}, nan), Verdict::Undecided);
}

} // namespace
