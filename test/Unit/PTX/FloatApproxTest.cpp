// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Approximate functions: within the errors that PTX allows, and exact at the
// arguments that it lists.
//
//===----------------------------------------------------------------------===//

#include "FloatHarness.h"

#include <cmath>

using namespace fsr::ptx;
using namespace fsr::ptx::test;

namespace {

uint64_t at(const char *text, uint64_t argument) {
  return FloatRunner(text, 2).one({argument});
}
uint64_t at(const char *text, float argument) {
  return at(text, uint64_t(bits(argument)));
}

const uint64_t infinity = 0x7f800000, minusInfinity = 0xff800000,
               nan32 = 0x7fffffff;

TEST(FloatApprox, ListedArguments) {
  for (const char *text : {"ex2.approx.f32", "ex2.approx.ftz.f32"}) {
    EXPECT_EQ(at(text, -INFINITY), 0u);
    EXPECT_EQ(at(text, INFINITY), infinity);
    EXPECT_EQ(at(text, 0.f), bits(1.f));
    EXPECT_EQ(at(text, -0.f), bits(1.f));
    EXPECT_EQ(at(text, uint64_t(0x80000001)), bits(1.f));
    EXPECT_EQ(at(text, 128.f), infinity);
    EXPECT_EQ(at(text, NAN), nan32);
  }
  EXPECT_NEAR(double(at("ex2.approx.f32", -126.5f)), 0x5a8279, 1);
  EXPECT_EQ(at("ex2.approx.ftz.f32", -126.5f), 0u);
  for (const char *text : {"lg2.approx.f32", "lg2.approx.ftz.f32"}) {
    EXPECT_EQ(at(text, 0.f), minusInfinity);
    EXPECT_EQ(at(text, -0.f), minusInfinity);
    EXPECT_EQ(at(text, INFINITY), infinity);
    EXPECT_EQ(at(text, -1.f), nan32);
    EXPECT_EQ(at(text, -INFINITY), nan32);
    EXPECT_EQ(at(text, NAN), nan32);
    EXPECT_EQ(at(text, 1.f), 0u);
    EXPECT_EQ(at(text, 1024.f), bits(10.f));
  }
  EXPECT_EQ(at("lg2.approx.f32", uint64_t(1)), bits(-149.f));
  EXPECT_EQ(at("lg2.approx.ftz.f32", uint64_t(1)), minusInfinity);
  for (const char *text : {"rsqrt.approx.f32", "rsqrt.approx.ftz.f32"}) {
    EXPECT_EQ(at(text, 0.f), infinity);
    EXPECT_EQ(at(text, -0.f), minusInfinity);
    EXPECT_EQ(at(text, INFINITY), 0u);
    EXPECT_EQ(at(text, -1.f), nan32);
    EXPECT_EQ(at(text, 4.f), bits(.5f));
  }
  EXPECT_EQ(at("rsqrt.approx.ftz.f32", uint64_t(0x80000001)), minusInfinity);
  for (const char *text : {"sin.approx.f32", "sin.approx.ftz.f32"}) {
    EXPECT_EQ(at(text, 0.f), 0u);
    EXPECT_EQ(at(text, -0.f), 0x80000000u);
    EXPECT_EQ(at(text, INFINITY), nan32);
    EXPECT_EQ(at(text, NAN), nan32);
  }
  EXPECT_EQ(at("sin.approx.ftz.f32", uint64_t(0x80000001)), 0x80000000u);
  EXPECT_EQ(at("cos.approx.f32", -0.f), bits(1.f));
  EXPECT_EQ(at("cos.approx.f32", -INFINITY), nan32);
  EXPECT_EQ(at("tanh.approx.f32", -INFINITY), bits(-1.f));
  EXPECT_EQ(at("tanh.approx.f32", -0.f), 0x80000000u);
  EXPECT_EQ(at("tanh.approx.f32", uint64_t(0x80000001)), 0x80000001u);
  EXPECT_EQ(at("tanh.approx.f32", NAN), nan32);
  EXPECT_EQ(FloatRunner("rcp.approx.ftz.f64", 2).one({bits(3.0)}),
            0x3fd5555500000000u);
  EXPECT_EQ(FloatRunner("rcp.approx.ftz.f64", 2).one({0x8000000000000001}),
            0xfff0000000000000u);
  EXPECT_EQ(FloatRunner("rsqrt.approx.ftz.f64", 2).one({bits(3.0)}),
            0x3fe279a700000000u);
  EXPECT_EQ(FloatRunner("rsqrt.approx.f64", 2).one({bits(0.25)}), bits(2.0));
}

struct Bound {
  const char *text;
  double (*exact)(double);
  double from, to;
  double relative, absolute;
};

TEST(FloatApprox, WithinTheErrorsThatPtxAllows) {
  std::mt19937_64 random(13);
  for (const Bound &bound :
       {Bound{"ex2.approx.f32", std::exp2, -126, 127, 0x1p-22, 0},
        Bound{"ex2.approx.ftz.f32", std::exp2, -1, 1, 0x1p-22, 0},
        Bound{"lg2.approx.f32", std::log2, 0.5, 2, 0, 0x1p-22},
        Bound{"lg2.approx.f32", std::log2, 2, 1e38, 0x1p-22, 0},
        Bound{"sin.approx.f32", std::sin, -M_PI, M_PI, 0, 0x1p-20},
        Bound{"cos.approx.f32", std::cos, -M_PI, M_PI, 0, 0x1p-20},
        Bound{"sin.approx.f32", std::sin, -900000, 900000, 0, 0x1p-20},
        Bound{"cos.approx.f32", std::cos, -1e9, 1e9, 0, 0x1p-20},
        Bound{"tanh.approx.f32", std::tanh, -10, 10, 0x1p-11, 0},
        Bound{"tanh.approx.f32", std::tanh, -0.04, 0.04, 0x1p-11, 0},
        Bound{"rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); },
              1e-30, 1e30, 0x1p-22, 0}}) {
    Column arguments;
    for (unsigned i = 0; i < 20000; ++i)
      arguments.push_back(
          bits(float(bound.from + (bound.to - bound.from) *
                                      double(random() >> 11) * 0x1p-53)));
    FloatRunner run(bound.text, 2);
    EXPECT_TRUE(run.op().isApproximate);
    EXPECT_EQ(run.op().opClass, OpClass::Special);
    Column got = run({arguments});
    for (size_t i = 0; i < got.size(); ++i) {
      double exact = bound.exact(double(single(arguments[i])));
      double allowed = std::fabs(exact) * bound.relative + bound.absolute;
      ASSERT_LE(std::fabs(double(single(got[i])) - exact), allowed)
          << bound.text << " of " << single(arguments[i]);
    }
  }
}

TEST(FloatApprox, AllShortArguments) {
  struct Short {
    const char *text;
    const Format &format;
    double (*exact)(double);
    double relative, absolute;
    bool ftz;
  };
  for (const Short &one :
       {Short{"ex2.approx.f16", half, std::exp2, 0x1p-9, 0x1p-24, false},
        Short{"tanh.approx.f16", half, std::tanh, 0, 0x1p-10, false},
        Short{"ex2.approx.ftz.bf16", brain, std::exp2, 0x1p-7, 0x1p-126, true},
        Short{"tanh.approx.bf16", brain, std::tanh, 0, 0x1p-8, false}}) {
    Column all, packed;
    for (uint64_t i = 0; i < 65536; ++i) {
      all.push_back(i);
      packed.push_back(i | (65535 - i) << 16);
    }
    Column got = FloatRunner(one.text, 2)({all});
    Column pairs = FloatRunner(std::string(one.text) + "x2", 2)({packed});
    for (uint64_t i = 0; i < 65536; ++i) {
      ASSERT_EQ(pairs[i] & 0xffff, got[i]);
      ASSERT_EQ(pairs[i] >> 16, got[65535 - i]);
      if (one.format.isNan(i)) {
        ASSERT_EQ(got[i], 0x7fffu);
        continue;
      }
      uint64_t argument = one.ftz ? one.format.flushed(i) : i;
      double exact = one.exact(double(one.format.value(argument)));
      double value = double(one.format.value(got[i]));
      if (std::isinf(value)) {
        ASSERT_GE(exact, double(one.format.value(one.format.infinity() - 1)));
        continue;
      }
      ASSERT_LE(std::fabs(value - exact),
                std::fabs(exact) * one.relative + one.absolute)
          << one.text << " of " << std::hex << i;
    }
  }
}

TEST(FloatApprox, FormsThatThereAreNot) {
  for (const char *text :
       {"ex2.f32", "ex2.approx.f64", "lg2.approx.f16", "sin.approx.f16",
        "tanh.approx.ftz.f32", "ex2.approx.bf16", "rsqrt.rn.f32",
        "rcp.approx.f64", "ex2.approx.sat.f32", "cos.f32"})
    EXPECT_FALSE(FloatRunner(text, 2).isSupported()) << text;
}

} // namespace
