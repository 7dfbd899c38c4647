// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The helper kernels, run on the host through the same launches as on a GPU.
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"
#include "HostBackend.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <set>

#define FSR_DEVICE [[maybe_unused]] static inline
#include "kernels/elements.inl"

using namespace fsr;

namespace {

class HelpersTest : public ::testing::Test {
protected:
  HelpersTest() : helpers(llvm::cantFail(Helpers::create(backend))) {}

  template <typename T>
  std::vector<T> filled(FsrFamily family, ElementType element, double a,
                        double b, size_t count, uint64_t seed = 1,
                        uint64_t row = 64, double c = 0) {
    std::vector<T> values(count);
    FsrFill fill{};
    fill.to = reinterpret_cast<uint64_t>(values.data());
    fill.count = count;
    fill.seed = seed;
    fill.row = row;
    fill.a = a;
    fill.b = b;
    fill.c = c;
    fill.element = static_cast<uint32_t>(element);
    fill.family = family;
    llvm::cantFail(helpers->fill(fill));
    return values;
  }

  FsrCompare comparing(const void *out, const void *reference, uint64_t count,
                       uint64_t row, ElementType element, FsrMode mode) {
    FsrCompare compare{};
    compare.out = reinterpret_cast<uint64_t>(out);
    compare.reference = reinterpret_cast<uint64_t>(reference);
    compare.count = count;
    compare.row = row;
    compare.element = static_cast<uint32_t>(element);
    compare.mode = mode;
    compare.layout.rank = 1;
    compare.layout.size[0] = count;
    compare.layout.stride[0] = 1;
    return compare;
  }

  HostBackend backend;
  std::unique_ptr<Helpers> helpers;
};

TEST_F(HelpersTest, PtxIsWholeAndNamesNoFile) {
  llvm::StringRef ptx = helpersPtx();
  for (llvm::StringRef part :
       {".version", ".target sm_75", "fsr_fill", "fsr_spin"})
    EXPECT_TRUE(ptx.contains(part)) << part.str();
  for (llvm::StringRef part : {".file", "/tmp", "//", ".extern"})
    EXPECT_FALSE(ptx.contains(part)) << part.str();
  EXPECT_EQ(ptx.count(".visible .entry"), 15u);
}

// The published first vector of Philox4x32-10: key and counter zero.
TEST_F(HelpersTest, PhiloxGivesThePublishedNumbers) {
  std::vector<uint32_t> words(4, 0);
  llvm::cantFail(
      helpers->mask(reinterpret_cast<uint64_t>(words.data()), 16, 0));
  std::vector<uint32_t> again = words;
  llvm::cantFail(
      helpers->mask(reinterpret_cast<uint64_t>(again.data()), 16, 0));
  EXPECT_EQ(again, std::vector<uint32_t>(4, 0));
  auto numbers = filled<uint64_t>(FsrIntegers, ElementType::I64, 0, -1, 1, 0);
  EXPECT_EQ(numbers[0], 0x6627E8D5E169C58Dull);
}

TEST_F(HelpersTest, MaskHidesEveryWordAndTwiceIsNothing) {
  std::vector<uint32_t> plain(64, 0x3F800000), masked = plain;
  uint64_t at = reinterpret_cast<uint64_t>(masked.data());
  llvm::cantFail(helpers->mask(at, 256, 99));
  for (size_t i = 0; i < 64; ++i)
    EXPECT_NE(masked[i], plain[i]);
  llvm::cantFail(helpers->mask(at, 256, 99));
  EXPECT_EQ(masked, plain);
}

TEST_F(HelpersTest, HalvesConvertBothWays) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    double value = fsrToDouble(bits, FsrF16);
    if (std::isnan(value))
      continue;
    ASSERT_EQ(fsrFromDouble(value, FsrF16), bits);
    _Float16 native;
    uint16_t narrow = bits;
    memcpy(&native, &narrow, 2);
    ASSERT_EQ(double(native), value) << bits;
  }
  // Half way between neighbours: to even.
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    float middle =
        float((fsrToDouble(bits, FsrF16) + fsrToDouble(bits + 1, FsrF16)) / 2);
    ASSERT_EQ(fsrFromDouble(middle, FsrF16), bits + (bits & 1)) << bits;
  }
  for (uint32_t i = 0; i < 200000; ++i) {
    float value = fsrFloat(i * 21474u + 12345u);
    if (std::isnan(value))
      continue;
    _Float16 native = _Float16(value);
    uint16_t wanted;
    memcpy(&wanted, &native, 2);
    ASSERT_EQ(fsrFromDouble(value, FsrF16), wanted) << value;
  }
}

