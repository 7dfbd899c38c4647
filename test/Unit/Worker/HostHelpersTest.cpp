// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the host does in a virtual device's memory is what the helper kernels do
// there: both run on one device, and bytes and answers are the same. Logarithms
// and cosines may differ in their last bits.
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"

#include "fsr/Backend/VirtualBackend.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace fsr;

namespace {

/// So many that several threads take part of them, and a rest.
constexpr uint64_t many = 3 * 16384 + 77;

class HostHelpersTest : public testing::Test {
protected:
  HostHelpersTest()
      : backend(cantFail(openVirtualBackend())),
        byHost(cantFail(Helpers::create(*backend))),
        byKernel(cantFail(Helpers::create(*backend, /*asKernels=*/true))) {
    for (DevicePointer *one : {&a, &b, &truth, &rows, &others})
      *one = cantFail(backend->allocate(many * 8));
  }
  template <typename T = uint8_t>
  std::vector<T> bytesOf(DevicePointer from, uint64_t count) {
    std::vector<T> bytes(count);
    cantFail(backend->copyToHost(bytes.data(), from, count * sizeof(T),
                                 byHost->stream()));
    return bytes;
  }
  FsrFill filling(FsrFamily family, ElementType element) {
    FsrFill fill{};
    fill.to = a;
    fill.count = many;
    fill.seed = 5;
    fill.row = 77;
    fill.a = 0.25;
    fill.b = 3;
    fill.c = 1;
    fill.element = uint32_t(element);
    fill.family = family;
    return fill;
  }
  /// Of every third row a column less, in f32.
  FsrCompare strided() {
    FsrCompare compare{};
    compare.out = a;
    compare.reference = b;
    compare.rowMaximum = rows;
    compare.count = 600 * 40;
    compare.row = 40;
    compare.layout = {2, {600, 40}, {41, 1}};
    compare.element = FsrF32;
    compare.mode = FsrBound;
    compare.factor = 0.25;
    return compare;
  }

