// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rules of shadow mode one by one: kernels of a few instructions, whose
// true values and bounds are known beforehand.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

#include <cmath>

namespace fsr::ptx {
namespace {

/// Half an ulp of 1.
constexpr double unit32 = 0x1p-24, unit16 = 0x1p-11;

class ShadowTest : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    options.shadow = true;
    shape.block = {1, 1, 1};
    out = cantFail(gpu->allocate(4096));
    clear();
  }
  void clear() { cantFail(gpu->fill(out, 0, 4, 1024)); }

  void setFloat(unsigned word, float value) {
    cantFail(gpu->write(out + word * 4, &value, 4));
  }
  float held(unsigned word) {
    float value;
    cantFail(gpu->read(&value, out + word * 4, 4));
    return value;
  }
  ShadowValue at(unsigned word, Type type = Type::F32) {
    return cantFail(gpu->readShadow(out + word * 4, type));
  }

  LaunchResult launch(llvm::StringRef body, llvm::StringRef before = "") {
    std::string text = kernel(
        ".reg .b16 %h<9>;\n.reg .f64 %d<9>;\n" + body.str() + "exit;", before);
    unsigned module = cantFail(gpu->loadModule(text));
    uint8_t params[8];
    std::memcpy(params, &out, 8);
    llvm::Expected<LaunchResult> result =
        gpu->launch(module, "k", shape, params, options);
    cantFail(gpu->unloadModule(module));
    if (!result) {
      ADD_FAILURE() << toString(result.takeError());
      return {};
    }
    for (const Finding &finding : result->findings)
      ADD_FAILURE() << finding.text();
    return std::move(*result);
  }
  /// `%f1` to `%f3` are the words 0 to 2; `%f4` goes to word 8.
  LaunchResult compute(llvm::StringRef body) {
    return launch("ld.global.f32 %f1, [%out];\nld.global.f32 %f2, [%out+4];\n"
                  "ld.global.f32 %f3, [%out+8];\n" +
                  body.str() + "\nst.global.f32 [%out+32], %f4;\n");
  }
  /// Whether word 8 is known as that, within the bound.
  void expect(double value, double least, double most) {
    ShadowValue got = at(8);
    EXPECT_TRUE(got.isKnown);
    EXPECT_DOUBLE_EQ(got.value, value);
    EXPECT_GE(got.bound, least);
    EXPECT_LE(got.bound, most);
    EXPECT_LE(std::fabs(held(8) - got.value), got.bound);
  }
  /// A third with its rounding, in `%f1`.
  static constexpr const char *third =
      "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f40400000;\n"
      "div.rn.f32 %f1, %f1, %f2;\n";

  std::vector<std::string> remarks(const LaunchResult &result) {
    std::vector<std::string> texts;
    for (const Finding &remark : result.remarks)
      texts.push_back(remark.message);
    return texts;
  }

  uint64_t out = 0;
};

constexpr const char *branches = "a branch depends on a rounded value";
constexpr const char *guards =
    "what a guard lets through depends on a rounded value";
constexpr const char *selects = "a selection depends on a rounded value";
using Texts = std::vector<std::string>;

TEST_F(ShadowTest, SumsAndProducts) {
  setFloat(0, 0.1f);
  setFloat(1, 0.7f);
  setFloat(2, 3.3f);
  double a = 0.1f, b = 0.7f, c = 3.3f;
  compute("add.f32 %f4, %f1, %f2;");
  expect(a + b, unit32 * 0.79, unit32 * 0.81);
  compute("sub.f32 %f4, %f1, %f3;");
  expect(a - c, unit32 * 3.1, unit32 * 3.3);
  compute("mul.f32 %f4, %f1, %f3;");
  expect(a * c, unit32 * 0.32, unit32 * 0.34);
  compute("fma.rn.f32 %f4, %f1, %f2, %f3;");
  expect(a * b + c, unit32 * 3.36, unit32 * 3.39);
  compute("div.rn.f32 %f4, %f1, %f2;");
  expect(a / b, unit32 * 0.14, unit32 * 0.15);
  compute("sqrt.rn.f32 %f4, %f2;");
  expect(std::sqrt(b), unit32 * 0.83, unit32 * 0.84);
  // Directed rounding may be off by twice as much.
  compute("add.rz.f32 %f4, %f1, %f2;");
  expect(a + b, unit32 * 1.59, unit32 * 1.61);
}