TEST_F(HelpersTest, BrainFloatsRoundToEven) {
  EXPECT_EQ(fsrFromDouble(1.0, FsrBF16), 0x3F80u);
  EXPECT_EQ(fsrFromDouble(fsrFloat(0x3F808000u), FsrBF16), 0x3F80u);
  EXPECT_EQ(fsrFromDouble(fsrFloat(0x3F818000u), FsrBF16), 0x3F82u);
  EXPECT_EQ(fsrFromDouble(fsrFloat(0x3F808001u), FsrBF16), 0x3F81u);
  EXPECT_EQ(fsrToDouble(0xC040, FsrBF16), -3.0);
}

TEST_F(HelpersTest, NormalHasItsMoments) {
  auto single = filled<float>(FsrNormal, ElementType::F32, 3, 5, 100000);
  auto both = filled<double>(FsrNormal, ElementType::F64, 3, 5, 100000);
  double sum[2] = {}, squares[2] = {};
  for (size_t i = 0; i < single.size(); ++i) {
    ASSERT_TRUE(std::isfinite(single[i]) && std::isfinite(both[i]));
    sum[0] += single[i];
    sum[1] += both[i];
    squares[0] += (single[i] - 3.0) * (single[i] - 3.0);
    squares[1] += (both[i] - 3) * (both[i] - 3);
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(sum[i] / 1e5, 3, 0.08);
    EXPECT_NEAR(std::sqrt(squares[i] / 1e5), 5, 0.08);
  }
}

TEST_F(HelpersTest, FamiliesKeepToTheirValues) {
  size_t ones = 0, plus = 0, minus = 0;
  for (float v :
       filled<float>(FsrBernoulli, ElementType::F32, 0.25, 0, 10000)) {
    ASSERT_TRUE(v == 0 || v == 1);
    ones += v == 1;
  }
  EXPECT_NEAR(ones / 1e4, 0.25, 0.03);
  for (float v : filled<float>(FsrSigns, ElementType::F32, 0.5, 0, 10000)) {
    ASSERT_TRUE(v == 0 || v == 1 || v == -1);
    plus += v == 1;
    minus += v == -1;
  }
  EXPECT_NEAR(plus / 1e4, 0.25, 0.03);
  EXPECT_NEAR(minus / 1e4, 0.25, 0.03);
  std::vector<size_t> seen(16);
  for (int8_t v : filled<int8_t>(FsrIntegers, ElementType::I8, -8, 7, 10000)) {
    ASSERT_TRUE(v >= -8 && v <= 7);
    ++seen[v + 8];
  }
  for (size_t count : seen)
    EXPECT_GT(count, 400u);
  for (float v : filled<float>(FsrUniform, ElementType::F32, -2, 2, 10000))
    ASSERT_TRUE(v >= -2 && v <= 2);
  bool negative = false;
  for (float v :
       filled<float>(FsrLogUniform, ElementType::F32, 0.001, 1000, 10000)) {
    ASSERT_TRUE(std::fabs(v) >= 0.00099 && std::fabs(v) <= 1001);
    negative |= v < 0;
  }
  EXPECT_TRUE(negative);
  for (float v : filled<float>(FsrDenormal, ElementType::F32, 0, 0, 1000))
    ASSERT_LT(std::fabs(v), 1.1754944e-38f);
  auto alternating = filled<double>(FsrAlternating, ElementType::F64, 8, 2, 4);
  EXPECT_EQ(alternating, (std::vector<double>{8, 2, 8, 2}));
  auto iota = filled<int32_t>(FsrIota, ElementType::I32, 0, 0, 4);
  EXPECT_EQ(iota, (std::vector<int32_t>{0, 1, 2, 3}));
  auto hot = filled<float>(FsrOneHot, ElementType::F32, 3, 0, 640);
  for (size_t row = 0; row < 10; ++row)
    EXPECT_EQ(
        std::count(hot.begin() + row * 64, hot.begin() + row * 64 + 64, 3.0f),
        1);
  EXPECT_EQ(std::count(hot.begin(), hot.end(), 0.0f), 630);
  for (uint8_t v : filled<uint8_t>(FsrBernoulli, ElementType::I1, 0.5, 0, 100))
    ASSERT_LE(v, 1);
}

