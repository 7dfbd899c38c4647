// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How often the rule of a race is wrong, by simulation: samples with heavy
// tails, drift, neighbours that are alike, and a second place in the pair that
// is a little slower than the first. The seeds are fixed; so is the result.
//
//===----------------------------------------------------------------------===//

#include "RaceRule.h"
#include "TimingSession.h"

#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace fsr;

namespace {

struct Noise {
  double sigma = 0.007; ///< Of a sample; a pair's ratio has 1.4 of it.
  double wildShare = 0; ///< Samples that have five times as much.
  double spikeShare =
      0;             ///< Samples that something else delayed, by up to 20 %.
  double drift = 0;  ///< Of all times, from the first pair to the 128th.
  double memory = 0; ///< How much of a pair's ratio the next one keeps.
  double second = 0; ///< Of who comes second in a pair.
};

class Simulation {
public:
  Simulation(const Noise &noise, uint64_t seed) : noise(noise), random(seed) {}

  /// A pair of samples of kernels, the first `faster` times slower.
  std::pair<RaceSample, RaceSample> pair(double faster) {
    double level = 1 + noise.drift * double(count++) / 128;
    // Stays of one spread whatever it remembers.
    double fresh = std::sqrt(1 - noise.memory * noise.memory);
    common = noise.memory * common + fresh * normal() * noise.sigma;
    double shift = noise.memory > 0 ? common : 0;
    bool candidateFirst = random() & 1;
    RaceSample both[2];
    for (bool isCandidate : {false, true}) {
      double sigma = noise.sigma;
      if (uniform() < noise.wildShare)
        sigma *= 5;
      double us = 100 * level * std::exp(normal() * sigma);
      if (isCandidate)
        us *= std::exp(shift);
      else
        us *= faster;
      if (isCandidate != candidateFirst)
        us *= 1 + noise.second;
      if (uniform() < noise.spikeShare)
        us *= 1 + 0.2 * uniform();
      both[isCandidate].microseconds = us;
      both[isCandidate].clockMhz = 1980;
      // Two microseconds of gaps, and a reading that is not exact.
      both[isCandidate].cycles = (us + 2) * 1980 * (1 + 0.0003 * normal());
    }
    return {both[0], both[1]};
  }

  /// As the worker finds it.
  double noiseFloor(unsigned pairs = 32) {
    std::vector<double> left, right;
    for (unsigned i = 0; i < pairs; ++i) {
      auto [a, b] = pair(1);
      left.push_back(a.microseconds);
      right.push_back(b.microseconds);
    }
    RatioInterval self = pairedRatio(left, right, 0.95);
    return std::max((self.high - self.low) / 2, std::fabs(self.ratio - 1));
  }

  Verdict race(double faster) {
    RaceRule rule(acceptanceMargin(noiseFloor()), 128);
    while (true) {
      while (rule.pairs() < rule.goal()) {
        auto [original, candidate] = pair(faster);
        rule.add(original, candidate, 1980);
      }
      Verdict verdict = rule.judgeNow();
      if (verdict != Verdict::Undecided || rule.pairs() >= rule.wanted())
        return verdict;
    }
  }

private:
  double uniform() { return std::uniform_real_distribution<>(0, 1)(random); }
  double normal() { return std::normal_distribution<>()(random); }