TEST_F(ShadowTest, ErrorsAreCarriedOn) {
  setFloat(0, 0.1f);
  setFloat(1, 0.7f);
  setFloat(2, 100);
  // (a + b - 0.8) * 100: what is left of the sum is its rounding.
  compute("add.f32 %f4, %f1, %f2;\nsub.f32 %f4, %f4, 0f3F4CCCCD;\n"
          "mul.f32 %f4, %f4, %f3;");
  double left = (double(0.1f) + double(0.7f) - double(0.8f)) * 100;
  ShadowValue got = at(8);
  EXPECT_DOUBLE_EQ(got.value, left);
  EXPECT_GE(got.bound, 79 * unit32);
  EXPECT_LE(got.bound, 83 * unit32);
  EXPECT_LE(std::fabs(held(8) - got.value), got.bound);
  // Through a quotient, a root and an exponential.
  compute("add.f32 %f4, %f1, %f2;\nrcp.rn.f32 %f4, %f4;\n"
          "sqrt.rn.f32 %f4, %f4;\nex2.approx.ftz.f32 %f4, %f4;");
  double sum = double(0.1f) + double(0.7f);
  expect(std::exp2(1 / std::sqrt(sum)), 0x1p-22, 0x1p-19);
}

TEST_F(ShadowTest, ExactResultsHaveNoBound) {
  setFloat(0, 0.1f);
  setFloat(1, 3);
  setFloat(2, 0.1f);
  compute("add.f32 %f4, %f2, 0f40800000;");
  expect(7, 0, 0);
  compute("mul.f32 %f4, %f1, 0f41000000;");
  expect(double(0.1f) * 8, 0, 0);
  // The same number twice, though it is off by something itself.
  compute("add.f32 %f4, %f1, %f2;\nmov.f32 %f5, %f4;\n"
          "sub.f32 %f4, %f4, %f5;\nadd.f32 %f4, %f4, %f1;");
  expect(0.1f, 0, 0);
  compute("neg.f32 %f4, %f1;\nabs.f32 %f4, %f4;\nmax.f32 %f4, %f4, %f2;");
  expect(3, 0, 0);
}

TEST_F(ShadowTest, UnderflowAddsTheSmallestNumber) {
  setFloat(0, 0x1p-100f);
  setFloat(1, 0x1.8p-45f);
  compute("mul.f32 %f4, %f1, %f2;");
  expect(0x1.8p-145, 0x1p-149, 0x1p-148);
  compute("mul.ftz.f32 %f4, %f1, %f2;");
  expect(0x1.8p-145, 0x1p-126, 0x1p-125);
  EXPECT_EQ(held(8), 0);
}

TEST_F(ShadowTest, OverflowHasNoBound) {
  setFloat(0, 0x1p100f);
  compute("mul.f32 %f4, %f1, %f1;");
  EXPECT_TRUE(at(8).isKnown);
  EXPECT_TRUE(std::isinf(at(8).bound));
  EXPECT_EQ(at(8).value, 0x1p200);
}

TEST_F(ShadowTest, ApproximationsAddWhatPtxAllows) {
  setFloat(0, 0.7f);
  double x = 0.7f;
  compute("ex2.approx.f32 %f4, %f1;");
  expect(std::exp2(x), 0x1p-22 * 1.6, 0x1p-22 * 2.3);
  compute("lg2.approx.f32 %f4, %f1;");
  expect(std::log2(x), 0x1p-22, 0x1p-21);
  compute("rsqrt.approx.f32 %f4, %f1;");
  expect(1 / std::sqrt(x), 0x1p-22, 0x1p-21);
  compute("sin.approx.f32 %f4, %f1;");
  expect(std::sin(x), 0x1p-21, 0x1p-20);
  setFloat(0, 10);
  compute("cos.approx.f32 %f4, %f1;");
  expect(std::cos(10.0), 0x1p-15, 0x1p-14);
  setFloat(0, x);
  compute("tanh.approx.f32 %f4, %f1;");
  expect(std::tanh(x), 0x1p-12, 0x1p-11);
  compute("mov.f32 %f4, 0f00000000;\nex2.approx.f32 %f4, %f4;");
  expect(1, 0, 0);
}

TEST_F(ShadowTest, ExtremesTakeTheBoundOfTheOneTheyChoose) {
  setFloat(0, 0.1f);
  setFloat(1, 0.7f);
  setFloat(2, 9);
  compute("mul.f32 %f4, %f1, %f2;\nmin.f32 %f4, %f4, %f3;");
  expect(double(0.1f) * double(0.7f), unit32 * 0.06, unit32 * 0.08);
  compute("mul.f32 %f4, %f1, %f2;\nmax.f32 %f4, %f4, %f3;");
  expect(9, 0, 0);
}