TEST_F(HelpersTest, OneOfEachRowIsAboveTheOthers) {
  std::set<float> distances;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    auto values =
        filled<float>(FsrDominated, ElementType::F32, 2, 4, 640, seed, 64, 0);
    EXPECT_EQ(llvm::count(values, 0.0f), 10);
    // One distance a filling, and noise that f16 hardly sees.
    float low = *llvm::min_element(values), high = low;
    for (float v : values)
      if (v != 0)
        high = std::max(high, v);
    EXPECT_TRUE(-low > 1.99 && -low < 4.01) << low;
    EXPECT_LE(high / low, 1);
    EXPECT_NEAR(high / low, 1 - 0x1p-12, 0x1p-14);
    distances.insert(low);
  }
  EXPECT_EQ(distances.size(), 10u);
  // A row's own distance besides.
  auto values =
      filled<float>(FsrDominated, ElementType::F32, 1, 1, 6400, 1, 64, 9);
  float nearest = 99, farthest = 0;
  for (float v : values)
    if (v != 0) {
      nearest = std::min(nearest, -v);
      farthest = std::max(farthest, -v);
    }
  EXPECT_NEAR(nearest, 1.2, 0.2);
  EXPECT_NEAR(farthest, 9.8, 0.2);
}

/// Each turn moves an element up or down, as if the others did not matter.
TEST_F(HelpersTest, EveryTurnMovesByOtherSigns) {
  std::vector<float> plain(512), moved(512);
  std::vector<unsigned> ups(512);
  for (unsigned turn = 0; turn < 9; ++turn) {
    FsrFill fill{};
    std::vector<float> &to = turn ? moved : plain;
    fill.to = reinterpret_cast<uint64_t>(to.data());
    fill.count = 512;
    fill.seed = 3;
    fill.row = 64;
    fill.a = 1;
    fill.b = 2;
    fill.element = static_cast<uint32_t>(ElementType::F32);
    fill.family = FsrUniform;
    fill.perturb = turn ? 0x1p-20 : 0;
    fill.turn = turn ? turn - 1 : 0;
    llvm::cantFail(helpers->fill(fill));
    size_t up = 0;
    for (size_t i = 0; turn && i < 512; ++i) {
      ASSERT_NE(moved[i], plain[i]);
      up += moved[i] > plain[i];
      ups[i] |= unsigned(moved[i] > plain[i]) << (turn - 1);
    }
    if (turn)
      EXPECT_NEAR(up, 256, 60);
  }
  EXPECT_GT(std::set<unsigned>(ups.begin(), ups.end()).size(), 180u);
}

