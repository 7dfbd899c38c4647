// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// True values and bounds of whole kernels, as nvcc compiles them: what the
// shadow says is what the mathematics says, computed here from the same inputs
// in a wider type, and the bound holds without being far too large.
//
//===----------------------------------------------------------------------===//

#include "fsr/PTX/VirtualGpu.h"

#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

namespace fsr::ptx {
namespace {

using Wide = long double;

class ShadowKernelsTest : public testing::Test {
protected:
  void SetUp() override {
    gpu = makeVirtualGpu(VirtualGpuOptions());
    auto text =
        llvm::MemoryBuffer::getFile(FSR_TEST_INPUTS "/shadow/kernels.ptx");
    ASSERT_TRUE(bool(text));
    module = cantFail(gpu->loadModule((*text)->getBuffer()));
    options.shadow = true;
  }

  std::vector<float> random(size_t count, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> spread(low, high);
    std::vector<float> values(count);
    for (float &value : values)
      value = spread(engine);
    return values;
  }

  template <typename T>
  uint64_t put(const std::vector<T> &values) {
    uint64_t address = cantFail(gpu->allocate(values.size() * sizeof(T)));
    cantFail(gpu->write(address, values.data(), values.size() * sizeof(T)));
    return address;
  }

  LaunchResult launch(llvm::StringRef kernel, std::array<unsigned, 3> grid,
                      std::array<unsigned, 3> block,
                      const std::vector<uint64_t> &parameters) {
    LaunchShapeOf shape{grid, block, {1, 1, 1}, 0, false};
    std::vector<KernelParameter> layout =
        cantFail(gpu->parameters(module, kernel));
    EXPECT_EQ(layout.size(), parameters.size());
    std::vector<uint8_t> block_(layout.back().offset + layout.back().bytes);
    for (size_t i = 0; i < layout.size(); ++i)
      std::memcpy(block_.data() + layout[i].offset, &parameters[i],
                  layout[i].bytes);
    LaunchResult result =
        cantFail(gpu->launch(module, kernel, shape, block_, options));
    EXPECT_TRUE(result.completed);
    for (const Finding &finding : result.findings)
      ADD_FAILURE() << finding.text();
    return result;
  }

  /// Looks at all of `out`; `truth` gives the true value of an element.
  template <typename T>
  void check(uint64_t out, size_t count, Type type, double scale,
             const std::function<Wide(size_t)> &truth) {
    double mostError = 0, mostBound = 0, mostApart = 0;
    for (size_t i = 0; i < count; ++i) {
      ShadowValue value = cantFail(gpu->readShadow(out + i * sizeof(T), type));
      ASSERT_TRUE(value.isKnown) << i;
      T held;
      cantFail(gpu->read(&held, out + i * sizeof(T), sizeof(T)));
      double apart = double(std::fabs(Wide(value.value) - truth(i)));
      double error = std::fabs(double(Wide(held) - truth(i)));
      mostApart = std::max(mostApart, apart / scale);
      mostError = std::max(mostError, error);
      mostBound = std::max(mostBound, value.bound);
      ASSERT_LE(error, value.bound) << i;
      ASSERT_TRUE(std::isfinite(value.bound)) << i;
    }
    printf("truth within %.2g; largest error %.3g, bound %.3g: %.1f times\n",
           mostApart, mostError, mostBound, mostBound / mostError);
    EXPECT_LE(mostApart, 1e-12);
    EXPECT_GT(mostError, 0);
    EXPECT_LE(mostBound, mostTimes * mostError);
  }