TEST_F(ShadowTest, ConversionsBetweenFloats) {
  setFloat(0, 0.1f);
  compute("cvt.rn.f16.f32 %h1, %f1;\ncvt.f32.f16 %f4, %h1;");
  expect(0.1f, unit16 * 0.09, unit16 * 0.11);
  compute("cvt.rn.bf16.f32 %h1, %f1;\nmov.b32 %f4, {0, %h1};");
  expect(0.1f, 0x1p-8 * 0.09, 0x1p-8 * 0.11);
  compute("cvt.rn.f16x2.f32 %r1, %f1, %f2;\nmov.b32 {%h1, %h2}, %r1;\n"
          "cvt.f32.f16 %f4, %h2;");
  expect(0.1f, unit16 * 0.09, unit16 * 0.11);
  compute("cvt.f64.f32 %d1, %f1;\nmul.f64 %d1, %d1, %d1;\n"
          "cvt.rn.f32.f64 %f4, %d1;");
  expect(double(0.1f) * double(0.1f), unit32 * 0.009, unit32 * 0.011);
  compute("mov.u32 %r1, 16777217;\ncvt.rn.f32.u32 %f4, %r1;");
  expect(16777217, 0.9, 1.1);
  compute("cvt.rna.tf32.f32 %r1, %f1;\nmov.b32 %f4, %r1;");
  expect(0.1f, unit16 * 0.09, unit16 * 0.11);
}

TEST_F(ShadowTest, PairsOfHalves) {
  compute("mov.b32 %r1, 0x2e66399a;\nmul.rn.f16x2 %r2, %r1, %r1;\n"
          "mov.b32 {%h1, %h2}, %r2;\nmov.b32 %r3, {%h2, %h1};\n"
          "mov.b32 %f4, %r3;");
  ShadowValue high = cantFail(gpu->readShadow(out + 34, Type::F16)),
              low = cantFail(gpu->readShadow(out + 32, Type::F16));
  EXPECT_TRUE(low.isKnown && high.isKnown);
  double a = 0x1.998p-4, b = 0x1.668p-1;
  EXPECT_DOUBLE_EQ(low.value, a * a);
  EXPECT_DOUBLE_EQ(high.value, b * b);
  EXPECT_NEAR(high.bound, unit16 * b * b, unit16 * 0.01);
  EXPECT_FALSE(at(8).isKnown);
}

TEST_F(ShadowTest, PairsOfSingles) {
  setFloat(0, 0.1f);
  setFloat(1, 0.7f);
  compute("mov.b64 %rd1, {%f1, %f2};\nmul.rn.f32x2 %rd2, %rd1, %rd1;\n"
          "add.rn.f32x2 %rd2, %rd2, %rd1;\nmov.b64 {%f5, %f4}, %rd2;\n"
          "st.global.f32 [%out+64], %f5;");
  double a = 0.1f, b = 0.7f;
  expect(b * b + b, unit32 * 1.6, unit32 * 1.7);
  EXPECT_DOUBLE_EQ(at(16).value, a * a + a);
  EXPECT_NEAR(at(16).bound, unit32 * 0.12, unit32 * 0.01);
}

TEST_F(ShadowTest, BitTricksEndIt) {
  compute(std::string(third) + "mov.b32 %r1, %f1;\nadd.u32 %r1, %r1, 1;\n"
                               "mov.b32 %f4, %r1;");
  EXPECT_FALSE(at(8).isKnown);
  EXPECT_EQ(at(8).value, held(8));
  // The sign is no trick.
  compute(std::string(third) + "mov.b32 %r1, %f1;\n"
                               "xor.b32 %r1, %r1, 0x80000000;\n"
                               "mov.b32 %f4, %r1;");
  expect(-1.0 / 3, unit32 * 0.3, unit32 * 0.35);
  compute(std::string(third) + "neg.f32 %f1, %f1;\nmov.b32 %r1, %f1;\n"
                               "and.b32 %r1, %r1, 0x7fffffff;\n"
                               "mov.b32 %f4, %r1;");
  expect(1.0 / 3, unit32 * 0.3, unit32 * 0.35);
}