TEST_F(HelpersTest, TailsAndSpikes) {
  size_t plus = 0, minus = 0;
  double squares = 0;
  for (float v :
       filled<float>(FsrTails, ElementType::F32, 3, 0.1, 20000, 1, 64, 100)) {
    plus += v == 100;
    minus += v == -100;
    if (std::fabs(v) != 100)
      squares += double(v) * v;
  }
  EXPECT_NEAR(plus / 2e4, 0.05, 0.01);
  EXPECT_NEAR(minus / 2e4, 0.05, 0.01);
  EXPECT_NEAR(std::sqrt(squares / (20000 - plus - minus)), 3, 0.1);
  plus = minus = 0;
  for (float v : filled<float>(FsrTails, ElementType::F32, 1, 0.5, 1000))
    if (v == 0)
      ++(std::signbit(v) ? minus : plus);
  EXPECT_GT(plus, 200u);
  EXPECT_GT(minus, 200u);
  std::vector<size_t> places;
  for (uint64_t seed : {1, 2, 3}) {
    auto values =
        filled<float>(FsrSpike, ElementType::F32, 1, 60, 1000, seed, 10);
    ASSERT_EQ(std::count(values.begin(), values.end(), 60.0f), 1);
    places.push_back(std::find(values.begin(), values.end(), 60.0f) -
                     values.begin());
    EXPECT_LT(std::fabs(values[places.back() ? 0 : 1]), 6.0f);
  }
  EXPECT_FALSE(places[0] == places[1] && places[1] == places[2]);
}

TEST_F(HelpersTest, SpecialsAreSprinkled) {
  size_t nans = 0, plus = 0, minus = 0, zeros = 0;
  for (float v :
       filled<float>(FsrSpecials, ElementType::F32, 0.1, 0.2, 20000)) {
    nans += std::isnan(v);
    plus += v == HUGE_VALF;
    minus += v == -HUGE_VALF;
    zeros += v == 0;
    if (std::isfinite(v))
      ASSERT_LT(std::fabs(v), 8);
  }
  EXPECT_NEAR(nans / 2e4, 0.1, 0.01);
  EXPECT_NEAR(plus / 2e4, 0.1, 0.01);
  EXPECT_NEAR(minus / 2e4, 0.1, 0.01);
  EXPECT_NEAR(zeros / 2e4, 0.7 / 8, 0.01);
  // One there is in every buffer, however small.
  for (uint64_t seed = 0; seed < 8; ++seed) {
    auto few = filled<double>(FsrSpecials, ElementType::F64, 1e-9, 0, 50, seed);
    EXPECT_EQ(llvm::count_if(few, [](double v) { return std::isnan(v); }), 1);
    auto bits = filled<uint16_t>(FsrSpecials, ElementType::F16, 1, 0, 3, seed);
    EXPECT_EQ(bits, std::vector<uint16_t>(3, 0x7E00));
    bits = filled<uint16_t>(FsrSpecials, ElementType::BF16, 0, 1, 1, seed);
    EXPECT_EQ(bits[0] & 0x7FFF, 0x7F80);
  }
}

TEST_F(HelpersTest, PeaksStandAsFarApartAsTheirRowSays) {
  constexpr int64_t row = 1000, rows = 44;
  bool atEnd[2] = {false, false};
  auto values = filled<float>(FsrPeaks, ElementType::F32, 16, 4, row * rows,
                              /*seed=*/3, row);
  for (int64_t r = 0; r < rows; ++r) {
    // Four of them and more in each row.
    int64_t apart = std::min<int64_t>(int64_t(1) << (2 + r) % 11, 128);
    for (bool negative : {false, true}) {
      std::vector<int64_t> places;
      for (int64_t c = 0; c < row; ++c) {
        float v = values[r * row + c];
        if (negative ? v <= -16 : v >= 16) {
          places.push_back(c);
          EXPECT_LE(std::fabs(v), 24);
        } else if (std::fabs(v) < 16) {
          EXPECT_LT(std::fabs(v), 8);
        }
      }
      // The positive ones give way where both fall on one place.
      EXPECT_GE(places.size(), negative ? 7u : 1u) << r;
      EXPECT_LE(places.size(), 16u);
      for (size_t i = 1; i < places.size(); ++i) {
        EXPECT_EQ((places[i] - places[i - 1]) % apart, 0) << r;
      }
      atEnd[negative] |= !places.empty() && places.back() == row - 1;
    }
  }
  EXPECT_TRUE(atEnd[0] && atEnd[1]);
  // Rows of one element, and of a few.
  for (int64_t few : {1, 2, 3})
    EXPECT_TRUE(llvm::any_of(filled<float>(FsrPeaks, ElementType::F32, 16, 256,
                                           few * 4, /*seed=*/1, few),
                             [](float v) { return std::fabs(v) >= 16; }));
}

