// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of element-wise kernels.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

namespace fsr::ptx {

static double silu(double x) { return x / (1 + std::exp(-x)); }

/// Argument 1 is `function` of argument 0.
static Check map(double (*function)(double), double tolerance = 1e-5) {
  return [=](const Case &c) {
    return all(
        c.arguments[1],
        [&](size_t i) { return function(c.arguments[0].was(i)); }, tolerance);
  };
}

void addElementChecks(Checks &to) {
  to["add"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[2], [&](size_t i) { return a[0].was(i) + a[1].was(i); });
  };
  to["saxpy"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[2], [&](size_t i) {
      return a[0].was(0) * a[1].was(i) + a[2].was(i);
    });
  };
  to["scale"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) { return a[0].was(i) * a[2].was(0); });
  };
  to["clamp"] = map([](double x) { return std::fmin(std::fmax(x, -.5), .25); });
  to["bias_relu"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[2], [&](size_t i) {
      return std::fmax(a[0].was(i) + a[1].was(i % a[1].count), 0);
    });
  };
  to["swizzle_u8"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      return i % 4 == 3   ? 255 - a[0].was(i)
             : i % 4 == 1 ? a[0].was(i)
                          : a[0].was(i ^ 2);
    });
  };
  to["add_wide"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      return i % 3 ? 0 : a[0].was(i) * 2 + double(i / 3 % 7) / 3;
    });
  };
  to["square"] = map([](double x) { return x * x; });
  to["gelu_erf"] =
      map([](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); });
  to["gelu_tanh"] = map([](double x) {
    return x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
  });
  to["silu"] = map(silu);
  to["tanh"] = map(std::tanh, 2e-3);
  to["exp2"] = map(std::exp2);
  to["softplus"] = [](const Case &c) {
    const auto &a = c.arguments;
    auto softplus = [&](size_t i) { return std::log1p(std::exp(a[0].was(i))); };
    std::string wrong = all(a[1], softplus);
    return wrong.empty() ? all(a[2],
                               [&](size_t i) {
                                 return a[0].was(i) * std::tanh(softplus(i));
                               })
                         : wrong;
  };
  to["swiglu"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t width = a[3].was(0);
    return all(a[1], [&](size_t i) {
      size_t at = i / width * 2 * width + i % width;
      return silu(a[0].was(at)) * a[0].was(at + width);
    });
  };
  to["math_zoo"] = map(
      [](double x) {
        return std::sin(x) + std::cos(x) + std::sqrt(x) + 1 / std::sqrt(x) +
               std::cbrt(x) + std::log(x) + std::log2(x) + std::exp2(x) +
               std::expm1(x) + std::pow(x, 1.7) + std::atan2(x, 2.) +
               std::hypot(x, 1.) + std::fmod(x, double(0.3f)) + std::floor(x) +
               std::round(x * 3) + std::trunc(x * 2) + std::rint(x * 5) - x +
               std::lgamma(x + 1) + std::erfc(x) + std::asinh(x) + std::sinh(x);
      },
      1e-5);
  to["math_intrinsics"] = map(
      [](double x) {
        return std::sin(x) + std::cos(x) + std::log(x) + std::log2(x) +
               std::log10(x) + std::pow(x, 1.5) + std::sqrt(x) +
               1 / std::sqrt(x) + x * x + 1 +
               std::fmin(std::fmax(x - 0.2, 0), 1) + x + 1e-3 + 3 * x + x / 7 +
               std::tan(x);
      },
      1e-4);
  to["half_add"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[2], [&](size_t i) { return a[0].was(i) + a[1].was(i); }, 1e-2);
  };
}

const Check *findCheck(const std::string &name) {
  static const Checks checks = [] {
    Checks all;
    addElementChecks(all);
    addReductionChecks(all);
    addMatrixChecks(all);
    addOrderChecks(all);
    addModelChecks(all);
    addScienceChecks(all);
    return all;
  }();
  auto found = checks.find(name);
  return found == checks.end() ? nullptr : &found->second;
}

} // namespace fsr::ptx