TEST_F(ShadowTest, RoundingToAnIntegerFollowsWhatIsHeld) {
  setFloat(0, 5.3f);
  compute("add.f32 %f4, %f1, 0f4B400000;\nsub.f32 %f4, %f4, 0f4B400000;\n"
          "sub.f32 %f4, %f1, %f4;");
  expect(double(5.3f) - 5, 0, unit32);
  // The constant in a register, as of another compiler.
  compute("mov.b32 %f5, 0f4B400000;\nadd.rn.f32 %f4, %f1, %f5;\n"
          "add.rn.f32 %f4, %f4, 0fCB400000;\nsub.f32 %f4, %f1, %f4;\n");
  expect(double(5.3f) - 5, 0, unit32);
  // One that may be another is no constant.
  compute("mov.b32 %f5, 0f4B400000;\nsetp.lt.f32 %p1, %f1, 0f00000000;\n"
          "@%p1 mov.b32 %f5, 0f4B400001;\nadd.rn.f32 %f4, %f1, %f5;\n"
          "sub.rn.f32 %f4, %f4, %f5;\n");
  expect(5.3f, 0.5, 1.5);
  compute("cvt.rni.f32.f32 %f4, %f1;");
  EXPECT_FALSE(at(8).isKnown);
  EXPECT_EQ(at(8).value, 5);
}

TEST_F(ShadowTest, Branches) {
  // 3 * (1/3) is 1 or not.
  std::string close = std::string(third) + "mul.f32 %f4, %f1, 0f40400000;\n";
  EXPECT_EQ(remarks(compute(close + "setp.lt.f32 %p1, %f4, 0f3F800000;\n"
                                    "@%p1 bra done;\nmov.f32 %f5, %f4;\n"
                                    "done:")),
            Texts{branches});
  EXPECT_EQ(remarks(compute(close + "setp.lt.f32 %p1, %f4, 0f3F800000;\n"
                                    "not.pred %p2, %p1;\n"
                                    "@%p2 add.f32 %f4, %f4, %f4;")),
            Texts{guards});
  // Far from it, or exact.
  EXPECT_EQ(remarks(compute(close + "setp.lt.f32 %p1, %f4, 0f3F8CCCCD;\n"
                                    "@%p1 bra done;\nmov.f32 %f5, %f4;\n"
                                    "done:")),
            Texts());
  EXPECT_EQ(remarks(compute("add.f32 %f4, %f1, %f2;\n"
                            "setp.eq.f32 %p1, %f4, 0f00000000;\n"
                            "@%p1 bra done;\nmov.f32 %f5, %f4;\ndone:")),
            Texts());
}

TEST_F(ShadowTest, Selections) {
  std::string close = std::string(third) + "mul.f32 %f4, %f1, 0f40400000;\n"
                                           "setp.lt.f32 %p1, %f4, "
                                           "0f3F800000;\n";
  EXPECT_EQ(remarks(compute(close + "selp.f32 %f4, 0f40000000, 0f40A00000, "
                                    "%p1;")),
            Texts{selects});
  // Off by as much as the two are apart.
  EXPECT_EQ(at(8).bound, 3);
  // The two are the same within their bounds.
  EXPECT_EQ(remarks(compute(close + "selp.f32 %f4, %f4, 0f3F800000, %p1;")),
            Texts());
  EXPECT_LE(at(8).bound, 0x1p-20);
  EXPECT_EQ(remarks(compute(close + "selp.b32 %r1, 1, 2, %p1;\n"
                                    "mov.b32 %f4, %r1;")),
            Texts{selects});
}