TEST_F(HelpersTest, MasksAreRunsAndWholeRows) {
  constexpr int64_t row = 100, rows = 200;
  size_t whole = 0, front = 0, back = 0, none = 0;
  auto values = filled<float>(FsrMasked, ElementType::F32, -HUGE_VAL, 0,
                              row * rows, /*seed=*/5, row);
  for (int64_t r = 0; r < rows; ++r) {
    auto isMasked = [&](int64_t c) {
      return values[r * row + c] == -HUGE_VALF;
    };
    int64_t masked = 0, edges = 0;
    for (int64_t c = 0; c < row; ++c) {
      masked += isMasked(c);
      edges += c > 0 && isMasked(c) != isMasked(c - 1);
    }
    EXPECT_LE(edges, 2);
    whole += masked == row;
    none += masked == 0;
    front += isMasked(0) && masked < row;
    back += isMasked(row - 1) && masked < row;
  }
  EXPECT_GT(whole, 10u);
  EXPECT_GT(none, 10u);
  EXPECT_GT(front, 25u);
  EXPECT_GT(back, 25u);
}

TEST_F(HelpersTest, ScaledRowsHaveASizeEach) {
  constexpr int64_t row = 1000, rows = 50;
  auto values = filled<double>(FsrScaled, ElementType::F64, 0x1p-20, 0x1p20,
                               row * rows, /*seed=*/7, row);
  double least = 1e300, most = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double square = 0;
    for (int64_t c = 0; c < row; ++c)
      square += values[r * row + c] * values[r * row + c];
    least = std::min(least, std::sqrt(square / row));
    most = std::max(most, std::sqrt(square / row));
  }
  EXPECT_GT(least, 0x1p-21);
  EXPECT_LT(least, 0x1p-15);
  EXPECT_GT(most, 0x1p19);
  EXPECT_LT(most, 0x1p21);
}

TEST_F(HelpersTest, MeansAndFactorsAreDrawnOnceAFilling) {
  std::vector<double> means[2], largest;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    double sum = 0, low = 1e9, high = -1e9;
    for (float v : filled<float>(FsrShiftedNormal, ElementType::F32, -50, 50,
                                 1000, seed, 64, 1))
      sum += v;
    means[0].push_back(sum / 1000);
    for (double v : filled<double>(FsrShiftedUniform, ElementType::F64, -50, 50,
                                   1000, seed, 64, 5)) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
    EXPECT_GT(high - low, 9.8);
    EXPECT_LE(high - low, 10);
    means[1].push_back((low + high) / 2);
    low = high = 0;
    for (float v :
         filled<float>(FsrSines, ElementType::F32, 0.5, 2, 1000, seed)) {
      low = std::min<double>(low, v);
      high = std::max<double>(high, v);
    }
    EXPECT_NEAR(low, -high, 0.01);
    largest.push_back(high);
  }
  for (const std::vector<double> &drawn : means) {
    auto [low, high] = std::minmax_element(drawn.begin(), drawn.end());
    EXPECT_LT(*low, -25);
    EXPECT_GT(*low, -51);
    EXPECT_GT(*high, 25);
    EXPECT_LT(*high, 51);
  }
  auto [low, high] = std::minmax_element(largest.begin(), largest.end());
  EXPECT_GT(*low, 0.49);
  EXPECT_LT(*low, 0.9);
  EXPECT_GT(*high, 1.6);
  EXPECT_LE(*high, 2);
}

TEST_F(HelpersTest, ZipfFavoursTheFirst) {
  std::vector<size_t> seen(256);
  for (int32_t v :
       filled<int32_t>(FsrZipf, ElementType::I32, 10, 265, 100000)) {
    ASSERT_TRUE(v >= 10 && v <= 265);
    ++seen[v - 10];
  }
  // log2(2) of log2(257) for the first; the tenth has a seventh of it.
  EXPECT_NEAR(seen[0] / 1e5, 0.125, 0.01);
  EXPECT_NEAR(double(seen[0]) / seen[9], 7.3, 1);
  for (int64_t v : filled<int64_t>(FsrZipf, ElementType::I64, -3, -3, 10))
    EXPECT_EQ(v, -3);
}