  std::unique_ptr<VirtualGpu> gpu;
  unsigned module = 0;
  double mostTimes = 100;
  LaunchOptions options;
  std::mt19937 engine{7};
};

TEST_F(ShadowKernelsTest, Matmul) {
  const unsigned n = 64;
  std::vector<float> a = random(n * n), b = random(n * n);
  uint64_t out = put(std::vector<float>(n * n));
  launch("matmul", {n / 16, n / 16, 1}, {16, 16, 1}, {put(a), put(b), out, n});
  check<float>(out, n * n, Type::F32, 1, [&](size_t i) {
    Wide sum = 0;
    for (unsigned k = n; k-- > 0;)
      sum += Wide(a[i / n * n + k]) * b[k * n + i % n];
    return sum;
  });
}

TEST_F(ShadowKernelsTest, Softmax) {
  const unsigned rows = 4, n = 100;
  std::vector<float> in = random(rows * n, -4, 4);
  uint64_t out = put(std::vector<float>(rows * n));
  launch("softmax", {rows, 1, 1}, {32, 1, 1}, {put(in), out, n});
  check<float>(out, rows * n, Type::F32, 0.01, [&](size_t i) {
    Wide sum = 0;
    for (unsigned k = 0; k < n; ++k)
      sum += std::exp(Wide(in[i / n * n + k]));
    return std::exp(Wide(in[i])) / sum;
  });
}

TEST_F(ShadowKernelsTest, LayerNorm) {
  const unsigned rows = 4, n = 128;
  std::vector<float> in = random(rows * n, -1, 3), scale = random(n),
                     bias = random(n);
  uint64_t out = put(std::vector<float>(rows * n));
  launch("layer_norm", {rows, 1, 1}, {32, 1, 1},
         {put(in), put(scale), put(bias), out, n});
  check<float>(out, rows * n, Type::F32, 1, [&](size_t i) {
    const float *row = in.data() + i / n * n;
    Wide sum = 0, squares = 0;
    for (unsigned k = 0; k < n; ++k) {
      sum += row[k];
      squares += Wide(row[k]) * row[k];
    }
    Wide mean = sum / n, variance = squares / n - mean * mean;
    return (row[i % n] - mean) / std::sqrt(variance + 0x1p-17L) * scale[i % n] +
           bias[i % n];
  });
}

TEST_F(ShadowKernelsTest, Scan) {
  std::vector<float> in = random(256);
  uint64_t out = put(std::vector<float>(256));
  launch("scan", {1, 1, 1}, {256, 1, 1}, {put(in), out});
  // The first is a copy, and known for what it is.
  check<float>(out + 4, 255, Type::F32, 1, [&](size_t i) {
    Wide sum = 0;
    for (unsigned k = 0; k <= i + 1; ++k)
      sum += in[k];
    return sum;
  });
}

TEST_F(ShadowKernelsTest, Attention) {
  const unsigned n = 96, width = 16;
  std::vector<float> queries = random(32 * width), keys = random(n * width),
                     values = random(n * width);
  uint64_t out = put(std::vector<float>(32 * width));
  launch("attention", {1, 1, 1}, {32, 1, 1},
         {put(queries), put(keys), put(values), out, n});
  check<float>(out, 32 * width, Type::F32, 1, [&](size_t i) {
    Wide total = 0, sum = 0;
    for (unsigned k = 0; k < n; ++k) {
      Wide score = 0;
      for (unsigned j = 0; j < width; ++j)
        score += Wide(queries[i / width * width + j]) / 4 * keys[k * width + j];
      // __expf is 2^x of a product with this float.
      Wide weight = std::exp2(score * Wide(1.44269502f));
      total += weight;
      sum += weight * values[k * width + i % width];
    }
    return sum / total;
  });
}

/// Halves as bits, and what they are.
struct Halves {
  std::vector<uint16_t> bits;
  std::vector<Wide> values;
  Halves(size_t count, std::mt19937 &engine) {
    for (size_t i = 0; i < count; ++i) {
      // From 1/4 to 1, and both signs.
      unsigned fraction = engine() % 1024, exponent = 13 + engine() % 2,
               sign = engine() % 2;
      bits.push_back(uint16_t(sign << 15 | exponent << 10 | fraction));
      values.push_back((sign ? -1 : 1) *
                       std::ldexp(Wide(1024 + fraction), int(exponent) - 25));
    }
  }
};

TEST_F(ShadowKernelsTest, TensorInstructions) {
  Halves a(256, engine), b(128, engine);
  uint64_t out = put(std::vector<float>(128));
  launch("tensor", {1, 1, 1}, {32, 1, 1}, {put(a.bits), put(b.bits), out});
  // The kernel makes a half of it, and of the products with it.
  const Wide scale = 0.3f;
  check<float>(out, 128, Type::F32, 1, [&](size_t i) {
    Wide sum = 0.1f;
    for (unsigned k = 0; k < 16; ++k)
      sum += a.values[i / 8 * 16 + k] * scale * b.values[i % 8 * 16 + k];
    return sum;
  });
}

TEST_F(ShadowKernelsTest, FragmentsOfMatrices) {
  const unsigned n = 64;
  Halves a(n * n, engine), b(n * n, engine);
  uint64_t out = put(std::vector<float>(n * n));
  launch("fragments", {n / 16, n / 16, 1}, {32, 1, 1},
         {put(a.bits), put(b.bits), out, n});
  // Sums here are rounded once in 16; PTX allows for each.
  mostTimes = 200;
  check<float>(out, n * n, Type::F32, 1, [&](size_t i) {
    Wide sum = 0.1f;
    for (unsigned k = 0; k < n; ++k)
      sum += a.values[i / n * n + k] * b.values[i % n * n + k];
    return sum;
  });
}

/// The truth is wider than a double, and goes through halves of doubles.
TEST_F(ShadowKernelsTest, DoublesInHalves) {
  const unsigned n = 1000;
  std::vector<double> in(n);
  for (double &value : in)
    value = random(1)[0] * 1.1;
  uint64_t out = put(std::vector<double>(1));
  launch("length", {1, 1, 1}, {32, 1, 1}, {put(in), out, n});
  Wide sum = 0;
  for (double value : in)
    sum += Wide(value) * value;
  ShadowValue value = cantFail(gpu->readShadow(out, Type::F64));
  EXPECT_TRUE(value.isKnown);
  EXPECT_EQ(value.value, double(std::sqrt(sum)));
  double held;
  cantFail(gpu->read(&held, out, 8));
  EXPECT_LE(std::fabs(double(held - std::sqrt(sum))), value.bound);
  EXPECT_LT(value.bound, 1e-12);
  EXPECT_GT(value.bound, 1e-16);
}

} // namespace
} // namespace fsr::ptx