/// What the shadow cannot follow is told.
TEST_F(ShadowTest, Doubts) {
  auto doubt = [&](llvm::StringRef body) {
    std::string text = compute(body).shadowDoubt;
    size_t at = text.find("`): ");
    return at == std::string::npos ? text : text.substr(at + 4);
  };
  std::string close = std::string(third) + "mul.f32 %f4, %f1, 0f40400000;\n";
  EXPECT_EQ(doubt("add.f32 %f4, %f1, %f2;"), "");
  EXPECT_EQ(doubt(close + "setp.lt.f32 %p1, %f4, 0f3F800000;\n"
                          "@%p1 bra done;\nmov.f32 %f5, %f4;\ndone:"),
            branches);
  EXPECT_EQ(doubt(close + "setp.lt.f32 %p1, %f4, 0f3F800000;\n"
                          "selp.f32 %f4, 0f40000000, 0f40A00000, %p1;"),
            selects);
  const char *bits = "the bits of a rounded value are used otherwise";
  const char *halve = "mov.b32 %r1, %f1;\nsub.u32 %r1, %r1, 0x800000;\n"
                      "mov.b32 %f4, %r1;";
  EXPECT_EQ(doubt(std::string(third) + halve), bits);
  // Of an input they hide nothing.
  EXPECT_EQ(doubt(halve), "");
  // Signs are followed, and so is what rounds to an integer.
  EXPECT_EQ(doubt(std::string(third) + "mov.b32 %r1, %f1;\n"
                                       "xor.b32 %r1, %r1, 0x80000000;\n"
                                       "mov.b32 %f4, %r1;"),
            "");
  EXPECT_EQ(doubt(std::string(third) + "cvt.rni.s32.f32 %r1, %f1;\n"
                                       "cvt.rn.f32.s32 %f4, %r1;"),
            "");
  // Comparisons of bits, near and far.
  EXPECT_EQ(doubt(close + "mov.b32 %r1, %f4;\n"
                          "setp.lt.u32 %p1, %r1, 0x3F800000;\n"
                          "@%p1 bra done;\nmov.f32 %f5, %f4;\ndone:"),
            branches);
  EXPECT_EQ(doubt(close + "mov.b32 %r1, %f4;\n"
                          "setp.gt.u32 %p1, %r1, 0x7F800000;\n"
                          "@%p1 bra done;\nmov.f32 %f5, %f4;\ndone:"),
            "");
}

TEST_F(ShadowTest, ThroughAllMemories) {
  const char *shared = ".shared .align 16 .b8 s[64];\n";
  launch(std::string(third) + R"(
    .local .align 16 .b8 l[64];
    st.local.f32 [l+4], %f1;
    ld.local.u32 %r1, [l+4];
    mov.b32 %r2, 0;
    st.shared.v4.b32 [s], {%r2, %r2, %r2, %r1};
    ld.shared.v4.f32 {%f5, %f6, %f7, %f8}, [s];
    st.global.f32 [%out+68], %f8;
    ld.global.b64 %rd1, [%out+64];
    mov.b64 {%r3, %r4}, %rd1;
    mov.b32 %f8, %r4;
    st.global.f32 [%out+32], %f8;
  )",
         shared);
  expect(1.0 / 3, unit32 * 0.3, unit32 * 0.35);
}

TEST_F(ShadowTest, AsynchronousCopies) {
  compute(std::string(third) + "mov.f32 %f4, %f1;");
  launch(R"(
    mov.u32 %r1, s;
    cp.async.cg.shared.global [%r1], [%out+32], 16;
    cp.async.wait_all;
    ld.shared.f32 %f1, [s];
    add.f32 %f1, %f1, %f1;
    st.shared.f32 [s], %f1;
    cp.async.bulk.global.shared::cta.bulk_group [%out+64], [%r1], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
  )",
         ".shared .align 16 .b8 s[64];\n");
  EXPECT_TRUE(at(16).isKnown);
  EXPECT_DOUBLE_EQ(at(16).value, 2.0 / 3);
  EXPECT_GE(at(16).bound, unit32 * 0.6);
}

/// Doubles are wider than a register of a shuffle.
TEST_F(ShadowTest, HalvesOfDoubles) {
  launch(R"(
    mov.f64 %d1, 0d3FF0000000000000;
    div.rn.f64 %d1, %d1, 0d4008000000000000;
    mov.b64 {%r1, %r2}, %d1;
    st.global.v2.b32 [%out], {%r1, %r2};
    ld.global.f64 %d2, [%out];
    st.global.f64 [%out+8], %d2;
    ld.global.v2.b32 {%r3, %r4}, [%out+8];
    mov.b64 %d3, {%r3, %r4};
    st.global.f64 [%out+16], %d3;
    mov.b64 %d4, {%r4, %r3};
    st.global.f64 [%out+24], %d4;
  )");
  for (unsigned word : {2u, 4u}) {
    ShadowValue got = at(word, Type::F64);
    EXPECT_TRUE(got.isKnown) << word;
    EXPECT_NEAR(got.bound, 0x1p-53 / 3, 0x1p-58) << word;
  }
  EXPECT_FALSE(at(6, Type::F64).isKnown);
}