TEST_F(HelpersTest, SortedAndReversedAreInOrder) {
  auto up = filled<float>(FsrSorted, ElementType::F32, -1, 1, 1000);
  auto down = filled<float>(FsrReversed, ElementType::F32, -1, 1, 1000);
  EXPECT_TRUE(std::is_sorted(up.begin(), up.end()));
  EXPECT_TRUE(std::is_sorted(down.rbegin(), down.rend()));
  for (const std::vector<float> &values : {up, down}) {
    auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_NEAR(*low, -1, 0.003);
    EXPECT_NEAR(*high, 1, 0.003);
  }
}

TEST_F(HelpersTest, GramIsSymmetricWithALargeDiagonal) {
  auto m = filled<float>(FsrGram, ElementType::F32, 1000, 0, 400, 1, 20);
  double squares = 0, offsets = 0;
  for (size_t r = 0; r < 20; ++r)
    for (size_t c = 0; c < 20; ++c) {
      ASSERT_EQ(m[r * 20 + c], m[c * 20 + r]);
      if (r == c)
        offsets += m[r * 20 + c];
      else
        squares += double(m[r * 20 + c]) * m[r * 20 + c];
    }
  EXPECT_NEAR(offsets / 20, 1000, 50);
  EXPECT_NEAR(std::sqrt(squares / 380), std::sqrt(1000), 6);
}

TEST_F(HelpersTest, FillDependsOnTheSeedAndThePlaceAlone) {
  auto one = filled<float>(FsrNormal, ElementType::F32, 0, 1, 100, 5);
  auto longer = filled<float>(FsrNormal, ElementType::F32, 0, 1, 200, 5);
  auto other = filled<float>(FsrNormal, ElementType::F32, 0, 1, 100, 6);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), longer.begin()));
  EXPECT_NE(one, other);
}

TEST_F(HelpersTest, GuardDamageIsCountedAndPlaced) {
  std::vector<uint8_t> zone(1000);
  for (size_t shift : {0, 1, 3}) {
    uint64_t at = reinterpret_cast<uint64_t>(zone.data()) + shift;
    llvm::cantFail(helpers->setGuard(at, 900));
    EXPECT_EQ(llvm::cantFail(helpers->checkGuard(at, 900)).changed, 0u);
    zone[shift + 17] ^= 1;
    zone[shift + 600] ^= 1;
    ZoneDamage damage = llvm::cantFail(helpers->checkGuard(at, 900));
    EXPECT_EQ(damage.changed, 2u);
    EXPECT_EQ(damage.first, 17u);
    EXPECT_EQ(damage.last, 600u);
  }
}

TEST_F(HelpersTest, HashSeesValuesAndTheirOrder) {
  std::vector<uint32_t> words(100);
  for (size_t i = 0; i < 100; ++i)
    words[i] = i;
  auto hash = [&] {
    return llvm::cantFail(
        helpers->hash(reinterpret_cast<uint64_t>(words.data()), 100, 4));
  };
  uint64_t before = hash();
  EXPECT_EQ(hash(), before);
  std::swap(words[3], words[4]);
  EXPECT_NE(hash(), before);
  std::swap(words[3], words[4]);
  words[99] ^= 0x80000000u;
  EXPECT_NE(hash(), before);
}

TEST_F(HelpersTest, RowMaximumLeavesOutWhatIsNotFinite) {
  std::vector<float> values = {1, -5, 2, INFINITY, 0.5, NAN};
  std::vector<double> maxima(2, -1);
  llvm::cantFail(helpers->rowMaximum(
      comparing(nullptr, values.data(), 6, 3, ElementType::F32, FsrBound),
      reinterpret_cast<uint64_t>(maxima.data())));
  EXPECT_EQ(maxima, (std::vector<double>{5, 0.5}));
  // Those of two buffers together.
  values = {1, 2, 3, 4, 5, 6};
  llvm::cantFail(helpers->rowMaximum(
      comparing(nullptr, values.data(), 6, 3, ElementType::F32, FsrBound),
      reinterpret_cast<uint64_t>(maxima.data()), /*isMore=*/true));
  EXPECT_EQ(maxima, (std::vector<double>{5, 6}));
}