  Noise noise;
  std::mt19937_64 random;
  double common = 0;
  unsigned count = 0;
};

struct Rates {
  double accepted = 0, undecided = 0;
};

Rates ratesOf(const Noise &noise, double faster, unsigned races) {
  Rates rates;
  for (unsigned i = 0; i < races; ++i) {
    Verdict verdict = Simulation(noise, 1000 + i).race(faster);
    rates.accepted += verdict == Verdict::Accepted;
    rates.undecided += verdict == Verdict::Undecided;
  }
  rates.accepted /= races;
  rates.undecided /= races;
  return rates;
}

const Noise plain;
const Noise tails = {0.006, 0.05, 0.03, 0, 0, 0.002};
const Noise drifting = {0.007, 0.02, 0.02, 0.1, 0, 0.002};
const Noise alike = {0.004, 0.02, 0.01, 0.02, 0.7, 0.002};
const Noise quiet = {0.001, 0.02, 0.02, 0, 0, 0.003};
const Noise loud = {0.025, 0.05, 0.05, 0, 0, 0.002};

TEST(RaceRuleTest, EqualKernelsAreNotToldApart) {
  constexpr unsigned races = 200;
  for (const Noise *noise : {&plain, &tails, &drifting, &alike, &quiet, &loud})
    EXPECT_LE(ratesOf(*noise, 1, races).accepted, 0.01)
        << "noise " << noise->sigma;
}

TEST(RaceRuleTest, TwoPercentAreSeenThroughOnePercentOfNoise) {
  constexpr unsigned races = 60;
  for (const Noise *noise : {&plain, &tails, &drifting, &alike, &quiet})
    EXPECT_GE(ratesOf(*noise, 1.02, races).accepted, 0.8)
        << "noise " << noise->sigma;
}

TEST(RaceRuleTest, FivePercentAreSeenThroughOnePercentOfNoise) {
  constexpr unsigned races = 120;
  for (const Noise *noise : {&plain, &tails, &drifting, &alike, &quiet})
    EXPECT_GE(ratesOf(*noise, 1.05, races).accepted, 0.99)
        << "noise " << noise->sigma;
}

RaceSample at(double us, double mhz, double cycles = 0) {
  return {us, cycles, mhz};
}

TEST(RaceRuleTest, APairIsDroppedWhereItsClockChanged) {
  RaceRule rule(0.005, 128);
  EXPECT_TRUE(rule.add(at(100, 1980), at(90, 1930), 1980));
  EXPECT_FALSE(rule.add(at(100, 1980), at(90, 1900), 1980)); // 4 %.
  EXPECT_FALSE(rule.add(at(100, 1400), at(90, 1400), 1980)); // Throttled.
  EXPECT_TRUE(rule.add(at(100, 0), at(90, 0), 1980));        // Not known.
  EXPECT_EQ(rule.pairs(), 2);
  EXPECT_EQ(rule.dropped(), 2);
}

TEST(RaceRuleTest, AGainInTimeAloneIsNone) {
  // As many cycles: the clock was higher, by less than what drops a pair.
  RaceRule rule(0.005, 8), withCycles(0.005, 8), unknown(0.005, 8);
  for (int i = 0; i < 8; ++i) {
    double jitter = 1 + 0.0001 * i;
    withCycles.add(at(100 * jitter, 1960, 196000 * jitter),
                   at(98, 2000, 196000), 1980);
    rule.add(at(100 * jitter, 1980, 198000 * jitter), at(98, 1980, 194040),
             1980);
    unknown.add(at(100 * jitter, 1980), at(98, 1980), 1980);
  }
  EXPECT_EQ(withCycles.judgeNow(), Verdict::Undecided);
  EXPECT_EQ(rule.judgeNow(), Verdict::Accepted);
  EXPECT_EQ(unknown.judgeNow(), Verdict::Accepted);
}

TEST(RaceRuleTest, LooksComeWhereTheNumberOfPairsHasDoubled) {
  RaceRule rule(0.02, 40);
  std::vector<int64_t> goals;
  while (rule.pairs() < rule.wanted()) {
    goals.push_back(rule.goal());
    while (rule.pairs() < rule.goal()) // Around the margin: undecided.
      rule.add(at(rule.pairs() % 2 ? 101 : 103.1, 1980), at(100, 1980), 1980);
    EXPECT_EQ(rule.judgeNow(), Verdict::Undecided);
  }
  EXPECT_EQ(goals, (std::vector<int64_t>{8, 16, 32, 40}));
}

TEST(RaceRuleTest, AFewPairsDecideNothing) {
  RaceRule rule(0.005, 128);
  for (int i = 0; i < 4; ++i)
    rule.add(at(100, 1980), at(50, 1980), 1980);
  EXPECT_EQ(rule.judgeLast(), Verdict::Undecided);
  rule.add(at(100, 1980), at(50, 1980), 1980);
  EXPECT_EQ(rule.judgeLast(), Verdict::Accepted);
}

TEST(TimingSessionTest, NoiseIsKnownForItsClassAndForAWhile) {
  TimingSession session;
  TimingSession::Clock::time_point now = TimingSession::Clock::now();
  auto of = TimingSession::classOf(100, false, false);
  EXPECT_FALSE(session.noise(of, now));
  session.setNoise(of, 0.004, now);
  EXPECT_EQ(session.noise(TimingSession::classOf(120, false, false), now),
            0.004);
  EXPECT_FALSE(session.noise(TimingSession::classOf(300, false, false), now));
  EXPECT_FALSE(session.noise(TimingSession::classOf(100, true, false), now));
  EXPECT_FALSE(session.noise(TimingSession::classOf(100, false, true), now));
  EXPECT_FALSE(session.noise(of, now + std::chrono::minutes(6)));
}

TEST(TimingSessionTest, ARestedDeviceIsNotWarm) {
  TimingSession session;
  TimingSession::Clock::time_point now = TimingSession::Clock::now();
  EXPECT_EQ(session.steadyMhz(now), 0);
  session.setSteady(1980);
  session.touch(now);
  EXPECT_EQ(session.steadyMhz(now + std::chrono::milliseconds(500)), 1980);
  EXPECT_EQ(session.steadyMhz(now + std::chrono::seconds(2)), 0);
  EXPECT_FALSE(session.isUnsteady(now));
  session.setUnsteady(now);
  EXPECT_TRUE(session.isUnsteady(now + std::chrono::seconds(30)));
  EXPECT_FALSE(session.isUnsteady(now + std::chrono::seconds(90)));
}

TEST(RaceRuleTest, ARequestMakesAConfirmationShorterAndNotLonger) {
  EXPECT_EQ(confirmationBudgetMs(0), 60e3);
  EXPECT_EQ(confirmationBudgetMs(2), 2e3);
  EXPECT_EQ(confirmationBudgetMs(3600), 60e3);
}

} // namespace