TEST_F(ShadowTest, MemoryThatOthersWriteIsExact) {
  compute(std::string(third) + "mov.f32 %f4, %f1;");
  EXPECT_TRUE(at(8).isKnown);
  // In a later launch.
  compute("ld.global.f32 %f4, [%out+32];\nadd.f32 %f4, %f4, %f4;");
  expect(2.0 / 3, unit32 * 1.3, unit32 * 1.4);
  // Copies of the host keep it; whatever writes ends it.
  cantFail(gpu->copy(out + 64, out + 32, 4));
  EXPECT_TRUE(at(16).isKnown);
  EXPECT_DOUBLE_EQ(at(16).value, 2.0 / 3);
  setFloat(8, held(8));
  EXPECT_FALSE(at(8).isKnown);
  options.shadow = false;
  launch("mov.b32 %r1, 5;\nst.global.b32 [%out+64], %r1;\n");
  EXPECT_FALSE(at(16).isKnown);
  options.shadow = true;
  EXPECT_EQ(toString(gpu->readShadow(out + 4094, Type::F32).takeError())
                .substr(0, 24),
            "no value of type f32 at ");
  EXPECT_EQ(toString(gpu->readShadow(out, Type::U32).takeError()),
            "u32 is not the type of one float");
}

TEST_F(ShadowTest, Shuffles) {
  shape.block = {32, 1, 1};
  launch(R"(
    cvt.rn.f32.u32 %f1, %t;
    add.f32 %f1, %f1, 0f3F800000;
    rcp.rn.f32 %f1, %f1;
    mov.b32 %r1, %f1;
    shfl.sync.down.b32 %r2|%p1, %r1, 1, 31, -1;
    mov.b32 %f2, %r2;
    mul.wide.u32 %rd1, %t, 4;
    add.u64 %rd1, %rd1, %out;
    st.global.f32 [%rd1], %f2;
  )");
  EXPECT_DOUBLE_EQ(at(5).value, 1.0 / 7);
  EXPECT_NEAR(at(5).bound, unit32 / 7, unit32 / 100);
  EXPECT_DOUBLE_EQ(at(31).value, 1.0 / 32);
}

TEST_F(ShadowTest, Atomics) {
  shape.block = {64, 1, 1};
  std::string values = R"(
    cvt.rn.f32.u32 %f1, %t;
    add.f32 %f1, %f1, 0f3F800000;
    rcp.rn.f32 %f1, %f1;
  )";
  double sum = 0;
  for (int i = 64; i; --i)
    sum += 1.0 / i;
  launch(values + "red.global.add.f32 [%out+32], %f1;\n");
  ShadowValue got = at(8);
  EXPECT_TRUE(got.isKnown);
  EXPECT_DOUBLE_EQ(got.value, sum);
  EXPECT_LE(std::fabs(held(8) - sum), got.bound);
  // In whatever order: 64 roundings of up to the whole sum.
  EXPECT_GE(got.bound, 64 * unit32 * sum);
  EXPECT_LE(got.bound, 140 * unit32 * sum);
  // A sum that is loaded has it as well.
  shape.block = {1, 1, 1};
  compute("ld.global.f32 %f4, [%out+32];\nneg.f32 %f4, %f4;");
  EXPECT_DOUBLE_EQ(at(8).value, -sum);
  shape.block = {64, 1, 1};
  // Positive floats compare as their bits do.
  launch(values +
         "mov.b32 %r1, %f1;\nred.global.max.s32 [%out+36], %r1;\n"
         "fma.rn.f32 %f2, %f1, 0f3E99999A, 0f3F333333;\nmov.b32 %r2, %f2;\n"
         "atom.global.exch.b32 %r3, [%out+40], %r2;\n");
  EXPECT_FALSE(std::isnan(at(9).value));
  EXPECT_EQ(at(9).value, 1);
  EXPECT_TRUE(at(10).isKnown);
  EXPECT_NE(at(10).value, held(10));
}

TEST_F(ShadowTest, OrdinaryLaunchesLeaveNone) {
  options.shadow = false;
  compute(std::string(third) + "mov.f32 %f4, %f1;");
  EXPECT_FALSE(at(8).isKnown);
  EXPECT_EQ(at(8).value, held(8));
}

TEST_F(ShadowTest, ThroughCalls) {
  launch(std::string(third) + R"(
    { .param .b32 a; .param .b32 r;
      st.param.f32 [a], %f1;
      call (r), half, (a);
      ld.param.f32 %f4, [r]; }
    st.global.f32 [%out+32], %f4;
  )",
         ".func (.param .b32 r) half(.param .b32 a) {\n.reg .f32 %f<3>;\n"
         "ld.param.f32 %f1, [a];\nmul.f32 %f1, %f1, 0f3F000000;\n"
         "st.param.f32 [r], %f1;\nret;\n}\n");
  expect(1.0 / 6, unit32 * 0.16, unit32 * 0.17);
}

} // namespace
} // namespace fsr::ptx