TEST_F(HelpersTest, RowsLongerThanASegment) {
  std::vector<float> values(3 * 5000, 1);
  values[4999] = 7;
  values[5000] = -8;
  std::vector<double> maxima(3);
  llvm::cantFail(
      helpers->rowMaximum(comparing(nullptr, values.data(), 15000, 5000,
                                    ElementType::F32, FsrBound),
                          reinterpret_cast<uint64_t>(maxima.data())));
  EXPECT_EQ(maxima, (std::vector<double>{7, 8, 1}));
}

TEST_F(HelpersTest, CompareByModes) {
  std::vector<float> reference = {0.0f, 1, 2, 4}, out = {-0.0f, 1, 2.5f, 4};
  auto run = [&](FsrMode mode, double factor) {
    FsrCompare compare =
        comparing(out.data(), reference.data(), 4, 4, ElementType::F32, mode);
    double maximum = 4;
    compare.rowMaximum = reinterpret_cast<uint64_t>(&maximum);
    compare.factor = factor;
    return llvm::cantFail(helpers->compare(compare));
  };
  FsrDifference bits = run(FsrBits, 0);
  EXPECT_EQ(bits.failing, 2u);
  EXPECT_EQ(bits.first, 0u);
  FsrDifference value = run(FsrValue, 0);
  EXPECT_EQ(value.failing, 1u);
  EXPECT_EQ(value.first, 2u);
  FsrDifference tight = run(FsrBound, 0.1);
  EXPECT_EQ(tight.failing, 1u);
  EXPECT_DOUBLE_EQ(fsrDouble(tight.worst), 0.5 / 0.4);
  FsrDifference loose = run(FsrBound, 0.2);
  EXPECT_EQ(loose.failing, 0u);
  EXPECT_EQ(loose.bitsDiffer, 2u);
}

TEST_F(HelpersTest, PoisonIsNoNaNOfTheKernels) {
  uint32_t words[2] = {0xFFC0DEADu, 0x7FC00000u};
  uint32_t reference[2] = {0x7FC00000u, 0xFFC0DEADu};
  FsrCompare compare =
      comparing(words, reference, 2, 2, ElementType::F32, FsrValue);
  EXPECT_EQ(llvm::cantFail(helpers->compare(compare)).failing, 0u);
  compare.hasPoison = 1;
  compare.poison = 0xFFC0DEADu;
  FsrDifference difference = llvm::cantFail(helpers->compare(compare));
  EXPECT_EQ(difference.failing, 2u);
  EXPECT_EQ(difference.unwritten, 1u);
}

TEST_F(HelpersTest, CompareFollowsStrides) {
  // Two rows of two, three apart; what lies between is not looked at.
  std::vector<int32_t> reference = {1, 2, 0, 3, 4}, out = {1, 2, 9, 3, 5};
  FsrCompare compare =
      comparing(out.data(), reference.data(), 4, 2, ElementType::I32, FsrBits);
  compare.layout.rank = 2;
  compare.layout.size[0] = compare.layout.size[1] = 2;
  compare.layout.stride[0] = 3;
  compare.layout.stride[1] = 1;
  FsrDifference difference = llvm::cantFail(helpers->compare(compare));
  EXPECT_EQ(difference.failing, 1u);
  EXPECT_EQ(difference.first, 3u);
}