  std::unique_ptr<Backend> backend;
  std::unique_ptr<Helpers> byHost, byKernel;
  DevicePointer a = 0, b = 0, truth = 0, rows = 0, others = 0;
};

TEST_F(HostHelpersTest, FillsAreTheSame) {
  for (int family = FsrNormal; family <= FsrSpecials; ++family) {
    for (ElementType element : {ElementType::I8, ElementType::I64,
                                ElementType::F16, ElementType::F32}) {
      if (!isFloat(element) && family != FsrIntegers && family != FsrZipf &&
          family != FsrIota)
        continue;
      FsrFill fill = filling(FsrFamily(family), element);
      uint64_t bytes = many * byteSize(element);
      cantFail(byHost->fill(fill));
      auto mine = bytesOf(a, bytes);
      fill.to = b;
      cantFail(byKernel->fill(fill));
      auto wanted = bytesOf(b, bytes);
      if (element != ElementType::F32) {
        uint64_t differ = 0;
        for (uint64_t i = 0; i < bytes; ++i)
          differ += mine[i] != wanted[i];
        // A last bit, now and then.
        EXPECT_LE(differ, isFloat(element) ? many / 100 : 0)
            << family << " " << nameOf(element).str();
        continue;
      }
      for (uint64_t i = 0; i < many; ++i) {
        float x, y;
        memcpy(&x, &mine[4 * i], 4);
        memcpy(&y, &wanted[4 * i], 4);
        if (std::isfinite(y))
          ASSERT_NEAR(x, y, 2e-5 * std::max(1.0f, std::abs(y)))
              << family << " at " << i;
        else
          ASSERT_EQ(std::isnan(x) ? 0 : x, std::isnan(y) ? 0 : y) << i;
      }
    }
  }
}

TEST_F(HostHelpersTest, PoisonHashMaskAndGuardsAreTheSame) {
  cantFail(byHost->poison(a, many, 2, 0x7FE1));
  cantFail(byKernel->poison(b, many, 2, 0x7FE1));
  EXPECT_EQ(bytesOf(a, many * 2), bytesOf(b, many * 2));

  cantFail(byHost->fill(filling(FsrIntegers, ElementType::I64)));
  for (unsigned size : {1, 2, 4, 8})
    EXPECT_EQ(cantFail(byHost->hash(a, many, size)),
              cantFail(byKernel->hash(a, many, size)));

  auto plain = bytesOf(a, many * 8);
  cantFail(byHost->mask(a, many * 8 - 15, 99));
  EXPECT_NE(bytesOf(a, many * 8), plain);
  cantFail(byKernel->mask(a, many * 8 - 15, 99));
  EXPECT_EQ(bytesOf(a, many * 8), plain);

  cantFail(byHost->setGuard(a, many));
  EXPECT_EQ(cantFail(byKernel->checkGuard(a, many)).changed, 0u);
  for (uint64_t at : {uint64_t(3), many / 2, many - 2})
    cantFail(backend->fill8(a + at, 1, 1, byHost->stream()));
  for (Helpers *one : {byHost.get(), byKernel.get()}) {
    ZoneDamage damage = cantFail(one->checkGuard(a, many));
    EXPECT_EQ(damage.changed, 3u);
    EXPECT_EQ(damage.first, 3u);
    EXPECT_EQ(damage.last, many - 2);
  }
}

TEST_F(HostHelpersTest, ComparisonsAreTheSame) {
  FsrFill fill = filling(FsrIntegers, ElementType::F32);
  fill.a = -8;
  fill.b = 8;
  cantFail(byHost->fill(fill));
  fill.to = b;
  fill.changed = 0.125;
  fill.other = 6;
  cantFail(byHost->fill(fill));
  std::vector<double> maxima;
  for (Helpers *one : {byHost.get(), byKernel.get()}) {
    FsrCompare compare = strided();
    FsrCompare ofReference = compare;
    ofReference.out = 0;
    cantFail(one->rowMaximum(ofReference, rows));
    if (maxima.empty())
      maxima = bytesOf<double>(rows, 600);
    EXPECT_EQ(bytesOf<double>(rows, 600), maxima);
    FsrDifference bound = cantFail(one->compare(compare));
    compare.mode = FsrBits;
    // No place that a rule on bits looks at.
    compare.rowMaximum = 1;
    FsrDifference bits = cantFail(one->compare(compare));
    EXPECT_GT(bits.bitsDiffer, 1000u);
    EXPECT_EQ(bits.failing, bits.bitsDiffer);
    EXPECT_GT(bound.failing, 100u);
    EXPECT_LT(bound.failing, bits.failing);
    static FsrDifference before;
    if (one == byHost.get())
      before = bound;
    EXPECT_EQ(memcmp(&bound, &before, sizeof(bound)), 0);
  }
}

TEST_F(HostHelpersTest, JudgementsAndDummiesAreTheSame) {
  cantFail(byHost->fill(filling(FsrIntegers, ElementType::F32)));
  cantFail(byHost->widen(truth, a, many, ElementType::F32));
  auto widened = bytesOf<double>(truth, many);
  cantFail(byKernel->widen(truth, a, many, ElementType::F32));
  EXPECT_EQ(bytesOf<double>(truth, many), widened);

  FsrFill fill = filling(FsrIntegers, ElementType::F32);
  fill.to = b;
  fill.perturb = 1e-3;
  cantFail(byHost->fill(fill));
  FsrJudge judge{};
  judge.out = b;
  judge.reference = a;
  judge.truth = truth;
  judge.rowTruth = rows;
  judge.rowError = rows + 600 * 8;
  judge.count = 600 * 40;
  judge.row = 40;
  judge.layout = strided().layout;
  judge.element = FsrF32;
  judge.factor = 9.9e-4;
  judge.roundoff = 1e-9;
  FsrJudgement host = cantFail(byHost->judge(judge)),
               kernel = cantFail(byKernel->judge(judge));
  EXPECT_GT(host.failing, 0u);
  EXPECT_LT(host.failing, host.compared);
  EXPECT_NEAR(host.ofCandidate, kernel.ofCandidate, 1e-9 * host.ofCandidate);
  // Sums go by the order of threads.
  EXPECT_EQ(memcmp(&host, &kernel, offsetof(FsrJudgement, ofOriginal)), 0);

  for (FsrRule rule :
       {FsrPlayBits, FsrPlayRight, FsrPlayReversed, FsrPlayOther, FsrPlayAdd}) {
    FsrPlay play{};
    play.right = a;
    play.other = truth;
    play.count = many;
    play.limit = many / 2;
    play.layout = play.otherLayout = {1, {int64_t(many)}, {1}};
    play.element = FsrF32;
    play.rule = rule;
    play.bits = 7;
    std::vector<std::vector<uint8_t>> results;
    for (Helpers *one : {byHost.get(), byKernel.get()}) {
      play.out = one == byHost.get() ? b : others;
      cantFail(byHost->poison(play.out, many, 4, 0x3F800000));
      cantFail(one->play(play));
      results.push_back(bytesOf(play.out, many * 4));
    }
    EXPECT_EQ(results[0], results[1]) << int(rule);
  }
}

/// A kernel would be stopped; the host must not touch what is not there.
TEST_F(HostHelpersTest, WhatLeavesItsAllocationIsAnError) {
  auto fails = [](llvm::Error error) {
    bool failed = bool(error);
    llvm::consumeError(std::move(error));
    return failed;
  };
  EXPECT_FALSE(fails(byHost->poison(a, many, 8, 1)));
  EXPECT_TRUE(fails(byHost->poison(a, many + 1, 8, 1)));
  EXPECT_TRUE(fails(byHost->poison(a, ~uint64_t(0) / 4, 8, 1)));
  EXPECT_TRUE(fails(byHost->poison(0, 1, 8, 1)));
  FsrFill fill = filling(FsrEqual, ElementType::F64);
  fill.to = a + 8;
  EXPECT_TRUE(fails(byHost->fill(fill)));
  for (int64_t stride : {int64_t(2 * many), int64_t(1) << 62, int64_t(-1)}) {
    FsrCompare compare = strided();
    compare.layout.stride[0] = stride;
    EXPECT_TRUE(fails(byHost->compare(compare).takeError())) << stride;
  }
  FsrCompare compare = strided();
  compare.rowMaximum = 0;
  EXPECT_TRUE(fails(byHost->compare(compare).takeError()));
}

} // namespace