TEST_F(HelpersTest, JudgesByTrueValues) {
  // Two rows; the second one's original is off by 1/4.
  float original[8] = {1, 2, 3, 4, 8.25f, 6, 7, 8};
  float candidate[8] = {1, 2.5f, 3, 4, 8.25f, 6, 7, 7.5f};
  double truth[8] = {1, 2, 3, 4, 8, 6, 7, 8}, rowTruth[2], rowError[2];
  auto pointer = [](auto *from) { return reinterpret_cast<FsrU64>(from); };
  FsrJudge judge{};
  judge.out = pointer(candidate);
  judge.reference = pointer(original);
  judge.truth = pointer(truth);
  judge.rowTruth = pointer(rowTruth);
  judge.rowError = pointer(rowError);
  judge.count = 8;
  judge.row = 4;
  judge.factor = 1.0 / 16;
  judge.explained = 1;
  judge.element = FsrF32;
  judge.layout.rank = 1;
  judge.layout.size[0] = 8;
  judge.layout.stride[0] = 1;
  FsrJudgement found = cantFail(helpers->judge(judge));
  EXPECT_EQ(rowTruth[0], 4);
  EXPECT_EQ(rowTruth[1], 8);
  EXPECT_EQ(rowError[0], 0);
  EXPECT_EQ(rowError[1], 0.25);
  EXPECT_EQ(found.compared, 8u);
  // A quarter is allowed in the first row, three in the second.
  EXPECT_EQ(found.failing, 1u);
  EXPECT_EQ(found.first, 1u);
  double worst;
  std::memcpy(&worst, &found.worst, sizeof(worst));
  EXPECT_EQ(worst, 2);
  EXPECT_EQ(found.summed, 8u);
  EXPECT_EQ(found.outside, 0u);
  EXPECT_EQ(found.ofOriginal, 1.0 / 1024);
  EXPECT_EQ(found.ofCandidate, 1.0 / 64 + 1.0 / 1024 + 1.0 / 256);
  // What is off by more than rounding explains, and what nobody knows.
  judge.explained = 1.0 / 64;
  truth[0] = std::nan("");
  found = cantFail(helpers->judge(judge));
  EXPECT_EQ(found.outside, 1u);
  EXPECT_EQ(found.unknown, 1u);
  // Left alone by the original, written by the candidate; and the reverse.
  judge.hasPoison = 1;
  float poison = 3;
  std::memcpy(&judge.poison, &poison, sizeof(poison));
  candidate[2] = 3.5f;
  candidate[5] = 3;
  found = cantFail(helpers->judge(judge));
  EXPECT_EQ(found.failing, 3u);
  EXPECT_EQ(found.lost, 0u);
  // Within what a row allows, and lost: not where the original has not got it.
  judge.hasPoison = 0;
  original[1] = truth[1] = 0x1p-10;
  original[2] = 0x1p-10;
  truth[2] = 0x1p-11;
  candidate[1] = candidate[2] = 0;
  found = cantFail(helpers->judge(judge));
  EXPECT_EQ(found.lost, 1u);
  judge.tiny = 0x1p-19;
  EXPECT_EQ(cantFail(helpers->judge(judge)).lost, 0u);
}

TEST_F(HelpersTest, StampsTellTheClockAndTheCyclesBetween) {
  backend.clock.mhz = 1500;
  llvm::cantFail(helpers->spin(50));
  llvm::cantFail(helpers->stamp(false));
  backend.clock.pass(100e3);
  llvm::cantFail(helpers->stamp(true));
  ClockReading reading = llvm::cantFail(helpers->clockReading());
  EXPECT_NEAR(reading.clockMhz, 1500, 1);
  // The launch of the second stamp is in between.
  EXPECT_NEAR(reading.cycles, 150e3 + 1500, 10);
}

TEST_F(HelpersTest, StampsOfAnotherSampleDoNotCount) {
  llvm::cantFail(helpers->spin(50));
  llvm::cantFail(helpers->stamp(false));
  llvm::cantFail(helpers->stamp(true));
  llvm::cantFail(helpers->spin(50));
  ClockReading reading = llvm::cantFail(helpers->clockReading());
  EXPECT_EQ(reading.cycles, 0);
  EXPECT_NEAR(reading.clockMhz, 2000, 50); // The hold's own.
}

} // namespace
